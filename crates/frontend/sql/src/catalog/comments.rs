//! What COMMENT says of objects: of a relation, a column of it, an index, a constraint, a schema, a role.
//!
//! A comment goes with its object: that of a column by the relation's oid and the column's number.

use super::{Catalog, Oid, Relation};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Text by oid and number of the column, 0 for the object itself.
pub(super) type Comments = BTreeMap<(Oid, u16), Arc<str>>;

/// A comment to be, or none.
#[derive(Clone, Debug)]
pub(crate) struct Comment {
    pub object: Oid,
    pub column: u16,
    pub text: Option<Arc<str>>,
}

impl Catalog {
    /// What is said of an object, or of a column of it.
    pub fn comment(&self, object: Oid, column: u16) -> Option<&Arc<str>> {
        self.comments.get(&(object, column))
    }

    /// All comments: oid, column, text.
    pub fn comments(&self) -> impl Iterator<Item = (Oid, u16, &Arc<str>)> {
        let all = self.comments.iter();
        all.map(|((object, column), text)| (*object, *column, text))
    }

    /// Comments that go when an object of the catalog is replaced by `next`, or by nothing.
    pub(super) fn comments_lost(
        &self,
        before: &Relation,
        next: Option<&Relation>,
    ) -> Vec<(Oid, u16)> {
        if self.comments.is_empty() {
            return Vec::new();
        }
        let left = next.map(objects).unwrap_or_default();
        let mut lost = Vec::new();
        for object in objects(before) {
            let of_object = self.comments.range((object, 0)..=(object, u16::MAX));
            let gone = of_object.map(|(key, _)| *key).filter(|(_, column)| {
                let own = next.filter(|_| object == before.oid && *column > 0);
                match own.and_then(|next| next.table()) {
                    Some(table) => !table.schema.columns().any(|left| left.id.0 == *column),
                    None => !left.contains(&object),
                }
            });
            lost.extend(gone);
        }
        lost
    }
}

/// The oids that a relation takes with it.
fn objects(relation: &Relation) -> Vec<Oid> {
    let mut all = vec![relation.oid];
    if let Some(table) = relation.table() {
        for index in &table.indexes {
            all.push(index.oid);
            all.extend(index.constraint);
        }
        all.extend(table.checks.iter().map(|check| check.oid));
        all.extend(table.foreign_keys.iter().map(|key| key.oid));
    }
    all
}
