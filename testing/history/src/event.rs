//! One line of a history.
//!
//! Layout: a JSON object a line, `{"i":seq,"p":session,"t":txn,"f":"invoke|ok|fail|info","ts":ns,"lvl":"rc|si|ser","ops":[…]}`, with
//! operations `["a",key,value]` and `["r",key,[value,…]]`; a read whose answer is not known is `["r",key,null]` or `["r",key]`. Keys are numbers or
//! strings, values numbers, each appended to a key at most once. Members that are not known are skipped.

use serde::de::{Error, SeqAccess, Visitor};
use serde::ser::SerializeSeq;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// What happened to a transaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Number of the event; they rise. An event happened before another only if its number is smaller.
    pub i: u64,
    /// Session: runs one transaction after another, none after one that ended as [`Phase::Info`].
    pub p: u64,
    /// Transaction, a number that is never used again.
    pub t: u64,
    /// What happened.
    pub f: Phase,
    /// Monotonic nanoseconds; for people, nothing is judged by it.
    #[serde(default)]
    pub ts: u64,
    /// Isolation level. Where it is left out, the level of the transaction's first event, or snapshot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lvl: Option<Level>,
    /// What it wants to do (invoke), did (ok), or may have done.
    #[serde(default)]
    pub ops: Vec<Op>,
}

/// The four things that happen to a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// It is about to begin.
    Invoke,
    /// Its commit was acknowledged.
    Ok,
    /// It was rolled back for sure.
    Fail,
    /// Nobody knows whether it committed.
    Info,
}

/// What a transaction was promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Level {
    /// Read committed.
    #[serde(rename = "rc")]
    ReadCommitted,
    /// Snapshot isolation.
    #[serde(rename = "si")]
    Snapshot,
    /// Serializable.
    #[serde(rename = "ser")]
    Serializable,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ReadCommitted => "read committed",
            Self::Snapshot => "snapshot isolation",
            Self::Serializable => "serializable",
        })
    }
}

/// The name of a list.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Key {
    /// A number.
    Number(u64),
    /// Anything else.
    Text(Box<str>),
}

impl From<u64> for Key {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => text.fmt(f),
        }
    }
}

/// One operation of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Adds a value to the end of a list.
    Append(Key, u64),
    /// Reads a list; `None` if the answer is not known.
    Read(Key, Option<Vec<u64>>),
}

impl Op {
    /// An append.
    pub fn append(key: u64, value: u64) -> Self {
        Self::Append(key.into(), value)
    }

    /// A read with its answer.
    pub fn read(key: u64, values: impl Into<Vec<u64>>) -> Self {
        Self::Read(key.into(), Some(values.into()))
    }
}

impl Serialize for Op {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut parts = serializer.serialize_seq(Some(3))?;
        match self {
            Self::Append(key, value) => {
                parts.serialize_element("a")?;
                parts.serialize_element(key)?;
                parts.serialize_element(value)?;
            }
            Self::Read(key, values) => {
                parts.serialize_element("r")?;
                parts.serialize_element(key)?;
                parts.serialize_element(values)?;
            }
        }
        parts.end()
    }
}

impl<'de> Deserialize<'de> for Op {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Parts;
        impl<'de> Visitor<'de> for Parts {
            type Value = Op;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(r#"["a",key,value] or ["r",key,[value,…]]"#)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Op, A::Error> {
                let short = |parts: usize| A::Error::invalid_length(parts, &self);
                let kind: Kind = parts.next_element()?.ok_or_else(|| short(0))?;
                let key: Key = parts.next_element()?.ok_or_else(|| short(1))?;
                let op = match kind {
                    Kind::A => Op::Append(key, parts.next_element()?.ok_or_else(|| short(2))?),
                    Kind::R => Op::Read(key, parts.next_element()?.flatten()),
                };
                match parts.next_element::<serde::de::IgnoredAny>()? {
                    None => Ok(op),
                    Some(_) => Err(short(4)),
                }
            }
        }
        deserializer.deserialize_seq(Parts)
    }
}

/// The first part of an operation.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    A,
    R,
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"i":4,"p":1,"t":7,"f":"ok","ts":99,"lvl":"si","ops":[["a",1,2],["r","x",[3,4]],["r",5,null]]}"#;

    #[test]
    fn a_line_is_read_as_it_was_written() {
        let event: Event = serde_json::from_str(LINE).unwrap();
        assert_eq!(event.ops[0], Op::append(1, 2));
        assert_eq!(
            event.ops[1],
            Op::Read(Key::Text("x".into()), Some(vec![3, 4]))
        );
        assert_eq!((event.f, event.lvl), (Phase::Ok, Some(Level::Snapshot)));
        assert_eq!(serde_json::to_string(&event).unwrap(), LINE);
    }

    #[test]
    fn a_read_without_an_answer_may_leave_it_out() {
        let op: Op = serde_json::from_str(r#"["r",5]"#).unwrap();
        assert_eq!(op, Op::Read(5.into(), None));
    }

    #[test]
    fn what_is_no_operation_is_refused() {
        for text in [
            "[]",
            r#"["a"]"#,
            r#"["a",1]"#,
            r#"["a",1,[2]]"#,
            r#"["w",1,2]"#,
            r#"["r",1,2]"#,
            r#"["r",1,[-1]]"#,
            r#"["a",1,2,3]"#,
            "{}",
            "7",
        ] {
            assert!(serde_json::from_str::<Op>(text).is_err(), "{text}");
        }
    }
}
