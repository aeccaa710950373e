//! Access methods of indexes, and the operator classes of their columns: what PostgreSQL has, for the types that there are here.
//!
//! All indexes are trees. What PostgreSQL asks of a hash index, of BRIN and of SP-GiST for texts, a tree answers as well, so that they are ones that are called
//! otherwise. What GIN is asked, which documents have a key and which arrays an element, no tree of whole values answers; nor what GiST is asked of
//! addresses, which lie in a network. Such an index is in the catalog and has no entries. Operator classes other than the default one change nothing: texts are ordered by their bytes in any case.

use super::Oid;
use vellum_row::Type;

/// An access method.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub(crate) enum Method {
    #[default]
    BTree = 0,
    Hash = 1,
    Gin = 2,
    Gist = 3,
    SpGist = 4,
    Brin = 5,
}

impl Method {
    /// In the order of their codes on disk.
    pub const ALL: [Self; 6] = [
        Self::BTree,
        Self::Hash,
        Self::Gin,
        Self::Gist,
        Self::SpGist,
        Self::Brin,
    ];

    /// The method with a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.name() == name)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::BTree => "btree",
            Self::Hash => "hash",
            Self::Gin => "gin",
            Self::Gist => "gist",
            Self::SpGist => "spgist",
            Self::Brin => "brin",
        }
    }

    /// Its oids in `pg_am`: its own and its handler's.
    pub fn oids(self) -> (Oid, Oid) {
        match self {
            Self::BTree => (403, 330),
            Self::Hash => (405, 331),
            Self::Gist => (783, 332),
            Self::Gin => (2742, 333),
            Self::SpGist => (4000, 334),
            Self::Brin => (3580, 335),
        }
    }

    /// Whether its indexes may be unique, and say an order.
    pub fn is_ordered(self) -> bool {
        self == Self::BTree
    }

    /// Whether they may have several columns.
    pub fn has_columns(self) -> bool {
        !matches!(self, Self::Hash | Self::SpGist)
    }

    /// Whether they may include columns.
    pub fn has_included(self) -> bool {
        matches!(self, Self::BTree | Self::Gist | Self::SpGist)
    }

    /// Whether its indexes have entries that a plan can read.
    pub fn has_entries(self) -> bool {
        !matches!(self, Self::Gin | Self::Gist)
    }
}

/// An operator class.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct OperatorClass {
    pub oid: Oid,
    pub method: Method,
    pub name: &'static str,
    pub family: Oid,
    /// The type that it is of.
    pub input: Oid,
    pub default: bool,
    /// What is kept in the index, if that is another type.
    pub key: Oid,
}

const ANY_ARRAY: Oid = 2277;
const ANY_ENUM: Oid = 3500;

impl OperatorClass {
    /// That with an oid.
    pub fn of(oid: Oid) -> Option<&'static Self> {
        CLASSES.iter().find(|class| class.oid == oid)
    }

    /// That with a name.
    pub fn named(method: Method, name: &str) -> Option<&'static Self> {
        let mut all = CLASSES.iter().filter(|class| class.method == method);
        all.find(|class| class.name == name)
    }

    /// That which a column of a type has where none is said.
    pub fn default_of(method: Method, ty: Type) -> Option<&'static Self> {
        let own = |class: &&Self| class.method == method && class.default;
        let mut exact = CLASSES.iter().filter(own);
        let found = exact.find(|class| class.input == ty.oid());
        found.or_else(|| CLASSES.iter().filter(own).find(|class| class.accepts(ty)))
    }

    /// Whether a column of a type may have it.
    pub fn accepts(&self, ty: Type) -> bool {
        match ty {
            ty if ty.oid() == self.input => true,
            Type::Varchar => self.input == Type::Text.oid(),
            Type::Cidr => self.input == Type::Inet.oid(),
            Type::Array(_) => self.input == ANY_ARRAY,
            Type::Enum(_) => self.input == ANY_ENUM,
            ty => ty.is_reg() && self.input == Type::Oid.oid(),
        }
    }
}

const fn class(
    oid: Oid,
    method: Method,
    name: &'static str,
    family: Oid,
    input: Oid,
    default: bool,
    key: Oid,
) -> OperatorClass {
    OperatorClass {
        oid,
        method,
        name,
        family,
        input,
        default,
        key,
    }
}

use Method as M;

/// All of them, as PostgreSQL numbers them.
pub(crate) const CLASSES: &[OperatorClass] = &[
    class(10000, M::BTree, "array_ops", 397, 2277, true, 0),
    class(10003, M::BTree, "bool_ops", 424, 16, true, 0),
    class(10004, M::BTree, "bpchar_ops", 426, 1042, true, 0),
    class(4219, M::BTree, "bpchar_pattern_ops", 2097, 1042, false, 0),
    class(10006, M::BTree, "bytea_ops", 428, 17, true, 0),
    class(10007, M::BTree, "char_ops", 429, 18, true, 0),
    class(3122, M::BTree, "date_ops", 434, 1082, true, 0),
    class(10069, M::BTree, "enum_ops", 3522, 3500, true, 0),
    class(10012, M::BTree, "float4_ops", 1970, 700, true, 0),
    class(3123, M::BTree, "float8_ops", 1970, 701, true, 0),
    class(1979, M::BTree, "int2_ops", 1976, 21, true, 0),
    class(1978, M::BTree, "int4_ops", 1976, 23, true, 0),
    class(3124, M::BTree, "int8_ops", 1976, 20, true, 0),
    class(10022, M::BTree, "interval_ops", 1982, 1186, true, 0),
    class(10088, M::BTree, "jsonb_ops", 4033, 3802, true, 0),
    class(10028, M::BTree, "name_ops", 1994, 19, true, 2275),
    class(3125, M::BTree, "numeric_ops", 1988, 1700, true, 0),
    class(1981, M::BTree, "oid_ops", 1989, 26, true, 0),
    class(3126, M::BTree, "text_ops", 1994, 25, true, 0),
    class(4217, M::BTree, "text_pattern_ops", 2095, 25, false, 0),
    class(10038, M::BTree, "time_ops", 1996, 1083, true, 0),
    class(3128, M::BTree, "timestamp_ops", 434, 1114, true, 0),
    class(3127, M::BTree, "timestamptz_ops", 434, 1184, true, 0),
    class(10009, M::BTree, "cidr_ops", 1974, 869, false, 0),
    class(10015, M::BTree, "inet_ops", 1974, 869, true, 0),
    class(10065, M::BTree, "uuid_ops", 2968, 2950, true, 0),
    class(10053, M::BTree, "xid8_ops", 5067, 5069, true, 0),
    class(10044, M::BTree, "varchar_ops", 1994, 25, false, 0),
    class(4218, M::BTree, "varchar_pattern_ops", 2095, 25, false, 0),
    class(10059, M::Hash, "aclitem_ops", 2235, 1033, true, 0),
    class(10001, M::Hash, "array_ops", 627, 2277, true, 0),
    class(10048, M::Hash, "bool_ops", 2222, 16, true, 0),
    class(10005, M::Hash, "bpchar_ops", 427, 1042, true, 0),
    class(10058, M::Hash, "bpchar_pattern_ops", 2231, 1042, false, 0),
    class(10049, M::Hash, "bytea_ops", 2223, 17, true, 0),
    class(10008, M::Hash, "char_ops", 431, 18, true, 0),
    class(10011, M::Hash, "date_ops", 435, 1082, true, 0),
    class(10070, M::Hash, "enum_ops", 3523, 3500, true, 0),
    class(10013, M::Hash, "float4_ops", 1971, 700, true, 0),
    class(10014, M::Hash, "float8_ops", 1971, 701, true, 0),
    class(10019, M::Hash, "int2_ops", 1977, 21, true, 0),
    class(10020, M::Hash, "int4_ops", 1977, 23, true, 0),
    class(10021, M::Hash, "int8_ops", 1977, 20, true, 0),
    class(10023, M::Hash, "interval_ops", 1983, 1186, true, 0),
    class(10089, M::Hash, "jsonb_ops", 4034, 3802, true, 0),
    class(10029, M::Hash, "name_ops", 1995, 19, true, 0),
    class(10030, M::Hash, "numeric_ops", 1998, 1700, true, 0),
    class(10031, M::Hash, "oid_ops", 1990, 26, true, 0),
    class(10037, M::Hash, "text_ops", 1995, 25, true, 0),
    class(10056, M::Hash, "text_pattern_ops", 2229, 25, false, 0),
    class(10039, M::Hash, "time_ops", 1997, 1083, true, 0),
    class(10046, M::Hash, "timestamp_ops", 2040, 1114, true, 0),
    class(10040, M::Hash, "timestamptz_ops", 1999, 1184, true, 0),
    class(10010, M::Hash, "cidr_ops", 1975, 869, false, 0),
    class(10016, M::Hash, "inet_ops", 1975, 869, true, 0),
    class(10066, M::Hash, "uuid_ops", 2969, 2950, true, 0),
    class(10052, M::Hash, "xid8_ops", 5032, 5069, true, 0),
    class(10045, M::Hash, "varchar_ops", 1995, 25, false, 0),
    class(10057, M::Hash, "varchar_pattern_ops", 2229, 25, false, 0),
    class(10064, M::Gin, "array_ops", 2745, 2277, true, 2283),
    class(10090, M::Gin, "jsonb_ops", 4036, 3802, true, 25),
    class(10091, M::Gin, "jsonb_path_ops", 4037, 3802, false, 23),
    class(10132, M::Brin, "bpchar_bloom_ops", 4586, 1042, false, 1042),
    class(10131, M::Brin, "bpchar_minmax_ops", 4076, 1042, true, 1042),
    class(10093, M::Brin, "bytea_bloom_ops", 4578, 17, false, 17),
    class(10092, M::Brin, "bytea_minmax_ops", 4064, 17, true, 17),
    class(10095, M::Brin, "char_bloom_ops", 4577, 18, false, 18),
    class(10094, M::Brin, "char_minmax_ops", 4062, 18, true, 18),
    class(10138, M::Brin, "date_bloom_ops", 4576, 1082, false, 1082),
    class(
        10137,
        M::Brin,
        "date_minmax_multi_ops",
        4605,
        1082,
        false,
        1082,
    ),
    class(10136, M::Brin, "date_minmax_ops", 4059, 1082, true, 1082),
    class(10117, M::Brin, "float4_bloom_ops", 4582, 700, false, 700),
    class(
        10116,
        M::Brin,
        "float4_minmax_multi_ops",
        4608,
        700,
        false,
        700,
    ),
    class(10115, M::Brin, "float4_minmax_ops", 4070, 700, true, 700),
    class(10120, M::Brin, "float8_bloom_ops", 4582, 701, false, 701),
    class(
        10119,
        M::Brin,
        "float8_minmax_multi_ops",
        4608,
        701,
        false,
        701,
    ),
    class(10118, M::Brin, "float8_minmax_ops", 4070, 701, true, 701),
    class(10103, M::Brin, "int2_bloom_ops", 4572, 21, false, 21),
    class(10102, M::Brin, "int2_minmax_multi_ops", 4602, 21, false, 21),
    class(10101, M::Brin, "int2_minmax_ops", 4054, 21, true, 21),
    class(10106, M::Brin, "int4_bloom_ops", 4572, 23, false, 23),
    class(10105, M::Brin, "int4_minmax_multi_ops", 4602, 23, false, 23),
    class(10104, M::Brin, "int4_minmax_ops", 4054, 23, true, 23),
    class(10100, M::Brin, "int8_bloom_ops", 4572, 20, false, 20),
    class(10099, M::Brin, "int8_minmax_multi_ops", 4602, 20, false, 20),
    class(10098, M::Brin, "int8_minmax_ops", 4054, 20, true, 20),
    class(
        10147,
        M::Brin,
        "interval_bloom_ops",
        4588,
        1186,
        false,
        1186,
    ),
    class(
        10146,
        M::Brin,
        "interval_minmax_multi_ops",
        4613,
        1186,
        false,
        1186,
    ),
    class(
        10145,
        M::Brin,
        "interval_minmax_ops",
        4078,
        1186,
        true,
        1186,
    ),
    class(10097, M::Brin, "name_bloom_ops", 4579, 19, false, 19),
    class(10096, M::Brin, "name_minmax_ops", 4065, 19, true, 19),
    class(10155, M::Brin, "numeric_bloom_ops", 4574, 1700, false, 1700),
    class(
        10154,
        M::Brin,
        "numeric_minmax_multi_ops",
        4603,
        1700,
        false,
        1700,
    ),
    class(10153, M::Brin, "numeric_minmax_ops", 4055, 1700, true, 1700),
    class(10111, M::Brin, "oid_bloom_ops", 4580, 26, false, 26),
    class(10110, M::Brin, "oid_minmax_multi_ops", 4606, 26, false, 26),
    class(10109, M::Brin, "oid_minmax_ops", 4068, 26, true, 26),
    class(10108, M::Brin, "text_bloom_ops", 4573, 25, false, 25),
    class(10107, M::Brin, "text_minmax_ops", 4056, 25, true, 25),
    class(10135, M::Brin, "time_bloom_ops", 4587, 1083, false, 1083),
    class(
        10134,
        M::Brin,
        "time_minmax_multi_ops",
        4612,
        1083,
        false,
        1083,
    ),
    class(10133, M::Brin, "time_minmax_ops", 4077, 1083, true, 1083),
    class(
        10141,
        M::Brin,
        "timestamp_bloom_ops",
        4576,
        1114,
        false,
        1114,
    ),
    class(
        10140,
        M::Brin,
        "timestamp_minmax_multi_ops",
        4605,
        1114,
        false,
        1114,
    ),
    class(
        10139,
        M::Brin,
        "timestamp_minmax_ops",
        4059,
        1114,
        true,
        1114,
    ),
    class(
        10144,
        M::Brin,
        "timestamptz_bloom_ops",
        4576,
        1184,
        false,
        1184,
    ),
    class(
        10143,
        M::Brin,
        "timestamptz_minmax_multi_ops",
        4605,
        1184,
        false,
        1184,
    ),
    class(
        10142,
        M::Brin,
        "timestamptz_minmax_ops",
        4059,
        1184,
        true,
        1184,
    ),
    class(10129, M::Brin, "inet_bloom_ops", 4585, 869, false, 869),
    class(10130, M::Brin, "inet_inclusion_ops", 4102, 869, true, 869),
    class(
        10128,
        M::Brin,
        "inet_minmax_multi_ops",
        4611,
        869,
        false,
        869,
    ),
    class(10127, M::Brin, "inet_minmax_ops", 4075, 869, false, 869),
    class(10017, M::Gist, "inet_ops", 3550, 869, false, 0),
    class(10018, M::SpGist, "inet_ops", 3794, 869, true, 0),
    class(10158, M::Brin, "uuid_bloom_ops", 4589, 2950, false, 2950),
    class(
        10157,
        M::Brin,
        "uuid_minmax_multi_ops",
        4614,
        2950,
        false,
        2950,
    ),
    class(10156, M::Brin, "uuid_minmax_ops", 4081, 2950, true, 2950),
    class(10086, M::SpGist, "text_ops", 4017, 25, true, 0),
];

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    #[test]
    fn codes_are_places_and_names_are_found() {
        for (code, method) in Method::ALL.into_iter().enumerate() {
            assert_eq!(method as usize, code);
            assert_eq!(Method::named(method.name()), Some(method));
        }
    }

    #[test]
    fn default_classes_are_those_of_the_type_or_of_what_it_is_read_as() {
        let default = |method, ty| OperatorClass::default_of(method, ty).map(|own| own.name);
        assert_eq!(default(M::BTree, Type::Varchar), Some("text_ops"));
        assert_eq!(default(M::BTree, Type::Char), Some("bpchar_ops"));
        assert_eq!(default(M::Gin, Type::Int4.array()), Some("array_ops"));
        assert_eq!(default(M::Gin, Type::Int4), None);
        assert_eq!(default(M::BTree, Type::Regclass), Some("oid_ops"));
    }
}
