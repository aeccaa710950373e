//! Names of what is given none: constraints, indexes and sequences are called after their table and columns, within the bytes that a name keeps.

use super::Ddl;
use crate::bind::NAME_BYTES;
use crate::catalog::Oid;

/// A name that is made: the table's, the columns' if it is about some, and what it is for.
#[derive(Clone, Copy, Debug)]
pub(super) struct MadeName<'n> {
    pub table: &'n str,
    pub columns: &'n str,
    pub label: &'n str,
}

impl MadeName<'_> {
    /// The first one that is not taken: with a number behind it if it has to be.
    pub fn free(self, taken: impl Fn(&str) -> bool) -> String {
        let mut name = self.with(self.label);
        let mut number = 1;
        while taken(&name) {
            name = self.with(&format!("{}{number}", self.label));
            number += 1;
        }
        name
    }

    /// The longer of the table's and the columns' names gives way, as in PostgreSQL: its clients compute what a sequence is called.
    fn with(self, label: &str) -> String {
        let between = 1 + usize::from(!self.columns.is_empty());
        let room = NAME_BYTES.saturating_sub(label.len() + between);
        let (mut table, mut columns) = (self.table.len(), self.columns.len());
        while table + columns > room {
            if table > columns {
                table -= 1;
            } else {
                columns -= 1;
            }
        }
        let cut = |name: &str, bytes: usize| name[..name.floor_char_boundary(bytes)].to_owned();
        let mut name = cut(self.table, table);
        if !self.columns.is_empty() {
            name.push('_');
            name += &cut(self.columns, columns);
        }
        name.push('_');
        name + label
    }
}

impl Ddl<'_> {
    /// A name that is not taken: the base, or with a number behind it.
    pub(super) fn free_name(&self, namespace: Oid, made: MadeName<'_>) -> String {
        let catalog = &self.open.catalog.1;
        made.free(|name| catalog.named(namespace, name).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(table: &str, columns: &str, label: &str) -> String {
        let name = MadeName {
            table,
            columns,
            label,
        };
        name.free(|_| false)
    }

    #[test]
    fn the_longer_name_gives_way() {
        assert_eq!(made("t", "a_b", "key"), "t_a_b_key");
        assert_eq!(made("t", "", "pkey"), "t_pkey");
        let long = "x".repeat(60);
        assert_eq!(
            made(&long, "abc", "seq"),
            format!("{}_abc_seq", "x".repeat(55))
        );
        assert_eq!(made(&long, "", "pkey"), format!("{}_pkey", "x".repeat(58)));
        let both = made(&long, &long, "fkey");
        assert_eq!((both.len(), both.ends_with("x_fkey")), (63, true));
        // A letter of several bytes is not cut apart.
        let umlauts = "ä".repeat(31);
        assert_eq!(
            made(&umlauts, "", "pkey"),
            format!("{}_pkey", "ä".repeat(29))
        );
        let name = MadeName {
            table: &long,
            columns: "a",
            label: "key",
        };
        let second = name.free(|name| !name.ends_with("key1"));
        assert_eq!(second, format!("{}_a_key1", "x".repeat(56)));
    }
}
