//! The shell at a terminal: what is typed there, keys, Ctrl-C, and what is there again the next time.
//!
//! The terminal is a pseudo-terminal of its own; `setsid --ctty` (util-linux) makes it the one whose keys send signals.

// Helpers of tests are not marked as tests.
#![allow(clippy::unwrap_used)]

use nix::pty::{Winsize, openpty};
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(120);
const PROMPT: &str = "vellum=# ";
const UP: &str = "\x1b[A";
const CONTROL_C: &str = "\x03";
const CONTROL_D: &str = "\x04";
const CONTROL_R: &str = "\x12";

/// What a terminal was sent, and whether more may come.
type Screen = Arc<(Mutex<(Vec<u8>, bool)>, Condvar)>;

/// Somebody at a terminal.
struct Typist {
    child: Child,
    keys: File,
    screen: Screen,
    /// How much of it was looked at.
    seen: usize,
}

/// A text without the sequences that move the cursor.
fn plain(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut chars = text.chars();
    let mut plain = String::new();
    while let Some(char) = chars.next() {
        match char {
            '\x1b' => {
                if chars.next() == Some('[') {
                    chars.by_ref().find(|char| ('@'..='~').contains(char));
                }
            }
            '\r' => {}
            char => plain.push(char),
        }
    }
    plain
}

impl Typist {
    /// Starts a shell at a new terminal, and waits for its prompt.
    fn new(arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let size = Winsize {
            ws_row: 50,
            ws_col: 200,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        let terminal = openpty(&size, None).unwrap();
        let end = || Stdio::from(terminal.slave.try_clone().unwrap());
        let child = Command::new("setsid")
            .args(["--ctty", env!("CARGO_BIN_EXE_vellum"), "sql"])
            .args(arguments)
            .env_remove("VELLUM_HISTORY")
            .env_remove("XDG_STATE_HOME")
            .env_remove("HOME")
            .env("TERM", "xterm")
            .envs(environment.iter().copied())
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .unwrap();
        drop(terminal.slave);
        let keys = File::from(terminal.master);
        let mut shown = keys.try_clone().unwrap();
        let screen = Screen::default();
        let filled = screen.clone();
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            loop {
                // An error is what the end of the other side is.
                let read = shown.read(&mut piece).unwrap_or(0);
                let mut screen = filled.0.lock().unwrap();
                screen.0.extend_from_slice(&piece[..read]);
                screen.1 = read == 0;
                filled.1.notify_all();
                if read == 0 {
                    return;
                }
            }
        });
        let mut typist = Self {
            child,
            keys,
            screen,
            seen: 0,
        };
        typist.sees(PROMPT);
        typist
    }

    fn types(&mut self, text: &str) {
        self.keys.write_all(text.as_bytes()).unwrap();
    }

    /// Whether a text is shown before the time is over; what stands before it was then seen, and is returned.
    fn sees_within(&mut self, text: &str, time: Duration) -> Result<String, String> {
        let until = Instant::now() + time;
        let mut screen = self.screen.0.lock().unwrap();
        loop {
            let shown = plain(&screen.0);
            let new = shown.get(self.seen..).unwrap_or_default();
            if let Some(at) = new.find(text) {
                self.seen += at + text.len();
                return Ok(new[..at].to_owned());
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || screen.1 {
                return Err(new.to_owned());
            }
            screen = self.screen.1.wait_timeout(screen, left).unwrap().0;
        }
    }

    fn sees(&mut self, text: &str) -> String {
        self.sees_within(text, PATIENCE)
            .unwrap_or_else(|shown| panic!("{text:?} is not shown, but {shown:?}"))
    }

    /// Types lines, each behind a prompt; returns what was shown for the last one.
    fn runs(&mut self, lines: &str) -> String {
        let mut shown = String::new();
        for line in lines.lines() {
            self.types(line);
            self.types("\r");
            shown = self.sees("# ");
        }
        shown
    }

    /// Presses Ctrl-D at an empty line, whose prompt has been seen: what is typed ahead of the prompt may be lost.
    fn leaves(mut self) -> Option<i32> {
        self.types(CONTROL_D);
        self.child.wait().unwrap().code()
    }
}

impl Drop for Typist {
    fn drop(&mut self) {
        // Of a test that failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct World(tempfile::TempDir);

impl World {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A shell whose history is `history` in this world.
    fn shell(&self, environment: &[(&str, &str)]) -> Typist {
        let (db, history) = (self.path("db"), self.path("history"));
        let mut all = vec![("VELLUM_HISTORY", history.to_str().unwrap())];
        all.extend_from_slice(environment);
        Typist::new(&["--data", db.to_str().unwrap()], &all)
    }

    fn history(&self) -> String {
        std::fs::read_to_string(self.path("history")).unwrap()
    }
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn what_was_typed_is_there_the_next_time() {
    let world = World::new();
    let (db, home) = (world.path("db"), world.path("home"));
    let shell = || {
        let environment = [("HOME", home.to_str().unwrap())];
        Typist::new(&["--data", db.to_str().unwrap()], &environment)
    };
    let mut first = shell();
    assert!(first.runs("select 40 + 2 as sum;").contains("42"));
    first.runs("\\timing");
    first.types("select 'one'\r");
    first.sees("vellum-# ");
    assert!(first.runs("  || 'more' as t;").contains("onemore"));
    assert_eq!(first.leaves(), Some(0));

    let file = home.join(".local/state/vellum/history");
    assert_eq!(mode(&file), 0o600);
    assert_eq!(mode(file.parent().unwrap()), 0o700);

    let mut second = shell();
    // An entry is the whole statement.
    second.types(UP);
    second.sees("select 'one'\n");
    second.sees("  || 'more' as t;");
    second.types("\r");
    second.sees("onemore");
    second.sees(PROMPT);
    second.types(CONTROL_R);
    second.types("40 +");
    second.sees("select 40 + 2 as sum;");
    second.types("\r");
    second.sees("42");
    second.sees(PROMPT);
    // The line can be edited: the cursor goes back over `;`.
    second.types(UP);
    second.sees("select 40 + 2 as sum;");
    second.types("\x1b[D, 7 * 11 as product\r");
    second.sees("77");
    second.sees(PROMPT);
    assert_eq!(second.leaves(), Some(0));
}

#[test]
fn control_c_ends_what_is_typed_or_runs_and_not_the_shell() {
    let world = World::new();
    let script = world.path("script.sql");
    std::fs::write(&script, "select pg_sleep(600);\nselect 'behind it';\n").unwrap();
    let mut shell = world.shell(&[]);
    shell.types("select 'begun\r");
    shell.sees("vellum'# ");
    shell.types("not ended");
    shell.types(CONTROL_C);
    shell.sees(PROMPT);
    assert!(shell.runs("select 40 + 2 as sum;").contains("42"));
    for statements in [
        "select pg_sleep(600); select 'behind it';",
        &format!("\\i {}", script.display()),
    ] {
        shell.types(statements);
        shell.types("\r");
        // One that comes before the statement runs is not about it.
        let until = Instant::now() + PATIENCE;
        loop {
            shell.types(CONTROL_C);
            if shell
                .sees_within("57014", Duration::from_millis(300))
                .is_ok()
            {
                break;
            }
            assert!(Instant::now() < until, "nothing is cancelled");
        }
        // And one that comes behind it is at the prompt.
        shell.types("select 'the ' || 'end';\r");
        let between = shell.sees("the end");
        assert!(!between.contains("behind it"), "{between}");
        shell.sees(PROMPT);
    }
    // Data of a COPY are thrown away.
    shell.runs("create table t (a int);");
    shell.types("copy t from stdin;\r");
    shell.sees(">> ");
    shell.types("1\r");
    shell.sees(">> ");
    shell.types(CONTROL_C);
    let said = shell.sees(PROMPT);
    assert!(
        said.contains("57014") && said.contains("canceled by user"),
        "{said}"
    );
    assert!(
        shell
            .runs("select 'rows', count(*) from t;")
            .contains("rows     |     0")
    );
    assert_eq!(shell.leaves(), Some(1), "statements have failed");
    assert!(!world.history().contains("begun"), "{}", world.history());
}

#[test]
fn some_of_it_is_not_kept() {
    let world = World::new();
    let mut shell = world.shell(&[]);
    shell.runs(
        "select 1;\nselect 1;\n select 'behind a space';\ncreate role guest login password 'hush';",
    );
    shell.types("alter role guest\r");
    shell.sees("vellum-# ");
    shell.runs("password 'hush';");
    shell.runs("create table t (a text, b text);");
    shell.types("copy t from stdin;\r");
    shell.sees(">> ");
    shell.types("a\tb\r");
    shell.sees(">> ");
    shell.runs("\\.");
    shell.runs("select 2;");
    let kept = "select 1;\ncreate table t (a text, b text);\ncopy t from stdin;\nselect 2;\n";
    assert_eq!(world.history(), format!("#V2\n{kept}"));
    assert!(shell.runs("\\s").contains(kept));
    let copy = world.path("copy");
    let said = shell.runs(&format!("\\s {}", copy.display()));
    assert!(said.contains("Wrote history to file"), "{said}");
    let written = std::fs::read_to_string(&copy).unwrap();
    assert!(
        written.starts_with(kept) && written.contains("\\s\n"),
        "{written}"
    );
    assert_eq!(mode(&copy), 0o600);
    assert_eq!(mode(&world.path("history")), 0o600);
}

#[test]
fn lines_that_come_at_once_are_taken_one_by_one() {
    let world = World::new();
    let mut shell = world.shell(&[]);
    let text = |table: &str| {
        format!(
            "create table {table} (a text, b text);\rcopy {table} from stdin;\rone\ttwo\r\\.\rselect 40 +\r  2 as sum;\r"
        )
    };
    // As a terminal pastes, and as one that says nothing of it.
    shell.types(&format!("\x1b[200~{}\x1b[201~\r", text("t")));
    shell.sees("42\n");
    shell.sees(PROMPT);
    shell.types(&text("u"));
    shell.sees("42\n");
    shell.sees(PROMPT);
    for table in ["t", "u"] {
        let shown = shell.runs(&format!("select '<' || a || '>' || b from {table};"));
        assert!(shown.contains("<one>two"), "{shown}");
    }
    let history = world.history();
    assert!(
        history.contains("\nselect 40 +\\n  2 as sum;\n"),
        "{history}"
    );
    assert!(!history.contains("one"), "{history}");
}

#[test]
fn a_terminal_without_editing_will_do() {
    let world = World::new();
    let mut shell = world.shell(&[("TERM", "dumb")]);
    shell.types("select 'begun\r");
    shell.sees("vellum'# ");
    shell.types(CONTROL_C);
    // Such a terminal says nothing of the signal, which is about what is typed before it comes: as late as a person's next key.
    std::thread::sleep(Duration::from_millis(500));
    // There may be a prompt before the answer.
    shell.types("select 40 + 2 as sum;\r");
    shell.sees("42");
    shell.sees(PROMPT);
    assert_eq!(shell.leaves(), Some(0));
    assert_eq!(world.history(), "#V2\nselect 40 + 2 as sum;\n");
}

#[test]
fn a_place_that_cannot_be_written_is_told_once() {
    let world = World::new();
    let history = world.path("db/control/history");
    let mut shell = world.shell(&[("VELLUM_HISTORY", history.to_str().unwrap())]);
    let said = plain(&shell.screen.0.lock().unwrap().0);
    assert!(said.contains("no history is kept"), "{said}");
    let said = shell.runs("select 40 + 2 as sum;\nselect 2;");
    assert!(!said.contains("no history is kept"), "{said}");
    shell.types(UP);
    shell.types(UP);
    shell.sees("select 40 + 2 as sum;");
    shell.types(CONTROL_C);
    shell.sees(PROMPT);
    assert_eq!(shell.leaves(), Some(0));
}

#[test]
fn results_that_go_elsewhere_have_no_prompts_among_them() {
    let world = World::new();
    let terminal = openpty(None, None).unwrap();
    let mut keys = File::from(terminal.master);
    let child = Command::new(env!("CARGO_BIN_EXE_vellum"))
        .args(["sql", "--format", "csv", "--data"])
        .arg(world.path("db"))
        .env("VELLUM_HISTORY", world.path("history"))
        .stdin(terminal.slave)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    keys.write_all(b"select 40 + 2 as sum;\n\x04").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "sum\n42\n");
    assert!(!world.path("history").exists());
}
