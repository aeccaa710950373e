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
    /// By its delta, which is a full copy.
    Copy,
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
    /// A fat row that has room: its old versions (so many bytes) end where the replaced one is put.
    Patched { versions: usize, kind: Kind },
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
        scratch: &FatScratch,
    ) -> Option<usize> {
        match (self, before) {
            (Self::Plain { onward, .. }, _) => Some(onward.header_length() + body_length(change)),
            (Self::Rebuilt { slack, kind }, Some(before)) => {
                let replaced = version_length(before, *kind, &scratch.image);
                Some(BODY_AT + body_length(change) + scratch.versions.len() + replaced + slack)
            }
            _ => None,
        }
    }
}

/// Bytes that the replaced version takes in the row.
pub(crate) fn version_length(before: &Header, kind: Kind, image: &[u8]) -> usize {
    VERSION_OVERHEAD
        + before.length()
        + match kind {
            Kind::Same => 0,
            Kind::Ranges => image.len(),
            Kind::Copy => NAME_BYTES,
        }
}

/// Bytes of the body that a change makes.
pub(crate) fn body_length(change: &Change<'_>) -> usize {
    match change {
        Change::Put(_, body) | Change::Patch(_, body) => body.len(),
        Change::Nothing | Change::Delete => 0,
    }
}

/// The replaced version in two parts around its image or name: what it starts with, and its length.
pub(crate) struct Replaced {
    head: VersionHead,
    tail: [u8; 2],
    is_ranges: bool,
}

impl Replaced {
    /// Encodes the version with this header; `name`: of the version that replaces it.
    pub fn encode(before: &Header, kind: Kind, name: VersionStamp, image: &[u8]) -> Self {
        let step = match kind {
            Kind::Same => Step::Same,
            Kind::Ranges => Step::Ranges(&[]),
            Kind::Copy => Step::Copy(name),
        };
        let version = OldVersion {
            header: *before,
            step,
        };
        let is_ranges = kind == Kind::Ranges;
        let head = version.head();
        let length = version.length() + if is_ranges { image.len() } else { 0 };
        Self {
            head,
            tail: u16::try_from(length).unwrap_or(u16::MAX).to_le_bytes(),
            is_ranges,
        }
    }

    /// Its parts in order.
    pub fn parts<'p>(&'p self, image: &'p [u8]) -> [&'p [u8]; 3] {
        [
            &self.head,
            if self.is_ranges { image } else { &[] },
            &self.tail,
        ]
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
