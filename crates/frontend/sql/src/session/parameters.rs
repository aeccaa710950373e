//! Values of parameters, as clients send them, and what is said of those that are none.

use super::Session;
use crate::error::{Result, SqlError};
use crate::sqlstate;
use crate::system::{check_place, no_such, parse_reg_in};
use crate::wire::Format;
use vellum_row::{Type, Typmod, Value, ValueRef, input, receive_from_client, text_of_bytes};

impl Session {
    /// The value of a parameter; in a statement, whose image of the catalog tells names.
    ///
    /// # Errors
    /// `22P02`, `22P03`, `08P01`, `22021` and whatever else is wrong with a value; those of names that stand for nothing.
    pub(super) fn parameter(
        &self,
        ty: Type,
        bytes: Option<&[u8]>,
        format: Format,
    ) -> Result<Value> {
        let Some(bytes) = bytes else {
            return Ok(Value::Null);
        };
        match format {
            Format::Binary => {
                let forms = &self.settings.forms;
                Ok(receive_from_client(ty, Typmod::NONE, bytes, forms)?)
            }
            Format::Text => self.of_text(ty, Typmod::NONE, text_of_bytes(bytes)?),
        }
    }

    /// The value that a text stands for, which of oids with names is a name.
    ///
    /// # Errors
    /// `22P02` and its like.
    pub(super) fn of_text(&self, ty: Type, typmod: Typmod, text: &str) -> Result<Value> {
        let forms = &self.settings.forms;
        match ty {
            ty if ty.is_reg() => self.oid_named(ty, text).map(Value::Oid),
            Type::Array(element) if element.ty().is_reg() => {
                let names = input(Type::Text.array(), Typmod::NONE, text, forms)?;
                let ValueRef::Array(names) = names.as_ref() else {
                    return Err(SqlError::internal("no array"));
                };
                let oids = names.items().map(|name| match name.as_ref().as_str() {
                    Some(name) => self.oid_named(element.ty(), name).map(Value::Oid),
                    None => Ok(Value::Null),
                });
                let oids: Vec<Value> = oids.collect::<Result<_>>()?;
                let mut oids = oids.into_iter();
                let next = |_| Ok(oids.next().unwrap_or(Value::Null));
                Ok(Value::Array(names.map(element.ty(), next)?))
            }
            _ => Ok(input(ty, typmod, text, forms)?),
        }
    }

    pub(super) fn oid_named(&self, ty: Type, name: &str) -> Result<u32> {
        let search_path = self.search_path();
        let mut around = self.surroundings(&search_path, "");
        if ty == Type::Regrole {
            around.catalog = self.rights();
        }
        check_place(around, self.rights(), self.acting().role, (ty, name))?;
        let found = parse_reg_in(around, ty, name)?;
        found.ok_or_else(|| no_such(ty, name))
    }
}

/// An error of a parameter, by its number from 0: which one it is, as PostgreSQL says it with its default settings, without the value.
pub(super) fn of_parameter(
    error: SqlError,
    number: usize,
    portal: &str,
    format: Format,
) -> SqlError {
    let number = number + 1;
    let whose = match portal {
        "" => "unnamed portal".to_owned(),
        name => format!("portal \"{name}\""),
    };
    let is_text =
        format == Format::Text && error.sqlstate() != sqlstate::CHARACTER_NOT_IN_REPERTOIRE;
    let value = if is_text { " = '...'" } else { "" };
    let left_over = error.message() == "incorrect binary data format";
    let error = match left_over {
        true => {
            let message = format!("incorrect binary data format in bind parameter {number}");
            SqlError::new(sqlstate::INVALID_BINARY_REPRESENTATION, message)
        }
        false => error,
    };
    error.with_context(format!("{whose} parameter ${number}{value}"))
}
