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
    let filter = EnvFilter::try_new(&settings.log)
        .map_err(|error| SettingsError::Value(format!("log: {error}")))?;
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
