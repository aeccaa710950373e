//! EXECUTE, and what GET DIAGNOSTICS tells of statements.

use super::variables::Known;
use super::{Reader, Step, ends_early, unexpected, word_of};
use crate::error::{Result, SqlError};
use sqlparser::tokenizer::Token;

/// A statement that is the value of an expression, and the expressions of its parameters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Executed {
    pub text: String,
    pub using: Vec<String>,
}

/// What GET DIAGNOSTICS tells: how many rows the last statement had, or, in a handler, of the error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Told {
    RowCount,
    State,
    Message,
    Detail,
    Hint,
    Column,
    Constraint,
    DataType,
    Table,
    Schema,
}

/// Items of an error, by their names.
const OF_ERRORS: [(&str, Told); 9] = [
    ("returned_sqlstate", Told::State),
    ("message_text", Told::Message),
    ("pg_exception_detail", Told::Detail),
    ("pg_exception_hint", Told::Hint),
    ("column_name", Told::Column),
    ("constraint_name", Told::Constraint),
    ("pg_datatype_name", Told::DataType),
    ("table_name", Told::Table),
    ("schema_name", Told::Schema),
];

impl Reader<'_> {
    /// EXECUTE behind that word.
    pub(super) fn execute(&mut self) -> Result<Step> {
        let text = self.expression(&["into", "using"], &[Token::SemiColon])?;
        let (mut targets, mut using) = (None, Vec::new());
        // In either order, each once.
        loop {
            if targets.is_none() && self.take("into") {
                targets = Some(self.listed_targets()?);
            } else if using.is_empty() && self.take("using") {
                using = self.parameters(&["into"])?;
            } else {
                break;
            }
        }
        Ok(Step::Execute {
            executed: Executed { text, using },
            targets: targets.unwrap_or_default(),
        })
    }

    /// EXECUTE of a loop, behind that word.
    pub(super) fn executed_rows(&mut self) -> Result<Executed> {
        let text = self.expression(&["loop", "using"], &[Token::SemiColon])?;
        let using = match self.take("using") {
            true => self.parameters(&["loop"])?,
            false => Vec::new(),
        };
        Ok(Executed { text, using })
    }

    /// What stands behind USING.
    fn parameters(&mut self, ends: &[&str]) -> Result<Vec<String>> {
        let mut all = Vec::new();
        loop {
            all.push(self.expression(ends, &[Token::Comma, Token::SemiColon])?);
            if !self.take_token(&Token::Comma) {
                return Ok(all);
            }
        }
    }

    /// GET behind that word.
    pub(super) fn get(&mut self) -> Result<Step> {
        let stacked = self.take("stacked");
        if !stacked {
            self.take("current");
        }
        self.expect("diagnostics")?;
        let mut items = Vec::new();
        loop {
            let name = self.name()?;
            self.targets(vec![name.clone()], false)?;
            if self.known(&name).is_some_and(Known::is_record) {
                let message = format!("\"{name}\" is not a scalar variable");
                return Err(SqlError::syntax(message));
            }
            if !self.take_token(&Token::Assignment) && !self.take_token(&Token::Eq) {
                return Err(self.peek().map_or_else(ends_early, unexpected));
            }
            items.push((name, self.told(stacked)?));
            if !self.take_token(&Token::Comma) {
                return Ok(Step::Get(items));
            }
        }
    }

    /// An item of GET DIAGNOSTICS.
    fn told(&mut self, stacked: bool) -> Result<Told> {
        let token = self.next().ok_or_else(ends_early)?;
        let item = word_of(token).ok_or_else(|| unexpected(token))?;
        let of_error = OF_ERRORS.iter().find(|(name, _)| *name == item);
        let found = match of_error {
            Some((_, told)) => (*told, true),
            None if item == "row_count" => (Told::RowCount, false),
            None if item == "pg_exception_context" || item == "pg_context" => {
                return Err(super::not_read(&item.to_uppercase()));
            }
            None => return Err(SqlError::syntax("unrecognized GET DIAGNOSTICS item")),
        };
        match found {
            (told, of_error) if of_error == stacked => Ok(told),
            _ => {
                let (item, kind) = (
                    item.to_uppercase(),
                    if stacked { "STACKED" } else { "CURRENT" },
                );
                Err(SqlError::syntax(format!(
                    "diagnostics item {item} is not allowed in GET {kind} DIAGNOSTICS"
                )))
            }
        }
    }
}
