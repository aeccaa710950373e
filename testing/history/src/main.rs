//! The program `vellum-history`: checks a recorded history.
//!
//! Ends with 0 if the history keeps its promise, 1 if not, 2 if it cannot be read.
#![forbid(unsafe_code)]

use clap::{Parser, Subcommand, ValueEnum};
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use vellum_history::generate::generate;
use vellum_history::{History, Level, Options, check};

#[derive(Parser)]
#[command(
    name = "vellum-history",
    about = "Names the anomalies in what concurrent clients saw"
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Check a history of JSON lines
    Check {
        /// The file; - for standard input
        file: PathBuf,
        /// Judge every transaction as if it had been promised this
        #[arg(long, value_enum)]
        level: Option<Promise>,
        /// A transaction must see what was acknowledged before it began
        #[arg(long)]
        real_time: bool,
    },
    /// Write the history of a small store that keeps snapshot isolation, to measure with
    Generate {
        /// How many transactions
        #[arg(long, default_value_t = 100_000)]
        transactions: u64,
        /// Another seed, another history
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Forget to look for conflicts: the history is wrong almost everywhere
        #[arg(long)]
        no_conflicts: bool,
    },
}

#[derive(Clone, Copy, ValueEnum)]
enum Promise {
    /// Read committed
    Rc,
    /// Snapshot isolation
    Si,
    /// Serializable
    Ser,
}

fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Check {
            file,
            level,
            real_time,
        } => run_check(&file, level, real_time),
        Command::Generate {
            transactions,
            seed,
            no_conflicts,
        } => {
            let recorder = generate(transactions, seed, !no_conflicts);
            let out = BufWriter::new(std::io::stdout().lock());
            match recorder.write(out) {
                Ok(()) => ExitCode::SUCCESS,
                Err(_) => ExitCode::from(2),
            }
        }
    }
}

fn run_check(file: &Path, level: Option<Promise>, real_time: bool) -> ExitCode {
    let level = level.map(|level| match level {
        Promise::Rc => Level::ReadCommitted,
        Promise::Si => Level::Snapshot,
        Promise::Ser => Level::Serializable,
    });
    let input: Box<dyn BufRead> = if file.as_os_str() == "-" {
        Box::new(std::io::stdin().lock())
    } else {
        match File::open(file) {
            Ok(open) => Box::new(BufReader::with_capacity(1 << 20, open)),
            Err(error) => {
                eprintln!("{}: {error}", file.display());
                return ExitCode::from(2);
            }
        }
    };
    let history = match History::read(input) {
        Ok(history) => history,
        Err(error) => {
            eprintln!("{}: {error}", file.display());
            return ExitCode::from(2);
        }
    };
    let report = check(&history, Options { level, real_time });
    // Fails only if nobody listens any more; the code says it then.
    let _ = writeln!(std::io::stdout(), "{report}");
    if report.is_clean() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
