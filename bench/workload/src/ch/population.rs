//! The rows of the tables.
//!
//! Paper: TPC-C, clause 4.3.3, for values; CH-benCHmark, section 3, for suppliers and nations: a nation's key is the code of a letter or digit, a
//! customer's nation that of the first letter of its state.

use crate::tpch::Field;
use std::fmt::Write as _;
use vellum_base::random::Random;

/// A table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the benchmark's names")]
pub enum Table {
    Region,
    Nation,
    Supplier,
    Item,
    Stock,
    Customer,
    Orders,
    NewOrder,
    OrderLine,
}

impl Table {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Region,
        Self::Nation,
        Self::Supplier,
        Self::Item,
        Self::Stock,
        Self::Customer,
        Self::Orders,
        Self::NewOrder,
        Self::OrderLine,
    ];

    /// Its name in SQL.
    pub fn name(self) -> &'static str {
        match self {
            Self::Region => "region",
            Self::Nation => "nation",
            Self::Supplier => "supplier",
            Self::Item => "item",
            Self::Stock => "stock",
            Self::Customer => "customer",
            Self::Orders => "orders",
            Self::NewOrder => "new_order",
            Self::OrderLine => "order_line",
        }
    }

    /// The statement that makes it.
    pub fn definition(self) -> &'static str {
        match self {
            Self::Region => {
                "CREATE TABLE region (r_regionkey int PRIMARY KEY, r_name char(55) NOT NULL)"
            }
            Self::Nation => {
                "CREATE TABLE nation (n_nationkey int PRIMARY KEY, n_name char(25) NOT NULL, n_regionkey int NOT NULL)"
            }
            Self::Supplier => {
                "CREATE TABLE supplier (su_suppkey int PRIMARY KEY, su_name char(25) NOT NULL, su_address varchar(40) NOT NULL, \
                 su_nationkey int NOT NULL, su_phone char(15) NOT NULL, su_acctbal numeric(12,2) NOT NULL, su_comment char(101) NOT NULL)"
            }
            Self::Item => {
                "CREATE TABLE item (i_id int PRIMARY KEY, i_name varchar(24) NOT NULL, i_price numeric(5,2) NOT NULL, \
                 i_data varchar(50) NOT NULL)"
            }
            Self::Stock => {
                "CREATE TABLE stock (s_w_id int, s_i_id int, s_quantity int NOT NULL, s_order_cnt int NOT NULL, \
                 PRIMARY KEY (s_w_id, s_i_id))"
            }
            Self::Customer => {
                "CREATE TABLE customer (c_w_id int, c_d_id int, c_id int, c_last varchar(16) NOT NULL, c_city varchar(20) NOT NULL, \
                 c_state char(2) NOT NULL, c_phone char(16) NOT NULL, c_balance numeric(12,2) NOT NULL, \
                 PRIMARY KEY (c_w_id, c_d_id, c_id))"
            }
            Self::Orders => {
                "CREATE TABLE orders (o_w_id int, o_d_id int, o_id int, o_c_id int NOT NULL, o_carrier_id int, o_ol_cnt int NOT NULL, \
                 o_entry_d timestamp NOT NULL, PRIMARY KEY (o_w_id, o_d_id, o_id))"
            }
            Self::NewOrder => {
                "CREATE TABLE new_order (no_w_id int, no_d_id int, no_o_id int, PRIMARY KEY (no_w_id, no_d_id, no_o_id))"
            }
            Self::OrderLine => {
                "CREATE TABLE order_line (ol_w_id int, ol_d_id int, ol_o_id int, ol_number int, ol_i_id int NOT NULL, \
                 ol_delivery_d timestamp, ol_amount numeric(6,2) NOT NULL, ol_supply_w_id int NOT NULL, ol_quantity int NOT NULL, \
                 PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number))"
            }
        }
    }
}

const REGIONS: [&str; 5] = ["Africa", "America", "Asia", "Australia", "Europe"];

/// For the digits, capital and small letters, in the order of their codes.
#[rustfmt::skip]
const NATIONS: [&str; 62] = [
    "Algeria", "Angola", "Benin", "Botswana", "Chad", "Congo", "Egypt", "Ethiopia", "Gabon", "Ghana", "Argentina", "Bolivia", "Brazil",
    "Canada", "Chile", "Colombia", "Cuba", "Ecuador", "Guatemala", "Honduras", "Jamaica", "Mexico", "United States", "Cambodia", "China",
    "India", "Indonesia", "Japan", "Laos", "Malaysia", "Mongolia", "Nepal", "Pakistan", "Singapore", "Thailand", "Vietnam", "Australia",
    "Fiji", "Kiribati", "Nauru", "New Zealand", "Palau", "Samoa", "Tonga", "Tuvalu", "Vanuatu", "Austria", "Belgium", "Denmark", "Finland",
    "France", "Germany", "Greece", "Hungary", "Ireland", "Italy", "Norway", "Poland", "Portugal", "Spain", "Sweden", "Switzerland",
];
/// Numbers of the first nations of the regions behind the first.
const FIRST_NATIONS: [usize; 4] = [10, 23, 36, 46];

const LETTERS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const SYLLABLES: [&str; 10] = [
    "BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING",
];

const SUPPLIERS: i64 = 10_000;
const DISTRICTS: i64 = 10;
/// Of each ten orders of a district the last three are not delivered.
const OPEN_OF_TEN: i64 = 3;

/// The rows of all tables.
#[derive(Clone, Copy, Debug)]
pub struct Population {
    /// What all values follow from.
    pub seed: u64,
    /// Warehouses.
    pub warehouses: i64,
    /// Items; TPC-C has 100,000.
    pub items: i64,
    /// Customers of a district, and orders; TPC-C has 3,000.
    pub customers: i64,
}

fn text(random: &mut Random, low: u64, high: u64, letters: &[u8]) -> String {
    let length = random.between(low, high);
    let letter = |random: &mut Random| letters[random.below(letters.len() as u64) as usize];
    (0..length).map(|_| char::from(letter(random))).collect()
}

fn small(random: &mut Random, low: u64, high: u64) -> String {
    text(random, low, high, &LETTERS[36..])
}

fn moment(random: &mut Random, year: u64) -> String {
    let [month, day] = [12, 28].map(|end| random.between(1, end));
    let [hour, minute] = [24, 60].map(|end| random.below(end));
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02}:00")
}

impl Population {
    fn random(self, table: Table, key: i64) -> Random {
        Random::new(self.seed ^ ((table as u64 + 1) << 56) ^ key as u64)
    }

    /// Calls `each` with pieces of a table in COPY's text format: whole lines.
    pub fn copy_text(self, table: Table, mut each: impl FnMut(&str)) {
        let mut line = String::new();
        self.rows(table, &mut |row| {
            line.clear();
            for (number, field) in row.iter().enumerate() {
                if number > 0 {
                    line.push('\t');
                }
                field.write(&mut line);
            }
            line.push('\n');
            each(&line);
        });
    }

    fn rows(self, table: Table, each: &mut dyn FnMut(&[Field<'_>])) {
        use Field::{Hundredths, Integer, Text};
        match table {
            Table::Region => {
                for (key, name) in (0..).zip(REGIONS) {
                    each(&[Integer(key), Text(name)]);
                }
            }
            Table::Nation => {
                for (number, name) in NATIONS.into_iter().enumerate() {
                    let region = FIRST_NATIONS
                        .iter()
                        .filter(|first| number >= **first)
                        .count();
                    each(&[
                        Integer(LETTERS[number].into()),
                        Text(name),
                        Integer(region as i64),
                    ]);
                }
            }
            Table::Supplier => {
                for key in 0..SUPPLIERS {
                    let random = &mut self.random(table, key);
                    let nation = LETTERS[random.below(62) as usize];
                    let mut comment = small(random, 20, 80);
                    if key % 1000 == 77 {
                        comment.insert_str(9, "bad");
                    }
                    each(&[
                        Integer(key),
                        Text(&format!("Supplier#{key:09}")),
                        Text(&text(random, 10, 40, LETTERS)),
                        Integer(nation.into()),
                        Text(&text(random, 12, 15, &LETTERS[..10])),
                        Hundredths(random.below(1_000_000) as i64),
                        Text(&comment),
                    ]);
                }
            }
            Table::Item => {
                for key in 1..=self.items {
                    let random = &mut self.random(table, key);
                    let (name, price) = (small(random, 14, 24), random.between(100, 10_000));
                    let mut data = small(random, 26, 50);
                    if key % 10 == 3 {
                        data.replace_range(..2, "pr");
                    }
                    each(&[
                        Integer(key),
                        Text(&name),
                        Hundredths(price as i64),
                        Text(&data),
                    ]);
                }
            }
            Table::Stock => {
                for warehouse in 1..=self.warehouses {
                    for item in 1..=self.items {
                        let random = &mut self.random(table, warehouse << 32 | item);
                        let [quantity, orders] = [100, 20].map(|end| random.between(1, end) as i64);
                        each(&[
                            Integer(warehouse),
                            Integer(item),
                            Integer(quantity),
                            Integer(orders),
                        ]);
                    }
                }
            }
            Table::Customer => self.districts(&mut |warehouse, district| {
                for key in 1..=self.customers {
                    let random = &mut self.random(table, warehouse << 40 | district << 32 | key);
                    let mut last = String::new();
                    for _ in 0..3 {
                        // Writing to a string cannot fail.
                        let _ = write!(last, "{}", SYLLABLES[random.below(10) as usize]);
                    }
                    each(&[
                        Integer(warehouse),
                        Integer(district),
                        Integer(key),
                        Text(&last),
                        Text(&small(random, 10, 20)),
                        Text(&text(random, 2, 2, LETTERS)),
                        Text(&text(random, 16, 16, &LETTERS[..10])),
                        Hundredths(random.below(1_000_000) as i64 - 100_000),
                    ]);
                }
            }),
            Table::Orders | Table::NewOrder | Table::OrderLine => {
                self.districts(&mut |warehouse, district| {
                    for key in 1..=self.customers {
                        self.order(table, [warehouse, district, key], each);
                    }
                });
            }
        }
    }

    /// What a table has of an order: all that is in it follows from its key.
    fn order(
        self,
        table: Table,
        [warehouse, district, key]: [i64; 3],
        each: &mut dyn FnMut(&[Field<'_>]),
    ) {
        use Field::{Hundredths, Integer, Null, Text};
        let random = &mut self.random(Table::Orders, warehouse << 40 | district << 32 | key);
        let open = key > self.customers - self.customers * OPEN_OF_TEN / 10;
        let head = [Integer(warehouse), Integer(district), Integer(key)];
        let [customer, carrier, lines] =
            [self.customers as u64, 10, 11].map(|end| random.between(1, end) as i64);
        let lines = lines + 4;
        let year = random.between(2005, 2015);
        let entry = moment(random, year);
        match table {
            Table::NewOrder if open => each(&head),
            Table::NewOrder => {}
            Table::OrderLine => {
                for number in 1..=lines {
                    let item = random.between(1, self.items as u64) as i64;
                    let supply = random.between(1, self.warehouses as u64) as i64;
                    let later = random.between(year, year + 1);
                    let delivered = moment(random, later);
                    let (amount, quantity) = (random.between(1, 999_999), random.between(1, 10));
                    let [w, d, o] = head;
                    each(&[
                        w,
                        d,
                        o,
                        Integer(number),
                        Integer(item),
                        if open { Null } else { Text(&delivered) },
                        Hundredths(amount as i64),
                        Integer(supply),
                        Integer(quantity as i64),
                    ]);
                }
            }
            _ => {
                let [w, d, o] = head;
                let carrier = if open { Null } else { Integer(carrier) };
                each(&[
                    w,
                    d,
                    o,
                    Integer(customer),
                    carrier,
                    Integer(lines),
                    Text(&entry),
                ]);
            }
        }
    }

    fn districts(self, each: &mut dyn FnMut(i64, i64)) {
        for warehouse in 1..=self.warehouses {
            for district in 1..=DISTRICTS {
                each(warehouse, district);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_have_as_many_lines_as_they_say_and_the_last_are_open() {
        let population = Population {
            seed: 3,
            warehouses: 2,
            items: 50,
            customers: 20,
        };
        let rows = |table: Table| {
            let mut lines = Vec::new();
            population.copy_text(table, |line| lines.push(line.trim_end().to_owned()));
            lines
        };
        let orders = rows(Table::Orders);
        assert_eq!(orders.len(), 2 * 10 * 20);
        let lines: usize = orders
            .iter()
            .map(|row| row.split('\t').nth(5).unwrap().parse::<usize>().unwrap())
            .sum();
        assert_eq!(rows(Table::OrderLine).len(), lines);
        assert_eq!(rows(Table::NewOrder).len(), 2 * 10 * 6);
        let open = orders.iter().filter(|row| row.contains("\\N")).count();
        assert_eq!(open, 2 * 10 * 6);
        assert_eq!(
            (rows(Table::Nation).len(), rows(Table::Supplier).len()),
            (62, 10_000)
        );
    }
}
