//! What engines are compared by: figures of runs, their medians, and how Vellum stands.
//!
//! Latencies are those of one kind of transactions: what another kind takes is another figure, so that no engine's deliveries are
//! compared with another one's payments. Where a workload has one kind, it is not named.

use crate::engines::EngineName;
use crate::median::median;
use crate::report::{Summary, rounded};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// A figure of a run.
pub(super) struct Metric {
    /// Its key.
    pub(super) name: String,
    pub(super) unit: String,
    /// More is better.
    pub(super) grows: bool,
    /// It has a picture of its own; others stand in the table only.
    pub(super) drawn: bool,
    of: Box<dyn Fn(&Summary) -> Option<f64>>,
}

/// The mean over the run.
pub(super) const TX_PER_S: &str = "tx_per_s";
/// Where a snapshot is held, the mean before it.
pub(super) const BEFORE_HOLD: &str = "tx_per_s_before_hold";

/// All rates that a workload may have: key, unit, what it is of a run.
const RATES: [(&str, &str, fn(&Summary) -> Option<f64>); 8] = [
    // A load is one transaction, a scan is counted in rows.
    (TX_PER_S, "transactions a second", |summary| {
        summary.rows_per_s.is_none().then_some(summary.tx_per_s)
    }),
    (
        "succeeded_per_s",
        "transactions a second that found what they wanted",
        |summary| summary.succeeded_per_s,
    ),
    ("rows_per_s", "rows a second", |summary| summary.rows_per_s),
    (
        "long_rows_per_s",
        "rows a second of long readers beside",
        |summary| summary.long_rows_per_s,
    ),
    (
        "updates_per_s",
        "updates a second beside the scans",
        |summary| summary.updates_per_s,
    ),
    (
        BEFORE_HOLD,
        "transactions a second before the snapshot",
        |summary| summary.tx_per_s_before_hold,
    ),
    (
        "held_ratio",
        "rate beside a held snapshot over the rate before",
        |summary| summary.held_ratio,
    ),
    (
        "release_min_ratio",
        "slowest second after the snapshot has ended over the median second without one",
        |summary| summary.release_min_ratio,
    ),
];

/// Latencies of each kind: key, how many of how many are as fast, whether it is drawn.
const LATENCIES: [(&str, &str, bool); 3] = [
    ("p50_us", "median", false),
    (P99, "99 of 100", true),
    ("p999_us", "999 of 1000", false),
];
const P99: &str = "p99_us";

/// How a metric counts where it is asked by which figure Vellum is furthest behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counts {
    /// A rate, in what a second.
    Rate,
    /// A rate over a rate.
    Ratio,
    /// The median or the 99th percentile of a kind of transactions, in µs.
    Latency,
    /// Not: p99.9 of a short run is that of a few transactions.
    Not,
}

impl Counts {
    /// Of a metric, by its key.
    pub(crate) fn of(metric: &str) -> Self {
        match metric.split(' ').next() {
            Some("held_ratio" | "release_min_ratio") => Self::Ratio,
            Some("p50_us" | P99) => Self::Latency,
            Some("p999_us") => Self::Not,
            _ => Self::Rate,
        }
    }
}

/// What these runs have.
pub(super) fn metrics<'r>(runs: impl Iterator<Item = &'r Summary> + Clone) -> Vec<Metric> {
    let rates = RATES.into_iter().map(|(name, unit, of)| Metric {
        name: name.to_owned(),
        unit: unit.to_owned(),
        grows: true,
        drawn: true,
        of: Box::new(of),
    });
    let kinds: BTreeSet<&'static str> = runs.clone().flat_map(Summary::timed).collect();
    let alone = kinds.len() == 1;
    let latencies = LATENCIES.into_iter().flat_map(|(name, share, drawn)| {
        kinds.iter().copied().map(move |kind| Metric {
            name: if alone {
                name.to_owned()
            } else {
                format!("{name} {kind}")
            },
            unit: format!("µs, {share} of {kind}"),
            grows: false,
            drawn,
            of: Box::new(move |summary| summary.latency_us(name, kind)),
        })
    });
    let mut all: Vec<Metric> = rates.chain(latencies).collect();
    all.retain(|metric| runs.clone().any(|run| (metric.of)(run).is_some()));
    // A mean over seconds with the snapshot and without it is no engine's rate: it stands in the table only.
    if all.iter().any(|metric| metric.name == BEFORE_HOLD) {
        for mean in all.iter_mut().filter(|metric| metric.name == TX_PER_S) {
            mean.drawn = false;
        }
    }
    all
}

/// One engine's figures of one kind.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Spread {
    pub(super) median: f64,
    pub(super) min: f64,
    pub(super) max: f64,
}

impl Spread {
    fn of(numbers: &[f64]) -> Option<Self> {
        Some(Self {
            median: median(numbers.iter().copied())?,
            min: numbers.iter().copied().reduce(f64::min)?,
            max: numbers.iter().copied().reduce(f64::max)?,
        })
    }

    /// Whether some round of one is as some round of the other; not known of one round.
    fn overlaps(&self, other: &Self) -> bool {
        let is_range = self.min < self.max && other.min < other.max;
        is_range && self.min <= other.max && other.min <= self.max
    }
}

/// By engine and metric.
pub(super) type Results = BTreeMap<&'static str, BTreeMap<String, Spread>>;

pub(super) fn results(
    metrics: &[Metric],
    engines: &[EngineName],
    runs: &[(EngineName, Summary)],
) -> Results {
    let of = |engine: EngineName| {
        let spread = |metric: &Metric| {
            let own = runs.iter().filter(|run| run.0 == engine);
            let numbers: Vec<f64> = own.filter_map(|run| (metric.of)(&run.1)).collect();
            Some((metric.name.clone(), Spread::of(&numbers)?))
        };
        (engine.name(), metrics.iter().filter_map(spread).collect())
    };
    engines.iter().map(|engine| of(*engine)).collect()
}

/// How Vellum stands by one metric.
#[derive(Clone, Debug)]
pub(crate) struct Standing {
    pub(crate) metric: String,
    /// Medians.
    pub(crate) own: f64,
    pub(crate) best: f64,
    pub(crate) best_peer: &'static str,
    /// As `ratio_to_best_peer`.
    pub(crate) ratio: f64,
    /// The rounds of the two overlap: another series of them may tell another order. Of one round nothing is known.
    pub(crate) overlaps: bool,
}

/// By metric, where there are Vellum and a peer.
pub(super) fn standings(metrics: &[Metric], results: &Results) -> Vec<Standing> {
    let vellum = EngineName::Vellum.name();
    let standing = |metric: &Metric| {
        let of = |name: &str| Some(*results.get(name)?.get(&metric.name)?);
        let peers = results.keys().filter(|name| **name != vellum);
        let peers = peers.filter_map(|name| Some((*name, of(name)?)));
        let by_median =
            |one: &(_, Spread), other: &(_, Spread)| one.1.median.total_cmp(&other.1.median);
        let (best_peer, best) = match metric.grows {
            true => peers.max_by(by_median)?,
            false => peers.min_by(by_median)?,
        };
        let own = of(vellum)?;
        let ratio = match metric.grows {
            true => own.median / best.median,
            false => best.median / own.median,
        };
        ratio.is_finite().then_some(Standing {
            metric: metric.name.clone(),
            own: own.median,
            best: best.median,
            best_peer,
            ratio: rounded(ratio),
            overlaps: own.overlaps(&best),
        })
    };
    metrics.iter().filter_map(standing).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p99_9_does_not_count_and_all_others_do() {
        let counts = ["tx_per_s", "held_ratio", "p99_us", "p99_us payment"].map(Counts::of);
        let (rate, latency) = (Counts::Rate, Counts::Latency);
        assert_eq!(counts, [rate, Counts::Ratio, latency, latency]);
        let counts = ["p999_us", "p999_us payment", "p50_us payment"].map(Counts::of);
        assert_eq!(counts, [Counts::Not, Counts::Not, latency]);
        for (name, ..) in RATES {
            assert_ne!(Counts::of(name), Counts::Not, "{name}");
        }
    }

    #[test]
    fn rounds_overlap_where_their_ranges_do() {
        let spread = |numbers: &[f64]| Spread::of(numbers).expect("numbers");
        let [low, high, wide] =
            [&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0], &[3.0, 4.5, 5.0]].map(|it| spread(it));
        assert!(!low.overlaps(&high) && !high.overlaps(&low));
        assert!(wide.overlaps(&high) && high.overlaps(&wide) && wide.overlaps(&low));
        // One run each is no range.
        let one = spread(&[5.0]);
        assert!(!one.overlaps(&one) && !high.overlaps(&one));
    }
}
