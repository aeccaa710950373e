//! Variables of code: their declarations, assignments, and INTO.

use super::{Reader, Step, ends_early, not_read, one_statement, unexpected, word_of};
use crate::bind::folded_word;
use crate::error::{Result, SqlError};
use crate::parse::tokens;
use sqlparser::tokenizer::{Token, TokenWithSpan};
use std::collections::BTreeSet;

/// A variable of a block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Declared {
    pub name: String,
    pub ty: DeclaredType,
    pub constant: bool,
    pub not_null: bool,
    /// The expression of its first value.
    pub initial: Option<String>,
}

/// What a variable is declared as.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum DeclaredType {
    Record,
    /// A type as it was written.
    Written(String),
    /// `relation.column%TYPE`: as the column is, when the block begins.
    OfColumn {
        relation: String,
        column: String,
    },
}

/// Where the values of a row go: a record, or a list of variables.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Targets {
    pub names: Vec<String>,
    /// Whether there has to be one row, and no more.
    pub strict: bool,
}

/// What is known of a variable while code is read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Known {
    pub name: String,
    pub ty: DeclaredType,
    pub constant: bool,
}

impl Known {
    pub(super) fn is_record(&self) -> bool {
        self.ty == DeclaredType::Record
    }
}

/// A name as statements fold it.
fn name_of(token: &Token) -> Option<String> {
    match token {
        Token::Word(word) => Some(folded_word(&word.value, word.quote_style.is_some())),
        _ => None,
    }
}

/// The words of a text, folded: what is none of them it does not name.
///
/// # Errors
/// `42601` for what is no text of SQL.
pub(crate) fn names_in(text: &str) -> Result<BTreeSet<String>> {
    let all = tokens::of(text)?;
    Ok(all.iter().filter_map(|own| name_of(&own.token)).collect())
}

impl Reader<'_> {
    pub(super) fn name(&mut self) -> Result<String> {
        let token = self.next().ok_or_else(ends_early)?;
        name_of(token).ok_or_else(|| unexpected(token))
    }

    /// A variable that can be seen from here.
    pub(super) fn known(&self, name: &str) -> Option<&Known> {
        self.scope.iter().rev().find(|known| known.name == name)
    }

    /// DECLARE with its declarations, if there is one.
    pub(super) fn declarations(&mut self) -> Result<Vec<Declared>> {
        let mut all: Vec<Declared> = Vec::new();
        if !self.take("declare") {
            return Ok(all);
        }
        while !matches!(self.peek_word().as_deref(), Some("begin")) {
            // It may be said again.
            if self.take("declare") {
                continue;
            }
            let declared = self.declaration()?;
            if all.iter().any(|own| own.name == declared.name) {
                return Err(SqlError::syntax("duplicate declaration"));
            }
            self.scope.push(Known {
                name: declared.name.clone(),
                ty: declared.ty.clone(),
                constant: declared.constant,
            });
            all.push(declared);
        }
        Ok(all)
    }

    fn declaration(&mut self) -> Result<Declared> {
        let name = self.name()?;
        let constant = self.take("constant");
        let word = self.peek_word().unwrap_or_default();
        if ["alias", "cursor", "refcursor", "no", "scroll"].contains(&word.as_str()) {
            return Err(not_read(&word.to_uppercase()));
        }
        let ends = [Token::Assignment, Token::Eq, Token::SemiColon];
        let text = self.text(&["not", "default", "collate"], &ends)?;
        let ty = match text.contains('%') {
            true => self.type_like(&text)?,
            false if text.eq_ignore_ascii_case("record") => DeclaredType::Record,
            false => {
                one_statement(&format!("SELECT CAST(NULL AS {text})"))?;
                DeclaredType::Written(text)
            }
        };
        let record = ty == DeclaredType::Record;
        if self.take("collate") {
            return Err(not_read("COLLATE of a variable"));
        }
        let not_null = self.take("not");
        if not_null {
            self.expect("null")?;
        }
        let mut initial = None;
        if self.take("default")
            || self.take_token(&Token::Assignment)
            || self.take_token(&Token::Eq)
        {
            initial = Some(self.expression(&[], &[Token::SemiColon])?);
        }
        if record && (initial.is_some() || not_null || constant) {
            return Err(not_read("a value of a record"));
        }
        if not_null && initial.is_none() {
            let message = format!(
                "variable \"{name}\" must have a default value, since it's declared NOT NULL"
            );
            let state = crate::sqlstate::NULL_VALUE_NOT_ALLOWED;
            return Err(SqlError::new(state, message));
        }
        self.end_of_statement()?;
        Ok(Declared {
            name,
            ty,
            constant,
            not_null,
            initial,
        })
    }

    /// `variable%TYPE`, `relation.column%TYPE`.
    ///
    /// # Errors
    /// `42601` for no variable.
    fn type_like(&self, text: &str) -> Result<DeclaredType> {
        let all = tokens::of(text)?;
        let spoken = |own: &&TokenWithSpan| !matches!(own.token, Token::Whitespace(_) | Token::EOF);
        let spoken: Vec<&Token> = all.iter().filter(spoken).map(|own| &own.token).collect();
        let wrong = || unexpected(&Token::Mod);
        let [names @ .., Token::Mod, last] = spoken.as_slice() else {
            return Err(wrong());
        };
        match word_of(last).as_deref() {
            Some("type") => {}
            Some("rowtype") => return Err(not_read("%ROWTYPE")),
            _ => return Err(wrong()),
        }
        match names {
            [own] => {
                let name = name_of(own).ok_or_else(wrong)?;
                match self.known(&name) {
                    Some(known) if !known.is_record() => Ok(known.ty.clone()),
                    None if name == "found" => Ok(DeclaredType::Written("boolean".to_owned())),
                    _ => Err(wrong()),
                }
            }
            [relation @ .., Token::Period, column] => {
                let written = relation.iter().map(|own| tokens::written(own));
                Ok(DeclaredType::OfColumn {
                    relation: written.collect(),
                    column: name_of(column).ok_or_else(wrong)?,
                })
            }
            _ => Err(wrong()),
        }
    }

    /// `name := expression`, if that comes next. `=` says the same behind the name of a variable.
    pub(super) fn assignment(&mut self) -> Result<Option<Step>> {
        let from = self.at;
        let Some(name) = self.peek().and_then(name_of) else {
            return Ok(None);
        };
        self.at += 1;
        let known = self.known(&name).cloned();
        let sign = self.peek();
        let assigns =
            sign == Some(&Token::Assignment) || known.is_some() && sign == Some(&Token::Eq);
        if !assigns {
            let part = known.filter(|_| matches!(sign, Some(Token::Period | Token::LBracket)));
            return match part {
                Some(known) if known.is_record() && sign == Some(&Token::Period) => {
                    self.field_assignment(name).map(Some)
                }
                Some(_) => Err(not_read("a part of a variable that is assigned to")),
                None => {
                    self.at = from;
                    Ok(None)
                }
            };
        }
        self.at += 1;
        let known = known.ok_or_else(|| unknown(&name))?;
        if known.is_record() {
            let value = self.expression(&[], &[Token::SemiColon])?;
            return self.record_assignment(name, &value).map(Some);
        }
        check_changes(&known)?;
        let value = self.expression(&[], &[Token::SemiColon])?;
        Ok(Some(Step::Assign { name, value }))
    }

    /// `record.field := expression` behind the record.
    fn field_assignment(&mut self, record: String) -> Result<Step> {
        self.take_token(&Token::Period);
        let field = self.name()?;
        if !self.take_token(&Token::Assignment) && !self.take_token(&Token::Eq) {
            return Err(not_read("a part of a variable that is assigned to"));
        }
        let value = self.expression(&[], &[Token::SemiColon])?;
        Ok(Step::AssignField {
            record,
            field,
            value,
        })
    }

    /// A record that is another, or NULL.
    fn record_assignment(&self, record: String, value: &str) -> Result<Step> {
        let all = tokens::of(value)?;
        let spoken = |own: &&TokenWithSpan| !matches!(own.token, Token::Whitespace(_) | Token::EOF);
        let mut spoken = all.iter().filter(spoken).map(|own| &own.token);
        let (first, alone) = (spoken.next(), spoken.next().is_none());
        let from = first.and_then(name_of).filter(|_| alone);
        match from {
            Some(null) if null == "null" && first.and_then(word_of).is_some() => {
                Ok(Step::AssignRecord { record, from: None })
            }
            from if from
                .as_ref()
                .and_then(|from| self.known(from))
                .is_some_and(Known::is_record) =>
            {
                Ok(Step::AssignRecord { record, from })
            }
            _ => Err(not_read("a record that is assigned to")),
        }
    }

    /// Targets behind INTO or FOR, whose variables are known.
    pub(super) fn targets(&self, names: Vec<String>, strict: bool) -> Result<Targets> {
        for name in &names {
            if name == "found" && self.known(name).is_none() {
                return Err(not_read("INTO"));
            }
            let known = self.known(name).ok_or_else(|| unknown(name))?;
            check_changes(known)?;
            if known.is_record() && names.len() > 1 {
                let text = "record variable cannot be part of multiple-item INTO list";
                return Err(SqlError::syntax(text));
            }
        }
        Ok(Targets { names, strict })
    }

    /// INTO of EXECUTE, behind that word.
    pub(super) fn listed_targets(&mut self) -> Result<Targets> {
        let strict = self.take("strict");
        let mut names = vec![self.name()?];
        while self.take_token(&Token::Comma) {
            names.push(self.name()?);
        }
        self.targets(names, strict)
    }
}

/// `42601`.
#[cold]
fn unknown(name: &str) -> SqlError {
    SqlError::syntax(format!("\"{name}\" is not a known variable"))
}

/// # Errors
/// `22005` for a constant.
fn check_changes(known: &Known) -> Result<()> {
    if !known.constant {
        return Ok(());
    }
    let message = format!("variable \"{}\" is declared CONSTANT", known.name);
    Err(SqlError::new(
        crate::sqlstate::SqlState::of("22005"),
        message,
    ))
}

/// A text of SQL without its INTO, and what that names.
///
/// # Errors
/// `42601` for what is no text of SQL.
pub(super) fn split_into(text: &str) -> Result<(String, Vec<String>, bool)> {
    let all = tokens::of(text)?;
    let starts = tokens::starts(text, &all);
    let mut spoken = (0..all.len())
        .filter(|at| !matches!(all[*at].token, Token::Whitespace(_) | Token::EOF))
        .peekable();
    let (mut depth, mut before) = (0usize, String::new());
    while let Some(at) = spoken.next() {
        match &all[at].token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            _ => {}
        }
        let word = word_of(&all[at].token).unwrap_or_default();
        if word != "into" || depth > 0 || ["insert", "merge"].contains(&before.as_str()) {
            before = word;
            continue;
        }
        let mut end = starts[at + 1];
        let strict = spoken.next_if(|next| word_of(&all[*next].token).as_deref() == Some("strict"));
        let mut names = Vec::new();
        while let Some(name) = spoken.next_if(|next| name_of(&all[*next].token).is_some()) {
            names.extend(name_of(&all[name].token));
            end = starts[name + 1];
            if spoken
                .next_if(|next| all[*next].token == Token::Comma)
                .is_none()
            {
                break;
            }
        }
        let rest = format!("{} {}", &text[..starts[at]], &text[end..]);
        return Ok((rest, names, strict.is_some()));
    }
    Ok((text.to_owned(), Vec::new(), false))
}
