//! Applies a history to a subject and to the model, and compares every answer.
//!
//! Not checked: how fast an answer comes, which of the prefixes that a power cut may leave it
//! leaves (beyond that it is one), how many rows a leaf's batch holds, whether an analytical writer conflicts when it
//! inserts a key that has no row.

use crate::generate::{Generator, Profile};
use crate::model::Model;
use crate::shrink;
use crate::step::{Answer, Contents, Key, Operation, Refusal, Step};
use crate::subject::Subject;
use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// How many rounds a random test runs, when it ends that is to meet certain cases, and the seed of the first round; round `n` runs with seed + n.
pub use vellum_base::replay::{ends, rounds, seed as first_seed};

/// Makes a subject on an empty store.
pub type Make<'a> = &'a dyn Fn() -> Box<dyn Subject>;

/// What histories reached, to see that they test something.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// How many steps were compared.
    pub steps: usize,
    /// How many answers there were of each kind.
    pub answers: BTreeMap<&'static str, usize>,
}

/// A difference between a subject and the model.
#[derive(Clone)]
pub struct Difference {
    /// Index of the step in the history; its length for the comparison at the end.
    pub index: usize,
    /// What the model says.
    pub expected: Answer,
    /// What the subject said.
    pub found: Answer,
}

impl Difference {
    /// True if another difference is likely to have the same cause: both answers are of the same kinds.
    pub fn resembles(&self, other: &Self) -> bool {
        kind(&self.expected) == kind(&other.expected) && kind(&self.found) == kind(&other.found)
    }
}

/// A history on which a subject and the model differ.
pub struct Failure {
    /// The seed of the history.
    pub seed: u64,
    /// How many steps the history had up to the difference, before it was made small.
    pub steps: usize,
    /// The small history.
    pub history: Vec<Step>,
    /// The difference at its end.
    pub difference: Difference,
    /// The command that replays it.
    pub replay: String,
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference {
            index,
            expected,
            found,
        } = &self.difference;
        writeln!(
            f,
            "seed {}: a difference after {} steps, shrunk to",
            self.seed, self.steps
        )?;
        for (number, step) in self.history.iter().enumerate() {
            let mark = if number == *index { ">" } else { " " };
            writeln!(f, "{mark} {number:4} {step:?}")?;
        }
        if *index >= self.history.len() {
            writeln!(f, "> {index:4} (comparison of everything at the end)")?;
        }
        if let (Answer::Contents(expected), Answer::Contents(found)) = (expected, found) {
            writeln!(
                f,
                "expected and not found {:?}",
                Answer::Contents(missing(expected, found))
            )?;
            writeln!(
                f,
                "found and not expected {:?}",
                Answer::Contents(missing(found, expected))
            )?;
        } else {
            writeln!(f, "expected {expected:?}")?;
            writeln!(f, "found    {found:?}")?;
        }
        write!(f, "replay   {}", self.replay)
    }
}

impl Outcome {
    fn count(&mut self, answer: &Answer) {
        self.steps += 1;
        *self.answers.entry(name(answer)).or_default() += 1;
    }

    /// Adds the figures of another.
    pub fn add(&mut self, other: &Self) {
        self.steps += other.steps;
        for (kind, count) in &other.answers {
            *self.answers.entry(kind).or_default() += count;
        }
    }
}

/// The name of a kind of answers, for counting.
fn name(answer: &Answer) -> &'static str {
    match answer {
        Answer::Done => "done",
        Answer::Skipped => "skipped",
        Answer::Refused(Refusal::Conflict) => "conflict",
        Answer::Refused(Refusal::KeyExists) => "key exists",
        Answer::Refused(Refusal::KeyTooLong) => "key too long",
        Answer::Refused(Refusal::RangeOutsideValue) => "range outside value",
        Answer::Refused(Refusal::ReadOnly) => "read only",
        Answer::Refused(Refusal::NoSuchTable) => "no such table",
        Answer::Refused(Refusal::TableExists) => "table exists",
        Answer::Refused(Refusal::InvalidArgument) => "invalid argument",
        Answer::Refused(Refusal::TransactionOver) => "transaction over",
        Answer::Refused(_) => "other",
        Answer::Found(true) | Answer::Row(Some(_)) => "found",
        Answer::Found(false) | Answer::Row(None) => "not found",
        Answer::ManyRows(_) | Answer::Count(_) | Answer::Names(_) => "many",
        Answer::Rows(rows) if rows.is_empty() => "no rows",
        Answer::Rows(_) => "rows",
        Answer::Contents(_) => "contents",
    }
}

/// The kind of an answer, and for errors without a kind the start of their text.
fn kind(answer: &Answer) -> (&'static str, &str) {
    match answer {
        Answer::Refused(Refusal::Other(text)) => {
            let end = text
                .char_indices()
                .nth(24)
                .map_or(text.len(), |(end, _)| end);
            ("other", &text[..end])
        }
        _ => (name(answer), ""),
    }
}

/// The tables and rows of one that the other has not.
fn missing(of: &Contents, from: &Contents) -> Contents {
    let lacks = |(name, rows): &(String, Vec<(Key, Vec<u8>)>)| {
        let other = from.iter().find(|(other, _)| other == name);
        let mut rows = rows.clone();
        if let Some((_, other)) = other {
            rows.retain(|row| !other.contains(row));
        }
        (!rows.is_empty() || other.is_none()).then(|| (name.clone(), rows))
    };
    of.iter().filter_map(lacks).collect()
}

/// In how many tables and rows two differ.
fn distance(one: &Contents, other: &Contents) -> usize {
    let count = |contents: Contents| {
        contents
            .iter()
            .map(|(_, rows)| 1 + rows.len())
            .sum::<usize>()
    };
    count(missing(one, other)) + count(missing(other, one))
}

/// Applies one step to both.
///
/// # Errors
/// Both answers, where they differ.
pub fn compare(
    model: &mut Model,
    subject: &mut dyn Subject,
    step: &Step,
) -> Result<Answer, (Answer, Answer)> {
    if let Step::Do { tx, operation } = step
        && model.is_uncertain(*tx, operation)
    {
        return Ok(Answer::Skipped);
    }
    let found = catch_unwind(AssertUnwindSafe(|| subject.apply(step))).unwrap_or_else(panicked);
    // A conflict that need not be writes nothing, so the model must not have written either.
    let before = (found == Answer::Refused(Refusal::Conflict)).then(|| model.clone());
    let expected = match step {
        Step::Begin { tx, how } => model.begin(*tx, *how),
        Step::Do {
            tx,
            operation: Operation::Batch { cursor, backward },
        } => {
            // The subject decides how many; none only at the end.
            let count = if let Answer::Rows(rows) = &found {
                rows.len().max(1)
            } else {
                1
            };
            let cursor = *cursor;
            let taken = match backward {
                true => Operation::Prev { cursor, count },
                false => Operation::Next { cursor, count },
            };
            model.apply(*tx, &taken)
        }
        Step::Do { tx, operation } => model.apply(*tx, operation),
        Step::Background { .. } | Step::Checkpoint | Step::Truncate | Step::Verify => Answer::Done,
        Step::Backup => Answer::Contents(model.contents_at(model.commits())),
        Step::Reopen => {
            model.reopen();
            Answer::Done
        }
        Step::PowerCut { .. } => {
            let mut candidates = (model.acknowledged()..=model.commits()).rev();
            let kept = candidates
                .find(|commits| matches!(&found, Answer::Contents(c) if *c == model.contents_at(*commits)));
            let Some(kept) = kept else {
                // What it may have been meant to be tells most.
                let nearest = (model.acknowledged()..=model.commits())
                    .map(|commits| model.contents_at(commits))
                    .min_by_key(|contents| match &found {
                        Answer::Contents(found) => distance(contents, found),
                        _ => 0,
                    });
                let expected = nearest.unwrap_or_default();
                return Err((Answer::Contents(expected), found));
            };
            model.restart_at(kept);
            return Ok(found);
        }
    };
    if let Step::Do { tx, operation } = step
        && is_careful(
            model,
            *tx,
            operation,
            &expected,
            &found,
            subject.has_indexes(),
        )
    {
        if let Some(before) = before {
            *model = before;
        }
        model.conflict(*tx);
        return Ok(found);
    }
    if let Step::Do { tx, operation } = step
        && (&expected, &found) == (&Answer::Refused(Refusal::Conflict), &Answer::Found(false))
        && model.may_find_dropped(*tx, operation)
    {
        model.forgive(*tx);
        return Ok(found);
    }
    if expected == found {
        Ok(found)
    } else {
        Err((expected, found))
    }
}

/// True for a conflict that need not be: of an analytical transaction that inserts a key which has no row; with an index, also a
/// changed row may be a new entry.
fn is_careful(
    model: &Model,
    tx: u32,
    operation: &Operation,
    expected: &Answer,
    found: &Answer,
    indexed: bool,
) -> bool {
    let made = match operation {
        Operation::Update { .. } | Operation::Replace { .. } | Operation::Upsert { .. }
            if indexed && *expected == Answer::Found(true) =>
        {
            true
        }
        Operation::CreateTable { .. } | Operation::Insert { .. } | Operation::BulkLoad { .. } => {
            *expected == Answer::Done
        }
        Operation::Upsert { .. } => *expected == Answer::Found(false),
        _ => false,
    };
    let writer = model.transaction(tx);
    made && *found == Answer::Refused(Refusal::Conflict)
        && writer.is_some_and(|writer| writer.may_be_careful() && !writer.is_over())
}

fn panicked(payload: Box<dyn std::any::Any + Send>) -> Answer {
    let text = payload
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| {
            payload
                .downcast_ref::<&str>()
                .map(|text| (*text).to_owned())
        })
        .unwrap_or_default();
    Answer::Refused(Refusal::Other(format!("panicked: {text}")))
}

/// Compares everything that is visible, before and after a restart in good order; between them, when no transaction is open any more, no old version may
/// be left.
///
/// # Errors
/// Both answers, where they differ.
pub fn compare_at_end(
    model: &mut Model,
    subject: &mut dyn Subject,
) -> Result<(), (Answer, Answer)> {
    compare(model, subject, &Step::Verify)?;
    for restart in [false, true] {
        if restart {
            let left = catch_unwind(AssertUnwindSafe(|| subject.end_all()));
            let left = left.unwrap_or_else(panicked);
            if left != Answer::Done {
                return Err((Answer::Done, left));
            }
            compare(model, subject, &Step::Reopen)?;
            compare(model, subject, &Step::Verify)?;
        }
        let expected = Answer::Contents(model.contents_at(model.commits()));
        let found = catch_unwind(AssertUnwindSafe(|| subject.contents())).unwrap_or_else(panicked);
        if expected != found {
            return Err((expected, found));
        }
    }
    Ok(())
}

/// Applies a given history to a fresh subject.
///
/// # Errors
/// The first difference.
pub fn replay(history: &[Step], key_limit: usize, make: Make<'_>) -> Result<(), Difference> {
    let mut model = Model::new(key_limit, None);
    let mut subject = make();
    let at = |index| {
        move |(expected, found)| Difference {
            index,
            expected,
            found,
        }
    };
    for (index, step) in history.iter().enumerate() {
        compare(&mut model, &mut *subject, step).map_err(at(index))?;
    }
    compare_at_end(&mut model, &mut *subject).map_err(at(history.len()))
}

/// Makes up a history of so many steps from a seed while applying it; a failing one is made small.
///
/// # Errors
/// The failing history. `test` names the test for the command that replays it.
pub fn run_history(
    seed: u64,
    steps: usize,
    profile: &Profile,
    test: &str,
    make: Make<'_>,
) -> Result<Outcome, Box<Failure>> {
    let mut generator = Generator::new(seed, profile.clone());
    let mut model = Model::new(profile.key_limit, None);
    let mut subject = make();
    let mut history = Vec::with_capacity(steps);
    let mut outcome = Outcome::default();
    let mut difference = None;
    while history.len() < steps && difference.is_none() {
        let step = generator.next(&model);
        let result = compare(&mut model, &mut *subject, &step);
        history.push(step);
        match result {
            Ok(answer) => outcome.count(&answer),
            Err((expected, found)) => {
                difference = Some(Difference {
                    index: history.len() - 1,
                    expected,
                    found,
                });
            }
        }
    }
    if difference.is_none() {
        let end = compare_at_end(&mut model, &mut *subject);
        difference = end.err().map(|(expected, found)| Difference {
            index: history.len(),
            expected,
            found,
        });
    }
    drop(subject);
    let Some(difference) = difference else {
        return Ok(outcome);
    };
    let steps = history.len();
    let first = difference.clone();
    let fails = |history: &[Step]| {
        let difference = replay(history, profile.key_limit, make).err()?;
        difference.resembles(&first).then_some(difference)
    };
    let (history, difference) = shrink::shrink(history, difference, &fails);
    let replay = format!("VELLUM_SEED={seed} VELLUM_ROUNDS=1 cargo test -p vellum-model {test}");
    Err(Box::new(Failure {
        seed,
        steps,
        history,
        difference,
        replay,
    }))
}

/// Whether everything is to be tried of which a test otherwise takes a sample (`VELLUM_THOROUGH` is set): minutes, not seconds.
pub fn thorough() -> bool {
    std::env::var_os("VELLUM_THOROUGH").is_some()
}
