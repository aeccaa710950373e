//! Names, and names of types.

use crate::error::{Result, SqlError};
use crate::sqlstate;
use sqlparser::ast::{self, CharacterLength, DataType, ExactNumberInfo, TimezoneInfo};
use vellum_row::{IntervalFields, Type, Typmod};

/// Longest name, in bytes.
pub(crate) const NAME_BYTES: usize = 63;

/// An identifier as PostgreSQL reads it: lower case unless quoted, cut to 63 bytes.
pub(crate) fn folded(ident: &ast::Ident) -> String {
    let mut name = if ident.quote_style.is_some() {
        ident.value.clone()
    } else {
        ident.value.to_lowercase()
    };
    let kept = cut(&name).len();
    name.truncate(kept);
    name
}

/// What is kept of a name.
pub(crate) fn cut(name: &str) -> &str {
    &name[..name.floor_char_boundary(NAME_BYTES)]
}

/// Schema (if it is named) and name.
///
/// # Errors
/// `42601` for more parts than that, but for this database's name in front.
pub(crate) fn object_name(name: &ast::ObjectName) -> Result<(Option<String>, String)> {
    let part = |part: &ast::ObjectNamePart| match part {
        ast::ObjectNamePart::Identifier(ident) => Ok(folded(ident)),
        ast::ObjectNamePart::Function(_) => Err(SqlError::syntax("improper qualified name")),
    };
    match name.0.as_slice() {
        [name] => Ok((None, part(name)?)),
        [schema, name] => Ok((Some(part(schema)?), part(name)?)),
        [database, schema, name] if part(database)? == crate::database::DATABASE => {
            Ok((Some(part(schema)?), part(name)?))
        }
        _ => Err(SqlError::unsupported(format!(
            "cross-database references are not implemented: {}",
            shown(name)
        ))),
    }
}

/// A name as it was written, folded.
pub(super) fn shown(name: &ast::ObjectName) -> String {
    let parts = name.0.iter().filter_map(|part| match part {
        ast::ObjectNamePart::Identifier(ident) => Some(folded(ident)),
        ast::ObjectNamePart::Function(_) => None,
    });
    parts.collect::<Vec<_>>().join(".")
}

/// The type that a name of a type stands for.
///
/// # Errors
/// `42704` for unknown ones, `22023` for modifiers that cannot be.
pub(crate) fn type_of(data_type: &DataType) -> Result<(Type, Typmod)> {
    let plain = |ty| Ok((ty, Typmod::NONE));
    match data_type {
        DataType::Boolean | DataType::Bool => plain(Type::Bool),
        DataType::SmallInt(None) | DataType::Int2(None) => plain(Type::Int2),
        DataType::Int(None) | DataType::Integer(None) | DataType::Int4(None) => plain(Type::Int4),
        DataType::BigInt(None) | DataType::Int8(None) => plain(Type::Int8),
        DataType::Real | DataType::Float4 => plain(Type::Float4),
        DataType::DoublePrecision | DataType::Float8 => plain(Type::Float8),
        DataType::Double(ExactNumberInfo::None) => plain(Type::Float8),
        DataType::Float(ExactNumberInfo::None) => plain(Type::Float8),
        DataType::Float(ExactNumberInfo::Precision(bits)) => match bits {
            1..=24 => plain(Type::Float4),
            25..=53 => plain(Type::Float8),
            0 => Err(invalid("precision for type float must be at least 1 bit")),
            _ => Err(invalid(
                "precision for type float must be less than 54 bits",
            )),
        },
        DataType::Numeric(info) | DataType::Decimal(info) | DataType::Dec(info) => {
            let typmod = match info {
                ExactNumberInfo::None => Typmod::NONE,
                ExactNumberInfo::Precision(precision) => Typmod::of_numeric(count(*precision), 0)?,
                ExactNumberInfo::PrecisionAndScale(precision, scale) => {
                    Typmod::of_numeric(count(*precision), *scale)?
                }
            };
            Ok((Type::Numeric, typmod))
        }
        DataType::Text => plain(Type::Text),
        DataType::Varchar(length)
        | DataType::CharacterVarying(length)
        | DataType::CharVarying(length) => Ok((Type::Varchar, characters(Type::Varchar, length)?)),
        DataType::Char(length) | DataType::Character(length) => {
            let typmod = match length {
                None => Typmod::of_length(Type::Char, 1)?,
                length => characters(Type::Char, length)?,
            };
            Ok((Type::Char, typmod))
        }
        DataType::Bytea => plain(Type::Bytea),
        DataType::Date => plain(Type::Date),
        DataType::Time(digits, zone) => match zone {
            TimezoneInfo::None | TimezoneInfo::WithoutTimeZone => fraction(Type::Time, *digits),
            _ => Err(SqlError::unsupported("type time with time zone")),
        },
        DataType::Timestamp(digits, zone) => match zone {
            TimezoneInfo::None | TimezoneInfo::WithoutTimeZone => {
                fraction(Type::Timestamp, *digits)
            }
            _ => fraction(Type::Timestamptz, *digits),
        },
        DataType::Interval { fields, precision } => {
            let fields = fields.as_ref().map(interval_fields);
            let typmod = Typmod::of_interval(fields, precision.map(count))?;
            Ok((Type::Interval, typmod))
        }
        DataType::Uuid => plain(Type::Uuid),
        DataType::JSON => plain(Type::Json),
        DataType::JSONB => plain(Type::Jsonb),
        DataType::Regclass => plain(Type::Regclass),
        DataType::Array(
            ast::ArrayElemTypeDef::SquareBracket(inner, _)
            | ast::ArrayElemTypeDef::AngleBracket(inner)
            | ast::ArrayElemTypeDef::Parenthesis(inner),
        ) => {
            let (element, typmod) = type_of(inner)?;
            Ok((element.array(), typmod))
        }
        DataType::Custom(name, modifiers) if modifiers.is_empty() => custom(name),
        other => Err(unknown(&other.to_string())),
    }
}

/// Names that the parser does not know as types.
fn custom(name: &ast::ObjectName) -> Result<(Type, Typmod)> {
    let (schema, base) = object_name(name)?;
    if schema.is_some_and(|schema| schema != "pg_catalog") {
        return Err(unknown(&shown(name)));
    }
    Type::from_name(&base)
        .map(|ty| (ty, Typmod::NONE))
        .ok_or_else(|| unknown(&shown(name)))
}

#[cold]
fn unknown(name: &str) -> SqlError {
    let message = format!("type \"{}\" does not exist", name.to_lowercase());
    SqlError::new(sqlstate::UNDEFINED_OBJECT, message)
}

#[cold]
fn invalid(message: &'static str) -> SqlError {
    SqlError::new(sqlstate::INVALID_PARAMETER_VALUE, message)
}

fn count(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn characters(ty: Type, length: &Option<CharacterLength>) -> Result<Typmod> {
    match length {
        None => Ok(Typmod::NONE),
        Some(CharacterLength::IntegerLength { length, .. }) => {
            Ok(Typmod::of_length(ty, count(*length))?)
        }
        Some(CharacterLength::Max) => Err(SqlError::syntax("syntax error at or near \"max\"")),
    }
}

fn interval_fields(fields: &ast::IntervalFields) -> IntervalFields {
    use ast::IntervalFields as F;
    match fields {
        F::Year => IntervalFields::YEAR,
        F::Month => IntervalFields::MONTH,
        F::Day => IntervalFields::DAY,
        F::Hour => IntervalFields::HOUR,
        F::Minute => IntervalFields::MINUTE,
        F::Second => IntervalFields::SECOND,
        F::YearToMonth => IntervalFields::YEAR_TO_MONTH,
        F::DayToHour => IntervalFields::DAY_TO_HOUR,
        F::DayToMinute => IntervalFields::DAY_TO_MINUTE,
        F::DayToSecond => IntervalFields::DAY_TO_SECOND,
        F::HourToMinute => IntervalFields::HOUR_TO_MINUTE,
        F::HourToSecond => IntervalFields::HOUR_TO_SECOND,
        F::MinuteToSecond => IntervalFields::MINUTE_TO_SECOND,
    }
}

/// The modifier of `INTERVAL '…' DAY TO SECOND(3)` and of `INTERVAL(3) '…'`; none for fields that are no such modifier.
///
/// # Errors
/// `22023` for digits that cannot be.
pub(super) fn interval_modifier(interval: &ast::Interval) -> Result<Typmod> {
    use ast::DateTimeField as F;
    let digits = match interval.leading_field {
        Some(F::Second | F::Seconds) => interval.leading_precision,
        _ => interval.fractional_seconds_precision,
    };
    let fields = match (&interval.leading_field, &interval.last_field) {
        (None, None) if digits.is_none() => return Ok(Typmod::NONE),
        (None, None) => None,
        (Some(first), None) => Some(match first {
            F::Year | F::Years => IntervalFields::YEAR,
            F::Month | F::Months => IntervalFields::MONTH,
            F::Day | F::Days => IntervalFields::DAY,
            F::Hour | F::Hours => IntervalFields::HOUR,
            F::Minute | F::Minutes => IntervalFields::MINUTE,
            F::Second | F::Seconds => IntervalFields::SECOND,
            _ => return Ok(Typmod::NONE),
        }),
        (Some(first), Some(last)) => Some(match (first, last) {
            (F::Year, F::Month) => IntervalFields::YEAR_TO_MONTH,
            (F::Day, F::Hour) => IntervalFields::DAY_TO_HOUR,
            (F::Day, F::Minute) => IntervalFields::DAY_TO_MINUTE,
            (F::Day, F::Second) => IntervalFields::DAY_TO_SECOND,
            (F::Hour, F::Minute) => IntervalFields::HOUR_TO_MINUTE,
            (F::Hour, F::Second) => IntervalFields::HOUR_TO_SECOND,
            (F::Minute, F::Second) => IntervalFields::MINUTE_TO_SECOND,
            _ => {
                return Err(SqlError::syntax(format!(
                    "syntax error at or near \"{last}\""
                )));
            }
        }),
        (None, Some(_)) => return Ok(Typmod::NONE),
    };
    Ok(Typmod::of_interval(fields, digits.map(count))?)
}

fn fraction(ty: Type, digits: Option<u64>) -> Result<(Type, Typmod)> {
    let typmod = match digits {
        Some(digits) => Typmod::of_fraction(ty, count(digits))?,
        None => Typmod::NONE,
    };
    Ok((ty, typmod))
}
