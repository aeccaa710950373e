//! Names, and names of types.

use crate::catalog::{Catalog, Oid};
use crate::error::{Result, SqlError};
use crate::sqlstate;
use sqlparser::ast::{self, CharacterLength, DataType, ExactNumberInfo, TimezoneInfo};
use vellum_row::{IntervalFields, KEPT, Type, Typmod};

/// Longest name, in bytes.
pub(crate) const NAME_BYTES: usize = 63;

/// An identifier as PostgreSQL reads it: lower case unless quoted, of ASCII letters alone, cut to 63 bytes.
pub(crate) fn folded(ident: &ast::Ident) -> String {
    folded_word(&ident.value, ident.quote_style.is_some())
}

/// The same of a word that is no part of a statement yet.
pub(crate) fn folded_word(word: &str, quoted: bool) -> String {
    let mut name = match quoted {
        true => word.to_owned(),
        false => word.to_ascii_lowercase(),
    };
    let kept = cut(&name).len();
    name.truncate(kept);
    name
}

/// A name as earlier builds kept it, which made letters beyond ASCII small as well, if that is another: what they wrote into definitions goes on meaning
/// what it meant.
pub(crate) fn folded_before(name: &str) -> Option<String> {
    if name.is_ascii() {
        return None;
    }
    let folded = name.to_lowercase();
    (folded != name).then_some(folded)
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

/// Where types are looked up that users have made.
#[derive(Clone, Copy)]
pub(crate) struct TypeNames<'c> {
    pub catalog: &'c Catalog,
    pub search_path: &'c [Oid],
}

/// What a name of a type stands for that users have made.
pub(crate) enum NamedType {
    /// One that has values of its own, or that of its arrays.
    Own(Type),
    Domain(Oid),
}

impl NamedType {
    /// Its oid.
    pub fn oid(&self) -> Oid {
        match self {
            Self::Own(ty) => ty.oid(),
            Self::Domain(oid) => *oid,
        }
    }
}

/// How the text of a definition names a type that a user has made, by its oid.
pub(crate) fn kept_name(oid: Oid) -> ast::ObjectName {
    let own = ast::Ident::with_quote('"', format!("{KEPT}{oid}"));
    ast::ObjectName::from(vec![ast::Ident::new("pg_catalog"), own])
}

/// The oid in such a name.
pub(crate) fn kept_oid(name: &str) -> Option<Oid> {
    name.strip_prefix(KEPT)?.parse().ok()
}

impl TypeNames<'_> {
    /// What a name stands for, in a schema or along the search path. A name with an underscore in front may stand for the type of arrays.
    ///
    /// # Errors
    /// `3F000` for a schema that is not there.
    pub fn find(&self, schema: Option<&str>, name: &str) -> Result<Option<NamedType>> {
        let in_schema = |namespace: Oid| {
            let own = |name: &str| {
                let relation = self.catalog.type_named(namespace, name)?;
                Some(match relation.as_type() {
                    Some(ty) => NamedType::Own(ty),
                    None => NamedType::Domain(relation.oid),
                })
            };
            own(name).or_else(|| match own(name.strip_prefix('_')?)? {
                NamedType::Own(ty) => Some(NamedType::Own(ty.array())),
                NamedType::Domain(_) => None,
            })
        };
        if let (Some("pg_catalog"), Some(oid)) = (schema, kept_oid(name)) {
            if self.catalog.domain(oid).is_some() {
                return Ok(Some(NamedType::Domain(oid)));
            }
            let is_there = |ty: &Type| {
                let id = ty.enum_id();
                id.is_some_and(|id| self.catalog.may_have_type(id))
            };
            let found = Type::from_oid(oid).filter(is_there);
            return Ok(found.map(NamedType::Own));
        }
        let Some(schema) = schema else {
            return Ok(self.search_path.iter().copied().find_map(in_schema));
        };
        match self.catalog.schema_named(schema, self.search_path) {
            Some(namespace) => Ok(in_schema(namespace)),
            None => {
                let message = format!("schema \"{schema}\" does not exist");
                Err(SqlError::new(sqlstate::INVALID_SCHEMA_NAME, message))
            }
        }
    }

    /// The same of a name as it is written, which is none that the program has.
    ///
    /// # Errors
    /// `3F000`; `42601` for what is no name.
    pub fn made(&self, name: &ast::ObjectName) -> Result<Option<NamedType>> {
        let (schema, base) = object_name(name)?;
        let built_in = match schema.as_deref() {
            None | Some("pg_catalog") => Type::from_name(&base),
            Some(_) => None,
        };
        match built_in {
            None => self.find(schema.as_deref(), &base),
            Some(_) => Ok(None),
        }
    }

    /// The domain of a name, if it is one's.
    ///
    /// # Errors
    /// As [`TypeNames::made`].
    pub fn domain(&self, name: &ast::ObjectName) -> Result<Option<Oid>> {
        Ok(match self.made(name)? {
            Some(NamedType::Domain(oid)) => Some(oid),
            _ => None,
        })
    }

    /// Names that the parser does not know as types.
    fn custom(&self, name: &ast::ObjectName) -> Result<(Type, Typmod)> {
        let (schema, base) = object_name(name)?;
        let built_in = match schema.as_deref() {
            None | Some("pg_catalog") => Type::from_name(&base),
            Some(_) => None,
        };
        let found = match built_in {
            None => self.find(schema.as_deref(), &base)?,
            found => found.map(NamedType::Own),
        };
        match found {
            Some(NamedType::Own(ty)) => Ok((ty, Typmod::NONE)),
            Some(NamedType::Domain(oid)) => {
                let found = self.catalog.domain(oid).ok_or_else(|| no_type(name))?;
                Ok((found.1.ty, found.1.typmod))
            }
            None => Err(no_type(name)),
        }
    }
}

/// The type that a name of a type stands for.
///
/// # Errors
/// `42704` for unknown ones, `22023` for modifiers that cannot be.
pub(super) fn type_of(data_type: &DataType, names: TypeNames<'_>) -> Result<(Type, Typmod)> {
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
            if let DataType::Custom(name, _) = &**inner
                && names.domain(name)?.is_some()
            {
                return Err(SqlError::unsupported("arrays of domains"));
            }
            let (element, typmod) = type_of(inner, names)?;
            Ok((element.array(), typmod))
        }
        DataType::Custom(name, modifiers) if modifiers.is_empty() => names.custom(name),
        other => Err(unknown(&other.to_string().to_lowercase())),
    }
}

/// The name that a cast to a type gives a column: of an array, that of its elements' type.
pub(crate) fn type_label(data_type: &DataType) -> String {
    let none = TypeNames {
        catalog: &Catalog::default(),
        search_path: &[],
    };
    match (type_of(data_type, none), data_type) {
        (Ok((ty, _)), _) => ty.element().unwrap_or(ty).name().to_owned(),
        (
            Err(_),
            DataType::Array(
                ast::ArrayElemTypeDef::SquareBracket(inner, _)
                | ast::ArrayElemTypeDef::Parenthesis(inner),
            ),
        ) => type_label(inner),
        (Err(_), DataType::Custom(name, _)) => {
            object_name(name).map_or_else(|_| shown(name), |(_, name)| name)
        }
        _ => "?column?".to_owned(),
    }
}

/// `42704`.
#[cold]
pub(crate) fn no_type(name: &ast::ObjectName) -> SqlError {
    unknown(&shown(name))
}

#[cold]
fn unknown(name: &str) -> SqlError {
    let message = format!("type \"{name}\" does not exist");
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
