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

fn styled(bar: ProgressBar, template: &str) -> ProgressBar {
    let style = ProgressStyle::with_template(template).expect("templates are constant");
    bar.with_style(style)
}
