//! The child of `crash_kill_…`: opens the database in the directory that is its argument, commits
//! with several threads for ever, and says so on its standard output. It is killed by its parent.
#![forbid(unsafe_code)]

use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::time::Duration;
use vellum::{Database, Result};
use vellum_crash::ledger::{Notice, THREADS};
use vellum_crash::load::{commit_for_ever, config, prepare};

fn main() -> ExitCode {
    let Some(directory) = std::env::args_os().nth(1) else {
        eprintln!("usage: vellum-crash-child DIRECTORY");
        return ExitCode::from(2);
    };
    let pipe = match std::io::stdout().as_fd().try_clone_to_owned() {
        Ok(pipe) => &File::from(pipe),
        Err(error) => {
            eprintln!("standard output: {error}");
            return ExitCode::FAILURE;
        }
    };
    let run = || -> Result<()> {
        let database = Database::open(&directory, config())?;
        say(pipe, Notice::Opened);
        prepare(&database)?;
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS)
                .map(|thread| {
                    scope.spawn({
                        let database = &database;
                        move || {
                            let result =
                                commit_for_ever(database, thread, &|notice| say(pipe, notice));
                            // The parent must hear of it although the other threads go on.
                            if let Err(error) = &result {
                                eprintln!("thread {thread}: {error}");
                                std::process::exit(1);
                            }
                            result
                        }
                    })
                })
                .collect();
            scope.spawn(|| {
                loop {
                    std::thread::sleep(Duration::from_millis(20));
                    if let Err(error) = database.checkpoint() {
                        eprintln!("checkpoint: {error}");
                        std::process::exit(1);
                    }
                }
            });
            drop(threads);
        });
        Ok(())
    };
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// One write to a pipe is whole or not at all, if nothing buffers: the standard output splits at line ends.
fn say(mut pipe: &File, notice: Notice) {
    // Fails only if the parent is gone, which kills this process, too.
    let _ = pipe.write_all(&notice.encode());
}
