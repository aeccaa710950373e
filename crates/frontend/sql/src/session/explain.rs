//! EXPLAIN, and EXPLAIN ANALYZE, which runs the statement.

use super::Session;
use super::run::{Output, Prepared, no_parameter};
use crate::error::{Result, SqlError};
use crate::expr::Explain;
use crate::plan::explain;
use crate::sqlstate;
use sqlparser::ast::{Expr, Ident, Statement, UtilityOption, Value};
use std::cell::RefCell;
use vellum_base::clock::monotonic_nanos;

/// Whether the statement is to be run: `EXPLAIN ANALYZE`, `EXPLAIN (ANALYZE)`, `EXPLAIN (ANALYZE on)`. The other options are PostgreSQL's, and say nothing.
///
/// # Errors
/// `42601` for an option that PostgreSQL does not have, or that is neither on nor off; `22023` for a form that it does not have, and for what needs
/// ANALYZE.
pub(super) fn is_analyze(analyze: bool, options: Option<&[UtilityOption]>) -> Result<bool> {
    let invalid = |message: String| SqlError::new(sqlstate::INVALID_PARAMETER_VALUE, message);
    let mut analyze = analyze;
    let mut wanting = Vec::new();
    for option in options.unwrap_or_default() {
        let name = option.name.value.to_lowercase();
        match name.as_str() {
            "analyze" => analyze = is_on(&name, option.arg.as_ref())?,
            "verbose" | "costs" | "settings" | "buffers" | "summary" => {
                is_on(&name, option.arg.as_ref())?;
            }
            "wal" | "timing" => {
                if is_on(&name, option.arg.as_ref())? {
                    wanting.push(name.to_uppercase());
                }
            }
            "format" => {
                let form = option.arg.as_ref().map(word_of).unwrap_or_default();
                if !matches!(form.as_str(), "text" | "xml" | "json" | "yaml") {
                    return Err(invalid(format!(
                        "unrecognized value for EXPLAIN option \"format\": \"{form}\""
                    )));
                }
            }
            _ => {
                let message = format!("unrecognized EXPLAIN option \"{name}\"");
                return Err(SqlError::syntax(message));
            }
        }
    }
    match wanting.first() {
        Some(name) if !analyze => Err(invalid(format!("EXPLAIN option {name} requires ANALYZE"))),
        _ => Ok(analyze),
    }
}

fn word_of(arg: &Expr) -> String {
    match arg {
        Expr::Identifier(Ident { value, .. }) => value.to_lowercase(),
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => text.to_lowercase(),
            other => other.to_string().to_lowercase(),
        },
        other => other.to_string().to_lowercase(),
    }
}

fn is_on(name: &str, arg: Option<&Expr>) -> Result<bool> {
    match arg.map(word_of).as_deref() {
        None | Some("true" | "on" | "1") => Ok(true),
        Some("false" | "off" | "0") => Ok(false),
        Some(_) => Err(SqlError::syntax(format!("{name} requires a Boolean value"))),
    }
}

impl Session {
    /// What reading has touched in the open transaction.
    fn touched(&self) -> Option<vellum::Touched> {
        let open = self.open.as_ref();
        open.map(|open| open.transaction.touched())
    }

    /// The lines of EXPLAIN.
    ///
    /// # Errors
    /// Those of the statement.
    pub(super) fn explained(
        &mut self,
        outer: &Prepared,
        statement: &Statement,
        params: &[vellum_row::Value],
        analyze: bool,
    ) -> Result<Vec<Vec<String>>> {
        self.start_statement()?;
        let inner = match &outer.inner {
            Some(inner) => inner.clone(),
            // No plan: compiling it says so.
            None => Self::prepare_one(&outer.text, statement.clone(), &[]),
        };
        let program = self.program(&inner)?;
        if params.len() < program.params.len() {
            return Err(no_parameter(params.len()));
        }
        let mut lines = explain(&program);
        if analyze || program.is_general_query() {
            let how = if analyze {
                Explain::Analyze
            } else {
                Explain::Plan
            };
            let touched_before = self.touched();
            let before = self.shared.engine.statistics();
            let started = monotonic_nanos();
            self.explaining = Some((RefCell::default(), how));
            let done = self.run_program(&inner, params, &[], Output::Drop);
            let told = self.explaining.take();
            let (tag, spent) = (done?, monotonic_nanos() - started);
            let told = told.map_or_else(Vec::new, |(told, _)| told.into_inner());
            lines.extend(told.into_iter().map(|line| format!("  {line}")));
            if analyze {
                let after = self.shared.engine.statistics();
                lines.push(format!("Result: {tag}"));
                if let (Some(before), Some(after)) = (touched_before, self.touched()) {
                    lines.push(format!(
                        "Touched: pages={} versions={}",
                        after.pages.saturating_sub(before.pages),
                        after.versions.saturating_sub(before.versions),
                    ));
                }
                // Of the whole database, while it ran.
                lines.push(format!(
                    "Pages: read={} searched={}; versions kept: {} to {}",
                    after.pages_read - before.pages_read,
                    after.tree_searches - before.tree_searches,
                    before.version_deltas + before.version_copies,
                    after.version_deltas + after.version_copies,
                ));
                let spent = spent as f64 / 1e6;
                lines.push(format!("Execution Time: {spent:.3} ms"));
            }
        }
        Ok(lines.into_iter().map(|line| vec![line]).collect())
    }
}
