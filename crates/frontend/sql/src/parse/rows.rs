//! `t.*` as a value, and `(row).*`, the fields of one.
//!
//! The parser takes `t.*` at the begin of an item of a list, and of an argument, for all of it: where an operator stands behind it, it is put in parentheses among the tokens. As an argument it is an
//! expression like all others here. `(row).*` becomes an access of a field that is a star: both are written as they were.

use super::dialect::{is_word, keyword};
use super::infix::{ahead, closing};
use super::walk;
use sqlparser::ast::helpers::attached_token::AttachedToken;
use sqlparser::ast::{
    AccessExpr, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, ObjectName, VisitMut,
};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan};
use std::ops::ControlFlow;

/// Whether a text has stars behind names, or behind brackets.
pub(super) fn has_stars(tokens: &[TokenWithSpan]) -> bool {
    let mut spoken = tokens.iter().map(|own| &own.token);
    let mut last = &Token::EOF;
    spoken.any(|token| {
        let is_star = *token == Token::Mul && *last == Token::Period;
        if !matches!(token, Token::Whitespace(_)) {
            last = token;
        }
        is_star
    })
}

/// Whether a text may have fields of rows, `(row).*`.
pub(super) fn has_fields(tokens: &[TokenWithSpan]) -> bool {
    let mut behind_bracket = false;
    let mut last = &Token::EOF;
    for own in tokens {
        match &own.token {
            Token::Whitespace(_) => continue,
            Token::Mul if behind_bracket && *last == Token::Period => return true,
            Token::RParen => behind_bracket = true,
            Token::Period | Token::Word(_) => {}
            _ => behind_bracket = false,
        }
        last = &own.token;
    }
    false
}

/// Puts parentheses around `t.*` where an operator stands behind it. Places in the text stay as they are.
pub(super) fn adapt(tokens: &mut Vec<TokenWithSpan>) {
    let spoken: Vec<usize> = (0..tokens.len())
        .filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_)))
        .collect();
    let token = |at: usize| spoken.get(at).map(|at| &tokens[*at].token);
    let is_word = |at: usize| matches!(token(at), Some(Token::Word(_)));
    let mut found = Vec::new();
    for star in 2..spoken.len() {
        let is_star = token(star) == Some(&Token::Mul) && token(star - 1) == Some(&Token::Period);
        if !is_star || !is_word(star - 2) || !token(star + 1).is_some_and(is_operator) {
            continue;
        }
        let mut first = star - 2;
        while first > 1 && token(first - 1) == Some(&Token::Period) && is_word(first - 2) {
            first -= 2;
        }
        // Behind a bracket it is a field of a row.
        if first == 0 || token(first - 1) != Some(&Token::Period) {
            found.push((spoken[first], spoken[star]));
        }
    }
    if found.is_empty() {
        return;
    }
    let mut found = found.into_iter().peekable();
    let mut made = Vec::with_capacity(tokens.len() + 2 * found.len());
    for (at, own) in tokens.drain(..).enumerate() {
        let span = own.span;
        let beside = |token| TokenWithSpan { token, span };
        match found.peek() {
            Some((first, _)) if *first == at => made.extend([beside(Token::LParen), own]),
            Some((_, star)) if *star == at => {
                made.extend([own, beside(Token::RParen)]);
                found.next();
            }
            _ => made.push(own),
        }
    }
    *tokens = made;
}

/// Whether an expression goes on with it behind an operand.
fn is_operator(token: &Token) -> bool {
    match token {
        Token::DoubleColon
        | Token::Eq
        | Token::Neq
        | Token::Lt
        | Token::LtEq
        | Token::Gt
        | Token::GtEq
        | Token::Plus
        | Token::Minus
        | Token::StringConcat => true,
        token => {
            let words = [
                Keyword::IS,
                Keyword::NOTNULL,
                Keyword::IN,
                Keyword::NOT,
                Keyword::BETWEEN,
                Keyword::COLLATE,
            ];
            words.contains(&keyword(token)) || is_word(token, "isnull")
        }
    }
}

/// Makes `t.*` as an argument an expression.
pub(super) fn as_arguments(node: &mut impl VisitMut) {
    walk::change_expressions(node, &mut |expr| {
        if let Expr::Function(function) = expr
            && let FunctionArguments::List(list) = &mut function.args
        {
            for argument in &mut list.args {
                if let FunctionArg::Unnamed(argument) = argument
                    && let FunctionArgExpr::QualifiedWildcard(table) = argument
                {
                    let table = std::mem::replace(table, ObjectName(Vec::new()));
                    let row = Expr::QualifiedWildcard(table, AttachedToken::empty());
                    *argument = FunctionArgExpr::Expr(row);
                }
            }
        }
        ControlFlow::Continue(())
    });
}

/// `(row).*` and `(row).field.*`; `None` for anything else.
pub(super) fn fields(parser: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
    let (open, bracket) = ahead(parser, parser.index()).next()?;
    if *bracket != Token::LParen {
        return None;
    }
    ends_in_star(parser, closing(parser, open)? + 1)?;
    Some(read(parser))
}

/// That names and a star are what comes next, each behind a point.
fn ends_in_star(parser: &Parser<'_>, from: usize) -> Option<()> {
    let mut next = ahead(parser, from).map(|(_, token)| token);
    loop {
        match (next.next()?, next.next()?) {
            (Token::Period, Token::Word(_)) => {}
            (Token::Period, Token::Mul) => return Some(()),
            _ => return None,
        }
    }
}

fn read(parser: &mut Parser<'_>) -> Result<Expr, ParserError> {
    parser.expect_token(&Token::LParen)?;
    let first = &parser.peek_token_ref().token;
    let is_query = ["select", "with", "values"]
        .iter()
        .any(|word| is_word(first, word));
    let root = Box::new(match is_query {
        true => Expr::Subquery(parser.parse_query()?),
        false => Expr::Nested(Box::new(parser.parse_expr()?)),
    });
    parser.expect_token(&Token::RParen)?;
    let mut access_chain = Vec::new();
    while parser.consume_token(&Token::Period) {
        let star = parser.peek_token_ref().clone();
        if star.token == Token::Mul {
            parser.advance_token();
            let star = Expr::Wildcard(AttachedToken(star));
            access_chain.push(AccessExpr::Dot(star));
            break;
        }
        let field = Expr::Identifier(parser.parse_identifier()?);
        access_chain.push(AccessExpr::Dot(field));
    }
    Ok(Expr::CompoundFieldAccess { root, access_chain })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::super::{statements, with_stack};

    /// What a text is read as, and that this is read as itself.
    fn read(text: &str, wanted: &str) {
        with_stack(|| {
            for text in [text, wanted] {
                let read = statements(text).unwrap();
                assert_eq!(read[0].to_string(), wanted);
            }
        });
    }

    #[test]
    fn a_star_is_a_value_where_an_operator_or_an_argument_says_so() {
        read("select t.* from t", "SELECT t.* FROM t");
        read(
            "select t.*::text, a.t . * is null from t",
            "SELECT (t.*)::TEXT, (a.t.*) IS NULL FROM t",
        );
        read(
            "select f(t.*::text, t.* = u.*, 1 * 2)",
            "SELECT f((t.*)::TEXT, (t.*) = u.*, 1 * 2)",
        );
        read(
            "select row(t.*, 1), count(distinct t.*) from t",
            "SELECT row(t.*, 1), count(DISTINCT t.*) FROM t",
        );
        read(
            "select 1 from t where t.* isnull order by t.* desc",
            "SELECT 1 FROM t WHERE (t.*) IS NULL ORDER BY t.* DESC",
        );
    }

    #[test]
    fn fields_of_rows_are_written_as_they_are_read() {
        read(
            "select (f(x)).*, (t).a.*, 2 from t",
            "SELECT (f(x)).*, (t).a.*, 2 FROM t",
        );
        read(
            "select row((t).*), (select t from t).* from t",
            "SELECT row((t).*), (SELECT t FROM t).* FROM t",
        );
        read(
            "select (a).b * 2, (a) * 2 from t",
            "SELECT (a).b * 2, (a) * 2 FROM t",
        );
    }
}
