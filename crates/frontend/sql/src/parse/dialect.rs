//! PostgreSQL's dialect with a bound on the parser's work.
//!
//! The parser tries one reading of what it meets, and on an error goes back and tries another. Where readings are nested
//! (`case when true then case when …`, `cast(cast(…`) an error at the bottom doubles the work with every level above it. So
//! expressions that are begun are counted; a text that begins far more of them than it has tokens is refused.

use super::infix::{self, closing, goes_on};
use super::{commands, domains, extensions, rows, sequences, subscripts, typed, types};
use sqlparser::ast::{
    BinaryOperator, ColumnOption, DescribeAlias, Expr, Ident, Interval, KeyOrIndexDisplay,
    NullsDistinctOption, ObjectNamePart, Set, Statement, UnaryOperator, UniqueConstraint, Value,
};
use sqlparser::dialect::{Dialect, PostgreSqlDialect, Precedence};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan};
use std::any::TypeId;
use std::cell::Cell;

/// Expressions that may be begun for each token, on average. A text that is read at once begins fewer than it has tokens; each begins in
/// microseconds, and no limit of time ends the parser.
const PER_TOKEN: u64 = 4;
/// And those that any text may begin.
const AT_LEAST: u64 = 20_000;

/// So many bytes of an expression that is copied are one that is begun.
const BYTES_COPIED: u64 = 16;

/// What stands before an array that is the rest of a call's arguments; no name is it.
pub(crate) const VARIADIC: &str = "variadic";

/// The dialect, for one text.
#[derive(Debug)]
pub(super) struct Bounded {
    base: PostgreSqlDialect,
    left: Cell<u64>,
    /// Whether the text may have fields of rows, `(row).*`.
    fields: bool,
}

impl Bounded {
    pub fn new(tokens: &[TokenWithSpan]) -> Self {
        Self {
            base: PostgreSqlDialect {},
            left: Cell::new(AT_LEAST + PER_TOKEN * tokens.len() as u64),
            fields: rows::has_fields(tokens),
        }
    }

    /// Counts expressions that are begun, or copied.
    fn spend(&self, expressions: u64) -> Result<(), ParserError> {
        let left = self.left.get().checked_sub(expressions);
        self.left.set(left.unwrap_or(0));
        left.map(drop).ok_or(ParserError::RecursionLimitExceeded)
    }

    /// Whether the text was refused for its work. The parser's own error may have been replaced by another reading's.
    pub fn is_spent(&self) -> bool {
        self.left.get() == 0
    }
}

/// Whether a token is this word, without quotes.
pub(super) fn is_word(token: &Token, word: &str) -> bool {
    matches!(token, Token::Word(own) if own.quote_style.is_none() && own.value.eq_ignore_ascii_case(word))
}

/// The keyword that a token is, without quotes.
pub(super) fn keyword(token: &Token) -> Keyword {
    match token {
        Token::Word(word) if word.quote_style.is_none() => word.keyword,
        _ => Keyword::NoKeyword,
    }
}

/// BETWEEN, and if it is symmetric also with its bounds the other way round.
fn either_way(between: Expr, symmetric: bool, negated: bool) -> Expr {
    let nested = |expr| Expr::Nested(Box::new(expr));
    let mut whole = nested(between.clone());
    if let (
        true,
        Expr::Between {
            expr, low, high, ..
        },
    ) = (symmetric, between)
    {
        let other = Expr::Between {
            expr,
            negated: false,
            low: high,
            high: low,
        };
        whole = nested(Expr::BinaryOp {
            left: Box::new(whole),
            op: BinaryOperator::Or,
            right: Box::new(nested(other)),
        });
    }
    if negated {
        whole = nested(Expr::UnaryOp {
            op: UnaryOperator::Not,
            expr: Box::new(whole),
        });
    }
    whole
}

/// UNIQUE NULLS [NOT] DISTINCT behind a column, of which the parser knows the first word.
fn unique_column(parser: &mut Parser<'_>) -> Option<Result<ColumnOption, ParserError>> {
    let [first, second] = [0, 1].map(|at| &parser.peek_nth_token_ref(at).token);
    if !is_word(first, "unique") || !is_word(second, "nulls") {
        return None;
    }
    parser.advance_token();
    parser.advance_token();
    let nulls_distinct = match parser.parse_keyword(Keyword::NOT) {
        true => NullsDistinctOption::NotDistinct,
        false => NullsDistinctOption::Distinct,
    };
    let expected = parser.expect_keyword(Keyword::DISTINCT);
    let read = expected.and_then(|_| parser.parse_constraint_characteristics());
    Some(read.map(|characteristics| {
        ColumnOption::Unique(UniqueConstraint {
            name: None,
            index_name: None,
            index_type_display: KeyOrIndexDisplay::None,
            index_type: None,
            columns: Vec::new(),
            index_options: Vec::new(),
            characteristics,
            nulls_distinct,
        })
    }))
}

/// Whether a query comes next, in so many brackets; the place of its first word.
fn bracketed_query(parser: &Parser<'_>, from: usize) -> Option<usize> {
    let mut at = from;
    while parser.peek_nth_token_ref(at).token == Token::LParen {
        at += 1;
    }
    let first = &parser.peek_nth_token_ref(at).token;
    let words = ["select", "with", "values"];
    (at > from && words.iter().any(|word| is_word(first, word))).then_some(at)
}

/// EXPLAIN of a query that begins with a bracket, which the parser takes for that of options.
fn explain_of_query(parser: &mut Parser<'_>) -> Option<Result<Statement, ParserError>> {
    if !parser.peek_keyword(Keyword::EXPLAIN) {
        return None;
    }
    bracketed_query(parser, 1)?;
    parser.advance_token();
    let query = parser.parse_query();
    Some(query.map(|query| Statement::Explain {
        describe_alias: DescribeAlias::Explain,
        analyze: false,
        verbose: false,
        query_plan: false,
        estimate: false,
        statement: Box::new(Statement::Query(query)),
        format: None,
        options: None,
    }))
}

/// SET LOCAL TRANSACTION SNAPSHOT, which PostgreSQL reads and refuses: carried as a snapshot that is said of the session. (The parser forgets the LOCAL.)
fn local_snapshot(parser: &mut Parser<'_>) -> Option<Result<Statement, ParserError>> {
    let words = [
        Keyword::SET,
        Keyword::LOCAL,
        Keyword::TRANSACTION,
        Keyword::SNAPSHOT,
    ];
    if !parser.parse_keywords(&words) {
        return None;
    }
    Some(parser.parse_value().map(|identifier| {
        Set::SetTransaction {
            modes: Vec::new(),
            snapshot: Some(identifier),
            session: true,
        }
        .into()
    }))
}

/// A subquery whose first query stands in brackets of its own, which the parser takes for all of it: `((SELECT …) UNION …)`.
fn bracketed_subquery(parser: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
    let first = bracketed_query(parser, 0)?;
    if first < 2 {
        return None;
    }
    // What follows the bracket that closes the inner one.
    let (inner, _) = infix::ahead(parser, parser.index()).nth(1)?;
    let (_, behind) = infix::ahead(parser, closing(parser, inner)? + 1).next()?;
    if !goes_on(behind) {
        return None;
    }
    parser.advance_token();
    let query = parser.parse_query();
    Some(query.and_then(|query| {
        parser.expect_token(&Token::RParen)?;
        Ok(Expr::Subquery(query))
    }))
}

/// What PostgreSQL's dialect says, for the questions that it answers itself.
macro_rules! as_base {
    ($($name:ident),* $(,)?) => {
        $(fn $name(&self) -> bool {
            self.base.$name()
        })*
    };
}

/// `INTERVAL(3) '…'`, whose digits the parser forgets.
fn interval_of_digits(parser: &mut Parser<'_>) -> Option<Expr> {
    if !is_word(&parser.peek_token_ref().token, "interval") {
        return None;
    }
    let [open, digits, close, text] =
        [1, 2, 3, 4].map(|at| parser.peek_nth_token_ref(at).token.clone());
    let (Token::LParen, Token::Number(digits, _), Token::RParen) = (open, digits, close) else {
        return None;
    };
    let digits = digits.parse().ok()?;
    let Token::SingleQuotedString(text) = text else {
        return None;
    };
    for _ in 0..5 {
        parser.advance_token();
    }
    Some(Expr::Interval(Interval {
        value: Box::new(Expr::Value(Value::SingleQuotedString(text).into())),
        leading_field: None,
        leading_precision: None,
        last_field: None,
        fractional_seconds_precision: Some(digits),
    }))
}

/// `OPERATOR(schema.operator) ANY (…)`, ALL and SOME; `None` for what the parser reads itself.
fn named_quantified(parser: &mut Parser<'_>, left: &Expr) -> Option<Result<Expr, ParserError>> {
    let mut parts = Vec::new();
    // Behind the parenthesis: names with points between them, and the operator.
    let mut at = 2;
    loop {
        let token = &parser.peek_nth_token_ref(at).token;
        at += 1;
        match token {
            Token::RParen => break,
            Token::EOF | Token::SemiColon => return None,
            Token::Period => {}
            part => parts.push(part.to_string()),
        }
    }
    let quantifier = parser.peek_nth_token_ref(at).token.clone();
    let all = is_word(&quantifier, "all");
    let any = is_word(&quantifier, "any") || is_word(&quantifier, "some");
    if !(all || any) || parser.peek_nth_token_ref(at + 1).token != Token::LParen {
        return None;
    }
    for _ in 0..=at {
        parser.advance_token();
    }
    let compare_op = BinaryOperator::PGCustomBinaryOperator(parts);
    let left = Box::new(left.clone());
    let query = [Keyword::SELECT, Keyword::WITH, Keyword::VALUES];
    let is_query = match &parser.peek_nth_token_ref(1).token {
        Token::Word(word) => word.quote_style.is_none() && query.contains(&word.keyword),
        _ => false,
    };
    let inside = parser.expect_token(&Token::LParen);
    let right = inside.and_then(|_| {
        let right = match is_query {
            true => Expr::Subquery(parser.parse_query()?),
            false => parser.parse_expr()?,
        };
        parser.expect_token(&Token::RParen)?;
        Ok(right)
    });
    Some(right.map(|right| match all {
        true => Expr::AllOp {
            left,
            compare_op,
            right: Box::new(right),
        },
        false => Expr::AnyOp {
            left,
            compare_op,
            right: Box::new(right),
            is_some: false,
        },
    }))
}

impl Dialect for Bounded {
    fn dialect(&self) -> TypeId {
        self.base.dialect()
    }

    /// Operators in front of their operand: signs bind before powers, all others behind sums, as PostgreSQL has it.
    fn parse_prefix(&self, parser: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
        if let Err(error) = self.spend(1) {
            return Some(Err(error));
        }
        if let Some(interval) = interval_of_digits(parser) {
            return Some(Ok(interval));
        }
        if let Some(literal) = typed::literal(parser) {
            return Some(literal);
        }
        if self.fields
            && let Some(fields) = rows::fields(parser)
        {
            return Some(fields);
        }
        if let Some(subquery) = bracketed_subquery(parser) {
            return Some(subquery);
        }
        if let Some(call) = infix::collation_for(parser) {
            return Some(call);
        }
        if is_word(&parser.peek_token_ref().token, "values")
            && parser.peek_nth_token_ref(1).token == Token::LParen
        {
            // A query in brackets, which the parser takes for a call.
            return Some(parser.parse_query().map(Expr::Subquery));
        }
        if is_word(&parser.peek_token_ref().token, VARIADIC) {
            parser.advance_token();
            let array = parser.parse_expr();
            return Some(array.map(|array| Expr::Prefixed {
                prefix: Ident::new(VARIADIC),
                value: Box::new(array),
            }));
        }
        let (op, precedence) = match &parser.peek_token_ref().token {
            Token::Plus => (UnaryOperator::Plus, Precedence::Caret),
            Token::Minus => (UnaryOperator::Minus, Precedence::Caret),
            Token::Tilde => (UnaryOperator::BitwiseNot, Precedence::PgOther),
            Token::PGSquareRoot => (UnaryOperator::PGSquareRoot, Precedence::PgOther),
            Token::PGCubeRoot => (UnaryOperator::PGCubeRoot, Precedence::PgOther),
            Token::AtSign => (UnaryOperator::PGAbs, Precedence::PgOther),
            _ => return None,
        };
        parser.advance_token();
        let operand = parser.parse_subexpr(self.prec_value(precedence));
        Some(operand.map(|operand| Expr::UnaryOp {
            op,
            expr: Box::new(operand),
        }))
    }

    /// Statements that the parser does not know.
    fn parse_statement(&self, parser: &mut Parser<'_>) -> Option<Result<Statement, ParserError>> {
        let own = explain_of_query(parser).or_else(|| commands::statement(parser));
        let own = own.or_else(|| local_snapshot(parser));
        let own = own.or_else(|| types::statement(parser));
        let own = own.or_else(|| domains::statement(parser));
        let own = own.or_else(|| extensions::statement(parser));
        own.or_else(|| sequences::statement(parser))
    }

    fn parse_column_option(
        &self,
        parser: &mut Parser<'_>,
    ) -> Result<Option<Result<Option<ColumnOption>, ParserError>>, ParserError> {
        let option = sequences::column_option(parser).or_else(|| unique_column(parser));
        Ok(option.map(|option| option.map(Some)))
    }

    fn identifier_quote_style(&self, identifier: &str) -> Option<char> {
        self.base.identifier_quote_style(identifier)
    }

    fn is_delimited_identifier_start(&self, ch: char) -> bool {
        self.base.is_delimited_identifier_start(ch)
    }

    fn is_identifier_start(&self, ch: char) -> bool {
        self.base.is_identifier_start(ch)
    }

    fn is_identifier_part(&self, ch: char) -> bool {
        self.base.is_identifier_part(ch)
    }

    fn is_reserved_for_identifier(&self, keyword: Keyword) -> bool {
        self.base.is_reserved_for_identifier(keyword)
    }

    fn is_identifier_generating_function_name(
        &self,
        ident: &Ident,
        _name_parts: &[ObjectNamePart],
    ) -> bool {
        ident.value == subscripts::SUBSCRIPTED
    }

    /// CREATE and GRANT are no names: a statement may follow a query, in CREATE SCHEMA.
    fn is_column_alias(&self, keyword: &Keyword, parser: &mut Parser<'_>) -> bool {
        !matches!(keyword, Keyword::CREATE | Keyword::GRANT)
            && self.base.is_column_alias(keyword, parser)
    }

    fn is_table_alias(&self, keyword: &Keyword, parser: &mut Parser<'_>) -> bool {
        !matches!(keyword, Keyword::CREATE | Keyword::GRANT)
            && self.base.is_table_alias(keyword, parser)
    }

    fn is_custom_operator_part(&self, ch: char) -> bool {
        self.base.is_custom_operator_part(ch)
    }

    fn get_next_precedence(&self, parser: &Parser<'_>) -> Option<Result<u8, ParserError>> {
        let token = &parser.peek_token_ref().token;
        if is_word(token, "isnull") {
            return Some(Ok(self.prec_value(Precedence::Is)));
        }
        // The parser takes these for comparisons, or for BETWEEN.
        let other = matches!(
            token,
            Token::Tilde
                | Token::TildeAsterisk
                | Token::ExclamationMarkTilde
                | Token::ExclamationMarkTildeAsterisk
                | Token::DoubleTilde
                | Token::DoubleTildeAsterisk
                | Token::ExclamationMarkDoubleTilde
                | Token::ExclamationMarkDoubleTildeAsterisk
        );
        let named =
            is_word(token, "operator") && parser.peek_nth_token_ref(1).token == Token::LParen;
        if other || named {
            return Some(Ok(self.prec_value(Precedence::PgOther)));
        }
        self.base.get_next_precedence(parser)
    }

    /// What the parser does not know (`infix`): `x OPERATOR(pg_catalog.=) ANY (…)`, `x ISNULL`, `x [NOT] BETWEEN SYMMETRIC a AND b`; and IS DISTINCT FROM, behind which it reads all that follows,
    /// AND and OR too.
    fn parse_infix(
        &self,
        parser: &mut Parser<'_>,
        expr: &Expr,
        _precedence: u8,
    ) -> Option<Result<Expr, ParserError>> {
        let [first, second, third] =
            [0, 1, 2].map(|at| parser.peek_nth_token_ref(at).token.clone());
        if is_word(&first, "isnull") {
            parser.advance_token();
            return Some(Ok(Expr::IsNull(Box::new(expr.clone()))));
        }
        if is_word(&first, "operator") && second == Token::LParen {
            return named_quantified(parser, expr);
        }
        if is_word(&first, "is") {
            let negated = is_word(&second, "not");
            let distinct = if negated { &third } else { &second };
            let from = parser.peek_nth_token_ref(2 + usize::from(negated));
            if !is_word(distinct, "distinct") || !is_word(&from.token, "from") {
                return None;
            }
            for _ in 0..3 + usize::from(negated) {
                parser.advance_token();
            }
            let left = Box::new(expr.clone());
            let right = parser.parse_subexpr(self.prec_value(Precedence::Is));
            return Some(right.map(|right| match negated {
                false => Expr::IsDistinctFrom(left, Box::new(right)),
                true => Expr::IsNotDistinctFrom(left, Box::new(right)),
            }));
        }
        let like = self.prec_value(Precedence::Like);
        let own = infix::collate(parser, expr)
            .or_else(|| infix::in_list(parser, expr))
            .or_else(|| infix::escaped(parser, expr, like));
        if let Some(own) = own {
            return Some(own.and_then(|own| {
                self.spend(expr.to_string().len() as u64 / BYTES_COPIED)?;
                Ok(own)
            }));
        }
        let negated = is_word(&first, "not");
        let (between, how) = if negated {
            (&second, &third)
        } else {
            (&first, &second)
        };
        let symmetric = is_word(how, "symmetric");
        if !is_word(between, "between") || !(symmetric || is_word(how, "asymmetric")) {
            return None;
        }
        for _ in 0..2 + usize::from(negated) {
            parser.advance_token();
        }
        let between = parser.parse_between(expr.clone(), false);
        Some(between.and_then(|between| {
            if symmetric {
                // What is within each other is doubled each time. About as many expressions as characters are copied.
                self.spend(between.to_string().len() as u64)?;
            }
            Ok(either_way(between, symmetric, negated))
        }))
    }

    fn prec_value(&self, precedence: Precedence) -> u8 {
        self.base.prec_value(precedence)
    }

    as_base!(
        supports_unicode_string_literal,
        supports_filter_during_aggregation,
        supports_group_by_expr,
        allow_extract_custom,
        allow_extract_single_quotes,
        supports_create_index_with_clause,
        supports_explain_with_utility_options,
        supports_listen_notify,
        supports_factorial_operator,
        supports_bitwise_shift_operators,
        supports_comment_on,
        supports_load_extension,
        supports_named_fn_args_with_colon_operator,
        supports_named_fn_args_with_expr_name,
        supports_empty_projections,
        supports_nested_comments,
        supports_string_escape_constant,
        supports_numeric_literal_underscores,
        supports_array_typedef_with_brackets,
        supports_geometric_types,
        supports_set_names,
        supports_alter_column_type_using,
        supports_notnull_operator,
        supports_interval_options,
        supports_insert_table_alias,
        supports_create_table_like_parenthesized,
        supports_select_wildcard_with_alias,
        supports_comma_separated_trim,
        supports_xml_expressions,
        supports_comment_optimizer_hint,
    );
}
