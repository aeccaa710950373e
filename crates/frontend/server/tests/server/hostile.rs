//! Logins that nobody would attempt, at a server: packets and proofs that are right but for some bytes. Each is answered or its connection ends, with an error
//! of a class that says whose fault it is; nobody gets in without having proved it; and the server goes on.

use crate::support::{Message, Raw, World, message, query, startup};
use postgres_protocol::authentication::sasl::{ChannelBinding, ScramSha256};
use std::collections::BTreeMap;
use std::net::Shutdown;
use vellum_base::random::Random;

/// Connections of one run.
const ROUNDS: u64 = 400;

/// What a login may be refused with: a packet or proof that is none; a user, a database, a setting that cannot be; what we do not have; too many.
const REFUSED: [&str; 14] = [
    "08P01", "0A000", "22021", "22023", "25006", "28000", "28P01", "3D000", "42501", "42601",
    "42602", "42704", "53300", "55P02",
];

fn seeds() -> (u64, u64) {
    let seed = vellum_base::replay::seed();
    eprintln!("VELLUM_SEED={seed}");
    (seed, vellum_base::replay::rounds(ROUNDS))
}

fn below(random: &mut Random, bound: usize) -> usize {
    usize::try_from(random.below(bound.max(1) as u64)).unwrap()
}

/// Another byte, a byte more or less, a piece twice, a piece that is something in these messages.
fn damage(random: &mut Random, bytes: &mut Vec<u8>) {
    const PIECES: [&[u8]; 16] = [
        b"\0",
        b",",
        b"=",
        b"n,,",
        b"y,,",
        b"p=tls-server-end-point,,",
        b"a=vellum,",
        b"m=x,",
        b"r=",
        b"c=biws",
        b"p=AAAA",
        b"\xff\xfe",
        b"user\0eve\0",
        b"options\0-c work_mem=-1\0",
        b"\x7f\xff\xff\xff",
        b"\xff\xff\xff\xff",
    ];
    for _ in 0..random.between(1, 3) {
        let at = below(random, bytes.len() + 1);
        let byte = random.next_u64().to_le_bytes()[0];
        let piece = PIECES[below(random, PIECES.len())];
        match random.below(6) {
            0 => bytes.insert(at, byte),
            1 if at < bytes.len() => drop(bytes.remove(at)),
            2 => bytes.truncate(at),
            3 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            4 => drop(bytes.splice(at..at, piece.iter().copied())),
            _ => {
                let end = (at + piece.len()).min(bytes.len());
                bytes.splice(at..end, piece.iter().copied());
            }
        }
    }
}

/// What came of a connection: `in`, a SQLSTATE, or `closed`.
fn outcome(messages: &[Message]) -> String {
    if messages.iter().any(|message| message.kind == b'Z') {
        return "in".to_owned();
    }
    match messages.iter().find(|message| message.kind == b'E') {
        Some(error) => {
            let severity = error.field(b'S');
            assert_eq!(severity.as_deref(), Some("FATAL"), "{error:?}");
            error.sqlstate()
        }
        None => "closed".to_owned(),
    }
}

fn check(outcome: &str, what: impl Fn() -> String) {
    let known = ["in", "closed"].contains(&outcome) || REFUSED.contains(&outcome);
    assert!(known, "{outcome}: {}", what());
}

/// Writes as far as the server listens, and says that nothing follows.
fn send_all(raw: &mut Raw, bytes: &[u8]) -> Vec<Message> {
    use std::io::Write;
    // It may have answered and gone by now.
    let _ = raw.socket.write_all(bytes);
    let _ = raw.socket.shutdown(Shutdown::Write);
    raw.until_end()
}

#[test]
fn prop_first_packets_that_nobody_would_send_are_answered_and_others_do_not_notice() {
    let (seed, rounds) = seeds();
    let world = World::trusting();
    let mut beside = world.raw();
    let options = "-c statement_timeout=1000 --search_path=public -c DateStyle=ISO";
    let whole = [
        startup(&[("user", "vellum")]),
        startup(&[
            ("user", "vellum"),
            ("database", "vellum"),
            ("application_name", "psql"),
            ("client_encoding", "UTF8"),
            ("TimeZone", "Europe/Berlin"),
            ("options", options),
            ("_pq_.x", "1"),
        ]),
        startup(&[("user", "vellum"), ("replication", "false")]),
        [8_u32.to_be_bytes(), 80_877_103_u32.to_be_bytes()].concat(),
        [8_u32.to_be_bytes(), 80_877_104_u32.to_be_bytes()].concat(),
        [16, 80_877_102, 1, 7_u32].map(u32::to_be_bytes).concat(),
        startup(&[("user", "nobody")]),
    ];
    let mut outcomes = BTreeMap::<String, u64>::new();
    for round in 0..rounds {
        let seed = seed.wrapping_add(round);
        let mut random = Random::new(seed);
        let mut bytes = whole[below(&mut random, whole.len())].clone();
        if bytes.len() == 8 {
            // What asks for encryption is followed by a login.
            bytes.extend_from_slice(&whole[below(&mut random, 3)]);
        }
        // Some are right as they are: else hardly anybody would get in.
        if random.chance(7, 8) {
            damage(&mut random, &mut bytes);
        }
        // Most of them have the length that they say.
        if random.chance(3, 4) && bytes.len() >= 4 && bytes.get(4) == Some(&0) {
            let length = u32::try_from(bytes.len()).unwrap();
            bytes[..4].copy_from_slice(&length.to_be_bytes());
        }
        bytes.extend_from_slice(&query("select 1"));
        let mut raw = Raw::new(world.address());
        let mut messages = Vec::new();
        // Single letters answer what asks for encryption.
        let _ = raw.socket.set_nodelay(true);
        let answer = send_raw(&mut raw, &bytes);
        messages.extend(split(&answer));
        let outcome = outcome(&messages);
        check(&outcome, || {
            format!("VELLUM_SEED={seed} VELLUM_ROUNDS=1: {bytes:?}: {messages:?}")
        });
        *outcomes.entry(outcome).or_default() += 1;
        if round % 50 == 0 {
            beside.assert_alive();
        }
    }
    eprintln!("{outcomes:?}");
    beside.assert_alive();
    world.raw().assert_alive();
    if rounds >= ROUNDS {
        for outcome in ["in", "closed", "08P01", "28000"] {
            assert!(outcomes.contains_key(outcome), "{outcome}: {outcomes:?}");
        }
    }
}

/// Everything that comes back, to the end.
fn send_raw(raw: &mut Raw, bytes: &[u8]) -> Vec<u8> {
    use std::io::{Read, Write};
    let _ = raw.socket.write_all(bytes);
    let _ = raw.socket.shutdown(Shutdown::Write);
    let mut answer = Vec::new();
    match raw.socket.read_to_end(&mut answer) {
        Err(error) if error.kind() != std::io::ErrorKind::ConnectionReset => {
            panic!("{error} after {bytes:?}")
        }
        _ => answer,
    }
}

/// The messages of an answer, behind letters that decline encryption.
fn split(answer: &[u8]) -> Vec<Message> {
    let mut rest = answer;
    let mut messages = Vec::new();
    // A notice and a letter begin alike; a notice is longer.
    while rest.first() == Some(&b'N') && rest.get(1) != Some(&0) {
        rest = &rest[1..];
    }
    while let Some(header) = rest.first_chunk::<5>() {
        let length = u32::from_be_bytes(*header[1..].first_chunk().unwrap());
        let end = 1 + usize::try_from(length).unwrap();
        // The rest may have been lost with the connection.
        let Some(body) = rest.get(5..end) else { break };
        messages.push(Message {
            kind: header[0],
            body: body.to_vec(),
        });
        rest = &rest[end..];
    }
    messages
}

fn first_proof(mechanism: &str, data: &[u8]) -> Vec<u8> {
    let mut body = [mechanism.as_bytes(), b"\0"].concat();
    body.extend_from_slice(&u32::try_from(data.len()).unwrap().to_be_bytes());
    body.extend_from_slice(data);
    body
}

#[test]
fn prop_proofs_that_are_not_right_let_nobody_in() {
    let (seed, rounds) = seeds();
    let world = World::new(|_| {});
    let password = world.password();
    let mut outcomes = BTreeMap::<String, u64>::new();
    for round in 0..rounds {
        let seed = seed.wrapping_add(round);
        let mut random = Random::new(seed);
        // What is changed: 0 the first proof, 1 its packet, 2 the final one, 3 its packet, 4 nothing.
        let changed = random.below(5);
        let mut raw = Raw::new(world.address());
        raw.send(&startup(&[("user", "vellum"), ("database", "vellum")]));
        assert_eq!(raw.receive().unwrap().kind, b'R');
        let mut scram = ScramSha256::new(password.as_bytes(), ChannelBinding::unsupported());
        let mut data = scram.message().to_vec();
        let right = data.clone();
        if changed == 0 {
            damage(&mut random, &mut data);
        }
        let mut is_right = data == right;
        let packet = message(b'p', &first_proof("SCRAM-SHA-256", &data));
        let mut sent = packet.clone();
        if changed == 1 {
            damage(&mut random, &mut sent);
            is_right &= sent == packet;
        }
        let messages = if changed <= 1 && !is_right {
            // Whatever it is, what follows is right for what was meant.
            let bytes = [sent, message(b'p', b"c=biws,r=x,p=AAAA")].concat();
            send_all(&mut raw, &bytes)
        } else {
            raw.send(&sent);
            let answer = raw.receive().unwrap();
            assert_eq!(answer.kind, b'R', "{answer:?}");
            scram.update(&answer.body[4..]).unwrap();
            let mut data = scram.message().to_vec();
            if changed == 2 {
                damage(&mut random, &mut data);
            }
            let mut sent = message(b'p', &data);
            if changed == 3 {
                damage(&mut random, &mut sent);
            }
            // What stands behind it is another message.
            is_right = sent.starts_with(&message(b'p', scram.message()));
            let bytes = [sent, query("select 1")].concat();
            send_all(&mut raw, &bytes)
        };
        let outcome = outcome(&messages);
        let what = || format!("VELLUM_SEED={seed} VELLUM_ROUNDS=1: {changed}: {messages:?}");
        check(&outcome, what);
        assert_eq!(outcome == "in", is_right, "{}", what());
        *outcomes.entry(outcome).or_default() += 1;
    }
    eprintln!("{outcomes:?}");
    drop(world.client());
    if rounds >= ROUNDS {
        for outcome in ["in", "closed", "08P01", "28P01"] {
            assert!(outcomes.contains_key(outcome), "{outcome}: {outcomes:?}");
        }
    }
}
