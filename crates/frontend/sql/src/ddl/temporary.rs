//! Temporary relations: their schema, what ON COMMIT says.

use super::dependency::Object;
use super::{Ddl, taken};
use crate::bind::Variable;
use crate::catalog::{Catalog, Change, Mode, Namespace, Oid};
use crate::error::{Result, SqlError};
use crate::parse::NAME_ALONE;
use crate::plan::OutputColumn;
use crate::roles::Rights;
use crate::rows::{self, Shape};
use crate::session::AtCommit;
use crate::sqlstate;
use sqlparser::ast;
use std::sync::Arc;
use vellum_row::{Type, Value};

impl Ddl<'_> {
    /// The schema of the session's temporary relations, made when it is first asked for.
    pub(super) fn temporary_namespace(&mut self) -> Result<Oid> {
        let oid = match self.temporary.namespace {
            Some(oid) => oid,
            None => *self.temporary.namespace.insert(self.draw_oid()?),
        };
        if self.open.catalog.1.namespace_by_oid(oid).is_none() {
            let namespace = Namespace {
                oid,
                name: format!("{}{oid}", Catalog::TEMPORARY_PREFIX).into(),
                owner: crate::database::FIRST_ROLE_OID,
                acl: None,
            };
            self.change(Change::PutNamespace(Arc::new(namespace)))?;
        }
        // Names of this statement find what is made in it.
        if !self.search_path.contains(&oid) {
            self.search_path.insert(0, oid);
        }
        Ok(oid)
    }

    /// The schema of what is made under a name without schema, or with this one, if it is to be a temporary one; `None` if it is not.
    ///
    /// # Errors
    /// `42P16` where it cannot be.
    pub(super) fn temporary_for(
        &mut self,
        schema: Option<&str>,
        temporary: bool,
    ) -> Result<Option<Oid>> {
        let invalid = |text: &str| SqlError::new(sqlstate::INVALID_TABLE_DEFINITION, text);
        let own = match schema {
            None => temporary,
            Some(Catalog::TEMPORARY) => true,
            Some(name) => {
                let named = self.open.catalog.1.namespace(name).map(|found| found.oid);
                let own = named.is_some() && named == self.temporary.namespace;
                if !own && name.starts_with(Catalog::TEMPORARY_PREFIX) {
                    let text = "cannot create relations in temporary schemas of other sessions";
                    return Err(invalid(text));
                }
                if !own && temporary {
                    let text = "cannot create temporary relation in non-temporary schema";
                    return Err(invalid(text));
                }
                own
            }
        };
        if own
            && !self
                .roles()
                .allows_in_database(self.role, Rights::TEMPORARY)
        {
            let message = format!(
                "permission denied to create temporary tables in database \"{}\"",
                crate::database::DATABASE
            );
            return Err(super::role::denied(message));
        }
        own.then(|| self.temporary_namespace()).transpose()
    }

    /// Notes what commits are to do with a table.
    ///
    /// # Errors
    /// `42P16` for a table that is not temporary.
    pub(super) fn note_at_commit(
        &mut self,
        table: Oid,
        namespace: Oid,
        said: Option<&ast::OnCommit>,
    ) -> Result<()> {
        let Some(said) = said else {
            return Ok(());
        };
        if Some(namespace) != self.temporary.namespace {
            let text = "ON COMMIT can only be used on temporary tables";
            return Err(SqlError::new(sqlstate::INVALID_TABLE_DEFINITION, text));
        }
        let act = match said {
            ast::OnCommit::PreserveRows => return Ok(()),
            ast::OnCommit::DeleteRows => AtCommit::DeleteRows,
            ast::OnCommit::Drop => AtCommit::Drop,
        };
        self.temporary.at_commit.push((table, act));
        Ok(())
    }

    /// What ON COMMIT says, now that the transaction commits.
    ///
    /// # Errors
    /// What the engine reports.
    pub(crate) fn act_at_commit(&mut self) -> Result<()> {
        // What was rolled back or dropped is not there any more.
        let catalog = &self.open.catalog.1;
        self.temporary
            .at_commit
            .retain(|(oid, _)| catalog.relation(*oid).is_some());
        let acts = self.temporary.at_commit.clone();
        let catalog = &self.open.catalog.1;
        let dropped = acts.iter().filter(|(_, act)| *act == AtCommit::Drop);
        let dropped = dropped.filter_map(|(oid, _)| catalog.relation(*oid).cloned());
        let dropped: Vec<Object> = dropped.map(Object::Relation).collect();
        self.let_go_quietly(&dropped)?;
        for (oid, act) in acts {
            match act {
                AtCommit::Drop => {
                    if let Some(relation) = self.open.catalog.1.relation(oid).cloned() {
                        self.discard(&relation)?;
                    }
                    self.temporary.at_commit.retain(|(other, _)| *other != oid);
                }
                // Every transaction finds it empty: what is in it was written in this one, if it wrote it at all.
                AtCommit::DeleteRows if self.open.holds(oid, Mode::Write) => {
                    self.delete_all(oid)?;
                }
                AtCommit::DeleteRows => {}
            }
        }
        Ok(())
    }

    /// Deletes all rows of a table that only this session knows.
    fn delete_all(&mut self, oid: Oid) -> Result<()> {
        let Some(relation) = self.open.catalog.1.relation(oid).cloned() else {
            return Ok(());
        };
        let shape = Shape::of(&relation)?;
        let mut after: Option<Vec<u8>> = None;
        loop {
            let mut piece: Vec<(Vec<u8>, Vec<Value>)> = Vec::new();
            after = self.rows_behind(
                &relation,
                after.as_deref(),
                super::rewrite::PIECE_BYTES,
                |key, values| {
                    piece.push((key.to_vec(), values.to_vec()));
                    Ok(())
                },
            )?;
            for (key, values) in &piece {
                rows::delete(&self.open.transaction, &shape, key, values)?;
            }
            if after.is_none() {
                return Ok(());
            }
        }
    }

    /// Drops all temporary relations of the session.
    ///
    /// # Errors
    /// As DROP.
    pub(crate) fn drop_temporary(&mut self) -> Result<()> {
        let catalog = self.open.catalog.1.clone();
        let namespace = self.temporary.namespace_in(&catalog);
        let namespace = namespace.and_then(|oid| catalog.namespace_by_oid(oid).cloned());
        match namespace {
            Some(namespace) => self.let_go_quietly(&[Object::Schema(namespace)]),
            None => Ok(()),
        }
    }

    /// CREATE TABLE … AS: the table, without its rows. `None` if there is one already and that is to be no error.
    ///
    /// # Errors
    /// As CREATE TABLE.
    pub(crate) fn create_table_as(
        &mut self,
        create: &ast::CreateTable,
        params: &[Type],
        variables: &[Variable],
    ) -> Result<Option<String>> {
        let Some(query) = &create.query else {
            return Err(SqlError::internal("no query"));
        };
        let (namespace, name) = self.new_name(&create.name, create.temporary)?;
        if create.if_not_exists && self.is_taken(namespace, &name, true)? {
            return Ok(None);
        }
        if self.open.catalog.1.named(namespace, &name).is_some() {
            return Err(taken(&name));
        }
        let named = |column: &ast::ColumnDef| {
            let alone = column.data_type.to_string() == format!("\"{NAME_ALONE}\"");
            alone && column.options.is_empty()
        };
        if !create.columns.iter().all(named) || !create.constraints.is_empty() {
            let text = "CREATE TABLE AS takes names of columns only";
            return Err(SqlError::syntax(text));
        }
        let mut binder = self.binder();
        binder.at_top = true;
        binder.takes_params = !params.is_empty();
        binder.params = params.iter().copied().map(Some).collect();
        binder.variables = variables;
        let (_, columns) = binder.query(query)?;
        if create.columns.len() > columns.len() {
            let text = "too many column names were specified";
            return Err(SqlError::syntax(text));
        }
        let mut given = create.columns.iter();
        let columns = columns.into_iter().map(|column| {
            let name = given.next().map(|given| crate::bind::folded(&given.name));
            OutputColumn {
                name: name.unwrap_or(column.name),
                ..column
            }
        });
        self.make_plain_table(
            namespace,
            &name,
            columns.collect(),
            create.on_commit.as_ref(),
        )?;
        let schema = crate::names::quoted(self.open.catalog.1.namespace_name(namespace));
        Ok(Some(format!("{schema}.{}", crate::names::quoted(&name))))
    }
}
