//! MERGE: a query finds the rows of the source with those of the target that they match; what is done with each is decided one by one.
//!
//! Differences: SKIP LOCKED and its like have no part in it, as in PostgreSQL; where PostgreSQL looks at a row again that another transaction has changed, the statement is
//! run again.

use super::foreign::ForeignTables;
use super::select::plain;
use super::through::Goal;
use super::writing::Bound as BoundChange;
use super::{Body, ByJoin, General, Given, Insert, InsertSource, ProgramKind, Rules, conjuncts};
use crate::bind::{Binder, ScopeTable, folded};
use crate::catalog::{Kind, Relation};
use crate::error::{Result, SqlError};
use crate::expr::Expr;
use crate::parse::{MERGE_NOTHING, Overriding};
use crate::roles::Rights;
use crate::rows::Shape;
use crate::sqlstate;
use sqlparser::ast;
use std::sync::Arc;
use vellum_row::Type;

/// MERGE.
#[derive(Debug)]
pub(crate) struct Merge {
    pub shape: Arc<Shape>,
    /// Keys of the target's rows, null where none matches, and the rows of the source behind them.
    pub joined: ByJoin,
    pub clauses: Vec<MergeClause>,
    pub rules: Rules,
    pub keys: ForeignTables,
}

/// WHEN … THEN. Expressions are over the target's row as number 0, if it matches, and the source's tables.
#[derive(Debug)]
pub(crate) struct MergeClause {
    pub matched: bool,
    pub condition: Option<Expr>,
    pub action: MergeAction,
}

/// What is done.
#[derive(Debug)]
pub(crate) enum MergeAction {
    Nothing,
    Delete,
    Update(Vec<(usize, Expr)>),
    /// The values that are given, and what becomes of them.
    Insert(Vec<Expr>, Box<Insert>),
}

impl Binder<'_> {
    /// Binds a MERGE.
    ///
    /// # Errors
    /// Of names and types; `42601` for a clause behind one that takes all.
    pub(super) fn merge(&mut self, merge: &ast::Merge) -> Result<BoundChange> {
        if merge.output.is_some() {
            return Err(SqlError::syntax("MERGE returns nothing"));
        }
        let ast::TableFactor::Table {
            name, args: None, ..
        } = &merge.table
        else {
            return Err(SqlError::syntax("a change needs the name of a table"));
        };
        let relation = self.relation(name)?;
        if matches!(relation.kind, Kind::View(_)) {
            let message = format!("cannot execute MERGE on relation \"{}\"", relation.name);
            let detail = "This operation is not supported for views.";
            let error = SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, message);
            return Err(error.with_detail(detail));
        }
        if let ast::TableFactor::Table { alias, .. } = &merge.table {
            self.check_other_name(&relation, alias.as_ref(), &merge.source)?;
        }
        self.targets.push(relation.oid);
        let shape = Arc::new(Shape::of(&relation)?);
        let mut rules = {
            let scope = std::mem::take(&mut self.scope);
            self.scope.add(ScopeTable::of(&relation, None)?)?;
            let rules = self.rules(&relation);
            self.scope = scope;
            rules?
        };
        let joined = self.matched(&relation, merge)?;
        let keys = self.foreign_tables(&relation)?;
        let mut clauses = Vec::with_capacity(merge.clauses.len());
        let mut taken = [false; 2];
        for clause in &merge.clauses {
            let matched = match &clause.clause_kind {
                ast::MergeClauseKind::Matched => true,
                ast::MergeClauseKind::NotMatched => false,
                other => return Err(SqlError::syntax(format!("syntax error at {other}"))),
            };
            if taken[usize::from(matched)] {
                let text = "unreachable WHEN clause specified after unconditional WHEN clause";
                return Err(SqlError::syntax(text));
            }
            taken[usize::from(matched)] = clause.predicate.is_none();
            // What matches nothing has no row of the target.
            let closed = std::mem::replace(&mut self.scope.closed, u16::from(!matched));
            let bound = self.merge_clause(&relation, (&shape, &rules, &keys), matched, clause);
            self.scope.closed = closed;
            let bound = bound?;
            if let MergeAction::Update(assignments) = &bound.action {
                rules.give(assignments.iter().map(|(at, _)| *at));
            }
            clauses.push(bound);
        }
        let merge = Merge {
            shape,
            joined,
            clauses,
            rules,
            keys,
        };
        Ok(BoundChange {
            kind: ProgramKind::Merge(Box::new(merge)),
            columns: Vec::new(),
            returns: false,
        })
    }

    /// # Errors
    /// `42712` if source and target are called the same.
    fn check_other_name(
        &self,
        relation: &Relation,
        alias: Option<&ast::TableAlias>,
        source: &ast::TableFactor,
    ) -> Result<()> {
        let own = alias.map_or_else(|| relation.name.to_string(), |alias| folded(&alias.name));
        let other = match source {
            ast::TableFactor::Table { name, alias, .. } => match alias {
                Some(alias) => folded(&alias.name),
                None => crate::bind::object_name(name)?.1,
            },
            ast::TableFactor::Derived {
                alias: Some(alias), ..
            } => folded(&alias.name),
            _ => return Ok(()),
        };
        if own != other {
            return Ok(());
        }
        let message = format!("name \"{own}\" specified more than once");
        let detail = "The name is used both as MERGE target table and data source.";
        Err(SqlError::new(sqlstate::DUPLICATE_ALIAS, message).with_detail(detail))
    }

    /// What finds the rows: the target joined from the right by the source.
    fn matched(&mut self, relation: &Arc<Relation>, merge: &ast::Merge) -> Result<ByJoin> {
        let table = ast::TableWithJoins {
            relation: merge.table.clone(),
            joins: vec![ast::Join {
                relation: merge.source.clone(),
                global: false,
                join_operator: ast::JoinOperator::RightOuter(ast::JoinConstraint::On(
                    (*merge.on).clone(),
                )),
            }],
        };
        let mut sources = Vec::new();
        self.from(&table, &mut sources)?;
        self.needs(General::ChangeByJoin);
        self.place_conditions(&mut sources, Vec::new(), None);
        let width = relation.table().map_or(0, |table| table.schema.len());
        let mut output = vec![Expr::Column {
            table: 0,
            position: width as u16,
        }];
        let mut types = vec![Type::Bytea];
        let mut widths = Vec::new();
        for (number, other) in (0u16..).zip(&self.scope.tables).skip(1) {
            widths.push(other.columns.len());
            for (position, column) in (0u16..).zip(&other.columns) {
                output.push(Expr::Column {
                    table: number,
                    position,
                });
                types.push(column.ty);
            }
        }
        let body = Body::From {
            sources,
            grouping: None,
            windows: Vec::new(),
            output,
        };
        let mut select = plain(body, Vec::new());
        select.types = types;
        select.keyed = vec![0];
        select.general = Some(General::ChangeByJoin);
        select.subqueries = std::mem::take(&mut self.subqueries);
        Ok(ByJoin { select, widths })
    }

    fn merge_clause(
        &mut self,
        relation: &Arc<Relation>,
        (shape, rules, keys): (&Arc<Shape>, &Rules, &ForeignTables),
        matched: bool,
        clause: &ast::MergeClause,
    ) -> Result<MergeClause> {
        let mut condition = Vec::new();
        if let Some(predicate) = &clause.predicate {
            conjuncts(self.condition(predicate, "MERGE WHEN")?, &mut condition);
        }
        let condition = (!condition.is_empty()).then(|| Expr::And(condition.into()));
        let action = match &clause.action {
            ast::MergeAction::Update(update) if is_nothing_set(&update.assignments) => {
                MergeAction::Nothing
            }
            ast::MergeAction::Insert(insert) if is_nothing_into(&insert.columns) => {
                MergeAction::Nothing
            }
            ast::MergeAction::Delete { .. } => {
                self.uses(relation, Rights::DELETE);
                MergeAction::Delete
            }
            ast::MergeAction::Update(update) => {
                if update.update_predicate.is_some() || update.delete_predicate.is_some() {
                    return Err(SqlError::syntax("WHERE stands in no clause of MERGE"));
                }
                self.uses(relation, Rights::UPDATE);
                MergeAction::Update({
                    let goal = Goal::of_table(relation);
                    self.assignments(&goal, &update.assignments)?
                })
            }
            ast::MergeAction::Insert(insert) => {
                self.uses(relation, Rights::INSERT);
                self.merge_insert(relation, (shape, rules, keys), insert)?
            }
        };
        Ok(MergeClause {
            matched,
            condition,
            action,
        })
    }

    fn merge_insert(
        &mut self,
        relation: &Arc<Relation>,
        (shape, rules, keys): (&Arc<Shape>, &Rules, &ForeignTables),
        insert: &ast::MergeInsertExpr,
    ) -> Result<MergeAction> {
        let ast::MergeInsertKind::Values(values) = &insert.kind else {
            return Err(SqlError::syntax("INSERT ROW"));
        };
        if insert.insert_predicate.is_some() {
            return Err(SqlError::syntax("WHERE stands in no clause of MERGE"));
        }
        let [_] = values.rows.as_slice() else {
            return Err(SqlError::syntax("MERGE inserts one row at a time"));
        };
        let (overriding, named) = Overriding::of(&insert.columns);
        let goal = Goal::of_table(relation);
        let mut targets = self.insert_targets(&goal, named)?;
        let given = (named.is_empty(), overriding);
        let rows = self.insert_rows(&goal, &values.rows, &mut targets, given)?;
        let given = rows.into_iter().next().unwrap_or_default();
        let mut columns = Vec::with_capacity(shape.table().schema.len());
        for position in 0..shape.table().schema.len() {
            columns.push(
                match targets.iter().position(|target| *target == position) {
                    Some(at) => Given::Source(at),
                    None => Given::Default(self.default(relation, position)?),
                },
            );
        }
        let mut rules = rules.clone();
        rules.give(targets.into_iter());
        let insert = Insert {
            shape: shape.clone(),
            source: InsertSource::Rows(Vec::new()),
            columns,
            as_given: false,
            rules,
            conflict: None,
            tells_xmax: false,
            keys: keys.clone(),
            returning: None,
        };
        Ok(MergeAction::Insert(given, Box::new(insert)))
    }
}

/// DO NOTHING, as the parser was given it.
fn is_nothing_set(assignments: &[ast::Assignment]) -> bool {
    matches!(assignments, [ast::Assignment { target: ast::AssignmentTarget::ColumnName(name), .. }]
        if is_nothing_into(std::slice::from_ref(name)))
}

fn is_nothing_into(columns: &[ast::ObjectName]) -> bool {
    let [column] = columns else {
        return false;
    };
    matches!(column.0.as_slice(), [ast::ObjectNamePart::Identifier(ident)]
        if ident.value == MERGE_NOTHING)
}
