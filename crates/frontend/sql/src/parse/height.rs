//! How high the trees of a text can become, told from its tokens before the parser builds them.
//!
//! The parser turns chains (`1 + 1 + 1`, `a is null is null`, `select … union select …`) into left-deep trees in a loop, so its own limit,
//! which counts calls within calls, does not see them; and some of its calls it does not count.
//!
//! Invariants:
//! - H1 A tree is at most as high as the chains in which it stands and those in it have operators together. A comma ends a chain of operators
//!   at its level of brackets and begins another beside it; what stands in brackets is part of the chain around them. A chain of set
//!   operations goes on behind commas. CASE and its END are brackets, WHEN, THEN and ELSE between them commas.
//!   Casts bind closer than every operator that stands between two operands, so those behind one operand make its tree higher and no other's: of them the longest row in a chain counts, and not all together.
//! - H2 Every token that can join what stands left of it to a new tree counts. Words that are none are known: names are many, and
//!   join nothing.

use super::dialect::is_word;
use super::{NESTING_MAX, too_deep};
use crate::error::Result;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// Operators in chains in each other.
pub(super) const CHAIN_MAX: usize = 4000;
/// A set operation takes as much stack as so many operators.
const SET_OPERATION: usize = 4;
/// Parentheses in a row where a table is expected: each may be a subquery or a join, and the parser tries both.
const PARENTHESES_MAX: usize = 10;

/// NOTs in a row, with the brackets around them. At its own limit the parser takes a NOT for a name, and what is behind it for a wrong word.
const NOTS_MAX: usize = NESTING_MAX - 20;

/// What stands between two brackets, so far.
#[derive(Clone, Copy, Default)]
struct Level {
    /// Operators since the last comma, with those in brackets among them, without casts.
    chain: usize,
    /// Casts since the last operator, and the most that stood so in this chain.
    casts: usize,
    casts_most: usize,
    /// The most before a comma.
    highest: usize,
    /// Set operations, in operators.
    queries: usize,
    /// What began it is a CASE.
    case: bool,
}

impl Level {
    /// A comma, or what is like one.
    fn go_on(&mut self) {
        self.highest = self.highest.max(self.chain + self.casts_most);
        (self.chain, self.casts, self.casts_most) = (0, 0, 0);
    }

    /// `::`.
    fn cast(&mut self) {
        self.casts += 1;
        self.casts_most = self.casts_most.max(self.casts);
    }

    /// An operator that is no cast.
    fn operator(&mut self) {
        self.chain += 1;
        self.casts = 0;
    }

    fn height(self) -> usize {
        self.highest.max(self.chain + self.casts_most) + self.queries
    }
}

/// Refuses what would be too high.
///
/// # Errors
/// `54001`.
pub(super) fn check(tokens: &[TokenWithSpan]) -> Result<()> {
    let mut around: Vec<Level> = Vec::new();
    let mut level = Level::default();
    let (mut table, mut parentheses) = (false, 0_usize);
    let (mut intervals, mut nots) = (0_usize, 0_usize);
    let mut behind_period = false;
    for token in tokens {
        match &token.token {
            Token::Whitespace(_) => continue,
            Token::LParen if table => parentheses += 1,
            Token::Word(word) => {
                table = matches!(word.keyword, Keyword::FROM | Keyword::JOIN | Keyword::USING);
                parentheses = 0;
            }
            _ => (table, parentheses) = (false, 0),
        }
        // An interval of an interval is a call that the parser does not count.
        intervals = match &token.token {
            Token::Word(word) if word.keyword == Keyword::INTERVAL => intervals + 1,
            _ => 0,
        };
        nots = match &token.token {
            Token::Word(word) if word.keyword == Keyword::NOT => nots + 1,
            _ => 0,
        };
        match &token.token {
            Token::SemiColon if around.is_empty() => level = Level::default(),
            Token::Comma | Token::SemiColon => level.go_on(),
            Token::LParen | Token::LBracket | Token::LBrace => {
                // `a[1][1]` is a chain.
                level.chain += usize::from(token.token == Token::LBracket);
                around.push(std::mem::take(&mut level));
            }
            Token::RParen | Token::RBracket | Token::RBrace => {
                // One that closes nothing is refused by the parser, and so is a CASE without an END.
                while level.case {
                    close(&mut level, &mut around);
                }
                close(&mut level, &mut around);
            }
            Token::Word(word) if word.keyword == Keyword::CASE && !behind_period => {
                around.push(std::mem::take(&mut level));
                level.case = true;
            }
            Token::Word(word) if word.keyword == Keyword::END && level.case => {
                close(&mut level, &mut around);
            }
            Token::Word(word) if level.case && is_part_of_case(word.keyword) => level.go_on(),
            Token::Word(word) if is_set_operation(word.keyword) => level.queries += SET_OPERATION,
            Token::Word(word) if !is_operator(word.keyword) && !is_word(&token.token, "isnull") => {
            }
            // Of the name of a type, or of a column.
            Token::Period => level.chain += 1,
            Token::Number(..) | Token::SingleQuotedString(_) | Token::Placeholder(_) => {}
            Token::DoubleColon => level.cast(),
            _ => level.operator(),
        }
        if level.height() > CHAIN_MAX
            || around.len() > NESTING_MAX
            || intervals > NESTING_MAX
            || (nots > 0 && around.len() + nots > NOTS_MAX)
            || parentheses > PARENTHESES_MAX
        {
            return Err(too_deep());
        }
        behind_period = token.token == Token::Period;
    }
    Ok(())
}

/// What stands in brackets is part of the chain around them.
fn close(level: &mut Level, around: &mut Vec<Level>) {
    if let Some(outer) = around.pop() {
        let inner = std::mem::replace(level, outer);
        level.chain += inner.height();
    }
}

fn is_part_of_case(keyword: Keyword) -> bool {
    matches!(keyword, Keyword::WHEN | Keyword::THEN | Keyword::ELSE)
}

fn is_set_operation(keyword: Keyword) -> bool {
    matches!(
        keyword,
        Keyword::UNION | Keyword::EXCEPT | Keyword::INTERSECT | Keyword::MINUS
    )
}

/// H2: the words before which an expression, or a table, may stand, as the parser's precedences name them.
fn is_operator(keyword: Keyword) -> bool {
    matches!(
        keyword,
        Keyword::AND
            | Keyword::OR
            | Keyword::XOR
            | Keyword::NOT
            | Keyword::NOTNULL
            | Keyword::IS
            | Keyword::IN
            | Keyword::LIKE
            | Keyword::ILIKE
            | Keyword::RLIKE
            | Keyword::REGEXP
            | Keyword::MATCH
            | Keyword::SIMILAR
            | Keyword::MEMBER
            | Keyword::BETWEEN
            | Keyword::OVERLAPS
            | Keyword::OPERATOR
            | Keyword::DIV
            | Keyword::COLLATE
            | Keyword::AT
            | Keyword::JOIN
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use sqlparser::dialect::PostgreSqlDialect;
    use sqlparser::tokenizer::Tokenizer;

    fn fits(text: &str) -> bool {
        let mut tokens = Tokenizer::new(&PostgreSqlDialect {}, text);
        check(&tokens.tokenize_with_location().unwrap()).is_ok()
    }

    #[test]
    fn operators_that_the_parser_has_no_keyword_for_count_and_names_like_them_do_not() {
        let tests = |word: &str, many: usize| format!("select a {}", word.repeat(many));
        for word in [
            " isnull",
            " ISNULL",
            " notnull",
            " between symmetric 1 and 2",
        ] {
            assert!(fits(&tests(word, CHAIN_MAX / 2)), "{word}");
            assert!(!fits(&tests(word, CHAIN_MAX + 1)), "{word}");
        }
        assert!(fits(&tests(" \"isnull\"", CHAIN_MAX + 1)));
    }

    #[test]
    fn chains_beside_each_other_count_by_the_longest_and_those_in_each_other_by_their_sum() {
        let chain = |many: usize| format!("1{}", " + 1".repeat(many));
        assert!(fits(&format!("select {}", chain(CHAIN_MAX))));
        assert!(!fits(&format!("select {}", chain(CHAIN_MAX + 1))));
        let half = chain(CHAIN_MAX / 2 - 1);
        assert!(fits(&format!("select {half}, {half}, f({half}, {half})")));
        assert!(fits(&format!(
            "select {half}; select {half}; select {half}"
        )));
        assert!(fits(&format!("select f(f({half}, 0), 0) + {half}")));
        assert!(!fits(&format!(
            "select f(f({half}, 0) + {half}, 0) + 1 + 1"
        )));
        assert!(!fits(&format!(
            "select array[array[{half}][1], 0][1] + {half}"
        )));
    }

    #[test]
    fn casts_count_where_they_stand_one_behind_the_other() {
        let sum = |many: usize, casts: usize| {
            let one = format!("$1{}", "::int".repeat(casts));
            format!("select {one}{}", format!(" + {one}").repeat(many))
        };
        assert!(fits(&sum(CHAIN_MAX - 1, 1)));
        assert!(!fits(&sum(CHAIN_MAX, 1)));
        assert!(fits(&sum(CHAIN_MAX - 10, 10)));
        assert!(!fits(&sum(CHAIN_MAX - 9, 10)));
        assert!(fits(&sum(0, CHAIN_MAX)));
        assert!(!fits(&sum(0, CHAIN_MAX + 1)));
        // Those around what stands in brackets are around what is in it, too.
        let inside = |many: usize| format!("select ({}){}", &sum(many, 1)[7..], "::int".repeat(9));
        assert!(fits(&inside(CHAIN_MAX - 10)));
        assert!(!fits(&inside(CHAIN_MAX - 9)));
        let types = "::numeric(10, 2)".repeat(CHAIN_MAX + 1);
        assert!(!fits(&format!("select 1{types}")));
    }

    #[test]
    fn unions_are_a_chain_whatever_commas_there_are() {
        let unions = |many: usize| format!("select 1, 2{}", " union select 1, 2".repeat(many));
        assert!(fits(&unions(CHAIN_MAX / SET_OPERATION)));
        assert!(!fits(&unions(CHAIN_MAX / SET_OPERATION + 1)));
    }

    #[test]
    fn branches_of_a_case_stand_beside_each_other() {
        let branches = |many: usize| format!("case{} end", " when a = 1 then b + 1".repeat(many));
        assert!(fits(&format!("select {}", branches(2 * CHAIN_MAX))));
        let chain = |many: usize| format!("1{}", " + 1".repeat(many));
        let half = chain(CHAIN_MAX / 2);
        assert!(fits(&format!(
            "select case {half} when {half} then {half} else {half} end"
        )));
        assert!(!fits(&format!(
            "select {half} + case when a then 1 else {half} end"
        )));
        assert!(!fits(&format!(
            "select case when case when a then {half} end then 1 end + 1 + {half}"
        )));
        assert!(!fits(&format!(
            "select (case when a then {half}) + 1 + {half}"
        )));
        assert!(!fits(&format!("select t.case + {half} + 1 + {half}")));
        assert!(!fits(&"case when ".repeat(NESTING_MAX + 1)));
        assert!(fits(&format!(
            "begin; select {half}; end; select {half}; end"
        )));
    }

    #[test]
    fn nots_in_a_row_are_as_deep_as_brackets() {
        let nots = |many: usize| format!("select {}true", "not ".repeat(many));
        assert!(fits(&nots(NOTS_MAX)));
        assert!(!fits(&nots(NOTS_MAX + 1)));
        let inside = format!("select ({}true)", "not ".repeat(NOTS_MAX));
        assert!(!fits(&inside));
        assert!(fits(&"a is not null and ".repeat(NESTING_MAX)));
        let parsed = super::super::statements(&nots(NOTS_MAX));
        assert!(parsed.is_ok(), "{parsed:?}");
        let error = super::super::statements(&nots(1000)).unwrap_err();
        assert_eq!(error.sqlstate().as_str(), "54001");
    }

    #[test]
    fn brackets_without_an_end_and_without_a_beginning_are_counted_too() {
        assert!(fits(&"(".repeat(NESTING_MAX)));
        assert!(!fits(&"(".repeat(NESTING_MAX + 1)));
        assert!(fits(&")".repeat(10_000)), "the parser refuses it");
    }
}
