//! Loads: all rows in one transaction, in one of two orders.

use super::{ROWS, key, write_value};
use crate::engine::{Result, Session, TxOptions};

/// The order in which a load writes its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Ascending keys, by the engine's fastest way.
    Sorted,
    /// Every key once, in an order without locality, by inserts.
    Shuffled,
    /// Ascending keys, by inserts.
    Inserted,
}

/// Loads `rows` rows of `size` bytes in one transaction. `progress` gets the number of rows so far
/// now and then, and may end the load by an error.
///
/// # Errors
/// Whatever the engine reports, or `progress`; nothing is loaded then.
pub fn load<S: Session>(
    session: &mut S,
    rows: u64,
    size: usize,
    order: Order,
    mut progress: impl FnMut(u64) -> Result<()>,
) -> Result<()> {
    session.begin(TxOptions::READ_WRITE)?;
    let loaded = match order {
        Order::Sorted => {
            let mut ids = 0..rows;
            let mut proceed = Ok(());
            let loaded = session.bulk_load(ROWS, |next_key, value| {
                let Some(id) = ids.next() else { return false };
                if id % 4096 == 0 {
                    proceed = progress(id);
                    if proceed.is_err() {
                        return false;
                    }
                }
                next_key.clear();
                next_key.extend_from_slice(&key(id));
                value.resize(size, 0);
                write_value(value, id, 0);
                true
            });
            loaded.and(proceed)
        }
        Order::Shuffled => {
            let half = half_bits(rows);
            let shuffled = |n| {
                let mut id = feistel(n, half);
                while id >= rows {
                    id = feistel(id, half);
                }
                id
            };
            insert(session, rows, size, shuffled, &mut progress)
        }
        Order::Inserted => insert(session, rows, size, |n| n, &mut progress),
    };
    match loaded.and_then(|()| session.commit()) {
        Ok(()) => {
            // They are there: it is too late to end the load.
            let _ = progress(rows);
            Ok(())
        }
        Err(error) => {
            session.rollback()?;
            Err(error)
        }
    }
}

/// Inserts every row once, in the order that `nth` gives.
fn insert<S: Session>(
    session: &mut S,
    rows: u64,
    size: usize,
    nth: impl Fn(u64) -> u64,
    progress: &mut impl FnMut(u64) -> Result<()>,
) -> Result<()> {
    let mut value = vec![0; size];
    for n in 0..rows {
        if n % 4096 == 0 {
            progress(n)?;
        }
        let id = nth(n);
        write_value(&mut value, id, 0);
        session.insert(ROWS, &key(id), &value)?;
    }
    Ok(())
}

/// Half the bits of the numbers below `rows`.
fn half_bits(rows: u64) -> u32 {
    (64 - rows.saturating_sub(1).leading_zeros())
        .div_ceil(2)
        .max(1)
}

/// A permutation of the numbers of `2 * half` bits by a four-round Feistel network. Walked on while it leaves the range, it is one of
/// `0..rows`: no table of keys.
fn feistel(n: u64, half: u32) -> u64 {
    let mask = (1 << half) - 1;
    let (mut left, mut right) = (n >> half, n & mask);
    for round in 1..=4_u64 {
        let mixed = (right ^ (round << 40)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (left, right) = (right, left ^ ((mixed >> 29) & mask));
    }
    (left << half) | right
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shuffled_order_has_no_runs() {
        let half = 8;
        let next_to = (1..50_000_u64)
            .filter(|&n| feistel(n, half).abs_diff(feistel(n - 1, half)) < 16)
            .count();
        assert!(next_to < 1000, "{next_to} neighbours");
    }
}
