//! Functions and operators of addresses.

use super::{Arguments, Entry, strict};
use crate::error::Result;
use vellum_row::{Inet, Value};

#[rustfmt::skip]
pub(super) static ENTRIES: &[Entry] = &[
    strict(598, "abbrev", "inet", "text", |a| Ok(Value::text(a.address(0)?.abbreviated()))),
    strict(599, "abbrev", "cidr", "text", |a| Ok(Value::text(a.address(0)?.abbreviated_network()))),
    strict(605, "set_masklen", "inet int4", "inet", |a| Ok(Value::Inet(a.address(0)?.with_bits(a.int(1))?))),
    strict(635, "set_masklen", "cidr int4", "cidr", |a| Ok(Value::Cidr(a.address(0)?.with_bits(a.int(1))?.network()))),
    strict(683, "network", "inet", "cidr", |a| Ok(Value::Cidr(a.address(0)?.network()))),
    strict(696, "netmask", "inet", "inet", |a| Ok(Value::Inet(a.address(0)?.netmask()))),
    strict(697, "masklen", "inet", "int4", |a| Ok(Value::Int4(a.address(0)?.bits().into()))),
    strict(698, "broadcast", "inet", "inet", |a| Ok(Value::Inet(a.address(0)?.broadcast()))),
    strict(699, "host", "inet", "text", |a| Ok(Value::text(a.address(0)?.host()))),
    strict(711, "family", "inet", "int4", |a| Ok(Value::Int4(if a.address(0)?.is_v6() { 6 } else { 4 }))),
    strict(730, "text", "inet", "text", |a| Ok(Value::text(a.address(0)?.shown()))),
    strict(1362, "hostmask", "inet", "inet", |a| Ok(Value::Inet(a.address(0)?.hostmask()))),
    strict(1715, "cidr", "inet", "cidr", |a| Ok(Value::Cidr(a.address(0)?.network()))),
    strict(4063, "inet_merge", "inet inet", "cidr", |a| Ok(Value::Cidr(a.address(0)?.merge(a.address(1)?)?))),
    strict(4071, "inet_same_family", "inet inet", "bool", |a| both(a, Inet::is_of_family)),
    strict(0, "<<", "inet inet", "bool", |a| both(a, Inet::is_within)),
    strict(0, "<<=", "inet inet", "bool", |a| both(a, Inet::is_within_or_equals)),
    strict(0, ">>", "inet inet", "bool", |a| both(a, |own, other| other.is_within(own))),
    strict(0, ">>=", "inet inet", "bool", |a| both(a, |own, other| other.is_within_or_equals(own))),
    strict(0, "&&", "inet inet", "bool", |a| both(a, Inet::overlaps)),
    strict(0, "~", "inet", "inet", |a| Ok(Value::Inet(a.address(0)?.inverted()))),
    strict(0, "&", "inet inet", "inet", |a| Ok(Value::Inet(a.address(0)?.and(a.address(1)?)?))),
    strict(0, "|", "inet inet", "inet", |a| Ok(Value::Inet(a.address(0)?.or(a.address(1)?)?))),
];

/// What is true of two addresses or not.
fn both(a: &Arguments<'_>, is: impl Fn(Inet, Inet) -> bool) -> Result<Value> {
    Ok(Value::Bool(is(a.address(0)?, a.address(1)?)))
}
