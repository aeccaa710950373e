//! Order-status (clause 2.6): what a customer ordered last. Read-only.

use super::input::Who;
use super::schema::*;
use super::terminal::{Scratch, find_customer};
use crate::engine::{Direction, EngineError, Result, Session, TxOptions};
use crate::field::exact;

/// Returns the number of the order.
pub(super) fn run<S: Session>(
    session: &mut S,
    w: u32,
    d: u8,
    who: Who,
    scratch: &mut Scratch,
) -> Result<u32> {
    session.begin(TxOptions::READ_ONLY)?;
    let c = find_customer(session, w, d, who, &mut scratch.numbers)?;
    let prefix = customer_key(w, d, c);
    let from = customer_order_key(w, d, c, u32::MAX);
    session.prefetch([(CUSTOMER, &prefix[..]), (ORDER_BY_CUSTOMER, &from[..])])?;
    let balance = session
        .get_with(CUSTOMER, &prefix, |row| {
            customer::BALANCE.get(exact::<{ customer::LENGTH }>(row))
        })?
        .ok_or_else(|| EngineError::missing(CUSTOMER))?;

    let mut newest = None;
    session.scan(ORDER_BY_CUSTOMER, &from, Direction::Backward, |key, _| {
        newest = if key.starts_with(&prefix) {
            last_number(key)
        } else {
            None
        };
        false
    })?;
    // Every customer has an order from the population on.
    let o = newest.ok_or_else(|| EngineError::missing(ORDER_BY_CUSTOMER))?;
    let prefix = order_key(w, d, o);
    let first_line = order_line_key(w, d, o, 1);
    session.prefetch([(ORDER, &prefix[..]), (ORDER_LINE, &first_line[..])])?;
    let (count, carrier) = session
        .get_with(ORDER, &prefix, |row| {
            let row = exact::<{ order::LENGTH }>(row);
            (order::OL_CNT.get(row), order::CARRIER_ID.get(row))
        })?
        .ok_or_else(|| EngineError::missing(ORDER))?;

    let (mut lines, mut amounts) = (0_u8, 0_i64);
    session.scan(ORDER_LINE, &first_line, Direction::Forward, |key, row| {
        if !key.starts_with(&prefix) {
            return false;
        }
        lines += 1;
        amounts += order_line::AMOUNT.get(exact::<{ order_line::LENGTH }>(row));
        lines < count
    })?;
    session.commit()?;
    if lines != count {
        return Err(EngineError::missing(ORDER_LINE));
    }
    scratch.seen = scratch
        .seen
        .wrapping_add((balance + amounts) as u64 + u64::from(carrier));
    Ok(o)
}
