//! Commands and their options.

use crate::escape;
use crate::exit::Failure;
use crate::serve;
use crate::shell;
use clap::{Args, Parser, Subcommand};
use std::ops::Bound;
use std::path::PathBuf;
use vellum_server::VersionPolicy;

/// Where a dump starts and ends.
pub type Range = (Bound<Vec<u8>>, Bound<Vec<u8>>);

const EXIT_CODES: &str = "\
Exit codes:
  0  done, nothing wrong
  1  something is wrong with the database, or the command failed
  2  the command line makes no sense
  3  the database is open in another process
  4  there is no database, or one of a format that this build does not read";

/// Serves Vellum databases, and looks at closed ones.
#[derive(Debug, Parser)]
#[command(name = "vellum", version, max_term_width = 100, after_help = EXIT_CODES)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve a database to PostgreSQL's clients, until SIGTERM or SIGINT
    #[command(
        long_about = "Serves the database in a directory to everything that speaks PostgreSQL's protocol; makes it if it is \
                      not there. Listens on this machine only, unless it is told otherwise.\n\n\
                      The first start makes a password for the superuser `vellum`, writes it to DIR/password, which only \
                      you can read, and prints how to connect. SIGTERM and SIGINT end it in good order.",
        after_help = "Examples:\n  vellum serve --data db\n  \
                      vellum serve --data db --listen 127.0.0.1:5433 --http 127.0.0.1:9090\n  \
                      vellum serve --data db --listen 0.0.0.0:5432 --tls"
    )]
    Serve {
        #[command(flatten)]
        options: Box<serve::Options>,
    },
    /// Run statements on a database in this process: a shell, or -c and -f
    #[command(
        long_about = "Opens the database in a directory (and makes it if it is not there) in this process, and runs statements: \
                      those of -c and -f, those of standard input, or those that are typed. Nobody else can open the database \
                      meanwhile. \\? lists the commands of the shell.\n\n\
                      The exit code is 1 if a statement has failed.",
        after_help = "Examples:\n  vellum sql --data db\n  vellum sql --data db -c 'select count(*) from people'\n  \
                      vellum sql --data db --format csv -f report.sql > report.csv"
    )]
    Sql {
        #[command(flatten)]
        options: Box<shell::Options>,
    },
    /// Check everything that can be checked; never writes
    #[command(
        long_about = "Checks a closed database: checksums of all pages in use, trees, rows, large values, the \
                      catalog, indexes against tables (those of SQL, too, where nothing else is wrong), pages against the allocation bitmaps, the log.\n\n\
                      Never writes. If a recovery is due, it is rehearsed in memory, and what the next open \
                      will find is checked.",
        after_help = "Examples:\n  vellum verify /var/lib/app/db\n  vellum verify --json db | jq .findings"
    )]
    Verify {
        /// The database's directory
        directory: PathBuf,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        memory: Memory,
    },
    /// Show what takes how much space; never writes
    #[command(
        long_about = "Shows rows, pages and bytes of every table and index, free space, the log, and whether a \
                      recovery is due.\n\n\
                      Never writes. If a recovery is due, it is rehearsed in memory, and the figures are those of \
                      the next open.",
        after_help = "Examples:\n  vellum stat db\n  vellum stat --json db | jq '.tables[] | {name, rows}'"
    )]
    Stat {
        /// The database's directory
        directory: PathBuf,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        memory: Memory,
    },
    /// Print rows as text
    #[command(
        long_about = "Prints the rows of all tables, or of one, in key order, as they are stored: key, tab, value, a line each. Bytes \
                      that are no printable ASCII are escaped (\\n, \\t, \\\\, \\xNN). Before each table stands a line \
                      `# table NAME` unless --table is given.\n\n\
                      Never writes, unless --recover is given: a recovery that is due is run in memory.",
        after_help = "Examples:\n  vellum dump db --table people --limit 10\n  \
                      vellum dump db --table people --prefix 'user:'\n  \
                      vellum dump db --table orders --hex --from 0000002a --to 0000002b"
    )]
    Dump {
        /// The database's directory
        directory: PathBuf,
        #[command(flatten)]
        what: DumpOptions,
        #[command(flatten)]
        open: Open,
    },
    /// Copy the database into an empty directory
    #[command(
        long_about = "Copies the database into a directory that is empty or does not exist yet. The copy is complete \
                      and durable when the command returns; it recovers when it is opened.\n\n\
                      Never writes to the database, unless --recover is given. A running program backs its \
                      database up by itself: Database::backup.",
        after_help = "Example:\n  vellum backup db /backups/db-monday"
    )]
    Backup {
        /// The database's directory
        directory: PathBuf,
        /// The copy's directory: empty, or not there yet
        target: PathBuf,
        #[command(flatten)]
        open: Open,
    },
}

/// How much memory a command may take.
#[derive(Debug, Args)]
pub struct Memory {
    /// Memory for pages, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 256, value_parser = clap::value_parser!(u64).range(1..=1 << 30))]
    pool_mib: u64,
    /// Memory for what a recovery would write, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 1024, value_parser = clap::value_parser!(u64).range(0..=1 << 30))]
    memory_mib: u64,
}

impl Memory {
    /// Memory for pages, in bytes.
    pub fn pool_bytes(&self) -> u64 {
        self.pool_mib << 20
    }

    /// Memory for changes, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        self.memory_mib << 20
    }
}

/// How much old versions may take.
#[derive(Debug, Args)]
pub struct VersionLimit {
    /// Most of old versions, on disk and in memory together, in MiB; 0: no limit. It has an effect with `refuse` and `too-old` only
    #[arg(long, value_name = "MIB", env = "VELLUM_VERSION_MIB_MAX")]
    pub version_mib_max: Option<u64>,
    /// What happens where they take more: `spill` (nothing, they go on growing), `refuse` (statements that change rows fail, 53400), or
    /// `too-old` (the oldest transaction fails, 72000)
    #[arg(long, value_name = "POLICY", env = "VELLUM_VERSION_POLICY", value_parser = version_policy)]
    pub version_policy: Option<VersionPolicy>,
}

pub(crate) fn version_policy(text: &str) -> Result<VersionPolicy, String> {
    match text {
        "spill" => Ok(VersionPolicy::Spill),
        "refuse" => Ok(VersionPolicy::Refuse),
        "too-old" => Ok(VersionPolicy::TooOld),
        _ => Err("`spill`, `refuse` or `too-old`".into()),
    }
}

/// How the database is opened.
#[derive(Debug, Args)]
pub struct Open {
    /// Open the database in place: a recovery that is due is run for good, on disk
    #[arg(long)]
    pub recover: bool,
    #[command(flatten)]
    pub memory: Memory,
}

/// Which rows are printed, and how.
#[derive(Debug, Args)]
pub struct DumpOptions {
    /// Only this table: its name in SQL (`people`, `app.people`), or the engine's
    #[arg(long, value_name = "NAME")]
    pub table: Option<String>,
    /// At most so many rows of each table
    #[arg(long, value_name = "N")]
    pub limit: Option<u64>,
    /// Keys and values in hexadecimal; so are --prefix, --from and --to
    #[arg(long)]
    pub hex: bool,
    /// Only keys that start with this (escaped as in the output)
    #[arg(long, value_name = "KEY", conflicts_with_all = ["from", "to"])]
    prefix: Option<String>,
    /// Only keys from this one on
    #[arg(long, value_name = "KEY")]
    from: Option<String>,
    /// Only keys below this one
    #[arg(long, value_name = "KEY")]
    to: Option<String>,
}

impl DumpOptions {
    /// The range of keys.
    pub fn range(&self) -> Result<Range, Failure> {
        let key = |option: &str, text: &Option<String>| -> Result<Option<Vec<u8>>, Failure> {
            let parse = if self.hex {
                escape::parse_hex
            } else {
                escape::parse_text
            };
            let what = if self.hex {
                "hexadecimal"
            } else {
                "escaped text"
            };
            let bytes = text.as_deref().map(|text| {
                parse(text)
                    .ok_or_else(|| Failure::usage(format!("--{option} {text:?} is no {what}")))
            });
            bytes.transpose()
        };
        if let Some(prefix) = key("prefix", &self.prefix)? {
            let end = escape::prefix_end(&prefix).map_or(Bound::Unbounded, Bound::Excluded);
            return Ok((Bound::Included(prefix), end));
        }
        let from = key("from", &self.from)?.map_or(Bound::Unbounded, Bound::Included);
        let to = key("to", &self.to)?.map_or(Bound::Unbounded, Bound::Excluded);
        Ok((from, to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn command_line_is_consistent_in_itself() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn ranges_are_read_as_text_or_hexadecimal() {
        let range = |arguments: &[&str]| {
            let all = [&["vellum", "dump", "db"], arguments].concat();
            match Arguments::try_parse_from(all).unwrap().command {
                Command::Dump { what, .. } => what.range(),
                other => panic!("{other:?}"),
            }
        };
        let prefix = range(&["--prefix", "a\\xff"]).unwrap();
        assert_eq!(prefix.0, Bound::Included(vec![b'a', 255]));
        assert_eq!(prefix.1, Bound::Excluded(vec![b'b']));
        let hex = range(&["--hex", "--from", "00Ff", "--to", "01"]).unwrap();
        assert_eq!(
            hex,
            (Bound::Included(vec![0, 255]), Bound::Excluded(vec![1]))
        );
        assert!(range(&["--hex", "--from", "0"]).is_err());
        assert!(range(&["--from", "a\\q"]).is_err());
    }
}
