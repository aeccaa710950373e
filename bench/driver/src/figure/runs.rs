//! What each figure runs.

use crate::Failure;
use crate::cli::{Cli, Command, Figure, FigureName, Variant, Workload};
use clap::Parser;
use serde::Serialize;
use std::path::Path;

/// Which of a figure's pictures a run belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Part {
    All,
    Load,
    Lookup,
}

/// What one variant does in each round.
#[derive(Clone)]
pub(super) struct Run {
    /// Of the line or bar.
    pub(super) label: String,
    /// Of the group of bars.
    pub(super) group: String,
    pub(super) part: Part,
    /// Where it stands on a line.
    pub(super) x: Option<f64>,
    pub(super) arguments: Vec<String>,
}

impl Run {
    fn new(figure: &Figure, label: &str, group: &str, variant: Variant, more: &str) -> Self {
        let flags = tpcc(figure);
        let arguments = format!("tpcc --variant {} {flags} {more}", variant.name());
        Self::by_time(label, group, &arguments)
    }

    /// A run that stands on no line.
    fn by_time(label: &str, group: &str, arguments: &str) -> Self {
        Self {
            label: label.to_owned(),
            group: group.to_owned(),
            part: Part::All,
            x: None,
            arguments: words(arguments),
        }
    }

    /// A run of another workload than TPC-C.
    fn of(part: Part, label: &str, (x, unit): (u64, &str), arguments: &str) -> Self {
        Self {
            label: label.to_owned(),
            group: format!("{x} {unit}"),
            part,
            x: Some(x as f64),
            arguments: words(arguments),
        }
    }

    /// The command line of this run.
    pub(super) fn parse(&self, data: &Path) -> Result<Workload, Failure> {
        let program = "vellum-bench".to_owned();
        let data = ["--data".to_owned(), data.display().to_string()];
        let words = [program].into_iter().chain(self.arguments.clone());
        let cli = Cli::try_parse_from(words.chain(data))
            .map_err(|error| Failure::Usage(error.to_string()))?;
        match cli.command {
            Command::Run(workload) => Ok(workload),
            Command::Figure(_) | Command::Compare(_) | Command::Report(_) => Err(Failure::Usage(
                "only workloads are runs of a figure".to_owned(),
            )),
        }
    }
}

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

/// Flags of TPC-C that all of a figure's runs have.
fn tpcc(figure: &Figure) -> String {
    // To try the program, not the engine.
    let tiny = if figure.tiny { "--tiny" } else { "" };
    let (length, warehouses) = (length(figure), figure.warehouses());
    let (pool, seed) = (figure.pool_mib(), figure.seed);
    format!("{tiny} {length} --warehouses {warehouses} --pool-mib {pool} --seed {seed}")
}

/// What each engine of figure 1 runs: `tpcc` with these flags. Who holds the snapshot declares that it only reads: one that might write stops all others in
/// engines with one writer.
pub(super) fn beside_peers(figure: &Figure) -> Vec<String> {
    let (flags, at) = (tpcc(figure), figure.hold_at());
    words(&format!("{flags} --hold-snapshot-at {at} --holder olap"))
}

/// The runs of a round.
pub(super) fn runs(figure: &Figure) -> Vec<Run> {
    use Variant::{Basic, Fat, Full, Graveyard, Osic, Stamping};
    let hold = format!("--hold-snapshot-at {}", figure.hold_at());
    match figure.which {
        // Of engines, and not of variants: `beside_peers`.
        FigureName::One => Vec::new(),
        FigureName::Nine => [Basic, Osic, Fat, Graveyard, Full]
            .map(|variant| Run::new(figure, variant.name(), "", variant, &hold))
            .into(),
        FigureName::Ten => {
            let last = figure.seconds() - figure.hold_at();
            let ages: Vec<String> = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600]
                .into_iter()
                .filter(|age| *age < last && !figure.is_short())
                .map(|age: u64| age.to_string())
                .collect();
            let threads = figure.threads();
            let scan = match ages.is_empty() {
                // At its begin only.
                true => "--scan-at 0".to_owned(),
                false => format!("--scan-at {}", ages.join(",")),
            };
            let flags = format!("{hold} {scan} --threads {threads}");
            [Basic, Osic, Graveyard, Fat, Full]
                .map(|variant| Run::new(figure, variant.name(), "", variant, &flags))
                .into()
        }
        FigureName::Eleven => {
            let mut runs = Vec::new();
            for home in ["--affinity", ""] {
                for threads in 1..=figure.threads() {
                    let flags = format!("--threads {threads} {home}");
                    let group = match home {
                        "" => format!("{threads} threads, any warehouse"),
                        _ => format!("{threads} threads, own warehouses"),
                    };
                    for variant in [Basic, Stamping, Osic, Full] {
                        runs.push(Run::new(figure, variant.name(), &group, variant, &flags));
                    }
                    // The others' rates fall for as long as one looks.
                    let flags = format!("{flags} {hold}");
                    runs.push(Run::new(figure, "full, snapshot", &group, Full, &flags));
                }
            }
            runs
        }
        FigureName::Oom => {
            let age = (figure.seconds() - figure.hold_at())
                .saturating_sub(2)
                .max(1);
            let age = if figure.is_short() { 0 } else { age };
            let flags = format!("{hold} --scan-at {age}");
            let beside = [Osic, Fat, Graveyard, Full]
                .map(|variant| Run::new(figure, variant.name(), variant.name(), variant, &flags));
            // What `full` is to be equal to.
            let alone = Run::new(figure, "no snapshot", "no snapshot", Full, "");
            beside.into_iter().chain([alone]).collect()
        }
        FigureName::Twelve => [loads(figure), lookups(figure)].concat(),
        FigureName::Contention => contention(figure),
        FigureName::Release => {
            let release = figure.release_at();
            let release = release.map_or(String::new(), |at| format!("--release-snapshot-at {at}"));
            let flags = format!("{hold} {release}");
            let (length, pool, seed) = (length(figure), figure.pool_mib(), figure.seed);
            let small = |name| {
                let flags = format!("{name} {length} --pool-mib {pool} --seed {seed} {flags}");
                Run::by_time(name, "", &flags)
            };
            let large = Run::new(figure, "tpcc", "", Full, &flags);
            vec![large, small("queue"), small("hot")]
        }
    }
}

/// Insertions in the order of keys, in one transaction, in pools from one that holds all rows to an eighth of it.
fn loads(figure: &Figure) -> Vec<Run> {
    let (rows, seed) = (figure.rows(), figure.seed);
    let mut runs = Vec::new();
    for halvings in 0..4 {
        let pool = (figure.pool_mib() >> halvings).max(POOL_MIB_MIN);
        for variant in [
            Variant::Basic,
            Variant::Stamping,
            Variant::Osic,
            Variant::Full,
        ] {
            let name = variant.name();
            let flags = format!(
                "load --order inserted --variant {name} --rows {rows} --pool-mib {pool} --seed {seed}"
            );
            runs.push(Run::of(Part::Load, name, (pool, "MiB"), &flags));
        }
    }
    runs
}

/// Lookups of random rows in the smallest of these pools, by threads: 1, 2, 4 and so on.
fn lookups(figure: &Figure) -> Vec<Run> {
    let (rows, seed) = (figure.rows(), figure.seed);
    let pool = (figure.pool_mib() >> 3).max(POOL_MIB_MIN);
    let length = length(figure);
    let mut runs = Vec::new();
    let most = figure.threads();
    let doublings = (0..).map(|power| 1_u32 << power);
    for threads in doublings.take_while(|threads| *threads <= most) {
        for variant in [Variant::Basic, Variant::Osic, Variant::Full] {
            let name = variant.name();
            let flags = format!(
                "kv --mix read --variant {name} --rows {rows} --pool-mib {pool} --threads {threads} {length} --seed {seed}"
            );
            let x = (u64::from(threads), "threads");
            runs.push(Run::of(Part::Lookup, name, x, &flags));
        }
    }
    runs
}

/// Updates of hot keys, by how many a transaction has.
fn contention(figure: &Figure) -> Vec<Run> {
    let (rows, seed, pool) = (figure.rows(), figure.seed, figure.pool_mib());
    let (threads, length) = (figure.threads(), length(figure));
    let mut runs = Vec::new();
    for writes in [1, 2, 4, 8, 16, 32] {
        for (label, variant, more) in [
            ("basic", Variant::Basic, ""),
            ("stamping", Variant::Stamping, ""),
            ("full", Variant::Full, ""),
            ("full, ordered", Variant::Full, "--deterministic"),
        ] {
            let flags = format!(
                "hekaton --reads 0 --writes {writes} --zipf 1 --variant {} --rows {rows} --pool-mib {pool} \
                 --threads {threads} {length} --seed {seed} {more}",
                variant.name()
            );
            runs.push(Run::of(Part::All, label, (writes, "keys"), &flags));
        }
    }
    runs
}

/// A pool holds some pages at least.
const POOL_MIB_MIN: u64 = 8;

fn length(figure: &Figure) -> String {
    match figure.is_short() {
        true => "--operations 60".to_owned(),
        false => format!("--seconds {}", figure.seconds()),
    }
}
