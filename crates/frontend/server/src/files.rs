//! The files that belong to the server and not to the database: configuration, host rules, certificates, passwords; and the room that there is for files.
//!
//! Crash: [`write_private`] writes beside the file, syncs, renames, syncs the directory: the file is there whole or not at
//! all.
//!
//! Not here: the database's files (`vellum_io`).

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// The text of a file of at most `bytes_max`; none if there is no such file.
///
/// # Errors
/// If it cannot be read, is longer, or is no UTF-8; the error names the file.
pub fn read_text(path: &Path, bytes_max: u64) -> io::Result<Option<String>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(named(path, &error)),
    };
    let mut text = String::new();
    let read = file.take(bytes_max + 1).read_to_string(&mut text);
    read.map_err(|error| named(path, &error))?;
    if text.len() as u64 > bytes_max {
        let error = io::Error::new(io::ErrorKind::FileTooLarge, "the file is too long");
        return Err(named(path, &error));
    }
    Ok(Some(text))
}

/// True if there is a file of this name, as far as that can be seen.
pub fn is_there(path: &Path) -> bool {
    path.exists()
}

/// Bytes that are free on the disk of a directory.
///
/// # Errors
/// If the system does not tell; the error names the directory.
pub fn free_bytes(directory: &Path) -> io::Result<u64> {
    let disk = rustix::fs::statvfs(directory);
    let disk = disk.map_err(|error| named(directory, &error.into()))?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// Bytes of the files in a directory, as far as the system tells.
pub fn bytes_in(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let lengths = entries.filter_map(|entry| entry.metadata().ok());
    lengths.map(|metadata| metadata.len()).sum()
}

/// Removes all that can be removed in a directory; it need not be there. The directory stays: it may be another disk, or a link to one.
///
/// # Errors
/// The first of what could not be removed, with its name (`lost+found` of a disk of its own, say); the rest is gone. If the directory cannot be read.
pub fn empty_directory(path: &Path) -> io::Result<()> {
    empty(path, |entry| match fs::symlink_metadata(entry)?.is_dir() {
        true => fs::remove_dir_all(entry),
        false => fs::remove_file(entry),
    })
}

fn empty(path: &Path, remove: impl Fn(&Path) -> io::Result<()>) -> io::Result<()> {
    let entries = match fs::read_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(|error| named(path, &error))?,
    };
    let mut first = Ok(());
    for entry in entries {
        let entry = entry.map_err(|error| named(path, &error))?.path();
        first = first.and(remove(&entry).map_err(|error| named(&entry, &error)));
    }
    first
}

/// Writes a file that only its owner may read, whole or not at all.
///
/// # Errors
/// If it cannot be written; the error names the file.
pub fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write(path, bytes).map_err(|error| named(path, &error))
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let beside = path.with_added_extension("tmp");
    // What a start that was cut off left has whatever rights it has.
    remove(&beside)?;
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&beside)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&beside, path)?;
    match path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
    {
        Some(parent) => sync_directory(parent),
        None => sync_directory(Path::new(".")),
    }
}

/// Makes a directory that only its owner may enter, and those above it, durably. One that is there stays as it is: it may not be
/// ours.
///
/// # Errors
/// If it cannot be made; the error names it.
pub fn make_directory(path: &Path) -> io::Result<()> {
    let mut make = |level: &Path| DirBuilder::new().mode(0o700).create(level);
    make_levels(path, &mut make, &mut sync_directory).map_err(|error| named(path, &error))
}

/// Makes those levels of a path that are not there, from above, and syncs the directory that each was made in: whoever has a file there that is durable finds it
/// after a power cut.
fn make_levels(
    path: &Path,
    make: &mut dyn FnMut(&Path) -> io::Result<()>,
    sync: &mut dyn FnMut(&Path) -> io::Result<()>,
) -> io::Result<()> {
    let full = std::path::absolute(path)?;
    let missing: Vec<&Path> = full
        .ancestors()
        .take_while(|level| !level.exists())
        .collect();
    for level in missing.into_iter().rev() {
        match make(level) {
            // Somebody else has, meanwhile, or a link leads nowhere.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && level.is_dir() => {}
            made => made?,
        }
        if let Some(parent) = level.parent() {
            sync(parent)?;
        }
    }
    match full.is_dir() {
        true => Ok(()),
        false => Err(io::ErrorKind::AlreadyExists.into()),
    }
}

fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Lets only the owner enter a directory that is known to be ours.
///
/// # Errors
/// If its rights cannot be changed; the error names it.
pub fn make_directory_private(path: &Path) -> io::Result<()> {
    if is_open_to_others(path)? {
        fs::set_permissions(path, fs::Permissions::from_mode(0o700))
            .map_err(|error| named(path, &error))?;
    }
    Ok(())
}

/// Whether others than the owner have any right to a file or directory.
///
/// # Errors
/// If its rights cannot be asked for.
pub fn is_open_to_others(path: &Path) -> io::Result<bool> {
    let metadata = fs::metadata(path).map_err(|error| named(path, &error))?;
    Ok(metadata.permissions().mode() & 0o077 != 0)
}

/// Removes a file; one that is not there is no error.
///
/// # Errors
/// If it cannot be removed.
pub fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Lets only the owner use a Unix socket.
///
/// # Errors
/// If its rights cannot be changed.
pub fn make_private(path: &Path) -> io::Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))
        .map_err(|error| named(path, &error))
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_private_file_replaces_what_was_there_and_what_was_left_over() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("secret");
        fs::write(&path, "old").unwrap();
        fs::write(directory.path().join("secret.tmp"), "left over").unwrap();
        assert!(is_open_to_others(&path).unwrap());
        write_private(&path, b"new").unwrap();
        assert_eq!(read_text(&path, 3).unwrap().as_deref(), Some("new"));
        assert!(!is_open_to_others(&path).unwrap());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn files_that_are_missing_too_long_or_no_text_are_told_apart() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x");
        assert!(read_text(&path, 10).unwrap().is_none());
        fs::write(&path, "12345").unwrap();
        let error = read_text(&path, 4).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        fs::write(&path, b"\xff").unwrap();
        assert!(read_text(&path, 4).is_err());
    }

    #[test]
    fn each_level_that_is_made_is_made_durable_where_it_was_made() {
        let directory = tempfile::tempdir().unwrap();
        let calls = std::cell::RefCell::new(Vec::new());
        let at = |path: &Path| path.strip_prefix(directory.path()).unwrap().to_owned();
        let path = directory.path().join("a/b/c");
        make_levels(
            &path,
            &mut |level| {
                calls.borrow_mut().push(("make", at(level)));
                fs::create_dir(level)
            },
            &mut |level| {
                calls.borrow_mut().push(("sync", at(level)));
                Ok(())
            },
        )
        .unwrap();
        let calls = calls.into_inner();
        let calls: Vec<_> = calls
            .iter()
            .map(|(call, path)| (*call, path.to_str().unwrap()))
            .collect();
        let expected = [
            ("make", "a"),
            ("sync", ""),
            ("make", "a/b"),
            ("sync", "a"),
            ("make", "a/b/c"),
            ("sync", "a/b"),
        ];
        assert_eq!(calls, expected);
        make_levels(&path, &mut |_| panic!(), &mut |_| panic!()).unwrap();
        fs::write(directory.path().join("file"), "").unwrap();
        assert!(make_directory(&directory.path().join("file")).is_err());
        assert!(make_directory(&directory.path().join("file/below")).is_err());
    }

    #[test]
    fn a_directory_that_is_emptied_stays_and_so_does_what_it_is_a_link_to() {
        let directory = tempfile::tempdir().unwrap();
        let (real, link) = (directory.path().join("real"), directory.path().join("link"));
        fs::create_dir_all(real.join("deep/er")).unwrap();
        fs::write(real.join("deep/file"), "x").unwrap();
        fs::write(real.join("file"), "xyz").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        empty_directory(&link).unwrap();
        assert!(link.is_symlink() && real.is_dir());
        assert_eq!(fs::read_dir(&real).unwrap().count(), 0);
        empty_directory(&directory.path().join("none")).unwrap();
    }

    #[test]
    fn regress_what_cannot_be_removed_keeps_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["a", "lost+found", "z"] {
            fs::write(directory.path().join(name), "x").unwrap();
        }
        let emptied = empty(directory.path(), |entry| {
            match entry.ends_with("lost+found") {
                true => Err(io::ErrorKind::PermissionDenied.into()),
                false => fs::remove_file(entry),
            }
        });
        assert!(emptied.unwrap_err().to_string().contains("lost+found"));
        let left: Vec<_> = fs::read_dir(directory.path()).unwrap().flatten().collect();
        assert_eq!(left.len(), 1);
    }

    #[test]
    fn a_directory_is_made_private_only_when_it_is_known_to_be_ours() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a/b");
        make_directory(&path).unwrap();
        assert!(!is_open_to_others(&path).unwrap());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        make_directory(&path).unwrap();
        assert!(is_open_to_others(&path).unwrap(), "it may be somebody's");
        make_directory_private(&path).unwrap();
        assert!(!is_open_to_others(&path).unwrap());
    }
}
