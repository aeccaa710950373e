//! GROUP BY: keys, sets of keys, GROUPING.

use super::groups_apart::depending_in_subqueries;
use super::output::check_equality;
use super::reads::columns_read;
use super::{OutputColumn, SortBy, SortKey, Subquery, SubqueryKind};
use crate::bind::{
    AggregateKind, Binder, Bound, COMPARED_MAX, GROUPING_SLOTS, Scope, WINDOW_SLOTS, folded,
};
use crate::error::{Result, SqlError};
use crate::expr::{Expr, RowsFrom};
use crate::parse::walk;
use crate::sqlstate;
use sqlparser::ast;
use vellum_base::maps::HashSet;
use vellum_row::Type;

/// Sets of a query, at most; as in PostgreSQL.
const SETS_MAX: usize = 4096;
/// Elements of CUBE, at most; as in PostgreSQL.
const CUBE_MAX: usize = 12;
/// Arguments of GROUPING, at most: their bits stand in an integer.
const ASKED_MAX: usize = 31;

/// Sets of keys, by their numbers.
type Sets = Vec<Vec<usize>>;

/// Keys while they are found.
struct Keys<'k> {
    found: Vec<(Expr, Type)>,
    output: &'k [Expr],
    columns: &'k [OutputColumn],
}

impl Binder<'_> {
    /// An error about a column that is no key of its groups, with the place where it is read first outside of an aggregate.
    #[cold]
    pub(super) fn at_ungrouped(&self, error: SqlError, select: &ast::Select) -> SqlError {
        let said = error.message().strip_prefix("column \"");
        let said = said.and_then(|rest| rest.split_once("\" must appear"));
        let named = said.and_then(|(named, _)| named.split_once('.'));
        let Some((table, column)) = named.map(|(table, own)| (table.to_owned(), own.to_owned()))
        else {
            return error;
        };
        let is_aggregate = |node: &ast::Expr| match node {
            ast::Expr::Function(function) if function.over.is_none() => {
                let name = crate::bind::called_name(&function.name);
                name.is_ok_and(|name| AggregateKind::find(&name).is_some())
            }
            _ => false,
        };
        let mut place = None;
        // A place is counted from the text's beginning: of the one that is told alone.
        let begins = |node: &ast::Expr| match node {
            ast::Expr::Identifier(own) => Some(own.span.start),
            ast::Expr::CompoundIdentifier(parts) => parts.first().map(|own| own.span.start),
            _ => None,
        };
        let look = |node: &ast::Expr, place: &mut Option<u32>| {
            let mut within = HashSet::default();
            walk::expressions(node, &mut |node| {
                if place.is_some() {
                    return;
                }
                if is_aggregate(node) {
                    walk::expressions(node, &mut |inner| within.extend(begins(inner)));
                }
                let is_it = match node {
                    ast::Expr::Identifier(own) => folded(own) == column,
                    ast::Expr::CompoundIdentifier(parts) => match parts.as_slice() {
                        [.., of, own] => folded(of) == table && folded(own) == column,
                        _ => false,
                    },
                    _ => false,
                };
                if is_it && begins(node).is_none_or(|own| !within.contains(&own)) {
                    *place = self.place(node);
                }
            });
        };
        for item in &select.projection {
            match item {
                ast::SelectItem::UnnamedExpr(node)
                | ast::SelectItem::ExprWithAlias { expr: node, .. } => look(node, &mut place),
                other => place = place.or_else(|| self.place(other)),
            }
        }
        if let Some(node) = &select.having {
            look(node, &mut place);
        }
        error.at(place)
    }

    /// The keys of a GROUP BY, and the sets of them if it has some.
    ///
    /// # Errors
    /// Of names and types; `54001`, `54011` for too many sets.
    pub(super) fn group_by(
        &mut self,
        list: &[ast::Expr],
        output: &[Expr],
        columns: &[OutputColumn],
    ) -> Result<(Vec<(Expr, Type)>, Option<Sets>)> {
        let mut keys = Keys {
            found: Vec::new(),
            output,
            columns,
        };
        let special = |expr: &ast::Expr| match expr {
            ast::Expr::GroupingSets(_) | ast::Expr::Cube(_) | ast::Expr::Rollup(_) => true,
            ast::Expr::Tuple(list) => list.is_empty(),
            _ => false,
        };
        if !list.iter().any(special) {
            let mut items = Vec::with_capacity(list.len());
            list.iter()
                .for_each(|expr| in_parentheses(expr, &mut items));
            for expr in items {
                for key in self.group_keys(expr, output, columns, "GROUP BY")?.0 {
                    check_key(&key)?;
                    SqlError::check_room(keys.found.len(), COMPARED_MAX, "keys of groups")?;
                    keys.found.push(key);
                }
            }
            return Ok((keys.found, None));
        }
        // Each item has several sets: one of each together make one of the query's.
        let mut sets: Sets = vec![Vec::new()];
        for expr in list {
            let own = self.sets_of(expr, &mut keys)?;
            check_sets(sets.len() * own.len())?;
            let pairs = sets
                .iter()
                .flat_map(|set| own.iter().map(move |other| (set, other)));
            sets = pairs
                .map(|(set, other)| {
                    let mut all = set.clone();
                    all.extend(other.iter().filter(|key| !set.contains(key)));
                    all
                })
                .collect();
        }
        Ok((keys.found, Some(sets)))
    }

    fn sets_of(&mut self, expr: &ast::Expr, keys: &mut Keys<'_>) -> Result<Sets> {
        let elements = match expr {
            ast::Expr::GroupingSets(list) if list.iter().any(|set| inner_sets(set).is_some()) => {
                // Those of each set in turn.
                let mut sets = Sets::new();
                for set in list {
                    match inner_sets(set) {
                        Some(inner) => sets.extend(self.sets_of(&inner, keys)?),
                        None => sets.push(self.set(set, true, keys)?),
                    }
                    check_sets(sets.len())?;
                }
                return Ok(sets);
            }
            ast::Expr::GroupingSets(list) | ast::Expr::Cube(list) | ast::Expr::Rollup(list) => list,
            plain => {
                let list = std::slice::from_ref(plain);
                return Ok(vec![self.set(list, false, keys)?]);
            }
        };
        let elements = elements.iter().map(|list| self.set(list, true, keys));
        let elements = elements.collect::<Result<Sets>>()?;
        let together = |parts: &mut dyn Iterator<Item = &Vec<usize>>| {
            let mut all: Vec<usize> = Vec::new();
            for key in parts.flatten() {
                if !all.contains(key) {
                    all.push(*key);
                }
            }
            all
        };
        Ok(match expr {
            ast::Expr::Rollup(_) => (0..=elements.len())
                .rev()
                .map(|count| together(&mut elements[..count].iter()))
                .collect(),
            ast::Expr::Cube(_) => {
                if elements.len() > CUBE_MAX {
                    let text = format!("CUBE is limited to {CUBE_MAX} elements");
                    return Err(SqlError::new(sqlstate::TOO_MANY_COLUMNS, text));
                }
                let count = elements.len();
                (0..1usize << count)
                    .rev()
                    .map(|chosen| {
                        let of = |at: &usize| chosen >> (count - 1 - at) & 1 == 1;
                        together(&mut (0..count).filter(of).map(|at| &elements[at]))
                    })
                    .collect()
            }
            _ => elements,
        })
    }

    /// The keys of a list, in which parentheses stand for several. `some`: other sets may be without them.
    fn set(&mut self, list: &[ast::Expr], some: bool, keys: &mut Keys<'_>) -> Result<Vec<usize>> {
        let mut set = Vec::new();
        for expr in list {
            if let ast::Expr::Tuple(inner) = expr {
                for key in self.set(inner, some, keys)? {
                    if !set.contains(&key) {
                        set.push(key);
                    }
                }
                continue;
            }
            let (own, is_row) = self.group_keys(expr, keys.output, keys.columns, "GROUP BY")?;
            if is_row && some {
                // Its parts are the keys: where they are null it would be a row of nulls.
                return Err(SqlError::unsupported("a row in a set of keys"));
            }
            for key in own {
                check_key(&key)?;
                let known = keys.found.iter().position(|other| other.0 == key.0);
                let number = known.unwrap_or(keys.found.len());
                if known.is_none() {
                    SqlError::check_room(number, COMPARED_MAX, "keys of groups")?;
                    keys.found.push(key);
                }
                if !set.contains(&number) {
                    set.push(number);
                }
            }
        }
        Ok(set)
    }

    /// GROUPING: which of its arguments are not of a row's set.
    ///
    /// # Errors
    /// `42803` where nothing is grouped; `54023`.
    pub fn grouping(&mut self, function: &ast::Function) -> Result<Bound> {
        let ast::FunctionArguments::List(list) = &function.args else {
            return Err(SqlError::syntax("GROUPING needs arguments"));
        };
        if list.args.len() > ASKED_MAX {
            let text = "GROUPING must have fewer than 32 arguments";
            return Err(SqlError::new(sqlstate::TOO_MANY_ARGUMENTS, text));
        }
        let Some(mut known) = self.groupings.take() else {
            let text = "grouping operations are not allowed here";
            return Err(SqlError::new(sqlstate::GROUPING_ERROR, text));
        };
        let mut asked = Vec::with_capacity(list.args.len());
        let mut failed = None;
        for argument in &list.args {
            let ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(expr)) = argument else {
                failed = Some(SqlError::syntax("an argument of GROUPING is no expression"));
                break;
            };
            match self.expr(expr) {
                Ok(bound) if bound.ty == Some(Type::Record) => {
                    failed = Some(SqlError::unsupported("GROUPING of a row"));
                    break;
                }
                Ok(bound) => asked.push(bound.expr),
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            }
        }
        let number = known.len();
        known.push(asked);
        self.groupings = Some(known);
        match failed {
            Some(error) => Err(error),
            None => {
                SqlError::check_room(number, COMPARED_MAX, "GROUPING")?;
                Ok(Bound::new(
                    Expr::Slot(GROUPING_SLOTS + number as u16),
                    Type::Int4,
                ))
            }
        }
    }
}

/// What stands in parentheses: they stand for it.
fn in_parentheses<'e>(expr: &'e ast::Expr, items: &mut Vec<&'e ast::Expr>) {
    match expr {
        ast::Expr::Tuple(several) => {
            several.iter().for_each(|expr| in_parentheses(expr, items));
        }
        ast::Expr::Nested(inner) => in_parentheses(inner, items),
        one => items.push(one),
    }
}

/// Whether rows can be grouped by it.
///
/// # Errors
/// `42803`, `42P20` for what is computed of groups or behind them; `42883` for types without equality.
fn check_key((expr, ty): &(Expr, Type)) -> Result<()> {
    let mut wrong = None;
    expr.walk(&mut |part| {
        if let Expr::Slot(number) = part {
            wrong = Some(*number);
        }
    });
    let (state, what) = match wrong {
        None => return check_equality(*ty),
        Some(number) if number >= WINDOW_SLOTS => (sqlstate::WINDOWING_ERROR, "window functions"),
        Some(number) if number >= GROUPING_SLOTS => {
            (sqlstate::GROUPING_ERROR, "grouping operations")
        }
        Some(_) => (sqlstate::GROUPING_ERROR, "aggregate functions"),
    };
    let message = format!("{what} are not allowed in GROUP BY");
    Err(SqlError::new(state, message))
}

/// Adds those columns that are read of tables whose whole primary key is among the keys: they are the same for all rows of a group, and SQL lets them
/// be read. So are subqueries that read nothing else of the query, unless these are asked behind the groups (`parted`): then the columns are that they read.
/// Of `several` sets of keys nothing is added: what is no key of a set is null there.
///
/// # Errors
/// `42803` for a subquery that reads what may differ within a group.
pub(super) fn depending(
    keys: &mut Vec<(Expr, Type)>,
    read: &[Expr],
    (several, parted): (bool, bool),
    scope: &Scope,
    subqueries: &[Subquery],
) -> Result<()> {
    let apart = told_apart(keys, scope);
    let mut same = Vec::new();
    if !parted {
        for expr in read {
            of_group(expr, keys, &apart, (scope, subqueries), &mut same)?;
        }
    }
    if several {
        return Ok(());
    }
    if parted {
        depending_in_subqueries(keys, read, &apart, scope, subqueries);
    }
    if apart.contains(&true) {
        for expr in read {
            found(expr, keys, &apart, scope);
        }
    }
    keys.extend(same);
    return Ok(());

    fn found(expr: &Expr, keys: &mut Vec<(Expr, Type)>, apart: &[bool], scope: &Scope) {
        // What is a key as a whole reads nothing else.
        if keys.iter().any(|(key, _)| key == expr) {
            return;
        }
        if let Expr::Column { table, position } = expr
            && apart.get(usize::from(*table)) == Some(&true)
            && keys.len() < usize::from(COMPARED_MAX)
        {
            let column = &scope.tables[usize::from(*table)].columns[usize::from(*position)];
            // Also of a type that has no equality: within a group it is the value of one row.
            keys.push((expr.clone(), column.ty));
            return;
        }
        expr.children(&mut |child| found(child, keys, apart, scope));
    }
}

/// Of each table, whether its whole primary key is among the keys.
pub(super) fn told_apart(keys: &[(Expr, Type)], scope: &Scope) -> Vec<bool> {
    let is_key = |table: usize, position: usize| {
        let wanted = (table as u16, position as u16);
        let key = |(expr, _): &(Expr, Type)| matches!(expr, Expr::Column { table, position } if (*table, *position) == wanted);
        keys.iter().any(key)
    };
    let is_told_apart = |number: usize| {
        let relation = scope.tables[number].relation.as_ref();
        let Some(table) = relation.and_then(|relation| relation.table()) else {
            return false;
        };
        let key = table.primary_key().filter(|key| key.keeps_apart());
        key.is_some_and(|key| {
            let mut columns = key.key_columns();
            columns.all(|column| is_key(number, table.position(column)))
        })
    };
    (0..scope.tables.len()).map(is_told_apart).collect()
}

/// Collects the subqueries of an expression over groups that read columns of the query, all of them the same within a group.
fn of_group(
    expr: &Expr,
    keys: &[(Expr, Type)],
    apart: &[bool],
    (scope, subqueries): (&Scope, &[Subquery]),
    same: &mut Vec<(Expr, Type)>,
) -> Result<()> {
    let known = |expr: &Expr| keys.iter().any(|(key, _)| key == expr);
    if known(expr) || same.iter().any(|(key, _)| key == expr) {
        return Ok(());
    }
    let number = match expr {
        Expr::Subquery(number)
        | Expr::InSubquery {
            subquery: number, ..
        }
        | Expr::Rows {
            from: RowsFrom::Subquery(number),
            ..
        } => *number,
        _ => {
            let mut done = Ok(());
            expr.children(&mut |child| {
                if done.is_ok() {
                    done = of_group(child, keys, apart, (scope, subqueries), same);
                }
            });
            return done;
        }
    };
    let Some(subquery) = subqueries.get(usize::from(number)) else {
        return Ok(());
    };
    if !subquery.select.correlated {
        return Ok(());
    }
    let (mut reads, mut differs) = (false, None);
    columns_read(
        &Expr::Subquery(number),
        subqueries,
        &mut |table, position| {
            reads = true;
            let is_same = apart.get(usize::from(table)) == Some(&true)
                || known(&Expr::Column { table, position });
            if !is_same {
                differs = Some((usize::from(table), usize::from(position)));
            }
        },
    );
    if let Some((table, position)) = differs {
        let table = &scope.tables[table];
        return Err(ungrouped_in_subquery(
            &table.name,
            &table.columns[position].name,
        ));
    }
    if !reads {
        return Ok(());
    }
    let ty = match (&subquery.kind, subquery.select.types.first()) {
        (SubqueryKind::Scalar, Some(ty)) => *ty,
        (SubqueryKind::Array(element), _) => element.gathered(),
        _ => Type::Bool,
    };
    let mut computed = false;
    expr.walk(&mut |part| computed |= matches!(part, Expr::Slot(_)));
    debug_assert!(!computed, "a subquery that is asked behind the groups");
    SqlError::check_room(keys.len() + same.len(), COMPARED_MAX, "keys of groups")?;
    check_equality(ty)?;
    same.push((expr.clone(), ty));
    Ok(())
}

/// `42803`.
#[cold]
pub(super) fn ungrouped_in_subquery(table: &str, column: &str) -> SqlError {
    let message = format!("subquery uses ungrouped column \"{table}.{column}\" from outer query");
    SqlError::new(sqlstate::GROUPING_ERROR, message)
}

/// Numbers of the keys that GROUPING asks for.
///
/// # Errors
/// `42803` for what is no key.
pub(super) fn asked_keys(asked: Vec<Vec<Expr>>, keys: &[Expr]) -> Result<Sets> {
    let number = |expr: Expr| {
        let found = keys.iter().position(|key| *key == expr);
        found.ok_or_else(|| {
            let text =
                "arguments to GROUPING must be grouping expressions of the associated query level";
            SqlError::new(sqlstate::GROUPING_ERROR, text)
        })
    };
    let asked = asked.into_iter();
    asked
        .map(|list| list.into_iter().map(number).collect())
        .collect()
}

/// What DISTINCT ON tells rows apart by comes first in their order.
///
/// # Errors
/// `42P10`.
pub(super) fn check_distinct_order(
    apart: &[(Expr, Type)],
    sort: &[SortKey],
    output: &[Expr],
) -> Result<()> {
    let expr = |key: &SortKey| match &key.expr {
        SortBy::Output(at) => output[*at].clone(),
        SortBy::Expr(expr) => expr.clone(),
    };
    let sort: Vec<Expr> = sort.iter().map(expr).collect();
    let is_apart = |expr: &Expr| apart.iter().any(|(own, _)| own == expr);
    let first = sort.iter().take_while(|expr| is_apart(expr)).count();
    let in_front = |own: &Expr| sort[..first].contains(own);
    if first < sort.len() && !apart.iter().all(|(own, _)| in_front(own)) {
        let text = "SELECT DISTINCT ON expressions must match initial ORDER BY expressions";
        return Err(SqlError::new(sqlstate::INVALID_COLUMN_REFERENCE, text));
    }
    Ok(())
}

/// ROLLUP or CUBE in GROUPING SETS, where the parser takes them for functions.
fn inner_sets(set: &[ast::Expr]) -> Option<ast::Expr> {
    let [ast::Expr::Function(function)] = set else {
        return None;
    };
    let [ast::ObjectNamePart::Identifier(name)] = function.name.0.as_slice() else {
        return None;
    };
    let ast::FunctionArguments::List(list) = &function.args else {
        return None;
    };
    let sets = list.args.iter().map(|argument| match argument {
        ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(expr)) => Some(match expr {
            ast::Expr::Tuple(several) => several.clone(),
            one => vec![one.clone()],
        }),
        _ => None,
    });
    let sets = sets.collect::<Option<Vec<_>>>()?;
    let bare = name.quote_style.is_none() && function.over.is_none();
    match &*name.value.to_ascii_lowercase() {
        "rollup" if bare => Some(ast::Expr::Rollup(sets)),
        "cube" if bare => Some(ast::Expr::Cube(sets)),
        _ => None,
    }
}

/// The keys of a GROUP BY, and whether its sets are told apart (DISTINCT).
pub(super) fn without_mark(list: &[ast::Expr]) -> (&[ast::Expr], bool) {
    match list {
        [ast::Expr::Identifier(name), rest @ ..] if name.value == crate::parse::TOLD_APART => {
            (rest, true)
        }
        all => (all, false),
    }
}

/// Leaves one of sets of the same keys.
pub(super) fn tell_apart(sets: &mut Sets) {
    let mut known = vellum_base::maps::HashSet::default();
    sets.retain(|set| {
        let mut keys = set.clone();
        keys.sort_unstable();
        known.insert(keys)
    });
}

/// Before more of them are made.
fn check_sets(count: usize) -> Result<()> {
    if count > SETS_MAX {
        let text = format!("too many grouping sets present (maximum {SETS_MAX})");
        return Err(SqlError::new(sqlstate::STATEMENT_TOO_COMPLEX, text));
    }
    Ok(())
}

/// Replaces what is a group's key by its slot, and slots of aggregates and of GROUPING by those behind the keys.
pub(super) fn regroup(
    expr: &mut Expr,
    keys: &[Expr],
    aggregates: usize,
    scope: &Scope,
) -> Result<()> {
    if let Some(at) = keys.iter().position(|key| key == expr) {
        *expr = Expr::Slot(at as u16);
        return Ok(());
    }
    match expr {
        // Window functions come behind the groups.
        Expr::Slot(number) if *number >= WINDOW_SLOTS => {}
        Expr::Slot(number) if *number >= GROUPING_SLOTS => {
            *number = *number - GROUPING_SLOTS + (keys.len() + aggregates) as u16;
        }
        Expr::Slot(number) => *number += keys.len() as u16,
        Expr::Column { table, position } => {
            let table = &scope.tables[usize::from(*table)];
            let column = &table.columns[usize::from(*position)].name;
            let message = format!(
                "column \"{}.{column}\" must appear in the GROUP BY clause or be used in an aggregate function",
                table.name
            );
            return Err(SqlError::new(sqlstate::GROUPING_ERROR, message));
        }
        other => {
            let mut result = Ok(());
            other.children_mut(&mut |child| {
                if result.is_ok() {
                    result = regroup(child, keys, aggregates, scope);
                }
            });
            return result;
        }
    }
    Ok(())
}
