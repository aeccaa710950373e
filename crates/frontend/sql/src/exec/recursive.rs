//! WITH RECURSIVE: what the base makes, then what the step makes of that, until it makes nothing.

use super::distinct::DistinctRows;
use super::system::KeptRows;
use super::{Flow, Run};
use crate::error::{Result, SqlError};
use crate::plan::{Recursive, Select};
use std::rc::Rc;
use vellum_row::{Value, ValueRef};

impl Run<'_, '_> {
    /// Tells `each` the rows as they are made, which may never end.
    pub(super) fn recursion(
        &self,
        recursive: &Recursive,
        each: &mut dyn FnMut(&[Value]) -> Result<Flow>,
    ) -> Result<Flow> {
        let mut seen = (!recursive.all).then(DistinctRows::default);
        let mut rows = self.made(&recursive.base, seen.as_mut())?;
        while !rows.is_empty() {
            for row in &rows {
                if each(row)? == Flow::Enough {
                    return Ok(Flow::Enough);
                }
            }
            let bytes: usize = rows.iter().map(|row| super::bytes_of_row(row)).sum();
            let work = KeptRows::new(rows);
            let around = self.work.borrow_mut().insert(recursive.number, work);
            let next = self.made(&recursive.step, seen.as_mut());
            let mut tables = self.work.borrow_mut();
            match around {
                Some(around) => tables.insert(recursive.number, around),
                None => tables.remove(&recursive.number),
            };
            drop(tables);
            self.give_back(bytes);
            rows = next?;
        }
        Ok(Flow::More)
    }

    /// All of them, kept.
    ///
    /// # Errors
    /// `53200`, those of the queries.
    pub(crate) fn recursive_rows(&self, recursive: &Recursive) -> Result<Rc<KeptRows>> {
        let mut rows = Vec::new();
        if self.plans_only() {
            return Ok(KeptRows::new(rows));
        }
        self.recursion(recursive, &mut |row| {
            self.keep_row(row)?;
            rows.push(row.to_vec());
            Ok(Flow::More)
        })?;
        Ok(KeptRows::new(rows))
    }

    /// What the step with this number is run with, or what a statement of WITH has returned.
    ///
    /// # Errors
    /// Those of a query that is run now.
    pub(crate) fn work(&self, number: usize) -> Result<Rc<KeptRows>> {
        self.run_late(number)?;
        let found = self.work.borrow().get(&number).cloned();
        found.ok_or_else(|| SqlError::internal("a step of nothing"))
    }

    /// Rows of a query that have not come before, if that counts.
    fn made(
        &self,
        select: &Select,
        mut seen: Option<&mut DistinctRows>,
    ) -> Result<Vec<Vec<Value>>> {
        let mut rows = Vec::new();
        self.select(select, &mut |row| {
            let row: Vec<Value> = row.iter().map(|out| out.as_ref().to_value()).collect();
            if let Some(seen) = &mut seen {
                let values: Vec<ValueRef<'_>> = row.iter().map(Value::as_ref).collect();
                if !self.number_of(seen, &values)?.1 {
                    return Ok(Flow::More);
                }
            }
            self.keep_row(&row)?;
            rows.push(row);
            Ok(Flow::More)
        })?;
        Ok(rows)
    }
}
