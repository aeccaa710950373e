//! `pg_snapshot` and `txid_snapshot`: which transactions had ended when a snapshot was drawn.
//!
//! Layout: held as text in one form, `xmin:xmax:number,number`: the numbers that were in progress, ascending, each once.

use crate::binary::exactly;
use crate::error::{Result, SqlError, SqlState};
use std::fmt;

/// The numbers of transactions that a snapshot tells apart: those below `xmin` had ended, those from `xmax` on had none yet, of those between the ones that are listed were in progress.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Snapshot {
    xmin: u64,
    xmax: u64,
    in_progress: Vec<u64>,
}

impl Snapshot {
    /// One at `xmax`, with the numbers below it that were in progress, in any order.
    pub fn new(xmax: u64, mut in_progress: Vec<u64>) -> Self {
        in_progress.sort_unstable();
        in_progress.dedup();
        Self {
            xmin: in_progress.first().copied().unwrap_or(xmax),
            xmax,
            in_progress,
        }
    }

    /// Reads its text.
    ///
    /// # Errors
    /// 22P02.
    pub fn parse(text: &str) -> Result<Self> {
        Self::read(text).ok_or_else(|| SqlError::invalid_text("pg_snapshot", text))
    }

    fn read(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, ':');
        let mut number = || parts.next()?.parse::<u64>().ok();
        let (xmin, xmax) = (number()?, number()?);
        let listed = parts.next()?;
        let mut in_progress = Vec::new();
        if !listed.is_empty() {
            for number in listed.split(',') {
                in_progress.push(number.parse().ok()?);
            }
        }
        Self::checked(xmin, xmax, in_progress)
    }

    fn checked(xmin: u64, xmax: u64, mut in_progress: Vec<u64>) -> Option<Self> {
        let within = in_progress.iter().all(|own| (xmin..xmax).contains(own));
        let fits = xmin > 0 && xmin <= xmax && xmax <= i64::MAX as u64;
        if !fits || !within || !in_progress.is_sorted() {
            return None;
        }
        in_progress.dedup();
        Some(Self {
            xmin,
            xmax,
            in_progress,
        })
    }

    /// Every number below had ended.
    pub fn xmin(&self) -> u64 {
        self.xmin
    }

    /// From this one on there was none yet.
    pub fn xmax(&self) -> u64 {
        self.xmax
    }

    /// Those between that were in progress, ascending.
    pub fn in_progress(&self) -> &[u64] {
        &self.in_progress
    }

    /// Whether the transaction of a number had ended.
    pub fn sees(&self, number: u64) -> bool {
        number < self.xmin || number < self.xmax && self.in_progress.binary_search(&number).is_err()
    }

    /// Reads its binary form: `i32` how many were in progress, then `i64` each: xmin, xmax, those; big-endian.
    ///
    /// # Errors
    /// 08P01 for a wrong length, 22P03 for what is none.
    pub fn receive(bytes: &[u8]) -> Result<Self> {
        let (count, rest) = bytes.split_at_checked(4).unwrap_or((&bytes[..0], bytes));
        let count = i32::from_be_bytes(exactly(count)?);
        let mut numbers = Vec::new();
        for number in rest.chunks(8) {
            numbers.push(u64::from_be_bytes(exactly(number)?));
        }
        let found = match numbers.as_slice() {
            [xmin, xmax, listed @ ..] if i32::try_from(listed.len()) == Ok(count) => {
                Self::checked(*xmin, *xmax, listed.to_vec())
            }
            _ => None,
        };
        found.ok_or_else(|| {
            let text = "invalid external pg_snapshot data";
            SqlError::new(SqlState::INVALID_BINARY, text)
        })
    }

    /// Appends its binary form.
    pub fn send(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.in_progress.len() as u32).to_be_bytes());
        for number in [self.xmin, self.xmax].iter().chain(&self.in_progress) {
            out.extend_from_slice(&number.to_be_bytes());
        }
    }
}

impl fmt::Display for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:", self.xmin, self.xmax)?;
        for (at, number) in self.in_progress.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            write!(f, "{comma}{number}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_in_one_form_and_others_refused() {
        for (text, shown) in [
            ("1:1:", "1:1:"),
            ("10:20:10,14,15", "10:20:10,14,15"),
            ("10:20:14,14", "10:20:14"),
        ] {
            let read = Snapshot::parse(text).unwrap();
            assert_eq!(read.to_string(), shown);
            let mut bytes = Vec::new();
            read.send(&mut bytes);
            assert_eq!(Snapshot::receive(&bytes).unwrap(), read);
            for end in 0..bytes.len() {
                assert!(Snapshot::receive(&bytes[..end]).is_err(), "{end}");
            }
        }
        for text in [
            "",
            "1",
            "1:2",
            "0:1:",
            "2:1:",
            "1:2:2",
            "2:5:1",
            "1:9:5,4",
            "1:2:a",
            "1:2:,",
            " 1:2:",
            "1:9223372036854775808:",
        ] {
            assert!(Snapshot::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_had_ended_is_seen() {
        let snapshot = Snapshot::new(20, vec![14, 10, 14]);
        assert_eq!(snapshot.to_string(), "10:20:10,14");
        let seen: Vec<u64> = (8..22).filter(|own| snapshot.sees(*own)).collect();
        assert_eq!(seen, [8, 9, 11, 12, 13, 15, 16, 17, 18, 19]);
        assert_eq!(Snapshot::new(5, Vec::new()).xmin(), 5);
    }
}
