//! Relations, their columns, indexes and sequences: `pg_class` and what belongs to it.

use super::collations::of_column;
use super::{Scan, Spec, derived_oid, text};
use crate::catalog::{Collation, Default, Identity, Index, Kind, Oid, PUBLIC, Relation, Table};
use crate::error::Result;
use crate::plan::index_column_names;
use crate::roles::Grant;
use crate::rows::{Part, Parts};
use std::iter::repeat;
use std::sync::Arc;
use vellum_row::{Array, Type, Typmod, Value};

pub(super) const RELATIONS: &[Spec] = &[
    Spec {
        name: "pg_class",
        oid: 1259,
        view: false,
        columns: "oid oid, relname name, relnamespace oid, reltype oid, reloftype oid, relowner oid, relam oid, \
         relfilenode oid, reltablespace oid, relpages int4, reltuples float4, relallvisible int4, reltoastrelid \
         oid, relhasindex bool, relisshared bool, relpersistence char, relkind char, relnatts int2, relchecks \
         int2, relhasrules bool, relhastriggers bool, relhassubclass bool, relrowsecurity bool, \
         relforcerowsecurity bool, relispopulated bool, relreplident char, relispartition bool, relrewrite oid, \
         relfrozenxid xid, relminmxid xid, relacl _aclitem, reloptions _text, relpartbound pg_node_tree",
        fill: pg_class,
    },
    Spec {
        name: "pg_attribute",
        oid: 1249,
        view: false,
        columns: "attrelid oid, attname name, atttypid oid, attstattarget int4, attlen int2, attnum int2, attndims int4, \
         attcacheoff int4, atttypmod int4, attbyval bool, attalign char, attstorage char, attcompression char, \
         attnotnull bool, atthasdef bool, atthasmissing bool, attidentity char, attgenerated char, attisdropped \
         bool, attislocal bool, attinhcount int4, attcollation oid, attacl _aclitem, attoptions _text, \
         attfdwoptions _text, attmissingval text",
        fill: pg_attribute,
    },
    Spec {
        name: "pg_attrdef",
        oid: 2604,
        view: false,
        columns: "oid oid, adrelid oid, adnum int2, adbin pg_node_tree",
        fill: pg_attrdef,
    },
    Spec {
        name: "pg_index",
        oid: 2610,
        view: false,
        columns: "indexrelid oid, indrelid oid, indnatts int2, indnkeyatts int2, indisunique bool, indnullsnotdistinct \
         bool, indisprimary bool, indisexclusion bool, indimmediate bool, indisclustered bool, indisvalid bool, \
         indcheckxmin bool, indisready bool, indislive bool, indisreplident bool, indkey int2vector, indcollation \
         oidvector, indclass oidvector, indoption int2vector, indexprs pg_node_tree, indpred pg_node_tree",
        fill: pg_index,
    },
    Spec {
        name: "pg_sequence",
        oid: 2224,
        view: false,
        columns: "seqrelid oid, seqtypid oid, seqstart int8, seqincrement int8, seqmax int8, seqmin int8, seqcache int8, \
         seqcycle bool",
        fill: pg_sequence,
    },
    Spec {
        name: "pg_namespace",
        oid: 2615,
        view: false,
        columns: "oid oid, nspname name, nspowner oid, nspacl _aclitem",
        fill: pg_namespace,
    },
    Spec {
        name: "pg_rewrite",
        oid: 2618,
        view: false,
        columns: "oid oid, rulename name, ev_class oid, ev_type char, ev_enabled char, is_instead bool, ev_qual \
         pg_node_tree, ev_action pg_node_tree",
        fill: pg_rewrite,
    },
];

/// The access method of tables in `pg_am`.
const HEAP: u32 = 2;
/// Oid of `pg_database_owner`, which owns `public`.
pub(super) const DATABASE_OWNER: u32 = 6171;
fn class_row(
    scan: &Scan<'_>,
    relation: &Relation,
    index: Option<&Index>,
    rows: &mut Vec<Vec<Value>>,
) {
    let table = relation.table();
    let (oid, name) = match index {
        Some(index) => (index.oid, index.name.clone()),
        None => (relation.oid, relation.name.clone()),
    };
    let kind = match (&relation.kind, index) {
        (_, Some(_)) => "i",
        (Kind::Table(_), None) => "r",
        (Kind::View(_), None) => "v",
        (Kind::Sequence(_), None) => "S",
        // Types are in `pg_type`.
        (Kind::Enum(_) | Kind::Domain(_), None) => return,
        (Kind::System(definition), None) if definition.is_view => "v",
        (Kind::System(_), None) => "r",
    };
    let method = match (kind, index) {
        (_, Some(index)) => index.method.oids().0,
        ("r", None) => HEAP,
        _ => 0,
    };
    let columns = match index {
        Some(index) => index.columns.len() + index.include.len(),
        // Those that were dropped count.
        None => {
            let last = scan.columns(relation).pop();
            last.map_or(0, |column| column.0 as usize)
        }
    };
    let own = table.filter(|_| index.is_none());
    let has_keys = own.is_some_and(|table| {
        !table.foreign_keys.is_empty() || !scan.catalog.referring(relation.oid).is_empty()
    });
    let options = match index {
        Some(index) => &index.options[..],
        None => match &relation.kind {
            Kind::Table(table) => &table.options,
            Kind::View(view) => &view.options,
            _ => &[][..],
        },
    };
    let options: Vec<Value> = options.iter().map(|option| text(option.clone())).collect();
    let storage = if matches!(kind, "v") { 0 } else { oid };
    let row_type = super::row_types::of(relation).filter(|_| index.is_none());
    rows.push(vec![
        Value::Oid(oid),
        text(name),
        Value::Oid(relation.namespace),
        Value::Oid(row_type.map_or(0, |[row, _]| row)),
        Value::Oid(0),
        Value::Oid(relation.owner),
        Value::Oid(method),
        Value::Oid(storage),
        Value::Oid(0),
        Value::Int4(0),
        Value::Float4(match (kind, relation.runtime.statistics.get()) {
            ("S", _) => 1.0,
            ("r" | "i", Some(known)) => known.rows as f32,
            _ => -1.0,
        }),
        Value::Int4(0),
        Value::Oid(0),
        Value::Bool(own.is_some_and(|table| !table.indexes.is_empty())),
        Value::Bool(false),
        text(if scan.catalog.is_temporary(relation.namespace) {
            "t"
        } else {
            "p"
        }),
        text(kind),
        Value::Int2(columns as i16),
        Value::Int2(own.map_or(0, |table| table.checks.len()) as i16),
        Value::Bool(kind == "v"),
        Value::Bool(has_keys),
        Value::Bool(false),
        Value::Bool(false),
        Value::Bool(false),
        Value::Bool(true),
        text(match (own, kind, relation.namespace) {
            (Some(table), ..) => table.replica_identity.letter(),
            (None, "r", namespace) if namespace != crate::catalog::PG_CATALOG => "d",
            _ => "n",
        }),
        Value::Bool(false),
        Value::Oid(0),
        Value::Oid(0),
        Value::Oid(0),
        relation
            .acl
            .as_deref()
            .filter(|_| index.is_none())
            .map_or(Value::Null, |acl| acl_of(scan, acl)),
        match options.is_empty() {
            true => Value::Null,
            false => Value::Array(Array::of(Type::Text, &options)),
        },
        Value::Null,
    ]);
}

/// Rights as an array of `aclitem`.
pub(super) fn acl_of(scan: &Scan<'_>, acl: &[Grant]) -> Value {
    let name = |oid| match scan.env.rights.role_by_oid(oid) {
        Some(role) => crate::names::quoted(&role.name),
        None => oid.to_string(),
    };
    let items = acl.iter().map(|grant| text(grant.text(name)));
    Value::Array(Array::of(Type::AclItem, &items.collect::<Vec<_>>()))
}

fn pg_class(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    for relation in scan.catalog.relations() {
        class_row(scan, relation, None, rows);
        for index in relation.table().map_or(&[][..], |table| &table.indexes) {
            class_row(scan, relation, Some(index), rows);
        }
    }
    Ok(())
}

struct Attribute<'a> {
    relation: u32,
    number: i16,
    name: &'a str,
    ty: Type,
    typmod: i32,
    nullable: bool,
    default: Option<&'a Default>,
    domain: Option<u32>,
    /// Where it is another than its type's.
    collation: Option<u32>,
    acl: Value,
}

fn attribute_row(attribute: Attribute<'_>, rows: &mut Vec<Vec<Value>>) {
    let ty = attribute.ty;
    let identity = match attribute.default {
        Some(Default::Identity { kind, .. }) if *kind == Identity::Always => "a",
        Some(Default::Identity { .. }) => "d",
        _ => "",
    };
    let generated = matches!(attribute.default, Some(Default::Generated(_)));
    let stands = |default: &Default| !matches!(default, Default::Identity { .. });
    rows.push(vec![
        Value::Oid(attribute.relation),
        text(attribute.name),
        Value::Oid(attribute.domain.unwrap_or(ty.oid())),
        Value::Int4(-1),
        Value::Int2(ty.length()),
        Value::Int2(attribute.number),
        Value::Int4(i32::from(matches!(ty, Type::Array(_)))),
        Value::Int4(-1),
        Value::Int4(attribute.typmod),
        Value::Bool(super::types::by_value(ty)),
        text(super::types::alignment(ty)),
        text(super::types::storage(ty)),
        text(""),
        Value::Bool(!attribute.nullable),
        Value::Bool(attribute.default.is_some_and(stands)),
        Value::Bool(false),
        text(identity),
        text(if generated { "s" } else { "" }),
        Value::Bool(false),
        Value::Bool(true),
        Value::Int4(0),
        Value::Oid(
            attribute
                .collation
                .unwrap_or_else(|| Collation::of_type(ty)),
        ),
        attribute.acl,
        Value::Null,
        Value::Null,
        Value::Null,
    ]);
}

/// A column that was dropped, as PostgreSQL keeps it.
fn dropped_row(relation: Oid, number: i16, rows: &mut Vec<Vec<Value>>) {
    let name = format!("........pg.dropped.{number}........");
    let before = rows.len();
    let attribute = Attribute {
        relation,
        number,
        name: &name,
        ty: Type::Int4,
        typmod: -1,
        nullable: true,
        default: None,
        domain: Some(0),
        collation: Some(0),
        acl: Value::Null,
    };
    attribute_row(attribute, rows);
    if let Some(dropped) = rows
        .get_mut(before)
        .and_then(|row| row.get_mut(ATTISDROPPED))
    {
        *dropped = Value::Bool(true);
    }
}

/// Where `attisdropped` stands among the columns.
const ATTISDROPPED: usize = 18;

fn pg_attribute(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    let collations = scan.collations();
    for relation in scan.catalog.relations() {
        let table = relation.table();
        let domains = scan.domains_of(relation);
        let collated = collations.get(&relation.oid);
        let mut next = 1;
        for (number, name, ty, typmod, nullable) in scan.columns(relation) {
            // Dumps ask that numbers have no gaps.
            (next..number).for_each(|gone| dropped_row(relation.oid, gone, rows));
            next = number + 1;
            let domain = of_column(&domains, number);
            let default = relation.default_of(number as u16);
            let attribute = Attribute {
                relation: relation.oid,
                number,
                name: &name,
                ty,
                typmod: domain.map_or(typmod.0, |_| -1),
                nullable,
                default: default.as_deref(),
                domain,
                collation: collated.and_then(|all| of_column(all, number)),
                acl: match scan.catalog.column_grants(relation, number as u16) {
                    [] => Value::Null,
                    acl => acl_of(scan, acl),
                },
            };
            attribute_row(attribute, rows);
        }
        let Some(table) = table else {
            continue;
        };
        for index in &table.indexes {
            let columns = index_columns(relation, table, index);
            for (number, column) in (1..).zip(&columns) {
                let attribute = Attribute {
                    relation: index.oid,
                    number,
                    name: &column.name,
                    ty: column.ty,
                    typmod: column.typmod.0,
                    nullable: true,
                    default: None,
                    domain: None,
                    collation: column.collation,
                    acl: Value::Null,
                };
                attribute_row(attribute, rows);
            }
        }
    }
    Ok(())
}

fn pg_attrdef(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    for relation in scan.user_relations() {
        let mut row = |number: u16, sql: &str| {
            rows.push(vec![
                Value::Oid(derived_oid(relation.oid, number)),
                Value::Oid(relation.oid),
                Value::Int2(number as i16),
                text(super::describe::node(number, sql)),
            ]);
        };
        if let Kind::View(view) = &relation.kind {
            for (number, sql) in &view.defaults {
                row(*number, sql);
            }
        }
        let Some(table) = relation.table() else {
            continue;
        };
        for (column, default) in &table.defaults {
            if let Default::Expression(sql) | Default::Generated(sql) = default {
                row(column.0, sql);
            }
        }
    }
    Ok(())
}

/// A column of an index.
struct IndexedColumn {
    /// The table's column; 0 of an expression.
    number: u16,
    name: String,
    ty: Type,
    typmod: Typmod,
    collation: Option<u32>,
}

/// The columns of an index, behind its keys those that it includes.
fn index_columns(relation: &Arc<Relation>, table: &Table, index: &Index) -> Vec<IndexedColumn> {
    let parts = Parts::of(relation, index).unwrap_or_default();
    let included = index.include.iter().map(|id| table.position(*id));
    let included = included.map(Part::Column);
    let names = index_column_names(table, index).into_iter();
    let keys = index.columns.iter().map(Some).chain(repeat(None));
    let all = parts.columns.into_iter().chain(included).zip(names);
    let all = all.zip(keys).map(|((part, name), key)| {
        // What is included is not compared.
        let collation = |ty| Some(key.map_or(0, |key| key.collation_in(table, ty)));
        match part {
            Part::Column(at) => {
                let column = table.schema.column(at);
                IndexedColumn {
                    number: column.id.0,
                    name,
                    ty: column.ty,
                    typmod: column.typmod,
                    collation: collation(column.ty),
                }
            }
            Part::Computed { ty, .. } => IndexedColumn {
                number: 0,
                name,
                ty,
                typmod: Typmod::NONE,
                collation: collation(ty),
            },
        }
    });
    all.collect()
}

fn index_row(relation: &Arc<Relation>, table: &Table, index: &Index, rows: &mut Vec<Vec<Value>>) {
    let all = index_columns(relation, table, index);
    let numbers = all.iter().map(|column| Value::Int2(column.number as i16));
    let numbers: Vec<Value> = numbers.collect();
    let keys = all.iter().take(index.columns.len());
    let types = keys.clone().map(|column| column.ty);
    let collations = keys.map(|column| {
        let own = column.collation;
        Value::Oid(own.unwrap_or_else(|| Collation::of_type(column.ty)))
    });
    let collations: Vec<Value> = collations.collect();
    let classes = types.zip(&index.columns).map(|(ty, column)| {
        let class = column.class_of(index.method, ty);
        Value::Oid(class.map_or(0, |class| class.oid))
    });
    let classes: Vec<Value> = classes.collect();
    let options = index.columns.iter().map(|column| {
        Value::Int2(i16::from(column.descending) | i16::from(column.nulls_first) << 1)
    });
    let options: Vec<Value> = options.collect();
    let expressions = index.expressions().next();
    let expressions = expressions.map(|_| text(super::describe::nodes(index.expressions())));
    let predicate = index.predicate.as_deref();
    let predicate = predicate.map(|sql| text(super::describe::node(0, sql)));
    let count = index.columns.len() as i16;
    let width = count + index.include.len() as i16;
    rows.push(vec![
        Value::Oid(index.oid),
        Value::Oid(relation.oid),
        Value::Int2(width),
        Value::Int2(count),
        Value::Bool(index.unique),
        Value::Bool(!index.nulls_distinct),
        Value::Bool(index.primary),
        Value::Bool(false),
        Value::Bool(!index.timing.is_deferrable()),
        Value::Bool(index.marks.clustered),
        Value::Bool(true),
        Value::Bool(false),
        Value::Bool(true),
        Value::Bool(true),
        Value::Bool(index.marks.identity),
        Value::Array(Array::vector(Type::Int2, &numbers)),
        Value::Array(Array::vector(Type::Oid, &collations)),
        Value::Array(Array::vector(Type::Oid, &classes)),
        Value::Array(Array::vector(Type::Int2, &options)),
        expressions.unwrap_or(Value::Null),
        predicate.unwrap_or(Value::Null),
    ]);
}

fn pg_index(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    for relation in scan.user_relations() {
        if let Some(table) = relation.table() {
            for index in &table.indexes {
                index_row(relation, table, index, rows);
            }
        }
    }
    Ok(())
}

fn pg_sequence(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    for relation in scan.user_relations() {
        let Kind::Sequence(sequence) = &relation.kind else {
            continue;
        };
        rows.push(vec![
            Value::Oid(relation.oid),
            Value::Oid(sequence.type_oid),
            Value::Int8(sequence.start),
            Value::Int8(sequence.increment),
            Value::Int8(sequence.maximum),
            Value::Int8(sequence.minimum),
            Value::Int8(sequence.cache),
            Value::Bool(sequence.cycle),
        ]);
    }
    Ok(())
}

fn pg_namespace(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    for namespace in scan.catalog.namespaces() {
        let owner = if namespace.oid == PUBLIC {
            Value::Oid(DATABASE_OWNER)
        } else {
            Value::Oid(namespace.owner)
        };
        let name = text(namespace.name.clone());
        let acl = match &namespace.acl {
            Some(acl) => acl_of(scan, acl),
            // Everybody may use it, until something else is said.
            None if namespace.oid == PUBLIC => {
                let owner = "pg_database_owner";
                let items = [format!("{owner}=UC/{owner}"), format!("=U/{owner}")];
                Value::Array(Array::of(Type::AclItem, &items.map(text)))
            }
            None => Value::Null,
        };
        rows.push(vec![Value::Oid(namespace.oid), name, owner, acl]);
    }
    Ok(())
}

fn pg_rewrite(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    for relation in scan.user_relations() {
        let Kind::View(view) = &relation.kind else {
            continue;
        };
        rows.push(vec![
            Value::Oid(derived_oid(relation.oid, 0)),
            text("_RETURN"),
            Value::Oid(relation.oid),
            text("1"),
            text("O"),
            Value::Bool(true),
            Value::Null,
            text(crate::parse::as_written(&super::describe::with_names(
                scan.env,
                &view.query,
            ))),
        ]);
    }
    Ok(())
}
