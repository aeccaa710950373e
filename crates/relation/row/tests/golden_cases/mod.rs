//! The questions of golden files: how each is put to a server, and how to this crate.
//!
//! | question | columns behind it |
//! | --- | --- |
//! | `form` | type, text: the value's text and its binary format |

#![allow(clippy::unwrap_used, reason = "a test's own cases")]

use vellum_row::{
    ByteaOutput, DateOrder, DateStyle, IntervalFields, IntervalStyle, Result, Settings, Type,
    Typmod, Value, input, output, receive, send,
};

/// How many columns the question has, itself included.
pub fn columns(question: &str) -> usize {
    match question {
        "form" => 3,
        other => panic!("no question is called {other}"),
    }
}

/// The type and modifier of `numeric(5,2)`, `interval day to second(3)`, `text`.
pub fn type_of(name: &str) -> (Type, Typmod) {
    let (base, arguments) = match name.split_once('(') {
        Some((base, arguments)) => (base.trim(), arguments.trim_end_matches(')')),
        None => (name, ""),
    };
    let numbers: Vec<i64> = arguments
        .split(',')
        .filter_map(|argument| argument.trim().parse().ok())
        .collect();
    if let Some(fields) = base.strip_prefix("interval") {
        let all = [
            IntervalFields::YEAR,
            IntervalFields::MONTH,
            IntervalFields::DAY,
            IntervalFields::HOUR,
            IntervalFields::MINUTE,
            IntervalFields::SECOND,
            IntervalFields::YEAR_TO_MONTH,
            IntervalFields::DAY_TO_HOUR,
            IntervalFields::DAY_TO_MINUTE,
            IntervalFields::DAY_TO_SECOND,
            IntervalFields::HOUR_TO_MINUTE,
            IntervalFields::HOUR_TO_SECOND,
            IntervalFields::MINUTE_TO_SECOND,
        ];
        let fields = all
            .into_iter()
            .find(|set| set.name() == Some(fields.trim()));
        let typmod = Typmod::of_interval(fields, numbers.first().copied()).unwrap();
        return (Type::Interval, typmod);
    }
    let ty = vellum_row::TYPES
        .into_iter()
        .find(|ty| ty.name() == base || ty.sql_name() == base)
        .unwrap_or_else(|| panic!("no type is called {base}"));
    let typmod = match (ty, numbers.as_slice()) {
        (_, []) => Typmod::NONE,
        (Type::Numeric, [precision]) => Typmod::of_numeric(*precision, 0).unwrap(),
        (Type::Numeric, [precision, scale]) => Typmod::of_numeric(*precision, *scale).unwrap(),
        (Type::Varchar | Type::Char, [length]) => Typmod::of_length(ty, *length).unwrap(),
        (_, [digits]) => Typmod::of_fraction(ty, *digits).unwrap(),
        _ => panic!("{name} has too many arguments"),
    };
    (ty, typmod)
}

/// A literal of SQL.
fn quoted(text: &str) -> String {
    if text.contains('\\') {
        return format!("E'{}'", text.replace('\\', "\\\\").replace('\'', "''"));
    }
    format!("'{}'", text.replace('\'', "''"))
}

fn send_function(ty: Type) -> String {
    match ty {
        Type::Numeric
        | Type::Date
        | Type::Time
        | Type::Timestamp
        | Type::Timestamptz
        | Type::Interval
        | Type::Uuid
        | Type::Json
        | Type::Jsonb => format!("{}_send", ty.name()),
        _ => format!("{}send", ty.name()),
    }
}

/// The query whose one result is the answer.
pub fn sql(columns: &[String]) -> String {
    match columns[0].as_str() {
        "form" => {
            let (ty, _) = type_of(&columns[1]);
            format!(
                "select format('%s', x) || ' ' || encode({}(x), 'hex') from (select {}::{} as x) s",
                send_function(ty),
                quoted(&columns[2]),
                columns[1]
            )
        }
        other => panic!("no question is called {other}"),
    }
}

fn text_of(value: &Value, settings: &Settings) -> String {
    let mut out = String::new();
    if value.is_null() {
        return "null".to_owned();
    }
    output(value.as_ref(), settings, &mut out);
    out
}

/// This crate's answer.
pub fn answer(columns: &[String], settings: &Settings) -> Result<String> {
    match columns[0].as_str() {
        "form" => {
            let (ty, typmod) = type_of(&columns[1]);
            let value = input(ty, typmod, &columns[2], settings)?;
            let text = text_of(&value, settings);
            let mut bytes = Vec::new();
            send(value.as_ref(), &mut bytes);
            let back = receive(ty, typmod, &bytes)?;
            assert_eq!(text_of(&back, settings), text, "{columns:?}");
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            Ok(format!("{text} {hex}"))
        }
        other => panic!("no question is called {other}"),
    }
}

/// Applies `name = value`.
pub fn set(setting: &str, settings: &mut Settings) {
    let (name, value) = setting.split_once('=').expect("a setting has a value");
    let value = value.trim().trim_matches('\'');
    match name.trim() {
        "datestyle" => {
            for word in value.split(',') {
                match word.trim().to_ascii_lowercase().as_str() {
                    "iso" => settings.date_style = DateStyle::Iso,
                    "sql" => settings.date_style = DateStyle::Sql,
                    "postgres" => settings.date_style = DateStyle::Postgres,
                    "german" => settings.date_style = DateStyle::German,
                    "mdy" => settings.date_order = DateOrder::Mdy,
                    "dmy" => settings.date_order = DateOrder::Dmy,
                    "ymd" => settings.date_order = DateOrder::Ymd,
                    other => panic!("no style is called {other}"),
                }
            }
        }
        "intervalstyle" => {
            settings.interval_style = match value {
                "postgres" => IntervalStyle::Postgres,
                "postgres_verbose" => IntervalStyle::PostgresVerbose,
                "sql_standard" => IntervalStyle::SqlStandard,
                "iso_8601" => IntervalStyle::Iso8601,
                other => panic!("no style is called {other}"),
            }
        }
        "bytea_output" => {
            settings.bytea_output = if value == "escape" {
                ByteaOutput::Escape
            } else {
                ByteaOutput::Hex
            };
        }
        "extra_float_digits" => settings.extra_float_digits = value.parse().unwrap(),
        "timezone" => {
            settings.time_zone = vellum_row::datetime::TimeZone::named(value).unwrap();
        }
        other => panic!("no setting is called {other}"),
    }
}
