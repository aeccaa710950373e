//! FROM: the tables of a query, joined as they stand, or, where any order gives the same rows, in the best one.

use super::order::{Equality, Estimate, order};
use super::shape::{has_subquery, reads_only};
use super::translate::{STEPS_MAX, Subqueries, Translation, built};
use crate::error::{Result, SqlError};
use crate::exec::Run;
use crate::expr::Expr;
use crate::plan::{Join, Source, SourceKind, Subquery, implied, is_whole, reads_from, tables_read};
use std::ops::Range;
use vellum_query::{Joined, Relation, Term};

impl<'t> Translation<'t, '_, '_> {
    pub(super) fn from(
        &mut self,
        sources: &'t [Source],
        subs: &'t [Subquery],
        keyed: &[u16],
    ) -> Result<Relation> {
        if sources.len() > STEPS_MAX {
            return Err(crate::parse::too_deep());
        }
        let inner = sources.iter().all(|source| {
            let apart = matches!(
                source.kind,
                SourceKind::Function { .. } | SourceKind::Series { .. } | SourceKind::Nothing
            );
            source.join == Join::Inner && source.nested == 0 && !apart
        });
        if inner && sources.len() > 1 {
            return self.ordered(sources, subs, keyed);
        }
        let every = 0..sources.len();
        let (relation, across) = self.chain(sources, every, Vec::new(), subs, keyed)?;
        debug_assert!(across.is_empty(), "conditions that read what is no table");
        match relation {
            Some(relation) => Ok(relation),
            None => built(Relation::one_row()),
        }
    }

    /// Tables as they stand, those in parentheses on their own; and those of their conditions that read others than these. `first` is asked
    /// of the first table, whose own conditions are those of the join that it begins.
    fn chain(
        &mut self,
        sources: &'t [Source],
        range: Range<usize>,
        mut first: Vec<&'t Expr>,
        subs: &'t [Subquery],
        keyed: &[u16],
    ) -> Result<(Option<Relation>, Vec<&'t Expr>)> {
        let in_parentheses = range.start > 0;
        let mut relation: Option<Relation> = None;
        // What stands before an item that is joined on its own, and the conditions of that item that read it.
        let mut before: Option<Relation> = None;
        let mut across = Vec::new();
        let mut number = range.start;
        while number < range.end {
            let source = &sources[number];
            let begins = number == range.start;
            if !in_parentheses && number == usize::from(source.item) {
                relation =
                    self.beside(before.take(), relation, std::mem::take(&mut across), subs)?;
                let late = |other: &Source| other.item == source.item && other.is_late();
                if sources.iter().any(late) {
                    before = relation.take();
                }
            }
            let beside = in_parentheses || before.is_some();
            let mut inside = |conditions: Vec<&'t Expr>| -> Vec<&'t Expr> {
                let (inside, others): (Vec<&Expr>, Vec<&Expr>) =
                    conditions.into_iter().partition(|expr| {
                        let stays = in_parentheses || !expr.is_volatile();
                        !beside || stays && reads_from(expr, subs, source.item)
                    });
                across.extend(others);
                inside
            };
            let end = match begins && in_parentheses {
                true => number + 1,
                false => number + 1 + usize::from(source.nested),
            };
            let (mut others, mut behind) = (Vec::new(), Vec::new());
            let own;
            if begins && in_parentheses {
                own = std::mem::take(&mut first);
            } else {
                let deciding = match source.join {
                    Join::Inner => &source.filter,
                    _ => &source.on,
                };
                if source.join != Join::Inner {
                    behind = inside(source.filter.iter().collect());
                }
                let keeps = end > number + 1 && is_whole(sources, number);
                (own, others) = source.covered.iter().chain(deciding).partition(|expr| {
                    // A row of the right side that fails alone is there all the same if its side is kept.
                    matches!(source.join, Join::Inner | Join::Left)
                        && !keeps
                        && reads_only(expr, number as u16)
                        && !expr.is_volatile()
                });
                if source.join == Join::Inner {
                    others = inside(others);
                }
            }
            let right = if end > number + 1 {
                let (nested, further) = self.chain(sources, number..end, own, subs, keyed)?;
                others.extend(further);
                nested.ok_or_else(|| SqlError::internal("a join of nothing"))?
            } else {
                let keyed = keyed.contains(&(number as u16));
                let (right, _) = self.source(source, &own, subs, keyed)?;
                self.level_mut()?.tables.push(right.columns().to_vec());
                match source.kind {
                    SourceKind::Table { .. } => right,
                    _ => self.filter(right, own, subs)?,
                }
            };
            relation = Some(match relation {
                None => self.filter(right, others, subs)?,
                Some(left) => self.join(left, right, source.join, (others, behind), subs)?,
            });
            number = end;
        }
        match in_parentheses {
            true => Ok((relation, across)),
            false => Ok((self.beside(before, relation, across, subs)?, Vec::new())),
        }
    }

    /// An item of FROM beside what stands before it, if that was kept apart.
    fn beside(
        &mut self,
        before: Option<Relation>,
        item: Option<Relation>,
        across: Vec<&Expr>,
        subs: &'t [Subquery],
    ) -> Result<Option<Relation>> {
        match (before, item) {
            (Some(before), Some(item)) => Ok(Some(self.inner_join(before, item, across, subs)?)),
            (_, item) => Ok(item),
        }
    }

    /// Tables that may be joined in any order, in the one that promises to be the best.
    fn ordered(
        &mut self,
        sources: &'t [Source],
        subs: &'t [Subquery],
        keyed: &[u16],
    ) -> Result<Relation> {
        let mut conditions: Vec<(Vec<u16>, &Expr)> = Vec::new();
        let mut relations = Vec::with_capacity(sources.len());
        let mut estimates = Vec::with_capacity(sources.len());
        let every = sources
            .iter()
            .flat_map(|source| source.covered.iter().chain(&source.filter));
        for condition in every {
            let mut tables = Vec::new();
            tables_read(condition, subs, &mut |table| {
                if !tables.contains(&table) {
                    tables.push(table);
                }
            });
            conditions.push((tables, condition));
        }
        for (number, source) in (0u16..).zip(sources) {
            let (own, others) = conditions.into_iter().partition(|(tables, expr)| {
                let alone = tables.is_empty() && number == 0;
                (*tables == [number] || alone) && reads_only(expr, number) && !expr.is_volatile()
            });
            conditions = others;
            let own: Vec<(Vec<u16>, &Expr)> = own;
            let mut own: Vec<&Expr> = own.into_iter().map(|(_, expr)| expr).collect();
            let several = conditions.iter().filter(|(tables, _)| tables.len() > 1);
            let early = several.filter_map(|(_, expr)| implied(expr, number));
            let early: Vec<Expr> = early.collect();
            own.extend(&early);
            let (mut relation, estimate) =
                self.source(source, &own, subs, keyed.contains(&number))?;
            self.level_mut()?.tables.push(relation.columns().to_vec());
            if !matches!(source.kind, SourceKind::Table { .. }) {
                relation = self.filter(relation, own, subs)?;
            }
            relations.push(Some(relation));
            estimates.push(estimate);
        }
        // Lists that are the same for all rows are looked into before anything is joined.
        for number in 0..sources.len() {
            let (early, others) = conditions.into_iter().partition(|(tables, expr)| {
                let list = matches!(expr, Expr::InSubquery { subquery, .. }
                    if !subs[usize::from(*subquery)].select.correlated);
                list && tables[..] == [number as u16] && !expr.is_volatile()
            });
            conditions = others;
            let early: Vec<(Vec<u16>, &Expr)> = early;
            for (_, expr) in early {
                if let Some(relation) = relations[number].take() {
                    relations[number] = Some(self.filter(relation, vec![expr], subs)?);
                    estimates[number].rows = (estimates[number].rows * 0.1).max(1.0);
                }
            }
        }
        let equalities = conditions.iter().filter_map(|(_, expr)| Equality::of(expr));
        let equalities: Vec<Equality> = equalities.collect();
        let steps = order(sources, &estimates, &equalities);
        let mut joined: Option<Relation> = None;
        let (mut known, mut rows) = (Vec::new(), 0.0);
        for step in steps {
            let next = relations[usize::from(step.source)].take();
            let next = next.ok_or_else(|| SqlError::internal("a table that is joined twice"))?;
            known.push(step.source);
            let (ready, others) = conditions
                .into_iter()
                .partition(|(tables, _)| tables.iter().all(|table| known.contains(table)));
            conditions = others;
            let ready: Vec<(Vec<u16>, &Expr)> = ready;
            let ready: Vec<&Expr> = ready.into_iter().map(|(_, expr)| expr).collect();
            joined = Some(match joined {
                None => self.filter(next, ready, subs)?,
                // The smaller side is kept in memory: the left one.
                Some(before) if rows > estimates[usize::from(step.source)].rows => {
                    self.inner_join(next, before, ready, subs)?
                }
                Some(before) => self.inner_join(before, next, ready, subs)?,
            });
            rows = step.rows;
        }
        match joined {
            Some(relation) => Ok(relation),
            None => built(Relation::one_row()),
        }
    }

    pub(super) fn estimate(&self, source: &Source, own: &[&Expr]) -> Result<Estimate> {
        let SourceKind::Table { shape, .. } = &source.kind else {
            return Ok(Estimate::unknown());
        };
        let Run {
            engine,
            published,
            transaction,
            ..
        } = self.run;
        let statistics = crate::statistics::of(&shape.relation, (engine, published), transaction)?;
        let constant = |expr: &Expr| {
            let mut reads = has_subquery(expr);
            expr.walk(&mut |expr| {
                reads |= matches!(
                    expr,
                    Expr::Column { .. } | Expr::Outer { .. } | Expr::Slot(_)
                );
            });
            if reads {
                None
            } else {
                self.constant(expr).ok()
            }
        };
        Ok(Estimate::of_table(source, statistics, own, &constant))
    }

    fn inner_join(
        &mut self,
        left: Relation,
        right: Relation,
        conditions: Vec<&Expr>,
        subs: &'t [Subquery],
    ) -> Result<Relation> {
        // What joins is told the join, the rest is looked at behind it.
        let (joining, rest): (Vec<&Expr>, Vec<&Expr>) = conditions.iter().partition(|expr| {
            matches!(expr, Expr::Compare { .. }) && !has_subquery(expr) && self.is_inside(expr)
        });
        let terms = self.guarded(&joining, &rest, subs)?;
        let joined = built(left.join(right, Joined::Inner, terms))?;
        let terms = self.guarded(&rest, &joining, subs)?;
        match terms.is_empty() {
            true => Ok(joined),
            false => built(joined.filter(Term::all(terms))),
        }
    }

    fn join(
        &mut self,
        left: Relation,
        right: Relation,
        join: Join,
        (conditions, behind): (Vec<&Expr>, Vec<&Expr>),
        subs: &'t [Subquery],
    ) -> Result<Relation> {
        if join != Join::Inner {
            let joined = match join {
                Join::Right => Joined::Right,
                Join::Full => Joined::Full,
                _ => Joined::Left,
            };
            // DataFusion makes no joins of subqueries that stand in the condition of another one.
            let around = std::mem::replace(&mut self.subqueries, Subqueries::Asked);
            let terms = self.guarded(&conditions, &[], subs);
            self.subqueries = around;
            let terms = terms?;
            let joined = built(left.join(right, joined, terms))?;
            return self.filter(joined, behind, subs);
        }
        self.inner_join(left, right, conditions, subs)
    }
}
