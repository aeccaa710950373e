//! Functions that return sets and are computed of their arguments alone.

use super::{json, pattern};
use crate::error::Result;
use vellum_row::array::Elements;
use vellum_row::{Snapshot, Type, Value, ValueRef};

/// What is told of a row that is made, and may refuse it.
pub(crate) type Keep<'k> = dyn Fn(&[Value]) -> Result<()> + 'k;

/// Which.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RowsOf {
    /// What a regular expression finds.
    Matches,
    /// What stands between what one finds.
    SplitByPattern,
    /// What stands between separators.
    SplitByText,
    /// The elements of a JSON array.
    Elements { binary: bool, as_text: bool },
    /// The pairs of a JSON object.
    Pairs { binary: bool, as_text: bool },
    /// The keys of a JSON object.
    Keys { binary: bool },
    /// Names and values of options, `name=value` each.
    Options,
    /// The numbers of transactions that a snapshot tells to be in progress; of its older name as `bigint`.
    InProgress { old: bool },
}

impl RowsOf {
    /// The function of a name.
    pub fn find(name: &str) -> Option<Self> {
        Some(match name {
            "regexp_matches" => Self::Matches,
            "regexp_split_to_table" => Self::SplitByPattern,
            "string_to_table" => Self::SplitByText,
            "json_object_keys" => Self::Keys { binary: false },
            "jsonb_object_keys" => Self::Keys { binary: true },
            "pg_options_to_table" => Self::Options,
            "pg_snapshot_xip" => Self::InProgress { old: false },
            "txid_snapshot_xip" => Self::InProgress { old: true },
            _ => {
                let binary = name.starts_with("jsonb_");
                let (stem, as_text) = match name.strip_suffix("_text") {
                    Some(stem) => (stem, true),
                    None => (name, false),
                };
                match stem {
                    "json_array_elements" | "jsonb_array_elements" => {
                        Self::Elements { binary, as_text }
                    }
                    "json_each" | "jsonb_each" => Self::Pairs { binary, as_text },
                    _ => return None,
                }
            }
        })
    }

    fn json(binary: bool) -> Type {
        if binary { Type::Jsonb } else { Type::Json }
    }

    /// The types of so many arguments; `None` if it does not take that many.
    pub fn arguments(self, count: usize) -> Option<Vec<Type>> {
        Some(match (self, count) {
            (Self::Matches | Self::SplitByPattern | Self::SplitByText, 2 | 3) => {
                vec![Type::Text; count]
            }
            (
                Self::Elements { binary, .. } | Self::Pairs { binary, .. } | Self::Keys { binary },
                1,
            ) => vec![Self::json(binary)],
            (Self::Options, 1) => vec![Type::Text.array()],
            (Self::InProgress { old: false }, 1) => vec![Type::Snapshot],
            (Self::InProgress { old: true }, 1) => vec![Type::TxidSnapshot],
            _ => return None,
        })
    }

    /// The columns of its rows, if they have names of their own.
    pub fn columns(self) -> Vec<(Option<&'static str>, Type)> {
        let value = |binary, as_text| {
            if as_text {
                Type::Text
            } else {
                Self::json(binary)
            }
        };
        match self {
            Self::Matches => vec![(None, Type::Text.array())],
            Self::InProgress { old: false } => vec![(None, Type::Xid8)],
            Self::InProgress { old: true } => vec![(None, Type::Int8)],
            Self::SplitByPattern | Self::SplitByText | Self::Keys { .. } => {
                vec![(None, Type::Text)]
            }
            Self::Options => vec![
                (Some("option_name"), Type::Text),
                (Some("option_value"), Type::Text),
            ],
            Self::Elements { binary, as_text } => vec![(Some("value"), value(binary, as_text))],
            Self::Pairs { binary, as_text } => vec![
                (Some("key"), Type::Text),
                (Some("value"), value(binary, as_text)),
            ],
        }
    }

    /// Its rows; none if what it takes them of is null. Each is told to `keep` when it is made.
    ///
    /// # Errors
    /// The function's; those of `keep`.
    pub fn rows(self, values: &[Value], keep: &Keep<'_>) -> Result<Vec<Vec<Value>>> {
        let value = |at: usize| values.get(at).map_or(ValueRef::Null, Value::as_ref);
        let text = |at: usize| value(at).as_str().unwrap_or_default();
        let nullable = self == Self::SplitByText;
        if value(0).is_null() || !nullable && values.iter().any(Value::is_null) {
            return Ok(Vec::new());
        }
        let mut rows = Vec::new();
        let mut one = |value: Value| -> Result<()> {
            let row = vec![value];
            keep(&row)?;
            rows.push(row);
            Ok(())
        };
        match self {
            Self::Matches => pattern::all_matches(text(0), text(1), text(2), &mut one)?,
            Self::SplitByPattern => pattern::split_rows(text(0), text(1), text(2), &mut one)?,
            Self::SplitByText => {
                let between = (!value(1).is_null()).then(|| text(1));
                super::text::parts_of(text(0), between, value(2).as_str(), &mut one)?;
            }
            Self::Elements { as_text, .. } => json::elements(value(0), as_text, &mut one)?,
            Self::Pairs { as_text, binary } => {
                let name = match (binary, as_text) {
                    (true, true) => "jsonb_each_text",
                    (true, false) => "jsonb_each",
                    (false, true) => "json_each_text",
                    (false, false) => "json_each",
                };
                json::pairs(value(0), as_text, name, &mut |pair| {
                    keep(&pair)?;
                    rows.push(pair);
                    Ok(())
                })?;
            }
            Self::Options => {
                let Some(Value::Array(options)) = values.first() else {
                    return Ok(rows);
                };
                for option in Elements::of(options.clone()) {
                    let option = option.as_ref().as_str().unwrap_or_default().to_owned();
                    let (name, value) = match option.split_once('=') {
                        Some((name, value)) => (name.to_owned(), Value::text(value)),
                        None => (option, Value::Null),
                    };
                    let row = vec![Value::text(name), value];
                    keep(&row)?;
                    rows.push(row);
                }
            }
            Self::InProgress { .. } => {
                for number in Snapshot::parse(text(0))?.in_progress() {
                    one(super::snapshot::number(*number))?;
                }
            }
            Self::Keys { binary } => {
                let name = if binary {
                    "jsonb_object_keys"
                } else {
                    "json_object_keys"
                };
                json::pairs(value(0), true, name, &mut |pair| {
                    pair.into_iter().next().map_or(Ok(()), &mut one)
                })?;
            }
        }
        Ok(rows)
    }
}
