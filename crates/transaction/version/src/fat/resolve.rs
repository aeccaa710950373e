//! Finding the version of a fat row that a snapshot sees.
//!
//! Everything stands in the row, a private copy, but for full copies: of those one lookup finds the nearest one at
//! or above the version that is wanted.

use crate::delta;
use crate::error::{Result, damaged};
use crate::fat::layout::{BODY_AT, FatRow, OldVersions, Step};
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

impl VersionStore {
    /// As [`VersionStore::resolve`], for a fat row whose newest version the view does not see.
    pub(crate) fn resolve_fat(
        &self,
        view: &View<'_>,
        tree: &Tree,
        row: &mut Vec<u8>,
        delta: &mut Vec<u8>,
    ) -> Result<Resolved> {
        let broken = || damaged("fat row", tree.root());
        let length = FatRow::decode(row).ok_or_else(broken)?.body.len();
        let end = BODY_AT + length;
        let Some((overflow, is_copy)) = self.make_visible(view, tree, row, end, delta)? else {
            return Ok(Resolved::Changed);
        };
        let Some(overflow) = overflow else {
            return Ok(Resolved::Absent);
        };
        let (start, end) = if is_copy {
            std::mem::swap(row, delta);
            (0, row.len())
        } else {
            row.truncate(end);
            (BODY_AT, end)
        };
        Ok(Resolved::Visible(Visible {
            overflow,
            start,
            end,
        }))
    }

    /// Makes the visible version's body: in place of the newest one, which ends at `end`, or in `delta`, if it is made of
    /// a full copy (true). Whether it is a chain's, `None` where there is none; `None` for all if the copy is gone.
    fn make_visible(
        &self,
        view: &View<'_>,
        tree: &Tree,
        row: &mut [u8],
        end: usize,
        delta: &mut Vec<u8>,
    ) -> Result<Option<(Option<bool>, bool)>> {
        let broken = || damaged("fat row", tree.root());
        let (front, rest) = row.split_at_mut(end);
        let used = FatRow::decode_versions(front).ok_or_else(broken)?;
        let versions = rest.get(..used).ok_or_else(broken)?;
        let mut way = Way::default();
        let found = find(view, OldVersions::new(versions), &mut way).ok_or_else(broken)?;
        let Some(overflow) = found else {
            return Ok(Some((None, false)));
        };
        let body = match way.copy {
            None => &mut front[BODY_AT..],
            Some(name) => {
                vellum_sync::test_point!("read: between row and full copy");
                if !self.full_copy(&name, tree.root(), delta)? {
                    return Ok(None);
                }
                delta.as_mut_slice()
            }
        };
        for image in &way.images {
            delta::apply_image(image, body).ok_or_else(broken)?;
        }
        Ok(Some((Some(overflow), way.copy.is_some())))
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
}
