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

/// Microseconds since 1970-01-01 00:00:00 UTC by the machine's calendar clock, which may jump. For users to look at.
pub fn calendar_micros() -> i64 {
    let now = std::time::SystemTime::now();
    match now.duration_since(std::time::UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_micros()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_micros()).map_or(i64::MIN, |us| -us),
    }
}
