//! The code of DO: what migrations say in it, of PL/pgSQL's statements those without cursors.
//!
//! Read: statements of SQL, `PERFORM`, `EXECUTE`, `IF`, `NULL`, `RAISE`, `RETURN`, blocks in each other with `EXCEPTION`; variables and records, assignments and `INTO` (`code/variables`); loops
//! (`code/loops`), labels, `EXIT` and `CONTINUE`; `CASE` (`code/choices`); `EXECUTE` and `GET DIAGNOSTICS` (`code/executed`). What asks for a cursor is `0A000`.
//!
//! A statement is everything up to its semicolon outside of brackets. It is kept as it stands in the text; that it can be read is seen before any of them runs.
//!
//! Not here: running it (`session/code`).

mod choices;
mod executed;
mod labels;
mod loops;
mod variables;

pub(crate) use executed::{Executed, Told};
pub(crate) use loops::Turns;
pub(crate) use variables::{Declared, DeclaredType, Targets, names_in};

use self::labels::Around;
use self::variables::{Known, split_into};
use super::conditions::{state_of, states_named};
use super::{near, tokens};
use crate::error::{Result, SqlError};
use crate::sqlstate::{self, SqlState};
use sqlparser::ast::Statement;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// Blocks and IFs in each other.
const DEPTH_MAX: usize = 50;

/// A block: its statements, and what is done about their errors.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct CodeBlock {
    /// What EXIT leaves by its label.
    pub number: usize,
    pub declared: Vec<Declared>,
    pub steps: Vec<Step>,
    pub handlers: Vec<Handler>,
}

/// WHEN … THEN.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Handler {
    pub conditions: Vec<Condition>,
    pub steps: Vec<Step>,
}

/// Errors that are handled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Condition {
    /// All that are no end of the whole.
    Others,
    State(SqlState),
}

/// A statement of a block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// A statement of SQL.
    Sql(String),
    /// One whose first row is kept.
    Into {
        text: String,
        targets: Targets,
    },
    /// What stands behind SELECT, whose rows are passed over.
    Perform(String),
    /// A statement that is a value, and where its first row goes.
    Execute {
        executed: Executed,
        targets: Targets,
    },
    /// GET DIAGNOSTICS: variables, and what they are told.
    Get(Vec<(String, Told)>),
    /// A variable takes the value of an expression.
    Assign {
        name: String,
        value: String,
    },
    /// A field of a record does.
    AssignField {
        record: String,
        field: String,
        value: String,
    },
    /// A record takes the row of another; none, for NULL.
    AssignRecord {
        record: String,
        from: Option<String>,
    },
    Loop {
        number: usize,
        turns: Turns,
        steps: Vec<Step>,
    },
    /// EXIT and CONTINUE of the loop, or the block, of that number, where a condition is true.
    Leave {
        number: usize,
        goes_on: bool,
        condition: Option<String>,
    },
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
    /// CASE: the value that is compared, by the name that the conditions have for it. Without ELSE one of them has to be true.
    Case {
        value: Option<(String, String)>,
        branches: Vec<(String, Vec<Step>)>,
        otherwise: Option<Vec<Step>>,
    },
    Block(CodeBlock),
}

/// RAISE.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Raise {
    /// `debug`, `log`, `info`, `notice`, `warning` or `exception`.
    pub level: String,
    /// With `%` for each argument.
    pub format: Option<String>,
    /// In place of a format: the name of an error, or its SQLSTATE, and that.
    pub condition: Option<(String, SqlState)>,
    /// Expressions.
    pub arguments: Vec<String>,
    /// USING: names of options, and expressions.
    pub options: Vec<(String, String)>,
}

/// Reads code. `refuse` is asked of each of its statements of SQL.
///
/// # Errors
/// `42601` for what is no code, or no SQL in it; `0A000` for what is not read; `42704` for names of errors that there are not.
pub(crate) fn code(text: &str, refuse: fn(&Statement) -> Result<()>) -> Result<CodeBlock> {
    let tokens = tokens::of(text)?;
    let mut reader = Reader {
        text,
        starts: tokens::starts(text, &tokens),
        tokens: &tokens,
        at: 0,
        depth: 0,
        around: Vec::new(),
        numbers: 0,
        scope: Vec::new(),
        refuse,
    };
    let label = reader.label()?;
    let block = reader.block(label)?;
    reader.take_token(&Token::SemiColon);
    match reader.peek() {
        None => Ok(block),
        Some(other) => Err(unexpected(other)),
    }
}

/// The target of a SELECT … INTO of a text, if there is one.
///
/// # Errors
/// `42601` for what is no text of SQL.
pub(crate) fn selected_into(text: &str) -> Result<Option<String>> {
    let (mut last, mut first) = (String::new(), String::new());
    for own in tokens::of(text)? {
        match &own.token {
            Token::Whitespace(_) => continue,
            Token::SemiColon => {
                first.clear();
                continue;
            }
            _ => {}
        }
        let word = word_of(&own.token).unwrap_or_default();
        if last == "into" {
            return Ok(Some(own.token.to_string()));
        }
        let inserts = ["insert", "merge", "as", "."].contains(&last.as_str());
        if first.is_empty() {
            first = own.token.to_string().to_lowercase();
        }
        let selects = [
            "select", "with", "values", "table", "(", "insert", "update", "delete", "merge",
        ];
        let selects = selects.contains(&first.as_str());
        last = match word.as_str() {
            "" => own.token.to_string(),
            "into" if inserts || !selects => String::new(),
            _ => word,
        };
    }
    Ok(None)
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
    SqlError::syntax(near(&token.to_string()))
}

#[cold]
fn ends_early() -> SqlError {
    SqlError::syntax("syntax error at end of input")
}

#[cold]
fn not_read(what: &str) -> SqlError {
    SqlError::unsupported(format!("{what} in DO"))
}

/// The only statement of a text.
fn one_statement(text: &str) -> Result<Statement> {
    crate::bind::refuse_kept(text)?;
    let mut statements = super::statements(text)?;
    match (statements.pop(), statements.is_empty()) {
        (Some(statement), true) => Ok(statement),
        _ => Err(SqlError::syntax("a statement of several statements")),
    }
}

/// # Errors
/// `42601` for what is none, or more than one.
fn check_expression(text: &str) -> Result<()> {
    let query = format!("SELECT {text}");
    if selected_into(&query)?.is_some() {
        return Err(SqlError::syntax("query is SELECT INTO"));
    }
    match one_statement(&query)? {
        Statement::Query(_) => Ok(()),
        _ => Err(SqlError::syntax("query is not a SELECT")),
    }
}

/// A literal of text.
fn literal_of(token: &Token) -> Option<&str> {
    match token {
        Token::SingleQuotedString(text)
        | Token::EscapedStringLiteral(text)
        | Token::UnicodeStringLiteral(text) => Some(text),
        Token::DollarQuotedString(text) => Some(&text.value),
        _ => None,
    }
}

/// The options of RAISE that are read.
const OPTIONS: [&str; 4] = ["errcode", "message", "detail", "hint"];

struct Reader<'t> {
    text: &'t str,
    tokens: &'t [TokenWithSpan],
    /// Where they begin in the text.
    starts: Vec<usize>,
    at: usize,
    depth: usize,
    /// Loops and blocks in each other.
    around: Vec<Around>,
    /// How many of them, and of CASEs with a value, there were.
    numbers: usize,
    /// Variables that can be seen.
    scope: Vec<Known>,
    refuse: fn(&Statement) -> Result<()>,
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

    /// The text up to one of these tokens, which stands outside of brackets and of CASE, and which is left there.
    fn text(&mut self, ends: &[&str], tokens: &[Token]) -> Result<String> {
        self.peek();
        let start = self.at;
        let mut end = start;
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
                Token::Assignment if brackets == 0 => return Err(unexpected(token)),
                _ if word == "case" => cases += 1,
                _ if word == "end" => cases = cases.saturating_sub(1),
                _ => {}
            }
            self.at += 1;
            // Comments at the end are left away: they may reach to the end of their line.
            if !matches!(token, Token::Whitespace(_)) {
                end = self.at;
            }
        }
        match end == start {
            true => Err(self.peek().map_or_else(ends_early, unexpected)),
            false => Ok(self.text[self.starts[start]..self.starts[end]].to_owned()),
        }
    }

    /// A statement of SQL up to the semicolon.
    fn statement(&mut self) -> Result<Step> {
        let text = self.text(&[], &[Token::SemiColon])?;
        if let Some(target) = selected_into(&text)? {
            let (text, names, strict) = split_into(&text)?;
            if names.is_empty() {
                return Err(SqlError::syntax(near(&target)));
            }
            let targets = self.targets(names, strict)?;
            (self.refuse)(&one_statement(&text)?)?;
            return Ok(Step::Into { text, targets });
        }
        (self.refuse)(&one_statement(&text)?)?;
        Ok(Step::Sql(text))
    }

    /// An expression, or what else stands behind SELECT.
    fn expression(&mut self, ends: &[&str], tokens: &[Token]) -> Result<String> {
        let text = self.text(ends, tokens)?;
        check_expression(&text)?;
        Ok(text)
    }

    /// A block behind its label.
    fn block(&mut self, label: Option<String>) -> Result<CodeBlock> {
        let number = self.enter(label, false);
        let declared = self.declarations()?;
        self.expect("begin")?;
        let steps = self.steps(&["exception", "end"])?;
        let mut handlers = Vec::new();
        if self.take("exception") {
            while self.take("when") {
                let mut conditions = Vec::new();
                loop {
                    conditions.extend(self.conditions()?);
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
        self.leave_label()?;
        self.scope.truncate(self.scope.len() - declared.len());
        Ok(CodeBlock {
            number,
            declared,
            steps,
            handlers,
        })
    }

    fn conditions(&mut self) -> Result<Vec<Condition>> {
        if self.take("sqlstate") {
            return Ok(vec![Condition::State(self.state()?)]);
        }
        let token = self.next().ok_or_else(ends_early)?;
        let name = word_of(token).ok_or_else(|| unexpected(token))?;
        if name == "others" {
            return Ok(vec![Condition::Others]);
        }
        let states = states_named(&name)?.into_iter();
        Ok(states.map(Condition::State).collect())
    }

    /// The literal behind SQLSTATE.
    fn state(&mut self) -> Result<SqlState> {
        let token = self.next().ok_or_else(ends_early)?;
        let text = literal_of(token).ok_or_else(|| unexpected(token))?;
        state_of(text).ok_or_else(|| SqlError::syntax("invalid SQLSTATE code"))
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
        let label = self.label()?;
        let word = self.peek_word().unwrap_or_default();
        let labelled = ["declare", "begin", "for", "foreach", "while", "loop"];
        if label.is_some() && !labelled.contains(&word.as_str()) {
            return Err(self.peek().map_or_else(ends_early, unexpected));
        }
        if let Some(step) = self.assignment()? {
            self.end_of_statement()?;
            return Ok(step);
        }
        let step = match word.as_str() {
            "declare" | "begin" => Step::Block(self.block(label)?),
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
                Step::Perform(self.expression(&[], &[Token::SemiColon])?)
            }
            "execute" => {
                self.at += 1;
                self.execute()?
            }
            "get" => {
                self.at += 1;
                self.get()?
            }
            "case" => {
                self.at += 1;
                self.case()?
            }
            "for" | "foreach" | "while" | "loop" => {
                self.at += 1;
                self.loop_of(&word, label)?
            }
            "exit" | "continue" => {
                self.at += 1;
                self.leave(&word)?
            }
            "open" | "fetch" | "move" | "close" | "assert" | "call" | "commit" | "rollback" => {
                return Err(not_read(&word.to_uppercase()));
            }
            _ => self.statement()?,
        };
        self.end_of_statement()?;
        Ok(step)
    }

    fn raise(&mut self) -> Result<Step> {
        if self.peek() == Some(&Token::SemiColon) {
            return Ok(Step::RaiseAgain);
        }
        let levels = ["debug", "log", "info", "notice", "warning", "exception"];
        let found = levels.into_iter().find(|level| self.take(level));
        let mut raise = Raise {
            level: found.unwrap_or("exception").to_owned(),
            format: None,
            condition: None,
            arguments: Vec::new(),
            options: Vec::new(),
        };
        if let Some(format) = self.peek().and_then(literal_of) {
            self.at += 1;
            raise.format = Some(format.to_owned());
        } else if self.take("sqlstate") {
            let state = self.state()?;
            raise.condition = Some((state.as_str().to_owned(), state));
        } else if self.peek_word().as_deref() != Some("using") {
            let token = self.next().ok_or_else(ends_early)?;
            let name = word_of(token).ok_or_else(|| unexpected(token))?;
            let state = states_named(&name)?[0];
            raise.condition = Some((name, state));
        }
        while raise.format.is_some() && self.take_token(&Token::Comma) {
            let argument = self.expression(&["using"], &[Token::Comma, Token::SemiColon])?;
            raise.arguments.push(argument);
        }
        if self.take("using") {
            loop {
                let option = self.option(&raise)?;
                raise.options.push(option);
                if !self.take_token(&Token::Comma) {
                    break;
                }
            }
        }
        let format = raise.format.as_deref().unwrap_or_default();
        let places = format.replace("%%", "").matches('%').count();
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

    /// An option of USING, with its expression.
    fn option(&mut self, raise: &Raise) -> Result<(String, String)> {
        let token = self.next().ok_or_else(ends_early)?;
        let name = word_of(token).ok_or_else(|| unexpected(token))?;
        if ["column", "constraint", "datatype", "table", "schema"].contains(&name.as_str()) {
            return Err(not_read(&format!("{} of RAISE", name.to_uppercase())));
        }
        if !OPTIONS.contains(&name.as_str()) {
            return Err(SqlError::syntax("unrecognized RAISE statement option"));
        }
        if !self.take_token(&Token::Eq) && !self.take_token(&Token::Assignment) {
            return Err(self.peek().map_or_else(ends_early, unexpected));
        }
        let said = match name.as_str() {
            "message" => raise.format.is_some(),
            "errcode" => raise.condition.is_some(),
            _ => false,
        };
        if said || raise.options.iter().any(|(own, _)| *own == name) {
            let name = name.to_uppercase();
            let text = format!("RAISE option already specified: {name}");
            return Err(SqlError::new(sqlstate::SYNTAX_ERROR, text));
        }
        let value = self.expression(&[], &[Token::Comma, Token::SemiColon])?;
        Ok((name, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_end_at_semicolons_outside_of_brackets_and_literals() {
        let read = code(
            "begin -- a note; no end\n insert into t values (';', $q$;$q$); if case when true then 1 else 2 end = 1 then null; end if; \
             perform f((select 1)) -- b; end
 ; end",
            |_| Ok(()),
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
    fn what_is_no_code_or_is_not_read_is_refused() {
        let state = |text: &str| {
            code(text, |_| Ok(()))
                .unwrap_err()
                .sqlstate()
                .as_str()
                .to_owned()
        };
        for text in [
            "",
            "begin",
            "begin null end",
            "begin null; end; x",
            "begin ; end",
            "begin if 1 then null; end; end",
            "begin a := 1; end",
            "begin select 1 into a; end",
            "begin exit; end",
            "begin loop end; end",
            "declare a int; a text; begin end",
            "declare a int; begin a int := 2; end",
            "begin for a in select 1 loop end loop; end",
            "declare a int; begin for a in reverse select 1 loop end loop; end",
            "begin declare a int; begin end; a := 1; end",
        ] {
            assert_eq!(state(text), "42601", "{text}");
        }
        for text in [
            "declare a refcursor; begin end",
            "declare a record; begin a := row(1); end",
            "declare a int[]; begin a[1] := 1; end",
            "declare a t%rowtype; begin end",
            "begin assert true; end",
        ] {
            assert_eq!(state(text), "0A000", "{text}");
        }
        let deep = format!("{}{}", "begin ".repeat(99), "end; ".repeat(99));
        assert_eq!(state(&deep), "54001");
    }
}
