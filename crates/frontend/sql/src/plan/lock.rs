//! FOR UPDATE and its like: which rows of a query are locked.

use super::General;
use super::select::{Body, Origin, Select, Source, SourceKind, may_miss};
use crate::bind::{Binder, Reader, folded};
use crate::error::{Result, SqlError};
use crate::expr::Expr;
use crate::lock::Strength;
use crate::roles::Rights;
use crate::rows::Shape;
use crate::sqlstate;
use sqlparser::ast;
use std::sync::Arc;
use vellum_row::Type;

/// Rows of a table that a query locks.
#[derive(Clone, Debug)]
pub(crate) struct RowLock {
    /// Number of the table in the FROM, or of the query there whose table it is.
    pub source: usize,
    /// Of a query's table: the column of the query that has the key.
    pub column: Option<u16>,
    pub shape: Arc<Shape>,
    pub strength: Strength,
    pub wait: LockWait,
}

/// What is done about a row that somebody else has locked; where several are asked for, the last of these.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum LockWait {
    /// It is waited for.
    Block,
    /// SKIP LOCKED: it is no row of the result.
    Skip,
    /// NOWAIT: an error.
    Never,
}

/// What a clause asks for.
#[derive(Clone, Copy)]
struct Asked {
    strength: Strength,
    wait: LockWait,
}

impl Asked {
    fn refused(self, what: &str) -> SqlError {
        self.cannot(&format!("is not allowed with {what}"))
    }

    fn cannot(self, what: &str) -> SqlError {
        let message = format!("{} {what}", word_of(self.strength));
        SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, message)
    }
}

impl Binder<'_> {
    /// Binds the clauses behind a query; its FROM is the scope.
    ///
    /// # Errors
    /// `0A000` for queries whose rows are none of a table; `42P01` for a table that is not in the FROM; `42601` for the name of one with its schema.
    pub(super) fn locks(&mut self, select: &mut Select, clauses: &[ast::LockClause]) -> Result<()> {
        for clause in clauses {
            let (strength, tables) = asked_of(clause)?;
            let wait = match clause.nonblock {
                None => LockWait::Block,
                Some(ast::NonBlock::Nowait) => LockWait::Never,
                Some(ast::NonBlock::SkipLocked) => LockWait::Skip,
            };
            let asked = Asked { strength, wait };
            if matches!(select.body, Body::Values(_)) {
                return Err(asked.cannot("cannot be applied to VALUES"));
            }
            check_lockable(select, asked)?;
            let Body::From { sources, .. } = &mut select.body else {
                continue;
            };
            let mut known = vec![false; tables.len()];
            for number in 0..sources.len() {
                let name = self.scope.tables.get(number).map(|table| &table.name);
                if !tables.is_empty() {
                    let mut meant = false;
                    for (known, table) in known.iter_mut().zip(&tables) {
                        // Of tables that are called alike the first is meant.
                        if !*known && Some(table) == name {
                            (*known, meant) = (true, true);
                        }
                    }
                    if !meant {
                        continue;
                    }
                }
                let named = !tables.is_empty();
                self.lock_source(sources, number, asked, named, &mut select.locks)?;
            }
            if let Some(at) = known.iter().position(|known| !known) {
                if self.scope.joined_as(&tables[at]) {
                    return Err(asked.cannot("cannot be applied to a join"));
                }
                let message = format!(
                    "relation \"{}\" in {} clause not found in FROM clause",
                    tables[at],
                    word_of(strength)
                );
                return Err(SqlError::new(sqlstate::UNDEFINED_TABLE, message));
            }
        }
        Ok(())
    }

    /// The rows of one of a query's sources are locked; `named`: it was asked for by its name.
    fn lock_source(
        &mut self,
        sources: &mut [Source],
        number: usize,
        asked: Asked,
        named: bool,
        locks: &mut Vec<RowLock>,
    ) -> Result<()> {
        let nullable = may_miss(sources, number);
        let check = |locked: bool| match nullable && locked {
            true => Err(asked.cannot("cannot be applied to the nullable side of an outer join")),
            false => Ok(()),
        };
        match &mut sources[number].kind {
            SourceKind::Table { shape, .. } => {
                check(true)?;
                // As PostgreSQL: who may only read keeps no writer waiting.
                let relation = shape.relation.clone();
                self.uses(&relation, Rights::UPDATE);
                self.targets.push(relation.oid);
                let mut before = locks.iter_mut();
                let same = before.find(|lock| lock.source == number && lock.column.is_none());
                if let Some(same) = same {
                    same.strength = same.strength.max(asked.strength);
                    same.wait = same.wait.max(asked.wait);
                    return Ok(());
                }
                locks.push(RowLock {
                    source: number,
                    column: None,
                    shape: shape.clone(),
                    strength: asked.strength,
                    wait: asked.wait,
                });
                Ok(())
            }
            SourceKind::Recursive(_) | SourceKind::Work { .. } if named => {
                Err(asked.cannot("cannot be applied to a WITH query"))
            }
            kind @ (SourceKind::Query(_) | SourceKind::Lateral(_)) => {
                let beside = matches!(kind, SourceKind::Query(_));
                let (SourceKind::Query(inner) | SourceKind::Lateral(inner)) = kind else {
                    return Ok(());
                };
                let view = match &inner.origin {
                    Origin::With if named => {
                        return Err(asked.cannot("cannot be applied to a WITH query"));
                    }
                    Origin::With => return Ok(()),
                    Origin::Own => None,
                    Origin::View(view) => Some(view.clone()),
                };
                check_lockable(inner, asked)?;
                if let Some(view) = &view {
                    self.uses(view, Rights::UPDATE);
                    self.view_depth += 1;
                }
                let reader = view.as_ref().map(|view| Reader::of(view));
                let around = reader.map(|own| std::mem::replace(&mut self.reader, own));
                let locked = match beside && is_part(inner) {
                    true => self.lock_through(inner, number, asked, locks),
                    false => self.lock_within(inner, asked),
                };
                if let Some(around) = around {
                    self.view_depth -= 1;
                    self.reader = around;
                }
                check(locked?)
            }
            SourceKind::Function { .. } | SourceKind::Series { .. } if named => {
                Err(asked.cannot("cannot be applied to a function"))
            }
            _ => Ok(()),
        }
    }

    /// The rows of all tables of a query in FROM, whatever the query around it makes of them. Returns whether there are any.
    fn lock_within(&mut self, select: &mut Select, asked: Asked) -> Result<bool> {
        let Body::From { sources, .. } = &mut select.body else {
            return Ok(false);
        };
        for number in 0..sources.len() {
            self.lock_source(sources, number, asked, false, &mut select.locks)?;
        }
        Ok(!select.locks.is_empty())
    }

    /// The rows of all tables of a query in FROM that come out of the query around it, in which it is number `source`: their keys are more columns of the one
    /// inside, and the locks those of the one around. Returns whether there are any.
    fn lock_through(
        &mut self,
        select: &mut Select,
        source: usize,
        asked: Asked,
        locks: &mut Vec<RowLock>,
    ) -> Result<bool> {
        let Body::From {
            sources, output, ..
        } = &mut select.body
        else {
            return Ok(false);
        };
        let mut inside = Vec::new();
        for number in 0..sources.len() {
            self.lock_source(sources, number, asked, false, &mut inside)?;
        }
        let locked = !inside.is_empty();
        for lock in inside {
            let table = lock.source as u16;
            let position = match lock.column {
                Some(column) => column,
                None => {
                    if !select.keyed.contains(&table) {
                        select.keyed.push(table);
                    }
                    lock.shape.table().schema.len() as u16
                }
            };
            output.push(Expr::Column { table, position });
            select.types.push(Type::Bytea);
            locks.push(RowLock {
                source,
                column: Some(select.types.len() as u16 - 1),
                ..lock
            });
        }
        if locked {
            self.needs(General::LockedQuery);
        }
        Ok(locked)
    }
}

/// A side of a set operation locks no rows.
///
/// # Errors
/// `0A000`.
pub(super) fn check_side(query: &ast::Query) -> Result<()> {
    let mut query = query;
    loop {
        if let Some(clause) = query.locks.first() {
            let asked = Asked {
                strength: asked_of(clause)?.0,
                wait: LockWait::Block,
            };
            return Err(asked.refused("UNION/INTERSECT/EXCEPT"));
        }
        match &*query.body {
            ast::SetExpr::Query(inner) => query = inner,
            _ => return Ok(()),
        }
    }
}

/// Whether a query in FROM is a part of the one around it, whose rows are the same wherever its conditions are looked at.
fn is_part(select: &Select) -> bool {
    select.order.is_empty()
        && select.limit.is_none()
        && select.offset.is_none()
        && select.locks.is_empty()
        && matches!(select.body, Body::From { .. })
        && !select.has_lateral()
}

/// Whether the rows of a query are those of its tables.
///
/// # Errors
/// `0A000`, in the order in which PostgreSQL looks.
fn check_lockable(select: &Select, asked: Asked) -> Result<()> {
    let (grouping, windows) = match &select.body {
        Body::Set { .. } => return Err(asked.refused("UNION/INTERSECT/EXCEPT")),
        Body::Values(_) => return Ok(()),
        Body::From {
            grouping, windows, ..
        } => (grouping, windows),
    };
    if select.distinct || !select.distinct_on.is_empty() {
        return Err(asked.refused("DISTINCT clause"));
    }
    if let Some(grouping) = grouping {
        let what = match grouping {
            grouping if !grouping.keys.is_empty() || grouping.sets.is_some() => "GROUP BY clause",
            grouping if grouping.having.is_some() => "HAVING clause",
            _ => "aggregate functions",
        };
        return Err(asked.refused(what));
    }
    if !windows.is_empty() {
        return Err(asked.refused("window functions"));
    }
    Ok(())
}

/// What a query's limits and its locks may not say together.
///
/// # Errors
/// `42601`.
pub(super) fn check_ties(select: &Select) -> Result<()> {
    let mut locks = select.locks.iter();
    if select.ties && locks.any(|lock| lock.wait == LockWait::Skip) {
        let text = "SKIP LOCKED and WITH TIES options cannot be used together";
        return Err(SqlError::syntax(text));
    }
    Ok(())
}

/// Strength, and the tables that it is for, none for all. The weaker kinds are told by a name in front of the tables' (`parse::options`), and several
/// tables by another (`parse::locks`).
///
/// # Errors
/// `42601` for a table with its schema.
fn asked_of(clause: &ast::LockClause) -> Result<(Strength, Vec<String>)> {
    let parts = clause.of.iter().flat_map(|name| &name.0);
    let mut names: Vec<&ast::Ident> = parts.filter_map(|part| part.as_ident()).collect();
    let mut begins_with = |mark: &str| {
        let found = names.first().is_some_and(|name| name.value == mark);
        if found {
            names.remove(0);
        }
        found
    };
    let weak = begins_with(crate::parse::KEY_LOCK);
    let list = begins_with(crate::parse::LOCKED_LIST);
    let strength = match (clause.lock_type, weak) {
        (ast::LockType::Share, true) => Strength::KeyShare,
        (ast::LockType::Share, false) => Strength::Share,
        (ast::LockType::Update, true) => Strength::NoKeyUpdate,
        (ast::LockType::Update, false) => Strength::Update,
    };
    if names.len() > 1 && !list {
        let word = word_of(strength);
        let message = format!("{word} must specify unqualified relation names");
        return Err(SqlError::syntax(message));
    }
    Ok((strength, names.into_iter().map(folded).collect()))
}

/// What a query locks its rows with, as it is written.
///
/// # Errors
/// As [`asked_of`].
pub(crate) fn lock_of(query: &ast::Query) -> Result<Option<&'static str>> {
    let first = query.locks.first().map(asked_of).transpose()?;
    Ok(first.map(|(strength, _)| word_of(strength)))
}

fn word_of(strength: Strength) -> &'static str {
    match strength {
        Strength::KeyShare => "FOR KEY SHARE",
        Strength::Share => "FOR SHARE",
        Strength::NoKeyUpdate => "FOR NO KEY UPDATE",
        Strength::Update => "FOR UPDATE",
    }
}
