//! The machine that a report speaks of, and what this process takes of it.

use serde::{Deserialize, Serialize};
use std::fs::read_to_string;
use std::path::{Path, PathBuf};

/// Cores, their kind, memory, kernel, and what the databases are on.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Machine {
    /// Cores that this process may use.
    pub cores: usize,
    /// What the first one calls itself.
    #[serde(default)]
    pub processor: String,
    /// Main memory.
    pub memory_mib: u64,
    /// Operating system and its release.
    pub kernel: String,
    /// Where the databases are.
    #[serde(default)]
    pub data: Storage,
}

/// What a directory is on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Storage {
    /// The file system's kind.
    pub file_system: String,
    /// What it is mounted from.
    pub device: String,
    /// The kernel's name of the device's model, where it has one.
    #[serde(default)]
    pub model: String,
    /// It is memory: nothing that is synced there survives a loss of power.
    pub in_memory: bool,
}

impl Storage {
    /// Of a directory, or of where it would be made. What cannot be found out is empty.
    fn of(directory: &Path) -> Self {
        let absolute = std::path::absolute(directory).unwrap_or_default();
        let there = absolute.ancestors().find_map(|it| it.canonicalize().ok());
        let Some(there) = there else {
            return Self::default();
        };
        let mounts = read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let (mut found, number) = mounted(&mounts, &there).unwrap_or_default();
        let block = Path::new("/sys/dev/block").join(number);
        // A partition has its device's one folder up.
        let models = ["device/model", "../device/model"].map(|file| block.join(file));
        let model = models
            .into_iter()
            .find_map(|file| read_to_string(file).ok());
        found.model = model.unwrap_or_default().trim().to_owned();
        found
    }

    /// For people.
    fn words(&self) -> String {
        let Self {
            file_system,
            device,
            model,
            in_memory,
        } = self;
        if file_system.is_empty() {
            return "data on an unknown file system".to_owned();
        }
        if *in_memory {
            return format!("data on {file_system}, IN MEMORY: a sync costs nothing there");
        }
        let model = match model.as_str() {
            "" => String::new(),
            model => format!(", {model}"),
        };
        format!("data on {file_system} ({device}{model})")
    }
}

/// What of the lines of `/proc/self/mountinfo` a path is on, and the number of its device.
fn mounted(lines: &str, path: &Path) -> Option<(Storage, String)> {
    let mount = |line: &str| {
        // Fields before the dash are fixed but for the last ones: number and parent, device, root, mount point.
        let (place, what) = line.split_once(" - ")?;
        let (mut place, mut what) = (place.split(' ').skip(2), what.split(' '));
        let number = place.next()?.to_owned();
        let point = PathBuf::from(unescaped(place.nth(1)?));
        let (file_system, device) = (what.next()?.to_owned(), unescaped(what.next()?));
        let in_memory = matches!(file_system.as_str(), "tmpfs" | "ramfs");
        let storage = Storage {
            file_system,
            device,
            in_memory,
            model: String::new(),
        };
        path.starts_with(&point)
            .then(|| (point.components().count(), storage, number))
    };
    // Of two at one point the later one hides the other, as `max_by_key` has it.
    let deepest = lines.lines().filter_map(mount).max_by_key(|it| it.0)?;
    Some((deepest.1, deepest.2))
}

/// The kernel writes blanks and backslashes as octal numbers.
fn unescaped(text: &str) -> String {
    let numbers = [
        ("\\040", " "),
        ("\\011", "\t"),
        ("\\012", "\n"),
        ("\\134", "\\"),
    ];
    numbers
        .into_iter()
        .fold(text.to_owned(), |text, (number, byte)| {
            text.replace(number, byte)
        })
}

impl Machine {
    /// For people.
    pub(crate) fn words(&self) -> String {
        let Self {
            cores,
            processor,
            memory_mib,
            kernel,
            data,
        } = self;
        let data = data.words();
        format!("{cores} cores ({processor}), {memory_mib} MiB, {kernel}, {data}")
    }

    /// This one, with databases in `data`. What cannot be found out is zero, empty or "unknown".
    pub fn here(data: &Path) -> Self {
        let release = read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let release = if release.is_empty() {
            "unknown"
        } else {
            release.trim()
        };
        let processors = read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = processors
            .lines()
            .find_map(|line| line.strip_prefix("model name")?.split_once(':'));
        Self {
            processor: model.map_or("unknown", |it| it.1.trim()).to_owned(),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            memory_mib: kib_of("/proc/meminfo", "MemTotal:") / 1024,
            kernel: format!("{} {release}", std::env::consts::OS),
            data: Storage::of(data),
        }
    }
}

/// Load averages of 1, 5 and 15 minutes; zeros where the system tells none.
pub fn load_average() -> [f64; 3] {
    let text = read_to_string("/proc/loadavg").unwrap_or_default();
    let mut numbers = text
        .split_whitespace()
        .map(|word| word.parse().unwrap_or(0.0));
    std::array::from_fn(|_| numbers.next().unwrap_or(0.0))
}

/// Resident memory of this process, in MiB.
pub fn resident_mib() -> u64 {
    kib_of("/proc/self/status", "VmRSS:") / 1024
}

/// Processor time of this process so far, in seconds: in user code, in the kernel.
pub fn processor_seconds() -> (f64, f64) {
    let text = read_to_string("/proc/self/stat").unwrap_or_default();
    // The second field is the program's name in parentheses and may hold blanks.
    let Some((_, rest)) = text.rsplit_once(')') else {
        return (0.0, 0.0);
    };
    let mut fields = rest.split_whitespace().skip(11);
    let mut next = || {
        fields
            .next()
            .and_then(|word| word.parse::<f64>().ok())
            .unwrap_or(0.0)
    };
    // The unit is 1/100 s on every Linux that still has the constant.
    (next() / 100.0, next() / 100.0)
}

fn kib_of(file: &str, label: &str) -> u64 {
    let text = read_to_string(file).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(label));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn this_machine_has_cores_memory_and_a_kernel() {
        let machine = Machine::here(&std::env::temp_dir().join("not/there"));
        assert!(machine.cores > 0 && machine.memory_mib > 0);
        assert!(!machine.processor.is_empty());
        assert!(machine.kernel.starts_with("linux ") && !machine.kernel.ends_with("unknown"));
        assert!(!machine.data.file_system.is_empty(), "{machine:?}");
        assert!(resident_mib() > 0);
        let (user, system) = processor_seconds();
        assert!(user >= 0.0 && system >= 0.0);
    }

    #[test]
    fn a_directory_is_on_the_deepest_mount_and_on_the_last_one_there() {
        let mounts = "\
            21 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw\n\
            22 21 0:20 / /tmp rw - tmpfs tmpfs rw\n\
            23 21 254:17 / /mnt/two\\040words rw - xfs /dev/nvme0n1 rw\n\
            24 21 0:30 / /mnt/hidden rw - ext4 /dev/vdb rw\n\
            25 21 0:31 / /mnt/hidden rw master:2 - overlay none rw\n";
        let on = |path: &str| {
            let (storage, number) = mounted(mounts, Path::new(path)).expect("it is mounted");
            (storage.words(), number)
        };
        let told = |words: &str, number: &str| (words.to_owned(), number.to_owned());
        assert_eq!(on("/srv/a"), told("data on ext4 (/dev/vda1)", "254:1"));
        let memory = "data on tmpfs, IN MEMORY: a sync costs nothing there";
        assert_eq!(on("/tmp/data"), told(memory, "0:20"));
        assert_eq!(
            on("/tmpother"),
            told("data on ext4 (/dev/vda1)", "254:1"),
            "a name is no prefix"
        );
        let words = told("data on xfs (/dev/nvme0n1)", "254:17");
        assert_eq!(on("/mnt/two words/x"), words);
        assert_eq!(on("/mnt/hidden"), told("data on overlay (none)", "0:31"));
        assert!(mounted("nothing", Path::new("/")).is_none());
        let mut modelled = mounted(mounts, Path::new("/")).expect("it is mounted").0;
        modelled.model = "a disk".to_owned();
        assert_eq!(modelled.words(), "data on ext4 (/dev/vda1, a disk)");
        let unknown = Storage::default().words();
        assert_eq!(unknown, "data on an unknown file system");
    }
}
