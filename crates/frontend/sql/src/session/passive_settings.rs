//! Settings of PostgreSQL that say nothing here: what tools, migrations and dumps set, or ask for, is taken and told as PostgreSQL 15 takes and tells it.
//!
//! Not here: settings that are heard (`known_settings`).

use super::known_settings::{Kind, Known, LEVELS_OF_LOGS};

/// What `pg_settings` says that they are about.
const ABOUT: &str = "Says nothing here.";

const fn passive(name: &'static str, default: &'static str, kind: Kind) -> Known {
    Known {
        name,
        default,
        kind,
        about: ABOUT,
        superuser: false,
    }
}

/// One that only superusers may set.
const fn guarded(name: &'static str, default: &'static str, kind: Kind) -> Known {
    Known {
        superuser: true,
        ..passive(name, default, kind)
    }
}

const COST: Kind = Kind::Real(0.0, f64::MAX);
const COUNT: Kind = Kind::Integer(0, i32::MAX);
const PAGE_COST: Kind = Kind::Integer(0, 10_000);
/// Age of rows in transactions, at most.
const AGE_MAX: i32 = 2_000_000_000;
const COMPRESSIONS: &[&str] = &["pglz", "lz4"];
const LOG_COMPRESSIONS: &[&str] = &["pglz", "lz4", "zstd", "on", "off"];

/// All of them, in order.
#[rustfmt::skip]
pub(super) const PASSIVE: [Known; 124] = [
    passive("array_nulls", "on", Kind::Only(true)),
    passive("autovacuum", "on", Kind::Fixed),
    passive("backend_flush_after", "0", Kind::Pages(0, 256)),
    passive("backslash_quote", "safe_encoding", Kind::OneOf(&["safe_encoding", "on", "off"])),
    passive("block_size", "8192", Kind::Fixed),
    passive("client_connection_check_interval", "0", Kind::Milliseconds(0, i32::MAX)),
    passive("cluster_name", "", Kind::Fixed),
    guarded("commit_delay", "0", Kind::Integer(0, 100_000)),
    passive("commit_siblings", "5", Kind::Integer(0, 1000)),
    guarded("compute_query_id", "auto", Kind::OneOf(&["auto", "regress", "on", "off"])),
    passive("constraint_exclusion", "partition", Kind::OneOf(&["partition", "on", "off"])),
    passive("cpu_index_tuple_cost", "0.005", COST),
    passive("cpu_operator_cost", "0.0025", COST),
    passive("cpu_tuple_cost", "0.01", COST),
    passive("cursor_tuple_fraction", "0.1", Kind::Real(0.0, 1.0)),
    passive("data_checksums", "on", Kind::Fixed),
    passive("debug_pretty_print", "on", Kind::Bool),
    passive("debug_print_parse", "off", Kind::Bool),
    passive("debug_print_plan", "off", Kind::Bool),
    passive("debug_print_rewritten", "off", Kind::Bool),
    passive("default_statistics_target", "100", Kind::Integer(1, 10_000)),
    passive("default_text_search_config", "pg_catalog.simple", Kind::Text),
    passive("default_toast_compression", "pglz", Kind::OneOf(COMPRESSIONS)),
    passive("default_with_oids", "off", Kind::Only(false)),
    passive("effective_cache_size", "524288", Kind::Pages(1, i32::MAX)),
    passive("effective_io_concurrency", "1", Kind::Integer(0, 1000)),
    passive("enable_async_append", "on", Kind::Bool),
    passive("enable_gathermerge", "on", Kind::Bool),
    passive("enable_incremental_sort", "on", Kind::Bool),
    passive("enable_parallel_append", "on", Kind::Bool),
    passive("enable_parallel_hash", "on", Kind::Bool),
    passive("enable_partition_pruning", "on", Kind::Bool),
    passive("enable_partitionwise_aggregate", "off", Kind::Bool),
    passive("enable_partitionwise_join", "off", Kind::Bool),
    passive("enable_tidscan", "on", Kind::Bool),
    passive("escape_string_warning", "on", Kind::Bool),
    passive("exit_on_error", "off", Kind::Bool),
    passive("force_parallel_mode", "off", Kind::OneOf(&["off", "on", "regress"])),
    passive("from_collapse_limit", "8", Kind::Integer(1, i32::MAX)),
    passive("geqo", "on", Kind::Bool),
    passive("geqo_effort", "5", Kind::Integer(1, 10)),
    passive("geqo_generations", "0", COUNT),
    passive("geqo_pool_size", "0", COUNT),
    passive("geqo_seed", "0", Kind::Real(0.0, 1.0)),
    passive("geqo_selection_bias", "2", Kind::Real(1.5, 2.0)),
    passive("geqo_threshold", "12", Kind::Integer(2, i32::MAX)),
    passive("gin_fuzzy_search_limit", "0", COUNT),
    passive("gin_pending_list_limit", "4096", Kind::Kilobytes(64, i32::MAX)),
    passive("hash_mem_multiplier", "2", Kind::Real(1.0, 1000.0)),
    passive("jit_above_cost", "100000", Kind::Real(-1.0, f64::MAX)),
    passive("jit_expressions", "on", Kind::Bool),
    passive("jit_inline_above_cost", "500000", Kind::Real(-1.0, f64::MAX)),
    passive("jit_optimize_above_cost", "500000", Kind::Real(-1.0, f64::MAX)),
    passive("jit_tuple_deforming", "on", Kind::Bool),
    passive("join_collapse_limit", "8", Kind::Integer(1, i32::MAX)),
    guarded("lo_compat_privileges", "off", Kind::Bool),
    passive("local_preload_libraries", "", Kind::Text),
    guarded("log_duration", "off", Kind::Bool),
    guarded("log_error_verbosity", "default", Kind::OneOf(&["terse", "default", "verbose"])),
    guarded("log_executor_stats", "off", Kind::Bool),
    guarded("log_lock_waits", "off", Kind::Bool),
    guarded("log_min_duration_sample", "-1", Kind::Milliseconds(-1, i32::MAX)),
    guarded("log_min_duration_statement", "-1", Kind::Milliseconds(-1, i32::MAX)),
    guarded("log_min_error_statement", "error", Kind::OneOf(LEVELS_OF_LOGS)),
    guarded("log_min_messages", "warning", Kind::OneOf(LEVELS_OF_LOGS)),
    guarded("log_parameter_max_length", "-1", Kind::Bytes(-1, 1_073_741_823)),
    passive("log_parameter_max_length_on_error", "0", Kind::Bytes(-1, 1_073_741_823)),
    guarded("log_parser_stats", "off", Kind::Bool),
    guarded("log_planner_stats", "off", Kind::Bool),
    guarded("log_replication_commands", "off", Kind::Bool),
    guarded("log_statement", "none", Kind::OneOf(&["none", "ddl", "mod", "all"])),
    guarded("log_statement_sample_rate", "1", Kind::Real(0.0, 1.0)),
    guarded("log_statement_stats", "off", Kind::Bool),
    guarded("log_temp_files", "-1", Kind::Kilobytes(-1, i32::MAX)),
    guarded("log_transaction_sample_rate", "0", Kind::Real(0.0, 1.0)),
    passive("logical_decoding_work_mem", "65536", Kind::Kilobytes(64, i32::MAX)),
    passive("maintenance_io_concurrency", "10", Kind::Integer(0, 1000)),
    passive("max_parallel_maintenance_workers", "2", Kind::Integer(0, 1024)),
    passive("max_parallel_workers", "8", Kind::Integer(0, 1024)),
    passive("max_parallel_workers_per_gather", "2", Kind::Integer(0, 1024)),
    passive("max_replication_slots", "0", Kind::Fixed),
    guarded("max_stack_depth", "2048", Kind::Kilobytes(100, i32::MAX)),
    passive("max_wal_senders", "0", Kind::Fixed),
    passive("min_parallel_index_scan_size", "64", Kind::Pages(0, 715_827_882)),
    passive("min_parallel_table_scan_size", "1024", Kind::Pages(0, 715_827_882)),
    passive("parallel_leader_participation", "on", Kind::Bool),
    passive("parallel_setup_cost", "1000", COST),
    passive("parallel_tuple_cost", "0.1", COST),
    passive("plan_cache_mode", "auto", Kind::OneOf(&["auto", "force_generic_plan", "force_custom_plan"])),
    passive("quote_all_identifiers", "off", Kind::Bool),
    passive("random_page_cost", "4", COST),
    passive("recursive_worktable_factor", "10", Kind::Real(0.001, 1_000_000.0)),
    passive("seq_page_cost", "1", COST),
    passive("shared_preload_libraries", "", Kind::Fixed),
    passive("stats_fetch_consistency", "cache", Kind::OneOf(&["none", "cache", "snapshot"])),
    passive("tcp_keepalives_count", "0", COUNT),
    passive("tcp_keepalives_idle", "0", Kind::Seconds(0, i32::MAX)),
    passive("tcp_keepalives_interval", "0", Kind::Seconds(0, i32::MAX)),
    passive("tcp_user_timeout", "0", Kind::Milliseconds(0, i32::MAX)),
    passive("temp_buffers", "1024", Kind::Pages(100, 1_073_741_823)),
    guarded("temp_file_limit", "-1", Kind::Kilobytes(-1, i32::MAX)),
    passive("temp_tablespaces", "", Kind::Text),
    guarded("track_activities", "on", Kind::Bool),
    guarded("track_counts", "on", Kind::Bool),
    guarded("track_functions", "none", Kind::OneOf(&["none", "pl", "all"])),
    guarded("track_io_timing", "off", Kind::Bool),
    guarded("track_wal_io_timing", "off", Kind::Bool),
    passive("transform_null_equals", "off", Kind::Only(false)),
    guarded("update_process_title", "on", Kind::Bool),
    passive("vacuum_cost_delay", "0", Kind::RealMilliseconds(0.0, 100.0)),
    passive("vacuum_cost_limit", "200", Kind::Integer(1, 10_000)),
    passive("vacuum_cost_page_dirty", "20", PAGE_COST),
    passive("vacuum_cost_page_hit", "1", PAGE_COST),
    passive("vacuum_cost_page_miss", "2", PAGE_COST),
    passive("vacuum_failsafe_age", "1600000000", Kind::Integer(0, 2_100_000_000)),
    passive("vacuum_freeze_min_age", "50000000", Kind::Integer(0, 1_000_000_000)),
    passive("vacuum_freeze_table_age", "150000000", Kind::Integer(0, AGE_MAX)),
    passive("vacuum_multixact_failsafe_age", "1600000000", Kind::Integer(0, 2_100_000_000)),
    passive("vacuum_multixact_freeze_min_age", "5000000", Kind::Integer(0, 1_000_000_000)),
    passive("vacuum_multixact_freeze_table_age", "150000000", Kind::Integer(0, AGE_MAX)),
    guarded("wal_compression", "off", Kind::OneOf(LOG_COMPRESSIONS)),
    passive("wal_level", "minimal", Kind::Fixed),
    passive("wal_skip_threshold", "2048", Kind::Kilobytes(0, i32::MAX)),
    passive("xmlbinary", "base64", Kind::OneOf(&["base64", "hex"])),
];
