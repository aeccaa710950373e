//! Aggregates whose rows have to be together first: DISTINCT, and those with an order.
//!
//! Layout of what is saved: for each row, for each value a length (little-endian, -1 for null) and the value's binary form.

use crate::aggregate::{Fold, Folding};
use crate::error::{Error, Failure};
use crate::function::key;
use std::cmp::Ordering;
use std::sync::Arc;
use vellum_base::maps::HashSet;
use vellum_row::{Type, Typmod, Value, ValueRef, compare, receive, send};

/// A group whose rows are kept.
#[derive(Debug)]
pub(crate) struct Collecting {
    fold: Arc<dyn Fold>,
    types: Vec<Type>,
    /// Arguments of the aggregate; keys of the order stand behind them.
    own: usize,
    how: Arc<(bool, Vec<(bool, bool)>)>,
    rows: Vec<Vec<Value>>,
    seen: HashSet<Vec<u8>>,
    bytes: usize,
}

/// What a row takes beside its values.
const ROW_BYTES: usize = 64;

impl Collecting {
    pub fn new(
        fold: Arc<dyn Fold>,
        types: Vec<Type>,
        own: usize,
        how: Arc<(bool, Vec<(bool, bool)>)>,
    ) -> Self {
        Self {
            fold,
            types,
            own,
            how,
            rows: Vec::new(),
            seen: HashSet::default(),
            bytes: 0,
        }
    }

    fn order(&self, a: &[Value], b: &[Value]) -> Ordering {
        let keys = a[self.own..].iter().zip(&b[self.own..]);
        for ((a, b), (descending, nulls_first)) in keys.zip(&self.how.1) {
            let found = match (a.is_null(), b.is_null()) {
                (true, true) => Ordering::Equal,
                (true, false) if *nulls_first => Ordering::Less,
                (true, false) => Ordering::Greater,
                (false, true) if *nulls_first => Ordering::Greater,
                (false, true) => Ordering::Less,
                (false, false) if *descending => compare(b.as_ref(), a.as_ref()),
                (false, false) => compare(a.as_ref(), b.as_ref()),
            };
            if found.is_ne() {
                return found;
            }
        }
        Ordering::Equal
    }
}

impl Folding for Collecting {
    fn add(&mut self, arguments: &[ValueRef<'_>]) -> Result<(), Failure> {
        if self.how.0 {
            let mut bytes = Vec::with_capacity(16);
            // All that tells rows apart is among the keys of the order, if there are keys.
            let from = if self.how.1.is_empty() { 0 } else { self.own };
            let all = self.types.iter().zip(arguments).skip(from);
            for (ty, value) in all {
                bytes.push(u8::from(value.is_null()));
                if !value.is_null() {
                    key(*ty, *value, &mut bytes)?;
                }
            }
            let length = bytes.len();
            if !self.seen.insert(bytes) {
                return Ok(());
            }
            self.bytes += length + ROW_BYTES;
        }
        let row: Vec<Value> = arguments.iter().map(|value| value.to_value()).collect();
        let heap = arguments.iter().map(ValueRef::heap_bytes);
        self.bytes += ROW_BYTES + size_of_val(row.as_slice()) + heap.sum::<usize>();
        self.rows.push(row);
        Ok(())
    }

    fn finish(&mut self) -> Result<Value, Failure> {
        let mut rows: Vec<&Vec<Value>> = self.rows.iter().collect();
        if !self.how.1.is_empty() {
            rows.sort_by(|a, b| self.order(a, b));
        } else {
            // DISTINCT sorts, in PostgreSQL.
            rows.sort_by(|a, b| {
                let pairs = a.iter().zip(b.iter());
                let orders = pairs.map(|(a, b)| compare(a.as_ref(), b.as_ref()));
                orders.fold(Ordering::Equal, Ordering::then)
            });
        }
        let mut inner = self.fold.start();
        for row in rows {
            let row: Vec<ValueRef<'_>> = row[..self.own].iter().map(Value::as_ref).collect();
            inner.add(&row)?;
        }
        inner.finish()
    }

    fn save(&self) -> Vec<Value> {
        let mut out = Vec::new();
        let mut bytes = Vec::new();
        for value in self.rows.iter().flatten() {
            if value.is_null() {
                out.extend_from_slice(&(-1i32).to_le_bytes());
                continue;
            }
            bytes.clear();
            // What is too long to be told is not there when it is merged, which fails then.
            let length = match send(value.as_ref(), &mut bytes) {
                Ok(()) => i32::try_from(bytes.len()).unwrap_or(i32::MAX),
                Err(_) => i32::MAX,
            };
            out.extend_from_slice(&length.to_le_bytes());
            out.extend_from_slice(&bytes);
        }
        vec![Value::Bytea(out.into())]
    }

    fn merge(&mut self, saved: &[ValueRef<'_>]) -> Result<(), Failure> {
        let damaged = || Error::internal("rows of an aggregate that are none");
        let [ValueRef::Bytea(mut bytes)] = *saved else {
            return Err(Box::new(damaged()));
        };
        while !bytes.is_empty() {
            let mut row = Vec::with_capacity(self.types.len());
            for ty in &self.types {
                let (length, rest) = bytes.split_first_chunk().ok_or_else(damaged)?;
                bytes = rest;
                let Ok(length) = usize::try_from(i32::from_le_bytes(*length)) else {
                    row.push(Value::Null);
                    continue;
                };
                let (value, rest) = bytes.split_at_checked(length).ok_or_else(damaged)?;
                bytes = rest;
                row.push(receive(*ty, Typmod::NONE, value)?);
            }
            let row: Vec<ValueRef<'_>> = row.iter().map(Value::as_ref).collect();
            self.add(&row)?;
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}
