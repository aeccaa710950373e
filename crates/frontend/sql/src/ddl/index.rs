//! CREATE INDEX, DROP INDEX.

use super::Ddl;
use super::computed::check_no_subquery;
use super::dependency::Object;
use super::immutable::is_immutable;
use super::made_names::MadeName;
use super::parameters::{self, Of, Said};
use crate::bind::{NO_COLLATION, ScopeTable, folded, indeterminate};
use crate::catalog::{
    Collation, Index, IndexColumn, IndexKey, KeyCollation, Kind, Marks, Method, Oid, OperatorClass,
    Relation, Table, Timing,
};
use crate::error::{Result, SqlError};
use crate::expr::Expr;
use crate::parse::walk;
use crate::plan::{column_position, index_column_names};
use crate::rows::{self, Part, Parts};
use crate::sqlstate;
use crate::system::exact_expression_over;
use crate::wire::CommandTag;
use sqlparser::ast;
use std::ops::ControlFlow;
use std::sync::Arc;
use vellum_row::{Column, ColumnId, Type, Value};

impl Ddl<'_> {
    pub(super) fn create_index(&mut self, create: &ast::CreateIndex) -> Result<CommandTag> {
        let tag = CommandTag::plain("CREATE INDEX");
        let relation = self.table_alone(&create.table_name, Self::check_owner)?;
        self.check_not_pending(&relation, "CREATE INDEX")?;
        // Before its entries are made (`gates`).
        self.hold_types(&relation)?;
        let table = relation.table().ok_or_else(|| {
            let message = format!("\"{}\" is not a table", relation.name);
            SqlError::new(sqlstate::WRONG_OBJECT_TYPE, message)
        })?;
        super::check_index_columns(create.columns.len() + create.include.len())?;
        let method = method_of(create)?;
        let options = parameters::changed(&[], Said::of_index(&create.with)?, Of::Index(method))?;
        let mut columns = Vec::with_capacity(create.columns.len());
        for column in &create.columns {
            let options = column.column.options;
            let descending = options.asc == Some(false);
            let (key, ty, collation) = self.index_key(&relation, &column.column.expr)?;
            let class = column.operator_class.as_ref();
            columns.push(IndexColumn {
                key,
                descending,
                nulls_first: options.nulls_first.unwrap_or(descending),
                class: class_of(method, class, ty)?,
                collation,
            });
            let said = match (options.asc, options.nulls_first) {
                (None, None) => continue,
                (Some(_), _) => "ASC/DESC options",
                (None, Some(_)) => "NULLS FIRST/LAST options",
            };
            if !method.is_ordered() {
                return Err(not_of(method, said));
            }
        }
        let include = create.include.iter().map(|name| column_id(table, name));
        let predicate = create.predicate.as_ref();
        let predicate = predicate.map(|node| self.index_predicate(&relation, node));
        let mut index = Index {
            oid: 0,
            name: Box::default(),
            storage: None,
            columns,
            include: include.collect::<Result<_>>()?,
            predicate: predicate.transpose()?.flatten(),
            unique: create.unique,
            nulls_distinct: create.nulls_distinct != Some(false),
            constraint: None,
            primary: false,
            timing: Timing::Fixed,
            method,
            options,
            marks: Marks::default(),
        };
        let name = match &create.name {
            Some(name) => crate::bind::object_name(name)?.1,
            None => {
                let columns = index_column_names(table, &index).join("_");
                let made = index_name(&relation, &columns);
                self.free_name(relation.namespace, made)
            }
        };
        if self.is_taken(relation.namespace, &name, create.if_not_exists)? {
            return Ok(tag);
        }
        index.oid = self.draw_oid()?;
        index.name = name.into();
        index.storage = Some(self.index_storage(index.oid)?);
        let index = Arc::new(index);
        self.fill(&relation, &index)?;
        let mut next = table.clone();
        next.indexes.push(index);
        self.put_table(&relation, next)?;
        Ok(tag)
    }

    /// What stands in a column of a new index, its type, none of a text that is read as no type, and its collation.
    ///
    /// # Errors
    /// `42703`, `42601` for an operator without parentheses, `42P17`, `0A000`; `42704`, `42804`, `42P22` for its collation.
    fn index_key(
        &self,
        relation: &Arc<Relation>,
        node: &ast::Expr,
    ) -> Result<(IndexKey, Option<Type>, Option<KeyCollation>)> {
        check_form(node)?;
        let (inner, said) = without_collate(node);
        let (key, ty, own) = self.bare_index_key(relation, inner)?;
        let binder = self.binder();
        let said = said.map(|collation| binder.collation_named(collation, ty));
        let of_type = Collation::of_type(ty.unwrap_or(Type::Text));
        let collation = match (said.transpose()?, own) {
            (Some(said), own) if said != own.unwrap_or(of_type) => Some(KeyCollation::Said(said)),
            (None, Some(NO_COLLATION)) => {
                let text = "could not determine which collation to use for index expression";
                return Err(indeterminate(text));
            }
            (_, Some(own)) if matches!(key, IndexKey::Expression(_)) => {
                Some(KeyCollation::Own(own))
            }
            _ => None,
        };
        Ok((key, ty, collation))
    }

    /// The same without COLLATE; of the collation, the one that is another than the type's.
    fn bare_index_key(
        &self,
        relation: &Arc<Relation>,
        node: &ast::Expr,
    ) -> Result<(IndexKey, Option<Type>, Option<Oid>)> {
        let table = relation.table();
        let table = table.ok_or_else(|| SqlError::internal("no table"))?;
        if let ast::Expr::Identifier(name) = node {
            let id = column_id(table, name)?;
            let ty = table.schema.column(table.position(id)).ty;
            return Ok((IndexKey::Column(id), Some(ty), table.collation_of(id)));
        }
        let mut binder = self.binder();
        binder.scope.add(ScopeTable::of(relation, None)?)?;
        let bound = binder.expr(node)?;
        check_no_subquery(&binder, "index expression")?;
        if let Expr::Column { position, .. } = bound.expr {
            let id = table.schema.column(usize::from(position)).id;
            return Ok((IndexKey::Column(id), bound.ty, table.collation_of(id)));
        }
        let Some(ty) = bound.ty else {
            return Ok((IndexKey::Expression(Box::default()), None, None));
        };
        let own = binder.collations.last.of_column(ty);
        let columns: Vec<Column> = table.schema.columns().cloned().collect();
        check_no_domain(&bound.expr)?;
        check_immutable(&bound.expr, &columns, "expression")?;
        let mut node = node.clone();
        self.keep_functions(&mut node);
        self.keep_relations(&mut node);
        let sql = kept_text(relation, &node, (&bound.expr, ty), |sql| {
            rows::bound_expression(relation, sql).map(|(expr, _)| expr)
        })?;
        Ok((IndexKey::Expression(sql), Some(ty), own))
    }

    /// Relations that literals name are kept by their numbers: an index does not look names up.
    fn keep_relations(&self, node: &mut ast::Expr) {
        walk::change_expressions(node, &mut |expr| {
            if let ast::Expr::Cast {
                expr: operand,
                data_type: ast::DataType::Regclass,
                ..
            } = expr
                && let ast::Expr::Value(value) = &mut **operand
                && let ast::Value::SingleQuotedString(name) = &mut value.value
                && let Some(oid) = self.sequence_named(name)
            {
                *name = oid.to_string();
            }
            ControlFlow::Continue(())
        });
    }

    /// The predicate of a new index; none if it is true of every row.
    ///
    /// # Errors
    /// `42804`, `42P17`, `0A000`.
    fn index_predicate(
        &self,
        relation: &Arc<Relation>,
        node: &ast::Expr,
    ) -> Result<Option<Box<str>>> {
        let table = relation.table();
        let table = table.ok_or_else(|| SqlError::internal("no table"))?;
        let mut binder = self.binder();
        binder.scope.add(ScopeTable::of(relation, None)?)?;
        let condition = binder.condition(node, "WHERE")?;
        check_no_subquery(&binder, "index predicate")?;
        if condition == Expr::Const(Value::Bool(true)) {
            return Ok(None);
        }
        let columns: Vec<Column> = table.schema.columns().cloned().collect();
        check_no_domain(&condition)?;
        check_immutable(&condition, &columns, "predicate")?;
        let mut node = node.clone();
        self.keep_functions(&mut node);
        self.keep_relations(&mut node);
        let sql = kept_text(relation, &node, (&condition, Type::Bool), |sql| {
            rows::bound_condition(relation, sql)
        })?;
        Ok(Some(sql))
    }

    /// What the indexes of a table compute is still immutable: a column has another type.
    ///
    /// # Errors
    /// `42P17`, and of names and types.
    pub(super) fn check_computed(&self, relation: &Arc<Relation>) -> Result<()> {
        let Some(table) = relation.table() else {
            return Ok(());
        };
        let columns: Vec<Column> = table.schema.columns().cloned().collect();
        for index in &table.indexes {
            let parts = Parts::of(relation, index)?;
            for (part, own) in parts.columns.iter().zip(&index.columns) {
                let ty = match part {
                    Part::Column(position) => table.schema.column(*position).ty,
                    Part::Computed { expr, ty } => {
                        check_immutable(expr, &columns, "expression")?;
                        *ty
                    }
                };
                match OperatorClass::of(own.class) {
                    None => {
                        check_orderable(index.method, Some(ty))?;
                    }
                    Some(class) => check_accepts(class, Some(ty))?,
                }
            }
            if let Some(predicate) = &parts.predicate {
                check_immutable(predicate, &columns, "predicate")?;
            }
        }
        Ok(())
    }

    /// Adds an index like one of another table to the definition of a table without rows that has columns of the same names.
    ///
    /// # Errors
    /// What the engine reports.
    pub(super) fn add_index(
        &mut self,
        relation: &mut Relation,
        like: &Index,
        from: &Table,
    ) -> Result<()> {
        let table = relation.table();
        let table = table.ok_or_else(|| SqlError::internal("no table"))?;
        let own = |id: ColumnId| {
            let name = &from.schema.column(from.position(id)).name;
            let position = column_position(relation, name)?;
            Ok(table.schema.column(position).id)
        };
        let columns = like.columns.iter().map(|part| {
            let key = match &part.key {
                IndexKey::Column(id) => IndexKey::Column(own(*id)?),
                key @ IndexKey::Expression(_) => key.clone(),
            };
            Ok(IndexColumn {
                key,
                ..part.clone()
            })
        });
        let columns = columns.collect::<Result<_>>()?;
        let include = like.include.iter().map(|id| own(*id));
        let include = include.collect::<Result<_>>()?;
        let mut index = Index {
            oid: self.draw_oid()?,
            columns,
            include,
            storage: None,
            marks: Marks::default(),
            ..like.clone()
        };
        let columns = index_column_names(table, &index).join("_");
        let catalog = &self.open.catalog.1;
        let name = index_name(relation, &columns).free(|name| {
            let mut own = table.indexes.iter();
            catalog.named(relation.namespace, name).is_some()
                || own.any(|index| *index.name == *name)
        });
        index.name = name.into();
        index.storage = Some(self.index_storage(index.oid)?);
        if let Kind::Table(table) = &mut relation.kind {
            table.indexes.push(Arc::new(index));
        }
        Ok(())
    }

    /// An index that is to be dropped, of a table that is held alone.
    ///
    /// # Errors
    /// `2BP01` if a constraint stands on it.
    pub(super) fn index_to_drop(&self, relation: &Arc<Relation>, index: Oid) -> Result<Object> {
        let indexes = relation.table().map_or(&[][..], |table| &table.indexes);
        let found = indexes.iter().find(|other| other.oid == index);
        let found = found.ok_or_else(|| SqlError::internal("an index without table"))?;
        if found.constraint.is_some() {
            let constraint = format!("constraint {} on {}", found.name, self.described(relation));
            let message = format!(
                "cannot drop index {} because {constraint} requires it",
                found.name
            );
            let state = sqlstate::DEPENDENT_OBJECTS_STILL_EXIST;
            return Err(SqlError::new(state, message)
                .with_hint(format!("You can drop {constraint} instead.")));
        }
        Ok(Object::Index(relation.clone(), found.clone()))
    }

    /// Drops an index that nothing depends on any more.
    ///
    /// # Errors
    /// Conflicts, storage.
    pub(super) fn discard_index(&mut self, relation: &Arc<Relation>, index: Oid) -> Result<()> {
        let relation = self.alone(relation)?;
        let Some(table) = relation.table() else {
            return Ok(());
        };
        let mut next = table.clone();
        self.take_index(&mut next, index)?;
        self.put_table(&relation, next).map(drop)
    }

    /// Takes an index out of a definition, and drops its rows.
    pub(super) fn take_index(&mut self, table: &mut Table, index: Oid) -> Result<()> {
        let at = table.indexes.iter().position(|other| other.oid == index);
        let Some(at) = at else {
            return Ok(());
        };
        let taken = table.indexes.remove(at);
        if let Some(storage) = &taken.storage {
            self.open.transaction.drop_table(&storage.name)?;
        }
        Ok(())
    }
}

/// What COLLATE stands behind, in parentheses or not, and which collation it says; itself if there is none.
pub(crate) fn without_collate(node: &ast::Expr) -> (&ast::Expr, Option<&ast::ObjectName>) {
    let mut inner = node;
    while let ast::Expr::Nested(own) = inner {
        inner = own;
    }
    match inner {
        ast::Expr::Collate { expr, collation } => (without_collate(expr).0, Some(collation)),
        _ => (node, None),
    }
}

/// The name of an index that is given none.
fn index_name<'n>(relation: &'n Relation, columns: &'n str) -> MadeName<'n> {
    MadeName {
        table: &relation.name,
        columns,
        label: "idx",
    }
}

/// # Errors
/// `42703`.
fn column_id(table: &Table, name: &ast::Ident) -> Result<ColumnId> {
    let name = folded(name);
    let position = table.schema.position(&name).ok_or_else(|| {
        let message = format!("column \"{name}\" does not exist");
        SqlError::new(sqlstate::UNDEFINED_COLUMN, message)
    })?;
    Ok(table.schema.column(position).id)
}

/// The access method of a new index, which can do what is asked of it.
///
/// # Errors
/// `42704`, `0A000`.
fn method_of(create: &ast::CreateIndex) -> Result<Method> {
    let name = match &create.using {
        None => return Ok(Method::BTree),
        Some(ast::IndexType::Custom(name)) => folded(name),
        Some(known) => known.to_string().to_lowercase(),
    };
    let method = Method::named(&name).ok_or_else(|| {
        let message = format!("access method \"{name}\" does not exist");
        SqlError::new(sqlstate::UNDEFINED_OBJECT, message)
    })?;
    let missing = if create.unique && !method.is_ordered() {
        "unique indexes"
    } else if !create.include.is_empty() && !method.has_included() {
        "included columns"
    } else if create.columns.len() > 1 && !method.has_columns() {
        "multicolumn indexes"
    } else {
        return Ok(method);
    };
    Err(not_of(method, missing))
}

/// `0A000`.
#[cold]
fn not_of(method: Method, what: &str) -> SqlError {
    let name = method.name();
    let message = format!("access method \"{name}\" does not support {what}");
    SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, message)
}

/// # Errors
/// `42804` for a class of other types.
fn check_accepts(class: &OperatorClass, ty: Option<Type>) -> Result<()> {
    if ty.is_some_and(|ty| class.accepts(ty)) {
        return Ok(());
    }
    let (name, ty) = (class.name, ty.map_or("unknown", Type::sql_name));
    let message = format!("operator class \"{name}\" does not accept data type {ty}");
    Err(SqlError::new(sqlstate::DATATYPE_MISMATCH, message))
}

/// The operator class that a column is given; 0 if it is the one that its type has.
///
/// # Errors
/// `42704`; `42804` for one that is of other types.
fn class_of(method: Method, given: Option<&ast::ObjectName>, ty: Option<Type>) -> Result<Oid> {
    let Some(given) = given else {
        return check_orderable(method, ty).map(|_| 0);
    };
    let class = named_class(method, given)?;
    check_accepts(class, ty)?;
    let is_own = ty.and_then(|ty| OperatorClass::default_of(method, ty)) == Some(class);
    Ok(if is_own { 0 } else { class.oid })
}

/// The operator class with a name.
///
/// # Errors
/// `42704`.
pub(crate) fn named_class(
    method: Method,
    given: &ast::ObjectName,
) -> Result<&'static OperatorClass> {
    let (schema, name) = crate::bind::object_name(given)?;
    let known = schema.is_none_or(|schema| schema == "pg_catalog");
    let class = OperatorClass::named(method, &name).filter(|_| known);
    let class = class.ok_or_else(|| {
        let method = method.name();
        let message =
            format!("operator class \"{name}\" does not exist for access method \"{method}\"");
        SqlError::new(sqlstate::UNDEFINED_OBJECT, message)
    })?;
    Ok(class)
}

/// # Errors
/// `42704` for a type that no index of a method orders, or that is not known.
fn check_orderable(method: Method, ty: Option<Type>) -> Result<Type> {
    let is_own = |ty: &Type| match method {
        Method::BTree => ty.is_sortable(),
        _ => ty.is_orderable() && OperatorClass::default_of(method, *ty).is_some(),
    };
    if let Some(ty) = ty.filter(is_own) {
        return Ok(ty);
    }
    let (name, method) = (ty.map_or("unknown", |ty| ty.sql_name()), method.name());
    let message =
        format!("data type {name} has no default operator class for access method \"{method}\"");
    let hint = "You must specify an operator class for the index or define a default operator class for the data type.";
    Err(SqlError::new(sqlstate::UNDEFINED_OBJECT, message).with_hint(hint))
}

/// An expression stands in parentheses, unless it is called like a function.
///
/// # Errors
/// `42601`.
pub(crate) fn check_form(node: &ast::Expr) -> Result<()> {
    let near = match node {
        ast::Expr::BinaryOp { op, .. } => op.to_string(),
        ast::Expr::UnaryOp { op, .. } => op.to_string(),
        ast::Expr::Cast {
            kind: ast::CastKind::DoubleColon,
            ..
        } => "::".to_owned(),
        ast::Expr::Case { .. } => "case".to_owned(),
        ast::Expr::Value(value) => value.to_string(),
        ast::Expr::CompoundIdentifier(_) => ".".to_owned(),
        _ => return Ok(()),
    };
    Err(SqlError::syntax(format!(
        "syntax error at or near \"{near}\""
    )))
}

/// # Errors
/// `42P17`.
fn check_immutable(expr: &Expr, columns: &[Column], what: &str) -> Result<()> {
    if is_immutable(expr, columns) {
        return Ok(());
    }
    let message = format!("functions in index {what} must be marked IMMUTABLE");
    Err(SqlError::new(sqlstate::INVALID_OBJECT_DEFINITION, message))
}

/// An expression as the catalog keeps it: a text that says `bound` whatever the settings of who reads it. A literal that reads them, as one of a
/// timestamp or of an enum does, is kept as what it was read as.
///
/// # Errors
/// `0A000` where no such text is found.
fn kept_text(
    relation: &Arc<Relation>,
    node: &ast::Expr,
    (bound, ty): (&Expr, Type),
    read: impl Fn(&str) -> Result<Expr>,
) -> Result<Box<str>> {
    let mut given = node;
    while let ast::Expr::Nested(inner) = given {
        given = inner;
    }
    let mut given = given.clone();
    // The table may be called otherwise tomorrow.
    walk::change_expressions(&mut given, &mut |expr| {
        if let ast::Expr::CompoundIdentifier(parts) = expr
            && let Some(column) = parts.pop()
        {
            *expr = ast::Expr::Identifier(column);
        }
        ControlFlow::Continue(())
    });
    let shown = || exact_expression_over(relation, bound, ty, rows::index_settings());
    for text in [&|| given.to_string(), &shown as &dyn Fn() -> String] {
        let text = text();
        if read(&text).is_ok_and(|read| read == *bound) {
            return Ok(text.into());
        }
    }
    Err(SqlError::unsupported(
        "an index with an expression that depends on settings of the session",
    ))
}

/// # Errors
/// `0A000` for a cast to a domain: what an index computes is the same whatever becomes of that.
fn check_no_domain(expr: &Expr) -> Result<()> {
    let mut found = false;
    expr.walk(&mut |part| found |= matches!(part, Expr::Domain { .. }));
    match found {
        true => Err(SqlError::unsupported("a cast to a domain in an index")),
        false => Ok(()),
    }
}
