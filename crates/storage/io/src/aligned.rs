//! Buffers that direct I/O accepts.
//!
//! The allocation is a plain byte vector with up to one block of slack in front, so that no
//! `unsafe` is needed: a vector that is never resized does not move its bytes.

use std::fmt;
use std::ops::{Deref, DerefMut};
use vellum_base::{Result, StorageError};

/// What direct I/O demands of the address, the offset and the length: the largest logical block
/// size in use.
pub const ALIGNMENT: usize = 4096;

/// True if `bytes` and its place in a file suit direct I/O.
#[inline]
pub fn is_aligned(bytes: &[u8], offset: u64) -> bool {
    bytes.as_ptr().addr().is_multiple_of(ALIGNMENT)
        && bytes.len().is_multiple_of(ALIGNMENT)
        && offset.is_multiple_of(ALIGNMENT as u64)
}

/// Zeroed bytes of fixed length whose address is a multiple of [`ALIGNMENT`].
pub struct AlignedBuf {
    bytes: Vec<u8>,
    start: usize,
    length: usize,
}

impl AlignedBuf {
    /// A buffer of `length` zeroes.
    ///
    /// # Errors
    /// [`StorageError::MemoryLimit`] if the allocator has no room; the process goes on.
    pub fn zeroed(length: usize) -> Result<Self> {
        let full = StorageError::MemoryLimit {
            what: "aligned buffer",
        };
        let capacity = length.checked_add(ALIGNMENT).ok_or_else(|| full.clone())?;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(capacity).map_err(|_| full)?;
        bytes.resize(capacity, 0);
        let misaligned = bytes.as_ptr().addr() % ALIGNMENT;
        let start = (ALIGNMENT - misaligned) % ALIGNMENT;
        let buffer = Self {
            bytes,
            start,
            length,
        };
        debug_assert!(buffer.as_ptr().addr().is_multiple_of(ALIGNMENT));
        Ok(buffer)
    }
}

impl Deref for AlignedBuf {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.bytes[self.start..self.start + self.length]
    }
}

impl DerefMut for AlignedBuf {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.length]
    }
}

impl fmt::Debug for AlignedBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AlignedBuf({} bytes)", self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffer_is_aligned_zeroed_and_as_long_as_asked() {
        for length in [0, 1, 4096, 12345, 1 << 20] {
            let mut buffer = AlignedBuf::zeroed(length).unwrap();
            assert_eq!(buffer.len(), length);
            assert!(buffer.as_ptr().addr().is_multiple_of(ALIGNMENT));
            assert!(buffer.iter().all(|&byte| byte == 0));
            buffer.fill(7);
            assert!(buffer.iter().all(|&byte| byte == 7));
        }
    }

    #[test]
    fn impossible_length_is_an_error_and_not_an_abort() {
        for length in [usize::MAX, isize::MAX as usize] {
            let error = AlignedBuf::zeroed(length).unwrap_err();
            assert!(matches!(error, StorageError::MemoryLimit { .. }));
        }
    }

    #[test]
    fn unaligned_offset_length_or_address_is_noticed() {
        let buffer = AlignedBuf::zeroed(8192).unwrap();
        assert!(is_aligned(&buffer, 4096));
        assert!(!is_aligned(&buffer, 512));
        assert!(!is_aligned(&buffer[..100], 0));
        assert!(!is_aligned(&buffer[1..4097], 0));
    }
}
