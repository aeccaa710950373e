//! The shell, where its lines come from a file: what it prints is what psql 15 does for the same text.

// Helpers of tests are not marked as tests.
#![allow(clippy::unwrap_used)]

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Runs a shell in a directory, whose database is `db` there, with something at standard input.
fn shell(directory: &Path, arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_vellum"))
        .args(["sql", "--data", "db"])
        .args(arguments)
        .current_dir(directory)
        .env("HOME", directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    drop(stdin);
    child.wait_with_output().unwrap()
}

fn texts(output: &Output) -> [String; 2] {
    [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned())
}

#[test]
fn statements_and_commands_may_share_lines() {
    let directory = tempfile::tempdir().unwrap();
    let script = r#"select E'a''b\'; c' as t;
-- a comment
\echo hi
select 1 as a\; select 2 as b;
select 1 as "a" \echo in the middle
;
/* /* ; */ ; */ \echo after comment
select $a$ ; $b$ ; $a$ as x, $$;$$ as y;
select 3 as c \g
select 4 as d \gx
\echo a \\ select 5 as e;
select ( \r \echo c
select 'x' as "n
m";
"#;
    let [out, err] = texts(&shell(directory.path(), &[], script));
    let expected = " t    \n---------\n a'b'; c\n(1 row)\n\nhi\n a \n---\n 1\n(1 row)\n\n b \n---\n 2\n(1 row)\n\n\
                    in the middle\n a \n---\n 1\n(1 row)\n\nafter comment\n     x     | y \n-----------+---\n  ; $b$ ;  | ;\n(1 row)\n\n\
                    c \n---\n 3\n(1 row)\n\n-[ RECORD 1 ]\nd | 4\n\na\n e \n---\n 5\n(1 row)\n\n\
                    Query buffer reset (cleared).\nc\n n+\n m \n---\n x\n(1 row)\n\n";
    let squeezed = |text: &str| text.lines().map(str::trim).collect::<Vec<_>>().join("\n");
    assert_eq!(squeezed(&out), squeezed(expected), "{err}");
    assert_eq!(err, "");
}

#[test]
fn the_place_of_an_error_is_counted_from_the_statement() {
    let directory = tempfile::tempdir().unwrap();
    let script = "-- c1\n\n-- c2\nselect 1 +\n -- inner\n nope;\n";
    let [_, err] = texts(&shell(directory.path(), &[], script));
    assert!(err.contains("LINE 3:  nope;\n         ^\n"), "{err}");
}

#[test]
fn copy_takes_data_from_and_gives_them_to_files_and_streams() {
    let directory = tempfile::tempdir().unwrap();
    let script = r#"create table t (a int, b text);
\copy t from stdin
1	x
2	y
\.
\copy t to stdout
\copy t to pstdout
copy t to stdout;
\copy (select 'to' as c, b from t where b <> ')') to stdout csv header
\copy t(a) to stdout with (format csv, header);
\copy public.t ( a , b ) to 'o''ut.txt' with csv header
\copy t from 'o''ut.txt' csv header
\copy binary t to '~/x.bin'
\copy t from x.bin binary
\copy t from stdin where a > 5
7	seven
1	one
\.
\copy t from pstdin delimiter ','
8,h
\.
select count(*) from t;
"#;
    let [out, err] = texts(&shell(directory.path(), &[], script));
    let expected = "CREATE TABLE\nCOPY 2\n1\tx\n2\ty\n1\tx\n2\ty\n1\tx\n2\ty\nc,b\nto,x\nto,y\na\n1\n2\n\
                    COPY 2\nCOPY 2\nCOPY 4\nCOPY 4\nCOPY 1\nCOPY 1\n count \n-------\n    10\n(1 row)\n\n";
    assert_eq!((&*out, &*err), (expected, ""));
    let written = std::fs::read_to_string(directory.path().join("o'ut.txt")).unwrap();
    assert_eq!(written, "a,b\n1,x\n2,y\n");
}

#[test]
fn copy_says_what_is_wrong_and_the_shell_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let script = r"create table t (a int);
\copy
\copy t into x
\copy t to program 'cat'
\copy t from nofile
\copy t to nowhere/file
\copy (select 1) from stdin
\copy t from stdin
1
x
3
\.
select 'here' as still;
";
    let output = shell(directory.path(), &[], script);
    let [out, err] = texts(&output);
    for said in [
        "\\copy: arguments required\n",
        "\\copy: parse error at \"into\"\n",
        "\\copy: PROGRAM is not supported",
        "nofile: No such file",
        "nowhere/file: No such file",
        "42601",
        "invalid input syntax for type integer: \"x\"\nCONTEXT:  COPY t, line 2, column a: \"x\"\n",
    ] {
        assert!(err.contains(said), "{said}: {err}");
    }
    // The data behind one that fails are nothing else's.
    let errors = err.lines().filter(|line| line.starts_with("ERROR")).count();
    assert_eq!(errors, 2, "{err}");
    assert!(
        out.ends_with(" still \n-------\n here\n(1 row)\n\n"),
        "{out}"
    );
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_copy_of_an_argument_reads_standard_input() {
    let directory = tempfile::tempdir().unwrap();
    let arguments = [
        "-c",
        "create table t (a int)",
        "-c",
        "copy t from stdin",
        "-c",
        "\\copy t from stdin",
        "-c",
        "copy t from stdin;\n4\n\\.\nselect sum(a) from t",
    ];
    let [out, err] = texts(&shell(directory.path(), &arguments, "1\n2\n\\.\n3\n"));
    let expected = "CREATE TABLE\nCOPY 2\nCOPY 1\nCOPY 1\n sum \n-----\n  10\n(1 row)\n\n";
    assert_eq!((&*out, &*err), (expected, ""));
}

#[test]
fn regress_a_value_may_be_wider_than_formats_count() {
    let directory = tempfile::tempdir().unwrap();
    let script =
        "select repeat('x', 70000) as a, 1 as \"n\nm\";\n\\x\nselect repeat('x', 70000) as a;\n";
    let output = shell(directory.path(), &[], script);
    let [out, err] = texts(&output);
    assert_eq!((output.status.code(), &*err), (Some(0), ""));
    assert_eq!(out.matches(&"x".repeat(70_000)).count(), 2);
}
