//! The machine that a report speaks of, and what this process takes of it.

use serde::{Deserialize, Serialize};
use std::fs::read_to_string;

/// Cores, their kind, memory, kernel.
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
}

impl Machine {
    /// For people.
    pub(crate) fn words(&self) -> String {
        let Self {
            cores,
            processor,
            memory_mib,
            kernel,
        } = self;
        format!("{cores} cores ({processor}), {memory_mib} MiB, {kernel}")
    }

    /// This one. What cannot be found out is zero or "unknown".
    pub fn here() -> Self {
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
        let machine = Machine::here();
        assert!(machine.cores > 0 && machine.memory_mib > 0);
        assert!(!machine.processor.is_empty());
        assert!(machine.kernel.starts_with("linux ") && !machine.kernel.ends_with("unknown"));
        assert!(resident_mib() > 0);
        let (user, system) = processor_seconds();
        assert!(user >= 0.0 && system >= 0.0);
    }
}
