//! What an adapter costs over the engine that it adapts: point reads and updates of one row a transaction, straight on each engine's own
//! interface and through the adapter, on the same rows, in one process, by turns. Each is told as the thread's processor time of an operation,
//! and what counts is the median of the turns' ratios: whoever else works on the machine meets both sides of a turn. (Fastest turns differ more
//! from run to run.)
//!
//! `cargo run --release -p vellum-peers --features lmdb,redb --example bare [ENGINE ...]`
//!
//! Both sides are opened and loaded alike, and both run one transaction for each operation, since that is what is compared. Commits are asynchronous.
//!
//! Not here: PostgreSQL, which has no interface but its protocol.
#![allow(dead_code, reason = "a build without peers measures nothing")]

#[cfg(feature = "canopydb")]
mod canopydb;
#[cfg(feature = "fjall")]
mod fjall;
#[cfg(feature = "lmdb")]
mod lmdb;
#[cfg(feature = "redb")]
mod redb;
#[cfg(feature = "rocksdb")]
mod rocksdb;
#[cfg(feature = "sqlite")]
mod sqlite;
#[cfg(feature = "wiredtiger")]
mod wiredtiger;

use std::error::Error;
use std::path::Path;
use vellum_peers::PeerSettings;
use vellum_workload::engine::{Engine, Session, Table, TableSpec, TxOptions};

/// Rows, and bytes of each.
const ROWS: u64 = 100_000;
const VALUE_BYTES: usize = 100;
/// Operations of each side a turn, and turns.
const OPERATIONS: u64 = 20_000;
const TURNS: usize = 15;
const MEMORY_BYTES: u64 = 1 << 30;

const TABLE: Table = Table::at(0);
const NAME: &str = "rows";
const TABLES: &[TableSpec] = &[TableSpec {
    table: TABLE,
    name: NAME,
    is_queue: false,
}];

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Who runs one transaction on one row.
trait Client {
    /// Copies the value of a row that is there.
    fn read(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<()>;
    /// Changes the value of a row that is there, by way of `value`.
    fn update(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<()>;
}

/// What an update does.
fn change(value: &mut [u8]) {
    value[0] = value[0].wrapping_add(1);
}

/// The rows, ascending.
fn rows() -> impl Iterator<Item = ([u8; 8], [u8; VALUE_BYTES])> {
    (0..ROWS).map(|number| (number.to_be_bytes(), [number as u8; VALUE_BYTES]))
}

#[derive(Clone, Copy)]
enum Operation {
    Read,
    Update,
}

/// A client of any kind: one call that the compiler does not see through for many operations.
trait Runs {
    /// Runs operations; a thread's seconds of them.
    fn run(&mut self, operation: Operation, seed: u64) -> Result<f64>;
}

impl<C: Client> Runs for C {
    fn run(&mut self, operation: Operation, mut seed: u64) -> Result<f64> {
        let mut value = Vec::with_capacity(VALUE_BYTES);
        let start = processor_s();
        for _ in 0..OPERATIONS {
            // Knuth's constants; the upper half is random enough for keys.
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let key = ((seed >> 32) % ROWS).to_be_bytes();
            match operation {
                Operation::Read => self.read(&key, &mut value)?,
                Operation::Update => self.update(&key, &mut value)?,
            }
        }
        let taken = processor_s() - start;
        match value.len() {
            VALUE_BYTES => Ok(taken),
            other => Err(format!("a value of {other} bytes").into()),
        }
    }
}

/// Processor time of this thread.
fn processor_s() -> f64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: a place for a time.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// A session as a workload calls it.
struct Adapted<S>(S);

impl<S: Session> Client for Adapted<S> {
    fn read(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<()> {
        self.0.begin(TxOptions::READ_ONLY)?;
        if !self.0.get(TABLE, key, value)? {
            return Err("a row is missing".into());
        }
        Ok(self.0.commit()?)
    }

    fn update(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<()> {
        self.0.begin(TxOptions::READ_WRITE)?;
        let whole = [0..VALUE_BYTES];
        if !self.0.update(TABLE, key, &whole, change)? {
            return Err("a row is missing".into());
        }
        self.0.commit()?;
        value.resize(VALUE_BYTES, 0);
        Ok(())
    }
}

/// Who opens a bare engine below a directory, fills it with the rows, and hands it on.
type Bare = fn(&Path, &mut dyn FnMut(&mut dyn Runs) -> Result<()>) -> Result<()>;

/// Measures one engine, if it is asked for.
fn compare<E: Engine>(
    name: &str,
    open: impl Fn(&PeerSettings) -> vellum_workload::engine::Result<E>,
    bare: Bare,
) -> Result<()> {
    let asked: Vec<String> = std::env::args().skip(1).collect();
    if !asked.is_empty() && !asked.iter().any(|it| it == name) {
        return Ok(());
    }
    let (ours, theirs) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let mut engine = open(&PeerSettings {
        data: ours.path().to_owned(),
        memory_bytes: MEMORY_BYTES,
        sync: false,
        sessions: 1,
        tables: TABLES.len(),
        writers: 1,
    })?;
    engine.ensure_tables(TABLES)?;
    let mut session = engine.open_session()?;
    let mut left = rows();
    session.begin(TxOptions::READ_WRITE)?;
    session.bulk_load(TABLE, |key, value| {
        left.next().is_some_and(|(next, held)| {
            key.clear();
            key.extend_from_slice(&next);
            value.clear();
            value.extend_from_slice(&held);
            true
        })
    })?;
    session.commit()?;
    engine.checkpoint()?;
    let mut adapted = Adapted(session);
    bare(theirs.path(), &mut |bare| {
        by_turns(name, &mut adapted, bare)
    })
}

fn by_turns(name: &str, adapted: &mut dyn Runs, bare: &mut dyn Runs) -> Result<()> {
    for (what, operation) in [("read", Operation::Read), ("update", Operation::Update)] {
        let mut turns = Vec::new();
        for turn in 0..=TURNS {
            let seed = turn as u64;
            let (mut ours, mut theirs) = (0.0, 0.0);
            // Who is first changes from turn to turn.
            for side in [turn % 2, 1 - turn % 2] {
                match side {
                    0 => ours = adapted.run(operation, seed)?,
                    _ => theirs = bare.run(operation, seed)?,
                }
            }
            // The first is for the caches.
            if turn > 0 {
                turns.push((theirs / ours, ours, theirs));
            }
        }
        turns.sort_by(|a, b| a.0.total_cmp(&b.0));
        let ns = |taken: f64| taken * 1e9 / OPERATIONS as f64;
        let ((low, ..), (ratio, ours, theirs), (high, ..)) =
            (turns[0], turns[TURNS / 2], turns[TURNS - 1]);
        println!(
            "| {name} | {what} | {:.0} | {:.0} | {ratio:.2} | {low:.2} to {high:.2} |",
            ns(theirs),
            ns(ours)
        );
    }
    Ok(())
}

fn main() -> Result<()> {
    println!(
        "| engine | operation | bare, ns | adapter, ns | rate, adapter over bare | of the turns |"
    );
    println!("| --- | --- | --- | --- | --- | --- |");
    #[cfg(feature = "canopydb")]
    compare(
        "canopydb",
        |settings| {
            use vellum_peers::canopydb::{CanopydbEngine, Log};
            CanopydbEngine::open(settings, Log::Written)
        },
        canopydb::bare,
    )?;
    #[cfg(feature = "fjall")]
    compare("fjall", vellum_peers::fjall::FjallEngine::open, fjall::bare)?;
    #[cfg(feature = "lmdb")]
    compare(
        "lmdb",
        |settings| {
            use vellum_peers::lmdb::{LmdbEngine, Writes};
            LmdbEngine::open(settings, Writes::BySystemCalls)
        },
        lmdb::bare,
    )?;
    #[cfg(feature = "redb")]
    compare("redb", vellum_peers::redb::RedbEngine::open, redb::bare)?;
    #[cfg(feature = "rocksdb")]
    compare(
        "rocksdb",
        vellum_peers::rocksdb::RocksdbEngine::open,
        rocksdb::bare,
    )?;
    #[cfg(feature = "sqlite")]
    compare(
        "sqlite",
        vellum_peers::sqlite::SqliteEngine::open,
        sqlite::bare,
    )?;
    #[cfg(feature = "wiredtiger")]
    compare(
        "wiredtiger",
        vellum_peers::wiredtiger::WiredtigerEngine::open,
        wiredtiger::bare,
    )?;
    Ok(())
}
