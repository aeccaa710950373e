//! Does an index hold exactly the entries of its table's rows?
//!
//! Both are walked once in their own order, and sums of hashes of (entry, primary key) are compared: equal sums and
//! counts of different sets have a chance of 2^-64 for sums of 64-bit hashes that nobody chose. Only if they
//! differ, entries are looked up one by one to name those that are wrong.

use super::walk::{is_damage, shown};
use crate::error::Result;
use std::hash::{DefaultHasher, Hasher};
use vellum_base::{PageId, Result as StorageResult};
use vellum_btree::Tree;
use vellum_btree::overflow::{ChainRef, Reader};
use vellum_table::KeyDescription;
use vellum_version::row::{Header, newest};

/// A set of entries, as far as sums tell: what an index has, or what its table's rows make, in whatever order they come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EntrySums {
    /// How many there are.
    pub count: u64,
    hashes: u64,
}

impl EntrySums {
    /// Takes one in: its key, and what it says of the row that it is about.
    pub fn add(&mut self, entry: &[u8], primary: &[u8]) {
        let mut hasher = DefaultHasher::new();
        // The length keeps the two parts apart.
        hasher.write_u64(entry.len() as u64);
        hasher.write(entry);
        hasher.write(primary);
        self.count += 1;
        self.hashes = self.hashes.wrapping_add(hasher.finish());
    }
}

/// Names what an index lacks and what it has too much. The trees are well formed.
pub(super) fn explain(
    table: &Tree,
    index: &Tree,
    description: &KeyDescription,
    find: &mut dyn FnMut(PageId, &str, (u64, u64)),
) -> Result<()> {
    let (mut columns, mut value, mut other) = (Vec::new(), Vec::new(), Vec::new());
    let most = description.value_bytes();
    each_live(table, &mut |page, key, header, body| {
        if !read_value(table, header, body, most, &mut value)?
            || !description.entry(key, &value, &mut columns)
        {
            return Ok(());
        }
        if live_body(index, &columns, &mut other)?.is_none_or(|(_, body)| body != key) {
            find(page, &format!("entry of row {}", shown(key)), (1, 0));
        }
        Ok(())
    })?;
    each_live(index, &mut |page, entry, _, primary| {
        let agrees = match live_body(table, primary, &mut other)? {
            None => false,
            Some((header, body)) => {
                read_value(table, &header, body, most, &mut value)?
                    && description.entry(primary, &value, &mut columns)
                    && columns == entry
            }
        };
        if !agrees {
            find(page, &format!("row of entry {}", shown(entry)), (1, 0));
        }
        Ok(())
    })
}

/// Calls `each` for every live row of a well-formed tree.
fn each_live(
    tree: &Tree,
    each: &mut dyn FnMut(PageId, &[u8], &Header, &[u8]) -> StorageResult<()>,
) -> Result<()> {
    tree.verify_rows(
        &mut |_| true,
        &mut |_| {},
        &mut |page, key, payload| match newest(payload) {
            Some((header, body)) if !header.shape.tombstone => each(page, key, &header, body),
            _ => Ok(()),
        },
    )?;
    Ok(())
}

/// Header and body of a live row.
fn live_body<'r>(
    tree: &Tree,
    key: &[u8],
    row: &'r mut Vec<u8>,
) -> StorageResult<Option<(Header, &'r [u8])>> {
    if !tree.get(key, row)? {
        return Ok(None);
    }
    Ok(newest(row).filter(|(header, _)| !header.shape.tombstone))
}

/// Puts the value of a row into `value`, or what of it makes an entry: its first `most` bytes at least; false if it is damaged.
fn read_value(
    tree: &Tree,
    header: &Header,
    body: &[u8],
    most: usize,
    value: &mut Vec<u8>,
) -> StorageResult<bool> {
    value.clear();
    if !header.shape.overflow {
        value.extend_from_slice(body);
        return Ok(true);
    }
    let Some(chain) = ChainRef::decode(body) else {
        return Ok(false);
    };
    match Reader::new(tree.context(), chain).read_start(most, value) {
        Ok(()) => Ok(true),
        Err(error) if is_damage(&error) => Ok(false),
        Err(error) => Err(error),
    }
}
