//! Rights in `information_schema`, and default privileges: who has given what to whom.

use super::information::{database, yes_or_no};
use super::{Scan, Spec, derived_oid, nothing, text};
use crate::catalog::{AclOf, Collation, DefaultKind, Kind, Oid, Relation};
use crate::error::Result;
use crate::roles::{Grant, Rights};
use vellum_row::Value;

pub(super) const CATALOG: &[Spec] = &[Spec {
    name: "pg_default_acl",
    oid: 826,
    view: false,
    columns: "oid oid, defaclrole oid, defaclnamespace oid, defaclobjtype char, defaclacl _aclitem",
    fill: pg_default_acl,
}];

const TABLES: &str = "grantor name, grantee name, table_catalog name, table_schema name, table_name name, privilege_type varchar, \
     is_grantable varchar, with_hierarchy varchar";
const COLUMNS: &str = "grantor name, grantee name, table_catalog name, table_schema name, table_name name, column_name name, \
     privilege_type varchar, is_grantable varchar";
const USAGE: &str = "grantor name, grantee name, object_catalog name, object_schema name, object_name name, object_type varchar, \
     privilege_type varchar, is_grantable varchar";
const TYPES: &str = "grantor name, grantee name, udt_catalog name, udt_schema name, udt_name name, privilege_type varchar, \
     is_grantable varchar";
const ROUTINES: &str = "grantor name, grantee name, specific_catalog name, specific_schema name, specific_name name, routine_catalog name, \
     routine_schema name, routine_name name, privilege_type varchar, is_grantable varchar";
const ROLES: &str = "grantee name, role_name name, is_grantable varchar";

const fn view(
    name: &'static str,
    oid: Oid,
    columns: &'static str,
    fill: fn(&Scan<'_>, &mut Vec<Vec<Value>>) -> Result<()>,
) -> Spec {
    Spec {
        name,
        oid,
        view: true,
        columns,
        fill,
    }
}

pub(super) const INFORMATION: &[Spec] = &[
    view(
        "administrable_role_authorizations",
        13241,
        ROLES,
        administrable_roles,
    ),
    view("applicable_roles", 13236, ROLES, applicable_roles),
    view("column_privileges", 13285, COLUMNS, column_privileges),
    view("role_column_grants", 13344, COLUMNS, role_column_grants),
    view("role_routine_grants", 13358, ROUTINES, nothing),
    view("role_table_grants", 13421, TABLES, role_table_grants),
    view("role_udt_grants", 13450, TYPES, role_udt_grants),
    view("role_usage_grants", 13459, USAGE, role_usage_grants),
    view("routine_privileges", 13353, ROUTINES, nothing),
    view("table_privileges", 13416, TABLES, table_privileges),
    view("udt_privileges", 13445, TYPES, udt_privileges),
    view("usage_privileges", 13454, USAGE, usage_privileges),
];

/// A right that was given to somebody, with the right to give it on.
struct Given<'g> {
    grant: &'g Grant,
    right: Rights,
    grantable: bool,
}

impl Scan<'_> {
    fn is_enabled(&self, role: Oid) -> bool {
        self.env.rights.has_rights_of(self.env.acting.role, role)
    }

    fn role_name(&self, oid: Oid) -> Value {
        match self.env.rights.role_by_oid(oid) {
            Some(role) => text(role.name.as_str()),
            None => text("PUBLIC"),
        }
    }

    /// Rights of a set in a list, each by itself, that the session's role has, or has given. `roles`: not those of everybody that others gave.
    fn given<'g>(&self, acl: &'g [Grant], of: Rights, owner: Oid, roles: bool) -> Vec<Given<'g>> {
        let shown = acl.iter().filter(|grant| {
            let everybody = grant.grantee == 0 && !roles;
            everybody
                || self.is_enabled(grant.grantor)
                || grant.grantee != 0 && self.is_enabled(grant.grantee)
        });
        let mut all = Vec::new();
        for grant in shown {
            for (right, ..) in Rights::NAMES {
                if !grant.rights.both(of).contains(right) {
                    continue;
                }
                let owns = self.env.rights.has_rights_of(grant.grantee, owner);
                all.push(Given {
                    grant,
                    right,
                    grantable: owns || grant.grantable.contains(right),
                });
            }
        }
        all
    }
}

fn of_tables(scan: &Scan<'_>, roles: bool, rows: &mut Vec<Vec<Value>>) {
    for relation in scan.user_relations() {
        if matches!(relation.kind, Kind::Sequence(_)) {
            continue;
        }
        let owner = relation.owner;
        let acl = scan.catalog.grants(relation);
        for given in scan.given(&acl, Rights::TABLE, owner, roles) {
            rows.push(vec![
                scan.role_name(given.grant.grantor),
                scan.role_name(given.grant.grantee),
                database(),
                scan.schema_of(relation),
                text(relation.name.clone()),
                text(given.right.name()),
                yes_or_no(given.grantable),
                yes_or_no(given.right == Rights::SELECT),
            ]);
        }
    }
}

fn table_privileges(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    of_tables(scan, false, rows);
    Ok(())
}

fn role_table_grants(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    of_tables(scan, true, rows);
    Ok(())
}

fn of_columns(scan: &Scan<'_>, roles: bool, rows: &mut Vec<Vec<Value>>) {
    for relation in scan.user_relations() {
        if matches!(relation.kind, Kind::Sequence(_)) {
            continue;
        }
        let owner = relation.owner;
        let whole = scan.catalog.grants(relation);
        for (number, name, ..) in scan.columns(relation) {
            let own = scan.catalog.column_grants(relation, number as u16);
            let mut told: Vec<(Oid, Oid, Rights, bool)> = Vec::new();
            for acl in [&whole[..], own] {
                for given in scan.given(acl, Rights::COLUMN, owner, roles) {
                    let (grantor, grantee) = (given.grant.grantor, given.grant.grantee);
                    let row = (grantor, grantee, given.right, given.grantable);
                    // On the table and on the column: told once.
                    if !told.contains(&row) {
                        told.push(row);
                    }
                }
            }
            for (grantor, grantee, right, grantable) in told {
                rows.push(vec![
                    scan.role_name(grantor),
                    scan.role_name(grantee),
                    database(),
                    scan.schema_of(relation),
                    text(relation.name.clone()),
                    text(name.clone()),
                    text(right.name()),
                    yes_or_no(grantable),
                ]);
            }
        }
    }
}

fn column_privileges(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    of_columns(scan, false, rows);
    Ok(())
}

fn role_column_grants(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    of_columns(scan, true, rows);
    Ok(())
}

/// The rights to use collations, domains and sequences.
fn of_usage(scan: &Scan<'_>, roles: bool, rows: &mut Vec<Vec<Value>>) {
    let first = crate::database::FIRST_ROLE_OID;
    if !roles {
        for own in &Collation::ALL {
            rows.push(vec![
                scan.role_name(first),
                text("PUBLIC"),
                database(),
                text("pg_catalog"),
                text(own.name),
                text("COLLATION"),
                text("USAGE"),
                yes_or_no(false),
            ]);
        }
    }
    let mut tell = |relation: &Relation, kind: &'static str| {
        let owner = relation.owner;
        let acl = scan.catalog.grants(relation);
        for given in scan.given(&acl, Rights::USAGE, owner, roles) {
            rows.push(vec![
                scan.role_name(given.grant.grantor),
                scan.role_name(given.grant.grantee),
                database(),
                scan.schema_of(relation),
                text(relation.name.clone()),
                text(kind),
                text("USAGE"),
                yes_or_no(given.grantable),
            ]);
        }
    };
    for (relation, _) in super::domains::all(scan) {
        tell(relation, "DOMAIN");
    }
    for relation in scan.user_relations() {
        if matches!(relation.kind, Kind::Sequence(_)) {
            tell(relation, "SEQUENCE");
        }
    }
}

fn usage_privileges(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    of_usage(scan, false, rows);
    Ok(())
}

fn role_usage_grants(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    of_usage(scan, true, rows);
    Ok(())
}

/// Of the types of rows: nothing else can be said of them than what there is from the start.
fn of_types(scan: &Scan<'_>, roles: bool, rows: &mut Vec<Vec<Value>>) {
    for relation in scan.user_relations() {
        if matches!(relation.kind, Kind::Sequence(_)) {
            continue;
        }
        let owner = relation.owner;
        let acl = DefaultKind::Types.usual(owner);
        for given in scan.given(&acl, Rights::USAGE, owner, roles) {
            rows.push(vec![
                scan.role_name(given.grant.grantor),
                scan.role_name(given.grant.grantee),
                database(),
                scan.schema_of(relation),
                text(relation.name.clone()),
                text("TYPE USAGE"),
                yes_or_no(given.grantable),
            ]);
        }
    }
}

fn udt_privileges(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    of_types(scan, false, rows);
    Ok(())
}

fn role_udt_grants(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    of_types(scan, true, rows);
    Ok(())
}

fn of_roles(scan: &Scan<'_>, only_grantable: bool, rows: &mut Vec<Vec<Value>>) {
    for member in scan
        .catalog
        .roles()
        .filter(|role| scan.is_enabled(role.oid))
    {
        for membership in &member.member_of {
            if only_grantable && !membership.admin {
                continue;
            }
            rows.push(vec![
                text(member.name.as_str()),
                scan.role_name(membership.role),
                yes_or_no(membership.admin),
            ]);
        }
    }
}

fn applicable_roles(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    of_roles(scan, false, rows);
    Ok(())
}

fn administrable_roles(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    of_roles(scan, true, rows);
    Ok(())
}

fn pg_default_acl(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    for (of, acl) in scan.catalog.acls() {
        let AclOf::Default { role, schema, kind } = of else {
            continue;
        };
        rows.push(vec![
            Value::Oid(derived_oid(
                role ^ schema.rotate_left(16),
                kind as u8 as u16,
            )),
            Value::Oid(role),
            Value::Oid(schema),
            text(kind.letter().to_string()),
            super::relations::acl_of(scan, acl),
        ]);
    }
    Ok(())
}
