//! What uses what, in `information_schema`: views tables, columns types and domains. And what it tells of character sets and collations.

use super::information::{accessible, database};
use super::types::catalog_name;
use super::{Scan, Spec, domains, nothing, text};
use crate::catalog::{Collation, Default, Kind, Oid, Relation};
use crate::error::Result;
use vellum_row::{Type, Value};

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
        "attributes",
        13245,
        "udt_catalog name, udt_schema name, udt_name name, attribute_name name, ordinal_position int4, attribute_default \
         varchar, is_nullable varchar, data_type varchar, character_maximum_length int4, character_octet_length int4, \
         character_set_catalog name, character_set_schema name, character_set_name name, collation_catalog name, \
         collation_schema name, collation_name name, numeric_precision int4, numeric_precision_radix int4, numeric_scale \
         int4, datetime_precision int4, interval_type varchar, interval_precision int4, attribute_udt_catalog name, \
         attribute_udt_schema name, attribute_udt_name name, scope_catalog name, scope_schema name, scope_name name, \
         maximum_cardinality int4, dtd_identifier name, is_derived_reference_attribute varchar",
        nothing,
    ),
    view(
        "character_sets",
        13250,
        "character_set_catalog name, character_set_schema name, character_set_name name, character_repertoire name, \
         form_of_use name, default_collate_catalog name, default_collate_schema name, default_collate_name name",
        character_sets,
    ),
    view(
        "check_constraint_routine_usage",
        13255,
        "constraint_catalog name, constraint_schema name, constraint_name name, specific_catalog name, specific_schema name, \
         specific_name name",
        nothing,
    ),
    view(
        "collation_character_set_applicability",
        13270,
        "collation_catalog name, collation_schema name, collation_name name, character_set_catalog name, character_set_schema \
         name, character_set_name name",
        collation_sets,
    ),
    view(
        "collations",
        13265,
        "collation_catalog name, collation_schema name, collation_name name, pad_attribute varchar",
        collations,
    ),
    view(
        "column_column_usage",
        13275,
        "table_catalog name, table_schema name, table_name name, column_name name, dependent_column name",
        column_column_usage,
    ),
    view(
        "column_domain_usage",
        13280,
        "domain_catalog name, domain_schema name, domain_name name, table_catalog name, table_schema name, table_name name, \
         column_name name",
        column_domain_usage,
    ),
    view(
        "column_options",
        13503,
        "table_catalog name, table_schema name, table_name name, column_name name, option_name name, option_value varchar",
        nothing,
    ),
    view(
        "column_udt_usage",
        13290,
        "udt_catalog name, udt_schema name, udt_name name, table_catalog name, table_schema name, table_name name, column_name \
         name",
        column_udt_usage,
    ),
    view(
        "data_type_privileges",
        13488,
        "object_catalog name, object_schema name, object_name name, object_type varchar, dtd_identifier name",
        data_type_privileges,
    ),
    view(
        "domain_udt_usage",
        13315,
        "udt_catalog name, udt_schema name, udt_name name, domain_catalog name, domain_schema name, domain_name name",
        domain_udt_usage,
    ),
    view(
        "foreign_data_wrapper_options",
        13511,
        "foreign_data_wrapper_catalog name, foreign_data_wrapper_name name, option_name name, option_value varchar",
        nothing,
    ),
    view(
        "foreign_data_wrappers",
        13515,
        "foreign_data_wrapper_catalog name, foreign_data_wrapper_name name, authorization_identifier name, library_name \
         varchar, foreign_data_wrapper_language varchar",
        nothing,
    ),
    view(
        "foreign_server_options",
        13524,
        "foreign_server_catalog name, foreign_server_name name, option_name name, option_value varchar",
        nothing,
    ),
    view(
        "foreign_servers",
        13528,
        "foreign_server_catalog name, foreign_server_name name, foreign_data_wrapper_catalog name, foreign_data_wrapper_name \
         name, foreign_server_type varchar, foreign_server_version varchar, authorization_identifier name",
        nothing,
    ),
    view(
        "foreign_table_options",
        13537,
        "foreign_table_catalog name, foreign_table_schema name, foreign_table_name name, option_name name, option_value \
         varchar",
        nothing,
    ),
    view(
        "foreign_tables",
        13541,
        "foreign_table_catalog name, foreign_table_schema name, foreign_table_name name, foreign_server_catalog name, \
         foreign_server_name name",
        nothing,
    ),
    view(
        "routine_column_usage",
        13348,
        "specific_catalog name, specific_schema name, specific_name name, routine_catalog name, routine_schema name, \
         routine_name name, table_catalog name, table_schema name, table_name name, column_name name",
        nothing,
    ),
    view(
        "routine_routine_usage",
        13362,
        "specific_catalog name, specific_schema name, specific_name name, routine_catalog name, routine_schema name, \
         routine_name name",
        nothing,
    ),
    view(
        "routine_sequence_usage",
        13367,
        "specific_catalog name, specific_schema name, specific_name name, routine_catalog name, routine_schema name, \
         routine_name name, sequence_catalog name, sequence_schema name, sequence_name name",
        nothing,
    ),
    view(
        "routine_table_usage",
        13372,
        "specific_catalog name, specific_schema name, specific_name name, routine_catalog name, routine_schema name, \
         routine_name name, table_catalog name, table_schema name, table_name name",
        nothing,
    ),
    view(
        "transforms",
        13430,
        "udt_catalog name, udt_schema name, udt_name name, specific_catalog name, specific_schema name, specific_name name, \
         group_name name, transform_type varchar",
        nothing,
    ),
    view(
        "triggered_update_columns",
        13435,
        "trigger_catalog name, trigger_schema name, trigger_name name, event_object_catalog name, event_object_schema name, \
         event_object_table name, event_object_column name",
        nothing,
    ),
    view(
        "user_defined_types",
        13463,
        "user_defined_type_catalog name, user_defined_type_schema name, user_defined_type_name name, \
         user_defined_type_category varchar, is_instantiable varchar, is_final varchar, ordering_form varchar, \
         ordering_category varchar, ordering_routine_catalog name, ordering_routine_schema name, ordering_routine_name \
         name, reference_type varchar, data_type varchar, character_maximum_length int4, character_octet_length int4, \
         character_set_catalog name, character_set_schema name, character_set_name name, collation_catalog name, \
         collation_schema name, collation_name name, numeric_precision int4, numeric_precision_radix int4, numeric_scale \
         int4, datetime_precision int4, interval_type varchar, interval_precision int4, source_dtd_identifier name, \
         ref_dtd_identifier name",
        nothing,
    ),
    view(
        "user_mapping_options",
        13550,
        "authorization_identifier name, foreign_server_catalog name, foreign_server_name name, option_name name, option_value \
         varchar",
        nothing,
    ),
    view(
        "user_mappings",
        13555,
        "authorization_identifier name, foreign_server_catalog name, foreign_server_name name",
        nothing,
    ),
    view(
        "view_column_usage",
        13468,
        "view_catalog name, view_schema name, view_name name, table_catalog name, table_schema name, table_name name, \
         column_name name",
        view_column_usage,
    ),
    view(
        "view_routine_usage",
        13473,
        "table_catalog name, table_schema name, table_name name, specific_catalog name, specific_schema name, specific_name \
         name",
        nothing,
    ),
    view(
        "view_table_usage",
        13478,
        "view_catalog name, view_schema name, view_name name, table_catalog name, table_schema name, table_name name",
        view_table_usage,
    ),
];

fn character_sets(_: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    rows.push(vec![
        Value::Null,
        Value::Null,
        text("UTF8"),
        text("UCS"),
        text("UTF8"),
        database(),
        text("pg_catalog"),
        text("C"),
    ]);
    Ok(())
}

fn collations(_: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    for own in &Collation::ALL {
        rows.push(vec![
            database(),
            text("pg_catalog"),
            text(own.name),
            text("NO PAD"),
        ]);
    }
    Ok(())
}

fn collation_sets(_: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    for own in &Collation::ALL {
        rows.push(vec![
            database(),
            text("pg_catalog"),
            text(own.name),
            Value::Null,
            Value::Null,
            text("UTF8"),
        ]);
    }
    Ok(())
}

impl Scan<'_> {
    /// Whether the session's role may do what an owner may.
    fn owns(&self, owner: Oid) -> bool {
        self.env.rights.owns(self.env.acting.role, owner)
    }

    fn owns_type(&self, ty: Type) -> bool {
        let made = ty.enum_id().and_then(|id| self.catalog.relation(id.oid()));
        match made {
            Some(made) => self.owns(made.owner),
            None => self.owns(crate::database::FIRST_ROLE_OID),
        }
    }

    fn place(&self, relation: &Relation) -> [Value; 3] {
        [
            database(),
            self.schema_of(relation),
            text(relation.name.clone()),
        ]
    }
}

/// Columns that were generated of others.
fn column_column_usage(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    for relation in scan.user_relations().filter(|own| scan.owns(own.owner)) {
        let Some(table) = relation.table() else {
            continue;
        };
        for (column, default) in &table.defaults {
            let (Default::Generated(sql), Some(at)) = (default, table.schema.position_of(*column))
            else {
                continue;
            };
            let own = &table.schema.column(at).name;
            for read in scan.env.columns_read(relation, sql) {
                let Some(at) = table.schema.position_of(read) else {
                    continue;
                };
                let mut row = scan.place(relation).to_vec();
                row.push(text(table.schema.column(at).name.clone()));
                row.push(text(own.clone()));
                rows.push(row);
            }
        }
    }
    Ok(())
}

fn column_domain_usage(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    for relation in scan.user_relations() {
        let domains = scan.domains_of(relation);
        for (number, name, ..) in scan.columns(relation) {
            let found = domains.iter().find(|(own, _)| *own == number);
            let domain = found.and_then(|(_, domain)| scan.catalog.relation(*domain));
            if let Some(domain) = domain.filter(|domain| scan.owns(domain.owner)) {
                let mut row = scan.place(domain).to_vec();
                row.extend(scan.place(relation));
                row.push(text(name));
                rows.push(row);
            }
        }
    }
    Ok(())
}

fn column_udt_usage(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    let relations = scan.catalog.relations();
    for relation in relations {
        if matches!(relation.kind, Kind::Sequence(_)) {
            continue;
        }
        for (_, name, ty, ..) in scan.columns(relation) {
            if !scan.owns_type(ty) {
                continue;
            }
            let (schema, own) = catalog_name(scan.catalog, ty);
            let mut row = vec![database(), text(schema), text(own)];
            row.extend(scan.place(relation));
            row.push(text(name));
            rows.push(row);
        }
    }
    Ok(())
}

fn domain_udt_usage(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    for (relation, domain) in domains::all(scan) {
        // Over another domain: that one.
        let base = scan.catalog.relation(domain.base);
        let mut row = match base {
            Some(base) if scan.owns(base.owner) => scan.place(base).to_vec(),
            None if scan.owns_type(domain.ty) => {
                let (schema, own) = catalog_name(scan.catalog, domain.ty);
                vec![database(), text(schema), text(own)]
            }
            _ => continue,
        };
        row.extend(scan.place(relation));
        rows.push(row);
    }
    Ok(())
}

fn data_type_privileges(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    for relation in accessible(scan) {
        if matches!(relation.kind, Kind::Sequence(_)) {
            continue;
        }
        for (number, ..) in scan.columns(relation) {
            let mut row = scan.place(relation).to_vec();
            row.extend([text("TABLE"), text(number.to_string())]);
            rows.push(row);
        }
    }
    for (relation, _) in domains::all(scan) {
        let mut row = scan.place(relation).to_vec();
        row.extend([text("DOMAIN"), text("1")]);
        rows.push(row);
    }
    Ok(())
}

/// Each view that somebody has made, with what it reads of the relations that are the session's role's.
fn reads_of_views(scan: &Scan<'_>, mut each: impl FnMut(&Relation, &Relation, &[u16])) {
    for relation in scan.user_relations() {
        let Kind::View(view) = &relation.kind else {
            continue;
        };
        for (read, columns) in scan.env.view_columns_read(relation, view) {
            let read = scan.catalog.relation(read);
            let read = read.filter(|read| !matches!(read.kind, Kind::Sequence(_)));
            if let Some(read) = read.filter(|read| scan.owns(read.owner)) {
                each(relation, read, &columns);
            }
        }
    }
}

fn view_table_usage(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    reads_of_views(scan, |view, read, _| {
        let mut row = scan.place(view).to_vec();
        row.extend(scan.place(read));
        rows.push(row);
    });
    Ok(())
}

fn view_column_usage(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    reads_of_views(scan, |view, read, columns| {
        for (number, name, ..) in scan.columns(read) {
            if columns.contains(&(number as u16)) {
                let mut row = scan.place(view).to_vec();
                row.extend(scan.place(read));
                row.push(text(name));
                rows.push(row);
            }
        }
    });
    Ok(())
}
