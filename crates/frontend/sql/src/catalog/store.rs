//! The catalog's rows in the engine.
//!
//! Layout: rows of the engine table [`Store::TABLE`]; keys: `1, oid` (big-endian) of a schema, `2, oid` of a relation, `3, oid of the
//! schema, name` of every relation and index (value: its oid), so that two transactions cannot make one name.

use super::relation::Kind;
use super::{Catalog, Change, FIRST_USER_OID, Namespace, Oid, Relation, Runtimes, codec};
use crate::error::{Result, SqlError};
use crate::roles;
use crate::sqlstate;
use std::sync::Arc;
use vellum::Transaction;

const TABLE: &str = Store::TABLE;

const NAMESPACE: u8 = 1;
const RELATION: u8 = 2;
const NAME: u8 = 3;

/// Reads and writes them.
pub(crate) struct Store;

impl Store {
    /// The engine table.
    pub const TABLE: &str = "sql.catalog";

    /// Makes the tables of a new database and fills them.
    pub fn create(transaction: &Transaction) -> vellum::Result<()> {
        transaction.create_table(TABLE)?;
        transaction.create_table(super::oids::TABLE)?;
        let first = [
            (super::PG_CATALOG, "pg_catalog"),
            (super::PUBLIC, "public"),
            (super::INFORMATION_SCHEMA, "information_schema"),
        ];
        let table = transaction.table(TABLE)?;
        for (oid, name) in first {
            debug_assert!(oid < FIRST_USER_OID);
            let namespace = Namespace {
                oid,
                name: name.into(),
                owner: crate::database::FIRST_ROLE.into(),
                acl: None,
            };
            let value = codec::encode_namespace(&namespace);
            transaction.insert(&table, &key(NAMESPACE, oid), &value)?;
        }
        Ok(())
    }

    /// Reads the whole catalog.
    ///
    /// # Errors
    /// `XX001` for rows that cannot be read.
    pub fn load(transaction: &Transaction, runtimes: &Runtimes, version: u64) -> Result<Catalog> {
        let mut catalog = Catalog::of_system(version, runtimes);
        for role in roles::all(transaction)? {
            catalog.apply(&Change::PutRole(Arc::new(role)));
        }
        let table = transaction.table(TABLE)?;
        let mut cursor = transaction.cursor(&table, ..)?;
        while let Some((key, value)) = cursor.next()? {
            let (kind, rest) = key.split_first().ok_or_else(damaged)?;
            if *kind == NAME {
                continue;
            }
            let oid = rest.try_into().map(u32::from_be_bytes);
            let oid = oid.map_err(|_| damaged())?;
            let change = match *kind {
                NAMESPACE => {
                    let namespace = codec::decode_namespace(oid, value).ok_or_else(damaged)?;
                    Change::PutNamespace(Arc::new(namespace))
                }
                RELATION => {
                    let relation = codec::decode_relation(oid, value, runtimes);
                    Change::PutRelation(Arc::new(relation.ok_or_else(damaged)?))
                }
                _ => return Err(damaged()),
            };
            catalog.apply(&change);
        }
        Ok(catalog)
    }

    /// Writes a change; `before` is the image that it starts from.
    ///
    /// # Errors
    /// `42P07` for a name that a concurrent transaction has taken; conflicts.
    pub fn write(transaction: &Transaction, before: &Catalog, change: &Change) -> Result<()> {
        let table = transaction.table(TABLE)?;
        match change {
            Change::PutNamespace(namespace) => {
                let value = codec::encode_namespace(namespace);
                transaction.upsert(&table, &key(NAMESPACE, namespace.oid), &value)?;
            }
            Change::DropNamespace(oid) => {
                transaction.delete(&table, &key(NAMESPACE, *oid))?;
            }
            Change::PutRelation(relation) => {
                let old = before.relation(relation.oid).map(|old| names(old));
                let (old, new) = (old.unwrap_or_default(), names(relation));
                for (name, _) in old.iter().filter(|name| !new.contains(name)) {
                    transaction.delete(&table, name)?;
                }
                for (name, oid) in new.iter().filter(|name| !old.contains(name)) {
                    match transaction.insert(&table, name, &oid.to_be_bytes()) {
                        Err(vellum::Error::KeyExists { .. }) => {
                            let message = format!("relation \"{}\" already exists", relation.name);
                            return Err(SqlError::new(sqlstate::DUPLICATE_TABLE, message));
                        }
                        done => done?,
                    }
                }
                let value = codec::encode_relation(relation)?;
                transaction.upsert(&table, &key(RELATION, relation.oid), &value)?;
            }
            Change::PutRole(role) => roles::put(transaction, role)?,
            Change::DropRole(role) => roles::remove(transaction, &role.name)?,
            Change::DropRelation(oid) => {
                crate::statistics::remove(transaction, *oid)?;
                if let Some(old) = before.relation(*oid) {
                    for (name, _) in names(old) {
                        transaction.delete(&table, &name)?;
                    }
                }
                transaction.delete(&table, &key(RELATION, *oid))?;
            }
        }
        Ok(())
    }
}

fn key(kind: u8, oid: Oid) -> [u8; 5] {
    let mut key = [kind; 5];
    key[1..].copy_from_slice(&oid.to_be_bytes());
    key
}

/// Keys of the names that a relation has taken, each with its oid.
fn names(relation: &Relation) -> Vec<(Vec<u8>, Oid)> {
    let name = |name: &str, oid: Oid| {
        let mut key = key(NAME, relation.namespace).to_vec();
        key.extend_from_slice(name.as_bytes());
        (key, oid)
    };
    let mut all = vec![name(&relation.name, relation.oid)];
    if let Kind::Table(table) = &relation.kind {
        let indexes = table.indexes.iter();
        all.extend(indexes.map(|index| name(&index.name, index.oid)));
    }
    all
}

fn damaged() -> SqlError {
    SqlError::new(
        sqlstate::DATA_CORRUPTED,
        "a row of the catalog cannot be read",
    )
}
