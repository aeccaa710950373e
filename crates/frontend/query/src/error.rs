//! Why a query failed.

use datafusion::common::DataFusionError;
use std::fmt;
use std::io;
use std::sync::{Mutex, PoisonError};

/// Result of building or running a query.
pub type Result<T> = std::result::Result<T, Error>;

/// What a host or a function failed with; comes back as it was.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Why a query failed.
#[derive(Debug)]
pub enum Error {
    /// A host or a function failed.
    Failed(Failure),
    /// It needs more memory, or more space to spill to, than it may have.
    Memory(String),
    /// A file that it spills to: a full disk, a directory that is gone.
    File(io::Error),
    /// There is no plan for it.
    Unplanned(String),
    /// What should not be.
    Internal(String),
}

impl Error {
    /// What should not be.
    pub(crate) fn internal(what: impl fmt::Display) -> Self {
        Self::Internal(what.to_string())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(failure) => failure.fmt(f),
            Self::File(error) => error.fmt(f),
            Self::Memory(text) | Self::Unplanned(text) | Self::Internal(text) => text.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

impl From<DataFusionError> for Error {
    fn from(error: DataFusionError) -> Self {
        match error {
            DataFusionError::External(failure) => match failure.downcast::<Carried>() {
                Ok(carried) => carried.take(),
                Err(failure) => match failure.downcast::<DataFusionError>() {
                    Ok(inner) => (*inner).into(),
                    Err(failure) => Self::Failed(failure),
                },
            },
            DataFusionError::ArrowError(inner, backtrace) => match *inner {
                arrow::error::ArrowError::ExternalError(failure) => {
                    DataFusionError::External(failure).into()
                }
                arrow::error::ArrowError::IoError(_, error) => file_error(&error),
                inner => Self::internal(DataFusionError::ArrowError(Box::new(inner), backtrace)),
            },
            DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => {
                (*inner).into()
            }
            DataFusionError::Shared(shared) => match std::sync::Arc::try_unwrap(shared) {
                Ok(inner) => inner.into(),
                Err(shared) => shared_error(&shared),
            },
            DataFusionError::IoError(error) => file_error(&error),
            DataFusionError::ResourcesExhausted(text) => exhausted(text),
            DataFusionError::NotImplemented(text) | DataFusionError::Plan(text) => {
                Self::Unplanned(text)
            }
            // Some rewritings of correlated subqueries name a column twice.
            DataFusionError::SchemaError(error, _) => Self::Unplanned(error.to_string()),
            other => Self::internal(other),
        }
    }
}

/// What several readers of one input failed with: the first who asks gets the failure, the others its kind and its text.
fn shared_error(shared: &DataFusionError) -> Error {
    match shared.find_root() {
        DataFusionError::ResourcesExhausted(text) => exhausted(text.clone()),
        DataFusionError::NotImplemented(text) | DataFusionError::Plan(text) => {
            Error::Unplanned(text.clone())
        }
        DataFusionError::IoError(error) => file_error(error),
        DataFusionError::ArrowError(inner, _) => match &**inner {
            arrow::error::ArrowError::IoError(_, error) => file_error(error),
            other => Error::internal(other),
        },
        DataFusionError::External(failure) => match failure.downcast_ref::<Carried>() {
            Some(carried) => carried.take(),
            None => Error::Failed(Box::new(Told(failure.to_string()))),
        },
        other => Error::internal(other),
    }
}

/// What who writes spills says where they take what they may.
const NO_ROOM: &str = "The used disk space during the spilling process has exceeded";

/// What there is no more of: memory, or room for files.
fn exhausted(text: String) -> Error {
    match text.contains(NO_ROOM) {
        true => Error::File(io::ErrorKind::QuotaExceeded.into()),
        false => Error::Memory(text),
    }
}

/// What went wrong with a file. Who writes spills wraps what the system says in errors of its own, whose kind says nothing: the innermost counts.
fn file_error(error: &io::Error) -> Error {
    let mut error = error;
    while let Some(within) = error.get_ref().and_then(within) {
        error = within;
    }
    // Not its text, where there is better: that may name the file, and the server's directories do not concern a client.
    Error::File(match (error.raw_os_error(), error.kind()) {
        (Some(code), _) => io::Error::from_raw_os_error(code),
        (None, io::ErrorKind::Other) if error.to_string().contains(NO_ROOM) => {
            io::ErrorKind::QuotaExceeded.into()
        }
        (None, io::ErrorKind::Other) => io::Error::other(error.to_string()),
        // The system's quota: a number is what it lacks.
        (None, io::ErrorKind::QuotaExceeded) => io::ErrorKind::StorageFull.into(),
        (None, kind) => kind.into(),
    })
}

/// The error of a file in another.
fn within<'e>(error: &'e (dyn std::error::Error + Send + Sync + 'static)) -> Option<&'e io::Error> {
    if let Some(found) = error.downcast_ref::<io::Error>() {
        return Some(found);
    }
    match error.downcast_ref::<DataFusionError>()?.find_root() {
        DataFusionError::IoError(found) => Some(found),
        DataFusionError::ArrowError(inner, _) => match &**inner {
            arrow::error::ArrowError::IoError(_, found) => Some(found),
            _ => None,
        },
        _ => None,
    }
}

/// The text of a failure that somebody else has.
#[derive(Debug)]
struct Told(String);

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Told {}

/// A failure on its way through the operators, which may share it.
#[derive(Debug)]
struct Carried {
    failure: Mutex<Option<Failure>>,
    text: String,
}

impl Carried {
    fn take(&self) -> Error {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = failure.take();
        Error::Failed(taken.unwrap_or_else(|| Box::new(Told(self.text.clone()))))
    }
}

impl fmt::Display for Carried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}

impl std::error::Error for Carried {}

/// A failure on its way through the operators.
pub(crate) fn carried(failure: Failure) -> DataFusionError {
    DataFusionError::External(Box::new(Carried {
        text: failure.to_string(),
        failure: Mutex::new(Some(failure)),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Symptom: `58030` for a sort on a full disk. Cause: who writes spills wraps the system's error twice, and its kind says nothing then.
    #[test]
    fn regress_a_full_disk_is_told_however_deep_it_stands() {
        let full = || io::Error::from_raw_os_error(28);
        let spilled = || io::Error::other(DataFusionError::IoError(full()));
        let arrow = arrow::error::ArrowError::IoError(String::new(), spilled());
        let named = io::Error::new(io::ErrorKind::StorageFull, "no space at path \"/secret\"");
        for error in [
            DataFusionError::IoError(full()),
            DataFusionError::IoError(spilled()),
            DataFusionError::ArrowError(Box::new(arrow), None).context("sorting"),
            DataFusionError::Shared(std::sync::Arc::new(DataFusionError::IoError(spilled()))),
            DataFusionError::IoError(io::Error::other(named)),
        ] {
            let Error::File(found) = Error::from(error) else {
                panic!("of a file");
            };
            assert_eq!(found.kind(), io::ErrorKind::StorageFull);
            assert!(!found.to_string().contains("secret"));
        }
    }
}
