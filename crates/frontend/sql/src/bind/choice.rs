//! One of several expressions, all of which have to be of one type: CASE, COALESCE, GREATEST, NULLIF.

use super::{Binder, Bound, holding};
use crate::error::{Result, SqlError};
use crate::expr::{Builtin, Comparison, Expr};
use sqlparser::ast;
use vellum_row::{CastContext, Type, Typmod, Value};

impl Binder<'_> {
    pub(super) fn case(
        &mut self,
        operand: Option<&ast::Expr>,
        conditions: &[ast::CaseWhen],
        otherwise: Option<&ast::Expr>,
    ) -> Result<Bound> {
        let operand = match operand {
            None => None,
            // Of a type before it is compared.
            Some(operand) => {
                let bound = self.expr(operand)?;
                let (expr, ty, typmod) = self.settle(bound)?;
                Some(Bound {
                    typmod,
                    ..Bound::new(expr, ty)
                })
            }
        };
        let (operand, once) = operand.map(Bound::held).unzip();
        let mut tests = Vec::new();
        // The last is the first to say of which type all are, as in PostgreSQL: it comes first here.
        let mut results = vec![match otherwise {
            Some(otherwise) => self.expr(otherwise)?,
            None => self.expr(&ast::Expr::Value(ast::Value::Null.into()))?,
        }];
        for when in conditions {
            tests.push(match &operand {
                None => self.condition(&when.condition, "CASE/WHEN")?,
                Some(operand) => {
                    let value = self.expr(&when.condition)?;
                    let (left, right) = self.comparable("=", operand.clone(), value)?;
                    Expr::Compare {
                        comparison: Comparison::Equal,
                        left: Box::new(left),
                        right: Box::new(right),
                    }
                }
            });
            results.push(self.expr(&when.result)?);
        }
        let (results, ty, typmod) = self.unify("CASE", results)?;
        let mut results = results.into_iter();
        let otherwise = results
            .next()
            .ok_or_else(|| SqlError::internal("a CASE without results"))?;
        let expr = Expr::Case {
            branches: tests.into_iter().zip(results).collect(),
            otherwise: Box::new(otherwise),
        };
        Ok(Bound {
            expr: holding(expr, once.flatten()),
            ty: Some(ty),
            typmod,
            start: None,
        })
    }

    /// COALESCE, GREATEST and LEAST; `None` for another name.
    ///
    /// # Errors
    /// `42804`.
    pub(super) fn choice(&mut self, name: &str, arguments: Vec<Bound>) -> Result<Option<Bound>> {
        let function = match name {
            "coalesce" => None,
            "greatest" => Some(Builtin::Greatest),
            "least" => Some(Builtin::Least),
            _ => return Ok(None),
        };
        let (operands, ty, typmod) = self.unify(&name.to_uppercase(), arguments)?;
        let operands = operands.into();
        Ok(Some(Bound {
            expr: match function {
                None => Expr::Coalesce(operands),
                Some(function) => Expr::Call {
                    function,
                    arguments: operands,
                },
            },
            ty: Some(ty),
            typmod,
            start: None,
        }))
    }

    /// NULLIF is an equality that returns its left side, as that is compared.
    ///
    /// # Errors
    /// `42883` for what is not compared.
    pub(super) fn null_if(&mut self, left: Bound, right: Bound) -> Result<Bound> {
        let (own, typmod) = (left.ty, left.typmod);
        let moment =
            |ty: Option<Type>| matches!(ty, Some(Type::Date | Type::Timestamp | Type::Timestamptz));
        if moment(own) && moment(right.ty) && own != right.ty {
            return self.null_if_moment(left, right);
        }
        let is = |ty: Option<Type>, test: fn(Type) -> bool| ty.is_some_and(test);
        let number = |ty: Type| ty.is_integer() || matches!(ty, Type::Numeric | Type::Float8);
        if own == Some(Type::Float4) && is(right.ty, number) {
            // Floats are compared whatever their width, too.
            let right = self.coerce(right, Type::Float8, Typmod::NONE, CastContext::Implicit)?;
            return Ok(null_if(left, right));
        }
        if own == Some(Type::Name) && matches!(right.ty, Some(Type::Text | Type::Varchar)) {
            return Ok(null_if(left, right.expr));
        }
        let integer = |ty: Option<Type>| is(ty, Type::is_integer);
        let kept = integer(own) && integer(right.ty);
        let ty = match super::operator::comparison_type(own, right.ty) {
            // Integers are compared whatever their width, a varchar as text, a cidr as inet.
            _ if kept => own,
            Some(Type::Varchar) => Some(Type::Text),
            Some(Type::Cidr) => Some(Type::Inet),
            found => found,
        };
        let unknown = || self.no_operator("=", own, right.ty);
        let ty = ty.filter(|ty| ty.is_orderable()).ok_or_else(unknown)?;
        let implicit = CastContext::Implicit;
        let right = match kept {
            true => right.expr,
            false => self.coerce(right, ty, Typmod::NONE, implicit)?,
        };
        let left = self.coerce(left, ty, Typmod::NONE, implicit)?;
        Ok(Bound {
            expr: Expr::Call {
                function: Builtin::NullIf,
                arguments: Box::new([left, right]),
            },
            ty: Some(ty),
            typmod: if own == Some(ty) {
                typmod
            } else {
                Typmod::NONE
            },
            start: None,
        })
    }

    /// NULLIF of moments of different types, which are compared as one of them; the left one stays what it is.
    fn null_if_moment(&mut self, left: Bound, right: Bound) -> Result<Bound> {
        let held = Bound {
            expr: Expr::Held,
            ..left.clone()
        };
        let (one, other) = self.comparable("=", held.clone(), right)?;
        let same = Expr::Compare {
            comparison: Comparison::Equal,
            left: Box::new(one),
            right: Box::new(other),
        };
        let body = Expr::Case {
            branches: Box::new([(same, Expr::Const(Value::Null))]),
            otherwise: Box::new(held.expr),
        };
        Ok(Bound {
            expr: holding(body, Some(left.expr)),
            start: None,
            ..left
        })
    }

    /// Several expressions as ones of one type, and the modifier that all of them have.
    ///
    /// # Errors
    /// `42804`.
    pub(crate) fn unify(
        &mut self,
        what: &str,
        all: Vec<Bound>,
    ) -> Result<(Vec<Expr>, Type, Typmod)> {
        let ty = self.common_type(what, &all)?;
        let first = all.first().map_or(Typmod::NONE, |bound| bound.typmod);
        let same = |bound: &Bound| bound.ty == Some(ty) && bound.typmod == first;
        let typmod = match ty {
            Type::Record => self.common_row(all.iter()),
            _ if all.iter().all(same) => first,
            _ => Typmod::NONE,
        };
        let all = all
            .into_iter()
            .map(|bound| self.coerce(bound, ty, Typmod::NONE, CastContext::Implicit))
            .collect::<Result<_>>()?;
        Ok((all, ty, typmod))
    }
}

/// The left side where it is not the right one, as it is.
fn null_if(left: Bound, right: Expr) -> Bound {
    Bound {
        expr: Expr::Call {
            function: Builtin::NullIf,
            arguments: Box::new([left.expr, right]),
        },
        start: None,
        ..left
    }
}
