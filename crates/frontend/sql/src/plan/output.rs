//! What a query returns, and the keys that it is grouped and sorted by.

use super::OutputColumn;
use super::select::{Body, Select, SortBy, SortKey};
use crate::bind::{
    Binder, Bound, COMPARED_MAX, JoinedColumn, NamedTable, Star, folded, star_of, type_label,
};
use crate::catalog::{Index, IndexKey, Table};
use crate::error::{Result, SqlError};
use crate::expr::{Casting, Expr};
use crate::sqlstate;
use sqlparser::ast;
use vellum_row::{CastContext, Type, Typmod, Value};

/// Columns of what a query returns, at most: PostgreSQL's number. The protocol has room for 65535, a row's length for fewer.
const TARGETS_MAX: usize = 1664;

/// # Errors
/// `54011`.
pub(super) fn check_targets(count: usize) -> Result<()> {
    let text = "target lists can have at most 1664 entries";
    SqlError::check_columns(count, TARGETS_MAX, text)
}

/// A list behind SELECT.
pub(super) struct Listed {
    output: Vec<Expr>,
    columns: Vec<OutputColumn>,
    /// Those that are of no type yet, by their places.
    open: Vec<(usize, Bound)>,
}

impl Binder<'_> {
    /// The list behind RETURNING.
    ///
    /// # Errors
    /// As expressions.
    pub fn projection(
        &mut self,
        items: &[ast::SelectItem],
    ) -> Result<(Vec<Expr>, Vec<OutputColumn>)> {
        let listed = self.listed(items)?;
        self.settled(listed)
    }

    /// The list behind SELECT, while other clauses may say of which type its parameters are.
    ///
    /// # Errors
    /// As expressions.
    pub(super) fn listed(&mut self, items: &[ast::SelectItem]) -> Result<Listed> {
        let literals_as = std::mem::take(&mut self.literals_as);
        let (mut output, mut columns, mut open) = (Vec::new(), Vec::new(), Vec::new());
        for item in items {
            check_targets(output.len())?;
            let star = match item {
                ast::SelectItem::QualifiedWildcard(
                    ast::SelectItemQualifiedWildcardKind::ObjectName(name),
                    _,
                ) => Some(Star::Table(name)),
                // A name of its own says nothing, as in PostgreSQL.
                ast::SelectItem::UnnamedExpr(expr)
                | ast::SelectItem::ExprWithAlias { expr, .. } => star_of(expr),
                _ => None,
            };
            if let Some(star) = star {
                let all = self.starred(star)?;
                self.list_columns(all, &mut output, &mut columns);
                continue;
            }
            let (expr, name) = match item {
                ast::SelectItem::Wildcard(_) => {
                    if self.scope.tables.is_empty() {
                        let text = "SELECT * with no tables specified is not valid";
                        return Err(SqlError::syntax(text));
                    }
                    let all = self.all_columns();
                    self.list_columns(all, &mut output, &mut columns);
                    continue;
                }
                ast::SelectItem::UnnamedExpr(expr) => (expr, None),
                // The parser takes a literal for a name.
                ast::SelectItem::ExprWithAlias { alias, .. } if alias.quote_style == Some('\'') => {
                    let message = format!("syntax error at or near \"{alias}\"");
                    return Err(SqlError::syntax(message));
                }
                ast::SelectItem::ExprWithAlias { expr, alias } => (expr, Some(folded(alias))),
                other => return Err(SqlError::unsupported(format!("{other} in a list"))),
            };
            let mut bound = self.expr(expr)?;
            let collated = self.collations.last;
            if let (None, Some(ty)) = (bound.ty, literals_as.get(output.len())) {
                let literal = self.coerce(bound, *ty, Typmod::NONE, CastContext::Implicit)?;
                bound = Bound::new(literal, *ty);
            }
            if bound.ty.is_none() {
                open.push((output.len(), bound.clone()));
            }
            columns.push(OutputColumn {
                name: name.unwrap_or_else(|| name_of(expr)),
                ty: bound.ty.unwrap_or(Type::Text),
                typmod: bound.typmod,
                origin: self.origin(&bound.expr),
                domain: self.domain_of(&bound.expr),
                collation: collated.of_column(bound.ty.unwrap_or(Type::Text)),
                collated: collated.is_said(),
            });
            output.push(bound.expr);
        }
        check_targets(output.len())?;
        Ok(Listed {
            output,
            columns,
            open,
        })
    }

    /// A list whose columns are of a type: text where nothing has decided.
    ///
    /// # Errors
    /// `42P08`.
    pub(super) fn settled(&mut self, listed: Listed) -> Result<(Vec<Expr>, Vec<OutputColumn>)> {
        let Listed {
            mut output,
            columns,
            open,
        } = listed;
        for (at, bound) in open {
            let none = Typmod::NONE;
            output[at] = self.coerce(bound, Type::Text, none, CastContext::Implicit)?;
        }
        Ok((output, columns))
    }

    /// What `*` stands for.
    fn all_columns(&mut self) -> Vec<(String, Bound)> {
        let all = self.scope.with_columns(0);
        let all = all.filter(|named| !named.is_qualified_only());
        let all: Vec<JoinedColumn> = all.flat_map(NamedTable::columns).collect();
        let mut columns = Vec::with_capacity(all.len());
        for column in all {
            self.reads_columns(0, &column.expr);
            let value = Bound {
                typmod: column.typmod,
                ..Bound::new(column.expr, column.ty)
            };
            columns.push((column.name, value));
        }
        columns
    }

    /// Adds the columns that a star stands for.
    fn list_columns(
        &self,
        all: Vec<(String, Bound)>,
        output: &mut Vec<Expr>,
        columns: &mut Vec<OutputColumn>,
    ) {
        for (name, value) in all {
            let ty = value.ty.unwrap_or(Type::Text);
            columns.push(OutputColumn {
                name,
                ty,
                typmod: value.typmod,
                origin: self.origin(&value.expr),
                domain: self.domain_of(&value.expr),
                collation: self.collated_column(&value.expr).of_column(ty),
                collated: false,
            });
            output.push(value.expr);
        }
    }

    fn origin(&self, expr: &Expr) -> (u32, i16) {
        let Expr::Column { table, position } = expr else {
            return (0, 0);
        };
        let table = &self.scope.tables[usize::from(*table)];
        match &table.relation {
            Some(relation) => (relation.oid, table.columns[usize::from(*position)].number),
            None => (0, 0),
        }
    }

    /// A key of GROUP BY: a column's number, the name of an output column, or an expression. Of a row (then it says so), what it is told apart by.
    pub(super) fn group_keys(
        &mut self,
        node: &ast::Expr,
        output: &[Expr],
        columns: &[OutputColumn],
        clause: &str,
    ) -> Result<(Vec<(Expr, Type)>, bool)> {
        let of_output = |at: usize| of_output(at, output, columns);
        let bound = if let Some(at) = self.ordinal(node, output.len(), clause)? {
            of_output(at)
        } else {
            let bound = self.expr(node);
            let named = match (&bound, bare(node)) {
                (Err(_), ast::Expr::Identifier(ident)) => {
                    let name = folded(ident);
                    columns.iter().position(|column| column.name == name)
                }
                _ => None,
            };
            match named {
                Some(at) => of_output(at),
                None => bound?,
            }
        };
        if bound.ty == Some(Type::Record)
            && let Some(keys) = self.told_apart_by(&bound)
        {
            return Ok((keys, true));
        }
        let (expr, ty, _) = self.settle(bound)?;
        Ok((vec![(expr, ty)], false))
    }

    /// What DISTINCT tells rows apart by, if that is not what the list has: where a column is a row.
    ///
    /// # Errors
    /// `42883` for what cannot be told apart, `0A000` for what would be computed again for that, `54000` for too much.
    pub(super) fn rows_told_apart(
        &self,
        output: &[Expr],
        columns: &[OutputColumn],
    ) -> Result<Option<Vec<(Expr, Type)>>> {
        let mut keys = Vec::with_capacity(output.len());
        let mut rows = false;
        for (at, column) in columns.iter().enumerate() {
            SqlError::check_room(keys.len(), COMPARED_MAX, "keys of rows that are told apart")?;
            if column.ty == Type::Record
                && let Some(own) = self.told_apart(&of_output(at, output, columns))?
            {
                check_stable(&output[at], "DISTINCT")?;
                if !(rows && output[..at].contains(&output[at])) {
                    keys.extend(own);
                }
                rows = true;
                continue;
            }
            check_equality(column.ty)?;
            keys.push((output[at].clone(), column.ty));
        }
        Ok(rows.then_some(keys))
    }

    /// Puts what a row is sorted by in the place of keys that are rows; `typmods` tell what is in them.
    ///
    /// # Errors
    /// `42883` for a part without an order, and for a row of which it is not known what is in it; `0A000` for one that would be computed again, `54000` for too
    /// many keys.
    pub(super) fn sorted_rows(
        &self,
        sort: Vec<SortKey>,
        typmods: &[Typmod],
        output: &[Expr],
    ) -> Result<Vec<SortKey>> {
        if sort.iter().all(|key| key.ty != Type::Record) {
            return Ok(sort);
        }
        let mut keys = Vec::with_capacity(sort.len());
        let mut rows: Vec<SortBy> = Vec::new();
        for (key, typmod) in sort.into_iter().zip(typmods) {
            SqlError::check_room(keys.len(), COMPARED_MAX, "keys that rows are sorted by")?;
            if key.ty != Type::Record {
                keys.push(key);
                continue;
            }
            if rows.contains(&key.expr) {
                continue;
            }
            let expr = match &key.expr {
                SortBy::Output(at) => {
                    check_stable(&output[*at], "ORDER BY")?;
                    output[*at].clone()
                }
                SortBy::Expr(expr) => expr.clone(),
            };
            let row = Bound {
                typmod: *typmod,
                ..Bound::new(expr, key.ty)
            };
            match self.sorted_by_parts(&key, &row)? {
                Some(parts) => keys.extend(parts),
                None => check_order(key.ty)?,
            }
            rows.push(key.expr);
        }
        for key in &mut keys {
            if let SortBy::Expr(expr) = &key.expr
                && let Some(at) = output.iter().position(|known| known == expr)
            {
                key.expr = SortBy::Output(at);
            }
        }
        Ok(keys)
    }

    /// # Errors
    /// `42883`, with the place of what is to be sorted by.
    fn check_order(&self, ty: Type, node: &ast::Expr) -> Result<()> {
        check_order(ty).map_err(|error| error.at(self.place(node)))
    }

    /// What DISTINCT ON tells rows apart by.
    pub(super) fn distinct_on(
        &mut self,
        select: &ast::Select,
        output: &[Expr],
        columns: &[OutputColumn],
    ) -> Result<Vec<(Expr, Type)>> {
        let Some(ast::Distinct::On(nodes)) = &select.distinct else {
            return Ok(Vec::new());
        };
        let mut keys = Vec::with_capacity(nodes.len());
        for node in nodes {
            SqlError::check_room(keys.len(), COMPARED_MAX, "keys of DISTINCT ON")?;
            let (own, is_row) = self.group_keys(node, output, columns, "DISTINCT ON")?;
            for key in own {
                check_equality(key.1)?;
                if is_row {
                    check_stable(&key.0, "DISTINCT ON")?;
                }
                if !keys.contains(&key) {
                    keys.push(key);
                }
            }
        }
        Ok(keys)
    }

    /// The keys of ORDER BY: an output column by number or name, or an expression; and the modifiers of their types.
    pub(super) fn sort_keys(
        &mut self,
        order: &[ast::OrderByExpr],
        output: &[Expr],
        columns: &[OutputColumn],
    ) -> Result<(Vec<SortKey>, Vec<Typmod>)> {
        let mut keys = Vec::with_capacity(order.len());
        let mut typmods = Vec::with_capacity(order.len());
        for key in order {
            let (expr, ty, typmod) = match self.output_key(&key.expr, columns, Some(output))? {
                Some(at) => {
                    let ty = columns[at].ty;
                    // Others without an order of their own are sorted as the texts that they are.
                    let is_xid = ty.is_orderable() && !ty.is_sortable();
                    if matches!(ty, Type::Json | Type::Void) || is_xid {
                        self.check_order(ty, &key.expr)?;
                    }
                    (SortBy::Output(at), ty, columns[at].typmod)
                }
                None => {
                    let around = std::mem::replace(&mut self.in_order_by, true);
                    let bound = self.expr(&key.expr);
                    self.in_order_by = around;
                    let bound = bound?;
                    let is_row =
                        bound.ty == Some(Type::Record) && self.told_apart(&bound)?.is_some();
                    let (expr, ty, typmod) = self.settle(bound)?;
                    if !is_row {
                        self.check_order(ty, &key.expr)?;
                    }
                    let by = match output.iter().position(|known| *known == expr) {
                        Some(at) => SortBy::Output(at),
                        None => SortBy::Expr(expr),
                    };
                    (by, ty, typmod)
                }
            };
            keys.push(sort_key(expr, ty, key.options));
            typmods.push(typmod);
        }
        Ok((keys, typmods))
    }

    /// Keys that are expressions, and name no column of the output: those of a window, of DISTINCT ON.
    pub fn sort_expressions(&mut self, order: &[ast::OrderByExpr]) -> Result<Vec<SortKey>> {
        let mut keys = Vec::with_capacity(order.len());
        for key in order {
            let bound = self.expr(&key.expr)?;
            let (expr, ty, _) = self.settle(bound)?;
            self.check_order(ty, &key.expr)?;
            keys.push(sort_key(SortBy::Expr(expr), ty, key.options));
        }
        Ok(keys)
    }

    /// The same where only output columns can be named: behind VALUES and set operations.
    pub(super) fn order_of_output(
        &mut self,
        order: &[ast::OrderByExpr],
        columns: &[OutputColumn],
    ) -> Result<Vec<SortKey>> {
        let mut keys = Vec::with_capacity(order.len());
        for key in order {
            let Some(at) = self.output_key(&key.expr, columns, None)? else {
                return Err(SqlError::unsupported(
                    "ORDER BY an expression over a set operation",
                ));
            };
            if columns[at].ty == Type::Record {
                check_order(Type::Record)?;
            }
            keys.push(sort_key(SortBy::Output(at), columns[at].ty, key.options));
        }
        Ok(keys)
    }

    /// A column by number.
    fn ordinal(&self, node: &ast::Expr, count: usize, clause: &str) -> Result<Option<usize>> {
        let (sign, value) = match bare(node) {
            ast::Expr::Value(value) => ("", value),
            // A number with a sign is one, too.
            ast::Expr::UnaryOp {
                op: ast::UnaryOperator::Minus,
                expr,
            } => match bare(expr) {
                ast::Expr::Value(value) if matches!(value.value, ast::Value::Number(..)) => {
                    ("-", value)
                }
                _ => return Ok(None),
            },
            _ => return Ok(None),
        };
        let digits = match &value.value {
            ast::Value::Placeholder(_) => return Ok(None),
            ast::Value::Number(digits, _) if digits.parse::<i32>().is_ok() => digits,
            _ => {
                let error = SqlError::syntax(format!("non-integer constant in {clause}"));
                return Err(error.at(self.place(node)));
            }
        };
        let digits = format!("{sign}{digits}");
        match digits.parse::<usize>() {
            Ok(number) if (1..=count).contains(&number) => Ok(Some(number - 1)),
            _ => {
                let message = format!("{clause} position {digits} is not in select list");
                let error = SqlError::new(sqlstate::INVALID_COLUMN_REFERENCE, message);
                Err(error.at(self.place(node)))
            }
        }
    }

    /// The column that a key names. Several of the name have to be the same expression: without `output` no two are.
    fn output_key(
        &self,
        node: &ast::Expr,
        columns: &[OutputColumn],
        output: Option<&[Expr]>,
    ) -> Result<Option<usize>> {
        if let Some(at) = self.ordinal(node, columns.len(), "ORDER BY")? {
            return Ok(Some(at));
        }
        let ast::Expr::Identifier(ident) = bare(node) else {
            return Ok(None);
        };
        let name = folded(ident);
        let mut found = (0..columns.len()).filter(|at| columns[*at].name == name);
        let first = found.next();
        let same = |at: usize| {
            let both = output.zip(first);
            both.is_some_and(|(output, first)| output[first] == output[at])
        };
        if !found.all(same) {
            let message = format!("ORDER BY \"{name}\" is ambiguous");
            let error = SqlError::new(sqlstate::AMBIGUOUS_COLUMN, message);
            return Err(error.at(self.place(node)));
        }
        Ok(first)
    }
}

/// A column of the output.
fn of_output(at: usize, output: &[Expr], columns: &[OutputColumn]) -> Bound {
    Bound {
        typmod: columns[at].typmod,
        ..Bound::new(output[at].clone(), columns[at].ty)
    }
}

/// What stands in parentheses, which say nothing.
fn bare(node: &ast::Expr) -> &ast::Expr {
    match node {
        ast::Expr::Nested(inner) => bare(inner),
        other => other,
    }
}

fn sort_key(expr: SortBy, ty: Type, options: ast::OrderByOptions) -> SortKey {
    let descending = options.asc == Some(false);
    SortKey {
        expr,
        ty,
        descending,
        // NULLs are larger than anything.
        nulls_first: options.nulls_first.unwrap_or(descending),
    }
}

/// Values of the type can be sorted.
///
/// # Errors
/// `42883`.
fn check_order(ty: Type) -> Result<()> {
    if ty.is_sortable() {
        return Ok(());
    }
    let message = format!(
        "could not identify an ordering operator for type {}",
        ty.sql_name()
    );
    let hint = "Use an explicit ordering operator or modify the query.";
    Err(SqlError::new(sqlstate::UNDEFINED_FUNCTION, message).with_hint(hint))
}

/// A row of the list that is told apart, or sorted, by its parts, is computed beside them.
///
/// # Errors
/// `0A000` if these may be others then.
fn check_stable(row: &Expr, clause: &str) -> Result<()> {
    match row.is_volatile() {
        true => {
            let what = format!("{clause} of a row with volatile functions");
            Err(SqlError::unsupported(what))
        }
        false => Ok(()),
    }
}

/// Values of the type can be told apart.
///
/// # Errors
/// `42883`.
pub(crate) fn check_equality(ty: Type) -> Result<()> {
    if ty.is_orderable() {
        return Ok(());
    }
    let message = format!(
        "could not identify an equality operator for type {}",
        ty.sql_name()
    );
    Err(SqlError::new(sqlstate::UNDEFINED_FUNCTION, message))
}

/// The name of a column that has none.
pub(crate) fn name_of(node: &ast::Expr) -> String {
    figured(node).map_or_else(|| "?column?".to_owned(), |(name, _)| name)
}

/// What the columns of an index are called, those that it includes too: as the table's are, or as an expression names its column; each another name.
pub(crate) fn index_column_names(table: &Table, index: &Index) -> Vec<String> {
    let column = |id| table.schema.column(table.position(id)).name.to_string();
    let keys = index.columns.iter().map(|part| match &part.key {
        IndexKey::Column(id) => column(*id),
        IndexKey::Expression(sql) => {
            let node = crate::parse::expression(sql);
            let named = node.ok().and_then(|node| figured(&node));
            named.map_or_else(|| "expr".to_owned(), |(name, _)| name)
        }
    });
    let included = index.include.iter().map(|id| column(*id));
    apart(keys.chain(included))
}

/// Names with a number behind those that came before.
pub(crate) fn apart(all: impl Iterator<Item = String>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for base in all {
        let mut name = base.clone();
        let mut number = 0;
        while names.contains(&name) {
            number += 1;
            name = format!("{base}{number}");
        }
        names.push(name);
    }
    names
}

/// How well an expression names its column.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Strength {
    /// By a type, or that it is a CASE: a cast around it gives another name.
    Weak,
    Strong,
}

/// The name that an expression gives its column. Looks at each expression once: they may be nested deep.
fn figured(node: &ast::Expr) -> Option<(String, Strength)> {
    let weak = |name: String| Some((name, Strength::Weak));
    let strong = |name: String| Some((name, Strength::Strong));
    match node {
        ast::Expr::Identifier(ident) => strong(folded(ident)),
        ast::Expr::CompoundIdentifier(parts) => strong(parts.last().map(folded)?),
        ast::Expr::QualifiedWildcard(table, _) => {
            let last = table.0.last().and_then(ast::ObjectNamePart::as_ident);
            strong(last.map(folded)?)
        }
        ast::Expr::Function(function) => strong(crate::bind::called_name(&function.name).ok()?),
        ast::Expr::Cast {
            expr, data_type, ..
        } => match figured(expr) {
            Some((name, Strength::Strong)) => strong(name),
            _ => weak(type_label(data_type)),
        },
        ast::Expr::Nested(inner) => figured(inner),
        ast::Expr::Case { else_result, .. } => match else_result.as_deref().and_then(figured) {
            Some((name, Strength::Strong)) => strong(name),
            _ => weak("case".to_owned()),
        },
        ast::Expr::Exists { negated: false, .. } => strong("exists".to_owned()),
        ast::Expr::Subquery(query) => match query.body.as_ref() {
            ast::SetExpr::Select(select) => match select.projection.first() {
                Some(ast::SelectItem::UnnamedExpr(expr)) => figured(expr),
                Some(ast::SelectItem::ExprWithAlias { alias, .. }) => strong(folded(alias)),
                _ => None,
            },
            _ => None,
        },
        ast::Expr::Substring { shorthand, .. } => {
            let name = if *shorthand { "substr" } else { "substring" };
            strong(name.to_owned())
        }
        ast::Expr::Position { .. } => strong("position".to_owned()),
        ast::Expr::Ceil { .. } => strong("ceil".to_owned()),
        ast::Expr::Floor { .. } => strong("floor".to_owned()),
        ast::Expr::Trim { trim_where, .. } => strong(
            match trim_where {
                Some(ast::TrimWhereField::Leading) => "ltrim",
                Some(ast::TrimWhereField::Trailing) => "rtrim",
                _ => "btrim",
            }
            .to_owned(),
        ),
        ast::Expr::Overlay { .. } => strong("overlay".to_owned()),
        ast::Expr::Extract { .. } => strong("extract".to_owned()),
        ast::Expr::AtTimeZone { .. } => strong("timezone".to_owned()),
        ast::Expr::Array(_) => strong("array".to_owned()),
        ast::Expr::Tuple(_) => strong("row".to_owned()),
        ast::Expr::TypedString(typed) => weak(type_label(&typed.data_type)),
        ast::Expr::Interval(_) => weak("interval".to_owned()),
        ast::Expr::BinaryOp {
            op: ast::BinaryOperator::Overlaps,
            ..
        } => strong("overlaps".to_owned()),
        ast::Expr::Collate { expr, .. } => figured(expr),
        ast::Expr::CompoundFieldAccess { root, access_chain } => {
            let mut names = access_chain.iter().rev();
            let field = names.find_map(|access| match access {
                ast::AccessExpr::Dot(ast::Expr::Identifier(name)) => Some(folded(name)),
                _ => None,
            });
            field.map_or_else(|| figured(root), strong)
        }
        _ => None,
    }
}

impl Select {
    /// Makes column `at` of the rows one of `ty`.
    pub(crate) fn cast_output(&mut self, at: usize, ty: Type) {
        self.types[at] = ty;
        let cast = |expr: &mut Expr| {
            let operand = Box::new(std::mem::replace(expr, Expr::Const(Value::Null)));
            *expr = Expr::Cast {
                operand,
                ty,
                typmod: Typmod::NONE,
                casting: Casting::Implicit,
            };
        };
        match &mut self.body {
            Body::From { output, .. } => cast(&mut output[at]),
            Body::Values(rows) => rows.iter_mut().for_each(|row| cast(&mut row[at])),
            Body::Set { left, right, .. } => {
                left.cast_output(at, ty);
                right.cast_output(at, ty);
            }
        }
    }
}
