//! SCRAM-SHA-256: a client proves that it knows a password without showing it, and we prove that we have its verifier.
//!
//! Paper: RFC 5802 (messages: section 7), RFC 7677, RFC 5929 (tls-server-end-point).
//! Differences: as in PostgreSQL the user's name is that of the startup packet; the one in the first message is ignored.
//!
//! States: [`Exchange::begin`] (client-first → server-first) → [`Exchange::finish`] (client-final → server-final). Each is called
//! once; a failure ends the exchange.
//!
//! Invariants: S1: what a failed proof costs does not depend on why it fails (A2): the verifier of a role that does not exist is
//! computed with, too, and compared in constant time.

use super::verifier::{KEY_BYTES, Verifier, hash, mac};
use crate::secret;
use crate::wire::reader::PROTOCOL_VIOLATION;
use crate::wire::report::Report;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::io;

/// Without channel binding.
pub const PLAIN: &str = "SCRAM-SHA-256";
/// With channel binding.
pub const PLUS: &str = "SCRAM-SHA-256-PLUS";
/// Bytes of our part of the nonce, before base64.
const NONCE_BYTES: usize = 18;

/// A login under way.
#[derive(Debug)]
pub struct Exchange {
    verifier: Verifier,
    /// What the client must repeat of its choice of channel binding.
    binding: Vec<u8>,
    /// Both parts of the nonce.
    nonce: String,
    /// `client-first-message-bare,server-first-message,`: the beginning of what is signed.
    signed: String,
}

/// How an exchange ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The proof is right; this message proves that we have the verifier.
    Proved(Vec<u8>),
    /// It is not.
    Refused,
}

/// A message that is no SCRAM.
fn malformed(detail: &'static str) -> Report {
    Report::fatal(PROTOCOL_VIOLATION, "malformed SCRAM message").detail(detail)
}

impl Exchange {
    /// Answers client-first. `end_point` is the hash of our certificate where the connection has TLS and it has one.
    ///
    /// # Errors
    /// FATAL for a message that is malformed, or that asks for what we did not offer. `Err` outside if there are no random
    /// bytes.
    pub fn begin(
        mechanism: &str,
        message: &[u8],
        verifier: Verifier,
        end_point: Option<&[u8]>,
    ) -> io::Result<Result<(Self, Vec<u8>), Report>> {
        let nonce = STANDARD.encode(secret::random::<NONCE_BYTES>()?);
        Ok(Self::begin_with(
            mechanism, message, verifier, end_point, &nonce,
        ))
    }

    fn begin_with(
        mechanism: &str,
        message: &[u8],
        verifier: Verifier,
        end_point: Option<&[u8]>,
        our_nonce: &str,
    ) -> Result<(Self, Vec<u8>), Report> {
        let message = ascii(message)?;
        let invalid = || malformed("The first message has no channel binding flag.");
        let (flag, rest) = message.split_once(',').ok_or_else(invalid)?;
        let binding = binding(mechanism, flag, end_point)?;
        let (identity, bare) = rest.split_once(',').ok_or_else(invalid)?;
        if !identity.is_empty() {
            return Err(Report::fatal(
                "0A000",
                "client uses authorization identity, but it is not supported",
            ));
        }
        let mut attributes = bare.split(',');
        let user = attributes.next().unwrap_or("");
        if user.starts_with("m=") {
            return Err(Report::fatal(
                "0A000",
                "client requires an unsupported SCRAM extension",
            ));
        }
        let theirs = attributes
            .next()
            .and_then(|nonce| nonce.strip_prefix("r="))
            .filter(|nonce| !nonce.is_empty());
        let (Some(theirs), true) = (theirs, user.starts_with("n=")) else {
            return Err(malformed("The first message has no user name or no nonce."));
        };
        let nonce = format!("{theirs}{our_nonce}");
        let answer = format!(
            "r={nonce},s={},i={}",
            STANDARD.encode(&verifier.salt),
            verifier.iterations
        );
        let exchange = Self {
            verifier,
            binding,
            nonce,
            signed: format!("{bare},{answer},"),
        };
        Ok((exchange, answer.into_bytes()))
    }

    /// Answers client-final.
    ///
    /// # Errors
    /// FATAL for a message that is malformed.
    pub fn finish(self, message: &[u8]) -> Result<Outcome, Report> {
        let message = ascii(message)?;
        // The proof is the last attribute; extensions that we do not know stand before it, and are ignored.
        let (unproved, proof) = message
            .rsplit_once(",p=")
            .ok_or_else(|| malformed("The final message has no proof."))?;
        let mut attributes = unproved.split(',');
        let binding = attributes.next().and_then(|a| a.strip_prefix("c="));
        let nonce = attributes.next().and_then(|a| a.strip_prefix("r="));
        let (Some(binding), Some(nonce)) = (binding, nonce) else {
            return Err(malformed(
                "The final message has no channel binding or no nonce.",
            ));
        };
        let decoded = STANDARD
            .decode(binding)
            .map_err(|_| malformed("The channel binding is not base64."))?;
        let proof: [u8; KEY_BYTES] = STANDARD
            .decode(proof)
            .ok()
            .and_then(|proof| proof.try_into().ok())
            .ok_or_else(|| malformed("The proof is not 32 bytes in base64."))?;
        let signed = format!("{}{unproved}", self.signed);
        let signature = mac(&self.verifier.stored_key, signed.as_bytes());
        let mut client_key = proof;
        for (byte, mask) in client_key.iter_mut().zip(signature) {
            *byte ^= mask;
        }
        // All three are looked at before the answer (S1).
        let proved = secret::equal(&hash(&client_key), &self.verifier.stored_key);
        let bound = secret::equal(&decoded, &self.binding);
        let fresh = secret::equal(nonce.as_bytes(), self.nonce.as_bytes());
        if proved & bound & fresh {
            let ours = mac(&self.verifier.server_key, signed.as_bytes());
            let answer = format!("v={}", STANDARD.encode(ours));
            Ok(Outcome::Proved(answer.into_bytes()))
        } else {
            Ok(Outcome::Refused)
        }
    }
}

/// What the client must repeat: its flag, and the hash of the certificate that it saw.
fn binding(mechanism: &str, flag: &str, end_point: Option<&[u8]>) -> Result<Vec<u8>, Report> {
    let mut binding = format!("{flag},,").into_bytes();
    match (mechanism, flag, end_point) {
        (PLUS, "p=tls-server-end-point", Some(hash)) => {
            binding.extend_from_slice(hash);
            Ok(binding)
        }
        (PLUS, _, _) => Err(malformed(
            "The client selected channel binding, but does not use tls-server-end-point.",
        )),
        // It could bind, and believes that we cannot: somebody took our offer out.
        (_, "y", Some(_)) => Err(Report::fatal(
            "28000",
            "SCRAM channel binding negotiation error",
        )
        .detail("The client supports channel binding but thinks the server does not. However, this server does.")),
        (PLAIN, "n" | "y", _) => Ok(binding),
        (PLAIN, _, _) => Err(malformed(
            "The client did not select channel binding, but its message says otherwise.",
        )),
        _ => Err(Report::fatal(
            PROTOCOL_VIOLATION,
            "client selected an invalid SASL authentication mechanism",
        )),
    }
}

/// A message as text: printable ASCII is all that SCRAM needs, but for names, which are ignored.
fn ascii(message: &[u8]) -> Result<&str, Report> {
    std::str::from_utf8(message)
        .ok()
        .filter(|text| !text.contains('\0'))
        .ok_or_else(|| malformed("It is not text."))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 7677, section 3.
    const SALT: &[u8] = &[
        0x5b, 0x6d, 0x99, 0x68, 0x9d, 0x12, 0x35, 0x8e, 0xec, 0xa0, 0x4b, 0x14, 0x12, 0x36, 0xfa,
        0x81,
    ];
    const CLIENT_FIRST: &[u8] = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO";
    const OUR_NONCE: &str = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
    const CLIENT_FINAL: &str = "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
                                p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";

    fn begun() -> (Exchange, Vec<u8>) {
        let verifier = Verifier::with_salt("pencil", SALT, 4096);
        Exchange::begin_with(PLAIN, CLIENT_FIRST, verifier, None, OUR_NONCE).unwrap()
    }

    #[test]
    fn the_example_of_the_standard_is_answered_as_there() {
        let (exchange, answer) = begun();
        assert_eq!(
            answer,
            b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
        );
        let outcome = exchange.finish(CLIENT_FINAL.as_bytes()).unwrap();
        let expected = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=";
        assert_eq!(outcome, Outcome::Proved(expected.to_vec()));
    }

    #[test]
    fn a_wrong_proof_nonce_or_binding_is_refused() {
        for (from, to) in [
            ("p=dHzb", "p=dHzc"),
            ("r=rOpr", "r=rOps"),
            ("c=biws", "c=eSws"),
        ] {
            let message = CLIENT_FINAL.replace(from, to);
            let outcome = begun().0.finish(message.as_bytes()).unwrap();
            assert_eq!(outcome, Outcome::Refused, "{to}");
        }
    }

    #[test]
    fn malformed_messages_end_the_login_and_never_panic() {
        for message in [
            &b""[..],
            b"n",
            b"n,,",
            b"n,,n=user",
            b"n,,n=user,r=",
            b"n,a=eve,n=user,r=x",
            b"n,,m=x,n=user,r=x",
            b"p=tls-server-end-point,,n=user,r=x",
            b"\xff\xfe",
        ] {
            let verifier = Verifier::with_salt("pencil", SALT, 1);
            let begun = Exchange::begin_with(PLAIN, message, verifier, None, "x");
            assert!(begun.unwrap_err().is_fatal(), "{message:?}");
        }
        for message in ["", "c=biws", "c=biws,r=x,p=!", "c=!,r=x,p=AAAA", ",p="] {
            assert!(begun().0.finish(message.as_bytes()).is_err(), "{message}");
        }
    }

    #[test]
    fn a_client_that_could_bind_is_not_talked_out_of_it() {
        let verifier = Verifier::with_salt("pencil", SALT, 1);
        let message = b"y,,n=user,r=x";
        let stripped =
            Exchange::begin_with(PLAIN, message, verifier.clone(), Some(b"hash"), "y").unwrap_err();
        assert_eq!(stripped.message, "SCRAM channel binding negotiation error");
        assert!(Exchange::begin_with(PLAIN, message, verifier, None, "y").is_ok());
    }

    #[test]
    fn a_binding_is_the_hash_of_the_certificate_that_the_client_saw() {
        let verifier = || Verifier::with_salt("pencil", SALT, 1);
        let first = b"p=tls-server-end-point,,n=,r=x";
        let ours = Some(&b"the hash"[..]);
        let (exchange, _) = Exchange::begin_with(PLUS, first, verifier(), ours, "y").unwrap();
        assert_eq!(exchange.binding, b"p=tls-server-end-point,,the hash");
        assert!(Exchange::begin_with(PLUS, first, verifier(), None, "y").is_err());
        assert!(Exchange::begin_with(PLUS, b"n,,n=,r=x", verifier(), ours, "y").is_err());
        assert!(Exchange::begin_with("PLAIN", b"n,,n=,r=x", verifier(), ours, "y").is_err());
    }
}
