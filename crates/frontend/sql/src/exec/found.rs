//! Rows that a query finds to be changed, before any of them is: keys, and the values that stand behind them.
//!
//! Memory: in the order of their coming up to what the statement may keep; all of them sorted by key, through a file, where that is too little.
//!
//! Invariants:
//! - FD1 None comes out before the query has ended: a change does not meet the query that finds it.
//! - FD2 Where a key counts once ([`Of::Changed`]), the values that came with it first are its values, in memory and behind it.

use super::{Flow, Run, bytes_of_row};
use crate::error::{Result, SqlError};
use crate::plan::ByJoin;
use crate::sorted::{Sorted, Sorter, Taken};
use vellum_base::maps::HashSet;
use vellum_row::{Column, Schema, Type, Typmod, Value, ValueRef};

/// What is sorted through a file has so many bytes of memory at least.
pub(super) const SORT_MIN: usize = 1 << 20;

/// A row of the target by its key, if there is one, and what stands behind it.
pub(super) type FoundRow = (Option<Vec<u8>>, Vec<Value>);

/// Whose rows they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Of {
    /// UPDATE and DELETE: a key counts once, and what has none is nobody's row.
    Changed,
    /// MERGE: each row of the source counts.
    Merged,
}

/// The rows, in memory or on their way through a file.
enum Place<'q> {
    Memory(Vec<FoundRow>),
    /// What stands behind the keys has this form in the file.
    Sorter(Sorter<'q>, Schema),
}

/// What a query has found so far.
struct Finding<'r, 'q> {
    of: Of,
    seen: HashSet<Vec<u8>>,
    place: Place<'q>,
    /// Bytes that are kept.
    kept: usize,
    types: &'r [Type],
}

/// All that it has found, to be handed out.
pub(super) enum Found {
    Memory(std::vec::IntoIter<FoundRow>),
    Sorted {
        sorted: Sorted,
        of: Of,
        schema: Schema,
        /// The key that was handed out last.
        last: Option<Vec<u8>>,
    },
}

impl<'q> Run<'q, '_> {
    /// Runs a query to its end.
    ///
    /// # Errors
    /// The query's; `53200` if what it finds does not fit into memory and there is no place for files; `53100`, `58030`.
    pub(super) fn found_by(&self, joined: &ByJoin, of: Of) -> Result<Found> {
        let mut finding: Finding<'_, 'q> = Finding {
            of,
            seen: HashSet::default(),
            place: Place::Memory(Vec::new()),
            kept: 0,
            types: &joined.select.types[1..],
        };
        self.select(&joined.select, &mut |row| {
            let key = match row[0].as_ref() {
                ValueRef::Bytea(key) => Some(key),
                // The missing side of an outer join.
                _ => None,
            };
            let passed = match key {
                Some(key) => finding.seen.contains(key),
                None => of == Of::Changed,
            };
            if !passed {
                let rest = row[1..].iter().map(|out| out.as_ref().to_value());
                finding.push(self, key, rest.collect())?;
            }
            Ok(Flow::More)
        })?;
        finding.end()
    }
}

impl<'q> Finding<'_, 'q> {
    fn push(&mut self, run: &Run<'q, '_>, key: Option<&[u8]>, rest: Vec<Value>) -> Result<()> {
        if let Place::Memory(rows) = &mut self.place {
            let bytes = bytes_of_row(&rest) + 2 * key.map_or(0, <[u8]>::len) + 64;
            let Err(full) = run.keep(bytes) else {
                self.kept += bytes;
                if let (Of::Changed, Some(key)) = (self.of, key) {
                    self.seen.insert(key.to_vec());
                }
                rows.push((key.map(<[u8]>::to_vec), rest));
                return Ok(());
            };
            let rows = std::mem::take(rows);
            self.seen = HashSet::default();
            // The rows go as the entries come.
            let memory = (self.kept / 2).max(SORT_MIN);
            self.place = Place::Sorter(Sorter::new(run.queries, memory), schema(self.types)?);
            for (key, rest) in rows {
                if self.sort(key.as_deref(), &rest)? == Taken::NoRoom {
                    return Err(full);
                }
            }
        }
        match self.sort(key, &rest)? {
            Taken::Yes => Ok(()),
            // There is no place for files.
            Taken::NoRoom => run.keep(usize::MAX),
        }
    }

    fn sort(&mut self, key: Option<&[u8]>, rest: &[Value]) -> Result<Taken> {
        let Place::Sorter(sorter, schema) = &mut self.place else {
            return Err(SqlError::internal("rows in memory are not sorted"));
        };
        let mut bytes = Vec::new();
        let rest: Vec<ValueRef<'_>> = rest.iter().map(Value::as_ref).collect();
        schema.encode(&rest, &mut bytes)?;
        let mut sorted_by = vec![u8::from(key.is_some())];
        sorted_by.extend_from_slice(key.unwrap_or_default());
        sorter.push(&sorted_by, &bytes)
    }

    fn end(self) -> Result<Found> {
        Ok(match self.place {
            Place::Memory(rows) => Found::Memory(rows.into_iter()),
            Place::Sorter(sorter, schema) => Found::Sorted {
                sorted: sorter.sorted()?,
                of: self.of,
                schema,
                last: None,
            },
        })
    }
}

/// The form of the values behind a key, in a file.
fn schema(types: &[Type]) -> Result<Schema> {
    let columns = (1..).zip(types);
    let columns = columns
        .map(|(number, ty): (u32, &Type)| Column::new(number.to_string(), *ty, Typmod::NONE, true));
    Ok(Schema::new(columns.collect())?)
}

impl Found {
    /// The next row; `None` behind the last one.
    ///
    /// # Errors
    /// `58030`.
    pub fn next(&mut self) -> Result<Option<FoundRow>> {
        let (sorted, of, schema, last) = match self {
            Self::Memory(rows) => return Ok(rows.next()),
            Self::Sorted {
                sorted,
                of,
                schema,
                last,
            } => (sorted, *of, schema, last),
        };
        loop {
            let (mut key, mut bytes) = (Vec::new(), Vec::new());
            if !sorted.next(&mut key, &mut bytes)? {
                return Ok(None);
            }
            let named = (key[0] != 0).then(|| key[1..].to_vec());
            if of == Of::Changed && *last == named {
                continue;
            }
            last.clone_from(&named);
            let view = schema.view(&bytes)?;
            let rest = (0..schema.len()).map(|at| Ok(view.get(at)?.to_value()));
            return Ok(Some((named, rest.collect::<Result<_>>()?)));
        }
    }
}
