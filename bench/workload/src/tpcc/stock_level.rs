//! Stock-level (clause 2.8): how many of the items in a district's last 20 orders run low.
//! Read-only.

use super::schema::*;
use super::terminal::Scratch;
use crate::engine::{Direction, EngineError, Result, Session, TxOptions};
use crate::field::exact;

/// Returns the number of items.
pub(super) fn run<S: Session>(
    session: &mut S,
    w: u32,
    d: u8,
    threshold: u16,
    scratch: &mut Scratch,
) -> Result<u32> {
    session.begin(TxOptions::READ_ONLY)?;
    let next = session
        .get_with(DISTRICT, &district_key(w, d), |row| {
            district::NEXT_O_ID.get(exact::<{ district::LENGTH }>(row))
        })?
        .ok_or_else(|| EngineError::missing(DISTRICT))?;

    let end = order_line_key(w, d, next, 0);
    let from = order_line_key(w, d, next.saturating_sub(20), 0);
    let items = &mut scratch.numbers;
    items.clear();
    session.scan(ORDER_LINE, &from, Direction::Forward, |key, row| {
        if key >= &end[..] {
            return false;
        }
        items.push(order_line::I_ID.get(exact::<{ order_line::LENGTH }>(row)));
        true
    })?;
    items.sort_unstable();
    items.dedup();

    let mut low = 0;
    let stocks: Vec<_> = items.iter().map(|&item| stock_key(w, item)).collect();
    session.prefetch(stocks.iter().map(|key| (STOCK, &key[..])))?;
    for &item in items.iter() {
        let quantity = session
            .get_with(STOCK, &stock_key(w, item), |row| {
                stock::QUANTITY.get(exact::<{ stock::LENGTH }>(row))
            })?
            .ok_or_else(|| EngineError::missing(STOCK))?;
        low += u32::from(quantity < threshold);
    }
    session.commit()?;
    scratch.seen = scratch.seen.wrapping_add(u64::from(low));
    Ok(low)
}
