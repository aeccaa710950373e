//! The log: to standard error, as text or as JSON.
//!
//! Invariants: G1: an event is one line, whatever names and texts of clients are in it: nobody writes lines of others' events, or moves a terminal's cursor.

use crate::settings::{LogFormat, Settings, SettingsError};
use std::fmt::Write;
use std::io;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::field::MakeExt;
use tracing_subscriber::fmt;
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::util::SubscriberInitExt;

/// Starts logging for the whole process. Once: a program that logs already keeps its own.
///
/// # Errors
/// If the levels of `settings.log` are none.
pub fn start(settings: &Settings) -> Result<(), SettingsError> {
    let filter = EnvFilter::try_new(&settings.log).map_err(|error| refused(settings, &error))?;
    if let Some(word) = unknown_level(&settings.log) {
        return Err(refused(settings, &format!("`{word}` is no level")));
    }
    let builder = fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(false)
        // It would be told on standard error, which cannot be written: that panics.
        .log_internal_errors(false)
        .with_target(false);
    let started = match settings.log_format {
        LogFormat::Text => builder.fmt_fields(fields()).finish().try_init(),
        LogFormat::Json => builder.json().finish().try_init(),
    };
    // Another subscriber is the embedding program's choice.
    drop(started);
    Ok(())
}

/// The message and the fields of an event in a line of text (G1).
fn fields() -> impl for<'w> FormatFields<'w> + 'static {
    let each = fmt::format::debug_fn(|writer, field, value| {
        let mut line = OneLine(writer);
        match field.name() {
            "message" => write!(line, "{value:?}"),
            name => write!(line, "{name}={value:?}"),
        }
    });
    each.delimited(" ")
}

/// Writes what ends a line, or controls a terminal, as an escape.
struct OneLine<W>(W);

impl<W: Write> Write for OneLine<W> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let breaks = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
        let mut rest = text;
        while let Some(at) = rest.find(breaks) {
            let (before, from) = rest.split_at(at);
            self.0.write_str(before)?;
            let mut characters = from.chars();
            for escaped in characters.next().into_iter().flat_map(char::escape_default) {
                self.0.write_char(escaped)?;
            }
            rest = characters.as_str();
        }
        self.0.write_str(rest)
    }
}

/// The levels, from the one that says the least.
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// A word that stands alone and is no level: it would be taken for a module, of which everything is logged, and nothing of all others. Those of the server
/// begin with `vellum`.
fn unknown_level(text: &str) -> Option<&str> {
    let mut words = text.split(',').map(str::trim);
    words.find(|word| {
        let is_level = LEVELS.iter().any(|level| word.eq_ignore_ascii_case(level));
        let is_module = word.contains(['=', ':', '[']) || word.starts_with("vellum");
        let is_number = word.parse::<u8>().is_ok_and(|number| number <= 5);
        !(is_level || is_module || is_number || word.is_empty())
    })
}

fn refused(settings: &Settings, why: &dyn std::fmt::Display) -> SettingsError {
    SettingsError::Value(format!(
        "log: `{}`: {why}: {}, or MODULE=LEVEL, several with commas",
        settings.log,
        LEVELS.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    /// What an event is written as.
    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn an_event_is_one_line_whatever_is_in_it() {
        let name = "eve\n2026-11-30T00:00:00Z  INFO stopped\r\u{1b}[2K\u{85}\u{2028}é";
        let told = |json: bool| {
            let lines = Lines::default();
            let own = lines.clone();
            let builder = fmt().with_ansi(false).without_time();
            let builder = builder.with_target(false).with_writer(move || own.clone());
            let event =
                || tracing::info!(user = name, shown = %name, number = 7, "login of {name}");
            match json {
                true => tracing::subscriber::with_default(builder.json().finish(), event),
                false => {
                    tracing::subscriber::with_default(builder.fmt_fields(fields()).finish(), event)
                }
            }
            let bytes = lines.0.lock().unwrap().clone();
            String::from_utf8(bytes).unwrap()
        };
        let escaped = "eve\\n2026-11-30T00:00:00Z  INFO stopped\\r\\u{1b}[2K\\u{85}\\u{2028}é";
        let expected =
            format!(" INFO login of {escaped} user=\"{escaped}\" shown={escaped} number=7\n");
        assert_eq!(told(false), expected);
        let json = told(true);
        assert_eq!(json.find('\n'), Some(json.len() - 1), "{json}");
    }

    #[test]
    fn a_word_that_is_no_level_is_refused() {
        for good in [
            "info",
            "WARN",
            "off",
            "3",
            "warn,vellum_sql=debug",
            "vellum",
            "tls::x=trace",
        ] {
            assert_eq!(unknown_level(good), None, "{good}");
        }
        assert_eq!(unknown_level("nonsense"), Some("nonsense"));
        assert_eq!(unknown_level("info, loud"), Some("loud"));
        let settings = Settings {
            log: "nonsense".into(),
            ..Settings::default()
        };
        let error = start(&settings).unwrap_err().to_string();
        assert!(
            error.contains("off, error, warn, info, debug, trace"),
            "{error}"
        );
    }
}
