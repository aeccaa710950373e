//! Roles: who may connect and with what, of which others they are members, and what rights there are.
//!
//! Layout: rows of the engine table [`TABLE`]; key: the role's name; value (little-endian): `u8 version = 2, u32 oid, u8 flags, u32 connection
//! limit + 1, u64 end of the password + 2^63 (microseconds since 2000; 0: none), u16 memberships`, each `u32 role, u32 grantor, u8 admin`, then the
//! verifier (the rest of the value, empty for none). Version 1 has neither the end nor memberships.

use crate::error::{Result, SqlError};
use crate::sqlstate;
use vellum::Transaction;
use vellum_base::codec::{Put, Reader};
use vellum_row::datetime::Timestamp;

/// The engine table that holds them.
pub(crate) const TABLE: &str = "sql.roles";

const VERSION: u8 = 2;
const VERSION_ALONE: u8 = 1;
const SUPERUSER: u8 = 1;
const LOGIN: u8 = 2;
const CREATE_ROLE: u8 = 4;
const CREATE_DATABASE: u8 = 8;
const NO_INHERIT: u8 = 16;
const REPLICATION: u8 = 32;
const BYPASS_RLS: u8 = 64;
const TIME_BIAS: u64 = 1 << 63;

/// That a role is a member of another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Membership {
    /// Oid of the other.
    pub role: u32,
    /// Oid of who made it one.
    pub grantor: u32,
    /// Whether it may make others members.
    pub admin: bool,
}

/// A set of rights.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Rights(u16);

impl Rights {
    pub const NONE: Self = Self(0);
    pub const INSERT: Self = Self(1);
    pub const SELECT: Self = Self(2);
    pub const UPDATE: Self = Self(4);
    pub const DELETE: Self = Self(8);
    pub const TRUNCATE: Self = Self(16);
    pub const REFERENCES: Self = Self(32);
    pub const TRIGGER: Self = Self(64);
    pub const USAGE: Self = Self(128);
    pub const CREATE: Self = Self(256);
    pub const EXECUTE: Self = Self(512);
    pub const TEMPORARY: Self = Self(1024);
    pub const CONNECT: Self = Self(2048);

    /// Those of tables, in PostgreSQL's order.
    pub const ALL: [Self; 7] = [
        Self::INSERT,
        Self::SELECT,
        Self::UPDATE,
        Self::DELETE,
        Self::TRUNCATE,
        Self::REFERENCES,
        Self::TRIGGER,
    ];
    /// All of tables, of sequences, of schemas, of the database, of columns.
    pub const TABLE: Self = Self(127);
    pub const SEQUENCE: Self = Self(2 | 4 | 128);
    pub const SCHEMA: Self = Self(128 | 256);
    pub const DATABASE: Self = Self(256 | 1024 | 2048);
    pub const COLUMN: Self = Self(1 | 2 | 4 | 32);

    /// In the order of the letters.
    pub const NAMES: [(Self, &'static str, char); 12] = [
        (Self::INSERT, "INSERT", 'a'),
        (Self::SELECT, "SELECT", 'r'),
        (Self::UPDATE, "UPDATE", 'w'),
        (Self::DELETE, "DELETE", 'd'),
        (Self::TRUNCATE, "TRUNCATE", 'D'),
        (Self::REFERENCES, "REFERENCES", 'x'),
        (Self::TRIGGER, "TRIGGER", 't'),
        (Self::EXECUTE, "EXECUTE", 'X'),
        (Self::USAGE, "USAGE", 'U'),
        (Self::CREATE, "CREATE", 'C'),
        (Self::TEMPORARY, "TEMPORARY", 'T'),
        (Self::CONNECT, "CONNECT", 'c'),
    ];

    /// The right of a name in any case.
    pub fn named(name: &str) -> Option<Self> {
        if name.eq_ignore_ascii_case("temp") {
            return Some(Self::TEMPORARY);
        }
        let found = Self::NAMES
            .iter()
            .find(|(_, own, _)| own.eq_ignore_ascii_case(name));
        found.map(|(right, ..)| *right)
    }

    /// The name of a right; of the first in a set of several.
    pub fn name(self) -> &'static str {
        let mut all = Self::NAMES.iter();
        all.find(|(right, ..)| self.contains(*right))
            .map_or("", |(_, name, _)| name)
    }

    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    #[must_use]
    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    #[must_use]
    pub fn both(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub fn is_none(self) -> bool {
        self.0 == 0
    }

    pub fn bits(self) -> u16 {
        self.0
    }

    pub fn of_bits(bits: u16) -> Self {
        Self(bits & 4095)
    }
}

/// Rights on an object that a role was given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Grant {
    /// Oid of who has them; 0: everybody.
    pub grantee: u32,
    /// Oid of who gave them.
    pub grantor: u32,
    pub rights: Rights,
    /// Those of them that it may give to others.
    pub grantable: Rights,
}

impl Grant {
    /// As an `aclitem`; `name` tells the name of a role.
    pub fn text(&self, name: impl Fn(u32) -> String) -> String {
        let mut out = match self.grantee {
            0 => String::new(),
            grantee => name(grantee),
        };
        out.push('=');
        for (right, _, letter) in Rights::NAMES {
            if self.rights.contains(right) {
                out.push(letter);
                if self.grantable.contains(right) {
                    out.push('*');
                }
            }
        }
        out.push('/');
        out.push_str(&name(self.grantor));
        out
    }
}

/// A role.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Role {
    /// Its name.
    pub name: String,
    /// Its number.
    pub oid: u32,
    /// May do anything.
    pub superuser: bool,
    /// May connect.
    pub login: bool,
    /// May make and change roles.
    pub create_role: bool,
    /// May make databases.
    pub create_database: bool,
    /// Connections that it may have at once; `None`: any number.
    pub connections_max: Option<u32>,
    /// SCRAM-SHA-256 verifier in PostgreSQL's form (`SCRAM-SHA-256$iterations:salt$stored key:server key`); `None`: no password, so
    /// no login by password. An MD5 hash that a dump of PostgreSQL's roles brought (`md5` and 32 digits) is kept as well, and nobody logs in by it.
    pub verifier: Option<String>,
    /// Has the rights of the roles that it is a member of.
    pub inherit: bool,
    /// May replicate.
    pub replication: bool,
    /// Row security is not for it.
    pub bypass_rls: bool,
    /// Until when its password is good.
    pub valid_until: Option<Timestamp>,
    /// The roles that it is a member of.
    pub member_of: Vec<Membership>,
}

impl Role {
    /// A role without rights.
    pub fn new(name: &str, oid: u32) -> Self {
        Self {
            name: name.to_owned(),
            oid,
            superuser: false,
            login: false,
            create_role: false,
            create_database: false,
            connections_max: None,
            verifier: None,
            inherit: true,
            replication: false,
            bypass_rls: false,
            valid_until: None,
            member_of: Vec::new(),
        }
    }

    /// Its verifier, unless its password is past its time (VALID UNTIL).
    pub fn current_verifier(&self) -> Option<&str> {
        let over = self
            .valid_until
            .is_some_and(|until| until < crate::session::clock_time());
        self.verifier.as_deref().filter(|_| !over)
    }

    /// Whether it was made a member of a role, not by way of others.
    pub(crate) fn is_member_of(&self, role: u32) -> bool {
        self.member_of
            .iter()
            .any(|membership| membership.role == role)
    }

    fn encode(&self) -> Vec<u8> {
        let flag = |set: bool, bit: u8| if set { bit } else { 0 };
        let mut out = vec![VERSION];
        out.put_u32(self.oid);
        out.put_u8(
            flag(self.superuser, SUPERUSER)
                | flag(self.login, LOGIN)
                | flag(self.create_role, CREATE_ROLE)
                | flag(self.create_database, CREATE_DATABASE)
                | flag(!self.inherit, NO_INHERIT)
                | flag(self.replication, REPLICATION)
                | flag(self.bypass_rls, BYPASS_RLS),
        );
        out.put_u32(
            self.connections_max
                .map_or(0, |most| most.saturating_add(1)),
        );
        let until = self
            .valid_until
            .map_or(0, |until| (until.0 as u64) ^ TIME_BIAS);
        out.put_u64(until);
        out.put_u16(self.member_of.len() as u16);
        for membership in &self.member_of {
            out.put_u32(membership.role);
            out.put_u32(membership.grantor);
            out.put_u8(u8::from(membership.admin));
        }
        out.put(self.verifier.as_deref().unwrap_or("").as_bytes());
        out
    }

    fn decode(name: &[u8], value: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(value);
        let version = reader.u8()?;
        if version != VERSION && version != VERSION_ALONE {
            return None;
        }
        let oid = reader.u32()?;
        let flags = reader.u8()?;
        let connections_max = reader.u32()?.checked_sub(1);
        let (mut valid_until, mut member_of) = (None, Vec::new());
        if version == VERSION {
            let until = reader.u64()?;
            valid_until = (until != 0).then_some(Timestamp((until ^ TIME_BIAS) as i64));
            for _ in 0..reader.u16()? {
                member_of.push(Membership {
                    role: reader.u32()?,
                    grantor: reader.u32()?,
                    admin: reader.u8()? != 0,
                });
            }
        }
        let verifier = std::str::from_utf8(reader.rest()).ok()?;
        Some(Self {
            name: std::str::from_utf8(name).ok()?.to_owned(),
            oid,
            superuser: flags & SUPERUSER != 0,
            login: flags & LOGIN != 0,
            create_role: flags & CREATE_ROLE != 0,
            create_database: flags & CREATE_DATABASE != 0,
            connections_max,
            verifier: (!verifier.is_empty()).then(|| verifier.to_owned()),
            inherit: flags & NO_INHERIT == 0,
            replication: flags & REPLICATION != 0,
            bypass_rls: flags & BYPASS_RLS != 0,
            valid_until,
            member_of,
        })
    }
}

/// The role of this name.
pub(crate) fn find(transaction: &Transaction, name: &str) -> Result<Option<Role>> {
    let table = transaction.table(TABLE)?;
    let found = transaction.get(&table, name.as_bytes(), |value| {
        Role::decode(name.as_bytes(), value)
    })?;
    found.map(|role| role.ok_or_else(damaged)).transpose()
}

/// All of them.
pub(crate) fn all(transaction: &Transaction) -> Result<Vec<Role>> {
    let table = transaction.table(TABLE)?;
    let mut cursor = transaction.cursor(&table, ..)?;
    let mut all = Vec::new();
    while let Some((name, value)) = cursor.next()? {
        all.push(Role::decode(name, value).ok_or_else(damaged)?);
    }
    Ok(all)
}

/// Takes a role away.
pub(crate) fn remove(transaction: &Transaction, name: &str) -> Result<()> {
    let table = transaction.table(TABLE)?;
    transaction.delete(&table, name.as_bytes())?;
    Ok(())
}

/// Adds or replaces a role.
pub(crate) fn put(transaction: &Transaction, role: &Role) -> vellum::Result<()> {
    let table = transaction.table(TABLE)?;
    transaction.upsert(&table, role.name.as_bytes(), &role.encode())?;
    Ok(())
}

fn damaged() -> SqlError {
    SqlError::new(
        sqlstate::DATA_CORRUPTED,
        "a row of the roles cannot be read",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_read_as_they_were_written() {
        let mut role = Role::new("ann", 16);
        assert_eq!(Role::decode(b"ann", &role.encode()), Some(role.clone()));
        role.login = true;
        role.connections_max = Some(0);
        role.valid_until = Some(Timestamp(-1));
        role.member_of.push(Membership {
            role: 10,
            grantor: 10,
            admin: true,
        });
        role.verifier = Some("SCRAM-SHA-256$4096:c2FsdA==$a:b".into());
        assert_eq!(Role::decode(b"ann", &role.encode()), Some(role.clone()));
        let bytes = role.encode();
        assert_eq!(Role::decode(b"ann", &bytes[..8]), None);
    }
}
