//! Commands that the parser does not know, or not as PostgreSQL has them: ABORT, CREATE DATABASE, CHECKPOINT, REINDEX, SET CONSTRAINTS, two-phase commit, settings of roles and of the database.
//!
//! The syntax trees are the parser's, so a command is carried in a RENAME TABLE, the first of whose tables has a name that none in a text can be
//! ([`COMMAND`]); [`Command`] reads it again.

use super::absent::{self, Absent};
use super::dialect::is_word;
use super::said;
use sqlparser::ast::{Ident, ObjectName, ObjectNamePart, RenameTable, Statement};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Span, Token, TokenWithSpan, Whitespace};

/// In front of a command.
const COMMAND: &str =
    "a command that the parser does not know; this is longer than any name in a text";

/// A command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Command {
    Checkpoint,
    Reindex {
        what: Reindexed,
        name: ObjectName,
        concurrently: bool,
    },
    /// SET CONSTRAINTS of these, or of all.
    Constraints {
        names: Vec<ObjectName>,
        deferred: bool,
    },
    /// PREPARE TRANSACTION.
    Prepare,
    /// COMMIT PREPARED, or ROLLBACK PREPARED, of a transaction.
    EndPrepared {
        commit: bool,
        transaction: String,
    },
    /// DROP of what there is none of.
    DropAbsent(Absent),
    /// A definition in its words ([`super::definition`]).
    Said(String),
    /// DO: its code ([`super::code`]).
    Code(String),
    /// CREATE DATABASE of this name.
    Database(String),
    /// CREATE SCHEMA, and the statements that make what is in it ([`super::element`]).
    Schema(Vec<String>),
    /// ALTER ROLE and ALTER DATABASE with SET or RESET: what sessions begin with.
    Keep {
        /// ALTER ROLE, not ALTER DATABASE.
        of_role: bool,
        /// `None`: of every role.
        role: Option<String>,
        /// `None`: in all.
        database: Option<String>,
        /// The text of the SET or RESET; that of SHOW for FROM CURRENT.
        said: String,
    },
}

/// What REINDEX names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reindexed {
    Index,
    Table,
    Schema,
    Database,
    System,
}

impl Reindexed {
    const ALL: [(&'static str, Self); 5] = [
        ("index", Self::Index),
        ("table", Self::Table),
        ("schema", Self::Schema),
        ("database", Self::Database),
        ("system", Self::System),
    ];

    /// What it is called.
    pub fn word(self) -> &'static str {
        let found = Self::ALL.iter().find(|(_, own)| *own == self);
        found.map_or("", |(word, _)| word)
    }

    /// Whether it is not to be in a transaction block.
    pub fn is_of_many(self) -> bool {
        !matches!(self, Self::Index | Self::Table)
    }
}

/// What a command's first table is called.
fn marker(word: Ident) -> ObjectName {
    ObjectName::from(vec![Ident::with_quote('"', COMMAND), word])
}

impl Command {
    pub(super) fn carried(self) -> Statement {
        let plain = |word: &str| (Ident::new(word), ObjectName(Vec::new()));
        let (first, names) = match self {
            Self::DropAbsent(absent) => {
                let (kind, names) = absent.carried();
                let first = RenameTable {
                    old_name: marker(Ident::new("drop")),
                    new_name: kind,
                };
                return Statement::RenameTable(std::iter::once(first).chain(names).collect());
            }
            Self::Said(said) => {
                let said = ObjectName::from(vec![Ident::with_quote('"', said)]);
                (plain("said"), vec![said])
            }
            Self::Code(code) => {
                let code = ObjectName::from(vec![Ident::with_quote('"', code)]);
                (plain("code"), vec![code])
            }
            Self::Database(name) => {
                let name = ObjectName::from(vec![Ident::with_quote('"', name)]);
                (plain("database"), vec![name])
            }
            Self::Schema(said) => {
                let said = said.into_iter();
                let said = said.map(|said| ObjectName::from(vec![Ident::with_quote('"', said)]));
                (plain("schema"), said.collect())
            }
            Self::Checkpoint => (plain("checkpoint"), Vec::new()),
            Self::Reindex {
                what,
                name,
                concurrently,
            } => {
                let word = what.word();
                let how = if concurrently {
                    "concurrently"
                } else {
                    "plain"
                };
                let first = (
                    Ident::new("reindex"),
                    ObjectName::from(vec![Ident::new(word), Ident::new(how)]),
                );
                (first, vec![name])
            }
            Self::Constraints { names, deferred } => {
                let how = if deferred { "deferred" } else { "immediate" };
                let how = ObjectName::from(vec![Ident::new(how)]);
                ((Ident::new("constraints"), how), names)
            }
            Self::Prepare => (plain("prepare"), Vec::new()),
            Self::EndPrepared {
                commit,
                transaction,
            } => {
                let word = if commit { "commit" } else { "rollback" };
                let name = ObjectName::from(vec![Ident::with_quote('"', transaction)]);
                (plain(word), vec![name])
            }
            Self::Keep {
                of_role,
                role,
                database,
                said,
            } => {
                let name = |part: Option<String>| {
                    let part = part.map(|part| Ident::with_quote('"', part));
                    ObjectName::from(part.into_iter().collect::<Vec<_>>())
                };
                let names = [role, database, Some(said)].map(name);
                (
                    plain(if of_role { "keep" } else { "keep here" }),
                    names.into(),
                )
            }
        };
        let first = RenameTable {
            old_name: marker(first.0),
            new_name: first.1,
        };
        let names = names.into_iter().map(|old_name| RenameTable {
            old_name,
            new_name: ObjectName(Vec::new()),
        });
        Statement::RenameTable(std::iter::once(first).chain(names).collect())
    }

    /// The command that a statement carries.
    pub fn of(statement: &Statement) -> Option<Self> {
        let Statement::RenameTable(tables) = statement else {
            return None;
        };
        let (first, rest) = tables.split_first()?;
        let word = |name: &ObjectName, at: usize| match name.0.get(at) {
            Some(ObjectNamePart::Identifier(ident)) => Some(ident.value.clone()),
            _ => None,
        };
        if word(&first.old_name, 0)? != COMMAND {
            return None;
        }
        let names = || rest.iter().map(|table| table.old_name.clone());
        Some(match word(&first.old_name, 1)?.as_str() {
            "checkpoint" => Self::Checkpoint,
            "reindex" => {
                let what = word(&first.new_name, 0)?;
                let what = Reindexed::ALL.iter().find(|(word, _)| *word == what)?.1;
                Self::Reindex {
                    what,
                    name: names().next()?,
                    concurrently: word(&first.new_name, 1)? == "concurrently",
                }
            }
            "constraints" => Self::Constraints {
                names: names().collect(),
                deferred: word(&first.new_name, 0)? == "deferred",
            },
            "schema" => Self::Schema(names().filter_map(|name| word(&name, 0)).collect()),
            "database" => Self::Database(word(&names().next()?, 0)?),
            "said" => Self::Said(word(&names().next()?, 0)?),
            "code" => Self::Code(word(&names().next()?, 0)?),
            "prepare" => Self::Prepare,
            "drop" => Self::DropAbsent(Absent::of(&first.new_name, rest)?),
            kept @ ("keep" | "keep here") => {
                let mut names = names();
                let mut next = || names.next().and_then(|name| word(&name, 0));
                Self::Keep {
                    of_role: kept == "keep",
                    role: next(),
                    database: next(),
                    said: next()?,
                }
            }
            end => Self::EndPrepared {
                commit: end == "commit",
                transaction: word(&names().next()?, 0)?,
            },
        })
    }
}

/// One of these statements; `None` for any other.
pub(super) fn statement(parser: &mut Parser<'_>) -> Option<Result<Statement, ParserError>> {
    let found = kept_setting(parser)
        .or_else(|| said::statement(parser))
        .or_else(|| absent::statement(parser));
    if found.is_some() {
        return found;
    }
    let words = [0, 1].map(|at| parser.peek_nth_token_ref(at).token.clone());
    let first = |word| is_word(&words[0], word);
    let second = |word| is_word(&words[1], word);
    let read: fn(&mut Parser<'_>) -> Result<Statement, ParserError> = if first("checkpoint") {
        |_| Ok(Command::Checkpoint.carried())
    } else if first("abort") {
        abort
    } else if first("reindex") {
        reindex
    } else if first("set") && second("constraints") {
        constraints
    } else if first("create") && second("database") {
        database
    } else if first("do") {
        code
    } else if first("prepare") && second("transaction") {
        |parser| literal(parser).map(|_| Command::Prepare.carried())
    } else if first("commit") && second("prepared") {
        |parser| end_prepared(parser, true)
    } else if first("rollback") && second("prepared") {
        |parser| end_prepared(parser, false)
    } else {
        return None;
    };
    let one = ["checkpoint", "abort", "reindex", "do"];
    let count = 2 - usize::from(one.into_iter().any(first));
    for _ in 0..count {
        parser.advance_token();
    }
    Some(read(parser))
}

/// `ALTER ROLE name [IN DATABASE name] SET …`, `ALTER DATABASE name RESET …`, and their like.
fn kept_setting(parser: &mut Parser<'_>) -> Option<Result<Statement, ParserError>> {
    let is = |at: usize, word: &str| is_word(&parser.peek_nth_token_ref(at).token, word);
    let name = |at: usize| match &parser.peek_nth_token_ref(at).token {
        Token::Word(word) => Some(crate::bind::folded(&word.clone().into_ident(Span::empty()))),
        _ => None,
    };
    let of_role = is(1, "role");
    if !is(0, "alter") || !(of_role || is(1, "database")) {
        return None;
    }
    let (mut role, mut database, mut at) = (None, None, 3);
    if of_role {
        role = Some(name(2)?).filter(|_| !is(2, "all"));
        if is(3, "in") && is(4, "database") {
            database = Some(name(5)?);
            at = 6;
        }
    } else {
        database = Some(name(2)?);
    }
    let set = is(at, "set") && !is(at + 1, "tablespace");
    if !set && !is(at, "reset") {
        return None;
    }
    let current = set && is(at + 2, "from") && is(at + 3, "current");
    let shown = name(at + 1).filter(|_| current);
    for _ in 0..at + if current { 4 } else { 0 } {
        parser.advance_token();
    }
    let said = match shown {
        Some(shown) => Ok(format!("SHOW {shown}")),
        None => parser.parse_statement().map(|said| said.to_string()),
    };
    Some(said.map(|said| {
        let keep = Command::Keep {
            of_role,
            role,
            database,
            said,
        };
        keep.carried()
    }))
}

/// `DO [LANGUAGE plpgsql] 'code'`, in either order.
fn code(parser: &mut Parser<'_>) -> Result<Statement, ParserError> {
    let (mut code, mut language) = (None, None);
    loop {
        if language.is_none() && parser.parse_keyword(Keyword::LANGUAGE) {
            language = Some(parser.parse_identifier()?.value.to_lowercase());
            continue;
        }
        let text = match &parser.peek_token_ref().token {
            Token::DollarQuotedString(text) => text.value.clone(),
            Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text) => text.clone(),
            _ => break,
        };
        if code.is_some() {
            break;
        }
        code = Some(text);
        parser.advance_token();
    }
    let Some(code) = code else {
        return parser.expected_ref("code", parser.peek_token_ref());
    };
    match language.as_deref() {
        None | Some("plpgsql") => Ok(Command::Code(code).carried()),
        Some(other) => {
            let message = format!("DO in the language {other}, which is not there");
            Err(ParserError::ParserError(message))
        }
    }
}

/// What a database may be made with.
const OPTIONS_OF_DATABASES: [&str; 16] = [
    "allow_connections",
    "collation_version",
    "connection",
    "encoding",
    "icu_locale",
    "is_template",
    "lc_collate",
    "lc_ctype",
    "locale",
    "locale_provider",
    "location",
    "oid",
    "owner",
    "strategy",
    "tablespace",
    "template",
];

/// `CREATE DATABASE name` behind that, with options, whose values are of no account: there is nothing to make.
fn database(parser: &mut Parser<'_>) -> Result<Statement, ParserError> {
    let name = crate::bind::folded(&parser.parse_identifier()?);
    let _ = parser.parse_keyword(Keyword::WITH);
    while !matches!(parser.peek_token_ref().token, Token::EOF | Token::SemiColon) {
        let option = match &parser.peek_token_ref().token {
            Token::Word(word) => word.value.to_ascii_lowercase(),
            _ => return parser.expected_ref("an option", parser.peek_token_ref()),
        };
        if !OPTIONS_OF_DATABASES.contains(&option.as_str()) {
            return parser.expected_ref("an option of a database", parser.peek_token_ref());
        }
        parser.advance_token();
        if option == "connection" {
            parser.expect_keyword(Keyword::LIMIT)?;
        }
        let _ = parser.consume_token(&Token::Eq);
        let negative = parser.consume_token(&Token::Minus);
        match &parser.peek_token_ref().token {
            Token::Number(..) => parser.advance_token(),
            Token::Word(_) | Token::SingleQuotedString(_) if !negative => parser.advance_token(),
            _ => return parser.expected_ref("a value", parser.peek_token_ref()),
        }
    }
    Ok(Command::Database(name).carried())
}

/// ABORT is ROLLBACK.
fn abort(parser: &mut Parser<'_>) -> Result<Statement, ParserError> {
    let _ = parser.parse_one_of_keywords(&[Keyword::WORK, Keyword::TRANSACTION]);
    let mut chain = false;
    if parser.parse_keyword(Keyword::AND) {
        chain = !parser.parse_keyword(Keyword::NO);
        parser.expect_keyword(Keyword::CHAIN)?;
    }
    Ok(Statement::Rollback {
        chain,
        savepoint: None,
    })
}

fn reindex(parser: &mut Parser<'_>) -> Result<Statement, ParserError> {
    let mut concurrently = false;
    if parser.consume_token(&Token::LParen) {
        loop {
            let option = parser.parse_identifier()?.value.to_ascii_lowercase();
            let value = match &parser.peek_token_ref().token {
                Token::Word(_) => Some(parser.parse_identifier()?.value.to_ascii_lowercase()),
                _ => None,
            };
            let on = value.is_none_or(|value| matches!(&*value, "true" | "on"));
            match option.as_str() {
                "concurrently" => concurrently = on,
                "verbose" | "tablespace" => {}
                _ => return parser.expected_ref("an option of REINDEX", parser.peek_token_ref()),
            }
            if !parser.consume_token(&Token::Comma) {
                break;
            }
        }
        parser.expect_token(&Token::RParen)?;
    }
    let token = parser.peek_token_ref().token.clone();
    let found = Reindexed::ALL
        .iter()
        .find(|(word, _)| is_word(&token, word));
    let Some((_, what)) = found else {
        return parser.expected_ref("what is to be made anew", parser.peek_token_ref());
    };
    parser.advance_token();
    concurrently |= parser.parse_keyword(Keyword::CONCURRENTLY);
    let command = Command::Reindex {
        what: *what,
        name: parser.parse_object_name(false)?,
        concurrently,
    };
    Ok(command.carried())
}

fn constraints(parser: &mut Parser<'_>) -> Result<Statement, ParserError> {
    let names = match parser.parse_keyword(Keyword::ALL) {
        true => Vec::new(),
        false => parser.parse_comma_separated(|parser| parser.parse_object_name(false))?,
    };
    let word = parser.expect_one_of_keywords(&[Keyword::DEFERRED, Keyword::IMMEDIATE])?;
    let deferred = word == Keyword::DEFERRED;
    Ok(Command::Constraints { names, deferred }.carried())
}

fn literal(parser: &mut Parser<'_>) -> Result<String, ParserError> {
    let token = parser.peek_token_ref().clone();
    match token.token {
        Token::SingleQuotedString(text) => {
            parser.advance_token();
            Ok(text)
        }
        _ => parser.expected_ref("the name of a transaction", &token),
    }
}

fn end_prepared(parser: &mut Parser<'_>, commit: bool) -> Result<Statement, ParserError> {
    let transaction = literal(parser)?;
    let command = Command::EndPrepared {
        commit,
        transaction,
    };
    Ok(command.carried())
}

/// DEFERRABLE and NOT DEFERRABLE of a transaction are for serializable ones, of which there are none: they are passed over, with a comma that stood
/// in front of them or behind.
pub(super) fn transaction_modes(tokens: &mut [TokenWithSpan]) {
    let spoken: Vec<usize> = (0..tokens.len())
        .filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_)))
        .collect();
    let mut of_transaction = false;
    let mut start = true;
    for at in 0..spoken.len() {
        let token = &tokens[spoken[at]].token;
        if start {
            of_transaction = ["begin", "start", "set"]
                .into_iter()
                .any(|word| is_word(token, word));
        }
        start = *token == Token::SemiColon;
        if !of_transaction || !is_word(token, "deferrable") {
            continue;
        }
        let mut first = at;
        if first > 0 && is_word(&tokens[spoken[first - 1]].token, "not") {
            first -= 1;
        }
        let mut last = at;
        if first > 0 && tokens[spoken[first - 1]].token == Token::Comma {
            first -= 1;
        } else if spoken
            .get(last + 1)
            .is_some_and(|next| tokens[*next].token == Token::Comma)
        {
            last += 1;
        }
        for place in &spoken[first..=last] {
            tokens[*place].token = Token::Whitespace(Whitespace::Space);
        }
    }
}

/// ONLY in front of a table is passed over: none inherits from another.
pub(super) fn only(tokens: &mut [TokenWithSpan]) {
    let spoken: Vec<usize> = (0..tokens.len())
        .filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_)))
        .collect();
    for three in spoken.windows(3) {
        let table = ["from", "join", "update"]
            .into_iter()
            .any(|word| is_word(&tokens[three[0]].token, word));
        let named = matches!(tokens[three[2]].token, Token::Word(_));
        if table && named && is_word(&tokens[three[1]].token, "only") {
            tokens[three[1]].token = Token::Whitespace(Whitespace::Space);
        }
    }
}

/// The row that a cursor stands at is not known by the statements that would change it.
///
/// # Errors
/// `0A000` for WHERE CURRENT OF.
pub(super) fn no_current_row(tokens: &[TokenWithSpan]) -> crate::error::Result<()> {
    let spoken = tokens
        .iter()
        .filter(|own| !matches!(own.token, Token::Whitespace(_)));
    let spoken: Vec<&Token> = spoken.map(|own| &own.token).collect();
    let is_said = |three: &[&Token]| {
        let words = ["where", "current", "of"];
        three
            .iter()
            .zip(words)
            .all(|(own, word)| is_word(own, word))
    };
    match spoken.windows(3).any(is_said) {
        true => Err(crate::error::SqlError::unsupported("WHERE CURRENT OF")),
        false => Ok(()),
    }
}

/// UNLOGGED is passed over where a table or sequence is made: all of them are logged.
pub(super) fn unlogged(tokens: &mut [TokenWithSpan]) {
    let spoken: Vec<usize> = (0..tokens.len())
        .filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_)))
        .collect();
    for three in spoken.windows(3) {
        let word = |at: usize, word| is_word(&tokens[three[at]].token, word);
        let made = word(0, "create") && (word(2, "table") || word(2, "sequence"));
        if word(1, "unlogged") && (made || word(0, "into")) {
            tokens[three[1]].token = Token::Whitespace(Whitespace::Space);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use crate::parse::statements;

    fn command(text: &str) -> Option<Command> {
        Command::of(&statements(text).unwrap().remove(0))
    }

    #[test]
    fn commands_are_read_again_as_they_were_written() {
        let name = |name: &str| ObjectName::from(vec![Ident::new(name)]);
        assert_eq!(command("checkpoint"), Some(Command::Checkpoint));
        let all = command("SET CONSTRAINTS ALL DEFERRED");
        let constraints = |names, deferred| Some(Command::Constraints { names, deferred });
        assert_eq!(all, constraints(Vec::new(), true));
        let some = command("set constraints a, b immediate");
        assert_eq!(some, constraints(vec![name("a"), name("b")], false));
        for (text, what, concurrently) in [
            ("reindex table concurrently t", Reindexed::Table, true),
            ("reindex (verbose) index t", Reindexed::Index, false),
            (
                "reindex (concurrently, verbose off) schema t",
                Reindexed::Schema,
                true,
            ),
            ("reindex database t", Reindexed::Database, false),
        ] {
            let name = name("t");
            let reindex = Command::Reindex {
                what,
                name,
                concurrently,
            };
            assert_eq!(command(text), Some(reindex), "{text}");
        }
        assert_eq!(command("prepare transaction 'x'"), Some(Command::Prepare));
        for (text, name) in [
            ("create database X", "x"),
            (
                "create database \"X\" encoding = 'unicode' template template0",
                "X",
            ),
        ] {
            let database = Command::Database(name.to_owned());
            assert_eq!(command(text), Some(database), "{text}");
        }
        let end = Command::EndPrepared {
            commit: true,
            transaction: "a\"b".to_owned(),
        };
        assert_eq!(command("commit prepared 'a\"b'"), Some(end));
        let keep = |role: Option<&str>, database: Option<&str>, said: &str| {
            Some(Command::Keep {
                of_role: role.is_some() || database.is_none(),
                role: role.map(str::to_owned),
                database: database.map(str::to_owned),
                said: said.to_owned(),
            })
        };
        for (text, wanted) in [
            (
                "alter role a set search_path to x, \"Y\"",
                keep(Some("a"), None, "SET search_path = x, \"Y\""),
            ),
            (
                "ALTER USER \"B\" IN DATABASE d SET a.b = 'c''d'",
                keep(Some("B"), Some("d"), "SET a.b = 'c''d'"),
            ),
            ("alter role all reset all", keep(None, None, "RESET ALL")),
            (
                "alter database d set timezone from current",
                keep(None, Some("d"), "SHOW timezone"),
            ),
        ] {
            assert_eq!(command(text), wanted, "{text}");
        }
        assert_eq!(command("alter role a with login"), None);
        assert_eq!(command("rename table a to b"), None);
        for text in [
            "set constraints all",
            "create database",
            "create database x (y)",
            "reindex",
            "commit prepared x",
            "alter index i set (",
            "alter role a set",
            "alter database d set tablespace t",
            "alter role a in database set x = 1",
        ] {
            statements(text).unwrap_err();
        }
    }

    #[test]
    fn deferrable_is_read_where_a_transaction_is_begun_and_nowhere_else() {
        for text in [
            "begin deferrable",
            "begin isolation level repeatable read, not deferrable, read only",
            "start transaction not deferrable read only",
            "set transaction deferrable, read only",
            "set session characteristics as transaction read only not deferrable",
        ] {
            statements(text).unwrap();
        }
        statements("select 1 deferrable read").unwrap_err();
        statements("create unlogged table t (a int); select 1 into unlogged u").unwrap();
        statements("create unlogged view v as select 1").unwrap_err();
    }
}
