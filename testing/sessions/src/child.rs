//! The processes of a run:
//!
//! - `vellum-sessions-child serve DIRECTORY`: a server, until it is killed;
//! - `vellum-sessions-child session WORKLOAD DIRECTORY PORT LIFE NUMBER SEED`: a session, until the server does not answer; standard output
//!   is a socket of packets, to which every event goes before and after it happens.
#![forbid(unsafe_code)]

use rustix::process::{Signal, set_parent_process_death_signal};
use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::ExitCode;
use vellum_history::Recorder;
use vellum_server::{Server, Settings};
use vellum_sessions::client::{Client, Gone};
use vellum_sessions::packets::Speaker;
use vellum_sessions::run::{SERVES, connect};
use vellum_sessions::workload;

const USAGE: &str = "usage: vellum-sessions-child serve DIRECTORY
       vellum-sessions-child session WORKLOAD DIRECTORY PORT LIFE NUMBER SEED";

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
    // Whoever started this may be killed, too.
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(|error| error.to_string())?;
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["serve", directory] => serve(Path::new(directory)),
        ["session", name, directory, numbers @ ..] => {
            let numbers: Option<Vec<u64>> = numbers.iter().map(|text| text.parse().ok()).collect();
            match numbers.as_deref() {
                Some([port, life, number, seed]) => {
                    let port = u16::try_from(*port).map_err(|error| error.to_string())?;
                    talk(name, Path::new(directory), port, [*life, *number, *seed])
                }
                _ => Err(USAGE.into()),
            }
        }
        _ => Err(USAGE.into()),
    }
}

/// A server with few frames, whose log is written often.
fn serve(directory: &Path) -> Result<(), String> {
    let settings = Settings {
        data: directory.into(),
        listen: vec!["127.0.0.1:0".into()],
        unix_socket: false,
        log: "error".into(),
        pool_mib: 16,
        ..Settings::default()
    };
    let server = Server::start(settings).map_err(|error| error.to_string())?;
    println!("{SERVES}{}", server.addresses()[0].port());
    loop {
        std::thread::park();
    }
}

fn talk(
    name: &str,
    directory: &Path,
    port: u16,
    [life, number, seed]: [u64; 3],
) -> Result<(), String> {
    let workload = workload(name).ok_or(USAGE)?;
    let mouth = std::io::stdout().as_fd().try_clone_to_owned();
    let mouth = File::from(mouth.map_err(|error| error.to_string())?);
    let place = u8::try_from(number).map_err(|error| error.to_string())?;
    let recorder = Recorder::streaming(Box::new(Speaker::new(mouth, place)));
    // The server may be gone by now; the parent knows when it is there.
    let Ok(connection) = connect(port, directory) else {
        return Ok(());
    };
    let mut client = Client::new(connection, recorder.session(), life, number, seed);
    loop {
        match workload.step(&mut client) {
            Ok(()) => {}
            Err(Gone::Closed) => return Ok(()),
            Err(Gone::Wrong(what)) => return Err(format!("session {number}: {what}")),
        }
    }
}
