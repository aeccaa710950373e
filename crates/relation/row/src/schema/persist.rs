//! A schema as the catalog keeps it.
//!
//! Layout (little-endian): `u8 format = 1, u16 version, u16 columns`, then for each column, dropped ones
//! included: `u16 id, u8 type (behind those of enums and of their arrays u32 oid), i32 modifier, u8 flags (1 nullable, 2 stored, 4 dropped, 8 has a value for
//! older rows), u16 added, u16 dropped, name, value for older rows`; the last two with their length in
//! front (u32). The value stands as it would in a row.

use super::row::{read_plain, write_plain};
use super::{COLUMNS_MAX, Column, ColumnId, Schema, VERSION_MAX};
use crate::error::{Result, SqlError};
use crate::types::{Type, Typmod};
use crate::value::Value;
use vellum_base::codec::{Put, Reader};

const FORMAT: u8 = 1;
const NULLABLE: u8 = 1;
const STORED: u8 = 2;
const DROPPED: u8 = 4;
const MISSING: u8 = 8;

impl Schema {
    /// The persisted form.
    ///
    /// # Errors
    /// XX000 if the value of a column for older rows is not of the column's type and modifier.
    pub fn persist(&self) -> Result<Vec<u8>> {
        let mut out = vec![FORMAT];
        out.put_u16(self.version);
        out.put_u16(self.all.len() as u16);
        for column in &self.all {
            out.put_u16(column.id.0);
            out.put_u8(column.ty.code());
            if column.ty.enum_id().is_some() {
                out.put_u32(column.ty.oid());
            }
            out.put_u32(column.typmod.0 as u32);
            let flag = |on: bool, flag: u8| if on { flag } else { 0 };
            out.put_u8(
                flag(column.nullable, NULLABLE)
                    | flag(column.stored, STORED)
                    | flag(column.is_dropped(), DROPPED)
                    | flag(!column.missing.is_null(), MISSING),
            );
            out.put_u16(column.added);
            out.put_u16(column.dropped.unwrap_or(0));
            out.put_prefixed(column.name.as_bytes());
            let mut value = Vec::new();
            if !column.missing.is_null() {
                write_plain(column, column.missing.as_ref(), &mut value)?;
            }
            out.put_prefixed(&value);
        }
        Ok(out)
    }

    /// Reads the persisted form.
    ///
    /// # Errors
    /// XX001 if it is not one.
    pub fn from_persisted(bytes: &[u8]) -> Result<Self> {
        Self::parse(bytes).ok_or_else(|| SqlError::damaged("schema"))
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        if reader.u8()? != FORMAT {
            return None;
        }
        let version = reader.u16()?;
        let count = usize::from(reader.u16()?);
        if version > VERSION_MAX || count > COLUMNS_MAX {
            return None;
        }
        let mut all: Vec<Column> = Vec::with_capacity(count);
        for _ in 0..count {
            let column = parse_column(&mut reader, version)?;
            if all.last().is_some_and(|last| last.id >= column.id) || column.id.0 == 0 {
                return None;
            }
            all.push(column);
        }
        reader.rest().is_empty().then(|| Self::build(version, all))
    }
}

fn parse_column(reader: &mut Reader<'_>, version: u16) -> Option<Column> {
    let id = ColumnId(reader.u16()?);
    let code = reader.u8()?;
    let ty = match Type::from_code(code) {
        Some(ty) => ty,
        None => Type::from_oid(reader.u32()?).filter(|ty| ty.code() == code)?,
    };
    let typmod = Typmod(reader.u32()? as i32);
    let flags = reader.u8()?;
    let added = reader.u16()?;
    let dropped = reader.u16()?;
    let dropped = (flags & DROPPED != 0).then_some(dropped);
    let name = str::from_utf8(reader.prefixed()?).ok()?;
    let value = reader.prefixed()?;
    let sound = added <= version && dropped.is_none_or(|at| added < at && at <= version);
    if !sound || flags > NULLABLE | STORED | DROPPED | MISSING {
        return None;
    }
    let mut column = Column::new(name, ty, typmod, flags & NULLABLE != 0);
    (column.id, column.stored) = (id, flags & STORED != 0);
    (column.added, column.dropped) = (added, dropped);
    column.missing = match (flags & MISSING != 0, value) {
        (true, bytes) => read_plain(&column, bytes)?.to_value(),
        (false, []) => Value::Null,
        (false, _) => return None,
    };
    Some(column)
}
