//! Which of several functions or operators of a name a call means.
//!
//! PostgreSQL's rules (10.2, 10.3 of its manual): the exact one; of those that implicit casts lead to the one with the most exact types, then with the
//! most preferred types, then the one that literals of unknown type fit best. What is chosen from is the tables of this module and that of
//! `catalog_function`.

use super::{Scalar, named};
use crate::error::{Result, SqlError};
use crate::expr::catalog_function::{CatalogEntry, entries_named};
use crate::expr::function::{Builtin, Signature, as_called};
use crate::sqlstate;
use vellum_row::{CastContext, Type, cast_between};

/// A function or an operator that takes as many arguments as there are, of types that may be theirs.
struct Candidate {
    function: Builtin,
    wanted: Vec<Wanted>,
    result: &'static str,
    operator: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    One(Type),
    /// `any`
    Any,
    /// `anyelement`
    Element,
    /// `anyarray`
    Elements,
    /// `anycompatible`
    Compatible,
    /// `anycompatiblearray`
    Compatibles,
}

impl Wanted {
    fn of(name: &str) -> Option<Self> {
        Some(match name {
            "any" => Self::Any,
            "anyelement" => Self::Element,
            "anyarray" => Self::Elements,
            "anycompatible" => Self::Compatible,
            "anycompatiblearray" => Self::Compatibles,
            name => Self::One(Type::from_name(name)?),
        })
    }

    fn takes(self, given: Option<Type>) -> bool {
        match (self, given) {
            (_, None) | (Self::Any | Self::Element | Self::Compatible, _) => true,
            (Self::Elements | Self::Compatibles, Some(own)) => own.element().is_some(),
            (Self::One(ty), Some(own)) => is_implicit(own, ty),
        }
    }

    fn is(self, given: Option<Type>) -> bool {
        matches!((self, given), (Self::One(ty), Some(own)) if ty == own)
    }

    /// That of its type, as `pg_type` has it.
    fn category(self) -> char {
        match self {
            Self::One(ty) => ty.category(),
            _ => 'P',
        }
    }

    fn is_preferred(self) -> bool {
        matches!(self, Self::One(ty) if ty.is_preferred())
    }
}

fn is_implicit(from: Type, to: Type) -> bool {
    cast_between(from, to) == Some(CastContext::Implicit)
}

/// The type of both, by the rule of UNION, CASE and ARRAY; `None` if their categories are different.
pub(crate) fn common_of(had: Type, other: Type) -> Option<Type> {
    if had == other {
        return Some(had);
    }
    if had.category() != other.category() {
        return None;
    }
    let wider = !had.is_preferred() && is_implicit(had, other) && !is_implicit(other, had);
    Some(if wider { other } else { had })
}

/// What the polymorphic types of a function stand for in a call.
#[derive(Default)]
struct Polymorphic {
    /// `anyelement`, and the elements of `anyarray`: the same wherever it stands.
    element: Option<Type>,
    /// `anycompatible`: what all that stand for it are cast to.
    compatible: Option<Type>,
}

impl Polymorphic {
    /// `None` if the arguments cannot be of these types.
    fn of(wanted: &[Wanted], given: &[Option<Type>]) -> Option<Self> {
        let mut found = Self::default();
        let mut compatible = Vec::new();
        for (wanted, given) in wanted.iter().zip(given) {
            let Some(own) = *given else { continue };
            match wanted {
                Wanted::One(_) | Wanted::Any => {}
                Wanted::Element | Wanted::Elements => {
                    let own = match wanted {
                        Wanted::Element => own,
                        _ => own.element()?,
                    };
                    if found.element.is_some_and(|had| had != own) {
                        return None;
                    }
                    found.element = Some(own);
                }
                Wanted::Compatible => compatible.push(own),
                Wanted::Compatibles => compatible.push(own.element()?),
            }
        }
        for own in &compatible {
            found.compatible = Some(match found.compatible {
                None => *own,
                Some(had) => common_of(had, *own)?,
            });
        }
        let common = found.compatible;
        let fits = |own: &Type| common.is_some_and(|common| is_implicit(*own, common));
        compatible.iter().all(fits).then_some(found)
    }
}

/// A candidate of these arguments, a `*` behind the last of which says that there may be any number of it.
fn candidate(
    function: Builtin,
    arguments: impl Iterator<Item = &'static str>,
    result: &'static str,
    given: &[Option<Type>],
) -> Option<Candidate> {
    let mut names: Vec<&str> = arguments.collect();
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
    let mut pairs = wanted.iter().zip(given);
    if !pairs.all(|(wanted, given)| wanted.takes(*given)) {
        return None;
    }
    Polymorphic::of(&wanted, given)?;
    Some(Candidate {
        function,
        wanted,
        result,
        operator: false,
    })
}

fn of_scalar(scalar: Scalar, given: &[Option<Type>]) -> Option<Candidate> {
    let entry = scalar.entry();
    let found = candidate(scalar.builtin(), entry.arguments(), entry.result, given)?;
    Some(Candidate {
        operator: entry.is_operator(),
        ..found
    })
}

fn of_catalog(entry: &CatalogEntry, given: &[Option<Type>]) -> Option<Candidate> {
    candidate(entry.builtin(), entry.arguments(), entry.result, given)
}

/// Keeps those that count the most.
fn keep_most(all: &mut Vec<Candidate>, count: impl Fn(&Candidate) -> usize) {
    let most = all.iter().map(&count).max().unwrap_or(0);
    all.retain(|candidate| count(candidate) == most);
}

/// Whether PostgreSQL has functions of the name for a type that is not here, and these arguments, whose types are not known, may be meant for them:
/// `trunc` of a `macaddr`, `get_bit` of a `bit`, fields of a `timetz`.
fn has_others_elsewhere(name: &str, given: &[Option<Type>]) -> bool {
    match (name, given) {
        ("trunc" | "bit_count", [None])
        | ("get_bit", [None, None])
        | ("set_bit", [None, None, None]) => true,
        ("date_part" | "extract", [field, None]) => Wanted::One(Type::Text).takes(*field),
        _ => false,
    }
}

/// The one that a call with arguments of these types means (`None`: unknown); `None` if there is none of the name that takes them.
///
/// # Errors
/// `42725` if it may mean several; `42804` if nothing tells which type a polymorphic one stands for.
pub(crate) fn find(name: &str, given: &[Option<Type>]) -> Result<Option<Signature>> {
    if has_others_elsewhere(name, given) {
        return Err(ambiguous(name, given));
    }
    let scalars = named(name).iter();
    let scalars = scalars.filter_map(|scalar| of_scalar(*scalar, given));
    let catalog = entries_named(name).iter();
    let catalog = catalog.filter_map(|entry| of_catalog(entry, given));
    choose(scalars.chain(catalog).collect(), name, given)
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
    let all = all.iter().filter_map(|scalar| of_scalar(*scalar, given));
    choose(all.collect(), name, given)
}

fn choose(
    mut all: Vec<Candidate>,
    name: &str,
    given: &[Option<Type>],
) -> Result<Option<Signature>> {
    let Some(first) = all.first() else {
        return Ok(None);
    };
    let operator = first.operator;
    // An operand of unknown type beside one of a known type is taken for one of that.
    if let (true, [left, right]) = (operator, given)
        && let Some(both) = left.xor(*right)
        && let Some(at) = all
            .iter()
            .position(|one| one.wanted.iter().all(|wanted| wanted.is(Some(both))))
    {
        return signature(&all[at], given).map(Some);
    }
    if let Some(at) = all.iter().position(|one| {
        let mut pairs = one.wanted.iter().zip(given);
        pairs.all(|(wanted, given)| wanted.is(*given))
    }) {
        return signature(&all[at], given).map(Some);
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
        [one] => signature(one, given).map(Some),
        _ if operator => Err(ambiguous_operator(name, given)),
        _ => Err(ambiguous(name, given)),
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
        let of = if types().any(|wanted| wanted.category() == 'S') {
            'S'
        } else {
            let first = all.first().map_or('X', |one| one.wanted[at].category());
            if !types().all(|wanted| wanted.category() == first) {
                return;
            }
            first
        };
        let preferred = types().any(|wanted| wanted.category() == of && wanted.is_preferred());
        chosen.push((at, of, preferred));
    }
    let fits = |one: &Candidate| {
        chosen.iter().all(|(at, of, preferred)| {
            let wanted = one.wanted[*at];
            wanted.category() == *of && (!preferred || wanted.is_preferred())
        })
    };
    if all.iter().any(fits) {
        all.retain(fits);
    }
}

/// The types that arguments are cast to, and that of the result.
///
/// # Errors
/// `42804` if nothing tells what `anyelement` stands for. `anycompatible` stands for text then.
fn signature(one: &Candidate, given: &[Option<Type>]) -> Result<Signature> {
    let known = Polymorphic::of(&one.wanted, given).unwrap_or_default();
    let element = || known.element.ok_or_else(no_polymorphic_type);
    let compatible = known.compatible.unwrap_or(Type::Text);
    let mut arguments = Vec::with_capacity(given.len());
    for (wanted, given) in one.wanted.iter().zip(given) {
        arguments.push(match wanted {
            Wanted::One(ty) => *ty,
            Wanted::Any => given.unwrap_or(Type::Text),
            Wanted::Element => element()?,
            Wanted::Elements => match given {
                Some(array) => *array,
                None => element()?.array(),
            },
            Wanted::Compatible => compatible,
            Wanted::Compatibles => compatible.array(),
        });
    }
    let result = match one.result {
        "anyarray" => element()?.array(),
        "anyelement" => element()?,
        "anycompatiblearray" => compatible.array(),
        "anycompatible" => compatible,
        name => Type::from_name(name).unwrap_or(Type::Text),
    };
    Ok(Signature {
        function: one.function,
        arguments,
        result,
    })
}

/// `42804` of an argument that may be of any type, and is of none.
#[cold]
pub(crate) fn no_polymorphic_type() -> SqlError {
    let text = "could not determine polymorphic type because input has type unknown";
    SqlError::new(sqlstate::DATATYPE_MISMATCH, text)
}

/// `42725` of a call.
#[cold]
pub(crate) fn ambiguous(name: &str, given: &[Option<Type>]) -> SqlError {
    let types = names_of(given).join(", ");
    let message = format!("function {}({types}) is not unique", as_called(name));
    not_unique(message, "function")
}

#[cold]
fn ambiguous_operator(sign: &str, given: &[Option<Type>]) -> SqlError {
    let message = match names_of(given).as_slice() {
        [left, right] => format!("operator is not unique: {left} {sign} {right}"),
        names => format!("operator is not unique: {sign} {}", names.join(", ")),
    };
    not_unique(message, "operator")
}

fn names_of(given: &[Option<Type>]) -> Vec<&'static str> {
    let names = given.iter();
    names
        .map(|ty| ty.map_or("unknown", Type::sql_name))
        .collect()
}

fn not_unique(message: String, what: &str) -> SqlError {
    SqlError::new(sqlstate::AMBIGUOUS_FUNCTION, message).with_hint(format!(
        "Could not choose a best candidate {what}. You might need to add explicit type casts."
    ))
}
