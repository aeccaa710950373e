//! A statement's text with parameters where literals stand, so that statements which differ in literals only share one tree and one program.
//!
//! A client of the simple protocol writes its values into the text, and no two texts are alike. Literals are taken out in one pass over the bytes, before
//! the tokenizer and the parser run.
//!
//! Invariants:
//! - N1 A literal is taken only where any expression may stand, and a parameter of its type means the same: behind a comparison or an operation of
//!   arithmetic, and as a value of a row of INSERT … VALUES. Where SQL wants a literal (a type's modifiers, an interval), or gives one a meaning of its own
//!   (ORDER BY 1), it stays.
//! - N2 What this pass does not know (comments, dollars, strings with a letter in front, several statements) it refuses whole: the text is read as it is.
//! - N3 The text with parameters is no more than a proposal: if it does not compile, or a value does not fit, the statement is read as it is, and its
//!   error is the one that the client sees, with its place.

use crate::bind::number;
use vellum_row::{Type, Value};

/// Longer texts are read as they are: what is saved does not grow with them.
const TEXT_MAX: usize = 4096;
/// Of more literals there are too many forms (INSERT of many rows).
const LITERALS_MAX: usize = 128;

/// A text whose literals were taken out. Its buffers are used again.
#[derive(Debug, Default)]
pub(crate) struct Normalized {
    /// With `$1`, `$2`, … for them.
    pub text: String,
    /// Their types, by oid; 0 for text in quotes, whose type what surrounds it decides.
    pub types: Vec<u32>,
    pub values: Vec<Value>,
}

/// What a token is, as far as it matters to those behind it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Word,
    /// BY: what follows may be the number of a column.
    By,
    Comparison,
    /// `+` and `-`, which may also be signs.
    Sign,
    /// `*` and `/`.
    Factor,
    Open,
    Close,
    Comma,
    Literal,
    Other,
}

/// One pass over a text.
struct Pass<'t> {
    text: &'t str,
    at: usize,
    /// The last token.
    last: Kind,
    /// The last one that is no sign and no factor.
    operand: Kind,
    /// What stands before the last sign, and where that is in what was made of the text.
    before_sign: (Kind, usize),
    depth: usize,
    /// Whether it is an INSERT.
    inserts: bool,
    /// Behind its VALUES.
    values: bool,
}

impl Normalized {
    /// Takes the literals out of a text; false if it has none that can be taken, or is not known well enough (N2).
    pub fn read(&mut self, text: &str) -> bool {
        self.text.clear();
        self.types.clear();
        self.values.clear();
        if text.len() > TEXT_MAX {
            return false;
        }
        let mut pass = Pass {
            text,
            at: 0,
            last: Kind::Word,
            operand: Kind::Word,
            before_sign: (Kind::Word, 0),
            depth: 0,
            inserts: false,
            values: false,
        };
        pass.run(self).is_some() && !self.types.is_empty()
    }

    fn take(&mut self, ty: u32, value: Value) -> Option<()> {
        if self.types.len() == LITERALS_MAX {
            return None;
        }
        self.types.push(ty);
        self.values.push(value);
        self.text.push('$');
        let mut digits = [0_u8; 3];
        let (mut left, mut from) = (self.types.len(), digits.len());
        while left > 0 {
            from -= 1;
            digits[from] = b'0' + (left % 10) as u8;
            left /= 10;
        }
        self.text
            .extend(digits[from..].iter().map(|digit| char::from(*digit)));
        Some(())
    }
}

impl<'t> Pass<'t> {
    /// `None` if the text is refused.
    fn run(&mut self, into: &mut Normalized) -> Option<()> {
        self.blanks(into);
        let first = self.word();
        self.inserts = first.eq_ignore_ascii_case("insert");
        let known = ["select", "update", "delete"];
        if !self.inserts && !known.iter().any(|word| first.eq_ignore_ascii_case(word)) {
            return None;
        }
        into.text.push_str(first);
        loop {
            self.blanks(into);
            let Some(byte) = self.peek(0) else {
                return Some(());
            };
            let kind = match byte {
                b';' => {
                    self.at += 1;
                    self.blanks(into);
                    return self.peek(0).is_none().then_some(());
                }
                b'0'..=b'9' => self.number(into)?,
                b'\'' => self.string(into)?,
                b'"' => self.quoted_name(into)?,
                b'(' => {
                    self.depth += 1;
                    self.copy(1, into);
                    Kind::Open
                }
                b')' => {
                    self.depth = self.depth.checked_sub(1)?;
                    self.copy(1, into);
                    Kind::Close
                }
                b',' => {
                    self.copy(1, into);
                    Kind::Comma
                }
                b'.' | b':' | b'[' | b']' => {
                    if byte == b'.' && self.peek(1).is_some_and(|next| next.is_ascii_digit()) {
                        return None;
                    }
                    self.copy(1, into);
                    Kind::Other
                }
                _ if is_of_operators(byte) => self.operator(into)?,
                _ if is_of_words(byte) => self.any_word(into)?,
                _ => return None,
            };
            self.last = kind;
            if !matches!(kind, Kind::Sign | Kind::Factor) {
                self.operand = kind;
            }
        }
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + ahead).copied()
    }

    /// Copies the next bytes, which end a character.
    fn copy(&mut self, count: usize, into: &mut Normalized) {
        into.text.push_str(&self.text[self.at..self.at + count]);
        self.at += count;
    }

    /// How many of the next bytes are all like that.
    fn run_of(&self, from: usize, like: impl Fn(u8) -> bool) -> usize {
        let rest = &self.text.as_bytes()[self.at + from..];
        rest.iter().take_while(|byte| like(**byte)).count()
    }

    fn blanks(&mut self, into: &mut Normalized) {
        let count = self.run_of(0, |byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r'));
        self.copy(count, into);
    }

    fn word(&mut self) -> &'t str {
        let count = self.run_of(0, is_of_words);
        self.at += count;
        &self.text[self.at - count..self.at]
    }

    fn any_word(&mut self, into: &mut Normalized) -> Option<Kind> {
        let top = self.depth == 0;
        let word = self.word();
        into.text.push_str(word);
        let by = word.eq_ignore_ascii_case("by");
        let values = word.eq_ignore_ascii_case("values");
        if top {
            // Until the next word: ON CONFLICT, RETURNING.
            self.values = self.inserts && values;
        }
        // A string with a letter in front means something else; dollars are parameters and quotes.
        if matches!(self.peek(0), Some(b'\'' | b'$' | b'"')) {
            return None;
        }
        Some(if by { Kind::By } else { Kind::Word })
    }

    fn quoted_name(&mut self, into: &mut Normalized) -> Option<Kind> {
        let length = self.quoted_length(b'"')?;
        self.copy(length, into);
        Some(Kind::Word)
    }

    /// Bytes to the closing quote, both counted.
    fn quoted_length(&self, quote: u8) -> Option<usize> {
        // U& in front.
        if self.at > 0 && self.text.as_bytes()[self.at - 1] == b'&' {
            return None;
        }
        let mut length = 1;
        loop {
            length += self.run_of(length, |byte| byte != quote) + 1;
            // None: it is not closed.
            self.text.as_bytes().get(self.at + length - 1)?;
            if self.peek(length) != Some(quote) {
                return Some(length);
            }
            length += 1;
        }
    }

    fn operator(&mut self, into: &mut Normalized) -> Option<Kind> {
        let length = self.run_of(0, is_of_operators);
        let operator = &self.text[self.at..self.at + length];
        if operator.contains("--") || operator.contains("/*") {
            return None;
        }
        let kind = match operator {
            "=" | "<" | ">" | "<=" | ">=" | "<>" | "!=" => Kind::Comparison,
            "+" | "-" => Kind::Sign,
            "*" | "/" => Kind::Factor,
            _ => Kind::Other,
        };
        if kind == Kind::Sign {
            self.before_sign = (self.last, into.text.len());
        }
        self.copy(length, into);
        Some(kind)
    }

    /// Whether a value of a row of VALUES may begin behind a token.
    fn begins_value(&self, behind: Kind) -> bool {
        self.values && self.depth == 1 && matches!(behind, Kind::Open | Kind::Comma)
    }

    fn number(&mut self, into: &mut Normalized) -> Option<Kind> {
        let mut length = self.run_of(0, |byte| byte.is_ascii_digit());
        if self.peek(length) == Some(b'.') {
            let fraction = self.run_of(length + 1, |byte| byte.is_ascii_digit());
            if fraction == 0 {
                return None;
            }
            length += 1 + fraction;
        }
        // Exponents, other bases, underscores.
        if self
            .peek(length)
            .is_some_and(|next| is_of_words(next) || matches!(next, b'.' | b'$' | b'\''))
        {
            return None;
        }
        let digits = &self.text[self.at..self.at + length];
        let (mut value, mut ty) = number(digits).ok()?;
        let mut free = match self.last {
            Kind::Comparison | Kind::Factor => true,
            // A number that stands alone may be that of a column, with a sign, too.
            Kind::Sign => match self.operand {
                Kind::Word | Kind::Close | Kind::Literal | Kind::Comparison => true,
                operand => self.begins_value(operand),
            },
            last => self.begins_value(last),
        };
        if free && self.last == Kind::Sign {
            let (before, at) = self.before_sign;
            match before {
                // An operation, or a sign behind a keyword. The least number of a type has no opposite of that type.
                Kind::Word | Kind::Close | Kind::Literal => free = ty == Type::Int4,
                // The number's own sign, which is part of the literal: -32768 is a smallint.
                _ if into.text[at..].starts_with('-') => {
                    (value, ty) = number(&format!("-{digits}")).ok()?;
                    into.text.truncate(at);
                }
                _ => free = false,
            }
        }
        if !free {
            self.copy(length, into);
            return Some(Kind::Literal);
        }
        self.at += length;
        into.take(ty.oid(), value)?;
        Some(Kind::Literal)
    }

    fn string(&mut self, into: &mut Normalized) -> Option<Kind> {
        let length = self.quoted_length(b'\'')?;
        let inner = &self.text[self.at + 1..self.at + length - 1];
        let blanks = self.run_of(length, |byte| byte.is_ascii_whitespace());
        let next = self.peek(length + blanks);
        // A second string on another line belongs to it.
        if next == Some(b'\'') || self.peek(length).is_some_and(is_of_words) {
            return None;
        }
        let free = self.last == Kind::Comparison || self.begins_value(self.last);
        // One that is cast is a value of that type, which names of relations are only as literals.
        if !free || next == Some(b':') {
            self.copy(length, into);
            return Some(Kind::Literal);
        }
        self.at += length;
        let value = if inner.contains('\'') {
            Value::text(inner.replace("''", "'"))
        } else {
            Value::text(inner)
        };
        into.take(0, value)?;
        Some(Kind::Literal)
    }
}

fn is_of_words(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

fn is_of_operators(byte: u8) -> bool {
    b"+-*/<>=~!@#%^&|?".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::Normalized;
    use vellum_row::{Type, Value};

    /// The text without its literals, and these.
    fn read(text: &str) -> Option<(String, Vec<u32>, Vec<Value>)> {
        let mut normalized = Normalized::default();
        normalized
            .read(text)
            .then_some((normalized.text, normalized.types, normalized.values))
    }

    fn becomes(text: &str, wanted: &str) {
        let (found, types, values) = read(text).unwrap_or_else(|| panic!("{text}: refused"));
        assert_eq!(found, wanted);
        assert_eq!(types.len(), values.len());
    }

    #[test]
    fn literals_behind_comparisons_and_operations_and_in_rows_are_parameters() {
        becomes(
            "select a from t where b = 5;",
            "select a from t where b = $1",
        );
        becomes(
            "UPDATE t SET a = a + -5, c='it''s' WHERE b=17 and d <> 1.50",
            "UPDATE t SET a = a + $1, c=$2 WHERE b=$3 and d <> $4",
        );
        becomes(
            "update t set a = a - 5 where b=4 and \"C\"=3",
            "update t set a = a - $1 where b=$2 and \"C\"=$3",
        );
        becomes(
            "insert into t (a, b) values (1, 'x', -3, now()), (f(2, 3), 4) on conflict (a) do update set b = 'y'",
            "insert into t (a, b) values ($1, $2, $3, now()), (f(2, 3), $4) on conflict (a) do update set b = $5",
        );
        becomes("delete from ü where ä = 'ö'", "delete from ü where ä = $1");
    }

    #[test]
    fn parameters_have_the_types_and_values_of_their_literals() {
        let text = "select 1 where a = 7 and b = 3000000000 and c = 1.50 and d = 'o''k' and e = - 2147483648";
        let (_, types, values) = read(text).unwrap_or_default();
        let [int4, int8] = [Type::Int4.oid(), Type::Int8.oid()];
        assert_eq!(types, [int4, int8, Type::Numeric.oid(), 0, int4]);
        assert_eq!(values[4], Value::Int4(i32::MIN));
        assert_eq!(values[0], Value::Int4(7));
        assert_eq!(values[1], Value::Int8(3_000_000_000));
        assert_eq!(values[3], Value::text("o'k"));
    }

    #[test]
    fn literals_that_are_part_of_the_syntax_stay() {
        for text in [
            "select a from t order by 1",
            "select a from t order by -1",
            "select a, b from t group by a, -2 order by a, + -1",
            "select a::numeric(5,2), b[1], interval '1' day from t limit 10 offset 5",
            "select a from t where b between 1 and 2 and c in (3, 4) and d like 'x%'",
            "select a from t where b - 2147483648 > c and d = + 5",
            "select a from t where b = 'pg_class'::regclass",
            "insert into t select 1, 'a'",
            "select values from t where coalesce(values, 5)",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
        becomes(
            "select a::numeric(5,2) from t where b = 1 order by 1, a + 2",
            "select a::numeric(5,2) from t where b = $1 order by 1, a + $2",
        );
    }

    #[test]
    fn what_is_not_known_is_refused_whole() {
        for text in [
            "",
            "select",
            "select 1",
            "with x as (select 1) select a from t where b = 1",
            "select a from t where b = 1; select 2",
            "select a from t where b = 1 -- and c = 2",
            "select a from t where b = 1 /* and c = 2 */",
            "select a from t where b = 1 and c = E'\\''",
            "select a from t where b = 1 and c = U&'x'",
            "select a from t where b = 1 and c = $1",
            "select a from t where b = 1 and c = $$x$$",
            "select a from t where b = 1e5",
            "select a from t where b = 0x10",
            "select a from t where b = 1_000",
            "select a from t where b = .5",
            "select a from t where b = 1.",
            "select a from t where b = 1and c",
            "select a from t where b = 'x'and c",
            "select a from t where b = 'x' \n 'y'",
            "select a from t where b = 'x",
            "select a from t where b = 1 and \"c",
            "select a from t where b = 1)",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
        let long = format!("select a from t where b = 1 and c = '{}'", "x".repeat(5000));
        assert_eq!(read(&long), None);
        let many = format!("select a from t where a = 1{}", " + 1".repeat(200));
        assert_eq!(read(&many), None);
    }
}
