//! Functions that can be called by name.
//!
//! [`Builtin::find`] resolves a name and argument types as the binder needs it; [`call`] runs one. What depends on the session is asked
//! of the [`Environment`](super::Environment).

use super::catalog_function::{self, CatalogFunction};
use super::scalar::{self, Scalar};
use super::{Expr, Frame, Out};
use crate::error::{Result, SqlError};
use crate::sqlstate;
use vellum_row::datetime::extract;
use vellum_row::{Type, Value, ValueRef, check_length, compare, functions, output};

/// A function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Builtin {
    Length,
    OctetLength,
    Upper,
    Lower,
    Substring,
    Trim,
    LeftTrim,
    RightTrim,
    Replace,
    Position,
    Ascii,
    Character,
    Repeat,
    Reverse,
    Left,
    Right,
    LeftPad,
    RightPad,
    Concat,
    Abs,
    Sign,
    Round,
    Truncate,
    Ceiling,
    Floor,
    SquareRoot,
    /// EXTRACT, with the field's name in front.
    Extract,
    /// The same as a float.
    DatePart,
    NullIf,
    Greatest,
    Least,
    // Asked of the session.
    Now,
    /// The same, written as the standard does; so are the others of its kind.
    CurrentTimestamp,
    LocalTimestamp,
    LocalTime,
    StatementTimestamp,
    ClockTimestamp,
    CurrentDate,
    CurrentUser,
    CurrentRole,
    User,
    SessionUser,
    CurrentDatabase,
    CurrentCatalog,
    CurrentSchema,
    /// The same without parentheses.
    CurrentSchemaWord,
    CurrentSetting,
    SetConfig,
    Version,
    BackendPid,
    NextValue,
    CurrentValue,
    SetValue,
    Random,
    RandomUuid,
    /// The type that an expression was bound with: its oid.
    TypeOf(u32),
    /// Of catalogs, arrays and patterns.
    Catalog(CatalogFunction),
    /// Of the tables of what is computed of arguments alone.
    Scalar(Scalar),
}

/// Oid of the type `unknown`.
const UNKNOWN: u32 = 705;

/// A function that fits a call: its number, the types that its arguments are cast to, and that of its result.
pub(crate) struct Signature {
    pub function: Builtin,
    pub arguments: Vec<Type>,
    pub result: Type,
}

impl Builtin {
    /// The function of a name for arguments of these types (`None`: unknown); `None` if there is none.
    pub fn find(name: &str, arguments: &[Option<Type>]) -> Option<Signature> {
        use Builtin as B;
        use Type as T;
        let text = T::Text;
        let count = arguments.len();
        let first = arguments.first().copied().flatten();
        let (function, types, result): (B, Vec<Type>, Type) = match (name, count) {
            ("length" | "char_length" | "character_length", 1) => {
                (B::Length, vec![sized(first)], T::Int4)
            }
            ("octet_length", 1) => (B::OctetLength, vec![sized(first)], T::Int4),
            ("upper", 1) => (B::Upper, vec![text], text),
            ("lower", 1) => (B::Lower, vec![text], text),
            ("substr" | "substring", 2) => (B::Substring, vec![text, T::Int4], text),
            ("substr" | "substring", 3) => (B::Substring, vec![text, T::Int4, T::Int4], text),
            ("btrim", 1 | 2) => (B::Trim, vec![text; count], text),
            ("ltrim", 1 | 2) => (B::LeftTrim, vec![text; count], text),
            ("rtrim", 1 | 2) => (B::RightTrim, vec![text; count], text),
            ("replace", 3) => (B::Replace, vec![text; 3], text),
            ("strpos", 2) => (B::Position, vec![text; 2], T::Int4),
            ("ascii", 1) => (B::Ascii, vec![text], T::Int4),
            ("chr", 1) => (B::Character, vec![T::Int4], text),
            ("repeat", 2) => (B::Repeat, vec![text, T::Int4], text),
            ("reverse", 1) => (B::Reverse, vec![text], text),
            ("left", 2) => (B::Left, vec![text, T::Int4], text),
            ("right", 2) => (B::Right, vec![text, T::Int4], text),
            ("lpad", 2) => (B::LeftPad, vec![text, T::Int4], text),
            ("lpad", 3) => (B::LeftPad, vec![text, T::Int4, text], text),
            ("rpad", 2) => (B::RightPad, vec![text, T::Int4], text),
            ("rpad", 3) => (B::RightPad, vec![text, T::Int4, text], text),
            ("concat", _) => (B::Concat, vec![text; count], text),
            ("abs", 1) => {
                let ty = first.unwrap_or(T::Float8);
                (B::Abs, vec![ty], ty)
            }
            ("sign" | "round" | "trunc" | "ceil" | "ceiling" | "floor" | "sqrt", 1) => {
                let function = match name {
                    "sign" => B::Sign,
                    "round" => B::Round,
                    "trunc" => B::Truncate,
                    "floor" => B::Floor,
                    "sqrt" => B::SquareRoot,
                    _ => B::Ceiling,
                };
                // Of numeric and of double precision, which is taken where both would do.
                let ty = match first {
                    Some(T::Numeric) => T::Numeric,
                    _ => T::Float8,
                };
                (function, vec![ty], ty)
            }
            ("round", 2) => (B::Round, vec![T::Numeric, T::Int4], T::Numeric),
            ("trunc", 2) => (B::Truncate, vec![T::Numeric, T::Int4], T::Numeric),
            ("extract" | "date_part", 2) => {
                let ty = match arguments[1]? {
                    // It has no fields but those of its midnight.
                    T::Date if name == "date_part" => T::Timestamp,
                    ty @ (T::Date | T::Time | T::Timestamp | T::Timestamptz | T::Interval) => ty,
                    _ => return None,
                };
                match name {
                    "extract" => (B::Extract, vec![text, ty], T::Numeric),
                    _ => (B::DatePart, vec![text, ty], T::Float8),
                }
            }
            ("now" | "transaction_timestamp", 0) => (B::Now, vec![], T::Timestamptz),
            ("statement_timestamp", 0) => (B::StatementTimestamp, vec![], T::Timestamptz),
            ("clock_timestamp", 0) => (B::ClockTimestamp, vec![], T::Timestamptz),
            ("current_date", 0) => (B::CurrentDate, vec![], T::Date),
            ("current_user", 0) => (B::CurrentUser, vec![], T::Name),
            ("session_user", 0) => (B::SessionUser, vec![], T::Name),
            ("current_database", 0) => (B::CurrentDatabase, vec![], T::Name),
            ("current_schema", 0) => (B::CurrentSchema, vec![], T::Name),
            ("current_setting", 1) => (B::CurrentSetting, vec![text], text),
            ("current_setting", 2) => (B::CurrentSetting, vec![text, T::Bool], text),
            ("set_config", 3) => (B::SetConfig, vec![text, text, T::Bool], text),
            ("version", 0) => (B::Version, vec![], text),
            ("pg_backend_pid", 0) => (B::BackendPid, vec![], T::Int4),
            ("nextval", 1) => (B::NextValue, vec![sequence(first)], T::Int8),
            ("currval", 1) => (B::CurrentValue, vec![sequence(first)], T::Int8),
            ("setval", 2) => (B::SetValue, vec![sequence(first), T::Int8], T::Int8),
            ("setval", 3) => (
                B::SetValue,
                vec![sequence(first), T::Int8, T::Bool],
                T::Int8,
            ),
            ("gen_random_uuid", 0) => (B::RandomUuid, vec![], T::Uuid),
            ("random", 0) => (B::Random, vec![], T::Float8),
            ("pg_typeof", 1) => {
                // What has no type yet is shown as PostgreSQL's pseudo-type.
                let oid = first.map_or(UNKNOWN, Type::oid);
                (B::TypeOf(oid), vec![first.unwrap_or(text)], T::Regtype)
            }
            _ => return scalar::find(name, arguments).ok().flatten(),
        };
        Some(Signature {
            function,
            arguments: types,
            result,
        })
    }

    /// What a word means that is called without parentheses, and its type.
    pub fn of_word(word: &str) -> Option<(Self, Type)> {
        Some(match word {
            "current_timestamp" => (Self::CurrentTimestamp, Type::Timestamptz),
            "localtimestamp" => (Self::LocalTimestamp, Type::Timestamp),
            "localtime" => (Self::LocalTime, Type::Time),
            "current_date" => (Self::CurrentDate, Type::Date),
            "current_user" => (Self::CurrentUser, Type::Name),
            "current_role" => (Self::CurrentRole, Type::Name),
            "user" => (Self::User, Type::Name),
            "session_user" => (Self::SessionUser, Type::Name),
            "current_catalog" => (Self::CurrentCatalog, Type::Name),
            "current_schema" => (Self::CurrentSchemaWord, Type::Name),
            _ => return None,
        })
    }

    /// Its name, by which it is shown.
    pub fn name(self) -> &'static str {
        use Builtin as B;
        match self {
            B::Length => "length",
            B::OctetLength => "octet_length",
            B::Upper => "upper",
            B::Lower => "lower",
            B::Substring => "substring",
            B::Trim => "btrim",
            B::LeftTrim => "ltrim",
            B::RightTrim => "rtrim",
            B::Replace => "replace",
            B::Position => "strpos",
            B::Ascii => "ascii",
            B::Character => "chr",
            B::Repeat => "repeat",
            B::Reverse => "reverse",
            B::Left => "\"left\"",
            B::Right => "\"right\"",
            B::LeftPad => "lpad",
            B::RightPad => "rpad",
            B::Concat => "concat",
            B::Abs => "abs",
            B::Sign => "sign",
            B::Round => "round",
            B::Truncate => "trunc",
            B::Ceiling => "ceil",
            B::Floor => "floor",
            B::SquareRoot => "sqrt",
            B::Extract => "EXTRACT",
            B::DatePart => "date_part",
            B::NullIf => "NULLIF",
            B::Greatest => "GREATEST",
            B::Least => "LEAST",
            B::Now => "now",
            B::CurrentTimestamp => "current_timestamp",
            B::LocalTimestamp => "localtimestamp",
            B::LocalTime => "localtime",
            B::StatementTimestamp => "statement_timestamp",
            B::ClockTimestamp => "clock_timestamp",
            B::CurrentDate => "current_date",
            B::CurrentUser => "current_user",
            B::CurrentRole => "current_role",
            B::User => "user",
            B::SessionUser => "session_user",
            B::CurrentDatabase => "current_database",
            B::CurrentCatalog => "current_catalog",
            B::CurrentSchema | B::CurrentSchemaWord => "\"current_schema\"",
            B::CurrentSetting => "current_setting",
            B::SetConfig => "set_config",
            B::Version => "version",
            B::BackendPid => "pg_backend_pid",
            B::NextValue => "nextval",
            B::CurrentValue => "currval",
            B::SetValue => "setval",
            B::Random => "random",
            B::RandomUuid => "gen_random_uuid",
            B::TypeOf(_) => "pg_typeof",
            B::Catalog(own) => own.name(),
            B::Scalar(own) => own.entry().name,
        }
    }

    /// The word that it is written as, if it is called without parentheses.
    pub fn keyword(self) -> Option<&'static str> {
        match self {
            Self::CurrentTimestamp => Some("CURRENT_TIMESTAMP"),
            Self::LocalTimestamp => Some("LOCALTIMESTAMP"),
            Self::LocalTime => Some("LOCALTIME"),
            Self::CurrentDate => Some("CURRENT_DATE"),
            Self::CurrentUser => Some("CURRENT_USER"),
            Self::CurrentRole => Some("CURRENT_ROLE"),
            Self::User => Some("USER"),
            Self::CurrentCatalog => Some("CURRENT_CATALOG"),
            Self::CurrentSchemaWord => Some("CURRENT_SCHEMA"),
            Self::SessionUser => Some("SESSION_USER"),
            _ => None,
        }
    }

    /// Whether two calls in one statement may differ, or have effects.
    pub fn is_volatile(self) -> bool {
        match self {
            Self::Catalog(own) => return own.is_volatile(),
            Self::Scalar(own) => return own.entry().volatile,
            _ => {}
        }
        matches!(
            self,
            Self::ClockTimestamp
                | Self::NextValue
                | Self::CurrentValue
                | Self::SetValue
                | Self::SetConfig
                | Self::Random
                | Self::RandomUuid
        )
    }

    /// Whether the session is asked for its value ([`Environment::ask`](super::Environment::ask)); otherwise it is computed of its arguments and
    /// settings, in any thread.
    pub fn asks(self) -> bool {
        match self {
            Self::Catalog(own) => own.asks(),
            Self::Now
            | Self::CurrentTimestamp
            | Self::LocalTimestamp
            | Self::LocalTime
            | Self::StatementTimestamp
            | Self::ClockTimestamp
            | Self::CurrentDate
            | Self::CurrentUser
            | Self::CurrentRole
            | Self::User
            | Self::SessionUser
            | Self::CurrentDatabase
            | Self::CurrentCatalog
            | Self::CurrentSchema
            | Self::CurrentSchemaWord
            | Self::CurrentSetting
            | Self::SetConfig
            | Self::Version
            | Self::BackendPid
            | Self::NextValue
            | Self::CurrentValue
            | Self::SetValue
            | Self::Random
            | Self::RandomUuid => true,
            Self::Length
            | Self::OctetLength
            | Self::Upper
            | Self::Lower
            | Self::Substring
            | Self::Trim
            | Self::LeftTrim
            | Self::RightTrim
            | Self::Replace
            | Self::Position
            | Self::Ascii
            | Self::Character
            | Self::Repeat
            | Self::Reverse
            | Self::Left
            | Self::Right
            | Self::LeftPad
            | Self::RightPad
            | Self::Concat
            | Self::Abs
            | Self::Sign
            | Self::Round
            | Self::Truncate
            | Self::Ceiling
            | Self::Floor
            | Self::SquareRoot
            | Self::Extract
            | Self::DatePart
            | Self::NullIf
            | Self::Greatest
            | Self::Least
            | Self::Scalar(_)
            | Self::TypeOf(_) => false,
        }
    }
}

/// Runs a function. All are strict but `concat`, `greatest`, `least`.
pub(super) fn call<'a>(
    function: Builtin,
    arguments: &'a [Expr],
    frame: &Frame<'a>,
) -> Result<Out<'a>> {
    match function {
        Builtin::Greatest | Builtin::Least => {
            let mut best = Out::NULL;
            for argument in arguments {
                let value = argument.eval(frame)?;
                let better = !value.is_null()
                    && (best.is_null() || {
                        let order = compare(value.as_ref(), best.as_ref());
                        if function == Builtin::Greatest {
                            order.is_gt()
                        } else {
                            order.is_lt()
                        }
                    });
                if better {
                    best = value;
                }
            }
            return Ok(best);
        }
        Builtin::NullIf => {
            let (left, right) = (arguments[0].eval(frame)?, arguments[1].eval(frame)?);
            let (a, b) = (left.as_ref(), right.as_ref());
            let equal = !a.is_null() && !b.is_null() && compare(a, b).is_eq();
            return Ok(if equal { Out::NULL } else { left });
        }
        Builtin::Concat => {
            let mut text = String::new();
            for argument in arguments {
                let value = argument.eval(frame)?;
                if !value.is_null() {
                    output(value.as_ref(), frame.env.settings(), &mut text)?;
                }
            }
            return Ok(Out::Own(Value::text(text)));
        }
        Builtin::SetConfig => {
            let mut values = Vec::with_capacity(arguments.len());
            for argument in arguments {
                values.push(argument.eval(frame)?.into_value());
            }
            return frame.env.ask(function, &values).map(Out::Own);
        }
        Builtin::Scalar(own) => return scalar::call(own, arguments, frame),
        Builtin::TypeOf(oid) => return Ok(Out::Own(Value::Oid(oid))),
        Builtin::Catalog(own) if !own.is_strict() => {
            let mut values = Vec::with_capacity(arguments.len());
            for argument in arguments {
                values.push(argument.eval(frame)?.into_value());
            }
            return catalog_function::call(own, &values, frame.env);
        }
        _ => {}
    }
    let mut values = Vec::with_capacity(arguments.len());
    for argument in arguments {
        let value = argument.eval(frame)?;
        if value.is_null() {
            return Ok(Out::NULL);
        }
        values.push(value.into_value());
    }
    if let Builtin::Catalog(own) = function {
        return catalog_function::call(own, &values, frame.env);
    }
    Ok(Out::Own(strict(function, &values, frame)?))
}

fn strict(function: Builtin, values: &[Value], frame: &Frame<'_>) -> Result<Value> {
    let text = |at: usize| values.get(at).and_then(|value| value.as_ref().as_str());
    let number = |at: usize| match values.get(at) {
        Some(Value::Int4(number)) => Some(*number),
        _ => None,
    };
    let subject = text(0).unwrap_or("");
    let first = values.first().map_or(ValueRef::Null, Value::as_ref);
    let blanks = |at: usize| text(at).unwrap_or(" ");
    Ok(match function {
        Builtin::Length => Value::Int4(functions::length(first)?),
        Builtin::OctetLength => Value::Int4(functions::octet_length(first)?),
        Builtin::Upper => Value::text(functions::upper(subject)),
        Builtin::Lower => Value::text(functions::lower(subject)),
        Builtin::Substring => Value::text(functions::substring(
            subject,
            number(1).unwrap_or(1),
            number(2),
        )?),
        Builtin::Trim => Value::text(functions::trim(subject, blanks(1))),
        Builtin::LeftTrim => Value::text(functions::trim_left(subject, blanks(1))),
        Builtin::RightTrim => Value::text(functions::trim_right(subject, blanks(1))),
        Builtin::Replace => {
            let (from, to) = (text(1).unwrap_or(""), text(2).unwrap_or(""));
            Value::text(functions::replace(subject, from, to)?)
        }
        Builtin::Position => Value::Int4(functions::position(subject, text(1).unwrap_or(""))),
        Builtin::Ascii => Value::Int4(subject.chars().next().map_or(0, |char| char as i32)),
        Builtin::Character => {
            let number = number(0).unwrap_or(0);
            let told = |text: String| SqlError::new(sqlstate::PROGRAM_LIMIT_EXCEEDED, text);
            if number == 0 {
                return Err(told("null character not permitted".to_owned()));
            }
            if number < 0 {
                let text = "character number must be positive";
                return Err(SqlError::new(sqlstate::INVALID_PARAMETER_VALUE, text));
            }
            let found = u32::try_from(number).ok().and_then(char::from_u32);
            let found = found.ok_or_else(|| {
                told(format!(
                    "requested character too large for encoding: {number}"
                ))
            })?;
            Value::text(found.to_string())
        }
        Builtin::Repeat => {
            let times = usize::try_from(number(1).unwrap_or(0)).unwrap_or(0);
            check_length(subject.len().saturating_mul(times))?;
            Value::text(subject.repeat(times))
        }
        Builtin::Reverse => Value::text(subject.chars().rev().collect::<String>()),
        Builtin::Left => Value::text(functions::left(subject, number(1).unwrap_or(0))),
        Builtin::Right => Value::text(functions::right(subject, number(1).unwrap_or(0))),
        Builtin::LeftPad | Builtin::RightPad => {
            let width = usize::try_from(number(1).unwrap_or(0)).unwrap_or(0);
            let fill = blanks(2);
            let length = subject.chars().count();
            // As many bytes as the longest characters would take.
            let made = if fill.is_empty() {
                width.min(length)
            } else {
                width
            };
            check_length(made.saturating_mul(4))?;
            if length >= width {
                Value::text(subject.chars().take(width).collect::<String>())
            } else {
                let pad: String = fill.chars().cycle().take(width - length).collect();
                let pad = if fill.is_empty() { "" } else { &pad };
                Value::text(if function == Builtin::LeftPad {
                    format!("{pad}{subject}")
                } else {
                    format!("{subject}{pad}")
                })
            }
        }
        Builtin::Abs => functions::abs(first)?,
        Builtin::Sign => functions::sign(first)?,
        Builtin::Round | Builtin::Truncate if values.len() == 2 => {
            let (ValueRef::Numeric(value), digits) = (first, number(1).unwrap_or(0)) else {
                return Err(SqlError::internal("digits of another type"));
            };
            Value::Numeric(if function == Builtin::Round {
                value.to_numeric().round(digits)?
            } else {
                value.to_numeric().truncate(digits)?
            })
        }
        Builtin::Round => functions::round(first)?,
        Builtin::Truncate => functions::truncate(first)?,
        Builtin::Ceiling => functions::ceiling(first)?,
        Builtin::Floor => functions::floor(first)?,
        Builtin::SquareRoot => functions::square_root(first)?,
        Builtin::Extract | Builtin::DatePart => {
            let value = values.get(1).map_or(ValueRef::Null, Value::as_ref);
            match extract(subject, value, frame.env.settings())? {
                None => Value::Null,
                Some(field) if function == Builtin::Extract => Value::Numeric(field),
                Some(field) => Value::Float8(field.to_f64()),
            }
        }
        _ => frame.env.ask(function, values)?,
    })
}

/// What messages call a function: those that are reached by syntax alone have a schema there.
pub(crate) fn as_called(name: &str) -> &str {
    match name {
        "extract" => "pg_catalog.extract",
        name => name,
    }
}

/// What `length` takes: bytes are counted as such, everything else as text.
fn sized(ty: Option<Type>) -> Type {
    match ty {
        Some(ty @ (Type::Bytea | Type::Char)) => ty,
        _ => Type::Text,
    }
}

/// A sequence is named by text, or is an oid.
fn sequence(ty: Option<Type>) -> Type {
    ty.filter(|ty| ty.is_oid()).unwrap_or(Type::Text)
}
