//! Addresses against a model of them as lists of bits.

use super::*;
use crate::settings::Settings;
use crate::text::{input, output};
use crate::types::{Type, Typmod};
use vellum_base::random::Random;

/// Of few bits that differ, so that prefixes agree and numbers border on each other.
pub(crate) fn random_inet(random: &mut Random) -> Inet {
    let length = if random.chance(1, 2) { 4 } else { 16 };
    let address: Vec<u8> = (0..length)
        .map(|_| [0, 0, 1, 0x80, 0xff][random.below(5) as usize])
        .collect();
    let bits = match random.chance(1, 3) {
        true => 8 * length,
        false => random.below(8 * length as u64 + 1) as usize,
    };
    Inet::new(&address, bits as u8).unwrap()
}

/// The bits of an address, highest first.
fn bits_of(value: Inet) -> Vec<bool> {
    let bytes = value.bytes().iter();
    bytes
        .flat_map(|byte| (0..8).rev().map(move |at| byte >> at & 1 == 1))
        .collect()
}

/// PostgreSQL's `network_cmp`.
fn model(a: Inet, b: Inet) -> Ordering {
    if a.is_v6() != b.is_v6() {
        return a.is_v6().cmp(&b.is_v6());
    }
    let common = usize::from(a.bits().min(b.bits()));
    let (x, y) = (bits_of(a), bits_of(b));
    let order = x[..common].cmp(&y[..common]);
    let order = order.then(a.bits().cmp(&b.bits()));
    order.then(x.cmp(&y))
}

#[test]
fn prop_the_order_and_that_of_keys_are_those_of_the_model() {
    let mut random = crate::seed::random();
    let key = |value: Inet| {
        let mut key = Vec::new();
        value.put_key(&mut key);
        key
    };
    for _ in 0..20_000 {
        let a = random_inet(&mut random);
        let b = match random.chance(1, 2) {
            true => random_inet(&mut random),
            // The same bits with another prefix.
            false => a
                .with_bits(random.below(u64::from(a.bits_max())) as i32)
                .unwrap(),
        };
        assert_eq!(a.cmp(&b), model(a, b), "{a:?} {b:?}");
        assert_eq!(key(a).cmp(&key(b)), model(a, b), "{a:?} {b:?}");
        assert_eq!(Inet::from_key(&key(a)), Some(a));
        let mut stored = Vec::new();
        a.store(&mut stored);
        assert_eq!(Inet::from_stored(&stored), Some(a));
    }
    assert_eq!(Inet::from_key(&[4, 10, 0, 0, 1, 8, 10, 0, 0, 1]), None);
    assert_eq!(Inet::from_stored(&[33, 1, 2, 3, 4]), None);
    assert_eq!(Inet::from_stored(&[8, 1, 2, 3]), None);
}

#[test]
fn prop_functions_do_what_the_model_does() {
    let mut random = crate::seed::random();
    for _ in 0..20_000 {
        let (a, b) = (random_inet(&mut random), random_inet(&mut random));
        let prefix = usize::from(a.bits());
        let (x, y) = (bits_of(a), bits_of(b));
        let filled = |behind: bool| -> Vec<bool> {
            let own = x.iter().enumerate();
            own.map(|(at, bit)| if at < prefix { *bit } else { behind })
                .collect()
        };
        assert_eq!(bits_of(a.network()), filled(false));
        assert_eq!(bits_of(a.broadcast()), filled(true));
        let ones = bits_of(a.netmask()).iter().filter(|bit| **bit).count();
        assert_eq!(ones, prefix);
        assert_eq!(bits_of(a.hostmask()), bits_of(a.netmask().inverted()));
        assert_eq!(a.is_network(), x == filled(false));
        let shorter = prefix.min(usize::from(b.bits()));
        let same_family = a.is_v6() == b.is_v6();
        let agree = same_family && x[..shorter] == y[..shorter];
        assert_eq!(a.overlaps(b), agree);
        assert_eq!(a.is_within(b), agree && a.bits() > b.bits());
        assert_eq!(a.is_within_or_equals(b), agree && a.bits() >= b.bits());
        assert_eq!(a.merge(b).is_ok(), same_family);
        if let Ok(merged) = a.merge(b) {
            assert!(merged.is_network());
            assert!(a.is_within_or_equals(merged) && b.is_within_or_equals(merged));
            let deeper = i32::from(merged.bits()) + 1;
            if deeper <= i32::from(a.bits().min(b.bits())) {
                let deeper = a.with_bits(deeper).unwrap().network();
                assert!(!b.is_within_or_equals(deeper), "{a:?} {b:?}");
            }
        }
        if let Ok(distance) = a.distance(b) {
            let there = b.plus(distance).unwrap();
            assert_eq!((there.bytes(), there.bits()), (a.bytes(), b.bits()));
            let back = a.minus(distance);
            assert_eq!(back.unwrap().bytes(), b.bytes());
        }
    }
}

fn shown(ty: Type, text: &str) -> String {
    match input(ty, Typmod::NONE, text, &Settings::default()) {
        Ok(value) => {
            let mut out = String::new();
            output(value.as_ref(), &Settings::default(), &mut out).unwrap();
            out
        }
        Err(error) => format!("{error:?}"),
    }
}

#[test]
fn a_network_may_be_written_short() {
    for (text, expected) in [
        ("10", "10.0.0.0/8"),
        ("10.1", "10.1.0.0/16"),
        ("128", "128.0.0.0/16"),
        ("192.168", "192.168.0.0/24"),
        ("192.168.1/24", "192.168.1.0/24"),
        ("224", "224.0.0.0/4"),
        ("225", "225.0.0.0/8"),
        ("240", "240.0.0.0/32"),
        ("0x0a0b", "10.11.0.0/16"),
        ("0xabc", "171.192.0.0/16"),
        ("::ffff:1.2.3.4", "::ffff:1.2.3.4/128"),
        ("2001:db8::/32", "2001:db8::/32"),
    ] {
        assert_eq!(shown(Type::Cidr, text), expected);
    }
    assert_eq!(
        shown(Type::Cidr, "10.1/8"),
        "22P02: invalid cidr value: \"10.1/8\" (detail: Value has bits set to right of mask.)"
    );
    assert_eq!(shown(Type::Inet, "10.1.2.3/32"), "10.1.2.3");
    assert_eq!(shown(Type::Inet, "10.1/15"), "10.1.0.0/15");
    assert_eq!(
        shown(Type::Inet, "10.1"),
        "22P02: invalid input syntax for type inet: \"10.1\""
    );
}

#[test]
fn wrong_bytes_are_refused_for_what_is_wrong_with_them() {
    let refused = |bytes: &[u8], is_cidr: bool| {
        let error = receive(bytes, is_cidr).unwrap_err();
        format!("{error:?}")
    };
    let good = [2, 24, 0, 4, 10, 0, 0, 1];
    assert_eq!(
        receive(&good, false).unwrap(),
        Inet::new(&[10, 0, 0, 1], 24).unwrap()
    );
    assert_eq!(
        refused(&good, true),
        "22P03: invalid external \"cidr\" value (detail: Value has bits set to right of mask.)"
    );
    for (bytes, message) in [
        (
            &[9u8, 24, 0, 4][..],
            "22P03: invalid address family in external \"inet\" value",
        ),
        (
            &[2, 33, 0, 4],
            "22P03: invalid bits in external \"inet\" value",
        ),
        (
            &[2, 32, 0, 16],
            "22P03: invalid length in external \"inet\" value",
        ),
        (&[2, 32, 0, 4, 1, 2, 3], "08P01: no data left in message"),
        (
            &[2, 32, 0, 4, 1, 2, 3, 4, 5],
            "22P03: incorrect binary data format",
        ),
    ] {
        assert_eq!(refused(bytes, false), message);
    }
}
