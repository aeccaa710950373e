//! PRIMARY KEY and UNIQUE.

use super::Ddl;
use super::deferral::timing_of;
use super::made_names::MadeName;
use super::parameters::{self, Of, Said};
use super::table::Later;
use crate::bind::folded;
use crate::catalog::{Index, IndexColumn, Kind, Marks, Method, Relation, Timing};
use crate::error::{Result, SqlError};
use crate::parse::KeyTail;
use crate::plan::apart;
use crate::sqlstate;
use sqlparser::ast::{self, TableConstraint};
use std::sync::Arc;
use vellum_row::Schema;

/// A key that is to be made.
#[derive(Default)]
pub(super) struct NewKey {
    pub name: Option<String>,
    pub columns: Vec<String>,
    /// What INCLUDE names.
    pub include: Vec<String>,
    pub primary: bool,
    pub nulls_distinct: bool,
    pub timing: Timing,
    /// What WITH says of its index.
    pub options: Vec<Said>,
}

impl NewKey {
    /// UNIQUE of one column.
    pub fn of_column(name: Option<String>, column: &str) -> Self {
        Self {
            name,
            columns: vec![column.to_owned()],
            nulls_distinct: true,
            ..Self::default()
        }
    }
}

impl Ddl<'_> {
    /// Adds a primary key or unique constraint, with its index filled from the rows that are there.
    pub(super) fn add_key(&mut self, relation: &mut Relation, key: NewKey) -> Result<()> {
        let NewKey {
            name,
            columns,
            include,
            primary,
            nulls_distinct,
            timing,
            options,
        } = key;
        let table = relation
            .table()
            .ok_or_else(|| SqlError::internal("no table"))?;
        super::check_index_columns(columns.len() + include.len())?;
        let position = |column: &String| {
            table.schema.position(column).ok_or_else(|| {
                let message = format!("column \"{column}\" named in key does not exist");
                SqlError::new(sqlstate::UNDEFINED_COLUMN, message)
            })
        };
        let mut positions = Vec::with_capacity(columns.len());
        for column in &columns {
            let position = position(column)?;
            if positions.contains(&position) {
                let word = if primary { "primary key" } else { "unique" };
                let message = format!("column \"{column}\" appears twice in {word} constraint");
                return Err(SqlError::new(sqlstate::DUPLICATE_COLUMN, message));
            }
            positions.push(position);
        }
        if primary && table.primary_key().is_some() {
            return Err(two_keys(&relation.name));
        }
        let included = include.iter().map(|column| {
            let position = position(column)?;
            Ok(table.schema.column(position).id)
        });
        let included = included.collect::<Result<Vec<_>>>()?;
        let options = parameters::changed(&[], options, Of::Index(Method::BTree))?;
        let joined = apart(columns.iter().cloned().chain(include)).join("_");
        let made = MadeName {
            table: &relation.name,
            columns: if primary { "" } else { &joined },
            label: if primary { "pkey" } else { "key" },
        };
        let name = match name {
            Some(name) => name,
            None => {
                let catalog = &self.open.catalog.1;
                made.free(|name| {
                    catalog.named(relation.namespace, name).is_some()
                        || table.indexes.iter().any(|index| *index.name == *name)
                })
            }
        };
        if self
            .open
            .catalog
            .1
            .named(relation.namespace, &name)
            .is_some()
        {
            return Err(super::taken(&name));
        }
        let columns = positions.iter();
        let columns =
            columns.map(|position| IndexColumn::ascending(table.schema.column(*position).id));
        let columns = columns.collect();
        let mut index = Index {
            oid: self.draw_oid()?,
            name: name.into(),
            storage: None,
            columns,
            include: included,
            predicate: None,
            unique: true,
            nulls_distinct,
            constraint: Some(self.draw_oid()?),
            primary,
            timing,
            method: Method::BTree,
            options,
            marks: Marks::default(),
        };
        let mut schema = Schema::clone(&table.schema);
        if primary {
            for position in &positions {
                schema = schema.set_nullable(*position, false);
            }
            if timing == Timing::Fixed {
                return self.cluster(relation, index, schema);
            }
        }
        index.storage = Some(self.index_storage(index.oid)?);
        let index = Arc::new(index);
        if let Kind::Table(table) = &mut relation.kind {
            table.schema = Arc::new(schema);
        }
        if primary {
            self.check_rows(relation)?;
        }
        if timing != Timing::Fixed {
            self.check_apart(relation, &index)?;
        }
        self.fill(relation, &index)?;
        if let Kind::Table(table) = &mut relation.kind {
            let at = if primary { 0 } else { table.indexes.len() };
            table.indexes.insert(at, index);
        }
        Ok(())
    }
}

/// Whether a unique constraint takes no null for like another.
pub(super) fn are_distinct(key: &ast::UniqueConstraint) -> bool {
    key.nulls_distinct != ast::NullsDistinctOption::NotDistinct
}

/// What a constraint of a table asks for.
///
/// # Errors
/// `0A000`.
pub(super) fn constraint_of(constraint: &TableConstraint) -> Result<Later> {
    match constraint {
        TableConstraint::PrimaryKey(key) => Ok(Later::Key(NewKey {
            primary: true,
            timing: timing_of(key.characteristics.as_ref())?,
            ..new_key(key.name.as_ref(), &key.columns)?
        })),
        TableConstraint::Unique(key) => Ok(Later::Key(NewKey {
            nulls_distinct: are_distinct(key),
            timing: timing_of(key.characteristics.as_ref())?,
            ..new_key(key.name.as_ref(), &key.columns)?
        })),
        TableConstraint::PrimaryKeyUsingIndex(_) | TableConstraint::UniqueUsingIndex(_) => {
            let text = "cannot use an existing index in CREATE TABLE";
            Err(SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, text))
        }
        TableConstraint::Check(check) => Ok(Later::Check {
            name: check.name.as_ref().map(folded),
            expr: check.expr.clone(),
            column: None,
        }),
        TableConstraint::ForeignKey(key) => Ok(Later::ForeignKey {
            key: Box::new(key.clone()),
            column: None,
        }),
        other => Err(SqlError::unsupported(format!("the constraint {other}"))),
    }
}

/// A key of columns, with what stands behind them.
fn new_key(name: Option<&ast::Ident>, columns: &[ast::IndexColumn]) -> Result<NewKey> {
    let KeyTail {
        columns,
        include,
        options,
    } = KeyTail::of(columns);
    let names = columns.iter().map(|column| match &column.column.expr {
        ast::Expr::Identifier(ident) => Ok(folded(ident)),
        other => Err(SqlError::unsupported(format!("{other} in a key"))),
    });
    Ok(NewKey {
        name: name.map(folded),
        columns: names.collect::<Result<_>>()?,
        include: include.iter().map(|name| folded(name)).collect(),
        nulls_distinct: true,
        options: options.into_iter().map(Said::of_item).collect(),
        ..NewKey::default()
    })
}

#[cold]
pub(super) fn two_keys(table: &str) -> SqlError {
    let message = format!("multiple primary keys for table \"{table}\" are not allowed");
    SqlError::new(sqlstate::INVALID_TABLE_DEFINITION, message)
}
