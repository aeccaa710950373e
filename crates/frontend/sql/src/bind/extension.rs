//! Calls of functions that extensions have, and how definitions name them.
//!
//! The text of a definition names such a function by its oid ([`kept_function`]), as it does types: so it goes on meaning the same whatever the search path is and wherever
//! the extension is moved. Such a name stands for all functions of one name: which of them is meant the types of the arguments say, each time the text is bound.

use super::clauses::check_plain;
use super::types::object_name;
use super::window::over_specified;
use super::{Binder, Bound};
use crate::catalog::{Catalog, Oid};
use crate::error::{Result, SqlError};
use crate::expr::{Builtin, Scalar, find_among};
use crate::extension;
use crate::names::quoted;
use crate::roles::Rights;
use crate::sqlstate;
use sqlparser::ast;
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::tokenizer::{Token, Tokenizer};
use vellum_row::Type;

/// In front of the oid in the name that a definition keeps.
const KEPT: &str = "function ";

/// How the text of a definition names a function of an extension.
pub(crate) fn kept_function(function: Scalar) -> ast::ObjectName {
    let own = ast::Ident::with_quote('"', format!("{KEPT}{}", function.entry().oid));
    ast::ObjectName::from(vec![ast::Ident::new("pg_catalog"), own])
}

/// The function that such a name stands for.
pub(crate) fn kept_function_of(schema: Option<&str>, name: &str) -> Option<Scalar> {
    let oid = name
        .strip_prefix(KEPT)
        .filter(|_| schema == Some("pg_catalog"))?;
    extension::function(oid.parse().ok()?)
}

/// The functions that a text names so, each once.
pub(crate) fn functions_in(sql: &str) -> Vec<Scalar> {
    if !sql.contains(KEPT) {
        return Vec::new();
    }
    let tokens = Tokenizer::new(&PostgreSqlDialect {}, sql).tokenize();
    let mut found = Vec::new();
    for token in tokens.unwrap_or_default() {
        if let Token::Word(word) = &token
            && word.quote_style.is_some()
            && let Some(own) = kept_function_of(Some("pg_catalog"), &word.value)
            && !found.contains(&own)
        {
            found.push(own);
        }
    }
    found
}

/// That a client's text does not call a function by the name that only definitions have for it: no right on its schema would be asked for.
///
/// # Errors
/// `42883`.
pub(crate) fn refuse_kept(sql: &str) -> Result<()> {
    if !sql.contains(KEPT) {
        return Ok(());
    }
    let tokens = Tokenizer::new(&PostgreSqlDialect {}, sql).tokenize();
    let mut words = tokens.unwrap_or_default();
    words.retain(|token| !matches!(token, Token::Whitespace(_)));
    for three in words.windows(3) {
        if let [Token::Word(schema), Token::Period, Token::Word(name)] = three
            && name.quote_style.is_some()
            && kept_function_of(Some(&schema.value.to_lowercase()), &name.value).is_some()
        {
            let message = format!("function pg_catalog.{} does not exist", quoted(&name.value));
            return Err(SqlError::new(sqlstate::UNDEFINED_FUNCTION, message));
        }
    }
    Ok(())
}

/// What a function is called where it is called, without its schema.
///
/// # Errors
/// As [`object_name`].
pub(crate) fn called_name(name: &ast::ObjectName) -> Result<String> {
    let (schema, name) = object_name(name)?;
    let kept = kept_function_of(schema.as_deref(), &name);
    Ok(kept.map_or(name, |own| own.entry().name.to_owned()))
}

/// The functions of extensions that a name may mean, in a schema or along the search path, where `pg_catalog` comes first.
pub(crate) fn functions_reached(
    catalog: &Catalog,
    search_path: &[Oid],
    schema: Option<&str>,
    name: &str,
) -> Vec<Scalar> {
    if let Some(kept) = kept_function_of(schema, name) {
        let same = |own: &Scalar| own.extension().map(|own| own.name);
        let all = extension::functions_named(kept.entry().name)
            .iter()
            .copied();
        let all = all.filter(|own| same(own) == same(&kept) && catalog.may_have_function(*own));
        return all.collect();
    }
    let all = extension::functions_named(name);
    if all.is_empty() {
        return Vec::new();
    }
    let namespace = schema.map(|schema| catalog.schema_named(schema, search_path));
    let is_hidden = |own: &Scalar| {
        let types = vec![None; own.entry().arguments().count()];
        Builtin::find(name, &types).is_some()
    };
    let all = all.iter().copied().filter(|own| {
        let place = catalog.extension_of(*own).map(|own| own.namespace);
        place.is_some_and(|place| match namespace {
            Some(namespace) => namespace == Some(place),
            None => search_path.contains(&place) && !is_hidden(own),
        })
    });
    all.collect()
}

/// A function's name as it is shown: with its schema where the search path does not lead to it.
pub(crate) fn function_shown(catalog: &Catalog, search_path: &[Oid], function: Scalar) -> String {
    let name = function.entry().name;
    if functions_reached(catalog, search_path, None, name).contains(&function) {
        return quoted(name);
    }
    let place = catalog.extension_of(function).map(|own| own.namespace);
    let schema = place.map_or("", |place| catalog.namespace_name(place));
    format!("{}.{}", quoted(schema), quoted(name))
}

impl Binder<'_> {
    /// Whether a name means a function of an extension along the search path, and none in this schema, which is one of the system's.
    pub(super) fn is_elsewhere(&self, schema: &str, name: &str) -> bool {
        let reached = |schema| functions_reached(self.catalog, self.search_path, schema, name);
        !reached(None).is_empty() && reached(Some(schema)).is_empty()
    }

    /// A call of a function of a schema, or of one by the name that a definition keeps.
    ///
    /// # Errors
    /// `3F000`, `42883`, `42809` for one with OVER; those of its arguments.
    pub(super) fn function_in(
        &mut self,
        schema: &str,
        name: &str,
        function: &ast::Function,
    ) -> Result<Bound> {
        let known = self.catalog.schema_named(schema, self.search_path);
        let is_kept = kept_function_of(Some(schema), name).is_some();
        if known.is_none() && !is_kept {
            let message = format!("schema \"{schema}\" does not exist");
            return Err(SqlError::new(sqlstate::INVALID_SCHEMA_NAME, message));
        }
        let all = functions_reached(self.catalog, self.search_path, Some(schema), name);
        let own = all.first().map_or(name, |own| own.entry().name);
        let arguments = match &function.args {
            ast::FunctionArguments::List(list) => self.arguments(own, list)?,
            _ => Vec::new(),
        };
        let types: Vec<Option<Type>> = arguments.iter().map(|argument| argument.ty).collect();
        let found = self.call_of_extension(&all, arguments, !is_kept)?;
        if found.is_some() && function.over.is_some() {
            return Err(over_specified(own));
        }
        if found.is_some() {
            check_plain(function)?;
        }
        found.ok_or_else(|| self.no_function(&format!("{schema}.{own}"), &types))
    }

    /// A call of that one of these functions, which have one name, which takes the arguments; none if none does. `looked_up`: by a name that the user has
    /// written, who has to have rights on the schema then.
    ///
    /// # Errors
    /// `42725` if several do; those of casting the arguments.
    pub(super) fn call_of_extension(
        &mut self,
        all: &[Scalar],
        arguments: Vec<Bound>,
        looked_up: bool,
    ) -> Result<Option<Bound>> {
        let Some(first) = all.first() else {
            return Ok(None);
        };
        let types: Vec<Option<Type>> = arguments.iter().map(|argument| argument.ty).collect();
        let Some(signature) = find_among(all, first.entry().name, &types)? else {
            return Ok(None);
        };
        if let Builtin::Scalar(own) = signature.function {
            self.calls(own, looked_up);
        }
        self.called(signature, arguments).map(Some)
    }

    /// Notes that a function of an extension is called; what views call is their own.
    fn calls(&mut self, function: Scalar, looked_up: bool) {
        if self.view_depth > 0 {
            return;
        }
        if let Some(own) = self.catalog.extension_of(function).filter(|_| looked_up) {
            let access = (own.oid, Rights::USAGE);
            if !self.accesses.contains(&access) {
                self.accesses.push(access);
            }
        }
        if let Some(functions) = &mut self.functions
            && !functions.contains(&function)
        {
            functions.push(function);
        }
    }

    /// The functions of extensions that an expression calls, whose names stand in the scope of this binder; those that it may call if it cannot be bound.
    pub fn functions_called(mut self, sql: &str) -> Vec<Scalar> {
        let named = functions_in(sql);
        if named.is_empty() {
            return named;
        }
        self.functions = Some(Vec::new());
        let bound = crate::parse::expression(sql).and_then(|node| self.expr(&node));
        match (bound, self.functions) {
            (Ok(_), Some(called)) => called,
            _ => named,
        }
    }

    /// The same of a query.
    pub fn functions_of_query(mut self, sql: &str) -> Vec<Scalar> {
        let named = functions_in(sql);
        if named.is_empty() {
            return named;
        }
        self.functions = Some(Vec::new());
        let query = crate::parse::statements(sql).map(|mut all| all.pop());
        let bound = match query {
            Ok(Some(ast::Statement::Query(query))) => self.query(&query).is_ok(),
            _ => false,
        };
        match (bound, self.functions) {
            (true, Some(called)) => called,
            _ => named,
        }
    }
}
