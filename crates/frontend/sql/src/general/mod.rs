//! Queries that no program runs: their bound trees become relations of `vellum_query`, whose operators ask this thread for rows.
//!
//! What an expression means is said in one place: where an operator has no comparison that means the same, the expression itself
//! is what is called for each row ([`function`]). So both ways give the same answers, and the same errors.
//!
//! A subquery that reads the query around it becomes a join where DataFusion knows one; where it knows none, the query is planned
//! again with that subquery as a function that is asked for each row ([`Subqueries::Asked`]).
//!
//! Invariants:
//! - G8 A join computes a subquery also for keys that no row asks for. So a query that fails with what a value is (`22…`), with a subquery whose value is wanted, or IN, in a join that may fail, is run again as if there were no
//!   plan, unless a row was told or it draws: what fails then would have failed row by row. Not for EXISTS, which PostgreSQL joins, too.
//!
//! Not here: which queries come here (`plan`: [`Select::general`]).

mod correlated;
mod fold;
mod function;
mod guards;
mod host;
mod joins;
mod kept;
mod order;
mod outside;
mod parts;
mod shape;
mod sieve;
mod standing;
mod term;
mod translate;
mod windows;

pub(crate) use standing::Stands;
pub(crate) use translate::STEPS_MAX;

use crate::error::{Result, SqlError};
use crate::exec::{Each, Flow, Run};
use crate::expr::{Explain, Out};
use crate::plan::{General, Select};
use crate::sqlstate;
use host::{Sources, StatementHost};
use standing::{LeftOpen, Standing};
use std::cell::Cell;
use translate::{Subqueries, Translation};
use vellum_base::maps::HashMap;
use vellum_query::{Error, Failure, Joins, Limits, Line, Reader, Served};
use vellum_row::ValueRef;

/// How many times `work_mem` a query may have whose joins do not fit into it: as much as PostgreSQL gives to four joins by hash, twice `work_mem` each.
pub(crate) const JOIN_MEMORY: usize = 8;
/// What a query for operators fails with that they have no plan for.
const UNPLANNED: &str = "this query has no plan";
/// Bytes that it has then at least: operators take batches of many rows, which a small `work_mem` has no room for, however often they are spilled.
const AGAIN_LEAST: usize = 64 << 20;

impl Run<'_, '_> {
    /// Runs a query that no program runs.
    ///
    /// # Errors
    /// The statement's.
    pub(crate) fn general(&self, select: &Select, each: &mut Each<'_>) -> Result<Flow> {
        if let Some(stands) = self.stands.take() {
            // Unless it comes to stand still.
            stands.end();
            let done = match stands.take() {
                Some(standing) => {
                    let nobody = (Vec::new(), &LeftOpen::default());
                    self.serve(standing, nobody, stands, each).map_err(told)
                }
                None => self.by_operators(select, Some(stands), each),
            };
            return done;
        }
        if select.locks.is_empty() {
            return self.by_operators(select, None, each);
        }
        let limit = self.count_of(select.limit.as_ref(), &select.subqueries, "LIMIT")?;
        let offset = self.count_of(select.offset.as_ref(), &select.subqueries, "OFFSET")?;
        let (mut skip, mut left) = (offset.unwrap_or(0), limit.unwrap_or(u64::MAX));
        if left == 0 {
            return Ok(Flow::More);
        }
        let mut stopped = Flow::More;
        self.by_operators(select, None, &mut |row| {
            let (row, keys) = row.split_at(select.types.len());
            // Behind the sort and before the limit: what is not returned is not locked.
            if !self.lock_keys(select, |number| key_in(keys.get(number)?))? {
                return Ok(Flow::More);
            }
            if skip > 0 {
                skip -= 1;
                return Ok(Flow::More);
            }
            left -= 1;
            stopped = each(row)?;
            Ok(if left == 0 { Flow::Enough } else { stopped })
        })?;
        Ok(stopped)
    }

    /// The rows of a query that DataFusion's operators make; of one that locks rows those that may be locked, as [`Translation::top`] says. It may come to stand still where
    /// that can be noted.
    fn by_operators(
        &self,
        select: &Select,
        stands: Option<&Stands>,
        each: &mut Each<'_>,
    ) -> Result<Flow> {
        let heard = Cell::new(false);
        let mut each = |row: &[Out<'_>]| {
            heard.set(true);
            each(row)
        };
        let room = self.room();
        let mut run = |joins, memory_bytes| {
            self.set_room(room);
            let limits = Limits {
                memory_bytes,
                joins,
            };
            let mut before = None;
            if !self.is_known_unplanned(select) {
                let tried = Tried::new(Subqueries::Joined);
                match self.general_with(select, &tried, limits, stands, &mut each) {
                    Err(Error::Unplanned(_)) => self.note_unplanned(select),
                    // G8. Not noted: other rows may have other values.
                    Err(error)
                        if tried.may_fail.get()
                            && !heard.get()
                            && is_of_value(&error)
                            && !select.is_volatile() =>
                    {
                        self.set_room(room);
                        before = Some(error);
                    }
                    done => return done,
                }
            }
            let tried = Tried::new(Subqueries::Asked);
            let done = self.general_with(select, &tried, limits, stands, &mut each);
            match (done, before) {
                // A program asks row by row, too.
                (Err(Error::Unplanned(_)), Some(error))
                    if !select.general.is_some_and(General::has_program) =>
                {
                    Err(error)
                }
                (done, _) => done,
            }
        };
        let mut done = run(Joins::Hashed, room.memory);
        let more = room.memory.saturating_mul(JOIN_MEMORY).max(AGAIN_LEAST);
        let mut again = vec![
            (Joins::Hashed, more),
            (Joins::Sorted, room.memory.max(AGAIN_LEAST)),
            (Joins::Sorted, more),
        ];
        again.dedup();
        for (joins, memory_bytes) in again {
            // A side of a join that does not fit: PostgreSQL would have it in files, too.
            if !matches!(done, Err(Error::Memory(_))) || !self.queries.spills() || heard.get() {
                break;
            }
            done = run(joins, memory_bytes);
        }
        done.map_err(told)
    }

    fn general_with(
        &self,
        select: &Select,
        tried: &Tried,
        limits: Limits,
        stands: Option<&Stands>,
        each: &mut Each<'_>,
    ) -> std::result::Result<Flow, Error> {
        let (line, requests) = Line::new();
        let mut translation = Translation::new(self, line.clone(), tried.subqueries);
        translation.in_order |= select.shows_order();
        let relation = translation.top(select).map_err(failed)?;
        let relation = relation.readable(&translation.symbols)?;
        let sources = translation.into_sources();
        tried.may_fail.set(sources.joins_unsure);
        let parted = sources.parted();
        let parts = match parted.iter().any(Option::is_some) {
            true => self.queries.parts(),
            false => 0,
        };
        let explain = self.env.explain();
        if let Some((lines, Explain::Plan)) = explain {
            lines
                .borrow_mut()
                .extend(self.queries.explain(&relation, limits, parts)?);
            return Ok(Flow::More);
        }
        let shared = (parts > 0).then(|| self.transaction.share());
        let shared = shared.transpose().map_err(|error| failed(error.into()))?;
        let left = LeftOpen::default();
        let readers = parts::readers(self.engine, shared.as_ref(), &parted, parts, &left);
        let readers = readers.map_err(failed)?;
        let Sources { scans, asked, .. } = sources;
        if let Some(stands) = stands.filter(|_| asked.is_empty()) {
            let line = (requests, line);
            let running = self.queries.start(&relation, line, limits, readers.len())?;
            let standing = Standing {
                running,
                scans,
                parted: parted.clone(),
                open: HashMap::default(),
            };
            return self.serve(Box::new(standing), (readers, &left), stands, each);
        }
        let mut host =
            StatementHost::new(self, (scans.as_slice(), asked.as_slice()), &parted, each);
        if stands.is_some() {
            host.goes_to_its_end();
        }
        let line = (requests, line);
        match explain {
            None => self
                .queries
                .run(&relation, line, limits, &mut host, readers)?,
            Some((lines, _)) => {
                let told = self
                    .queries
                    .analyze(&relation, line, limits, &mut host, readers)?;
                lines.borrow_mut().extend(told);
            }
        }
        Ok(host.flow())
    }

    /// Runs a query until its rows are enough, and has it stand still then, if it may.
    fn serve(
        &self,
        mut standing: Box<Standing>,
        (readers, left): (Vec<Box<dyn Reader + '_>>, &LeftOpen),
        stands: &Stands,
        each: &mut Each<'_>,
    ) -> std::result::Result<Flow, Error> {
        let open = std::mem::take(&mut standing.open);
        let Standing {
            running,
            scans,
            parted,
            ..
        } = &mut *standing;
        let mut host = StatementHost::new(self, (scans.as_slice(), &[]), parted, each);
        host.open_again(open).map_err(failed)?;
        if let Served::Stands = running.serve(&mut host, readers)? {
            let left = std::mem::take(&mut *left.lock());
            host.open_again(left).map_err(failed)?;
            if self.queries.may_stand(running)? {
                let open = host.leave();
                drop(host);
                standing.open = open;
                stands.keep(standing);
                return Ok(Flow::Enough);
            }
            host.goes_to_its_end();
            running.serve(&mut host, Vec::new())?;
        }
        Ok(host.flow())
    }
}

/// A way in which a query is run.
struct Tried {
    subqueries: Subqueries,
    /// Whether a subquery became a join, and may fail.
    may_fail: Cell<bool>,
}

impl Tried {
    fn new(subqueries: Subqueries) -> Self {
        let may_fail = Cell::new(false);
        Self {
            subqueries,
            may_fail,
        }
    }
}

/// Whether a function failed with what its values are.
fn is_of_value(error: &Error) -> bool {
    let Error::Failed(failure) = error else {
        return false;
    };
    let own = failure.downcast_ref::<SqlError>().map(SqlError::sqlstate);
    let row = failure.downcast_ref::<vellum_row::SqlError>();
    match own.or_else(|| row.map(vellum_row::SqlError::state)) {
        Some(state) => state.class() == "22",
        None => failure.downcast_ref::<Error>().is_some_and(is_of_value),
    }
}

/// The key of a row in a column.
fn key_in<'o>(out: &'o Out<'_>) -> Option<&'o [u8]> {
    match out.as_ref() {
        ValueRef::Bytea(key) => Some(key),
        _ => None,
    }
}

/// What a failure was, told as the statement's.
fn carried(failure: Failure) -> SqlError {
    told(Error::Failed(failure))
}

/// Why there is no relation.
fn failed(error: SqlError) -> Error {
    if error.sqlstate() == sqlstate::FEATURE_NOT_SUPPORTED {
        // The other way may have it.
        return Error::Unplanned(error.message().to_owned());
    }
    Error::Failed(Box::new(error))
}

/// What a client is told.
fn told(error: Error) -> SqlError {
    match error {
        Error::Failed(failure) => match failure.downcast::<SqlError>() {
            Ok(own) => *own,
            Err(failure) => match failure.downcast::<vellum_row::SqlError>() {
                Ok(own) => (*own).into(),
                Err(failure) => match failure.downcast::<Error>() {
                    Ok(inner) => told(*inner),
                    Err(failure) => SqlError::internal(failure.to_string()),
                },
            },
        },
        Error::Memory(text) => SqlError::new(sqlstate::OUT_OF_MEMORY, "out of memory")
            .with_detail(text)
            .with_hint("Raise work_mem."),
        Error::File(error) => SqlError::of_temporary_file(&error),
        Error::Unplanned(text) => {
            SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, UNPLANNED).with_detail(text)
        }
        Error::Internal(text) => SqlError::internal(text),
    }
}

/// Whether operators have no plan for a query.
pub(crate) fn is_unplanned(error: &SqlError) -> bool {
    error.sqlstate() == sqlstate::FEATURE_NOT_SUPPORTED && error.message() == UNPLANNED
}
