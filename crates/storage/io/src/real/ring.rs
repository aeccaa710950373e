//! Scattered direct reads and writes, many at a time, through io_uring.
//!
//! One `pread` or `pwrite` after the other keeps the device at a queue depth of one; here up to [`DEPTH`] reads or
//! [`WRITE_DEPTH`] writes are under way. Only
//! for direct I/O: buffered writes are copies, which gain nothing.
//!
//! States of a ring: made by the first batch that finds none idle, *lent* to one batch, *idle* after it. One that failed is
//! dropped. Where the kernel or the container forbids rings, or gives no more of them, no more are asked for: the caller
//! goes on by `pread` and `pwrite`.
//!
//! Invariants:
//! - U1 When a call returns or unwinds, nothing refers to the caller's bytes: what the kernel took was
//!   waited for, and a ring with requests that it did not take is dropped without being entered again.
//! - U2 A completion belongs to the call that waits for it: a ring is lent to one call from before the first submission to
//!   after the last completion.
//! - U3 What the ring left over (rests of short transfers, requests that were not run) is the caller's to do; an error
//!   of the medium is reported and not tried again.
//!
//! Concurrency: a batch has a ring to itself, so batches do not wait for each other; the mutex is held for a push or a pop.
//! Beyond [`RINGS_MAX`] batches at once the rest goes on without a ring.
#![allow(unsafe_code)]

use io_uring::{IoUring, opcode, squeue, types};
use rustix::io::Errno;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use vellum_sync::{Backoff, Mutex};

/// Most rings of a file: each is a descriptor and some 10 KiB of the kernel's memory.
const RINGS_MAX: usize = 32;

/// Most requests under way at once.
const DEPTH: u32 = 64;
/// Most writes under way at once. Nobody waits for the pages of a batch, but for reads that queue up behind them: with
/// data five times the pool TPC-C ran 7 % faster with 16 than with 64, and 20 % slower with 2.
const WRITE_DEPTH: usize = 16;
/// Most bytes of one request; the rest counts as left over. Linux transfers a little less than 2 GiB.
const REQUEST_BYTES_MAX: usize = 1 << 30;

/// The rings of an open file.
pub(super) struct Rings(Mutex<Table>);

struct Table {
    idle: Vec<IoUring>,
    /// Idle and lent.
    made: usize,
    /// No more are made beyond this; falls to what there was when the kernel refused one.
    limit: usize,
}

/// A ring while it is lent. Not given back, it is dropped, with whatever stands in it (U1).
struct Lent<'r> {
    rings: &'r Rings,
    ring: Option<IoUring>,
}

impl Lent<'_> {
    fn give_back(mut self) {
        if let Some(ring) = self.ring.take() {
            self.rings.0.lock().idle.push(ring);
        }
        std::mem::forget(self);
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        self.rings.0.lock().made -= 1;
    }
}

/// What was not done: (number of the run, bytes of it that are).
pub(super) type LeftOver = Vec<(usize, usize)>;

impl fmt::Debug for Rings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Rings")
    }
}

impl Default for Rings {
    fn default() -> Self {
        Self::at_most(RINGS_MAX)
    }
}

impl Rings {
    fn at_most(limit: usize) -> Self {
        Self(Mutex::new(Table {
            idle: Vec::new(),
            made: 0,
            limit,
        }))
    }

    /// Rings that the kernel is taken to have refused.
    #[cfg(test)]
    pub(super) fn refused() -> Self {
        Self::at_most(0)
    }

    /// Number of rings that wait for a batch.
    #[cfg(test)]
    pub(super) fn idle(&self) -> usize {
        self.0.lock().idle.len()
    }

    /// A ring of one's own, if there is one to be had.
    fn lend(&self) -> Option<Lent<'_>> {
        let mut table = self.0.lock();
        let ring = table.idle.pop();
        if ring.is_none() {
            if table.made >= table.limit {
                return None;
            }
            table.made += 1;
        }
        drop(table);
        let mut lent = Lent { rings: self, ring };
        if lent.ring.is_none() {
            match IoUring::new(DEPTH) {
                Ok(ring) => lent.ring = Some(ring),
                // Whatever the reason is (no such call, forbidden, no descriptor for it): `pread` and `pwrite` need none.
                Err(_) => {
                    let mut table = self.0.lock();
                    table.limit = table.limit.min(table.made - 1);
                    drop(table);
                    return None;
                }
            }
        }
        Some(lent)
    }

    /// Writes the runs, in any order. `None` if there is no ring to be had now, or it failed: then nothing may
    /// be taken for written.
    ///
    /// # Errors
    /// That of the first run, by number, which failed; any part may have been written.
    pub(super) fn write(&self, file: &File, runs: &[(u64, &[u8])]) -> io::Result<Option<LeftOver>> {
        self.transfer(file, Runs::Write(runs))
    }

    /// Fills the runs, in any order. `None` as for [`Rings::write`].
    ///
    /// # Errors
    /// That of the first run, by number, which failed; any part may have been filled.
    pub(super) fn read(
        &self,
        file: &File,
        runs: &mut [(u64, &mut [u8])],
    ) -> io::Result<Option<LeftOver>> {
        self.transfer(file, Runs::Read(runs))
    }

    fn transfer(&self, file: &File, runs: Runs<'_, '_>) -> io::Result<Option<LeftOver>> {
        let Some(mut lent) = self.lend() else {
            return Ok(None);
        };
        let Some(ring) = lent.ring.as_mut() else {
            return Ok(None);
        };
        let mut batch = Batch {
            ring,
            runs,
            under_way: 0,
            left_over: Vec::new(),
            failed: None,
        };
        let ran = batch.run(file);
        batch.drain();
        let failed = batch.failed;
        let left_over = std::mem::take(&mut batch.left_over);
        drop(batch);
        if ran {
            lent.give_back();
        }
        match failed {
            Some((_, error)) => Err(error.into()),
            None => Ok(ran.then_some(left_over)),
        }
    }
}

/// What is to be transferred: offsets in the file, and bytes.
enum Runs<'r, 'b> {
    Write(&'r [(u64, &'b [u8])]),
    Read(&'r mut [(u64, &'b mut [u8])]),
}

impl Runs<'_, '_> {
    fn count(&self) -> usize {
        match self {
            Self::Write(runs) => runs.len(),
            Self::Read(runs) => runs.len(),
        }
    }

    /// Most requests under way at once.
    fn depth(&self) -> usize {
        match self {
            Self::Write(_) => WRITE_DEPTH,
            Self::Read(_) => DEPTH as usize,
        }
    }

    /// Bytes of a run.
    fn length(&self, run: usize) -> usize {
        match self {
            Self::Write(runs) => runs[run].1.len(),
            Self::Read(runs) => runs[run].1.len(),
        }
    }

    /// The request for a run.
    fn request(&mut self, run: usize, fd: types::Fd) -> squeue::Entry {
        // Cut off by a constant that is an u32.
        let length = self.length(run).min(REQUEST_BYTES_MAX) as u32;
        let request = match self {
            Self::Write(runs) => {
                let (offset, bytes) = runs[run];
                opcode::Write::new(fd, bytes.as_ptr(), length)
                    .offset(offset)
                    .build()
            }
            Self::Read(runs) => {
                let (offset, bytes) = &mut runs[run];
                opcode::Read::new(fd, bytes.as_mut_ptr(), length)
                    .offset(*offset)
                    .build()
            }
        };
        request.user_data(run as u64)
    }
}

/// Runs under way. Dropping it waits for them.
struct Batch<'r, 'b> {
    ring: &'r mut IoUring,
    runs: Runs<'r, 'b>,
    /// Requests in the queue or taken by the kernel, whose completions were not seen yet.
    under_way: usize,
    left_over: LeftOver,
    /// The first run that failed.
    failed: Option<(usize, Errno)>,
}

impl Batch<'_, '_> {
    /// Submits everything and waits for it, up to the first failure. False if the ring failed: requests may
    /// be under way or in the queue then, and which runs were written is not known.
    fn run(&mut self, file: &File) -> bool {
        let fd = types::Fd(file.as_raw_fd());
        let mut next = 0;
        loop {
            while next < self.runs.count()
                && self.under_way < self.runs.depth()
                && self.failed.is_none()
            {
                if self.runs.length(next) > 0 {
                    let request = self.runs.request(next, fd);
                    if !self.push(&request) {
                        return false;
                    }
                }
                next += 1;
            }
            if self.under_way == 0 {
                return true;
            }
            // All that is left, or most of the queue at once: a wait is a call, a switch and a notification of the device.
            // Three quarters of 16 cost 8 µs of processor a write where a half cost 11, and wrote a fifth more.
            let last = next == self.runs.count() || self.failed.is_some();
            let wanted = if last {
                self.under_way
            } else {
                self.under_way - self.under_way / 4
            };
            match self.ring.submit_and_wait(wanted) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Short of memory: rare enough to go on without a ring.
                Err(_) => return false,
            }
            self.reap();
        }
    }

    /// Puts a request into the queue; false if it is full.
    fn push(&mut self, request: &squeue::Entry) -> bool {
        let mut queue = self.ring.submission();
        // Bytes that are written are shared and only read; those read into are borrowed exclusively until the batch ends.
        // SAFETY: descriptor and bytes are borrowed by whoever made this batch until it is drained, which its end sees
        // to; after that neither the kernel nor the queue refers to them (U1).
        let pushed = unsafe { queue.push(request) }.is_ok();
        self.under_way += usize::from(pushed);
        pushed
    }

    /// Takes what is complete.
    fn reap(&mut self) {
        for entry in self.ring.completion() {
            self.under_way -= 1;
            // The number of a run, which is an usize.
            let run = entry.user_data() as usize;
            let length = self.runs.length(run);
            match usize::try_from(entry.result()) {
                Ok(done) if done == length => {}
                Ok(done) => {
                    debug_assert!(done < length);
                    self.left_over.push((run, done));
                }
                Err(_) => match Errno::from_raw_os_error(-entry.result()) {
                    // These say that the request was not run, not that the transfer failed (U3). Kernels that do not
                    // know the request say EINVAL; if they mean the transfer, `pread` or `pwrite` will say so too.
                    Errno::INTR
                    | Errno::AGAIN
                    | Errno::INVAL
                    | Errno::CANCELED
                    | Errno::NOMEM
                    | Errno::OPNOTSUPP => self.left_over.push((run, 0)),
                    error => {
                        if self.failed.is_none_or(|(first, _)| run < first) {
                            self.failed = Some((run, error));
                        }
                    }
                },
            }
        }
    }

    /// Waits for what the kernel took, without entering the ring: what it did not take stays in the queue.
    fn drain(&mut self) {
        let mut backoff = Backoff::new();
        loop {
            self.reap();
            let queued = self.ring.submission().len();
            debug_assert!(queued <= self.under_way);
            if self.under_way <= queued {
                return;
            }
            // Completions are delivered as this thread comes back from any call to the kernel: it sleeps soon.
            backoff.wait();
        }
    }
}

impl Drop for Batch<'_, '_> {
    fn drop(&mut self) {
        self.drain();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_batches_at_once_have_a_ring_each_and_later_ones_the_same() {
        let rings = Rings::default();
        let Some(one) = rings.lend() else {
            return;
        };
        let other = rings.lend().expect("a kernel that gave one ring");
        assert_eq!(rings.idle(), 0);
        one.give_back();
        other.give_back();
        assert_eq!(rings.idle(), 2);
        rings.lend().expect("an idle ring").give_back();
        assert_eq!(rings.idle(), 2, "no third one was made");
    }

    #[test]
    fn beyond_the_limit_there_is_no_ring_until_one_came_back_or_failed() {
        let rings = Rings::at_most(1);
        let Some(lent) = rings.lend() else {
            return;
        };
        assert!(rings.lend().is_none());
        // As a batch whose ring failed.
        drop(lent);
        assert_eq!(rings.idle(), 0);
        let lent = rings.lend().expect("room for another");
        lent.give_back();
        assert!(rings.lend().is_some());
    }
}
