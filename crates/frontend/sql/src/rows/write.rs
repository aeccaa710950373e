//! Changing rows and their index entries together.
//!
//! A change that fails half-way leaves what it did to its statement, which is rolled back as a whole.

use super::part::{Part, computed};
use super::{Shape, entry, primary_key_of};
use crate::catalog::{Catalog, Relation};
use crate::error::{Result, SqlError};
use crate::expr::{Environment, RowRef, Scalar};
use crate::roles::Rights;
use crate::sqlstate;
use crate::system::part_text;
use smallvec::SmallVec;
use vellum::{Blocker, Newest, Transaction};
use vellum_row::{Assigned, Value, ValueRef, compare, show};

/// A unique index has the columns already.
#[derive(Debug)]
pub(crate) struct Duplicate {
    /// Number of the index.
    pub index: usize,
    /// Key of the row that has them.
    pub row_key: Vec<u8>,
    /// Another transaction, which is running, writes that row or its entry: how it ends, and what it does until then, decides whether this is one.
    pub unsettled: Option<Blocker>,
    /// It is the row as the snapshot has it, which has given its columns to another one since: whose writers decide is not known.
    pub outdated: bool,
}

/// Adds a row. `Err(Duplicate)` inside `Ok` if a unique index has its columns: some of it may be written then.
///
/// # Errors
/// Conflicts, limits, storage.
pub(crate) fn insert(
    transaction: &Transaction,
    shape: &Shape,
    values: &[Value],
    key: &mut Vec<u8>,
) -> Result<std::result::Result<(), Duplicate>> {
    let table = shape.table();
    let storage = table.storage.table(transaction)?;
    // Unique indexes first: a duplicate found there has written nothing.
    for (number, index) in table.indexes.iter().enumerate() {
        if index.keeps_apart()
            && index.storage.is_some()
            && let Some(duplicate) = find_duplicate(transaction, shape, number, values)?
        {
            return Ok(Err(duplicate));
        }
    }
    let mut row = Vec::with_capacity(256);
    encode(transaction, shape, values, key, &mut row)?;
    loop {
        match transaction.insert(storage, key, &row) {
            Err(vellum::Error::KeyExists { .. }) if shape.has_key() => {
                // It is committed, or this transaction's: who writes it else is a conflict.
                return Ok(Err(Duplicate {
                    index: 0,
                    row_key: key.clone(),
                    unsettled: None,
                    outdated: false,
                }));
            }
            // No key that the user knows of: any other does as well.
            Err(vellum::Error::KeyExists { .. }) => {
                key_of(transaction, shape, |at| Ok(values[at].as_ref()), key)?;
            }
            done => break done?,
        }
    }
    insert_entries(transaction, shape, values, key, |_| true)
}

/// Adds a row to the load into its table that the transaction has begun: the table has no index beside its key. False if its key does not come
/// behind the last one; it is not added then.
///
/// # Errors
/// Limits, storage: the load is given up.
pub(crate) fn load(
    transaction: &Transaction,
    shape: &Shape,
    values: &[Value],
    key: &mut Vec<u8>,
) -> Result<bool> {
    let mut row = Vec::with_capacity(256);
    encode(transaction, shape, values, key, &mut row)?;
    Ok(transaction.load_row(key, &row)?)
}

/// The key and the bytes of a new row.
fn encode(
    transaction: &Transaction,
    shape: &Shape,
    values: &[Value],
    key: &mut Vec<u8>,
    row: &mut Vec<u8>,
) -> Result<()> {
    let table = shape.table();
    let columns: Vec<ValueRef<'_>> = values.iter().map(Value::as_ref).collect();
    table.schema.encode(&columns, row)?;
    key_of(transaction, shape, |at| Ok(values[at].as_ref()), key)
}

/// The key of a new row of these columns.
///
/// # Errors
/// `54000` for values that make no key; storage.
pub(crate) fn key_of<'v>(
    transaction: &Transaction,
    shape: &Shape,
    column: impl Fn(usize) -> Result<ValueRef<'v>>,
    key: &mut Vec<u8>,
) -> Result<()> {
    key.clear();
    if shape.has_key() {
        shape.keys[0].encode_with(column, key)?;
    } else {
        let storage = shape.table().storage.table(transaction)?;
        let number = shape.relation.runtime.draw_row(transaction, storage)?;
        key.extend_from_slice(&number.to_be_bytes());
    }
    Ok(())
}

/// Adds the entries of a row in those indexes that `wanted` names.
fn insert_entries(
    transaction: &Transaction,
    shape: &Shape,
    values: &[Value],
    row_key: &[u8],
    wanted: impl Fn(usize) -> bool,
) -> Result<std::result::Result<(), Duplicate>> {
    let mut duplicate = None;
    each_entry(
        transaction,
        shape,
        values,
        row_key,
        wanted,
        |index, storage, key, value| match transaction.insert(storage, key, value) {
            Err(vellum::Error::KeyExists { .. }) => {
                let found = transaction.get(storage, key, <[u8]>::to_vec)?;
                let outdated = found.is_none();
                let found = found.unwrap_or_default();
                let row_key = primary_key_of(key, &found).unwrap_or_default().to_vec();
                let held = held_by(transaction, shape, index, row_key)?;
                duplicate = Some(Duplicate { outdated, ..held });
                Ok(false)
            }
            done => Ok(done.map(|()| true)?),
        },
    )?;
    Ok(duplicate.map_or(Ok(()), Err))
}

/// Calls `each` with the number, the engine table, the key and the value of a row's entry in each index that `wanted` names, until
/// it returns false.
fn each_entry(
    transaction: &Transaction,
    shape: &Shape,
    values: &[Value],
    row_key: &[u8],
    wanted: impl Fn(usize) -> bool,
    mut each: impl FnMut(usize, &vellum::Table, &[u8], &[u8]) -> Result<bool>,
) -> Result<()> {
    let (mut key, mut value) = (Vec::new(), Vec::new());
    for (number, index) in shape.table().indexes.iter().enumerate() {
        let Some(storage) = index.storage.as_ref().filter(|_| wanted(number)) else {
            continue;
        };
        let keys = &shape.keys[number];
        let row = RowRef::Values(values);
        let has = entry::entry(keys, row, row_key, &mut key, &mut value)?;
        if has && !each(number, storage.table(transaction)?, &key, &value)? {
            return Ok(());
        }
    }
    Ok(())
}

/// The row that has the columns of a unique index already, as far as a look tells. An entry that somebody else has removed and committed since has
/// nothing to say (R14): the index itself does when the entry is inserted. One above which an uncommitted version stands, live or not, is unsettled.
fn find_duplicate(
    transaction: &Transaction,
    shape: &Shape,
    number: usize,
    values: &[Value],
) -> Result<Option<Duplicate>> {
    let index = &shape.table().indexes[number];
    let Some(storage) = &index.storage else {
        return Ok(None);
    };
    let (keys, row) = (&shape.keys[number], RowRef::Values(values));
    let mut key = Vec::new();
    if !keys.has_entry(row)? {
        return Ok(None);
    }
    let null = keys.encode(row, &mut key)?;
    if !keys.is_alone(null) {
        return Ok(None);
    }
    let storage = storage.table(transaction)?;
    let found = transaction.get(storage, &key, <[u8]>::to_vec)?;
    let Some(value) = found else {
        return Ok(None);
    };
    let row_key = || primary_key_of(&key, &value).map(<[u8]>::to_vec);
    match transaction.newest(storage, &key)? {
        Newest::Nothing | Newest::Seen { live: false } | Newest::Committed { live: false } => {
            Ok(None)
        }
        Newest::Seen { live: true } => held_by(transaction, shape, number, row_key()?).map(Some),
        Newest::Committed { live: true } => {
            let held = held_by(transaction, shape, number, row_key()?)?;
            Ok(Some(Duplicate {
                outdated: true,
                ..held
            }))
        }
        Newest::Running { by, .. } => Ok(Some(Duplicate {
            index: number,
            row_key: row_key()?,
            unsettled: Some(by),
            outdated: false,
        })),
    }
}

/// The row of this key has the columns of an index. Whoever is writing it may yet take it away, or give it others.
fn held_by(
    transaction: &Transaction,
    shape: &Shape,
    index: usize,
    row_key: Vec<u8>,
) -> Result<Duplicate> {
    let storage = shape.table().storage.table(transaction)?;
    let unsettled = match transaction.newest(storage, &row_key)? {
        Newest::Running { by, .. } => Some(by),
        _ => None,
    };
    Ok(Duplicate {
        index,
        row_key,
        unsettled,
        outdated: false,
    })
}

/// The row that stands in the way of these columns in one index, as [`insert`] would find it.
///
/// # Errors
/// Storage; `54000` for values that make no key.
pub(crate) fn duplicate_in(
    transaction: &Transaction,
    shape: &Shape,
    index: usize,
    values: &[Value],
) -> Result<Option<Duplicate>> {
    if shape.table().indexes[index].storage.is_some() {
        return find_duplicate(transaction, shape, index, values);
    }
    let mut key = Vec::new();
    shape.keys[index].encode(RowRef::Values(values), &mut key)?;
    let storage = shape.table().storage.table(transaction)?;
    match transaction.get(storage, &key, |_| ())? {
        Some(()) => held_by(transaction, shape, index, key).map(Some),
        None => Ok(None),
    }
}

/// Takes a row away with its entries.
///
/// # Errors
/// Conflicts, storage.
pub(crate) fn delete(
    transaction: &Transaction,
    shape: &Shape,
    row_key: &[u8],
    values: &[Value],
) -> Result<bool> {
    let storage = shape.table().storage.table(transaction)?;
    let found = transaction.delete(storage, row_key)?;
    if found {
        delete_entries(transaction, shape, values, row_key, |_| true)?;
    }
    Ok(found)
}

fn delete_entries(
    transaction: &Transaction,
    shape: &Shape,
    values: &[Value],
    row_key: &[u8],
    wanted: impl Fn(usize) -> bool,
) -> Result<()> {
    each_entry(
        transaction,
        shape,
        values,
        row_key,
        wanted,
        |_, storage, key, _| {
            transaction.delete(storage, key)?;
            Ok(true)
        },
    )
}

/// Whether a change of a row changes what an index reads.
fn touches(shape: &Shape, index: usize, old: &[Value], changes: &[(usize, Value)]) -> bool {
    let keys = &shape.keys[index];
    // What is computed of equal values may differ: 1.0 and 1.00 as text.
    let differs = |at: usize, value: &Value| {
        !keys.is_plain() || compare(old[at].as_ref(), value.as_ref()).is_ne()
    };
    let mut changes = changes.iter();
    changes.any(|(at, value)| keys.reads.contains(at) && differs(*at, value))
}

/// Numbers of the indexes in which the entry of a row becomes another one, comes or goes.
fn moved(
    shape: &Shape,
    old: &[Value],
    new: &[Value],
    changes: &[(usize, Value)],
) -> Result<Vec<usize>> {
    let (old_row, new_row) = (RowRef::Values(old), RowRef::Values(new));
    let mut moved = Vec::new();
    for (number, keys) in shape.keys.iter().enumerate() {
        if !touches(shape, number, old, changes) {
            continue;
        }
        let stays = !keys.is_plain()
            && match (keys.has_entry(old_row)?, keys.has_entry(new_row)?) {
                (true, true) => {
                    let (mut before, mut after) = (Vec::new(), Vec::new());
                    keys.encode(old_row, &mut before)?;
                    keys.encode(new_row, &mut after)?;
                    before == after
                }
                (had, has) => had == has,
            };
        if !stays {
            moved.push(number);
        }
    }
    Ok(moved)
}

/// Whether a change of a row changes what foreign keys may refer to.
pub(crate) fn changes_a_key(shape: &Shape, old: &[Value], changes: &[(usize, Value)]) -> bool {
    let indexes = shape.table().indexes.iter().enumerate();
    let mut unique = indexes.filter(|(_, index)| index.keeps_apart() && index.is_plain());
    unique.any(|(number, _)| touches(shape, number, old, changes))
}

/// Gives columns of a row other values. A row whose length stays keeps its place, and only the bytes that change are
/// kept as the old version.
///
/// # Errors
/// As [`insert`].
pub(crate) fn update(
    transaction: &Transaction,
    shape: &Shape,
    row_key: &[u8],
    row: &[u8],
    old: &[Value],
    changes: &[(usize, Value)],
) -> Result<std::result::Result<(), Duplicate>> {
    let table = shape.table();
    let storage = table.storage.table(transaction)?;
    let mut new = old.to_vec();
    for (position, value) in changes {
        new[*position] = value.clone();
    }
    let moved = moved(shape, old, &new, changes)?;
    let is_moved = |number: usize| moved.contains(&number);
    if shape.has_key() && is_moved(0) {
        // Another place.
        transaction.delete(storage, row_key)?;
        delete_entries(transaction, shape, old, row_key, |_| true)?;
        return insert(transaction, shape, &new, &mut Vec::new());
    }
    if moved.is_empty() {
        return assign(transaction, shape, row_key, row, changes).map(Ok);
    }
    delete_entries(transaction, shape, old, row_key, is_moved)?;
    assign(transaction, shape, row_key, row, changes)?;
    insert_entries(transaction, shape, &new, row_key, is_moved)
}

/// The same of columns that no index has: what else stands in the row is not looked at.
///
/// # Errors
/// Conflicts, storage.
pub(crate) fn assign(
    transaction: &Transaction,
    shape: &Shape,
    row_key: &[u8],
    row: &[u8],
    changes: &[(usize, Value)],
) -> Result<()> {
    let table = shape.table();
    let storage = table.storage.table(transaction)?;
    let mut bytes = row.to_vec();
    let assigned: SmallVec<[(usize, ValueRef<'_>); 4]> = changes
        .iter()
        .map(|(position, value)| (*position, value.as_ref()))
        .collect();
    let mut ranges = Vec::new();
    match table.schema.assign(&mut bytes, &assigned, &mut ranges)? {
        Assigned::InPlace => {
            transaction.update(storage, row_key, &ranges, |value| {
                for range in &ranges {
                    if let (Some(to), Some(from)) =
                        (value.get_mut(range.clone()), bytes.get(range.clone()))
                    {
                        to.copy_from_slice(from);
                    }
                }
            })?;
        }
        Assigned::Rewritten => {
            transaction.replace(storage, row_key, &bytes)?;
        }
    }
    Ok(())
}

impl Duplicate {
    /// `23505`.
    #[cold]
    pub fn error(
        &self,
        shape: &Shape,
        values: &[Value],
        env: &dyn Environment,
        catalog: &Catalog,
    ) -> SqlError {
        let relation = &shape.relation;
        let index = &shape.table().indexes[self.index];
        let parts = &shape.keys[self.index].parts;
        let settings = env.settings();
        let plain = |own: Scalar| own.entry().name.to_owned();
        let named = |_, name: &str| name.to_owned();
        let names = parts
            .iter()
            .map(|part| part_text(relation, part, (settings, &plain, &named), true));
        let names: Vec<String> = names.collect();
        let shown = parts.iter().map(|part| {
            let mut text = String::new();
            let value = match part {
                Part::Column(at) => values.get(*at).cloned(),
                Part::Computed { expr, .. } => computed(expr, RowRef::Values(values)).ok(),
            };
            match value {
                Some(value) if !value.is_null() => show(value.as_ref(), settings, &mut text),
                _ => text.push_str("null"),
            }
            text
        });
        let shown: Vec<String> = shown.collect();
        let message = format!(
            "duplicate key value violates unique constraint \"{}\"",
            index.name
        );
        let detail = format!(
            "Key ({})=({}) already exists.",
            names.join(", "),
            shown.join(", ")
        );
        let error = SqlError::new(sqlstate::UNIQUE_VIOLATION, message)
            .on_table(relation, catalog)
            .on_constraint(&index.name);
        match may_read(env, catalog, relation) {
            true => error.with_detail(detail),
            false => error,
        }
    }
}

/// Whether the values of a table's rows may be told to the user.
pub(crate) fn may_read(env: &dyn Environment, catalog: &Catalog, relation: &Relation) -> bool {
    // Who is nobody here has the table to itself.
    let allows = |role| catalog.allows(role, relation, Rights::SELECT);
    env.role().is_none_or(allows)
}

/// Adds the entry of a row to one index.
///
/// # Errors
/// As [`insert`].
pub(crate) fn insert_entry(
    transaction: &Transaction,
    shape: &Shape,
    index: usize,
    values: &[Value],
    row_key: &[u8],
) -> Result<std::result::Result<(), Duplicate>> {
    insert_entries(transaction, shape, values, row_key, |number| {
        number == index
    })
}
