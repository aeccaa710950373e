//! What the lists of a slot hold: tombstones, and what is to be freed.
//!
//! Layout of an entry of the list of tombstones (key: as in `delta`; little-endian):
//! ```text
//! 0..8   u64  root page of the row's tree
//! 8..16  u64  stamp of the row's one version before the delete, zero if it had others, or that is not known
//! 16..        the row's key
//! ```
//!
//! Layout of an entry of the work list (key: as in `delta`, then `u8` number of the entry within its version):
//! ```text
//! 0      u8   2 overflow chain, 3 tree
//! 1..9   u64  root page
//! 9..         chain: u64 length in bytes, u64 root page of the row's tree; then, also of a tree, the name of who made it, which
//!             some snapshot may not see: u16 slot, u64 stamp, u32 command
//! ```

use crate::collect::Patience;
use crate::delta;
use crate::error::damaged;
use crate::pending::FREE_STEP;
use crate::shortcut::{decode_link, encode_link};
use vellum_base::codec::{Put, Reader};
use vellum_base::{PageId, Result, Timestamp};
use vellum_btree::Tree;
use vellum_btree::overflow::ChainRef;
use vellum_txn::VersionStamp;

/// How far a work list was worked off.
#[derive(Debug)]
pub(crate) struct Done {
    /// The work of the entries up to this key is done.
    pub through: Vec<u8>,
    /// These entries are gone, too.
    pub is_removed: bool,
    /// What of it could not be done, since a page cannot be read (V59).
    pub aside: Vec<Work>,
    pub patience: Patience,
}

impl Default for Done {
    fn default() -> Self {
        Self {
            through: Vec::new(),
            is_removed: true,
            aside: Vec::new(),
            patience: Patience::default(),
        }
    }
}

/// The entry of a command that dropped a reference to a chain or tree.
pub(crate) const DISOWN_PART: u8 = 1;

/// Key of a work-list entry: the version's, and which of its entries it is.
#[inline]
pub(crate) fn work_key(stamp: Timestamp, command: u32, part: u8) -> [u8; delta::KEY_BYTES + 1] {
    let mut key = [0; delta::KEY_BYTES + 1];
    key[..delta::KEY_BYTES].copy_from_slice(&delta::key(stamp, command));
    key[delta::KEY_BYTES] = part;
    key
}

/// An entry of the list of tombstones.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tombstone<'a> {
    /// Root page of its tree.
    pub root: PageId,
    /// Stamp of the one version that the row had before the delete, whose inserter it is; `None` if there were others, or that is not
    /// known.
    pub born: Option<Timestamp>,
    /// The row's key.
    pub key: &'a [u8],
}

/// What of an entry of the list of tombstones comes before the key.
pub(crate) fn tombstone_head(root: PageId, born: Option<Timestamp>) -> [u8; 16] {
    let mut head = [0; 16];
    head[..8].copy_from_slice(&root.get().to_le_bytes());
    // No transaction has the stamp zero.
    head[8..].copy_from_slice(&born.unwrap_or_default().get().to_le_bytes());
    head
}

/// Reads an entry of the list of tombstones.
pub(crate) fn decode_tombstone<'a>(entry: &'a [u8], list: &Tree) -> Result<Tombstone<'a>> {
    let mut reader = Reader::new(entry);
    let mut read = || {
        let root = PageId(reader.u64()?);
        let born = Timestamp(reader.u64()?);
        Some(Tombstone {
            root,
            born: Some(born).filter(|born| !born.is_zero()),
            key: reader.rest(),
        })
    };
    read().ok_or_else(|| damaged("entry of a list of tombstones", list.root()))
}

/// What is to be freed when a version is seen by everyone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Work {
    /// Give the pages of this chain back.
    Chain {
        /// Its first page.
        root: PageId,
        /// Bytes in it.
        length: u64,
        /// Root page of the tree whose row referred to it.
        tree: PageId,
        /// The version whose value it is; `None` if everyone sees, or saw, that.
        made_by: Option<VersionStamp>,
    },
    /// Give the pages of this dropped tree back.
    Tree {
        /// Its root page.
        root: PageId,
        /// The version that made it; `None` if everyone sees that.
        made_by: Option<VersionStamp>,
    },
}

impl Work {
    /// Bytes of the pages that the first step of freeing it gives back at most: what it is charged with. The other steps are charged one by one.
    pub(crate) fn first_step_bytes(&self, page_size: usize) -> u64 {
        let step = (FREE_STEP * page_size) as u64;
        match self {
            Self::Chain { .. } => self.chain_bytes(page_size).min(step),
            Self::Tree { .. } => step,
        }
    }

    /// Bytes of the pages of a chain; zero of a tree.
    pub(crate) fn chain_bytes(&self, page_size: usize) -> u64 {
        match *self {
            Self::Chain { root, length, .. } => ChainRef { root, length }.bytes_of_pages(page_size),
            Self::Tree { .. } => 0,
        }
    }
}

const CHAIN: u8 = 2;
const TREE: u8 = 3;

impl Work {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Chain {
                root,
                length,
                tree,
                made_by,
            } => {
                out.put_u8(CHAIN);
                out.put_u64(root.get());
                out.put_u64(*length);
                out.put_u64(tree.get());
                if let Some(version) = made_by {
                    out.extend_from_slice(&encode_link(version));
                }
            }
            Self::Tree { root, made_by } => {
                out.put_u8(TREE);
                out.put_u64(root.get());
                if let Some(version) = made_by {
                    out.extend_from_slice(&encode_link(version));
                }
            }
        }
    }

    pub(crate) fn decode(bytes: &[u8], list: &Tree) -> Result<Self> {
        let mut reader = Reader::new(bytes);
        let name = |bytes: &[u8]| match bytes {
            [] => Some(None),
            name => Some(Some(decode_link(name.first_chunk()?))),
        };
        let mut read = || {
            let kind = reader.u8()?;
            let root = PageId(reader.u64()?);
            Some(match kind {
                CHAIN => Self::Chain {
                    root,
                    length: reader.u64()?,
                    tree: PageId(reader.u64()?),
                    made_by: name(reader.rest())?,
                },
                TREE => Self::Tree {
                    root,
                    made_by: name(reader.rest())?,
                },
                _ => return None,
            })
        };
        read().ok_or_else(|| damaged("work-list entry", list.root()))
    }
}
