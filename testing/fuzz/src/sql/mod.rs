//! SQL that nobody would write: read, bound, compiled, executed; and the database looked at afterwards.
//!
//! A [`Script`] is a list of statements of two sessions. Whatever they are, each is answered: with rows or with an error that has a SQLSTATE, and
//! not one that says that something inside is wrong. Afterwards the database is sound, and opened again it shows what it showed.
//!
//! A script runs in one thread, so that it fails again; limits of time (`statement_timeout`, `lock_timeout`) are the exception: what
//! takes long is cancelled a little earlier or later.
//!
//! [`copies`]: data of a COPY that nobody would send; [`definitions`]: rows of the catalog that nobody wrote.
//!
//! Not checked: that answers are right (the corpus of `vellum-sql` has PostgreSQL's), messages of the protocol (`vellum-server`).

pub mod copies;
pub mod definitions;
pub mod statements;
pub mod words;

use crate::damage::in_time;
use std::collections::BTreeMap;
use std::sync::Arc;
use vellum::{Config, Database};
use vellum_base::random::Random;
use vellum_io::{Directory, MemoryDirectory};
use vellum_sql::{
    CommandTag, CopyShape, FIRST_ROLE, Field, Fields, Format, OutputRow, Parameters, Progress,
    Session, SessionOptions, Sink, SqlDatabase, SqlError, SqlState, Told,
};

/// Sessions of a script.
pub const SESSIONS: usize = 2;

/// One statement, or several in one text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// Which session says it.
    pub session: usize,
    /// The text.
    pub text: String,
    /// How it is sent.
    pub how: How,
    /// What is sent if it asks for the data of a COPY.
    pub data: Vec<u8>,
}

/// How a statement is sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum How {
    /// By Query.
    Simple,
    /// By Parse, Bind, Describe, Execute.
    Extended {
        /// `None` is NULL. Too few are filled up.
        parameters: Vec<Option<Vec<u8>>>,
        /// Whether parameters and results are binary.
        binary: bool,
        /// Rows that are asked for at a time; 0 for all.
        rows: u32,
    },
}

/// Statements that are run one after the other.
pub type Script = Vec<Step>;

/// How often which SQLSTATE was told; `00000` where there was no error.
pub type States = BTreeMap<String, u64>;

/// Counts what it is told, and looks at its form.
#[derive(Default)]
struct Heard {
    columns: Option<usize>,
    rows: Vec<Vec<u8>>,
    copied: Vec<u8>,
    tag: String,
    keeps: bool,
}

impl Sink for Heard {
    fn row_description(&mut self, fields: &[Field], _: &[Format]) -> Told {
        self.columns = Some(fields.len());
        Ok(())
    }

    fn row(&mut self, row: OutputRow<'_>) -> Told {
        let columns = usize::from(row.columns());
        assert_eq!(
            row.iter().count(),
            columns,
            "a row has the columns that it says it has"
        );
        if let Some(told) = self.columns {
            assert_eq!(columns, told, "a row has the columns that were described");
        }
        if self.keeps {
            self.rows.push(row.body().to_vec());
        }
        Ok(())
    }

    fn command_complete(&mut self, tag: &CommandTag) -> Told {
        self.tag = tag.to_string();
        assert!(!self.tag.is_empty());
        self.columns = None;
        Ok(())
    }

    fn empty_query(&mut self) -> Told {
        Ok(())
    }

    fn notice(&mut self, _: &Fields) -> Told {
        Ok(())
    }

    fn copy_in(&mut self, _: &CopyShape) -> Told {
        Ok(())
    }

    fn copy_out(&mut self, _: &CopyShape) -> Told {
        Ok(())
    }

    fn copy_data(&mut self, data: &[u8]) -> Told {
        if self.keeps {
            self.copied.extend_from_slice(data);
        }
        Ok(())
    }

    fn copy_done(&mut self) -> Told {
        Ok(())
    }
}

fn open<D: Directory + 'static>(directory: &Arc<D>) -> Result<SqlDatabase, String> {
    SqlDatabase::open(engine(directory)?).map_err(|error| format!("its catalog: {error}"))
}

fn engine<D: Directory + 'static>(directory: &Arc<D>) -> Result<Database, String> {
    let mut config = Config::default()
        .pool_bytes(16 << 20)
        .background_threads(false);
    // Segments are filled when they are made.
    config.log_segment_bytes = 1 << 20;
    config.log_bytes_max = 32 << 20;
    Database::open_directory(directory.clone(), config)
        .map_err(|error| format!("does not open: {error}"))
}

fn session(database: &SqlDatabase) -> Result<Session, String> {
    // A product of tables has no end that anybody waits for.
    let settings = [("statement_timeout", "400"), ("lock_timeout", "5")];
    let options = SessionOptions {
        user: FIRST_ROLE.to_owned(),
        settings: settings
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec(),
        ..SessionOptions::default()
    };
    database.session(options).map_err(|error| error.to_string())
}

/// Runs a script in a thread of its own and looks at the database afterwards.
///
/// # Errors
/// A panic, a hang, an error that says that something inside is wrong, a database that is not sound or not what it was.
pub fn run(script: &[Step]) -> Result<States, String> {
    let script = script.to_vec();
    in_time(move || run_here(&script))
}

fn run_here(script: &[Step]) -> Result<States, String> {
    let directory = Arc::new(MemoryDirectory::new());
    let mut states = States::new();
    let before = {
        let database = open(&directory)?;
        let mut sessions = (0..SESSIONS)
            .map(|_| session(&database))
            .collect::<Result<Vec<_>, _>>()?;
        for step in script {
            let told = say(&mut sessions[step.session % SESSIONS], step);
            let state = match told {
                Ok(()) => "00000".to_owned(),
                Err(error) => judge(&error).map_err(|what| format!("{what}\nby {step:?}"))?,
            };
            *states.entry(state).or_default() += 1;
        }
        drop(sessions);
        while database
            .engine()
            .step()
            .map_err(|error| format!("in the background: {error}"))?
        {}
        let report = database
            .engine()
            .verify()
            .map_err(|error| format!("verify: {error}"))?;
        if !report.is_sound() {
            return Err(format!("is not sound: {report:?}"));
        }
        let mut found = Vec::new();
        vellum_sql::verify(database.engine(), &mut |finding| found.push(finding))
            .map_err(|error| format!("verify: {error}"))?;
        if !found.is_empty() {
            return Err(format!("is not sound: {found:?}"));
        }
        contents(&database)?
    };
    let database = open(&directory)?;
    let after = contents(&database)?;
    if before != after {
        return Err("opened again it shows something else".into());
    }
    Ok(states)
}

/// The SQLSTATE of an error; an error if it says that something inside is wrong.
fn judge(error: &SqlError) -> Result<String, String> {
    let state = error.sqlstate().to_string();
    let sound = state.len() == 5
        && state
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase());
    match sound && !state.starts_with("XX") {
        true => Ok(state),
        false => Err(format!("{state}: {}", error.message())),
    }
}

fn say(session: &mut Session, step: &Step) -> Result<(), SqlError> {
    let heard = &mut Heard::default();
    match &step.how {
        How::Simple => {
            let mut progress = session.simple_query(&step.text, heard)?;
            while progress == Progress::CopyIn {
                progress = copy(session, &step.data, heard)?;
            }
            Ok(())
        }
        How::Extended {
            parameters,
            binary,
            rows,
        } => {
            let told = say_extended(session, step, parameters, *binary, *rows, heard);
            // Sync comes after an error, too.
            let synced = session.sync();
            told.and(synced)
        }
    }
}

fn copy(session: &mut Session, data: &[u8], heard: &mut Heard) -> Result<Progress, SqlError> {
    for piece in data.chunks(7) {
        session.copy_data(piece)?;
    }
    session.copy_done(heard)
}

fn say_extended(
    session: &mut Session,
    step: &Step,
    parameters: &[Option<Vec<u8>>],
    binary: bool,
    rows: u32,
    heard: &mut Heard,
) -> Result<(), SqlError> {
    session.parse("", &step.text, &[])?;
    let description = session.describe_statement("")?;
    let given = parameters
        .iter()
        .map(Option::as_deref)
        .chain(std::iter::repeat(None));
    let values: Vec<Option<&[u8]>> = given.take(description.parameters.len()).collect();
    let format = if binary { Format::Binary } else { Format::Text };
    let parameters = Parameters {
        formats: &[format],
        values: &values,
    };
    session.bind("", "", parameters, &[format])?;
    let fields = session.describe_portal("")?;
    heard.columns = fields.map(|(fields, _)| fields.len());
    // Somebody who takes rows in pieces stops one day.
    for _ in 0..8 {
        match session.execute("", rows, heard)? {
            Progress::Complete => break,
            Progress::Suspended => {}
            Progress::CopyIn => drop(copy(session, &step.data, heard)?),
        }
    }
    Ok(())
}

/// Every row of every table that a script may know by its name.
fn contents(database: &SqlDatabase) -> Result<BTreeMap<&'static str, Vec<Vec<u8>>>, String> {
    let mut session = session(database)?;
    let mut found = BTreeMap::new();
    for table in statements::TABLES {
        let mut heard = Heard {
            keeps: true,
            ..Heard::default()
        };
        match session.simple_query(&format!("select * from {table}"), &mut heard) {
            Ok(_) => {
                heard.rows.sort_unstable();
                found.insert(table, heard.rows);
            }
            // Dropped, or made a name of something else.
            Err(error)
                if UNKNOWN.contains(&&*error.sqlstate().to_string())
                    || error.message() == SEQUENCE => {}
            Err(error) => return Err(format!("{table}: {error}")),
        }
    }
    Ok(found)
}

/// No such table; not a table.
const UNKNOWN: [&str; 2] = ["42P01", "42809"];

/// What is told of a sequence of that name.
const SEQUENCE: &str = "reading a sequence is not supported";

/// Leaves out of a script what it fails without.
pub fn shrink(mut script: Script) -> Script {
    let mut width = script.len().div_ceil(2);
    while width > 0 {
        let mut at = 0;
        while at < script.len() {
            let mut less = script.clone();
            less.drain(at..(at + width).min(script.len()));
            if run(&less).is_err() {
                script = less;
            } else {
                at += width;
            }
        }
        width /= 2;
    }
    script
}

/// A value in bytes that somebody may send.
fn value(random: &mut Random) -> Option<Vec<u8>> {
    let words = [
        "1",
        "0",
        "-1",
        "abc",
        "",
        "2024-01-01",
        "t",
        "1.5",
        "NaN",
        "9223372036854775808",
        "{}",
        "\u{0}",
    ];
    match random.below(6) {
        0 => None,
        1..=3 => Some(
            words[random.below(words.len() as u64) as usize]
                .as_bytes()
                .to_vec(),
        ),
        4 => Some(
            (random.next_u64() >> random.below(64)).to_be_bytes()
                [8 - (1 << random.below(4)) as usize..]
                .to_vec(),
        ),
        _ => {
            let mut bytes = vec![0; random.below(12) as usize];
            random.fill(&mut bytes);
            Some(bytes)
        }
    }
}

/// A script that follows from the seed.
pub fn script(seed: u64, corpus: &statements::Corpus) -> Script {
    let mut random = Random::new(seed);
    let simple = |session: usize, text: String| Step {
        session,
        text,
        how: How::Simple,
        data: Vec::new(),
    };
    let mut script: Script = corpus
        .setup
        .iter()
        .map(|text| simple(0, text.clone()))
        .collect();
    for _ in 0..random.between(10, 60) {
        let (statement, other) = (corpus.pick(&mut random), corpus.pick(&mut random));
        let text = if random.chance(1, 8) {
            words::text(statement)
        } else {
            words::text(&words::mutate(
                &mut random,
                statement.to_vec(),
                other,
                &corpus.pool,
            ))
        };
        let text = if random.chance(1, 10) {
            garbled(&mut random, text)
        } else {
            text
        };
        let how = if random.chance(1, 3) {
            How::Extended {
                parameters: (0..5).map(|_| value(&mut random)).collect(),
                binary: random.chance(1, 2),
                rows: [0, 1, 7][random.below(3) as usize],
            }
        } else {
            How::Simple
        };
        let mut data = statements::COPY_DATA
            [random.below(statements::COPY_DATA.len() as u64) as usize]
            .to_vec();
        if random.chance(1, 2) {
            crate::mutate::mutate(&mut random, &mut data, b"\xff\xfe1\t\\N\n");
        }
        let session = usize::from(random.chance(1, 4));
        script.push(Step {
            session,
            text,
            how,
            data,
        });
    }
    script
}

/// A text with characters changed; what is no UTF-8 any more is replaced, as texts come in as such.
fn garbled(random: &mut Random, text: String) -> String {
    let mut bytes = text.into_bytes();
    crate::mutate::mutate(random, &mut bytes, "'\u{0}\u{feff}é日🦀\"/*$$\\".as_bytes());
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Statements of a text that is hostile as a whole must be refused, or done; and the session goes on.
///
/// # Errors
/// As [`run`]; and if what comes after it is not answered.
pub fn run_alone(text: &str) -> Result<SqlStateOrDone, String> {
    let text = text.to_owned();
    in_time(move || {
        let database = open(&Arc::new(MemoryDirectory::new()))?;
        let mut session = session(&database)?;
        let told = session.simple_query(&text, &mut Heard::default());
        let state = match told {
            Ok(_) => None,
            Err(error) => {
                judge(&error)?;
                Some(error.sqlstate())
            }
        };
        let _ = session.simple_query("rollback", &mut Heard::default());
        let after = session.simple_query("select 1", &mut Heard::default());
        after.map_err(|error| format!("afterwards: {error}"))?;
        Ok(state)
    })
}

/// The SQLSTATE of an error, if there was one.
pub type SqlStateOrDone = Option<SqlState>;
