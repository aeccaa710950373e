//! Random histories from a seed.
//!
//! A generator looks at the model while it goes (which transactions are open, which rows exist),
//! so that most steps do something; what it makes is a plain list of steps that can be applied
//! again without it. Each history draws its own weights, many of them zero, so that one history
//! is all queues and savepoints and another all long cursors over hot rows: a mix of everything
//! all the time would reach far fewer states.

use crate::draw::{KeyStyle, ValueStyle};
use crate::model::Model;
use crate::step::{Begin, Class, Key, Operation, Step, TxNumber};
use std::collections::VecDeque;
use std::ops::Bound;
use vellum_base::random::Random;

/// What a generator may do, and the limits that it must know.
#[derive(Clone, Debug)]
pub struct Profile {
    /// Page size of the subject.
    pub page_size: u32,
    /// Longest key that is allowed.
    pub key_limit: usize,
    /// How many transactions may be open at once.
    pub open_max: usize,
    /// Whether power cuts happen.
    pub power_cuts: bool,
    /// Whether the database is closed and opened.
    pub reopens: bool,
    /// Whether tables are created and dropped, and bulk loads done, beyond the first tables.
    pub ddl: bool,
    /// Whether tables that are dropped may hold values with pages of their own.
    pub drops_large_values: bool,
    /// Whether transactions are of all classes.
    pub classes: bool,
    /// Whether there are few rows, much updated by short transactions under many snapshots of all ages.
    pub hot: bool,
    /// Whether keys and values are short and of the same few bytes.
    pub words: bool,
    /// Largest number of rows that a bulk load or a burst writes.
    pub burst_max: u64,
}

const TABLES: [&str; 5] = ["first", "second", "third", "with a longer name", "queue"];
const QUEUE: usize = 4;

#[derive(Clone, Copy, Debug)]
enum Kind {
    Get,
    MultiGet,
    Insert,
    Upsert,
    Replace,
    Update,
    Delete,
    Count,
    Scan,
    BulkLoad,
    OpenCursor,
    MoveCursor,
    Savepoint,
    RollbackTo,
    Push,
    Pop,
    InsertBurst,
    DeleteBurst,
    Ddl,
    Tables,
    Odd,
}

/// Kinds with what their weight is at most.
const KINDS: [(Kind, u64); 21] = [
    (Kind::Get, 8),
    (Kind::MultiGet, 4),
    (Kind::Insert, 16),
    (Kind::Upsert, 16),
    (Kind::Replace, 8),
    (Kind::Update, 12),
    (Kind::Delete, 12),
    (Kind::Count, 3),
    (Kind::Scan, 6),
    (Kind::BulkLoad, 1),
    (Kind::OpenCursor, 4),
    (Kind::MoveCursor, 16),
    (Kind::Savepoint, 4),
    (Kind::RollbackTo, 4),
    (Kind::Push, 8),
    (Kind::Pop, 8),
    (Kind::InsertBurst, 1),
    (Kind::DeleteBurst, 1),
    (Kind::Ddl, 2),
    (Kind::Tables, 1),
    (Kind::Odd, 1),
];

struct Active {
    tx: TxNumber,
    /// How often it is chosen.
    weight: u64,
    /// One in so many of its steps ends it.
    length: u64,
}

/// Makes a history step by step.
pub struct Generator {
    random: Random,
    profile: Profile,
    weights: Vec<u64>,
    keys: Vec<KeyStyle>,
    values: ValueStyle,
    active: Vec<Active>,
    pending: VecDeque<Step>,
    next_tx: TxNumber,
    next_name: u32,
    queue_tail: u64,
    /// One in so many steps is not of a transaction.
    quiet: u64,
}

impl Generator {
    /// A generator whose history follows from the seed (and the subject-independent model).
    pub fn new(seed: u64, profile: Profile) -> Self {
        let mut random = Random::new(seed);
        let weights = KINDS.iter().map(|(_, most)| match random.below(3) {
            0 => 0,
            1 => *most,
            _ => random.between(0, *most),
        });
        let mut weights: Vec<u64> = weights.collect();
        for ((kind, _), weight) in KINDS.iter().zip(&mut weights) {
            if !profile.ddl && matches!(kind, Kind::Ddl | Kind::BulkLoad) {
                *weight = 0;
            }
        }
        let mut keys = TABLES
            .map(|_| KeyStyle::draw(&mut random, profile.key_limit))
            .to_vec();
        let mut values = ValueStyle::draw(&mut random, profile.page_size);
        if profile.hot {
            keys.fill(KeyStyle::Numbers([1, 3, 12][random.below(3) as usize]));
            if random.chance(1, 2) {
                values = ValueStyle::Fixed(100);
            }
            for ((kind, _), weight) in KINDS.iter().zip(&mut weights) {
                match kind {
                    Kind::Update => *weight = 24,
                    Kind::Upsert | Kind::Get => *weight = 6,
                    Kind::Delete | Kind::Savepoint | Kind::RollbackTo => *weight = (*weight).min(2),
                    _ => *weight /= 4,
                }
            }
        }
        if profile.words {
            keys.fill(KeyStyle::Prefixes(3));
            values = ValueStyle::Words(3);
        }
        let ddl = KINDS.iter().position(|(kind, _)| matches!(kind, Kind::Ddl));
        let drops = ddl.is_some_and(|ddl| weights[ddl] > 0);
        let values = if drops && !profile.drops_large_values {
            ValueStyle::UpTo(profile.page_size / 5)
        } else {
            values
        };
        let quiet = [10, 30, 100][random.below(3) as usize];
        let mut generator = Self {
            random,
            profile,
            weights,
            keys,
            values,
            active: Vec::new(),
            pending: VecDeque::new(),
            next_tx: 1,
            next_name: 1,
            queue_tail: 0,
            quiet,
        };
        generator.create_first_tables();
        generator
    }

    fn create_first_tables(&mut self) {
        let tx = self.next_tx;
        self.next_tx += 1;
        self.pending.push_back(Step::Begin {
            tx,
            how: Begin::default(),
        });
        for table in [0, 1, QUEUE] {
            let operation = Operation::CreateTable {
                table: TABLES[table].into(),
            };
            self.pending.push_back(Step::Do { tx, operation });
        }
        let operation = Operation::Commit { deferred: false };
        self.pending.push_back(Step::Do { tx, operation });
    }

    /// The next step.
    pub fn next(&mut self, model: &Model) -> Step {
        if let Some(step) = self.pending.pop_front() {
            let over = matches!(&step, Step::Do { tx, .. }
                if model.transaction(*tx).is_none_or(|open| open.is_over()));
            if !over {
                return step;
            }
            // The rest of a burst after a conflict would only be refused.
            self.pending.clear();
        }
        self.active
            .retain(|active| model.transaction(active.tx).is_some());
        if self.random.chance(1, self.quiet) {
            return self.outside();
        }
        let room = self.active.len() < self.profile.open_max;
        if self.active.is_empty() || (room && self.random.chance(1, 6)) {
            return self.begin();
        }
        let total = self.active.iter().map(|active| active.weight).sum();
        let mut chosen = self.random.below(total);
        let active = self.active.iter().find(|active| {
            let found = chosen < active.weight;
            chosen = chosen.saturating_sub(active.weight);
            found
        });
        let active = active.expect("the weights add up");
        let (tx, length) = (active.tx, active.length);
        self.inside(model, tx, length)
    }

    fn begin(&mut self) -> Step {
        let tx = self.next_tx;
        self.next_tx += 1;
        let random = &mut self.random;
        let (weight, length) = match random.below(8) {
            // One that is looked at now and then, among many that come and go.
            0..3 if self.profile.hot => (2, 12),
            _ if self.profile.hot => (16, 2),
            0 => (1, 40),
            1..3 => (4, 60),
            3..6 => (16, 10),
            _ => (16, 3),
        };
        self.active.push(Active { tx, weight, length });
        let read_committed = random.chance(1, 4);
        let read_only = random.chance(1, 10);
        let how = Begin {
            read_committed,
            read_only,
            no_wait: random.chance(2, 3),
            class: if self.profile.classes {
                [
                    Class::Olap,
                    Class::Olap,
                    Class::Auto,
                    Class::Auto,
                    Class::Oltp,
                ][random.below(5) as usize]
            } else {
                Class::Short
            },
        };
        Step::Begin { tx, how }
    }

    fn outside(&mut self) -> Step {
        match self.random.below(32) {
            0..4 => Step::Checkpoint,
            4..6 => Step::Truncate,
            6..8 => Step::Verify,
            8..10 if self.profile.reopens => Step::Reopen,
            10..13 if self.profile.power_cuts => Step::PowerCut {
                seed: self.random.next_u64(),
            },
            13..15 => Step::Backup,
            _ => Step::Background {
                units: self.random.between(1, 12) as u32,
            },
        }
    }

    fn inside(&mut self, model: &Model, tx: TxNumber, length: u64) -> Step {
        let open = model.transaction(tx).expect("the inactive were removed");
        if open.is_over() && self.random.chance(3, 4) {
            let operation = if self.random.chance(1, 8) {
                Operation::Abandon
            } else {
                Operation::Rollback
            };
            return Step::Do { tx, operation };
        }
        if self.random.chance(1, length) {
            if self.profile.hot && length > 2 {
                // An old snapshot looks at everything before it goes.
                let table = TABLES[0].to_owned();
                let range = (Bound::Unbounded, Bound::Unbounded);
                let operation = Operation::Scan {
                    table,
                    range,
                    backward: self.random.chance(1, 2),
                    limit: 1000,
                };
                let end = Operation::Commit { deferred: true };
                self.pending.push_back(Step::Do { tx, operation: end });
                return Step::Do { tx, operation };
            }
            let operation = match self.random.below(10) {
                0 => Operation::Abandon,
                1..3 => Operation::Rollback,
                _ => Operation::Commit {
                    deferred: self.random.chance(1, 6),
                },
            };
            return Step::Do { tx, operation };
        }
        // A few tries, since some kinds find nothing to work on.
        for _ in 0..20 {
            if let Some(operation) = self.operation(model, tx) {
                return Step::Do { tx, operation };
            }
        }
        Step::Do {
            tx,
            operation: Operation::Tables,
        }
    }

    fn kind(&mut self) -> Kind {
        let total: u64 = self.weights.iter().sum();
        if total == 0 {
            return Kind::Upsert;
        }
        let mut chosen = self.random.below(total);
        for ((kind, _), weight) in KINDS.iter().zip(&self.weights) {
            if chosen < *weight {
                return *kind;
            }
            chosen -= weight;
        }
        unreachable!("the weights add up")
    }

    fn operation(&mut self, model: &Model, tx: TxNumber) -> Option<Operation> {
        let open = model.transaction(tx)?;
        let kind = self.kind();
        let index = match kind {
            Kind::Push | Kind::Pop => QUEUE,
            _ if self.random.chance(3, 4) => 0,
            _ => self.random.below(TABLES.len() as u64) as usize,
        };
        let table = TABLES[index].to_owned();
        let style = self.keys[index].clone();
        let random = &mut self.random;
        let mut key = style.key(random);
        // Where rows are sought, half of the keys are of rows that exist.
        let seeks = matches!(
            kind,
            Kind::Get | Kind::Replace | Kind::Update | Kind::Delete | Kind::Upsert | Kind::Insert
        );
        if seeks && random.chance(1, if matches!(kind, Kind::Insert) { 6 } else { 2 }) {
            key = model.some_key_from(&table, &key).unwrap_or(key);
        }
        let value = self.values.value(random);
        Some(match kind {
            Kind::Get => Operation::Get {
                table,
                key,
                into: random.chance(1, 2),
            },
            Kind::MultiGet => {
                let count = random.below(12);
                Operation::MultiGet {
                    table,
                    keys: (0..count).map(|_| style.key(random)).collect(),
                }
            }
            Kind::Insert => Operation::Insert { table, key, value },
            Kind::Upsert => Operation::Upsert { table, key, value },
            Kind::Replace => Operation::Replace { table, key, value },
            Kind::Update => {
                let mut ranges = Vec::new();
                let mut start = 0;
                for _ in 0..random.below(4) {
                    start += random.below(12) as usize;
                    let end = start + random.below(9) as usize;
                    ranges.push((start, end));
                    start = end;
                }
                Operation::Update {
                    table,
                    key,
                    ranges,
                    with: random.between(1, 255) as u8,
                }
            }
            Kind::Delete => Operation::Delete { table, key },
            Kind::Count => Operation::Count {
                table,
                range: style.range(random),
            },
            Kind::Scan => {
                let limit = [1, 5, 1000][random.below(3) as usize];
                let (range, backward) = (style.range(random), random.chance(1, 2));
                Operation::Scan {
                    table,
                    range,
                    backward,
                    limit,
                }
            }
            Kind::BulkLoad => {
                let count = random.between(1, self.profile.burst_max);
                let (first, step) = (random.next_u64() >> 40, random.between(1, 3));
                let row = |i: u64| Key((first + i * step).to_be_bytes().to_vec());
                let rows = (0..count)
                    .map(row)
                    .map(|key| (key, self.values.value(random)));
                Operation::BulkLoad {
                    table,
                    rows: rows.collect(),
                }
            }
            Kind::OpenCursor => {
                if open.cursors().len() > 4 {
                    let old = random.below(open.cursors().len() as u64) as usize;
                    return Some(Operation::CloseCursor {
                        cursor: open.cursors().nth(old)?,
                    });
                }
                self.next_name += 1;
                let (cursor, range) = (self.next_name, style.range(random));
                Operation::OpenCursor {
                    cursor,
                    table,
                    range,
                }
            }
            Kind::MoveCursor => {
                let which = random.below(open.cursors().len().max(1) as u64) as usize;
                let cursor = open.cursors().nth(which)?;
                let count = random.between(1, 6) as usize;
                match random.below(8) {
                    0..3 => Operation::Next { cursor, count },
                    3..5 => Operation::Prev { cursor, count },
                    way @ 5..7 => Operation::Batch {
                        cursor,
                        backward: way == 6,
                    },
                    _ => Operation::Seek { cursor, key },
                }
            }
            Kind::Savepoint => {
                self.next_name += 1;
                Operation::Savepoint {
                    savepoint: self.next_name,
                }
            }
            Kind::RollbackTo => {
                let which = random.below(open.savepoints().len().max(1) as u64) as usize;
                Operation::RollbackTo {
                    savepoint: open.savepoints().nth(which)?,
                }
            }
            Kind::Push => {
                self.queue_tail += 1;
                let key = Key(self.queue_tail.to_be_bytes().to_vec());
                Operation::Insert { table, key, value }
            }
            Kind::Pop => {
                let key = model.some_key_from(&table, &Key::default())?;
                Operation::Delete { table, key }
            }
            Kind::InsertBurst => {
                for _ in 0..random.below(self.profile.burst_max + 1) {
                    let (table, key) = (table.clone(), style.key(random));
                    let value = self.values.value(random);
                    let operation = Operation::Upsert { table, key, value };
                    self.pending.push_back(Step::Do { tx, operation });
                }
                self.pending.pop_front().and_then(operation_of)?
            }
            Kind::DeleteBurst => {
                let mut from = key;
                for _ in 0..random.below(self.profile.burst_max + 1) {
                    let Some(key) = model.some_key_from(&table, &from) else {
                        break;
                    };
                    from = key.clone();
                    from.0.push(0);
                    let operation = Operation::Delete {
                        table: table.clone(),
                        key,
                    };
                    self.pending.push_back(Step::Do { tx, operation });
                }
                self.pending.pop_front().and_then(operation_of)?
            }
            Kind::Ddl => {
                let exists = model.contains_table(&table);
                if exists != random.chance(1, 10) {
                    Operation::DropTable { table }
                } else {
                    Operation::CreateTable { table }
                }
            }
            Kind::Tables => Operation::Tables,
            Kind::Odd => {
                // Longer than a row's key may be, and than an index entry, and than a page.
                let times = [1, 2, 9][random.below(3) as usize];
                let key = Key(vec![b'x'; self.profile.key_limit * times + 1]);
                match random.below(6) {
                    0 => Operation::Get {
                        table,
                        key,
                        into: true,
                    },
                    1 => Operation::Delete { table, key },
                    2 => Operation::Update {
                        table,
                        key,
                        ranges: Vec::new(),
                        with: 1,
                    },
                    3 => Operation::Count {
                        table,
                        range: (Bound::Included(key), Bound::Unbounded),
                    },
                    _ => Operation::Upsert { table, key, value },
                }
            }
        })
    }
}

fn operation_of(step: Step) -> Option<Operation> {
    match step {
        Step::Do { operation, .. } => Some(operation),
        _ => None,
    }
}
