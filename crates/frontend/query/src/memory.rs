//! Memory of the operators: each statement's share, and that of all together.

use datafusion::common::{DataFusionError, Result};
use datafusion::execution::memory_pool::{
    FairSpillPool, GreedyMemoryPool, MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation,
};
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What hands batches on, and keeps a few at a time; it is never refused. What hands them from some threads to others would write batches into files, and those who read
/// and those who write may wait for each other for ever then (DataFusion 55; seen with groups that are spilled, too). What merges parts that are in order keeps a batch of each, and cannot
/// do without: the sorts below may have all that there is.
const EXCHANGES: [&str; 2] = ["RepartitionExec", "SortPreservingMergeExec"];

fn is_exchange(name: &str) -> bool {
    EXCHANGES.iter().any(|exchange| name.starts_with(exchange))
}

/// What sorts merge their runs with, those in files too: it opens as many of these as it has memory for.
const MERGES: &str = "ExternalSorterMerge";

/// A statement's memory. What can spill shares it evenly, but for a quarter, which is left to what cannot: sorts take what they get and keep it until their last row is gone, and what is
/// above them would have nothing. Nothing but [`EXCHANGES`], which keep
/// a few batches and are never refused, grows past what is left to all statements together.
#[derive(Debug)]
pub(crate) struct StatementMemory {
    own: Arc<FairSpillPool>,
    all: Arc<GreedyMemoryPool>,
    /// What cannot spill.
    firm: Mutex<Firm>,
    merges: Merges,
    bytes: usize,
    /// How many there are that can spill.
    spilling: AtomicUsize,
}

/// How much sorts may merge with.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Merges {
    /// As much as there is.
    All,
    /// Each as much as a sort may keep, and so many bytes at least, half of the memory together: of sorts that merge beside others which have not got all their rows (those of joins by sorting),
    /// the first ones would take what the others cannot do without. What is sorted takes half as much again while it is merged.
    Share(usize),
}

#[derive(Debug)]
struct Firm {
    /// Bytes that it has.
    bytes: usize,
    /// Bytes that are left to it at least.
    least: usize,
    /// What of these it has not taken, taken in its place.
    rest: MemoryReservation,
}

impl Firm {
    /// Takes in its place what it has not taken.
    fn keep_rest(&self) {
        // Shrinks never fail, and what grows had been there before.
        self.rest.resize(self.least.saturating_sub(self.bytes));
    }
}

impl StatementMemory {
    pub fn new(bytes: usize, all: Arc<GreedyMemoryPool>, merges: Merges) -> Self {
        let own = Arc::new(FairSpillPool::new(bytes));
        let pool: Arc<dyn MemoryPool> = own.clone();
        let least = match merges {
            Merges::All => bytes / 4,
            Merges::Share(_) => bytes / 2,
        };
        let firm = Firm {
            bytes: 0,
            least,
            rest: MemoryConsumer::new("what cannot spill").register(&pool),
        };
        firm.keep_rest();
        let firm = Mutex::new(firm);
        Self {
            own,
            all,
            firm,
            merges,
            bytes,
            spilling: AtomicUsize::new(0),
        }
    }

    /// Whether what can spill is shared with it: where sorts have little, not with [`EXCHANGES`], which need none.
    fn has_share(&self, consumer: &MemoryConsumer) -> bool {
        matches!(self.merges, Merges::All) || !is_exchange(consumer.name())
    }

    /// Bytes that one that merges may have; `None`: what there is.
    fn merge_bytes(&self) -> Option<usize> {
        let Merges::Share(least) = self.merges else {
            return None;
        };
        // Relaxed: a count, which orders nothing.
        let spilling = self.spilling.load(Ordering::Relaxed).max(1);
        Some((self.bytes / 2 / spilling).max(least))
    }

    /// What cannot spill, if that is who asks.
    fn firm(&self, reservation: &MemoryReservation) -> Option<MutexGuard<'_, Firm>> {
        let firm = (!reservation.consumer().can_spill()).then(|| self.firm.lock());
        firm.map(|locked| locked.unwrap_or_else(PoisonError::into_inner))
    }
}

impl fmt::Display for StatementMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.own, self.all)
    }
}

impl MemoryPool for StatementMemory {
    fn name(&self) -> &str {
        "statement"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        if self.has_share(consumer) {
            self.spilling
                .fetch_add(consumer.can_spill().into(), Ordering::Relaxed);
            self.own.register(consumer);
        }
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        if self.has_share(consumer) {
            self.spilling
                .fetch_sub(consumer.can_spill().into(), Ordering::Relaxed);
            self.own.unregister(consumer);
        }
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        let firm = self.firm(reservation);
        self.own.grow(reservation, additional);
        if let Some(mut firm) = firm {
            firm.bytes += additional;
            firm.keep_rest();
        }
        self.all.grow(reservation, additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        let firm = self.firm(reservation);
        self.own.shrink(reservation, shrink);
        if let Some(mut firm) = firm {
            firm.bytes -= shrink;
            firm.keep_rest();
        }
        self.all.shrink(reservation, shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        let name = reservation.consumer().name();
        if is_exchange(name) {
            self.grow(reservation, additional);
            return Ok(());
        }
        if name.starts_with(MERGES)
            && let Some(most) = self.merge_bytes()
            && reservation.size().saturating_add(additional) > most
        {
            let text = format!("no more than {most} bytes may be merged with at a time");
            return Err(DataFusionError::ResourcesExhausted(text));
        }
        self.all.try_grow(reservation, additional)?;
        let mut firm = self.firm(reservation);
        if let Some(firm) = &mut firm {
            let rest = firm.rest.size();
            if additional <= rest {
                // Taken before it is given up: others would have it in between.
                self.own.grow(reservation, additional);
                firm.bytes += additional;
                firm.keep_rest();
                return Ok(());
            }
            firm.rest.resize(0);
        }
        let grown = self.own.try_grow(reservation, additional);
        if let Some(mut firm) = firm {
            firm.bytes += if grown.is_ok() { additional } else { 0 };
            firm.keep_rest();
        }
        if grown.is_err() {
            self.all.shrink(reservation, additional);
        }
        grown
    }

    fn reserved(&self) -> usize {
        self.own.reserved()
    }

    fn memory_limit(&self) -> MemoryLimit {
        self.own.memory_limit()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_spill_has_room_beside_what_can() -> Result<()> {
        let all = Arc::new(GreedyMemoryPool::new(1 << 20));
        let memory = StatementMemory::new(1000, all.clone(), Merges::All);
        let pool: Arc<dyn MemoryPool> = Arc::new(memory);
        let sort = MemoryConsumer::new("sort")
            .with_can_spill(true)
            .register(&pool);
        let group = MemoryConsumer::new("group").register(&pool);
        assert!(sort.try_grow(751).is_err());
        sort.try_grow(750)?;
        assert!(sort.try_grow(1).is_err());
        let other = MemoryConsumer::new("other sort")
            .with_can_spill(true)
            .register(&pool);
        assert!(sort.try_grow(1).is_err());
        sort.shrink(375);
        other.try_grow(375)?;
        assert!(other.try_grow(1).is_err(), "each has its share of the rest");
        group.try_grow(250)?;
        assert!(group.try_grow(1).is_err(), "the pool is full");
        sort.shrink(75);
        group.try_grow(75)?;
        assert!(sort.try_grow(75).is_err());
        group.shrink(325);
        sort.try_grow(75)?;
        assert!(sort.try_grow(1).is_err(), "it is left to the group again");
        group.try_grow(250)?;
        let merge = MemoryConsumer::new("RepartitionExec[0]").register(&pool);
        merge.try_grow(5000)?;
        assert_eq!(all.reserved(), 750 + 250 + 5000);
        drop((sort, other, group, merge));
        assert_eq!(all.reserved(), 0);
        Ok(())
    }
    #[test]
    fn merges_leave_to_others_what_they_need() -> Result<()> {
        let all = Arc::new(GreedyMemoryPool::new(1 << 20));
        let memory = StatementMemory::new(8000, all, Merges::Share(100));
        let pool: Arc<dyn MemoryPool> = Arc::new(memory);
        let sort = |name: &str| {
            MemoryConsumer::new(name)
                .with_can_spill(true)
                .register(&pool)
        };
        let sorts = [sort("ExternalSorter[0]"), sort("ExternalSorter[1]")];
        let merge = MemoryConsumer::new("ExternalSorterMerge[0]").register(&pool);
        assert!(merge.try_grow(2001).is_err());
        merge.try_grow(2000)?;
        assert!(merge.try_grow(1).is_err());
        sorts[0].try_grow(2000)?;
        assert!(sorts[0].try_grow(1).is_err());
        sorts[1].try_grow(2000)?;
        drop(sorts);
        merge.try_grow(2000)?;
        let many: Vec<MemoryReservation> = (0..600).map(|_| sort("ExternalSorter[2]")).collect();
        let other = MemoryConsumer::new("ExternalSorterMerge[1]").register(&pool);
        other.try_grow(100)?;
        assert!(other.try_grow(1).is_err());
        drop(many);
        Ok(())
    }
}
