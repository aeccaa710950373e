//! The population of clause 4.3.3: one transaction for the items, then one for each warehouse,
//! each table sorted.
//!
//! Every table of every warehouse has a random sequence of its own that follows from the seed, so
//! the same seed gives the same database whatever happened on the way.
//!
//! Crash: each transaction also counts up [`meta::LOADED`]. A load that was interrupted goes on
//! behind the last warehouse whose commit survived; a database whose count is short of its
//! warehouses is never measured.

use super::random::{Constants, between, brand, digits, last_name, letters, nurand, state, zip};
use super::schema::*;
use super::{DISTRICTS, Scale};
use crate::engine::{Direction, EngineError, Result, Session, TxOptions};
use vellum_base::random::Random;

/// Version of keys and rows.
const LAYOUT_VERSION: u32 = 1;

/// What the description row says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Population {
    /// How large the database is.
    pub scale: Scale,
    /// Constant of the last names.
    pub c_last: u32,
    /// How many warehouses are loaded.
    pub loaded: u32,
    /// The load's seed.
    pub seed: u64,
}

impl Population {
    /// A population of `scale` that follows from `seed`, of which nothing is loaded.
    pub fn new(scale: Scale, seed: u64) -> Self {
        Self {
            scale,
            c_last: Constants::last_for_load(seed),
            loaded: 0,
            seed,
        }
    }

    /// True if every warehouse is loaded.
    pub fn is_complete(&self) -> bool {
        self.loaded == self.scale.warehouses
    }

    /// What the database says about itself; none if nothing was loaded.
    ///
    /// # Errors
    /// Whatever the engine reports; [`EngineError::Unusable`] for another version of the layout.
    pub fn read<S: Session>(session: &mut S) -> Result<Option<Self>> {
        let mut row = Vec::new();
        session.begin(TxOptions::READ_ONLY)?;
        let found = session.get(META, META_KEY, &mut row);
        session.rollback()?;
        if found? {
            Self::decode(&row).map(Some)
        } else {
            Ok(None)
        }
    }

    fn decode(row: &[u8]) -> Result<Self> {
        if row.len() != meta::LENGTH || meta::VERSION.get(row) != LAYOUT_VERSION {
            return Err(EngineError::Unusable(
                "the data directory holds TPC-C in another layout".to_owned(),
            ));
        }
        Ok(Self {
            scale: Scale {
                warehouses: meta::WAREHOUSES.get(row),
                items: meta::ITEMS.get(row),
                customers: meta::CUSTOMERS.get(row),
                new_orders: meta::NEW_ORDERS.get(row),
            },
            c_last: meta::C_LAST.get(row),
            loaded: meta::LOADED.get(row),
            seed: meta::SEED.get(row),
        })
    }

    fn encode(&self) -> [u8; meta::LENGTH] {
        let mut row = [0; meta::LENGTH];
        meta::VERSION.set(&mut row, LAYOUT_VERSION);
        meta::WAREHOUSES.set(&mut row, self.scale.warehouses);
        meta::ITEMS.set(&mut row, self.scale.items);
        meta::CUSTOMERS.set(&mut row, self.scale.customers);
        meta::NEW_ORDERS.set(&mut row, self.scale.new_orders);
        meta::C_LAST.set(&mut row, self.c_last);
        meta::LOADED.set(&mut row, self.loaded);
        meta::SEED.set(&mut row, self.seed);
        row
    }
}

/// Loads what is missing of `wanted`; `now` is the date of everything loaded (microseconds of the
/// epoch), `progress` gets the number of rows after each table, and may end the load by an error. Returns the complete population.
///
/// # Errors
/// [`EngineError::Unusable`] if the database holds another population; whatever the engine
/// reports. What was committed before stays and a second call goes on behind it.
pub fn load<S: Session>(
    session: &mut S,
    wanted: Population,
    now: u64,
    mut progress: impl FnMut(u64) -> Result<()>,
) -> Result<Population> {
    assert!(wanted.scale.warehouses > 0 && wanted.scale.new_orders <= wanted.scale.customers);
    assert!(now > 0, "the date zero means: not delivered");
    let mut population = match Population::read(session)? {
        Some(found) if found.scale != wanted.scale => {
            return Err(EngineError::Unusable(format!(
                "the data directory holds TPC-C with {} warehouses, not {}",
                found.scale.warehouses, wanted.scale.warehouses
            )));
        }
        Some(found) => found,
        None => {
            let items = Loader {
                population: wanted,
                w: 0,
                now,
            };
            transaction(session, |session| {
                progress(items.items(session)?)?;
                session.insert(META, META_KEY, &wanted.encode())
            })?;
            wanted
        }
    };
    while !population.is_complete() {
        let next = Population {
            loaded: population.loaded + 1,
            ..population
        };
        let loader = Loader {
            population,
            w: next.loaded,
            now,
        };
        transaction(session, |session| {
            loader.warehouse(session, &mut progress)?;
            session.upsert(META, META_KEY, &next.encode())
        })?;
        population = next;
    }
    Ok(population)
}

/// Runs `work` in one transaction.
fn transaction<S: Session>(session: &mut S, work: impl FnOnce(&mut S) -> Result<()>) -> Result<()> {
    session.begin(TxOptions::READ_WRITE)?;
    match work(session).and_then(|()| session.commit()) {
        Ok(()) => Ok(()),
        Err(error) => {
            session.rollback()?;
            Err(error)
        }
    }
}

/// What an order and its lines have to agree on.
#[derive(Clone, Copy)]
struct OrderShape {
    c: u32,
    lines: u8,
}

struct Loader {
    population: Population,
    w: u32,
    now: u64,
}

impl Loader {
    /// The random sequence of one table of this warehouse.
    fn random(&self, table: crate::engine::Table) -> Random {
        let stream = (u64::from(self.w) << 8) | table.position() as u64;
        Random::new(self.population.seed ^ stream.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn items<S: Session>(&self, session: &mut S) -> Result<u64> {
        let mut random = self.random(ITEM);
        let mut ids = 1..=self.population.scale.items;
        let mut row = [0; item::LENGTH];
        session.bulk_load(ITEM, |key, value| {
            let Some(i) = ids.next() else { return false };
            item::IM_ID.set(&mut row, between(&mut random, 1, 10_000));
            item::PRICE.set(&mut row, between(&mut random, 100, 10_000));
            letters(&mut random, &mut row, item::NAME, 14);
            brand(&mut random, &mut row, item::DATA);
            put(key, &item_key(i), value, &row)
        })
    }

    /// Every table but the items, each in one sorted run.
    fn warehouse<S: Session>(
        &self,
        session: &mut S,
        progress: &mut impl FnMut(u64) -> Result<()>,
    ) -> Result<()> {
        progress(self.warehouse_row(session)?)?;
        progress(self.districts(session)?)?;
        let (rows, mut names) = self.customers(session)?;
        progress(rows)?;
        names.sort_unstable();
        let mut names = names.iter();
        progress(session.bulk_load(CUSTOMER_BY_NAME, |key, value| {
            names.next().is_some_and(|name| put(key, name, value, &[]))
        })?)?;
        progress(self.history(session)?)?;
        progress(self.stock(session)?)?;
        let orders = self.order_shapes();
        progress(self.orders(session, &orders)?)?;
        progress(self.new_orders(session)?)?;
        progress(self.orders_by_customer(session, &orders)?)?;
        progress(self.order_lines(session, &orders)?)?;
        Ok(())
    }

    fn warehouse_row<S: Session>(&self, session: &mut S) -> Result<u64> {
        let mut random = self.random(WAREHOUSE);
        let mut row = [0; warehouse::LENGTH];
        let customers = i64::from(self.population.scale.customers);
        // 300,000.00 with 3,000 customers a district: what their first payments make.
        warehouse::YTD.set(&mut row, i64::from(DISTRICTS) * customers * FIRST_PAYMENT);
        warehouse::TAX.set(&mut row, between(&mut random, 0, 2_000));
        letters(&mut random, &mut row, warehouse::NAME, 6);
        letters(&mut random, &mut row, warehouse::STREET_1, 10);
        letters(&mut random, &mut row, warehouse::STREET_2, 10);
        letters(&mut random, &mut row, warehouse::CITY, 10);
        state(&mut random, &mut row, warehouse::STATE);
        zip(&mut random, &mut row, warehouse::ZIP);
        session.insert(WAREHOUSE, &warehouse_key(self.w), &row)?;
        Ok(1)
    }

    fn districts<S: Session>(&self, session: &mut S) -> Result<u64> {
        let mut random = self.random(DISTRICT);
        let customers = self.population.scale.customers;
        for d in 1..=DISTRICTS {
            let mut row = [0; district::LENGTH];
            district::YTD.set(&mut row, i64::from(customers) * FIRST_PAYMENT);
            district::NEXT_O_ID.set(&mut row, customers + 1);
            district::TAX.set(&mut row, between(&mut random, 0, 2_000));
            letters(&mut random, &mut row, district::NAME, 6);
            letters(&mut random, &mut row, district::STREET_1, 10);
            letters(&mut random, &mut row, district::STREET_2, 10);
            letters(&mut random, &mut row, district::CITY, 10);
            state(&mut random, &mut row, district::STATE);
            zip(&mut random, &mut row, district::ZIP);
            session.insert(DISTRICT, &district_key(self.w, d), &row)?;
        }
        Ok(u64::from(DISTRICTS))
    }

    /// Returns the index keys of the names too, unsorted.
    fn customers<S: Session>(&self, session: &mut S) -> Result<(u64, Vec<[u8; 41]>)> {
        let mut random = self.random(CUSTOMER);
        let count = self.population.scale.customers;
        let mut names = Vec::with_capacity(usize::from(DISTRICTS) * count as usize);
        let mut ids = district_ids(count);
        let mut row = [0; customer::LENGTH];
        let rows = session.bulk_load(CUSTOMER, |key, value| {
            let Some((d, c)) = ids.next() else {
                return false;
            };
            let number = if c <= 1000 {
                c - 1
            } else {
                nurand(&mut random, 255, self.population.c_last, 0, 999)
            };
            let last = last_name(number);
            customer::LAST.padded_mut(&mut row).copy_from_slice(&last);
            letters(&mut random, &mut row, customer::FIRST, 8);
            let mut first = [0; 16];
            first.copy_from_slice(customer::FIRST.padded(&row));
            names.push(name_key(self.w, d, last, first, c));
            customer::MIDDLE.set(&mut row, b"OE");
            letters(&mut random, &mut row, customer::STREET_1, 10);
            letters(&mut random, &mut row, customer::STREET_2, 10);
            letters(&mut random, &mut row, customer::CITY, 10);
            state(&mut random, &mut row, customer::STATE);
            zip(&mut random, &mut row, customer::ZIP);
            digits(&mut random, &mut row, customer::PHONE);
            customer::SINCE.set(&mut row, self.now);
            customer::CREDIT.set(&mut row, if random.chance(1, 10) { b"BC" } else { b"GC" });
            customer::CREDIT_LIM.set(&mut row, 5_000_000);
            customer::DISCOUNT.set(&mut row, between(&mut random, 0, 5_000));
            customer::BALANCE.set(&mut row, -FIRST_PAYMENT);
            customer::YTD_PAYMENT.set(&mut row, FIRST_PAYMENT);
            customer::PAYMENT_CNT.set(&mut row, 1);
            customer::DELIVERY_CNT.set(&mut row, 0);
            letters(&mut random, &mut row, customer::DATA, 300);
            put(key, &customer_key(self.w, d, c), value, &row)
        })?;
        Ok((rows, names))
    }

    fn history<S: Session>(&self, session: &mut S) -> Result<u64> {
        let mut random = self.random(HISTORY);
        let count = self.population.scale.customers;
        let before = u64::from(self.w - 1) * u64::from(DISTRICTS) * u64::from(count);
        let mut ids = district_ids(count).zip(before..);
        let mut row = [0; history::LENGTH];
        session.bulk_load(HISTORY, |key, value| {
            let Some(((d, c), number)) = ids.next() else {
                return false;
            };
            history::C_W_ID.set(&mut row, self.w);
            history::C_D_ID.set(&mut row, d);
            history::C_ID.set(&mut row, c);
            history::W_ID.set(&mut row, self.w);
            history::D_ID.set(&mut row, d);
            history::DATE.set(&mut row, self.now);
            history::AMOUNT.set(&mut row, FIRST_PAYMENT);
            letters(&mut random, &mut row, history::DATA, 12);
            put(key, &history_key(LOADER_TERMINAL, number), value, &row)
        })
    }

    fn stock<S: Session>(&self, session: &mut S) -> Result<u64> {
        let mut random = self.random(STOCK);
        let mut ids = 1..=self.population.scale.items;
        let mut row = [0; stock::LENGTH];
        session.bulk_load(STOCK, |key, value| {
            let Some(i) = ids.next() else { return false };
            stock::QUANTITY.set(&mut row, between(&mut random, 10, 100) as u16);
            stock::YTD.set(&mut row, 0);
            stock::ORDER_CNT.set(&mut row, 0);
            stock::REMOTE_CNT.set(&mut row, 0);
            letters(&mut random, &mut row, stock::DISTS, 240);
            brand(&mut random, &mut row, stock::DATA);
            put(key, &stock_key(self.w, i), value, &row)
        })
    }

    /// Customers (a permutation a district) and numbers of lines of all orders, by district.
    fn order_shapes(&self) -> Vec<OrderShape> {
        let mut random = self.random(ORDER);
        let count = self.population.scale.customers;
        let mut shapes = Vec::with_capacity(usize::from(DISTRICTS) * count as usize);
        for _ in 0..DISTRICTS {
            let first = shapes.len();
            shapes.extend((1..=count).map(|c| OrderShape { c, lines: 0 }));
            let district = &mut shapes[first..];
            for last in (1..district.len()).rev() {
                district.swap(last, random.below(last as u64 + 1) as usize);
            }
            for shape in district {
                shape.lines = random.between(5, 15) as u8;
            }
        }
        shapes
    }

    /// True if the specification delivers this order before the first transaction.
    fn delivered(&self, o: u32) -> bool {
        o <= self.population.scale.customers - self.population.scale.new_orders
    }

    fn orders<S: Session>(&self, session: &mut S, shapes: &[OrderShape]) -> Result<u64> {
        let mut random = Random::new(self.random(ORDER).next_u64());
        let mut ids = district_ids(self.population.scale.customers).zip(shapes);
        let mut row = [0; order::LENGTH];
        session.bulk_load(ORDER, |key, value| {
            let Some(((d, o), shape)) = ids.next() else {
                return false;
            };
            let carrier = if self.delivered(o) {
                between(&mut random, 1, 10) as u8
            } else {
                0
            };
            order::CARRIER_ID.set(&mut row, carrier);
            order::OL_CNT.set(&mut row, shape.lines);
            order::ALL_LOCAL.set(&mut row, 1);
            order::C_ID.set(&mut row, shape.c);
            order::ENTRY_D.set(&mut row, self.now);
            put(key, &order_key(self.w, d, o), value, &row)
        })
    }

    fn new_orders<S: Session>(&self, session: &mut S) -> Result<u64> {
        let mut ids =
            district_ids(self.population.scale.customers).filter(|&(_, o)| !self.delivered(o));
        session.bulk_load(NEW_ORDER, |key, value| {
            ids.next()
                .is_some_and(|(d, o)| put(key, &order_key(self.w, d, o), value, &[]))
        })
    }

    fn orders_by_customer<S: Session>(
        &self,
        session: &mut S,
        shapes: &[OrderShape],
    ) -> Result<u64> {
        let count = self.population.scale.customers;
        let mut keys: Vec<_> = district_ids(count)
            .zip(shapes)
            .map(|((d, o), shape)| customer_order_key(self.w, d, shape.c, o))
            .collect();
        keys.sort_unstable();
        let mut keys = keys.iter();
        session.bulk_load(ORDER_BY_CUSTOMER, |key, value| {
            keys.next().is_some_and(|next| put(key, next, value, &[]))
        })
    }

    fn order_lines<S: Session>(&self, session: &mut S, shapes: &[OrderShape]) -> Result<u64> {
        let mut random = self.random(ORDER_LINE);
        let items = self.population.scale.items;
        let mut ids = district_ids(self.population.scale.customers)
            .zip(shapes)
            .flat_map(|(order, shape)| (1..=shape.lines).map(move |line| (order, line)));
        let mut row = [0; order_line::LENGTH];
        session.bulk_load(ORDER_LINE, |key, value| {
            let Some(((d, o), line)) = ids.next() else {
                return false;
            };
            let delivered = self.delivered(o);
            order_line::DELIVERY_D.set(&mut row, if delivered { self.now } else { 0 });
            let amount = if delivered {
                0
            } else {
                random.between(1, 999_999) as i64
            };
            order_line::AMOUNT.set(&mut row, amount);
            order_line::I_ID.set(&mut row, between(&mut random, 1, items));
            order_line::SUPPLY_W_ID.set(&mut row, self.w);
            order_line::QUANTITY.set(&mut row, 5);
            letters(&mut random, &mut row, order_line::DIST_INFO, 24);
            put(key, &order_line_key(self.w, d, o, line), value, &row)
        })
    }
}

/// What each customer has paid before the first transaction, cents.
const FIRST_PAYMENT: i64 = 1_000;

/// The terminal that the population's history belongs to. Clients count from 1.
pub const LOADER_TERMINAL: u32 = 0;

/// Districts and numbers from 1 inside them, in the order of keys.
fn district_ids(count: u32) -> impl Iterator<Item = (u8, u32)> {
    (1..=DISTRICTS).flat_map(move |d| (1..=count).map(move |id| (d, id)))
}

/// Hands a row to a bulk load.
fn put(key: &mut Vec<u8>, new_key: &[u8], value: &mut Vec<u8>, new_value: &[u8]) -> bool {
    key.clear();
    key.extend_from_slice(new_key);
    value.clear();
    value.extend_from_slice(new_value);
    true
}

/// The number behind the last row of a terminal's history.
///
/// # Errors
/// Whatever the engine reports.
pub fn next_history_number<S: Session>(session: &mut S, terminal: u32) -> Result<u64> {
    let from = history_key(terminal, u64::MAX);
    let mut next = 0;
    session.begin(TxOptions::READ_ONLY)?;
    let scanned = session.scan(HISTORY, &from, Direction::Backward, |key, _| {
        if let (true, Some(bytes)) = (key.starts_with(&from[..4]), key.last_chunk()) {
            next = u64::from_be_bytes(*bytes) + 1;
        }
        false
    });
    session.rollback()?;
    scanned.map(|()| next)
}
