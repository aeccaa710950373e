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

use crate::accounts::{Accounts, Tally, VersionSums};
use crate::delta;
use crate::error::damaged;
use crate::options::VersionOptions;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};
use vellum_base::codec::{Put, Reader};
use vellum_base::{PageId, Result, SlotId, Timestamp};
use vellum_btree::{Appender, LeafHints, LeafWrite, Logging, Tree, TreeContext, TreeKind};
use vellum_sync::{Mutex, RwLock};
use vellum_txn::VersionStamp;

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
    delta_edge: Mutex<DeltaEdge>,
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

/// The right edge of a delta index, and what the index holds.
#[derive(Debug)]
struct DeltaEdge {
    appender: Appender,
    accounts: Accounts,
}

impl SlotVersions {
    fn create(context: &Arc<TreeContext>) -> Result<Self> {
        let deltas = Tree::create(context, None, TreeKind::Temporary, None)?;
        let work = Tree::create(context, None, TreeKind::Temporary, None)?;
        let delta_edge = Mutex::new(DeltaEdge {
            appender: deltas.appender(),
            accounts: Accounts::new(),
        });
        let work_edge = Mutex::new(work.appender());
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

    /// Adds the before-image of a new version of a row of `tree`.
    #[inline]
    pub fn append_delta(&self, tree: PageId, name: &VersionStamp, entry: &[u8]) -> Result<()> {
        let key = delta::key(name.stamp, name.command);
        let mut edge = self.delta_edge.lock();
        edge.appender.append(&key, &[entry], Logging::None, None)?;
        edge.accounts
            .add(tree, name.stamp, delta::is_full(entry), entry.len());
        Ok(())
    }

    /// Puts a before-image where it belongs, or in the place of the one of that name.
    pub fn put_delta(&self, tree: PageId, name: &VersionStamp, entry: &[u8]) -> Result<()> {
        let key = delta::key(name.stamp, name.command);
        let replaced = loop {
            let mut leaf = self.deltas.write(&key)?;
            if !leaf.fits(entry.len()) {
                drop(leaf);
                self.deltas.make_room(&key, entry.len(), None)?;
                continue;
            }
            if !leaf.found() {
                leaf.insert(&[entry], Logging::None);
                break None;
            }
            let replaced = described(&leaf);
            leaf.replace(&[entry], Logging::None);
            break Some(replaced);
        };
        let mut edge = self.delta_edge.lock();
        if let Some((full, length)) = replaced {
            edge.accounts.forget(tree, name.stamp, full, length);
        }
        edge.accounts
            .add(tree, name.stamp, delta::is_full(entry), entry.len());
        Ok(())
    }

    /// Takes a before-image out by its name; false if it is not there.
    pub fn take_delta(
        &self,
        tree: PageId,
        name: &VersionStamp,
        hints: &mut LeafHints,
    ) -> Result<bool> {
        let key = delta::key(name.stamp, name.command);
        let mut leaf = self.deltas.write_near(&key, hints)?;
        if !leaf.found() {
            return Ok(false);
        }
        let (full, length) = described(&leaf);
        let was_underfull = leaf.is_underfull();
        leaf.remove(Logging::None);
        // When the leaf has just become small, or empty: not at each removal between, which would seldom find room.
        let joins = leaf.is_underfull() && (!was_underfull || leaf.is_empty());
        drop(leaf);
        self.delta_edge
            .lock()
            .accounts
            .forget(tree, name.stamp, full, length);
        if joins {
            self.deltas.rebalance(&key, None)?;
        }
        Ok(true)
    }

    /// Takes the before-images of stamps below `dead` out, whole leaves at a time; false if there are more.
    pub fn take_deltas_below(&self, dead: Timestamp, pages: usize) -> Result<bool> {
        let done = self
            .deltas
            .remove_below(&delta::key(dead, 0), pages, None)?;
        if done {
            self.delta_edge.lock().accounts.forget_below(dead);
        }
        Ok(done)
    }

    /// Looks at the accounts.
    pub fn account<R>(&self, look: impl FnOnce(&Accounts) -> R) -> R {
        look(&self.delta_edge.lock().accounts)
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

/// Whether the before-image that the leaf is positioned at is a full copy, and its length.
fn described(leaf: &LeafWrite<'_, '_>) -> (bool, usize) {
    let mut kind = [0; 1];
    let length = leaf.payload_len();
    leaf.payload_read(0, &mut kind[..length.min(1)]);
    (delta::is_full(&kind), length)
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

    /// Old versions by kind, by the root page of the index whose rows they belong to.
    pub fn versions_by_tree(&self) -> BTreeMap<PageId, VersionSums> {
        let mut sums = BTreeMap::new();
        for versions in self.slots.iter().filter_map(OnceLock::get) {
            versions.account(|accounts| accounts.report(&mut sums));
        }
        sums
    }

    /// Old versions by kind. Some ten nanoseconds for each slot that has made any.
    pub fn versions(&self) -> VersionSums {
        let mut sums = VersionSums::default();
        for versions in self.slots.iter().filter_map(OnceLock::get) {
            versions.account(|accounts| accounts.report_total(&mut sums));
        }
        sums
    }

    /// Before-images that writers with stamps at or above `from` and below `to` have made, within a
    /// two-hundredth part.
    pub fn versions_between(&self, from: Timestamp, to: Timestamp) -> Tally {
        let mut sum = Tally::default();
        for versions in self.slots.iter().filter_map(OnceLock::get) {
            sum.add(versions.account(|accounts| accounts.between(from, to)));
        }
        sum
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
