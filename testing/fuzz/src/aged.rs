//! A database that is open, whose disk is changed under it: by damage, which is noticed or harmless, and by forgery (the checksum is made right again), after
//! which there are answers whatever they are.
//!
//! What an old snapshot needs is on that disk as nowhere else: deltas, graveyards, lists of what is to be collected, fat rows. A restart throws
//! it away, so copies of files ([`crate::damage`]) do not reach who reads it.

use crate::corpus::{self, DATA, PAGE};
use crate::damage::{scribble, seal_page};
use std::collections::BTreeSet;
use std::sync::Arc;
use vellum::{Class, Config, Database, Durability, Transaction, TransactionOptions};
use vellum_base::random::Random;
use vellum_buffer::page::{FLAG_FAT, FLAG_TEMPORARY, kind};
use vellum_io::SimulatedDirectory;

/// A database that is open, with a snapshot that is older than most of what it holds: deltas, graveyards and fat rows are on its disk.
#[derive(Debug)]
pub struct Aged {
    /// Its disk.
    pub disk: SimulatedDirectory,
    /// The database.
    pub database: Database,
    /// The snapshot.
    old: Transaction,
    /// What the snapshot shows.
    then: Rows,
    /// What is shown now.
    now: Rows,
}

type Rows = Vec<(Vec<u8>, Vec<u8>)>;

/// As many as do not fit into the pool: what is damaged on the disk is to be read from there.
const ROWS: u32 = 600;
const TABLE: &str = "aged";

fn config() -> Config {
    let mut config = corpus::config();
    config.versions.fat_updates = Some(2);
    config.promote_after_ticks = 5;
    config.log_bytes_max *= 4;
    config
}

fn key(row: u32) -> [u8; 4] {
    row.to_be_bytes()
}

fn body(row: u32, version: u32) -> Vec<u8> {
    format!("row {row} version {version} ")
        .into_bytes()
        .repeat(8)
}

impl Aged {
    /// Makes it.
    ///
    /// # Errors
    /// What it says.
    pub fn make() -> vellum::Result<Self> {
        let disk = SimulatedDirectory::new();
        let database = Database::open_directory(Arc::new(disk.clone()), config())?;
        database.retry(|transaction| {
            let table = transaction.create_table(TABLE)?;
            (0..ROWS).try_for_each(|row| transaction.insert(&table, &key(row), &body(row, 0)))
        })?;
        let analytical = TransactionOptions::default()
            .read_only(true)
            .class(Class::Olap);
        let old = database.begin_with(analytical)?;
        let then = rows(&old).map_err(|error| error.expect("nothing is damaged yet"))?;
        for version in 1..=4 {
            // A younger snapshot a pass: what it sees is kept, too, so rows turn fat.
            let young = database.begin_with(TransactionOptions::default().read_only(true))?;
            let table = young.table(TABLE)?;
            young.get(&table, &key(0), <[u8]>::len)?;
            for row in (0..ROWS).step_by(1 + version as usize) {
                let transaction = database
                    .begin_with(TransactionOptions::default().durability(Durability::Async))?;
                let table = transaction.table(TABLE)?;
                if row % 7 == 3 {
                    transaction.delete(&table, &key(row))?;
                } else {
                    transaction.update(&table, &key(row), &[0..30], |bytes| {
                        bytes.fill(b'0' + version as u8)
                    })?;
                }
                transaction.commit()?;
            }
            drop(young);
            while database.step()? {}
        }
        database.checkpoint()?;
        let new = database.begin()?;
        let now = rows(&new).map_err(|error| error.expect("nothing is damaged yet"))?;
        drop(new);
        let aged = Self {
            disk,
            database,
            old,
            then,
            now,
        };
        aged.look()
            .map_err(|what| vellum::Error::InvalidArgument { what })?;
        Ok(aged)
    }

    /// Whether both snapshots show what they must, or an error that says that something is damaged. True for an error.
    ///
    /// # Errors
    /// A wrong answer, an error of the wrong family.
    pub fn look(&self) -> std::result::Result<bool, String> {
        let new = self
            .database
            .begin_with(TransactionOptions::default().read_only(true));
        let new = new.map_err(|error| error.to_string())?;
        let mut told = false;
        for (what, transaction, expected) in
            [("then", &self.old, &self.then), ("now", &new, &self.now)]
        {
            match rows(transaction) {
                Ok(found) if found == *expected => {}
                Ok(_) => return Err(format!("a wrong answer about what was {what}")),
                Err(Some(error)) if error.family() == vellum::Family::Corrupt => told = true,
                Err(Some(error)) => return Err(format!("{what}: {error}")),
                Err(None) => return Err(format!("{what}: two ways to look differ")),
            }
        }
        Ok(told)
    }

    /// Flips a bit of a page of the disk, looks, and flips it back if the page was not written meanwhile. True if an error told of it.
    ///
    /// # Errors
    /// As [`Aged::look`].
    pub fn flip(&self, page: u64, at: usize, bit: u8) -> std::result::Result<bool, String> {
        let read = || {
            let data = corpus::bytes_of(&self.disk, DATA).map_err(|error| error.to_string())?;
            Ok::<_, String>(data[page as usize * PAGE..][..PAGE].to_vec())
        };
        let flip = || {
            let flipped = self
                .disk
                .flip_bit(DATA, page * PAGE as u64 + at as u64, bit);
            flipped.map_err(|error| error.to_string())
        };
        flip()?;
        let damaged = read()?;
        let told = self.look()?;
        if read()? == damaged {
            flip()?;
        }
        Ok(told)
    }

    /// Changes some pages of the disk, whose checksums are made right again, and goes on: both snapshots look, rows are written, the old snapshot
    /// ends, garbage is collected, the database verifies itself. Nothing is known of the answers. Which pages, and how many errors
    /// told of something.
    ///
    /// # Errors
    /// I/O of the simulated disk.
    pub fn forge(self, random: &mut Random) -> std::result::Result<(String, u32), String> {
        let data = corpus::bytes_of(&self.disk, DATA).map_err(|error| error.to_string())?;
        let old = FLAG_FAT | FLAG_TEMPORARY;
        let pages: Vec<(u64, &[u8])> = (0..)
            .zip(data.chunks_exact(PAGE))
            .filter(|(_, page)| [kind::LEAF, kind::INNER, kind::OVERFLOW].contains(&page[4]))
            .collect();
        let wanted = random.chance(3, 4);
        let of_old = |(_, page): &&(u64, &[u8])| (page[5] & old != 0) == wanted;
        let pages: Vec<_> = pages.iter().filter(of_old).collect();
        let mut what = String::new();
        for _ in 0..random.between(1, 4) {
            let (number, page) = pages[random.below(pages.len() as u64) as usize];
            let mut page = page.to_vec();
            let end = if random.chance(1, 4) { 160 } else { PAGE };
            let at = scribble(random, &mut page[4..end]) + 4;
            seal_page(*number, &mut page);
            corpus::replace(&self.disk, DATA, number * PAGE as u64, &page)
                .map_err(|error| error.to_string())?;
            what.push_str(&format!("page {number}, byte {at}; "));
        }
        let told = self.go_on(random);
        Ok((what, told))
    }

    fn go_on(self, random: &mut Random) -> u32 {
        let Self { database, old, .. } = self;
        let mut told = 0;
        let mut count = |failed: bool| told += u32::from(failed);
        let write = |row: u32, how: u64| -> vellum::Result<()> {
            let transaction = database.begin()?;
            let table = transaction.table(TABLE)?;
            match how {
                0 => drop(transaction.delete(&table, &key(row))?),
                1 => drop(transaction.upsert(&table, &key(row), &body(row, 9))?),
                _ => drop(transaction.update(&table, &key(row), &[0..4], |bytes| bytes.fill(7))?),
            }
            if how == 3 {
                transaction.rollback()
            } else {
                transaction.commit()
            }
        };
        count(rows(&old).is_err());
        for _ in 0..100 {
            count(write(random.below(u64::from(ROWS)) as u32, random.below(5)).is_err());
        }
        // What there is to collect has an end, but not here.
        let steps = |count: &mut dyn FnMut(bool)| {
            for _ in 0..200 {
                match database.step() {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(_) => count(true),
                }
            }
        };
        steps(&mut count);
        count(rows(&old).is_err());
        drop(old);
        steps(&mut count);
        count(database.verify().is_err());
        count(database.checkpoint().is_err());
        told
    }
}

/// All rows, by a scan and by their keys; `Err(None)` if these differ.
fn rows(transaction: &Transaction) -> std::result::Result<Rows, Option<vellum::Error>> {
    let table = transaction.table(TABLE).map_err(Some)?;
    let mut found = Vec::new();
    let mut cursor = transaction.cursor(&table, ..).map_err(Some)?;
    while let Some((key, value)) = cursor.next().map_err(Some)? {
        found.push((key.to_vec(), value.to_vec()));
    }
    drop(cursor);
    let known: BTreeSet<&[u8]> = found.iter().map(|(key, _)| &**key).collect();
    for row in (0..ROWS).step_by(13) {
        let there = transaction.get(&table, &key(row), |_| ()).map_err(Some)?;
        if there.is_some() != known.contains(&key(row)[..]) {
            return Err(None);
        }
    }
    Ok(found)
}
