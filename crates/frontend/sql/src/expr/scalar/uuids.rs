//! The functions of `uuid-ossp`: universally unique identifiers of all kinds.
//!
//! Paper: RFC 4122. Differences: identifiers of version 1 have a random number for their node, with the bit that says so (4.5), not the address of a network card: they
//! tell nobody which machine they are from. It is the same as long as the process lives. Instead of another clock sequence an identifier gets a later instant, if the clock
//! has not gone on or was set back, so no two are the same.
//!
//! Layout: big-endian u32 low, u16 middle and u16 high part of the instant, with the version in its upper bits; u16 clock sequence, with the variant in its upper
//! bits; six bytes of the node.

use super::{Arguments, Entry, strict, volatile};
use crate::error::Result;
use md5::{Digest, Md5};
use ring::rand::{SecureRandom, SystemRandom};
use sha1::Sha1;
use std::sync::OnceLock;
use vellum_base::clock::calendar_micros;
use vellum_row::{Value, ValueRef};
use vellum_sync::Mutex;

/// The name spaces of RFC 4122 differ in one byte.
const fn name_space(number: u8) -> [u8; 16] {
    let mut bytes = *b"\x6b\xa7\xb8\x10\x9d\xad\x11\xd1\x80\xb4\x00\xc0\x4f\xd4\x30\xc8";
    bytes[3] = number;
    bytes
}

#[rustfmt::skip]
pub(crate) static ENTRIES: &[Entry] = &[
    strict(15_001, "uuid_nil", "", "uuid", |_| Ok(Value::Uuid([0; 16]))),
    strict(15_002, "uuid_ns_dns", "", "uuid", |_| Ok(Value::Uuid(name_space(0x10)))),
    strict(15_003, "uuid_ns_url", "", "uuid", |_| Ok(Value::Uuid(name_space(0x11)))),
    strict(15_004, "uuid_ns_oid", "", "uuid", |_| Ok(Value::Uuid(name_space(0x12)))),
    strict(15_005, "uuid_ns_x500", "", "uuid", |_| Ok(Value::Uuid(name_space(0x14)))),
    volatile(15_006, "uuid_generate_v1", "", "uuid", |_| of_time(None)),
    volatile(15_007, "uuid_generate_v1mc", "", "uuid", |_| of_time(Some(random_node()?))),
    strict(15_008, "uuid_generate_v3", "uuid text", "uuid", |a| {
        let hash = Md5::new().chain_update(space(a)).chain_update(a.text(1)).finalize();
        Ok(with_version(&hash, 3))
    }),
    volatile(15_009, "uuid_generate_v4", "", "uuid", |_| random_uuid()),
    strict(15_010, "uuid_generate_v5", "uuid text", "uuid", |a| {
        let hash = Sha1::new().chain_update(space(a)).chain_update(a.text(1)).finalize();
        Ok(with_version(&hash, 5))
    }),
];

fn space(a: &Arguments<'_>) -> [u8; 16] {
    match a.at(0) {
        ValueRef::Uuid(bytes) => bytes,
        _ => [0; 16],
    }
}

/// The first 16 of these bytes, with a version and the variant of RFC 4122.
fn with_version(bytes: &[u8], version: u8) -> Value {
    let mut own = [0; 16];
    own.copy_from_slice(&bytes[..16]);
    own[6] = own[6] & 0x0f | version << 4;
    own[8] = own[8] & 0x3f | 0x80;
    Value::Uuid(own)
}

/// Bytes of the system's generator.
///
/// # Errors
/// `58000` if there is none.
pub(crate) fn fill_random(bytes: &mut [u8]) -> Result<()> {
    let filled = SystemRandom::new().fill(bytes);
    filled.map_err(|_| super::fault("58000", "could not generate random values"))
}

pub(super) fn random_uuid() -> Result<Value> {
    let mut bytes = [0; 16];
    fill_random(&mut bytes)?;
    Ok(with_version(&bytes, 4))
}

/// A node that is no card's: it has the bits of those for many, and of those that nobody was given.
fn random_node() -> Result<[u8; 6]> {
    let mut node = [0; 6];
    fill_random(&mut node)?;
    node[0] |= 0x03;
    Ok(node)
}

/// What the identifiers of one process have in common.
struct Clock {
    node: [u8; 6],
    sequence: u16,
    /// The instant of the last one, in units of 100 ns since the calendar of 1582 began.
    last: Mutex<u64>,
}

/// Those units before 1970.
const BEFORE_UNIX: u64 = 0x01b2_1dd2_1381_4000;

/// An identifier of version 1, with a node of its own or the process's.
fn of_time(node: Option<[u8; 6]>) -> Result<Value> {
    static CLOCK: OnceLock<Clock> = OnceLock::new();
    let clock = match CLOCK.get() {
        Some(clock) => clock,
        None => {
            let mut sequence = [0; 2];
            fill_random(&mut sequence)?;
            let made = Clock {
                node: random_node()?,
                sequence: u16::from_be_bytes(sequence),
                last: Mutex::new(0),
            };
            CLOCK.get_or_init(|| made)
        }
    };
    let micros = u64::try_from(calendar_micros()).unwrap_or(0);
    let now = micros * 10 + BEFORE_UNIX;
    let instant = {
        let mut last = clock.last.lock();
        *last = now.max(*last + 1);
        *last
    };
    let mut bytes = [0; 16];
    bytes[..4].copy_from_slice(&(instant as u32).to_be_bytes());
    bytes[4..6].copy_from_slice(&((instant >> 32) as u16).to_be_bytes());
    bytes[6..8].copy_from_slice(&((instant >> 48) as u16).to_be_bytes());
    bytes[8..10].copy_from_slice(&clock.sequence.to_be_bytes());
    bytes[10..].copy_from_slice(&node.unwrap_or(clock.node));
    Ok(with_version(&bytes, 1))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    fn bytes(value: Value) -> [u8; 16] {
        match value {
            Value::Uuid(bytes) => bytes,
            other => panic!("{other:?}"),
        }
    }

    fn instant(uuid: &[u8; 16]) -> u64 {
        let high = u64::from(u16::from_be_bytes([uuid[6] & 0x0f, uuid[7]]));
        let middle = u64::from(u16::from_be_bytes([uuid[4], uuid[5]]));
        let low = u64::from(u32::from_be_bytes(uuid[..4].try_into().unwrap()));
        high << 48 | middle << 32 | low
    }

    #[test]
    fn identifiers_of_version_1_grow_and_have_one_node() {
        let all: Vec<_> = (0..1000).map(|_| bytes(of_time(None).unwrap())).collect();
        for pair in all.windows(2) {
            assert!(instant(&pair[0]) < instant(&pair[1]));
            assert_eq!(pair[0][8..], pair[1][8..]);
        }
        assert_eq!((all[0][6] >> 4, all[0][8] >> 6, all[0][10] & 3), (1, 2, 3));
        let now = calendar_micros() as u64 * 10 + BEFORE_UNIX;
        let late = now.abs_diff(instant(&all[999]));
        assert!(late < 3600 * 10_000_000, "{late}");
    }

    #[test]
    fn each_of_version_1mc_has_another_node() {
        let made = || bytes(of_time(Some(random_node().unwrap())).unwrap());
        let (one, other) = (made(), made());
        assert_ne!(one[10..], other[10..]);
        assert_eq!((one[10] & 3, other[10] & 3), (3, 3));
    }
}
