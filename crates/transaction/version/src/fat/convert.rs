//! Turning a chained row fat: its chain is followed, and what somebody still sees is put into the row.
//!
//! Paper: LeanStore §3.3 (detecting long version chains, FatTuple). Differences: the whole chain goes into the row or
//! nothing does; deltas that are in the row are taken out of their indexes, where nobody would find them before the
//! oldest snapshot ends.

use crate::delta::{self, Entry};
use crate::error::{Result, damaged};
use crate::fat::layout::{OldVersion, Step};
use crate::row::{Header, Writer};
use crate::store::VersionStore;
use vellum_base::PageId;
use vellum_txn::{ActiveSnapshots, Domain, VersionStamp};

/// Deltas that are followed at most. A chain is longer only where it could not be put into the row before.
const CHAIN_MAX: usize = 1024;

/// A chain, read from its delta indexes.
#[derive(Debug, Default)]
pub(crate) struct Chain {
    /// Whose deltas they were, from the newest to the oldest.
    pub names: Vec<VersionStamp>,
    links: Vec<Link>,
    bytes: Vec<u8>,
}

#[derive(Debug)]
struct Link {
    header: Header,
    /// Where in `Chain::bytes` the ranges are; `None`: a full copy, or nothing.
    ranges: Option<std::ops::Range<usize>>,
}

/// Length of a version's body, if the one before it may be made of it (F2): a tombstone has none, which is not the same
/// as an empty one.
fn length_of(header: &Header, body: &[u8]) -> usize {
    if header.shape.tombstone {
        usize::MAX
    } else {
        body.len()
    }
}

impl Chain {
    /// Its versions, from the newest to the oldest, as they stand in a fat row.
    pub fn versions(&self) -> impl Iterator<Item = OldVersion<'_>> {
        self.names.iter().zip(&self.links).map(|(name, link)| {
            let step = match &link.ranges {
                Some(ranges) => Step::Ranges(&self.bytes[ranges.clone()]),
                None if link.header.shape.tombstone => Step::Same,
                None => Step::Copy(*name),
            };
            OldVersion {
                header: link.header,
                step,
            }
        })
    }

    /// Takes a delta in. `length`: of the next newer version's body, which is then that of this one.
    fn push(
        &mut self,
        name: VersionStamp,
        entry: &[u8],
        image_max: usize,
        length: &mut usize,
    ) -> Option<()> {
        let from = self.bytes.len();
        let (header, is_ranges) = match delta::decode(entry)? {
            Entry::Ranges(header, image) => {
                self.bytes.extend_from_slice(image);
                (header, true)
            }
            Entry::Full(header, body) => {
                // A copy of the same length is one range, and saves who reads it a look into the index.
                let same = *length == body.len() && !header.shape.tombstone;
                let inline = same && body.len() + delta::RANGE_BYTES <= image_max;
                if inline {
                    let whole = 0..body.len();
                    delta::encode_image(body, std::slice::from_ref(&whole), &mut self.bytes);
                }
                *length = length_of(&header, body);
                (header, inline)
            }
        };
        self.names.push(name);
        self.links.push(Link {
            header,
            ranges: is_ranges.then_some(from..self.bytes.len()),
        });
        Some(())
    }
}

impl VersionStore {
    /// Reads the chain behind a plain row's newest version, down to the first version, or one that every snapshot in
    /// `active` sees. `None` if it is too long. The caller holds the leaf's latch: a delta that is not there has been
    /// collected.
    pub(crate) fn read_chain_of(
        &self,
        domain: &Domain,
        active: &ActiveSnapshots,
        tree: PageId,
        newest: &Header,
        body: &[u8],
        image_max: usize,
    ) -> Result<Option<Chain>> {
        let mut chain = Chain::default();
        let mut entry = Vec::new();
        let mut next = newest.writer;
        let mut length = length_of(newest, body);
        while let Some(Writer { version, first }) = next {
            if first || domain.is_committed_before(&version, active.oldest()) {
                break;
            }
            if chain.names.len() == CHAIN_MAX {
                return Ok(None);
            }
            let found = match self.deltas(version.slot) {
                Some(deltas) => {
                    deltas.get(&delta::key(version.stamp, version.command), &mut entry)?
                }
                None => false,
            };
            if !found {
                // Everyone sees this version, whatever the list says.
                break;
            }
            chain
                .push(version, &entry, image_max, &mut length)
                .ok_or_else(|| damaged("delta", tree))?;
            next = chain.links.last().and_then(|link| link.header.writer);
        }
        Ok(Some(chain))
    }
}
