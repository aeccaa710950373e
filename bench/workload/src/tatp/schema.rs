//! The tables of TATP: big-endian keys that sort as their columns do, values of fixed layout.
//!
//! Layout of keys (bytes): subscriber 4, type 1, start time 1; a subscriber's number is 15 digits. Columns that are in the
//! key are not in the value. What a transaction changes stands first in a value.

use crate::schema::{Key, row, tables};

tables! {
    0 SUBSCRIBER "tatp_subscriber": "(s)";
    1 SUBSCRIBER_BY_NUMBER "tatp_subscriber_by_number": "(number) → s";
    2 ACCESS_INFO "tatp_access_info": "(s, type)";
    3 SPECIAL_FACILITY "tatp_special_facility": "(s, type)";
    4 CALL_FORWARDING "tatp_call_forwarding": "(s, type, start time)";
    5 META "tatp_meta": "How the database was populated: one row under [`META_KEY`].";
}

/// Key of the row that describes the population.
pub const META_KEY: &[u8] = b"population";

/// Types of access infos and of special facilities are 1 to 4.
pub const TYPES: u8 = 4;
/// Hours at which a call forwarding may start.
pub const START_TIMES: [u8; 3] = [0, 8, 16];
/// A call forwarding ends at one of the hours from 1 to this.
pub const END_TIME_MAX: u8 = 24;
/// Digits of a subscriber's number.
pub const NUMBER_LENGTH: usize = 15;

/// Key of a subscriber; prefix of every key of what belongs to it.
#[inline]
pub fn subscriber_key(s: u32) -> [u8; 4] {
    s.to_be_bytes()
}

/// A subscriber's number, the key of its row of the index: its identifier with leading zeros.
#[inline]
pub fn number(s: u32) -> [u8; NUMBER_LENGTH] {
    let mut digits = [b'0'; NUMBER_LENGTH];
    let mut rest = s;
    for digit in digits.iter_mut().rev() {
        *digit += (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    digits
}

/// Key of an access info, and of a special facility.
#[inline]
pub fn typed_key(s: u32, kind: u8) -> [u8; 5] {
    Key::new().put(subscriber_key(s)).put([kind]).done()
}

/// Key of a call forwarding.
#[inline]
pub fn forwarding_key(s: u32, kind: u8, start: u8) -> [u8; 6] {
    Key::new().put(typed_key(s, kind)).put([start]).done()
}

/// The subscriber that a key of five or six bytes begins with.
#[inline]
pub fn subscriber_of<const N: usize>(key: &[u8; N]) -> u32 {
    let mut bytes = [0; 4];
    bytes.copy_from_slice(&key[..4]);
    u32::from_be_bytes(bytes)
}

row! {
    /// Columns of a subscriber.
    subscriber {
        /// Where it was seen last.
        VLR_LOCATION: u32,
        /// The flag that a transaction changes.
        BIT_1: u8,
        /// Flags 2 to 10.
        BITS: Bytes(9),
        /// Ten numbers below 16.
        HEXES: Bytes(10),
        /// Ten numbers below 256.
        BYTES: Bytes(10),
        /// Its switching centre.
        MSC_LOCATION: u32,
        /// Its number.
        SUB_NBR: Text(super::NUMBER_LENGTH),
    }
}

row! {
    /// Columns of an index entry.
    by_number {
        /// The subscriber.
        S_ID: u32,
    }
}

row! {
    /// Columns of an access info.
    access_info {
        /// Any number.
        DATA1: u8,
        /// Any number.
        DATA2: u8,
        /// Capital letters.
        DATA3: Text(3),
        /// Capital letters.
        DATA4: Text(5),
    }
}

row! {
    /// Columns of a special facility.
    special_facility {
        /// Any number; the one that a transaction changes.
        DATA_A: u8,
        /// 1 if it is active.
        IS_ACTIVE: u8,
        /// Any number.
        ERROR_CNTRL: u8,
        /// Capital letters.
        DATA_B: Text(5),
    }
}

row! {
    /// Columns of a call forwarding.
    call_forwarding {
        /// The hour at which it ends.
        END_TIME: u8,
        /// Where calls go to.
        NUMBERX: Text(super::NUMBER_LENGTH),
    }
}

row! {
    /// Columns of the description of the population.
    meta {
        /// Version of keys and rows.
        VERSION: u32,
        /// How many subscribers there are to be.
        SUBSCRIBERS: u32,
        /// How many are loaded.
        LOADED: u32,
        /// What the population follows from.
        SEED: u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_fifteen_digits_and_sort_as_subscribers_do() {
        assert_eq!(&number(0), b"000000000000000");
        assert_eq!(&number(1_205), b"000000000001205");
        assert_eq!(&number(u32::MAX), b"000004294967295");
        assert!(number(999) < number(1_000));
    }

    #[test]
    fn keys_sort_by_subscriber_type_and_start() {
        assert!(forwarding_key(1, 4, 16) < forwarding_key(256, 1, 0));
        assert!(forwarding_key(1, 2, 16) < forwarding_key(1, 3, 0));
        assert!(forwarding_key(1, 2, 8) < forwarding_key(1, 2, 16));
        assert_eq!(subscriber_of(&forwarding_key(77_000, 1, 0)), 77_000);
    }
}
