//! Verification: of an open database, of closed directories sound and damaged, and that it writes nothing.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use vellum::{
    Config, Database, Error, Inspection, KeyDescription, KeyPart, Recovery, Report, Source,
    TransactionOptions, inspect_directory, verify_directory,
};
use vellum_base::random::Random;
use vellum_io::{Directory, PowerCut, SimulatedDirectory};

fn config() -> Config {
    let mut config = Config::default()
        .page_size(4096)
        .pool_bytes(64 * 4096)
        .background_threads(false);
    config.slots_max = 16;
    config.slot_buffer_bytes = 64 << 10;
    config.log_segment_bytes = 256 << 10;
    config.log_bytes_max = 4 << 20;
    config.data_bytes_max = 1 << 30;
    config
}

fn seed(test: &str) -> u64 {
    let given = std::env::var("VELLUM_SEED").ok();
    let seed = given.and_then(|text| text.parse().ok());
    let seed = seed.unwrap_or_else(Random::fresh_seed);
    println!("replay with VELLUM_SEED={seed} cargo test -p vellum --test verify {test}");
    seed
}

fn by_value(start: u32, end: u32, unique: bool) -> KeyDescription {
    let part = KeyPart {
        source: Source::Value,
        start,
        end: Some(end),
    };
    KeyDescription::new(vec![part], unique).unwrap()
}

fn open(directory: &SimulatedDirectory) -> Database {
    Database::open_directory(Arc::new(directory.clone()), config()).unwrap()
}

/// Tables with everything that there is: indexes, large values, deleted rows, a dropped table.
fn fill(database: &Database) {
    database
        .retry(|tx| {
            let people = tx.create_table("people")?;
            for number in 0u32..600 {
                let length = if number % 50 == 0 { 9000 } else { 40 };
                let mut value = vec![number as u8; length];
                value[..4].copy_from_slice(&number.to_be_bytes());
                tx.insert(&people, &number.to_be_bytes(), &value)?;
            }
            tx.create_index(&people, "by_number", by_value(0, 4, true))?;
            tx.create_index(&people, "by_byte", by_value(3, 6, false))?;
            let gone = tx.create_table("gone")?;
            for number in 0u32..300 {
                tx.insert(&gone, &number.to_be_bytes(), &[1; 100])?;
            }
            tx.create_table("empty").map(|_| ())
        })
        .unwrap();
    database
        .retry(|tx| {
            let people = tx.table("people")?;
            for number in (0u32..600).step_by(3) {
                assert!(tx.delete(&people, &number.to_be_bytes())?);
            }
            for number in (1u32..600).step_by(3) {
                tx.update(&people, &number.to_be_bytes(), &[3..6], |value| {
                    value[4] = 99
                })?;
            }
            tx.upsert(&people, &700u32.to_be_bytes(), &[7; 20_000])?;
            tx.drop_table("gone")
        })
        .unwrap();
}

fn assert_sound(report: &Report) {
    assert!(
        report.is_sound() && report.is_complete(),
        "{:#?}",
        report.findings
    );
}

fn assert_filled(report: &Report) {
    assert_sound(report);
    let names: Vec<_> = report
        .tables
        .iter()
        .map(|table| &*table.tree.name)
        .collect();
    assert_eq!(names, ["empty", "people"]);
    let people = &report.tables[1];
    assert_eq!(people.tree.rows, 401);
    // Of 12 large values those of numbers that 3 does not divide are left, and the one that came.
    assert_eq!(people.chains, 9);
    assert_eq!(people.chain_bytes, 8 * 9000 + 20_000);
    let indexes: Vec<_> = people
        .indexes
        .iter()
        .map(|i| (&*i.tree.name, i.tree.rows))
        .collect();
    assert_eq!(indexes, [("by_number", 401), ("by_byte", 401)]);
    assert!(people.indexes[0].unique && !people.indexes[1].unique);
    let pages = report.pages;
    assert_eq!(
        pages.file,
        pages.in_use + pages.temporary + pages.reserved + pages.free
    );
    let trees: u64 = report.system.iter().map(|tree| tree.pages).sum();
    let of_tables: u64 = report
        .tables
        .iter()
        .map(|t| t.tree.pages + t.chain_pages + t.indexes.iter().map(|i| i.tree.pages).sum::<u64>())
        .sum();
    assert_eq!(pages.in_use, trees + of_tables + pages.pending);
}

#[test]
fn open_database_is_sound_while_others_read_and_old_versions_exist() {
    let directory = SimulatedDirectory::new();
    let database = open(&directory);
    let reader = database.begin().unwrap();
    fill(&database);
    let report = database.verify().unwrap();
    assert_filled(&report);
    assert!(report.pages.temporary > 0 && report.pages.pending > 0 && !report.changed_meanwhile);
    drop(reader);
    // Now everything that was dropped goes.
    let report = database.verify().unwrap();
    assert_filled(&report);
    assert_eq!(report.pages.pending, 0);
}

#[test]
fn open_transaction_that_wrote_is_no_damage() {
    let directory = SimulatedDirectory::new();
    let database = open(&directory);
    fill(&database);
    let writer = database.begin().unwrap();
    let people = writer.table("people").unwrap();
    for number in (1u32..600).step_by(3) {
        let mut value = vec![8; 6000];
        value[..4].copy_from_slice(&number.to_be_bytes());
        writer
            .upsert(&people, &number.to_be_bytes(), &value)
            .unwrap();
    }
    writer.drop_index(&people, "by_byte").unwrap();
    let made = writer.create_table("made").unwrap();
    writer.insert(&made, b"key", &[1; 30_000]).unwrap();
    assert_sound(&database.verify().unwrap());
    writer.rollback().unwrap();
    assert_filled(&database.verify().unwrap());
}

#[test]
fn closed_directory_is_sound_and_not_written() {
    let directory = SimulatedDirectory::new();
    let database = open(&directory);
    fill(&database);
    database.close().unwrap();
    let calls = directory.mutating_calls();
    let report = verify_directory(Arc::new(directory.clone())).unwrap();
    assert_filled(&report);
    assert_eq!(report.recovery, Recovery::NotDue);
    let log = report.log.unwrap();
    assert!(log.closed_cleanly && log.rounds == 0 && log.segments > 0 && log.bytes > 0);
    assert_eq!(directory.mutating_calls(), calls, "nothing was written");
    assert_filled(&open(&directory).verify().unwrap());
}

#[test]
fn directory_due_for_recovery_is_judged_by_a_rehearsal_and_not_written() {
    let directory = SimulatedDirectory::new();
    let database = open(&directory);
    fill(&database);
    let open_writer = database.begin().unwrap();
    let people = open_writer.table("people").unwrap();
    for number in 1000u32..1200 {
        open_writer
            .insert(&people, &number.to_be_bytes(), &number.to_be_bytes())
            .unwrap();
    }
    database.sync().unwrap();
    let killed = directory.process_kill();
    let calls = killed.mutating_calls();
    let report = verify_directory(Arc::new(killed.clone())).unwrap();
    assert_filled(&report);
    assert_eq!(report.recovery, Recovery::Rehearsed);
    let log = report.log.unwrap();
    assert!(!log.closed_cleanly && log.rounds > 0 && log.record_bytes > 0);
    assert_eq!(killed.mutating_calls(), calls, "nothing was written");
    // With too little memory it says so instead of guessing.
    let inspection = Inspection::default().memory_bytes(4096);
    let report = inspect_directory(Arc::new(killed.clone()), inspection).unwrap();
    assert_eq!(report.recovery, Recovery::TooLarge);
    assert!(report.is_sound() && !report.is_complete());
    assert_filled(&open(&killed).verify().unwrap());
}

#[test]
fn crash_power_cuts_leave_directories_whose_rehearsal_is_sound() {
    let seed = seed("crash_power_cuts_leave_directories_whose_rehearsal_is_sound");
    let directory = SimulatedDirectory::new();
    let database = open(&directory);
    fill(&database);
    let mut random = Random::new(seed);
    for round in 0u8..8 {
        database
            .retry(|tx| {
                let people = tx.table("people")?;
                for _ in 0..40 {
                    let number = 10_000 + random.below(500) as u32;
                    let mut value = vec![round; random.below(12_000) as usize + 8];
                    value[..4].copy_from_slice(&number.to_be_bytes());
                    tx.upsert(&people, &number.to_be_bytes(), &value)?;
                }
                Ok(())
            })
            .unwrap();
        if round == 4 {
            database.checkpoint().unwrap();
        }
        let kind = PowerCut::KINDS[usize::from(round)];
        let cut = directory.power_cut(random.next_u64(), kind);
        let report = verify_directory(Arc::new(cut)).unwrap();
        assert_sound(&report);
        assert_eq!(report.recovery, Recovery::Rehearsed);
        assert!(
            report.tables[1].tree.rows > 401,
            "seed {seed}, round {round}"
        );
    }
}

#[test]
fn every_damaged_page_in_use_is_named_with_both_checksums() {
    let seed = seed("every_damaged_page_in_use_is_named_with_both_checksums");
    let mut random = Random::new(seed);
    let directory = SimulatedDirectory::new();
    let database = open(&directory);
    fill(&database);
    database.close().unwrap();
    let sound = verify_directory(Arc::new(directory.clone())).unwrap();
    let file = directory
        .open("data", vellum_io::OpenOptions::read_only())
        .unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_at(&mut bytes, 0).unwrap();
    let mut named = 0;
    for page in 0..sound.pages.file {
        let damaged = directory.process_kill();
        let offset = page * 4096 + random.below(4096);
        damaged
            .flip_bit("data", offset, random.below(8) as u8)
            .unwrap();
        let report = match verify_directory(Arc::new(damaged)) {
            Ok(report) => report,
            // The magic of the file itself.
            Err(Error::ForeignFormat { .. }) if page == 0 => continue,
            Err(error) => panic!("seed {seed}, page {page}: {error}"),
        };
        let at_page = report
            .findings
            .iter()
            .find(|f| f.page == Some(page) && f.what == "checksum");
        if let Some(finding) = at_page {
            named += 1;
            assert_ne!(finding.expected, finding.found);
        } else {
            assert!(
                report.is_sound(),
                "seed {seed}, page {page}: {:#?}",
                report.findings
            );
        }
    }
    // All pages in use, the bitmap, and the header if its magic was not hit.
    assert!(
        named > sound.pages.in_use,
        "{named} of {} pages: seed {seed}",
        sound.pages.in_use
    );
}

#[test]
fn damaged_or_missing_files_are_findings_and_foreign_ones_are_errors() {
    let directory = SimulatedDirectory::new();
    let empty: Arc<dyn Directory> = Arc::new(directory.clone());
    let none = verify_directory(empty).unwrap_err();
    assert!(matches!(none, Error::ForeignFormat { .. }), "{none}");
    assert_eq!(directory.mutating_calls(), 0, "nothing was made");
    let database = open(&directory);
    fill(&database);
    let locked = verify_directory(Arc::new(directory.clone())).unwrap_err();
    assert!(matches!(locked, Error::Locked { pid, .. } if pid == std::process::id()));
    database.close().unwrap();

    let control = directory.process_kill();
    control.flip_bit("control", 60, 1).unwrap();
    let report = verify_directory(Arc::new(control)).unwrap();
    assert_eq!(
        (&*report.findings[0].file, &*report.findings[0].what),
        ("control", "checksum")
    );

    let data = directory.process_kill();
    data.remove("data").unwrap();
    let report = verify_directory(Arc::new(data)).unwrap();
    assert_eq!(report.findings[0].what, "the data file is missing");

    let foreign = directory.process_kill();
    foreign.flip_bit("control", 0, 0).unwrap();
    let error = verify_directory(Arc::new(foreign)).unwrap_err();
    assert!(matches!(error, Error::ForeignFormat { .. }), "{error}");

    let log = directory.process_kill();
    for name in log.list("log").unwrap() {
        log.remove(&format!("log/{name}")).unwrap();
    }
    let report = verify_directory(Arc::new(log)).unwrap();
    assert_eq!(report.recovery, Recovery::Failed);
    assert!(!report.is_sound() && !report.is_complete());
}

#[test]
fn recovery_that_meets_a_damaged_page_is_a_finding() {
    let directory = SimulatedDirectory::new();
    let database = open(&directory);
    fill(&database);
    database.checkpoint().unwrap();
    let options = TransactionOptions::default();
    database
        .retry_with(options, |tx| {
            let people = tx.table("people")?;
            tx.upsert(&people, b"later", b"value").map(|_| ())
        })
        .unwrap();
    let sound = verify_directory(Arc::new(directory.process_kill())).unwrap();
    let catalog = sound.system[0].root;
    let killed = directory.process_kill();
    killed.flip_bit("data", catalog * 4096 + 2000, 0).unwrap();
    let report = verify_directory(Arc::new(killed)).unwrap();
    // Either the double-write area still had the page, or the finding names it.
    if !report.is_sound() {
        assert_eq!(report.recovery, Recovery::Failed);
        assert!(
            report
                .findings
                .iter()
                .any(|finding| finding.page == Some(catalog))
        );
    }
}

#[test]
fn regress_work_of_many_leaves_is_collected_to_its_end() {
    let directory = SimulatedDirectory::new();
    let database = open(&directory);
    let rows = 0u32..2000;
    database
        .retry(|tx| {
            let table = tx.create_table("t")?;
            rows.clone()
                .try_for_each(|row| tx.insert(&table, &row.to_be_bytes(), &[1; 20]))
        })
        .unwrap();
    database
        .retry(|tx| {
            let table = tx.table("t")?;
            rows.clone()
                .try_for_each(|row| tx.delete(&table, &row.to_be_bytes()).map(|_| ()))
        })
        .unwrap();
    let report = database.verify().unwrap();
    assert_sound(&report);
    assert_eq!(
        (report.tables[0].tree.rows, report.tables[0].tree.tombstones),
        (0, 0)
    );
}

struct StopAtEnd<'s>(&'s AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn findings_while_others_write_come_with_a_warning() {
    let directory = SimulatedDirectory::new();
    let database = open(&directory);
    fill(&database);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..2u64 {
            let (database, stop) = (&database, &stop);
            scope.spawn(move || {
                let mut random = Random::new(thread);
                while !stop.load(Ordering::Relaxed) {
                    let number = 20_000 + thread as u32 * 1000 + random.below(300) as u32;
                    let mut value = vec![1; 8 + random.below(3000) as usize];
                    value[..4].copy_from_slice(&number.to_be_bytes());
                    database
                        .retry(|tx| {
                            let people = tx.table("people")?;
                            match random.chance(1, 3) {
                                true => tx.delete(&people, &number.to_be_bytes()).map(|_| ()),
                                false => tx
                                    .upsert(&people, &number.to_be_bytes(), &value)
                                    .map(|_| ()),
                            }
                        })
                        .unwrap();
                }
            });
        }
        // Also where an assertion fails: else the writers would go on.
        let _stop = StopAtEnd(&stop);
        let (mut tries, mut changed) = (0, 0);
        while tries < 12 || changed == 0 {
            tries += 1;
            let report = database.verify().unwrap();
            assert!(
                report.is_sound() || report.changed_meanwhile,
                "{:#?}",
                report.findings
            );
            changed += u32::from(report.changed_meanwhile);
        }
    });
    let report = database.verify().unwrap();
    assert_sound(&report);
    assert!(!report.changed_meanwhile);
}
