//! Addresses of hosts and networks: `inet` and `cidr`.
//!
//! Both are one struct: a family, an address and how many of its first bits are those of its network. A `cidr` has no other bits.
//!
//! Layout, in a row: the length of the prefix (a byte), then the address, whose 4 or 16 bytes tell its family. In a key and in
//! Arrow's columns: a byte for the family (4 or 6), the address without the bits behind the prefix, the length of the prefix, the address.
//!
//! Invariants:
//! - I1: the order is PostgreSQL's (`network_cmp`): by family; by as many bits as the shorter prefix has; by the length of the
//!   prefix; by all bits. That of keys is the same: of two addresses that agree on the shorter prefix, the one that has it is, without the bits
//!   behind it, not above the other one.
//!
//! Not here: text (`text`), what functions and operators do (`functions`).

mod functions;
#[cfg(test)]
mod tests;
mod text;

#[cfg(test)]
pub(crate) use tests::random_inet;
pub(crate) use text::{parse_cidr, parse_inet, write_inet, write_whole};

use crate::error::{Result, SqlError, SqlState};
use std::cmp::Ordering;

/// An address with the length of its network's prefix.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Inet {
    v6: bool,
    /// Of the prefix: 32 or 128 at most.
    bits: u8,
    /// Of an address of IPv4 the first four; the others are zero.
    address: [u8; 16],
}

/// What begins the key of an address, by its family.
pub(crate) const KEY_V4: u8 = 4;
pub(crate) const KEY_V6: u8 = 6;

/// How the protocol numbers families.
const SENT_V4: u8 = 2;
const SENT_V6: u8 = 3;

/// A word whose first bits are set.
fn mask(bits: u8) -> u128 {
    match bits {
        0 => 0,
        bits => u128::MAX << (128 - u32::from(bits)),
    }
}

impl Inet {
    /// The address of these four or sixteen bytes; none if they are of another number or the prefix is longer than they are.
    pub fn new(address: &[u8], bits: u8) -> Option<Self> {
        let v6 = match address.len() {
            4 => false,
            16 => true,
            _ => return None,
        };
        if usize::from(bits) > address.len() * 8 {
            return None;
        }
        let mut own = [0; 16];
        own[..address.len()].copy_from_slice(address);
        Some(Self {
            v6,
            bits,
            address: own,
        })
    }

    /// The address of a host.
    pub fn of_host(host: std::net::IpAddr) -> Self {
        let mut address = [0; 16];
        let v6 = match host {
            std::net::IpAddr::V4(host) => {
                address[..4].copy_from_slice(&host.octets());
                false
            }
            std::net::IpAddr::V6(host) => {
                address = host.octets();
                true
            }
        };
        let bits = if v6 { 128 } else { 32 };
        Self { v6, bits, address }
    }

    /// Whether it is one of IPv6.
    pub fn is_v6(self) -> bool {
        self.v6
    }

    /// The length of the prefix.
    pub fn bits(self) -> u8 {
        self.bits
    }

    /// The bits of an address: 32 or 128.
    pub fn bits_max(self) -> u8 {
        if self.v6 { 128 } else { 32 }
    }

    /// The bytes of the address: 4 or 16.
    pub fn bytes(&self) -> &[u8] {
        &self.address[..if self.v6 { 16 } else { 4 }]
    }

    /// Whether there is no bit behind the prefix, as in every `cidr`.
    pub fn is_network(self) -> bool {
        self.word() & !mask(self.bits) == 0
    }

    /// The address as a number whose highest bit is the first one.
    fn word(self) -> u128 {
        u128::from_be_bytes(self.address)
    }

    /// The same family and prefix with another address; bits that the family does not have are dropped.
    fn with_word(self, word: u128) -> Self {
        let address = (word & mask(self.bits_max())).to_be_bytes();
        Self { address, ..self }
    }

    /// Whether both are of one family and agree on so many first bits.
    fn agrees(self, other: Self, bits: u8) -> bool {
        self.v6 == other.v6 && (self.word() ^ other.word()) & mask(bits) == 0
    }

    /// Appends what stands in a row.
    pub(crate) fn store(self, out: &mut Vec<u8>) {
        out.push(self.bits);
        out.extend_from_slice(self.bytes());
    }

    /// Reads what [`Inet::store`] wrote; none for bytes that it did not.
    #[inline]
    pub(crate) fn from_stored(bytes: &[u8]) -> Option<Self> {
        let (bits, address) = bytes.split_first()?;
        Self::new(address, *bits)
    }

    /// Appends bytes that compare as addresses do (I1).
    pub fn put_key(self, out: &mut Vec<u8>) {
        out.push(if self.v6 { KEY_V6 } else { KEY_V4 });
        out.extend_from_slice(self.network().bytes());
        out.push(self.bits);
        out.extend_from_slice(self.bytes());
    }

    /// Reads what [`Inet::put_key`] wrote; none for bytes that it did not.
    pub fn from_key(key: &[u8]) -> Option<Self> {
        let (family, rest) = key.split_first()?;
        let length = match *family {
            KEY_V4 => 4,
            KEY_V6 => 16,
            _ => return None,
        };
        let (masked, rest) = rest.split_at_checked(length)?;
        let own = Self::from_stored(rest)?;
        (own.network().bytes() == masked).then_some(own)
    }
}

impl Ord for Inet {
    fn cmp(&self, other: &Self) -> Ordering {
        let common = mask(self.bits.min(other.bits));
        let (a, b) = (self.word(), other.word());
        self.v6
            .cmp(&other.v6)
            .then_with(|| (a & common).cmp(&(b & common)))
            .then_with(|| self.bits.cmp(&other.bits))
            .then_with(|| a.cmp(&b))
    }
}

impl PartialOrd for Inet {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Appends the protocol's binary form.
pub(crate) fn send(value: Inet, is_cidr: bool, out: &mut Vec<u8>) {
    let bytes = value.bytes();
    out.push(if value.v6 { SENT_V6 } else { SENT_V4 });
    out.extend_from_slice(&[value.bits, u8::from(is_cidr), bytes.len() as u8]);
    out.extend_from_slice(bytes);
}

/// Reads the protocol's binary form.
///
/// # Errors
/// 08P01 for too few bytes, 22P03 for wrong ones and for a `cidr` with bits behind its prefix.
pub(crate) fn receive(bytes: &[u8], is_cidr: bool) -> Result<Inet> {
    let name = if is_cidr { "cidr" } else { "inet" };
    let short = || SqlError::new(SqlState::of("08P01"), "no data left in message");
    let wrong = |what: &str| {
        let message = format!("invalid {what} in external \"{name}\" value");
        SqlError::new(SqlState::INVALID_BINARY, message)
    };
    let byte = |at: usize| bytes.get(at).copied().ok_or_else(short);
    let length = match byte(0)? {
        SENT_V4 => 4,
        SENT_V6 => 16,
        _ => return Err(wrong("address family")),
    };
    let bits = byte(1)?;
    if usize::from(bits) > 8 * length {
        return Err(wrong("bits"));
    }
    // Whether it says that it is a cidr does not matter.
    byte(2)?;
    if usize::from(byte(3)?) != length {
        return Err(wrong("length"));
    }
    let address = bytes.get(4..4 + length).ok_or_else(short)?;
    let value = Inet::new(address, bits).ok_or_else(|| wrong("length"))?;
    if is_cidr && !value.is_network() {
        let message = "invalid external \"cidr\" value";
        return Err(SqlError::new(SqlState::INVALID_BINARY, message)
            .with_detail("Value has bits set to right of mask."));
    }
    if bytes.len() > 4 + length {
        return Err(crate::binary::long(name));
    }
    Ok(value)
}
