//! Old snapshots beside a run: who holds them, and what they see.
//!
//! Each holder is a thread with a session of its own. It opens a transaction in its second of the run, does what its
//! kind does, and rolls back when the snapshots are to be released, or with the run. One whose snapshot the engine gives up (`--version-policy too-old`) scans no more.
//!
//! The first holder can scan tables at set ages, by turns in the held snapshot and in a fresh one. What the held one sees must never change: every scan of it gives one digest, or the run is inconsistent.
//!
//! Concurrency: holders wait on the run's stage with a deadline, never by sleeping, so that the end of a run ends them.

use crate::Failure;
use crate::cli::{self, Holder};
use crate::control::{Control, Stage};
use crate::median::median;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};
use vellum_workload::digest::{Digest, digest};
use vellum_workload::engine::{
    Direction, Engine, EngineError, Result as EngineResult, Session, Table, TxOptions,
};

/// Seconds between the begins of two holders.
pub(crate) const APART_S: u64 = 1;
/// Scans at one age in each of the two snapshots, at most: the median counts.
const SCANS: usize = 15;
/// No more of them once both took this long.
const SCANS_TIME: Duration = Duration::from_millis(400);
/// A scan that takes minutes waits between rows, but never shorter than this.
const PAUSE_MIN: Duration = Duration::from_millis(1);

/// What the holders of a run do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HoldPlan<'p> {
    pub(crate) kind: Holder,
    pub(crate) holders: u32,
    /// The second of the run in which the first one begins.
    pub(crate) at: u64,
    /// The second in which all of them end; else they end with the run.
    pub(crate) release: Option<u64>,
    /// Ages at which the first one scans, in seconds.
    pub(crate) scan_at: &'p [u64],
    /// What it scans.
    pub(crate) scanned: &'p [Table],
    /// Where a writer puts a row of its own.
    pub(crate) idle: Table,
    /// What a scan that takes minutes reads.
    pub(crate) paced: Table,
    /// The rows that every snapshot sees there.
    pub(crate) paced_rows: u64,
    /// How long that scan takes.
    pub(crate) paced_time: Duration,
}

impl<'p> HoldPlan<'p> {
    /// From flags that were checked by [`cli::Workload::check`]; none without an old snapshot.
    pub(crate) fn new(
        flags: &'p cli::Hold,
        seconds: u64,
        scanned: &'p [Table],
        idle: Table,
        (paced, paced_rows): (Table, u64),
    ) -> Option<Self> {
        let at = flags.hold_snapshot_at?;
        let end = flags.release_snapshot_at.unwrap_or(seconds);
        Some(Self {
            kind: flags.holder,
            holders: flags.holders,
            at,
            release: flags.release_snapshot_at,
            scan_at: &flags.scan_at,
            scanned,
            idle,
            paced,
            paced_rows,
            paced_time: Duration::from_secs(end.saturating_sub(at)),
        })
    }
}

/// Scans at one age of the held snapshot. Times in microseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct AgedScan {
    /// Age of the snapshot in seconds.
    pub(crate) age_s: f64,
    pub(crate) rows: u64,
    /// In the held snapshot: the median of up to fifteen scans, and the first of them.
    pub(crate) held_us: f64,
    pub(crate) held_first_us: f64,
    /// In a fresh snapshot.
    pub(crate) fresh_us: f64,
    pub(crate) fresh_first_us: f64,
}

/// What a holder did.
#[derive(Debug, Default)]
pub(crate) struct Held {
    pub(crate) scans: Vec<AgedScan>,
    /// Whole scans by one that takes minutes.
    pub(crate) slow_scans: u64,
    /// What its snapshot showed that it must not.
    pub(crate) violations: Vec<String>,
}

/// What a run knows about all of its holders.
#[derive(Debug, Default)]
pub(crate) struct HeldSummary {
    pub(crate) scans: Vec<AgedScan>,
    pub(crate) slow_scans: u64,
    pub(crate) violations: Vec<String>,
}

impl HeldSummary {
    pub(crate) fn add(&mut self, held: Held) {
        self.scans.extend(held.scans);
        self.slow_scans += held.slow_scans;
        self.violations.extend(held.violations);
    }
}

/// Holds snapshot number `index` of the plan; `ready` is called when the session is open.
pub(crate) fn hold<E: Engine>(
    engine: &E,
    plan: &HoldPlan<'_>,
    control: &Control,
    index: u32,
    ready: impl FnOnce(),
) -> Result<Held, Failure> {
    let failed = |source| Failure::Engine {
        action: "hold a snapshot".to_owned(),
        source,
    };
    let scans = index == 0 && !plan.scan_at.is_empty();
    let mut holder = Holding {
        plan,
        control,
        held: Held::default(),
        seen: None,
    };
    let mut session = engine.open_session().map_err(failed)?;
    let mut fresh = match scans {
        true => Some(engine.open_session().map_err(failed)?),
        false => None,
    };
    ready();
    control.await_stage(Stage::Running);
    let start = Instant::now();
    let second = |second: u64| start + Duration::from_secs(second);
    if !control.wait_until(second(plan.at + u64::from(index) * APART_S)) {
        return Ok(holder.held);
    }
    let opened = Instant::now();
    match holder.look(&mut session, fresh.as_mut(), index, opened) {
        // What was scanned until then counts, and it holds nothing any more.
        Ok(()) | Err(EngineError::SnapshotTooOld) => {}
        Err(error) => return Err(failed(error)),
    }
    match plan.release {
        Some(release) => _ = control.wait_until(second(release)),
        None => control.await_stage(Stage::Over),
    }
    session.rollback().map_err(failed)?;
    Ok(holder.held)
}

struct Holding<'h> {
    plan: &'h HoldPlan<'h>,
    control: &'h Control,
    held: Held,
    /// What the held snapshot showed first.
    seen: Option<Digest>,
}

impl Holding<'_> {
    /// What it does but for waiting.
    fn look<S: Session>(
        &mut self,
        session: &mut S,
        fresh: Option<&mut S>,
        index: u32,
        opened: Instant,
    ) -> EngineResult<()> {
        self.open(session, index)?;
        if let Some(fresh) = fresh {
            self.scan_at_ages(session, fresh, opened)?;
        }
        if self.plan.kind == Holder::Scan {
            self.scan_slowly(session, opened)?;
        }
        Ok(())
    }

    /// Begins the transaction and lets it do what makes its kind.
    fn open<S: Session>(&self, session: &mut S, index: u32) -> EngineResult<()> {
        let options = match self.plan.kind {
            Holder::Idle | Holder::Writer => TxOptions::READ_WRITE,
            Holder::Olap => TxOptions::ANALYTICAL,
            Holder::Scan => TxOptions::READ_ONLY,
        };
        session.begin(options)?;
        // One row, so that the snapshot is taken whatever an engine puts off.
        session.scan(self.plan.scanned[0], &[], Direction::Forward, |_, _| false)?;
        if self.plan.kind == Holder::Writer {
            session.upsert(
                self.plan.idle,
                format!("holder {index}").as_bytes(),
                b"held",
            )?;
        }
        Ok(())
    }

    fn scan_at_ages<S: Session>(
        &mut self,
        session: &mut S,
        fresh: &mut S,
        opened: Instant,
    ) -> EngineResult<()> {
        // At the beginning always, so not twice where that was asked for.
        let later = self.plan.scan_at.iter().filter(|age| **age > 0);
        for &age in [0].iter().chain(later) {
            if !self.control.wait_until(opened + Duration::from_secs(age)) {
                break;
            }
            let age_s = opened.elapsed().as_secs_f64();
            let Some((held, now)) = self.timed_scans(session, fresh)? else {
                break;
            };
            let found = held.digest;
            let first = *self.seen.get_or_insert(found);
            if found != first {
                self.held.violations.push(format!(
                    "a held snapshot showed {} rows (digest {:016x}) at first and {} ({:016x}) after {age_s:.1} s",
                    first.rows, first.sum, found.rows, found.sum
                ));
            }
            self.held.scans.push(AgedScan {
                age_s: (age_s * 1000.0).round() / 1000.0,
                rows: found.rows,
                held_us: held.median(),
                held_first_us: held.first(),
                fresh_us: now.median(),
                fresh_first_us: now.first(),
            });
        }
        Ok(())
    }

    /// Scans in the open transaction and in a fresh one by turns, so that neither finds in the processor's caches what the other did not: what a
    /// scan leaves there is the same for both. None if the run ended meanwhile. A held scan that shows another thing than the one before is the last.
    fn timed_scans<S: Session>(
        &self,
        session: &mut S,
        fresh: &mut S,
    ) -> EngineResult<Option<(Timed, Timed)>> {
        let begin = Instant::now();
        let (mut held, mut now) = (Timed::default(), Timed::default());
        while held.times.len() < SCANS
            && (held.times.is_empty() || begin.elapsed() < SCANS_TIME)
            && !held.has_changed
        {
            // A row first in both: the snapshot is taken before the time counts, and that page is as near to the one as to the other.
            session.scan(self.plan.scanned[0], &[], Direction::Forward, |_, _| false)?;
            if !self.timed_scan(session, &mut held)? {
                return Ok(None);
            }
            fresh.begin(TxOptions::READ_ONLY)?;
            let first = fresh.scan(self.plan.scanned[0], &[], Direction::Forward, |_, _| false);
            let scanned = first.and_then(|()| self.timed_scan(fresh, &mut now));
            fresh.rollback()?;
            if !scanned? {
                return Ok(None);
            }
        }
        Ok(Some((held, now)))
    }

    /// One scan of all tables; false if the run ended meanwhile.
    fn timed_scan<S: Session>(&self, session: &mut S, timed: &mut Timed) -> EngineResult<bool> {
        let start = Instant::now();
        let mut cut = false;
        let found = digest(session, self.plan.scanned, || {
            cut = self.control.stopped();
            !cut
        })?;
        timed.add(micros(start.elapsed()), found);
        Ok(!cut)
    }

    /// One scan that takes until the release, then another one: no row sooner than its share of the time.
    fn scan_slowly<S: Session>(&mut self, session: &mut S, begin: Instant) -> EngineResult<()> {
        let plan = self.plan;
        let share = plan.paced_time.as_secs_f64() / plan.paced_rows.max(1) as f64;
        let mut whole = true;
        while whole {
            let mut seen = Digest::default();
            session.scan(plan.paced, &[], Direction::Forward, |key, value| {
                seen.add(key, value);
                let due = begin + Duration::from_secs_f64(share * seen.rows as f64);
                let early = due.saturating_duration_since(Instant::now());
                whole = if early < PAUSE_MIN {
                    !self.control.stopped()
                } else {
                    self.control.wait_until(due)
                };
                whole
            })?;
            if !whole {
                break;
            }
            self.held.slow_scans += 1;
            let first = *self.seen.get_or_insert(seen);
            if seen != first || seen.rows != plan.paced_rows {
                self.held.violations.push(format!(
                    "a slow scan saw {} rows (digest {:016x}), {} are there and the first saw {:016x}",
                    seen.rows, seen.sum, plan.paced_rows, first.sum
                ));
            }
            whole = begin.elapsed() < plan.paced_time;
        }
        Ok(())
    }
}

/// The scans of one kind at one age.
#[derive(Default)]
struct Timed {
    /// In microseconds.
    times: Vec<f64>,
    /// What the last scan showed.
    digest: Digest,
    /// Whether that was another thing than what the scan before it showed.
    has_changed: bool,
}

impl Timed {
    fn add(&mut self, time: f64, digest: Digest) {
        self.has_changed = !self.times.is_empty() && self.digest != digest;
        self.times.push(time);
        self.digest = digest;
    }

    fn first(&self) -> f64 {
        self.times[0]
    }

    fn median(&self) -> f64 {
        median(self.times.iter().copied()).expect("who scanned took some time")
    }
}

/// Microseconds, to thousandths.
fn micros(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1000.0
}
