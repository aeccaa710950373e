//! JOIN: which tables are joined with which, and what is found in a join by names.
//!
//! A FROM is a list of tables in the order in which they stand, and its joins are ranges of that list: what stands right of a JOIN is one table,
//! or a join that begins with it (`Source::nested`).
//!
//! Invariants:
//! - J1 A join on the right begins with a table that begins no other: where its own left side is a join, both are the same chain.
//! - J2 A join on the right of an inner join that keeps no rows of a side is none of its own: its tables follow those before.
//! - J3 An ON reads no table but those of its own join; they are the last of the list while it is bound.

use super::select::{Join, Source, place};
use super::{General, conjuncts};
use crate::bind::{Binder, Bound, Joined, JoinedColumn, NamedTable, folded};
use crate::error::{Result, SqlError};
use crate::expr::Expr;
use crate::sqlstate;
use sqlparser::ast;

impl Binder<'_> {
    /// Tables that are joined by JOIN: an item of FROM.
    pub(super) fn from(
        &mut self,
        table: &ast::TableWithJoins,
        sources: &mut Vec<Source>,
    ) -> Result<()> {
        let from = self.scope.tables.len();
        self.chain(table, from, sources)
    }

    /// A table and those that are joined to it, one after the other; `from` is the first table of them.
    fn chain(
        &mut self,
        table: &ast::TableWithJoins,
        from: usize,
        sources: &mut Vec<Source>,
    ) -> Result<()> {
        self.operand(&table.relation, from, sources)?;
        table
            .joins
            .iter()
            .try_for_each(|join| self.join(join, from, sources))
    }

    /// A table, or a join in parentheses, that begins with table `from`.
    fn operand(
        &mut self,
        factor: &ast::TableFactor,
        from: usize,
        sources: &mut Vec<Source>,
    ) -> Result<()> {
        match factor {
            ast::TableFactor::NestedJoin {
                table_with_joins, ..
            } if !is_join(table_with_joins) => {
                Err(SqlError::syntax("syntax error at or near \")\""))
            }
            ast::TableFactor::NestedJoin {
                table_with_joins,
                alias: None,
            } => self.chain(table_with_joins, from, sources),
            ast::TableFactor::NestedJoin {
                table_with_joins,
                alias: Some(alias),
            } => {
                let apart = std::mem::replace(&mut self.scope.apart, from as u16);
                let chain = self.chain(table_with_joins, from, sources);
                self.scope.apart = apart;
                chain?;
                self.name_join(alias, from)
            }
            relation => {
                let first = self.factor(relation)?;
                let mut first = Source::inner(first);
                first.item = from as u16;
                sources.push(first);
                Ok(())
            }
        }
    }

    fn join(&mut self, join: &ast::Join, from: usize, sources: &mut Vec<Source>) -> Result<()> {
        let (kind, constraint) = match &join.join_operator {
            ast::JoinOperator::Join(constraint)
            | ast::JoinOperator::Inner(constraint)
            | ast::JoinOperator::CrossJoin(constraint) => (Join::Inner, constraint),
            ast::JoinOperator::Left(constraint) | ast::JoinOperator::LeftOuter(constraint) => {
                (Join::Left, constraint)
            }
            ast::JoinOperator::Right(constraint) | ast::JoinOperator::RightOuter(constraint) => {
                self.needs(General::RightJoin);
                (Join::Right, constraint)
            }
            ast::JoinOperator::FullOuter(constraint) => {
                self.needs(General::FullJoin);
                (Join::Full, constraint)
            }
            other => return Err(SqlError::unsupported(format!("the join {other:?}"))),
        };
        let crosses = matches!(join.join_operator, ast::JoinOperator::CrossJoin(_));
        if matches!(constraint, ast::JoinConstraint::None) && !crosses {
            return Err(SqlError::syntax("syntax error: a join without ON or USING"));
        }
        let before = self.scope.tables.len();
        let barred = self.scope.barred.len();
        if matches!(kind, Join::Right | Join::Full) {
            self.scope.barred.push(from as u16..before as u16);
        }
        let right = self.operand(&join.relation, before, sources);
        self.scope.barred.truncate(barred);
        right?;
        let to = self.scope.tables.len();
        let mut conditions = Vec::new();
        if let ast::JoinConstraint::On(condition) = constraint {
            let closed = std::mem::replace(&mut self.scope.closed, from as u16);
            let condition = self.condition(condition, "JOIN/ON");
            self.scope.closed = closed;
            conjuncts(condition?, &mut conditions);
        }
        let (left, right) = (self.taken_columns(from), self.columns_of(before));
        let mut together: Vec<String> = Vec::new();
        let mut called = None;
        match constraint {
            ast::JoinConstraint::None | ast::JoinConstraint::On(_) => {}
            ast::JoinConstraint::Using(names) => {
                for name in names {
                    let (_, name) = crate::bind::object_name(name)?;
                    if let Some(own) = crate::parse::together_as(&name) {
                        called = Some(own.to_owned());
                        continue;
                    }
                    if together.contains(&name) {
                        let message = format!(
                            "column name \"{name}\" appears more than once in USING clause"
                        );
                        return Err(SqlError::new(sqlstate::DUPLICATE_COLUMN, message));
                    }
                    together.push(name);
                }
            }
            ast::JoinConstraint::Natural => {
                for column in &left {
                    let shared = right.iter().any(|other| other.name == column.name);
                    if shared && !together.contains(&column.name) {
                        together.push(column.name.clone());
                    }
                }
            }
        }
        let columns = self.merged(&together, (left, right), kind, &mut conditions)?;
        if let Some(name) = called {
            self.scope.check_name(&name, None, to as u16)?;
            self.scope.together.push(Joined {
                from: from as u16,
                to: to as u16,
                name: Some(name),
                own: None,
                columns: columns[..together.len()].to_vec(),
                qualified_only: true,
            });
        }
        self.scope.joined.push(Joined {
            from: from as u16,
            to: to as u16,
            name: None,
            own: None,
            columns,
            qualified_only: false,
        });
        let missing = match kind {
            Join::Inner => before..before,
            Join::Left => before..to,
            Join::Right => from..before,
            Join::Full => from..to,
        };
        for table in &mut self.scope.tables[missing] {
            table.may_miss = true;
        }
        self.attach(kind, (from, before), conditions, sources);
        Ok(())
    }

    /// Joins the tables from number `before` on to those from number `from` on.
    fn attach(
        &self,
        kind: Join,
        (from, before): (usize, usize),
        conditions: Vec<Expr>,
        sources: &mut [Source],
    ) {
        let late = sources[before..]
            .iter()
            .any(|source| source.is_late() && usize::from(source.item) == before);
        let nested = sources.len() - before - 1;
        sources[from].begins_late |= matches!(kind, Join::Right | Join::Full);
        if kind == Join::Inner && !late {
            // J2.
            for source in &mut sources[before..] {
                if usize::from(source.item) == before {
                    source.item = from as u16;
                }
            }
            return place(sources, before, conditions, &self.subqueries);
        }
        let first = &mut sources[before];
        first.item = from as u16;
        first.join = kind;
        first.nested = nested as u16;
        match kind {
            Join::Left if !late => place(sources, before, conditions, &self.subqueries),
            Join::Inner => first.filter = conditions,
            Join::Left | Join::Right | Join::Full => first.on = conditions,
        }
    }

    /// A join's own name, and names for its columns.
    ///
    /// # Errors
    /// `42712` for a name that is taken, `42P10` for more names than columns.
    fn name_join(&mut self, alias: &ast::TableAlias, from: usize) -> Result<()> {
        let name = folded(&alias.name);
        let mut columns = self.columns_of(from);
        if alias.columns.len() > columns.len() {
            let message = format!(
                "join expression \"{name}\" has {} columns available but {} columns specified",
                columns.len(),
                alias.columns.len()
            );
            return Err(SqlError::new(sqlstate::INVALID_COLUMN_REFERENCE, message));
        }
        for (column, name) in columns.iter_mut().zip(&alias.columns) {
            column.name = folded(&name.name);
        }
        self.scope.check_name(&name, None, from as u16)?;
        self.scope.joined.push(Joined {
            from: from as u16,
            to: self.scope.tables.len() as u16,
            name: Some(name),
            own: None,
            columns,
            qualified_only: false,
        });
        Ok(())
    }

    /// The columns of what begins with a table: that table, or the join that it stands first in.
    fn columns_of(&self, from: usize) -> Vec<JoinedColumn> {
        let first = self.scope.with_columns(from as u16).next();
        first.map_or_else(Vec::new, NamedTable::columns)
    }

    /// The same of the left side of a join, which stands for it from then on.
    fn taken_columns(&mut self, from: usize) -> Vec<JoinedColumn> {
        let begins = |joined: &Joined| usize::from(joined.from) == from;
        match self.scope.joined.iter().rposition(begins) {
            Some(at) if self.scope.joined[at].name.is_none() => {
                self.scope.joined.remove(at).columns
            }
            _ => self.columns_of(from),
        }
    }

    /// The columns of both sides, where those of these names are merged and come first; conditions for them to be equal.
    ///
    /// # Errors
    /// `42703` and `42702` for a name that is not one column of each side; those of the comparison.
    fn merged(
        &mut self,
        names: &[String],
        (mut left, mut right): (Vec<JoinedColumn>, Vec<JoinedColumn>),
        join: Join,
        conditions: &mut Vec<Expr>,
    ) -> Result<Vec<JoinedColumn>> {
        if names.is_empty() {
            left.extend(right);
            return Ok(left);
        }
        let mut columns = Vec::with_capacity(left.len() + right.len());
        for name in names {
            let own = bound(taken(&mut left, name, "left")?);
            let other = bound(taken(&mut right, name, "right")?);
            for side in [&own, &other] {
                self.reads_columns(0, &side.expr);
            }
            let (sides, ty, typmod) = self.unify("JOIN/USING", vec![own.clone(), other.clone()])?;
            let equal = self.binary(&ast::BinaryOperator::Eq, own, other)?;
            conditions.push(equal.expr);
            let [own, other] = <[Expr; 2]>::try_from(sides)
                .map_err(|_| SqlError::internal("a column of two that is not"))?;
            let is_plain = |expr: &Expr| matches!(expr, Expr::Column { .. });
            columns.push(JoinedColumn {
                name: name.clone(),
                // The side that is never missing stands for both.
                expr: match join {
                    Join::Inner if !is_plain(&own) && is_plain(&other) => other,
                    Join::Inner | Join::Left => own,
                    Join::Right => other,
                    Join::Full => Expr::Coalesce(Box::new([own, other])),
                },
                ty,
                typmod,
            });
        }
        columns.extend(left);
        columns.extend(right);
        Ok(columns)
    }
}

/// Whether what stands in parentheses is a join: a table alone is not.
fn is_join(table: &ast::TableWithJoins) -> bool {
    !table.joins.is_empty()
        || matches!(
            table.relation,
            ast::TableFactor::NestedJoin { alias: None, .. }
        )
}

/// Takes the one column of a name.
fn taken(columns: &mut Vec<JoinedColumn>, name: &str, side: &str) -> Result<JoinedColumn> {
    let mut found = (0..columns.len()).filter(|at| columns[*at].name == name);
    match (found.next(), found.next()) {
        (Some(at), None) => Ok(columns.remove(at)),
        (Some(_), Some(_)) => {
            let message =
                format!("common column name \"{name}\" appears more than once in {side} table");
            Err(SqlError::new(sqlstate::AMBIGUOUS_COLUMN, message))
        }
        (None, _) => {
            let message = format!(
                "column \"{name}\" specified in USING clause does not exist in {side} table"
            );
            Err(SqlError::new(sqlstate::UNDEFINED_COLUMN, message))
        }
    }
}

fn bound(column: JoinedColumn) -> Bound {
    Bound {
        expr: column.expr,
        ty: Some(column.ty),
        typmod: column.typmod,
        start: None,
    }
}
