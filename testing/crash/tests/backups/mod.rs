//! A database that is backed up, and whether a copy that a power cut left is one.

use crate::engine::config;
use std::sync::Arc;
use vellum::{Database, Result, TransactionOptions};
use vellum_io::{Directory, SimulatedDirectory};

/// Rows of the database: more pages than frames.
const ROWS: u32 = 300;

/// The database that is copied.
pub struct Source(Database);

impl Source {
    pub fn new() -> Self {
        let disk = SimulatedDirectory::new();
        let database = Database::open_directory(Arc::new(disk), config()).expect("opens");
        let fill = database.retry(|transaction| {
            let table = transaction.create_table("t")?;
            (0..ROWS)
                .try_for_each(|row| transaction.insert(&table, &row.to_be_bytes(), &value(row)))
        });
        fill.expect("a sound disk");
        Self(database)
    }

    /// Copies it to an empty disk.
    pub fn back_up(&self, target: &SimulatedDirectory) -> std::result::Result<(), String> {
        let copied = self.0.backup_to(Arc::new(target.clone()));
        copied.map_err(|error| error.to_string())
    }

    /// A copy that was finished is the database; one that was not is the database, or none: what has the control file of a database is one.
    pub fn judge(&self, found: &SimulatedDirectory, done: bool) -> std::result::Result<(), String> {
        let done = done || found.exists("control").map_err(|error| error.to_string())?;
        let database = match Database::open_directory(Arc::new(found.clone()), config()) {
            Ok(database) => database,
            Err(error) if done => return Err(format!("does not open: {error:?}")),
            Err(_) => return Ok(()),
        };
        let tables = database
            .begin()
            .and_then(|transaction| transaction.tables());
        match tables {
            // What was no copy yet is an empty directory, in which a database was just made.
            Ok(tables) if tables.is_empty() && !done => return Ok(()),
            _ => {}
        }
        let rows = rows(&database).map_err(|error| format!("cannot be read: {error:?}"))?;
        if rows != ROWS {
            return Err(format!("{rows} rows of {ROWS}"));
        }
        let report = database.verify().map_err(|error| format!("{error:?}"))?;
        match report.is_sound() {
            true => Ok(()),
            false => Err(format!("is not sound: {:?}", report.findings)),
        }
    }
}

fn value(row: u32) -> Vec<u8> {
    vec![row as u8; 400]
}

/// How many of the rows are there, from the first on.
fn rows(database: &Database) -> Result<u32> {
    let transaction = database.begin_with(TransactionOptions::default().read_only(true))?;
    let table = transaction.table("t")?;
    let mut cursor = transaction.cursor(&table, ..)?;
    let mut count = 0_u32;
    while let Some((key, bytes)) = cursor.next()? {
        if key != count.to_be_bytes() || bytes != value(count) {
            break;
        }
        count += 1;
    }
    Ok(count)
}
