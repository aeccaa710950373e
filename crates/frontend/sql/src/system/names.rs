//! Oids that are shown as names (`regclass` and its like), to and from text.

use super::types;
use crate::catalog::{Catalog, Collation, Named, Oid};
use crate::error::{Result, SqlError};
use crate::names::{parts, quoted};
use crate::plan::Surroundings;
use crate::session::Env;
use crate::sqlstate;
use vellum_row::Type;

/// The name that a type's oid is shown as.
pub(crate) fn reg_text(env: &Env<'_>, ty: Type, oid: Oid) -> String {
    reg_text_in(image_of(env, ty), env.search_path, ty, oid)
}

/// The same where no statement runs.
pub(crate) fn reg_text_in(catalog: &Catalog, search_path: &[Oid], ty: Type, oid: Oid) -> String {
    if oid == 0 {
        return "-".to_owned();
    }
    let found = match ty {
        Type::Regclass => relation_name(catalog, search_path, oid),
        Type::Regtype => types::type_name(catalog, search_path, oid),
        Type::Regproc => function_alone(catalog, search_path, oid),
        Type::Regprocedure => types::function_signature(catalog, search_path, oid),
        Type::Regnamespace => catalog
            .namespace_by_oid(oid)
            .map(|found| quoted(&found.name)),
        Type::Regcollation => Collation::of(oid).map(|own| quoted(own.name)),
        _ => catalog.role_by_oid(oid).map(|role| quoted(&role.name)),
    };
    found.unwrap_or_else(|| oid.to_string())
}

/// The name of a function, with its schema where the name alone may mean several.
fn function_alone(catalog: &Catalog, search_path: &[Oid], oid: Oid) -> Option<String> {
    let shown = types::function_name(catalog, search_path, oid)?;
    let (name, ..) = types::function_of(catalog, oid)?;
    let several = types::functions_named(catalog, search_path, None, &name).len() > 1;
    // Those of extensions have theirs already where it is needed.
    let of_system = crate::extension::function(oid).is_none();
    Some(match several && of_system {
        true => format!("pg_catalog.{shown}"),
        false => shown,
    })
}

/// The name of a relation or an index, with its schema unless the search path finds it.
pub(super) fn relation_name(catalog: &Catalog, search_path: &[Oid], oid: Oid) -> Option<String> {
    let (namespace, name) = catalog.name_of(oid)?;
    let plain = quoted(name);
    if is_visible(catalog, search_path, oid, (namespace, name)) {
        return Some(plain);
    }
    let schema = quoted(catalog.namespace_name(namespace));
    Some(format!("{schema}.{plain}"))
}

/// Whether a relation's name without schema stands for it.
pub(super) fn is_visible(
    catalog: &Catalog,
    search_path: &[Oid],
    oid: Oid,
    (namespace, name): (Oid, &str),
) -> bool {
    let mut path = search_path.iter();
    let first = path.find(|schema| catalog.named(**schema, name).is_some());
    first == Some(&namespace) && catalog.named(namespace, name).map(oid_of) == Some(oid)
}

fn oid_of(named: Named) -> Oid {
    match named {
        Named::Relation(oid) => oid,
        Named::Index { index, .. } => index,
    }
}

/// The oid that a text stands for: a number, or a name; `None` if there is nothing of this name.
///
/// # Errors
/// `22003` for a number beyond oids, `42602` for what is no name.
pub(crate) fn parse_reg(env: &Env<'_>, ty: Type, text: &str) -> Result<Option<Oid>> {
    parse_reg_in(surroundings_of(env, ty), ty, text)
}

/// The image in which what such an oid names is looked up: roles as they are now, all else as the snapshot has it.
fn image_of<'e>(env: &'e Env<'_>, ty: Type) -> &'e Catalog {
    match ty {
        Type::Regrole => env.rights,
        _ => env.catalog,
    }
}

/// The same of what a name is bound with.
pub(super) fn surroundings_of<'e>(env: &'e Env<'_>, ty: Type) -> Surroundings<'e> {
    Surroundings {
        catalog: image_of(env, ty),
        ..env.surroundings()
    }
}

/// The oid that digits stand for; `None` for a name.
///
/// # Errors
/// `22003`.
pub(crate) fn number_in(text: &str) -> Result<Option<Oid>> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(None);
    }
    match text.parse() {
        Ok(oid) => Ok(Some(oid)),
        Err(_) => {
            let message = format!("value \"{text}\" is out of range for type oid");
            Err(SqlError::new(sqlstate::NUMERIC_VALUE_OUT_OF_RANGE, message))
        }
    }
}

/// The oid that a text stands for, where no statement runs.
///
/// # Errors
/// `22003` for a number beyond oids, `42602` for what is no name.
pub(crate) fn parse_reg_in(around: Surroundings<'_>, ty: Type, text: &str) -> Result<Option<Oid>> {
    if text == "-" {
        return Ok(Some(0));
    }
    match number_in(text)? {
        Some(oid) => Ok(Some(oid)),
        None => named_in(around, ty, text),
    }
}

/// Who names a relation by its schema has to have the right to look into that. What is no name, or not there, is found out later.
///
/// # Errors
/// `42501`.
pub(crate) fn check_place(
    around: Surroundings<'_>,
    rights: &Catalog,
    role: Oid,
    (ty, text): (Type, &str),
) -> Result<()> {
    if ty != Type::Regclass {
        return Ok(());
    }
    let parts = parts(text).unwrap_or_default();
    let ([schema, _] | [_, schema, _]) = parts.as_slice() else {
        return Ok(());
    };
    let place = around.catalog.schema_named(schema, around.search_path);
    rights.check_look(role, around.catalog, place)
}

/// The oid that a name stands for; `None` if there is nothing of this name.
///
/// # Errors
/// `42601` for a name of too many parts, `42602` for what is none; those of a type's name and of a function's arguments.
pub(super) fn named_in(around: Surroundings<'_>, ty: Type, text: &str) -> Result<Option<Oid>> {
    if ty == Type::Regtype {
        return Ok(type_named(around, text).or_else(|| types::pseudo_oid(text)));
    }
    if ty == Type::Regprocedure {
        return procedure_named(around, text);
    }
    let parts =
        parts(text).ok_or_else(|| SqlError::new(sqlstate::INVALID_NAME, "invalid name syntax"))?;
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let (schema, name) = match (parts.as_slice(), ty) {
        ([name], _) => (None, *name),
        (_, Type::Regnamespace | Type::Regrole) => {
            return Err(SqlError::new(sqlstate::INVALID_NAME, "invalid name syntax"));
        }
        ([schema, name] | [_, schema, name], _) => (Some(*schema), *name),
        _ => {
            let kind = if ty == Type::Regclass {
                "relation"
            } else {
                "qualified"
            };
            let message = format!("improper {kind} name (too many dotted names): {text}");
            return Err(SqlError::syntax(message));
        }
    };
    Ok(match ty {
        Type::Regclass => named(around, schema, name).map(oid_of),
        Type::Regproc => {
            let all = types::functions_named(around.catalog, around.search_path, schema, name);
            if all.len() > 1 {
                let message = format!("more than one function named \"{text}\"");
                return Err(SqlError::new(sqlstate::AMBIGUOUS_FUNCTION, message));
            }
            all.first().copied()
        }
        Type::Regnamespace => around.catalog.namespace(name).map(|found| found.oid),
        Type::Regcollation => match schema {
            None | Some("pg_catalog") => Collation::named(name).map(|own| own.oid),
            Some(_) => None,
        },
        _ => around.catalog.role(name).map(|role| role.oid),
    })
}

/// Arguments of a function, at most: PostgreSQL's number.
const ARGUMENTS_MAX: usize = 100;

fn unreadable(text: &str) -> SqlError {
    SqlError::new(sqlstate::INVALID_TEXT_REPRESENTATION, text)
}

/// The oid of the function of this name, with the types of its arguments in brackets.
///
/// # Errors
/// `22P02` for brackets that are missing or do not fit, `42602` for what is no name, `42704` for a type that is not there, `54023` for too many.
fn procedure_named(around: Surroundings<'_>, text: &str) -> Result<Option<Oid>> {
    let mut is_quoted = false;
    let opening = text.find(|letter| {
        is_quoted ^= letter == '"';
        letter == '(' && !is_quoted
    });
    let opening = opening.ok_or_else(|| unreadable("expected a left parenthesis"))?;
    let (name, listed) = (&text[..opening], &text[opening + 1..]);
    let parts = parts(name.trim());
    let parts =
        parts.ok_or_else(|| SqlError::new(sqlstate::INVALID_NAME, "invalid name syntax"))?;
    let listed = listed.trim_end().strip_suffix(')');
    let listed = listed.ok_or_else(|| unreadable("expected a right parenthesis"))?;
    let mut wanted = Vec::new();
    let mut rest = Some(listed.trim());
    while let Some(next) = rest.filter(|next| !next.is_empty()) {
        let (ty, behind) = first_type(next)?;
        if ty.is_empty() {
            return Err(SqlError::syntax("invalid type name \"\""));
        }
        let found = types::pseudo_oid(ty).or_else(|| type_named(around, ty));
        let found = found.ok_or_else(|| no_such(Type::Regtype, ty))?;
        if wanted.len() >= ARGUMENTS_MAX {
            let text = "too many arguments";
            return Err(SqlError::new(sqlstate::TOO_MANY_ARGUMENTS, text));
        }
        wanted.push(found);
        if behind == Some("") {
            return Err(unreadable("expected a type name"));
        }
        rest = behind;
    }
    let (schema, name) = match parts.as_slice() {
        [name] => (None, name),
        [schema, name] | [_, schema, name] => (Some(schema.as_str()), name),
        _ => return Ok(None),
    };
    let all = types::functions_named(around.catalog, around.search_path, schema, name);
    let mut all = all.into_iter();
    Ok(all.find(|oid| types::arguments_of(around.catalog, *oid).as_ref() == Some(&wanted)))
}

/// What stands before a comma that is neither quoted nor in brackets, and what behind it, if there is one.
///
/// # Errors
/// `22P02` for quotes and brackets that do not fit.
fn first_type(listed: &str) -> Result<(&str, Option<&str>)> {
    let (mut is_quoted, mut depth) = (false, 0_i32);
    let end = listed.find(|letter| {
        match letter {
            '"' => is_quoted = !is_quoted,
            '(' | '[' if !is_quoted => depth += 1,
            ')' | ']' if !is_quoted => depth -= 1,
            _ => {}
        }
        letter == ',' && !is_quoted && depth == 0
    });
    if is_quoted || depth != 0 {
        return Err(unreadable("improper type name"));
    }
    Ok(match end {
        Some(end) => (
            listed[..end].trim_end(),
            Some(listed[end + 1..].trim_start()),
        ),
        None => (listed.trim_end(), None),
    })
}

/// The oid of the type or domain of this name.
fn type_named(around: Surroundings<'_>, name: &str) -> Option<Oid> {
    let node = crate::parse::expression(&format!("NULL::{name}")).ok()?;
    let sqlparser::ast::Expr::Cast { data_type, .. } = node else {
        return None;
    };
    let binder = around.binder();
    match binder.domain_named(&data_type) {
        Ok(None) => binder.type_of(&data_type).ok().map(|(ty, _)| ty.oid()),
        found => found.ok().flatten(),
    }
}

/// What a name stands for, along the search path if it has no schema.
fn named(around: Surroundings<'_>, schema: Option<&str>, name: &str) -> Option<Named> {
    if let Some(schema) = schema {
        let namespace = around.catalog.schema_named(schema, around.search_path)?;
        return around.catalog.named(namespace, name);
    }
    let mut path = around.search_path.iter();
    path.find_map(|namespace| around.catalog.named(*namespace, name))
}

/// What is said of a name that stands for nothing.
#[cold]
pub(crate) fn no_such(ty: Type, text: &str) -> SqlError {
    let (what, state) = match ty {
        Type::Regclass => ("relation", sqlstate::UNDEFINED_TABLE),
        Type::Regtype => ("type", sqlstate::UNDEFINED_OBJECT),
        Type::Regproc | Type::Regprocedure => ("function", sqlstate::UNDEFINED_FUNCTION),
        Type::Regcollation => {
            let message = format!("collation \"{text}\" for encoding \"UTF8\" does not exist");
            return SqlError::new(sqlstate::UNDEFINED_OBJECT, message);
        }
        Type::Regnamespace => ("schema", sqlstate::INVALID_SCHEMA_NAME),
        _ => ("role", sqlstate::UNDEFINED_OBJECT),
    };
    SqlError::new(state, format!("{what} \"{text}\" does not exist"))
}
