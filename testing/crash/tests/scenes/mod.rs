//! The scenes in which syncs are taken away.
//!
//! Most syncs are missed in a plain workload or in the recovery after a power cut. The others keep something in order that only a certain past
//! can show: a process that was killed and has left to the kernel what the next one builds on; a power cut that tore a page and left the next
//! half of the double-write area; segments of another size; a full disk; a database that was closed and is only looked at.

use crate::backups::Source;
use crate::engine::{self, KEY_LIMIT, open};
use std::cell::Cell;
use std::sync::Arc;
use vellum::Config;
use vellum_crash::power::Open;
use vellum_crash::scene::Scene;
use vellum_crash::syncs::{Place, Wreck, half_made, syncs_of, wreck, wrecks};

use vellum_crash::workload::{self, Script};
use vellum_io::{Directory, Keep, PowerCut, SimulatedDirectory, Torn};
use vellum_model::engine::EngineSubject;
use vellum_model::step::Begin;
use vellum_model::{Step, Subject};

type Build = Box<dyn Fn() -> Option<Scene<'static>>>;

/// A scene that is built when it is wanted; `None` if its past does not come about.
pub struct Named {
    pub name: String,
    pub build: Build,
}

fn named(name: impl Into<String>, build: impl Fn() -> Option<Scene<'static>> + 'static) -> Named {
    let (name, build) = (name.into(), Box::new(build));
    Named { name, build }
}

const WORKLOADS: [&str; 4] = ["commits", "rollbacks", "tables", "bulk load"];

fn history(name: &str) -> Vec<Step> {
    match name {
        "commits" => workload::commits(),
        "rollbacks" => workload::rollbacks(),
        "tables" => workload::tables(engine::INLINE_VALUE),
        "bulk load" => workload::bulk_load(300),
        other => panic!("no workload {other}"),
    }
}

/// Recoveries from power cuts that are spread over a workload.
const SPREAD: u64 = 3;
/// Of the syncs of a place, so many are the ones in which a process is killed.
const KILLS: u64 = 4;
/// Of the writes to the double-write area, so many are cut.
const TORN: u64 = 8;

fn works<T>(result: Result<T, String>) -> T {
    result.expect("the scene is right without lies")
}

/// Every scene, those that find most first.
pub fn all() -> Vec<Named> {
    let mut all = Vec::new();
    for name in WORKLOADS {
        all.push(named(name, move || {
            Some(Scene::workload(history(name), KEY_LIMIT, &open))
        }));
        for nth in 0..SPREAD {
            let title = format!("recovery {nth} of {name}");
            all.push(named(title, move || {
                let spread = wrecks(&history(name), KEY_LIMIT, SPREAD, 1, &open);
                let wreck = works(spread).into_iter().nth(nth as usize);
                wreck.map(|wreck| Scene::recovery(wreck, &open))
            }));
        }
        let title = format!("recovery of {name} killed while it makes a segment");
        all.push(named(title, move || {
            let half = works(half_made(&history(name), KEY_LIMIT, &open));
            half.map(|wreck| Scene::recovery(wreck, &open))
        }));
    }
    all.push(named("backup", || Some(backup())));
    all.push(named("a large value, then a full disk", || {
        Some(Scene::workload_then_full(
            large_value(),
            KEY_LIMIT,
            OPEN_ROOMY,
        ))
    }));
    for name in ["commits", "rollbacks"] {
        for (place, is_place) in KILLED_IN {
            for nth in 0..KILLS {
                let title = format!("recovery of {name} killed in {place}, {nth}");
                all.push(named(title, move || {
                    let wreck = killed_in(&history(name), is_place, nth)?;
                    Some(Scene::recovery(wreck, &open).with_seeds(4))
                }));
            }
        }
        all.push(named(
            format!("recovery of {name} killed in its last checkpoint"),
            move || killed_twice(&history(name)),
        ));
        all.push(named(
            format!("recovery of {name} with larger segments"),
            move || {
                let spread = works(wrecks(&history(name), KEY_LIMIT, SPREAD, 1, &open));
                let wreck = spread.into_iter().next_back();
                wreck.map(|wreck| Scene::recovery(wreck, OPEN_LARGER).with_seeds(4))
            },
        ));
        all.push(named(format!("{name}, closed and looked at"), move || {
            let judge = looked_at;
            let history = history(name);
            Some(Scene::workload_judged_by(history, KEY_LIMIT, &open, judge))
        }));
    }
    for nth in 0..KILLS {
        let title = format!("recovery of many leaves killed in write_half, {nth}");
        all.push(named(title, move || {
            let wreck = killed_in(&many_leaves(), is_half, nth)?;
            Some(Scene::recovery(wreck, &open).with_seeds(4))
        }));
    }
    for nth in 0..TORN {
        let title = format!("recovery of many leaves cut in write_half, {nth}");
        all.push(named(title, move || torn(&many_leaves(), nth)));
    }
    all
}

type IsPlace = fn(&Place) -> bool;

/// What the next process finds in the kernel's memory only.
const KILLED_IN: [(&str, IsPlace); 2] = [
    ("sync_all", |place| place.function.ends_with(": sync_all")),
    ("write_atomic", is_exchange),
];

fn is_half(place: &Place) -> bool {
    place.function.ends_with(": write_half")
}

/// The last sync of a replacement of the control file.
fn is_exchange(place: &Place) -> bool {
    place.function.contains(": write_atomic") && place.sync.0 == place.sync.1
}

/// The calls that are syncs of a place.
fn calls(history: &[Step], is_place: IsPlace) -> Vec<u64> {
    let syncs = works(syncs_of(history, KEY_LIMIT, &open));
    let found = syncs.iter().filter(|(place, _)| is_place(place));
    let mut calls: Vec<u64> = found.flat_map(|(_, calls)| calls.iter().copied()).collect();
    calls.sort_unstable();
    calls
}

/// A process that is killed in one of the syncs of a place, these spread over the workload, the last one first.
fn killed_in(history: &[Step], is_place: IsPlace, nth: u64) -> Option<Wreck> {
    let calls = calls(history, is_place);
    let back = calls.len() as u64 * nth / KILLS;
    let call = *calls.iter().rev().nth(back as usize)?;
    let killed = SimulatedDirectory::process_kill;
    Some(works(wreck(history, KEY_LIMIT, &open, call, killed)))
}

/// A process that is killed in the middle of its work, and the next one in the checkpoint that ends its recovery: the log of the first one is needed by
/// the control file on the disk, and free by the one in the kernel's memory.
fn killed_twice(history: &[Step]) -> Option<Scene<'static>> {
    let first = killed_in(history, |place| place.function.ends_with(": sync_all"), 1)?;
    let recovery = Scene::recovery(works(first.with(|_| Ok(()))), &open);
    let syncs = works(recovery.syncs());
    let mut exchanges = syncs.iter().filter(|(place, _)| is_exchange(place));
    let call = *exchanges.next()?.1.first()?;
    let second = works(first.killed_at(call, &open));
    Some(Scene::recovery(second, &open).with_seeds(4))
}

/// A power cut while a half of the double-write area is written.
fn torn(history: &[Step], nth: u64) -> Option<Scene<'static>> {
    const SEEDS: u64 = 300;
    const KIND: PowerCut = PowerCut {
        keep: Keep::Random,
        torn: Torn::Block4096,
        reorder: true,
    };
    let calls = calls(history, is_half);
    // Those of a checkpoint in the middle: there is more to be redone.
    let call = *calls.get(calls.len() / 2 + nth as usize)?;
    let needs = Cell::new(false);
    let cut = |disk: &SimulatedDirectory| {
        let kernel = disk.process_kill();
        let mut cuts = (0..SEEDS).map(|seed| disk.power_cut(seed, KIND));
        let found = cuts.find(|found| works(needs_the_older_half(&kernel, found)));
        needs.set(found.is_some());
        found.unwrap_or(kernel)
    };
    let wreck = works(wreck(history, KEY_LIMIT, &open, call, cut));
    needs
        .get()
        .then(|| Scene::recovery(wreck, &open).with_seeds(4))
}

/// True if a cut has left the header of the newer half, so that recovery goes on in the other, and lost a page whose only image is in that one.
fn needs_the_older_half(
    kernel: &SimulatedDirectory,
    found: &SimulatedDirectory,
) -> Result<bool, String> {
    const SIZE: usize = engine::PAGE_SIZE;
    // Layout: buffer/src/geometry.rs, double_write.rs. A batch is a quarter of the pool.
    const BATCH: usize = engine::FRAMES / 4;
    let read = |disk: &SimulatedDirectory| disk.read_all("data").map_err(|error| error.to_string());
    let (kernel, found) = (read(kernel)?, read(found)?);
    let page = |of: usize| of * SIZE..(of + 1) * SIZE;
    let number = |at: usize| {
        let bytes = kernel[at..at + 8].try_into();
        u64::from_le_bytes(bytes.unwrap_or_default()) as usize
    };
    let halves = [2, 3 + BATCH];
    let batch = |half: usize| number(half * SIZE + 32);
    let images = |half: usize| {
        let count = kernel[half * SIZE + 40];
        (0..usize::from(count)).map(move |n| (half + 1 + n, number(half * SIZE + 64 + 12 * n)))
    };
    let [older, newer] = match batch(halves[0]) < batch(halves[1]) {
        true => halves,
        false => [halves[1], halves[0]],
    };
    let kept = |of: usize| found.get(page(of)) == kernel.get(page(of));
    let only_there = |of: usize| images(newer).all(|(_, other)| other != of);
    Ok(kept(newer)
        && kept(older)
        && images(older).any(|(image, of)| kept(image) && !kept(of) && only_there(of)))
}

/// More leaves than two batches have pages, changed and written by checkpoints again and again: the image of a page that a batch has is not in the one
/// before, nor are its records behind the checkpoint.
fn many_leaves() -> Vec<Step> {
    const LEAVES: u32 = 20;
    const ROWS: u32 = 5;
    let mut script = Script::new();
    script.begin(Begin::default()).create("a");
    for row in 0..LEAVES * ROWS {
        script.put("a", row, 700);
    }
    script.commit().outside(Step::Checkpoint);
    for round in 0..3 {
        script.begin(Begin::default());
        for leaf in 0..LEAVES {
            script.put("a", leaf * ROWS + round, 700);
        }
        script.commit().outside(Step::Checkpoint);
    }
    script.finish()
}

fn open_larger(disk: &SimulatedDirectory) -> Result<Box<dyn Subject>, String> {
    let mut config = engine::config();
    config.log_segment_bytes *= 2;
    config.log_bytes_max *= 2;
    config.checkpoint_log_bytes *= 2;
    opened(disk, &config)
}

/// The engine with segments of twice the size: those that are there are of another setting.
const OPEN_LARGER: Open<'static> = &open_larger;

/// A value for which the file grows.
fn large_value() -> Vec<Step> {
    let mut script = Script::new();
    script.begin(Begin::default()).create("a").commit();
    let pages = 60 * engine::PAGE_SIZE as u32;
    script.begin(Begin::default()).put("a", 1, pages).commit();
    script.begin(Begin::default()).put("a", 2, 10).commit();
    script.finish()
}

fn open_roomy(disk: &SimulatedDirectory) -> Result<Box<dyn Subject>, String> {
    let mut config = engine::config();
    config = config.pool_bytes(256 * engine::PAGE_SIZE as u64);
    opened(disk, &config)
}

/// The engine with a pool that no page has to leave: nothing but what made the file larger syncs it.
const OPEN_ROOMY: Open<'static> = &open_roomy;

fn opened(disk: &SimulatedDirectory, config: &Config) -> Result<Box<dyn Subject>, String> {
    EngineSubject::open(disk, config)
        .map(|subject| Box::new(subject) as Box<dyn Subject>)
        .map_err(|error| format!("{error:?}"))
}

/// What is there is sound for who only reads, and repairs nothing.
fn looked_at(found: &SimulatedDirectory) -> Result<(), String> {
    let report = vellum::verify_directory(Arc::new(found.clone()));
    let report = report.map_err(|error| format!("cannot be verified: {error:?}"))?;
    match report.is_sound() {
        true => Ok(()),
        false => Err(format!("is not sound: {:?}", report.findings)),
    }
}

fn backup() -> Scene<'static> {
    let source = Arc::new(Source::new());
    Scene::new(SimulatedDirectory::new(), move |target| {
        let done = match source.back_up(target) {
            Ok(()) => true,
            Err(_) if target.is_cut() => false,
            Err(what) => return Err(what),
        };
        let source = source.clone();
        Ok(Box::new(move |found| source.judge(found, done)))
    })
    .with_seeds(4)
}
