//! A view's query as PostgreSQL shows it: a clause a line, columns with their tables in front, parentheses around what operators make (`ruleutils`).
//!
//! It is written over the syntax tree that the catalog keeps, not over what was bound.
//!
//! Differences: constants have no casts that nobody wrote; `IN (…)` stays as it is; of tables that are called alike none gets another name.
//! Some forms are not written here, and the query is shown as it is kept: fields of rows and subscripts of what is no column, `AT TIME ZONE` and COLLATE
//! prettily, names that mean another table without their schema, and what would come to more than some dozens of times its text.
//!
//! Not here: expressions (terms.rs); what a name without its table means (names.rs).

mod names;
mod terms;

use crate::bind::{folded, star_of};
use crate::catalog::View;
use crate::names::quoted;
use crate::parse::with_exclusions;
use crate::plan::column_name_of;
use crate::session::Env;
use names::Known;
use sqlparser::ast::{
    Cte, CteAsMaterialized, Distinct, Expr, GroupByExpr, Join, JoinConstraint, JoinOperator,
    LimitClause, NamedWindowDefinition, NamedWindowExpr, ObjectNamePart, OrderByExpr, OrderByKind,
    Query, Select, SelectItem, SetExpr, SetOperator, SetQuantifier, Statement, TableAlias,
    TableFactor, TableWithJoins, Values,
};
use std::cell::Cell;

/// Columns that a subquery stands further in.
const STEP: i32 = 8;
/// Columns of parts of a clause.
const PART: i32 = 4;
/// Columns up to which lines are indented plainly.
const INDENT_MAX: i32 = 40;

/// Begins a line in a text that is not in its place yet: what is blank before it goes. In no text of a statement.
const LINE: char = '\u{2}';
/// Before what is written already, in the place of an expression.
const WRITTEN: char = '\u{3}';

/// What may be written of a view in all, nobody being asked meanwhile whether it is still wanted: so much, and so many times its text.
const SPENT_LEAST: usize = 64 << 10;
const SPENT_OF_TEXT: usize = 64;

/// The query of a view, whose text this is; `None` for a form that is shown as it is kept.
pub(super) fn view_text(env: &Env<'_>, view: &View, text: &str, pretty: bool) -> Option<String> {
    // Frames with EXCLUDE stand in the tree as operators.
    if text.contains([LINE, WRITTEN]) || with_exclusions(text) != text {
        return None;
    }
    let Some(Statement::Query(query)) = crate::parse::statements(text).ok()?.pop() else {
        return None;
    };
    let mut writer = Writer {
        env,
        pretty,
        text: String::new(),
        level: 0,
        with: Vec::new(),
        scopes: Vec::new(),
        rest: Cell::new(SPENT_LEAST + SPENT_OF_TEXT * text.len()),
    };
    writer.query(&query, Some(&view.columns), true)?;
    Some(laid_out(&writer.text))
}

/// A text with its lines in their places.
fn laid_out(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            LINE => {
                out.truncate(out.trim_end_matches(' ').len());
                out.push('\n');
            }
            WRITTEN => {}
            char => out.push(char),
        }
    }
    out
}

/// Writes a query.
struct Writer<'e> {
    env: &'e Env<'e>,
    /// Without parentheses that say nothing.
    pretty: bool,
    text: String,
    /// Columns that what is written stands further in.
    level: i32,
    /// Queries of WITH, the innermost last.
    with: Vec<Known>,
    /// What the queries around what is written read, the innermost last.
    scopes: Vec<Vec<Known>>,
    /// Bytes that may still be written and names that may be looked at: the operand of BETWEEN is there twice, and so is what is in it, four times.
    rest: Cell<usize>,
}

impl Writer<'_> {
    /// So much is done. `None`: it is too much in all.
    fn spend(&self, count: usize) -> Option<()> {
        self.rest.set(self.rest.get().checked_sub(count)?);
        Some(())
    }

    /// A line that begins with a word: so much further out, with so many more columns before it, and what is behind it so much further in.
    fn line(&mut self, word: &str, out: i32, more: i32, inwards: i32) {
        let level = self.level - out;
        let indent = if level < INDENT_MAX {
            level.max(0)
        } else {
            (INDENT_MAX + (level - INDENT_MAX) / (STEP / 2)) % INDENT_MAX
        };
        self.text.push(LINE);
        for _ in 0..indent + more {
            self.text.push(' ');
        }
        self.text.push_str(word);
        self.level = (level + inwards).max(0);
    }

    /// A clause of the query whose parts stand a step in.
    fn clause(&mut self, word: &str, more: i32) {
        self.line(word, STEP, more, STEP);
    }

    /// A query. `names`: what its columns are called, if not as it says; `visible`: whether somebody sees that.
    fn query(&mut self, query: &Query, names: Option<&[Box<str>]>, visible: bool) -> Option<()> {
        let (level, with) = (self.level, self.with.len());
        if let Some(own) = &query.with {
            self.text.push_str(if own.recursive {
                " WITH RECURSIVE "
            } else {
                " WITH "
            });
            self.level += STEP;
            for (at, cte) in own.cte_tables.iter().enumerate() {
                self.text.push_str(if at == 0 { "" } else { ", " });
                self.with_query(cte, own.recursive)?;
            }
            self.level -= STEP;
            self.line("", 0, 0, 0);
        }
        let scopes = self.scopes.len();
        match bare(&query.body) {
            SetExpr::Select(select) => {
                self.select(select, names, visible)?;
                self.order(query, Some(select))?;
            }
            SetExpr::Values(values) => {
                self.values(values)?;
                self.order(query, None)?;
            }
            body @ SetExpr::SetOperation { .. } => {
                self.set_operation(body, names, visible)?;
                self.order(query, None)?;
            }
            _ => return None,
        }
        self.limit(query)?;
        for lock in &query.locks {
            self.clause(&format!(" {lock}"), 0);
        }
        self.scopes.truncate(scopes);
        self.with.truncate(with);
        self.level = level;
        Some(())
    }

    /// A query in parentheses, of an expression or in FROM.
    fn nested(&mut self, query: &Query, visible: bool) -> Option<()> {
        self.text.push('(');
        self.query(query, None, visible)?;
        self.text.push(')');
        Some(())
    }

    fn with_query(&mut self, cte: &Cte, recursive: bool) -> Option<()> {
        let name = folded(&cte.alias.name);
        self.text.push_str(&quoted(&name));
        self.column_list(&cte.alias, &[]);
        self.text.push_str(match cte.materialized {
            None => " AS ",
            Some(CteAsMaterialized::Materialized) => " AS MATERIALIZED ",
            Some(CteAsMaterialized::NotMaterialized) => " AS NOT MATERIALIZED ",
        });
        self.text.push('(');
        let columns = self.columns_of(&cte.query);
        let known = Known::under(name, columns, Some(&cte.alias));
        if recursive {
            self.with.push(known.clone());
        }
        self.line("", 0, 0, 0);
        self.query(&cte.query, None, true)?;
        self.line(")", 0, 0, 0);
        if !recursive {
            self.with.push(known);
        }
        Some(())
    }

    /// A query of several; those inside in parentheses, where they are of another kind.
    fn set_operation(
        &mut self,
        body: &SetExpr,
        names: Option<&[Box<str>]>,
        visible: bool,
    ) -> Option<()> {
        let SetExpr::SetOperation {
            left,
            op,
            set_quantifier,
            right,
        } = body
        else {
            return self.arm(body, names, visible);
        };
        let all = match set_quantifier {
            SetQuantifier::All => true,
            SetQuantifier::None | SetQuantifier::Distinct => false,
            _ => return None,
        };
        let (left, right) = (bare(left), bare(right));
        let apart = match left {
            SetExpr::SetOperation {
                op: inner,
                set_quantifier: own,
                ..
            } => inner != op || (*own == SetQuantifier::All) != all,
            _ => false,
        };
        if apart {
            self.text.push('(');
            self.line("", -STEP, 0, 0);
        }
        self.set_operation(left, names, visible)?;
        match apart {
            true => self.line(") ", STEP, 0, 0),
            false => self.line("", 0, 0, 0),
        }
        self.text.push_str(match op {
            SetOperator::Union => "UNION ",
            SetOperator::Except => "EXCEPT ",
            SetOperator::Intersect => "INTERSECT ",
            SetOperator::Minus => return None,
        });
        self.text.push_str(if all { "ALL " } else { "" });
        let apart = matches!(right, SetExpr::SetOperation { .. });
        if apart {
            self.text.push('(');
        }
        self.line("", if apart { -STEP } else { 0 }, 0, 0);
        self.set_operation(right, names, false)?;
        if apart {
            self.level -= STEP;
            self.line(")", 0, 0, 0);
        }
        Some(())
    }

    /// One of the queries of a set operation.
    fn arm(&mut self, body: &SetExpr, names: Option<&[Box<str>]>, visible: bool) -> Option<()> {
        let (level, scopes) = (self.level, self.scopes.len());
        match body {
            SetExpr::Select(select) => self.select(select, names, visible)?,
            SetExpr::Values(values) => self.values(values)?,
            SetExpr::Query(query) => {
                self.text.push('(');
                self.query(query, names, visible)?;
                self.text.push(')');
            }
            _ => return None,
        }
        self.scopes.truncate(scopes);
        self.level = level;
        Some(())
    }

    fn values(&mut self, values: &Values) -> Option<()> {
        self.text.push_str(" VALUES ");
        self.level += STEP;
        for (at, row) in values.rows.iter().enumerate() {
            self.text.push_str(if at == 0 { "(" } else { ", (" });
            for (at, value) in row.content.iter().enumerate() {
                let value = self.expr(value)?;
                self.text.push_str(if at == 0 { "" } else { "," });
                self.text.push_str(&value);
            }
            self.text.push(')');
        }
        Some(())
    }

    /// A SELECT, whose scope and level stay for what stands behind it.
    fn select(&mut self, select: &Select, names: Option<&[Box<str>]>, visible: bool) -> Option<()> {
        if select.into.is_some() || select.top.is_some() {
            return None;
        }
        let scope = self.scope_of(&select.from);
        self.scopes.push(scope);
        self.text.push_str(" SELECT");
        self.level += STEP;
        match &select.distinct {
            None | Some(Distinct::All) => {}
            Some(Distinct::Distinct) => self.text.push_str(" DISTINCT"),
            Some(Distinct::On(keys)) => {
                let keys = keys.iter().map(|key| self.key(key, select, true));
                let keys = keys.collect::<Option<Vec<_>>>()?;
                self.text
                    .push_str(&format!(" DISTINCT ON ({})", keys.join(", ")));
            }
        }
        self.targets(select, names, visible)?;
        for (at, table) in select.from.iter().enumerate() {
            match at {
                0 => self.clause(" FROM ", 2),
                _ => {
                    self.text.push_str(", ");
                    self.clause("", PART);
                }
            }
            self.joined(table)?;
        }
        if let Some(condition) = &select.selection {
            let condition = self.expr(condition)?;
            self.clause(" WHERE ", 1);
            self.text.push_str(&condition);
        }
        match &select.group_by {
            GroupByExpr::Expressions(keys, modifiers) if modifiers.is_empty() => {
                if !keys.is_empty() {
                    let keys = keys.iter().map(|key| self.key(key, select, false));
                    let keys = keys.collect::<Option<Vec<_>>>()?;
                    self.clause(" GROUP BY ", 1);
                    self.text.push_str(&keys.join(", "));
                }
            }
            _ => return None,
        }
        if let Some(condition) = &select.having {
            let condition = self.expr(condition)?;
            self.clause(" HAVING ", 0);
            self.text.push_str(&condition);
        }
        for (at, NamedWindowDefinition(name, window)) in select.named_window.iter().enumerate() {
            let NamedWindowExpr::WindowSpec(spec) = window else {
                return None;
            };
            let spec = self.spelled(spec.clone())?;
            match at {
                0 => self.clause(" WINDOW ", 1),
                _ => self.text.push_str(", "),
            }
            let name = quoted(&folded(name));
            self.text.push_str(&format!("{name} AS ({spec})"));
        }
        Some(())
    }

    /// The list of a SELECT.
    fn targets(
        &mut self,
        select: &Select,
        names: Option<&[Box<str>]>,
        visible: bool,
    ) -> Option<()> {
        let mut number = 0;
        for item in &select.projection {
            let (expr, alias) = match item {
                SelectItem::UnnamedExpr(expr) if star_of(expr).is_some() => return None,
                SelectItem::UnnamedExpr(expr) => (expr.clone(), None),
                SelectItem::ExprWithAlias { expr, alias } => (expr.clone(), Some(alias)),
                SelectItem::Wildcard(_) => {
                    for (table, column) in self.all_columns(select)? {
                        let text = format!("{}.{}", quoted(&table), quoted(&column));
                        self.target(&text, &mut number);
                        let name = names.and_then(|names| names.get(number - 1));
                        if let Some(name) = name.filter(|name| ***name != *column) {
                            self.text.push_str(&format!(" AS {}", quoted(name)));
                        }
                    }
                    continue;
                }
                _ => return None,
            };
            let own = alias.map_or_else(|| column_name_of(&expr), folded);
            let name = names
                .and_then(|names| names.get(number))
                .map_or(own, ToString::to_string);
            let text = self.expr(&expr)?;
            self.target(&text, &mut number);
            let is_known = match &expr {
                Expr::Identifier(_) | Expr::CompoundIdentifier(_) => name == column_name_of(&expr),
                _ => !visible && name == "?column?",
            };
            if !is_known {
                self.text.push_str(&format!(" AS {}", quoted(&name)));
            }
        }
        Some(())
    }

    /// An item of a list: each in a line, or in several of its own.
    fn target(&mut self, text: &str, number: &mut usize) {
        self.text.push_str(if *number == 0 { " " } else { ", " });
        if *number > 0 && !text.trim_start_matches(WRITTEN).starts_with(LINE) {
            self.clause("", PART);
        }
        *number += 1;
        self.text.push_str(text);
    }

    /// ORDER BY. Of a set operation (no `select`) it names columns by their numbers.
    fn order(&mut self, query: &Query, select: Option<&Select>) -> Option<()> {
        let Some(order) = &query.order_by else {
            return Some(());
        };
        let OrderByKind::Expressions(keys) = &order.kind else {
            return None;
        };
        let columns = match select {
            Some(_) => None,
            None => self.columns_of_body(&query.body),
        };
        let mut all = Vec::with_capacity(keys.len());
        for OrderByExpr { expr, options, .. } in keys {
            let named = match (expr, &columns) {
                (Expr::Identifier(name), Some(columns)) => {
                    let name = folded(name);
                    let at = columns.iter().position(|column| *column == name);
                    at.map(|at| (at + 1).to_string())
                }
                _ => None,
            };
            let mut text = match (named, select) {
                (Some(number), _) => number,
                (None, Some(select)) => self.key(expr, select, true)?,
                (None, None) => self.expr(expr)?,
            };
            let descending = options.asc == Some(false);
            text.push_str(if descending { " DESC" } else { "" });
            match (descending, options.nulls_first) {
                (false, Some(true)) => text.push_str(" NULLS FIRST"),
                (true, Some(false)) => text.push_str(" NULLS LAST"),
                _ => {}
            }
            all.push(text);
        }
        self.clause(" ORDER BY ", 1);
        self.text.push_str(&all.join(", "));
        Some(())
    }

    fn limit(&mut self, query: &Query) -> Option<()> {
        if let Some(limit) = &query.limit_clause {
            let LimitClause::LimitOffset {
                limit,
                offset,
                limit_by,
            } = limit
            else {
                return None;
            };
            if !limit_by.is_empty() {
                return None;
            }
            for (word, value) in [
                (" OFFSET ", offset.as_ref().map(|offset| &offset.value)),
                (" LIMIT ", limit.as_ref()),
            ] {
                if let Some(value) = value {
                    let value = self.expr(value)?;
                    self.clause(word, 0);
                    self.text.push_str(&value);
                }
            }
        }
        if let Some(fetch) = &query.fetch {
            let count = match &fetch.quantity {
                Some(count) => self.expr(count)?,
                None => "1".to_owned(),
            };
            match fetch.with_ties {
                true => self.clause(&format!(" FETCH FIRST {count} ROWS WITH TIES"), 0),
                false => self.clause(&format!(" LIMIT {count}"), 0),
            }
        }
        Some(())
    }

    /// A table of FROM, and those that are joined to it.
    fn joined(&mut self, table: &TableWithJoins) -> Option<()> {
        let parentheses = if self.pretty { 0 } else { table.joins.len() };
        for _ in 0..parentheses {
            self.text.push('(');
        }
        self.factor(&table.relation)?;
        for (at, join) in table.joins.iter().enumerate() {
            self.join((&table.relation, &table.joins[..at]), join)?;
            if !self.pretty {
                self.text.push(')');
            }
        }
        Some(())
    }

    /// A table that is joined to those on its left.
    fn join(&mut self, left: (&TableFactor, &[Join]), join: &Join) -> Option<()> {
        use JoinOperator as J;
        let (word, constraint) = match &join.join_operator {
            J::Join(own) | J::Inner(own) => ("JOIN", own),
            J::Left(own) | J::LeftOuter(own) => ("LEFT JOIN", own),
            J::Right(own) | J::RightOuter(own) => ("RIGHT JOIN", own),
            J::FullOuter(own) => ("FULL JOIN", own),
            J::CrossJoin(own) => ("CROSS JOIN", own),
            _ => return None,
        };
        // NATURAL is USING of the columns that both sides have, as far as they are known.
        let shared = match constraint {
            JoinConstraint::Natural => self.shared_columns(left, &join.relation),
            _ => None,
        };
        let natural = match constraint {
            JoinConstraint::Natural if shared.is_none() => " NATURAL",
            _ => "",
        };
        self.clause(&format!("{natural} {word} "), PART);
        let apart = self.pretty && matches!(join.relation, TableFactor::NestedJoin { .. });
        self.text.push_str(if apart { "(" } else { "" });
        self.factor(&join.relation)?;
        self.text.push_str(if apart { ")" } else { "" });
        match constraint {
            JoinConstraint::On(condition) => {
                let condition = self.expr(condition)?;
                let text = match self.pretty {
                    true => format!(" ON {condition}"),
                    false => format!(" ON ({condition})"),
                };
                self.text.push_str(&text);
            }
            JoinConstraint::Using(columns) => {
                let columns = columns.iter().map(|name| match name.0.as_slice() {
                    [ObjectNamePart::Identifier(name)] => Some(quoted(&folded(name))),
                    _ => None,
                });
                let columns = columns.collect::<Option<Vec<_>>>()?;
                self.text
                    .push_str(&format!(" USING ({})", columns.join(", ")));
            }
            JoinConstraint::Natural => {
                if let Some(shared) = shared {
                    let shared: Vec<String> = shared.iter().map(|name| quoted(name)).collect();
                    self.text
                        .push_str(&format!(" USING ({})", shared.join(", ")));
                }
            }
            JoinConstraint::None => {}
        }
        Some(())
    }

    /// What FROM names.
    fn factor(&mut self, factor: &TableFactor) -> Option<()> {
        match factor {
            TableFactor::Table {
                name,
                alias,
                args: None,
                sample: None,
                ..
            } => {
                let text = self.relation_name(name)?;
                self.text.push_str(&text);
                self.alias(alias.as_ref(), &[]);
            }
            TableFactor::Derived {
                lateral,
                subquery,
                alias,
                sample: None,
            } => {
                self.text.push_str(if *lateral { "LATERAL " } else { "" });
                // It sees what it stands beside in the scope around it.
                self.nested(subquery, true)?;
                self.alias(alias.as_ref(), &[]);
            }
            TableFactor::NestedJoin {
                table_with_joins,
                alias: None,
            } => self.joined(table_with_joins)?,
            TableFactor::Table { args: Some(_), .. }
            | TableFactor::Function { .. }
            | TableFactor::UNNEST { .. } => {
                let call = self.function_in_from(factor)?;
                self.text.push_str(&call);
            }
            _ => return None,
        }
        Some(())
    }

    /// The name that an alias gives, and those of columns: its own, or others where it has none.
    fn alias(&mut self, alias: Option<&TableAlias>, columns: &[String]) {
        if let Some(alias) = alias {
            self.text.push(' ');
            self.text.push_str(&quoted(&folded(&alias.name)));
            self.column_list(alias, columns);
        }
    }

    fn column_list(&mut self, alias: &TableAlias, columns: &[String]) {
        let own = alias.columns.iter().map(|column| {
            let name = quoted(&folded(&column.name));
            match &column.data_type {
                Some(ty) => format!("{name} {}", self.type_text(ty)),
                None => name,
            }
        });
        let own: Vec<String> = own.collect();
        let rest = columns.iter().skip(own.len()).map(|name| quoted(name));
        let all: Vec<String> = own.iter().cloned().chain(rest).collect();
        if !all.is_empty() {
            self.text.push_str(&format!("({})", all.join(", ")));
        }
    }
}

/// A query without parentheses that say nothing.
fn bare(body: &SetExpr) -> &SetExpr {
    match body {
        SetExpr::Query(query)
            if query.with.is_none()
                && query.order_by.is_none()
                && query.limit_clause.is_none()
                && query.fetch.is_none()
                && query.locks.is_empty() =>
        {
            bare(&query.body)
        }
        other => other,
    }
}
