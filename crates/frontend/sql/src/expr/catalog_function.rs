//! Functions that queries of the system catalogs call, and those of arrays and regular expressions.
//!
//! They are one table: what the binder resolves calls with, and what `pg_proc` lists, with PostgreSQL's oids. What needs the catalog is asked of the
//! session's [`Environment`]; what does not is computed here.

use super::catalog_objects::{FUNCTIONS as MORE, no_search};
use super::function::Builtin;
use super::{Environment, Out};
use crate::error::{Result, SqlError};
use crate::sqlstate;
use std::sync::OnceLock;
use vellum_base::maps::HashMap;
use vellum_row::{Array, Pattern, Type, Value, ValueRef, array, json};

/// A function of the table, or one that only the binder makes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CatalogFunction {
    /// A lock on one number or two: whether it is shared, and whether it is the transaction's.
    Advisory {
        action: AdvisoryAction,
        shared: bool,
        of_transaction: bool,
    },
    /// All of a session's are released.
    AdvisoryUnlockAll,
    // Text and oids of objects.
    AlwaysFalse,
    AlwaysTrue,
    /// A copy of the database into a directory.
    Backup,
    BlockingPids,
    CancelBackend,
    ClientAddress,
    ClientPort,
    ColumnComment,
    ColumnIsUpdatable,
    ConstraintDefinition,
    CurrentQuery,
    ReloadConf,
    ResetStatistics,
    CurrentSchemas,
    ClientEncoding,
    DatabaseEncoding,
    DatabaseSize,
    DescribeObject,
    EmptyText,
    EncodingName,
    EncodingNumber,
    ExportSnapshot,
    Expression,
    FileNode,
    FilePath,
    FormatType,
    FunctionArguments,
    FunctionIsVisible,
    FunctionResult,
    HasAnyColumnPrivilege,
    HasColumnPrivilege,
    HasDatabasePrivilege,
    HasFunctionPrivilege,
    HasRole,
    HasSchemaPrivilege,
    HasTablePrivilege,
    HasTypePrivilege,
    HasLanguagePrivilege,
    HasTablespacePrivilege,
    IndexColumnProperty,
    IndexDefinition,
    IndexProperty,
    IndexesSize,
    IsOtherTempSchema,
    LastValue,
    /// As an array.
    ListeningChannels,
    MyTempSchema,
    NoDefinition,
    /// The newest number of a transaction that the statement knows, as an `xid`.
    NewestNumber,
    NumberAge,
    Notify,
    NotifyQueueUsage,
    /// There is no recovery that a client sees.
    OnlyInRecovery,
    ObjectComment,
    QuoteIdent,
    RelationSize,
    RelationIsUpdatable,
    RuleDefinition,
    SequenceLastValue,
    /// As an array of numbers.
    SequenceParameters,
    SerialSequence,
    ServerAddress,
    ServerPort,
    SizePretty,
    Sleep,
    SleepFor,
    SleepUntil,
    StartTime,
    TableIsVisible,
    TableSize,
    TablespaceSize,
    TerminateBackend,
    TotalSize,
    TriggerDefinition,
    /// The number that the transaction tells of itself; only if it has one.
    TransactionNumber {
        only_drawn: bool,
        old: bool,
    },
    /// What its snapshot tells of the numbers of others. `old`: under its older name.
    TransactionSnapshot {
        old: bool,
    },
    TransactionStatus {
        old: bool,
    },
    TypeIsVisible,
    TypesOf,
    UserById,
    ViewDefinition,
    /// `to_regclass` and its like: null for a name that stands for nothing.
    ToReg(Type),
    /// A cast from text to one of these types, or of an array of texts.
    RegOf(Type),
    /// A cast of one of these types to text, or of an array of it.
    RegText(Type),
    // Arrays.
    ArrayAppend,
    ArrayConcat,
    ArrayDimensions,
    ArrayLength,
    ArrayLower,
    ArrayPosition,
    ArrayToText,
    ArrayUpper,
    Cardinality,
    /// Rights on what has none written down.
    DefaultRights,
    /// A `record` of its arguments.
    MakeRecord,
    /// `(record).column`, by its number and type.
    Field(u16, Type),
    /// `array[i]`.
    Subscript,
    /// `ARRAY[…]` of elements of this type.
    MakeArray(Type),
    /// The same as an `oidvector` or `int2vector`.
    MakeVector(Type),
    /// `ARRAY[ARRAY[…], …]` of arrays whose elements are of this type.
    NestArrays(Type),
    /// `value <comparison> ANY (array)`, or ALL.
    AnyOf(super::Comparison, Quantifier),
    /// `text LIKE ANY (array)`, or ALL.
    LikeAnyOf {
        fold: bool,
        negated: bool,
        quantifier: Quantifier,
    },
    /// `text ~ pattern`, or `~*`.
    Matches {
        fold: bool,
    },
    /// `json -> key`, or `->>`.
    JsonGet {
        as_text: bool,
    },
    /// A JSON object or array of its arguments.
    JsonBuild {
        object: bool,
        binary: bool,
    },
    /// JSON of its argument.
    ToJson {
        binary: bool,
    },
}

/// What is done to an advisory lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AdvisoryAction {
    /// Taken, waiting for it.
    Take,
    /// Taken if it is free.
    Try,
    /// Released.
    Release,
}

const fn advisory(action: AdvisoryAction, shared: bool, of_transaction: bool) -> CatalogFunction {
    CatalogFunction::Advisory {
        action,
        shared,
        of_transaction,
    }
}

/// ANY or ALL.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Quantifier {
    /// One of them is enough.
    Any,
    /// All of them have to.
    All,
}

/// A function that can be called by its name.
#[derive(Debug)]
pub(crate) struct CatalogEntry {
    pub oid: u32,
    pub name: &'static str,
    arguments: &'static str,
    pub result: &'static str,
    function: CatalogFunction,
}

impl CatalogEntry {
    /// Names of its arguments' types.
    pub fn arguments(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.arguments.split_whitespace()
    }

    /// What a call of it is.
    pub fn builtin(&self) -> Builtin {
        Builtin::Catalog(self.function)
    }
}

pub(super) const fn entry(
    oid: u32,
    name: &'static str,
    arguments: &'static str,
    result: &'static str,
    function: CatalogFunction,
) -> CatalogEntry {
    CatalogEntry {
        oid,
        name,
        arguments,
        result,
        function,
    }
}

use CatalogFunction as F;

#[rustfmt::skip]
static FUNCTIONS: [CatalogEntry; 154] = [
    entry(1081, "format_type", "oid int4", "text", F::FormatType),
    entry(1349, "oidvectortypes", "oidvector", "text", F::TypesOf),
    entry(1716, "pg_get_expr", "pg_node_tree oid", "text", F::Expression),
    entry(2509, "pg_get_expr", "pg_node_tree oid bool", "text", F::Expression),
    entry(1643, "pg_get_indexdef", "oid", "text", F::IndexDefinition),
    entry(2507, "pg_get_indexdef", "oid int4 bool", "text", F::IndexDefinition),
    entry(1387, "pg_get_constraintdef", "oid", "text", F::ConstraintDefinition),
    entry(2508, "pg_get_constraintdef", "oid bool", "text", F::ConstraintDefinition),
    entry(1641, "pg_get_viewdef", "oid", "text", F::ViewDefinition),
    entry(2506, "pg_get_viewdef", "oid bool", "text", F::ViewDefinition),
    entry(3159, "pg_get_viewdef", "oid int4", "text", F::ViewDefinition),
    entry(1640, "pg_get_viewdef", "text", "text", F::ViewDefinition),
    entry(2505, "pg_get_viewdef", "text bool", "text", F::ViewDefinition),
    entry(3842, "pg_relation_is_updatable", "regclass bool", "int4", F::RelationIsUpdatable),
    entry(3843, "pg_column_is_updatable", "regclass int2 bool", "bool", F::ColumnIsUpdatable),
    entry(1573, "pg_get_ruledef", "oid", "text", F::RuleDefinition),
    entry(2504, "pg_get_ruledef", "oid bool", "text", F::RuleDefinition),
    entry(1662, "pg_get_triggerdef", "oid", "text", F::TriggerDefinition),
    entry(2730, "pg_get_triggerdef", "oid bool", "text", F::TriggerDefinition),
    entry(6174, "pg_get_statisticsobjdef_columns", "oid", "text", F::NoDefinition),
    entry(3415, "pg_get_statisticsobjdef", "oid", "text", F::NoDefinition),
    entry(3352, "pg_get_partkeydef", "oid", "text", F::NoDefinition),
    entry(2098, "pg_get_functiondef", "oid", "text", F::NoDefinition),
    entry(2165, "pg_get_function_result", "oid", "text", F::FunctionResult),
    entry(2162, "pg_get_function_arguments", "oid", "text", F::FunctionArguments),
    entry(2232, "pg_get_function_identity_arguments", "oid", "text", F::FunctionArguments),
    entry(1665, "pg_get_serial_sequence", "text text", "text", F::SerialSequence),
    entry(3943, "acldefault", "char oid", "_aclitem", F::DefaultRights),
    entry(1642, "pg_get_userbyid", "oid", "name", F::UserById),
    entry(2079, "pg_table_is_visible", "oid", "bool", F::TableIsVisible),
    entry(2080, "pg_type_is_visible", "oid", "bool", F::TypeIsVisible),
    entry(2081, "pg_function_is_visible", "oid", "bool", F::FunctionIsVisible),
    entry(2083, "pg_opclass_is_visible", "oid", "bool", F::AlwaysTrue),
    entry(2082, "pg_operator_is_visible", "oid", "bool", F::AlwaysTrue),
    entry(3815, "pg_collation_is_visible", "oid", "bool", F::AlwaysTrue),
    entry(3403, "pg_statistics_obj_is_visible", "oid", "bool", F::AlwaysTrue),
    entry(1348, "obj_description", "oid", "text", F::ObjectComment),
    entry(1215, "obj_description", "oid name", "text", F::ObjectComment),
    entry(1216, "col_description", "oid int4", "text", F::ColumnComment),
    entry(1993, "shobj_description", "oid name", "text", F::ObjectComment),
    entry(1282, "quote_ident", "text", "text", F::QuoteIdent),
    entry(395, "array_to_string", "anyarray text", "text", F::ArrayToText),
    entry(384, "array_to_string", "anyarray text text", "text", F::ArrayToText),
    entry(2176, "array_length", "anyarray int4", "int4", F::ArrayLength),
    entry(2092, "array_upper", "anyarray int4", "int4", F::ArrayUpper),
    entry(2091, "array_lower", "anyarray int4", "int4", F::ArrayLower),
    entry(748, "array_ndims", "anyarray", "int4", F::ArrayDimensions),
    entry(3179, "cardinality", "anyarray", "int4", F::Cardinality),
    entry(3277, "array_position", "anycompatiblearray anycompatible", "int4", F::ArrayPosition),
    entry(378, "array_append", "anycompatiblearray anycompatible", "anycompatiblearray", F::ArrayAppend),
    entry(383, "array_cat", "anycompatiblearray anycompatiblearray", "anycompatiblearray", F::ArrayConcat),
    entry(1403, "current_schemas", "bool", "_name", F::CurrentSchemas),
    entry(1926, "has_table_privilege", "text text", "bool", F::HasTablePrivilege),
    entry(1927, "has_table_privilege", "oid text", "bool", F::HasTablePrivilege),
    entry(1922, "has_table_privilege", "name text text", "bool", F::HasTablePrivilege),
    entry(1923, "has_table_privilege", "name oid text", "bool", F::HasTablePrivilege),
    entry(1924, "has_table_privilege", "oid text text", "bool", F::HasTablePrivilege),
    entry(1925, "has_table_privilege", "oid oid text", "bool", F::HasTablePrivilege),
    entry(3028, "has_any_column_privilege", "text text", "bool", F::HasAnyColumnPrivilege),
    entry(3029, "has_any_column_privilege", "oid text", "bool", F::HasAnyColumnPrivilege),
    entry(3024, "has_any_column_privilege", "name text text", "bool", F::HasAnyColumnPrivilege),
    entry(3025, "has_any_column_privilege", "name oid text", "bool", F::HasAnyColumnPrivilege),
    entry(2185, "has_sequence_privilege", "text text", "bool", F::HasTablePrivilege),
    entry(2186, "has_sequence_privilege", "oid text", "bool", F::HasTablePrivilege),
    entry(2181, "has_sequence_privilege", "name text text", "bool", F::HasTablePrivilege),
    entry(2182, "has_sequence_privilege", "name oid text", "bool", F::HasTablePrivilege),
    entry(3023, "has_column_privilege", "oid int2 text", "bool", F::HasColumnPrivilege),
    entry(3022, "has_column_privilege", "oid text text", "bool", F::HasColumnPrivilege),
    entry(3020, "has_column_privilege", "text text text", "bool", F::HasColumnPrivilege),
    entry(2272, "has_schema_privilege", "text text", "bool", F::HasSchemaPrivilege),
    entry(2273, "has_schema_privilege", "oid text", "bool", F::HasSchemaPrivilege),
    entry(2268, "has_schema_privilege", "name text text", "bool", F::HasSchemaPrivilege),
    entry(2269, "has_schema_privilege", "name oid text", "bool", F::HasSchemaPrivilege),
    entry(2254, "has_database_privilege", "text text", "bool", F::HasDatabasePrivilege),
    entry(2255, "has_database_privilege", "oid text", "bool", F::HasDatabasePrivilege),
    entry(2250, "has_database_privilege", "name text text", "bool", F::HasDatabasePrivilege),
    entry(2251, "has_database_privilege", "name oid text", "bool", F::HasDatabasePrivilege),
    entry(2709, "pg_has_role", "name text", "bool", F::HasRole),
    entry(2710, "pg_has_role", "oid text", "bool", F::HasRole),
    entry(2705, "pg_has_role", "name name text", "bool", F::HasRole),
    entry(2706, "pg_has_role", "name oid text", "bool", F::HasRole),
    entry(2708, "pg_has_role", "oid oid text", "bool", F::HasRole),
    entry(1597, "pg_encoding_to_char", "int4", "name", F::EncodingName),
    entry(1264, "pg_char_to_encoding", "name", "int4", F::EncodingNumber),
    entry(1039, "getdatabaseencoding", "", "name", F::DatabaseEncoding),
    entry(810, "pg_client_encoding", "", "name", F::ClientEncoding),
    entry(3495, "to_regclass", "text", "regclass", F::ToReg(Type::Regclass)),
    entry(3493, "to_regtype", "text", "regtype", F::ToReg(Type::Regtype)),
    entry(4086, "to_regnamespace", "text", "regnamespace", F::ToReg(Type::Regnamespace)),
    entry(4093, "to_regrole", "text", "regrole", F::ToReg(Type::Regrole)),
    entry(3494, "to_regproc", "text", "regproc", F::ToReg(Type::Regproc)),
    entry(3479, "to_regprocedure", "text", "regprocedure", F::ToReg(Type::Regprocedure)),
    entry(2325, "pg_relation_size", "regclass", "int8", F::RelationSize),
    entry(2332, "pg_relation_size", "regclass text", "int8", F::RelationSize),
    entry(2997, "pg_table_size", "regclass", "int8", F::TableSize),
    entry(2998, "pg_indexes_size", "regclass", "int8", F::IndexesSize),
    entry(2286, "pg_total_relation_size", "regclass", "int8", F::TotalSize),
    entry(2324, "pg_database_size", "oid", "int8", F::DatabaseSize),
    entry(2168, "pg_database_size", "name", "int8", F::DatabaseSize),
    entry(2288, "pg_size_pretty", "int8", "text", F::SizePretty),
    entry(3778, "pg_tablespace_location", "oid", "text", F::EmptyText),
    entry(5059, "pg_current_xact_id", "", "xid8", F::TransactionNumber { only_drawn: false, old: false }),
    entry(5060, "pg_current_xact_id_if_assigned", "", "xid8", F::TransactionNumber { only_drawn: true, old: false }),
    entry(5061, "pg_current_snapshot", "", "pg_snapshot", F::TransactionSnapshot { old: false }),
    entry(3809, "pg_export_snapshot", "", "text", F::ExportSnapshot),
    entry(5066, "pg_xact_status", "xid8", "text", F::TransactionStatus { old: false }),
    entry(2943, "txid_current", "", "int8", F::TransactionNumber { only_drawn: false, old: true }),
    entry(3348, "txid_current_if_assigned", "", "int8", F::TransactionNumber { only_drawn: true, old: true }),
    entry(2944, "txid_current_snapshot", "", "txid_snapshot", F::TransactionSnapshot { old: true }),
    entry(3360, "txid_status", "int8", "text", F::TransactionStatus { old: true }),
    entry(4195, "to_regcollation", "text", "regcollation", F::ToReg(Type::Regcollation)),
    entry(3810, "pg_is_in_recovery", "", "bool", F::AlwaysFalse),
    entry(2854, "pg_my_temp_schema", "", "oid", F::MyTempSchema),
    entry(2855, "pg_is_other_temp_schema", "oid", "bool", F::IsOtherTempSchema),
    entry(6121, "pg_relation_is_publishable", "regclass", "bool", F::AlwaysFalse),
    entry(2999, "pg_relation_filenode", "regclass", "oid", F::FileNode),
    entry(2196, "inet_client_addr", "", "inet", F::ClientAddress),
    entry(2197, "inet_client_port", "", "int4", F::ClientPort),
    entry(2198, "inet_server_addr", "", "inet", F::ServerAddress),
    entry(2199, "inet_server_port", "", "int4", F::ServerPort),
    entry(2561, "pg_blocking_pids", "int4", "_int4", F::BlockingPids),
    entry(2171, "pg_cancel_backend", "int4", "bool", F::CancelBackend),
    entry(2096, "pg_terminate_backend", "int4", "bool", F::TerminateBackend),
    // Vellum's own, with an oid that PostgreSQL gives to nothing that it has from the start.
    entry(16000, "vellum_backup", "text", "void", F::Backup),
    entry(2626, "pg_sleep", "float8", "void", F::Sleep),
    entry(3935, "pg_sleep_for", "interval", "void", F::SleepFor),
    entry(3936, "pg_sleep_until", "timestamptz", "void", F::SleepUntil),
    entry(1181, "age", "xid", "int4", F::NumberAge),
    entry(2880, "pg_advisory_lock", "int8", "void", advisory(AdvisoryAction::Take, false, false)),
    entry(2881, "pg_advisory_lock_shared", "int8", "void", advisory(AdvisoryAction::Take, true, false)),
    entry(2882, "pg_try_advisory_lock", "int8", "bool", advisory(AdvisoryAction::Try, false, false)),
    entry(2883, "pg_try_advisory_lock_shared", "int8", "bool", advisory(AdvisoryAction::Try, true, false)),
    entry(2884, "pg_advisory_unlock", "int8", "bool", advisory(AdvisoryAction::Release, false, false)),
    entry(2885, "pg_advisory_unlock_shared", "int8", "bool", advisory(AdvisoryAction::Release, true, false)),
    entry(3089, "pg_advisory_xact_lock", "int8", "void", advisory(AdvisoryAction::Take, false, true)),
    entry(3090, "pg_advisory_xact_lock_shared", "int8", "void", advisory(AdvisoryAction::Take, true, true)),
    entry(3091, "pg_try_advisory_xact_lock", "int8", "bool", advisory(AdvisoryAction::Try, false, true)),
    entry(3092, "pg_try_advisory_xact_lock_shared", "int8", "bool", advisory(AdvisoryAction::Try, true, true)),
    entry(2886, "pg_advisory_lock", "int4 int4", "void", advisory(AdvisoryAction::Take, false, false)),
    entry(2887, "pg_advisory_lock_shared", "int4 int4", "void", advisory(AdvisoryAction::Take, true, false)),
    entry(2888, "pg_try_advisory_lock", "int4 int4", "bool", advisory(AdvisoryAction::Try, false, false)),
    entry(2889, "pg_try_advisory_lock_shared", "int4 int4", "bool", advisory(AdvisoryAction::Try, true, false)),
    entry(2890, "pg_advisory_unlock", "int4 int4", "bool", advisory(AdvisoryAction::Release, false, false)),
    entry(2891, "pg_advisory_unlock_shared", "int4 int4", "bool", advisory(AdvisoryAction::Release, true, false)),
    entry(3093, "pg_advisory_xact_lock", "int4 int4", "void", advisory(AdvisoryAction::Take, false, true)),
    entry(3094, "pg_advisory_xact_lock_shared", "int4 int4", "void", advisory(AdvisoryAction::Take, true, true)),
    entry(3095, "pg_try_advisory_xact_lock", "int4 int4", "bool", advisory(AdvisoryAction::Try, false, true)),
    entry(3096, "pg_try_advisory_xact_lock_shared", "int4 int4", "bool", advisory(AdvisoryAction::Try, true, true)),
    entry(2892, "pg_advisory_unlock_all", "", "void", F::AdvisoryUnlockAll),
    entry(3036, "pg_notify", "text text", "void", F::Notify),
    entry(3296, "pg_notification_queue_usage", "", "float8", F::NotifyQueueUsage),
    entry(2559, "lastval", "", "int8", F::LastValue),
    entry(2560, "pg_postmaster_start_time", "", "timestamptz", F::StartTime),
    entry(2034, "pg_conf_load_time", "", "timestamptz", F::StartTime),
];

/// All of them.
pub(crate) fn catalog_functions() -> impl Iterator<Item = &'static CatalogEntry> {
    FUNCTIONS.iter().chain(&MORE)
}

/// The oid of the type that has no values.
pub(crate) const VOID: u32 = 2278;

/// The oid of a type by its `typname`, those without values included.
pub(crate) fn type_oid(name: &str) -> u32 {
    match name {
        "any" => 2276,
        "anyarray" => 2277,
        "anyelement" => 2283,
        "anycompatiblearray" => 5078,
        "anycompatible" => 5077,
        "void" => VOID,
        name => Type::from_name(name).map_or(0, Type::oid),
    }
}

/// Those of a name.
pub(super) fn entries_named(name: &str) -> &'static [&'static CatalogEntry] {
    static NAMES: OnceLock<HashMap<&'static str, Vec<&'static CatalogEntry>>> = OnceLock::new();
    let names = NAMES.get_or_init(|| {
        let mut names: HashMap<&'static str, Vec<&'static CatalogEntry>> = HashMap::default();
        for entry in catalog_functions() {
            names.entry(entry.name).or_default().push(entry);
        }
        names
    });
    names.get(name).map_or(&[], Vec::as_slice)
}

impl CatalogFunction {
    /// The name that it is called by; empty for what has none.
    pub fn name(self) -> &'static str {
        // These are bound by their own rules.
        match self {
            Self::JsonBuild { object, binary } => {
                return match (object, binary) {
                    (true, true) => "jsonb_build_object",
                    (true, false) => "json_build_object",
                    (false, true) => "jsonb_build_array",
                    (false, false) => "json_build_array",
                };
            }
            Self::ToJson { binary } => return if binary { "to_jsonb" } else { "to_json" },
            _ => {}
        }
        let found = catalog_functions().find(|entry| entry.function == self);
        found.map_or("", |entry| entry.name)
    }

    /// Whether two calls in one statement may differ, or have effects.
    pub(super) fn is_volatile(self) -> bool {
        matches!(
            self,
            Self::CancelBackend
                | Self::Backup
                | Self::ExportSnapshot
                | Self::Sleep
                | Self::SleepFor
                | Self::SleepUntil
                | Self::TerminateBackend
                | Self::Advisory { .. }
                | Self::AdvisoryUnlockAll
                | Self::LastValue
                | Self::SequenceLastValue
                | Self::TransactionStatus { .. }
                | Self::ListeningChannels
                | Self::Notify
                | Self::NotifyQueueUsage
                | Self::OnlyInRecovery
                | Self::ReloadConf
                | Self::ResetStatistics
        )
    }

    /// Whether the session is asked for its value. Those that are not are known here: of others it is only supposed.
    pub(super) fn asks(self) -> bool {
        !matches!(
            self,
            Self::AlwaysTrue
                | Self::AlwaysFalse
                | Self::NoDefinition
                | Self::EmptyText
                | Self::ArrayDimensions
                | Self::ArrayLength
                | Self::ArrayLower
                | Self::ArrayUpper
                | Self::Cardinality
                | Self::ArrayPosition
                | Self::ArrayAppend
                | Self::ArrayConcat
                | Self::ArrayToText
                | Self::Subscript
                | Self::MakeRecord
                | Self::Field(..)
                | Self::MakeArray(_)
                | Self::MakeVector(_)
                | Self::NestArrays(_)
                | Self::AnyOf(..)
                | Self::LikeAnyOf { .. }
                | Self::Matches { .. }
                | Self::JsonGet { .. }
                | Self::JsonBuild { .. }
                | Self::ToJson { .. }
                | Self::QuoteIdent
                | Self::DatabaseEncoding
                | Self::EncodingName
                | Self::EncodingNumber
                | Self::SizePretty
        )
    }

    /// Whether a null among the arguments makes the result null.
    pub(super) fn is_strict(self) -> bool {
        !matches!(
            self,
            Self::FormatType
                | Self::Notify
                | Self::ArrayAppend
                | Self::ArrayConcat
                | Self::ArrayPosition
                | Self::ArrayToText
                | Self::MakeArray(_)
                | Self::MakeVector(_)
                | Self::NestArrays(_)
                | Self::MakeRecord
                | Self::AnyOf(..)
                | Self::LikeAnyOf { .. }
                | Self::JsonBuild { .. }
        )
    }
}

/// Runs one.
pub(super) fn call<'a>(
    function: CatalogFunction,
    values: &[Value],
    env: &dyn Environment,
) -> Result<Out<'a>> {
    let value = |at: usize| values.get(at).map_or(ValueRef::Null, Value::as_ref);
    let text = |at: usize| value(at).as_str().unwrap_or_default();
    let of_array = |at: usize| match value(at) {
        ValueRef::Array(array) => Some(array),
        _ => None,
    };
    let number = |at: usize| {
        value(at)
            .as_i64()
            .and_then(|number| i32::try_from(number).ok())
    };
    let dimension = || {
        let wanted = usize::try_from(number(1)?.checked_sub(1)?).ok()?;
        of_array(0)?.dimensions().nth(wanted)
    };
    let int4 = |number: Option<i32>| number.map_or(Value::Null, Value::Int4);
    let done = match function {
        F::AlwaysTrue => Value::Bool(true),
        F::AlwaysFalse => Value::Bool(false),
        F::NoDefinition => Value::Null,
        F::EmptyText => Value::text(""),
        F::ArrayDimensions => {
            let count = of_array(0).map_or(0, |array| array.dimensions().count());
            int4(i32::try_from(count).ok().filter(|count| *count > 0))
        }
        F::ArrayLength => int4(dimension().map(|one| one.length)),
        F::ArrayLower => int4(dimension().map(|one| one.lower)),
        F::ArrayUpper => int4(dimension().map(|one| one.lower + (one.length - 1))),
        F::Cardinality => {
            let count = of_array(0).map_or(0, |array| array.len());
            int4(i32::try_from(count).ok())
        }
        F::ArrayPosition => match of_array(0) {
            Some(array) if array.dimensions().nth(1).is_some() => return Err(no_search()),
            Some(array) => int4(array::position(array, value(1))),
            None => Value::Null,
        },
        F::ArrayAppend => match of_array(0) {
            Some(array) => Value::Array(array::append(array, value(1).to_value())?),
            // The binder puts an empty one in its place.
            None => Value::Null,
        },
        F::ArrayConcat => match (of_array(0), of_array(1)) {
            (Some(left), Some(right)) => Value::Array(array::concat(left, right)?),
            (left, right) => left
                .or(right)
                .map_or(Value::Null, |one| Value::Array(one.to_array())),
        },
        F::ArrayToText => match (of_array(0), value(1).as_str()) {
            (Some(array), Some(separator)) => {
                let null = value(2).as_str();
                Value::text(array::to_text(array, separator, null, env.settings())?)
            }
            _ => Value::Null,
        },
        F::Subscript => {
            let subscripts: Option<Vec<i32>> = (1..values.len()).map(number).collect();
            let found = of_array(0).zip(subscripts);
            let found = found.and_then(|(array, subscripts)| array.get(&subscripts));
            found.unwrap_or(Value::Null)
        }
        F::MakeRecord => super::record::make(values, env.settings())?,
        F::Field(number, ty) => {
            super::record::field(value(0), usize::from(number), ty, env.settings())?
        }
        F::MakeArray(element) => Value::Array(Array::list(element, values)?),
        F::MakeVector(element) => Value::Array(Array::vector(element, values)),
        F::NestArrays(element) => {
            let parts: Option<Vec<_>> = (0..values.len()).map(of_array).collect();
            let nested = match parts {
                Some(parts) => Array::nested(element, &parts)?,
                None => None,
            };
            let text =
                "multidimensional arrays must have array expressions with matching dimensions";
            let state = sqlstate::SqlState::of("2202E");
            Value::Array(nested.ok_or_else(|| SqlError::new(state, text))?)
        }
        F::AnyOf(comparison, quantifier) => match of_array(1) {
            Some(array) => any_of(comparison, quantifier, value(0), array),
            None => Value::Null,
        },
        F::LikeAnyOf {
            fold,
            negated,
            quantifier,
        } => match of_array(1) {
            Some(array) => like_any(value(0), array, (fold, negated), quantifier)?,
            None => Value::Null,
        },
        F::Matches { fold } => Value::Bool(super::scalar::matches(text(0), text(1), fold)?),
        F::JsonGet { as_text } => json_get(value(0), value(1), as_text)?,
        F::JsonBuild { object, binary } => json_build(object, binary, values, env)?,
        F::ToJson { binary } => json::of(value(0), binary, env.settings())?,
        F::QuoteIdent => Value::text(crate::names::quoted(text(0))),
        F::DatabaseEncoding => Value::text("UTF8"),
        F::EncodingName => Value::text(if number(0) == Some(6) { "UTF8" } else { "" }),
        F::EncodingNumber => {
            let plain = text(0).to_lowercase().replace('-', "");
            Value::Int4(if matches!(&*plain, "utf8" | "unicode") {
                6
            } else {
                -1
            })
        }
        F::SizePretty => Value::text(match value(0) {
            ValueRef::Numeric(size) => super::scalar::pretty_numeric(&size.to_numeric())?,
            size => super::scalar::pretty_size(size.as_i64().unwrap_or(0).into()),
        }),
        other => env.ask(Builtin::Catalog(other), values)?,
    };
    Ok(Out::Own(done))
}

/// A field of a JSON value by its name, or an element by its number; null if there is none.
fn json_get(value: ValueRef<'_>, key: ValueRef<'_>, as_text: bool) -> Result<Value> {
    let name = key.as_str().unwrap_or_default();
    let number = key.as_i64().and_then(|number| i32::try_from(number).ok());
    let shown = |text: Option<String>| text.map_or(Value::Null, Value::text);
    Ok(match (value, number) {
        (ValueRef::Jsonb(value), number) => {
            let found = match number {
                Some(number) => value.element(number),
                None => value.field(name),
            };
            match found {
                Some(found) if as_text => shown(found.as_text()?),
                Some(found) => ValueRef::Jsonb(found).to_value(),
                None => Value::Null,
            }
        }
        (ValueRef::Json(text), Some(number)) if as_text => {
            shown(json::array_element_text(text, number)?)
        }
        (ValueRef::Json(text), None) if as_text => shown(json::field_text(text, name)?),
        (ValueRef::Json(text), number) => {
            let found = match number {
                Some(number) => json::array_element(text, number)?,
                None => json::field(text, name)?,
            };
            found.map_or(Value::Null, |found| Value::Json(found.into()))
        }
        _ => Value::Null,
    })
}

/// # Errors
/// `22023` for a null where a name is to be.
fn json_build(
    object: bool,
    binary: bool,
    values: &[Value],
    env: &dyn Environment,
) -> Result<Value> {
    let settings = env.settings();
    if !object {
        return Ok(json::array_of(values, ", ", binary, settings)?);
    }
    if let Some(at) = values.iter().step_by(2).position(Value::is_null) {
        let message = format!("argument {} cannot be null", 2 * at + 1);
        return Err(SqlError::new(sqlstate::INVALID_PARAMETER_VALUE, message)
            .with_hint("Object keys should be text."));
    }
    Ok(json::object_of(values, binary, settings)?)
}

fn any_of(
    comparison: super::Comparison,
    quantifier: Quantifier,
    value: ValueRef<'_>,
    array: vellum_row::ArrayRef<'_>,
) -> Value {
    let decisive = quantifier == Quantifier::Any;
    let mut null = false;
    for item in array.items() {
        if value.is_null() || item.is_null() {
            null = true;
        } else if comparison.holds(vellum_row::compare(value, item.as_ref())) == decisive {
            return Value::Bool(decisive);
        }
    }
    if null {
        Value::Null
    } else {
        Value::Bool(!decisive)
    }
}

/// Whether a text, or bytes, are like any, or all, of the patterns of an array.
fn like_any(
    value: ValueRef<'_>,
    array: vellum_row::ArrayRef<'_>,
    (fold, negated): (bool, bool),
    quantifier: Quantifier,
) -> Result<Value> {
    let decisive = quantifier == Quantifier::Any;
    let text = super::scalar::letters(value);
    let mut null = false;
    for item in array.items() {
        let (Some(text), Some(pattern)) = (&text, super::scalar::letters(item.as_ref())) else {
            null = true;
            continue;
        };
        let found = Pattern::new(&pattern, Some('\\'), fold).matches(text)?;
        if (found != negated) == decisive {
            return Ok(Value::Bool(decisive));
        }
    }
    Ok(match null {
        true => Value::Null,
        false => Value::Bool(!decisive),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_has_types_that_are_there() {
        for entry in catalog_functions() {
            let types = entry.arguments().chain([entry.result]);
            for ty in types {
                assert_ne!(type_oid(ty), 0, "{} {ty}", entry.name);
            }
        }
    }
}
