//! Statements that write in WITH, and WITH in front of one that writes; queries of WITH that are to be run once.
//!
//! What writes is run first, in its order, each to its end; all of them and the statement itself see what was there before. What they return is kept, and read by their names.
//! A query that only reads is run where it is read, as often as it is; one that locks rows or draws values would be another each time, so it is kept, too, if it is read more than once: it is
//! run to its end when it is read first.
//! Foreign keys are looked at when all is done.

use super::with_order::of_hidden;
use super::{ForeignTables, OutputColumn, ProgramKind, Subquery};
use crate::bind::{Binder, Meaning, ScopeColumn, With, folded};
use crate::error::{Result, SqlError};
use crate::sqlstate;
use sqlparser::ast;
use std::sync::Arc;
use vellum_base::maps::{HashMap, HashSet};

/// A statement of WITH that is run first.
#[derive(Debug)]
pub(crate) struct Writing {
    /// What its rows are known by where they are read.
    pub number: usize,
    pub kind: ProgramKind,
    pub subqueries: Vec<Subquery>,
}

/// What a change does, by its own words.
pub(super) struct Bound {
    pub kind: ProgramKind,
    pub columns: Vec<OutputColumn>,
    pub returns: bool,
}

/// Whether the body of a query is a statement that writes.
pub(crate) fn writes(query: &ast::Query) -> bool {
    matches!(
        &*query.body,
        ast::SetExpr::Insert(_)
            | ast::SetExpr::Update(_)
            | ast::SetExpr::Delete(_)
            | ast::SetExpr::Merge(_)
    )
}

/// Whether any query of its WITH writes.
pub(crate) fn writes_in_with(query: &ast::Query) -> bool {
    let with = query.with.iter().flat_map(|with| &with.cte_tables);
    with.into_iter().any(|cte| writes(&cte.query))
}

/// Calls `each` with every name that stands alone where a relation is named.
pub(super) fn reads(node: &impl ast::Visit, each: &mut dyn FnMut(String)) {
    crate::parse::walk::relations(node, &mut |relation| {
        if let [ast::ObjectNamePart::Identifier(ident)] = relation.0.as_slice() {
            each(folded(ident));
        }
    });
}

/// Whether a query names a relation so.
fn is_read_in(query: &ast::Query, name: &str) -> bool {
    let mut found = false;
    reads(query, &mut |read| found |= read == name);
    found
}

/// How often a statement's queries of WITH are named, counted once for all of them: a statement may have thousands.
#[derive(Debug, Default)]
pub(crate) struct NamesOfWith(HashMap<String, Count>);

#[derive(Debug, Default)]
struct Count {
    /// Queries of WITH of this name.
    queries: usize,
    /// Places where a relation is named so.
    reads: usize,
}

impl NamesOfWith {
    fn of(statement: &ast::Statement) -> Self {
        let mut names: HashMap<String, Count> = HashMap::default();
        crate::parse::walk::queries(statement, &mut |query| {
            for cte in query.with.iter().flat_map(|with| &with.cte_tables) {
                names.entry(folded(&cte.alias.name)).or_default().queries += 1;
            }
        });
        reads(statement, &mut |read| {
            if let Some(count) = names.get_mut(&read) {
                count.reads += 1;
            }
        });
        Self(names)
    }

    /// Whether more than one place may read a query of WITH. Where another has its name, nobody can tell by names alone.
    fn is_read_again(&self, name: &str) -> bool {
        let count = self.0.get(name);
        count.is_some_and(|count| count.queries == 1 && count.reads > 1)
    }

    /// Whether no place reads a query of WITH.
    fn is_unread(&self, name: &str) -> bool {
        self.0.get(name).is_none_or(|count| count.reads == 0)
    }
}

/// That a query of WITH is given no more names than it has columns.
pub(super) fn check_names(name: &str, names: usize, columns: usize) -> Result<()> {
    if names <= columns {
        return Ok(());
    }
    let message = format!(
        "WITH query \"{name}\" has {columns} columns available but {names} columns specified"
    );
    Err(SqlError::new(sqlstate::INVALID_COLUMN_REFERENCE, message))
}

impl<'c> Binder<'c> {
    /// Binds a statement that reads or changes rows, not in another one.
    ///
    /// # Errors
    /// Of names and types; `0A000` for what is no such statement.
    pub(super) fn top_statement(&mut self, statement: &'c ast::Statement) -> Result<Bound> {
        if let ast::Statement::Query(query) = statement
            && query.with.is_some()
        {
            self.named = Some(NamesOfWith::of(statement));
        }
        match statement {
            ast::Statement::Query(query) if !writes(query) => {
                self.at_top = true;
                let (select, columns) = self.query(query)?;
                Ok(Bound {
                    kind: ProgramKind::Select(Box::new(select)),
                    columns,
                    returns: true,
                })
            }
            ast::Statement::Query(query) => {
                if query.order_by.is_some() || query.limit_clause.is_some() {
                    return Err(SqlError::syntax("a change has no ORDER BY and no LIMIT"));
                }
                if let Some(with) = &query.with {
                    self.with_queries(with, true)?;
                }
                self.change_in(query)
            }
            other => self.change(other),
        }
    }

    /// The change that is the body of a query.
    fn change_in(&mut self, query: &ast::Query) -> Result<Bound> {
        match &*query.body {
            ast::SetExpr::Insert(statement)
            | ast::SetExpr::Update(statement)
            | ast::SetExpr::Delete(statement)
            | ast::SetExpr::Merge(statement) => self.change(statement),
            _ => Err(SqlError::internal("a query that changes nothing")),
        }
    }

    fn change(&mut self, statement: &ast::Statement) -> Result<Bound> {
        let (kind, columns, returns) = match statement {
            ast::Statement::Insert(insert) => {
                let (insert, columns) = self.insert(insert)?;
                let returns = insert.returning.is_some();
                (ProgramKind::Insert(Box::new(insert)), columns, returns)
            }
            ast::Statement::Update(update) => {
                let (update, columns) = self.update(update)?;
                let returns = update.returning.is_some();
                (ProgramKind::Update(Box::new(update)), columns, returns)
            }
            ast::Statement::Delete(delete) => {
                let (delete, columns) = self.delete(delete)?;
                let returns = delete.returning.is_some();
                (ProgramKind::Delete(Box::new(delete)), columns, returns)
            }
            ast::Statement::Merge(merge) => return self.merge(merge),
            other => return Err(SqlError::unsupported(format!("the statement {other}"))),
        };
        Ok(Bound {
            kind,
            columns,
            returns,
        })
    }

    /// Queries that can be read by their names from here on; those of the statement itself may write.
    pub(super) fn with_queries(&mut self, with: &ast::With, at_top: bool) -> Result<()> {
        let mut own = HashSet::default();
        let ordered = self.in_order(with)?;
        for (number, (cte, sees_behind)) in ordered.iter().enumerate() {
            let hidden = |error| {
                let names = ordered[number..].iter();
                let names: Vec<String> = names.map(|(cte, _)| folded(&cte.alias.name)).collect();
                of_hidden(error, names.iter().map(String::as_str), with.recursive)
            };
            let name = folded(&cte.alias.name);
            if !own.insert(name.clone()) {
                let message = format!("WITH query name \"{name}\" specified more than once");
                let error = SqlError::new(sqlstate::DUPLICATE_ALIAS, message);
                return Err(error.at(self.place_of(cte.alias.name.span.start)));
            }
            let reads = matches!(
                &*cte.query.body,
                ast::SetExpr::Select(_)
                    | ast::SetExpr::Query(_)
                    | ast::SetExpr::SetOperation { .. }
                    | ast::SetExpr::Values(_)
            );
            if !reads {
                if !at_top {
                    let text = "WITH clause containing a data-modifying statement must be at the top level";
                    let error = SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, text);
                    let start = cte.alias.name.span.start;
                    return Err(error.at(crate::parse::position(
                        self.text,
                        start.line,
                        start.column,
                    )));
                }
                let writing = self.writing(cte).map_err(hidden)?;
                self.with.push(writing);
                continue;
            }
            let itself = with.recursive && is_read_in(&cte.query, &name);
            if at_top
                && !itself
                && self
                    .named
                    .as_ref()
                    .is_some_and(|all| all.is_read_again(&name))
                && let Some(first) = self.run_first(cte).map_err(hidden)?
            {
                self.with.push(first);
                continue;
            }
            let named = self.named.as_ref();
            let unread = at_top && named.is_some_and(|all| all.is_unread(&name));
            // Its parameters' types are decided here, wherever it is read.
            let decides = !sees_behind && self.may_decide(&*cte.query);
            if !itself && !sees_behind && (unread || decides) {
                self.look_at(cte).map_err(hidden)?;
            }
            let columns = cte.alias.columns.iter();
            self.with.push(With {
                name,
                columns: columns.map(|column| folded(&column.name)).collect(),
                query: Arc::new((*cte.query).clone()),
                meaning: if with.recursive {
                    Meaning::Recursive
                } else {
                    Meaning::Query
                },
                depth: self.outer.len(),
            });
            if itself && decides {
                let at = self.with.len() - 1;
                let read = self.dropped(|binder| binder.inner(|own| own.with_query(at, None)));
                read.map_err(hidden)?;
            }
        }
        Ok(())
    }

    /// A statement of WITH that writes, bound where it stands.
    pub(super) fn writing(&mut self, cte: &ast::Cte) -> Result<With> {
        if matches!(&*cte.query.body, ast::SetExpr::Merge(_)) {
            return Err(SqlError::unsupported("MERGE in WITH"));
        }
        let name = folded(&cte.alias.name);
        let query = Arc::new((*cte.query).clone());
        let general = self.general.take();
        let (bound, subqueries) = self.inner(|binder| {
            if let Some(with) = &query.with {
                binder.with_queries(with, false)?;
            }
            let bound = binder.change_in(&query)?;
            Ok((bound, std::mem::take(&mut binder.subqueries)))
        })?;
        self.general = general;
        let meaning = if bound.returns {
            self.kept_first(&cte.alias, bound.kind, bound.columns, subqueries)?
        } else {
            self.with_uses += 1;
            self.writings.push(Writing {
                number: self.with_uses,
                kind: bound.kind,
                subqueries,
            });
            Meaning::Silent
        };
        Ok(With {
            name,
            columns: Vec::new(),
            query,
            meaning,
            depth: self.outer.len(),
        })
    }

    /// Runs a statement first; what its rows are known by.
    ///
    /// # Errors
    /// `42P10` for more names than it has columns.
    fn kept_first(
        &mut self,
        alias: &ast::TableAlias,
        kind: ProgramKind,
        columns: Vec<OutputColumn>,
        subqueries: Vec<Subquery>,
    ) -> Result<Meaning> {
        let mut names = alias.columns.iter();
        let columns = columns.into_iter().map(|column| ScopeColumn {
            name: names.next().map_or(column.name, |own| folded(&own.name)),
            ty: column.ty,
            typmod: column.typmod,
            number: 0,
            domain: column.domain,
            collation: column.collation,
        });
        let columns: Vec<ScopeColumn> = columns.collect();
        check_names(&folded(&alias.name), alias.columns.len(), columns.len())?;
        self.with_uses += 1;
        let number = self.with_uses;
        self.writings.push(Writing {
            number,
            kind,
            subqueries,
        });
        Ok(Meaning::Written { number, columns })
    }

    /// Binds a query of WITH for what is wrong with it, and for what it says of parameters.
    fn look_at(&mut self, cte: &ast::Cte) -> Result<()> {
        self.binds_with()?;
        let (_, columns) = self.dropped(|binder| binder.query(&cte.query))?;
        check_names(
            &folded(&cte.alias.name),
            cte.alias.columns.len(),
            columns.len(),
        )
    }

    /// Binds what is not run here, so that it needs no rights and reads nothing. What it says of parameters stays.
    pub(super) fn dropped<R>(&mut self, work: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        let (general, before) = (self.general.take(), self.writings.len());
        let (uses, targets) = (self.with_uses, self.targets.len());
        let (accesses, lent) = (self.accesses.len(), self.lent.len());
        let columns = self.column_uses.len();
        let read: Vec<bool> = self.outer.iter().map(|outer| outer.read).collect();
        let literals_as = std::mem::take(&mut self.literals_as);
        let set_functions = self.set_functions.take();
        let steps: Vec<usize> = self
            .with
            .iter_mut()
            .filter_map(times_read)
            .map(|read| *read)
            .collect();
        let done = work(self);
        for (read, before) in self.with.iter_mut().filter_map(times_read).zip(steps) {
            *read = before;
        }
        (self.literals_as, self.set_functions) = (literals_as, set_functions);
        self.general = general;
        self.writings.truncate(before);
        self.with_uses = uses;
        self.targets.truncate(targets);
        self.accesses.truncate(accesses);
        self.column_uses.truncate(columns);
        self.lent.truncate(lent);
        for (outer, read) in self.outer.iter_mut().zip(read) {
            outer.read = read;
        }
        done
    }

    /// A query of WITH that is run first, if it would be another each time that it is read.
    fn run_first(&mut self, cte: &ast::Cte) -> Result<Option<With>> {
        self.binds_with()?;
        let (general, before) = (self.general.take(), self.writings.len());
        let uses = self.with_uses;
        let bound = self.query(&cte.query);
        self.general = general;
        let (select, columns) = bound?;
        if !select.is_another_each_time() {
            // It is bound again where it is read.
            self.writings.truncate(before);
            self.with_uses = uses;
            return Ok(None);
        }
        let kind = ProgramKind::Select(Box::new(select));
        let meaning = self.kept_first(&cte.alias, kind, columns, Vec::new())?;
        Ok(Some(With {
            name: folded(&cte.alias.name),
            columns: Vec::new(),
            query: Arc::new((*cte.query).clone()),
            meaning,
            depth: self.outer.len(),
        }))
    }
}

/// How often a query of WITH that is being bound was read in itself.
fn times_read(with: &mut With) -> Option<&mut usize> {
    match &mut with.meaning {
        Meaning::Work { read, .. } => Some(read),
        _ => None,
    }
}

impl ProgramKind {
    /// The foreign keys that it may meet; none of a SELECT.
    pub fn keys(&self) -> Option<&ForeignTables> {
        match self {
            Self::Select(_) => None,
            Self::Insert(insert) => Some(&insert.keys),
            Self::Update(update) => Some(&update.keys),
            Self::Delete(delete) => Some(&delete.keys),
            Self::Merge(merge) => Some(&merge.keys),
        }
    }
}
