//! Identifiers. Each is a newtype, so that a page id can never be taken for a log position.

use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $repr:ty, $letter:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        #[repr(transparent)]
        pub struct $name(pub $repr);

        impl $name {
            /// The value zero, which no object ever has (see the type).
            pub const ZERO: Self = Self(0);
            /// The largest value.
            pub const MAX: Self = Self(<$repr>::MAX);

            /// The bare number.
            #[inline]
            pub const fn get(self) -> $repr {
                self.0
            }

            /// True for [`Self::ZERO`].
            #[inline]
            pub const fn is_zero(self) -> bool {
                self.0 == 0
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($letter, "{}"), self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    };
}

id! {
    /// Number of a page in the data file: its byte offset is `page_id * page_size`.
    /// Page 0 is the file header, so zero also serves as "no page" in pointers between pages.
    PageId, u64, "p"
}
id! {
    /// Number of a table or index in the catalog. Zero is never given out.
    TableId, u32, "t"
}
id! {
    /// Number of a worker slot (what a transaction leases from begin to end).
    SlotId, u16, "s"
}
id! {
    /// Byte position in the log of one slot, counted from the slot's first record of this
    /// incarnation of the database. Comparable within one slot only.
    Lsn, u64, "l"
}
id! {
    /// Global sequence number: a Lamport clock over slots and pages. Records of one page are
    /// ordered by it; it is comparable over the whole log.
    Gsn, u64, "g"
}
id! {
    /// A tick of the global logical clock: snapshots, stamps and commit timestamps.
    Timestamp, u64, "ts"
}
