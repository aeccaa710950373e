//! The only place that reads a clock of the machine. Nothing durable and no decision about
//! visibility depends on what it returns.

use std::sync::OnceLock;
use std::time::Instant;

/// Nanoseconds since the first call in this process; never goes back.
pub fn monotonic_nanos() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    let start = *START.get_or_init(Instant::now);
    u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
