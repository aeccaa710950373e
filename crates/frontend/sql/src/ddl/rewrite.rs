//! Looking at, or writing anew, the rows that a table has when its definition changes.

use super::Ddl;
use crate::catalog::{Catalog, Index, Kind, Oid, Relation, Storage, Table};
use crate::error::{Result, SqlError};
use crate::expr::{Frame, Plain, RowRef};
use crate::rows::{self, Shape};
use crate::session::Env;
use crate::sqlstate;
use std::ops::Bound;
use std::sync::Arc;
use vellum_row::{Schema, Value, ValueRef};

/// Bytes of rows that are read before what they become is written.
pub(super) const PIECE_BYTES: usize = 4 << 20;

/// Loads an empty engine table bottom-up with what `next` puts into the two (empty) vectors, in ascending order of keys, until it returns false.
///
/// # Errors
/// What `next` reports, and the engine; the statement is to be rolled back then.
pub(super) fn load(
    transaction: &vellum::Transaction,
    storage: &Storage,
    mut next: impl FnMut(&mut Vec<u8>, &mut Vec<u8>) -> Result<bool>,
) -> Result<()> {
    let mut failed = None;
    let loaded = transaction.bulk_load(storage.table(transaction)?, |key, value| {
        next(key, value).unwrap_or_else(|error| {
            failed = Some(error);
            false
        })
    });
    match failed {
        Some(error) => Err(error),
        None => Ok(loaded.map(drop)?),
    }
}

/// Calls `each` with key and values of the rows of an engine table behind the one of key `after`, until those take `most` bytes. Returns the key of the last one
/// if there may be more.
fn rows_in(
    transaction: &vellum::Transaction,
    (storage, schema): (&vellum::Table, &Schema),
    after: Option<&[u8]>,
    most: usize,
    mut each: impl FnMut(&[u8], &[Value]) -> Result<()>,
) -> Result<Option<Vec<u8>>> {
    let range = (
        after.map_or(Bound::Unbounded, Bound::Excluded),
        Bound::Unbounded,
    );
    let mut cursor = transaction.cursor(storage, range)?;
    let mut values = Vec::with_capacity(schema.len());
    let mut bytes_seen = 0;
    while let Some((key, bytes)) = cursor.next()? {
        values.clear();
        let view = schema.view(bytes)?;
        for position in 0..schema.len() {
            values.push(view.get(position)?.to_value());
        }
        each(key, &values)?;
        bytes_seen += key.len() + bytes.len();
        if bytes_seen >= most {
            return Ok(Some(key.to_vec()));
        }
    }
    Ok(None)
}

impl Ddl<'_> {
    /// A new engine table for an index.
    pub(super) fn index_storage(&mut self, oid: Oid) -> Result<Storage> {
        let number = self.draw_oid()?;
        let name = format!("sql.index.{oid}.{number}");
        Ok(Storage::of(self.open.transaction.create_table(&name)?))
    }

    /// The table with new, empty engine tables.
    pub(super) fn with_new_storage(&mut self, relation: &Relation, table: &Table) -> Result<Table> {
        if let Some(now) = relation.table()
            && now.ordering_key().is_none()
        {
            let transaction = &self.open.transaction;
            let storage = now.storage.table(transaction)?;
            relation.runtime.know_rows(transaction, storage)?;
        }
        let mut next = table.clone();
        let number = self.draw_oid()?;
        let name = format!("sql.table.{}.{number}", relation.oid);
        next.storage = Storage::of(self.open.transaction.create_table(&name)?);
        for index in &mut next.indexes {
            if index.storage.is_some() {
                let storage = Some(self.index_storage(index.oid)?);
                *index = Arc::new(Index {
                    storage,
                    ..Index::clone(index)
                });
            }
        }
        Ok(next)
    }

    /// The engine's table with the rows of a table that is being changed. Under repeatable read the snapshot may be older than what others
    /// committed before the gate was taken: to write its rows anew would undo that.
    ///
    /// # Errors
    /// A conflict, if a row was changed since.
    pub(super) fn newest_rows<'t>(&self, storage: &'t Storage) -> Result<&'t vellum::Table> {
        let transaction = &self.open.transaction;
        let storage = storage.table(transaction)?;
        if self.open.characteristics.repeatable {
            transaction.check_newest(storage)?;
        }
        Ok(storage)
    }

    /// Whether a table has a row.
    pub(super) fn has_rows(&self, relation: &Relation) -> Result<bool> {
        let table = relation
            .table()
            .ok_or_else(|| SqlError::internal("no table"))?;
        let transaction = &self.open.transaction;
        let mut cursor = transaction.cursor(self.newest_rows(&table.storage)?, ..)?;
        Ok(cursor.next()?.is_some())
    }

    /// Calls `each` with key and values of every row.
    pub(super) fn each_row(
        &mut self,
        relation: &Relation,
        each: impl FnMut(&[u8], &[Value]) -> Result<()>,
    ) -> Result<()> {
        self.rows_behind(relation, None, usize::MAX, each).map(drop)
    }

    /// Calls `each` with key and values of the rows behind the one of key `after`, until those take `most` bytes. Returns the key of the
    /// last one if there may be more.
    pub(super) fn rows_behind(
        &mut self,
        relation: &Relation,
        after: Option<&[u8]>,
        most: usize,
        mut each: impl FnMut(&[u8], &[Value]) -> Result<()>,
    ) -> Result<Option<Vec<u8>>> {
        let table = relation
            .table()
            .ok_or_else(|| SqlError::internal("no table"))?;
        let transaction = &self.open.transaction;
        // The rest was looked at with the first piece: who has the gate alone is the only one to commit changes of the table.
        let storage = match after {
            None => self.newest_rows(&table.storage)?,
            Some(_) => table.storage.table(transaction)?,
        };
        let waiting = &mut self.waiting;
        rows_in(
            transaction,
            (storage, &table.schema),
            after,
            most,
            |key, values| {
                waiting.look_cancelled()?;
                each(key, values)
            },
        )
    }

    /// Calls `each` with the values of every row, and with what expressions over them may ask.
    pub(super) fn each_row_asking(
        &mut self,
        relation: &Relation,
        mut each: impl FnMut(&[Value], &Env<'_>) -> Result<()>,
    ) -> Result<()> {
        let table = relation
            .table()
            .ok_or_else(|| SqlError::internal("no table"))?;
        let rows = (self.newest_rows(&table.storage)?, &*table.schema);
        let (open, waiting) = (&*self.open, &mut self.waiting);
        self.asked
            .with(self.shared, open, &self.search_path, |env| {
                rows_in(&open.transaction, rows, None, usize::MAX, |_, values| {
                    waiting.look_cancelled()?;
                    each(values, env)
                })
            })
            .map(drop)
    }

    /// Inserts what `convert` makes of each row of a relation into the empty tables of another shape of it.
    ///
    /// # Errors
    /// `23505`, and what `convert` reports.
    pub(super) fn move_rows(
        &mut self,
        from: &Relation,
        to: &Shape,
        mut convert: impl FnMut(&[Value]) -> Result<Vec<Value>>,
    ) -> Result<()> {
        self.move_pieces(from, to, |_, rows| {
            for row in rows {
                *row = convert(row)?;
            }
            Ok(())
        })
    }

    /// The same of some megabytes of rows at a time, which are read, then written: what is held in memory does not grow with the table.
    fn move_pieces(
        &mut self,
        from: &Relation,
        to: &Shape,
        mut convert: impl FnMut(&mut Self, &mut [Vec<Value>]) -> Result<()>,
    ) -> Result<()> {
        let (mut key, mut after) = (Vec::new(), None::<Vec<u8>>);
        loop {
            let mut rows: Vec<Vec<Value>> = Vec::new();
            after = self.rows_behind(from, after.as_deref(), PIECE_BYTES, |_, values| {
                rows.push(values.to_vec());
                Ok(())
            })?;
            convert(self, &mut rows)?;
            for row in &rows {
                let transaction = &self.open.transaction;
                if let Err(duplicate) = rows::insert(transaction, to, row, &mut key)? {
                    return Err(self.not_unique(&duplicate, to, row));
                }
            }
            if after.is_none() {
                return Ok(());
            }
        }
    }

    /// Writes the rows that are there anew, each with a value of the last column of `next`, which `fill` puts behind the others of some rows at a time.
    ///
    /// # Errors
    /// Those of `fill`; `23505`.
    pub(super) fn add_values(
        &mut self,
        relation: &Relation,
        next: Table,
        fill: impl FnMut(&mut Self, &mut [Vec<Value>]) -> Result<()>,
    ) -> Result<Table> {
        if !self.has_rows(relation)? {
            return Ok(next);
        }
        let next = self.with_new_storage(relation, &next)?;
        let target = Arc::new(Relation {
            kind: Kind::Table(Box::new(next.clone())),
            ..relation.clone()
        });
        let shape = Shape::of(&target)?;
        self.move_pieces(relation, &shape, fill)?;
        if let Some(old) = relation.table() {
            self.drop_storage(old)?;
        }
        Ok(next)
    }

    /// The rows that are there fulfil NOT NULL and CHECK.
    ///
    /// # Errors
    /// `23502`, `23514`.
    pub(super) fn check_rows(&mut self, relation: &Relation) -> Result<()> {
        let table = relation
            .table()
            .ok_or_else(|| SqlError::internal("no table"))?;
        let mut checks = Vec::new();
        {
            let shared = Arc::new(relation.clone());
            let mut binder = self.binder();
            binder
                .scope
                .add(crate::bind::ScopeTable::of(&shared, None)?)?;
            for check in &table.checks {
                let node = crate::parse::expression(&check.expression)?;
                checks.push((check.name.clone(), binder.condition(&node, "CHECK")?));
            }
        }
        let catalog = self.open.catalog.1.clone();
        self.each_row_asking(relation, |values, env| {
            for (column, value) in table.schema.columns().zip(values) {
                if !column.nullable && value.is_null() {
                    return Err(contains_nulls(relation, &column.name, &catalog));
                }
            }
            let rows = [RowRef::Values(values)];
            let frame = Frame::over(&rows, env);
            for (name, check) in &checks {
                if check.eval(&frame)?.as_ref().as_bool() == Some(false) {
                    let message = format!(
                        "check constraint \"{name}\" of relation \"{}\" is violated by some row",
                        relation.name
                    );
                    return Err(SqlError::new(sqlstate::CHECK_VIOLATION, message)
                        .on_table(relation, &catalog)
                        .on_constraint(name));
                }
            }
            Ok(())
        })
    }

    /// Orders a table by a primary key: writes it anew, with all its indexes.
    ///
    /// # Errors
    /// `23502`, `23505`.
    pub(super) fn cluster(
        &mut self,
        relation: &mut Relation,
        index: Index,
        schema: Schema,
    ) -> Result<()> {
        let table = relation
            .table()
            .ok_or_else(|| SqlError::internal("no table"))?;
        let mut next = table.clone();
        next.schema = Arc::new(schema);
        next.indexes.insert(0, Arc::new(index));
        self.order_anew(relation, next)
    }

    /// Gives a table another definition, which orders its rows by another key or by none, and writes them anew. Rows that were deleted, by this transaction, too, have keys
    /// of the old form as long as they stand there: only where nothing stands the table stays in its place.
    ///
    /// # Errors
    /// `23502`, `23505`.
    pub(super) fn order_anew(&mut self, relation: &mut Relation, next: Table) -> Result<()> {
        let table = relation
            .table()
            .ok_or_else(|| SqlError::internal("no table"))?;
        let has_rows = self.has_rows(relation)?;
        let transaction = &self.open.transaction;
        let last = transaction.last_key(table.storage.table(transaction)?)?;
        if !has_rows && last.is_none() {
            relation.kind = Kind::Table(Box::new(next));
            return Ok(());
        }
        let next = self.with_new_storage(relation, &next)?;
        let target = Arc::new(Relation {
            kind: Kind::Table(Box::new(next.clone())),
            ..relation.clone()
        });
        if has_rows {
            let shape = Shape::of(&target)?;
            self.copy_rows(relation, &shape)?;
        }
        self.drop_storage(table)?;
        relation.kind = Kind::Table(Box::new(next));
        Ok(())
    }

    /// Rows of a relation into the empty tables of another shape of it. Rows that come in the order of their new keys are loaded
    /// bottom-up, without a version each.
    fn copy_rows(&mut self, from: &Relation, to: &Shape) -> Result<()> {
        let target = to.table();
        // Looked at in any case: a null has no place in the key.
        let ordered = to.has_key() && self.comes_in_order(from, to)?;
        if ordered && target.secondary().next().is_none() {
            let transaction = &self.open.transaction;
            let source = from.table().ok_or_else(|| SqlError::internal("no table"))?;
            let mut cursor = transaction.cursor(source.storage.table(transaction)?, ..)?;
            return load(transaction, &target.storage, |key, value| {
                let Some((_, bytes)) = cursor.next()? else {
                    return Ok(false);
                };
                let view = target.schema.view(bytes)?;
                to.keys[0].encode_with(|at| Ok(view.get(at)?), key)?;
                value.extend_from_slice(bytes);
                Ok(true)
            });
        }
        self.move_rows(from, to, |values| Ok(values.to_vec()))
    }

    /// Whether the rows' new keys ascend, none of them twice and none with a null.
    ///
    /// # Errors
    /// `23502` for a null.
    fn comes_in_order(&mut self, from: &Relation, to: &Shape) -> Result<bool> {
        let (mut last, mut key) = (Vec::new(), Vec::new());
        let mut ascends = true;
        let schema = &to.table().schema;
        let catalog = self.open.catalog.1.clone();
        self.each_row(from, |_, values| {
            for position in &to.keys[0].reads {
                if values[*position].is_null() {
                    let column = &schema.column(*position).name;
                    return Err(contains_nulls(from, column, &catalog));
                }
            }
            key.clear();
            to.keys[0].encode_with(
                |at| -> Result<ValueRef<'_>> { Ok(values[at].as_ref()) },
                &mut key,
            )?;
            ascends &= last < key;
            std::mem::swap(&mut last, &mut key);
            Ok(())
        })?;
        Ok(ascends)
    }

    pub(super) fn not_unique(
        &self,
        duplicate: &rows::Duplicate,
        shape: &Shape,
        values: &[Value],
    ) -> SqlError {
        let plain = Plain(self.forms);
        let catalog = &self.open.catalog.1;
        let shown = duplicate.error(shape, values, &plain, catalog);
        let name = &shape.table().indexes[duplicate.index].name;
        let message = format!("could not create unique index \"{name}\"");
        let detail = shown.fields().detail.clone().unwrap_or_default();
        let detail = detail.replace("already exists", "is duplicated");
        SqlError::new(sqlstate::UNIQUE_VIOLATION, message)
            .with_detail(detail)
            .on_table(&shape.relation, catalog)
            .on_constraint(name)
    }
}

/// `23502` for a column that is to be NOT NULL, and has rows where it is.
#[cold]
pub(super) fn contains_nulls(relation: &Relation, column: &str, catalog: &Catalog) -> SqlError {
    let message = format!(
        "column \"{column}\" of relation \"{}\" contains null values",
        relation.name
    );
    SqlError::new(sqlstate::NOT_NULL_VIOLATION, message)
        .on_table(relation, catalog)
        .on_column(column)
}
