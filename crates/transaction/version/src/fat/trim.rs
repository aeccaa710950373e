//! Making a fat row as short as can be without looking anywhere else: for the cleaner of a full leaf.

use crate::fat::layout::{BODY_AT, FatRow, Step, encode_lengths};
use crate::fat::prune::{encode_versions, prune};
use crate::row::Header;
use vellum_gc::Horizon;
use vellum_txn::Domain;

/// The row without slack and without the versions that lie in the published dead zone; `None` if that saves nothing.
///
/// Versions with full copies stay: the copies would have to go with them, and who cleans a leaf holds no latch that
/// keeps the row as it is.
pub(crate) fn trim(domain: &Domain, row: &[u8]) -> Option<Vec<u8>> {
    let fat = FatRow::decode(row)?;
    let newest = fat.header.writer?.version;
    let old = crate::fat::decompose::old_versions(&fat)?;
    let horizon = Horizon::published(domain);
    let copies: Vec<_> = old
        .iter()
        .filter(|version| matches!(version.step, Step::Copy(_)))
        .filter_map(|version| version.header.writer.map(|writer| writer.version))
        .collect();
    let pruned = prune(newest, &old, |version, newer| {
        version.is_some_and(|version| {
            !copies.contains(version) && horizon.is_in_dead_zone(version, newer)
        })
    });
    debug_assert!(pruned.rewrites.is_empty() && pruned.gone.is_empty());
    let mut header = fat.header;
    if let Some(writer) = &mut header.writer {
        writer.first |= pruned.newest_is_first;
    }
    let mut versions = Vec::new();
    encode_versions(&pruned.kept, &mut versions);
    let mut trimmed = Vec::with_capacity(BODY_AT + fat.body.len() + versions.len());
    if versions.is_empty() {
        header = Header {
            fat: false,
            ..header
        };
        trimmed.extend_from_slice(&header.encode());
        trimmed.extend_from_slice(fat.body);
    } else {
        trimmed.extend_from_slice(&header.encode());
        trimmed.extend_from_slice(&encode_lengths(fat.body.len(), versions.len()));
        trimmed.extend_from_slice(fat.body);
        trimmed.extend_from_slice(&versions);
    }
    (trimmed.len() < row.len()).then_some(trimmed)
}
