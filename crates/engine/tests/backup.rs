//! Backups: consistent while everything goes on, no database before they are whole, harmless where they fail.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use vellum::{
    Config, Database, Durability, Error, Recovery, Report, Table, Transaction, TransactionOptions,
    verify_directory,
};
use vellum_base::random::Random;
use vellum_io::{Directory, MemoryDirectory, PowerCut, SimulatedDirectory};

const ACCOUNTS: u32 = 400;
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
    config.log_bytes_max = 2 << 20;
    config.checkpoint_log_bytes = 512 << 10;
    config.data_bytes_max = 1 << 30;
    config
}

fn seed(test: &str) -> u64 {
    let given = std::env::var("VELLUM_SEED").ok();
    let seed = given.and_then(|text| text.parse().ok());
    let seed = seed.unwrap_or_else(Random::fresh_seed);
    println!("replay with VELLUM_SEED={seed} cargo test -p vellum --test backup {test}");
    seed
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
fn backup_has_what_was_committed_before_and_nothing_of_open_transactions() {
    let database = open(Arc::new(MemoryDirectory::new()), config());
    let bank = make_bank(&database);
    let asynchronous = TransactionOptions::default().durability(Durability::Async);
    database
        .retry_with(asynchronous, |tx| tx.insert(&bank, b"last", &[0; 8]))
        .unwrap();
    let writer = database.begin().unwrap();
    for account in 0..ACCOUNTS / 4 {
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
        for copy in &copies {
            // Each copy comes after more writing than the log holds.
            let before = database.statistics().log_bytes_written;
            while database.statistics().log_bytes_written < before + config.log_bytes_max {
                std::thread::yield_now();
            }
            database.backup_to(copy.clone()).unwrap();
        }
        stop.store(true, Ordering::Relaxed);
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
    assert!(matches!(itself, Error::Locked { .. }), "{itself}");
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
    for percent in [0, 3, 50, 99] {
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

#[test]
fn crash_interrupted_backup_is_no_database_and_a_finished_one_is() {
    let seed = seed("crash_interrupted_backup_is_no_database_and_a_finished_one_is");
    let database = open(Arc::new(MemoryDirectory::new()), config());
    make_bank(&database);
    let probe = SimulatedDirectory::new();
    database.backup_to(Arc::new(probe.clone())).unwrap();
    let calls = probe.mutating_calls();
    for call in 0..=calls + 1 {
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
    let probe = SimulatedDirectory::new();
    database.backup_to(Arc::new(probe.clone())).unwrap();
    for call in 0..probe.mutating_calls() {
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
