//! COPY … FROM STDIN with statements behind it: the parser takes what follows for the data.

use super::dialect::is_word;
use crate::error::SqlError;
use crate::sqlstate;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// Ends the data that the parser looks for at once. They come in messages of their own. In one pass: a text may have many.
pub(super) fn without_data(tokens: &mut Vec<TokenWithSpan>) {
    // Whether the statement is a COPY, its last word was FROM, and it was FROM STDIN.
    let (mut first, mut copies, mut from, mut stdin) = (true, false, false, false);
    let mut made = Vec::with_capacity(tokens.len() + 3);
    for own in tokens.drain(..) {
        let span = own.span;
        let mut ends = false;
        match &own.token {
            Token::Whitespace(_) => {}
            Token::SemiColon => {
                ends = stdin;
                (first, copies, from, stdin) = (true, false, false, false);
            }
            token => {
                copies |= first && is_word(token, "copy");
                stdin |= copies && from && is_word(token, "stdin");
                from = is_word(token, "from");
                first = false;
            }
        }
        made.push(own);
        if ends {
            let end = [Token::Backslash, Token::Period, Token::SemiColon];
            made.extend(end.map(|token| TokenWithSpan { token, span }));
        }
    }
    *tokens = made;
}

/// `0A000`: the parser has read an option of COPY that is no character.
#[cold]
pub(super) fn no_character(parser: &Parser<'_>) -> SqlError {
    let behind = (0..parser.index()).rev();
    let mut words = behind.filter_map(|at| match &parser.token_at(at).token {
        Token::Word(word) => Some(word.value.to_ascii_lowercase()),
        _ => None,
    });
    let option = words.find(|word| matches!(&**word, "delimiter" | "quote" | "escape"));
    let option = option.unwrap_or_default();
    let message = format!("COPY {option} must be a single one-byte character");
    SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, message)
}
