//! CREATE and ALTER EXTENSION, of which the parser knows a part.
//!
//! What is said of a new extension stands in any order, with or without WITH. ALTER EXTENSION is carried in an ALTER TABLE, as in [`super::sequences`].

use super::dialect::is_word;
use super::sequences::{self, Altered, Clause};
use sqlparser::ast::{CreateExtension, Ident, ObjectName, Statement};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

/// One of these statements; `None` for any other.
pub(super) fn statement(parser: &mut Parser<'_>) -> Option<Result<Statement, ParserError>> {
    let word = |at, word| is_word(&parser.peek_nth_token_ref(at).token, word);
    if !word(1, "extension") {
        return None;
    }
    let read = if word(0, "create") {
        create
    } else if word(0, "alter") {
        alter
    } else {
        return None;
    };
    parser.advance_token();
    parser.advance_token();
    Some(read(parser))
}

/// A name, which is no text in quotes.
fn name(parser: &mut Parser<'_>) -> Result<Ident, ParserError> {
    match parser.peek_token_ref().token {
        Token::Word(_) => parser.parse_identifier(),
        _ => parser.expected_ref("a name", parser.peek_token_ref()),
    }
}

fn create(parser: &mut Parser<'_>) -> Result<Statement, ParserError> {
    let if_not_exists = parser.parse_keywords(&[Keyword::IF, Keyword::NOT, Keyword::EXISTS]);
    let mut create = CreateExtension {
        name: name(parser)?,
        if_not_exists,
        cascade: false,
        schema: None,
        version: None,
    };
    let _ = parser.parse_keyword(Keyword::WITH);
    loop {
        let at = parser.peek_token_ref().clone();
        let again = if parser.parse_keyword(Keyword::SCHEMA) {
            create.schema.replace(name(parser)?).is_some()
        } else if parser.parse_keyword(Keyword::VERSION) {
            create.version.replace(parser.parse_identifier()?).is_some()
        } else if parser.parse_keyword(Keyword::CASCADE) {
            std::mem::replace(&mut create.cascade, true)
        } else {
            return Ok(Statement::CreateExtension(create));
        };
        if again {
            return parser.expected_ref("what was not said before", &at);
        }
    }
}

fn alter(parser: &mut Parser<'_>) -> Result<Statement, ParserError> {
    let named = (ObjectName::from(vec![name(parser)?]), false);
    let clause = if parser.parse_keywords(&[Keyword::SET, Keyword::SCHEMA]) {
        Clause::Schema(name(parser)?)
    } else if parser.parse_keyword(Keyword::UPDATE) {
        let to = parser.parse_keyword(Keyword::TO);
        Clause::Update(to.then(|| parser.parse_identifier()).transpose()?)
    } else {
        return parser.expected_ref("SET SCHEMA or UPDATE", parser.peek_token_ref());
    };
    let what = Altered::Extension;
    Ok(sequences::altering(parser, what, named, vec![clause], None))
}
