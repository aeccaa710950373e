//! `vellum`: serves databases, and looks at closed ones. What it does is documented in docs/operating.
//!
//! | question | where |
//! | --- | --- |
//! | commands and their options | args.rs |
//! | what `verify` and `stat` print | report.rs |
//! | names of SQL, and its indexes | relations.rs |
//! | rows as text | dump.rs, escape.rs |
//! | a server | serve.rs |
//! | statements in this process | shell |
//! | exit codes | exit.rs |
//!
//! What looks at closed databases writes nothing to them, but for `--recover`.
#![forbid(unsafe_code)]

/// A line for whoever reads what goes wrong; nobody may, and that changes nothing.
macro_rules! complain {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        // A closed pipe, a full disk: there is nowhere left to tell it.
        let _ = writeln!(std::io::stderr(), $($text)*);
    }};
}
pub(crate) use complain;

mod args;
mod dump;
mod escape;
mod exit;
mod relations;
mod report;
mod serve;
mod shell;

use args::{Arguments, Command, Memory, Open};
use clap::Parser;
use exit::Failure;
use relations::Relations;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;
use vellum::{Config, Database, Inspection, Report, verify_path};

/// Statements allocate much and shortly, on many threads: a tenth of a COPY's time was the C library's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // Usage errors end the process here, with code 2.
    let arguments = Arguments::parse();
    if let Err(error) = vellum::outlive_file_limits() {
        crate::complain!("vellum: a limit of file sizes will end it: {error}");
    }
    let mut out = BufWriter::new(io::stdout().lock());
    let result = run(&arguments.command, &mut out).and_then(|sound| match out.flush() {
        // Everything was done that there was to do.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(sound),
        done => done.map(|()| sound).map_err(Failure::from),
    });
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => exit::FAILED.into(),
        // Whoever read the output has seen enough: of what only prints. What changes something does not end by it.
        Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(failure) => {
            crate::complain!("vellum: {failure}");
            failure.code().into()
        }
    }
}

/// Runs a command; false if it found something wrong.
fn run(command: &Command, out: &mut dyn Write) -> Result<bool, Failure> {
    match command {
        Command::Serve { options } => serve::run(options, out),
        Command::Sql { options } => shell::run(options, out),
        Command::Verify {
            directory,
            json,
            memory,
        } => {
            let mut report = inspect(directory, memory, true)?;
            relations::verify(directory, memory, &mut report)?;
            if *json {
                let relations = Relations::reported(directory, memory, &report);
                writeln!(out, "{:#}", report::json(directory, &report, &relations))?;
            } else {
                report::write_verified(out, directory, &report)?;
            }
            Ok(report.is_sound() && report.is_complete())
        }
        Command::Stat {
            directory,
            json,
            memory,
        } => {
            let report = inspect(directory, memory, false)?;
            let relations = Relations::reported(directory, memory, &report);
            if *json {
                writeln!(out, "{:#}", report::json(directory, &report, &relations))?;
            } else {
                report::write_figures(out, directory, &report, &relations)?;
            }
            Ok(report.is_sound() && report.is_complete())
        }
        Command::Dump {
            directory,
            what,
            open,
        } => {
            let range = what.range()?;
            let database = open_database(directory, open)?;
            dump::write(out, &database, what, &range)?;
            close(database)
        }
        Command::Backup {
            directory,
            target,
            open,
        } => {
            let database = open_database(directory, open)?;
            database.backup(target).map_err(Failure::backup)?;
            writeln!(
                out,
                "{} is a copy of {}",
                target.display(),
                directory.display()
            )?;
            close(database)
        }
    }
}

fn inspect(directory: &Path, memory: &Memory, compare: bool) -> Result<Report, Failure> {
    let inspection = Inspection::default()
        .pool_bytes(memory.pool_bytes())
        .memory_bytes(memory.memory_bytes())
        .compare_indexes(compare);
    verify_path(directory, inspection).map_err(|error| Failure::database(directory, error))
}

/// Opens a database that must exist: without writing to it, or in place.
fn open_database(directory: &Path, open: &Open) -> Result<Database, Failure> {
    let mut config = Config::default().pool_bytes(open.memory.pool_bytes());
    config.create = false;
    let opened = if open.recover {
        Database::open(directory, config)
    } else {
        Database::open_detached(directory, config, open.memory.memory_bytes())
    };
    opened.map_err(|error| Failure::opening(directory, error, open.recover))
}

/// Closes a database; an error of a last checkpoint is the command's.
fn close(database: Database) -> Result<bool, Failure> {
    database.close().map(|()| true).map_err(Failure::from)
}
