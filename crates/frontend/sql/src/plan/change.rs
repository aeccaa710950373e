//! INSERT, UPDATE, DELETE.

use super::arbiter::{Arbiters, Asked};
use super::foreign::ForeignTables;
use super::path::{self, Access};
use super::select::plain;
use super::through::{Deed, Goal, assigned_twice};
use super::{Body, General, OutputColumn, Rules, Select, Source, SourceKind, conjuncts};
use crate::bind::{Binder, Bound, folded};
use crate::catalog::{Default, Identity, Kind, Relation};
use crate::error::{Result, SqlError};
use crate::expr::{Builtin, Expr};
use crate::parse::Overriding;
use crate::roles::Rights;
use crate::rows::Shape;
use crate::sqlstate;
use sqlparser::ast;
use std::sync::Arc;
use vellum_row::{CastContext, Settings, Type, Typmod, Value};

/// INSERT.
#[derive(Debug)]
pub(crate) struct Insert {
    pub shape: Arc<Shape>,
    pub source: InsertSource,
    /// For each column of the table: position in the source, or what stands for it.
    pub columns: Vec<Given>,
    /// The parameters are the columns of the one row, in their order, once they are cast to the columns' types.
    pub as_given: bool,
    pub rules: Rules,
    pub conflict: Option<Conflict>,
    /// Whether RETURNING reads, in slot 0, the `xmax` of its rows.
    pub tells_xmax: bool,
    pub keys: ForeignTables,
    pub returning: Option<Vec<Expr>>,
}

/// The rows that are inserted.
#[derive(Debug)]
pub(crate) enum InsertSource {
    /// Rows of expressions that are ones of the columns' types already.
    Rows(Vec<Vec<Expr>>),
    Select(Box<Select>),
}

/// Where the value of a column comes from.
#[derive(Debug)]
pub(crate) enum Given {
    Source(usize),
    /// The same after a cast of column 0's row: of a SELECT.
    Cast(Expr),
    Default(Expr),
}

/// ON CONFLICT.
#[derive(Debug)]
pub(crate) struct Conflict {
    pub arbiters: Arbiters,
    pub action: ConflictAction,
}

/// What is done about it.
#[derive(Debug)]
pub(crate) enum ConflictAction {
    Nothing,
    /// Over the row that is there (table 0) and the one that was to be inserted (table 1).
    Update {
        assignments: Vec<(usize, Expr)>,
        filter: Option<Expr>,
    },
}

/// UPDATE.
#[derive(Debug)]
pub(crate) struct Update {
    pub shape: Arc<Shape>,
    pub access: Access,
    pub filter: Vec<Expr>,
    /// UPDATE … FROM: what finds the rows instead; values of the assigned columns stand behind their keys.
    pub joined: Option<ByJoin>,
    pub assignments: Vec<(usize, Expr)>,
    pub rules: Rules,
    pub keys: ForeignTables,
    pub returning: Option<Vec<Expr>>,
}

/// The rows of a table that are changed, found by a query: their keys, what they are given, then the columns of the other
/// tables.
#[derive(Debug)]
pub(crate) struct ByJoin {
    pub select: Select,
    /// How many columns each of the other tables has, where these stand behind what finds a row.
    pub widths: Vec<usize>,
}

/// DELETE.
#[derive(Debug)]
pub(crate) struct Delete {
    pub shape: Arc<Shape>,
    pub access: Access,
    pub filter: Vec<Expr>,
    /// DELETE … USING: what finds the rows instead.
    pub joined: Option<ByJoin>,
    pub keys: ForeignTables,
    pub returning: Option<Vec<Expr>>,
}

/// See [`Insert::as_given`].
fn is_as_given(source: &InsertSource, columns: &[Given]) -> bool {
    let InsertSource::Rows(rows) = source else {
        return false;
    };
    let [row] = rows.as_slice() else {
        return false;
    };
    let is_param = |at: usize, mut expr: &Expr| {
        while let Expr::Cast { operand, .. } = expr {
            expr = operand;
        }
        matches!(expr, Expr::Param(number) if usize::from(*number) == at)
    };
    let from_own = |at: usize, given: &Given| matches!(given, Given::Source(from) if *from == at);
    row.len() == columns.len()
        && row.iter().enumerate().all(|(at, expr)| is_param(at, expr))
        && columns
            .iter()
            .enumerate()
            .all(|(at, given)| from_own(at, given))
}

impl Binder<'_> {
    /// Binds an INSERT.
    ///
    /// # Errors
    /// Of names and types; `42601` for a wrong number of values; `428C9` for a value of a generated column.
    pub(super) fn insert(&mut self, insert: &ast::Insert) -> Result<(Insert, Vec<OutputColumn>)> {
        let ast::TableObject::TableName(name) = &insert.table else {
            return Err(SqlError::unsupported("this target of INSERT"));
        };
        let goal = self.goal(name, Deed::Insert, insert.returning.is_some())?;
        let relation = goal.table.clone();
        let shape = Arc::new(Shape::of(&relation)?);
        let table = shape.table();
        let alias = insert
            .table_alias
            .as_ref()
            .map(|alias| folded(&alias.alias));
        if insert.partitioned.is_some() {
            return Err(SqlError::syntax("PARTITION of INSERT"));
        }
        let (overriding, named) = Overriding::of(&insert.columns);
        let mut targets = self.insert_targets(&goal, named)?;
        let implicit = named.is_empty();
        let mut columns: Vec<Option<Given>> = (0..table.schema.len()).map(|_| None).collect();
        let listed = super::value_sets::as_select(insert.source.as_deref());
        let source = match listed.as_ref().or(insert.source.as_deref()) {
            // DEFAULT VALUES.
            None => InsertSource::Rows(vec![Vec::new()]),
            Some(query) => match query.body.as_ref() {
                ast::SetExpr::Values(values)
                    if query.order_by.is_none() && query.limit_clause.is_none() =>
                {
                    let given = (implicit, overriding);
                    let rows = self.insert_rows(&goal, &values.rows, &mut targets, given)?;
                    for (at, target) in targets.iter().enumerate() {
                        put(&goal, &mut columns, *target, Some(Given::Source(at)))?;
                    }
                    InsertSource::Rows(rows)
                }
                _ => {
                    let types = targets.iter().map(|target| goal.column(*target).1);
                    self.literals_as = types.collect();
                    let bound = self.query(query);
                    self.literals_as = Vec::new();
                    let (select, from) = bound?;
                    check_width(from.len(), targets.len(), implicit)?;
                    for (at, (target, column)) in targets.iter().zip(&from).enumerate() {
                        let (name, ty, typmod) = goal.column(*target);
                        let taken = match goal.position(*target) {
                            Ok(position) => self.check_given(&relation, position, overriding)?,
                            Err(_) => true,
                        };
                        let bound = Bound {
                            expr: Expr::Column {
                                table: 0,
                                position: at as u16,
                            },
                            ty: Some(column.ty),
                            typmod: column.typmod,
                            start: None,
                        };
                        let cast = self.coerce(bound, ty, typmod, CastContext::Assignment);
                        let cast =
                            cast.map_err(|_| mismatch(self.settings, name, ty, column.ty))?;
                        let given = taken.then_some(Given::Cast(cast));
                        put(&goal, &mut columns, *target, given)?;
                    }
                    InsertSource::Select(Box::new(select))
                }
            },
        };
        for (position, given) in columns.iter().enumerate() {
            if given.is_some() {
                self.goal_uses(&goal, Rights::INSERT, position);
            }
        }
        let columns = columns
            .into_iter()
            .enumerate()
            .map(|(position, given)| match given {
                Some(given) => Ok(given),
                None => {
                    let default = self.default_through(&goal, position, false)?;
                    Ok(Given::Default(default))
                }
            })
            .collect::<Result<Vec<_>>>()?;
        let mut rules = self.open_goal(&goal, alias)?;
        rules.options = self.check_options(&goal)?;
        let conflict = match &insert.on {
            None => None,
            Some(ast::OnInsert::OnConflict(conflict)) => Some(self.conflict(&goal, conflict)?),
            Some(_) => return Err(SqlError::unsupported("ON DUPLICATE KEY")),
        };
        let given = columns.iter().enumerate();
        let given = given.filter(|(_, given)| !matches!(given, Given::Default(_)));
        rules.give(given.map(|(at, _)| at));
        if let Some(Conflict {
            action: ConflictAction::Update { assignments, .. },
            ..
        }) = &conflict
        {
            rules.give(assignments.iter().map(|(at, _)| *at));
        }
        self.tells_xmax = Some(false);
        let returned = self.returning(insert.returning.as_deref());
        let tells_xmax = self.tells_xmax.take().unwrap_or_default();
        let (returning, output) = returned?;
        let as_given = rules.generated.is_empty() && is_as_given(&source, &columns);
        let insert = Insert {
            keys: self.foreign_tables_of_insert(&relation, conflict.as_ref(), &rules)?,
            shape,
            source,
            columns,
            as_given,
            rules,
            conflict,
            tells_xmax,
            returning,
        };
        Ok((insert, output))
    }

    /// Numbers of the columns that an INSERT names; all if it names none.
    pub(super) fn insert_targets(
        &self,
        goal: &Goal,
        columns: &[ast::ObjectName],
    ) -> Result<Vec<usize>> {
        let mut targets = Vec::new();
        if columns.is_empty() {
            targets.extend(0..goal.width());
        }
        for column in columns {
            let place = || self.place(column);
            let position = goal.target(column, self.settings);
            let position = position.map_err(|error| error.at(place()))?;
            if targets.contains(&position) {
                let column = goal.column(position).0;
                let message = format!("column \"{column}\" specified more than once");
                return Err(SqlError::new(sqlstate::DUPLICATE_COLUMN, message).at(place()));
            }
            targets.push(position);
        }
        Ok(targets)
    }

    /// Rows of VALUES as ones of the columns' types.
    pub(super) fn insert_rows(
        &mut self,
        goal: &Goal,
        rows: &[ast::Parens<Vec<ast::Expr>>],
        targets: &mut Vec<usize>,
        (implicit, overriding): (bool, Overriding),
    ) -> Result<Vec<Vec<Expr>>> {
        let width = rows.first().map_or(0, |row| row.content.len());
        check_width(width, targets.len(), implicit).map_err(|error| {
            let first = rows.first().and_then(|row| row.content.get(targets.len()));
            error.at(first.and_then(|expr| self.place(expr)))
        })?;
        targets.truncate(width);
        let mut out = Vec::with_capacity(rows.len());
        for row in rows {
            if row.content.len() != width {
                let error = SqlError::syntax("VALUES lists must all be the same length");
                let first = row.content.first();
                return Err(error.at(first.and_then(|expr| self.place(expr))));
            }
            let given = self.given(row.content.iter())?;
            let mut values = Vec::with_capacity(width);
            let nodes = row.content.iter().zip(given);
            for ((node, bound), target) in nodes.zip(targets.iter()) {
                let (name, ty, typmod) = goal.column(*target);
                let position = goal.position(*target).ok();
                let default = |binder: &mut Self| match position {
                    Some(position) => binder.default_through(goal, position, false),
                    None => Ok(Expr::Const(Value::Null)),
                };
                let Some(bound) = bound else {
                    values.push(default(self)?);
                    continue;
                };
                let taken = match position {
                    Some(position) => self.check_given(&goal.table, position, overriding)?,
                    None => true,
                };
                let from = bound.ty;
                let place = self.place(node);
                let value = self.coerce(bound, ty, typmod, CastContext::Assignment);
                let value = value.map_err(|error| {
                    match from {
                        Some(from) if error.sqlstate() == sqlstate::CANNOT_COERCE => {
                            mismatch(self.settings, name, ty, from)
                        }
                        _ => error,
                    }
                    .at(place)
                })?;
                values.push(match taken {
                    true => value,
                    false => default(self)?,
                });
            }
            out.push(values);
        }
        Ok(out)
    }

    /// Whether the value that an INSERT gives is taken; otherwise the column's own is.
    ///
    /// # Errors
    /// `428C9` where none may be given.
    fn check_given(
        &self,
        relation: &Relation,
        position: usize,
        overriding: Overriding,
    ) -> Result<bool> {
        let own = relation.table().and_then(|table| {
            let column = table.schema.column(position);
            table.default_of(column.id)
        });
        match (own, overriding) {
            (Some(Default::Identity { .. }), Overriding::User) => Ok(false),
            (Some(Default::Identity { .. }), Overriding::System) => Ok(true),
            _ => self
                .check_changeable(relation, position, false)
                .map(|()| true),
        }
    }

    /// # Errors
    /// `428C9` for a column whose value is its own: generated, or an identity that is always generated.
    pub(super) fn check_changeable(
        &self,
        relation: &Relation,
        position: usize,
        update: bool,
    ) -> Result<()> {
        let Some(table) = relation.table() else {
            return Ok(());
        };
        let column = table.schema.column(position);
        let generated = match table.default_of(column.id) {
            Some(Default::Generated(_)) => true,
            Some(Default::Identity {
                kind: Identity::Always,
                ..
            }) => false,
            _ => return Ok(()),
        };
        let message = if update {
            format!("column \"{}\" can only be updated to DEFAULT", column.name)
        } else {
            format!(
                "cannot insert a non-DEFAULT value into column \"{}\"",
                column.name
            )
        };
        let error = SqlError::new(sqlstate::GENERATED_ALWAYS, message);
        let name = &column.name;
        if generated {
            let detail = format!("Column \"{name}\" is a generated column.");
            return Err(error.with_detail(detail));
        }
        let detail =
            format!("Column \"{name}\" is an identity column defined as GENERATED ALWAYS.");
        let error = error.with_detail(detail);
        Err(if update {
            error
        } else {
            error.with_hint("Use OVERRIDING SYSTEM VALUE to override.")
        })
    }

    /// What stands for a column that a statement does not give.
    pub(crate) fn default(&mut self, relation: &Relation, position: usize) -> Result<Expr> {
        let table = relation
            .table()
            .ok_or_else(|| SqlError::internal("no table"))?;
        let column = table.schema.column(position);
        match table.default_of(column.id) {
            None => {
                let domain = table.domain_of(column.id);
                let found = domain
                    .map(|domain| self.domain_default(domain))
                    .transpose()?;
                Ok(found.flatten().unwrap_or(Expr::Const(Value::Null)))
            }
            Some(Default::Expression(sql)) => {
                let node = crate::parse::expression(sql)?;
                let scope = std::mem::take(&mut self.scope);
                let bound = self.stored(|binder| binder.expr(&node));
                self.scope = scope;
                let (ty, typmod) = (column.ty, column.typmod);
                self.coerce(bound?, ty, typmod, CastContext::Assignment)
            }
            Some(Default::Identity { sequence, .. }) => {
                let next = Expr::Call {
                    function: Builtin::NextValue,
                    arguments: [Expr::Const(Value::Oid(*sequence))].into(),
                };
                let bound = Bound::new(next, Type::Int8);
                self.coerce(bound, column.ty, Typmod::NONE, CastContext::Assignment)
            }
            // It is computed when the others are known.
            Some(Default::Generated(_)) => Ok(Expr::Const(Value::Null)),
        }
    }

    fn conflict(&mut self, goal: &Goal, conflict: &ast::OnConflict) -> Result<Conflict> {
        let relation = &goal.table;
        let table = relation
            .table()
            .ok_or_else(|| SqlError::internal("no table"))?;
        // What is looked for is read; so is what is changed.
        if conflict.conflict_target.is_some() {
            self.goal_wants(goal, Rights::SELECT);
            self.uses_column(goal.named.oid, Rights::SELECT, 0);
        }
        let arbiters = match &conflict.conflict_target {
            None => Arbiters::Known(Asked::of(table, None)),
            Some(ast::ConflictTarget::Columns(columns)) => {
                let own = self.scope.clone();
                self.arbiters(relation, &own, columns)?
            }
            Some(ast::ConflictTarget::OnConstraint(name)) => {
                let (_, name) = crate::bind::object_name(name)?;
                let found = table
                    .indexes
                    .iter()
                    .position(|index| *index.name == *name && index.constraint.is_some());
                let found = found.filter(|_| !goal.is_view());
                let found = found.ok_or_else(|| {
                    let message = format!(
                        "constraint \"{name}\" for table \"{}\" does not exist",
                        goal.named.name
                    );
                    SqlError::new(sqlstate::UNDEFINED_OBJECT, message)
                })?;
                Arbiters::Known(Asked::of(table, Some([found].into())))
            }
        };
        let action = match &conflict.action {
            ast::OnConflictAction::DoNothing => ConflictAction::Nothing,
            ast::OnConflictAction::DoUpdate(update) => {
                if conflict.conflict_target.is_none() {
                    let text =
                        "ON CONFLICT DO UPDATE requires inference specification or constraint name";
                    let hint = "For example, ON CONFLICT (column_name).";
                    return Err(SqlError::syntax(text).with_hint(hint));
                }
                self.goal_wants(goal, Rights::UPDATE);
                self.open_excluded(goal)?;
                let assignments = self.assignments(goal, &update.assignments)?;
                let filter = update.selection.as_ref();
                let filter = filter
                    .map(|filter| self.condition(filter, "WHERE"))
                    .transpose()?;
                self.scope.tables.pop();
                self.scope.joined.truncate(usize::from(goal.is_view()));
                ConflictAction::Update {
                    assignments,
                    filter,
                }
            }
        };
        Ok(Conflict { arbiters, action })
    }

    fn returning(
        &mut self,
        items: Option<&[ast::SelectItem]>,
    ) -> Result<(Option<Vec<Expr>>, Vec<OutputColumn>)> {
        match items {
            None => Ok((None, Vec::new())),
            Some(items) => {
                let (output, columns) = self.projection(items)?;
                Ok((Some(output), columns))
            }
        }
    }

    /// Binds an UPDATE.
    ///
    /// # Errors
    /// Of names and types.
    pub(super) fn update(&mut self, update: &ast::Update) -> Result<(Update, Vec<OutputColumn>)> {
        let from = match &update.from {
            None => None,
            Some(ast::UpdateTableFromKind::AfterSet(tables)) => Some(tables.as_slice()),
            Some(_) => return Err(SqlError::syntax("FROM stands behind SET")),
        };
        if !update.table.joins.is_empty() || update.limit.is_some() {
            return Err(SqlError::unsupported("this form of UPDATE"));
        }
        let reads = update.selection.is_some() || update.returning.is_some() || from.is_some();
        let (goal, mut rules) = self.target(&update.table.relation, Deed::Update, reads)?;
        let relation = goal.table.clone();
        if matches!(relation.kind, Kind::System(_)) {
            self.check_named(&goal, &update.assignments)?;
        }
        let mut sources = self.others(&relation, from)?;
        // Before SET: the first use of a parameter decides its type. So it is of those in RETURNING, which is bound again behind FROM.
        let conditions = self.conditions(&goal, update.selection.as_ref())?;
        if self.may_decide(&update.returning) {
            let asked = self.subqueries.len();
            self.dropped(|binder| binder.returning(update.returning.as_deref()))?;
            self.subqueries.truncate(asked);
        }
        let assignments = self.assignments(&goal, &update.assignments)?;
        let (joined, (access, filter)) = match from {
            None => (None, self.find(&goal, conditions)?),
            Some(_) => {
                let values = assignments.iter().map(|(at, expr)| (*at, expr.clone()));
                let joined = self.by_join(
                    &goal,
                    &mut sources,
                    conditions,
                    values.collect(),
                    update.returning.is_some(),
                )?;
                (Some(joined), (Access::all(), Vec::new()))
            }
        };
        rules.options = self.check_options(&goal)?;
        rules.give(assignments.iter().map(|(at, _)| *at));
        let (returning, output) = self.returning(update.returning.as_deref())?;
        let update = Update {
            keys: self.foreign_tables_of(&relation, (&assignments, &rules), false)?,
            shape: Arc::new(Shape::of(&relation)?),
            access,
            filter,
            joined,
            assignments,
            rules,
            returning,
        };
        Ok((update, output))
    }

    /// Binds a DELETE.
    ///
    /// # Errors
    /// As [`Binder::update`].
    pub(super) fn delete(&mut self, delete: &ast::Delete) -> Result<(Delete, Vec<OutputColumn>)> {
        let tables = match &delete.from {
            ast::FromTable::WithFromKeyword(tables) | ast::FromTable::WithoutKeyword(tables) => {
                tables
            }
        };
        let [table] = tables.as_slice() else {
            return Err(SqlError::unsupported("DELETE from several tables"));
        };
        if !table.joins.is_empty() || delete.limit.is_some() {
            return Err(SqlError::unsupported("this form of DELETE"));
        }
        let using = delete.using.as_deref();
        let reads = delete.selection.is_some() || delete.returning.is_some() || using.is_some();
        let (goal, _) = self.target(&table.relation, Deed::Delete, reads)?;
        let relation = goal.table.clone();
        let mut sources = self.others(&relation, using)?;
        let conditions = self.conditions(&goal, delete.selection.as_ref())?;
        let (joined, (access, filter)) = match using {
            None => (None, self.find(&goal, conditions)?),
            Some(_) => {
                let joined = self.by_join(
                    &goal,
                    &mut sources,
                    conditions,
                    Vec::new(),
                    delete.returning.is_some(),
                )?;
                (Some(joined), (Access::all(), Vec::new()))
            }
        };
        let (returning, output) = self.returning(delete.returning.as_deref())?;
        let delete = Delete {
            shape: Arc::new(Shape::of(&relation)?),
            access,
            filter,
            joined,
            keys: self.foreign_tables(&relation)?,
            returning,
        };
        Ok((delete, output))
    }

    /// What is changed: number 0 of the scope.
    fn target(
        &mut self,
        factor: &ast::TableFactor,
        deed: Deed,
        reads: bool,
    ) -> Result<(Goal, Rules)> {
        let ast::TableFactor::Table {
            name,
            alias,
            args: None,
            ..
        } = factor
        else {
            return Err(SqlError::syntax("a change needs the name of a table"));
        };
        let goal = self.goal(name, deed, reads)?;
        let alias = alias.as_ref().map(|alias| folded(&alias.name));
        let rules = self.open_goal(&goal, alias)?;
        Ok((goal, rules))
    }

    /// The table that is changed and those behind FROM or USING.
    fn others(
        &mut self,
        relation: &Arc<Relation>,
        tables: Option<&[ast::TableWithJoins]>,
    ) -> Result<Vec<Source>> {
        let mut sources = vec![Source::inner(SourceKind::Table {
            shape: Arc::new(Shape::of(relation)?),
            access: Access::all(),
        })];
        for table in tables.unwrap_or_default() {
            self.from(table, &mut sources)?;
        }
        Ok(sources)
    }

    /// What finds the rows that are changed by those of other tables; `values` are those of the assigned columns, and `others` says whether
    /// the rows of the other tables are asked for.
    fn by_join(
        &mut self,
        goal: &Goal,
        sources: &mut Vec<Source>,
        conditions: Vec<Expr>,
        values: Vec<(usize, Expr)>,
        others: bool,
    ) -> Result<ByJoin> {
        let table = goal.table.table();
        let table = table.ok_or_else(|| SqlError::internal("no table"))?;
        self.needs(General::ChangeByJoin);
        self.place_conditions(sources, conditions, None);
        let mut output = vec![Expr::Column {
            table: 0,
            position: table.schema.len() as u16,
        }];
        let mut types = vec![Type::Bytea];
        for (position, expr) in values {
            output.push(expr);
            types.push(table.schema.column(position).ty);
        }
        let mut widths = Vec::new();
        for (number, other) in (0u16..).zip(&self.scope.tables).skip(1) {
            if !others {
                break;
            }
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
            sources: std::mem::take(sources),
            grouping: None,
            windows: Vec::new(),
            output,
        };
        let mut select = plain(body, Vec::new());
        select.types = types;
        select.keyed = vec![0];
        select.general = Some(General::ChangeByJoin);
        select.subqueries = std::mem::take(&mut self.subqueries);
        self.open_again(goal)?;
        Ok(ByJoin { select, widths })
    }

    /// What chooses the rows that are changed.
    fn conditions(&mut self, goal: &Goal, selection: Option<&ast::Expr>) -> Result<Vec<Expr>> {
        let mut conditions = self.conditions_of(goal)?;
        if let Some(selection) = selection {
            conjuncts(self.condition(selection, "WHERE")?, &mut conditions);
        }
        Ok(conditions)
    }

    fn find(&mut self, goal: &Goal, mut filter: Vec<Expr>) -> Result<(Access, Vec<Expr>)> {
        let relation = &goal.table;
        let (access, mut covered, _) =
            path::choose(&Shape::of(relation)?, 0, &filter, &self.subqueries, None);
        if access.any.is_none() {
            covered.sort_unstable();
            for at in covered.into_iter().rev() {
                filter.remove(at);
            }
        }
        Ok((access, filter))
    }
}

/// Position of a column of the table.
///
/// # Errors
/// `42703`.
pub(crate) fn column_position(relation: &Relation, name: &str) -> Result<usize> {
    let position = match &relation.kind {
        Kind::System(definition) => definition.columns.iter().position(|own| own.name == name),
        _ => relation
            .table()
            .and_then(|table| table.schema.position(name)),
    };
    position.ok_or_else(|| {
        let message = format!(
            "column \"{name}\" of relation \"{}\" does not exist",
            relation.name
        );
        SqlError::new(sqlstate::UNDEFINED_COLUMN, message)
    })
}

/// Says where the value of a column comes from.
///
/// # Errors
/// `0A000` for a column of a view that is none of its table; `42601` for one that another is, too.
fn put(
    goal: &Goal,
    columns: &mut [Option<Given>],
    target: usize,
    given: Option<Given>,
) -> Result<()> {
    let position = goal.position(target)?;
    if columns[position].is_some() {
        let table = Goal::of_table(&goal.table);
        let (name, ..) = table.column(position);
        return Err(assigned_twice(name));
    }
    columns[position] = given;
    Ok(())
}

pub(super) fn is_default(node: &ast::Expr) -> bool {
    matches!(node, ast::Expr::Identifier(ident)
        if ident.quote_style.is_none() && ident.value.eq_ignore_ascii_case("default"))
}

fn check_width(given: usize, targets: usize, implicit: bool) -> Result<()> {
    if given > targets {
        return Err(SqlError::syntax(
            "INSERT has more expressions than target columns",
        ));
    }
    if given < targets && !implicit {
        return Err(SqlError::syntax(
            "INSERT has more target columns than expressions",
        ));
    }
    Ok(())
}

#[cold]
pub(super) fn mismatch(settings: &Settings, column: &str, ty: Type, from: Type) -> SqlError {
    let message = format!(
        "column \"{column}\" is of type {} but expression is of type {}",
        settings.name_of(ty),
        settings.name_of(from)
    );
    SqlError::new(sqlstate::DATATYPE_MISMATCH, message)
        .with_hint("You will need to rewrite or cast the expression.")
}
