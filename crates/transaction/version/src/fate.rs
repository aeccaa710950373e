//! Does anybody need a deleted row? Its versions are looked at from the newest to the oldest.
//!
//! Paper: LeanStore §3.3 (dead zones). Difference: of whole rows, so that they are dropped and not buried.
//!
//! Invariants:
//! - V34 A version that cannot be reached, and a row with more versions than one likes to look at, count as needed. Of the latter maintenance looks at more, one row a step, without a latch:
//!   a transaction may make any number of versions of a row that it deletes in the end, and nobody sees one of them. Also of one in the main index, which is too long for a graveyard, or was covered
//!   until now: that no snapshot sees any of the versions between the delete and the first one stays true whatever becomes of the row meanwhile, and who takes the tombstone out finds it by name (V16).
//!   A chain that ends at a bound is another matter (V51): with more versions than are followed again under a latch it counts as needed.
//! - V51 A chain that ends at a bound says that the row is dead only if the row was plain when the chain was followed: the deltas of a
//!   fat row are in the row. And only of the chain that was followed: a row that turns fat and back may have other deltas under the same names.
//!   So who takes it out follows it again under the leaf's latch. (Interleavings without that: V has a bound and a
//!   newer delete D; an insert over D makes the row fat, with V and an older version that a snapshot sees; it is reverted; V's delta
//!   is not there, so the row is dropped. Or, while the collector goes from D's delta to V's: the insert drops V, puts the older version
//!   that a snapshot sees under D's name, is reverted, and the row is plain again; V's delta is not there, D's name is taken away with the
//!   version that is needed.) A buried row stays what it is.
//!
//! Concurrency: takes no latch. Below a committed delete that is the row's newest version nothing changes but that the row
//! is decomposed, or that versions go that everyone sees replaced; both are noticed as a delta that is not there.

use crate::delta::{self, DeltaName};
use crate::error::{Result, damaged};
use crate::fat::layout::{FatRow, Step as FatStep};
use crate::held::Kind;
use crate::pair;
use crate::row::{Header, Shape, Writer};
use crate::settle::{Grave, Tools};
use crate::shortcut::Shortcut;
use crate::store::VersionStore;
use vellum_base::PageId;
use vellum_base::planted::Bug;
use vellum_btree::Tree;
use vellum_gc::{Horizon, OpenSnapshots};
use vellum_txn::VersionStamp;

/// Versions of a row that are looked at before it counts as needed.
pub(crate) const VERSIONS_MAX: usize = 256;
/// The same of the one row that a step of maintenance looks at again: some milliseconds.
const VERSIONS_FAR: usize = 16_384;

/// What is to become of a tombstone that every OLTP snapshot sees.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    /// Every snapshot sees the delete: its deltas go with their ranges.
    Over,
    /// No snapshot sees any version.
    Dead,
    /// Some snapshot may.
    Needed,
}

impl Fate {
    fn of_row(is_dead: bool) -> Self {
        if is_dead { Self::Dead } else { Self::Needed }
    }
}

/// The generations of a row, from the newest to the oldest: an insert over a tombstone that was not settled continues the
/// chain.
struct Generations {
    /// The delete that ended the one at hand.
    end: VersionStamp,
    /// Its oldest version so far.
    oldest: Option<VersionStamp>,
}

impl Generations {
    fn until(end: VersionStamp) -> Self {
        Self { end, oldest: None }
    }

    /// Looks at the next older version; the fate of the row if that is known.
    fn step(
        &mut self,
        older: &Header,
        snapshots: &mut OpenSnapshots,
        horizon: &Horizon<'_>,
    ) -> std::result::Result<(), Fate> {
        let is_tombstone = older.shape.tombstone;
        let Some(Writer { version, first }) = older.writer else {
            // Everyone sees, or saw, this one.
            let is_dead = if is_tombstone {
                self.is_dead(snapshots, horizon)
            } else {
                snapshots.is_row_dead(horizon, None, &self.end)
            };
            return Err(Fate::of_row(is_dead));
        };
        if !is_tombstone {
            self.oldest = Some(version);
        }
        if is_tombstone || first {
            let is_dead = self.is_dead(snapshots, horizon);
            // Asked of the list, too: watermarks may tell of a snapshot that has ended, and whoever a "needed" is for must be on it (I2).
            if !is_dead
                || first
                || horizon.is_frozen(&version)
                || snapshots.is_row_dead(horizon, None, &version)
            {
                return Err(Fate::of_row(is_dead));
            }
            *self = Self::until(version);
        }
        Ok(())
    }

    /// True if no snapshot sees the generation at hand. (Without a version, nobody sees one.)
    fn is_dead(&self, snapshots: &mut OpenSnapshots, horizon: &Horizon<'_>) -> bool {
        self.oldest
            .as_ref()
            .is_none_or(|oldest| snapshots.is_row_dead(horizon, Some(oldest), &self.end))
    }
}

/// What following the deltas came to.
enum Walk {
    Known(Fate),
    /// A delta is not there. The fate, if it was swept: behind a version with this bound nobody sees anything. But of a fat row
    /// the deltas are not there, either.
    Ended(Option<(Fate, Header)>),
}

impl VersionStore {
    /// Whether any snapshot sees a version of the row before the delete, which every OLTP snapshot sees. Leaves the names of
    /// its deltas in `tools`, and (V51) where the chain ends, if the answer holds only while the row is plain.
    pub(crate) fn fate_of(
        &self,
        grave: &Grave<'_>,
        kind: Kind,
        tools: &mut Tools,
        horizon: &Horizon<'_>,
    ) -> Result<Fate> {
        tools.ends_at = None;
        let walk = self.fate_of_chain(&grave.delete, tools, horizon)?;
        tools.looked = tools.names.len();
        let mut fate = match walk {
            Walk::Known(fate) => fate,
            Walk::Ended(if_plain) => self.fate_of_fat(grave, kind, tools, horizon, if_plain)?,
        };
        if kind == Kind::Main && tools.ends_at.is_some() && tools.names.len() > VERSIONS_MAX {
            // V34: it cannot be followed again.
            fate = Fate::Needed;
        }
        if self.has(Bug::DroppedTooEarly) {
            return Ok(Fate::Dead);
        }
        Ok(fate)
    }

    /// As [`VersionStore::fate_of`], where every version but the newest is a delta.
    fn fate_of_chain(
        &self,
        delete: &VersionStamp,
        tools: &mut Tools,
        horizon: &Horizon<'_>,
    ) -> Result<Walk> {
        tools.names.clear();
        tools.is_long = false;
        let most = match tools.looks_far {
            true => VERSIONS_FAR,
            false => VERSIONS_MAX,
        };
        let mut newer = Header::stamped(Shape::DELETED, *delete, false);
        let mut generations = Generations::until(*delete);
        while tools.names.len() < most {
            let found = self.delta_behind(&newer, &mut tools.entry, &mut tools.hints, true)?;
            let Some(name) = found else {
                // What was swept between a bound and the version that it is of, nobody sees.
                let is_first = matches!(newer.shortcut, Shortcut::Absent(_));
                let snapshots = &mut tools.snapshots;
                return Ok(Walk::Ended(is_first.then(|| {
                    let is_dead = generations.is_dead(snapshots, horizon);
                    (Fate::of_row(is_dead), newer)
                })));
            };
            tools.names.push(name);
            newer = delta::predecessor(&tools.entry).ok_or_else(|| {
                let deltas = self.deltas(name.version.slot, name.home);
                damaged("delta", deltas.map_or(PageId::ZERO, Tree::root))
            })?;
            if let Err(fate) = generations.step(&newer, &mut tools.snapshots, horizon) {
                return Ok(Walk::Known(fate));
            }
            vellum_sync::test_point!("fate: between two deltas");
        }
        tools.is_long = true;
        Ok(Walk::Known(Fate::Needed))
    }

    /// As [`VersionStore::fate_of`], for a row whose versions are not (all) deltas: it is fat, or everyone sees the version
    /// whose delta is missing, or that was swept.
    #[cold]
    fn fate_of_fat(
        &self,
        grave: &Grave<'_>,
        kind: Kind,
        tools: &mut Tools,
        horizon: &Horizon<'_>,
        if_plain: Option<(Fate, Header)>,
    ) -> Result<Fate> {
        let Grave { tree, key, delete } = *grave;
        let mut row = std::mem::take(&mut tools.row);
        let found = match kind {
            Kind::Main => tree.get_near(key, &mut row, &mut tools.hints, true)?,
            Kind::Buried => match self.graveyards().find(tree.root()) {
                Some(graveyard) => {
                    pair::encode(key, delete.stamp, &mut tools.pair);
                    graveyard.get(&tools.pair, &mut row)?
                }
                None => false,
            },
        };
        let row_found = found.then_some(&row);
        let fate = self.fate_in_row(row_found, &delete, tools, horizon, if_plain);
        tools.row = row;
        fate.ok_or_else(|| damaged("fat row", tree.root()).into())
    }

    fn fate_in_row(
        &self,
        row: Option<&Vec<u8>>,
        delete: &VersionStamp,
        tools: &mut Tools,
        horizon: &Horizon<'_>,
        if_plain: Option<(Fate, Header)>,
    ) -> Option<Fate> {
        let names = std::mem::take(&mut tools.names);
        let Some(row) = row else {
            return Some(Fate::Needed);
        };
        let header = Header::decode(row)?;
        match header.writer {
            Some(writer) if writer.version == *delete && writer.first => {
                // What was before the delete was pruned: nobody needs it.
                return Some(Fate::Dead);
            }
            Some(writer) if writer.version == *delete && header.fat => {}
            Some(writer) if writer.version == *delete && if_plain.is_some() => {
                let (fate, ends_at) = if_plain?;
                (tools.names, tools.ends_at) = (names, Some(ends_at));
                return Some(fate);
            }
            _ => return Some(Fate::Needed),
        }
        let fat = FatRow::decode(row)?;
        let mut generations = Generations::until(*delete);
        let mut fate = None;
        for version in fat.old_versions() {
            let version = version.ok()?;
            if let FatStep::Copy(name) = version.step {
                tools.names.push(DeltaName::lasting(name));
            }
            if fate.is_none() {
                let step = generations.step(&version.header, &mut tools.snapshots, horizon);
                fate = step.err();
            }
        }
        // The oldest version is the first, or everyone sees it (F1).
        Some(fate.unwrap_or(Fate::Needed))
    }
}
