//! What a history is made of: steps, and the answers to them.
//!
//! A history is a list of steps. Transactions, cursors and savepoints are named by numbers that a
//! history never uses twice, so that any step can be left out (a step that names a transaction
//! that is not open is skipped by everybody): that is what makes shrinking possible.

use std::fmt;
use std::ops::Bound;
use vellum_base::StorageError;

/// Number of a transaction in a history.
pub type TxNumber = u32;
/// Number of a cursor in a history.
pub type CursorNumber = u32;

/// Key bytes, printed short.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Key(pub Vec<u8>);

/// A value, named by what it is made from: histories stay small and printable.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Value {
    /// Length in bytes.
    pub length: u32,
    /// What the bytes are derived from.
    pub seed: u32,
    /// Whether they are of 00, a and ff only, as keys are: values and keys that follow each other are then easily taken for others.
    pub few: bool,
}

impl Value {
    /// The bytes: the seed and a counter, so that a value that is cut, shifted or mixed with
    /// another differs from every value.
    pub fn bytes(self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.length as usize + 8);
        let mut word = u64::from(self.seed) << 32 | u64::from(self.length);
        while bytes.len() < self.length as usize {
            word = word.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23) ^ 0x5bd1_e995;
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        bytes.truncate(self.length as usize);
        if self.few {
            for byte in &mut bytes {
                *byte = [0, b'a', 0xff][usize::from(*byte) % 3];
            }
        }
        bytes
    }
}

/// A range of keys.
pub type KeyRange = (Bound<Key>, Bound<Key>);

/// What a transaction is, as far as old versions are concerned: no answer may depend on it, but for conflicts that need
/// not be (see `run`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Class {
    /// Declares nothing, and ends before it falls behind.
    #[default]
    Short,
    /// Declares nothing, and may fall behind.
    Auto,
    /// Declared short.
    Oltp,
    /// Declared analytical.
    Olap,
}

/// How a transaction is begun.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Begin {
    /// Each operation reads as of its own start.
    pub read_committed: bool,
    /// Writes are refused.
    pub read_only: bool,
    /// Commit does not wait until it is durable.
    pub no_wait: bool,
    /// Its class.
    pub class: Class,
}

/// One operation of a transaction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Operation {
    /// Creates a table.
    CreateTable {
        /// Its name.
        table: String,
    },
    /// Drops a table with everything in it.
    DropTable {
        /// Its name.
        table: String,
    },
    /// Lists the visible tables.
    Tables,
    /// Reads one row (`into`: through the caller's buffer).
    Get {
        /// Table name.
        table: String,
        /// Key of the row.
        key: Key,
        /// Whether the caller's buffer is used.
        into: bool,
    },
    /// Reads many rows in one call.
    MultiGet {
        /// Table name.
        table: String,
        /// The keys in the order of the call (repetitions allowed).
        keys: Vec<Key>,
    },
    /// Inserts; an existing key is refused.
    Insert {
        /// Table name.
        table: String,
        /// Key of the row.
        key: Key,
        /// Its value.
        value: Value,
    },
    /// Inserts or replaces.
    Upsert {
        /// Table name.
        table: String,
        /// Key of the row.
        key: Key,
        /// Its value.
        value: Value,
    },
    /// Replaces the value of an existing row.
    Replace {
        /// Table name.
        table: String,
        /// Key of the row.
        key: Key,
        /// Its new value.
        value: Value,
    },
    /// Changes byte ranges of an existing row in place: each byte of them is xor-ed with `with`.
    Update {
        /// Table name.
        table: String,
        /// Key of the row.
        key: Key,
        /// The byte ranges, as (start, end).
        ranges: Vec<(usize, usize)>,
        /// What the bytes are xor-ed with.
        with: u8,
    },
    /// Deletes a row.
    Delete {
        /// Table name.
        table: String,
        /// Key of the row.
        key: Key,
    },
    /// Counts the rows of a range.
    Count {
        /// Table name.
        table: String,
        /// The range.
        range: KeyRange,
    },
    /// Opens a cursor, reads at most `limit` rows forward or backward, closes it.
    Scan {
        /// Table name.
        table: String,
        /// The range.
        range: KeyRange,
        /// Whether it goes from the end to the start.
        backward: bool,
        /// How many rows at most.
        limit: usize,
    },
    /// Loads rows whose keys ascend.
    BulkLoad {
        /// Table name.
        table: String,
        /// The rows.
        rows: Vec<(Key, Value)>,
    },
    /// Opens a cursor that stays open.
    OpenCursor {
        /// Its number.
        cursor: CursorNumber,
        /// Table name.
        table: String,
        /// The range.
        range: KeyRange,
    },
    /// Moves a cursor forward.
    Next {
        /// Its number.
        cursor: CursorNumber,
        /// How many rows at most.
        count: usize,
    },
    /// Moves a cursor backward.
    Prev {
        /// Its number.
        cursor: CursorNumber,
        /// How many rows at most.
        count: usize,
    },
    /// Positions a cursor: the next row forward is the first at or above the key.
    Seek {
        /// Its number.
        cursor: CursorNumber,
        /// Where to.
        key: Key,
    },
    /// Takes the rest of one leaf from a cursor; how many rows that is, is the subject's affair.
    Batch {
        /// Its number.
        cursor: CursorNumber,
        /// Against key order.
        backward: bool,
    },
    /// Closes a cursor.
    CloseCursor {
        /// Its number.
        cursor: CursorNumber,
    },
    /// Marks a point to roll back to.
    Savepoint {
        /// Its number.
        savepoint: u32,
    },
    /// Rolls back to a mark.
    RollbackTo {
        /// Its number.
        savepoint: u32,
    },
    /// Commits (`deferred`: through a ticket that is polled afterwards).
    Commit {
        /// Whether the ticket is used.
        deferred: bool,
    },
    /// Rolls back.
    Rollback,
    /// Drops the transaction unfinished.
    Abandon,
}

impl Operation {
    /// True if the transaction is over after it, whatever the answer.
    pub fn ends(&self) -> bool {
        matches!(self, Self::Commit { .. } | Self::Rollback | Self::Abandon)
    }
}

/// One step of a history.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// Begins a transaction.
    Begin {
        /// Its number.
        tx: TxNumber,
        /// How.
        how: Begin,
    },
    /// One operation of an open transaction.
    Do {
        /// Its number.
        tx: TxNumber,
        /// What it does.
        operation: Operation,
    },
    /// Some units of background work.
    Background {
        /// How many at most.
        units: u32,
    },
    /// A checkpoint.
    Checkpoint,
    /// The maintenance call that shrinks the files.
    Truncate,
    /// The consistency check.
    Verify,
    /// A backup, while everything that is open stays open; the copy is opened and answers with everything that it shows.
    Backup,
    /// Everything open is abandoned; the database is closed in good order and opened again.
    Reopen,
    /// The power fails; the database is opened again on what the disk kept.
    PowerCut {
        /// Decides what the disk kept of the writes that were not synced.
        seed: u64,
    },
}

/// Why an operation was refused: the kinds of errors, without their figures.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// First writer wins.
    Conflict,
    /// Insert of a key that is there, or of a row whose unique index entry is there.
    KeyExists,
    /// The key is too long.
    KeyTooLong,
    /// A range of an update lies outside the value.
    RangeOutsideValue,
    /// A write in a read-only transaction.
    ReadOnly,
    /// No such table or index.
    NoSuchTable,
    /// A table or index of this name exists.
    TableExists,
    /// An argument that cannot be used.
    InvalidArgument,
    /// The transaction conflicted earlier, or the savepoint is gone.
    TransactionOver,
    /// The disk is full, or a budget of memory is used up.
    NoRoom(String),
    /// The operating system refused a call.
    Io(String),
    /// A sync failed earlier.
    Poisoned,
    /// Bytes on disk are not what was written.
    Corruption(String),
    /// A wait took too long.
    Timeout,
    /// Anything else: never expected, so its text is kept.
    Other(String),
}

impl Refusal {
    /// True if the disk is to blame, not the history.
    pub fn is_of_the_disk(&self) -> bool {
        matches!(self, Self::NoRoom(_) | Self::Io(_) | Self::Poisoned)
    }
}

impl From<&StorageError> for Refusal {
    fn from(error: &StorageError) -> Self {
        match error {
            StorageError::Io { .. } => Self::Io(error.to_string()),
            StorageError::OutOfSpace { .. } | StorageError::MemoryLimit { .. } => {
                Self::NoRoom(error.to_string())
            }
            StorageError::Poisoned => Self::Poisoned,
            StorageError::Corruption { .. } => Self::Corruption(error.to_string()),
            StorageError::ForeignFormat { .. } | StorageError::Locked { .. } => {
                Self::Other(error.to_string())
            }
        }
    }
}

/// All tables with all rows, as of one snapshot.
pub type Contents = Vec<(String, Vec<(Key, Vec<u8>)>)>;

/// The answer to a step.
#[derive(Clone, PartialEq, Eq)]
pub enum Answer {
    /// It was done.
    Done,
    /// The step named something that is not open (steps before it were left out).
    Skipped,
    /// It was refused.
    Refused(Refusal),
    /// Whether a row was there.
    Found(bool),
    /// The value of a row.
    Row(Option<Vec<u8>>),
    /// The values of many rows.
    ManyRows(Vec<Option<Vec<u8>>>),
    /// Rows of a scan, in its order.
    Rows(Vec<(Key, Vec<u8>)>),
    /// A number of rows.
    Count(u64),
    /// Names of tables, ascending.
    Names(Vec<String>),
    /// Everything, after a restart.
    Contents(Contents),
}

impl From<Refusal> for Answer {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// Bytes, the first and the last of them.
pub struct Short<'a>(pub &'a [u8]);

impl fmt::Debug for Short<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0;
        if bytes.len() <= 24 {
            return write!(f, "\"{}\"", bytes.escape_ascii());
        }
        let (head, tail) = (&bytes[..10], &bytes[bytes.len() - 6..]);
        write!(
            f,
            "\"{}\"..\"{}\"[{}]",
            head.escape_ascii(),
            tail.escape_ascii(),
            bytes.len()
        )
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Short(&self.0).fmt(f)
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}[{}]", self.seed, self.length)
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = |f: &mut fmt::Formatter<'_>, rows: &[(Key, Vec<u8>)]| {
            f.debug_list()
                .entries(rows.iter().map(|(k, v)| (k, Short(v))))
                .finish()
        };
        match self {
            Self::Done => write!(f, "Done"),
            Self::Skipped => write!(f, "Skipped"),
            Self::Refused(why) => write!(f, "Refused({why:?})"),
            Self::Found(found) => write!(f, "Found({found})"),
            Self::Row(row) => write!(f, "Row({:?})", row.as_deref().map(Short)),
            Self::ManyRows(many) => f
                .debug_list()
                .entries(many.iter().map(|row| row.as_deref().map(Short)))
                .finish(),
            Self::Rows(list) => rows(f, list),
            Self::Count(count) => write!(f, "Count({count})"),
            Self::Names(names) => write!(f, "Names({names:?})"),
            Self::Contents(contents) => {
                for (name, list) in contents {
                    write!(f, "{name} ({} rows): ", list.len())?;
                    rows(f, list)?;
                    writeln!(f)?;
                }
                Ok(())
            }
        }
    }
}
