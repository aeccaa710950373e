//! Delivery (clause 2.7): the oldest open order of each of the ten districts, in one transaction.

use super::DISTRICTS;
use super::schema::*;
use crate::engine::{Direction, EngineError, Result, Session, TxOptions};
use crate::field::exact_mut;

pub(super) fn run<S: Session>(session: &mut S, w: u32, carrier: u8, now: u64) -> Result<()> {
    session.begin(TxOptions::READ_WRITE)?;
    // Step by step for all districts, so that their pages can be asked for together.
    let mut orders = [None; DISTRICTS as usize];
    for (d, order) in (1..=DISTRICTS).zip(&mut orders) {
        *order = take_oldest(session, w, d)?;
    }
    // Clause 2.7.4.2: a district without an open order is skipped.
    let open = || {
        (1..=DISTRICTS)
            .zip(orders)
            .filter_map(|(d, o)| Some((d, o?)))
    };

    let keys: Vec<_> = open()
        .map(|(d, o)| (order_key(w, d, o), order_line_key(w, d, o, 1)))
        .collect();
    session.prefetch(
        keys.iter()
            .flat_map(|(order, line)| [(ORDER, &order[..]), (ORDER_LINE, &line[..])]),
    )?;
    let mut owed = Vec::with_capacity(orders.len());
    for (d, o) in open() {
        let (c, total) = deliver(session, w, d, o, carrier, now)?;
        owed.push((customer_key(w, d, c), total));
    }

    session.prefetch(owed.iter().map(|(key, _)| (CUSTOMER, &key[..])))?;
    let changed = [customer::BALANCE.range(), customer::DELIVERY_CNT.range()];
    for (key, total) in owed {
        let found = session.update(CUSTOMER, &key, &changed, |row| {
            let row = exact_mut::<{ customer::LENGTH }>(row);
            customer::BALANCE.change(row, |balance| balance.wrapping_add(total));
            customer::DELIVERY_CNT.change(row, |count| count.wrapping_add(1));
        })?;
        if !found {
            return Err(EngineError::missing(CUSTOMER));
        }
    }
    session.commit()
}

/// Deletes a district's oldest open order from the list of open ones; its number, if there is one.
fn take_oldest<S: Session>(session: &mut S, w: u32, d: u8) -> Result<Option<u32>> {
    let prefix = district_key(w, d);
    let mut oldest = None;
    session.scan(
        NEW_ORDER,
        &order_key(w, d, 0),
        Direction::Forward,
        |key, _| {
            oldest = if key.starts_with(&prefix) {
                last_number(key)
            } else {
                None
            };
            false
        },
    )?;
    match oldest {
        Some(o) if !session.delete(NEW_ORDER, &order_key(w, d, o))? => {
            Err(EngineError::missing(NEW_ORDER))
        }
        oldest => Ok(oldest),
    }
}

/// Notes carrier and date in an order and its lines; returns its customer and what it costs.
fn deliver<S: Session>(
    session: &mut S,
    w: u32,
    d: u8,
    o: u32,
    carrier: u8,
    now: u64,
) -> Result<(u32, i64)> {
    let (mut c, mut count) = (0, 0);
    let found = session.update(
        ORDER,
        &order_key(w, d, o),
        &[order::CARRIER_ID.range()],
        |row| {
            let row = exact_mut::<{ order::LENGTH }>(row);
            c = order::C_ID.get(row);
            count = order::OL_CNT.get(row);
            order::CARRIER_ID.set(row, carrier);
        },
    )?;
    if !found {
        return Err(EngineError::missing(ORDER));
    }
    let mut total = 0;
    for line in 1..=count {
        let mut amount = 0;
        let key = order_line_key(w, d, o, line);
        let found = session.update(ORDER_LINE, &key, &[order_line::DELIVERY_D.range()], |row| {
            let row = exact_mut::<{ order_line::LENGTH }>(row);
            amount = order_line::AMOUNT.get(row);
            order_line::DELIVERY_D.set(row, now);
        })?;
        if !found {
            return Err(EngineError::missing(ORDER_LINE));
        }
        total += amount;
    }
    Ok((c, total))
}
