//! What the database and its sessions are doing, and how they are set.
//!
//! Vellum keeps no counters a table: those columns are null.

use super::roles::DATABASE_OID;
use super::{Scan, Spec, locks, text};
use crate::catalog::READ_ALL_STATS;
use crate::database::DATABASE;
use crate::error::Result;
use crate::parse::without_passwords;
use vellum::VersionKind;
use vellum_row::{Array, Inet, Type, Value};

pub(super) const RELATIONS: &[Spec] = &[
    Spec {
        name: "pg_settings",
        oid: 12104,
        view: true,
        columns: "name text, setting text, unit text, category text, short_desc text, extra_desc text, context text, \
         vartype text, source text, min_val text, max_val text, enumvals _text, boot_val text, reset_val text, \
         sourcefile text, sourceline int4, pending_restart bool",
        fill: pg_settings,
    },
    Spec {
        name: "pg_cursors",
        oid: 12077,
        view: true,
        columns: "name text, statement text, is_holdable bool, is_binary bool, is_scrollable bool, creation_time \
         timestamptz",
        fill: pg_cursors,
    },
    Spec {
        name: "pg_prepared_statements",
        oid: 12095,
        view: true,
        columns: "name text, statement text, prepare_time timestamptz, parameter_types _regtype, from_sql bool, \
         generic_plans int8, custom_plans int8",
        fill: pg_prepared_statements,
    },
    Spec {
        name: "pg_stat_database",
        oid: 12266,
        view: true,
        columns: "datid oid, datname name, numbackends int4, xact_commit int8, xact_rollback int8, blks_read int8, \
         blks_hit int8, tup_returned int8, tup_fetched int8, tup_inserted int8, tup_updated int8, tup_deleted \
         int8, conflicts int8, temp_files int8, temp_bytes int8, deadlocks int8, checksum_failures int8, \
         checksum_last_failure timestamptz, blk_read_time float8, blk_write_time float8, session_time float8, \
         active_time float8, idle_in_transaction_time float8, sessions int8, sessions_abandoned int8, \
         sessions_fatal int8, sessions_killed int8, stats_reset timestamptz",
        fill: pg_stat_database,
    },
    Spec {
        name: "pg_stat_activity",
        oid: 12222,
        view: true,
        columns: "datid oid, datname name, pid int4, leader_pid int4, usesysid oid, usename name, application_name text, \
         client_addr inet, client_hostname text, client_port int4, backend_start timestamptz, xact_start \
         timestamptz, query_start timestamptz, state_change timestamptz, wait_event_type text, wait_event text, \
         state text, backend_xid xid, backend_xmin xid, query_id int8, query text, backend_type text",
        fill: pg_stat_activity,
    },
    Spec {
        name: "vellum_snapshots",
        oid: 12900,
        view: true,
        columns: "transaction text, pid int4, analytical bool, writer bool, snapshot int8, age_ticks int8, \
         age_seconds float8, versions int8, version_bytes int8, complete bool",
        fill: vellum_snapshots,
    },
    Spec {
        name: "vellum_versions",
        oid: 12901,
        view: true,
        columns: "relation regclass, storage text, kind text, versions int8, bytes int8, complete bool",
        fill: vellum_versions,
    },
    Spec {
        name: "vellum_slots",
        oid: 12902,
        view: true,
        columns: "transactions_open int8, clock int8, oldest_snapshot int8, oldest_oltp_snapshot int8, \
         newest_olap_snapshot int8, version_bytes int8, snapshots_withdrawn int8",
        fill: vellum_slots,
    },
];

/// The session's own: those that DECLARE has made, and portals that Bind has.
fn pg_cursors(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    let declared = scan.env.cursors.shown().into_iter();
    for shown in declared.chain(scan.env.portals.shown()) {
        rows.push(vec![
            text(shown.name),
            text(shown.statement),
            Value::Bool(shown.hold),
            Value::Bool(shown.binary),
            Value::Bool(shown.scrolls),
            Value::Timestamptz(shown.since),
        ]);
    }
    Ok(())
}

/// The session's own. A program runs whatever the parameters: plans are generic.
fn pg_prepared_statements(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    for (name, named) in scan.env.statements {
        if name.is_empty() {
            continue;
        }
        let (statement, types) = named.shown();
        let types: Vec<Value> = types.into_iter().map(Value::Oid).collect();
        rows.push(vec![
            text(name.as_str()),
            text(&*without_passwords(&statement)),
            Value::Timestamptz(named.since),
            Value::Array(Array::of(Type::Regtype, &types)),
            Value::Bool(named.by_statement),
            Value::Int8(0),
            Value::Int8(0),
        ]);
    }
    Ok(())
}

fn pg_settings(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    for setting in scan.env.settings.described() {
        let value = text(setting.value);
        let (least, most) = setting.range.unzip();
        let words = setting.words.map(|words| {
            let words: Vec<Value> = words.iter().map(|word| text(*word)).collect();
            Value::Array(Array::of(Type::Text, &words))
        });
        rows.push(vec![
            text(setting.name),
            value,
            setting.unit.map_or(Value::Null, text),
            text("Vellum"),
            text(setting.about),
            Value::Null,
            text(setting.context),
            text(setting.kind),
            text(if setting.changed {
                "session"
            } else {
                "default"
            }),
            least.map_or(Value::Null, text),
            most.map_or(Value::Null, text),
            words.unwrap_or(Value::Null),
            text(setting.default),
            text(setting.default),
            Value::Null,
            Value::Null,
            Value::Bool(false),
        ]);
    }
    Ok(())
}

/// What Vellum does not count, or does not have, is 0, as it is in PostgreSQL where there was none.
fn pg_stat_database(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    let shared = scan.env.shared;
    let statistics = shared.engine.statistics();
    let open = shared.activities.all().len();
    let tally = shared.activities.tally();
    let mut row = vec![
        Value::Oid(DATABASE_OID),
        text(DATABASE),
        Value::Int4(i32::try_from(open).unwrap_or(i32::MAX)),
        count(tally.committed),
        count(tally.rolled_back),
        count(statistics.pages_read),
    ];
    // blks_hit to temp_bytes.
    row.resize(15, Value::Int8(0));
    row.push(count(shared.waits.circles()));
    // Pages whose checksum is wrong are errors of statements, and not counted.
    row.extend([Value::Int8(0), Value::Null]);
    // Times that are not measured.
    row.resize(23, Value::Float8(0.0));
    row.push(count(tally.sessions));
    row.resize(27, Value::Int8(0));
    row.push(Value::Timestamptz(shared.started));
    rows.push(row);
    Ok(())
}

/// Of the sessions of others, an ordinary user sees that they are there.
fn pg_stat_activity(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    let env = scan.env;
    let all = env.rights.has_rights_of(env.acting.role, READ_ALL_STATS);
    let waits = env.shared.waits.all();
    for activity in env.shared.activities.all() {
        let shown = all || env.rights.has_rights_of(env.acting.role, activity.role);
        let user = env.rights.role_by_oid(activity.role);
        let now = activity.now();
        let own = activity.transaction();
        let wait = waits.iter().find(|wait| Some(wait.transaction) == own);
        let waits_for = match wait {
            Some(wait) => Some(("Lock", locks::event(scan, wait.at))),
            None if now.state != "active" || now.copies_in => Some(("Client", "ClientRead")),
            None => None,
        };
        let time = |time: Option<_>| match time {
            Some(time) if shown => Value::Timestamptz(time),
            _ => Value::Null,
        };
        let client = activity.client.filter(|_| shown);
        let said = |said: &str| if shown { text(said) } else { Value::Null };
        let query = if shown {
            text(&*without_passwords(&now.query))
        } else {
            text("<insufficient privilege>")
        };
        rows.push(vec![
            Value::Oid(DATABASE_OID),
            text(DATABASE),
            Value::Int4(activity.pid),
            Value::Null,
            Value::Oid(activity.role),
            user.map_or(Value::Null, |user| text(user.name.as_str())),
            said(&now.application_name),
            client.map_or(Value::Null, |client| {
                Value::Inet(Inet::of_host(client.ip()))
            }),
            Value::Null,
            // Over the Unix socket there is none.
            match client {
                Some(client) => Value::Int4(client.port().into()),
                None if shown => Value::Int4(-1),
                None => Value::Null,
            },
            time(Some(activity.started)),
            time(now.transaction_start),
            time(now.query_start),
            time(Some(now.state_change)),
            waits_for.map_or(Value::Null, |(kind, _)| said(kind)),
            waits_for.map_or(Value::Null, |(_, event)| said(event)),
            said(now.state),
            Value::Null,
            Value::Null,
            Value::Null,
            query,
            text("client backend"),
        ]);
    }
    Ok(())
}

fn count(number: u64) -> Value {
    Value::Int8(i64::try_from(number).unwrap_or(i64::MAX))
}

fn vellum_snapshots(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    let shared = scan.env.shared;
    for holder in shared.engine.holders()? {
        let activity = shared.activities.of(holder.transaction);
        rows.push(vec![
            text(holder.transaction.to_string()),
            activity.map_or(Value::Null, |activity| Value::Int4(activity.pid)),
            Value::Bool(holder.analytical),
            Value::Bool(holder.writer),
            count(holder.snapshot),
            count(holder.age_ticks),
            Value::Float8(holder.age.as_secs_f64()),
            count(holder.versions),
            count(holder.version_bytes),
            Value::Bool(holder.complete),
        ]);
    }
    Ok(())
}

fn vellum_versions(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    let found = scan.env.shared.engine.versions()?;
    for table in found.tables {
        let storage = table.table.unwrap_or_default();
        let relation = scan.catalog.relations().into_iter().find(|relation| {
            relation.table().is_some_and(|table| {
                let indexes = table.secondary().filter_map(|index| index.storage.as_ref());
                indexes
                    .chain([&table.storage])
                    .any(|own| *own.name == *storage)
            })
        });
        for kind in VersionKind::ALL {
            let tally = table.sums.of(kind);
            if tally.count > 0 {
                rows.push(vec![
                    relation.map_or(Value::Null, |relation| Value::Oid(relation.oid)),
                    text(storage.as_str()),
                    text(kind.name()),
                    count(tally.count),
                    count(tally.bytes),
                    Value::Bool(found.complete),
                ]);
            }
        }
    }
    Ok(())
}

fn vellum_slots(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    let statistics = scan.env.shared.engine.statistics();
    let numbers = [
        statistics.transactions_open,
        statistics.clock,
        statistics.oldest_snapshot,
        statistics.oldest_oltp_snapshot,
        statistics.newest_olap_snapshot,
        statistics.version_bytes,
        statistics.snapshots_withdrawn,
    ];
    rows.push(numbers.map(count).into());
    Ok(())
}
