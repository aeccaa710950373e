//! Bytes that arrived, cut into frames.
//!
//! States of a buffer: parts of a message → a whole one (`next` gives it out) → consumed; or a message that is too long →
//! its bytes are skipped as they arrive, so that the connection can go on behind it.
//!
//! Invariants:
//! - I1: `start <= end <= bytes.len()`; `start..end` has arrived and was not given out.
//! - I2: the buffer grows to at most twice what arrived of a message (W1), and never beyond the message.
//! - I3: a frame that was given out stays where it is until the next `fill`.
//!
//! Cost: one read call for all messages that have arrived; no copy, but of the part of a message at the buffer's end.

use super::reader::PROTOCOL_VIOLATION;
use super::report::Report;
use super::{LOGIN_MESSAGE_BYTES_MAX, SMALL_MESSAGE_BYTES_MAX};
use std::io::{self, Read};
use std::ops::Range;

/// Size of the buffer of a connection that is talking.
const USUAL_BYTES: usize = 8 << 10;
/// Kind and length.
const HEADER_BYTES: usize = 5;

/// What arrived.
#[derive(Debug, Default)]
pub struct Inbound {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    /// Bytes of a message that was refused and are still to come.
    skip: usize,
}

/// What `next` found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// A whole message.
    Message {
        /// Its kind.
        kind: u8,
        /// Where its body is.
        body: Range<usize>,
    },
    /// A message above the limit; it is skipped.
    TooLong {
        /// Its kind.
        kind: u8,
        /// Bytes of its body.
        bytes: usize,
    },
    /// More has to arrive.
    Incomplete,
}

impl Inbound {
    /// Nothing yet; takes no memory.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether nothing has arrived that was not given out.
    pub fn is_empty(&self) -> bool {
        self.start == self.end && self.skip == 0
    }

    /// Gives the memory back; only when nothing has arrived.
    pub fn release(&mut self) {
        debug_assert!(self.is_empty(), "messages would be lost");
        self.bytes = Vec::new();
        (self.start, self.end) = (0, 0);
    }

    /// The next message, as long as its body has at most `limit` bytes.
    ///
    /// # Errors
    /// A kind that no client sends, or a length that cannot be: where the next message begins is unknown, so the
    /// connection must end (FATAL).
    pub fn next(&mut self, limit: usize) -> Result<Frame, Report> {
        if self.skip > 0 {
            let here = self.skip.min(self.end - self.start);
            self.start += here;
            self.skip -= here;
            if self.skip > 0 {
                return Ok(Frame::Incomplete);
            }
        }
        let arrived = &self.bytes[self.start..self.end];
        let Some((&[kind, a, b, c, d], _)) = arrived.split_first_chunk::<HEADER_BYTES>() else {
            // A wrong kind is told at once: the rest of a header may never come.
            return match arrived.first() {
                Some(kind) if !is_known(*kind) => Err(unknown(*kind)),
                _ => Ok(Frame::Incomplete),
            };
        };
        if !is_known(kind) {
            return Err(unknown(kind));
        }
        let length = i32::from_be_bytes([a, b, c, d]);
        let bytes = usize::try_from(length).ok().and_then(|l| l.checked_sub(4));
        let invalid = || Report::fatal(PROTOCOL_VIOLATION, "invalid message length");
        let bytes = bytes.ok_or_else(invalid)?;
        if is_small(kind) && bytes > SMALL_MESSAGE_BYTES_MAX {
            return Err(invalid());
        }
        if bytes > limit {
            self.start += HEADER_BYTES;
            let here = bytes.min(self.end - self.start);
            self.start += here;
            self.skip = bytes - here;
            return Ok(Frame::TooLong { kind, bytes });
        }
        let begin = self.start + HEADER_BYTES;
        if self.end - begin < bytes {
            return Ok(Frame::Incomplete);
        }
        self.start = begin + bytes;
        debug_assert!(self.start <= self.end, "I1");
        Ok(Frame::Message {
            kind,
            body: begin..begin + bytes,
        })
    }

    /// The body of a message that `next` found.
    pub fn body(&self, range: Range<usize>) -> &[u8] {
        &self.bytes[range]
    }

    /// Reads once from `source` what is there. Zero: the client has closed its side.
    ///
    /// # Errors
    /// Those of the source.
    pub fn fill(&mut self, source: &mut impl Read) -> io::Result<usize> {
        self.make_room();
        let count = source.read(&mut self.bytes[self.end..])?;
        self.end += count;
        debug_assert!(self.end <= self.bytes.len(), "I1");
        Ok(count)
    }

    /// Makes room behind what arrived: for the rest of the message that it begins, as far as I2 allows.
    fn make_room(&mut self) {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
            // A large message is over.
            if self.bytes.len() > USUAL_BYTES {
                self.bytes = Vec::new();
            }
        }
        if self.bytes.len() < USUAL_BYTES {
            self.bytes.resize(USUAL_BYTES, 0);
        }
        if self.end < self.bytes.len() {
            return;
        }
        if self.start > 0 {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
            if self.end <= self.bytes.len() / 2 {
                return;
            }
        }
        let wanted = self.message_bytes().unwrap_or(USUAL_BYTES);
        let grown = wanted.min(self.bytes.len().saturating_mul(2));
        if grown > self.bytes.len() {
            self.bytes.reserve_exact(grown - self.bytes.len());
            self.bytes.resize(grown, 0);
        }
    }

    /// Bytes of the message that begins at `start`, header included, once that is known.
    fn message_bytes(&self) -> Option<usize> {
        let arrived = &self.bytes[self.start..self.end];
        let (&[_, a, b, c, d], _) = arrived.split_first_chunk::<HEADER_BYTES>()?;
        usize::try_from(i32::from_be_bytes([a, b, c, d]))
            .ok()?
            .checked_add(1)
    }
}

/// The limit of a message's body before login.
pub const LOGIN_BODY_BYTES_MAX: usize = LOGIN_MESSAGE_BYTES_MAX - 4;

/// Whether clients send messages of this kind.
fn is_known(kind: u8) -> bool {
    matches!(
        kind,
        b'Q' | b'P'
            | b'B'
            | b'D'
            | b'E'
            | b'C'
            | b'S'
            | b'H'
            | b'F'
            | b'X'
            | b'd'
            | b'c'
            | b'f'
            | b'p'
    )
}

/// Whether a message of this kind carries names and numbers only.
fn is_small(kind: u8) -> bool {
    matches!(kind, b'D' | b'E' | b'C' | b'S' | b'H' | b'X' | b'c')
}

fn unknown(kind: u8) -> Report {
    Report::fatal(
        PROTOCOL_VIOLATION,
        format!("invalid frontend message type {kind}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u8, body: &[u8]) -> Vec<u8> {
        let mut bytes = vec![kind];
        bytes.extend_from_slice(&u32::try_from(body.len() + 4).unwrap().to_be_bytes());
        bytes.extend_from_slice(body);
        bytes
    }

    /// Hands out at most `piece` bytes at once.
    struct Pieces<'a> {
        bytes: &'a [u8],
        piece: usize,
    }

    impl Read for Pieces<'_> {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let count = self.piece.min(out.len()).min(self.bytes.len());
            out[..count].copy_from_slice(&self.bytes[..count]);
            self.bytes = &self.bytes[count..];
            Ok(count)
        }
    }

    fn all(bytes: &[u8], piece: usize, limit: usize) -> (Vec<(u8, Vec<u8>)>, usize) {
        let mut source = Pieces { bytes, piece };
        let mut inbound = Inbound::new();
        let (mut found, mut most) = (Vec::new(), 0);
        loop {
            match inbound.next(limit).unwrap() {
                Frame::Message { kind, body } => found.push((kind, inbound.body(body).to_vec())),
                Frame::TooLong { kind, .. } => found.push((kind, b"too long".to_vec())),
                Frame::Incomplete => {
                    if inbound.fill(&mut source).unwrap() == 0 {
                        return (found, most);
                    }
                    most = most.max(inbound.bytes.len());
                }
            }
        }
    }

    #[test]
    fn messages_are_the_same_in_whatever_pieces_they_arrive() {
        let bodies = [vec![], vec![7; 5], vec![8; 9000], vec![9; 100_000], vec![1]];
        let stream: Vec<u8> = bodies.iter().flat_map(|body| message(b'Q', body)).collect();
        for piece in [1, 3, 4096, 8192, 50_000, usize::MAX] {
            let (found, _) = all(&stream, piece, 1 << 20);
            let found: Vec<Vec<u8>> = found.into_iter().map(|(_, body)| body).collect();
            assert_eq!(found, bodies, "pieces of {piece}");
        }
    }

    #[test]
    fn a_message_above_the_limit_is_skipped_and_the_next_one_is_read() {
        let mut stream = message(b'Q', &[1; 20_000]);
        stream.extend(message(b'S', b""));
        for piece in [1, 20_005, 20_004, 20_006, usize::MAX] {
            let (found, most) = all(&stream, piece, 10_000);
            let expected = [(b'Q', b"too long".to_vec()), (b'S', vec![])];
            assert_eq!(found, expected, "pieces of {piece}");
            assert_eq!(most, USUAL_BYTES, "what is skipped takes no memory");
        }
    }

    #[test]
    fn memory_follows_what_arrived_and_not_what_was_announced() {
        let mut stream = vec![b'Q'];
        stream.extend_from_slice(&(60u32 << 20).to_be_bytes());
        stream.extend_from_slice(&[b' '; 40_000]);
        let (found, most) = all(&stream, usize::MAX, 64 << 20);
        assert!(found.is_empty());
        assert!(most <= 2 * stream.len(), "{most} bytes");
    }

    #[test]
    fn a_buffer_that_grew_shrinks_when_it_is_empty() {
        let stream = message(b'Q', &[1; 100_000]);
        let mut source = Pieces {
            bytes: &stream,
            piece: usize::MAX,
        };
        let mut inbound = Inbound::new();
        while inbound.next(1 << 20).unwrap() == Frame::Incomplete {
            inbound.fill(&mut source).unwrap();
        }
        assert!(inbound.is_empty());
        inbound.fill(&mut source).unwrap();
        assert_eq!(inbound.bytes.len(), USUAL_BYTES);
    }

    #[test]
    fn lengths_and_kinds_that_cannot_be_end_the_connection() {
        for length in [0, 3, -1, i32::MIN] {
            let mut inbound = Inbound::new();
            let mut stream = vec![b'Q'];
            stream.extend_from_slice(&length.to_be_bytes());
            inbound.fill(&mut &stream[..]).unwrap();
            assert!(inbound.next(100).unwrap_err().is_fatal(), "{length}");
        }
        let mut inbound = Inbound::new();
        inbound.fill(&mut &message(b'S', &[0; 10_001])[..]).unwrap();
        while inbound
            .next(1 << 20)
            .is_ok_and(|frame| frame == Frame::Incomplete)
        {
            inbound.fill(&mut &[0u8; 10_001][..]).unwrap();
        }
        assert!(inbound.next(1 << 20).is_err(), "a Sync of 10,001 bytes");
        let mut inbound = Inbound::new();
        inbound.fill(&mut &b"G"[..]).unwrap();
        let error = inbound.next(100).unwrap_err();
        assert_eq!(error.message, "invalid frontend message type 71");
    }
}
