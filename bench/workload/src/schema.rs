//! What the workloads of several tables write their schemas with: lists of tables, keys of columns, rows of columns.

macro_rules! tables {
    ($($position:literal $name:ident $text:literal: $doc:literal;)*) => {
        $(#[doc = $doc] pub const $name: $crate::engine::Table = $crate::engine::Table::at($position);)*
        /// All tables, in the order of their positions.
        pub const TABLES: &[$crate::engine::TableSpec] = &[$($crate::engine::TableSpec { table: $name, name: $text, is_queue: false },)*];
    };
}
pub(crate) use tables;

macro_rules! row {
    ($(#[$doc:meta])* $module:ident { $($(#[$column_doc:meta])* $column:ident: $kind:tt $(($capacity:expr))?,)* }) => {
        $(#[$doc])*
        pub mod $module {
            $crate::schema::row!(@columns 0, { $($(#[$column_doc])* $column: $kind $(($capacity))?,)* });
        }
    };
    (@columns $offset:expr, { $(#[$doc:meta])* $column:ident: Text($capacity:expr), $($rest:tt)* }) => {
        $(#[$doc])*
        pub const $column: $crate::field::Text = $crate::field::Text::at($offset, $capacity);
        $crate::schema::row!(@columns $column.end(), { $($rest)* });
    };
    (@columns $offset:expr, { $(#[$doc:meta])* $column:ident: Bytes($length:expr), $($rest:tt)* }) => {
        $(#[$doc])*
        pub const $column: $crate::field::Bytes = $crate::field::Bytes::at($offset, $length);
        $crate::schema::row!(@columns $column.end(), { $($rest)* });
    };
    (@columns $offset:expr, { $(#[$doc:meta])* $column:ident: $type:ident, $($rest:tt)* }) => {
        $(#[$doc])*
        pub const $column: $crate::field::Number<$type> = $crate::field::Number::<$type>::at($offset);
        $crate::schema::row!(@columns $column.end(), { $($rest)* });
    };
    (@columns $offset:expr, {}) => {
        /// Length of a row.
        pub const LENGTH: usize = $offset;
    };
}
pub(crate) use row;

/// Appends columns to a key of `N` bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key<const N: usize> {
    bytes: [u8; N],
    used: usize,
}

impl<const N: usize> Key<N> {
    #[inline(always)]
    pub(crate) const fn new() -> Self {
        Self {
            bytes: [0; N],
            used: 0,
        }
    }

    #[inline(always)]
    pub(crate) fn put<const M: usize>(mut self, column: [u8; M]) -> Self {
        self.bytes[self.used..self.used + M].copy_from_slice(&column);
        self.used += M;
        self
    }

    #[inline(always)]
    pub(crate) fn done(self) -> [u8; N] {
        debug_assert_eq!(self.used, N, "every byte of a key is written");
        self.bytes
    }
}
