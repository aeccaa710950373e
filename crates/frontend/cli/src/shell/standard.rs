//! Standard input, of which several may read: statements, and data of a COPY that stand behind them or come from elsewhere (`\copy … from pstdin`).
//!
//! Invariants: I1: each takes whole lines and holds nothing between them, so that none reads past what it was asked for, or waits for another.

use std::io::{self, BufRead, Read};

/// One of its readers.
#[derive(Debug, Default)]
pub struct Standard {
    line: Vec<u8>,
    taken: usize,
}

impl BufRead for Standard {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.taken == self.line.len() {
            self.taken = 0;
            self.line.clear();
            io::stdin().lock().read_until(b'\n', &mut self.line)?;
        }
        Ok(&self.line[self.taken..])
    }

    fn consume(&mut self, bytes: usize) {
        self.taken += bytes;
    }
}

impl Read for Standard {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(into)?;
        self.consume(read);
        Ok(read)
    }
}
