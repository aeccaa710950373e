//! `enum_first`, `enum_last`, `enum_range`: of an argument they take the type, so the first two and the last with one argument are constants.

use super::{Binder, Bound};
use crate::error::{Result, SqlError};
use crate::expr::Expr;
use crate::sqlstate;
use vellum_row::{CastContext, EnumType, Type, Typmod, Value};

impl Binder<'_> {
    /// A call of one of them.
    ///
    /// # Errors
    /// `42883` for what is no enum, or where nothing tells which one it is; `55000` for the first of no values.
    pub(super) fn enum_function(&mut self, name: &str, arguments: Vec<Bound>) -> Result<Bound> {
        let types: Vec<Option<Type>> = arguments.iter().map(|argument| argument.ty).collect();
        let mut known = types.iter().flatten();
        let id = match known.next() {
            Some(Type::Enum(id)) if known.all(|other| *other == Type::Enum(*id)) => *id,
            _ => return Err(self.no_function(name, &types)),
        };
        let ty = Type::Enum(id);
        let own = self.settings.enum_of(id)?;
        let end = match name {
            "enum_first" => own.labels.first(),
            "enum_last" => own.labels.last(),
            _ => return self.enum_range(own, arguments),
        };
        let label = end.ok_or_else(|| {
            let message = format!("enum {} contains no values", self.settings.name_of(ty));
            SqlError::new(sqlstate::OBJECT_NOT_IN_PREREQUISITE_STATE, message)
        })?;
        let value = own.usable(label, self.settings)?;
        Ok(Bound::new(Expr::Const(Value::Enum(value)), ty))
    }

    fn enum_range(&mut self, own: &EnumType, arguments: Vec<Bound>) -> Result<Bound> {
        let ty = Type::Enum(own.id);
        let all = own.range(None, None, self.settings)?;
        let all = Bound::new(Expr::Const(Value::Array(all)), ty.array());
        if arguments.len() == 1 {
            return Ok(all);
        }
        let mut given = vec![all];
        for argument in arguments {
            let argument = self.coerce(argument, ty, Typmod::NONE, CastContext::Implicit)?;
            given.push(Bound::new(argument, ty));
        }
        self.scalar_operator("%enum_range", given)
    }
}
