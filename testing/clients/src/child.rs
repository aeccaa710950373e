//! The child of the runs over kills: `vellum-clients-child WORKLOAD DIRECTORY LIFE SESSIONS SEED`. It opens the database, runs the sessions for
//! ever, and writes every event to its standard output before and after it happens. It is killed by its parent; whatever else ends it is a
//! complaint.
#![forbid(unsafe_code)]

use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::process::ExitCode;
use vellum::Database;
use vellum_base::random::Random;
use vellum_clients::run::{OPENED, config, live, verified};
use vellum_clients::{Plan, workload};
use vellum_history::Recorder;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(what) => {
            eprintln!("{what}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let usage = "usage: vellum-clients-child WORKLOAD DIRECTORY LIFE SESSIONS SEED";
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, directory, numbers @ ..] = arguments.as_slice() else {
        return Err(usage.into());
    };
    let numbers: Option<Vec<u64>> = numbers.iter().map(|text| text.parse().ok()).collect();
    let (Some(workload), Some([life, sessions, seed])) = (workload(name), numbers.as_deref())
    else {
        return Err(usage.into());
    };
    // Not buffered: what was said is said.
    let pipe = std::io::stdout().as_fd().try_clone_to_owned();
    let mut pipe = File::from(pipe.map_err(|error| error.to_string())?);
    let database = Database::open(directory, config(*seed)).map_err(|error| error.to_string())?;
    // What the kill before left.
    verified(&database)?;
    workload
        .prepare(&database)
        .map_err(|error| error.to_string())?;
    pipe.write_all(OPENED).map_err(|error| error.to_string())?;
    let recorder = Recorder::streaming(Box::new(pipe));
    let random = &mut Random::new(*seed);
    let plan = Plan {
        sessions: *sessions as usize,
        holders: 1,
        steps: u64::MAX,
        lives: 1,
        seed: *seed,
        versions: None,
    };
    // This process is killed, its disk is sound: no failure is excused, and none of its sessions ends.
    live(
        &*workload,
        &database,
        &recorder,
        *life,
        plan,
        random,
        &|| false,
    )?;
    Err("all sessions ended".into())
}
