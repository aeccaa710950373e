//! Arrays read from and written to text.

use super::{Array, ArrayRef, Dimension};
use crate::error::{Result, SqlError, SqlState};
use crate::settings::Settings;
use crate::text::{input, show};
use crate::types::{Type, Typmod};
use crate::value::{VALUE_BYTES_MAX, Value};

/// Nothing but a number of dimensions that is above every one that can be.
const NESTING_MAX: usize = super::DIMENSIONS_MAX;

fn malformed(text: &str, detail: impl Into<String>) -> SqlError {
    let message = format!("malformed array literal: \"{text}\"");
    SqlError::new(SqlState::of("22P02"), message).with_detail(detail.into())
}

/// Reads `{a,b,{…}}`, with `[lower:upper]=` in front if that is not 1.
pub(crate) fn parse(
    element: Type,
    typmod: Typmod,
    text: &str,
    settings: &Settings,
) -> Result<Array> {
    let mut parser = Parser {
        text,
        rest: text.trim_start(),
        element,
        typmod,
        settings,
        items: Vec::new(),
        lengths: Vec::new(),
        leaf: None,
    };
    let bounds = parser.bounds()?;
    if !parser.rest.starts_with('{') {
        let detail = if bounds.is_empty() {
            "Array value must start with \"{\" or dimension information."
        } else {
            "Array contents must start with \"{\"."
        };
        return Err(malformed(text, detail));
    }
    parser.level(0)?;
    if !parser.rest.trim_start().is_empty() {
        return Err(malformed(text, "Junk after closing right brace."));
    }
    let mut dimensions: Vec<Dimension> = parser
        .lengths
        .iter()
        .map(|length| Dimension {
            length: length.unwrap_or(0),
            lower: 1,
        })
        .collect();
    if !bounds.is_empty() {
        let same = bounds.len() == dimensions.len()
            && bounds
                .iter()
                .zip(&dimensions)
                .all(|(a, b)| a.length == b.length);
        if !same {
            let detail = "Specified array dimensions do not match array contents.";
            return Err(malformed(text, detail));
        }
        dimensions = bounds;
    }
    Array::shaped(element, &dimensions, &parser.items)
}

struct Parser<'t> {
    text: &'t str,
    rest: &'t str,
    element: Type,
    typmod: Typmod,
    settings: &'t Settings,
    items: Vec<Value>,
    /// Of each dimension, once its first row has ended.
    lengths: Vec<Option<i32>>,
    /// The level where elements stand, once there was one.
    leaf: Option<usize>,
}

impl Parser<'_> {
    fn bounds(&mut self) -> Result<Vec<Dimension>> {
        let mut bounds = Vec::new();
        while let Some(rest) = self.rest.strip_prefix('[') {
            let bad = || malformed(self.text, "Missing \"]\" after array dimensions.");
            let (inside, after) = rest.split_once(']').ok_or_else(bad)?;
            let (lower, upper) = inside.split_once(':').unwrap_or(("1", inside));
            let number = |text: &str| text.trim().parse::<i32>();
            let (Ok(lower), Ok(upper)) = (number(lower), number(upper)) else {
                let detail = "\"[\" must introduce explicitly-specified array dimensions.";
                return Err(malformed(self.text, detail));
            };
            if upper == i32::MAX {
                return Err(super::lower_too_large(lower));
            }
            let length = upper
                .checked_sub(lower)
                .and_then(|span| span.checked_add(1));
            let length = length.filter(|length| *length > 0).ok_or_else(|| {
                let text = "upper bound cannot be less than lower bound";
                SqlError::new(SqlState::of("2202E"), text)
            })?;
            bounds.push(Dimension { length, lower });
            self.rest = after.trim_start();
        }
        if !bounds.is_empty() {
            let after = self.rest.strip_prefix('=');
            let missing = || malformed(self.text, "Missing \"=\" after array dimensions.");
            self.rest = after.ok_or_else(missing)?.trim_start();
        }
        Ok(bounds)
    }

    /// What stands between two braces; the rest begins with the opening one.
    fn level(&mut self, depth: usize) -> Result<()> {
        if depth >= NESTING_MAX {
            let message = format!(
                "number of array dimensions ({}) exceeds the maximum allowed ({NESTING_MAX})",
                depth + 1
            );
            return Err(SqlError::new(SqlState::of("54000"), message));
        }
        if self.lengths.len() <= depth {
            self.lengths.push(None);
        }
        let uneven = "Multidimensional arrays must have sub-arrays with matching dimensions.";
        self.rest = self.rest[1..].trim_start();
        let mut count = 0i32;
        if let Some(rest) = self.rest.strip_prefix('}') {
            self.rest = rest;
        } else {
            loop {
                if self.rest.starts_with('{') {
                    if self.leaf.is_some_and(|leaf| leaf <= depth) {
                        return Err(malformed(self.text, uneven));
                    }
                    self.level(depth + 1)?;
                } else {
                    if *self.leaf.get_or_insert(depth) != depth {
                        return Err(malformed(self.text, uneven));
                    }
                    let item = self.item()?;
                    super::check_count(self.items.len() + 1)?;
                    self.items.push(item);
                }
                count += 1;
                self.rest = self.rest.trim_start();
                if let Some(rest) = self.rest.strip_prefix(',') {
                    self.rest = rest.trim_start();
                } else if let Some(rest) = self.rest.strip_prefix('}') {
                    self.rest = rest;
                    break;
                } else if self.rest.is_empty() {
                    return Err(malformed(self.text, "Unexpected end of input."));
                } else {
                    return Err(malformed(self.text, "Unexpected array element."));
                }
            }
        }
        match self.lengths[depth] {
            None => self.lengths[depth] = Some(count),
            Some(length) if length != count => return Err(malformed(self.text, uneven)),
            Some(_) => {}
        }
        Ok(())
    }

    fn item(&mut self) -> Result<Value> {
        let mut item = String::new();
        let quoted = self.rest.starts_with('"');
        let mut escaped = false;
        let mut chars = self.rest.char_indices();
        let mut end = self.rest.len();
        // Blanks at the end of an item without quotes do not count, unless they are escaped.
        let mut kept = 0;
        if quoted {
            chars.next();
            let mut closed = false;
            while let Some((at, char)) = chars.next() {
                match char {
                    '"' => {
                        end = at + 1;
                        closed = true;
                        break;
                    }
                    '\\' => item.extend(chars.next().map(|(_, char)| char)),
                    other => item.push(other),
                }
            }
            if !closed {
                return Err(malformed(self.text, "Unexpected end of input."));
            }
        } else {
            while let Some((at, char)) = chars.next() {
                match char {
                    ',' | '}' => {
                        end = at;
                        break;
                    }
                    '"' | '{' => {
                        let detail = format!("Unexpected \"{char}\" character.");
                        return Err(malformed(self.text, detail));
                    }
                    '\\' => {
                        escaped = true;
                        item.extend(chars.next().map(|(_, char)| char));
                        kept = item.len();
                    }
                    other => {
                        item.push(other);
                        if !other.is_ascii_whitespace() {
                            kept = item.len();
                        }
                    }
                }
            }
            item.truncate(kept);
            if end == 0 {
                let found = self.rest.chars().next().unwrap_or(' ');
                let detail = format!("Unexpected \"{found}\" character.");
                return Err(malformed(self.text, detail));
            }
        }
        self.rest = &self.rest[end..];
        if !quoted && !escaped && item.eq_ignore_ascii_case("null") {
            return Ok(Value::Null);
        }
        input(self.element, self.typmod, &item, self.settings)
    }
}

/// Reads numbers with blanks between: an `int2vector` or `oidvector`.
pub(crate) fn parse_vector(element: Type, text: &str, settings: &Settings) -> Result<Array> {
    let items = text.split_ascii_whitespace();
    let items = items.map(|item| input(element, Typmod::NONE, item, settings));
    Ok(Array::vector(element, &items.collect::<Result<Vec<_>>>()?))
}

/// Appends the text of an array. Ends early once `out` is longer than a value may be: numbers of few bytes have texts of many.
pub(crate) fn write(array: ArrayRef<'_>, settings: &Settings, out: &mut String) {
    let mut text = String::new();
    if array.is_vector() {
        for (number, item) in array.items().enumerate() {
            if number > 0 {
                out.push(' ');
            }
            show(item.as_ref(), settings, out);
        }
        return;
    }
    let dimensions: Vec<Dimension> = array.dimensions().collect();
    if dimensions.iter().any(|one| one.lower != 1) {
        for one in &dimensions {
            let upper = i64::from(one.lower) + i64::from(one.length) - 1;
            out.push_str(&format!("[{}:{upper}]", one.lower));
        }
        out.push('=');
    }
    if dimensions.is_empty() {
        out.push_str("{}");
        return;
    }
    for (number, item) in array.items().enumerate() {
        if out.len() > VALUE_BYTES_MAX {
            return;
        }
        // Braces open and close where a row of a dimension begins and ends.
        let mut row = 1;
        let mut opened = 0;
        for one in dimensions.iter().rev() {
            row *= one.length as usize;
            if number % row == 0 {
                opened += 1;
            }
        }
        if number > 0 {
            for _ in 0..opened {
                out.push('}');
            }
            out.push(',');
        }
        for _ in 0..opened {
            out.push('{');
        }
        text.clear();
        show(item.as_ref(), settings, &mut text);
        let bare = !text.is_empty()
            && !text.eq_ignore_ascii_case("null")
            && !text.contains(|char: char| "\"\\{},".contains(char) || char.is_ascii_whitespace());
        if item.is_null() {
            out.push_str("NULL");
        } else if bare {
            out.push_str(&text);
        } else {
            out.push('"');
            for char in text.chars() {
                if char == '"' || char == '\\' {
                    out.push('\\');
                }
                out.push(char);
            }
            out.push('"');
        }
    }
    for _ in &dimensions {
        out.push('}');
    }
}
