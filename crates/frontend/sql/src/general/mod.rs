//! Queries that no program runs: their bound trees become relations of `vellum_query`, whose operators ask this thread for rows.
//!
//! What an expression means is said in one place: where an operator has no comparison that means the same, the expression itself
//! is what is called for each row ([`function`]). So both ways give the same answers, and the same errors.
//!
//! A subquery that reads the query around it becomes a join where DataFusion knows one; where it knows none, the query is planned
//! again with that subquery as a function that is asked for each row ([`Subqueries::Asked`]).
//!
//! Not here: which queries come here (`plan`: [`Select::general`]).

mod fold;
mod function;
mod host;
mod joins;
mod order;
mod shape;
mod term;
mod translate;

pub(crate) use translate::STEPS_MAX;

use crate::error::{Result, SqlError};
use crate::exec::{Each, Flow, Run};
use crate::expr::Explain;
use crate::plan::Select;
use crate::sqlstate;
use host::StatementHost;
use translate::{Subqueries, Translation};
use vellum_query::{Error, Limits, Line};

impl Run<'_, '_> {
    /// Runs a query that no program runs.
    ///
    /// # Errors
    /// The statement's.
    pub(crate) fn general(&self, select: &Select, each: &mut Each<'_>) -> Result<Flow> {
        match self.general_with(select, Subqueries::Joined, each) {
            Err(Error::Unplanned(_)) => {
                let again = self.general_with(select, Subqueries::Asked, each);
                again.map_err(told)
            }
            done => done.map_err(told),
        }
    }

    fn general_with(
        &self,
        select: &Select,
        subqueries: Subqueries,
        each: &mut Each<'_>,
    ) -> std::result::Result<Flow, Error> {
        let (line, requests) = Line::new();
        let mut translation = Translation::new(self, line.clone(), subqueries);
        let relation = translation.query(select).map_err(failed)?;
        let relation = relation.readable(&translation.symbols)?;
        let sources = translation.into_sources();
        let limits = self.limits();
        let explain = self.env.explain();
        if let Some((lines, Explain::Plan)) = explain {
            lines
                .borrow_mut()
                .extend(self.queries.explain(&relation, limits)?);
            return Ok(Flow::More);
        }
        let mut host = StatementHost::new(self, &sources, each);
        match explain {
            None => self
                .queries
                .run(&relation, requests, line, limits, &mut host)?,
            Some((lines, _)) => {
                let told = self
                    .queries
                    .analyze(&relation, requests, line, limits, &mut host)?;
                lines.borrow_mut().extend(told);
            }
        }
        Ok(host.flow())
    }

    fn limits(&self) -> Limits {
        Limits {
            memory_bytes: self.memory.get(),
        }
    }
}

/// Why there is no relation.
fn failed(error: SqlError) -> Error {
    if error.sqlstate() == sqlstate::FEATURE_NOT_SUPPORTED {
        // The other way may have it.
        return Error::Unplanned(error.message().to_owned());
    }
    Error::Failed(Box::new(error))
}

/// What a client is told.
fn told(error: Error) -> SqlError {
    match error {
        Error::Failed(failure) => match failure.downcast::<SqlError>() {
            Ok(own) => *own,
            Err(failure) => match failure.downcast::<vellum_row::SqlError>() {
                Ok(own) => (*own).into(),
                Err(failure) => match failure.downcast::<Error>() {
                    Ok(inner) => told(*inner),
                    Err(failure) => SqlError::internal(failure.to_string()),
                },
            },
        },
        Error::Memory(text) => SqlError::new(sqlstate::OUT_OF_MEMORY, "out of memory")
            .with_detail(text)
            .with_hint("Raise work_mem."),
        Error::Unplanned(text) => {
            SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, "this query has no plan")
                .with_detail(text)
        }
        Error::Internal(text) => SqlError::internal(text),
    }
}
