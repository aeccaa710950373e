//! Finding the version of a fat row that a snapshot sees.
//!
//! Everything stands in the row, a private copy, but for full copies: of those one lookup finds the nearest one at
//! or above the version that is wanted.

use crate::delta;
use crate::error::{Result, damaged};
use crate::fat::layout::{FatRow, OldVersions, Step};
use crate::read::{Resolved, View, Visible};
use crate::store::VersionStore;
use smallvec::SmallVec;
use vellum_base::PageId;
use vellum_btree::Tree;
use vellum_txn::VersionStamp;

/// Where the version that is wanted starts from, and the ranges to write over that. Large: it is filled, not handed on.
#[derive(Default)]
struct Way<'r> {
    copy: Option<VersionStamp>,
    images: SmallVec<[&'r [u8]; 16]>,
}

/// Finds what a view sees among old versions: the way there, and whether it is a chain's reference; `Some(None)`: no row.
#[inline]
fn find<'r>(view: &View<'_>, versions: OldVersions<'r>, way: &mut Way<'r>) -> Option<Option<bool>> {
    for version in versions {
        let version = version.ok()?;
        view.transaction.touch(0, 1);
        match version.step {
            Step::Same => {}
            Step::Ranges(image) => way.images.push(image),
            Step::Copy(name) => {
                way.copy = Some(name);
                way.images.clear();
            }
        }
        match version.header.writer {
            Some(writer) if !view.sees(&writer.version) => {
                if writer.first {
                    return Some(None);
                }
            }
            _ if version.header.shape.tombstone => return Some(None),
            _ => return Some(Some(version.header.shape.overflow)),
        }
    }
    // F1: the oldest version is the first, or everyone sees it.
    None
}

/// Makes the body of the version that a view sees, of a fat row whose newest version it does not see. `copy` fetches a full
/// copy; [`Resolved::Changed`] if there is none. `None` if the row is damaged.
#[inline]
fn make_visible(
    view: &View<'_>,
    row: &[u8],
    body: &mut Vec<u8>,
    copy: impl FnOnce(&VersionStamp, &mut Vec<u8>) -> Result<bool>,
) -> Result<Option<Resolved>> {
    let Some(row) = FatRow::decode(row) else {
        return Ok(None);
    };
    let mut way = Way::default();
    let overflow = match find(view, row.old_versions(), &mut way) {
        None => return Ok(None),
        Some(None) => return Ok(Some(Resolved::Absent)),
        Some(Some(overflow)) => overflow,
    };
    match way.copy {
        None => {
            body.clear();
            body.extend_from_slice(row.body);
        }
        Some(name) => {
            if !copy(&name, body)? {
                return Ok(Some(Resolved::Changed));
            }
        }
    }
    for image in &way.images {
        if delta::apply_image(image, body).is_none() {
            return Ok(None);
        }
    }
    Ok(Some(Resolved::Visible(Visible {
        overflow,
        start: 0,
        end: body.len(),
    })))
}

/// What a view sees of a fat row, whose newest version it does not see, if the row alone tells: the body is put into `body`.
/// `None` where it takes a look elsewhere, or the bytes are no fat row: [`VersionStore::resolve`] decides.
///
/// It says for several versions that the view does not see them: its snapshot must be a published one (R4).
pub(crate) fn at_hand(view: &View<'_>, row: &[u8], body: &mut Vec<u8>) -> Option<Resolved> {
    match make_visible(view, row, body, |_, _| Ok(false)) {
        Ok(Some(Resolved::Changed)) | Err(_) => None,
        Ok(found) => found,
    }
}

impl VersionStore {
    /// As [`VersionStore::resolve`], for a fat row whose newest version the view does not see.
    pub(crate) fn resolve_fat(
        &self,
        view: &View<'_>,
        tree: &Tree,
        row: &mut Vec<u8>,
        body: &mut Vec<u8>,
    ) -> Result<Resolved> {
        let found = make_visible(view, row, body, |name, body| {
            vellum_sync::test_point!("read: between row and full copy");
            self.full_copy(name, tree.root(), body)
        })?;
        let resolved = found.ok_or_else(|| damaged("fat row", tree.root()))?;
        if matches!(resolved, Resolved::Visible(_)) {
            std::mem::swap(row, body);
        }
        Ok(resolved)
    }

    /// Puts the body of a full copy into `body`; false if it is not there (any more).
    pub(crate) fn full_copy(
        &self,
        name: &VersionStamp,
        tree: PageId,
        body: &mut Vec<u8>,
    ) -> Result<bool> {
        let found = match self.deltas(name.slot) {
            Some(deltas) => deltas.get(&delta::key(name.stamp, name.command), body)?,
            None => false,
        };
        if found {
            let copy = delta::full_body(body).ok_or_else(|| damaged("full copy", tree))?;
            body.truncate(copy.end);
            body.drain(..copy.start);
        }
        Ok(found)
    }

    /// The same of a delta that may be none; false then, too.
    pub(crate) fn copy_if_full(&self, name: &VersionStamp, body: &mut Vec<u8>) -> Result<bool> {
        let Some(deltas) = self.deltas(name.slot) else {
            return Ok(false);
        };
        if !deltas.get(&delta::key(name.stamp, name.command), body)? {
            return Ok(false);
        }
        let Some(copy) = delta::full_body(body) else {
            return Ok(false);
        };
        body.truncate(copy.end);
        body.drain(..copy.start);
        Ok(true)
    }
}
