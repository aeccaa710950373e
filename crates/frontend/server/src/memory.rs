//! How much memory this process may use, for the size of the page pool that nobody has set.

use crate::files;
use std::path::Path;

/// Memory for pages where nothing else is known, in MiB.
const POOL_MIB_UNKNOWN: u64 = 1024;
/// Longest file of the system that is read.
const FILE_BYTES_MAX: u64 = 1 << 16;
/// The least that is chosen, in MiB.
const POOL_MIB_MIN: u64 = 64;

/// Memory for pages where nobody says how much, in MiB: a quarter of what this process may use. Pages go past the system's cache, so what is left
/// is for queries, sessions and others.
pub(crate) fn default_pool_mib() -> u64 {
    match memory_bytes(Path::new("/")) {
        Some(bytes) => ((bytes / 4) >> 20).max(POOL_MIB_MIN),
        None => POOL_MIB_UNKNOWN,
    }
}

/// The machine's memory, or the least limit of the control groups that this process is in; `None` if neither can be found out. `root`: where the
/// system's own files are.
fn memory_bytes(root: &Path) -> Option<u64> {
    let machine = text_of(&root.join("proc/meminfo")).and_then(|text| {
        let line = text.lines().find_map(|it| it.strip_prefix("MemTotal:"))?;
        let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some(kib << 10)
    });
    let groups = text_of(&root.join("proc/self/cgroup")).unwrap_or_default();
    // Version 2: `0::/path`. Version 1: `9:memory:/path`, or several names with commas. The files of the groups above count as well; a container
    // sees its own group as the first, whatever the path says.
    let limits = groups.lines().flat_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (names, path) = (parts.next()?, parts.next()?);
        let (mount, file) = if names.is_empty() {
            ("sys/fs/cgroup", "memory.max")
        } else if names.split(',').any(|name| name == "memory") {
            ("sys/fs/cgroup/memory", "memory.limit_in_bytes")
        } else {
            return None;
        };
        let path = Path::new(path.trim_start_matches('/'));
        let files = path.ancestors().filter_map(|group| {
            let text = text_of(&root.join(mount).join(group).join(file))?;
            // `max` is no limit.
            text.trim().parse::<u64>().ok()
        });
        files.min()
    });
    limits.chain(machine).min()
}

fn text_of(path: &Path) -> Option<String> {
    files::read_text(path, FILE_BYTES_MAX).ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn with(files: &[(&str, &str)]) -> Option<u64> {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        memory_bytes(root.path())
    }

    const MACHINE: (&str, &str) = (
        "proc/meminfo",
        "MemTotal:       16000 kB\nMemFree:         9000 kB\n",
    );

    #[test]
    fn memory_is_the_machines_or_the_least_limit_of_a_group() {
        assert_eq!(with(&[]), None);
        assert_eq!(with(&[MACHINE]), Some(16_000 << 10));
        let version_2 = ("proc/self/cgroup", "0::/outer/inner\n");
        let unlimited = ("sys/fs/cgroup/outer/inner/memory.max", "max\n");
        assert_eq!(with(&[MACHINE, version_2, unlimited]), Some(16_000 << 10));
        let outer = ("sys/fs/cgroup/outer/memory.max", "4096000\n");
        assert_eq!(
            with(&[MACHINE, version_2, unlimited, outer]),
            Some(4_096_000)
        );
        // In a container the path is one that cannot be seen.
        let container = ("sys/fs/cgroup/memory.max", "8192000\n");
        assert_eq!(with(&[MACHINE, version_2, container]), Some(8_192_000));
        let version_1 = ("proc/self/cgroup", "4:cpu,memory:/a\n3:pids:/a\n");
        let group = ("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "5000000\n");
        let pids = ("sys/fs/cgroup/a/memory.max", "1\n");
        assert_eq!(with(&[MACHINE, version_1, group, pids]), Some(5_000_000));
        // What version 1 calls no limit.
        let none = (
            "sys/fs/cgroup/memory/a/memory.limit_in_bytes",
            "9223372036854771712\n",
        );
        assert_eq!(with(&[MACHINE, version_1, none]), Some(16_000 << 10));
    }

    #[test]
    fn default_pool_is_a_part_of_this_machines_memory() {
        let pool = default_pool_mib();
        assert!(pool >= POOL_MIB_MIN, "{pool}");
        if let Some(bytes) = memory_bytes(Path::new("/")) {
            assert!(pool <= POOL_MIB_MIN.max(bytes >> 21), "{pool} MiB");
        }
    }
}
