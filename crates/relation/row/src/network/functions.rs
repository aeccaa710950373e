//! What functions and operators do with addresses.

use super::text::{write_host, write_inet, write_octets, write_prefix};
use super::{Inet, mask};
use crate::error::{Result, SqlError, SqlState};
use std::fmt::Write;

#[cold]
fn different(verb: &str) -> SqlError {
    let message = format!("cannot {verb} inet values of different sizes");
    SqlError::new(SqlState::INVALID_PARAMETER, message)
}

#[cold]
fn out_of_range() -> SqlError {
    SqlError::new(SqlState::NUMERIC_OUT_OF_RANGE, "result is out of range")
}

impl Inet {
    /// The network: without the bits behind the prefix. What makes a `cidr` of an `inet`.
    pub fn network(self) -> Self {
        self.with_word(self.word() & mask(self.bits))
    }

    /// The last address of the network.
    pub fn broadcast(self) -> Self {
        self.with_word(self.word() | !mask(self.bits))
    }

    /// The bits of the prefix as an address.
    pub fn netmask(self) -> Self {
        self.whole().with_word(mask(self.bits))
    }

    /// All others.
    pub fn hostmask(self) -> Self {
        self.whole().with_word(!mask(self.bits))
    }

    /// With all of its bits as the prefix.
    fn whole(self) -> Self {
        let bits = self.bits_max();
        Self { bits, ..self }
    }

    /// With a prefix of another length; -1 stands for the whole address.
    ///
    /// # Errors
    /// 22023 for one that is longer than the address.
    pub fn with_bits(self, bits: i32) -> Result<Self> {
        let own = u8::try_from(bits)
            .ok()
            .filter(|bits| *bits <= self.bits_max());
        match own {
            Some(bits) => Ok(Self { bits, ..self }),
            None if bits == -1 => Ok(self.whole()),
            None => {
                let message = format!("invalid mask length: {bits}");
                Err(SqlError::new(SqlState::INVALID_PARAMETER, message))
            }
        }
    }

    /// The address alone, as text.
    pub fn host(self) -> String {
        let mut out = String::new();
        write_host(self, &mut out);
        out
    }

    /// Address and prefix, as a cast to text writes them.
    pub fn shown(self) -> String {
        let mut out = self.host();
        write_prefix(self, &mut out);
        out
    }

    /// An `inet` in short: as it is written.
    pub fn abbreviated(self) -> String {
        let mut out = String::new();
        write_inet(self, &mut out);
        out
    }

    /// A `cidr` in short: without what is behind the prefix.
    pub fn abbreviated_network(self) -> String {
        let mut out = String::new();
        let network = self.network();
        let bytes = network.bytes();
        if self.v6 {
            abbreviate_v6(bytes, self.bits, &mut out);
        } else if self.bits == 0 {
            out.push('0');
        } else {
            write_octets(&bytes[..usize::from(self.bits).div_ceil(8)], &mut out);
        }
        write_prefix(self, &mut out);
        out
    }

    /// Whether both are of one family.
    pub fn is_of_family(self, other: Self) -> bool {
        self.v6 == other.v6
    }

    /// The smallest network that holds both.
    ///
    /// # Errors
    /// 22023 for addresses of two families.
    pub fn merge(self, other: Self) -> Result<Self> {
        if self.v6 != other.v6 {
            let message = "cannot merge addresses from different families";
            return Err(SqlError::new(SqlState::INVALID_PARAMETER, message));
        }
        let common = (self.word() ^ other.word()).leading_zeros() as u8;
        let bits = common.min(self.bits).min(other.bits);
        Ok(Self { bits, ..self }.network())
    }

    /// `<<`: whether its network is a part of the other one's, which is larger.
    pub fn is_within(self, other: Self) -> bool {
        self.bits > other.bits && self.agrees(other, other.bits)
    }

    /// `<<=`: whether its network is a part of the other one's, or the same.
    pub fn is_within_or_equals(self, other: Self) -> bool {
        self.bits >= other.bits && self.agrees(other, other.bits)
    }

    /// `&&`: whether one's network is a part of the other's.
    pub fn overlaps(self, other: Self) -> bool {
        self.agrees(other, self.bits.min(other.bits))
    }

    /// `~`
    #[must_use]
    pub fn inverted(self) -> Self {
        self.with_word(!self.word())
    }

    /// `&`
    ///
    /// # Errors
    /// 22023 for addresses of two families.
    pub fn and(self, other: Self) -> Result<Self> {
        let both = self.longer(other, "AND")?;
        Ok(both.with_word(self.word() & other.word()))
    }

    /// `|`
    ///
    /// # Errors
    /// As [`Inet::and`].
    pub fn or(self, other: Self) -> Result<Self> {
        let both = self.longer(other, "OR")?;
        Ok(both.with_word(self.word() | other.word()))
    }

    /// With the longer one of two prefixes.
    fn longer(self, other: Self, verb: &str) -> Result<Self> {
        if self.v6 != other.v6 {
            return Err(different(verb));
        }
        let bits = self.bits.max(other.bits);
        Ok(Self { bits, ..self })
    }

    /// The address as a number.
    fn number(self) -> u128 {
        self.word() >> (128 - u32::from(self.bits_max()))
    }

    /// The address so many further on.
    ///
    /// # Errors
    /// 22003 if there is none.
    pub fn plus(self, count: i64) -> Result<Self> {
        let sum = self.number().checked_add_signed(i128::from(count));
        let sum = sum.filter(|sum| self.v6 || *sum <= u128::from(u32::MAX));
        let sum = sum.ok_or_else(out_of_range)?;
        Ok(self.with_word(sum << (128 - u32::from(self.bits_max()))))
    }

    /// The address so many before; the least of all numbers has no opposite and counts as itself.
    ///
    /// # Errors
    /// 22003 if there is none.
    pub fn minus(self, count: i64) -> Result<Self> {
        self.plus(count.wrapping_neg())
    }

    /// How many addresses it is behind the other one.
    ///
    /// # Errors
    /// 22023 for addresses of two families, 22003 for a number that is none of 64 bits.
    pub fn distance(self, other: Self) -> Result<i64> {
        if self.v6 != other.v6 {
            return Err(different("subtract"));
        }
        let distance = self.number().wrapping_sub(other.number()) as i128;
        i64::try_from(distance).map_err(|_| out_of_range())
    }
}

/// The words that the prefix reaches into, as PostgreSQL's `inet_cidr_ntop` writes them. A run of zeros that is not longer than the one before it
/// goes on being counted, as there.
fn abbreviate_v6(bytes: &[u8], bits: u8, out: &mut String) {
    if bits == 0 {
        out.push_str("::");
        return;
    }
    let words = usize::from(bits).div_ceil(16).max(2);
    let word = |at: usize| u16::from_be_bytes([bytes[2 * at], bytes[2 * at + 1]]);
    let (mut start, mut length) = (0, 0);
    let (mut own_start, mut own_length) = (0, 0);
    for at in 0..words {
        if word(at) == 0 {
            if own_length == 0 {
                own_start = at;
            }
            own_length += 1;
        } else if own_length > length {
            (start, length) = (own_start, own_length);
            own_length = 0;
        }
    }
    if own_length > length {
        (start, length) = (own_start, own_length);
    }
    let is_v4 = length != words
        && start == 0
        && (length == 6
            || length == 5 && word(5) == 0xffff
            || length == 7 && bytes[14] != 0 && bytes[15] != 1);
    for at in 0..words {
        if length > 0 && (start..start + length).contains(&at) {
            if at == start {
                out.push(':');
            }
            if at == words - 1 {
                out.push(':');
            }
            continue;
        }
        if is_v4 && at > 5 {
            out.push(if at == 6 { ':' } else { '.' });
            let _ = write!(out, "{}", bytes[2 * at]);
            // The last octet may be left out.
            if at != 7 || bits > 120 {
                let _ = write!(out, ".{}", bytes[2 * at + 1]);
            }
        } else {
            if !out.is_empty() {
                out.push(':');
            }
            let _ = write!(out, "{:x}", word(at));
        }
    }
}
