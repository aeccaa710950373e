//! The command line. Every flag has a default.

mod figure;

use crate::engines::EngineName;
use crate::measure::Limit;
use clap::{Args, Parser, Subcommand, ValueEnum};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use vellum_workload::engine::{Isolation, TableSpec};
use vellum_workload::kv::Mix;

pub use figure::{Figure, FigureName};

/// Loads, runs, measures and checks a workload on an embedded database.
#[derive(Parser, Debug)]
#[command(name = "vellum-bench", version, about, max_term_width = 100)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// One workload.
    #[command(flatten)]
    Run(Workload),
    /// Runs the variants of a figure of the paper in turn; writes JSON and a picture
    Figure(Figure),
    /// Runs a workload on several engines in turn; writes JSON, a picture and a table
    Compare(Compare),
    /// Runs the comparisons that there are in turn; writes a page with pictures, where Vellum loses first
    Report(Report),
}

/// The workloads that can be compared.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkloadName {
    /// TPC-C
    Tpcc,
    /// TATP
    Tatp,
    /// Point reads, updates, read-modify-writes
    Kv,
    /// A queue of fixed length
    Queue,
    /// A few keys that are updated nonstop
    Hot,
    /// A load in one transaction
    Load,
    /// Scans
    Scan,
    /// Reads and writes of some rows, at an isolation level
    Hekaton,
}

impl WorkloadName {
    /// Name of the subcommand.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tpcc => "tpcc",
            Self::Tatp => "tatp",
            Self::Kv => "kv",
            Self::Queue => "queue",
            Self::Hot => "hot",
            Self::Load => "load",
            Self::Scan => "scan",
            Self::Hekaton => "hekaton",
        }
    }
}

/// Flags of a comparison.
#[derive(Args, Debug)]
pub struct Compare {
    /// What is run
    #[arg(value_enum)]
    pub workload: WorkloadName,
    /// On which engines; one that this build has not, or that cannot run it, is named and left out
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = EngineName::value_variants())]
    pub engines: Vec<EngineName>,
    /// How often each engine runs; figures are medians
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub rounds: u32,
    /// Where the files go; databases are made below it and removed again
    #[arg(long, value_name = "DIR", default_value = "bench-data/compare")]
    pub out: PathBuf,
    /// Flags of the workload, as it has them alone
    #[arg(last = true, value_name = "FLAGS")]
    pub arguments: Vec<String>,
}

/// How much a report measures.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportSet {
    /// A few operations of everything, to try the program
    #[value(hide = true)]
    Tiny,
    /// Some of the comparisons, small data, short runs, three rounds: at most twenty minutes with all engines
    Quick,
    /// All of them, data of millions of rows, snapshots that are held for 100 seconds, three rounds: hours
    Full,
}

impl ReportSet {
    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tiny => "tiny",
            Self::Quick => "quick",
            Self::Full => "full",
        }
    }
}

/// Flags of a report.
#[derive(Args, Debug)]
pub struct Report {
    /// How much is measured
    #[arg(long, value_enum, default_value_t = ReportSet::Quick)]
    pub set: ReportSet,
    /// On which engines; one that this build has not, or that cannot run a workload, is named and left out
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = EngineName::value_variants())]
    pub engines: Vec<EngineName>,
    /// How often each engine runs; figures are medians [default: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub rounds: Option<u32>,
    /// Where benchmarks.md goes; its pictures and figures go to benchmarks/report below it
    #[arg(long, value_name = "DIR", default_value = "docs")]
    pub out: PathBuf,
    /// Where databases are made and removed again
    #[arg(long, value_name = "DIR", default_value = "bench-data/report")]
    pub data: PathBuf,
}

impl Report {
    /// How often each engine runs.
    pub fn rounds(&self) -> u32 {
        self.rounds.unwrap_or(match self.set {
            ReportSet::Tiny => 1,
            ReportSet::Quick | ReportSet::Full => 3,
        })
    }
}

/// One subcommand a workload.
#[derive(Subcommand, Debug)]
pub enum Workload {
    /// TPC-C: loads it if the directory is empty, runs the standard mix, checks the consistency
    /// conditions
    Tpcc(Tpcc),
    /// TATP: loads it if the directory is empty, runs the seven transactions in their mix, checks the
    /// data and how many transactions succeeded
    Tatp(Tatp),
    /// Point reads, updates or read-modify-writes, one operation a transaction
    Kv(Kv),
    /// A queue of fixed length: each transaction inserts at the tail and deletes the smallest row
    Queue(Queue),
    /// A few keys that are updated nonstop
    Hot(Hot),
    /// Loads rows in one transaction into an empty directory
    Load(Load),
    /// Scans of all rows or of ranges, each in a snapshot, alone or beside updates
    Scan(Scan),
    /// Transactions of R reads and W writes at an isolation level, beside readers, short and long
    Hekaton(Hekaton),
}

impl Workload {
    /// Flags that all workloads have.
    pub fn common(&self) -> &Common {
        match self {
            Self::Tpcc(tpcc) => &tpcc.common,
            Self::Tatp(tatp) => &tatp.common,
            Self::Kv(kv) => &kv.common,
            Self::Queue(queue) => &queue.common,
            Self::Hot(hot) => &hot.common,
            Self::Load(load) => &load.common,
            Self::Scan(scan) => &scan.common,
            Self::Hekaton(hekaton) => &hekaton.common,
        }
    }

    /// Its old snapshots, where the workload can have any.
    pub fn hold(&self) -> Option<&Hold> {
        match self {
            Self::Tpcc(tpcc) => Some(&tpcc.hold),
            Self::Queue(queue) => Some(&queue.hold),
            Self::Hot(hot) => Some(&hot.hold),
            Self::Tatp(_) | Self::Kv(_) | Self::Load(_) | Self::Scan(_) | Self::Hekaton(_) => None,
        }
    }

    /// What the engine is to be opened with.
    pub fn settings(&self) -> Settings {
        let mut settings = self.common().settings(self.name());
        // Whoever scans at set ages has a second session, for fresh snapshots.
        settings.sessions += self.hold().map_or(0, |hold| hold.holders as usize + 1);
        settings.sessions += match self {
            Self::Scan(scan) => scan.update_threads as usize,
            Self::Hekaton(hekaton) => hekaton.long_readers as usize,
            _ => 0,
        };
        let held = self.hold().filter(|hold| hold.hold_snapshot_at.is_some());
        settings.writers += held.map_or(0, |hold| match hold.holder {
            Holder::Idle | Holder::Writer => hold.holders as usize,
            Holder::Olap | Holder::Scan => 0,
        });
        if let Self::Scan(scan) = self {
            // Its own threads only read.
            settings.writers -= scan.common.threads as usize;
            settings.writers += scan.update_threads as usize;
        }
        settings.tables = self.tables().len();
        settings
    }

    /// Its tables.
    pub fn tables(&self) -> &'static [TableSpec] {
        match self {
            Self::Tpcc(_) => vellum_workload::tpcc::schema::TABLES,
            Self::Tatp(_) => vellum_workload::tatp::schema::TABLES,
            Self::Kv(_) | Self::Hot(_) | Self::Load(_) | Self::Scan(_) => {
                vellum_workload::kv::TABLES
            }
            Self::Queue(_) => vellum_workload::queue::TABLES,
            Self::Hekaton(_) => vellum_workload::hekaton::TABLES,
        }
    }

    /// Name of the subcommand.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Tpcc(_) => "tpcc",
            Self::Tatp(_) => "tatp",
            Self::Kv(_) => "kv",
            Self::Queue(_) => "queue",
            Self::Hot(_) => "hot",
            Self::Load(_) => "load",
            Self::Scan(_) => "scan",
            Self::Hekaton(_) => "hekaton",
        }
    }
}

/// When a commit returns.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// At once; a crash may lose the last commits
    Async,
    /// When it is durable
    Sync,
}

impl Durability {
    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Async => "async",
            Self::Sync => "sync",
        }
    }
}

/// What happens where old versions take more than they may. (Not here: refusing writers, which would end the run.)
#[derive(ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VersionPolicy {
    /// They go on growing, on disk
    #[default]
    Spill,
    /// The oldest snapshot is given up, then the next
    TooOld,
}

impl VersionPolicy {
    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Spill => "spill",
            Self::TooOld => "too-old",
        }
    }
}

/// What of the engine is on: the variants of the figures.
#[derive(ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Variant {
    /// Snapshots are lists of the active writers; only what everybody sees is collected
    Basic,
    /// A commit writes its timestamp into every row that it wrote; only what everybody sees is collected
    Stamping,
    /// The product's commit protocol; only what everybody sees is collected
    Osic,
    /// The product's commit protocol and graveyards
    Graveyard,
    /// The product's commit protocol and fat rows, without shortcuts for rows that are not hot
    Fat,
    /// The product
    #[default]
    Full,
}

impl Variant {
    /// All of them, from the least to the product.
    pub const ALL: [Self; 6] = [
        Self::Basic,
        Self::Stamping,
        Self::Osic,
        Self::Graveyard,
        Self::Fat,
        Self::Full,
    ];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Basic => "basic",
            Self::Stamping => "stamping",
            Self::Osic => "osic",
            Self::Graveyard => "graveyard",
            Self::Fat => "fat",
            Self::Full => "full",
        }
    }
}

/// How long a run takes that is not told.
const SECONDS: u64 = 10;

/// Flags that all workloads have.
#[derive(Args, Debug)]
pub struct Common {
    /// Threads that run transactions
    #[arg(long, default_value_t = 1, conflicts_with = "check", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: u32,
    /// How long to run [default: 10]
    #[arg(long, value_name = "S", conflicts_with_all = ["operations", "check"])]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub seconds: Option<u64>,
    /// Stop after this many transactions of all threads together instead
    #[arg(long, value_name = "N", conflicts_with = "check", value_parser = clap::value_parser!(u64).range(1..))]
    pub operations: Option<u64>,
    /// Everything random follows from it
    #[arg(long, default_value_t = 42, value_name = "N")]
    pub seed: u64,
    /// When a commit returns
    #[arg(long, value_enum, default_value_t = Durability::Async)]
    pub durability: Durability,
    /// Who is measured; a peer where this build has it
    #[arg(long, value_enum, default_value_t = EngineName::Vellum)]
    pub engine: EngineName,
    /// What of the engine is on
    #[arg(long, value_enum, default_value_t = Variant::Full)]
    pub variant: Variant,
    /// Size of the buffer pool
    #[arg(long, default_value_t = 2048, value_name = "M")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1 << 30))]
    pub pool_mib: u64,
    /// Page size of a database that is created: 4096, 8192 or 16384 [default: the engine's]
    #[arg(long, value_name = "BYTES", value_parser = page_size)]
    pub page_size: Option<u32>,
    /// Largest size of the data file, for which addresses are reserved [default: the engine's]; instrumented runs have
    /// fewer addresses
    #[arg(long, value_name = "GIB", value_parser = clap::value_parser!(u64).range(1..=1 << 14))]
    pub file_gib: Option<u64>,
    /// How much old versions may take, in memory and on disk
    #[arg(long, value_name = "M", value_parser = clap::value_parser!(u64).range(1..=1 << 30))]
    pub version_mib_max: Option<u64>,
    /// What happens where old versions take more
    #[arg(long, value_enum, requires = "version_mib_max")]
    pub version_policy: Option<VersionPolicy>,
    /// Directory of the database [default: bench-data/WORKLOAD]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Write the summary there
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Draw the run there, as SVG
    #[arg(long, value_name = "FILE", conflicts_with = "check")]
    pub plot: Option<PathBuf>,
    /// Keep one more transaction open, idle after its first write, all the while
    #[arg(long, conflicts_with = "check")]
    pub idle_writer: bool,
    /// Only check the data of an earlier run
    #[arg(long)]
    pub check: bool,
    /// Don't check the data afterwards
    #[arg(long, conflicts_with = "check")]
    pub no_check: bool,
    /// End at once when standard input does, as the runs of a comparison do
    #[arg(long, hide = true)]
    pub end_with_input: bool,
}

fn page_size(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(size @ (4096 | 8192 | 16384)) => Ok(size),
        _ => Err("4096, 8192 or 16384".to_owned()),
    }
}

/// How an engine is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Directory of the database; exists.
    pub data: PathBuf,
    /// When commits return.
    pub durability: Durability,
    /// What of the engine is on.
    pub variant: Variant,
    /// Bytes of the buffer pool.
    pub pool_bytes: u64,
    /// Bytes of a page, if not the engine's default.
    pub page_size: Option<u32>,
    /// Largest size of the data file, if not the engine's default.
    pub file_bytes_max: Option<u64>,
    /// How much old versions may take, in bytes, and what happens where they take more; if it was asked for.
    pub version_limit: Option<(u64, VersionPolicy)>,
    /// How many sessions are open at a time, at most.
    pub sessions: usize,
    /// How many of them may have a transaction at a time that may write, at most.
    pub writers: usize,
    /// Tables of the workload.
    pub tables: usize,
    /// Whether a database that does not exist is created.
    pub create: bool,
}

impl Common {
    /// How long to run, where no number of transactions ends it.
    pub fn seconds(&self) -> u64 {
        self.seconds.unwrap_or(SECONDS)
    }

    /// When a run ends.
    pub(crate) fn limit(&self) -> Limit {
        match self.operations {
            Some(operations) => Limit::Operations(operations),
            None => Limit::Seconds(self.seconds()),
        }
    }

    /// What the engine is to be opened with, for the workload `name`.
    fn settings(&self, name: &str) -> Settings {
        Settings {
            data: self
                .data
                .clone()
                .unwrap_or_else(|| PathBuf::from("bench-data").join(name)),
            durability: self.durability,
            variant: self.variant,
            pool_bytes: self.pool_mib << 20,
            page_size: self.page_size,
            file_bytes_max: self.file_gib.map(|gib| gib << 30),
            version_limit: self
                .version_mib_max
                .map(|mib| (mib << 20, self.version_policy.unwrap_or_default())),
            // The idle writer and the session that loads and checks.
            sessions: self.threads as usize + 2,
            writers: self.threads as usize + usize::from(self.idle_writer),
            tables: 0,
            create: !self.check,
        }
    }
}

/// Who holds an old snapshot.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Holder {
    /// A session that declared nothing and read one row
    Idle,
    /// A session that declared nothing, read one row and wrote another
    Writer,
    /// A session that declared itself analytical and read one row
    Olap,
    /// A read-only scan that takes as long as the snapshot is held
    Scan,
}

impl Holder {
    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Writer => "writer",
            Self::Olap => "olap",
            Self::Scan => "scan",
        }
    }
}

/// Old snapshots beside a run.
#[derive(Args, Debug)]
pub struct Hold {
    /// A snapshot is taken after so many seconds of the run, and held
    #[arg(long, value_name = "S", conflicts_with = "check")]
    pub hold_snapshot_at: Option<u64>,
    /// Who holds it
    #[arg(long, value_enum, default_value_t = Holder::Idle)]
    pub holder: Holder,
    /// How many snapshots are held; each is taken a second after the one before
    #[arg(long, default_value_t = 1, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=512))]
    pub holders: u32,
    /// All of them end after so many seconds of the run, not with the run
    #[arg(long, value_name = "S")]
    pub release_snapshot_at: Option<u64>,
    /// Scan the hot tables in the first of them at these ages in seconds, and in a fresh snapshot beside
    #[arg(long, value_name = "S,S,...", value_delimiter = ',')]
    pub scan_at: Vec<u64>,
}

/// Flags of the queue.
#[derive(Args, Debug)]
pub struct Queue {
    /// Rows
    #[arg(long, default_value_t = 1000, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1 << 32))]
    pub rows: u64,
    /// Bytes of a value
    #[arg(long, default_value_t = 100, value_name = "BYTES")]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=1 << 20))]
    pub value_size: u32,
    /// Old snapshots.
    #[command(flatten)]
    pub hold: Hold,
    /// Flags of every workload.
    #[command(flatten)]
    pub common: Common,
}

/// Flags of the hot keys.
#[derive(Args, Debug)]
pub struct Hot {
    /// Keys
    #[arg(long, default_value_t = 100, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1 << 32))]
    pub keys: u64,
    /// Bytes of a value
    #[arg(long, default_value_t = 100, value_name = "BYTES")]
    #[arg(value_parser = clap::value_parser!(u32).range(16..=1 << 20))]
    pub value_size: u32,
    /// Each update gives its value a size from this one to --value-size [default: the size stays]
    #[arg(long, value_name = "BYTES")]
    #[arg(value_parser = clap::value_parser!(u32).range(16..=1 << 20))]
    pub value_size_min: Option<u32>,
    /// Old snapshots.
    #[command(flatten)]
    pub hold: Hold,
    /// Flags of every workload.
    #[command(flatten)]
    pub common: Common,
}

/// Flags of TPC-C.
#[derive(Args, Debug)]
pub struct Tpcc {
    /// Warehouses to load [default: what the directory holds, else 4]
    #[arg(long, value_name = "W", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub warehouses: Option<u32>,
    /// Each thread is at home in warehouses of its own
    #[arg(long)]
    pub affinity: bool,
    /// A population of a few rows, to try the program
    #[arg(long, hide = true)]
    pub tiny: bool,
    /// Old snapshots.
    #[command(flatten)]
    pub hold: Hold,
    /// Flags of every workload.
    #[command(flatten)]
    pub common: Common,
}

/// Flags of TATP.
#[derive(Args, Debug)]
pub struct Tatp {
    /// Subscribers to load [default: what the directory holds, else 100000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000_000))]
    pub subscribers: Option<u32>,
    /// Choose all subscribers equally often
    #[arg(long, conflicts_with = "check")]
    pub uniform: bool,
    /// Flags of every workload.
    #[command(flatten)]
    pub common: Common,
}

/// What a row looks like and how many there are.
#[derive(Args, Debug)]
pub struct Rows {
    /// Rows [default: those of the directory, or 2000000]
    #[arg(long, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1 << 32))]
    pub rows: Option<u64>,
    /// Bytes of a value [default: that of the directory, or 100]
    #[arg(long, value_name = "BYTES")]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=1 << 30))]
    pub value_size: Option<u32>,
}

impl Rows {
    /// Rows of a database that is made without being told how many.
    const COUNT: u64 = 2_000_000;
    /// Bytes of their values.
    const VALUE_SIZE: usize = 100;

    /// How many rows there are to be, and the bytes of a value: what the flags say, else what was found, else the default.
    pub fn shape(&self, found: Option<(u64, usize)>) -> (u64, usize) {
        let (rows, size) = found.unwrap_or((Self::COUNT, Self::VALUE_SIZE));
        let given = self
            .value_size
            .map(|size| usize::try_from(size).expect("at most a gibibyte"));
        (self.rows.unwrap_or(rows), given.unwrap_or(size))
    }
}

/// What one transaction does.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum MixName {
    /// Reads a key
    Read,
    /// Updates a key in place
    Update,
    /// Reads a key, then updates it
    Rmw,
}

impl From<MixName> for Mix {
    fn from(name: MixName) -> Self {
        match name {
            MixName::Read => Self::Read,
            MixName::Update => Self::Update,
            MixName::Rmw => Self::ReadModifyWrite,
        }
    }
}

/// Flags of the key-value workload.
#[derive(Args, Debug)]
pub struct Kv {
    /// What one transaction does
    #[arg(long, value_enum, default_value_t = MixName::Read)]
    pub mix: MixName,
    /// Skew θ of the keys; 0 is uniform
    #[arg(long, default_value_t = 0.0, value_name = "THETA", value_parser = skew)]
    pub zipf: f64,
    /// Share of the transactions, from 0 to 1, that read a key instead; needs a mix that writes
    #[arg(long, default_value_t = 0.0, value_name = "SHARE", value_parser = share)]
    pub read_share: f64,
    /// Rows.
    #[command(flatten)]
    pub rows: Rows,
    /// Flags of every workload.
    #[command(flatten)]
    pub common: Common,
}

fn skew(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(theta) if (0.0..=10.0).contains(&theta) => Ok(theta),
        _ => Err("a number from 0 to 10".to_owned()),
    }
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("a number from 0 to 1".to_owned()),
    }
}

/// The order in which rows are loaded.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderName {
    /// Ascending keys, by the engine's bulk load
    Sorted,
    /// Every key once in no order, by inserts
    Shuffled,
    /// Ascending keys, by inserts
    Inserted,
}

/// Flags of the load.
#[derive(Args, Debug)]
pub struct Load {
    /// The order of the keys
    #[arg(long, value_enum, default_value_t = OrderName::Sorted)]
    pub order: OrderName,
    /// Rows.
    #[command(flatten)]
    pub rows: Rows,
    /// Flags of every workload.
    #[command(flatten)]
    pub common: Common,
}

/// Flags of the scan.
#[derive(Args, Debug)]
pub struct Scan {
    /// Rows of a scan, from a random one on [default: all]
    #[arg(long, value_name = "ROWS", value_parser = clap::value_parser!(u64).range(1..=1 << 32))]
    pub range: Option<u64>,
    /// Threads that update random rows beside the scans, each in a transaction of its own
    #[arg(long, default_value_t = 0, value_name = "N", conflicts_with = "check")]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=1024))]
    pub update_threads: u32,
    /// Rows.
    #[command(flatten)]
    pub rows: Rows,
    /// Flags of every workload.
    #[command(flatten)]
    pub common: Common,
}

/// What transactions see.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum IsolationName {
    /// One snapshot
    Snapshot,
    /// What is committed when an operation begins
    ReadCommitted,
}

impl IsolationName {
    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Snapshot => "snapshot",
            Self::ReadCommitted => "read-committed",
        }
    }
}

impl From<IsolationName> for Isolation {
    fn from(name: IsolationName) -> Self {
        match name {
            IsolationName::Snapshot => Self::Snapshot,
            IsolationName::ReadCommitted => Self::ReadCommitted,
        }
    }
}

/// Flags of Hekaton's workload.
#[derive(Args, Debug)]
pub struct Hekaton {
    /// Rows [default: those of the directory, or 2000000]; few of them are contended
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 32))]
    pub rows: Option<u64>,
    /// Rows that a transaction reads
    #[arg(long, default_value_t = 10, value_name = "R", value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub reads: u32,
    /// Rows that a transaction writes besides
    #[arg(long, default_value_t = 2, value_name = "W", value_parser = clap::value_parser!(u32).range(0..=256))]
    pub writes: u32,
    /// What transactions see; long readers always have a snapshot
    #[arg(long, value_enum, default_value_t = IsolationName::Snapshot)]
    pub isolation: IsolationName,
    /// Share of the transactions, from 0 to 1, that write nothing
    #[arg(long, default_value_t = 0.0, value_name = "SHARE", value_parser = share)]
    pub read_only_share: f64,
    /// Skew θ of the keys; 0 is uniform
    #[arg(long, default_value_t = 0.0, value_name = "THETA", value_parser = skew)]
    pub zipf: f64,
    /// Threads besides that read a share of the table in one snapshot, again and again
    #[arg(long, default_value_t = 0, value_name = "N", conflicts_with = "check")]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=1024))]
    pub long_readers: u32,
    /// Share of the table, from 0 to 1, that each of them reads
    #[arg(long, default_value_t = 0.1, value_name = "SHARE", value_parser = share)]
    pub long_share: f64,
    /// Writers take locks of the bench on their rows first, in the order of the keys, so that none meets another
    #[arg(long, conflicts_with = "check")]
    pub deterministic: bool,
    /// Flags of every workload.
    #[command(flatten)]
    pub common: Common,
}
