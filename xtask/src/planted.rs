//! `cargo xtask planted`: do the tools of `testing` catch the bugs that are planted for them?
//!
//! One build with the feature `planted` of `vellum-base`; in each run one bug is switched on by `VELLUM_PLANTED`. A bug is caught if its tool,
//! which passes without it, fails within its budget. The tools are random: one that passes runs again, with a fresh seed, while there is time.
//! The binaries are run as they were built, so that sources may change meanwhile.
//!
//! What a run of all bugs found replaces the table in [`TABLE`].
//!
//! Not checked: that a tool fails for the reason that it should; the message it gave is printed.

use crate::binaries::{self, Binary, End};
use crate::workspace::{Workspace, cargo};
use std::collections::BTreeMap;
use std::io;
use std::process::Command;
use std::time::{Duration, Instant};

/// What a tool may take to catch a bug.
const BUDGET: Duration = Duration::from_secs(60);
/// A run that takes longer hangs; that is no catch, as what is wrong on purpose may go round for ever. It is tried again while there is time.
const LIMIT: Duration = Duration::from_secs(40);
/// The same of a run without a bug.
const LIMIT_SOUND: Duration = Duration::from_secs(120);
/// Packages of the tools.
const PACKAGES: [&str; 5] = [
    "vellum-clients",
    "vellum-crash",
    "vellum-fuzz",
    "vellum-model",
    "vellum-version",
];

/// Test binaries of the tools, beside the libraries' own.
const BINARIES: [&str; 4] = [MODEL.1, POWER.1, LISTS.1, DAMAGE.1];

/// Where the table of what a run found is kept, behind the line [`MARK`].
const TABLE: &str = "docs/planted-bugs.md";
const MARK: &str = "<!-- what follows is written by `cargo xtask planted` -->";

/// Rounds of the clients in one run.
const CLIENT_ROUNDS: &str = "20";

/// A tool: name, test binary, tests.
type Tool = (&'static str, &'static str, &'static str);

const MODEL: Tool = ("model", "engine", "in_one_life");
const OLD: Tool = ("model, old snapshots", "engine", "with_old_snapshots");
const INDEX: Tool = ("model, indexes", "engine", "in_an_index");
const DAMAGE: Tool = ("damaged files", "damage", "prop_damage");
const FORGERY: Tool = ("forged files", "damage", "prop_bytes");
/// In the model rows with bounded versions seldom meet the snapshot that shows them; here they are all that there is.
const STORE: Tool = ("histories of a store", "vellum_version", "prop_snapshots");
const POWER: Tool = ("power cuts", "crash_power", "crash_power");
const LISTS: Tool = ("clients, lists", "crash_clients", "crash_list");
const BANK: Tool = ("clients, bank", "crash_clients", "crash_bank");
const COUNTER: Tool = ("clients, counter", "crash_clients", "crash_counter");
const QUEUE: Tool = ("clients, queue", "crash_clients", "crash_queue");

/// Which tool is to catch which bug. The names are those of `vellum_base::planted`.
const BUGS: [(&str, Tool); 26] = [
    ("no-conflict-check", LISTS),
    ("watermark-too-new", LISTS),
    ("commit-log-too-late", COUNTER),
    ("undo-skipped", MODEL),
    ("savepoint-kept", MODEL),
    ("own-command-seen", MODEL),
    ("lcb-cache-stale", LISTS),
    ("acknowledged-early", BANK),
    ("log-not-synced", POWER),
    ("torn-pages-kept", POWER),
    ("redo-skipped", POWER),
    ("losers-kept", POWER),
    ("graveyard-skipped", QUEUE),
    ("deltas-too-early", LISTS),
    ("pruned-too-much", STORE),
    ("settled-too-early", OLD),
    ("dropped-too-early", OLD),
    ("swept-too-early", STORE),
    ("purged-too-early", STORE),
    ("displaced-too-much", STORE),
    ("shortcut-too-far", STORE),
    ("adopted-for-good", MODEL),
    ("ring-cut-short", POWER),
    ("index-entry-kept", INDEX),
    ("checksum-ignored", DAMAGE),
    ("nodes-unchecked", FORGERY),
];

/// What a run of a tool came to.
enum Run {
    Passed,
    /// And the first thing it said of it.
    Failed(String),
    Hung,
}

/// Runs the tools without a bug, then each bug whose name begins with `only`. True if all are caught.
///
/// # Errors
/// If cargo cannot be run.
pub fn run(workspace: &Workspace, only: &str) -> io::Result<bool> {
    let Some(binaries) = build(workspace)? else {
        return Ok(false);
    };
    let chosen: Vec<_> = BUGS
        .iter()
        .filter(|(bug, _)| bug.starts_with(only))
        .collect();
    let mut tools: Vec<Tool> = chosen.iter().map(|(_, tool)| *tool).collect();
    tools.sort_unstable();
    tools.dedup();
    for tool in tools {
        match run_tool(&binaries, tool, None)? {
            Run::Passed => println!("{}: passes without a bug", tool.0),
            Run::Failed(what) => {
                println!("{}: fails without a bug: {what}", tool.0);
                return Ok(false);
            }
            Run::Hung => {
                println!("{}: hangs without a bug", tool.0);
                return Ok(false);
            }
        }
    }
    let mut table = String::new();
    let mut line = |text: String| {
        println!("{text}");
        table.push_str(&text);
        table.push('\n');
    };
    line("| bug | caught by | seconds | runs | how it said so |".into());
    line("| --- | --- | --- | --- | --- |".into());
    let mut caught = 0;
    for (bug, tool) in &chosen {
        let start = Instant::now();
        let mut runs = 0;
        let said = loop {
            runs += 1;
            match run_tool(&binaries, *tool, Some(bug))? {
                Run::Failed(what) => break Some(what),
                Run::Passed | Run::Hung if start.elapsed() < BUDGET => {}
                Run::Passed | Run::Hung => break None,
            }
        };
        let seconds = start.elapsed().as_secs_f64();
        // A name that the build does not know makes every test fail.
        let known = said
            .as_ref()
            .is_none_or(|what| !what.contains("no bug is called"));
        caught += usize::from(said.is_some() && known);
        let (by, what) = match &said {
            Some(what) if known => (tool.0, what.as_str()),
            Some(what) => ("nobody", what.as_str()),
            None => ("nobody", ""),
        };
        line(format!("| {bug} | {by} | {seconds:.1} | {runs} | {what} |"));
    }
    let sum = format!("planted {} caught {caught}", chosen.len());
    if only.is_empty() {
        let file = workspace.root.join(TABLE);
        let text = std::fs::read_to_string(&file)?;
        let head = text.split(MARK).next().unwrap_or_default();
        std::fs::write(&file, format!("{head}{MARK}\n\n{table}\n{sum}\n"))?;
    }
    println!("{sum}");
    Ok(caught == chosen.len())
}

/// Builds the tools with the bugs in: the binaries by the names of their test files; `None` if that fails.
fn build(workspace: &Workspace) -> io::Result<Option<BTreeMap<String, Binary>>> {
    let mut command = Command::new(cargo());
    command.current_dir(&workspace.root).arg("test");
    for package in PACKAGES {
        command.args(["-p", package]);
    }
    for binary in BINARIES {
        command.args(["--test", binary]);
    }
    command.arg("--lib");
    // What no bug is planted in is not built: SQL and the engine of queries.
    command.args(["--no-default-features", "--features", "vellum-base/planted"]);
    let built = binaries::build(workspace, command)?;
    Ok(built.map(|binaries| {
        binaries
            .into_iter()
            .map(|binary| (binary.name.clone(), binary))
            .collect()
    }))
}

fn run_tool(
    binaries: &BTreeMap<String, Binary>,
    (_, binary, tests): Tool,
    bug: Option<&str>,
) -> io::Result<Run> {
    let built = binaries.get(binary);
    let built = built.ok_or_else(|| io::Error::other(format!("{binary} was not built")))?;
    let mut command = built.command();
    command.arg(tests).env("RUST_BACKTRACE", "0");
    if binary == LISTS.1 {
        // A run of its own is too short to be worth starting.
        command.env("VELLUM_ROUNDS", CLIENT_ROUNDS);
    }
    if let Some(bug) = bug {
        command.env("VELLUM_PLANTED", bug);
    }
    let limit = if bug.is_some() { LIMIT } else { LIMIT_SOUND };
    Ok(match binaries::run(&mut command, limit)? {
        End::Passed(_) => Run::Passed,
        End::Failed(said) => Run::Failed(reason(&said)),
        End::Hung(_) => Run::Hung,
    })
}

/// The first thing that a failed test said, short enough for a table.
fn reason(said: &str) -> String {
    const LONGEST: usize = 110;
    let mut lines = said.lines();
    let panicked = lines
        .find(|line| line.contains("panicked at"))
        .unwrap_or("");
    let place = panicked
        .split("panicked at ")
        .nth(1)
        .unwrap_or("")
        .trim_end_matches(':');
    let what = lines.next().unwrap_or("");
    let text = format!("{place}: {what}").replace('|', "/");
    text.chars().take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_what_the_first_failed_test_said() {
        let said = "running 1 test\nthread 'x' panicked at a/b.rs:1:2:\nwrong | answer\nmore";
        assert_eq!(reason(said), "a/b.rs:1:2: wrong / answer");
    }

    #[test]
    fn every_bug_of_the_build_has_a_tool() {
        let manifest = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../crates/foundation/base/src/planted.rs"
        );
        let text = std::fs::read_to_string(manifest).unwrap();
        let named = text
            .lines()
            .filter(|line| line.contains("Bug::") && line.contains("(\""));
        assert_eq!(named.clone().count(), BUGS.len());
        for line in named {
            assert!(
                BUGS.iter()
                    .any(|(bug, _)| line.contains(&format!("\"{bug}\""))),
                "{line}"
            );
        }
    }
}
