//! EXPLAIN, and EXPLAIN ANALYZE, which runs the statement.

use super::Session;
use super::run::{Given, Output, Prepared, no_parameter};
use crate::error::{Result, SqlError};
use crate::expr::Explain;
use crate::plan::{Form, Program, Told, Wanted, counts_of, explain, explained};
use crate::sqlstate;
use crate::wire::CommandTag;
use sqlparser::ast::{Expr, Ident, Statement, UtilityOption, Value};
use std::cell::RefCell;
use vellum_base::clock::monotonic_nanos;

/// What EXPLAIN is asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    /// The statement is run.
    pub analyze: bool,
    pub form: Form,
    verbose: bool,
    costs: bool,
    timing: bool,
    /// How long it took to plan and to run.
    summary: bool,
}

impl Asked {
    /// What the words behind EXPLAIN and the options in brackets ask for: `EXPLAIN ANALYZE`, `EXPLAIN (ANALYZE, FORMAT json)`. Of PostgreSQL's options BUFFERS, WAL and SETTINGS say
    /// nothing here.
    ///
    /// # Errors
    /// `42601` for an option that PostgreSQL does not have, or that is neither on nor off; `22023` for a form that it does not have, and for what needs
    /// ANALYZE.
    pub fn of(
        (analyze, verbose): (bool, bool),
        options: Option<&[UtilityOption]>,
        text: &str,
    ) -> Result<Self> {
        let invalid = |message: String| SqlError::new(sqlstate::INVALID_PARAMETER_VALUE, message);
        let mut asked = Self {
            analyze,
            form: Form::Text,
            verbose,
            costs: true,
            timing: true,
            summary: false,
        };
        let (mut wanting, mut summary) = (Vec::new(), None);
        for option in options.unwrap_or_default() {
            let name = option.name.value.to_lowercase();
            let start = option.name.span.start;
            let place = crate::parse::position(text, start.line, start.column);
            let on = || is_on(&name, option.arg.as_ref());
            match name.as_str() {
                "analyze" => asked.analyze = on()?,
                "verbose" => asked.verbose = on()?,
                "costs" => asked.costs = on()?,
                "summary" => summary = Some(on()?),
                "settings" | "buffers" => {
                    on()?;
                }
                "timing" => {
                    asked.timing = on()?;
                    wanting.extend(asked.timing.then_some("TIMING"));
                }
                "wal" => wanting.extend(on()?.then_some("WAL")),
                "format" => {
                    let Some(form) = option.arg.as_ref().map(word_of) else {
                        return Err(SqlError::syntax("format requires a parameter"));
                    };
                    asked.form = Form::named(&form).ok_or_else(|| {
                        let message =
                            format!("unrecognized value for EXPLAIN option \"format\": \"{form}\"");
                        invalid(message).at(place)
                    })?;
                }
                _ => {
                    let message = format!("unrecognized EXPLAIN option \"{name}\"");
                    return Err(SqlError::syntax(message).at(place));
                }
            }
        }
        asked.summary = summary.unwrap_or(asked.analyze);
        match wanting.first() {
            Some(name) if !asked.analyze => {
                Err(invalid(format!("EXPLAIN option {name} requires ANALYZE")))
            }
            _ => Ok(asked),
        }
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

    /// The rows of EXPLAIN.
    ///
    /// # Errors
    /// Those of the statement.
    pub(super) fn explained(
        &mut self,
        outer: &Prepared,
        statement: &Statement,
        given: Given<'_>,
        asked: Asked,
    ) -> Result<Vec<Vec<String>>> {
        self.start_statement()?;
        if let Statement::Execute {
            name: Some(name),
            parameters,
            ..
        } = statement
        {
            let (named, program, values) = self.called(name, parameters)?;
            let given = Given {
                values: &values,
                bound: Some(&program),
            };
            return self.explained_one(&named, given, asked);
        }
        let inner = match &outer.inner {
            Some(inner) => inner.clone(),
            // No plan: compiling it says so.
            None => Self::prepare_one(&outer.text, statement.clone(), &[]),
        };
        self.explained_one(&inner, given, asked)
    }

    fn explained_one(
        &mut self,
        inner: &Prepared,
        given: Given<'_>,
        asked: Asked,
    ) -> Result<Vec<Vec<String>>> {
        let started = monotonic_nanos();
        let program = self.program_for(inner, given.bound)?;
        let planned = monotonic_nanos() - started;
        // Also what is not run: a plan tells of what it reads.
        self.check_program(&program)?;
        if given.values.len() < program.params.len() {
            return Err(no_parameter(given.values.len()));
        }
        let mut steps = Vec::new();
        let mut done = None;
        if asked.analyze || program.is_general_query() {
            let how = if asked.analyze {
                Explain::Analyze
            } else {
                Explain::Plan
            };
            let touched_before = self.touched();
            let before = self.shared.engine.statistics();
            let started = monotonic_nanos();
            self.explaining = Some((RefCell::default(), how));
            let ran = self.run_program(inner, given, &[], Output::Drop);
            let told = self.explaining.take();
            let (tag, spent) = (ran?, monotonic_nanos() - started);
            steps = told.map_or_else(Vec::new, |(told, _)| told.into_inner());
            if asked.analyze {
                let touched = touched_before.zip(self.touched());
                let after = self.shared.engine.statistics();
                done = Some(Done {
                    tag,
                    spent: spent as f64 / 1e6,
                    touched: touched.map(|(before, after)| {
                        (
                            after.pages.saturating_sub(before.pages),
                            after.versions.saturating_sub(before.versions),
                        )
                    }),
                    before,
                    after,
                });
            }
        }
        let planned = planned as f64 / 1e6;
        if asked.form != Form::Text {
            let told = self.as_group(&program, asked, &steps, (planned, done.as_ref()));
            return Ok(vec![vec![asked.form.written(&told)]]);
        }
        let mut lines = explain(&program);
        lines.extend(steps.into_iter().map(|line| format!("  {line}")));
        if let Some(done) = &done {
            done.lines(&mut lines);
        }
        if asked.summary {
            lines.push(format!("Planning Time: {planned:.3} ms"));
            if let Some(done) = &done {
                lines.push(format!("Execution Time: {:.3} ms", done.spent));
            }
        }
        Ok(lines.into_iter().map(|line| vec![line]).collect())
    }

    /// The same for who reads it by a program.
    fn as_group(
        &self,
        program: &Program,
        asked: Asked,
        steps: &[String],
        (planned, done): (f64, Option<&Done>),
    ) -> Vec<(String, Told)> {
        let plain = |name: &str, value: String| (name.to_owned(), Told::Plain(value));
        let mut first = Vec::new();
        let told_of_step = steps.iter().any(|line| counts_of(line).is_some());
        if let Some(done) = done.filter(|_| !told_of_step) {
            if asked.timing {
                first.push(plain("Actual Total Time", format!("{:.3}", done.spent)));
            }
            first.push(plain("Actual Rows", done.tag.rows().to_string()));
            first.push(plain("Actual Loops", "1".to_owned()));
        }
        let wanted = Wanted {
            catalog: self.image(),
            costs: asked.costs,
            verbose: asked.verbose,
        };
        let mut told = explained(program, wanted, steps, first);
        if asked.summary {
            told.push(plain("Planning Time", format!("{planned:.3}")));
        }
        if let Some(done) = done {
            told.push(("Triggers".to_owned(), Told::Groups("Trigger", Vec::new())));
            if asked.summary {
                told.push(plain("Execution Time", format!("{:.3}", done.spent)));
            }
            if let Some((pages, versions)) = done.touched {
                told.push(plain("Leaves Touched", pages.to_string()));
                told.push(plain("Versions Touched", versions.to_string()));
            }
        }
        told
    }
}

/// What came of a statement that was run.
struct Done {
    tag: CommandTag,
    /// Milliseconds.
    spent: f64,
    /// Leaves of trees, and old versions.
    touched: Option<(u64, u64)>,
    /// Counters of the whole database.
    before: vellum::Statistics,
    after: vellum::Statistics,
}

impl Done {
    fn lines(&self, lines: &mut Vec<String>) {
        lines.push(format!("Result: {}", self.tag));
        if let Some((pages, versions)) = self.touched {
            lines.push(format!("Touched: pages={pages} versions={versions}"));
        }
        let (before, after) = (&self.before, &self.after);
        // Of the whole database, while it ran.
        lines.push(format!(
            "Pages: read={} searched={}; versions kept: {} to {}",
            after.pages_read - before.pages_read,
            after.tree_searches - before.tree_searches,
            before.version_deltas + before.version_copies,
            after.version_deltas + after.version_copies,
        ));
    }
}
