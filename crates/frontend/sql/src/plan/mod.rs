//! Programs: statements whose names, types and access paths are decided, to be run any number of times.
//!
//! Not here: running them (`exec`); DDL and session commands, which are run from their syntax trees.

mod apart;
mod arbiter;
mod around;
mod assign;
mod by_keys;
mod change;
mod declared;
mod explain;
mod explain_form;
mod explain_tree;
mod factor;
mod foreign;
mod from;
mod general;
mod grouping;
mod groups_apart;
mod implied;
mod inside;
mod joins;
mod json_rows;
mod last;
mod limit;
mod limits;
mod lock;
mod merge;
mod output;
mod path;
mod reads;
mod recursive;
mod rules;
mod select;
mod set_function;
mod sets;
mod sets_behind;
mod through;
mod unread;
mod updatable;
mod value_sets;
mod with_order;
mod writing;

pub(crate) use arbiter::{Arbiters, Asked};
pub(crate) use by_keys::ByKeys;
pub(crate) use change::{
    ByJoin, Conflict, ConflictAction, Delete, Given, Insert, InsertSource, Update, column_position,
};
pub(crate) use explain::explain;
pub(crate) use explain_form::{Form, Told};
pub(crate) use explain_tree::{Wanted, counts_of, explained};
pub(crate) use factor::{factored, implied};
pub(crate) use foreign::{Foreign, ForeignTables};
pub(crate) use general::General;
pub(crate) use json_rows::JsonRows;
pub(crate) use limits::{Done, Ends};
pub(crate) use lock::{LockWait, RowLock, lock_of};
pub(crate) use merge::{Merge, MergeAction};
pub(crate) use output::{apart, check_equality, index_column_names, name_of as column_name_of};
pub(crate) use path::{Access, Bounds, Several, choose};
pub(crate) use reads::{columns_read, draws, reads_from, tables_read};
pub(crate) use rules::Rules;
pub(crate) use select::{
    Body, Grouping, Join, Recursive, Select, SortBy, SortKey, Source, SourceKind, is_whole,
};
pub(crate) use set_function::{SetCall, SetFunction};
pub(crate) use updatable::Changes;
pub(crate) use writing::{NamesOfWith, Writing, writes_in_with};

use crate::bind::{Binder, Lender, ParamCast, Variable};
use crate::catalog::{Catalog, Oid, Version};
use crate::error::Result;
use crate::expr::{Expr, RowType};
use crate::roles::Rights;
use crate::wire::Field;
use sqlparser::ast;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use vellum_row::Settings;
use vellum_row::{Type, Typmod};

/// A compiled statement.
#[derive(Debug)]
pub(crate) struct Program {
    pub kind: ProgramKind,
    /// Statements of WITH that are run first: those that write; and queries that are to be run once, when they are read first.
    pub with: Vec<Arc<Writing>>,
    /// Foreign keys that any of them may meet, if there are some.
    pub keys: ForeignTables,
    /// Subqueries of changes; a SELECT has its own.
    pub subqueries: Vec<Subquery>,
    pub params: Vec<Type>,
    pub param_casts: Vec<ParamCast>,
    /// What it returns; empty with `returns` false if it returns no rows.
    pub columns: Vec<OutputColumn>,
    /// Where columns are records: of each column, what is in its rows, as far as that is known.
    pub records: Vec<Option<RowType>>,
    pub returns: bool,
    /// Its columns, once somebody was told of them.
    told: OnceLock<Arc<[Field]>>,
    /// Tables that it changes or whose rows it locks.
    pub targets: Vec<Oid>,
    /// Relations that it uses, with the rights that it needs.
    pub accesses: Vec<(Oid, Rights)>,
    /// The columns of these that they are needed for; 0 for all of the relation.
    pub column_uses: Vec<(Oid, Rights, u16)>,
    /// What views in it use, with the view that says whose rights count for that.
    pub lent: Vec<(Oid, Rights, Lender)>,
    /// Schemas that its constants name.
    pub looks_into: Vec<Oid>,
    /// C1: what it was compiled for.
    pub catalog_version: Version,
}

impl Program {
    /// Whether it begins to read something after it has written: a query for each row, or the later tables of a join. What it has written by then
    /// is none of what it reads, as in PostgreSQL.
    pub fn reads_beside_its_writes(&self) -> bool {
        let of_rows = |subqueries: &[Subquery]| subqueries.iter().any(|sub| sub.select.correlated);
        match &self.kind {
            ProgramKind::Select(_) => false,
            ProgramKind::Insert(insert) => {
                matches!(insert.source, InsertSource::Select(_)) || of_rows(&self.subqueries)
            }
            ProgramKind::Update(_) | ProgramKind::Delete(_) | ProgramKind::Merge(_) => {
                of_rows(&self.subqueries)
            }
        }
    }

    /// Whether all that it reads of tables is found by values of the first columns of an index: knowing these when it is compiled makes it no better.
    pub fn is_brief(&self) -> bool {
        let pinned = |access: &Access| access.index.is_some() && !access.equal.is_empty();
        let alone = self.with.is_empty() && self.subqueries.is_empty();
        alone
            && match &self.kind {
                ProgramKind::Select(select) => {
                    let sources = match &select.body {
                        Body::From { sources, .. } => sources.as_slice(),
                        Body::Values(_) | Body::Set { .. } => &[],
                    };
                    let found = |source: &Source| matches!(&source.kind, SourceKind::Table { access, .. } if pinned(access));
                    select.general.is_none()
                        && select.subqueries.is_empty()
                        && !sources.is_empty()
                        && sources.iter().all(found)
                }
                ProgramKind::Insert(insert) => matches!(insert.source, InsertSource::Rows(_)),
                ProgramKind::Update(update) => update.joined.is_none() && pinned(&update.access),
                ProgramKind::Delete(delete) => delete.joined.is_none() && pinned(&delete.access),
                ProgramKind::Merge(_) => false,
            }
    }
}

/// What a program does.
#[derive(Debug)]
pub(crate) enum ProgramKind {
    Select(Box<Select>),
    Insert(Box<Insert>),
    Update(Box<Update>),
    Delete(Box<Delete>),
    Merge(Box<Merge>),
}

/// A column of a result.
#[derive(Clone, Debug)]
pub(crate) struct OutputColumn {
    pub name: String,
    pub ty: Type,
    pub typmod: Typmod,
    /// Oid of its table and number in it.
    pub origin: (Oid, i16),
    /// The domain that its values are of.
    pub domain: Option<Oid>,
    /// Their collation, where that is another than their type's.
    pub collation: Option<Oid>,
    /// Whether COLLATE says which that is.
    pub collated: bool,
}

impl OutputColumn {
    /// As Describe tells it.
    pub fn field(&self) -> Field {
        Field {
            name: self.name.clone(),
            table_oid: self.origin.0,
            column_number: self.origin.1,
            type_oid: self.ty.oid(),
            type_length: self.ty.length(),
            type_modifier: self.modifier().0,
        }
    }

    /// The modifier that anybody knows: what is in a record is its statement's to know.
    pub fn modifier(&self) -> Typmod {
        match self.ty {
            Type::Record => Typmod::NONE,
            _ => self.typmod,
        }
    }
}

/// A subquery. One that reads nothing of what surrounds it is run once in a statement, when it is first asked for.
#[derive(Debug)]
pub(crate) struct Subquery {
    /// No other has it, in any statement.
    pub number: u64,
    pub kind: SubqueryKind,
    pub select: Select,
    /// Made when it is asked for first.
    by_keys: OnceLock<Option<Box<ByKeys>>>,
}

impl Clone for Subquery {
    /// One of a number of its own.
    fn clone(&self) -> Self {
        Self::new(self.kind, self.select.clone())
    }
}

impl Subquery {
    pub fn new(kind: SubqueryKind, select: Select) -> Self {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        Self {
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            kind,
            select,
            by_keys: OnceLock::new(),
        }
    }
}

impl Subquery {
    /// The type of its value, as an expression; a list, or rows, that a value is looked for in have none.
    pub fn ty(&self) -> Option<Type> {
        match self.kind {
            SubqueryKind::Scalar => self.select.types.first().copied(),
            SubqueryKind::Exists => Some(Type::Bool),
            SubqueryKind::Array(element) => Some(element.gathered()),
            SubqueryKind::List | SubqueryKind::Rows { .. } => None,
        }
    }
}

/// What is wanted of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SubqueryKind {
    /// The value of its one row, or null.
    Scalar,
    /// Values of its rows.
    List,
    /// Whether there is a row.
    Exists,
    /// An array of its values.
    Array(Type),
    /// Its rows; or the one that there may be.
    Rows { single: bool },
}

/// What a statement is compiled with.
#[derive(Clone, Copy)]
pub(crate) struct Surroundings<'c> {
    pub catalog: &'c Catalog,
    pub search_path: &'c [Oid],
    pub settings: &'c Settings,
    pub text: &'c str,
    /// What may end it.
    pub ends: Option<Ends<'c>>,
    /// The variables of the code that it is a statement of.
    pub variables: &'c [Variable],
}

impl<'c> Surroundings<'c> {
    /// A binder in them.
    pub fn binder(self) -> Binder<'c> {
        let mut binder = Binder::new(self.catalog, self.search_path, self.settings, self.text);
        binder.ends = self.ends;
        binder.variables = self.variables;
        binder
    }
}

/// Compiles a statement that reads or changes rows.
///
/// # Errors
/// Of names and types; `0A000` for what no program can do.
pub(crate) fn compile<'c>(
    statement: &'c ast::Statement,
    params: &[u32],
    surroundings: Surroundings<'c>,
) -> Result<Program> {
    let mut binder = surroundings.binder();
    let void = crate::expr::VOID;
    for (number, oid) in (0..=u16::MAX).zip(params) {
        if *oid == void {
            binder.void_params.push(number);
        }
        binder.params.push(match *oid == void {
            true => Some(Type::Text),
            false => declared::declared(*oid, surroundings)?,
        });
    }
    let writing::Bound {
        mut kind,
        columns,
        returns,
    } = binder.top_statement(statement)?;
    let mut with = std::mem::take(&mut binder.writings);
    for writing in &mut with {
        unread::drop_unread(&mut writing.kind, &mut writing.subqueries);
    }
    unread::drop_unread(&mut kind, &mut binder.subqueries);
    let mut keys = ForeignTables::default();
    if !with.is_empty() {
        let kinds = with.iter().map(|writing| &writing.kind).chain([&kind]);
        for tables in kinds.filter_map(ProgramKind::keys) {
            keys.extend(tables.iter().map(|(oid, keys)| (*oid, keys.clone())));
        }
    }
    let params = binder.decided()?;
    let mut path = surroundings.search_path.iter().copied();
    let own = path.find(|schema| surroundings.catalog.is_temporary(*schema));
    let mut records = Vec::new();
    if columns.iter().any(|column| column.ty == Type::Record) {
        let types = columns.iter().map(|column| {
            let row = column.ty == Type::Record;
            row.then(|| binder.row_type(column.typmod)).flatten()
        });
        records.extend(types);
    }
    Ok(Program {
        records,
        kind,
        with: with.into_iter().map(Arc::new).collect(),
        keys,
        params,
        param_casts: std::mem::take(&mut binder.param_casts),
        subqueries: std::mem::take(&mut binder.subqueries),
        targets: std::mem::take(&mut binder.targets),
        accesses: std::mem::take(&mut binder.accesses),
        column_uses: std::mem::take(&mut binder.column_uses),
        lent: std::mem::take(&mut binder.lent),
        looks_into: std::mem::take(&mut binder.looks_into),
        columns,
        returns,
        told: OnceLock::new(),
        catalog_version: surroundings.catalog.version(own),
    })
}

impl Program {
    /// Whether it changes rows or locks them.
    pub fn writes(&self) -> bool {
        !self.targets.is_empty()
    }

    /// The columns as Describe tells them.
    pub fn fields(&self) -> Arc<[Field]> {
        let made = || self.columns.iter().map(OutputColumn::field).collect();
        self.told.get_or_init(made).clone()
    }
}

/// Splits a condition at its ANDs.
pub(crate) fn conjuncts(condition: Expr, out: &mut Vec<Expr>) {
    match condition {
        Expr::And(list) => {
            for expr in list.into_vec() {
                conjuncts(expr, out);
            }
        }
        other => out.push(other),
    }
}
