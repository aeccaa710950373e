//! Whose a directory of data is. A run takes one that is empty, or one that a run on the same engine made; nothing else is opened,
//! written or removed.
//!
//! Layout: a file in the directory, [`MARKER`], holds the engine's name. It is written when the engine has opened its files, so that a
//! directory with files and without it is somebody's. Vellum's databases tell what they are themselves: one that has no marker was made
//! outside of the bench, may be measured, and gets none.
//!
//! Concurrency: whoever has a directory holds a lock of the kernel on it, which ends with the process; Vellum locks its file `LOCK` itself. A
//! series of runs holds one on a file beside the directory that its runs make and that it removes.

use crate::Failure;
use crate::compare::failed;
use crate::engines::EngineName;
use crate::output::write_file;
use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Names the engine of a directory.
const MARKER: &str = "vellum-bench.engine";
/// Files that every database of Vellum has, or one that it was interrupted in making; it refuses others' directories itself, too.
const VELLUMS: [&str; 3] = ["control", "control.tmp", LOCK];
/// That which an open one has locked.
const LOCK: &str = "LOCK";

/// A directory that is a run's for as long as this is there.
#[derive(Debug)]
pub(crate) struct Claim {
    directory: PathBuf,
    engine: EngineName,
    /// It was empty.
    is_fresh: bool,
    /// None where the engine takes it.
    _lock: Option<File>,
}

impl Claim {
    /// Takes a directory for a run on `engine`; makes it where it is not.
    pub(crate) fn take(directory: &Path, engine: EngineName) -> Result<Self, Failure> {
        fs::create_dir_all(directory).map_err(failed("create", directory))?;
        let lock = match engine {
            EngineName::Vellum => None,
            _ => Some(lock(directory)?),
        };
        let shown = directory.display();
        let is_fresh = !has_entries(directory);
        let marker = directory.join(MARKER);
        let refused = match fs::read_to_string(&marker) {
            Ok(name) if name.trim() == engine.name() => None,
            Ok(name) => Some(format!(
                "{shown} holds a database of {}, not of {}",
                name.trim(),
                engine.name()
            )),
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(failed("read", &marker)(error));
            }
            Err(_) if is_fresh => None,
            Err(_) if engine == EngineName::Vellum && is_vellums(directory) => None,
            Err(_) => Some(format!(
                "{shown} holds files that no run on {} has made",
                engine.name()
            )),
        };
        match refused {
            Some(what) => Err(Failure::Usage(format!("{what}: give another --data"))),
            None => Ok(Self {
                directory: directory.to_owned(),
                engine,
                is_fresh,
                _lock: lock,
            }),
        }
    }

    /// The engine has opened its files there.
    pub(crate) fn opened(&self) -> Result<(), Failure> {
        match self.is_fresh {
            true => write_file(
                &self.directory.join(MARKER),
                &format!("{}\n", self.engine.name()),
            ),
            false => Ok(()),
        }
    }
}

/// Whether a directory is for Vellum to judge.
fn is_vellums(directory: &Path) -> bool {
    VELLUMS.iter().any(|name| directory.join(name).is_file())
}

/// Locks a directory or a file.
fn lock(path: &Path) -> Result<File, Failure> {
    let file = File::open(path).map_err(failed("open", path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Failure::Usage(format!(
            "another run of vellum-bench has {}",
            path.display()
        ))),
        Err(TryLockError::Error(error)) => Err(failed("lock", path)(error)),
    }
}

/// Whether there is anything in a directory; not where there is none.
pub(crate) fn has_entries(path: &Path) -> bool {
    fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some())
}

/// The directory that a series of runs makes, each anew.
#[derive(Debug)]
pub(crate) struct Series {
    data: PathBuf,
    beside: PathBuf,
    _lock: File,
}

impl Series {
    /// Takes the directory, which must not hold anything; nor is it made.
    pub(crate) fn begin(data: &Path) -> Result<Self, Failure> {
        if let Some(parent) = data.parent() {
            fs::create_dir_all(parent).map_err(failed("create", parent))?;
        }
        let name = data.file_name().ok_or_else(|| {
            Failure::Usage(format!("{} is no name of a directory", data.display()))
        })?;
        let mut beside = OsString::from(name);
        beside.push(".lock");
        let beside = data.with_file_name(beside);
        let lock = loop {
            let made = File::options()
                .append(true)
                .create(true)
                .open(&beside)
                .and_then(|file| file.metadata());
            let made = made.map_err(failed("create", &beside))?;
            let held = lock(&beside)?;
            // Another series may have ended, and removed it, before it was locked.
            if is_same(&held, &made, &beside).map_err(failed("look at", &beside))? {
                break held;
            }
        };
        let series = Self {
            data: data.to_owned(),
            beside,
            _lock: lock,
        };
        series.check_empty()?;
        Ok(series)
    }

    /// Before a run: nobody has put anything there.
    pub(crate) fn check_empty(&self) -> Result<(), Failure> {
        if has_entries(&self.data) {
            return Err(Failure::Usage(format!(
                "{} is not empty, and each run wants to begin there",
                self.data.display()
            )));
        }
        Ok(())
    }

    /// Behind a run that has had the directory: removes what it has left, unless somebody else is there now.
    pub(crate) fn clear(&self) -> Result<(), Failure> {
        if !self.data.exists() {
            return Ok(());
        }
        let _lock = lock(&self.data)?;
        // A database of Vellum that is open has this one.
        let own = self.data.join(LOCK);
        let _own = own.is_file().then(|| lock(&own)).transpose()?;
        fs::remove_dir_all(&self.data).map_err(failed("remove", &self.data))
    }
}

/// Whether a file that is open is still the one of this name.
fn is_same(held: &File, made: &fs::Metadata, path: &Path) -> io::Result<bool> {
    let number = |found: &fs::Metadata| (found.dev(), found.ino());
    match fs::metadata(path) {
        Ok(found) => {
            let held = number(&held.metadata()?);
            Ok(held == number(&found) && held == number(made))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

impl Drop for Series {
    fn drop(&mut self) {
        // Held until it is gone.
        let _ = fs::remove_file(&self.beside);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(taken: Result<Claim, Failure>) -> String {
        let failure = taken.expect_err("it is not ours");
        assert_eq!(failure.exit_code(), 2, "{failure}");
        failure.to_string()
    }

    #[test]
    fn a_directory_is_its_engines_from_its_first_opening_on() {
        let folder = tempfile::tempdir().expect("a directory");
        let data = folder.path().join("below/data");
        let claim = Claim::take(&data, EngineName::Lmdb).expect("a fresh one");
        let beside = refused(Claim::take(&data, EngineName::Lmdb));
        assert!(beside.contains("another run"), "{beside}");
        // It could not be opened: still nobody's.
        drop(claim);
        let claim = Claim::take(&data, EngineName::Redb).expect("it is empty");
        fs::write(data.join("redb"), "rows").expect("a file");
        claim.opened().expect("a marker");
        drop(claim);
        let claim = Claim::take(&data, EngineName::Redb).expect("its own");
        claim.opened().expect("nothing to do");
        drop(claim);
        let other = refused(Claim::take(&data, EngineName::Vellum));
        assert!(other.contains("of redb, not of vellum"), "{other}");
    }

    #[test]
    fn files_that_no_run_made_are_left_alone() {
        for (name, engine, taken) in [
            ("letter.txt", EngineName::Vellum, false),
            ("data.mdb", EngineName::Lmdb, false),
            ("control", EngineName::Redb, false),
            ("control", EngineName::Vellum, true),
            ("LOCK", EngineName::Vellum, true),
        ] {
            let folder = tempfile::tempdir().expect("a directory");
            let data = folder.path();
            fs::write(data.join(name), "somebody's").expect("a file");
            match Claim::take(data, engine) {
                Ok(claim) => {
                    assert!(taken, "{name}");
                    claim.opened().expect("nothing to do");
                }
                refusal => {
                    assert!(!taken, "{name}");
                    let told = refused(refusal);
                    assert!(told.contains("no run on"), "{told}");
                }
            }
            assert_eq!(fs::read_dir(data).expect("a directory").count(), 1);
        }
    }

    #[test]
    fn a_series_removes_what_its_runs_made_and_nobody_elses() {
        let folder = tempfile::tempdir().expect("a directory");
        let data = folder.path().join("data");
        let series = Series::begin(&data).expect("nothing is there");
        let second = Series::begin(&data).expect_err("one at a time");
        assert_eq!(second.exit_code(), 2);
        fs::create_dir(&data).expect("a directory");
        fs::write(data.join("rows"), "of a run").expect("a file");
        assert!(series.check_empty().is_err());
        let other = Claim::take(&data, EngineName::Vellum);
        assert!(other.is_err());
        let held = lock(&data).expect("nobody has it");
        assert!(series.clear().is_err(), "somebody runs there");
        assert!(data.join("rows").exists());
        drop(held);
        // Vellum locks a file of its own.
        fs::write(data.join(LOCK), "").expect("a file");
        let open = lock(&data.join(LOCK)).expect("nobody has it");
        assert!(series.clear().is_err(), "a database is open there");
        assert!(data.join("rows").exists());
        drop(open);
        series.clear().expect("it is ours");
        assert!(!data.exists());
        series.clear().expect("nothing to do");
        drop(series);
        assert_eq!(fs::read_dir(folder.path()).expect("a directory").count(), 0);
        fs::create_dir(&data).expect("a directory");
        fs::write(data.join("letter"), "somebody's").expect("a file");
        Series::begin(&data).expect_err("it is not empty");
        assert!(data.join("letter").exists());
    }
}
