//! What calls functions of extensions: found when an extension is dropped, and named so that it goes on calling them when it is moved.
//!
//! Interleaving: an extension is dropped while something that calls its functions is made. Whoever makes that holds the gate of the extension with others
//! ([`Ddl::hold_types`]), DROP EXTENSION has it alone: either of the two waits for the other, and then sees what it has left (`gates`).

use super::Ddl;
use super::dependency::Object;
use super::type_texts::texts_of;
use crate::bind::{
    Binder, ScopeTable, called_name, function_shown, functions_in, functions_reached,
    kept_function, kept_function_of, object_name,
};
use crate::catalog::{Change, Default, Extension, Gated, Kind, Mode, Oid, Relation};
use crate::error::Result;
use crate::expr::Scalar;
use crate::parse::walk;
use sqlparser::ast::{self, Expr, TableFactor, VisitMut};
use std::ops::ControlFlow;
use std::sync::Arc;
use vellum_row::{ColumnId, Type};

/// Calls `each` with the name of every function that is called; with the alias, too, where it is called in FROM.
pub(crate) fn each_function(
    node: &mut impl VisitMut,
    mut each: impl FnMut(&mut ast::ObjectName, Option<&mut Option<ast::TableAlias>>),
) {
    walk::change_expressions(node, &mut |expr| {
        if let Expr::Function(function) = expr {
            each(&mut function.name, None);
        }
        ControlFlow::Continue(())
    });
    walk::change_factors(node, &mut |factor| match factor {
        TableFactor::Table {
            name,
            alias,
            args: Some(_),
            ..
        }
        | TableFactor::Function { name, alias, .. } => each(name, Some(alias)),
        _ => {}
    });
}

impl Ddl<'_> {
    /// An expression or a query as a definition keeps it: functions of extensions stand in it by their oids.
    pub(super) fn keep_functions(&self, node: &mut impl VisitMut) {
        let catalog = &self.open.catalog.1;
        if catalog.extensions().len() <= 1 {
            // The one that has no functions.
            return;
        }
        let kept = |name: &ast::ObjectName| {
            let (schema, name) = object_name(name).ok()?;
            let schema = schema.as_deref();
            if kept_function_of(schema, &name).is_some() {
                return None;
            }
            let all = functions_reached(catalog, &self.search_path, schema, &name);
            all.first().map(|own| kept_function(*own))
        };
        each_function(node, |name, alias| {
            let Some(kept) = kept(name) else {
                return;
            };
            if let Some(alias) = alias {
                let called = called_name(name).unwrap_or_default();
                alias.get_or_insert_with(|| ast::TableAlias {
                    explicit: true,
                    name: super::view::quoted(&called),
                    columns: Vec::new(),
                    at: None,
                });
            }
            *name = kept;
        });
    }

    /// The extensions whose functions a relation's texts call, each once.
    pub(super) fn extensions_of(&self, relation: &Relation) -> Vec<Oid> {
        let called = texts_of(relation).into_iter().flat_map(functions_in);
        let catalog = &self.open.catalog.1;
        let of = called.filter_map(|own| catalog.extension_of(own).map(|own| own.oid));
        let mut all: Vec<Oid> = of.collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Under repeatable read, the image has all that calls functions of an extension that is held alone.
    ///
    /// # Errors
    /// `40001`.
    pub(super) fn check_callers_known(&self, extension: &Extension) -> Result<()> {
        let is_own = |function: Scalar| {
            let name = function.extension().map(|own| own.name);
            name == Some(&*extension.name)
        };
        self.check_known(|_, relation| {
            let mut called = texts_of(relation).into_iter().flat_map(functions_in);
            called.any(is_own)
        })
    }

    /// What calls a function of an extension: defaults, columns, constraints, indexes, views, domains.
    pub(super) fn callers_of(&self, function: Scalar) -> Vec<Object> {
        let mut all = Vec::new();
        let catalog = &self.open.catalog.1;
        for domain in catalog.user_types() {
            let Kind::Domain(own) = &domain.kind else {
                continue;
            };
            if let Some(sql) = &own.default
                && self.binder().functions_called(sql).contains(&function)
            {
                all.push(Object::Relation(domain.clone()));
                continue;
            }
            let checks = own.checks.iter().filter(|check| {
                let outer = self.binder();
                let binder = outer.over_value(own);
                binder.is_ok_and(|own| own.functions_called(&check.expression).contains(&function))
            });
            all.extend(checks.map(|check| Object::Asked(domain.clone(), check.clone())));
        }
        for relation in catalog.relations() {
            let calls = |sql: &str| self.calls(relation, sql, function);
            let table = match &relation.kind {
                Kind::View(view) => {
                    let mut binder = self.binder();
                    binder.lasting_only = !catalog.is_temporary(relation.namespace);
                    if binder.functions_of_query(&view.query).contains(&function) {
                        all.push(Object::Relation(relation.clone()));
                        continue;
                    }
                    let own = view.defaults.iter().filter(|(_, sql)| calls(sql));
                    let own = own.map(|(at, _)| Object::Default(relation.clone(), ColumnId(*at)));
                    all.extend(own);
                    continue;
                }
                Kind::Table(table) => table,
                _ => continue,
            };
            for (column, default) in &table.defaults {
                all.extend(match default {
                    Default::Expression(sql) if calls(sql) => {
                        Some(Object::Default(relation.clone(), *column))
                    }
                    Default::Generated(sql) if calls(sql) => {
                        Some(Object::Column(relation.clone(), *column))
                    }
                    _ => None,
                });
            }
            let checks = table.checks.iter().filter(|check| calls(&check.expression));
            all.extend(checks.map(|check| Object::Check(relation.clone(), check.clone())));
            let indexes = table.indexes.iter().filter(|index| {
                let mut texts = index.expressions().chain(index.predicate.as_deref());
                texts.any(calls)
            });
            all.extend(indexes.map(|index| Object::Index(relation.clone(), index.clone())));
        }
        all
    }

    fn calls(&self, relation: &Arc<Relation>, sql: &str, function: Scalar) -> bool {
        if functions_in(sql).is_empty() {
            return false;
        }
        let mut binder: Binder<'_> = self.binder();
        if let (Kind::Table(_), Ok(table)) = (&relation.kind, ScopeTable::of(relation, None)) {
            // What cannot be added cannot be bound.
            let _ = binder.scope.add(table);
        }
        binder.functions_called(sql).contains(&function)
    }

    /// What a function is called in messages.
    pub(super) fn function_described(&self, function: Scalar) -> String {
        let name = function_shown(&self.open.catalog.1, &self.search_path, function);
        let types = function.entry().arguments();
        let types = types.map(|ty| Type::from_name(ty).map_or(ty, Type::sql_name));
        format!("function {name}({})", types.collect::<Vec<_>>().join(","))
    }

    /// Drops an extension that nothing depends on any more.
    ///
    /// # Errors
    /// Conflicts, storage.
    pub(super) fn discard_extension(&mut self, extension: &Arc<Extension>) -> Result<()> {
        self.enter_gated(Gated::Extension, extension.oid, Mode::Alone)?;
        let dropped = Change::DropExtension(extension.clone());
        self.change(dropped)
    }
}
