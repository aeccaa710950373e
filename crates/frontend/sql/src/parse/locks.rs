//! LIMIT, OFFSET and FETCH behind FOR UPDATE, as queues like to write it: PostgreSQL takes both orders, the parser the other one. And FOR UPDATE of a query without tables.

use super::dialect::keyword;
use super::spellings::put_behind;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// Puts them in front of the locks. Each token keeps its place in the text.
pub(super) fn limits_first(tokens: &mut [TokenWithSpan]) {
    // Where the locks of the query in each pair of parentheses begin.
    let mut locks: Vec<Option<usize>> = vec![None];
    let mut at = 0;
    while at < tokens.len() {
        match &tokens[at].token {
            Token::LParen => locks.push(None),
            Token::RParen => {
                locks.pop();
            }
            Token::SemiColon => locks.clear(),
            _ => {}
        }
        if locks.is_empty() {
            locks.push(None);
        }
        let begun = locks.last().copied().flatten();
        match (keyword(&tokens[at].token), begun) {
            (Keyword::FOR, None) if is_lock(&tokens[at..]) => {
                if let Some(begun) = locks.last_mut() {
                    *begun = Some(at);
                }
            }
            (Keyword::SELECT | Keyword::VALUES | Keyword::TABLE, Some(_)) => {
                if let Some(begun) = locks.last_mut() {
                    *begun = None;
                }
            }
            (Keyword::LIMIT | Keyword::OFFSET | Keyword::FETCH, Some(start)) => {
                let end = at + length_of_limits(&tokens[at..]);
                tokens[start..end].rotate_left(at - start);
                // Once: a second LIMIT is wrong, and each token is moved once (P2).
                if let Some(begun) = locks.last_mut() {
                    *begun = None;
                }
                at = end;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
}

/// What stands in front of the tables' names in FOR UPDATE OF and its like where there are several. No name in a statement can be it, as [`super::KEY_LOCK`].
pub(crate) const LOCKED_LIST: &str =
    "a list of tables whose rows are locked, longer than any name in a text";

/// The text of a parsed query with the words of locks that the parser does not know in place of what stands for them ([`LOCKED_LIST`], [`super::KEY_LOCK`]).
pub(crate) fn with_lock_words(text: &str) -> String {
    let key = format!("\"{}\"", super::KEY_LOCK);
    let mut text = text.to_owned();
    for (lock, words) in [("UPDATE", "NO KEY UPDATE"), ("SHARE", "KEY SHARE")] {
        text = text
            .replace(
                &format!("FOR {lock} OF {key}."),
                &format!("FOR {words} OF "),
            )
            .replace(&format!("FOR {lock} OF {key}"), &format!("FOR {words}"));
    }
    let list = format!("\"{LOCKED_LIST}\".");
    let mut parts = text.split(&list);
    let mut made = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        // Up to the end of the names.
        let (mut quoted, mut ended) = (false, false);
        for letter in part.chars() {
            quoted ^= letter == '"';
            ended |= !quoted && (letter.is_whitespace() || matches!(letter, ')' | ';'));
            match letter {
                '.' if !quoted && !ended => made.push_str(", "),
                letter => made.push(letter),
            }
        }
    }
    made
}

/// Lists of tables behind OF, of which the parser knows one: they become one name of many parts, behind [`LOCKED_LIST`].
pub(super) fn lists(tokens: &mut Vec<TokenWithSpan>) {
    let spoken: Vec<usize> = (0..tokens.len())
        .filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_)))
        .collect();
    let is = |tokens: &[TokenWithSpan], at: usize, wanted: fn(&Token) -> bool| {
        let own = spoken.get(at).map(|at| &tokens[*at].token);
        own.is_some_and(wanted)
    };
    let mut found = Vec::new();
    for at in 0..spoken.len() {
        if keyword(&tokens[spoken[at]].token) != Keyword::FOR || !is_lock(&tokens[spoken[at]..]) {
            continue;
        }
        let mut words = spoken[at..].iter().take(5);
        let of = words.position(|at| keyword(&tokens[*at].token) == Keyword::OF);
        let Some(of) = of.map(|of| at + of) else {
            continue;
        };
        let mut end = of + 1;
        while is(tokens, end + 1, |token| *token == Token::Comma)
            && is(tokens, end + 2, |token| matches!(token, Token::Word(_)))
        {
            end += 2;
        }
        // A name with its schema is refused: as it stands, by the parser.
        let mut parts = of + 1..=end + 1;
        let schema = parts.any(|at| is(tokens, at, |token| *token == Token::Period));
        if end > of + 1 && !schema {
            for comma in (of + 2..end).step_by(2) {
                tokens[spoken[comma]].token = Token::Period;
            }
            found.push(spoken[of]);
        }
    }
    let mark = [Token::make_word(LOCKED_LIST, Some('"')), Token::Period];
    put_behind(tokens, &found, &mark);
}

/// Ends the lists of queries that lock rows and have no tables: the parser takes FOR for the name of the last column. LIMIT ALL says nothing.
pub(super) fn without_tables(tokens: &mut Vec<TokenWithSpan>) {
    // For each open bracket whether a list has begun there, and nothing stands behind it yet.
    let mut lists = vec![false];
    let mut found = Vec::new();
    for at in 0..tokens.len() {
        match &tokens[at].token {
            Token::LParen => lists.push(false),
            Token::RParen if lists.len() > 1 => {
                lists.pop();
            }
            Token::SemiColon => lists = vec![false],
            _ => {}
        }
        let Some(list) = lists.last_mut() else {
            continue;
        };
        match keyword(&tokens[at].token) {
            Keyword::SELECT => *list = true,
            Keyword::FOR if *list && is_lock(&tokens[at..]) => {
                found.push(at);
                *list = false;
            }
            Keyword::FROM
            | Keyword::WHERE
            | Keyword::GROUP
            | Keyword::HAVING
            | Keyword::ORDER
            | Keyword::LIMIT
            | Keyword::OFFSET
            | Keyword::FETCH => *list = false,
            _ => {}
        }
    }
    // In front of FOR, which is never the first token.
    let before: Vec<usize> = found.iter().map(|at| at - 1).collect();
    let end = ["LIMIT", "ALL"].map(Token::make_keyword);
    put_behind(tokens, &before, &end);
}

/// Whether a FOR is followed by one of the four locks.
fn is_lock(tokens: &[TokenWithSpan]) -> bool {
    let spoken = |token: &&TokenWithSpan| !matches!(token.token, Token::Whitespace(_));
    let mut words = tokens
        .iter()
        .filter(spoken)
        .skip(1)
        .map(|own| keyword(&own.token));
    match words.next() {
        Some(Keyword::UPDATE | Keyword::SHARE) => true,
        Some(Keyword::NO) => words.next() == Some(Keyword::KEY),
        Some(Keyword::KEY) => words.next() == Some(Keyword::SHARE),
        _ => false,
    }
}

/// Tokens from a LIMIT to what ends it: the query's end, or further locks.
fn length_of_limits(tokens: &[TokenWithSpan]) -> usize {
    let mut depth = 0usize;
    for (at, token) in tokens.iter().enumerate() {
        match &token.token {
            Token::LParen => depth += 1,
            Token::RParen if depth > 0 => depth -= 1,
            Token::RParen | Token::SemiColon | Token::EOF => return at,
            _ if depth == 0 => match keyword(&token.token) {
                Keyword::ON | Keyword::RETURNING => return at,
                Keyword::FOR if is_lock(&tokens[at..]) => return at,
                _ => {}
            },
            _ => {}
        }
    }
    tokens.len()
}
