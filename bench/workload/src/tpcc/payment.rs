//! Payment (clause 2.5): a customer pays; warehouse and district count it.

use super::input::Who;
use super::schema::*;
use super::terminal::{Scratch, find_customer};
use crate::engine::{EngineError, Result, Session, TxOptions};
use crate::field::exact_mut;
use std::io::Write;

/// What is paid by whom to whom.
pub(super) struct Payment {
    pub(super) w: u32,
    pub(super) d: u8,
    pub(super) c_w: u32,
    pub(super) c_d: u8,
    pub(super) who: Who,
    pub(super) amount: i64,
    pub(super) now: u64,
    pub(super) history: [u8; 12],
}

/// Balance, payment and count stand side by side.
const CUSTOMER_CHANGED: std::ops::Range<usize> =
    customer::BALANCE.range().start..customer::PAYMENT_CNT.range().end;

pub(super) fn run<S: Session>(
    session: &mut S,
    payment: &Payment,
    scratch: &mut Scratch,
) -> Result<()> {
    let &Payment {
        w,
        d,
        c_w,
        c_d,
        amount,
        ..
    } = payment;
    session.begin(TxOptions::READ_WRITE)?;
    // Before the rows that all payments of a warehouse and a district compete for: those are held while nothing is read.
    let c = find_customer(session, c_w, c_d, payment.who, &mut scratch.numbers)?;
    let key = customer_key(c_w, c_d, c);
    session.prefetch([(CUSTOMER, &key[..])])?;

    let mut row = [0; history::LENGTH];
    let found = session.update(
        WAREHOUSE,
        &warehouse_key(w),
        &[warehouse::YTD.range()],
        |warehouse| {
            let warehouse = exact_mut::<{ warehouse::LENGTH }>(warehouse);
            warehouse::YTD.change(warehouse, |ytd| ytd.wrapping_add(amount));
            let name = warehouse::NAME.padded(warehouse);
            history::DATA.padded_mut(&mut row)[..10].copy_from_slice(name);
        },
    )?;
    if !found {
        return Err(EngineError::missing(WAREHOUSE));
    }
    let found = session.update(
        DISTRICT,
        &district_key(w, d),
        &[district::YTD.range()],
        |district| {
            let district = exact_mut::<{ district::LENGTH }>(district);
            district::YTD.change(district, |ytd| ytd.wrapping_add(amount));
            let name = district::NAME.padded(district);
            history::DATA.padded_mut(&mut row)[14..].copy_from_slice(name);
        },
    )?;
    if !found {
        return Err(EngineError::missing(DISTRICT));
    }

    let mut bad_credit = false;
    let found = session.update(CUSTOMER, &key, &[CUSTOMER_CHANGED], |customer| {
        let customer = exact_mut::<{ customer::LENGTH }>(customer);
        customer::BALANCE.change(customer, |balance| balance.wrapping_sub(amount));
        customer::YTD_PAYMENT.change(customer, |paid| paid.wrapping_add(amount));
        customer::PAYMENT_CNT.change(customer, |count| count.wrapping_add(1));
        bad_credit = customer::CREDIT.padded(customer) == b"BC";
    })?;
    if !found {
        return Err(EngineError::missing(CUSTOMER));
    }
    if bad_credit {
        // One customer in ten: a second, longer update instead of a long one for everybody.
        session.update(CUSTOMER, &key, &[customer::DATA.range()], |customer| {
            let customer = exact_mut::<{ customer::LENGTH }>(customer);
            note_payment(customer::DATA.padded_mut(customer), payment, c);
        })?;
    }

    let data = history::DATA.padded_mut(&mut row);
    // Names may be shorter than their columns; the four blanks stand between padded names.
    data[10..14].fill(b' ');
    for byte in data.iter_mut().filter(|byte| **byte == 0) {
        *byte = b' ';
    }
    history::C_W_ID.set(&mut row, c_w);
    history::C_D_ID.set(&mut row, c_d);
    history::C_ID.set(&mut row, c);
    history::W_ID.set(&mut row, w);
    history::D_ID.set(&mut row, d);
    history::DATE.set(&mut row, payment.now);
    history::AMOUNT.set(&mut row, amount);
    session.insert(HISTORY, &payment.history, &row)?;
    session.commit()
}

/// Clause 2.5.2.2: writes the payment in front of a bad customer's data, whose end falls off.
fn note_payment(data: &mut [u8], payment: &Payment, c: u32) {
    let mut note = [0; 64];
    let mut rest = &mut note[..];
    let &Payment {
        w,
        d,
        c_w,
        c_d,
        amount,
        ..
    } = payment;
    let (whole, cents) = (amount / 100, amount % 100);
    write!(rest, "{c} {c_d} {c_w} {d} {w} {whole}.{cents:02} ")
        .expect("five numbers of at most ten digits and an amount fit into 64 bytes");
    let length = 64 - rest.len();
    data.copy_within(..data.len() - length, length);
    data[..length].copy_from_slice(&note[..length]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn note_goes_in_front_and_the_end_falls_off() {
        let payment = Payment {
            w: 7,
            d: 3,
            c_w: u32::MAX,
            c_d: 10,
            who: Who::Id(1),
            amount: 500_005,
            now: 1,
            history: [0; 12],
        };
        let mut data = [b'x'; 100];
        data[99] = b'e';
        note_payment(&mut data, &payment, 2999);
        assert!(data.starts_with(b"2999 10 4294967295 3 7 5000.05 x"));
        assert!(!data.contains(&b'e') && data.len() == 100);
    }
}
