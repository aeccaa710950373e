//! The settings that there are: what each is at first, what it may be, and what it is about.

use super::passive_settings::PASSIVE;
use super::setting_value::six_digits;

/// A setting that there is.
pub(super) struct Known {
    pub name: &'static str,
    pub default: &'static str,
    pub kind: Kind,
    /// What it is about, in a sentence.
    pub about: &'static str,
    /// Whether only superusers may set it.
    pub superuser: bool,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Kind {
    Text,
    Bool,
    /// A boolean that cannot be otherwise here.
    Only(bool),
    /// In milliseconds where no unit is given, at least and at most so many.
    Milliseconds(i32, i32),
    Seconds(i32, i32),
    Bytes(i32, i32),
    /// In kilobytes.
    Kilobytes(i32, i32),
    /// In pages of 8 kB.
    Pages(i32, i32),
    Integer(i32, i32),
    Real(f64, f64),
    /// The same in milliseconds.
    RealMilliseconds(f64, f64),
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// Cannot be set.
    Fixed,
}

impl Kind {
    /// What its number counts.
    pub fn unit(self) -> Option<&'static str> {
        Some(match self {
            Self::Milliseconds(..) | Self::RealMilliseconds(..) => "ms",
            Self::Seconds(..) => "s",
            Self::Bytes(..) => "B",
            Self::Kilobytes(..) => "kB",
            Self::Pages(..) => "8kB",
            _ => return None,
        })
    }

    /// `vartype`.
    pub fn vartype(self) -> &'static str {
        match self {
            Self::Bool | Self::Only(_) => "bool",
            Self::Real(..) | Self::RealMilliseconds(..) => "real",
            Self::OneOf(_) => "enum",
            Self::Text | Self::Fixed => "string",
            _ => "integer",
        }
    }

    /// The least and the greatest that it can be.
    pub fn range(self) -> Option<(String, String)> {
        match self {
            Self::Milliseconds(least, most)
            | Self::Seconds(least, most)
            | Self::Bytes(least, most)
            | Self::Kilobytes(least, most)
            | Self::Pages(least, most)
            | Self::Integer(least, most) => Some((least.to_string(), most.to_string())),
            Self::Real(least, most) | Self::RealMilliseconds(least, most) => {
                Some((six_digits(least), six_digits(most)))
            }
            _ => None,
        }
    }
}

/// The name of a setting, which is lower case, as it is shown.
pub(super) fn shown_name(name: &str) -> &str {
    match name {
        "datestyle" => "DateStyle",
        "intervalstyle" => "IntervalStyle",
        "timezone" => "TimeZone",
        name => name,
    }
}

const fn known(
    name: &'static str,
    default: &'static str,
    kind: Kind,
    about: &'static str,
) -> Known {
    Known {
        name,
        default,
        kind,
        about,
        superuser: false,
    }
}

/// All that there are, in no order.
pub(super) fn all() -> impl Iterator<Item = &'static Known> {
    KNOWN.iter().chain(&PASSIVE)
}

/// The one of a name, which is lower case.
pub(super) fn named(name: &str) -> Option<&'static Known> {
    all().find(|known| known.name == name)
}

const TIME: Kind = Kind::Milliseconds(0, i32::MAX);
/// Levels of messages, the least first.
pub(super) const LEVELS: &[&str] = &[
    "debug5", "debug4", "debug3", "debug2", "debug1", "log", "notice", "warning", "error",
];
/// The same as logs have them.
pub(super) const LEVELS_OF_LOGS: &[&str] = &[
    "debug5", "debug4", "debug3", "debug2", "debug1", "info", "notice", "warning", "error", "log",
    "fatal", "panic",
];
const ISOLATIONS: &[&str] = &[
    "serializable",
    "repeatable read",
    "read committed",
    "read uncommitted",
];
const STYLES: &[&str] = &["postgres", "postgres_verbose", "sql_standard", "iso_8601"];
const COMMITS: &[&str] = &["local", "remote_write", "remote_apply", "on", "off"];

/// What switches foreign keys off.
pub(super) const REPLICATION_ROLE: &str = "session_replication_role";

/// Those that are heard, and those that stand for what there is not, in order.
#[rustfmt::skip]
const KNOWN: [Known; 63] = [
    known("application_name", "", Kind::Text, "What the client calls itself."),
    known("bytea_output", "hex", Kind::OneOf(&["escape", "hex"]), "How bytes are written as text."),
    known("check_function_bodies", "on", Kind::Bool, "Says nothing here: there are no functions with bodies."),
    known("client_encoding", "UTF8", Kind::Text, "Encoding of the client's texts."),
    known("client_min_messages", "notice", Kind::OneOf(LEVELS), "Messages of lower levels are not sent."),
    known("datestyle", "ISO, MDY", Kind::Text, "How dates are written, and the order of their parts when they are read."),
    known("deadlock_timeout", "1000", Kind::Milliseconds(1, i32::MAX), "Says nothing here: circles of waits are found when they close."),
    known("default_table_access_method", "heap", Kind::Text, "How tables are stored that say nothing of it."),
    known("default_tablespace", "", Kind::Text, "Where tables are stored that say nothing of it."),
    known("default_transaction_deferrable", "off", Kind::Bool, "Says nothing here: no transaction waits for a snapshot."),
    known("default_transaction_isolation", "read committed", Kind::OneOf(ISOLATIONS), "Level of transactions that say nothing of it."),
    known("default_transaction_read_only", "off", Kind::Bool, "Whether transactions only read that say nothing of it."),
    known("enable_bitmapscan", "on", Kind::Bool, "Says nothing here: what PostgreSQL's planner is told."),
    known("enable_hashagg", "on", Kind::Bool, "Says nothing here: what PostgreSQL's planner is told."),
    known("enable_hashjoin", "on", Kind::Bool, "Says nothing here: what PostgreSQL's planner is told."),
    known("enable_indexonlyscan", "on", Kind::Bool, "Says nothing here: what PostgreSQL's planner is told."),
    known("enable_indexscan", "on", Kind::Bool, "Says nothing here: what PostgreSQL's planner is told."),
    known("enable_material", "on", Kind::Bool, "Says nothing here: what PostgreSQL's planner is told."),
    known("enable_memoize", "on", Kind::Bool, "Says nothing here: what PostgreSQL's planner is told."),
    known("enable_mergejoin", "on", Kind::Bool, "Says nothing here: what PostgreSQL's planner is told."),
    known("enable_nestloop", "on", Kind::Bool, "Says nothing here: what PostgreSQL's planner is told."),
    known("enable_seqscan", "on", Kind::Bool, "Says nothing here: what PostgreSQL's planner is told."),
    known("enable_sort", "on", Kind::Bool, "Says nothing here: what PostgreSQL's planner is told."),
    known("extra_float_digits", "1", Kind::Integer(-15, 3), "Digits of floating-point numbers; above 0 the fewest that are read back as the same."),
    known("idle_in_transaction_session_timeout", "0", TIME, "How long a session may be idle in a transaction; 0 is for ever."),
    known("idle_session_timeout", "0", TIME, "How long a session may be idle; 0 is for ever."),
    known("in_hot_standby", "off", Kind::Fixed, "Whether the server only follows another one."),
    known("integer_datetimes", "on", Kind::Fixed, "Whether times are integers."),
    known("intervalstyle", "postgres", Kind::OneOf(STYLES), "How intervals are written."),
    known("is_superuser", "on", Kind::Fixed, "Whether the session's role may do everything."),
    known("jit", "on", Kind::Bool, "Says nothing here."),
    known("lc_collate", "C", Kind::Fixed, "Order of texts."),
    known("lc_ctype", "C", Kind::Fixed, "Classes of characters."),
    known("lc_messages", "C", Kind::Text, "Language of messages: theirs is English."),
    known("lc_monetary", "C", Kind::Text, "How amounts of money are written."),
    known("lc_numeric", "C", Kind::Text, "How numbers are written by to_char."),
    known("lc_time", "C", Kind::Text, "Names of days and months."),
    known("lock_timeout", "0", TIME, "How long a statement waits for each lock; 0 is for ever."),
    known("maintenance_work_mem", "65536", Kind::Kilobytes(1024, i32::MAX), "Memory of statements that make indexes."),
    known("max_connections", "1", Kind::Fixed, "Sessions that there may be at a time."),
    known("max_function_args", "100", Kind::Fixed, "Arguments that a function may have."),
    known("max_identifier_length", "63", Kind::Fixed, "Bytes that a name may have."),
    known("max_index_keys", "32", Kind::Fixed, "Columns that an index may have."),
    known("max_prepared_transactions", "0", Kind::Fixed, "Transactions that may be prepared at a time."),
    known("password_encryption", "scram-sha-256", Kind::OneOf(&["scram-sha-256"]), "How passwords are kept."),
    known("role", "none", Kind::Fixed, "The role whose rights the session has."),
    known("row_security", "on", Kind::Bool, "Says nothing here: there are no policies of rows."),
    known("search_path", "\"$user\", public", Kind::Text, "Schemas that names are looked up in."),
    known("server_encoding", "UTF8", Kind::Fixed, "Encoding of the database."),
    known("server_version", "15.0", Kind::Fixed, "PostgreSQL's version that this is compatible with."),
    known("server_version_num", "150000", Kind::Fixed, "The same as a number."),
    known("session_authorization", "", Kind::Fixed, "The role that the session is of."),
    Known {
        superuser: true,
        ..known(REPLICATION_ROLE, "origin", Kind::OneOf(&["origin", "replica", "local"]), "Whether foreign keys are looked at: not where it is \"replica\".")
    },
    known("standard_conforming_strings", "on", Kind::Fixed, "Whether a backslash in a literal is one."),
    known("statement_timeout", "0", TIME, "How long a statement may take; 0 is for ever."),
    known("synchronize_seqscans", "on", Kind::Bool, "Says nothing here."),
    known("synchronous_commit", "on", Kind::OneOf(COMMITS), "Whether a commit waits until it is durable."),
    known("timezone", "UTC", Kind::Text, "Zone of times that are written and read."),
    known("transaction_deferrable", "off", Kind::Bool, "Says nothing here: no transaction waits for a snapshot."),
    known("transaction_isolation", "", Kind::OneOf(ISOLATIONS), "Level of the transaction."),
    known("transaction_read_only", "off", Kind::Bool, "Whether the transaction only reads."),
    known("work_mem", "65536", Kind::Kilobytes(64, i32::MAX), "Memory of a query's steps before they use files."),
    known("xmloption", "content", Kind::OneOf(&["content", "document"]), "Says nothing here: there is no XML."),
];
