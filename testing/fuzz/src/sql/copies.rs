//! Data of a COPY that nobody would send: what a COPY to the client wrote, in text, csv and binary, with bytes changed, or numbers of its form.
//!
//! Each is taken whole or not at all: the rows that the tag counts are there, or none of them. What was taken comes out and goes in again as the same rows.
//! Nothing is kept for lengths that are only promised: a row longer than [`ROW_BYTES_MAX`] is refused with what has come of it.
//!
//! Not checked: which of several things that are wrong is told.

use super::{Heard, judge, open, statements};
use crate::damage::in_time;
use crate::mutate::mutate;
use std::sync::Arc;
use vellum_base::random::Random;
use vellum_io::MemoryDirectory;
use vellum_sql::{FIRST_ROLE, Progress, Session, SessionOptions, SqlError};

/// Longest row that these sessions take.
pub const ROW_BYTES_MAX: usize = 1 << 16;

/// What PostgreSQL, too, says as an internal error, of a jsonb in binary that begins with another byte than 1.
const AS_POSTGRES: &str = "unsupported jsonb version number";

/// The forms, with their options.
pub const FORMS: [&str; 7] = [
    "format text",
    "format text, delimiter '|', null 'nil'",
    "format text, header",
    "format csv",
    "format csv, header, quote '''', escape '\\', delimiter ';'",
    "format csv, null '-'",
    "format binary",
];

const COLUMNS: &str = "id int primary key, big bigint, small smallint, n numeric(12,4), f float8, g real, b boolean, s text, v varchar(9), c char(4), \
     raw bytea, d date, t time, at timestamp, tz timestamptz, span interval, body jsonb, kind uuid";

const ROWS: &str = r#"insert into a values
    (1, 9223372036854775807, -32768, 12345678.9012, 1.5e300, -0.0, true, E'tab\tline\nback\\slash "quote" ''one''', 'nine', 'ab', '\x00ff5c0a',
     '2024-02-29', '23:59:59.999999', '2024-02-29 12:00', '2024-02-29 12:00+02', '1 year -2 days 03:04:05.6', '{"a": [1, null, "x"]}',
     '12345678-9abc-def0-1234-56789abcdef0'),
    (2, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null),
    (3, -1, 0, 'NaN', 'Infinity', 'NaN', false, '', '', '', '', 'infinity', '00:00', '-infinity', 'infinity', '0', 'null',
     '00000000-0000-0000-0000-000000000000'),
    (4, 0, 7, -0.0001, -1e-300, 1e38, false, '\N', '\.', 'nil', '\x', '4713-01-01 BC', '24:00', '294276-12-31 23:59:59', '1999-12-31', '-1 mon', '{}',
     'ffffffff-ffff-ffff-ffff-ffffffffffff')"#;

/// A database with rows, and what a COPY says of them.
#[derive(Debug)]
pub struct Source {
    /// By form.
    copied: Vec<Vec<u8>>,
}

fn session(directory: &Arc<MemoryDirectory>) -> Result<Session, String> {
    let options = SessionOptions {
        user: FIRST_ROLE.to_owned(),
        copy_row_bytes_max: ROW_BYTES_MAX,
        ..SessionOptions::default()
    };
    let session = open(directory)?.session(options);
    session.map_err(|error| error.to_string())
}

fn hear(session: &mut Session, sql: &str) -> Result<Heard, SqlError> {
    let mut heard = Heard {
        keeps: true,
        ..Heard::default()
    };
    session.simple_query(sql, &mut heard)?;
    Ok(heard)
}

fn copy_out(session: &mut Session, table: &str, form: &str) -> Result<Vec<u8>, String> {
    let sql = format!("copy (select * from {table} order by id) to stdout ({form})");
    let heard = hear(session, &sql).map_err(|error| format!("{sql}: {error}"))?;
    Ok(heard.copied)
}

/// Sends data in pieces; what the tag counts.
fn copy_in(
    session: &mut Session,
    table: &str,
    form: &str,
    pieces: &mut dyn Iterator<Item = &[u8]>,
) -> Result<u64, SqlError> {
    let heard = &mut Heard::default();
    let begun = session.simple_query(&format!("copy {table} from stdin ({form})"), heard)?;
    assert_eq!(begun, Progress::CopyIn);
    for piece in pieces {
        session.copy_data(piece)?;
    }
    session.copy_done(heard)?;
    let count = heard.tag.strip_prefix("COPY ");
    Ok(count
        .and_then(|count| count.parse().ok())
        .expect("the tag of a COPY counts rows"))
}

fn rows(session: &mut Session, table: &str) -> Result<Vec<Vec<u8>>, String> {
    let told = hear(session, &format!("select * from {table} order by id"));
    told.map(|heard| heard.rows)
        .map_err(|error| format!("{table}: {error}"))
}

impl Source {
    /// Copies rows out in each form.
    ///
    /// # Errors
    /// What a statement says; rows that come back as others.
    pub fn make() -> Result<Self, String> {
        let mut session = session(&Arc::new(MemoryDirectory::new()))?;
        let setup = format!(
            "set timezone = 'UTC'; create table a ({COLUMNS}); create table z ({COLUMNS}); {ROWS}"
        );
        hear(&mut session, &setup).map_err(|error| error.to_string())?;
        let known = rows(&mut session, "a")?;
        let mut copied = Vec::new();
        for form in FORMS {
            let data = copy_out(&mut session, "a", form)?;
            let pieces = &mut std::iter::once(&data[..]);
            let taken = copy_in(&mut session, "z", form, pieces);
            let taken = taken.map_err(|error| format!("{form}: {error}"))?;
            if taken != 4 || rows(&mut session, "z")? != known {
                return Err(format!("{form}: other rows come back"));
            }
            hear(&mut session, "delete from z").map_err(|error| error.to_string())?;
            copied.push(data);
        }
        Ok(Self { copied })
    }

    /// Sends data of one form that a seed changes; the SQLSTATE, `00000` if it was taken.
    ///
    /// # Errors
    /// A panic, a hang, an error that says that something inside is wrong, rows of a COPY that failed, rows that come back as others.
    pub fn try_one(&self, seed: u64) -> Result<String, String> {
        let mut random = Random::new(seed);
        let number = random.below(FORMS.len() as u64) as usize;
        let mut form = FORMS[number];
        let mut data = self.copied[number].clone();
        if number == FORMS.len() - 1 && random.chance(1, 2) {
            forge(&mut random, &mut data);
        } else if random.chance(1, 8) {
            data = statements::COPY_DATA[random.below(statements::COPY_DATA.len() as u64) as usize]
                .to_vec();
        }
        if random.chance(3, 4) {
            let other = &self.copied[random.below(FORMS.len() as u64) as usize];
            mutate(&mut random, &mut data, other);
        }
        if random.chance(1, 16) {
            // Data of another form, or options that the data do not follow.
            form = FORMS[random.below(FORMS.len() as u64) as usize];
        }
        if random.chance(1, 16) {
            // A field without an end.
            let at = random.below(data.len() as u64 + 1) as usize;
            let long = vec![b"x\"\0"[random.below(3) as usize]; 2 * ROW_BYTES_MAX];
            data.splice(at..at, long);
        }
        let piece = [1, 3, 64, 1 << 20][random.below(4) as usize];
        in_time(move || send(form, &data, piece))
            .map_err(|what| format!("COPY with seed {seed}: {form}, pieces of {piece}: {what}"))
    }
}

fn send(form: &str, data: &[u8], piece: usize) -> Result<String, String> {
    let mut session = session(&Arc::new(MemoryDirectory::new()))?;
    let setup = format!(
        "set timezone = 'UTC'; create table a ({COLUMNS}); create table z ({COLUMNS}); insert into a (id) values (99)"
    );
    hear(&mut session, &setup).map_err(|error| error.to_string())?;
    let taken = copy_in(&mut session, "a", form, &mut data.chunks(piece));
    let found = rows(&mut session, "a")?;
    let state = match &taken {
        Ok(_) => "00000".to_owned(),
        Err(error) if error.message().starts_with(AS_POSTGRES) => error.sqlstate().to_string(),
        Err(error) => judge(error)?,
    };
    let expected = 1 + taken.unwrap_or_default();
    if found.len() as u64 != expected {
        let there = found.len();
        return Err(format!("{state}, and {there} rows instead of {expected}"));
    }
    // What was taken is rows like others.
    for form in ["format text", "format csv", "format binary"] {
        let out = copy_out(&mut session, "a", form)?;
        let again = copy_in(&mut session, "z", form, &mut std::iter::once(&out[..]));
        again.map_err(|error| format!("what came out is not taken, {form}: {error}"))?;
        if rows(&mut session, "z")? != found {
            return Err(format!("other rows come back, {form}"));
        }
        hear(&mut session, "delete from z").map_err(|error| error.to_string())?;
    }
    Ok(state)
}

/// Changes a number of the binary form: of the header, a row's count of columns, a column's length.
fn forge(random: &mut Random, data: &mut [u8]) {
    const SIGNATURE: usize = 11;
    let mut places: Vec<(usize, usize)> = vec![(SIGNATURE, 4), (SIGNATURE + 4, 4)];
    let mut at = SIGNATURE + 8;
    while let Some(count) = data[at..].first_chunk() {
        places.push((at, 2));
        at += 2;
        for _ in 0..i16::from_be_bytes(*count).max(0) {
            let length = i32::from_be_bytes(*data[at..].first_chunk().expect("a length"));
            places.push((at, 4));
            at += 4 + length.max(0) as usize;
        }
    }
    for _ in 0..random.between(1, 2) {
        let (at, width) = places[random.below(places.len() as u64) as usize];
        let own = data[at + width - 1];
        let numbers = [
            0,
            u64::MAX,
            u64::MAX - 1,
            0x7fff_ffff,
            0x7fff,
            0x8000,
            0x8000_0000,
            u64::from(own) + 1,
            u64::from(own).wrapping_sub(1),
            random.below(1 << 20),
        ];
        let number = numbers[random.below(numbers.len() as u64) as usize].to_be_bytes();
        data[at..at + width].copy_from_slice(&number[8 - width..]);
    }
}
