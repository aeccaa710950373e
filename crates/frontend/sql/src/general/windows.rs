//! Window functions of bound queries, as steps.

use super::translate::{STEPS_MAX, Translation, built};
use crate::bind::{Limit, Window, WindowKind, check_number};
use crate::error::{Result, SqlError};
use crate::expr::Expr;
use crate::plan::{SortBy, Subquery};
use vellum_query::{Edge, Framing, Relation, SortKey, Term, Window as Windowing, Windowed};

impl<'t> Translation<'t, '_, '_> {
    /// Window functions, which are run one behind the other.
    pub(super) fn windows(
        &mut self,
        relation: Relation,
        windows: &'t [Window],
        subs: &'t [Subquery],
    ) -> Result<Relation> {
        if windows.len() > STEPS_MAX {
            return Err(crate::parse::too_deep());
        }
        let width = relation.columns().len();
        let mut made = Vec::with_capacity(windows.len());
        for window in windows {
            made.push(self.one_window(window, subs)?);
        }
        let relation = built(relation.windows(&self.symbols, made))?;
        self.level_mut()?.windows = relation.columns()[width..].to_vec();
        Ok(relation)
    }

    fn one_window(&mut self, window: &'t Window, subs: &'t [Subquery]) -> Result<Windowing> {
        let heeds = match &window.function {
            WindowKind::Aggregate(_) => true,
            WindowKind::Function(called) => called.heeds_frame(),
        };
        if let Some(frame) = window.frame.as_ref().filter(|_| !heeds) {
            // Its distances are looked at all the same.
            match frame.is_computed() {
                true => frame
                    .computed(|expr| self.constant_before(expr))
                    .map(|_| ())?,
                false => frame
                    .settled(|expr| self.constant_before(expr))
                    .map(|_| ())?,
            }
        }
        let frame = window.frame.as_ref().filter(|_| heeds);
        let (computed, frame) = match frame {
            Some(frame) if frame.is_computed() => (Some(frame), None),
            Some(frame) => {
                let settled = frame.settled(|expr| self.constant_before(expr))?;
                // DataFusion takes no frame that is empty.
                match settled.is_empty() {
                    true => (Some(frame), None),
                    false => (None, Some(settled)),
                }
            }
            None => (None, None),
        };
        let function = match &window.function {
            WindowKind::Function(function) => Windowed::Function(*function),
            WindowKind::Aggregate(aggregate) if computed.is_some() => {
                Windowed::Aggregate(Box::new(self.fold_of(aggregate, subs)?))
            }
            WindowKind::Aggregate(aggregate) => {
                Windowed::Aggregate(Box::new(self.aggregate(aggregate, subs, true)?))
            }
        };
        let mut arguments = Vec::with_capacity(window.arguments.len());
        for (number, (expr, ty)) in window.arguments.iter().enumerate() {
            arguments.push(match &window.function {
                WindowKind::Function(called)
                    if called.number() == Some(number) && !matches!(expr, Expr::Const(_)) =>
                {
                    let value = self.constant_before(expr)?;
                    let Some(given) = value.as_ref().as_i64() else {
                        return Err(SqlError::unsupported(
                            "NULL as a number of a window function",
                        ));
                    };
                    check_number(*called, given)?;
                    built(Term::literal(*ty, value.as_ref()))?
                }
                _ => self.term(expr, *ty, subs)?,
            });
        }
        let mut partition = Vec::with_capacity(window.partition.len());
        for (expr, ty) in &window.partition {
            partition.push(self.term(expr, *ty, subs)?);
        }
        let mut order = Vec::with_capacity(window.order.len());
        for key in &window.order {
            let SortBy::Expr(expr) = &key.expr else {
                return Err(SqlError::internal("a window by a column of the result"));
            };
            order.push(SortKey {
                term: self.term(expr, key.ty, subs)?,
                descending: key.descending,
                nulls_first: key.nulls_first,
            });
        }
        let framing = match computed {
            None => None,
            Some(frame) => {
                let (limits, key) = frame.computed(|expr| self.constant_before(expr))?;
                let mut edges = Vec::with_capacity(limits.len());
                for limit in limits {
                    edges.push(match limit {
                        Limit::Unbounded => Edge::Unbounded,
                        Limit::CurrentRow => Edge::CurrentRow,
                        Limit::Count(count) => Edge::Count(count),
                        Limit::At(expr) => {
                            let Some((_, ty)) = key else {
                                return Err(SqlError::internal("a range without a key"));
                            };
                            Edge::Value(self.term(expr, ty, subs)?)
                        }
                    });
                }
                let [start, end] = <[Edge; 2]>::try_from(edges)
                    .map_err(|_| SqlError::internal("a frame of two ends"))?;
                if let Some((key, ty)) = key {
                    for own in &mut order {
                        own.term = self.term(key, ty, subs)?;
                    }
                }
                Some(Framing {
                    of_rows: frame.is_of_rows(),
                    start,
                    end,
                    exclusion: frame.exclusion(),
                    line: self.line(),
                })
            }
        };
        Ok(Windowing {
            function,
            arguments,
            result: window.result,
            partition,
            order,
            frame,
            framing,
        })
    }
}
