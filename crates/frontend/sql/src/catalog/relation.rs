//! What the catalog knows of a relation.

use super::{Collation, Domain, Method, OperatorClass, Runtime};
use crate::error::Result;
use crate::roles::Grant;
use crate::system::Definition;
use std::borrow::Cow;
use std::sync::{Arc, OnceLock};
use vellum::Transaction;
use vellum_row::{ColumnId, EnumId, EnumLabel, Schema, Type};

/// Number of an object of the catalog.
pub(crate) type Oid = u32;

/// A table, view or sequence; or a type, which has a name among types.
#[derive(Clone, Debug)]
pub(crate) struct Relation {
    pub oid: Oid,
    pub namespace: Oid,
    pub name: Box<str>,
    pub owner: Oid,
    /// Raised with every change of it.
    pub generation: u64,
    /// What is not in the catalog's rows: shared by all images of the relation.
    pub runtime: Arc<Runtime>,
    /// Rights on it; `None`: those that its owner has.
    pub acl: Option<Vec<Grant>>,
    /// By a column's number: rights on it alone.
    pub column_acls: Vec<(u16, Vec<Grant>)>,
    pub kind: Kind,
}

/// What a relation is.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Table(Box<Table>),
    View(View),
    Sequence(SequenceDefinition),
    /// An enum: its labels in order.
    Enum(Arc<[EnumLabel]>),
    Domain(Box<Domain>),
    /// Not in the catalog's rows: the program has it.
    System(&'static Definition),
}

/// A table: columns, constraints, indexes, and where the rows are.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub schema: Arc<Schema>,
    pub storage: Storage,
    /// By column.
    pub defaults: Vec<(ColumnId, Default)>,
    /// The first is the primary key if there is one.
    pub indexes: Vec<Arc<Index>>,
    pub checks: Vec<Check>,
    pub foreign_keys: Vec<ForeignKey>,
    /// What WITH says, as `pg_class` shows it: `fillfactor=70`. Nothing here goes by it.
    pub options: Vec<Box<str>>,
    /// Columns whose type is a domain, each with the oid of that; the schema has the type of its values.
    pub domains: Vec<(ColumnId, Oid)>,
    /// Columns of another collation than their type's, each with the oid of that.
    pub collations: Vec<(ColumnId, Oid)>,
    pub replica_identity: ReplicaIdentity,
}

/// What would tell rows apart for who replicates them: kept and shown, as nobody does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, std::default::Default)]
#[repr(u8)]
pub(crate) enum ReplicaIdentity {
    #[default]
    Default = 0,
    Nothing = 1,
    Full = 2,
    /// The index that says so of itself ([`Marks`]).
    Index = 3,
}

impl ReplicaIdentity {
    /// In the order of their codes on disk.
    pub const ALL: [Self; 4] = [Self::Default, Self::Nothing, Self::Full, Self::Index];

    /// As in `pg_class`.
    pub fn letter(self) -> &'static str {
        match self {
            Self::Default => "d",
            Self::Nothing => "n",
            Self::Full => "f",
            Self::Index => "i",
        }
    }
}

/// What a table says of one of its indexes, kept and shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug, std::default::Default)]
pub(crate) struct Marks {
    /// CLUSTER has named it last.
    pub clustered: bool,
    /// REPLICA IDENTITY names it.
    pub identity: bool,
}

/// A table of the engine: its name, and its handle once it was asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Storage {
    pub name: Box<str>,
    handle: OnceLock<vellum::Table>,
}

impl Storage {
    /// A name without a handle.
    pub fn new(name: impl Into<Box<str>>) -> Self {
        Self {
            name: name.into(),
            handle: OnceLock::new(),
        }
    }

    /// The same with the handle of a table that was just made.
    pub fn of(table: vellum::Table) -> Self {
        let handle = OnceLock::new();
        let name = table.name().into();
        let _ = handle.set(table);
        Self { name, handle }
    }

    /// The handle. The first call of an image asks the engine.
    #[inline]
    pub fn table(&self, transaction: &Transaction) -> Result<&vellum::Table> {
        if let Some(table) = self.handle.get() {
            return Ok(table);
        }
        let table = transaction.table(&self.name)?;
        Ok(self.handle.get_or_init(|| table))
    }
}

/// Where the value of a column comes from that a statement does not give.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Default {
    /// An expression, as SQL.
    Expression(Box<str>),
    /// GENERATED … AS IDENTITY: the next value of a sequence.
    Identity { kind: Identity, sequence: Oid },
    /// GENERATED ALWAYS AS (…) STORED.
    Generated(Box<str>),
}

/// Whether a statement may give a value of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Identity {
    Always,
    ByDefault,
}

/// An index. Its rows are in an engine table of its own but for the primary key, which the table itself is ordered by.
#[derive(Clone, Debug)]
pub(crate) struct Index {
    pub oid: Oid,
    pub name: Box<str>,
    /// `None`: the table's own order.
    pub storage: Option<Storage>,
    pub columns: Vec<IndexColumn>,
    /// Columns that INCLUDE names: they say nothing of its rows.
    pub include: Vec<ColumnId>,
    /// As SQL: only rows for which it is true have an entry. `None`: all have.
    pub predicate: Option<Box<str>>,
    pub unique: bool,
    /// Whether a null is like no other, so that rows with one are never twice in it.
    pub nulls_distinct: bool,
    /// Oid of the constraint that it stands for; it has the index's name.
    pub constraint: Option<Oid>,
    pub primary: bool,
    /// When the constraint is checked.
    pub timing: Timing,
    /// What it was called; see [`Method`].
    pub method: Method,
    /// What WITH says, as [`Table::options`].
    pub options: Vec<Box<str>>,
    pub marks: Marks,
}

/// A column of an index.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct IndexColumn {
    pub key: IndexKey,
    pub descending: bool,
    pub nulls_first: bool,
    /// Oid of its operator class; 0 for the one that its type has.
    pub class: Oid,
    /// `None`: that of the table's column, or of the expression's type.
    pub collation: Option<KeyCollation>,
}

/// The collation of a column of an index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum KeyCollation {
    /// The one that an expression has by what stands in it.
    Own(Oid),
    /// COLLATE says it, and it is another one than without.
    Said(Oid),
}

/// What stands in a column of an index.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum IndexKey {
    /// A column of the table.
    Column(ColumnId),
    /// An expression over the table's columns, as SQL.
    Expression(Box<str>),
}

impl IndexColumn {
    /// An ascending column of the table, nulls last.
    pub fn ascending(column: ColumnId) -> Self {
        Self {
            key: IndexKey::Column(column),
            descending: false,
            nulls_first: false,
            class: 0,
            collation: None,
        }
    }

    /// Its collation in an index of a table, where it is of a type; 0 if that is no text.
    pub fn collation_in(&self, table: &Table, ty: Type) -> Oid {
        let column = || self.column().and_then(|column| table.collation_of(column));
        match self.collation {
            Some(KeyCollation::Own(oid) | KeyCollation::Said(oid)) => oid,
            None => column().unwrap_or_else(|| Collation::of_type(ty)),
        }
    }

    /// Its operator class, in an index of a method, where it is of a type.
    pub fn class_of(&self, method: Method, ty: Type) -> Option<&'static OperatorClass> {
        match self.class {
            0 => OperatorClass::default_of(method, ty),
            oid => OperatorClass::of(oid),
        }
    }

    /// The column of the table, if it is one.
    pub fn column(&self) -> Option<ColumnId> {
        match &self.key {
            IndexKey::Column(column) => Some(*column),
            IndexKey::Expression(_) => None,
        }
    }
}

impl Index {
    /// Whether no two rows are ever in it under one key, so that a key has an entry of its own. Under a deferrable constraint rows may share one for
    /// a while.
    pub fn keeps_apart(&self) -> bool {
        self.unique && self.timing == Timing::Fixed
    }

    /// Whether it knows of all rows, and of nothing but their columns.
    pub fn is_plain(&self) -> bool {
        let mut columns = self.columns.iter();
        self.predicate.is_none()
            && self.method.has_entries()
            && columns.all(|part| part.column().is_some())
    }

    /// Whether it is plain, and of exactly these columns, in any order.
    pub fn is_of(&self, columns: &[ColumnId]) -> bool {
        let mut own = self.key_columns();
        self.is_plain()
            && self.columns.len() == columns.len()
            && own.all(|column| columns.contains(&column))
    }

    /// The table's columns among its own.
    pub fn key_columns(&self) -> impl Iterator<Item = ColumnId> {
        self.columns.iter().filter_map(IndexColumn::column)
    }

    /// The same, and those that INCLUDE names.
    pub fn columns_named(&self) -> impl Iterator<Item = ColumnId> {
        self.key_columns().chain(self.include.iter().copied())
    }

    /// Expressions among its columns, in their order.
    pub fn expressions(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().filter_map(|part| match &part.key {
            IndexKey::Expression(sql) => Some(&**sql),
            IndexKey::Column(_) => None,
        })
    }
}

/// CHECK.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Check {
    pub oid: Oid,
    pub name: Box<str>,
    /// As SQL.
    pub expression: Box<str>,
}

/// FOREIGN KEY.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ForeignKey {
    pub oid: Oid,
    pub name: Box<str>,
    pub columns: Vec<ColumnId>,
    pub target: Oid,
    pub target_columns: Vec<ColumnId>,
    pub on_delete: Action,
    pub on_update: Action,
    /// When it is checked, where it only checks.
    pub timing: Timing,
    /// MATCH FULL: either all of its columns are null or none is.
    pub full: bool,
    pub off: SwitchedOff,
}

/// What ALTER TABLE … DISABLE TRIGGER has switched off of a foreign key.
#[derive(Clone, Copy, PartialEq, Eq, Debug, std::default::Default)]
pub(crate) struct SwitchedOff {
    /// Rows of its own table may refer to nothing.
    pub references: bool,
    /// Rows of its target may go.
    pub target: bool,
}

/// When a constraint is checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, std::default::Default)]
pub(crate) enum Timing {
    /// NOT DEFERRABLE: keys row by row, the others at the end of each statement.
    #[default]
    Fixed,
    /// DEFERRABLE: at the end of each statement, unless SET CONSTRAINTS says otherwise.
    Immediate,
    /// DEFERRABLE INITIALLY DEFERRED: at the end of the transaction, unless SET CONSTRAINTS says otherwise.
    Deferred,
}

impl Timing {
    /// Whether SET CONSTRAINTS may say when.
    pub fn is_deferrable(self) -> bool {
        self != Self::Fixed
    }

    /// Behind the definition of a constraint, as PostgreSQL writes it.
    pub fn words(self) -> &'static str {
        match self {
            Self::Fixed => "",
            Self::Immediate => " DEFERRABLE",
            Self::Deferred => " DEFERRABLE INITIALLY DEFERRED",
        }
    }
}

/// What a foreign key does when its target goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
#[allow(clippy::enum_variant_names, reason = "the standard's name")]
pub(crate) enum Action {
    NoAction = 0,
    Restrict = 1,
    Cascade = 2,
    SetNull = 3,
    SetDefault = 4,
}

impl Action {
    /// Whether it changes the rows that refer to the target.
    pub fn writes(self) -> bool {
        matches!(self, Self::Cascade | Self::SetNull | Self::SetDefault)
    }
}

/// A view.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct View {
    /// The query, as SQL.
    pub query: Box<str>,
    /// Names of its columns.
    pub columns: Vec<Box<str>>,
    /// What WITH says, as `pg_class` shows it: `check_option=local`.
    pub options: Vec<Box<str>>,
    /// By a column's number, from 1: what stands for it in a row that is written through the view, as SQL.
    pub defaults: Vec<(u16, Box<str>)>,
}

/// Which conditions a row has to fulfil that is written through a view.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CheckOption {
    /// The view's own.
    Local,
    /// Those of the views below, too.
    Cascaded,
}

impl View {
    fn option(&self, name: &str) -> Option<&str> {
        let mut options = self.options.iter();
        options
            .find_map(|option| option.split_once('=').filter(|(own, _)| *own == name))
            .map(|(_, value)| value)
    }

    /// Its check option.
    pub fn check_option(&self) -> Option<CheckOption> {
        let value = self.option("check_option")?;
        Some(match value.eq_ignore_ascii_case("local") {
            true => CheckOption::Local,
            false => CheckOption::Cascaded,
        })
    }

    /// Whether what it reads is read by the rights of who reads it.
    pub fn is_invoker(&self) -> bool {
        self.option("security_invoker")
            .and_then(boolean)
            .unwrap_or(false)
    }
}

/// A sequence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SequenceDefinition {
    /// Where RESTART goes to.
    pub start: i64,
    /// The first of its values: another one than the start if it was told so, or if the start was changed since.
    pub begin: i64,
    pub increment: i64,
    pub minimum: i64,
    pub maximum: i64,
    pub cycle: bool,
    /// What CACHE says; sessions keep no values for themselves.
    pub cache: i64,
    /// Oid of its type.
    pub type_oid: Oid,
    /// The column that it goes with: table and column; 0 for none.
    pub owner: (Oid, u16),
    /// The number that its values are known by; another one once it was started again.
    pub values: Oid,
}

impl Relation {
    /// Whether it is a type.
    pub fn is_type(&self) -> bool {
        matches!(self.kind, Kind::Enum(_) | Kind::Domain(_))
    }

    /// The type that it is, if it is one that has values of its own.
    pub fn as_type(&self) -> Option<Type> {
        match self.kind {
            Kind::Enum(_) => EnumId::of(self.oid).map(Type::Enum),
            _ => None,
        }
    }

    /// What stands for a column that a statement does not give, by its number.
    pub fn default_of(&self, number: u16) -> Option<Cow<'_, Default>> {
        match &self.kind {
            Kind::Table(table) => table.default_of(ColumnId(number)).map(Cow::Borrowed),
            Kind::View(view) => {
                let mut defaults = view.defaults.iter();
                let (_, sql) = defaults.find(|(own, _)| *own == number)?;
                Some(Cow::Owned(Default::Expression(sql.clone())))
            }
            _ => None,
        }
    }

    /// The same table without its keys: what relies on one of them cannot be bound to it.
    pub fn without_keys(&self) -> Self {
        let mut next = self.clone();
        if let Kind::Table(table) = &mut next.kind {
            table.indexes.clear();
            table.foreign_keys.clear();
        }
        next
    }

    /// The table, if it is one.
    pub fn table(&self) -> Option<&Table> {
        match &self.kind {
            Kind::Table(table) => Some(table),
            _ => None,
        }
    }
}

impl Table {
    /// Whether a constraint of it has this name.
    pub fn has_constraint(&self, name: &str) -> bool {
        let mut keys = self.indexes.iter();
        self.checks.iter().any(|check| *check.name == *name)
            || self.foreign_keys.iter().any(|key| *key.name == *name)
            || keys.any(|index| index.constraint.is_some() && *index.name == *name)
    }

    /// The primary key.
    pub fn primary_key(&self) -> Option<&Arc<Index>> {
        self.indexes.first().filter(|index| index.primary)
    }

    /// The key that its rows are ordered by. A primary key that is deferrable is not: rows may share it for a while.
    pub fn ordering_key(&self) -> Option<&Arc<Index>> {
        self.primary_key().filter(|key| key.storage.is_none())
    }

    /// Number of the unique index of exactly these columns: one that a foreign key may refer to.
    pub fn unique_index(&self, columns: &[ColumnId]) -> Option<usize> {
        self.indexes
            .iter()
            .position(|index| index.keeps_apart() && index.is_of(columns))
    }

    /// The unique index that a foreign key to these columns stands on: the oldest one. The key was made when that was there, and goes with it, as at PostgreSQL; where rows are looked up is
    /// another matter.
    pub fn referred_index(&self, columns: &[ColumnId]) -> Option<&Arc<Index>> {
        let fitting = self.indexes.iter();
        let fitting = fitting.filter(|index| index.keeps_apart() && index.is_of(columns));
        fitting.min_by_key(|index| index.oid)
    }

    /// Indexes with rows of their own.
    pub fn secondary(&self) -> impl Iterator<Item = &Arc<Index>> {
        self.indexes.iter().filter(|index| index.storage.is_some())
    }

    /// Tables of the engine that its rows and its indexes are in.
    pub fn storages(&self) -> impl Iterator<Item = &Storage> {
        let indexes = self.indexes.iter();
        let indexes = indexes.filter_map(|index| index.storage.as_ref());
        indexes.chain(std::iter::once(&self.storage))
    }

    /// The domain that a column is of.
    pub fn domain_of(&self, column: ColumnId) -> Option<Oid> {
        let found = self.domains.iter().find(|(id, _)| *id == column);
        found.map(|(_, domain)| *domain)
    }

    /// Says which domain a column is of, or that it is of none.
    pub fn set_domain(&mut self, column: ColumnId, domain: Option<Oid>) {
        self.domains.retain(|(id, _)| *id != column);
        self.domains.extend(domain.map(|domain| (column, domain)));
    }

    /// The collation of a column, where that is another than its type's.
    pub fn collation_of(&self, column: ColumnId) -> Option<Oid> {
        let found = self.collations.iter().find(|(id, _)| *id == column);
        found.map(|(_, collation)| *collation)
    }

    /// Says which collation a column has; `None`: its type's.
    pub fn set_collation(&mut self, column: ColumnId, collation: Option<Oid>) {
        self.collations.retain(|(id, _)| *id != column);
        let said = collation.map(|collation| (column, collation));
        self.collations.extend(said);
    }

    /// Where the value of a column comes from.
    pub fn default_of(&self, column: ColumnId) -> Option<&Default> {
        let found = self.defaults.iter().find(|(id, _)| *id == column);
        found.map(|(_, default)| default)
    }

    /// Position of a column among the live ones.
    ///
    /// # Panics
    /// If there is none: an index's columns cannot be dropped without it.
    pub fn position(&self, column: ColumnId) -> usize {
        self.schema
            .position_of(column)
            .expect("what refers to a column goes before it")
    }
}

/// A word that says yes or no, or as many of its letters as tell which.
pub(crate) fn boolean(value: &str) -> Option<bool> {
    let value = value.to_lowercase();
    let begins = |word: &str| !value.is_empty() && word.starts_with(&*value);
    if value == "1" || value == "on" || begins("true") || begins("yes") {
        return Some(true);
    }
    let off = value.len() > 1 && begins("off");
    (value == "0" || off || begins("false") || begins("no")).then_some(false)
}
