//! CREATE VIEW.
//!
//! A view keeps its query as SQL, in a form that goes on meaning the same: its relations with their schemas, so that another `search_path` does not
//! lead elsewhere, and the columns instead of `*`, so that a column which is added later does not come in ([`Ddl::settled`]).
//!
//! Interleaving: a relation that the view reads is dropped meanwhile, or a label that it says is called otherwise. The statement holds the gates of what it
//! reads, and of the types that it has values of, with other writers; DROP and ALTER TYPE need them alone: either it waits for these and is bound with what
//! they have left (`gates`), or they wait for it and find the view (`dependents`).

use super::Ddl;
use super::dependents::named_in;
use super::parameters::{Of, Said, changed};
use crate::bind::{NO_COLLATION, Star, indeterminate, star_of};
use crate::catalog::{Change, Collation, Default, Kind, Mode, Named, Relation, View};
use crate::error::{Fields, Result, SqlError};
use crate::expr::Expr;
use crate::parse::walk;
use crate::plan::OutputColumn;
use crate::sqlstate;
use crate::wire::CommandTag;
use sqlparser::ast;
use std::sync::Arc;
use vellum_row::{Type, Value};

impl Ddl<'_> {
    pub(super) fn create_view(&mut self, create: &ast::CreateView) -> Result<CommandTag> {
        let tag = CommandTag::plain("CREATE VIEW");
        if create.materialized {
            return Err(SqlError::unsupported("a materialized view"));
        }
        for relation in named_in(&self.binder(), &create.query) {
            if !matches!(relation.kind, Kind::System(_)) {
                // What it may not see it keeps from nobody (`gates`, W2).
                self.check_look(relation.namespace)?;
                self.enter(relation.oid, Mode::Write)?;
            }
        }
        let (columns, temporary, types) = {
            let mut binder = self.binder();
            binder.literal_types = Some(Vec::new());
            let (_, columns) = binder.query(&create.query)?;
            let types = binder.literal_types.take().unwrap_or_default();
            let catalog = &self.open.catalog.1;
            let mut reads = binder.accesses.iter();
            let temporary = reads.any(|(oid, _)| {
                let read = catalog.relation(*oid);
                read.is_some_and(|read| catalog.is_temporary(read.namespace))
            });
            (columns, temporary, types)
        };
        for id in types {
            self.hold_type(Type::Enum(id))?;
        }
        let (namespace, name) = self.new_name(&create.name, create.temporary || temporary)?;
        if temporary && !create.temporary {
            let message = format!("view \"{name}\" will be a temporary view");
            self.notices.push(Fields::notice(message));
        }
        let mut old = None;
        if let (Some(Named::Relation(known)), true) = (
            self.open.catalog.1.named(namespace, &name),
            create.or_replace,
        ) {
            old = self.open.catalog.1.relation(known).cloned();
        }
        if old.is_none() && self.is_taken(namespace, &name, create.if_not_exists)? {
            return Ok(tag);
        }
        let mut names: Vec<Box<str>> = columns
            .iter()
            .map(|column| column.name.as_str().into())
            .collect();
        if create.columns.len() > names.len() {
            let text = "CREATE VIEW specifies more column names than columns";
            return Err(SqlError::syntax(text));
        }
        for (name, given) in names.iter_mut().zip(&create.columns) {
            *name = crate::bind::folded(&given.name).into();
        }
        for (at, name) in names.iter().enumerate() {
            if names[..at].contains(name) {
                let message = format!("column \"{name}\" specified more than once");
                return Err(SqlError::new(sqlstate::DUPLICATE_COLUMN, message));
            }
        }
        for (name, column) in names.iter().zip(&columns) {
            if column.ty == Type::Void {
                super::table::check_column_type(name, column.ty)?;
            }
            if column.collation == Some(NO_COLLATION) {
                let message = format!(
                    "could not determine which collation to use for view column \"{name}\""
                );
                return Err(indeterminate(message));
            }
        }
        self.check_no_type(namespace, &name)?;
        let mut settled = self.settled(&create.query, &columns);
        super::type_texts::keep_types(&mut settled, self.type_names());
        self.keep_functions(&mut settled);
        let options = match &create.options {
            ast::CreateTableOptions::With(options) => Said::of_table(options)?,
            _ => Vec::new(),
        };
        let view = View {
            query: settled.to_string().into(),
            columns: names,
            options: changed(&[], options, Of::View)?,
            defaults: Vec::new(),
        };
        let next = match old {
            None => {
                let oid = self.draw_oid()?;
                self.new_relation(oid, namespace, &name, Kind::View(view))
            }
            Some(old) => self.replaced(&old, view, &columns)?,
        };
        self.check_check_option(&next)?;
        self.hold_types(&next)?;
        self.change(Change::PutRelation(Arc::new(next)))?;
        Ok(tag)
    }

    /// A view with another query. Who has rights on it keeps them.
    ///
    /// # Errors
    /// `42809` for what is no view, `42501`, `42P16` where a column is missing, is called otherwise or has another type.
    fn replaced(
        &mut self,
        old: &Arc<Relation>,
        mut view: View,
        columns: &[OutputColumn],
    ) -> Result<Relation> {
        let invalid = |message: String| SqlError::new(sqlstate::INVALID_TABLE_DEFINITION, message);
        if !matches!(old.kind, Kind::View(_)) {
            let message = format!("\"{}\" is not a view", old.name);
            return Err(SqlError::new(sqlstate::WRONG_OBJECT_TYPE, message));
        }
        let old = self.alone_if(old, Self::check_owner)?;
        let Kind::View(before) = &old.kind else {
            return Err(SqlError::internal("no view"));
        };
        if view.columns.len() < before.columns.len() {
            return Err(invalid("cannot drop columns from view".to_owned()));
        }
        for (own, other) in before.columns.iter().zip(&view.columns) {
            if own != other {
                let message = format!("cannot change name of view column \"{own}\" to \"{other}\"");
                let hint =
                    "Use ALTER VIEW ... RENAME COLUMN ... to change name of view column instead.";
                return Err(invalid(message).with_hint(hint));
            }
        }
        view.defaults.clone_from(&before.defaults);
        // What cannot be bound any more may become anything.
        let known = self.columns_of(&self.open.catalog.1, &old);
        let known = known.iter().flatten().zip(columns);
        for ((own, other), name) in known.zip(&before.columns) {
            let is_same = own.domain == other.domain;
            if !is_same || (own.ty, own.modifier()) != (other.ty, other.modifier()) {
                let message = format!(
                    "cannot change data type of view column \"{name}\" from {} to {}",
                    self.column_type_shown(own),
                    self.column_type_shown(other)
                );
                return Err(invalid(message));
            }
            if own.collation != other.collation {
                let [from, to] = [own, other].map(|column| {
                    let own = column.collation;
                    let own = own.unwrap_or_else(|| Collation::of_type(column.ty));
                    Collation::of(own).map_or("", |own| own.name)
                });
                return Err(invalid(format!(
                    "cannot change collation of view column \"{name}\" from \"{from}\" to \"{to}\""
                )));
            }
        }
        Ok(Relation {
            generation: old.generation + 1,
            kind: Kind::View(view),
            ..Relation::clone(&old)
        })
    }

    /// A check option is one of rows that are a table's.
    ///
    /// # Errors
    /// `0A000`.
    pub(super) fn check_check_option(&self, view: &Relation) -> Result<()> {
        let Kind::View(own) = &view.kind else {
            return Ok(());
        };
        if own.check_option().is_none() {
            return Ok(());
        }
        match self.binder().why_not_updatable(&Arc::new(view.clone()))? {
            None => Ok(()),
            Some(why) => {
                let text = "WITH CHECK OPTION is supported only on automatically updatable views";
                Err(SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, text).with_hint(why))
            }
        }
    }

    /// Gives a view another definition; what it reads stays.
    ///
    /// # Errors
    /// Those of [`Ddl::check_check_option`].
    pub(super) fn put_view(&mut self, relation: &Arc<Relation>, view: View) -> Result<()> {
        let next = Relation {
            generation: relation.generation + 1,
            kind: Kind::View(view),
            ..Relation::clone(relation)
        };
        self.check_check_option(&next)?;
        self.hold_types(&next)?;
        self.change(Change::PutRelation(Arc::new(next)))
    }

    /// ALTER COLUMN … SET DEFAULT of a view, or DROP DEFAULT: what stands for the column where a row is written through the view.
    ///
    /// # Errors
    /// Of names and types.
    pub(super) fn put_view_default(
        &mut self,
        relation: &Arc<Relation>,
        view: &View,
        at: usize,
        value: Option<&ast::Expr>,
    ) -> Result<()> {
        let number = at as u16 + 1;
        let mut next = view.clone();
        next.defaults.retain(|(own, _)| *own != number);
        if let Some(value) = value {
            let columns = self.columns_of(&self.open.catalog.1, relation);
            let column = columns.as_ref().and_then(|columns| columns.get(at));
            let column = column.ok_or_else(|| SqlError::internal("no column"))?;
            let default = self.new_default(value, column.ty, column.modifier())?;
            // A null is as none, but in the place of a domain's own.
            let is_null = || {
                let bound = self.binder().expr(value).map(|bound| bound.expr);
                matches!(bound, Ok(Expr::Const(Value::Null))) && column.domain.is_none()
            };
            if let Default::Expression(sql) = default
                && !is_null()
            {
                next.defaults.push((number, sql));
            }
        }
        self.put_view(relation, next)
    }

    /// The query as a view keeps it. Where a form of it cannot be told otherwise, it stays as it was written.
    fn settled(&self, query: &ast::Query, columns: &[OutputColumn]) -> ast::Query {
        let mut settled = query.clone();
        let hidden = super::dependents::with_names(query);
        let binder = self.binder();
        walk::change_relations(&mut settled, &mut |name| {
            let plain = name.0.len() == 1;
            if plain
                && !hidden.contains(&super::dependents::last_part(name))
                && let Ok(relation) = binder.relation(name)
                && !self.open.catalog.1.is_temporary(relation.namespace)
            {
                let schema = self.open.catalog.1.namespace_name(relation.namespace);
                let schema = ast::ObjectNamePart::Identifier(quoted(schema));
                name.0.insert(0, schema);
            }
        });
        self.spell_columns(&mut settled, columns);
        let bound = self.binder().query(&settled);
        match bound {
            Ok((_, bound)) if same(&bound, columns) => settled,
            _ => query.clone(),
        }
    }

    /// The columns that a `*` stands for in the place of it. The names of a view's columns differ, so each says which one it is.
    fn spell_columns(&self, query: &mut ast::Query, columns: &[OutputColumn]) {
        if let ast::SetExpr::Query(inner) = &mut *query.body {
            return self.spell_columns(inner, columns);
        }
        let probe = query.clone();
        let ast::SetExpr::Select(select) = &mut *query.body else {
            return;
        };
        let is_star = |item: &ast::SelectItem| match item {
            ast::SelectItem::Wildcard(_) | ast::SelectItem::QualifiedWildcard(..) => true,
            ast::SelectItem::UnnamedExpr(expr) => star_of(expr).is_some(),
            _ => false,
        };
        let stars = select
            .projection
            .iter()
            .filter(|item| is_star(item))
            .count();
        let rest = select.projection.len() - stars;
        let mut spelled = Vec::with_capacity(columns.len());
        for item in &select.projection {
            if !is_star(item) {
                spelled.push(item.clone());
                continue;
            }
            let width = match stars {
                1 => columns.len() - rest.min(columns.len()),
                _ => match self.width(&probe, item) {
                    Some(width) => width,
                    None => return,
                },
            };
            let star = match item {
                ast::SelectItem::QualifiedWildcard(
                    ast::SelectItemQualifiedWildcardKind::ObjectName(name),
                    _,
                ) => Some(Star::Table(name)),
                ast::SelectItem::QualifiedWildcard(..) => return,
                ast::SelectItem::UnnamedExpr(expr) => star_of(expr),
                _ => None,
            };
            let qualifier = match star {
                Some(Star::Table(name)) => name.0.as_slice(),
                _ => &[],
            };
            let own = columns.iter().skip(spelled.len()).take(width);
            for column in own {
                if let Some(Star::Row(root, before)) = star {
                    let field = ast::Expr::Identifier(quoted(&column.name));
                    let field = std::iter::once(ast::AccessExpr::Dot(field));
                    let expr = ast::Expr::CompoundFieldAccess {
                        root: Box::new(root.clone()),
                        access_chain: before.iter().cloned().chain(field).collect(),
                    };
                    spelled.push(ast::SelectItem::UnnamedExpr(expr));
                    continue;
                }
                let parts = qualifier.iter().map(|part| match part {
                    ast::ObjectNamePart::Identifier(ident) => Some(ident.clone()),
                    ast::ObjectNamePart::Function(_) => None,
                });
                let Some(mut parts) = parts.collect::<Option<Vec<ast::Ident>>>() else {
                    return;
                };
                parts.push(quoted(&column.name));
                let expr = match parts.len() {
                    1 => ast::Expr::Identifier(parts.remove(0)),
                    _ => ast::Expr::CompoundIdentifier(parts),
                };
                spelled.push(ast::SelectItem::UnnamedExpr(expr));
            }
        }
        select.projection = spelled;
    }

    /// How many columns one of several stars stands for.
    fn width(&self, query: &ast::Query, star: &ast::SelectItem) -> Option<usize> {
        let mut alone = query.clone();
        alone.order_by = None;
        if let ast::SetExpr::Select(select) = &mut *alone.body {
            select.projection = vec![star.clone()];
            select.distinct = None;
        }
        let (_, columns) = self.binder().query(&alone).ok()?;
        Some(columns.len())
    }
}

/// A name that is read as it is.
pub(super) fn quoted(name: &str) -> ast::Ident {
    match crate::names::quoted(name) == name {
        true => ast::Ident::new(name),
        false => ast::Ident::with_quote('"', name),
    }
}

/// Whether these are the same columns.
pub(super) fn same(one: &[OutputColumn], other: &[OutputColumn]) -> bool {
    one.len() == other.len()
        && one.iter().zip(other).all(|(one, other)| {
            (&one.name, one.ty, one.modifier()) == (&other.name, other.ty, other.modifier())
        })
}
