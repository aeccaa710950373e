//! TLS: certificate and key, and the hash of the certificate that SCRAM binds to.
//!
//! Without files a certificate of our own is made and kept in the data directory: it keeps listeners out, and lets a client
//! that was given the certificate know the server; nobody else vouches for it.
//!
//! Paper: RFC 5929, section 4.1 (which hash of a certificate is its end point).

use crate::files;
use ring::digest;
use rustls::ServerConfig;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Longest certificate chain or key that is read.
const PEM_BYTES_MAX: u64 = 1 << 20;
/// Where a certificate of our own is kept.
const FOLDER: &str = "tls";

/// What every handshake needs.
#[derive(Clone, Debug)]
pub struct Tls {
    /// Settings of the handshake.
    pub config: Arc<ServerConfig>,
    /// The certificate's hash; none if its signature has none that the standard names.
    pub end_point: Option<Arc<[u8]>>,
}

impl Tls {
    /// Reads certificate chain and key.
    ///
    /// # Errors
    /// If a file is missing or is no PEM, if others may read the key, or if the two do not belong together.
    pub fn load(certificate: &Path, key: &Path) -> io::Result<Self> {
        let chain_text = read(certificate)?;
        let key_text = read(key)?;
        if files::is_open_to_others(key)? {
            let what = format!("{}: others may read this key (chmod 600)", key.display());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, what));
        }
        let invalid = |path: &Path, error: String| {
            io::Error::new(
                io::ErrorKind::InvalidData,
                format!("{}: {error}", path.display()),
            )
        };
        let chain: Vec<CertificateDer<'static>> =
            CertificateDer::pem_slice_iter(chain_text.as_bytes())
                .collect::<Result<_, _>>()
                .map_err(|error| invalid(certificate, error.to_string()))?;
        let first = chain
            .first()
            .ok_or_else(|| invalid(certificate, "no certificate in it".into()))?;
        let end_point = end_point(first);
        let private = PrivateKeyDer::from_pem_slice(key_text.as_bytes())
            .map_err(|error| invalid(key, error.to_string()))?;
        let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|builder| {
                builder
                    .with_no_client_auth()
                    .with_single_cert(chain, private)
            })
            .map_err(|error| invalid(certificate, error.to_string()))?;
        Ok(Self {
            config: Arc::new(config),
            end_point,
        })
    }

    /// Reads the certificate of our own in a data directory; makes it if there is none. `names` are put into it.
    ///
    /// # Errors
    /// As [`Tls::load`], and if it cannot be written.
    pub fn own(directory: &Path, names: Vec<String>) -> io::Result<Self> {
        let (certificate, key) = own_paths(directory);
        let there = |path: &Path| files::read_text(path, PEM_BYTES_MAX).map(|text| text.is_some());
        if !(there(&certificate)? && there(&key)?) {
            let made = rcgen::generate_simple_self_signed(names).map_err(io::Error::other)?;
            files::make_directory(&directory.join(FOLDER))?;
            files::write_private(&key, made.signing_key.serialize_pem().as_bytes())?;
            // Last: with it the pair is complete.
            files::write_private(&certificate, made.cert.pem().as_bytes())?;
        }
        Self::load(&certificate, &key)
    }
}

/// Certificate and key of our own.
pub fn own_paths(directory: &Path) -> (PathBuf, PathBuf) {
    let folder = directory.join(FOLDER);
    (folder.join("server.crt"), folder.join("server.key"))
}

fn read(path: &Path) -> io::Result<String> {
    files::read_text(path, PEM_BYTES_MAX)?.ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::NotFound,
            format!("{}: there is no such file", path.display()),
        )
    })
}

/// Hash of a certificate by the hash of its signature; SHA-256 instead of MD5 and SHA-1.
fn end_point(certificate: &[u8]) -> Option<Arc<[u8]>> {
    let algorithm = match signature_algorithm(certificate)? {
        // PKCS #1: MD5, SHA-1, SHA-256, SHA-384, SHA-512.
        [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, kind] => match kind {
            4 | 5 | 11 => &digest::SHA256,
            12 => &digest::SHA384,
            13 => &digest::SHA512,
            _ => return None,
        },
        // ECDSA with SHA-1.
        [0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 1] => &digest::SHA256,
        // ECDSA with SHA-256, SHA-384, SHA-512.
        [0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, kind] => match kind {
            2 => &digest::SHA256,
            3 => &digest::SHA384,
            4 => &digest::SHA512,
            _ => return None,
        },
        _ => return None,
    };
    Some(digest::digest(algorithm, certificate).as_ref().into())
}

/// The identifier of a certificate's signature algorithm: the first element of the second element of the outer sequence.
fn signature_algorithm(certificate: &[u8]) -> Option<&[u8]> {
    const SEQUENCE: u8 = 0x30;
    const IDENTIFIER: u8 = 0x06;
    let (outer, _) = element(certificate, SEQUENCE)?;
    let (_, rest) = element(outer, SEQUENCE)?;
    let (algorithm, _) = element(rest, SEQUENCE)?;
    element(algorithm, IDENTIFIER).map(|(identifier, _)| identifier)
}

/// Content of the first DER element, and what follows it.
fn element(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&[found, first], rest) = bytes.split_first_chunk()?;
    if found != tag {
        return None;
    }
    let (length, rest) = if first < 0x80 {
        (usize::from(first), rest)
    } else {
        let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
        if digits.len() > 4 {
            return None;
        }
        let length = digits
            .iter()
            .fold(0usize, |length, digit| length << 8 | usize::from(*digit));
        (length, rest)
    };
    rest.split_at_checked(length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_certificate_of_our_own_is_made_once() {
        let directory = tempfile::tempdir().unwrap();
        let names = || vec!["localhost".to_owned()];
        let first = Tls::own(directory.path(), names()).unwrap();
        let second = Tls::own(directory.path(), names()).unwrap();
        assert_eq!(first.end_point.unwrap().len(), 32);
        let (certificate, key) = own_paths(directory.path());
        let der = CertificateDer::from_pem_file(&certificate).unwrap();
        let expected = digest::digest(&digest::SHA256, &der);
        assert_eq!(&*second.end_point.unwrap(), expected.as_ref());
        let mode = fs::metadata(&key).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_key_that_others_may_read_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        Tls::own(directory.path(), vec!["localhost".into()]).unwrap();
        let (certificate, key) = own_paths(directory.path());
        fs::set_permissions(&key, fs::Permissions::from_mode(0o640)).unwrap();
        let error = Tls::load(&certificate, &key).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
    }

    #[test]
    fn bytes_that_are_no_certificate_have_no_end_point() {
        let directory = tempfile::tempdir().unwrap();
        Tls::own(directory.path(), vec!["localhost".into()]).unwrap();
        let (certificate, _) = own_paths(directory.path());
        let der = CertificateDer::from_pem_file(&certificate).unwrap();
        // Up to the end of the algorithm the bytes are needed; no prefix panics.
        for length in 0..der.len() {
            let _ = end_point(&der[..length]);
        }
        assert!(end_point(&der[..40]).is_none());
        assert!(end_point(b"\x30\x84\xff\xff\xff\xff").is_none());
    }
}
