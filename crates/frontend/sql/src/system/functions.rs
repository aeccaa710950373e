//! Functions that need the catalog.

use super::names::{
    check_place, is_visible, named_in, no_such, parse_reg, reg_text, surroundings_of,
};
use super::objects;
use super::roles::DATABASE_OID;
use super::signals::{self, Signal};
use super::types;
use super::{backup, comments, describe, has_rights, triggers};
use crate::catalog::{Kind, Oid};
use crate::database::DATABASE;
use crate::error::{Result, SqlError};
use crate::expr::CatalogFunction as F;
use crate::lock::AdvisoryLock;
use crate::names::quoted;
use crate::plan::Surroundings;
use crate::session::Env;
use crate::sqlstate;
use std::net::SocketAddr;
use vellum_row::{Array, ArrayRef, Inet, Type, Value, ValueRef, output};

/// Runs a function for a session.
///
/// # Errors
/// The function's.
pub(crate) fn ask(env: &Env<'_>, function: F, arguments: &[Value]) -> Result<Value> {
    let value = |at: usize| arguments.get(at).map_or(ValueRef::Null, Value::as_ref);
    let text = |at: usize| value(at).as_str().unwrap_or_default();
    let oid = |at: usize| value(at).as_i64().and_then(|oid| Oid::try_from(oid).ok());
    let first = oid(0).unwrap_or(0);
    let shown = |text: Option<String>| text.map_or(Value::Null, Value::text);
    let pretty = value(arguments.len().saturating_sub(1)).as_bool() == Some(true);
    Ok(match function {
        F::FormatType => {
            if value(0).is_null() {
                return Ok(Value::Null);
            }
            let typmod = value(1)
                .as_i64()
                .and_then(|typmod| i32::try_from(typmod).ok());
            Value::text(describe::format_type(env, first, typmod))
        }
        F::TypesOf => {
            let Some(Value::Array(types)) = arguments.first() else {
                return Ok(Value::Null);
            };
            let oids = types
                .as_ref()
                .items()
                .filter_map(|item| item.as_ref().as_i64());
            let names = oids.filter_map(|oid| Oid::try_from(oid).ok());
            let names: Vec<String> = names
                .map(|oid| describe::format_type(env, oid, None))
                .collect();
            Value::text(names.join(", "))
        }
        F::Expression => {
            let relation = oid(1).and_then(|oid| env.catalog.relation(oid));
            let relation = relation.map(|relation| &**relation);
            if let Some(list) = describe::list_of(text(0)) {
                let all = list.into_iter();
                let all = all.map(|sql| env.expression_text(relation, None, sql, pretty));
                return Ok(Value::text(all.collect::<Vec<_>>().join(", ")));
            }
            let (column, sql) = describe::parts_of(text(0));
            Value::text(env.expression_text(relation, column, sql, pretty))
        }
        F::IndexDefinition => {
            let column = value(1)
                .as_i64()
                .and_then(|column| i32::try_from(column).ok());
            shown(describe::index_definition(
                env,
                first,
                column.unwrap_or(0),
                pretty,
            ))
        }
        F::TriggerDefinition => shown(triggers::definition(env, first, pretty)),
        F::ConstraintDefinition => shown(describe::constraint_definition(env, first, pretty)),
        F::ViewDefinition => {
            let named = value(0)
                .as_str()
                .map(|name| reg(env, Type::Regclass, name))
                .transpose()?;
            // The second argument may be a number of columns, too: then it is pretty.
            let pretty = match value(1) {
                ValueRef::Bool(own) => own,
                ValueRef::Null => false,
                _ => true,
            };
            shown(describe::view_definition(
                env,
                named.unwrap_or(first),
                pretty,
            ))
        }
        F::RelationIsUpdatable => {
            Value::Int4(env.changes_of(first).map_or(0, |own| own.events(None)))
        }
        F::ColumnIsUpdatable => {
            let column = value(1)
                .as_i64()
                .and_then(|own| usize::try_from(own - 1).ok());
            let changes = column.and_then(|_| env.changes_of(first));
            Value::Bool(changes.zip(column).is_some_and(|(own, at)| own.reaches(at)))
        }
        F::RuleDefinition => Value::Null,
        F::FunctionResult => {
            shown(types::function_of(env.catalog, first).map(|(.., result)| result))
        }
        F::FunctionArguments => {
            shown(types::function_of(env.catalog, first).map(|(_, arguments, _)| arguments))
        }
        F::IndexProperty => objects::index_property(env, first, text(1)),
        F::IndexColumnProperty => {
            let number = value(1).as_i64().and_then(|own| usize::try_from(own).ok());
            objects::index_column_property(env, first, number, text(2))
        }
        F::SequenceLastValue => objects::sequence_last_value(env, first)?,
        F::SequenceParameters if value(0).is_null() => Value::Null,
        F::SequenceParameters => objects::sequence_parameters(env, first)?,
        F::DescribeObject => {
            let column = value(2).as_i64().unwrap_or(0);
            objects::description(env, first, oid(1).unwrap_or(0), column)
        }
        F::SerialSequence => serial_sequence(env, text(0), text(1))?,
        F::UserById => match env.rights.role_by_oid(first) {
            Some(role) => Value::text(role.name.as_str()),
            None if first == super::relations::DATABASE_OWNER => Value::text("pg_database_owner"),
            None => Value::text(format!("unknown (OID={first})")),
        },
        F::DefaultRights => super::roles::default_rights(env, text(0), oid(1).unwrap_or(0))?,
        F::TableIsVisible => match env.catalog.name_of(first) {
            Some(name) => Value::Bool(is_visible(env.catalog, env.search_path, first, name)),
            None => Value::Null,
        },
        F::TypeIsVisible => {
            let found = types::is_type_visible(env.catalog, env.search_path, first);
            found.map_or(Value::Null, Value::Bool)
        }
        F::FunctionIsVisible => {
            let found = types::is_function_visible(env.catalog, env.search_path, first);
            found.map_or(Value::Null, Value::Bool)
        }
        F::CurrentSchemas => {
            let implicit = value(0).as_bool() == Some(true);
            let names = env.schemas(implicit).into_iter().map(Value::text);
            Value::Array(Array::of(Type::Name, &names.collect::<Vec<_>>()))
        }
        // Numbers, which a cast takes for oids, are names here.
        F::ToReg(ty) => match text(0) {
            "-" if !matches!(ty, Type::Regtype | Type::Regprocedure) => Value::Null,
            name if ty == Type::Regtype && !name.contains(char::is_alphabetic) => {
                let message = format!("syntax error at or near \"{name}\"");
                return Err(SqlError::syntax(message));
            }
            name => match named_in(looked_at(env, ty, name)?, ty, name) {
                Err(error) if error.sqlstate() == sqlstate::AMBIGUOUS_FUNCTION => Value::Null,
                found => found?.map_or(Value::Null, Value::Oid),
            },
        },
        F::RegOf(ty) => match value(0) {
            ValueRef::Array(names) => oids_named(env, ty, names)?,
            _ => Value::Oid(reg(env, ty, text(0))?),
        },
        F::RegText(ty) => match value(0) {
            ValueRef::Array(oids) => {
                let names = oids.map(Type::Text, |oid| {
                    Ok(match oid {
                        Value::Oid(oid) => Value::text(reg_text(env, ty, oid)),
                        other => other,
                    })
                })?;
                let mut text = String::new();
                output(Value::Array(names).as_ref(), env.forms, &mut text)?;
                Value::text(text)
            }
            _ => Value::text(reg_text(env, ty, first)),
        },
        F::HasTablePrivilege
        | F::HasAnyColumnPrivilege
        | F::HasColumnPrivilege
        | F::HasSchemaPrivilege
        | F::HasDatabasePrivilege
        | F::HasFunctionPrivilege
        | F::HasTypePrivilege
        | F::HasLanguagePrivilege
        | F::HasTablespacePrivilege
        | F::HasRole => has_rights::ask(env, function, arguments)?,
        F::RelationSize | F::TableSize => size(env, first, false, true),
        F::IndexesSize => size(env, first, true, false),
        F::TotalSize => size(env, first, true, true),
        F::DatabaseSize => {
            let known = first == DATABASE_OID || text(0) == DATABASE;
            if !known {
                let message = format!("database \"{}\" does not exist", text(0));
                return Err(SqlError::new(sqlstate::INVALID_CATALOG_NAME, message));
            }
            Value::Int8(env.database_bytes())
        }
        F::FileNode => match env.catalog.name_of(first) {
            Some(_) => Value::Oid(first),
            None => Value::Null,
        },
        F::FilePath => match env.catalog.name_of(first) {
            Some(_) => Value::text(format!("base/{DATABASE_OID}/{first}")),
            None => Value::Null,
        },
        F::TablespaceSize => tablespace_size(env, first, value(0).as_str())?,
        F::ObjectComment => comments::of_object(env.catalog, first, value(1).as_str()),
        F::ColumnComment => {
            let column = value(1).as_i64().unwrap_or(0);
            comments::of_column(env.catalog, first, column)
        }
        F::ClientAddress => address(env.options.client),
        F::ServerAddress => address(env.options.server),
        F::ClientPort => port(env.options.client),
        F::ServerPort => port(env.options.server),
        F::MyTempSchema => Value::Oid(env.own_temporary().unwrap_or(0)),
        F::IsOtherTempSchema => {
            Value::Bool(env.catalog.is_temporary(first) && env.own_temporary() != Some(first))
        }
        F::CurrentQuery => {
            let mut all = env.shared.activities.all().into_iter();
            let own = all.find(|session| session.pid == env.options.process_id);
            own.map_or(Value::Null, |own| Value::text(&*own.now().query))
        }
        F::OnlyInRecovery => {
            let state = sqlstate::OBJECT_NOT_IN_PREREQUISITE_STATE;
            let hint = "Recovery control functions can only be executed during recovery.";
            return Err(SqlError::new(state, "recovery is not in progress").with_hint(hint));
        }
        F::NewestNumber => Value::Oid(newest_number(env)),
        F::NumberAge => match first {
            // What has no number tells no age.
            0 => Value::Null,
            // Those that are older than all.
            1 | 2 => Value::Int4(i32::MAX),
            number => Value::Int4(newest_number(env).wrapping_sub(number).cast_signed()),
        },
        F::TransactionNumber { only_drawn, .. } => {
            let number = match only_drawn {
                true => env.number.drawn(),
                false => Some(env.number.get(&env.shared.numbers, env.transaction)),
            };
            let number = number.and_then(|number| i64::try_from(number).ok());
            number.map_or(Value::Null, Value::Int8)
        }
        F::TransactionSnapshot { .. } => {
            let snapshot = env.shared.numbers.snapshot(env.transaction)?;
            Value::text(snapshot.to_string())
        }
        F::ExportSnapshot => Value::text(env.exporting.export(env.shared, env.session)?),
        F::TransactionStatus { .. } => match value(0).as_i64() {
            Some(number) => {
                let number = u64::try_from(number).unwrap_or(u64::MAX);
                let status = env.shared.numbers.status(number)?;
                status.map_or(Value::Null, Value::text)
            }
            None => Value::Null,
        },
        F::CancelBackend => signals::signal(env, value(0), Signal::Cancel)?,
        F::TerminateBackend => signals::signal(env, value(0), Signal::Terminate)?,
        F::Advisory {
            action,
            shared,
            of_transaction,
        } => {
            let lock = AdvisoryLock {
                key: signals::advisory_key(arguments),
                shared,
                of_transaction,
            };
            signals::advisory(env, action, lock)?
        }
        F::AdvisoryUnlockAll => {
            env.advisory.release_all();
            Value::text("")
        }
        F::LastValue => env.last_value()?,
        F::Notify => {
            env.saying.notify(text(0), text(1))?;
            Value::text("")
        }
        F::NotifyQueueUsage => Value::Float8(env.shared.channels.usage()),
        F::ListeningChannels => {
            let channels = env.shared.channels.of(env.session);
            let channels: Vec<Value> = channels.iter().map(|name| Value::text(&**name)).collect();
            Value::Array(Array::of(Type::Text, &channels))
        }
        F::Backup => backup::backup(env, value(0))?,
        // Nothing is read again, and nothing is forgotten; as PostgreSQL, not for everybody.
        F::ReloadConf => {
            env.check_superuser("function pg_reload_conf")?;
            Value::Bool(true)
        }
        F::ResetStatistics => {
            env.check_superuser("function pg_stat_reset")?;
            Value::text("")
        }
        F::Sleep | F::SleepFor => signals::sleep(env, value(0))?,
        F::SleepUntil => signals::sleep_until(env, value(0))?,
        F::BlockingPids => signals::blocking_pids(env, value(0)),
        F::StartTime => Value::Timestamptz(env.shared.started),
        other => return Err(SqlError::unsupported(format!("the function {other:?}"))),
    })
}

/// The transaction's own number, or the one that would come next for its statement.
fn newest_number(env: &Env<'_>) -> u32 {
    let next = || env.transaction.snapshot_time();
    env.number.drawn().unwrap_or_else(next) as u32
}

/// All of the database lies in `pg_default`.
///
/// # Errors
/// `42704`.
fn tablespace_size(env: &Env<'_>, oid: Oid, name: Option<&str>) -> Result<Value> {
    match (oid, name) {
        (1663, None) | (_, Some("pg_default")) => Ok(Value::Int8(env.database_bytes())),
        (1664, None) | (_, Some("pg_global")) => Ok(Value::Int8(0)),
        (_, Some(name)) => {
            let message = format!("tablespace \"{name}\" does not exist");
            Err(SqlError::new(sqlstate::UNDEFINED_OBJECT, message))
        }
        (_, None) => Ok(Value::Null),
    }
}

/// Where a name is looked up, for who may look there.
///
/// # Errors
/// `42501`.
fn looked_at<'e>(env: &'e Env<'_>, ty: Type, name: &str) -> Result<Surroundings<'e>> {
    let around = surroundings_of(env, ty);
    check_place(around, env.rights, env.acting.role, (ty, name))?;
    Ok(around)
}

/// The oid of a name that has to stand for something.
pub(super) fn reg(env: &Env<'_>, ty: Type, text: &str) -> Result<Oid> {
    looked_at(env, ty, text)?;
    parse_reg(env, ty, text)?.ok_or_else(|| no_such(ty, text))
}

/// The oids of an array of names.
fn oids_named(env: &Env<'_>, ty: Type, names: ArrayRef<'_>) -> Result<Value> {
    let mut oids = Vec::with_capacity(names.len());
    for name in names.items() {
        oids.push(match name.as_ref().as_str() {
            Some(name) => Value::Oid(reg(env, ty, name)?),
            None => Value::Null,
        });
    }
    let mut oids = oids.into_iter();
    let array = names.map(ty, |_| Ok(oids.next().unwrap_or(Value::Null)))?;
    Ok(Value::Array(array))
}

fn serial_sequence(env: &Env<'_>, table: &str, column: &str) -> Result<Value> {
    let oid = reg(env, Type::Regclass, table)?;
    let relation = env.catalog.relation(oid);
    let Some(definition) = relation.and_then(|relation| relation.table()) else {
        return Ok(Value::Null);
    };
    let found = definition.schema.columns().find(|own| *own.name == *column);
    let column = found.ok_or_else(|| {
        let message = format!("column \"{column}\" of relation \"{table}\" does not exist");
        SqlError::new(sqlstate::UNDEFINED_COLUMN, message)
    })?;
    let owned = env.catalog.relations().into_iter().find(|relation| {
        matches!(&relation.kind, Kind::Sequence(sequence) if sequence.owner == (oid, column.id.0))
    });
    Ok(owned.map_or(Value::Null, |sequence| {
        let schema = env.catalog.namespace_name(sequence.namespace);
        Value::text(format!("{}.{}", quoted(schema), quoted(&sequence.name)))
    }))
}

/// Bytes of a table, of its indexes, or of an index.
fn size(env: &Env<'_>, oid: Oid, indexes: bool, own: bool) -> Value {
    let mut bytes = 0;
    if let Some((_, index)) = env.catalog.index(oid) {
        let storage = index.storage.as_ref();
        bytes += storage.map_or(0, |storage| env.storage_bytes(&storage.name));
        return Value::Int8(bytes);
    }
    let Some(relation) = env.catalog.relation(oid) else {
        return Value::Null;
    };
    if let Some(table) = relation.table() {
        if own {
            bytes += env.storage_bytes(&table.storage.name);
        }
        if indexes {
            let storages = table.secondary().filter_map(|index| index.storage.as_ref());
            bytes += storages
                .map(|storage| env.storage_bytes(&storage.name))
                .sum::<i64>();
        }
    }
    Value::Int8(bytes)
}

fn address(of: Option<SocketAddr>) -> Value {
    of.map_or(Value::Null, |of| Value::Inet(Inet::of_host(of.ip())))
}

fn port(of: Option<SocketAddr>) -> Value {
    of.map_or(Value::Null, |of| Value::Int4(of.port().into()))
}
