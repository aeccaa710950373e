//! Making an expression one of another type.

use super::{Binder, Bound, ParamCast};
use crate::error::{Result, SqlError};
use crate::expr::{Casting, Expr, common_of};
use crate::sqlstate;
use sqlparser::ast;
use vellum_row::{CastContext, Type, Typmod, Value, cast, cast_between, input};

/// What is known of parameters ([`Binder::params_known`]).
pub(crate) struct ParamsKnown {
    types: Vec<Option<Type>>,
    /// So many are undecided, so many casts of parameters there are.
    undecided: usize,
    casts: usize,
}

impl Binder<'_> {
    /// The expression as one of `ty`, if there is such a cast in this context.
    ///
    /// # Errors
    /// `42804` or `42846` if there is none; `22P02` and its like for a literal that is no value of the type.
    pub fn coerce(
        &mut self,
        bound: Bound,
        ty: Type,
        typmod: Typmod,
        context: CastContext,
    ) -> Result<Expr> {
        let start = bound.start;
        let done = self.coerce_bound(bound, ty, typmod, context);
        done.map_err(|error| error.at(start.and_then(|start| self.place_of(start))))
    }

    fn coerce_bound(
        &mut self,
        bound: Bound,
        ty: Type,
        typmod: Typmod,
        context: CastContext,
    ) -> Result<Expr> {
        let explicit = context == CastContext::Explicit;
        if let Some(done) = self.coerce_reg(&bound, (ty, typmod), context)? {
            return Ok(done);
        }
        let Some(from) = bound.ty else {
            return self.decide(bound, ty, typmod, explicit);
        };
        if from == ty && (typmod.is_none() || typmod == bound.typmod) {
            return Ok(bound.expr);
        }
        if from != ty && cast_between(from, ty).is_none_or(|least| least > context) {
            let message = format!(
                "cannot cast type {} to {}",
                self.settings.name_of(from),
                self.settings.name_of(ty)
            );
            return Err(SqlError::new(sqlstate::CANNOT_COERCE, message));
        }
        // Which moment a text names the statement knows when it runs.
        let settled = |value: &Value| {
            let text = value.as_ref().as_str();
            !text.is_some_and(|text| names_a_moment(ty, text))
        };
        if let Expr::Const(value) = &bound.expr
            && settled(value)
        {
            let value = cast(value.as_ref(), ty, typmod, explicit, self.settings);
            return Ok(Expr::Const(value.map_err(while_running)?));
        }
        if let Expr::Param(number) = bound.expr {
            return Ok(self.cast_param(number, ty, typmod, explicit));
        }
        Ok(Expr::Cast {
            operand: Box::new(bound.expr),
            ty,
            typmod,
            casting: Casting::of(explicit),
        })
    }

    fn cast_param(&mut self, number: u16, ty: Type, typmod: Typmod, explicit: bool) -> Expr {
        self.param_casts.push(ParamCast {
            number,
            ty,
            typmod,
            explicit,
        });
        Expr::Cast {
            operand: Box::new(Expr::Param(number)),
            ty,
            typmod,
            casting: Casting::of(explicit),
        }
    }

    /// A literal or parameter of unknown type becomes one of `ty`.
    fn decide(&mut self, bound: Bound, ty: Type, typmod: Typmod, explicit: bool) -> Result<Expr> {
        if let (Some(types), Some(id), 0) = (&mut self.literal_types, ty.enum_id(), self.view_depth)
            && !types.contains(&id)
        {
            types.push(id);
        }
        match bound.expr {
            Expr::Const(Value::Null) => Ok(Expr::Const(Value::Null)),
            Expr::Const(value) => {
                let text = value.as_ref().as_str().unwrap_or_default();
                if names_a_moment(ty, text) {
                    // Which one it is the statement knows when it runs.
                    return Ok(Expr::Cast {
                        operand: Box::new(Expr::Const(value)),
                        ty,
                        typmod,
                        casting: Casting::of(explicit),
                    });
                }
                // What a literal's text means depends on an interval's fields; other modifiers cut or refuse the value.
                let read = if ty == Type::Interval {
                    input(ty, typmod, text, self.settings)?
                } else {
                    input(ty, Typmod::NONE, text, self.settings)?
                };
                let value = cast(read.as_ref(), ty, typmod, explicit, self.settings);
                Ok(Expr::Const(value.map_err(while_running)?))
            }
            Expr::Param(number) => {
                let had = *self.params[usize::from(number)].get_or_insert(ty);
                if had != ty {
                    return Err(self.inconsistent(number, had, ty));
                }
                if typmod.is_none() {
                    return Ok(Expr::Param(number));
                }
                Ok(self.cast_param(number, ty, typmod, explicit))
            }
            // CASE, COALESCE and their like of unknown operands only.
            other => Ok(Expr::Cast {
                operand: Box::new(other),
                ty,
                typmod,
                casting: Casting::of(explicit),
            }),
        }
    }

    /// The expression with a type; text if nothing decides.
    ///
    /// # Errors
    /// As [`Binder::coerce`].
    pub fn settle(&mut self, bound: Bound) -> Result<(Expr, Type, Typmod)> {
        match bound.ty {
            Some(ty) => Ok((bound.expr, ty, bound.typmod)),
            None => Ok((
                self.decide(bound, Type::Text, Typmod::NONE, false)?,
                Type::Text,
                Typmod::NONE,
            )),
        }
    }

    /// What stands where any type does, and decides none.
    pub fn undecided(&mut self, bound: Bound) -> Bound {
        match (&bound.expr, bound.ty) {
            (Expr::Param(number), None) => {
                self.undecided.push((*number, bound.start));
                Bound {
                    ty: Some(Type::Text),
                    ..bound
                }
            }
            _ => bound,
        }
    }

    /// What is known of parameters before something is bound that may be taken back.
    pub fn params_known(&self) -> ParamsKnown {
        ParamsKnown {
            types: self.params.clone(),
            undecided: self.undecided.len(),
            casts: self.param_casts.len(),
        }
    }

    /// Takes back all that was said of parameters since.
    pub fn take_back(&mut self, known: ParamsKnown) {
        self.params = known.types;
        self.undecided.truncate(known.undecided);
        self.param_casts.truncate(known.casts);
    }

    /// Whether a part of a statement may say of which type a parameter is.
    pub fn may_decide(&self, node: &impl ast::Visit) -> bool {
        let mut found = false;
        crate::parse::walk::expressions(node, &mut |expr| {
            let ast::Expr::Value(value) = expr else {
                return;
            };
            if let ast::Value::Placeholder(text) = &value.value {
                let number = text
                    .strip_prefix('$')
                    .and_then(|digits| digits.parse().ok());
                let at = number.and_then(|number: usize| number.checked_sub(1));
                let ty = at.and_then(|at| self.params.get(at).copied().flatten());
                found |= ty.is_none();
            }
        });
        found
    }

    /// The same operand where it is written once and stands twice: a parameter is of the type that was decided meanwhile.
    pub(super) fn again(&self, bound: &Bound) -> Bound {
        let known = match bound.expr {
            Expr::Param(number) => self.params[usize::from(number)],
            _ => None,
        };
        Bound {
            ty: bound.ty.or(known),
            ..bound.clone()
        }
    }

    /// That types are known of all parameters, and were of each when it was used.
    ///
    /// # Errors
    /// `42P08`, `42P18`.
    pub fn decided(&self) -> Result<Vec<Type>> {
        let unknown = |state, number: usize| {
            let text = format!("could not determine data type of parameter ${}", number + 1);
            SqlError::new(state, text)
        };
        for (number, start) in &self.undecided {
            let number = usize::from(*number);
            if self.params[number].is_some() {
                let place = start.and_then(|start| self.place_of(start));
                return Err(unknown(sqlstate::AMBIGUOUS_PARAMETER, number).at(place));
            }
        }
        let types = self.params.iter().enumerate();
        let types = types.map(|(number, ty)| {
            ty.ok_or_else(|| unknown(sqlstate::INDETERMINATE_DATATYPE, number))
        });
        types.collect()
    }

    #[cold]
    fn inconsistent(&self, number: u16, had: Type, ty: Type) -> SqlError {
        let text = format!("inconsistent types deduced for parameter ${}", number + 1);
        let (had, ty) = (self.settings.name_of(had), self.settings.name_of(ty));
        SqlError::new(sqlstate::AMBIGUOUS_PARAMETER, text).with_detail(format!("{had} versus {ty}"))
    }

    /// One type for several expressions (UNION's rule: CASE, COALESCE, VALUES, IN).
    ///
    /// # Errors
    /// `42804`.
    pub fn common_type(&self, what: &str, all: &[Bound]) -> Result<Type> {
        let mut common: Option<Type> = None;
        for (ty, start) in all
            .iter()
            .filter_map(|bound| Some((bound.ty?, bound.start)))
        {
            let had = common.unwrap_or(ty);
            common = common_of(had, ty);
            if common.is_none() {
                let message = format!(
                    "{what} types {} and {} cannot be matched",
                    self.settings.name_of(had),
                    self.settings.name_of(ty)
                );
                let place = start.and_then(|start| self.place_of(start));
                return Err(SqlError::new(sqlstate::DATATYPE_MISMATCH, message).at(place));
            }
        }
        Ok(common.unwrap_or(Type::Text))
    }
}

/// The error of a cast that is done now and that PostgreSQL does when it runs the statement.
#[cold]
fn while_running(error: vellum_row::SqlError) -> SqlError {
    SqlError::from(error).without_place()
}

/// Whether a text may name a date or time by where it lies from now.
fn names_a_moment(ty: Type, text: &str) -> bool {
    let has_moments = matches!(
        ty,
        Type::Date | Type::Time | Type::Timestamp | Type::Timestamptz
    );
    has_moments && {
        let text = text.to_ascii_lowercase();
        let mut words = ["now", "today", "tomorrow", "yesterday"].into_iter();
        words.any(|word| text.contains(word))
    }
}
