//! How much of the disk a database takes.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Bytes of disk that the files under `directory` occupy, holes not counted. Files that go while it looks count as
/// nothing.
pub(crate) fn bytes(directory: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return 0;
    };
    entries
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(found) if found.is_dir() => bytes(&entry.path()),
            // Unix counts in units of 512 bytes, whatever the file system's are.
            Ok(found) => found.blocks() * 512,
            Err(_) => 0,
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_in_folders_count_and_holes_do_not() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(bytes(&directory.path().join("missing")), 0);
        std::fs::create_dir(directory.path().join("folder")).unwrap();
        std::fs::write(directory.path().join("folder/file"), vec![1; 100_000]).unwrap();
        let written = bytes(directory.path());
        assert!((100_000..200_000).contains(&written), "{written}");
        let hole = std::fs::File::create(directory.path().join("hole")).unwrap();
        hole.set_len(1 << 30).unwrap();
        assert!(bytes(directory.path()) < written + (1 << 20));
    }
}
