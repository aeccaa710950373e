//! The program served to the drivers that applications use: psycopg, asyncpg, SQLAlchemy, JDBC and node-postgres, each by a program of its own language in
//! `clients`, and tokio-postgres.
//!
//! Each program prints all that it gets: connections, values of every type in text and binary, prepared statements, batches, COPY, errors with
//! their fields, transactions, cancelling, metadata. What is printed has to be what is printed at PostgreSQL 15, which `golden/clients` has; it
//! is made by the same programs at a database `vellum` of a superuser `vellum` in a cluster of `initdb --no-locale -E UTF8`, TimeZone UTC, as in
//! `PGHOST=… PGPORT=… PGUSER=vellum PGDATABASE=vellum python driver.py`.
//!
//! `cargo xtask clients` installs the drivers; without one its test says that it is skipped.
//!
//! Not here: what psql and pgbench get (`psql.rs`).

use crate::program::{Program, command, end};
use rustix::process::Signal;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where `cargo xtask clients` puts the drivers of a language; `None`, said aloud, if they are not there.
fn drivers(language: &str) -> Option<PathBuf> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let folder = target.join("clients").join(language);
    if folder.join("installed").exists() {
        return Some(folder);
    }
    let mut out = std::io::stdout();
    writeln!(
        out,
        "test skipped: the drivers for {language} are not installed: cargo xtask clients"
    )
    .unwrap();
    None
}

fn source(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients");
    folder.join(name)
}

/// Runs a client at a new server: it prints what is expected.
fn prints(mut client: Command, expected: &str) {
    let folder = tempfile::tempdir().unwrap();
    let server = Program::start(command(folder.path(), &[]));
    let password = std::fs::read_to_string(folder.path().join("password")).unwrap();
    let output = client
        .env("PGHOST", "127.0.0.1")
        .env("PGPORT", server.port().to_string())
        .env("PGUSER", "vellum")
        .env("PGDATABASE", "vellum")
        .env("PGPASSWORD", password.trim_end())
        .env("TZ", "UTC")
        .env_remove("PGOPTIONS")
        .env_remove("PGSERVICE")
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    for (number, (found, expected)) in (1..).zip(text.lines().zip(expected.lines())) {
        assert_eq!(found, expected, "line {number}\n{errors}");
    }
    assert_eq!(text.lines().count(), expected.lines().count(), "{errors}");
    assert!(output.status.success(), "{errors}");
    server.signal(Signal::TERM);
    assert_eq!(end(server.child).0, 0);
}

fn python(script: &str, expected: &str) {
    if let Some(folder) = drivers("python") {
        let mut command = Command::new(folder.join("bin/python"));
        command.arg(source(script));
        prints(command, expected);
    }
}

#[test]
fn psycopg_gets_what_it_gets_from_postgresql() {
    python("driver.py", include_str!("../golden/clients/driver.out"));
}

#[test]
fn asyncpg_gets_what_it_gets_from_postgresql() {
    python("async.py", include_str!("../golden/clients/async.out"));
}

/// Two and three sessions, under read committed and repeatable read: what each sees, for whom it waits, when it goes on.
#[test]
fn stories_of_several_sessions_go_as_at_postgresql() {
    python("stories.py", include_str!("../golden/clients/stories.out"));
}

#[test]
fn sqlalchemy_creates_and_queries_as_at_postgresql() {
    python("orm.py", include_str!("../golden/clients/orm.out"));
}

#[test]
fn django_migrates_and_queries_as_at_postgresql() {
    python(
        "django_app.py",
        include_str!("../golden/clients/django_app.out"),
    );
}

#[test]
fn node_postgres_gets_what_it_gets_from_postgresql() {
    if let Some(folder) = drivers("node") {
        let mut command = Command::new("node");
        command
            .arg(source("node.js"))
            .env("NODE_PATH", folder.join("node_modules"));
        prints(command, include_str!("../golden/clients/node.out"));
    }
}

#[test]
fn jdbc_gets_what_it_gets_from_postgresql() {
    if let Some(folder) = drivers("java") {
        let mut command = Command::new("java");
        command
            .arg("-cp")
            .arg(folder.join("postgresql.jar"))
            .arg(source("Jdbc.java"))
            .arg(source("types.txt"));
        prints(command, include_str!("../golden/clients/jdbc.out"));
    }
}
