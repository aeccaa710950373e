//! What depends on what is dropped: found, told and let go.
//!
//! Objects are told as PostgreSQL tells them: those that depend on one thing in the order in which they were made, each in front of what depends on it in
//! turn, and each once. What belongs to something that goes (the sequence of a column, a table's own constraints and defaults) goes with it and is not told.

use super::Ddl;
use crate::catalog::{
    Change, Check, Default, Extension, ForeignKey, Index, Kind, Namespace, Oid, Relation, Table,
};
use crate::error::{Fields, Result, SqlError};
use crate::expr::Scalar;
use crate::rows::Parts;
use crate::sqlstate;
use std::sync::Arc;
use vellum_row::{ColumnId, Type};

/// Something that is dropped, or depends on what is.
#[derive(Clone)]
pub(super) enum Object {
    Schema(Arc<Namespace>),
    Relation(Arc<Relation>),
    /// The type of a type's arrays.
    Arrays(Arc<Relation>),
    Column(Arc<Relation>, ColumnId),
    Index(Arc<Relation>, Arc<Index>),
    /// A primary key or unique constraint, by its index.
    Constraint(Arc<Relation>, Arc<Index>),
    Key(Arc<Relation>, ForeignKey),
    Check(Arc<Relation>, Check),
    /// A default that reads a sequence, or names a type.
    Default(Arc<Relation>, ColumnId),
    /// A constraint of a domain.
    Asked(Arc<Relation>, Check),
    Extension(Arc<Extension>),
    /// A function of an extension.
    Function(Scalar),
}

/// An object, and what it depends on, in words.
struct Found {
    object: Object,
    on: String,
}

impl Object {
    /// What tells it from others.
    fn identity(&self) -> (u8, Oid, u16) {
        match self {
            Self::Schema(namespace) => (0, namespace.oid, 0),
            Self::Relation(relation) => (1, relation.oid, 0),
            Self::Column(table, column) => (1, table.oid, column.0),
            Self::Index(_, index) => (2, index.oid, 0),
            Self::Key(_, key) => (3, key.oid, 0),
            Self::Constraint(_, index) => (3, index.constraint.unwrap_or(index.oid), 0),
            Self::Default(table, column) => (4, table.oid, column.0),
            Self::Check(_, check) | Self::Asked(_, check) => (5, check.oid, 0),
            Self::Arrays(of) => (6, of.oid + 1, 0),
            Self::Extension(extension) => (7, extension.oid, 0),
            Self::Function(function) => (8, function.entry().oid, 0),
        }
    }

    /// Younger objects have greater numbers.
    fn age(&self) -> (Oid, u16) {
        let (_, oid, column) = self.identity();
        (oid, column)
    }

    /// Whether it belongs to one of these, which go: it goes without a word.
    fn belongs_to(&self, gone: &[(u8, Oid, u16)]) -> bool {
        let has = |identity| gone.contains(&identity);
        match self {
            Self::Column(table, _) => has((1, table.oid, 0)),
            Self::Key(table, key) => {
                let mut columns = key.columns.iter();
                has((1, table.oid, 0)) || columns.any(|column| has((1, table.oid, column.0)))
            }
            Self::Default(table, column) => has((1, table.oid, 0)) || has((1, table.oid, column.0)),
            Self::Check(of, _) | Self::Asked(of, _) | Self::Arrays(of) => has((1, of.oid, 0)),
            Self::Relation(relation) => match &relation.kind {
                Kind::Sequence(own) => {
                    has((1, own.owner.0, 0)) || has((1, own.owner.0, own.owner.1))
                }
                _ => false,
            },
            Self::Index(table, index) => {
                let constraint = index.constraint.is_some_and(|oid| has((3, oid, 0)));
                constraint || goes_with_column(table, index, gone)
            }
            Self::Constraint(table, index) => goes_with_column(table, index, gone),
            // It is found by its extension, which goes.
            Self::Function(_) => true,
            Self::Schema(_) | Self::Extension(_) => false,
        }
    }
}

/// Whether one of these is the table of an index, or a column that it names.
fn goes_with_column(table: &Relation, index: &Index, gone: &[(u8, Oid, u16)]) -> bool {
    let has = |number| gone.contains(&(1, table.oid, number));
    has(0) || index.columns_named().any(|column| has(column.0))
}

impl Ddl<'_> {
    /// What depends on these objects, which are dropped together, is dropped before them, or keeps them. What of it belongs to a table that is being changed
    /// is taken out of `next`, the table's next definition.
    ///
    /// # Errors
    /// `2BP01` without CASCADE.
    pub(super) fn let_go(
        &mut self,
        dropped: &[Object],
        cascade: bool,
        next: Option<&mut Table>,
    ) -> Result<()> {
        let found = self.dependents(dropped)?;
        if found.is_empty() {
            return Ok(());
        }
        let gone = identities(dropped, &found);
        let told = found.iter().rev();
        let told = told.filter(|found| !found.object.belongs_to(&gone));
        let told: Vec<(String, &str)> = told
            .map(|found| (self.named(&found.object), found.on.as_str()))
            .collect();
        if !told.is_empty() {
            let notice = match cascade {
                false => return Err(self.refused(dropped, &told)),
                true => cascades(told.into_iter().map(|(name, _)| name).collect()),
            };
            self.notices.push(notice);
        }
        self.discard_all(dropped, found, next)
    }

    /// The same without a word.
    ///
    /// # Errors
    /// Conflicts, storage.
    pub(super) fn let_go_quietly(&mut self, dropped: &[Object]) -> Result<()> {
        let found = self.dependents(dropped)?;
        self.discard_all(dropped, found, None)
    }

    #[cold]
    fn refused(&self, dropped: &[Object], told: &[(String, &str)]) -> SqlError {
        let message = match dropped {
            [one] => {
                let what = self.named(one);
                format!("cannot drop {what} because other objects depend on it")
            }
            _ => "cannot drop desired object(s) because other objects depend on them".to_owned(),
        };
        let lines = told
            .iter()
            .map(|(name, on)| format!("{name} depends on {on}"));
        let detail = lines.collect::<Vec<_>>().join("\n");
        SqlError::new(sqlstate::DEPENDENT_OBJECTS_STILL_EXIST, message)
            .with_detail(detail)
            .with_hint("Use DROP ... CASCADE to drop the dependent objects too.")
    }

    /// What depends on these objects, directly or not, without them: each behind what depends on it.
    fn dependents(&self, dropped: &[Object]) -> Result<Vec<Found>> {
        let mut found = Vec::new();
        let mut seen: Vec<(u8, Oid, u16)> = dropped.iter().map(Object::identity).collect();
        for object in dropped {
            self.dependents_of(object, &mut seen, &mut found)?;
        }
        Ok(found)
    }

    fn dependents_of(
        &self,
        object: &Object,
        seen: &mut Vec<(u8, Oid, u16)>,
        found: &mut Vec<Found>,
    ) -> Result<()> {
        let mut direct = self.direct_dependents(object)?;
        direct.sort_by_key(|dependent| std::cmp::Reverse(dependent.age()));
        for dependent in direct {
            if seen.contains(&dependent.identity()) {
                continue;
            }
            seen.push(dependent.identity());
            self.dependents_of(&dependent, seen, found)?;
            let on = self.named(object);
            found.push(Found {
                object: dependent,
                on,
            });
        }
        Ok(())
    }

    fn direct_dependents(&self, object: &Object) -> Result<Vec<Object>> {
        let catalog = &self.open.catalog.1;
        let sequences = |table: &Relation, column: Option<ColumnId>| {
            let owned = self.owned_sequences(table.oid, column).into_iter();
            owned.map(Object::Relation)
        };
        Ok(match object {
            Object::Schema(namespace) => {
                self.check_inside_known(namespace.oid)?;
                let all = catalog.relations().into_iter();
                let inside = all.filter(|relation| relation.namespace == namespace.oid);
                // The sequence of a column goes with its table.
                let alone = inside.filter(|relation| match &relation.kind {
                    Kind::Sequence(own) => {
                        let owner = catalog.relation(own.owner.0);
                        owner.is_none_or(|owner| owner.namespace != namespace.oid)
                    }
                    _ => true,
                });
                let types = catalog.user_types().into_iter();
                let types = types.filter(|own| own.namespace == namespace.oid);
                let extensions = catalog.extensions().into_iter();
                let extensions = extensions.filter(|own| own.namespace == namespace.oid);
                let extensions = extensions.cloned().map(Object::Extension);
                let relations = alone.chain(types).cloned().map(Object::Relation);
                relations.chain(extensions).collect()
            }
            Object::Extension(extension) => {
                self.check_callers_known(extension)?;
                extension.functions().map(Object::Function).collect()
            }
            Object::Function(function) => self.callers_of(*function),
            Object::Relation(relation) if relation.is_type() => {
                self.check_users_known(relation.oid)?;
                let mut all = self.users_of_type(relation);
                all.push(Object::Arrays(relation.clone()));
                all
            }
            Object::Arrays(of) => {
                let mut all = self.columns_of_type(|ty| ty.oid() == of.oid + 1);
                all.extend(self.domains_over_type(of.oid + 1));
                all
            }
            Object::Relation(relation) => {
                let views = self.views_of(relation)?.into_iter().map(Object::Relation);
                let mut all: Vec<Object> = views.collect();
                match &relation.kind {
                    Kind::Table(_) => {
                        let keys = self.referring(relation.oid).into_iter();
                        all.extend(keys.map(|(table, key)| Object::Key(table, key)));
                        all.extend(sequences(relation, None));
                    }
                    Kind::Sequence(_) | Kind::View(_) => {}
                    Kind::Enum(_) | Kind::Domain(_) | Kind::System(_) => return Ok(all),
                }
                // Its own defaults go with it.
                let readers = self.readers(relation.oid)?.into_iter();
                let readers = readers.filter(|(table, _)| table.oid != relation.oid);
                all.extend(readers.map(|(table, column)| Object::Default(table, column)));
                let domains = self.domains_reading(relation.oid).into_iter();
                all.extend(domains.map(Object::Relation));
                all
            }
            Object::Column(relation, column) => {
                let Some(table) = relation.table() else {
                    return Ok(Vec::new());
                };
                let position = table.position(*column);
                let views = self.views_reading(relation, position)?.into_iter();
                let mut all: Vec<Object> = views.map(Object::Relation).collect();
                for own in self.generated_from(relation, position)? {
                    let id = table.schema.column(own).id;
                    all.push(Object::Column(relation.clone(), id));
                }
                let keys = self.keys_to(relation);
                let keys = keys.filter(|(_, key)| key.target_columns.contains(column));
                all.extend(keys.map(|(table, key)| Object::Key(table, key)));
                // Only those whose columns are all named have something that depends on them.
                let indexes = table.indexes.iter();
                let indexes = indexes.filter(|index| index.columns_named().any(|id| id == *column));
                all.extend(indexes.map(|index| match index.constraint {
                    Some(_) => Object::Constraint(relation.clone(), index.clone()),
                    None => Object::Index(relation.clone(), index.clone()),
                }));
                all.extend(sequences(relation, Some(*column)));
                all
            }
            Object::Constraint(relation, index) => {
                let grouping = match index.primary {
                    true => self.views_grouping_by_key(relation)?,
                    false => Vec::new(),
                };
                let mut all: Vec<Object> = grouping.into_iter().map(Object::Relation).collect();
                all.push(Object::Index(relation.clone(), index.clone()));
                all
            }
            Object::Index(relation, index) => {
                let Some(table) = relation.table() else {
                    return Ok(Vec::new());
                };
                let stands_on = |key: &ForeignKey| {
                    let own = table.referred_index(&key.target_columns);
                    own.is_some_and(|own| own.oid == index.oid)
                };
                let keys = self.keys_to(relation).filter(|(_, key)| stands_on(key));
                keys.map(|(table, key)| Object::Key(table, key)).collect()
            }
            Object::Key(..) | Object::Check(..) | Object::Default(..) | Object::Asked(..) => {
                Vec::new()
            }
        })
    }

    /// The domains that were made over a type that is none.
    fn domains_over_type(&self, oid: Oid) -> impl Iterator<Item = Object> {
        let types = self.open.catalog.1.user_types().into_iter();
        let over = types.filter(move |relation| match &relation.kind {
            Kind::Domain(own) => own.base == 0 && own.ty.oid() == oid,
            _ => false,
        });
        over.cloned().map(Object::Relation)
    }

    /// The columns of such a type; one of a domain over it goes with the domain.
    fn columns_of_type(&self, is_it: impl Fn(Type) -> bool) -> Vec<Object> {
        let mut all = Vec::new();
        for relation in self.open.catalog.1.relations() {
            let table = relation.table();
            let columns = table.into_iter().flat_map(|table| table.schema.columns());
            let is_its_own = |id| table.is_none_or(|table| table.domain_of(id).is_none());
            let columns = columns.filter(|column| is_it(column.ty) && is_its_own(column.id));
            all.extend(columns.map(|column| Object::Column(relation.clone(), column.id)));
        }
        all
    }

    /// The columns of a domain.
    fn columns_of_domain(&self, domain: Oid) -> Vec<Object> {
        let mut all = Vec::new();
        for relation in self.open.catalog.1.relations() {
            let domains = relation.table().map_or(&[][..], |table| &table.domains);
            let own = domains.iter().filter(|(_, oid)| *oid == domain);
            all.extend(own.map(|(column, _)| Object::Column(relation.clone(), *column)));
        }
        all
    }

    /// What is of a type, or names it: columns, defaults, constraints, indexes, views.
    fn users_of_type(&self, of: &Relation) -> Vec<Object> {
        let names = |sql: &str| super::types_in(sql).contains(&of.oid);
        let mut all = self.columns_of_type(|ty| ty.oid() == of.oid);
        all.extend(self.columns_of_domain(of.oid));
        for domain in self.open.catalog.1.user_types() {
            let Kind::Domain(own) = &domain.kind else {
                continue;
            };
            let over = own.base == of.oid || (own.base == 0 && own.ty.oid() == of.oid);
            if over || own.default.as_deref().is_some_and(names) {
                all.push(Object::Relation(domain.clone()));
                continue;
            }
            let checks = own.checks.iter().filter(|check| names(&check.expression));
            all.extend(checks.map(|check| Object::Asked(domain.clone(), check.clone())));
        }
        for relation in self.open.catalog.1.relations() {
            let table = match &relation.kind {
                Kind::View(view) if names(&view.query) || self.has_literal_of(relation, of.oid) => {
                    all.push(Object::Relation(relation.clone()));
                    continue;
                }
                Kind::View(view) => {
                    let own = view.defaults.iter().filter(|(_, sql)| names(sql));
                    let own = own.map(|(at, _)| Object::Default(relation.clone(), ColumnId(*at)));
                    all.extend(own);
                    continue;
                }
                Kind::Table(table) => table,
                _ => continue,
            };
            for (column, default) in &table.defaults {
                all.extend(match default {
                    Default::Expression(sql) if names(sql) => {
                        Some(Object::Default(relation.clone(), *column))
                    }
                    Default::Generated(sql) if names(sql) => {
                        Some(Object::Column(relation.clone(), *column))
                    }
                    _ => None,
                });
            }
            // What reads a column of the type goes with that.
            let is_own = |at: usize| {
                let column = table.schema.column(at);
                let own = column.ty.enum_id().is_some_and(|id| id.oid() == of.oid);
                own || table.domain_of(column.id) == Some(of.oid)
            };
            let checks = table.checks.iter().filter(|check| {
                let reads = || self.columns_of_check(relation, &check.expression);
                names(&check.expression) && !reads().into_iter().any(is_own)
            });
            all.extend(checks.map(|check| Object::Check(relation.clone(), check.clone())));
            let indexes = table.indexes.iter().filter(|index| {
                let mut texts = index.expressions().chain(index.predicate.as_deref());
                let reads = || Parts::of(relation, index).map_or(Vec::new(), |parts| parts.reads());
                texts.any(names) && !reads().into_iter().any(is_own)
            });
            all.extend(indexes.map(|index| Object::Index(relation.clone(), index.clone())));
        }
        all
    }

    /// The foreign keys whose target a table is, its own as its definition has them.
    fn keys_to<'r>(
        &self,
        relation: &'r Arc<Relation>,
    ) -> impl Iterator<Item = (Arc<Relation>, ForeignKey)> + use<'r> {
        let own = relation
            .table()
            .map_or(&[][..], |table| &table.foreign_keys);
        let own = own.iter().filter(|key| key.target == relation.oid);
        let own = own.map(|key| (relation.clone(), key.clone()));
        own.chain(self.referring(relation.oid))
    }

    /// What an object is called in messages: with its schema where the search path does not lead to it.
    fn named(&self, object: &Object) -> String {
        match object {
            Object::Schema(namespace) => format!("schema {}", namespace.name),
            Object::Relation(relation) => self.described(relation),
            Object::Column(table, column) => self.column_described(table, *column),
            Object::Index(table, index) => {
                let name = crate::names::quoted(&index.name);
                if self.search_path.contains(&table.namespace) {
                    return format!("index {name}");
                }
                let schema = self.open.catalog.1.namespace_name(table.namespace);
                format!("index {}.{name}", crate::names::quoted(schema))
            }
            Object::Key(table, key) => {
                format!("constraint {} on {}", key.name, self.described(table))
            }
            Object::Constraint(table, index) => {
                format!("constraint {} on {}", index.name, self.described(table))
            }
            Object::Arrays(of) => format!("type {}[]", self.type_shown(of)),
            Object::Check(table, check) => {
                format!("constraint {} on {}", check.name, self.described(table))
            }
            Object::Asked(_, check) => format!("constraint {}", check.name),
            Object::Extension(extension) => format!("extension {}", extension.name),
            Object::Function(function) => self.function_described(*function),
            Object::Default(table, column) => {
                format!(
                    "default value for {}",
                    self.column_described(table, *column)
                )
            }
        }
    }

    pub(super) fn described(&self, relation: &Relation) -> String {
        let word = super::kind_word(&relation.kind);
        if relation.is_type() {
            return format!("{word} {}", self.type_shown(relation));
        }
        let name = crate::names::quoted(&relation.name);
        if self.search_path.contains(&relation.namespace) {
            return format!("{word} {name}");
        }
        let schema = self.open.catalog.1.namespace_name(relation.namespace);
        format!("{word} {}.{name}", crate::names::quoted(schema))
    }

    pub(super) fn column_described(&self, relation: &Relation, column: ColumnId) -> String {
        let name = relation.table().and_then(|table| {
            let position = table.schema.position_of(column)?;
            Some(table.schema.column(position).name.clone())
        });
        let of_view = || match &relation.kind {
            Kind::View(view) => view.columns.get(usize::from(column.0) - 1).cloned(),
            _ => None,
        };
        let name = name.or_else(of_view).unwrap_or_default();
        format!("column {name} of {}", self.described(relation))
    }

    /// Drops what depends on `dropped`, each before what it depends on.
    fn discard_all(
        &mut self,
        dropped: &[Object],
        found: Vec<Found>,
        mut next: Option<&mut Table>,
    ) -> Result<()> {
        let changed = dropped.iter().find_map(|object| match object {
            Object::Column(table, _) | Object::Constraint(table, _) => Some(table.clone()),
            _ => None,
        });
        let gone = identities(dropped, &found);
        for Found { object, .. } in found {
            let (relation, own) = match &object {
                Object::Relation(relation) => {
                    self.discard(relation)?;
                    continue;
                }
                Object::Column(table, _)
                | Object::Key(table, _)
                | Object::Check(table, _)
                | Object::Default(table, _) => {
                    let is_changed = changed.as_ref().filter(|own| own.oid == table.oid);
                    (table, next.as_deref_mut().zip(is_changed))
                }
                // Whatever it belongs to takes it along.
                Object::Index(..) | Object::Constraint(..) if object.belongs_to(&gone) => continue,
                Object::Index(table, index) => {
                    // It may have gone with a column that its expressions read.
                    let now = self.open.catalog.1.index(index.oid);
                    if now.is_some() {
                        let table = self.alone(table)?;
                        self.discard_index(&table, index.oid)?;
                    }
                    continue;
                }
                Object::Asked(domain, check) => {
                    self.take_from_domain(domain, check)?;
                    continue;
                }
                Object::Extension(extension) => {
                    self.discard_extension(extension)?;
                    continue;
                }
                Object::Schema(_)
                | Object::Constraint(..)
                | Object::Arrays(_)
                | Object::Function(_) => continue,
            };
            if let Some((next, own)) = own {
                self.take_out(&object, own, next)?;
                continue;
            }
            if self.open.catalog.1.relation(relation.oid).is_none() {
                // It went with its table.
                continue;
            }
            let relation = self.alone(relation)?;
            if let (Kind::View(_), Object::Default(_, column)) = (&relation.kind, &object) {
                self.change_default(&relation, *column, None)?;
                continue;
            }
            let Some(table) = relation.table() else {
                continue;
            };
            let mut next = table.clone();
            self.take_out(&object, &relation, &mut next)?;
            self.put_table(&relation, next)?;
        }
        Ok(())
    }

    /// Takes a part out of the definition of its table.
    fn take_out(
        &mut self,
        part: &Object,
        relation: &Arc<Relation>,
        next: &mut Table,
    ) -> Result<()> {
        match part {
            Object::Key(_, key) => next.foreign_keys.retain(|own| own.oid != key.oid),
            Object::Check(_, check) => next.checks.retain(|own| own.oid != check.oid),
            Object::Default(_, column) => next.defaults.retain(|(id, _)| id != column),
            Object::Column(_, column) => {
                if let Some(position) = next.schema.position_of(*column) {
                    let now = Relation {
                        kind: Kind::Table(Box::new(next.clone())),
                        ..Relation::clone(relation)
                    };
                    self.drop_column(&now, next, position)?;
                }
            }
            Object::Schema(_)
            | Object::Relation(_)
            | Object::Arrays(_)
            | Object::Asked(..)
            | Object::Extension(_)
            | Object::Function(_)
            | Object::Constraint(..)
            | Object::Index(..) => {}
        }
        Ok(())
    }

    /// Drops a relation that nothing depends on any more. One that is gone already went with another.
    ///
    /// # Errors
    /// Conflicts, storage.
    pub(super) fn discard(&mut self, relation: &Arc<Relation>) -> Result<()> {
        if self.open.catalog.1.relation(relation.oid).is_none() {
            return Ok(());
        }
        let relation = self.alone(relation)?;
        self.check_not_pending(&relation, "DROP TABLE")?;
        if !self.referring(relation.oid).is_empty() {
            return Err(SqlError::internal("a table that is referred to goes"));
        }
        if let Kind::Table(table) = &relation.kind {
            self.drop_storage(table)?;
        }
        self.change(Change::DropRelation(relation.oid))
    }
}

fn identities(dropped: &[Object], found: &[Found]) -> Vec<(u8, Oid, u16)> {
    let found = found.iter().map(|found| &found.object);
    dropped.iter().chain(found).map(Object::identity).collect()
}

fn cascades(names: Vec<String>) -> Fields {
    let mut lines: Vec<String> = names
        .into_iter()
        .map(|name| format!("drop cascades to {name}"))
        .collect();
    match lines.len() {
        1 => Fields::notice(lines.remove(0)),
        count => Fields::notice(format!("drop cascades to {count} other objects"))
            .with_detail(lines.join("\n")),
    }
}
