//! What a session draws: numbers that are quick, and bytes that nobody can guess.
//!
//! `random()` is a generator that tells its state to whoever sees enough of it, as PostgreSQL's does. Identifiers (`gen_random_uuid`) are taken for secrets: for
//! tokens, for names of what is found by those who were told only. They are bytes of the system's generator.
//!
//! Cost: a call of the system for [`BUFFERED`] bytes, not for each identifier. Bytes are handed out once, and not kept.

use crate::error::Result;
use crate::expr::fill_random;
use vellum_base::random::Random;

/// Bytes that are drawn of the system at once: 16 identifiers.
const BUFFERED: usize = 256;

#[derive(Debug)]
pub(crate) struct Randomness {
    quick: Random,
    secret: Secret,
}

/// Bytes from the system; the last `left` of them were not handed out.
struct Secret {
    bytes: [u8; BUFFERED],
    left: usize,
}

/// Tells nothing: it ends up in logs.
impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Secret").finish_non_exhaustive()
    }
}

impl Randomness {
    pub fn new() -> Self {
        Self {
            quick: Random::new(Random::fresh_seed()),
            secret: Secret {
                bytes: [0; BUFFERED],
                left: 0,
            },
        }
    }

    /// At least 0, below 1: each multiple of 2^-53 is as likely.
    pub fn fraction(&mut self) -> f64 {
        let bits = self.quick.next_u64() >> 11;
        bits as f64 / (1u64 << 53) as f64
    }

    /// An identifier of version 4, variant 1 (RFC 4122).
    ///
    /// # Errors
    /// `58000` if the system gives no random bytes.
    pub fn uuid(&mut self) -> Result<[u8; 16]> {
        let mut uuid = self.secret.take()?;
        uuid[6] = uuid[6] & 0x0f | 0x40;
        uuid[8] = uuid[8] & 0x3f | 0x80;
        Ok(uuid)
    }
}

impl Secret {
    fn take(&mut self) -> Result<[u8; 16]> {
        const { assert!(BUFFERED.is_multiple_of(16), "nothing is left over") };
        if self.left == 0 {
            fill_random(&mut self.bytes)?;
            self.left = BUFFERED;
        }
        let start = BUFFERED - self.left;
        let mut taken = [0; 16];
        taken.copy_from_slice(&self.bytes[start..start + 16]);
        self.bytes[start..start + 16].fill(0);
        self.left -= 16;
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    #[test]
    fn identifiers_are_drawn_of_the_system_whatever_the_quick_generator_does() {
        let mut ours = Randomness::new();
        let mut twin = Randomness {
            quick: ours.quick.clone(),
            ..Randomness::new()
        };
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..100 {
            let uuid = ours.uuid().unwrap();
            assert_eq!((uuid[6] >> 4, uuid[8] >> 6), (4, 2));
            assert!(seen.insert(uuid), "drawn twice");
            assert!(seen.insert(twin.uuid().unwrap()), "the twin knew it");
        }
        // Nor does `random()` tell what was drawn.
        assert_eq!(ours.fraction().to_bits(), twin.fraction().to_bits());
        let mut kept = ours.secret.bytes.chunks(16);
        assert!(kept.all(|bytes| !seen.contains(bytes)));
    }
}
