//! The checksum of everything on disk: CRC-32C (Castagnoli), in hardware where the CPU has it.

/// Checksum of `bytes`, bound to `seed` (a page id, a round number, …), so that a block that is
/// valid in itself but stands in the wrong place does not pass.
pub fn checksum(seed: u64, bytes: &[u8]) -> u32 {
    checksum_append(checksum_append(0, &seed.to_le_bytes()), bytes)
}

/// Continues a checksum over more bytes.
pub fn checksum_append(so_far: u32, bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(so_far, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksum_is_castagnoli_and_bound_to_its_seed() {
        assert_eq!(checksum_append(0, b"123456789"), 0xe306_9283);
        assert_ne!(checksum(1, b"abc"), checksum(2, b"abc"));
        assert_ne!(checksum(1, b"abc"), checksum(1, b"abd"));
    }
}
