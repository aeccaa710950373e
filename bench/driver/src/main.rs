//! The program.

use std::io::{IsTerminal, Write, sink, stderr, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use vellum_bench::vellum_engine;
use vellum_bench::{Output, interrupt, run};

fn main() -> ExitCode {
    let (mut out, mut err) = (stdout(), stderr());
    if let Err(error) = interrupt::listen() {
        // The run is as good without.
        let _ = writeln!(
            err,
            "vellum-bench: an interrupt will end it without a report: {error}"
        );
    }
    if let Err(error) = vellum::outlive_file_limits() {
        let _ = writeln!(
            err,
            "vellum-bench: a limit of file sizes will end it: {error}"
        );
    }
    // A person sees a progress bar and the table; a pipe gets the samples.
    let (lines, table): (&mut dyn Write, &mut dyn Write) = if out.is_terminal() {
        (&mut sink(), &mut out)
    } else {
        (&mut out, &mut err)
    };
    ExitCode::from(run(
        std::env::args_os(),
        vellum_engine::open,
        Output {
            lines,
            table,
            program: program(),
        },
    ))
}

/// The file that this process runs, also where another one has taken its name or it has none any more.
fn program() -> Option<PathBuf> {
    let own = Path::new("/proc/self/exe");
    match own.exists() {
        true => Some(own.to_owned()),
        false => std::env::current_exe().ok(),
    }
}
