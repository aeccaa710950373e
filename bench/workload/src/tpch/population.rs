//! The rows of the tables.
//!
//! Paper: TPC Benchmark H, clause 4.2.3. Each row follows from the seed and its key alone, so a table can be made again, or from the middle.

use super::Table;
use super::text::{Pool, one_of};
use super::words;
use std::fmt::Write as _;
use vellum_base::random::Random;

/// A value of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Field<'a> {
    /// An integer.
    Integer(i64),
    /// A number of hundredths.
    Hundredths(i64),
    /// Days since 1970-01-01.
    Date(i32),
    /// Text without tabs, line ends or backslashes.
    Text(&'a str),
    /// Nothing.
    Null,
}

impl Field<'_> {
    /// Appends the value as COPY's text format has it.
    pub fn write(self, out: &mut String) {
        // Writing to a string cannot fail.
        let _ = match self {
            Self::Integer(value) => write!(out, "{value}"),
            Self::Hundredths(value) => {
                let sign = if value < 0 { "-" } else { "" };
                let value = value.unsigned_abs();
                write!(out, "{sign}{}.{:02}", value / 100, value % 100)
            }
            Self::Date(days) => {
                let (year, month, day) = civil(days);
                write!(out, "{year:04}-{month:02}-{day:02}")
            }
            Self::Text(text) => out.write_str(text),
            Self::Null => out.write_str("\\N"),
        };
    }
}

/// Year, month and day of a day of 1970 to 2399.
fn civil(days: i32) -> (i32, i32, i32) {
    // Counted from 1 March of year 0, in cycles of 400 years, whose leap days come last.
    let days = days + 719_468;
    let (cycle, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (cycle * 400 + year + i32::from(month <= 2), month, day)
}

/// 1992-01-01.
const START_DATE: i32 = 8035;
/// 1995-06-17: what is shipped before has arrived.
const CURRENT_DATE: i32 = 9298;
/// 1998-12-31.
const END_DATE: i32 = 10_591;

/// The rows of all tables at one scale.
#[derive(Clone, Debug)]
pub struct Population {
    seed: u64,
    suppliers: i64,
    parts: i64,
    customers: i64,
    orders: i64,
    clerks: i64,
    text: Pool,
}

/// The parts of a row while it is made.
#[derive(Debug, Default)]
struct Scratch {
    texts: [String; 6],
}

impl Scratch {
    fn text(&mut self, number: usize, text: std::fmt::Arguments<'_>) {
        let to = &mut self.texts[number];
        to.clear();
        // Writing to a string cannot fail.
        let _ = to.write_fmt(text);
    }
}

/// A line of an order.
struct Line {
    part: i64,
    supplier: i64,
    quantity: i64,
    price: i64,
    discount: i64,
    tax: i64,
    ship: i32,
    commit: i32,
    receipt: i32,
    returned: &'static str,
    status: &'static str,
    instruction: &'static str,
    mode: &'static str,
    comment: (u64, u64),
}

/// An order, and what is read of its lines.
struct Order {
    key: i64,
    date: i32,
    lines: Vec<Line>,
    random: Random,
}

impl Population {
    /// At scale factor `thousandths / 1000`: 10 is 0.01, 1000 is 1 with 6 million lines of orders.
    ///
    /// # Panics
    /// Below a scale factor of 0.001.
    pub fn new(seed: u64, thousandths: u32) -> Self {
        assert!(thousandths > 0, "a scale factor of 0.001 at least");
        let scaled = |count: i64| count * i64::from(thousandths) / 1000;
        Self {
            seed,
            suppliers: scaled(10_000),
            parts: scaled(200_000),
            customers: scaled(150_000),
            orders: scaled(1_500_000),
            clerks: scaled(1000).max(1),
            text: Pool::new(seed),
        }
    }

    fn random(&self, table: Table, key: i64) -> Random {
        Random::new(self.seed ^ ((table as u64 + 1) << 56) ^ key as u64)
    }

    /// Calls `each` with every row of a table, in the order of its primary key.
    pub fn rows(&self, table: Table, mut each: impl FnMut(&[Field<'_>])) {
        let scratch = &mut Scratch::default();
        match table {
            Table::Region => self.regions(&mut each),
            Table::Nation => self.nations(&mut each),
            Table::Supplier => {
                for key in 1..=self.suppliers {
                    self.supplier(key, scratch, &mut each);
                }
            }
            Table::Part => {
                for key in 1..=self.parts {
                    self.part(key, scratch, &mut each);
                }
            }
            Table::Partsupp => {
                for key in 1..=self.parts {
                    self.suppliers_of(key, &mut each);
                }
            }
            Table::Customer => {
                for key in 1..=self.customers {
                    self.customer(key, scratch, &mut each);
                }
            }
            Table::Orders => {
                for number in 0..self.orders {
                    self.order_row(number, scratch, &mut each);
                }
            }
            Table::Lineitem => {
                for number in 0..self.orders {
                    self.lines(number, &mut each);
                }
            }
        }
    }

    /// Calls `each` with pieces of a table in COPY's text format: whole lines, about `bytes` of them.
    pub fn copy_text(&self, table: Table, bytes: usize, mut each: impl FnMut(&str)) {
        let mut text = String::with_capacity(bytes + 1024);
        self.rows(table, |row| {
            for (number, field) in row.iter().enumerate() {
                if number > 0 {
                    text.push('\t');
                }
                field.write(&mut text);
            }
            text.push('\n');
            if text.len() >= bytes {
                each(&text);
                text.clear();
            }
        });
        if !text.is_empty() {
            each(&text);
        }
    }

    fn regions(&self, each: &mut dyn FnMut(&[Field<'_>])) {
        for (key, name) in (0..).zip(words::REGIONS) {
            let comment = self
                .text
                .piece(&mut self.random(Table::Region, key), 31, 115);
            each(&[Field::Integer(key), Field::Text(name), Field::Text(comment)]);
        }
    }

    fn nations(&self, each: &mut dyn FnMut(&[Field<'_>])) {
        for (key, (name, region)) in (0..).zip(words::NATIONS) {
            let comment = self
                .text
                .piece(&mut self.random(Table::Nation, key), 31, 114);
            each(&[
                Field::Integer(key),
                Field::Text(name),
                Field::Integer(region),
                Field::Text(comment),
            ]);
        }
    }

    fn supplier(&self, key: i64, scratch: &mut Scratch, each: &mut dyn FnMut(&[Field<'_>])) {
        let random = &mut self.random(Table::Supplier, key);
        scratch.text(0, format_args!("Supplier#{key:09}"));
        address(random, &mut scratch.texts[1]);
        let nation = random.below(25) as i64;
        phone(random, nation, scratch, 2);
        let balance = random.between(0, 1_099_998) as i64 - 99_999;
        let comment = self.text.piece(random, 25, 100);
        scratch.texts[3].clear();
        scratch.texts[3].push_str(comment);
        // Five suppliers of ten thousand are complained about, five are recommended; which follows from the key.
        let marked = match key % 2000 {
            900 => Some("Complaints"),
            1900 => Some("Recommends"),
            _ => None,
        };
        if let Some(word) = marked {
            let (text, room) = (&mut scratch.texts[3], random.below(4) as usize);
            text.truncate(25);
            text.insert_str(6, "Customer");
            text.insert_str(14 + room, word);
        }
        each(&[
            Field::Integer(key),
            Field::Text(&scratch.texts[0]),
            Field::Text(&scratch.texts[1]),
            Field::Integer(nation),
            Field::Text(&scratch.texts[2]),
            Field::Hundredths(balance),
            Field::Text(&scratch.texts[3]),
        ]);
    }

    fn part(&self, key: i64, scratch: &mut Scratch, each: &mut dyn FnMut(&[Field<'_>])) {
        let random = &mut self.random(Table::Part, key);
        let mut colours: [&str; 5] = [""; 5];
        for number in 0..colours.len() {
            colours[number] = loop {
                let colour = one_of(random, &words::COLOURS);
                if !colours[..number].contains(&colour) {
                    break colour;
                }
            };
        }
        let [a, b, c, d, e] = colours;
        scratch.text(0, format_args!("{a} {b} {c} {d} {e}"));
        let maker = random.between(1, 5);
        scratch.text(1, format_args!("Manufacturer#{maker}"));
        scratch.text(2, format_args!("Brand#{maker}{}", random.between(1, 5)));
        let [a, b, c] = words::TYPES.map(|list| one_of(random, list));
        scratch.text(3, format_args!("{a} {b} {c}"));
        let size = random.between(1, 50) as i64;
        let [a, b] = words::CONTAINERS.map(|list| one_of(random, list));
        scratch.text(4, format_args!("{a} {b}"));
        let comment = self.text.piece(random, 5, 22);
        each(&[
            Field::Integer(key),
            Field::Text(&scratch.texts[0]),
            Field::Text(&scratch.texts[1]),
            Field::Text(&scratch.texts[2]),
            Field::Text(&scratch.texts[3]),
            Field::Integer(size),
            Field::Text(&scratch.texts[4]),
            Field::Hundredths(retail_price(key)),
            Field::Text(comment),
        ]);
    }

    /// One of the four suppliers of a part.
    fn supplier_of(&self, part: i64, number: i64) -> i64 {
        let count = self.suppliers;
        (part + number * (count / 4 + (part - 1) / count)) % count + 1
    }

    fn suppliers_of(&self, part: i64, each: &mut dyn FnMut(&[Field<'_>])) {
        let random = &mut self.random(Table::Partsupp, part);
        let mut rows: [(i64, i64, i64, &str); 4] = std::array::from_fn(|number| {
            let available = random.between(1, 9999) as i64;
            let cost = random.between(100, 100_000) as i64;
            let comment = self.text.piece(random, 49, 198);
            (
                self.supplier_of(part, number as i64),
                available,
                cost,
                comment,
            )
        });
        rows.sort_unstable();
        for (supplier, available, cost, comment) in rows {
            each(&[
                Field::Integer(part),
                Field::Integer(supplier),
                Field::Integer(available),
                Field::Hundredths(cost),
                Field::Text(comment),
            ]);
        }
    }

    fn customer(&self, key: i64, scratch: &mut Scratch, each: &mut dyn FnMut(&[Field<'_>])) {
        let random = &mut self.random(Table::Customer, key);
        scratch.text(0, format_args!("Customer#{key:09}"));
        address(random, &mut scratch.texts[1]);
        let nation = random.below(25) as i64;
        phone(random, nation, scratch, 2);
        let balance = random.between(0, 1_099_998) as i64 - 99_999;
        let segment = one_of(random, &words::SEGMENTS);
        let comment = self.text.piece(random, 29, 116);
        each(&[
            Field::Integer(key),
            Field::Text(&scratch.texts[0]),
            Field::Text(&scratch.texts[1]),
            Field::Integer(nation),
            Field::Text(&scratch.texts[2]),
            Field::Hundredths(balance),
            Field::Text(segment),
            Field::Text(comment),
        ]);
    }

    /// Order number `number`, from 0 on: the first 8 of each 32 keys are used.
    fn order(&self, number: i64) -> Order {
        let key = number / 8 * 32 + number % 8 + 1;
        let mut random = self.random(Table::Orders, key);
        let last = END_DATE - 151;
        let date = START_DATE + random.below((last - START_DATE + 1) as u64) as i32;
        let count = random.between(1, 7);
        let mut lines = Vec::with_capacity(7);
        for _ in 0..count {
            lines.push(self.line(&mut random, date));
        }
        Order {
            key,
            date,
            lines,
            random,
        }
    }

    fn line(&self, random: &mut Random, date: i32) -> Line {
        let part = random.between(1, self.parts as u64) as i64;
        let quantity = random.between(1, 50) as i64;
        let ship = date + random.between(1, 121) as i32;
        let commit = date + random.between(30, 90) as i32;
        let receipt = ship + random.between(1, 30) as i32;
        let returned = match (receipt <= CURRENT_DATE, random.below(2)) {
            (false, _) => "N",
            (true, 0) => "R",
            (true, _) => "A",
        };
        Line {
            part,
            supplier: self.supplier_of(part, random.below(4) as i64),
            quantity,
            price: quantity * retail_price(part),
            discount: random.below(11) as i64,
            tax: random.below(9) as i64,
            ship,
            commit,
            receipt,
            returned,
            status: if ship > CURRENT_DATE { "O" } else { "F" },
            instruction: one_of(random, &words::INSTRUCTIONS),
            mode: one_of(random, &words::MODES),
            comment: (random.next_u64(), random.between(10, 43)),
        }
    }

    fn order_row(&self, number: i64, scratch: &mut Scratch, each: &mut dyn FnMut(&[Field<'_>])) {
        let Order {
            key,
            date,
            lines,
            mut random,
        } = self.order(number);
        // A third of the customers never order.
        let customer = loop {
            let customer = random.between(1, self.customers as u64);
            if customer % 3 != 0 {
                break customer as i64;
            }
        };
        let open = lines.iter().filter(|line| line.status == "O").count();
        let status = match open {
            0 => "F",
            all if all == lines.len() => "O",
            _ => "P",
        };
        // Each line's part is rounded to cents.
        let price = lines.iter().map(|line| {
            let exact = line.price * (100 + line.tax) * (100 - line.discount);
            (exact + 5000) / 10_000
        });
        let priority = one_of(&mut random, &words::PRIORITIES);
        let clerk = random.between(1, self.clerks as u64);
        scratch.text(0, format_args!("Clerk#{clerk:09}"));
        let comment = self.text.piece(&mut random, 19, 78);
        each(&[
            Field::Integer(key),
            Field::Integer(customer),
            Field::Text(status),
            Field::Hundredths(price.sum()),
            Field::Date(date),
            Field::Text(priority),
            Field::Text(&scratch.texts[0]),
            Field::Integer(0),
            Field::Text(comment),
        ]);
    }

    fn lines(&self, number: i64, each: &mut dyn FnMut(&[Field<'_>])) {
        let order = self.order(number);
        for (number, line) in (1..).zip(&order.lines) {
            let (seed, length) = line.comment;
            let comment = self.text.piece(&mut Random::new(seed), length, length);
            each(&[
                Field::Integer(order.key),
                Field::Integer(line.part),
                Field::Integer(line.supplier),
                Field::Integer(number),
                Field::Hundredths(line.quantity * 100),
                Field::Hundredths(line.price),
                Field::Hundredths(line.discount),
                Field::Hundredths(line.tax),
                Field::Text(line.returned),
                Field::Text(line.status),
                Field::Date(line.ship),
                Field::Date(line.commit),
                Field::Date(line.receipt),
                Field::Text(line.instruction),
                Field::Text(line.mode),
                Field::Text(comment),
            ]);
        }
    }
}

/// In cents (clause 4.2.3, PART).
fn retail_price(part: i64) -> i64 {
    90_000 + part / 10 % 20_001 + 100 * (part % 1000)
}

/// A variable string of 10 to 40 characters (clause 4.2.2.7).
fn address(random: &mut Random, out: &mut String) {
    const LETTERS: &[u8; 64] = b"0123456789abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ,";
    out.clear();
    for _ in 0..random.between(10, 40) {
        out.push(char::from(one_of(random, LETTERS)));
    }
}

/// Clause 4.2.2.9.
fn phone(random: &mut Random, nation: i64, scratch: &mut Scratch, number: usize) {
    let country = nation + 10;
    let [area, exchange] = [(); 2].map(|()| random.between(100, 999));
    let last = random.between(1000, 9999);
    scratch.text(number, format_args!("{country}-{area}-{exchange}-{last}"));
}
