//! Labels of loops and blocks, and what leaves these.

use super::{Reader, Step, ends_early, unexpected};
use crate::error::{Result, SqlError};
use sqlparser::tokenizer::Token;

/// A loop or a block while it is read.
#[derive(Debug)]
pub(super) struct Around {
    number: usize,
    label: Option<String>,
    is_loop: bool,
}

impl Reader<'_> {
    /// `<<name>>`, if that comes next.
    pub(super) fn label(&mut self) -> Result<Option<String>> {
        if !self.take_token(&Token::ShiftLeft) {
            return Ok(None);
        }
        let name = self.name()?;
        match self.take_token(&Token::ShiftRight) {
            true => Ok(Some(name)),
            false => Err(self.peek().map_or_else(ends_early, unexpected)),
        }
    }

    /// A loop or a block begins; the number by which it is left.
    pub(super) fn enter(&mut self, label: Option<String>, is_loop: bool) -> usize {
        self.numbers += 1;
        self.around.push(Around {
            number: self.numbers,
            label,
            is_loop,
        });
        self.numbers
    }

    /// One ends: its label may be said again.
    ///
    /// # Errors
    /// `42601` for another.
    pub(super) fn leave_label(&mut self) -> Result<()> {
        let own = self.around.pop().and_then(|around| around.label);
        if matches!(self.peek(), None | Some(Token::SemiColon)) {
            return Ok(());
        }
        let said = self.name()?;
        let message = match own {
            Some(own) if own == said => return Ok(()),
            Some(own) => format!("end label \"{said}\" differs from block's label \"{own}\""),
            None => format!("end label \"{said}\" specified for unlabeled block"),
        };
        Err(SqlError::syntax(message))
    }

    /// EXIT or CONTINUE behind that word.
    pub(super) fn leave(&mut self, word: &str) -> Result<Step> {
        let goes_on = word == "continue";
        let bare =
            self.peek() == Some(&Token::SemiColon) || self.peek_word().as_deref() == Some("when");
        let label = match bare {
            true => None,
            false => Some(self.name()?),
        };
        let condition = match self.take("when") {
            true => Some(self.expression(&[], &[Token::SemiColon])?),
            false => None,
        };
        let mut around = self.around.iter().rev();
        let found = match &label {
            Some(label) => around.find(|own| own.label.as_ref() == Some(label)),
            None => around.find(|own| own.is_loop),
        };
        let message = match (found, label) {
            (Some(own), _) if own.is_loop || !goes_on => {
                return Ok(Step::Leave {
                    number: own.number,
                    goes_on,
                    condition,
                });
            }
            (Some(_), label) => {
                let label = label.unwrap_or_default();
                format!("block label \"{label}\" cannot be used in CONTINUE")
            }
            (None, Some(label)) => format!(
                "there is no label \"{label}\" attached to any block or loop enclosing this statement"
            ),
            (None, None) if goes_on => "CONTINUE cannot be used outside a loop".to_owned(),
            (None, None) => "EXIT cannot be used outside a loop, unless it has a label".to_owned(),
        };
        Err(SqlError::syntax(message))
    }
}
