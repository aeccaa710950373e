//! The accounts, and the list beside each of them: who changed it, in order.
//!
//! Each change of an account appends a number of its own to the account's list, in the same transaction. So every look can be judged as a whole: an
//! account is what the last of its list made it ([`Written`]), and who is in the list, in which order, is what the checker of histories asks.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use vellum::{Database, KeyDescription, KeyPart, Result, Source, Transaction};
use vellum_history::Op;

/// How many there are.
pub const ACCOUNTS: u32 = 8;
pub(crate) const TABLE: &str = "accounts";
const INDEX: &str = "by owner";
const LISTS: &str = "changes";
/// What every account has at first.
const FIRST: u64 = 100;
/// Bytes of a row: balance, owner, and enough that a leaf holds only a few.
const ROW_BYTES: usize = 400;

fn row(number: u32, balance: u64) -> Vec<u8> {
    let mut row = vec![number as u8; ROW_BYTES];
    row[..8].copy_from_slice(&balance.to_be_bytes());
    row
}

fn balance(row: &[u8]) -> u64 {
    row.first_chunk()
        .map_or(0, |bytes| u64::from_be_bytes(*bytes))
}

/// What each change made of its account, committed or not; `None`: it was deleted.
#[derive(Debug, Default)]
pub struct Written(Mutex<Changes>);

#[derive(Debug, Default)]
struct Changes {
    next: u64,
    by: HashMap<(u32, u64), Option<u64>>,
}

impl Written {
    /// A number that nobody else gets.
    fn note(&self, account: u32, balance: Option<u64>) -> u64 {
        // Nothing that a schedule drives happens while it is held.
        let mut changes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        changes.next += 1;
        let number = changes.next;
        changes.by.insert((account, number), balance);
        number
    }

    /// What an account is after the last of its list.
    fn after(&self, account: u32, list: &[u64]) -> Option<u64> {
        let changes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match list.last() {
            None => Some(FIRST),
            Some(last) => *changes
                .by
                .get(&(account, *last))
                .expect("C5: it was written"),
        }
    }
}

/// Makes the accounts.
pub(crate) fn prepare(database: &Database) -> Result<()> {
    database.retry(|transaction| {
        let table = transaction.create_table(TABLE)?;
        transaction.create_table(LISTS)?;
        let owner = KeyPart {
            source: Source::Value,
            start: 8,
            end: Some(12),
        };
        let key = KeyDescription::new(vec![owner], false).expect("a key of one part");
        transaction.create_index(&table, INDEX, key)?;
        for number in 0..ACCOUNTS {
            transaction.insert(&table, &number.to_be_bytes(), &row(number, FIRST))?;
        }
        Ok(())
    })
}

/// Looks at everything in several ways; what was read of the lists.
///
/// # Panics
/// If C1, C3 or C5 does not hold.
pub(crate) fn look(transaction: &Transaction, written: &Written) -> Result<Vec<Op>> {
    let table = transaction.table(TABLE)?;
    let mut cursor = transaction.cursor(&table, ..)?;
    let mut forward = Vec::new();
    while let Some((key, row)) = cursor.next()? {
        forward.push((key.to_vec(), balance(row)));
    }
    let sum: u64 = forward.iter().map(|(_, balance)| balance).sum();
    assert_eq!(sum, u64::from(ACCOUNTS) * FIRST, "C1: {forward:?}");
    let mut cursor = transaction.cursor(&table, ..)?;
    let mut backward = Vec::new();
    while let Some((key, row)) = cursor.prev()? {
        backward.push((key.to_vec(), balance(row)));
    }
    backward.reverse();
    assert_eq!(forward, backward, "C1: both ways");
    let mut found: HashMap<Vec<u8>, u64> = HashMap::new();
    for (key, balance_there) in forward {
        let by_key = transaction.get(&table, &key, balance)?;
        assert_eq!(by_key, Some(balance_there), "C1: by key {key:?}");
        found.insert(key, balance_there);
    }
    let index = transaction.index(&table, INDEX)?;
    let mut cursor = transaction.index_cursor(&index, ..)?;
    let mut entries = 0;
    while cursor.next()?.is_some() {
        entries += 1;
    }
    assert_eq!(entries, found.len(), "C3");
    let mut read = Vec::new();
    for account in 0..ACCOUNTS {
        let list = list(transaction, account)?;
        let there = found.get(account.to_be_bytes().as_slice()).copied();
        assert_eq!(
            there,
            written.after(account, &list),
            "C5: account {account} after {list:?}"
        );
        read.push(Op::read(u64::from(account), list));
    }
    Ok(read)
}

fn list(transaction: &Transaction, account: u32) -> Result<Vec<u64>> {
    let lists = transaction.table(LISTS)?;
    let numbers = |bytes: &[u8]| {
        let chunks = bytes.as_chunks::<8>().0.iter();
        chunks.map(|bytes| u64::from_be_bytes(*bytes)).collect()
    };
    let list = transaction.get(&lists, &account.to_be_bytes(), numbers)?;
    Ok(list.unwrap_or_default())
}

/// Notes that an account is something else now.
fn change(
    transaction: &Transaction,
    written: &Written,
    account: u32,
    balance: Option<u64>,
    done: &mut Vec<Op>,
) -> Result<()> {
    let number = written.note(account, balance);
    let mut list = list(transaction, account)?;
    list.push(number);
    let bytes: Vec<u8> = list
        .iter()
        .flat_map(|number| number.to_be_bytes())
        .collect();
    transaction.upsert(&transaction.table(LISTS)?, &account.to_be_bytes(), &bytes)?;
    done.push(Op::append(u64::from(account), number));
    Ok(())
}

/// Moves an amount from one account to another; one account in three is emptied, and deleted, and made anew where it gets something. What it appended is noted in `done`.
pub(crate) fn transfer(
    transaction: &Transaction,
    written: &Written,
    (from, to): (u32, u32),
    amount: u64,
    done: &mut Vec<Op>,
) -> Result<()> {
    let table = transaction.table(TABLE)?;
    let (from, to) = (from % ACCOUNTS, to % ACCOUNTS);
    let key = |number: u32| number.to_be_bytes();
    let there = transaction.get(&table, &key(from), balance)?;
    let Some(there) = there else { return Ok(()) };
    let amount = if from % 3 == 0 {
        there
    } else {
        amount.min(there)
    };
    let left = (amount < there).then(|| there - amount);
    match left {
        None => assert!(transaction.delete(&table, &key(from))?, "it was there"),
        Some(left) => {
            let less = |row: &mut [u8]| row[..8].copy_from_slice(&left.to_be_bytes());
            assert!(transaction.update(&table, &key(from), &[0..8], less)?);
        }
    }
    change(transaction, written, from, left, done)?;
    // Read after the first write: the same account may give and take.
    let has = transaction.get(&table, &key(to), balance)?;
    let gets = has.unwrap_or_default() + amount;
    match has {
        Some(_) => drop(transaction.upsert(&table, &key(to), &row(to, gets))?),
        None => transaction.insert(&table, &key(to), &row(to, gets))?,
    }
    change(transaction, written, to, Some(gets), done)
}
