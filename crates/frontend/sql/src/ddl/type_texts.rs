//! Types, and labels of enums, in the texts that definitions are kept as: defaults, constraints, indexes, queries of views.
//!
//! A text names a type by its oid ([`crate::bind::kept_name`]), so it goes on meaning the same whatever the type is called and wherever it is. A literal is kept as
//! it was written, but in what an index computes: there it is a position. So RENAME VALUE has to find those that are the label: they are the ones in whose place no other text could stand.

use super::Ddl;
use super::enums::check_label;
use crate::bind::{Binder, ScopeTable, TypeNames, kept_name, kept_oid};
use crate::catalog::{Catalog, Change, Default, Domain, Kind, Oid, Relation, Table, View};
use crate::error::{Result, SqlError};
use crate::parse::walk;
use crate::sqlstate;
use sqlparser::ast::{self, DataType, Expr, Visit, VisitMut};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::tokenizer::{Token, Tokenizer};
use std::ops::ControlFlow;
use std::sync::Arc;
use vellum_row::{CastContext, KEPT, Type};

/// A label that no enum has: it is longer than labels can be.
const NO_LABEL: &str =
    "a text that stands where a label of an enum could, and that is longer than any label can be";

/// Calls `each` with every name of a type that the parser does not know.
pub(crate) fn each_type(node: &mut impl VisitMut, mut each: impl FnMut(&mut ast::ObjectName)) {
    walk::change_expressions(node, &mut |expr| {
        match expr {
            Expr::Cast { data_type, .. } => named(data_type, &mut each),
            Expr::TypedString(typed) => named(&mut typed.data_type, &mut each),
            _ => {}
        }
        ControlFlow::Continue(())
    });
}

fn named(data_type: &mut DataType, each: &mut dyn FnMut(&mut ast::ObjectName)) {
    match data_type {
        DataType::Custom(name, _) => each(name),
        DataType::Array(
            ast::ArrayElemTypeDef::SquareBracket(inner, _)
            | ast::ArrayElemTypeDef::Parenthesis(inner),
        ) => named(inner, each),
        _ => {}
    }
}

/// An expression or a query as a definition keeps it: types that users have made stand in it by their oids.
pub(super) fn keep_types(node: &mut impl VisitMut, names: TypeNames<'_>) {
    each_type(node, |name| {
        let found = crate::bind::object_name(name).and_then(|(schema, base)| {
            let built_in = schema.is_none() && Type::from_name(&base).is_some();
            if built_in {
                return Ok(None);
            }
            names.find(schema.as_deref(), &base)
        });
        if let Ok(Some(found)) = found {
            *name = kept_name(found.oid());
        }
    });
}

/// The texts of a relation's definition.
pub(super) fn texts_of(relation: &Relation) -> Vec<&str> {
    match &relation.kind {
        Kind::View(view) => {
            let defaults = view.defaults.iter().map(|(_, sql)| &**sql);
            defaults.chain([&*view.query]).collect()
        }
        Kind::Table(table) => {
            let defaults = table
                .defaults
                .iter()
                .filter_map(|(_, default)| match default {
                    Default::Expression(sql) | Default::Generated(sql) => Some(&**sql),
                    Default::Identity { .. } => None,
                });
            let checks = table.checks.iter().map(|check| &*check.expression);
            let indexes = table.indexes.iter();
            let parts =
                indexes.flat_map(|index| index.expressions().chain(index.predicate.as_deref()));
            defaults.chain(checks).chain(parts).collect()
        }
        Kind::Domain(domain) => {
            let checks = domain.checks.iter().map(|check| &*check.expression);
            checks.chain(domain.default.as_deref()).collect()
        }
        _ => Vec::new(),
    }
}

/// The oids of the types that a text names: of an enum, for those of its arrays as well.
pub(crate) fn types_in(sql: &str) -> Vec<Oid> {
    if !sql.contains(KEPT) {
        return Vec::new();
    }
    let tokens = Tokenizer::new(&PostgreSqlDialect {}, sql).tokenize();
    let tokens = tokens.unwrap_or_default().into_iter();
    let named = tokens.filter_map(|token| match token {
        Token::Word(word) if word.quote_style.is_some() => kept_oid(&word.value),
        _ => None,
    });
    named
        .filter_map(|oid| Some(Type::from_oid(oid)?.enum_id()?.oid()))
        .collect()
}

/// The oids of the types that a relation's columns and texts are of, each once.
pub(super) fn types_of(relation: &Relation) -> Vec<Oid> {
    let texts = texts_of(relation).into_iter().flat_map(types_in);
    let columns = relation.table().into_iter().flat_map(|table| {
        let columns = table.schema.columns();
        columns.filter_map(|column| Some(column.ty.enum_id()?.oid()))
    });
    let domains = relation.table().into_iter().flat_map(|table| {
        let domains = table.domains.iter();
        domains.map(|(_, domain)| *domain)
    });
    let below: Vec<Oid> = match &relation.kind {
        Kind::Domain(domain) => {
            let own = domain.ty.enum_id().map(|id| id.oid());
            own.into_iter()
                .chain(Some(domain.base).filter(|base| *base != 0))
                .collect()
        }
        _ => Vec::new(),
    };
    let mut all: Vec<Oid> = columns.chain(texts).chain(domains).chain(below).collect();
    all.sort_unstable();
    all.dedup();
    all
}

impl Ddl<'_> {
    /// An expression as SQL that goes on meaning the same.
    pub(super) fn kept_text(&self, expr: &Expr) -> String {
        let mut expr = expr.clone();
        keep_types(&mut expr, self.type_names());
        self.keep_functions(&mut expr);
        expr.to_string()
    }

    /// ALTER TYPE … RENAME VALUE, of a type that is held alone.
    ///
    /// # Errors
    /// `22023` for a label that is not there, `42710` for one that is, `42602`; `40001` under repeatable read, if others have made what says the label since the snapshot.
    pub(super) fn rename_value(
        &mut self,
        relation: &Arc<Relation>,
        from: &str,
        to: &str,
    ) -> Result<()> {
        check_label(to)?;
        let own = self.enum_of(relation)?;
        let at = own.labels.iter().position(|label| *label.text == *from);
        let at = at.ok_or_else(|| {
            let message = format!("\"{from}\" is not an existing enum label");
            SqlError::new(sqlstate::INVALID_PARAMETER_VALUE, message)
        })?;
        if own.label(to).is_some() {
            let message = format!("enum label \"{to}\" already exists");
            return Err(SqlError::new(sqlstate::DUPLICATE_OBJECT, message));
        }
        let refusal = format!(
            "invalid input value for enum {}: \"{NO_LABEL}\"",
            self.type_shown(relation)
        );
        let says = |now: &Catalog, other: &Arc<Relation>| {
            let next = self.with_label(now, other, (from, to), &refusal);
            next.is_some()
        };
        self.check_known(says)?;
        let mut changed = Vec::new();
        let catalog = &self.open.catalog.1;
        for other in catalog.relations().into_iter().chain(catalog.user_types()) {
            if let Some(next) = self.with_label(catalog, other, (from, to), &refusal) {
                changed.push((other.clone(), next));
            }
        }
        let mut labels = own.labels.clone();
        labels[at].text = to.into();
        self.put_labels(relation, labels)?;
        for (before, kind) in changed {
            let now = self.alone(&before)?;
            let next = Relation {
                generation: now.generation + 1,
                kind,
                ..Relation::clone(&now)
            };
            self.change(Change::PutRelation(Arc::new(next)))?;
        }
        Ok(())
    }

    /// A relation of an image whose texts say the new label; none if they need not.
    fn with_label(
        &self,
        catalog: &Catalog,
        relation: &Arc<Relation>,
        labels: (&str, &str),
        refusal: &str,
    ) -> Option<Kind> {
        match &relation.kind {
            Kind::View(view) => {
                let mut statements = crate::parse::statements(&view.query).ok()?;
                let Some(ast::Statement::Query(query)) = statements.pop() else {
                    return None;
                };
                let bind = |query: &ast::Query| self.binder_in(catalog).query(query).map(drop);
                let query = relabelled(&*query, labels, refusal, bind);
                let mut next = view.clone();
                let mut any =
                    self.relabel_defaults(catalog, relation, &mut next, (labels, refusal));
                if let Some(query) = query {
                    next.query = query.to_string().into();
                    any = true;
                }
                any.then_some(Kind::View(next))
            }
            Kind::Table(table) => {
                let mut next = table.clone();
                let texts = Texts {
                    ddl: self,
                    catalog,
                    relation,
                    labels,
                    refusal,
                };
                texts.relabel(&mut next).then_some(Kind::Table(next))
            }
            Kind::Domain(own) => self.domain_with_label(catalog, own, labels, refusal),
            _ => None,
        }
    }
}

impl Ddl<'_> {
    /// The same of the defaults of a view's columns; whether any was to be changed.
    fn relabel_defaults(
        &self,
        catalog: &Catalog,
        relation: &Relation,
        next: &mut View,
        (labels, refusal): ((&str, &str), &str),
    ) -> bool {
        let mut any = false;
        if next.defaults.is_empty() {
            return any;
        }
        let columns = self.columns_of(catalog, relation);
        let columns = columns.unwrap_or_default();
        for (number, sql) in &mut next.defaults {
            let column = columns.get(usize::from(*number) - 1);
            let (Ok(node), Some(column)) = (crate::parse::expression(sql), column) else {
                continue;
            };
            let bind = |node: &Expr| {
                let mut binder = self.binder_in(catalog);
                let bound = binder.expr(node)?;
                let context = CastContext::Assignment;
                let done = binder.coerce(bound, column.ty, column.modifier(), context);
                done.map(drop)
            };
            if let Some(node) = relabelled(&node, labels, refusal, bind) {
                *sql = node.to_string().into();
                any = true;
            }
        }
        any
    }

    /// A domain whose texts say the new label; none if they need not.
    fn domain_with_label(
        &self,
        catalog: &Catalog,
        own: &Domain,
        labels: (&str, &str),
        refusal: &str,
    ) -> Option<Kind> {
        let relabel = |sql: &str, bind: &dyn Fn(&Expr) -> Result<()>| {
            let node = crate::parse::expression(sql).ok()?;
            let next = relabelled(&node, labels, refusal, bind)?;
            Some(Box::<str>::from(next.to_string()))
        };
        let mut next = own.clone();
        let mut any = false;
        for check in &mut next.checks {
            let bind = |node: &Expr| {
                let outer = self.binder_in(catalog);
                let mut binder = outer.over_value(own)?;
                binder.condition(node, "CHECK").map(drop)
            };
            if let Some(sql) = relabel(&check.expression, &bind) {
                check.expression = sql;
                any = true;
            }
        }
        if let Some(default) = &mut next.default {
            let bind = |node: &Expr| {
                let mut binder = self.binder_in(catalog);
                let bound = binder.expr(node)?;
                let done = binder.coerce(bound, own.ty, own.typmod, CastContext::Assignment);
                done.map(drop)
            };
            if let Some(sql) = relabel(default, &bind) {
                *default = sql;
                any = true;
            }
        }
        any.then(|| Kind::Domain(Box::new(next)))
    }
}

/// The texts of a table, in which a label is to be called otherwise.
struct Texts<'t, 'd> {
    ddl: &'t Ddl<'d>,
    catalog: &'t Catalog,
    relation: &'t Arc<Relation>,
    labels: (&'t str, &'t str),
    refusal: &'t str,
}

impl Texts<'_, '_> {
    /// Whether anything was to be changed.
    fn relabel(&self, next: &mut Table) -> bool {
        let mut any = false;
        let schema = next.schema.clone();
        for (id, default) in &mut next.defaults {
            let column = schema.column(schema.position_of(*id).unwrap_or(0));
            let (Default::Expression(sql) | Default::Generated(sql)) = default else {
                continue;
            };
            any |= self.text(sql, |binder, node| {
                let bound = binder.expr(node)?;
                let context = CastContext::Assignment;
                binder.coerce(bound, column.ty, column.typmod, context)?;
                Ok(())
            });
        }
        let alone = |binder: &mut Binder<'_>, node: &Expr| binder.expr(node).map(drop);
        for check in &mut next.checks {
            any |= self.text(&mut check.expression, alone);
        }
        any
    }

    fn text(
        &self,
        sql: &mut Box<str>,
        bind: impl Fn(&mut Binder<'_>, &Expr) -> Result<()>,
    ) -> bool {
        let Ok(node) = crate::parse::expression(sql) else {
            return false;
        };
        let bound = |node: &Expr| {
            let mut binder = self.ddl.binder_in(self.catalog);
            binder.scope.add(ScopeTable::of(self.relation, None)?)?;
            bind(&mut binder, node)
        };
        match relabelled(&node, self.labels, self.refusal, bound) {
            None => false,
            Some(next) => {
                *sql = next.to_string().into();
                true
            }
        }
    }
}

/// A tree in which those literals are called otherwise that are the label: whose place nothing may have that is no label. None if there is none.
fn relabelled<N: VisitMut + Visit + Clone>(
    node: &N,
    (from, to): (&str, &str),
    refusal: &str,
    bind: impl Fn(&N) -> Result<()>,
) -> Option<N> {
    let mut next = node.clone();
    let mut any = false;
    let mut number = 0;
    loop {
        let mut probe = node.clone();
        if !replace_literal(&mut probe, from, number, NO_LABEL) {
            break;
        }
        let refused = bind(&probe).err();
        if refused.is_some_and(|error| error.message() == refusal) {
            // What was replaced before is no literal of this text any more.
            let number = number + count(&next, from) - count(node, from);
            any |= replace_literal(&mut next, from, number, to);
        }
        number += 1;
    }
    any.then_some(next)
}

/// Literals that have a text.
fn count<N: Visit>(node: &N, text: &str) -> usize {
    let mut found = 0;
    walk::expressions(node, &mut |expr| {
        found += usize::from(is_literal(expr, text))
    });
    found
}

fn is_literal(expr: &Expr, text: &str) -> bool {
    let literal = match expr {
        Expr::Value(value) => &value.value,
        Expr::TypedString(typed) => &typed.value.value,
        _ => return false,
    };
    let own = match literal {
        ast::Value::SingleQuotedString(own)
        | ast::Value::EscapedStringLiteral(own)
        | ast::Value::UnicodeStringLiteral(own) => own,
        ast::Value::DollarQuotedString(own) => &own.value,
        _ => return false,
    };
    own == text
}

/// Puts another text in the place of a literal, by its number among those that have a text; false if there are not as many.
fn replace_literal(node: &mut impl VisitMut, text: &str, number: usize, by: &str) -> bool {
    let mut left = number;
    walk::change_expressions(node, &mut |expr| {
        if !is_literal(expr, text) {
            return ControlFlow::Continue(());
        }
        if left > 0 {
            left -= 1;
            return ControlFlow::Continue(());
        }
        let literal = ast::Value::SingleQuotedString(by.to_owned());
        match expr {
            Expr::TypedString(typed) => typed.value.value = literal,
            Expr::Value(value) => value.value = literal,
            _ => {}
        }
        ControlFlow::Break(())
    })
}
