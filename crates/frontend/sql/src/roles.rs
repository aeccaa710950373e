//! Roles: who may connect, and with what.
//!
//! Layout: rows of the engine table [`TABLE`]; key: the role's name; value: `u8 version = 1, u32 oid, u8 flags, u32 connection
//! limit + 1, verifier` (little-endian; the rest of the value, empty for none).

use crate::error::{Result, SqlError};
use crate::sqlstate;
use vellum::Transaction;
use vellum_base::codec::{Put, Reader};

/// The engine table that holds them.
pub(crate) const TABLE: &str = "sql.roles";

const VERSION: u8 = 1;
const SUPERUSER: u8 = 1;
const LOGIN: u8 = 2;
const CREATE_ROLE: u8 = 4;
const CREATE_DATABASE: u8 = 8;

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
    /// no login by password.
    pub verifier: Option<String>,
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
        }
    }

    fn encode(&self) -> Vec<u8> {
        let flag = |set: bool, bit: u8| if set { bit } else { 0 };
        let mut out = vec![VERSION];
        out.put_u32(self.oid);
        out.put_u8(
            flag(self.superuser, SUPERUSER)
                | flag(self.login, LOGIN)
                | flag(self.create_role, CREATE_ROLE)
                | flag(self.create_database, CREATE_DATABASE),
        );
        out.put_u32(
            self.connections_max
                .map_or(0, |most| most.saturating_add(1)),
        );
        out.put(self.verifier.as_deref().unwrap_or("").as_bytes());
        out
    }

    fn decode(name: &[u8], value: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(value);
        if reader.u8()? != VERSION {
            return None;
        }
        let oid = reader.u32()?;
        let flags = reader.u8()?;
        let connections_max = reader.u32()?.checked_sub(1);
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

/// Adds or replaces a role.
pub(crate) fn put(transaction: &Transaction, role: &Role) -> Result<()> {
    Ok(put_bytes(transaction, role)?)
}

/// The same, for who speaks the engine's errors.
pub(crate) fn put_bytes(transaction: &Transaction, role: &Role) -> vellum::Result<()> {
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
        role.verifier = Some("SCRAM-SHA-256$4096:c2FsdA==$a:b".into());
        assert_eq!(Role::decode(b"ann", &role.encode()), Some(role.clone()));
        let bytes = role.encode();
        assert_eq!(Role::decode(b"ann", &bytes[..8]), None);
    }
}
