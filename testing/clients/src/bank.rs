//! Transfers between accounts; the total is constant in every snapshot.
//!
//! What a transfer moves follows from its number, which is also a row of a table, so that the balances in the end are known exactly.
//!
//! Recorded: `["a","transfers",number]` for a transfer; `["r","total",[sum]]` for a look at all accounts, `["r","transfers",[…]]` and
//! `["r","balances",[…]]` in the end.
//!
//! Invariants, judged:
//! - B1 Every total is what was there in the beginning.
//! - B2 A transfer that was acknowledged is there in the end, one that was rolled back is not.
//! - B3 The balances are those of the transfers that are there.

use crate::client::{Client, Decision, Gone, How};
use crate::list::make_table;
use crate::run::Workload;
use std::collections::BTreeSet;
use vellum::{Database, Result, Table, Transaction};
use vellum_base::random::Random;
use vellum_history::{Event, Key, Op, Phase};

/// Accounts, numbered from zero.
pub const ACCOUNTS: u64 = 24;
/// What each begins with.
pub const START: u64 = 1000;
/// Name of the accounts, in histories too.
pub const BALANCES: &str = "balances";
/// Name of the transfers, in histories too.
pub const TRANSFERS: &str = "transfers";
/// Name of a look at the sum of all accounts, in histories.
pub const TOTAL: &str = "total";
/// A row is longer than its balance, so that a change touches a part of it.
const ROW_BYTES: usize = 120;

/// The workload.
#[derive(Clone, Copy, Debug)]
pub struct Bank;

fn total() -> u64 {
    ACCOUNTS * START
}

/// What a transfer moves: from, to, how much.
pub fn transfer_of(number: u64) -> (u64, u64, u64) {
    let mut random = Random::new(number);
    let from = random.below(ACCOUNTS);
    let to = (from + 1 + random.below(ACCOUNTS - 1)) % ACCOUNTS;
    (from, to, random.below(50))
}

fn balance_of(row: &[u8]) -> u64 {
    row.first_chunk()
        .map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// Every balance in the order of the accounts, by a scan in either direction.
fn balances(transaction: &Transaction, table: &Table, forward: bool) -> Result<Vec<u64>> {
    let mut cursor = transaction.cursor(table, ..)?;
    let mut balances = Vec::new();
    if forward {
        while let Some((_, row)) = cursor.next()? {
            balances.push(balance_of(row));
        }
    } else {
        while let Some((_, row)) = cursor.prev()? {
            balances.push(balance_of(row));
        }
        balances.reverse();
    }
    Ok(balances)
}

fn look(transaction: &Transaction, random: &mut Random, done: &mut Vec<Op>) -> Result<()> {
    let table = transaction.table(BALANCES)?;
    let balances = match random.below(3) {
        0 => {
            let mut balances = Vec::new();
            for account in 0..ACCOUNTS {
                let found = transaction.get(&table, &account.to_be_bytes(), balance_of)?;
                balances.push(found.unwrap_or_default());
            }
            balances
        }
        way => balances(transaction, &table, way == 1)?,
    };
    let sum = balances
        .iter()
        .fold(0_u64, |sum, balance| sum.wrapping_add(*balance));
    done.push(Op::Read(Key::Text(TOTAL.into()), Some(vec![sum])));
    Ok(())
}

impl Bank {
    fn transfer(client: &mut Client<'_>) -> std::result::Result<bool, Gone> {
        let number = client.life.value();
        let announced = vec![Op::Append(Key::Text(TRANSFERS.into()), number)];
        let op = announced[0].clone();
        let in_place = client.random.chance(2, 3);
        client.transact(How::SNAPSHOT, announced, |transaction, _, done| {
            let table = transaction.table(BALANCES)?;
            let (from, to, amount) = transfer_of(number);
            for (account, change) in [(from, amount.wrapping_neg()), (to, amount)] {
                let key = account.to_be_bytes();
                let add = |row: &mut [u8]| {
                    let balance = balance_of(row).wrapping_add(change);
                    row[..8].copy_from_slice(&balance.to_le_bytes());
                };
                if in_place {
                    transaction.update(&table, &key, &[0..8], add)?;
                } else {
                    let mut row = Vec::new();
                    transaction.get_into(&table, &key, &mut row)?;
                    add(&mut row);
                    transaction.replace(&table, &key, &row)?;
                }
            }
            let transfers = transaction.table(TRANSFERS)?;
            transaction.insert(&transfers, &number.to_be_bytes(), b"")?;
            done.push(op);
            Ok(Decision::Commit)
        })
    }
}

impl Workload for Bank {
    fn prepare(&self, database: &Database) -> Result<()> {
        make_table(database, BALANCES)?;
        make_table(database, TRANSFERS)?;
        database.retry(|transaction| {
            let table = transaction.table(BALANCES)?;
            if transaction.count(&table, ..)? > 0 {
                return Ok(());
            }
            let mut row = [7; ROW_BYTES];
            row[..8].copy_from_slice(&START.to_le_bytes());
            for account in 0..ACCOUNTS {
                transaction.insert(&table, &account.to_be_bytes(), &row)?;
            }
            Ok(())
        })
    }

    fn step(&self, client: &mut Client<'_>) -> std::result::Result<(), Gone> {
        let looks = if client.holds() { 2 } else { 10 };
        if client.random.chance(1, looks) {
            return client.look(200, look);
        }
        Self::transfer(client).map(drop)
    }

    fn read_all(&self, client: &mut Client<'_>, _: &[Event]) -> std::result::Result<(), Gone> {
        let read = client.transact(How::READ_ONLY, Vec::new(), |transaction, _, done| {
            let balances = balances(transaction, &transaction.table(BALANCES)?, true)?;
            done.push(Op::Read(Key::Text(BALANCES.into()), Some(balances)));
            let transfers = transaction.table(TRANSFERS)?;
            let mut cursor = transaction.cursor(&transfers, ..)?;
            let mut numbers = Vec::new();
            while let Some((key, _)) = cursor.next()? {
                numbers.push(
                    key.first_chunk()
                        .map_or(0, |bytes| u64::from_be_bytes(*bytes)),
                );
            }
            done.push(Op::Read(Key::Text(TRANSFERS.into()), Some(numbers)));
            Ok(Decision::Commit)
        });
        read.map(drop)
    }

    fn judge(&self, events: Vec<Event>) -> std::result::Result<String, String> {
        let (mut acknowledged, mut rolled_back) = (BTreeSet::new(), BTreeSet::new());
        let (mut looks, mut found, mut there) = (0, None, None);
        for event in &events {
            for op in &event.ops {
                match (op, event.f) {
                    (Op::Append(_, number), Phase::Ok) => drop(acknowledged.insert(*number)),
                    (Op::Append(_, number), Phase::Fail) => drop(rolled_back.insert(*number)),
                    (Op::Read(Key::Text(name), Some(values)), Phase::Ok) => match &**name {
                        TOTAL if *values == [total()] => looks += 1,
                        TOTAL => return Err(format!("B1: {event:?}, not {}", total())),
                        BALANCES => found = Some(values),
                        _ => there = Some(values.iter().copied().collect::<BTreeSet<u64>>()),
                    },
                    _ => {}
                }
            }
        }
        let (Some(found), Some(there)) = (found, there) else {
            return Err("nobody read everything in the end".into());
        };
        if let Some(lost) = acknowledged.difference(&there).next() {
            return Err(format!("B2: transfer {lost} was acknowledged and is lost"));
        }
        if let Some(number) = there.intersection(&rolled_back).next() {
            return Err(format!(
                "B2: transfer {number} was rolled back and is there"
            ));
        }
        let mut expected = vec![START; ACCOUNTS as usize];
        for number in &there {
            let (from, to, amount) = transfer_of(*number);
            let change = |account: &mut u64, by: u64| *account = account.wrapping_add(by);
            change(&mut expected[from as usize], amount.wrapping_neg());
            change(&mut expected[to as usize], amount);
        }
        if *found != expected {
            return Err(format!(
                "B3: balances {found:?}, the transfers say {expected:?}"
            ));
        }
        let unknown = there.difference(&acknowledged).count();
        Ok(format!(
            "{} transfers acknowledged, {} rolled back, {unknown} more there; {looks} looks",
            acknowledged.len(),
            rolled_back.len()
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(i: u64, f: Phase, ops: Vec<Op>) -> Event {
        let lvl = None;
        Event {
            i,
            p: i,
            t: i,
            f,
            ts: 0,
            lvl,
            ops,
        }
    }

    fn text(name: &str, values: &[u64]) -> Op {
        Op::Read(Key::Text(name.into()), Some(values.to_vec()))
    }

    /// One transfer acknowledged, one rolled back.
    fn right() -> Vec<Event> {
        let append = |number| vec![Op::Append(Key::Text(TRANSFERS.into()), number)];
        let mut balances = vec![START; ACCOUNTS as usize];
        let (from, to, amount) = transfer_of(1);
        balances[from as usize] -= amount;
        balances[to as usize] += amount;
        vec![
            event(0, Phase::Ok, append(1)),
            event(1, Phase::Fail, append(2)),
            event(2, Phase::Ok, vec![text("total", &[total()])]),
            event(
                3,
                Phase::Ok,
                vec![text(BALANCES, &balances), text(TRANSFERS, &[1])],
            ),
        ]
    }

    #[test]
    fn each_broken_invariant_is_named() {
        assert!(Bank.judge(right()).is_ok(), "{:?}", Bank.judge(right()));
        let (from, ..) = transfer_of(1);
        type Break = (&'static str, Box<dyn Fn(&mut Vec<Event>)>);
        let breaks: [Break; 4] = [
            (
                "B1",
                Box::new(|events| events[2].ops = vec![text("total", &[total() - 1])]),
            ),
            (
                "B2",
                Box::new(|events| events[3].ops[1] = text(TRANSFERS, &[])),
            ),
            (
                "B2",
                Box::new(|events| events[3].ops[1] = text(TRANSFERS, &[1, 2])),
            ),
            (
                "B3",
                Box::new(move |events| {
                    if let Op::Read(_, Some(values)) = &mut events[3].ops[0] {
                        values[from as usize] += 1;
                    }
                }),
            ),
        ];
        for (name, spoil) in breaks {
            let mut events = right();
            spoil(&mut events);
            let error = Bank.judge(events).unwrap_err();
            assert!(error.starts_with(name), "{name}: {error}");
        }
    }
}
