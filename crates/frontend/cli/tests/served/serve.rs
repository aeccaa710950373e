//! `vellum serve` as a program: what it prints, who gets in, how it ends.

use crate::program::{Program, command, end};
use rustix::process::Signal;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(60);

/// A client with the password that is written in `directory`.
fn client(program: &Program, directory: &Path) -> postgres::Client {
    let password = std::fs::read_to_string(directory.join("password")).unwrap();
    let client = postgres::Config::new()
        .host("127.0.0.1")
        .port(program.port())
        .user("vellum")
        .password(password.trim_end())
        .connect_timeout(LONG)
        .connect(postgres::NoTls);
    client.unwrap()
}

/// Lets one in.
fn let_in(program: &Program, directory: &Path) {
    drop(client(program, directory));
}

#[test]
fn slow_statements_are_logged_with_their_text_however_they_were_sent() {
    let folder = tempfile::tempdir().unwrap();
    let server = Program::start(command(folder.path(), &["--log-statements-ms", "0"]));
    let mut client = client(&server, folder.path());
    client.batch_execute("select 'simple'").unwrap();
    let row = client.query_one("select $1::text || 'extended'", &[&"x"]);
    assert_eq!(row.unwrap().get::<_, &str>(0), "xextended");
    drop(client);
    server.signal(Signal::TERM);
    let (code, log) = end(server.child);
    assert_eq!(code, 0, "{log}");
    for text in ["select 'simple'", "select $1::text || 'extended'"] {
        assert!(log.contains(text), "{log}");
    }
}

/// A COPY is over when its client has sent all, and what stands behind it in its text has run.
#[test]
fn a_copy_is_logged_and_counted_when_it_is_over() {
    let folder = tempfile::tempdir().unwrap();
    let more = ["--log-statements-ms", "40"];
    let server = Program::start(command(folder.path(), &more));
    let mut client = client(&server, folder.path());
    client.batch_execute("create table t (a int)").unwrap();
    let mut writer = client.copy_in("copy t from stdin").unwrap();
    std::io::Write::write_all(&mut writer, b"1\n").unwrap();
    std::io::Write::flush(&mut writer).unwrap();
    std::thread::sleep(Duration::from_millis(50));
    writer.finish().unwrap();
    drop(client);
    server.signal(Signal::TERM);
    let (code, log) = end(server.child);
    assert_eq!(code, 0, "{log}");
    let is_told =
        |line: &str| line.contains("copy t from stdin") && line.contains(" statement process=");
    assert!(log.lines().any(is_told), "{log}");
}

#[test]
fn no_password_is_shown_of_statements() {
    let folder = tempfile::tempdir().unwrap();
    let server = Program::start(command(folder.path(), &["--log-statements-ms", "0"]));
    let mut client = client(&server, folder.path());
    client
        .batch_execute("create role ada; alter role ada password 's3cret' login")
        .unwrap();
    client
        .execute("ALTER ROLE ada PASSWORD E's3cret'", &[])
        .unwrap();
    let last = "select query from pg_stat_activity where pid = any($1)";
    let mut other = self::client(&server, folder.path());
    let row = client
        .query_one("select array[pg_backend_pid()]", &[])
        .unwrap();
    let pids: Vec<i32> = row.get(0);
    client
        .batch_execute("do $$ begin execute 'alter role ada password ''s3cret'''; end $$")
        .unwrap();
    let row = other.query_one(last, &[&pids]).unwrap();
    let shown = "do $$ begin execute 'alter role ada password '********''; end $$";
    assert_eq!(row.get::<_, &str>(0), shown);
    drop((client, other));
    server.signal(Signal::TERM);
    let (code, log) = end(server.child);
    assert_eq!(code, 0, "{log}");
    assert!(!log.contains("s3cret"), "{log}");
    for text in [
        "alter role ada password '********' login",
        "ALTER ROLE ada PASSWORD '********'",
    ] {
        assert!(log.contains(text), "{log}");
    }
}

#[test]
fn a_handshake_that_fails_is_logged() {
    let folder = tempfile::tempdir().unwrap();
    let server = Program::start(command(folder.path(), &["--tls"]));
    // An SSLRequest, and what is no TLS, until the server has closed.
    let script = format!(
        "exec 3<>/dev/tcp/127.0.0.1/{}; printf '\\0\\0\\0\\010\\004\\322\\026\\057no TLS at all, but long enough' >&3; cat <&3",
        server.port()
    );
    let shell = std::process::Command::new("bash")
        .args(["-c", &script])
        .output();
    shell.unwrap();
    server.signal(Signal::TERM);
    let (code, log) = end(server.child);
    assert_eq!(code, 0, "{log}");
    let line = log
        .lines()
        .find(|line| line.contains("login failed: no TLS"));
    assert!(
        line.is_some_and(|line| line.contains("address=127.0.0.1:")),
        "{log}"
    );
}

/// The text that a failed login is logged with has names in it that the client chose.
#[test]
fn nobody_writes_lines_of_the_log_by_a_name() {
    let folder = tempfile::tempdir().unwrap();
    let rules = folder.path().join("rules");
    std::fs::write(&rules, "host vellum all 127.0.0.1/32 scram-sha-256\n").unwrap();
    let data = folder.path().join("db");
    let rules = rules.to_str().unwrap();
    let server = Program::start(command(&data, &["--host-rules", rules]));
    let forged = "1999-12-31T00:00:00.000000Z  INFO login of vellum\r";
    let name = format!("eve\n{forged}\n");
    for database in ["vellum", &name] {
        let refused = postgres::Config::new()
            .host("127.0.0.1")
            .port(server.port())
            .user(&name)
            .dbname(database)
            .password("x")
            .connect_timeout(LONG)
            .connect(postgres::NoTls);
        assert!(refused.is_err());
    }
    server.signal(Signal::TERM);
    let (code, log) = end(server.child);
    assert_eq!(code, 0, "{log}");
    let mut lines = log.split(['\n', '\r']);
    let is_forged = |line: &str| line.starts_with("1999-12-31T00:00:00.0");
    assert!(!lines.any(is_forged), "{log}");
    assert_eq!(log.matches("login failed: ").count(), 2, "{log}");
    assert!(log.contains("eve\\n1999"), "{log}");
}

#[test]
fn it_says_how_to_connect_and_ends_in_good_order() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("db");
    let first = Program::start(command(&directory, &[]));
    let_in(&first, &directory);
    let password = directory.join("password");
    assert!(password.is_file());
    let told = first
        .said
        .iter()
        .any(|line| line.contains("password of `vellum` was made"));
    assert!(told, "{:?}", first.said);
    let expected = format!(
        "connect with: PGPASSWORD=$(cat {}) psql -h 127.0.0.1 -p {} -U vellum vellum",
        password.display(),
        first.port()
    );
    assert_eq!(first.said.last(), Some(&expected));
    first.signal(Signal::TERM);
    let (code, log) = end(first.child);
    assert_eq!(code, 0, "{log}");
    // Closed in good order: what looks at closed databases finds nothing to recover.
    let stat = Command::new(env!("CARGO_BIN_EXE_vellum"))
        .args(["stat", "--json"])
        .arg(&directory)
        .output()
        .unwrap();
    let report: serde_json::Value = serde_json::from_slice(&stat.stdout).unwrap();
    assert_eq!(report["recovery"], "not due");
    let second = Program::start(command(&directory, &[]));
    assert!(!second.said.iter().any(|line| line.contains("was made")));
    second.signal(Signal::INT);
    assert_eq!(end(second.child).0, 0);
}

#[test]
fn crash_a_server_that_was_killed_starts_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut first = Program::start(command(folder.path(), &[]));
    first.child.kill().unwrap();
    first.child.wait().unwrap();
    let second = Program::start(command(folder.path(), &[]));
    let_in(&second, folder.path());
    second.signal(Signal::TERM);
    assert_eq!(end(second.child).0, 0);
}

/// Symptom: the signal was kept for later, and a server that was recovering a large log could only be killed.
#[test]
fn regress_a_signal_ends_a_server_that_is_still_starting() {
    let folder = tempfile::tempdir().unwrap();
    // A start that goes on until somebody writes the rules.
    let rules = folder.path().join("rules");
    let made = Command::new("mkfifo").arg(&rules).status().unwrap();
    assert!(made.success());
    for signal in [Signal::TERM, Signal::INT] {
        let database = folder.path().join("db");
        let mut server = command(&database, &["--host-rules", rules.to_str().unwrap()])
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(500));
        assert!(server.try_wait().unwrap().is_none());
        rustix::process::kill_process(rustix::process::Pid::from_child(&server), signal).unwrap();
        let begun = std::time::Instant::now();
        while server.try_wait().unwrap().is_none() {
            assert!(begun.elapsed() < LONG, "it goes on");
            std::thread::sleep(Duration::from_millis(10));
        }
        let (code, log) = end(server);
        assert_eq!(code, 0, "{log}");
        assert!(log.contains("stopped before anything was served"), "{log}");
        assert!(!database.exists());
    }
}

/// Symptom: `vellum serve | head -1` ended at once, with code 0 and without closing the database.
#[test]
fn regress_a_server_goes_on_when_nobody_reads_what_it_prints() {
    let folder = tempfile::tempdir().unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut server = command(folder.path(), &[]).stdout(writer).spawn().unwrap();
    let begun = std::time::Instant::now();
    let is_there = || {
        let entries = std::fs::read_dir(folder.path()).unwrap();
        let mut names = entries.map(|entry| entry.unwrap().file_name());
        names.any(|name| name.to_string_lossy().starts_with(".s.PGSQL."))
    };
    while !is_there() {
        assert!(begun.elapsed() < LONG && server.try_wait().unwrap().is_none());
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_millis(500));
    assert!(server.try_wait().unwrap().is_none());
    rustix::process::kill_process(rustix::process::Pid::from_child(&server), Signal::TERM).unwrap();
    let (code, log) = end(server);
    assert_eq!(code, 0, "{log}");
    assert!(
        log.contains("nobody reads") && log.contains("stopped"),
        "{log}"
    );
}

#[test]
fn a_database_that_must_be_there_is_not_made() {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("not/there");
    let (code, log) = end(command(&database, &["--create", "false"]).spawn().unwrap());
    assert_eq!(code, 4, "{log}");
    assert!(!folder.path().join("not").exists());
    let made = Program::start(command(&database, &[]));
    made.signal(Signal::TERM);
    let (code, log) = end(made.child);
    assert!(code == 0 && log.contains("WARN"), "{log}");
    assert!(log.contains("a new database was made"), "{log}");
    let known = Program::start(command(&database, &["--create", "false"]));
    known.signal(Signal::TERM);
    let (code, log) = end(known.child);
    assert!(code == 0 && log.contains("opening the database"), "{log}");
    assert!(!log.contains("a new database was made"), "{log}");
}

#[test]
fn what_cannot_be_served_is_refused_with_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let cases: [(&[&str], i32, &str); 5] = [
        (&["--listen", "0.0.0.0:0"], 2, "--insecure-listen"),
        (&["--http", "0.0.0.0:0"], 2, "--insecure-http"),
        (&["--connections-max", "3"], 2, "connections_reserved"),
        (&["--version-policy", "refuse"], 2, "version_mib_max"),
        (&["--config", "nowhere.toml"], 2, "nowhere.toml"),
    ];
    for (more, code, reason) in cases {
        let child = command(folder.path(), more).spawn().unwrap();
        let (ended, text) = end(child);
        assert_eq!(ended, code, "{more:?}: {text}");
        assert!(text.contains(reason), "{more:?}: {text}");
    }
    let first = Program::start(command(folder.path(), &[]));
    let (code, text) = end(command(folder.path(), &[]).spawn().unwrap());
    assert_eq!(code, 3, "{text}");
    first.signal(Signal::TERM);
    assert_eq!(end(first.child).0, 0);
}

#[test]
fn settings_are_printed_as_a_file_that_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let printed = command(folder.path(), &["--print-config", "--log-format", "json"])
        .env("VELLUM_CONNECTIONS_MAX", "77")
        .output()
        .unwrap();
    let text = String::from_utf8(printed.stdout).unwrap();
    assert!(text.contains("connections_max = 77\n"), "{text}");
    assert!(text.contains("log_format = \"json\"\n"), "{text}");
    let file = folder.path().join("vellum.toml");
    std::fs::write(&file, &text).unwrap();
    let again = Command::new(env!("CARGO_BIN_EXE_vellum"))
        .args(["serve", "--print-config", "--config"])
        .arg(&file)
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(again.stdout).unwrap(), text);
}
