//! COPY … FROM STDIN with statements behind it: the parser takes what follows for the data.

use super::dialect::is_word;
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
