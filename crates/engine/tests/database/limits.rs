//! The longest keys and values, on every page size: what can be stored can be updated, deleted, rolled back,
//! recovered; what cannot is refused with an error.

use crate::support::{by_value, key, open, rows, small, tiny, value_of, with_table};
use std::ops::Range;
use vellum::{Config, Database, Error, Transaction};

/// The longest value.
const GIBIBYTE: usize = 1 << 30;
const PAGE_SIZES: [usize; 3] = [4096, 8192, 16384];

/// The lengths around each limit of a value beside a key of that length.
fn lengths(page_size: usize, key: usize) -> Vec<usize> {
    // The longest value in a row: found by the same formula that the tree has.
    let inline = vellum_btree_limit(page_size, key);
    vec![
        0,
        1,
        7,
        8,
        9,
        inline - 9,
        inline - 1,
        inline,
        inline + 1,
        page_size,
        3 * page_size,
    ]
}

fn vellum_btree_limit(page_size: usize, key: usize) -> usize {
    vellum_version::write::inline_body_max(page_size, key)
}

#[test]
fn every_change_of_rows_of_every_length_is_reverted_and_recovered() {
    for page_size in PAGE_SIZES {
        let config = tiny(page_size, 64);
        for key_length in [1, 12, page_size / 8] {
            let (directory, database, table) = with_table(&config);
            let lengths = lengths(page_size, key_length);
            let key = |number: usize| {
                let mut key = vec![b'k'; key_length];
                key[key_length - 1] = number as u8;
                key
            };
            let value = |length: usize| (0..length).map(|i| (i % 251) as u8).collect::<Vec<_>>();
            for (number, length) in lengths.iter().enumerate() {
                database
                    .retry(|tx| tx.insert(&table, &key(number), &value(*length)))
                    .unwrap();
            }
            let expected = rows(&database.begin().unwrap(), &table);
            assert_eq!(expected.len(), lengths.len());
            let old = database.begin().unwrap();
            let change = |tx: &vellum::Transaction, number: usize| {
                let length = tx.get(&table, &key(number), <[u8]>::len).unwrap().unwrap();
                tx.update(&table, &key(number), &[0..length], |bytes| bytes.fill(1))
                    .unwrap();
                tx.upsert(
                    &table,
                    &key(number),
                    &value(lengths[lengths.len() - 1 - number]),
                )
                .unwrap();
                tx.delete(&table, &key(number)).unwrap();
                tx.insert(&table, &key(number), &value(length / 2)).unwrap();
            };
            // Rolled back while the process runs.
            let tx = database.begin().unwrap();
            (0..lengths.len()).for_each(|number| change(&tx, number));
            tx.rollback().unwrap();
            assert_eq!(rows(&database.begin().unwrap(), &table), expected);
            // Committed: the old snapshot sees the old rows.
            let tx = database.begin().unwrap();
            (0..lengths.len()).for_each(|number| change(&tx, number));
            tx.commit().unwrap();
            assert_eq!(rows(&old, &table), expected);
            old.commit().unwrap();
            let changed = rows(&database.begin().unwrap(), &table);
            // Rolled back by recovery: the writer is leaked, as a crash would leave it.
            let tx = database.begin().unwrap();
            (0..lengths.len()).for_each(|number| change(&tx, number));
            database.sync().unwrap();
            std::mem::forget(tx);
            drop(database);
            let copy = copied(&*directory);
            let database = open(&copy, &config);
            let tx = database.begin().unwrap();
            let table = tx.table("t").unwrap();
            assert_eq!(
                rows(&tx, &table),
                changed,
                "page {page_size}, key {key_length}"
            );
        }
    }
}

/// A directory with the same files and no lock.
fn copied(from: &dyn vellum_io::Directory) -> std::sync::Arc<dyn vellum_io::Directory> {
    use vellum_io::{Directory, MemoryDirectory, OpenOptions};
    let to = MemoryDirectory::new();
    to.create_dir("log").unwrap();
    let mut names = vec!["control".to_owned(), "data".to_owned()];
    names.extend(
        from.list("log")
            .unwrap()
            .into_iter()
            .map(|name| format!("log/{name}")),
    );
    for name in names {
        let bytes = from.read_all(&name).unwrap();
        let file = to.open(&name, OpenOptions::create_new()).unwrap();
        file.write_at(&bytes, 0).unwrap();
    }
    std::sync::Arc::new(to)
}

#[test]
fn an_update_may_name_any_ranges_in_any_order() {
    let (_directory, database, table) = with_table(&small());
    let length = 1000;
    let ranges: Vec<Vec<Range<usize>>> = vec![
        vec![],
        vec![0..length],
        (0..length).map(|at| at..at + 1).collect(),
        (0..length).rev().step_by(2).map(|at| at..at + 1).collect(),
        (0..length - 10).map(|at| at..at + 10).collect(),
        vec![5..5, 900..1000, 0..0, 10..20, 15..30, 1000..1000],
        vec![0..1000, 0..1000, 0..1000],
    ];
    for (number, ranges) in ranges.iter().enumerate() {
        let key = [number as u8];
        database
            .retry(|tx| tx.insert(&table, &key, &vec![1; length]))
            .unwrap();
        let old = database.begin().unwrap();
        let tx = database.begin().unwrap();
        assert!(
            tx.update(&table, &key, ranges, |value| value.fill(2))
                .unwrap()
        );
        let new = value_of(&tx, &table, &key).unwrap();
        for (at, byte) in new.iter().enumerate() {
            let written = ranges.iter().any(|range| range.contains(&at));
            assert_eq!(
                *byte,
                if written { 2 } else { 1 },
                "case {number}, byte {at}"
            );
        }
        assert_eq!(value_of(&old, &table, &key), Some(vec![1; length]));
        tx.rollback().unwrap();
        let tx = database.begin().unwrap();
        assert_eq!(
            value_of(&tx, &table, &key),
            Some(vec![1; length]),
            "case {number}"
        );
    }
}

#[test]
fn too_long_keys_are_refused_by_writes_and_found_by_no_read() {
    for page_size in PAGE_SIZES {
        let (_directory, database, table) = with_table(&tiny(page_size, 64));
        let tx = database.begin().unwrap();
        tx.insert(&table, b"k", b"v").unwrap();
        let limit = page_size / 8;
        for length in [limit + 1, page_size / 4, page_size / 4 + 1, 10 * page_size] {
            let long = vec![b'k'; length];
            let refused = tx.insert(&table, &long, b"v");
            assert!(matches!(refused, Err(Error::KeyTooLong { .. })));
            assert!(matches!(
                tx.upsert(&table, &long, b"v"),
                Err(Error::KeyTooLong { .. })
            ));
            assert!(!tx.delete(&table, &long).unwrap());
            assert!(!tx.update(&table, &long, &[], |_| ()).unwrap());
            assert_eq!(value_of(&tx, &table, &long), None);
            let mut cursor = tx.cursor(&table, ..).unwrap();
            cursor.seek(&long);
            assert_eq!(cursor.next().unwrap(), None);
            assert!(cursor.prev().unwrap().is_some());
            let bounds = (
                std::ops::Bound::Excluded(&long[..]),
                std::ops::Bound::Unbounded,
            );
            assert_eq!(tx.count(&table, bounds).unwrap(), 0);
        }
        tx.commit().unwrap();
    }
}

#[test]
fn index_entries_of_every_length_are_stored_or_refused() {
    for page_size in PAGE_SIZES {
        for unique in [true, false] {
            let (_directory, database, table) = with_table(&tiny(page_size, 64));
            database
                .retry(|tx| tx.create_index(&table, "i", by_value(0, None, unique)))
                .unwrap();
            let mut refused = 0;
            for key_length in [1, page_size / 16, page_size / 8] {
                for columns in (0..=page_size * 5 / 16).step_by(page_size / 64) {
                    let key = vec![1; key_length];
                    let value = vec![2; columns];
                    let tx = database.begin().unwrap();
                    match tx.upsert(&table, &key, &value) {
                        Ok(_) => {
                            let index = tx.index(&table, "i").unwrap();
                            let mut cursor = tx.index_cursor(&index, ..).unwrap();
                            let (entry, found) = cursor.next().unwrap().unwrap();
                            assert!(entry.starts_with(&value));
                            assert_eq!(found, key);
                            assert_eq!(cursor.next().unwrap(), None);
                            drop(cursor);
                            assert!(tx.delete(&table, &key).unwrap());
                            tx.rollback().unwrap();
                        }
                        Err(Error::KeyTooLong { length, limit }) => {
                            // As `KeyDescription` says; less beside a long primary key.
                            let most = [896, 1808, 3632][page_size / 8192];
                            assert!(length > limit && limit <= most);
                            assert!(key_length > 1 || limit == most, "{limit}");
                            refused += 1;
                            assert_eq!(tx.count(&table, ..).unwrap(), 0, "undone (T4)");
                            tx.commit().unwrap();
                        }
                        Err(other) => panic!("{other}"),
                    }
                }
            }
            assert!(refused > 0, "the limit was reached");
        }
    }
}

#[test]
fn prefetched_keys_are_read_without_another_page_and_nothing_else_changes() {
    let (directory, database, table) = with_table(&small());
    let value = |number: u32| vec![number as u8; 500];
    for start in (0..1500).step_by(50) {
        let rows = |tx: &Transaction| {
            (start..start + 50)
                .try_for_each(|number| tx.upsert(&table, &key(number), &value(number)).map(|_| ()))
        };
        database.retry(rows).unwrap();
        database.step().unwrap();
    }
    drop(database);
    // What was opened just now has few pages in memory.
    let database = open(&directory, &small());
    let tx = database.begin().unwrap();
    let table = tx.table("t").unwrap();
    let wanted = [100_u32, 300, 500, 301, 9999, 700].map(key);
    let keys = || wanted.iter().map(|key| &key[..]);
    assert!(tx.get(&table, &key(0), |_| ()).unwrap().is_some());
    let reads = || database.statistics().pages_read;
    let before = reads();
    tx.prefetch(keys().map(|key| (&table, key))).unwrap();
    let together = reads();
    assert!(
        together >= before + 4,
        "{before} pages read, then {together}"
    );
    for number in [100, 300, 301, 500, 700] {
        assert_eq!(value_of(&tx, &table, &key(number)), Some(value(number)));
    }
    assert_eq!(value_of(&tx, &table, &key(9999)), None);
    assert_eq!(reads(), together, "they were all there");
    tx.prefetch(keys().map(|key| (&table, key))).unwrap();
    tx.prefetch(std::iter::empty()).unwrap();
    assert_eq!(reads(), together);
    let alone = key(1300);
    tx.prefetch([(&table, &alone[..])]).unwrap();
    let alone_read = reads();
    assert!(alone_read > together, "one alone is read, too");
    assert_eq!(value_of(&tx, &table, &alone), Some(value(1300)));
    assert_eq!(reads(), alone_read);
    let mut found = Vec::new();
    let more = [1100_u32, 900, 9998].map(key);
    let more: Vec<&[u8]> = more.iter().map(|key| &key[..]).collect();
    tx.multi_get(&table, &more, |at, value| {
        found.push((at, value.map(<[u8]>::to_vec)))
    })
    .unwrap();
    assert_eq!(
        found,
        [(0, Some(value(1100))), (1, Some(value(900))), (2, None)]
    );
}

#[test]
fn a_value_longer_than_a_gibibyte_is_refused_on_every_path_and_nothing_happens() {
    let (_directory, database, table) = with_table(&small());
    database
        .retry(|tx| tx.insert(&table, &key(1), b"here"))
        .unwrap();
    // Never touched: the operating system lends one page of zeros.
    let long = vec![0; GIBIBYTE + 1];
    let refused = |result: vellum::Result<()>| match result {
        Err(Error::ValueTooLong { length, limit }) => {
            assert_eq!((length, limit), (GIBIBYTE + 1, GIBIBYTE));
        }
        other => panic!("{other:?}"),
    };
    let pages = database.statistics().pages_durable;
    let tx = database.begin().unwrap();
    refused(tx.insert(&table, &key(2), &long));
    refused(tx.upsert(&table, &key(1), &long).map(drop));
    refused(tx.replace(&table, &key(1), &long).map(drop));
    let mut given = false;
    refused(
        tx.bulk_load(&table, |row_key, value| {
            row_key.extend_from_slice(&key(3));
            // Swapped, not copied.
            *value = vec![0; GIBIBYTE + 1];
            !std::mem::replace(&mut given, true)
        })
        .map(drop),
    );
    // The transaction stays usable, and has changed nothing.
    assert_eq!(tx.count(&table, ..).unwrap(), 1);
    tx.insert(&table, &key(2), b"short").unwrap();
    tx.commit().unwrap();
    let tx = database.begin().unwrap();
    assert_eq!(value_of(&tx, &table, &key(1)), Some(b"here".to_vec()));
    assert_eq!(value_of(&tx, &table, &key(2)), Some(b"short".to_vec()));
    assert!(database.statistics().pages_durable <= pages + 16);
}

/// The longest value itself: on a real disk, with a pool of a 64th of it; read, changed in place, rolled back, deleted, recovered. A
/// sixteenth of it, unless everything is to be tried (`VELLUM_THOROUGH`): a minute, not seconds.
#[test]
fn the_longest_value_is_written_read_changed_and_given_back_in_a_small_pool() {
    let thorough = std::env::var_os("VELLUM_THOROUGH").is_some();
    let length = if thorough { GIBIBYTE } else { GIBIBYTE / 16 };
    let place = tempfile::tempdir().unwrap();
    let config = Config::default().pool_bytes((length / 64).max(4 << 20) as u64);
    let database = Database::open(place.path(), config.clone()).unwrap();
    let table = database.retry(|tx| tx.create_table("t")).unwrap();
    let mut value: Vec<u8> = (0..length).map(|at| (at / 4096 + at) as u8).collect();
    database
        .retry(|tx| tx.insert(&table, b"k", &value))
        .unwrap();
    let pages = database.statistics().pages_durable;
    let same = |tx: &Transaction, table: &vellum::Table, value: &[u8]| {
        let same = tx.get(table, b"k", |found| found == value).unwrap();
        assert_eq!(same, Some(true));
    };
    // Rolled back: the old one stays.
    let tx = database.begin().unwrap();
    assert!(tx.delete(&table, b"k").unwrap());
    tx.rollback().unwrap();
    // In its middle, and at both ends.
    let old = database.begin().unwrap();
    let ranges = [0..1, length / 2..length / 2 + 3, length - 1..length];
    let tx = database.begin().unwrap();
    assert!(
        tx.update(&table, b"k", &ranges, |bytes| {
            for range in &ranges {
                bytes[range.clone()].fill(7);
            }
        })
        .unwrap()
    );
    tx.commit().unwrap();
    same(&old, &table, &value);
    drop(old);
    for range in &ranges {
        value[range.clone()].fill(7);
    }
    same(&database.begin().unwrap(), &table, &value);
    database.close().unwrap();
    let database = Database::open(place.path(), config).unwrap();
    let tx = database.begin().unwrap();
    let table = tx.table("t").unwrap();
    same(&tx, &table, &value);
    assert!(tx.delete(&table, b"k").unwrap());
    tx.commit().unwrap();
    database.checkpoint().unwrap();
    assert!(database.verify().unwrap().is_sound());
    // The next one takes the same pages.
    database
        .retry(|tx| tx.insert(&table, b"k", &value))
        .unwrap();
    let now = database.statistics().pages_durable;
    assert!(now <= 2 * pages + 64, "{pages} pages before, {now} now");
    database.close().unwrap();
}

/// Regression: such entries were columns and key with nothing between, and "a" + "bc" is "ab" + "c".
#[test]
fn regress_rows_that_differ_are_told_apart_by_an_index_to_the_end() {
    use vellum::{KeyDescription, KeyPart, Source};
    let part = |source| KeyPart {
        source,
        start: 0,
        end: None,
    };
    let both = vec![part(Source::Value), part(Source::Key)];
    for index in [
        by_value(0, None, false),
        KeyDescription::new(both, true).unwrap(),
    ] {
        let (_directory, database, table) = with_table(&small());
        database
            .retry(|tx| tx.create_index(&table, "i", index.clone()).map(drop))
            .unwrap();
        let all: [(&[u8], &[u8]); 5] = [
            (b"bc", b"a"),
            (b"c", b"ab"),
            (b"", b"abc"),
            (b"\0", b"a"),
            (b"", b"a\0"),
        ];
        let rows = [all[0], all[1], all[2], all[3]];
        let tx = database.begin().unwrap();
        for (key, value) in rows {
            tx.insert(&table, key, value).unwrap();
        }
        tx.upsert(&table, all[4].0, all[4].1).unwrap();
        let handle = tx.index(&table, "i").unwrap();
        let found = |range: (std::ops::Bound<Vec<u8>>, std::ops::Bound<Vec<u8>>)| {
            let bounds = (
                range.0.as_ref().map(Vec::as_slice),
                range.1.as_ref().map(Vec::as_slice),
            );
            let mut cursor = tx.index_cursor(&handle, bounds).unwrap();
            let mut keys = Vec::new();
            while let Some((_, key)) = cursor.next().unwrap() {
                keys.push(key.to_vec());
            }
            keys
        };
        // In the order of the values, and of the keys where these are equal.
        let in_order: [&[u8]; 4] = [b"\0", b"bc", b"", b"c"];
        assert_eq!(found(index.range(&[]).unwrap()), in_order);
        let of_a: [&[u8]; 2] = [b"\0", b"bc"];
        assert_eq!(found(index.range(&[b"a"]).unwrap()), of_a);
        assert_eq!(found(index.range(&[b"a\0"]).unwrap()), [b""]);
        tx.commit().unwrap();
        assert!(database.verify().unwrap().is_sound());
    }
}

#[test]
fn escapes_count_in_the_longest_entry() {
    let (_directory, database, table) = with_table(&tiny(4096, 64));
    database
        .retry(|tx| {
            tx.create_index(&table, "i", by_value(0, None, false))
                .map(drop)
        })
        .unwrap();
    let put = |value: &[u8]| database.retry(|tx| tx.upsert(&table, b"key", value).map(drop));
    let limit = 896;
    let longest = limit - 2 - 3;
    put(&vec![1; longest]).unwrap();
    put(&vec![0; longest / 2]).unwrap();
    for (value, length) in [
        (vec![1; longest + 1], limit + 1),
        (vec![0; longest / 2 + 1], 2 * (longest / 2 + 1) + 5),
    ] {
        let refused = put(&value);
        assert!(
            matches!(&refused, Err(Error::KeyTooLong { length: l, limit: m, .. }) if (*l, *m) == (length, limit)),
            "{refused:?}"
        );
    }
    assert!(database.verify().unwrap().is_sound());
}
