//! Memory of the operators: each statement's share, and that of all together.

use datafusion::common::Result;
use datafusion::execution::memory_pool::{
    FairSpillPool, GreedyMemoryPool, MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation,
};
use std::fmt;
use std::sync::Arc;

/// What hands batches from some threads to others. It keeps a few at a time, and is never refused: once it writes batches into files, those who read
/// and those who write may wait for each other for ever (DataFusion 55; seen with groups that are spilled, too).
const EXCHANGE: &str = "RepartitionExec";

/// A statement's memory. What can spill shares it evenly; nothing but exchanges between threads, which keep
/// a few batches and are never refused, grows past what is left to all statements together.
#[derive(Debug)]
pub(crate) struct StatementMemory {
    own: FairSpillPool,
    all: Arc<GreedyMemoryPool>,
}

impl StatementMemory {
    pub fn new(bytes: usize, all: Arc<GreedyMemoryPool>) -> Self {
        let own = FairSpillPool::new(bytes);
        Self { own, all }
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
        self.own.grow(reservation, additional);
        self.all.grow(reservation, additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.own.shrink(reservation, shrink);
        self.all.shrink(reservation, shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        if reservation.consumer().name().starts_with(EXCHANGE) {
            self.grow(reservation, additional);
            return Ok(());
        }
        self.own.try_grow(reservation, additional)?;
        let all = self.all.try_grow(reservation, additional);
        if all.is_err() {
            self.own.shrink(reservation, additional);
        }
        all
    }

    fn reserved(&self) -> usize {
        self.own.reserved()
    }

    fn memory_limit(&self) -> MemoryLimit {
        self.own.memory_limit()
    }
}
