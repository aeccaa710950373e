//! `json` and `jsonb`.
//!
//! `json` is its text. `jsonb` is a tree in bytes that is looked into where it lies, without being
//! parsed: see `tree`.

mod access;
mod compose;
mod make;
mod order;
mod parse;
#[cfg(test)]
mod tests;
mod tree;
mod write;

pub use access::{array_element, array_element_text, check, field, field_text};
pub use compose::{JsonParts, at_path, parts, plain_text, without_nulls};
pub use make::{append, append_member, array_of, object_of, of, of_text};
pub use tree::{JsonbArray, JsonbKind, JsonbObject};
pub use write::write_string;

/// A `jsonb` value of its own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Jsonb(pub(crate) Box<[u8]>);

/// A `jsonb` value in the bytes of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JsonbRef<'a>(pub(crate) &'a [u8]);

impl Jsonb {
    /// Its borrowed form.
    pub fn as_ref(&self) -> JsonbRef<'_> {
        JsonbRef(&self.0)
    }
}

impl<'a> JsonbRef<'a> {
    /// The value of a stored form, as [`Self::bytes`] gave it. Bytes that are none are a value that cannot be looked into.
    pub fn from_stored(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The stored form.
    pub fn bytes(self) -> &'a [u8] {
        self.0
    }

    /// A value of its own.
    pub fn to_jsonb(self) -> Jsonb {
        Jsonb(self.0.into())
    }
}
