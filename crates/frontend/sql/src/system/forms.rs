//! Functions that SQL does not call: those that types are read and written by, and what access methods and languages are run by. `pg_type`, `pg_am`,
//! `pg_language` and `pg_proc` name them.

use crate::expr;
use vellum_row::Type;

/// The oid of the type that functions of forms read and write text as.
pub(super) const CSTRING: u32 = 2275;
/// That of what functions take that SQL cannot call.
pub(super) const INTERNAL: u32 = 2281;

/// Functions of a type's forms: those that read and write text, then binary: oids.
pub(super) const FORMS: [(Type, &str, [u32; 4]); 41] = [
    (Type::Bool, "bool", [1242, 1243, 2436, 2437]),
    (Type::Int2, "int2", [38, 39, 2404, 2405]),
    (Type::Int4, "int4", [42, 43, 2406, 2407]),
    (Type::Int8, "int8", [460, 461, 2408, 2409]),
    (Type::Float4, "float4", [200, 201, 2424, 2425]),
    (Type::Float8, "float8", [214, 215, 2426, 2427]),
    (Type::Numeric, "numeric_", [1701, 1702, 2460, 2461]),
    (Type::Text, "text", [46, 47, 2414, 2415]),
    (Type::Varchar, "varchar", [1046, 1047, 2432, 2433]),
    (Type::Char, "bpchar", [1044, 1045, 2430, 2431]),
    (Type::Bytea, "bytea", [1244, 31, 2412, 2413]),
    (Type::Date, "date_", [1084, 1085, 2468, 2469]),
    (Type::Time, "time_", [1143, 1144, 2470, 2471]),
    (Type::Timestamp, "timestamp_", [1312, 1313, 2474, 2475]),
    (Type::Timestamptz, "timestamptz_", [1150, 1151, 2476, 2477]),
    (Type::Interval, "interval_", [1160, 1161, 2478, 2479]),
    (Type::Uuid, "uuid_", [2952, 2953, 2961, 2962]),
    (Type::Json, "json_", [321, 322, 323, 324]),
    (Type::Jsonb, "jsonb_", [3806, 3804, 3805, 3803]),
    (Type::Oid, "oid", [1798, 1799, 2418, 2419]),
    (Type::Name, "name", [34, 35, 2422, 2423]),
    (Type::SingleChar, "char", [1245, 33, 2434, 2435]),
    (Type::Xid, "xid", [50, 51, 2440, 2441]),
    (Type::Regclass, "regclass", [2218, 2219, 2452, 2453]),
    (Type::Regtype, "regtype", [2220, 2221, 2454, 2455]),
    (Type::Regproc, "regproc", [44, 45, 2444, 2445]),
    (Type::Regprocedure, "regprocedure", [2212, 2213, 2446, 2447]),
    (Type::Regnamespace, "regnamespace", [4084, 4085, 4087, 4088]),
    (Type::Regrole, "regrole", [4098, 4092, 4094, 4095]),
    (Type::Regcollation, "regcollation", [4193, 4194, 4196, 4197]),
    (Type::Xid8, "xid8", [5070, 5081, 5082, 5083]),
    (Type::Snapshot, "pg_snapshot_", [5055, 5056, 5057, 5058]),
    (
        Type::TxidSnapshot,
        "txid_snapshot_",
        [2939, 2940, 2941, 2942],
    ),
    (Type::NodeTree, "pg_node_tree_", [195, 196, 197, 198]),
    (Type::AclItem, "aclitem", [1031, 1032, 0, 0]),
    (Type::Int2Vector, "int2vector", [40, 41, 2410, 2411]),
    (Type::OidVector, "oidvector", [54, 55, 2420, 2421]),
    (Type::Inet, "inet_", [910, 911, 2496, 2497]),
    (Type::Cidr, "cidr_", [1267, 1427, 2498, 2499]),
    (Type::Record, "record_", [2290, 2291, 2402, 2403]),
    (Type::Void, "void_", [2298, 2299, 3120, 3121]),
];

/// Whether its values are read by its modifier.
fn is_read_with_modifier(ty: Type) -> bool {
    matches!(
        ty,
        Type::Varchar
            | Type::Char
            | Type::Numeric
            | Type::Time
            | Type::Timestamp
            | Type::Timestamptz
            | Type::Interval
            | Type::Record
    )
}

/// The oid of `anyenum`.
const ANYENUM: u32 = 3500;

/// What access methods and languages are run by: oid, name, types of the arguments and of the result.
const HANDLERS: [(u32, &str, &[u32], u32); 13] = [
    (3, "heap_tableam_handler", &[INTERNAL], 269),
    (330, "bthandler", &[INTERNAL], 325),
    (331, "hashhandler", &[INTERNAL], 325),
    (332, "gisthandler", &[INTERNAL], 325),
    (333, "ginhandler", &[INTERNAL], 325),
    (334, "spghandler", &[INTERNAL], 325),
    (335, "brinhandler", &[INTERNAL], 325),
    (
        ARRAY_SUBSCRIPTS,
        "array_subscript_handler",
        &[INTERNAL],
        INTERNAL,
    ),
    (
        NAME_SUBSCRIPTS,
        "raw_array_subscript_handler",
        &[INTERNAL],
        INTERNAL,
    ),
    (
        JSON_SUBSCRIPTS,
        "jsonb_subscript_handler",
        &[INTERNAL],
        INTERNAL,
    ),
    (PLPGSQL_HANDLERS[0], "plpgsql_call_handler", &[], 2280),
    (
        PLPGSQL_HANDLERS[1],
        "plpgsql_inline_handler",
        &[INTERNAL],
        expr::VOID,
    ),
    (PLPGSQL_HANDLERS[2], "plpgsql_validator", &[26], expr::VOID),
];
/// What subscripts of arrays are.
pub(super) const ARRAY_SUBSCRIPTS: u32 = 6179;
/// The same of `name`.
pub(super) const NAME_SUBSCRIPTS: u32 = 6180;
/// The same of `jsonb`.
pub(super) const JSON_SUBSCRIPTS: u32 = 6098;
/// The functions of PL/pgSQL: what runs it, what runs DO, what looks at a text of it.
pub(super) const PLPGSQL_HANDLERS: [u32; 3] = [13_560, 13_561, 13_562];

/// The same of all arrays.
pub(super) const ARRAY_FORMS: [u32; 4] = [750, 751, 2400, 2401];
/// The same of all enums.
pub(super) const ENUM_FORMS: [u32; 4] = [3506, 3507, 3532, 3533];
const FORM_SUFFIXES: [&str; 4] = ["in", "out", "recv", "send"];

/// Calls `each` with every one of them: oid, name, types of the arguments and of the result.
pub(super) fn functions(each: &mut dyn FnMut(u32, String, Vec<u32>, u32)) {
    for (oid, name, arguments, result) in HANDLERS {
        each(oid, name.to_owned(), arguments.to_vec(), result);
    }
    // Of arrays, enums and domains: with how many types more the reading ones are told what they read.
    let others = [
        (expr::type_oid("anyarray"), "array_", ARRAY_FORMS, 2),
        (ANYENUM, "enum_", ENUM_FORMS, 1),
        (expr::type_oid("any"), "domain_", super::domains::FORMS, 2),
    ];
    let own = FORMS.into_iter().map(|(ty, stem, oids)| {
        let told = if is_read_with_modifier(ty) { 2 } else { 0 };
        (ty.oid(), stem, oids, told)
    });
    for (ty, stem, oids, told) in own.chain(others) {
        for (suffix, oid) in FORM_SUFFIXES.into_iter().zip(oids) {
            if oid == 0 {
                continue;
            }
            let more = &[Type::Oid.oid(), Type::Int4.oid()][..told];
            let (arguments, result) = match suffix {
                "in" => ([&[CSTRING][..], more].concat(), ty),
                "recv" => ([&[INTERNAL][..], more].concat(), ty),
                "out" => (vec![ty], CSTRING),
                _ => (vec![ty], Type::Bytea.oid()),
            };
            each(oid, format!("{stem}{suffix}"), arguments, result);
        }
    }
}
