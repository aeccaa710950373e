//! The program.

use std::io::{IsTerminal, sink, stderr, stdout};
use std::process::ExitCode;
use vellum_bench::{Output, run};
use vellum_workload::reference::Reference;

fn main() -> ExitCode {
    let (mut out, mut err) = (stdout(), stderr());
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
        |_| Ok(Reference::new()),
        Output { lines, table },
    ))
}
