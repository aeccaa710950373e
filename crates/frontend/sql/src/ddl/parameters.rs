//! What WITH says of tables and indexes: `fillfactor` and its like. It is checked and shown as PostgreSQL does that, and nothing goes by it. And of views, whose check option and
//! whose invoker count.

use crate::catalog::{Method, boolean};
use crate::error::{Result, SqlError};
use crate::parse::RESET;
use crate::sqlstate;
use sqlparser::ast::{self, SqlOption};

/// A parameter that a statement names. The parser has given every one a value, as text (`parse/parameters`).
#[derive(Clone, Debug)]
pub(super) struct Said {
    name: String,
    /// `None`: it is as if nothing were said of it.
    value: Option<String>,
}

/// What parameters are of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    Table,
    View,
    Index(Method),
}

/// What a parameter may be.
enum Domain {
    Bool,
    Int(i64, i64),
    Real(f64, f64),
    Words(&'static [&'static str]),
}

const INT_MAX: i64 = i32::MAX as i64;
const SHARE: Domain = Domain::Real(0.0, 100.0);

impl Said {
    /// Those of a table.
    ///
    /// # Errors
    /// `42601` for what is no parameter.
    pub fn of_table(options: &[SqlOption]) -> Result<Vec<Self>> {
        let all = options.iter().map(|option| match option {
            SqlOption::KeyValue { key, value } => Self::of_value(key, value),
            other => Err(SqlError::syntax(format!("{other} as a parameter"))),
        });
        all.collect()
    }

    /// Those of an index.
    ///
    /// # Errors
    /// `42601` for what is no parameter.
    pub fn of_index(options: &[ast::Expr]) -> Result<Vec<Self>> {
        let all = options.iter().map(|option| match option {
            ast::Expr::BinaryOp { left, right, .. } => match &**left {
                ast::Expr::Identifier(key) => Self::of_value(key, right),
                other => Err(SqlError::syntax(format!("{other} as a parameter"))),
            },
            other => Err(SqlError::syntax(format!("{other} as a parameter"))),
        });
        all.collect()
    }

    fn of_value(key: &ast::Ident, value: &ast::Expr) -> Result<Self> {
        let ast::Expr::Value(value) = value else {
            return Err(SqlError::syntax(format!("{value} as a parameter")));
        };
        let ast::Value::SingleQuotedString(value) = &value.value else {
            return Err(SqlError::syntax(format!("{value} as a parameter")));
        };
        Ok(match key.value.strip_prefix(RESET) {
            Some(name) => Self {
                name: name.to_owned(),
                value: None,
            },
            None => Self::of_item((&key.value, value)),
        })
    }

    /// One of an index that stands for a key.
    pub fn of_item((name, value): (&str, &str)) -> Self {
        Self {
            name: name.to_owned(),
            value: Some(value.to_owned()),
        }
    }

    /// One as the catalog keeps it.
    pub fn kept(option: &str) -> Self {
        Self::of_item(option.split_once('=').unwrap_or((option, "true")))
    }
}

/// The parameters that there are behind a statement.
///
/// # Errors
/// `22023`; `0A000` for tables with oids.
pub(super) fn changed(before: &[Box<str>], said: Vec<Said>, of: Of) -> Result<Vec<Box<str>>> {
    for (at, own) in said.iter().enumerate() {
        if said[..at].iter().any(|other| other.name == own.name) {
            return Err(wrong(format!(
                "parameter \"{}\" specified more than once",
                own.name
            )));
        }
    }
    let is_said = |option: &str| {
        let (name, _) = option.split_once('=').unwrap_or((option, ""));
        said.iter().any(|own| own.name == name)
    };
    let mut all: Vec<Box<str>> = Vec::with_capacity(before.len() + said.len());
    all.extend(before.iter().filter(|option| !is_said(option)).cloned());
    for own in &said {
        let Some(value) = &own.value else {
            continue;
        };
        match own.name.split_once('.') {
            // What is too long for a row has no table of its own here, and is as any other value.
            Some(("toast", name)) if of == Of::Table => check(name, value, of)?,
            Some((space, _)) => {
                return Err(wrong(format!(
                    "unrecognized parameter namespace \"{space}\""
                )));
            }
            None if own.name == "oids" && of == Of::Table => {
                if boolean(value) != Some(false) {
                    let text = "tables declared WITH OIDS are not supported";
                    return Err(SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, text));
                }
            }
            None => {
                check(&own.name, value, of)?;
                all.push(format!("{}={value}", own.name).into());
            }
        }
    }
    Ok(all)
}

fn domain(name: &str, of: Of) -> Option<Domain> {
    use Domain as D;
    Some(match (of, name) {
        (Of::Index(Method::Gin), "fastupdate")
        | (Of::Index(Method::BTree), "deduplicate_items")
        | (Of::Index(Method::Brin), "autosummarize")
        | (Of::Table, "autovacuum_enabled" | "user_catalog_table" | "vacuum_truncate") => D::Bool,
        (Of::Index(Method::Gin), "gin_pending_list_limit") => D::Int(64, INT_MAX),
        (Of::Index(Method::Brin), "pages_per_range") => D::Int(1, 131_072),
        (Of::Index(Method::Gist), "buffering") => D::Words(&["on", "off", "auto"]),
        (Of::Index(Method::Gin | Method::Brin), _) => return None,
        (Of::View, "security_barrier" | "security_invoker") => D::Bool,
        (Of::View, "check_option") => D::Words(&["local", "cascaded"]),
        (Of::View, _) => return None,
        (_, "fillfactor") => D::Int(10, 100),
        (Of::Index(_), _) => return None,
        (Of::Table, "toast_tuple_target") => D::Int(128, 8160),
        (Of::Table, "parallel_workers") => D::Int(0, 1024),
        (Of::Table, "vacuum_index_cleanup") => {
            D::Words(&["on", "off", "auto", "true", "false", "yes", "no", "1", "0"])
        }
        (Of::Table, "log_autovacuum_min_duration") => D::Int(-1, INT_MAX),
        (Of::Table, name) => match name.strip_prefix("autovacuum_")? {
            "vacuum_threshold" | "analyze_threshold" => D::Int(0, INT_MAX),
            "vacuum_insert_threshold" => D::Int(-1, INT_MAX),
            "vacuum_cost_limit" => D::Int(1, 10_000),
            "freeze_min_age" | "multixact_freeze_min_age" => D::Int(0, 1_000_000_000),
            "freeze_max_age" => D::Int(100_000, 2_000_000_000),
            "multixact_freeze_max_age" => D::Int(10_000, 2_000_000_000),
            "freeze_table_age" | "multixact_freeze_table_age" => D::Int(0, 2_000_000_000),
            "vacuum_cost_delay"
            | "vacuum_scale_factor"
            | "vacuum_insert_scale_factor"
            | "analyze_scale_factor" => SHARE,
            _ => return None,
        },
    })
}

/// # Errors
/// `22023`.
fn check(name: &str, value: &str, of: Of) -> Result<()> {
    let domain =
        domain(name, of).ok_or_else(|| wrong(format!("unrecognized parameter \"{name}\"")))?;
    let invalid = |kind: &str| {
        wrong(format!(
            "invalid value for {kind} option \"{name}\": {value}"
        ))
    };
    let bounds = |inside: bool, least: String, most: String| {
        if inside {
            return Ok(());
        }
        let error = wrong(format!("value {value} out of bounds for option \"{name}\""));
        Err(error.with_detail(format!(
            "Valid values are between \"{least}\" and \"{most}\"."
        )))
    };
    match domain {
        Domain::Bool => boolean(value).map(drop).ok_or_else(|| invalid("boolean")),
        Domain::Int(least, most) => {
            let number: i64 = value.trim().parse().map_err(|_| invalid("integer"))?;
            let inside = (least..=most).contains(&number);
            bounds(inside, least.to_string(), most.to_string())
        }
        Domain::Real(least, most) => {
            let number: f64 = value
                .trim()
                .parse()
                .map_err(|_| invalid("floating point"))?;
            let inside = (least..=most).contains(&number);
            bounds(inside, format!("{least:.6}"), format!("{most:.6}"))
        }
        Domain::Words(words) => {
            if words.contains(&&*value.to_lowercase()) {
                return Ok(());
            }
            let detail = match words.first() {
                Some(&"local") => "Valid values are \"local\" and \"cascaded\".",
                _ => "Valid values are \"on\", \"off\", and \"auto\".",
            };
            Err(invalid("enum").with_detail(detail))
        }
    }
}

fn wrong(message: String) -> SqlError {
    SqlError::new(sqlstate::INVALID_PARAMETER_VALUE, message)
}
