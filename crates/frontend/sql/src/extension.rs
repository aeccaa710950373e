//! The extensions that can be made, and what each of them is: the one table of them.
//!
//! Which are there, and in which schema, the catalog says (`catalog::extension`). Functions of an extension have oids of their own, the same in every database: a
//! definition that calls one names it by its oid (`bind::extension`).
//!
//! Not here: CREATE EXTENSION and its like (`ddl::extension`), the relations that list them (`system::extensions`), what the functions compute (`expr::scalar`).

use crate::expr::{Entry, PGCRYPTO, Scalar, UUID_OSSP};
use std::sync::OnceLock;
use vellum_base::maps::HashMap;

/// An extension that can be made.
#[derive(Debug)]
pub(crate) struct Available {
    pub name: &'static str,
    /// The one version that it has.
    pub version: &'static str,
    pub comment: &'static str,
    /// Whether it can be moved to another schema.
    pub relocatable: bool,
    /// The schema that it is always in.
    pub schema: Option<&'static str>,
    pub functions: &'static [Entry],
}

/// The name of the extension that is there from the start, and of its language.
pub(crate) const PLPGSQL: &str = "plpgsql";

/// All of them. All are trusted: whoever may make a schema may make them.
pub(crate) static AVAILABLE: [Available; 3] = [
    Available {
        name: "pgcrypto",
        version: "1.3",
        comment: "cryptographic functions",
        relocatable: true,
        schema: None,
        functions: PGCRYPTO,
    },
    Available {
        name: PLPGSQL,
        version: "1.0",
        comment: "PL/pgSQL procedural language",
        relocatable: false,
        schema: Some("pg_catalog"),
        functions: &[],
    },
    Available {
        name: "uuid-ossp",
        version: "1.1",
        comment: "generate universally unique identifiers (UUIDs)",
        relocatable: true,
        schema: None,
        functions: UUID_OSSP,
    },
];

/// The one of a name.
pub(crate) fn available(name: &str) -> Option<&'static Available> {
    AVAILABLE.iter().find(|own| own.name == name)
}

/// The functions of a name that some extension has, whether it is there or not.
pub(crate) fn functions_named(name: &str) -> &'static [Scalar] {
    static NAMES: OnceLock<HashMap<&'static str, Vec<Scalar>>> = OnceLock::new();
    let names = NAMES.get_or_init(|| {
        let mut names: HashMap<&'static str, Vec<Scalar>> = HashMap::default();
        for own in (0..AVAILABLE.len()).flat_map(Scalar::of_extension) {
            names.entry(own.entry().name).or_default().push(own);
        }
        names
    });
    names.get(name).map_or(&[], Vec::as_slice)
}

/// The function of an extension with this oid.
pub(crate) fn function(oid: u32) -> Option<Scalar> {
    let mut all = (0..AVAILABLE.len()).flat_map(Scalar::of_extension);
    all.find(|own| own.entry().oid == oid)
}

impl Available {
    /// Its functions, in the order in which they are made.
    pub fn functions(&'static self) -> impl Iterator<Item = Scalar> {
        let number = AVAILABLE.iter().position(|own| own.name == self.name);
        number.into_iter().flat_map(Scalar::of_extension)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oids_of_extensions_functions_are_between_those_of_postgresql_and_of_users() {
        let all = AVAILABLE.iter().flat_map(|own| own.functions);
        let mut oids: Vec<u32> = all.map(|entry| entry.oid).collect();
        assert!(oids.len() > 20);
        let users = crate::catalog::FIRST_USER_OID;
        assert!(oids.iter().all(|oid| (15_000..users).contains(oid)));
        oids.sort_unstable();
        assert!(oids.windows(2).all(|pair| pair[0] != pair[1]), "{oids:?}");
    }

    #[test]
    fn functions_are_found_by_name_and_by_oid() {
        let found = functions_named("digest");
        assert_eq!(found.len(), 2);
        for own in found {
            assert_eq!(function(own.entry().oid), Some(*own));
            assert_eq!(own.extension().map(|own| own.name), Some("pgcrypto"));
        }
        assert!(functions_named("length").is_empty());
    }
}
