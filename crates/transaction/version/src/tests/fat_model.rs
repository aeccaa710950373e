//! Fat rows and shortcuts against a model: snapshots of random ages and classes read what they ever read, whatever is
//! written, reverted, pruned, decomposed, swept and collected meanwhile.

use super::world::{World, seed};
use crate::fat::layout::{FatRow, Step};
use crate::shortcut::Shortcut;
use crate::{VersionError, VersionOptions};
use std::collections::BTreeMap;
use vellum_base::random::Random;
use vellum_base::replay;
use vellum_btree::Tree;
use vellum_txn::{Class, Isolation, Savepoint, Transaction};

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;
type Writes = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

/// A reader, and what it sees for ever.
struct Held {
    tx: Transaction,
    sees: Rows,
}

/// A writer under way.
struct Writer {
    tx: Transaction,
    /// What a snapshot writer saw when it began.
    sees: Option<Rows>,
    writes: Writes,
    savepoint: Option<(Savepoint, Writes)>,
}

impl Writer {
    /// What its next statement sees.
    fn view(&self, committed: &Rows) -> Rows {
        let mut rows = self.sees.clone().unwrap_or_else(|| committed.clone());
        for (key, value) in &self.writes {
            match value {
                Some(value) => rows.insert(key.clone(), value.clone()),
                None => rows.remove(key),
            };
        }
        rows
    }
}

struct Run {
    world: World,
    tree: Tree,
    random: Random,
    committed: Rows,
    held: Vec<Held>,
    writers: Vec<Writer>,
    met: Met,
    seed: u64,
}

/// What a run met.
#[derive(Clone, Copy, Default, Debug)]
struct Met {
    /// How often a fat row.
    fat: usize,
    longest: usize,
    /// Old versions in fat rows that are whole, that are ranges on a whole one, whose bodies are copies.
    wholes: usize,
    on_wholes: usize,
    copies: usize,
    /// How often a row with a bound, with a link.
    bounds: usize,
    links: usize,
    /// Deltas that were swept.
    swept: u64,
}

impl Met {
    /// Whether the cases say something: each kind of what there is was met often.
    fn is_enough(&self) -> bool {
        let many = [
            self.fat,
            self.wholes,
            self.on_wholes,
            self.copies,
            self.links,
        ];
        many.iter().all(|met| *met > 100) && self.swept > 100 && self.bounds > 20
    }
}

const KEYS: u64 = 5;

impl Run {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let fat_updates = Some([random.below(4), 30][random.below(2) as usize] as u8);
        let page_size = [4096, 8192][random.below(2) as usize];
        let frames = [24, 64][random.below(2) as usize];
        let options = VersionOptions {
            fat_updates,
            ..VersionOptions::default()
        };
        let mut world = World::with_options(page_size, frames, options);
        world.store.sweeps_parts = true;
        world.store.copies_all = random.below(4) == 0;
        let tree = world.table();
        Self {
            world,
            tree,
            random,
            committed: Rows::new(),
            held: Vec::new(),
            writers: Vec::new(),
            met: Met::default(),
            seed,
        }
    }

    fn step(&mut self) {
        match self.random.below(100) {
            0..5 if self.held.len() < 3 => {
                let class = [Class::Auto, Class::Olap][self.random.below(2) as usize];
                self.held.push(Held {
                    tx: self.world.begin_with(Isolation::Snapshot, class),
                    sees: self.committed.clone(),
                });
                if self.random.below(2) == 0 {
                    // Else writers go by watermarks that do not know it.
                    self.world.manager.pass();
                }
            }
            5..8 if !self.held.is_empty() => {
                let at = self.random.below(self.held.len() as u64) as usize;
                let held = self.held.swap_remove(at);
                self.check(&held.tx, &held.sees);
                self.world.rollback(held.tx);
            }
            8..22 if self.writers.len() < 3 => self.begin(),
            22..75 if !self.writers.is_empty() => self.write(),
            75..84 if !self.writers.is_empty() => self.end(true),
            84..87 if !self.writers.is_empty() => self.end(false),
            87..89 if !self.writers.is_empty() => self.revert_part(),
            89..92 => {
                let key = self.key();
                self.world.decompose(&self.tree, &key);
            }
            92..94 => self.met.swept += self.world.collect(),
            94..98 => {
                for held in &self.held {
                    self.check(&held.tx, &held.sees);
                }
            }
            _ => {
                let fat = self.world.fat_rows(&self.tree);
                self.met.fat += fat.len();
                let longest = fat.iter().map(|(_, bytes)| *bytes).max();
                self.met.longest = self.met.longest.max(longest.unwrap_or(0));
                self.meet_steps();
                for header in self.world.headers(&self.tree) {
                    match header.shortcut {
                        Shortcut::None => {}
                        Shortcut::Absent(_) => self.met.bounds += 1,
                        Shortcut::Link(_) => self.met.links += 1,
                    }
                }
            }
        }
    }

    fn meet_steps(&mut self) {
        let met = &mut self.met;
        self.world.each_row(&self.tree, |_, row| {
            let mut on_whole = false;
            for version in FatRow::decode(row).iter().flat_map(FatRow::old_versions) {
                match version.unwrap().step {
                    Step::Whole(_) => (on_whole, met.wholes) = (true, met.wholes + 1),
                    Step::Copy(_) => (on_whole, met.copies) = (false, met.copies + 1),
                    Step::Ranges(_) => met.on_wholes += usize::from(on_whole),
                    Step::Same => {}
                }
            }
        });
    }

    fn key(&mut self) -> Vec<u8> {
        vec![self.random.below(KEYS) as u8]
    }

    fn check(&self, tx: &Transaction, sees: &Rows) {
        let expected: Vec<_> = sees.clone().into_iter().collect();
        let found = self.world.rows(tx, &self.tree);
        let short = |rows: &[(Vec<u8>, Vec<u8>)]| {
            let short = rows
                .iter()
                .map(|(key, row)| (key[0], row.len(), row.first().copied()));
            short.collect::<Vec<_>>()
        };
        assert!(
            found == expected,
            "seed {}: {:?}, not {:?}",
            self.seed,
            short(&found),
            short(&expected)
        );
        for key in 0..KEYS {
            let key = vec![key as u8];
            let found = self.world.get(tx, &self.tree, &key);
            assert!(found.as_ref() == sees.get(&key), "seed {}", self.seed);
        }
    }

    fn begin(&mut self) {
        let isolation = if self.random.below(2) == 0 {
            Isolation::Snapshot
        } else {
            Isolation::ReadCommitted
        };
        let tx = self.world.begin_at(isolation);
        if self.random.below(2) == 0 {
            // Its stamp is older than those of versions that it will write upon, if it reads committed ones.
            tx.stamp().unwrap();
        }
        self.writers.push(Writer {
            tx,
            sees: (isolation == Isolation::Snapshot).then(|| self.committed.clone()),
            writes: Writes::new(),
            savepoint: None,
        });
    }

    fn write(&mut self) {
        let at = self.random.below(self.writers.len() as u64) as usize;
        let key = self.key();
        // Mostly one row is hot.
        let key = if self.random.below(2) == 0 {
            vec![0]
        } else {
            key
        };
        let length = [0, 9, 40, 40, 41, 200, 300, 900][self.random.below(8) as usize];
        let (byte, kind) = (self.random.below(256) as u8, self.random.below(10));
        let (world, tree) = (&self.world, &self.tree);
        let writer = &mut self.writers[at];
        let sees = writer.view(&self.committed);
        let tx = &writer.tx;
        tx.statement();
        let before = sees.get(&key).cloned();
        let command = tx.commands_drawn();
        let (result, after) = match (kind, before.clone()) {
            (0, _) => (world.delete(tx, tree, &key), None),
            (1..8, Some(mut body)) if body.len() > 8 => {
                let start = self.random.below(body.len() as u64 - 4) as usize;
                let end = (start + 1 + self.random.below(20) as usize).min(body.len());
                let seen = world.get(tx, tree, &key);
                assert_eq!(seen.as_ref(), Some(&body), "seed {}", self.seed);
                body[start..end].fill(byte);
                (world.patch(tx, tree, &key, start..end, byte), Some(body))
            }
            (_, Some(body)) if kind < 9 => {
                let same = vec![byte; body.len()];
                (world.put(tx, tree, &key, &same), Some(same))
            }
            _ => {
                let value = vec![byte; length];
                (world.put(tx, tree, &key, &value), Some(value))
            }
        };
        match result {
            Ok(written) => {
                if written.changed {
                    writer.writes.insert(key.clone(), after.clone());
                }
                assert_eq!(world.get(tx, tree, &key), after, "seed {}", self.seed);
                // A statement that began before it goes on seeing what was there (V47).
                let still = world.get_of_command(tx, tree, &key, command);
                assert_eq!(still, before, "seed {}", self.seed);
                if self.random.below(8) == 0 {
                    writer.savepoint = Some((writer.tx.savepoint(), writer.writes.clone()));
                }
            }
            Err(error) => assert!(matches!(error, VersionError::Conflict), "{error}"),
        }
    }

    fn revert_part(&mut self) {
        let at = self.random.below(self.writers.len() as u64) as usize;
        let writer = &mut self.writers[at];
        if let Some((savepoint, writes)) = &writer.savepoint {
            self.world.rollback_to(&writer.tx, savepoint);
            writer.writes.clone_from(writes);
        }
    }

    fn end(&mut self, commit: bool) {
        let at = self.random.below(self.writers.len() as u64) as usize;
        let writer = self.writers.swap_remove(at);
        if !commit {
            self.world.rollback(writer.tx);
            return;
        }
        for (key, value) in writer.writes {
            match value {
                Some(value) => self.committed.insert(key, value),
                None => self.committed.remove(&key),
            };
        }
        self.world.commit(writer.tx);
    }

    fn finish(mut self) -> Met {
        while !self.writers.is_empty() {
            self.end(false);
        }
        for held in std::mem::take(&mut self.held) {
            self.check(&held.tx, &held.sees);
            self.world.rollback(held.tx);
        }
        let tx = self.world.begin();
        self.check(&tx, &self.committed);
        self.world.rollback(tx);
        self.world.collect();
        assert_eq!(self.world.deltas(), 0, "seed {}", self.seed);
        for key in 0..KEYS {
            self.world.decompose(&self.tree, &[key as u8]);
        }
        assert_eq!(
            self.world.deltas(),
            0,
            "seed {}: nobody needs them",
            self.seed
        );
        self.met
    }
}

#[test]
fn prop_every_snapshot_reads_fat_rows_as_a_model_says() {
    const CASES: u64 = 40;
    let seed = seed("prop_every_snapshot_reads_fat_rows");
    let mut all = Met::default();
    for case in 0.. {
        if replay::ends(case, CASES, || all.is_enough()) {
            break;
        }
        let mut run = Run::new(seed.wrapping_add(case));
        for _ in 0..1500 {
            run.step();
        }
        let met = run.finish();
        all = Met {
            fat: all.fat + met.fat,
            longest: all.longest.max(met.longest),
            wholes: all.wholes + met.wholes,
            on_wholes: all.on_wholes + met.on_wholes,
            copies: all.copies + met.copies,
            bounds: all.bounds + met.bounds,
            links: all.links + met.links,
            swept: all.swept + met.swept,
        };
    }
    println!("{all:?}");
    assert!(
        replay::rounds(CASES) < CASES || all.is_enough(),
        "fat rows, versions of all kinds, shortcuts, swept deltas: {all:?}"
    );
}
