//! Triggers: those by which foreign keys are kept in PostgreSQL, four of each. Here they are no objects; they tell what DISABLE TRIGGER has switched off.

use super::{Scan, Spec, constraints, derived_oid, reg_text, text};
use crate::catalog::{Action, Catalog, ForeignKey, Oid, Relation, Timing};
use crate::error::Result;
use crate::names::quoted;
use crate::session::Env;
use vellum_row::{Array, Type, Value};

pub(super) const RELATIONS: &[Spec] = &[Spec {
    name: "pg_trigger",
    oid: 2620,
    view: false,
    columns: "oid oid, tgrelid oid, tgparentid oid, tgname name, tgfoid oid, tgtype int2, tgenabled char, tgisinternal \
         bool, tgconstrrelid oid, tgconstrindid oid, tgconstraint oid, tgdeferrable bool, tginitdeferred bool, \
         tgnargs int2, tgattr int2vector, tgargs bytea, tgqual pg_node_tree, tgoldtable name, tgnewtable name",
    fill: pg_trigger,
}];

/// The oid of one of the triggers of a foreign key: of its target, for rows that go and that change, then of its own table, for new rows and changed ones.
pub(crate) fn trigger_oid(key: Oid, number: u16) -> Oid {
    derived_oid(key, number)
}

struct Trigger<'c> {
    oid: Oid,
    key: &'c ForeignKey,
    /// Whose rows it looks at, and the other table of the key.
    on: &'c Relation,
    from: &'c Relation,
    event: &'static str,
    function: (Oid, &'static str),
    timing: Timing,
    enabled: bool,
    own: bool,
}

impl Trigger<'_> {
    fn name(&self) -> String {
        let kind = if self.own { 'c' } else { 'a' };
        format!("RI_ConstraintTrigger_{kind}_{}", self.oid)
    }
}

/// What is called for a target that goes, and for one that changes.
fn functions(action: Action) -> [(Oid, &'static str); 2] {
    match action {
        Action::Cascade => [(1646, "RI_FKey_cascade_del"), (1647, "RI_FKey_cascade_upd")],
        Action::Restrict => [
            (1648, "RI_FKey_restrict_del"),
            (1649, "RI_FKey_restrict_upd"),
        ],
        Action::SetNull => [(1650, "RI_FKey_setnull_del"), (1651, "RI_FKey_setnull_upd")],
        Action::SetDefault => [
            (1652, "RI_FKey_setdefault_del"),
            (1653, "RI_FKey_setdefault_upd"),
        ],
        Action::NoAction => [
            (1654, "RI_FKey_noaction_del"),
            (1655, "RI_FKey_noaction_upd"),
        ],
    }
}

fn triggers(catalog: &Catalog) -> Vec<Trigger<'_>> {
    let mut all = Vec::new();
    for relation in catalog.relations() {
        for key in relation.table().map_or(&[][..], |own| &own.foreign_keys) {
            let Some(target) = catalog.relation(key.target) else {
                continue;
            };
            // Only what may be put off can be deferred.
            let timing = |action| match action {
                Action::NoAction => key.timing,
                _ => Timing::Fixed,
            };
            let of = |number, own: bool, event, function, timing| Trigger {
                oid: trigger_oid(key.oid, number),
                key,
                on: if own { relation } else { target },
                from: if own { target } else { relation },
                event,
                function,
                timing,
                enabled: !if own {
                    key.off.references
                } else {
                    key.off.target
                },
                own,
            };
            let deleted = functions(key.on_delete)[0];
            let updated = functions(key.on_update)[1];
            let inserted = (1644, "RI_FKey_check_ins");
            let changed = (1645, "RI_FKey_check_upd");
            all.extend([
                of(0, false, "DELETE", deleted, timing(key.on_delete)),
                of(1, false, "UPDATE", updated, timing(key.on_update)),
                of(2, true, "INSERT", inserted, key.timing),
                of(3, true, "UPDATE", changed, key.timing),
            ]);
        }
    }
    all
}

fn pg_trigger(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    for trigger in triggers(scan.catalog) {
        let index = constraints::target_index(scan, trigger.key);
        let event = match trigger.event {
            "INSERT" => 4,
            "DELETE" => 8,
            _ => 16,
        };
        rows.push(vec![
            Value::Oid(trigger.oid),
            Value::Oid(trigger.on.oid),
            Value::Oid(0),
            text(trigger.name()),
            Value::Oid(trigger.function.0),
            // For each row.
            Value::Int2(event | 1),
            text(if trigger.enabled { "O" } else { "D" }),
            Value::Bool(true),
            Value::Oid(trigger.from.oid),
            Value::Oid(index.map_or(0, |(oid, _)| oid)),
            Value::Oid(trigger.key.oid),
            Value::Bool(trigger.timing.is_deferrable()),
            Value::Bool(trigger.timing == Timing::Deferred),
            Value::Int2(0),
            Value::Array(Array::vector(Type::Int2, &[])),
            Value::Bytea(Box::default()),
            Value::Null,
            Value::Null,
            Value::Null,
        ]);
    }
    Ok(())
}

/// `pg_get_triggerdef`.
pub(super) fn definition(env: &Env<'_>, oid: Oid, pretty: bool) -> Option<String> {
    let all = triggers(env.catalog);
    let trigger = all.iter().find(|trigger| trigger.oid == oid)?;
    let on = match pretty {
        true => reg_text(env, Type::Regclass, trigger.on.oid),
        false => {
            let schema = env.catalog.namespace_name(trigger.on.namespace);
            format!("{}.{}", quoted(schema), quoted(&trigger.on.name))
        }
    };
    let timing = match trigger.timing {
        Timing::Fixed => "NOT DEFERRABLE INITIALLY IMMEDIATE",
        Timing::Immediate => "DEFERRABLE INITIALLY IMMEDIATE",
        Timing::Deferred => "DEFERRABLE INITIALLY DEFERRED",
    };
    Some(format!(
        "CREATE CONSTRAINT TRIGGER {} AFTER {} ON {on} FROM {} {timing} FOR EACH ROW EXECUTE FUNCTION {}()",
        quoted(&trigger.name()),
        trigger.event,
        reg_text(env, Type::Regclass, trigger.from.oid),
        quoted(trigger.function.1),
    ))
}
