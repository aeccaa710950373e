//! Sessions beside each other, over power cuts and kills.
//!
//! A run has lives. In each the database is opened on what the life before left, its sessions run at the same time until they have done their
//! share or the disk is cut (or the process killed), and what was under way has an end that nobody knows. Then it is verified. In the end
//! somebody reads everything, and the workload judges what was recorded.
//!
//! Not deterministic: threads are the machine's. The seed replays what each session wants to do, and how the disk treats what was not synced.

use crate::client::{Client, Gone, Life};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use vellum::{Config, Database, Error, Experiment};
use vellum_base::random::Random;
use vellum_crash::kill::run_command_and_kill;
use vellum_history::{Event, Phase, Recorder};
use vellum_io::{PowerCut, SimulatedDirectory};

/// What clients do, and what must come of it.
pub trait Workload: Sync {
    /// Makes the tables that are not there.
    ///
    /// # Errors
    /// What the database says.
    fn prepare(&self, database: &Database) -> vellum::Result<()>;

    /// Does one thing.
    ///
    /// # Errors
    /// What ends the session.
    fn step(&self, client: &mut Client<'_>) -> Result<(), Gone>;

    /// Reads everything, when nobody else is there. `events` is what was recorded.
    ///
    /// # Errors
    /// What ends the session.
    fn read_all(&self, client: &mut Client<'_>, events: &[Event]) -> Result<(), Gone>;

    /// Judges what was recorded; what it says is for people.
    ///
    /// # Errors
    /// What is wrong.
    fn judge(&self, events: Vec<Event>) -> Result<String, String>;
}

/// How much is done.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Sessions at the same time.
    pub sessions: usize,
    /// How many of them hold snapshots most of the time, and look into them again and again: so many are there at once, of ages that are random.
    pub holders: usize,
    /// Steps of a session in a life.
    pub steps: u64,
    /// Lives; each but the last is cut.
    pub lives: u64,
    /// Where everything random comes from.
    pub seed: u64,
    /// How the version store is to be set; by the seed if it does not matter. Over power cuts only.
    pub versions: Option<Versions>,
}

/// Settings of the version store.
#[derive(Clone, Copy, Debug)]
pub struct Versions {
    /// Which parts are on.
    pub experiment: Experiment,
    /// When transactions are promoted.
    pub promote_after_ticks: u64,
}

impl Plan {
    fn config(&self) -> Config {
        let mut config = config(self.seed);
        if let Some(versions) = self.versions {
            config = config.experiment(versions.experiment);
            config.promote_after_ticks = versions.promote_after_ticks;
            // Often enough that rows do turn fat, where that part is on.
            config.versions.fat_updates = [Some(0), Some(2)][(self.seed % 2) as usize];
        }
        config
    }
}

/// Settings in which everything happens often: few frames, small segments, frequent checkpoints. How few, whether and how early transactions are
/// promoted, which parts of the version store are on, and when rows turn fat follows from a number.
pub fn config(seed: u64) -> Config {
    let mut random = Random::new(seed ^ 0x5e77_1465);
    let frames = [40, 80, 80, 600][random.below(4) as usize];
    let mut config = Config::default().page_size(4096).pool_bytes(frames * 4096);
    config.versions.fat = random.chance(3, 4);
    config.versions.fat_updates = [None, Some(0), Some(2), Some(16)][random.below(4) as usize];
    config.versions.graveyard = random.chance(7, 8);
    config.versions.shortcuts = random.chance(3, 4);
    config.promote_after_ticks = [20, 20, 200, 200, 100_000, u64::MAX][random.below(6) as usize];
    config.slots_max = 16;
    config.slot_buffer_bytes = 64 << 10;
    config.log_segment_bytes = 256 << 10;
    config.log_bytes_max = 8 << 20;
    config.checkpoint_log_bytes = 512 << 10;
    config.data_bytes_max = 1 << 30;
    config
}

/// Values of a life do not come again in another.
const VALUES_A_LIFE: u64 = 1 << 24;
/// Bytes of events that a child says before it is killed, at most; and of the last child, at least.
const SAID: u64 = 40_000;
/// Transactions that a run over kills must have acknowledged: a few hundred are in what the last child says.
const LEAST_OVER_KILLS: usize = 50;
/// Mutating calls of the disk before it is cut, at most.
const CALLS_MAX: u64 = 3000;

/// Ends a life when it is dropped.
struct Ends<'l>(&'l Life);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Runs one life on an open database. A session may fail as at a cut disk where `is_cut` says, when it has failed, that the disk is; every other
/// failure is the database's.
///
/// # Errors
/// What ended a session that nothing excuses.
pub fn live(
    workload: &dyn Workload,
    database: &Database,
    recorder: &Recorder,
    life: u64,
    plan: Plan,
    random: &mut Random,
    is_cut: &(dyn Fn() -> bool + Sync),
) -> Result<(), String> {
    let shared = Life::new(life * VALUES_A_LIFE);
    let seeds: Vec<u64> = (0..plan.sessions).map(|_| random.next_u64()).collect();
    let run = |number: usize, seed: u64| -> Result<(), String> {
        // Who waits for others would wait for ever, also if this one panics.
        let _end = Ends(&shared);
        let mut client = Client {
            database,
            life: &shared,
            session: recorder.session(),
            random: Random::new(seed),
            number,
            holders: plan.holders,
        };
        let mut step = 0;
        loop {
            if step == plan.steps || shared.is_over() {
                break Ok(());
            }
            step += 1;
            if let Err(Gone(error)) = workload.step(&mut client) {
                // Asked at once: an error before the cut is not the cut's.
                let of_the_cut = match &error {
                    Error::NotDurable { cause } => &**cause,
                    error => error,
                };
                let excused = matches!(of_the_cut, Error::Io { .. } | Error::Poisoned) && is_cut();
                break match excused {
                    true => Ok(()),
                    false => Err(format!("session {number} ended with: {error}")),
                };
            }
        }
    };
    std::thread::scope(|scope| {
        let start = |(number, seed): (usize, u64)| scope.spawn(move || run(number, seed));
        let threads: Vec<_> = seeds.into_iter().enumerate().map(start).collect();
        let lost = |_| Err("a session panicked".to_owned());
        let ends = threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(lost));
        // All are joined before the first complaint is told.
        ends.collect::<Vec<_>>().into_iter().collect()
    })
}

/// Whether the database is sound.
///
/// # Errors
/// What is wrong with it.
pub fn verified(database: &Database) -> Result<(), String> {
    let report = database
        .verify()
        .map_err(|error| format!("cannot be verified: {error}"))?;
    if report.is_sound() {
        return Ok(());
    }
    Err(format!("is not sound: {:?}", report.findings))
}

fn read_all(
    workload: &dyn Workload,
    database: &Database,
    recorder: &Recorder,
    life: u64,
) -> Result<(), String> {
    let shared = Life::new(life * VALUES_A_LIFE);
    let mut client = Client {
        database,
        life: &shared,
        session: recorder.session(),
        random: Random::new(life),
        number: 0,
        holders: 0,
    };
    let events = recorder.events();
    let read = workload.read_all(&mut client, &events);
    read.map_err(|Gone(error)| format!("the final read failed: {error}"))
}

/// Runs a workload from threads on a simulated disk that loses its power at the end of every life but the last.
///
/// # Errors
/// What is wrong, with the place where the history was kept.
pub fn over_power_cuts(workload: &dyn Workload, plan: Plan) -> Result<String, String> {
    let mut random = Random::new(plan.seed);
    let recorder = Recorder::new();
    let mut disk = SimulatedDirectory::new();
    let result = (|| {
        for life in 1..=plan.lives {
            let last = life == plan.lives;
            let database = Database::open_directory(Arc::new(disk.clone()), plan.config())
                .map_err(|error| format!("life {life} does not begin: {error}"))?;
            // What the cut before left, and the recovery from it.
            verified(&database).map_err(|what| format!("life {life} begins: {what}"))?;
            workload
                .prepare(&database)
                .map_err(|error| error.to_string())?;
            if !last {
                let calls = random.between(10, CALLS_MAX);
                disk.cut_after(disk.mutating_calls() + calls);
            }
            live(
                workload,
                &database,
                &recorder,
                life,
                plan,
                &mut random,
                &|| disk.is_cut(),
            )?;
            if last {
                verified(&database)?;
                read_all(workload, &database, &recorder, life)?;
                return database.close().map_err(|error| error.to_string());
            }
            let kinds = PowerCut::KINDS;
            let kind = kinds[random.below(kinds.len() as u64) as usize];
            let found = disk.power_cut(random.next_u64(), kind);
            drop(database);
            disk = found;
        }
        Ok(())
    })();
    // The last life is whole: some session does all its steps, and most of them are committed.
    let least = usize::try_from(plan.steps / 2).unwrap_or(usize::MAX);
    conclude(result, &recorder, least, |events| workload.judge(events))
}

/// Runs a workload in a process of its own on a real directory, which is killed at the end of every life; this process looks between them and in
/// the end.
///
/// # Errors
/// What is wrong, with the place where the history was kept.
pub fn over_kills(
    workload: &dyn Workload,
    name: &str,
    child: &Path,
    directory: &Path,
    plan: Plan,
) -> Result<String, String> {
    let mut random = Random::new(plan.seed);
    let recorder = Recorder::new();
    let result = (|| {
        for life in 1..=plan.lives {
            let mut command = Command::new(child);
            command.arg(name).arg(directory);
            command.args([life, plan.sessions as u64, random.next_u64()].map(|n| n.to_string()));
            let after = Duration::from_micros(random.between(5_000, 300_000));
            let last = life == plan.lives;
            // Half of them by what they have done, the others by the clock: in the middle of beginning, too.
            let said = match (last, random.chance(1, 2)) {
                (true, _) => SAID,
                (false, true) => random.below(SAID),
                (false, false) => 0,
            };
            let said = run_command_and_kill(command, after, OPENED.len() + said as usize)
                .map_err(|error| error.to_string())?;
            if !said.complaints.is_empty() {
                return Err(format!("life {life}: {}", said.complaints));
            }
            let events = said
                .bytes
                .strip_prefix(OPENED)
                .ok_or("the child did not open it")?;
            // The last line may have been cut off.
            for line in events.split_inclusive(|byte| *byte == b'\n') {
                if line.ends_with(b"\n") {
                    let event = serde_json::from_slice(line).map_err(|error| error.to_string())?;
                    recorder.take(life, event);
                }
            }
            recorder.crashed();
            // Sometimes the next child recovers and verifies, not this process.
            if last || random.chance(1, 2) {
                let database =
                    Database::open(directory, config(plan.seed).background_threads(false))
                        .map_err(|error| format!("does not open after life {life}: {error}"))?;
                verified(&database)?;
                if last {
                    read_all(workload, &database, &recorder, life)?;
                }
                database.close().map_err(|error| error.to_string())?;
            }
        }
        Ok(())
    })();
    conclude(result, &recorder, LEAST_OVER_KILLS, |events| {
        workload.judge(events)
    })
}

/// What the child says first.
pub const OPENED: &[u8] = b"opened\n";

/// Judges what was recorded, also if something went wrong before; keeps the history of what is wrong. A run in which fewer than `least` transactions were
/// acknowledged has shown nothing, and is wrong, too.
///
/// # Errors
/// What is wrong, with the place of the history.
pub fn conclude(
    result: Result<(), String>,
    recorder: &Recorder,
    least: usize,
    judge: impl FnOnce(Vec<Event>) -> Result<String, String>,
) -> Result<String, String> {
    let events = recorder.events();
    let acknowledged = events.iter().filter(|event| event.f == Phase::Ok).count();
    let judged = match (result, judge(events)) {
        (Ok(()), Ok(_)) if acknowledged < least => Err(format!(
            "only {acknowledged} transactions were acknowledged, {least} at least should be"
        )),
        (Ok(()), judged) => judged,
        (Err(what), Ok(_)) => Err(what),
        // What ended the run, and what clients saw before.
        (Err(what), Err(judged)) => Err(format!("{what}\n{judged}")),
    };
    judged.map_err(|what| {
        let file = std::env::temp_dir().join(format!("history-{}.jsonl", Random::fresh_seed()));
        let kept = std::fs::File::create(&file)
            .and_then(|out| recorder.write(std::io::BufWriter::new(out)));
        match kept {
            Ok(()) => format!("{what}\nthe history is in {}", file.display()),
            Err(error) => format!("{what}\nthe history could not be kept: {error}"),
        }
    })
}
