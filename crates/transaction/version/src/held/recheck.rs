//! Looking at held tombstones again: those whose delete everyone sees go, the others in rounds (V60).
//!
//! Invariants: those of `held`.
//!
//! Concurrency: one collector at a time (V15), who has all of what [`Recheck`] borrows.

use super::{Entry, FIRST, Held, Kind, decode};
use crate::collect::{Collected, Patience, Step};
use crate::delta;
use crate::error::{Result, damaged};
use crate::fate::Fate;
use crate::pair;
use crate::settle::{Grave, Tools};
use crate::store::{Collecting, VersionStore, remove_temporary};
use vellum_base::Timestamp;
use vellum_base::planted::Bug;
use vellum_btree::{LeafCopy, Seek, Tree};
use vellum_gc::Horizon;
use vellum_txn::VersionStamp;

impl VersionStore {
    /// Looks at the held tombstones of a slot again: those whose delete everyone sees by now (`over`) go; the others too
    /// if a snapshot has ended and no other needs them.
    pub(crate) fn recheck(
        &self,
        collecting: &mut Collecting,
        horizon: &Horizon<'_>,
        over: Timestamp,
        step: &mut Step<'_>,
        collected: &mut Collected,
    ) -> Result<()> {
        let Collecting { held, tools, .. } = collecting;
        let Some(list) = held.tree.clone().filter(|_| held.count > 0) else {
            (held.sweep, held.patience) = (None, Patience::default());
            held.long.clear();
            return Ok(());
        };
        let recheck = Recheck {
            store: self,
            list: &list,
            held,
            tools,
            horizon,
            over,
            step,
            collected,
        };
        recheck.run()
    }
}

/// A look at the held tombstones of a slot: what it goes by, and what it changes.
struct Recheck<'r, 's, 'd> {
    store: &'r VersionStore,
    /// The entries.
    list: &'r Tree,
    held: &'r mut Held,
    tools: &'r mut Tools,
    horizon: &'r Horizon<'d>,
    /// Everyone sees deletes of stamps below it.
    over: Timestamp,
    step: &'r mut Step<'s>,
    collected: &'r mut Collected,
}

impl Recheck<'_, '_, '_> {
    fn run(mut self) -> Result<()> {
        self.purge()?;
        let (held, horizon) = (&mut *self.held, self.horizon);
        if let Some(seen) = self.tools.snapshots.take_lost(horizon.domain()) {
            // V62.
            held.ask_for_round(delta::key(seen, 0));
        }
        // V53. Asked before what is covered is looked at: what is taken back later is noticed next time.
        let restored = self.store.restored();
        if held.covered {
            let ended = |by: &VersionStamp| {
                let live = horizon.domain().log().slot(by.slot).lock();
                live.live_transaction().is_none_or(|it| it.0 != by.stamp)
            };
            if held.restored != restored || held.covering.iter().any(ended) {
                held.ask_for_round(FIRST);
            }
        }
        held.restored = restored;
        if held.sweep.is_none() {
            // A round that is under way is the look that patience was for.
            if held.patience.is_over(self.step.budget.is_lazy()) {
                held.ask_for_round(FIRST);
            }
            if let Some(from) = held.due.take() {
                // What is noted of entries before would be forgotten.
                let is_whole = held.covered || held.patience.has_failed();
                let from = if is_whole { FIRST } else { from };
                (held.covered, held.failed) = (false, false);
                held.covering.clear();
                held.sweep = Some(from.to_vec());
            }
        }
        self.sweep()?;
        self.look_far()
    }

    /// Looks at one of those with very many versions, to the end if it can be (V34). For maintenance, once a step: a commit does not wait for that.
    fn look_far(&mut self) -> Result<()> {
        if self.held.long.is_empty() || !self.step.budget.take_far_look() {
            return Ok(());
        }
        let mut entry = Vec::new();
        let name = loop {
            let Some(name) = self.held.long.pop() else {
                return Ok(());
            };
            if self.list.get(&name, &mut entry)? {
                break name;
            }
        };
        self.collected.more |= !self.held.long.is_empty();
        self.tools.looked = 0;
        let is_over = delta::decode_key(&name).is_some_and(|(stamp, _)| stamp < self.over);
        self.tools.looks_far = true;
        let looked = self.end_or_keep(&name, &entry, is_over);
        self.tools.looks_far = false;
        self.step.budget.charge(self.tools.looked as u32);
        looked
    }

    /// Ends the oldest ones, which everyone sees deleted.
    fn purge(&mut self) -> Result<()> {
        let bound = delta::key(self.over, 0);
        if self.over.is_zero() || bound.as_slice() <= self.held.purged.as_slice() {
            return Ok(());
        }
        let mut leaf = LeafCopy::new(self.store.context().page_size());
        let mut key = Vec::new();
        loop {
            self.list
                .read_leaf(Seek::AtOrAfter(&self.held.purged), &mut leaf)?;
            for index in leaf.position()..leaf.len() {
                leaf.key(index, &mut key);
                if key.as_slice() >= bound.as_slice() {
                    self.held.purged = bound.to_vec();
                    return Ok(());
                }
                let entry = leaf.payload(index);
                if !self.step.budget.spend(entry.len() as u64) {
                    self.collected.more = true;
                    return Ok(());
                }
                self.end_or_keep(&key, entry, true)?;
                self.held.purged.clone_from(&key);
                self.held.purged.push(0);
            }
            self.held.purged.clear();
            match leaf.upper_fence() {
                Some(fence) if fence < bound.as_slice() => {
                    self.held.purged.extend_from_slice(fence)
                }
                _ => {
                    self.held.purged.extend_from_slice(&bound);
                    return Ok(());
                }
            }
        }
    }

    /// Looks at an entry again, and removes it if nothing needs it any more. One that cannot be looked at stays (V59).
    fn end_or_keep(&mut self, name: &[u8], entry: &[u8], is_over: bool) -> Result<()> {
        let looked = self.look_again(name, entry, is_over);
        match looked {
            Ok(true) => {
                // V29. Looking twice at what a failure leaves is harmless.
                remove_temporary(self.list, name, &mut self.tools.hints)?;
                self.held.count = self.held.count.saturating_sub(1);
                self.collected.work += 1;
            }
            Ok(false) => {}
            Err(error) if error.concerns_one() => {
                self.step.first.note::<()>(Err(error));
                self.held.note_failure();
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Goes on with the round over all entries.
    fn sweep(&mut self) -> Result<()> {
        let mut leaf = LeafCopy::new(self.store.context().page_size());
        let mut key = Vec::new();
        while let Some(from) = self.held.sweep.clone() {
            self.list.read_leaf(Seek::AtOrAfter(&from), &mut leaf)?;
            for index in leaf.position()..leaf.len() {
                leaf.key(index, &mut key);
                let entry = leaf.payload(index);
                if !self.step.budget.spend(entry.len() as u64) {
                    self.collected.more = true;
                    self.held.sweep = Some(key);
                    return Ok(());
                }
                // Of those that everyone sees deleted by now the chain may be gone, which would say that somebody needs it.
                let is_over = delta::decode_key(&key).is_some_and(|(stamp, _)| stamp < self.over);
                self.end_or_keep(&key, entry, is_over)?;
            }
            self.held.sweep = leaf.upper_fence().map(<[u8]>::to_vec);
            if self.held.sweep.is_none() {
                self.held.patience.end_round(self.held.failed);
            }
        }
        Ok(())
    }

    /// Looks at one held tombstone; true if it needs no entry any more. One of very many versions that it was not looked at to the end is noted for [`Recheck::look_far`]: here,
    /// or, where it is in the main index, by who finds that nothing covers it.
    fn look_again(&mut self, name: &[u8], entry: &[u8], is_over: bool) -> Result<bool> {
        let Entry {
            kind, root, key, ..
        } = decode(entry, self.list)?;
        let (stamp, command) = delta::decode_key(name)
            .ok_or_else(|| damaged("key of held tombstones", self.list.root()))?;
        let delete = VersionStamp::new(self.step.slot, stamp, command);
        let (store, horizon) = (self.store, self.horizon);
        let dropped = store.dropped().read();
        if dropped.contains(root) {
            return Ok(true);
        }
        let tree = &self.tools.open(store, root);
        let grave = Grave { tree, key, delete };
        let fate = if is_over {
            Fate::Over
        } else if kind == Kind::Buried && store.has(Bug::PurgedTooEarly) {
            Fate::Dead
        } else {
            store.fate_of(&grave, kind, self.tools, horizon)?
        };
        if fate == Fate::Needed
            && self.tools.is_long
            && !self.tools.looks_far
            && kind == Kind::Buried
        {
            self.held.note_long(delta::key(stamp, command));
        }
        match kind {
            Kind::Main => {
                store.carry_out(&grave, fate, self.held, self.tools, horizon, self.step.log)
            }
            Kind::Buried if fate == Fate::Needed => Ok(false),
            Kind::Buried => {
                let graveyard = store.graveyards().find(root);
                let mut was_there = false;
                if let Some(graveyard) = graveyard {
                    if fate == Fate::Dead {
                        // V25: an older writer may not see the delete, and finds nothing from now on.
                        graveyard.note_drop(key, horizon.watermarks());
                    }
                    pair::encode(key, stamp, &mut self.tools.pair);
                    let Tools { pair, hints, .. } = &mut *self.tools;
                    was_there = graveyard.remove(pair, hints)?;
                }
                if !was_there {
                    // V29: the burial failed, and so did changing the entry back.
                    return store.carry_out(
                        &grave,
                        fate,
                        self.held,
                        self.tools,
                        horizon,
                        self.step.log,
                    );
                }
                if fate == Fate::Dead {
                    store.forget_versions(&grave, self.tools)?;
                }
                Ok(true)
            }
        }
    }
}
