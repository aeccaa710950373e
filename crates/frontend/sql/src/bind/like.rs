//! LIKE and ILIKE: of texts and of bytes, of one pattern and of each of an array.

use super::types::object_name;
use super::{Binder, Bound};
use crate::error::{Result, SqlError};
use crate::expr::{Builtin, CatalogFunction, Expr, Quantifier, letters};
use crate::sqlstate;
use sqlparser::ast;
use vellum_row::{CastContext, Pattern, Type, Typmod, Value};

/// The array of `ALL (array)`, which the parser takes for a function.
pub(super) fn all_of(node: &ast::Expr) -> Option<&ast::Expr> {
    let (ast::Expr::Like { pattern, .. } | ast::Expr::ILike { pattern, .. }) = node else {
        return None;
    };
    let ast::Expr::Function(function) = &**pattern else {
        return None;
    };
    let (_, name) = object_name(&function.name).ok()?;
    match &function.args {
        ast::FunctionArguments::List(list) if name == "all" => match list.args.as_slice() {
            [ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(array))] => Some(array),
            _ => None,
        },
        _ => None,
    }
}

/// What messages call LIKE.
fn like_sign(fold: bool, negated: bool) -> &'static str {
    match (fold, negated) {
        (false, false) => "~~",
        (false, true) => "!~~",
        (true, false) => "~~*",
        (true, true) => "!~~*",
    }
}

impl Binder<'_> {
    /// `a [NOT] LIKE b [ESCAPE c]`, and ILIKE.
    pub(super) fn like(
        &mut self,
        operand: &ast::Expr,
        pattern: &ast::Expr,
        escape: Option<&ast::ValueWithSpan>,
        fold: bool,
        negated: bool,
    ) -> Result<Bound> {
        let says_escape = escape.is_some();
        let escape = match escape.map(|escape| &escape.value) {
            None => Some('\\'),
            Some(ast::Value::SingleQuotedString(text)) => {
                let mut chars = text.chars();
                match (chars.next(), chars.next()) {
                    (char, None) => char,
                    _ => {
                        let text = "invalid escape string";
                        return Err(SqlError::new(sqlstate::INVALID_ESCAPE_SEQUENCE, text)
                            .with_hint("Escape string must be empty or one character."));
                    }
                }
            }
            Some(other) => return Err(SqlError::unsupported(format!("the escape {other}"))),
        };
        let (operand, mut pattern) = (self.expr(operand)?, self.expr(pattern)?);
        if says_escape && pattern.ty.is_none() {
            // It goes through `like_escape`, which takes it for a text.
            let (expr, ty, _) = self.settle(pattern)?;
            pattern = Bound::new(expr, ty);
        }
        self.like_bound(operand, pattern, escape, fold, negated)
    }

    /// LIKE of operands that are bound, and the operators that are the same.
    ///
    /// # Errors
    /// `42883` for what is no text.
    pub(super) fn like_bound(
        &mut self,
        operand: Bound,
        pattern: Bound,
        escape: Option<char>,
        fold: bool,
        negated: bool,
    ) -> Result<Bound> {
        let is_bytes = |side: &Bound| side.ty == Some(Type::Bytea);
        if !fold && (is_bytes(&operand) || is_bytes(&pattern)) {
            return self.like_bytes(operand, pattern, escape, negated);
        }
        for side in [&operand, &pattern] {
            if side.ty.is_some_and(|ty| ty.category() != 'S') {
                let sign = like_sign(fold, negated);
                return Err(self.no_operator(sign, operand.ty, pattern.ty));
            }
        }
        // The blanks of a char(n) count here.
        let ty = operand
            .ty
            .filter(|ty| *ty == Type::Char)
            .unwrap_or(Type::Text);
        let operand = self.coerce(operand, ty, Typmod::NONE, CastContext::Implicit)?;
        let pattern = self.coerce(pattern, Type::Text, Typmod::NONE, CastContext::Implicit)?;
        let constant = match &pattern {
            Expr::Const(Value::Text(text)) => Some(Pattern::new(text, escape, fold)),
            _ => None,
        };
        let expr = Expr::Like {
            operand: Box::new(operand),
            pattern: Box::new(pattern),
            constant,
            escape,
            fold,
            negated,
        };
        Ok(Bound::new(expr, Type::Bool))
    }

    /// LIKE of bytes.
    ///
    /// # Errors
    /// `42883` for what is none.
    fn like_bytes(
        &mut self,
        operand: Bound,
        pattern: Bound,
        escape: Option<char>,
        negated: bool,
    ) -> Result<Bound> {
        for side in [&operand, &pattern] {
            if side.ty.is_some_and(|ty| ty != Type::Bytea) {
                let sign = like_sign(false, negated);
                return Err(self.no_operator(sign, operand.ty, pattern.ty));
            }
        }
        let implicit = CastContext::Implicit;
        let operand = self.coerce(operand, Type::Bytea, Typmod::NONE, implicit)?;
        let pattern = self.coerce(pattern, Type::Bytea, Typmod::NONE, implicit)?;
        let constant = match &pattern {
            Expr::Const(value) => letters(value.as_ref()),
            _ => None,
        };
        let constant = constant.map(|text| Pattern::new(&text, escape, false));
        let expr = Expr::Like {
            operand: Box::new(operand),
            pattern: Box::new(pattern),
            constant,
            escape,
            fold: false,
            negated,
        };
        Ok(Bound::new(expr, Type::Bool))
    }
}

impl Binder<'_> {
    /// `a [NOT] LIKE ANY (array)`, and ALL.
    pub(super) fn like_each(&mut self, node: &ast::Expr) -> Result<Bound> {
        use ast::BinaryOperator as B;
        let (fold, negated, expr, pattern) = match node {
            ast::Expr::Like {
                negated,
                expr,
                pattern,
                ..
            } => (false, *negated, expr, pattern),
            ast::Expr::ILike {
                negated,
                expr,
                pattern,
                ..
            } => (true, *negated, expr, pattern),
            _ => return Err(SqlError::internal("no LIKE")),
        };
        let operator = match (fold, negated) {
            (false, false) => B::PGLikeMatch,
            (false, true) => B::PGNotLikeMatch,
            (true, false) => B::PGILikeMatch,
            (true, true) => B::PGNotILikeMatch,
        };
        match all_of(node) {
            Some(array) => self.each_of(expr, &operator, array, Quantifier::All),
            None => self.each_of(expr, &operator, pattern, Quantifier::Any),
        }
    }
}

impl Binder<'_> {
    /// LIKE of each element of an array that is known when it is run.
    ///
    /// # Errors
    /// `42809` for what is no array, `42883` for what is no text; `0A000` for another operator, and for a query.
    pub(super) fn like_any(
        &mut self,
        left: &ast::Expr,
        operator: &ast::BinaryOperator,
        array: &ast::Expr,
        quantifier: Quantifier,
    ) -> Result<Bound> {
        use ast::BinaryOperator as B;
        let (fold, negated) = match operator {
            B::PGLikeMatch => (false, false),
            B::PGNotLikeMatch => (false, true),
            B::PGILikeMatch => (true, false),
            B::PGNotILikeMatch => (true, true),
            other => {
                let what = format!("{other} with ANY or ALL of what is no ARRAY[]");
                return Err(SqlError::unsupported(what));
            }
        };
        if let ast::Expr::Subquery(_) = array {
            let what = format!("{operator} with ANY or ALL of a query");
            return Err(SqlError::unsupported(what));
        }
        let (value, array) = (self.expr(left)?, self.expr(array)?);
        let element = match array.ty {
            None => Type::Text,
            Some(ty) => ty.element().ok_or_else(|| {
                let text = "op ANY/ALL (array) requires array on right side";
                SqlError::new(sqlstate::WRONG_OBJECT_TYPE, text)
            })?,
        };
        let bytes = !fold && element == Type::Bytea;
        let fits = |ty: Type| match bytes {
            true => ty == Type::Bytea,
            false => ty.category() == 'S',
        };
        if !fits(element) || !value.ty.is_none_or(fits) {
            return Err(self.no_operator(&operator.to_string(), value.ty, Some(element)));
        }
        let (ty, elements) = match bytes {
            true => (Type::Bytea, Type::Bytea),
            // The blanks of a char(n) count here.
            false if value.ty == Some(Type::Char) => (Type::Char, Type::Text),
            false => (Type::Text, Type::Text),
        };
        let implicit = CastContext::Implicit;
        let value = self.coerce(value, ty, Typmod::NONE, implicit)?;
        let array = self.coerce(array, elements.array(), Typmod::NONE, implicit)?;
        let function = CatalogFunction::LikeAnyOf {
            fold,
            negated,
            quantifier,
        };
        let call = Expr::Call {
            function: Builtin::Catalog(function),
            arguments: [value, array].into(),
        };
        Ok(Bound::new(call, Type::Bool))
    }
}
