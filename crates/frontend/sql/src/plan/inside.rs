//! Queries inside others: what they see of these.

use super::select::Select;
use super::{General, OutputColumn, Subquery, SubqueryKind};
use crate::bind::{Binder, OuterScope};
use crate::error::{Result, SqlError};
use sqlparser::ast;
use vellum_row::{Type, Typmod};

impl Binder<'_> {
    /// Binds a subquery; returns its number, and the type and modifier of its column.
    pub fn subquery(
        &mut self,
        query: &ast::Query,
        kind: SubqueryKind,
    ) -> Result<(u16, Option<(Type, Typmod)>)> {
        let around = self.general.take();
        let (select, columns) = self.within(|binder| binder.query(query))?;
        self.general = around;
        if select.correlated && !select.reads_only_system() {
            self.needs(General::CorrelatedSubquery);
        }
        let any = matches!(kind, SubqueryKind::Exists | SubqueryKind::Rows { .. });
        if !any && columns.len() != 1 {
            let text = if kind == SubqueryKind::Scalar {
                "subquery must return only one column"
            } else {
                "subquery has too many columns"
            };
            return Err(SqlError::syntax(text));
        }
        let ty = match kind {
            SubqueryKind::Exists => None,
            _ => columns.first().map(|column| (column.ty, column.typmod)),
        };
        SqlError::check_room(self.subqueries.len(), u16::MAX, "subqueries")?;
        self.subqueries.push(Subquery::new(kind, select));
        Ok(((self.subqueries.len() - 1) as u16, ty))
    }

    /// Binds a query inside an expression: it sees the columns of those around it.
    pub(super) fn within(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<(Select, Vec<OutputColumn>)>,
    ) -> Result<(Select, Vec<OutputColumn>)> {
        self.outer.push(OuterScope {
            scope: std::mem::take(&mut self.scope),
            read: false,
            aggregates: self.aggregates.take(),
        });
        let windows = self.windows.take();
        let bound = work(self);
        self.windows = windows;
        let outer = self.outer.pop().unwrap_or_default();
        self.scope = outer.scope;
        self.aggregates = outer.aggregates;
        let (mut select, columns) = bound?;
        select.correlated = outer.read;
        Ok((select, columns))
    }

    /// Runs `work` with a scope and subqueries of its own.
    pub(super) fn inner<R>(&mut self, work: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        let scope = std::mem::take(&mut self.scope);
        let subqueries = std::mem::take(&mut self.subqueries);
        let aggregates = self.aggregates.take();
        let windows = self.windows.take();
        let named = std::mem::take(&mut self.named_windows);
        let again = std::mem::take(&mut self.again);
        let seen = self.with.len();
        let result = work(self);
        self.scope = scope;
        self.subqueries = subqueries;
        self.aggregates = aggregates;
        self.windows = windows;
        self.named_windows = named;
        self.again = again;
        self.with.truncate(seen);
        result
    }
}
