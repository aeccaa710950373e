//! Functions that return sets, in the list of a query that groups or has window functions: they are called when these are done.
//!
//! Such a query is made two: the one within makes groups and windows, and what of their results, and of columns, the list, ORDER BY and the functions' arguments read; the one around it calls the functions for
//! each of these rows, and sorts. One whose groups or windows read what a function returns calls it before, as if it stood in FROM.
//!
//! Invariants:
//! - SB1 What reads nothing that a function returns is computed within, as a whole if its type is known, else its leaves are.

use super::select::{Body, Source, SourceKind, plain};
use super::{General, OutputColumn, SetCall, SortBy, SortKey, Subquery, SubqueryKind};
use crate::bind::{Aggregate, Binder, GROUPING_SLOTS, ScopeTable, WINDOW_SLOTS, Window};
use crate::error::{Result, SqlError};
use crate::expr::{Expr, RowsFrom};
use vellum_row::Type;

/// What of a query reads the rows of its functions.
pub(super) struct Behind {
    calls: Vec<SetCall>,
    /// The list, over the rows within and what the functions return.
    output: Vec<Expr>,
    sort: Vec<SortKey>,
    /// Of the columns within.
    types: Vec<Type>,
}

/// Where the types of leaves stand.
pub(super) struct Leaves<'l> {
    pub tables: &'l [ScopeTable],
    pub keys: &'l [(Expr, Type)],
    pub aggregates: &'l [Aggregate],
    pub windows: &'l [Window],
    pub subqueries: &'l [Subquery],
}

impl Leaves<'_> {
    /// The number of the functions, which are the last table.
    fn table(&self) -> u16 {
        self.tables.len().saturating_sub(1) as u16
    }

    fn type_of(&self, expr: &Expr) -> Option<Type> {
        if let Some((_, ty)) = self.keys.iter().find(|(key, _)| key == expr) {
            return Some(*ty);
        }
        match expr {
            Expr::Column { table, position } => {
                let table = self.tables.get(usize::from(*table))?;
                Some(table.columns.get(usize::from(*position))?.ty)
            }
            Expr::Slot(number) => {
                let number = usize::from(*number);
                let (grouping, window) = (usize::from(GROUPING_SLOTS), usize::from(WINDOW_SLOTS));
                if number >= window {
                    return Some(self.windows.get(number - window)?.result);
                }
                match number >= grouping {
                    true => Some(Type::Int4),
                    false => Some(self.aggregates.get(number)?.result),
                }
            }
            Expr::Subquery(number) => {
                let subquery = self.subqueries.get(usize::from(*number))?;
                match subquery.kind {
                    SubqueryKind::Exists => Some(Type::Bool),
                    SubqueryKind::Array(element) => Some(element.gathered()),
                    _ => subquery.select.types.first().copied(),
                }
            }
            Expr::InSubquery { .. }
            | Expr::Rows {
                from: RowsFrom::Subquery(_),
                ..
            } => Some(Type::Bool),
            _ => None,
        }
    }
}

/// Columns within, as they are asked for.
struct Within<'l> {
    leaves: Leaves<'l>,
    table: u16,
    exprs: Vec<Expr>,
    types: Vec<Type>,
}

impl Within<'_> {
    fn column(&mut self, expr: Expr, ty: Type) -> Result<Expr> {
        let known = self.exprs.iter().position(|own| *own == expr);
        let at = known.unwrap_or(self.exprs.len());
        if known.is_none() {
            self.exprs.push(expr);
            self.types.push(ty);
        }
        let position = u16::try_from(at).map_err(|_| crate::parse::too_deep())?;
        Ok(Expr::Column { table: 0, position })
    }

    /// SB1. The functions are the second table then.
    fn divide(&mut self, expr: &mut Expr, whole: Option<Type>) -> Result<()> {
        if let Expr::Column { table, position } = expr
            && *table == self.table
        {
            *expr = Expr::Column {
                table: 1,
                position: *position,
            };
            return Ok(());
        }
        // What may be another for each row is one for each that a function returns.
        let ty = whole.filter(|_| !reads(expr, self.table) && !expr.is_volatile());
        if let Some(ty) = ty.or_else(|| self.leaves.type_of(expr)) {
            if reads(expr, self.table) {
                let text = "a function that returns sets beside a subquery";
                return Err(SqlError::unsupported(text));
            }
            *expr = self.column(expr.clone(), ty)?;
            return Ok(());
        }
        let mut done = Ok(());
        expr.children_mut(&mut |child| {
            if done.is_ok() {
                done = self.divide(child, None);
            }
        });
        done
    }
}

/// Whether an expression reads a table.
fn reads(expr: &Expr, wanted: u16) -> bool {
    let mut found = false;
    expr.walk(&mut |part| found |= matches!(part, Expr::Column { table, .. } if *table == wanted));
    found
}

/// Whether groups, which are made before the functions are called, read what these return.
fn is_before(leaves: &Leaves<'_>, having: Option<&Expr>) -> bool {
    let table = leaves.table();
    let mut before = false;
    let keys = leaves.keys.iter().map(|(key, _)| key);
    let arguments = leaves.aggregates.iter().flat_map(|one| {
        let arguments = one.arguments.iter().map(|(expr, _)| expr);
        arguments.chain(&one.filter)
    });
    for expr in keys.chain(arguments).chain(having) {
        before |= reads(expr, table);
    }
    before
}

/// The same of window functions. The functions are the last of `tables`.
pub(super) fn windows_before(windows: &mut [Window], tables: &[ScopeTable]) -> bool {
    let table = tables.len().saturating_sub(1) as u16;
    let mut before = false;
    for window in windows {
        window.expressions_mut(&mut |expr| before |= reads(expr, table));
    }
    before
}

/// The arguments of the functions, which are the last of the sources.
pub(super) fn arguments_of(sources: &[Source]) -> impl Iterator<Item = &Expr> {
    let calls = match sources.last().map(|source| &source.kind) {
        Some(SourceKind::Function { calls, .. }) => calls.as_slice(),
        _ => &[],
    };
    calls.iter().flat_map(|call| &call.arguments)
}

/// Functions that are called before groups and windows are made know nothing of these.
///
/// # Errors
/// `0A000`.
pub(super) fn check_known(sources: &[Source]) -> Result<()> {
    let mut known = true;
    for argument in arguments_of(sources) {
        argument.walk(&mut |part| known &= !matches!(part, Expr::Slot(_)));
    }
    match known {
        true => Ok(()),
        false => Err(SqlError::unsupported(
            "a function that returns sets of what is grouped, here",
        )),
    }
}

/// Divides a query whose functions are the last of `sources`: what `output` and `sort` read of the rest becomes the list of the query within. `alone`: nothing else
/// is asked of its rows than to be sorted.
///
/// # Errors
/// `0A000` for a function whose arguments read another, and for one that is not alone.
pub(super) fn divide(
    sources: &mut Vec<Source>,
    leaves: Leaves<'_>,
    (having, alone): (Option<&Expr>, bool),
    (output, columns): (&mut Vec<Expr>, &[OutputColumn]),
    sort: &mut Vec<SortKey>,
) -> Result<Option<Behind>> {
    let table = leaves.table();
    if is_before(&leaves, having) {
        return Ok(None);
    }
    if !alone {
        let text = "a function that returns sets beside groups or window functions, here";
        return Err(SqlError::unsupported(text));
    }
    let Some(Source {
        kind: SourceKind::Function { calls, .. },
        ..
    }) = sources.pop()
    else {
        return Err(SqlError::internal("functions that are no table"));
    };
    let mut calls = calls;
    if sources.is_empty() {
        sources.push(Source::inner(SourceKind::Nothing));
    }
    let mut within = Within {
        leaves,
        table,
        exprs: Vec::new(),
        types: Vec::new(),
    };
    for argument in calls.iter_mut().flat_map(|call| &mut call.arguments) {
        if reads(argument, table) {
            let text = "a function that returns sets of what another returns";
            return Err(SqlError::unsupported(text));
        }
        within.divide(argument, None)?;
    }
    for (expr, column) in output.iter_mut().zip(columns) {
        within.divide(expr, Some(column.ty))?;
    }
    for key in sort.iter_mut() {
        let ty = key.ty;
        if let SortBy::Expr(expr) = &mut key.expr {
            within.divide(expr, Some(ty))?;
        }
    }
    let made = std::mem::replace(output, within.exprs);
    Ok(Some(Behind {
        calls,
        output: made,
        sort: std::mem::take(sort),
        types: within.types,
    }))
}

impl Binder<'_> {
    /// The query around one that [`divide`] has divided. `around`: why what this query stands in is no program.
    pub(super) fn set_behind(
        &mut self,
        within: Body,
        behind: Behind,
        around: Option<General>,
    ) -> (Body, Vec<SortKey>) {
        let mut inner = plain(within, Vec::new());
        inner.types = behind.types;
        inner.subqueries = std::mem::take(&mut self.subqueries);
        inner.general = std::mem::replace(&mut self.general, around);
        let functions = Source::inner(SourceKind::Function {
            calls: behind.calls,
            ordinality: false,
        });
        let body = Body::From {
            sources: vec![Source::inner(SourceKind::Query(Box::new(inner))), functions],
            grouping: None,
            windows: Vec::new(),
            output: behind.output,
        };
        (body, behind.sort)
    }
}
