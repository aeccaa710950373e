//! The order of `jsonb`: null < string < number < boolean < array < object; of arrays and objects the
//! longer is above; then element by element, pair by pair. One exception is PostgreSQL's: an empty
//! array that is not inside another value is below everything.

use super::JsonbRef;
use super::parse::DEPTH_MAX;
use super::tree::JsonbKind;
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

/// The place of a kind in the order.
fn rank(kind: &JsonbKind<'_>) -> u8 {
    match kind {
        JsonbKind::Null => 0x10,
        JsonbKind::String(_) => 0x20,
        JsonbKind::Number(_) => 0x30,
        JsonbKind::Bool(_) => 0x40,
        JsonbKind::Array(_) => 0x50,
        JsonbKind::Object(_) => 0x60,
    }
}

impl JsonbRef<'_> {
    fn is_empty_array(self) -> bool {
        matches!(self.kind(), Some(JsonbKind::Array(array)) if array.is_empty())
    }

    /// The order of SQL. Damaged bytes are below everything.
    pub fn compare(self, other: JsonbRef<'_>) -> Ordering {
        match (self.is_empty_array(), other.is_empty_array()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            (false, false) => compare(Some(self), Some(other), 0),
        }
    }

    /// Feeds what equal values have in common to a hasher.
    pub fn feed<H: Hasher>(self, state: &mut H) {
        hash(Some(self), state, 0);
    }
}

fn compare(a: Option<JsonbRef<'_>>, b: Option<JsonbRef<'_>>, depth: usize) -> Ordering {
    let (a, b) = (a.and_then(JsonbRef::kind), b.and_then(JsonbRef::kind));
    let (Some(a), Some(b)) = (a, b) else {
        return a.is_some().cmp(&b.is_some());
    };
    if depth > DEPTH_MAX {
        return Ordering::Equal;
    }
    match (a, b) {
        (JsonbKind::Bool(a), JsonbKind::Bool(b)) => a.cmp(&b),
        (JsonbKind::Number(a), JsonbKind::Number(b)) => a.compare(b),
        (JsonbKind::String(a), JsonbKind::String(b)) => a.cmp(b),
        (JsonbKind::Array(a), JsonbKind::Array(b)) => a.len().cmp(&b.len()).then_with(|| {
            (0..a.len())
                .map(|index| compare(a.get(index), b.get(index), depth + 1))
                .find(|order| order.is_ne())
                .unwrap_or(Ordering::Equal)
        }),
        (JsonbKind::Object(a), JsonbKind::Object(b)) => a.len().cmp(&b.len()).then_with(|| {
            (0..a.len())
                .map(|index| {
                    let keys = a.key(index).cmp(&b.key(index));
                    keys.then_with(|| compare(a.value(index), b.value(index), depth + 1))
                })
                .find(|order| order.is_ne())
                .unwrap_or(Ordering::Equal)
        }),
        (a, b) => rank(&a).cmp(&rank(&b)),
    }
}

fn hash<H: Hasher>(value: Option<JsonbRef<'_>>, state: &mut H, depth: usize) {
    let Some(kind) = value
        .and_then(JsonbRef::kind)
        .filter(|_| depth <= DEPTH_MAX)
    else {
        state.write_u8(0);
        return;
    };
    state.write_u8(rank(&kind));
    match kind {
        JsonbKind::Null => {}
        JsonbKind::Bool(value) => value.hash(state),
        JsonbKind::Number(number) => number.feed(state),
        JsonbKind::String(text) => text.hash(state),
        JsonbKind::Array(array) => {
            state.write_usize(array.len());
            for index in 0..array.len() {
                hash(array.get(index), state, depth + 1);
            }
        }
        JsonbKind::Object(object) => {
            state.write_usize(object.len());
            for index in 0..object.len() {
                object.key(index).hash(state);
                hash(object.value(index), state, depth + 1);
            }
        }
    }
}
