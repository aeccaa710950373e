//! Files that go out: written beside their place and renamed, so that whoever interrupts leaves the old one or the new one, whole.
//!
//! What is no plain file (a pipe, a terminal) is written as it is; a link stays, and what it leads to is replaced.

use crate::Failure;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// A file that something goes to behind the run. Prepared before the run, so that a path that cannot be written is told before the
/// work and not after it.
#[derive(Debug)]
pub(crate) struct OutputFile {
    path: PathBuf,
    file: File,
    /// Where it is written until it is whole; none where it is no plain file.
    beside: Option<PathBuf>,
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        if let Some(beside) = &self.beside {
            // Nothing came to it: a run that failed leaves nothing.
            let _ = fs::remove_file(beside);
        }
    }
}

impl OutputFile {
    /// Prepares it; what is there stays until [`Self::write`].
    pub(crate) fn create(path: &Path) -> Result<Self, Failure> {
        let failed = |source| Failure::File {
            action: "create",
            path: path.to_owned(),
            source,
        };
        let target = match fs::canonicalize(path) {
            Ok(target) => target,
            Err(error) if error.kind() == ErrorKind::NotFound => path.to_owned(),
            Err(error) => return Err(failed(error)),
        };
        match fs::metadata(&target) {
            Ok(found) if found.is_dir() => Err(failed(ErrorKind::IsADirectory.into())),
            Ok(found) if !found.is_file() => Ok(Self {
                file: File::options().write(true).open(&target).map_err(failed)?,
                path: target,
                beside: None,
            }),
            _ => {
                let (beside, file) = create_beside(&target).map_err(failed)?;
                Ok(Self {
                    path: target,
                    file,
                    beside: Some(beside),
                })
            }
        }
    }

    /// Puts `text` in the place of what is there.
    pub(crate) fn write(mut self, text: &str) -> Result<(), Failure> {
        let written = self.file.write_all(text.as_bytes());
        let renamed = written.and_then(|()| match &self.beside {
            Some(beside) => fs::rename(beside, &self.path),
            None => Ok(()),
        });
        renamed.map_err(|source| Failure::File {
            action: "write",
            path: self.path.clone(),
            source,
        })?;
        self.beside = None;
        Ok(())
    }
}

/// A file beside this one, of a name that nobody had.
fn create_beside(path: &Path) -> std::io::Result<(PathBuf, File)> {
    let mut number = 0_u32;
    loop {
        let mut name = OsString::from(path.file_name().ok_or(ErrorKind::InvalidInput)?);
        name.push(format!(".{}-{number}.tmp", std::process::id()));
        let beside = path.with_file_name(name);
        match File::create_new(&beside) {
            Ok(file) => return Ok((beside, file)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(error),
        }
    }
}

/// Before the work: what cannot become a file is told.
pub(crate) fn check_file(path: &Path) -> Result<(), Failure> {
    if path.is_dir() {
        return Err(Failure::File {
            action: "write",
            path: path.to_owned(),
            source: ErrorKind::IsADirectory.into(),
        });
    }
    Ok(())
}

/// Writes a whole file.
pub(crate) fn write_file(path: &Path, text: &str) -> Result<(), Failure> {
    OutputFile::create(path)?.write(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("a directory").flatten();
        let mut names: Vec<String> = entries
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn what_was_there_stays_until_the_new_one_is_whole_and_nothing_is_left_beside() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("out.json");
        drop(OutputFile::create(&path).expect("a file"));
        assert_eq!(names(folder.path()), [""; 0], "a run that failed");
        fs::write(&path, "the old one").expect("a file");
        let output = OutputFile::create(&path).expect("a file");
        let mut half = output.file.try_clone().expect("a file");
        half.write_all(b"half of").expect("room");
        assert_eq!(fs::read_to_string(&path).expect("text"), "the old one");
        drop(output);
        assert_eq!(fs::read_to_string(&path).expect("text"), "the old one");
        write_file(&path, "new").expect("room");
        assert_eq!(fs::read_to_string(&path).expect("text"), "new");
        assert_eq!(names(folder.path()), ["out.json"]);
    }

    #[test]
    fn links_stay_and_what_is_no_plain_file_is_written_as_it_is() {
        let folder = tempfile::tempdir().expect("a directory");
        let (path, link) = (folder.path().join("out"), folder.path().join("link"));
        fs::write(&path, "old").expect("a file");
        symlink(&path, &link).expect("a link");
        write_file(&link, "new").expect("room");
        assert_eq!(fs::read_to_string(&path).expect("text"), "new");
        assert!(fs::symlink_metadata(&link).expect("a link").is_symlink());
        let null = folder.path().join("null");
        symlink("/dev/null", &null).expect("a link");
        write_file(&null, "nothing").expect("room");
        assert!(!fs::metadata("/dev/null").expect("a device").is_file());
        for (wrong, word) in [(folder.path(), "directory"), (&path.join("x"), "irectory")] {
            let failure = OutputFile::create(wrong).expect_err("no file can be there");
            assert!(failure.to_string().contains(word), "{failure}");
        }
    }
}
