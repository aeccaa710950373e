//! Flags of a figure.

use crate::engines::EngineName;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// The figures.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum FigureName {
    /// TPC-C over time beside a held snapshot, on every engine of this build
    #[value(name = "1")]
    One,
    /// TPC-C over time beside a held snapshot, by variant
    #[value(name = "9")]
    Nine,
    /// Scans of hot tables by the age of the snapshot
    #[value(name = "10")]
    Ten,
    /// TPC-C by threads and protocol
    #[value(name = "11")]
    Eleven,
    /// TPC-C larger than memory
    Oom,
    /// Loads by protocol and pool; lookups larger than memory, by threads
    #[value(name = "12")]
    Twelve,
    /// Skewed updates of several keys a transaction
    Contention,
    /// TPC-C, queue and hot rows over time, while a snapshot is held and after it has ended
    Release,
}

impl FigureName {
    /// Its name on the command line and in the names of files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::One => "1",
            Self::Nine => "9",
            Self::Ten => "10",
            Self::Eleven => "11",
            Self::Oom => "oom",
            Self::Twelve => "12",
            Self::Contention => "contention",
            Self::Release => "release",
        }
    }
}

/// Flags of a figure.
#[derive(Args, Debug)]
pub struct Figure {
    /// Which one
    #[arg(value_enum)]
    pub which: FigureName,
    /// Where the files go; databases are made below it and removed again
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// How long each run takes [default: 60; 30 for figure 1, 20 for 11 and oom, 5 for 12 and contention]
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(2..=1_000_000))]
    pub seconds: Option<u64>,
    /// How often each variant runs; figures are medians
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub rounds: u32,
    /// Of figure 1, on which engines; one that this build has not, or that cannot run it, is named and left out [default: all]
    #[arg(long, value_enum, value_delimiter = ',')]
    pub engines: Vec<EngineName>,
    /// Warehouses [default: 4; 1 for figure 1, 10 for oom]
    #[arg(long, value_name = "W", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub warehouses: Option<u32>,
    /// Rows of figures 12 and contention [default: 1000000; 100000 for contention]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(64..=1 << 32))]
    pub rows: Option<u64>,
    /// Threads: of figures 10 and contention, and at most of figures 11 and 12 [default: 2; 10 for contention, 64 for 12]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Option<u32>,
    /// Size of the buffer pool; of figure 12 the largest, which holds all rows [default: 2048; 64 for oom, 256 for 12]
    #[arg(long, value_name = "M", value_parser = clap::value_parser!(u64).range(1..=1 << 30))]
    pub pool_mib: Option<u64>,
    /// Everything random follows from it
    #[arg(long, default_value_t = 42, value_name = "N")]
    pub seed: u64,
    /// A population of a few rows, to try the program; sixty operations a run, unless `--seconds` is said
    #[arg(long, hide = true)]
    pub tiny: bool,
}

impl Figure {
    /// How long each run takes.
    pub fn seconds(&self) -> u64 {
        self.seconds.unwrap_or(match self.which {
            FigureName::One => 30,
            FigureName::Nine | FigureName::Ten | FigureName::Release => 60,
            FigureName::Eleven | FigureName::Oom => 20,
            FigureName::Twelve | FigureName::Contention => 5,
        })
    }

    /// Whether a run is over at once.
    pub fn is_short(&self) -> bool {
        self.tiny && self.seconds.is_none()
    }

    /// The second in which a snapshot is taken.
    pub fn hold_at(&self) -> u64 {
        match self.is_short() {
            true => 0,
            false => (self.seconds() / 6).max(1),
        }
    }

    /// The second in which it ends, where that is what the figure is about.
    pub fn release_at(&self) -> Option<u64> {
        let is_asked = self.which == FigureName::Release && !self.is_short();
        is_asked.then(|| self.hold_at() + (self.seconds() - self.hold_at()) * 3 / 5)
    }

    /// Whom figure 1 asks.
    pub fn engines(&self) -> &[EngineName] {
        match self.engines[..] {
            [] => EngineName::value_variants(),
            _ => &self.engines,
        }
    }

    /// How many warehouses are loaded.
    pub fn warehouses(&self) -> u32 {
        self.warehouses.unwrap_or(match self.which {
            FigureName::One => 1,
            FigureName::Oom => 10,
            _ => 4,
        })
    }

    /// How many rows are loaded.
    pub fn rows(&self) -> u64 {
        let default = match (self.tiny, self.which) {
            (true, _) => 200,
            (false, FigureName::Contention) => 100_000,
            (false, _) => 1_000_000,
        };
        self.rows.unwrap_or(default)
    }

    /// Threads of each run, or of the last.
    pub fn threads(&self) -> u32 {
        self.threads.unwrap_or(match self.which {
            FigureName::Contention => 10,
            FigureName::Twelve => 64,
            _ => 2,
        })
    }

    /// Size of the pool.
    pub fn pool_mib(&self) -> u64 {
        self.pool_mib.unwrap_or(match self.which {
            FigureName::Oom => 64,
            FigureName::Twelve => 256,
            _ => 2048,
        })
    }
}
