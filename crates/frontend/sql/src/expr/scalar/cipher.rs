//! Encryption as `pgcrypto` does it: AES, in chains of blocks (CBC) or block by block (ECB).
//!
//! A key is filled up with zeros to the next length that AES has (16, 24, 32), or cut; an initial vector to a block.

use super::invalid;
use crate::error::Result;
use aes::cipher::block_padding::{NoPadding, Pkcs7};
use aes::cipher::{
    BlockCipherDecrypt, BlockCipherEncrypt, BlockModeDecrypt, BlockModeEncrypt, BlockSizeUser,
    KeyInit, KeyIvInit,
};
use aes::{Aes128, Aes192, Aes256};

const BLOCK: usize = 16;

/// A cipher, as its name says it: `aes[-mode][/pad:how]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Cipher {
    chained: bool,
    padded: bool,
}

impl Cipher {
    /// # Errors
    /// `22023` for what is none.
    pub fn named(given: &str) -> Result<Self> {
        let given = given.to_ascii_lowercase();
        let wrong = |why: &str| invalid(format!("Cannot use \"{given}\": {why}"));
        let (name, options) = given.split_once('/').unwrap_or((&given, ""));
        let mut pad = None;
        for option in options.split('/').filter(|option| !option.is_empty()) {
            match option.split_once(':') {
                Some(("pad", how)) => pad = Some(how),
                Some(_) => return Err(wrong("Unknown option")),
                None => return Err(wrong("Badly formatted type")),
            }
        }
        let none = || wrong("No such cipher algorithm");
        let chained = match name {
            "aes" | "aes-cbc" | "rijndael" | "rijndael-cbc" => true,
            "aes-ecb" | "rijndael-ecb" => false,
            _ => return Err(none()),
        };
        let padded = match pad {
            None | Some("pkcs") => true,
            Some("none") => false,
            Some(_) => return Err(none()),
        };
        Ok(Self { chained, padded })
    }

    /// None where the data would have to be padded and must not be.
    pub fn encrypt(self, data: &[u8], key: &[u8], iv: &[u8]) -> Option<Vec<u8>> {
        let (key, iv) = filled(key, iv);
        match key.len() {
            16 => self.encrypt_with::<Aes128>(data, &key, &iv),
            24 => self.encrypt_with::<Aes192>(data, &key, &iv),
            _ => self.encrypt_with::<Aes256>(data, &key, &iv),
        }
    }

    fn encrypt_with<C>(self, data: &[u8], key: &[u8], iv: &[u8]) -> Option<Vec<u8>>
    where
        C: BlockCipherEncrypt + KeyInit + BlockSizeUser,
    {
        match self.chained {
            true => {
                let mode = cbc::Encryptor::<C>::new_from_slices(key, iv).ok()?;
                encrypted(mode, data, self.padded)
            }
            false => {
                let mode = ecb::Encryptor::<C>::new_from_slice(key).ok()?;
                encrypted(mode, data, self.padded)
            }
        }
    }

    /// None for what no data becomes by this key.
    pub fn decrypt(self, data: &[u8], key: &[u8], iv: &[u8]) -> Option<Vec<u8>> {
        let (key, iv) = filled(key, iv);
        match key.len() {
            16 => self.decrypt_with::<Aes128>(data, &key, &iv),
            24 => self.decrypt_with::<Aes192>(data, &key, &iv),
            _ => self.decrypt_with::<Aes256>(data, &key, &iv),
        }
    }

    fn decrypt_with<C>(self, data: &[u8], key: &[u8], iv: &[u8]) -> Option<Vec<u8>>
    where
        C: BlockCipherDecrypt + KeyInit + BlockSizeUser,
    {
        match self.chained {
            true => {
                let mode = cbc::Decryptor::<C>::new_from_slices(key, iv).ok()?;
                decrypted(mode, data, self.padded)
            }
            false => {
                let mode = ecb::Decryptor::<C>::new_from_slice(key).ok()?;
                decrypted(mode, data, self.padded)
            }
        }
    }
}

/// A key and an initial vector of lengths that there are.
fn filled(key: &[u8], iv: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let length = match key.len() {
        0..=16 => 16,
        17..=24 => 24,
        _ => 32,
    };
    let (mut key, mut iv) = (key.to_vec(), iv.to_vec());
    key.resize(length, 0);
    iv.resize(BLOCK, 0);
    (key, iv)
}

fn encrypted(mode: impl BlockModeEncrypt, data: &[u8], padded: bool) -> Option<Vec<u8>> {
    let mut buffer = data.to_vec();
    buffer.resize(data.len() + BLOCK, 0);
    let done = match padded {
        true => mode.encrypt_padded::<Pkcs7>(&mut buffer, data.len()),
        false => mode.encrypt_padded::<NoPadding>(&mut buffer, data.len()),
    };
    let length = done.ok()?.len();
    buffer.truncate(length);
    Some(buffer)
}

fn decrypted(mode: impl BlockModeDecrypt, data: &[u8], padded: bool) -> Option<Vec<u8>> {
    let mut buffer = data.to_vec();
    let done = match padded {
        true => mode.decrypt_padded::<Pkcs7>(&mut buffer),
        false => mode.decrypt_padded::<NoPadding>(&mut buffer),
    };
    let length = done.ok()?.len();
    buffer.truncate(length);
    Some(buffer)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::super::bytes::hex;
    use super::*;

    /// NIST SP 800-38A, F.1.1 and F.2.1: the first block.
    #[test]
    fn blocks_are_those_of_sp_800_38a() {
        let key = [
            0x2b, 0x7e, 0x15, 0x16, 0x28, 0xae, 0xd2, 0xa6, 0xab, 0xf7, 0x15, 0x88, 0x09, 0xcf,
            0x4f, 0x3c,
        ];
        let iv: Vec<u8> = (0..16).collect();
        let block = [
            0x6b, 0xc1, 0xbe, 0xe2, 0x2e, 0x40, 0x9f, 0x96, 0xe9, 0x3d, 0x7e, 0x11, 0x73, 0x93,
            0x17, 0x2a,
        ];
        for (name, made) in [
            ("aes-ecb/pad:none", "3ad77bb40d7a3660a89ecaf32466ef97"),
            ("aes-cbc/pad:none", "7649abac8119b246cee98e9b12e9197d"),
        ] {
            let cipher = Cipher::named(name).unwrap();
            let secret = cipher.encrypt(&block, &key, &iv).unwrap();
            assert_eq!(hex(&secret), made, "{name}");
            assert_eq!(cipher.decrypt(&secret, &key, &iv).unwrap(), block);
        }
    }

    #[test]
    fn data_of_any_length_is_read_back_with_keys_of_any_length() {
        for name in ["aes", "aes-ecb"] {
            let cipher = Cipher::named(name).unwrap();
            for length in 0..50 {
                let data: Vec<u8> = (0..length).collect();
                let key = vec![length; usize::from(length)];
                let secret = cipher.encrypt(&data, &key, b"iv").unwrap();
                assert_eq!(secret.len(), data.len() / BLOCK * BLOCK + BLOCK);
                assert_eq!(cipher.decrypt(&secret, &key, b"iv").unwrap(), data);
            }
            assert_eq!(cipher.decrypt(&[], b"key", &[]), None);
            assert_eq!(cipher.decrypt(&[0; 15], b"key", &[]), None);
        }
        let plain = Cipher::named("aes/pad:none").unwrap();
        assert_eq!(plain.encrypt(b"abc", b"key", &[]), None);
        assert_eq!(plain.encrypt(&[], b"key", &[]), Some(Vec::new()));
    }
}
