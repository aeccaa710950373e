//! The system's limit of a file's size (`ulimit -f`): the signal that comes with the error.
//!
//! A write beyond the limit fails with "file too large", and before that SIGXFSZ is sent, which ends the process: for a database that is
//! a crash where an error to one caller is due. The disposition of a signal is the whole process's, so opening a database does not
//! change it: a program says so when it starts.

use signal_hook::consts::SIGXFSZ;
use signal_hook::flag;
use std::io;

/// From now on a write beyond the limit of a file's size is an error of that write and ends no process. For programs, before they open a
/// database; whoever embeds one in a process of theirs decides by themselves.
///
/// # Errors
/// The system's, where it lets nobody handle the signal.
pub fn outlive_file_limits() -> io::Result<()> {
    // A handler that does nothing of use: the write goes on to fail. (An ignored signal would be inherited by programs that
    // this one starts.)
    flag::register(SIGXFSZ, std::sync::Arc::default()).map(drop)
}
