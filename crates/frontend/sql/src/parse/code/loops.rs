//! Loops of code.

use super::variables::{DeclaredType, Known, Targets};
use super::{Executed, Reader, Step, check_expression, not_read, one_statement, word_of};
use crate::error::{Result, SqlError};
use crate::parse::tokens;
use sqlparser::tokenizer::Token;

/// How often the statements of a loop are run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Turns {
    Forever,
    /// While a condition is true.
    While(String),
    /// For each whole number from one to another.
    Range {
        name: String,
        reverse: bool,
        from: String,
        to: String,
        by: Option<String>,
    },
    /// For each row of a query.
    Rows {
        targets: Targets,
        query: String,
    },
    /// The same of a query that is the value of an expression.
    Executed {
        targets: Targets,
        executed: Executed,
    },
    /// For each element of an array.
    Elements {
        name: String,
        array: String,
    },
}

impl Reader<'_> {
    /// A loop behind its first word.
    pub(super) fn loop_of(&mut self, word: &str, label: Option<String>) -> Result<Step> {
        let number = self.enter(label, true);
        let seen = self.scope.len();
        let turns = match word {
            "loop" => Turns::Forever,
            "while" => {
                let condition = self.expression(&["loop"], &[Token::SemiColon])?;
                self.expect("loop")?;
                Turns::While(condition)
            }
            "foreach" => {
                let turns = self.elements()?;
                self.expect("loop")?;
                turns
            }
            _ => {
                let turns = self.turns_of_for()?;
                self.expect("loop")?;
                turns
            }
        };
        let steps = self.steps(&["end"])?;
        self.scope.truncate(seen);
        self.expect("end")?;
        self.expect("loop")?;
        self.leave_label()?;
        Ok(Step::Loop {
            number,
            turns,
            steps,
        })
    }

    /// FOREACH behind that word.
    fn elements(&mut self) -> Result<Turns> {
        let name = self.name()?;
        if self.known(&name).is_none() || self.peek() == Some(&Token::Comma) {
            let several = self.peek() == Some(&Token::Comma);
            if several {
                return Err(not_read("FOREACH of several variables"));
            }
            let text = "loop variable of FOREACH must be a known variable or list of variables";
            return Err(SqlError::syntax(text));
        }
        self.targets(vec![name.clone()], false)?;
        if self.take("slice") {
            return Err(not_read("SLICE"));
        }
        self.expect("in")?;
        self.expect("array")?;
        let array = self.expression(&["loop"], &[Token::SemiColon])?;
        Ok(Turns::Elements { name, array })
    }

    fn turns_of_for(&mut self) -> Result<Turns> {
        let mut names = vec![self.name()?];
        while self.take_token(&Token::Comma) {
            names.push(self.name()?);
        }
        self.expect("in")?;
        if self.take("execute") {
            let executed = self.executed_rows()?;
            let targets = self.targets_of_loop(names)?;
            return Ok(Turns::Executed { targets, executed });
        }
        let reverse = self.take("reverse");
        let said = self.text(&["loop"], &[Token::SemiColon])?;
        if let (Some(range), [name]) = (split_range(&said)?, &names[..]) {
            let [from, to] = range.ends;
            for text in [&from, &to].into_iter().chain(&range.by) {
                check_expression(text)?;
            }
            let name = name.clone();
            self.scope.push(Known {
                name: name.clone(),
                ty: DeclaredType::Written("integer".to_owned()),
                constant: false,
            });
            return Ok(Turns::Range {
                name,
                reverse,
                from,
                to,
                by: range.by,
            });
        }
        if reverse {
            return Err(SqlError::syntax("cannot specify REVERSE in query FOR loop"));
        }
        (self.refuse)(&one_statement(&said)?)?;
        let targets = self.targets_of_loop(names)?;
        Ok(Turns::Rows {
            targets,
            query: said,
        })
    }

    fn targets_of_loop(&self, names: Vec<String>) -> Result<Targets> {
        if names.iter().any(|name| self.known(name).is_none()) {
            let text = "loop variable of loop over rows must be a record variable or list of scalar variables";
            return Err(SqlError::syntax(text));
        }
        self.targets(names, false)
    }
}

/// `from .. to [BY step]`.
struct Said {
    ends: [String; 2],
    by: Option<String>,
}

/// What is no query, behind IN of a loop: two points stand in it, outside of brackets and literals.
fn split_range(said: &str) -> Result<Option<Said>> {
    let all = tokens::of(said)?;
    let starts = tokens::starts(said, &all);
    let (mut depth, mut points, mut by) = (0usize, None, None);
    for (at, own) in all.iter().enumerate() {
        match &own.token {
            Token::LParen | Token::LBracket => depth += 1,
            Token::RParen | Token::RBracket => depth = depth.saturating_sub(1),
            // `1.` is a number, too.
            Token::Number(..) | Token::Period if depth == 0 && points.is_none() => {
                let mut places = starts[at]..starts[at + 1];
                points = places.find(|place| said.as_bytes()[*place..].starts_with(b".."));
            }
            token if depth == 0 && points.is_some() && word_of(token).as_deref() == Some("by") => {
                by = Some((starts[at], starts[at + 1]));
            }
            _ => {}
        }
    }
    Ok(points.map(|points| Said {
        ends: [
            said[..points].to_owned(),
            said[points + 2..by.map_or(said.len(), |by| by.0)].to_owned(),
        ],
        by: by.map(|by| said[by.1..].to_owned()),
    }))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    #[test]
    fn ranges_are_told_from_queries() {
        for (said, wanted) in [
            ("1..10", Some(("1", "10", None))),
            ("a .. b + 1", Some(("a ", " b + 1", None))),
            (
                "1.5..f('..', 2) by 2",
                Some(("1.5", "f('..', 2) ", Some(" 2"))),
            ),
            ("n..(select 1..2)", Some(("n", "(select 1..2)", None))),
            ("select '..' from a.b", None),
            ("(select 1..2)", None),
        ] {
            let read = split_range(said).unwrap();
            let read = read.map(|read| (read.ends, read.by));
            let wanted = wanted
                .map(|(from, to, by)| ([from.to_owned(), to.to_owned()], by.map(str::to_owned)));
            assert_eq!(read, wanted, "{said}");
        }
    }
}
