//! New-order (clause 2.4): a customer orders five to fifteen items.
//!
//! The district comes first among the writes, since its counter is what two new orders of one
//! district compete for: the loser has done almost nothing yet.

use super::input::Line;
use super::random::is_original;
use super::schema::*;
use super::terminal::{Outcome, Scratch};
use crate::engine::{EngineError, Result, Session, TxOptions};
use crate::field::{exact, exact_mut};

const STOCK_CHANGED: std::ops::Range<usize> =
    stock::QUANTITY.range().start..stock::REMOTE_CNT.range().end;

/// Most lines of an order (clause 2.4.1.3).
const LINES_MAX: usize = 15;

pub(super) fn run<S: Session>(
    session: &mut S,
    w: u32,
    d: u8,
    c: u32,
    lines: &[Line],
    now: u64,
    scratch: &mut Scratch,
) -> Result<Outcome> {
    session.begin(TxOptions::READ_WRITE)?;
    // The order names its customer and all its items: what the terminal knows, the database may know.
    let mut stocks = [[0; 8]; LINES_MAX];
    for (key, line) in stocks.iter_mut().zip(lines) {
        *key = stock_key(line.supply, line.item);
    }
    let stocks = &stocks[..lines.len().min(LINES_MAX)];
    let customer = customer_key(w, d, c);
    let last_order = customer_order_key(w, d, c, u32::MAX);
    let mut items = [[0; 4]; LINES_MAX];
    for (key, line) in items.iter_mut().zip(lines) {
        *key = item_key(line.item);
    }
    let items = items[..stocks.len()].iter().map(|key| (ITEM, &key[..]));
    let rows = stocks.iter().map(|key| (STOCK, &key[..])).chain(items);
    session.prefetch(rows.chain([
        (CUSTOMER, &customer[..]),
        (ORDER_BY_CUSTOMER, &last_order[..]),
    ]))?;
    let w_tax = session
        .get_with(WAREHOUSE, &warehouse_key(w), |row| {
            warehouse::TAX.get(exact::<{ warehouse::LENGTH }>(row))
        })?
        .ok_or_else(|| EngineError::missing(WAREHOUSE))?;

    let (mut o, mut d_tax) = (0, 0);
    let found = session.update(
        DISTRICT,
        &district_key(w, d),
        &[district::NEXT_O_ID.range()],
        |row| {
            let row = exact_mut::<{ district::LENGTH }>(row);
            o = district::NEXT_O_ID.get(row);
            d_tax = district::TAX.get(row);
            district::NEXT_O_ID.set(row, o + 1);
        },
    )?;
    if !found {
        return Err(EngineError::missing(DISTRICT));
    }

    let (discount, credit, last) = session
        .get_with(CUSTOMER, &customer, |row| {
            let row = exact::<{ customer::LENGTH }>(row);
            let last = customer::LAST.padded(row)[0];
            (
                customer::DISCOUNT.get(row),
                customer::CREDIT.padded(row)[0],
                last,
            )
        })?
        .ok_or_else(|| EngineError::missing(CUSTOMER))?;

    let all_local = lines.iter().all(|line| line.supply == w);
    let mut row = [0; order::LENGTH];
    order::OL_CNT.set(&mut row, lines.len() as u8);
    order::ALL_LOCAL.set(&mut row, u8::from(all_local));
    order::C_ID.set(&mut row, c);
    order::ENTRY_D.set(&mut row, now);
    session.insert(ORDER, &order_key(w, d, o), &row)?;
    session.insert(NEW_ORDER, &order_key(w, d, o), &[])?;
    session.insert(ORDER_BY_CUSTOMER, &customer_order_key(w, d, c, o), &[])?;

    let (mut total, mut brands) = (0, 0_u64);
    for (number, line) in (1..).zip(lines) {
        let item = session.get_with(ITEM, &item_key(line.item), |row| {
            let row = exact::<{ item::LENGTH }>(row);
            (item::PRICE.get(row), is_original(item::DATA.padded(row)))
        })?;
        let Some((price, original)) = item else {
            // Clause 2.4.2.3: an unused item number rolls the whole order back.
            session.rollback()?;
            return Ok(Outcome::RolledBack);
        };
        let amount = i64::from(price) * i64::from(line.quantity);

        let mut row = [0; order_line::LENGTH];
        let mut brand = false;
        let supply = stock_key(line.supply, line.item);
        let found = session.update(STOCK, &supply, &[STOCK_CHANGED], |stock| {
            let stock = exact_mut::<{ stock::LENGTH }>(stock);
            take_from_stock(stock, u16::from(line.quantity), line.supply != w);
            brand = original && is_original(stock::DATA.padded(stock));
            let dist = stock_dist(d).padded(stock);
            order_line::DIST_INFO
                .padded_mut(&mut row)
                .copy_from_slice(dist);
        })?;
        if !found {
            return Err(EngineError::missing(STOCK));
        }
        brands += u64::from(brand);
        total += amount;

        order_line::AMOUNT.set(&mut row, amount);
        order_line::I_ID.set(&mut row, line.item);
        order_line::SUPPLY_W_ID.set(&mut row, line.supply);
        order_line::QUANTITY.set(&mut row, line.quantity);
        session.insert(ORDER_LINE, &order_line_key(w, d, o, number), &row)?;
    }
    session.commit()?;

    // What the terminal would show: discounted and taxed total, brands, credit, name.
    let shown =
        total * i64::from(10_000 - discount) / 10_000 * i64::from(10_000 + w_tax + d_tax) / 10_000;
    scratch.seen = scratch
        .seen
        .wrapping_add(shown as u64)
        .wrapping_add(brands + u64::from(credit) + u64::from(last));
    Ok(Outcome::Committed)
}

/// Clause 2.4.2.2: stock that would fall below ten is filled up by 91.
fn take_from_stock(row: &mut [u8; stock::LENGTH], quantity: u16, remote: bool) {
    let before = stock::QUANTITY.get(row);
    let after = if before >= quantity + 10 {
        before - quantity
    } else {
        before + 91 - quantity
    };
    stock::QUANTITY.set(row, after);
    stock::YTD.change(row, |sold| sold.wrapping_add(u32::from(quantity)));
    stock::ORDER_CNT.change(row, |count| count.wrapping_add(1));
    if remote {
        stock::REMOTE_CNT.change(row, |count| count.wrapping_add(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stock_is_filled_up_before_it_falls_below_ten() {
        for (before, quantity, after) in [(20, 10, 10), (19, 10, 100), (10, 1, 100), (100, 3, 97)] {
            let mut row = [0; stock::LENGTH];
            stock::QUANTITY.set(&mut row, before);
            take_from_stock(&mut row, quantity, quantity == 3);
            assert_eq!(stock::QUANTITY.get(&row), after, "{before} - {quantity}");
            assert_eq!(stock::YTD.get(&row), u32::from(quantity));
            assert_eq!(stock::ORDER_CNT.get(&row), 1);
            assert_eq!(stock::REMOTE_CNT.get(&row), u32::from(quantity == 3));
        }
    }
}
