//! CREATE TABLE … AS: a table of a query's columns, filled by the query, or by that of a prepared statement, in the same transaction.

use super::Session;
use super::run::{Given, Output, Prepared, Sets};
use crate::error::{Result, SqlError};
use crate::exec::Way;
use crate::plan::writes_in_with;
use crate::sqlstate;
use crate::wire::{CommandTag, Sink};
use sqlparser::ast::{self, Statement};
use vellum_row::{Type, Value};

impl Session {
    pub(super) fn create_table_as(
        &mut self,
        create: &ast::CreateTable,
        whole: &Prepared,
        given: Given<'_>,
        sink: &mut dyn Sink,
    ) -> Result<CommandTag> {
        self.start_statement()?;
        if let Some(open) = &self.open
            && open.characteristics.read_only
        {
            let text = "cannot execute CREATE TABLE AS in a read-only transaction";
            return Err(SqlError::new(sqlstate::READ_ONLY_SQL_TRANSACTION, text));
        }
        let query = create.query.as_deref();
        let executed = query.map(crate::parse::executed).transpose()?.flatten();
        if let Some((name, arguments)) = executed {
            let (_, own) = crate::bind::object_name(&name)?;
            let named = self.named(&own)?.prepared;
            let Statement::Query(query) = &named.statement else {
                let text = "prepared statement is not a SELECT";
                return Err(SqlError::new(sqlstate::WRONG_OBJECT_TYPE, text));
            };
            let create = ast::CreateTable {
                query: Some(query.clone()),
                ..create.clone()
            };
            let (_, program, values) = self.called(&name, &arguments)?;
            return self.made_of_query(&create, &program.params, &values, sink);
        }
        let types = match &whole.inner {
            Some(query) if !given.values.is_empty() => {
                self.program_for(query, given.bound)?.params.clone()
            }
            _ => Vec::new(),
        };
        self.made_of_query(create, &types, given.values, sink)
    }

    /// The table, with the query's rows; `types` and `values`: those of the parameters.
    fn made_of_query(
        &mut self,
        create: &ast::CreateTable,
        types: &[Type],
        values: &[Value],
        sink: &mut dyn Sink,
    ) -> Result<CommandTag> {
        let variables = std::mem::take(&mut self.code_variables);
        let made = self.with_ddl("", |ddl| ddl.create_table_as(create, types, &variables));
        self.code_variables = variables;
        let (name, notices) = made?;
        for notice in &notices {
            self.tell_notice(notice, sink)?;
        }
        let Some(name) = name else {
            return Ok(CommandTag::plain("CREATE TABLE AS"));
        };
        // WITH NO DATA.
        if create.transient {
            return Ok(CommandTag::plain("CREATE TABLE AS"));
        }
        let text = format!("INSERT INTO {name} SELECT 1");
        let mut statements = crate::parse::statements(&text)?;
        let Some(Statement::Insert(mut insert)) = statements.pop() else {
            return Err(SqlError::internal("no INSERT"));
        };
        insert.source.clone_from(&create.query);
        // What writes in WITH stands in front of all.
        let writing = insert.source.as_mut().filter(|query| writes_in_with(query));
        let with = writing.and_then(|query| query.with.take());
        let mut statement = Statement::Insert(insert);
        if with.is_some() {
            let Some(Statement::Query(mut query)) = crate::parse::statements("SELECT 1")?.pop()
            else {
                return Err(SqlError::internal("no query"));
            };
            query.with = with;
            *query.body = ast::SetExpr::Insert(statement);
            statement = Statement::Query(query);
        }
        // Nobody else knows the table. What writes in WITH cannot while there is a load.
        let way = if matches!(statement, Statement::Insert(_)) {
            Way::OwnLoad
        } else {
            Way::Insert
        };
        let oids: Vec<u32> = types.iter().map(|ty| ty.oid()).collect();
        let prepared = Self::prepare_one(&text, statement, &oids);
        let lists = [values];
        let mut sets = Sets {
            way,
            ..Sets::of(&lists, None)
        };
        let done = self.run_each(&prepared, &mut sets, &[], Output::Drop)?;
        Ok(CommandTag::counted("SELECT", done.rows()))
    }
}
