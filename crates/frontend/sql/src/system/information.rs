//! `information_schema`.

use super::collations::of_column;
use super::constraints::{self, What};
use super::{Scan, Spec, describe, domains, nothing, text};
use crate::catalog::{
    Action, CheckOption, Collation, Default, Identity, Kind, Relation, SequenceDefinition, Timing,
};
use crate::database::DATABASE;
use crate::error::Result;
use crate::plan::Changes;
use crate::roles::Rights;
use vellum_row::{ColumnId, Type, Typmod, Value};

pub(super) const RELATIONS: &[Spec] = &[
    Spec {
        name: "check_constraints",
        oid: 13260,
        view: true,
        columns: "constraint_catalog name, constraint_schema name, constraint_name name, check_clause varchar",
        fill: check_constraints,
    },
    Spec {
        name: "columns",
        oid: 13295,
        view: true,
        columns: "table_catalog name, table_schema name, table_name name, column_name name, ordinal_position int4, \
         column_default varchar, is_nullable varchar, data_type varchar, character_maximum_length int4, \
         character_octet_length int4, numeric_precision int4, numeric_precision_radix int4, numeric_scale int4, \
         datetime_precision int4, interval_type varchar, interval_precision int4, character_set_catalog name, \
         character_set_schema name, character_set_name name, collation_catalog name, collation_schema name, \
         collation_name name, domain_catalog name, domain_schema name, domain_name name, udt_catalog name, \
         udt_schema name, udt_name name, scope_catalog name, scope_schema name, scope_name name, \
         maximum_cardinality int4, dtd_identifier name, is_self_referencing varchar, is_identity varchar, \
         identity_generation varchar, identity_start varchar, identity_increment varchar, identity_maximum \
         varchar, identity_minimum varchar, identity_cycle varchar, is_generated varchar, generation_expression \
         varchar, is_updatable varchar",
        fill: columns,
    },
    Spec {
        name: "constraint_column_usage",
        oid: 13300,
        view: true,
        columns: "table_catalog name, table_schema name, table_name name, column_name name, constraint_catalog name, \
         constraint_schema name, constraint_name name",
        fill: constraint_column_usage,
    },
    Spec {
        name: "constraint_table_usage",
        oid: 13305,
        view: true,
        columns: "table_catalog name, table_schema name, table_name name, constraint_catalog name, constraint_schema name, \
         constraint_name name",
        fill: constraint_table_usage,
    },
    Spec {
        name: "enabled_roles",
        oid: 13325,
        view: true,
        columns: "role_name name",
        fill: enabled_roles,
    },
    Spec {
        name: "information_schema_catalog_name",
        oid: 13227,
        view: true,
        columns: "catalog_name name",
        fill: information_schema_catalog_name,
    },
    Spec {
        name: "key_column_usage",
        oid: 13329,
        view: true,
        columns: "constraint_catalog name, constraint_schema name, constraint_name name, table_catalog name, table_schema \
         name, table_name name, column_name name, ordinal_position int4, position_in_unique_constraint int4",
        fill: key_column_usage,
    },
    Spec {
        name: "referential_constraints",
        oid: 13339,
        view: true,
        columns: "constraint_catalog name, constraint_schema name, constraint_name name, unique_constraint_catalog name, \
         unique_constraint_schema name, unique_constraint_name name, match_option varchar, update_rule varchar, \
         delete_rule varchar",
        fill: referential_constraints,
    },
    Spec {
        name: "schemata",
        oid: 13382,
        view: true,
        columns: "catalog_name name, schema_name name, schema_owner name, default_character_set_catalog name, \
         default_character_set_schema name, default_character_set_name name, sql_path varchar",
        fill: schemata,
    },
    Spec {
        name: "sequences",
        oid: 13386,
        view: true,
        columns: "sequence_catalog name, sequence_schema name, sequence_name name, data_type varchar, numeric_precision \
         int4, numeric_precision_radix int4, numeric_scale int4, start_value varchar, minimum_value varchar, \
         maximum_value varchar, increment varchar, cycle_option varchar",
        fill: sequences,
    },
    Spec {
        name: "table_constraints",
        oid: 13411,
        view: true,
        columns: "constraint_catalog name, constraint_schema name, constraint_name name, table_catalog name, table_schema \
         name, table_name name, constraint_type varchar, is_deferrable varchar, initially_deferred varchar, \
         enforced varchar, nulls_distinct varchar",
        fill: table_constraints,
    },
    Spec {
        name: "tables",
        oid: 13425,
        view: true,
        columns: "table_catalog name, table_schema name, table_name name, table_type varchar, self_referencing_column_name \
         name, reference_generation varchar, user_defined_type_catalog name, user_defined_type_schema name, \
         user_defined_type_name name, is_insertable_into varchar, is_typed varchar, commit_action varchar",
        fill: tables,
    },
    Spec {
        name: "views",
        oid: 13483,
        view: true,
        columns: "table_catalog name, table_schema name, table_name name, view_definition varchar, check_option varchar, \
         is_updatable varchar, is_insertable_into varchar, is_trigger_updatable varchar, is_trigger_deletable \
         varchar, is_trigger_insertable_into varchar",
        fill: views,
    },
    Spec {
        name: "element_types",
        oid: 13493,
        view: true,
        columns: "object_catalog name, object_schema name, object_name name, object_type varchar, \
         collection_type_identifier name, data_type varchar, character_maximum_length int4, \
         character_octet_length int4, character_set_catalog name, character_set_schema name, character_set_name \
         name, collation_catalog name, collation_schema name, collation_name name, numeric_precision int4, \
         numeric_precision_radix int4, numeric_scale int4, datetime_precision int4, interval_type varchar, \
         interval_precision int4, domain_default varchar, udt_catalog name, udt_schema name, udt_name name, \
         scope_catalog name, scope_schema name, scope_name name, maximum_cardinality int4, dtd_identifier name",
        fill: element_types,
    },
];

pub(super) const EMPTY: &[Spec] = &[
    Spec {
        name: "parameters",
        oid: 13334,
        view: true,
        columns: "specific_catalog name, specific_schema name, specific_name name, ordinal_position int4, parameter_mode \
         varchar, is_result varchar, as_locator varchar, parameter_name name, data_type varchar, \
         character_maximum_length int4, character_octet_length int4, character_set_catalog name, \
         character_set_schema name, character_set_name name, collation_catalog name, collation_schema name, \
         collation_name name, numeric_precision int4, numeric_precision_radix int4, numeric_scale int4, \
         datetime_precision int4, interval_type varchar, interval_precision int4, udt_catalog name, udt_schema \
         name, udt_name name, scope_catalog name, scope_schema name, scope_name name, maximum_cardinality int4, \
         dtd_identifier name, parameter_default varchar",
        fill: nothing,
    },
    Spec {
        name: "routines",
        oid: 13377,
        view: true,
        columns: "specific_catalog name, specific_schema name, specific_name name, routine_catalog name, routine_schema \
         name, routine_name name, routine_type varchar, module_catalog name, module_schema name, module_name \
         name, udt_catalog name, udt_schema name, udt_name name, data_type varchar, character_maximum_length \
         int4, character_octet_length int4, character_set_catalog name, character_set_schema name, \
         character_set_name name, collation_catalog name, collation_schema name, collation_name name, \
         numeric_precision int4, numeric_precision_radix int4, numeric_scale int4, datetime_precision int4, \
         interval_type varchar, interval_precision int4, type_udt_catalog name, type_udt_schema name, \
         type_udt_name name, scope_catalog name, scope_schema name, scope_name name, maximum_cardinality int4, \
         dtd_identifier name, routine_body varchar, routine_definition varchar, external_name varchar, \
         external_language varchar, parameter_style varchar, is_deterministic varchar, sql_data_access varchar, \
         is_null_call varchar, sql_path varchar, schema_level_routine varchar, max_dynamic_result_sets int4, \
         is_user_defined_cast varchar, is_implicitly_invocable varchar, security_type varchar, \
         to_sql_specific_catalog name, to_sql_specific_schema name, to_sql_specific_name name, as_locator \
         varchar, created timestamptz, last_altered timestamptz, new_savepoint_level varchar, is_udt_dependent \
         varchar, result_cast_from_data_type varchar, result_cast_as_locator varchar, result_cast_char_max_length \
         int4, result_cast_char_octet_length int4, result_cast_char_set_catalog name, result_cast_char_set_schema \
         name, result_cast_char_set_name name, result_cast_collation_catalog name, result_cast_collation_schema \
         name, result_cast_collation_name name, result_cast_numeric_precision int4, \
         result_cast_numeric_precision_radix int4, result_cast_numeric_scale int4, result_cast_datetime_precision \
         int4, result_cast_interval_type varchar, result_cast_interval_precision int4, \
         result_cast_type_udt_catalog name, result_cast_type_udt_schema name, result_cast_type_udt_name name, \
         result_cast_scope_catalog name, result_cast_scope_schema name, result_cast_scope_name name, \
         result_cast_maximum_cardinality int4, result_cast_dtd_identifier name",
        fill: nothing,
    },
    Spec {
        name: "triggers",
        oid: 13440,
        view: true,
        columns: "trigger_catalog name, trigger_schema name, trigger_name name, event_manipulation varchar, \
         event_object_catalog name, event_object_schema name, event_object_table name, action_order int4, \
         action_condition varchar, action_statement varchar, action_orientation varchar, action_timing varchar, \
         action_reference_old_table name, action_reference_new_table name, action_reference_old_row name, \
         action_reference_new_row name, created timestamptz",
        fill: nothing,
    },
];

pub(super) fn database() -> Value {
    text(DATABASE)
}

pub(super) fn yes_or_no(yes: bool) -> Value {
    text(if yes { "YES" } else { "NO" })
}

/// Relations that the session's role may do anything with.
pub(super) fn accessible<'s>(scan: &'s Scan<'_>) -> impl Iterator<Item = &'s Relation> {
    let role = scan.env.acting.role;
    let all = scan.catalog.relations().into_iter();
    let open = move |relation: &&Relation| {
        let rights = Rights::ALL.into_iter();
        matches!(relation.kind, Kind::System(_))
            || rights.into_iter().any(|right| {
                let mut columns = relation.column_acls.iter();
                scan.env.rights.allows(role, relation, right)
                    || columns.any(|(column, _)| {
                        scan.env
                            .rights
                            .allows_column(role, relation, *column, right)
                    })
            })
    };
    all.map(|relation| &**relation).filter(open)
}

fn information_schema_catalog_name(_: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    rows.push(vec![database()]);
    Ok(())
}

fn schemata(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    for namespace in scan.catalog.namespaces() {
        let mut row = vec![
            database(),
            text(namespace.name.clone()),
            scan.role_shown(namespace.owner),
        ];
        row.resize(7, Value::Null);
        rows.push(row);
    }
    Ok(())
}

fn enabled_roles(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    for role in scan.catalog.roles() {
        if scan
            .env
            .rights
            .has_rights_of(scan.env.acting.role, role.oid)
        {
            rows.push(vec![text(role.name.as_str())]);
        }
    }
    Ok(())
}

fn tables(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    for relation in accessible(scan) {
        let (kind, insertable) = match &relation.kind {
            Kind::Table(_) if scan.catalog.is_temporary(relation.namespace) => {
                ("LOCAL TEMPORARY", true)
            }
            Kind::Table(_) => ("BASE TABLE", true),
            Kind::System(definition) if !definition.is_view => ("BASE TABLE", false),
            Kind::View(_) => ("VIEW", taken(scan, relation) & Changes::INSERT != 0),
            Kind::System(_) => ("VIEW", false),
            Kind::Sequence(_) | Kind::Enum(_) | Kind::Domain(_) => continue,
        };
        let mut row = vec![
            database(),
            scan.schema_of(relation),
            text(relation.name.clone()),
            text(kind),
        ];
        row.resize(9, Value::Null);
        let at_commit = match kind {
            "LOCAL TEMPORARY" => text("PRESERVE"),
            _ => Value::Null,
        };
        row.extend([yes_or_no(insertable), yes_or_no(false), at_commit]);
        rows.push(row);
    }
    Ok(())
}

/// Which changes a view takes.
fn taken(scan: &Scan<'_>, relation: &Relation) -> i32 {
    let changes = scan.env.changes_of(relation.oid);
    changes.map_or(0, |changes| changes.events(None))
}

fn views(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    for relation in accessible(scan) {
        let is_view = match &relation.kind {
            Kind::View(_) => true,
            Kind::System(definition) => definition.is_view,
            _ => false,
        };
        if !is_view {
            continue;
        }
        // For who has the rights of its owner, whoever may read it.
        let (rights, user) = (scan.env.rights, scan.env.acting.role);
        let definition = match rights.owns(user, relation.owner) {
            true => describe::view_definition(scan.env, relation.oid, false),
            false => None,
        };
        let mut row = vec![
            database(),
            scan.schema_of(relation),
            text(relation.name.clone()),
            definition.map_or(Value::Null, text),
        ];
        let changes = Changes::UPDATE | Changes::DELETE;
        let (mut option, mut events) = (None, 0);
        if let Kind::View(view) = &relation.kind {
            option = view.check_option();
            events = taken(scan, relation);
        }
        row.extend([
            text(match option {
                None => "NONE",
                Some(CheckOption::Local) => "LOCAL",
                Some(CheckOption::Cascaded) => "CASCADED",
            }),
            yes_or_no(events & changes == changes),
            yes_or_no(events & Changes::INSERT != 0),
        ]);
        row.resize(10, yes_or_no(false));
        rows.push(row);
    }
    Ok(())
}

fn sequences(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    for relation in accessible(scan) {
        let Kind::Sequence(sequence) = &relation.kind else {
            continue;
        };
        if is_of_identity(scan, sequence) {
            continue;
        }
        let ty = Type::from_oid(sequence.type_oid).unwrap_or(Type::Int8);
        let shown = |number: i64| text(number.to_string());
        rows.push(vec![
            database(),
            scan.schema_of(relation),
            text(relation.name.clone()),
            text(ty.sql_name()),
            Value::Int4(i32::from(ty.length()) * 8),
            Value::Int4(2),
            Value::Int4(0),
            shown(sequence.start),
            shown(sequence.minimum),
            shown(sequence.maximum),
            shown(sequence.increment),
            yes_or_no(sequence.cycle),
        ]);
    }
    Ok(())
}

/// Whether a sequence is a part of an identity column, and no object of its own.
fn is_of_identity(scan: &Scan<'_>, sequence: &SequenceDefinition) -> bool {
    let (table, column) = sequence.owner;
    let owner = scan.catalog.relation(table);
    let default = owner
        .and_then(|owner| owner.table())
        .and_then(|table| table.default_of(ColumnId(column)));
    matches!(default, Some(Default::Identity { .. }))
}

/// Numbers that a type has: characters, bytes, precision and its base, scale, digits of the second.
pub(super) fn numbers(ty: Type, typmod: Typmod) -> [Value; 6] {
    let mut all = [const { Value::Null }; 6];
    let int4 = |number: i32| Value::Int4(number);
    match ty {
        Type::Varchar | Type::Char => {
            let length = typmod
                .length()
                .and_then(|length| i32::try_from(length).ok());
            if let Some(length) = length {
                all[0] = int4(length);
            }
            all[1] = int4(length.map_or(1 << 30, |length| length.saturating_mul(4)));
        }
        Type::Text => all[1] = int4(1 << 30),
        Type::Int2 | Type::Int4 | Type::Int8 => {
            all[2] = int4(i32::from(ty.length()) * 8);
            (all[3], all[4]) = (int4(2), int4(0));
        }
        Type::Float4 => (all[2], all[3]) = (int4(24), int4(2)),
        Type::Float8 => (all[2], all[3]) = (int4(53), int4(2)),
        Type::Numeric => {
            all[3] = int4(10);
            if let Some((precision, scale)) = typmod.precision_scale() {
                (all[2], all[4]) = (int4(precision), int4(scale));
            }
        }
        Type::Date => all[5] = int4(0),
        Type::Time | Type::Timestamp | Type::Timestamptz => {
            all[5] = int4(typmod.fraction().map_or(6, |digits| digits as i32));
        }
        Type::Interval => {
            all[5] = int4(typmod.interval_fraction().map_or(6, |digits| digits as i32));
        }
        _ => {}
    }
    all
}

fn columns(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    let collations = scan.collations();
    for relation in accessible(scan) {
        if matches!(relation.kind, Kind::Sequence(_)) {
            continue;
        }
        let domains = scan.domains_of(relation);
        let collated = collations.get(&relation.oid);
        let changes = match relation.kind {
            Kind::View(_) => scan.env.changes_of(relation.oid),
            _ => None,
        };
        for (number, name, ty, typmod, nullable) in scan.columns(relation) {
            let default = relation.default_of(number as u16);
            let domain = of_column(&domains, number);
            // One that has to be something by its domain is told to be so, too.
            let asked = domain.map(|domain| scan.catalog.domains_of(domain));
            let nullable = nullable
                && !asked.is_some_and(|all| all.first().is_some_and(|(_, own)| own.not_null));
            let mut row = column(
                scan,
                relation,
                (number, &name, nullable),
                (ty, typmod),
                default.as_deref(),
            );
            let collation = collated.and_then(|all| of_column(all, number));
            let collation = collation.unwrap_or_else(|| Collation::of_type(ty));
            if let Some(own) = Collation::of(collation).filter(|own| own.oid != Collation::DEFAULT)
            {
                (row[19], row[20], row[21]) = (database(), text("pg_catalog"), text(own.name));
            }
            for (place, value) in row[22..25].iter_mut().zip(domains::named(scan, domain)) {
                *place = value;
            }
            domains::below_in(scan, domain, &mut row);
            row.push(yes_or_no(match &changes {
                Some(changes) => changes.reaches(number as usize - 1),
                None => relation.table().is_some(),
            }));
            rows.push(row);
        }
    }
    Ok(())
}

fn column(
    scan: &Scan<'_>,
    relation: &Relation,
    (number, name, nullable): (i16, &str, bool),
    (ty, typmod): (Type, Typmod),
    default: Option<&Default>,
) -> Vec<Value> {
    let id = Some(ColumnId(number as u16));
    let expression = |sql: &str| text(scan.env.expression_text(Some(relation), id, sql, false));
    let [characters, bytes, precision, base, scale, digits] = numbers(ty, typmod);
    let (mut shown, mut generated) = (Value::Null, Value::Null);
    let mut identity = [const { Value::Null }; 6];
    match default {
        Some(Default::Expression(sql)) => shown = expression(sql),
        Some(Default::Generated(sql)) => generated = expression(sql),
        Some(Default::Identity { kind, sequence }) => {
            let always = *kind == Identity::Always;
            identity[0] = text(if always { "ALWAYS" } else { "BY DEFAULT" });
            let found = scan.catalog.relation(*sequence);
            if let Some(Kind::Sequence(sequence)) = found.map(|relation| &relation.kind) {
                let numbers = [
                    sequence.start,
                    sequence.increment,
                    sequence.maximum,
                    sequence.minimum,
                ];
                for (place, number) in identity[1..5].iter_mut().zip(numbers) {
                    *place = text(number.to_string());
                }
                identity[5] = yes_or_no(sequence.cycle);
            }
        }
        None => {}
    }
    let is_generated = !generated.is_null();
    let is_identity = !identity[0].is_null();
    let table_name = text(relation.name.clone());
    let data_type = match ty {
        Type::Array(_) | Type::Int2Vector | Type::OidVector => "ARRAY",
        Type::Enum(_) => "USER-DEFINED",
        ty => ty.sql_name(),
    };
    let mut row = vec![database(), scan.schema_of(relation), table_name, text(name)];
    row.extend([Value::Int4(i32::from(number)), shown, yes_or_no(nullable)]);
    row.extend([
        text(data_type),
        characters,
        bytes,
        precision,
        base,
        scale,
        digits,
    ]);
    // Interval's fields, character sets, collations, domains.
    row.resize(24, Value::Null);
    if let Some(fields) = typmod.interval_fields().filter(|_| ty == Type::Interval) {
        row[14] = fields
            .name()
            .map_or(Value::Null, |name| text(name.to_uppercase()));
    }
    row.truncate(25);
    row.resize(25, Value::Null);
    let (schema, name) = super::types::catalog_name(scan.catalog, ty);
    row.extend([database(), text(schema), text(name)]);
    row.resize(32, Value::Null);
    row.push(text(number.to_string()));
    row.extend([yes_or_no(false), yes_or_no(is_identity)]);
    let [kind, start, increment, maximum, minimum, cycle] = identity;
    let cycle = if cycle.is_null() {
        yes_or_no(false)
    } else {
        cycle
    };
    row.extend([kind, start, increment, maximum, minimum, cycle]);
    row.push(text(if is_generated { "ALWAYS" } else { "NEVER" }));
    row.push(generated);
    row
}

/// What the arrays in columns are of.
fn element_types(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    for relation in accessible(scan) {
        if matches!(relation.kind, Kind::Sequence(_)) {
            continue;
        }
        for (number, _, ty, ..) in scan.columns(relation) {
            let Some(element) = ty.element() else {
                continue;
            };
            let data_type = match element {
                Type::Enum(_) => "USER-DEFINED",
                other => other.sql_name(),
            };
            let mut row = vec![
                database(),
                scan.schema_of(relation),
                text(relation.name.clone()),
                text("TABLE"),
                text(number.to_string()),
                text(data_type),
            ];
            // Of an element no length, precision or default is told.
            row.resize(21, Value::Null);
            let (schema, name) = super::types::catalog_name(scan.catalog, element);
            row.extend([database(), text(schema), text(name)]);
            row.resize(28, Value::Null);
            row.push(text(format!("a{number}")));
            rows.push(row);
        }
    }
    Ok(())
}

/// Calls `each` with the constraints of the tables that the session's role may use.
fn each_constraint<'s>(
    scan: &'s Scan<'_>,
    mut each: impl FnMut(&'s Relation, &constraints::Constraint<'s>),
) {
    for relation in accessible(scan) {
        for constraint in constraints::of(relation) {
            each(relation, &constraint);
        }
    }
}

fn table_constraints(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    let mut row = |relation: &Relation, name: Value, kind: &str, timing: Timing, distinct| {
        let schema = scan.schema_of(relation);
        rows.push(vec![
            database(),
            schema.clone(),
            name,
            database(),
            schema,
            text(relation.name.clone()),
            text(kind),
            yes_or_no(timing.is_deferrable()),
            yes_or_no(timing == Timing::Deferred),
            yes_or_no(true),
            Option::map_or(distinct, Value::Null, yes_or_no),
        ]);
    };
    each_constraint(scan, |relation, constraint| {
        let kind = match constraint.kind() {
            "p" => "PRIMARY KEY",
            "u" => "UNIQUE",
            "f" => "FOREIGN KEY",
            _ => "CHECK",
        };
        let distinct = match &constraint.what {
            constraints::What::Index(index) if !index.primary => Some(index.nulls_distinct),
            _ => None,
        };
        let name = text(constraint.name);
        row(relation, name, kind, constraint.timing(), distinct);
    });
    // NOT NULL counts as a check, under a name that is made of oids.
    for relation in accessible(scan) {
        for (number, .., nullable) in scan.columns(relation) {
            if !nullable && relation.table().is_some() {
                let (schema, oid) = (relation.namespace, relation.oid);
                row(
                    relation,
                    text(format!("{schema}_{oid}_{number}_not_null")),
                    "CHECK",
                    Timing::Fixed,
                    None,
                );
            }
        }
    }
    Ok(())
}

fn check_constraints(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    each_constraint(scan, |relation, constraint| {
        if let What::Check(sql) = constraint.what {
            let clause = scan.env.expression_text(Some(relation), None, sql, false);
            let name = text(constraint.name);
            rows.push(vec![
                database(),
                scan.schema_of(relation),
                name,
                // As it stands behind CHECK.
                text(format!("({clause})")),
            ]);
        }
    });
    domains::check_constraints(scan, rows);
    for relation in accessible(scan) {
        for (number, name, .., nullable) in scan.columns(relation) {
            if !nullable && relation.table().is_some() {
                let (schema, oid) = (relation.namespace, relation.oid);
                rows.push(vec![
                    database(),
                    scan.schema_of(relation),
                    text(format!("{schema}_{oid}_{number}_not_null")),
                    text(format!("{} IS NOT NULL", crate::names::quoted(&name))),
                ]);
            }
        }
    }
    Ok(())
}

fn column_of(relation: &Relation, column: ColumnId) -> Value {
    let table = relation.table();
    let found = table.map(|table| table.schema.column(table.position(column)).name.clone());
    found.map_or(Value::Null, text)
}

fn key_column_usage(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    each_constraint(scan, |relation, constraint| {
        let target = match &constraint.what {
            What::Check(_) => return,
            What::Index(_) => None,
            What::Foreign(key) => Some(*key),
        };
        for (number, column) in (1..).zip(constraint.columns(scan)) {
            let schema = scan.schema_of(relation);
            // Its place in the key that it refers to.
            let place = target.and_then(|key| {
                let target = scan.catalog.relation(key.target)?.table()?;
                let (oid, _) = constraints::target_index(scan, key)?;
                let index = target.indexes.iter().find(|index| index.oid == oid)?;
                let wanted = key.target_columns.get(usize::try_from(number - 1).ok()?)?;
                let at = index.key_columns().position(|part| part == *wanted)?;
                i32::try_from(at + 1).ok()
            });
            rows.push(vec![
                database(),
                schema.clone(),
                text(constraint.name),
                database(),
                schema,
                text(relation.name.clone()),
                column_of(relation, column),
                Value::Int4(number),
                place.map_or(Value::Null, Value::Int4),
            ]);
        }
    });
    Ok(())
}

fn constraint_column_usage(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    each_constraint(scan, |relation, constraint| {
        let (used, columns) = match &constraint.what {
            What::Foreign(key) => match scan.catalog.relation(key.target) {
                Some(target) => (&**target, key.target_columns.clone()),
                None => return,
            },
            _ => (relation, constraint.columns(scan)),
        };
        for column in columns {
            rows.push(vec![
                database(),
                scan.schema_of(used),
                text(used.name.clone()),
                column_of(used, column),
                database(),
                scan.schema_of(relation),
                text(constraint.name),
            ]);
        }
    });
    Ok(())
}

fn constraint_table_usage(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    each_constraint(scan, |relation, constraint| {
        let used = match &constraint.what {
            What::Foreign(key) => match scan.catalog.relation(key.target) {
                Some(target) => &**target,
                None => return,
            },
            What::Check(_) => return,
            What::Index(_) => relation,
        };
        rows.push(vec![
            database(),
            scan.schema_of(used),
            text(used.name.clone()),
            database(),
            scan.schema_of(relation),
            text(constraint.name),
        ]);
    });
    Ok(())
}

fn referential_constraints(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    let rule = |action: Action| text(describe::action_words(action).unwrap_or("NO ACTION"));
    each_constraint(scan, |relation, constraint| {
        let What::Foreign(key) = &constraint.what else {
            return;
        };
        let target = scan.catalog.relation(key.target);
        let index = constraints::target_index(scan, key);
        rows.push(vec![
            database(),
            scan.schema_of(relation),
            text(constraint.name),
            database(),
            target.map_or(Value::Null, |target| scan.schema_of(target)),
            index.map_or(Value::Null, |(_, name)| text(name)),
            text(if key.full { "FULL" } else { "NONE" }),
            rule(key.on_update),
            rule(key.on_delete),
        ]);
    });
    Ok(())
}
