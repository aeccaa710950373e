//! COPY … FROM STDIN with statements behind it: the parser takes what follows for the data.

use super::dialect::is_word;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// Ends the data that the parser looks for at once. They come in messages of their own.
pub(super) fn without_data(tokens: &mut Vec<TokenWithSpan>) {
    // Whether the statement is a COPY, its last word was FROM, and it was FROM STDIN.
    let (mut first, mut copies, mut from, mut stdin) = (true, false, false, false);
    let mut at = 0;
    while at < tokens.len() {
        let token = &tokens[at].token;
        match token {
            Token::Whitespace(_) => {}
            Token::SemiColon => {
                if stdin {
                    let span = tokens[at].span;
                    let made = [Token::Backslash, Token::Period, Token::SemiColon];
                    let made = made.map(|token| TokenWithSpan { token, span });
                    tokens.splice(at + 1..at + 1, made);
                    at += 3;
                }
                (first, copies, from, stdin) = (true, false, false, false);
            }
            token => {
                copies |= first && is_word(token, "copy");
                stdin |= copies && from && is_word(token, "stdin");
                from = is_word(token, "from");
                first = false;
            }
        }
        at += 1;
    }
}
