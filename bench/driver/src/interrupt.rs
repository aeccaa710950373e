//! Being asked to stop by a signal (control-C, or a polite kill): a run then ends early and is reported, a load ends and what
//! it has not committed is rolled back, and a second signal ends the program at once.
//!
//! Concurrency: one flag that a signal handler sets and runs look at.

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use vellum_workload::engine::{EngineError, Result as EngineResult};

/// The exit code of a program that a signal asked to stop.
pub const EXIT_CODE: u8 = 130;

static REQUESTED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// From now on the signals are requests to stop.
///
/// # Errors
/// The system's, where it lets nobody handle them.
pub fn listen() -> io::Result<()> {
    let requested = REQUESTED.get_or_init(Arc::default);
    for signal in [SIGINT, SIGTERM] {
        // Handlers run in this order: the first request sets the flag only.
        flag::register_conditional_shutdown(signal, EXIT_CODE.into(), requested.clone())?;
        flag::register(signal, requested.clone())?;
    }
    Ok(())
}

/// From now on the program ends at once, as by a second signal, when its standard input does: whoever started it is gone.
pub(crate) fn end_with_input() {
    std::thread::spawn(|| {
        // What comes is nobody's; what cannot be read has ended.
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        // Without handlers of exits, which libraries of engines may have while their threads run.
        signal_hook::low_level::exit(EXIT_CODE.into());
    });
}

/// True once the program was asked to stop.
pub(crate) fn requested() -> bool {
    // Relaxed: nothing is ordered by it.
    REQUESTED
        .get()
        .is_some_and(|requested| requested.load(Ordering::Relaxed))
}

/// For loads: an error once the program was asked to stop.
pub(crate) fn proceed() -> EngineResult<()> {
    if requested() {
        Err(EngineError::Interrupted)
    } else {
        Ok(())
    }
}
