//! Backups: consistent while everything goes on, no database before they are whole, harmless where they fail.

use crate::support::seed;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use vellum::{
    Config, Database, Durability, Error, Recovery, Report, Table, Transaction, TransactionOptions,
    verify_directory,
};
use vellum_base::StorageError;
use vellum_base::random::Random;
use vellum_io::{
    Directory, Entry, File, LockGuard, MemoryDirectory, OpenOptions, PowerCut, SimulatedDirectory,
};

const ACCOUNTS: u32 = 2000;
const BALANCE: u64 = 1000;

/// A tiny pool and a tiny log.
fn config() -> Config {
    let mut config = Config::default()
        .page_size(4096)
        .pool_bytes(48 * 4096)
        .background_threads(false);
    config.slots_max = 16;
    config.slot_buffer_bytes = 64 << 10;
    config.log_segment_bytes = 256 << 10;
    config.log_bytes_max = 4 << 20;
    config.checkpoint_log_bytes = 512 << 10;
    config.data_bytes_max = 1 << 30;
    config
}

fn open(directory: Arc<dyn Directory>, config: Config) -> Database {
    Database::open_directory(directory, config).unwrap()
}

/// Accounts of equal balance, with some bytes around it so that they fill more than the pool.
fn make_bank(database: &Database) -> Table {
    database
        .retry(|tx| {
            let bank = tx.create_table("bank")?;
            for account in 0..ACCOUNTS {
                let mut value = vec![account as u8; 800];
                value[..8].copy_from_slice(&BALANCE.to_le_bytes());
                tx.insert(&bank, &account.to_be_bytes(), &value)?;
            }
            Ok(bank)
        })
        .unwrap()
}

fn balance(value: &[u8]) -> u64 {
    u64::from_le_bytes(*value.first_chunk().unwrap())
}

/// Moves money between two accounts, and writes a large value now and then.
fn transfer(tx: &Transaction, bank: &Table, random: &mut Random) -> vellum::Result<()> {
    let (from, to) = (
        random.below(ACCOUNTS.into()) as u32,
        random.below(ACCOUNTS.into()) as u32,
    );
    let amount = random.below(20);
    let rich = tx.get(bank, &from.to_be_bytes(), |value| balance(value) >= amount)?;
    if rich != Some(true) {
        return Ok(());
    }
    let add = |key: u32, amount: u64, add: bool| {
        tx.update(bank, &key.to_be_bytes(), &[0..8], |value| {
            let old = balance(value);
            let new = if add { old + amount } else { old - amount };
            value[..8].copy_from_slice(&new.to_le_bytes());
        })
    };
    add(from, amount, false)?;
    add(to, amount, true)?;
    if random.chance(1, 16) {
        let key = 100_000 + random.below(40) as u32;
        let value = [
            &0u64.to_le_bytes()[..],
            &vec![1; random.below(9000) as usize],
        ]
        .concat();
        tx.upsert(bank, &key.to_be_bytes(), &value)?;
    }
    Ok(())
}

fn assert_bank(database: &Database) {
    let tx = database.begin().unwrap();
    let bank = tx.table("bank").unwrap();
    let (mut sum, mut cursor) = (0, tx.cursor(&bank, ..).unwrap());
    while let Some((_, value)) = cursor.next().unwrap() {
        sum += balance(value);
    }
    assert_eq!(
        sum,
        u64::from(ACCOUNTS) * BALANCE,
        "money is neither made nor lost"
    );
}

fn assert_sound(report: &Report) {
    assert!(
        report.is_sound() && report.is_complete(),
        "{:#?}",
        report.findings
    );
}

/// Checks a backup as a directory, and as a database after its recovery.
fn assert_good_copy(copy: Arc<dyn Directory>, config: Config) -> Database {
    let report = verify_directory(copy.clone()).unwrap();
    assert_sound(&report);
    assert_eq!(report.recovery, Recovery::Rehearsed);
    let database = open(copy, config);
    assert_bank(&database);
    assert_sound(&database.verify().unwrap());
    database
}

#[test]
fn regress_open_transaction_larger_than_the_log_is_undone_in_the_copy() {
    let mut config = config();
    config.log_bytes_max = 2 << 20;
    let database = open(Arc::new(MemoryDirectory::new()), config.clone());
    let bank = make_bank(&database);
    let writer = database.begin().unwrap();
    for account in 0..400u32 {
        writer
            .upsert(&bank, &account.to_be_bytes(), &[0; 3000])
            .unwrap();
    }
    let copy = Arc::new(MemoryDirectory::new());
    database.backup_to(copy.clone()).unwrap();
    assert_good_copy(copy, config);
    writer.rollback().unwrap();
    assert_bank(&database);
}

#[test]
fn backup_has_what_was_committed_before_and_nothing_of_open_transactions() {
    let database = open(Arc::new(MemoryDirectory::new()), config());
    let bank = make_bank(&database);
    let asynchronous = TransactionOptions::default().durability(Durability::Async);
    database
        .retry_with(asynchronous, |tx| tx.insert(&bank, b"last", &[0; 8]))
        .unwrap();
    let writer = database.begin().unwrap();
    for account in 0..100u32 {
        writer
            .upsert(&bank, &account.to_be_bytes(), &[0; 3000])
            .unwrap();
    }
    let copy = Arc::new(MemoryDirectory::new());
    database.backup_to(copy.clone()).unwrap();
    writer.commit().unwrap();
    let restored = assert_good_copy(copy, config());
    let tx = restored.begin().unwrap();
    let bank = tx.table("bank").unwrap();
    assert_eq!(tx.count(&bank, ..).unwrap(), u64::from(ACCOUNTS) + 1);
}

struct StopAtEnd<'s>(&'s AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Backups while `threads` writers go on and one transaction stays open all the time.
fn back_up_under_load(test: &str, config: &Config, source: Arc<dyn Directory>, threads: u64) {
    let seed = seed(test);
    let database = open(source, config.clone());
    let bank = make_bank(&database);
    let sleeper = database.begin().unwrap();
    sleeper
        .update(&bank, &0u32.to_be_bytes(), &[700..701], |value| {
            value[700] = 255
        })
        .unwrap();
    let (stop, done) = (AtomicBool::new(false), AtomicU64::new(0));
    let copies: Vec<Arc<MemoryDirectory>> = (0..3).map(|_| Arc::default()).collect();
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (database, bank, stop, done) = (&database, &bank, &stop, &done);
            scope.spawn(move || {
                let mut random = Random::new(seed ^ thread);
                let options = TransactionOptions::default().durability(Durability::Async);
                while !stop.load(Ordering::Relaxed) {
                    database
                        .retry_with(options, |tx| transfer(tx, bank, &mut random))
                        .unwrap();
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        // Also where something fails: else the writers would go on.
        let _stop = StopAtEnd(&stop);
        for copy in &copies {
            // Each copy comes after more writing than the log holds.
            let before = database.statistics().log_bytes_written;
            while database.statistics().log_bytes_written < before + config.log_bytes_max {
                std::thread::yield_now();
            }
            database.backup_to(copy.clone()).unwrap();
        }
    });
    assert!(done.load(Ordering::Relaxed) > 0);
    sleeper.rollback().unwrap();
    assert_bank(&database);
    assert_sound(&database.verify().unwrap());
    for copy in copies {
        assert_good_copy(copy, config.clone());
    }
}

#[test]
fn backups_under_load_are_consistent_with_a_tiny_pool_and_a_tiny_log() {
    let test = "backups_under_load_are_consistent_with_a_tiny_pool_and_a_tiny_log";
    back_up_under_load(test, &config(), Arc::new(MemoryDirectory::new()), 2);
}

#[test]
fn backups_under_load_are_consistent_beside_background_threads() {
    let test = "backups_under_load_are_consistent_beside_background_threads";
    let config = config().background_threads(true);
    back_up_under_load(test, &config, Arc::new(MemoryDirectory::new()), 2);
}

#[test]
fn backup_of_a_backup_is_the_same_database() {
    let database = open(Arc::new(MemoryDirectory::new()), config());
    make_bank(&database);
    let mut random = Random::new(5);
    let bank = database.begin().unwrap().table("bank").unwrap();
    for _ in 0..200 {
        database
            .retry(|tx| transfer(tx, &bank, &mut random))
            .unwrap();
    }
    let rows = |database: &Database| {
        let tx = database.begin().unwrap();
        let bank = tx.table("bank").unwrap();
        let (mut rows, mut cursor) = (Vec::new(), tx.cursor(&bank, ..).unwrap());
        while let Some((key, value)) = cursor.next().unwrap() {
            rows.push((key.to_vec(), value.to_vec()));
        }
        rows
    };
    let (first, second) = (
        Arc::new(MemoryDirectory::new()),
        Arc::new(MemoryDirectory::new()),
    );
    database.backup_to(first.clone()).unwrap();
    let copied = assert_good_copy(first, config());
    copied.backup_to(second.clone()).unwrap();
    let again = assert_good_copy(second, config());
    assert!(rows(&again) == rows(&database));
}

#[test]
fn backup_to_a_path_opens_like_any_database() {
    let folder = tempfile::tempdir().unwrap();
    let (source, target) = (folder.path().join("source"), folder.path().join("target"));
    let database = Database::open(&source, config()).unwrap();
    make_bank(&database);
    database.backup(&target).unwrap();
    let again = database.backup(&target).unwrap_err();
    assert!(matches!(again, Error::ForeignFormat { .. }), "{again}");
    let itself = database.backup(&source).unwrap_err();
    assert!(matches!(itself, Error::InvalidArgument { .. }), "{itself}");
    let copy = Database::open(&target, config()).unwrap();
    assert_bank(&copy);
    copy.close().unwrap();
    assert_bank(&database);
}

#[test]
fn target_that_runs_full_fails_the_backup_and_nothing_else() {
    let source = SimulatedDirectory::new();
    let database = open(Arc::new(source.clone()), config());
    let bank = make_bank(&database);
    let target = SimulatedDirectory::new();
    let whole = {
        let target = SimulatedDirectory::new();
        database.backup_to(Arc::new(target.clone())).unwrap();
        target.used_space()
    };
    for percent in [0, 3, 50, 80] {
        target.set_space_limit(Some(whole * percent / 100));
        let error = database.backup_to(Arc::new(target.clone())).unwrap_err();
        let Error::OutOfSpace { file } = error else {
            panic!("{error}")
        };
        assert!(file.starts_with("backup target"), "{file}");
        assert!(!target.exists("control").unwrap() && !target.exists("data").unwrap());
        // The source goes on, beyond what its log holds.
        let mut random = Random::new(percent);
        let before = database.statistics().log_bytes_written;
        while database.statistics().log_bytes_written < before + config().log_bytes_max {
            database
                .retry(|tx| transfer(tx, &bank, &mut random))
                .unwrap();
        }
    }
    assert_bank(&database);
    assert_sound(&database.verify().unwrap());
}

/// Mutating calls of a backup of a database that rests.
fn calls_of_a_backup(database: &Database) -> u64 {
    // The second: the first one's checkpoint may have found more log.
    let probes = [SimulatedDirectory::new(), SimulatedDirectory::new()];
    for probe in &probes {
        database.backup_to(Arc::new(probe.clone())).unwrap();
    }
    probes[1].mutating_calls()
}

#[test]
fn crash_interrupted_backup_is_no_database_and_a_finished_one_is() {
    let seed = seed("crash_interrupted_backup_is_no_database_and_a_finished_one_is");
    let database = open(Arc::new(MemoryDirectory::new()), config());
    make_bank(&database);
    for call in 0..=calls_of_a_backup(&database) + 1 {
        let target = SimulatedDirectory::new();
        target.cut_after(call);
        let result = database.backup_to(Arc::new(target.clone()));
        let kind = PowerCut::KINDS[call as usize % PowerCut::KINDS.len()];
        let after = target.power_cut(seed ^ call, kind);
        match after.exists("control").unwrap() {
            true => drop(assert_good_copy(Arc::new(after), config())),
            false => {
                assert!(
                    result.is_err(),
                    "seed {seed}: a backup that returned is there"
                );
                let error = verify_directory(Arc::new(after)).unwrap_err();
                assert!(matches!(error, Error::ForeignFormat { .. }), "{error}");
            }
        }
    }
}

#[test]
fn target_that_fails_any_call_fails_the_backup_and_nothing_else() {
    let database = open(Arc::new(MemoryDirectory::new()), config());
    make_bank(&database);
    for call in 0..calls_of_a_backup(&database) {
        let target = SimulatedDirectory::new();
        target.cut_after(call);
        database.backup_to(Arc::new(target)).unwrap_err();
    }
    assert_bank(&database);
    let good = Arc::new(MemoryDirectory::new());
    database.backup_to(good.clone()).unwrap();
    assert_good_copy(good, config());
}

#[test]
fn damaged_page_of_the_source_fails_the_backup() {
    let source = SimulatedDirectory::new();
    let database = open(Arc::new(source.clone()), config());
    make_bank(&database);
    database.close().unwrap();
    let root = verify_directory(Arc::new(source.clone())).unwrap().tables[0]
        .tree
        .root;
    source.flip_bit("data", root * 4096 + 1000, 3).unwrap();
    let database = open(Arc::new(source), config());
    let target = Arc::new(MemoryDirectory::new());
    let error = database.backup_to(target.clone()).unwrap_err();
    assert!(matches!(error, Error::Corruption { page: Some(page), .. } if page.get() == root));
    assert!(!target.exists("control").unwrap());
}

/// A target that lets something happen to the source before each write of pages.
struct Interrupted {
    inner: MemoryDirectory,
    event: Arc<dyn Fn() + Send + Sync>,
}

struct InterruptedFile {
    inner: Arc<dyn File>,
    event: Arc<dyn Fn() + Send + Sync>,
}

impl std::fmt::Debug for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Interrupted")
    }
}

impl std::fmt::Debug for InterruptedFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("InterruptedFile")
    }
}

impl Directory for Interrupted {
    fn open(&self, name: &str, options: OpenOptions) -> Result<Arc<dyn File>, StorageError> {
        let inner = self.inner.open(name, options)?;
        if name != "data" {
            return Ok(inner);
        }
        Ok(Arc::new(InterruptedFile {
            inner,
            event: self.event.clone(),
        }))
    }
    fn exists(&self, name: &str) -> Result<bool, StorageError> {
        self.inner.exists(name)
    }
    fn list(&self, subdir: &str) -> Result<Vec<String>, StorageError> {
        self.inner.list(subdir)
    }
    fn entries(&self, subdir: &str) -> Result<Vec<Entry>, StorageError> {
        self.inner.entries(subdir)
    }
    fn create_dir(&self, name: &str) -> Result<(), StorageError> {
        self.inner.create_dir(name)
    }
    fn remove(&self, name: &str) -> Result<(), StorageError> {
        self.inner.remove(name)
    }
    fn rename(&self, from: &str, to: &str) -> Result<(), StorageError> {
        self.inner.rename(from, to)
    }
    fn sync_dir(&self, subdir: &str) -> Result<(), StorageError> {
        self.inner.sync_dir(subdir)
    }
    fn try_lock(&self) -> Result<LockGuard, StorageError> {
        self.inner.try_lock()
    }
    fn try_lock_shared(&self) -> Result<LockGuard, StorageError> {
        self.inner.try_lock_shared()
    }
    fn poisoned(&self) -> bool {
        false
    }
}

impl File for InterruptedFile {
    fn name(&self) -> &Arc<str> {
        self.inner.name()
    }
    fn read_at(&self, out: &mut [u8], offset: u64) -> Result<(), StorageError> {
        self.inner.read_at(out, offset)
    }
    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), StorageError> {
        (self.event)();
        self.inner.write_at(bytes, offset)
    }
    fn sync_data(&self) -> Result<(), StorageError> {
        self.inner.sync_data()
    }
    fn len(&self) -> Result<u64, StorageError> {
        self.inner.len()
    }
    fn set_len(&self, length: u64) -> Result<(), StorageError> {
        self.inner.set_len(length)
    }
    fn allocate(&self, offset: u64, length: u64) -> Result<(), StorageError> {
        self.inner.allocate(offset, length)
    }
}

/// A backup during which `event` happens in the source before each write of pages.
fn back_up_with(database: &Database, event: impl Fn() + Send + Sync + 'static) -> MemoryDirectory {
    let inner = MemoryDirectory::new();
    let target = Interrupted {
        inner: inner.clone(),
        event: Arc::new(event),
    };
    database.backup_to(Arc::new(target)).unwrap();
    inner
}

#[test]
fn log_that_is_used_up_during_a_backup_is_copied_before_it_is_released() {
    let test = "log_that_is_used_up_during_a_backup_is_copied_before_it_is_released";
    let random = Mutex::new(Random::new(seed(test)));
    let database = open(Arc::new(MemoryDirectory::new()), config());
    let bank = make_bank(&database);
    let source = database.clone();
    let copy = back_up_with(&database, move || {
        // Twice what the log holds, so that every segment is used again: nobody may wait for the backup.
        let before = source.statistics().log_bytes_written;
        while source.statistics().log_bytes_written < before + 2 * config().log_bytes_max {
            source
                .retry(|tx| transfer(tx, &bank, &mut random.lock().unwrap()))
                .unwrap();
        }
    });
    assert!(
        copy.list("log").unwrap().len() > 8,
        "more segments than the source may have"
    );
    assert_good_copy(Arc::new(copy), config());
    assert_bank(&database);
}

#[test]
fn changes_that_are_only_in_memory_when_their_page_is_copied_are_in_the_copied_log() {
    let test = "changes_that_are_only_in_memory_when_their_page_is_copied_are_in_the_copied_log";
    let random = Mutex::new(Random::new(seed(test)));
    let database = open(
        Arc::new(MemoryDirectory::new()),
        config().pool_bytes(16 << 20),
    );
    let bank = make_bank(&database);
    let source = database.clone();
    let copy = back_up_with(&database, move || {
        let options = TransactionOptions::default().durability(Durability::Async);
        for _ in 0..60 {
            let work = |tx: &Transaction| transfer(tx, &bank, &mut random.lock().unwrap());
            source.retry_with(options, work).unwrap();
        }
    });
    assert_good_copy(Arc::new(copy), config());
}

#[test]
fn tables_made_dropped_and_the_file_cut_during_a_backup_leave_a_sound_copy() {
    let database = open(Arc::new(MemoryDirectory::new()), config());
    make_bank(&database);
    let fill = |database: &Database, name: &str| {
        database
            .retry(|tx| {
                let table = tx.create_table(name)?;
                (0u32..200).try_for_each(|row| {
                    let length = if row % 20 == 0 { 1200 } else { 500 };
                    tx.insert(&table, &row.to_be_bytes(), &vec![1; length])
                })
            })
            .unwrap();
    };
    fill(&database, "old");
    let (source, calls) = (database.clone(), AtomicU64::new(0));
    let copy = back_up_with(&database, move || {
        let call = calls.fetch_add(1, Ordering::Relaxed);
        fill(&source, &format!("new {call}"));
        let gone = if call == 0 {
            "old".to_owned()
        } else {
            format!("new {}", call - 1)
        };
        source.retry(|tx| tx.drop_table(&gone)).unwrap();
        while source.step().unwrap() {}
        source.truncate().unwrap();
    });
    let restored = assert_good_copy(Arc::new(copy), config());
    assert_eq!(restored.begin().unwrap().tables().unwrap().len(), 2);
}

#[test]
fn undo_that_is_carried_forward_during_a_backup_is_in_the_copy() {
    let mut config = config();
    config.log_bytes_max = 2 << 20;
    let database = open(Arc::new(MemoryDirectory::new()), config.clone());
    let bank = make_bank(&database);
    let writer = Arc::new(Mutex::new(Some(database.begin().unwrap())));
    let (theirs, calls, source) = (writer.clone(), AtomicU64::new(0), database.clone());
    let copy = back_up_with(&database, move || {
        // A fifth of the log each time; the first calls are before the log is pinned.
        let from = calls.fetch_add(1, Ordering::Relaxed) as u32 * 400;
        let writer = theirs.lock().unwrap();
        for n in from..from + 400 {
            let account = (n % ACCOUNTS).to_be_bytes();
            let written = writer.as_ref().unwrap().upsert(&bank, &account, &[0; 500]);
            assert!(written.unwrap());
        }
        source.checkpoint().unwrap();
    });
    assert_good_copy(Arc::new(copy), config);
    let writer = writer.lock().unwrap().take().unwrap();
    writer.rollback().unwrap();
    assert_bank(&database);
}

#[test]
fn rows_that_are_loaded_during_a_backup_are_in_the_copy() {
    let database = open(Arc::new(MemoryDirectory::new()), config());
    make_bank(&database);
    let row = |number: u32| (number.to_be_bytes(), vec![number as u8; 300]);
    let begun = database
        .retry(|tx| tx.create_table("begun before"))
        .unwrap();
    let loader = database.begin().unwrap();
    assert!(loader.begin_load(&begun).unwrap());
    let give = move |loader: &Transaction, rows: std::ops::Range<u32>| {
        for (key, value) in rows.map(row) {
            assert!(loader.load_row(&key, &value).unwrap());
        }
    };
    give(&loader, 0..3000);
    let loader = Mutex::new(Some(loader));
    let (source, calls) = (database.clone(), AtomicU64::new(0));
    let copy = back_up_with(&database, move || {
        let call = calls.fetch_add(1, Ordering::Relaxed) as u32;
        let mut loader = loader.lock().unwrap();
        if let Some(open) = loader.take_if(|_| call == 3) {
            assert_eq!(open.end_load().unwrap(), 3300);
            open.commit().unwrap();
        }
        if let Some(open) = &*loader {
            give(open, 3000 + call * 100..3100 + call * 100);
        }
        let load = |tx: &Transaction| {
            let table = tx.create_table(&format!("loaded {call}"))?;
            let mut rows = (0..1000).map(row);
            tx.bulk_load(&table, |key, value| {
                let Some(next) = rows.next() else {
                    return false;
                };
                key.extend_from_slice(&next.0);
                value.extend_from_slice(&next.1);
                true
            })
        };
        assert_eq!(source.retry(load).unwrap(), 1000);
    });
    let restored = assert_good_copy(Arc::new(copy), config());
    let (copied, source) = (restored.begin().unwrap(), database.begin().unwrap());
    let names = |tx: &Transaction| {
        let mut names = tx.tables().unwrap();
        names.sort();
        names
    };
    let all = names(&source);
    assert!(all.len() > 5, "{all:?}");
    assert_eq!(names(&copied), all);
    for name in all {
        let rows = |tx: &Transaction| {
            let table = tx.table(&name).unwrap();
            let mut rows = Vec::new();
            let mut cursor = tx.cursor(&table, ..).unwrap();
            while let Some((key, value)) = cursor.next().unwrap() {
                rows.push((key.to_vec(), value.to_vec()));
            }
            rows
        };
        assert!(rows(&copied) == rows(&source), "{name}");
    }
}
