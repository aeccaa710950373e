//! Slots that are kept back, for who has to get in while all others are taken.
//!
//! They are the last ones, by their numbers. So who begins writes nothing that others write, and counts nothing: a transaction that is to leave them, and was
//! given one of them (they are opened last, but a thread takes the slot first that it had last), gives it back, and takes another one before that, if there
//! is one.
//!
//! Concurrency: who has one for that moment may be in the way of whom it is kept for, who looks again when he is told of the slot, or waits no longer
//! than [`PAUSE`] for him. Waiting here is looking now and then: the queue of those who wait for slots tells of any slot, and who cannot take it would have to hand
//! the news on.

use crate::database::{Database, inner_options};
use crate::error::Result;
use crate::options::TransactionOptions;
use std::time::Duration;
use vellum_base::SlotId;
use vellum_base::clock::monotonic_nanos;
use vellum_sync::thread;
use vellum_txn::{Transaction, TransactionError};

/// How long passes between two looks for a slot.
const PAUSE: Duration = Duration::from_millis(5);

impl Database {
    /// Whether a slot is one of those that are kept back.
    #[inline]
    pub(crate) fn is_reserved(&self, slot: SlotId) -> bool {
        let config = &self.engine().config;
        slot.get() >= config.slots_max - config.slots_reserved
    }

    /// Begins a transaction in a slot that is not kept back, instead of one that was begun in such.
    ///
    /// # Errors
    /// `Timeout` with the number of slots.
    #[cold]
    pub(crate) fn begin_elsewhere(
        &self,
        refused: Transaction,
        options: TransactionOptions,
        timeout: Duration,
    ) -> Result<Transaction> {
        let engine = self.engine();
        let start = monotonic_nanos();
        // Those that are kept back are held meanwhile, so that none is found twice.
        let mut held = vec![refused];
        loop {
            let found = loop {
                match engine.manager.begin(inner_options(options), Duration::ZERO) {
                    Ok(inner) if self.is_reserved(inner.slot()) => held.push(inner),
                    found => break found,
                }
            };
            held.clear();
            let waited = Duration::from_nanos(monotonic_nanos() - start);
            match found {
                Err(TransactionError::SlotsExhausted {
                    taken, slots_max, ..
                }) => {
                    let Some(rest) = timeout.checked_sub(waited).filter(|rest| !rest.is_zero())
                    else {
                        return Err(TransactionError::SlotsExhausted {
                            taken,
                            slots_max,
                            waited: timeout,
                        }
                        .into());
                    };
                    thread::sleep(PAUSE.min(rest));
                }
                found => return Ok(found?),
            }
        }
    }
}
