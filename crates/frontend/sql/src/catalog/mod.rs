//! The relation catalog: schemas and relations, as rows of engine tables and as an immutable image in memory.
//!
//! Every transaction works with one image ([`Catalog`]), which belongs to its snapshot: what it names is visible there.
//! DDL makes a new image from it, for this transaction alone, and writes the rows; the commit publishes what was
//! changed to everybody else (`publish`).
//!
//! Invariants:
//! - C1 An image never changes. Its version is never given to another image while the database is open, so a
//!   statement that was compiled for it is good as long as the version is the same.
//! - C2 A published image and the engine's committed catalog rows change together, under one lock that begins of
//!   transactions look at (`publish`): a snapshot and the image taken with it agree.
//! - C3 Oids are never used twice (`oids`).
//!
//! Not here: who may change what when (`gate`), the statements (`ddl`), pg_catalog.

mod codec;
mod gate;
mod oids;
mod publish;
mod relation;
mod runtime;
mod store;

pub(crate) use gate::{Gate, Mode};
pub(crate) use oids::{Oids, next_value, set_value};
pub(crate) use publish::Published;
pub(crate) use relation::{
    Action, Check, Default, ForeignKey, Identity, Index, IndexColumn, Kind, Oid, Relation,
    SequenceDefinition, Storage, Table, View,
};
pub(crate) use runtime::{Runtime, Runtimes};
pub(crate) use store::Store;

use std::collections::HashMap;
use std::sync::Arc;

/// Oid of `pg_catalog`.
pub(crate) const PG_CATALOG: Oid = 11;
/// Oid of `public`.
pub(crate) const PUBLIC: Oid = 2200;
/// Oid of `information_schema`.
pub(crate) const INFORMATION_SCHEMA: Oid = 13000;
/// The first oid of what users make.
pub(crate) const FIRST_USER_OID: Oid = 16384;

/// A schema.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Namespace {
    pub oid: Oid,
    pub name: Box<str>,
    pub owner: Box<str>,
}

/// An image of the catalog.
#[derive(Clone, Debug, Default)]
pub(crate) struct Catalog {
    /// C1.
    pub version: u64,
    namespaces: HashMap<Oid, Arc<Namespace>>,
    relations: HashMap<Oid, Arc<Relation>>,
    /// Relations and indexes by schema and name; of an index the oid is its table's.
    names: HashMap<(Oid, Box<str>), Named>,
}

/// What a name stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Named {
    /// A table, view or sequence.
    Relation(Oid),
    /// An index of a table.
    Index { table: Oid, index: Oid },
}

/// A change of the catalog.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    PutNamespace(Arc<Namespace>),
    DropNamespace(Oid),
    /// Adds or replaces.
    PutRelation(Arc<Relation>),
    DropRelation(Oid),
}

impl Catalog {
    /// The image with one more change.
    pub fn with(&self, change: &Change, version: u64) -> Self {
        let mut next = self.clone();
        next.version = version;
        next.apply(change);
        next
    }

    /// Applies a change in place.
    pub fn apply(&mut self, change: &Change) {
        match change {
            Change::PutNamespace(namespace) => {
                self.namespaces.insert(namespace.oid, namespace.clone());
            }
            Change::DropNamespace(oid) => {
                self.namespaces.remove(oid);
            }
            Change::PutRelation(relation) => {
                self.forget(relation.oid);
                self.remember(relation);
            }
            Change::DropRelation(oid) => self.forget(*oid),
        }
    }

    fn forget(&mut self, oid: Oid) {
        let Some(old) = self.relations.remove(&oid) else {
            return;
        };
        self.names.remove(&(old.namespace, old.name.clone()));
        if let Kind::Table(table) = &old.kind {
            for index in &table.indexes {
                self.names.remove(&(old.namespace, index.name.clone()));
            }
        }
    }

    fn remember(&mut self, relation: &Arc<Relation>) {
        let oid = relation.oid;
        let key = (relation.namespace, relation.name.clone());
        self.names.insert(key, Named::Relation(oid));
        if let Kind::Table(table) = &relation.kind {
            for index in &table.indexes {
                let key = (relation.namespace, index.name.clone());
                let named = Named::Index {
                    table: oid,
                    index: index.oid,
                };
                self.names.insert(key, named);
            }
        }
        self.relations.insert(oid, relation.clone());
    }

    /// The schema of this name.
    pub fn namespace(&self, name: &str) -> Option<&Arc<Namespace>> {
        self.namespaces
            .values()
            .find(|namespace| &*namespace.name == name)
    }

    /// The name of a schema, for messages.
    pub fn namespace_name(&self, oid: Oid) -> &str {
        self.namespaces
            .get(&oid)
            .map_or("", |namespace| &namespace.name)
    }

    /// What a name stands for in a schema.
    pub fn named(&self, namespace: Oid, name: &str) -> Option<Named> {
        // The key owns its name: a look-up happens when a statement is compiled, not when it runs.
        self.names.get(&(namespace, name.into())).copied()
    }

    /// The relation with this oid.
    pub fn relation(&self, oid: Oid) -> Option<&Arc<Relation>> {
        self.relations.get(&oid)
    }

    /// Foreign keys whose target is this table, each with the relation that has it.
    pub fn referring(&self, target: Oid) -> Vec<(Arc<Relation>, ForeignKey)> {
        let mut found = Vec::new();
        for relation in self.relations() {
            let keys = relation
                .table()
                .map_or(&[][..], |table| &table.foreign_keys);
            let keys = keys.iter().filter(|key| key.target == target);
            found.extend(keys.map(|key| (relation.clone(), key.clone())));
        }
        found
    }

    /// All relations, by oid.
    pub fn relations(&self) -> Vec<&Arc<Relation>> {
        let mut all: Vec<_> = self.relations.values().collect();
        all.sort_by_key(|relation| relation.oid);
        all
    }
}
