//! What is forgotten behind the end of a transaction, or behind what it takes back: values of sequences and statistics of tables, which are not among its own rows, and
//! gates of what is gone.
//!
//! Concurrency: the images that are looked at hold whatever anybody may still use. Of what others have changed since its own image was drawn only the published
//! one knows, so that is looked at, whatever a transaction works with.

use crate::catalog::{self, Catalog, Change, Gated, Kind, Oid};
use crate::database::Shared;
use crate::statistics;

/// Behind a commit: `before` is the published image that it has changed.
pub(super) fn behind_commit(shared: &Shared, changes: &[Change], before: &Catalog) {
    let now = shared.catalog.now();
    forget_values(shared, changes, before, &[&now]);
    forget_gates(shared, changes, &[&now]);
    // What fails here is done when the database is opened.
    let _ = statistics::remove(&shared.engine, &with_statistics(changes, before));
}

/// The tables that changes drop, and that statistics are kept of.
fn with_statistics(changes: &[Change], before: &Catalog) -> Vec<Oid> {
    let dropped = changes.iter().filter_map(|change| match change {
        Change::DropRelation(oid) => before.relation(*oid),
        _ => None,
    });
    let kept = dropped.filter(|relation| {
        !before.is_temporary(relation.namespace) && relation.runtime.statistics.get().is_some()
    });
    kept.map(|relation| relation.oid).collect()
}

/// Behind a rollback of changes, all of them or those behind a point: `own` is the image that the transaction goes on with, if it does.
pub(super) fn behind_rollback(shared: &Shared, changes: &[Change], own: Option<&Catalog>) {
    if changes.is_empty() {
        return;
    }
    let now = shared.catalog.now();
    let kept: Vec<&Catalog> = own.into_iter().chain([&*now]).collect();
    forget_values(shared, changes, own.unwrap_or(&now), &kept);
    forget_gates(shared, changes, &kept);
}

/// Forgets the gates of what changes have made or dropped, and no image that is kept has.
fn forget_gates(shared: &Shared, changes: &[Change], kept: &[&Catalog]) {
    for change in changes {
        let (what, oid) = match change {
            Change::PutNamespace(namespace) => (Gated::Schema, namespace.oid),
            Change::DropNamespace(oid) => (Gated::Schema, *oid),
            Change::PutExtension(own) | Change::DropExtension(own) => (Gated::Extension, own.oid),
            Change::PutRole(role) | Change::DropRole(role) => (Gated::Role, role.oid),
            _ => continue,
        };
        if !kept.iter().any(|image| what.called(image, oid).is_some()) {
            shared.gates.forget(oid);
        }
    }
}

/// Removes the values of sequences that are in changes or the image before, and in none that is kept.
fn forget_values(shared: &Shared, changes: &[Change], before: &Catalog, kept: &[&Catalog]) {
    for change in changes {
        let (made, oid) = match change {
            Change::PutRelation(relation) => (Some(relation), relation.oid),
            Change::DropRelation(oid) => (None, *oid),
            _ => continue,
        };
        let is_kept = |values: Oid| {
            let mut now = kept.iter().filter_map(|image| image.relation(oid));
            now.any(|relation| match &relation.kind {
                Kind::Sequence(sequence) => sequence.values == values,
                _ => false,
            })
        };
        for relation in made.into_iter().chain(before.relation(oid)) {
            if let Kind::Sequence(definition) = &relation.kind
                && !is_kept(definition.values)
            {
                // What fails here is done when the database is opened.
                let _ = catalog::remove(&shared.engine, &relation.runtime, definition);
            }
        }
    }
}
