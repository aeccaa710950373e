//! TLS: handshakes, channel binding, and what a stranger puts in front of it.

use crate::support::{LONG, Message, Raw, World, message, startup};
use postgres_protocol::authentication::sasl::{
    ChannelBinding, SCRAM_SHA_256, SCRAM_SHA_256_PLUS, ScramSha256,
};
use ring::digest;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

type Secure = StreamOwned<ClientConnection, TcpStream>;

fn world() -> World {
    World::new(|settings| settings.tls = true)
}

fn certificate(world: &World) -> CertificateDer<'static> {
    CertificateDer::from_pem_file(world.directory.path().join("tls/server.crt")).unwrap()
}

/// Asks for TLS; true if it is granted.
fn ask(socket: &mut TcpStream, behind: &[u8]) -> bool {
    let request = [8u32.to_be_bytes(), 80_877_103u32.to_be_bytes()].concat();
    socket.write_all(&[&request, behind].concat()).unwrap();
    let mut answer = [0];
    socket.read_exact(&mut answer).unwrap();
    answer == *b"S"
}

fn secure(world: &World) -> Secure {
    let mut socket = TcpStream::connect(world.address()).unwrap();
    socket.set_read_timeout(Some(LONG)).unwrap();
    assert!(ask(&mut socket, b""));
    let mut roots = RootCertStore::empty();
    roots.add(certificate(world)).unwrap();
    let config =
        ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let client = ClientConnection::new(Arc::new(config), name).unwrap();
    StreamOwned::new(client, socket)
}

fn receive(stream: &mut Secure) -> Message {
    let mut header = [0; 5];
    stream.read_exact(&mut header).unwrap();
    let length = u32::from_be_bytes(header[1..].try_into().unwrap());
    let mut body = vec![0; usize::try_from(length).unwrap() - 4];
    stream.read_exact(&mut body).unwrap();
    Message {
        kind: header[0],
        body,
    }
}

/// Logs in with a password; the last message of the exchange.
fn log_in(
    stream: &mut Secure,
    mechanism: &str,
    binding: ChannelBinding,
    password: &str,
) -> Message {
    stream.write_all(&startup(&[("user", "vellum")])).unwrap();
    let offer = receive(stream);
    assert_eq!(&offer.body[4..], b"SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0");
    let mut scram = ScramSha256::new(password.as_bytes(), binding);
    let first = scram.message();
    let mut body = format!("{mechanism}\0").into_bytes();
    body.extend_from_slice(&u32::try_from(first.len()).unwrap().to_be_bytes());
    body.extend_from_slice(first);
    stream.write_all(&message(b'p', &body)).unwrap();
    let answer = receive(stream);
    if answer.kind == b'E' {
        return answer;
    }
    scram.update(&answer.body[4..]).unwrap();
    stream.write_all(&message(b'p', scram.message())).unwrap();
    let last = receive(stream);
    if last.kind == b'R' {
        scram.finish(&last.body[4..]).unwrap();
    }
    last
}

#[test]
fn a_password_is_bound_to_the_certificate_that_the_client_saw() {
    let world = world();
    let password = world.password();
    let hash = digest::digest(&digest::SHA256, &certificate(&world));
    let right = || ChannelBinding::tls_server_end_point(hash.as_ref().to_vec());
    let last = log_in(&mut secure(&world), SCRAM_SHA_256_PLUS, right(), &password);
    assert_eq!((last.kind, &last.body[..4]), (b'R', &[0, 0, 0, 12][..]));
    // Somebody in between, with a certificate of his own.
    let wrong = ChannelBinding::tls_server_end_point(vec![7; 32]);
    let last = log_in(&mut secure(&world), SCRAM_SHA_256_PLUS, wrong, &password);
    assert_eq!(last.sqlstate(), "28P01");
    // A client that could bind and was told that we cannot.
    let stripped = ChannelBinding::unrequested();
    let last = log_in(&mut secure(&world), SCRAM_SHA_256, stripped, &password);
    assert_eq!(last.sqlstate(), "28000");
    // One that cannot.
    let unable = ChannelBinding::unsupported();
    let last = log_in(&mut secure(&world), SCRAM_SHA_256, unable, &password);
    assert_eq!(last.kind, b'R');
}

#[test]
fn bytes_in_front_of_the_handshake_are_never_a_message() {
    let world = World::trusting_with(|settings| settings.tls = true);
    let mut socket = TcpStream::connect(world.address()).unwrap();
    socket.set_read_timeout(Some(LONG)).unwrap();
    // A login that would be let in, if it were read.
    assert!(ask(&mut socket, &startup(&[("user", "vellum")])));
    let mut rest = Vec::new();
    let _ = socket.read_to_end(&mut rest);
    // A TLS alert, perhaps; no message of the protocol.
    assert_ne!(rest.first(), Some(&b'R'), "{rest:?}");
    let mut other = world.raw();
    other.assert_alive();
}

#[test]
fn plain_text_is_refused_where_a_rule_wants_tls() {
    let rules = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(rules.path(), "hostssl all all all trust\n").unwrap();
    let world = World::new(|settings| {
        settings.tls = true;
        settings.host_rules = rules.path().into();
    });
    let mut plain = Raw::new(world.address());
    plain.send(&startup(&[("user", "vellum")]));
    let refused = plain.until_end();
    assert_eq!(refused[0].sqlstate(), "28000");
    assert!(refused[0].field(b'M').unwrap().ends_with("no encryption"));
    let mut stream = secure(&world);
    stream.write_all(&startup(&[("user", "vellum")])).unwrap();
    while receive(&mut stream).kind != b'Z' {}
    // A message over many records, after the connection was parked or not.
    let text = " ".repeat(200_000);
    let group = [crate::support::parse("", &text), crate::support::sync()].concat();
    stream.write_all(&group).unwrap();
    assert_eq!(receive(&mut stream).kind, b'1');
    assert_eq!(receive(&mut stream).kind, b'Z');
}
