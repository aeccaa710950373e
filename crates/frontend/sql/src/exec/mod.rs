//! Running programs against a transaction of the engine.
//!
//! Rows are pushed: a scan calls what reads it, down to the sink, and nothing is kept but what a sort, a group or a
//! subquery needs; that is counted against [`Run::memory`].
//!
//! Concurrency: a cursor counts no operation of the engine while what it found is worked on, so a slow client holds nobody up.

mod acl_rows;
mod aggregate;
mod change;
mod children;
mod deferred;
mod distinct;
mod foreign;
mod found;
mod json_rows;
mod last;
mod late;
mod lock;
mod merge;
mod ordered;
mod owed;
mod partial;
mod pieces;
mod recursive;
mod room;
mod scan;
mod select;
mod set_rows;
mod system;
mod within;

pub(crate) use distinct::DistinctRows;
pub(crate) use foreign::no_target;
pub(crate) use owed::{Deferred, Owed, OwedMark, OwedPoint};
pub(crate) use partial::{Partial, Squares, arrays_saved};
pub(crate) use pieces::Place;
pub(crate) use room::{Account, Room};
pub(crate) use scan::{TableScan, no_step};
pub(crate) use set_rows::SetRows;
pub(crate) use system::KeptRows;

use crate::catalog::{Catalog, Published};
use crate::database::Shared;
use crate::error::{Result, SqlError};
use crate::expr::{
    Environment, Explain, Expr, Frame, Out, Queries, Returned, RowRef, RowSet, Subresult,
};
use crate::general::Stands;
use crate::lock::HeldLocks;
use crate::plan::{Program, ProgramKind, SetCall, Subquery, SubqueryKind, Writing};
use crate::rows::Shape;
use crate::session::{Open, Waiting};
use crate::sqlstate;
use foreign::Due;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use system::SystemRows;
use vellum::{Database, OwnWrites, Transaction};
use vellum_base::maps::{HashMap, HashSet};
use vellum_row::{Array, ArrayRef, Type, Value, ValueRef};
use vellum_sync::atomic::AtomicUsize;
use within::Planned;

/// Whether more rows are wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Flow {
    More,
    Enough,
}

impl Flow {
    pub fn enough_if(enough: bool) -> Self {
        if enough { Self::Enough } else { Self::More }
    }
}

/// Who takes the rows of a statement.
pub(crate) type Each<'e> = dyn FnMut(&[Out<'_>]) -> Result<Flow> + 'e;

/// How new rows go into their table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    /// One by one.
    Insert,
    /// Into the load that the transaction has begun for it, as long as their keys ascend.
    Load,
    /// The same into a load of the statement's own: its table is nobody else's, its rows are those of a query.
    OwnLoad,
}

/// What a statement runs in.
pub(crate) struct Run<'r, 'w> {
    pub engine: &'r Database,
    /// The image that all sessions see.
    pub published: &'r Published,
    /// What runs queries that no program runs.
    pub queries: &'r vellum_query::Engine,
    pub transaction: &'r Transaction,
    /// The transaction's locks on rows.
    pub locks: &'r HeldLocks,
    /// Whether it keeps its first snapshot.
    pub repeatable: bool,
    /// The image that its transaction works with.
    pub catalog: &'r Catalog,
    pub env: &'r dyn Environment,
    pub params: &'r [Value],
    /// The parameters of an INSERT are of its columns' types and modifiers.
    pub ready: bool,
    pub way: Cell<Way>,
    pub waiting: &'r RefCell<Waiting<'w>>,
    /// Bytes that it may still keep.
    pub memory: Cell<usize>,
    /// Bytes that lists of subqueries may still keep before they take of these.
    listed: Cell<usize>,
    /// Bytes that lists may keep which threads of operators make, who are no run.
    pub(crate) listed_away: Arc<AtomicUsize>,
    /// What changed rows have yet to answer for.
    dues: RefCell<VecDeque<Due>>,
    /// What the transaction has yet to answer for.
    deferred: &'r RefCell<Deferred>,
    /// Keys of the rows that a query stands at, by the number of their table, while its rows are to be locked.
    keys: RefCell<Option<Vec<Vec<u8>>>>,
    /// Rows of its query are written as they come, while it runs: its snapshot cannot be shared.
    pub(crate) writes_as_it_reads: Cell<bool>,
    /// Several statements write as one, or one reads beside what it writes.
    together: Cell<bool>,
    /// What the transaction had written when an INSERT with ON CONFLICT began.
    began: Cell<OwnWrites>,
    /// Keys of the rows that it has changed to what they were before: their bytes do not tell that it was there.
    unchanged: RefCell<HashSet<Vec<u8>>>,
    /// Steps since it last looked whether it was cancelled.
    steps: Cell<u32>,
    /// Rows of system relations.
    pub(super) system: Rc<SystemRows>,
    /// What steps of recursive queries are run with, by their number.
    pub(super) work: Rc<RefCell<HashMap<usize, Rc<KeptRows>>>>,
    /// Queries of WITH that are run once, when they are read first, by their number.
    late: Rc<RefCell<HashMap<usize, Arc<Writing>>>>,
    /// What subqueries have returned that read nothing of what surrounds them, by their numbers: wherever they stand, they are run once, as in PostgreSQL.
    ran: Rc<RefCell<BTreeMap<u64, Returned>>>,
    /// The same of those that are planned for each row, by the values that they read of what surrounds them too: a plan takes longer than most that it does.
    planned: Rc<RefCell<Planned>>,
    /// What the query around this one stands at.
    pub(crate) outer: Option<&'r Frame<'r>>,
    /// Where the statement's query stands, if a program runs it in pieces.
    pub(crate) place: Option<&'r Place>,
    /// The same of operators: until the query has begun, as queries within it are run to their end.
    pub(crate) stands: Cell<Option<&'r Stands>>,
}

/// How many times `work_mem` the lists of subqueries may have: what the kept sides of joins have, which they stand for.
const LISTED: usize = crate::general::JOIN_MEMORY;

/// Steps between two looks.
const STEPS: u32 = 256;

/// Rows that a statement touched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Done {
    pub rows: u64,
}

impl<'r, 'w> Run<'r, 'w> {
    pub fn new(
        shared: &'r Shared,
        open: &'r Open,
        env: &'r dyn Environment,
        waiting: &'r RefCell<Waiting<'w>>,
        memory: usize,
    ) -> Self {
        Self {
            engine: &shared.engine,
            published: &shared.catalog,
            queries: &shared.queries,
            transaction: &open.transaction,
            locks: &open.held,
            repeatable: open.characteristics.repeatable,
            dues: RefCell::default(),
            deferred: &open.deferred,
            keys: RefCell::new(None),
            writes_as_it_reads: Cell::new(false),
            together: Cell::new(false),
            began: Cell::new(OwnWrites::ALL),
            unchanged: RefCell::default(),
            catalog: &open.catalog.1,
            env,
            params: &[],
            ready: false,
            way: Cell::new(Way::Insert),
            waiting,
            memory: Cell::new(memory),
            listed: Cell::new(memory.saturating_mul(LISTED)),
            listed_away: Arc::new(AtomicUsize::new(memory.saturating_mul(LISTED))),
            steps: Cell::new(0),
            system: Rc::default(),
            work: Rc::default(),
            late: Rc::default(),
            ran: Rc::default(),
            planned: Rc::default(),
            outer: None,
            place: None,
            stands: Cell::new(None),
        }
    }

    /// It runs with these parameters from now on: what subqueries have returned was of others, and lists that were kept are no more.
    pub fn takes(&mut self, params: &'r [Value]) {
        self.set_room(self.room());
        self.params = params;
        self.ran.borrow_mut().clear();
        *self.planned.borrow_mut() = Planned::default();
    }

    /// The same statement in another transaction, to look.
    fn beside<'x>(&'x self, transaction: &'x Transaction) -> Run<'x, 'w> {
        Run {
            engine: self.engine,
            published: self.published,
            queries: self.queries,
            transaction,
            locks: self.locks,
            repeatable: self.repeatable,
            catalog: self.catalog,
            env: self.env,
            params: self.params,
            ready: false,
            way: Cell::new(Way::Insert),
            waiting: self.waiting,
            memory: Cell::new(self.memory.get()),
            listed: self.listed.clone(),
            listed_away: self.listed_away.clone(),
            dues: RefCell::default(),
            deferred: self.deferred,
            keys: RefCell::new(None),
            writes_as_it_reads: self.writes_as_it_reads.clone(),
            together: self.together.clone(),
            began: self.began.clone(),
            unchanged: RefCell::default(),
            steps: Cell::new(0),
            system: self.system.clone(),
            work: self.work.clone(),
            late: self.late.clone(),
            ran: Rc::default(),
            planned: Rc::default(),
            outer: None,
            place: None,
            stands: Cell::new(None),
        }
    }

    /// The same statement for a query that reads the row which another one stands at.
    fn within<'x>(&'x self, frame: &'x Frame<'x>) -> Run<'x, 'w> {
        Run {
            ran: self.ran.clone(),
            planned: self.planned.clone(),
            outer: Some(frame),
            ..self.beside(self.transaction)
        }
    }

    /// Runs a program.
    ///
    /// # Errors
    /// The statement's: it is to be rolled back.
    pub fn program(&self, program: &Program, each: &mut Each<'_>) -> Result<Done> {
        if program.with.is_empty() && !program.reads_beside_its_writes() {
            let rows = self.kind(&program.kind, &program.subqueries, each)?;
            if let Some(keys) = program.kind.keys() {
                self.settle_keys(keys)?;
            }
            return Ok(Done { rows });
        }
        self.together.set(true);
        // None of them sees what another, or it itself, has written.
        let all = self
            .transaction
            .see_own_writes(self.transaction.own_writes());
        let done = self.together(program, each);
        self.transaction.see_own_writes(all);
        let rows = done?;
        self.settle_keys(&program.keys)?;
        Ok(Done { rows })
    }

    /// Runs the statements of WITH that write, and the statement behind them; the queries when they are read.
    fn together(&self, program: &Program, each: &mut Each<'_>) -> Result<u64> {
        for writing in &program.with {
            match writing.kind {
                ProgramKind::Select(_) => {
                    let mut late = self.late.borrow_mut();
                    late.insert(writing.number, writing.clone());
                }
                _ => self.made_by(writing)?,
            }
        }
        self.kind(&program.kind, &program.subqueries, each)
    }

    /// Runs a statement of WITH, and keeps what it returns.
    fn made_by(&self, writing: &Writing) -> Result<()> {
        let mut made = Vec::new();
        let tells_only = match &writing.kind {
            ProgramKind::Select(select) => select.general.is_some(),
            _ => false,
        };
        if self.plans_only() && !tells_only {
            let made = KeptRows::new(made);
            self.work.borrow_mut().insert(writing.number, made);
            return Ok(());
        }
        self.kind(&writing.kind, &writing.subqueries, &mut |row| {
            let row: Vec<Value> = row.iter().map(|out| out.as_ref().to_value()).collect();
            self.keep_row(&row)?;
            made.push(row);
            Ok(Flow::More)
        })?;
        let made = KeptRows::new(made);
        self.work.borrow_mut().insert(writing.number, made);
        Ok(())
    }

    /// Steps are told, and none is run. A query that no program runs tells its own instead of running; others are to be left out.
    pub(crate) fn plans_only(&self) -> bool {
        matches!(self.env.explain(), Some((_, Explain::Plan)))
    }

    /// Runs a query of WITH that is read, unless it was. It is run as the statement's own, not as one of who reads it.
    fn run_late(&self, number: usize) -> Result<()> {
        let found = self.late.borrow_mut().remove(&number);
        let Some(writing) = found else {
            return Ok(());
        };
        let keys = self.keys.take();
        let done = self.made_by(&writing);
        self.keys.replace(keys);
        done
    }

    /// Writes, and sees all that the transaction has written while it does.
    pub(super) fn write<R>(&self, work: impl FnOnce() -> Result<R>) -> Result<R> {
        if !self.together.get() {
            return work();
        }
        let seen = self.transaction.see_own_writes(OwnWrites::ALL);
        let done = work();
        self.transaction.see_own_writes(seen);
        done
    }

    /// Whether another statement of the same WITH has changed a row since: then it is not this one's to change, as in PostgreSQL.
    pub(super) fn is_changed(&self, shape: &Shape, key: &[u8], row: &[u8]) -> Result<bool> {
        if !self.together.get() {
            return Ok(false);
        }
        let now = self.write(|| self.row_of(shape, key))?;
        Ok(now.is_none_or(|now| now != row))
    }

    /// Runs a statement, foreign keys left out. Returns how many rows it returned or changed.
    fn kind(
        &self,
        kind: &ProgramKind,
        subqueries: &[Subquery],
        each: &mut Each<'_>,
    ) -> Result<u64> {
        let subqueries = match kind {
            ProgramKind::Select(_) => Vec::new(),
            _ => self.subqueries_before(subqueries)?,
        };
        match kind {
            ProgramKind::Select(select) => {
                let mut rows = 0;
                self.select(select, &mut |row| {
                    rows += 1;
                    each(row)
                })?;
                Ok(rows)
            }
            ProgramKind::Insert(insert) => self.insert(insert, &subqueries, each),
            ProgramKind::Update(update) => self.update(update, &subqueries, each),
            ProgramKind::Delete(delete) => self.delete(delete, &subqueries, each),
            ProgramKind::Merge(merge) => self.merge(merge, &subqueries),
        }
    }

    /// A row was looked at.
    ///
    /// # Errors
    /// `57014` if the statement was cancelled or has run out of time.
    #[inline]
    pub fn step(&self) -> Result<()> {
        let steps = self.steps.get() + 1;
        self.steps.set(steps);
        if steps.is_multiple_of(STEPS) {
            return self.waiting.borrow_mut().look_cancelled();
        }
        Ok(())
    }

    /// Bytes are kept.
    ///
    /// # Errors
    /// `53200`.
    pub fn keep(&self, bytes: usize) -> Result<()> {
        match self.memory.get().checked_sub(bytes) {
            Some(left) => {
                self.memory.set(left);
                Ok(())
            }
            None => Err(out_of_memory()),
        }
    }

    /// Keeps a row.
    pub fn keep_row(&self, row: &[Value]) -> Result<()> {
        self.keep(bytes_of_row(row))
    }

    /// Keeps a row that a function has made, one of many.
    fn keep_made(&self, row: &[Value]) -> Result<()> {
        self.step()?;
        self.keep_row(row)
    }

    /// Bytes are kept no more.
    fn give_back(&self, bytes: usize) {
        self.memory.set(self.memory.get().saturating_add(bytes));
    }

    pub(crate) fn frame<'a>(
        &'a self,
        rows: &'a [RowRef<'a>],
        slots: &'a [Value],
        subqueries: &'a [Subresult<'a>],
    ) -> Frame<'a> {
        Frame {
            params: self.params,
            slots,
            subqueries,
            rows,
            env: self.env,
            held: None,
            outer: self.outer,
            queries: Some(self),
        }
    }

    /// Subqueries, none of which has been run.
    fn subqueries<'p>(&self, list: &'p [Subquery]) -> Vec<Subresult<'p>> {
        list.iter().map(Subresult::of).collect()
    }

    /// Subqueries of a change: those that are not run for each row are run before it writes.
    fn subqueries_before<'p>(&self, list: &'p [Subquery]) -> Result<Vec<Subresult<'p>>> {
        for subquery in list {
            if !subquery.select.correlated {
                self.subquery(subquery)?;
            }
        }
        Ok(self.subqueries(list))
    }

    /// What a subquery returns that reads nothing of what surrounds it: however often it is asked for, it is run once.
    ///
    /// # Errors
    /// `21000`, and the query's.
    pub(crate) fn subquery(&self, subquery: &Subquery) -> Result<Returned> {
        debug_assert!(!subquery.select.correlated, "it is another for each row");
        if let Some(known) = self.ran.borrow().get(&subquery.number) {
            return Ok(known.clone());
        }
        let returned = self.answer(subquery)?;
        let mut ran = self.ran.borrow_mut();
        ran.insert(subquery.number, returned.clone());
        Ok(returned)
    }

    /// Runs a subquery.
    fn answer(&self, subquery: &Subquery) -> Result<Returned> {
        match subquery.kind {
            SubqueryKind::Rows { single } => return self.row_set(subquery, single),
            SubqueryKind::List => return self.row_set(subquery, false),
            _ => {}
        }
        let mut values = Vec::new();
        self.run_subquery(subquery, &mut |row| {
            match subquery.kind {
                SubqueryKind::Exists => {
                    values.push(Value::Bool(true));
                    return Ok(Flow::Enough);
                }
                SubqueryKind::Scalar if !values.is_empty() => return Err(too_many_rows()),
                _ => {}
            }
            let value = row[0].as_ref().to_value();
            self.keep(bytes_of(&value))?;
            values.push(value);
            Ok(Flow::More)
        })?;
        Ok(match subquery.kind {
            SubqueryKind::Scalar => Returned::Value(values.pop().unwrap_or(Value::Null)),
            SubqueryKind::Exists => Returned::Value(Value::Bool(!values.is_empty())),
            SubqueryKind::List | SubqueryKind::Rows { .. } => {
                return Err(SqlError::internal("rows that are no set"));
            }
            SubqueryKind::Array(element) => {
                Returned::Value(Value::Array(gathered(element, &values)?))
            }
        })
    }

    fn run_subquery(&self, subquery: &Subquery, each: &mut Each<'_>) -> Result<()> {
        // Others are run, to be known to the plan.
        let select = &subquery.select;
        if self.plans_only() && select.general.is_none() && select.is_another_each_time() {
            return Ok(());
        }
        self.select(&subquery.select, each).map(drop)
    }

    fn row_set(&self, subquery: &Subquery, single: bool) -> Result<Returned> {
        let mut set = RowSet::default();
        let mut any = false;
        self.run_subquery(subquery, &mut |row| {
            if std::mem::replace(&mut any, true) && single {
                return Err(too_many_rows());
            }
            let values: Vec<ValueRef<'_>> = row.iter().map(Out::as_ref).collect();
            let row: Vec<Value> = values.iter().map(|value| value.to_value()).collect();
            if set.add(&values) {
                self.keep_listed(bytes_of_row(&row))?;
            }
            Ok(Flow::More)
        })?;
        Ok(Returned::Rows(Arc::new(set)))
    }

    /// What a subquery returns for the rows of the query around it.
    ///
    /// # Errors
    /// As [`Self::subquery`].
    pub(crate) fn subquery_within(
        &self,
        subquery: &Subquery,
        frame: &Frame<'_>,
    ) -> Result<Returned> {
        self.run_within(subquery, frame)
    }

    /// The value of an expression that reads no table, but subqueries of these.
    ///
    /// # Errors
    /// Those of the functions in it.
    pub(crate) fn value_of(&self, expr: &Expr, subqueries: &[Subquery]) -> Result<Value> {
        if self.plans_only() && expr.is_volatile() {
            return Ok(Value::Null);
        }
        let results = self.subqueries(subqueries);
        Ok(expr.eval(&self.frame(&[], &[], &results))?.into_value())
    }

    /// The value of an expression for these rows, of which its subqueries may read columns.
    ///
    /// # Errors
    /// Those of the functions and queries in it.
    pub(crate) fn value_at(
        &self,
        expr: &Expr,
        subqueries: &[Subquery],
        rows: &[RowRef<'_>],
    ) -> Result<Value> {
        let results = self.subqueries(subqueries);
        Ok(expr.eval(&self.frame(rows, &[], &results))?.into_value())
    }

    /// The rows of functions that return sets and read no table.
    ///
    /// # Errors
    /// Those of the functions; `53200`.
    pub(crate) fn rows_of(
        &self,
        calls: &[SetCall],
        ordinality: bool,
        subqueries: &[Subquery],
    ) -> Result<Vec<Vec<Value>>> {
        let mut arguments = calls.iter().flat_map(|call| &call.arguments);
        if self.plans_only() && arguments.any(Expr::is_volatile) {
            return Ok(Vec::new());
        }
        let results = self.subqueries(subqueries);
        let frame = self.frame(&[], &[], &results);
        let mut made = SetRows::new(calls, ordinality, &frame, &|row| self.keep_made(row))?;
        let mut rows = Vec::new();
        while let Some(row) = made.next(self.env)? {
            self.keep_row(&row)?;
            rows.push(row);
        }
        self.give_back(made.bytes());
        Ok(rows)
    }

    /// The value of a LIMIT or OFFSET over subqueries that have not been run.
    ///
    /// # Errors
    /// `2201W`, `2201X`.
    pub(crate) fn count_of(
        &self,
        expr: Option<&Expr>,
        subqueries: &[Subquery],
        what: &str,
    ) -> Result<Option<u64>> {
        let results = self.subqueries(subqueries);
        self.count(expr, &results, what)
    }

    /// The value of a LIMIT or OFFSET.
    fn count(
        &self,
        expr: Option<&Expr>,
        subqueries: &[Subresult],
        what: &str,
    ) -> Result<Option<u64>> {
        let Some(expr) = expr else {
            return Ok(None);
        };
        if self.plans_only() && expr.is_volatile() {
            return Ok(None);
        }
        let frame = self.frame(&[], &[], subqueries);
        let value = expr.eval(&frame)?;
        let Some(count) = value.as_ref().as_i64() else {
            return Ok(None);
        };
        u64::try_from(count).map(Some).map_err(|_| {
            let state = if what == "LIMIT" {
                sqlstate::INVALID_ROW_COUNT_IN_LIMIT_CLAUSE
            } else {
                sqlstate::INVALID_ROW_COUNT_IN_RESULT_OFFSET_CLAUSE
            };
            SqlError::new(state, format!("{what} must not be negative"))
        })
    }
}

/// `53200`.
#[cold]
pub(crate) fn out_of_memory() -> SqlError {
    SqlError::new(sqlstate::OUT_OF_MEMORY, "out of memory")
        .with_detail("A sort, a group, a list or a subquery of the statement exceeds its limit.")
        .with_hint("Raise work_mem.")
}

/// Bytes that the values of a row take in memory.
pub(crate) fn bytes_of_row(row: &[Value]) -> usize {
    row.iter().map(bytes_of).sum()
}

/// An array of values; of arrays one with a dimension more.
///
/// # Errors
/// `22004` and `2202E` for arrays that cannot stand beside each other; `54000`.
fn gathered(ty: Type, values: &[Value]) -> Result<Array> {
    let (Type::Array(_), Some(element)) = (ty, ty.element()) else {
        return Ok(Array::list(ty, values)?);
    };
    let mut parts = Vec::with_capacity(values.len());
    for value in values {
        let Value::Array(array) = value else {
            let text = "cannot accumulate null arrays";
            return Err(SqlError::new(sqlstate::NULL_VALUE_NOT_ALLOWED, text));
        };
        let wrong = |text: &str| Err(SqlError::new(sqlstate::ARRAY_SUBSCRIPT_ERROR, text));
        let mut dimensions = array.as_ref().dimensions().peekable();
        match parts.first() {
            None if dimensions.peek().is_none() => return wrong("cannot accumulate empty arrays"),
            Some(first) if ArrayRef::dimensions(*first).ne(dimensions) => {
                return wrong("cannot accumulate arrays of different dimensionality");
            }
            _ => parts.push(array.as_ref()),
        }
    }
    if parts.is_empty() {
        return Ok(Array::of(element, &[]));
    }
    let nested = Array::nested(element, &parts)?;
    nested.ok_or_else(|| SqlError::internal("arrays of several forms"))
}

/// Bytes that a value takes in memory.
pub(crate) fn bytes_of(value: &Value) -> usize {
    size_of::<Value>() + value.heap_bytes()
}

/// `21000`.
fn too_many_rows() -> SqlError {
    let text = "more than one row returned by a subquery used as an expression";
    SqlError::new(sqlstate::CARDINALITY_VIOLATION, text)
}
