//! What the pictures of a run show.

use crate::hold::AgedScan;
use crate::measure::Sample;
use crate::median::median;
use crate::plot::{Bar, Chart, Data};
use std::collections::BTreeMap;

/// A named line through points.
pub(crate) type Line = (String, Vec<(f64, f64)>);

/// Bytes of a mebibyte.
const MIB: f64 = (1 << 20) as f64;

/// Where a snapshot begins and ends, as vertical lines.
pub(crate) fn marks(hold_at: Option<u64>, release: Option<u64>) -> Vec<(f64, String)> {
    let begin = hold_at.map(|at| (at as f64, "snapshot".to_owned()));
    let end = release.map(|at| (at as f64, "released".to_owned()));
    begin.into_iter().chain(end).collect()
}

/// Some number of each second, where it is known.
pub(crate) fn by_second(
    samples: &[Sample],
    of: impl Fn(&Sample) -> Option<f64>,
) -> Vec<(f64, f64)> {
    samples
        .iter()
        .filter_map(|sample| Some((sample.s as f64, of(sample)?)))
        .collect()
}

/// The median of lines, point by point.
pub(crate) fn median_line(lines: impl IntoIterator<Item = Vec<(f64, f64)>>) -> Vec<(f64, f64)> {
    let mut points = BTreeMap::<u64, Vec<(f64, f64)>>::new();
    for line in lines {
        for (x, y) in line {
            // Ages of scans differ a little from round to round.
            points.entry(x.round() as u64).or_default().push((x, y));
        }
    }
    points
        .into_values()
        .filter_map(|found| {
            let x = median(found.iter().map(|(x, _)| *x))?;
            Some((x, median(found.iter().map(|(_, y)| *y))?))
        })
        .collect()
}

/// Rates over time.
pub(crate) fn rates(title: &str, lines: Vec<Line>, marks: Vec<(f64, String)>) -> Chart {
    Chart {
        title: title.to_owned(),
        x: "seconds".to_owned(),
        y: "transactions a second".to_owned(),
        data: Data::Lines(lines),
        marks,
    }
}

/// Disk use over time, and old versions' part of it where the engine tells.
pub(crate) fn space(samples: &[Sample], marks: Vec<(f64, String)>) -> Chart {
    let mut lines = vec![(
        "disk".to_owned(),
        by_second(samples, |sample| Some(sample.disk_bytes as f64 / MIB)),
    )];
    let versions = by_second(samples, |sample| {
        Some(*sample.more.get("version_bytes")? as f64 / MIB)
    });
    if !versions.is_empty() {
        lines.push(("old versions".to_owned(), versions));
    }
    Chart {
        title: "Space".to_owned(),
        x: "seconds".to_owned(),
        y: "MiB".to_owned(),
        data: Data::Lines(lines),
        marks,
    }
}

/// A bar for each name.
pub(crate) fn bars(title: String, y: &str, bars: impl Iterator<Item = (String, Bar)>) -> Chart {
    let (names, heights) = bars.unzip();
    Chart {
        title,
        y: y.to_owned(),
        data: Data::Bars(names, vec![(String::new(), heights)]),
        ..Chart::default()
    }
}

/// Scans by the age of the snapshot.
pub(crate) fn scans(scans: &[AgedScan]) -> Chart {
    let line = |name: &str, of: fn(&AgedScan) -> f64| {
        let points = scans.iter().map(|scan| (scan.age_s, of(scan))).collect();
        (name.to_owned(), points)
    };
    Chart {
        title: "Scan of the hot tables".to_owned(),
        x: "age of the held snapshot in seconds".to_owned(),
        y: "µs".to_owned(),
        data: Data::Lines(vec![
            line("held", |scan| scan.held_us),
            line("fresh", |scan| scan.fresh_us),
        ]),
        marks: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_several_rounds_is_the_median_at_each_place() {
        let round = |first, second| vec![(0.9, first), (2.1, second)];
        let rounds = [round(1.0, 9.0), round(5.0, 1.0), round(3.0, 2.0)];
        assert_eq!(median_line(rounds), [(0.9, 3.0), (2.1, 2.0)]);
        // The second of the run that was shorter is that of the others.
        let shorter = [vec![(1.0, 4.0)], round(2.0, 7.0)];
        assert_eq!(median_line(shorter), [(0.95, 3.0), (2.1, 7.0)]);
    }
}
