//! ALTER TYPE, of which the parser knows a part.
//!
//! What it does not know is carried in an ALTER TABLE, as in [`super::sequences`].

use super::dialect::is_word;
use super::sequences::{self, Altered, Clause};
use sqlparser::ast::{
    AlterType, AlterTypeAddValue, AlterTypeAddValuePosition, AlterTypeOperation, AlterTypeRename,
    AlterTypeRenameValue, Ident, Statement,
};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

/// ALTER TYPE; `None` for any other statement.
pub(super) fn statement(parser: &mut Parser<'_>) -> Option<Result<Statement, ParserError>> {
    let word = |at, word| is_word(&parser.peek_nth_token_ref(at).token, word);
    if !word(0, "alter") || !word(1, "type") {
        return None;
    }
    parser.advance_token();
    parser.advance_token();
    Some(alter_type(parser))
}

fn alter_type(parser: &mut Parser<'_>) -> Result<Statement, ParserError> {
    let name = parser.parse_object_name(false)?;
    let named = (name.clone(), false);
    let operation = if parser.parse_keywords(&[Keyword::RENAME, Keyword::TO]) {
        let new_name = parser.parse_identifier()?;
        AlterTypeOperation::Rename(AlterTypeRename { new_name })
    } else if parser.parse_keywords(&[Keyword::RENAME, Keyword::VALUE]) {
        let from = label(parser)?;
        parser.expect_keyword(Keyword::TO)?;
        let to = label(parser)?;
        AlterTypeOperation::RenameValue(AlterTypeRenameValue { from, to })
    } else if parser.parse_keywords(&[Keyword::ADD, Keyword::VALUE]) {
        let if_not_exists = parser.parse_keywords(&[Keyword::IF, Keyword::NOT, Keyword::EXISTS]);
        let value = label(parser)?;
        let position = if parser.parse_keyword(Keyword::BEFORE) {
            Some(AlterTypeAddValuePosition::Before(label(parser)?))
        } else if parser.parse_keyword(Keyword::AFTER) {
            Some(AlterTypeAddValuePosition::After(label(parser)?))
        } else {
            None
        };
        AlterTypeOperation::AddValue(AlterTypeAddValue {
            if_not_exists,
            value,
            position,
        })
    } else if parser.parse_keywords(&[Keyword::SET, Keyword::SCHEMA]) {
        let clauses = vec![Clause::Schema(parser.parse_identifier()?)];
        return Ok(sequences::altering(
            parser,
            Altered::Type,
            named,
            clauses,
            None,
        ));
    } else if is_word(&parser.peek_token_ref().token, "owner") {
        let owner = parser.parse_alter_table_operation()?;
        let clauses = Vec::new();
        return Ok(sequences::altering(
            parser,
            Altered::Type,
            named,
            clauses,
            Some(owner),
        ));
    } else {
        return parser.expected_ref("what is to be altered", parser.peek_token_ref());
    };
    Ok(Statement::AlterType(AlterType { name, operation }))
}

/// A label is a literal.
fn label(parser: &mut Parser<'_>) -> Result<Ident, ParserError> {
    let token = parser.peek_token_ref().clone();
    match token.token {
        Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text) => {
            parser.advance_token();
            Ok(Ident::with_quote('\'', text))
        }
        _ => parser.expected_ref("a label", &token),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use crate::parse::statements;

    #[test]
    fn types_are_altered_as_they_are_in_postgresql() {
        for text in [
            "alter type s.mood add value if not exists 'a' before 'b'",
            "alter type mood add value 'it''s' after E'b\\n'",
            "alter type mood rename value 'a' to 'b'",
            "alter type mood rename to \"Mood\"",
            "alter type mood set schema s",
            "alter type mood owner to current_user",
        ] {
            assert_eq!(statements(text).unwrap().len(), 1, "{text}");
        }
        for text in [
            "alter type mood",
            "alter type mood add value a",
            "alter type mood rename value 'a'",
            "alter type mood drop value 'a'",
        ] {
            statements(text).unwrap_err();
        }
    }
}
