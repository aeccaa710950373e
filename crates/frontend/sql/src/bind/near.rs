//! Names that are nearly those of a query's tables and columns: what an error says that somebody may have meant.
//!
//! The rule is PostgreSQL's: the names with the fewest letters to be put in, left out or changed, at most three and at most half of those that were written;
//! one or two of them, and none if there are more.

use super::{Binder, Joined, Scope};
use crate::error::SqlError;
use crate::sqlstate;

/// Letters that may be otherwise.
const LETTERS_MAX: usize = 3;

/// The columns that are nearest so far, with how many letters are otherwise.
struct Nearest<'s> {
    letters: usize,
    columns: Vec<(&'s str, &'s str)>,
}

impl<'s> Nearest<'s> {
    /// Looks at a column; `penalty`: letters of its table's name that are otherwise.
    fn look(&mut self, penalty: usize, name: &str, column: (&'s str, &'s str)) {
        if penalty > self.letters {
            return;
        }
        let letters = distance(column.1, name);
        if letters > name.chars().count() / 2 {
            return;
        }
        let letters = letters + penalty;
        if letters < self.letters {
            self.letters = letters;
            self.columns = vec![column];
        } else if letters == self.letters {
            match self.columns.len() {
                2 => {
                    // Too many that are as near.
                    self.columns.clear();
                    self.letters = letters.saturating_sub(1);
                }
                1 => self.columns.push(column),
                _ if letters <= LETTERS_MAX => self.columns.push(column),
                _ => {}
            }
        }
    }
}

impl Binder<'_> {
    /// An error of a column that there is not, with what may have been meant.
    #[cold]
    pub(super) fn with_nearest(
        &self,
        error: SqlError,
        table: Option<&str>,
        name: &str,
    ) -> SqlError {
        // Who knows more of the name has said it.
        if error.fields().hint.is_some() {
            return error;
        }
        let outer = self.outer.iter().rev().map(|outer| &outer.scope);
        let mut scopes = std::iter::once(&self.scope).chain(outer);
        match (error.sqlstate(), table) {
            (sqlstate::UNDEFINED_TABLE, Some(table)) => {
                let Some(alias) = scopes.find_map(|scope| alias_of(scope, table)) else {
                    return error;
                };
                let message =
                    format!("invalid reference to FROM-clause entry for table \"{table}\"");
                let hint = format!("Perhaps you meant to reference the table alias \"{alias}\".");
                SqlError::new(sqlstate::UNDEFINED_TABLE, message).with_hint(hint)
            }
            (sqlstate::UNDEFINED_COLUMN, _) => {
                let mut nearest = Nearest {
                    letters: LETTERS_MAX + 1,
                    columns: Vec::new(),
                };
                for (of, columns) in scopes.flat_map(candidates) {
                    let penalty = table.map_or(0, |table| distance(table, of));
                    for column in columns {
                        nearest.look(penalty, name, (of, column));
                    }
                }
                let shown =
                    |(table, column): &(&str, &str)| format!("the column \"{table}.{column}\"");
                let shown: Vec<String> = nearest.columns.iter().map(shown).collect();
                match shown.is_empty() {
                    true => error,
                    false => error.with_hint(format!(
                        "Perhaps you meant to reference {}.",
                        shown.join(" or ")
                    )),
                }
            }
            _ => error,
        }
    }
}

/// Tables with their columns, and views that are written in place of their tables, which have no names.
fn candidates(scope: &Scope) -> Vec<(&str, Vec<&str>)> {
    let tables = scope.tables.iter().filter(|table| !table.name.is_empty());
    let tables = tables.map(|table| {
        let columns = table.columns.iter().map(|column| &*column.name);
        (&*table.name, columns.collect())
    });
    let written = |joined: &&Joined| scope.tables[usize::from(joined.from)].name.is_empty();
    let views = scope.joined.iter().filter(written);
    let views = views.filter_map(|view| {
        let columns = view.columns.iter().map(|column| &*column.name);
        Some((view.name.as_deref()?, columns.collect()))
    });
    views.chain(tables).collect()
}

/// What a relation of this name is called in a query.
fn alias_of<'s>(scope: &'s Scope, name: &str) -> Option<&'s str> {
    let is_it = |relation: &std::sync::Arc<crate::catalog::Relation>| *relation.name == *name;
    let mut tables = scope.tables.iter();
    let found = tables.find(|table| table.relation.as_ref().is_some_and(is_it))?;
    Some(&found.name)
}

/// How many letters are to be put in, left out or changed to make one name of the other.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (number, letter) in from.chars().enumerate() {
        let mut above = std::mem::replace(&mut row[0], number + 1);
        for (at, other) in to.iter().enumerate() {
            let changed = above + usize::from(letter != *other);
            above = row[at + 1];
            row[at + 1] = changed.min(above + 1).min(row[at] + 1);
        }
    }
    row[to.len()]
}

/// Whether a name that was not found is looked for no further.
pub(super) fn decides(error: &SqlError) -> bool {
    let state = error.sqlstate();
    matches!(
        state,
        sqlstate::AMBIGUOUS_COLUMN | sqlstate::AMBIGUOUS_ALIAS | sqlstate::INVALID_COLUMN_REFERENCE
    )
}

/// Whether a query further out knows better why a name was not found.
#[cold]
pub(super) fn tells_more(further: &SqlError, own: &SqlError) -> bool {
    let knows = |error: &SqlError| {
        error.sqlstate() != sqlstate::UNDEFINED_TABLE || error.fields().hint.is_some()
    };
    decides(further) || (!knows(own) && knows(further))
}

#[cfg(test)]
mod tests {
    use super::distance;

    #[test]
    fn names_differ_by_letters() {
        for (from, to, letters) in [
            ("", "", 0),
            ("abc", "abc", 0),
            ("abc", "", 3),
            ("", "äb", 2),
            ("kitten", "sitting", 3),
            ("aaa", "aaaa", 1),
            ("name", "nmae", 2),
        ] {
            assert_eq!(distance(from, to), letters, "{from} {to}");
            assert_eq!(distance(to, from), letters, "{to} {from}");
        }
    }
}
