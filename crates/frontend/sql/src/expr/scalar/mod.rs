//! Functions and operators that are computed of their arguments and the session's settings alone.
//!
//! One table an area, with PostgreSQL's oids: what calls are resolved with, by PostgreSQL's rules ([`find`]), and what `pg_proc` lists. An operator is an
//! entry whose name is its sign.
//!
//! The functions of extensions (`crate::extension`) are entries like the others, in tables of their own: calls of them are resolved among those of one name
//! ([`find_of`]), where the extension is.
//!
//! Not here: what asks the session or the catalog (`function`, `catalog_function`); comparisons and `+ - * / %` (`row::arithmetic`).

mod array;
mod bytes;
mod cipher;
mod crypt;
mod digest;
mod hashes;
mod information;
mod json;
mod json_assign;
mod json_change;
mod math;
mod moment;
mod network;
mod numeral;
mod pattern;
mod pgcrypto;
mod read;
mod regular;
mod resolve;
mod sets;
mod size;
mod snapshot;
mod template;
mod text;
mod translate;
mod uuids;

pub(crate) use bytes::letters;
pub(crate) use digest::md5_text;
pub(crate) use pgcrypto::ENTRIES as PGCRYPTO;
pub(super) use regular::matches;
pub(crate) use resolve::{ambiguous, common_of, find, find_of, no_polymorphic_type};
pub(crate) use sets::{Keep, RowsOf};
pub(super) use size::{pretty_numeric, pretty_size};
pub(crate) use uuids::{ENTRIES as UUID_OSSP, fill_random};

use super::function::Builtin;
use super::{Environment, Expr, Frame, Out};
use crate::error::{Result, SqlError};
use crate::extension::{self, Available};
use std::sync::OnceLock;
use vellum_base::maps::HashMap;
use vellum_row::datetime::{Date, Interval, Timestamp};
use vellum_row::{
    ArrayRef, Inet, JsonbRef, Numeric, Settings, SqlState, Type, Typmod, Value, ValueRef, cast,
};

/// An entry: its table, and its place in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Scalar {
    table: u8,
    row: u16,
}

/// A function or an operator.
#[derive(Debug)]
pub(crate) struct Entry {
    pub oid: u32,
    pub name: &'static str,
    arguments: &'static str,
    pub result: &'static str,
    run: Run,
    /// Whether two calls in one statement may differ.
    pub volatile: bool,
}

/// How its value is computed.
#[derive(Clone, Copy)]
enum Run {
    /// Null if an argument is.
    Strict(fn(&Arguments<'_>) -> Result<Value>),
    /// Of nulls, too.
    Lenient(fn(&Arguments<'_>) -> Result<Value>),
    /// As the function that is there already.
    As(Builtin),
}

impl std::fmt::Debug for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Strict(_) => "strict",
            Self::Lenient(_) => "lenient",
            Self::As(_) => "as another",
        })
    }
}

const fn strict(
    oid: u32,
    name: &'static str,
    arguments: &'static str,
    result: &'static str,
    run: fn(&Arguments<'_>) -> Result<Value>,
) -> Entry {
    Entry {
        oid,
        name,
        arguments,
        result,
        run: Run::Strict(run),
        volatile: false,
    }
}

const fn lenient(
    oid: u32,
    name: &'static str,
    arguments: &'static str,
    result: &'static str,
    run: fn(&Arguments<'_>) -> Result<Value>,
) -> Entry {
    Entry {
        oid,
        name,
        arguments,
        result,
        run: Run::Lenient(run),
        volatile: false,
    }
}

const fn other(
    oid: u32,
    name: &'static str,
    arguments: &'static str,
    result: &'static str,
    builtin: Builtin,
) -> Entry {
    Entry {
        oid,
        name,
        arguments,
        result,
        run: Run::As(builtin),
        volatile: false,
    }
}

/// The same as [`strict`], of a function that draws its value.
const fn volatile(
    oid: u32,
    name: &'static str,
    arguments: &'static str,
    result: &'static str,
    run: fn(&Arguments<'_>) -> Result<Value>,
) -> Entry {
    Entry {
        volatile: true,
        ..strict(oid, name, arguments, result, run)
    }
}

static TABLES: [&[Entry]; 16] = [
    text::ENTRIES,
    bytes::ENTRIES,
    digest::ENTRIES,
    hashes::ENTRIES,
    math::ENTRIES,
    pattern::ENTRIES,
    moment::ENTRIES,
    read::ENTRIES,
    json::ENTRIES,
    json_change::ENTRIES,
    json_assign::ENTRIES,
    array::ENTRIES,
    size::ENTRIES,
    network::ENTRIES,
    information::ENTRIES,
    snapshot::ENTRIES,
];

impl Entry {
    /// Names of its arguments' types; a `*` behind the last says that there may be any number of it.
    pub fn arguments(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.arguments.split_whitespace()
    }

    /// Whether it is written between or in front of its operands.
    pub fn is_operator(&self) -> bool {
        !self
            .name
            .starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
    }
}

/// All functions but those of extensions, operators left out.
pub(crate) fn functions() -> impl Iterator<Item = &'static Entry> {
    let all = TABLES.iter().flat_map(|table| table.iter());
    all.filter(|entry| !entry.is_operator())
}

fn named(name: &str) -> &'static [Scalar] {
    static NAMES: OnceLock<HashMap<&'static str, Vec<Scalar>>> = OnceLock::new();
    let names = NAMES.get_or_init(|| {
        let mut names: HashMap<&'static str, Vec<Scalar>> = HashMap::default();
        for (table, entries) in (0u8..).zip(TABLES) {
            for (row, entry) in (0u16..).zip(entries) {
                names
                    .entry(entry.name)
                    .or_default()
                    .push(Scalar { table, row });
            }
        }
        names
    });
    names.get(name).map_or(&[], Vec::as_slice)
}

impl Scalar {
    pub fn entry(self) -> &'static Entry {
        let (table, row) = (usize::from(self.table), usize::from(self.row));
        match TABLES.get(table) {
            Some(entries) => &entries[row],
            None => &extension::AVAILABLE[table - TABLES.len()].functions[row],
        }
    }

    /// The extension that it belongs to.
    pub fn extension(self) -> Option<&'static Available> {
        let number = usize::from(self.table).checked_sub(TABLES.len())?;
        extension::AVAILABLE.get(number)
    }

    /// The functions of an extension, by its number among those that are available.
    pub fn of_extension(number: usize) -> impl Iterator<Item = Self> {
        let functions = extension::AVAILABLE[number].functions;
        let table = (TABLES.len() + number) as u8;
        (0..functions.len() as u16).map(move |row| Self { table, row })
    }

    /// What it is called by: the function that it is the same as, if there is one.
    fn builtin(self) -> Builtin {
        match self.entry().run {
            Run::As(builtin) => builtin,
            _ => Builtin::Scalar(self),
        }
    }
}

/// The arguments of a call.
pub(super) struct Arguments<'a> {
    values: &'a [Out<'a>],
    settings: &'a Settings,
    env: &'a dyn Environment,
}

impl Arguments<'_> {
    fn len(&self) -> usize {
        self.values.len()
    }

    fn at(&self, number: usize) -> ValueRef<'_> {
        self.values.get(number).map_or(ValueRef::Null, Out::as_ref)
    }

    fn is_null(&self, number: usize) -> bool {
        self.at(number).is_null()
    }

    fn text(&self, number: usize) -> &str {
        self.at(number).as_str().unwrap_or_default()
    }

    /// Zero for what is not there.
    fn int(&self, number: usize) -> i32 {
        let value = self.at(number).as_i64().unwrap_or(0);
        i32::try_from(value).unwrap_or(i32::MAX)
    }

    fn long(&self, number: usize) -> i64 {
        self.at(number).as_i64().unwrap_or(0)
    }

    fn float(&self, number: usize) -> f64 {
        match self.at(number) {
            ValueRef::Float8(value) => value,
            ValueRef::Float4(value) => f64::from(value),
            _ => 0.0,
        }
    }

    fn numeric(&self, number: usize) -> Numeric {
        match self.at(number) {
            ValueRef::Numeric(value) => value.to_numeric(),
            other => Numeric::from(other.as_i64().unwrap_or(0)),
        }
    }

    fn bytes(&self, number: usize) -> &[u8] {
        match self.at(number) {
            ValueRef::Bytea(bytes) => bytes,
            _ => &[],
        }
    }

    fn truth(&self, number: usize) -> bool {
        self.at(number).as_bool() == Some(true)
    }

    fn instant(&self, number: usize) -> Timestamp {
        match self.at(number) {
            ValueRef::Timestamp(at) | ValueRef::Timestamptz(at) => at,
            _ => Timestamp(0),
        }
    }

    fn date(&self, number: usize) -> Date {
        match self.at(number) {
            ValueRef::Date(date) => date,
            _ => Date(0),
        }
    }

    fn interval(&self, number: usize) -> Interval {
        match self.at(number) {
            ValueRef::Interval(interval) => interval,
            _ => Interval::default(),
        }
    }

    fn address(&self, number: usize) -> Result<Inet> {
        match self.at(number) {
            ValueRef::Inet(value) | ValueRef::Cidr(value) => Ok(value),
            _ => Err(SqlError::internal("no address")),
        }
    }

    fn array(&self, number: usize) -> Option<ArrayRef<'_>> {
        match self.at(number) {
            ValueRef::Array(array) => Some(array),
            _ => None,
        }
    }

    /// The texts of an array; null for nulls.
    fn texts(&self, number: usize) -> Vec<Option<String>> {
        let items = self.array(number).into_iter().flat_map(ArrayRef::items);
        items
            .map(|item| item.as_ref().as_str().map(str::to_owned))
            .collect()
    }

    fn jsonb(&self, number: usize) -> Result<JsonbRef<'_>> {
        match self.at(number) {
            ValueRef::Jsonb(value) => Ok(value),
            _ => Err(SqlError::internal("no jsonb")),
        }
    }

    /// Any value as a cast to text makes it.
    fn cast_to_text(&self, number: usize) -> Result<String> {
        let text = cast(
            self.at(number),
            Type::Text,
            Typmod::NONE,
            true,
            self.settings,
        )?;
        Ok(text.as_ref().as_str().unwrap_or_default().to_owned())
    }

    /// Any value as its text.
    ///
    /// # Errors
    /// `54000` for one that is too long.
    fn shown(&self, number: usize) -> Result<String> {
        let mut text = String::new();
        vellum_row::output(self.at(number), self.settings, &mut text)?;
        Ok(text)
    }
}

/// Runs one.
pub(super) fn call<'a>(
    scalar: Scalar,
    arguments: &'a [Expr],
    frame: &Frame<'a>,
) -> Result<Out<'a>> {
    let mut values = Vec::with_capacity(arguments.len());
    let (run, is_strict) = match scalar.entry().run {
        Run::Strict(run) => (run, true),
        Run::Lenient(run) => (run, false),
        Run::As(_) => return Err(SqlError::internal("a function by another name")),
    };
    for argument in arguments {
        let value = argument.eval(frame)?;
        if is_strict && value.is_null() {
            return Ok(Out::NULL);
        }
        values.push(value);
    }
    let arguments = Arguments {
        values: &values,
        settings: frame.env.settings(),
        env: frame.env,
    };
    run(&arguments).map(Out::Own)
}

/// An error of the code.
#[cold]
fn fault(code: &'static str, message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::of(code), message.into())
}

/// A wrong argument (22023).
#[cold]
fn invalid(message: impl Into<String>) -> SqlError {
    fault("22023", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_has_types_that_are_there_and_no_other_has_its_arguments() {
        let all: Vec<&Entry> = TABLES.iter().flat_map(|table| table.iter()).collect();
        for (number, entry) in all.iter().enumerate() {
            for ty in entry.arguments().chain([entry.result]) {
                let ty = ty.trim_end_matches('*');
                assert_ne!(super::super::type_oid(ty), 0, "{} {ty}", entry.name);
            }
            for before in &all[..number] {
                let same = before.name == entry.name && before.arguments == entry.arguments;
                assert!(!same, "{} {}", entry.name, entry.arguments);
            }
            for other in crate::expr::catalog_functions() {
                let same = other.name == entry.name && other.arguments().eq(entry.arguments());
                assert!(!same, "{} {}", entry.name, entry.arguments);
            }
        }
    }

    #[test]
    fn every_oid_is_one_functions() {
        // Calls with fewer arguments than PostgreSQL's function has have none.
        let oids = functions().map(|entry| entry.oid).filter(|oid| *oid > 0);
        let mut oids: Vec<u32> = oids.collect();
        assert!(oids.len() > 200);
        oids.sort_unstable();
        assert!(oids.windows(2).all(|pair| pair[0] != pair[1]), "{oids:?}");
    }
}
