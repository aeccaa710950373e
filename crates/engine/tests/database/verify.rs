//! Verification: of an open database, of closed directories sound and damaged, and that it writes nothing.

use crate::support::seed;
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
    let missing = directory.process_kill();
    missing.remove("data").unwrap();
    let error = Database::open_directory(Arc::new(missing), config()).map(drop);
    assert!(matches!(error, Err(Error::Corruption { .. })), "{error:?}");

    let short = directory.process_kill();
    let file = short.open("data", vellum_io::OpenOptions::existing());
    file.unwrap().set_len(100).unwrap();
    let report = verify_directory(Arc::new(short)).unwrap();
    assert_eq!(report.findings[0].what, "length of the file");

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

/// Bytes of a page that are not what they can be; the checksum is right.
struct Forged {
    kind: u8,
    bytes: fn(&mut [u8]),
    what: &'static str,
}

const INNER: u8 = 3;
const LEAF: u8 = 4;
const OVERFLOW: u8 = 5;
const BITMAP: u8 = 2;
const FILE_HEADER: u8 = 1;

/// More than any log of a test has.
const GSN_FAR_AWAY: u64 = 1 << 40;

fn set_gsn(page: &mut [u8], gsn: u64) {
    page[8..16].copy_from_slice(&gsn.to_le_bytes());
}

fn set_heap(page: &mut [u8], heap: u16) {
    page[28..30].copy_from_slice(&heap.to_le_bytes());
}

fn forgeries() -> Vec<Forged> {
    let mut all = Vec::new();
    let mut add = |kinds: &[u8], what, bytes| {
        let of = |kind: &u8| Forged {
            kind: *kind,
            bytes,
            what,
        };
        all.extend(kinds.iter().map(of));
    };
    let pages = [INNER, LEAF, OVERFLOW, BITMAP];
    add(&pages, "bytes 6 and 7 of a page", |page| page[6] = 1);
    add(&pages, "bytes 6 and 7 of a page", |page| page[7] = 0x80);
    let flags = "flags of a page that have no meaning";
    add(&pages, flags, |page| page[5] |= 8);
    add(&pages, flags, |page| page[5] |= 0x80);
    add(&[INNER, OVERFLOW, BITMAP], flags, |page| page[5] |= 4);
    let newer = "gsn of a page that is newer than the log";
    add(&pages, newer, |page| set_gsn(page, u64::MAX));
    add(&pages, newer, |page| set_gsn(page, GSN_FAR_AWAY));
    add(&[BITMAP], "tree of an allocation bitmap", |page| {
        page[16] = 1
    });
    let unused = "bytes 24 to 64 of an allocation bitmap";
    add(&[BITMAP], unused, |page| page[24] = 1);
    add(&[BITMAP], unused, |page| page[63] = 1);
    add(&[LEAF], "bytes 40 to 48 of a leaf", |page| page[40] = 1);
    add(&[LEAF], "bytes 40 to 48 of a leaf", |page| page[47] = 1);
    let nodes = [INNER, LEAF];
    add(&nodes, "slots below the heap", |page| set_heap(page, 0));
    add(&nodes, "heap inside the page", |page| set_heap(page, 4097));
    add(&nodes, "heap inside the page", |page| {
        set_heap(page, u16::MAX)
    });
    add(&[LEAF], "record inside the heap", |page| {
        set_heap(page, 4090)
    });
    let header = "bytes 5 to 24, and from 44 on, of the file header";
    add(&[FILE_HEADER], header, |page| page[5] = 1);
    add(&[FILE_HEADER], header, |page| set_gsn(page, 1));
    add(&[FILE_HEADER], header, |page| page[4095] = 1);
    all
}

/// The pages of the data file, which are small, by number.
fn pages(directory: &SimulatedDirectory) -> Vec<Vec<u8>> {
    let file = directory
        .open("data", vellum_io::OpenOptions::read_only())
        .unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_at(&mut bytes, 0).unwrap();
    bytes.chunks(4096).map(<[u8]>::to_vec).collect()
}

/// A copy of the directory in which a page was changed, and its checksum made right again.
fn forge(directory: &SimulatedDirectory, page: usize, change: fn(&mut [u8])) -> SimulatedDirectory {
    let forged = directory.process_kill();
    let mut bytes = pages(directory).swap_remove(page);
    change(&mut bytes);
    let id = vellum_base::PageId(page as u64);
    let sum = vellum_buffer::page::page_checksum(id, &bytes);
    bytes[..4].copy_from_slice(&sum.to_le_bytes());
    let file = forged
        .open("data", vellum_io::OpenOptions::existing())
        .unwrap();
    file.write_at(&bytes, page as u64 * 4096).unwrap();
    forged
}

/// Reads and writes everywhere: errors may come, panics must not.
fn use_all(directory: &SimulatedDirectory) -> vellum::Result<()> {
    let database = Database::open_directory(Arc::new(directory.clone()), config())?;
    database.retry(|tx| {
        let people = tx.table("people")?;
        let mut cursor = tx.cursor(&people, ..)?;
        while cursor.next()?.is_some() {}
        for number in 0u32..800 {
            let mut value = vec![1; if number % 40 == 0 { 9000 } else { 60 }];
            value[..4].copy_from_slice(&number.to_be_bytes());
            tx.upsert(&people, &number.to_be_bytes(), &value)?;
        }
        tx.create_table("another").map(drop)
    })?;
    database.verify()?;
    database.close()
}

/// One page of the kind that is in use, as a walk finds it: the root of a table, if that is of the kind.
fn page_of_kind(directory: &SimulatedDirectory, kind: u8, report: &Report) -> usize {
    let pages = pages(directory);
    let root = report.tables.last().unwrap().tree.root;
    let is_wanted = |page: &usize| {
        let bytes = &pages[*page];
        bytes[4] == kind
            && match kind {
                INNER => *page as u64 == root,
                LEAF => bytes[16..24] == root.to_le_bytes(),
                _ => true,
            }
    };
    (0..pages.len()).rfind(is_wanted).unwrap()
}

#[test]
fn pages_with_fixed_fields_that_are_otherwise_are_findings_and_panic_nobody() {
    let directory = SimulatedDirectory::new();
    let database = open(&directory);
    fill(&database);
    database.close().unwrap();
    let sound = verify_directory(Arc::new(directory.clone())).unwrap();
    assert_filled(&sound);
    for forgery in forgeries() {
        let page = page_of_kind(&directory, forgery.kind, &sound);
        let forged = forge(&directory, page, forgery.bytes);
        let report = verify_directory(Arc::new(forged.clone())).unwrap();
        let named = report
            .findings
            .iter()
            .any(|f| f.page == Some(page as u64) && f.what == forgery.what);
        let shown = format!("{}, a page of kind {}", forgery.what, forgery.kind);
        assert!(named, "{shown}: {:#?}", report.findings);
        let used = use_all(&forged);
        assert!(
            matches!(used, Err(Error::Corruption { .. })),
            "{shown}: {used:?}"
        );
    }
}

#[test]
fn page_that_is_newer_than_the_log_is_a_finding_also_where_a_recovery_is_due() {
    let directory = SimulatedDirectory::new();
    let database = open(&directory);
    fill(&database);
    database.checkpoint().unwrap();
    let later = |tx: &vellum::Transaction| tx.create_table("later").map(drop);
    database.retry(later).unwrap();
    database.sync().unwrap();
    let killed = directory.process_kill();
    let sound = verify_directory(Arc::new(killed.clone())).unwrap();
    assert_eq!(sound.recovery, Recovery::Rehearsed);
    let page = page_of_kind(&killed, LEAF, &sound);
    let forged = forge(&killed, page, |page| set_gsn(page, GSN_FAR_AWAY));
    let report = verify_directory(Arc::new(forged.clone())).unwrap();
    let newer = "gsn of a page that is newer than the log";
    assert!(
        report
            .findings
            .iter()
            .any(|f| f.page == Some(page as u64) && f.what == newer),
        "{:#?}",
        report.findings
    );
    assert!(use_all(&forged).is_err());
}
