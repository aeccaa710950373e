//! Why a run ends without a report.

use std::path::PathBuf;
use vellum_workload::engine::EngineError;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The engine failed, or gave wrong data.
    #[error("cannot {action}: {source}")]
    Engine {
        /// What was tried.
        action: String,
        /// The engine's error.
        source: EngineError,
    },
    /// A file of the bench's own could not be used.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// What was tried.
        action: &'static str,
        /// Which file.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// The flags do not fit together or do not fit the data.
    #[error("{0}")]
    Usage(String),
    /// A signal ended a load, or a series of runs.
    #[error("interrupted")]
    Interrupted,
    /// A thread of the run panicked; its message is on standard error.
    #[error("a thread of the run panicked: {0}")]
    Panicked(String),
}

impl Failure {
    /// For `map_err`: an engine's error while it was asked to do `action`.
    pub(crate) fn engine(action: &str) -> impl FnOnce(EngineError) -> Self + '_ {
        move |source| match source {
            EngineError::Interrupted => Self::Interrupted,
            source => Self::Engine {
                action: action.to_owned(),
                source,
            },
        }
    }

    /// What the process returns.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Interrupted => crate::interrupt::EXIT_CODE,
            Self::Engine { .. } | Self::File { .. } | Self::Panicked(_) => 1,
        }
    }
}
