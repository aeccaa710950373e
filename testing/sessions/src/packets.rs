//! One socket that many processes write to: a write is a packet, whole and in one order, whoever is killed in the middle of what.
//!
//! So what was said before a transaction began stands before everything that was said after it ended, in whichever process.

use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, recv, socketpair};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;

/// Longest packet: below what a socket takes by default.
const BYTES_MAX: usize = 128 << 10;

/// Two ends: who listens, and who speaks (handed on to the processes).
///
/// # Errors
/// If the system gives none.
pub fn pair() -> io::Result<(Listener, OwnedFd)> {
    let (ear, mouth) = socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )?;
    Ok((Listener(ear), mouth))
}

/// Who listens.
#[derive(Debug)]
pub struct Listener(OwnedFd);

impl Listener {
    /// Waits for a packet: from which process, and what; `None` once nobody can speak any more.
    ///
    /// # Errors
    /// What the system says.
    pub fn next(&self, buffer: &mut Vec<u8>) -> io::Result<Option<u8>> {
        buffer.resize(BYTES_MAX, 0);
        let (count, _) = recv(&self.0, &mut buffer[..], RecvFlags::empty())?;
        buffer.truncate(count);
        if buffer.is_empty() {
            return Ok(None);
        }
        Ok(Some(buffer.remove(0)))
    }
}

/// Who speaks: each write is a packet with the number of its process.
#[derive(Debug)]
pub struct Speaker {
    file: File,
    number: u8,
}

impl Speaker {
    /// Process `number` speaks by `file`, one end of [`pair`].
    pub fn new(file: File, number: u8) -> Self {
        Self { file, number }
    }
}

impl Write for Speaker {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let packet = [&[self.number], bytes].concat();
        // Longer ones are refused by the system, which shows as a session that ended.
        self.file.write_all(&packet)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_come_whole_in_one_order_and_end_with_the_last_speaker() {
        let (listener, end) = pair().unwrap();
        let other = end.try_clone().unwrap();
        let mut speakers =
            [(end, 1), (other, 2)].map(|(end, number)| Speaker::new(File::from(end), number));
        let long = vec![7; 20_000];
        speakers[0].write_all(b"first").unwrap();
        speakers[1].write_all(&long).unwrap();
        speakers[0].write_all(b"last").unwrap();
        drop(speakers);
        let mut heard = Vec::new();
        let mut buffer = Vec::new();
        while let Some(number) = listener.next(&mut buffer).unwrap() {
            heard.push((number, buffer.clone()));
        }
        assert_eq!(
            heard,
            [(1, b"first".to_vec()), (2, long), (1, b"last".to_vec())]
        );
    }
}
