//! The two traits.

use crate::{LockGuard, exact};
use std::fmt::Debug;
use std::io;
use std::path::Path;
use std::sync::Arc;
use vellum_base::{Result, StorageError};

/// How [`Directory::open`] opens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenOptions {
    /// Make the file if it does not exist.
    pub create: bool,
    /// Make the file; an error if it exists.
    pub create_new: bool,
    /// Bypass the page cache where the file system allows it ([`File::is_direct`] tells). Whether it
    /// does or not, addresses, offsets and lengths must be multiples of [`crate::ALIGNMENT`].
    pub direct: bool,
    /// Refuse writes.
    pub read_only: bool,
}

impl OpenOptions {
    /// An existing file, for reading and writing.
    pub const fn existing() -> Self {
        Self {
            create: false,
            create_new: false,
            direct: false,
            read_only: false,
        }
    }

    /// A file that is made if it does not exist.
    pub const fn create() -> Self {
        Self {
            create: true,
            ..Self::existing()
        }
    }

    /// A file that must not exist yet.
    pub const fn create_new() -> Self {
        Self {
            create_new: true,
            ..Self::existing()
        }
    }

    /// An existing file, for reading.
    pub const fn read_only() -> Self {
        Self {
            read_only: true,
            ..Self::existing()
        }
    }

    /// The same, with [`OpenOptions::direct`].
    pub const fn direct(self) -> Self {
        Self {
            direct: true,
            ..self
        }
    }

    /// True if opening may make a file.
    pub(crate) const fn creates(self) -> bool {
        self.create || self.create_new
    }
}

/// What a name in a directory stands for; links are not followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link, whatever it leads to.
    Link,
    /// A pipe, a socket, a device.
    Other,
}

impl EntryKind {
    /// The field's word for it, with its article.
    pub const fn text(self) -> &'static str {
        match self {
            Self::File => "a file",
            Self::Directory => "a directory",
            Self::Link => "a symbolic link",
            Self::Other => "no regular file (a pipe, a socket or a device)",
        }
    }

    /// The refusal of what stands where a database has a regular file.
    pub fn unfit(self, name: &str) -> StorageError {
        StorageError::ForeignFormat {
            file: name.into(),
            what: format!(
                "it is {}, and a database has a regular file there",
                self.text()
            ),
        }
    }
}

/// A name in a directory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// The name without its directory's. Bytes that are not UTF-8 are U+FFFD, which no name of a database has.
    pub name: String,
    /// What stands there.
    pub kind: EntryKind,
}

/// The files of one database.
///
/// Names are relative, with `/` between parts; subdirectories must have been made. The root is `""`.
/// Every method blocks. Every method that changes something returns
/// [`StorageError::Poisoned`] once a sync has failed.
pub trait Directory: Send + Sync + Debug {
    /// Opens a regular file. The new name is durable after [`Directory::sync_dir`] of its parent.
    ///
    /// # Errors
    /// `ForeignFormat` if something else has the name: a link is not followed, a pipe not waited for.
    /// `Io` (kind `NotFound`, `AlreadyExists`, …), `OutOfSpace`, `Poisoned` if it would be made.
    fn open(&self, name: &str, options: OpenOptions) -> Result<Arc<dyn File>>;

    /// True if there is a file or subdirectory of this name.
    fn exists(&self, name: &str) -> Result<bool>;

    /// Names of the files in a subdirectory (without its own name, without subdirectories), sorted.
    fn list(&self, subdir: &str) -> Result<Vec<String>> {
        let entries = self.entries(subdir)?.into_iter();
        // Names that are not UTF-8 are none of ours.
        let is_ours = |entry: &Entry| {
            entry.kind == EntryKind::File && !entry.name.contains(char::REPLACEMENT_CHARACTER)
        };
        let files = entries.filter(is_ours);
        Ok(files.map(|entry| entry.name).collect())
    }

    /// Everything in a subdirectory, of whatever kind, sorted. The lock file is among it where there is one.
    fn entries(&self, subdir: &str) -> Result<Vec<Entry>>;

    /// Makes a subdirectory; nothing happens if it exists.
    fn create_dir(&self, name: &str) -> Result<()>;

    /// Removes a file. Open handles stay valid.
    fn remove(&self, name: &str) -> Result<()>;

    /// Gives a file another name, replacing what was there, atomically: after a crash the new name
    /// is the one or the other file, whole.
    fn rename(&self, from: &str, to: &str) -> Result<()>;

    /// Gives two files each other's names, atomically: after a crash both names are as before or as after, so neither
    /// file's space is given up. Where that is not possible, as [`Directory::rename`]: then `from` is gone.
    fn exchange(&self, from: &str, to: &str) -> Result<()> {
        self.rename(from, to)
    }

    /// Makes the names in a subdirectory durable: creations, removals, renames.
    fn sync_dir(&self, subdir: &str) -> Result<()>;

    /// Refuses a subdirectory in which this process may make no files, and writes nothing to find that out. One that does not
    /// exist passes.
    ///
    /// # Errors
    /// `Io` (kinds `PermissionDenied`, `ReadOnlyFilesystem`).
    fn check_writable(&self, _subdir: &str) -> Result<()> {
        Ok(())
    }

    /// True if `path`, which need not exist, is this subdirectory (`""` for the root) or lies in it, under whatever name: links and other
    /// mounts of it are found by what they lead to. Never of one that is not in the file system.
    fn holds(&self, _subdir: &str, _path: &Path) -> bool {
        false
    }

    /// Takes the lock of the whole directory (file `LOCK`, and the directory itself) until the guard is dropped or the
    /// process ends, however it ends.
    ///
    /// # Errors
    /// `Locked` with the holder's process id, also if this process is the holder; `Io` if the
    /// directory cannot be written.
    fn try_lock(&self) -> Result<LockGuard>;

    /// Keeps others from taking [`Directory::try_lock`] until the guard is dropped, and writes
    /// nothing: for who only reads. Several may hold it.
    ///
    /// # Errors
    /// `Locked` with the process id of who has the directory open; `Io`.
    fn try_lock_shared(&self) -> Result<LockGuard>;

    /// True once a sync failed: nothing is written any more.
    fn poisoned(&self) -> bool;

    /// Replaces the content of a small file atomically and durably: after a crash it is the old or
    /// the new content, and the new one once this returned `Ok`. Concurrent calls for one name are
    /// the caller's to avoid. Uses the name with `.tmp` appended; what stands there means nothing, but
    /// its space is what the next call writes into: from the second on, a full disk refuses none.
    ///
    /// Who takes over a directory from a process that was killed syncs it ([`Directory::sync_dir`]) before the first call, or removes
    /// what has the temporary name: if that process ended before its last sync here, it may on disk still be the file named `name`.
    fn write_atomic(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let temporary = format!("{name}.tmp");
        let file = self.open(&temporary, OpenOptions::create())?;
        file.write_at(bytes, 0)?;
        if file.len()? > bytes.len() as u64 {
            file.set_len(bytes.len() as u64)?;
        }
        // Content before name: otherwise a crash could leave the new name with old or no bytes.
        file.sync_data()?;
        drop(file);
        if self.exists(name)? {
            self.exchange(&temporary, name)?;
        } else {
            self.rename(&temporary, name)?;
        }
        self.sync_dir(parent_of(name))
    }

    /// The whole content of a file.
    ///
    /// # Errors
    /// `Io`; `MemoryLimit` if it does not fit into memory.
    fn read_all(&self, name: &str) -> Result<Vec<u8>> {
        let file = self.open(name, OpenOptions::read_only())?;
        let full = StorageError::MemoryLimit {
            what: "content of a file",
        };
        let length = usize::try_from(file.len()?).map_err(|_| full.clone())?;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(length).map_err(|_| full)?;
        bytes.resize(length, 0);
        file.read_at(&mut bytes, 0)?;
        Ok(bytes)
    }
}

/// An open file. All methods take `&self`; calls on disjoint ranges may run at the same time,
/// calls on overlapping ranges are the caller's to order.
pub trait File: Send + Sync + Debug {
    /// The name it was opened by.
    fn name(&self) -> &Arc<str>;

    /// Fills `out` from `offset`.
    ///
    /// # Errors
    /// `Io`, with kind `UnexpectedEof` where the file ends before; `out` is then unspecified.
    ///
    /// # Panics
    /// If the file was opened [`OpenOptions::direct`] and something is not aligned.
    fn read_at(&self, out: &mut [u8], offset: u64) -> Result<()>;

    /// Fills several runs, in any order, at once where that is possible.
    ///
    /// # Errors
    /// As [`File::read_at`]; all runs are unspecified then.
    fn read_batch(&self, runs: &mut [(u64, &mut [u8])]) -> Result<()> {
        for (offset, out) in runs {
            self.read_at(out, *offset)?;
        }
        Ok(())
    }

    /// Writes all of `bytes` at `offset`; the file grows where needed. Durable after
    /// [`File::sync_data`].
    ///
    /// # Errors
    /// `OutOfSpace`, `Io`, `Poisoned`; a part may have been written.
    ///
    /// # Panics
    /// As [`File::read_at`].
    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<()>;

    /// Writes several runs, in any order; entries that continue each other may become one call.
    ///
    /// # Errors
    /// As [`File::write_at`]; any part may have been written.
    fn write_batch(&self, runs: &[(u64, &[u8])]) -> Result<()> {
        for &(offset, bytes) in runs {
            self.write_at(bytes, offset)?;
        }
        Ok(())
    }

    /// Makes everything durable that was written before the call: contents and length.
    ///
    /// # Errors
    /// `Io`; from then on the whole directory is poisoned. The failed sync is never repeated: the
    /// kernel may have dropped the dirty pages and would report success.
    fn sync_data(&self) -> Result<()>;

    /// Bytes in the file.
    fn len(&self) -> Result<u64>;

    /// True if the file has no bytes.
    fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Cuts the file off, or extends it by zeroes that take no space.
    fn set_len(&self, length: u64) -> Result<()>;

    /// Sees to it that writes to the range do not fail for lack of space, where the file system
    /// can promise that; the file is extended by zeroes up to the end of the range. Existing
    /// bytes stay.
    fn allocate(&self, offset: u64, length: u64) -> Result<()>;

    /// True if calls really bypass the page cache.
    fn is_direct(&self) -> bool {
        false
    }
}

/// The subdirectory of a name, `""` for the root.
pub fn parent_of(name: &str) -> &str {
    name.rsplit_once('/').map_or("", |(parent, _)| parent)
}

/// Refuses names that could leave the directory (I1).
///
/// # Errors
/// `Io` with kind `InvalidInput`.
pub fn check_name(name: &str) -> Result<()> {
    let fits = !name.is_empty()
        && !name.contains('\0')
        && name
            .split('/')
            .all(|part| !part.is_empty() && part != "." && part != "..");
    if fits {
        Ok(())
    } else {
        Err(exact::error("name", name, io::ErrorKind::InvalidInput))
    }
}

/// As [`check_name`], with `""` for the root allowed.
pub(crate) fn check_subdir(name: &str) -> Result<()> {
    if name.is_empty() {
        Ok(())
    } else {
        check_name(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_leave_the_directory_are_refused() {
        for name in [
            "",
            "/etc/passwd",
            "../x",
            "a/../../x",
            "a//b",
            "a/",
            ".",
            "a\0b",
        ] {
            assert!(check_name(name).is_err(), "{name:?}");
        }
        for name in ["data", "log/000001.seg", "a..b", "..a/b"] {
            assert!(check_name(name).is_ok(), "{name:?}");
        }
    }

    #[test]
    fn parent_of_a_name_is_what_stands_before_the_last_slash() {
        assert_eq!(parent_of("control"), "");
        assert_eq!(parent_of("log/1"), "log");
        assert_eq!(parent_of("a/b/c"), "a/b");
    }
}
