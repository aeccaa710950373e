//! Random input of the five transactions (clauses 2.4.1 to 2.8.1), drawn before a transaction
//! starts so that it can be run again.

use super::random::{Constants, between, nurand};
use super::{DISTRICTS, Kind, LINES_MAX, Scale};
use vellum_base::random::Random;

/// How a customer is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// By number.
    Id(u32),
    /// By last name, padded with zero bytes.
    Last([u8; 16]),
}

/// One line of a new order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// Item; above the number of items in the order that rolls back.
    pub item: u32,
    /// Warehouse that supplies it.
    pub supply: u32,
    /// How many.
    pub quantity: u8,
}

/// Input of one transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// Clause 2.4.1.
    NewOrder {
        /// Home warehouse.
        w: u32,
        /// District.
        d: u8,
        /// Customer.
        c: u32,
        /// The first `count` are used.
        lines: [Line; LINES_MAX],
        /// Number of lines.
        count: u8,
    },
    /// Clause 2.5.1.
    Payment {
        /// Home warehouse.
        w: u32,
        /// District that is paid.
        d: u8,
        /// Customer's warehouse.
        c_w: u32,
        /// Customer's district.
        c_d: u8,
        /// Customer.
        who: Who,
        /// How much, cents.
        amount: i64,
    },
    /// Clause 2.6.1.
    OrderStatus {
        /// Home warehouse.
        w: u32,
        /// District.
        d: u8,
        /// Customer.
        who: Who,
    },
    /// Clause 2.7.1.
    Delivery {
        /// Home warehouse.
        w: u32,
        /// Carrier.
        carrier: u8,
    },
    /// Clause 2.8.1.
    StockLevel {
        /// Home warehouse.
        w: u32,
        /// District.
        d: u8,
        /// What is too little.
        threshold: u16,
    },
}

impl Input {
    /// Which transaction it is for.
    pub const fn kind(&self) -> Kind {
        match self {
            Self::NewOrder { .. } => Kind::NewOrder,
            Self::Payment { .. } => Kind::Payment,
            Self::OrderStatus { .. } => Kind::OrderStatus,
            Self::Delivery { .. } => Kind::Delivery,
            Self::StockLevel { .. } => Kind::StockLevel,
        }
    }
}

/// Which warehouses a terminal is at home in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// Any of them, anew for each transaction.
    Any,
    /// Those of one thread out of `of`; other warehouses are still supplied from and paid for.
    Share {
        /// The thread, from 0.
        thread: u32,
        /// How many threads there are.
        of: u32,
    },
}

/// Draws input. The same seed gives the same sequence.
#[derive(Clone, Debug)]
pub struct Generator {
    random: Random,
    scale: Scale,
    constants: Constants,
    home: Home,
}

impl Generator {
    /// A generator for one terminal.
    ///
    /// # Panics
    /// If `home` is a share of no thread.
    pub fn new(random: Random, scale: Scale, constants: Constants, home: Home) -> Self {
        assert!(!matches!(home, Home::Share { thread, of } if thread >= of));
        Self {
            random,
            scale,
            constants,
            home,
        }
    }

    /// The next transaction of the standard mix: 45 new-order, 43 payment, 4 each of the others
    /// in a hundred (clause 5.2.3).
    pub fn draw(&mut self) -> Input {
        let kind = match self.random.below(100) {
            0..45 => Kind::NewOrder,
            45..88 => Kind::Payment,
            88..92 => Kind::OrderStatus,
            92..96 => Kind::Delivery,
            _ => Kind::StockLevel,
        };
        self.draw_kind(kind)
    }

    /// Input for a transaction of this kind.
    pub fn draw_kind(&mut self, kind: Kind) -> Input {
        let w = self.home();
        match kind {
            Kind::NewOrder => self.new_order(w),
            Kind::Payment => self.payment(w),
            Kind::OrderStatus => Input::OrderStatus {
                w,
                d: self.district(),
                who: self.who(),
            },
            Kind::Delivery => Input::Delivery {
                w,
                carrier: self.random.between(1, 10) as u8,
            },
            Kind::StockLevel => {
                let threshold = self.random.between(10, 20) as u16;
                Input::StockLevel {
                    w,
                    d: self.district(),
                    threshold,
                }
            }
        }
    }

    fn home(&mut self) -> u32 {
        let warehouses = self.scale.warehouses;
        match self.home {
            Home::Any => between(&mut self.random, 1, warehouses),
            // More threads than warehouses: some share one.
            Home::Share { thread, .. } if thread >= warehouses => thread % warehouses + 1,
            Home::Share { thread, of } => {
                let owned = (warehouses - thread).div_ceil(of);
                let nth = between(&mut self.random, 0, owned - 1);
                thread + nth * of + 1
            }
        }
    }

    fn other_warehouse(&mut self, home: u32) -> u32 {
        let other = between(&mut self.random, 1, self.scale.warehouses - 1);
        if other >= home { other + 1 } else { other }
    }

    fn district(&mut self) -> u8 {
        self.random.between(1, u64::from(DISTRICTS)) as u8
    }

    fn customer(&mut self) -> u32 {
        nurand(
            &mut self.random,
            1023,
            self.constants.customer,
            1,
            self.scale.customers,
        )
    }

    fn item(&mut self) -> u32 {
        nurand(
            &mut self.random,
            8191,
            self.constants.item,
            1,
            self.scale.items,
        )
    }

    fn who(&mut self) -> Who {
        if self.random.chance(60, 100) {
            // With fewer than a thousand customers not every last name exists.
            let highest = self.scale.customers.min(1000) - 1;
            let number = nurand(&mut self.random, 255, self.constants.last, 0, highest);
            Who::Last(super::random::last_name(number))
        } else {
            Who::Id(self.customer())
        }
    }

    fn new_order(&mut self, w: u32) -> Input {
        let (d, c) = (self.district(), self.customer());
        let count = self.random.between(5, LINES_MAX as u64) as u8;
        let mut lines = [Line::default(); LINES_MAX];
        for line in &mut lines[..usize::from(count)] {
            let remote = self.scale.warehouses > 1 && self.random.chance(1, 100);
            *line = Line {
                item: self.item(),
                supply: if remote { self.other_warehouse(w) } else { w },
                quantity: self.random.between(1, 10) as u8,
            };
        }
        // Clause 2.4.1.4: one in a hundred meets an item that does not exist, in its last line.
        if self.random.chance(1, 100) {
            lines[usize::from(count) - 1].item = self.scale.items + 1;
        }
        Input::NewOrder {
            w,
            d,
            c,
            lines,
            count,
        }
    }

    fn payment(&mut self, w: u32) -> Input {
        let d = self.district();
        let remote = self.scale.warehouses > 1 && self.random.chance(15, 100);
        let (c_w, c_d) = if remote {
            (self.other_warehouse(w), self.district())
        } else {
            (w, d)
        };
        let amount = self.random.between(100, 500_000) as i64;
        Input::Payment {
            w,
            d,
            c_w,
            c_d,
            who: self.who(),
            amount,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generator(warehouses: u32, home: Home) -> Generator {
        let constants = Constants::for_run(9, 1);
        Generator::new(
            Random::new(11),
            Scale::standard(warehouses),
            constants,
            home,
        )
    }

    #[test]
    fn mix_and_shares_are_the_specifications() {
        let mut generator = generator(4, Home::Any);
        let (mut kinds, mut lines, mut remote_lines) = ([0_u32; 5], 0_u32, 0_u32);
        let (mut rollbacks, mut remote_payments, mut by_name) = (0_u32, 0_u32, 0_u32);
        let draws = 200_000;
        for _ in 0..draws {
            let input = generator.draw();
            kinds[input.kind() as usize] += 1;
            match input {
                Input::NewOrder {
                    w,
                    lines: all,
                    count,
                    c,
                    ..
                } => {
                    assert!((5..=15).contains(&count) && (1..=3000).contains(&c));
                    let used = &all[..usize::from(count)];
                    lines += u32::from(count);
                    remote_lines += used.iter().filter(|l| l.supply != w).count() as u32;
                    rollbacks += used.iter().filter(|l| l.item > 100_000).count() as u32;
                    assert!(used.iter().all(|l| (1..=4).contains(&l.supply)));
                }
                Input::Payment {
                    w,
                    d,
                    c_w,
                    c_d,
                    who,
                    amount,
                } => {
                    assert!((100..=500_000).contains(&amount) && (1..=4).contains(&c_w));
                    assert!(c_w != w || c_d == d);
                    remote_payments += u32::from(c_w != w);
                    by_name += u32::from(matches!(who, Who::Last(_)));
                }
                _ => {}
            }
        }
        let percent = |part: u32, whole: u32| f64::from(part) * 100.0 / f64::from(whole);
        let near = |found: f64, wanted: f64, slack: f64| (found - wanted).abs() < slack;
        for (kind, wanted) in kinds.iter().zip([45.0, 43.0, 4.0, 4.0, 4.0]) {
            assert!(near(percent(*kind, draws), wanted, 0.6), "{kinds:?}");
        }
        assert!(near(percent(rollbacks, kinds[0]), 1.0, 0.2));
        assert!(near(percent(remote_lines, lines), 1.0, 0.1));
        assert!(near(f64::from(lines) / f64::from(kinds[0]), 10.0, 0.1));
        assert!(near(percent(remote_payments, kinds[1]), 15.0, 0.8));
        assert!(near(percent(by_name, kinds[1]), 60.0, 1.0));
    }

    #[test]
    fn shares_partition_the_warehouses() {
        for (warehouses, of) in [(4, 2), (5, 2), (7, 3), (2, 4), (1, 1)] {
            let mut owners = vec![Vec::new(); warehouses as usize + 1];
            for thread in 0..of {
                let mut generator = generator(warehouses, Home::Share { thread, of });
                for _ in 0..500 {
                    let w = generator.home() as usize;
                    if !owners[w].contains(&thread) {
                        owners[w].push(thread);
                    }
                }
            }
            assert!(
                owners[1..].iter().all(|o| !o.is_empty()),
                "{warehouses}/{of}: {owners:?}"
            );
            if of <= warehouses {
                assert!(owners[1..].iter().all(|o| o.len() == 1), "{owners:?}");
            }
        }
    }

    #[test]
    fn one_warehouse_has_no_other() {
        let mut generator = generator(1, Home::Any);
        for _ in 0..20_000 {
            match generator.draw() {
                Input::NewOrder {
                    w, lines, count, ..
                } => {
                    assert!(w == 1 && lines[..usize::from(count)].iter().all(|l| l.supply == 1));
                }
                Input::Payment { w, c_w, .. } => assert_eq!((w, c_w), (1, 1)),
                _ => {}
            }
        }
    }

    #[test]
    fn same_seed_same_input() {
        let (mut a, mut b) = (generator(3, Home::Any), generator(3, Home::Any));
        assert!((0..1000).all(|_| a.draw() == b.draw()));
    }
}
