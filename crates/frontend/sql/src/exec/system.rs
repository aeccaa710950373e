//! Rows that a query keeps of what it joins: of system relations and of subqueries in FROM, found by the value of a column.

use super::Run;
use crate::error::Result;
use crate::system::Definition;
use std::cell::RefCell;
use std::hash::{DefaultHasher, Hasher};
use std::rc::Rc;
use std::sync::Arc;
use vellum_base::maps::HashMap;
use vellum_row::{Value, ValueRef, hash};

/// Rows in memory.
#[derive(Debug, Default)]
pub(crate) struct KeptRows {
    /// Shared with queries of operators that stand still, and are of no session's thread meanwhile.
    pub rows: Arc<Vec<Vec<Value>>>,
    /// By column, once rows were looked up by it: numbers of rows by the hash of their value.
    by_column: RefCell<HashMap<usize, Rc<HashMap<u64, Vec<usize>>>>>,
}

/// Those of system relations that a statement has made.
pub(crate) type SystemRows = RefCell<HashMap<u32, Rc<KeptRows>>>;

fn hash_of(value: ValueRef<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    hash(value, &mut hasher);
    hasher.finish()
}

impl KeptRows {
    /// These rows.
    pub fn new(rows: Vec<Vec<Value>>) -> Rc<Self> {
        Rc::new(Self {
            rows: Arc::new(rows),
            by_column: RefCell::default(),
        })
    }

    /// Numbers of the rows that may have this value in a column: all that have it, and few others.
    pub fn with(&self, column: usize, value: ValueRef<'_>) -> Vec<usize> {
        if value.is_null() {
            return Vec::new();
        }
        let mut by_column = self.by_column.borrow_mut();
        let index = by_column.entry(column).or_insert_with(|| {
            let mut index: HashMap<u64, Vec<usize>> = HashMap::default();
            for (number, row) in self.rows.iter().enumerate() {
                let value = row[column].as_ref();
                if !value.is_null() {
                    index.entry(hash_of(value)).or_default().push(number);
                }
            }
            Rc::new(index)
        });
        index.get(&hash_of(value)).cloned().unwrap_or_default()
    }
}

impl Run<'_, '_> {
    /// The rows of a system relation, made once a statement.
    ///
    /// # Errors
    /// `53200`, `42501`, storage errors.
    pub fn system_rows(&self, definition: &'static Definition) -> Result<Rc<KeptRows>> {
        if let Some(known) = self.system.borrow().get(&definition.oid) {
            return Ok(known.clone());
        }
        let rows = self.env.system_rows(definition)?;
        rows.iter().try_for_each(|row| self.keep_row(row))?;
        let rows = KeptRows::new(rows);
        self.system
            .borrow_mut()
            .insert(definition.oid, rows.clone());
        Ok(rows)
    }
}
