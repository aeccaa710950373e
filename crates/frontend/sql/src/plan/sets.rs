//! UNION, INTERSECT and EXCEPT.

use super::OutputColumn;
use super::output::check_equality;
use super::select::{Body, Select, plain};
use crate::bind::{Binder, Bound, common_collation};
use crate::error::{Result, SqlError};
use crate::expr::Expr;
use sqlparser::ast;
use vellum_row::{Type, Typmod, Value};

impl Binder<'_> {
    /// Set operations, which the parser makes a left-deep tree of: bound from its bottom, in a loop.
    pub(super) fn set_operations(
        &mut self,
        body: &ast::SetExpr,
        order: &[ast::OrderByExpr],
    ) -> Result<(Select, Vec<OutputColumn>)> {
        let mut operations = Vec::new();
        let mut first = body;
        while let ast::SetExpr::SetOperation {
            op,
            set_quantifier,
            left,
            right,
        } = first
        {
            let all = match set_quantifier {
                ast::SetQuantifier::All => true,
                ast::SetQuantifier::None | ast::SetQuantifier::Distinct => false,
                _ => return Err(SqlError::unsupported("this form of a set operation")),
            };
            operations.push((*op, all, &**right));
            first = left;
        }
        let mut literals_as = Vec::new();
        if let (true, Some((.., right))) = (has_literals(first), operations.last()) {
            // Only its types are asked for: what its parameters are is found out with it.
            let known = self.params_known();
            literals_as = types_of(&self.side(right, Vec::new())?.1);
            self.take_back(known);
        }
        let (mut select, mut columns) = self.side(first, literals_as)?;
        while let Some((operator, all, node)) = operations.pop() {
            let (right, others) = self.side(node, types_of(&columns))?;
            let right = (right, &*others, node);
            let body = self.combined(operator, all, (select, &mut columns), right)?;
            select = plain(body, Vec::new());
            select.types = types_of(&columns);
        }
        select.order = self.order_of_output(order, &columns)?;
        Ok((select, columns))
    }

    /// A side of a set operation, with subqueries of its own. A literal that stands for a column takes the type of the other side's.
    fn side(
        &mut self,
        body: &ast::SetExpr,
        literals_as: Vec<Type>,
    ) -> Result<(Select, Vec<OutputColumn>)> {
        self.inner(|binder| {
            binder.literals_as = literals_as;
            if let ast::SetExpr::Query(query) = body {
                super::lock::check_side(query)?;
                return binder.query(query);
            }
            let (mut select, columns) = binder.body(body, &[])?;
            select.subqueries.append(&mut binder.subqueries);
            Ok((select, columns))
        })
    }

    /// Where an item of a list stands, of the first query in a side.
    #[cold]
    fn place_of_item(&self, side: &ast::SetExpr, at: usize) -> Option<u32> {
        match side {
            ast::SetExpr::Select(select) => self.place(select.projection.get(at)?),
            ast::SetExpr::Query(query) => self.place_of_item(&query.body, at),
            ast::SetExpr::SetOperation { left, .. } => self.place_of_item(left, at),
            ast::SetExpr::Values(values) => self.place(values.rows.first()?.content.get(at)?),
            _ => None,
        }
    }

    fn combined(
        &mut self,
        operator: ast::SetOperator,
        all: bool,
        (mut left, columns): (Select, &mut Vec<OutputColumn>),
        (mut right, others, node): (Select, &[OutputColumn], &ast::SetExpr),
    ) -> Result<Body> {
        if columns.len() != others.len() {
            let message = format!("each {operator} query must have the same number of columns");
            return Err(SqlError::syntax(message).at(self.place_of_item(node, 0)));
        }
        for (at, (column, other)) in columns.iter_mut().zip(others).enumerate() {
            column.domain = column.domain.filter(|_| column.domain == other.domain);
            let sides = [column.ty, other.ty].map(|ty| Bound::new(Expr::Const(Value::Null), ty));
            let ty = self.common_type(&operator.to_string(), &sides);
            let ty = ty.map_err(|error| error.at(self.place_of_item(node, at)))?;
            for (select, own) in [(&mut left, column.ty), (&mut right, other.ty)] {
                if own != ty {
                    select.cast_output(at, ty);
                }
            }
            if ty == Type::Record {
                let common = self.common_columns(column.typmod, other.typmod);
                column.typmod = common.unwrap_or(Typmod::NONE);
            } else if column.ty != ty || column.typmod != other.typmod {
                column.typmod = Typmod::NONE;
            }
            let may_differ = all && operator == ast::SetOperator::Union;
            if !may_differ {
                check_equality(ty)?;
            }
            let said = [column.collated, other.collated];
            let collation = common_collation([column.collation, other.collation], said, may_differ);
            column.collated = false;
            column.collation = collation.map_err(|error| error.at(self.place_of_item(node, at)))?;
            column.ty = ty;
            column.origin = (0, 0);
        }
        Ok(Body::Set {
            operator,
            all,
            left: Box::new(left),
            right: Box::new(right),
        })
    }
}

fn types_of(columns: &[OutputColumn]) -> Vec<Type> {
    columns.iter().map(|column| column.ty).collect()
}

/// Whether a column of a side is a literal or a parameter, so that its type may be the other side's.
fn has_literals(body: &ast::SetExpr) -> bool {
    let select = match body {
        ast::SetExpr::Select(select) => select,
        ast::SetExpr::Query(query) => return has_literals(&query.body),
        _ => return false,
    };
    select.projection.iter().any(|item| match item {
        ast::SelectItem::UnnamedExpr(expr) | ast::SelectItem::ExprWithAlias { expr, .. } => {
            let mut expr = expr;
            while let ast::Expr::Nested(inner) = expr {
                expr = inner;
            }
            matches!(expr, ast::Expr::Value(_))
        }
        _ => false,
    })
}
