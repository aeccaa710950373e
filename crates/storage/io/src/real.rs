//! The file system.
//!
//! Direct I/O is tried, not believed: some file systems refuse the flag at open, some accept it and
//! refuse the transfer. The first direct open in a subdirectory makes a trial file there, writes
//! and reads one block, and remembers the answer; where it fails, files are opened
//! buffered and everything else stays the same.
//!
//! Concurrency: positional calls only, no file cursor; one mutex around the remembered trials.
//!
//! Crash: names are durable after `sync_dir`, contents after `sync_data`; see docs/media.md.

mod file;
mod lock;
mod ring;
#[cfg(test)]
mod tests;

use crate::directory::{check_name, check_subdir};
use crate::{
    ALIGNMENT, AlignedBuf, Directory, Entry, EntryKind, File, LockGuard, OpenOptions, Poison,
    exact, parent_of,
};
use rustix::fs::{CWD, OFlags, RenameFlags, renameat_with};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use vellum_base::{Result, StorageError};
use vellum_sync::Mutex;

/// Made, unlinked and then used by the trial of direct I/O; a crash in between leaves it behind.
const TRIAL_NAME: &str = ".direct-trial";

/// A directory of the file system.
#[derive(Debug)]
pub struct RealDirectory {
    root: PathBuf,
    poison: Arc<Poison>,
    direct_trials: Mutex<BTreeMap<String, bool>>,
}

impl RealDirectory {
    /// An existing directory.
    ///
    /// # Errors
    /// `Io` if there is none, or it is no directory.
    pub fn open(root: impl AsRef<Path>) -> Result<Self> {
        let name: Arc<str> = Arc::from(root.as_ref().to_string_lossy());
        let opening = |source| StorageError::io("open directory", &name, source);
        // Absolute, so that a later change of the working directory changes nothing here.
        let root = std::path::absolute(root.as_ref()).map_err(opening)?;
        if !fs::metadata(&root).map_err(opening)?.is_dir() {
            return Err(opening(io::ErrorKind::NotADirectory.into()));
        }
        Ok(Self {
            root,
            poison: Arc::default(),
            direct_trials: Mutex::default(),
        })
    }

    /// As [`RealDirectory::open`]; the directory is made, durably, if it does not exist. Its parent
    /// must exist.
    ///
    /// # Errors
    /// `Io`, `OutOfSpace`.
    pub fn create(root: impl AsRef<Path>) -> Result<Self> {
        let root = root.as_ref();
        let name: Arc<str> = Arc::from(root.to_string_lossy());
        let creating = |source| StorageError::io("create directory", &name, source);
        let made = match private_dir(root) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
            Err(error) => return Err(creating(error)),
        };
        let absolute = std::path::absolute(root).map_err(creating)?;
        if let Some(parent) = absolute.parent() {
            // Whoever made one that is there may have been cut off before this.
            match fs::File::open(parent).and_then(|parent| parent.sync_all()) {
                // Where others keep it is not ours to look into; and some file systems have no sync of a directory (autofs).
                Err(error)
                    if !made
                        && matches!(
                            error.kind(),
                            io::ErrorKind::PermissionDenied
                                | io::ErrorKind::InvalidInput
                                | io::ErrorKind::Unsupported
                        ) => {}
                synced => synced.map_err(creating)?,
            }
        }
        Self::open(root)
    }

    /// Where the directory is.
    pub fn path(&self) -> &Path {
        &self.root
    }

    fn path_of(&self, name: &str) -> PathBuf {
        if name.is_empty() {
            self.root.clone()
        } else {
            self.root.join(name)
        }
    }

    /// Whether files in `subdir` can be written with direct I/O.
    fn direct_works(&self, subdir: &str) -> Result<bool> {
        let mut trials = self.direct_trials.lock();
        if let Some(&works) = trials.get(subdir) {
            return Ok(works);
        }
        let works = try_direct(&self.path_of(subdir).join(TRIAL_NAME))?;
        trials.insert(subdir.to_owned(), works);
        Ok(works)
    }

    fn open_direct(&self, name: &str, options: OpenOptions) -> Result<Option<fs::File>> {
        if !options.read_only && !self.direct_works(parent_of(name))? {
            return Ok(None);
        }
        let path = self.path_of(name);
        match flags(options)
            .custom_flags((OFlags::DIRECT | OFlags::NOFOLLOW).bits().cast_signed())
            .open(path)
        {
            // A reader may not leave trial files behind: it tries with what is there.
            Ok(file) if options.read_only && !reads_direct(&file)? => Ok(None),
            Ok(file) => Ok(Some(file)),
            Err(error) if refuses_direct(&error) => Ok(None),
            Err(error) => Err(StorageError::io("open", &Arc::from(name), error)),
        }
    }
}

/// Makes a directory for its owner alone: whoever can read the files of a database has all that is in it, past all rights and passwords.
fn private_dir(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().mode(0o700).create(path)
}

/// Files are made for their owner alone, too.
fn flags(options: OpenOptions) -> fs::OpenOptions {
    let mut flags = fs::OpenOptions::new();
    flags
        .read(true)
        .write(!options.read_only)
        .create(options.create && !options.read_only)
        .create_new(options.create_new && !options.read_only)
        .mode(0o600)
        .custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
    flags
}

fn kind_of(found: fs::FileType) -> EntryKind {
    if found.is_file() {
        EntryKind::File
    } else if found.is_dir() {
        EntryKind::Directory
    } else if found.is_symlink() {
        EntryKind::Link
    } else {
        EntryKind::Other
    }
}

/// Refuses what is no regular file.
fn check_regular(name: &str, found: fs::FileType) -> Result<()> {
    match kind_of(found) {
        EntryKind::File => Ok(()),
        kind => Err(kind.unfit(name)),
    }
}

/// True for the errors by which a file system says that it has no direct I/O.
fn refuses_direct(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported
    )
}

fn reads_direct(file: &fs::File) -> Result<bool> {
    let mut block = AlignedBuf::zeroed(ALIGNMENT)?;
    // Any other error will meet the caller at the real read, with its name on it.
    Ok(!file
        .read_at(&mut block, 0)
        .is_err_and(|error| refuses_direct(&error)))
}

/// Writes a block and reads it back. Errors that do not speak of direct I/O (a full disk, no
/// permission) say nothing against it and will meet the caller where they matter.
fn try_direct(path: &Path) -> Result<bool> {
    let mut open = fs::OpenOptions::new();
    open.read(true).write(true).create(true).truncate(true);
    let file = match open
        .custom_flags((OFlags::DIRECT | OFlags::NOFOLLOW).bits().cast_signed())
        .open(path)
    {
        Ok(file) => file,
        Err(error) => {
            // Some file systems make the file before they refuse the flag. A link or a pipe of that name is somebody else's.
            if fs::symlink_metadata(path).is_ok_and(|there| there.is_file()) {
                let _ = fs::remove_file(path);
            }
            return Ok(!refuses_direct(&error));
        }
    };
    let _ = fs::remove_file(path);
    let mut block = AlignedBuf::zeroed(ALIGNMENT)?;
    block.fill(0x5a);
    if let Err(error) = exact::write(&block, 0, |bytes, offset| file.write_at(bytes, offset)) {
        return Ok(!refuses_direct(&error));
    }
    block.fill(0);
    let read = exact::read(&mut block, 0, |out, offset| file.read_at(out, offset));
    Ok(read.is_ok() && block.iter().all(|&byte| byte == 0x5a))
}

impl Directory for RealDirectory {
    fn open(&self, name: &str, options: OpenOptions) -> Result<Arc<dyn File>> {
        check_name(name)?;
        if options.creates() {
            self.poison.check()?;
        }
        // Before it is opened: who opens a pipe may wait for ever for its other end.
        if let Ok(found) = fs::symlink_metadata(self.path_of(name)) {
            check_regular(name, found.file_type())?;
        }
        let direct = if options.direct {
            self.open_direct(name, options)?
        } else {
            None
        };
        let is_direct = direct.is_some();
        let file = match direct {
            Some(file) => file,
            None => flags(options)
                .open(self.path_of(name))
                .map_err(|source| StorageError::io("open", &Arc::from(name), source))?,
        };
        Ok(Arc::new(file::RealFile {
            name: Arc::from(name),
            file,
            options,
            is_direct,
            poison: self.poison.clone(),
            rings: ring::Rings::default(),
        }))
    }

    fn exists(&self, name: &str) -> Result<bool> {
        check_name(name)?;
        fs::exists(self.path_of(name))
            .map_err(|source| StorageError::io("look up", &Arc::from(name), source))
    }

    fn entries(&self, subdir: &str) -> Result<Vec<Entry>> {
        check_subdir(subdir)?;
        let listing = |source| StorageError::io("list", &Arc::from(subdir), source);
        let mut entries = Vec::new();
        for entry in fs::read_dir(self.path_of(subdir)).map_err(listing)? {
            let entry = entry.map_err(listing)?;
            let kind = kind_of(entry.file_type().map_err(listing)?);
            let name = entry.file_name().to_string_lossy().into_owned();
            if kind != EntryKind::File || name != TRIAL_NAME {
                entries.push(Entry { name, kind });
            }
        }
        entries.sort_unstable();
        Ok(entries)
    }

    fn create_dir(&self, name: &str) -> Result<()> {
        check_name(name)?;
        self.poison.check()?;
        let path = self.path_of(name);
        match private_dir(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
            result => result
                .map_err(|source| StorageError::io("create directory", &Arc::from(name), source)),
        }
    }

    fn remove(&self, name: &str) -> Result<()> {
        check_name(name)?;
        self.poison.check()?;
        fs::remove_file(self.path_of(name))
            .map_err(|source| StorageError::io("remove", &Arc::from(name), source))
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        check_name(from)?;
        check_name(to)?;
        self.poison.check()?;
        fs::rename(self.path_of(from), self.path_of(to))
            .map_err(|source| StorageError::io("rename", &Arc::from(from), source))
    }

    fn exchange(&self, from: &str, to: &str) -> Result<()> {
        check_name(from)?;
        check_name(to)?;
        self.poison.check()?;
        let (one, other) = (self.path_of(from), self.path_of(to));
        match renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE) {
            Ok(()) => Ok(()),
            // Neither the kernel nor every file system has it.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => self.rename(from, to),
            Err(error) => Err(StorageError::io(
                "exchange names",
                &Arc::from(from),
                error.into(),
            )),
        }
    }

    fn sync_dir(&self, subdir: &str) -> Result<()> {
        check_subdir(subdir)?;
        self.poison.check()?;
        let name = Arc::from(subdir);
        // A directory that cannot be opened was not synced, but nothing was lost by that.
        let directory = fs::File::open(self.path_of(subdir))
            .map_err(|source| StorageError::io("open directory", &name, source))?;
        self.poison.after_sync(&name, directory.sync_all())
    }

    fn check_writable(&self, subdir: &str) -> Result<()> {
        check_subdir(subdir)?;
        lock::check_writable(&self.path_of(subdir))
    }

    fn holds(&self, subdir: &str, path: &Path) -> bool {
        // What cannot be looked up cannot be made there, either.
        let Ok(own) = fs::metadata(self.path_of(subdir)) else {
            return false;
        };
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.into());
        let parent = || fs::canonicalize(absolute.parent()?).ok();
        let real = fs::canonicalize(&absolute).ok().or_else(parent);
        let is_own = |directory: &Path| {
            fs::metadata(directory).is_ok_and(|it| (it.dev(), it.ino()) == (own.dev(), own.ino()))
        };
        real.is_some_and(|real| real.ancestors().any(is_own))
    }

    fn try_lock(&self) -> Result<LockGuard> {
        lock::try_lock(&self.root)
    }

    fn try_lock_shared(&self) -> Result<LockGuard> {
        lock::try_lock_shared(&self.root)
    }

    fn poisoned(&self) -> bool {
        self.poison.is_set()
    }
}
