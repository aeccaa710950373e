//! How Vellum stands in an entry that ran, as a line of the summary.

use super::entries::Entry;
use crate::compare::{Compared, Counts, Standing};
use std::fmt::Write as _;

/// An entry that ran.
pub(super) struct Ran {
    pub(super) entry: &'static Entry,
    pub(super) compared: Compared,
}

impl Ran {
    fn standing(&self, metric: &str) -> Option<&Standing> {
        let standings = &self.compared.standings;
        standings.iter().find(|it| it.metric == metric)
    }

    /// The rate that the workload is about: of one beside a snapshot that before it, as the mean of the whole run has each engine's
    /// collapse in it.
    pub(super) fn rate(&self) -> Option<&Standing> {
        let all = [
            "tx_per_s_before_hold",
            "succeeded_per_s",
            "rows_per_s",
            "tx_per_s",
        ];
        all.into_iter().find_map(|metric| self.standing(metric))
    }

    /// The worst p99 of its kinds of transactions.
    fn p99(&self) -> Option<&Standing> {
        let all = self.compared.standings.iter();
        least(all.filter(|it| it.metric.starts_with("p99_us")))
    }

    /// Its worst figure of those that count: all but p99.9, and but the rates that [`Ran::rate`] has a better one for.
    pub(super) fn worst(&self) -> Option<&Standing> {
        let rate = self.rate().map(|it| it.metric.as_str());
        let counts = |it: &&Standing| match it.metric.as_str() {
            own @ ("tx_per_s" | "succeeded_per_s" | "rows_per_s") => rate == Some(own),
            other => Counts::of(other) != Counts::Not,
        };
        least(self.compared.standings.iter().filter(counts))
    }

    /// By this the entries are ordered, those without a peer last.
    pub(super) fn worst_ratio(&self) -> f64 {
        self.worst().map_or(f64::INFINITY, |it| it.ratio)
    }
}

fn least<'s>(all: impl Iterator<Item = &'s Standing>) -> Option<&'s Standing> {
    all.min_by(|one, other| one.ratio.total_cmp(&other.ratio))
}

/// A line for each entry.
pub(super) fn summary(ran: &[Ran]) -> String {
    let mut out = "| what | furthest behind, or least ahead, by | Vellum, a second | best peer | ratio | worst p99 | held snapshot |\n\
         | --- | --- | --- | --- | --- | --- | --- |\n"
        .to_owned();
    for ran in ran {
        let (title, name) = (ran.entry.title, ran.entry.name);
        let worst = match ran.worst() {
            Some(it) => format!("{}: {}", bold(it), told(it)),
            None => "-".to_owned(),
        };
        let rate = match ran.rate() {
            Some(it) => {
                let before = match it.metric.as_str() {
                    "tx_per_s_before_hold" => " before it",
                    _ => "",
                };
                let (own, best) = (value(it, it.own), value(it, it.best));
                format!("{own}{before} | {best} of {} | {}", it.best_peer, ratio(it))
            }
            None => "- | - | -".to_owned(),
        };
        let p99 = match ran.p99() {
            Some(it) => format!("{} {}", ratio(it), kind(it)),
            None => "-".to_owned(),
        };
        let held = ["held_ratio", "release_min_ratio"];
        let held = held.into_iter().filter_map(|metric| ran.standing(metric));
        let held: Vec<String> = held
            .map(|it| format!("{}: {}", ratio(it), told(it)))
            .collect();
        let held = match held.is_empty() {
            true => "-".to_owned(),
            false => held.join("; "),
        };
        let _ = writeln!(
            out,
            "| {title} (`{name}`) | {worst} | {rate} | {} | {held} |",
            p99.trim_end()
        );
    }
    out
}

/// Vellum's figure and the best peer's.
fn told(it: &Standing) -> String {
    let (own, best) = (value(it, it.own), value(it, it.best));
    format!("{}, {own} to {best} of {}", words(it), it.best_peer)
}

/// The ratio in so many digits that it is never told as nothing, with a mark where the rounds overlap.
fn digits(it: &Standing) -> (String, &'static str) {
    let ratio = match it.ratio {
        0.1.. => format!("{:.2}", it.ratio),
        _ => format!("{:.3}", it.ratio),
    };
    (ratio, if it.overlaps { " ~" } else { "" })
}

fn ratio(it: &Standing) -> String {
    let (ratio, mark) = digits(it);
    ratio + mark
}

fn bold(it: &Standing) -> String {
    let (ratio, mark) = digits(it);
    format!("**{ratio}**{mark}")
}

/// A metric for people.
fn words(it: &Standing) -> String {
    let (name, kind) = (it.metric.split(' ').next().unwrap_or_default(), kind(it));
    let name = match name {
        "tx_per_s" | "succeeded_per_s" => "transactions a second",
        "rows_per_s" => "rows a second",
        "long_rows_per_s" => "rows a second of long readers",
        "updates_per_s" => "updates a second",
        "tx_per_s_before_hold" => "transactions a second before the snapshot",
        "held_ratio" => "rate beside the snapshot over that before",
        "release_min_ratio" => "slowest second after its end",
        "p50_us" => "p50",
        "p99_us" => "p99",
        other => other,
    };
    match kind {
        "" => name.to_owned(),
        kind => format!("{name} of {kind}"),
    }
}

/// The kind of transactions that a latency is of, where there are several.
fn kind(it: &Standing) -> &str {
    it.metric.split_once(' ').map_or("", |(_, kind)| kind)
}

/// A figure of a metric for people.
fn value(it: &Standing, number: f64) -> String {
    match Counts::of(&it.metric) {
        Counts::Ratio => format!("{number:.3}"),
        Counts::Latency | Counts::Not => format!("{number:.1} µs"),
        Counts::Rate => count(number),
    }
}

/// A rate for people.
fn count(rate: f64) -> String {
    match rate {
        1e6.. => format!("{:.2} M", rate / 1e6),
        1e4..1e6 => format!("{:.0} k", rate / 1e3),
        _ => format!("{rate:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::entries::ENTRIES;
    use super::*;

    fn standing(metric: &str, ratio: f64) -> Standing {
        Standing {
            metric: metric.to_owned(),
            own: ratio * 1000.0,
            best: 1000.0,
            best_peer: "lmdb",
            ratio,
            overlaps: false,
        }
    }

    fn ran(standings: Vec<Standing>) -> Ran {
        const FIRST: &Entry = &ENTRIES[0];
        Ran {
            entry: FIRST,
            compared: Compared {
                is_consistent: true,
                text: String::new(),
                json: String::new(),
                picture: String::new(),
                standings,
            },
        }
    }

    /// The cells of the only line.
    fn cells(standings: Vec<Standing>) -> Vec<String> {
        let table = summary(&[ran(standings)]);
        let cells = table.lines().nth(2).expect("a line").split('|');
        cells.map(|cell| cell.trim().to_owned()).collect()
    }

    #[test]
    fn an_entry_stands_where_its_worst_figure_puts_it_and_tells_which_it_is() {
        let others = [
            ("updates_per_s", "updates a second, 500 to 1000 of lmdb"),
            (
                "tx_per_s_before_hold",
                "transactions a second before the snapshot, 500 to 1000 of lmdb",
            ),
            (
                "held_ratio",
                "rate beside the snapshot over that before, 500.000 to 1000.000 of lmdb",
            ),
            (
                "release_min_ratio",
                "slowest second after its end, 500.000 to 1000.000 of lmdb",
            ),
            (
                "long_rows_per_s",
                "rows a second of long readers, 500 to 1000 of lmdb",
            ),
            ("p99_us", "p99, 500.0 µs to 1000.0 µs of lmdb"),
            (
                "p99_us payment",
                "p99 of payment, 500.0 µs to 1000.0 µs of lmdb",
            ),
            (
                "p50_us payment",
                "p50 of payment, 500.0 µs to 1000.0 µs of lmdb",
            ),
        ];
        for (other, words) in others {
            let standings = vec![standing("tx_per_s", 2.0), standing(other, 0.5)];
            assert_eq!(ran(standings.clone()).worst_ratio(), 0.5, "{other}");
            assert_eq!(cells(standings)[2], format!("**0.50**: {words}"));
        }
        assert_eq!(ran(Vec::new()).worst_ratio(), f64::INFINITY);
        assert_eq!(cells(Vec::new())[2], "-");
    }

    #[test]
    fn what_mixes_or_is_of_a_few_transactions_does_not_count() {
        let worst = |standings| ran(standings).worst_ratio();
        // Where transactions may find nothing, those that found something are the rate.
        let standings = vec![standing("tx_per_s", 0.5), standing("succeeded_per_s", 2.0)];
        assert_eq!(worst(standings), 2.0);
        // The mean over a run has the seconds beside the snapshot in it.
        let held = |mean| {
            vec![
                standing("tx_per_s", mean),
                standing("tx_per_s_before_hold", 0.4),
                standing("held_ratio", 1.04),
            ]
        };
        assert_eq!(worst(held(0.9)), 0.4);
        assert_eq!(worst(held(0.1)), 0.4);
        let standings = vec![standing("tx_per_s", 2.0), standing("p999_us", 0.1)];
        assert_eq!(worst(standings), 2.0);
    }

    #[test]
    fn a_run_beside_a_snapshot_tells_the_rate_before_it_and_what_is_left() {
        let cells = cells(vec![
            standing("tx_per_s", 0.9),
            standing("tx_per_s_before_hold", 0.4),
            standing("held_ratio", 0.0012),
            standing("release_min_ratio", 0.7),
        ]);
        assert_eq!(cells[3..6], ["400 before it", "1000 of lmdb", "0.40"]);
        assert_eq!(
            cells[7],
            "0.001: rate beside the snapshot over that before, 1.200 to 1000.000 of lmdb; \
             0.70: slowest second after its end, 700.000 to 1000.000 of lmdb"
        );
    }

    #[test]
    fn the_worst_kinds_p99_is_named_and_overlapping_rounds_are_marked() {
        let mut rate = standing("tx_per_s", 0.97);
        rate.overlaps = true;
        let kinds = [("p99_us new_order", 0.57), ("p99_us order_status", 0.123)];
        let kinds = kinds.map(|(metric, ratio)| standing(metric, ratio));
        let cells = cells([vec![rate], kinds.to_vec()].concat());
        assert_eq!(cells[5..7], ["0.97 ~", "0.12 order_status"]);
    }

    #[test]
    fn rates_are_told_in_three_digits() {
        assert_eq!(count(1_234_567.0), "1.23 M");
        assert_eq!(count(45_678.0), "46 k");
        assert_eq!(count(3_210.4), "3210");
    }
}
