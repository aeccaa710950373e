//! Roles, the database and its tablespaces.

use super::relations::DATABASE_OWNER;
use super::{Scan, Spec, text};
use crate::catalog::{AclOf, KeptFor, Oid};
use crate::database::DATABASE;
use crate::error::{Result, SqlError};
use crate::roles::Role;
use crate::session::Env;
use crate::sqlstate;
use vellum_row::{Array, Type, Value};

pub(super) const RELATIONS: &[Spec] = &[
    Spec {
        name: "pg_authid",
        oid: 1260,
        view: false,
        columns: "oid oid, rolname name, rolsuper bool, rolinherit bool, rolcreaterole bool, rolcreatedb bool, rolcanlogin \
         bool, rolreplication bool, rolbypassrls bool, rolconnlimit int4, rolpassword text, rolvaliduntil \
         timestamptz",
        fill: pg_authid,
    },
    Spec {
        name: "pg_roles",
        oid: 12000,
        view: true,
        columns: "rolname name, rolsuper bool, rolinherit bool, rolcreaterole bool, rolcreatedb bool, rolcanlogin bool, \
         rolreplication bool, rolconnlimit int4, rolpassword text, rolvaliduntil timestamptz, rolbypassrls bool, \
         rolconfig _text, oid oid",
        fill: pg_roles,
    },
    Spec {
        name: "pg_user",
        oid: 12014,
        view: true,
        columns: "usename name, usesysid oid, usecreatedb bool, usesuper bool, userepl bool, usebypassrls bool, passwd \
         text, valuntil timestamptz, useconfig _text",
        fill: pg_user,
    },
    Spec {
        name: "pg_shadow",
        oid: 12005,
        view: true,
        columns: "usename name, usesysid oid, usecreatedb bool, usesuper bool, userepl bool, usebypassrls bool, passwd \
         text, valuntil timestamptz, useconfig _text",
        fill: pg_shadow,
    },
    Spec {
        name: "pg_group",
        oid: 12010,
        view: true,
        columns: "groname name, grosysid oid, grolist _oid",
        fill: pg_group,
    },
    Spec {
        name: "pg_auth_members",
        oid: 1261,
        view: false,
        columns: "roleid oid, member oid, grantor oid, admin_option bool",
        fill: pg_auth_members,
    },
    Spec {
        name: "pg_db_role_setting",
        oid: 2964,
        view: false,
        columns: "setdatabase oid, setrole oid, setconfig _text",
        fill: pg_db_role_setting,
    },
    Spec {
        name: "pg_database",
        oid: 1262,
        view: false,
        columns: "oid oid, datname name, datdba oid, encoding int4, datlocprovider char, datistemplate bool, datallowconn \
         bool, datconnlimit int4, datfrozenxid xid, datminmxid xid, dattablespace oid, datcollate text, datctype \
         text, daticulocale text, datcollversion text, datacl _aclitem",
        fill: pg_database,
    },
    Spec {
        name: "pg_tablespace",
        oid: 1213,
        view: false,
        columns: "oid oid, spcname name, spcowner oid, spcacl _aclitem, spcoptions _text",
        fill: pg_tablespace,
    },
];

/// Oid of the database.
pub(crate) const DATABASE_OID: u32 = 5;
/// The encoding `UTF8`.
const UTF8: i32 = 6;
const DEFAULT_TABLESPACE: u32 = 1663;

/// Roles by oid, and the one that stands for whoever owns the database.
fn all(scan: &Scan<'_>) -> Vec<Role> {
    let mut all: Vec<Role> = scan.catalog.roles().map(|role| Role::clone(role)).collect();
    all.push(Role::new("pg_database_owner", DATABASE_OWNER));
    all.sort_by_key(|role| role.oid);
    all
}

fn until(role: &Role) -> Value {
    role.valid_until.map_or(Value::Null, Value::Timestamptz)
}

fn limit(role: &Role) -> Value {
    let most = role
        .connections_max
        .and_then(|most| i32::try_from(most).ok());
    Value::Int4(most.unwrap_or(-1))
}

/// The first rights of a role, in the order in which both relations have them.
fn rights(role: &Role) -> [Value; 6] {
    [
        role.superuser,
        role.inherit,
        role.create_role,
        role.create_database,
        role.login,
        role.replication,
    ]
    .map(Value::Bool)
}

/// Verifiers are for superusers.
fn pg_authid(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    scan.env.check_superuser("table pg_authid")?;
    for role in all(scan) {
        let mut row = vec![Value::Oid(role.oid), text(role.name.as_str())];
        row.extend(rights(&role));
        row.push(Value::Bool(role.bypass_rls));
        row.push(limit(&role));
        row.push(role.verifier.as_deref().map_or(Value::Null, text));
        row.push(until(&role));
        rows.push(row);
    }
    Ok(())
}

fn pg_roles(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    for role in all(scan) {
        let mut row = vec![text(role.name.as_str())];
        row.extend(rights(&role));
        row.push(limit(&role));
        row.push(text("********"));
        row.push(until(&role));
        row.push(Value::Bool(role.bypass_rls));
        row.push(begun_with(scan, role.oid));
        row.push(Value::Oid(role.oid));
        rows.push(row);
    }
    Ok(())
}

fn pg_user(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    users(scan, |_| text("********"), rows);
    Ok(())
}

fn pg_shadow(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    scan.env.check_superuser("view pg_shadow")?;
    let password = |role: &Role| role.verifier.as_deref().map_or(Value::Null, text);
    users(scan, password, rows);
    Ok(())
}

/// Roles that may log in, with what is shown for their passwords.
fn users(scan: &Scan<'_>, password: impl Fn(&Role) -> Value, rows: &mut Vec<Vec<Value>>) {
    for role in all(scan).into_iter().filter(|role| role.login) {
        rows.push(vec![
            text(role.name.as_str()),
            Value::Oid(role.oid),
            Value::Bool(role.create_database),
            Value::Bool(role.superuser),
            Value::Bool(role.replication),
            Value::Bool(role.bypass_rls),
            password(&role),
            until(&role),
            begun_with(scan, role.oid),
        ]);
    }
}

fn pg_group(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    let roles = all(scan);
    for group in roles.iter().filter(|role| !role.login) {
        let members = roles.iter().filter(|role| role.is_member_of(group.oid));
        let members: Vec<Value> = members.map(|role| Value::Oid(role.oid)).collect();
        rows.push(vec![
            text(group.name.as_str()),
            Value::Oid(group.oid),
            Value::Array(Array::of(Type::Oid, &members)),
        ]);
    }
    Ok(())
}

fn pg_auth_members(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    for role in all(scan) {
        for membership in &role.member_of {
            rows.push(vec![
                Value::Oid(membership.role),
                Value::Oid(role.oid),
                Value::Oid(membership.grantor),
                Value::Bool(membership.admin),
            ]);
        }
    }
    Ok(())
}

/// Settings as they are listed.
fn listed(pairs: &[(Box<str>, Box<str>)]) -> Value {
    let each = pairs
        .iter()
        .map(|(name, value)| text(format!("{name}={value}")));
    Value::Array(Array::of(Type::Text, &each.collect::<Vec<_>>()))
}

/// What the sessions of a role begin with, wherever they are.
fn begun_with(scan: &Scan<'_>, role: u32) -> Value {
    let of = KeptFor {
        role,
        in_database: false,
    };
    match scan.catalog.kept_settings(of) {
        [] => Value::Null,
        pairs => listed(pairs),
    }
}

fn pg_db_role_setting(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    for (of, pairs) in scan.catalog.all_kept_settings() {
        let database = if of.in_database { DATABASE_OID } else { 0 };
        rows.push(vec![
            Value::Oid(database),
            Value::Oid(of.role),
            listed(pairs),
        ]);
    }
    Ok(())
}

fn pg_database(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    let acl = scan.catalog.acl(AclOf::Database);
    rows.push(vec![
        Value::Oid(DATABASE_OID),
        text(DATABASE),
        Value::Oid(crate::database::FIRST_ROLE_OID),
        Value::Int4(UTF8),
        text("c"),
        Value::Bool(false),
        Value::Bool(true),
        Value::Int4(-1),
        Value::Oid(0),
        Value::Oid(0),
        Value::Oid(DEFAULT_TABLESPACE),
        text("C"),
        text("C"),
        Value::Null,
        Value::Null,
        acl.map_or(Value::Null, |acl| super::relations::acl_of(scan, acl)),
    ]);
    Ok(())
}

fn pg_tablespace(_: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    for (oid, name) in [(DEFAULT_TABLESPACE, "pg_default"), (1664, "pg_global")] {
        let owner = Value::Oid(crate::database::FIRST_ROLE_OID);
        rows.push(vec![
            Value::Oid(oid),
            text(name),
            owner,
            Value::Null,
            Value::Null,
        ]);
    }
    Ok(())
}

/// The rights on an object of a kind that has none written down, as an array of `aclitem`: `acldefault`.
///
/// # Errors
/// `XX000` for a kind that is none.
pub(super) fn default_rights(env: &Env<'_>, kind: &str, owner: Oid) -> Result<Value> {
    let (everybody, own) = match kind {
        "c" => ("", ""),
        "r" => ("", "arwdDxt"),
        "s" => ("", "rwU"),
        "d" => ("Tc", "CTc"),
        "f" => ("X", "X"),
        "l" | "T" => ("U", "U"),
        "L" => ("", "rw"),
        "n" => ("", "UC"),
        "p" => ("", "sA"),
        "t" => ("", "C"),
        "F" | "S" => ("", "U"),
        other => {
            // `XX000` at PostgreSQL; here that is for what is wrong with Vellum.
            let message = format!("unrecognized objtype abbreviation: {other}");
            return Err(SqlError::new(sqlstate::INVALID_PARAMETER_VALUE, message));
        }
    };
    let name = match env.rights.role_by_oid(owner) {
        Some(role) => crate::names::quoted(&role.name),
        None if owner == DATABASE_OWNER => "pg_database_owner".to_owned(),
        None => owner.to_string(),
    };
    let items = [("", everybody), (name.as_str(), own)].into_iter();
    let items = items.filter(|(_, rights)| !rights.is_empty());
    let items: Vec<Value> = items
        .map(|(grantee, rights)| text(format!("{grantee}={rights}/{name}")))
        .collect();
    Ok(Value::Array(Array::of(Type::AclItem, &items)))
}
