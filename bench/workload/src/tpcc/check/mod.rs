//! The consistency conditions 1 to 12 of clause 3.3.2 over a whole database, and four of our own:
//! `rows` (every row and key has its length, keys ascend, the population is complete), `names` and
//! `customer orders` (the two indexes hold exactly what their tables say), `stock` (pieces, orders and
//! remote orders that stock rows count are those of the order lines since the load).
//!
//! Differences: condition 11 holds in the specification for a fresh population only; here its right
//! side also counts the deliveries that customers have noted since.
//!
//! Not checked: the contents of texts, prices against items, dates, whether acknowledged
//! transactions are there (that needs a ledger outside the database).
//!
//! Reads everything in one snapshot, a district at a time; keeps some 40 bytes for each customer
//! and order of one district, and 8 for each customer of all.

mod orders;

use super::population::Population;
use super::schema::*;
use super::{DISTRICTS, Scale};
use crate::engine::{Direction, EngineError, Result, Session, Table, TxOptions};
use std::fmt;

/// Which condition is violated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Condition {
    /// Of the specification, 1 to 12.
    Clause(u8),
    /// Lengths, order and number of rows.
    Rows,
    /// Index of customers by name.
    Names,
    /// Index of orders by customer.
    CustomerOrders,
    /// Stock against order lines.
    Stock,
}

/// One violation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Of what.
    pub condition: Condition,
    /// Where, what was found and what was expected.
    pub detail: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.condition {
            Condition::Clause(number) => write!(out, "condition 3.3.2.{number}: ")?,
            Condition::Rows => out.write_str("rows: ")?,
            Condition::Names => out.write_str("customers by name: ")?,
            Condition::CustomerOrders => out.write_str("orders by customer: ")?,
            Condition::Stock => out.write_str("stock: ")?,
        }
        out.write_str(&self.detail)
    }
}

/// How many violations are told in full.
const VIOLATIONS_TOLD: usize = 100;

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// The first hundred violations.
    pub violations: Vec<Violation>,
    /// How many there are.
    pub count: u64,
    /// Rows that were read.
    pub rows: u64,
}

impl Findings {
    fn add(&mut self, condition: Condition, detail: impl FnOnce() -> String) {
        self.count += 1;
        if self.violations.len() < VIOLATIONS_TOLD {
            self.violations.push(Violation {
                condition,
                detail: detail(),
            });
        }
    }

    fn equal<T: PartialEq + fmt::Display>(
        &mut self,
        number: u8,
        place: impl fmt::Display,
        what: &str,
        left: T,
        right: T,
    ) {
        if left != right {
            self.add(Condition::Clause(number), || {
                format!("{place}: {what}: {left} and {right}")
            });
        }
    }
}

/// Checks everything; `progress` gets numbers of rows.
///
/// # Errors
/// Whatever the engine reports; [`EngineError::Unusable`] if nothing is loaded.
pub fn check<S: Session>(session: &mut S, mut progress: impl FnMut(u64)) -> Result<Findings> {
    let population = Population::read(session)?
        .ok_or_else(|| EngineError::Unusable("the data directory holds no TPC-C".to_owned()))?;
    if !population.is_complete() {
        return Err(EngineError::Unusable(format!(
            "only {} of {} warehouses are loaded",
            population.loaded, population.scale.warehouses
        )));
    }
    session.begin(TxOptions::READ_ONLY)?;
    let mut checker = Checker {
        session,
        scale: population.scale,
        findings: Findings::default(),
        sold: vec![Sold::default(); population.scale.warehouses as usize],
        stocked: vec![Sold::default(); population.scale.warehouses as usize],
        paid: Paid::new(population.scale),
    };
    let checked = checker.run(&mut progress);
    let findings = checker.findings;
    session.rollback()?;
    checked.map(|()| findings)
}

/// Sums over history.
struct Paid {
    districts: Vec<i64>,
    customers: Vec<i64>,
}

impl Paid {
    fn new(scale: Scale) -> Self {
        let districts = scale.warehouses as usize * usize::from(DISTRICTS);
        let customers = districts * scale.customers as usize;
        Self {
            districts: vec![0; districts],
            customers: vec![0; customers],
        }
    }
}

/// What one warehouse has supplied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sold {
    pieces: u64,
    orders: u64,
    remote: u64,
}

struct Checker<'s, S> {
    session: &'s mut S,
    scale: Scale,
    findings: Findings,
    /// What order lines have taken since the load, by supplying warehouse.
    sold: Vec<Sold>,
    /// What stock rows count, by warehouse.
    stocked: Vec<Sold>,
    paid: Paid,
}

impl<S: Session> Checker<'_, S> {
    fn run(&mut self, progress: &mut impl FnMut(u64)) -> Result<()> {
        let items = self.rows(ITEM, &[], |_, _: &[u8; 4], _: &[u8; item::LENGTH]| {})?;
        self.expect_rows("items", items, u64::from(self.scale.items));
        self.history()?;
        for w in 1..=self.scale.warehouses {
            let before = self.findings.rows;
            self.warehouse(w)?;
            progress(self.findings.rows - before);
        }
        for w in 0..self.sold.len() {
            let (sold, stocked) = (self.sold[w], self.stocked[w]);
            if sold != stocked {
                self.findings.add(Condition::Stock, || {
                    format!("warehouse {}: lines {sold:?}, stock {stocked:?}", w + 1)
                });
            }
        }
        Ok(())
    }

    /// Hands every row whose key starts with `prefix` to `each`, and checks lengths and order.
    fn rows<const K: usize, const V: usize>(
        &mut self,
        table: Table,
        prefix: &[u8],
        mut each: impl FnMut(&mut Findings, &[u8; K], &[u8; V]),
    ) -> Result<u64> {
        let findings = &mut self.findings;
        let (mut count, mut last) = (0, None);
        let name = TABLES[table.position()].name;
        self.session
            .scan(table, prefix, Direction::Forward, |key, value| {
                if !key.starts_with(prefix) {
                    return false;
                }
                count += 1;
                match (<&[u8; K]>::try_from(key), <&[u8; V]>::try_from(value)) {
                    (Ok(key), Ok(value)) => {
                        if last.is_some_and(|last| last >= *key) {
                            findings
                                .add(Condition::Rows, || format!("{name}: {key:?} out of order"));
                        }
                        last = Some(*key);
                        each(findings, key, value);
                    }
                    _ => findings.add(Condition::Rows, || {
                        format!("{name}: {} byte key, {} byte value", key.len(), value.len())
                    }),
                }
                true
            })?;
        self.findings.rows += count;
        Ok(count)
    }

    fn expect_rows(&mut self, what: impl fmt::Display, found: u64, expected: u64) {
        if found != expected {
            self.findings.add(Condition::Rows, || {
                format!("{found} {what}, {expected} were loaded")
            });
        }
    }

    fn history(&mut self) -> Result<()> {
        let scale = self.scale;
        let mut paid = std::mem::replace(
            &mut self.paid,
            Paid {
                districts: Vec::new(),
                customers: Vec::new(),
            },
        );
        self.rows(
            HISTORY,
            &[],
            |findings, key: &[u8; 12], row: &[u8; history::LENGTH]| {
                let amount = history::AMOUNT.get(row);
                let district = district_at(scale, history::W_ID.get(row), history::D_ID.get(row));
                let home = district_at(scale, history::C_W_ID.get(row), history::C_D_ID.get(row));
                let c = history::C_ID.get(row);
                let customer = home
                    .filter(|_| (1..=scale.customers).contains(&c))
                    .map(|home| home * scale.customers as usize + c as usize - 1);
                match (district, customer) {
                    (Some(district), Some(customer)) => {
                        paid.districts[district] += amount;
                        paid.customers[customer] += amount;
                    }
                    _ => findings.add(Condition::Rows, || {
                        format!("history {key:?} is about a customer or district that is not there")
                    }),
                }
            },
        )?;
        self.paid = paid;
        Ok(())
    }

    fn warehouse(&mut self, w: u32) -> Result<()> {
        let prefix = warehouse_key(w);
        let mut w_ytd = 0;
        let found = self.rows(
            WAREHOUSE,
            &prefix,
            |_, _: &[u8; 4], row: &[u8; warehouse::LENGTH]| {
                w_ytd = warehouse::YTD.get(row);
            },
        )?;
        self.expect_rows(format_args!("rows of warehouse {w}"), found, 1);

        let mut districts = [(0_i64, 0_u32); DISTRICTS as usize];
        let found = self.rows(
            DISTRICT,
            &prefix,
            |findings, key: &[u8; 5], row: &[u8; district::LENGTH]| match districts
                .get_mut(usize::from(key[4]).wrapping_sub(1))
            {
                Some(slot) => *slot = (district::YTD.get(row), district::NEXT_O_ID.get(row)),
                None => findings.add(Condition::Rows, || format!("district {key:?}")),
            },
        )?;
        self.expect_rows(
            format_args!("districts of warehouse {w}"),
            found,
            DISTRICTS.into(),
        );

        let sum = districts.iter().map(|d| d.0).sum::<i64>();
        let place = format!("warehouse {w}");
        self.findings
            .equal(1, &place, "W_YTD and the sum of D_YTD", w_ytd, sum);
        let first = (w as usize - 1) * usize::from(DISTRICTS);
        let paid = self.paid.districts[first..first + usize::from(DISTRICTS)]
            .iter()
            .sum::<i64>();
        self.findings
            .equal(8, &place, "W_YTD and the sum of H_AMOUNT", w_ytd, paid);

        let mut stocked = Sold::default();
        let found = self.rows(
            STOCK,
            &prefix,
            |_, _: &[u8; 8], row: &[u8; stock::LENGTH]| {
                stocked.pieces += u64::from(stock::YTD.get(row));
                stocked.orders += u64::from(stock::ORDER_CNT.get(row));
                stocked.remote += u64::from(stock::REMOTE_CNT.get(row));
            },
        )?;
        self.expect_rows(
            format_args!("stock rows of warehouse {w}"),
            found,
            self.scale.items.into(),
        );
        self.stocked[w as usize - 1] = stocked;

        for (d, (d_ytd, next)) in (1..=DISTRICTS).zip(districts) {
            let paid = self.paid.districts[first + usize::from(d) - 1];
            let place = format!("district {w}/{d}");
            self.findings
                .equal(9, &place, "D_YTD and the sum of H_AMOUNT", d_ytd, paid);
            self.district(w, d, next)?;
        }
        Ok(())
    }
}

/// Position of a district among all; none if it is not in the population.
fn district_at(scale: Scale, w: u32, d: u8) -> Option<usize> {
    let there = (1..=scale.warehouses).contains(&w) && (1..=DISTRICTS).contains(&d);
    there.then(|| (w as usize - 1) * usize::from(DISTRICTS) + usize::from(d) - 1)
}
