//! A value alone on its cache lines.

use std::ops::{Deref, DerefMut};

/// Keeps `T` on cache lines of its own, so that a write to it does not slow readers of its
/// neighbours. 128 bytes: x86-64 prefetches lines in pairs and some ARM cores have lines that
/// long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(align(128))]
pub struct CachePadded<T>(T);

impl<T> CachePadded<T> {
    /// Wraps a value.
    pub const fn new(value: T) -> Self {
        Self(value)
    }

    /// The value itself.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> Deref for CachePadded<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for CachePadded<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T> From<T> for CachePadded<T> {
    fn from(value: T) -> Self {
        Self(value)
    }
}

const _: () = assert!(align_of::<CachePadded<u8>>() == 128 && size_of::<CachePadded<u8>>() == 128);
