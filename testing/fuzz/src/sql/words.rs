//! Statements as words, and other statements made of them.
//!
//! A change keeps most of a statement, so that most of what comes out is still read, and much of it still bound: a word becomes another of
//! its kind, a group in parentheses that of another statement, a number one at which arithmetic goes wrong.
//!
//! Not here: statements that are hostile as a whole ([`super::statements`]).

use std::collections::BTreeMap;
use vellum_base::random::Random;

/// What a word is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A keyword or a name.
    Name,
    /// A number.
    Number,
    /// A text in quotes.
    Text,
    /// An operator, a comma, a parenthesis.
    Sign,
}

/// A word of a statement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Word {
    /// What it is.
    pub kind: Kind,
    /// Its characters.
    pub text: String,
}

/// Operators of several characters, longer ones first.
const SIGNS: [&str; 14] = [
    "::", "<>", "<=", ">=", "!=", "||", "->>", "->", "!~~*", "!~~", "~~*", "~~", "!~", "~*",
];

/// The words of a statement; white space and comments are left out.
pub fn words(statement: &str) -> Vec<Word> {
    let mut found = Vec::new();
    let mut rest = statement.trim_start();
    while let Some(first) = rest.chars().next() {
        let until = |part: fn(char) -> bool| rest.find(|c| !part(c)).unwrap_or(rest.len());
        let (kind, length) = match first {
            '-' if rest.starts_with("--") => {
                rest = rest
                    .split_once('\n')
                    .map_or("", |(_, rest)| rest)
                    .trim_start();
                continue;
            }
            '\'' | '"' => (Kind::Text, quoted(rest, first)),
            '0'..='9' => (
                Kind::Number,
                until(|c| c.is_ascii_alphanumeric() || c == '.'),
            ),
            c if c.is_alphabetic() || c == '_' || c == '$' => (
                Kind::Name,
                until(|c| c.is_alphanumeric() || c == '_' || c == '$'),
            ),
            _ => {
                let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign));
                (Kind::Sign, sign.map_or(first.len_utf8(), |sign| sign.len()))
            }
        };
        // Names in quotes stand where names do.
        let kind = if first == '"' { Kind::Name } else { kind };
        let (text, after) = rest.split_at(length);
        let text = text.to_owned();
        found.push(Word { kind, text });
        rest = after.trim_start();
    }
    found
}

/// Bytes of what begins with a quote, up to the quote that ends it; a doubled one does not.
fn quoted(text: &str, quote: char) -> usize {
    let mut characters = text.char_indices().skip(1).peekable();
    while let Some((at, character)) = characters.next() {
        if character == quote && characters.next_if(|(_, next)| *next == quote).is_none() {
            return at + 1;
        }
    }
    text.len()
}

/// A statement of words.
pub fn text(words: &[Word]) -> String {
    let words: Vec<&str> = words.iter().map(|word| &*word.text).collect();
    words.join(" ")
}

/// Numbers at which arithmetic goes wrong, as they are written.
const NUMBERS: [&str; 24] = [
    "0",
    "1",
    "-1",
    "2",
    "0.0",
    "127",
    "255",
    "32767",
    "-32768",
    "65536",
    "2147483647",
    "-2147483648",
    "2147483648",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "18446744073709551616",
    "1e308",
    "1e-308",
    "1e309",
    "1e131071",
    "1e-16383",
    "0.1",
    "99999999999999999999999999999999999999.99999999999999999999",
];

/// Texts that mean something to somebody.
const TEXTS: [&str; 28] = [
    "''",
    "' '",
    "'NaN'",
    "'infinity'",
    "'-infinity'",
    "'Infinity'",
    "'null'",
    "'2024-02-29'",
    "'0001-01-01 BC'",
    "'294276-12-31 23:59:59.999999'",
    "'4713-01-01 BC'",
    "'24:00:00'",
    "'2024-01-31 12:00+14:00'",
    "'1 mon -1 day 00:00:00.000001'",
    "'178000000 years'",
    "'\\x'",
    "'\\xff00'",
    "'{}'",
    "'{\"a\": [1, {\"b\": null}]}'",
    "'[[[[]]]]'",
    "'t'",
    "'é日本🦀'",
    "'%_%'",
    "'a\\'",
    "'(a|b)*c'",
    "'00000000-0000-0000-0000-000000000000'",
    "'1e400'",
    "'9999-12-31'",
];

/// Types that a value is turned into.
const TYPES: [&str; 24] = [
    "int",
    "bigint",
    "smallint",
    "numeric",
    "numeric(4,2)",
    "numeric(1000,500)",
    "float8",
    "real",
    "text",
    "varchar(3)",
    "char(2)",
    "bytea",
    "boolean",
    "date",
    "time",
    "timetz",
    "timestamp",
    "timestamptz",
    "interval",
    "uuid",
    "json",
    "jsonb",
    "inet",
    "cidr",
];

/// All words of many statements, and which come after which.
#[derive(Clone, Debug, Default)]
pub struct Pool {
    words: Vec<Word>,
    /// Places of the words behind a word.
    behind: BTreeMap<String, Vec<usize>>,
}

impl Pool {
    /// The words of these statements.
    pub fn of<'w>(statements: impl Iterator<Item = &'w Vec<Word>>) -> Self {
        let mut pool = Self::default();
        for statement in statements {
            for pair in statement.windows(2) {
                let places = pool.behind.entry(pair[0].text.clone()).or_default();
                places.push(pool.words.len());
                pool.words.push(pair[1].clone());
            }
        }
        pool
    }

    /// A word of a kind; of those, if it can be, that are known behind `before`: what comes out is more often read.
    fn draw(&self, random: &mut Random, before: Option<&Word>, kind: Kind) -> Option<Word> {
        let known = before.and_then(|word| self.behind.get(&word.text));
        for draw in 0..20 {
            let at = match known {
                Some(places) if draw < 10 => places[random.below(places.len() as u64) as usize],
                _ => random.below(self.words.len() as u64) as usize,
            };
            if self.words[at].kind == kind {
                return Some(self.words[at].clone());
            }
        }
        None
    }
}

/// Makes another statement of one; `other` is one to take from.
pub fn mutate(random: &mut Random, mut words: Vec<Word>, other: &[Word], pool: &Pool) -> Vec<Word> {
    for _ in 0..random.between(1, 3) {
        change(random, &mut words, other, pool);
    }
    words
}

fn sign(text: &str) -> Word {
    let (kind, text) = (Kind::Sign, text.to_owned());
    Word { kind, text }
}

fn one_of(random: &mut Random, kind: Kind, from: &[&str]) -> Word {
    let text = from[random.below(from.len() as u64) as usize].to_owned();
    Word { kind, text }
}

fn change(random: &mut Random, words: &mut Vec<Word>, other: &[Word], pool: &Pool) {
    if words.is_empty() || other.is_empty() {
        words.extend_from_slice(other);
        return;
    }
    let at = random.below(words.len() as u64) as usize;
    match random.below(14) {
        0..=3 => {
            let before = at.checked_sub(1).map(|before| &words[before]);
            if let Some(word) = pool.draw(random, before, words[at].kind) {
                words[at] = word;
            }
        }
        4 => {
            let numbers = words.iter_mut().filter(|word| word.kind == Kind::Number);
            if let Some(number) = numbers.last() {
                *number = one_of(random, Kind::Number, &NUMBERS);
            }
        }
        5 => {
            words[at] = match words[at].kind {
                Kind::Number => one_of(random, Kind::Number, &NUMBERS),
                _ => one_of(random, Kind::Text, &TEXTS),
            }
        }
        6 => drop(words.remove(at)),
        7 => {
            let end = (at + random.between(1, 6) as usize).min(words.len());
            let run = words[at..end].to_vec();
            words.splice(at..at, run);
        }
        8 => {
            let with = random.below(words.len() as u64) as usize;
            words.swap(at, with);
        }
        9 | 10 => {
            // What stands in parentheses in the other.
            let (mine, theirs) = (group(random, words), group(random, other));
            if let (Some(mine), Some(theirs)) = (mine, theirs) {
                words.splice(mine, other[theirs].iter().cloned());
            }
        }
        11 => {
            let from = random.below(other.len() as u64) as usize;
            words.truncate(at);
            words.extend_from_slice(&other[from..]);
        }
        12 => {
            let name = one_of(random, Kind::Name, &TYPES);
            words.splice(at + 1..at + 1, [sign("::"), name]);
        }
        _ => {
            let depth = random.between(1, 30) as usize;
            words.splice(at + 1..at + 1, vec![sign(")"); depth]);
            words.splice(at..at, vec![sign("("); depth]);
        }
    }
}

/// A group in parentheses, with them.
fn group(random: &mut Random, words: &[Word]) -> Option<std::ops::Range<usize>> {
    let opening: Vec<usize> = (0..words.len())
        .filter(|at| words[*at].text == "(")
        .collect();
    if opening.is_empty() {
        return None;
    }
    let start = opening[random.below(opening.len() as u64) as usize];
    let mut depth = 0_usize;
    for (at, word) in (start..).zip(&words[start..]) {
        match &*word.text {
            "(" => depth += 1,
            ")" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(start..at + 1);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_its_words() {
        let found =
            words("select 'it''s', \"A b\"::text -- what\n from t where a<>1.5e3 and b !~~ $1");
        let texts: Vec<&str> = found.iter().map(|word| &*word.text).collect();
        let expected = [
            "select", "'it''s'", ",", "\"A b\"", "::", "text", "from", "t", "where", "a", "<>",
            "1.5e3", "and", "b", "!~~", "$1",
        ];
        assert_eq!(texts, expected);
        assert_eq!(words(&text(&found)), found, "written and read again");
    }

    #[test]
    fn a_group_ends_with_its_own_parenthesis() {
        let all = words("f(a, (b), c) + 1");
        let mut random = Random::new(1);
        for _ in 0..20 {
            let group = group(&mut random, &all).expect("there are two");
            assert!([1..10, 4..7].contains(&group), "{group:?}");
        }
    }
}
