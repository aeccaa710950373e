//! `jsonb` at its limits: deep nesting, damaged bytes.

use super::parse::DEPTH_MAX;
use super::*;
use crate::compare::{compare, hash};
use crate::error::SqlState;
use crate::key::{KeyCodec, KeyColumn};
use crate::types::{Type, Typmod};
use crate::value::{Value, ValueRef};
use std::hash::DefaultHasher;

fn nested(depth: usize) -> String {
    let (open, close) = ("[{\"a\":".repeat(depth / 2), "}]".repeat(depth / 2));
    format!("{open}1{close}")
}

/// Everything that walks through a value.
fn walk(value: JsonbRef<'_>) -> String {
    let mut text = String::new();
    value.write(&mut text).unwrap();
    assert!(compare(ValueRef::Jsonb(value), ValueRef::Jsonb(value)).is_eq());
    hash(ValueRef::Jsonb(value), &mut DefaultHasher::new());
    text
}

#[test]
fn nesting_ends_in_an_error_before_the_stack_does() {
    let work = || {
        let deepest = nested(DEPTH_MAX);
        let value = Jsonb::parse(&deepest).unwrap();
        assert_eq!(walk(value.as_ref()).replace(": ", ":"), deepest);
        let column = KeyColumn::new(Type::Jsonb, Typmod::NONE, false);
        let codec = KeyCodec::new(vec![column]).unwrap();
        let (mut key, mut back) = (Vec::new(), Vec::new());
        codec
            .encode(&[ValueRef::Jsonb(value.as_ref())], &mut key)
            .unwrap();
        codec.decode(&key, &mut back).unwrap();
        assert_eq!(back[0], Value::Jsonb(value));
        for text in [
            nested(DEPTH_MAX + 2),
            "[".repeat(100_000),
            "{\"a\":".repeat(100_000),
        ] {
            let error = Jsonb::parse(&text).unwrap_err();
            assert_eq!(error.state(), SqlState::TOO_COMPLEX);
            assert_eq!(check(&text).unwrap_err().state(), SqlState::TOO_COMPLEX);
        }
    };
    // A half of the smallest stack that a thread here has.
    let thread = std::thread::Builder::new().stack_size(1 << 20);
    thread.spawn(work).unwrap().join().unwrap();
}

#[test]
fn prop_damaged_bytes_end_in_an_answer() {
    let mut random = crate::seed::random();
    let text =
        "{\"a\": [1, 2.5, \"x\", null], \"bb\": {\"c\": true}, \"\": 12345678901234567890123}";
    let whole = Jsonb::parse(text).unwrap();
    for _ in 0..20_000 {
        let mut bytes = whole.0.to_vec();
        for _ in 0..=random.below(3) {
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] = random.next_u64() as u8 & if random.chance(1, 2) { 7 } else { 0xff };
        }
        bytes.truncate(bytes.len() - random.below(4) as usize);
        let value = JsonbRef(&bytes);
        let mut out = String::new();
        value.write(&mut out).unwrap();
        let _ = value.compare(whole.as_ref());
        value.feed(&mut DefaultHasher::new());
        let _ = value.field("bb").and_then(|value| value.field("c"));
        let _ = value
            .field("a")
            .and_then(|value| value.element(-1))
            .map(JsonbRef::as_text);
    }
}

#[test]
fn composed_values_are_nested_no_deeper_than_texts_may_be() {
    let parsed = |depth: usize| Jsonb::parse(&nested(depth)).unwrap();
    let deepest = parsed(DEPTH_MAX - 1);
    assert!(Jsonb::array(&[deepest.as_ref()]).is_ok());
    assert!(Jsonb::object(vec![("a", deepest.as_ref())]).is_ok());
    let deepest = parsed(DEPTH_MAX);
    for composed in [
        Jsonb::array(&[Jsonb::null().as_ref(), deepest.as_ref()]),
        Jsonb::object(vec![("a", deepest.as_ref())]),
    ] {
        assert_eq!(composed.unwrap_err().state(), SqlState::TOO_COMPLEX);
    }
}
