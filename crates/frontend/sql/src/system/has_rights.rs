//! Questions about rights: `has_table_privilege` and its like.

use super::functions::reg;
use super::names::no_such;
use super::roles::DATABASE_OID;
use crate::catalog::{Catalog, Kind, Oid, Relation};
use crate::database::DATABASE;
use crate::error::{Result, SqlError};
use crate::expr::CatalogFunction as F;
use crate::roles::{Grant, Rights};
use crate::session::Env;
use crate::sqlstate;
use vellum_row::{Type, Value, ValueRef};

/// A right, and whether it is to be one that may be given on.
type Wanted = (Rights, bool);

/// Answers one.
///
/// # Errors
/// `22023` for what is no right; `42704`, `42P01` and their like for names.
pub(super) fn ask(env: &Env<'_>, function: F, arguments: &[Value]) -> Result<Value> {
    let least = if function == F::HasColumnPrivilege {
        3
    } else {
        2
    };
    let (role, rest) = subject(env, function, arguments, least)?;
    let object = rest.first().map_or(ValueRef::Null, Value::as_ref);
    let oid = |ty: Type| match object {
        ValueRef::Text(name) => reg(env, ty, name).map(Some),
        other => Ok(other.as_i64().and_then(|oid| Oid::try_from(oid).ok())),
    };
    if function == F::HasRole {
        let target = oid(Type::Regrole)?.unwrap_or(0);
        let wanted = rest.last().map_or(ValueRef::Null, Value::as_ref);
        let has = has_role(
            env.rights,
            role,
            target,
            wanted.as_str().unwrap_or_default(),
        )?;
        return Ok(Value::Bool(has));
    }
    let wanted = rest.last().map_or(ValueRef::Null, Value::as_ref);
    let wanted = rights_of(wanted.as_str().unwrap_or_default())?;
    let has = match function {
        F::HasSchemaPrivilege => {
            let found = oid(Type::Regnamespace)?;
            let Some(namespace) = found.and_then(|oid| env.catalog.namespace_by_oid(oid)) else {
                return Ok(Value::Null);
            };
            wanted.iter().any(|(right, _)| {
                let create = *right == Rights::CREATE;
                env.rights.allows_in_schema(role, namespace, create)
            })
        }
        F::HasDatabasePrivilege => {
            match object {
                ValueRef::Text(name) if name != DATABASE => {
                    let message = format!("database \"{name}\" does not exist");
                    return Err(SqlError::new(sqlstate::INVALID_CATALOG_NAME, message));
                }
                ValueRef::Text(_) => {}
                other if other.as_i64() != Some(i64::from(DATABASE_OID)) => {
                    return Ok(Value::Null);
                }
                _ => {}
            }
            let mut all = wanted.iter();
            all.any(|(right, _)| env.rights.allows_in_database(role, *right))
        }
        // All are everybody's; a name has to be one.
        F::HasFunctionPrivilege => oid(Type::Regprocedure)?.is_some(),
        F::HasTypePrivilege => {
            let Some(oid) = oid(Type::Regtype)? else {
                return Ok(Value::Null);
            };
            match env.catalog.relation(oid).filter(|own| own.is_type()) {
                Some(relation) => {
                    let all = wanted.iter();
                    has(env, role, relation, all)
                }
                // Those of the program are everybody's.
                None => true,
            }
        }
        F::HasLanguagePrivilege => match object {
            ValueRef::Text("sql" | "plpgsql" | "c" | "internal") => true,
            ValueRef::Text(name) => {
                let message = format!("language \"{name}\" does not exist");
                return Err(SqlError::new(sqlstate::UNDEFINED_OBJECT, message));
            }
            _ => true,
        },
        F::HasTablespacePrivilege => {
            if let ValueRef::Text(name) = object
                && name != "pg_global"
            {
                crate::parse::check_tablespace(name)?;
            }
            env.rights.is_superuser(role)
        }
        _ => {
            let Some(oid) = oid(Type::Regclass)? else {
                return Ok(Value::Null);
            };
            let Some(relation) = env.catalog.relation(oid) else {
                return Ok(Value::Null);
            };
            let whole = has(env, role, relation, wanted.iter());
            match function {
                F::HasColumnPrivilege => {
                    let column = rest.get(1).map_or(ValueRef::Null, Value::as_ref);
                    let Some(column) = column_of(relation, column)? else {
                        return Ok(Value::Null);
                    };
                    whole || has_column(env, role, relation, column, &wanted)
                }
                F::HasAnyColumnPrivilege => {
                    let mut columns = relation.column_acls.iter();
                    whole
                        || columns
                            .any(|(column, _)| has_column(env, role, relation, *column, &wanted))
                }
                _ => whole,
            }
        }
    };
    Ok(Value::Bool(has))
}

/// `pg_has_role`, of a list of which one is enough: MEMBER is who may become the other role, USAGE who has its rights without that, and either of them WITH
/// ADMIN OPTION or WITH GRANT OPTION who may make others members.
fn has_role(catalog: &Catalog, role: Oid, other: Oid, wanted: &str) -> Result<bool> {
    let mut has = false;
    for name in wanted.split(',').map(str::trim) {
        has |= match &*name.to_ascii_uppercase() {
            "USAGE" => catalog.has_rights_of(role, other),
            "MEMBER" => catalog.is_member(role, other),
            "USAGE WITH GRANT OPTION"
            | "USAGE WITH ADMIN OPTION"
            | "MEMBER WITH GRANT OPTION"
            | "MEMBER WITH ADMIN OPTION" => catalog.is_admin(role, other),
            _ => return Err(unrecognized(name)),
        };
    }
    Ok(has)
}

#[cold]
fn unrecognized(name: &str) -> SqlError {
    let message = format!("unrecognized privilege type: \"{name}\"");
    SqlError::new(sqlstate::INVALID_PARAMETER_VALUE, message)
}

/// Whether a role has one of these rights on a relation or a type.
fn has<'w>(
    env: &Env<'_>,
    role: Oid,
    relation: &Relation,
    wanted: impl Iterator<Item = &'w Wanted>,
) -> bool {
    let owns = !matches!(relation.kind, Kind::System(_)) && env.rights.owns(role, relation.owner);
    let acl = env.rights.grants(relation);
    let mut wanted = wanted;
    wanted.any(|(right, grantable)| match grantable {
        false => env.rights.allows(role, relation, *right),
        true => owns || is_given(env, role, &acl, (*right, true)),
    })
}

fn has_column(
    env: &Env<'_>,
    role: Oid,
    relation: &Relation,
    column: u16,
    wanted: &[Wanted],
) -> bool {
    let acl = env.catalog.column_grants(relation, column);
    let mut wanted = wanted.iter();
    wanted.any(|wanted| is_given(env, role, acl, *wanted))
}

fn is_given(env: &Env<'_>, role: Oid, acl: &[Grant], (right, grantable): Wanted) -> bool {
    acl.iter().any(|grant| {
        let rights = if grantable {
            grant.grantable
        } else {
            grant.rights
        };
        rights.contains(right)
            && (grant.grantee == 0 || env.rights.has_rights_of(role, grant.grantee))
    })
}

/// The number of a column, by its name or its number; `None` for a number that none has.
fn column_of(relation: &Relation, column: ValueRef<'_>) -> Result<Option<u16>> {
    let all: Vec<(u16, &str)> = match &relation.kind {
        Kind::Table(table) => {
            let columns = table.schema.columns();
            columns.map(|column| (column.id.0, &*column.name)).collect()
        }
        Kind::View(view) => (1..).zip(view.columns.iter().map(|own| &**own)).collect(),
        Kind::System(definition) => {
            let names = definition.columns.iter().map(|column| column.name);
            (1..).zip(names).collect()
        }
        _ => Vec::new(),
    };
    let named = |wanted: &str| all.iter().find(|(_, name)| *name == wanted);
    match column {
        ValueRef::Text(name) => match named(name) {
            Some((number, _)) => Ok(Some(*number)),
            None => {
                let message = format!(
                    "column \"{name}\" of relation \"{}\" does not exist",
                    relation.name
                );
                Err(SqlError::new(sqlstate::UNDEFINED_COLUMN, message))
            }
        },
        other => {
            let number = other.as_i64().and_then(|number| u16::try_from(number).ok());
            Ok(number.filter(|number| all.iter().any(|(own, _)| own == number)))
        }
    }
}

/// The role that a question about rights is for, and the arguments behind it: the session's own if none is named. It is 0 for what everybody has, and may be a number that no role
/// has, which has that.
fn subject<'a>(
    env: &Env<'_>,
    function: F,
    arguments: &'a [Value],
    least: usize,
) -> Result<(Oid, &'a [Value])> {
    if arguments.len() <= least {
        return Ok((env.acting.role, arguments));
    }
    let role = match arguments[0].as_ref() {
        // Nobody is a member of everybody, nor the other way round.
        ValueRef::Text("public") if function != F::HasRole => 0,
        ValueRef::Text(name) => match env.rights.role(name) {
            Some(role) => role.oid,
            None => return Err(no_such(Type::Regrole, name)),
        },
        other => {
            let oid = other.as_i64().and_then(|oid| Oid::try_from(oid).ok());
            oid.unwrap_or(0)
        }
    };
    Ok((role, &arguments[1..]))
}

/// Rights in a list of their names, one of which is enough.
fn rights_of(text: &str) -> Result<Vec<Wanted>> {
    let names = text.split(',').map(|name| {
        let own = name.trim().to_lowercase();
        let plain = own.strip_suffix(" with grant option");
        let right = Rights::named(plain.unwrap_or(&own));
        Ok((
            right.ok_or_else(|| unrecognized(name.trim()))?,
            plain.is_some(),
        ))
    });
    names.collect()
}
