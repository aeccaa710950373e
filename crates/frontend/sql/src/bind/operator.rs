//! Operators: what fits their operands.

use super::array::named_operator;
use super::{Binder, Bound};
use crate::error::{Result, SqlError};
use crate::expr::{Builtin, Casting, CatalogFunction, Comparison, Expr, find_scalar};
use crate::sqlstate;
use sqlparser::ast::BinaryOperator;
use std::borrow::Cow;
use vellum_row::arithmetic::{Operator, resolve};
use vellum_row::{CastContext, Type, Typmod, Value, cast, cast_between};

impl Binder<'_> {
    /// An operator between two operands.
    ///
    /// # Errors
    /// `42883` if there is none for them.
    pub(crate) fn binary(
        &mut self,
        operator: &BinaryOperator,
        left: Bound,
        right: Bound,
    ) -> Result<Bound> {
        use BinaryOperator as B;
        if let B::PGCustomBinaryOperator(parts) = operator {
            return match (named_operator(parts), parts.as_slice()) {
                (Some(plain), _) => self.binary(&plain, left, right),
                (None, [.., sign]) => self.scalar_operator(sign, vec![left, right]),
                (None, []) => Err(self.no_operator("", left.ty, right.ty)),
            };
        }
        let comparison = match operator {
            B::Eq => Some(Comparison::Equal),
            B::NotEq => Some(Comparison::NotEqual),
            B::Lt => Some(Comparison::Less),
            B::LtEq => Some(Comparison::LessEqual),
            B::Gt => Some(Comparison::Greater),
            B::GtEq => Some(Comparison::GreaterEqual),
            _ => None,
        };
        if let Some(comparison) = comparison {
            if let Some(compared) = self.compared_records(comparison, &left, &right)? {
                return Ok(compared);
            }
            let right = self.compared_with_xid(comparison, operator, &left, right)?;
            let (left, right) = self.comparable(&operator.to_string(), left, right)?;
            let expr = Expr::Compare {
                comparison,
                left: Box::new(left),
                right: Box::new(right),
            };
            return Ok(Bound::new(expr, Type::Bool));
        }
        let arithmetic = match operator {
            B::Plus => Operator::Add,
            B::Minus if left.ty == Some(Type::Jsonb) => {
                return self.scalar_operator("-", vec![left, right]);
            }
            B::Minus => Operator::Subtract,
            B::Multiply => Operator::Multiply,
            B::Divide => Operator::Divide,
            B::Modulo => Operator::Modulo,
            B::StringConcat => return self.concat(left, right),
            B::PGRegexMatch => return self.matches(left, right, false, false),
            B::PGRegexIMatch => return self.matches(left, right, true, false),
            B::PGRegexNotMatch => return self.matches(left, right, false, true),
            B::PGRegexNotIMatch => return self.matches(left, right, true, true),
            B::PGLikeMatch => return self.like_bound(left, right, Some('\\'), false, false),
            B::PGNotLikeMatch => return self.like_bound(left, right, Some('\\'), false, true),
            B::PGILikeMatch => return self.like_bound(left, right, Some('\\'), true, false),
            B::PGNotILikeMatch => return self.like_bound(left, right, Some('\\'), true, true),
            B::Arrow => return self.json_get(left, right, false),
            B::LongArrow => return self.json_get(left, right, true),
            other => return self.scalar_operator(&other.to_string(), vec![left, right]),
        };
        // An unknown operand is taken to be of the other's type.
        let (mut a, mut b) = (left.ty, right.ty);
        if a.is_none() && b.is_none() {
            return Err(several_operators(&format!("unknown {operator} unknown")));
        }
        // An integer, a time and an interval can be added to a date.
        let date = Some(Type::Date);
        if arithmetic == Operator::Add && [(date, None), (None, date)].contains(&(a, b)) {
            let (left, right) = (self.name_of(a), self.name_of(b));
            return Err(several_operators(&format!("{left} + {right}")));
        }
        if let (None, Some(known)) | (Some(known), None) = (a, b) {
            // Of the other's type, if there is such an operator; else of the one that there is.
            let fits = |other: &Type| {
                let (a, b) = (a.unwrap_or(*other), b.unwrap_or(*other));
                resolve(arithmetic, a, b).is_some()
            };
            let others = [known, Type::Interval, Type::Float8, Type::Int8];
            let other = others.into_iter().find(fits);
            (a, b) = (a.or(other), b.or(other));
        }
        let resolved = a.zip(b).and_then(|(a, b)| resolve(arithmetic, a, b));
        let Some(resolved) = resolved else {
            return Err(self.no_operator(&operator.to_string(), left.ty, right.ty));
        };
        let left = self.coerce(left, resolved.left, Typmod::NONE, CastContext::Implicit)?;
        let right = self.coerce(right, resolved.right, Typmod::NONE, CastContext::Implicit)?;
        let expr = Expr::Arithmetic {
            operator: arithmetic,
            left: Box::new(typed_null(left, resolved.left)),
            right: Box::new(typed_null(right, resolved.right)),
        };
        Ok(Bound::new(expr, resolved.result))
    }

    /// `text ~ pattern` and its like.
    fn matches(&mut self, left: Bound, right: Bound, fold: bool, not: bool) -> Result<Bound> {
        let is_text = |ty: Option<Type>| ty.is_none_or(|ty| ty.category() == 'S');
        if !is_text(left.ty) || !is_text(right.ty) {
            return Err(self.no_operator("~", left.ty, right.ty));
        }
        // The blanks of a char(n) count here, but not in a pattern.
        let ty = left.ty.filter(|ty| *ty == Type::Char).unwrap_or(Type::Text);
        let left = self.coerce(left, ty, Typmod::NONE, CastContext::Implicit)?;
        let right = self.coerce(right, Type::Text, Typmod::NONE, CastContext::Implicit)?;
        let arguments = [left, right].into();
        let function = Builtin::Catalog(CatalogFunction::Matches { fold });
        let call = Expr::Call {
            function,
            arguments,
        };
        let expr = if not { Expr::Not(Box::new(call)) } else { call };
        Ok(Bound::new(expr, Type::Bool))
    }

    /// An operator of the tables of functions.
    ///
    /// # Errors
    /// `42883` if there is none for these operands, `42725` if there are several.
    pub(super) fn scalar_operator(&mut self, sign: &str, operands: Vec<Bound>) -> Result<Bound> {
        let types: Vec<Option<Type>> = operands.iter().map(|operand| operand.ty).collect();
        match find_scalar(sign, &types)? {
            Some(signature) => self.called(signature, operands),
            None => Err(match types.as_slice() {
                [left, right] => self.no_operator(sign, *left, *right),
                types => {
                    let name = self.name_of(types.first().copied().flatten());
                    no_unary_operator(sign, &name)
                }
            }),
        }
    }

    fn concat(&mut self, left: Bound, right: Bound) -> Result<Bound> {
        let element = |ty: Option<Type>| ty.and_then(Type::element);
        if element(left.ty).or(element(right.ty)).is_some() {
            return self.concat_arrays(left, right);
        }
        let own = |ty: Option<Type>| matches!(ty, Some(Type::Bytea | Type::Jsonb));
        if own(left.ty) || own(right.ty) {
            let types = [left.ty, right.ty];
            if let Some(signature) = find_scalar("||", &types)? {
                return self.called(signature, vec![left, right]);
            }
        }
        let is_text = |ty: Option<Type>| ty.is_none_or(|ty| ty.category() == 'S');
        if !is_text(left.ty) && !is_text(right.ty) {
            return Err(self.no_operator("||", left.ty, right.ty));
        }
        // Whatever is no text is cast to it.
        let mut side = |side| self.coerce(side, Type::Text, Typmod::NONE, CastContext::Explicit);
        let (left, right) = (side(left)?, side(right)?);
        let expr = Expr::Concat(Box::new(left), Box::new(right));
        Ok(Bound::new(expr, Type::Text))
    }

    /// What stands right in a comparison. Numbers of transactions have no order; right of one there may be an integer, which is one then.
    ///
    /// # Errors
    /// `42883`.
    fn compared_with_xid(
        &mut self,
        comparison: Comparison,
        operator: &BinaryOperator,
        left: &Bound,
        right: Bound,
    ) -> Result<Bound> {
        let xid = Some(Type::Xid);
        if left.ty != xid && right.ty != xid {
            return Ok(right);
        }
        if !matches!(comparison, Comparison::Equal | Comparison::NotEqual) {
            return Err(self.no_operator(&operator.to_string(), left.ty, right.ty));
        }
        match right.ty {
            Some(Type::Int2 | Type::Int4) => {
                let start = right.start;
                let expr = self.coerce(right, Type::Oid, Typmod::NONE, CastContext::Implicit)?;
                Ok(Bound {
                    start,
                    ..Bound::new(expr, Type::Xid)
                })
            }
            _ => Ok(right),
        }
    }

    /// Both operands as ones that can be compared (E1).
    ///
    /// # Errors
    /// `42883`.
    pub(super) fn comparable(
        &mut self,
        operator: &str,
        left: Bound,
        right: Bound,
    ) -> Result<(Expr, Expr)> {
        let Some(ty) = comparison_type(left.ty, right.ty) else {
            return Err(self.no_operator(operator, left.ty, right.ty));
        };
        if !ty.is_orderable() {
            return Err(self.no_operator(operator, left.ty, right.ty));
        }
        Ok((self.compared_as(left, ty)?, self.compared_as(right, ty)?))
    }

    /// An operand of a comparison that is made as of type `ty` (E1).
    ///
    /// # Errors
    /// As [`Binder::coerce`].
    pub(super) fn compared_as(&mut self, bound: Bound, ty: Type) -> Result<Expr> {
        match bound.ty {
            // Integers are compared whatever their width.
            Some(own) if own.is_integer() && ty.is_integer() => Ok(bound.expr),
            Some(own) if own.is_plain_text() && ty.is_plain_text() => Ok(bound.expr),
            Some(own) if own.is_oid() && ty.is_oid() => Ok(bound.expr),
            Some(own) if own.is_network() && ty.is_network() => Ok(bound.expr),
            Some(Type::Date) if matches!(ty, Type::Timestamp | Type::Timestamptz) => {
                let typmod = Typmod::NONE;
                // What is no moment has no text as one, and stays a date.
                if let Expr::Const(value) = &bound.expr
                    && let Ok(value) = cast(value.as_ref(), ty, typmod, false, self.settings)
                {
                    return Ok(Expr::Const(value));
                }
                Ok(Expr::Cast {
                    operand: Box::new(bound.expr),
                    ty,
                    typmod,
                    casting: Casting::Compared,
                })
            }
            // There are no comparisons of cidr and of varchar: beside one stands an inet, a text.
            None if matches!(ty, Type::Cidr | Type::Varchar) => {
                let ty = match ty {
                    Type::Cidr => Type::Inet,
                    _ => Type::Text,
                };
                self.coerce(bound, ty, Typmod::NONE, CastContext::Implicit)
            }
            _ => self.coerce(bound, ty, Typmod::NONE, CastContext::Implicit),
        }
    }

    /// The same of an item of IN: several make an array, whose items are of one type.
    ///
    /// # Errors
    /// As [`Binder::coerce`].
    pub(super) fn listed_as(&mut self, bound: Bound, ty: Type, several: bool) -> Result<Expr> {
        match bound.ty {
            None if several => self.coerce(bound, ty, Typmod::NONE, CastContext::Implicit),
            _ => self.compared_as(bound, ty),
        }
    }

    /// `42883`.
    #[cold]
    pub(super) fn no_operator(
        &self,
        operator: &str,
        left: Option<Type>,
        right: Option<Type>,
    ) -> SqlError {
        let (left, right) = (self.name_of(left), self.name_of(right));
        let message = format!("operator does not exist: {left} {operator} {right}");
        SqlError::new(sqlstate::UNDEFINED_FUNCTION, message).with_hint(
            "No operator matches the given name and argument types. You might need to add explicit type casts.",
        )
    }

    /// A number with `+` in front; what has no type is read as a float.
    ///
    /// # Errors
    /// `42883` for what is no number.
    pub(super) fn plus(&mut self, operand: Bound) -> Result<Bound> {
        let ty = operand.ty.unwrap_or(Type::Float8);
        // Those that name something are numbers by category only.
        let number = matches!(
            ty,
            Type::Int2 | Type::Int4 | Type::Int8 | Type::Numeric | Type::Float4 | Type::Float8
        );
        if !number {
            return Err(no_unary_operator("+", &self.name_of(operand.ty)));
        }
        let expr = self.coerce(operand, ty, Typmod::NONE, CastContext::Implicit)?;
        Ok(Bound::new(expr, ty))
    }

    /// What messages call a type, as far as it is known.
    pub(crate) fn name_of(&self, ty: Option<Type>) -> Cow<'static, str> {
        ty.map_or(Cow::Borrowed("unknown"), |ty| self.settings.name_of(ty))
    }
}

/// `42883` of an operator in front of its operand.
#[cold]
pub(super) fn no_unary_operator(sign: &str, operand: &str) -> SqlError {
    let message = format!("operator does not exist: {sign} {operand}");
    SqlError::new(sqlstate::UNDEFINED_FUNCTION, message).with_hint(
        "No operator matches the given name and argument type. You might need to add an explicit type cast.",
    )
}

/// `42725`: operands of unknown type, and operators of several types that would do.
#[cold]
pub(super) fn several_operators(what: &str) -> SqlError {
    let message = format!("operator is not unique: {what}");
    SqlError::new(sqlstate::AMBIGUOUS_FUNCTION, message).with_hint(
        "Could not choose a best candidate operator. You might need to add explicit type casts.",
    )
}

/// The type that two operands are compared as.
pub(super) fn comparison_type(left: Option<Type>, right: Option<Type>) -> Option<Type> {
    let (a, b) = match (left, right) {
        (None, None) => return Some(Type::Text),
        // What names something is compared as its number: a literal beside it is one.
        (Some(ty), None) | (None, Some(ty)) if ty.is_reg() => return Some(Type::Oid),
        (Some(ty), None) | (None, Some(ty)) => return Some(ty),
        (Some(a), Some(b)) => (a, b),
    };
    let numbered = |ty: Type| ty.is_reg() || ty == Type::Oid || ty.is_integer();
    if a.is_reg() && numbered(b) || b.is_reg() && numbered(a) {
        return Some(Type::Oid);
    }
    if a == b {
        return Some(a);
    }
    if let (Type::Array(_), Type::Array(_)) = (a, b) {
        // There is one operator for all arrays, whose elements have to be of one type.
        return None;
    }
    if a.category() == 'S' && b.category() == 'S' {
        // A char(n) is compared as one with a varchar, as text with text.
        let padded = [a, b].contains(&Type::Char) && [a, b].contains(&Type::Varchar);
        return Some(if padded { Type::Char } else { Type::Text });
    }
    // Numbers are compared as what they are added as, but integers and kinds of floats as the wider.
    if let Some(sum) =
        resolve(Operator::Add, a, b).filter(|_| a.category() == 'N' && b.category() == 'N')
    {
        return Some(sum.result);
    }
    let implicit = |from, to| cast_between(from, to) == Some(CastContext::Implicit);
    // `"char"` is compared as text.
    if [a, b].contains(&Type::SingleChar) && (a.category() == 'S' || b.category() == 'S') {
        return Some(Type::Text);
    }
    if a.category() == b.category() {
        if implicit(a, b) {
            return Some(b);
        }
        if implicit(b, a) {
            return Some(a);
        }
    }
    None
}

/// A null that tells its type: of an operation that is shown and bound again it decides which one is meant.
fn typed_null(operand: Expr, ty: Type) -> Expr {
    match operand {
        Expr::Const(Value::Null) => Expr::Cast {
            operand: Box::new(operand),
            ty,
            typmod: Typmod::NONE,
            casting: Casting::Explicit,
        },
        other => other,
    }
}
