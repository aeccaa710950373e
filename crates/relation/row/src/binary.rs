//! Values in the protocol's binary format (big-endian), but for enums and snapshots: those are positions and text here (`user` has what clients see).

use crate::array::Array;
use crate::datetime::{Date, Interval, MICROS_PER_DAY, Time, Timestamp};
use crate::error::{Result, SqlError, SqlState};
use crate::integer;
use crate::json::{self, Jsonb};
use crate::network;
use crate::numeric::Numeric;
use crate::snapshot::Snapshot;
use crate::strings;
use crate::text::text_of_bytes;
use crate::types::{Type, Typmod};
use crate::user::EnumValue;
use crate::value::{Value, ValueRef, check_length};

/// 08P01: the bytes end too early.
#[cold]
pub(crate) fn short() -> SqlError {
    SqlError::new(SqlState::of("08P01"), "insufficient data left in message")
}

/// 22P03: there are bytes left.
#[cold]
pub(crate) fn long(_type_name: &str) -> SqlError {
    SqlError::new(SqlState::INVALID_BINARY, "incorrect binary data format")
}

pub(crate) fn exactly<const N: usize>(bytes: &[u8]) -> Result<[u8; N]> {
    match bytes.first_chunk::<N>() {
        None => Err(short()),
        Some(_) if bytes.len() > N => Err(long("")),
        Some(chunk) => Ok(*chunk),
    }
}

/// Reads a value of a type from the binary format of a parameter or of COPY.
///
/// # Errors
/// Those of PostgreSQL: 08P01 and 22P03 for a wrong length or wrong bytes, 22021 for text that is not
/// UTF-8, 22003, 22008 and 22001 for what is out of range or too long.
pub fn receive(ty: Type, typmod: Typmod, bytes: &[u8]) -> Result<Value> {
    Ok(match ty {
        Type::Bool => Value::Bool(exactly::<1>(bytes)? != [0]),
        Type::Int2 => Value::Int2(i16::from_be_bytes(exactly(bytes)?)),
        Type::Int4 => Value::Int4(i32::from_be_bytes(exactly(bytes)?)),
        Type::Int8 => Value::Int8(i64::from_be_bytes(exactly(bytes)?)),
        Type::Oid
        | Type::Xid
        | Type::Regclass
        | Type::Regtype
        | Type::Regproc
        | Type::Regprocedure
        | Type::Regnamespace
        | Type::Regrole
        | Type::Regcollation => Value::Oid(u32::from_be_bytes(exactly(bytes)?)),
        Type::Xid8 => {
            let number = u64::from_be_bytes(exactly(bytes)?);
            Value::Int8(integer::signed(number, "xid8")?)
        }
        // Held as text; its binary form is the client's (`user`).
        Type::Snapshot | Type::TxidSnapshot => {
            Value::text(Snapshot::parse(text_of_bytes(bytes)?)?.to_string())
        }
        Type::Float4 => Value::Float4(f32::from_be_bytes(exactly(bytes)?)),
        Type::Float8 => Value::Float8(f64::from_be_bytes(exactly(bytes)?)),
        Type::Numeric => Value::Numeric(Numeric::receive(bytes)?.coerce(typmod)?),
        Type::Text | Type::NodeTree | Type::AclItem => Value::Text(text_of_bytes(bytes)?.into()),
        Type::Record => return Err(crate::text::no_records()),
        Type::Void => Value::text(""),
        Type::SingleChar if bytes == [0] => Value::text(""),
        Type::SingleChar => Value::Text(strings::to_single_char(text_of_bytes(bytes)?).into()),
        Type::Int2Vector | Type::OidVector | Type::Array(_) => {
            Value::Array(Array::receive(ty, bytes)?)
        }
        Type::Varchar => {
            let text = strings::to_varchar(text_of_bytes(bytes)?, typmod, false)?;
            Value::Text(text.into())
        }
        Type::Char => Value::Char(strings::to_char(text_of_bytes(bytes)?, typmod, false)?),
        Type::Name => {
            let text = text_of_bytes(bytes)?;
            if text.len() > strings::NAME_BYTES_MAX {
                let error = SqlError::new(SqlState::of("42622"), "identifier too long");
                return Err(error.with_detail("Identifier must be less than 64 characters."));
            }
            Value::Text(text.into())
        }
        Type::Bytea => Value::Bytea(bytes.into()),
        Type::Date => Value::Date(receive_date(bytes)?),
        Type::Time => {
            let micros = i64::from_be_bytes(exactly(bytes)?);
            if !(0..=MICROS_PER_DAY).contains(&micros) {
                return Err(SqlError::new(
                    SqlState::DATETIME_OVERFLOW,
                    "time out of range",
                ));
            }
            Value::Time(Time(micros).coerce(typmod))
        }
        Type::Timestamp => Value::Timestamp(receive_timestamp(bytes, typmod)?),
        Type::Timestamptz => Value::Timestamptz(receive_timestamp(bytes, typmod)?),
        Type::Interval => {
            let bytes: [u8; 16] = exactly(bytes)?;
            let word = |at: usize| {
                i32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
            };
            let micros = i64::from(word(0)) << 32 | i64::from(word(4) as u32);
            let interval = Interval {
                micros,
                days: word(8),
                months: word(12),
            };
            Value::Interval(interval.coerce(typmod))
        }
        Type::Uuid => Value::Uuid(exactly(bytes)?),
        Type::Inet => Value::Inet(network::receive(bytes, false)?),
        Type::Cidr => Value::Cidr(network::receive(bytes, true)?),
        Type::Enum(of) => Value::Enum(EnumValue {
            of,
            position: i64::from_be_bytes(exactly(bytes)?),
        }),
        Type::Json => {
            let text = text_of_bytes(bytes)?;
            json::check(text)?;
            Value::Json(text.into())
        }
        Type::Jsonb => match bytes {
            [1, text @ ..] => Value::Jsonb(Jsonb::parse(text_of_bytes(text)?)?),
            [version, ..] => {
                let message = format!("unsupported jsonb version number {version}");
                return Err(SqlError::new(SqlState::INTERNAL, message));
            }
            [] => return Err(short()),
        },
    })
}

fn receive_date(bytes: &[u8]) -> Result<Date> {
    let date = Date(i32::from_be_bytes(exactly(bytes)?));
    if date.is_finite() && Date::of_day(date.day()).is_err() {
        return Err(SqlError::new(
            SqlState::DATETIME_OVERFLOW,
            "date out of range",
        ));
    }
    Ok(date)
}

fn receive_timestamp(bytes: &[u8], typmod: Typmod) -> Result<Timestamp> {
    let timestamp = Timestamp(i64::from_be_bytes(exactly(bytes)?));
    if timestamp.is_finite() && Timestamp::checked(timestamp.0).is_none() {
        return Err(SqlError::new(
            SqlState::DATETIME_OVERFLOW,
            "timestamp out of range",
        ));
    }
    timestamp.coerce(typmod)
}

/// Appends a value in binary format; nothing for null, which has none.
///
/// # Errors
/// 54000 if `out` gets longer than a value may be, as the text of a `jsonb` can; a part of it is in it then.
pub fn send(value: ValueRef<'_>, out: &mut Vec<u8>) -> Result<()> {
    put(value, out);
    check_length(out.len())
}

/// The same, of a text as much as fits.
pub(crate) fn put(value: ValueRef<'_>, out: &mut Vec<u8>) {
    match value {
        ValueRef::Null => {}
        ValueRef::Bool(value) => out.push(u8::from(value)),
        ValueRef::Int2(value) => out.extend_from_slice(&value.to_be_bytes()),
        ValueRef::Int4(value) => out.extend_from_slice(&value.to_be_bytes()),
        ValueRef::Int8(value) => out.extend_from_slice(&value.to_be_bytes()),
        ValueRef::Oid(value) => out.extend_from_slice(&value.to_be_bytes()),
        ValueRef::Float4(value) => out.extend_from_slice(&value.to_be_bytes()),
        ValueRef::Float8(value) => out.extend_from_slice(&value.to_be_bytes()),
        ValueRef::Numeric(value) => value.send(out),
        ValueRef::Text(text) | ValueRef::Char(text) | ValueRef::Json(text) => {
            out.extend_from_slice(text.as_bytes());
        }
        ValueRef::Bytea(bytes) => out.extend_from_slice(bytes),
        ValueRef::Date(value) => out.extend_from_slice(&value.0.to_be_bytes()),
        ValueRef::Time(value) => out.extend_from_slice(&value.0.to_be_bytes()),
        ValueRef::Timestamp(value) | ValueRef::Timestamptz(value) => {
            out.extend_from_slice(&value.0.to_be_bytes());
        }
        ValueRef::Interval(value) => {
            out.extend_from_slice(&value.micros.to_be_bytes());
            out.extend_from_slice(&value.days.to_be_bytes());
            out.extend_from_slice(&value.months.to_be_bytes());
        }
        ValueRef::Uuid(value) => out.extend_from_slice(&value),
        ValueRef::Inet(value) => network::send(value, false, out),
        ValueRef::Cidr(value) => network::send(value, true, out),
        ValueRef::Enum(value) => out.extend_from_slice(&value.position.to_be_bytes()),
        ValueRef::Array(value) => value.send(out),
        ValueRef::Jsonb(value) => {
            let mut text = String::new();
            value.write_part(&mut text);
            out.push(1);
            out.extend_from_slice(text.as_bytes());
        }
    }
}
