//! WITH RECURSIVE.

use super::check_equality;
use super::from::rename;
use super::select::{Body, Recursive, Select, SourceKind, may_miss};
use crate::bind::{Binder, Meaning, ScopeColumn, ScopeTable, With, folded};
use crate::error::{Result, SqlError};
use crate::sqlstate;
use sqlparser::ast;
use std::sync::Arc;
use vellum_row::{CastContext, Settings, Type, Typmod, cast_between};

/// Where a query of WITH reads itself and must not.
const IN_BASE: &str = "must not appear within its non-recursive term";
const NO_UNION: &str = "does not have the form non-recursive-term UNION [ALL] recursive-term";

impl Binder<'_> {
    /// A query of WITH RECURSIVE, bound where it is read.
    pub(super) fn recursive(
        &mut self,
        at: usize,
        alias: Option<&ast::TableAlias>,
    ) -> Result<SourceKind> {
        let with = self.with[at].clone();
        let behind = self.with.split_off(at);
        let between = self.close_between(with.depth);
        // Each part is run in the way that suits it, whatever suits the query that reads it.
        let general = self.general.take();
        self.with_depth += 1;
        let bound = self.recursive_query(&with);
        self.with_depth -= 1;
        self.general = general;
        self.open_between(with.depth, between);
        self.with.truncate(at);
        self.with.extend(behind);
        let Some((recursive, columns)) = bound? else {
            // It reads itself nowhere: a query like others.
            self.with[at].meaning = Meaning::Query;
            let read = self.with_query(at, alias);
            self.with[at].meaning = Meaning::Recursive;
            return read;
        };
        let mut table = ScopeTable {
            name: alias.map_or(with.name, |alias| folded(&alias.name)),
            own: None,
            qualified_only: false,
            is_value: false,
            may_miss: false,
            relation: None,
            columns,
        };
        rename(&mut table, alias)?;
        self.scope.add(table)?;
        Ok(SourceKind::Recursive(Box::new(recursive)))
    }

    /// `None` if it does not read itself.
    fn recursive_query(&mut self, with: &With) -> Result<Option<(Recursive, Vec<ScopeColumn>)>> {
        let query = &*with.query;
        let (left, right, all) = match &*query.body {
            ast::SetExpr::SetOperation {
                op: ast::SetOperator::Union,
                set_quantifier,
                left,
                right,
            } if query.with.is_none() => {
                let all = *set_quantifier == ast::SetQuantifier::All;
                (left, right, all)
            }
            _ => {
                self.push_itself(with, Meaning::Refused(NO_UNION));
                self.query(query)?;
                return Ok(None);
            }
        };
        let part = |body: &ast::SetExpr| ast::Query {
            body: Box::new(body.clone()),
            order_by: None,
            limit_clause: None,
            locks: Vec::new(),
            ..query.clone()
        };
        self.push_itself(with, Meaning::Refused(IN_BASE));
        let (base, columns) = self.query(&part(left))?;
        self.with.pop();
        let mut names = with.columns.iter();
        let columns: Vec<ScopeColumn> = columns
            .into_iter()
            .map(|column| ScopeColumn {
                name: names.next().cloned().unwrap_or(column.name),
                ty: column.ty,
                typmod: column.typmod,
                number: 0,
                // The step may make others.
                domain: None,
                collation: column.collation,
            })
            .collect();
        if names.next().is_some() {
            let message = format!(
                "WITH query \"{}\" has {} columns available but {} columns specified",
                with.name,
                columns.len(),
                with.columns.len()
            );
            return Err(SqlError::new(sqlstate::INVALID_COLUMN_REFERENCE, message));
        }
        let number = self.with_uses;
        let work = Meaning::Work {
            number,
            columns: columns.clone(),
            read: 0,
        };
        self.push_itself(with, work);
        let (mut step, made) = self.query(&part(right))?;
        let read = match self.with.pop().map(|with| with.meaning) {
            Some(Meaning::Work { read, .. }) => read,
            _ => 0,
        };
        if read == 0 {
            return Ok(None);
        }
        let clause = match (&query.order_by, &query.limit_clause) {
            (Some(_), _) => Some("ORDER BY"),
            (_, Some(_)) => Some("LIMIT"),
            _ => None,
        };
        if let Some(clause) = clause {
            let text = format!("{clause} in a recursive query is not implemented");
            return Err(SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, text));
        }
        check_step(&with.name, &step, number)?;
        if made.len() != columns.len() {
            let text = "each UNION query must have the same number of columns";
            return Err(SqlError::syntax(text));
        }
        for (at, (own, made)) in columns.iter().zip(&made).enumerate() {
            if own.ty == made.ty {
                let modified = own.typmod != Typmod::NONE;
                if own.ty == Type::Record {
                    // The step was bound as what reads these.
                    if modified && self.common_columns(own.typmod, made.typmod).is_none() {
                        let text = "rows of other columns in the step of a recursive query";
                        return Err(SqlError::unsupported(text));
                    }
                } else if modified && own.typmod != made.typmod {
                    return Err(other_type(
                        self.settings,
                        &with.name,
                        at,
                        own,
                        &self.settings.format_type(made.ty, made.typmod),
                    ));
                }
                continue;
            }
            if cast_between(made.ty, own.ty) != Some(CastContext::Implicit) {
                let overall = self.settings.format_type(made.ty, Typmod::NONE);
                return Err(other_type(self.settings, &with.name, at, own, &overall));
            }
            step.cast_output(at, own.ty);
        }
        if !all {
            columns
                .iter()
                .try_for_each(|column| check_equality(column.ty))?;
        }
        let recursive = Recursive {
            number,
            base,
            step,
            all,
        };
        Ok(Some((recursive, columns)))
    }

    fn push_itself(&mut self, with: &With, meaning: Meaning) {
        self.with.push(With {
            name: with.name.clone(),
            columns: Vec::new(),
            query: Arc::clone(&with.query),
            meaning,
            depth: self.outer.len(),
        });
    }

    /// A query of WITH where it reads itself, or a statement of WITH that has written.
    pub(super) fn work(
        &mut self,
        at: usize,
        alias: Option<&ast::TableAlias>,
    ) -> Result<SourceKind> {
        let with = &mut self.with[at];
        let in_expression = self.outer.len() > with.depth;
        let name = with.name.clone();
        let (number, columns) = match &mut with.meaning {
            Meaning::Work {
                number,
                columns,
                read,
            } => {
                if in_expression {
                    return Err(refused(&name, "must not appear within a subquery"));
                }
                *read += 1;
                if *read > 1 {
                    return Err(refused(&name, "must not appear more than once"));
                }
                (*number, columns.clone())
            }
            Meaning::Written { number, columns } => (*number, columns.clone()),
            Meaning::Silent => {
                let message = format!("WITH query \"{name}\" does not have a RETURNING clause");
                return Err(SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, message));
            }
            Meaning::Refused(why) => return Err(refused(&name, why)),
            Meaning::Query | Meaning::Recursive => {
                return Err(SqlError::internal("a query that does not read itself"));
            }
        };
        let types = columns.iter().map(|column| column.ty).collect();
        let mut table = ScopeTable {
            name: alias.map_or(name, |alias| folded(&alias.name)),
            own: None,
            qualified_only: false,
            is_value: false,
            may_miss: false,
            relation: None,
            columns,
        };
        rename(&mut table, alias)?;
        self.scope.add(table)?;
        Ok(SourceKind::Work { number, types })
    }
}

/// What a step must not do with what it is run with.
///
/// # Errors
/// `42P19`.
fn check_step(name: &str, step: &Select, number: usize) -> Result<()> {
    match &step.body {
        Body::Values(_) => Ok(()),
        Body::Set {
            left,
            right,
            all,
            operator,
        } => {
            let word = match operator {
                ast::SetOperator::Intersect => "must not appear within INTERSECT",
                ast::SetOperator::Except => "must not appear within EXCEPT",
                _ if *all => "",
                _ => "",
            };
            for side in [left, right] {
                if !word.is_empty() && reads(side, number) {
                    return Err(refused(name, word));
                }
                check_step(name, side, number)?;
            }
            Ok(())
        }
        Body::From {
            sources, grouping, ..
        } => {
            let mut own = false;
            for (at, source) in sources.iter().enumerate() {
                let found = match &source.kind {
                    SourceKind::Work { number: other, .. } => *other == number,
                    SourceKind::Query(select) | SourceKind::Lateral(select) => {
                        check_step(name, select, number)?;
                        reads(select, number)
                    }
                    _ => false,
                };
                if found && may_miss(sources, at) {
                    return Err(refused(name, "must not appear within an outer join"));
                }
                own |= found;
            }
            if own && grouping.is_some() {
                let text =
                    "aggregate functions are not allowed in a recursive query's recursive term";
                return Err(SqlError::new(INVALID_RECURSION, text));
            }
            Ok(())
        }
    }
}

fn reads(select: &Select, number: usize) -> bool {
    match &select.body {
        Body::Values(_) => false,
        Body::Set { left, right, .. } => reads(left, number) || reads(right, number),
        Body::From { sources, .. } => sources.iter().any(|source| match &source.kind {
            SourceKind::Work { number: other, .. } => *other == number,
            SourceKind::Query(select) | SourceKind::Lateral(select) => reads(select, number),
            _ => false,
        }),
    }
}

const INVALID_RECURSION: sqlstate::SqlState = sqlstate::SqlState::of("42P19");

#[cold]
fn refused(name: &str, why: &str) -> SqlError {
    let message = if why == NO_UNION {
        format!("recursive query \"{name}\" {why}")
    } else {
        format!("recursive reference to query \"{name}\" {why}")
    };
    SqlError::new(INVALID_RECURSION, message)
}

#[cold]
fn other_type(
    settings: &Settings,
    name: &str,
    at: usize,
    own: &ScopeColumn,
    overall: &str,
) -> SqlError {
    let message = format!(
        "recursive query \"{name}\" column {} has type {} in non-recursive term but type {overall} overall",
        at + 1,
        settings.format_type(own.ty, own.typmod)
    );
    SqlError::new(sqlstate::DATATYPE_MISMATCH, message)
        .with_hint("Cast the output of the non-recursive term to the correct type.")
}
