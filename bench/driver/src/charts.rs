//! What the pictures of a run show.

use crate::hold::AgedScan;
use crate::measure::Sample;
use crate::plot::{Bar, Chart, Data};

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
