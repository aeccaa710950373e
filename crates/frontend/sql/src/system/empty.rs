//! Relations for which there is nothing to tell: Vellum has no such objects.

use super::{Scan, Spec, nothing};
use crate::catalog::{Oid, READ_ALL_STATS};
use crate::error::Result;

/// No rows, for superusers and members of a role.
///
/// # Errors
/// `42501` for others.
fn denies(scan: &Scan<'_>, what: &str, but: Option<Oid>) -> Result<()> {
    let env = scan.env;
    match but {
        Some(role) if env.rights.has_rights_of(env.acting.role, role) => Ok(()),
        _ => env.check_superuser(what),
    }
}

pub(super) const RELATIONS: &[Spec] = &[
    Spec {
        name: "pg_aggregate",
        oid: 2600,
        view: false,
        columns: "aggfnoid regproc, aggkind char, aggnumdirectargs int2, aggtransfn regproc, aggfinalfn regproc, \
         aggcombinefn regproc, aggserialfn regproc, aggdeserialfn regproc, aggmtransfn regproc, aggminvtransfn \
         regproc, aggmfinalfn regproc, aggfinalextra bool, aggmfinalextra bool, aggfinalmodify char, \
         aggmfinalmodify char, aggsortop oid, aggtranstype oid, aggtransspace int4, aggmtranstype oid, \
         aggmtransspace int4, agginitval text, aggminitval text",
        fill: nothing,
    },
    Spec {
        name: "pg_amop",
        oid: 2602,
        view: false,
        columns: "oid oid, amopfamily oid, amoplefttype oid, amoprighttype oid, amopstrategy int2, amoppurpose char, \
         amopopr oid, amopmethod oid, amopsortfamily oid",
        fill: nothing,
    },
    Spec {
        name: "pg_amproc",
        oid: 2603,
        view: false,
        columns: "oid oid, amprocfamily oid, amproclefttype oid, amprocrighttype oid, amprocnum int2, amproc regproc",
        fill: nothing,
    },
    Spec {
        name: "pg_backend_memory_contexts",
        oid: 12138,
        view: true,
        columns: "name text, ident text, parent text, level int4, total_bytes int8, total_nblocks int8, free_bytes int8, \
         free_chunks int8, used_bytes int8",
        fill: |scan, _| {
            denies(
                scan,
                "view pg_backend_memory_contexts",
                Some(READ_ALL_STATS),
            )
        },
    },
    Spec {
        name: "pg_config",
        oid: 12130,
        view: true,
        columns: "name text, setting text",
        fill: |scan, _| denies(scan, "view pg_config", None),
    },
    Spec {
        name: "pg_conversion",
        oid: 2607,
        view: false,
        columns: "oid oid, conname name, connamespace oid, conowner oid, conforencoding int4, contoencoding int4, conproc \
         regproc, condefault bool",
        fill: nothing,
    },
    Spec {
        name: "pg_description",
        oid: 2609,
        view: false,
        columns: "objoid oid, classoid oid, objsubid int4, description text",
        fill: super::comments::described,
    },
    Spec {
        name: "pg_event_trigger",
        oid: 3466,
        view: false,
        columns: "oid oid, evtname name, evtevent name, evtowner oid, evtfoid oid, evtenabled char, evttags _text",
        fill: nothing,
    },
    Spec {
        name: "pg_file_settings",
        oid: 12110,
        view: true,
        columns: "sourcefile text, sourceline int4, seqno int4, name text, setting text, applied bool, error text",
        fill: |scan, _| denies(scan, "view pg_file_settings", None),
    },
    Spec {
        name: "pg_foreign_data_wrapper",
        oid: 2328,
        view: false,
        columns: "oid oid, fdwname name, fdwowner oid, fdwhandler oid, fdwvalidator oid, fdwacl _aclitem, fdwoptions _text",
        fill: nothing,
    },
    Spec {
        name: "pg_foreign_server",
        oid: 1417,
        view: false,
        columns: "oid oid, srvname name, srvowner oid, srvfdw oid, srvtype text, srvversion text, srvacl _aclitem, \
         srvoptions _text",
        fill: nothing,
    },
    Spec {
        name: "pg_foreign_table",
        oid: 3118,
        view: false,
        columns: "ftrelid oid, ftserver oid, ftoptions _text",
        fill: nothing,
    },
    Spec {
        name: "pg_hba_file_rules",
        oid: 12114,
        view: true,
        columns: "line_number int4, type text, database _text, user_name _text, address text, netmask text, auth_method text, \
         options _text, error text",
        fill: |scan, _| denies(scan, "view pg_hba_file_rules", None),
    },
    Spec {
        name: "pg_ident_file_mappings",
        oid: 12118,
        view: true,
        columns: "line_number int4, map_name text, sys_name text, pg_username text, error text",
        fill: |scan, _| denies(scan, "view pg_ident_file_mappings", None),
    },
    Spec {
        name: "pg_inherits",
        oid: 2611,
        view: false,
        columns: "inhrelid oid, inhparent oid, inhseqno int4, inhdetachpending bool",
        fill: nothing,
    },
    Spec {
        name: "pg_init_privs",
        oid: 3394,
        view: false,
        columns: "objoid oid, classoid oid, objsubid int4, privtype char, initprivs _aclitem",
        fill: nothing,
    },
    Spec {
        name: "pg_largeobject",
        oid: 2613,
        view: false,
        columns: "loid oid, pageno int4, data bytea",
        fill: |scan, _| denies(scan, "table pg_largeobject", None),
    },
    Spec {
        name: "pg_largeobject_metadata",
        oid: 2995,
        view: false,
        columns: "oid oid, lomowner oid, lomacl _aclitem",
        fill: nothing,
    },
    Spec {
        name: "pg_matviews",
        oid: 12038,
        view: true,
        columns: "schemaname name, matviewname name, matviewowner name, tablespace name, hasindexes bool, ispopulated \
         bool, definition text",
        fill: nothing,
    },
    Spec {
        name: "pg_operator",
        oid: 2617,
        view: false,
        columns: "oid oid, oprname name, oprnamespace oid, oprowner oid, oprkind char, oprcanmerge bool, oprcanhash bool, \
         oprleft oid, oprright oid, oprresult oid, oprcom oid, oprnegate oid, oprcode regproc, oprrest regproc, \
         oprjoin regproc",
        fill: super::operators::pg_operator,
    },
    Spec {
        name: "pg_opfamily",
        oid: 2753,
        view: false,
        columns: "oid oid, opfmethod oid, opfname name, opfnamespace oid, opfowner oid",
        fill: nothing,
    },
    Spec {
        name: "pg_parameter_acl",
        oid: 6243,
        view: false,
        columns: "oid oid, parname text, paracl _aclitem",
        fill: nothing,
    },
    Spec {
        name: "pg_partitioned_table",
        oid: 3350,
        view: false,
        columns: "partrelid oid, partstrat char, partnatts int2, partdefid oid, partattrs int2vector, partclass oidvector, \
         partcollation oidvector, partexprs pg_node_tree",
        fill: nothing,
    },
    Spec {
        name: "pg_policies",
        oid: 12018,
        view: true,
        columns: "schemaname name, tablename name, policyname name, permissive text, roles _name, cmd text, qual text, \
         with_check text",
        fill: nothing,
    },
    Spec {
        name: "pg_policy",
        oid: 3256,
        view: false,
        columns: "oid oid, polname name, polrelid oid, polcmd char, polpermissive bool, polroles _oid, polqual \
         pg_node_tree, polwithcheck pg_node_tree",
        fill: nothing,
    },
    Spec {
        name: "pg_prepared_xacts",
        oid: 12090,
        view: true,
        columns: "transaction xid, gid text, prepared timestamptz, owner name, database name",
        fill: nothing,
    },
    Spec {
        name: "pg_publication",
        oid: 6104,
        view: false,
        columns: "oid oid, pubname name, pubowner oid, puballtables bool, pubinsert bool, pubupdate bool, pubdelete bool, \
         pubtruncate bool, pubviaroot bool",
        fill: nothing,
    },
    Spec {
        name: "pg_publication_namespace",
        oid: 6237,
        view: false,
        columns: "oid oid, pnpubid oid, pnnspid oid",
        fill: nothing,
    },
    Spec {
        name: "pg_publication_rel",
        oid: 6106,
        view: false,
        columns: "oid oid, prpubid oid, prrelid oid, prqual pg_node_tree, prattrs int2vector",
        fill: nothing,
    },
    Spec {
        name: "pg_publication_tables",
        oid: 12068,
        view: true,
        columns: "pubname name, schemaname name, tablename name, attnames _name, rowfilter text",
        fill: nothing,
    },
    Spec {
        name: "pg_range",
        oid: 3541,
        view: false,
        columns: "rngtypid oid, rngsubtype oid, rngmultitypid oid, rngcollation oid, rngsubopc oid, rngcanonical regproc, \
         rngsubdiff regproc",
        fill: nothing,
    },
    Spec {
        name: "pg_replication_origin",
        oid: 6000,
        view: false,
        columns: "roident oid, roname text",
        fill: nothing,
    },
    Spec {
        name: "pg_replication_origin_status",
        oid: 12332,
        view: true,
        columns: "local_id oid, external_id text, remote_lsn text, local_lsn text",
        fill: |scan, _| denies(scan, "view pg_replication_origin_status", None),
    },
    Spec {
        name: "pg_replication_slots",
        oid: 12257,
        view: true,
        columns: "slot_name name, plugin name, slot_type text, datoid oid, database name, temporary bool, active bool, \
         active_pid int4, xmin xid, catalog_xmin xid, restart_lsn text, confirmed_flush_lsn text, wal_status \
         text, safe_wal_size int8, two_phase bool",
        fill: nothing,
    },
    Spec {
        name: "pg_rules",
        oid: 12023,
        view: true,
        columns: "schemaname name, tablename name, rulename name, definition text",
        fill: nothing,
    },
    Spec {
        name: "pg_seclabel",
        oid: 3596,
        view: false,
        columns: "objoid oid, classoid oid, objsubid int4, provider text, label text",
        fill: nothing,
    },
    Spec {
        name: "pg_seclabels",
        oid: 12099,
        view: true,
        columns: "objoid oid, classoid oid, objsubid int4, objtype text, objnamespace oid, objname text, provider \
         text, label text",
        fill: nothing,
    },
    Spec {
        name: "pg_shdepend",
        oid: 1214,
        view: false,
        columns: "dbid oid, classid oid, objid oid, objsubid int4, refclassid oid, refobjid oid, deptype char",
        fill: nothing,
    },
    Spec {
        name: "pg_shdescription",
        oid: 2396,
        view: false,
        columns: "objoid oid, classoid oid, description text",
        fill: super::comments::described_for_all,
    },
    Spec {
        name: "pg_shmem_allocations",
        oid: 12134,
        view: true,
        columns: "name text, off int8, size int8, allocated_size int8",
        fill: |scan, _| denies(scan, "view pg_shmem_allocations", Some(READ_ALL_STATS)),
    },
    Spec {
        name: "pg_shseclabel",
        oid: 3592,
        view: false,
        columns: "objoid oid, classoid oid, provider text, label text",
        fill: nothing,
    },
    Spec {
        name: "pg_stat_archiver",
        oid: 12285,
        view: true,
        columns: "archived_count int8, last_archived_wal text, last_archived_time timestamptz, failed_count int8, \
         last_failed_wal text, last_failed_time timestamptz, stats_reset timestamptz",
        fill: nothing,
    },
    Spec {
        name: "pg_stat_bgwriter",
        oid: 12289,
        view: true,
        columns: "checkpoints_timed int8, checkpoints_req int8, checkpoint_write_time float8, checkpoint_sync_time float8, \
         buffers_checkpoint int8, buffers_clean int8, maxwritten_clean int8, buffers_backend int8, \
         buffers_backend_fsync int8, buffers_alloc int8, stats_reset timestamptz",
        fill: nothing,
    },
    Spec {
        name: "pg_stat_database_conflicts",
        oid: 12271,
        view: true,
        columns: "datid oid, datname name, confl_tablespace int8, confl_lock int8, confl_snapshot int8, confl_bufferpin \
         int8, confl_deadlock int8",
        fill: nothing,
    },
    Spec {
        name: "pg_stat_gssapi",
        oid: 12253,
        view: true,
        columns: "pid int4, gss_authenticated bool, principal text, encrypted bool",
        fill: nothing,
    },
    Spec {
        name: "pg_stat_progress_analyze",
        oid: 12297,
        view: true,
        columns: "pid int4, datid oid, datname name, relid oid, phase text, sample_blks_total int8, sample_blks_scanned int8, \
         ext_stats_total int8, ext_stats_computed int8, child_tables_total int8, child_tables_done int8, \
         current_child_table_relid oid",
        fill: nothing,
    },
    Spec {
        name: "pg_stat_progress_basebackup",
        oid: 12317,
        view: true,
        columns: "pid int4, phase text, backup_total int8, backup_streamed int8, tablespaces_total int8, tablespaces_streamed int8",
        fill: nothing,
    },
    Spec {
        name: "pg_stat_progress_cluster",
        oid: 12307,
        view: true,
        columns: "pid int4, datid oid, datname name, relid oid, command text, phase text, cluster_index_relid oid, \
         heap_tuples_scanned int8, heap_tuples_written int8, heap_blks_total int8, heap_blks_scanned int8, \
         index_rebuild_count int8",
        fill: nothing,
    },
    Spec {
        name: "pg_stat_progress_copy",
        oid: 12322,
        view: true,
        columns: "pid int4, datid oid, datname name, relid oid, command text, type text, bytes_processed int8, bytes_total int8, \
         tuples_processed int8, tuples_excluded int8",
        fill: nothing,
    },
    Spec {
        name: "pg_stat_progress_create_index",
        oid: 12312,
        view: true,
        columns: "pid int4, datid oid, datname name, relid oid, index_relid oid, command text, phase text, lockers_total int8, \
         lockers_done int8, current_locker_pid int8, blocks_total int8, blocks_done int8, tuples_total int8, tuples_done \
         int8, partitions_total int8, partitions_done int8",
        fill: nothing,
    },
    Spec {
        name: "pg_stat_progress_vacuum",
        oid: 12302,
        view: true,
        columns: "pid int4, datid oid, datname name, relid oid, phase text, heap_blks_total int8, heap_blks_scanned int8, \
         heap_blks_vacuumed int8, index_vacuum_count int8, max_dead_tuples int8, num_dead_tuples int8",
        fill: nothing,
    },
    Spec {
        name: "pg_stat_recovery_prefetch",
        oid: 12240,
        view: true,
        columns: "stats_reset timestamptz, prefetch int8, hit int8, skip_init int8, skip_new int8, skip_fpw int8, skip_rep int8, \
         wal_distance int4, block_distance int4, io_depth int4",
        fill: nothing,
    },
    Spec {
        name: "pg_stat_replication",
        oid: 12227,
        view: true,
        columns: "pid int4, usesysid oid, usename name, application_name text, client_addr inet, client_hostname text, \
         client_port int4, backend_start timestamptz, backend_xmin xid, state text, sent_lsn text, write_lsn \
         text, flush_lsn text, replay_lsn text, write_lag interval, flush_lag interval, replay_lag interval, \
         sync_priority int4, sync_state text, reply_time timestamptz",
        fill: nothing,
    },
    Spec {
        name: "pg_stat_replication_slots",
        oid: 12262,
        view: true,
        columns: "slot_name text, spill_txns int8, spill_count int8, spill_bytes int8, stream_txns int8, stream_count int8, \
         stream_bytes int8, total_txns int8, total_bytes int8, stats_reset timestamptz",
        fill: nothing,
    },
    Spec {
        name: "pg_stat_slru",
        oid: 12232,
        view: true,
        columns: "name text, blks_zeroed int8, blks_hit int8, blks_read int8, blks_written int8, blks_exists int8, flushes int8, \
         truncates int8, stats_reset timestamptz",
        fill: nothing,
    },
    Spec {
        name: "pg_stat_ssl",
        oid: 12249,
        view: true,
        columns: "pid int4, ssl bool, version text, cipher text, bits int4, client_dn text, client_serial numeric, \
         issuer_dn text",
        fill: nothing,
    },
    Spec {
        name: "pg_stat_subscription",
        oid: 12244,
        view: true,
        columns: "subid oid, subname name, pid int4, relid oid, received_lsn text, last_msg_send_time timestamptz, \
         last_msg_receipt_time timestamptz, latest_end_lsn text, latest_end_time timestamptz",
        fill: nothing,
    },
    Spec {
        name: "pg_stat_subscription_stats",
        oid: 12336,
        view: true,
        columns: "subid oid, subname name, apply_error_count int8, sync_error_count int8, stats_reset timestamptz",
        fill: nothing,
    },
    Spec {
        name: "pg_stat_user_functions",
        oid: 12275,
        view: true,
        columns: "funcid oid, schemaname name, funcname name, calls int8, total_time float8, self_time float8",
        fill: nothing,
    },
    Spec {
        name: "pg_stat_wal",
        oid: 12293,
        view: true,
        columns: "wal_records int8, wal_fpi int8, wal_bytes numeric, wal_buffers_full int8, wal_write int8, wal_sync int8, \
         wal_write_time float8, wal_sync_time float8, stats_reset timestamptz",
        fill: nothing,
    },
    Spec {
        name: "pg_stat_wal_receiver",
        oid: 12236,
        view: true,
        columns: "pid int4, status text, receive_start_lsn text, receive_start_tli int4, written_lsn text, flushed_lsn text, \
         received_tli int4, last_msg_send_time timestamptz, last_msg_receipt_time timestamptz, latest_end_lsn text, \
         latest_end_time timestamptz, slot_name text, sender_host text, sender_port int4, conninfo text",
        fill: nothing,
    },
    Spec {
        name: "pg_stat_xact_user_functions",
        oid: 12280,
        view: true,
        columns: "funcid oid, schemaname name, funcname name, calls int8, total_time float8, self_time float8",
        fill: nothing,
    },
    Spec {
        name: "pg_statistic_ext",
        oid: 3381,
        view: false,
        columns: "oid oid, stxrelid oid, stxname name, stxnamespace oid, stxowner oid, stxstattarget int4, stxkeys \
         int2vector, stxkind _char, stxexprs pg_node_tree",
        fill: nothing,
    },
    Spec {
        name: "pg_statistic_ext_data",
        oid: 3429,
        view: false,
        columns: "stxoid oid, stxdinherit bool, stxdndistinct text, stxddependencies text, stxdmcv text, stxdexpr text",
        fill: |scan, _| denies(scan, "table pg_statistic_ext_data", None),
    },
    Spec {
        name: "pg_stats_ext",
        oid: 12058,
        view: true,
        columns: "schemaname name, tablename name, statistics_schemaname name, statistics_name name, statistics_owner name, \
         attnames _name, exprs _text, kinds _char, inherited bool, n_distinct text, dependencies text, most_common_vals \
         _text, most_common_val_nulls _bool, most_common_freqs _float8, most_common_base_freqs _float8",
        fill: nothing,
    },
    Spec {
        name: "pg_stats_ext_exprs",
        oid: 12063,
        view: true,
        columns: "schemaname name, tablename name, statistics_schemaname name, statistics_name name, statistics_owner name, expr \
         text, inherited bool, null_frac float4, avg_width int4, n_distinct float4, most_common_vals text, \
         most_common_freqs _float4, histogram_bounds text, correlation float4, most_common_elems text, \
         most_common_elem_freqs _float4, elem_count_histogram _float4",
        fill: nothing,
    },
    Spec {
        name: "pg_subscription",
        oid: 6100,
        view: false,
        columns: "oid oid, subdbid oid, subskiplsn text, subname name, subowner oid, subenabled bool, subbinary bool, \
         substream bool, subtwophasestate char, subdisableonerr bool, subconninfo text, subslotname name, \
         subsynccommit text, subpublications _text",
        fill: nothing,
    },
    Spec {
        name: "pg_subscription_rel",
        oid: 6102,
        view: false,
        columns: "srsubid oid, srrelid oid, srsubstate char, srsublsn text",
        fill: nothing,
    },
    Spec {
        name: "pg_timezone_abbrevs",
        oid: 12122,
        view: true,
        columns: "abbrev text, utc_offset interval, is_dst bool",
        fill: nothing,
    },
    Spec {
        name: "pg_transform",
        oid: 3576,
        view: false,
        columns: "oid oid, trftype oid, trflang oid, trffromsql regproc, trftosql regproc",
        fill: nothing,
    },
    Spec {
        name: "pg_ts_config",
        oid: 3602,
        view: false,
        columns: "oid oid, cfgname name, cfgnamespace oid, cfgowner oid, cfgparser oid",
        fill: nothing,
    },
    Spec {
        name: "pg_ts_config_map",
        oid: 3603,
        view: false,
        columns: "mapcfg oid, maptokentype int4, mapseqno int4, mapdict oid",
        fill: nothing,
    },
    Spec {
        name: "pg_ts_dict",
        oid: 3600,
        view: false,
        columns: "oid oid, dictname name, dictnamespace oid, dictowner oid, dicttemplate oid, dictinitoption text",
        fill: nothing,
    },
    Spec {
        name: "pg_ts_parser",
        oid: 3601,
        view: false,
        columns: "oid oid, prsname name, prsnamespace oid, prsstart regproc, prstoken regproc, prsend regproc, prsheadline regproc, \
         prslextype regproc",
        fill: nothing,
    },
    Spec {
        name: "pg_ts_template",
        oid: 3764,
        view: false,
        columns: "oid oid, tmplname name, tmplnamespace oid, tmplinit regproc, tmpllexize regproc",
        fill: nothing,
    },
    Spec {
        name: "pg_user_mapping",
        oid: 1418,
        view: false,
        columns: "oid oid, umuser oid, umserver oid, umoptions _text",
        fill: |scan, _| denies(scan, "table pg_user_mapping", None),
    },
    Spec {
        name: "pg_user_mappings",
        oid: 12327,
        view: true,
        columns: "umid oid, srvid oid, srvname name, umuser oid, usename name, umoptions _text",
        fill: nothing,
    },
];
