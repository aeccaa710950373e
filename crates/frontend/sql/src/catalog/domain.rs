//! Domains: what the catalog knows of one, and its persisted form.
//!
//! A domain's values are those of the type below: columns, rows, keys and the wire know that type and nothing of the domain. What a domain adds is checked where a
//! value comes to be one of it (`bind/domains`), so all that is kept of a column is which domain it is of ([`super::Table::domains`]).
//!
//! Layout (as in `codec`): a schema of one column, which is the type below, with its modifier, and null unless NOT NULL is said; the oid of the domain that it was
//! made over, 0 for none; `u8` whether there is a default, and its text; a list of constraints as those of tables; from version 11 on the oid of its collation, which one has that is of
//! another than its type's.

use super::codec::{VERSION_WITH_MORE_COLLATIONS, checks, put_checks, put_text, text};
use super::{Catalog, Check, Kind, Oid, Relation};
use crate::error::Result;
use std::sync::Arc;
use vellum_base::codec::{Put, Reader};
use vellum_row::{Column, Schema, Type, Typmod};

/// How many domains may be made over each other.
pub(crate) const DOMAINS_MAX: usize = 100;

/// A domain.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Domain {
    /// The type of its values, which is no domain.
    pub ty: Type,
    pub typmod: Typmod,
    /// The domain that it was made over; 0 for none.
    pub base: Oid,
    /// NOT NULL, of its own.
    pub not_null: bool,
    /// As SQL.
    pub default: Option<Box<str>>,
    /// Of its own.
    pub checks: Vec<Check>,
    /// The collation of its values, where that is another than their type's.
    pub collation: Option<Oid>,
}

/// Writes one.
pub(super) fn put(out: &mut Vec<u8>, domain: &Domain, version: u8) -> Result<()> {
    let value = Column::new("value", domain.ty, domain.typmod, !domain.not_null);
    let schema = Schema::new(vec![value])?.persist()?;
    out.put_u32(schema.len() as u32);
    out.put(&schema);
    out.put_u32(domain.base);
    out.put_u8(u8::from(domain.default.is_some()));
    put_text(out, domain.default.as_deref().unwrap_or_default());
    put_checks(out, &domain.checks);
    if version >= VERSION_WITH_MORE_COLLATIONS {
        out.put_u32(domain.collation.unwrap_or(0));
    }
    Ok(())
}

/// Reads one.
pub(super) fn read(reader: &mut Reader<'_>, version: u8) -> Option<Domain> {
    let length = reader.u32()? as usize;
    let schema = Schema::from_persisted(reader.bytes(length)?).ok()?;
    let value = schema.columns().next()?;
    let (ty, typmod, not_null) = (value.ty, value.typmod, !value.nullable);
    let base = reader.u32()?;
    let has_default = reader.u8()? != 0;
    let default = text(reader)?;
    let checks = checks(reader)?;
    let collation = match version >= VERSION_WITH_MORE_COLLATIONS {
        true => Some(reader.u32()?).filter(|oid| *oid != 0),
        false => None,
    };
    Some(Domain {
        ty,
        typmod,
        base,
        not_null,
        default: has_default.then_some(default),
        checks,
        collation,
    })
}

impl Catalog {
    /// The domain with this oid.
    pub fn domain(&self, oid: Oid) -> Option<(&Arc<Relation>, &Domain)> {
        let relation = self.relation(oid)?;
        match &relation.kind {
            Kind::Domain(domain) => Some((relation, domain)),
            _ => None,
        }
    }

    /// A domain and those that it was made over, itself first.
    pub fn domains_of(&self, oid: Oid) -> Vec<(&Arc<Relation>, &Domain)> {
        let mut all = Vec::new();
        let mut next = self.domain(oid);
        while let Some((relation, domain)) = next
            && all.len() <= DOMAINS_MAX
        {
            all.push((relation, domain));
            next = self.domain(domain.base);
        }
        all
    }

    /// Whether a domain is another one, or was made over it.
    pub fn is_domain_over(&self, oid: Oid, other: Oid) -> bool {
        let all = self.domains_of(oid);
        all.iter().any(|(relation, _)| relation.oid == other)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::super::Collation;
    use super::*;

    #[test]
    fn a_domain_is_read_as_it_was_written() {
        let domain = Domain {
            ty: Type::Varchar,
            typmod: Typmod(7),
            base: 16_400,
            not_null: true,
            default: Some("'a'".into()),
            checks: vec![Check {
                oid: 16_402,
                name: "own".into(),
                expression: "VALUE <> 'b'".into(),
            }],
            collation: Some(Collation::C),
        };
        let bare = Domain {
            collation: None,
            ..domain.clone()
        };
        for (version, written) in [
            (VERSION_WITH_MORE_COLLATIONS, domain),
            (VERSION_WITH_MORE_COLLATIONS - 1, bare),
        ] {
            let mut bytes = Vec::new();
            put(&mut bytes, &written, version).unwrap();
            let mut reader = Reader::new(&bytes);
            assert_eq!(read(&mut reader, version), Some(written));
            assert!(reader.rest().is_empty());
            // A cut one is none.
            assert_eq!(
                read(&mut Reader::new(&bytes[..bytes.len() - 1]), version),
                None
            );
        }
    }
}
