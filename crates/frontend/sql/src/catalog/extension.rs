//! The extensions that are there.
//!
//! Value of their row (little-endian): `u8 version of the row = 2, u32 oid, u32 oid of the schema, u32 oid of the owner, text version`, of which a text is as elsewhere in the catalog
//! (`codec`). In version 1 the owner is a text, its name. The key has the name.
//!
//! Not here: those that can be made, and their functions (`crate::extension`).

use super::codec::RoleOf;
use super::{Catalog, Oid, PG_CATALOG, codec};
use crate::database::FIRST_ROLE_OID;
use crate::error::SqlError;
use crate::expr::Scalar;
use crate::extension::{self, Available, PLPGSQL};
use crate::sqlstate;
use std::collections::BTreeMap;
use std::sync::Arc;
use vellum_base::codec::{Put, Reader};

/// Oid of the extension that is there from the start.
pub(crate) const PLPGSQL_OID: Oid = 13_559;

/// How a row is written.
const FORMAT: u8 = 2;
const FORMAT_WITH_NAME: u8 = 1;

/// An extension that is there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Extension {
    pub oid: Oid,
    pub name: Box<str>,
    pub owner: Oid,
    /// The schema of its functions.
    pub namespace: Oid,
    pub version: Box<str>,
}

pub(super) type Extensions = BTreeMap<Box<str>, Arc<Extension>>;

impl Extension {
    /// The one that is there from the start.
    pub(super) fn plpgsql() -> Self {
        let version = extension::available(PLPGSQL).map_or("", |own| own.version);
        Self {
            oid: PLPGSQL_OID,
            name: PLPGSQL.into(),
            owner: FIRST_ROLE_OID,
            namespace: PG_CATALOG,
            version: version.into(),
        }
    }

    /// What it is; none of one that this build does not have.
    pub fn available(&self) -> Option<&'static Available> {
        extension::available(&self.name)
    }

    /// Its functions, in the order in which they are made.
    pub fn functions(&self) -> impl Iterator<Item = Scalar> + use<> {
        let own = self.available().into_iter();
        own.flat_map(Available::functions)
    }

    /// `42710`.
    #[cold]
    pub fn already_there(&self) -> SqlError {
        let message = format!("extension \"{}\" already exists", self.name);
        SqlError::new(sqlstate::DUPLICATE_OBJECT, message)
    }
}

impl Catalog {
    /// The extension of a name.
    pub fn extension(&self, name: &str) -> Option<&Arc<Extension>> {
        self.extensions.get(name)
    }

    /// The extension with this oid.
    pub fn extension_by_oid(&self, oid: Oid) -> Option<&Arc<Extension>> {
        self.extensions.values().find(|own| own.oid == oid)
    }

    /// All that are there, by oid.
    pub fn extensions(&self) -> Vec<&Arc<Extension>> {
        let mut all: Vec<_> = self.extensions.values().collect();
        all.sort_by_key(|own| own.oid);
        all
    }

    /// The extension that a function belongs to, if it is there.
    pub fn extension_of(&self, function: Scalar) -> Option<&Arc<Extension>> {
        self.extension(function.extension()?.name)
    }

    /// Whether a function of an extension is there. Who binds without a catalog takes a text's word for it, as for types.
    pub fn may_have_function(&self, function: Scalar) -> bool {
        self.extension_of(function).is_some() || self.relations.is_empty()
    }
}

/// The bytes of a row's value.
pub(super) fn encode(extension: &Extension) -> Vec<u8> {
    let mut out = vec![FORMAT];
    out.put_u32(extension.oid);
    out.put_u32(extension.namespace);
    out.put_u32(extension.owner);
    codec::put_text(&mut out, &extension.version);
    out
}

/// An extension of its name and such a value; `None` if they cannot be one's.
pub(super) fn decode(name: &[u8], value: &[u8], role: RoleOf<'_>) -> Option<Extension> {
    let mut reader = Reader::new(value);
    let format = reader.u8()?;
    let extension = Extension {
        oid: reader.u32()?,
        namespace: reader.u32()?,
        name: std::str::from_utf8(name).ok()?.into(),
        owner: match format {
            FORMAT => reader.u32()?,
            FORMAT_WITH_NAME => role(&codec::text(&mut reader)?),
            _ => return None,
        },
        version: codec::text(&mut reader)?,
    };
    reader.rest().is_empty().then_some(extension)
}

/// Such a value with its owner's oid; `None` if it has that, or cannot be read.
pub(super) fn owned_by_oid(name: &[u8], value: &[u8], role: RoleOf<'_>) -> Option<Vec<u8>> {
    let is_named = value.first() == Some(&FORMAT_WITH_NAME);
    is_named.then(|| decode(name, value, role).map(|own| encode(&own)))?
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    #[test]
    fn extensions_are_read_as_they_were_written() {
        let own = Extension {
            oid: 16_400,
            name: "uuid-ossp".into(),
            owner: 16_390,
            namespace: 2200,
            version: "1.1".into(),
        };
        let bytes = encode(&own);
        assert_eq!(bytes[..9], [2, 16, 64, 0, 0, 152, 8, 0, 0]);
        let role = |name: &str| if name == "ann" { 16_390 } else { 10 };
        let read = |bytes: &[u8]| decode(b"uuid-ossp", bytes, &role);
        assert_eq!(read(&bytes).unwrap(), own);
        for cut in 0..bytes.len() {
            assert!(read(&bytes[..cut]).is_none(), "{cut}");
        }
        assert!(read(&[&bytes[..], &[0]].concat()).is_none());
        assert!(decode(&[0xff], &bytes, &role).is_none());
        assert_eq!(owned_by_oid(b"uuid-ossp", &bytes, &role), None);
    }

    #[test]
    fn an_owner_that_was_kept_by_name_is_found() {
        let role = |name: &str| if name == "ann" { 16_390 } else { 10 };
        let mut earlier = vec![1, 16, 64, 0, 0, 152, 8, 0, 0];
        codec::put_text(&mut earlier, "ann");
        codec::put_text(&mut earlier, "1.1");
        let own = decode(b"uuid-ossp", &earlier, &role).unwrap();
        assert_eq!((own.owner, &*own.version), (16_390, "1.1"));
        let anew = owned_by_oid(b"uuid-ossp", &earlier, &role).unwrap();
        assert_eq!(anew, encode(&own));
        let cut = &earlier[..earlier.len() - 1];
        assert_eq!(owned_by_oid(b"uuid-ossp", cut, &role), None);
    }
}
