//! Rows as text.

use crate::args::{DumpOptions, Range};
use crate::escape;
use crate::exit::Failure;
use std::io::Write;
use std::ops::Bound;
use vellum::{Database, Transaction, TransactionOptions};

/// Prints what was asked for, in one snapshot.
pub fn write(
    out: &mut dyn Write,
    database: &Database,
    what: &DumpOptions,
    range: &Range,
) -> Result<(), Failure> {
    let transaction = database.begin_with(TransactionOptions::default().read_only(true))?;
    let names = match &what.table {
        Some(name) => vec![name.clone()],
        None => transaction.tables()?,
    };
    let mut all = true;
    for name in names {
        if what.table.is_none() {
            writeln!(out, "# table {}", name.escape_debug())?;
        }
        match write_table(out, &transaction, &name, what, range) {
            Ok(()) => {}
            // Other tables go on behind one that is damaged.
            Err(failure @ Failure::Told { .. }) if what.table.is_none() => {
                crate::complain!("vellum: table {name:?}: {failure}");
                all = false;
            }
            Err(failure) => return Err(failure),
        }
    }
    if all {
        return Ok(());
    }
    Err(Failure::failed("not all rows could be read".to_owned()))
}

fn write_table(
    out: &mut dyn Write,
    transaction: &Transaction,
    name: &str,
    what: &DumpOptions,
    range: &Range,
) -> Result<(), Failure> {
    let print = if what.hex {
        escape::write_hex
    } else {
        escape::write_text
    };
    let table = transaction.table(name)?;
    let mut cursor = transaction.cursor(&table, (borrow(&range.0), borrow(&range.1)))?;
    let mut left = what.limit.unwrap_or(u64::MAX);
    while left > 0 {
        let Some((key, value)) = cursor.next()? else {
            break;
        };
        print(out, key)?;
        out.write_all(b"\t")?;
        print(out, value)?;
        out.write_all(b"\n")?;
        left -= 1;
    }
    Ok(())
}

fn borrow(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    bound.as_ref().map(Vec::as_slice)
}
