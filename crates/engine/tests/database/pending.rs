//! Waits that do not block their thread: for a worker slot, and for a commit to be durable.

use crate::support::{key, small, value_of, with_table};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Poll, Wake, Waker};
use std::thread;
use std::time::Duration;
use vellum::{Config, Database, Durability, Error, Table, TransactionOptions};
use vellum_io::{Call, Fault, PowerCut, SimulatedDirectory};

/// Counts how often it was woken.
#[derive(Default)]
struct Counter(AtomicUsize);

impl Counter {
    fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Wake for Counter {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn waker() -> (Arc<Counter>, Waker) {
    let counter = Arc::new(Counter::default());
    (counter.clone(), Waker::from(counter))
}

fn ready<T>(poll: Poll<T>) -> T {
    match poll {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("still waiting"),
    }
}

/// As many slots as a database can do with, all of them taken.
fn all_slots_taken() -> (Database, Vec<vellum::Transaction>) {
    let mut config = small();
    config.slots_max = 4;
    config.slot_timeout = Duration::ZERO;
    let (_directory, database, _) = with_table(&config);
    let mut open = Vec::new();
    loop {
        match database.begin() {
            Ok(tx) => open.push(tx),
            Err(Error::Timeout { .. }) => break,
            Err(error) => panic!("{error}"),
        }
        assert!(open.len() <= 4);
    }
    (database, open)
}

#[test]
fn a_begin_that_is_polled_is_woken_by_the_end_of_another_transaction() {
    let (database, mut open) = all_slots_taken();
    let (woken, waker) = waker();
    let mut begin = database.begin_pending(TransactionOptions::default());
    assert!(begin.poll(&waker).is_pending());
    assert!(begin.poll(&waker).is_pending(), "asking costs nothing");
    assert_eq!(woken.count(), 0);
    open.pop().unwrap().commit().unwrap();
    assert_eq!(woken.count(), 1);
    let tx = ready(begin.poll(&waker));
    assert_eq!(tx.tables().unwrap(), ["t"]);
    // Its slot is taken now.
    assert!(matches!(database.begin(), Err(Error::Timeout { .. })));
    tx.rollback().unwrap();
    database.begin().unwrap();
}

#[test]
fn who_gives_a_polled_begin_up_passes_its_wake_up_on() {
    let (database, mut open) = all_slots_taken();
    let (first_woken, first_waker) = waker();
    let (second_woken, second_waker) = waker();
    let mut first = database.begin_pending(TransactionOptions::default());
    let mut second = database.begin_pending(TransactionOptions::default());
    assert!(first.poll(&first_waker).is_pending());
    assert!(second.poll(&second_waker).is_pending());
    drop(open.pop());
    assert_eq!(first_woken.count() + second_woken.count(), 1);
    // Whoever was woken goes without asking again: the other is told.
    let (mut other, woken, waker) = if first_woken.count() == 1 {
        drop(first);
        (second, second_woken, second_waker)
    } else {
        drop(second);
        (first, first_woken, first_waker)
    };
    assert_eq!(woken.count(), 1);
    drop(ready(other.poll(&waker)));
}

#[test]
fn a_begin_that_blocks_and_one_that_is_polled_both_get_a_slot() {
    let (database, mut open) = all_slots_taken();
    let (_woken, waker) = waker();
    let mut polled = database.begin_pending(TransactionOptions::default());
    assert!(polled.poll(&waker).is_pending());
    let blocking = {
        let database = database.clone();
        let options = TransactionOptions::default().slot_timeout(Duration::from_secs(600));
        thread::spawn(move || database.begin_with(options).map(drop))
    };
    drop(open.pop());
    let polled = loop {
        match polled.poll(&waker) {
            Poll::Ready(tx) => break tx,
            Poll::Pending => thread::yield_now(),
        }
    };
    drop(polled);
    blocking.join().unwrap().unwrap();
}

fn on_simulated(config: &Config) -> (Arc<SimulatedDirectory>, Database, Table) {
    let directory = Arc::new(SimulatedDirectory::new());
    let database = Database::open_directory(directory.clone(), config.clone()).unwrap();
    let table = database.retry(|tx| tx.create_table("t")).unwrap();
    (directory, database, table)
}

fn sync() -> TransactionOptions {
    TransactionOptions::default().durability(Durability::Sync)
}

#[test]
fn crash_a_commit_that_a_poll_called_durable_is_there_after_a_power_cut() {
    let (directory, database, table) = on_simulated(&small());
    let tx = database.begin_with(sync()).unwrap();
    tx.insert(&table, &key(1), b"v").unwrap();
    let pending = tx.commit_deferred().unwrap();
    assert!(!pending.is_durable(), "nothing was flushed");
    // Others see it at once (early lock release).
    assert!(value_of(&database.begin().unwrap(), &table, &key(1)).is_some());
    let (_woken, waker) = waker();
    // No thread serves: who asks leads the round itself.
    ready(pending.poll(&waker)).unwrap();
    assert!(pending.is_durable());
    ready(pending.poll(&waker)).unwrap();
    let after = Arc::new(directory.power_cut(1, PowerCut::CLEAN));
    let database = Database::open_directory(after, small()).unwrap();
    let tx = database.begin().unwrap();
    let table = tx.table("t").unwrap();
    assert_eq!(value_of(&tx, &table, &key(1)), Some(b"v".to_vec()));
}

#[test]
fn a_poll_of_a_commit_says_that_its_flush_failed() {
    let (directory, database, table) = on_simulated(&small());
    let tx = database.begin_with(sync()).unwrap();
    tx.insert(&table, &key(1), b"v").unwrap();
    let pending = tx.commit_deferred().unwrap();
    directory.fail(Fault::nth(Call::Sync, 0));
    let (_woken, waker) = waker();
    let Error::NotDurable { cause } = ready(pending.poll(&waker)).unwrap_err() else {
        panic!("it has happened");
    };
    assert!(
        matches!(*cause, Error::Io { .. } | Error::Poisoned),
        "{cause}"
    );
    assert!(!pending.is_durable());
    // And it stays so, for who waits as well.
    assert!(ready(pending.poll(&waker)).is_err());
    assert!(pending.wait().is_err());
}

/// Whoever polled while the engine's own thread led the round was never woken if that failed without poisoning the log: the thread tried again and
/// again, and told nobody. Found by clients that poll, at the end of a life; now everybody is woken by a round that fails, and looks for themselves.
#[test]
fn regress_with_threads_of_the_engine_a_polled_commit_hears_that_its_flush_failed() {
    for round in 0..20 {
        let (directory, database, table) = on_simulated(&small().background_threads(true));
        directory.fail(Fault::nth(Call::Write, 0).forever().on("log/"));
        let tx = database.begin_with(sync()).unwrap();
        tx.insert(&table, &key(1), b"v").unwrap();
        let pending = tx.commit_deferred().unwrap();
        let (woken, waker) = waker();
        let mut asked = 0;
        let told = loop {
            match pending.poll(&waker) {
                Poll::Ready(told) => break told,
                Poll::Pending => asked += 1,
            }
            let begun = std::time::Instant::now();
            while woken.count() < asked {
                let hangs = begun.elapsed() > Duration::from_secs(60);
                assert!(!hangs, "nobody wakes it, in round {round}");
                thread::yield_now();
            }
        };
        assert!(told.is_err(), "nothing can be written");
        assert!(!pending.is_durable());
    }
}

#[test]
fn with_threads_of_the_engine_a_polled_commit_is_woken() {
    let (_directory, database, table) = on_simulated(&small().background_threads(true));
    for number in 0..50 {
        let tx = database.begin_with(sync()).unwrap();
        tx.insert(&table, &key(number), b"v").unwrap();
        let pending = tx.commit_deferred().unwrap();
        let (woken, waker) = waker();
        let mut asked = 0;
        // Asks again only when it is told to.
        while pending.poll(&waker).is_pending() {
            asked += 1;
            while woken.count() < asked {
                thread::yield_now();
            }
        }
        assert!(pending.is_durable());
    }
}
