//! The bench program: loads a database where there is none, runs a workload on it with threads,
//! measures, checks that the data is what it must be, and reports.
//!
//! Standard output carries a JSON line a second (on a terminal: a progress bar and a table),
//! `--json FILE` the summary. Generic over the engine: `main` hands in Vellum, tests a slow one in
//! memory.
//!
//! Exit codes: 0 done and consistent, 1 failed or inconsistent, 2 wrong usage, 130 interrupted (and reported, but for a load or a figure).
#![forbid(unsafe_code)]

mod benchmarks;
mod charts;
pub mod cli;
mod compare;
mod control;
pub mod device;
mod directory;
mod disk;
pub mod engines;
mod failure;
mod figure;
mod flags;
mod hekaton;
mod hold;
mod hot;
pub mod interrupt;
mod kv;
mod load;
pub mod machine;
mod measure;
mod median;
mod output;
mod plot;
mod process;
mod progress;
mod queue;
mod ratio;
mod report;
mod scan;
mod tatp;
mod tpcc;
pub mod vellum_engine;

use clap::Parser;
use cli::{Cli, Command, FigureName, Settings, Workload};
use directory::Claim;
use engines::{EngineName, Engines, Runner};
pub use failure::Failure;
use measure::Limit;
use output::OutputFile;
use process::Processes;
use report::Summary;
use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;
use vellum_workload::engine::{Engine, Result as EngineResult, TableSpec};

/// Where a run tells what it does.
pub struct Output<'o> {
    /// A JSON line for each sample.
    pub lines: &'o mut dyn Write,
    /// The table at the end, and errors.
    pub table: &'o mut dyn Write,
    /// This program's file, as long as this process is there: each run of a comparison is a process of it. Without one, they
    /// are part of this process.
    pub program: Option<PathBuf>,
}

/// Runs the program with `arguments` (the program's name first) on the engine that `open` opens.
/// Returns the exit code.
pub fn run<E: Engine>(
    arguments: impl IntoIterator<Item = OsString>,
    open: impl FnMut(&Settings) -> EngineResult<E>,
    output: Output<'_>,
) -> u8 {
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are no errors: standard output and code 0. Nothing can be told if
            // the output is gone.
            let _ = error.print();
            return u8::try_from(error.exit_code()).unwrap_or(2);
        }
    };
    let Output {
        lines,
        table,
        program,
    } = output;
    let fits = cli.command.check().map_err(Failure::Usage);
    let result = fits.and_then(|()| match &cli.command {
        Command::Run(workload) => execute(workload, open, lines, table),
        Command::Figure(figure) if figure.which == FigureName::One => {
            figure::beside_peers(figure, &mut *runner(open, program), lines, table)
        }
        Command::Figure(figure) => figure::run(figure, open, lines, table),
        Command::Compare(compare) => {
            compare::run(compare, &mut *runner(open, program), lines, table)
        }
        Command::Report(report) => {
            benchmarks::run(report, &mut *runner(open, program), lines, table)
        }
    });
    match result {
        Ok(true) if interrupt::requested() => interrupt::EXIT_CODE,
        Ok(true) => 0,
        Ok(false) => 1,
        Err(failure) => {
            let _ = writeln!(table, "vellum-bench: {failure}");
            failure.exit_code()
        }
    }
}

/// Who runs the engines of a comparison.
fn runner<'r, E: Engine + 'r>(
    open: impl FnMut(&Settings) -> EngineResult<E> + 'r,
    program: Option<PathBuf>,
) -> Box<dyn Runner + 'r> {
    match program {
        Some(program) => Box::new(Processes::new(program, std::io::stderr())),
        None => Box::new(Engines::new(open)),
    }
}

/// Returns whether the data is consistent (or was not asked).
fn execute<E: Engine>(
    workload: &Workload,
    open: impl FnMut(&Settings) -> EngineResult<E>,
    lines: &mut dyn Write,
    table: &mut dyn Write,
) -> Result<bool, Failure> {
    let common = workload.common();
    if common.end_with_input {
        interrupt::end_with_input();
    }
    let file = |path: &Option<_>| path.as_deref().map(OutputFile::create).transpose();
    let (json, plot) = (file(&common.json)?, file(&common.plot)?);
    let summary = engines::measure_on(common.engine, workload, open, lines)?;
    if let Some(json) = json {
        json.write(&report::json(&summary)?)?;
    }
    if let Some(plot) = plot {
        plot.write(&plot::picture(&summary.charts()))?;
    }
    report::print_table(&summary, table).map_err(|source| Failure::File {
        action: "write",
        path: "the table".into(),
        source,
    })?;
    Ok(summary.is_consistent())
}

/// Opens the engine, runs a workload on it, and closes it.
fn measure_workload<E: Engine>(
    engine_name: EngineName,
    workload: &Workload,
    mut open: impl FnMut(&Settings) -> EngineResult<E>,
    lines: &mut dyn Write,
) -> Result<Summary, Failure> {
    let common = workload.common();
    let settings = workload.settings();
    if common.check && !directory::has_entries(&settings.data) {
        return Err(Failure::Usage(format!(
            "--check needs a database, {} holds none",
            settings.data.display()
        )));
    }
    // Until the engine is closed.
    let claim = Claim::take(&settings.data, engine_name)?;
    let start = Instant::now();
    let mut engine = open(&settings).map_err(|source| Failure::Engine {
        action: format!("open {}", settings.data.display()),
        source,
    })?;
    let open_s = start.elapsed().as_secs_f64();
    claim.opened()?;
    fits(workload, &settings, &engine)?;
    let mut summary = Summary::new(workload, &settings, &engine.describe());
    if engine_name.is_server() {
        summary.of_a_client();
    }
    summary.open_s = (open_s * 1e3).round() / 1e3;
    let context = Context {
        common,
        settings: &settings,
    };
    let ended = match workload {
        Workload::Tpcc(arguments) => {
            tpcc::run(&mut engine, arguments, &context, &mut summary, lines)
        }
        Workload::Tatp(arguments) => {
            tatp::run(&mut engine, arguments, &context, &mut summary, lines)
        }
        Workload::Kv(arguments) => kv::run(&mut engine, arguments, &context, &mut summary, lines),
        Workload::Queue(arguments) => {
            queue::run(&mut engine, arguments, &context, &mut summary, lines)
        }
        Workload::Hot(arguments) => hot::run(&mut engine, arguments, &context, &mut summary, lines),
        Workload::Load(arguments) => {
            load::run(&mut engine, arguments, &context, &mut summary, lines)
        }
        Workload::Scan(arguments) => {
            scan::run(&mut engine, arguments, &context, &mut summary, lines)
        }
        Workload::Hekaton(arguments) => {
            hekaton::run(&mut engine, arguments, &context, &mut summary, lines)
        }
    };
    if common.check {
        // What cannot be looked at before the check is not consistent either.
        context.check(&mut summary, || ended.map(|()| Vec::new()))?;
    } else {
        ended?;
    }
    summary.finish();
    Ok(summary)
}

/// Refuses a directory that another workload made, and a page size that is not the directory's.
fn fits<E: Engine>(workload: &Workload, settings: &Settings, engine: &E) -> Result<(), Failure> {
    let data = settings.data.display();
    let described = engine.describe();
    let page_size = described.settings.iter().find(|s| s.0 == "page_size");
    if let (Some(asked), Some((_, has))) = (settings.page_size, page_size)
        && *has != asked.to_string()
    {
        return Err(Failure::Usage(format!(
            "{data} has pages of {has} bytes, not {asked}: give no --page-size, or another --data"
        )));
    }
    let listed = engine
        .table_names()
        .map_err(Failure::engine("list the tables"))?;
    let Some(names) = listed else {
        return Ok(());
    };
    let kinds: [(&str, &[TableSpec]); 5] = [
        ("TPC-C", vellum_workload::tpcc::schema::TABLES),
        ("rows of kv", vellum_workload::kv::TABLES),
        ("a queue", vellum_workload::queue::TABLES),
        ("TATP", vellum_workload::tatp::schema::TABLES),
        ("rows of hekaton", vellum_workload::hekaton::TABLES),
    ];
    let own = kinds.into_iter().find(|kind| kind.1 == workload.tables());
    let own = own.expect("every workload's tables are among them");
    let is_of = |name: &String, tables: &[TableSpec]| tables.iter().any(|spec| spec.name == name);
    let Some(other) = names.iter().find(|name| !is_of(name, own.1)) else {
        if names.is_empty() && workload.common().check {
            return Err(Failure::Usage(format!(
                "{data} holds no {}",
                own.0.trim_start_matches("a ")
            )));
        }
        return Ok(());
    };
    let kind = kinds.iter().find(|(_, tables)| is_of(other, tables));
    let held = kind.map_or_else(|| format!("table {other:?}"), |kind| kind.0.to_owned());
    Err(Failure::Usage(format!(
        "{data} holds {held}, not {}: give another --data",
        own.0
    )))
}

/// What every workload gets.
struct Context<'c> {
    common: &'c cli::Common,
    settings: &'c Settings,
}

impl Context<'_> {
    /// When a run ends.
    fn limit(&self) -> Limit {
        self.common.limit()
    }

    /// Tells each second: as a line, and on the progress bar.
    fn on_sample(
        &self,
        lines: &mut dyn Write,
    ) -> impl FnMut(&measure::Sample) -> Result<(), Failure> {
        let bar = match self.limit() {
            Limit::Seconds(seconds) => progress::seconds(Some(seconds)),
            Limit::Operations(_) => progress::seconds(None),
        };
        move |sample| {
            progress::second(&bar, sample.tx, sample.rows, sample.aborts);
            report::print_sample(sample, lines)
        }
    }

    /// Adds to the summary what a check finds wrong. Data that the engine cannot read is wrong, too: a finding, and the
    /// summary is written.
    fn check(
        &self,
        summary: &mut Summary,
        check: impl FnOnce() -> Result<Vec<String>, Failure>,
    ) -> Result<(), Failure> {
        match check() {
            Ok(violations) => summary.checked(violations),
            Err(failure @ Failure::Engine { .. }) => summary.checked(vec![failure.to_string()]),
            Err(failure) => return Err(failure),
        }
        Ok(())
    }

    /// Measures the device's random reads where the data is larger than the pool.
    fn measure_reads(&self, summary: &mut Summary) -> Result<(), Failure> {
        let directory = &self.settings.data;
        let largest = device::largest_file(directory);
        if largest.is_some_and(|file| file.occupied > self.settings.pool_bytes) {
            let page_size = self
                .settings
                .page_size
                .map_or(PAGE_SIZE, |size| size as usize);
            let threads = self.common.threads;
            let rate = device::reads_per_second(directory, page_size, threads, READ_TIME)?;
            summary.device_reads_per_s = rate.map(report::rounded);
        }
        Ok(())
    }
}

/// What is read of the device where the engine does not tell its page size.
const PAGE_SIZE: usize = 8192;
/// How long the device is read.
const READ_TIME: std::time::Duration = std::time::Duration::from_millis(1500);
