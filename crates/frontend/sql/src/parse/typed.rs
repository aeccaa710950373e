//! `inet '10.1.2.3'`: a literal behind the name of a type that the parser does not know.

use sqlparser::ast::{DataType, Expr, Ident, ObjectName, TypedString};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

/// Reads one; `None` for anything else. A word of SQL's own is no such name, unless it is quoted; `name` is one of PostgreSQL's.
pub(super) fn literal(parser: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
    let Token::Word(word) = &parser.peek_token_ref().token else {
        return None;
    };
    let is_name =
        word.quote_style.is_some() || matches!(word.keyword, Keyword::NoKeyword | Keyword::NAME);
    let text = &parser.peek_nth_token_ref(1).token;
    let is_text = matches!(
        text,
        Token::SingleQuotedString(_)
            | Token::EscapedStringLiteral(_)
            | Token::DollarQuotedString(_)
    );
    if !is_name || !is_text {
        return None;
    }
    let word = word.clone();
    let mut name = Ident::new(word.value);
    (name.quote_style, name.span) = (word.quote_style, parser.peek_token_ref().span);
    parser.advance_token();
    let value = parser.parse_value();
    Some(value.map(|value| {
        Expr::TypedString(TypedString {
            data_type: DataType::Custom(ObjectName::from(vec![name]), Vec::new()),
            value,
            uses_odbc_syntax: false,
        })
    }))
}
