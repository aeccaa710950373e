//! What has to hold inside a district: its customers, orders, lines, and their indexes.

use super::super::schema::*;
use super::{Checker, Condition, district_at};
use crate::engine::{Result, Session};

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

impl<S: Session> Checker<'_, S> {
    pub(super) fn district(&mut self, w: u32, d: u8, next: u32) -> Result<()> {
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

/// FNV-1a of two texts.
fn hash(one: &[u8], two: &[u8]) -> u64 {
    one.iter()
        .chain(two)
        .fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        })
}
