//! Making a fat row plain without looking anywhere else: for the cleaner of a full leaf.

use crate::fat::layout::{FatRow, Step};
use crate::fat::prune::prune;
use crate::row::Header;
use vellum_gc::Horizon;
use vellum_txn::Domain;

/// Appends the row without its old versions to `plain`, if all of them lie in the published dead zone.
///
/// Slack stays, and so do rows of which somebody sees a version: a hot row would take the room again with its next update,
/// and the leaf would be cleaned for every few updates of each of its rows. So do rows with full copies: those would
/// have to go with them, and who cleans a leaf holds no latch that keeps the row as it is.
pub(crate) fn trim(domain: &Domain, row: &[u8], plain: &mut Vec<u8>) -> Option<()> {
    let fat = FatRow::decode(row)?;
    let newest = fat.header.writer?.version;
    let horizon = Horizon::published(domain);
    // From the newest to the oldest, up to the first that stays.
    let mut newer = newest;
    for version in fat.old_versions() {
        let version = version.ok()?;
        let name = version.header.writer?.version;
        if matches!(version.step, Step::Copy(_)) || !horizon.is_in_dead_zone(&name, &newer) {
            return None;
        }
        newer = name;
    }
    let old = crate::fat::decompose::old_versions(&fat)?;
    let pruned = prune(newest, &old, |_, _| true)?;
    debug_assert!(pruned.kept.is_empty() && pruned.gone.is_empty());
    let mut header = Header {
        fat: false,
        ..fat.header
    };
    if let Some(writer) = &mut header.writer {
        writer.first |= pruned.newest_is_first;
    }
    plain.extend_from_slice(&header.encode());
    plain.extend_from_slice(fat.body);
    Some(())
}
