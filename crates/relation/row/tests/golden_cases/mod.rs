//! The questions of golden files: how each is put to a server, and how to this crate.
//!
//! | question | columns behind it |
//! | --- | --- |
//! | `form` | type, text: the value's text and its binary format |
//! | `cast` | type, text, type, `explicit` or `assign`: the value cast |
//! | `op` | operator, type, text, type, text: type and value of the result |
//! | `compare` | type, text, text: -1, 0 or 1 |
//! | `call` | function, arguments (`type:text`, bars between): the result |
//! | `json` | operator, type, text, type of the key, key |
//! | `like` | operator, text, pattern |

#![allow(clippy::unwrap_used, reason = "a test's own cases")]

use std::hash::{DefaultHasher, Hasher};
use vellum_row::arithmetic::{self, Operator};
use vellum_row::{
    ByteaOutput, CastContext, DateOrder, DateStyle, IntervalFields, IntervalStyle, Pattern, Result,
    Settings, Type, Typmod, Value, ValueRef, cast, cast_between, compare, functions, hash, input,
    json, output, receive, send,
};

/// How many columns the question has, itself included.
pub fn columns(question: &str) -> usize {
    match question {
        "form" | "call" => 3,
        "compare" | "like" => 4,
        "cast" => 5,
        "op" | "json" => 6,
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
        .find(|ty| {
            ty.name() == base || ty.sql_name() == base || (base, *ty) == ("char", Type::Char)
        })
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
        | Type::Inet
        | Type::Cidr
        | Type::Json
        | Type::Jsonb => format!("{}_send", ty.name()),
        _ => format!("{}send", ty.name()),
    }
}

/// What is to be done before the query.
pub fn setup(columns: &[String]) -> String {
    if columns[0] == "cast" && columns[4] == "assign" {
        let ty = &columns[3];
        return format!(
            "set client_min_messages = error; drop table if exists target; create temp table target (c {ty});"
        );
    }
    String::new()
}

fn literal(ty: &str, text: &str) -> String {
    format!("{}::{ty}", quoted(text))
}

/// The arguments of a call.
fn arguments(column: &str) -> Vec<(&str, &str)> {
    column
        .split('|')
        .map(|argument| argument.split_once(':').unwrap())
        .collect()
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
        "cast" => {
            let source = literal(&columns[1], &columns[2]);
            let shown = |value: &str| {
                format!("case when {value} is null then 'null' else format('%s', {value}) end")
            };
            if columns[4] == "assign" {
                format!(
                    "insert into target select x from (select {source} as x) s returning {}",
                    shown("c")
                )
            } else {
                let cast = format!("x::{}", columns[3]);
                format!("select {} from (select {source} as x) s", shown(&cast))
            }
        }
        "op" => format!(
            "select pg_typeof(v)::text || ' ' || format('%s', v) from (select a {} b as v from (select {} as a, {} as b) s) t",
            columns[1],
            literal(&columns[2], &columns[3]),
            literal(&columns[4], &columns[5])
        ),
        "compare" => format!(
            "select case when a < b then -1 when a = b then 0 when a > b then 1 end from (select {} as a, {} as b) s",
            literal(&columns[1], &columns[2]),
            literal(&columns[1], &columns[3])
        ),
        "call" => {
            let arguments = arguments(&columns[2]);
            let list: Vec<String> = arguments
                .iter()
                .map(|(ty, text)| literal(ty, text))
                .collect();
            format!(
                "select coalesce(format('%s', {}({})), 'null')",
                columns[1],
                list.join(", ")
            )
        }
        "json" => format!(
            "select coalesce(({} {} {})::text, 'null')",
            literal(&columns[2], &columns[3]),
            columns[1],
            literal(&columns[4], &columns[5])
        ),
        "like" => format!(
            "select {} {} {}",
            quoted(&columns[2]),
            columns[1],
            quoted(&columns[3])
        ),
        other => panic!("no question is called {other}"),
    }
}

fn text_of(value: &Value, settings: &Settings) -> String {
    let mut out = String::new();
    if value.is_null() {
        return "null".to_owned();
    }
    output(value.as_ref(), settings, &mut out).unwrap();
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
            send(value.as_ref(), &mut bytes).unwrap();
            let back = receive(ty, typmod, &bytes)?;
            assert_eq!(text_of(&back, settings), text, "{columns:?}");
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            Ok(format!("{text} {hex}"))
        }
        "cast" => {
            let (from, from_typmod) = type_of(&columns[1]);
            let (to, typmod) = type_of(&columns[3]);
            let value = literal_value(from, from_typmod, &columns[2], settings)?;
            let explicit = columns[4] == "explicit";
            let context = cast_between(from, to).expect("a cast that there is");
            assert!(
                explicit || context <= CastContext::Assignment,
                "{columns:?}"
            );
            let cast = cast(value.as_ref(), to, typmod, explicit, settings)?;
            assert!(cast.is_null() || cast.as_ref().fits(to), "{columns:?}");
            Ok(text_of(&cast, settings))
        }
        "op" => {
            let operator = match columns[1].as_str() {
                "+" => Operator::Add,
                "-" => Operator::Subtract,
                "*" => Operator::Multiply,
                "/" => Operator::Divide,
                "%" => Operator::Modulo,
                other => panic!("no operator is called {other}"),
            };
            let (left, left_typmod) = type_of(&columns[2]);
            let (right, right_typmod) = type_of(&columns[4]);
            let a = input(left, left_typmod, &columns[3], settings)?;
            let b = input(right, right_typmod, &columns[5], settings)?;
            let to =
                arithmetic::resolve(operator, left, right).unwrap_or_else(|| panic!("{columns:?}"));
            let a = cast(a.as_ref(), to.left, Typmod::NONE, false, settings)?;
            let b = cast(b.as_ref(), to.right, Typmod::NONE, false, settings)?;
            let result = arithmetic::apply(operator, a.as_ref(), b.as_ref(), settings)?;
            assert_eq!(result.ty(), Some(to.result), "{columns:?}");
            Ok(format!(
                "{} {}",
                to.result.sql_name(),
                text_of(&result, settings)
            ))
        }
        "compare" => {
            let (ty, typmod) = type_of(&columns[1]);
            let a = literal_value(ty, typmod, &columns[2], settings)?;
            let b = literal_value(ty, typmod, &columns[3], settings)?;
            let order = compare(a.as_ref(), b.as_ref());
            let hash_of = |value: &Value| {
                let mut hasher = DefaultHasher::new();
                hash(value.as_ref(), &mut hasher);
                hasher.finish()
            };
            if order.is_eq() {
                assert_eq!(
                    hash_of(&a),
                    hash_of(&b),
                    "equal values have one hash: {columns:?}"
                );
            }
            Ok((order as i32).to_string())
        }
        "call" => {
            let arguments: Vec<Value> = arguments(&columns[2])
                .into_iter()
                .map(|(ty, text)| {
                    let (ty, typmod) = type_of(ty);
                    literal_value(ty, typmod, text, settings).unwrap()
                })
                .collect();
            Ok(text_of(&call(&columns[1], &arguments)?, settings))
        }
        "json" => json_operator(columns, settings),
        "like" => {
            let pattern = Pattern::new(&columns[3], Some('\\'), columns[1] == "ilike");
            Ok(pattern.matches(&columns[2])?.to_string())
        }
        other => panic!("no question is called {other}"),
    }
}

/// A literal of SQL is read without its type's modifier, which an explicit cast then applies.
fn literal_value(ty: Type, typmod: Typmod, text: &str, settings: &Settings) -> Result<Value> {
    let value = input(ty, Typmod::NONE, text, settings)?;
    cast(value.as_ref(), ty, typmod, true, settings)
}

fn call(name: &str, arguments: &[Value]) -> Result<Value> {
    let refs: Vec<ValueRef<'_>> = arguments.iter().map(Value::as_ref).collect();
    let text = |at: usize| refs[at].as_str().unwrap();
    let int = |at: usize| refs[at].as_i64().unwrap() as i32;
    Ok(match (name, refs.as_slice()) {
        ("abs", [value]) => functions::abs(*value)?,
        ("sign", [value]) => functions::sign(*value)?,
        ("round", [value]) => functions::round(*value)?,
        ("round", [ValueRef::Numeric(value), _]) => {
            Value::Numeric(value.to_numeric().round(int(1))?)
        }
        ("trunc", [value]) => functions::truncate(*value)?,
        ("trunc", [ValueRef::Numeric(value), _]) => {
            Value::Numeric(value.to_numeric().truncate(int(1))?)
        }
        ("ceil", [value]) => functions::ceiling(*value)?,
        ("floor", [value]) => functions::floor(*value)?,
        ("sqrt", [value]) => functions::square_root(*value)?,
        ("div", [ValueRef::Numeric(a), ValueRef::Numeric(b)]) => {
            Value::Numeric(a.to_numeric().divide_whole(&b.to_numeric())?)
        }
        ("length", [value]) => Value::Int4(functions::length(*value)?),
        ("octet_length", [value]) => Value::Int4(functions::octet_length(*value)?),
        ("upper", _) => Value::text(functions::upper(text(0))),
        ("lower", _) => Value::text(functions::lower(text(0))),
        ("substr", [_, _]) => Value::text(functions::substring(text(0), int(1), None)?),
        ("substr", _) => Value::text(functions::substring(text(0), int(1), Some(int(2)))?),
        ("left", _) => Value::text(functions::left(text(0), int(1))),
        ("right", _) => Value::text(functions::right(text(0), int(1))),
        ("btrim", _) => Value::text(functions::trim(text(0), text(1))),
        ("ltrim", _) => Value::text(functions::trim_left(text(0), text(1))),
        ("rtrim", _) => Value::text(functions::trim_right(text(0), text(1))),
        ("strpos", _) => Value::Int4(functions::position(text(0), text(1))),
        ("replace", _) => Value::text(functions::replace(text(0), text(1), text(2))?),
        _ => panic!("no function is called {name}"),
    })
}

fn json_operator(columns: &[String], settings: &Settings) -> Result<String> {
    let as_text = columns[1] == "->>";
    let (ty, _) = type_of(&columns[2]);
    let value = input(ty, Typmod::NONE, &columns[3], settings)?;
    let index = (columns[4] == "int4").then(|| columns[5].parse::<i32>().unwrap());
    let key = columns[5].as_str();
    let found = match &value {
        Value::Jsonb(json) => {
            let found = match index {
                Some(index) => json.as_ref().element(index),
                None => json.as_ref().field(key),
            };
            if as_text {
                found.and_then(|found| found.as_text().unwrap())
            } else {
                found.map(|found| text_of(&Value::Jsonb(found.to_jsonb()), settings))
            }
        }
        Value::Json(text) => match (index, as_text) {
            (Some(index), false) => json::array_element(text, index)?.map(str::to_owned),
            (Some(index), true) => json::array_element_text(text, index)?,
            (None, false) => json::field(text, key)?.map(str::to_owned),
            (None, true) => json::field_text(text, key)?,
        },
        other => panic!("{other:?} is no JSON"),
    };
    Ok(found.unwrap_or_else(|| "null".to_owned()))
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
