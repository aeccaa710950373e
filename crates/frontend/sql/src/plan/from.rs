//! FROM: tables, views, subqueries, functions.
//!
//! Not here: how they are joined (`joins`).

use super::json_rows::lists_types;
use super::output::name_of;
use super::path::Access;
use super::reads::tables_read;
use super::select::{Origin, Select, SourceKind};
use super::with_order::of_hidden;
use super::{JsonRows, OutputColumn, SetCall, SetFunction, Subquery};
use crate::bind::{Binder, Meaning, Reader, Scope, ScopeColumn, ScopeTable, folded};
use crate::catalog::{Kind, Oid, Relation};
use crate::error::{Result, SqlError};
use crate::expr::Builtin;
use crate::roles::Rights;
use crate::rows::Shape;
use crate::sqlstate;
use sqlparser::ast;
use std::sync::Arc;
use vellum_row::{Type, Typmod};

/// How often the queries of WITH are read in a statement, all together: each reading may read others, several times.
const WITH_USES: usize = 1000;

/// Views in views.
pub(super) const VIEW_DEPTH: usize = 32;

impl Binder<'_> {
    /// A table of a FROM; its columns join the scope.
    pub(super) fn factor(&mut self, factor: &ast::TableFactor) -> Result<SourceKind> {
        match factor {
            ast::TableFactor::Table {
                name,
                alias,
                args: None,
                sample: None,
                ..
            } => {
                if let Some(word) = word_of(name) {
                    return self.word_in_from(word, alias.as_ref());
                }
                if let Some(at) = self.with_named(name) {
                    return self.with_query(at, alias.as_ref());
                }
                let relation = self.relation(name)?;
                self.uses(&relation, Rights::SELECT);
                let own = alias.as_ref().map(|alias| folded(&alias.name));
                match &relation.kind {
                    Kind::Table(_) => {
                        let mut table = ScopeTable::of(&relation, own)?;
                        rename(&mut table, alias.as_ref())?;
                        self.scope.add(table)?;
                        Ok(SourceKind::Table {
                            shape: Arc::new(Shape::of(&relation)?),
                            access: Access::all(),
                        })
                    }
                    Kind::View(_) => self.view(&relation, own, alias.as_ref()),
                    Kind::System(definition) => {
                        let definition = *definition;
                        let mut table = ScopeTable::of(&relation, own)?;
                        rename(&mut table, alias.as_ref())?;
                        self.scope.add(table)?;
                        Ok(SourceKind::System(definition))
                    }
                    Kind::Sequence(_) => self.sequence(&relation, own, alias.as_ref()),
                    Kind::Enum(_) | Kind::Domain(_) => Err(self.no_relation(name)),
                }
            }
            ast::TableFactor::Table {
                name,
                alias,
                args: Some(args),
                with_ordinality,
                ..
            } => self.table_function(name, &args.args, *with_ordinality, alias.as_ref()),
            ast::TableFactor::Function {
                name,
                args,
                alias,
                with_ordinality,
                ..
            } => self.table_function(name, args, *with_ordinality, alias.as_ref()),
            // The parser has a form of its own for it.
            ast::TableFactor::UNNEST {
                alias,
                array_exprs,
                with_offset: false,
                with_ordinality,
                ..
            } => {
                let name = ast::ObjectName::from(vec![ast::Ident::new("unnest")]);
                let args = array_exprs.iter().cloned();
                let args =
                    args.map(|expr| ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(expr)));
                let args: Vec<ast::FunctionArg> = args.collect();
                self.table_function(&name, &args, *with_ordinality, alias.as_ref())
            }
            ast::TableFactor::Derived {
                lateral,
                subquery,
                alias,
                ..
            } => {
                let (select, columns) = if *lateral {
                    let around = self.general.take();
                    let bound = self.within(|binder| binder.query(subquery));
                    self.general = around;
                    bound?
                } else {
                    self.apart_from_around(|binder| binder.query(subquery))?
                };
                let name = alias.as_ref().map(|alias| folded(&alias.name));
                let name = name.ok_or_else(|| {
                    SqlError::syntax("subquery in FROM must have an alias")
                        .with_hint("For example, FROM (SELECT ...) [AS] foo.")
                        .at(self.place_before(&**subquery, "("))
                })?;
                self.derived(select, columns, (name, None), alias.as_ref())
            }
            other => Err(SqlError::unsupported(format!("{other} in FROM"))),
        }
    }

    /// The query of WITH that a name stands for.
    fn with_named(&self, name: &ast::ObjectName) -> Option<usize> {
        let [ast::ObjectNamePart::Identifier(ident)] = name.0.as_slice() else {
            return None;
        };
        let name = folded(ident);
        self.with.iter().rposition(|with| with.name == name)
    }

    /// A query of WITH, bound where it is read: it sees those in front of it, and nothing of the query that reads it.
    pub(super) fn with_query(
        &mut self,
        at: usize,
        alias: Option<&ast::TableAlias>,
    ) -> Result<SourceKind> {
        self.with_uses += 1;
        if self.with_uses > WITH_USES {
            return Err(super::limits::read_too_often());
        }
        self.binds_with()?;
        if self.view_depth >= VIEW_DEPTH || self.with_depth >= VIEW_DEPTH {
            return Err(crate::parse::too_deep());
        }
        match &self.with[at].meaning {
            Meaning::Query => {}
            Meaning::Recursive => return self.recursive(at, alias),
            Meaning::Refused(_)
            | Meaning::Work { .. }
            | Meaning::Written { .. }
            | Meaning::Silent => return self.work(at, alias),
        }
        self.with_depth += 1;
        let with = self.with[at].clone();
        let behind = self.with.split_off(at);
        let between = self.close_between(with.depth);
        let bound = self.apart_from_around(|binder| binder.query(&with.query));
        self.open_between(with.depth, between);
        self.with_depth -= 1;
        let bound = bound.map_err(|error| {
            let beside = behind.iter().filter(|other| other.depth == with.depth);
            of_hidden(error, beside.map(|other| &*other.name), false)
        });
        self.with.extend(behind);
        let (mut select, mut columns) = bound?;
        select.origin = Origin::With;
        super::writing::check_names(&with.name, with.columns.len(), columns.len())?;
        for (column, name) in columns.iter_mut().zip(with.columns) {
            column.name = name;
        }
        let own = alias.map_or(with.name, |alias| folded(&alias.name));
        self.derived(select, columns, (own, None), alias)
    }

    /// Takes the names of the queries between the one that has a WITH and the one that reads from it: nothing in it can name these.
    pub(super) fn close_between(&mut self, depth: usize) -> Vec<Scope> {
        let between = self.outer.iter_mut().skip(depth);
        between
            .map(|outer| std::mem::take(&mut outer.scope))
            .collect()
    }

    /// Gives them back.
    pub(super) fn open_between(&mut self, depth: usize, between: Vec<Scope>) {
        for (outer, scope) in self.outer.iter_mut().skip(depth).zip(between) {
            outer.scope = scope;
        }
    }

    fn view(
        &mut self,
        relation: &Arc<Relation>,
        own: Option<String>,
        alias: Option<&ast::TableAlias>,
    ) -> Result<SourceKind> {
        let Kind::View(view) = &relation.kind else {
            return Err(SqlError::internal("no view"));
        };
        let (mut select, mut columns) = self.stored_query(relation, &view.query)?;
        select.origin = Origin::View(relation.clone());
        for (column, name) in columns.iter_mut().zip(&view.columns) {
            column.name = name.to_string();
        }
        self.derived(select, columns, under(relation, own), alias)
    }

    /// The one row of a sequence.
    fn sequence(
        &mut self,
        relation: &Arc<Relation>,
        own: Option<String>,
        alias: Option<&ast::TableAlias>,
    ) -> Result<SourceKind> {
        let text = format!(
            "SELECT last_value, log_cnt, is_called FROM pg_catalog.vellum_sequences WHERE seqrelid = {}",
            relation.oid
        );
        let (select, columns) = self.stored_query(relation, &text)?;
        self.derived(select, columns, under(relation, own), alias)
    }

    /// The query that stands for a relation.
    pub(super) fn stored_query(
        &mut self,
        relation: &Relation,
        text: &str,
    ) -> Result<(Select, Vec<OutputColumn>)> {
        // OR REPLACE can make two views that read each other.
        if self.view_depth >= VIEW_DEPTH {
            return Err(crate::parse::too_deep());
        }
        let query = query_of(text)?;
        self.of_view(relation, |binder| {
            binder.apart_from_around(|binder| binder.query(&query))
        })
    }

    /// Binds what a relation's own text says: nothing of the statement can be named in it, and what it reads its owner has to have a right to.
    pub(super) fn of_view<R>(
        &mut self,
        relation: &Relation,
        work: impl FnOnce(&mut Self) -> Result<R>,
    ) -> Result<R> {
        self.view_depth += 1;
        let outer = std::mem::take(&mut self.outer);
        let with = std::mem::take(&mut self.with);
        let lasting = !self.catalog.is_temporary(relation.namespace);
        let lasting = std::mem::replace(&mut self.lasting_only, lasting);
        let reader = std::mem::replace(&mut self.reader, Reader::of(relation));
        let bound = self.stored(work);
        self.reader = reader;
        self.lasting_only = lasting;
        self.outer = outer;
        self.with = with;
        self.view_depth -= 1;
        bound
    }

    /// A table that is a query, under a name; `own`: the relation that is called so and has this query.
    pub(super) fn derived(
        &mut self,
        select: Select,
        columns: Vec<OutputColumn>,
        (name, own): (String, Option<Oid>),
        alias: Option<&ast::TableAlias>,
    ) -> Result<SourceKind> {
        let columns = columns.into_iter().map(|column| ScopeColumn {
            name: column.name,
            ty: column.ty,
            typmod: column.typmod,
            number: 0,
            domain: column.domain,
            collation: column.collation,
        });
        let mut table = ScopeTable {
            name,
            own,
            qualified_only: false,
            is_value: false,
            may_miss: false,
            relation: None,
            columns: columns.collect(),
        };
        rename(&mut table, alias)?;
        self.scope.add(table)?;
        Ok(match select.correlated {
            true => SourceKind::Lateral(Box::new(select)),
            false => SourceKind::Query(Box::new(select)),
        })
    }

    fn table_function(
        &mut self,
        name: &ast::ObjectName,
        args: &[ast::FunctionArg],
        ordinality: bool,
        alias: Option<&ast::TableAlias>,
    ) -> Result<SourceKind> {
        let function = crate::bind::called_name(name)?;
        if let Some(kind) = JsonRows::find(&function) {
            let (call, columns) = self.json_rows(kind, args, ordinality, alias)?;
            return self.of_functions(vec![call], columns, ordinality, &function, alias);
        }
        if lists_types(alias) {
            let text =
                "a column definition list is only allowed for functions returning \"record\"";
            return Err(SqlError::syntax(text));
        }
        if function == crate::parse::ROWS {
            return self.rows_from(args, ordinality, alias);
        }
        let (calls, columns) = self.function_columns(&function, name, args)?;
        let own = alias.map_or_else(|| function.clone(), |alias| folded(&alias.name));
        let columns = as_columns(columns, &own);
        self.of_functions(calls, columns, ordinality, &function, alias)
    }

    /// A function that is called without parentheses: its one value.
    fn word_in_from(
        &mut self,
        word: &ast::Ident,
        alias: Option<&ast::TableAlias>,
    ) -> Result<SourceKind> {
        let (call, ty) = self.one_row(&ast::Expr::Identifier(word.clone()))?;
        let function = folded(word);
        let own = alias.map_or_else(|| function.clone(), |alias| folded(&alias.name));
        let columns = as_columns(vec![(function.clone(), ty)], &own);
        self.of_functions(vec![call], columns, false, &function, alias)
    }

    /// The calls that a function in FROM is, and the columns of their rows.
    fn function_columns(
        &mut self,
        function: &str,
        name: &ast::ObjectName,
        args: &[ast::FunctionArg],
    ) -> Result<(Vec<SetCall>, Vec<(String, Type)>)> {
        let named = |columns: Vec<(&'static str, Type)>| {
            let columns = columns.into_iter();
            columns.map(|(name, ty)| (name.to_owned(), ty)).collect()
        };
        match SetFunction::find(function) {
            // Several arrays are stepped through side by side.
            Some(SetFunction::Unnest) if args.len() > 1 => {
                let (mut calls, mut all) = (Vec::new(), Vec::with_capacity(args.len()));
                for arg in args {
                    let one = std::slice::from_ref(arg);
                    let (call, column) = self.set_arguments(SetFunction::Unnest, function, one)?;
                    calls.push(call);
                    all.extend(column);
                }
                Ok((calls, named(all)))
            }
            Some(kind) => {
                let (call, columns) = self.set_arguments(kind, function, args)?;
                Ok((vec![call], named(columns)))
            }
            None => {
                let (call, ty) = self.one_row_of(name, args)?;
                Ok((vec![call], vec![(function.to_owned(), ty)]))
            }
        }
    }

    /// ROWS FROM: functions that are stepped through side by side. A column is called as its function is, unless it is the only one.
    ///
    /// # Errors
    /// `0A000` for functions of JSON whose columns are listed.
    fn rows_from(
        &mut self,
        items: &[ast::FunctionArg],
        ordinality: bool,
        alias: Option<&ast::TableAlias>,
    ) -> Result<SourceKind> {
        let (mut calls, mut columns) = (Vec::new(), Vec::new());
        let mut first = None;
        for item in items {
            let ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(node)) = item else {
                return Err(SqlError::syntax("ROWS FROM needs functions"));
            };
            let (function, own, named) = match node {
                ast::Expr::Function(call) => {
                    check_call(call)?;
                    let function = crate::bind::called_name(&call.name)?;
                    let args = match &call.args {
                        ast::FunctionArguments::List(list) => list.args.as_slice(),
                        _ => &[],
                    };
                    if JsonRows::find(&function).is_some() {
                        return Err(SqlError::unsupported(format!("{function} in ROWS FROM")));
                    }
                    let (own, named) = self.function_columns(&function, &call.name, args)?;
                    (function, own, named)
                }
                node if is_call(node) => {
                    let (call, ty) = self.one_row(node)?;
                    let function = name_of(node);
                    (function.clone(), vec![call], vec![(function, ty)])
                }
                _ => return Err(SqlError::syntax("ROWS FROM needs functions")),
            };
            let table = match (alias, items) {
                (Some(alias), [_]) => folded(&alias.name),
                _ => function.clone(),
            };
            calls.extend(own);
            columns.extend(as_columns(named, &table));
            first.get_or_insert(function);
        }
        let first = first.ok_or_else(|| SqlError::syntax("ROWS FROM needs functions"))?;
        self.of_functions(calls, columns, ordinality, &first, alias)
    }

    /// The rows of functions side by side, with these columns.
    fn of_functions(
        &mut self,
        calls: Vec<SetCall>,
        mut columns: Vec<ScopeColumn>,
        ordinality: bool,
        function: &str,
        alias: Option<&ast::TableAlias>,
    ) -> Result<SourceKind> {
        let is_row = |call: &SetCall| matches!(call.function, SetFunction::JsonRows(_));
        let is_value = columns.len() == 1 && !ordinality && !calls.iter().any(is_row);
        if ordinality {
            columns.push(ScopeColumn {
                name: "ordinality".to_owned(),
                ty: Type::Int8,
                typmod: Typmod::NONE,
                number: 0,
                domain: None,
                collation: None,
            });
        }
        let mut table = ScopeTable {
            name: alias.map_or_else(|| function.to_owned(), |alias| folded(&alias.name)),
            own: None,
            qualified_only: false,
            is_value,
            may_miss: false,
            relation: None,
            columns,
        };
        rename(&mut table, alias)?;
        self.scope.add(table)?;
        Ok(match plain_series(&calls, ordinality, &self.subqueries) {
            Some(series) => series,
            None => SourceKind::Function { calls, ordinality },
        })
    }
}

/// The name that a relation is read under, and itself if that is its own.
fn under(relation: &Relation, alias: Option<String>) -> (String, Option<Oid>) {
    let own = alias.is_none().then_some(relation.oid);
    (alias.unwrap_or_else(|| relation.name.to_string()), own)
}

/// The word that a name is, if that stands for a function: no table is called so without quotes.
fn word_of(name: &ast::ObjectName) -> Option<&ast::Ident> {
    let [ast::ObjectNamePart::Identifier(ident)] = name.0.as_slice() else {
        return None;
    };
    let is_word = ident.quote_style.is_none() && Builtin::of_word(&folded(ident)).is_some();
    is_word.then_some(ident)
}

/// What calls a function with words between its arguments.
fn is_call(node: &ast::Expr) -> bool {
    use ast::Expr as E;
    match node {
        E::Cast { kind, .. } => *kind == ast::CastKind::Cast,
        E::Substring { .. }
        | E::Trim { .. }
        | E::Position { .. }
        | E::Overlay { .. }
        | E::Extract { .. } => true,
        _ => false,
    }
}

/// What an expression may say behind a call is not said in FROM.
///
/// # Errors
/// `42601`.
fn check_call(call: &ast::Function) -> Result<()> {
    let said = [
        (!call.within_group.is_empty(), "within"),
        (call.filter.is_some(), "filter"),
        (call.null_treatment.is_some(), "nulls"),
        (call.over.is_some(), "over"),
    ];
    match said.iter().find(|(said, _)| *said) {
        Some((_, word)) => Err(SqlError::syntax(format!(
            "syntax error at or near \"{word}\""
        ))),
        None => Ok(()),
    }
}

/// Columns of a function's rows. The one column of a function is called as the table is.
fn as_columns(columns: Vec<(String, Type)>, table: &str) -> Vec<ScopeColumn> {
    let single = columns.len() == 1;
    let columns = columns.into_iter().map(|(name, ty)| ScopeColumn {
        name: match single && name != "value" {
            true => table.to_owned(),
            false => name,
        },
        ty,
        typmod: Typmod::NONE,
        number: 0,
        domain: None,
        collation: None,
    });
    columns.collect()
}

/// The query that a relation keeps as text.
pub(super) fn query_of(text: &str) -> Result<Box<ast::Query>> {
    match crate::parse::statements(text)?.pop() {
        Some(ast::Statement::Query(query)) => Ok(query),
        _ => Err(SqlError::internal("no query")),
    }
}

/// A series of integers whose bounds are of no table: whoever reads it steps through it by itself.
fn plain_series(
    calls: &[SetCall],
    ordinality: bool,
    subqueries: &[Subquery],
) -> Option<SourceKind> {
    let [call] = calls else {
        return None;
    };
    let ty = match call.function {
        SetFunction::Series(ty) if ty.is_integer() && !ordinality => ty,
        _ => return None,
    };
    let mut reads = false;
    for argument in &call.arguments {
        tables_read(argument, subqueries, &mut |_| reads = true);
    }
    let [from, to, step] = call.arguments.as_slice() else {
        return None;
    };
    (!reads).then(|| SourceKind::Series {
        from: from.clone(),
        to: to.clone(),
        step: step.clone(),
        ty,
    })
}

/// Names that an alias gives.
pub(super) fn rename(table: &mut ScopeTable, alias: Option<&ast::TableAlias>) -> Result<()> {
    let Some(alias) = alias else {
        return Ok(());
    };
    if alias.columns.len() > table.columns.len() {
        let message = format!(
            "table \"{}\" has {} columns available but {} columns specified",
            table.name,
            table.columns.len(),
            alias.columns.len()
        );
        return Err(SqlError::new(sqlstate::INVALID_COLUMN_REFERENCE, message));
    }
    for (column, name) in table.columns.iter_mut().zip(&alias.columns) {
        column.name = folded(&name.name);
    }
    Ok(())
}
