//! What a statement writes: a table, or a view, whose rows are a table's.
//!
//! A view that picks columns and rows of one table is changed by changing that. While the statement is bound, the names of the view's columns stand for expressions over the
//! table, which has no name; the view's condition chooses rows as the statement's own does. So the program is one of the table, found by its indexes. A view of a view is the same once
//! more.
//!
//! Not here: which views these are (`updatable`); what is done with a row that a check option refuses (`exec/change`).

use super::updatable::{Level, NO_COLUMNS};
use super::{Rules, conjuncts};
use crate::bind::{Binder, Joined, JoinedColumn, Lender, Scope, ScopeTable, folded};
use crate::catalog::{CheckOption, Kind, Relation, View};
use crate::error::{Result, SqlError};
use crate::expr::Expr;
use crate::roles::Rights;
use crate::sqlstate;
use sqlparser::ast;
use std::sync::Arc;
use vellum_row::{CastContext, Settings, Type, Typmod};

/// What a statement does with what it writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Deed {
    Insert,
    Update,
    Delete,
}

impl Deed {
    fn right(self) -> Rights {
        match self {
            Self::Insert => Rights::INSERT,
            Self::Update => Rights::UPDATE,
            Self::Delete => Rights::DELETE,
        }
    }

    /// The words of errors: what cannot be done, what is to be made possible, and the trigger that would do it.
    fn words(self) -> [&'static str; 3] {
        match self {
            Self::Insert => ["insert into", "inserting into", "INSERT"],
            Self::Update => ["update", "updating", "UPDATE"],
            Self::Delete => ["delete from", "deleting from", "DELETE"],
        }
    }
}

/// A table that is written, and the views that it is written through.
pub(super) struct Goal {
    /// What the statement names.
    pub named: Arc<Relation>,
    pub table: Arc<Relation>,
    deed: Deed,
    /// The outermost view first; none if a table is named.
    levels: Vec<Level>,
    /// What the columns of the outermost view are.
    columns: Vec<JoinedColumn>,
}

impl Goal {
    /// A table, in itself.
    pub fn of_table(table: &Arc<Relation>) -> Self {
        Self {
            named: table.clone(),
            table: table.clone(),
            deed: Deed::Update,
            levels: Vec::new(),
            columns: Vec::new(),
        }
    }

    pub fn is_view(&self) -> bool {
        !self.levels.is_empty()
    }

    /// How many columns it has by the name that the statement says.
    pub fn width(&self) -> usize {
        match self.is_view() {
            true => self.columns.len(),
            false => self.table.table().map_or(0, |table| table.schema.len()),
        }
    }

    /// Name, type and modifier of one of them.
    pub fn column(&self, number: usize) -> (&str, Type, Typmod) {
        match self.columns.get(number) {
            Some(column) => (&column.name, column.ty, column.typmod),
            None => {
                let schema = self.table.table().map(|table| &table.schema);
                let column = schema.map(|schema| schema.column(number));
                column.map_or(("", Type::Text, Typmod::NONE), |column| {
                    (&column.name, column.ty, column.typmod)
                })
            }
        }
    }

    /// The number of a column.
    ///
    /// # Errors
    /// `42703`.
    pub fn number(&self, name: &str) -> Result<usize> {
        if !self.is_view() {
            return super::column_position(&self.table, name);
        }
        let found = self.columns.iter().position(|column| column.name == name);
        found.ok_or_else(|| {
            let message = format!(
                "column \"{name}\" of relation \"{}\" does not exist",
                self.named.name
            );
            SqlError::new(sqlstate::UNDEFINED_COLUMN, message)
        })
    }

    /// The number of the column that SET, or the list of an INSERT, names: what stands behind a dot is a field of it, never its table's column.
    ///
    /// # Errors
    /// `42703`; `42804` for a field, since no column has rows for values.
    pub fn target(&self, name: &ast::ObjectName, settings: &Settings) -> Result<usize> {
        let parts = || name.0.iter().filter_map(ast::ObjectNamePart::as_ident);
        let own = parts().next().map(folded).unwrap_or_default();
        let number = self.number(&own)?;
        let Some(field) = parts().nth(1) else {
            return Ok(number);
        };
        let (own, ty, _) = self.column(number);
        let message = format!(
            "cannot assign to field \"{}\" of column \"{own}\" because its type {} is not a composite type",
            folded(field),
            settings.name_of(ty)
        );
        Err(SqlError::new(sqlstate::DATATYPE_MISMATCH, message))
    }

    /// The column of the table that one is.
    ///
    /// # Errors
    /// `0A000` if it is none.
    pub fn position(&self, number: usize) -> Result<usize> {
        let mut number = number;
        for level in &self.levels {
            number = match level.reach[number] {
                Ok(below) => below,
                Err(detail) => return Err(self.no_column(level, number, detail)),
            };
        }
        Ok(number)
    }

    /// The columns of one of the views that are a column of the table.
    fn columns_above(&self, depth: usize, position: usize) -> impl Iterator<Item = usize> {
        let levels = &self.levels[depth..];
        let all = 0..levels.first().map_or(0, |level| level.reach.len());
        all.filter(move |number| {
            let mut at = Some(*number);
            for level in levels {
                at = at.and_then(|at| level.reach.get(at)?.ok());
            }
            at == Some(position)
        })
    }

    fn own_default(&self, depth: usize, number: usize) -> Option<&str> {
        let view = view_of(&self.levels[depth].view)?;
        let mut defaults = view.defaults.iter();
        let found = defaults.find(|(own, _)| usize::from(*own) == number + 1);
        found.map(|(_, sql)| &**sql)
    }

    #[cold]
    fn no_column(&self, level: &Level, number: usize, detail: &str) -> SqlError {
        let deed = match self.deed {
            Deed::Insert => "insert into",
            Deed::Update | Deed::Delete => "update",
        };
        let name = match &level.view.kind {
            Kind::View(view) => view.columns.get(number).map_or("", |name| name),
            _ => "",
        };
        let message = format!(
            "cannot {deed} column \"{name}\" of view \"{}\"",
            level.view.name
        );
        SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, message).with_detail(detail)
    }
}

/// What a view has of its options and defaults.
pub(super) fn view_of(relation: &Relation) -> Option<&View> {
    match &relation.kind {
        Kind::View(view) => Some(view),
        _ => None,
    }
}

/// `42601`: as it is said of a table's column that two of a view's are.
#[cold]
pub(super) fn assigned_twice(name: &str) -> SqlError {
    let message = format!("multiple assignments to same column \"{name}\"");
    SqlError::syntax(message)
}

impl Binder<'_> {
    /// What a statement writes. `reads`: its rows are looked at, or told, too.
    ///
    /// # Errors
    /// `42P01`; `55000` for a view that is none of a table's rows.
    pub(super) fn goal(&mut self, name: &ast::ObjectName, deed: Deed, reads: bool) -> Result<Goal> {
        let named = self.relation(name)?;
        let mut goal = Goal {
            deed,
            ..Goal::of_table(&named)
        };
        while view_of(&goal.table).is_some() {
            if goal.levels.len() >= super::from::VIEW_DEPTH {
                return Err(crate::parse::too_deep());
            }
            let view = goal.table.clone();
            let updatable = self.level(&view)?.and_then(|level| {
                let none = !level.reach.iter().any(std::result::Result::is_ok);
                match none && deed != Deed::Delete {
                    true => Err(NO_COLUMNS),
                    false => Ok(level),
                }
            });
            let level = updatable.map_err(|detail| refused(&view, deed, detail))?;
            goal.table = level.below.clone();
            goal.levels.push(level);
        }
        self.goal_wants(&goal, deed.right());
        if reads {
            self.goal_wants(&goal, Rights::SELECT);
        }
        self.targets.push(goal.table.oid);
        if goal.is_view() {
            goal.columns = self.columns_of_goal(&goal)?;
        }
        Ok(goal)
    }

    /// A right more that a statement needs on what it writes: on the view that it names, and on what each reads, of who counts there.
    pub(super) fn goal_wants(&mut self, goal: &Goal, right: Rights) {
        self.uses(&goal.named, right);
        for level in &goal.levels {
            self.uses_as(&level.below, right, Lender::of(&level.view));
        }
    }

    /// Notes that a column of it, by its position in the table, is given a value.
    pub(super) fn goal_uses(&mut self, goal: &Goal, right: Rights, position: usize) {
        if let Some(table) = goal.table.table().filter(|_| !goal.is_view()) {
            let number = table.schema.column(position).id.0;
            self.uses_column(goal.table.oid, right, number);
        }
    }

    /// Makes it number 0 of the scope, which is empty; the rules of the table.
    ///
    /// # Errors
    /// Those of [`Binder::rules`].
    pub(super) fn open_goal(&mut self, goal: &Goal, alias: Option<String>) -> Result<Rules> {
        if !goal.is_view() {
            self.scope.add(ScopeTable::of(&goal.table, alias)?)?;
            return self.rules(&goal.table);
        }
        self.scope.add(ScopeTable::of(&goal.table, None)?)?;
        let rules = self.rules(&goal.table);
        self.scope.tables[0] = nameless(&goal.table)?;
        self.scope.joined.push(Joined {
            from: 0,
            to: 1,
            own: alias.is_none().then_some(goal.named.oid),
            name: Some(alias.unwrap_or_else(|| goal.named.name.to_string())),
            columns: goal.columns.clone(),
            qualified_only: false,
        });
        rules
    }

    /// What the columns of a view are, over the subqueries that are the statement's from here on.
    ///
    /// # Errors
    /// None that is known: they were bound before.
    pub(super) fn open_again(&mut self, goal: &Goal) -> Result<()> {
        if goal.is_view() {
            let columns = self.columns_of_goal(goal)?;
            if let Some(joined) = self.scope.joined.first_mut() {
                joined.columns = columns;
            }
        }
        Ok(())
    }

    /// What the rows of a view are chosen by.
    ///
    /// # Errors
    /// As [`Binder::open_again`].
    pub(super) fn conditions_of(&mut self, goal: &Goal) -> Result<Vec<Expr>> {
        Ok(self
            .conditions_by_view(goal)?
            .into_iter()
            .flatten()
            .collect())
    }

    /// `excluded` behind number 0: the row of the table that was to be inserted, as the view shows it.
    ///
    /// # Errors
    /// As [`Binder::open_again`].
    pub(super) fn open_excluded(&mut self, goal: &Goal) -> Result<()> {
        if !goal.is_view() {
            let excluded = Some("excluded".to_owned());
            return self
                .scope
                .add(ScopeTable::of(&goal.table, excluded)?)
                .map(drop);
        }
        self.scope.tables.push(nameless(&goal.table)?);
        let columns = goal.columns.iter().filter_map(|column| {
            let mut column = column.clone();
            second(&mut column.expr).then_some(column)
        });
        self.scope.joined.push(Joined {
            from: 1,
            to: 2,
            name: Some("excluded".to_owned()),
            own: None,
            columns: columns.collect(),
            qualified_only: true,
        });
        Ok(())
    }

    /// What check options want of the rows that are written, the inner views' first, with the names of the views.
    ///
    /// # Errors
    /// As [`Binder::open_again`].
    pub(super) fn check_options(&mut self, goal: &Goal) -> Result<Vec<(String, Vec<Expr>)>> {
        let mut cascaded = false;
        let wanted = goal.levels.iter().map(|level| {
            let option = view_of(&level.view).and_then(View::check_option);
            cascaded |= option == Some(CheckOption::Cascaded);
            option.is_some() || cascaded
        });
        let wanted: Vec<bool> = wanted.collect();
        if !wanted.contains(&true) {
            return Ok(Vec::new());
        }
        let conditions = self.conditions_by_view(goal)?;
        let levels = goal.levels.iter().zip(wanted).rev();
        let all = levels.zip(conditions).filter_map(|((level, wanted), own)| {
            let wanted = wanted && !own.is_empty();
            wanted.then(|| (level.view.name.to_string(), own))
        });
        Ok(all.collect())
    }

    /// What stands for a column that a statement does not give, or of which it says DEFAULT: the outermost view's own default, or that of the column's domain; then those of
    /// the views below; then the table's. UPDATE knows of the outermost view's only, as in PostgreSQL.
    ///
    /// # Errors
    /// Of names and types.
    pub(super) fn default_through(
        &mut self,
        goal: &Goal,
        position: usize,
        update: bool,
    ) -> Result<Expr> {
        let Some(table) = goal.table.table().filter(|_| goal.is_view()) else {
            return self.default(&goal.table, position);
        };
        let column = table.schema.column(position);
        for depth in 0..goal.levels.len() {
            let mut own = goal.columns_above(depth, position).peekable();
            let has_it = own.peek().is_some();
            if let Some(sql) = own.find_map(|number| goal.own_default(depth, number)) {
                let node = crate::parse::expression(sql)?;
                let scope = std::mem::take(&mut self.scope);
                let bound = self.stored(|binder| binder.expr(&node));
                self.scope = scope;
                return self.coerce(bound?, column.ty, column.typmod, CastContext::Assignment);
            }
            if has_it
                && let Some(domain) = table.domain_of(column.id)
                && let Some(default) = self.domain_default(domain)?
            {
                return Ok(default);
            }
            if update {
                return Ok(Expr::Const(vellum_row::Value::Null));
            }
        }
        self.default(&goal.table, position)
    }

    /// The columns of the outermost view, over the table.
    fn columns_of_goal(&mut self, goal: &Goal) -> Result<Vec<JoinedColumn>> {
        let mut columns = Vec::new();
        for depth in (0..goal.levels.len()).rev() {
            columns = self.columns_at(goal, depth, columns)?;
        }
        Ok(columns)
    }

    /// The columns of a view, and those of the one below, over the table.
    fn columns_at(
        &mut self,
        goal: &Goal,
        depth: usize,
        below: Vec<JoinedColumn>,
    ) -> Result<Vec<JoinedColumn>> {
        let level = &goal.levels[depth];
        let (exprs, columns) = self.at_level(goal, depth, below, |binder| {
            binder.projection(&level.select.projection)
        })?;
        let names = view_of(&level.view).map_or(&[][..], |view| &view.columns);
        let columns = exprs.into_iter().zip(columns).zip(names);
        let columns = columns.map(|((expr, column), name)| JoinedColumn {
            name: name.to_string(),
            expr,
            ty: column.ty,
            typmod: column.typmod,
        });
        Ok(columns.collect())
    }

    /// The conditions of the views, the inner ones' first.
    fn conditions_by_view(&mut self, goal: &Goal) -> Result<Vec<Vec<Expr>>> {
        let mut all = Vec::with_capacity(goal.levels.len());
        let mut columns: Vec<JoinedColumn> = Vec::new();
        for depth in (0..goal.levels.len()).rev() {
            let mut conditions = Vec::new();
            if let Some(selection) = &goal.levels[depth].select.selection {
                let condition = self.at_level(goal, depth, columns.clone(), |binder| {
                    binder.condition(selection, "WHERE")
                })?;
                conjuncts(condition, &mut conditions);
            }
            all.push(conditions);
            // Of the outermost view nobody asks here.
            if depth > 0 {
                columns = self.columns_at(goal, depth, columns)?;
            }
        }
        Ok(all)
    }

    /// Binds a part of a view's query.
    fn at_level<R>(
        &mut self,
        goal: &Goal,
        depth: usize,
        below: Vec<JoinedColumn>,
        work: impl FnOnce(&mut Self) -> Result<R>,
    ) -> Result<R> {
        let level = &goal.levels[depth];
        let last = depth + 1 == goal.levels.len();
        let scope = scope_of(goal, level, last, below)?;
        let around = std::mem::replace(&mut self.scope, scope);
        let bound = self.of_view(&level.view, work);
        self.scope = around;
        bound
    }
}

/// What the query of a view sees: the table itself, or the columns of the view below.
fn scope_of(goal: &Goal, level: &Level, last: bool, columns: Vec<JoinedColumn>) -> Result<Scope> {
    let mut scope = Scope::default();
    if last {
        let mut table = ScopeTable::of(&goal.table, Some(level.name.clone()))?;
        table.own = level.own();
        for (column, name) in table.columns.iter_mut().zip(&level.names) {
            column.name.clone_from(name);
        }
        scope.add(table)?;
        return Ok(scope);
    }
    scope.add(nameless(&goal.table)?)?;
    let columns = columns.into_iter().zip(&level.names);
    let columns = columns.map(|(column, name)| JoinedColumn {
        name: name.clone(),
        ..column
    });
    scope.joined.push(Joined {
        from: 0,
        to: 1,
        name: Some(level.name.clone()),
        own: level.own(),
        columns: columns.collect(),
        qualified_only: false,
    });
    Ok(scope)
}

/// A table that nothing in a statement can name, nor its columns.
fn nameless(relation: &Arc<Relation>) -> Result<ScopeTable> {
    let mut table = ScopeTable::of(relation, Some(String::new()))?;
    for column in &mut table.columns {
        column.name.clear();
    }
    table.qualified_only = true;
    table.relation = None;
    Ok(table)
}

/// Makes columns of table 0 those of table 1; false for what asks a query, which goes on reading table 0.
fn second(expr: &mut Expr) -> bool {
    if let Expr::Column { table, .. } = expr {
        *table = 1;
        return true;
    }
    if expr.asks_a_query() {
        return false;
    }
    let mut all = true;
    expr.children_mut(&mut |child| all &= second(child));
    all
}

/// `55000`.
#[cold]
fn refused(view: &Relation, deed: Deed, detail: &str) -> SqlError {
    let [cannot, enable, trigger] = deed.words();
    let message = format!("cannot {cannot} view \"{}\"", view.name);
    let hint = format!(
        "To enable {enable} the view, provide an INSTEAD OF {trigger} trigger or an unconditional ON {trigger} DO INSTEAD rule."
    );
    SqlError::new(sqlstate::OBJECT_NOT_IN_PREREQUISITE_STATE, message)
        .with_detail(detail)
        .with_hint(hint)
}
