//! Rows that follow a key that is gone: found before the first of them is changed, in memory, or sorted by key through a file where they do not fit.

use super::found::SORT_MIN;
use super::{Flow, Run};
use crate::error::Result;
use crate::plan::Foreign;
use crate::sorted::{Sorted, Sorter, Taken};
use vellum_row::Value;

/// A row by its key, and its bytes.
pub(super) type Child = (Vec<u8>, Vec<u8>);

/// Those that were found so far.
#[derive(Default)]
struct Finding<'q> {
    rows: Vec<Child>,
    /// Bytes that are kept of them.
    kept: usize,
    sorter: Option<Sorter<'q>>,
}

/// All of them, to be handed out.
pub(super) struct Children {
    rows: Rows,
    kept: usize,
}

enum Rows {
    Memory(std::vec::IntoIter<Child>),
    Sorted(Sorted),
}

impl<'q> Run<'q, '_> {
    /// The rows that refer to a key, and are to be changed.
    ///
    /// # Errors
    /// `53200` if they do not fit into memory and there is no place for files; `53100`, `58030`.
    pub(super) fn followers(&self, foreign: &Foreign, old: &[Value]) -> Result<Children> {
        let mut finding = Finding::<'q>::default();
        self.each_child(foreign, old, &mut |key, bytes| {
            finding.push(self, key, bytes)?;
            Ok(Flow::More)
        })?;
        let rows = match finding.sorter {
            None => Rows::Memory(finding.rows.into_iter()),
            Some(sorter) => Rows::Sorted(sorter.sorted()?),
        };
        let kept = finding.kept;
        Ok(Children { rows, kept })
    }
}

impl<'q> Finding<'q> {
    fn push(&mut self, run: &Run<'q, '_>, key: &[u8], bytes: &[u8]) -> Result<()> {
        if let Some(sorter) = &mut self.sorter {
            return match sorter.push(key, bytes)? {
                Taken::Yes => Ok(()),
                // There is no place for files.
                Taken::NoRoom => run.keep(usize::MAX),
            };
        }
        let size = key.len() + bytes.len() + 2 * size_of::<Child>();
        let Err(full) = run.keep(size) else {
            self.kept += size;
            self.rows.push((key.to_vec(), bytes.to_vec()));
            return Ok(());
        };
        // The rows go as the entries come.
        let mut sorter = Sorter::new(run.queries, (self.kept / 2).max(SORT_MIN));
        let last = (key.to_vec(), bytes.to_vec());
        for (key, bytes) in std::mem::take(&mut self.rows).into_iter().chain([last]) {
            if sorter.push(&key, &bytes)? == Taken::NoRoom {
                return Err(full);
            }
        }
        self.sorter = Some(sorter);
        run.give_back(std::mem::take(&mut self.kept));
        Ok(())
    }
}

impl Children {
    /// Bytes that they were kept as: to be given back behind the last one.
    pub fn kept(&self) -> usize {
        self.kept
    }

    /// The next row; `None` behind the last one.
    ///
    /// # Errors
    /// `58030`.
    pub fn next(&mut self) -> Result<Option<Child>> {
        let sorted = match &mut self.rows {
            Rows::Memory(rows) => return Ok(rows.next()),
            Rows::Sorted(sorted) => sorted,
        };
        let (mut key, mut bytes) = (Vec::new(), Vec::new());
        let found = sorted.next(&mut key, &mut bytes)?;
        Ok(found.then_some((key, bytes)))
    }
}
