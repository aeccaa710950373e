//! The setting DateStyle: how dates are written, and the order of their parts.

use crate::error::{Result, SqlError};
use vellum_row::{DateOrder, DateStyle};

/// The style and the order that words separated by commas ask for; `None` for what they say nothing of. What German dates are read as is said by their
/// style, too.
///
/// # Errors
/// `22023`, with what is wrong with the words; `invalid` makes it.
pub(super) fn read(
    value: &str,
    invalid: impl Fn() -> SqlError,
) -> Result<(Option<DateStyle>, Option<DateOrder>)> {
    let (mut style, mut order) = (None, None);
    // What holds where no word says another.
    let (mut own_style, mut own_order) = (None, None);
    let wrong = |detail: String| Err(invalid().with_detail(detail));
    if value.trim().is_empty() {
        return Ok((None, None));
    }
    for word in value.split(',') {
        let word = word.trim().trim_matches('"').to_lowercase();
        if word.is_empty() || word.contains(char::is_whitespace) {
            return wrong("List syntax is invalid.".to_owned());
        }
        let (style_said, order_said) = match word.as_str() {
            "iso" => (Some(DateStyle::Iso), None),
            "sql" => (Some(DateStyle::Sql), None),
            "german" => (Some(DateStyle::German), None),
            "ymd" => (None, Some(DateOrder::Ymd)),
            "dmy" => (None, Some(DateOrder::Dmy)),
            "mdy" | "us" => (None, Some(DateOrder::Mdy)),
            "default" => {
                (own_style, own_order) = (Some(DateStyle::Iso), Some(DateOrder::Mdy));
                continue;
            }
            word if word.starts_with("postgres") => (Some(DateStyle::Postgres), None),
            word if word.starts_with("euro") => (None, Some(DateOrder::Dmy)),
            word if word.starts_with("noneuro") => (None, Some(DateOrder::Mdy)),
            word => return wrong(format!("Unrecognized key word: \"{word}\".")),
        };
        let conflicts = (style_said.is_some() && style.is_some() && style != style_said)
            || (order_said.is_some() && order.is_some() && order != order_said);
        if conflicts {
            return wrong("Conflicting \"datestyle\" specifications.".to_owned());
        }
        if style_said == Some(DateStyle::German) {
            own_order = Some(DateOrder::Dmy);
        }
        style = style_said.or(style);
        order = order_said.or(order);
    }
    Ok((style.or(own_style), order.or(own_order)))
}

/// The setting's value for a style and an order.
pub(super) fn shown(style: DateStyle, order: DateOrder) -> String {
    let style = match style {
        DateStyle::Iso => "ISO",
        DateStyle::Sql => "SQL",
        DateStyle::Postgres => "Postgres",
        DateStyle::German => "German",
    };
    let order = match order {
        DateOrder::Mdy => "MDY",
        DateOrder::Dmy => "DMY",
        DateOrder::Ymd => "YMD",
    };
    format!("{style}, {order}")
}
