//! SET of UPDATE, of ON CONFLICT DO UPDATE and of MERGE.

use super::change::{is_default, mismatch};
use super::through::{Goal, assigned_twice};
use crate::bind::{Binder, Bound, Target, query_of, row_of};
use crate::error::{Result, SqlError};
use crate::expr::Expr;
use crate::roles::Rights;
use crate::sqlstate;
use sqlparser::ast;
use sqlparser::tokenizer::Location;
use vellum_row::CastContext;

/// What a query that gives several columns their values is called.
const GIVEN: &str = "given";

/// What a column is given.
struct Given<'n> {
    target: &'n ast::ObjectName,
    /// `None`: DEFAULT.
    value: Option<Bound>,
    /// Where the value begins.
    start: Location,
}

impl Binder<'_> {
    pub(super) fn assignments(
        &mut self,
        goal: &Goal,
        nodes: &[ast::Assignment],
    ) -> Result<Vec<(usize, Expr)>> {
        let relation = &goal.table;
        let table = relation
            .table()
            .ok_or_else(|| SqlError::internal("no table"))?;
        let mut assignments: Vec<(usize, Expr)> = Vec::with_capacity(nodes.len());
        let queries = self.subqueries.len();
        // Of which the elements are assigned: several may be, one after the other.
        let mut of_elements: Vec<usize> = Vec::new();
        let mut given = Vec::with_capacity(nodes.len());
        for node in nodes {
            self.given_to(node, &mut given)?;
        }
        for Given {
            target,
            value,
            start,
        } in given
        {
            let Target { name, subscripts } = Target::of(target)?;
            let number = goal.target(&name, self.settings);
            let number = number.map_err(|error| error.at(self.place(&name)))?;
            let position = goal.position(number)?;
            let name = goal.column(number).0.to_owned();
            let column = table.schema.column(position);
            let before = assignments.iter().position(|(other, _)| *other == position);
            if before.is_some() && (subscripts.is_empty() || !of_elements.contains(&position)) {
                return Err(assigned_twice(&column.name));
            }
            if !subscripts.is_empty() {
                let Some(value) = value else {
                    let text = "cannot set an array element to DEFAULT";
                    let error = SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, text);
                    return Err(error.at(self.place_of(start)));
                };
                let own = Expr::Column {
                    table: 0,
                    position: position as u16,
                };
                let base = before.map_or(own, |at| assignments.swap_remove(at).1);
                let base = (base, column.ty, column.typmod);
                let expr = self.with_element(&name, base, &subscripts, value)?;
                self.check_changeable(relation, position, true)?;
                of_elements.push(position);
                assignments.push((position, expr));
                continue;
            }
            // A view does not know of DEFAULT that it is the column's own.
            if value.is_some() || goal.is_view() {
                self.check_changeable(relation, position, true)?;
            }
            let expr = match value {
                None => self.default_through(goal, position, true)?,
                Some(bound) => {
                    let (from, start) = (bound.ty, bound.start);
                    let cast =
                        self.coerce(bound, column.ty, column.typmod, CastContext::Assignment);
                    cast.map_err(|error| match from {
                        Some(from) if error.sqlstate() == sqlstate::CANNOT_COERCE => {
                            mismatch(self.settings, &name, column.ty, from)
                                .at(start.and_then(|start| self.place_of(start)))
                        }
                        _ => error,
                    })?
                }
            };
            assignments.push((position, expr));
        }
        for (position, _) in &assignments {
            self.goal_uses(goal, Rights::UPDATE, *position);
        }
        if self.reads_goal(&assignments, &of_elements, queries) {
            self.goal_wants(goal, Rights::SELECT);
        }
        Ok(assignments)
    }

    /// Looks at the names only: of what cannot be written, they are wrong first.
    ///
    /// # Errors
    /// `42703` for a column that there is not.
    pub(super) fn check_named(&self, goal: &Goal, nodes: &[ast::Assignment]) -> Result<()> {
        for node in nodes {
            let targets = match &node.target {
                ast::AssignmentTarget::ColumnName(name) => std::slice::from_ref(name),
                ast::AssignmentTarget::Tuple(names) => names.as_slice(),
            };
            for target in targets {
                let name = Target::of(target)?.name;
                let number = goal.number(&crate::bind::object_name(&name)?.1);
                number.map_err(|error| error.at(self.place(&name)))?;
            }
        }
        Ok(())
    }

    /// Values that columns are given; `None` for DEFAULT. All are bound before the first is cast to its column's type: a parameter that stands alone for
    /// columns of two types is of neither (`42P08`), as in PostgreSQL.
    pub(super) fn given<'n>(
        &mut self,
        nodes: impl Iterator<Item = &'n ast::Expr>,
    ) -> Result<Vec<Option<Bound>>> {
        let mut given = Vec::with_capacity(nodes.size_hint().0);
        for node in nodes {
            given.push(match is_default(node) {
                true => None,
                false => Some(self.expr(node)?),
            });
        }
        Ok(given)
    }

    /// What an item of SET gives, to one column or to several.
    fn given_to<'n>(&mut self, node: &'n ast::Assignment, out: &mut Vec<Given<'n>>) -> Result<()> {
        let mut give =
            |binder: &mut Self, target: &'n ast::ObjectName, value: &ast::Expr| -> Result<()> {
                let bound = binder.given(std::iter::once(value))?;
                out.push(Given {
                    target,
                    value: bound.into_iter().flatten().next(),
                    start: ast::Spanned::span(value).start,
                });
                Ok(())
            };
        match (&node.target, &node.value) {
            (ast::AssignmentTarget::ColumnName(name), value) => give(self, name, value),
            (ast::AssignmentTarget::Tuple(names), value) => {
                let made = self.tuple_values(names.len(), value)?;
                let mut pairs = names.iter().zip(&made);
                pairs.try_for_each(|(name, value)| give(self, name, value))
            }
        }
    }

    /// Whether values are made of columns of the row that is changed. `queries`: how many there were before them. What an element is put into is not read by
    /// who assigns it, as in PostgreSQL.
    fn reads_goal(
        &self,
        assignments: &[(usize, Expr)],
        of_elements: &[usize],
        queries: usize,
    ) -> bool {
        let mut read = self.subqueries[queries..]
            .iter()
            .any(|query| query.select.correlated);
        for (position, value) in assignments {
            let mut own = usize::from(of_elements.contains(position));
            value.walk(&mut |part| match part {
                Expr::Column {
                    table: 0,
                    position: at,
                } if own > 0 && usize::from(*at) == *position => own -= 1,
                Expr::Column { table: 0, .. } => read = true,
                // A column of a view, which is one.
                Expr::Subquery(number) => read |= usize::from(*number) < queries,
                _ => {}
            });
        }
        read
    }

    /// The values of `(a, b) = …`. Of a query, each is a query of its own, which reads one of its columns: it is run as often as columns are set.
    ///
    /// # Errors
    /// `42601` for another number of values; `0A000` for what is neither a row nor a query.
    fn tuple_values(&mut self, count: usize, value: &ast::Expr) -> Result<Vec<ast::Expr>> {
        let fits = |found: usize| match found == count {
            true => Ok(()),
            false => {
                let text = "number of columns does not match number of values";
                Err(SqlError::syntax(text))
            }
        };
        if let Some(items) = row_of(value) {
            fits(items.len())?;
            return Ok(items.into_iter().cloned().collect());
        }
        let Some(query) = query_of(value) else {
            let text =
                "source for a multiple-column UPDATE item must be a sub-SELECT or ROW() expression";
            let error = SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, text);
            return Err(error.at(self.place(value)));
        };
        let general = self.general;
        let (_, columns) = self.within(|binder| binder.query(query))?;
        self.general = general;
        fits(columns.len())?;
        let names: Vec<String> = (1..=count).map(|number| format!("c{number}")).collect();
        let names_listed = names.join(", ");
        let mut values = Vec::with_capacity(count);
        for name in names {
            let text = format!("(SELECT {name} FROM (SELECT 1) AS {GIVEN} ({names_listed}))");
            let mut one = crate::parse::expression(&text)?;
            put_into(&mut one, query)?;
            values.push(one);
        }
        Ok(values)
    }
}

/// Puts a query in the place of the one that another reads.
fn put_into(one: &mut ast::Expr, query: &ast::Query) -> Result<()> {
    if let ast::Expr::Subquery(outside) = one
        && let ast::SetExpr::Select(select) = &mut *outside.body
        && let [table] = select.from.as_mut_slice()
        && let ast::TableFactor::Derived { subquery, .. } = &mut table.relation
    {
        **subquery = query.clone();
        return Ok(());
    }
    Err(SqlError::internal("a query without another"))
}
