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
        self.put_of(self.tx, table, key, length)
    }

    /// The same in transaction number `tx`.
    pub fn put_of(&mut self, tx: TxNumber, table: &str, key: u32, length: u32) -> &mut Self {
        let value = Value {
            length,
            seed: self.steps.len() as u32,
            few: false,
        };
        let operation = Operation::Upsert {
            table: table.into(),
            key: number(key),
            value,
        };
        self.step_of(tx, operation)
    }

    /// Changes bytes of a row in place.
    pub fn update(&mut self, table: &str, key: u32, range: (usize, usize)) -> &mut Self {
        self.step(Operation::Update {
            table: table.into(),
            key: number(key),
            ranges: vec![range],
            with: 0x55,
        })
    }

    /// Deletes a row.
    pub fn delete(&mut self, table: &str, key: u32) -> &mut Self {
        self.step(Operation::Delete {
            table: table.into(),
            key: number(key),
        })
    }

    /// Commits, and polls until that is durable.
    pub fn commit_polled(&mut self) -> &mut Self {
        self.step(Operation::Commit { deferred: true })
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

/// Three transactions that stay open while others commit: so many lose at most cuts. Their records lie between each other's, and on both sides of
/// a checkpoint. In the end one of them commits, and one is rolled back.
pub fn losers() -> Vec<Step> {
    let mut script = Script::new();
    script.begin(Begin::default()).create("a").commit();
    script.begin(Begin::default());
    for n in 0..24 {
        script.put("a", n, 60);
    }
    script.commit_polled();
    let firsts = [0, 8, 16];
    let open = firsts.map(|first| {
        script.begin(Begin::default()).put("a", first, 60);
        (script.tx, first)
    });
    for round in 1..4 {
        for (tx, first) in open {
            script.put_of(tx, "a", first + round, 60 + round);
            let (table, key) = ("a".into(), number(first + round + 3));
            script.step_of(tx, Operation::Delete { table, key });
        }
        script.begin(Begin::default()).put("a", 30 + round, 40);
        script.commit_polled();
        if round == 2 {
            script.outside(Step::Checkpoint);
        }
    }
    let [(committed, _), (rolled_back, _), _] = open;
    script.step_of(committed, Operation::Commit { deferred: true });
    script.begin(Begin::default()).put("a", 40, 10).commit();
    script.step_of(rolled_back, Operation::Rollback);
    script
        .begin(Begin::default())
        .put("a", 41, 10)
        .commit_polled();
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

/// Rows whose values are chains of several pages: written, replaced by shorter, longer and short ones, changed in place, deleted, their pages given
/// back and taken again, rolled back to a savepoint and altogether, loaded, dropped with their table, in the hands of a loser; the file shortened
/// where they were, and the database closed and opened between.
pub fn large_values(page_size: u32) -> Vec<Step> {
    let pages = |n: u32| n * page_size - page_size / 3;
    let background = Step::Background { units: 30 };
    let mut script = Script::new();
    script.begin(Begin::default()).create("a").create("b");
    script
        .put("a", 1, pages(3))
        .put("a", 2, pages(2))
        .put("a", 3, 20)
        .put("b", 1, pages(4))
        .commit();
    script
        .begin(Begin::default())
        .put("a", 1, pages(2))
        .put("a", 2, pages(4))
        .put("a", 3, pages(2))
        .commit();
    script.begin_async().put("a", 1, 30).delete("a", 2).commit();
    // Their pages are given back, and some of them taken again.
    script.outside(background.clone());
    script
        .begin(Begin::default())
        .put("a", 4, pages(5))
        .update("a", 3, (page_size as usize / 2, page_size as usize + 9))
        .step(Operation::Savepoint { savepoint: 1 });
    script.put("a", 4, pages(2)).put("a", 5, pages(3));
    script
        .step(Operation::RollbackTo { savepoint: 1 })
        .put("a", 5, pages(2))
        .commit();
    script.outside(Step::Checkpoint);
    script
        .begin(Begin::default())
        .put("a", 6, pages(3))
        .delete("a", 4)
        .drop_table("b")
        .step(Operation::Rollback);
    script.outside(Step::Reopen);
    let row = |n| {
        let value = Value {
            length: pages(n),
            seed: n,
            few: false,
        };
        (number(n), value)
    };
    script.begin(Begin::default()).create("c");
    script
        .step(Operation::BulkLoad {
            table: "c".into(),
            rows: (1..4).map(row).collect(),
        })
        .drop_table("b")
        .commit();
    script
        .outside(background)
        .outside(Step::Checkpoint)
        .outside(Step::Truncate);
    // Stays open: a loser.
    script
        .begin(Begin::default())
        .put("a", 1, pages(3))
        .delete("a", 4)
        .outside(Step::Checkpoint);
    script
        .begin(Begin::default())
        .put("c", 2, pages(1))
        .commit();
    script.finish()
}

/// Rows enough to split leaves, in and against their order, and deletes enough to merge them again; a rollback of each; rows that grow where they are.
pub fn splits_and_merges(page_size: u32) -> Vec<Step> {
    let length = page_size / 12;
    let mut script = Script::new();
    script.begin(Begin::default()).create("a").commit();
    script.begin(Begin::default());
    for n in 0..40 {
        script.put("a", n * 3, length);
    }
    script.commit().outside(Step::Checkpoint);
    script.begin(Begin::default());
    for n in (0..20).rev() {
        script.put("a", n * 6 + 1, length);
    }
    script.step(Operation::Rollback);
    script.begin_async();
    for n in (0..12).rev() {
        script
            .put("a", n * 6 + 2, length)
            .put("a", n * 3, length * 2);
    }
    script.commit();
    script.begin(Begin::default());
    for n in 4..40 {
        script.delete("a", n * 3);
    }
    script.commit();
    script
        .outside(Step::Background { units: 50 })
        .outside(Step::Checkpoint);
    script.begin(Begin::default());
    for n in 0..12 {
        script.delete("a", n * 6 + 2);
    }
    script.step(Operation::Rollback);
    script.begin(Begin::default()).put("a", 1, 10).commit();
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
