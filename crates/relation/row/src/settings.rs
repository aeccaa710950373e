//! What the forms of values depend on and a session can set.

use crate::datetime::{TimeZone, Timestamp};
use crate::user::UserTypes;
use std::sync::Arc;

/// How dates and times are written (`DateStyle`, first part).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DateStyle {
    /// `1997-12-17 07:37:16-08`
    #[default]
    Iso,
    /// `12/17/1997 07:37:16.00 PST`
    Sql,
    /// `Wed Dec 17 07:37:16 1997 PST`
    Postgres,
    /// `17.12.1997 07:37:16.00 PST`
    German,
}

/// What `1/2/3` means (`DateStyle`, second part).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DateOrder {
    /// Month, day, year.
    #[default]
    Mdy,
    /// Day, month, year.
    Dmy,
    /// Year, month, day.
    Ymd,
}

/// How intervals are written (`IntervalStyle`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum IntervalStyle {
    /// `1 year 2 mons 3 days 04:05:06`
    #[default]
    Postgres,
    /// `@ 1 year 2 mons 3 days 4 hours 5 mins 6 secs`
    PostgresVerbose,
    /// `+1-2 +3 +4:05:06`
    SqlStandard,
    /// `P1Y2M3DT4H5M6S`
    Iso8601,
}

/// How `bytea` is written (`bytea_output`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ByteaOutput {
    /// `\x6162`
    #[default]
    Hex,
    /// `ab\000`
    Escape,
}

/// The settings of a session that input and output of values depend on. The default is that of a
/// PostgreSQL server whose time zone is UTC.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How dates and times are written.
    pub date_style: DateStyle,
    /// What `1/2/3` means.
    pub date_order: DateOrder,
    /// How intervals are written.
    pub interval_style: IntervalStyle,
    /// How `bytea` is written.
    pub bytea_output: ByteaOutput,
    /// Above zero: floats are written with as few digits as lead back to them; else rounded to 15 (6
    /// for `real`) digits plus this many.
    pub extra_float_digits: i32,
    /// Where `timestamptz` is read and written.
    pub time_zone: TimeZone,
    /// The start of the transaction: what `now`, `today` and the like mean, and `time` inputs are
    /// of.
    pub now: Timestamp,
    /// What users have made, as the transaction sees it.
    pub types: Arc<UserTypes>,
    /// Oids of the schemas in which a type is found by its name alone; they need not be there if `types` is empty.
    pub path: Arc<[u32]>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            date_style: DateStyle::Iso,
            date_order: DateOrder::Mdy,
            interval_style: IntervalStyle::Postgres,
            bytea_output: ByteaOutput::Hex,
            extra_float_digits: 1,
            time_zone: TimeZone::utc(),
            now: Timestamp(0),
            types: Arc::default(),
            path: Arc::default(),
        }
    }
}
