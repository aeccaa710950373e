//! `int ARRAY` and `int ARRAY[3]`: other spellings of `int[]` and `int[3]`, wherever a type stands.
//!
//! ARRAY is a word that names nothing, so behind a type is the only place where it follows a name, or the brackets of a type's modifiers: everywhere else it
//! begins a value, behind a sign or behind one of the words that a value may follow.

use super::dialect::keyword;
use super::spellings::put_behind;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

/// Changes them among the tokens. Places in the text stay as they are.
pub(super) fn adapt(tokens: &mut Vec<TokenWithSpan>) {
    let is_spoken = |own: &TokenWithSpan| !matches!(own.token, Token::Whitespace(_));
    let spoken: Vec<usize> = (0..tokens.len())
        .filter(|at| is_spoken(&tokens[*at]))
        .collect();
    let words: Vec<usize> = (1..spoken.len())
        .filter(|at| keyword(&tokens[spoken[*at]].token) == Keyword::ARRAY)
        .filter(|at| {
            let before = |less: usize| Some(&tokens[spoken[at.checked_sub(less)?]].token);
            ends_type(&before)
        })
        .collect();
    let mut unsized_types = Vec::new();
    for at in words {
        let next = spoken.get(at + 1).map(|next| &tokens[*next].token);
        if next != Some(&Token::LBracket) {
            unsized_types.push(spoken[at]);
        }
        tokens[spoken[at]].token = Token::Whitespace(Whitespace::Space);
    }
    put_behind(tokens, &unsized_types, &[Token::LBracket, Token::RBracket]);
}

/// Whether a type ends with what stands in front of ARRAY: `before(n)` is the n-th token back.
fn ends_type<'t>(before: &impl Fn(usize) -> Option<&'t Token>) -> bool {
    match before(1) {
        Some(Token::RParen) => {
            // The brackets of a modifier hold numbers.
            let is_number = |token: Option<&Token>| matches!(token, Some(Token::Number(..)));
            let is_open = |token: Option<&Token>| token == Some(&Token::LParen);
            let open = if is_number(before(2)) && is_open(before(3)) {
                3
            } else if is_number(before(2))
                && before(3) == Some(&Token::Comma)
                && is_number(before(4))
                && is_open(before(5))
            {
                5
            } else {
                return false;
            };
            matches!(before(open + 1), Some(token) if takes_modifier(token))
        }
        Some(Token::Word(word)) if word.quote_style.is_some() => true,
        Some(Token::Word(word)) => !may_precede_value(word.keyword),
        _ => false,
    }
}

/// Whether a type's modifier may follow a word.
fn takes_modifier(token: &Token) -> bool {
    let Token::Word(word) = token else {
        return false;
    };
    matches!(
        &*word.value.to_ascii_lowercase(),
        "varchar"
            | "varying"
            | "char"
            | "character"
            | "bpchar"
            | "numeric"
            | "decimal"
            | "dec"
            | "float"
            | "bit"
            | "varbit"
            | "time"
            | "timetz"
            | "timestamp"
            | "timestamptz"
            | "interval"
            | "second"
    )
}

/// Whether a value may follow a word.
fn may_precede_value(keyword: Keyword) -> bool {
    matches!(
        keyword,
        Keyword::ALL
            | Keyword::AND
            | Keyword::ANY
            | Keyword::AS
            | Keyword::ASYMMETRIC
            | Keyword::BETWEEN
            | Keyword::BY
            | Keyword::CASE
            | Keyword::DEFAULT
            | Keyword::DISTINCT
            | Keyword::ELSE
            | Keyword::ESCAPE
            | Keyword::FOR
            | Keyword::FROM
            | Keyword::GROUPS
            | Keyword::HAVING
            | Keyword::ILIKE
            | Keyword::IN
            | Keyword::LIKE
            | Keyword::LIMIT
            | Keyword::NOT
            | Keyword::OFFSET
            | Keyword::ON
            | Keyword::OR
            | Keyword::PLACING
            | Keyword::RANGE
            | Keyword::RETURNING
            | Keyword::ROWS
            | Keyword::SELECT
            | Keyword::SOME
            | Keyword::SYMMETRIC
            | Keyword::THEN
            | Keyword::TO
            | Keyword::USING
            | Keyword::VARIADIC
            | Keyword::WHEN
            | Keyword::WHERE
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use crate::parse::statements;

    #[test]
    fn array_behind_a_type_is_a_part_of_it() {
        for (text, expected) in [
            (
                "create table t (x text array, y int array[3], z varchar(3) array [4] not null)",
                "CREATE TABLE t (x TEXT[], y INT[3], z VARCHAR(3)[4] NOT NULL)",
            ),
            (
                "select a::s.mood array, cast(b as \"T\" array), array[1]::int array",
                "SELECT a::s.mood[], CAST(b AS \"T\"[]), ARRAY[1]::INT[]",
            ),
            (
                "select distinct array[a] from t where array[1] = any (array[b]) and not array[c] = d",
                "SELECT DISTINCT ARRAY[a] FROM t WHERE ARRAY[1] = ANY(ARRAY[b]) AND NOT ARRAY[c] = d",
            ),
            (
                "select distinct on (a) array[a]",
                "SELECT DISTINCT ON (a) ARRAY[a]",
            ),
        ] {
            assert_eq!(statements(text).unwrap()[0].to_string(), expected);
        }
    }
}
