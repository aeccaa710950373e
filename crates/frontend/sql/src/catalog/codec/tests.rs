//! What is written is read back, and what earlier builds read is written as before.

#![allow(clippy::unwrap_used, reason = "a test may panic")]
use super::*;
use vellum_row::{Column, Type, Typmod};

/// A table of two columns, `a` and `b`.
pub(in crate::catalog) fn table_with(indexes: Vec<Index>) -> Relation {
    let column = |name: &str, ty| Column::new(name, ty, Typmod::NONE, true);
    let columns = vec![column("a", Type::Text), column("b", Type::Int4)];
    let table = Table {
        schema: Arc::new(Schema::new(columns).unwrap()),
        storage: Storage::new("sql.table.7"),
        defaults: Vec::new(),
        indexes: indexes.into_iter().map(Arc::new).collect(),
        checks: Vec::new(),
        foreign_keys: Vec::new(),
        options: Vec::new(),
        domains: Vec::new(),
        collations: Vec::new(),
        replica_identity: ReplicaIdentity::Default,
    };
    Relation {
        oid: 7,
        namespace: 2200,
        name: "t".into(),
        owner: 16_390,
        generation: 1,
        runtime: Arc::default(),
        acl: None,
        column_acls: Vec::new(),
        kind: Kind::Table(Box::new(table)),
    }
}

/// No role but `ann` is there beside the first one.
fn role(name: &str) -> Oid {
    if name == "ann" { 16_390 } else { 10 }
}

fn decoded(bytes: &[u8]) -> Option<Relation> {
    decode_relation(7, bytes, &role)
}

/// A row as earlier builds wrote it, with its owner's name.
fn with_name(value: &[u8], head: usize, name: &str) -> Vec<u8> {
    let mut earlier = vec![value[0] & !OWNED];
    earlier.extend_from_slice(&value[1..head]);
    put_text(&mut earlier, name);
    earlier.extend_from_slice(&value[head + 4..]);
    earlier
}

#[test]
fn owners_that_were_kept_by_name_are_found_and_written_anew() {
    let relation = table_with(vec![partial()]);
    let bytes = encode_relation(&relation).unwrap();
    // Version, kind, schema, and a name of one letter.
    let earlier = with_name(&bytes, 11, "ann");
    assert_eq!(decoded(&earlier).unwrap().owner, 16_390);
    assert_eq!(owned_by_oid(&earlier, true, &role).unwrap(), bytes);
    assert_eq!(owned_by_oid(&bytes, true, &role), None);
    let of_nobody = with_name(&bytes, 11, "bob");
    assert_eq!(decoded(&of_nobody).unwrap().owner, 10);
    for length in 0..earlier.len() {
        assert!(decoded(&earlier[..length]).is_none(), "{length}");
        let _ = owned_by_oid(&earlier[..length], true, &role);
    }
    let namespace = Namespace {
        oid: 16_400,
        name: "s".into(),
        owner: 16_390,
        acl: None,
    };
    let bytes = encode_namespace(&namespace);
    let earlier = with_name(&bytes, 6, "ann");
    for row in [&bytes, &earlier] {
        let read = decode_namespace(16_400, row, &role).unwrap();
        assert_eq!(read, namespace);
    }
    assert_eq!(owned_by_oid(&earlier, false, &role).unwrap(), bytes);
    assert_eq!(owned_by_oid(&bytes, false, &role), None);
}

#[test]
fn rows_of_a_later_version_are_told_from_damaged_ones() {
    let mut row = encode_relation(&table_with(Vec::new())).unwrap();
    assert!(!is_newer(&row) && !is_newer(&[]) && !is_newer(&[0]));
    for owned in [0, OWNED] {
        row[0] = (VERSIONS.end() + 1) | owned;
        assert!(is_newer(&row) && decoded(&row).is_none());
    }
}

/// A unique index.
pub(in crate::catalog) fn index(columns: Vec<IndexColumn>) -> Index {
    Index {
        oid: 9,
        name: "i".into(),
        storage: Some(Storage::new("s")),
        columns,
        include: Vec::new(),
        predicate: None,
        unique: true,
        nulls_distinct: true,
        constraint: None,
        primary: false,
        timing: Timing::Fixed,
        method: Method::BTree,
        options: Vec::new(),
        marks: Marks::default(),
    }
}

fn partial() -> Index {
    let lower = IndexColumn {
        key: IndexKey::Expression("lower(a)".into()),
        descending: true,
        nulls_first: true,
        class: 0,
        collation: None,
    };
    Index {
        include: vec![ColumnId(1)],
        predicate: Some("b > 0".into()),
        nulls_distinct: false,
        ..index(vec![lower, IndexColumn::ascending(ColumnId(2))])
    }
}

/// The bytes that say of the indexes: what stands between the list of defaults and that of checks, both empty.
fn index_bytes(relation: &Relation) -> Vec<u8> {
    let bytes = encode_relation(relation).unwrap();
    let name = bytes
        .windows(11)
        .position(|window| window == b"sql.table.7");
    let behind = name.unwrap() + 11 + 4;
    bytes[behind..bytes.len() - 8].to_vec()
}

fn read_back(bytes: &[u8]) -> Vec<Arc<Index>> {
    let relation = decoded(bytes).unwrap();
    relation.table().unwrap().indexes.clone()
}

#[test]
fn indexes_of_columns_alone_are_written_as_before() {
    let plain = index(vec![IndexColumn::ascending(ColumnId(2))]);
    let relation = table_with(vec![plain]);
    assert_eq!(encode_relation(&relation).unwrap()[0], VERSION | OWNED);
    let expected = [
        &[1, 0, 0, 0, 9, 0, 0, 0, 1, 0, 0, 0, b'i', 1, 0, 0, 0, b's'][..],
        &[1, 0, 0, 0, 2, 0, 0, 1, 0, 0, 0, 0],
    ];
    assert_eq!(index_bytes(&relation), expected.concat());
    let read = read_back(&encode_relation(&relation).unwrap());
    assert_eq!(read[0].columns, [IndexColumn::ascending(ColumnId(2))]);
    assert!(read[0].is_plain() && read[0].include.is_empty() && read[0].nulls_distinct);
}

#[test]
fn expressions_predicates_and_included_columns_are_read_back() {
    let relation = table_with(vec![partial()]);
    let bytes = encode_relation(&relation).unwrap();
    assert_eq!(bytes[0], VERSION_WITH_PARTS | OWNED);
    let expected = [
        &[1, 0, 0, 0, 9, 0, 0, 0, 1, 0, 0, 0, b'i', 1, 0, 0, 0, b's'][..],
        &[2, 0, 0, 0, 0, 0, 3, 8, 0, 0, 0],
        b"lower(a)",
        &[2, 0, 0, 5, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 5, 0, 0, 0],
        b"b > 0",
    ];
    assert_eq!(index_bytes(&relation), expected.concat());
    let read = read_back(&bytes);
    assert_eq!(read[0].columns, partial().columns);
    assert_eq!(read[0].predicate.as_deref(), Some("b > 0"));
    assert_eq!(read[0].include, [ColumnId(1)]);
    assert!(read[0].unique && !read[0].nulls_distinct);
    for length in 0..bytes.len() {
        let cut = decoded(&bytes[..length]);
        assert!(cut.is_none(), "{length} bytes of {}", bytes.len());
    }
}

#[test]
fn the_timing_of_constraints_is_read_back() {
    let mut unique = index(vec![IndexColumn::ascending(ColumnId(2))]);
    unique.timing = Timing::Deferred;
    let mut relation = table_with(vec![unique]);
    let Kind::Table(table) = &mut relation.kind else {
        unreachable!()
    };
    for timing in [Timing::Fixed, Timing::Immediate, Timing::Deferred] {
        table.foreign_keys.push(ForeignKey {
            oid: 11,
            name: "f".into(),
            columns: vec![ColumnId(2)],
            target: 8,
            target_columns: vec![ColumnId(1)],
            on_delete: Action::SetDefault,
            on_update: Action::Cascade,
            timing,
            full: false,
            off: SwitchedOff::default(),
        });
    }
    let expected = table.foreign_keys.clone();
    let bytes = encode_relation(&relation).unwrap();
    assert_eq!(bytes[0], VERSION_WITH_TIMING | OWNED);
    let read = decoded(&bytes).unwrap();
    let table = read.table().unwrap();
    assert_eq!(table.foreign_keys, expected);
    assert_eq!(table.indexes[0].timing, Timing::Deferred);
    assert!(table.indexes[0].unique && !table.indexes[0].keeps_apart());
}

#[test]
fn views_without_options_are_written_as_before_and_others_are_read_back() {
    let mut view = View {
        query: "SELECT a FROM public.t".into(),
        columns: vec!["a".into()],
        options: Vec::new(),
        defaults: Vec::new(),
    };
    let mut relation = table_with(Vec::new());
    relation.kind = Kind::View(view.clone());
    assert_eq!(encode_relation(&relation).unwrap()[0], VERSION | OWNED);
    view.options = vec!["check_option=local".into()];
    view.defaults = vec![(1, "7 + 1".into())];
    relation.kind = Kind::View(view.clone());
    let bytes = encode_relation(&relation).unwrap();
    assert_eq!(bytes[0], VERSION_WITH_DOMAINS | OWNED);
    let read = decoded(&bytes).unwrap();
    assert!(matches!(read.kind, Kind::View(read) if read == view));
    for length in 0..bytes.len() {
        let cut = decoded(&bytes[..length]);
        assert!(cut.is_none(), "{length} bytes of {}", bytes.len());
    }
}

#[test]
fn methods_classes_and_options_are_read_back() {
    let mut own = partial();
    own.method = Method::Gin;
    own.columns[0].class = 4217;
    own.options = vec!["fastupdate=off".into()];
    let mut relation = table_with(vec![own.clone()]);
    let Kind::Table(table) = &mut relation.kind else {
        unreachable!()
    };
    table.options = vec!["fillfactor=70".into(), "parallel_workers=2".into()];
    let options = table.options.clone();
    let bytes = encode_relation(&relation).unwrap();
    assert_eq!(bytes[0], VERSION_WITH_OPTIONS | OWNED);
    let read = decoded(&bytes).unwrap();
    let table = read.table().unwrap();
    assert_eq!(table.options, options);
    let index = &table.indexes[0];
    assert_eq!(
        (index.method, &index.columns, &index.options),
        (Method::Gin, &own.columns, &own.options)
    );
    for length in 0..bytes.len() {
        let cut = decoded(&bytes[..length]);
        assert!(cut.is_none(), "{length} bytes of {}", bytes.len());
    }
}

#[test]
fn what_is_marked_and_switched_off_is_read_back() {
    let mut marked = index(vec![IndexColumn::ascending(ColumnId(2))]);
    marked.timing = Timing::Deferred;
    marked.marks = Marks {
        clustered: false,
        identity: true,
    };
    let mut relation = table_with(vec![marked]);
    let grant = Grant {
        grantee: 3,
        grantor: 10,
        rights: Rights::SELECT,
        grantable: Rights::NONE,
    };
    relation.column_acls = vec![(2, vec![grant])];
    let Kind::Table(table) = &mut relation.kind else {
        unreachable!()
    };
    table.replica_identity = ReplicaIdentity::Index;
    for (full, references, target) in [
        (true, false, false),
        (false, true, false),
        (false, false, true),
    ] {
        table.foreign_keys.push(ForeignKey {
            oid: 11,
            name: "f".into(),
            columns: vec![ColumnId(2)],
            target: 8,
            target_columns: vec![ColumnId(1)],
            on_delete: Action::SetDefault,
            on_update: Action::SetNull,
            timing: Timing::Immediate,
            full,
            off: SwitchedOff { references, target },
        });
    }
    let expected = table.foreign_keys.clone();
    let bytes = encode_relation(&relation).unwrap();
    assert_eq!(bytes[0], VERSION_WITH_MARKS | OWNED);
    let read = decoded(&bytes).unwrap();
    assert_eq!(read.column_acls, relation.column_acls);
    let table = read.table().unwrap();
    assert_eq!(table.foreign_keys, expected);
    assert_eq!(table.replica_identity, ReplicaIdentity::Index);
    let index = &table.indexes[0];
    assert_eq!(
        (index.timing, index.marks.clustered),
        (Timing::Deferred, false)
    );
    assert!(index.marks.identity && index.unique);
    for length in 0..bytes.len() {
        let cut = decoded(&bytes[..length]);
        assert!(cut.is_none(), "{length} bytes of {}", bytes.len());
    }
}

#[test]
fn collations_are_read_back_and_others_are_written_as_before() {
    let mut relation = table_with(Vec::new());
    assert_eq!(encode_relation(&relation).unwrap()[0], VERSION | OWNED);
    let Kind::Table(table) = &mut relation.kind else {
        panic!("a table");
    };
    table.set_collation(ColumnId(2), Some(951));
    table.set_collation(ColumnId(1), Some(951));
    table.set_collation(ColumnId(1), Some(950));
    table.set_collation(ColumnId(2), None);
    let bytes = encode_relation(&relation).unwrap();
    assert_eq!(bytes[0], VERSION_WITH_COLLATIONS | OWNED);
    let read = decoded(&bytes).unwrap();
    let read = read.table().unwrap();
    assert_eq!(read.collations, [(ColumnId(1), 950)]);
    assert_eq!(read.collation_of(ColumnId(1)), Some(950));
    assert_eq!(read.collation_of(ColumnId(2)), None);
    for length in 0..bytes.len() {
        let cut = decoded(&bytes[..length]);
        assert!(cut.is_none(), "{length} bytes of {}", bytes.len());
    }
}
