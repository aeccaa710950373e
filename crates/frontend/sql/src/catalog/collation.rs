//! Collations: which there are. All order texts by their bytes, so nothing goes by which one it is; it is kept and shown.

use super::Oid;
use vellum_row::Type;

/// A collation, as `pg_collation` has it.
#[derive(Debug)]
pub(crate) struct Collation {
    pub oid: Oid,
    pub name: &'static str,
    /// Whose rules it has.
    pub provider: &'static str,
    /// Number of the encoding that it is for; -1 for any.
    pub encoding: i32,
    pub locale: Option<&'static str>,
}

impl Collation {
    /// The one that values have unless something else is said.
    pub const DEFAULT: Oid = 100;
    /// And the one that names have.
    pub const C: Oid = 950;
    pub const ALL: [Self; 4] = [
        Self {
            oid: Self::DEFAULT,
            name: "default",
            provider: "d",
            encoding: -1,
            locale: None,
        },
        Self {
            oid: Self::C,
            name: "C",
            provider: "c",
            encoding: -1,
            locale: Some("C"),
        },
        Self {
            oid: 951,
            name: "POSIX",
            provider: "c",
            encoding: -1,
            locale: Some("POSIX"),
        },
        Self {
            oid: 12340,
            name: "ucs_basic",
            provider: "c",
            encoding: 6,
            locale: Some("C"),
        },
    ];

    /// The one of a name.
    pub fn named(name: &str) -> Option<&'static Self> {
        Self::ALL.iter().find(|own| own.name == name)
    }

    /// The one of an oid.
    pub fn of(oid: Oid) -> Option<&'static Self> {
        Self::ALL.iter().find(|own| own.oid == oid)
    }

    /// Oid of the one that values of a type have unless something else is said; 0 if they are no text.
    pub fn of_type(ty: Type) -> Oid {
        match ty.element().unwrap_or(ty) {
            Type::Text | Type::Varchar | Type::Char | Type::NodeTree => Self::DEFAULT,
            Type::Name => Self::C,
            _ => 0,
        }
    }

    /// A collation, if it is another than that of a type.
    pub fn other_than_of(ty: Type, oid: Oid) -> Option<Oid> {
        (oid != Self::of_type(ty)).then_some(oid)
    }
}
