//! Filling a new index of a table that has rows: its entries are sorted and loaded bottom-up, without a search, a version and a log record each.

use super::Ddl;
use super::rewrite::{PIECE_BYTES, load};
use crate::catalog::{Index, Kind, Relation, Table, Timing};
use crate::error::{Result, SqlError};
use crate::expr::RowRef;
use crate::rows::{self, Duplicate, Shape};
use crate::sorted::{Sorter, Taken};
use std::sync::Arc;
use vellum_row::Value;

impl Ddl<'_> {
    /// Enters every row into a new index. What is held in memory does not grow with the table: entries that `maintenance_work_mem` does not hold
    /// are sorted in a file. Where there is no place for files, they are inserted one by one, in the order of the rows.
    ///
    /// # Errors
    /// `23505`; `53100`, `58030` for the file; `57014`.
    pub(super) fn fill(&mut self, relation: &Relation, index: &Arc<Index>) -> Result<()> {
        let table = relation
            .table()
            .ok_or_else(|| SqlError::internal("no table"))?;
        // A table with this index alone: no other is written.
        let mut lone = table.clone();
        lone.indexes = vec![index.clone()];
        let lone = Arc::new(Relation {
            kind: Kind::Table(Box::new(lone)),
            ..relation.clone()
        });
        let shape = Shape::of(&lone)?;
        match self.load_entries(table, &shape)? {
            Taken::Yes => Ok(()),
            Taken::NoRoom => self.insert_each(relation, &shape),
        }
    }

    /// No two rows have the key of an index in which they might for a while. Another index, in which they might not, is filled and thrown away.
    ///
    /// # Errors
    /// As [`Ddl::fill`].
    pub(super) fn check_apart(&mut self, relation: &Relation, index: &Index) -> Result<()> {
        if !self.has_rows(relation)? {
            return Ok(());
        }
        let storage = self.index_storage(self.draw_oid()?)?;
        let name = storage.name.clone();
        let trial = Index {
            storage: Some(storage),
            timing: Timing::Fixed,
            ..index.clone()
        };
        self.fill(relation, &Arc::new(trial))?;
        Ok(self.open.transaction.drop_table(&name)?)
    }

    /// Sorts and loads the entries; nothing is done if there is no room to sort them.
    fn load_entries(&mut self, table: &Table, shape: &Shape) -> Result<Taken> {
        let rows = self.newest_rows(&table.storage)?;
        let index = &shape.table().indexes[0];
        let storage = index.storage.as_ref();
        let storage = storage.ok_or_else(|| SqlError::internal("an index without storage"))?;
        let transaction = &self.open.transaction;
        let waiting = &mut self.waiting;
        let mut sorter = Sorter::new(&self.shared.queries, self.memory);
        let (mut key, mut value) = (Vec::new(), Vec::new());
        let mut cursor = transaction.cursor(rows, ..)?;
        while let Some((row_key, bytes)) = cursor.next()? {
            waiting.look_cancelled()?;
            let view = table.schema.view(bytes)?;
            let has = rows::entry(
                &shape.keys[0],
                RowRef::Stored(view),
                row_key,
                &mut key,
                &mut value,
            )?;
            if has && sorter.push(&key, &value)? == Taken::NoRoom {
                return Ok(Taken::NoRoom);
            }
        }
        drop(cursor);
        let mut sorted = sorter.sorted()?;
        let mut last: Option<Vec<u8>> = None;
        let mut twice = None;
        load(transaction, storage, |key, value| {
            waiting.look_cancelled()?;
            if !sorted.next(key, value)? {
                return Ok(false);
            }
            let last = last.get_or_insert_default();
            if last == key {
                twice = Some(rows::primary_key_of(key, value)?.to_vec());
                return Ok(false);
            }
            last.clone_from(key);
            Ok(true)
        })?;
        let Some(row_key) = twice else {
            return Ok(Taken::Yes);
        };
        let row = transaction.get(rows, &row_key, <[u8]>::to_vec)?;
        let row = row.ok_or_else(|| SqlError::internal("an entry without its row"))?;
        let view = table.schema.view(&row)?;
        let values = (0..table.schema.len()).map(|at| Ok(view.get(at)?.to_value()));
        let values: Vec<Value> = values.collect::<Result<_>>()?;
        let duplicate = Duplicate {
            index: 0,
            row_key,
            unsettled: None,
            outdated: false,
        };
        Err(self.not_unique(&duplicate, shape, &values))
    }

    /// Inserts the entries one by one. Some megabytes of rows are read, then written.
    fn insert_each(&mut self, relation: &Relation, shape: &Shape) -> Result<()> {
        let mut after = None::<Vec<u8>>;
        loop {
            let mut read: Vec<(Vec<u8>, Vec<Value>)> = Vec::new();
            after = self.rows_behind(relation, after.as_deref(), PIECE_BYTES, |key, values| {
                read.push((key.to_vec(), values.to_vec()));
                Ok(())
            })?;
            for (key, values) in &read {
                let transaction = &self.open.transaction;
                let inserted = rows::insert_entry(transaction, shape, 0, values, key)?;
                if let Err(duplicate) = inserted {
                    return Err(self.not_unique(&duplicate, shape, values));
                }
            }
            if after.is_none() {
                return Ok(());
            }
        }
    }
}
