//! Which columns have another collation than their type's.

use super::Scan;
use crate::catalog::{Kind, Oid};
use vellum_base::maps::HashMap;

/// What some columns of a relation have, by their numbers.
pub(super) type ByColumn = Vec<(i16, Oid)>;

/// What a column has.
pub(super) fn of_column(all: &[(i16, Oid)], number: i16) -> Option<Oid> {
    let found = all.iter().find(|(own, _)| *own == number);
    found.map(|(_, oid)| *oid)
}

impl Scan<'_> {
    /// The collations of columns that have another than their type's, by relation.
    pub(super) fn collations(&self) -> HashMap<Oid, ByColumn> {
        let mut all = HashMap::default();
        let mut in_views = false;
        for relation in self.user_relations() {
            match &relation.kind {
                Kind::Table(table) if !table.collations.is_empty() => {
                    let own = table.collations.iter();
                    let own = own.map(|(column, collation)| (column.0 as i16, *collation));
                    all.insert(relation.oid, own.collect());
                }
                Kind::View(view) => {
                    in_views |= view.query.to_ascii_lowercase().contains("collate");
                }
                _ => {}
            }
        }
        in_views |= self
            .catalog
            .user_types()
            .into_iter()
            .any(|own| matches!(&own.kind, Kind::Domain(domain) if domain.collation.is_some()));
        // To bind the query of a view costs something.
        if all.is_empty() && !in_views {
            return all;
        }
        for relation in self.user_relations() {
            if let Kind::View(view) = &relation.kind {
                let columns = (1..).zip(self.env.view_marks(view));
                let own = columns.filter_map(|(number, (_, collation))| Some((number, collation?)));
                all.insert(relation.oid, own.collect());
            }
        }
        all
    }
}
