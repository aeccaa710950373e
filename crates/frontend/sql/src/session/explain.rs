//! EXPLAIN, and EXPLAIN ANALYZE, which runs the statement.

use super::Session;
use super::run::{Output, Prepared};
use crate::error::Result;
use crate::expr::Explain;
use crate::plan::{compile, explain};
use sqlparser::ast::{Expr, Ident, Statement, UtilityOption, Value};
use std::cell::RefCell;
use vellum_base::clock::monotonic_nanos;

/// Whether the statement is to be run: `EXPLAIN ANALYZE`, `EXPLAIN (ANALYZE)`, `EXPLAIN (ANALYZE on)`.
pub(super) fn is_analyze(analyze: bool, options: Option<&[UtilityOption]>) -> bool {
    let off = |arg: &Expr| match arg {
        Expr::Identifier(Ident { value, .. }) => {
            matches!(&*value.to_lowercase(), "false" | "off")
        }
        Expr::Value(value) => match &value.value {
            Value::Boolean(on) => !on,
            other => matches!(other.to_string().trim_matches('\''), "0" | "false" | "off"),
        },
        _ => false,
    };
    let found = options.unwrap_or_default().iter();
    let mut found = found.filter(|option| option.name.value.eq_ignore_ascii_case("analyze"));
    analyze || found.any(|option| !option.arg.as_ref().is_some_and(off))
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
        analyze: bool,
    ) -> Result<Vec<Vec<String>>> {
        self.start_statement()?;
        let search_path = self.search_path();
        let surroundings = self.surroundings(&search_path, &outer.text);
        let program = compile(statement, &[], surroundings)?;
        let mut lines = explain(&program);
        if analyze || program.is_general_query() {
            let how = if analyze {
                Explain::Analyze
            } else {
                Explain::Plan
            };
            let inner = Self::prepare_one(&outer.text, statement.clone(), &[]);
            let touched_before = self.touched();
            let before = self.shared.engine.statistics();
            let started = monotonic_nanos();
            self.explaining = Some((RefCell::default(), how));
            let done = self.run_program(&inner, &[], &[], Output::Drop);
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
