//! What names of columns may stand for.

use super::COMPARED_MAX;
use crate::catalog::{Kind, Relation};
use crate::error::{Result, SqlError};
use crate::expr::Expr;
use crate::sqlstate;
use crate::system::Definition;
use std::sync::Arc;
use vellum_row::{Type, Typmod};

/// The tables of a FROM, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scope {
    pub tables: Vec<ScopeTable>,
    /// What `*` is of tables that USING or NATURAL has joined.
    pub joined: Vec<Joined>,
    /// Tables before this one have no names where ON and USING of another item of FROM stand.
    pub closed: u16,
}

/// Tables that are joined: the columns that they have together come first.
#[derive(Clone, Debug)]
pub(crate) struct Joined {
    pub from: u16,
    /// The first table behind them.
    pub to: u16,
    /// Tables and positions.
    pub columns: Vec<(u16, u16)>,
}

/// A table of a FROM.
#[derive(Clone, Debug)]
pub(crate) struct ScopeTable {
    pub name: String,
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
    /// Left out of `*`: joined by USING before.
    pub hidden: bool,
    /// Without a table's name it stands for itself, or where it is null for the first of these that is not: FULL JOIN with USING.
    pub others: Vec<(u16, u16)>,
}

/// What a query around another one sees, while that is bound.
#[derive(Clone, Debug, Default)]
pub(crate) struct OuterScope {
    pub scope: Scope,
    /// Whether the query inside reads columns of this one or of one around it.
    pub read: bool,
}

/// A column that was found.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub table: u16,
    pub position: u16,
    /// What stands for it where it is null.
    pub others: Vec<(u16, u16)>,
    pub ty: Type,
    pub typmod: Typmod,
}

impl Found {
    /// The column, of a query `level` queries outwards.
    pub fn expr(self, level: u16) -> Result<Expr> {
        let one = |(table, position)| match level {
            0 => Expr::Column { table, position },
            level => Expr::Outer {
                level,
                table,
                position,
            },
        };
        let first = one((self.table, self.position));
        if self.others.is_empty() {
            return Ok(first);
        }
        let others = self.others.into_iter().map(one);
        Ok(Expr::Coalesce([first].into_iter().chain(others).collect()))
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
                    hidden: false,
                    others: Vec::new(),
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
                    hidden: false,
                    others: Vec::new(),
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
        if self.tables.iter().any(|other| other.name == table.name) {
            let message = format!("table name \"{}\" specified more than once", table.name);
            return Err(SqlError::new(sqlstate::DUPLICATE_ALIAS, message));
        }
        self.tables.push(table);
        Ok((self.tables.len() - 1) as u16)
    }

    /// The column of a name, of one table if it is qualified.
    ///
    /// # Errors
    /// `42703`, `42702`, `42P01`.
    pub fn column(&self, table: Option<&str>, name: &str) -> Result<Found> {
        let mut found = None;
        let mut known = false;
        let open = usize::from(self.closed);
        for (number, candidate) in (0u16..).zip(&self.tables).skip(open) {
            match table {
                Some(table) if candidate.name != table => continue,
                None if candidate.qualified_only => continue,
                _ => known = true,
            }
            for (position, column) in (0u16..).zip(&candidate.columns) {
                if column.name != name || (column.hidden && table.is_none()) {
                    continue;
                }
                if found.is_some() {
                    let message = format!("column reference \"{name}\" is ambiguous");
                    return Err(SqlError::new(sqlstate::AMBIGUOUS_COLUMN, message));
                }
                found = Some(Found {
                    table: number,
                    position,
                    others: match table {
                        None => column.others.clone(),
                        Some(_) => Vec::new(),
                    },
                    ty: column.ty,
                    typmod: column.typmod,
                });
            }
        }
        found.ok_or_else(|| match table {
            Some(table) if !known => {
                let message = format!("missing FROM-clause entry for table \"{table}\"");
                SqlError::new(sqlstate::UNDEFINED_TABLE, message)
            }
            Some(table) => {
                let message = format!("column {table}.{name} does not exist");
                SqlError::new(sqlstate::UNDEFINED_COLUMN, message)
            }
            None => {
                let message = format!("column \"{name}\" does not exist");
                SqlError::new(sqlstate::UNDEFINED_COLUMN, message)
            }
        })
    }
}
