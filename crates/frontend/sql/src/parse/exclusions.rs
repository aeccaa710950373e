//! EXCLUDE of window frames, which the parser does not know: it is put into the last bound that is written, among the tokens, as what no bound can be, and found there
//! again ([`of_bound`]). Places in the text stay as they are.

use super::dialect::keyword;
use sqlparser::ast::{BinaryOperator, Expr, Ident, WindowFrameBound};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};
use vellum_query::Exclusion;

/// What a name begins with that stands for an EXCLUDE: the words of it, and the bound's in front of them where it is no expression, follow.
const EXCLUDES: &str =
    "rows that a window's frame leaves out, a name that is longer than any name in a text: ";

/// What may be left out, and how that is written.
const KINDS: [(Exclusion, &str); 3] = [
    (Exclusion::CurrentRow, "CURRENT ROW"),
    (Exclusion::Group, "GROUP"),
    (Exclusion::Ties, "TIES"),
];

const UNBOUNDED: &str = "UNBOUNDED ";
const CURRENT_ROW: &str = "CURRENT ROW, ";

fn name_of(bound: &str, kind: &str) -> Token {
    Token::make_word(&format!("{EXCLUDES}{bound}{kind}"), Some('"'))
}

/// Changes the EXCLUDE at a place behind a bound, by the places of all tokens that are no blanks. EXCLUDE NO OTHERS says nothing.
pub(super) fn adapt(tokens: &mut [TokenWithSpan], spoken: &[usize], at: usize) {
    let token = |at: Option<usize>| {
        at.and_then(|at| spoken.get(at))
            .map(|at| &tokens[*at].token)
    };
    let word = |at: Option<usize>| match token(at) {
        Some(Token::Word(word)) if word.quote_style.is_none() => word.value.to_ascii_lowercase(),
        _ => String::new(),
    };
    let words = [1, 2].map(|more| word(Some(at + more)));
    let (kind, length) = match [&*words[0], &*words[1]] {
        ["no", "others"] => (None, 3),
        ["current", "row"] => (Some(KINDS[0].1), 3),
        ["group", _] => (Some(KINDS[1].1), 2),
        ["ties", _] => (Some(KINDS[2].1), 2),
        _ => return,
    };
    let said = spoken[at..at + length].to_vec();
    let mut gone = &said[..];
    if let Some(kind) = kind {
        let last = token(at.checked_sub(1)).map_or(Keyword::NoKeyword, keyword);
        let first = token(at.checked_sub(2));
        if matches!(first, Some(Token::Word(word)) if word.value.starts_with(EXCLUDES)) {
            // A second one.
            return;
        }
        let first = first.map_or(Keyword::NoKeyword, keyword);
        let [Some(first_place), Some(last_place)] =
            [2, 1].map(|less| at.checked_sub(less).and_then(|at| spoken.get(at).copied()))
        else {
            return;
        };
        match (first, last) {
            (Keyword::CURRENT, Keyword::ROW) => {
                tokens[first_place].token = name_of(CURRENT_ROW, kind);
                tokens[last_place].token = Token::make_keyword("FOLLOWING");
            }
            (Keyword::UNBOUNDED, _) => tokens[first_place].token = name_of(UNBOUNDED, kind),
            _ => {
                // An expression, and nothing binds less than OR.
                let direction = tokens[last_place].token.clone();
                tokens[last_place].token = Token::make_keyword("OR");
                tokens[said[0]].token = name_of("", kind);
                tokens[said[1]].token = direction;
                gone = &said[2..];
            }
        }
    }
    for place in gone {
        tokens[*place].token = Token::Whitespace(Whitespace::Space);
    }
}

/// A bound as it was written, and what is left out by the EXCLUDE behind it.
pub(crate) fn of_bound(bound: &WindowFrameBound) -> (WindowFrameBound, Exclusion) {
    type Make = fn(Option<Box<Expr>>) -> WindowFrameBound;
    let plain = (bound.clone(), Exclusion::Nothing);
    let (expr, make) = match bound {
        WindowFrameBound::Preceding(Some(expr)) => (expr, WindowFrameBound::Preceding as Make),
        WindowFrameBound::Following(Some(expr)) => (expr, WindowFrameBound::Following as Make),
        _ => return plain,
    };
    let (name, offset) = match &**expr {
        Expr::Identifier(name) => (name, None),
        Expr::BinaryOp {
            left,
            op: BinaryOperator::Or,
            right,
        } => match &**right {
            Expr::Identifier(name) => (name, Some(left.clone())),
            _ => return plain,
        },
        _ => return plain,
    };
    let Some(words) = said(name) else {
        return plain;
    };
    let kind = |words: &str| {
        let found = KINDS.iter().find(|(_, own)| *own == words);
        found.map_or(Exclusion::Nothing, |(kind, _)| *kind)
    };
    if let Some(words) = words.strip_prefix(CURRENT_ROW) {
        return (WindowFrameBound::CurrentRow, kind(words));
    }
    let words = words.strip_prefix(UNBOUNDED).unwrap_or(words);
    (make(offset), kind(words))
}

fn said(name: &Ident) -> Option<&str> {
    name.quote_style?;
    name.value.strip_prefix(EXCLUDES)
}

/// The text of a statement that was read, with EXCLUDE as it was written.
pub(crate) fn with_exclusions(text: &str) -> String {
    if !text.contains(EXCLUDES) {
        return text.to_owned();
    }
    let mut text = text.to_owned();
    for (_, kind) in KINDS {
        let current = format!("\"{EXCLUDES}{CURRENT_ROW}{kind}\" FOLLOWING");
        text = text.replace(&current, &format!("CURRENT ROW EXCLUDE {kind}"));
        for direction in ["PRECEDING", "FOLLOWING"] {
            let unbounded = format!("\"{EXCLUDES}{UNBOUNDED}{kind}\" {direction}");
            let as_written = format!("UNBOUNDED {direction} EXCLUDE {kind}");
            text = text.replace(&unbounded, &as_written);
            let offset = format!(" OR \"{EXCLUDES}{kind}\" {direction}");
            text = text.replace(&offset, &format!(" {direction} EXCLUDE {kind}"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use crate::parse::statements;

    #[test]
    fn what_was_read_is_written_as_it_was() {
        for frame in [
            "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW EXCLUDE CURRENT ROW",
            "ROWS UNBOUNDED PRECEDING EXCLUDE TIES",
            "GROUPS BETWEEN 1 PRECEDING AND 2 + 1 FOLLOWING EXCLUDE GROUP",
            "RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING EXCLUDE TIES",
            "ROWS 2 PRECEDING EXCLUDE CURRENT ROW",
        ] {
            let text = format!("SELECT count(*) OVER (ORDER BY a {frame}) FROM t");
            let read = statements(&text).unwrap().remove(0).to_string();
            assert_ne!(read, text);
            // What is kept of a view is read again.
            let again = statements(&read).unwrap().remove(0).to_string();
            assert_eq!(again, read);
            assert_eq!(with_exclusions(&read), text);
        }
        let none = "SELECT count(*) OVER (ORDER BY a ROWS 1 PRECEDING EXCLUDE NO OTHERS) FROM t";
        let read = statements(none).unwrap().remove(0).to_string();
        assert_eq!(read, none.replace(" EXCLUDE NO OTHERS", ""));
    }

    #[test]
    fn an_exclude_that_is_none_is_no_syntax() {
        for frame in [
            "ROWS 1 PRECEDING EXCLUDE",
            "ROWS 1 PRECEDING EXCLUDE CURRENT",
            "EXCLUDE TIES",
            "ROWS 1 PRECEDING EXCLUDE TIES EXCLUDE GROUP",
        ] {
            let text = format!("SELECT count(*) OVER (ORDER BY a {frame}) FROM t");
            statements(&text).unwrap_err();
        }
    }
}
