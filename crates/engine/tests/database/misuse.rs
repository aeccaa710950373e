//! What a caller can get wrong: each is an error that says so, and nothing is touched.

use crate::support::{by_value, fresh, open, small, value_of, with_table};
use vellum::{Config, Database, Error, Family};

fn is_invalid<T>(result: vellum::Result<T>) -> bool {
    matches!(result, Err(Error::InvalidArgument { .. }))
}

#[test]
fn a_handle_of_another_database_is_refused_by_every_operation() {
    let (_one, first, own) = with_table(&small());
    let (_two, second, foreign) = with_table(&small());
    let index = second
        .retry(|tx| {
            tx.insert(&foreign, b"k", b"theirs")?;
            tx.create_index(&foreign, "i", by_value(0, Some(1), false))
        })
        .unwrap();
    first.retry(|tx| tx.insert(&own, b"k", b"ours")).unwrap();
    let tx = first.begin().unwrap();
    assert!(is_invalid(tx.get(&foreign, b"k", |_| ())));
    assert!(is_invalid(tx.multi_get(&foreign, &[b"k"], |_, _| ())));
    assert!(is_invalid(tx.insert(&foreign, b"n", b"")));
    assert!(is_invalid(tx.upsert(&foreign, b"k", b"")));
    assert!(is_invalid(tx.replace(&foreign, b"k", b"")));
    assert!(is_invalid(tx.update(&foreign, b"k", &[0..1], |_| ())));
    assert!(is_invalid(tx.delete(&foreign, b"k")));
    assert!(is_invalid(tx.delete(&foreign, &[0; 5000])));
    assert!(is_invalid(tx.count(&foreign, ..)));
    assert!(is_invalid(tx.cursor(&foreign, ..)));
    assert!(is_invalid(tx.index_cursor(&index, ..)));
    assert!(is_invalid(tx.indexes(&foreign)));
    assert!(is_invalid(tx.index(&foreign, "i")));
    assert!(is_invalid(tx.drop_index(&foreign, "i")));
    let description = by_value(0, Some(1), false);
    assert!(is_invalid(tx.create_index(&foreign, "j", description)));
    assert!(is_invalid(tx.bulk_load(&foreign, |_, _| false)));
    // It stays usable.
    assert_eq!(value_of(&tx, &own, b"k").unwrap(), b"ours");
    tx.commit().unwrap();
    let theirs = second.begin().unwrap();
    assert_eq!(value_of(&theirs, &foreign, b"k").unwrap(), b"theirs");
    drop(theirs);
    for database in [first, second] {
        assert!(database.verify().unwrap().is_sound());
    }
}

#[test]
fn a_handle_of_an_earlier_opening_is_refused() {
    let (directory, database, table) = with_table(&small());
    database.retry(|tx| tx.insert(&table, b"k", b"v")).unwrap();
    database.close().unwrap();
    let again = crate::support::open(&directory, &small());
    let tx = again.begin().unwrap();
    assert!(is_invalid(tx.get(&table, b"k", |_| ())));
    let table = tx.table("t").unwrap();
    assert_eq!(value_of(&tx, &table, b"k").unwrap(), b"v");
}

#[test]
fn settings_beyond_every_limit_are_refused_before_anything_is_made() {
    let cases: [(&str, fn(&mut Config)); 15] = [
        ("page_size", |c| c.page_size = 0),
        ("page_size", |c| c.page_size = usize::MAX),
        ("pool_bytes", |c| c.pool_bytes = 0),
        ("slots_max", |c| c.slots_max = 0),
        ("slots_max", |c| c.slots_max = u16::MAX - 2),
        ("slots_max", |c| c.slots_max = u16::MAX),
        ("slots_reserved", |c| c.slots_reserved = c.slots_max),
        ("slot buffers", |c| c.slot_buffer_bytes = 1 << 63),
        ("slot_buffer_bytes", |c| c.slot_buffer_bytes += 1),
        ("log_segment_bytes", |c| c.slot_buffer_bytes = 1 << 40),
        ("log_segment_bytes", |c| c.log_segment_bytes += 1),
        ("log_segment_bytes", |c| c.log_segment_bytes = u64::MAX),
        ("log_segment_bytes", |c| {
            (c.log_segment_bytes, c.log_bytes_max) = (1 << 32, 1 << 40);
        }),
        ("log_bytes_max", |c| c.log_bytes_max = 0),
        ("data_bytes_max", |c| c.data_bytes_max = 0),
    ];
    for (number, (setting, spoil)) in cases.into_iter().enumerate() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("db");
        let mut config = small();
        spoil(&mut config);
        let error = Database::open(&path, config).map(drop).unwrap_err();
        assert_eq!(error.family(), Family::Usage, "case {number}: {error}");
        let text = error.to_string();
        assert!(text.contains(setting), "case {number}: {text}");
        assert!(!path.exists(), "case {number}: {text}");
    }
}

/// Settings at the ends of their ranges, which are taken, and beyond them, where the error names the setting and its value.
#[test]
fn every_setting_is_taken_at_its_ends_and_refused_beyond() {
    type Set = fn(&mut Config, u64);
    /// Name, how it is set, what is taken, what is refused, and whether what is taken is cheap enough to be opened here.
    type Field = (&'static str, Set, Vec<u64>, Vec<u64>, bool);
    const PAGE: u64 = 4096;
    let all = vec![0, 1, u64::MAX];
    let fields: [Field; 11] = [
        (
            "page_size",
            |c, n| {
                *c = Config::default().page_size(n as usize);
                c.pool_bytes = 8 << 20;
            },
            vec![4096, 8192, 16384],
            vec![0, 4095, 4097, 16385, 32768, u64::MAX],
            true,
        ),
        (
            "pool_bytes",
            |c, n| c.pool_bytes = n,
            vec![16 * PAGE],
            vec![0, 16 * PAGE - 1, (1 << 42) + 1, 1 << 45, u64::MAX],
            true,
        ),
        (
            "pool_bytes",
            |c, n| (c.pool_bytes, c.data_bytes_max) = (n, 1 << 30),
            vec![1 << 42],
            vec![],
            true,
        ),
        (
            "data_bytes_max",
            |c, n| c.data_bytes_max = n,
            vec![256 * PAGE, 257 * PAGE - 1, 1 << 46],
            vec![
                0,
                64 * PAGE,
                150 * PAGE,
                256 * PAGE - 1,
                (1 << 46) + 1,
                u64::MAX,
            ],
            true,
        ),
        (
            "slots_max",
            |c, n| c.slots_max = n as u16,
            vec![4, 65532],
            vec![0, 3, 65533, 65535],
            true,
        ),
        (
            "slot_buffer_bytes",
            |c, n| c.slot_buffer_bytes = n as usize,
            vec![16 * PAGE],
            vec![0, 16 * PAGE - 1, 16 * PAGE + 1, 8 * PAGE, u64::MAX],
            true,
        ),
        (
            "log_segment_bytes",
            |c, n| (c.log_segment_bytes, c.log_bytes_max) = (n, 1 << 40),
            vec![64 * PAGE, 1 << 31],
            vec![0, 63 * PAGE, 64 * PAGE + 1, (1 << 31) + PAGE, u64::MAX],
            false,
        ),
        (
            "log_bytes_max",
            |c, n| c.log_bytes_max = n,
            vec![512 * PAGE, u64::MAX],
            vec![0, 512 * PAGE - 1],
            true,
        ),
        (
            "version_bytes_max",
            |c, n| c.version_bytes_max = n,
            all.clone(),
            vec![],
            true,
        ),
        (
            "checkpoint_log_bytes",
            |c, n| c.checkpoint_log_bytes = n,
            all.clone(),
            vec![],
            true,
        ),
        (
            "promote_after_ticks",
            |c, n| c.promote_after_ticks = n,
            all,
            vec![],
            true,
        ),
    ];
    for (name, set, taken, refused, opens) in fields {
        for value in refused {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("db");
            let mut config = small();
            set(&mut config, value);
            let error = Database::open(&path, config.clone()).map(drop).unwrap_err();
            let text = error.to_string();
            assert_eq!(error.family(), Family::Usage, "{name} {value}: {text}");
            assert!(text.contains(name), "{name} {value}: {text}");
            assert!(text.contains(&value.to_string()), "{name} {value}: {text}");
            assert!(!path.exists(), "{name} {value}: {text}");
            if name == "page_size" {
                continue;
            }
            // A database that is there: refused, and nothing of it is changed.
            let (directory, database) = fresh(&small());
            database.close().unwrap();
            let before = directory.read_all("control").unwrap();
            let refused = Database::open_directory(directory.clone(), config);
            assert!(is_invalid(refused.map(drop)), "{name} {value}");
            assert_eq!(directory.read_all("control").unwrap(), before);
        }
        for value in taken {
            let mut config = small();
            set(&mut config, value);
            config.background_threads = false;
            config.check().unwrap();
            if !opens {
                continue;
            }
            let (directory, database) = fresh(&config);
            database
                .retry(|tx| {
                    let table = tx.create_table("t")?;
                    tx.insert(&table, b"k", &[1; 10_000])
                })
                .unwrap_or_else(|error| panic!("{name} {value}: {error}"));
            assert!(database.verify().unwrap().is_sound(), "{name} {value}");
            database.close().unwrap();
            let database = Database::open_directory(directory, config).unwrap();
            let tx = database.begin().unwrap();
            let table = tx.table("t").unwrap();
            assert_eq!(value_of(&tx, &table, b"k").unwrap().len(), 10_000);
        }
    }
}

#[test]
fn a_limit_below_what_the_data_file_has_is_refused_and_the_next_opening_finds_everything() {
    let (directory, database, table) = with_table(&small());
    database
        .retry(|tx| {
            for number in 0..200u8 {
                tx.insert(&table, &[number], &[1; 10_000])?;
            }
            Ok(())
        })
        .unwrap();
    database.close().unwrap();
    let mut config = small();
    config.data_bytes_max = 256 * 4096;
    let refused = Database::open_directory(directory.clone(), config).map(drop);
    let text = refused.as_ref().unwrap_err().to_string();
    assert!(is_invalid(refused), "{text}");
    assert!(text.contains("1048576"), "{text}");
    let database = open(&directory, &small());
    let tx = database.begin().unwrap();
    let table = tx.table("t").unwrap();
    assert_eq!(tx.count(&table, ..).unwrap(), 200);
}

#[test]
fn the_most_and_the_fewest_slots_work() {
    for slots in [4, 65532] {
        let mut config = small();
        config.slots_max = slots;
        let (_directory, database) = fresh(&config);
        let table = database.retry(|tx| tx.create_table("t")).unwrap();
        let open: Vec<_> = (0..4).map(|_| database.begin().unwrap()).collect();
        for (number, tx) in (0u8..).zip(&open) {
            tx.insert(&table, &[number], b"v").unwrap();
        }
        open.into_iter().for_each(|tx| tx.commit().unwrap());
        assert!(database.verify().unwrap().is_sound());
        database.close().unwrap();
    }
}

#[test]
fn a_savepoint_of_an_ended_transaction_reverts_nothing() {
    let (_directory, database, table) = with_table(&small());
    let first = database.begin().unwrap();
    let stale = first.savepoint().unwrap();
    first.commit().unwrap();
    // The same slot and, since nobody wrote, the same snapshot.
    let second = database.begin().unwrap();
    let _own = second.savepoint().unwrap();
    second.insert(&table, b"k", b"v").unwrap();
    assert!(second.rollback_to(&stale).is_err());
    assert!(second.get(&table, b"k", |_| ()).unwrap().is_some());
    second.commit().unwrap();
}

#[test]
fn a_backup_into_the_database_s_own_directory_is_refused_under_every_name() {
    let home = tempfile::tempdir().unwrap();
    let own = home.path().join("db");
    let database = Database::open(&own, small()).unwrap();
    database.retry(|tx| tx.create_table("t").map(drop)).unwrap();
    let link = home.path().join("link");
    std::os::unix::fs::symlink(&own, &link).unwrap();
    let below = own.join("copies");
    std::fs::create_dir(&below).unwrap();
    let beside = home.path().join("beside");
    std::os::unix::fs::symlink(&below, &beside).unwrap();
    for target in [
        own.clone(),
        own.join("new"),
        own.join("../db/new"),
        below.clone(),
        below.join("new"),
        link.clone(),
        link.join("new"),
        beside.clone(),
        beside.join("new"),
    ] {
        let refused = database.backup(&target);
        assert!(is_invalid(refused), "{}", target.display());
    }
    assert!(!own.join("new").exists() && !below.join("new").exists());
    // A name that only begins like it is another.
    database.backup(home.path().join("db2")).unwrap();
    database.close().unwrap();
}
