//! Rows as text.

use crate::args::{DumpOptions, Range};
use crate::escape;
use crate::exit::Failure;
use crate::relations::Relations;
use std::io::Write;
use std::ops::Bound;
use vellum::{Database, Transaction, TransactionOptions};
use vellum_sql::StoredRelation;

/// Prints what was asked for, in one snapshot.
pub fn write(
    out: &mut dyn Write,
    database: &Database,
    what: &DumpOptions,
    range: &Range,
) -> Result<(), Failure> {
    let transaction = database.begin_with(TransactionOptions::default().read_only(true))?;
    let mut names = transaction.tables()?;
    // What stands in the engine's tables can be printed, whatever the catalog is like.
    let relations = Relations::of(database).unwrap_or_default();
    if let Some(name) = &what.table {
        let storage = match names.contains(name) {
            true => None,
            false => relations.storage_of(name),
        };
        names = vec![storage.unwrap_or(name).to_owned()];
    }
    let mut all = true;
    for name in names {
        if what.table.is_none() {
            write!(out, "# table {}", name.escape_debug())?;
            if let Some(StoredRelation { table, index, .. }) = relations.get(&name) {
                let of = |index: &String| format!(", index {}", index.escape_debug());
                let index = index.as_ref().map(of).unwrap_or_default();
                write!(out, " ({}{index})", table.escape_debug())?;
            }
            writeln!(out)?;
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
