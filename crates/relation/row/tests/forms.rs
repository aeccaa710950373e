//! Forms of random values: what is written is read back under every setting, and no bytes or text
//! make anything panic.

use vellum_base::random::Random;
use vellum_row::datetime::{Date, Interval, TimeZone, Timestamp};
use vellum_row::{
    Array, ByteaOutput, DateOrder, DateStyle, Inet, IntervalStyle, Numeric, Settings, TYPES, Type,
    Typmod, Value, cast, cast_between, input, output, receive, send,
};

fn random() -> Random {
    let seed = vellum_base::replay::seed();
    println!("run again with VELLUM_SEED={seed}");
    Random::new(seed)
}

fn random_settings(random: &mut Random) -> Settings {
    let zones = [
        "UTC",
        "Europe/Berlin",
        "America/New_York",
        "Asia/Kolkata",
        "Pacific/Apia",
    ];
    let mut pick = |count: u64| random.below(count) as usize;
    Settings {
        date_style: DateStyle::Iso,
        date_order: [DateOrder::Mdy, DateOrder::Dmy, DateOrder::Ymd][pick(3)],
        interval_style: [
            IntervalStyle::Postgres,
            IntervalStyle::PostgresVerbose,
            IntervalStyle::Iso8601,
        ][pick(3)],
        bytea_output: [ByteaOutput::Hex, ByteaOutput::Escape][pick(2)],
        extra_float_digits: 1,
        time_zone: TimeZone::named(zones[pick(5)]).expect("a zone of the database"),
        now: Timestamp(0),
        ..Settings::default()
    }
}

fn random_value(random: &mut Random, ty: Type) -> Value {
    let wide = random.next_u64() as i64;
    let any = ["", "a", "é€𝄞", "it's", "\\", "\u{1}", "\"", "   ", "{}"];
    let text = any[random.below(any.len() as u64) as usize];
    match ty {
        Type::Bool => Value::Bool(wide & 1 == 1),
        Type::Int2 => Value::Int2(wide as i16),
        Type::Int4 => Value::Int4(wide as i32),
        Type::Int8 => Value::Int8(wide),
        Type::Oid => Value::Oid(wide as u32),
        Type::Float4 => Value::Float4(f32::from_bits(wide as u32)),
        Type::Float8 => Value::Float8(f64::from_bits(wide as u64)),
        Type::Numeric => {
            let digits = i128::from(wide) * i128::from(random.next_u64() >> random.below(64));
            Value::Numeric(Numeric::from_scaled(digits, random.below(60) as u16))
        }
        Type::Text | Type::Varchar | Type::Name => Value::text(text),
        Type::Char => Value::Char(text.into()),
        Type::Bytea => Value::Bytea(wide.to_le_bytes()[..random.below(9) as usize].into()),
        Type::Date => Value::Date(Date((wide % 2_000_000) as i32)),
        Type::Time => Value::Time(vellum_row::datetime::Time(wide.rem_euclid(86_400_000_001))),
        Type::Timestamp => Value::Timestamp(Timestamp(wide / 50)),
        Type::Timestamptz => Value::Timestamptz(Timestamp(wide / 50)),
        Type::Interval => Value::Interval(Interval {
            months: wide as i32 / 2,
            days: (wide >> 32) as i32,
            micros: wide / 1000,
        }),
        Type::Uuid => Value::Uuid([wide as u8; 16]),
        Type::Inet => Value::Inet(random_inet(random)),
        Type::Cidr => Value::Cidr(random_inet(random).network()),
        Type::Json => Value::Json(format!("[{wide}, {{\"a\":null}}]").into()),
        Type::Jsonb => {
            let text = format!(
                "{{\"a\": [{wide}, 1.{}], \"b\": \"x\"}}",
                wide.unsigned_abs()
            );
            input(ty, Typmod::NONE, &text, &Settings::default()).expect("JSON")
        }
        Type::Array(element) => {
            let items: Vec<Value> = (0..random.below(4))
                .map(|_| match random.below(5) {
                    0 => Value::Null,
                    _ => random_value(random, element.ty()),
                })
                .collect();
            Value::Array(Array::of(element.ty(), &items))
        }
        other => unreachable!("of the catalogs only: {other:?}"),
    }
}

/// Often with words that are zero, which are left out of its text.
fn random_inet(random: &mut Random) -> Inet {
    let length = if random.chance(1, 2) { 4 } else { 16 };
    let mut address = [0; 16];
    random.fill(&mut address[..length]);
    for word in address.chunks_mut(2) {
        if random.chance(1, 2) {
            word.fill(if random.chance(1, 8) { 0xff } else { 0 });
        }
    }
    let bits = match random.below(8 * length as u64 + 20) as usize {
        bits if bits > 8 * length => 8 * length,
        bits => bits,
    };
    Inet::new(&address[..length], bits as u8).expect("a prefix that is not too long")
}

fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Float4(a), Value::Float4(b)) => {
            a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
        }
        (Value::Float8(a), Value::Float8(b)) => {
            a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
        }
        _ => a == b,
    }
}

#[test]
fn prop_what_is_written_is_read_back_under_every_setting() {
    let mut random = random();
    // NaN has many forms, of which text knows one.
    let is_float = |ty: &Type| matches!(ty, Type::Float4 | Type::Float8);
    let arrays = TYPES.into_iter().filter(|ty| !is_float(ty));
    for ty in TYPES.into_iter().chain(arrays.map(Type::array)) {
        for _ in 0..500 {
            let settings = random_settings(&mut random);
            let value = random_value(&mut random, ty);
            let mut text = String::new();
            output(value.as_ref(), &settings, &mut text).unwrap();
            // On the wall an hour of autumn comes twice; the offset in the text says which.
            let back = input(ty, Typmod::NONE, &text, &settings).expect(&text);
            assert!(
                same(&value, &back),
                "{ty:?} {value:?} as {text} is {back:?}"
            );
            let mut bytes = Vec::new();
            send(value.as_ref(), &mut bytes).unwrap();
            let back = receive(ty, Typmod::NONE, &bytes).expect("bytes that were sent");
            assert!(
                same(&value, &back),
                "{ty:?} {value:?} as {bytes:?} is {back:?}"
            );
        }
    }
}

#[test]
fn prop_no_text_makes_input_or_a_cast_panic() {
    let mut random = random();
    let words = [
        "0",
        "9",
        "12",
        "2024",
        "99999999999999999999",
        "1e",
        "e",
        ".",
        "-",
        "+",
        ":",
        "/",
        " ",
        "T",
        "P",
        "Y",
        "M",
        "D",
        "jan",
        "bc",
        "am",
        "day",
        "mon",
        "ago",
        "infinity",
        "nan",
        "epoch",
        "z",
        "utc",
        "Europe/Berlin",
        "\\x",
        "\\",
        "\"",
        "{",
        "}",
        "[",
        "]",
        ",",
        "null",
        "true",
        "\\u0000",
        "\\ud800",
        "é",
        "\u{0}",
        "\u{7f}",
        "J",
        "week",
        "BC",
        "23:59:60",
        "+15:59",
        "1-2",
        "::",
        "ffff",
        "0x",
        "/32",
    ];
    let settings = Settings::default();
    for _ in 0..30_000 {
        let count = random.below(7);
        let text: String = (0..count)
            .map(|_| words[random.below(words.len() as u64) as usize])
            .collect();
        for ty in TYPES {
            let Ok(value) = input(ty, Typmod::NONE, &text, &settings) else {
                continue;
            };
            let mut out = String::new();
            output(value.as_ref(), &settings, &mut out).unwrap();
            let to = TYPES[random.below(TYPES.len() as u64) as usize];
            if cast_between(ty, to).is_some() {
                let _ = cast(
                    value.as_ref(),
                    to,
                    Typmod(random.below(30) as i32),
                    true,
                    &settings,
                );
            }
        }
    }
}

#[test]
fn prop_no_bytes_make_receive_panic() {
    let mut random = random();
    let settings = Settings::default();
    for _ in 0..20_000 {
        let mut bytes = vec![0; random.below(24) as usize];
        random.fill(&mut bytes);
        if random.chance(1, 2) {
            // Small numbers, of which lengths and versions are made.
            for byte in &mut bytes {
                *byte &= 3;
            }
        }
        for ty in TYPES {
            if let Ok(value) = receive(ty, Typmod::NONE, &bytes) {
                let mut out = String::new();
                output(value.as_ref(), &settings, &mut out).unwrap();
            }
        }
    }
}
