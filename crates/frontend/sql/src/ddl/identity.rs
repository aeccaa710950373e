//! Identities of columns: GENERATED … AS IDENTITY when a column is made, and ALTER COLUMN ADD GENERATED, SET GENERATED, DROP IDENTITY.

use super::Ddl;
use super::dependency::Object;
use super::made_names::MadeName;
use super::sequence::{definition, redundant};
use crate::catalog::{Change, Default, Identity, Kind, Oid, Relation};
use crate::error::{Fields, Result, SqlError};
use crate::parse::Clause;
use crate::plan::column_position;
use crate::sqlstate;
use sqlparser::ast::{self, Ident, ObjectNamePart};
use std::sync::Arc;
use vellum_row::{Column, ColumnId, Type};

/// Where a column is: its table (oid, name, schema) and its number.
pub(super) type Place<'p> = ((Oid, &'p str, Oid), ColumnId);

/// The parts of a name.
pub(super) fn idents(name: &ast::ObjectName) -> Vec<Ident> {
    let parts = name.0.iter().filter_map(|part| match part {
        ObjectNamePart::Identifier(ident) => Some(ident.clone()),
        ObjectNamePart::Function(_) => None,
    });
    parts.collect()
}

fn kind(always: bool) -> Identity {
    match always {
        true => Identity::Always,
        false => Identity::ByDefault,
    }
}

impl Ddl<'_> {
    /// The sequence of a serial or identity column; returns its name as SQL.
    ///
    /// # Errors
    /// `22023` for another type than an integer, and of the options; `42P07` for a name that is given and taken.
    pub(super) fn sequence_of(
        &mut self,
        (table, id): Place<'_>,
        column: &str,
        ty: Type,
        clauses: &[Clause],
    ) -> Result<String> {
        if !ty.is_integer() {
            return Err(not_integer());
        }
        let mut named = None;
        for clause in clauses {
            match clause {
                Clause::Name(name) if named.replace(name).is_some() => return Err(redundant()),
                // Type and owner are the column's.
                Clause::As(_) => return Err(redundant()),
                Clause::OwnedBy(_) => {
                    return Err(SqlError::unsupported("OWNED BY of an identity"));
                }
                _ => {}
            }
        }
        let (namespace, name) = match named.map(Vec::as_slice) {
            None => {
                let made = MadeName {
                    table: table.1,
                    columns: column,
                    label: "seq",
                };
                (table.2, self.free_name(table.2, made))
            }
            Some([name]) => (table.2, crate::bind::folded(name)),
            Some(name) => self.new_name(&ast::ObjectName::from(name.to_vec()), false)?,
        };
        self.is_taken(namespace, &name, false)?;
        let mut definition = definition(ty, clauses)?;
        definition.owner = (table.0, id.0);
        self.put_sequence(namespace, &name, definition)?;
        let schema = crate::names::quoted(self.open.catalog.1.namespace_name(namespace));
        let name = format!("{schema}.{}", crate::names::quoted(&name));
        Ok(crate::names::literal(&name))
    }

    /// An identity of a column, by what GENERATED says.
    ///
    /// # Errors
    /// As [`Self::sequence_of`].
    pub(super) fn new_identity(
        &mut self,
        place: Place<'_>,
        column: &str,
        ty: Type,
        clauses: &[Clause],
    ) -> Result<Default> {
        let Some((Clause::Identity(always), options)) = clauses.split_first() else {
            return Err(SqlError::internal("an identity without a kind"));
        };
        self.sequence_of(place, column, ty, options)?;
        let sequence = self.last_made()?;
        let kind = kind(*always);
        Ok(Default::Identity { kind, sequence })
    }

    /// What ALTER COLUMN says of the identity of a column.
    ///
    /// # Errors
    /// `42703`; `55000` for a column that has none, or that cannot have one; those of the sequence's options; `2BP01` for one whose sequence something else reads.
    pub(super) fn alter_identity(
        &mut self,
        relation: &Arc<Relation>,
        name: &Ident,
        clauses: &[Clause],
    ) -> Result<Arc<Relation>> {
        let position = column_position(relation, &crate::bind::folded(name))?;
        let table = relation
            .table()
            .ok_or_else(|| SqlError::internal("no table"))?;
        let column = table.schema.column(position).clone();
        let known = match table.default_of(column.id) {
            Some(Default::Identity { kind, sequence }) => Some((*kind, *sequence)),
            _ => None,
        };
        match (clauses, known) {
            // Nothing follows from them: values are stored as they fit, and ANALYZE looks at as many rows as it does.
            ([Clause::Statistics], _) => Ok(relation.clone()),
            ([Clause::Storage(kind)], _) => {
                let kind = crate::bind::folded(kind);
                if !matches!(&*kind, "plain" | "external" | "extended" | "main") {
                    let message = format!("invalid storage type \"{kind}\"");
                    return Err(SqlError::new(sqlstate::INVALID_PARAMETER_VALUE, message));
                }
                Ok(relation.clone())
            }
            ([Clause::Identity(_), ..], _) => self.add_identity(relation, &column, clauses),
            ([Clause::DropIdentity(true)], None) => {
                let message = format!("{}, skipping", no_identity(relation, &column));
                self.notices.push(Fields::notice(message));
                Ok(relation.clone())
            }
            (_, None) => Err(not_ready(no_identity(relation, &column))),
            ([Clause::DropIdentity(_)], Some((_, sequence))) => {
                let mut next = table.clone();
                let found = self.open.catalog.1.relation(sequence).cloned();
                let found = found.ok_or_else(|| SqlError::internal("no sequence"))?;
                let sequence = self.alone(&found)?;
                self.let_go(&[Object::Relation(sequence.clone())], false, None)?;
                next.defaults.retain(|(id, _)| *id != column.id);
                let next = self.put_table(relation, next)?;
                self.discard(&sequence)?;
                Ok(next)
            }
            (_, Some((_, sequence))) => self.set_identity(relation, &column, sequence, clauses),
        }
    }

    fn add_identity(
        &mut self,
        relation: &Arc<Relation>,
        column: &Column,
        clauses: &[Clause],
    ) -> Result<Arc<Relation>> {
        let table = relation
            .table()
            .ok_or_else(|| SqlError::internal("no table"))?;
        if table.domain_of(column.id).is_some() {
            return Err(not_integer());
        }
        let place = (relation.oid, &*relation.name, relation.namespace);
        let default = self.new_identity((place, column.id), &column.name, column.ty, clauses)?;
        self.give_sequence(&default, relation)?;
        let shown = format!(
            "column \"{}\" of relation \"{}\"",
            column.name, relation.name
        );
        let refused = match table.default_of(column.id) {
            _ if column.nullable => Some("must be declared NOT NULL before identity can be added"),
            None => None,
            Some(Default::Identity { .. }) => Some("is already an identity column"),
            Some(_) => Some("already has a default value"),
        };
        if let Some(refused) = refused {
            return Err(not_ready(format!("{shown} {refused}")));
        }
        let mut next = table.clone();
        next.defaults.push((column.id, default));
        self.put_table(relation, next)
    }

    /// A sequence belongs to whom its table belongs to, whoever has made it.
    fn give_sequence(&mut self, default: &Default, table: &Relation) -> Result<()> {
        let Default::Identity { sequence, .. } = default else {
            return Ok(());
        };
        let found = self.open.catalog.1.relation(*sequence).cloned();
        let Some(sequence) = found.filter(|found| found.owner != table.owner) else {
            return Ok(());
        };
        let next = Relation {
            owner: table.owner,
            ..Relation::clone(&sequence)
        };
        self.change(Change::PutRelation(Arc::new(next)))
    }

    fn set_identity(
        &mut self,
        relation: &Arc<Relation>,
        column: &Column,
        sequence: Oid,
        clauses: &[Clause],
    ) -> Result<Arc<Relation>> {
        let mut always = None;
        let mut options = Vec::new();
        for clause in clauses {
            match clause {
                Clause::Generated(given) => {
                    if always.replace(*given).is_some() {
                        return Err(redundant());
                    }
                }
                other => options.push(other.clone()),
            }
        }
        if !options.is_empty() {
            let found = self.open.catalog.1.relation(sequence).cloned();
            let found = found.ok_or_else(|| SqlError::internal("no sequence"))?;
            let found = self.alone(&found)?;
            if let Kind::Sequence(before) = found.kind {
                self.change_sequence(&found, &before, &options, true)?;
            }
        }
        let Some(always) = always else {
            return Ok(relation.clone());
        };
        let table = relation
            .table()
            .ok_or_else(|| SqlError::internal("no table"))?;
        let mut next = table.clone();
        for (id, default) in &mut next.defaults {
            if let Default::Identity { kind: own, .. } = default
                && *id == column.id
            {
                *own = kind(always);
            }
        }
        self.put_table(relation, next)
    }
}

fn no_identity(relation: &Relation, column: &Column) -> String {
    format!(
        "column \"{}\" of relation \"{}\" is not an identity column",
        column.name, relation.name
    )
}

/// `55000`.
#[cold]
fn not_ready(message: String) -> SqlError {
    SqlError::new(sqlstate::OBJECT_NOT_IN_PREREQUISITE_STATE, message)
}

/// `22023` for a column of another type, which a domain over one of these is.
#[cold]
pub(super) fn not_integer() -> SqlError {
    let text = "identity column type must be smallint, integer, or bigint";
    SqlError::new(sqlstate::INVALID_PARAMETER_VALUE, text)
}
