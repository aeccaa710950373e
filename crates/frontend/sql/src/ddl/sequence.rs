//! CREATE SEQUENCE, and what the options of sequences make of them.

use super::Ddl;
use crate::catalog::{Change, Kind, Oid, Relation, SequenceDefinition};
use crate::error::{Result, SqlError};
use crate::parse::Clause;
use crate::sqlstate;
use crate::wire::CommandTag;
use sqlparser::ast::{self, SequenceOptions};
use std::sync::Arc;
use vellum_row::Type;

/// What CREATE SEQUENCE says.
pub(super) struct Made<'m> {
    pub if_not_exists: bool,
    pub temporary: bool,
    pub name: &'m ast::ObjectName,
    pub data_type: Option<&'m ast::DataType>,
    pub options: &'m [SequenceOptions],
    pub owned_by: Option<&'m ast::ObjectName>,
}

impl Ddl<'_> {
    pub(super) fn create_sequence(&mut self, made: &Made<'_>) -> Result<CommandTag> {
        let tag = CommandTag::plain("CREATE SEQUENCE");
        let (namespace, name) = self.new_name(made.name, made.temporary)?;
        if self.is_taken(namespace, &name, made.if_not_exists)? {
            return Ok(tag);
        }
        let ty = match made.data_type {
            None => Type::Int8,
            Some(data_type) => self.binder().type_of(data_type)?.0,
        };
        let clauses: Vec<Clause> = made.options.iter().map(Clause::of_option).collect();
        let mut definition = definition(ty, &clauses)?;
        if let Some(owner) = made.owned_by {
            let place = (self.role, namespace);
            definition.owner = self.owning_column(place, &super::identity::idents(owner))?;
        }
        self.put_sequence(namespace, &name, definition)?;
        Ok(tag)
    }

    pub(super) fn put_sequence(
        &mut self,
        namespace: Oid,
        name: &str,
        mut definition: SequenceDefinition,
    ) -> Result<()> {
        let oid = self.draw_oid()?;
        definition.values = oid;
        let relation = self.new_relation(oid, namespace, name, Kind::Sequence(definition));
        self.change(Change::PutRelation(Arc::new(relation)))
    }

    /// Oid of the relation that was made last.
    pub(super) fn last_made(&self) -> Result<Oid> {
        let last = self.open.catalog.1.relations().last().map(|last| last.oid);
        last.ok_or_else(|| SqlError::internal("nothing was made"))
    }

    /// TRUNCATE … RESTART IDENTITY.
    pub(super) fn restart_sequences(&mut self, table: Oid) -> Result<()> {
        for relation in self.owned_sequences(table, None) {
            if let Kind::Sequence(definition) = relation.kind {
                let begin = definition.start;
                self.put_altered(
                    &relation,
                    SequenceDefinition {
                        begin,
                        ..definition
                    },
                    true,
                )?;
            }
        }
        Ok(())
    }

    /// Puts a sequence with another definition. If it is started again it has other values, which begin where the definition says: those before are
    /// there as long as the transaction may roll back.
    pub(super) fn put_altered(
        &mut self,
        relation: &Relation,
        mut definition: SequenceDefinition,
        restarts: bool,
    ) -> Result<()> {
        let mut runtime = relation.runtime.clone();
        if restarts {
            definition.values = self.draw_oid()?;
            runtime = relation.runtime.anew();
        }
        let next = Relation {
            generation: relation.generation + 1,
            runtime,
            kind: Kind::Sequence(definition),
            ..relation.clone()
        };
        self.change(Change::PutRelation(Arc::new(next)))
    }
}

/// The least and the greatest value of an integer type.
fn range(ty: Type) -> Option<(i64, i64)> {
    Some(match ty {
        Type::Int2 => (i64::from(i16::MIN), i64::from(i16::MAX)),
        Type::Int4 => (i64::from(i32::MIN), i64::from(i32::MAX)),
        Type::Int8 => (i64::MIN, i64::MAX),
        _ => return None,
    })
}

/// What options say, each at most once.
#[derive(Default)]
struct Said<'s> {
    increment: Option<&'s ast::Expr>,
    minimum: Option<Option<&'s ast::Expr>>,
    maximum: Option<Option<&'s ast::Expr>>,
    start: Option<&'s ast::Expr>,
    restart: Option<Option<&'s ast::Expr>>,
    cache: Option<&'s ast::Expr>,
    cycle: Option<bool>,
}

fn once<T>(place: &mut Option<T>, value: T) -> Result<()> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(redundant()),
    }
}

/// `42601` for an option that was given twice.
#[cold]
pub(super) fn redundant() -> SqlError {
    SqlError::syntax("conflicting or redundant options")
}

impl<'s> Said<'s> {
    fn of(clauses: &'s [Clause]) -> Result<Self> {
        let mut said = Self::default();
        for clause in clauses {
            match clause {
                Clause::Increment(by) => once(&mut said.increment, by)?,
                Clause::Minimum(value) => once(&mut said.minimum, value.as_ref())?,
                Clause::Maximum(value) => once(&mut said.maximum, value.as_ref())?,
                Clause::Start(value) => once(&mut said.start, value)?,
                Clause::Restart(value) => once(&mut said.restart, value.as_ref())?,
                Clause::Cache(value) => once(&mut said.cache, value)?,
                Clause::Cycle(cycles) => once(&mut said.cycle, *cycles)?,
                // What is said of its type, its name and its owner is looked at elsewhere.
                _ => {}
            }
        }
        Ok(said)
    }
}

/// A sequence of a type, with options.
///
/// # Errors
/// `22023` for what cannot be; `42601` for an option that is given twice.
pub(super) fn definition(ty: Type, clauses: &[Clause]) -> Result<SequenceDefinition> {
    let (definition, restart) = altered(None, Some(ty), clauses)?;
    let begin = restart.unwrap_or(definition.start);
    check_value(begin, &definition)?;
    Ok(SequenceDefinition {
        begin,
        ..definition
    })
}

/// What options make of a sequence, or of none, and where it is to be started again if it is.
///
/// # Errors
/// As [`definition`]. Whether the value fits where it stands is not looked at ([`check_value`]).
pub(super) fn altered(
    before: Option<&SequenceDefinition>,
    ty: Option<Type>,
    clauses: &[Clause],
) -> Result<(SequenceDefinition, Option<i64>)> {
    let said = Said::of(clauses)?;
    let no_type = || invalid("sequence type must be smallint, integer, or bigint");
    let known = before.and_then(|before| Type::from_oid(before.type_oid));
    let of_type = ty.or(known).unwrap_or(Type::Int8);
    let (low, high) = range(of_type).ok_or_else(no_type)?;
    // Bounds that were those of the type before are those of the other type.
    let bounds = known.filter(|_| ty.is_some()).and_then(range);
    let old = before.zip(bounds);
    let widest_up = old.is_some_and(|(before, (_, high))| before.maximum == high);
    let widest_down = old.is_some_and(|(before, (low, _))| before.minimum == low);
    let increment = match said.increment {
        Some(by) => number(by)?,
        None => before.map_or(1, |before| before.increment),
    };
    if increment == 0 {
        return Err(invalid("INCREMENT must not be zero"));
    }
    let up = increment > 0;
    let maximum = match (said.maximum, before) {
        (Some(Some(value)), _) => number(value)?,
        (None, Some(before)) if !widest_up => before.maximum,
        _ if up || widest_up => high,
        _ => -1,
    };
    if !(low..=high).contains(&maximum) {
        return Err(out_of_range("MAXVALUE", maximum, of_type));
    }
    let minimum = match (said.minimum, before) {
        (Some(Some(value)), _) => number(value)?,
        (None, Some(before)) if !widest_down => before.minimum,
        _ if !up || widest_down => low,
        _ => 1,
    };
    if !(low..=high).contains(&minimum) {
        return Err(out_of_range("MINVALUE", minimum, of_type));
    }
    if minimum >= maximum {
        let message = format!("MINVALUE ({minimum}) must be less than MAXVALUE ({maximum})");
        return Err(invalid(&message));
    }
    let start = match (said.start, before) {
        (Some(value), _) => number(value)?,
        (None, Some(before)) => before.start,
        (None, None) if up => minimum,
        (None, None) => maximum,
    };
    check_bounds("START", start, minimum, maximum)?;
    let restart = match said.restart {
        None => None,
        Some(None) => Some(start),
        Some(Some(value)) => Some(number(value)?),
    };
    let cache = match said.cache {
        Some(value) => number(value)?,
        None => before.map_or(1, |before| before.cache),
    };
    if cache <= 0 {
        return Err(invalid(&format!(
            "CACHE ({cache}) must be greater than zero"
        )));
    }
    let cycle = said.cycle.or(before.map(|before| before.cycle));
    let definition = SequenceDefinition {
        start,
        begin: before.map_or(start, |before| before.begin),
        increment,
        minimum,
        maximum,
        cycle: cycle.unwrap_or(false),
        cache,
        type_oid: of_type.oid(),
        owner: before.map_or((0, 0), |before| before.owner),
        values: before.map_or(0, |before| before.values),
    };
    Ok((definition, restart))
}

/// # Errors
/// `22023` for a value that a sequence cannot stand at.
pub(super) fn check_value(value: i64, definition: &SequenceDefinition) -> Result<()> {
    check_bounds("RESTART", value, definition.minimum, definition.maximum)
}

fn check_bounds(word: &str, value: i64, minimum: i64, maximum: i64) -> Result<()> {
    let message = if value < minimum {
        format!("{word} value ({value}) cannot be less than MINVALUE ({minimum})")
    } else if value > maximum {
        format!("{word} value ({value}) cannot be greater than MAXVALUE ({maximum})")
    } else {
        return Ok(());
    };
    Err(invalid(&message))
}

/// # Errors
/// `22003`, `22P02` for what is no `bigint`.
fn number(expr: &ast::Expr) -> Result<i64> {
    let text = expr.to_string().replace(' ', "");
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().map_err(|_| {
        if digits(text.trim_start_matches(['+', '-'])) {
            let message = format!("value \"{text}\" is out of range for type bigint");
            return SqlError::new(sqlstate::NUMERIC_VALUE_OUT_OF_RANGE, message);
        }
        let message = format!("invalid input syntax for type bigint: \"{text}\"");
        SqlError::new(sqlstate::INVALID_TEXT_REPRESENTATION, message)
    })
}

#[cold]
fn out_of_range(word: &str, value: i64, ty: Type) -> SqlError {
    invalid(&format!(
        "{word} ({value}) is out of range for sequence data type {}",
        ty.sql_name()
    ))
}

#[cold]
fn invalid(message: &str) -> SqlError {
    SqlError::new(sqlstate::INVALID_PARAMETER_VALUE, message)
}
