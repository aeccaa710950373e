//! TPC-C on the reference engine: population, transactions, concurrency, and a checker that finds
//! each kind of damage.

use super::check::{Condition, check};
use super::input::{Home, Input, Line, Who};
use super::population::{Population, load};
use super::schema::*;
use super::terminal::{Outcome, Scratch, Terminal, find_customer};
use super::{Kind, Scale, new_order, order_status, stock_level};
use crate::engine::{Direction, Engine, EngineError, Session, Table, TxOptions};
use crate::reference::{Reference, ReferenceSession};

const NOW: u64 = 1_000;

fn empty() -> Reference {
    let mut engine = Reference::new();
    engine.ensure_tables(TABLES).unwrap();
    engine
}

fn loaded(warehouses: u32) -> (Reference, Population) {
    let engine = empty();
    let wanted = Population::new(Scale::tiny(warehouses), 42);
    let mut rows = 0;
    let mut session = engine.open_session().unwrap();
    let population = load(&mut session, wanted, NOW, |more| {
        rows += more;
        Ok(())
    })
    .unwrap();
    drop(session);
    let expected = wanted.scale.rows();
    assert!(
        rows.abs_diff(expected) < expected / 20,
        "{rows} rows, about {expected} announced"
    );
    (engine, population)
}

fn seed() -> u64 {
    let seed = vellum_base::replay::seed();
    println!("replay with VELLUM_SEED={seed} cargo test -p vellum-workload");
    seed
}

/// Runs until `count` transactions are through; returns how many conflicts there were.
fn run(terminal: &mut Terminal, session: &mut ReferenceSession<'_>, count: u32) -> u64 {
    let mut aborts = 0;
    for step in 0..u64::from(count) {
        terminal.draw();
        loop {
            match terminal.attempt(session, NOW + 1 + step) {
                Ok(_) => break,
                Err(error) if error.is_retryable() => aborts += 1,
                Err(error) => panic!("{error}"),
            }
            std::thread::yield_now();
        }
    }
    aborts
}

fn dump(engine: &Reference) -> Vec<(usize, Vec<u8>, Vec<u8>)> {
    let mut session = engine.open_session().unwrap();
    session.begin(TxOptions::READ_ONLY).unwrap();
    let mut rows = Vec::new();
    for spec in TABLES {
        session
            .scan(spec.table, &[], Direction::Forward, |key, value| {
                rows.push((spec.table.position(), key.to_vec(), value.to_vec()));
                true
            })
            .unwrap();
    }
    rows
}

fn violations(engine: &Reference) -> Vec<Condition> {
    let findings = check(&mut engine.open_session().unwrap(), |_| {}).unwrap();
    assert_eq!(findings.count == 0, findings.violations.is_empty());
    let mut conditions: Vec<_> = findings.violations.iter().map(|v| v.condition).collect();
    conditions.sort_unstable();
    conditions.dedup();
    conditions
}

#[test]
fn fresh_population_is_consistent_and_follows_from_its_seed() {
    let (engine, population) = loaded(2);
    assert!(population.is_complete());
    assert_eq!(violations(&engine), []);
    let (again, _) = loaded(2);
    assert!(dump(&engine) == dump(&again));
    // Loading what is loaded changes nothing, and another size is refused.
    let mut session = again.open_session().unwrap();
    load(&mut session, population, NOW, |_| panic!("nothing to load")).unwrap();
    let other = Population::new(Scale::tiny(3), 42);
    let refused = load(&mut session, other, NOW, |_| Ok(())).unwrap_err();
    assert!(matches!(refused, EngineError::Unusable(_)), "{refused}");
}

#[test]
fn interrupted_load_goes_on_and_ends_as_an_uninterrupted_one() {
    let engine = empty();
    let wanted = Population::new(Scale::tiny(2), 42);
    let mut session = engine.open_session().unwrap();
    let mut tables = 0;
    // Items and the first warehouse have eleven tables: dies inside the second warehouse.
    let died = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        load(&mut session, wanted, NOW, |_| {
            tables += 1;
            assert!(tables < 15, "enough");
            Ok(())
        })
    }));
    assert!(died.is_err());
    session.rollback().unwrap();
    let half = Population::read(&mut session).unwrap().unwrap();
    assert_eq!((half.loaded, half.is_complete()), (1, false));
    assert!(matches!(
        check(&mut session, |_| {}),
        Err(EngineError::Unusable(_))
    ));
    let refused = Terminal::new(&mut session, &half, 1, 1, Home::Any).unwrap_err();
    assert!(matches!(refused, EngineError::Unusable(_)));
    load(&mut session, wanted, NOW, |_| Ok(())).unwrap();
    drop(session);
    assert!(dump(&engine) == dump(&loaded(2).0));
}

#[test]
fn prop_transactions_of_one_terminal_keep_every_condition() {
    let seed = seed();
    let (engine, population) = loaded(2);
    let mut session = engine.open_session().unwrap();
    let mut terminal = Terminal::new(&mut session, &population, 1, seed, Home::Any).unwrap();
    for _ in 0..4 {
        assert_eq!(run(&mut terminal, &mut session, 250), 0);
        assert_eq!(violations(&engine), []);
    }
    // A second run of the same terminal goes on behind its history.
    drop(terminal);
    let mut again = Terminal::new(&mut session, &population, 1, seed, Home::Any).unwrap();
    run(&mut again, &mut session, 100);
    assert_eq!(violations(&engine), []);
}

#[test]
fn same_seed_same_database() {
    let run_once = || {
        let (engine, population) = loaded(1);
        let mut session = engine.open_session().unwrap();
        let mut terminal = Terminal::new(&mut session, &population, 1, 5, Home::Any).unwrap();
        run(&mut terminal, &mut session, 200);
        drop(session);
        dump(&engine)
    };
    assert!(run_once() == run_once());
}

#[test]
fn prop_concurrent_terminals_keep_every_condition() {
    let seed = seed();
    let (engine, population) = loaded(2);
    let aborts = std::thread::scope(|scope| {
        let threads: Vec<_> = (1..=3)
            .map(|id| {
                let engine = &engine;
                scope.spawn(move || {
                    let mut session = engine.open_session().unwrap();
                    let mut terminal =
                        Terminal::new(&mut session, &population, id, seed, Home::Any).unwrap();
                    run(&mut terminal, &mut session, 300)
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum::<u64>()
    });
    println!("{aborts} conflicts");
    assert_eq!(violations(&engine), []);
}

#[test]
fn each_transaction_does_what_its_clause_says() {
    let (engine, population) = loaded(1);
    let mut session = engine.open_session().unwrap();
    let mut terminal = Terminal::new(&mut session, &population, 1, 3, Home::Any).unwrap();
    let count = |table: Table| {
        let mut session = engine.open_session().unwrap();
        session.begin(TxOptions::READ_ONLY).unwrap();
        let mut rows = 0_u32;
        session
            .scan(table, &[], Direction::Forward, |_, _| {
                rows += 1;
                true
            })
            .unwrap();
        rows
    };

    let (orders, lines, open) = (count(ORDER), count(ORDER_LINE), count(NEW_ORDER));
    let (mut done, mut undone) = (0, 0);
    let mut done_lines = 0;
    while undone < 2 {
        terminal.draw_kind(Kind::NewOrder);
        let Input::NewOrder { count, .. } = *terminal.input() else {
            unreachable!()
        };
        match terminal.attempt(&mut session, NOW).unwrap() {
            Outcome::Committed => {
                done += 1;
                done_lines += u32::from(count);
            }
            Outcome::RolledBack => undone += 1,
        }
    }
    assert!(done > 10);
    assert_eq!(count(ORDER), orders + done);
    assert_eq!(count(ORDER_LINE), lines + done_lines);
    assert_eq!(count(NEW_ORDER), open + done);

    terminal.draw_kind(Kind::Delivery);
    terminal.attempt(&mut session, NOW).unwrap();
    assert_eq!(count(NEW_ORDER), open + done - 10);
    // Deliver everything: districts without open orders are skipped.
    while count(NEW_ORDER) > 0 {
        terminal.draw_kind(Kind::Delivery);
        terminal.attempt(&mut session, NOW).unwrap();
    }
    terminal.attempt(&mut session, NOW).unwrap();

    let history = count(HISTORY);
    for _ in 0..50 {
        terminal.draw_kind(Kind::Payment);
        terminal.attempt(&mut session, NOW).unwrap();
    }
    assert_eq!(count(HISTORY), history + 50);

    let before = dump(&engine);
    for kind in [Kind::OrderStatus, Kind::StockLevel] {
        for _ in 0..50 {
            terminal.draw_kind(kind);
            terminal.attempt(&mut session, NOW).unwrap();
        }
    }
    assert!(before == dump(&engine), "read-only transactions");
    assert_eq!(violations(&engine), []);
}

#[test]
fn customer_of_a_last_name_is_the_one_in_the_middle() {
    let (engine, _) = loaded(1);
    let mut session = engine.open_session().unwrap();
    let (mut numbers, name) = (Vec::new(), [b'Z'; 16]);
    // First names descend while numbers ascend; other districts and names are in the way.
    for (count, middle) in [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3)] {
        session.begin(TxOptions::READ_WRITE).unwrap();
        let first = [b'z' - count; 16];
        let key = name_key(1, 2, name, first, u32::from(count));
        session.insert(CUSTOMER_BY_NAME, &key, &[]).unwrap();
        session
            .insert(CUSTOMER_BY_NAME, &name_key(1, 3, name, first, 9), &[])
            .unwrap();
        let mut other = name;
        other[15] = b'Z' + count;
        session
            .insert(CUSTOMER_BY_NAME, &name_key(1, 2, other, first, 9), &[])
            .unwrap();
        let found = find_customer(&mut session, 1, 2, Who::Last(name), &mut numbers).unwrap();
        assert_eq!(found, middle, "of {count}");
        session.commit().unwrap();
    }
    session.begin(TxOptions::READ_ONLY).unwrap();
    let none = find_customer(&mut session, 1, 4, Who::Last(name), &mut numbers).unwrap_err();
    assert!(matches!(
        none,
        EngineError::WrongData {
            table: CUSTOMER_BY_NAME,
            ..
        }
    ));
}

#[test]
fn order_status_reads_the_newest_order_and_stock_level_counts_low_items_once() {
    let (engine, population) = loaded(1);
    let (mut session, mut scratch) = (engine.open_session().unwrap(), Scratch::default());
    let loaded = population.scale.customers;
    let before = order_status::run(&mut session, 1, 3, Who::Id(7), &mut scratch).unwrap();
    assert!((1..=loaded).contains(&before));
    // Twenty-two orders of five lines on items 1 to 11; the last twenty count: items 2 to 11.
    let levels = [1, 10, 10, 14, 15, 16, 10, 50, 50, 50, 50];
    for step in 0..22_u32 {
        let item = step / 2 + 1;
        let line = Line {
            item,
            supply: 1,
            quantity: 1,
        };
        new_order::run(&mut session, 1, 3, 7, &[line; 5], NOW, &mut scratch).unwrap();
        let newest = order_status::run(&mut session, 1, 3, Who::Id(7), &mut scratch).unwrap();
        assert_eq!(newest, loaded + 1 + step);
    }
    session.begin(TxOptions::READ_WRITE).unwrap();
    for (item, level) in (1..).zip(levels) {
        let range = [stock::QUANTITY.range()];
        let set = |row: &mut [u8]| stock::QUANTITY.set(row, level);
        assert!(
            session
                .update(STOCK, &stock_key(1, item), &range, set)
                .unwrap()
        );
    }
    session.commit().unwrap();
    for (threshold, low) in [(10, 0), (11, 3), (15, 4), (16, 5), (51, 10)] {
        let found = stock_level::run(&mut session, 1, 3, threshold, &mut scratch).unwrap();
        assert_eq!(found, low, "below {threshold}");
    }
}

/// Changes a loaded database by `damage` and returns the conditions that are violated then.
fn after(damage: impl FnOnce(&mut ReferenceSession<'_>)) -> Vec<Condition> {
    let (engine, _) = loaded(1);
    let mut session = engine.open_session().unwrap();
    session.begin(TxOptions::READ_WRITE).unwrap();
    damage(&mut session);
    session.commit().unwrap();
    drop(session);
    violations(&engine)
}

#[test]
fn checker_finds_each_kind_of_damage() {
    use Condition::{Clause, CustomerOrders, Names, Rows, Stock};
    let whole = |length: usize| [0..length];
    let found = after(|s| {
        let changed = s.update(WAREHOUSE, &warehouse_key(1), &whole(8), |row| {
            warehouse::YTD.change(row, |ytd| ytd + 1);
        });
        assert!(changed.unwrap());
    });
    assert_eq!(found, [Clause(1), Clause(8)]);
    let found = after(|s| {
        let changed = s.update(DISTRICT, &district_key(1, 4), &whole(12), |row| {
            district::NEXT_O_ID.change(row, |next| next + 1);
        });
        assert!(changed.unwrap());
    });
    assert_eq!(found, [Clause(2)]);
    // A delivery that forgot everything but the queue, from its middle.
    let found = after(|s| assert!(s.delete(NEW_ORDER, &order_key(1, 1, 50)).unwrap()));
    assert_eq!(found, [Clause(3), Clause(5), Clause(11)]);
    let found = after(|s| assert!(s.delete(ORDER_LINE, &order_line_key(1, 1, 50, 2)).unwrap()));
    assert_eq!(found, [Clause(4), Clause(6)]);
    let found = after(|s| {
        let changed = s.update(ORDER, &order_key(1, 2, 60), &whole(1), |row| {
            order::CARRIER_ID.set(row, 3);
        });
        assert!(changed.unwrap());
    });
    assert_eq!(found, [Clause(5), Clause(7)]);
    let found = after(|s| {
        let changed = s.update(ORDER_LINE, &order_line_key(1, 2, 60, 1), &whole(8), |row| {
            order_line::DELIVERY_D.set(row, 3);
        });
        assert!(changed.unwrap());
    });
    assert_eq!(found, [Clause(7), Clause(10), Clause(12)]);
    let found = after(|s| assert!(s.delete(HISTORY, &history_key(0, 5)).unwrap()));
    assert_eq!(found, [Clause(8), Clause(9), Clause(10)]);
    let found = after(|s| {
        let changed = s.update(CUSTOMER, &customer_key(1, 1, 1), &whole(16), |row| {
            customer::YTD_PAYMENT.set(row, 0);
        });
        assert!(changed.unwrap());
    });
    assert_eq!(found, [Clause(12)]);
    let found = after(|s| {
        let changed = s.update(CUSTOMER, &customer_key(1, 1, 1), &whole(24), |row| {
            customer::DELIVERY_CNT.set(row, 1);
        });
        assert!(changed.unwrap());
    });
    assert_eq!(found, [Clause(11)]);
    let found = after(|s| {
        let changed = s.update(STOCK, &stock_key(1, 9), &whole(stock::LENGTH), |row| {
            stock::REMOTE_CNT.set(row, 1);
        });
        assert!(changed.unwrap());
    });
    assert_eq!(found, [Stock]);
    let found = after(|s| assert!(s.delete(STOCK, &stock_key(1, 9)).unwrap()));
    assert_eq!(found, [Rows]);
    let found = after(|s| s.upsert(ITEM, &item_key(9), b"short").unwrap());
    assert_eq!(found, [Rows]);
    let found = after(|s| {
        let name = name_key(1, 1, [b'A'; 16], [b'B'; 16], 1);
        s.insert(CUSTOMER_BY_NAME, &name, &[]).unwrap();
    });
    assert_eq!(found, [Names]);
    let found = after(|s| {
        s.insert(ORDER_BY_CUSTOMER, &customer_order_key(1, 1, 1, 9_999), &[])
            .unwrap();
    });
    assert_eq!(found, [CustomerOrders]);
}
