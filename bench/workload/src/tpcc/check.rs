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
//! Reads everything in one snapshot, a warehouse at a time; keeps some 40 bytes for each customer
//! and order of one warehouse, and 8 for each customer of all.

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

#[derive(Clone, Copy)]
struct Customer {
    balance: i64,
    ytd_payment: i64,
    deliveries: u32,
    name: u64,
    delivered: i64,
    indexed: bool,
}

#[derive(Clone, Copy)]
struct Order {
    o: u32,
    c: u32,
    lines: u8,
    carrier: u8,
    seen_lines: u32,
    indexed: bool,
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

    fn district(&mut self, w: u32, d: u8, next: u32) -> Result<()> {
        let place = format!("district {w}/{d}");
        let mut customers = self.customers(w, d)?;
        self.names(w, d, &mut customers)?;
        let open = self.open_orders(w, d)?;
        let mut orders = self.orders(w, d)?;
        self.customer_orders(w, d, &mut orders)?;
        let lines = self.order_lines(w, d, &mut orders, &mut customers)?;
        let findings = &mut self.findings;

        let newest = orders.last().map_or(0, |order| order.o);
        let expected = next.wrapping_sub(1);
        findings.equal(2, &place, "D_NEXT_O_ID - 1 and max(O_ID)", expected, newest);
        if let (Some(&oldest), Some(&last)) = (open.first(), open.last()) {
            findings.equal(
                2,
                &place,
                "D_NEXT_O_ID - 1 and max(NO_O_ID)",
                expected,
                last,
            );
            let width = last - oldest + 1;
            findings.equal(
                3,
                &place,
                "width and rows of new-order",
                width,
                open.len() as u32,
            );
        }
        let ordered = orders
            .iter()
            .map(|order| u64::from(order.lines))
            .sum::<u64>();
        findings.equal(4, &place, "sum of O_OL_CNT and order lines", ordered, lines);

        for order in &orders {
            let &Order {
                o,
                carrier,
                lines,
                seen_lines,
                ..
            } = order;
            let is_open = open.binary_search(&o).is_ok();
            if is_open != (carrier == 0) {
                findings.add(Condition::Clause(5), || {
                    format!("order {w}/{d}/{o}: carrier {carrier}, in new-order: {is_open}")
                });
            }
            if u32::from(lines) != seen_lines {
                findings.add(Condition::Clause(6), || {
                    format!("order {w}/{d}/{o}: O_OL_CNT {lines}, {seen_lines} lines")
                });
            }
            if !order.indexed {
                findings.add(Condition::CustomerOrders, || {
                    format!("order {w}/{d}/{o} of customer {} is missing", order.c)
                });
            }
        }
        for &o in &open {
            if orders.binary_search_by_key(&o, |order| order.o).is_err() {
                findings.add(Condition::Clause(5), || {
                    format!("new-order {w}/{d}/{o} has no order")
                });
            }
        }

        let deliveries = customers
            .iter()
            .map(|c| u64::from(c.deliveries))
            .sum::<u64>();
        let loaded = u64::from(self.scale.customers - self.scale.new_orders);
        let delivered = orders.len() as u64 - (open.len() as u64).min(orders.len() as u64);
        let what = "orders less new-orders, and those loaded or noted as delivered";
        findings.equal(11, &place, what, delivered, loaded + deliveries);

        let home = district_at(self.scale, w, d).expect("a district of the population");
        let first = home * self.scale.customers as usize;
        for (at, customer) in customers.iter().enumerate() {
            let &Customer {
                balance,
                ytd_payment,
                delivered,
                ..
            } = customer;
            let paid = self.paid.customers[first + at];
            let place = format_args!("customer {w}/{d}/{}", at + 1);
            let what = "C_BALANCE and delivered OL_AMOUNT less H_AMOUNT";
            findings.equal(10, place, what, balance, delivered - paid);
            let what = "C_BALANCE + C_YTD_PAYMENT and delivered OL_AMOUNT";
            findings.equal(12, place, what, balance + ytd_payment, delivered);
            if !customer.indexed {
                findings.add(Condition::Names, || format!("{place} is missing"));
            }
        }
        Ok(())
    }

    fn customers(&mut self, w: u32, d: u8) -> Result<Vec<Customer>> {
        let count = self.scale.customers;
        let mut customers = Vec::with_capacity(count as usize);
        let found = self.rows(
            CUSTOMER,
            &district_key(w, d),
            |findings, key: &[u8; 9], row: &[u8; customer::LENGTH]| {
                let expected = customers.len() as u32 + 1;
                if last_number(key) != Some(expected) {
                    findings.add(Condition::Rows, || {
                        format!("customer {key:?} where {w}/{d}/{expected} must be")
                    });
                }
                customers.push(Customer {
                    balance: customer::BALANCE.get(row),
                    ytd_payment: customer::YTD_PAYMENT.get(row),
                    deliveries: customer::DELIVERY_CNT.get(row),
                    name: hash(customer::LAST.padded(row), customer::FIRST.padded(row)),
                    delivered: 0,
                    indexed: false,
                });
            },
        )?;
        self.expect_rows(
            format_args!("customers of district {w}/{d}"),
            found,
            count.into(),
        );
        // Later steps index by customer number: a wrong count has been reported just now.
        customers.truncate(count as usize);
        Ok(customers)
    }

    fn names(&mut self, w: u32, d: u8, customers: &mut [Customer]) -> Result<()> {
        self.rows(
            CUSTOMER_BY_NAME,
            &district_key(w, d),
            |findings, key: &[u8; 41], _: &[u8; 0]| {
                let c = last_number(key).expect("a key of 41 bytes");
                let name = hash(&key[5..21], &key[21..37]);
                match customers.get_mut((c as usize).wrapping_sub(1)) {
                    Some(customer) if customer.name == name && !customer.indexed => {
                        customer.indexed = true;
                    }
                    _ => findings.add(Condition::Names, || {
                        format!("customer {w}/{d}/{c} has another name, or two entries")
                    }),
                }
            },
        )?;
        Ok(())
    }

    fn open_orders(&mut self, w: u32, d: u8) -> Result<Vec<u32>> {
        let mut open = Vec::new();
        self.rows(
            NEW_ORDER,
            &district_key(w, d),
            |_, key: &[u8; 9], _: &[u8; 0]| {
                open.extend(last_number(key));
            },
        )?;
        Ok(open)
    }

    fn orders(&mut self, w: u32, d: u8) -> Result<Vec<Order>> {
        let mut orders = Vec::new();
        self.rows(
            ORDER,
            &district_key(w, d),
            |_, key: &[u8; 9], row: &[u8; order::LENGTH]| {
                orders.push(Order {
                    o: last_number(key).expect("a key of 9 bytes"),
                    c: order::C_ID.get(row),
                    lines: order::OL_CNT.get(row),
                    carrier: order::CARRIER_ID.get(row),
                    seen_lines: 0,
                    indexed: false,
                });
            },
        )?;
        Ok(orders)
    }

    fn customer_orders(&mut self, w: u32, d: u8, orders: &mut [Order]) -> Result<()> {
        let prefix = district_key(w, d);
        self.rows(
            ORDER_BY_CUSTOMER,
            &prefix,
            |findings, key: &[u8; 13], _: &[u8; 0]| {
                let (c, o) = (
                    number_at(key, 5),
                    last_number(key).expect("a key of 13 bytes"),
                );
                let found = orders.binary_search_by_key(&o, |order| order.o);
                match found.map(|at| &mut orders[at]) {
                    Ok(order) if Some(order.c) == c && !order.indexed => order.indexed = true,
                    _ => findings.add(Condition::CustomerOrders, || {
                        format!("order {w}/{d}/{o} is not customer {c:?}'s, or has two entries")
                    }),
                }
            },
        )?;
        Ok(())
    }

    fn order_lines(
        &mut self,
        w: u32,
        d: u8,
        orders: &mut [Order],
        customers: &mut [Customer],
    ) -> Result<u64> {
        let loaded = self.scale.customers;
        let mut sold = std::mem::take(&mut self.sold);
        // Lines come in the order of their orders.
        let mut at = 0;
        let count = self.rows(
            ORDER_LINE,
            &district_key(w, d),
            |findings, key: &[u8; 10], row: &[u8; order_line::LENGTH]| {
                let o = number_at(key, 5).expect("a key of 10 bytes");
                while orders.get(at).is_some_and(|order| order.o < o) {
                    at += 1;
                }
                let Some(order) = orders.get_mut(at).filter(|order| order.o == o) else {
                    findings.add(Condition::Clause(6), || {
                        format!("line {key:?} has no order")
                    });
                    return;
                };
                order.seen_lines += 1;
                let date = order_line::DELIVERY_D.get(row);
                if (date == 0) != (order.carrier == 0) {
                    findings.add(Condition::Clause(7), || {
                        let line = key[9];
                        format!(
                            "line {w}/{d}/{o}/{line}: delivered {date}, carrier {}",
                            order.carrier
                        )
                    });
                }
                match customers.get_mut((order.c as usize).wrapping_sub(1)) {
                    Some(customer) if date != 0 => {
                        customer.delivered += order_line::AMOUNT.get(row);
                    }
                    Some(_) => {}
                    None => findings.add(Condition::Rows, || {
                        format!("order {w}/{d}/{o} is of customer {}", order.c)
                    }),
                }
                if o > loaded {
                    let supply = order_line::SUPPLY_W_ID.get(row) as usize;
                    match sold.get_mut(supply.wrapping_sub(1)) {
                        Some(sold) => {
                            sold.pieces += u64::from(order_line::QUANTITY.get(row));
                            sold.orders += 1;
                            sold.remote += u64::from(supply != w as usize);
                        }
                        None => findings.add(Condition::Rows, || {
                            format!("line {key:?} comes from warehouse {supply}")
                        }),
                    }
                }
            },
        );
        self.sold = sold;
        count
    }
}

/// Position of a district among all; none if it is not in the population.
fn district_at(scale: Scale, w: u32, d: u8) -> Option<usize> {
    let there = (1..=scale.warehouses).contains(&w) && (1..=DISTRICTS).contains(&d);
    there.then(|| (w as usize - 1) * usize::from(DISTRICTS) + usize::from(d) - 1)
}

/// FNV-1a of two texts.
fn hash(one: &[u8], two: &[u8]) -> u64 {
    one.iter()
        .chain(two)
        .fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        })
}
