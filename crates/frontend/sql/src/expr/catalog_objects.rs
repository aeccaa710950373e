//! Functions that tell what indexes can do, where sequences stand, what an object is: entries of the table of catalog functions.

use super::catalog_function::{CatalogEntry, CatalogFunction as F, entry};
use crate::error::SqlError;
use crate::sqlstate;

#[rustfmt::skip]
pub(super) static FUNCTIONS: [CatalogEntry; 65] = [
    entry(637, "pg_index_has_property", "regclass text", "bool", F::IndexProperty),
    entry(638, "pg_index_column_has_property", "regclass int4 text", "bool", F::IndexColumnProperty),
    entry(4032, "pg_sequence_last_value", "regclass", "int8", F::SequenceLastValue),
    entry(3537, "pg_describe_object", "oid oid int4", "text", F::DescribeObject),
    entry(6197, "pg_get_function_sqlbody", "oid", "text", F::NoDefinition),
    entry(3808, "pg_get_function_arg_default", "oid int4", "text", F::NoDefinition),
    entry(6173, "pg_get_statisticsobjdef_expressions", "oid", "_text", F::NoDefinition),
    entry(3829, "pg_opfamily_is_visible", "oid", "bool", F::AlwaysTrue),
    entry(2093, "pg_conversion_is_visible", "oid", "bool", F::AlwaysTrue),
    entry(3756, "pg_ts_parser_is_visible", "oid", "bool", F::AlwaysTrue),
    entry(3757, "pg_ts_dict_is_visible", "oid", "bool", F::AlwaysTrue),
    entry(3768, "pg_ts_template_is_visible", "oid", "bool", F::AlwaysTrue),
    entry(3758, "pg_ts_config_is_visible", "oid", "bool", F::AlwaysTrue),
    entry(315, "pg_jit_available", "", "bool", F::AlwaysFalse),
    entry(3034, "pg_relation_filepath", "regclass", "text", F::FilePath),
    entry(2322, "pg_tablespace_size", "oid", "int8", F::TablespaceSize),
    entry(2323, "pg_tablespace_size", "name", "int8", F::TablespaceSize),
    entry(3012, "has_column_privilege", "name text text text", "bool", F::HasColumnPrivilege),
    entry(3013, "has_column_privilege", "name text int2 text", "bool", F::HasColumnPrivilege),
    entry(3014, "has_column_privilege", "name oid text text", "bool", F::HasColumnPrivilege),
    entry(3015, "has_column_privilege", "name oid int2 text", "bool", F::HasColumnPrivilege),
    entry(3016, "has_column_privilege", "oid text text text", "bool", F::HasColumnPrivilege),
    entry(3017, "has_column_privilege", "oid text int2 text", "bool", F::HasColumnPrivilege),
    entry(3018, "has_column_privilege", "oid oid text text", "bool", F::HasColumnPrivilege),
    entry(3019, "has_column_privilege", "oid oid int2 text", "bool", F::HasColumnPrivilege),
    entry(3021, "has_column_privilege", "text int2 text", "bool", F::HasColumnPrivilege),
    entry(3026, "has_any_column_privilege", "oid text text", "bool", F::HasAnyColumnPrivilege),
    entry(3027, "has_any_column_privilege", "oid oid text", "bool", F::HasAnyColumnPrivilege),
    entry(2183, "has_sequence_privilege", "oid text text", "bool", F::HasTablePrivilege),
    entry(2184, "has_sequence_privilege", "oid oid text", "bool", F::HasTablePrivilege),
    entry(2270, "has_schema_privilege", "oid text text", "bool", F::HasSchemaPrivilege),
    entry(2271, "has_schema_privilege", "oid oid text", "bool", F::HasSchemaPrivilege),
    entry(2252, "has_database_privilege", "oid text text", "bool", F::HasDatabasePrivilege),
    entry(2253, "has_database_privilege", "oid oid text", "bool", F::HasDatabasePrivilege),
    entry(3138, "has_type_privilege", "name text text", "bool", F::HasTypePrivilege),
    entry(3139, "has_type_privilege", "name oid text", "bool", F::HasTypePrivilege),
    entry(3140, "has_type_privilege", "oid text text", "bool", F::HasTypePrivilege),
    entry(3141, "has_type_privilege", "oid oid text", "bool", F::HasTypePrivilege),
    entry(3142, "has_type_privilege", "text text", "bool", F::HasTypePrivilege),
    entry(3143, "has_type_privilege", "oid text", "bool", F::HasTypePrivilege),
    entry(2262, "has_language_privilege", "name text text", "bool", F::HasLanguagePrivilege),
    entry(2263, "has_language_privilege", "name oid text", "bool", F::HasLanguagePrivilege),
    entry(2264, "has_language_privilege", "oid text text", "bool", F::HasLanguagePrivilege),
    entry(2265, "has_language_privilege", "oid oid text", "bool", F::HasLanguagePrivilege),
    entry(2266, "has_language_privilege", "text text", "bool", F::HasLanguagePrivilege),
    entry(2267, "has_language_privilege", "oid text", "bool", F::HasLanguagePrivilege),
    entry(2390, "has_tablespace_privilege", "name text text", "bool", F::HasTablespacePrivilege),
    entry(2391, "has_tablespace_privilege", "name oid text", "bool", F::HasTablespacePrivilege),
    entry(2392, "has_tablespace_privilege", "oid text text", "bool", F::HasTablespacePrivilege),
    entry(2393, "has_tablespace_privilege", "oid oid text", "bool", F::HasTablespacePrivilege),
    entry(2394, "has_tablespace_privilege", "text text", "bool", F::HasTablespacePrivilege),
    entry(2395, "has_tablespace_privilege", "oid text", "bool", F::HasTablespacePrivilege),
    entry(3830, "pg_last_xact_replay_timestamp", "", "timestamptz", F::NoDefinition),
    entry(3166, "pg_size_pretty", "numeric", "text", F::SizePretty),
    entry(3298, "row_security_active", "oid", "bool", F::AlwaysFalse),
    entry(3299, "row_security_active", "text", "bool", F::AlwaysFalse),
    entry(2256, "has_function_privilege", "name text text", "bool", F::HasFunctionPrivilege),
    entry(2257, "has_function_privilege", "name oid text", "bool", F::HasFunctionPrivilege),
    entry(2258, "has_function_privilege", "oid text text", "bool", F::HasFunctionPrivilege),
    entry(2259, "has_function_privilege", "oid oid text", "bool", F::HasFunctionPrivilege),
    entry(2260, "has_function_privilege", "text text", "bool", F::HasFunctionPrivilege),
    entry(2261, "has_function_privilege", "oid text", "bool", F::HasFunctionPrivilege),
    entry(817, "current_query", "", "text", F::CurrentQuery),
    entry(2621, "pg_reload_conf", "", "bool", F::ReloadConf),
    entry(2274, "pg_stat_reset", "", "void", F::ResetStatistics),
];

/// An element is searched for in an array of several dimensions.
#[cold]
pub(super) fn no_search() -> SqlError {
    let text = "searching for elements in multidimensional arrays is not supported";
    SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, text)
}
