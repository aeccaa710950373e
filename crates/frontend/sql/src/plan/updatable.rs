//! Which views are rows of one table, so that they can be changed, and which of their columns: PostgreSQL's `view_query_is_auto_updatable`, rule by rule.
//!
//! Not here: changing them (`through`).

use super::through::view_of;
use super::{Body, Select, SourceKind};
use crate::bind::{Binder, folded, star_of};
use crate::catalog::{Kind, Oid, Relation};
use crate::error::{Result, SqlError};
use sqlparser::ast;
use std::sync::Arc;

const NO_COLUMN: &str =
    "View columns that are not columns of their base relation are not updatable.";
const SYSTEM_COLUMN: &str = "View columns that refer to system columns are not updatable.";
const WHOLE_ROW: &str = "View columns that return whole-row references are not updatable.";
pub(super) const NO_COLUMNS: &str =
    "Views that have no updatable columns are not automatically updatable.";
const NOT_ONE: &str =
    "Views that do not select from a single table or view are not automatically updatable.";

/// Columns that tables have unsaid.
const SYSTEM_COLUMNS: [&str; 6] = ["tableoid", "ctid", "xmin", "cmin", "xmax", "cmax"];

/// The column below that a view's is, or why it is none.
pub(super) type Reached = std::result::Result<usize, &'static str>;

/// A view, of one table or another view.
pub(super) struct Level {
    pub view: Arc<Relation>,
    pub select: Box<ast::Select>,
    pub below: Arc<Relation>,
    /// What the query calls that, and its columns.
    pub name: String,
    /// Whether that is an alias.
    pub is_aliased: bool,
    pub names: Vec<String>,
    /// For each column the one that it is below, or why it is none.
    pub reach: Vec<Reached>,
}

impl Level {
    /// What it is of under that one's own name.
    pub fn own(&self) -> Option<Oid> {
        (!self.is_aliased).then_some(self.below.oid)
    }
}

/// Which changes a relation takes.
#[derive(Debug)]
pub(crate) struct Changes {
    /// Whether there is a table at the end of its views.
    ends: bool,
    /// Of each view the columns below that its own are.
    reach: Vec<Vec<Reached>>,
}

impl Changes {
    pub const UPDATE: i32 = 4;
    pub const INSERT: i32 = 8;
    pub const DELETE: i32 = 16;

    /// As PostgreSQL's bits; of one of its columns, if that is said.
    pub fn events(&self, column: Option<usize>) -> i32 {
        if !self.ends {
            return 0;
        }
        let mut events = Self::UPDATE | Self::INSERT | Self::DELETE;
        let mut among: Vec<usize> = column.into_iter().collect();
        for reach in &self.reach {
            let own = reach.iter().enumerate();
            let own = own.filter(|(at, _)| among.is_empty() || among.contains(at));
            among = own.filter_map(|(_, reached)| reached.ok()).collect();
            if among.is_empty() {
                events &= Self::DELETE;
            }
        }
        events
    }

    /// Whether a column can be changed, and its row deleted.
    pub fn reaches(&self, column: usize) -> bool {
        let wanted = Self::UPDATE | Self::DELETE;
        self.events(Some(column)) & wanted == wanted
    }
}

impl Binder<'_> {
    /// Which changes a relation takes.
    ///
    /// # Errors
    /// Of a view that cannot be bound any more.
    pub(crate) fn changes_of(&mut self, relation: &Arc<Relation>) -> Result<Changes> {
        let mut changes = Changes {
            ends: false,
            reach: Vec::new(),
        };
        let mut relation = relation.clone();
        while changes.reach.len() < super::from::VIEW_DEPTH {
            changes.ends = match &relation.kind {
                Kind::Table(_) => true,
                Kind::System(definition) => !definition.is_view,
                _ => false,
            };
            if !matches!(relation.kind, Kind::View(_)) {
                break;
            }
            let Ok(level) = self.level(&relation)? else {
                break;
            };
            changes.reach.push(level.reach);
            relation = level.below;
        }
        Ok(changes)
    }

    /// Why the rows of a view with this query would be none of a table's, if they would not.
    ///
    /// # Errors
    /// Of names and types.
    pub(crate) fn why_not_updatable(
        &mut self,
        view: &Arc<Relation>,
    ) -> Result<Option<&'static str>> {
        Ok(match self.level(view)? {
            Err(detail) => Some(detail),
            Ok(level) if !level.reach.iter().any(std::result::Result::is_ok) => Some(NO_COLUMNS),
            Ok(_) => None,
        })
    }

    /// A view over one relation; otherwise why it is none.
    pub(super) fn level(
        &mut self,
        view: &Arc<Relation>,
    ) -> Result<std::result::Result<Level, &'static str>> {
        let own = view_of(view).ok_or_else(|| SqlError::internal("no view"))?;
        let query = super::from::query_of(&own.query)?;
        let select = match simple(&query) {
            Ok(select) => select.clone(),
            Err(detail) => return Ok(Err(detail)),
        };
        let (general, lent) = (self.general.take(), self.lent.len());
        let bound = self.stored_query(view, &own.query);
        self.general = general;
        self.lent.truncate(lent);
        let (bound, _) = bound?;
        if let Some(detail) = made_of(&bound, &select) {
            return Ok(Err(detail));
        }
        let [table] = select.from.as_slice() else {
            return Ok(Err(NOT_ONE));
        };
        let ast::TableFactor::Table {
            name,
            alias,
            args: None,
            ..
        } = &table.relation
        else {
            return Ok(Err(NOT_ONE));
        };
        if !table.joins.is_empty() {
            return Ok(Err(NOT_ONE));
        }
        let below = self.of_view(view, |binder| binder.relation(name))?;
        let mut names: Vec<String> = match &below.kind {
            Kind::Table(table) => {
                let columns = table.schema.columns();
                columns.map(|column| column.name.to_string()).collect()
            }
            Kind::View(view) => view.columns.iter().map(ToString::to_string).collect(),
            Kind::System(definition) => {
                let columns = definition.columns.iter();
                columns.map(|column| column.name.to_owned()).collect()
            }
            Kind::Sequence(_) | Kind::Enum(_) | Kind::Domain(_) => return Ok(Err(NOT_ONE)),
        };
        for (own, given) in names
            .iter_mut()
            .zip(alias.iter().flat_map(|alias| &alias.columns))
        {
            *own = folded(&given.name);
        }
        let alias = alias.as_ref().map(|alias| folded(&alias.name));
        let is_aliased = alias.is_some();
        let name = alias.unwrap_or_else(|| below.name.to_string());
        let mut reach = Vec::with_capacity(own.columns.len());
        for item in &select.projection {
            match item {
                ast::SelectItem::UnnamedExpr(expr)
                | ast::SelectItem::ExprWithAlias { expr, .. }
                    if star_of(expr).is_none() =>
                {
                    reach.push(reached(expr, &name, &names));
                }
                _ => reach.extend((0..names.len()).map(Ok)),
            }
        }
        // A star that was kept as one: columns that were added since are none of the view's.
        if !matches!(
            select.projection.last(),
            Some(ast::SelectItem::UnnamedExpr(_) | ast::SelectItem::ExprWithAlias { .. })
        ) {
            reach.truncate(own.columns.len());
        }
        if reach.len() != own.columns.len() {
            return Err(SqlError::internal("a view with other columns"));
        }
        Ok(Ok(Level {
            view: view.clone(),
            select: Box::new(select),
            below,
            name,
            is_aliased,
            names,
            reach,
        }))
    }
}

/// The query of a view that may be one of a table's rows, by its clauses.
fn simple(query: &ast::Query) -> std::result::Result<&ast::Select, &'static str> {
    let limited = match &query.limit_clause {
        None => false,
        Some(ast::LimitClause::LimitOffset { limit, offset, .. }) => {
            limit.is_some() || offset.is_some()
        }
        Some(ast::LimitClause::OffsetCommaLimit { .. }) => true,
    };
    let select = match &*query.body {
        ast::SetExpr::Select(select) => Some(select),
        ast::SetExpr::Query(inner) if query.with.is_none() && !limited && query.fetch.is_none() => {
            return simple(inner);
        }
        _ => None,
    };
    if let Some(select) = select {
        if matches!(
            select.distinct,
            Some(ast::Distinct::Distinct | ast::Distinct::On(_))
        ) {
            return Err("Views containing DISTINCT are not automatically updatable.");
        }
        let grouped = match &select.group_by {
            ast::GroupByExpr::All(_) => true,
            ast::GroupByExpr::Expressions(keys, more) => !keys.is_empty() || !more.is_empty(),
        };
        if grouped {
            return Err("Views containing GROUP BY are not automatically updatable.");
        }
        if select.having.is_some() {
            return Err("Views containing HAVING are not automatically updatable.");
        }
    }
    if matches!(&*query.body, ast::SetExpr::SetOperation { .. }) {
        return Err(
            "Views containing UNION, INTERSECT, or EXCEPT are not automatically updatable.",
        );
    }
    if query.with.is_some() {
        return Err("Views containing WITH are not automatically updatable.");
    }
    if limited || query.fetch.is_some() {
        return Err("Views containing LIMIT or OFFSET are not automatically updatable.");
    }
    select.map(|select| &**select).ok_or(NOT_ONE)
}

/// Why a query is none of a table's rows, by what its lists are made of.
fn made_of(bound: &Select, select: &ast::Select) -> Option<&'static str> {
    let Body::From {
        sources,
        grouping,
        windows,
        ..
    } = &bound.body
    else {
        return Some(NOT_ONE);
    };
    if grouping.is_some() {
        return Some("Views that return aggregate functions are not automatically updatable.");
    }
    if !windows.is_empty() {
        return Some("Views that return window functions are not automatically updatable.");
    }
    let alone = match select.from.as_slice() {
        [table] => table.joins.is_empty(),
        _ => false,
    };
    let returns_sets = |kind: &SourceKind| {
        matches!(
            kind,
            SourceKind::Function { .. } | SourceKind::Series { .. }
        )
    };
    let last = sources.last().map(|source| &source.kind);
    if (alone && sources.len() > 1) || (select.from.is_empty() && last.is_some_and(returns_sets)) {
        return Some("Views that return set-returning functions are not automatically updatable.");
    }
    (!alone).then_some(NOT_ONE)
}

/// The column that an item of a view's list is, or why it is none.
fn reached(expr: &ast::Expr, table: &str, names: &[String]) -> Reached {
    let name = match expr {
        ast::Expr::Nested(inner) => return reached(inner, table, names),
        ast::Expr::Identifier(name) => Some(name),
        ast::Expr::CompoundIdentifier(parts) => parts.last(),
        _ => None,
    };
    let name = name.map(folded).ok_or(NO_COLUMN)?;
    match names.iter().position(|own| *own == name) {
        Some(at) => Ok(at),
        None if SYSTEM_COLUMNS.contains(&&*name) => Err(SYSTEM_COLUMN),
        None if name == table => Err(WHOLE_ROW),
        None => Err(NO_COLUMN),
    }
}
