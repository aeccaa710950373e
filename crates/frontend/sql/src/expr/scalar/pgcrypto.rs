//! The functions of `pgcrypto`: digests, random bytes, hashes of passwords, encryption.
//!
//! Differences: of the ciphers AES alone, of the hashes of passwords those of Blowfish and MD5: what the others are good for is past. There is no PGP.
//!
//! Not here: hashes of passwords (`crypt`), ciphers (`cipher`).

use super::bytes::bytea;
use super::uuids::{fill_random, random_uuid};
use super::{Arguments, Entry, cipher, crypt, fault, invalid, strict, volatile};
use crate::error::Result;
use hmac::{Hmac, KeyInit, Mac};
use md5::{Digest, Md5};
use sha1::Sha1;
use sha2::{Sha224, Sha256, Sha384, Sha512};
use vellum_row::Value;

#[rustfmt::skip]
pub(crate) static ENTRIES: &[Entry] = &[
    strict(15_101, "digest", "text text", "bytea", |a| digest(a.text(0).as_bytes(), a.text(1))),
    strict(15_102, "digest", "bytea text", "bytea", |a| digest(a.bytes(0), a.text(1))),
    strict(15_103, "hmac", "text text text", "bytea", |a| hmac(a.text(0).as_bytes(), a.text(1).as_bytes(), a.text(2))),
    strict(15_104, "hmac", "bytea bytea text", "bytea", |a| hmac(a.bytes(0), a.bytes(1), a.text(2))),
    strict(15_105, "crypt", "text text", "text", |a| {
        if !a.env.hears_ends() && crypt::takes_long(a.text(1)) {
            return Err(fault("54000", "crypt of so many rounds cannot be ended in an index, a generated column or a change of a type"));
        }
        crypt::crypt(a.text(0), a.text(1), &mut || a.env.look()).map(Value::text)
    }),
    volatile(15_106, "gen_salt", "text", "text", |a| crypt::salt(a.text(0), 0).map(Value::text)),
    volatile(15_107, "gen_salt", "text int4", "text", |a| crypt::salt(a.text(0), a.int(1)).map(Value::text)),
    strict(15_108, "encrypt", "bytea bytea text", "bytea", |a| encrypt(a, "encrypt", &[], a.text(2))),
    strict(15_109, "decrypt", "bytea bytea text", "bytea", |a| decrypt(a, "decrypt", &[], a.text(2))),
    strict(15_110, "encrypt_iv", "bytea bytea bytea text", "bytea", |a| encrypt(a, "encrypt_iv", a.bytes(2), a.text(3))),
    strict(15_111, "decrypt_iv", "bytea bytea bytea text", "bytea", |a| decrypt(a, "decrypt_iv", a.bytes(2), a.text(3))),
    volatile(15_112, "gen_random_bytes", "int4", "bytea", random_bytes),
    volatile(15_113, "gen_random_uuid", "", "uuid", |_| random_uuid()),
];

/// The most that `gen_random_bytes` gives.
const RANDOM_BYTES_MAX: usize = 1024;

fn random_bytes(a: &Arguments<'_>) -> Result<Value> {
    let length = usize::try_from(a.int(0)).unwrap_or(0);
    if !(1..=RANDOM_BYTES_MAX).contains(&length) {
        return Err(fault("39000", "Length not in range"));
    }
    let mut bytes = vec![0; length];
    fill_random(&mut bytes)?;
    Ok(bytea(bytes))
}

/// A hash.
#[derive(Clone, Copy)]
enum Hash {
    Md5,
    Sha1,
    Sha224,
    Sha256,
    Sha384,
    Sha512,
}

impl Hash {
    /// # Errors
    /// `22023` for a name that none has.
    fn named(name: &str) -> Result<Self> {
        let name = name.to_ascii_lowercase();
        Ok(match name.as_str() {
            "md5" => Self::Md5,
            "sha1" | "sha-1" => Self::Sha1,
            "sha224" | "sha-224" => Self::Sha224,
            "sha256" | "sha-256" => Self::Sha256,
            "sha384" | "sha-384" => Self::Sha384,
            "sha512" | "sha-512" => Self::Sha512,
            _ => {
                return Err(invalid(format!(
                    "Cannot use \"{name}\": No such hash algorithm"
                )));
            }
        })
    }
}

fn digest(data: &[u8], name: &str) -> Result<Value> {
    Ok(bytea(match Hash::named(name)? {
        Hash::Md5 => Md5::digest(data).to_vec(),
        Hash::Sha1 => Sha1::digest(data).to_vec(),
        Hash::Sha224 => Sha224::digest(data).to_vec(),
        Hash::Sha256 => Sha256::digest(data).to_vec(),
        Hash::Sha384 => Sha384::digest(data).to_vec(),
        Hash::Sha512 => Sha512::digest(data).to_vec(),
    }))
}

fn hmac(data: &[u8], key: &[u8], name: &str) -> Result<Value> {
    fn keyed<M: Mac + KeyInit>(data: &[u8], key: &[u8]) -> Vec<u8> {
        let mac = <M as KeyInit>::new_from_slice(key);
        let mac = mac.expect("an HMAC takes keys of any length");
        mac.chain_update(data).finalize().into_bytes().to_vec()
    }
    Ok(bytea(match Hash::named(name)? {
        Hash::Md5 => keyed::<Hmac<Md5>>(data, key),
        Hash::Sha1 => keyed::<Hmac<Sha1>>(data, key),
        Hash::Sha224 => keyed::<Hmac<Sha224>>(data, key),
        Hash::Sha256 => keyed::<Hmac<Sha256>>(data, key),
        Hash::Sha384 => keyed::<Hmac<Sha384>>(data, key),
        Hash::Sha512 => keyed::<Hmac<Sha512>>(data, key),
    }))
}

fn encrypt(a: &Arguments<'_>, function: &str, iv: &[u8], kind: &str) -> Result<Value> {
    let done = cipher::Cipher::named(kind)?.encrypt(a.bytes(0), a.bytes(1), iv);
    done.map(bytea)
        .ok_or_else(|| fault("39000", format!("{function} error: Encryption failed")))
}

fn decrypt(a: &Arguments<'_>, function: &str, iv: &[u8], kind: &str) -> Result<Value> {
    let done = cipher::Cipher::named(kind)?.decrypt(a.bytes(0), a.bytes(1), iv);
    done.map(bytea)
        .ok_or_else(|| fault("39000", format!("{function} error: Decryption failed")))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::super::bytes::hex;
    use super::*;

    fn shown(value: Value) -> String {
        match value {
            Value::Bytea(bytes) => hex(&bytes),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn digests_are_those_of_fips_180() {
        // The first 4 bytes of each.
        for (name, start) in [
            ("md5", "90015098"),
            ("SHA1", "a9993e36"),
            ("sha224", "23097d22"),
            ("sha-256", "ba7816bf"),
            ("sha384", "cb00753f"),
            ("sha512", "ddaf35a1"),
        ] {
            assert!(
                shown(digest(b"abc", name).unwrap()).starts_with(start),
                "{name}"
            );
        }
        assert!(digest(b"", "sha512/256").is_err());
    }

    #[test]
    fn codes_are_those_of_rfc_2202_and_4231() {
        let key = [0x0b; 20];
        let sha1 = hmac(b"Hi There", &key, "sha1").unwrap();
        assert_eq!(shown(sha1), "b617318655057264e28bc0b6fb378c8ef146be00");
        let sha224 = hmac(b"Hi There", &key, "sha224").unwrap();
        assert!(shown(sha224).starts_with("896fb1128abbdf196832107cd49df33f"));
        // A key that is longer than a block.
        let long = hmac(
            b"Test Using Larger Than Block-Size Key - Hash Key First",
            &[0xaa; 131],
            "sha256",
        );
        assert!(shown(long.unwrap()).starts_with("60e431591ee0b67f0d8a26aacbf5b77f"));
        let md5 = hmac(b"what do ya want for nothing?", b"Jefe", "md5").unwrap();
        assert_eq!(shown(md5), "750c783e6ab0b503eaa86e310a5db738");
    }
}
