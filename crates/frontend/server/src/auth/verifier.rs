//! What is kept of a password: enough to check a proof, not enough to make one.
//!
//! Layout, as PostgreSQL writes it: `SCRAM-SHA-256$<iterations>:<salt>$<StoredKey>:<ServerKey>`, the last three in base64.
//!
//! Paper: RFC 5802, section 3; RFC 7677.

use crate::secret;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::{digest, hmac, pbkdf2};
use std::fmt;
use std::io;
use std::num::NonZeroU32;

/// Bytes of a key.
pub const KEY_BYTES: usize = digest::SHA256_OUTPUT_LEN;
/// Bytes of a salt that we make.
const SALT_BYTES: usize = 16;
/// Rounds of the hash of a password that we keep.
pub const ITERATIONS: u32 = 4096;
/// Most rounds that are believed of a stored verifier: the client pays for them.
const ITERATIONS_MAX: u32 = 10_000_000;
const PREFIX: &str = "SCRAM-SHA-256$";

/// What is kept of a password.
#[derive(Clone, PartialEq, Eq)]
pub struct Verifier {
    /// Rounds of the hash.
    pub iterations: u32,
    /// What was mixed into the password.
    pub salt: Vec<u8>,
    /// Hash of the key that a proof shows.
    pub stored_key: [u8; KEY_BYTES],
    /// What we prove to the client that we know it.
    pub server_key: [u8; KEY_BYTES],
}

/// Tells nothing: it ends up in logs.
impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verifier").finish_non_exhaustive()
    }
}

impl Verifier {
    /// The verifier of a password, with a new salt. Costs some milliseconds.
    ///
    /// # Errors
    /// If the operating system gives no random bytes.
    pub fn of(password: &str) -> io::Result<Self> {
        Ok(Self::with_salt(
            password,
            &secret::random::<SALT_BYTES>()?,
            ITERATIONS,
        ))
    }

    /// The verifier of a password with this salt.
    pub fn with_salt(password: &str, salt: &[u8], iterations: u32) -> Self {
        // As the clients do: what cannot be prepared, or of which nothing is left, is taken as it is.
        let prepared = stringprep::saslprep(password).ok();
        let prepared = prepared.filter(|prepared| !prepared.is_empty());
        let prepared = prepared.unwrap_or(password.into());
        let rounds = NonZeroU32::new(iterations).unwrap_or(NonZeroU32::MIN);
        let mut salted = [0; KEY_BYTES];
        pbkdf2::derive(
            pbkdf2::PBKDF2_HMAC_SHA256,
            rounds,
            salt,
            prepared.as_bytes(),
            &mut salted,
        );
        let client_key = mac(&salted, b"Client Key");
        Self {
            iterations: rounds.get(),
            salt: salt.to_vec(),
            stored_key: hash(&client_key),
            server_key: mac(&salted, b"Server Key"),
        }
    }

    /// Whether a password satisfies it.
    pub fn is_of(&self, password: &str) -> bool {
        let other = Self::with_salt(password, &self.salt, self.iterations);
        secret::equal(&other.stored_key, &self.stored_key)
            || secret::equal(&other.server_key, &self.server_key)
    }

    /// A verifier that no password satisfies, always the same for a name: so a client cannot tell that a role does not exist by
    /// asking twice.
    pub fn impossible(name: &str, server_secret: &[u8; KEY_BYTES]) -> Self {
        let salt = mac(server_secret, name.as_bytes());
        Self {
            iterations: ITERATIONS,
            salt: salt[..SALT_BYTES].to_vec(),
            stored_key: mac(server_secret, &salt),
            server_key: mac(server_secret, b"impossible"),
        }
    }

    /// Reads a stored verifier; none if it is not one.
    pub fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix(PREFIX)?;
        let (head, keys) = rest.split_once('$')?;
        let (iterations, salt) = head.split_once(':')?;
        let (stored, server) = keys.split_once(':')?;
        let iterations = iterations.parse().ok()?;
        if !(1..=ITERATIONS_MAX).contains(&iterations) {
            return None;
        }
        let key =
            |text: &str| -> Option<[u8; KEY_BYTES]> { STANDARD.decode(text).ok()?.try_into().ok() };
        Some(Self {
            iterations,
            salt: STANDARD.decode(salt).ok()?,
            stored_key: key(stored)?,
            server_key: key(server)?,
        })
    }

    /// The form that is stored.
    pub fn to_text(&self) -> String {
        format!(
            "{PREFIX}{}:{}${}:{}",
            self.iterations,
            STANDARD.encode(&self.salt),
            STANDARD.encode(self.stored_key),
            STANDARD.encode(self.server_key)
        )
    }
}

/// HMAC-SHA-256.
pub fn mac(key: &[u8], message: &[u8]) -> [u8; KEY_BYTES] {
    let key = hmac::Key::new(hmac::HMAC_SHA256, key);
    let tag = hmac::sign(&key, message);
    tag.as_ref().try_into().expect("SHA-256 has 32 bytes")
}

/// SHA-256.
pub fn hash(message: &[u8]) -> [u8; KEY_BYTES] {
    let digest = digest::digest(&digest::SHA256, message);
    digest.as_ref().try_into().expect("SHA-256 has 32 bytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verifier_is_read_as_it_was_written() {
        let verifier = Verifier::with_salt("pencil", b"0123456789abcdef", 4096);
        let text = verifier.to_text();
        assert!(Verifier::parse(&text) == Some(verifier));
        for wrong in [
            "",
            "md5abc",
            "SCRAM-SHA-256$",
            "SCRAM-SHA-256$0:AA==$AA==:AA==",
            "SCRAM-SHA-256$4096:AA==$AA==:AA==",
            &text.replace("4096", "4294967296"),
            &text[..text.len() - 4],
        ] {
            assert!(Verifier::parse(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn a_verifier_is_of_its_password_only() {
        let verifier = Verifier::with_salt("pencil", b"0123456789abcdef", 1);
        assert!(verifier.is_of("pencil") && !verifier.is_of("") && !verifier.is_of("Pencil"));
        // Nothing is left of it when it is prepared, and it is not the empty one.
        let soft = Verifier::with_salt("\u{ad}", b"0123456789abcdef", 1);
        assert!(soft.is_of("\u{ad}") && !soft.is_of(""));
    }

    #[test]
    fn a_verifier_shows_nothing_of_itself() {
        let verifier = Verifier::with_salt("pencil", b"0123456789abcdef", 1);
        assert_eq!(format!("{verifier:?}"), "Verifier { .. }");
    }

    #[test]
    fn an_unknown_role_has_always_the_same_salt() {
        let server = [7; KEY_BYTES];
        let (one, again) = (
            Verifier::impossible("ada", &server),
            Verifier::impossible("ada", &server),
        );
        assert!(one == again);
        assert_ne!(one.salt, Verifier::impossible("eve", &server).salt);
    }
}
