//! Rows in expressions: `(a, b)` and `ROW(a, b)`, their comparisons, OVERLAPS.
//!
//! Two rows are compared by comparisons of what is in them, so that an index serves `(a, b) = (1, 2)` as it serves `a = 1 AND b = 2`.

use super::array::comparison_of;
use super::types::object_name;
use super::{Binder, Bound, Found, NamedTable, ScopeTable, TableName};
use crate::catalog::Kind;
use crate::error::{Result, SqlError};
use crate::expr::{Builtin, CatalogFunction, Comparison, Expr, RowTest, RowsFrom};
use crate::plan::SubqueryKind;
use crate::sqlstate;
use sqlparser::ast::{self, BinaryOperator};
use vellum_row::{Type, Typmod, Value};

/// What is in a row; `None` if the expression is none.
pub(crate) fn row_of(node: &ast::Expr) -> Option<Vec<&ast::Expr>> {
    match node {
        ast::Expr::Tuple(items) => Some(items.iter().collect()),
        ast::Expr::Nested(inner) => row_of(inner),
        ast::Expr::Function(function) => {
            let (schema, name) = object_name(&function.name).ok()?;
            let ast::FunctionArguments::List(list) = &function.args else {
                return None;
            };
            if schema.is_some() || name != "row" {
                return None;
            }
            let items = list.args.iter().map(|argument| match argument {
                ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(expr)) => Some(expr),
                _ => None,
            });
            items.collect()
        }
        _ => None,
    }
}

/// What an operator that rows are compared by is not.
fn no_comparison(operator: &BinaryOperator) -> SqlError {
    let message = format!("operator does not exist: record {operator} record");
    SqlError::new(sqlstate::UNDEFINED_FUNCTION, message)
}

/// Both sides, if both are rows.
pub(super) fn rows_of<'e>(
    left: &'e ast::Expr,
    right: &'e ast::Expr,
) -> Option<(Vec<&'e ast::Expr>, Vec<&'e ast::Expr>)> {
    Some((row_of(left)?, row_of(right)?))
}

/// IS [NOT] NULL: of a row all parts have to be, or not to be.
pub(super) fn null_test(operand: Expr, negated: bool) -> Expr {
    let test = |operand| Expr::IsNull {
        operand: Box::new(operand),
        negated,
    };
    match operand {
        Expr::Call {
            function: Builtin::Catalog(CatalogFunction::MakeRecord),
            arguments,
        } => Expr::And(arguments.into_iter().map(test).collect()),
        // A row of an outer join that may have none.
        Expr::Case {
            branches,
            otherwise,
        } if makes_row(&otherwise) && branches.iter().all(|(_, then)| is_null(then)) => {
            let known = |(when, _)| (when, Expr::Const(Value::Bool(!negated)));
            Expr::Case {
                branches: branches.into_iter().map(known).collect(),
                otherwise: Box::new(null_test(*otherwise, negated)),
            }
        }
        operand => test(operand),
    }
}

fn makes_row(expr: &Expr) -> bool {
    matches!(
        expr,
        Expr::Call {
            function: Builtin::Catalog(CatalogFunction::MakeRecord),
            ..
        }
    )
}

fn is_null(expr: &Expr) -> bool {
    matches!(expr, Expr::Const(Value::Null))
}

/// What is null where a condition is true.
pub(super) fn null_where(condition: Expr, otherwise: Expr) -> Expr {
    Expr::Case {
        branches: Box::new([(condition, Expr::Const(Value::Null))]),
        otherwise: Box::new(otherwise),
    }
}

/// What is null is not there.
pub(super) fn null(operand: Expr) -> Expr {
    Expr::IsNull {
        operand: Box::new(operand),
        negated: false,
    }
}

/// Takes a row apart: what it may be null for, and what is in it.
pub(super) fn taken_apart(row: &Expr) -> Option<(Option<&Expr>, &[Expr])> {
    match row {
        Expr::Call {
            function: Builtin::Catalog(CatalogFunction::MakeRecord),
            arguments,
        } => Some((None, arguments)),
        Expr::Case {
            branches,
            otherwise,
        } => match (&**branches, taken_apart(otherwise)?) {
            ([(when, then)], (None, arguments)) if is_null(then) => Some((Some(when), arguments)),
            _ => None,
        },
        _ => None,
    }
}

/// When an outer join has no row of a table: a column that has to be there is null; where there is none, all are.
fn missing(number: u16, table: &ScopeTable) -> Option<Expr> {
    if !table.may_miss || table.columns.is_empty() {
        return None;
    }
    let column = |position: usize| {
        let position = u16::try_from(position).ok()?;
        let table = number;
        Some(null(Expr::Column { table, position }))
    };
    let sure = match table.relation.as_ref().map(|relation| relation.table()) {
        None => None,
        Some(Some(table)) => table.schema.columns().position(|column| !column.nullable),
        // System relations begin with one.
        Some(None) => Some(0),
    };
    match sure {
        Some(position) => column(position),
        None => Some(Expr::And(
            (0..table.columns.len()).filter_map(column).collect(),
        )),
    }
}

/// The query that an expression is.
pub(crate) fn query_of(node: &ast::Expr) -> Option<&ast::Query> {
    match node {
        ast::Expr::Nested(inner) => query_of(inner),
        ast::Expr::Subquery(query) => Some(query),
        _ => None,
    }
}

/// Where modifiers of records begin that tell which row it is.
const RECORDS: i32 = 1000;

/// The rows that another one may be like, at most.
const RECORDS_COMPARED: usize = 8;

/// Parts of an expression from which on it is compared where it stands once.
const LONG: usize = 32;

impl Binder<'_> {
    /// The row of a table or of a join, by its name, of this query or of one around it: its one column, if it is a function's that returns values. Null where an
    /// outer join has no row of the table; a row of nulls only, of a table whose columns may all be null, is taken for none.
    ///
    /// # Errors
    /// As [`Binder::named_around`].
    pub(super) fn whole_row(&mut self, name: TableName<'_>) -> Result<Option<Bound>> {
        let Some((level, found)) = self.named_around(name)? else {
            return Ok(None);
        };
        let is_value = matches!(found, NamedTable::Table(_, table) if table.is_value);
        let missing = match found {
            NamedTable::Table(number, table) => missing(number, table),
            NamedTable::Joined(_) => None,
        };
        let all = found.columns();
        self.reads_around(level);
        for column in &all {
            self.reads_columns(level, &column.expr);
        }
        if let ([one], true) = (all.as_slice(), is_value) {
            let value = self.outwards(level, one.expr.clone(), one.ty, Typmod::NONE)?;
            return Ok(Some(value));
        }
        let mut columns = Vec::with_capacity(all.len());
        let mut items = Vec::with_capacity(all.len());
        for column in all {
            columns.push((column.name, column.ty, column.typmod));
            items.push(column.expr);
        }
        let expr = Expr::Call {
            function: Builtin::Catalog(CatalogFunction::MakeRecord),
            arguments: items.into(),
        };
        let expr = match missing {
            Some(missing) => null_where(missing, expr),
            None => expr,
        };
        let typmod = self.new_record(columns);
        self.outwards(level, expr, Type::Record, typmod).map(Some)
    }

    /// `tableoid`: which table a row is of, in this query or in the nearest one around it where it can be asked for.
    ///
    /// # Errors
    /// `42702` where several tables could be meant.
    pub(super) fn table_oid(&mut self, table: Option<TableName<'_>>) -> Result<Option<Bound>> {
        for level in 0..=self.outer.len() {
            let scope = match level.checked_sub(1) {
                None => &self.scope,
                Some(inner) => &self.outer[self.outer.len() - 1 - inner].scope,
            };
            let named = |number: u16, candidate: &ScopeTable| match table {
                Some(table) => table.is_of(NamedTable::Table(number, candidate)),
                None => !candidate.qualified_only,
            };
            let mut found = scope.named_tables().filter_map(|(number, candidate)| {
                let relation = candidate.relation.as_ref()?;
                named(number, candidate).then(|| (relation, missing(number, candidate)))
            });
            let Some((relation, missing)) = found.next() else {
                continue;
            };
            let several = found.next().is_some();
            drop(found);
            if several {
                let text = "column reference \"tableoid\" is ambiguous";
                return Err(SqlError::new(sqlstate::AMBIGUOUS_COLUMN, text));
            }
            let oid = Expr::Const(Value::Oid(relation.oid));
            let expr = match missing {
                None => oid,
                Some(missing) => {
                    let (ty, typmod) = (Type::Bool, Typmod::NONE);
                    let found = Found {
                        expr: missing,
                        ty,
                        typmod,
                    };
                    let level = u16::try_from(level).map_err(|_| crate::parse::too_deep())?;
                    null_where(found.expr(level), oid)
                }
            };
            let outside = self.outer.len() - level;
            let within = self.outer[outside..].iter_mut();
            within.for_each(|outer| outer.read = true);
            return Ok(Some(Bound::new(expr, Type::Oid)));
        }
        Ok(None)
    }

    /// `xmax`: zero, but in RETURNING of an INSERT, where a row that ON CONFLICT has changed has the transaction's number. Which transactions have locked a row, or
    /// failed to change it, nobody is told.
    ///
    /// # Errors
    /// As [`Binder::table_oid`].
    pub(super) fn xmax(&mut self, table: Option<TableName<'_>>) -> Result<Option<Bound>> {
        let Some(known) = self.table_oid(table)? else {
            return Ok(None);
        };
        let expr = match (&mut self.tells_xmax, self.outer.is_empty()) {
            (Some(asked), true) => {
                *asked = true;
                Expr::Slot(0)
            }
            (Some(_), false) => return Ok(None),
            (None, _) => Expr::Const(Value::Oid(0)),
        };
        let expr = match known.expr {
            // Where an outer join has no row there is none.
            Expr::Case { branches, .. } => Expr::Case {
                branches,
                otherwise: Box::new(expr),
            },
            _ => expr,
        };
        Ok(Some(Bound::new(expr, Type::Xid)))
    }

    /// `xmin` of a row of a system catalog: the newest number there is, so that who asks what has changed since another one is told everything. Of other
    /// relations there is none.
    ///
    /// # Errors
    /// As [`Binder::table_oid`].
    pub(super) fn xmin(&mut self, table: Option<TableName<'_>>) -> Result<Option<Bound>> {
        let Some(known) = self.table_oid(table)? else {
            return Ok(None);
        };
        let oid = match &known.expr {
            Expr::Case { otherwise, .. } => otherwise,
            expr => expr,
        };
        let relation = match oid {
            Expr::Const(Value::Oid(oid)) => self.catalog.relation(*oid),
            _ => None,
        };
        let is_catalog = relation.is_some_and(
            |own| matches!(&own.kind, Kind::System(definition) if !definition.is_view),
        );
        if !is_catalog {
            return Ok(None);
        }
        let newest = Expr::Call {
            function: Builtin::Catalog(CatalogFunction::NewestNumber),
            arguments: Box::default(),
        };
        let expr = match known.expr {
            Expr::Case { branches, .. } => Expr::Case {
                branches,
                otherwise: Box::new(newest),
            },
            _ => newest,
        };
        Ok(Some(Bound::new(expr, Type::Xid)))
    }

    /// What stands for the row of a table where rows are counted: something that is null only where an outer join has no row.
    pub(super) fn row_is_there(&self, name: TableName<'_>, row: &Bound) -> Option<Bound> {
        taken_apart(&row.expr)?;
        let mut tables = self.scope.named_tables();
        let (number, found) =
            tables.find(|(number, table)| name.is_of(NamedTable::Table(*number, table)))?;
        let there = Expr::Const(Value::Bool(true));
        let expr = match missing(number, found) {
            Some(missing) => null_where(missing, there),
            None => there,
        };
        Some(Bound::new(expr, Type::Bool))
    }

    /// The modifier of rows with these columns.
    pub(crate) fn new_record(&mut self, columns: Vec<(String, Type, Typmod)>) -> Typmod {
        let count = self.records.len();
        // A table that is named again and again has one row.
        let mut nearby = (count.saturating_sub(RECORDS_COMPARED)..count).rev();
        let known = nearby.find(|at| self.records[*at] == columns);
        let number = i32::try_from(known.unwrap_or(count)).ok();
        match number.and_then(|number| RECORDS.checked_add(number)) {
            Some(number) => {
                if known.is_none() {
                    self.records.push(columns);
                }
                Typmod(number)
            }
            None => Typmod::NONE,
        }
    }

    /// The columns of a row, if they are known.
    pub fn record_columns(&self, typmod: Typmod) -> Option<&[(String, Type, Typmod)]> {
        let number = usize::try_from(typmod.0.checked_sub(RECORDS)?).ok()?;
        self.records.get(number).map(Vec::as_slice)
    }

    /// A row as a value.
    pub(super) fn record(&mut self, items: &[ast::Expr]) -> Result<Bound> {
        let items: Vec<&ast::Expr> = items.iter().collect();
        self.record_of(&items)
    }

    pub(super) fn record_of(&mut self, items: &[&ast::Expr]) -> Result<Bound> {
        let mut arguments = Vec::with_capacity(items.len());
        let mut columns = Vec::with_capacity(items.len());
        for (number, bound) in (1..).zip(self.spelled_out(items)?) {
            let bound = self.undecided(bound);
            let (expr, ty, typmod) = self.settle(bound)?;
            arguments.push(expr);
            columns.push((format!("f{number}"), ty, typmod));
        }
        Ok(Bound {
            expr: Expr::Call {
                function: Builtin::Catalog(CatalogFunction::MakeRecord),
                arguments: arguments.into(),
            },
            ty: Some(Type::Record),
            typmod: self.new_record(columns),
            start: None,
        })
    }

    /// A comparison of two rows.
    ///
    /// # Errors
    /// `42601` if one has more than the other, `42883` for what rows are not compared by.
    pub(super) fn compared_rows(
        &mut self,
        operator: &BinaryOperator,
        left: &ast::Expr,
        right: &ast::Expr,
    ) -> Result<Bound> {
        let (left, right) = rows_of(left, right).ok_or_else(|| SqlError::internal("no rows"))?;
        let (left, right) = (self.spelled_out(&left)?, self.spelled_out(&right)?);
        let expr = self.compare_items(operator, &left, &right)?;
        Ok(Bound::new(expr, Type::Bool))
    }

    fn compare_items(
        &mut self,
        operator: &BinaryOperator,
        left: &[Bound],
        right: &[Bound],
    ) -> Result<Expr> {
        use BinaryOperator as B;
        if left.len() != right.len() {
            let text = "unequal number of entries in row expressions";
            return Err(SqlError::syntax(text));
        }
        let text = "ROW expressions can have at most 1664 entries";
        SqlError::check_columns(left.len(), 1665, text)?;
        let (Some((first, rest)), Some((other, others))) =
            (left.split_first(), right.split_first())
        else {
            let text = "cannot compare rows of zero length";
            return Err(SqlError::unsupported(text));
        };
        let mut pair = |operator: &B, left: &Bound, right: &Bound| {
            let (left, right) = (self.copied(left)?, self.copied(right)?);
            Ok(self.binary(operator, left, right)?.expr)
        };
        match operator {
            B::Eq | B::NotEq => {
                let pairs = left.iter().zip(right);
                let all = pairs
                    .map(|(left, right)| pair(operator, left, right))
                    .collect::<Result<Box<[_]>>>()?;
                Ok(if *operator == B::Eq {
                    Expr::And(all)
                } else {
                    Expr::Or(all)
                })
            }
            B::Lt | B::LtEq | B::Gt | B::GtEq => {
                if rest.is_empty() {
                    return pair(operator, first, other);
                }
                let mut all = left.iter().chain(right);
                let is_record = |bound: &Bound| bound.ty == Some(Type::Record);
                // What is long would stand in two places, and in four of a row around it.
                let long = all.clone().any(|bound| bound.expr.parts() > LONG)
                    && !all.clone().any(is_record);
                if long || all.any(|bound| bound.expr.is_volatile()) {
                    return self.compare_once(operator, left, right);
                }
                // The first pair that differs decides.
                let strict = match operator {
                    B::Lt | B::LtEq => B::Lt,
                    _ => B::Gt,
                };
                let decided = pair(&strict, first, other)?;
                let same = pair(&B::Eq, first, other)?;
                let further = self.compare_items(operator, rest, others)?;
                let both = Expr::And([same, further].into());
                Ok(Expr::Or([decided, both].into()))
            }
            other => Err(no_comparison(other)),
        }
    }

    /// A comparison of two rows that computes each part once.
    fn compare_once(
        &mut self,
        operator: &BinaryOperator,
        left: &[Bound],
        right: &[Bound],
    ) -> Result<Expr> {
        let comparison = comparison_of(operator).ok_or_else(|| no_comparison(operator))?;
        let (mut operands, mut others) = (Vec::new(), Vec::new());
        for (left, right) in left.iter().zip(right) {
            let sign = operator.to_string();
            let (left, right) = (self.copied(left)?, self.copied(right)?);
            let (left, right) = self.comparable(&sign, left, right)?;
            operands.push(left);
            others.push(right);
        }
        Ok(Expr::Rows {
            operands: operands.into(),
            from: RowsFrom::Row(others.into()),
            test: RowTest::One(comparison),
        })
    }

    /// A row, or a value, that is compared with the rows of a query.
    ///
    /// # Errors
    /// `42601` if these have more columns than it, or fewer; `42883` for what rows are not compared by.
    pub(super) fn row_with_query(
        &mut self,
        operands: &[&ast::Expr],
        operator: &BinaryOperator,
        query: &ast::Query,
        test: impl Fn(Comparison) -> RowTest,
    ) -> Result<Bound> {
        let comparison = comparison_of(operator).ok_or_else(|| no_comparison(operator))?;
        let test = test(comparison);
        let operands = self.spelled_out(operands)?;
        let single = matches!(test, RowTest::One(_));
        let (number, _) = self.subquery(query, SubqueryKind::Rows { single })?;
        let types = self
            .subqueries
            .last()
            .map(|inner| inner.select.types.clone());
        let types = types.unwrap_or_default();
        if types.len() != operands.len() {
            let few = if types.len() < operands.len() {
                "few"
            } else {
                "many"
            };
            let message = format!("subquery has too {few} columns");
            return Err(SqlError::syntax(message));
        }
        let mut compared = Vec::with_capacity(operands.len());
        for (at, (operand, ty)) in operands.into_iter().zip(types).enumerate() {
            let item = Bound::new(Expr::Slot(0), ty);
            let (operand, item) = self.comparable(&operator.to_string(), operand, item)?;
            // The rows are made what they are compared as.
            if let (Expr::Cast { ty, .. }, Some(inner)) = (item, self.subqueries.last_mut()) {
                inner.select.cast_output(at, ty);
            }
            compared.push(operand);
        }
        let expr = Expr::Rows {
            operands: compared.into(),
            from: RowsFrom::Subquery(number),
            test,
        };
        Ok(Bound::new(expr, Type::Bool))
    }

    /// IS [NOT] DISTINCT FROM of two rows; `None` if these are none.
    pub(super) fn distinct_rows(
        &mut self,
        left: &ast::Expr,
        right: &ast::Expr,
        same: bool,
    ) -> Result<Option<Expr>> {
        let Some((left, right)) = rows_of(left, right) else {
            return Ok(None);
        };
        let (left, right) = (self.spelled_out(&left)?, self.spelled_out(&right)?);
        if left.len() != right.len() {
            let text = "unequal number of entries in row expressions";
            return Err(SqlError::syntax(text));
        }
        let mut all = Vec::with_capacity(left.len());
        for (left, right) in left.into_iter().zip(right) {
            let (left, right) = self.comparable("=", left, right)?;
            all.push(Expr::Distinct {
                left: Box::new(left),
                right: Box::new(right),
                negated: same,
            });
        }
        Ok(Some(if same {
            Expr::And(all.into())
        } else {
            Expr::Or(all.into())
        }))
    }

    /// `row BETWEEN row AND row`; `None` if these are no rows.
    pub(super) fn row_between(
        &mut self,
        operand: &ast::Expr,
        low: &ast::Expr,
        high: &ast::Expr,
    ) -> Result<Option<Expr>> {
        let (Some((operand, low)), Some(high)) = (rows_of(operand, low), row_of(high)) else {
            return Ok(None);
        };
        let operand = self.spelled_out(&operand)?;
        let (low, high) = (self.spelled_out(&low)?, self.spelled_out(&high)?);
        let from = self.compare_items(&BinaryOperator::GtEq, &operand, &low)?;
        let to = self.compare_items(&BinaryOperator::LtEq, &operand, &high)?;
        Ok(Some(Expr::And([from, to].into())))
    }

    /// `row [NOT] IN (row, …)`.
    ///
    /// # Errors
    /// As [`Binder::compared_rows`].
    pub(super) fn row_in_list(
        &mut self,
        operand: Vec<&ast::Expr>,
        list: &[ast::Expr],
        negated: bool,
    ) -> Result<Bound> {
        let operand = self.spelled_out(&operand)?;
        let mut any = Vec::with_capacity(list.len());
        for item in list {
            let row = row_of(item).ok_or_else(|| {
                let message = "operator does not exist: record = unknown";
                SqlError::new(sqlstate::UNDEFINED_FUNCTION, message)
            })?;
            let row = self.spelled_out(&row)?;
            any.push(self.compare_items(&BinaryOperator::Eq, &operand, &row)?);
        }
        let any = Expr::Or(any.into());
        let expr = if negated {
            Expr::Not(Box::new(any))
        } else {
            any
        };
        Ok(Bound::new(expr, Type::Bool))
    }

    /// `(from, to) OVERLAPS (from, to)`.
    pub(super) fn overlaps(&mut self, left: &ast::Expr, right: &ast::Expr) -> Result<Bound> {
        let Some((left, right)) = rows_of(left, right) else {
            return Err(SqlError::syntax(
                "wrong number of parameters on left side of OVERLAPS expression",
            ));
        };
        for (side, items) in [("left", &left), ("right", &right)] {
            if items.len() != 2 {
                let message =
                    format!("wrong number of parameters on {side} side of OVERLAPS expression");
                return Err(SqlError::syntax(message));
            }
        }
        let mut arguments = self.spelled_out(&left)?;
        arguments.extend(self.spelled_out(&right)?);
        self.call("overlaps", arguments)
    }
}
