//! Time zones, as the IANA database has them that is built into the program.

use super::{Scan, Spec, text};
use crate::error::Result;
use vellum_row::Value;
use vellum_row::datetime::{Interval, TimeZone};

pub(super) const RELATIONS: &[Spec] = &[Spec {
    name: "pg_timezone_names",
    oid: 12126,
    view: true,
    columns: "name text, abbrev text, utc_offset interval, is_dst bool",
    fill: pg_timezone_names,
}];

/// As they are now.
fn pg_timezone_names(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    for name in TimeZone::names() {
        let Some(zone) = TimeZone::named(&name) else {
            continue;
        };
        let now = zone.offset_info_at(scan.env.now);
        rows.push(vec![
            text(name),
            now.abbreviation.map_or(Value::Null, text),
            Value::Interval(Interval {
                months: 0,
                days: 0,
                micros: i64::from(now.seconds) * 1_000_000,
            }),
            Value::Bool(now.is_dst),
        ]);
    }
    Ok(())
}
