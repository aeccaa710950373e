//! Expressions.

use super::aggregate::AggregateKind;
use super::array::array_subquery;
use super::call::column_of_row;
use super::clauses::check_plain;
use super::collation::Collated;
use super::extension::kept_function_of;
use super::like::all_of;
use super::near::{decides, tells_more};
use super::numeral::{negated, numeral};
use super::operator::{no_unary_operator, several_operators};
use super::place::start_of;
use super::row::{null_test, query_of, row_of, rows_of};
use super::star::{no_expansion, star_of};
use super::types::{folded, folded_before, interval_modifier, object_name};
use super::window::needs_window;
use super::{Binder, Bound, TableName};
use crate::error::{Result, SqlError};
use crate::expr::{Expr, Listed, Quantifier, RowTest};
use crate::plan::{SetFunction, SubqueryKind};
use crate::sqlstate;
use sqlparser::ast::{self, BinaryOperator, UnaryOperator};
use vellum_row::{CastContext, Type, Typmod, Value};

impl Binder<'_> {
    /// Binds an expression.
    ///
    /// # Errors
    /// For names, types and functions that are not there; `0A000` for syntax that nothing here evaluates.
    pub fn expr(&mut self, node: &ast::Expr) -> Result<Bound> {
        self.step()?;
        let again = self.looked_for(node)?;
        if let Some(known) = self.known_again(again) {
            self.collations.last = Collated::Own;
            return Ok(known);
        }
        let around = std::mem::take(&mut self.collations.within);
        let done = self.expr_inner(node);
        let done = done.and_then(|bound| {
            self.note_collation(node, &bound)?;
            Ok(bound)
        });
        self.collations.within = around.and(self.collations.last);
        match done {
            Ok(bound) => {
                self.keep_again(again, &bound);
                Ok(bound.from(start_of(node)))
            }
            Err(error) if error.is_placed() => Err(error),
            Err(error) => Err(error.at(self.place_of_error(node))),
        }
    }

    /// A condition.
    ///
    /// # Errors
    /// `42804` if it is not boolean.
    pub fn condition(&mut self, node: &ast::Expr, clause: &str) -> Result<Expr> {
        let bound = self.expr(node).map_err(|error| match clause {
            "WHERE" | "HAVING" | "FILTER" => error.not_allowed_in(clause),
            "JOIN/ON" => error.not_allowed_in("JOIN conditions"),
            "CHECK" => error.not_allowed_in("check constraints"),
            "COPY FROM WHERE" => error.not_allowed_in("COPY FROM WHERE conditions"),
            "MERGE WHEN" => error.not_allowed_in("MERGE WHEN conditions"),
            // Of the clause that it is in.
            _ => error,
        })?;
        match bound.ty {
            None | Some(Type::Bool) => {
                self.coerce(bound, Type::Bool, Typmod::NONE, CastContext::Implicit)
            }
            Some(other) => {
                let clause = clause.strip_prefix("COPY FROM ").unwrap_or(clause);
                let message = format!(
                    "argument of {clause} must be type boolean, not type {}",
                    self.settings.name_of(other)
                );
                Err(SqlError::new(sqlstate::DATATYPE_MISMATCH, message).at(self.place(node)))
            }
        }
    }

    fn boolean(&mut self, node: &ast::Expr, what: &str) -> Result<Expr> {
        self.condition(node, what)
    }

    fn expr_inner(&mut self, node: &ast::Expr) -> Result<Bound> {
        use ast::Expr as E;
        let bool_of = |expr| Ok(Bound::new(expr, Type::Bool));
        match node {
            E::Identifier(ident) => self.identifier(ident),
            E::CompoundIdentifier(parts) => match parts.as_slice() {
                [record, field] if !self.variables.is_empty() => self.field(record, field),
                [table, column] => {
                    let table = folded(table);
                    self.column(Some(TableName::Plain(&table)), &folded(column))
                }
                parts => self.qualified_column(parts),
            },
            E::Nested(inner) => self.expr(inner),
            E::Value(value) => self.value(&value.value),
            E::TypedString(typed) => {
                let (ty, typmod) = self.type_of(&typed.data_type)?;
                let literal = self.value(&typed.value.value)?;
                let cast = self.cast(literal, ty, typmod)?;
                self.cast_to_domain(cast, self.domain_named(&typed.data_type)?)
            }
            E::Interval(interval) => self.interval(interval),
            E::Cast {
                kind: ast::CastKind::Cast | ast::CastKind::DoubleColon,
                expr,
                data_type,
                ..
            } => {
                let (ty, typmod) = self.type_of(data_type)?;
                let mut operand = match (&**expr, ty) {
                    (E::Array(array), Type::Array(_)) => self.array_as(array, ty.element())?,
                    (E::Array(array), Type::OidVector | Type::Int2Vector) => {
                        self.vector(array, ty)?
                    }
                    _ => self.expr(expr)?,
                };
                let start = operand.start;
                if operand.ty.is_some() {
                    // What is wrong is the cast, not what is cast.
                    operand.start = None;
                }
                let domain = self.domain_named(data_type)?;
                let same = domain.is_some() && self.domain_of(&operand.expr) == domain;
                if same {
                    return Ok(operand.from(start));
                }
                let cast = self.cast(operand, ty, typmod)?;
                Ok(self.cast_to_domain(cast, domain)?.from(start))
            }
            E::BinaryOp { left, op, right } => match op {
                BinaryOperator::And | BinaryOperator::Or => self.logical(op, node),
                BinaryOperator::Overlaps => self.overlaps(left, right),
                _ if rows_of(left, right).is_some() => self.compared_rows(op, left, right),
                _ => {
                    if let (Some(items), Some(query)) = (row_of(left), query_of(right)) {
                        return self.row_with_query(&items, op, query, RowTest::One);
                    }
                    let (mut left, mut right) = (self.expr(left)?, self.expr(right)?);
                    let start = left.start;
                    for side in [&mut left, &mut right] {
                        // What is wrong with the types of both is the operator.
                        side.start = side.start.filter(|_| side.ty.is_none());
                    }
                    Ok(self.binary(op, left, right)?.from(start))
                }
            },
            E::UnaryOp { op, expr } => self.unary(*op, expr),
            E::IsNull(operand) => self.is_null(operand, false),
            E::IsNotNull(operand) => self.is_null(operand, true),
            E::IsTrue(operand) => self.is(operand, true, false),
            E::IsNotTrue(operand) => self.is(operand, true, true),
            E::IsFalse(operand) => self.is(operand, false, false),
            E::IsNotFalse(operand) => self.is(operand, false, true),
            E::IsUnknown(operand) => self.is_unknown(operand, false),
            E::IsNotUnknown(operand) => self.is_unknown(operand, true),
            E::IsDistinctFrom(left, right) => self.distinct(left, right, false),
            E::IsNotDistinctFrom(left, right) => self.distinct(left, right, true),
            E::Between {
                expr,
                negated,
                low,
                high,
            } => {
                if let Some(both) = self.row_between(expr, low, high)? {
                    return bool_of(if *negated {
                        Expr::Not(Box::new(both))
                    } else {
                        both
                    });
                }
                // The first comparison decides of parameters before the other bound is met, which may compute with them.
                let operand = self.expr(expr)?;
                let collated = self.collations.last;
                let low = self.expr(low)?;
                self.check_compared(collated)?;
                let first = self.copied(&operand)?;
                let from = self.binary(&BinaryOperator::GtEq, first, low)?;
                let (operand, high) = (self.again(&operand), self.expr(high)?);
                self.check_compared(collated)?;
                let to = self.binary(&BinaryOperator::LtEq, operand, high)?;
                let both = Expr::And([from.expr, to.expr].into());
                bool_of(if *negated {
                    Expr::Not(Box::new(both))
                } else {
                    both
                })
            }
            E::InList {
                expr,
                list,
                negated,
            } => match row_of(expr) {
                Some(items) => self.row_in_list(items, list, *negated),
                None => self.in_list(expr, list, *negated),
            },
            E::InSubquery {
                expr,
                subquery,
                negated,
            } => {
                if let Some(items) = row_of(expr) {
                    let equal = &BinaryOperator::Eq;
                    let found = self.row_with_query(&items, equal, subquery, RowTest::Any)?;
                    return bool_of(if *negated {
                        Expr::Not(Box::new(found.expr))
                    } else {
                        found.expr
                    });
                }
                let operand = self.expr(expr)?;
                let (number, ty) = self.subquery(subquery, SubqueryKind::List)?;
                let (ty, _) = ty.ok_or_else(|| SqlError::internal("a list without type"))?;
                let (operand, item) =
                    self.comparable("=", operand, Bound::new(Expr::Slot(0), ty))?;
                // The list's values are made what they are compared as.
                if let (Expr::Cast { ty, .. }, Some(list)) = (item, self.subqueries.last_mut()) {
                    list.select.cast_output(0, ty);
                }
                bool_of(Expr::InSubquery {
                    operand: Box::new(operand),
                    subquery: number,
                    negated: *negated,
                })
            }
            E::Exists { subquery, negated } => {
                let (number, _) = self.subquery(subquery, SubqueryKind::Exists)?;
                let exists = Expr::Subquery(number);
                bool_of(if *negated {
                    Expr::Not(Box::new(exists))
                } else {
                    exists
                })
            }
            E::Subquery(query) => {
                let (number, column) = self.subquery(query, SubqueryKind::Scalar)?;
                Ok(Bound {
                    expr: Expr::Subquery(number),
                    ty: column.map(|(ty, _)| ty),
                    typmod: column.map_or(Typmod::NONE, |(_, typmod)| typmod),
                    start: None,
                })
            }
            E::Like { any, .. } | E::ILike { any, .. } if *any || all_of(node).is_some() => {
                self.like_each(node)
            }
            E::Like {
                negated,
                any: false,
                expr,
                pattern,
                escape_char,
            } => self.like(expr, pattern, escape_char.as_ref(), false, *negated),
            E::ILike {
                negated,
                any: false,
                expr,
                pattern,
                escape_char,
            } => self.like(expr, pattern, escape_char.as_ref(), true, *negated),
            E::Case {
                operand,
                conditions,
                else_result,
                ..
            } => self.case(operand.as_deref(), conditions, else_result.as_deref()),
            E::Function(function) => match array_subquery(function) {
                Some(query) => self.array_of(query),
                None => self.function(function),
            },
            E::Array(array) => self.array(array),
            E::AnyOp {
                left,
                compare_op,
                right,
                ..
            } => self.quantified(left, compare_op, right, Quantifier::Any),
            E::AllOp {
                left,
                compare_op,
                right,
            } => self.quantified(left, compare_op, right, Quantifier::All),
            E::QualifiedWildcard(table, _) => self.star_row(table),
            E::CompoundFieldAccess { .. } if star_of(node).is_some() => Err(no_expansion()),
            E::CompoundFieldAccess { root, access_chain } => self.subscript(root, access_chain),
            // Which one it is of is noted where it is bound.
            E::Collate { expr, .. } => self.expr(expr),
            E::Substring {
                expr,
                substring_from,
                substring_for,
                shorthand,
                ..
            } => {
                let mut arguments = vec![self.expr(expr)?];
                let one = || Bound::new(Expr::Const(Value::Int4(1)), Type::Int4);
                arguments.push(match substring_from {
                    Some(from) => self.expr(from)?,
                    None => one(),
                });
                if let Some(length) = substring_for {
                    arguments.push(self.expr(length)?);
                }
                let name = if *shorthand { "substr" } else { "substring" };
                self.call(name, arguments)
            }
            E::Extract { field, expr, .. } => {
                let field = match field {
                    ast::DateTimeField::Custom(name) => folded(name),
                    field => field.to_string().to_lowercase(),
                };
                // A literal, as one that is written.
                let field = Bound {
                    ty: None,
                    ..Bound::new(Expr::Const(Value::text(field)), Type::Text)
                };
                let operand = self.expr(expr)?;
                self.call("extract", vec![field, operand])
            }
            E::Trim {
                expr,
                trim_where,
                trim_what,
                trim_characters,
            } => {
                let name = match trim_where {
                    None | Some(ast::TrimWhereField::Both) => "btrim",
                    Some(ast::TrimWhereField::Leading) => "ltrim",
                    Some(ast::TrimWhereField::Trailing) => "rtrim",
                };
                let mut arguments = vec![self.expr(expr)?];
                if let Some(what) = trim_what {
                    arguments.push(self.expr(what)?);
                }
                for what in trim_characters.iter().flatten() {
                    arguments.push(self.expr(what)?);
                }
                self.call(name, arguments)
            }
            E::Ceil { expr, .. } => {
                let arguments = vec![self.expr(expr)?];
                self.call("ceil", arguments)
            }
            E::Floor { expr, .. } => {
                let arguments = vec![self.expr(expr)?];
                self.call("floor", arguments)
            }
            E::Position { expr, r#in } => {
                let arguments = vec![self.expr(r#in)?, self.expr(expr)?];
                self.call("position", arguments)
            }
            E::Overlay {
                expr,
                overlay_what,
                overlay_from,
                overlay_for,
            } => {
                let mut arguments = vec![self.expr(expr)?, self.expr(overlay_what)?];
                arguments.push(self.expr(overlay_from)?);
                if let Some(count) = overlay_for {
                    arguments.push(self.expr(count)?);
                }
                self.call("overlay", arguments)
            }
            E::AtTimeZone {
                timestamp,
                time_zone,
            } => {
                let arguments = vec![self.expr(time_zone)?, self.expr(timestamp)?];
                self.call("timezone", arguments)
            }
            E::SimilarTo {
                negated,
                expr,
                pattern,
                escape_char,
            } => {
                let mut operand = self.expr(expr)?;
                if operand.ty == Some(Type::Char) {
                    // Its blanks count, as they do for `~`.
                    operand.ty = Some(Type::Text);
                }
                let mut arguments = vec![operand, self.expr(pattern)?];
                if let Some(escape) = escape_char {
                    arguments.push(self.value(&escape.value)?);
                }
                let bound = self.scalar_operator("%similar", arguments)?;
                bool_of(if *negated {
                    Expr::Not(Box::new(bound.expr))
                } else {
                    bound.expr
                })
            }
            E::Tuple(items) => self.record(items),
            other => Err(SqlError::unsupported(format!("the expression {other}"))),
        }
    }

    /// A column of this query, or of the nearest one around it that has it.
    pub(super) fn column(&mut self, table: Option<TableName<'_>>, name: &str) -> Result<Bound> {
        let mut found = self.scope.column(table, name);
        let mut level = 0;
        while let Err(error) = &found
            && !decides(error)
            && let Some(at) = self.outer.len().checked_sub(level + 1)
        {
            let further = self.outer[at].scope.column(table, name);
            level += 1;
            match further {
                Ok(further) => {
                    found = Ok(further);
                    let between = self.outer[at..].iter_mut();
                    between.for_each(|outer| outer.read = true);
                }
                // What the query itself lacks is told.
                Err(further) if tells_more(&further, error) => found = Err(further),
                Err(_) => {}
            }
        }
        let found = match found {
            Ok(found) => found,
            Err(error) if error.sqlstate() == sqlstate::AMBIGUOUS_ALIAS => return Err(error),
            Err(error)
                if !name.is_ascii() || table.is_some_and(|table| !table.name().is_ascii()) =>
            {
                let of_table = match table {
                    Some(TableName::Plain(name)) => folded_before(name),
                    _ => None,
                };
                let of_column = folded_before(name);
                if of_table.is_none() && of_column.is_none() {
                    return Err(error);
                }
                let table = of_table.as_deref().map(TableName::Plain).or(table);
                let before = self.column(table, of_column.as_deref().unwrap_or(name));
                return before.map_err(|_| error);
            }
            Err(error) if name == "tableoid" => return self.table_oid(table)?.ok_or(error),
            Err(error) if name == "xmax" => return self.xmax(table)?.ok_or(error),
            Err(error) if name == "xmin" => return self.xmin(table)?.ok_or(error),
            Err(error) => {
                return Err(match table {
                    Some(table) => self.with_nearest(error, Some(table.name()), name),
                    None => error,
                });
            }
        };
        self.note(level, &found);
        // Of a view that is written: its queries are the statement's.
        if level > 0 && found.expr.asks_a_query() {
            let text = "a column that a view computes by a query, read by a query";
            return Err(SqlError::unsupported(text));
        }
        Ok(Bound {
            ty: Some(found.ty),
            typmod: found.typmod,
            expr: found.expr(level as u16),
            start: None,
        })
    }

    /// What a name is that is no variable.
    pub(super) fn column_or_word(
        &mut self,
        found: Result<Bound>,
        ident: &ast::Ident,
        name: String,
    ) -> Result<Bound> {
        match found {
            Ok(found) => Ok(found),
            // It is a column, if of nobody knows which table.
            Err(error) if error.sqlstate() == sqlstate::AMBIGUOUS_COLUMN => Err(error),
            // Functions that are called without parentheses.
            Err(error) if ident.quote_style.is_none() => match self.word(&name, &[])? {
                Some(bound) => Ok(bound),
                None => self.row_named(error, &name),
            },
            Err(error) => self.row_named(error, &name),
        }
    }

    /// The row of a table by a name that is no column's (`error`): one word, and as many expressions as there are columns.
    fn row_named(&mut self, error: SqlError, name: &str) -> Result<Bound> {
        let Some(row) = self.whole_row(TableName::Plain(name))? else {
            return Err(self.with_nearest(error, None, name));
        };
        self.copying(&row.expr)?;
        Ok(row)
    }

    fn value(&mut self, value: &ast::Value) -> Result<Bound> {
        use ast::Value as V;
        let unknown = |value: Value| Bound {
            expr: Expr::Const(value),
            ty: None,
            typmod: Typmod::NONE,
            start: None,
        };
        Ok(match value {
            V::Null => unknown(Value::Null),
            V::Boolean(value) => Bound::new(Expr::Const(Value::Bool(*value)), Type::Bool),
            V::Number(digits, _) => numeral(digits)?,
            V::SingleQuotedString(text)
            | V::EscapedStringLiteral(text)
            | V::UnicodeStringLiteral(text)
            | V::NationalStringLiteral(text) => unknown(Value::text(text.as_str())),
            V::DollarQuotedString(text) => unknown(Value::text(text.value.as_str())),
            V::Placeholder(text) => self.param(text)?,
            other => return Err(SqlError::unsupported(format!("the literal {other}"))),
        })
    }

    pub(super) fn cast(&mut self, operand: Bound, ty: Type, typmod: Typmod) -> Result<Bound> {
        // A parameter that is cast is of that type.
        let expr = self.coerce(operand, ty, typmod, CastContext::Explicit)?;
        Ok(Bound {
            expr,
            ty: Some(ty),
            typmod,
            start: None,
        })
    }

    fn interval(&mut self, interval: &ast::Interval) -> Result<Bound> {
        let literal = self.expr(&interval.value)?;
        let typmod = interval_modifier(interval)?;
        let literal = match (&literal.expr, &interval.leading_field) {
            (Expr::Const(Value::Text(text)), Some(field)) if typmod.is_none() => Bound {
                expr: Expr::Const(Value::text(format!("{text} {field}"))),
                ty: None,
                typmod: Typmod::NONE,
                start: None,
            },
            _ => literal,
        };
        self.cast(literal, Type::Interval, typmod)
    }

    /// A chain of ANDs or ORs as one list: the parser's left-deep trees may be thousands deep.
    fn logical(&mut self, op: &BinaryOperator, node: &ast::Expr) -> Result<Bound> {
        let word = if *op == BinaryOperator::And {
            "AND"
        } else {
            "OR"
        };
        let mut nodes = Vec::new();
        let mut rest = node;
        while let ast::Expr::BinaryOp {
            left,
            op: other,
            right,
        } = rest
            && other == op
        {
            nodes.push(&**right);
            rest = left;
        }
        nodes.push(rest);
        let nodes = nodes.into_iter().rev();
        let operands = nodes.map(|node| self.boolean(node, word));
        let operands = operands.collect::<Result<Box<[_]>>>()?;
        let expr = if *op == BinaryOperator::And {
            Expr::And(operands)
        } else {
            Expr::Or(operands)
        };
        Ok(Bound::new(expr, Type::Bool))
    }

    fn unary(&mut self, op: UnaryOperator, operand: &ast::Expr) -> Result<Bound> {
        match op {
            UnaryOperator::Not => {
                let operand = self.boolean(operand, "NOT")?;
                Ok(Bound::new(Expr::Not(Box::new(operand)), Type::Bool))
            }
            UnaryOperator::Plus => {
                let operand = self.expr(operand)?;
                self.plus(operand)
            }
            UnaryOperator::Minus => {
                // The smallest numbers are there as negative ones only.
                if let Some(digits) = negated(operand) {
                    return numeral(&digits);
                }
                let bound = self.expr(operand)?;
                let Some(ty) = bound.ty else {
                    return Err(several_operators("- unknown"));
                };
                let negatable = ty.category() == 'N' && ty != Type::Oid || ty == Type::Interval;
                if !negatable {
                    return Err(no_unary_operator("-", &self.name_of(bound.ty)));
                }
                let operand = self.coerce(bound, ty, Typmod::NONE, CastContext::Implicit)?;
                Ok(Bound::new(Expr::Negate(Box::new(operand)), ty))
            }
            UnaryOperator::BitwiseNot
            | UnaryOperator::PGAbs
            | UnaryOperator::PGSquareRoot
            | UnaryOperator::PGCubeRoot => {
                let operand = self.expr(operand)?;
                self.scalar_operator(&op.to_string(), vec![operand])
            }
            other => Err(SqlError::unsupported(format!("the operator {other}"))),
        }
    }

    fn is_null(&mut self, operand: &ast::Expr, negated: bool) -> Result<Bound> {
        let operand = self.expr(operand)?;
        let operand = self.undecided(operand);
        let (operand, ..) = self.settle(operand)?;
        Ok(Bound::new(null_test(operand, negated), Type::Bool))
    }

    fn is_unknown(&mut self, operand: &ast::Expr, negated: bool) -> Result<Bound> {
        let what = if negated {
            "IS NOT UNKNOWN"
        } else {
            "IS UNKNOWN"
        };
        let operand = Box::new(self.boolean(operand, what)?);
        Ok(Bound::new(Expr::IsNull { operand, negated }, Type::Bool))
    }

    fn is(&mut self, operand: &ast::Expr, truth: bool, negated: bool) -> Result<Bound> {
        let operand = Box::new(self.boolean(operand, "IS")?);
        let expr = Expr::Is {
            operand,
            truth,
            negated,
        };
        Ok(Bound::new(expr, Type::Bool))
    }

    fn distinct(&mut self, left: &ast::Expr, right: &ast::Expr, negated: bool) -> Result<Bound> {
        if let Some(rows) = self.distinct_rows(left, right, negated)? {
            return Ok(Bound::new(rows, Type::Bool));
        }
        let (left, right) = (self.expr(left)?, self.expr(right)?);
        if let Some(same) = self.same_records(&left, &right)? {
            let expr = match negated {
                true => same,
                false => Expr::Not(Box::new(same)),
            };
            return Ok(Bound::new(expr, Type::Bool));
        }
        let (left, right) = self.comparable("=", left, right)?;
        let expr = Expr::Distinct {
            left: Box::new(left),
            right: Box::new(right),
            negated,
        };
        Ok(Bound::new(expr, Type::Bool))
    }

    fn in_list(&mut self, operand: &ast::Expr, list: &[ast::Expr], negated: bool) -> Result<Bound> {
        let operand = self.expr(operand)?;
        let collated = self.collations.last;
        let mut items = Vec::with_capacity(list.len());
        let mut collations = Vec::with_capacity(list.len());
        for item in list {
            items.push(self.expr(item)?);
            collations.push(self.collations.last);
        }
        Self::check_listed(collated, &items, &collations)?;
        let mut all = items.clone();
        all.push(operand.clone());
        if let Some(Type::Array(_)) = operand.ty {
            // Arrays are compared with the items one by one: they have to be of one type.
            let mut types = items.iter().filter_map(|item| item.ty);
            if let Some(odd) = types.find(|ty| Some(*ty) != operand.ty) {
                return Err(self.no_operator("=", operand.ty, Some(odd)));
            }
        }
        let ty = self.common_type("IN", &all).map_err(|_| {
            let odd = items.iter().find(|item| item.ty != operand.ty);
            self.no_operator("=", operand.ty, odd.and_then(|item| item.ty))
        })?;
        if !ty.is_orderable() {
            return Err(self.no_operator("=", operand.ty, operand.ty));
        }
        let operand = self.compared_as(operand, ty)?;
        let several = items.len() > 1;
        let items = items
            .into_iter()
            .map(|item| self.listed_as(item, ty, several))
            .collect::<Result<Box<[_]>>>()?;
        let expr = Expr::In {
            operand: Box::new(operand),
            list: Listed::new(items),
            negated,
        };
        Ok(Bound::new(expr, Type::Bool))
    }

    fn function(&mut self, function: &ast::Function) -> Result<Bound> {
        let (schema, name) = object_name(&function.name)?;
        // Only in `information_schema` functions are called so.
        let home = match name.starts_with("_pg_") {
            true => "information_schema",
            false => "pg_catalog",
        };
        match schema.as_deref() {
            Some(schema)
                if schema != home
                    || kept_function_of(Some(schema), &name).is_some()
                    || self.is_elsewhere(schema, &name) =>
            {
                return self.function_in(schema, &name, function);
            }
            None if home != "pg_catalog" => return Err(self.no_function(&name, &[])),
            _ => {}
        }
        if let Some(column) = column_of_row(&name, &function.args) {
            return self.expr(&column);
        }
        if let Some(over) = &function.over {
            return self.window(&name, function, over);
        }
        if needs_window(&name) {
            let message = format!("window function {name} requires an OVER clause");
            return Err(SqlError::new(sqlstate::WRONG_OBJECT_TYPE, message));
        }
        if let (Some(kind), ast::FunctionArguments::List(list)) =
            (SetFunction::find(&name), &function.args)
            && let Some(found) = self.set_functions.take()
        {
            let bound = self.set_in_list(kind, &name, &list.args, found);
            self.set_functions.get_or_insert_default();
            return bound;
        }
        if let Some(kind) = AggregateKind::find(&name) {
            return self.aggregate(&name, kind, function);
        }
        if name == "row"
            && let Some(items) = row_of(&ast::Expr::Function(function.clone()))
        {
            return self.record_of(&items);
        }
        if name == "grouping" {
            return self.grouping(function);
        }
        let arguments = match &function.args {
            ast::FunctionArguments::None => match self.word(&name, &[])? {
                Some(bound) => return Ok(bound),
                None => Vec::new(),
            },
            ast::FunctionArguments::List(list) => {
                if let Some(bound) = self.variadic(&name, list)? {
                    check_plain(function)?;
                    return Ok(bound);
                }
                self.arguments(&name, list)?
            }
            ast::FunctionArguments::Subquery(_) => {
                return Err(SqlError::unsupported("a subquery as an argument"));
            }
        };
        let bound = self.call(&name, arguments)?;
        check_plain(function)?;
        Ok(bound)
    }
}
