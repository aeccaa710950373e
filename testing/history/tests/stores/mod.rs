//! Small stores, right and wrong, that make random histories.

use std::collections::BTreeMap;
use vellum_base::random::Random;
use vellum_history::{Event, Level, Op, Phase};

type Lists = BTreeMap<u64, Vec<u64>>;

/// What a store does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Store {
    /// One transaction at a time.
    Serial,
    /// A snapshot at begin, the first writer wins.
    Snapshot,
    /// A snapshot at begin, the last writer wins.
    NoConflicts,
    /// Each read sees what is committed.
    ReadCommitted,
    /// Writes are seen at once, and stay if the transaction is rolled back.
    Dirty,
    /// Each list is read as it was at some commit of its own.
    Forks,
}

const STORES: [Store; 6] = [
    Store::Serial,
    Store::Snapshot,
    Store::NoConflicts,
    Store::ReadCommitted,
    Store::Dirty,
    Store::Forks,
];

struct Open {
    session: u64,
    left: u64,
    ops: Vec<Op>,
    snapshot: Lists,
    own: Lists,
}

/// A history of at most six transactions over at most three lists; the last one reads all of them, or some.
pub fn random_history(random: &mut Random) -> Vec<Event> {
    let store = STORES[random.below(STORES.len() as u64) as usize];
    let (keys, transactions) = (random.between(1, 3), random.between(1, 5));
    let spoils = random.chance(1, 6);
    let mut states = vec![Lists::new()];
    let mut open: Vec<Open> = Vec::new();
    let mut events: Vec<Event> = Vec::new();
    let (mut begun, mut value) = (0, 0);
    let mut event = |session, f, ops| {
        let i = events.len() as u64;
        let lvl = Some(Level::Snapshot);
        events.push(Event {
            i,
            p: session,
            t: session,
            f,
            ts: i,
            lvl,
            ops,
        });
    };
    while begun < transactions || !open.is_empty() {
        let may_begin = begun < transactions && (open.is_empty() || store != Store::Serial);
        if may_begin && (open.is_empty() || random.chance(1, 3)) {
            event(begun, Phase::Invoke, Vec::new());
            open.push(Open {
                session: begun,
                left: random.between(1, 4),
                ops: Vec::new(),
                snapshot: states[states.len() - 1].clone(),
                own: Lists::new(),
            });
            begun += 1;
            continue;
        }
        let at = random.below(open.len() as u64) as usize;
        if open[at].left > 0 {
            let transaction = &mut open[at];
            transaction.left -= 1;
            let key = random.below(keys);
            if random.chance(1, 2) {
                value += 1;
                transaction.ops.push(Op::append(key, value));
                match store {
                    Store::Dirty => {
                        let now = states.len() - 1;
                        states[now].entry(key).or_default().push(value);
                    }
                    _ => transaction.own.entry(key).or_default().push(value),
                }
            } else {
                let now = states.len() - 1;
                let from = match store {
                    Store::Serial | Store::Snapshot | Store::NoConflicts => &transaction.snapshot,
                    Store::ReadCommitted | Store::Dirty => &states[now],
                    Store::Forks => &states[random.below(states.len() as u64) as usize],
                };
                let mut values = from.get(&key).cloned().unwrap_or_default();
                values.extend(transaction.own.get(&key).into_iter().flatten());
                transaction.ops.push(Op::read(key, values));
            }
            continue;
        }
        let transaction = open.remove(at);
        let now = &states[states.len() - 1];
        let conflicts = store == Store::Snapshot
            && transaction
                .own
                .keys()
                .any(|key| transaction.snapshot.get(key) != now.get(key));
        if conflicts || random.chance(1, 12) {
            event(transaction.session, Phase::Fail, transaction.ops);
            continue;
        }
        let mut next = now.clone();
        for (key, values) in &transaction.own {
            next.entry(*key).or_default().extend(values);
        }
        let known = !random.chance(1, 10);
        // Of those that nobody knows, half did not happen.
        if known || random.chance(1, 2) {
            states.push(next);
        }
        let ops = if known {
            transaction.ops
        } else {
            announced(transaction.ops)
        };
        let f = if known { Phase::Ok } else { Phase::Info };
        event(transaction.session, f, ops);
    }
    let last = states[states.len() - 1].clone();
    // Now and then not everything is read in the end.
    let read = match random.chance(1, 3) {
        true => random.below(keys + 1),
        false => keys,
    };
    let reads = (0..read).map(|key| Op::read(key, last.get(&key).cloned().unwrap_or_default()));
    event(transactions, Phase::Invoke, Vec::new());
    event(transactions, Phase::Ok, reads.collect());
    if read < keys {
        overlap(&mut events);
    }
    if spoils {
        spoil(random, &mut events);
    }
    events
}

/// Lets all but the last transaction begin before any of them ends: no read among them is a final one, and brute force knows no time between them.
fn overlap(events: &mut [Event]) {
    let others = events.len() - 2;
    events[..others].sort_by_key(|event| event.f != Phase::Invoke);
    for (i, event) in (0..).zip(events) {
        event.i = i;
    }
}

fn announced(ops: Vec<Op>) -> Vec<Op> {
    ops.into_iter()
        .filter(|op| matches!(op, Op::Append(..)))
        .collect()
}

/// Takes the end of a list, exchanges two values of it, or lets a commit have been a rollback.
fn spoil(random: &mut Random, events: &mut [Event]) {
    let at = random.below(events.len() as u64) as usize;
    let last = at + 1 == events.len();
    let event = &mut events[at];
    if event.f == Phase::Ok && !last && random.chance(1, 4) {
        event.f = Phase::Fail;
        return;
    }
    for op in &mut event.ops {
        if let Op::Read(_, Some(values)) = op
            && random.chance(1, 2)
        {
            match random.below(3) {
                0 => drop(values.pop()),
                1 if values.len() > 1 => values.swap(0, 1),
                _ => drop((!values.is_empty()).then(|| values.remove(0))),
            }
        }
    }
}
