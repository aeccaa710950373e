//! The version store of a database: a delta index and a work list for each slot.
//!
//! Paper: LeanStore §3.2 (tombstone index), §3.3 (delta index). Differences: the work list holds overflow
//! chains beside tombstones, because both wait for the same horizon.
//!
//! Layout of a work-list entry (key: as in `delta`, then `u8` number of the entry within its version; little-endian):
//! ```text
//! 0      u8   1 tombstone, 2 overflow chain, 3 tree
//! 1..9   u64  root page of the row's tree; of the chain; of the tree
//! 9..         tombstone: the row's key; chain: u64 length in bytes
//! ```
//!
//! Invariants:
//! - V6 Only the slot's own transaction, or who holds the slot's lease, writes to the slot's two trees; but deltas of a
//!   row are put in and taken out by whoever has its leaf latched, when the row turns fat or back (`fat::decompose`).
//! - V7 A slot whose two trees do not exist has never made a version.
//!
//! Crash: both trees are temporary; a crash gives their pages back (0001).

use crate::delta;
use crate::error::damaged;
use crate::options::VersionOptions;
use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};
use vellum_base::codec::{Put, Reader};
use vellum_base::{PageId, Result, SlotId, Timestamp};
use vellum_btree::{Appender, Logging, Tree, TreeContext, TreeKind};
use vellum_sync::{Mutex, RwLock};

/// Old versions of the rows of one database, and what is to be done when nobody needs them.
#[derive(Debug)]
pub struct VersionStore {
    context: Arc<TreeContext>,
    options: VersionOptions,
    slots: Box<[OnceLock<SlotVersions>]>,
    creating: Mutex<()>,
    pending_free: Tree,
    /// Trees whose pages are being given back; collectors leave their tombstones alone. Held shared while
    /// a tombstone is looked at, so that no page goes away under it.
    dropped: RwLock<BTreeSet<PageId>>,
    /// Chains of dropped trees whose rows are gone: they are listed, and to be freed next.
    ownerless: Mutex<Vec<PageId>>,
}

/// The two trees of a slot.
#[derive(Debug)]
pub(crate) struct SlotVersions {
    /// Before-images.
    pub deltas: Tree,
    /// What to do when a version is seen by everyone.
    pub work: Tree,
    /// The right edges, where the slot's transaction appends (V6: nobody waits for these).
    delta_edge: Mutex<Appender>,
    work_edge: Mutex<Appender>,
    /// How far the work list was worked off.
    pub done: Mutex<Done>,
}

/// How far a work list was worked off.
#[derive(Debug, Default)]
pub(crate) struct Done {
    /// The work of the entries up to this key is done.
    pub through: Vec<u8>,
    /// These entries are gone, too.
    pub is_removed: bool,
}

impl SlotVersions {
    fn create(context: &Arc<TreeContext>) -> Result<Self> {
        let deltas = Tree::create(context, None, TreeKind::Temporary, None)?;
        let work = Tree::create(context, None, TreeKind::Temporary, None)?;
        let (delta_edge, work_edge) = (Mutex::new(deltas.appender()), Mutex::new(work.appender()));
        Ok(Self {
            deltas,
            work,
            delta_edge,
            work_edge,
            done: Mutex::new(Done {
                through: Vec::new(),
                is_removed: true,
            }),
        })
    }

    /// Adds the before-image of a new version.
    #[inline]
    pub fn append_delta(&self, version: &[u8], entry: &[u8]) -> Result<()> {
        self.delta_edge
            .lock()
            .append(version, &[entry], Logging::None, None)
            .map(|_| ())
    }

    /// Adds work that a new version leaves behind. `key`: see [`work_key`].
    #[inline]
    pub fn append_work(&self, key: &[u8], entry: &[u8]) -> Result<()> {
        self.work_edge
            .lock()
            .append(key, &[entry], Logging::None, None)
            .map(|_| ())
    }
}

/// The entry of a version that is a tombstone.
pub(crate) const TOMBSTONE_PART: u8 = 0;
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

impl VersionStore {
    /// A store without versions for `slots_max` slots.
    pub fn new(context: Arc<TreeContext>, slots_max: u16, pending_free: Tree) -> Self {
        Self::with_options(context, slots_max, pending_free, VersionOptions::default())
    }

    /// As [`VersionStore::new`], with parts switched off.
    pub fn with_options(
        context: Arc<TreeContext>,
        slots_max: u16,
        pending_free: Tree,
        options: VersionOptions,
    ) -> Self {
        Self {
            context,
            options,
            slots: (0..slots_max).map(|_| OnceLock::new()).collect(),
            creating: Mutex::new(()),
            pending_free,
            dropped: RwLock::new(BTreeSet::new()),
            ownerless: Mutex::new(Vec::new()),
        }
    }

    /// Which parts are on.
    #[inline]
    pub fn options(&self) -> VersionOptions {
        self.options
    }

    /// The environment of the trees.
    pub fn context(&self) -> &Arc<TreeContext> {
        &self.context
    }

    /// The system tree of chains and trees that no committed row refers to.
    pub fn pending_free(&self) -> &Tree {
        &self.pending_free
    }

    /// Trees whose pages are being given back.
    pub(crate) fn dropped(&self) -> &RwLock<BTreeSet<PageId>> {
        &self.dropped
    }

    /// Chains of dropped trees whose rows are gone.
    pub(crate) fn ownerless(&self) -> &Mutex<Vec<PageId>> {
        &self.ownerless
    }

    /// The delta index of a slot, if the slot has made versions (V7).
    #[inline]
    pub(crate) fn deltas(&self, slot: SlotId) -> Option<&Tree> {
        self.slot(slot).map(|versions| &versions.deltas)
    }

    /// The trees of a slot, if the slot has made versions (V7).
    #[inline]
    pub(crate) fn slot(&self, slot: SlotId) -> Option<&SlotVersions> {
        self.slots.get(usize::from(slot.get()))?.get()
    }

    /// The trees of a slot, made if need be. The caller holds no latch the first time.
    #[inline]
    pub(crate) fn slot_or_create(&self, slot: SlotId) -> Result<&SlotVersions> {
        let cell = &self.slots[usize::from(slot.get())];
        match cell.get() {
            Some(versions) => Ok(versions),
            None => self.create_slot(cell),
        }
    }

    #[cold]
    fn create_slot<'s>(&'s self, cell: &'s OnceLock<SlotVersions>) -> Result<&'s SlotVersions> {
        let _creating = self.creating.lock();
        if let Some(versions) = cell.get() {
            return Ok(versions);
        }
        let versions = SlotVersions::create(&self.context)?;
        Ok(cell.get_or_init(|| versions))
    }
}

/// What is to be done when a version is seen by everyone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Work<'a> {
    /// Remove this tombstone, if it is still the row's newest version.
    Tombstone {
        /// Root page of the row's tree.
        tree: PageId,
        /// The row's key.
        key: &'a [u8],
    },
    /// Give the pages of this chain back.
    Chain {
        /// Its first page.
        root: PageId,
        /// Bytes in it.
        length: u64,
    },
    /// Give the pages of this dropped tree back.
    Tree {
        /// Its root page.
        root: PageId,
    },
}

const TOMBSTONE: u8 = 1;
const CHAIN: u8 = 2;
const TREE: u8 = 3;

impl<'a> Work<'a> {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Tombstone { tree, key } => {
                out.put_u8(TOMBSTONE);
                out.put_u64(tree.get());
                out.put(key);
            }
            Self::Chain { root, length } => {
                out.put_u8(CHAIN);
                out.put_u64(root.get());
                out.put_u64(*length);
            }
            Self::Tree { root } => {
                out.put_u8(TREE);
                out.put_u64(root.get());
            }
        }
    }

    pub(crate) fn decode(bytes: &'a [u8], list: &Tree) -> Result<Self> {
        let mut reader = Reader::new(bytes);
        let mut read = || {
            let kind = reader.u8()?;
            let root = PageId(reader.u64()?);
            Some(match kind {
                TOMBSTONE => Self::Tombstone {
                    tree: root,
                    key: reader.rest(),
                },
                CHAIN => Self::Chain {
                    root,
                    length: reader.u64()?,
                },
                TREE => Self::Tree { root },
                _ => return None,
            })
        };
        read().ok_or_else(|| damaged("work-list entry", list.root()))
    }
}
