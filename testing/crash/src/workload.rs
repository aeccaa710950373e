//! The workloads that are cut: short ones by hand, in which every call counts, and random ones.

use vellum_model::generate::Generator;
use vellum_model::model::Model;
use vellum_model::step::{Begin, Key, Operation, TxNumber, Value};
use vellum_model::{Profile, Step};

/// Writes a history down.
#[derive(Debug, Default)]
pub struct Script {
    steps: Vec<Step>,
    tx: TxNumber,
}

impl Script {
    /// An empty script.
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins the next transaction, which the following operations belong to.
    pub fn begin(&mut self, how: Begin) -> &mut Self {
        self.tx += 1;
        self.steps.push(Step::Begin { tx: self.tx, how });
        self
    }

    /// Begins one whose commit does not wait.
    pub fn begin_async(&mut self) -> &mut Self {
        self.begin(Begin {
            no_wait: true,
            ..Begin::default()
        })
    }

    /// An operation of the current transaction.
    pub fn step(&mut self, operation: Operation) -> &mut Self {
        self.steps.push(Step::Do {
            tx: self.tx,
            operation,
        });
        self
    }

    /// An operation of the transaction before the current one.
    pub fn step_before(&mut self, operation: Operation) -> &mut Self {
        self.steps.push(Step::Do {
            tx: self.tx - 1,
            operation,
        });
        self
    }

    /// An operation of transaction number `tx`.
    pub fn step_of(&mut self, tx: TxNumber, operation: Operation) -> &mut Self {
        self.steps.push(Step::Do { tx, operation });
        self
    }

    /// A step outside of transactions.
    pub fn outside(&mut self, step: Step) -> &mut Self {
        self.steps.push(step);
        self
    }

    /// Creates a table.
    pub fn create(&mut self, table: &str) -> &mut Self {
        self.step(Operation::CreateTable {
            table: table.into(),
        })
    }

    /// Drops a table.
    pub fn drop_table(&mut self, table: &str) -> &mut Self {
        self.step(Operation::DropTable {
            table: table.into(),
        })
    }

    /// Inserts or replaces a row.
    pub fn put(&mut self, table: &str, key: u32, length: u32) -> &mut Self {
        let value = Value {
            length,
            seed: self.steps.len() as u32,
            few: false,
        };
        self.step(Operation::Upsert {
            table: table.into(),
            key: number(key),
            value,
        })
    }

    /// Deletes a row.
    pub fn delete(&mut self, table: &str, key: u32) -> &mut Self {
        self.step(Operation::Delete {
            table: table.into(),
            key: number(key),
        })
    }

    /// Commits.
    pub fn commit(&mut self) -> &mut Self {
        self.step(Operation::Commit { deferred: false })
    }

    /// The history.
    pub fn finish(&mut self) -> Vec<Step> {
        std::mem::take(&mut self.steps)
    }
}

fn number(key: u32) -> Key {
    Key(key.to_be_bytes().to_vec())
}

/// Transactions whose records are more than their slot buffers at first, over few rows, so that no page has to go to the disk before they end: the
/// buffer grows while it goes around.
pub fn long_transactions(length: u32) -> Vec<Step> {
    let mut script = Script::new();
    script.begin(Begin::default()).create("a").commit();
    for round in 0..4 {
        script.begin(Begin::default());
        for n in 0..60 + 30 * round {
            script.put("a", n % 8, length);
        }
        script.commit();
    }
    script.finish()
}

/// Commits that wait and commits that do not, over two tables, with updates and deletes.
pub fn commits() -> Vec<Step> {
    let mut script = Script::new();
    script
        .begin(Begin::default())
        .create("a")
        .create("b")
        .commit();
    for n in 0..6 {
        let how = Begin {
            no_wait: n % 3 == 1,
            ..Begin::default()
        };
        script
            .begin(how)
            .put("a", n, 50)
            .put("b", n, 50)
            .put("a", 100, 8);
        if n > 2 {
            script.delete("b", n - 2);
        }
        script.commit();
    }
    script.finish()
}

/// A transaction that stays open over others, a savepoint, a rollback; checkpoints between them.
pub fn rollbacks() -> Vec<Step> {
    let mut script = Script::new();
    script.begin(Begin::default()).create("a").commit();
    script.begin(Begin::default());
    for n in 0..12 {
        script.put("a", n, 100);
    }
    script.commit();
    // Stays open to the end: a loser.
    script.begin(Begin::default());
    for n in 0..4 {
        script.put("a", n, 100);
    }
    script
        .delete("a", 4)
        .put("a", 50, 300)
        .outside(Step::Checkpoint);
    script
        .begin(Begin::default())
        .put("a", 6, 10)
        .step(Operation::Savepoint { savepoint: 1 });
    script.put("a", 7, 700).delete("a", 8).put("a", 6, 11);
    script
        .step(Operation::RollbackTo { savepoint: 1 })
        .put("a", 9, 90)
        .commit();
    script.outside(Step::Checkpoint);
    script
        .begin(Begin::default())
        .put("a", 10, 10)
        .delete("a", 11)
        .step(Operation::Rollback);
    script.begin(Begin::default()).put("a", 11, 20).commit();
    script.finish()
}

/// Two rows that are updated again and again under an old snapshot: with old versions in the row where that
/// is what the store does. Rows of changing length, deletes, rollbacks and checkpoints among the updates; the snapshot ends
/// before they do; the last writer is a loser.
pub fn hot_rows() -> Vec<Step> {
    let mut script = Script::new();
    script.begin(Begin::default()).create("a").commit();
    script
        .begin(Begin::default())
        .put("a", 1, 100)
        .put("a", 2, 100)
        .commit();
    let old = 3;
    script.begin(Begin {
        read_only: true,
        ..Begin::default()
    });
    for n in 0..16 {
        let how = Begin {
            no_wait: n % 4 != 1,
            ..Begin::default()
        };
        script.begin(how).put("a", 1, 100).put("a", 2, 60 + n % 5);
        match n {
            6 | 10 => drop(script.step(Operation::Rollback)),
            8 => drop(script.delete("a", 2).commit()),
            _ => drop(script.commit()),
        }
        match n {
            5 | 13 => drop(script.outside(Step::Checkpoint)),
            7 => drop(script.outside(Step::Background { units: 3 })),
            11 => drop(script.step_of(old, Operation::Rollback)),
            _ => {}
        }
    }
    script
        .begin(Begin::default())
        .put("a", 1, 100)
        .put("a", 2, 7);
    script.outside(Step::Checkpoint);
    script.finish()
}

/// Tables come and go, with values of up to this length.
pub fn tables(longest: u32) -> Vec<Step> {
    let long = |length: u32| length.min(longest);
    let mut script = Script::new();
    script
        .begin(Begin::default())
        .create("a")
        .create("b")
        .commit();
    script
        .begin(Begin::default())
        .put("a", 1, long(9000))
        .put("b", 1, long(20_000))
        .put("a", 2, 10)
        .commit();
    script.begin(Begin::default()).drop_table("a").commit();
    script.outside(Step::Background { units: 10 });
    script
        .begin(Begin::default())
        .create("a")
        .put("a", 3, long(5000))
        .put("b", 1, 100)
        .commit();
    script.outside(Step::Checkpoint);
    script.begin_async().drop_table("b").commit();
    script
        .outside(Step::Background { units: 10 })
        .outside(Step::Truncate);
    script.begin(Begin::default()).put("a", 4, 10).commit();
    script.finish()
}

/// A table that is filled and dropped, and the file shortened by what it took.
pub fn shrinks() -> Vec<Step> {
    let mut script = Script::new();
    script.begin(Begin::default()).create("a").create("b");
    for n in 0..40 {
        script.put("b", n, 300);
    }
    script.put("a", 1, 10).commit();
    script.begin(Begin::default()).drop_table("b").commit();
    script
        .outside(Step::Checkpoint)
        .outside(Step::Background { units: 50 })
        .outside(Step::Checkpoint)
        .outside(Step::Truncate);
    script.begin(Begin::default()).put("a", 2, 10).commit();
    script.finish()
}

/// A sorted bulk load over many pages, small changes after it.
pub fn bulk_load(rows: u32) -> Vec<Step> {
    let mut script = Script::new();
    script.begin(Begin::default()).create("a").commit();
    let row = |n| {
        (
            number(n * 2),
            Value {
                length: 120,
                seed: n,
                few: false,
            },
        )
    };
    let rows_of = |range: std::ops::Range<u32>| range.map(row).collect();
    script.begin(Begin::default());
    script
        .step(Operation::BulkLoad {
            table: "a".into(),
            rows: rows_of(0..rows),
        })
        .commit();
    script
        .begin(Begin::default())
        .put("a", 3, 120)
        .delete("a", 4)
        .commit();
    script.begin(Begin::default());
    script.step(Operation::BulkLoad {
        table: "a".into(),
        rows: rows_of(rows..rows + 40),
    });
    script.step(Operation::Rollback);
    script.begin(Begin::default()).put("a", 5, 120).commit();
    script.finish()
}

/// A random history of so many steps. What follows from the seed does not depend on a store.
pub fn random(seed: u64, steps: usize, profile: &Profile) -> Vec<Step> {
    let profile = Profile {
        power_cuts: false,
        ..profile.clone()
    };
    let mut model = Model::new(profile.key_limit, None);
    let mut generator = Generator::new(seed, profile);
    let mut history = Vec::with_capacity(steps);
    for _ in 0..steps {
        let step = generator.next(&model);
        match &step {
            Step::Begin { tx, how } => drop(model.begin(*tx, *how)),
            Step::Do { tx, operation } => drop(model.apply(*tx, operation)),
            Step::Reopen => model.reopen(),
            _ => {}
        }
        history.push(step);
    }
    history
}
