//! The summary: as JSON, and as a table for people.

use crate::Failure;
use crate::charts;
use crate::cli::{Durability, Hold, Settings, Workload};
use crate::hold::{AgedScan, HeldSummary};
use crate::machine::{Machine, load_average};
use crate::measure::{Class, Measured, Sample};
use crate::plot::Chart;
use crate::ratio;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::Write;
use vellum_workload::engine::{Description, TERMS};

/// Whether the data is what it must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Consistency {
    /// Checked, nothing found.
    Ok,
    /// Checked; `violations` tells what was found.
    Failed,
    /// Not checked, as was asked.
    Unchecked,
}

/// The engine that was measured.
#[derive(Debug, Serialize, Deserialize)]
struct EngineSection {
    name: String,
    version: String,
    /// What it tells of itself, in its order.
    told: Vec<(String, String)>,
}

/// The old snapshots of a run.
#[derive(Debug, Serialize, Deserialize)]
struct HoldSection {
    holder: &'static str,
    holders: u32,
    at_s: u64,
    release_s: Option<u64>,
    warm_up_s: u64,
    /// The ages in seconds at which the first was to be scanned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    scan_at: Vec<u64>,
    /// How often a scan that takes minutes has seen every row.
    slow_scans: u64,
}

impl HoldSection {
    fn new(hold: &Hold) -> Option<Self> {
        let at_s = hold.hold_snapshot_at?;
        Some(Self {
            holder: hold.holder.name(),
            holders: hold.holders,
            at_s,
            release_s: hold.release_snapshot_at,
            warm_up_s: ratio::warm_up_s(at_s),
            scan_at: hold.scan_at.clone(),
            slow_scans: 0,
        })
    }
}

/// Transactions of a kind that have to be timed before their p99 is told: of fewer it is the slowest one, or nearly so.
pub(crate) const P99_TIMED_MIN: u64 = 100;
/// The same of p99.9.
const P999_TIMED_MIN: u64 = 1000;

/// What processor seconds and resident memory of a run are those of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Accounted {
    /// The engine, and the bench around it.
    Engine,
    /// A server's client: what the server takes is not in them.
    Client,
}

/// Everything that a run found out. The names of the fields are the keys of the JSON document.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Summary {
    workload: &'static str,
    engine: EngineSection,
    pub(crate) settings: BTreeMap<String, String>,
    commit: &'static str,
    machine: Machine,
    load_before: [f64; 3],
    load_after: [f64; 3],
    durability: Durability,
    seed: u64,
    threads: u32,
    seconds: f64,
    /// A signal ended the run early; nothing is checked then.
    pub(crate) interrupted: bool,
    pub(crate) transactions: u64,
    pub(crate) tx_per_s: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) new_order_per_s: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) rows_per_s: Option<f64>,
    /// Rows that long readers beside the transactions have read, each to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) long_rows_per_s: Option<f64>,
    /// Updates beside scans.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) updates_per_s: Option<f64>,
    aborts: u64,
    rolled_back: u64,
    #[serde(borrow)]
    counts: BTreeMap<&'static str, u64>,
    /// Where transactions may find nothing to do and end without a conflict all the same: the share of each kind that found it, and how many
    /// of all did a second.
    #[serde(borrow, default, skip_serializing_if = "BTreeMap::is_empty")]
    success_share: BTreeMap<&'static str, f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) succeeded_per_s: Option<f64>,
    /// How many of each kind were timed. A p99 is told of [`P99_TIMED_MIN`] and more of them, a p99.9 of ten times as many.
    #[serde(borrow, default)]
    timed: BTreeMap<&'static str, u64>,
    #[serde(borrow)]
    p50_us: BTreeMap<&'static str, f64>,
    #[serde(borrow)]
    p99_us: BTreeMap<&'static str, f64>,
    #[serde(borrow, default)]
    p999_us: BTreeMap<&'static str, f64>,
    #[serde(borrow)]
    max_us: BTreeMap<&'static str, f64>,
    samples: Vec<Sample>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hold: Option<HoldSection>,
    /// Mean rate between warm-up and the snapshot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tx_per_s_before_hold: Option<f64>,
    /// Mean rate of the last sixth of the run over the mean rate between warm-up and the snapshot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) held_ratio: Option<f64>,
    /// The slowest second after the release over the median second without a snapshot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) release_min_ratio: Option<f64>,
    /// Since the snapshot; without one, since the first second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) disk_growth_bytes: Option<i64>,
    /// The same of the pages of tables and indexes: versions and graveyards are elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    durable_pages_growth: Option<i64>,
    /// In the held snapshot and in fresh ones, by age.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) scans: Vec<AgedScan>,
    pub(crate) consistency: Consistency,
    pub(crate) violations: Vec<String>,
    log_bytes: u64,
    pages_read: u64,
    pages_written: u64,
    /// Whose the processor seconds and the resident memory are, that of the samples too.
    #[serde(default = "engine")]
    processor_and_memory_of: Accounted,
    processor_user_s: f64,
    processor_system_s: f64,
    resident_mib: u64,
    #[serde(borrow)]
    engine_counters: BTreeMap<&'static str, u64>,
    /// Opening, the recovery included where the process before was killed.
    pub(crate) open_s: f64,
    /// Loading before the run, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) load_s: Option<f64>,
    /// Overwrites with fdatasync that the device makes a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) device_sync_per_s: Option<f64>,
    /// Transactions per such overwrite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sync_ratio: Option<f64>,
    /// Transactions that one flush of the log made durable, on average: where commits wait for it, and the engine counts flushes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tx_per_flush: Option<f64>,
    /// Random page reads that the device makes a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) device_reads_per_s: Option<f64>,
    /// Behind a load: bytes of the file's pages in use for each row, its key and value among them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) file_bytes_per_row: Option<f64>,
}

impl Summary {
    /// The summary of a run that has not begun.
    pub(crate) fn new(workload: &Workload, settings: &Settings, engine: &Description) -> Self {
        let common = workload.common();
        let mut all: BTreeMap<_, _> = engine.settings.iter().cloned().collect();
        all.insert("data".to_owned(), settings.data.display().to_string());
        all.insert("pool_mib".to_owned(), common.pool_mib.to_string());
        all.insert("variant".to_owned(), settings.variant.name().to_owned());
        all.insert("idle_writer".to_owned(), common.idle_writer.to_string());
        Self {
            workload: workload.name(),
            engine: EngineSection {
                name: engine.name.clone(),
                version: engine.version.clone(),
                told: engine.settings.clone(),
            },
            settings: all,
            commit: env!("VELLUM_COMMIT"),
            machine: Machine::here(&settings.data),
            load_before: load_average(),
            load_after: [0.0; 3],
            durability: settings.durability,
            seed: common.seed,
            threads: common.threads,
            seconds: 0.0,
            interrupted: false,
            transactions: 0,
            tx_per_s: 0.0,
            new_order_per_s: None,
            rows_per_s: None,
            long_rows_per_s: None,
            updates_per_s: None,
            aborts: 0,
            rolled_back: 0,
            counts: BTreeMap::new(),
            success_share: BTreeMap::new(),
            succeeded_per_s: None,
            timed: BTreeMap::new(),
            p50_us: BTreeMap::new(),
            p99_us: BTreeMap::new(),
            p999_us: BTreeMap::new(),
            max_us: BTreeMap::new(),
            samples: Vec::new(),
            hold: workload.hold().and_then(HoldSection::new),
            tx_per_s_before_hold: None,
            held_ratio: None,
            release_min_ratio: None,
            disk_growth_bytes: None,
            durable_pages_growth: None,
            scans: Vec::new(),
            consistency: Consistency::Unchecked,
            violations: Vec::new(),
            log_bytes: 0,
            pages_read: 0,
            pages_written: 0,
            processor_and_memory_of: Accounted::Engine,
            processor_user_s: 0.0,
            processor_system_s: 0.0,
            resident_mib: 0,
            engine_counters: BTreeMap::new(),
            open_s: 0.0,
            load_s: None,
            device_sync_per_s: None,
            sync_ratio: None,
            tx_per_flush: None,
            device_reads_per_s: None,
            file_bytes_per_row: None,
        }
    }

    /// A document of [`json`], whose names are borrowed: it stays in memory, some ten kilobytes a run.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub(crate) fn read(document: String) -> serde_json::Result<Self> {
        serde_json::from_str(document.leak())
    }

    /// Kinds of transactions of which some were timed.
    pub(crate) fn timed(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.p50_us.keys().copied()
    }

    /// How long a share of a kind of transactions takes at most, by the key that the document has it under.
    pub(crate) fn latency_us(&self, share: &str, kind: &str) -> Option<f64> {
        let of = match share {
            "p50_us" => &self.p50_us,
            "p99_us" => &self.p99_us,
            "p999_us" => &self.p999_us,
            _ => return None,
        };
        of.get(kind).copied()
    }

    /// What the engine says of itself, in its order.
    pub(crate) fn told(&self) -> impl Iterator<Item = (&str, &str)> {
        let told = self.engine.told.iter();
        told.map(|(name, told)| (name.as_str(), told.as_str()))
    }

    /// Where it ran.
    pub(crate) fn machine(&self) -> &Machine {
        &self.machine
    }

    /// Its version.
    pub(crate) fn engine_version(&self) -> &str {
        &self.engine.version
    }

    /// Adds what a run measured.
    pub(crate) fn measured(&mut self, measured: Measured) {
        let per_second = |count: u64| rounded(count as f64 / measured.seconds.max(1e-9));
        // In microseconds: a run of a few operations is shorter than a tenth of a second.
        self.seconds = (measured.seconds * 1e6).round() / 1e6;
        self.interrupted = measured.interrupted;
        self.transactions = measured.transactions;
        self.tx_per_s = per_second(measured.transactions);
        self.rows_per_s = (measured.rows > 0).then(|| per_second(measured.rows));
        self.aborts = measured.aborts;
        self.rolled_back = measured.classes.iter().map(|it| it.rolled_back).sum();
        for class in &measured.classes {
            let latency = &class.latency;
            let micros = |nanos: u64| rounded(nanos as f64 / 1000.0);
            self.counts.insert(class.name, class.count);
            // A class that never ran has no latency, and zero would look like a very good one.
            if latency.is_empty() {
                continue;
            }
            self.timed.insert(class.name, latency.len());
            self.max_us.insert(class.name, micros(latency.max()));
            let shares = [
                (&mut self.p50_us, 0.5, 1),
                (&mut self.p99_us, 0.99, P99_TIMED_MIN),
                (&mut self.p999_us, 0.999, P999_TIMED_MIN),
            ];
            for (of, share, timed_min) in shares {
                if latency.len() >= timed_min {
                    of.insert(class.name, micros(latency.value_at_quantile(share)));
                }
            }
        }
        self.samples = measured.samples;
        if self.durability == Durability::Sync {
            self.tx_per_flush = ratio::per_count(&self.samples, "log_rounds").map(rounded);
        }
        self.held(measured.held);
        self.log_bytes = measured.log_bytes;
        self.pages_read = measured.pages_read;
        self.pages_written = measured.pages_written;
        self.processor_user_s = rounded(measured.processor.0);
        self.processor_system_s = rounded(measured.processor.1);
        self.engine_counters = measured.more.into_iter().collect();
    }

    /// Adds how many transactions found what they wanted, for a workload whose transactions may fail.
    pub(crate) fn succeeded(&mut self, measured: &Measured) {
        let share = |class: &Class| class.succeeded() as f64 / class.count as f64;
        let ran = measured.classes.iter().filter(|class| class.count > 0);
        self.success_share = ran
            .map(|class| (class.name, rounded(share(class))))
            .collect();
        let all: u64 = measured.classes.iter().map(Class::succeeded).sum();
        self.succeeded_per_s = Some(rounded(all as f64 / measured.seconds.max(1e-9)));
    }

    /// Adds what old snapshots cost and saw.
    fn held(&mut self, held: HeldSummary) {
        let samples = &self.samples;
        let since = self.hold.as_ref().map_or(0, |hold| hold.at_s);
        self.disk_growth_bytes = ratio::growth(samples, since, |sample| Some(sample.disk_bytes));
        self.durable_pages_growth = ratio::growth(samples, since, |sample| {
            sample.more.get("pages_durable").copied()
        });
        if let Some(hold) = &mut self.hold {
            self.tx_per_s_before_hold = ratio::before(samples, hold.at_s).map(rounded);
            self.held_ratio = ratio::held(samples, hold.at_s, hold.release_s).map(rounded);
            let release = hold.release_s;
            self.release_min_ratio = release
                .and_then(|release| ratio::after_release(samples, hold.at_s, release))
                .map(rounded);
            hold.slow_scans = held.slow_scans;
        }
        self.scans = held.scans;
        self.add_violations(held.violations);
    }

    /// The scan at the oldest age that was asked for; none if the run ended before it.
    pub(crate) fn oldest_scan(&self) -> Option<&AgedScan> {
        let asked = *self.hold.as_ref()?.scan_at.last()?;
        self.scans.last().filter(|scan| scan.age_s >= asked as f64)
    }

    /// Adds what `rows` that were loaded into a new database take of its file; nothing where the engine counts no pages.
    pub(crate) fn loaded(&mut self, rows: u64) {
        let page_size = self.settings.get("page_size");
        let page_size = page_size.and_then(|size| size.parse::<u64>().ok());
        if let (Some(size), Some(pages)) = (page_size, self.engine_counters.get("pages_durable")) {
            self.file_bytes_per_row = Some(rounded((pages * size) as f64 / rows.max(1) as f64));
        }
    }

    /// Notes that the engine is a server: what this process takes is its client's.
    pub(crate) fn of_a_client(&mut self) {
        self.processor_and_memory_of = Accounted::Client;
    }

    /// Whether it takes processor and memory that the summary does not have.
    pub(crate) fn is_of_a_client(&self) -> bool {
        self.processor_and_memory_of == Accounted::Client
    }

    /// Notes that the workload has one thread, whatever was asked.
    pub(crate) fn one_thread(&mut self) {
        self.threads = 1;
    }

    /// How many transactions of a class a second.
    pub(crate) fn class_per_second(&self, class: &str) -> f64 {
        let count = self.counts.get(class).copied().unwrap_or(0);
        rounded(count as f64 / self.seconds.max(1e-9))
    }

    /// Adds what a check found.
    pub(crate) fn checked(&mut self, violations: Vec<String>) {
        if self.consistency == Consistency::Unchecked {
            self.consistency = Consistency::Ok;
        }
        self.add_violations(violations);
    }

    /// Adds what was found while the run went on.
    fn add_violations(&mut self, violations: Vec<String>) {
        if !violations.is_empty() {
            self.consistency = Consistency::Failed;
        }
        self.violations.extend(violations);
    }

    /// Adds what is known at the very end.
    pub(crate) fn finish(&mut self) {
        self.load_after = load_average();
        self.resident_mib = crate::machine::resident_mib();
        if let Some(device) = self.device_sync_per_s {
            self.sync_ratio = Some(rounded(self.tx_per_s / device));
        }
    }

    /// A run of which only this is known.
    #[cfg(test)]
    pub(crate) fn with_samples(self, samples: Vec<Sample>) -> Self {
        Self { samples, ..self }
    }

    /// What happened each second.
    pub(crate) fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// Pages read from disk a transaction.
    pub(crate) fn pages_read_per_transaction(&self) -> f64 {
        self.pages_read as f64 / self.transactions.max(1) as f64
    }

    /// Of all attempts, those that lost a conflict.
    pub(crate) fn abort_share(&self) -> f64 {
        self.aborts as f64 / (self.aborts + self.transactions).max(1) as f64
    }

    /// How many processors were in use, the kernel's part included.
    pub(crate) fn processors(&self) -> f64 {
        (self.processor_user_s + self.processor_system_s) / self.seconds.max(1e-9)
    }

    /// The run as pictures.
    pub(crate) fn charts(&self) -> Vec<Chart> {
        let hold = self.hold.as_ref();
        let marks = charts::marks(
            hold.map(|hold| hold.at_s),
            hold.and_then(|hold| hold.release_s),
        );
        let rates = charts::by_second(&self.samples, |sample| Some(sample.tx as f64));
        let line = vec![(self.workload.to_owned(), rates)];
        let mut all = vec![
            charts::rates(self.workload, line, marks.clone()),
            charts::space(&self.samples, marks),
        ];
        if !self.scans.is_empty() {
            all.push(charts::scans(&self.scans));
        }
        all
    }

    /// False if a check found something.
    pub(crate) fn is_consistent(&self) -> bool {
        self.consistency != Consistency::Failed
    }
}

/// Who does not say whose they are speaks of an engine.
fn engine() -> Accounted {
    Accounted::Engine
}

/// To thousandths: more digits than a measurement has, fewer than a double has.
pub(crate) fn rounded(number: f64) -> f64 {
    (number * 1000.0).round() / 1000.0
}

/// The document that tells everything about a run.
pub(crate) fn json(summary: &Summary) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(summary).map_err(|source| Failure::File {
        action: "write",
        path: "the summary".into(),
        source: source.into(),
    })?;
    Ok(text + "\n")
}

/// Writes a sample as one line.
pub(crate) fn print_sample(sample: &Sample, lines: &mut dyn Write) -> Result<(), Failure> {
    let mut write = || -> std::io::Result<()> {
        let mut text = serde_json::to_string(sample)?;
        text.push('\n');
        lines.write_all(text.as_bytes())?;
        lines.flush()
    };
    write().map_err(|source| Failure::File {
        action: "write",
        path: "standard output".into(),
        source,
    })
}

/// Writes the table for people.
pub(crate) fn print_table(summary: &Summary, out: &mut dyn Write) -> std::io::Result<()> {
    let Summary {
        machine, engine, ..
    } = summary;
    writeln!(
        out,
        "\n{} on {} {} ({} threads, {}, seed {}, commit {:.12})",
        summary.workload,
        engine.name,
        engine.version,
        summary.threads,
        summary.durability.name(),
        summary.seed,
        summary.commit
    )?;
    writeln!(
        out,
        "{}, load {:.2} before and {:.2} after\n",
        machine.words(),
        summary.load_before[0],
        summary.load_after[0]
    )?;
    if summary.transactions > 0 {
        let longest = summary.counts.keys().map(|name| name.len()).max();
        let width = longest.unwrap_or(0).max(14);
        let success = match summary.success_share.is_empty() {
            true => "",
            false => "    succeed",
        };
        writeln!(
            out,
            "  {:<width$}{:>12} {:>11} {:>11} {:>11} {:>11} {:>11}{success}",
            "", "count", "per s", "p50 µs", "p99 µs", "p99.9 µs", "max µs"
        )?;
        for (name, count) in &summary.counts {
            let of = |map: &BTreeMap<&'static str, f64>| match map.get(name) {
                Some(micros) => format!("{micros:.1}"),
                None => "-".to_owned(),
            };
            write!(
                out,
                "  {name:<width$}{count:>12} {:>11.0} {:>11} {:>11} {:>11} {:>11}",
                summary.class_per_second(name),
                of(&summary.p50_us),
                of(&summary.p99_us),
                of(&summary.p999_us),
                of(&summary.max_us)
            )?;
            match summary.success_share.get(name) {
                Some(share) => writeln!(out, " {share:>10.3}")?,
                None => writeln!(out)?,
            }
        }
        writeln!(
            out,
            "  {:<width$}{:>12} {:>11.0}   {} aborts, {} rolled back\n",
            "all", summary.transactions, summary.tx_per_s, summary.aborts, summary.rolled_back
        )?;
    }
    let mut line = |name: &str, value: Option<String>| match value {
        Some(value) => writeln!(out, "  {name:<22}{value}"),
        None => Ok(()),
    };
    line(
        "succeeded per second",
        summary.succeeded_per_s.map(|rate| format!("{rate:.0}")),
    )?;
    line(
        "rows per second",
        summary.rows_per_s.map(|rate| format!("{rate:.0}")),
    )?;
    line(
        "rows of long readers",
        summary
            .long_rows_per_s
            .map(|rate| format!("{rate:.0} a second")),
    )?;
    line(
        "updates per second",
        summary.updates_per_s.map(|rate| format!("{rate:.0}")),
    )?;
    line("seconds of opening", Some(format!("{:.3}", summary.open_s)))?;
    line(
        "seconds of loading",
        summary.load_s.map(|seconds| format!("{seconds:.1}")),
    )?;
    let whose = match summary.processor_and_memory_of {
        Accounted::Engine => "",
        Accounted::Client => ", the client's only",
    };
    if summary.transactions > 0 {
        let per = |count: u64| count as f64 / summary.transactions as f64;
        let (log, read, written) = (summary.log_bytes, summary.pages_read, summary.pages_written);
        line(
            "log",
            Some(format!(
                "{} MiB, {:.0} bytes a transaction",
                log >> 20,
                per(log)
            )),
        )?;
        line(
            "pages read",
            Some(format!("{read}, {:.3} a transaction", per(read))),
        )?;
        line(
            "pages written",
            Some(format!("{written}, {:.3} a transaction", per(written))),
        )?;
        let micros = |seconds: f64| seconds * 1e6 / summary.transactions as f64;
        let (user, system) = (summary.processor_user_s, summary.processor_system_s);
        let text = format!(
            "{:.1} user, {:.1} system{whose}",
            micros(user),
            micros(system)
        );
        line("processor µs each", Some(text))?;
    }
    line(
        "resident memory",
        Some(format!("{} MiB{whose}", summary.resident_mib)),
    )?;
    if let (Some(device), Some(ratio)) = (summary.device_sync_per_s, summary.sync_ratio) {
        line(
            "device syncs per s",
            Some(format!("{device:.0}; {ratio:.2} transactions each")),
        )?;
    }
    line(
        "device reads per s",
        summary.device_reads_per_s.map(|rate| format!("{rate:.0}")),
    )?;
    line(
        "held ratio",
        summary.held_ratio.map(|ratio| format!("{ratio:.3}")),
    )?;
    line(
        "after the release",
        summary.release_min_ratio.map(|ratio| {
            format!("{ratio:.3} of the median second without a snapshot in the slowest")
        }),
    )?;
    if summary.hold.is_some() {
        let bytes = summary.disk_growth_bytes.unwrap_or(0);
        let pages = summary.durable_pages_growth.unwrap_or(0);
        let text = format!("{:.1} MiB on disk", bytes as f64 / f64::from(1 << 20));
        line("growth", Some(format!("{text}, {pages} pages of tables")))?;
    }
    for scan in &summary.scans {
        let AgedScan {
            age_s,
            rows,
            held_us,
            fresh_us,
            ..
        } = scan;
        let text = format!("{rows} rows in {held_us:.1} µs, {fresh_us:.1} µs in a fresh one");
        line(&format!("scan after {age_s:.1} s"), Some(text))?;
    }
    for (name, told) in summary.told().filter(|it| TERMS.contains(&it.0)) {
        line(&name.replace('_', " "), Some(told.to_owned()))?;
    }
    if summary.interrupted {
        line(
            "interrupted",
            Some(format!("after {:.1} s", summary.seconds)),
        )?;
    }
    let consistency = match summary.consistency {
        Consistency::Ok => "ok",
        Consistency::Failed => "FAILED",
        Consistency::Unchecked => "unchecked",
    };
    line("consistency", Some(consistency.to_owned()))?;
    for violation in &summary.violations {
        writeln!(out, "    {violation}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser;
    use vellum_workload::engine::Terms;

    fn summary(engine: &Description) -> Summary {
        let flags = "vellum-bench tpcc --hold-snapshot-at 1 --scan-at 2,5";
        let cli = Cli::try_parse_from(flags.split_whitespace()).expect("flags");
        let Command::Run(workload) = cli.command else {
            panic!("a workload")
        };
        Summary::new(&workload, &workload.settings(), engine)
    }

    #[test]
    fn a_scan_before_the_oldest_age_is_not_the_oldest() {
        let mut summary = summary(&Description::default());
        assert!(summary.oldest_scan().is_none());
        for age_s in [0.0, 2.003, 5.0] {
            assert!(summary.oldest_scan().is_none(), "before {age_s}");
            summary.scans.push(AgedScan {
                age_s,
                rows: 1,
                held_us: 1.0,
                held_first_us: 1.0,
                fresh_us: 1.0,
                fresh_first_us: 1.0,
            });
        }
        assert_eq!(summary.oldest_scan().map(|scan| scan.age_s), Some(5.0));
    }

    #[test]
    fn all_that_an_engine_tells_is_told_in_its_order_and_its_terms_for_people() {
        let terms = Terms {
            isolation: "serial".to_owned(),
            durability: "none".to_owned(),
            lost_by_kill: "the last second".to_owned(),
            lost_by_power_loss: "the last minute".to_owned(),
            memory: "a byte".to_owned(),
        };
        let more = vec![("way", "a quoted one".to_owned())];
        let summary = summary(&Description::new("one", "7", terms, more));
        let told: Vec<&str> = summary.told().map(|it| it.1).collect();
        assert_eq!(
            told,
            [
                "serial",
                "none",
                "the last second",
                "the last minute",
                "a byte",
                "a quoted one"
            ]
        );
        let mut table = Vec::new();
        print_table(&summary, &mut table).expect("memory");
        let table = String::from_utf8(table).expect("text");
        assert!(
            table.contains("lost by power loss    the last minute"),
            "{table}"
        );
        let document: serde_json::Value =
            serde_json::from_str(&json(&summary).expect("a document")).expect("JSON");
        assert_eq!(document["settings"]["lost_by_kill"], "the last second");
    }

    #[test]
    fn latencies_are_those_of_a_kind_and_of_none_that_was_not_timed() {
        let mut summary = summary(&Description::default());
        summary.p50_us.insert("new_order", 1.0);
        summary.p99_us.insert("new_order", 2.0);
        summary.p999_us.insert("new_order", 3.0);
        assert_eq!(summary.timed().collect::<Vec<_>>(), ["new_order"]);
        let of = |share| summary.latency_us(share, "new_order");
        assert_eq!(
            ["p50_us", "p99_us", "p999_us", "p1_us"].map(of),
            [Some(1.0), Some(2.0), Some(3.0), None]
        );
        assert_eq!(summary.latency_us("p50_us", "payment"), None);
    }
}
