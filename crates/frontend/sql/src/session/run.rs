//! Running a prepared statement: compiled for the image of the transaction's catalog, again if that has changed, and run
//! again after a conflict under read committed.

use super::encode::{encode, format_of, special_columns};
use super::environment::Env;
use super::pieces::{Piece, Rest};
use super::plans::PathOf;
use super::row_store::RowStore;
use super::{Session, TransactionStatus, Waiting, gone};
use crate::catalog::{Catalog, Mode, Oid, PG_CATALOG, Version};
use crate::error::{Result, SqlError};
use crate::exec::{Flow, Run, Way};
use crate::expr::{ListSets, Out};
use crate::lock::Obstacle;
use crate::parse;
use crate::plan::{Ends, Program, ProgramKind, Surroundings, compile};
use crate::session::named::check_columns;
use crate::session::simple::{is_end, is_program, statement_in};
use crate::session::transaction::{Beginner, Open, Point};
use crate::sqlstate;
use crate::system;
use crate::wire::{CommandTag, Format, OutputRow, Sink};
use sqlparser::ast::Statement;
use std::cell::RefCell;
use std::sync::Arc;
use vellum_row::{Schema, Value, ValueRef};
use vellum_sync::Mutex;

/// A statement: its tree, and its program for the image that it was last compiled for.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub text: Arc<str>,
    pub statement: Statement,
    /// Types that the client gave for parameters.
    pub parameter_types: Vec<u32>,
    /// The statement that it is about: it has the parameters of DECLARE and EXPLAIN.
    pub inner: Option<Arc<Self>>,
    program: Mutex<Option<Compiled>>,
    /// The one whose parameters have the types of an earlier one, if they would have others now (N2).
    of_types: Mutex<Option<Compiled>>,
}

/// A program, and the number of the search path that it was compiled for (PL3).
type Compiled = (u64, Arc<Program>);

impl Prepared {
    fn new(text: Arc<str>, statement: Statement, parameter_types: &[u32]) -> Arc<Self> {
        let inner =
            statement_in(&statement).map(|inner| Self::new(text.clone(), inner, parameter_types));
        Arc::new(Self {
            text,
            statement,
            parameter_types: parameter_types.to_vec(),
            inner,
            program: Mutex::new(None),
            of_types: Mutex::new(None),
        })
    }

    /// The statement whose program takes the parameters; `None` if there can be none.
    pub fn takes_parameters(self: &Arc<Self>) -> Option<&Arc<Self>> {
        if is_program(&self.statement) {
            return Some(self);
        }
        self.inner.as_ref()
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        // P3: a deep tree is dropped on a stack that has room, and so is what was made of it.
        let statement = std::mem::replace(&mut self.statement, Statement::UnlockTables);
        let programs = (self.program.lock().take(), self.of_types.lock().take());
        parse::with_stack(move || drop((statement, programs)));
    }
}

/// Fewer parameters were given than a statement has.
pub(super) fn no_parameter(given: usize) -> SqlError {
    let message = format!("there is no parameter ${}", given + 1);
    SqlError::new(sqlstate::UNDEFINED_PARAMETER, message)
}

/// Bytes of a buffer that a session keeps from one statement to the next.
const BUFFER_KEPT: usize = 8 << 10;

/// How often a statement is run again, at most.
pub(super) const RETRIES: u32 = 10_000;

/// Where the rows of a statement go.
pub(super) enum Output<'o> {
    /// To the sink, described first if the flag says so.
    Tell(&'o mut dyn Sink, bool),
    /// Kept as rows of this schema.
    Store(&'o mut RowStore, &'o Schema),
    /// The same of some of them, where the query goes on at its place.
    Piece(&'o mut RowStore, &'o Schema, &'o mut Piece),
    /// Nowhere.
    Drop,
    /// Kept as values, against the statement's memory.
    Values(&'o mut Vec<Vec<Value>>),
    /// The same of the first ones. The others are passed over, or, if the statement only reads, not looked for.
    First {
        rows: &'o mut Vec<Vec<Value>>,
        most: usize,
        stops: bool,
    },
}

/// Values of a statement's parameters.
#[derive(Clone, Copy)]
pub(super) struct Given<'g> {
    pub values: &'g [Value],
    /// The program by whose types they were read, and whose columns were told (N2).
    pub bound: Option<&'g Arc<Program>>,
}

impl Given<'_> {
    /// Of a statement that has none, and whose columns nobody was told.
    pub const NONE: Given<'static> = Given {
        values: &[],
        bound: None,
    };
}

impl<'g> Given<'g> {
    /// Values for a statement whose columns nobody was told.
    pub const fn read(values: &'g [Value]) -> Self {
        Self {
            values,
            bound: None,
        }
    }
}

/// What a statement is run for.
pub(super) struct Sets<'a> {
    /// Its parameters, once or several times: the rows of a COPY.
    pub lists: &'a [&'a [Value]],
    /// As that of [`Given`].
    pub bound: Option<&'a Arc<Program>>,
    /// What was read as parameters were literals of a text, which can be read anew: the statement is not run if they are of other types now, and `Some(true)`
    /// says so.
    pub again: Option<bool>,
    /// They are of the columns' types and modifiers, if it is an INSERT.
    pub ready: bool,
    /// How its rows go into the table, if it is an INSERT.
    pub way: Way,
    /// Number of the list that it runs for, or has failed for.
    pub at: usize,
    /// What is read of it piece by piece, if it is.
    pub rest: Option<&'a Rest>,
}

impl<'a> Sets<'a> {
    /// It runs once for each of these.
    pub fn of(lists: &'a [&'a [Value]], bound: Option<&'a Arc<Program>>) -> Self {
        Self {
            lists,
            bound,
            again: None,
            ready: false,
            way: Way::Insert,
            at: 0,
            rest: None,
        }
    }
}

impl Session {
    /// The statements of a text.
    pub(super) fn prepare_text(&mut self, text: &str) -> Result<Vec<Arc<Prepared>>> {
        if let Some(known) = self.plans.get(text) {
            return Ok(vec![known.clone()]);
        }
        let shared_text: Arc<str> = text.into();
        crate::bind::refuse_kept(text)?;
        let statements = parse::statements(text)?;
        let prepared: Vec<Arc<Prepared>> = statements
            .into_iter()
            .map(|statement| Prepared::new(shared_text.clone(), statement, &[]))
            .collect();
        if let [one] = prepared.as_slice() {
            self.plans.keep(one);
        }
        Ok(prepared)
    }

    /// A statement of its own, with the types of parameters.
    pub(super) fn prepare_one(
        text: &str,
        statement: Statement,
        parameter_types: &[u32],
    ) -> Arc<Prepared> {
        Prepared::new(text.into(), statement, parameter_types)
    }

    /// Begins a transaction if there is none, and the statement in it.
    pub(super) fn start_statement(&mut self) -> Result<()> {
        if self.open.is_none() {
            let characteristics = self.settings.characteristics();
            self.open = Some(Open::begin(
                &self.shared,
                Some(Beginner {
                    activity: &self.activity,
                    waiting: self.waiting(&self.cancel),
                    superuser: self.superuser,
                }),
                &mut self.known,
                characteristics,
            )?);
        }
        if let Some(open) = &mut self.open {
            open.begin_statement(&self.shared)?;
        }
        self.check_identity();
        self.know_types();
        Ok(())
    }

    /// Values are read and written as the image of the transaction has their types.
    pub(super) fn know_types(&mut self) {
        let types = self.image().types();
        if Arc::ptr_eq(types, &self.settings.forms.types) && types.is_empty() {
            return;
        }
        let (types, path) = (types.clone(), self.search_path());
        (self.settings.forms.types, self.settings.forms.path) = (types, path);
    }

    /// Oids of the schemas that names are looked up in.
    pub(super) fn search_path(&self) -> Arc<[Oid]> {
        let of = self.path_of(self.image().version(self.temporary.namespace));
        self.plans.path(of, || self.find_search_path())
    }

    /// What the search path is found for: rights are of now, whatever the version of the image.
    fn path_of(&self, version: Version) -> PathOf {
        (version, self.rights().version(self.temporary.namespace))
    }

    fn find_search_path(&self) -> Arc<[Oid]> {
        let (image, rights) = (self.image(), self.rights());
        let path = self.settings.get("search_path").unwrap_or_default();
        let names = crate::names::list(&path).unwrap_or_default();
        let mut oids = vec![];
        let own = self.temporary.namespace_in(image);
        // In front, unless it is said where.
        if !names.iter().any(|name| name == Catalog::TEMPORARY) {
            oids.extend(own);
        }
        if !names.iter().any(|name| name == "pg_catalog") {
            oids.push(PG_CATALOG);
        }
        for name in names {
            if name == Catalog::TEMPORARY {
                oids.extend(own);
                continue;
            }
            let name = if name == "$user" {
                &self.options.user
            } else {
                &name
            };
            // What it may not look into is not there, as in PostgreSQL.
            if let Some(namespace) = image.namespace(name)
                && !oids.contains(&namespace.oid)
                && rights.allows_in_schema(self.acting().role, namespace, false)
            {
                oids.push(namespace.oid);
            }
        }
        oids.into()
    }

    pub(super) fn image(&self) -> &Arc<crate::catalog::Catalog> {
        match &self.open {
            Some(open) => &open.catalog.1,
            None => &self.known.1,
        }
    }

    /// The image that tells who may do what: of now, whatever the snapshot.
    pub(super) fn rights(&self) -> &Arc<crate::catalog::Catalog> {
        match &self.open {
            Some(open) => &open.rights().1,
            None => &self.known.1,
        }
    }

    /// What a statement with this text is compiled with.
    pub(super) fn surroundings<'s>(
        &'s self,
        search_path: &'s [Oid],
        text: &'s str,
    ) -> Surroundings<'s> {
        Surroundings {
            catalog: self.image(),
            search_path,
            settings: &self.settings.forms,
            text,
            ends: Some(Ends {
                cancel: &self.cancel,
                deadline: self.waiting(&self.cancel).deadline(),
            }),
            variables: &self.code_variables,
        }
    }

    /// The statement's program for the image of the transaction.
    pub(super) fn program(&self, prepared: &Prepared) -> Result<Arc<Program>> {
        let (version, path) = self.names_now();
        let mut known = prepared.program.lock();
        if let Some((of, program)) = &*known
            && *of == path
            && program.catalog_version == version
        {
            return Ok(program.clone());
        }
        let program = self.compiled(prepared, &prepared.parameter_types)?;
        *known = Some((path, program.clone()));
        Ok(program)
    }

    /// What tells whether names still mean what they did: the catalog's version, and the number of the search path.
    fn names_now(&self) -> (Version, u64) {
        let version = self.image().version(self.temporary.namespace);
        let of = self.path_of(version);
        let path = self.plans.path_number(of, || self.find_search_path());
        (version, path)
    }

    fn compiled(&self, prepared: &Prepared, types: &[u32]) -> Result<Arc<Program>> {
        let search_path = self.search_path();
        let surroundings = self.surroundings(&search_path, &prepared.text);
        let program = compile(&prepared.statement, types, surroundings)?;
        self.activity.has_compiled();
        Ok(Arc::new(program))
    }

    /// The same for values that were read by the types of an earlier program (N2).
    ///
    /// # Errors
    /// Where the statement cannot have parameters of these types any more.
    pub(super) fn program_for(
        &self,
        prepared: &Prepared,
        bound: Option<&Arc<Program>>,
    ) -> Result<Arc<Program>> {
        let Some(bound) = bound else {
            return self.program(prepared);
        };
        match self.program(prepared) {
            Ok(program) if program.params == bound.params => return Ok(program),
            Err(error) if is_end(&error) => return Err(error),
            _ => {}
        }
        let (version, path) = self.names_now();
        let mut known = prepared.of_types.lock();
        if let Some((of, program)) = &*known
            && *of == path
            && program.catalog_version == version
            && program.params == bound.params
        {
            return Ok(program.clone());
        }
        let types: Vec<u32> = bound.params.iter().map(|ty| ty.oid()).collect();
        let program = self.compiled(prepared, &types)?;
        *known = Some((path, program.clone()));
        Ok(program)
    }

    /// Runs a statement that reads or changes rows. The transaction and the statement in it are begun.
    pub(super) fn run_program(
        &mut self,
        prepared: &Prepared,
        given: Given<'_>,
        formats: &[Format],
        output: Output<'_>,
    ) -> Result<CommandTag> {
        let lists = [given.values];
        let mut sets = Sets::of(&lists, given.bound);
        self.run_each(prepared, &mut sets, formats, output)
    }

    /// Runs it as one statement for each of several lists of parameters, in order.
    pub(super) fn run_each(
        &mut self,
        prepared: &Prepared,
        sets: &mut Sets<'_>,
        formats: &[Format],
        mut output: Output<'_>,
    ) -> Result<CommandTag> {
        let cancel = self.cancel.clone();
        let waiting = self.waiting(&cancel);
        let waiting = RefCell::new(waiting);
        if let Some(open) = &self.open {
            open.advisory.begin_statement();
        }
        let mut tries = 0;
        let mut point = None;
        loop {
            let program = match (sets.bound, &mut sets.again) {
                (None, _) => self.program(prepared)?,
                (Some(bound), Some(again)) => self.program_or_again(prepared, bound, again)?,
                (Some(bound), None) => {
                    let program = self.program_for(prepared, Some(bound))?;
                    if !matches!(output, Output::Drop) {
                        check_columns(bound, &program)?;
                    }
                    program
                }
            };
            let given = sets.lists.iter().map(|set| set.len()).min().unwrap_or(0);
            if given < program.params.len() {
                return Err(no_parameter(given));
            }
            let writes = program.writes();
            if writes {
                self.check_may_write(&program)?;
            }
            // Before a gate: who may not write the table keeps nobody out of it.
            self.check_program(&program)?;
            if writes && !self.enter_target(&program, &mut waiting.borrow_mut())? {
                self.refresh_image()?;
                continue;
            }
            let Some(open) = &self.open else {
                return Err(SqlError::internal("a statement without transaction"));
            };
            // Nobody is in the way of rows that are loaded, and there is no point between them.
            if writes && point.is_none() && sets.way != Way::Load {
                point = Some(open.point()?);
            }
            let done = self.run_once(&program, sets, formats, &waiting, &mut output);
            match (done, &point) {
                (Err(error), Some(point)) if is_conflict(&error) && tries < RETRIES => {
                    tries += 1;
                    if !self.wait_and_return(point, &mut waiting.borrow_mut())? {
                        return Err(error);
                    }
                }
                (done, _) => return done,
            }
        }
    }

    /// The program of a statement whose parameters can be read anew: an error if they have to be.
    fn program_or_again(
        &self,
        prepared: &Prepared,
        bound: &Arc<Program>,
        again: &mut bool,
    ) -> Result<Arc<Program>> {
        let program = self.program(prepared);
        *again = !program
            .as_ref()
            .is_ok_and(|program| program.params == bound.params);
        match program {
            Ok(_) if *again => Err(SqlError::changed_meanwhile()),
            program => program,
        }
    }

    /// After a conflict: undoes the statement, waits for who is in its way, and starts it again. False if nobody is any more and the
    /// transaction keeps its snapshot: the statement has failed.
    pub(super) fn wait_and_return(
        &mut self,
        point: &Point,
        waiting: &mut Waiting<'_>,
    ) -> Result<bool> {
        let shared = self.shared.clone();
        let Some(open) = &mut self.open else {
            return Err(SqlError::internal("a statement without transaction"));
        };
        let met = || open.transaction.take_blocker().map(Obstacle::Writer);
        let obstacle = waiting.take_obstacle().or_else(met);
        open.undo_statement(point)?;
        match obstacle {
            Some(obstacle) => shared.waits.wait(open.held.own(), &obstacle, waiting)?,
            None if open.characteristics.repeatable => return Ok(false),
            None => waiting.look_cancelled()?,
        }
        open.begin_statement(&shared)?;
        self.know_types();
        Ok(true)
    }

    /// The image was not right about a table that is to be written.
    pub(super) fn refresh_image(&mut self) -> Result<()> {
        match &mut self.open {
            Some(open) if !open.characteristics.repeatable => {
                open.begin_statement(&self.shared)?;
                self.know_types();
                Ok(())
            }
            _ => Err(SqlError::changed_meanwhile()),
        }
    }

    /// # Errors
    /// `25006` for a program that writes in a transaction that only reads.
    pub(super) fn check_may_write(&self, program: &Program) -> Result<()> {
        match &self.open {
            Some(open) if open.characteristics.read_only => Err(only_reads(name(program))),
            _ => Ok(()),
        }
    }

    /// G1. Rights that were lost while it waited are looked at again.
    ///
    /// # Errors
    /// `42501`; those of waiting.
    fn enter_target(&mut self, program: &Program, waiting: &mut Waiting<'_>) -> Result<bool> {
        let Some(open) = &mut self.open else {
            return Ok(true);
        };
        let mut entered = false;
        for oid in &program.targets {
            entered |= !open.holds(*oid, Mode::Write);
            if !open.enter(&self.shared, *oid, Mode::Write, Some(waiting))? {
                return Ok(false);
            }
        }
        if entered && open.look_at_rights(&self.shared) {
            self.check_program(program)?;
        }
        Ok(true)
    }

    pub(super) fn run_once(
        &mut self,
        program: &Program,
        sets: &mut Sets<'_>,
        formats: &[Format],
        waiting: &RefCell<Waiting<'_>>,
        output: &mut Output<'_>,
    ) -> Result<CommandTag> {
        let search_path = self.search_path();
        let Some(open) = &self.open else {
            return Err(SqlError::internal("a statement without transaction"));
        };
        self.settings.forms.now = open.now;
        let forms = &self.settings.forms;
        let look = || waiting.borrow_mut().look_cancelled();
        let others = (&*self.shared.waits, &*self.shared.activities);
        let take_advisory = |lock| open.advisory.take(lock, others, &mut waiting.borrow_mut());
        let notices = RefCell::default();
        let (said, settings_said) = (RefCell::default(), RefCell::default());
        let env = Env {
            shared: &self.shared,
            settings: &self.settings,
            forms,
            options: &self.options,
            acting: self.acting(),
            catalog: &open.catalog.1,
            rights: &open.rights().1,
            search_path: &search_path,
            sequences: &self.sequences,
            random: &self.random,
            now: open.now,
            transaction: &open.transaction,
            number: &open.number,
            exporting: open.exporting(),
            explain: self.explaining.as_ref().map(|(told, how)| (told, *how)),
            characteristics: open.characteristics,
            statements: &self.statements,
            cursors: &self.cursors,
            portals: &self.portals,
            look: &look,
            take_advisory: &take_advisory,
            advisory: &open.advisory,
            said: &said,
            settings_said: &settings_said,
            saying: &open.saying,
            session: self.activity.number,
            notices: &notices,
            lists: ListSets::default(),
        };
        // Between messages of one transaction it was told that the session rests.
        self.activity.is_in(open.transaction.id(), open.now);
        let special = special_columns(program);
        let name_of = |ty, oid| system::reg_text(&env, ty, oid);
        let memory = self.work_memory();
        let mut kept: Option<RowStore> = None;
        let count = u16::try_from(program.columns.len()).unwrap_or(u16::MAX);
        let body = &mut self.body;
        let writes = program.writes();
        let describe = matches!(output, Output::Tell(_, true)) && program.returns;
        if describe
            && !writes
            && let Output::Tell(sink, _) = output
        {
            sink.row_description(&program.fields(), formats)
                .map_err(gone)?;
        }
        let text = &mut self.text;
        let mut told = 0u64;
        let mut done: Result<u64> = Ok(0);
        let mut run = Run::new(&self.shared, open, &env, waiting, memory);
        run.ready = sets.ready;
        run.way.set(sets.way);
        if let Some(rest) = sets.rest {
            run.transaction = rest.transaction().unwrap_or(run.transaction);
            run.place = rest.place();
            run.stands.set(rest.stands());
        }
        for (number, params) in sets.lists.iter().enumerate() {
            sets.at = number;
            run.takes(params);
            let mut each = |row: &[Out<'_>]| {
                if matches!(output, Output::Drop) {
                    return Ok(Flow::More);
                }
                let (rows, most, stops) = match output {
                    Output::Values(rows) => (Some(&mut **rows), usize::MAX, false),
                    Output::First { rows, most, stops } => (Some(&mut **rows), *most, *stops),
                    _ => (None, 0, false),
                };
                if let Some(rows) = rows {
                    if rows.len() < most {
                        let row = row.iter().map(|out| out.as_ref().to_value());
                        let row: Vec<Value> = row.collect();
                        run.keep_row(&row)?;
                        rows.push(row);
                    }
                    return Ok(Flow::enough_if(stops && !writes && rows.len() >= most));
                }
                body.clear();
                if let Output::Store(rows, schema) = output {
                    let values: Vec<ValueRef<'_>> = row.iter().map(|out| out.as_ref()).collect();
                    schema.encode(&values, body)?;
                    rows.push(body)?;
                    return Ok(Flow::More);
                }
                if let Output::Piece(rows, schema, piece) = output {
                    let values: Vec<ValueRef<'_>> = row.iter().map(|out| out.as_ref()).collect();
                    schema.encode(&values, body)?;
                    rows.push(body)?;
                    return Ok(Flow::enough_if(piece.is_enough(body.len())));
                }
                for (number, value) in row.iter().enumerate() {
                    let format = format_of(formats, number);
                    match special.get(number) {
                        Some(Some(special)) => {
                            let value = value.as_ref();
                            special.encode(value, format, (forms, &name_of), text, body)?;
                        }
                        _ => encode(value.as_ref(), format, forms, text, body)?,
                    }
                }
                told += 1;
                match output {
                    Output::Tell(sink, _) if !writes => {
                        sink.row(OutputRow::new(count, body)).map_err(gone)?;
                    }
                    Output::Tell(..) => {
                        let new = || RowStore::new(self.shared.queries.clone(), memory);
                        kept.get_or_insert_with(new).push(body)?;
                    }
                    Output::Store(..)
                    | Output::Piece(..)
                    | Output::Values(_)
                    | Output::First { .. }
                    | Output::Drop => {}
                }
                Ok(Flow::More)
            };
            let rows = run.program(program, &mut each).map(|done| done.rows);
            done = done.and_then(|all| Ok(all + rows?));
            if done.is_err() {
                break;
            }
        }
        // An idle session keeps no room for the large values of its last statement.
        if body.capacity() > BUFFER_KEPT {
            *body = Vec::new();
        }
        if text.capacity() > BUFFER_KEPT {
            *text = String::new();
        }
        if let Output::Tell(sink, _) = output {
            for notice in notices.take() {
                super::notices::tell(&self.settings, &notice, *sink)?;
            }
        } else if self.code_depth > 0 {
            self.code_notices.extend(notices.take());
        }
        let done = match done {
            Ok(done) => done,
            Err(error) => {
                match output {
                    // They stand before the error.
                    Output::Store(..) if !writes && error.is_of_data() => {}
                    Output::Store(rows, _) => rows.clear(),
                    Output::Values(rows) | Output::First { rows, .. } => rows.clear(),
                    Output::Tell(..) | Output::Piece(..) | Output::Drop => {}
                }
                return Err(error);
            }
        };
        if let Output::Tell(sink, _) = output {
            if describe && writes {
                sink.row_description(&program.fields(), formats)
                    .map_err(gone)?;
            }
            if let Some(kept) = &mut kept {
                for number in 0..kept.len() {
                    let row = OutputRow::new(count, kept.row(number)?);
                    sink.row(row).map_err(gone)?;
                }
            }
        }
        if writes {
            for oid in &program.targets {
                if let Some(target) = open.catalog.1.relation(*oid) {
                    target.runtime.statistics.note_changed(done);
                }
            }
        }
        let said = said.take();
        if !said.is_empty() {
            self.apply_config(said)?;
        }
        Ok(CommandTag::counted(name(program), done))
    }

    /// Bytes that a statement may keep.
    pub(super) fn work_memory(&self) -> usize {
        let bytes = self.settings.number("work_mem").saturating_mul(1024);
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }

    /// Ends a statement's transaction if it is not in a block.
    pub(super) fn end_implicit(&mut self) -> Result<()> {
        if self.status == TransactionStatus::Idle {
            return self.commit();
        }
        Ok(())
    }
}

/// `25006`.
#[cold]
pub(super) fn only_reads(what: &str) -> SqlError {
    let message = format!("cannot execute {what} in a read-only transaction");
    SqlError::new(sqlstate::READ_ONLY_SQL_TRANSACTION, message)
}

/// The name of a program's command tag.
fn name(program: &Program) -> &'static str {
    match program.kind {
        ProgramKind::Select(_) => "SELECT",
        ProgramKind::Insert(_) => "INSERT",
        ProgramKind::Update(_) => "UPDATE",
        ProgramKind::Delete(_) => "DELETE",
        ProgramKind::Merge(_) => "MERGE",
    }
}

pub(super) fn is_conflict(error: &SqlError) -> bool {
    error.sqlstate() == sqlstate::SERIALIZATION_FAILURE
}
