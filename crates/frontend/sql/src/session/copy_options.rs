//! What the options of a COPY ask for, which of them go with which form and direction, and what PostgreSQL says of those that do not.

use super::copy_text::{Header, Lines};
use super::encoding::Encoding;
use crate::error::{Result, SqlError};
use crate::parse::{CopyArgument, CopyOption};
use crate::sqlstate;

/// What the options of a COPY ask for. Columns are named, and not looked up yet.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub lines: Lines,
    /// FREEZE, of a COPY from the client.
    pub freeze: bool,
    /// FORCE_QUOTE, FORCE_NOT_NULL and FORCE_NULL.
    pub quoted: Columns,
    pub not_null: Columns,
    pub is_null: Columns,
}

/// Columns that an option is about.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(super) enum Columns {
    #[default]
    None,
    All,
    Named(Vec<String>),
}

impl Columns {
    /// Which of the columns that are copied are meant. `refuse` says what is wrong with a name that is none of them.
    ///
    /// # Errors
    /// `refuse`'s; `42701` for a name that comes twice.
    pub fn among(&self, copied: &[&str], refuse: impl Fn(&str) -> SqlError) -> Result<Vec<bool>> {
        let names = match self {
            Self::None => return Ok(Vec::new()),
            Self::All => return Ok(vec![true; copied.len()]),
            Self::Named(names) => names,
        };
        let mut flags = vec![false; copied.len()];
        for name in names {
            let at = copied.iter().position(|copied| copied == name);
            let at = at.ok_or_else(|| refuse(name))?;
            if std::mem::replace(&mut flags[at], true) {
                return Err(super::copy::column_twice(name));
            }
        }
        Ok(flags)
    }
}

/// The options, each as it was given.
#[derive(Default)]
struct Given {
    format: Option<String>,
    freeze: Option<bool>,
    delimiter: Option<String>,
    null: Option<String>,
    header: Option<Header>,
    quote: Option<String>,
    escape: Option<String>,
    quoted: Option<Columns>,
    not_null: Option<Columns>,
    is_null: Option<Columns>,
    encoding: Option<()>,
}

/// What the options of a COPY to the client, or from it, ask for.
///
/// # Errors
/// `42601`, `22023`, `0A000`.
pub(super) fn wanted(options: &[CopyOption], to: bool) -> Result<Wanted> {
    let mut given = Given::default();
    for option in options {
        given.take(option, to)?;
    }
    given.wanted(to)
}

impl Given {
    fn take(&mut self, option: &CopyOption, to: bool) -> Result<()> {
        let again = match &*option.name {
            "format" => self.format.replace(text(option)?).is_some(),
            "freeze" => {
                let flag = flag(option).ok_or_else(|| needs(option, "a Boolean value"))?;
                self.freeze.replace(flag).is_some()
            }
            "delimiter" => self.delimiter.replace(text(option)?).is_some(),
            "null" => self.null.replace(text(option)?).is_some(),
            "header" => self.header.replace(header(option, to)?).is_some(),
            "quote" => self.quote.replace(text(option)?).is_some(),
            "escape" => self.escape.replace(text(option)?).is_some(),
            "force_quote" => self.quoted.replace(columns(option, true)?).is_some(),
            "force_not_null" => self.not_null.replace(columns(option, false)?).is_some(),
            "force_null" => self.is_null.replace(columns(option, false)?).is_some(),
            "encoding" => {
                check_encoding(option)?;
                self.encoding.replace(()).is_some()
            }
            name => {
                let message = format!("option \"{name}\" not recognized");
                return Err(SqlError::syntax(message).at(option.place));
            }
        };
        if again {
            let text = "conflicting or redundant options";
            return Err(SqlError::syntax(text).at(option.place));
        }
        if let ("format", Some(format)) = (&*option.name, &self.format)
            && !matches!(&**format, "text" | "csv" | "binary")
        {
            let message = format!("COPY format \"{format}\" not recognized");
            return Err(invalid(message).at(option.place));
        }
        Ok(())
    }

    /// What they ask for together, in the order in which PostgreSQL looks at it.
    fn wanted(self, to: bool) -> Result<Wanted> {
        let format = self.format.as_deref().unwrap_or("text");
        let (csv, binary) = (format == "csv", format == "binary");
        let words = [("DELIMITER", &self.delimiter), ("NULL", &self.null)];
        if let Some((word, _)) = words.iter().find(|(_, text)| binary && text.is_some()) {
            let message = format!("cannot specify {word} in BINARY mode");
            return Err(SqlError::syntax(message));
        }
        let only_csv = |what: &str| unsupported(format!("COPY {what} available only in CSV mode"));
        let usual = if csv { "," } else { "\t" };
        let delimiter = byte("delimiter", self.delimiter.as_deref().unwrap_or(usual))?;
        if matches!(delimiter, b'\n' | b'\r') {
            let text = "COPY delimiter cannot be newline or carriage return";
            return Err(invalid(text.to_owned()));
        }
        let usual = if csv { "" } else { "\\N" };
        let null = self.null.unwrap_or_else(|| usual.to_owned());
        if null.contains(['\n', '\r']) {
            let text = "COPY null representation cannot use newline or carriage return";
            return Err(invalid(text.to_owned()));
        }
        let letters = b"\\.abcdefghijklmnopqrstuvwxyz0123456789";
        if !csv && !binary && letters.contains(&delimiter) {
            let message = format!("COPY delimiter cannot be \"{}\"", char::from(delimiter));
            return Err(invalid(message));
        }
        let header = self.header.unwrap_or(Header::None);
        if binary && header != Header::None {
            let text = "cannot specify HEADER in BINARY mode";
            return Err(unsupported(text.to_owned()));
        }
        if !csv && self.quote.is_some() {
            return Err(only_csv("quote"));
        }
        let quote = byte("quote", self.quote.as_deref().unwrap_or("\""))?;
        if csv && delimiter == quote {
            let text = "COPY delimiter and quote must be different";
            return Err(invalid(text.to_owned()));
        }
        if !csv && self.escape.is_some() {
            return Err(only_csv("escape"));
        }
        let escape = match &self.escape {
            Some(text) => byte("escape", text)?,
            None => quote,
        };
        for (columns, what, goes_to) in [
            (&self.quoted, "force quote", true),
            (&self.not_null, "force not null", false),
            (&self.is_null, "force null", false),
        ] {
            if columns.is_some() && !csv {
                return Err(only_csv(what));
            }
            if columns.is_some() && goes_to != to {
                let way = if goes_to { "TO" } else { "FROM" };
                let message = format!("COPY {what} only available using COPY {way}");
                return Err(unsupported(message));
            }
        }
        if null.as_bytes().contains(&delimiter) {
            let text = "COPY delimiter must not appear in the NULL specification";
            return Err(unsupported(text.to_owned()));
        }
        if csv && null.as_bytes().contains(&quote) {
            let text = "CSV quote character must not appear in the NULL specification";
            return Err(unsupported(text.to_owned()));
        }
        let lines = Lines {
            binary,
            csv,
            delimiter,
            null,
            quote,
            escape,
            header,
            quoted: Vec::new(),
            not_null: Vec::new(),
            is_null: Vec::new(),
            single: false,
        };
        Ok(Wanted {
            lines,
            freeze: !to && self.freeze == Some(true),
            quoted: self.quoted.unwrap_or_default(),
            not_null: self.not_null.unwrap_or_default(),
            is_null: self.is_null.unwrap_or_default(),
        })
    }
}

/// The one byte of a text.
fn byte(option: &str, text: &str) -> Result<u8> {
    match text.as_bytes() {
        [byte] => Ok(*byte),
        _ => {
            let message = format!("COPY {option} must be a single one-byte character");
            Err(unsupported(message))
        }
    }
}

/// What an option is given, as a text.
fn text(option: &CopyOption) -> Result<String> {
    Ok(match &option.argument {
        CopyArgument::Nothing => return Err(needs(option, "a parameter")),
        CopyArgument::Text(text) | CopyArgument::Number(text) => text.clone(),
        CopyArgument::All => "*".to_owned(),
        CopyArgument::List(names) => names.join(", "),
    })
}

/// What an option says that is true or false; `None` if it says neither.
fn flag(option: &CopyOption) -> Option<bool> {
    match &option.argument {
        CopyArgument::Nothing => Some(true),
        CopyArgument::Number(digits) if digits == "1" => Some(true),
        CopyArgument::Number(digits) if digits == "0" => Some(false),
        CopyArgument::Text(word) => match &*word.to_lowercase() {
            "true" | "on" => Some(true),
            "false" | "off" => Some(false),
            _ => None,
        },
        _ => None,
    }
}

fn header(option: &CopyOption, to: bool) -> Result<Header> {
    if let CopyArgument::Text(word) = &option.argument
        && word.eq_ignore_ascii_case("match")
    {
        if to {
            let message = format!("cannot use \"{word}\" with HEADER in COPY TO");
            return Err(unsupported(message));
        }
        return Ok(Header::Match);
    }
    match flag(option) {
        Some(true) => Ok(Header::Line),
        Some(false) => Ok(Header::None),
        None => Err(needs(option, "a Boolean value or \"match\"")),
    }
}

/// The columns of an option; `all`: it may be about all of them.
fn columns(option: &CopyOption, all: bool) -> Result<Columns> {
    match &option.argument {
        CopyArgument::All if all => Ok(Columns::All),
        CopyArgument::List(names) => Ok(Columns::Named(names.clone())),
        _ => {
            let message = format!(
                "argument to option \"{}\" must be a list of column names",
                option.name
            );
            Err(invalid(message).at(option.place))
        }
    }
}

/// # Errors
/// `22023` for a name that is no encoding's; `0A000` for one that texts do not come in.
fn check_encoding(option: &CopyOption) -> Result<()> {
    let name = text(option)?;
    match Encoding::named(&name) {
        Some(Encoding::Utf8 | Encoding::Bytes) => Ok(()),
        Some(Encoding::Other) => Err(SqlError::unsupported(format!(
            "the encoding {name} of COPY"
        ))),
        None => {
            let message = format!(
                "argument to option \"{}\" must be a valid encoding name",
                option.name
            );
            Err(invalid(message).at(option.place))
        }
    }
}

#[cold]
fn needs(option: &CopyOption, what: &str) -> SqlError {
    SqlError::syntax(format!("{} requires {what}", option.name)).without_place()
}

#[cold]
fn invalid(message: String) -> SqlError {
    SqlError::new(sqlstate::INVALID_PARAMETER_VALUE, message)
}

#[cold]
fn unsupported(message: String) -> SqlError {
    SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, message)
}
