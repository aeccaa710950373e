//! What a cast does with values that the other type has no counterpart of.

use crate::error::Result;
use vellum_row::datetime::Timestamp;
use vellum_row::{Settings, Type, Typmod, Value, ValueRef, cast};

/// Why an operand is made one of another type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Casting {
    /// A cast was written: what is too long for the type's modifier is cut.
    Explicit,
    /// Its place wants that type.
    Implicit,
    /// It is compared with values of that type, as one by one with its own: a date that no timestamp stands for is later than all of them that are finite, or earlier.
    Compared,
}

impl Casting {
    /// A cast that was written, or one that its place wants.
    pub fn of(explicit: bool) -> Self {
        match explicit {
            true => Self::Explicit,
            false => Self::Implicit,
        }
    }

    /// The value as one of `ty`.
    ///
    /// # Errors
    /// `22003` and its like.
    pub fn apply(
        self,
        value: ValueRef<'_>,
        ty: Type,
        typmod: Typmod,
        settings: &Settings,
    ) -> Result<Value> {
        let done = cast(value, ty, typmod, self == Self::Explicit, settings);
        match (done, value, ty) {
            (Err(_), ValueRef::Date(date), Type::Timestamp | Type::Timestamptz)
                if self == Self::Compared =>
            {
                let moment = Timestamp(match date.0 > 0 {
                    true => Timestamp::INFINITY.0 - 1,
                    false => Timestamp::NEG_INFINITY.0 + 1,
                });
                Ok(match ty {
                    Type::Timestamp => Value::Timestamp(moment),
                    _ => Value::Timestamptz(moment),
                })
            }
            (done, ..) => Ok(done?),
        }
    }
}
