//! Finding the version of a fat row that a snapshot sees.
//!
//! Everything stands in the row, a private copy, but for full copies: of those one lookup finds the nearest one at
//! or above the version that is wanted, if no whole body stands between the two.

use crate::delta::{self, DeltaName};
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
    start: Start<'r>,
    images: SmallVec<[&'r [u8]; 16]>,
}

/// A body to start from.
#[derive(Clone, Copy, Default)]
enum Start<'r> {
    /// The newest version's.
    #[default]
    Newest,
    /// This one, which stands in the row.
    Whole(&'r [u8]),
    /// This delta's.
    Copy(VersionStamp),
}

/// Finds what a view sees among old versions: the way there, and whether it is a chain's reference; `Some(None)`: no row.
#[inline]
fn find<'r>(
    view: &View<'_>,
    mut versions: OldVersions<'r>,
    way: &mut Way<'r>,
) -> Option<Option<bool>> {
    let mut looked_at = 0;
    // The last ranges, and where they lie. What they write need not have been written before: who goes past the versions of ten
    // snapshots, all of the same columns, writes once.
    let (mut last, mut span): (&[u8], _) = (&[], 0..0);
    // F1: the oldest version is the first, or everyone sees it.
    let found = loop {
        let version = versions.glance()?;
        looked_at += 1;
        let start = match version.step()? {
            Step::Ranges(image) => {
                let next = delta::only_range(image).unwrap_or(0..0);
                let is_covered =
                    span.start < span.end && next.start <= span.start && span.end <= next.end;
                if !(is_covered || last.is_empty()) {
                    way.images.push(last);
                }
                (last, span) = (image, next);
                None
            }
            Step::Same => None,
            Step::Copy(name) => Some(Start::Copy(name)),
            Step::Whole(body) => Some(Start::Whole(body)),
        };
        if let Some(start) = start {
            way.start = start;
            way.images.clear();
            (last, span) = (&[], 0..0);
        }
        let flags = version.flags;
        if !flags.is_stamped() || view.sees(&version.name) {
            break (!flags.is_tombstone()).then_some(flags.is_overflow());
        }
        if flags.is_first() {
            break None;
        }
    };
    if !last.is_empty() {
        way.images.push(last);
    }
    view.transaction.touch(0, looked_at);
    Some(found)
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
    let Some((newest, versions)) = FatRow::parts(row) else {
        return Ok(None);
    };
    let mut way = Way::default();
    let overflow = match find(view, versions, &mut way) {
        None => return Ok(None),
        Some(None) => return Ok(Some(Resolved::Absent)),
        Some(Some(overflow)) => overflow,
    };
    let whole = match way.start {
        Start::Newest => Some(newest),
        Start::Whole(old) => Some(old),
        Start::Copy(name) => {
            if !copy(&name, body)? {
                return Ok(Some(Resolved::Changed));
            }
            None
        }
    };
    if let Some(whole) = whole {
        body.clear();
        body.extend_from_slice(whole);
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
        let found = self.find_delta(&DeltaName::lasting(*name), body)?;
        if found {
            let copy = delta::full_body(body).ok_or_else(|| damaged("full copy", tree))?;
            body.truncate(copy.end);
            body.drain(..copy.start);
        }
        Ok(found)
    }

    /// The same of a delta that may be none; false then, too.
    pub(crate) fn copy_if_full(&self, name: &VersionStamp, body: &mut Vec<u8>) -> Result<bool> {
        if !self.find_delta(&DeltaName::lasting(*name), body)? {
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

#[cfg(all(test, not(loom)))]
mod tests {
    use crate::delta::{encode_image, only_range};

    #[test]
    fn only_an_image_of_one_range_says_where_it_lies() {
        let image = |ranges: &[std::ops::Range<usize>]| {
            let mut image = Vec::new();
            encode_image(&[7; 40], ranges, &mut image);
            image
        };
        assert_eq!(only_range(&image(&[8..12])), Some(8..12));
        assert_eq!(only_range(&image(&[8..12, 30..34])), None);
        assert_eq!(only_range(&image(&[8..12])[..11]), None);
        assert_eq!(only_range(&[]), None);
    }
}
