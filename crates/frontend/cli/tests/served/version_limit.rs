//! The limit of old versions as settings of the server: who is told what when it is reached.

use crate::program::{Program, command, end};
use postgres::error::SqlState;
use postgres::{Client, Error, NoTls};
use rustix::process::Signal;
use std::path::Path;
use std::time::Duration;

struct Served {
    program: Program,
    password: String,
    _folder: tempfile::TempDir,
}

impl Served {
    /// A server with a limit of four MiB.
    fn start(policy: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("db");
        let more = ["--version-mib-max", "4", "--version-policy", policy];
        let program = Program::start(command(&directory, &more));
        let password = std::fs::read_to_string(directory.join("password")).unwrap();
        Self {
            program,
            password,
            _folder: folder,
        }
    }

    fn connect(&self) -> Client {
        let client = postgres::Config::new()
            .host("127.0.0.1")
            .port(self.program.port())
            .user("vellum")
            .password(self.password.trim_end())
            .connect(NoTls);
        client.unwrap()
    }

    fn stop(self) {
        self.program.signal(Signal::TERM);
        let (code, log) = end(self.program.child);
        assert_eq!(code, 0, "{log}");
    }
}

/// A table of five thousand rows, which an update of all of them doubles: three megabytes.
fn filled(client: &mut Client, table: &str) {
    let made = format!(
        "CREATE TABLE {table} (id int PRIMARY KEY, v text);
         INSERT INTO {table} SELECT n, repeat('a', 600) FROM generate_series(1, 5000) AS s(n)"
    );
    client.batch_execute(&made).unwrap();
}

fn update(client: &mut Client, table: &str) -> Result<u64, Error> {
    client.execute(&format!("UPDATE {table} SET v = repeat('b', 599)"), &[])
}

fn count(client: &mut Client, table: &str) -> Result<i64, Error> {
    let rows = format!("SELECT count(*) FROM {table} WHERE v LIKE 'a%'");
    Ok(client.query_one(&rows, &[])?.get(0))
}

fn state(error: &Error) -> &str {
    error.code().map_or("", SqlState::code)
}

/// Asks again until it is so: what runs in the background has its time.
fn until(mut is_so: impl FnMut() -> bool) {
    for _ in 0..1200 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("it does not come to that");
}

fn withdrawn(client: &mut Client) -> i64 {
    let asked = "SELECT snapshots_withdrawn FROM vellum_slots";
    client.query_one(asked, &[]).unwrap().get(0)
}

/// Whether old versions take less than a quarter of the limit.
fn has_room(client: &mut Client) -> bool {
    let asked = "SELECT version_bytes < 1024 * 1024 FROM vellum_slots";
    client.query_one(asked, &[]).unwrap().get(0)
}

const OLD: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ";

#[test]
fn oldest_transaction_is_given_up_for_what_it_keeps_of_updates_and_of_a_dropped_table() {
    let server = Served::start("too-old");
    let (mut old, mut writer) = (server.connect(), server.connect());
    for table in ["a", "b", "big"] {
        filled(&mut writer, table);
    }
    writer
        .batch_execute(
            "INSERT INTO big SELECT n, repeat('a', 600) FROM generate_series(5001, 20000) AS s(n)",
        )
        .unwrap();
    old.batch_execute(OLD).unwrap();
    assert_eq!(count(&mut old, "a").unwrap(), 5000);
    for table in ["a", "b"] {
        assert_eq!(update(&mut writer, table).unwrap(), 5000);
    }
    until(|| withdrawn(&mut writer) == 1);
    let told = count(&mut old, "a").unwrap_err();
    assert_eq!(state(&told), "72000", "{told}");
    assert_eq!(state(&count(&mut old, "a").unwrap_err()), "25P02");
    old.batch_execute("ROLLBACK").unwrap();
    old.batch_execute(OLD).unwrap();
    assert_eq!(count(&mut old, "a").unwrap(), 0);
    assert_eq!(count(&mut old, "big").unwrap(), 20_000);
    writer.batch_execute("DROP TABLE big").unwrap();
    until(|| withdrawn(&mut writer) == 2);
    let told = count(&mut old, "a").unwrap_err();
    assert_eq!(state(&told), "72000", "{told}");
    old.batch_execute("ROLLBACK").unwrap();
    until(|| has_room(&mut writer));
    drop((old, writer));
    server.stop();
}

#[test]
fn statements_that_change_rows_are_refused_until_the_old_transaction_has_ended() {
    let server = Served::start("refuse");
    let (mut old, mut writer) = (server.connect(), server.connect());
    for table in ["a", "b"] {
        filled(&mut writer, table);
    }
    old.batch_execute(OLD).unwrap();
    assert_eq!(count(&mut old, "a").unwrap(), 5000);
    update(&mut writer, "a").unwrap();
    // The space is looked at some twenty times a second: one statement may come through.
    let mut refused = None;
    until(|| {
        refused = update(&mut writer, "b").err();
        refused.is_some()
    });
    let told = refused.unwrap();
    assert_eq!(state(&told), "53400", "{told}");
    let told = told.as_db_error().unwrap();
    assert!(told.message().contains("older snapshot"), "{told:?}");
    assert!(told.hint().unwrap().contains("vellum_snapshots"));
    // Nobody else is in the way of anything.
    assert_eq!(count(&mut writer, "a").unwrap(), 0);
    assert_eq!(count(&mut old, "b").unwrap(), 5000);
    old.batch_execute("COMMIT").unwrap();
    until(|| match update(&mut writer, "b") {
        Ok(rows) => rows == 5000,
        Err(error) => {
            assert_eq!(state(&error), "53400", "{error}");
            false
        }
    });
    until(|| has_room(&mut writer));
    // More than all of it in one statement.
    filled(&mut writer, "d");
    let more = "INSERT INTO d SELECT n, repeat('a', 600) FROM generate_series(5001, 60000) AS s(n)";
    writer.batch_execute(more).unwrap();
    let told = update(&mut writer, "d").unwrap_err();
    assert_eq!(state(&told), "53400", "{told}");
    let told = told.as_db_error().unwrap();
    assert!(told.message().contains("own changes"), "{told:?}");
    drop((old, writer));
    server.stop();
}

#[test]
fn limit_stands_in_a_file_and_in_the_environment() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("vellum.toml");
    std::fs::write(
        &file,
        "version_mib_max = 512\nversion_policy = \"refuse\"\n",
    )
    .unwrap();
    let printed = |path: &Path, policy: &str| {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_vellum"))
            .args(["serve", "--print-config", "--config"])
            .arg(path)
            .env("VELLUM_VERSION_POLICY", policy)
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap()
    };
    let text = printed(&file, "too-old");
    assert!(text.contains("version_mib_max = 512\n"), "{text}");
    assert!(text.contains("version_policy = \"too-old\"\n"), "{text}");
    let text = printed(&file, "never");
    assert!(text.contains("`spill`, `refuse` or `too-old`"), "{text}");
}
