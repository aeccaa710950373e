//! Keys: golden bytes, and for random values of every type that bytes compare as values do.

use super::*;
use crate::array::{Array, Dimension};
use crate::compare::compare;
use crate::settings::Settings;
use crate::text::input;
use crate::types::TYPES;
use std::cmp::Ordering;
use std::ops::Bound;
use vellum_base::random::Random;

fn value(ty: Type, typmod: Typmod, text: &str) -> Value {
    input(ty, typmod, text, &Settings::default()).unwrap()
}

fn key(column: KeyColumn, value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    let codec = KeyCodec::new(vec![column]).unwrap();
    codec.encode(&[value.as_ref()], &mut out).unwrap();
    out
}

#[test]
fn golden_bytes_of_keys() {
    let money = Typmod::of_numeric(12, 2).unwrap();
    let cases: &[(Type, Typmod, &str, &str)] = &[
        (Type::Bool, Typmod::NONE, "t", "01"),
        (Type::Int2, Typmod::NONE, "-1", "7fff"),
        (Type::Int4, Typmod::NONE, "7", "80000007"),
        (
            Type::Int8,
            Typmod::NONE,
            "-9223372036854775808",
            "0000000000000000",
        ),
        (Type::Oid, Typmod::NONE, "16", "00000010"),
        (Type::Float4, Typmod::NONE, "1", "bf800000"),
        (Type::Float8, Typmod::NONE, "-1", "400fffffffffffff"),
        (Type::Float8, Typmod::NONE, "-0", "8000000000000000"),
        (Type::Float8, Typmod::NONE, "NaN", "ffffffffffffffff"),
        (Type::Numeric, Typmod::NONE, "0.00", "02"),
        (
            Type::Numeric,
            Typmod::NONE,
            "12345.6",
            "0380010002092a17710000",
        ),
        (Type::Numeric, Typmod::NONE, "-1", "017ffffffdffff"),
        (Type::Numeric, Typmod::NONE, "NaN", "05"),
        (Type::Numeric, money, "-0.01", "7fffffffffffffff"),
        (Type::Numeric, money, "NaN", "ffffffffffffffff"),
        (Type::Text, Typmod::NONE, "ab", "616200"),
        (Type::Char, Typmod(8), "ab", "616200"),
        (Type::Bytea, Typmod::NONE, "\\x610062", "6100ff620000"),
        (Type::Int2.array(), Typmod::NONE, "{}", "0000"),
        (
            Type::Int2.array(),
            Typmod::NONE,
            "{1,NULL}",
            "0180010200018000000280000001",
        ),
        (Type::Date, Typmod::NONE, "2000-01-02", "80000001"),
        (
            Type::Time,
            Typmod::NONE,
            "00:00:00.000001",
            "8000000000000001",
        ),
        (
            Type::Timestamp,
            Typmod::NONE,
            "infinity",
            "ffffffffffffffff",
        ),
        (
            Type::Interval,
            Typmod::NONE,
            "00:00:00.000002",
            "800000000000000000000002",
        ),
        (
            Type::Uuid,
            Typmod::NONE,
            "000102030405060708090a0b0c0d0e0f",
            "000102030405060708090a0b0c0d0e0f",
        ),
        (
            Type::Inet,
            Typmod::NONE,
            "10.1.2.3/12",
            "040a0000000c0a010203",
        ),
        (Type::Inet, Typmod::NONE, "10.1.2.3", "040a010203200a010203"),
        (Type::Cidr, Typmod::NONE, "10.1/16", "040a010000100a010000"),
        (
            Type::Cidr,
            Typmod::NONE,
            "fe80::/10",
            "06fe8000000000000000000000000000000afe800000000000000000000000000000",
        ),
        (Type::Jsonb, Typmod::NONE, "[]", "01"),
        (
            Type::Jsonb,
            Typmod::NONE,
            "{\"a\": [null]}",
            "60000000016100500000000110",
        ),
    ];
    for (ty, typmod, text, hex) in cases {
        let found = key(
            KeyColumn::new(*ty, *typmod, false),
            &value(*ty, *typmod, text),
        );
        let found: String = found.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(found, *hex, "{ty:?} {text}");
    }
    let column = KeyColumn::new(Type::Int4, Typmod::NONE, true);
    assert_eq!(key(column, &Value::Null), [2]);
    assert_eq!(key(column.nulls_first(true), &Value::Null), [0]);
    assert_eq!(key(column.descending(), &Value::Null), [0]);
    assert_eq!(
        key(column.descending(), &Value::Int4(7)),
        [1, 0x7f, 0xff, 0xff, 0xf8]
    );
}

#[test]
fn a_column_without_order_is_refused() {
    let json = KeyColumn::new(Type::Json, Typmod::NONE, true);
    let error = KeyCodec::new(vec![json]).unwrap_err();
    assert_eq!(error.state(), SqlState::UNDEFINED_OBJECT);
}

/// Few letters, so that values often share a beginning.
fn random_text(random: &mut Random) -> String {
    let letters = ['a', 'b', '\u{1}', ' ', 'é', '\u{10ffff}'];
    (0..random.below(4))
        .map(|_| letters[random.below(6) as usize])
        .collect()
}

fn random_number(random: &mut Random) -> String {
    let specials = [
        "NaN",
        "Infinity",
        "-Infinity",
        "0",
        "0.00",
        "-0.0001",
        "10000",
        "9999.9999",
    ];
    if random.chance(1, 4) {
        return specials[random.below(8) as usize].to_owned();
    }
    let digits = random.below(12) + 1;
    let mut text = if random.chance(1, 2) {
        "-".to_owned()
    } else {
        String::new()
    };
    for place in 0..digits {
        if place == digits / 2 {
            text.push('.');
        }
        text.push(char::from(b"0019"[random.below(4) as usize]));
    }
    if text.ends_with('.') {
        text.push('0');
    }
    format!("{text}e{}", random.below(9) as i64 - 4)
}

fn random_json(random: &mut Random, depth: u32) -> String {
    match random.below(if depth > 2 { 4 } else { 6 }) {
        0 => "null".to_owned(),
        1 => if random.chance(1, 2) { "true" } else { "false" }.to_owned(),
        2 => {
            let number = random_number(random);
            let digits = number.contains(|c: char| c.is_ascii_digit());
            let number = number.replace("-.", "-0.");
            let sound = digits && crate::json::check(&number).is_ok();
            if sound { number } else { "1".to_owned() }
        }
        3 => format!("\"{}\"", random_text(random).replace('\u{1}', "\\u0001")),
        4 => {
            let count = random.below(4);
            let elements: Vec<String> =
                (0..count).map(|_| random_json(random, depth + 1)).collect();
            format!("[{}]", elements.join(","))
        }
        _ => {
            let keys = ["a", "b", "aa", "ab"];
            let count = random.below(3);
            let pairs: Vec<String> = (0..count)
                .map(|_| {
                    let key = keys[random.below(4) as usize];
                    format!("\"{key}\":{}", random_json(random, depth + 1))
                })
                .collect();
            format!("{{{}}}", pairs.join(","))
        }
    }
}

fn random_value(random: &mut Random, ty: Type, typmod: Typmod) -> Value {
    let small = random.below(5) as i64 - 2;
    let wide = if random.chance(1, 2) {
        small
    } else {
        random.next_u64() as i64
    };
    match ty {
        Type::Bool => Value::Bool(wide & 1 == 1),
        Type::Int2 => Value::Int2(wide as i16),
        Type::Int4 => Value::Int4(wide as i32),
        Type::Int8 => Value::Int8(wide),
        Type::Oid => Value::Oid(wide as u32),
        Type::Float4 => Value::Float4(f32::from_bits(random.next_u64() as u32)),
        Type::Float8 if random.chance(1, 3) => Value::Float8(small as f64 / 2.0),
        Type::Float8 if random.chance(1, 8) => Value::Float8(-0.0),
        Type::Float8 => Value::Float8(f64::from_bits(random.next_u64())),
        Type::Numeric if typmod.is_none() => value(ty, typmod, &random_number(random)),
        Type::Numeric if random.chance(1, 9) => Value::Numeric(crate::Numeric::NAN),
        Type::Numeric => value(ty, typmod, &(wide % 1_000_000).to_string()),
        Type::Text | Type::Varchar | Type::Name => Value::text(random_text(random)),
        Type::Char => value(ty, typmod, &random_text(random)),
        Type::Bytea => {
            let bytes = (0..random.below(4)).map(|_| [0, 1, 0xff][random.below(3) as usize]);
            Value::Bytea(bytes.collect())
        }
        Type::Date => Value::Date(crate::datetime::Date(wide as i32)),
        Type::Time => Value::Time(crate::datetime::Time(
            wide.rem_euclid(crate::datetime::MICROS_PER_DAY),
        )),
        Type::Timestamp => Value::Timestamp(crate::datetime::Timestamp(wide)),
        Type::Timestamptz => Value::Timestamptz(crate::datetime::Timestamp(wide)),
        Type::Interval => {
            let (months, days) = (random.below(5) as i32 - 2, random.below(61) as i32 - 30);
            let extreme = random.chance(1, 5);
            Value::Interval(crate::datetime::Interval {
                months: if extreme { wide as i32 } else { months },
                days: if extreme { (wide >> 32) as i32 } else { days },
                micros: if extreme {
                    wide
                } else {
                    small * crate::datetime::MICROS_PER_DAY
                },
            })
        }
        Type::Uuid => Value::Uuid([wide as u8; 16]),
        Type::Inet => Value::Inet(crate::network::random_inet(random)),
        Type::Cidr => Value::Cidr(crate::network::random_inet(random).network()),
        Type::Jsonb => value(ty, typmod, &random_json(random, 0)),
        Type::Array(of) => {
            let count = random.below(4) as usize;
            let mut item = || match random.chance(1, 5) {
                true => Value::Null,
                false => random_value(random, of.ty(), typmod),
            };
            let items: Vec<Value> = (0..count).map(|_| item()).collect();
            let line = |length: usize, lower| Dimension {
                length: length as i32,
                lower,
            };
            let lower = random.below(2) as i32;
            let shape = match count.is_multiple_of(2) && random.chance(1, 3) {
                true => vec![line(2, 1), line(count / 2, lower)],
                false => vec![line(count, lower)],
            };
            Value::Array(Array::shaped(of.ty(), &shape, &items).unwrap())
        }
        other => unreachable!("no key is made of {other:?}"),
    }
}

fn columns() -> Vec<KeyColumn> {
    let mut all = Vec::new();
    let arrays = [Type::Int2, Type::Text, Type::Numeric].map(Type::array);
    let all_types = TYPES.into_iter().chain(arrays);
    for ty in all_types.filter(|ty| ty.is_orderable()) {
        let mut typmods = vec![Typmod::NONE];
        match ty {
            Type::Numeric => typmods.push(Typmod::of_numeric(12, 2).unwrap()),
            Type::Char => typmods = vec![Typmod::of_length(ty, 5).unwrap()],
            _ => {}
        }
        for typmod in typmods {
            for nullable in [false, true] {
                let column = KeyColumn::new(ty, typmod, nullable);
                all.extend([column, column.nulls_first(true)]);
                all.extend([column.descending(), column.descending().nulls_first(false)]);
            }
        }
    }
    all
}

/// The order of a column, nulls and direction included.
fn column_order(column: &KeyColumn, a: &Value, b: &Value) -> Ordering {
    match (a.is_null(), b.is_null()) {
        (true, true) => Ordering::Equal,
        (false, false) => {
            let order = compare(a.as_ref(), b.as_ref());
            if column.descending {
                order.reverse()
            } else {
                order
            }
        }
        (null, _) => {
            if null == column.nulls_first {
                Ordering::Less
            } else {
                Ordering::Greater
            }
        }
    }
}

fn random_for(random: &mut Random, column: &KeyColumn) -> Value {
    if column.nullable && random.chance(1, 6) {
        return Value::Null;
    }
    random_value(random, column.ty, column.typmod)
}

#[test]
fn prop_bytes_compare_as_values_do_and_lead_back_to_equal_values() {
    let mut random = crate::seed::random();
    for column in columns() {
        let codec = KeyCodec::new(vec![column]).unwrap();
        for _ in 0..300 {
            let (a, b) = (
                random_for(&mut random, &column),
                random_for(&mut random, &column),
            );
            let (x, y) = (key(column, &a), key(column, &b));
            assert_eq!(
                x.cmp(&y),
                column_order(&column, &a, &b),
                "{column:?} {a:?} {b:?}"
            );
            let same = x == y;
            assert!(same || !y.starts_with(&x), "I2: {column:?} {a:?} {b:?}");
            let mut back = Vec::new();
            assert_eq!(codec.decode(&x, &mut back).unwrap(), x.len());
            assert_eq!(column_order(&column, &a, &back[0]), Ordering::Equal);
            if is_exact(column.ty, column.typmod) {
                assert_eq!(back[0], a, "{column:?}");
            }
            let mut damaged = x.clone();
            if !damaged.is_empty() {
                let at = random.below(damaged.len() as u64) as usize;
                damaged[at] ^= 1 << random.below(8);
                damaged.truncate(random.below(damaged.len() as u64 + 1) as usize);
                let _ = codec.decode(&damaged, &mut Vec::new());
            }
        }
    }
}

#[test]
fn prop_keys_of_several_columns_compare_column_by_column() {
    let mut random = crate::seed::random();
    let all = columns();
    for _ in 0..3000 {
        let picked: Vec<KeyColumn> = (0..3)
            .map(|_| all[random.below(all.len() as u64) as usize])
            .collect();
        let codec = KeyCodec::new(picked.clone()).unwrap();
        let row = |random: &mut Random| -> Vec<Value> {
            picked
                .iter()
                .map(|column| random_for(random, column))
                .collect()
        };
        let (a, mut b) = (row(&mut random), row(&mut random));
        // Often the same beginning.
        let shared = random.below(3) as usize;
        b[..shared].clone_from_slice(&a[..shared]);
        let bytes = |row: &[Value]| {
            let mut out = Vec::new();
            let refs: Vec<ValueRef<'_>> = row.iter().map(Value::as_ref).collect();
            codec.encode(&refs, &mut out).unwrap();
            out
        };
        let expected = picked
            .iter()
            .zip(a.iter().zip(&b))
            .map(|(column, (a, b))| column_order(column, a, b))
            .find(|order| order.is_ne())
            .unwrap_or(Ordering::Equal);
        assert_eq!(
            bytes(&a).cmp(&bytes(&b)),
            expected,
            "{picked:?} {a:?} {b:?}"
        );
        let mut ends = Vec::new();
        codec.ends(&bytes(&a), &mut ends).unwrap();
        assert_eq!(ends[2], bytes(&a).len());
        assert_eq!(ends[0], bytes(&a[..1]).len());
    }
}

#[test]
fn prop_a_range_holds_the_keys_that_meet_its_condition_and_no_others() {
    let mut random = crate::seed::random();
    let all = columns();
    for _ in 0..3000 {
        let column = all[random.below(all.len() as u64) as usize];
        let first = KeyColumn::new(Type::Text, Typmod::NONE, true);
        let codec = KeyCodec::new(vec![first, column]).unwrap();
        let prefix = Value::text(random_text(&mut random));
        let other = if random.chance(1, 2) {
            prefix.clone()
        } else {
            Value::text(random_text(&mut random))
        };
        let held = random_for(&mut random, &column);
        let mut bytes = Vec::new();
        codec
            .encode(&[other.as_ref(), held.as_ref()], &mut bytes)
            .unwrap();
        let (low, high) = (
            random_value(&mut random, column.ty, column.typmod),
            random_value(&mut random, column.ty, column.typmod),
        );
        let bound = |random: &mut Random, value: &'_ Value| match random.below(3) {
            0 => Bound::Unbounded,
            1 => Bound::Included(value.clone()),
            _ => Bound::Excluded(value.clone()),
        };
        let (lower, upper) = (bound(&mut random, &low), bound(&mut random, &high));
        let order = |bound: &Value| compare(held.as_ref(), bound.as_ref());
        let above = match &lower {
            Bound::Unbounded => true,
            Bound::Included(bound) => order(bound).is_ge(),
            Bound::Excluded(bound) => order(bound).is_gt(),
        };
        let below = match &upper {
            Bound::Unbounded => true,
            Bound::Included(bound) => order(bound).is_le(),
            Bound::Excluded(bound) => order(bound).is_lt(),
        };
        let expected = other == prefix && !held.is_null() && above && below;
        let range = codec
            .range(
                &[prefix.as_ref()],
                lower.as_ref().map(|value| value.as_ref()),
                upper.as_ref().map(|value| value.as_ref()),
            )
            .unwrap();
        assert_eq!(
            range.contains(&bytes),
            expected,
            "{column:?} {held:?} {lower:?} {upper:?}"
        );
        let equal = codec.prefix(&[prefix.as_ref(), low.as_ref()]).unwrap();
        let same = other == prefix && !held.is_null() && order(&low).is_eq();
        assert_eq!(equal.contains(&bytes), same);
    }
    let codec = KeyCodec::new(vec![KeyColumn::new(Type::Int4, Typmod::NONE, true)]).unwrap();
    let null = codec
        .range(&[], Bound::Included(ValueRef::Null), Bound::Unbounded)
        .unwrap();
    assert!(null.is_empty());
}

#[test]
fn a_beginning_of_text_is_a_range_in_both_directions() {
    let column = KeyColumn::new(Type::Text, Typmod::NONE, true);
    for column in [column, column.descending()] {
        let codec = KeyCodec::new(vec![column]).unwrap();
        let range = codec.text_prefix(&[], "ab").unwrap();
        for (text, inside) in [
            ("ab", true),
            ("abc", true),
            ("a", false),
            ("ac", false),
            ("aa", false),
        ] {
            assert_eq!(
                range.contains(&key(column, &Value::text(text))),
                inside,
                "{text}"
            );
        }
    }
}

#[test]
fn an_integer_of_another_width_bounds_a_range_even_beyond_the_columns_type() {
    let column = KeyColumn::new(Type::Int4, Typmod::NONE, true);
    for column in [column, column.descending()] {
        let codec = KeyCodec::new(vec![column]).unwrap();
        let inside = |lower: Bound<i64>, upper: Bound<i64>, value: i32| {
            let (lower, upper) = (lower.map(ValueRef::Int8), upper.map(ValueRef::Int8));
            let range = codec.range(&[], lower, upper).unwrap();
            range.contains(&key(column, &Value::Int4(value)))
        };
        let (big, small) = (1i64 << 40, -(1i64 << 40));
        assert!(inside(
            Bound::Included(small),
            Bound::Excluded(big),
            i32::MAX
        ));
        assert!(inside(Bound::Excluded(small), Bound::Included(7), 7));
        assert!(!inside(Bound::Excluded(small), Bound::Excluded(7), 7));
        assert!(!inside(Bound::Included(big), Bound::Unbounded, i32::MAX));
        assert!(!inside(Bound::Unbounded, Bound::Included(small), i32::MIN));
        let seven = codec.prefix(&[ValueRef::Int2(7)]).unwrap();
        assert!(seven.contains(&key(column, &Value::Int4(7))));
        assert!(codec.prefix(&[ValueRef::Int8(big)]).unwrap().is_empty());
    }
}

#[test]
fn a_number_of_another_scale_bounds_a_range_even_beyond_the_columns_type() {
    let typmod = Typmod::of_numeric(10, 2).unwrap();
    let column = KeyColumn::new(Type::Numeric, typmod, true);
    let held: Vec<Value> = [
        "-99999999.99",
        "-1.01",
        "-1.00",
        "0.00",
        "1.00",
        "1.01",
        "99999999.99",
        "NaN",
    ]
    .iter()
    .map(|text| value(Type::Numeric, typmod, text))
    .collect();
    let asked = [
        "-Infinity",
        "-1e40",
        "-1e20",
        "-1.005",
        "-1",
        "-0",
        "0.0000",
        "0.001",
        "1.0",
        "1.005",
        "1.0100000000000000000000000001",
        "1.01",
        "123456789012345678",
        "1e20",
        "1e200",
        "Infinity",
        "NaN",
    ];
    for column in [column, column.descending()] {
        let codec = KeyCodec::new(vec![column]).unwrap();
        for text in asked {
            let bound = value(Type::Numeric, Typmod::NONE, text);
            for held in &held {
                let bytes = key(column, held);
                let order = compare(held.as_ref(), bound.as_ref());
                let within =
                    |lower, upper| codec.range(&[], lower, upper).unwrap().contains(&bytes);
                let bound = bound.as_ref();
                let open = Bound::Unbounded;
                assert_eq!(
                    within(Bound::Included(bound), open),
                    order.is_ge(),
                    "{held:?} >= {text}"
                );
                assert_eq!(
                    within(Bound::Excluded(bound), open),
                    order.is_gt(),
                    "{held:?} > {text}"
                );
                assert_eq!(
                    within(open, Bound::Included(bound)),
                    order.is_le(),
                    "{held:?} <= {text}"
                );
                assert_eq!(
                    within(open, Bound::Excluded(bound)),
                    order.is_lt(),
                    "{held:?} < {text}"
                );
                let equal = codec.prefix(&[bound]).unwrap();
                assert_eq!(equal.contains(&bytes), order.is_eq(), "{held:?} = {text}");
            }
        }
    }
}
