//! From the errors of the layers below to those of the embedded API.

use crate::error::Error;
use vellum_txn::TransactionError;
use vellum_version::VersionError;

impl From<TransactionError> for Error {
    fn from(error: TransactionError) -> Self {
        match error {
            TransactionError::SlotsExhausted {
                taken,
                slots_max,
                waited,
            } => Self::Timeout {
                what: format!(
                    "a transaction slot: {taken} of {slots_max} taken after waiting {waited:?}"
                ),
            },
            TransactionError::SnapshotTooOld => Self::SnapshotTooOld,
            TransactionError::ReadOnly => Self::ReadOnly,
            TransactionError::TooManyCommands => Self::TransactionOver {
                what: "it has used all its command ids",
            },
            TransactionError::Storage(error) => error.into(),
        }
    }
}

impl From<VersionError> for Error {
    fn from(error: VersionError) -> Self {
        match error {
            VersionError::Conflict => Self::Conflict,
            VersionError::KeyExists => Self::KeyExists {
                table: "catalog".into(),
            },
            VersionError::Transaction(error) => error.into(),
            VersionError::Storage(error) => error.into(),
        }
    }
}
