//! What names of columns may stand for.

use super::{Aggregate, COMPARED_MAX, TableName};
use crate::catalog::{Kind, Oid, Relation};
use crate::error::{Result, SqlError};
use crate::expr::Expr;
use crate::sqlstate;
use crate::system::Definition;
use std::ops::Range;
use std::sync::Arc;
use vellum_row::{Type, Typmod};

/// The tables of a FROM, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scope {
    pub tables: Vec<ScopeTable>,
    /// Joins of them, those inside of others first.
    pub joined: Vec<Joined>,
    /// Names of what USING has merged, which hide nothing: with these columns alone.
    pub together: Vec<Joined>,
    /// Tables before this one have no names where the ON of a join stands that they are no part of.
    pub closed: u16,
    /// Names of tables before this one may be given again: a join that will have a name of its own begins here.
    pub apart: u16,
    /// Tables that LATERAL must not read, since a join that it stands in keeps rows of its own side.
    pub barred: Vec<Range<u16>>,
}

/// Tables that are joined, and what is found in them by names without a table's: the columns that USING has merged come first.
#[derive(Clone, Debug)]
pub(crate) struct Joined {
    pub from: u16,
    /// The first table behind them.
    pub to: u16,
    /// The join's own name: it hides those of the tables in it.
    pub name: Option<String>,
    /// As [`ScopeTable::own`], of a view that is written.
    pub own: Option<Oid>,
    pub columns: Vec<JoinedColumn>,
    /// As [`ScopeTable::qualified_only`]: of what USING has merged under a name of its own, and of a view that is written, whose columns are expressions over
    /// its table.
    pub qualified_only: bool,
}

/// A column of a join.
#[derive(Clone, Debug)]
pub(crate) struct JoinedColumn {
    pub name: String,
    /// A column of one of its tables, or what USING has made of several.
    pub expr: Expr,
    pub ty: Type,
    pub typmod: Typmod,
}

/// What is found by names of one kind: a join or a table.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Named<'s> {
    Joined(&'s Joined),
    Table(u16, &'s ScopeTable),
}

/// A table of a FROM.
#[derive(Clone, Debug)]
pub(crate) struct ScopeTable {
    pub name: String,
    /// The relation that has this name in the catalog, and is read here: a schema may stand in front of it. An alias hides it, though it be the same name.
    pub own: Option<Oid>,
    /// Whether only its own name stands for it (`excluded`), so that unqualified columns are not looked up here.
    pub qualified_only: bool,
    /// Whether its name stands for its one column, too: the table of a function that returns values.
    pub is_value: bool,
    /// Whether an outer join may have no row of it.
    pub may_miss: bool,
    pub relation: Option<Arc<Relation>>,
    pub columns: Vec<ScopeColumn>,
}

/// A column of one.
#[derive(Clone, Debug)]
pub(crate) struct ScopeColumn {
    pub name: String,
    pub ty: Type,
    pub typmod: Typmod,
    /// Its number in the relation; 0 for none.
    pub number: i16,
    /// The domain that it is of.
    pub domain: Option<Oid>,
    /// Its collation, where that is another than its type's.
    pub collation: Option<Oid>,
}

/// What a query around another one sees, while that is bound.
#[derive(Clone, Debug, Default)]
pub(crate) struct OuterScope {
    pub scope: Scope,
    /// Whether the query inside reads columns of this one or of one around it.
    pub read: bool,
    /// Its aggregates, where it may have some in the place of the query inside.
    pub aggregates: Option<Vec<Aggregate>>,
}

/// A column that was found.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// In the terms of the query whose it is.
    pub expr: Expr,
    pub ty: Type,
    pub typmod: Typmod,
}

impl Found {
    /// What stands for it in a query that is `level` queries further in.
    pub fn expr(mut self, level: u16) -> Expr {
        if level > 0 {
            outwards(&mut self.expr, level);
        }
        self.expr
    }
}

/// Makes columns of a query those of the one so many queries outwards.
fn outwards(expr: &mut Expr, level: u16) {
    match *expr {
        Expr::Column { table, position } => {
            *expr = Expr::Outer {
                level,
                table,
                position,
            };
        }
        _ => expr.children_mut(&mut |child| outwards(child, level)),
    }
}

impl ScopeTable {
    /// A table of the catalog.
    pub fn of(relation: &Arc<Relation>, alias: Option<String>) -> Result<Self> {
        if let Kind::System(definition) = &relation.kind {
            return Ok(Self::of_system(relation, definition, alias));
        }
        let Some(table) = relation.table() else {
            let message = format!("\"{}\" is not a table", relation.name);
            return Err(SqlError::new(sqlstate::WRONG_OBJECT_TYPE, message));
        };
        let columns = table.schema.columns();
        Ok(Self {
            own: alias.is_none().then_some(relation.oid),
            name: alias.unwrap_or_else(|| relation.name.to_string()),
            qualified_only: false,
            is_value: false,
            may_miss: false,
            columns: columns
                .map(|column| ScopeColumn {
                    name: column.name.to_string(),
                    ty: column.ty,
                    typmod: column.typmod,
                    number: column.id.0 as i16,
                    domain: table.domain_of(column.id),
                    collation: table.collation_of(column.id),
                })
                .collect(),
            relation: Some(relation.clone()),
        })
    }
}

impl ScopeTable {
    fn of_system(relation: &Arc<Relation>, definition: &Definition, alias: Option<String>) -> Self {
        let columns = (1..).zip(&definition.columns);
        Self {
            own: alias.is_none().then_some(relation.oid),
            name: alias.unwrap_or_else(|| relation.name.to_string()),
            qualified_only: false,
            is_value: false,
            may_miss: false,
            columns: columns
                .map(|(number, column)| ScopeColumn {
                    name: column.name.to_owned(),
                    ty: column.ty,
                    typmod: Typmod::NONE,
                    number,
                    domain: None,
                    collation: None,
                })
                .collect(),
            relation: Some(relation.clone()),
        }
    }
}

impl Scope {
    /// Adds a table.
    ///
    /// # Errors
    /// `42712` for a name that is taken, `54000` for one table too many.
    pub fn add(&mut self, table: ScopeTable) -> Result<u16> {
        SqlError::check_room(self.tables.len(), COMPARED_MAX, "tables")?;
        self.check_name(&table.name, table.own, self.tables.len() as u16)?;
        self.tables.push(table);
        Ok((self.tables.len() - 1) as u16)
    }

    /// That a name is none of a table or a join before number `to`. Two relations under their own names may be called the same: their schemas tell them apart.
    ///
    /// # Errors
    /// `42712`.
    pub fn check_name(&self, name: &str, own: Option<Oid>, to: u16) -> Result<()> {
        let is_apart =
            |other: Named<'_>| own.is_some() && other.own().is_some() && other.own() != own;
        let mut others = self.with_names(self.apart);
        if others.any(|other| other.begin() < to && other.name() == Some(name) && !is_apart(other))
        {
            let message = format!("table name \"{name}\" specified more than once");
            return Err(SqlError::new(sqlstate::DUPLICATE_ALIAS, message));
        }
        Ok(())
    }

    /// What names of tables stand for, from one on: tables, and joins with names in place of the tables in them; then what USING has merged.
    fn with_names(&self, from: u16) -> impl Iterator<Item = Named<'_>> {
        let is_within = |own: &Joined, around: &Joined| {
            around.name.is_some() && around.from <= own.from && own.to <= around.to
        };
        let together = self.together.iter().filter(move |own| {
            let mut joined = self.joined.iter();
            own.from >= from && !joined.any(|around| is_within(own, around))
        });
        self.parts(from, |joined| joined.name.is_some())
            .chain(together.map(Named::Joined))
    }

    /// The tables that have names here.
    pub fn named_tables(&self) -> impl Iterator<Item = (u16, &ScopeTable)> {
        let named = self.with_names(self.closed);
        named.filter_map(|named| match named {
            Named::Table(number, table) => Some((number, table)),
            Named::Joined(_) => None,
        })
    }

    /// The table or the join of a name.
    ///
    /// # Errors
    /// `42P09` for a name of several.
    pub fn named(&self, name: TableName<'_>) -> Result<Option<Named<'_>>> {
        let all = self.with_names(self.closed);
        let mut all = all.filter(|named| name.is_of(*named));
        match (all.next(), all.next()) {
            (Some(_), Some(_)) => {
                let message = format!("table reference \"{}\" is ambiguous", name.name());
                Err(SqlError::new(sqlstate::AMBIGUOUS_ALIAS, message))
            }
            (found, _) => Ok(found),
        }
    }

    /// Whether a name is that of a join.
    pub fn joined_as(&self, name: &str) -> bool {
        let mut joined = self.joined.iter().chain(&self.together);
        joined.any(|joined| joined.name.as_deref() == Some(name))
    }

    /// What `*` stands for: joins, and tables that are in none, from one on.
    pub fn with_columns(&self, from: u16) -> impl Iterator<Item = Named<'_>> {
        self.parts(from, |_| true)
    }

    /// Joins of a kind, the outermost ones, and tables that are in none of them.
    fn parts(&self, from: u16, kind: impl Fn(&Joined) -> bool) -> impl Iterator<Item = Named<'_>> {
        let mut number = from;
        std::iter::from_fn(move || {
            let table = self.tables.get(usize::from(number))?;
            // Those inside stand before those around them.
            let mut joined = self.joined.iter().rev();
            let found = joined.find(|joined| joined.from == number && kind(joined));
            let own = number;
            number = found.map_or(number + 1, |joined| joined.to);
            Some(found.map_or(Named::Table(own, table), Named::Joined))
        })
    }

    /// The column of a name, of one table if it is qualified.
    ///
    /// # Errors
    /// `42703`, `42702`, `42P01`, `42P09`; `42P10` for one that LATERAL must not read.
    pub fn column(&self, table: Option<TableName<'_>>, name: &str) -> Result<Found> {
        let mut found = None;
        let mut known = false;
        let mut look = |named: Named<'_>| {
            known = true;
            for column in named.columns_named(name) {
                if found.is_some() {
                    let message = format!("column reference \"{name}\" is ambiguous");
                    return Err(SqlError::new(sqlstate::AMBIGUOUS_COLUMN, message));
                }
                self.check_barred(named)?;
                found = Some(column);
            }
            Ok(())
        };
        match table {
            Some(table) => self.named(table)?.map_or(Ok(()), &mut look)?,
            None => self
                .with_columns(self.closed)
                .filter(|named| !named.is_qualified_only())
                .try_for_each(&mut look)?,
        }
        found.ok_or_else(|| match table {
            Some(table) if !known => self.no_table(table.name()),
            Some(table) => {
                let message = format!("column {}.{name} does not exist", table.name());
                SqlError::new(sqlstate::UNDEFINED_COLUMN, message)
            }
            None => self.no_column(name),
        })
    }

    /// That a table may be read.
    ///
    /// # Errors
    /// `42P10` for one that LATERAL must not read.
    pub fn check_barred(&self, named: Named<'_>) -> Result<()> {
        let begin = named.begin();
        match self.barred.iter().any(|tables| tables.contains(&begin)) {
            true => Err(barred(named.name().unwrap_or("unnamed_join"))),
            false => Ok(()),
        }
    }

    /// `42P01`; what else may have been meant.
    #[cold]
    pub fn no_table(&self, name: &str) -> SqlError {
        let entry = |hint: String| {
            let message = format!("invalid reference to FROM-clause entry for table \"{name}\"");
            SqlError::new(sqlstate::UNDEFINED_TABLE, message).with_hint(hint)
        };
        let of_relation = |table: &&ScopeTable| {
            let relation = table.relation.as_ref();
            table.name == name || relation.is_some_and(|relation| *relation.name == *name)
        };
        let joined = self
            .joined
            .iter()
            .any(|joined| joined.name.as_deref() == Some(name));
        let table = self.tables.iter().find(of_relation);
        let has_name = |name: &str| matches!(self.named(TableName::Plain(name)), Ok(Some(_)));
        match table {
            Some(table) if table.name != name && has_name(&table.name) => entry(format!(
                "Perhaps you meant to reference the table alias \"{}\".",
                table.name
            )),
            None if !joined => {
                let message = format!("missing FROM-clause entry for table \"{name}\"");
                SqlError::new(sqlstate::UNDEFINED_TABLE, message)
            }
            found => entry(format!(
                "There is an entry for table \"{}\", but it cannot be referenced from this part of the query.",
                found.map_or(name, |table| &table.name)
            )),
        }
    }

    /// `42703`; a table that has the column where it has no name.
    #[cold]
    fn no_column(&self, name: &str) -> SqlError {
        let message = format!("column \"{name}\" does not exist");
        let error = SqlError::new(sqlstate::UNDEFINED_COLUMN, message);
        let has = |table: &&ScopeTable| table.columns.iter().any(|column| column.name == name);
        let tables = self.tables.iter().filter(|table| !table.qualified_only);
        let mut tables = tables.filter(has);
        match (tables.next(), tables.next()) {
            (Some(table), None) => error.with_hint(format!(
                "There is a column named \"{name}\" in table \"{}\", but it cannot be referenced from this part of the query.",
                table.name
            )),
            _ => error,
        }
    }
}

/// `42P10`.
#[cold]
fn barred(table: &str) -> SqlError {
    let message = format!("invalid reference to FROM-clause entry for table \"{table}\"");
    SqlError::new(sqlstate::INVALID_COLUMN_REFERENCE, message)
        .with_detail("The combining JOIN type must be INNER or LEFT for a LATERAL reference.")
}

impl<'s> Named<'s> {
    /// The first table in it.
    fn begin(self) -> u16 {
        match self {
            Self::Joined(joined) => joined.from,
            Self::Table(number, _) => number,
        }
    }

    /// What it is called.
    pub fn name(self) -> Option<&'s str> {
        match self {
            Self::Joined(joined) => joined.name.as_deref(),
            Self::Table(_, table) => Some(&table.name),
        }
    }

    /// The relation whose name it has in the catalog.
    pub fn own(self) -> Option<Oid> {
        match self {
            Self::Joined(joined) => joined.own,
            Self::Table(_, table) => table.own,
        }
    }

    /// Whether its columns are not found by their names alone.
    pub fn is_qualified_only(self) -> bool {
        match self {
            Self::Table(_, table) => table.qualified_only,
            Self::Joined(joined) => joined.qualified_only,
        }
    }

    /// Its columns, as `*` has them.
    pub fn columns(self) -> Vec<JoinedColumn> {
        match self {
            Self::Joined(joined) => joined.columns.clone(),
            Self::Table(number, table) => {
                let columns = (0u16..).zip(&table.columns);
                let columns = columns.map(|(position, column)| column.as_joined(number, position));
                columns.collect()
            }
        }
    }

    fn columns_named(self, name: &str) -> Vec<Found> {
        match self {
            Self::Joined(joined) => {
                let columns = joined.columns.iter().filter(|column| column.name == name);
                let found = columns.map(|column| Found {
                    expr: column.expr.clone(),
                    ty: column.ty,
                    typmod: column.typmod,
                });
                found.collect()
            }
            Self::Table(table, own) => {
                let columns = (0u16..).zip(&own.columns);
                let columns = columns.filter(|(_, column)| column.name == name);
                let found = columns.map(|(position, column)| Found {
                    expr: Expr::Column { table, position },
                    ty: column.ty,
                    typmod: column.typmod,
                });
                found.collect()
            }
        }
    }
}

impl ScopeColumn {
    fn as_joined(&self, table: u16, position: u16) -> JoinedColumn {
        JoinedColumn {
            name: self.name.clone(),
            expr: Expr::Column { table, position },
            ty: self.ty,
            typmod: self.typmod,
        }
    }
}
