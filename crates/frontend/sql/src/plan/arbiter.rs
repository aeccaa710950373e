//! ON CONFLICT (…) WHERE …: which unique indexes it is about.
//!
//! As PostgreSQL has it: those of exactly these columns and expressions, whose predicate, if they have one, follows from the condition. There may be several,
//! and each of them decides.
//!
//! What a condition with parameters says is known when these are: then it is seen what follows, each time the statement is run.
//!
//! Differences: a plan of PostgreSQL's that is made for all parameters, as it tries one the sixth time a statement is run, sees nothing follow, which is 42P10.

use super::conjuncts;
use super::implied::is_implied;
use crate::bind::{Binder, Scope};
use crate::catalog::{Catalog, Index, Method, Oid, OperatorClass, Relation, Table};
use crate::ddl::{check_form, named_class, without_collate};
use crate::error::{Result, SqlError};
use crate::expr::{Expr, Frame, Plain};
use crate::parse::{ConflictTarget, IndexItem};
use crate::rows::{KeyShape, Part, Shape};
use crate::sqlstate;
use sqlparser::ast;
use std::sync::Arc;
use vellum_row::{CastContext, Type, Typmod};

/// Which indexes a statement asks.
#[derive(Debug)]
pub(crate) enum Arbiters {
    Known(Asked),
    /// Parameters are in the condition.
    Inferred(Inferred),
}

/// Indexes that are asked.
#[derive(Debug)]
pub(crate) struct Asked {
    /// `None`: all unique ones.
    pub indexes: Option<Box<[usize]>>,
    /// One that cannot be asked, if there is one among them.
    pub refused: Option<Refused>,
}

impl Asked {
    /// Those with these numbers, or all unique ones of a table.
    pub(super) fn of(table: &Table, indexes: Option<Box<[usize]>>) -> Self {
        let refused = Refused::among(table, indexes.as_deref());
        Self { indexes, refused }
    }
}

/// Indexes of what a target names, and what the condition behind it says.
#[derive(Debug)]
pub(crate) struct Inferred {
    /// Their numbers and predicates.
    candidates: Vec<(usize, Option<Expr>)>,
    given: Vec<Expr>,
}

impl Inferred {
    /// Those whose predicate follows, with the parameters that a frame has.
    ///
    /// # Errors
    /// `42P10` if there is none; what fails in a condition that is the same for all rows.
    pub fn asked(&self, table: &Table, frame: &Frame<'_>) -> Result<Asked> {
        let mut given = Vec::new();
        for condition in &self.given {
            let mut condition = condition.clone();
            evaluate(&mut condition, frame)?;
            conjuncts(condition, &mut given);
        }
        let mut found = Vec::with_capacity(self.candidates.len());
        for (number, predicate) in &self.candidates {
            let follows = match predicate {
                None => true,
                Some(predicate) if is_implied(predicate, 0, &given) => true,
                Some(predicate) => {
                    let mut predicate = predicate.clone();
                    evaluate(&mut predicate, frame)?;
                    is_implied(&predicate, 0, &given)
                }
            };
            if follows {
                found.push(*number);
            }
        }
        if found.is_empty() {
            let text =
                "there is no unique or exclusion constraint matching the ON CONFLICT specification";
            return Err(SqlError::new(sqlstate::INVALID_COLUMN_REFERENCE, text));
        }
        Ok(Asked::of(table, Some(found.into())))
    }

    /// Whether parameters are in the conditions.
    fn waits(&self) -> bool {
        let mut waits = false;
        for condition in &self.given {
            condition.walk(&mut |part| waits |= matches!(part, Expr::Param(_)));
        }
        waits
    }
}

/// Puts the values of what is the same for all rows in its place.
fn evaluate(expr: &mut Expr, frame: &Frame<'_>) -> Result<()> {
    let is_case = matches!(expr, Expr::Case { .. });
    let mut done = Ok(());
    expr.children_mut(&mut |child| {
        if done.is_ok() {
            let child = evaluate(child, frame);
            // What cannot be computed in a CASE might not be reached: it stays, and implies nothing.
            done = if is_case { Ok(()) } else { child };
        }
    });
    done?;
    let mut is_known = match expr {
        Expr::Const(_)
        | Expr::Column { .. }
        | Expr::Outer { .. }
        | Expr::Slot(_)
        | Expr::Subquery(_)
        | Expr::InSubquery { .. }
        | Expr::Rows { .. }
        | Expr::Once { .. }
        | Expr::Domain { .. }
        | Expr::Shown { .. }
        | Expr::Held => false,
        Expr::Call { function, .. } => !function.is_volatile() && !function.asks(),
        _ => true,
    };
    expr.children(&mut |child| is_known &= matches!(child, Expr::Const(_)));
    if is_known {
        let value = expr.eval(frame)?.into_value();
        *expr = Expr::Const(value);
    }
    Ok(())
}

/// The first index, of those that are asked, whose constraint is deferrable: rows may be in it twice. As in PostgreSQL a row is refused that comes to it, and not
/// one that is found to be there in an index before it.
#[derive(Debug)]
pub(crate) struct Refused {
    pub index: usize,
    /// Those that are asked before it.
    pub before: Box<[usize]>,
}

impl Refused {
    /// Of the indexes with these numbers, or of all that are unique; in the order in which they were made.
    pub(super) fn among(table: &Table, asked: Option<&[usize]>) -> Option<Self> {
        let is_asked = |number: &usize| match asked {
            None => table.indexes[*number].unique,
            Some(asked) => asked.contains(number),
        };
        let mut numbers: Vec<usize> = (0..table.indexes.len()).filter(is_asked).collect();
        numbers.sort_by_key(|number| table.indexes[*number].oid);
        let deferrable = |number: &usize| table.indexes[*number].timing.is_deferrable();
        let at = numbers.iter().position(deferrable)?;
        Some(Self {
            index: numbers[at],
            before: numbers[..at].into(),
        })
    }

    /// `55000`.
    #[cold]
    pub fn error(&self, relation: &Relation, catalog: &Catalog) -> SqlError {
        let text = "ON CONFLICT does not support deferrable unique constraints/exclusion constraints as arbiters";
        let indexes = relation.table().map_or(&[][..], |table| &table.indexes);
        let name = indexes.get(self.index).map(|index| &*index.name);
        SqlError::new(sqlstate::OBJECT_NOT_IN_PREREQUISITE_STATE, text)
            .on_table(relation, catalog)
            .on_constraint(name.unwrap_or_default())
    }
}

/// What a target is made of, each with the operator class and the collation that are asked for.
type Asks = Vec<(Part, Option<&'static OperatorClass>, Option<Oid>)>;

impl Binder<'_> {
    /// The indexes that a target is about, of a table whose columns are called as `own` says.
    ///
    /// # Errors
    /// `42P10` if there is none; of names and types.
    pub(super) fn arbiters(
        &mut self,
        relation: &Arc<Relation>,
        own: &Scope,
        names: &[ast::Ident],
    ) -> Result<Arbiters> {
        let (parts, given) = self.target_parts(own, names)?;
        let shape = Shape::of(relation)?;
        let is_about = |index: &Index, keys: &KeyShape| {
            let asked = |own: &Part| parts.iter().any(|(part, ..)| part == own);
            let there = |(part, class, collation): &(Part, Option<&OperatorClass>, Option<Oid>)| {
                let own = keys.parts.iter().zip(&index.columns);
                let mut own = own.zip(keys.codec.columns());
                own.any(|((own, column), key)| {
                    let own_class = column.class_of(index.method, key.ty);
                    let own_collation = column.collation_in(shape.table(), key.ty);
                    own == part
                        && collation.is_none_or(|collation| collation == own_collation)
                        && class.is_none_or(|class| {
                            own_class.is_some_and(|own| {
                                own.family == class.family && own.input == class.input
                            })
                        })
                })
            };
            keys.parts.iter().all(asked) && parts.iter().all(there)
        };
        let numbered = shape.keys.iter().enumerate();
        let candidates = numbered.filter(|(number, keys)| {
            let index = &shape.table().indexes[*number];
            index.unique && is_about(index, keys)
        });
        let candidates = candidates.map(|(number, keys)| (number, keys.predicate.clone()));
        let inferred = Inferred {
            candidates: candidates.collect(),
            given,
        };
        if inferred.waits() {
            return Ok(Arbiters::Inferred(inferred));
        }
        let env = Plain(self.settings);
        let asked = inferred.asked(shape.table(), &Frame::over(&[], &env))?;
        Ok(Arbiters::Known(asked))
    }

    /// What a target is made of, and the conditions behind its WHERE.
    fn target_parts(&mut self, own: &Scope, names: &[ast::Ident]) -> Result<(Asks, Vec<Expr>)> {
        let scope = std::mem::replace(&mut self.scope, own.clone());
        let bound = self.bound_target(names);
        self.scope = scope;
        bound
    }

    fn bound_target(&mut self, names: &[ast::Ident]) -> Result<(Asks, Vec<Expr>)> {
        let mut parts = Vec::with_capacity(names.len());
        let mut given = Vec::new();
        let mut nodes = Vec::with_capacity(names.len());
        match ConflictTarget::of(names) {
            None => {
                let names = names.iter().cloned();
                nodes.extend(names.map(|name| (ast::Expr::Identifier(name), None)));
            }
            Some(target) => {
                for name in target.items {
                    nodes.push(self.target_item(name)?);
                }
                if let Some(name) = target.predicate {
                    let node = crate::parse::expression_at(&name.value, name.span.start)?;
                    let before = self.subqueries.len();
                    let bound = self.expr(&node);
                    let bound = bound.map_err(|error| error.not_allowed_in("index predicates"))?;
                    if self.subqueries.len() > before {
                        let text = "cannot use subquery in index predicate";
                        return Err(SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, text));
                    }
                    // As in PostgreSQL a condition of another type is none, and no error.
                    if matches!(bound.ty, None | Some(Type::Bool)) {
                        let context = CastContext::Implicit;
                        let condition = self.coerce(bound, Type::Bool, Typmod::NONE, context)?;
                        conjuncts(condition, &mut given);
                    }
                }
            }
        }
        for (node, class) in nodes {
            let bound = self.expr(&node)?;
            let (expr, ty, _) = self.settle(bound)?;
            let collation = without_collate(&node).1;
            let collation = collation.map(|name| self.collation_named(name, Some(ty)));
            let class = class.as_ref();
            let class = class.map(|name| named_class(Method::BTree, name));
            let part = match expr {
                Expr::Column { position, .. } => Part::Column(usize::from(position)),
                expr => Part::Computed { expr, ty },
            };
            parts.push((part, class.transpose()?, collation.transpose()?));
        }
        Ok((parts, given))
    }

    /// What stands between the commas of a target: an order says nothing there.
    ///
    /// # Errors
    /// `42P10`, `42601`.
    fn target_item(&self, name: &ast::Ident) -> Result<(ast::Expr, Option<ast::ObjectName>)> {
        let IndexItem {
            expr,
            class,
            options,
        } = crate::parse::index_item(&name.value, name.span.start)?;
        let refused = match (options.asc, options.nulls_first) {
            (None, None) => {
                check_form(&expr)?;
                return Ok((expr, class));
            }
            (Some(_), _) => "ASC/DESC is not allowed in ON CONFLICT clause",
            (None, Some(_)) => "NULLS FIRST/LAST is not allowed in ON CONFLICT clause",
        };
        let error = SqlError::new(sqlstate::INVALID_COLUMN_REFERENCE, refused);
        // Where the list opens.
        let place = ast::Expr::Identifier(name.clone());
        Err(error.at(self.place_before(&place, "(")))
    }
}
