//! ALTER SEQUENCE; the columns that sequences go with.

use super::readers::{Reader, with_names};
use super::sequence::{altered, check_value, redundant};
use super::{Ddl, not_for};
use crate::bind::folded;
use crate::catalog::{
    Change, Default, Kind, Oid, Relation, SequenceDefinition, sequence_state, settle,
};
use crate::error::{Result, SqlError};
use crate::names::quoted;
use crate::parse::Clause;
use crate::sqlstate;
use crate::wire::CommandTag;
use sqlparser::ast::{self, AlterTableOperation as Operation, Ident};
use std::sync::Arc;
use vellum_row::ColumnId;

impl Ddl<'_> {
    /// Runs an ALTER SEQUENCE that says `clauses`, or else what stands behind.
    ///
    /// # Errors
    /// `42P01`; `42809` for what is no sequence; `42501` for who does not own it; `22023` for what cannot be; `42601`; `0A000` for what goes with a
    /// column and is to go elsewhere.
    pub(super) fn alter_sequence(
        &mut self,
        alter: &ast::AlterTable,
        clauses: &[Clause],
    ) -> Result<CommandTag> {
        let tag = CommandTag::plain("ALTER SEQUENCE");
        if alter.if_exists && self.binder().named(&alter.name)?.is_none() {
            self.skip_missing(&alter.name)?;
            return Ok(tag);
        }
        let relation = self.table_alone(&alter.name, Self::check_owner)?;
        let Kind::Sequence(definition) = relation.kind else {
            let message = format!("\"{}\" is not a sequence", relation.name);
            return Err(SqlError::new(sqlstate::WRONG_OBJECT_TYPE, message));
        };
        match (alter.operations.get(1), clauses) {
            (Some(operation), _) => self.rename_or_give(&relation, operation)?,
            (None, [Clause::Schema(schema)]) => self.move_sequence(&relation, schema)?,
            (None, _) => self.change_sequence(&relation, &definition, clauses, false)?,
        }
        Ok(tag)
    }

    /// RENAME TO and OWNER TO of a sequence or view, which ALTER TABLE does, too.
    ///
    /// # Errors
    /// `42P07`; those of OWNER TO; `42809` for what only tables have.
    pub(super) fn rename_or_give(
        &mut self,
        relation: &Arc<Relation>,
        operation: &Operation,
    ) -> Result<()> {
        match operation {
            Operation::OwnerTo { new_owner } => {
                let owned = self.table_of(relation);
                let given = self.give_to(relation, new_owner)?;
                match owned.filter(|_| given.owner != relation.owner) {
                    None => Ok(()),
                    Some(table) => {
                        let message =
                            format!("cannot change owner of sequence \"{}\"", relation.name);
                        Err(linked(message, relation, &table))
                    }
                }
            }
            Operation::RenameTable { table_name } => {
                self.rename_relation(relation, table_name).map(drop)
            }
            other => {
                let message = format!(
                    "ALTER action {} cannot be performed on relation \"{}\"",
                    other
                        .to_string()
                        .split(' ')
                        .take(2)
                        .collect::<Vec<_>>()
                        .join(" "),
                    relation.name
                );
                Err(not_for(message, &relation.kind))
            }
        }
    }

    pub(super) fn move_sequence(&mut self, relation: &Arc<Relation>, schema: &Ident) -> Result<()> {
        if let Some(table) = self.table_of(relation) {
            let message = "cannot move an owned sequence into another schema".to_owned();
            return Err(linked(message, relation, &table));
        }
        match self.new_schema(relation, schema)? {
            None => Ok(()),
            Some(namespace) => self
                .put_named(relation, namespace, &relation.name)
                .map(drop),
        }
    }

    /// Puts a relation under another name, also where defaults call it so.
    pub(super) fn put_named(
        &mut self,
        relation: &Arc<Relation>,
        namespace: Oid,
        name: &str,
    ) -> Result<Arc<Relation>> {
        let schema = self.open.catalog.1.namespace_name(namespace);
        let called = format!("{}.{}", quoted(schema), quoted(name));
        let mut texts: Vec<(Reader, String)> = Vec::new();
        let renamed = |sql: &str| {
            with_names(sql, |name| {
                let own = self.sequence_named(name) == Some(relation.oid);
                Ok(own.then(|| called.clone()))
            })
        };
        for (table, column) in self.readers(relation.oid)? {
            if let Some(Default::Expression(sql)) = table.default_of(column.0).as_deref() {
                let sql = renamed(sql)?;
                texts.push(((table, column), sql));
            }
        }
        let mut domains = Vec::new();
        for domain in self.domains_reading(relation.oid) {
            if let Kind::Domain(own) = &domain.kind
                && let Some(sql) = &own.default
            {
                let sql = renamed(sql)?;
                domains.push((domain, sql));
            }
        }
        let next = Arc::new(Relation {
            namespace,
            name: name.into(),
            generation: relation.generation + 1,
            ..Relation::clone(relation)
        });
        let views = self.views_with_columns(relation)?;
        self.change(Change::PutRelation(next.clone()))?;
        for ((table, column), sql) in texts {
            self.change_default(&table, column, Some(sql))?;
        }
        for (domain, sql) in domains {
            self.change_domain(&domain, |own| own.default = Some(sql.into()))?;
        }
        self.keep_views_of(relation, views, &next)?;
        // Its own defaults may have called it so.
        let now = self.open.catalog.1.relation(next.oid).cloned();
        Ok(now.unwrap_or(next))
    }

    /// Changes what is known of a sequence; of the sequence of an identity, as its column says.
    ///
    /// # Errors
    /// `22023`, `42601`, `0A000`.
    pub(super) fn change_sequence(
        &mut self,
        relation: &Arc<Relation>,
        before: &SequenceDefinition,
        clauses: &[Clause],
        for_identity: bool,
    ) -> Result<()> {
        let (mut ty, mut owner) = (None, None);
        for clause in clauses {
            match clause {
                Clause::As(data_type) => {
                    let given = self.binder().type_of(data_type)?.0;
                    if ty.replace(given).is_some() {
                        return Err(redundant());
                    }
                }
                Clause::OwnedBy(names) if owner.replace(names).is_some() => {
                    return Err(redundant());
                }
                Clause::Name(_) => {
                    return Err(SqlError::syntax("invalid sequence option SEQUENCE NAME"));
                }
                _ => {}
            }
        }
        let (mut definition, restart) = altered(Some(before), ty, clauses)?;
        self.put_changed(
            relation,
            before,
            &mut definition,
            restart,
            |ddl, definition| {
                let Some(names) = owner.filter(|_| !for_identity) else {
                    return Ok(());
                };
                definition.owner =
                    ddl.owning_column((relation.owner, relation.namespace), names)?;
                match ddl.identity_of(relation) {
                    None => Ok(()),
                    Some((table, _)) => {
                        let message = "cannot change ownership of identity sequence".to_owned();
                        Err(linked(message, relation, &table))
                    }
                }
            },
        )
    }

    /// Puts an altered sequence, if it can stand where it stands.
    fn put_changed(
        &mut self,
        relation: &Arc<Relation>,
        before: &SequenceDefinition,
        definition: &mut SequenceDefinition,
        restart: Option<i64>,
        last: impl FnOnce(&mut Self, &mut SequenceDefinition) -> Result<()>,
    ) -> Result<()> {
        let engine = &self.shared.engine;
        let stands = match restart {
            Some(value) => value,
            None => sequence_state(engine, before, &relation.runtime)?.last,
        };
        check_value(stands, definition)?;
        last(self, definition)?;
        match restart {
            Some(value) => definition.begin = value,
            None => {
                let look = || self.waiting.look_cancelled();
                settle((engine, &look), &relation.runtime, before)?;
            }
        }
        self.put_altered(relation, *definition, restart.is_some())
    }

    /// The sequence of an identity is one of the type that its column is given.
    ///
    /// # Errors
    /// `22023` where it stands at a value that the type has not.
    pub(super) fn retype_sequence(&mut self, oid: Oid, ty: vellum_row::Type) -> Result<()> {
        let Some(relation) = self.open.catalog.1.relation(oid).cloned() else {
            return Ok(());
        };
        let relation = self.alone(&relation)?;
        let Kind::Sequence(before) = relation.kind else {
            return Ok(());
        };
        let (mut definition, _) = altered(Some(&before), Some(ty), &[])?;
        self.put_changed(&relation, &before, &mut definition, None, |_, _| Ok(()))
    }

    /// The column that OWNED BY names, for a sequence of this role and schema; zeros for NONE.
    ///
    /// # Errors
    /// `42601`; `42P01`, `42703`; `42809` for no table; `55000` for one of another owner or schema.
    pub(super) fn owning_column(
        &self,
        (owner, namespace): (Oid, Oid),
        names: &[Ident],
    ) -> Result<(Oid, u16)> {
        let (column, table) = match names {
            [none] if folded(none) == "none" => return Ok((0, 0)),
            [] | [_] => {
                return Err(SqlError::syntax("invalid OWNED BY option")
                    .with_hint("Specify OWNED BY table.column or OWNED BY NONE."));
            }
            [table @ .., column] => (column, table),
        };
        let table = self
            .binder()
            .relation(&ast::ObjectName::from(table.to_vec()))
            .map_err(SqlError::without_place)?;
        let Some(definition) = table.table() else {
            let message = format!("sequence cannot be owned by relation \"{}\"", table.name);
            return Err(not_for(message, &table.kind));
        };
        let state = sqlstate::OBJECT_NOT_IN_PREREQUISITE_STATE;
        if table.owner != owner {
            let text = "sequence must have same owner as table it is linked to";
            return Err(SqlError::new(state, text));
        }
        if table.namespace != namespace {
            let text = "sequence must be in same schema as table it is linked to";
            return Err(SqlError::new(state, text));
        }
        let position = crate::plan::column_position(&table, &folded(column))?;
        Ok((table.oid, definition.schema.column(position).id.0))
    }

    /// The table of the column that a sequence goes with.
    fn table_of(&self, sequence: &Relation) -> Option<Arc<Relation>> {
        match &sequence.kind {
            Kind::Sequence(definition) => self.open.catalog.1.relation(definition.owner.0).cloned(),
            _ => None,
        }
    }

    /// The column whose identity a sequence is, and its table.
    pub(super) fn identity_of(&self, sequence: &Relation) -> Option<(Arc<Relation>, ColumnId)> {
        let owner = self.table_of(sequence)?;
        let table = owner.table()?;
        let own = |default: &Default| matches!(default, Default::Identity { sequence: oid, .. } if *oid == sequence.oid);
        let column = table.defaults.iter().find(|(_, default)| own(default))?.0;
        Some((owner, column))
    }
}

/// `0A000` for a sequence that goes with a column.
#[cold]
fn linked(message: String, sequence: &Relation, table: &Relation) -> SqlError {
    let detail = format!(
        "Sequence \"{}\" is linked to table \"{}\".",
        sequence.name, table.name
    );
    SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, message).with_detail(detail)
}
