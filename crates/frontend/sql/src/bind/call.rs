//! Calls of functions: what a name means for its arguments.

use super::extension::functions_reached;
use super::types::folded;
use super::{Binder, Bound};
use crate::error::{Result, SqlError};
use crate::expr::{Builtin, Expr, Signature, ambiguous, as_called, find_scalar};
use crate::plan::SetFunction;
use crate::sqlstate;
use sqlparser::ast::{self, BinaryOperator};
use vellum_row::{CastContext, Settings, Type, Typmod, Value, cast_between};

/// Where they stand is said by who binds that.
const NO_SETS: &str = "set-returning functions are not allowed here";

impl Binder<'_> {
    /// What a word means that is called without parentheses; `digits` are those of a time.
    ///
    /// # Errors
    /// `42601` for digits that are no constant, or where none can be; those of [`Typmod::of_fraction`].
    pub(super) fn word(&mut self, name: &str, digits: &[Bound]) -> Result<Option<Bound>> {
        let Some((function, ty)) = Builtin::of_word(name) else {
            return Ok(None);
        };
        let expr = Expr::Call {
            function,
            arguments: Box::default(),
        };
        let bound = Bound::new(expr, ty);
        let digits = match (digits, ty) {
            ([], _) => return Ok(Some(bound)),
            ([digits], Type::Time | Type::Timestamp | Type::Timestamptz) => &digits.expr,
            _ => return Ok(None),
        };
        let Expr::Const(digits) = digits else {
            return Err(SqlError::syntax("a number of digits that is no constant"));
        };
        let typmod = Typmod::of_fraction(ty, digits.as_ref().as_i64().unwrap_or(-1).min(6))?;
        self.cast(bound, ty, typmod).map(Some)
    }

    pub(super) fn call(&mut self, name: &str, mut arguments: Vec<Bound>) -> Result<Bound> {
        let any_from = match name {
            "concat" | "num_nulls" | "num_nonnulls" | "pg_typeof" | "pg_column_size"
            | "pg_collation_for" => 0,
            "concat_ws" | "format" => 1,
            _ => arguments.len(),
        };
        for argument in arguments.iter_mut().skip(any_from) {
            let bound = std::mem::replace(argument, Bound::new(Expr::Held, Type::Text));
            *argument = self.undecided(bound);
        }
        if let Some(bound) = self.domain_typeof(name, &arguments) {
            return Ok(bound);
        }
        self.texts_of_any(name, &mut arguments);
        if let ("nextval" | "currval" | "setval", Some(first)) = (name, arguments.first_mut()) {
            self.sequence_by_param(first)?;
        }
        match (name, arguments.len()) {
            ("coalesce" | "greatest" | "least", 1..) => {
                if let Some(bound) = self.choice(name, arguments)? {
                    return Ok(bound);
                }
                return Err(self.no_function(name, &[]));
            }
            ("nullif", 2) => {
                let mut arguments = arguments.into_iter();
                if let (Some(left), Some(right)) = (arguments.next(), arguments.next()) {
                    return self.null_if(left, right);
                }
                return Err(self.no_function(name, &[]));
            }
            (
                "json_build_object" | "jsonb_build_object" | "json_build_array"
                | "jsonb_build_array",
                _,
            ) => return self.json_build(name, arguments),
            ("to_json" | "to_jsonb", 1) => {
                if let Some(argument) = arguments.into_iter().next() {
                    return self.json_of(argument, name == "to_jsonb");
                }
                return Err(self.no_function(name, &[]));
            }
            ("row_to_json", 1) => {
                if let Some(argument) = arguments.into_iter().next() {
                    if argument.ty != Some(Type::Record) {
                        return Err(self.no_function(name, &[argument.ty]));
                    }
                    return self.json_of(argument, false);
                }
                return Err(self.no_function(name, &[]));
            }
            ("row_to_json", 2) => {
                let types: Vec<_> = arguments.iter().map(|own| own.ty).collect();
                let mut arguments = arguments.into_iter();
                if let (Some(row), Some(lines)) = (arguments.next(), arguments.next())
                    && row.ty == Some(Type::Record)
                {
                    let json = self.json_of(row, false)?;
                    return self.scalar_operator("%json_lines", vec![json, lines]);
                }
                return Err(self.no_function(name, &types));
            }
            ("localtime" | "localtimestamp" | "current_timestamp", 0 | 1) => {
                if let Some(bound) = self.word(name, &arguments)? {
                    return Ok(bound);
                }
            }
            ("enum_first" | "enum_last", 1) | ("enum_range", 1 | 2) => {
                return self.enum_function(name, arguments);
            }
            ("pg_collation_for", 1) => return self.collation_for(&arguments[0]),
            ("pg_column_size", 1) => {
                if let Some(argument) = arguments.into_iter().next() {
                    return self.column_size(argument);
                }
                return Err(self.no_function(name, &[]));
            }
            ("mod", 2) => {
                let mut arguments = arguments.into_iter();
                if let (Some(left), Some(right)) = (arguments.next(), arguments.next()) {
                    return self.binary(&BinaryOperator::Modulo, left, right);
                }
                return Err(self.no_function(name, &[]));
            }
            _ => {}
        }
        let types: Vec<Option<Type>> = arguments.iter().map(|argument| argument.ty).collect();
        // Operators and what the binder calls stand in the same tables, under names that no function has.
        if !name.starts_with(|first: char| first.is_alphabetic() || first == '_') {
            return Err(self.no_function(name, &types));
        }
        let is_param = matches!(
            &arguments[..],
            [Bound {
                expr: Expr::Param(_),
                ty: None,
                ..
            }]
        );
        match (type_called(name), &types[..]) {
            (Some(ty), [None]) if !is_param => return self.cast_by_name(name, ty, arguments),
            (Some(ty), [None]) if !matches!(name, "cidr" | "date") => {
                return self.cast_param_by_name(name, ty, arguments);
            }
            _ => {}
        }
        // Of a pattern only `substring` takes a part.
        let by_place = name == "substr" && types.len() == 2 && types[1].is_none();
        if !by_place && let Some(signature) = find_scalar(name, &types)? {
            return match name {
                "array_prepend" | "array_fill" => self.of_elements(name, signature, arguments),
                "array_append" => self.appended(signature, arguments),
                _ => self.called(signature, arguments),
            };
        }
        let Some(signature) = Builtin::find(name, &types) else {
            if let Some(ty) = type_called(name).filter(|_| types.len() == 1) {
                return self.cast_by_name(name, ty, arguments);
            }
            let all = functions_reached(self.catalog, self.search_path, None, name);
            let called = self.call_of_extension(&all, arguments, true)?;
            return called.ok_or_else(|| self.no_function(name, &types));
        };
        let arguments = arguments
            .into_iter()
            .zip(&signature.arguments)
            .map(|(argument, ty)| {
                let fits = argument.ty.is_none_or(|own| {
                    own == *ty
                        || cast_between(own, *ty) == Some(CastContext::Implicit)
                        || name == "concat"
                });
                if !fits {
                    return Err(self.no_function(name, &types));
                }
                match argument.ty {
                    Some(_) if name == "concat" => Ok(argument.expr),
                    _ => self.coerce(argument, *ty, Typmod::NONE, CastContext::Implicit),
                }
            })
            .collect::<Result<Box<[_]>>>()?;
        let expr = Expr::Call {
            function: signature.function,
            arguments,
        };
        Ok(Bound::new(expr, signature.result))
    }

    /// A cast that is written as a call.
    fn cast_by_name(&mut self, name: &str, ty: Type, arguments: Vec<Bound>) -> Result<Bound> {
        let types: Vec<_> = arguments.iter().map(|argument| argument.ty).collect();
        let fits = |own| own == ty || cast_between(own, ty).is_some();
        match arguments.into_iter().next() {
            Some(argument) if argument.ty.is_none_or(fits) => {
                let expr = self.coerce(argument, ty, Typmod::NONE, CastContext::Explicit)?;
                Ok(Bound::new(expr, ty))
            }
            _ => Err(self.no_function(name, &types)),
        }
    }

    /// The same of a parameter without a type: unlike a literal it is not what the name says, but what PostgreSQL's functions of the name take.
    ///
    /// # Errors
    /// `42725` where several do, `42883` where none does.
    fn cast_param_by_name(&mut self, name: &str, ty: Type, arguments: Vec<Bound>) -> Result<Bound> {
        let taken = match name {
            "bpchar" | "name" | "text" => ty,
            "oid" => Type::Int8,
            "regclass" => Type::Text,
            "bool" | "float4" | "float8" | "int2" | "int4" | "int8" | "timestamptz" => {
                return Err(ambiguous(name, &[None]));
            }
            _ => return Err(self.no_function(name, &[None])),
        };
        let mut all = Vec::with_capacity(1);
        for argument in arguments {
            let param = self.coerce(argument, taken, Typmod::NONE, CastContext::Implicit)?;
            all.push(Bound::new(param, taken));
        }
        self.cast_by_name(name, ty, all)
    }

    /// A parameter that names a sequence is a `regclass`: the client's text is looked up when it is run.
    fn sequence_by_param(&mut self, argument: &mut Bound) -> Result<()> {
        if let (Expr::Param(_), None) = (&argument.expr, argument.ty) {
            let param = argument.clone();
            let sequence =
                self.coerce(param, Type::Regclass, Typmod::NONE, CastContext::Implicit)?;
            *argument = Bound::new(sequence, Type::Regclass);
        }
        Ok(())
    }

    /// `pg_column_size`, which is told how a value is held: a column's has a shorter header than one that is computed.
    fn column_size(&mut self, argument: Bound) -> Result<Bound> {
        if let (None, Expr::Const(Value::Text(text))) = (argument.ty, &argument.expr) {
            // Without a type it is held with a zero behind it.
            let bytes = i32::try_from(text.len() + 1).unwrap_or(i32::MAX);
            return Ok(Bound::new(Expr::Const(Value::Int4(bytes)), Type::Int4));
        }
        let how = match (argument.ty, &argument.expr) {
            (Some(Type::Name), _) => "name",
            (Some(Type::SingleChar), _) => "char",
            (_, Expr::Column { .. } | Expr::Outer { .. }) => "column",
            _ => "",
        };
        let how = Bound::new(Expr::Const(Value::text(how)), Type::Text);
        self.scalar_operator("%column_size", vec![argument, how])
    }

    /// `array_append`: a null array is an empty one, which tells the type of its elements.
    fn appended(&mut self, signature: Signature, arguments: Vec<Bound>) -> Result<Bound> {
        let element = signature.result.element();
        let mut called = self.called(signature, arguments)?;
        if let (Some(element), Expr::Call { arguments, .. }) = (element, &mut called.expr)
            && let Some(first) = arguments.first_mut()
        {
            let empty = Expr::Const(Value::Array(vellum_row::Array::of(element, &[])));
            let array = std::mem::replace(first, Expr::Const(Value::Null));
            *first = Expr::Coalesce([array, empty].into());
        }
        Ok(called)
    }

    /// A function that makes an array: it gets an empty one in front, for the type of its elements.
    fn of_elements(
        &mut self,
        name: &str,
        signature: Signature,
        arguments: Vec<Bound>,
    ) -> Result<Bound> {
        let array = signature.result;
        let Some(element) = array.element() else {
            return Err(SqlError::internal("an array without a type"));
        };
        let empty = Expr::Const(Value::Array(vellum_row::Array::of(element, &[])));
        let mut all = vec![Bound::new(empty, array)];
        for (argument, ty) in arguments.into_iter().zip(&signature.arguments) {
            let argument = self.coerce(argument, *ty, Typmod::NONE, CastContext::Implicit)?;
            all.push(Bound::new(argument, *ty));
        }
        self.scalar_operator(&format!("%{name}"), all)
    }

    /// A call of a function that fits its arguments.
    ///
    /// # Errors
    /// As [`Binder::coerce`].
    pub(super) fn called(&mut self, signature: Signature, arguments: Vec<Bound>) -> Result<Bound> {
        let arguments = arguments.into_iter().zip(&signature.arguments);
        let arguments = arguments
            .map(|(argument, ty)| self.coerce(argument, *ty, Typmod::NONE, CastContext::Implicit))
            .collect::<Result<Box<[_]>>>()?;
        let expr = Expr::Call {
            function: signature.function,
            arguments,
        };
        Ok(Bound::new(expr, signature.result))
    }

    /// `42883`.
    #[cold]
    pub(super) fn no_function(&self, name: &str, arguments: &[Option<Type>]) -> SqlError {
        if SetFunction::find(name).is_some() {
            // Where it may stand nobody asks for a value of its own.
            return SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, NO_SETS);
        }
        undefined(self.settings, name, arguments)
    }

    /// Binds the arguments of an aggregate or of a window function, in which no function may return a set.
    ///
    /// # Errors
    /// `0A000` for one that does; what `work` fails with.
    pub(super) fn without_sets<R>(
        &mut self,
        called: &str,
        work: impl FnOnce(&mut Self) -> Result<R>,
    ) -> Result<R> {
        let around = self.set_functions.take();
        let done = work(self);
        self.set_functions = around;
        done.map_err(|error| match error.message() == NO_SETS {
            true => error
                .worded(NO_SETS, &format!("{called} calls cannot contain set-returning function calls"))
                .with_hint("You might be able to move the set-returning function into a LATERAL FROM item."),
            false => error,
        })
    }
}

/// The type that a call of one argument casts to, `text(1)`. Names that the grammar keeps for types (`numeric`, `timestamp`) are none of functions.
fn type_called(name: &str) -> Option<Type> {
    Some(match name {
        "bool" => Type::Bool,
        "bpchar" => Type::Char,
        "bytea" => Type::Bytea,
        "cidr" => Type::Cidr,
        "date" => Type::Date,
        "float4" => Type::Float4,
        "float8" => Type::Float8,
        "inet" => Type::Inet,
        "int2" => Type::Int2,
        "int4" => Type::Int4,
        "int8" => Type::Int8,
        "json" => Type::Json,
        "jsonb" => Type::Jsonb,
        "name" => Type::Name,
        "oid" => Type::Oid,
        "regclass" => Type::Regclass,
        "regcollation" => Type::Regcollation,
        "regnamespace" => Type::Regnamespace,
        "regproc" => Type::Regproc,
        "regprocedure" => Type::Regprocedure,
        "regrole" => Type::Regrole,
        "regtype" => Type::Regtype,
        "text" => Type::Text,
        "timestamptz" => Type::Timestamptz,
        "uuid" => Type::Uuid,
        _ => return None,
    })
}

/// `42883`.
#[cold]
pub(crate) fn undefined(settings: &Settings, name: &str, arguments: &[Option<Type>]) -> SqlError {
    let types = arguments.iter();
    let types = types.map(|ty| ty.map_or("unknown".into(), |ty| settings.name_of(ty)));
    let types: Vec<_> = types.collect();
    let name = as_called(name);
    let message = format!("function {name}({}) does not exist", types.join(", "));
    SqlError::new(sqlstate::UNDEFINED_FUNCTION, message).with_hint(
        "No function matches the given name and argument types. You might need to add explicit type casts.",
    )
}

/// What `information_schema._pg_truetypid(a, t)` and `_pg_truetypmod(a, t)` are of a row of `pg_attribute` where there are no domains: a column of it.
pub(super) fn column_of_row(name: &str, arguments: &ast::FunctionArguments) -> Option<ast::Expr> {
    let column = match name {
        "_pg_truetypid" => "atttypid",
        "_pg_truetypmod" => "atttypmod",
        _ => return None,
    };
    let ast::FunctionArguments::List(list) = arguments else {
        return None;
    };
    let [ast::FunctionArg::Unnamed(row), _] = list.args.as_slice() else {
        return None;
    };
    let field = ast::Expr::Identifier(ast::Ident::new(column));
    let root = match row {
        ast::FunctionArgExpr::Expr(ast::Expr::QualifiedWildcard(name, _)) => {
            let parts = name.0.iter().filter_map(|part| part.as_ident().cloned());
            let own = std::iter::once(ast::Ident::new(column));
            return Some(ast::Expr::CompoundIdentifier(parts.chain(own).collect()));
        }
        ast::FunctionArgExpr::Expr(row) => Box::new(ast::Expr::Nested(Box::new(row.clone()))),
        _ => return None,
    };
    Some(ast::Expr::CompoundFieldAccess {
        root,
        access_chain: vec![ast::AccessExpr::Dot(field)],
    })
}

impl Binder<'_> {
    /// The arguments of a call, in the order of the function's parameters.
    ///
    /// # Errors
    /// Those of the arguments, and of [`in_order`].
    pub(super) fn arguments(
        &mut self,
        name: &str,
        list: &ast::FunctionArgumentList,
    ) -> Result<Vec<Bound>> {
        let mut arguments = Vec::new();
        let mut named: Vec<(String, Bound)> = Vec::new();
        for argument in &list.args {
            match argument {
                ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(expr)) => {
                    if let Some((ident, value)) = assigned(expr) {
                        named.push((folded(ident), self.expr(value)?));
                        continue;
                    }
                    if !named.is_empty() {
                        let text = "positional argument cannot follow named argument";
                        return Err(SqlError::syntax(text).at(self.place(expr)));
                    }
                    arguments.push(self.expr(expr)?);
                }
                ast::FunctionArg::Named {
                    name: ident,
                    arg: ast::FunctionArgExpr::Expr(expr),
                    ..
                }
                | ast::FunctionArg::ExprNamed {
                    name: ast::Expr::Identifier(ident),
                    arg: ast::FunctionArgExpr::Expr(expr),
                    ..
                } => named.push((folded(ident), self.expr(expr)?)),
                other => return Err(SqlError::unsupported(format!("the argument {other}"))),
            }
        }
        if !named.is_empty() {
            arguments = in_order(self.settings, name, arguments, named)?;
        }
        if !self.void_params.is_empty() {
            let void = &self.void_params;
            arguments.retain(
                |argument| !matches!(argument.expr, Expr::Param(number) if void.contains(&number)),
            );
        }
        Ok(arguments)
    }
}

/// `name := value` as an argument, which the parser takes for an operator.
fn assigned(argument: &ast::Expr) -> Option<(&ast::Ident, &ast::Expr)> {
    match argument {
        ast::Expr::BinaryOp {
            left,
            op: BinaryOperator::Assignment,
            right,
        } => match &**left {
            ast::Expr::Identifier(name) => Some((name, right)),
            _ => None,
        },
        _ => None,
    }
}

/// The names of a function's parameters, of one that has some.
pub(crate) fn parameters_of(name: &str) -> &'static [&'static str] {
    match name {
        "make_interval" => &["years", "months", "weeks", "days", "hours", "mins", "secs"],
        "make_date" => &["year", "month", "day"],
        "make_time" => &["hour", "min", "sec"],
        "make_timestamp" => &["year", "month", "mday", "hour", "min", "sec"],
        "make_timestamptz" => &["year", "month", "mday", "hour", "min", "sec", "timezone"],
        "jsonb_set" => &["jsonb_in", "path", "replacement", "create_if_missing"],
        "jsonb_insert" => &["jsonb_in", "path", "replacement", "insert_after"],
        "uuid_generate_v3" | "uuid_generate_v5" => &["namespace", "name"],
        _ => &[],
    }
}

/// The arguments of a call in the order of the function's parameters, with what stands for those that were left out.
///
/// # Errors
/// `42883` for a name that no parameter has.
fn in_order(
    settings: &Settings,
    name: &str,
    given: Vec<Bound>,
    named: Vec<(String, Bound)>,
) -> Result<Vec<Bound>> {
    let parameters = parameters_of(name);
    let types: Vec<Option<Type>> = given
        .iter()
        .chain(named.iter().map(|(_, bound)| bound))
        .map(|bound| bound.ty)
        .collect();
    let mut all: Vec<Option<Bound>> = given.into_iter().map(Some).collect();
    for (own, bound) in named {
        let at = parameters.iter().position(|parameter| *parameter == own);
        let at = at.ok_or_else(|| undefined(settings, name, &types))?;
        if all.len() <= at {
            all.resize(at + 1, None);
        }
        if all[at].replace(bound).is_some() {
            let message = format!("argument name \"{own}\" used more than once");
            return Err(SqlError::syntax(message));
        }
    }
    let zero = || Bound::new(Expr::Const(Value::Int4(0)), Type::Int4);
    let filled = all.into_iter().map(|bound| match bound {
        Some(bound) => Ok(bound),
        None if name == "make_interval" => Ok(zero()),
        None => Err(undefined(settings, name, &types)),
    });
    filled.collect()
}
