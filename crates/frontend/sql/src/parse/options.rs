//! Options that PostgreSQL takes and the parser does not, changed among the tokens. Places in the text stay as they are.

use super::commands::transaction_modes;
use super::moves::{cursor_moves, is_move};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

/// The words of a text that are none in quotes: most texts have none of those that are read otherwise.
#[derive(Debug)]
pub(super) struct Words {
    keywords: Vec<Keyword>,
    /// MOVE is no keyword of the parser.
    moves: bool,
}

impl Words {
    pub fn of(tokens: &[TokenWithSpan]) -> Self {
        let keyword = |token: &TokenWithSpan| match &token.token {
            Token::Word(word) if word.quote_style.is_none() => Some(word.keyword),
            _ => None,
        };
        let known = |keyword: &Keyword| *keyword != Keyword::NoKeyword;
        Self {
            keywords: tokens.iter().filter_map(keyword).filter(known).collect(),
            moves: tokens.iter().any(|token| is_move(&token.token)),
        }
    }

    /// Whether one of these is there.
    pub fn any(&self, wanted: &[Keyword]) -> bool {
        self.keywords.iter().any(|keyword| wanted.contains(keyword))
    }
}

/// Turns the options of the statements into what the parser reads. `words` are those of the text as it was written: what is put into it is of no account
/// to the others.
pub(super) fn adapt(tokens: &mut Vec<TokenWithSpan>, words: &Words) {
    if words.any(&[Keyword::VACUUM, Keyword::ANALYZE]) {
        maintenance_options(tokens);
    }
    if words.any(&[Keyword::FOR]) {
        key_locks(tokens);
    }
    if words.moves || words.any(&[Keyword::FETCH]) {
        cursor_moves(tokens);
    }
    if words.any(&[Keyword::MERGE]) {
        merge_clauses(tokens);
    }
    if words.any(&[Keyword::CREATE, Keyword::ALTER, Keyword::DROP]) {
        role_statements(tokens);
    }
    if words.any(&[Keyword::COMMENT]) {
        constraint_comments(tokens);
    }
    if words.any(&[Keyword::RESET]) {
        reset_authorization(tokens);
    }
    if words.any(&[Keyword::CREATE]) {
        table_columns(tokens);
    }
    if words.any(&[Keyword::TRIM]) {
        trim_sides(tokens);
    }
    if words.any(&[Keyword::DEFERRABLE]) {
        transaction_modes(tokens);
    }
}

/// The column of what MERGE does where it does nothing. No name in a statement can be it, as [`KEY_LOCK`].
pub(crate) const MERGE_NOTHING: &str =
    "the column of a table that MERGE leaves as it is, longer than any name in a text";

/// DO NOTHING and INSERT DEFAULT VALUES in MERGE, which the parser does not know: nothing is set, or put into, [`MERGE_NOTHING`]; DEFAULT is put into the first column.
fn merge_clauses(tokens: &mut Vec<TokenWithSpan>) {
    let is_spoken = |token: &TokenWithSpan| !matches!(token.token, Token::Whitespace(_));
    let spoken: Vec<usize> = (0..tokens.len())
        .filter(|at| is_spoken(&tokens[*at]))
        .collect();
    let keyword =
        |tokens: &[TokenWithSpan], at: usize| match spoken.get(at).map(|at| &tokens[*at].token) {
            Some(Token::Word(word)) if word.quote_style.is_none() => word.keyword,
            _ => Keyword::NoKeyword,
        };
    let mut matched = true;
    let mut merges = false;
    let mut changes: Vec<(usize, usize, Vec<Token>)> = Vec::new();
    for at in 0..spoken.len() {
        let three = [0, 1, 2].map(|more| keyword(tokens, at + more));
        match three {
            [Keyword::MERGE, ..] => merges = true,
            [Keyword::WHEN, Keyword::MATCHED, _] => matched = true,
            [Keyword::WHEN, Keyword::NOT, Keyword::MATCHED] => matched = false,
            [Keyword::THEN, Keyword::DO, Keyword::NOTHING] if merges => {
                let name = Token::make_word(MERGE_NOTHING, Some('"'));
                let zero = Token::Number("0".to_owned(), false);
                let words = if matched {
                    vec![
                        Token::make_keyword("UPDATE"),
                        Token::make_keyword("SET"),
                        name,
                        Token::Eq,
                        zero,
                    ]
                } else {
                    vec![
                        Token::make_keyword("INSERT"),
                        Token::LParen,
                        name,
                        Token::RParen,
                        Token::make_keyword("VALUES"),
                        Token::LParen,
                        zero,
                        Token::RParen,
                    ]
                };
                changes.push((spoken[at + 1], spoken[at + 2], words));
            }
            [Keyword::INSERT, Keyword::DEFAULT, Keyword::VALUES]
                if merges && at > 0 && keyword(tokens, at - 1) == Keyword::THEN =>
            {
                let words = vec![
                    Token::make_keyword("INSERT"),
                    Token::make_keyword("VALUES"),
                    Token::LParen,
                    Token::make_keyword("DEFAULT"),
                    Token::RParen,
                ];
                changes.push((spoken[at], spoken[at + 2], words));
            }
            _ => {}
        }
        if matches!(tokens[spoken[at]].token, Token::SemiColon) {
            merges = false;
        }
    }
    for (from, to, words) in changes.into_iter().rev() {
        let span = tokens[from].span;
        let blank = Token::Whitespace(Whitespace::Space);
        let words = words.into_iter().flat_map(|word| [word, blank.clone()]);
        let words: Vec<TokenWithSpan> = words.map(|token| TokenWithSpan { token, span }).collect();
        tokens.splice(from..=to, words);
    }
}

/// CREATE, ALTER and DROP USER are about roles: a user that is made may log in. A password is encrypted whether that is said or not.
fn role_statements(tokens: &mut Vec<TokenWithSpan>) {
    let mut start = 0;
    while start < tokens.len() {
        let end = tokens[start..]
            .iter()
            .position(|token| token.token == Token::SemiColon);
        let end = end.map_or(tokens.len(), |end| start + end);
        let more = role_statement(tokens, start, end);
        start = end + more + 1;
    }
}

/// One statement, between two places; returns how many tokens were put into it.
fn role_statement(tokens: &mut Vec<TokenWithSpan>, start: usize, end: usize) -> usize {
    let spoken: Vec<usize> = (start..end)
        .filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_) | Token::EOF))
        .collect();
    let keyword = |at: usize| match spoken.get(at).map(|at| &tokens[*at].token) {
        Some(Token::Word(word)) if word.quote_style.is_none() => word.keyword,
        _ => Keyword::NoKeyword,
    };
    let [first, second] = [keyword(0), keyword(1)];
    let about_roles = matches!(first, Keyword::CREATE | Keyword::ALTER | Keyword::DROP)
        && matches!(second, Keyword::USER | Keyword::ROLE);
    if about_roles {
        let says = |word: &str| {
            spoken.iter().any(|at| {
                matches!(&tokens[*at].token, Token::Word(own)
                if own.quote_style.is_none() && own.value.eq_ignore_ascii_case(word))
            })
        };
        let may_log_in = first == Keyword::CREATE
            && second == Keyword::USER
            && !says("login")
            && !says("nologin");
        if second == Keyword::USER {
            tokens[spoken[1]].token = Token::make_keyword("ROLE");
        }
        for at in &spoken[2..] {
            if matches!(&tokens[*at].token, Token::Word(word)
                if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("encrypted"))
            {
                tokens[*at].token = Token::Whitespace(Whitespace::Space);
            }
        }
        connection_limit(tokens, &spoken);
        if let Some(last) = spoken.last().filter(|_| may_log_in && spoken.len() > 2) {
            let span = tokens[*last].span;
            let words = [
                Token::Whitespace(Whitespace::Space),
                Token::make_keyword("LOGIN"),
            ];
            let words = words.map(|token| TokenWithSpan { token, span });
            tokens.splice(last + 1..last + 1, words);
            return 2;
        }
        return 0;
    }
    0
}

/// CONNECTION LIMIT -1: the parser wants a number, with its sign.
fn connection_limit(tokens: &mut [TokenWithSpan], spoken: &[usize]) {
    for four in spoken.windows(4) {
        let &[connection, limit, sign, number] = four else {
            continue;
        };
        let word = |at: usize| match &tokens[at].token {
            Token::Word(word) if word.quote_style.is_none() => word.keyword,
            _ => Keyword::NoKeyword,
        };
        let [first, second] = [word(connection), word(limit)];
        if (first, second) != (Keyword::CONNECTION, Keyword::LIMIT) {
            continue;
        }
        let sign_text = match tokens[sign].token {
            Token::Minus => "-",
            Token::Plus => "",
            _ => continue,
        };
        if let Token::Number(digits, long) = &tokens[number].token {
            tokens[number].token = Token::Number(format!("{sign_text}{digits}"), *long);
            tokens[sign].token = Token::Whitespace(Whitespace::Space);
        }
    }
}

/// RESET SESSION AUTHORIZATION resets the setting of that name.
fn reset_authorization(tokens: &mut [TokenWithSpan]) {
    let spoken: Vec<usize> = (0..tokens.len())
        .filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_)))
        .collect();
    for three in spoken.windows(3) {
        let words = [three[0], three[1], three[2]].map(|at| match &tokens[at].token {
            Token::Word(word) if word.quote_style.is_none() => word.keyword,
            _ => Keyword::NoKeyword,
        });
        if words == [Keyword::RESET, Keyword::SESSION, Keyword::AUTHORIZATION] {
            tokens[three[1]].token = Token::make_word("session_authorization", None);
            tokens[three[2]].token = Token::Whitespace(Whitespace::Space);
        }
    }
}

/// The type of a column of which only the name was written. No name in a statement can be it, as [`KEY_LOCK`].
pub(crate) const NAME_ALONE: &str =
    "the type of a column of which only the name was written, longer than any name in a text";

/// CREATE TABLE … (a, b) AS: names without types, which the parser wants: it is given [`NAME_ALONE`].
fn table_columns(tokens: &mut Vec<TokenWithSpan>) {
    let mut start = 0;
    while start < tokens.len() {
        let end = tokens[start..].iter();
        let end = end
            .clone()
            .position(|token| token.token == Token::SemiColon);
        let end = end.map_or(tokens.len(), |end| start + end);
        let spoken: Vec<usize> = (start..end)
            .filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_) | Token::EOF))
            .collect();
        let names = names_of_columns(tokens, &spoken);
        let more = 2 * names.len();
        for at in names.into_iter().rev() {
            let span = tokens[at].span;
            let words = [
                Token::Whitespace(Whitespace::Space),
                Token::make_word(NAME_ALONE, Some('"')),
            ];
            let words = words.map(|token| TokenWithSpan { token, span });
            tokens.splice(at + 1..at + 1, words);
        }
        start = end + more + 1;
    }
}

/// Places of the names in the parentheses of such a statement; none if it is another one.
fn names_of_columns(tokens: &[TokenWithSpan], spoken: &[usize]) -> Vec<usize> {
    let keyword = |at: usize| match spoken.get(at).map(|at| &tokens[*at].token) {
        Some(Token::Word(word)) if word.quote_style.is_none() => word.keyword,
        _ => Keyword::NoKeyword,
    };
    let table = (1..5).find(|at| keyword(*at) == Keyword::TABLE);
    let (Keyword::CREATE, Some(table)) = (keyword(0), table) else {
        return Vec::new();
    };
    let mut behind = spoken.iter().enumerate().skip(table);
    // Behind AS stands the query, with parentheses of its own.
    let open = behind.find(|(number, at)| {
        tokens[**at].token == Token::LParen || keyword(*number) == Keyword::AS
    });
    let Some((open, _)) = open.filter(|(number, _)| keyword(*number) != Keyword::AS) else {
        return Vec::new();
    };
    let mut names = Vec::new();
    let mut at = open + 1;
    loop {
        let token = |at: usize| spoken.get(at).map(|at| &tokens[*at].token);
        let (Some(Token::Word(_)), next) = (token(at), token(at + 1)) else {
            return Vec::new();
        };
        names.push(spoken[at]);
        match next {
            Some(Token::Comma) => at += 2,
            Some(Token::RParen) => break,
            _ => return Vec::new(),
        }
    }
    // Behind them AS and the query, or ON COMMIT in front of these.
    let first = keyword(at + 2);
    let mut rest = at + 2..spoken.len();
    match first {
        Keyword::AS => names,
        Keyword::ON if rest.any(|at| keyword(at) == Keyword::AS) => names,
        _ => Vec::new(),
    }
}

/// TRIM (TRAILING FROM text): the parser wants characters in front of FROM, or no FROM.
fn trim_sides(tokens: &mut [TokenWithSpan]) {
    let spoken: Vec<usize> = (0..tokens.len())
        .filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_)))
        .collect();
    for four in spoken.windows(4) {
        let word = |at: usize| match &tokens[at].token {
            Token::Word(word) if word.quote_style.is_none() => word.keyword,
            _ => Keyword::NoKeyword,
        };
        let sides = [Keyword::BOTH, Keyword::LEADING, Keyword::TRAILING];
        if word(four[0]) == Keyword::TRIM
            && tokens[four[1]].token == Token::LParen
            && sides.contains(&word(four[2]))
            && word(four[3]) == Keyword::FROM
        {
            tokens[four[3]].token = Token::Whitespace(Whitespace::Space);
        }
    }
}

/// What stands between the names of a constraint and of its table, which are read as one.
pub(crate) const OF_TABLE: &str =
    "the constraint before, of the table behind; this is longer than any name in a text";

/// COMMENT ON CONSTRAINT … ON … is read as one on a procedure, which there is none of.
fn constraint_comments(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 0;
    while at < tokens.len() {
        let spoken: Vec<usize> = (at..tokens.len())
            .filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_)))
            .take(5)
            .collect();
        let keyword = |at: usize| match spoken.get(at).map(|at| &tokens[*at].token) {
            Some(Token::Word(word)) if word.quote_style.is_none() => word.keyword,
            _ => Keyword::NoKeyword,
        };
        let words = [keyword(0), keyword(1), keyword(2), keyword(4)];
        if words
            == [
                Keyword::COMMENT,
                Keyword::ON,
                Keyword::CONSTRAINT,
                Keyword::ON,
            ]
        {
            let (kind, between) = (spoken[2], spoken[4]);
            tokens[kind].token = Token::make_keyword("PROCEDURE");
            let span = tokens[between].span;
            let dots = [
                Token::Period,
                Token::make_word(OF_TABLE, Some('"')),
                Token::Period,
            ];
            let dots = dots.map(|token| TokenWithSpan { token, span });
            tokens.splice(between..=between, dots);
        }
        // To the next statement.
        let end = tokens[at..]
            .iter()
            .position(|token| token.token == Token::SemiColon);
        at = end.map_or(tokens.len(), |end| at + end + 1);
    }
}

/// What stands in front of the table's name in FOR UPDATE OF and FOR SHARE OF where FOR NO KEY UPDATE and FOR KEY SHARE were
/// written. No name in a statement can be it: it has more bytes than a name keeps.
pub(crate) const KEY_LOCK: &str =
    "the key of the row stays; this is longer than any name in a text";

/// The parser knows the two stronger of the four locks on rows.
fn key_locks(tokens: &mut [TokenWithSpan]) {
    let spoken: Vec<usize> = (0..tokens.len())
        .filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_)))
        .collect();
    let keyword =
        |tokens: &[TokenWithSpan], at: usize| match spoken.get(at).map(|at| &tokens[*at].token) {
            Some(Token::Word(word)) if word.quote_style.is_none() => word.keyword,
            _ => Keyword::NoKeyword,
        };
    for at in 0..spoken.len() {
        let words = [0, 1, 2, 3].map(|next| keyword(tokens, at + next));
        // FOR, then three places: the lock, OF, the name.
        let (places, lock, behind) = match words {
            [Keyword::FOR, Keyword::NO, Keyword::KEY, Keyword::UPDATE] => {
                let places = [spoken[at + 1], spoken[at + 2], spoken[at + 3]];
                (places, "UPDATE", at + 4)
            }
            // The blank between the two words is one of them.
            [Keyword::FOR, Keyword::KEY, Keyword::SHARE, _] => {
                let places = [spoken[at + 1], spoken[at + 1] + 1, spoken[at + 2]];
                (places, "SHARE", at + 3)
            }
            _ => continue,
        };
        if keyword(tokens, behind) == Keyword::OF {
            tokens[spoken[behind]].token = Token::Period;
        }
        tokens[places[0]].token = Token::make_keyword(lock);
        tokens[places[1]].token = Token::make_keyword("OF");
        tokens[places[2]].token = Token::make_word(KEY_LOCK, Some('"'));
    }
}

/// What VACUUM and ANALYZE are to do besides is of no account here: maintenance runs by itself.
fn maintenance_options(tokens: &mut [TokenWithSpan]) {
    let (mut start, mut options) = (true, false);
    let mut at = 0;
    while at < tokens.len() {
        let dropped = match &tokens[at].token {
            Token::Whitespace(_) => 0,
            Token::SemiColon => {
                (start, options) = (true, false);
                0
            }
            Token::Word(word) if start => {
                start = false;
                options = matches!(word.keyword, Keyword::VACUUM | Keyword::ANALYZE);
                0
            }
            // An open parenthesis is left to the parser, which says what is missing.
            Token::LParen if options => parenthesis(&tokens[at..]).unwrap_or(0),
            Token::Word(word) if options => match word.keyword {
                Keyword::FULL => 0,
                Keyword::VERBOSE | Keyword::ANALYZE | Keyword::FREEZE => 1,
                _ => {
                    options = false;
                    0
                }
            },
            _ => {
                (start, options) = (false, false);
                0
            }
        };
        for token in &mut tokens[at..at + dropped] {
            token.token = Token::Whitespace(Whitespace::Space);
        }
        at += dropped.max(1);
    }
}

/// Tokens from a parenthesis to the one that closes it, both counted; `None` if none does in this statement.
fn parenthesis(tokens: &[TokenWithSpan]) -> Option<usize> {
    let mut depth = 0usize;
    for (at, token) in tokens.iter().enumerate() {
        match &token.token {
            Token::LParen => depth += 1,
            Token::RParen if depth == 1 => return Some(at + 1),
            Token::RParen => depth -= 1,
            Token::SemiColon => return None,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use crate::parse::statements;
    use sqlparser::ast::Statement;

    #[test]
    fn what_vacuum_is_to_do_besides_is_left_out() {
        for text in [
            "vacuum analyze pgbench_branches",
            "vacuum full verbose analyze t",
            "vacuum (freeze, parallel 2) t",
            "vacuum",
            "vacuum verbose",
        ] {
            let parsed = statements(text).unwrap();
            assert!(matches!(parsed[..], [Statement::Vacuum(_)]), "{text}");
        }
        let parsed = statements("analyze verbose t; analyze t (a, b)").unwrap();
        let [Statement::Analyze(_), Statement::Analyze(second)] = &parsed[..] else {
            panic!("{parsed:?}");
        };
        assert_eq!(second.columns.len(), 2);
        statements("select vacuum analyze t").unwrap_err();
        statements("vacuum (freeze").unwrap_err();
    }
}
