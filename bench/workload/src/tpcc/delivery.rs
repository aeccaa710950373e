//! Delivery (clause 2.7): the oldest open order of each of the ten districts, in one transaction.

use super::DISTRICTS;
use super::schema::*;
use crate::engine::{Direction, EngineError, Result, Session, TxOptions};
use crate::field::exact_mut;

pub(super) fn run<S: Session>(session: &mut S, w: u32, carrier: u8, now: u64) -> Result<()> {
    session.begin(TxOptions::READ_WRITE)?;
    for d in 1..=DISTRICTS {
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
        // Clause 2.7.4.2: a district without an open order is skipped.
        let Some(o) = oldest else { continue };
        if !session.delete(NEW_ORDER, &order_key(w, d, o))? {
            return Err(EngineError::missing(NEW_ORDER));
        }

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
            let found =
                session.update(ORDER_LINE, &key, &[order_line::DELIVERY_D.range()], |row| {
                    let row = exact_mut::<{ order_line::LENGTH }>(row);
                    amount = order_line::AMOUNT.get(row);
                    order_line::DELIVERY_D.set(row, now);
                })?;
            if !found {
                return Err(EngineError::missing(ORDER_LINE));
            }
            total += amount;
        }

        let changed = [customer::BALANCE.range(), customer::DELIVERY_CNT.range()];
        let found = session.update(CUSTOMER, &customer_key(w, d, c), &changed, |row| {
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
