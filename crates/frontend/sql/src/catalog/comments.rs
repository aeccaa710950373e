//! What COMMENT says of objects: of a relation, a column of it, an index, a constraint, a schema, a role.
//!
//! A comment goes with its object: that of a column by the relation's oid and the column's number. Schemas that a database comes with have one from the
//! beginning, which is in no row; where it was taken away the row has an empty text, which no other comment is.

use super::{Catalog, Oid, PG_CATALOG, PUBLIC, Relation};
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

/// What is said of schemas from the beginning.
static FIRST: LazyLock<[(Oid, Arc<str>); 2]> = LazyLock::new(|| {
    [
        (PG_CATALOG, "system catalog schema".into()),
        (PUBLIC, "standard public schema".into()),
    ]
});

/// Text by oid and number of the column, 0 for the object itself.
pub(super) type Comments = BTreeMap<(Oid, u16), Arc<str>>;

/// A comment to be, or none.
#[derive(Clone, Debug)]
pub(crate) struct Comment {
    pub object: Oid,
    pub column: u16,
    pub text: Option<Arc<str>>,
}

impl Comment {
    /// What says `text` of an object, or nothing where that is empty.
    pub fn of((object, column): (Oid, u16), text: Option<&str>) -> Self {
        let text = text.filter(|text| !text.is_empty());
        let had = column == 0 && FIRST.iter().any(|(first, _)| *first == object);
        let none = had.then_some("");
        Self {
            object,
            column,
            text: text.or(none).map(Into::into),
        }
    }
}

impl Catalog {
    /// What is said of an object, or of a column of it.
    pub fn comment(&self, object: Oid, column: u16) -> Option<&Arc<str>> {
        let said = self.comments.get(&(object, column));
        let first = || {
            let found = FIRST.iter().find(|(first, _)| *first == object);
            found.filter(|_| column == 0 && self.namespace_by_oid(object).is_some())
        };
        let said = said.or_else(|| first().map(|(_, text)| text));
        said.filter(|text| !text.is_empty())
    }

    /// All comments: oid, column, text.
    pub fn comments(&self) -> impl Iterator<Item = (Oid, u16, &Arc<str>)> {
        let first = FIRST.iter().map(|(object, _)| (*object, 0));
        let first = first.filter(move |key| !self.comments.contains_key(key));
        let all = first.chain(self.comments.keys().copied());
        all.filter_map(move |(object, column)| {
            Some((object, column, self.comment(object, column)?))
        })
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
