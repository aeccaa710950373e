//! IF and CASE.

use super::{Reader, Step, check_expression, ends_early, unexpected};
use crate::error::Result;
use sqlparser::tokenizer::Token;

impl Reader<'_> {
    /// IF behind that word.
    pub(super) fn choice(&mut self) -> Result<Step> {
        let (mut branches, mut otherwise) = (Vec::new(), Vec::new());
        loop {
            let condition = self.expression(&["then"], &[Token::SemiColon])?;
            self.expect("then")?;
            let steps = self.steps(&["elsif", "elseif", "else", "end"])?;
            branches.push((condition, steps));
            if !self.take("elsif") && !self.take("elseif") {
                break;
            }
        }
        if self.take("else") {
            otherwise = self.steps(&["end"])?;
        }
        self.expect("end")?;
        self.expect("if")?;
        Ok(Step::If {
            branches,
            otherwise,
        })
    }

    /// CASE behind that word. Where a value is compared, it is kept, by a name of its own, for what it is compared with.
    pub(super) fn case(&mut self) -> Result<Step> {
        let mut value = None;
        if self.peek_word().as_deref() != Some("when") {
            let text = self.expression(&["when"], &[Token::SemiColon])?;
            self.numbers += 1;
            value = Some((format!("__Case__Variable_{}__", self.numbers), text));
        }
        let mut branches = Vec::new();
        while self.take("when") {
            // A list that closes no bracket but its own.
            let text = self.expression(&["then"], &[Token::SemiColon])?;
            let condition = match &value {
                Some((name, _)) => format!("\"{name}\" IN ({text})"),
                None => text,
            };
            check_expression(&condition)?;
            self.expect("then")?;
            let steps = self.steps(&["when", "else", "end"])?;
            branches.push((condition, steps));
        }
        if branches.is_empty() {
            return Err(self.peek().map_or_else(ends_early, unexpected));
        }
        let otherwise = match self.take("else") {
            true => Some(self.steps(&["end"])?),
            false => None,
        };
        self.expect("end")?;
        self.expect("case")?;
        Ok(Step::Case {
            value,
            branches,
            otherwise,
        })
    }
}
