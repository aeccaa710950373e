//! The catalog's rows in the engine.
//!
//! Layout: rows of the engine table [`Store::TABLE`]; keys: `1, oid` (big-endian) of a schema, `2, oid` of a relation, `3, oid of the
//! schema, name` of every relation and index (value: its oid), with 0 in place of the schema's oid of every schema, `5` of every type, so that two transactions cannot make one name; `4, oid, column` (big-endian) of what is
//! said of an object (value: the text); `6, oid of a role, 1 in the database` of settings ([`kept_settings`]); `7, name` of an extension ([`extension`]), so that two transactions cannot make one; `8` and what they are on,
//! of rights that are kept beside the objects ([`acls`]).

use super::relation::Kind;
use super::whole::has_indexed_columns;
use super::{
    AclOf, Catalog, Change, Comment, Extension, FIRST_USER_OID, KeptFor, Namespace, Oid, Relation,
    acls, codec, extension, kept_settings,
};
use crate::database::FIRST_ROLE_OID;
use crate::error::{Result, SqlError};
use crate::roles;
use crate::sqlstate;
use std::sync::Arc;
use vellum::Transaction;
use vellum_base::maps::HashMap;

const TABLE: &str = Store::TABLE;

const NAMESPACE: u8 = 1;
const RELATION: u8 = 2;
const NAME: u8 = 3;
const COMMENT: u8 = 4;
const TYPE_NAME: u8 = 5;
const SETTINGS: u8 = 6;
const EXTENSION: u8 = 7;
const ACL: u8 = 8;

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
                owner: FIRST_ROLE_OID,
                acl: None,
            };
            let value = codec::encode_namespace(&namespace);
            transaction.insert(&table, &key(NAMESPACE, oid), &value)?;
        }
        Ok(())
    }

    /// Reads the whole catalog, and says which foreign keys were left out of it ([`Catalog::leave_out_keys`]).
    ///
    /// # Errors
    /// `XX001` for rows that cannot be read; `0A000` for those of a newer version.
    pub fn load(transaction: &Transaction, version: u64) -> Result<(Catalog, Vec<String>)> {
        let mut catalog = Catalog::of_system(version);
        for role in roles::all(transaction)? {
            catalog.apply(&Change::PutRole(Arc::new(role)));
        }
        let names = role_names(&catalog);
        let role = |name: &str| owner_called(&names, name);
        let table = transaction.table(TABLE)?;
        let mut comments = Vec::new();
        let mut cursor = transaction.cursor(&table, ..)?;
        while let Some((key, value)) = cursor.next()? {
            let (kind, rest) = key.split_first().ok_or_else(damaged)?;
            if matches!(*kind, NAME | TYPE_NAME) {
                continue;
            }
            if *kind > ACL {
                return Err(newer());
            }
            if *kind == COMMENT {
                let comment = comment_of(rest, value).ok_or_else(damaged)?;
                comments.push(Change::PutComment(comment));
                continue;
            }
            if *kind == SETTINGS {
                let of = kept_for(rest).ok_or_else(damaged)?;
                let pairs = kept_settings::decode(value).ok_or_else(damaged)?;
                catalog.apply(&Change::PutSettings(of, pairs));
                continue;
            }
            if *kind == ACL {
                let of = acls::of_key(rest).ok_or_else(damaged)?;
                let acl = acls::decode(value).ok_or_else(damaged)?;
                catalog.apply(&Change::PutAcl(of, Some(acl.into())));
                continue;
            }
            if *kind == EXTENSION {
                let extension = extension::decode(rest, value, &role).ok_or_else(damaged)?;
                catalog.apply(&Change::PutExtension(Arc::new(extension)));
                continue;
            }
            let oid = rest.try_into().map(u32::from_be_bytes);
            let oid = oid.map_err(|_| damaged())?;
            let change = match *kind {
                NAMESPACE => {
                    let namespace = codec::decode_namespace(oid, value, &role);
                    let namespace = namespace.ok_or_else(|| unreadable(value))?;
                    Change::PutNamespace(Arc::new(namespace))
                }
                RELATION => {
                    let relation = codec::decode_relation(oid, value, &role);
                    Change::PutRelation(Arc::new(relation.ok_or_else(|| unreadable(value))?))
                }
                _ => return Err(damaged()),
            };
            catalog.apply(&change);
        }
        for comment in &comments {
            catalog.apply(comment);
        }
        let tables = catalog.relations.values();
        let mut tables = tables.filter_map(|relation| relation.table());
        if !tables.all(has_indexed_columns) {
            return Err(damaged());
        }
        let left_out = catalog.leave_out_keys();
        Ok((catalog, left_out))
    }

    /// Writes the rows of earlier builds anew, which have the names of owners where oids are now: a role may be called otherwise. All others are left alone. `catalog`: what was read of them.
    ///
    /// # Errors
    /// What the engine reports.
    pub fn keep_owners_by_oid(engine: &vellum::Database, catalog: &Catalog) -> Result<()> {
        let transaction = engine.begin()?;
        let names = role_names(catalog);
        let role = |name: &str| owner_called(&names, name);
        let table = transaction.table(TABLE)?;
        let mut anew = Vec::new();
        let mut cursor = transaction.cursor(&table, ..)?;
        while let Some((key, value)) = cursor.next()? {
            let next = match key.split_first() {
                Some((&NAMESPACE, _)) => codec::owned_by_oid(value, false, &role),
                Some((&RELATION, _)) => codec::owned_by_oid(value, true, &role),
                Some((&EXTENSION, name)) => extension::owned_by_oid(name, value, &role),
                _ => None,
            };
            anew.extend(next.map(|next| (key.to_vec(), next)));
        }
        drop(cursor);
        for (key, value) in &anew {
            transaction.upsert(&table, key, value)?;
        }
        match anew.is_empty() {
            true => transaction.rollback()?,
            false => transaction.commit()?,
        }
        Ok(())
    }

    /// Writes a change; `before` is the image that it starts from.
    ///
    /// # Errors
    /// `42P07` for a name that a concurrent transaction has taken; conflicts.
    pub fn write(transaction: &Transaction, before: &Catalog, change: &Change) -> Result<()> {
        let table = transaction.table(TABLE)?;
        match change {
            Change::PutNamespace(namespace) => {
                let old = before.namespace_by_oid(namespace.oid);
                let old = old.map(|old| schema_key(&old.name));
                let name = schema_key(&namespace.name);
                if old.as_ref() != Some(&name) {
                    if let Some(old) = old {
                        transaction.delete(&table, &old)?;
                    }
                    match transaction.insert(&table, &name, &namespace.oid.to_be_bytes()) {
                        Err(vellum::Error::KeyExists { .. }) => {
                            return Err(schema_there(&namespace.name));
                        }
                        done => done?,
                    }
                }
                let value = codec::encode_namespace(namespace);
                transaction.upsert(&table, &key(NAMESPACE, namespace.oid), &value)?;
            }
            Change::DropNamespace(oid) => {
                if let Some(old) = before.namespace_by_oid(*oid) {
                    transaction.delete(&table, &schema_key(&old.name))?;
                }
                transaction.delete(&table, &key(NAMESPACE, *oid))?;
                transaction.delete(&table, &comment_key(*oid, 0))?;
                for (of, _) in before.acls().filter(|(of, _)| of.is_in_schema(*oid)) {
                    transaction.delete(&table, &acl_key(of))?;
                }
            }
            Change::PutRelation(relation) => {
                let next = Some(&**relation);
                drop_comments(transaction, &table, before, relation.oid, next)?;
                let old = before.relation(relation.oid).map(|old| names(old));
                let (old, new) = (old.unwrap_or_default(), names(relation));
                for (name, _) in old.iter().filter(|name| !new.contains(name)) {
                    transaction.delete(&table, name)?;
                }
                for (name, oid) in new.iter().filter(|name| !old.contains(name)) {
                    match transaction.insert(&table, name, &oid.to_be_bytes()) {
                        Err(vellum::Error::KeyExists { .. }) => {
                            return Err(already_there(relation));
                        }
                        done => done?,
                    }
                }
                let value = codec::encode_relation(relation)?;
                transaction.upsert(&table, &key(RELATION, relation.oid), &value)?;
            }
            Change::PutRole(role) => roles::put(transaction, role)?,
            Change::RenameRole(before, role) => {
                roles::remove(transaction, &before.name)?;
                roles::put(transaction, role)?;
            }
            Change::DropRole(role) => {
                roles::remove(transaction, &role.name)?;
                transaction.delete(&table, &comment_key(role.oid, 0))?;
            }
            Change::PutComment(comment) => {
                let key = comment_key(comment.object, comment.column);
                match &comment.text {
                    Some(text) => transaction.upsert(&table, &key, text.as_bytes())?,
                    None => transaction.delete(&table, &key)?,
                };
            }
            Change::PutSettings(of, pairs) => {
                let key = settings_key(*of);
                if pairs.is_empty() {
                    transaction.delete(&table, &key)?;
                } else {
                    transaction.upsert(&table, &key, &kept_settings::encode(pairs))?;
                }
            }
            Change::PutAcl(of, acl) => {
                let key = acl_key(*of);
                match acl {
                    Some(acl) => transaction.upsert(&table, &key, &acls::encode(acl))?,
                    None => transaction.delete(&table, &key)?,
                };
            }
            Change::PutExtension(extension) => {
                let (key, value) = (extension_key(extension), extension::encode(extension));
                if before.extension(&extension.name).is_some() {
                    transaction.upsert(&table, &key, &value)?;
                    return Ok(());
                }
                match transaction.insert(&table, &key, &value) {
                    Err(vellum::Error::KeyExists { .. }) => {
                        return Err(extension.already_there());
                    }
                    done => done?,
                }
            }
            Change::DropExtension(extension) => {
                transaction.delete(&table, &extension_key(extension))?;
                transaction.delete(&table, &comment_key(extension.oid, 0))?;
            }
            Change::DropRelation(oid) => {
                drop_comments(transaction, &table, before, *oid, None)?;
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

/// The oids of the roles of an image, by name.
fn role_names(catalog: &Catalog) -> HashMap<Box<str>, Oid> {
    let roles = catalog.roles();
    roles
        .map(|role| (role.name.as_str().into(), role.oid))
        .collect()
}

/// The role that an earlier build has kept by its name. What belongs to a name that no role has is the first role's, as those builds showed it.
fn owner_called(names: &HashMap<Box<str>, Oid>, name: &str) -> Oid {
    names.get(name).copied().unwrap_or(FIRST_ROLE_OID)
}

fn key(kind: u8, oid: Oid) -> [u8; 5] {
    let mut key = [kind; 5];
    key[1..].copy_from_slice(&oid.to_be_bytes());
    key
}

/// Key of the name that a schema has taken. One that an earlier build has made has none, and needs none: all images show it.
fn schema_key(name: &str) -> Vec<u8> {
    let mut key = key(NAME, 0).to_vec();
    key.extend_from_slice(name.as_bytes());
    key
}

fn extension_key(extension: &Extension) -> Vec<u8> {
    let mut key = vec![EXTENSION];
    key.extend_from_slice(extension.name.as_bytes());
    key
}

fn comment_key(object: Oid, column: u16) -> [u8; 7] {
    let mut full = [0; 7];
    full[..5].copy_from_slice(&key(COMMENT, object));
    full[5..].copy_from_slice(&column.to_be_bytes());
    full
}

fn acl_key(of: AclOf) -> Vec<u8> {
    let mut key = vec![ACL];
    key.extend_from_slice(&acls::key(of));
    key
}

fn settings_key(of: KeptFor) -> [u8; 6] {
    let mut full = [0; 6];
    full[..5].copy_from_slice(&key(SETTINGS, of.role));
    full[5] = u8::from(of.in_database);
    full
}

fn kept_for(key: &[u8]) -> Option<KeptFor> {
    let (role, database) = key.split_first_chunk::<4>()?;
    let in_database = match database {
        [0] => false,
        [1] => true,
        _ => return None,
    };
    Some(KeptFor {
        role: u32::from_be_bytes(*role),
        in_database,
    })
}

fn comment_of(key: &[u8], value: &[u8]) -> Option<Comment> {
    let (object, column) = key.split_first_chunk::<4>()?;
    Some(Comment {
        object: u32::from_be_bytes(*object),
        column: column.try_into().map(u16::from_be_bytes).ok()?,
        text: Some(std::str::from_utf8(value).ok()?.into()),
    })
}

fn drop_comments(
    transaction: &Transaction,
    table: &vellum::Table,
    image: &Catalog,
    oid: Oid,
    next: Option<&Relation>,
) -> Result<()> {
    if let Some(before) = image.relation(oid) {
        for (object, column) in image.comments_lost(before, next) {
            transaction.delete(table, &comment_key(object, column))?;
        }
    }
    Ok(())
}

/// Keys of the names that a relation has taken, each with its oid.
fn names(relation: &Relation) -> Vec<(Vec<u8>, Oid)> {
    let name = |name: &str, oid: Oid| {
        let space = if relation.is_type() { TYPE_NAME } else { NAME };
        let mut key = key(space, relation.namespace).to_vec();
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

/// The name of a relation or of a type is taken.
#[cold]
fn already_there(relation: &Relation) -> SqlError {
    let (word, state) = match relation.is_type() {
        true => ("type", sqlstate::DUPLICATE_OBJECT),
        false => ("relation", sqlstate::DUPLICATE_TABLE),
    };
    SqlError::new(
        state,
        format!("{word} \"{}\" already exists", relation.name),
    )
}

#[cold]
fn schema_there(name: &str) -> SqlError {
    let message = format!("schema \"{name}\" already exists");
    SqlError::new(sqlstate::DUPLICATE_SCHEMA, message)
}

/// A row of a namespace or a relation that could not be decoded.
#[cold]
fn unreadable(value: &[u8]) -> SqlError {
    match codec::is_newer(value) {
        true => newer(),
        false => damaged(),
    }
}

/// What a later version of Vellum has written, which this one does not know: nothing is wrong with the directory.
#[cold]
fn newer() -> SqlError {
    let message = "the catalog was written by a newer version of Vellum";
    SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, message)
        .with_hint("Use that version, or a newer one, with this directory.")
}

#[cold]
fn damaged() -> SqlError {
    SqlError::new(
        sqlstate::DATA_CORRUPTED,
        "a row of the catalog cannot be read",
    )
}
