//! Names in statements of code (DO): columns first, then variables and fields of records. What could be either is neither (`42702`).

use super::{Binder, Bound, TableName, folded};
use crate::error::{Result, SqlError};
use crate::expr::{Builtin, CatalogFunction, Expr};
use crate::sqlstate;
use sqlparser::ast;
use vellum_row::{Type, Typmod, Value};

/// A variable of code, or a field of one.
#[derive(Clone, Debug)]
pub(crate) struct Variable {
    /// The record that it is a field of.
    pub record: Option<String>,
    /// Empty for a record that has no row yet.
    pub name: String,
    pub value: Value,
    pub ty: Type,
}

impl Variable {
    fn bound(&self) -> Bound {
        Bound::new(Expr::Const(self.value.clone()), self.ty)
    }
}

/// `42702`.
#[cold]
fn ambiguous(name: &str) -> SqlError {
    let message = format!("column reference \"{name}\" is ambiguous");
    let detail = "It could refer to either a variable of the code or a table column.";
    SqlError::new(sqlstate::AMBIGUOUS_COLUMN, message).with_detail(detail)
}

/// `42809`, as PostgreSQL has it: nobody has told it what is in them.
#[cold]
fn unregistered() -> SqlError {
    let text = "record type has not been registered";
    SqlError::new(sqlstate::WRONG_OBJECT_TYPE, text)
}

impl Binder<'_> {
    /// Binds a text that is kept with a relation or a domain: it names none of the code's variables.
    pub(crate) fn stored<R>(&mut self, work: impl FnOnce(&mut Self) -> R) -> R {
        let variables = std::mem::take(&mut self.variables);
        let kept = std::mem::replace(&mut self.kept, true);
        let bound = work(self);
        (self.variables, self.kept) = (variables, kept);
        bound
    }

    /// Whether a name is that of a record of the code.
    fn is_record(&self, name: &str) -> bool {
        let mut variables = self.variables.iter();
        variables.any(|own| own.record.as_deref() == Some(name))
    }

    /// `record.*` in a list.
    ///
    /// # Errors
    /// `42809` if that is a record of the code, and no table.
    pub(crate) fn refuse_record(&self, name: &str) -> Result<()> {
        let is_table = || self.scope.tables.iter().any(|table| table.name == name);
        match self.is_record(name) && !is_table() {
            true => Err(unregistered()),
            false => Ok(()),
        }
    }

    /// A name alone: a column, a variable of the code, or a word that stands for itself.
    pub(super) fn identifier(&mut self, ident: &ast::Ident) -> Result<Bound> {
        let name = folded(ident);
        if ident.quote_style.is_none() && name == "default" {
            return Err(SqlError::syntax("DEFAULT is not allowed in this context"));
        }
        let mut variables = self.variables.iter();
        let variable = variables.find(|own| own.record.is_none() && own.name == name);
        match (self.column(None, &name), variable) {
            (Ok(_), Some(_)) => Err(ambiguous(&name)),
            (Err(error), _) if error.sqlstate() == sqlstate::AMBIGUOUS_COLUMN => Err(error),
            (Err(_), Some(variable)) => Ok(variable.bound()),
            (found, None) if self.is_record(&name) => {
                let is_table = self.scope.named(TableName::Plain(&name))?.is_some();
                match found.is_ok() || is_table {
                    true => Err(ambiguous(&name)),
                    false => Ok(self.record_of_code(&name)),
                }
            }
            (found, None) => self.column_or_word(found, ident, name),
        }
    }

    /// `record.*` as a value.
    pub(super) fn record_starred(&mut self, name: TableName<'_>) -> Option<Bound> {
        match name {
            TableName::Plain(name) if self.is_record(name) => Some(self.record_of_code(name)),
            _ => None,
        }
    }

    /// A record of the code as a value; NULL where it has no row.
    fn record_of_code(&mut self, name: &str) -> Bound {
        let fields = self.variables.iter();
        let fields =
            fields.filter(|own| own.record.as_deref() == Some(name) && !own.name.is_empty());
        let (items, columns): (Vec<Expr>, Vec<_>) = fields
            .map(|own| {
                let column = (own.name.clone(), own.ty, Typmod::NONE);
                (Expr::Const(own.value.clone()), column)
            })
            .unzip();
        let expr = match items.is_empty() {
            true => Expr::Const(Value::Null),
            false => Expr::Call {
                function: Builtin::Catalog(CatalogFunction::MakeRecord),
                arguments: items.into(),
            },
        };
        Bound {
            expr,
            ty: Some(Type::Record),
            typmod: self.new_record(columns),
            start: None,
        }
    }

    /// A column of a table, or a field of a record of the code.
    pub(super) fn field(&mut self, record: &ast::Ident, field: &ast::Ident) -> Result<Bound> {
        let (record, name) = (folded(record), folded(field));
        let of_record = |own: &&Variable| own.record.as_deref() == Some(record.as_str());
        let mut fields = self.variables.iter().filter(of_record).peekable();
        let first = fields.peek().copied();
        let found = fields.find(|own| own.name == name);
        match (
            self.column(Some(TableName::Plain(&record)), &name),
            first,
            found,
        ) {
            (Ok(_), _, Some(_)) => Err(ambiguous(&format!("{record}.{name}"))),
            (Err(_), _, Some(field)) => Ok(field.bound()),
            (Err(_), Some(first), None) if first.name.is_empty() => {
                let message = format!("record \"{record}\" is not assigned yet");
                let state = sqlstate::OBJECT_NOT_IN_PREREQUISITE_STATE;
                let detail = "The tuple structure of a not-yet-assigned record is indeterminate.";
                Err(SqlError::new(state, message).with_detail(detail))
            }
            (Err(_), Some(_), None) => {
                let message = format!("record \"{record}\" has no field \"{name}\"");
                Err(SqlError::new(sqlstate::UNDEFINED_COLUMN, message))
            }
            (column, _, _) => column,
        }
    }
}
