//! TABLESPACE of tables, indexes and constraints. There is one, `pg_default`: it is where everything is, and leaving it out says the same.

use super::dialect::keyword;
use crate::error::{Result, SqlError};
use crate::sqlstate;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

/// Leaves it out of the tokens. Places in the text stay as they are.
///
/// # Errors
/// `42704` for a tablespace that there is not, `22023` for that of what all databases share.
pub(super) fn adapt(tokens: &mut [TokenWithSpan]) -> Result<()> {
    let is_spoken = |own: &TokenWithSpan| !matches!(own.token, Token::Whitespace(_));
    for statement in tokens.split_inclusive_mut(|own| own.token == Token::SemiColon) {
        let spoken: Vec<usize> = (0..statement.len())
            .filter(|at| is_spoken(&statement[*at]))
            .collect();
        let word = |at: usize| {
            let token = spoken.get(at).map(|at| &statement[*at].token);
            token.map_or(Keyword::NoKeyword, keyword)
        };
        let makes = word(0) == Keyword::CREATE
            && (1..4).any(|at| matches!(word(at), Keyword::TABLE | Keyword::INDEX));
        if !makes && (word(0), word(1)) != (Keyword::ALTER, Keyword::TABLE) {
            continue;
        }
        let mut gone = Vec::new();
        let (mut depth, mut ended) = (0usize, !makes);
        for at in 0..spoken.len() {
            match &statement[spoken[at]].token {
                Token::LParen => depth += 1,
                Token::RParen => depth = depth.saturating_sub(1),
                token => match keyword(token) {
                    // Behind these stand a query and a condition.
                    Keyword::AS | Keyword::WHERE if depth == 0 => ended = true,
                    Keyword::TABLESPACE => {
                        let of_index = at > 1
                            && (word(at - 2), word(at - 1)) == (Keyword::USING, Keyword::INDEX);
                        // Behind a name, brackets or an option; elsewhere it is a name itself.
                        let behind = at.checked_sub(1).map(|at| &statement[spoken[at]].token);
                        let is_name = behind == Some(&Token::Period)
                            || matches!(word(at + 1), Keyword::AS | Keyword::USING | Keyword::FOR);
                        let of_own =
                            depth == 0 && !ended && at > 2 && !names(word(at - 1)) && !is_name;
                        let Some(Token::Word(name)) =
                            spoken.get(at + 1).map(|at| &statement[*at].token)
                        else {
                            continue;
                        };
                        if !of_index && !of_own {
                            continue;
                        }
                        check(&match name.quote_style {
                            Some(_) => name.value.clone(),
                            None => name.value.to_lowercase(),
                        })?;
                        let first = if of_index { at - 2 } else { at };
                        gone.extend_from_slice(&spoken[first..=at + 1]);
                    }
                    _ => {}
                },
            }
        }
        for at in gone {
            statement[at].token = Token::Whitespace(Whitespace::Space);
        }
    }
    Ok(())
}

/// Whether a name stands behind a word.
fn names(word: Keyword) -> bool {
    matches!(
        word,
        Keyword::TABLE
            | Keyword::INDEX
            | Keyword::EXISTS
            | Keyword::ON
            | Keyword::ONLY
            | Keyword::OF
            | Keyword::CONCURRENTLY
    )
}

/// # Errors
/// `42704`, `22023`.
pub(crate) fn check(name: &str) -> Result<()> {
    match name {
        "pg_default" => Ok(()),
        "pg_global" => {
            let text = "only shared relations can be placed in pg_global tablespace";
            Err(SqlError::new(sqlstate::INVALID_PARAMETER_VALUE, text))
        }
        name => {
            let message = format!("tablespace \"{name}\" does not exist");
            Err(SqlError::new(sqlstate::UNDEFINED_OBJECT, message))
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use crate::parse::statements;

    #[test]
    fn the_one_tablespace_is_left_out_wherever_it_may_stand() {
        for (text, plain) in [
            (
                "create table t (a int primary key using index tablespace pg_default) tablespace \"pg_default\"",
                "create table t (a int primary key)",
            ),
            (
                "create unique index i on t using btree (a) tablespace PG_DEFAULT where tablespace is null; select 1",
                "create unique index i on t using btree (a) where tablespace is null; select 1",
            ),
            (
                "alter table t add constraint c unique (a) using index tablespace pg_default",
                "alter table t add constraint c unique (a)",
            ),
            (
                "create table t tablespace pg_default as select tablespace x from u",
                "create table t as select tablespace x from u",
            ),
            (
                "create table if not exists tablespace (tablespace text)",
                "create table if not exists tablespace (tablespace text)",
            ),
        ] {
            let shown = |text| {
                let all = statements(text).unwrap().into_iter();
                all.map(|own| own.to_string()).collect::<Vec<_>>()
            };
            assert_eq!(shown(text), shown(plain), "{text}");
        }
        for (text, state) in [
            ("create table t (a int) tablespace s", "42704"),
            ("create index on t (a) tablespace \"PG_default\"", "42704"),
            (
                "create table t (a int, unique (a) using index tablespace s)",
                "42704",
            ),
            ("create table t (a int) tablespace pg_global", "22023"),
        ] {
            assert_eq!(statements(text).unwrap_err().sqlstate().to_string(), state);
        }
    }
}
