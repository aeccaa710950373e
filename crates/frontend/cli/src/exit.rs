//! How a command ends: exit codes, and the message on standard error.
//!
//! | code | meaning |
//! | --- | --- |
//! | 0 | done, nothing wrong |
//! | 1 | something is wrong with the database, or the command failed |
//! | 2 | the command line makes no sense |
//! | 3 | the database is open in another process |
//! | 4 | there is no database, or one of a format, or with a catalog of SQL, that this build does not read |

use std::fmt;
use std::io;
use std::path::Path;
use vellum::Error;

/// Something is wrong, or the command failed.
pub const FAILED: u8 = 1;
const USAGE: u8 = 2;
const LOCKED: u8 = 3;
const NO_DATABASE: u8 = 4;

/// Why a command could not be carried out.
#[derive(Debug)]
pub enum Failure {
    /// Standard output.
    Output(io::Error),
    /// Everything else: exit code and message.
    Told { code: u8, message: String },
}

impl Failure {
    /// A command line that makes no sense.
    pub fn usage(message: String) -> Self {
        Self::Told {
            code: USAGE,
            message,
        }
    }

    /// A command that failed.
    pub fn failed(message: String) -> Self {
        Self::Told {
            code: FAILED,
            message,
        }
    }

    /// No database, or none that this build reads.
    pub fn no_database(message: String) -> Self {
        Self::Told {
            code: NO_DATABASE,
            message,
        }
    }

    /// An error of the database in `directory`.
    pub fn database(directory: &Path, error: Error) -> Self {
        let name = directory.display();
        let (code, message) = match &error {
            Error::Locked { pid, .. } => (
                LOCKED,
                format!("{name} is open in process {pid}; nothing was touched"),
            ),
            Error::ForeignFormat { file, what } => (
                NO_DATABASE,
                format!("{name} is no database of this version: {file}: {what}"),
            ),
            Error::Io { source, .. }
                if matches!(
                    source.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                (NO_DATABASE, format!("{name} is no database: {source}"))
            }
            _ => (FAILED, format!("{name}: {error}")),
        };
        Self::Told { code, message }
    }

    /// An error of opening the database in `directory`, in place or not.
    pub fn opening(directory: &Path, error: Error, in_place: bool) -> Self {
        match error {
            Error::OutOfSpace { .. } if !in_place => Self::Told {
                code: FAILED,
                message: format!(
                    "what opening {} writes does not fit into memory: give it more (--memory-mib), \
                     or open it in place (--recover)",
                    directory.display()
                ),
            },
            error => Self::database(directory, error),
        }
    }

    /// An error of a backup.
    pub fn backup(error: Error) -> Self {
        match error {
            Error::ForeignFormat { file, what } => Self::Told {
                code: FAILED,
                message: format!(
                    "the target of a backup must be empty, or not exist: {file}: {what}"
                ),
            },
            Error::Locked { path, pid } => Self::Told {
                code: LOCKED,
                message: format!("{} is open in process {pid}", path.display()),
            },
            Error::InvalidArgument { what } => Self::usage(what),
            error => Self::Told {
                code: FAILED,
                message: format!("backup: {error}"),
            },
        }
    }

    /// The exit code.
    pub fn code(&self) -> u8 {
        match self {
            Self::Output(_) => FAILED,
            Self::Told { code, .. } => *code,
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Told {
            code: FAILED,
            message: error.to_string(),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Output(error) => write!(f, "writing the output failed: {error}"),
            Self::Told { message, .. } => f.write_str(message),
        }
    }
}
