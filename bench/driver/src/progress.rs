//! A progress bar on standard error, where that is a terminal.

use indicatif::{ProgressBar, ProgressStyle};

/// A bar over `total` rows.
pub(crate) fn rows(what: &'static str, total: u64) -> ProgressBar {
    let bar = ProgressBar::new(total).with_message(what);
    styled(
        bar,
        "{msg:10} {wide_bar} {human_pos}/{human_len} rows, {per_sec}, {eta} left",
    )
}

/// A bar over `total` seconds, or a spinner where the end is not a time; the message shows the last
/// second.
pub(crate) fn seconds(total: Option<u64>) -> ProgressBar {
    match total {
        Some(total) => styled(
            ProgressBar::new(total),
            "running    {wide_bar} {pos}/{len} s, {msg}",
        ),
        None => styled(
            ProgressBar::no_length(),
            "running    {spinner} {elapsed}, {msg}",
        ),
    }
}

/// Shows a second: how many transactions or rows, and conflicts.
pub(crate) fn second(bar: &ProgressBar, transactions: u64, rows: u64, aborts: u64) {
    bar.inc(1);
    bar.set_message(match rows {
        0 => format!("{transactions} tx/s, {aborts} aborts"),
        rows => format!("{rows} rows/s, {aborts} aborts"),
    });
}

/// Shows the second that a line of samples tells; another line is none.
pub(crate) fn line(bar: &ProgressBar, line: &str) {
    if let Ok(told) = serde_json::from_str::<serde_json::Value>(line) {
        let of = |name: &str| told.get(name).and_then(serde_json::Value::as_u64);
        if let Some(transactions) = of("tx") {
            let [rows, aborts] = ["rows", "aborts"].map(|name| of(name).unwrap_or(0));
            second(bar, transactions, rows, aborts);
        }
    }
}

fn styled(bar: ProgressBar, template: &str) -> ProgressBar {
    let style = ProgressStyle::with_template(template).expect("templates are constant");
    bar.with_style(style)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_samples_move_the_bar() {
        let bar = seconds(Some(3));
        line(&bar, r#"{"s":1,"tx":7,"aborts":2,"log_bytes":0}"#);
        assert_eq!(
            (bar.position(), bar.message().as_str()),
            (1, "7 tx/s, 2 aborts")
        );
        line(&bar, r#"{"s":2,"tx":0,"aborts":0,"rows":5}"#);
        assert_eq!(
            (bar.position(), bar.message().as_str()),
            (2, "5 rows/s, 0 aborts")
        );
        line(&bar, "no sample");
        line(&bar, r#"{"else":1}"#);
        assert_eq!(bar.position(), 2);
    }
}
