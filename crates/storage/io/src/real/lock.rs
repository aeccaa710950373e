//! The lock file: an advisory lock of the open file description, so it excludes a second opener
//! in the same process too, and the kernel gives it back however the process ends; whoever ends before gives it back himself
//! (`LockGuard`). The file holds the holder's
//! process id, for the message only. The directory is locked too, and first: a lock file that somebody removed lets nobody in.

use super::check_regular;
use crate::LockGuard;
use crate::lock::LOCK_NAME;
use rustix::fs::{Access, AtFlags, CWD, FlockOperation, OFlags, accessat, flock};
use rustix::io::Errno;
use std::fs;
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use vellum_base::{Result, StorageError};

/// Most bytes of a number and the end of its line.
const PID_BYTES_MAX: u64 = 32;

/// Refuses a directory in which this process may make no files.
pub(super) fn check_writable(directory: &Path) -> Result<()> {
    let access = Access::WRITE_OK | Access::EXEC_OK;
    match accessat(CWD, directory, access, AtFlags::EACCESS) {
        Err(error @ (Errno::ACCESS | Errno::PERM | Errno::ROFS)) => {
            let name = Arc::from(directory.to_string_lossy());
            Err(StorageError::io("opening for writing", &name, error.into()))
        }
        _ => Ok(()),
    }
}

pub(super) fn try_lock(root: &Path) -> Result<LockGuard> {
    let name = Arc::from(LOCK_NAME);
    let locking = |source| StorageError::io("lock", &name, source);
    // Before anything is written: who may write the files there are, but make none, would leave a database half recovered.
    check_writable(root)?;
    let directory = lock_directory(root, FlockOperation::NonBlockingLockExclusive)?;
    let mut options = fs::OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    options.mode(0o600);
    let mut file = open_regular(root, &mut options)?;
    match rustix::io::retry_on_intr(|| flock(&file, FlockOperation::NonBlockingLockExclusive)) {
        Ok(()) => {}
        Err(rustix::io::Errno::WOULDBLOCK) => {
            return Err(StorageError::Locked {
                pid: read_pid(&mut file),
            });
        }
        Err(error) => return Err(locking(error.into())),
    }
    if !is_ours(&mut file).map_err(locking)? {
        return Err(StorageError::ForeignFormat {
            file: name,
            what: "it is no lock file of a database".into(),
        });
    }
    // The file is never removed: a second opener could lock the removed one while a third makes
    // and locks a new one.
    let write = |file: &mut fs::File| -> io::Result<()> {
        file.set_len(0)?;
        file.rewind()?;
        file.write_all(format!("{}\n", std::process::id()).as_bytes())
    };
    match write(&mut file) {
        // On a full disk the lock holds all the same; only the message lacks the number.
        Ok(()) => {}
        Err(error) => match locking(error) {
            StorageError::OutOfSpace { .. } => {}
            error => return Err(error),
        },
    }
    Ok(LockGuard::of_file(file).with(directory))
}

/// Locks the directory itself, which nobody can remove from under a holder as he can the lock file. Makes nothing. Where
/// the file system locks no directories (NFS), the lock file alone counts.
fn lock_directory(root: &Path, how: FlockOperation) -> Result<LockGuard> {
    let locking = |source| StorageError::io("lock", &Arc::from(root.to_string_lossy()), source);
    let directory = fs::File::open(root).map_err(locking)?;
    match rustix::io::retry_on_intr(|| flock(&directory, how)) {
        Ok(()) => Ok(LockGuard::of_file(directory)),
        Err(Errno::WOULDBLOCK) => {
            // The holder's number, unless its file is gone.
            let mut file = open_regular(root, fs::OpenOptions::new().read(true));
            Err(StorageError::Locked {
                pid: file.as_mut().map_or(0, read_pid),
            })
        }
        Err(Errno::BADF | Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP | Errno::NOLCK) => {
            Ok(LockGuard::of_nothing())
        }
        Err(error) => Err(locking(error.into())),
    }
}

/// For readers: needs no write access, makes no file. The number in the file stays that of the last
/// opener, so who is kept out by a reader is told that one.
pub(super) fn try_lock_shared(root: &Path) -> Result<LockGuard> {
    let name = Arc::from(LOCK_NAME);
    let locking = |source| StorageError::io("lock", &name, source);
    let directory = lock_directory(root, FlockOperation::NonBlockingLockShared)?;
    let mut file = match open_regular(root, fs::OpenOptions::new().read(true)) {
        Ok(file) => file,
        Err(StorageError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            return Ok(directory);
        }
        Err(error) => return Err(error),
    };
    match rustix::io::retry_on_intr(|| flock(&file, FlockOperation::NonBlockingLockShared)) {
        Ok(()) => Ok(LockGuard::of_file(file).with(directory)),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(StorageError::Locked {
            pid: read_pid(&mut file),
        }),
        Err(error) => Err(locking(error.into())),
    }
}

/// Opens the lock file, and nothing else that has its name: follows no link, waits for no other end of a pipe.
fn open_regular(root: &Path, options: &mut fs::OpenOptions) -> Result<fs::File> {
    let path = root.join(LOCK_NAME);
    let name = Arc::from(LOCK_NAME);
    let locking = |source| StorageError::io("lock", &name, source);
    let flags = OFlags::NONBLOCK | OFlags::NOFOLLOW;
    let opened = options
        .custom_flags(flags.bits().cast_signed())
        .open(&path)
        .map_err(|error| match fs::symlink_metadata(&path) {
            Ok(found) => check_regular(LOCK_NAME, found.file_type())
                .err()
                .unwrap_or_else(|| locking(error)),
            Err(_) => locking(error),
        })?;
    check_regular(LOCK_NAME, opened.metadata().map_err(locking)?.file_type())?;
    Ok(opened)
}

/// True if the file holds nothing or a number: others name their lock files so, too.
fn is_ours(file: &mut fs::File) -> io::Result<bool> {
    let mut bytes = Vec::new();
    file.take(PID_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    let is_number = bytes
        .iter()
        .all(|byte| byte.is_ascii_digit() || *byte == b'\n');
    Ok(is_number && bytes.len() as u64 <= PID_BYTES_MAX)
}

/// Zero where the holder has not written it yet, or something else did.
fn read_pid(file: &mut fs::File) -> u32 {
    let mut text = String::new();
    match file.take(PID_BYTES_MAX).read_to_string(&mut text) {
        Ok(_) => text.trim().parse().unwrap_or(0),
        Err(_) => 0,
    }
}
