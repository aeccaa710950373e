//! Who holds what, and who waits for it.
//!
//! Differences: every open transaction has a number, which it is shown to hold (PostgreSQL: once it has written). A gate is shown as the lock that PostgreSQL would have taken for
//! the same: that of a relation, or of a type, schema, extension or role (`object`). Readers hold none. A row that is written is locked by its version, which stands in no table: who waits for it waits for
//! its writer's number, as in PostgreSQL.

use super::comments::ROLE;
use super::roles::DATABASE_OID;
use super::{Scan, Spec, depend, text};
use crate::catalog::{Mode, Oid};
use crate::error::Result;
use crate::lock::WaitsAt;
use crate::numbers::Numbers;
use vellum::TransactionId;
use vellum_row::Value;

pub(super) const RELATIONS: &[Spec] = &[
    Spec {
        name: "pg_locks",
        oid: 12073,
        view: true,
        columns: "locktype text, database oid, relation oid, page int4, tuple int2, virtualxid text, transactionid xid, \
         classid oid, objid oid, objsubid int2, virtualtransaction text, pid int4, mode text, granted bool, \
         fastpath bool, waitstart timestamptz",
        fill: pg_locks,
    },
    Spec {
        name: "vellum_locks",
        oid: 12903,
        view: true,
        columns: "relation regclass, key bytea, strength text, transaction text, pid int4, granted bool, waits_for text",
        fill: vellum_locks,
    },
];

/// A row of `pg_locks`.
struct Lock {
    kind: &'static str,
    /// `relation`, or `classid`, `objid` and `objsubid`.
    relation: Option<Oid>,
    object: Option<(Oid, Oid, i16)>,
    /// Of a transaction: `virtualxid`, or `transactionid`.
    own: Option<TransactionId>,
    number: Option<TransactionId>,
    /// Who: `virtualtransaction`, `pid`.
    holder: (String, Value),
    mode: &'static str,
    /// Since when it is waited for, if it is.
    waits_since: Option<Value>,
}

impl Lock {
    fn new(kind: &'static str, holder: (String, Value), mode: &'static str) -> Self {
        Self {
            kind,
            relation: None,
            object: None,
            own: None,
            number: None,
            holder,
            mode,
            waits_since: None,
        }
    }

    /// That of a gate.
    fn of_gate(scan: &Scan<'_>, oid: Oid, mode: Mode, holder: (String, Value)) -> Self {
        let mode = match mode {
            Mode::Write => "RowExclusiveLock",
            Mode::Alone => "AccessExclusiveLock",
        };
        let class = class_of(scan, oid);
        let mut lock = Self::new(kind_of(class), holder, mode);
        match class {
            depend::CLASS => lock.relation = Some(oid),
            class => lock.object = Some((class, oid, 0)),
        }
        lock
    }

    fn row(self, numbers: &Numbers) -> Vec<Value> {
        let oid = |oid: Option<Oid>| oid.map_or(Value::Null, Value::Oid);
        let database = match self.object {
            // Roles are of all databases.
            Some((ROLE, ..)) if self.kind == OBJECT => Some(0),
            // Numbers of transactions belong to none.
            _ if self.own.is_some() || self.number.is_some() => None,
            _ => Some(DATABASE_OID),
        };
        let (object, part) = (self.object, self.object.map(|(.., part)| part));
        vec![
            text(self.kind),
            oid(database),
            oid(self.relation),
            Value::Null,
            Value::Null,
            self.own.map_or(Value::Null, |own| text(own.to_string())),
            oid(self.number.map(|own| numbers.xid(own))),
            oid(object.map(|(class, ..)| class)),
            oid(object.map(|(_, object, _)| object)),
            part.map_or(Value::Null, Value::Int2),
            text(self.holder.0),
            self.holder.1,
            text(self.mode),
            Value::Bool(self.waits_since.is_none()),
            Value::Bool(false),
            self.waits_since.unwrap_or(Value::Null),
        ]
    }
}

const OBJECT: &str = "object";

/// The system relation that has the row of what a gate is of.
fn class_of(scan: &Scan<'_>, oid: Oid) -> Oid {
    let catalog = scan.catalog;
    match catalog.relation(oid) {
        Some(relation) if relation.is_type() => depend::TYPE,
        None if catalog.namespace_by_oid(oid).is_some() => depend::NAMESPACE,
        None if catalog.extension_by_oid(oid).is_some() => depend::EXTENSION,
        None if scan.env.rights.role_by_oid(oid).is_some() => ROLE,
        _ => depend::CLASS,
    }
}

/// The kind of lock that such a gate is shown as.
fn kind_of(class: Oid) -> &'static str {
    match class {
        depend::CLASS => "relation",
        _ => OBJECT,
    }
}

/// `wait_event` of who waits so.
pub(super) fn event(scan: &Scan<'_>, at: WaitsAt) -> &'static str {
    match at {
        WaitsAt::Rows => "transactionid",
        WaitsAt::Gate(oid, _) => kind_of(class_of(scan, oid)),
        WaitsAt::Advisory(_) => "advisory",
    }
}

/// Locks on numbers, gates, transactions and rows, and who waits for them.
fn pg_locks(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    let shared = scan.env.shared;
    let sessions = shared.activities.all();
    let mut locks = Vec::new();
    for lock in shared.advisory.all() {
        let session = shared.activities.numbered(lock.session);
        let transaction = session.as_ref().and_then(|session| session.transaction());
        let none = || format!("{}/0", lock.session);
        let holder = transaction.map_or_else(none, |own| own.to_string());
        let pid = session.map_or(Value::Null, |session| Value::Int4(session.pid));
        let mode = match lock.shared {
            true => "ShareLock",
            false => "ExclusiveLock",
        };
        let mut shown = Lock::new("advisory", (holder, pid), mode);
        shown.object = Some(lock.key.shown());
        shown.waits_since = lock.waits_since.map(Value::Timestamptz);
        locks.push(shown);
    }
    for session in &sessions {
        let Some(own) = session.transaction() else {
            continue;
        };
        let holder = || (own.to_string(), Value::Int4(session.pid));
        let mut lock = Lock::new("virtualxid", holder(), "ExclusiveLock");
        lock.own = Some(own);
        locks.push(lock);
        let mut lock = Lock::new("transactionid", holder(), "ExclusiveLock");
        lock.number = Some(own);
        locks.push(lock);
        for (_, oid, mode) in session.gates() {
            locks.push(Lock::of_gate(scan, oid, mode, holder()));
        }
    }
    let of = |own: TransactionId| (own.to_string(), pid_of(scan, own));
    for wait in shared.waits.all() {
        let since = Some(Value::Timestamptz(wait.since));
        match wait.at {
            WaitsAt::Rows => {
                for on in wait.on {
                    let holder = of(wait.transaction);
                    let mut lock = Lock::new("transactionid", holder, "ShareLock");
                    (lock.number, lock.waits_since) = (Some(on), since.clone());
                    locks.push(lock);
                }
            }
            WaitsAt::Gate(oid, mode) => {
                let mut lock = Lock::of_gate(scan, oid, mode, of(wait.transaction));
                lock.waits_since = since;
                locks.push(lock);
            }
            // They are above.
            WaitsAt::Advisory(_) => {}
        }
    }
    for (name, transaction, _) in shared.locks.all() {
        let mut lock = Lock::new("tuple", of(transaction), "RowShareLock");
        lock.relation = Some(name.oid);
        locks.push(lock);
    }
    rows.extend(locks.into_iter().map(|lock| lock.row(&shared.numbers)));
    Ok(())
}

/// The number of a transaction's session.
fn pid_of(scan: &Scan<'_>, transaction: TransactionId) -> Value {
    let activity = scan.env.shared.activities.of(transaction);
    activity.map_or(Value::Null, |activity| Value::Int4(activity.pid))
}

/// Locks on rows that no version stands for, and who waits for a row, whatever stands in its way.
fn vellum_locks(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    let shared = scan.env.shared;
    for (name, transaction, strength) in shared.locks.all() {
        rows.push(vec![
            Value::Oid(name.oid),
            Value::Bytea(name.key),
            text(strength.words()),
            text(transaction.to_string()),
            pid_of(scan, transaction),
            Value::Bool(true),
            Value::Null,
        ]);
    }
    let waits = shared.waits.all().into_iter();
    for wait in waits.filter(|wait| wait.at == WaitsAt::Rows) {
        for on in wait.on {
            rows.push(vec![
                Value::Null,
                Value::Null,
                Value::Null,
                text(wait.transaction.to_string()),
                pid_of(scan, wait.transaction),
                Value::Bool(false),
                text(on.to_string()),
            ]);
        }
    }
    Ok(())
}
