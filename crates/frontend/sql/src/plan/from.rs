//! FROM: tables, views, subqueries, joins.

use super::path::Access;
use super::select::{Join, Origin, Select, Source, SourceKind};
use super::{General, OutputColumn, SetCall, SetFunction, conjuncts};
use crate::bind::{Binder, Bound, Joined, Meaning, Scope, ScopeColumn, ScopeTable, folded};
use crate::catalog::{Kind, Relation};
use crate::error::{Result, SqlError};
use crate::expr::Expr;
use crate::roles::Rights;
use crate::rows::Shape;
use crate::sqlstate;
use sqlparser::ast;
use std::ops::Range;
use std::sync::Arc;
use vellum_row::{Type, Typmod};

/// How often the queries of WITH are read in a statement, all together: each reading may read others, several times.
const WITH_USES: usize = 1000;

/// Views in views.
const VIEW_DEPTH: usize = 32;

impl Binder<'_> {
    /// Tables that are joined by JOIN.
    pub(super) fn from(
        &mut self,
        table: &ast::TableWithJoins,
        sources: &mut Vec<Source>,
    ) -> Result<()> {
        let from = self.scope.tables.len();
        match &table.relation {
            // Joined first whether in parentheses or not.
            ast::TableFactor::NestedJoin {
                table_with_joins,
                alias: None,
            } => self.from(table_with_joins, sources)?,
            relation => {
                let first = self.factor(relation)?;
                let mut first = Source::inner(first);
                first.item = from as u16;
                sources.push(first);
            }
        }
        let mut star = self.star_of(from);
        for join in &table.joins {
            let (kind, constraint) = match &join.join_operator {
                ast::JoinOperator::Join(constraint) | ast::JoinOperator::Inner(constraint) => {
                    (Join::Inner, constraint)
                }
                ast::JoinOperator::Left(constraint) | ast::JoinOperator::LeftOuter(constraint) => {
                    (Join::Left, constraint)
                }
                ast::JoinOperator::CrossJoin(constraint) => (Join::Inner, constraint),
                ast::JoinOperator::Right(constraint)
                | ast::JoinOperator::RightOuter(constraint) => {
                    self.needs(General::RightJoin);
                    (Join::Right, constraint)
                }
                ast::JoinOperator::FullOuter(constraint) => {
                    self.needs(General::FullJoin);
                    (Join::Full, constraint)
                }
                other => return Err(SqlError::unsupported(format!("the join {other:?}"))),
            };
            let before = self.scope.tables.len();
            let source = self.factor(&join.relation)?;
            if matches!(source, SourceKind::Lateral(_)) && matches!(kind, Join::Right | Join::Full)
            {
                let text = "invalid reference to FROM-clause entry of a LATERAL subquery";
                return Err(
                    SqlError::new(sqlstate::INVALID_COLUMN_REFERENCE, text).with_detail(
                        "The combining JOIN type must be INNER or LEFT for a LATERAL reference.",
                    ),
                );
            }
            let mut source = Source::inner(source);
            source.join = kind;
            source.item = from as u16;
            let mut conditions = Vec::new();
            let mut together = Vec::new();
            match constraint {
                ast::JoinConstraint::None => {}
                ast::JoinConstraint::On(condition) => {
                    // It reads the tables of its own item only.
                    let closed = std::mem::replace(&mut self.scope.closed, from as u16);
                    let condition = self.condition(condition, "JOIN/ON");
                    self.scope.closed = closed;
                    conjuncts(condition?, &mut conditions);
                }
                ast::JoinConstraint::Using(names) => {
                    for name in names {
                        let (_, name) = crate::bind::object_name(name)?;
                        if together.contains(&name) {
                            let message = format!(
                                "column name \"{name}\" appears more than once in USING clause"
                            );
                            return Err(SqlError::new(sqlstate::DUPLICATE_COLUMN, message));
                        }
                        conditions.push(self.using(&name, from..before, kind)?);
                        together.push(name);
                    }
                }
                ast::JoinConstraint::Natural => {
                    let named = |at: &(u16, u16)| {
                        let table = &self.scope.tables[usize::from(at.0)];
                        &table.columns[usize::from(at.1)].name
                    };
                    let own = &self.scope.tables[before].columns;
                    let there = |name: &String| own.iter().any(|column| column.name == *name);
                    let names = star.iter().map(named).filter(|name| there(name));
                    let names: Vec<String> = names.cloned().collect();
                    for name in names {
                        conditions.push(self.using(&name, from..before, kind)?);
                        together.push(name);
                    }
                }
            }
            let own = (0u16..).take(self.scope.tables[before].columns.len());
            star.extend(own.map(|position| (before as u16, position)));
            self.in_front(&mut star, &together);
            let missing = match kind {
                Join::Inner => before..before,
                Join::Left => before..self.scope.tables.len(),
                Join::Right => from..before,
                Join::Full => from..self.scope.tables.len(),
            };
            for table in &mut self.scope.tables[missing] {
                table.may_miss = true;
            }
            if kind == Join::Inner {
                source.filter = conditions;
            } else {
                source.on = conditions;
            }
            sources.push(source);
        }
        let to = self.scope.tables.len() as u16;
        self.scope
            .joined
            .retain(|joined| joined.from != from as u16);
        self.scope.joined.push(Joined {
            from: from as u16,
            to,
            columns: star,
        });
        Ok(())
    }

    /// The columns of tables from one on, as `*` has them.
    fn star_of(&self, from: usize) -> Vec<(u16, u16)> {
        let mut joined = self.scope.joined.iter();
        if let Some(joined) = joined.find(|joined| usize::from(joined.from) == from) {
            return joined.columns.clone();
        }
        let tables = (0u16..).zip(&self.scope.tables).skip(from);
        let columns = tables.flat_map(|(number, table)| {
            let positions = (0u16..).take(table.columns.len());
            positions.map(move |position| (number, position))
        });
        columns.collect()
    }

    /// Columns that tables have together come first, and only once.
    fn in_front(&self, star: &mut Vec<(u16, u16)>, together: &[String]) {
        let column = |(table, position): (u16, u16)| {
            &self.scope.tables[usize::from(table)].columns[usize::from(position)]
        };
        star.retain(|at| !column(*at).hidden);
        let place = |at: &(u16, u16)| {
            let name = &column(*at).name;
            let found = together.iter().position(|other| other == name);
            found.unwrap_or(together.len())
        };
        star.sort_by_key(place);
    }

    /// USING: the column of the table behind some equals that of these.
    fn using(&mut self, name: &str, tables: Range<usize>, join: Join) -> Result<Expr> {
        let before = tables.end;
        let outer = Scope {
            tables: self.scope.tables[..before].to_vec(),
            joined: Vec::new(),
            closed: tables.start as u16,
        };
        let left = outer.column(None, name)?;
        let joined = &mut self.scope.tables[before];
        let position = joined.columns.iter().position(|column| column.name == name);
        let position = position.ok_or_else(|| {
            let message = format!(
                "column \"{name}\" specified in USING clause does not exist in right table"
            );
            SqlError::new(sqlstate::UNDEFINED_COLUMN, message)
        })?;
        // The side that is never missing stands for both.
        joined.columns[position].hidden = join != Join::Right;
        let right = Bound::new(
            Expr::Column {
                table: before as u16,
                position: position as u16,
            },
            joined.columns[position].ty,
        );
        if join == Join::Right {
            let table = &mut self.scope.tables[usize::from(left.table)];
            table.columns[usize::from(left.position)].hidden = true;
        }
        if join == Join::Full {
            if right.ty != Some(left.ty) {
                let text = "FULL JOIN with USING of columns of different types";
                return Err(SqlError::unsupported(text));
            }
            let table = &mut self.scope.tables[usize::from(left.table)];
            let others = &mut table.columns[usize::from(left.position)].others;
            others.push((before as u16, position as u16));
        }
        let ty = left.ty;
        let left = Bound::new(left.expr(0)?, ty);
        let equal = self.binary_equal(left, right)?;
        Ok(equal)
    }

    fn binary_equal(&mut self, left: Bound, right: Bound) -> Result<Expr> {
        Ok(self.binary(&ast::BinaryOperator::Eq, left, right)?.expr)
    }

    /// A table of a FROM; its columns join the scope.
    fn factor(&mut self, factor: &ast::TableFactor) -> Result<SourceKind> {
        match factor {
            ast::TableFactor::Table {
                name,
                alias,
                args: None,
                sample: None,
                ..
            } => {
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
                    Kind::Enum(_) => Err(self.no_relation(name)),
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
                    self.query(subquery)?
                };
                let name = alias.as_ref().map(|alias| folded(&alias.name));
                let name =
                    name.ok_or_else(|| SqlError::syntax("subquery in FROM must have an alias"))?;
                self.derived(select, columns, name, alias.as_ref())
            }
            ast::TableFactor::NestedJoin {
                table_with_joins,
                alias: None,
            } if table_with_joins.joins.is_empty() => self.factor(&table_with_joins.relation),
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
            let text = "queries of WITH are read too often";
            return Err(SqlError::new(sqlstate::STATEMENT_TOO_COMPLEX, text));
        }
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
        let bound = self.query(&with.query);
        self.open_between(with.depth, between);
        self.with_depth -= 1;
        self.with.extend(behind);
        let (mut select, mut columns) = bound?;
        select.origin = Origin::With;
        if with.columns.len() > columns.len() {
            let message = format!(
                "WITH query \"{}\" has {} columns available but {} columns specified",
                with.name,
                columns.len(),
                with.columns.len()
            );
            return Err(SqlError::new(sqlstate::INVALID_COLUMN_REFERENCE, message));
        }
        for (column, name) in columns.iter_mut().zip(with.columns) {
            column.name = name;
        }
        let own = alias.map_or(with.name, |alias| folded(&alias.name));
        self.derived(select, columns, own, alias)
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
        let name = own.unwrap_or_else(|| relation.name.to_string());
        self.derived(select, columns, name, alias)
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
        let name = own.unwrap_or_else(|| relation.name.to_string());
        self.derived(select, columns, name, alias)
    }

    /// The query that stands for a relation.
    fn stored_query(
        &mut self,
        relation: &Relation,
        text: &str,
    ) -> Result<(Select, Vec<OutputColumn>)> {
        // OR REPLACE can make two views that read each other.
        if self.view_depth >= VIEW_DEPTH {
            return Err(crate::parse::too_deep());
        }
        let statements = crate::parse::statements(text)?;
        let [ast::Statement::Query(query)] = statements.as_slice() else {
            return Err(SqlError::internal("no query"));
        };
        self.view_depth += 1;
        // Nothing of the statement can be named in it.
        let outer = std::mem::take(&mut self.outer);
        let with = std::mem::take(&mut self.with);
        let lasting = !self.catalog.is_temporary(relation.namespace);
        let lasting = std::mem::replace(&mut self.lasting_only, lasting);
        let bound = self.query(query);
        self.lasting_only = lasting;
        self.outer = outer;
        self.with = with;
        self.view_depth -= 1;
        bound
    }

    pub(super) fn derived(
        &mut self,
        select: Select,
        columns: Vec<OutputColumn>,
        name: String,
        alias: Option<&ast::TableAlias>,
    ) -> Result<SourceKind> {
        let columns = columns.into_iter().map(|column| ScopeColumn {
            name: column.name,
            ty: column.ty,
            typmod: column.typmod,
            number: 0,
            hidden: false,
            others: Vec::new(),
        });
        let mut table = ScopeTable {
            name,
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
        let (_, function) = crate::bind::object_name(name)?;
        let mut calls = Vec::new();
        let (call, columns) = match SetFunction::find(&function) {
            // Several arrays are stepped through side by side.
            Some(SetFunction::Unnest) if args.len() > 1 => {
                let mut columns = Vec::with_capacity(args.len());
                for arg in args {
                    let one = std::slice::from_ref(arg);
                    let (call, column) = self.set_arguments(SetFunction::Unnest, one)?;
                    calls.push(call);
                    let named = column.into_iter();
                    columns.extend(named.map(|(name, ty)| (name.to_owned(), ty)));
                }
                (calls.pop(), columns)
            }
            Some(kind) => {
                let (call, columns) = self.set_arguments(kind, args)?;
                let named = columns.into_iter();
                let columns: Vec<(String, Type)> =
                    named.map(|(name, ty)| (name.to_owned(), ty)).collect();
                (Some(call), columns)
            }
            None => {
                let (call, ty) = self.one_row_of(name, args)?;
                (Some(call), vec![(function.clone(), ty)])
            }
        };
        let own = alias.map_or_else(|| function.clone(), |alias| folded(&alias.name));
        let single = columns.len() == 1;
        let mut columns: Vec<ScopeColumn> = columns
            .into_iter()
            .map(|(name, ty)| ScopeColumn {
                // The one column of a function is called as the table is.
                name: if single && name != "value" {
                    own.clone()
                } else {
                    name
                },
                ty,
                typmod: Typmod::NONE,
                number: 0,
                hidden: false,
                others: Vec::new(),
            })
            .collect();
        if ordinality {
            columns.push(ScopeColumn {
                name: "ordinality".to_owned(),
                ty: Type::Int8,
                typmod: Typmod::NONE,
                number: 0,
                hidden: false,
                others: Vec::new(),
            });
        }
        let mut table = ScopeTable {
            name: own,
            qualified_only: false,
            is_value: single && !ordinality,
            may_miss: false,
            relation: None,
            columns,
        };
        rename(&mut table, alias)?;
        self.scope.add(table)?;
        calls.extend(call);
        Ok(match plain_series(&calls, ordinality) {
            Some(series) => series,
            None => SourceKind::Function { calls, ordinality },
        })
    }
}

/// A series of integers whose bounds are of no table: whoever reads it steps through it by itself.
fn plain_series(calls: &[SetCall], ordinality: bool) -> Option<SourceKind> {
    let [call] = calls else {
        return None;
    };
    let ty = match call.function {
        SetFunction::Series(ty) if ty.is_integer() && !ordinality => ty,
        _ => return None,
    };
    let mut reads = false;
    for argument in &call.arguments {
        argument.walk(&mut |expr| reads |= matches!(expr, Expr::Column { .. }));
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
