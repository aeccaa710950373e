//! The types of columns and expressions, with the facts that `pg_type` has of them.
//!
//! Not here: their modifiers (`typmod`), parsing the name of a type (the SQL parser's), what values do.

pub use crate::typmod::{IntervalFields, NUMERIC_PRECISION_MAX, STRING_LENGTH_MAX, Typmod};
use crate::user::{EnumId, FIRST_USER_OID};

/// The type of a column or expression, without its modifier.
///
/// The numbers are persisted (schemas, keys): they never change.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Type {
    /// `boolean`
    Bool = 1,
    /// `smallint`
    Int2 = 2,
    /// `integer`
    Int4 = 3,
    /// `bigint`
    Int8 = 4,
    /// `real`
    Float4 = 5,
    /// `double precision`
    Float8 = 6,
    /// `numeric`, `numeric(p,s)`
    Numeric = 7,
    /// `text`
    Text = 8,
    /// `character varying(n)`
    Varchar = 9,
    /// `character(n)`: padded with blanks, which do not count when compared. `bpchar` in `pg_type`.
    Char = 10,
    /// `bytea`
    Bytea = 11,
    /// `date`
    Date = 12,
    /// `time without time zone`
    Time = 13,
    /// `timestamp without time zone`
    Timestamp = 14,
    /// `timestamp with time zone`
    Timestamptz = 15,
    /// `interval`
    Interval = 16,
    /// `uuid`
    Uuid = 17,
    /// `json`: text, kept as it was written
    Json = 18,
    /// `jsonb`
    Jsonb = 19,
    /// `oid`: unsigned four-byte integer of the system catalogs
    Oid = 20,
    /// `name`: text of at most 63 bytes of the system catalogs
    Name = 21,
    /// `"char"`: one byte of the system catalogs
    SingleChar = 22,
    /// `xid`: number of a transaction in the system catalogs
    Xid = 23,
    /// `regclass`: oid of a relation, shown as its name
    Regclass = 24,
    /// `regtype`: oid of a type, shown as its name
    Regtype = 25,
    /// `regproc`: oid of a function, shown as its name
    Regproc = 26,
    /// `regnamespace`: oid of a schema, shown as its name
    Regnamespace = 27,
    /// `regrole`: oid of a role, shown as its name
    Regrole = 28,
    /// `pg_node_tree`: an expression in the system catalogs, as SQL
    NodeTree = 29,
    /// `aclitem`: rights of a role, as text
    AclItem = 30,
    /// `int2vector`: an array of smallint in the system catalogs, counted from 0
    Int2Vector = 31,
    /// `oidvector`: an array of oids in the system catalogs, counted from 0
    OidVector = 32,
    /// `record`: a row without a type of its own; its modifier tells what is in it. Text, in the form of a composite value
    Record = 33,
    /// `void`: what functions return that return nothing. Text, and empty
    Void = 34,
    /// `inet`: an address of a host, with the length of its network's prefix
    Inet = 35,
    /// `cidr`: a network
    Cidr = 36,
    /// `regprocedure`: oid of a function, shown as its name with the types of its arguments
    Regprocedure = 37,
    /// `xid8`: number of a transaction that is never drawn again. Held as the `bigint` that it is, which no number is beyond
    Xid8 = 38,
    /// `pg_snapshot`: which transactions had ended ([`Snapshot`](crate::Snapshot)). Text
    Snapshot = 39,
    /// `txid_snapshot`: the same, under its older name
    TxidSnapshot = 40,
    /// `regcollation`: oid of a collation, shown as its name
    Regcollation = 41,
    /// An enum that a user has made.
    Enum(EnumId) = 64,
    /// An array of one of the types above.
    Array(Element) = 128,
}

/// The type of an array's elements: its persisted number, or the oid of an enum, which is above all of them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Element(u32);

impl Element {
    const fn of(ty: Type) -> Self {
        Self(match ty {
            Type::Enum(id) => id.oid(),
            scalar => scalar.code() as u32,
        })
    }

    /// The type.
    pub fn ty(self) -> Type {
        match EnumId::of(self.0) {
            Some(id) => Type::Enum(id),
            None => ALL[self.0 as usize - 1],
        }
    }

    const fn code(self) -> u8 {
        match EnumId::of(self.0) {
            Some(_) => ENUM_CODE,
            None => self.0 as u8,
        }
    }
}

/// Set in the persisted number of a type of arrays; the rest is the number of its elements' type.
const ARRAY_CODE: u8 = 0x80;
/// The persisted number of an enum, whose oid stands behind it.
const ENUM_CODE: u8 = 64;

/// The types of users' values, in the order of their numbers; arrays and those of the system catalogs ([`CATALOG_TYPES`]) are others.
pub const TYPES: [Type; 23] = [
    Type::Bool,
    Type::Int2,
    Type::Int4,
    Type::Int8,
    Type::Float4,
    Type::Float8,
    Type::Numeric,
    Type::Text,
    Type::Varchar,
    Type::Char,
    Type::Bytea,
    Type::Date,
    Type::Time,
    Type::Timestamp,
    Type::Timestamptz,
    Type::Interval,
    Type::Uuid,
    Type::Json,
    Type::Jsonb,
    Type::Oid,
    Type::Name,
    Type::Inet,
    Type::Cidr,
];
/// Those of them that are older than the types of the catalogs, whose numbers stand between.
const OLD_TYPES: usize = 21;

/// The types that the system catalogs have beside [`TYPES`], in the order of their numbers.
pub const CATALOG_TYPES: [Type; 18] = [
    Type::SingleChar,
    Type::Xid,
    Type::Regclass,
    Type::Regtype,
    Type::Regproc,
    Type::Regnamespace,
    Type::Regrole,
    Type::NodeTree,
    Type::AclItem,
    Type::Int2Vector,
    Type::OidVector,
    Type::Record,
    Type::Void,
    Type::Regprocedure,
    Type::Xid8,
    Type::Snapshot,
    Type::TxidSnapshot,
    Type::Regcollation,
];
/// Those of them whose numbers stand before the younger of [`TYPES`].
const OLD_CATALOG_TYPES: usize = 13;

/// Both, in the order of their numbers.
const ALL: [Type; COUNT] = {
    let mut all = [Type::Bool; COUNT];
    let mut at = 0;
    while at < COUNT {
        all[at] = if at < OLD_TYPES {
            TYPES[at]
        } else if at < OLD_TYPES + OLD_CATALOG_TYPES {
            CATALOG_TYPES[at - OLD_TYPES]
        } else if at < TYPES.len() + OLD_CATALOG_TYPES {
            TYPES[at - OLD_CATALOG_TYPES]
        } else {
            CATALOG_TYPES[at - TYPES.len()]
        };
        at += 1;
    }
    all
};
const COUNT: usize = TYPES.len() + CATALOG_TYPES.len();

struct Facts {
    /// `typname`
    name: &'static str,
    /// The name in SQL, as `format_type` prints it without a modifier.
    sql_name: &'static str,
    /// `typname` and the name in SQL of the type of its arrays.
    array_names: (&'static str, &'static str),
    oid: u32,
    array_oid: u32,
    length: i16,
    category: char,
    preferred: bool,
}

macro_rules! facts {
    ($name:literal, $sql_name:literal, $oid:literal, $array_oid:literal, $length:literal, $category:literal, $preferred:literal) => {
        Facts {
            name: $name,
            sql_name: $sql_name,
            array_names: (concat!("_", $name), concat!($sql_name, "[]")),
            oid: $oid,
            array_oid: $array_oid,
            length: $length,
            category: $category,
            preferred: $preferred,
        }
    };
}

static FACTS: [Facts; COUNT] = [
    facts!("bool", "boolean", 16, 1000, 1, 'B', true),
    facts!("int2", "smallint", 21, 1005, 2, 'N', false),
    facts!("int4", "integer", 23, 1007, 4, 'N', false),
    facts!("int8", "bigint", 20, 1016, 8, 'N', false),
    facts!("float4", "real", 700, 1021, 4, 'N', false),
    facts!("float8", "double precision", 701, 1022, 8, 'N', true),
    facts!("numeric", "numeric", 1700, 1231, -1, 'N', false),
    facts!("text", "text", 25, 1009, -1, 'S', true),
    facts!("varchar", "character varying", 1043, 1015, -1, 'S', false),
    facts!("bpchar", "character", 1042, 1014, -1, 'S', false),
    facts!("bytea", "bytea", 17, 1001, -1, 'U', false),
    facts!("date", "date", 1082, 1182, 4, 'D', false),
    facts!("time", "time without time zone", 1083, 1183, 8, 'D', false),
    facts!(
        "timestamp",
        "timestamp without time zone",
        1114,
        1115,
        8,
        'D',
        false
    ),
    facts!(
        "timestamptz",
        "timestamp with time zone",
        1184,
        1185,
        8,
        'D',
        true
    ),
    facts!("interval", "interval", 1186, 1187, 16, 'T', true),
    facts!("uuid", "uuid", 2950, 2951, 16, 'U', false),
    facts!("json", "json", 114, 199, -1, 'U', false),
    facts!("jsonb", "jsonb", 3802, 3807, -1, 'U', false),
    facts!("oid", "oid", 26, 1028, 4, 'N', true),
    facts!("name", "name", 19, 1003, 64, 'S', false),
    facts!("char", "\"char\"", 18, 1002, 1, 'Z', false),
    facts!("xid", "xid", 28, 1011, 4, 'U', false),
    facts!("regclass", "regclass", 2205, 2210, 4, 'N', false),
    facts!("regtype", "regtype", 2206, 2211, 4, 'N', false),
    facts!("regproc", "regproc", 24, 1008, 4, 'N', false),
    facts!("regnamespace", "regnamespace", 4089, 4090, 4, 'N', false),
    facts!("regrole", "regrole", 4096, 4097, 4, 'N', false),
    facts!("pg_node_tree", "pg_node_tree", 194, 0, -1, 'Z', false),
    facts!("aclitem", "aclitem", 1033, 1034, 12, 'U', false),
    facts!("int2vector", "int2vector", 22, 1006, -1, 'A', false),
    facts!("oidvector", "oidvector", 30, 1013, -1, 'A', false),
    facts!("record", "record", 2249, 0, -1, 'P', false),
    facts!("void", "void", 2278, 0, 4, 'P', false),
    facts!("inet", "inet", 869, 1041, -1, 'I', true),
    facts!("cidr", "cidr", 650, 651, -1, 'I', false),
    facts!("regprocedure", "regprocedure", 2202, 2207, 4, 'N', false),
    facts!("xid8", "xid8", 5069, 271, 8, 'U', false),
    facts!("pg_snapshot", "pg_snapshot", 5038, 5039, -1, 'U', false),
    facts!("txid_snapshot", "txid_snapshot", 2970, 2949, -1, 'U', false),
    facts!("regcollation", "regcollation", 4191, 4192, 4, 'N', false),
];

/// Of all enums.
static ENUM_FACTS: Facts = facts!("enum", "enum", 0, 0, 4, 'E', false);

impl Type {
    /// What is known of it, of an array of its elements' type.
    fn facts(self) -> &'static Facts {
        let number = usize::from(self.code() & !ARRAY_CODE) - 1;
        FACTS.get(number).unwrap_or(&ENUM_FACTS)
    }

    /// The type with this persisted number, which is no enum's.
    pub fn from_code(code: u8) -> Option<Self> {
        let scalar = ALL.get(usize::from(code & !ARRAY_CODE).checked_sub(1)?)?;
        Some(if code & ARRAY_CODE == 0 {
            *scalar
        } else {
            scalar.array()
        })
    }

    /// The persisted number; all enums have one, and all types of their arrays.
    pub const fn code(self) -> u8 {
        match self {
            Self::Array(element) => ARRAY_CODE | element.code(),
            Self::Enum(_) => ENUM_CODE,
            Self::Bool => 1,
            Self::Int2 => 2,
            Self::Int4 => 3,
            Self::Int8 => 4,
            Self::Float4 => 5,
            Self::Float8 => 6,
            Self::Numeric => 7,
            Self::Text => 8,
            Self::Varchar => 9,
            Self::Char => 10,
            Self::Bytea => 11,
            Self::Date => 12,
            Self::Time => 13,
            Self::Timestamp => 14,
            Self::Timestamptz => 15,
            Self::Interval => 16,
            Self::Uuid => 17,
            Self::Json => 18,
            Self::Jsonb => 19,
            Self::Oid => 20,
            Self::Name => 21,
            Self::SingleChar => 22,
            Self::Xid => 23,
            Self::Regclass => 24,
            Self::Regtype => 25,
            Self::Regproc => 26,
            Self::Regnamespace => 27,
            Self::Regrole => 28,
            Self::NodeTree => 29,
            Self::AclItem => 30,
            Self::Int2Vector => 31,
            Self::OidVector => 32,
            Self::Record => 33,
            Self::Void => 34,
            Self::Inet => 35,
            Self::Cidr => 36,
            Self::Regprocedure => 37,
            Self::Xid8 => 38,
            Self::Snapshot => 39,
            Self::TxidSnapshot => 40,
            Self::Regcollation => 41,
        }
    }

    /// The type of arrays of it; itself if it is an array, which has as many dimensions as it likes.
    pub const fn array(self) -> Self {
        match self {
            Self::Array(_) => self,
            scalar => Self::Array(Element::of(scalar)),
        }
    }

    /// The type of its elements, if it is a type of arrays.
    pub fn element(self) -> Option<Self> {
        match self {
            Self::Array(element) => Some(element.ty()),
            Self::Int2Vector => Some(Self::Int2),
            Self::OidVector => Some(Self::Oid),
            _ => None,
        }
    }

    /// The type of an array of its values: of arrays it is their own, with a dimension more.
    pub fn gathered(self) -> Self {
        match self {
            Self::Array(_) => self,
            other => other.array(),
        }
    }

    /// The enum that it is, or that its elements are.
    pub fn enum_id(self) -> Option<EnumId> {
        match self {
            Self::Enum(id) => Some(id),
            Self::Array(element) => EnumId::of(element.0),
            _ => None,
        }
    }

    /// The type with this oid in `pg_type`. Of those that users make it is the one that has this oid if there is one.
    pub fn from_oid(oid: u32) -> Option<Self> {
        if oid >= FIRST_USER_OID {
            return Some(match EnumId::of(oid) {
                Some(id) => Self::Enum(id),
                None => Self::Enum(EnumId::of(oid - 1)?).array(),
            });
        }
        let find = |ty: &Type| ty.oid() == oid || ty.array_oid() == oid && oid != 0;
        let found = ALL.into_iter().find(find)?;
        Some(if found.oid() == oid {
            found
        } else {
            found.array()
        })
    }

    /// The type with this `typname`.
    pub fn from_name(name: &str) -> Option<Self> {
        let element = name.strip_prefix('_');
        let find = |ty: &Type| ty.name() == element.unwrap_or(name);
        let found = ALL.into_iter().find(find)?;
        Some(if element.is_some() {
            found.array()
        } else {
            found
        })
    }

    /// Its oid in `pg_type`.
    pub fn oid(self) -> u32 {
        match self {
            Self::Enum(id) => id.oid(),
            Self::Array(element) => match EnumId::of(element.0) {
                Some(id) => id.array_oid(),
                None => self.facts().array_oid,
            },
            _ => self.facts().oid,
        }
    }

    /// The oid of the type of its arrays (`typarray`); 0 for none.
    pub fn array_oid(self) -> u32 {
        match self {
            Self::Array(_) => 0,
            Self::Enum(id) => id.array_oid(),
            _ => self.facts().array_oid,
        }
    }

    /// `typname`: `int4`, `bpchar`, `_int4`. Those of enums the catalog knows.
    pub fn name(self) -> &'static str {
        match self {
            Self::Array(_) => self.facts().array_names.0,
            _ => self.facts().name,
        }
    }

    /// The name in SQL: `integer`, `character`, `integer[]`. What messages say, but of enums ([`crate::Settings::name_of`]).
    pub fn sql_name(self) -> &'static str {
        match self {
            Self::Array(_) => self.facts().array_names.1,
            _ => self.facts().sql_name,
        }
    }

    /// `typlen`: bytes of a value in the protocol's binary format; -1 if that varies.
    pub fn length(self) -> i16 {
        match self {
            Self::Array(_) => -1,
            _ => self.facts().length,
        }
    }

    /// `typcategory`.
    pub fn category(self) -> char {
        match self {
            Self::Array(_) => 'A',
            _ => self.facts().category,
        }
    }

    /// `typispreferred`: whether an implicit cast within the category likes to end here.
    pub fn is_preferred(self) -> bool {
        match self {
            Self::Array(_) => false,
            _ => self.facts().preferred,
        }
    }

    /// Whether values are held as [`Value::Text`](crate::Value::Text).
    pub fn is_plain_text(self) -> bool {
        matches!(
            self,
            Type::Text
                | Type::Varchar
                | Type::Name
                | Type::SingleChar
                | Type::NodeTree
                | Type::AclItem
                | Type::Record
                | Type::Void
                | Type::Snapshot
                | Type::TxidSnapshot
        )
    }

    /// Whether values are held as [`Value::Oid`](crate::Value::Oid).
    pub fn is_oid(self) -> bool {
        matches!(self, Type::Oid | Type::Xid) || self.is_reg()
    }

    /// Whether it is an oid that is shown as the name of what it is the number of: the catalog knows that name.
    pub fn is_reg(self) -> bool {
        matches!(
            self,
            Type::Regclass
                | Type::Regtype
                | Type::Regproc
                | Type::Regprocedure
                | Type::Regnamespace
                | Type::Regrole
                | Type::Regcollation
        )
    }

    /// Whether it is `pg_snapshot` or `txid_snapshot`.
    pub fn is_snapshot(self) -> bool {
        matches!(self, Type::Snapshot | Type::TxidSnapshot)
    }

    /// Whether it is `inet` or `cidr`, whose values are compared with each other.
    pub fn is_network(self) -> bool {
        matches!(self, Type::Inet | Type::Cidr)
    }

    /// Whether it is `smallint`, `integer` or `bigint`.
    pub fn is_integer(self) -> bool {
        matches!(self, Type::Int2 | Type::Int4 | Type::Int8)
    }

    /// Whether its values have an order, and thus can be compared, sorted, grouped and indexed.
    pub fn is_orderable(self) -> bool {
        match self {
            Type::Json | Type::NodeTree | Type::Record | Type::Void => false,
            Type::Snapshot | Type::TxidSnapshot => false,
            Type::Array(element) => element.ty().is_orderable(),
            _ => true,
        }
    }

    /// Whether there are operators that order its values: numbers of transactions are told apart only.
    pub fn is_sortable(self) -> bool {
        self.is_orderable() && self.element().unwrap_or(self) != Type::Xid
    }

    /// As `format_type` prints it: `character varying(10)`, `numeric(12,2)`, `bpchar` for a
    /// `character` without modifier.
    pub fn format(self, typmod: Typmod) -> String {
        let name = self.sql_name();
        match self {
            Type::Array(element) => format!("{}[]", element.ty().format(typmod)),
            Type::Char if typmod.is_none() => "bpchar".to_owned(),
            Type::Varchar | Type::Char => match typmod.length() {
                Some(length) => format!("{name}({length})"),
                None => name.to_owned(),
            },
            Type::Numeric => match typmod.precision_scale() {
                Some((precision, scale)) => format!("numeric({precision},{scale})"),
                None => name.to_owned(),
            },
            Type::Time | Type::Timestamp | Type::Timestamptz => match typmod.fraction() {
                Some(digits) => {
                    let (head, tail) = name.split_once(' ').unwrap_or((name, ""));
                    format!("{head}({digits}) {tail}")
                }
                None => name.to_owned(),
            },
            Type::Interval => typmod.format_interval(),
            _ => name.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_oids_lead_back_to_their_type() {
        let arrays = ALL.into_iter().map(Type::array);
        for ty in ALL.into_iter().chain(arrays) {
            assert_eq!(Type::from_code(ty.code()), Some(ty));
            assert_eq!(Type::from_name(ty.name()), Some(ty));
            if ty.oid() != 0 {
                assert_eq!(Type::from_oid(ty.oid()), Some(ty));
            }
        }
        for code in [0, 42, 64, 128, 128 + 42] {
            assert_eq!(Type::from_code(code), None);
        }
        let own = Type::from_oid(16_384).unwrap();
        for ty in [own, own.array()] {
            assert_eq!(Type::from_oid(ty.oid()), Some(ty));
            assert_eq!(ty.enum_id().map(EnumId::oid), Some(16_384));
            assert_eq!(Type::from_code(ty.code()), None);
        }
        assert_eq!(own.array_oid(), 16_385);
        assert_eq!(own.array().element(), Some(own));
        assert_eq!(Type::from_oid(0), None);
        let texts = Type::Text.array();
        assert_eq!((texts.oid(), texts.name()), (1009, "_text"));
        assert_eq!((Type::Int8.oid(), Type::Int8.name()), (20, "int8"));
        assert_eq!((Type::Char.oid(), Type::Char.array_oid()), (1042, 1014));
        assert_eq!(Type::Jsonb.oid(), 3802);
        // Persisted.
        assert_eq!((Type::Void.code(), Type::Inet.code()), (34, 35));
        assert_eq!((Type::Cidr.oid(), Type::Cidr.array_oid()), (650, 651));
        assert_eq!(
            (Type::Regprocedure.code(), Type::Regprocedure.oid()),
            (37, 2202)
        );
    }
}
