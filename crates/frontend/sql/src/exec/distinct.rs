//! Rows that are told apart as DISTINCT and GROUP BY tell them: nulls are one value, and what is equal in SQL is one
//! value however it looks.

use std::hash::{DefaultHasher, Hasher};
use vellum_row::{Value, ValueRef, compare, hash};

/// Rows, each once, numbered in the order in which they came.
#[derive(Debug, Default)]
pub(crate) struct DistinctRows {
    rows: Vec<Vec<Value>>,
    numbers: hashbrown::HashTable<usize>,
}

impl DistinctRows {
    /// The number of a row, if it has come before.
    pub fn find<'v>(&self, row: &[impl Into<ValueRef<'v>> + Copy]) -> Option<usize> {
        let same = |number: &usize| same(&self.rows[*number], row);
        self.numbers.find(hash_of(row), same).copied()
    }

    /// Adds a row that has not come before; returns its number.
    pub fn add(&mut self, row: Vec<Value>) -> usize {
        debug_assert!(self.find(&refs(&row)).is_none());
        let number = self.rows.len();
        let hash = hash_of(&refs(&row));
        self.rows.push(row);
        let rows = &self.rows;
        let again = |number: &usize| hash_of(&refs(&rows[*number]));
        self.numbers.insert_unique(hash, number, again);
        number
    }

    /// The rows by their numbers.
    pub fn rows(&self) -> &[Vec<Value>] {
        &self.rows
    }

    /// The same, to keep.
    pub fn into_rows(self) -> Vec<Vec<Value>> {
        self.rows
    }
}

fn refs(row: &[Value]) -> Vec<ValueRef<'_>> {
    row.iter().map(Value::as_ref).collect()
}

fn hash_of<'v>(row: &[impl Into<ValueRef<'v>> + Copy]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for value in row {
        hash((*value).into(), &mut hasher);
    }
    hasher.finish()
}

fn same<'v>(known: &[Value], row: &[impl Into<ValueRef<'v>> + Copy]) -> bool {
    debug_assert_eq!(known.len(), row.len());
    let mut pairs = known.iter().zip(row);
    pairs.all(|(known, value)| compare(known.as_ref(), (*value).into()).is_eq())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use vellum_row::Numeric;

    #[test]
    fn equal_rows_are_one_however_they_look() {
        let number = |text: &str| Value::Numeric(Numeric::parse(text).unwrap());
        let mut rows = DistinctRows::default();
        let mut put = |row: Vec<Value>| {
            let known = rows.find(&refs(&row));
            known.unwrap_or_else(|| rows.add(row))
        };
        assert_eq!(put(vec![number("1.0"), Value::Null]), 0);
        assert_eq!(put(vec![number("1.00"), Value::Null]), 0);
        assert_eq!(put(vec![number("1"), Value::Int4(0)]), 1);
        assert_eq!(put(vec![number("2"), Value::Null]), 2);
        assert_eq!(put(vec![number("1"), Value::Int4(0)]), 1);
        assert_eq!(rows.into_rows().len(), 3);
    }
}
