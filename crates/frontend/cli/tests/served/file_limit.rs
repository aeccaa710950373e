//! A limit of file sizes (`ulimit -f`) is an error to who needs more, and ends no process.

use crate::program::{Program, command, end};
use rustix::process::Signal;
use std::process::{Command, Output};

/// Runs a command under a limit of 32 or 64 MiB (blocks have 512 bytes or 1 KiB): enough for the log and the first pages.
fn limited(program: &Command) -> Command {
    let mut limited = Command::new("sh");
    limited
        .args(["-c", "ulimit -f 65536; exec \"$0\" \"$@\""])
        .arg(program.get_program())
        .args(program.get_args());
    limited
}

/// Rows of 4 KiB that a statement adds.
const ROWS: i64 = 1024;
const GROW: &str =
    "INSERT INTO t SELECT n::text || repeat('x', 4000) FROM generate_series(1, 1024) AS s(n)";

fn sql(directory: &std::path::Path, statements: &[&str], is_limited: bool) -> Output {
    let mut sql = Command::new(env!("CARGO_BIN_EXE_vellum"));
    sql.arg("sql").arg("--data").arg(directory).arg("--quiet");
    for statement in statements {
        sql.args(["-c", statement]);
    }
    if is_limited {
        sql = limited(&sql);
    }
    sql.output().unwrap()
}

#[test]
fn statement_that_meets_a_limit_of_file_sizes_fails_and_the_shell_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let mut statements = vec!["CREATE TABLE t (v text)"];
    statements.extend([GROW; 24]);
    let limited = sql(directory.path(), &statements, true);
    let text = String::from_utf8_lossy(&limited.stderr);
    // None: a signal ended it.
    assert_eq!(limited.status.code(), Some(1), "{text}");
    assert!(text.contains("ERROR"), "{text}");
    let count = ["SELECT count(*) > 0 AND count(*) % 1024 = 0 AS whole FROM t"];
    for is_limited in [true, false] {
        let seen = sql(directory.path(), &count, is_limited);
        let text = String::from_utf8_lossy(&seen.stdout).into_owned();
        assert!(text.contains(" t"), "{text} {seen:?}");
    }
    let grown = sql(directory.path(), &[GROW], false);
    assert_eq!(grown.status.code(), Some(0), "{grown:?}");
}

#[test]
fn server_whose_log_nobody_reads_serves_on() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("db");
    let (reader, writer) = std::io::pipe().unwrap();
    let mut unread = command(&directory, &["--log", "trace"]);
    unread.stderr(writer);
    let mut server = Program::start(unread);
    drop(reader);
    let password = std::fs::read_to_string(directory.join("password")).unwrap();
    for _ in 0..3 {
        let mut client = postgres::Config::new()
            .host("127.0.0.1")
            .port(server.port())
            .user("vellum")
            .password(password.trim_end())
            .connect(postgres::NoTls)
            .unwrap();
        let row = client.query_one("SELECT 7::bigint", &[]).unwrap();
        assert_eq!(row.get::<_, i64>(0), 7);
    }
    server.signal(Signal::TERM);
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
}

#[test]
fn server_that_meets_a_limit_of_file_sizes_tells_its_client_and_serves_on() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("db");
    let mut limited = limited(&command(&directory, &[]));
    limited
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let server = Program::start(limited);
    let password = std::fs::read_to_string(directory.join("password")).unwrap();
    let connect = || {
        postgres::Config::new()
            .host("127.0.0.1")
            .port(server.port())
            .user("vellum")
            .password(password.trim_end())
            .connect(postgres::NoTls)
            .unwrap()
    };
    let (mut writer, mut reader) = (connect(), connect());
    writer.batch_execute("CREATE TABLE t (v text)").unwrap();
    let mut done = 0_i64;
    let error = loop {
        match writer.batch_execute(GROW) {
            Ok(()) => done += ROWS,
            Err(error) => break error,
        }
        assert!(done < 100_000, "there is a limit");
    };
    let error = error.as_db_error().expect("an error of the server");
    assert_eq!(error.code().code(), "53100", "{error}");
    for client in [&mut writer, &mut reader, &mut connect()] {
        let row = client.query_one("SELECT count(*) FROM t", &[]).unwrap();
        assert_eq!(row.get::<_, i64>(0), done);
    }
    drop((writer, reader));
    server.signal(Signal::TERM);
    let (code, text) = end(server.child);
    // A checkpoint that needs no larger file ends it in good order; no signal did.
    assert!(code == 0 || code == 1, "{code}: {text}");
}
