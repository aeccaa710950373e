//! Indexes that a table says something of: PRIMARY KEY and UNIQUE … USING INDEX, REPLICA IDENTITY, CLUSTER. And what ALTER TABLE says that changes nothing here.

use super::deferral::timing_of;
use super::foreign::deferrable;
use super::key::two_keys;
use super::role::denied;
use super::{Ddl, not_for};
use crate::bind::folded;
use crate::catalog::{
    Index, KeyCollation, Kind, Marks, Method, Named, Oid, OperatorClass, Relation, ReplicaIdentity,
    Table, Timing,
};
use crate::error::{Fields, Result, SqlError};
use crate::parse::{Form, check_tablespace};
use crate::sqlstate;
use crate::wire::CommandTag;
use sqlparser::ast::{self, ConstraintUsingIndex, TableConstraint};
use std::sync::Arc;
use vellum_row::{Column, ColumnId, Schema};

/// A constraint that is to stand on an index that is there.
pub(super) struct Promoted<'c> {
    said: &'c ConstraintUsingIndex,
    primary: bool,
}

impl<'c> Promoted<'c> {
    pub fn of(constraint: &'c TableConstraint) -> Option<Self> {
        let (said, primary) = match constraint {
            TableConstraint::PrimaryKeyUsingIndex(said) => (said, true),
            TableConstraint::UniqueUsingIndex(said) => (said, false),
            _ => return None,
        };
        Some(Self { said, primary })
    }
}

/// # Errors
/// `42P16` for a column by which the rows of a table are told to replicas: its nulls would tell none apart.
pub(super) fn check_no_identity(table: &Table, column: &Column) -> Result<()> {
    let mut marked = table.indexes.iter().filter(|index| index.marks.identity);
    if !marked.any(|index| index.key_columns().any(|part| part == column.id)) {
        return Ok(());
    }
    let message = format!(
        "column \"{}\" is in index used as replica identity",
        column.name
    );
    Err(SqlError::new(sqlstate::INVALID_TABLE_DEFINITION, message))
}

impl Ddl<'_> {
    /// Makes an index of a relation that is held alone the one of a constraint, by whose name it is called then. That of a primary key becomes the order of the rows.
    ///
    /// # Errors
    /// `42704`, `42809`, `55000` for an index that cannot be it; `42P16`, `42P07`, `23502`.
    pub(super) fn promote_index(
        &mut self,
        relation: &mut Relation,
        promoted: Promoted<'_>,
    ) -> Result<()> {
        let Promoted { said, primary } = promoted;
        let timing = timing_of(said.characteristics.as_ref())?;
        let table = relation
            .table()
            .ok_or_else(|| SqlError::internal("no table"))?;
        if primary && table.primary_key().is_some() {
            return Err(two_keys(&relation.name));
        }
        let index = self.index_to_promote(relation, said, primary)?;
        let mut next = table.clone();
        let name = said.name.as_ref().map(folded);
        if let Some(name) = name.filter(|name| **name != *index.name) {
            let message = format!(
                "ALTER TABLE / ADD CONSTRAINT USING INDEX will rename index \"{}\" to \"{name}\"",
                index.name
            );
            self.notices.push(Fields::notice(message));
            self.call_index(relation, &mut next, index.oid, &name)?;
        }
        let at = next.indexes.iter().position(|own| own.oid == index.oid);
        let at = at.ok_or_else(|| SqlError::internal("an index of no table"))?;
        let mut made = Index {
            constraint: Some(self.draw_oid()?),
            primary,
            timing,
            ..Index::clone(&next.indexes[at])
        };
        if timing != Timing::Fixed {
            // A foreign key needs an index in which no key is ever twice.
            let catalog = &self.open.catalog.1;
            let others = |columns: &[ColumnId]| {
                let mut all = next.indexes.iter().filter(|own| own.oid != index.oid);
                all.any(|own| own.keeps_apart() && own.is_of(columns))
            };
            let mut keys = catalog.referring(relation.oid).into_iter();
            if keys.any(|(_, key)| !others(&key.target_columns)) {
                return Err(deferrable("unique constraint", relation));
            }
        }
        if !primary && timing == Timing::Fixed {
            next.indexes[at] = Arc::new(made);
            relation.kind = Kind::Table(Box::new(next));
            return Ok(());
        }
        // Its entries have another form.
        let oid = made.oid;
        self.take_index(&mut next, oid)?;
        let mut schema = Schema::clone(&next.schema);
        if primary {
            for column in made.key_columns() {
                schema = schema.set_nullable(next.position(column), false);
            }
        }
        if primary {
            let mut strict = next.clone();
            strict.schema = Arc::new(schema.clone());
            self.check_rows(&Relation {
                kind: Kind::Table(Box::new(strict)),
                ..relation.clone()
            })?;
        }
        if primary && timing == Timing::Fixed {
            made.storage = None;
            relation.kind = Kind::Table(Box::new(next));
            return self.cluster(relation, made, schema);
        }
        made.storage = Some(self.index_storage(oid)?);
        next.schema = Arc::new(schema);
        relation.kind = Kind::Table(Box::new(next));
        let made = Arc::new(made);
        self.fill(relation, &made)?;
        if let Kind::Table(table) = &mut relation.kind {
            table.indexes.insert(if primary { 0 } else { at }, made);
        }
        Ok(())
    }

    fn index_to_promote(
        &self,
        relation: &Relation,
        said: &ConstraintUsingIndex,
        primary: bool,
    ) -> Result<Arc<Index>> {
        let place = || {
            let binder = self.binder();
            let word = if primary { "primary" } else { "unique" };
            match &said.name {
                Some(name) => {
                    binder.place_before(&ast::Expr::Identifier(name.clone()), "constraint")
                }
                None => {
                    let name = ast::Expr::Identifier(said.index_name.clone());
                    binder.place_before(&name, word)
                }
            }
        };
        let name = folded(&said.index_name);
        let wrong = |state, message: String| SqlError::new(state, message).at(place());
        let not_in_state = |message| wrong(sqlstate::OBJECT_NOT_IN_PREREQUISITE_STATE, message);
        let unfit = |message| {
            let text = "Cannot create a primary key or unique constraint using such an index.";
            wrong(sqlstate::WRONG_OBJECT_TYPE, message).with_detail(text)
        };
        let (table, index) = match self.open.catalog.1.named(relation.namespace, &name) {
            Some(Named::Index { table, index }) => (table, index),
            Some(Named::Relation(_)) => {
                let message = format!("\"{name}\" is not an index");
                return Err(SqlError::new(sqlstate::WRONG_OBJECT_TYPE, message));
            }
            None => {
                let message = format!("index \"{name}\" does not exist");
                return Err(wrong(sqlstate::UNDEFINED_OBJECT, message));
            }
        };
        let catalog = &self.open.catalog.1;
        let found = catalog.relation(table).and_then(|own| own.table());
        let mut indexes = found.map_or(&[][..], |table| &table.indexes).iter();
        let found = indexes.find(|own| own.oid == index).cloned();
        let index = found.ok_or_else(|| SqlError::internal("an index of no table"))?;
        if index.constraint.is_some() {
            let message = format!("index \"{name}\" is already associated with a constraint");
            return Err(not_in_state(message));
        }
        if table != relation.oid {
            let message = format!(
                "index \"{name}\" does not belong to table \"{}\"",
                relation.name
            );
            return Err(not_in_state(message));
        }
        if !index.unique {
            return Err(unfit(format!("\"{name}\" is not a unique index")));
        }
        if index.expressions().next().is_some() {
            return Err(unfit(format!("index \"{name}\" contains expressions")));
        }
        if index.predicate.is_some() {
            return Err(unfit(format!("\"{name}\" is a partial index")));
        }
        let schema = relation.table().map(|table| &table.schema);
        let is_plain = |part: &crate::catalog::IndexColumn| {
            let ty = part.column().and_then(|id| {
                let schema = schema?;
                Some(schema.column(schema.position_of(id)?).ty)
            });
            let usual = ty.and_then(|ty| OperatorClass::default_of(Method::BTree, ty));
            let class = part.class == 0 || usual.is_some_and(|usual| usual.oid == part.class);
            let collated = matches!(part.collation, Some(KeyCollation::Said(_)));
            !part.descending && !part.nulls_first && class && !collated
        };
        let odd = index.columns.iter().position(|part| !is_plain(part));
        match odd {
            None => Ok(index),
            Some(at) => Err(unfit(format!(
                "index \"{name}\" column number {} does not have default sorting behavior",
                at + 1
            ))),
        }
    }

    /// An index of a table by its name.
    ///
    /// # Errors
    /// `42704`, `42809`.
    fn own_index(&self, relation: &Relation, name: &ast::Ident) -> Result<Arc<Index>> {
        let name = folded(name);
        let mut indexes = relation
            .table()
            .map_or(&[][..], |table| &table.indexes)
            .iter();
        if let Some(found) = indexes.find(|index| *index.name == *name) {
            return Ok(found.clone());
        }
        let (state, message) = match self.open.catalog.1.named(relation.namespace, &name) {
            Some(_) => (
                sqlstate::WRONG_OBJECT_TYPE,
                format!("\"{name}\" is not an index for table \"{}\"", relation.name),
            ),
            None => (
                sqlstate::UNDEFINED_OBJECT,
                format!(
                    "index \"{name}\" for table \"{}\" does not exist",
                    relation.name
                ),
            ),
        };
        Err(SqlError::new(state, message))
    }

    /// REPLICA IDENTITY.
    ///
    /// # Errors
    /// `42704`, `42809`, `0A000` for an index that cannot be it.
    pub(super) fn set_replica_identity(
        &self,
        relation: &Relation,
        next: &mut Table,
        identity: &ast::ReplicaIdentity,
    ) -> Result<()> {
        let mut named = None;
        next.replica_identity = match identity {
            ast::ReplicaIdentity::Default => ReplicaIdentity::Default,
            ast::ReplicaIdentity::Nothing => ReplicaIdentity::Nothing,
            ast::ReplicaIdentity::Full => ReplicaIdentity::Full,
            ast::ReplicaIdentity::Index(name) => {
                let index = self.own_index(relation, name)?;
                check_identity(next, &index)?;
                named = Some(index.oid);
                ReplicaIdentity::Index
            }
        };
        mark(next, named, |marks, yes| marks.identity = yes);
        Ok(())
    }

    /// What ALTER TABLE says of a table that the parser does not know.
    ///
    /// # Errors
    /// `42704`, `42809`, `0A000`.
    pub(super) fn alter_form(
        &mut self,
        relation: &Arc<Relation>,
        mut next: Table,
        form: Form,
        name: Option<&ast::Ident>,
    ) -> Result<Arc<Relation>> {
        match (form, name) {
            (Form::ClusterOn, Some(name)) => {
                let index = self.own_index(relation, name)?;
                check_clusters(&index)?;
                mark(&mut next, Some(index.oid), |marks, yes| {
                    marks.clustered = yes;
                });
            }
            (Form::WithoutCluster, _) => {
                mark(&mut next, None, |marks, yes| marks.clustered = yes);
            }
            (Form::Tablespace, Some(name)) => {
                check_tablespace(&folded(name))?;
                return Ok(relation.clone());
            }
            (Form::AccessMethod, Some(name)) => {
                check_table_method(&folded(name))?;
                return Ok(relation.clone());
            }
            _ => return Ok(relation.clone()),
        }
        self.put_table(relation, next)
    }

    /// CLUSTER, which marks the index that it names. The rows stay where they are: in the order of the primary key.
    ///
    /// # Errors
    /// `42P01`, `42501`; `42704` for a table that was never clustered; `42809`, `0A000`.
    pub(super) fn cluster_table(
        &mut self,
        table: Option<&ast::ObjectName>,
        index: Option<&ast::Ident>,
    ) -> Result<CommandTag> {
        let tag = CommandTag::plain("CLUSTER");
        let Some(table) = table else {
            return Ok(tag);
        };
        let relation = self.table_alone(table, |ddl, relation| match relation.kind {
            Kind::Table(_) | Kind::System(_) => ddl.check_owner(relation),
            _ => Err(not_clustered(relation)),
        })?;
        let definition = relation.table().ok_or_else(|| not_clustered(&relation))?;
        let Some(index) = index else {
            let mut indexes = definition.indexes.iter();
            if indexes.any(|index| index.marks.clustered) {
                return Ok(tag);
            }
            let message = format!(
                "there is no previously clustered index for table \"{}\"",
                relation.name
            );
            return Err(SqlError::new(sqlstate::UNDEFINED_OBJECT, message));
        };
        let next = definition.clone();
        self.alter_form(&relation, next, Form::ClusterOn, Some(index))?;
        Ok(tag)
    }

    /// SET and RESET of an index, and SET TABLESPACE.
    ///
    /// # Errors
    /// `42704`; `22023`; `42501`; `0A000` for other operations.
    pub(super) fn alter_index(
        &mut self,
        (table, index): (Oid, Oid),
        operation: &ast::AlterTableOperation,
    ) -> Result<()> {
        use super::parameters::{Of, Said, changed};
        let found = self.open.catalog.1.relation(table).cloned();
        let relation = found.ok_or_else(|| SqlError::internal("an index without table"))?;
        let may = |ddl: &Self, relation: &Relation| ddl.check_owner_of_index(relation, index);
        let relation = self.alone_if(&relation, may)?;
        let one = std::slice::from_ref(operation);
        if let Some((_, clauses)) = crate::parse::Clause::of_altered(one) {
            return match &clauses[..] {
                [crate::parse::Clause::Form(Form::Tablespace, Some(name))] => {
                    check_tablespace(&folded(name))
                }
                _ => Err(SqlError::unsupported("this form of ALTER INDEX")),
            };
        }
        let ast::AlterTableOperation::SetOptionsParens { options } = operation else {
            return Err(SqlError::unsupported("this form of ALTER INDEX"));
        };
        let said = Said::of_table(options)?;
        let definition = relation.table();
        let mut next = definition
            .ok_or_else(|| SqlError::internal("no table"))?
            .clone();
        for own in next.indexes.iter_mut().filter(|own| own.oid == index) {
            let options = changed(&own.options, said.clone(), Of::Index(own.method))?;
            *own = Arc::new(Index {
                options,
                ..Index::clone(own)
            });
        }
        self.put_table(&relation, next).map(drop)
    }

    fn check_owner_of_index(&self, relation: &Relation, index: Oid) -> Result<()> {
        if self.open.rights().1.owns(self.role, relation.owner) {
            return Ok(());
        }
        let mut indexes = relation
            .table()
            .map_or(&[][..], |table| &table.indexes)
            .iter();
        let found = indexes.find(|own| own.oid == index);
        let name = found.map_or("", |index| &index.name);
        Err(denied(format!("must be owner of index {name}")))
    }
}

/// `42809`.
#[cold]
fn not_clustered(relation: &Relation) -> SqlError {
    let message = format!("\"{}\" is not a table or materialized view", relation.name);
    SqlError::new(sqlstate::WRONG_OBJECT_TYPE, message)
}

/// Marks one index of a table, and no other.
fn mark(table: &mut Table, named: Option<Oid>, set: impl Fn(&mut Marks, bool)) {
    for index in &mut table.indexes {
        let mut marks = index.marks;
        set(&mut marks, named == Some(index.oid));
        if marks != index.marks {
            *index = Arc::new(Index {
                marks,
                ..Index::clone(index)
            });
        }
    }
}

/// # Errors
/// `42809`, `0A000` for an index that does not tell all rows apart.
fn check_identity(table: &Table, index: &Index) -> Result<()> {
    let name = &index.name;
    let unfit = |kind: &str| {
        let message = format!("cannot use {kind} index \"{name}\" as replica identity");
        SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, message)
    };
    let wrong = |message| Err(SqlError::new(sqlstate::WRONG_OBJECT_TYPE, message));
    if !index.unique {
        return wrong(format!(
            "cannot use non-unique index \"{name}\" as replica identity"
        ));
    }
    if index.timing != Timing::Fixed {
        return Err(unfit("non-immediate"));
    }
    if index.expressions().next().is_some() {
        return Err(unfit("expression"));
    }
    if index.predicate.is_some() {
        return Err(unfit("partial"));
    }
    for column in index.key_columns() {
        let column = table.schema.column(table.position(column));
        if column.nullable {
            return wrong(format!(
                "index \"{name}\" cannot be used as replica identity because column \"{}\" is nullable",
                column.name
            ));
        }
    }
    Ok(())
}

/// # Errors
/// `0A000` for an index that has no order, or not of all rows.
fn check_clusters(index: &Index) -> Result<()> {
    let name = &index.name;
    let message = if index.predicate.is_some() {
        format!("cannot cluster on partial index \"{name}\"")
    } else if !matches!(index.method, Method::BTree | Method::Gist) {
        format!(
            "cannot cluster on index \"{name}\" because access method does not support clustering"
        )
    } else {
        return Ok(());
    };
    Err(SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, message))
}

/// The access method of a table: there is one.
///
/// # Errors
/// `42704`, `55000`.
pub(crate) fn check_table_method(name: &str) -> Result<()> {
    let (state, message) = if name == "heap" {
        return Ok(());
    } else if Method::named(name).is_some() {
        (
            sqlstate::OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!("access method \"{name}\" is not of type TABLE"),
        )
    } else {
        (
            sqlstate::UNDEFINED_OBJECT,
            format!("access method \"{name}\" does not exist"),
        )
    };
    Err(SqlError::new(state, message))
}

/// `42809` for what is said of a relation that is no table.
pub(super) fn check_form_of_table(relation: &Relation, form: Form) -> Result<()> {
    if relation.table().is_some() {
        return Ok(());
    }
    let message = format!(
        "ALTER action {} cannot be performed on relation \"{}\"",
        form.words(),
        relation.name
    );
    Err(not_for(message, &relation.kind))
}
