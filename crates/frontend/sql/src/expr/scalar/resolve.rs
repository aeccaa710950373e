//! Which of several functions or operators of a name a call means.
//!
//! PostgreSQL's rules (10.2, 10.3 of its manual): the exact one; of those that implicit casts lead to the one with the most exact types, then with the
//! most preferred types, then the one that literals of unknown type fit best.

use super::{Scalar, named};
use crate::error::{Result, SqlError};
use crate::expr::function::Signature;
use vellum_row::{CastContext, SqlState, Type, cast_between};

/// A candidate: the types that it wants, `None` where it takes any.
struct Candidate {
    scalar: Scalar,
    wanted: Vec<Wanted>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    One(Type),
    /// `any`, `anyelement`, `anycompatible`
    Any,
    /// `anyarray`, `anycompatiblearray`
    AnyArray,
}

impl Wanted {
    fn of(name: &str) -> Option<Self> {
        Some(match name {
            "any" | "anyelement" | "anycompatible" => Self::Any,
            "anyarray" | "anycompatiblearray" => Self::AnyArray,
            name => Self::One(Type::from_name(name)?),
        })
    }

    fn takes(self, given: Option<Type>) -> bool {
        match (self, given) {
            (_, None) | (Self::Any, _) => true,
            (Self::AnyArray, Some(own)) => own.element().is_some(),
            (Self::One(ty), Some(own)) => {
                own == ty || cast_between(own, ty) == Some(CastContext::Implicit)
            }
        }
    }

    fn is(self, given: Option<Type>) -> bool {
        matches!((self, given), (Self::One(ty), Some(own)) if ty == own)
    }
}

fn candidate(scalar: Scalar, given: &[Option<Type>]) -> Option<Candidate> {
    let entry = scalar.entry();
    let mut names: Vec<&str> = entry.arguments().collect();
    if let Some(last) = names
        .last()
        .copied()
        .and_then(|last| last.strip_suffix('*'))
    {
        if given.len() < names.len() {
            return None;
        }
        names.pop();
        names.resize(given.len(), last);
    }
    if names.len() != given.len() {
        return None;
    }
    let wanted = names
        .into_iter()
        .map(Wanted::of)
        .collect::<Option<Vec<_>>>()?;
    let fits = wanted
        .iter()
        .zip(given)
        .all(|(wanted, given)| wanted.takes(*given));
    fits.then_some(Candidate { scalar, wanted })
}

/// Keeps those that count the most.
fn keep_most(all: &mut Vec<Candidate>, count: impl Fn(&Candidate) -> usize) {
    let most = all.iter().map(&count).max().unwrap_or(0);
    all.retain(|candidate| count(candidate) == most);
}

/// The one that a call with arguments of these types means (`None`: unknown); `None` if there is none of the name that takes them.
///
/// # Errors
/// `42725` if it may mean several.
pub(crate) fn find(name: &str, given: &[Option<Type>]) -> Result<Option<Signature>> {
    find_of(named(name), name, given)
}

/// The same among these, which have the name.
///
/// # Errors
/// Those of [`find`].
pub(crate) fn find_of(
    all: &[Scalar],
    name: &str,
    given: &[Option<Type>],
) -> Result<Option<Signature>> {
    let all = all.iter();
    let mut all: Vec<Candidate> = all.filter_map(|scalar| candidate(*scalar, given)).collect();
    if all.is_empty() {
        return Ok(None);
    }
    let operator = all[0].scalar.entry().is_operator();
    // An operand of unknown type beside one of a known type is taken for one of that.
    if let (true, [left, right]) = (operator, given)
        && let Some(both) = left.xor(*right)
        && let Some(at) = all
            .iter()
            .position(|one| one.wanted.iter().all(|wanted| wanted.is(Some(both))))
    {
        return Ok(Some(signature(&all[at], given)));
    }
    if let Some(at) = all.iter().position(|one| {
        let mut pairs = one.wanted.iter().zip(given);
        pairs.all(|(wanted, given)| wanted.is(*given))
    }) {
        return Ok(Some(signature(&all[at], given)));
    }
    keep_most(&mut all, |one| {
        let pairs = one.wanted.iter().zip(given);
        pairs.filter(|(wanted, given)| wanted.is(**given)).count()
    });
    keep_most(&mut all, |one| {
        let pairs = one.wanted.iter().zip(given);
        let good = |(wanted, given): &(&Wanted, &Option<Type>)| match (wanted, given) {
            (Wanted::One(ty), Some(own)) => {
                ty == own || ty.is_preferred() && ty.category() == own.category()
            }
            _ => false,
        };
        pairs.filter(good).count()
    });
    if all.len() > 1 {
        by_category(&mut all, given);
    }
    if all.len() > 1 {
        // What is unknown is taken for what all the others are.
        let mut known = given.iter().flatten();
        if let Some(one) = known.next()
            && known.all(|other| other == one)
            && given.iter().any(Option::is_none)
        {
            let fitting =
                |all: &Candidate| all.wanted.iter().all(|wanted| wanted.takes(Some(*one)));
            let count = all.iter().filter(|one| fitting(one)).count();
            if count == 1 {
                all.retain(fitting);
            }
        }
    }
    match all.as_slice() {
        [one] => Ok(Some(signature(one, given))),
        _ => Err(ambiguous(name, given, operator)),
    }
}

/// Where types are unknown: text, if one of the functions takes that; else the category that all agree on, and its preferred type.
fn by_category(all: &mut Vec<Candidate>, given: &[Option<Type>]) {
    let unknown = given
        .iter()
        .enumerate()
        .filter(|(_, given)| given.is_none());
    let mut chosen = Vec::new();
    for (at, _) in unknown {
        let types = || all.iter().map(|one| one.wanted[at]);
        let category = |wanted: Wanted| match wanted {
            Wanted::One(ty) => ty.category(),
            Wanted::Any => 'P',
            Wanted::AnyArray => 'A',
        };
        let of = if types().any(|wanted| category(wanted) == 'S') {
            'S'
        } else {
            let first = all.first().map_or('X', |one| category(one.wanted[at]));
            if !types().all(|wanted| category(wanted) == first) {
                return;
            }
            first
        };
        let preferred = types().any(
            |wanted| matches!(wanted, Wanted::One(ty) if ty.category() == of && ty.is_preferred()),
        );
        chosen.push((at, of, preferred));
    }
    let fits = |one: &Candidate| {
        chosen
            .iter()
            .all(|(at, of, preferred)| match one.wanted[*at] {
                Wanted::One(ty) => ty.category() == *of && (!preferred || ty.is_preferred()),
                Wanted::Any => *of == 'P',
                Wanted::AnyArray => *of == 'A',
            })
    };
    if all.iter().any(fits) {
        all.retain(fits);
    }
}

/// The types that arguments are cast to, and that of the result.
fn signature(one: &Candidate, given: &[Option<Type>]) -> Signature {
    let entry = one.scalar.entry();
    let names: Vec<&str> = entry.arguments().collect();
    // What `anyelement` and `anycompatible` stand for.
    let mut element: Option<Type> = None;
    for (number, given) in given.iter().enumerate() {
        let name = names
            .get(number)
            .or(names.last())
            .copied()
            .unwrap_or_default();
        let own = match (one.wanted[number], given) {
            (Wanted::AnyArray, Some(ty)) => ty.element(),
            (Wanted::Any, Some(ty)) if !name.starts_with("any*") => Some(*ty),
            _ => None,
        };
        element = match (element, own) {
            (Some(had), Some(own)) if had != own => {
                let wider = cast_between(had, own) == Some(CastContext::Implicit);
                Some(if wider && !had.is_preferred() {
                    own
                } else {
                    had
                })
            }
            (had, own) => had.or(own),
        };
    }
    let element = element.unwrap_or(Type::Text);
    let arguments = one.wanted.iter().enumerate().map(|(number, wanted)| {
        let name = names
            .get(number)
            .or(names.last())
            .copied()
            .unwrap_or_default();
        match wanted {
            Wanted::One(ty) => *ty,
            Wanted::AnyArray => element.array(),
            Wanted::Any if name.starts_with("any*") => given[number].unwrap_or(Type::Text),
            Wanted::Any => element,
        }
    });
    let arguments = arguments.collect();
    let result = match entry.result {
        "anyarray" | "anycompatiblearray" => element.array(),
        "anyelement" | "anycompatible" => element,
        name => Type::from_name(name).unwrap_or(Type::Text),
    };
    Signature {
        function: one.scalar.builtin(),
        arguments,
        result,
    }
}

#[cold]
fn ambiguous(name: &str, given: &[Option<Type>], operator: bool) -> SqlError {
    let names: Vec<&str> = given
        .iter()
        .map(|ty| ty.map_or("unknown", Type::sql_name))
        .collect();
    let (message, what) = match (operator, names.as_slice()) {
        (true, [left, right]) => (
            format!("operator is not unique: {left} {name} {right}"),
            "operator",
        ),
        (true, _) => (
            format!("operator is not unique: {name} {}", names.join(", ")),
            "operator",
        ),
        _ => (
            format!("function {name}({}) is not unique", names.join(", ")),
            "function",
        ),
    };
    SqlError::new(SqlState::of("42725"), message).with_hint(format!(
        "Could not choose a best candidate {what}. You might need to add explicit type casts."
    ))
}
