//! A database much of which is garbage that nobody has freed: dropped tables and indexes, large values that rows had before, a load that was never committed. It was
//! killed; whoever opens it frees all of that.
//!
//! A page that only garbage has is nobody's need: whichever cannot be read, the database opens and shows everything, again and again; `verify` tells.
//!
//! Not here: that the garbage goes once the page can be read again (`garbage` in the tests of the engine).

use crate::corpus::{self, COMMITS, DATA, PAGE};
use crate::damage::in_time;
use crate::each;
use std::collections::BTreeSet;
use std::sync::Arc;
use vellum::{
    Database, Family, Inspection, KeyDescription, KeyPart, Result, Source, Transaction,
    TransactionOptions, inspect_directory,
};
use vellum_base::{Gsn, PageId};
use vellum_buffer::{PageUse, Space};
use vellum_io::SimulatedDirectory;

/// Rows of each table.
const ROWS: u32 = 400;
/// Steps of background work behind each opening.
const STEPS: u32 = 20;

/// The database, and the pages that only garbage has.
#[derive(Debug)]
pub struct Garbage {
    /// Its files.
    pub disk: SimulatedDirectory,
    /// Kind and number of each.
    pub pages: Vec<(u8, u64)>,
}

fn open(disk: &SimulatedDirectory) -> Result<Database> {
    Database::open_directory(Arc::new(disk.clone()), corpus::config())
}

/// Every fiftieth value takes several pages.
fn value(row: u32) -> Vec<u8> {
    let times = if row.is_multiple_of(50) { 900 } else { 4 };
    format!("row {row} of garbage ").into_bytes().repeat(times)
}

fn fill(transaction: &Transaction, name: &str) -> Result<()> {
    let table = transaction.create_table(name)?;
    let part = KeyPart {
        source: Source::Value,
        start: 0,
        end: Some(12),
    };
    let key = KeyDescription::new(vec![part], false).expect("a key of one part");
    transaction.create_index(&table, &format!("index of {name}"), key)?;
    (0..ROWS).try_for_each(|row| transaction.insert(&table, &row.to_be_bytes(), &value(row)))
}

/// Makes the database.
///
/// # Errors
/// What it says.
pub fn make() -> Result<Garbage> {
    let disk = corpus::make()?;
    let database = open(&disk)?;
    for name in ["gone", "replaced", "fewer"] {
        database.retry(|transaction| fill(transaction, name))?;
    }
    while database.step()? {}
    // Who sees all of it, so that nobody frees it.
    let reader = database.begin_with(TransactionOptions::default().read_only(true))?;
    reader.table("gone")?;
    database.retry(|transaction| transaction.drop_table("gone"))?;
    database.retry(|transaction| {
        let (replaced, fewer) = (transaction.table("replaced")?, transaction.table("fewer")?);
        (0..ROWS).step_by(50).try_for_each(|row| {
            transaction.upsert(&replaced, &row.to_be_bytes(), b"short")?;
            transaction.delete(&fewer, &row.to_be_bytes()).map(drop)
        })
    })?;
    let loader = database.begin()?;
    let table = loader.create_table("never there")?;
    let mut rows = 0..ROWS;
    loader.bulk_load(&table, |key, bytes| {
        let Some(row) = rows.next() else { return false };
        key.extend_from_slice(&row.to_be_bytes());
        bytes.extend_from_slice(&value(row));
        true
    })?;
    database.checkpoint()?;
    database.sync()?;
    let disk = disk.process_kill();
    drop((loader, reader));
    let pages = garbage_of(&disk)?;
    Ok(Garbage { disk, pages })
}

/// Pages in use in the data file, and what they are: kind, tree.
fn used(disk: &SimulatedDirectory) -> vellum_base::Result<Vec<(u64, u8, u64)>> {
    let space = Space::load(Arc::new(each::pool(disk)?), Gsn::ZERO)?;
    let data = corpus::bytes_of(disk, DATA)?;
    let pages = (0..).zip(data.chunks_exact(PAGE));
    let used = pages.filter(|(number, _)| space.page_use(PageId(*number)) == PageUse::Durable);
    let described = used.map(|(number, page)| {
        let tree = page[16..].first_chunk().expect("a page has a head");
        (number, page[4], u64::from_le_bytes(*tree))
    });
    Ok(described.collect())
}

/// What the next opening gives back, of trees and chains that there are no more then.
fn garbage_of(disk: &SimulatedDirectory) -> Result<Vec<(u8, u64)>> {
    let copy = disk.process_kill();
    let database = open(&copy)?;
    while database.step()? {}
    database.close()?;
    let (mut left, mut trees) = (BTreeSet::new(), BTreeSet::new());
    for (number, _, tree) in used(&copy)? {
        left.insert(number);
        trees.insert(tree);
    }
    let garbage = used(disk)?
        .into_iter()
        .filter(|(number, _, tree)| !left.contains(number) && !trees.contains(tree));
    Ok(garbage.map(|(number, kind, _)| (kind, number)).collect())
}

/// Flips one bit of a page that only garbage has. `verifies`: the files are also verified as they are.
///
/// # Errors
/// The database does not open, or does not show everything; a panic, a hang.
pub fn flip(
    garbage: &Garbage,
    page: u64,
    (at, bit): (usize, u8),
    verifies: bool,
) -> std::result::Result<(), String> {
    let copy = garbage.disk.process_kill();
    let flipped = copy.flip_bit(DATA, page * PAGE as u64 + at as u64, bit);
    flipped
        .map_err(|error| error.to_string())
        .and_then(|()| in_time(move || look(&copy, verifies)))
        .map_err(|what| format!("page {page}, byte {at}, bit {bit}: {what}"))
}

fn look(disk: &SimulatedDirectory, verifies: bool) -> std::result::Result<(), String> {
    if verifies {
        let copy = Arc::new(disk.process_kill());
        let report = inspect_directory(copy, Inspection::default().pool_bytes(1 << 20));
        let report = report.map_err(|error| format!("verify: {error}"))?;
        if !report.is_complete() {
            return Err(format!("verify: {:?}", report.findings));
        }
    }
    for time in 1..=2 {
        let told = |error: vellum::Error| format!("opened {time} times: {error}");
        let database = open(disk).map_err(told)?;
        match corpus::right(&database) {
            Ok(COMMITS) => {}
            other => return Err(format!("{other:?}")),
        }
        for _ in 0..STEPS {
            match database.step() {
                Err(error) if error.family() != Family::Corrupt => return Err(told(error)),
                _ => {}
            }
        }
        database.close().map_err(told)?;
    }
    Ok(())
}
