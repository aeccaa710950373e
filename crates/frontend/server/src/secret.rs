//! Secrets: random bytes that nobody can guess, and comparison that tells nothing by its time.
//!
//! Here and not in `vellum_base::random`: that generator replays a run from a seed, which is the last thing that a password
//! may allow. Nothing that decides about data depends on what is drawn here.

use ring::rand::{SecureRandom, SystemRandom};
use std::io;
use subtle::ConstantTimeEq;

/// Characters of passwords that we make: 32, none that is mistaken for another, none that a shell or a URL treats
/// specially.
const ALPHABET: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
/// Characters of a password: 5 bits each.
const PASSWORD_CHARACTERS: usize = 26;

/// Random bytes from the operating system.
///
/// # Errors
/// If it gives none.
pub fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| io::Error::other("the operating system gives no random bytes"))?;
    Ok(bytes)
}

/// A new password of 130 random bits.
///
/// # Errors
/// As [`random`].
pub fn password() -> io::Result<String> {
    let bytes = random::<PASSWORD_CHARACTERS>()?;
    let character = |byte: &u8| char::from(ALPHABET[usize::from(byte % 32)]);
    Ok(bytes.iter().map(character).collect())
}

/// Whether two secrets are equal; takes as long for any two of the same length.
pub fn equal(a: &[u8], b: &[u8]) -> bool {
    a.ct_eq(b).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_differ_and_need_no_quotes() {
        let (one, two) = (password().unwrap(), password().unwrap());
        assert_ne!(one, two);
        assert_eq!(one.len(), PASSWORD_CHARACTERS);
        assert!(one.bytes().all(|byte| byte.is_ascii_alphanumeric()));
    }

    #[test]
    fn secrets_are_equal_only_as_a_whole() {
        assert!(equal(b"abc", b"abc"));
        assert!(!equal(b"abc", b"abd"));
        assert!(!equal(b"abc", b"ab"));
    }
}
