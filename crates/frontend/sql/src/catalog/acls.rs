//! Rights that are kept beside the objects: those on the database, and default privileges (ALTER DEFAULT PRIVILEGES).
//!
//! Value of their row: the rights as [`codec`] writes them.

use super::{Catalog, Kind, Oid, codec};
use crate::roles::{Grant, Rights};
use std::collections::BTreeMap;
use vellum_base::codec::Reader;

/// What rights are on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum AclOf {
    Database,
    /// What a role makes, in a schema or (0) anywhere, of a kind.
    Default {
        role: Oid,
        schema: Oid,
        kind: DefaultKind,
    },
}

impl AclOf {
    /// Whether it goes with a schema.
    pub fn is_in_schema(self, oid: Oid) -> bool {
        matches!(self, Self::Default { schema, .. } if schema == oid)
    }
}

/// A kind of objects that have default privileges.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub(crate) enum DefaultKind {
    Sequences = b'S',
    Types = b'T',
    Functions = b'f',
    Schemas = b'n',
    Tables = b'r',
}

impl DefaultKind {
    const ALL: [Self; 5] = [
        Self::Sequences,
        Self::Types,
        Self::Functions,
        Self::Schemas,
        Self::Tables,
    ];

    /// As `pg_default_acl` has it.
    pub fn letter(self) -> char {
        char::from(self as u8)
    }

    /// All rights on such objects.
    pub fn rights(self) -> Rights {
        match self {
            Self::Sequences => Rights::SEQUENCE,
            Self::Types => Rights::USAGE,
            Self::Functions => Rights::EXECUTE,
            Self::Schemas => Rights::SCHEMA,
            Self::Tables => Rights::TABLE,
        }
    }

    /// What such an object is called where a right is none of its kind.
    pub fn word(self) -> &'static str {
        match self {
            Self::Sequences => "sequence",
            Self::Types => "type",
            Self::Functions => "function",
            Self::Schemas => "schema",
            Self::Tables => "relation",
        }
    }

    /// The rights on one that a role has made, while nothing was said.
    pub fn usual(self, owner: Oid) -> Vec<Grant> {
        let everybody = match self {
            Self::Types | Self::Functions => self.rights(),
            _ => Rights::NONE,
        };
        owned(owner, self.rights(), everybody)
    }

    /// The kind of a relation or a type.
    pub fn of(kind: &Kind) -> Self {
        match kind {
            Kind::Table(_) | Kind::View(_) | Kind::System(_) => Self::Tables,
            Kind::Sequence(_) => Self::Sequences,
            Kind::Enum(_) | Kind::Domain(_) => Self::Types,
        }
    }
}

/// What everybody and an owner have.
fn owned(owner: Oid, own: Rights, everybody: Rights) -> Vec<Grant> {
    let grant = |grantee, rights| Grant {
        grantee,
        grantor: owner,
        rights,
        grantable: Rights::NONE,
    };
    let mut all = vec![grant(0, everybody), grant(owner, own)];
    all.retain(|grant| !grant.rights.is_none());
    all
}

pub(super) type Acls = BTreeMap<AclOf, std::sync::Arc<[Grant]>>;

impl Catalog {
    /// Those that were written down; none if nothing was said.
    pub fn acl(&self, of: AclOf) -> Option<&[Grant]> {
        self.acls.get(&of).map(|acl| &**acl)
    }

    /// All of them.
    pub fn acls(&self) -> impl Iterator<Item = (AclOf, &[Grant])> {
        self.acls.iter().map(|(of, acl)| (*of, &**acl))
    }

    /// Those on the database.
    pub fn database_acl(&self) -> Vec<Grant> {
        let usual = || {
            let everybody = Rights::TEMPORARY.with(Rights::CONNECT);
            let owner = crate::database::FIRST_ROLE_OID;
            owned(owner, everybody.with(Rights::CREATE), everybody)
        };
        self.acl(AclOf::Database)
            .map_or_else(usual, <[Grant]>::to_vec)
    }

    /// Whether a role has a right on the database.
    pub fn allows_in_database(&self, role: Oid, right: Rights) -> bool {
        if self.is_superuser(role) {
            return true;
        }
        let grants = self.database_acl();
        let mut fitting = grants.iter().filter(|grant| grant.rights.contains(right));
        fitting.any(|grant| grant.grantee == 0 || self.has_rights_of(role, grant.grantee))
    }

    /// The rights that a new object has; none if they are the usual ones.
    pub fn acl_of_new(&self, owner: Oid, schema: Oid, kind: DefaultKind) -> Option<Vec<Grant>> {
        let said = |schema| {
            self.acl(AclOf::Default {
                role: owner,
                schema,
                kind,
            })
        };
        let everywhere = said(0);
        let here = if schema == 0 { None } else { said(schema) };
        if everywhere.is_none() && here.is_none() {
            return None;
        }
        let usual = kind.usual(owner);
        let mut all = everywhere.map_or_else(|| usual.clone(), <[Grant]>::to_vec);
        for grant in here.unwrap_or_default() {
            let same =
                |own: &&mut Grant| (own.grantee, own.grantor) == (grant.grantee, grant.grantor);
            match all.iter_mut().find(same) {
                Some(known) => {
                    known.rights = known.rights.with(grant.rights);
                    known.grantable = known.grantable.with(grant.grantable);
                }
                None => all.push(*grant),
            }
        }
        all.sort_by_key(|grant| (grant.grantee, grant.grantor));
        (all != usual).then_some(all)
    }
}

/// The bytes of a row's key behind its first.
pub(super) fn key(of: AclOf) -> Vec<u8> {
    match of {
        AclOf::Database => vec![0],
        AclOf::Default { role, schema, kind } => {
            let mut key = vec![1];
            key.extend_from_slice(&role.to_be_bytes());
            key.extend_from_slice(&schema.to_be_bytes());
            key.push(kind as u8);
            key
        }
    }
}

/// What such a key says; `None` if it cannot be one.
pub(super) fn of_key(key: &[u8]) -> Option<AclOf> {
    match key {
        [0] => Some(AclOf::Database),
        [1, rest @ ..] => {
            let (role, rest) = rest.split_first_chunk::<4>()?;
            let (schema, letter) = rest.split_first_chunk::<4>()?;
            let [letter] = letter else { return None };
            let mut kinds = DefaultKind::ALL.into_iter();
            Some(AclOf::Default {
                role: u32::from_be_bytes(*role),
                schema: u32::from_be_bytes(*schema),
                kind: kinds.find(|kind| *kind as u8 == *letter)?,
            })
        }
        _ => None,
    }
}

/// The bytes of a row's value.
pub(super) fn encode(acl: &[Grant]) -> Vec<u8> {
    let mut out = Vec::new();
    codec::put_rights(&mut out, Some(acl));
    out
}

/// The value of such a row; `None` if it cannot be one.
pub(super) fn decode(bytes: &[u8]) -> Option<Vec<Grant>> {
    let mut reader = Reader::new(bytes);
    let acl = codec::rights(&mut reader)??;
    reader.rest().is_empty().then_some(acl)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    #[test]
    fn keys_and_rights_are_read_as_they_were_written() {
        let mut all = vec![AclOf::Database];
        all.extend(DefaultKind::ALL.map(|kind| AclOf::Default {
            role: 10,
            schema: 0x0102_0304,
            kind,
        }));
        for of in all {
            let key = key(of);
            assert_eq!(of_key(&key), Some(of));
            assert_eq!(of_key(&key[1..]), None);
        }
        let acl = DefaultKind::Functions.usual(10);
        assert_eq!(acl.len(), 2);
        let bytes = encode(&acl);
        assert_eq!(decode(&bytes).unwrap(), acl);
        for cut in 0..bytes.len() {
            assert!(decode(&bytes[..cut]).is_none(), "{cut}");
        }
    }

    #[test]
    fn rights_of_new_objects_are_those_of_everywhere_and_those_of_the_schema() {
        let grant = |grantee, rights| Grant {
            grantee,
            grantor: 10,
            rights,
            grantable: Rights::NONE,
        };
        let of = |schema| AclOf::Default {
            role: 10,
            schema,
            kind: DefaultKind::Tables,
        };
        let mut catalog = Catalog::default();
        assert_eq!(catalog.acl_of_new(10, 7, DefaultKind::Tables), None);
        let here = vec![grant(20, Rights::SELECT)];
        catalog.acls.insert(of(7), here.into());
        let own = grant(10, Rights::TABLE);
        let new = catalog.acl_of_new(10, 7, DefaultKind::Tables).unwrap();
        assert_eq!(new, [own, grant(20, Rights::SELECT)]);
        assert_eq!(catalog.acl_of_new(10, 8, DefaultKind::Tables), None);
        assert_eq!(catalog.acl_of_new(11, 7, DefaultKind::Tables), None);
        let everywhere = vec![own, grant(20, Rights::INSERT)];
        catalog.acls.insert(of(0), everywhere.into());
        let new = catalog.acl_of_new(10, 7, DefaultKind::Tables).unwrap();
        let both = Rights::SELECT.with(Rights::INSERT);
        assert_eq!(new, [own, grant(20, both)]);
        // As if nothing were said.
        catalog.acls.insert(of(0), vec![own].into());
        assert_eq!(catalog.acl_of_new(10, 0, DefaultKind::Tables), None);
    }
}
