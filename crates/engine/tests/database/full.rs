//! A database that can grow no more, by its own limit or because the disk is full: it opens, reads, deletes, and takes
//! rows again.

use crate::support::{key, open, rows, settle, tiny, with_table};
use std::io::Write;
use std::sync::Arc;
use vellum::{Config, Database, Error, Table, Transaction};
use vellum_io::{Directory, PowerCut, SimulatedDirectory};

/// Rows of `length` bytes, until there is no room for more.
fn fill_up(database: &Database, table: &Table, length: usize, from: u32) -> u32 {
    let mut n = from;
    loop {
        let insert = |tx: &Transaction| {
            (n..n + 20).try_for_each(|n| tx.insert(table, &key(n), &vec![n as u8; length]))
        };
        match database.retry(insert) {
            Ok(()) => n += 20,
            Err(Error::OutOfSpace { .. }) => return n,
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn a_full_database_takes_deletes_and_then_inserts_again() {
    for (length, count) in [(4, 8_000), (250, 2_000)] {
        let mut config = tiny(8192, 64);
        config.data_bytes_max = 8 << 20;
        let (directory, mut database, mut table) = with_table(&config);
        let mut rows = fill_up(&database, &table, length, 0);
        assert!(rows > 10_000, "{rows} rows");
        for round in 0..4 {
            // As they were written, then frozen by a restart: a tombstone is longer than a short row of these.
            if round % 2 == 1 {
                drop((database, table));
                database = open(&directory, &config);
                table = database.begin().unwrap().table("t").unwrap();
            }
            let tx = database.begin().unwrap();
            for n in round * count..(round + 1) * count {
                let done = tx.delete(&table, &key(n));
                assert!(matches!(done, Ok(true)), "round {round}, row {n}: {done:?}");
            }
            tx.commit().unwrap();
            settle(&database);
            let now = fill_up(&database, &table, length, rows);
            assert!(
                now > rows + count / 3,
                "round {round}: {now} rows, {rows} before"
            );
            rows = now;
        }
        database.retry(|tx| tx.drop_table("t")).unwrap();
        settle(&database);
        let report = database.verify().unwrap();
        assert!(
            report.is_sound() && report.pages.in_use < 20,
            "{:?}",
            report.pages
        );
    }
}

/// What a user does with a database on a full disk.
fn look_and_delete(database: &Database, round: u32) -> vellum::Result<()> {
    let tx = database.begin()?;
    let table = tx.table("t")?;
    let before = rows(&tx, &table).len();
    for n in round * 50..(round + 1) * 50 {
        assert!(tx.delete(&table, &key(n))?, "round {round}, row {n}");
    }
    assert_eq!(tx.count(&table, ..)? as usize + 50, before);
    tx.commit()
}

/// A disk that is full to the last block, with a database on it that is open.
fn full_disk(config: &Config) -> (SimulatedDirectory, Database) {
    let disk = SimulatedDirectory::new();
    let database = Database::open_directory(Arc::new(disk.clone()), config.clone()).unwrap();
    let table = database.retry(|tx| tx.create_table("t")).unwrap();
    disk.set_space_limit(Some(disk.used_space() + (3 << 20)));
    let rows = fill_up(&database, &table, 200, 0);
    assert!(rows > 2_000, "{rows} rows");
    // Whoever else writes to the disk takes what is left.
    disk.set_space_limit(Some(disk.used_space()));
    (disk, database)
}

#[test]
fn regress_recovery_need_not_make_anew_what_was_cut_off_the_file() {
    let config = tiny(4096, 64);
    let disk = SimulatedDirectory::new();
    let database = Database::open_directory(Arc::new(disk.clone()), config.clone()).unwrap();
    for name in ["t", "u"] {
        database.retry(|tx| tx.create_table(name)).unwrap();
    }
    database.retry(|tx| tx.drop_table("u")).unwrap();
    settle(&database);
    let checkpoints = database.statistics().checkpoints;
    assert!(database.truncate().unwrap() > 0);
    assert_eq!(database.statistics().checkpoints, checkpoints + 1);
    // Somebody else takes what the file gave back, and the process is killed.
    disk.set_space_limit(Some(disk.used_space()));
    let disk = disk.process_kill();
    let database = open(&(Arc::new(disk) as Arc<dyn Directory>), &config);
    assert!(database.verify().unwrap().is_sound());
}

#[test]
fn a_database_on_a_full_disk_opens_reads_and_deletes_after_a_close_and_after_crashes() {
    let config = tiny(4096, 64);
    let (mut disk, database) = full_disk(&config);
    look_and_delete(&database, 0).unwrap();
    database.close().unwrap();
    for round in 1..12 {
        let directory: Arc<dyn Directory> = Arc::new(disk.clone());
        let database = Database::open_directory(directory, config.clone())
            .unwrap_or_else(|error| panic!("round {round}: {error}"));
        look_and_delete(&database, round).unwrap();
        // A loser, too.
        let open = database.begin().unwrap();
        let table = open.table("t").unwrap();
        for n in 1_000..1_100 {
            open.delete(&table, &key(n)).unwrap();
        }
        database.sync().unwrap();
        disk = match round % 3 {
            0 => {
                drop(open);
                database.close().unwrap();
                disk
            }
            1 => disk.process_kill(),
            _ => disk.power_cut(round.into(), PowerCut::KINDS[round as usize % 8]),
        };
    }
    let database = open(&(Arc::new(disk.clone()) as Arc<dyn Directory>), &config);
    assert!(database.verify().unwrap().is_sound());
    disk.set_space_limit(None);
    let table = database.begin().unwrap().table("t").unwrap();
    database
        .retry(|tx| (0..100).try_for_each(|n| tx.insert(&table, &key(n), &[1; 200])))
        .unwrap();
}

#[test]
fn a_recovery_on_a_full_disk_that_is_cut_off_anywhere_is_recovered_from() {
    let config = tiny(4096, 64);
    let (disk, database) = full_disk(&config);
    let open = database.begin().unwrap();
    let table = open.table("t").unwrap();
    for n in 0..300 {
        open.delete(&table, &key(n)).unwrap();
    }
    database.sync().unwrap();
    let count = |database: &Database| {
        let tx = database.begin().unwrap();
        tx.count(&tx.table("t").unwrap(), ..).unwrap()
    };
    let expected = open.count(&table, ..).unwrap() + 300;
    let crashed = disk.power_cut(1, PowerCut::CLEAN);
    let calls = {
        let whole = crashed.process_kill();
        drop(Database::open_directory(Arc::new(whole.clone()), config.clone()).unwrap());
        whole.mutating_calls()
    };
    for call in (0..calls).step_by(7) {
        let cut = crashed.process_kill();
        cut.cut_after(call);
        drop(Database::open_directory(
            Arc::new(cut.clone()),
            config.clone(),
        ));
        let after = cut.power_cut(call, PowerCut::KINDS[call as usize % 8]);
        let database = Database::open_directory(Arc::new(after), config.clone())
            .unwrap_or_else(|error| panic!("call {call}: {error}"));
        assert_eq!(count(&database), expected, "call {call}");
    }
}

/// A file system in memory of a fixed size; unmounted when dropped.
struct Mounted(tempfile::TempDir);

impl Mounted {
    /// `None` where this process may not mount.
    fn new(bytes: u64) -> Option<Self> {
        let at = tempfile::tempdir().unwrap();
        let status = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={bytes}"), "tmpfs"])
            .arg(at.path())
            .stderr(std::process::Stdio::null())
            .status();
        status
            .is_ok_and(|status| status.success())
            .then_some(Self(at))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount")
            .arg(self.0.path())
            .status();
    }
}

#[test]
fn a_database_on_a_full_file_system_opens_reads_and_deletes() {
    let Some(mounted) = Mounted::new(8 << 20) else {
        println!("not checked: no file system can be mounted here");
        return;
    };
    let config = tiny(4096, 64);
    let path = mounted.0.path().join("database");
    let database = Database::open(&path, config.clone()).unwrap();
    let table = database.retry(|tx| tx.create_table("t")).unwrap();
    let rows = fill_up(&database, &table, 200, 0);
    assert!(rows > 2_000, "{rows} rows");
    // The last block, and the last byte of it.
    let mut ballast = std::fs::File::create(mounted.0.path().join("ballast")).unwrap();
    for length in [4096, 1] {
        while ballast.write_all(&vec![1; length]).is_ok() {}
    }
    look_and_delete(&database, 0).unwrap();
    database.close().unwrap();
    for round in 1..5 {
        let database = Database::open(&path, config.clone()).unwrap();
        look_and_delete(&database, round).unwrap();
        if round % 2 == 0 {
            database.close().unwrap();
        } else {
            // As a crash leaves it, but for the lock: neither closed nor rolled back.
            let open = database.begin().unwrap();
            open.delete(&open.table("t").unwrap(), &key(1_000)).unwrap();
            database.sync().unwrap();
            let _ = database.close();
        }
    }
    let database = Database::open(&path, config).unwrap();
    assert!(database.verify().unwrap().is_sound());
}
