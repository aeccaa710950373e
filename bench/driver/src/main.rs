//! The program.

use std::io::{IsTerminal, Write, sink, stderr, stdout};
use std::process::ExitCode;
use vellum_bench::vellum_engine::VellumEngine;
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
    let output = if out.is_terminal() {
        &mut Output {
            lines: &mut sink(),
            table: &mut out,
        }
    } else {
        &mut Output {
            lines: &mut out,
            table: &mut err,
        }
    };
    let Output { lines, table } = output;
    ExitCode::from(run(
        std::env::args_os(),
        VellumEngine::open,
        Output { lines, table },
    ))
}
