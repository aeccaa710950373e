//! Views that read what is to be dropped (`dependency`) or called otherwise.
//!
//! Nothing of that is kept: a view's query is SQL, and whoever asks binds it. Which relations it reads, its names say. It reads a column if one of its
//! expressions is found to, or if it is another query in an image of the catalog without the column (a `*`, USING, NATURAL): it has other columns
//! there, or cannot be bound. DDL is seldom, and only the views whose text has the relation's name are looked at.

use super::Ddl;
use super::view::{quoted, same};
use crate::bind::{Binder, folded};
use crate::catalog::{Catalog, Change, Kind, Oid, Relation, Table, View};
use crate::error::{Result, SqlError};
use crate::parse::walk;
use crate::plan::OutputColumn;
use crate::sqlstate;
use sqlparser::ast;
use std::ops::ControlFlow;
use std::sync::Arc;
use vellum_row::EnumId;

/// What is found when a view is bound.
struct BoundView {
    columns: Vec<OutputColumn>,
    /// Whether one of its expressions reads the column that is watched.
    reads: bool,
    literal_types: Vec<EnumId>,
}

impl Ddl<'_> {
    /// The columns of a view in an image; none if it cannot be bound there.
    pub(super) fn columns_of(
        &self,
        catalog: &Catalog,
        view: &Relation,
    ) -> Option<Vec<OutputColumn>> {
        self.bound(catalog, view, None).map(|bound| bound.columns)
    }

    /// Whether a view has values of a type that it need not name: literals that are read as such.
    pub(super) fn has_literal_of(&self, view: &Relation, ty: Oid) -> bool {
        let bound = self.bound(&self.open.catalog.1, view, None);
        let types = bound.map_or(Vec::new(), |bound| bound.literal_types);
        types.into_iter().any(|id| id.oid() == ty)
    }

    /// What a view is in an image; `watched` is a column of a table.
    fn bound(
        &self,
        catalog: &Catalog,
        view: &Relation,
        watched: Option<(Oid, i16)>,
    ) -> Option<BoundView> {
        let Kind::View(own) = &view.kind else {
            return None;
        };
        let query = query_of(own)?;
        let mut binder = Binder::new(catalog, &self.search_path, self.forms, self.text);
        binder.lasting_only = !catalog.is_temporary(view.namespace);
        binder.watched = watched.map(|column| (column, false));
        binder.literal_types = Some(Vec::new());
        let (_, columns) = binder.query(&query).ok()?;
        Some(BoundView {
            columns,
            reads: binder.watched.is_some_and(|(_, read)| read),
            literal_types: binder.literal_types.unwrap_or_default(),
        })
    }

    /// The views that name a relation.
    ///
    /// # Errors
    /// `40001` under repeatable read, for one that others have made since the snapshot.
    pub(super) fn views_of(&self, relation: &Relation) -> Result<Vec<Arc<Relation>>> {
        self.check_known(|now, view| self.names(now, view, relation.oid))?;
        let catalog = &self.open.catalog.1;
        let views = catalog.relations().into_iter();
        let views = views.filter(|view| self.names(catalog, view, relation.oid));
        Ok(views.cloned().collect())
    }

    /// Whether one relation is a view that names the other in an image.
    fn names(&self, catalog: &Catalog, view: &Relation, oid: Oid) -> bool {
        let (Kind::View(own), Some(relation)) = (&view.kind, catalog.relation(oid)) else {
            return false;
        };
        let name = relation.name.to_lowercase();
        let may_name = name.contains('"') || own.query.to_lowercase().contains(&name);
        if !may_name || view.oid == oid {
            return false;
        }
        let mut binder = Binder::new(catalog, &self.search_path, self.forms, self.text);
        binder.takes_params = false;
        binder.lasting_only = !catalog.is_temporary(view.namespace);
        query_of(own).is_some_and(|query| named_in(&binder, &query).any(|read| read.oid == oid))
    }

    /// The views that read a column of a table.
    ///
    /// # Errors
    /// Those of [`Ddl::views_of`].
    pub(super) fn views_reading(
        &self,
        relation: &Relation,
        position: usize,
    ) -> Result<Vec<Arc<Relation>>> {
        let views = self.views_of(relation)?;
        if views.is_empty() {
            return Ok(views);
        }
        let table = relation
            .table()
            .ok_or_else(|| SqlError::internal("no table"))?;
        let schema = table.schema.drop_column(position)?;
        let id = table.schema.column(position).id;
        // Columns that are not grouped by may follow from it.
        let key = table.primary_key();
        let key = key.filter(|key| key.key_columns().all(|own| own != id));
        let without = Relation {
            kind: Kind::Table(Box::new(Table {
                schema: Arc::new(schema),
                // They may read the column.
                defaults: Vec::new(),
                indexes: key.cloned().into_iter().collect(),
                checks: Vec::new(),
                foreign_keys: Vec::new(),
                ..table.clone()
            })),
            ..relation.clone()
        };
        let column = (relation.oid, id.0 as i16);
        let catalog = &self.open.catalog.1;
        let without = catalog.with(&Change::PutRelation(Arc::new(without)), 0);
        let reads = |view: &Arc<Relation>| {
            let Some(now) = self.bound(catalog, view, Some(column)) else {
                return false;
            };
            let then = self.columns_of(&without, view);
            now.reads || !then.is_some_and(|then| same(&now.columns, &then))
        };
        Ok(views.into_iter().filter(reads).collect())
    }

    /// The views that group by a primary key, and read columns that follow from it.
    ///
    /// # Errors
    /// Those of [`Ddl::views_of`].
    pub(super) fn views_grouping_by_key(&self, relation: &Relation) -> Result<Vec<Arc<Relation>>> {
        let catalog = &self.open.catalog.1;
        let image = |table: Relation| catalog.with(&Change::PutRelation(Arc::new(table)), 0);
        let (with, without) = (image(relation.clone()), image(relation.without_keys()));
        let mut found = self.views_of(relation)?;
        found.retain(|view| {
            let is_bound = |image: &Catalog| self.columns_of(image, view).is_some();
            is_bound(&with) && !is_bound(&without)
        });
        // Those that read one of them cannot be bound either, for that reason alone.
        let mut readers: Vec<Oid> = Vec::new();
        for view in &found {
            readers.extend(self.views_of(view)?.iter().map(|reader| reader.oid));
        }
        found.retain(|view| !readers.contains(&view.oid));
        Ok(found)
    }

    /// A column keeps its type as long as a view reads it.
    ///
    /// # Errors
    /// `0A000`; those of [`Ddl::views_of`].
    pub(super) fn check_unviewed(&self, relation: &Relation, position: usize) -> Result<()> {
        let views = self.views_reading(relation, position)?;
        let Some(view) = views.first() else {
            return Ok(());
        };
        let text = "cannot alter type of a column used by a view or rule";
        let name = relation
            .table()
            .map(|table| table.schema.column(position).name.clone());
        let detail = format!(
            "rule _RETURN on {} depends on column \"{}\"",
            self.described(view),
            name.unwrap_or_default()
        );
        Err(SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, text).with_detail(detail))
    }

    /// Views go on reading a table that is called otherwise by now, or whose columns are: they call it as before. `before` is the table as it was.
    ///
    /// # Errors
    /// `0A000` for a query that cannot be written so.
    pub(super) fn keep_views_of(
        &mut self,
        before: &Relation,
        views: Vec<(Arc<Relation>, Option<Vec<OutputColumn>>)>,
        after: &Relation,
    ) -> Result<()> {
        for (view, columns) in views {
            let Kind::View(own) = &view.kind else {
                continue;
            };
            let Some(query) = query_of(own) else {
                continue;
            };
            let view = self.alone(&view)?;
            let catalog = &self.open.catalog.1;
            let mut renaming = Renaming {
                before,
                after,
                schema_before: catalog.namespace_name(before.namespace),
                schema: quoted(catalog.namespace_name(after.namespace)),
                hidden: with_names(&query),
                called: String::new(),
                qualified: false,
            };
            let name = before.name.to_string();
            // Beside another table of its name, or within or around a query that has one, it needs a name of its own, and where it is called by its schema it has that no more. What
            // calls it by its name alone would mean the other one then.
            let is_alone = !renaming.has_namesake(&query);
            let by_name = renaming.is_called_by_name(&query);
            let unused = unused_in(&own.query, &before.name);
            let ways = [
                (true, name.clone(), false),
                (is_alone, name, true),
                (!by_name, unused, true),
            ];
            let ways = ways.into_iter().filter(|(may, ..)| *may);
            let mut ways = ways.map(|(_, called, qualified)| (called, qualified));
            let next = ways.find_map(|(called, qualified)| {
                (renaming.called, renaming.qualified) = (called, qualified);
                let next = Relation {
                    generation: view.generation + 1,
                    kind: Kind::View(View {
                        query: renaming.renamed(&query).to_string().into(),
                        ..own.clone()
                    }),
                    ..Relation::clone(&view)
                };
                let now = self.columns_of(catalog, &next);
                let keeps = match (&columns, &now) {
                    (Some(columns), Some(now)) => same(columns, now),
                    (columns, _) => columns.is_none(),
                };
                keeps.then_some(next)
            });
            let next = next.ok_or_else(|| {
                let text = format!("renaming what the view \"{}\" reads", view.name);
                SqlError::unsupported(text)
            })?;
            self.change(Change::PutRelation(Arc::new(next)))?;
        }
        Ok(())
    }

    /// The views that name a relation, and their columns as they are now.
    ///
    /// # Errors
    /// Those of [`Ddl::views_of`].
    pub(super) fn views_with_columns(
        &self,
        relation: &Relation,
    ) -> Result<Vec<(Arc<Relation>, Option<Vec<OutputColumn>>)>> {
        let views = self.views_of(relation)?.into_iter();
        Ok(views
            .map(|view| {
                let columns = self.columns_of(&self.open.catalog.1, &view);
                (view, columns)
            })
            .collect())
    }

    /// The same, of those that read a column.
    ///
    /// # Errors
    /// Those of [`Ddl::views_of`].
    pub(super) fn readers_with_columns(
        &self,
        relation: &Relation,
        position: usize,
    ) -> Result<Vec<(Arc<Relation>, Option<Vec<OutputColumn>>)>> {
        let views = self.views_reading(relation, position)?.into_iter();
        Ok(views
            .map(|view| {
                let columns = self.columns_of(&self.open.catalog.1, &view);
                (view, columns)
            })
            .collect())
    }
}

/// The query of a view, if it can be read.
fn query_of(view: &View) -> Option<ast::Query> {
    let mut statements = crate::parse::statements(&view.query).ok()?;
    match statements.pop() {
        Some(ast::Statement::Query(query)) if statements.is_empty() => Some(*query),
        _ => None,
    }
}

/// The last part of a name, as the catalog has it.
pub(super) fn last_part(name: &ast::ObjectName) -> String {
    match name.0.last() {
        Some(ast::ObjectNamePart::Identifier(ident)) => folded(ident),
        _ => String::new(),
    }
}

/// The names that WITH gives anywhere in a query.
pub(super) fn with_names(query: &ast::Query) -> Vec<String> {
    let mut names = Vec::new();
    walk::queries(query, &mut |query| {
        let with = query.with.iter().flat_map(|with| &with.cte_tables);
        names.extend(with.map(|cte| folded(&cte.alias.name)));
    });
    names
}

/// The relations that a query names by itself, one after the other. A name that WITH gives is none, though it may be one elsewhere in the query.
pub(super) fn named_in(
    binder: &Binder<'_>,
    query: &ast::Query,
) -> impl Iterator<Item = Arc<Relation>> + use<> {
    let hidden = with_names(query);
    let mut found: Vec<Arc<Relation>> = Vec::new();
    walk::relations(query, &mut |name| {
        let is_hidden = name.0.len() == 1 && hidden.contains(&last_part(name));
        if !is_hidden
            && let Ok(relation) = binder.relation(name)
            && !found.iter().any(|other| other.oid == relation.oid)
        {
            found.push(relation);
        }
    });
    found.into_iter()
}

/// Gives a table its new name wherever a query reads it, and lets the query call it and its columns as before.
struct Renaming<'r> {
    before: &'r Relation,
    after: &'r Relation,
    schema_before: &'r str,
    schema: ast::Ident,
    hidden: Vec<String>,
    /// What the query calls it by then, where it has given it no name.
    called: String,
    /// Whether what calls it by its schema is to call it so, too.
    qualified: bool,
}

/// A name like that of a table that does not occur in a query.
fn unused_in(query: &str, name: &str) -> String {
    // As long as a name may be, with a number.
    let name = if name.len() > 40 { "renamed" } else { name };
    let mut names = (1..).map(|number| format!("{name}_{number}"));
    let unused = names.find(|name| !query.contains(name.as_str()));
    unused.unwrap_or_default()
}

impl Renaming<'_> {
    fn renamed(&self, query: &ast::Query) -> ast::Query {
        let mut query = query.clone();
        walk::change_factors(&mut query, &mut |factor| self.rename(factor));
        if self.qualified {
            walk::change_expressions(&mut query, &mut |expr| {
                self.call(expr);
                ControlFlow::Continue(())
            });
        }
        query
    }

    /// A column that is called by schema and table.
    fn call(&self, expr: &mut ast::Expr) {
        let ast::Expr::CompoundIdentifier(parts) = expr else {
            return;
        };
        let [schema, table, column, rest @ ..] = parts.as_slice() else {
            return;
        };
        if folded(schema) != *self.schema_before || folded(table) != *self.before.name {
            return;
        }
        let mut called = vec![quoted(&self.called), column.clone()];
        called.extend(rest.iter().cloned());
        *parts = called;
    }

    /// Whether something else in a query, at any depth, is called as the table was.
    fn has_namesake(&self, query: &ast::Query) -> bool {
        let mut found = false;
        walk::change_factors(&mut query.clone(), &mut |factor| {
            let alias = match &*factor {
                ast::TableFactor::Table { alias, .. }
                | ast::TableFactor::Derived { alias, .. }
                | ast::TableFactor::TableFunction { alias, .. }
                | ast::TableFactor::Function { alias, .. }
                | ast::TableFactor::UNNEST { alias, .. }
                | ast::TableFactor::NestedJoin { alias, .. } => alias.as_ref(),
                _ => None,
            };
            let called = match (alias, &*factor) {
                (Some(alias), _) => folded(&alias.name),
                (None, ast::TableFactor::Table { name, .. }) if !self.is_own(name) => {
                    last_part(name)
                }
                _ => return,
            };
            found |= called == *self.before.name;
        });
        found
    }

    /// Whether a column, or all of them, is called by the table's name without its schema.
    fn is_called_by_name(&self, query: &ast::Query) -> bool {
        let mut found = query
            .to_string()
            .contains(&format!("{}.*", self.before.name));
        walk::change_expressions(&mut query.clone(), &mut |expr| {
            if let ast::Expr::CompoundIdentifier(parts) = expr
                && let [table, _] = parts.as_slice()
            {
                found |= folded(table) == *self.before.name;
            }
            ControlFlow::Continue(())
        });
        found
    }

    /// Whether a name of a table stands for the one that is renamed.
    fn is_own(&self, name: &ast::ObjectName) -> bool {
        // Whatever is called so in another schema was settled with that schema's name.
        let schema = match name.0.as_slice() {
            [ast::ObjectNamePart::Identifier(schema), _] => Some(folded(schema)),
            _ => None,
        };
        let own = schema
            .as_ref()
            .is_none_or(|schema| *schema == *self.schema_before);
        let is_hidden = schema.is_none() && self.hidden.contains(&last_part(name));
        own && !is_hidden && last_part(name) == *self.before.name
    }

    fn rename(&self, factor: &mut ast::TableFactor) {
        let ast::TableFactor::Table {
            name,
            alias,
            args: None,
            ..
        } = factor
        else {
            return;
        };
        if !self.is_own(name) {
            return;
        }
        let new = [self.schema.clone(), quoted(&self.after.name)];
        name.0 = new
            .into_iter()
            .map(ast::ObjectNamePart::Identifier)
            .collect();
        let alias = alias.get_or_insert_with(|| ast::TableAlias {
            explicit: true,
            name: quoted(&self.called),
            columns: Vec::new(),
            at: None,
        });
        let columns = |relation: &Relation| -> Vec<Box<str>> {
            if let Kind::View(view) = &relation.kind {
                return view.columns.clone();
            }
            let table = relation.table();
            let columns = table.into_iter().flat_map(|table| table.schema.columns());
            columns.map(|column| column.name.clone()).collect()
        };
        let (before, after) = (columns(self.before), columns(self.after));
        if before != after {
            let given = alias.columns.len();
            let more = before.iter().skip(given);
            alias
                .columns
                .extend(more.map(|name| ast::TableAliasColumnDef {
                    name: quoted(name),
                    data_type: None,
                }));
        }
    }
}
