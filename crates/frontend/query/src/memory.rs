//! Memory of the operators: each statement's share, and that of all together.

use datafusion::common::Result;
use datafusion::execution::memory_pool::{
    FairSpillPool, GreedyMemoryPool, MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation,
};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What hands batches on, and keeps a few at a time; it is never refused. What hands them from some threads to others would write batches into files, and those who read
/// and those who write may wait for each other for ever then (DataFusion 55; seen with groups that are spilled, too). What merges parts that are in order keeps a batch of each, and cannot
/// do without: the sorts below may have all that there is.
const EXCHANGES: [&str; 2] = ["RepartitionExec", "SortPreservingMergeExec"];

/// A statement's memory. What can spill shares it evenly, but for a quarter, which is left to what cannot: sorts take what they get and keep it until their last row is gone, and what is
/// above them would have nothing. Nothing but [`EXCHANGES`], which keep
/// a few batches and are never refused, grows past what is left to all statements together.
#[derive(Debug)]
pub(crate) struct StatementMemory {
    own: Arc<FairSpillPool>,
    all: Arc<GreedyMemoryPool>,
    /// What cannot spill.
    firm: Mutex<Firm>,
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
    pub fn new(bytes: usize, all: Arc<GreedyMemoryPool>) -> Self {
        let own = Arc::new(FairSpillPool::new(bytes));
        let pool: Arc<dyn MemoryPool> = own.clone();
        let firm = Firm {
            bytes: 0,
            least: bytes / 4,
            rest: MemoryConsumer::new("what cannot spill").register(&pool),
        };
        firm.keep_rest();
        let firm = Mutex::new(firm);
        Self { own, all, firm }
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
        self.own.register(consumer);
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.own.unregister(consumer);
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
        if EXCHANGES.iter().any(|exchange| name.starts_with(exchange)) {
            self.grow(reservation, additional);
            return Ok(());
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
        let pool: Arc<dyn MemoryPool> = Arc::new(StatementMemory::new(1000, all.clone()));
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
}
