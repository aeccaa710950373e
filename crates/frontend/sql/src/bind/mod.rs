//! The binder: syntax trees to typed expressions.
//!
//! Names are looked up in the scope and in the catalog, types are inferred as PostgreSQL infers them: a literal in quotes and a
//! parameter without type are of unknown type until something they meet decides.
//!
//! Not here: which index is taken (`plan`).

mod again;
mod aggregate;
mod array;
mod assigned;
mod call;
mod choice;
mod clauses;
mod coerce;
mod collation;
mod domains;
mod enums;
mod expression;
mod extension;
mod frame;
mod levels;
mod like;
mod named_windows;
mod near;
mod numeral;
mod operator;
mod place;
mod qualified;
mod record;
mod row;
mod scope;
mod shown;
mod star;
mod types;
mod used;
mod variable;
mod variadic;
mod window;

pub(crate) use again::TextDigest;
pub(crate) use aggregate::{Aggregate, AggregateKind};
pub(crate) use array::array_subquery;
pub(crate) use assigned::Target;
pub(crate) use call::{parameters_of, undefined};
use collation::Collations;
pub(crate) use collation::{NONE as NO_COLLATION, common_collation, indeterminate};
use domains::KnownDomains;
pub(crate) use extension::{
    called_name, function_shown, functions_in, functions_reached, kept_function, kept_function_of,
    refuse_kept,
};
pub(crate) use frame::Limit;
use named_windows::NamedWindows;
pub(crate) use numeral::number;
pub(crate) use qualified::TableName;
pub(crate) use row::{query_of, row_of};
pub(crate) use scope::{
    Found, Joined, JoinedColumn, Named as NamedTable, OuterScope, Scope, ScopeColumn, ScopeTable,
};
pub(crate) use star::{Star, star_of};
pub(crate) use types::{
    NAME_BYTES, NamedType, TypeNames, cut, folded, folded_word, kept_name, kept_oid, no_type,
    object_name, type_label,
};
pub(crate) use variable::Variable;
pub(crate) use window::{WINDOW_SLOTS, Window, WindowCall, WindowKind, check_number};

use crate::catalog::{Catalog, Kind, Named, Oid, Relation};
use crate::error::{Result, SqlError};
use crate::expr::{Expr, Scalar};
use crate::plan::{Done, Ends, General, NamesOfWith, Source, Subquery, Writing};
use crate::roles::Rights;
use crate::sqlstate;
use sqlparser::ast;
use sqlparser::tokenizer::Location;
use std::cell::OnceCell;
use std::sync::Arc;
use vellum_base::maps::HashMap;
use vellum_row::{EnumId, Settings, Type, Typmod};

/// An expression while its surroundings are being bound.
#[derive(Clone, Debug)]
pub(crate) struct Bound {
    pub expr: Expr,
    /// `None`: unknown: a literal in quotes, NULL, or a parameter without type.
    pub ty: Option<Type>,
    pub typmod: Typmod,
    /// Where it begins in the statement's text, if that is known: what is wrong with it is said with its place.
    pub start: Option<Location>,
}

impl Bound {
    pub fn new(expr: Expr, ty: Type) -> Self {
        Self {
            expr,
            ty: Some(ty),
            typmod: Typmod::NONE,
            start: None,
        }
    }

    /// Says where it begins, unless that is known.
    fn from(self, start: Option<Location>) -> Self {
        Self {
            start: self.start.or(start),
            ..self
        }
    }

    /// What is read of it several times, and what is to be computed once for that ([`holding`]), if it may be another the next time.
    fn held(self) -> (Self, Option<Expr>) {
        if !self.expr.is_volatile() {
            return (self, None);
        }
        let expr = Expr::Held;
        (Self { expr, ..self }, Some(self.expr))
    }
}

/// An expression that reads what [`Bound::held`] has made of a value.
fn holding(expr: Expr, value: Option<Expr>) -> Expr {
    match value {
        None => expr,
        Some(value) => Expr::Once {
            value: Box::new(value),
            body: Box::new(expr),
        },
    }
}

/// A query that WITH names.
#[derive(Clone, Debug)]
pub(crate) struct With {
    pub name: String,
    pub columns: Vec<String>,
    pub query: Arc<ast::Query>,
    pub meaning: Meaning,
    /// How many queries stand around the one whose WITH it is: it may read their columns, and those of no query between.
    pub depth: usize,
}

/// What the name of a query of WITH stands for.
#[derive(Clone, Debug)]
pub(crate) enum Meaning {
    Query,
    /// A query that may read itself.
    Recursive,
    /// Itself, where it must not be read: why.
    Refused(&'static str),
    /// What its last step has made: its number, its columns, how often it is read.
    Work {
        number: usize,
        columns: Vec<ScopeColumn>,
        read: usize,
    },
    /// What a statement has returned: its number and its columns.
    Written {
        number: usize,
        columns: Vec<ScopeColumn>,
    },
    /// A statement that returns nothing.
    Silent,
}

/// A cast of a parameter: of a literal in its place it would be done when the statement is compiled, run or not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ParamCast {
    pub number: u16,
    pub ty: Type,
    pub typmod: Typmod,
    pub explicit: bool,
}

/// Whose rights count where a view is read.
#[derive(Clone, Debug)]
pub(crate) enum Reader {
    /// Nobody's are asked for: of what stands for a relation that is no view.
    Anyone,
    /// Whom the view says.
    View(Lender),
}

/// A view that says whose rights count for what it reads and writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Lender {
    pub view: Oid,
    /// Who owns it in an image; `None`: who runs the statement, of a view with `security_invoker`.
    pub owner: Option<Oid>,
}

impl Lender {
    /// What a view says.
    pub fn of(view: &Relation) -> Self {
        let invoker = matches!(&view.kind, Kind::View(own) if own.is_invoker());
        Self {
            view: view.oid,
            owner: (!invoker).then_some(view.owner),
        }
    }
}

impl Reader {
    /// Of what a relation's query reads.
    pub fn of(relation: &Relation) -> Self {
        match &relation.kind {
            Kind::View(_) => Self::View(Lender::of(relation)),
            _ => Self::Anyone,
        }
    }
}

/// What a statement is bound with.
pub(crate) struct Binder<'c> {
    pub catalog: &'c Catalog,
    pub search_path: &'c [Oid],
    pub settings: &'c Settings,
    pub text: &'c str,
    /// What may end it before it is done.
    pub ends: Option<Ends<'c>>,
    /// The variables of the code that it is a statement of.
    pub variables: &'c [Variable],
    pub done: Done,
    /// Types of the parameters; `None`: not known (yet).
    pub params: Vec<Option<Type>>,
    /// Whether it may have parameters: what is kept in the catalog has none.
    pub takes_params: bool,
    /// Numbers of those that the client gives the type `void`: what JDBC sends where a function's result goes. They are no arguments.
    pub void_params: Vec<u16>,
    /// Casts of parameters.
    pub param_casts: Vec<ParamCast>,
    /// Parameters that stood where any type does, before one was known: nothing may say later which, as in PostgreSQL.
    pub undecided: Vec<(u16, Option<Location>)>,
    pub scope: Scope,
    /// What the queries around this one see, outermost first.
    pub outer: Vec<OuterScope>,
    pub subqueries: Vec<Subquery>,
    /// Why no program can run the query that is being bound, if none can.
    pub general: Option<General>,
    /// Views that are being read inside each other.
    pub view_depth: usize,
    /// Names stand for no temporary relation: those of a view that lasts.
    pub lasting_only: bool,
    /// Whether it binds a text that is kept with a relation or a domain.
    pub kept: bool,
    /// What is bound is shown: literals of oids that are shown as names stay what they were written as.
    pub shows: bool,
    /// Schemas that constants of the statement's own text name, which the user has to have the right to look into.
    pub looks_into: Vec<Oid>,
    /// Tables that it changes or whose rows it locks.
    pub targets: Vec<Oid>,
    /// Relations that it reads or changes, with the rights that it needs for that.
    pub accesses: Vec<(Oid, Rights)>,
    /// The columns of these that they are needed for: each by its number, 0 for all of the relation.
    pub column_uses: Vec<(Oid, Rights, u16)>,
    /// The same of what views read and are written through: with the role that has to have the right, if that is not the user.
    pub lent: Vec<(Oid, Rights, Lender)>,
    /// Whose rights count in the view that is being read.
    pub reader: Reader,
    /// What literals of the list that is bound next are read as: the columns that INSERT puts them into.
    pub literals_as: Vec<Type>,
    /// Where aggregates may stand, those that were found.
    pub aggregates: Option<Vec<Aggregate>>,
    /// The same of window functions.
    pub windows: Option<Vec<WindowCall>>,
    /// The same of GROUPING: the arguments of each.
    pub groupings: Option<Vec<Vec<Expr>>>,
    /// Whether it binds the argument of an aggregate.
    pub in_aggregate: bool,
    /// Whether it binds a key of ORDER BY: an aggregate that was written before is that one, also if it draws.
    pub in_order_by: bool,
    /// What WINDOW names.
    pub named_windows: NamedWindows,
    /// What WITH names, where it can be seen.
    pub with: Vec<With>,
    /// Statements of WITH that are run first.
    pub writings: Vec<Writing>,
    /// What the statement names, where queries of its WITH may be run first.
    pub named: Option<NamesOfWith>,
    /// Whether what is bound next is the statement itself.
    pub at_top: bool,
    /// How often queries of WITH were bound.
    pub with_uses: usize,
    /// How many of them are being bound inside each other.
    pub with_depth: usize,
    /// Where functions that return sets may stand in a list, those that were found: they are read behind the tables.
    pub set_functions: Option<Vec<Source>>,
    /// Which collations what is bound is of.
    pub collations: Collations,
    /// The columns of rows that tables' names stood for, and of those that were written down.
    pub records: Vec<Vec<(String, Type, Typmod)>>,
    /// A column, by its table and its number, and whether an expression was found to read it: who asks whether it can be dropped.
    pub watched: Option<((Oid, i16), bool)>,
    /// In RETURNING of an INSERT: whether the rows are asked for `xmax`, which tells those that were there.
    pub tells_xmax: Option<bool>,
    /// How many domains' conditions are being bound inside each other.
    pub domain_depth: usize,
    /// What domains ask that were met before.
    pub domains_known: OnceCell<KnownDomains>,
    /// Where they are asked for, the enums that literals of the statement were read as. What a view reads is the view's own.
    pub literal_types: Option<Vec<EnumId>>,
    /// The same of functions that extensions have.
    pub functions: Option<Vec<Scalar>>,
    /// What keys of the query ask, which is looked for in its clauses, and what it was bound to where it was met first.
    pub again: HashMap<TextDigest, Option<Bound>>,
}

/// The most tables, aggregates, keys of groups of a query: each is compared with all others, and no limit of time ends that.
pub(crate) const COMPARED_MAX: u16 = 4000;

/// In place of a table, where a query reads aggregates of one around it: their numbers stand in place of the column's, until that one's groups are made.
pub(crate) const OF_GROUPS: u16 = u16::MAX;

/// Where the slots of GROUPING begin, until aggregates are counted.
pub(crate) const GROUPING_SLOTS: u16 = 0x4000;

/// The most parameters, as the protocol counts them.
const PARAMS_MAX: usize = 65_535;

impl<'c> Binder<'c> {
    /// A binder without parameters, of a statement whose text is `text`.
    pub fn new(
        catalog: &'c Catalog,
        search_path: &'c [Oid],
        settings: &'c Settings,
        text: &'c str,
    ) -> Self {
        Self {
            catalog,
            search_path,
            settings,
            text,
            ends: None,
            variables: &[],
            done: Done::default(),
            params: Vec::new(),
            takes_params: true,
            void_params: Vec::new(),
            param_casts: Vec::new(),
            undecided: Vec::new(),
            scope: Scope::default(),
            outer: Vec::new(),
            subqueries: Vec::new(),
            general: None,
            view_depth: 0,
            lasting_only: false,
            kept: false,
            shows: false,
            looks_into: Vec::new(),
            targets: Vec::new(),
            accesses: Vec::new(),
            column_uses: Vec::new(),
            lent: Vec::new(),
            reader: Reader::Anyone,
            literals_as: Vec::new(),
            aggregates: None,
            windows: None,
            groupings: None,
            in_aggregate: false,
            in_order_by: false,
            named_windows: NamedWindows::default(),
            with: Vec::new(),
            writings: Vec::new(),
            named: None,
            at_top: false,
            with_uses: 0,
            with_depth: 0,
            set_functions: None,
            collations: Collations::default(),
            records: Vec::new(),
            watched: None,
            tells_xmax: None,
            domain_depth: 0,
            domains_known: OnceCell::new(),
            literal_types: None,
            functions: None,
            again: HashMap::default(),
        }
    }

    /// Where types are looked up.
    pub fn type_names(&self) -> TypeNames<'c> {
        TypeNames {
            catalog: self.catalog,
            search_path: self.search_path,
        }
    }

    /// The type that a name of a type stands for.
    ///
    /// # Errors
    /// As [`types::type_of`].
    pub fn type_of(&self, data_type: &ast::DataType) -> Result<(Type, Typmod)> {
        types::type_of(data_type, self.type_names()).map_err(|error| match data_type {
            ast::DataType::Custom(name, _) => error.at(self.place(name)),
            _ => error,
        })
    }

    /// Notes that a column is read, so many queries outwards.
    pub(super) fn note(&mut self, level: usize, found: &Found) {
        self.reads_columns(level, &found.expr);
        let Some((column, read)) = &mut self.watched else {
            return;
        };
        let scope = match level.checked_sub(1) {
            None => &self.scope,
            Some(level) => &self.outer[self.outer.len() - 1 - level].scope,
        };
        found.expr.walk(&mut |expr| {
            let Expr::Column { table, position } = expr else {
                return;
            };
            let table = &scope.tables[usize::from(*table)];
            let number = table.columns[usize::from(*position)].number;
            let oid = table.relation.as_ref().map(|relation| relation.oid);
            *read |= (oid, number) == (Some(column.0), column.1);
        });
    }

    /// The relation of a name, along the search path if it has no schema.
    ///
    /// # Errors
    /// `42P01`, `3F000`.
    pub fn relation(&self, name: &ast::ObjectName) -> Result<Arc<Relation>> {
        match self.named(name)? {
            Some(Named::Relation(oid)) => {
                let found = self.catalog.relation(oid).cloned();
                let found = found.ok_or_else(|| SqlError::internal("a name without relation"))?;
                let namespace = found.namespace;
                if self.catalog.is_temporary(namespace) && !self.search_path.contains(&namespace) {
                    let text = "cannot access temporary tables of other sessions";
                    return Err(SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, text));
                }
                Ok(found)
            }
            Some(Named::Index { .. }) => {
                let message = format!("\"{}\" is an index", object_name(name)?.1);
                Err(SqlError::new(sqlstate::WRONG_OBJECT_TYPE, message))
            }
            None => Err(self.no_relation(name)),
        }
    }

    /// Notes that a relation is used.
    pub fn uses(&mut self, relation: &Relation, right: Rights) {
        let access = (relation.oid, right);
        if self.view_depth == 0 {
            if matches!(relation.kind, crate::catalog::Kind::View(_)) {
                // Which of its columns are used is not known.
                self.uses_column(relation.oid, right, 0);
            }
            if !self.accesses.contains(&access) {
                self.accesses.push(access);
            }
            return;
        }
        if let Reader::View(lender) = self.reader {
            self.uses_as(relation, right, lender);
        }
    }

    /// Notes that a relation is used in a view, by the right of whom that says.
    pub fn uses_as(&mut self, relation: &Relation, right: Rights, lender: Lender) {
        let access = (relation.oid, right, lender);
        if !self.lent.contains(&access) {
            self.lent.push(access);
        }
    }

    /// What a name stands for.
    ///
    /// # Errors
    /// `3F000` for a schema that is not there.
    pub fn named(&self, name: &ast::ObjectName) -> Result<Option<Named>> {
        let (schema, name) = object_name(name)?;
        if let Some(schema) = schema {
            let namespace = self.catalog.schema_named(&schema, self.search_path);
            return Ok(namespace.and_then(|schema| self.catalog.named(schema, &name)));
        }
        let lasting = |oid: &&Oid| !(self.lasting_only && self.catalog.is_temporary(**oid));
        let find = |name: &str| {
            let mut all = self.search_path.iter().filter(lasting);
            all.find_map(|namespace| self.catalog.named(*namespace, name))
        };
        let found = find(&name);
        Ok(found.or_else(|| find(&types::folded_before(&name)?)))
    }

    /// `42P01`.
    #[cold]
    pub fn no_relation(&self, name: &ast::ObjectName) -> SqlError {
        let message = format!("relation \"{}\" does not exist", types::shown(name));
        SqlError::new(sqlstate::UNDEFINED_TABLE, message).at(self.place(name))
    }

    /// The parameter `$n`.
    fn param(&mut self, text: &str) -> Result<Bound> {
        let number: usize = text
            .strip_prefix('$')
            .and_then(|digits| digits.parse().ok())
            .filter(|number| self.takes_params && (1..=PARAMS_MAX).contains(number))
            .ok_or_else(|| {
                let message = format!("there is no parameter {text}");
                SqlError::new(sqlstate::UNDEFINED_PARAMETER, message)
            })?;
        if self.params.len() < number {
            self.params.resize(number, None);
        }
        Ok(Bound {
            expr: Expr::Param((number - 1) as u16),
            ty: self.params[number - 1],
            typmod: Typmod::NONE,
            start: None,
        })
    }
}
