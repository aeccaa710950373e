//! What the disk holds: durable images, and everything that happened since, in order.

use super::image::{BLOCK, Image};
use crate::{exact, parent_of};
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::sync::Arc;
use vellum_base::Result;

/// What is written whole or not at all.
const SECTOR: usize = 512;

/// Number of a file, whatever its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct InodeId(u64);

/// A change of one file.
#[derive(Clone, Debug)]
pub(super) enum Change {
    Write { offset: u64, bytes: Arc<[u8]> },
    SetLen { length: u64 },
    Allocate { offset: u64, length: u64 },
}

impl Change {
    pub(super) fn apply(&self, image: &mut Image) {
        match self {
            Self::Write { offset, bytes } => image.write(bytes, *offset),
            Self::SetLen { length } => image.set_len(*length),
            Self::Allocate { offset, length } => image.allocate(*offset, *length),
        }
    }
}

/// A change of names.
#[derive(Clone, Debug)]
pub(super) enum NameChange {
    Create {
        name: String,
        inode: InodeId,
    },
    CreateDir {
        name: String,
    },
    Remove {
        name: String,
    },
    Rename {
        from: String,
        to: String,
        inode: InodeId,
    },
    /// Each name with the file that it has afterwards.
    Exchange {
        files: [(String, InodeId); 2],
    },
}

impl NameChange {
    fn inodes(&self) -> Vec<InodeId> {
        match self {
            Self::Create { inode, .. } | Self::Rename { inode, .. } => vec![*inode],
            Self::Exchange { files } => files.iter().map(|(_, inode)| *inode).collect(),
            Self::CreateDir { .. } | Self::Remove { .. } => Vec::new(),
        }
    }

    /// Applies to names that may lack earlier changes: only what the change itself is about moves.
    pub(super) fn apply(&self, names: &mut Names) {
        match self {
            Self::Create { name, inode } => {
                names.files.insert(name.clone(), *inode);
            }
            Self::CreateDir { name } => {
                names.directories.insert(name.clone());
            }
            Self::Remove { name } => {
                names.files.remove(name);
            }
            Self::Rename { from, to, inode } => {
                // A rename waits for two directories; another file may have got the old name since.
                if names.files.get(from) == Some(inode) {
                    names.files.remove(from);
                }
                names.files.insert(to.clone(), *inode);
            }
            Self::Exchange { files } => names.files.extend(files.iter().cloned()),
        }
    }

    fn parents(&self) -> BTreeSet<String> {
        let parents: &[&str] = match self {
            Self::Create { name, .. } | Self::CreateDir { name } | Self::Remove { name } => &[name],
            Self::Rename { from, to, .. } => &[from, to],
            Self::Exchange { files } => &[&files[0].0, &files[1].0],
        };
        parents
            .iter()
            .map(|name| parent_of(name).to_owned())
            .collect()
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    pub(super) files: BTreeMap<String, InodeId>,
    pub(super) directories: BTreeSet<String>,
}

impl Names {
    pub(super) fn has_dir(&self, name: &str) -> bool {
        name.is_empty() || self.directories.contains(name)
    }
}

/// One file. `current` is always `durable` with `pending` applied in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Inode {
    pub(super) current: Image,
    pub(super) durable: Image,
    /// By sequence number, which orders the changes of all files and names.
    pub(super) pending: Vec<(u64, Change)>,
    /// Changes, or parts of them, that became durable before earlier ones.
    pub(super) forced: Vec<(u64, Change)>,
    handles: usize,
}

impl Inode {
    /// A file as found after a restart: everything in it is durable.
    pub(super) fn of_image(image: Image) -> Self {
        Self {
            current: image.clone(),
            durable: image,
            pending: Vec::new(),
            forced: Vec::new(),
            handles: 0,
        }
    }
}

/// A change of names that some of its directories have not synced, or that comes behind such a one.
#[derive(Clone, Debug)]
pub(super) struct PendingName {
    pub(super) sequence: u64,
    pub(super) change: NameChange,
    /// It is durable, though an earlier one is not: that must not undo it when it gets there.
    pub(super) durable: bool,
    unsynced_parents: BTreeSet<String>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Disk {
    pub(super) inodes: BTreeMap<InodeId, Inode>,
    pub(super) names: Names,
    pub(super) durable_names: Names,
    pub(super) pending_names: Vec<PendingName>,
    pub(super) space_limit: Option<u64>,
    next_inode: u64,
    next_sequence: u64,
}

impl Disk {
    /// A disk as found after a restart.
    pub(super) fn after_restart(
        inodes: BTreeMap<InodeId, Image>,
        names: Names,
        space_limit: Option<u64>,
    ) -> Self {
        let next_inode = inodes.keys().next_back().map_or(0, |last| last.0 + 1);
        let inodes = inodes
            .into_iter()
            .map(|(id, image)| (id, Inode::of_image(image)))
            .collect();
        let mut disk = Self {
            inodes,
            names: names.clone(),
            durable_names: names,
            space_limit,
            next_inode,
            ..Self::default()
        };
        disk.forget_unreachable();
        disk
    }

    pub(super) fn without_handles(&self) -> Self {
        let mut disk = self.clone();
        for inode in disk.inodes.values_mut() {
            inode.handles = 0;
        }
        disk.forget_unreachable();
        disk
    }

    pub(super) fn lookup(&self, action: &'static str, name: &str) -> Result<InodeId> {
        let found = self.names.files.get(name).copied();
        found.ok_or_else(|| exact::error(action, name, ErrorKind::NotFound))
    }

    pub(super) fn new_inode(&mut self) -> InodeId {
        let id = InodeId(self.next_inode);
        self.next_inode += 1;
        self.inodes.insert(id, Inode::default());
        id
    }

    pub(super) fn inode(&self, id: InodeId) -> &Inode {
        self.inodes
            .get(&id)
            .expect("a file with a handle or a name is kept")
    }

    fn inode_mut(&mut self, id: InodeId) -> &mut Inode {
        self.inodes
            .get_mut(&id)
            .expect("a file with a handle or a name is kept")
    }

    pub(super) fn open_handle(&mut self, id: InodeId) {
        self.inode_mut(id).handles += 1;
    }

    pub(super) fn close_handle(&mut self, id: InodeId) {
        let inode = self.inode_mut(id);
        debug_assert!(inode.handles > 0, "a handle is closed once");
        inode.handles -= 1;
    }

    fn sequence(&mut self) -> u64 {
        self.next_sequence += 1;
        self.next_sequence
    }

    /// Makes a change of a file, visible at once and durable after the file's next sync.
    pub(super) fn change(&mut self, id: InodeId, change: Change) {
        let sequence = self.sequence();
        let inode = self.inode_mut(id);
        change.apply(&mut inode.current);
        inode.pending.push((sequence, change));
    }

    /// Makes a change of names, visible at once and durable once all its directories are synced.
    pub(super) fn change_names(&mut self, change: NameChange) {
        change.apply(&mut self.names);
        let unsynced_parents = change.parents();
        let sequence = self.sequence();
        self.pending_names.push(PendingName {
            sequence,
            change,
            durable: false,
            unsynced_parents,
        });
    }

    /// Number of the last change of any file or name.
    pub(super) fn last_sequence(&self) -> u64 {
        self.next_sequence
    }

    /// Makes the change with this number durable before all that came earlier, if it was made and is not; `torn`: only the first sector
    /// of a write.
    pub(super) fn force(&mut self, number: u64, torn: bool) {
        for inode in self.inodes.values_mut() {
            let found = inode.pending.iter();
            let Some(index) = found
                .map(|(sequence, _)| *sequence)
                .position(|n| n == number)
            else {
                continue;
            };
            let forced = match &inode.pending[index].1 {
                Change::Write { offset, bytes } if torn => Change::Write {
                    offset: *offset,
                    bytes: Arc::from(&bytes[..bytes.len().min(SECTOR)]),
                },
                _ => inode.pending.remove(index).1,
            };
            forced.apply(&mut inode.durable);
            inode.forced.push((number, forced));
            return;
        }
        let mut pending = self.pending_names.iter_mut();
        if let Some(pending) = pending.find(|pending| pending.sequence == number) {
            pending.durable = true;
            pending.change.apply(&mut self.durable_names);
        }
    }

    pub(super) fn sync(&mut self, id: InodeId) {
        let inode = self.inode_mut(id);
        for (_, change) in inode.pending.drain(..) {
            change.apply(&mut inode.durable);
        }
        if !std::mem::take(&mut inode.forced).is_empty() {
            inode.durable = inode.current.clone();
        }
        debug_assert_eq!(inode.durable.length(), inode.current.length());
    }

    pub(super) fn sync_names(&mut self, subdir: &str) {
        let durable = &mut self.durable_names;
        for pending in &mut self.pending_names {
            pending.unsynced_parents.remove(subdir);
            pending.durable |= pending.unsynced_parents.is_empty();
            if pending.durable {
                pending.change.apply(durable);
            }
        }
        let done = self.pending_names.iter().take_while(|name| name.durable);
        self.pending_names.drain(..done.count());
        self.forget_unreachable();
    }

    /// Drops files that no name, no handle and no cut can bring back.
    fn forget_unreachable(&mut self) {
        let mut reachable: BTreeSet<InodeId> = self.names.files.values().copied().collect();
        reachable.extend(self.durable_names.files.values());
        reachable.extend(
            self.pending_names
                .iter()
                .flat_map(|pending| pending.change.inodes()),
        );
        self.inodes
            .retain(|id, inode| inode.handles > 0 || reachable.contains(id));
    }

    pub(super) fn used_space(&self) -> u64 {
        let linked: BTreeSet<InodeId> = self.names.files.values().copied().collect();
        let inodes = self.inodes.iter();
        let counted = inodes.filter(|(id, inode)| inode.handles > 0 || linked.contains(id));
        counted
            .map(|(_, inode)| inode.current.block_count() * BLOCK)
            .sum()
    }

    /// How many bytes from `offset` on find space: all, or up to the first block that finds none.
    pub(super) fn fitting(&self, id: InodeId, offset: u64, length: u64) -> u64 {
        let Some(limit) = self.space_limit else {
            return length;
        };
        let mut free = limit.saturating_sub(self.used_space()) / BLOCK;
        let image = &self.inode(id).current;
        let end = offset + length;
        for index in offset / BLOCK..end.div_ceil(BLOCK) {
            if image.has_block(index) {
                continue;
            }
            if free == 0 {
                return (index * BLOCK).saturating_sub(offset);
            }
            free -= 1;
        }
        length
    }

    pub(super) fn unsynced_changes(&self) -> usize {
        let in_files: usize = self.inodes.values().map(|inode| inode.pending.len()).sum();
        let names = self.pending_names.iter();
        in_files + names.filter(|pending| !pending.durable).count()
    }

    pub(super) fn flip_bit(&mut self, id: InodeId, offset: u64, bit: u8) -> bool {
        let inode = self.inode_mut(id);
        // The durable image may be shorter.
        inode.durable.flip_bit(offset, bit);
        inode.current.flip_bit(offset, bit)
    }
}
