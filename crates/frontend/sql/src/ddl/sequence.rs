//! CREATE SEQUENCE.

use super::Ddl;
use crate::catalog::{Change, Kind, Oid, Relation, SequenceDefinition};
use crate::error::{Result, SqlError};
use crate::sqlstate;
use crate::wire::CommandTag;
use sqlparser::ast::{self, SequenceOptions};
use std::sync::Arc;
use vellum_row::Type;

impl Ddl<'_> {
    pub(super) fn create_sequence(
        &mut self,
        if_not_exists: bool,
        (name, temporary): (&ast::ObjectName, bool),
        data_type: Option<&ast::DataType>,
        options: &[SequenceOptions],
    ) -> Result<CommandTag> {
        let tag = CommandTag::plain("CREATE SEQUENCE");
        let (namespace, name) = self.new_name(name, temporary)?;
        if self.is_taken(namespace, &name, if_not_exists)? {
            return Ok(tag);
        }
        let ty = match data_type {
            None => Type::Int8,
            Some(data_type) => crate::bind::type_of(data_type)?.0,
        };
        let definition = definition(ty, options)?;
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
        self.open
            .change(self.shared, Change::PutRelation(Arc::new(relation)))
    }

    /// Oid of the relation that was made last.
    pub(super) fn last_made(&self) -> Result<Oid> {
        let last = self.open.catalog.1.relations().last().map(|last| last.oid);
        last.ok_or_else(|| SqlError::internal("nothing was made"))
    }

    /// TRUNCATE … RESTART IDENTITY: other values, which begin at the start. Those before are there as long as the transaction may roll back.
    pub(super) fn restart_sequences(&mut self, table: Oid) -> Result<()> {
        for oid in self.owned_sequences(table) {
            let Some(relation) = self.open.catalog.1.relation(oid).cloned() else {
                continue;
            };
            if let Kind::Sequence(definition) = relation.kind {
                let values = self.draw_oid()?;
                let next = Relation {
                    generation: relation.generation + 1,
                    runtime: self.shared.runtimes.of(values),
                    kind: Kind::Sequence(SequenceDefinition {
                        values,
                        ..definition
                    }),
                    ..(*relation).clone()
                };
                self.open
                    .change(self.shared, Change::PutRelation(Arc::new(next)))?;
            }
        }
        Ok(())
    }
}

/// A sequence of a type, with options.
///
/// # Errors
/// `22023` for what cannot be.
pub(super) fn definition(ty: Type, options: &[SequenceOptions]) -> Result<SequenceDefinition> {
    let (low, high) = match ty {
        Type::Int2 => (i64::from(i16::MIN), i64::from(i16::MAX)),
        Type::Int4 => (i64::from(i32::MIN), i64::from(i32::MAX)),
        Type::Int8 => (i64::MIN, i64::MAX),
        _ => {
            let text = "sequence type must be smallint, integer, or bigint";
            return Err(invalid(text));
        }
    };
    let (mut increment, mut start, mut cycle) = (1, None, false);
    let (mut minimum, mut maximum) = (None, None);
    for option in options {
        match option {
            SequenceOptions::IncrementBy(by, _) => increment = number(by)?,
            SequenceOptions::MinValue(value) => {
                minimum = value.as_ref().map(number).transpose()?;
            }
            SequenceOptions::MaxValue(value) => {
                maximum = value.as_ref().map(number).transpose()?;
            }
            SequenceOptions::StartWith(value, _) => start = Some(number(value)?),
            SequenceOptions::Cache(_) => {}
            SequenceOptions::Cycle(no) => cycle = !no,
        }
    }
    if increment == 0 {
        return Err(invalid("INCREMENT must not be zero"));
    }
    let up = increment > 0;
    let minimum = minimum.unwrap_or(if up { 1 } else { low });
    let maximum = maximum.unwrap_or(if up { high } else { -1 });
    if minimum >= maximum {
        let message = format!("MINVALUE ({minimum}) must be less than MAXVALUE ({maximum})");
        return Err(invalid(&message));
    }
    let start = start.unwrap_or(if up { minimum } else { maximum });
    if !(minimum..=maximum).contains(&start) {
        let bound = if start < minimum {
            format!("START value ({start}) cannot be less than MINVALUE ({minimum})")
        } else {
            format!("START value ({start}) cannot be greater than MAXVALUE ({maximum})")
        };
        return Err(invalid(&bound));
    }
    Ok(SequenceDefinition {
        start,
        increment,
        minimum,
        maximum,
        cycle,
        type_oid: ty.oid(),
        owner: (0, 0),
        values: 0,
    })
}

fn number(expr: &ast::Expr) -> Result<i64> {
    let text = expr.to_string().replace(' ', "");
    text.parse()
        .map_err(|_| SqlError::syntax(format!("syntax error at or near \"{expr}\"")))
}

#[cold]
fn invalid(message: &str) -> SqlError {
    SqlError::new(sqlstate::INVALID_PARAMETER_VALUE, message)
}
