//! Rows of eight-byte keys and values of one size: point reads, updates, read-modify-writes, bulk
//! loads and full scans.
//!
//! Layout of a value: `0 u64 key` (little-endian), `8 u64 counter` (how often it was updated), then
//! bytes that follow from both; shorter values are a prefix of that. So whoever reads a row can
//! tell whether it is the right one, and a sum of the counters tells whether an update was lost.

use crate::engine::{Direction, EngineError, Result, Session, Table, TableSpec, TxOptions};
use crate::zipf::Keys;
use std::ops::Range;
use vellum_base::random::Random;

/// The rows.
pub const ROWS: Table = Table::at(0);
/// One row that an idle writer keeps locked; nobody else touches it.
pub const IDLE: Table = Table::at(1);
/// All tables, in the order of their positions.
pub const TABLES: &[TableSpec] = &[
    TableSpec {
        table: ROWS,
        name: "kv_rows",
    },
    TableSpec {
        table: IDLE,
        name: "kv_idle",
    },
];

/// What one transaction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mix {
    /// Reads one key.
    Read,
    /// Updates one key in place.
    Update,
    /// Reads one key, then updates it.
    ReadModifyWrite,
}

impl Mix {
    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Update => "update",
            Self::ReadModifyWrite => "rmw",
        }
    }
}

/// Key of row `id`.
#[inline]
pub fn key(id: u64) -> [u8; 8] {
    id.to_be_bytes()
}

/// Writes the value of row `id` after `counter` updates over `value`, keeping its length.
#[inline]
pub fn write_value(value: &mut [u8], id: u64, counter: u64) {
    let (first, rest) = value.split_at_mut(value.len().min(8));
    first.copy_from_slice(&id.to_le_bytes()[..first.len()]);
    let (second, rest) = rest.split_at_mut(rest.len().min(8));
    second.copy_from_slice(&counter.to_le_bytes()[..second.len()]);
    // Cheap, and different for every row and every update.
    let fill = (id ^ counter.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    for chunk in rest.chunks_mut(8) {
        let length = chunk.len();
        chunk.copy_from_slice(&fill.to_le_bytes()[..length]);
    }
}

/// How often a value was updated; zero where it is too short to tell.
#[inline]
pub fn counter(value: &[u8]) -> u64 {
    match value.get(8..16) {
        Some(bytes) => u64::from_le_bytes(bytes.try_into().expect("eight bytes")),
        None => 0,
    }
}

/// True if `value` is what [`write_value`] wrote for row `id`, of `size` bytes.
pub fn is_value(value: &[u8], id: u64, size: usize) -> bool {
    if value.len() != size {
        return false;
    }
    let counter = counter(value);
    let fill = (id ^ counter.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let same = |part: &[u8], number: u64| part == &number.to_le_bytes()[..part.len()];
    same(&value[..size.min(8)], id)
        && (size < 16 || value[16..].chunks(8).all(|chunk| same(chunk, fill)))
}

/// The order in which a load writes its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Ascending keys, by the engine's fastest way.
    Sorted,
    /// Every key once, in an order without locality, by inserts.
    Shuffled,
}

/// Loads `rows` rows of `size` bytes in one transaction. `progress` gets the number of rows so far
/// now and then.
///
/// # Errors
/// Whatever the engine reports; nothing is loaded then.
pub fn load<S: Session>(
    session: &mut S,
    rows: u64,
    size: usize,
    order: Order,
    mut progress: impl FnMut(u64),
) -> Result<()> {
    session.begin(TxOptions::READ_WRITE)?;
    let loaded = match order {
        Order::Sorted => {
            let mut ids = 0..rows;
            let loaded = session.bulk_load(ROWS, |next_key, value| {
                let Some(id) = ids.next() else { return false };
                if id % 4096 == 0 {
                    progress(id);
                }
                next_key.clear();
                next_key.extend_from_slice(&key(id));
                value.resize(size, 0);
                write_value(value, id, 0);
                true
            });
            loaded.map(|_| ())
        }
        Order::Shuffled => insert_shuffled(session, rows, size, &mut progress),
    };
    match loaded.and_then(|()| session.commit()) {
        Ok(()) => {
            progress(rows);
            Ok(())
        }
        Err(error) => {
            session.rollback()?;
            Err(error)
        }
    }
}

/// A permutation of `0..rows` by a four-round Feistel network over the next even number of bits,
/// walking on while it leaves the range: no table of keys.
fn insert_shuffled<S: Session>(
    session: &mut S,
    rows: u64,
    size: usize,
    progress: &mut impl FnMut(u64),
) -> Result<()> {
    let half = (64 - rows.saturating_sub(1).leading_zeros())
        .div_ceil(2)
        .max(1);
    let mut value = vec![0; size];
    for n in 0..rows {
        if n % 4096 == 0 {
            progress(n);
        }
        let mut id = feistel(n, half);
        while id >= rows {
            id = feistel(id, half);
        }
        write_value(&mut value, id, 0);
        session.insert(ROWS, &key(id), &value)?;
    }
    Ok(())
}

fn feistel(n: u64, half: u32) -> u64 {
    let mask = (1 << half) - 1;
    let (mut left, mut right) = (n >> half, n & mask);
    for round in 1..=4_u64 {
        let mixed = (right ^ (round << 40)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (left, right) = (right, left ^ ((mixed >> 29) & mask));
    }
    (left << half) | right
}

/// A client that runs one operation a transaction.
#[derive(Debug)]
pub struct Client {
    keys: Keys,
    random: Random,
    mix: Mix,
    id: u64,
    value: Vec<u8>,
    /// The whole value changes.
    range: [Range<usize>; 1],
}

impl Client {
    /// A client whose operations follow from `seed` and `number`.
    pub fn new(keys: Keys, size: usize, mix: Mix, seed: u64, number: u64) -> Self {
        let random = Random::new(seed ^ (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        Self {
            keys,
            random,
            mix,
            id: 0,
            value: vec![0; size],
            range: std::array::from_fn(|_| 0..size),
        }
    }

    /// Draws the next key.
    #[inline]
    pub fn draw(&mut self) {
        self.id = self.keys.next(&mut self.random);
    }

    /// Runs one transaction on the key that was drawn. After an error it is rolled back.
    ///
    /// # Errors
    /// Whatever the engine reports; [`EngineError::WrongData`] if the row is missing or another's.
    #[inline]
    pub fn attempt<S: Session>(&mut self, session: &mut S) -> Result<()> {
        let attempted = match self.mix {
            Mix::Read => self.read(session),
            Mix::Update => self.update(session),
            Mix::ReadModifyWrite => self.read_modify_write(session),
        };
        if attempted.is_err() {
            session.rollback()?;
        }
        attempted
    }

    fn read<S: Session>(&mut self, session: &mut S) -> Result<()> {
        session.begin(TxOptions::READ_ONLY)?;
        self.read_row(session)?;
        session.commit()
    }

    fn read_row<S: Session>(&mut self, session: &mut S) -> Result<()> {
        let size = self.range[0].end;
        if !session.get(ROWS, &key(self.id), &mut self.value)? {
            return Err(EngineError::missing(ROWS));
        }
        let compared = size.min(8);
        if self.value.len() != size || self.value[..compared] != self.id.to_le_bytes()[..compared] {
            return Err(self.wrong());
        }
        Ok(())
    }

    #[cold]
    fn wrong(&self) -> EngineError {
        let what = format!(
            "row {} holds {} bytes of another row",
            self.id,
            self.value.len()
        );
        EngineError::WrongData { table: ROWS, what }
    }

    fn update<S: Session>(&mut self, session: &mut S) -> Result<()> {
        session.begin(TxOptions::READ_WRITE)?;
        let id = self.id;
        let found = session.update(ROWS, &key(id), &self.range, |value| {
            let next = counter(value) + 1;
            write_value(value, id, next);
        })?;
        if !found {
            return Err(EngineError::missing(ROWS));
        }
        session.commit()
    }

    fn read_modify_write<S: Session>(&mut self, session: &mut S) -> Result<()> {
        session.begin(TxOptions::READ_WRITE)?;
        self.read_row(session)?;
        let (id, next) = (self.id, counter(&self.value) + 1);
        write_value(&mut self.value, id, next);
        let new = &self.value;
        // What was read is written back: an engine that lets two of these pass loses one.
        let found = session.update(ROWS, &key(id), &self.range, |value| {
            value.copy_from_slice(new);
        })?;
        if !found {
            return Err(EngineError::missing(ROWS));
        }
        session.commit()
    }
}

/// What a full scan found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scanned {
    /// Rows.
    pub rows: u64,
    /// Sum of the counters.
    pub updates: u64,
    /// Rows that are out of order, or not what was written.
    pub wrong: u64,
}

/// Reads all rows in one snapshot and looks at every byte of them.
///
/// # Errors
/// Whatever the engine reports.
pub fn verify<S: Session>(session: &mut S, size: usize) -> Result<Scanned> {
    let mut scanned = Scanned::default();
    whole_scan(session, |found_key, value| {
        let right = found_key == key(scanned.rows) && is_value(value, scanned.rows, size);
        scanned.wrong += u64::from(!right);
        scanned.rows += 1;
        scanned.updates = scanned.updates.wrapping_add(counter(value));
    })?;
    Ok(scanned)
}

/// Reads all rows in one snapshot; `progress` gets the number of rows since it was called last.
/// Returns the number of rows.
///
/// # Errors
/// Whatever the engine reports; [`EngineError::WrongData`] if the rows are not `expected` many.
pub fn scan<S: Session>(
    session: &mut S,
    expected: u64,
    mut progress: impl FnMut(u64) -> bool,
) -> Result<u64> {
    const BATCH: u64 = 4096;
    let (mut rows, mut bytes, mut stopped) = (0_u64, 0_u64, false);
    session.begin(TxOptions::READ_ONLY)?;
    let scanned = session.scan(ROWS, &[], Direction::Forward, |found_key, value| {
        rows += 1;
        // Key and value are looked at, so that an engine cannot leave them out.
        bytes = bytes
            .wrapping_add((found_key.len() + value.len()) as u64)
            .wrapping_add(u64::from(
                found_key.last().copied().unwrap_or(0) ^ value.first().copied().unwrap_or(0),
            ));
        if rows % BATCH == 0 {
            stopped = !progress(BATCH);
        }
        !stopped
    });
    session.rollback()?;
    scanned?;
    std::hint::black_box(bytes);
    progress(rows % BATCH);
    if !stopped && rows != expected {
        let what = format!("a scan found {rows} of {expected} rows");
        return Err(EngineError::WrongData { table: ROWS, what });
    }
    Ok(rows)
}

fn whole_scan<S: Session>(session: &mut S, mut each: impl FnMut(&[u8], &[u8])) -> Result<()> {
    session.begin(TxOptions::READ_ONLY)?;
    let scanned = session.scan(ROWS, &[], Direction::Forward, |key, value| {
        each(key, value);
        true
    });
    session.rollback()?;
    scanned
}

/// The number of rows and the size of a value, judged by the last row; none in an empty table.
/// Enough to tell whether a database was loaded with other parameters.
///
/// # Errors
/// Whatever the engine reports.
pub fn shape<S: Session>(session: &mut S) -> Result<Option<(u64, usize)>> {
    let (mut rows, mut size) = (None, 0);
    session.begin(TxOptions::READ_ONLY)?;
    let scanned = session.scan(ROWS, &[0xff; 9], Direction::Backward, |key, value| {
        rows = key
            .try_into()
            .ok()
            .map(|key| u64::from_be_bytes(key).wrapping_add(1));
        size = value.len();
        false
    });
    session.rollback()?;
    scanned.map(|()| rows.map(|rows| (rows, size)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Engine;
    use crate::reference::Reference;

    fn loaded(rows: u64, size: usize, order: Order) -> Reference {
        let mut engine = Reference::new();
        engine.ensure_tables(TABLES).unwrap();
        let mut session = engine.open_session().unwrap();
        assert_eq!(shape(&mut session).unwrap(), None);
        load(&mut session, rows, size, order, |_| {}).unwrap();
        assert_eq!(shape(&mut session).unwrap(), Some((rows, size)));
        drop(session);
        engine
    }

    #[test]
    fn both_orders_load_every_row_once() {
        for (rows, size) in [(1, 100), (2, 0), (1000, 3), (1023, 16), (5000, 100)] {
            for order in [Order::Sorted, Order::Shuffled] {
                let engine = loaded(rows, size, order);
                let mut session = engine.open_session().unwrap();
                let found = verify(&mut session, size).unwrap();
                assert_eq!(
                    found,
                    Scanned {
                        rows,
                        updates: 0,
                        wrong: 0
                    },
                    "{order:?}"
                );
                assert_eq!(scan(&mut session, rows, |_| true).unwrap(), rows);
                assert!(scan(&mut session, rows + 1, |_| true).is_err());
            }
        }
    }

    #[test]
    fn shuffled_order_has_no_runs() {
        let half = 8;
        let next_to = (1..50_000_u64)
            .filter(|&n| feistel(n, half).abs_diff(feistel(n - 1, half)) < 16)
            .count();
        assert!(next_to < 1000, "{next_to} neighbours");
    }

    #[test]
    fn concurrent_updates_are_all_counted() {
        let (rows, size) = (20, 32);
        let engine = loaded(rows, size, Order::Sorted);
        let (threads, steps) = (3_u64, 300);
        for mix in [Mix::Update, Mix::ReadModifyWrite, Mix::Read] {
            std::thread::scope(|scope| {
                for number in 0..threads {
                    let engine = &engine;
                    scope.spawn(move || {
                        let keys = Keys::new(rows, 0.9);
                        let mut client = Client::new(keys, size, mix, 1, number);
                        let mut session = engine.open_session().unwrap();
                        for _ in 0..steps {
                            client.draw();
                            while let Err(error) = client.attempt(&mut session) {
                                assert!(error.is_retryable(), "{error}");
                                std::thread::yield_now();
                            }
                        }
                    });
                }
            });
        }
        let found = verify(&mut engine.open_session().unwrap(), size).unwrap();
        assert_eq!(
            found,
            Scanned {
                rows,
                updates: 2 * threads * steps,
                wrong: 0
            }
        );
    }

    #[test]
    fn foreign_missing_and_damaged_rows_are_found() {
        let (rows, size) = (10, 40);
        let engine = loaded(rows, size, Order::Sorted);
        let mut session = engine.open_session().unwrap();
        session.begin(TxOptions::READ_WRITE).unwrap();
        let damage = |value: &mut [u8]| value[39] ^= 1;
        assert!(session.update(ROWS, &key(3), &[39..40], damage).unwrap());
        session.delete(ROWS, &key(7)).unwrap();
        let mut other = vec![0; size];
        write_value(&mut other, 4, 0);
        session.upsert(ROWS, &key(5), &other).unwrap();
        session.commit().unwrap();
        let found = verify(&mut session, size).unwrap();
        // Row 3 is damaged, 5 another's, and 8 and 9 stand where 7 and 8 must.
        assert_eq!((found.rows, found.wrong), (9, 4));
        for (id, wrong) in [(5, "another row"), (7, "missing")] {
            let keys = Keys::new(rows, 0.0);
            let mut client = Client::new(keys, size, Mix::Read, 1, 1);
            client.id = id;
            let error = client.attempt(&mut session).unwrap_err();
            assert!(
                error.to_string().contains(wrong) && !error.is_retryable(),
                "{error}"
            );
        }
    }
}
