//! Why a run ends without a report.

use std::any::Any;
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
    /// A transaction lost each time to somebody who is not there.
    #[error(
        "cannot run {class}: {source}, {attempts} times, though nobody else writes its rows: it may be more than the engine's \
         memory has room for in one transaction (--pool-mib)"
    )]
    Fruitless {
        /// What was tried.
        class: &'static str,
        /// How often.
        attempts: u32,
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
    /// Every engine of a comparison failed: who, and why.
    #[error("no engine is left to compare: {0}")]
    NobodyLeft(String),
    /// A run that was a process of its own failed: what it said, or what ended it.
    #[error("{0}")]
    Process(String),
    /// A thread of the run panicked; its message is on standard error.
    #[error("a thread of the run panicked: {0}")]
    Panicked(String),
}

impl Failure {
    /// What a panic said.
    pub(crate) fn panicked(panic: &(dyn Any + Send)) -> Self {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        Self::Panicked(text.unwrap_or("no message").to_owned())
    }

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
            Self::Engine { .. }
            | Self::Fruitless { .. }
            | Self::File { .. }
            | Self::NobodyLeft(_)
            | Self::Panicked(_)
            | Self::Process(_) => 1,
        }
    }
}
