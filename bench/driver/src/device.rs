//! What the device under the database can do by itself, measured in the same run: a ratio to it
//! means something on a machine that others use too.

use crate::Failure;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use vellum_base::random::Random;

/// Alignment of direct I/O, and the unit that is overwritten.
const BLOCK: usize = 4096;
/// Blocks of the file that is overwritten: 16 MiB.
const BLOCKS: u64 = 4096;
/// What `stat` counts in.
const BLOCK_OF_STAT: u64 = 512;
/// One part of so many of a file that is read may be holes.
const HOLES: u64 = 16;
/// Name of the file that is overwritten, inside the database's directory: the same device.
const PROBE: &str = "bench-probe.tmp";

/// Removes the probe file whatever happens.
struct Probe {
    path: PathBuf,
    file: File,
}

impl Drop for Probe {
    fn drop(&mut self) {
        // A file that stays is overwritten by the next run.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// How often a second one block of a preallocated file can be overwritten and made durable, tried
/// for `time` by one thread.
///
/// # Errors
/// [`Failure::File`] if the directory cannot be written.
pub fn syncs_per_second(directory: &Path, time: Duration) -> Result<f64, Failure> {
    let path = directory.join(PROBE);
    let failed = |action| {
        let path = path.clone();
        move |source| Failure::File {
            action,
            path,
            source,
        }
    };
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .open(&path)
        .map_err(failed("create"))?;
    let probe = Probe {
        path: path.clone(),
        file,
    };
    let block = [0x5a; BLOCK];
    for at in 0..BLOCKS {
        probe
            .file
            .write_all_at(&block, at * BLOCK as u64)
            .map_err(failed("write"))?;
    }
    probe.file.sync_all().map_err(failed("sync"))?;

    let start = Instant::now();
    let mut count = 0_u64;
    while start.elapsed() < time {
        let at = count % BLOCKS * BLOCK as u64;
        probe
            .file
            .write_all_at(&block, at)
            .map_err(failed("write"))?;
        probe.file.sync_data().map_err(failed("sync"))?;
        count += 1;
    }
    Ok(count as f64 / start.elapsed().as_secs_f64())
}

/// How many pages of `page_size` bytes a second `threads` threads read at random places of the
/// largest file in `directory`, past the page cache, tried for `time`; none if the file is smaller
/// than a page, if it has holes, which no device is asked for, or if the file system has no direct I/O.
///
/// # Errors
/// [`Failure::File`] if the file cannot be read.
pub fn reads_per_second(
    directory: &Path,
    page_size: usize,
    threads: u32,
    time: Duration,
) -> Result<Option<f64>, Failure> {
    let Some(Largest {
        path,
        length,
        occupied,
    }) = largest_file(directory)
    else {
        return Ok(None);
    };
    if occupied < length - length / HOLES {
        return Ok(None);
    }
    let pages = length / page_size as u64;
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_DIRECT)
        .open(&path);
    let (Ok(file), 1..) = (opened, pages) else {
        return Ok(None);
    };
    let stop = AtomicBool::new(false);
    let start = Instant::now();
    let counts: std::io::Result<Vec<u64>> = std::thread::scope(|scope| {
        let readers: Vec<_> = (0..threads)
            .map(|thread| {
                let (file, stop) = (&file, &stop);
                scope.spawn(move || {
                    let mut random = Random::new(u64::from(thread));
                    let mut buffer = vec![0; page_size + BLOCK];
                    let aligned = buffer.as_ptr().align_offset(BLOCK);
                    let page = &mut buffer[aligned..aligned + page_size];
                    let mut count = 0;
                    while !stop.load(Ordering::Relaxed) && start.elapsed() < time {
                        let at = random.below(pages) * page_size as u64;
                        if let Err(error) = file.read_exact_at(page, at) {
                            stop.store(true, Ordering::Relaxed);
                            return Err(error);
                        }
                        count += 1;
                    }
                    Ok(count)
                })
            })
            .collect();
        readers
            .into_iter()
            .map(|reader| reader.join().expect("readers do not panic"))
            .collect()
    });
    let elapsed = start.elapsed().as_secs_f64();
    let counts = counts.map_err(|source| Failure::File {
        action: "read",
        path,
        source,
    })?;
    Ok(Some(counts.iter().sum::<u64>() as f64 / elapsed))
}

/// A file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Largest {
    /// Where it is.
    pub path: PathBuf,
    /// Bytes from its begin to its end.
    pub length: u64,
    /// Bytes of it that are on the device: holes are not.
    pub occupied: u64,
}

/// The file of a directory that occupies most.
pub fn largest_file(directory: &Path) -> Option<Largest> {
    let entries = std::fs::read_dir(directory).ok()?;
    let files = entries.flatten().filter_map(|entry| {
        let metadata = entry.metadata().ok()?;
        metadata.is_file().then(|| Largest {
            path: entry.path(),
            length: metadata.len(),
            occupied: metadata.blocks() * BLOCK_OF_STAT,
        })
    });
    files.max_by_key(|file| file.occupied)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_measure_something_and_leave_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let time = Duration::from_millis(20);
        assert!(syncs_per_second(directory.path(), time).unwrap() > 0.0);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
        assert_eq!(
            reads_per_second(directory.path(), 4096, 1, time).unwrap(),
            None
        );
        std::fs::write(directory.path().join("small"), [1; 10]).unwrap();
        assert_eq!(
            reads_per_second(directory.path(), 4096, 1, time).unwrap(),
            None
        );
        std::fs::write(directory.path().join("large"), vec![1; 1 << 20]).unwrap();
        let large = largest_file(directory.path()).unwrap();
        assert_eq!(large.path.file_name().unwrap(), "large");
        assert_eq!(large.length, 1 << 20);
        // File systems in memory have no direct I/O.
        if let Some(rate) = reads_per_second(directory.path(), 4096, 2, time).unwrap() {
            assert!(rate > 0.0);
        }
    }

    #[test]
    fn a_file_of_holes_is_neither_large_nor_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("holes");
        let file = File::create(&path).unwrap();
        file.set_len(1 << 30).unwrap();
        file.write_all_at(&[1; BLOCK], 0).unwrap();
        let found = largest_file(directory.path()).unwrap();
        assert_eq!((&found.path, found.length), (&path, 1 << 30));
        assert!(found.occupied < 1 << 20, "{found:?}");
        let time = Duration::from_millis(1);
        let read = reads_per_second(directory.path(), BLOCK, 1, time).unwrap();
        assert_eq!(read, None);
        // A smaller one that is really there is larger.
        std::fs::write(directory.path().join("whole"), vec![1; 2 << 20]).unwrap();
        let found = largest_file(directory.path()).unwrap();
        assert_eq!(found.path.file_name().unwrap(), "whole");
    }

    #[test]
    fn missing_directory_is_an_error() {
        let missing = Path::new("/nonexistent/directory");
        let error = syncs_per_second(missing, Duration::from_millis(1)).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("cannot create /nonexistent/directory/"),
            "{error}"
        );
    }
}
