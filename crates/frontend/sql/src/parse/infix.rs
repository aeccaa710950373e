//! Operators behind their first operand that the parser does not read, or not with all operands that PostgreSQL takes: COLLATE behind a cast or another COLLATE,
//! `IN ((SELECT …), …)`, LIKE and SIMILAR TO with an ESCAPE that is no plain literal; and COLLATION FOR, which is a call.

use super::dialect::{is_word, keyword};
use sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList,
    FunctionArguments, Ident, ObjectName,
};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

/// A call of one of PostgreSQL's functions.
fn call(name: Ident, arguments: Vec<Expr>) -> Expr {
    let arguments = arguments.into_iter();
    let args = arguments.map(|own| FunctionArg::Unnamed(FunctionArgExpr::Expr(own)));
    Expr::Function(Function {
        name: ObjectName::from(vec![name]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: args.collect(),
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

/// The tokens that come next, without blanks, each with its place among all.
pub(super) fn ahead<'p>(
    parser: &'p Parser<'_>,
    from: usize,
) -> impl Iterator<Item = (usize, &'p Token)> {
    let all = (from..).map(move |at| (at, &parser.token_at(at).token));
    all.filter(|(_, token)| !matches!(token, Token::Whitespace(_)))
}

/// The place of the bracket that closes the one at `open`.
pub(super) fn closing(parser: &Parser<'_>, open: usize) -> Option<usize> {
    let mut depth = 0usize;
    for (at, token) in ahead(parser, open) {
        match token {
            Token::LParen => depth += 1,
            Token::RParen => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at);
                }
            }
            Token::EOF => return None,
            _ => {}
        }
    }
    None
}

/// Whether a query goes on behind one of its own in brackets.
pub(super) fn goes_on(token: &Token) -> bool {
    let words = [
        "union",
        "intersect",
        "except",
        "order",
        "limit",
        "offset",
        "fetch",
    ];
    words.iter().any(|word| is_word(token, word))
}

/// `COLLATION FOR (x)`.
pub(super) fn collation_for(parser: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
    let first = parser.peek_token_ref();
    if !is_word(&first.token, "collation") {
        return None;
    }
    let span = first.span;
    let [word, open] = [1, 2].map(|at| &parser.peek_nth_token_ref(at).token);
    if !is_word(word, "for") || *open != Token::LParen {
        return None;
    }
    for _ in 0..3 {
        parser.advance_token();
    }
    let operand = parser.parse_expr();
    Some(operand.and_then(|operand| {
        parser.expect_token(&Token::RParen)?;
        let name = Ident::with_span(span, "pg_collation_for");
        Ok(call(name, vec![operand]))
    }))
}

/// `x COLLATE name`, where the parser has not read it with what stands in front.
pub(super) fn collate(
    parser: &mut Parser<'_>,
    operand: &Expr,
) -> Option<Result<Expr, ParserError>> {
    if keyword(&parser.peek_token_ref().token) != Keyword::COLLATE {
        return None;
    }
    parser.advance_token();
    let collation = parser.parse_object_name(false);
    Some(collation.map(|collation| Expr::Collate {
        expr: Box::new(operand.clone()),
        collation,
    }))
}

/// `x [NOT] IN ((SELECT …), …)`: a list whose first item begins with a query, which the parser takes for all of it.
pub(super) fn in_list(
    parser: &mut Parser<'_>,
    operand: &Expr,
) -> Option<Result<Expr, ParserError>> {
    let mut next = ahead(parser, parser.index());
    let mut first = next.next()?.1;
    let negated = is_word(first, "not");
    if negated {
        first = next.next()?.1;
    }
    if !is_word(first, "in") || *next.next()?.1 != Token::LParen {
        return None;
    }
    let (open, bracket) = next.next()?;
    if *bracket != Token::LParen {
        return None;
    }
    let query = next
        .map(|(_, token)| token)
        .find(|token| **token != Token::LParen)?;
    if !["select", "with", "values"]
        .iter()
        .any(|word| is_word(query, word))
    {
        return None;
    }
    // In brackets of its own it is the query that is looked into.
    let (_, behind) = ahead(parser, closing(parser, open)? + 1).next()?;
    if *behind == Token::RParen || goes_on(behind) {
        return None;
    }
    for _ in 0..2 + usize::from(negated) {
        parser.advance_token();
    }
    let list = parser.parse_comma_separated(Parser::parse_expr);
    Some(list.and_then(|list| {
        parser.expect_token(&Token::RParen)?;
        Ok(Expr::InList {
            expr: Box::new(operand.clone()),
            list,
            negated,
        })
    }))
}

/// What LIKE and its like are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Likeness {
    Like,
    ILike,
    Similar,
}

/// `x LIKE y ESCAPE z`, where `z` is more than a literal in plain quotes: PostgreSQL's own function makes the pattern.
pub(super) fn escaped(
    parser: &mut Parser<'_>,
    operand: &Expr,
    precedence: u8,
) -> Option<Result<Expr, ParserError>> {
    let mut next = ahead(parser, parser.index()).map(|(_, token)| token);
    let mut first = next.next()?;
    let negated = is_word(first, "not");
    if negated {
        first = next.next()?;
    }
    let likeness = match keyword(first) {
        Keyword::LIKE => Likeness::Like,
        Keyword::ILIKE => Likeness::ILike,
        Keyword::SIMILAR if is_word(next.next()?, "to") => Likeness::Similar,
        _ => return None,
    };
    if !has_escape(next) {
        return None;
    }
    for _ in 0..1 + usize::from(negated) + usize::from(likeness == Likeness::Similar) {
        parser.advance_token();
    }
    Some(read(parser, operand, (likeness, negated), precedence))
}

/// Whether the pattern that follows has an ESCAPE that the parser does not read.
fn has_escape<'t>(mut next: impl Iterator<Item = &'t Token>) -> bool {
    let mut depth = 0usize;
    while let Some(token) = next.next() {
        match token {
            Token::LParen | Token::LBracket => depth += 1,
            Token::RParen | Token::RBracket if depth > 0 => depth -= 1,
            Token::RParen | Token::RBracket | Token::Comma | Token::SemiColon if depth == 0 => {
                return false;
            }
            Token::EOF => return false,
            _ if depth > 0 => {}
            token => match keyword(token) {
                Keyword::ESCAPE => {
                    let plain = matches!(next.next(), Some(Token::SingleQuotedString(_)));
                    let more =
                        matches!(next.next(), Some(Token::StringConcat | Token::DoubleColon));
                    return !plain || more;
                }
                // What ends a pattern that is in no brackets.
                Keyword::AND
                | Keyword::OR
                | Keyword::IS
                | Keyword::AS
                | Keyword::FROM
                | Keyword::WHERE
                | Keyword::THEN
                | Keyword::ELSE
                | Keyword::LIKE
                | Keyword::ILIKE
                | Keyword::SIMILAR => return false,
                _ => {}
            },
        }
    }
    false
}

fn read(
    parser: &mut Parser<'_>,
    operand: &Expr,
    (likeness, negated): (Likeness, bool),
    precedence: u8,
) -> Result<Expr, ParserError> {
    let pattern = parser.parse_subexpr(precedence)?;
    let span = parser.peek_token_ref().span;
    parser.expect_keyword(Keyword::ESCAPE)?;
    let escape = parser.parse_subexpr(precedence)?;
    let name = match likeness {
        Likeness::Like | Likeness::ILike => "like_escape",
        Likeness::Similar => "similar_to_escape",
    };
    let pattern = Box::new(call(Ident::with_span(span, name), vec![pattern, escape]));
    let expr = Box::new(operand.clone());
    let (any, escape_char) = (false, None);
    Ok(match likeness {
        Likeness::Like => Expr::Like {
            negated,
            any,
            expr,
            pattern,
            escape_char,
        },
        Likeness::ILike => Expr::ILike {
            negated,
            any,
            expr,
            pattern,
            escape_char,
        },
        Likeness::Similar => {
            let op = match negated {
                false => BinaryOperator::PGRegexMatch,
                true => BinaryOperator::PGRegexNotMatch,
            };
            // In brackets: it binds as SIMILAR TO does, not as the operator.
            Expr::Nested(Box::new(Expr::BinaryOp {
                left: expr,
                op,
                right: pattern,
            }))
        }
    })
}
