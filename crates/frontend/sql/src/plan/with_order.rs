//! The order of the queries of a WITH RECURSIVE: each of them may name any other, so each is bound behind those that it names.

use super::writing::reads;
use crate::bind::{Binder, folded};
use crate::error::{Result, SqlError};
use crate::sqlstate;
use sqlparser::ast;
use vellum_base::maps::{HashMap, HashSet};

impl Binder<'_> {
    /// The queries of a WITH as they are to be bound. With each whether it names one that stands behind it still.
    ///
    /// # Errors
    /// `0A000` for queries that name each other.
    pub(super) fn in_order<'w>(&self, with: &'w ast::With) -> Result<Vec<(&'w ast::Cte, bool)>> {
        let all = &with.cte_tables;
        if !with.recursive {
            return Ok(all.iter().map(|cte| (cte, false)).collect());
        }
        let numbers = all.iter().enumerate();
        let numbers: HashMap<String, usize> = numbers
            .map(|(number, cte)| (folded(&cte.alias.name), number))
            .collect();
        let named = (all.iter().enumerate()).map(|(own, cte)| {
            let mut named = Vec::new();
            reads(&*cte.query, &mut |name| {
                let number = numbers.get(&name).copied();
                named.extend(number.filter(|number| *number != own));
            });
            named
        });
        let named: Vec<Vec<usize>> = named.collect();
        let (ordered, circle) = sorted(&named);
        if let Some(first) = circle {
            // A name may be another's than it seems: then they are read as they stand.
            if all.iter().any(has_with) {
                return Ok(with_behind(all, &named, (0..all.len()).collect()));
            }
            let text = "mutual recursion between WITH items is not implemented";
            let error = SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, text);
            let place = self.place_of(all[first].alias.name.span.start);
            return Err(error.at(place));
        }
        Ok(with_behind(all, &named, ordered))
    }
}

/// With each query, in this order, whether it names one that stands behind it.
fn with_behind<'w>(
    all: &'w [ast::Cte],
    named: &[Vec<usize>],
    ordered: Vec<usize>,
) -> Vec<(&'w ast::Cte, bool)> {
    let mut stands: HashSet<usize> = HashSet::default();
    let ordered = ordered.into_iter().map(|number| {
        let behind = named[number].iter().any(|other| !stands.contains(other));
        stands.insert(number);
        (&all[number], behind)
    });
    ordered.collect()
}

/// Says of a relation that is not there that a query of WITH is called so which cannot be read from where it is named.
pub(super) fn of_hidden<'n>(
    error: SqlError,
    mut names: impl Iterator<Item = &'n str>,
    recursive: bool,
) -> SqlError {
    if recursive || error.sqlstate() != sqlstate::UNDEFINED_TABLE || error.fields().hint.is_some() {
        return error;
    }
    let is_meant = |name: &&str| error.message() == format!("relation \"{name}\" does not exist");
    let Some(name) = names.find(is_meant) else {
        return error;
    };
    let detail = format!(
        "There is a WITH item named \"{name}\", but it cannot be referenced from this part of the query."
    );
    error
        .with_detail(detail)
        .with_hint("Use WITH RECURSIVE, or re-order the WITH items to remove forward references.")
}

/// Whether there is a WITH within a query of WITH: a name in it may be one of that.
fn has_with(cte: &ast::Cte) -> bool {
    let mut found = false;
    crate::parse::walk::queries(&*cte.query, &mut |query| found |= query.with.is_some());
    found
}

/// Numbers behind those that they name, else in their order; and the first of some that name each other, if there are such.
fn sorted(named: &[Vec<usize>]) -> (Vec<usize>, Option<usize>) {
    let mut placed = vec![false; named.len()];
    let mut on_path = vec![false; named.len()];
    let mut ordered = Vec::with_capacity(named.len());
    let mut circle = None;
    // Depth first, by hand: a WITH may be long.
    let mut path: Vec<(usize, usize)> = Vec::new();
    for first in 0..named.len() {
        if !placed[first] {
            on_path[first] = true;
            path.push((first, 0));
        }
        while let Some((number, looked)) = path.last_mut() {
            let number = *number;
            let Some(next) = named[number].get(*looked).copied() else {
                (placed[number], on_path[number]) = (true, false);
                ordered.push(number);
                path.pop();
                continue;
            };
            *looked += 1;
            if on_path[next] {
                let from = path.iter().position(|(number, _)| *number == next);
                let own = path[from.unwrap_or(0)..].iter().map(|(number, _)| *number);
                circle = own.chain(circle).min();
            } else if !placed[next] {
                on_path[next] = true;
                path.push((next, 0));
            }
        }
    }
    (ordered, circle)
}

#[cfg(test)]
mod tests {
    use super::sorted;

    #[test]
    fn what_names_others_stands_behind_them() {
        for (named, wanted, circle) in [
            (&[&[][..], &[], &[]][..], &[0, 1, 2][..], None),
            (&[&[2], &[], &[1]], &[1, 2, 0], None),
            (&[&[], &[2, 3], &[], &[0]], &[0, 2, 3, 1], None),
            (&[&[], &[2], &[1]], &[0, 2, 1], Some(1)),
        ] {
            let named: Vec<Vec<usize>> = named.iter().map(|list| list.to_vec()).collect();
            assert_eq!(sorted(&named), (wanted.to_vec(), circle), "{named:?}");
        }
    }
}
