//! The decoders of SQL's values, each as a function of bytes: rows, keys, schemas. What was decoded and encoded again reads the same.
//!
//! The inputs are a table's with a column of every type, written by the encoders.
//!
//! Not here: messages and statements (`vellum-server`'s and this package's tests); the text and binary forms of values (`vellum-row`'s tests).

use crate::targets::Target;
use std::sync::OnceLock;
use vellum_row::{
    Column, KeyCodec, KeyColumn, Schema, Settings, TYPES, Type, Typmod, Value, ValueRef, input,
    output,
};

/// The decoders of this layer.
pub const TARGETS: [Target; 3] = [
    Target {
        name: "SQL row",
        run: row,
    },
    Target {
        name: "SQL key",
        run: key,
    },
    Target {
        name: "schema",
        run: schema,
    },
];

/// Values of a type, as a client writes them.
fn texts(ty: Type) -> [&'static str; 4] {
    match ty {
        Type::Bool => ["t", "f", "true", "no"],
        Type::Int2 => ["0", "-32768", "32767", "77"],
        Type::Int4 | Type::Oid => ["0", "1", "2147483647", "77"],
        Type::Int8 => ["0", "-9223372036854775808", "9223372036854775807", "-1"],
        Type::Float4 | Type::Float8 => ["0", "-0", "NaN", "-1.5e-7"],
        Type::Numeric => ["0", "NaN", "-12345678901234567890.12345", "1e-300"],
        Type::Date => ["2024-02-29", "infinity", "0001-01-01 BC", "1999-12-31"],
        Type::Time => ["00:00", "24:00:00", "12:34:56.789012", "01:02"],
        Type::Timestamp | Type::Timestamptz => [
            "2024-02-29 12:00",
            "-infinity",
            "infinity",
            "1999-12-31 23:59:59.999999",
        ],
        Type::Interval => ["0", "1 mon -30 days", "-1 year 00:00:01", "178000000 years"],
        Type::Inet => ["10.1.2.3", "10.1.2.3/8", "::1", "2001:db8::5/32"],
        Type::Cidr => ["10", "192.168.1/24", "::/0", "2001:db8::/32"],
        Type::Uuid => ["00000000-0000-0000-0000-000000000000"; 4],
        Type::Json | Type::Jsonb => [
            "null",
            "[1, {\"a\": \"é\"}]",
            "{\"b\": [true, 1e9]}",
            "\"\"",
        ],
        Type::Bytea => ["", "\\x00ff01", "abc", "\\x00"],
        Type::Text | Type::Varchar | Type::Char | Type::Name => ["", "a", "é€𝄞", "it's  "],
        Type::Array(_) => ["{}", "{NULL}", "{{1,2},{3,4}}", "[-1:0]={5,6}"],
        other => unreachable!("of the catalogs only: {other:?}"),
    }
}

fn value(ty: Type, text: &str) -> Value {
    input(ty, Typmod::NONE, text, &Settings::default()).expect("a value of its type")
}

/// Types of columns: what users have, and arrays of a fixed and of a varying width.
fn types() -> impl Iterator<Item = Type> {
    let arrays = [Type::Int4, Type::Text].map(Type::array);
    TYPES.into_iter().chain(arrays)
}

/// A table with a column of every type, one that was dropped, and one that was added.
fn table() -> &'static Schema {
    static TABLE: OnceLock<Schema> = OnceLock::new();
    TABLE.get_or_init(|| {
        let columns = types().map(|ty| Column::new(ty.name(), ty, Typmod::NONE, true));
        let schema = Schema::new(columns.collect()).expect("as many as there are types");
        let added = Column::new("added", Type::Text, Typmod::NONE, true);
        let added = added.with_missing(Value::text("from before"));
        let schema = schema.add_column(added).expect("one more");
        schema.drop_column(2).expect("it is there")
    })
}

/// Keys by a column of every type that has an order, up and down.
fn keys() -> &'static KeyCodec {
    static KEYS: OnceLock<KeyCodec> = OnceLock::new();
    KEYS.get_or_init(|| {
        let columns = TYPES.into_iter().filter(|ty| ty.is_orderable());
        let columns = columns.enumerate().map(|(at, ty)| {
            let column = KeyColumn::new(ty, Typmod::NONE, at % 3 != 0);
            if at % 2 == 0 {
                column
            } else {
                column.descending()
            }
        });
        KeyCodec::new(columns.collect()).expect("each has an order")
    })
}

fn told(value: ValueRef<'_>) {
    let mut text = String::new();
    // What is too long is refused.
    let _ = output(value, &Settings::default(), &mut text);
}

fn row(bytes: &[u8]) -> bool {
    let schema = table();
    let Ok(view) = schema.view(bytes) else {
        return false;
    };
    let mut values = Vec::new();
    for position in 0..schema.len() {
        let range = view.range(position);
        assert!(!matches!(range, Ok(Some(range)) if range.end > bytes.len()));
        let Ok(value) = view.get(position) else {
            return false;
        };
        assert_eq!(value.is_null(), view.is_null(position) && value.is_null());
        told(value);
        values.push(value);
    }
    // What it says is written again, and says the same.
    let mut again = Vec::new();
    if schema.encode(&values, &mut again).is_ok() {
        let view = schema.view(&again).expect("it was written just now");
        for (position, value) in values.iter().enumerate() {
            let read = view.get(position).expect("it was written just now");
            assert_eq!(format!("{read:?}"), format!("{value:?}"));
        }
    }
    true
}

fn key(bytes: &[u8]) -> bool {
    let (mut values, mut ends) = (Vec::new(), Vec::new());
    let Ok(length) = keys().decode(bytes, &mut values) else {
        return false;
    };
    assert!(length <= bytes.len());
    keys().ends(bytes, &mut ends).expect("it was decoded");
    assert_eq!(ends.last(), Some(&length));
    let values: Vec<ValueRef<'_>> = values.iter().map(Value::as_ref).collect();
    values.iter().for_each(|value| told(*value));
    let mut again = Vec::new();
    if keys().encode(&values, &mut again).is_ok() {
        let mut read = Vec::new();
        let length = keys().decode(&again, &mut read);
        assert_eq!(length.ok(), Some(again.len()));
        let read: Vec<ValueRef<'_>> = read.iter().map(Value::as_ref).collect();
        // Equal values, not the same (I3 of `key`): -0 comes back as 0.
        let mut third = Vec::new();
        assert!(keys().encode(&read, &mut third).is_ok() && third == again);
    }
    true
}

fn schema(bytes: &[u8]) -> bool {
    let Ok(schema) = Schema::from_persisted(bytes) else {
        return false;
    };
    let again = schema.persist().expect("it was read just now");
    assert_eq!(Schema::from_persisted(&again).ok(), Some(schema));
    true
}

/// Inputs of a target.
pub(crate) fn inputs(name: &str) -> Option<Vec<Vec<u8>>> {
    let rows = (0..12_usize).map(|number| {
        // Some are null, each in another row.
        let of = |(at, ty): (usize, Type)| match (at + number) % 7 {
            0 => Value::Null,
            _ => value(ty, texts(ty)[(at + number) % 4]),
        };
        types().enumerate().map(of).collect::<Vec<_>>()
    });
    Some(match name {
        "SQL row" => rows
            .map(|mut values| {
                values.remove(2);
                values.push(Value::text("x".repeat(50)));
                let values: Vec<ValueRef<'_>> = values.iter().map(Value::as_ref).collect();
                let mut bytes = Vec::new();
                table()
                    .encode(&values, &mut bytes)
                    .expect("values of its columns");
                bytes
            })
            .collect(),
        "SQL key" => rows
            .map(|values| {
                let orderable = TYPES
                    .into_iter()
                    .zip(values)
                    .filter(|(ty, _)| ty.is_orderable());
                let columns = keys().columns().iter().zip(orderable);
                let values: Vec<Value> = columns
                    .map(|(column, (ty, found))| match found {
                        Value::Null if !column.nullable => value(ty, texts(ty)[0]),
                        found => found,
                    })
                    .collect();
                let values: Vec<ValueRef<'_>> = values.iter().map(Value::as_ref).collect();
                let mut bytes = Vec::new();
                keys()
                    .encode(&values, &mut bytes)
                    .expect("values of its columns");
                bytes
            })
            .collect(),
        "schema" => vec![table().persist().expect("values of its columns")],
        _ => return None,
    })
}
