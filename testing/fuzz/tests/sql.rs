//! Statements that nobody would write: answered, and the database is sound afterwards.

use std::time::Instant;
use vellum_fuzz::sql::copies::Source;
use vellum_fuzz::sql::statements::{Corpus, HOSTILE, hostile};
use vellum_fuzz::sql::{How, States, Step, definitions, run, run_alone, script, shrink, words};
use vellum_model::run::{ends, first_seed, rounds};

/// Scripts of one run.
const ROUNDS: u64 = 60;

fn corpus() -> Corpus {
    Corpus::read().expect("the corpus of vellum-sql")
}

fn all_came(states: &States, wanted: &[&str]) -> bool {
    wanted.iter().all(|state| states.contains_key(*state))
}

#[test]
fn prop_sql_that_nobody_would_write_is_answered_and_the_database_is_sound() {
    let (first, corpus) = (first_seed(), corpus());
    eprintln!("VELLUM_SEED={first}");
    let wanted = ["42601", "42883", "42703", "22P02"];
    let mut all = States::new();
    for round in 0.. {
        if ends(round, ROUNDS, || all_came(&all, &wanted)) {
            break;
        }
        let seed = first.wrapping_add(round);
        let script = script(seed, &corpus);
        match run(&script) {
            Ok(states) => states
                .into_iter()
                .for_each(|(state, count)| *all.entry(state).or_default() += count),
            Err(what) => {
                let small = shrink(script);
                let why = run(&small).err().unwrap_or(what);
                let lines: Vec<String> = small.iter().map(|step| format!("  {step:?}")).collect();
                panic!(
                    "VELLUM_SEED={seed} VELLUM_ROUNDS=1 cargo test -p vellum-fuzz prop_sql\n{}\n{why}",
                    lines.join("\n")
                );
            }
        }
    }
    eprintln!("{all:?}");
    if rounds(ROUNDS) < ROUNDS {
        return;
    }
    // What is only ever refused by the parser reaches nothing behind it.
    let (done, read): (u64, u64) = (all["00000"], all.values().sum());
    assert!(done * 4 > read, "{done} of {read} statements were done");
    for state in wanted {
        assert!(all.contains_key(state), "{state} never came: {all:?}");
    }
}

#[test]
fn prop_sql_of_the_corpus_is_answered_as_it_is() {
    let corpus = corpus();
    let step = |text| Step {
        session: 0,
        text,
        how: How::Simple,
        data: Vec::new(),
    };
    let mut all: Vec<Step> = corpus.setup.iter().cloned().map(step).collect();
    all.extend(corpus.all().map(|words| step(words::text(words))));
    let states = run(&all).unwrap_or_else(|what| panic!("{what}"));
    eprintln!("{states:?}");
    assert!(
        states["00000"] > 1000,
        "words in a row are read as they were: {states:?}"
    );
}

#[test]
fn prop_sql_that_is_deep_or_long_is_refused_or_done_and_the_session_goes_on() {
    // All that is wrong at once: there may be much.
    let mut wrong = Vec::new();
    let mut say = |what: &str, text: &str| {
        let start = Instant::now();
        match run_alone(text) {
            Ok(None) => eprintln!("{what}: done in {:.2?}", start.elapsed()),
            Ok(Some(state)) => eprintln!("{what}: {state} in {:.2?}", start.elapsed()),
            Err(why) => wrong.push(format!("{what}: {why}")),
        }
    };
    HOSTILE.iter().for_each(|text| say(text, text));
    // Few, about as many as may be nested, as may stand in a chain, and far too many.
    for many in [60, 190, 990, 3_900, 100_000] {
        let texts = hostile(many);
        let mut say = |(what, text): &(&str, String)| say(&format!("{what}, {many}"), text);
        texts.iter().for_each(&mut say);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn prop_sql_copy_data_that_nobody_would_send_are_taken_whole_or_not_at_all() {
    const ROUNDS: u64 = 250;
    let first = first_seed();
    eprintln!("VELLUM_SEED={first}");
    let source = Source::make().unwrap_or_else(|what| panic!("{what}"));
    // Taken; no such form; no such value; no text; too long.
    let wanted = ["00000", "22P04", "22P02", "22021", "54000"];
    let mut states = States::new();
    for round in 0.. {
        if ends(round, ROUNDS, || all_came(&states, &wanted)) {
            break;
        }
        let state = source.try_one(first.wrapping_add(round));
        let state = state.unwrap_or_else(|what| panic!("{what}"));
        *states.entry(state).or_default() += 1;
    }
    eprintln!("{states:?}");
    if rounds(ROUNDS) < ROUNDS {
        return;
    }
    for state in wanted {
        assert!(states.contains_key(state), "{state} never came: {states:?}");
    }
}

#[test]
fn prop_sql_rows_of_the_catalog_that_nobody_wrote_are_answered() {
    const ROUNDS: u64 = 120;
    let first = first_seed();
    eprintln!("VELLUM_SEED={first}");
    let disk = definitions::make().unwrap_or_else(|what| panic!("{what}"));
    let wanted = ["00000", "open XX001"];
    let mut all = States::new();
    for round in 0.. {
        if ends(round, ROUNDS, || all_came(&all, &wanted)) {
            break;
        }
        let states = definitions::change(&disk, first.wrapping_add(round));
        for (state, count) in states.unwrap_or_else(|what| panic!("{what}")) {
            *all.entry(state).or_default() += count;
        }
    }
    eprintln!("{all:?}");
    if rounds(ROUNDS) < ROUNDS {
        return;
    }
    for state in wanted {
        assert!(all.contains_key(state), "{state} never came: {all:?}");
    }
}

/// Symptom: `XX000`, an internal error, of an INSERT whose table has a foreign key; later a database that could not be opened. Cause: the definition of another
/// table stood in its target's place, with the columns but without their unique index. Guard: such a key is left out as the catalog is read
/// (`Catalog::leave_out_keys`).
#[test]
fn regress_a_foreign_key_without_the_index_of_its_target_is_left_out() {
    let disk = definitions::make().unwrap_or_else(|what| panic!("{what}"));
    let states = definitions::change(&disk, 3_084_082_428).unwrap_or_else(|what| panic!("{what}"));
    assert!(!states.is_empty());
    for state in states.keys() {
        assert!(!state.contains("XX0"), "{states:?}");
    }
}

/// Symptom: a statement panicked where the definition of a table named an index, or a foreign key, of a column that the table does not have. Cause: who
/// works with indexes relies on their columns, and nobody had asked when the catalog was read. Guard: `Store::load` asks (`has_indexed_columns`).
#[test]
fn regress_an_index_of_a_column_that_is_not_there_is_damage() {
    let disk = definitions::make().unwrap_or_else(|what| panic!("{what}"));
    for seed in [2_086_756_068, 317_984_838] {
        let states = definitions::change(&disk, seed).unwrap_or_else(|what| panic!("{what}"));
        assert_eq!(states.keys().collect::<Vec<_>>(), ["open XX001"], "{seed}");
    }
}
