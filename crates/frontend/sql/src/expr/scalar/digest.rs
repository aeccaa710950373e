//! Digests of text and bytes, and random identifiers.

use super::bytes::{bytea, hex};
use super::{Entry, strict};
use md5::{Digest, Md5};
use sha2::{Sha224, Sha256, Sha384, Sha512};
use vellum_row::Value;

#[rustfmt::skip]
pub(super) static ENTRIES: &[Entry] = &[
    strict(2311, "md5", "text", "text", |a| Ok(Value::text(md5_text(a.text(0).as_bytes())))),
    strict(2321, "md5", "bytea", "text", |a| Ok(Value::text(md5_text(a.bytes(0))))),
    strict(3419, "sha224", "bytea", "bytea", |a| Ok(bytea(Sha224::digest(a.bytes(0)).to_vec()))),
    strict(3420, "sha256", "bytea", "bytea", |a| Ok(bytea(Sha256::digest(a.bytes(0)).to_vec()))),
    strict(3421, "sha384", "bytea", "bytea", |a| Ok(bytea(Sha384::digest(a.bytes(0)).to_vec()))),
    strict(3422, "sha512", "bytea", "bytea", |a| Ok(bytea(Sha512::digest(a.bytes(0)).to_vec()))),
];

/// The MD5 hash of bytes, in hexadecimal digits.
pub(crate) fn md5_text(bytes: &[u8]) -> String {
    hex(&Md5::digest(bytes))
}
