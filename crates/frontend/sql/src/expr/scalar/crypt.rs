//! Hashes of passwords as `pgcrypto` makes them: `crypt` and `gen_salt`.
//!
//! A hash begins with what it was made with: `$2a$`, the rounds and a salt (bcrypt), or `$1$` and a salt (MD5). So `crypt(password, hash) = hash` says whether it is the password's.
//!
//! Paper: Provos and Mazières, A Future-Adaptable Password Scheme, 1999, section 4; MD5's is that of FreeBSD 2.0.

use super::invalid;
use super::uuids::fill_random;
use crate::error::{Result, SqlError};
use blowfish::Blowfish;
use md5::{Digest, Md5};

/// The 64 letters, as bcrypt counts them.
const BCRYPT: &[u8; 64] = b"./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
/// The same of MD5's.
const PLAIN: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Of a password bcrypt reads so many bytes.
const BCRYPT_BYTES: usize = 72;
/// How often bcrypt's text is encrypted.
const BCRYPT_TIMES: usize = 64;
/// Letters of a salt of bcrypt: 16 bytes.
const BCRYPT_SALT: usize = 22;
/// Rounds of bcrypt, as a power of two, if none are said.
const BCRYPT_DEFAULT: i32 = 6;
/// Rounds of MD5, which there is no other number of.
const MD5_ROUNDS: i32 = 1000;

/// A new salt.
///
/// # Errors
/// `22023` for an algorithm or a number of rounds that there is not.
pub(super) fn salt(algorithm: &str, rounds: i32) -> Result<String> {
    let wrong_rounds = || invalid("gen_salt: Incorrect number of rounds");
    let mut bytes = [0; 16];
    match algorithm.to_ascii_lowercase().as_str() {
        "bf" => {
            let rounds = if rounds == 0 { BCRYPT_DEFAULT } else { rounds };
            if !(4..=31).contains(&rounds) {
                return Err(wrong_rounds());
            }
            fill_random(&mut bytes)?;
            Ok(format!("$2a${rounds:02}${}", bcrypt_letters(&bytes)))
        }
        "md5" => {
            if !matches!(rounds, 0 | MD5_ROUNDS) {
                return Err(wrong_rounds());
            }
            fill_random(&mut bytes[..6])?;
            let mut salt = "$1$".to_owned();
            for three in bytes[..6].chunks(3) {
                put_plain(&mut salt, [three[2], three[1], three[0]], 4);
            }
            Ok(salt)
        }
        _ => Err(invalid("gen_salt: Unknown salt algorithm")),
    }
}

/// The hash of a password, by a salt or by a hash that begins with one. `look` is called while it works.
///
/// # Errors
/// `22023` for what is no salt; those of `look`.
pub(super) fn crypt(
    password: &str,
    salt: &str,
    look: &mut dyn FnMut() -> Result<()>,
) -> Result<String> {
    if let Some(rest) = salt.strip_prefix("$2a$") {
        return bcrypt(password, rest, look)?.ok_or_else(no_salt);
    }
    match salt.strip_prefix("$1$") {
        Some(rest) => Ok(md5_crypt(password.as_bytes(), rest)),
        None => Err(no_salt()),
    }
}

#[cold]
/// Whether hashing with a salt takes longer than a moment: each more of its cost doubles that.
pub(super) fn takes_long(salt: &str) -> bool {
    let parts = salt.strip_prefix("$2a$").and_then(bcrypt_parts);
    parts.is_some_and(|(cost, _)| cost > 12)
}

fn no_salt() -> SqlError {
    invalid("invalid salt")
}

/// None for what is no salt: two digits, `$`, and 22 letters.
fn bcrypt(
    password: &str,
    salt: &str,
    look: &mut dyn FnMut() -> Result<()>,
) -> Result<Option<String>> {
    let Some((rounds, letters)) = bcrypt_parts(salt) else {
        return Ok(None);
    };
    let Some(bytes) = bcrypt_bytes(letters) else {
        return Ok(None);
    };
    let mut key = password.as_bytes().to_vec();
    key.push(0);
    key.truncate(BCRYPT_BYTES);
    let mut state = Blowfish::bc_init_state();
    state.salted_expand_key(&bytes, &key);
    for round in 0..1u64 << rounds {
        // Some hundred thousand rounds a second.
        if round % 1024 == 0 {
            look()?;
        }
        state.bc_expand_key(&key);
        state.bc_expand_key(&bytes);
    }
    let mut made = Vec::with_capacity(24);
    for words in b"OrpheanBeholderScryDoubt".chunks(8) {
        let word = |at: usize| {
            let bytes = &words[at..at + 4];
            bytes
                .iter()
                .fold(0, |word, byte| word << 8 | u32::from(*byte))
        };
        let mut pair = [word(0), word(4)];
        for _ in 0..BCRYPT_TIMES {
            pair = state.bc_encrypt(pair);
        }
        made.extend(pair.into_iter().flat_map(u32::to_be_bytes));
    }
    // The last byte was never shown.
    made.pop();
    let (salt, hash) = (bcrypt_letters(&bytes), bcrypt_letters(&made));
    Ok(Some(format!("$2a${rounds:02}${salt}{hash}")))
}

fn bcrypt_parts(salt: &str) -> Option<(u32, &[u8])> {
    let bytes = salt.as_bytes();
    let (rounds, letters) = bytes.split_at_checked(3)?;
    let [tens @ b'0'..=b'3', ones @ b'0'..=b'9', b'$'] = rounds else {
        return None;
    };
    let rounds = u32::from(tens - b'0') * 10 + u32::from(ones - b'0');
    let letters = letters.get(..BCRYPT_SALT)?;
    (4..=31).contains(&rounds).then_some((rounds, letters))
}

/// Six bits a letter, the first ones first.
fn bcrypt_letters(bytes: &[u8]) -> String {
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let part = |at: usize| three.get(at).copied().map_or(0, u32::from);
        let bits = part(0) << 16 | part(1) << 8 | part(2);
        for number in 0..=three.len() {
            let six = bits >> (18 - 6 * number) & 0x3f;
            text.push(char::from(BCRYPT[six as usize]));
        }
    }
    text
}

/// The same back: 16 bytes of 22 letters. The last four bits of these are nothing's.
fn bcrypt_bytes(letters: &[u8]) -> Option<[u8; 16]> {
    let mut bytes = [0; 16];
    let (mut bits, mut count, mut at) = (0u32, 0, 0);
    for letter in letters {
        let six = BCRYPT.iter().position(|own| own == letter)?;
        bits = bits << 6 | six as u32;
        count += 6;
        if count >= 8 && at < bytes.len() {
            count -= 8;
            bytes[at] = (bits >> count) as u8;
            at += 1;
        }
    }
    Some(bytes)
}

/// So many letters of the lowest bits of three bytes, the lowest first.
fn put_plain(text: &mut String, [high, middle, low]: [u8; 3], letters: u32) {
    let mut bits = u32::from(high) << 16 | u32::from(middle) << 8 | u32::from(low);
    for _ in 0..letters {
        text.push(char::from(PLAIN[(bits & 0x3f) as usize]));
        bits >>= 6;
    }
}

/// A salt of eight letters at most, up to the next `$`.
fn md5_crypt(password: &[u8], salt: &str) -> String {
    let end = salt.find('$').unwrap_or(salt.len()).min(8);
    let salt = &salt[..salt.floor_char_boundary(end)];
    let salted = salt.as_bytes();
    let mixed = Md5::new()
        .chain_update(password)
        .chain_update(salted)
        .chain_update(password)
        .finalize();
    let mut first = Md5::new()
        .chain_update(password)
        .chain_update(b"$1$")
        .chain_update(salted);
    for start in (0..password.len()).step_by(16) {
        first.update(&mixed[..16.min(password.len() - start)]);
    }
    let mut length = password.len();
    while length > 0 {
        match length & 1 {
            1 => first.update([0]),
            _ => first.update(&password[..1]),
        }
        length >>= 1;
    }
    let mut hash = first.finalize();
    for round in 0..MD5_ROUNDS {
        let mut next = Md5::new();
        let odd = round & 1 == 1;
        next.update(if odd { password } else { &hash[..] });
        if round % 3 != 0 {
            next.update(salted);
        }
        if round % 7 != 0 {
            next.update(password);
        }
        next.update(if odd { &hash[..] } else { password });
        hash = next.finalize();
    }
    let mut text = format!("$1${salt}$");
    for [high, middle, low] in [[0, 6, 12], [1, 7, 13], [2, 8, 14], [3, 9, 15], [4, 10, 5]] {
        put_plain(&mut text, [hash[high], hash[middle], hash[low]], 4);
    }
    put_plain(&mut text, [0, 0, hash[11]], 2);
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    fn made(password: &str, salt: &str) -> Option<String> {
        crypt(password, salt, &mut || Ok(())).ok()
    }

    #[test]
    fn hashes_are_those_of_crypt_blowfish() {
        for (password, hash) in [
            (
                "U*U",
                "$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW",
            ),
            (
                "U*U*U",
                "$2a$05$XXXXXXXXXXXXXXXXXXXXXOAcXxm9kjPGEMsLznoKqmqw7tc8WCx4a",
            ),
            (
                "",
                "$2a$05$CCCCCCCCCCCCCCCCCCCCC.7uG0VCzI2bS7j6ymqJi9CdcdxiRTWNy",
            ),
        ] {
            assert_eq!(made(password, hash).as_deref(), Some(hash));
            assert_eq!(made(password, &hash[..29]).as_deref(), Some(hash));
            assert_ne!(made("other", hash).as_deref(), Some(hash));
        }
        for wrong in [
            "$2a$05$abc",
            "$2a$03$CCCCCCCCCCCCCCCCCCCCC.",
            "$2a$32$CCCCCCCCCCCCCCCCCCCCC.",
            "$2b$05$CCCCCCCCCCCCCCCCCCCCC.",
            "$2a$05$CCCCCCCCCCCCCCCCCCCC!.",
            "$2a$",
            "ab",
            "",
        ] {
            assert_eq!(made("x", wrong), None, "{wrong}");
        }
    }

    #[test]
    fn hashes_of_md5_are_those_of_postgresql() {
        for (password, hash) in [
            ("x", "$1$abc$OGyl6dDvZCDiGmIVbeuCq/"),
            ("x", "$1$$LP5.V3ajGqHDdXW6XwZQy."),
            ("x", "$1$abcdefgh$znAnv9M.XU2pRYfmSs46h/"),
            ("", "$1$ab$rn6aQS/o7141mj179E/zA."),
            ("password", "$1$ab cd$Xd2iTtdk9KZw.mT2oN2Gf/"),
        ] {
            assert_eq!(made(password, hash).as_deref(), Some(hash));
        }
    }

    #[test]
    fn salts_are_taken_by_crypt() {
        for (algorithm, rounds, start, length) in [
            ("bf", 0, "$2a$06$", 29),
            ("bf", 4, "$2a$04$", 29),
            ("MD5", 0, "$1$", 11),
            ("md5", 1000, "$1$", 11),
        ] {
            let salt = salt(algorithm, rounds).unwrap();
            assert!(salt.starts_with(start) && salt.len() == length, "{salt}");
            assert!(made("x", &salt).unwrap().starts_with(&salt));
        }
        for (algorithm, rounds) in [("bf", 3), ("bf", 32), ("md5", 5), ("des", 0), ("", 0)] {
            assert!(salt(algorithm, rounds).is_err(), "{algorithm} {rounds}");
        }
    }
}
