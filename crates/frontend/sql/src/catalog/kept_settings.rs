//! Settings that sessions begin with: of all roles, of the database, of a role, of a role in the database (ALTER ROLE and ALTER DATABASE … SET).
//!
//! Value of their row (little-endian): `u16 count`, then for each `u16 length, name, u32 length, value`.

use super::{Catalog, Oid};
use std::collections::BTreeMap;
use std::sync::Arc;
use vellum_base::codec::{Put, Reader};

/// Whose they are. In the order in which they count: the later ones before the earlier.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct KeptFor {
    /// 0: of every role.
    pub role: Oid,
    /// In the database, of which there is one; otherwise in all.
    pub in_database: bool,
}

/// Names, as they are shown, and values, as they were given.
pub(crate) type Pairs = Arc<[(Box<str>, Box<str>)]>;

pub(super) type KeptSettings = BTreeMap<KeptFor, Pairs>;

impl Catalog {
    /// Those of one; none if it has none.
    pub fn kept_settings(&self, of: KeptFor) -> &[(Box<str>, Box<str>)] {
        self.kept_settings.get(&of).map_or(&[], |pairs| pairs)
    }

    /// All of them.
    pub fn all_kept_settings(&self) -> impl Iterator<Item = (KeptFor, &Pairs)> {
        self.kept_settings.iter().map(|(of, pairs)| (*of, pairs))
    }
}

/// The bytes of a row's value.
pub(super) fn encode(pairs: &[(Box<str>, Box<str>)]) -> Vec<u8> {
    let mut out = Vec::new();
    out.put_u16(pairs.len() as u16);
    for (name, value) in pairs {
        out.put_u16(name.len() as u16);
        out.extend_from_slice(name.as_bytes());
        out.put_u32(value.len() as u32);
        out.extend_from_slice(value.as_bytes());
    }
    out
}

/// The value of such a row; `None` if it cannot be one.
pub(super) fn decode(bytes: &[u8]) -> Option<Pairs> {
    let mut reader = Reader::new(bytes);
    let count = reader.u16()?;
    let mut pairs = Vec::new();
    for _ in 0..count {
        let length = usize::from(reader.u16()?);
        let name = std::str::from_utf8(reader.bytes(length)?).ok()?;
        let length = usize::try_from(reader.u32()?).ok()?;
        let value = std::str::from_utf8(reader.bytes(length)?).ok()?;
        pairs.push((name.into(), value.into()));
    }
    reader.rest().is_empty().then(|| pairs.into())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    #[test]
    fn settings_are_read_as_they_were_written() {
        let pairs: Pairs = [("TimeZone".into(), "UTC".into()), ("a.b".into(), "".into())].into();
        let bytes = encode(&pairs);
        assert_eq!(bytes[..12], *b"\x02\0\x08\0TimeZone");
        assert_eq!(decode(&bytes).unwrap(), pairs);
        for cut in 0..bytes.len() {
            assert!(decode(&bytes[..cut]).is_none(), "{cut}");
        }
        assert!(decode(&[&bytes[..], &[0]].concat()).is_none());
    }
}
