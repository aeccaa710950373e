//! The code of DO: what migrations say in it, of PL/pgSQL's statements those without variables.
//!
//! Read: statements of SQL, `PERFORM`, `EXECUTE`, `IF`, `NULL`, `RAISE`, `RETURN`, blocks in each other with `EXCEPTION`. What asks for a variable, a loop or a cursor is `0A000`.
//!
//! A statement is everything up to its semicolon outside of brackets; it is kept as text, and read when it runs.
//!
//! Not here: running it (`session/code`).

use super::tokens;
use crate::error::{Result, SqlError};
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// Blocks and IFs in each other.
const DEPTH_MAX: usize = 50;

/// A block: its statements, and what is done about their errors.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct CodeBlock {
    pub steps: Vec<Step>,
    pub handlers: Vec<Handler>,
}

/// WHEN … THEN.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Handler {
    pub conditions: Vec<Condition>,
    pub steps: Vec<Step>,
}

/// An error that is handled.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Condition {
    /// By name.
    Named(String),
    /// By its SQLSTATE.
    State(String),
}

/// A statement of a block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// A statement of SQL.
    Sql(String),
    /// What stands behind SELECT, whose rows are passed over.
    Perform(String),
    /// An expression whose value is a statement.
    Execute(String),
    Nothing,
    Return,
    Raise(Raise),
    /// The error that is being handled, again.
    RaiseAgain,
    /// Conditions with what is done where the first of them is true.
    If {
        branches: Vec<(String, Vec<Step>)>,
        otherwise: Vec<Step>,
    },
    Block(CodeBlock),
}

/// RAISE.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Raise {
    /// `debug`, `log`, `info`, `notice`, `warning` or `exception`.
    pub level: String,
    /// With `%` for each argument.
    pub format: String,
    /// Expressions.
    pub arguments: Vec<String>,
    /// USING: names of options, and expressions.
    pub options: Vec<(String, String)>,
}

/// Reads code.
///
/// # Errors
/// `42601` for what is no code; `0A000` for what is not read.
pub(crate) fn code(text: &str) -> Result<CodeBlock> {
    let tokens = tokens::of(text)?;
    let mut reader = Reader {
        tokens: &tokens,
        at: 0,
        depth: 0,
    };
    reader.variables()?;
    reader.expect("begin")?;
    let block = reader.block()?;
    reader.take_token(&Token::SemiColon);
    match reader.peek() {
        None => Ok(block),
        Some(other) => Err(unexpected(other)),
    }
}

/// An expression with these words, where they stand unquoted, in place of values.
///
/// # Errors
/// `42601` for what is no text of SQL.
pub(crate) fn with_values(text: &str, values: &[(&str, String)]) -> Result<String> {
    let mut out = String::with_capacity(text.len());
    for own in tokens::of(text)? {
        let word = word_of(&own.token);
        let value = values
            .iter()
            .find(|(name, _)| word.as_deref() == Some(name));
        match value {
            Some((_, value)) => out.push_str(&format!("'{}'", value.replace('\'', "''"))),
            None => out.push_str(&tokens::written(&own.token)),
        }
    }
    Ok(out)
}

/// An unquoted word, in small letters.
fn word_of(token: &Token) -> Option<String> {
    match token {
        Token::Word(word) if word.quote_style.is_none() => Some(word.value.to_lowercase()),
        _ => None,
    }
}

#[cold]
fn unexpected(token: &Token) -> SqlError {
    SqlError::syntax(format!("syntax error at or near \"{token}\""))
}

#[cold]
fn ends_early() -> SqlError {
    SqlError::syntax("syntax error at end of input")
}

#[cold]
fn not_read(what: &str) -> SqlError {
    SqlError::unsupported(format!("{what} in DO"))
}

struct Reader<'t> {
    tokens: &'t [TokenWithSpan],
    at: usize,
    depth: usize,
}

impl<'t> Reader<'t> {
    /// The next token that is no blank.
    fn peek(&mut self) -> Option<&'t Token> {
        loop {
            match &self.tokens.get(self.at)?.token {
                Token::Whitespace(_) => self.at += 1,
                Token::EOF => return None,
                token => return Some(token),
            }
        }
    }

    fn next(&mut self) -> Option<&'t Token> {
        let token = self.peek()?;
        self.at += 1;
        Some(token)
    }

    fn peek_word(&mut self) -> Option<String> {
        self.peek().and_then(word_of)
    }

    fn take(&mut self, word: &str) -> bool {
        let found = self.peek_word().as_deref() == Some(word);
        self.at += usize::from(found);
        found
    }

    fn take_token(&mut self, token: &Token) -> bool {
        let found = self.peek() == Some(token);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, word: &str) -> Result<()> {
        match self.take(word) {
            true => Ok(()),
            false => Err(self.peek().map_or_else(ends_early, unexpected)),
        }
    }

    fn end_of_statement(&mut self) -> Result<()> {
        match self.take_token(&Token::SemiColon) {
            true => Ok(()),
            false => Err(self.peek().map_or_else(ends_early, unexpected)),
        }
    }

    /// DECLARE without a declaration.
    fn variables(&mut self) -> Result<()> {
        if self.take("declare") && self.peek_word().as_deref() != Some("begin") {
            return Err(not_read("a variable"));
        }
        Ok(())
    }

    /// The text up to one of these tokens, which stands outside of brackets and of CASE, and which is left there.
    fn text(&mut self, ends: &[&str], tokens: &[Token]) -> Result<String> {
        self.peek();
        let mut text = String::new();
        let (mut brackets, mut cases) = (0usize, 0usize);
        loop {
            let token = match self.tokens.get(self.at).map(|own| &own.token) {
                None | Some(Token::EOF) => return Err(ends_early()),
                Some(token) => token,
            };
            let word = word_of(token);
            let word = word.as_deref().unwrap_or_default();
            if brackets == 0 && (tokens.contains(token) || cases == 0 && ends.contains(&word)) {
                break;
            }
            match token {
                Token::LParen | Token::LBracket => brackets += 1,
                Token::RParen | Token::RBracket => brackets = brackets.saturating_sub(1),
                Token::Assignment if brackets == 0 => return Err(not_read("a variable")),
                _ if word == "case" => cases += 1,
                _ if word == "end" => cases = cases.saturating_sub(1),
                _ => {}
            }
            text.push_str(&tokens::written(token));
            self.at += 1;
        }
        let text = text.trim();
        match text.is_empty() {
            true => Err(self.peek().map_or_else(ends_early, unexpected)),
            false => Ok(text.to_owned()),
        }
    }

    /// A block behind its BEGIN, with its END.
    fn block(&mut self) -> Result<CodeBlock> {
        let steps = self.steps(&["exception", "end"])?;
        let mut handlers = Vec::new();
        if self.take("exception") {
            while self.take("when") {
                let mut conditions = Vec::new();
                loop {
                    conditions.push(self.condition()?);
                    if !self.take("or") {
                        break;
                    }
                }
                self.expect("then")?;
                let steps = self.steps(&["when", "end"])?;
                handlers.push(Handler { conditions, steps });
            }
            if handlers.is_empty() {
                return Err(self.peek().map_or_else(ends_early, unexpected));
            }
        }
        self.expect("end")?;
        Ok(CodeBlock { steps, handlers })
    }

    fn condition(&mut self) -> Result<Condition> {
        if self.take("sqlstate") {
            return match self.next() {
                Some(Token::SingleQuotedString(state)) => Ok(Condition::State(state.clone())),
                other => Err(other.map_or_else(ends_early, unexpected)),
            };
        }
        let token = self.next().ok_or_else(ends_early)?;
        let name = word_of(token).ok_or_else(|| unexpected(token))?;
        Ok(Condition::Named(name))
    }

    /// Statements up to one of these words, which is left there.
    fn steps(&mut self, ends: &[&str]) -> Result<Vec<Step>> {
        if self.depth >= DEPTH_MAX {
            return Err(super::too_deep());
        }
        self.depth += 1;
        let mut steps = Vec::new();
        loop {
            let word = self.peek_word();
            if word.is_some_and(|word| ends.contains(&&*word)) {
                break;
            }
            if self.peek().is_none() {
                return Err(ends_early());
            }
            steps.push(self.step()?);
        }
        self.depth -= 1;
        Ok(steps)
    }

    fn step(&mut self) -> Result<Step> {
        if self.peek() == Some(&Token::ShiftLeft) {
            return Err(not_read("a label"));
        }
        let word = self.peek_word().unwrap_or_default();
        let step = match word.as_str() {
            "declare" => {
                self.variables()?;
                return self.step();
            }
            "begin" => {
                self.at += 1;
                Step::Block(self.block()?)
            }
            "if" => {
                self.at += 1;
                self.choice()?
            }
            "null" => {
                self.at += 1;
                Step::Nothing
            }
            "return" => {
                self.at += 1;
                Step::Return
            }
            "raise" => {
                self.at += 1;
                self.raise()?
            }
            "perform" => {
                self.at += 1;
                Step::Perform(self.text(&[], &[Token::SemiColon])?)
            }
            "execute" => {
                self.at += 1;
                let text = self.text(&["into", "using"], &[Token::SemiColon])?;
                if self.peek() != Some(&Token::SemiColon) {
                    return Err(not_read("EXECUTE with INTO or USING"));
                }
                Step::Execute(text)
            }
            "for" | "foreach" | "while" | "loop" | "case" | "exit" | "continue" | "open"
            | "fetch" | "move" | "close" | "get" | "assert" | "call" | "commit" | "rollback" => {
                return Err(not_read(&word.to_uppercase()));
            }
            _ => Step::Sql(self.text(&[], &[Token::SemiColon])?),
        };
        self.end_of_statement()?;
        Ok(step)
    }

    fn choice(&mut self) -> Result<Step> {
        let (mut branches, mut otherwise) = (Vec::new(), Vec::new());
        loop {
            let condition = self.text(&["then"], &[Token::SemiColon])?;
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

    fn raise(&mut self) -> Result<Step> {
        if self.peek() == Some(&Token::SemiColon) {
            return Ok(Step::RaiseAgain);
        }
        let levels = ["debug", "log", "info", "notice", "warning", "exception"];
        let found = levels.into_iter().find(|level| self.take(level));
        let Some(Token::SingleQuotedString(format)) = self.peek() else {
            return Err(not_read("RAISE without a text"));
        };
        self.at += 1;
        let mut raise = Raise {
            level: found.unwrap_or("exception").to_owned(),
            format: format.clone(),
            arguments: Vec::new(),
            options: Vec::new(),
        };
        while self.take_token(&Token::Comma) {
            let argument = self.text(&["using"], &[Token::Comma, Token::SemiColon])?;
            raise.arguments.push(argument);
        }
        if self.take("using") {
            loop {
                let name = self.peek_word().unwrap_or_default();
                self.at += 1;
                if !self.take_token(&Token::Eq) {
                    return Err(self.peek().map_or_else(ends_early, unexpected));
                }
                let value = self.text(&[], &[Token::Comma, Token::SemiColon])?;
                raise.options.push((name, value));
                if !self.take_token(&Token::Comma) {
                    break;
                }
            }
        }
        let places = raise.format.replace("%%", "").matches('%').count();
        match places.cmp(&raise.arguments.len()) {
            std::cmp::Ordering::Equal => Ok(Step::Raise(raise)),
            std::cmp::Ordering::Less => {
                Err(SqlError::syntax("too many parameters specified for RAISE"))
            }
            std::cmp::Ordering::Greater => {
                Err(SqlError::syntax("too few parameters specified for RAISE"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_end_at_semicolons_outside_of_brackets_and_literals() {
        let read = code(
            "begin -- a note; no end\n insert into t values (';', $q$;$q$); if case when true then 1 else 2 end = 1 then null; end if; \
             perform f((select 1)); end",
        );
        let block = read.unwrap();
        let [
            Step::Sql(insert),
            Step::If { branches, .. },
            Step::Perform(perform),
        ] = block.steps.as_slice()
        else {
            panic!("{block:?}");
        };
        assert_eq!(insert, "insert into t values (';', $q$;$q$)");
        assert_eq!(branches[0].0, "case when true then 1 else 2 end = 1");
        assert_eq!(perform, "f((select 1))");
    }

    #[test]
    fn what_is_no_code_or_asks_for_variables_is_refused() {
        let state = |text| code(text).unwrap_err().sqlstate().as_str().to_owned();
        for text in [
            "",
            "begin",
            "begin null end",
            "begin null; end; x",
            "begin ; end",
            "begin if 1 then null; end; end",
        ] {
            assert_eq!(state(text), "42601", "{text}");
        }
        for text in [
            "declare a int; begin end",
            "begin a := 1; end",
            "begin for i in 1..2 loop end loop; end",
            "begin execute 'x' using 1; end",
        ] {
            assert_eq!(state(text), "0A000", "{text}");
        }
        let deep = format!("{}{}", "begin ".repeat(99), "end; ".repeat(99));
        assert_eq!(state(&deep), "54001");
    }
}
