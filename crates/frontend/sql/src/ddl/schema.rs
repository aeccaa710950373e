//! CREATE SCHEMA, alone and with what is in it.

use super::Ddl;
use super::schema_renamed::check_schema_name;
use crate::catalog::{Change, DefaultKind, Namespace, Oid};
use crate::error::{Fields, Result, SqlError};
use crate::parse::{Command, element};
use crate::sqlstate::{self, SqlState};
use crate::wire::CommandTag;
use sqlparser::ast::{self, Statement};
use std::sync::Arc;

impl Ddl<'_> {
    pub(super) fn create_schema(
        &mut self,
        name: &ast::SchemaName,
        if_not_exists: bool,
    ) -> Result<CommandTag> {
        self.check_may_make_schemas()?;
        let (name, owner) = match name {
            ast::SchemaName::Simple(name) => (Some(name), None),
            ast::SchemaName::NamedAuthorization(name, owner) => (Some(name), Some(owner)),
            ast::SchemaName::UnnamedAuthorization(owner) => (None, Some(owner)),
        };
        let owner = match owner {
            Some(owner) => self.authorized(owner)?,
            None => self.role,
        };
        let name = match name {
            Some(name) => crate::bind::object_name(name)?.1,
            None => self.roles().role_name(owner).to_owned(),
        };
        check_schema_name(&name)?;
        if self.open.catalog.1.namespace(&name).is_some() {
            let message = format!("schema \"{name}\" already exists");
            let error = SqlError::new(sqlstate::DUPLICATE_SCHEMA, message);
            if if_not_exists {
                self.notices.push(Fields::skipping(&error));
                return Ok(CommandTag::plain("CREATE SCHEMA"));
            }
            return Err(error);
        }
        let acl = self.roles().acl_of_new(owner, 0, DefaultKind::Schemas);
        let namespace = Namespace {
            oid: self.draw_oid()?,
            name: name.into(),
            owner,
            acl,
        };
        self.change(Change::PutNamespace(Arc::new(namespace)))?;
        Ok(CommandTag::plain("CREATE SCHEMA"))
    }

    /// CREATE SCHEMA with the statements that make what is in it: by whoever owns it, and with it in front of the search path. Sequences come first, then
    /// tables, views, indexes and rights.
    ///
    /// # Errors
    /// `42P15` for what is to be elsewhere; those of the statements.
    pub(super) fn create_schema_with(&mut self, said: &[String]) -> Result<CommandTag> {
        let mut all = said.iter().map(|said| element(said));
        let schema = all
            .next()
            .ok_or_else(|| SqlError::internal("no schema"))??;
        let Statement::CreateSchema {
            schema_name,
            if_not_exists,
            ..
        } = schema
        else {
            return Err(SqlError::internal("no schema"));
        };
        let mut elements = all.collect::<Result<Vec<Statement>>>()?;
        // Behind a gate its owner may be called otherwise.
        let name = self.schema_name(&schema_name);
        let tag = self.create_schema(&schema_name, if_not_exists)?;
        let name = name?;
        let found = self.open.catalog.1.namespace(&name).cloned();
        let namespace = found.ok_or_else(|| super::no_schema(&name))?;
        for own in &elements {
            check_place(own, &name)?;
        }
        elements.sort_by_key(rank);
        let mut search_path: Vec<Oid> = vec![namespace.oid];
        search_path.extend(self.search_path.iter().filter(|oid| **oid != namespace.oid));
        let mut ddl = Ddl {
            shared: self.shared,
            open: self.open,
            search_path,
            forms: self.forms,
            text: "",
            role: namespace.owner,
            waiting: self.waiting.anew(),
            memory: self.memory,
            notices: std::mem::take(&mut self.notices),
            temporary: self.temporary,
            asked: self.asked,
            again: false,
        };
        let mut done = Ok(());
        for own in &elements {
            done = ddl.run(own).map(drop);
            if done.is_err() {
                break;
            }
        }
        let obstacle = ddl.waiting.take_obstacle();
        let (notices, again) = (std::mem::take(&mut ddl.notices), ddl.again);
        (self.notices, self.again) = (notices, again);
        if let Some(obstacle) = obstacle {
            self.waiting.set_obstacle(obstacle);
        }
        done.map(|()| tag)
    }

    fn schema_name(&self, name: &ast::SchemaName) -> Result<String> {
        match name {
            ast::SchemaName::Simple(name) | ast::SchemaName::NamedAuthorization(name, _) => {
                Ok(crate::bind::object_name(name)?.1)
            }
            ast::SchemaName::UnnamedAuthorization(owner) => {
                let owner = self.authorized(owner)?;
                Ok(self.roles().role_name(owner).to_owned())
            }
        }
    }
}

fn rank(element: &Statement) -> u8 {
    match element {
        Statement::CreateSequence { .. } => 0,
        Statement::CreateTable(_) => 1,
        Statement::CreateView(_) => 2,
        Statement::CreateIndex(_) => 3,
        _ => 4,
    }
}

/// # Errors
/// `42P15` for an element of another schema; `42601` for what cannot be one.
fn check_place(element: &Statement, schema: &str) -> Result<()> {
    let name = match element {
        Statement::CreateSequence { name, .. } => name,
        Statement::CreateTable(create) if create.query.is_none() => &create.name,
        Statement::CreateView(create) => &create.name,
        Statement::CreateIndex(create) => &create.table_name,
        other if matches!(Command::of(other), Some(Command::Said(_))) => return Ok(()),
        other => {
            let words = other.to_string();
            let word = words.split(' ').nth(1).unwrap_or_default().to_lowercase();
            return Err(SqlError::syntax(format!(
                "syntax error at or near \"{word}\""
            )));
        }
    };
    match crate::bind::object_name(name)?.0 {
        Some(other) if other != schema => {
            let message = format!(
                "CREATE specifies a schema ({other}) different from the one being created ({schema})"
            );
            Err(SqlError::new(SqlState::of("42P15"), message))
        }
        _ => Ok(()),
    }
}
