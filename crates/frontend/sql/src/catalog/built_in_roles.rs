//! Roles that every database has: whoever is made a member may what only superusers may otherwise, and no more than that.
//!
//! They are no rows: an image begins with them. What they are made members of is kept as that of others, in a row that takes the role's place.

use super::Oid;
use crate::roles::{Membership, Role};

const MONITOR: Oid = 3373;
const READ_ALL_SETTINGS: Oid = 3374;
/// Sees what the sessions of others do.
pub(crate) const READ_ALL_STATS: Oid = 3375;
const STAT_SCAN_TABLES: Oid = 3377;
/// Cancels and ends the sessions of others, but those of superusers.
pub(crate) const SIGNAL_BACKEND: Oid = 4200;
/// Reads all tables, views and sequences, in any schema.
pub(super) const READ_ALL_DATA: Oid = 6181;
/// Writes them.
pub(super) const WRITE_ALL_DATA: Oid = 6182;

const ALL: [(&str, Oid); 11] = [
    ("pg_monitor", MONITOR),
    ("pg_read_all_settings", READ_ALL_SETTINGS),
    ("pg_read_all_stats", READ_ALL_STATS),
    ("pg_stat_scan_tables", STAT_SCAN_TABLES),
    ("pg_signal_backend", SIGNAL_BACKEND),
    ("pg_checkpoint", 4544),
    ("pg_read_server_files", 4569),
    ("pg_write_server_files", 4570),
    ("pg_execute_server_program", 4571),
    ("pg_read_all_data", READ_ALL_DATA),
    ("pg_write_all_data", WRITE_ALL_DATA),
];

/// Whether a role is one of these.
pub(crate) fn is_built_in(oid: Oid) -> bool {
    ALL.iter().any(|(_, own)| *own == oid)
}

/// The roles, as a database begins with them.
pub(super) fn built_in_roles() -> impl Iterator<Item = Role> {
    ALL.iter().map(|(name, oid)| {
        let mut role = Role::new(name, *oid);
        if *oid == MONITOR {
            let of = [READ_ALL_SETTINGS, READ_ALL_STATS, STAT_SCAN_TABLES];
            role.member_of.extend(of.map(|role| Membership {
                role,
                grantor: crate::database::FIRST_ROLE_OID,
                admin: false,
            }));
        }
        role
    })
}
