//! The log: to standard error, as text or as JSON.

use crate::settings::{LogFormat, Settings, SettingsError};
use std::io;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt;
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
        LogFormat::Text => builder.finish().try_init(),
        LogFormat::Json => builder.json().finish().try_init(),
    };
    // Another subscriber is the embedding program's choice.
    drop(started);
    Ok(())
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
