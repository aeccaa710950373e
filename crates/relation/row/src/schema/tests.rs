//! Rows over the life of a table: what is written is read back, under every version, and damage is
//! an error.

use super::*;
use crate::datetime::{Date, Interval, Timestamp};
use crate::numeric::Numeric;
use crate::value::ValueRef;
use vellum_base::random::Random;

fn account() -> Schema {
    let numeric = Typmod::of_numeric(12, 2).unwrap();
    Schema::new(vec![
        Column::new("id", Type::Int4, Typmod::NONE, false),
        Column::new("owner", Type::Text, Typmod::NONE, true),
        Column::new("balance", Type::Numeric, numeric, true),
        Column::new("note", Type::Varchar, Typmod(24), true),
        Column::new("changed", Type::Timestamptz, Typmod::NONE, true),
    ])
    .unwrap()
}

fn cents(units: i64) -> ValueRef<'static> {
    ValueRef::Numeric(crate::NumericRef::Small {
        coefficient: units,
        scale: 2,
    })
}

fn read(schema: &Schema, row: &[u8]) -> Vec<Value> {
    let view = schema.view(row).unwrap();
    (0..schema.len())
        .map(|position| view.get(position).unwrap().to_value())
        .collect()
}

#[test]
fn golden_bytes_of_a_row() {
    let schema = account();
    let mut row = Vec::new();
    let values = [
        ValueRef::Int4(7),
        ValueRef::Text("Ann"),
        cents(-250),
        ValueRef::Null,
        ValueRef::Timestamptz(Timestamp(1)),
    ];
    schema.encode(&values, &mut row).unwrap();
    let expected = [
        &[0, 0][..],
        &[0b0000_1000],
        &[7, 0, 0, 0],
        &[6, 255, 255, 255, 255, 255, 255, 255],
        &[1, 0, 0, 0, 0, 0, 0, 0],
        &[3, 0, 3, 0],
        b"Ann",
    ]
    .concat();
    assert_eq!(row, expected);
    assert_eq!(schema.fixed_range(2), Some(7..15));
    assert_eq!(schema.view(&row).unwrap().range(1).unwrap(), Some(27..30));
}

#[test]
fn a_row_of_an_older_version_reads_added_columns_as_their_missing_value_and_skips_dropped_ones() {
    let first = account();
    let mut old = Vec::new();
    let values = [
        ValueRef::Int4(1),
        ValueRef::Text("x"),
        cents(100),
        ValueRef::Text("n"),
        ValueRef::Null,
    ];
    first.encode(&values, &mut old).unwrap();
    let added = Column::new("grade", Type::Text, Typmod::NONE, false);
    let second = first
        .add_column(added.with_missing(Value::text("new")))
        .unwrap();
    let third = second.drop_column(1).unwrap();
    assert_eq!(read(&second, &old)[5], Value::text("new"));
    assert_eq!(
        read(&third, &old),
        [
            Value::Int4(1),
            cents(100).to_value(),
            Value::text("n"),
            Value::Null,
            Value::text("new")
        ]
    );
    // The name of a dropped column may come back, as another column.
    let back = Column::new("owner", Type::Int8, Typmod::NONE, true);
    let fourth = third.add_column(back).unwrap();
    assert_eq!(fourth.column(5).id, ColumnId(7));
    assert_eq!(read(&fourth, &old)[5], Value::Null);
    let again = Schema::from_persisted(&fourth.persist().unwrap()).unwrap();
    assert_eq!(again, fourth);
    assert_eq!(read(&again, &old), read(&fourth, &old));
    let taken = Column::new("id", Type::Int8, Typmod::NONE, true);
    assert_eq!(
        fourth.add_column(taken).unwrap_err().state(),
        SqlState::DUPLICATE_COLUMN
    );
}

#[test]
fn changes_that_keep_the_length_name_the_bytes_they_change_and_no_others() {
    let schema = account();
    let mut row = Vec::new();
    let values = [
        ValueRef::Int4(1),
        ValueRef::Text("abc"),
        cents(100),
        ValueRef::Text("n"),
        ValueRef::Null,
    ];
    schema.encode(&values, &mut row).unwrap();
    let (before, mut ranges) = (row.clone(), Vec::new());
    let changes = [
        (2, cents(356)),
        (1, ValueRef::Text("abd")),
        (4, ValueRef::Timestamptz(Timestamp(5))),
    ];
    let how = schema.assign(&mut row, &changes, &mut ranges).unwrap();
    assert_eq!(how, Assigned::InPlace);
    assert_eq!(ranges, [2..3, 7..23, 27..30]);
    for (at, (old, new)) in before.iter().zip(&row).enumerate() {
        assert!(old == new || ranges.iter().any(|range| range.contains(&at)));
    }
    let now = read(&schema, &row);
    assert_eq!(now[2], cents(356).to_value());
    assert_eq!(now[4], Value::Timestamptz(Timestamp(5)));
    let how = schema
        .assign(&mut row, &[(2, cents(356))], &mut ranges)
        .unwrap();
    assert_eq!(
        (how, ranges.len()),
        (Assigned::InPlace, 0),
        "nothing changed"
    );
    let longer = [(1, ValueRef::Text("abcd"))];
    let how = schema.assign(&mut row, &longer, &mut ranges).unwrap();
    assert_eq!((how, ranges.len()), (Assigned::Rewritten, 0));
    assert_eq!(read(&schema, &row)[1], Value::text("abcd"));
}

#[test]
fn a_long_row_has_wide_offsets() {
    let schema = account();
    let long = "y".repeat(70_000);
    let mut row = Vec::new();
    let values = [
        ValueRef::Int4(1),
        ValueRef::Text(&long),
        ValueRef::Numeric(crate::NumericRef::NaN),
        ValueRef::Text("n"),
        ValueRef::Null,
    ];
    schema.encode(&values, &mut row).unwrap();
    let now = read(&schema, &row);
    assert_eq!(now[1], Value::text(long));
    assert_eq!(now[2], Value::Numeric(Numeric::NAN));
    assert_eq!(now[3], Value::text("n"));
    let mut ranges = Vec::new();
    let how = schema
        .assign(&mut row, &[(3, ValueRef::Text("m"))], &mut ranges)
        .unwrap();
    assert_eq!(how, Assigned::InPlace);
    assert_eq!(read(&schema, &row)[3], Value::text("m"));
}

#[test]
fn a_value_that_does_not_fit_its_column_is_refused() {
    let schema = account();
    let mut values = [ValueRef::Null; 5];
    values[0] = ValueRef::Int8(1);
    let error = schema.encode(&values, &mut Vec::new()).unwrap_err();
    assert_eq!(error.state(), SqlState::INTERNAL);
    values[0] = ValueRef::Int4(1);
    let whole = Numeric::from(3i32);
    values[2] = ValueRef::Numeric(whole.as_ref());
    assert!(
        schema.encode(&values, &mut Vec::new()).is_err(),
        "scale 0 in numeric(12,2)"
    );
}

fn random_value<'a>(random: &mut Random, column: &Column, text: &'a str) -> ValueRef<'a> {
    if random.chance(1, 5) {
        return ValueRef::Null;
    }
    let word = random.next_u64();
    match column.ty {
        Type::Bool => ValueRef::Bool(word & 1 == 1),
        Type::Int2 => ValueRef::Int2(word as i16),
        Type::Int8 => ValueRef::Int8(word as i64),
        Type::Float8 => ValueRef::Float8(word as f64),
        Type::Date => ValueRef::Date(Date(word as i32)),
        Type::Interval => ValueRef::Interval(Interval {
            months: word as i32,
            days: (word >> 32) as i32,
            micros: word as i64,
        }),
        Type::Uuid => ValueRef::Uuid([word as u8; 16]),
        Type::Inet => ValueRef::Inet(crate::network::random_inet(random)),
        Type::Cidr => ValueRef::Cidr(crate::network::random_inet(random).network()),
        Type::Text => ValueRef::Text(&text[..random.below(text.len() as u64 + 1) as usize]),
        Type::Bytea => {
            ValueRef::Bytea(&text.as_bytes()[..random.below(text.len() as u64 + 1) as usize])
        }
        _ => unreachable!("not among the types of this test"),
    }
}

#[test]
fn prop_rows_are_read_back_under_every_later_version_and_damage_never_panics() {
    let mut random = crate::seed::random();
    let types = [
        Type::Bool,
        Type::Int2,
        Type::Int8,
        Type::Float8,
        Type::Date,
        Type::Interval,
        Type::Uuid,
        Type::Inet,
        Type::Cidr,
        Type::Text,
        Type::Bytea,
    ];
    let text = "abcdefghijklmnopqrstuvwxyz".repeat(12);
    let long = "z".repeat(40_000);
    for _ in 0..60 {
        let mut schema = Schema::new(Vec::new()).unwrap();
        // What each row holds, by column id.
        let mut rows: Vec<(Vec<u8>, Vec<(ColumnId, Value)>)> = Vec::new();
        for step in 0..30 {
            if random.chance(1, 3) && schema.len() > 1 {
                let position = random.below(schema.len() as u64) as usize;
                schema = schema.drop_column(position).unwrap();
            } else {
                let ty = types[random.below(types.len() as u64) as usize];
                let column = Column::new(format!("c{step}"), ty, Typmod::NONE, true);
                let missing = random_value(&mut random, &column, &text).to_value();
                schema = schema.add_column(column.with_missing(missing)).unwrap();
            }
            let text = if random.chance(1, 20) { &long } else { &text };
            let values: Vec<ValueRef<'_>> = schema
                .columns()
                .map(|column| random_value(&mut random, column, text))
                .collect();
            let mut row = Vec::new();
            schema.encode(&values, &mut row).unwrap();
            let ids = schema.columns().map(|column| column.id);
            let held = ids
                .zip(values.iter().map(|value| value.to_value()))
                .collect();
            rows.push((row, held));
            for (row, held) in &rows {
                let view = schema.view(row).unwrap();
                for (position, column) in schema.columns().enumerate() {
                    let expected = held
                        .iter()
                        .find(|(id, _)| *id == column.id)
                        .map_or(&column.missing, |(_, value)| value);
                    assert_eq!(&view.get(position).unwrap().to_value(), expected);
                    assert_eq!(view.is_null(position), expected.is_null());
                }
            }
        }
        let (row, _) = &rows[rows.len() - 1];
        for _ in 0..50 {
            let mut damaged = row.clone();
            let at = random.below(damaged.len() as u64) as usize;
            damaged[at] ^= 1 << random.below(8);
            damaged.truncate(random.below(damaged.len() as u64 + 1) as usize);
            if let Ok(view) = schema.view(&damaged) {
                for position in 0..schema.len() {
                    let _ = view.get(position);
                    let _ = view.range(position);
                }
            }
            let mut persisted = schema.persist().unwrap();
            let at = random.below(persisted.len() as u64) as usize;
            persisted[at] ^= 1 << random.below(8);
            let _ = Schema::from_persisted(&persisted);
        }
    }
}
