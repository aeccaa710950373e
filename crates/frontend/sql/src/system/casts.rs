//! `pg_cast`, and the functions that its casts name, as `pg_proc` lists them.
//!
//! Which casts there are `row` says (`cast_between`); this tells them as PostgreSQL does, of types that both have. Those that go by the forms of types
//! stand in neither's.

use super::Scan;
use crate::error::Result;
use vellum_row::Value;

/// Source and target, the function (0: the bytes are the same, or are read and written), `castcontext` and `castmethod`.
type Cast = (&'static str, &'static str, u32, &'static str, &'static str);

#[rustfmt::skip]
const CASTS: [Cast; 147] = [
    ("bool", "int4", 2558, "e", "f"),
    ("bool", "text", 2971, "a", "f"),
    ("bool", "bpchar", 2971, "a", "f"),
    ("bool", "varchar", 2971, "a", "f"),
    ("char", "text", 946, "i", "f"),
    ("char", "bpchar", 860, "a", "f"),
    ("char", "varchar", 946, "a", "f"),
    ("name", "text", 406, "i", "f"),
    ("name", "bpchar", 408, "a", "f"),
    ("name", "varchar", 1401, "a", "f"),
    ("int8", "int2", 714, "a", "f"),
    ("int8", "int4", 480, "a", "f"),
    ("int8", "regproc", 1287, "i", "f"),
    ("int8", "oid", 1287, "i", "f"),
    ("int8", "float4", 652, "i", "f"),
    ("int8", "float8", 482, "i", "f"),
    ("int8", "numeric", 1781, "i", "f"),
    ("int8", "regprocedure", 1287, "i", "f"),
    ("int8", "regclass", 1287, "i", "f"),
    ("int8", "regtype", 1287, "i", "f"),
    ("int8", "regnamespace", 1287, "i", "f"),
    ("int8", "regrole", 1287, "i", "f"),
    ("int8", "regcollation", 1287, "i", "f"),
    ("int2", "int8", 754, "i", "f"),
    ("int2", "int4", 313, "i", "f"),
    ("int2", "regproc", 313, "i", "f"),
    ("int2", "oid", 313, "i", "f"),
    ("int2", "float4", 236, "i", "f"),
    ("int2", "float8", 235, "i", "f"),
    ("int2", "numeric", 1782, "i", "f"),
    ("int2", "regprocedure", 313, "i", "f"),
    ("int2", "regclass", 313, "i", "f"),
    ("int2", "regtype", 313, "i", "f"),
    ("int2", "regnamespace", 313, "i", "f"),
    ("int2", "regrole", 313, "i", "f"),
    ("int2", "regcollation", 313, "i", "f"),
    ("int4", "bool", 2557, "e", "f"),
    ("int4", "int8", 481, "i", "f"),
    ("int4", "int2", 314, "a", "f"),
    ("int4", "regproc", 0, "i", "b"),
    ("int4", "oid", 0, "i", "b"),
    ("int4", "float4", 318, "i", "f"),
    ("int4", "float8", 316, "i", "f"),
    ("int4", "numeric", 1740, "i", "f"),
    ("int4", "regprocedure", 0, "i", "b"),
    ("int4", "regclass", 0, "i", "b"),
    ("int4", "regtype", 0, "i", "b"),
    ("int4", "regnamespace", 0, "i", "b"),
    ("int4", "regrole", 0, "i", "b"),
    ("int4", "regcollation", 0, "i", "b"),
    ("regproc", "int8", 1288, "a", "f"),
    ("regproc", "int4", 0, "a", "b"),
    ("regproc", "oid", 0, "i", "b"),
    ("regproc", "regprocedure", 0, "i", "b"),
    ("text", "char", 944, "a", "f"),
    ("text", "name", 407, "i", "f"),
    ("text", "bpchar", 0, "i", "b"),
    ("text", "varchar", 0, "i", "b"),
    ("text", "regclass", 1079, "i", "f"),
    ("oid", "int8", 1288, "a", "f"),
    ("oid", "int4", 0, "a", "b"),
    ("oid", "regproc", 0, "i", "b"),
    ("oid", "regprocedure", 0, "i", "b"),
    ("oid", "regclass", 0, "i", "b"),
    ("oid", "regtype", 0, "i", "b"),
    ("oid", "regnamespace", 0, "i", "b"),
    ("oid", "regrole", 0, "i", "b"),
    ("oid", "regcollation", 0, "i", "b"),
    ("json", "jsonb", 0, "a", "i"),
    ("pg_node_tree", "text", 0, "i", "b"),
    ("cidr", "text", 730, "a", "f"),
    ("cidr", "inet", 0, "i", "b"),
    ("cidr", "bpchar", 730, "a", "f"),
    ("cidr", "varchar", 730, "a", "f"),
    ("float4", "int8", 653, "a", "f"),
    ("float4", "int2", 238, "a", "f"),
    ("float4", "int4", 319, "a", "f"),
    ("float4", "float8", 311, "i", "f"),
    ("float4", "numeric", 1742, "a", "f"),
    ("float8", "int8", 483, "a", "f"),
    ("float8", "int2", 237, "a", "f"),
    ("float8", "int4", 317, "a", "f"),
    ("float8", "float4", 312, "a", "f"),
    ("float8", "numeric", 1743, "a", "f"),
    ("inet", "text", 730, "a", "f"),
    ("inet", "cidr", 1715, "a", "f"),
    ("inet", "bpchar", 730, "a", "f"),
    ("inet", "varchar", 730, "a", "f"),
    ("bpchar", "char", 944, "a", "f"),
    ("bpchar", "name", 409, "i", "f"),
    ("bpchar", "text", 401, "i", "f"),
    ("bpchar", "bpchar", 668, "i", "f"),
    ("bpchar", "varchar", 401, "i", "f"),
    ("varchar", "char", 944, "a", "f"),
    ("varchar", "name", 1400, "i", "f"),
    ("varchar", "text", 0, "i", "b"),
    ("varchar", "bpchar", 0, "i", "b"),
    ("varchar", "varchar", 669, "i", "f"),
    ("varchar", "regclass", 1079, "i", "f"),
    ("date", "timestamp", 2024, "i", "f"),
    ("date", "timestamptz", 1174, "i", "f"),
    ("time", "time", 1968, "i", "f"),
    ("time", "interval", 1370, "i", "f"),
    ("timestamp", "date", 2029, "a", "f"),
    ("timestamp", "time", 1316, "a", "f"),
    ("timestamp", "timestamp", 1961, "i", "f"),
    ("timestamp", "timestamptz", 2028, "i", "f"),
    ("timestamptz", "date", 1178, "a", "f"),
    ("timestamptz", "time", 2019, "a", "f"),
    ("timestamptz", "timestamp", 2027, "a", "f"),
    ("timestamptz", "timestamptz", 1967, "i", "f"),
    ("interval", "time", 1419, "a", "f"),
    ("interval", "interval", 1200, "i", "f"),
    ("numeric", "int8", 1779, "a", "f"),
    ("numeric", "int2", 1783, "a", "f"),
    ("numeric", "int4", 1744, "a", "f"),
    ("numeric", "float4", 1745, "i", "f"),
    ("numeric", "float8", 1746, "i", "f"),
    ("numeric", "numeric", 1703, "i", "f"),
    ("regprocedure", "int8", 1288, "a", "f"),
    ("regprocedure", "int4", 0, "a", "b"),
    ("regprocedure", "regproc", 0, "i", "b"),
    ("regprocedure", "oid", 0, "i", "b"),
    ("regclass", "int8", 1288, "a", "f"),
    ("regclass", "int4", 0, "a", "b"),
    ("regclass", "oid", 0, "i", "b"),
    ("regtype", "int8", 1288, "a", "f"),
    ("regtype", "int4", 0, "a", "b"),
    ("regtype", "oid", 0, "i", "b"),
    ("jsonb", "bool", 3556, "e", "f"),
    ("jsonb", "int8", 3452, "e", "f"),
    ("jsonb", "int2", 3450, "e", "f"),
    ("jsonb", "int4", 3451, "e", "f"),
    ("jsonb", "json", 0, "a", "i"),
    ("jsonb", "float4", 3453, "e", "f"),
    ("jsonb", "float8", 2580, "e", "f"),
    ("jsonb", "numeric", 3449, "e", "f"),
    ("regnamespace", "int8", 1288, "a", "f"),
    ("regnamespace", "int4", 0, "a", "b"),
    ("regnamespace", "oid", 0, "i", "b"),
    ("regrole", "int8", 1288, "a", "f"),
    ("regrole", "int4", 0, "a", "b"),
    ("regrole", "oid", 0, "i", "b"),
    ("regcollation", "int8", 1288, "a", "f"),
    ("regcollation", "int4", 0, "a", "b"),
    ("regcollation", "oid", 0, "i", "b"),
    ("xid8", "xid", 5071, "e", "f"),
];

/// Oid, name, types of the arguments and of the result, `provolatile`.
type Function = (u32, &'static str, &'static str, &'static str, &'static str);

#[rustfmt::skip]
pub(super) const FUNCTIONS: [Function; 73] = [
    (2557, "bool", "int4", "bool", "i"),
    (3556, "bool", "jsonb", "bool", "i"),
    (408, "bpchar", "name", "bpchar", "i"),
    (668, "bpchar", "bpchar int4 bool", "bpchar", "i"),
    (860, "bpchar", "char", "bpchar", "i"),
    (944, "char", "text", "char", "i"),
    (1715, "cidr", "inet", "cidr", "i"),
    (1178, "date", "timestamptz", "date", "s"),
    (2029, "date", "timestamp", "date", "i"),
    (236, "float4", "int2", "float4", "i"),
    (312, "float4", "float8", "float4", "i"),
    (318, "float4", "int4", "float4", "i"),
    (652, "float4", "int8", "float4", "i"),
    (1745, "float4", "numeric", "float4", "i"),
    (3453, "float4", "jsonb", "float4", "i"),
    (235, "float8", "int2", "float8", "i"),
    (311, "float8", "float4", "float8", "i"),
    (316, "float8", "int4", "float8", "i"),
    (482, "float8", "int8", "float8", "i"),
    (1746, "float8", "numeric", "float8", "i"),
    (2580, "float8", "jsonb", "float8", "i"),
    (237, "int2", "float8", "int2", "i"),
    (238, "int2", "float4", "int2", "i"),
    (314, "int2", "int4", "int2", "i"),
    (714, "int2", "int8", "int2", "i"),
    (1783, "int2", "numeric", "int2", "i"),
    (3450, "int2", "jsonb", "int2", "i"),
    (313, "int4", "int2", "int4", "i"),
    (317, "int4", "float8", "int4", "i"),
    (319, "int4", "float4", "int4", "i"),
    (480, "int4", "int8", "int4", "i"),
    (1744, "int4", "numeric", "int4", "i"),
    (2558, "int4", "bool", "int4", "i"),
    (3451, "int4", "jsonb", "int4", "i"),
    (481, "int8", "int4", "int8", "i"),
    (483, "int8", "float8", "int8", "i"),
    (653, "int8", "float4", "int8", "i"),
    (754, "int8", "int2", "int8", "i"),
    (1288, "int8", "oid", "int8", "i"),
    (1779, "int8", "numeric", "int8", "i"),
    (3452, "int8", "jsonb", "int8", "i"),
    (1200, "interval", "interval int4", "interval", "i"),
    (1370, "interval", "time", "interval", "i"),
    (407, "name", "text", "name", "i"),
    (409, "name", "bpchar", "name", "i"),
    (1400, "name", "varchar", "name", "i"),
    (1703, "numeric", "numeric int4", "numeric", "i"),
    (1740, "numeric", "int4", "numeric", "i"),
    (1742, "numeric", "float4", "numeric", "i"),
    (1743, "numeric", "float8", "numeric", "i"),
    (1781, "numeric", "int8", "numeric", "i"),
    (1782, "numeric", "int2", "numeric", "i"),
    (3449, "numeric", "jsonb", "numeric", "i"),
    (1287, "oid", "int8", "oid", "i"),
    (1079, "regclass", "text", "regclass", "s"),
    (401, "text", "bpchar", "text", "i"),
    (406, "text", "name", "text", "i"),
    (730, "text", "inet", "text", "i"),
    (946, "text", "char", "text", "i"),
    (2971, "text", "bool", "text", "i"),
    (1316, "time", "timestamp", "time", "i"),
    (1419, "time", "interval", "time", "i"),
    (1968, "time", "time int4", "time", "i"),
    (2019, "time", "timestamptz", "time", "s"),
    (1961, "timestamp", "timestamp int4", "timestamp", "i"),
    (2024, "timestamp", "date", "timestamp", "i"),
    (2027, "timestamp", "timestamptz", "timestamp", "s"),
    (1174, "timestamptz", "date", "timestamptz", "s"),
    (1967, "timestamptz", "timestamptz int4", "timestamptz", "i"),
    (2028, "timestamptz", "timestamp", "timestamptz", "s"),
    (669, "varchar", "varchar int4 bool", "varchar", "i"),
    (1401, "varchar", "name", "varchar", "i"),
    (5071, "xid", "xid8", "xid", "i"),
];

pub(super) fn pg_cast(_: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    let oid = |name| Value::Oid(crate::expr::type_oid(name));
    for (number, (source, target, function, context, method)) in (FIRST..).zip(CASTS) {
        rows.push(vec![
            Value::Oid(number),
            oid(source),
            oid(target),
            Value::Oid(function),
            Value::text(context),
            Value::text(method),
        ]);
    }
    Ok(())
}

/// The oid of the first: below 16384 are those that a database comes with, which dumps leave out.
const FIRST: u32 = 10_035;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use vellum_row::{CastContext, Type, cast_between};

    #[test]
    fn every_cast_that_is_told_is_there_in_the_context_that_is_told() {
        let mut wrong = Vec::new();
        for (source, target, function, context, _) in CASTS {
            let [from, to] = [source, target].map(|name| Type::from_name(name).unwrap());
            let told = match context {
                "i" => CastContext::Implicit,
                "a" => CastContext::Assignment,
                _ => CastContext::Explicit,
            };
            let found = cast_between(from, to);
            // To the same type: only its modifier is another.
            if from != to && found.is_none_or(|least| least > told) {
                wrong.push((source, target, told, found));
            }
            let known = FUNCTIONS.iter().any(|(oid, ..)| *oid == function);
            assert!(function == 0 || known, "{source} {target}");
        }
        assert!(wrong.is_empty(), "{wrong:?}");
    }
}
