//! Arrays, operators that are named with their schema, and casts of oids that are shown as names.

use super::operator::comparison_type;
use super::row::{row_of, taken_apart};
use super::types::folded;
use super::{Binder, Bound, holding};
use crate::catalog::Named;
use crate::error::{Result, SqlError};
use crate::expr::{
    Builtin, CatalogFunction, Comparison, Expr, Form, Quantifier, RowTest, Searched,
    no_polymorphic_type,
};
use crate::plan::SubqueryKind;
use crate::sqlstate;
use crate::system::number_in;
use sqlparser::ast::{self, BinaryOperator};
use vellum_row::{CastContext, Type, Typmod, Value, ValueRef, cast_between};

/// The query of `ARRAY(SELECT …)`, which the parser takes for a function.
pub(crate) fn array_subquery(function: &ast::Function) -> Option<&ast::Query> {
    match (&function.args, function.name.0.as_slice()) {
        (ast::FunctionArguments::Subquery(query), [ast::ObjectNamePart::Identifier(name)])
            if folded(name) == "array" =>
        {
            Some(query)
        }
        _ => None,
    }
}

/// The operator of `OPERATOR(pg_catalog.~)`.
pub(super) fn named_operator(parts: &[String]) -> Option<BinaryOperator> {
    use BinaryOperator as B;
    let sign = match parts {
        [sign] => sign,
        [schema, sign] if schema == "pg_catalog" => sign,
        _ => return None,
    };
    Some(match sign.as_str() {
        "=" => B::Eq,
        "<>" | "!=" => B::NotEq,
        "<" => B::Lt,
        "<=" => B::LtEq,
        ">" => B::Gt,
        ">=" => B::GtEq,
        "+" => B::Plus,
        "-" => B::Minus,
        "*" => B::Multiply,
        "/" => B::Divide,
        "%" => B::Modulo,
        "||" => B::StringConcat,
        "~~" => B::PGLikeMatch,
        "~~*" => B::PGILikeMatch,
        "!~~" => B::PGNotLikeMatch,
        "!~~*" => B::PGNotILikeMatch,
        "->" => B::Arrow,
        "->>" => B::LongArrow,
        "~" => B::PGRegexMatch,
        "~*" => B::PGRegexIMatch,
        "!~" => B::PGRegexNotMatch,
        "!~*" => B::PGRegexNotIMatch,
        _ => return None,
    })
}

/// The comparison that an operator is.
pub(super) fn comparison_of(operator: &BinaryOperator) -> Option<Comparison> {
    use BinaryOperator as B;
    Some(match operator {
        B::Eq => Comparison::Equal,
        B::NotEq => Comparison::NotEqual,
        B::Lt => Comparison::Less,
        B::LtEq => Comparison::LessEqual,
        B::Gt => Comparison::Greater,
        B::GtEq => Comparison::GreaterEqual,
        B::PGCustomBinaryOperator(parts) => {
            return named_operator(parts).as_ref().and_then(comparison_of);
        }
        _ => return None,
    })
}

fn call(function: CatalogFunction, arguments: Vec<Expr>) -> Expr {
    Expr::Call {
        function: Builtin::Catalog(function),
        arguments: arguments.into(),
    }
}

/// `(record).column`.
fn field(binder: &Binder<'_>, record: Bound, name: &str) -> Result<Bound> {
    let ty = record.ty.unwrap_or(Type::Text);
    let known = (ty == Type::Record).then_some(record.typmod);
    let Some(fields) = known.and_then(|typmod| binder.record_columns(typmod)) else {
        let message = format!(
            "column notation .{name} applied to type {}, which is not a composite type",
            binder.name_of(Some(ty))
        );
        return Err(SqlError::new(sqlstate::WRONG_OBJECT_TYPE, message));
    };
    let found = (0u16..).zip(fields).find(|(_, (own, ..))| own == name);
    let Some((number, &(_, ty, typmod))) = found else {
        let message = format!("could not identify column \"{name}\" in record data type");
        return Err(SqlError::new(sqlstate::UNDEFINED_COLUMN, message));
    };
    let expr = match taken_apart(&record.expr) {
        // It need not be made to be taken apart.
        Some((None, arguments)) => arguments[usize::from(number)].clone(),
        _ => call(CatalogFunction::Field(number, ty), vec![record.expr]),
    };
    Ok(Bound {
        expr,
        ty: Some(ty),
        typmod,
        start: None,
    })
}

/// There is no type of arrays of records, and of nothing.
///
/// # Errors
/// `0A000`, `42704`.
fn no_records(element: Type) -> Result<()> {
    match element {
        Type::Record => Err(SqlError::unsupported("an array of records")),
        Type::Void => {
            let text = "could not find array type for data type void";
            Err(SqlError::new(sqlstate::UNDEFINED_OBJECT, text))
        }
        _ => Ok(()),
    }
}

impl Binder<'_> {
    /// `ARRAY(SELECT …)`.
    pub(super) fn array_of(&mut self, query: &ast::Query) -> Result<Bound> {
        // The type of the elements is known when the query is bound.
        let (number, ty) = self.subquery(query, SubqueryKind::Array(Type::Text))?;
        let (element, _) = ty.ok_or_else(|| SqlError::internal("an array without type"))?;
        no_records(element)?;
        if let Some(subquery) = self.subqueries.last_mut() {
            subquery.kind = SubqueryKind::Array(element);
        }
        Ok(Bound::new(Expr::Subquery(number), element.gathered()))
    }

    /// `ARRAY[…]`.
    pub(super) fn array(&mut self, array: &ast::Array) -> Result<Bound> {
        self.array_as(array, None)
    }

    /// The same where it is cast: each item is, to the elements that it is cast to, or to the array where items are arrays.
    pub(super) fn array_as(&mut self, array: &ast::Array, element: Option<Type>) -> Result<Bound> {
        let mut items = Vec::with_capacity(array.elem.len());
        for item in &array.elem {
            items.push(match (item, element) {
                (ast::Expr::Array(inner), Some(_)) => self.array_as(inner, element)?,
                _ => self.expr(item)?,
            });
        }
        let nested = items
            .iter()
            .any(|item| item.ty.is_some_and(|ty| ty.element().is_some()));
        if let Some(element) = element {
            let ty = if nested { element.array() } else { element };
            for item in &mut items {
                let bound = std::mem::replace(item, Bound::new(Expr::Const(Value::Null), ty));
                *item = self.cast(bound, ty, Typmod::NONE)?;
            }
        }
        if nested {
            return self.array_of_arrays(items);
        }
        if items.is_empty() && element.is_none() {
            let text = "cannot determine type of empty array";
            let hint = "Explicitly cast to the desired type, for example ARRAY[]::integer[].";
            let error = SqlError::new(sqlstate::INDETERMINATE_DATATYPE, text);
            return Err(error.with_hint(hint));
        }
        let (items, element, typmod) = self.unify("ARRAY", items)?;
        no_records(element)?;
        let constants: Option<Vec<Value>> = items
            .iter()
            .map(|item| match item {
                Expr::Const(value) => Some(value.clone()),
                _ => None,
            })
            .collect();
        let expr = match constants {
            Some(values) => Expr::Const(Value::Array(vellum_row::Array::list(element, &values)?)),
            None => call(CatalogFunction::MakeArray(element), items),
        };
        Ok(Bound {
            expr,
            ty: Some(element.array()),
            typmod,
            start: None,
        })
    }

    /// `ARRAY[…]::oidvector`. No array that is not written item by item can be cast so.
    ///
    /// # Errors
    /// `42846` for an array of arrays, and as expressions.
    pub(super) fn vector(&mut self, array: &ast::Array, ty: Type) -> Result<Bound> {
        let element = ty.element().unwrap_or(Type::Oid);
        let made = self.array_as(array, Some(element))?;
        let expr = match made.expr {
            Expr::Const(Value::Array(items)) if items.as_ref().dimensions().count() < 2 => {
                let items: Vec<Value> = items.as_ref().items().collect();
                Expr::Const(Value::Array(vellum_row::Array::vector(element, &items)))
            }
            Expr::Call {
                function: Builtin::Catalog(CatalogFunction::MakeArray(element)),
                arguments,
            } => Expr::Call {
                function: Builtin::Catalog(CatalogFunction::MakeVector(element)),
                arguments,
            },
            _ => {
                let (from, to) = (self.name_of(made.ty), self.name_of(Some(ty)));
                let message = format!("cannot cast type {from} to {to}");
                return Err(SqlError::new(sqlstate::CANNOT_COERCE, message));
            }
        };
        Ok(Bound::new(expr, ty))
    }

    /// `ARRAY[ARRAY[…], …]`: one dimension more than its parts have.
    fn array_of_arrays(&mut self, items: Vec<Bound>) -> Result<Bound> {
        let elements: Vec<Bound> = items
            .iter()
            .filter_map(|item| item.ty.and_then(Type::element))
            .map(|element| Bound::new(Expr::Const(Value::Null), element))
            .collect();
        let element = self.common_type("ARRAY", &elements)?;
        let mut arguments = Vec::with_capacity(items.len());
        for item in items {
            arguments.push(self.coerce(
                item,
                element.array(),
                Typmod::NONE,
                CastContext::Implicit,
            )?);
        }
        Ok(Bound::new(
            call(CatalogFunction::NestArrays(element), arguments),
            element.array(),
        ))
    }

    /// `jsonb['key'][number]`.
    fn json_subscript(&mut self, root: Bound, chain: &[ast::AccessExpr]) -> Result<Bound> {
        let mut path = Vec::with_capacity(chain.len());
        for access in chain {
            let ast::AccessExpr::Subscript(ast::Subscript::Index { index }) = access else {
                let text = "jsonb subscript does not support slices";
                return Err(SqlError::new(sqlstate::DATATYPE_MISMATCH, text));
            };
            let index = self.expr(index)?;
            path.push(self.coerce(index, Type::Text, Typmod::NONE, CastContext::Assignment)?);
        }
        let path = call(CatalogFunction::MakeArray(Type::Text), path);
        let path = Bound::new(path, Type::Text.array());
        self.scalar_operator("#>", vec![root, path])
    }

    /// `value <operator> ANY (array or query)`, or ALL.
    pub(super) fn quantified(
        &mut self,
        left: &ast::Expr,
        operator: &BinaryOperator,
        right: &ast::Expr,
        quantifier: Quantifier,
    ) -> Result<Bound> {
        let shown = operator.to_string();
        let Some(comparison) = comparison_of(operator) else {
            return self.each_of(left, operator, right, quantifier);
        };
        let mut inner = right;
        while let ast::Expr::Nested(next) = inner {
            inner = next;
        }
        if let ast::Expr::Subquery(query) = inner {
            let negated = match (comparison, quantifier) {
                (Comparison::Equal, Quantifier::Any) => false,
                (Comparison::NotEqual, Quantifier::All) => true,
                _ => {
                    let operands = row_of(left).unwrap_or_else(|| vec![left]);
                    let test = match quantifier {
                        Quantifier::Any => RowTest::Any,
                        Quantifier::All => RowTest::All,
                    };
                    return self.row_with_query(&operands, operator, query, test);
                }
            };
            let node = ast::Expr::InSubquery {
                expr: Box::new(left.clone()),
                subquery: query.clone(),
                negated,
            };
            return self.expr(&node);
        }
        let (value, array) = (self.expr(left)?, self.expr(inner)?);
        let element = match array.ty {
            None => value.ty.unwrap_or(Type::Text),
            Some(ty) => ty.element().ok_or_else(|| {
                let text = "op ANY/ALL (array) requires array on right side";
                SqlError::new(sqlstate::WRONG_OBJECT_TYPE, text)
            })?,
        };
        let ty = comparison_type(value.ty, Some(element))
            .ok_or_else(|| self.no_operator(&shown, value.ty, Some(element)))?;
        let value = self.compared_as(value, ty)?;
        // Elements that compare with the value as they are stay as they are.
        let same = ty == element
            || ty.is_integer() && element.is_integer()
            || ty.is_plain_text() && element.is_plain_text()
            || ty.is_oid() && element.is_oid()
            || ty.is_network() && element.is_network();
        let array_ty = if same {
            array.ty.unwrap_or(ty.array())
        } else {
            ty.array()
        };
        let array = self.coerce(array, array_ty, Typmod::NONE, CastContext::Implicit)?;
        let negated = match (comparison, quantifier) {
            (Comparison::Equal, Quantifier::Any) => false,
            (Comparison::NotEqual, Quantifier::All) => true,
            _ => {
                let function = CatalogFunction::AnyOf(comparison, quantifier);
                return Ok(Bound::new(call(function, vec![value, array]), Type::Bool));
            }
        };
        let among = Expr::Among {
            operand: Box::new(value),
            array: Searched::new(array),
            negated,
        };
        Ok(Bound::new(among, Type::Bool))
    }

    /// `value <operator> ANY (ARRAY[…])` of an operator that compares nothing: LIKE, patterns.
    pub(super) fn each_of(
        &mut self,
        left: &ast::Expr,
        operator: &BinaryOperator,
        right: &ast::Expr,
        quantifier: Quantifier,
    ) -> Result<Bound> {
        let mut inner = right;
        while let ast::Expr::Nested(next) = inner {
            inner = next;
        }
        let ast::Expr::Array(array) = inner else {
            return self.like_any(left, operator, inner, quantifier);
        };
        let value = self.expr(left)?;
        let (value, once) = value.held();
        let mut all = Vec::with_capacity(array.elem.len());
        for item in &array.elem {
            let item = self.expr(item)?;
            let value = self.again(&value);
            all.push(self.binary(operator, value, item)?.expr);
        }
        let all = all.into_boxed_slice();
        let expr = match quantifier {
            Quantifier::Any => Expr::Or(all),
            Quantifier::All => Expr::And(all),
        };
        Ok(Bound::new(holding(expr, once), Type::Bool))
    }

    /// `array[i]`, `json['key']` is none.
    pub(super) fn subscript(
        &mut self,
        root: &ast::Expr,
        chain: &[ast::AccessExpr],
    ) -> Result<Bound> {
        let mut chain = chain;
        let mut root = match root {
            // `table.column[i]` comes as a field of `table`.
            ast::Expr::Identifier(table) => {
                let mut names = vec![table.clone()];
                while let [ast::AccessExpr::Dot(ast::Expr::Identifier(name)), rest @ ..] = chain {
                    names.push(name.clone());
                    chain = rest;
                }
                self.expr(&match names.as_slice() {
                    [name] => ast::Expr::Identifier(name.clone()),
                    _ => ast::Expr::CompoundIdentifier(names),
                })?
            }
            root => self.expr(root)?,
        };
        while let [ast::AccessExpr::Dot(ast::Expr::Identifier(name)), rest @ ..] = chain {
            root = field(self, root, &folded(name))?;
            chain = rest;
        }
        if chain.is_empty() {
            return Ok(root);
        }
        if root.ty == Some(Type::Jsonb) {
            return self.json_subscript(root, chain);
        }
        let slices = |access: &ast::AccessExpr| {
            matches!(
                access,
                ast::AccessExpr::Subscript(ast::Subscript::Slice { .. })
            )
        };
        if chain.iter().any(slices) && root.ty.and_then(Type::element).is_some() {
            return self.slice(root, chain);
        }
        if let (Some(Type::Name), [ast::AccessExpr::Subscript(ast::Subscript::Index { index })]) =
            (root.ty, chain)
        {
            return self.letter(root, index);
        }
        let element = root.ty.and_then(Type::element).ok_or_else(|| {
            let name = self.name_of(root.ty);
            let message =
                format!("cannot subscript type {name} because it does not support subscripting");
            SqlError::new(sqlstate::DATATYPE_MISMATCH, message)
        })?;
        let mut arguments = vec![root.expr];
        for access in chain {
            let ast::AccessExpr::Subscript(ast::Subscript::Index { index }) = access else {
                return Err(SqlError::unsupported("this form of a subscript"));
            };
            let index = self.expr(index)?;
            let index = self.coerce(index, Type::Int4, Typmod::NONE, CastContext::Assignment)?;
            arguments.push(index);
        }
        Ok(Bound::new(
            call(CatalogFunction::Subscript, arguments),
            element,
        ))
    }

    /// `name[i]`: names are arrays of `"char"`, whose first subscript is 0. Behind the end, where PostgreSQL has zeros, is nothing.
    fn letter(&mut self, name: Bound, index: &ast::Expr) -> Result<Bound> {
        let index = self.expr(index)?;
        let index = self.coerce(index, Type::Int4, Typmod::NONE, CastContext::Assignment)?;
        let index = Bound::new(index, Type::Int4);
        let one = || Bound::new(Expr::Const(Value::Int4(1)), Type::Int4);
        let place = self.binary(&ast::BinaryOperator::Plus, index, one())?;
        let text = self.coerce(name, Type::Text, Typmod::NONE, CastContext::Implicit)?;
        let text = Bound::new(text, Type::Text);
        let letter = self.call("substr", vec![text, place, one()])?;
        self.cast(letter, Type::SingleChar, Typmod::NONE)
    }

    /// `array[a:b][c:d]`.
    fn slice(&mut self, root: Bound, chain: &[ast::AccessExpr]) -> Result<Bound> {
        let mut subscripts = Vec::with_capacity(chain.len());
        for access in chain {
            let ast::AccessExpr::Subscript(subscript) = access else {
                return Err(SqlError::unsupported("this form of a subscript"));
            };
            subscripts.push(subscript.clone());
        }
        let mut arguments = vec![root];
        arguments.extend(self.slice_bounds(&subscripts)?);
        self.scalar_operator("%slice", arguments)
    }

    /// Which bounds of `[a:b][c:d]` were left out, then the bounds. Where one is a slice, a number alone is one from 1 on.
    pub(super) fn slice_bounds(&mut self, subscripts: &[ast::Subscript]) -> Result<Vec<Bound>> {
        const DIMENSIONS: usize = 6;
        if subscripts.len() > DIMENSIONS {
            let message = format!(
                "number of array dimensions ({}) exceeds the maximum allowed ({DIMENSIONS})",
                subscripts.len()
            );
            return Err(SqlError::new(sqlstate::PROGRAM_LIMIT_EXCEEDED, message));
        }
        let mut left_out = 0;
        let mut bounds = Vec::with_capacity(2 * subscripts.len());
        let one = Expr::Const(Value::Int4(1));
        for (number, subscript) in subscripts.iter().enumerate() {
            let (lower, upper) = match subscript {
                ast::Subscript::Slice {
                    lower_bound,
                    upper_bound,
                    stride: None,
                } => (lower_bound.as_ref(), upper_bound.as_ref()),
                ast::Subscript::Index { index } => {
                    bounds.push(one.clone());
                    (None, Some(index))
                }
                ast::Subscript::Slice { .. } => {
                    return Err(SqlError::unsupported("this form of a subscript"));
                }
            };
            let slice = bounds.len() == 2 * number;
            for (bound, bit) in [(lower, 0), (upper, 1)]
                .into_iter()
                .skip(usize::from(!slice))
            {
                bounds.push(match bound {
                    Some(bound) => {
                        let bound = self.expr(bound)?;
                        let context = CastContext::Assignment;
                        self.coerce(bound, Type::Int4, Typmod::NONE, context)?
                    }
                    None => {
                        left_out |= 1 << (2 * number + bit);
                        one.clone()
                    }
                });
            }
        }
        let left_out = Expr::Const(Value::Int4(left_out));
        let all = std::iter::once(left_out).chain(bounds);
        Ok(all.map(|bound| Bound::new(bound, Type::Int4)).collect())
    }

    /// `json -> key`, or `->>`: a field by its name, an element by its number.
    pub(super) fn json_get(&mut self, left: Bound, right: Bound, as_text: bool) -> Result<Bound> {
        let sign = if as_text { "->>" } else { "->" };
        let (json, key) = (left.ty, right.ty);
        let Some(json) = json.filter(|ty| matches!(ty, Type::Json | Type::Jsonb)) else {
            return Err(self.no_operator(sign, json, key));
        };
        let wanted = match key {
            Some(ty) if ty.is_integer() => Type::Int4,
            _ => Type::Text,
        };
        let bound = self.coerce(right, wanted, Typmod::NONE, CastContext::Implicit);
        let bound = bound.map_err(|_| self.no_operator(sign, Some(json), key))?;
        let ty = if as_text { Type::Text } else { json };
        let arguments = vec![left.expr, bound];
        Ok(Bound::new(
            call(CatalogFunction::JsonGet { as_text }, arguments),
            ty,
        ))
    }

    /// JSON of a value.
    ///
    /// # Errors
    /// `42804` for what has no type.
    pub(super) fn json_of(&mut self, bound: Bound, binary: bool) -> Result<Bound> {
        if bound.ty.is_none() {
            return Err(no_polymorphic_type());
        }
        let function = CatalogFunction::ToJson { binary };
        Ok(Bound::new(
            call(function, vec![self.jsonable(bound)?]),
            json_type(binary),
        ))
    }

    /// A JSON object or array of the arguments, each as its type says.
    pub(super) fn json_build(&mut self, name: &str, arguments: Vec<Bound>) -> Result<Bound> {
        let (object, binary) = (name.ends_with("object"), name.starts_with("jsonb"));
        if object && arguments.len() % 2 == 1 {
            let text = "argument list must have even number of elements";
            let hint =
                format!("The arguments of {name}() must consist of alternating keys and values.");
            return Err(SqlError::new(sqlstate::INVALID_PARAMETER_VALUE, text).with_hint(hint));
        }
        let mut settled = Vec::with_capacity(arguments.len());
        for argument in arguments {
            settled.push(self.jsonable(argument)?);
        }
        let function = CatalogFunction::JsonBuild { object, binary };
        Ok(Bound::new(call(function, settled), json_type(binary)))
    }

    /// `||` where a side is an array.
    pub(super) fn concat_arrays(&mut self, left: Bound, right: Bound) -> Result<Bound> {
        let of = |bound: &Bound| bound.ty.filter(|ty| ty.element().is_some());
        let (name, arguments) = match (of(&left), of(&right)) {
            (Some(_), Some(_)) => ("array_cat", vec![left, right]),
            (Some(_), None) if left.ty.is_some() && right.ty.is_some() => {
                ("array_append", vec![left, right])
            }
            (None, Some(_)) if left.ty.is_some() => ("array_prepend", vec![left, right]),
            // A literal beside an array is one.
            _ => ("array_cat", vec![left, right]),
        };
        self.call(name, arguments)
    }

    /// Casts from text to oids that are shown as names, and back: the catalog does them. `None` for all others.
    pub(super) fn coerce_reg(
        &mut self,
        bound: &Bound,
        (ty, typmod): (Type, Typmod),
        context: CastContext,
    ) -> Result<Option<Expr>> {
        let from = bound.ty;
        // The client reads a parameter's name as one.
        if from.is_none() && matches!(bound.expr, Expr::Param(_)) {
            return Ok(None);
        }
        // A text becomes a relation by itself, and nothing else.
        if from.is_some_and(|from| cast_between(from, ty).is_none_or(|least| least > context)) {
            return Ok(None);
        }
        let from_text = from.is_none_or(|from| from.category() == 'S');
        if ty.is_reg() && from_text {
            if let Expr::Const(value) = &bound.expr {
                return match value.as_ref().as_str() {
                    Some(text) if ty == Type::Regclass && !self.shows => {
                        Ok(self.relation_oid(text)?)
                    }
                    Some(_) => Ok(Some(self.reg_of(bound, ty)?)),
                    None => Ok(None),
                };
            }
            return Ok(Some(self.reg_of(bound, ty)?));
        }
        if let (Type::Array(element), Expr::Const(value)) = (ty, &bound.expr)
            && element.ty().is_reg()
            && from_text
            && let Some(text) = value.as_ref().as_str()
            && !self.shows
        {
            return self.reg_array(text, element.ty()).map(Some);
        }
        let is_text = |ty: Type| ty.category() == 'S';
        if let Type::Array(element) = ty
            && element.ty().is_reg()
            && (from_text || from.and_then(Type::element).is_some_and(is_text))
            && !matches!(bound.expr, Expr::Const(Value::Null))
        {
            // Each is looked up.
            let names = Type::Text.array();
            let names = self.coerce(bound.clone(), names, Typmod::NONE, CastContext::Explicit)?;
            let oids = call(CatalogFunction::RegOf(element.ty()), vec![names]);
            return Ok(Some(oids));
        }
        let Some(own) = from.filter(|_| context != CastContext::Implicit) else {
            return Ok(None);
        };
        if !is_text(ty) && !ty.element().is_some_and(is_text) {
            return Ok(None);
        }
        let form = self.form_of(own, bound.typmod);
        let text = match (form, own.element(), ty.element()) {
            (form, ..) if !form.makes_text() => return Ok(None),
            (_, None, Some(_)) => return Ok(None),
            (Form::Name(from), _, None) => {
                let text = call(CatalogFunction::RegText(from), vec![bound.expr.clone()]);
                Bound::new(text, Type::Text)
            }
            (form, ..) => self.shown(bound.clone(), own, form),
        };
        self.coerce(text, ty, typmod, context).map(Some)
    }

    /// The array of oids that a literal names.
    ///
    /// # Errors
    /// `22P02`; those of each name; `0A000` for arrays of arrays.
    fn reg_array(&mut self, text: &str, element: Type) -> Result<Expr> {
        let names = Type::Text.array();
        let read = vellum_row::input(names, Typmod::NONE, text, self.settings)?;
        let ValueRef::Array(array) = read.as_ref() else {
            return Err(SqlError::internal("no array"));
        };
        if array.dimensions().count() > 1 {
            return Err(SqlError::unsupported("an array of arrays of names"));
        }
        let mut items = Vec::with_capacity(array.len());
        for name in array.items() {
            let name = Bound {
                expr: Expr::Const(name),
                ty: None,
                typmod: Typmod::NONE,
                start: None,
            };
            items.push(self.coerce(name, element, Typmod::NONE, CastContext::Implicit)?);
        }
        Ok(call(CatalogFunction::MakeArray(element), items))
    }

    fn reg_of(&mut self, bound: &Bound, ty: Type) -> Result<Expr> {
        let operand = Bound {
            expr: bound.expr.clone(),
            ty: bound.ty,
            typmod: bound.typmod,
            start: None,
        };
        let text = self.coerce(operand, Type::Text, Typmod::NONE, CastContext::Implicit)?;
        Ok(call(CatalogFunction::RegOf(ty), vec![text]))
    }

    /// The oid of a relation whose name is a constant: it is good as long as the image of the catalog.
    fn relation_oid(&mut self, text: &str) -> Result<Option<Expr>> {
        let constant = |oid: u32| Ok(Some(Expr::Const(Value::Oid(oid))));
        if text == "-" {
            return constant(0);
        }
        if let Some(oid) = number_in(text)? {
            return constant(oid);
        }
        let missing = || {
            let message = format!("relation \"{text}\" does not exist");
            SqlError::new(sqlstate::UNDEFINED_TABLE, message)
        };
        let parts = crate::names::parts(text)
            .ok_or_else(|| SqlError::new(sqlstate::INVALID_NAME, "invalid name syntax"))?;
        let named = match parts.as_slice() {
            [name] => {
                let mut path = self.search_path.iter();
                path.find_map(|schema| self.catalog.named(*schema, name))
            }
            [schema, name] | [_, schema, name] => {
                let namespace = self.catalog.namespace(schema);
                if self.view_depth == 0 && !self.kept {
                    self.looks_into.extend(namespace.map(|own| own.oid));
                }
                namespace.and_then(|namespace| self.catalog.named(namespace.oid, name))
            }
            [] => None,
            _ => {
                let message = format!("improper relation name (too many dotted names): {text}");
                return Err(SqlError::syntax(message));
            }
        };
        match named.ok_or_else(missing)? {
            Named::Relation(oid) => constant(oid),
            Named::Index { index, .. } => constant(index),
        }
    }
}

fn json_type(binary: bool) -> Type {
    if binary { Type::Jsonb } else { Type::Json }
}
