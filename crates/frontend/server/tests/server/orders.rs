//! Messages in any order, against a model of what PostgreSQL 15 answers: the kinds of messages, SQLSTATEs, the state that ReadyForQuery tells, and what is
//! committed.
//!
//! Differences: a text forgets the portal without a name. In PostgreSQL one that is not run, or fails in a block, leaves that, or its own, in the way of Execute, which is `25P02`
//! then, not `34000`.
//!
//! Not here: what is in rows and descriptions; messages that are broken (messages.rs), or have no place in a COPY.

use crate::support::{
    World, bind, close, describe, execute_rows, flush, message, parse, query, sync,
};
use std::collections::BTreeMap;
use vellum_base::random::Random;

/// Connections of one run, and messages of each.
const ROUNDS: u64 = 150;
const MESSAGES: u64 = 40;

const STATEMENTS: [&str; 2] = ["", "a"];
const PORTALS: [&str; 3] = ["", "p", "q"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Text {
    Empty,
    Wrong,
    Rows(usize),
    Fails,
    Insert,
    Returning,
    Setting,
    CopyIn,
    Begin,
    Commit,
    Rollback,
    Savepoint,
    Release,
    BackTo,
}

use Text::{
    BackTo, Begin, Commit, CopyIn, Empty, Fails, Insert, Release, Returning, Rollback, Rows,
    Savepoint, Setting, Wrong,
};

/// Those that change what follows are said more often.
const TEXTS: [Text; 19] = [
    Empty,
    Wrong,
    Rows(1),
    Rows(3),
    Rows(3),
    Fails,
    Insert,
    Insert,
    Returning,
    Returning,
    Setting,
    CopyIn,
    Begin,
    Begin,
    Commit,
    Rollback,
    Savepoint,
    Release,
    BackTo,
];

impl Text {
    fn sql(self) -> &'static str {
        match self {
            Empty => "",
            Wrong => "selec 1",
            Rows(1) => "select 1",
            Rows(_) => "values (1), (2), (3)",
            Fails => "select 1 / g from generate_series(0, 0) g",
            Insert => "insert into t values (1)",
            Returning => "insert into t values (1), (2) returning n",
            Setting => "set work_mem = '2MB'",
            CopyIn => "copy t from stdin",
            Begin => "begin",
            Commit => "commit",
            Rollback => "rollback",
            Savepoint => "savepoint s",
            Release => "release s",
            BackTo => "rollback to s",
        }
    }

    fn returns(self) -> bool {
        matches!(self, Rows(_) | Fails | Returning)
    }

    /// What a failed block takes.
    fn ends(self) -> bool {
        matches!(self, Commit | Rollback | BackTo)
    }
}

#[derive(Clone, Copy, Debug)]
enum Said {
    Parse(&'static str, Text),
    Bind(&'static str, &'static str),
    DescribeStatement(&'static str),
    DescribePortal(&'static str),
    Execute(&'static str, u32),
    CloseStatement(&'static str),
    ClosePortal(&'static str),
    Flush,
    Sync,
    Query(Text),
    Data,
    Done,
    Fail,
}

impl Said {
    fn bytes(self) -> Vec<u8> {
        match self {
            Self::Parse(name, text) => parse(name, text.sql()),
            Self::Bind(portal, name) => bind(portal, name),
            Self::DescribeStatement(name) => describe('S', name),
            Self::DescribePortal(name) => describe('P', name),
            Self::Execute(name, rows) => execute_rows(name, rows),
            Self::CloseStatement(name) => close('S', name),
            Self::ClosePortal(name) => close('P', name),
            Self::Flush => flush(),
            Self::Sync => sync(),
            Self::Query(text) => query(text.sql()),
            Self::Data => message(b'd', b"7\n"),
            Self::Done => message(b'c', b""),
            Self::Fail => message(b'f', b"no\0"),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    Idle,
    Block,
    Failed,
}

#[derive(Clone, Copy, Debug)]
struct Portal {
    text: Text,
    number: u64,
    /// It has failed, or the block that it was bound in.
    failed: bool,
    aborted: bool,
    /// Rows that are left, once it has run.
    left: Option<usize>,
}

#[derive(Debug)]
struct Copying {
    extended: bool,
    lines: u64,
}

#[derive(Debug)]
struct Model {
    status: Status,
    skipping: bool,
    copying: Option<Copying>,
    statements: BTreeMap<&'static str, Text>,
    portals: BTreeMap<&'static str, Portal>,
    bound: u64,
    /// How many portals were bound, and how many rows there were.
    savepoints: Vec<(u64, u64)>,
    /// As the session sees the table, and as others do.
    rows: u64,
    committed: u64,
    answers: Vec<String>,
}

type Done = Result<(), &'static str>;

impl Model {
    fn new(committed: u64) -> Self {
        Self {
            status: Status::Idle,
            skipping: false,
            copying: None,
            statements: BTreeMap::new(),
            portals: BTreeMap::new(),
            bound: 0,
            savepoints: Vec::new(),
            rows: committed,
            committed,
            answers: Vec::new(),
        }
    }

    fn tell(&mut self, kinds: &str) {
        self.answers.extend(kinds.chars().map(String::from));
    }

    /// What a message is answered with.
    fn say(&mut self, said: Said) -> Vec<String> {
        if self.copying.is_some() {
            self.copy(said);
        } else if self.skipping && !matches!(said, Said::Sync) {
            // Skipped.
        } else if let Said::Query(text) = said {
            self.query(text);
        } else {
            let done = self.extended(said);
            if let Err(state) = done {
                self.fail(state);
                self.skipping = true;
            }
        }
        std::mem::take(&mut self.answers)
    }

    fn ready(&mut self) {
        let status = match self.status {
            Status::Idle => "ZI",
            Status::Block => "ZT",
            Status::Failed => "ZE",
        };
        self.answers.push(status.to_owned());
    }

    fn fail(&mut self, state: &str) {
        self.answers.push(format!("E{state}"));
        match self.status {
            Status::Idle => self.end(false),
            Status::Block => {
                self.status = Status::Failed;
                let from = self.savepoints.last().map_or(0, |(bound, _)| *bound);
                let late = self.portals.values_mut().filter(|p| p.number >= from);
                late.for_each(|portal| portal.aborted = true);
            }
            Status::Failed => {}
        }
    }

    /// The transaction ends, a block or not.
    fn end(&mut self, commits: bool) {
        if commits {
            self.committed = self.rows;
        }
        self.rows = self.committed;
        self.status = Status::Idle;
        self.portals.clear();
        self.savepoints.clear();
    }

    fn refuse(&self, text: Text) -> Done {
        match self.status == Status::Failed && !text.ends() {
            true => Err("25P02"),
            false => Ok(()),
        }
    }

    fn extended(&mut self, said: Said) -> Done {
        match said {
            Said::Parse(name, text) => {
                if name.is_empty() {
                    self.statements.remove(name);
                }
                if text == Wrong {
                    return Err("42601");
                }
                if text != Empty {
                    self.refuse(text)?;
                }
                if self.statements.contains_key(name) {
                    return Err("42P05");
                }
                self.statements.insert(name, text);
                self.tell("1");
            }
            Said::Bind(portal, name) => {
                let text = *self.statements.get(name).ok_or("26000")?;
                self.refuse(text)?;
                if !portal.is_empty() && self.portals.contains_key(portal) {
                    return Err("42P03");
                }
                let bound = Portal {
                    text,
                    number: self.bound,
                    failed: false,
                    aborted: false,
                    left: None,
                };
                self.bound += 1;
                self.portals.insert(portal, bound);
                self.tell("2");
            }
            Said::DescribeStatement(name) => {
                let text = *self.statements.get(name).ok_or("26000")?;
                if text.returns() {
                    self.refuse(text)?;
                }
                self.tell(if text.returns() { "tT" } else { "tn" });
            }
            Said::DescribePortal(name) => {
                let text = self.portals.get(name).ok_or("34000")?.text;
                if text.returns() {
                    self.refuse(text)?;
                }
                self.tell(if text.returns() { "T" } else { "n" });
            }
            Said::Execute(name, rows) => self.execute(name, rows)?,
            Said::CloseStatement(name) => {
                self.statements.remove(name);
                self.tell("3");
            }
            Said::ClosePortal(name) => {
                self.portals.remove(name);
                self.tell("3");
            }
            Said::Sync => {
                self.skipping = false;
                if self.status == Status::Idle {
                    self.end(true);
                }
                self.ready();
            }
            // Data of a COPY that is not there are passed over.
            Said::Flush | Said::Data | Said::Done | Said::Fail | Said::Query(_) => {}
        }
        Ok(())
    }

    fn execute(&mut self, name: &'static str, most: u32) -> Done {
        let mut portal = *self.portals.get(name).ok_or("34000")?;
        let text = portal.text;
        if text == Empty {
            self.tell("I");
            return Ok(());
        }
        self.refuse(text)?;
        if portal.aborted {
            return Err("25P02");
        }
        if portal.failed || (portal.left.is_some() && !text.returns()) {
            return Err("55000");
        }
        if !text.returns() {
            portal.left = Some(0);
            self.portals.insert(name, portal);
            let done = self.run(text, true);
            return done.inspect_err(|_| self.give_up(name));
        }
        let mut left = match portal.left {
            Some(left) => left,
            None => self.found(text).inspect_err(|_| self.give_up(name))?,
        };
        let wanted = match most {
            0 => usize::MAX,
            most => most as usize,
        };
        let told = left.min(wanted);
        left -= told;
        portal.left = Some(left);
        self.portals.insert(name, portal);
        self.tell(&"D".repeat(told));
        self.tell(if told == wanted { "s" } else { "C" });
        Ok(())
    }

    /// A portal has failed.
    fn give_up(&mut self, name: &str) {
        if let Some(portal) = self.portals.get_mut(name) {
            portal.failed = true;
        }
    }

    /// How many rows a statement returns.
    fn found(&mut self, text: Text) -> Result<usize, &'static str> {
        match text {
            Rows(rows) => Ok(rows),
            Fails => Err("22012"),
            _ => {
                self.rows += 2;
                Ok(2)
            }
        }
    }

    /// Runs what returns no rows.
    fn run(&mut self, text: Text, extended: bool) -> Done {
        let idle = self.status == Status::Idle;
        match text {
            CopyIn => {
                self.copying = Some(Copying { extended, lines: 0 });
                self.tell("G");
                return Ok(());
            }
            Insert => self.rows += 1,
            Begin => {
                if !idle {
                    self.tell("N");
                }
                self.status = Status::Block;
            }
            Commit | Rollback => {
                if idle {
                    self.tell("N");
                }
                self.end(text == Commit && self.status != Status::Failed);
            }
            Savepoint | Release | BackTo if idle => return Err("25P01"),
            Savepoint => self.savepoints.push((self.bound, self.rows)),
            Release => {
                self.savepoints.pop().ok_or("3B001")?;
            }
            BackTo => {
                let (bound, rows) = *self.savepoints.last().ok_or("3B001")?;
                self.portals.retain(|_, portal| portal.number < bound);
                (self.rows, self.status) = (rows, Status::Block);
            }
            _ => {}
        }
        self.tell("C");
        Ok(())
    }

    fn query(&mut self, text: Text) {
        self.statements.remove("");
        self.portals.remove("");
        let done = match text {
            Wrong => Err("42601"),
            Empty => {
                self.tell("I");
                Ok(())
            }
            text => self.refuse(text).and_then(|()| match text.returns() {
                true => self.found_by_query(text),
                false => self.run(text, false),
            }),
        };
        match done {
            Err(state) => self.fail(state),
            Ok(()) if self.copying.is_some() => return,
            Ok(()) if self.status == Status::Idle => self.end(true),
            Ok(()) => {}
        }
        self.ready();
    }

    fn found_by_query(&mut self, text: Text) -> Done {
        if text == Fails {
            // It is found out behind the description.
            self.tell("T");
        }
        let found = self.found(text)?;
        self.tell("T");
        self.tell(&"D".repeat(found));
        self.tell("C");
        Ok(())
    }

    fn copy(&mut self, said: Said) {
        let Some(copying) = &mut self.copying else {
            return;
        };
        let extended = copying.extended;
        match said {
            Said::Data => copying.lines += 1,
            Said::Done => {
                self.rows += copying.lines;
                self.copying = None;
                self.tell("C");
                if !extended {
                    if self.status == Status::Idle {
                        self.end(true);
                    }
                    self.ready();
                }
            }
            Said::Fail => {
                self.copying = None;
                self.fail("57014");
                self.skipping = extended;
                if !extended {
                    self.ready();
                }
            }
            // Passed over.
            _ => {}
        }
    }
}

fn pick<T: Copy>(random: &mut Random, all: &[T]) -> T {
    all[usize::try_from(random.below(all.len() as u64)).unwrap()]
}

fn next(random: &mut Random, copying: bool) -> Said {
    if copying {
        let all = [
            Said::Data,
            Said::Data,
            Said::Done,
            Said::Fail,
            Said::Sync,
            Said::Flush,
        ];
        return pick(random, &all);
    }
    let name = pick(random, &STATEMENTS);
    let portal = pick(random, &PORTALS);
    match random.below(20) {
        0..4 => Said::Parse(name, pick(random, &TEXTS)),
        4..8 => Said::Bind(portal, name),
        8..12 => Said::Execute(portal, pick(random, &[0, 0, 1, 2])),
        12 => Said::DescribeStatement(name),
        13 => Said::DescribePortal(portal),
        14 => pick(
            random,
            &[Said::CloseStatement(name), Said::ClosePortal(portal)],
        ),
        15 => pick(random, &[Said::Flush, Said::Data, Said::Done, Said::Fail]),
        16 | 17 => Said::Sync,
        _ => Said::Query(pick(random, &TEXTS)),
    }
}

#[test]
fn prop_messages_in_any_order_are_answered_as_by_the_model() {
    let seed = vellum_base::replay::seed();
    let rounds = vellum_base::replay::rounds(ROUNDS);
    eprintln!("VELLUM_SEED={seed}");
    let world = World::trusting();
    let mut beside = world.client();
    beside.batch_execute("create table t (n int)").unwrap();
    let mut committed = 0;
    for round in 0..rounds {
        let seed = seed.wrapping_add(round);
        let mut random = Random::new(seed);
        let mut raw = world.raw();
        let mut model = Model::new(committed);
        let mut history = Vec::new();
        for _ in 0..MESSAGES {
            // Now and then a statement as drivers say it.
            let mut group = vec![next(&mut random, model.copying.is_some())];
            if model.copying.is_none() && random.chance(1, 3) {
                let (name, portal) = (pick(&mut random, &STATEMENTS), pick(&mut random, &PORTALS));
                group = vec![
                    Said::CloseStatement(name),
                    Said::ClosePortal(portal),
                    Said::Parse(name, pick(&mut random, &TEXTS)),
                    Said::Bind(portal, name),
                    Said::Execute(portal, pick(&mut random, &[0, 1])),
                ];
            }
            for said in group {
                // The last one may have begun a COPY.
                history.push(said);
                let expected = model.say(said);
                raw.send(&said.bytes());
                if !matches!(said, Said::Sync | Said::Query(_)) && model.copying.is_none() {
                    raw.send(&flush());
                }
                for wanted in &expected {
                    let found = raw.receive();
                    let found = found.map(|message| match message.kind {
                        b'E' => format!("E{}", message.sqlstate()),
                        b'Z' => format!("Z{}", char::from(message.body[0])),
                        kind => char::from(kind).to_string(),
                    });
                    assert_eq!(
                        found.as_ref(),
                        Some(wanted),
                        "VELLUM_SEED={seed} VELLUM_ROUNDS=1: {expected:?} after {history:#?}"
                    );
                }
            }
        }
        drop(raw);
        committed = model.committed;
        // Of a session that has just left, nothing is seen.
        let row = beside.query_one("select count(*) from t", &[]).unwrap();
        let count = u64::try_from(row.get::<_, i64>(0)).unwrap();
        assert_eq!(
            count, committed,
            "VELLUM_SEED={seed} VELLUM_ROUNDS=1: {history:#?}"
        );
    }
}
