//! The kept inputs are real: what commits before this one wrote is still read.
//!
//! `VELLUM_WRITE_CORPUS=1 cargo test -p vellum-fuzz --test kept` writes them anew, when the format changes.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use vellum::Database;
use vellum_base::random::Random;
use vellum_btree::record::KINDS;
use vellum_buffer::page::kind;
use vellum_fuzz::corpus::{self, replace, segments};
use vellum_fuzz::kept::{self, DATABASE};
use vellum_fuzz::kinds;
use vellum_fuzz::targets::all;
use vellum_io::Directory;
use vellum_model::run::{ends, first_seed, rounds};
use vellum_txn::TransactionRecord;

/// Bytes of a file in which something stands, or nothing.
const SECTOR: usize = 512;
/// Bytes of all files together, at most.
const BYTES_MAX: u64 = 500 << 10;

#[test]
fn kept_inputs_are_known_to_their_decoders_and_the_kept_database_shows_its_rows() {
    if std::env::var_os("VELLUM_WRITE_CORPUS").is_some() {
        kept::write_all().expect("the inputs are made");
    }
    let anew = "another format? VELLUM_WRITE_CORPUS=1 cargo test -p vellum-fuzz --test kept";
    for target in all() {
        let inputs = kept::read(target.name)
            .unwrap_or_else(|error| panic!("{}: {error}; {anew}", target.name));
        assert!(!inputs.is_empty(), "{}: none is kept", target.name);
        let unknown = inputs.iter().filter(|input| !(target.run)(input)).count();
        assert_eq!(
            unknown,
            0,
            "{}: of {} inputs; {anew}",
            target.name,
            inputs.len()
        );
    }
    let kept_of = |name: &str| -> BTreeSet<u8> {
        let inputs = kept::read(name).expect("they are kept").into_iter();
        inputs.map(|input| kept::kind_of(name, &input)).collect()
    };
    let of_pages = [kind::BITMAP, kind::INNER, kind::LEAF, kind::OVERFLOW];
    assert_eq!(kept_of("page"), of_pages.into(), "pages; {anew}");
    assert_eq!(kept_of("tree record"), KINDS.into(), "{anew}");
    assert_eq!(
        kept_of("transaction record"),
        TransactionRecord::KINDS.into(),
        "{anew}"
    );
    assert_eq!(kept_of("log record"), kinds::defined(), "{anew}");
    let packed = kept::read(DATABASE).expect("it is kept");
    let disk = kept::unpack(&packed).expect("files");
    kept::is_right(&disk).unwrap_or_else(|what| panic!("the kept database: {what}; {anew}"));
}

#[test]
fn every_decoder_has_kept_inputs_and_nothing_else_is_kept() {
    let folder = kept::path_of(DATABASE);
    let folder = folder.parent().expect("a folder");
    let (mut found, mut bytes) = (BTreeSet::new(), 0);
    for entry in std::fs::read_dir(folder).expect("the folder is there") {
        let entry = entry.expect("an entry");
        bytes += entry.metadata().expect("of a file").len();
        found.insert(entry.path());
    }
    let expected: BTreeSet<_> = kept::names().into_iter().map(kept::path_of).collect();
    assert_eq!(found, expected);
    assert!(bytes <= BYTES_MAX, "{bytes} bytes are kept");
}

/// The control file, the heads and blocks of the log, the head of the data file, the double-write area and the pages: by opening.
#[test]
fn prop_the_kept_database_with_changed_bytes_opens_or_says_what_is_damaged() {
    let seed = first_seed();
    eprintln!("VELLUM_SEED={seed}");
    let packed = kept::read(DATABASE).expect("it is kept");
    let whole = kept::unpack(&packed).expect("files");
    let mut files = segments(&whole).expect("a log");
    files.extend([corpus::CONTROL, corpus::DATA].map(str::to_owned));
    // In a segment that is free there is nothing to change.
    files.retain(|file| {
        let bytes = whole.read_all(file).expect("is there");
        bytes.iter().any(|byte| *byte != 0)
    });
    let (mut opened, mut told) = (0, 0);
    for round in 0.. {
        if ends(round, 100, || opened > 0 && told > 0) {
            break;
        }
        let seed = seed.wrapping_add(round);
        let mut random = Random::new(seed);
        let disk = whole.process_kill();
        let file = &files[random.below(files.len() as u64) as usize];
        let bytes = disk.read_all(file).expect("is there");
        // Where something stands.
        let stands = |sector: &&usize| {
            let end = bytes.len().min(**sector + SECTOR);
            bytes[**sector..end].iter().any(|byte| *byte != 0)
        };
        let sectors: Vec<usize> = (0..bytes.len()).step_by(SECTOR).collect();
        let sectors: Vec<&usize> = sectors.iter().filter(stands).collect();
        let sector = *sectors[random.below(sectors.len() as u64) as usize];
        let at = sector + random.below(SECTOR.min(bytes.len() - sector) as u64) as usize;
        let mut changed = vec![0; random.between(1, 8) as usize];
        random.fill(&mut changed);
        changed.truncate(bytes.len() - at);
        replace(&disk, file, at as u64, &changed).expect("a sound disk");
        let open = || Database::open_directory(Arc::new(disk.clone()), corpus::config());
        let answer = catch_unwind(AssertUnwindSafe(|| {
            open().map(|database| {
                // Whatever the answers are, there are answers.
                let _ = database.retry(|transaction| {
                    let table = transaction.table("kept")?;
                    (0..60_u32).try_for_each(|row| {
                        transaction
                            .upsert(&table, &row.to_be_bytes(), &[7; 90])
                            .map(drop)
                    })
                });
                let _ = database.checkpoint();
                let _ = database.verify();
            })
        }));
        match answer {
            Ok(Ok(())) => opened += 1,
            Ok(Err(_)) => told += 1,
            Err(_) => panic!("VELLUM_SEED={seed} VELLUM_ROUNDS=1: {file} at {at}: {changed:02x?}"),
        }
    }
    eprintln!("{opened} opened, {told} were told of");
    if rounds(100) >= 100 {
        assert!(
            opened > 0 && told > 0,
            "{opened} opened, {told} were told of"
        );
    }
}
