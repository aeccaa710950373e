//! SQLSTATEs: five characters that tell a program what went wrong. The classes and codes are PostgreSQL's, whose clients
//! act on them.

pub use vellum_row::SqlState;

macro_rules! states {
    ($($(#[$doc:meta])* $name:ident = $code:literal;)*) => {
        $($(#[$doc])* pub const $name: SqlState = SqlState::of($code);)*
    };
}

states! {
    /// A warning.
    WARNING = "01000";
    /// Something is there already, or not there, and was asked to be no error.
    SUCCESSFUL_COMPLETION = "00000";
    /// The client is gone: nobody is told.
    CONNECTION_FAILURE = "08006";
    /// Committed, but not known to be durable.
    TRANSACTION_RESOLUTION_UNKNOWN = "08007";
    /// A message that does not belong here.
    PROTOCOL_VIOLATION = "08P01";
    /// Not there (yet).
    FEATURE_NOT_SUPPORTED = "0A000";
    /// More rows than one from a scalar subquery.
    CARDINALITY_VIOLATION = "21000";
    /// Text longer than its column.
    STRING_DATA_RIGHT_TRUNCATION = "22001";
    /// A number outside its type.
    NUMERIC_VALUE_OUT_OF_RANGE = "22003";
    /// NULL where none may be.
    NULL_VALUE_NOT_ALLOWED = "22004";
    /// A subscript or a shape that an array does not have.
    ARRAY_SUBSCRIPT_ERROR = "2202E";
    /// A date or time outside its type.
    DATETIME_FIELD_OVERFLOW = "22008";
    /// Division by zero.
    DIVISION_BY_ZERO = "22012";
    /// A frame that begins or ends a negative distance away.
    INVALID_PRECEDING_OR_FOLLOWING_SIZE = "22013";
    /// A negative LIMIT.
    INVALID_ROW_COUNT_IN_LIMIT_CLAUSE = "2201W";
    /// A negative OFFSET.
    INVALID_ROW_COUNT_IN_RESULT_OFFSET_CLAUSE = "2201X";
    /// A value that a parameter or function does not take.
    INVALID_PARAMETER_VALUE = "22023";
    /// Bytes that are no text of the encoding.
    CHARACTER_NOT_IN_REPERTOIRE = "22021";
    /// Text that is no value of its type.
    INVALID_TEXT_REPRESENTATION = "22P02";
    /// Bytes that are no value of their type.
    INVALID_BINARY_REPRESENTATION = "22P03";
    /// A line that COPY cannot read.
    BAD_COPY_FILE_FORMAT = "22P04";
    /// An escape at the end of a pattern.
    INVALID_ESCAPE_SEQUENCE = "22025";
    /// A sequence is at its end.
    SEQUENCE_GENERATOR_LIMIT_EXCEEDED = "2200H";
    /// NOT NULL.
    NOT_NULL_VIOLATION = "23502";
    /// FOREIGN KEY.
    FOREIGN_KEY_VIOLATION = "23503";
    /// UNIQUE, PRIMARY KEY.
    UNIQUE_VIOLATION = "23505";
    /// CHECK.
    CHECK_VIOLATION = "23514";
    /// A cursor in a wrong state, or none of this name where one is open.
    INVALID_CURSOR_STATE = "24000";
    /// BEGIN inside a transaction.
    ACTIVE_SQL_TRANSACTION = "25001";
    /// A write in a read-only transaction.
    READ_ONLY_SQL_TRANSACTION = "25006";
    /// What needs a transaction, outside one.
    NO_ACTIVE_SQL_TRANSACTION = "25P01";
    /// Commands are ignored until the end of the transaction.
    IN_FAILED_SQL_TRANSACTION = "25P02";
    /// A transaction was idle for too long.
    IDLE_IN_TRANSACTION_SESSION_TIMEOUT = "25P03";
    /// No prepared statement of this name.
    INVALID_SQL_STATEMENT_NAME = "26000";
    /// No role of this name, or a wrong password.
    INVALID_AUTHORIZATION_SPECIFICATION = "28000";
    /// Others depend on it.
    DEPENDENT_OBJECTS_STILL_EXIST = "2BP01";
    /// No cursor of this name.
    INVALID_CURSOR_NAME = "34000";
    /// No savepoint of this name.
    INVALID_SAVEPOINT_SPECIFICATION = "3B001";
    /// No database of this name.
    INVALID_CATALOG_NAME = "3D000";
    /// No schema of this name.
    INVALID_SCHEMA_NAME = "3F000";
    /// Run the transaction again.
    SERIALIZATION_FAILURE = "40001";
    /// A commit whose outcome is unknown.
    STATEMENT_COMPLETION_UNKNOWN = "40003";
    /// Each waited for the other.
    DEADLOCK_DETECTED = "40P01";
    /// Not this role.
    INSUFFICIENT_PRIVILEGE = "42501";
    /// A right that such an object has not, or that cannot be given so.
    INVALID_GRANT_OPERATION = "0LP01";
    /// Not understood.
    SYNTAX_ERROR = "42601";
    /// A name that is no good.
    INVALID_NAME = "42602";
    /// A definition that cannot be.
    INVALID_TABLE_DEFINITION = "42P16";
    /// The same of an index, or of a generated column.
    INVALID_OBJECT_DEFINITION = "42P17";
    /// No such conversion.
    CANNOT_COERCE = "42846";
    /// Aggregates and plain columns do not mix.
    GROUPING_ERROR = "42803";
    /// A window or a window function where none can be.
    WINDOWING_ERROR = "42P20";
    /// Types do not fit.
    DATATYPE_MISMATCH = "42804";
    /// An object of the wrong kind.
    WRONG_OBJECT_TYPE = "42809";
    /// A column of a foreign key without unique index.
    INVALID_FOREIGN_KEY = "42830";
    /// A name that stands for more than one column.
    AMBIGUOUS_COLUMN = "42702";
    /// A name that stands for more than one table.
    AMBIGUOUS_ALIAS = "42P09";
    /// Two collations are said of one text.
    COLLATION_MISMATCH = "42P21";
    /// Nothing says by which collation texts are compared.
    INDETERMINATE_COLLATION = "42P22";
    /// An operator or function that fits more than one way.
    AMBIGUOUS_FUNCTION = "42725";
    /// No such column.
    UNDEFINED_COLUMN = "42703";
    /// No such function or operator.
    UNDEFINED_FUNCTION = "42883";
    /// No such table.
    UNDEFINED_TABLE = "42P01";
    /// No such parameter.
    UNDEFINED_PARAMETER = "42P02";
    /// No such object of another kind.
    UNDEFINED_OBJECT = "42704";
    /// A column twice.
    DUPLICATE_COLUMN = "42701";
    /// A cursor twice.
    DUPLICATE_CURSOR = "42P03";
    /// A schema twice.
    DUPLICATE_SCHEMA = "42P06";
    /// A prepared statement twice.
    DUPLICATE_PREPARED_STATEMENT = "42P05";
    /// A table twice.
    DUPLICATE_TABLE = "42P07";
    /// A name in FROM twice.
    DUPLICATE_ALIAS = "42712";
    /// Another object twice.
    DUPLICATE_OBJECT = "42710";
    /// A name with more bytes than are kept.
    NAME_TOO_LONG = "42622";
    /// A column that may not be named here.
    INVALID_COLUMN_REFERENCE = "42P10";
    /// A cursor that cannot be what it is declared as.
    INVALID_CURSOR_DEFINITION = "42P11";
    /// A parameter that one type is said of, and then another.
    AMBIGUOUS_PARAMETER = "42P08";
    /// Nothing says which type.
    INDETERMINATE_DATATYPE = "42P18";
    /// No column is to be written by users.
    GENERATED_ALWAYS = "428C9";
    /// A check option of a view.
    WITH_CHECK_OPTION_VIOLATION = "44000";
    /// Memory, in general.
    OUT_OF_MEMORY = "53200";
    /// The disk is full.
    DISK_FULL = "53100";
    /// No slot, no connection.
    TOO_MANY_CONNECTIONS = "53300";
    /// A limit of the configuration.
    CONFIGURATION_LIMIT_EXCEEDED = "53400";
    /// A key too long, a statement too large.
    PROGRAM_LIMIT_EXCEEDED = "54000";
    /// Nested too deeply.
    STATEMENT_TOO_COMPLEX = "54001";
    /// Too many columns.
    TOO_MANY_COLUMNS = "54011";
    /// Too many arguments.
    TOO_MANY_ARGUMENTS = "54023";
    /// Not in this state.
    OBJECT_NOT_IN_PREREQUISITE_STATE = "55000";
    /// In use by others.
    OBJECT_IN_USE = "55006";
    /// Not a parameter that can be set now.
    CANT_CHANGE_RUNTIME_PARAM = "55P02";
    /// A lock is held by others.
    LOCK_NOT_AVAILABLE = "55P03";
    /// Cancelled by the user, or by a time limit.
    QUERY_CANCELED = "57014";
    /// The database ends.
    ADMIN_SHUTDOWN = "57P01";
    /// The operating system failed.
    IO_ERROR = "58030";
    /// The snapshot was withdrawn.
    SNAPSHOT_TOO_OLD = "72000";
    /// Something that should not be.
    INTERNAL_ERROR = "XX000";
    /// Bytes on disk are not what was written.
    DATA_CORRUPTED = "XX001";
}
