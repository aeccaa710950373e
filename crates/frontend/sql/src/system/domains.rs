//! What the catalog and `information_schema` tell of domains.

use super::information::{database, numbers, yes_or_no};
use super::{Scan, Spec, text, types};
use crate::catalog::{Collation, Domain, Kind, Oid, Relation};
use crate::error::Result;
use std::sync::Arc;
use vellum_row::{Type, Value};

pub(super) const INFORMATION: &[Spec] = &[
    Spec {
        name: "domain_constraints",
        oid: 13310,
        view: true,
        columns: "constraint_catalog name, constraint_schema name, constraint_name name, domain_catalog name, domain_schema \
         name, domain_name name, is_deferrable varchar, initially_deferred varchar",
        fill: domain_constraints,
    },
    Spec {
        name: "domains",
        oid: 13320,
        view: true,
        columns: "domain_catalog name, domain_schema name, domain_name name, data_type varchar, character_maximum_length \
         int4, character_octet_length int4, character_set_catalog name, character_set_schema name, \
         character_set_name name, collation_catalog name, collation_schema name, collation_name name, \
         numeric_precision int4, numeric_precision_radix int4, numeric_scale int4, datetime_precision int4, \
         interval_type varchar, interval_precision int4, domain_default varchar, udt_catalog name, udt_schema \
         name, udt_name name, scope_catalog name, scope_schema name, scope_name name, maximum_cardinality int4, \
         dtd_identifier name",
        fill: domains,
    },
];

/// `domain_in` and `domain_recv`.
pub(super) const FORMS: [Oid; 4] = [2597, 0, 2598, 0];

/// All domains, by oid.
pub(super) fn all<'s>(scan: &'s Scan<'_>) -> impl Iterator<Item = (&'s Arc<Relation>, &'s Domain)> {
    let types = scan.catalog.user_types().into_iter();
    types.filter_map(|relation| match &relation.kind {
        Kind::Domain(domain) => Some((relation, &**domain)),
        _ => None,
    })
}

/// A domain's row in `pg_type`, of that of the type of its values.
pub(super) fn type_row(
    scan: &Scan<'_>,
    own: &Relation,
    domain: &Domain,
    mut row: Vec<Value>,
) -> Vec<Value> {
    row[0] = Value::Oid(own.oid);
    row[1] = text(own.name.clone());
    row[2] = Value::Oid(own.namespace);
    row[3] = Value::Oid(own.owner);
    row[6] = text("d");
    row[8] = Value::Bool(false);
    // No subscripts, elements and arrays of its own, and no modifiers.
    for at in [12, 13, 14, 19, 20] {
        row[at] = Value::Oid(0);
    }
    row[15] = Value::Oid(FORMS[0]);
    row[17] = Value::Oid(FORMS[2]);
    row[24] = Value::Bool(domain.not_null);
    row[25] = Value::Oid(match domain.base {
        0 => domain.ty.oid(),
        base => base,
    });
    row[26] = Value::Int4(match domain.base {
        0 => domain.typmod.0,
        _ => -1,
    });
    let dimensions = matches!(domain.ty, Type::Array(_)) && domain.base == 0;
    row[27] = Value::Int4(i32::from(dimensions));
    if let Some(collation) = domain.collation {
        row[28] = Value::Oid(collation);
    }
    let default = domain.default.as_deref();
    let default = default.map(|sql| scan.env.default_text(domain, sql));
    // Without the expression it is taken for a literal.
    row[29] = default
        .as_deref()
        .map_or(Value::Null, |sql| text(super::describe::node(0, sql)));
    row[30] = default.map_or(Value::Null, text);
    row[31] = types::acl_of_type(scan, own);
    row
}

/// The rows of `pg_constraint` of domains.
pub(super) fn constraints(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) {
    for (own, domain) in all(scan) {
        for check in &domain.checks {
            rows.push(vec![
                Value::Oid(check.oid),
                text(check.name.clone()),
                Value::Oid(own.namespace),
                text("c"),
                Value::Bool(false),
                Value::Bool(false),
                Value::Bool(true),
                Value::Oid(0),
                Value::Oid(own.oid),
                Value::Oid(0),
                Value::Oid(0),
                Value::Oid(0),
                text(" "),
                text(" "),
                text(" "),
                Value::Bool(true),
                Value::Int4(0),
                Value::Bool(false),
                Value::Null,
                Value::Null,
                Value::Null,
                Value::Null,
                Value::Null,
                Value::Null,
                Value::Null,
                text(super::describe::node(
                    0,
                    &scan.env.condition_text(domain, &check.expression, false),
                )),
            ]);
        }
    }
}

/// The rows of `check_constraints` of domains.
pub(super) fn check_constraints(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) {
    for (own, domain) in all(scan) {
        for check in &domain.checks {
            let clause = scan.env.condition_text(domain, &check.expression, false);
            rows.push(vec![
                database(),
                scan.schema_of(own),
                text(check.name.clone()),
                text(format!("({clause})")),
            ]);
        }
    }
}

/// Catalog, schema and name of a domain; nulls for none.
pub(super) fn named(scan: &Scan<'_>, domain: Option<Oid>) -> [Value; 3] {
    match domain.and_then(|domain| scan.catalog.domain(domain)) {
        Some((own, _)) => [database(), scan.schema_of(own), text(own.name.clone())],
        None => [const { Value::Null }; 3],
    }
}

/// What a row of `columns` says of the type of a column: of one of a domain over another, that one.
pub(super) fn below_in(scan: &Scan<'_>, domain: Option<Oid>, row: &mut [Value]) {
    let own = domain.and_then(|domain| scan.catalog.domain(domain));
    let below = own.and_then(|(_, own)| scan.catalog.domain(own.base));
    if let Some((below, _)) = below {
        row[7] = text("USER-DEFINED");
        row[8..14].fill(Value::Null);
        (row[26], row[27]) = (scan.schema_of(below), text(below.name.clone()));
    }
}

fn domain_constraints(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    for (own, domain) in all(scan) {
        for check in &domain.checks {
            let mut row = vec![database(), scan.schema_of(own), text(check.name.clone())];
            row.extend(named(scan, Some(own.oid)));
            row.extend([yes_or_no(false), yes_or_no(false)]);
            rows.push(row);
        }
    }
    Ok(())
}

fn domains(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    for (own, domain) in all(scan) {
        let below = scan.catalog.domain(domain.base);
        let [characters, bytes, precision, base, scale, digits] = match below {
            Some(_) => [const { Value::Null }; 6],
            None => numbers(domain.ty, domain.typmod),
        };
        let data_type = match domain.ty {
            Type::Enum(_) => "USER-DEFINED".to_owned(),
            _ if below.is_some() => "USER-DEFINED".to_owned(),
            ty => scan.env.forms.name_of(ty).into_owned(),
        };
        let default = domain.default.as_deref();
        let default = default.map_or(Value::Null, |sql| text(scan.env.default_text(domain, sql)));
        let (schema, name) = match below {
            Some((own, _)) => {
                let schema = scan.catalog.namespace_name(own.namespace).into();
                (schema, own.name.clone())
            }
            None => types::catalog_name(scan.catalog, domain.ty),
        };
        let mut row: Vec<Value> = named(scan, Some(own.oid)).into();
        row.extend([text(data_type), characters, bytes]);
        row.resize(12, Value::Null);
        if let Some(own) = domain.collation.and_then(Collation::of) {
            row[9] = database();
            (row[10], row[11]) = (text("pg_catalog"), text(own.name));
        }
        row.extend([precision, base, scale, digits]);
        row.resize(18, Value::Null);
        row.extend([default, database(), text(schema), text(name)]);
        row.resize(26, Value::Null);
        row.push(text("1"));
        rows.push(row);
    }
    Ok(())
}

impl Scan<'_> {
    /// The columns of a relation that are of domains, by their numbers.
    pub(super) fn domains_of(&self, relation: &Relation) -> Vec<(i16, Oid)> {
        match &relation.kind {
            Kind::Table(table) => {
                let domains = table.domains.iter();
                domains
                    .map(|(column, domain)| (column.0 as i16, *domain))
                    .collect()
            }
            // To bind its query costs something.
            Kind::View(view) if all(self).next().is_some() => {
                let columns = (1..).zip(self.env.view_marks(view));
                columns
                    .filter_map(|(number, (domain, _))| Some((number, domain?)))
                    .collect()
            }
            _ => Vec::new(),
        }
    }
}
