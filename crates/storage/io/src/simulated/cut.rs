//! What a machine may find after it lost power.
//!
//! Every change since the last sync is kept, kept in part, or lost. In order (`reorder: false`) the
//! survivors are a prefix of all changes, over all files and names; out of order, any subset. A subset is
//! drawn with one probability a file, itself drawn, so that "everything of this file, nothing of that
//! one" is as likely as an even mix.

use super::disk::{Change, Disk, InodeId, NameChange, PendingName};
use super::image::{Image, pieces};
use crate::parent_of;
use std::collections::BTreeMap;
use vellum_base::random::Random;

/// How much of what was not synced survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Nothing: the disk has exactly what was synced.
    None,
    /// Everything, as if all had been synced in time.
    All,
    /// What the seed says.
    Random,
}

/// The unit that a write is cut into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Torn {
    /// A write is kept whole or not at all.
    None,
    /// Sectors of 512 bytes.
    Sector512,
    /// Blocks of 4 KiB.
    Block4096,
}

impl Torn {
    const fn unit(self) -> Option<u64> {
        match self {
            Self::None => None,
            Self::Sector512 => Some(512),
            Self::Block4096 => Some(4096),
        }
    }
}

/// How a power cut treats what was not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PowerCut {
    /// How much survives.
    pub keep: Keep,
    /// How writes tear, with [`Keep::Random`].
    pub torn: Torn,
    /// Whether a later change can survive an earlier one, with [`Keep::Random`].
    pub reorder: bool,
}

impl PowerCut {
    /// Exactly what was synced survives.
    pub const CLEAN: Self = Self {
        keep: Keep::None,
        torn: Torn::None,
        reorder: false,
    };
    /// Everything survives.
    pub const LUCKY: Self = Self {
        keep: Keep::All,
        torn: Torn::None,
        reorder: false,
    };
    /// Any subset of sectors survives.
    pub const HARSH: Self = Self {
        keep: Keep::Random,
        torn: Torn::Sector512,
        reorder: true,
    };
    /// All combinations that differ.
    pub const KINDS: [Self; 8] = [
        Self::CLEAN,
        Self::LUCKY,
        Self {
            keep: Keep::Random,
            torn: Torn::None,
            reorder: false,
        },
        Self {
            keep: Keep::Random,
            torn: Torn::Sector512,
            reorder: false,
        },
        Self {
            keep: Keep::Random,
            torn: Torn::Block4096,
            reorder: false,
        },
        Self {
            keep: Keep::Random,
            torn: Torn::None,
            reorder: true,
        },
        Self {
            keep: Keep::Random,
            torn: Torn::Block4096,
            reorder: true,
        },
        Self::HARSH,
    ];
}

/// A change that was not synced, of a file or of names.
enum Pending<'a> {
    File(InodeId, &'a Change),
    Names(&'a NameChange),
    /// One that is durable before an earlier one is: nothing is drawn for it.
    Forced(InodeId, &'a Change),
    ForcedNames(&'a NameChange),
}

impl Pending<'_> {
    const fn is_open(&self) -> bool {
        matches!(self, Self::File(..) | Self::Names(_))
    }
}

pub(super) fn power_cut(disk: &Disk, seed: u64, cut: PowerCut) -> Disk {
    let mut random = Random::new(seed);
    let mut images: BTreeMap<InodeId, Image> = disk
        .inodes
        .iter()
        .map(|(&id, inode)| (id, inode.durable.clone()))
        .collect();
    let mut names = disk.durable_names.clone();

    let mut pending: Vec<(u64, Pending<'_>)> = Vec::new();
    for (&id, inode) in &disk.inodes {
        let changes = inode.pending.iter();
        pending.extend(changes.map(|(sequence, change)| (*sequence, Pending::File(id, change))));
        let changes = inode.forced.iter();
        pending.extend(changes.map(|(sequence, change)| (*sequence, Pending::Forced(id, change))));
    }
    for PendingName {
        sequence,
        change,
        durable,
        ..
    } in &disk.pending_names
    {
        let change = match durable {
            true => Pending::ForcedNames(change),
            false => Pending::Names(change),
        };
        pending.push((*sequence, change));
    }
    // A part of a write that was forced comes behind the whole.
    pending.sort_by_key(|(sequence, change)| (*sequence, !change.is_open()));
    let open = pending.iter().filter(|(_, change)| change.is_open());
    let open = open.count() as u64;

    let in_order = cut.keep == Keep::Random && !cut.reorder;
    let survivors = match cut.keep {
        Keep::None => 0,
        Keep::Random if in_order => random.between(0, open),
        Keep::All | Keep::Random => open,
    };
    let weights: BTreeMap<InodeId, u64> = images
        .keys()
        .map(|&id| (id, random.between(0, WHOLE)))
        .collect();
    let names_weight = random.between(0, WHOLE);

    let mut next = 0;
    for (_, change) in &pending {
        let position = next;
        next += u64::from(change.is_open());
        let out_of_order = cut.keep == Keep::Random && cut.reorder;
        match change {
            Pending::Names(change) if position < survivors => {
                if !out_of_order || random.chance(names_weight, WHOLE) {
                    change.apply(&mut names);
                }
            }
            Pending::File(id, change) => {
                let image = images.get_mut(id).expect("every file has an image");
                if out_of_order {
                    keep_in_part(change, image, weights[id], cut.torn, &mut random);
                } else if position < survivors {
                    change.apply(image);
                } else if in_order && position == survivors {
                    keep_front(change, image, cut.torn, &mut random);
                }
            }
            Pending::Names(_) => {}
            Pending::ForcedNames(change) => change.apply(&mut names),
            Pending::Forced(id, change) => {
                change.apply(images.get_mut(id).expect("every file has an image"));
            }
        }
    }

    // A directory that was lost takes its files with it.
    let directories = std::mem::take(&mut names.directories);
    for name in directories {
        // Sorted: parents come before what is in them.
        if names.has_dir(parent_of(&name)) {
            names.directories.insert(name);
        }
    }
    let files = std::mem::take(&mut names.files);
    names.files = files
        .into_iter()
        .filter(|(name, _)| names.has_dir(parent_of(name)))
        .collect();
    Disk::after_restart(images, names, disk.space_limit)
}

/// Denominator of the weights.
const WHOLE: u64 = 4;

/// Out of order: each unit of a write on its own.
fn keep_in_part(change: &Change, image: &mut Image, weight: u64, torn: Torn, random: &mut Random) {
    match change {
        Change::Write { offset, bytes } => {
            let unit = torn.unit().unwrap_or(u64::MAX);
            for (at, position, count) in pieces(*offset, bytes.len(), unit) {
                if random.chance(weight, WHOLE) {
                    image.write(&bytes[position..position + count], at);
                }
            }
            // The new length may reach the disk without the bytes.
            let end = offset + bytes.len() as u64;
            if end > image.length() && random.chance(weight, 2 * WHOLE) {
                image.set_len(end);
            }
        }
        Change::SetLen { .. } | Change::Allocate { .. } => {
            if random.chance(weight, WHOLE) {
                change.apply(image);
            }
        }
    }
}

/// In order: the change that was under way when the power went, up to some unit.
fn keep_front(change: &Change, image: &mut Image, torn: Torn, random: &mut Random) {
    if let (Change::Write { offset, bytes }, Some(unit)) = (change, torn.unit()) {
        let units = pieces(*offset, bytes.len(), unit).count() as u64;
        let kept = usize::try_from(random.below(units + 1)).unwrap_or(usize::MAX);
        for (at, position, count) in pieces(*offset, bytes.len(), unit).take(kept) {
            image.write(&bytes[position..position + count], at);
        }
    }
}
