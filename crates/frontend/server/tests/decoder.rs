//! Arbitrary and damaged bytes for everything that reads messages: an answer or an error, never a panic, and no memory that
//! was only promised.
#![allow(clippy::unwrap_used)]

use vellum_base::random::Random;
use vellum_server::wire::inbound::{Frame, Inbound};
use vellum_server::wire::reader::Reader;
use vellum_server::wire::{request, startup};

const KINDS: &[u8] = b"QPBDECSHFXdcfp";

fn random() -> (Random, u64) {
    let seed = vellum_base::replay::seed();
    eprintln!("VELLUM_SEED={seed}");
    (Random::new(seed), vellum_base::replay::rounds(20_000))
}

fn below(random: &mut Random, bound: usize) -> usize {
    usize::try_from(random.below(bound as u64)).unwrap()
}

/// Bodies that are whole: a start for damage.
fn whole() -> Vec<(u8, Vec<u8>)> {
    let bind = [
        &b"portal\0statement\0"[..],
        &[0, 2, 0, 0, 0, 1],
        &[0, 2, 0, 0, 0, 2, b'4', b'2', 0xff, 0xff, 0xff, 0xff],
        &[0, 1, 0, 1],
    ]
    .concat();
    vec![
        (b'Q', b"select 1\0".to_vec()),
        (b'P', b"name\0select $1\0\0\x01\0\0\0\x17".to_vec()),
        (b'B', bind),
        (b'D', b"Sname\0".to_vec()),
        (b'E', b"portal\0\0\0\0\x05".to_vec()),
        (b'C', b"Pportal\0".to_vec()),
        (b'S', vec![]),
        (b'd', b"1\t2\n".to_vec()),
        (b'f', b"why\0".to_vec()),
    ]
}

/// Another byte, a byte more or less, a piece twice.
fn damage(random: &mut Random, bytes: &mut Vec<u8>) {
    for _ in 0..random.between(1, 3) {
        let at = below(random, bytes.len() + 1);
        let byte = random.next_u64().to_le_bytes()[0];
        match random.below(4) {
            0 => bytes.insert(at, byte),
            1 if at < bytes.len() => drop(bytes.remove(at)),
            2 => bytes.truncate(at),
            _ if at < bytes.len() => bytes[at] = byte,
            _ => {}
        }
    }
}

#[test]
fn whole_messages_are_understood() {
    for (kind, body) in whole() {
        assert!(request::decode(kind, &body).is_ok(), "{}", char::from(kind));
    }
}

#[test]
fn prop_damaged_requests_are_errors_that_go_on() {
    let (mut random, rounds) = random();
    let whole = whole();
    let mut refused = 0;
    for _ in 0..rounds {
        let (kind, mut body) = whole[below(&mut random, whole.len())].clone();
        damage(&mut random, &mut body);
        // The kind may be another one, too.
        let kind = if random.chance(1, 4) {
            KINDS[below(&mut random, KINDS.len())]
        } else {
            kind
        };
        if let Err(report) = request::decode(kind, &body) {
            assert!(!report.is_fatal(), "{kind} {body:?}: {report:?}");
            assert!(["08P01", "22021", "22023"].contains(&&*report.sqlstate));
            refused += 1;
        }
    }
    assert!(refused > 0, "damage is noticed");
}

#[test]
fn prop_damaged_logins_end() {
    let (mut random, rounds) = random();
    let whole = b"\0\x03\0\0user\0ada\0database\0d\0options\0-c a=1 --b=c\0_pq_.x\x001\0\0";
    for _ in 0..rounds {
        let mut body = whole.to_vec();
        damage(&mut random, &mut body);
        if let Err(report) = startup::decode(&body) {
            assert!(report.is_fatal(), "{body:?}: {report:?}");
        }
    }
}

#[test]
fn prop_frames_are_found_in_any_stream() {
    let (mut random, rounds) = random();
    for _ in 0..rounds / 10 {
        let mut stream = Vec::new();
        for (kind, body) in whole() {
            stream.push(kind);
            stream.extend_from_slice(&u32::try_from(body.len() + 4).unwrap().to_be_bytes());
            stream.extend_from_slice(&body);
        }
        damage(&mut random, &mut stream);
        let (mut inbound, mut source) = (Inbound::new(), &stream[..]);
        let mut given = 0;
        loop {
            match inbound.next(50) {
                Ok(Frame::Message { body, .. }) => given += 5 + inbound.body(body).len(),
                Ok(Frame::TooLong { .. }) => {}
                Ok(Frame::Incomplete) => {
                    if inbound.fill(&mut source).unwrap() == 0 {
                        break;
                    }
                }
                Err(report) => {
                    assert!(report.is_fatal());
                    break;
                }
            }
        }
        assert!(given <= stream.len(), "more was given out than arrived");
    }
}

#[test]
fn a_reader_gives_no_byte_twice() {
    let mut reader = Reader::new(b"\x01\x02\x03");
    assert_eq!((reader.u8().unwrap(), reader.i16().unwrap()), (1, 0x0203));
    assert!(reader.end().is_ok());
}
