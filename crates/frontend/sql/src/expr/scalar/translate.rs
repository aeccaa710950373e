//! Regular expressions of PostgreSQL's advanced form, in the library's own.
//!
//! Every sign is read, and what is none of PostgreSQL's does not reach the library, which has a meaning of its own for much of it.

use super::fault;
use super::regular::Flags;
use crate::error::{Result, SqlError};
use std::iter::Peekable;
use std::str::Chars;

/// `2201B`.
#[cold]
pub(super) fn refused(reason: &str) -> SqlError {
    fault("2201B", format!("invalid regular expression: {reason}"))
}

const ESCAPE: &str = "invalid escape \\ sequence";
const RANGE: &str = "invalid character range";
const REPEATED: &str = "quantifier operand invalid";
const COUNTS: &str = "invalid repetition count(s)";
const PARENTHESES: &str = "parentheses () not balanced";
const BRACKETS: &str = "brackets [] not balanced";
const BRACES: &str = "braces {} not balanced";

/// The most that a repetition may count to.
const COUNT_MAX: u32 = 255;

const CLASSES: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct",
    "space", "upper", "word", "xdigit",
];

/// A pattern in the library's form, and how it is read: it may say so itself.
///
/// # Errors
/// `2201B` for what is no pattern, and for what the library has not.
pub(super) fn translated(pattern: &str, flags: Flags) -> Result<(String, Flags)> {
    let mut own = Translator {
        chars: pattern.chars().peekable(),
        flags,
        out: String::with_capacity(pattern.len()),
        groups: Vec::new(),
        captured: 0,
        repeatable: false,
    };
    own.options()?;
    if own.flags.literal {
        let rest: String = own.chars.collect();
        return Ok((regex::escape(&rest), own.flags));
    }
    own.all()?;
    Ok((own.out, own.flags))
}

struct Translator<'p> {
    chars: Peekable<Chars<'p>>,
    flags: Flags,
    out: String,
    /// Where in `out` the groups begin that are open.
    groups: Vec<usize>,
    /// Groups that have begun and may be named by their number.
    captured: u32,
    /// Whether there is something that a sign behind it may repeat.
    repeatable: bool,
}

/// What stands behind a backslash.
enum Escaped {
    Char(char),
    Class(&'static str),
    Border(&'static str),
}

/// A part of a class.
enum Member {
    End,
    /// A dash between two others.
    Dash,
    Char(char),
    Set(String),
}

impl Translator<'_> {
    /// Takes a text if it stands there.
    fn eat(&mut self, text: &str) -> bool {
        let mut ahead = self.chars.clone();
        let found = text.chars().all(|char| ahead.next_if_eq(&char).is_some());
        if found {
            self.chars = ahead;
        }
        found
    }

    /// What the pattern begins with: which form it has, and letters of options.
    fn options(&mut self) -> Result<()> {
        if self.flags.literal {
            return Ok(());
        }
        if self.eat("***=") {
            self.flags.literal = true;
            return Ok(());
        }
        if !self.eat("***:") && self.eat("***") {
            return Err(refused(REPEATED));
        }
        let begun = self.chars.clone();
        if !self.eat("(?") || !self.chars.peek().is_some_and(char::is_ascii_alphabetic) {
            self.chars = begun;
            return Ok(());
        }
        loop {
            match self.chars.next() {
                Some(')') => return Ok(()),
                Some(letter) if self.flags.set(letter) => {}
                _ => return Err(refused("invalid embedded option")),
            }
        }
    }

    fn all(&mut self) -> Result<()> {
        while let Some(char) = self.chars.next() {
            match char {
                '#' if self.flags.expanded => {
                    while self.chars.next_if(|char| *char != '\n').is_some() {}
                }
                char if self.flags.expanded && char.is_ascii_whitespace() => {}
                '[' => self.class()?,
                '(' => self.open()?,
                ')' => self.close()?,
                '*' | '+' | '?' => self.repeat(char.encode_utf8(&mut [0; 4]))?,
                '{' if self.chars.peek().is_some_and(char::is_ascii_digit) => self.count()?,
                '|' | '^' | '$' => {
                    self.out.push(char);
                    self.repeatable = false;
                }
                '.' => {
                    self.out.push('.');
                    self.repeatable = true;
                }
                '\\' => match self.escape()? {
                    Escaped::Char(char) => self.literal(char),
                    Escaped::Class(class) => {
                        self.out.push_str(class);
                        self.repeatable = true;
                    }
                    Escaped::Border(border) => {
                        self.out.push_str(border);
                        self.repeatable = false;
                    }
                },
                char => self.literal(char),
            }
        }
        match self.groups.is_empty() {
            true => Ok(()),
            false => Err(refused(PARENTHESES)),
        }
    }

    fn literal(&mut self, char: char) {
        self.out
            .push_str(&regex::escape(char.encode_utf8(&mut [0; 4])));
        self.repeatable = true;
    }

    fn open(&mut self) -> Result<()> {
        let begun = self.out.len();
        if self.eat("?#") {
            while self.chars.next().is_some_and(|char| char != ')') {}
            return Ok(());
        }
        if self.eat("?:") {
            self.out.push_str("(?:");
        } else if ["?=", "?!", "?<=", "?<!"].iter().any(|text| self.eat(text)) {
            let text = "look-around, including look-ahead and look-behind, is not supported";
            return Err(refused(text));
        } else if self.chars.peek() == Some(&'?') {
            return Err(refused(REPEATED));
        } else {
            self.out.push('(');
            self.captured += 1;
        }
        self.groups.push(begun);
        self.repeatable = false;
        Ok(())
    }

    fn close(&mut self) -> Result<()> {
        let begun = self.groups.pop().ok_or_else(|| refused(PARENTHESES))?;
        self.out.push(')');
        self.repeatable = true;
        // What takes as little as it can although it is there once: SIMILAR TO is written so.
        if self.eat("{1,1}?") {
            self.out.insert_str(begun, "(?U:");
            self.out.push(')');
            self.repeatable = false;
        }
        Ok(())
    }

    /// A sign that says how often what is in front of it stands there.
    fn repeat(&mut self, times: &str) -> Result<()> {
        if !std::mem::take(&mut self.repeatable) {
            return Err(refused(REPEATED));
        }
        self.out.push_str(times);
        if self.eat("?") {
            self.out.push('?');
        }
        Ok(())
    }

    /// The same in braces, behind the opening one.
    fn count(&mut self) -> Result<()> {
        let least = self.bound()?;
        let mut times = format!("{{{least}");
        if self.eat(",") {
            times.push(',');
            if self.chars.peek().is_some_and(char::is_ascii_digit) {
                let most = self.bound()?;
                if most < least {
                    return Err(refused(COUNTS));
                }
                times.push_str(&most.to_string());
            }
        }
        match self.chars.next() {
            Some('}') => {}
            Some(_) => return Err(refused(COUNTS)),
            None => return Err(refused(BRACES)),
        }
        times.push('}');
        self.repeat(&times)
    }

    fn bound(&mut self) -> Result<u32> {
        let mut bound = 0;
        while let Some(char) = self.chars.next_if(char::is_ascii_digit) {
            bound = bound * 10 + char.to_digit(10).unwrap_or(0);
            if bound > COUNT_MAX {
                return Err(refused(COUNTS));
            }
        }
        Ok(bound)
    }

    /// What stands behind a backslash.
    fn escape(&mut self) -> Result<Escaped> {
        use Escaped::{Border, Char, Class};
        let letter = self.chars.next().ok_or_else(|| refused(ESCAPE))?;
        Ok(match letter {
            'a' => Char('\x07'),
            'b' => Char('\x08'),
            'B' => Char('\\'),
            'e' => Char('\x1b'),
            'f' => Char('\x0c'),
            'n' => Char('\n'),
            'r' => Char('\r'),
            't' => Char('\t'),
            'v' => Char('\x0b'),
            'c' => {
                let of = self.chars.next().ok_or_else(|| refused(ESCAPE))?;
                Char(char::from((u32::from(of) & 0x1f) as u8))
            }
            'u' => Char(self.coded(16, 4, 4)?),
            'U' => Char(self.coded(16, 8, 8)?),
            'x' => Char(self.coded(16, 1, 255)?),
            'd' => Class(r"\d"),
            'D' => Class(r"\D"),
            's' => Class(r"\s"),
            'S' => Class(r"\S"),
            'w' => Class(r"\w"),
            'W' => Class(r"\W"),
            'A' => Border(r"\A"),
            'Z' => Border(r"\z"),
            'm' => Border(r"\b{start}"),
            'M' => Border(r"\b{end}"),
            'y' => Border(r"\b"),
            'Y' => Border(r"\B"),
            '0'..='9' => self.numbered(letter)?,
            letter if letter.is_ascii_alphanumeric() => return Err(refused(ESCAPE)),
            sign => Char(sign),
        })
    }

    /// A sign by its number.
    fn coded(&mut self, base: u32, least: usize, most: usize) -> Result<char> {
        let (mut number, mut digits) = (0u32, 0);
        while digits < most
            && let Some(digit) = self.chars.peek().and_then(|char| char.to_digit(base))
        {
            self.chars.next();
            number = number.saturating_mul(base).saturating_add(digit);
            digits += 1;
        }
        let char = char::from_u32(number).filter(|_| digits >= least);
        char.ok_or_else(|| refused(ESCAPE))
    }

    /// A number: of a group that has begun, or if there is but one digit; else, in base eight, of a sign.
    fn numbered(&mut self, first: char) -> Result<Escaped> {
        let behind = self.chars.clone();
        if first != '0' {
            let mut digits = String::from(first);
            while let Some(digit) = self.chars.next_if(char::is_ascii_digit) {
                digits.push(digit);
            }
            let group = digits.parse().unwrap_or(u32::MAX);
            if digits.len() == 1 || group <= self.captured {
                return Err(refused("backreferences are not supported"));
            }
        }
        self.chars = behind;
        let mut number = first.to_digit(8).ok_or_else(|| refused(ESCAPE))?;
        for _ in 0..2 {
            let digit = self.chars.peek().and_then(|char| char.to_digit(8));
            // No more than a byte.
            let Some(longer) = digit
                .map(|digit| number * 8 + digit)
                .filter(|all| *all < 256)
            else {
                break;
            };
            self.chars.next();
            number = longer;
        }
        Ok(Escaped::Char(char::from(number as u8)))
    }

    /// A class, behind its bracket.
    fn class(&mut self) -> Result<()> {
        for (word, border) in [("[:<:]]", r"\b{start}"), ("[:>:]]", r"\b{end}")] {
            if self.eat(word) {
                self.out.push_str(border);
                self.repeatable = false;
                return Ok(());
            }
        }
        self.out.push('[');
        if self.eat("^") {
            self.out.push('^');
            if self.flags.lines {
                self.out.push_str(r"\n");
            }
        }
        let mut first = true;
        loop {
            match self.member(std::mem::take(&mut first))? {
                Member::End => break,
                Member::Dash => return Err(refused(RANGE)),
                Member::Set(set) => self.out.push_str(&set),
                Member::Char(from) => {
                    let mut ahead = self.chars.clone();
                    let dash = ahead.next() == Some('-');
                    if !dash || ahead.peek() == Some(&']') {
                        self.one(from);
                        continue;
                    }
                    self.chars = ahead;
                    let to = match self.member(false)? {
                        Member::Char(to) => to,
                        Member::Dash => '-',
                        Member::Set(_) | Member::End => return Err(refused(RANGE)),
                    };
                    if to < from {
                        return Err(refused(RANGE));
                    }
                    self.one(from);
                    self.out.push('-');
                    self.one(to);
                }
            }
        }
        self.out.push(']');
        self.repeatable = true;
        Ok(())
    }

    /// A sign in a class, by its number if it might mean something there.
    fn one(&mut self, char: char) {
        match char.is_ascii_alphanumeric() {
            true => self.out.push(char),
            false => self.out.push_str(&format!(r"\x{{{:x}}}", u32::from(char))),
        }
    }

    fn member(&mut self, first: bool) -> Result<Member> {
        let char = self.chars.next().ok_or_else(|| refused(BRACKETS))?;
        Ok(match char {
            ']' if !first => Member::End,
            '-' if !first && self.chars.peek() != Some(&']') => Member::Dash,
            '\\' => match self.escape()? {
                Escaped::Char(char) => Member::Char(char),
                Escaped::Class(class) => Member::Set(class.to_owned()),
                Escaped::Border(_) => return Err(refused(ESCAPE)),
            },
            '[' if self.eat(":") => {
                let name = self.named(":]")?;
                if !CLASSES.contains(&name.as_str()) {
                    return Err(refused("invalid character class"));
                }
                Member::Set(format!("[:{name}:]"))
            }
            '[' if self.eat(".") => Member::Char(single(&self.named(".]")?)?),
            '[' if self.eat("=") => {
                let char = single(&self.named("=]")?)?;
                Member::Set(format!(r"\x{{{:x}}}", u32::from(char)))
            }
            char => Member::Char(char),
        })
    }

    /// What stands in front of an end, which is taken too.
    fn named(&mut self, end: &str) -> Result<String> {
        let mut name = String::new();
        while !self.eat(end) {
            name.push(self.chars.next().ok_or_else(|| refused(BRACKETS))?);
        }
        Ok(name)
    }
}

/// The one sign of an element between dots or equal signs: names of signs are not known.
fn single(name: &str) -> Result<char> {
    let mut chars = name.chars();
    match (chars.next(), chars.next()) {
        (Some(char), None) => Ok(char),
        _ => Err(refused("invalid collating element")),
    }
}
