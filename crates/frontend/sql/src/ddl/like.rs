//! LIKE among the columns of CREATE TABLE: those of another relation, with what else is to be copied of it.

use super::Ddl;
use super::key::NewKey;
use super::made_names::MadeName;
use super::parameters::Said;
use super::table::Later;
use crate::catalog::{Change, Comment, Default, Kind, Oid, Relation, SequenceDefinition, Table};
use crate::error::{Result, SqlError};
use crate::parse::Like;
use crate::roles::Rights;
use crate::sqlstate;
use sqlparser::ast;
use std::sync::Arc;
use vellum_row::{Column, ColumnId};

/// What CREATE TABLE has come to.
#[derive(Default)]
pub(super) struct Made {
    pub columns: Vec<Column>,
    pub defaults: Vec<(ColumnId, Default)>,
    pub later: Vec<Later>,
    /// Columns of domains.
    pub domains: Vec<(ColumnId, Oid)>,
    /// Columns of another collation than their type's.
    pub collations: Vec<(ColumnId, Oid)>,
    /// Comments on columns, and on CHECK constraints by name.
    pub comments: Vec<(About, Arc<str>)>,
}

/// What a comment is about.
pub(super) enum About {
    Column(ColumnId),
    Check(Box<str>),
}

impl Made {
    /// The column that comes next.
    pub fn next_id(&self) -> ColumnId {
        // Their number is checked before there can be as many.
        ColumnId(u16::try_from(self.columns.len() + 1).unwrap_or(u16::MAX))
    }
}

impl Ddl<'_> {
    /// Copies what LIKE names.
    ///
    /// # Errors
    /// `42P01`, `42809` for a sequence, `42501` for who may not read it.
    pub(super) fn copy_definition(
        &mut self,
        like: &Like,
        place: (Oid, &str, Oid),
        made: &mut Made,
    ) -> Result<()> {
        let name = like
            .table
            .iter()
            .map(|part| ast::Ident::with_quote('"', part));
        let name = ast::ObjectName::from(name.collect::<Vec<_>>());
        self.check_place(&name)?;
        let relation = self.binder().relation(&name)?;
        if matches!(relation.kind, Kind::Sequence(_)) {
            let message = format!("relation \"{}\" is invalid in LIKE clause", relation.name);
            return Err(super::not_for(message, &relation.kind));
        }
        self.check_right(&relation, Rights::SELECT)?;
        match relation.table() {
            Some(table) => self.copy_table(like, &relation, table, place, made),
            None => {
                let query = crate::parse::statements(&format!("SELECT * FROM {name}"))?;
                let [ast::Statement::Query(query)] = query.as_slice() else {
                    return Err(SqlError::internal("no query"));
                };
                let (_, columns) = self.binder().query(query)?;
                super::check_table_columns(made.columns.len() + columns.len())?;
                for column in columns {
                    super::table::check_column_type(&column.name, column.ty)?;
                    let domain = column.domain.map(|domain| (made.next_id(), domain));
                    made.domains.extend(domain);
                    let collation = column.collation;
                    let collation = collation.map(|collation| (made.next_id(), collation));
                    made.collations.extend(collation);
                    let copy = Column::new(column.name, column.ty, column.typmod, true);
                    made.columns.push(copy);
                }
                Ok(())
            }
        }
    }

    fn copy_table(
        &mut self,
        like: &Like,
        relation: &Relation,
        table: &Table,
        place: (Oid, &str, Oid),
        made: &mut Made,
    ) -> Result<()> {
        super::check_table_columns(made.columns.len() + table.schema.len())?;
        let catalog = self.open.catalog.1.clone();
        let comments = like.includes("COMMENTS");
        for column in table.schema.columns() {
            let id = made.next_id();
            let domain = table.domain_of(column.id);
            made.domains.extend(domain.map(|domain| (id, domain)));
            let collation = table.collation_of(column.id);
            made.collations
                .extend(collation.map(|collation| (id, collation)));
            match table.default_of(column.id) {
                Some(default @ Default::Expression(_)) if like.includes("DEFAULTS") => {
                    made.defaults.push((id, default.clone()));
                }
                Some(Default::Identity { kind, sequence }) if like.includes("IDENTITY") => {
                    let numbers = catalog.relation(*sequence).map(|found| &found.kind);
                    let Some(Kind::Sequence(definition)) = numbers else {
                        return Err(SqlError::internal("no sequence"));
                    };
                    let owner = (place.0, id.0);
                    let definition = SequenceDefinition {
                        owner,
                        begin: definition.start,
                        ..*definition
                    };
                    let sequence_name = MadeName {
                        table: place.1,
                        columns: &column.name,
                        label: "seq",
                    };
                    let name = self.free_name(place.2, sequence_name);
                    self.put_sequence(place.2, &name, definition)?;
                    let sequence = self.last_made()?;
                    let kind = *kind;
                    made.defaults
                        .push((id, Default::Identity { kind, sequence }));
                }
                Some(default @ Default::Generated(_)) if like.includes("GENERATED") => {
                    made.defaults.push((id, default.clone()));
                }
                _ => {}
            }
            if let Some(text) = catalog
                .comment(relation.oid, column.id.0)
                .filter(|_| comments)
            {
                made.comments.push((About::Column(id), text.clone()));
            }
            let name = &*column.name;
            made.columns
                .push(Column::new(name, column.ty, column.typmod, column.nullable));
        }
        if like.includes("CONSTRAINTS") {
            for check in &table.checks {
                let named = |later: &Later| matches!(later, Later::Check { name: Some(name), .. } if **name == *check.name);
                if made.later.iter().any(named) {
                    let (name, table) = (&check.name, place.1);
                    let message = format!(
                        "check constraint \"{name}\" for relation \"{table}\" already exists"
                    );
                    return Err(SqlError::new(sqlstate::DUPLICATE_OBJECT, message));
                }
                made.later.push(Later::Check {
                    name: Some(check.name.to_string()),
                    expr: Box::new(crate::parse::expression(&check.expression)?),
                    column: None,
                });
                if let Some(text) = catalog.comment(check.oid, 0).filter(|_| comments) {
                    let about = About::Check(check.name.clone());
                    made.comments.push((about, text.clone()));
                }
            }
        }
        if like.includes("INDEXES") {
            for index in &table.indexes {
                let named = |id| {
                    let column = table.schema.column(table.position(id));
                    column.name.to_string()
                };
                made.later.push(match index.constraint {
                    Some(_) => Later::Key(NewKey {
                        name: None,
                        columns: index.key_columns().map(named).collect(),
                        include: index.include.iter().copied().map(named).collect(),
                        primary: index.primary,
                        nulls_distinct: index.nulls_distinct,
                        timing: index.timing,
                        options: index.options.iter().map(|own| Said::kept(own)).collect(),
                    }),
                    None => Later::Index {
                        like: index.clone(),
                        from: Box::new(table.clone()),
                    },
                });
            }
        }
        Ok(())
    }

    /// Says of the table that was made what was said of the other.
    ///
    /// # Errors
    /// Conflicts.
    pub(super) fn copy_comments(
        &mut self,
        table: Oid,
        comments: Vec<(About, Arc<str>)>,
    ) -> Result<()> {
        for (about, text) in comments {
            let (object, column) = match about {
                About::Column(id) => (table, id.0),
                About::Check(name) => {
                    let relation = self.open.catalog.1.relation(table);
                    let checks = relation.and_then(|relation| relation.table());
                    let mut checks = checks.map_or(&[][..], |table| &table.checks).iter();
                    let Some(check) = checks.find(|check| check.name == name) else {
                        continue;
                    };
                    (check.oid, 0)
                }
            };
            let text = Some(text);
            let comment = Comment {
                object,
                column,
                text,
            };
            self.change(Change::PutComment(comment))?;
        }
        Ok(())
    }
}
