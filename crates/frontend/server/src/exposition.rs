//! What the server and its database have counted, as text that Prometheus reads.
//!
//! Layout: for each metric `# HELP`, `# TYPE`, and a line with its name and value. Counters end in `_total`, sizes in `_bytes`,
//! times in `_seconds`.

use crate::server::Shared;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use vellum::BackgroundWork;

/// What the server counts beside its sessions.
#[derive(Debug, Default)]
pub struct Counts {
    /// Connections that were accepted.
    pub accepted: AtomicU64,
    /// Of these, refused at once.
    pub refused: AtomicU64,
    /// Logins that failed.
    pub logins_failed: AtomicU64,
    /// Requests to cancel.
    pub cancels: AtomicU64,
    /// Connections that are parked now.
    pub parked: AtomicU64,
}

/// Writes metrics.
struct Page {
    text: String,
}

impl Page {
    fn metric(&mut self, kind: &str, name: &str, help: &str, value: impl std::fmt::Display) {
        // Writing to a string does not fail.
        let _ = write!(
            self.text,
            "# HELP vellum_{name} {help}\n# TYPE vellum_{name} {kind}\nvellum_{name} {value}\n"
        );
    }

    /// One with a value for each value of a label.
    fn labelled(
        &mut self,
        kind: &str,
        name: &str,
        help: &str,
        label: &str,
        values: &[(&str, u64)],
    ) {
        // Writing to a string does not fail.
        let _ = write!(
            self.text,
            "# HELP vellum_{name} {help}\n# TYPE vellum_{name} {kind}\n"
        );
        for (of, value) in values {
            let _ = writeln!(self.text, "vellum_{name}{{{label}=\"{of}\"}} {value}");
        }
    }

    /// Several of one kind: names, helps, values.
    fn metrics(&mut self, kind: &str, metrics: &[(&str, &str, u64)]) {
        for (name, help, value) in metrics {
            self.metric(kind, name, help, value);
        }
    }
}

/// The page of all metrics. Costs some microseconds, and an instant for each session; blocks nobody.
pub fn page(shared: &Shared) -> String {
    let mut page = Page {
        text: String::with_capacity(8 << 10),
    };
    of_server(shared, &mut page);
    of_health(shared, &mut page);
    of_database(shared, &mut page);
    page.text
}

fn of_server(shared: &Shared, page: &mut Page) {
    let sessions = &shared.sessions;
    let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let wide = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    page.metrics(
        "gauge",
        &[
            (
                "sessions",
                "Sessions that are open.",
                wide(sessions.count()),
            ),
            (
                "sessions_max",
                "Most sessions.",
                wide(sessions.connections_max()),
            ),
            (
                "sessions_parked",
                "Sessions whose clients say nothing.",
                load(&shared.counts.parked),
            ),
            ("logins", "Logins under way.", wide(sessions.logins())),
            (
                "client_threads",
                "Threads for clients.",
                wide(shared.crew.threads()),
            ),
        ],
    );
    let counts = &shared.counts;
    let tally = sessions.tally();
    page.metrics(
        "counter",
        &[
            (
                "connections_total",
                "Connections that were accepted.",
                load(&counts.accepted),
            ),
            (
                "connections_refused_total",
                "Connections that were refused at once: from an address that no rule admits, because too many logins were under way, or for want of a thread.",
                load(&counts.refused),
            ),
            (
                "logins_evicted_total",
                "Logins that were cut off to make way for others.",
                sessions.evicted(),
            ),
            (
                "logins_failed_total",
                "Logins that failed.",
                load(&counts.logins_failed),
            ),
            (
                "cancel_requests_total",
                "Requests to cancel a statement.",
                load(&counts.cancels),
            ),
            (
                "statements_total",
                "Statements that clients ran.",
                load(&tally.statements),
            ),
            (
                "statements_compiled_total",
                "Statements that were compiled, anew after a change of the catalog too.",
                shared.database.statements_compiled(),
            ),
            (
                "errors_total",
                "Errors that clients were sent.",
                load(&tally.errors),
            ),
            (
                "received_bytes_total",
                "Bytes from clients.",
                load(&tally.bytes_received),
            ),
            (
                "sent_bytes_total",
                "Bytes to clients.",
                load(&tally.bytes_sent),
            ),
        ],
    );
    let seconds = Duration::from_nanos(load(&tally.statement_nanos)).as_secs_f64();
    page.metric(
        "counter",
        "statement_seconds_total",
        "Time that statements took, with what their clients took to read and to send.",
        seconds,
    );
}

/// Whether the database does what it should by itself.
fn of_health(shared: &Shared, page: &mut Page) {
    let health = shared.database.engine().health();
    page.metric(
        "gauge",
        "poisoned",
        "1 once the database takes no writes any more, until the server is started anew.",
        u64::from(health.poisoned),
    );
    let values = BackgroundWork::ALL.map(|work| {
        let fails = health.failures.iter().any(|(failed, _)| *failed == work);
        (work.name(), u64::from(fails))
    });
    page.labelled(
        "gauge",
        "background_failures",
        "1 while work in the background of this kind fails.",
        "work",
        &values,
    );
}

fn of_database(shared: &Shared, page: &mut Page) {
    let s = shared.database.engine().statistics();
    page.metrics(
        "counter",
        &[
            (
                "log_written_bytes_total",
                "Bytes written to the log.",
                s.log_bytes_written,
            ),
            (
                "log_record_bytes_total",
                "Bytes of log records.",
                s.log_record_bytes,
            ),
            ("log_rounds_total", "Flush rounds of the log.", s.log_rounds),
            (
                "commits_hardened_total",
                "Commits that waited for a round.",
                s.commits_hardened,
            ),
            (
                "pages_read_total",
                "Pages read from the data file.",
                s.pages_read,
            ),
            (
                "pages_written_total",
                "Pages written to the data file.",
                s.pages_written,
            ),
            (
                "double_write_bytes_total",
                "Bytes of double writes.",
                s.double_write_bytes,
            ),
            (
                "fat_pages_written_total",
                "Pages written with old versions in their rows.",
                s.fat_pages_written,
            ),
            (
                "fat_pages_evicted_total",
                "Pages that left memory so.",
                s.fat_pages_evicted,
            ),
            ("checkpoints_total", "Checkpoints.", s.checkpoints),
            (
                "snapshots_withdrawn_total",
                "Snapshots that were withdrawn.",
                s.snapshots_withdrawn,
            ),
        ],
    );
    page.metrics(
        "gauge",
        &[
            (
                "log_in_use_bytes",
                "Bytes of the log that may still be needed.",
                s.log_bytes_in_use,
            ),
            ("page_bytes", "Bytes of a page.", s.page_bytes),
            ("pages_resident", "Pages in memory.", s.pages_resident),
            (
                "pages_resident_max",
                "Pages that memory may hold.",
                s.pages_resident_max,
            ),
            ("pages_file", "Pages of the data file.", s.file_pages),
            (
                "pages_durable",
                "Pages in use for tables and indexes.",
                s.pages_durable,
            ),
            (
                "pages_of_versions",
                "Pages in use for old versions.",
                s.pages_of_versions,
            ),
            ("pages_free", "Pages that are free.", s.pages_free),
            (
                "version_bytes",
                "Bytes of old versions, in rows and elsewhere.",
                s.version_bytes,
            ),
            (
                "version_in_rows_bytes",
                "Bytes of those in rows, as they were found last.",
                s.version_bytes_in_rows,
            ),
            (
                "fat_pages_out",
                "Pages with old versions in their rows that are not in memory.",
                s.fat_pages_out,
            ),
            (
                "version_deltas",
                "Old versions that are byte ranges.",
                s.version_deltas,
            ),
            (
                "version_copies",
                "Old versions that are whole rows.",
                s.version_copies,
            ),
            (
                "dropped_pages",
                "Pages of dropped tables and indexes that are not given back.",
                s.dropped_pages,
            ),
            (
                "tombstones",
                "Deleted rows that an OLTP snapshot may see.",
                s.tombstones,
            ),
            ("rows_buried", "Deleted rows in graveyards.", s.rows_buried),
            (
                "transactions_open",
                "Transactions that are open.",
                s.transactions_open,
            ),
            (
                "oldest_snapshot_ticks",
                "How far the oldest snapshot is behind the clock.",
                s.clock.saturating_sub(s.oldest_snapshot),
            ),
        ],
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_has_help_type_and_value() {
        let mut page = Page {
            text: String::new(),
        };
        page.metrics("counter", &[("x_total", "What x is.", 7)]);
        let expected =
            "# HELP vellum_x_total What x is.\n# TYPE vellum_x_total counter\nvellum_x_total 7\n";
        assert_eq!(page.text, expected);
    }
}
