//! Engines beside each other: in turn, each in a fresh directory, round after round, so that other users of the machine
//! hit all of them alike, and each round begins with another one: nobody is always behind the same neighbour, or first on a rested
//! machine. Figures are medians over the rounds; what is quoted is the ratio to the best peer.

mod metrics;
mod page;

use crate::Failure;
use crate::cli::{Cli, Command, Compare, Workload, WorkloadName};
use crate::directory::Series;
use crate::engines::{EngineName, Runner};
use crate::machine::{Machine, load_average};
use crate::output::{check_file, write_file};
use crate::plot::picture;
use crate::report::Summary;
use clap::Parser;
pub(crate) use metrics::{Counts, Standing};
use metrics::{Results, metrics, results, standings};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// Of the document, of the picture and of the page for people.
pub(crate) const ENDINGS: [&str; 3] = ["json", "svg", "md"];

/// An engine that did not run.
#[derive(Debug, Serialize)]
struct Skipped {
    engine: &'static str,
    why: String,
}

/// What is written as JSON.
#[derive(Serialize)]
struct Document<'d> {
    workload: &'static str,
    arguments: &'d [String],
    rounds: u32,
    commit: &'static str,
    machine: Machine,
    /// Before the first run and after the last.
    load_before: [f64; 3],
    load_after: [f64; 3],
    /// By engine and metric.
    results: &'d Results,
    /// Vellum's median to that of the best peer; above 1 Vellum is better, also where less is better.
    ratio_to_best_peer: &'d BTreeMap<String, f64>,
    /// By engine what it was opened with: isolation, durability and what a kill and a power loss lose of it, memory, and what else it tells.
    engines: BTreeMap<&'static str, BTreeMap<&'d str, &'d str>>,
    skipped: &'d [Skipped],
    /// Every run of every round, whole: settings, isolation and durability of each engine among it.
    runs: &'d [(EngineName, Summary)],
}

/// What is compared, and where its files go.
pub(crate) struct Comparison<'c> {
    pub(crate) workload: WorkloadName,
    /// Flags of the workload, as it has them alone.
    pub(crate) arguments: &'c [String],
    pub(crate) engines: &'c [EngineName],
    pub(crate) rounds: u32,
    /// Each run makes its database there, and it is removed again.
    pub(crate) data: PathBuf,
}

/// What a comparison found.
pub(crate) struct Compared {
    /// All data were consistent, the peers' too.
    pub(crate) is_consistent: bool,
    /// Table, who is left out, settings: Markdown.
    pub(crate) text: String,
    /// Everything, as JSON.
    pub(crate) json: String,
    /// SVG.
    pub(crate) picture: String,
    /// By metric, where Vellum and a peer have it.
    pub(crate) standings: Vec<Standing>,
}

/// Compares and tells. Returns whether all data were consistent.
pub(crate) fn run(
    flags: &Compare,
    runner: &mut dyn Runner,
    lines: &mut dyn Write,
    table: &mut dyn Write,
) -> Result<bool, Failure> {
    let comparison = Comparison {
        workload: flags.workload,
        arguments: &flags.arguments,
        engines: &flags.engines,
        rounds: flags.rounds,
        data: flags.out.join("data"),
    };
    let name = format!("compare-{}", flags.workload.name());
    run_into(&flags.out, &name, &comparison, runner, lines, table)
}

/// Compares, tells, and leaves document, picture and page of this name in a directory.
pub(crate) fn run_into(
    out: &Path,
    name: &str,
    comparison: &Comparison<'_>,
    runner: &mut dyn Runner,
    lines: &mut dyn Write,
    table: &mut dyn Write,
) -> Result<bool, Failure> {
    comparison.parse()?.check().map_err(Failure::Usage)?;
    let file = |ending: &str| out.join(format!("{name}.{ending}"));
    for ending in ENDINGS {
        check_file(&file(ending))?;
    }
    std::fs::create_dir_all(out).map_err(failed("create", out))?;
    let compared = compare(comparison, runner, lines, table)?;
    let texts = [&compared.json, &compared.picture, &compared.text];
    for (ending, text) in ENDINGS.into_iter().zip(texts) {
        write_file(&file(ending), text)?;
    }
    tell(table, &format!("\n{}", compared.text))?;
    Ok(compared.is_consistent)
}

/// Runs every engine that can, round after round.
///
/// A peer that fails, by a panic too, is left out from there on, with what it said; Vellum's failure is the comparison's.
///
/// # Errors
/// As a run of the workload; if no engine is left.
pub(crate) fn compare(
    comparison: &Comparison<'_>,
    runner: &mut dyn Runner,
    lines: &mut dyn Write,
    table: &mut dyn Write,
) -> Result<Compared, Failure> {
    let data = &comparison.data;
    let (workload, words) = (comparison.parse()?, comparison.words());
    workload.check().map_err(Failure::Usage)?;
    let series = Series::begin(data)?;
    let (mut skipped, mut engines) = (Vec::new(), Vec::new());
    for &engine in comparison.engines {
        match runner.check(engine, &workload) {
            Ok(()) => engines.push(engine),
            Err(why) => leave_out(engine, why, &mut skipped, table)?,
        }
    }
    if engines.is_empty() {
        return Err(Failure::Usage("no engine is left to run".to_owned()));
    }
    let load_before = load_average();
    let mut runs: Vec<(EngineName, Summary)> = Vec::new();
    let (asked, rounds) = (engines.clone(), comparison.rounds);
    for round in 1..=rounds {
        for engine in in_turn(&asked, round, rounds) {
            if !engines.contains(&engine) {
                continue;
            }
            let name = engine.name();
            tell(table, &format!("round {round} of {rounds}: {name}"))?;
            series.check_empty()?;
            let measured = AssertUnwindSafe(|| runner.measure(engine, &workload, &words, lines));
            // Unwind safety: what a run that panicked has left is not looked at again, but for its directory.
            let result = catch_unwind(measured)
                .unwrap_or_else(|panic| Err(Failure::panicked(panic.as_ref())));
            // Whatever a run that failed has left goes, too: the next one begins with nothing.
            // But what was refused because of files that are there is somebody's.
            if !matches!(result, Err(Failure::Usage(_))) {
                series.clear()?;
            }
            match result {
                Ok(summary) if summary.interrupted => return Err(Failure::Interrupted),
                Ok(summary) => runs.push((engine, summary)),
                Err(
                    failure @ (Failure::Engine { .. }
                    | Failure::Fruitless { .. }
                    | Failure::Panicked(_)
                    | Failure::Process(_)),
                ) if engine != EngineName::Vellum => {
                    engines.retain(|other| *other != engine);
                    runs.retain(|run| run.0 != engine);
                    leave_out(engine, failure.to_string(), &mut skipped, table)?;
                }
                Err(failure) => return Err(failure),
            }
        }
    }
    if engines.is_empty() {
        let told = skipped
            .iter()
            .map(|it| format!("{}: {}", it.engine, it.why));
        return Err(Failure::NobodyLeft(told.collect::<Vec<_>>().join("; ")));
    }
    let metrics = metrics(runs.iter().map(|run| &run.1));
    let results = results(&metrics, &engines, &runs);
    let standings = standings(&metrics, &results);
    let ratios = standings.iter().map(|it| (it.metric.clone(), it.ratio));
    let ratios = ratios.collect();
    let told = runs
        .iter()
        .map(|(engine, summary)| (engine.name(), summary.told().collect()));
    let name = workload.name();
    let document = Document {
        workload: name,
        arguments: comparison.arguments,
        rounds: comparison.rounds,
        commit: env!("VELLUM_COMMIT"),
        machine: Machine::here(&comparison.data),
        load_before,
        load_after: load_average(),
        results: &results,
        ratio_to_best_peer: &ratios,
        engines: told.collect(),
        skipped: &skipped,
        runs: &runs,
    };
    let mut json = serde_json::to_string_pretty(&document)
        .map_err(|source| failed("write", Path::new("the document"))(source.into()))?;
    json.push('\n');
    let mut charts = page::pictures(name, &metrics, &engines, &results, &ratios);
    charts.extend(page::over_time(&workload, &engines, &runs));
    for chart in &mut charts {
        page::name_who_is_missing(chart, &skipped);
    }
    Ok(Compared {
        json,
        picture: picture(&charts),
        is_consistent: runs.iter().all(|(_, summary)| summary.is_consistent()),
        text: page::markdown(&document, &metrics, &engines),
        standings,
    })
}

/// The engines in the order of a round: the first rounds' beginnings are spread over all of them.
fn in_turn(engines: &[EngineName], round: u32, rounds: u32) -> Vec<EngineName> {
    let mut order = engines.to_vec();
    let step = (order.len() / rounds as usize).max(1);
    order.rotate_left((round as usize - 1) * step % engines.len());
    order
}

/// For `map_err`: a file or directory could not be used.
pub(crate) fn failed(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Failure {
    let path = path.to_owned();
    move |source| Failure::File {
        action,
        path,
        source,
    }
}

/// Notes and tells that an engine does not run.
fn leave_out(
    engine: EngineName,
    why: String,
    skipped: &mut Vec<Skipped>,
    table: &mut dyn Write,
) -> Result<(), Failure> {
    let engine = engine.name();
    tell(table, &format!("{engine} is left out: {why}"))?;
    skipped.push(Skipped { engine, why });
    Ok(())
}

pub(crate) fn tell(table: &mut dyn Write, text: &str) -> Result<(), Failure> {
    writeln!(table, "{text}").map_err(failed("write", Path::new("the table")))
}

impl Comparison<'_> {
    /// The workload with its flags, on its database, as on the command line.
    fn words(&self) -> Vec<String> {
        let mut words = vec![self.workload.name().to_owned()];
        words.extend_from_slice(self.arguments);
        words.extend(["--data".to_owned(), self.data.display().to_string()]);
        words
    }

    fn parse(&self) -> Result<Workload, Failure> {
        let words = std::iter::once("vellum-bench".to_owned()).chain(self.words());
        let cli = Cli::try_parse_from(words).map_err(|error| Failure::Usage(error.to_string()))?;
        match cli.command {
            Command::Run(workload) => Ok(workload),
            Command::Figure(_) | Command::Compare(_) | Command::Report(_) => {
                Err(Failure::Usage("only workloads are compared".to_owned()))
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use vellum_workload::engine::{Description, EngineError};

    type Judge = dyn FnMut(EngineName, &Workload) -> Result<f64, Failure>;

    /// Measures nothing: a rate is what the closure says.
    pub(crate) struct Faked(pub(crate) Box<Judge>);

    impl Runner for Faked {
        fn check(&self, engine: EngineName, _: &Workload) -> Result<(), String> {
            match engine {
                EngineName::Rocksdb => Err("rocksdb is not here".to_owned()),
                _ => Ok(()),
            }
        }

        fn measure(
            &mut self,
            engine: EngineName,
            workload: &Workload,
            _: &[String],
            _: &mut dyn Write,
        ) -> Result<Summary, Failure> {
            let settings = workload.settings();
            std::fs::create_dir_all(&settings.data).expect("a directory");
            let rate = (self.0)(engine, workload)?;
            let mut summary = Summary::new(workload, &settings, &Description::default());
            summary.tx_per_s = rate;
            Ok(summary)
        }
    }

    pub(crate) fn broken() -> Failure {
        Failure::engine("run rmw")(EngineError::failed("its file is damaged"))
    }

    fn comparison(folder: &Path) -> Comparison<'static> {
        const ENGINES: [EngineName; 4] = [
            EngineName::Vellum,
            EngineName::Lmdb,
            EngineName::Redb,
            EngineName::Rocksdb,
        ];
        Comparison {
            workload: WorkloadName::Kv,
            arguments: &[],
            engines: &ENGINES,
            rounds: 3,
            data: folder.join("data"),
        }
    }

    #[test]
    fn a_peer_that_fails_in_the_middle_is_left_out_with_its_earlier_rounds() {
        let folder = tempfile::tempdir().expect("a directory");
        let comparison = comparison(folder.path());
        let mut rounds = [0; 2];
        let judge = move |engine, _: &Workload| match engine {
            EngineName::Lmdb => {
                rounds[0] += 1;
                assert!(rounds[0] < 3, "who failed is not asked again");
                if rounds[0] == 2 {
                    Err(broken())
                } else {
                    Ok(1e9)
                }
            }
            EngineName::Redb => {
                rounds[1] += 1;
                Ok(f64::from(rounds[1]) * 100.0)
            }
            _ => Ok(400.0),
        };
        let (mut lines, mut table) = (Vec::new(), Vec::new());
        let mut faked = Faked(Box::new(judge));
        let compared = compare(&comparison, &mut faked, &mut lines, &mut table);
        let compared = compared.unwrap_or_else(|failure| panic!("{failure}"));
        // The best peer is among those that are left, by its median.
        let standing = &compared.standings[0];
        assert_eq!((standing.best_peer, standing.best), ("redb", 200.0));
        assert_eq!(standing.ratio, 2.0);
        let told = String::from_utf8(table).expect("text");
        for text in [&told, &compared.text] {
            for who in ["lmdb", "its file is damaged", "rocksdb is not here"] {
                assert!(text.contains(who), "{who}: {text}");
            }
        }
        let document: serde_json::Value = serde_json::from_str(&compared.json).expect("JSON");
        let results = document["results"].as_object().expect("results");
        assert_eq!(results.keys().collect::<Vec<_>>(), ["redb", "vellum"]);
        assert_eq!(document["runs"].as_array().map(Vec::len), Some(6));
        assert_eq!(document["skipped"].as_array().map(Vec::len), Some(2));
        let picture = compared.picture;
        assert!(picture.contains(">redb<") && picture.contains(">vellum<"));
        assert!(picture.contains("left out: rocksdb, lmdb"), "{picture}");
        assert!(!comparison.data.exists(), "what it left is removed");
    }

    #[test]
    fn rounds_begin_with_engines_that_are_far_apart() {
        let all = <EngineName as clap::ValueEnum>::value_variants();
        let place = |of: &[EngineName], round, rounds| {
            let order = in_turn(of, round, rounds);
            assert_eq!(order.len(), of.len());
            assert!(of.iter().all(|engine| order.contains(engine)));
            order.iter().position(|it| *it == EngineName::Vellum)
        };
        let places = [1, 2, 3].map(|round| place(&all[..10], round, 3));
        assert_eq!(places, [0, 7, 4].map(Some));
        let places = [1, 2, 3].map(|round| place(&all[..2], round, 3));
        assert_eq!(places, [0, 1, 0].map(Some));
        assert_eq!(place(&all[..1], 2, 2), Some(0));
    }

    #[test]
    fn a_comparison_takes_the_engines_in_the_order_of_its_rounds() {
        let folder = tempfile::tempdir().expect("a directory");
        let comparison = comparison(folder.path());
        let ran = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
        let noted = ran.clone();
        let judge = move |engine: EngineName, _: &Workload| {
            noted.borrow_mut().push(engine.name());
            match engine {
                EngineName::Lmdb => Err(broken()),
                _ => Ok(1.0),
            }
        };
        let mut faked = Faked(Box::new(judge));
        let compared = compare(&comparison, &mut faked, &mut Vec::new(), &mut Vec::new());
        assert!(compared.is_ok());
        // Three can run; who failed is not asked again.
        let expected = [
            ["vellum", "lmdb", "redb"].as_slice(),
            &["redb", "vellum"],
            &["redb", "vellum"],
        ];
        assert_eq!(*ran.borrow(), expected.concat());
    }

    #[test]
    fn one_round_is_told_as_one_run_and_has_no_spread() {
        let folder = tempfile::tempdir().expect("a directory");
        let mut comparison = comparison(folder.path());
        for (rounds, has, has_not) in [
            (1, "one run, no spread", "(smallest to largest)"),
            (2, "medians of 2 rounds (smallest to largest)", "no spread"),
        ] {
            comparison.rounds = rounds;
            let mut faked = Faked(Box::new(|_, _: &Workload| Ok(400.0)));
            let compared = compare(&comparison, &mut faked, &mut Vec::new(), &mut Vec::new());
            let text = compared.unwrap_or_else(|failure| panic!("{failure}")).text;
            assert!(text.contains(has) && !text.contains(has_not), "{text}");
            let spread = text.contains("400.0 (400.0 to 400.0)");
            assert_eq!(spread, rounds > 1, "{text}");
            assert!(text.contains(", data on "), "{text}");
        }
    }

    #[test]
    fn vellums_failure_ends_the_comparison_and_so_does_a_signal() {
        let folder = tempfile::tempdir().expect("a directory");
        let comparison = comparison(folder.path());
        for failing in [EngineName::Vellum, EngineName::Redb] {
            let judge = move |engine, _: &Workload| match engine {
                EngineName::Vellum if failing == engine => Err(broken()),
                EngineName::Redb if failing == engine => Err(Failure::Interrupted),
                _ => Ok(1.0),
            };
            let mut faked = Faked(Box::new(judge));
            let compared = compare(&comparison, &mut faked, &mut Vec::new(), &mut Vec::new());
            assert!(compared.is_err(), "{failing:?}");
            assert!(!comparison.data.exists());
        }
    }

    #[test]
    fn a_panic_of_a_peer_is_its_failure_and_vellum_alone_is_said_to_be_alone() {
        let folder = tempfile::tempdir().expect("a directory");
        let comparison = comparison(folder.path());
        let judge = |engine, _: &Workload| match engine {
            EngineName::Vellum => Ok(1.0),
            EngineName::Lmdb => panic!("its map is gone"),
            _ => Err(Failure::Panicked("a thread of it".to_owned())),
        };
        let mut faked = Faked(Box::new(judge));
        let compared = compare(&comparison, &mut faked, &mut Vec::new(), &mut Vec::new());
        let compared = compared.unwrap_or_else(|failure| panic!("{failure}"));
        for told in ["its map is gone", "a thread of it", "Only vellum ran"] {
            assert!(compared.text.contains(told), "{told}: {}", compared.text);
        }
        assert!(compared.standings.is_empty());
        assert!(!comparison.data.exists());
    }

    /// Somebody's files appear while a series runs: the run refuses them, and the series does not remove them.
    #[test]
    fn what_a_run_of_a_comparison_refused_is_left_alone() {
        let folder = tempfile::tempdir().expect("a directory");
        let comparison = comparison(folder.path());
        let letter = comparison.data.join("letter");
        for refusing in [EngineName::Vellum, EngineName::Redb] {
            let theirs = letter.clone();
            let judge = move |engine, _: &Workload| {
                if engine == refusing {
                    std::fs::write(&theirs, "dear").expect("a file");
                    return Err(Failure::Usage("that holds files".to_owned()));
                }
                Ok(1.0)
            };
            let mut faked = Faked(Box::new(judge));
            let compared = compare(&comparison, &mut faked, &mut Vec::new(), &mut Vec::new());
            let Err(failure) = compared else {
                panic!("it was refused")
            };
            assert_eq!(failure.exit_code(), 2, "{refusing:?}: {failure}");
            let left = std::fs::read_to_string(&letter).expect("it is still there");
            assert_eq!(left, "dear");
            // And so is it by the next one.
            let mut faked = Faked(Box::new(|_, _: &Workload| panic!("nothing runs")));
            let again = compare(&comparison, &mut faked, &mut Vec::new(), &mut Vec::new());
            assert!(again.is_err_and(|failure| failure.exit_code() == 2));
            assert!(letter.exists());
            std::fs::remove_dir_all(&comparison.data).expect("it is ours");
        }
    }

    #[test]
    fn a_comparison_in_which_all_fail_fails() {
        let folder = tempfile::tempdir().expect("a directory");
        let mut comparison = comparison(folder.path());
        comparison.engines = &[EngineName::Lmdb, EngineName::Redb];
        let mut faked = Faked(Box::new(|_, _: &Workload| Err(broken())));
        let compared = compare(&comparison, &mut faked, &mut Vec::new(), &mut Vec::new());
        let Err(failure) = compared else {
            panic!("nobody is left")
        };
        assert_eq!(failure.exit_code(), 1);
        let told = failure.to_string();
        for who in ["lmdb: ", "redb: ", "its file is damaged"] {
            assert!(told.contains(who), "{told}");
        }
    }
}
