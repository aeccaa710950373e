//! Whether what tables refer to is there: the columns that their indexes and foreign keys name, and the unique indexes that the latter stand on.
//!
//! Invariants:
//! - C4 In every image they are there: whoever works with them relies on it. A change that would take them away fails with its statement, whichever path of a
//!   definition has forgotten to look.

use super::{Catalog, Change, ForeignKey, Kind, Relation, Table};
use std::sync::Arc;
use vellum_row::ColumnId;

fn has(table: &Table, column: ColumnId) -> bool {
    table.schema.position_of(column).is_some()
}

/// Whether the columns are there that the indexes of a table name.
pub(super) fn has_indexed_columns(table: &Table) -> bool {
    let mut indexes = table.indexes.iter();
    indexes.all(|index| index.columns_named().all(|column| has(table, column)))
}

impl Catalog {
    /// Whether a foreign key of a table has its columns, and its target what it refers to.
    fn is_whole(&self, table: &Table, key: &ForeignKey) -> bool {
        let target = self.relation(key.target).and_then(|target| target.table());
        key.columns.len() == key.target_columns.len()
            && key.columns.iter().all(|column| has(table, *column))
            && target.is_some_and(|target| {
                let mut columns = key.target_columns.iter();
                columns.all(|column| has(target, *column))
                    && target.unique_index(&key.target_columns).is_some()
            })
    }

    /// Whether a relation of this image, and whatever refers to it, has what it refers to (C4).
    pub fn is_whole_around(&self, relation: &Relation) -> bool {
        let Some(table) = relation.table() else {
            return true;
        };
        let own = has_indexed_columns(table)
            && table
                .foreign_keys
                .iter()
                .all(|key| self.is_whole(table, key));
        let mut others = self.relations.values().filter_map(|other| other.table());
        own && others.all(|other| {
            let mut keys = other.foreign_keys.iter();
            keys.all(|key| key.target != relation.oid || self.is_whole(other, key))
        })
    }

    /// Leaves out the foreign keys that refer to what is not there; their names, with those of their tables. Only an earlier build can have written such: nothing else of the
    /// database is worse for it.
    pub(super) fn leave_out_keys(&mut self) -> Vec<String> {
        let mut told = Vec::new();
        let mut kept = Vec::new();
        for relation in self.relations() {
            let Some(table) = relation.table() else {
                continue;
            };
            let broken = |key: &&ForeignKey| !self.is_whole(table, key);
            let names = table.foreign_keys.iter().filter(broken);
            let before = told.len();
            told.extend(names.map(|key| {
                let schema = self.namespace_name(relation.namespace);
                format!("{} of {schema}.{}", key.name, relation.name)
            }));
            if told.len() > before {
                let mut next = table.clone();
                next.foreign_keys.retain(|key| self.is_whole(table, key));
                kept.push(Relation {
                    kind: Kind::Table(Box::new(next)),
                    ..Relation::clone(relation)
                });
            }
        }
        for relation in kept {
            self.apply(&Change::PutRelation(Arc::new(relation)));
        }
        told
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::super::codec::tests::{index, table_with};
    use super::super::{Action, IndexColumn, SwitchedOff, Timing};
    use super::*;

    #[test]
    fn a_foreign_key_without_the_index_of_its_target_is_noticed_from_either_side_and_left_out() {
        let mut target = table_with(vec![index(vec![IndexColumn::ascending(ColumnId(2))])]);
        let mut child = Relation {
            oid: 8,
            name: "u".into(),
            ..table_with(Vec::new())
        };
        let key = ForeignKey {
            oid: 10,
            name: "k".into(),
            columns: vec![ColumnId(2)],
            target: target.oid,
            target_columns: vec![ColumnId(2)],
            on_delete: Action::NoAction,
            on_update: Action::NoAction,
            timing: Timing::Fixed,
            full: false,
            off: SwitchedOff::default(),
        };
        if let Kind::Table(table) = &mut child.kind {
            table.foreign_keys.push(key);
        }
        let mut catalog = Catalog::default();
        catalog.apply(&Change::PutRelation(Arc::new(target.clone())));
        catalog.apply(&Change::PutRelation(Arc::new(child.clone())));
        assert!(catalog.is_whole_around(&target) && catalog.is_whole_around(&child));
        assert_eq!(catalog.clone().leave_out_keys(), [""; 0]);
        if let Kind::Table(table) = &mut target.kind {
            table.indexes.clear();
        }
        catalog.apply(&Change::PutRelation(Arc::new(target.clone())));
        assert!(!catalog.is_whole_around(&target) && !catalog.is_whole_around(&child));
        assert_eq!(catalog.leave_out_keys(), ["k of .u"]);
        let kept = catalog.relation(child.oid).unwrap();
        assert!(catalog.is_whole_around(&target) && catalog.is_whole_around(kept));
    }
}
