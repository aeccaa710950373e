//! What is said of tables that the parser does not know, and that changes little here: USING heap and WITHOUT OIDS where one is made; CLUSTER ON, SET WITHOUT CLUSTER,
//! SET WITHOUT OIDS, SET ACCESS METHOD and SET TABLESPACE where one is altered.

use super::dialect::{is_word, keyword};
use crate::ddl::check_table_method;
use crate::error::Result;
use sqlparser::ast::Ident;
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

/// What ALTER TABLE says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    ClusterOn,
    WithoutCluster,
    WithoutOids,
    AccessMethod,
    Tablespace,
}

impl Form {
    const ALL: [(Self, &'static str); 5] = [
        (Self::ClusterOn, "CLUSTER ON"),
        (Self::WithoutCluster, "SET WITHOUT CLUSTER"),
        (Self::WithoutOids, "SET WITHOUT OIDS"),
        (Self::AccessMethod, "SET ACCESS METHOD"),
        (Self::Tablespace, "SET TABLESPACE"),
    ];

    /// The words that say it.
    pub fn words(self) -> &'static str {
        let found = Self::ALL.iter().find(|(own, _)| *own == self);
        found.map_or("", |(_, words)| words)
    }

    pub(super) fn of(words: &str) -> Option<Self> {
        let found = Self::ALL.iter().find(|(_, own)| *own == words);
        found.map(|(form, _)| *form)
    }

    /// One that comes next, and what it names.
    pub(super) fn read(
        parser: &mut Parser<'_>,
    ) -> Option<std::result::Result<(Self, Option<Ident>), ParserError>> {
        let is = |at: usize, word: &str| is_word(&parser.peek_nth_token_ref(at).token, word);
        let said = |words: &str| words.split(' ').enumerate().all(|(at, word)| is(at, word));
        let (form, words) = *Self::ALL.iter().find(|(_, words)| said(words))?;
        for _ in words.split(' ') {
            parser.advance_token();
        }
        Some(match form {
            Self::WithoutCluster | Self::WithoutOids => Ok((form, None)),
            _ => parser.parse_identifier().map(|name| (form, Some(name))),
        })
    }
}

/// Takes USING method and WITHOUT OIDS out of the statements that make tables: spaces are put in their place, so that all else stands where it was.
///
/// # Errors
/// `42704`, `55000` for a method that is none of tables.
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
        let makes =
            word(0) == Keyword::CREATE && (1..4).any(|at| matches!(word(at), Keyword::TABLE));
        if !makes {
            continue;
        }
        let mut gone = Vec::new();
        let mut depth = 0usize;
        for at in 0..spoken.len() {
            let named = match spoken.get(at + 1).map(|at| &statement[*at].token) {
                Some(Token::Word(name)) => Some(name),
                _ => None,
            };
            match &statement[spoken[at]].token {
                Token::LParen => depth += 1,
                Token::RParen => depth = depth.saturating_sub(1),
                token if depth == 0 => match (keyword(token), named) {
                    // Behind it stands the query.
                    (Keyword::AS, _) => break,
                    (Keyword::USING, Some(name)) if at > 2 => {
                        check_table_method(&match name.quote_style {
                            Some(_) => name.value.clone(),
                            None => name.value.to_lowercase(),
                        })?;
                        gone.extend_from_slice(&spoken[at..=at + 1]);
                    }
                    (Keyword::WITHOUT, Some(name))
                        if at > 2
                            && name.quote_style.is_none()
                            && name.value.eq_ignore_ascii_case("oids") =>
                    {
                        gone.extend_from_slice(&spoken[at..=at + 1]);
                    }
                    _ => {}
                },
                _ => {}
            }
        }
        for at in gone {
            statement[at].token = Token::Whitespace(Whitespace::Space);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use crate::parse::{Clause, statements};
    use sqlparser::ast::Statement;

    #[test]
    fn methods_of_tables_are_left_out_where_they_may_stand() {
        for (text, plain) in [
            (
                "create table t (a int) using heap without oids; select 1",
                "create table t (a int); select 1",
            ),
            (
                "create temp table t using \"heap\" as select * from a join b using (c)",
                "create temp table t as select * from a join b using (c)",
            ),
        ] {
            let shown = |text| {
                let all = statements(text).unwrap().into_iter();
                all.map(|own| own.to_string()).collect::<Vec<_>>()
            };
            assert_eq!(shown(text), shown(plain), "{text}");
        }
        for (text, state) in [
            ("create table t (a int) using s", "42704"),
            ("create table t (a int) using btree", "55000"),
            ("create table t (a int) using \"Heap\"", "42704"),
            ("create table t (a int) with oids", "42601"),
        ] {
            assert_eq!(statements(text).unwrap_err().sqlstate().to_string(), state);
        }
    }

    #[test]
    fn forms_are_read_again_as_they_were_written() {
        let text = "alter table t cluster on \"I\", set without cluster, set tablespace x";
        let parsed = statements(text).unwrap();
        let [Statement::AlterTable(alter)] = &parsed[..] else {
            panic!("{parsed:?}");
        };
        let words = alter.operations.iter().map(|operation| {
            let (_, clauses) = Clause::of_altered(std::slice::from_ref(operation)).unwrap();
            let [Clause::Form(form, name)] = &clauses[..] else {
                panic!("{clauses:?}");
            };
            (form.words(), name.as_ref().map(|name| name.value.clone()))
        });
        let name = |name: &str| Some(name.to_owned());
        assert_eq!(
            words.collect::<Vec<_>>(),
            [
                ("CLUSTER ON", name("I")),
                ("SET WITHOUT CLUSTER", None),
                ("SET TABLESPACE", name("x"))
            ]
        );
    }
}
