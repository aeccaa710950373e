//! The form that a row has after a write, and how the version that is replaced is put into it.

use crate::fat::decompose::Gone;
use crate::fat::layout::{BODY_AT, NAME_BYTES, OldVersion, Step, VERSION_OVERHEAD, VersionHead};
use crate::row::{Header, Shape};
use crate::shortcut::Onward;
use crate::write::Change;
use smallvec::SmallVec;
use std::ops::Range;
use vellum_txn::{ActiveSnapshots, VersionStamp};

/// Buffers of writes to fat rows.
#[derive(Debug, Default)]
pub(crate) struct FatScratch {
    /// The last list of open snapshots.
    pub active: ActiveSnapshots,
    /// The row, if all of it was needed.
    pub row: Vec<u8>,
    /// The old versions as they will be in the row.
    pub versions: Vec<u8>,
    /// The old bytes of what the write changes, with their places.
    pub image: Vec<u8>,
    /// Which bytes of the body the write changes, where its length stays.
    pub spans: SmallVec<[Range<usize>; 4]>,
    /// To be taken away when the row has changed.
    pub gone: Gone,
}

/// How the replaced version is kept in the row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Same,
    /// By the image in the scratch.
    Ranges,
    /// By its body.
    Whole,
    /// By its delta, which is a full copy.
    Copy,
}

impl Kind {
    /// What of the replaced version stands in the row: its ranges, its body, or nothing.
    #[inline]
    fn content<'c>(self, image: &'c [u8], old_body: &'c [u8]) -> &'c [u8] {
        match self {
            Self::Same | Self::Copy => &[],
            Self::Ranges => image,
            Self::Whole => old_body,
        }
    }
}

/// What form a row has after a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    /// Header and body; the replaced version is a delta.
    Plain {
        /// Chain estimate.
        updates: u8,
        since: u16,
        onward: Onward,
    },
    /// A fat row that has room: its old versions (so many bytes) end where the replaced one is put. They stand in the scratch, too, if
    /// they move, as the body gets another length.
    Patched {
        versions: usize,
        kind: Kind,
        moves: bool,
    },
    /// A fat row that is written anew, with the old versions in the scratch but the replaced one.
    Rebuilt { slack: usize, kind: Kind },
}

impl Form {
    /// Of a row that did not exist.
    pub const NEW: Self = Self::Plain {
        updates: 0,
        since: 0,
        onward: Onward::Chain,
    };

    /// The row holds its newest version only.
    #[inline]
    pub fn is_plain(&self) -> bool {
        matches!(self, Self::Plain { .. })
    }

    /// How the chain goes on behind the new version.
    #[inline]
    pub fn onward(&self) -> Onward {
        match *self {
            Self::Plain { onward, .. } => onward,
            Self::Patched { .. } | Self::Rebuilt { .. } => Onward::Chain,
        }
    }

    /// The replaced version stands in the row, and needs no delta.
    #[inline]
    pub fn holds_replaced(&self) -> bool {
        match self {
            Self::Plain { .. } => false,
            Self::Patched { kind, .. } | Self::Rebuilt { kind, .. } => *kind != Kind::Copy,
        }
    }

    /// How long the row becomes; `None` if it stays as long as it is.
    #[inline]
    pub fn row_length(
        &self,
        change: &Change<'_>,
        before: Option<&Header>,
        old_body: &[u8],
        scratch: &FatScratch,
    ) -> Option<usize> {
        match (self, before) {
            (Self::Plain { onward, .. }, _) => Some(onward.header_length() + body_length(change)),
            (Self::Rebuilt { slack, kind }, Some(before)) => {
                let replaced = version_length(before, *kind, &scratch.image, old_body);
                Some(BODY_AT + body_length(change) + scratch.versions.len() + replaced + slack)
            }
            _ => None,
        }
    }
}

/// Bytes that the replaced version takes in the row.
pub(crate) fn version_length(before: &Header, kind: Kind, image: &[u8], old_body: &[u8]) -> usize {
    let rest = match kind {
        Kind::Copy => NAME_BYTES,
        _ => kind.content(image, old_body).len(),
    };
    VERSION_OVERHEAD + before.length() + rest
}

/// Bytes of the body that a change makes.
pub(crate) fn body_length(change: &Change<'_>) -> usize {
    match change {
        Change::Put(_, body) | Change::Patch(_, body) => body.len(),
        Change::Nothing | Change::Delete => 0,
    }
}

/// The replaced version in parts: what it starts with, its ranges or body, and its length.
pub(crate) struct Replaced<'c> {
    head: VersionHead,
    content: &'c [u8],
    tail: [u8; 2],
}

impl<'c> Replaced<'c> {
    /// Encodes the version with this header and body; `name`: of the version that replaces it; `image`: of the ranges that differ.
    pub fn encode(
        before: &Header,
        kind: Kind,
        name: VersionStamp,
        image: &'c [u8],
        old_body: &'c [u8],
    ) -> Self {
        let content = kind.content(image, old_body);
        let step = match kind {
            Kind::Same => Step::Same,
            Kind::Ranges => Step::Ranges(content),
            Kind::Copy => Step::Copy(name),
            Kind::Whole => Step::Whole(content),
        };
        let version = OldVersion {
            header: *before,
            step,
        };
        let length = u16::try_from(version.length()).expect("a version fits a page");
        Self {
            head: version.head(),
            content,
            tail: length.to_le_bytes(),
        }
    }

    /// Its parts in order.
    pub fn parts(&self) -> [&[u8]; 3] {
        [&self.head, self.content, &self.tail]
    }

    /// Bytes of all parts.
    pub fn length(&self) -> usize {
        usize::from(u16::from_le_bytes(self.tail))
    }
}

/// The shape that a change gives to a row.
pub(crate) fn shape_of(change: &Change<'_>, before: Option<Header>) -> Shape {
    match change {
        Change::Put(shape, _) => *shape,
        Change::Patch(..) => before.map_or(Shape::INLINE, |header| header.shape),
        Change::Nothing | Change::Delete => Shape::DELETED,
    }
}
