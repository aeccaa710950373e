//! `cargo xtask planted`: do the tools of `testing` catch the bugs that are planted for them?
//!
//! One build with the feature `planted` of `vellum-base`; in each run one bug is switched on by `VELLUM_PLANTED`. A bug is caught if each of its tools,
//! which pass without it, fails within its budget, by a verdict of its own: a panic of the product is none, and the build is without debug assertions, which
//! would often be the first to say something. The tools are random: one that passes runs again, with a fresh seed, while there is time.
//! The binaries are run as they were built, so that sources may change meanwhile.
//!
//! What a run of all bugs found replaces the table in [`TABLE`]: which tool, in how many seconds, and what it calls that. Where a client ended with an error of the
//! engine, the tool is `clients` alone: the checker of histories, or what else its workload is checked by, named nothing.
//!
//! Not checked: that a tool fails for the reason that it should; what it said is printed.

use crate::binaries::{self, Binary, End};
use crate::workspace::{Workspace, cargo};
use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

/// What a tool may take to catch a bug.
const BUDGET: Duration = Duration::from_secs(60);
/// A run that takes longer hangs; that is no catch, as what is wrong on purpose may go round for ever. It is tried again while there is time.
const LIMIT: Duration = Duration::from_secs(40);
/// The same of a run without a bug.
const LIMIT_SOUND: Duration = Duration::from_secs(120);
/// Packages of the tools.
const PACKAGES: [&str; 7] = [
    "vellum-clients",
    "vellum-crash",
    "vellum-fuzz",
    "vellum-model",
    "vellum-schedules",
    "vellum-txn",
    "vellum-version",
];

/// Test binaries of the tools, beside the libraries' own.
const BINARIES: [&str; 5] = [
    "engine",
    "crash_power",
    "crash_clients",
    "damage",
    "isolation",
];

/// Where the table of what a run found is kept, behind the line [`MARK`].
const TABLE: &str = "docs/planted-bugs.md";
const MARK: &str = "<!-- what follows is written by `cargo xtask planted` -->";

/// Rounds of the clients in one run.
const CLIENT_ROUNDS: &str = "20";

/// Tests that look for bugs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Tool {
    name: &'static str,
    package: &'static str,
    binary: &'static str,
    /// Part of the tests' names.
    tests: &'static str,
}

const fn tool(
    name: &'static str,
    package: &'static str,
    binary: &'static str,
    tests: &'static str,
) -> Tool {
    Tool {
        name,
        package,
        binary,
        tests,
    }
}

const fn clients(name: &'static str, tests: &'static str) -> Tool {
    tool(name, "vellum-clients", "crash_clients", tests)
}

const fn model(name: &'static str, tests: &'static str) -> Tool {
    tool(name, "vellum-model", "engine", tests)
}

const fn fuzz(name: &'static str, tests: &'static str) -> Tool {
    tool(name, "vellum-fuzz", "damage", tests)
}

/// One workload of those that are cut: all of them in one run take longer than a bug is given.
const fn power(name: &'static str, tests: &'static str) -> Tool {
    tool(name, "vellum-crash", "crash_power", tests)
}

const MODEL: Tool = model("model", "in_one_life");
const OLD: Tool = model("model, old snapshots", "with_old_snapshots");
const INDEX: Tool = model("model, indexes", "in_an_index");
const DAMAGE: Tool = fuzz("damaged files", "prop_damage");
const FORGERY: Tool = fuzz("forged files", "prop_bytes");
/// In the model rows with bounded versions seldom meet the snapshot that shows them; here they are all that there is.
const STORE: Tool = tool(
    "histories of a store",
    "vellum-version",
    "vellum_version",
    "prop_snapshots",
);
/// Bodies of many lengths, in rows that have no room for all of them.
const FAT: Tool = tool(
    "fat rows and a model",
    "vellum-version",
    "vellum_version",
    "prop_every_snapshot_reads_fat_rows",
);
/// Random histories hardly ever insert, by an old writer, the very key that came and went: these do.
const DROPS: Tool = tool(
    "old writers over dropped rows",
    "vellum-version",
    "vellum_version",
    "old_writer",
);
/// The same of a row that is made anew while it is being judged.
const CHAINS: Tool = tool(
    "chains made anew",
    "vellum-version",
    "vellum_version",
    "row_whose_chain_was_made_anew",
);
/// Recorded histories of a minute did not meet a promotion in the middle of an operation that moves what it reads.
const PROMOTION: Tool = tool(
    "promotion between operations",
    "vellum-txn",
    "isolation",
    "r10_",
);
/// A row is buried while it is looked for, between the two places where it may be.
const ORDER: Tool = tool(
    "burials under a reader",
    "vellum-version",
    "vellum_version",
    "right_before_the_leaf_is_read",
);
/// One round of maintenance, and in the middle of it a collector with newer watermarks.
const TURNS: Tool = tool(
    "collectors in turn",
    "vellum-version",
    "vellum_version",
    "collectors_in_turn",
);
/// A pass stands between its two looks at a slot, and the slot's owner takes a new snapshot: in a run that takes a few nanoseconds.
const QUIET: Tool = tool(
    "slots that become quiet",
    "vellum-txn",
    "isolation",
    "becomes_quiet",
);
const POWER: Tool = power("power cuts", "of_commits");
const POWER_UNDO: Tool = power("power cuts, rollbacks and checkpoints", "of_rollbacks");
const POWER_LOSERS: Tool = power("power cuts, several losers", "of_several_losers");
/// Cuts of one thread's calls met nobody who writes while a checkpoint is about to end.
const POWER_CHECKPOINT: Tool = power("power cuts, a checkpoint's end", "before_the_control_file");
const POWER_LONG: Tool = power("power cuts, long transactions", "of_transactions_longer");
const LISTS: Tool = clients("clients, checker of histories", "crash_list_few");
const BANK: Tool = clients("clients, bank", "crash_bank");
const QUEUE: Tool = clients("clients, queue", "crash_queue");
const VARIANTS: Tool = clients("clients, variants", "crash_variants");
/// Six sessions hold snapshots of random ages, and look into them again and again.
const MANY: Tool = clients("clients, many old snapshots", "crash_many_old");
/// The bodies of the schedules, on the machine's threads: those that shuttle drives need a build of their own.
const SCHEDULES: Tool = tool(
    "schedules",
    "vellum-schedules",
    "engine",
    "engine_keeps_its_promises",
);

/// Which tools are to catch which bug. The names are those of `vellum_base::planted`.
const BUGS: [(&str, &[Tool]); 40] = [
    ("no-conflict-check", &[LISTS, SCHEDULES]),
    ("watermark-too-new", &[VARIANTS]),
    ("commit-log-too-late", &[LISTS]),
    ("undo-skipped", &[MODEL, SCHEDULES]),
    ("savepoint-kept", &[MODEL, SCHEDULES]),
    ("own-command-seen", &[MODEL]),
    ("lcb-cache-stale", &[LISTS]),
    ("acknowledged-early", &[BANK]),
    ("polled-early", &[POWER_LOSERS]),
    ("log-not-synced", &[POWER]),
    ("log-released-early", &[POWER_CHECKPOINT]),
    ("torn-pages-kept", &[POWER_UNDO]),
    ("redo-skipped", &[POWER]),
    ("losers-kept", &[POWER_UNDO]),
    ("one-loser-kept", &[POWER_LOSERS]),
    ("graveyard-skipped", &[QUEUE, MANY]),
    ("deltas-too-early", &[LISTS]),
    ("pruned-too-much", &[STORE, MANY]),
    ("settled-too-early", &[OLD]),
    ("dropped-too-early", &[OLD]),
    ("swept-too-early", &[STORE]),
    ("purged-too-early", &[STORE]),
    ("displaced-too-much", &[STORE]),
    ("spilled-stale", &[FAT]),
    ("shortcut-too-far", &[STORE]),
    ("adopted-for-good", &[MODEL]),
    ("ring-cut-short", &[POWER_LONG]),
    ("index-entry-kept", &[INDEX]),
    ("checksum-ignored", &[DAMAGE]),
    ("nodes-unchecked", &[FORGERY]),
    ("drops-unnoted", &[DROPS]),
    ("chain-not-followed-again", &[CHAINS]),
    ("promoted-midway", &[PROMOTION]),
    ("graveyard-first", &[ORDER]),
    ("watermarks-stale", &[TURNS]),
    ("born-late", &[STORE, VARIANTS]),
    ("after-oldest", &[STORE, OLD]),
    ("quiet-unchecked", &[QUIET]),
    ("quiet-for-good", &[STORE, VARIANTS]),
    ("decomposed-short", &[STORE, VARIANTS]),
];

/// What a run of a tool came to.
enum Run {
    Passed,
    /// By a verdict of the tool's, which it calls so.
    Caught(String),
    /// By a panic of the product and nothing else: where, and what it said.
    Panicked(String),
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
    let mut tools: Vec<Tool> = chosen
        .iter()
        .flat_map(|(_, tools)| *tools)
        .copied()
        .collect();
    tools.sort_unstable();
    tools.dedup();
    for tool in tools {
        let complaint = match run_tool(&binaries, tool, None)? {
            Run::Passed => {
                println!("{}: passes without a bug", tool.name);
                continue;
            }
            Run::Caught(what) | Run::Panicked(what) => format!("fails without a bug: {what}"),
            Run::Hung => "hangs without a bug".to_owned(),
        };
        println!("{}: {complaint}", tool.name);
        return Ok(false);
    }
    let mut table = String::new();
    let mut line = |text: String| {
        println!("{text}");
        table.push_str(&text);
        table.push('\n');
    };
    line("| bug | tool | caught | seconds | runs | as |".into());
    line("| --- | --- | --- | --- | --- | --- |".into());
    let mut caught = 0;
    for (bug, tools) in &chosen {
        let mut by_all = true;
        for tool in *tools {
            let start = Instant::now();
            let (verdict, runs) = look(&binaries, *tool, bug, start)?;
            let seconds = start.elapsed().as_secs_f64();
            let (word, what) = match &verdict {
                // A name that the build does not know makes every test fail.
                Run::Caught(what) | Run::Panicked(what) if what.contains("no bug is called") => {
                    ("no", &**what)
                }
                Run::Caught(what) => ("yes", &**what),
                Run::Panicked(what) => ("by the product alone", &**what),
                Run::Passed => ("no", ""),
                Run::Hung => ("no", "hangs"),
            };
            by_all &= word == "yes";
            let tool = credited(*tool, what);
            line(format!(
                "| {bug} | {tool} | {word} | {seconds:.1} | {runs} | {what} |"
            ));
        }
        caught += usize::from(by_all);
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

/// Runs a tool with a bug, again and again while there is time, until it gives a verdict; how many runs that took.
fn look(binaries: &Binaries, tool: Tool, bug: &str, start: Instant) -> io::Result<(Run, u32)> {
    let (mut runs, mut worst) = (0, Run::Passed);
    loop {
        runs += 1;
        // What is said after the budget is too late.
        let left = BUDGET.saturating_sub(start.elapsed());
        match run_tool(binaries, tool, Some((bug, left)))? {
            Run::Caught(what) => return Ok((Run::Caught(what), runs)),
            Run::Passed => {}
            Run::Hung if left < LIMIT => {}
            other => worst = other,
        }
        if start.elapsed() >= BUDGET {
            return Ok((worst, runs));
        }
    }
}

/// Test binaries by package and name.
type Binaries = BTreeMap<(String, String), Binary>;

/// Builds the tools with the bugs in; `None` if that fails.
fn build(workspace: &Workspace) -> io::Result<Option<Binaries>> {
    let mut command = cargo();
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
    command.env("CARGO_PROFILE_TEST_DEBUG_ASSERTIONS", "false");
    command.env("CARGO_PROFILE_DEV_DEBUG_ASSERTIONS", "false");
    let built = binaries::build(workspace, command)?;
    Ok(built.map(|binaries| {
        binaries
            .into_iter()
            .map(|binary| ((binary.package.clone(), binary.name.clone()), binary))
            .collect()
    }))
}

/// With a bug, and what is left of its budget; or without one.
fn run_tool(binaries: &Binaries, tool: Tool, bug: Option<(&str, Duration)>) -> io::Result<Run> {
    let built = binaries.get(&(tool.package.to_owned(), tool.binary.to_owned()));
    let built = built.ok_or_else(|| io::Error::other(format!("{} was not built", tool.name)))?;
    let mut command = built.command();
    command.arg(tool.tests).env("RUST_BACKTRACE", "0");
    if tool.package == LISTS.package {
        // A run of its own is too short to be worth starting.
        command.env("VELLUM_ROUNDS", CLIENT_ROUNDS);
    }
    let limit = match bug {
        Some((bug, left)) => {
            command.env("VELLUM_PLANTED", bug);
            LIMIT.min(left)
        }
        None => LIMIT_SOUND,
    };
    Ok(match binaries::run(&mut command, limit)? {
        End::Passed(_) => Run::Passed,
        End::Failed(said) => verdict(&said),
        End::Hung(_) => Run::Hung,
    })
}

/// The names that the checker of histories gives (`vellum_history::Name`).
const ANOMALIES: [&str; 12] = [
    "internal",
    "lost-append",
    "duplicate-append",
    "garbage-read",
    "incompatible-order",
    "G1a",
    "G1b",
    "G0",
    "G1c",
    "G-single",
    "G-nonadjacent",
    "G2-item",
];

/// A panic: where, and the lines that it said.
type Panic<'s> = (&'s str, Vec<&'s str>);

fn panics(said: &str) -> Vec<Panic<'_>> {
    let mut found: Vec<Panic<'_>> = Vec::new();
    let mut inside = false;
    for line in said.lines() {
        if let Some((_, place)) = line.split_once("panicked at ") {
            found.push((place.trim_end_matches(':'), Vec::new()));
            inside = true;
        } else if line.starts_with("note: ")
            || line.starts_with("test ")
            || line.starts_with("failures:")
        {
            inside = false;
        } else if let (true, Some((_, lines))) = (inside, found.last_mut()) {
            lines.push(line);
        }
    }
    found
}

/// Whether code of a tool said it, and not the product's.
fn is_of_a_tool(place: &str) -> bool {
    place.contains("testing/") || place.contains("/tests/")
}

/// What failed tests said.
fn verdict(said: &str) -> Run {
    let panics = panics(said);
    match panics.iter().find(|(place, _)| is_of_a_tool(place)) {
        Some((_, lines)) => Run::Caught(short(&called(lines))),
        None => {
            let (place, lines) = panics.first().cloned().unwrap_or_default();
            let what = lines.first().copied().unwrap_or_default();
            Run::Panicked(short(&format!("{place}: {what}")))
        }
    }
}

/// What a tool calls it: an anomaly by its name, an invariant by its number, what differs from the model; or its first line.
fn called(lines: &[&str]) -> String {
    let is_anomaly = |line: &&&str| {
        let (title, _) = line.split_once(": ").unwrap_or_default();
        let name = title.split([' ', '(']).next().unwrap_or_default();
        ANOMALIES.contains(&name.trim_end_matches("-realtime"))
    };
    if let Some(line) = lines.iter().find(is_anomaly) {
        return (*line).to_owned();
    }
    for line in lines {
        let words = line.match_indices(": ").map(|(at, _)| at);
        for end in words.filter(|end| *end >= 2) {
            let mut number = line[..end].chars().rev();
            let (digit, letter, before) = (number.next(), number.next(), number.next());
            let is_invariant = digit.is_some_and(|digit| digit.is_ascii_digit())
                && letter.is_some_and(|letter| letter.is_ascii_uppercase())
                && before.is_none_or(|before| before == ' ');
            if is_invariant {
                return line[end - 2..].to_owned();
            }
        }
    }
    if let Some(step) = lines.iter().find(|line| line.starts_with("> ")) {
        return format!(
            "another answer than the model: {}",
            step.trim_start_matches(['>', ' '])
        );
    }
    // Behind the command that runs it again stands where it was, what was done, and last what was found.
    let is_told = |line: &&&str| !line.starts_with("VELLUM_SEED") && !line.is_empty();
    let told: Vec<&str> = lines.iter().filter(is_told).copied().collect();
    let told = match told[..] {
        [] => lines.first().copied().unwrap_or_default().to_owned(),
        [only] => only.to_owned(),
        [first, .., last] if first.starts_with("power cut") => {
            let (place, _) = first.split_once(" (").unwrap_or((first, ""));
            format!("{place}: {last}")
        }
        [first, ..] => first.to_owned(),
    };
    match told.split_once("VELLUM_ROUNDS=1: ") {
        Some((_, what)) => what.to_owned(),
        None => told,
    }
}

/// Who said it: a client that ended with an error of the engine never came to what its workload is checked by.
fn credited(tool: Tool, what: &str) -> &'static str {
    let ended = what
        .strip_prefix("session ")
        .and_then(|rest| rest.split_once(" ended with: "));
    match ended {
        Some((session, _)) if tool.package == LISTS.package && session.parse::<u64>().is_ok() => {
            "clients"
        }
        _ => tool.name,
    }
}

/// Short enough for a table.
fn short(text: &str) -> String {
    const LONGEST: usize = 130;
    let text = text.trim().replace('|', "/");
    text.chars().take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caught(said: &str) -> String {
        match verdict(said) {
            Run::Caught(what) => what,
            _ => panic!("not caught: {said}"),
        }
    }

    #[test]
    fn a_tool_that_fails_is_heard_by_the_name_that_it_gives() {
        let lists = "running 1 test\nthread 'a' panicked at testing/clients/tests/crash_clients.rs:25:26:\nlist-few: VELLUM_SEED=3: 7 transactions\n\
                     G-single-realtime (lost update): a cycle of 2 transactions\n  T1 wrote\nnote: run with\ntest x ... FAILED";
        assert_eq!(
            caught(lists),
            "G-single-realtime (lost update): a cycle of 2 transactions"
        );
        let bank = "thread 'a' panicked at testing/clients/tests/crash_clients.rs:25:26:\nbank: VELLUM_SEED=3: B2: transfer 7 is lost";
        assert_eq!(caught(bank), "B2: transfer 7 is lost");
        let model = "thread 'a' panicked at testing/model/tests/engine.rs:1:2:\nConfig { a: 1 }\nseed 3: a difference\n     0 Begin\n>    1 Get | x";
        assert_eq!(caught(model), "another answer than the model: 1 Get / x");
        let power = "thread 'a' panicked at testing/crash/tests/crash_power.rs:1:2:\nVELLUM_SEED=1 cargo test\npower cut at call 7 (All)\n  6 Sync\nis not there";
        assert_eq!(caught(power), "power cut at call 7: is not there");
        let ended = "thread 'a' panicked at testing/clients/tests/crash_clients.rs:1:2:\nlist-few: VELLUM_SEED=1 VELLUM_ROUNDS=1: session 1 ended";
        assert_eq!(caught(ended), "session 1 ended");
    }

    #[test]
    fn a_client_that_ended_with_an_error_is_no_verdict_of_the_checker() {
        let ended = "thread 'a' panicked at testing/clients/tests/crash_clients.rs:1:2:\nlist-few: VELLUM_SEED=1 VELLUM_ROUNDS=1: session 3 ended with: no table \"lists\"";
        assert_eq!(credited(LISTS, &caught(ended)), "clients");
        assert_eq!(credited(BANK, "session 0 ended with: no"), "clients");
        let anomaly = "internal: T3 read key 1 as [2], where it must be []";
        assert_eq!(credited(LISTS, anomaly), LISTS.name);
        assert_eq!(credited(BANK, "B2: transfer 7 is lost"), BANK.name);
        // Of another tool it is a sentence like any other.
        assert_eq!(credited(MODEL, "session 3 ended with: no"), MODEL.name);
    }

    #[test]
    fn a_panic_of_the_product_is_no_verdict_of_a_tool() {
        let alone = "thread 'a' panicked at crates/transaction/txn/src/domain.rs:1:2:\nR2: no\n";
        assert!(
            matches!(verdict(alone), Run::Panicked(what) if what == "crates/transaction/txn/src/domain.rs:1:2: R2: no")
        );
        let both = format!("{alone}thread 'b' panicked at testing/x.rs:1:2:\nR9: yes");
        assert_eq!(caught(&both), "R9: yes");
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
