//! What system relations and the functions of the catalog ask of a session.

use super::environment::Env;
use crate::bind::{Binder, ScopeTable, function_shown, functions_in};
use crate::catalog::{Catalog, Change, Domain, Kind, Oid, PG_CATALOG, Relation, View};
use crate::error::{Result, SqlError};
use crate::expr::{Expr, Scalar};
use crate::parse::with_stack;
use crate::plan::{Changes, Surroundings};
use crate::sqlstate;
use crate::system::{Writer, parse_reg, reg_text};
use std::sync::Arc;
use vellum_row::{CastContext, ColumnId, Type, Typmod, Value};

impl Env<'_> {
    fn binder<'b>(&'b self) -> Binder<'b> {
        self.surroundings().binder()
    }

    /// The same of what is shown.
    fn showing<'b>(&'b self) -> Binder<'b> {
        let mut binder = self.binder();
        binder.shows = true;
        binder
    }

    /// What a text is bound with.
    pub fn surroundings(&self) -> Surroundings<'_> {
        Surroundings {
            catalog: self.catalog,
            search_path: self.search_path,
            settings: self.forms,
            text: "",
            ends: None,
            variables: &[],
        }
    }

    /// Types of a view's columns; text where its query cannot be bound any more.
    pub fn view_types(&self, view: &View) -> Vec<(Type, Typmod)> {
        let bound = with_stack(|| {
            let query = query_of(view)?;
            let (_, columns) = self.binder().query(&query).ok()?;
            let columns = columns.iter();
            Some(
                columns
                    .map(|column| (column.ty, column.modifier()))
                    .collect(),
            )
        });
        bound.unwrap_or_else(|| vec![(Type::Text, Typmod::NONE); view.columns.len()])
    }

    /// The domains that a view's columns are of, and their collations, where these are others than their types'.
    pub fn view_marks(&self, view: &View) -> Vec<(Option<Oid>, Option<Oid>)> {
        let bound = with_stack(|| {
            let query = query_of(view)?;
            let (_, columns) = self.binder().query(&query).ok()?;
            let columns = columns.iter();
            let marks = columns.map(|column| (column.domain, column.collation));
            Some(marks.collect())
        });
        bound.unwrap_or_default()
    }

    /// A condition of a domain as PostgreSQL shows it; as it was given where it cannot be bound.
    pub fn condition_text(&self, domain: &Domain, sql: &str, pretty: bool) -> String {
        let written = with_stack(|| {
            let outer = self.binder();
            let mut binder = outer.over_value(domain)?;
            binder.shows = true;
            let condition = binder.condition(&crate::parse::expression(sql)?, "CHECK")?;
            Ok::<_, crate::error::SqlError>(self.written(&binder, &condition, Type::Bool, pretty))
        });
        written.unwrap_or_else(|_| sql.to_owned())
    }

    /// The same of its default.
    pub fn default_text(&self, domain: &Domain, sql: &str) -> String {
        let written = with_stack(|| {
            let mut binder = self.showing();
            let bound = binder.expr(&crate::parse::expression(sql)?)?;
            let (expr, ty) = match bound.ty {
                // A literal is of the type of the values.
                None => {
                    let context = CastContext::Assignment;
                    let expr = binder.coerce(bound, domain.ty, Typmod::NONE, context)?;
                    (expr, domain.ty)
                }
                Some(ty) => (bound.expr, ty),
            };
            if let Some(text) = self.quoted_number(sql, &expr, ty) {
                return Ok::<_, crate::error::SqlError>(text);
            }
            Ok(self.written(&binder, &expr, ty, false))
        });
        written.unwrap_or_else(|_| sql.to_owned())
    }

    /// A name of what an oid is shown as, as it is shown.
    pub fn name_shown(&self, ty: Type, name: &str) -> String {
        match parse_reg(self, ty, name) {
            Ok(Some(oid)) => reg_text(self, ty, oid),
            _ => name.to_owned(),
        }
    }

    fn written(&self, binder: &Binder<'_>, expr: &Expr, ty: Type, pretty: bool) -> String {
        let writer = Writer {
            named: &|ty, name| self.name_shown(ty, name),
            function: &|own| self.function_shown(own),
            scope: &binder.scope,
            settings: self.forms,
            pretty,
            exact: false,
        };
        writer.whole(expr, ty)
    }

    /// The functions of extensions that a text of a relation's definition calls, or one that reads no column.
    pub fn functions_called(&self, relation: Option<&Arc<Relation>>, sql: &str) -> Vec<Scalar> {
        // Most call none.
        if functions_in(sql).is_empty() {
            return Vec::new();
        }
        with_stack(|| {
            let mut binder = self.binder();
            let own = relation.filter(|relation| !matches!(relation.kind, Kind::View(_)));
            if let Some(Ok(table)) = own.map(|relation| ScopeTable::of(relation, None)) {
                // What cannot be added cannot be bound.
                let _ = binder.scope.add(table);
            }
            binder.functions_called(sql)
        })
    }

    /// The same of a condition of a domain.
    pub fn functions_of_condition(&self, domain: &Domain, sql: &str) -> Vec<Scalar> {
        if functions_in(sql).is_empty() {
            return Vec::new();
        }
        with_stack(|| {
            let outer = self.binder();
            let binder = outer.over_value(domain);
            binder.map_or(Vec::new(), |binder| binder.functions_called(sql))
        })
    }

    /// The same of a view's query.
    pub fn functions_of_view(&self, relation: &Relation, view: &View) -> Vec<Scalar> {
        with_stack(|| {
            let mut binder = self.binder();
            binder.lasting_only = !self.catalog.is_temporary(relation.namespace);
            binder.functions_of_query(&view.query)
        })
    }

    /// What a function of an extension is called.
    pub fn function_shown(&self, function: Scalar) -> String {
        function_shown(self.catalog, self.search_path, function)
    }

    /// A type as it is shown; none that is not known.
    pub fn type_shown(&self, data_type: &sqlparser::ast::DataType) -> Option<String> {
        let (ty, typmod) = self.binder().type_of(data_type).ok()?;
        Some(self.forms.format_type(ty, typmod))
    }

    /// Which changes a relation takes; none of what cannot be bound any more.
    pub fn changes_of(&self, oid: Oid) -> Option<Changes> {
        let relation = self.catalog.relation(oid)?;
        with_stack(|| self.binder().changes_of(relation)).ok()
    }

    /// The relations that a view's query names; none if it cannot be bound any more.
    pub fn view_reads(&self, relation: &Relation, view: &View) -> Vec<Oid> {
        let read = with_stack(|| {
            let query = query_of(view)?;
            let mut binder = self.binder();
            binder.lasting_only = !self.catalog.is_temporary(relation.namespace);
            binder.query(&query).ok()?;
            Some(binder.accesses.into_iter().map(|(oid, _)| oid).collect())
        });
        read.unwrap_or_default()
    }

    /// The same with the numbers of the columns that it reads. Of views that it reads they are not known.
    pub fn view_columns_read(&self, relation: &Relation, view: &View) -> Vec<(Oid, Vec<u16>)> {
        let read = with_stack(|| {
            let query = query_of(view)?;
            let mut binder = self.binder();
            binder.lasting_only = !self.catalog.is_temporary(relation.namespace);
            binder.query(&query).ok()?;
            Some((binder.accesses, binder.column_uses))
        });
        let (accesses, uses) = read.unwrap_or_default();
        let columns = |oid: Oid| {
            let own = uses.iter().filter(|(own, ..)| *own == oid);
            own.map(|(.., column)| *column).collect()
        };
        let all = accesses.into_iter().map(|(oid, _)| (oid, columns(oid)));
        all.collect()
    }

    /// Whether a view's query can only be bound because a table has its primary key: it groups by that.
    pub fn view_needs_key(&self, relation: &Relation, view: &View, table: &Relation) -> bool {
        let without = Change::PutRelation(Arc::new(table.without_keys()));
        let catalog = self.catalog.with(&without, 0);
        with_stack(|| {
            let Some(query) = query_of(view) else {
                return false;
            };
            let mut binder = Binder::new(&catalog, self.search_path, self.forms, "");
            binder.lasting_only = !catalog.is_temporary(relation.namespace);
            binder.query(&query).is_err()
        })
    }

    /// An expression of a relation, bound again from what the catalog keeps.
    fn bound(
        &self,
        relation: Option<&Relation>,
        column: Option<ColumnId>,
        sql: &str,
    ) -> Result<(Binder<'_>, Expr, Type)> {
        with_stack(|| {
            let node = crate::parse::expression(sql)?;
            let mut binder = self.showing();
            // A default of a view's reads no column.
            if let Some(relation) = relation
                && !matches!(relation.kind, Kind::View(_))
            {
                let relation = Arc::new(relation.clone());
                binder.scope.add(ScopeTable::of(&relation, None)?)?;
            }
            let bound = binder.expr(&node)?;
            let table = relation.and_then(Relation::table);
            let wanted = match (relation.map(|relation| &relation.kind), column) {
                (Some(Kind::View(view)), Some(column)) => {
                    let types = self.view_types(view);
                    types.get(usize::from(column.0) - 1).map(|(ty, _)| *ty)
                }
                _ => table.zip(column).and_then(|(table, column)| {
                    let position = table.schema.position_of(column)?;
                    Some(table.schema.column(position).ty)
                }),
            };
            // A literal is of the type of its column.
            if let (None, Some(ty)) = (bound.ty, wanted) {
                let context = CastContext::Assignment;
                let expr = binder.coerce(bound, ty, Typmod::NONE, context)?;
                return Ok((binder, expr, ty));
            }
            // A null that stands alone is a condition.
            if bound.ty.is_none() && matches!(bound.expr, Expr::Const(Value::Null)) {
                return Ok((binder, bound.expr, Type::Bool));
            }
            let (expr, ty, _) = binder.settle(bound)?;
            Ok((binder, expr, ty))
        })
    }

    /// Columns that an expression of a relation reads, each once.
    pub fn columns_read(&self, relation: &Relation, sql: &str) -> Vec<ColumnId> {
        let mut columns = Vec::new();
        let Some(table) = relation.table() else {
            return columns;
        };
        if let Ok((_, expr, _)) = self.bound(Some(relation), None, sql) {
            expr.walk(&mut |expr| {
                if let Expr::Column { position, .. } = expr {
                    let id = table.schema.column(usize::from(*position)).id;
                    if !columns.contains(&id) {
                        columns.push(id);
                    }
                }
            });
        }
        columns
    }

    /// A number that was given in quotes and would be another type's without.
    fn quoted_number(&self, sql: &str, expr: &Expr, ty: Type) -> Option<String> {
        let Expr::Const(value @ (Value::Numeric(_) | Value::Float4(_) | Value::Float8(_))) = expr
        else {
            return None;
        };
        let mut text = String::new();
        vellum_row::show(value.as_ref(), self.forms, &mut text);
        let whole = text.bytes().all(|byte| byte.is_ascii_digit());
        let name = self.forms.format_type(ty, Typmod::NONE);
        (sql.starts_with('\'') && whole).then(|| format!("'{text}'::{name}"))
    }

    /// An expression as PostgreSQL shows it, of a column that it is the default of, if so; as it was given where it cannot be bound.
    pub fn expression_text(
        &self,
        relation: Option<&Relation>,
        column: Option<ColumnId>,
        sql: &str,
        pretty: bool,
    ) -> String {
        match self.bound(relation, column, sql) {
            Ok((binder, expr, ty)) => {
                if let Some(text) = self.quoted_number(sql, &expr, ty) {
                    return text;
                }
                self.written(&binder, &expr, ty, pretty)
            }
            Err(_) => sql.to_owned(),
        }
    }

    /// The session's schema of temporary relations, if there is one.
    pub fn own_temporary(&self) -> Option<Oid> {
        let name = Catalog::TEMPORARY;
        self.catalog.schema_named(name, self.search_path)
    }

    /// Names of the schemas in the search path, with those that are in it unsaid or without.
    pub fn schemas(&self, implicit: bool) -> Vec<String> {
        let path = self.settings.get("search_path").unwrap_or_default();
        let names = crate::names::list(&path).unwrap_or_default();
        let said = names.iter().any(|name| name == "pg_catalog");
        let shown = self.search_path.iter();
        let shown = shown.filter(|oid| {
            implicit || ((said || **oid != PG_CATALOG) && !self.catalog.is_temporary(**oid))
        });
        shown
            .map(|oid| self.catalog.namespace_name(*oid).to_owned())
            .collect()
    }

    /// Bytes of the leaves of an engine table.
    pub fn storage_bytes(&self, name: &str) -> i64 {
        let page = self.shared.engine.statistics().page_bytes;
        let table = self.transaction.table(name);
        let pages = table.and_then(|table| self.transaction.leaf_pages(&table));
        pages.map_or(0, |pages| i64::try_from(pages * page).unwrap_or(i64::MAX))
    }

    /// Bytes of the data file.
    pub fn database_bytes(&self) -> i64 {
        let statistics = self.shared.engine.statistics();
        let bytes = statistics.file_pages * statistics.page_bytes;
        i64::try_from(bytes).unwrap_or(i64::MAX)
    }

    /// # Errors
    /// `42501` for who is no superuser.
    pub fn check_superuser(&self, what: &str) -> Result<()> {
        if self.rights.is_superuser(self.acting.role) {
            return Ok(());
        }
        let message = format!("permission denied for {what}");
        Err(SqlError::new(sqlstate::INSUFFICIENT_PRIVILEGE, message))
    }
}

/// The query of a view.
fn query_of(view: &View) -> Option<Box<sqlparser::ast::Query>> {
    match crate::parse::statements(&view.query).ok()?.pop()? {
        sqlparser::ast::Statement::Query(query) => Some(query),
        _ => None,
    }
}
