//! The columns of a table over time, and with them the form of its rows.
//!
//! A column has an id that is never used again. Adding or dropping one makes a new *version* of the
//! schema; each row names the version that it was written under. A row that lacks a column reads the
//! value that was given when the column was added; a column that was dropped is skipped. So neither
//! change touches a row. Renaming a column, and whether it may be null, change no version.
//!
//! Layout: `layout` has the bytes of a row, `persist` those of a schema.
//!
//! Invariants:
//! - I1: the columns that stand in rows of version `v` are those with `added <= v < dropped`, in the
//!   order of their ids. It follows from the columns alone, so a schema needs no history beside them.
//! - I2: a version that has been used never gets another meaning.
//!
//! Not here: constraints, defaults of new rows, which columns make a key (catalog and SQL).

mod layout;
mod persist;
mod row;
#[cfg(test)]
mod tests;

pub use layout::VERSION_MAX;
pub(crate) use layout::fixed_scale;
pub use row::{Assigned, FixedPlace, RowView, RowWriter, Stored};

use crate::error::{Result, SqlError, SqlState};
use crate::types::{Type, Typmod};
use crate::value::Value;
use layout::Layout;

/// The most columns a table may have, dropped ones included. As in PostgreSQL.
pub const COLUMNS_MAX: usize = 1600;

/// Number of a column within its table: 1, 2, 3 ... in the order of creation (`attnum`); never
/// used for another column.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ColumnId(pub u16);

/// A column of a table.
#[derive(Clone, PartialEq, Debug)]
pub struct Column {
    /// Its number.
    pub id: ColumnId,
    /// Its name.
    pub name: Box<str>,
    /// Its type.
    pub ty: Type,
    /// Its type's modifier.
    pub typmod: Typmod,
    /// Whether it may hold null. Not checked here.
    pub nullable: bool,
    /// Whether its value stands in the row. A column that stands exactly in the table's key
    /// ([`crate::key::is_exact`]) need not stand in the row again; the row then reads it as
    /// [`Self::missing`].
    pub stored: bool,
    /// What a row from before this column was added reads.
    pub missing: Value,
    added: u16,
    dropped: Option<u16>,
}

impl Column {
    /// A stored column for [`Schema::new`] or [`Schema::add_column`], which number it.
    pub fn new(name: impl Into<Box<str>>, ty: Type, typmod: Typmod, nullable: bool) -> Self {
        Self {
            id: ColumnId(0),
            name: name.into(),
            ty,
            typmod,
            nullable,
            stored: true,
            missing: Value::Null,
            added: 0,
            dropped: None,
        }
    }

    /// The scale of a `numeric(p,s)` that stands in rows as its units ([`Stored`]); `None` for any other column.
    pub fn fixed_scale(&self) -> Option<u8> {
        match self.ty {
            Type::Numeric => layout::fixed_scale(self.typmod),
            _ => None,
        }
    }

    /// The same, read as `value` by rows that are older than it.
    #[must_use]
    pub fn with_missing(mut self, value: Value) -> Self {
        debug_assert!(value.as_ref().fits(self.ty));
        self.missing = value;
        self
    }

    /// The same, standing in the key alone.
    #[must_use]
    pub fn in_key(mut self) -> Self {
        self.stored = false;
        self
    }

    /// Whether it was dropped.
    pub fn is_dropped(&self) -> bool {
        self.dropped.is_some()
    }

    fn stands_in(&self, version: u16) -> bool {
        self.stored && self.added <= version && self.dropped.is_none_or(|dropped| version < dropped)
    }
}

/// The columns of a table: what its rows are written and read by.
#[derive(Clone, Debug)]
pub struct Schema {
    version: u16,
    /// In the order of their ids, dropped ones included.
    all: Vec<Column>,
    /// Indexes into `all` of those that were not dropped.
    live: Vec<usize>,
    /// One a version, as seen by the live columns.
    layouts: Vec<Layout>,
}

impl PartialEq for Schema {
    fn eq(&self, other: &Self) -> bool {
        self.version == other.version && self.all == other.all
    }
}

impl Schema {
    /// The schema of a new table: version 0, ids from 1 on.
    ///
    /// # Errors
    /// 54011 if there are more than [`COLUMNS_MAX`]; 42701 if two have one name.
    pub fn new(mut columns: Vec<Column>) -> Result<Self> {
        check_count(columns.len())?;
        for (number, column) in (1..).zip(&mut columns) {
            column.id = ColumnId(number);
            (column.added, column.dropped) = (0, None);
        }
        for (index, column) in columns.iter().enumerate() {
            check_name(&columns[..index], &column.name)?;
        }
        Ok(Self::build(0, columns))
    }

    fn build(version: u16, all: Vec<Column>) -> Self {
        debug_assert!(all.is_sorted_by_key(|column| column.id));
        let live: Vec<usize> = (0..all.len()).filter(|i| !all[*i].is_dropped()).collect();
        let layouts = (0..=version)
            .map(|version| Layout::new(version, &all, &live))
            .collect();
        Self {
            version,
            all,
            live,
            layouts,
        }
    }

    /// The version that new rows are written under.
    pub fn version(&self) -> u16 {
        self.version
    }

    /// The columns there are, in order. A *position* is an index into them.
    pub fn columns(&self) -> impl ExactSizeIterator<Item = &Column> + Clone {
        self.live.iter().map(|index| &self.all[*index])
    }

    /// How many columns there are.
    pub fn len(&self) -> usize {
        self.live.len()
    }

    /// Whether there is none (a table may have no columns).
    pub fn is_empty(&self) -> bool {
        self.live.is_empty()
    }

    /// The columns in the order of their ids, those that were dropped included.
    pub fn all_columns(&self) -> &[Column] {
        &self.all
    }

    /// The column at a position.
    ///
    /// # Panics
    /// If there is none.
    pub fn column(&self, position: usize) -> &Column {
        &self.all[self.live[position]]
    }

    /// The position of the column of this name.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.columns().position(|column| &*column.name == name)
    }

    /// The position of the column with this id.
    pub fn position_of(&self, id: ColumnId) -> Option<usize> {
        self.columns().position(|column| column.id == id)
    }

    /// The schema with one more column, a version later. Rows that exist read it as
    /// `column.missing`.
    ///
    /// # Errors
    /// 42701 if the name is taken, 54011 if there are too many, dropped ones included, 54000 if the
    /// versions are used up.
    pub fn add_column(&self, mut column: Column) -> Result<Self> {
        check_count(self.all.len() + 1)?;
        let live: Vec<Column> = self.columns().cloned().collect();
        check_name(&live, &column.name)?;
        let version = self.next_version()?;
        let last = self.all.last().map_or(0, |last| last.id.0);
        column.id = ColumnId(last + 1);
        (column.added, column.dropped) = (version, None);
        let mut all = self.all.clone();
        all.push(column);
        Ok(Self::build(version, all))
    }

    /// The schema without the column at `position`, a version later.
    ///
    /// # Errors
    /// 54000 if the versions are used up.
    ///
    /// # Panics
    /// If there is no such column.
    pub fn drop_column(&self, position: usize) -> Result<Self> {
        let version = self.next_version()?;
        let mut all = self.all.clone();
        all[self.live[position]].dropped = Some(version);
        Ok(Self::build(version, all))
    }

    /// The schema with another name for the column at `position`. No new version.
    ///
    /// # Errors
    /// 42701 if the name is taken.
    ///
    /// # Panics
    /// If there is no such column.
    pub fn rename_column(&self, position: usize, name: impl Into<Box<str>>) -> Result<Self> {
        let name = name.into();
        let live: Vec<Column> = self.columns().cloned().collect();
        check_name(&live, &name)?;
        let mut next = self.clone();
        next.all[self.live[position]].name = name;
        Ok(next)
    }

    /// The schema where the column at `position` may, or may not, be null. No new version.
    ///
    /// # Panics
    /// If there is no such column.
    #[must_use]
    pub fn set_nullable(&self, position: usize, nullable: bool) -> Self {
        let mut next = self.clone();
        next.all[self.live[position]].nullable = nullable;
        next
    }

    /// The schema where the column at `position` has another type, for rows that are all written anew. No new version.
    ///
    /// # Panics
    /// If there is no such column.
    #[must_use]
    pub fn with_type(&self, position: usize, ty: Type, typmod: Typmod) -> Self {
        let mut all = self.all.clone();
        let column = &mut all[self.live[position]];
        (column.ty, column.typmod) = (ty, typmod);
        // No row is older than the column any more.
        column.missing = Value::Null;
        Self::build(self.version, all)
    }

    fn next_version(&self) -> Result<u16> {
        if self.version >= VERSION_MAX {
            let error = SqlError::new(
                SqlState::PROGRAM_LIMIT,
                "table has had too many columns added and dropped",
            );
            return Err(error.with_hint("Create the table anew."));
        }
        Ok(self.version + 1)
    }
}

fn check_count(count: usize) -> Result<()> {
    if count > COLUMNS_MAX {
        let message = format!("tables can have at most {COLUMNS_MAX} columns");
        return Err(SqlError::new(SqlState::TOO_MANY_COLUMNS, message));
    }
    Ok(())
}

fn check_name(others: &[Column], name: &str) -> Result<()> {
    if others.iter().any(|other| &*other.name == name) {
        let message = format!("column \"{name}\" specified more than once");
        return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, message));
    }
    Ok(())
}
