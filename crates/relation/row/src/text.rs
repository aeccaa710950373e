//! Values of every type read from and written to text.

use crate::array;
use crate::datetime::{Date, Interval, Time, Timestamp};
use crate::error::{Result, SqlError, SqlState};
use crate::json::{self, Jsonb};
use crate::network;
use crate::numeric::Numeric;
use crate::settings::Settings;
use crate::snapshot::Snapshot;
use crate::types::{Type, Typmod};
use crate::value::{Value, ValueRef, check_length};
use crate::{bytes, float, integer, strings};

/// Reads a value of a type from text, as a literal, a parameter in text format or a cast from text is
/// read. Bytes that are not UTF-8 never come this far ([`text_of_bytes`]).
///
/// # Errors
/// Those of PostgreSQL: 22P02 or 22007 for text that is not of the type, 22003, 22008 and others for
/// values out of range, 22001 for text too long for its modifier.
pub fn input(ty: Type, typmod: Typmod, text: &str, settings: &Settings) -> Result<Value> {
    Ok(match ty {
        Type::Bool => Value::Bool(parse_bool(text)?),
        Type::Int2 => Value::Int2(integer::parse(text, "smallint")?),
        Type::Int4 => Value::Int4(integer::parse(text, "integer")?),
        Type::Int8 => Value::Int8(integer::parse(text, "bigint")?),
        // The names of what these are oids of are the catalog's to know.
        Type::Oid
        | Type::Regclass
        | Type::Regtype
        | Type::Regproc
        | Type::Regprocedure
        | Type::Regnamespace
        | Type::Regrole
        | Type::Regcollation => Value::Oid(integer::parse_oid(text)?),
        Type::Xid => Value::Oid(integer::parse_xid(text)),
        Type::Xid8 => Value::Int8(integer::parse_unsigned(text, "xid8")?),
        Type::Snapshot | Type::TxidSnapshot => Value::text(Snapshot::parse(text)?.to_string()),
        Type::Float4 => Value::Float4(float::parse(text)?),
        Type::Float8 => Value::Float8(float::parse(text)?),
        Type::Numeric => Value::Numeric(Numeric::parse(text)?.coerce(typmod)?),
        Type::Text | Type::NodeTree | Type::AclItem => Value::Text(text.into()),
        Type::Record => return Err(no_records()),
        // Whatever it is.
        Type::Void => Value::text(""),
        Type::SingleChar => Value::Text(strings::to_single_char(text).into()),
        Type::Int2Vector => Value::Array(array::parse_vector(Type::Int2, text, settings)?),
        Type::OidVector => Value::Array(array::parse_vector(Type::Oid, text, settings)?),
        Type::Enum(id) => Value::Enum(crate::user::read(id, text, settings)?),
        Type::Array(element) => Value::Array(array::parse(element.ty(), typmod, text, settings)?),
        Type::Varchar => Value::Text(strings::to_varchar(text, typmod, false)?.into()),
        Type::Char => Value::Char(strings::to_char(text, typmod, false)?),
        Type::Name => Value::Text(strings::to_name(text).into()),
        Type::Bytea => Value::Bytea(bytes::parse_bytea(text)?),
        Type::Date => Value::Date(Date::parse(text, settings)?),
        Type::Time => Value::Time(Time::parse(text, typmod, settings)?),
        Type::Timestamp => Value::Timestamp(Timestamp::parse(text, typmod, settings)?),
        Type::Timestamptz => {
            Value::Timestamptz(Timestamp::parse_with_zone(text, typmod, settings)?)
        }
        Type::Interval => Value::Interval(Interval::parse(text, typmod, settings)?),
        Type::Uuid => Value::Uuid(bytes::parse_uuid(text)?),
        Type::Inet => Value::Inet(network::parse_inet(text)?),
        Type::Cidr => Value::Cidr(network::parse_cidr(text)?),
        Type::Json => {
            json::check(text)?;
            Value::Json(text.into())
        }
        Type::Jsonb => Value::Jsonb(Jsonb::parse(text)?),
    })
}

/// Appends a value's text; nothing for null, which has none.
///
/// # Errors
/// 54000 if `out` gets longer than a value may be; a part of the text is in it then.
pub fn output(value: ValueRef<'_>, settings: &Settings, out: &mut String) -> Result<()> {
    show(value, settings, out);
    check_length(out.len())
}

/// The same for messages: nothing more is written once `out` is longer than a value may be.
pub fn show(value: ValueRef<'_>, settings: &Settings, out: &mut String) {
    match value {
        ValueRef::Null => {}
        ValueRef::Bool(value) => out.push(if value { 't' } else { 'f' }),
        ValueRef::Int2(value) => integer::write_i64(i64::from(value), out),
        ValueRef::Int4(value) => integer::write_i64(i64::from(value), out),
        ValueRef::Int8(value) => integer::write_i64(value, out),
        ValueRef::Oid(value) => integer::write_u64(u64::from(value), out),
        ValueRef::Float4(value) => float::write(value, settings.extra_float_digits, out),
        ValueRef::Float8(value) => float::write(value, settings.extra_float_digits, out),
        ValueRef::Numeric(value) => value.write(out),
        ValueRef::Text(text) | ValueRef::Char(text) | ValueRef::Json(text) => out.push_str(text),
        ValueRef::Bytea(value) => bytes::write_bytea(value, settings.bytea_output, out),
        ValueRef::Date(value) => value.write(settings, out),
        ValueRef::Time(value) => value.write(out),
        ValueRef::Timestamp(value) => value.write(settings, out),
        ValueRef::Timestamptz(value) => value.write_with_zone(settings, out),
        ValueRef::Interval(value) => value.write(settings.interval_style, out),
        ValueRef::Uuid(value) => bytes::write_uuid(value, out),
        ValueRef::Inet(value) => network::write_inet(value, out),
        ValueRef::Cidr(value) => network::write_whole(value, out),
        ValueRef::Jsonb(value) => value.write_part(out),
        ValueRef::Enum(value) => crate::user::write(value, settings, out),
        ValueRef::Array(value) => array::write(value, settings, out),
    }
}

/// Bytes from a client as text.
///
/// # Errors
/// 22021 if they are not UTF-8 or hold a zero byte, which text cannot.
pub fn text_of_bytes(bytes: &[u8]) -> Result<&str> {
    let state = SqlState::CHARACTER_NOT_IN_REPERTOIRE;
    let refuse = |bad: &[u8]| {
        let hex: Vec<String> = bad.iter().map(|byte| format!("0x{byte:02x}")).collect();
        let hex = hex.join(" ");
        let message = format!("invalid byte sequence for encoding \"UTF8\": {hex}");
        Err(SqlError::new(state, message))
    };
    let zero = bytes.iter().position(|byte| *byte == 0);
    match str::from_utf8(bytes) {
        Ok(text) if zero.is_none() => Ok(text),
        Err(error) if zero.is_none_or(|zero| error.valid_up_to() < zero) => {
            let rest = &bytes[error.valid_up_to()..];
            // As many bytes as the first one announces.
            let announced = match rest[0] {
                0xc0..=0xdf => 2,
                0xe0..=0xef => 3,
                0xf0..=0xf7 => 4,
                _ => 1,
            };
            refuse(&rest[..announced.min(rest.len())])
        }
        _ => refuse(&[0]),
    }
}

/// `true`, `yes`, `on`, `1`, and their beginnings, if these are of one of them only.
/// What is in one of them is not said in it.
#[cold]
pub(crate) fn no_records() -> SqlError {
    let text = "input of anonymous composite types is not implemented";
    SqlError::new(SqlState::of("0A000"), text)
}

fn parse_bool(text: &str) -> Result<bool> {
    let body = crate::numeric::text::trim_blanks(text).to_ascii_lowercase();
    let begins = |word: &str, least: usize| body.len() >= least && word.starts_with(&*body);
    if begins("true", 1) || begins("yes", 1) || body == "on" || body == "1" {
        return Ok(true);
    }
    if begins("false", 1) || begins("no", 1) || begins("off", 2) || body == "0" {
        return Ok(false);
    }
    Err(SqlError::invalid_text("boolean", text))
}
