//! Which calls fail, and the record of all calls.

use super::power_is_cut;
use crate::exact;
use std::collections::VecDeque;
use std::fmt;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use vellum_base::{Result, StorageError};

/// Kinds of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Call {
    /// Opening a file, also where that makes it.
    Open,
    /// Reading a range.
    Read,
    /// Writing a range; each entry of a batch is one.
    Write,
    /// Syncing a file.
    Sync,
    /// Setting a length.
    SetLen,
    /// Reserving space.
    Allocate,
    /// Making a subdirectory.
    CreateDir,
    /// Removing a file.
    Remove,
    /// Renaming a file.
    Rename,
    /// Syncing a directory.
    SyncDir,
    /// Asking whether a name is there.
    Exists,
    /// Listing a directory.
    List,
}

impl Call {
    const COUNT: usize = Self::ALL.len();

    /// All kinds.
    pub const ALL: [Self; 12] = [
        Self::Open,
        Self::Read,
        Self::Write,
        Self::Sync,
        Self::SetLen,
        Self::Allocate,
        Self::CreateDir,
        Self::Remove,
        Self::Rename,
        Self::SyncDir,
        Self::Exists,
        Self::List,
    ];

    /// The word in error messages, the same as the real directory's.
    pub(super) const fn action(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Read => "read",
            Self::Write => "write",
            Self::Sync | Self::SyncDir => "fsync",
            Self::SetLen => "set length",
            Self::Allocate => "allocate",
            Self::CreateDir => "create directory",
            Self::Remove => "remove",
            Self::Rename => "rename",
            Self::Exists => "look up",
            Self::List => "list",
        }
    }
}

/// How many calls of each kind reached the disk, failed ones included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    calls: [u64; Call::COUNT],
    failed: [u64; Call::COUNT],
    /// Bytes asked for by reads.
    pub bytes_read: u64,
    /// Bytes given to writes.
    pub bytes_written: u64,
}

impl Counts {
    /// Calls of one kind.
    pub const fn of(&self, call: Call) -> u64 {
        self.calls[call as usize]
    }

    /// Calls of one kind that a planned fault met.
    pub const fn failed(&self, call: Call) -> u64 {
        self.failed[call as usize]
    }
}

/// How a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultError {
    /// The device reports an error; nothing happens.
    Eio,
    /// The disk is full; nothing happens.
    Enospc,
    /// Half of the bytes are transferred, then the call fails: a read with the end of the file, a
    /// write with `WriteZero`. Other calls fail with EIO.
    Short,
}

/// A planned failure.
#[derive(Clone, Debug)]
pub struct Fault {
    call: Call,
    file: Option<String>,
    /// Matching calls that succeed before.
    after: u64,
    error: FaultError,
    forever: bool,
}

impl Fault {
    /// Call number `n` of a kind from now on fails with EIO, once; zero is the next one.
    pub const fn nth(call: Call, n: u64) -> Self {
        Self {
            call,
            file: None,
            after: n,
            error: FaultError::Eio,
            forever: false,
        }
    }

    /// The same with another error.
    #[must_use]
    pub fn with(self, error: FaultError) -> Self {
        Self { error, ..self }
    }

    /// The same for that call and all after it.
    #[must_use]
    pub fn forever(self) -> Self {
        Self {
            forever: true,
            ..self
        }
    }

    /// The same, counting only calls on names that begin with `prefix` (`log/`, `data`).
    #[must_use]
    pub fn on(self, prefix: &str) -> Self {
        Self {
            file: Some(prefix.to_owned()),
            ..self
        }
    }

    fn matches(&self, call: Call, file: &str) -> bool {
        self.call == call
            && self
                .file
                .as_ref()
                .is_none_or(|prefix| file.starts_with(prefix))
    }
}

/// One call that reached the disk.
#[derive(Clone, Debug)]
pub struct TraceEntry {
    /// Mutating calls before this one: what [`super::SimulatedDirectory::cut_after`] on a new
    /// directory must be given to cut here.
    pub mutating_calls: u64,
    /// Its kind.
    pub call: Call,
    /// The file; for a rename, both names.
    pub file: Arc<str>,
    /// Where, for transfers; the new length, for `SetLen`.
    pub offset: u64,
    /// How many bytes, for transfers.
    pub length: u64,
    /// What was planned for it.
    pub fault: Option<FaultError>,
}

impl fmt::Display for TraceEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            mutating_calls,
            call,
            file,
            offset,
            length,
            fault,
        } = self;
        write!(
            f,
            "{mutating_calls:6} {call:?} {file} at {offset} +{length}"
        )?;
        fault.map_or(Ok(()), |fault| write!(f, " fails: {fault:?}"))
    }
}

/// What a call has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Succeed.
    Go,
    /// Fail.
    Fail(FaultError),
    /// Take effect perhaps, and fail.
    CutNow,
}

impl Verdict {
    pub(super) fn into_io_result(self) -> io::Result<()> {
        match self {
            Self::Go => Ok(()),
            Self::CutNow => Err(power_is_cut()),
            Self::Fail(FaultError::Enospc) => Err(ErrorKind::StorageFull.into()),
            Self::Fail(FaultError::Eio | FaultError::Short) => {
                Err(io::Error::from_raw_os_error(EIO))
            }
        }
    }

    pub(super) fn into_result(self, call: Call, file: &Arc<str>) -> Result<()> {
        if self == Self::Fail(FaultError::Short) {
            match call {
                Call::Read => return Err(exact::error("read", file, ErrorKind::UnexpectedEof)),
                Call::Write => return Err(exact::error("write", file, ErrorKind::WriteZero)),
                _ => {}
            }
        }
        self.into_io_result()
            .map_err(|source| StorageError::io(call.action(), file, source))
    }
}

const EIO: i32 = rustix::io::Errno::IO.raw_os_error();

/// Entries of the trace that are kept.
const TRACE_MAX: usize = 4096;

/// What is to fail, and what was called.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) faults: Vec<Fault>,
    pub(super) calls_to_cut: Option<u64>,
    pub(super) is_cut: bool,
    pub(super) mutating_calls: u64,
    pub(super) counts: Counts,
    pub(super) trace: VecDeque<TraceEntry>,
}

impl Plan {
    /// # Errors
    /// `Io` once the power is cut.
    pub(super) fn check_power(&self, action: &'static str, file: &str) -> Result<()> {
        if self.is_cut {
            return Err(StorageError::io(action, &Arc::from(file), power_is_cut()));
        }
        Ok(())
    }

    /// Notes a call and says how it ends.
    pub(super) fn enter(
        &mut self,
        call: Call,
        mutates: bool,
        file: &Arc<str>,
        offset: u64,
        length: u64,
    ) -> Result<Verdict> {
        self.check_power(call.action(), file)?;
        self.counts.calls[call as usize] += 1;
        match call {
            Call::Read => self.counts.bytes_read += length,
            Call::Write => self.counts.bytes_written += length,
            _ => {}
        }
        let fault = self.draw_fault(call, file);
        self.counts.failed[call as usize] += u64::from(fault.is_some());
        if self.trace.len() == TRACE_MAX {
            self.trace.pop_front();
        }
        let mutating_calls = self.mutating_calls;
        let file = file.clone();
        self.trace.push_back(TraceEntry {
            mutating_calls,
            call,
            file,
            offset,
            length,
            fault,
        });
        if mutates {
            self.mutating_calls += 1;
            match &mut self.calls_to_cut {
                Some(0) => {
                    self.is_cut = true;
                    return Ok(Verdict::CutNow);
                }
                Some(left) => *left -= 1,
                None => {}
            }
        }
        Ok(fault.map_or(Verdict::Go, Verdict::Fail))
    }

    /// Counts the call for every fault that it matches; the first that is due decides.
    fn draw_fault(&mut self, call: Call, file: &str) -> Option<FaultError> {
        let mut drawn = None;
        self.faults.retain_mut(|fault| {
            if !fault.matches(call, file) {
                return true;
            }
            if fault.after > 0 {
                fault.after -= 1;
                return true;
            }
            drawn = drawn.or(Some(fault.error));
            fault.forever
        });
        drawn
    }
}
