//! Does an open database do what it should by itself?

use crate::background::Work;
use crate::database::Database;
use crate::error::Error;

/// What an open database cannot do at the moment; see [`Database::health`].
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Health {
    /// Nothing is written any more, until the database is opened again: an fsync failed, or a thread of the engine panicked.
    pub poisoned: bool,
    /// Work of the background that does not succeed, each with its first error since it last did. It is tried again, unless the database is poisoned.
    pub failures: Vec<(Work, Error)>,
}

impl Database {
    /// Whether the database does what it should by itself. What fails in the background is nobody's statement that could tell of it: without
    /// checkpoints, say, the log grows until writers are refused. Blocks for an instant; costs two locks.
    pub fn health(&self) -> Health {
        let failures = self.background_failures().into_iter();
        Health {
            poisoned: self.engine().is_poisoned(),
            failures: failures.map(|(work, error)| (work, error.into())).collect(),
        }
    }
}
