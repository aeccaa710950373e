//! The persisted forms of what the catalog holds.
//!
//! Layout (little-endian; `text` is u32 length and bytes; `list` is u32 count and items): the value of a relation's row begins
//! `u8 version + 128, u8 kind`, then as the functions here and in `domain` write it, in one order. 128 says that the owner is a `u32`, the oid of a role: earlier builds wrote its name, a text, and
//! refuse such a row as one of a newer version. What they have written is written anew when a database is opened ([`owned_by_oid`]). The version is 11 for tables with an index of another collation than its columns', and for domains of another than their type's, 10 for tables with a column of another collation than its type's, 9 for those with rights on columns, a foreign key with MATCH FULL or one that is
//! switched off, a replica identity or an index that is marked, 8 for tables with a column of a domain and for views with options or defaults, 7 for tables with an option, an index of
//! another method than a tree, an operator class or an option of an index, 6 for those with a constraint that is deferrable, 5 for those with an index that is more than columns (it
//! includes others, has a predicate or an expression, or takes nulls for equal), 4 for sequences, 3 for what else there is. A schema of columns is a length and what `row` makes
//! of it. Before version 5 an index is columns alone. In version 3 a sequence begins with its start. In version 2 the values of a sequence are known by its oid; version 1 has no rights, either.

use super::{
    Action, Check, Default, ForeignKey, Identity, Index, IndexColumn, IndexKey, KeyCollation, Kind,
    Marks, Method, Namespace, Oid, Relation, ReplicaIdentity, SequenceDefinition, Storage,
    SwitchedOff, Table, Timing, View, domain,
};
use crate::error::SqlError;
use crate::roles::{Grant, Rights};
use std::sync::Arc;
use vellum_base::codec::{Put, Reader};
use vellum_row::{ColumnId, EnumId, EnumLabel, Schema};

const VERSION: u8 = 3;
const VERSION_WITH_RIGHTS: u8 = 2;
const VERSION_WITH_VALUES: u8 = 3;
const VERSION_WITH_BEGIN: u8 = 4;
const VERSION_WITH_PARTS: u8 = 5;
const VERSION_WITH_TIMING: u8 = 6;
const VERSION_WITH_OPTIONS: u8 = 7;
/// Tables with a column of a domain, and views with options or defaults.
const VERSION_WITH_DOMAINS: u8 = 8;
/// What has rights on columns, and tables that have something switched off or marked.
const VERSION_WITH_MARKS: u8 = 9;
/// Tables with a column of another collation than its type's.
const VERSION_WITH_COLLATIONS: u8 = 10;
/// Tables with an index of another collation than that of what stands in it, and domains of another than their type's.
pub(super) const VERSION_WITH_MORE_COLLATIONS: u8 = 11;
/// Beside the version: the owner is an oid.
const OWNED: u8 = 128;
const VERSIONS: std::ops::RangeInclusive<u8> = 1..=VERSION_WITH_MORE_COLLATIONS;
/// Bytes between the version of a relation's row and its name: what it is, and its schema.
const KIND_BYTES: usize = 5;
const TABLE: u8 = 1;
const VIEW: u8 = 2;
const SEQUENCE: u8 = 3;
const ENUM: u8 = 4;
const DOMAIN: u8 = 5;

pub(super) fn put_text(out: &mut Vec<u8>, text: &str) {
    out.put_u32(text.len() as u32);
    out.put(text.as_bytes());
}

pub(super) fn text(reader: &mut Reader<'_>) -> Option<Box<str>> {
    let length = reader.u32()? as usize;
    Some(std::str::from_utf8(reader.bytes(length)?).ok()?.into())
}

fn put_list<T>(out: &mut Vec<u8>, items: &[T], mut put: impl FnMut(&mut Vec<u8>, &T)) {
    out.put_u32(items.len() as u32);
    for item in items {
        put(out, item);
    }
}

fn list<T>(
    reader: &mut Reader<'_>,
    mut item: impl FnMut(&mut Reader<'_>) -> Option<T>,
) -> Option<Vec<T>> {
    let count = reader.u32()? as usize;
    // Each item has a byte at least: a damaged count allocates nothing.
    if count > reader.rest().len() {
        return None;
    }
    (0..count).map(|_| item(reader)).collect()
}

fn put_i64(out: &mut Vec<u8>, value: i64) {
    out.put_u64(value as u64);
}

fn i64_of(reader: &mut Reader<'_>) -> Option<i64> {
    Some(reader.u64()? as i64)
}

fn put_columns(out: &mut Vec<u8>, columns: &[ColumnId]) {
    put_list(out, columns, |out, column| out.put_u16(column.0));
}

fn columns(reader: &mut Reader<'_>) -> Option<Vec<ColumnId>> {
    list(reader, |reader| Some(ColumnId(reader.u16()?)))
}

/// A schema's row.
pub(super) fn encode_namespace(namespace: &Namespace) -> Vec<u8> {
    let mut out = vec![VERSION | OWNED];
    put_text(&mut out, &namespace.name);
    out.put_u32(namespace.owner);
    put_rights(&mut out, namespace.acl.as_deref());
    out
}

/// Rights: whether there are any, and a list.
pub(super) fn put_rights(out: &mut Vec<u8>, acl: Option<&[Grant]>) {
    out.put_u8(u8::from(acl.is_some()));
    put_list(out, acl.unwrap_or_default(), |out, grant| {
        out.put_u32(grant.grantee);
        out.put_u32(grant.grantor);
        out.put_u16(grant.rights.bits());
        out.put_u16(grant.grantable.bits());
    });
}

pub(super) fn rights(reader: &mut Reader<'_>) -> Option<Option<Vec<Grant>>> {
    let there = reader.u8()? != 0;
    let grants = list(reader, |reader| {
        Some(Grant {
            grantee: reader.u32()?,
            grantor: reader.u32()?,
            rights: Rights::of_bits(reader.u16()?),
            grantable: Rights::of_bits(reader.u16()?),
        })
    })?;
    Some(there.then_some(grants))
}

/// The version of a row that this program reads, and whether its owner is an oid.
fn version(reader: &mut Reader<'_>) -> Option<(u8, bool)> {
    let first = reader.u8()?;
    let version = first & !OWNED;
    let found = (version, first & OWNED != 0);
    VERSIONS.contains(&version).then_some(found)
}

/// Whether a later version of Vellum has written a row.
pub(super) fn is_newer(value: &[u8]) -> bool {
    let version = value.first().map(|first| first & !OWNED);
    version.as_ref() > Some(VERSIONS.end())
}

/// The oid of the role that an earlier build has kept by its name. One that is no role's is the first role's: what was left to nobody.
pub(super) type RoleOf<'r> = &'r dyn Fn(&str) -> Oid;

fn owner(reader: &mut Reader<'_>, by_oid: bool, role: RoleOf<'_>) -> Option<Oid> {
    match by_oid {
        true => reader.u32(),
        false => Some(role(&text(reader)?)),
    }
}

/// The row of a schema or a relation with its owner's oid; `None` if it has that, or cannot be read.
pub(super) fn owned_by_oid(value: &[u8], is_relation: bool, role: RoleOf<'_>) -> Option<Vec<u8>> {
    let mut reader = Reader::new(value);
    let (version, by_oid) = version(&mut reader)?;
    if by_oid {
        return None;
    }
    if is_relation {
        reader.bytes(KIND_BYTES)?;
    }
    text(&mut reader)?;
    let head = value.len() - reader.rest().len();
    let owner = owner(&mut reader, false, role)?;
    let mut out = vec![version | OWNED];
    out.put(value.get(1..head)?);
    out.put_u32(owner);
    out.put(reader.rest());
    Some(out)
}

/// Reads a schema's row.
pub(super) fn decode_namespace(oid: Oid, value: &[u8], role: RoleOf<'_>) -> Option<Namespace> {
    let mut reader = Reader::new(value);
    let (version, by_oid) = version(&mut reader)?;
    let name = text(&mut reader)?;
    let owner = owner(&mut reader, by_oid, role)?;
    let acl = if version >= VERSION_WITH_RIGHTS {
        rights(&mut reader)?
    } else {
        None
    };
    reader.rest().is_empty().then_some(Namespace {
        oid,
        name,
        owner,
        acl,
    })
}

/// A relation's row.
pub(super) fn encode_relation(relation: &Relation) -> crate::error::Result<Vec<u8>> {
    let version = match &relation.kind {
        Kind::Table(table) if has_key_collations(table) => VERSION_WITH_MORE_COLLATIONS,
        Kind::Domain(own) if own.collation.is_some() => VERSION_WITH_MORE_COLLATIONS,
        Kind::Table(table) if !table.collations.is_empty() => VERSION_WITH_COLLATIONS,
        _ if !relation.column_acls.is_empty() => VERSION_WITH_MARKS,
        Kind::Table(table) if has_marks(table) => VERSION_WITH_MARKS,
        Kind::Sequence(_) => VERSION_WITH_BEGIN,
        // Others are as earlier builds read them.
        Kind::Table(table) if !table.domains.is_empty() => VERSION_WITH_DOMAINS,
        Kind::View(view) if !view.options.is_empty() || !view.defaults.is_empty() => {
            VERSION_WITH_DOMAINS
        }
        Kind::Table(table) if has_options(table) => VERSION_WITH_OPTIONS,
        Kind::Table(table) if has_timing(table) => VERSION_WITH_TIMING,
        Kind::Table(table) if table.indexes.iter().any(|index| has_parts(index)) => {
            VERSION_WITH_PARTS
        }
        _ => VERSION,
    };
    let mut out = vec![version | OWNED];
    out.put_u8(match &relation.kind {
        Kind::Table(_) => TABLE,
        Kind::View(_) => VIEW,
        Kind::Sequence(_) => SEQUENCE,
        Kind::Enum(_) => ENUM,
        Kind::Domain(_) => DOMAIN,
        Kind::System(_) => return Err(SqlError::internal("a system relation has no row")),
    });
    out.put_u32(relation.namespace);
    put_text(&mut out, &relation.name);
    out.put_u32(relation.owner);
    out.put_u64(relation.generation);
    put_rights(&mut out, relation.acl.as_deref());
    if version >= VERSION_WITH_MARKS {
        put_list(&mut out, &relation.column_acls, |out, (column, acl)| {
            out.put_u16(*column);
            put_rights(out, Some(acl));
        });
    }
    match &relation.kind {
        Kind::Table(table) => put_table(&mut out, table, version)?,
        Kind::View(view) => {
            put_text(&mut out, &view.query);
            put_list(&mut out, &view.columns, |out, name| put_text(out, name));
            if version >= VERSION_WITH_DOMAINS {
                put_list(&mut out, &view.options, |out, option| put_text(out, option));
                put_list(&mut out, &view.defaults, |out, (number, sql)| {
                    out.put_u16(*number);
                    put_text(out, sql);
                });
            }
        }
        Kind::Sequence(sequence) => {
            put_i64(&mut out, sequence.start);
            put_i64(&mut out, sequence.increment);
            put_i64(&mut out, sequence.minimum);
            put_i64(&mut out, sequence.maximum);
            out.put_u8(u8::from(sequence.cycle));
            out.put_u32(sequence.type_oid);
            out.put_u32(sequence.owner.0);
            out.put_u16(sequence.owner.1);
            out.put_u32(sequence.values);
            put_i64(&mut out, sequence.begin);
            put_i64(&mut out, sequence.cache);
        }
        Kind::Enum(labels) => put_list(&mut out, labels, |out, label| {
            out.put_u32(label.oid);
            put_i64(out, label.position);
            put_text(out, &label.text);
        }),
        Kind::Domain(own) => domain::put(&mut out, own, version)?,
        Kind::System(_) => {}
    }
    Ok(out)
}

/// The labels of an enum, in order.
fn labels(oid: Oid, reader: &mut Reader<'_>) -> Option<Arc<[EnumLabel]>> {
    EnumId::of(oid)?;
    let labels = list(reader, |reader| {
        Some(EnumLabel {
            oid: reader.u32()?,
            position: i64_of(reader)?,
            text: text(reader)?,
            fresh: false,
        })
    })?;
    let in_order = labels.is_sorted_by(|a, b| a.position < b.position);
    in_order.then(|| labels.into())
}

/// Reads a relation's row.
pub(super) fn decode_relation(oid: Oid, value: &[u8], role: RoleOf<'_>) -> Option<Relation> {
    let mut reader = Reader::new(value);
    let (version, by_oid) = version(&mut reader)?;
    let kind = reader.u8()?;
    let namespace = reader.u32()?;
    let name = text(&mut reader)?;
    let owner = owner(&mut reader, by_oid, role)?;
    let generation = reader.u64()?;
    let acl = if version >= VERSION_WITH_RIGHTS {
        rights(&mut reader)?
    } else {
        None
    };
    let mut column_acls = Vec::new();
    if version >= VERSION_WITH_MARKS {
        column_acls = list(&mut reader, |reader| {
            Some((reader.u16()?, rights(reader)??))
        })?;
    }
    let kind = match kind {
        TABLE => Kind::Table(Box::new(table(&mut reader, version)?)),
        VIEW => Kind::View(view(&mut reader, version)?),
        SEQUENCE => Kind::Sequence(sequence(oid, version, &mut reader)?),
        ENUM => Kind::Enum(labels(oid, &mut reader)?),
        DOMAIN => Kind::Domain(Box::new(domain::read(&mut reader, version)?)),
        _ => return None,
    };
    reader.rest().is_empty().then(|| Relation {
        oid,
        namespace,
        name,
        owner,
        generation,
        runtime: Arc::default(),
        acl,
        column_acls,
        kind,
    })
}

fn sequence(oid: Oid, version: u8, reader: &mut Reader<'_>) -> Option<SequenceDefinition> {
    let mut sequence = SequenceDefinition {
        start: i64_of(reader)?,
        begin: 0,
        increment: i64_of(reader)?,
        minimum: i64_of(reader)?,
        maximum: i64_of(reader)?,
        cycle: reader.u8()? == 1,
        cache: 1,
        type_oid: reader.u32()?,
        owner: (reader.u32()?, reader.u16()?),
        values: oid,
    };
    sequence.begin = sequence.start;
    if version >= VERSION_WITH_VALUES {
        sequence.values = reader.u32()?;
    }
    if version >= VERSION_WITH_BEGIN {
        sequence.begin = i64_of(reader)?;
        sequence.cache = i64_of(reader)?;
    }
    Some(sequence)
}

fn view(reader: &mut Reader<'_>, version: u8) -> Option<View> {
    let mut view = View {
        query: text(reader)?,
        columns: list(reader, text)?,
        options: Vec::new(),
        defaults: Vec::new(),
    };
    if version >= VERSION_WITH_DOMAINS {
        view.options = list(reader, text)?;
        view.defaults = list(reader, |reader| Some((reader.u16()?, text(reader)?)))?;
    }
    Some(view)
}

fn put_table(out: &mut Vec<u8>, table: &Table, version: u8) -> crate::error::Result<()> {
    let schema = table.schema.persist()?;
    out.put_u32(schema.len() as u32);
    out.put(&schema);
    put_text(out, &table.storage.name);
    put_list(out, &table.defaults, |out, (column, default)| {
        out.put_u16(column.0);
        match default {
            Default::Expression(sql) => {
                out.put_u8(0);
                put_text(out, sql);
            }
            Default::Identity { kind, sequence } => {
                out.put_u8(if *kind == Identity::Always { 1 } else { 2 });
                out.put_u32(*sequence);
            }
            Default::Generated(sql) => {
                out.put_u8(3);
                put_text(out, sql);
            }
        }
    });
    put_list(out, &table.indexes, |out, index| {
        put_index(out, index, version);
    });
    put_checks(out, &table.checks);
    put_list(out, &table.foreign_keys, |out, key| {
        out.put_u32(key.oid);
        put_text(out, &key.name);
        put_columns(out, &key.columns);
        out.put_u32(key.target);
        put_columns(out, &key.target_columns);
        // Before version 6 the upper half is zero, which is what it says for a key that is not deferrable.
        out.put_u8(key.on_delete as u8 | timing_code(key.timing) << 4);
        // Before version 9 the upper half is zero.
        let said = [key.full, key.off.references, key.off.target];
        let said = said.into_iter().zip(4..);
        let said = said.fold(0, |sum, (set, bit)| sum | u8::from(set) << bit);
        out.put_u8(key.on_update as u8 | said);
    });
    if version >= VERSION_WITH_OPTIONS {
        put_list(out, &table.options, |out, option| put_text(out, option));
    }
    if version >= VERSION_WITH_DOMAINS {
        put_by_column(out, &table.domains);
    }
    if version >= VERSION_WITH_MARKS {
        out.put_u8(table.replica_identity as u8);
    }
    if version >= VERSION_WITH_COLLATIONS {
        put_by_column(out, &table.collations);
    }
    Ok(())
}

/// Oids that columns have.
fn put_by_column(out: &mut Vec<u8>, oids: &[(ColumnId, Oid)]) {
    put_list(out, oids, |out, (column, oid)| {
        out.put_u16(column.0);
        out.put_u32(*oid);
    });
}

/// The same, read.
fn by_column(reader: &mut Reader<'_>) -> Option<Vec<(ColumnId, Oid)>> {
    list(reader, |reader| {
        Some((ColumnId(reader.u16()?), reader.u32()?))
    })
}

/// CHECK constraints.
pub(super) fn put_checks(out: &mut Vec<u8>, checks: &[Check]) {
    put_list(out, checks, |out, check| {
        out.put_u32(check.oid);
        put_text(out, &check.name);
        put_text(out, &check.expression);
    });
}

/// The same, read.
pub(super) fn checks(reader: &mut Reader<'_>) -> Option<Vec<Check>> {
    list(reader, |reader| {
        Some(Check {
            oid: reader.u32()?,
            name: text(reader)?,
            expression: text(reader)?,
        })
    })
}

fn table(reader: &mut Reader<'_>, version: u8) -> Option<Table> {
    let length = reader.u32()? as usize;
    let schema = Arc::new(Schema::from_persisted(reader.bytes(length)?).ok()?);
    let storage = Storage::new(text(reader)?);
    let defaults = list(reader, |reader| {
        let column = ColumnId(reader.u16()?);
        let default = match reader.u8()? {
            0 => Default::Expression(text(reader)?),
            1 => Default::Identity {
                kind: Identity::Always,
                sequence: reader.u32()?,
            },
            2 => Default::Identity {
                kind: Identity::ByDefault,
                sequence: reader.u32()?,
            },
            3 => Default::Generated(text(reader)?),
            _ => return None,
        };
        Some((column, default))
    })?;
    let indexes = list(reader, |reader| Some(Arc::new(index(reader, version)?)))?;
    let checks = checks(reader)?;
    let foreign_keys = list(reader, |reader| {
        let (oid, name, own) = (reader.u32()?, text(reader)?, columns(reader)?);
        let (target, target_columns) = (reader.u32()?, columns(reader)?);
        let on_delete = reader.u8()?;
        let on_update = reader.u8()?;
        let said = |bit: u8| version >= VERSION_WITH_MARKS && on_update >> bit & 1 != 0;
        let known = if version >= VERSION_WITH_MARKS {
            127
        } else {
            15
        };
        Some(ForeignKey {
            oid,
            name,
            columns: own,
            target,
            target_columns,
            on_delete: action(on_delete & 15)?,
            on_update: action((on_update <= known).then_some(on_update & 15)?)?,
            timing: timing(on_delete >> 4)?,
            full: said(4),
            off: SwitchedOff {
                references: said(5),
                target: said(6),
            },
        })
    })?;
    let mut options = Vec::new();
    if version >= VERSION_WITH_OPTIONS {
        options = list(reader, text)?;
    }
    let mut domains = Vec::new();
    if version >= VERSION_WITH_DOMAINS {
        domains = by_column(reader)?;
    }
    let mut replica_identity = ReplicaIdentity::Default;
    if version >= VERSION_WITH_MARKS {
        replica_identity = *ReplicaIdentity::ALL.get(usize::from(reader.u8()?))?;
    }
    let mut collations = Vec::new();
    if version >= VERSION_WITH_COLLATIONS {
        collations = by_column(reader)?;
    }
    Some(Table {
        schema,
        storage,
        defaults,
        indexes,
        checks,
        foreign_keys,
        options,
        domains,
        collations,
        replica_identity,
    })
}

/// Whether an index has what no row before version 5 says.
fn has_parts(index: &Index) -> bool {
    !index.is_plain() || !index.include.is_empty() || !index.nulls_distinct
}

/// Whether a constraint of a table is deferrable, which no row before version 6 says.
fn has_timing(table: &Table) -> bool {
    let keys = table.foreign_keys.iter().map(|key| key.timing);
    let indexes = table.indexes.iter().map(|index| index.timing);
    keys.chain(indexes).any(Timing::is_deferrable)
}

/// Whether a table has what no row before version 7 says.
fn has_options(table: &Table) -> bool {
    let of_index = |index: &Arc<Index>| {
        let mut columns = index.columns.iter();
        index.method != Method::BTree
            || !index.options.is_empty()
            || columns.any(|column| column.class != 0)
    };
    !table.options.is_empty() || table.indexes.iter().any(of_index)
}

/// Whether a table has what no row before version 9 says.
fn has_marks(table: &Table) -> bool {
    let mut keys = table.foreign_keys.iter();
    let mut indexes = table.indexes.iter();
    table.replica_identity != ReplicaIdentity::Default
        || keys.any(|key| key.full || key.off != SwitchedOff::default())
        || indexes.any(|index| index.marks != Marks::default())
}

fn timing_code(timing: Timing) -> u8 {
    match timing {
        Timing::Fixed => 0,
        Timing::Immediate => 1,
        Timing::Deferred => 2,
    }
}

fn timing(code: u8) -> Option<Timing> {
    Some(match code {
        0 => Timing::Fixed,
        1 => Timing::Immediate,
        2 => Timing::Deferred,
        _ => return None,
    })
}

fn put_index(out: &mut Vec<u8>, index: &Index, version: u8) {
    out.put_u32(index.oid);
    put_text(out, &index.name);
    put_text(
        out,
        index.storage.as_ref().map_or("", |storage| &storage.name),
    );
    put_list(out, &index.columns, |out, column| {
        let flags = u8::from(column.descending) | u8::from(column.nulls_first) << 1;
        match &column.key {
            IndexKey::Column(id) => {
                out.put_u16(id.0);
                out.put_u8(flags);
            }
            // No column has this number.
            IndexKey::Expression(sql) => {
                out.put_u16(0);
                out.put_u8(flags);
                put_text(out, sql);
            }
        }
    });
    out.put_u8(
        u8::from(index.unique)
            | u8::from(index.primary) << 1
            | u8::from(!index.nulls_distinct) << 2
            | timing_code(index.timing) << 3
            | u8::from(index.marks.clustered) << 5
            | u8::from(index.marks.identity) << 6,
    );
    out.put_u32(index.constraint.unwrap_or(0));
    if version >= VERSION_WITH_PARTS {
        put_columns(out, &index.include);
        put_text(out, index.predicate.as_deref().unwrap_or_default());
    }
    if version >= VERSION_WITH_OPTIONS {
        out.put_u8(index.method as u8);
        for column in &index.columns {
            out.put_u32(column.class);
        }
        put_list(out, &index.options, |out, option| put_text(out, option));
    }
    if version >= VERSION_WITH_MORE_COLLATIONS {
        for column in &index.columns {
            let (code, oid) = match column.collation {
                None => (0, 0),
                Some(KeyCollation::Own(oid)) => (1, oid),
                Some(KeyCollation::Said(oid)) => (2, oid),
            };
            out.put_u8(code);
            out.put_u32(oid);
        }
    }
}

/// Whether a column of an index has another collation than what stands in it.
fn has_key_collations(table: &Table) -> bool {
    let columns = table.indexes.iter().flat_map(|index| &index.columns);
    columns.into_iter().any(|column| column.collation.is_some())
}

fn index(reader: &mut Reader<'_>, version: u8) -> Option<Index> {
    let oid = reader.u32()?;
    let name = text(reader)?;
    let storage = text(reader)?;
    let mut columns = list(reader, |reader| {
        let column = ColumnId(reader.u16()?);
        let flags = reader.u8()?;
        let key = match column {
            ColumnId(0) if version >= VERSION_WITH_PARTS => IndexKey::Expression(text(reader)?),
            column => IndexKey::Column(column),
        };
        Some(IndexColumn {
            key,
            descending: flags & 1 != 0,
            nulls_first: flags & 2 != 0,
            class: 0,
            collation: None,
        })
    })?;
    let flags = reader.u8()?;
    let constraint = reader.u32()?;
    let (mut include, mut predicate) = (Vec::new(), None);
    if version >= VERSION_WITH_PARTS {
        include = self::columns(reader)?;
        predicate = Some(text(reader)?).filter(|sql| !sql.is_empty());
    }
    let (mut method, mut options) = (Method::BTree, Vec::new());
    if version >= VERSION_WITH_OPTIONS {
        method = *Method::ALL.get(usize::from(reader.u8()?))?;
        for column in &mut columns {
            column.class = reader.u32()?;
        }
        options = list(reader, text)?;
    }
    if version >= VERSION_WITH_MORE_COLLATIONS {
        for column in &mut columns {
            let (code, oid) = (reader.u8()?, reader.u32()?);
            column.collation = match code {
                0 => None,
                1 => Some(KeyCollation::Own(oid)),
                2 => Some(KeyCollation::Said(oid)),
                _ => return None,
            };
        }
    }
    let marked = version >= VERSION_WITH_MARKS;
    Some(Index {
        oid,
        name,
        storage: (!storage.is_empty()).then(|| Storage::new(storage)),
        columns,
        include,
        predicate,
        unique: flags & 1 != 0,
        nulls_distinct: flags & 4 == 0,
        primary: flags & 2 != 0,
        timing: timing(flags >> 3 & if marked { 3 } else { 31 })?,
        method,
        options,
        marks: Marks {
            clustered: marked && flags & 32 != 0,
            identity: marked && flags & 64 != 0,
        },
        constraint: (constraint != 0).then_some(constraint),
    })
}

fn action(code: u8) -> Option<Action> {
    Some(match code {
        0 => Action::NoAction,
        1 => Action::Restrict,
        2 => Action::Cascade,
        3 => Action::SetNull,
        4 => Action::SetDefault,
        _ => return None,
    })
}

#[cfg(test)]
pub(super) mod tests;
