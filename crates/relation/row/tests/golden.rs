//! What PostgreSQL 15 answers, thousands of times: forms, casts, comparisons, operators.
//!
//! Layout of `tests/golden/*.tsv`: a line is a case, its columns apart by tabs; the first says what is
//! asked, the last is the answer of a PostgreSQL server: `=` and the result, or `!`, the SQLSTATE, the
//! message, and after bars detail and hint. `\t`, `\n`, `\r` and `\\` stand for themselves in columns. A line
//! that begins with `set` changes a setting for those below it, one with `#` is a comment.
//!
//! The answers are made anew by a server (encoding UTF8, locale C) with
//! `VELLUM_PSQL="psql -h … -U …" cargo test -p vellum-row --test golden`, which writes the files; without
//! the variable nothing but the files is needed.

#![allow(clippy::unwrap_used, reason = "a test of files that it writes itself")]

mod golden_cases;

use golden_cases::{answer, sql};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use vellum_row::Settings;

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name)
}

fn unescape(column: &str) -> String {
    let mut out = String::new();
    let mut chars = column.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('t') => out.push('\t'),
                Some('n') => out.push('\n'),
                Some('r') => out.push('\r'),
                Some(other) => out.push(other),
                None => {}
            },
            c => out.push(c),
        }
    }
    out
}

fn escape(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('\t', "\\t");
    text.replace('\n', "\\n").replace('\r', "\\r")
}

const PROBE: &str = r"
create function pg_temp.probe(query text) returns text language plpgsql as $probe$
declare r text; s text; m text; d text; h text;
begin
  execute query into r;
  return '=' || coalesce(r, 'null');
exception when others then
  get stacked diagnostics s = returned_sqlstate, m = message_text, d = pg_exception_detail, h = pg_exception_hint;
  return '!' || s || ' ' || m || '|' || d || '|' || h;
end $probe$;
create function pg_temp.esc(t text) returns text language sql as
  $esc$ select replace(replace(replace(replace(t, '\', '\\'), chr(9), '\t'), chr(10), '\n'), chr(13), '\r') $esc$;
";

/// Asks a server for the answers and writes them into the file.
fn regenerate(name: &str, psql: &str) {
    let text = std::fs::read_to_string(path(name)).unwrap();
    let mut script = String::from(PROBE);
    script.push_str("set timezone = 'UTC';\n");
    for line in text.lines() {
        if line.starts_with("set ") {
            script.push_str(&format!("{line};\n"));
        } else if !line.starts_with('#') && !line.is_empty() {
            let columns: Vec<String> = line.split('\t').map(unescape).collect();
            script.push_str(&golden_cases::setup(&columns));
            let query = sql(&columns);
            script.push_str(&format!(
                "select pg_temp.esc(pg_temp.probe($case${query}$case$));\n"
            ));
        }
    }
    let mut words = psql.split_whitespace();
    let mut child = Command::new(words.next().unwrap())
        .args(words)
        .args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-f", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(script.as_bytes()).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(output.status.success());
    let answers = String::from_utf8(output.stdout).unwrap();
    let mut answers = answers.lines();
    let mut out = String::new();
    for line in text.lines() {
        if line.starts_with("set ") || line.starts_with('#') || line.is_empty() {
            out.push_str(line);
        } else {
            let columns: Vec<&str> = line.split('\t').collect();
            let asked = golden_cases::columns(&unescape(columns[0]));
            for column in &columns[..asked] {
                out.push_str(column);
                out.push('\t');
            }
            out.push_str(answers.next().expect("an answer a case"));
        }
        out.push('\n');
    }
    assert_eq!(answers.next(), None);
    std::fs::write(path(name), out).unwrap();
}

fn check(name: &str) {
    if let Ok(psql) = std::env::var("VELLUM_PSQL") {
        regenerate(name, &psql);
    }
    let text = std::fs::read_to_string(path(name)).unwrap();
    let mut settings = Settings::default();
    let (mut cases, mut wrong) = (0, Vec::new());
    for (number, line) in (1..).zip(text.lines()) {
        if let Some(setting) = line.strip_prefix("set ") {
            golden_cases::set(setting, &mut settings);
            continue;
        }
        if line.starts_with('#') || line.is_empty() {
            continue;
        }
        cases += 1;
        let columns: Vec<String> = line.split('\t').map(unescape).collect();
        let asked = golden_cases::columns(&columns[0]);
        let expected = &columns[asked];
        let found = match answer(&columns[..asked], &settings) {
            Ok(result) => format!("={result}"),
            Err(error) => format!(
                "!{} {}|{}|{}",
                error.state(),
                error.message(),
                error.detail().unwrap_or(""),
                error.hint().unwrap_or("")
            ),
        };
        if found != *expected {
            wrong.push(format!(
                "{name}:{number}: {}\n    found {}",
                line,
                escape(&found)
            ));
        }
    }
    assert!(cases > 0);
    assert!(
        wrong.is_empty(),
        "{} of {cases} cases differ:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(60)].join("\n")
    );
}

#[test]
fn text_and_binary_forms_are_those_of_postgresql() {
    check("forms.tsv");
}

#[test]
fn casts_are_those_of_postgresql() {
    check("casts.tsv");
}

#[test]
fn operators_and_functions_are_those_of_postgresql() {
    check("operators.tsv");
}

#[test]
fn orders_are_those_of_postgresql() {
    check("orders.tsv");
}
