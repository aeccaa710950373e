//! Statements through the program, by PostgreSQL's own clients: psql and pgbench. Where they are not installed, what needs them counts
//! as skipped; `frontend/server/tests` has no need of them.

use crate::program::{Program, command, end};
use rustix::process::Signal;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Whether these programs are installed. If not, the test is counted as skipped (`xtask/src/tally.rs`).
fn installed(names: &[&str]) -> bool {
    for name in names {
        if Command::new(name).arg("--version").output().is_err() {
            // Not by a macro: those are captured.
            let mut out = std::io::stdout();
            writeln!(out, "test skipped: {name} is not installed").unwrap();
            return false;
        }
    }
    true
}

/// A client of the system for a server.
fn client(name: &str, server: &Program, directory: &Path) -> Command {
    let password = std::fs::read_to_string(directory.join("password")).unwrap();
    let mut command = Command::new(name);
    command
        .env("PGHOST", "127.0.0.1")
        .env("PGPORT", server.port().to_string())
        .env("PGUSER", "vellum")
        .env("PGDATABASE", "vellum")
        .env("PGPASSWORD", password.trim_end())
        .env("PGCONNECT_TIMEOUT", "60")
        .env_remove("PGOPTIONS")
        .env_remove("PGSERVICE");
    command
}

/// Standard output and standard error of psql for a script.
fn psql(server: &Program, directory: &Path, script: &str) -> (String, String) {
    let mut child = client("psql", server, directory)
        .args(["-X", "-A", "-t", "-v", "VERBOSITY=sqlstate"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Shorter than a pipe, so that writing it waits for nobody.
    assert!(script.len() < 4096);
    let mut input = child.stdin.take().unwrap();
    input.write_all(script.as_bytes()).unwrap();
    drop(input);
    texts(child.wait_with_output().unwrap())
}

fn texts(output: Output) -> (String, String) {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr))
}

#[test]
fn psql_gets_rows_tags_and_errors() {
    if !installed(&["psql"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let server = Program::start(command(folder.path(), &[]));
    let cases = [
        (
            "create table t (id int primary key, name text not null, n numeric default 1.5);",
            "CREATE TABLE\n",
            "",
        ),
        (
            "insert into t values (1, 'a'), (2, 'b'), (3, 'c'); select * from t order by id;",
            "INSERT 0 3\n1|a|1.5\n2|b|1.5\n3|c|1.5\n",
            "",
        ),
        (
            "update t set name = name || 'x' where id > 1 returning id, name; delete from t where id = 3;",
            "2|bx\n3|cx\nUPDATE 2\nDELETE 1\n",
            "",
        ),
        (
            "begin; insert into t values (9, 'z'); select count(*) from t; rollback; select count(*) from t;",
            "BEGIN\nINSERT 0 1\n3\nROLLBACK\n2\n",
            "",
        ),
        (
            "begin; insert into t values (1, 'again'); select 1; commit;",
            "BEGIN\nROLLBACK\n",
            "ERROR:  23505\nERROR:  25P02\n",
        ),
        (
            "select * from nope; select 1/0; selec 1; insert into t values (5, null);",
            "",
            "ERROR:  42P01\nERROR:  22012\nERROR:  42601\nERROR:  23502\n",
        ),
        (
            "copy t from stdin;\n10\tten\t1\n11\televen\t\\N\n\\.\ncopy t to stdout;",
            "COPY 2\n1\ta\t1.5\n2\tbx\t1.5\n10\tten\t1\n11\televen\t\\N\n",
            "",
        ),
        (
            "copy t to stdout (format csv, header on);",
            "id,name,n\n1,a,1.5\n2,bx,1.5\n10,ten,1\n11,eleven,\n",
            "",
        ),
        (
            "prepare p (int) as select name from t where id = $1; execute p(10); deallocate p; execute p(10);",
            "PREPARE\nten\nDEALLOCATE\n",
            "ERROR:  26000\n",
        ),
    ];
    for (script, out, errors) in cases {
        let said = psql(&server, folder.path(), script);
        assert_eq!(
            (said.0.as_str(), said.1.as_str()),
            (out, errors),
            "{script}"
        );
    }
    server.signal(Signal::TERM);
    assert_eq!(end(server.child).0, 0);
}

/// What the TPC-B transactions keep equal.
const SUMS: &str = "select sum(abalance) from pgbench_accounts; select sum(bbalance) from pgbench_branches;
    select sum(tbalance) from pgbench_tellers; select coalesce(sum(delta), 0) from pgbench_history;";

#[test]
fn crash_pgbench_keeps_its_balances_when_the_server_is_killed() {
    if !installed(&["psql", "pgbench"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut server = Program::start(command(folder.path(), &[]));
    let mut initial = client("pgbench", &server, folder.path());
    let (_, said) = texts(initial.args(["-i", "-s", "1"]).output().unwrap());
    assert!(said.contains("done in"), "{said}");
    for mode in ["simple", "extended", "prepared"] {
        for script in ["select-only", "simple-update", "tpcb-like"] {
            let mut client = client("pgbench", &server, folder.path());
            client.args(["-n", "-c", "8", "-t", "10", "-M", mode, "-b", script]);
            let output = client.output().unwrap();
            let good = output.status.success();
            let (out, errors) = texts(output);
            assert!(good, "{mode} {script}: {out}{errors}");
            assert!(out.contains("processed: 80/80"), "{mode} {script}: {out}");
        }
    }
    // The other script leaves branches and tellers alone.
    let script = "update pgbench_accounts set abalance = 0; truncate pgbench_history;
        update pgbench_branches set bbalance = 0; update pgbench_tellers set tbalance = 0;";
    assert_eq!(psql(&server, folder.path(), script).1, "");
    let mut client = client("pgbench", &server, folder.path());
    let mut busy = client
        .args(["-n", "-c", "8", "-t", "1000000", "-P", "1"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The first report of progress: transactions are under way.
    let mut report = BufReader::new(busy.stderr.take().unwrap()).lines();
    let progress = report.find(|line| line.as_ref().is_ok_and(|l| l.starts_with("progress:")));
    assert!(progress.is_some());
    server.child.kill().unwrap();
    server.child.wait().unwrap();
    drop(report);
    assert!(!busy.wait().unwrap().success());
    let again = Program::start(command(folder.path(), &[]));
    let (sums, errors) = psql(&again, folder.path(), SUMS);
    let sums: Vec<&str> = sums.lines().collect();
    assert_eq!(errors, "");
    assert_eq!(sums.len(), 4);
    assert!(sums.iter().all(|sum| *sum == sums[0]), "{sums:?}");
    again.signal(Signal::TERM);
    assert_eq!(end(again.child).0, 0);
}

/// By the queries that psql itself makes. `golden/catalog.out` is what psql 15 prints for `golden/catalog.sql` at PostgreSQL 15: `psql -X -q -f`, as the
/// superuser `vellum` of an empty database `vellum` that was made by `initdb --no-locale -E UTF8`.
#[test]
fn psql_describes_everything_as_it_does_at_postgresql() {
    if !installed(&["psql"]) {
        return;
    }
    let version = Command::new("psql").arg("--version").output().unwrap();
    if !String::from_utf8_lossy(&version.stdout).contains("(PostgreSQL) 15.") {
        let mut out = std::io::stdout();
        writeln!(out, "test skipped: psql is not that of PostgreSQL 15").unwrap();
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let server = Program::start(command(folder.path(), &[]));
    let script = folder.path().join("catalog.sql");
    std::fs::write(&script, include_str!("../golden/catalog.sql")).unwrap();
    let mut psql = client("psql", &server, folder.path());
    let output = psql.args(["-X", "-q", "-f"]).arg(&script).output().unwrap();
    let (text, errors) = texts(output);
    let expected: Vec<&str> = include_str!("../golden/catalog.out").lines().collect();
    let found: Vec<&str> = text.lines().collect();
    for (number, (found, expected)) in found.iter().zip(&expected).enumerate() {
        assert_eq!(found, expected, "line {}\n{text}\n{errors}", number + 1);
    }
    assert_eq!(found.len(), expected.len(), "{text}\n{errors}");
    assert_eq!(errors, "");
    // A terminal that is closed ends nothing.
    server.signal(Signal::HUP);
    let mut psql = client("psql", &server, folder.path());
    let again = psql.args(["-X", "-q", "-At", "-c", "select 1"]);
    assert_eq!(
        texts(again.output().unwrap()),
        ("1\n".to_owned(), String::new())
    );
    server.signal(Signal::TERM);
    assert_eq!(end(server.child).0, 0);
}

#[test]
fn a_user_logs_in_with_the_password_that_a_statement_set_and_not_past_its_time() {
    if !installed(&["psql"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let server = Program::start(command(folder.path(), &[]));
    let (_, errors) = psql(
        &server,
        folder.path(),
        "create user ann password 'a secret';",
    );
    assert_eq!(errors, "");
    let as_ann = |password: &str| {
        let mut psql = client("psql", &server, folder.path());
        let psql = psql.env("PGUSER", "ann").env("PGPASSWORD", password);
        texts(
            psql.args(["-X", "-A", "-t", "-c", "select current_user"])
                .output()
                .unwrap(),
        )
    };
    assert_eq!(as_ann("a secret").0, "ann\n");
    let refused = "password authentication failed for user \"ann\"";
    assert!(as_ann("another").1.contains(refused));
    psql(
        &server,
        folder.path(),
        "alter user ann valid until '2020-01-01';",
    );
    assert!(as_ann("a secret").1.contains(refused));
    server.signal(Signal::TERM);
    let (code, log) = end(server.child);
    assert_eq!(code, 0);
    // Addresses stand there as they are.
    assert!(log.contains("address=127.0.0.1:"), "{log}");
    assert!(!log.contains("Some("), "{log}");
}

/// What pg_dump writes, but for comments and the word that keeps what is restored from giving psql commands.
fn dumped(server: &Program, directory: &Path, options: &[&str]) -> Vec<String> {
    let mut command = client("pg_dump", server, directory);
    let (text, errors) = texts(command.args(options).output().unwrap());
    assert_eq!(errors, "", "{options:?}");
    let said = |line: &&str| !line.is_empty() && !line.starts_with("--");
    let lines = text.lines().filter(said);
    let lines =
        lines.filter(|line| !line.starts_with("\\restrict") && !line.starts_with("\\unrestrict"));
    lines.map(str::to_owned).collect()
}

/// What it writes makes the same database again: as a script, as statements, and by pg_restore.
#[test]
fn what_pg_dump_writes_is_restored() {
    if !installed(&["psql", "pg_dump", "pg_restore"]) {
        return;
    }
    let version = Command::new("pg_dump").arg("--version").output().unwrap();
    if !texts(version).0.contains(" 15.") {
        // Others say more of what they restore into.
        let mut out = std::io::stdout();
        writeln!(out, "test skipped: pg_dump is not that of PostgreSQL 15").unwrap();
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let server = Program::start(command(folder.path(), &[]));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/dumped.sql");
    let script = |server: &Program, folder: &Path, file: &Path| {
        let mut psql = client("psql", server, folder);
        psql.args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-f"])
            .arg(file);
        let (_, errors) = texts(psql.output().unwrap());
        assert_eq!(errors, "", "{}", file.display());
    };
    script(&server, folder.path(), &source);
    let whole = dumped(&server, folder.path(), &[]);
    let expected = include_str!("../golden/clients/dumped.out");
    for (number, (found, expected)) in (1..).zip(whole.iter().zip(expected.lines())) {
        assert_eq!(found, expected, "line {number}");
    }
    assert_eq!(whole.len(), expected.lines().count());
    let one = dumped(&server, folder.path(), &["-s", "-t", "app.line"]);
    let made = one.iter().filter(|line| line.starts_with("CREATE "));
    let made: Vec<&str> = made.map(String::as_str).collect();
    let line = "CREATE INDEX line_item_idx ON app.line USING btree (item_id DESC NULLS LAST, qty);";
    assert_eq!(made, ["CREATE TABLE app.line (", line]);
    // The last one by two sessions that see the same, at once.
    for form in [
        &["-Fp"][..],
        &["-Fp", "--inserts"],
        &["-Fc"],
        &["-Fd", "-j", "2"],
    ] {
        let file = folder.path().join(form.join(""));
        let mut dump = client("pg_dump", &server, folder.path());
        dump.args(form).arg("-f").arg(&file);
        let (_, errors) = texts(dump.output().unwrap());
        assert_eq!(errors, "", "{form:?}");
        let other = tempfile::tempdir().unwrap();
        let second = Program::start(command(other.path(), &[]));
        psql(&second, other.path(), "create role reader;");
        if form[0] != "-Fp" {
            let mut restore = client("pg_restore", &second, other.path());
            restore.args(["-e", "-d", "vellum"]).arg(&file);
            let (_, errors) = texts(restore.output().unwrap());
            assert_eq!(errors, "");
        } else {
            script(&second, other.path(), &file);
        }
        assert_eq!(dumped(&second, other.path(), &[]), whole, "{form:?}");
        second.signal(Signal::TERM);
        assert_eq!(end(second.child).0, 0);
    }
    server.signal(Signal::TERM);
    assert_eq!(end(server.child).0, 0);
}
