//! COPY … FROM … WHERE: the INSERT of the rows that a condition is true of.
//!
//! It is one from a query: of the values that have come, and of the defaults of the columns that the data do not have, which are computed of every row, as in
//! PostgreSQL. It asks for the right to read what the condition reads.

use super::Session;
use super::copy::{is_generated, names};
use super::run::Prepared;
use crate::bind::ScopeTable;
use crate::catalog::{Default, Relation};
use crate::error::{Result, SqlError};
use crate::expr::Expr;
use crate::roles::Rights;
use crate::sqlstate;
use sqlparser::ast::{self, SetExpr, Statement};
use std::sync::Arc;
use vellum_row::{Type, Typmod};

impl Session {
    /// The statement that inserts a row, whose values are its parameters, if the condition is true of it. `text` is that of the COPY.
    ///
    /// # Errors
    /// What is wrong with the condition: `42703` and its like; `42803`, `42P20`, `0A000` for what a row alone does not say; `42P10` for generated columns.
    pub(super) fn filtered_insert(
        &self,
        (name, relation): (&ast::ObjectName, &Arc<Relation>),
        positions: &[usize],
        condition: &ast::Expr,
        text: &str,
    ) -> Result<Arc<Prepared>> {
        let table = relation
            .table()
            .ok_or_else(|| SqlError::internal("no table"))?;
        let schema = &table.schema;
        let quoted = |at: usize| names(std::iter::once(&*schema.column(at).name));
        let mut columns = Vec::new();
        let mut values = Vec::new();
        for (number, at) in (1..).zip(positions) {
            columns.push(quoted(*at));
            values.push(format!("${number} AS {}", quoted(*at)));
        }
        let read = self.read_by(relation, condition, text)?;
        if !read.is_empty() {
            self.check_rights(&[(relation.oid, Rights::SELECT)])?;
        }
        let has_default = |at: &usize| {
            let default = table.default_of(schema.column(*at).id);
            matches!(
                default,
                Some(Default::Expression(_) | Default::Identity { .. })
            )
        };
        let computed = |at: &usize| read.contains(at) || has_default(at);
        for at in (0..schema.len()).filter(computed) {
            if is_generated(table, at) {
                let text = "generated columns are not supported in COPY FROM WHERE conditions";
                let state = sqlstate::INVALID_COLUMN_REFERENCE;
                let detail = format!(
                    "Column \"{}\" is a generated column.",
                    schema.column(at).name
                );
                return Err(SqlError::new(state, text).with_detail(detail));
            }
            if positions.contains(&at) {
                continue;
            }
            let column = schema.column(at);
            // A text that is too long is told when it is inserted; a cast would cut it.
            let typmod = match column.ty {
                Type::Varchar | Type::Char => Typmod::NONE,
                _ => column.typmod,
            };
            let ty = self.settings.forms.format_type(column.ty, typmod);
            let value = match table.default_of(column.id) {
                Some(Default::Expression(sql)) => format!("CAST(({sql}) AS {ty})"),
                Some(Default::Identity { sequence, .. }) => {
                    format!("CAST(nextval('{sequence}'::regclass) AS {ty})")
                }
                _ => {
                    let domain = table.domain_of(column.id);
                    let catalog = self.open.as_ref().map(|open| &open.catalog.1);
                    let own = domain.zip(catalog);
                    let own = own.and_then(|(domain, catalog)| catalog.domain(domain));
                    match own.and_then(|(_, own)| own.default.as_deref()) {
                        Some(sql) => format!("CAST(({sql}) AS {ty})"),
                        None => format!("CAST(NULL AS {ty})"),
                    }
                }
            };
            columns.push(quoted(at));
            values.push(format!("{value} AS {}", quoted(at)));
        }
        let list = columns.join(", ");
        let insert = format!(
            "INSERT INTO {name} ({list}) OVERRIDING SYSTEM VALUE SELECT {list} FROM (SELECT {}) AS {} WHERE true",
            values.join(", "),
            names(std::iter::once(&*relation.name))
        );
        let mut statement = crate::parse::statements(&insert)?.pop();
        let select = match &mut statement {
            Some(Statement::Insert(insert)) => insert.source.as_mut(),
            _ => None,
        };
        match select.map(|query| query.body.as_mut()) {
            Some(SetExpr::Select(select)) => select.selection = Some(condition.clone()),
            _ => return Err(SqlError::internal("no query")),
        }
        let types = positions.iter().map(|at| schema.column(*at).ty.oid());
        let types: Vec<u32> = types.collect();
        let statement = statement.ok_or_else(|| SqlError::internal("no INSERT"))?;
        Ok(Self::prepare_one(&insert, statement, &types))
    }

    /// Positions of the columns that a condition reads, in order.
    fn read_by(
        &self,
        relation: &Arc<Relation>,
        condition: &ast::Expr,
        text: &str,
    ) -> Result<Vec<usize>> {
        let search_path = self.search_path();
        let mut binder = self.surroundings(&search_path, text).binder();
        binder.scope.add(ScopeTable::of(relation, None)?)?;
        let bound = binder.condition(condition, "COPY FROM WHERE")?;
        if !binder.subqueries.is_empty() {
            let text = "cannot use subquery in COPY FROM WHERE condition";
            return Err(SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, text));
        }
        let (mut read, mut parameter) = (Vec::new(), None);
        bound.walk(&mut |expr| match expr {
            Expr::Column { position, .. } => read.push(usize::from(*position)),
            Expr::Param(number) => parameter = parameter.or(Some(*number)),
            _ => {}
        });
        if let Some(number) = parameter {
            let message = format!("there is no parameter ${}", number + 1);
            return Err(SqlError::new(sqlstate::UNDEFINED_PARAMETER, message));
        }
        read.sort_unstable();
        read.dedup();
        Ok(read)
    }
}
