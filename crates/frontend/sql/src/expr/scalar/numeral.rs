//! Patterns of numbers: `to_char` and `to_number`.
//!
//! The way that a number is laid into its pattern digit by digit is PostgreSQL's (`NUM_processor` of its `formatting.c`): what is shown in odd cases follows
//! from its steps.

use super::template::ending;
use super::{Arguments, fault};
use crate::error::{Result, SqlError};
use vellum_row::{Numeric, Value, ValueRef};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Key {
    Nine,
    Zero,
    /// `.` or `D`
    Point,
    Comma,
    /// `G`
    Group,
    /// `L`
    Currency,
    /// `S`
    Sign,
    /// `MI`
    Minus,
    /// `PL`
    Plus,
    /// `SG`
    PlusMinus,
    /// `PR`
    Brackets,
    /// `RN`
    Roman,
    /// `TH`
    Ordinal,
    /// `V`
    Multiply,
    /// `EEEE`
    Exponent,
    /// `FM`
    Fill,
    /// `B`
    Blank,
}

#[derive(Clone, Copy, Debug)]
enum Node {
    Key(Key, bool),
    Char(char),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SignPlace {
    Front,
    Back,
}

/// What a pattern says.
#[derive(Default, Debug)]
struct Layout {
    nodes: Vec<Node>,
    before: i32,
    behind: i32,
    /// Digits behind `V`.
    shift: i32,
    has_shift: bool,
    zero_start: i32,
    zero_end: i32,
    sign: Option<SignPlace>,
    before_sign: i32,
    zero: bool,
    point: bool,
    fill: bool,
    minus: bool,
    plus: bool,
    brackets: bool,
    roman: bool,
    exponent: bool,
}

const WORDS: [(&str, Key); 19] = [
    ("EEEE", Key::Exponent),
    ("FM", Key::Fill),
    ("MI", Key::Minus),
    ("PL", Key::Plus),
    ("PR", Key::Brackets),
    ("RN", Key::Roman),
    ("SG", Key::PlusMinus),
    ("TH", Key::Ordinal),
    ("9", Key::Nine),
    ("0", Key::Zero),
    (".", Key::Point),
    ("D", Key::Point),
    (",", Key::Comma),
    ("G", Key::Group),
    ("L", Key::Currency),
    ("S", Key::Sign),
    ("V", Key::Multiply),
    ("B", Key::Blank),
    ("C", Key::Currency),
];

#[cold]
fn wrong(text: &'static str) -> SqlError {
    fault("42601", text)
}

impl Layout {
    fn of(pattern: &str) -> Result<Self> {
        let mut layout = Self::default();
        let mut rest = pattern;
        while let Some(first) = rest.chars().next() {
            let found = WORDS.iter().find(|(word, _)| {
                let own = rest.get(..word.len());
                own.is_some_and(|own| own == *word || own == word.to_lowercase())
            });
            if let Some((word, key)) = found {
                let upper = rest.starts_with(word);
                rest = &rest[word.len()..];
                layout.take(*key)?;
                layout.nodes.push(Node::Key(*key, upper));
                continue;
            }
            rest = &rest[first.len_utf8()..];
            if first == '"' {
                let mut end = rest.len();
                let mut chars = rest.char_indices();
                while let Some((at, char)) = chars.next() {
                    match char {
                        '"' => {
                            end = at + 1;
                            break;
                        }
                        '\\' => {
                            if let Some((_, char)) = chars.next() {
                                layout.nodes.push(Node::Char(char));
                            }
                        }
                        char => layout.nodes.push(Node::Char(char)),
                    }
                }
                rest = &rest[end..];
            } else if first == '\\' && rest.starts_with('"') {
                rest = &rest[1..];
                layout.nodes.push(Node::Char('"'));
            } else {
                layout.nodes.push(Node::Char(first));
            }
        }
        Ok(layout)
    }

    fn take(&mut self, key: Key) -> Result<()> {
        if self.exponent && key != Key::Exponent {
            return Err(wrong("\"EEEE\" must be the last pattern used"));
        }
        match key {
            Key::Nine if self.brackets => return Err(wrong("\"9\" must be ahead of \"PR\"")),
            Key::Nine if self.has_shift => self.shift += 1,
            Key::Nine if self.point => self.behind += 1,
            Key::Nine => self.before += 1,
            Key::Zero if self.brackets => return Err(wrong("\"0\" must be ahead of \"PR\"")),
            Key::Zero => {
                if !self.zero && !self.point {
                    self.zero = true;
                    self.zero_start = self.before + 1;
                }
                if self.point {
                    self.behind += 1;
                } else {
                    self.before += 1;
                }
                self.zero_end = self.before + self.behind;
            }
            Key::Point if self.point => return Err(wrong("multiple decimal points")),
            Key::Point if self.has_shift => {
                return Err(wrong("cannot use \"V\" and decimal point together"));
            }
            Key::Point => self.point = true,
            Key::Fill => self.fill = true,
            Key::Sign => {
                if self.sign.is_some() {
                    return Err(wrong("cannot use \"S\" twice"));
                }
                if self.plus || self.minus || self.brackets {
                    let text = "cannot use \"S\" and \"PL\"/\"MI\"/\"SG\"/\"PR\" together";
                    return Err(wrong(text));
                }
                if self.point {
                    self.sign = Some(SignPlace::Back);
                } else {
                    self.sign = Some(SignPlace::Front);
                    self.before_sign = self.before;
                }
            }
            Key::Minus | Key::Plus | Key::PlusMinus => {
                if self.sign.is_some() {
                    return Err(wrong(match key {
                        Key::Minus => "cannot use \"S\" and \"MI\" together",
                        Key::Plus => "cannot use \"S\" and \"PL\" together",
                        _ => "cannot use \"S\" and \"SG\" together",
                    }));
                }
                self.minus |= key != Key::Plus;
                self.plus |= key != Key::Minus;
            }
            Key::Brackets => {
                if self.sign.is_some() || self.plus || self.minus {
                    let text = "cannot use \"PR\" and \"S\"/\"PL\"/\"MI\"/\"SG\" together";
                    return Err(wrong(text));
                }
                self.brackets = true;
            }
            Key::Roman => self.roman = true,
            Key::Multiply if self.point => {
                return Err(wrong("cannot use \"V\" and decimal point together"));
            }
            Key::Multiply => self.has_shift = true,
            Key::Exponent if self.exponent => return Err(wrong("cannot use \"EEEE\" twice")),
            Key::Exponent => {
                let others = self.fill || self.sign.is_some() || self.brackets || self.minus;
                if others || self.plus || self.roman || self.has_shift {
                    return Err(wrong("\"EEEE\" is incompatible with other formats"));
                }
                self.exponent = true;
            }
            Key::Comma | Key::Group | Key::Currency | Key::Ordinal | Key::Blank => {}
        }
        Ok(())
    }
}

fn roman(number: i64) -> String {
    const UNITS: [(&str, i64); 13] = [
        ("M", 1000),
        ("CM", 900),
        ("D", 500),
        ("CD", 400),
        ("C", 100),
        ("XC", 90),
        ("L", 50),
        ("XL", 40),
        ("X", 10),
        ("IX", 9),
        ("V", 5),
        ("IV", 4),
        ("I", 1),
    ];
    if !(1..=3999).contains(&number) {
        return "#".repeat(15);
    }
    let mut rest = number;
    let mut out = String::new();
    for (letters, value) in UNITS {
        while rest >= value {
            out.push_str(letters);
            rest -= value;
        }
    }
    out
}

/// Digits, a point and an exponent of at least two digits.
fn scientific(value: f64, digits: usize) -> String {
    // A float has no more digits than this; more are zeroes, and the formatter takes 65,535 at most.
    let shown = digits.min(1100);
    let mut text = format!("{:.shown$e}", value.abs());
    if let Some(at) = text.find('e') {
        text.insert_str(at, &"0".repeat(digits - shown));
    }
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign = if exponent < 0 { '-' } else { '+' };
    let first = if value.is_sign_negative() { '-' } else { ' ' };
    format!("{first}{mantissa}e{sign}{:02}", exponent.abs())
}

/// The same of a number with all its digits. What rounds up to ten stays ten, as in PostgreSQL.
fn scientific_exact(number: &Numeric, digits: usize) -> String {
    let mut text = String::new();
    number.abs().as_ref().write(&mut text);
    let (whole, part) = text.split_once('.').unwrap_or((&text, ""));
    let all = [whole.as_bytes(), part.as_bytes()].concat();
    let first = all.iter().position(|digit| *digit != b'0');
    let exponent = first.map_or(0, |first| whole.len() as i64 - 1 - first as i64);
    let mut shown = all[first.unwrap_or(all.len())..].to_vec();
    let up = shown.get(digits + 1).is_some_and(|digit| *digit >= b'5');
    shown.resize(digits + 1, b'0');
    let mut carry = up;
    for digit in shown.iter_mut().rev() {
        if !carry {
            break;
        }
        carry = *digit == b'9';
        *digit = if carry { b'0' } else { *digit + 1 };
    }
    let mut out = String::from(if number.is_negative() { "-" } else { " " });
    if carry {
        out.push('1');
    }
    out.push(char::from(shown[0]));
    if digits > 0 {
        out.push('.');
        out.extend(shown[1..].iter().map(|digit| char::from(*digit)));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    out.push_str(&format!("e{sign}{:02}", exponent.abs()));
    out
}

pub(super) fn to_char(a: &Arguments<'_>) -> Result<Value> {
    let mut layout = Layout::of(a.text(1))?;
    let float = match a.at(0) {
        ValueRef::Float8(value) => Some((value, 15)),
        ValueRef::Float4(value) => Some((f64::from(value), 6)),
        _ => None,
    };
    // Short integers go through a float there, as in PostgreSQL; long ones do not.
    let is_short = matches!(a.at(0), ValueRef::Int2(_) | ValueRef::Int4(_));
    let as_float = float.map_or_else(|| a.numeric(0).to_f64(), |(value, _)| value);
    if layout.roman {
        let number = if as_float.is_finite() {
            as_float.round_ties_even().clamp(-1.0, 10_000.0) as i64
        } else {
            0
        };
        let text = roman(number);
        return laid(&layout, &text, '+', 0).map(Value::text);
    }
    if layout.exponent {
        let digits = usize::try_from(layout.behind).unwrap_or(0);
        let finite = match float {
            Some((value, _)) => value.is_finite(),
            None => a.numeric(0).is_finite(),
        };
        if !finite {
            let width = usize::try_from(layout.before + layout.behind + 6).unwrap_or(0);
            let mut text: Vec<u8> = vec![b'#'; width];
            text[0] = b' ';
            let point = usize::try_from(layout.before + 1).unwrap_or(0);
            if let Some(place) = text.get_mut(point) {
                *place = b'.';
            }
            return Ok(Value::text(String::from_utf8_lossy(&text).into_owned()));
        }
        return Ok(Value::text(match float {
            Some((value, _)) => scientific(value, digits),
            None if is_short => scientific(as_float, digits),
            None => scientific_exact(&a.numeric(0), digits),
        }));
    }
    let digits = match float {
        Some((mut value, most)) => {
            if layout.has_shift {
                value *= 10f64.powi(layout.shift);
                layout.before += layout.shift;
            }
            let whole = format!("{:.0}", value.abs()).len() as i32;
            if whole >= most {
                layout.behind = 0;
            } else if whole + layout.behind > most {
                layout.behind = most - whole;
            }
            let behind = usize::try_from(layout.behind).unwrap_or(0);
            if value.is_nan() {
                "NaN".to_owned()
            } else if value.is_infinite() {
                if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned()
            } else {
                format!("{value:.behind$}")
            }
        }
        None => {
            let mut value = a.numeric(0);
            if layout.has_shift {
                let factor = Numeric::from(10).power(&Numeric::from(layout.shift), &|| true)?;
                value = value.multiply(&factor)?;
                layout.before += layout.shift;
            }
            value.round(layout.behind)?.to_string()
        }
    };
    let (sign, mut digits) = match digits.strip_prefix('-') {
        Some(rest) => ('-', rest.to_owned()),
        None => ('+', digits),
    };
    let whole = digits.find('.').unwrap_or(digits.len()) as i32;
    let mut blanks = 0;
    if whole < layout.before {
        blanks = layout.before - whole;
    } else if whole > layout.before {
        let count = usize::try_from(layout.before).unwrap_or(0);
        let behind = usize::try_from(layout.behind).unwrap_or(0);
        digits = format!("{}.{}", "#".repeat(count), "#".repeat(behind));
    }
    laid(&layout, &digits, sign, blanks).map(Value::text)
}

/// A number on its way into a pattern.
struct Laying<'l> {
    layout: &'l Layout,
    digits: &'l [u8],
    /// The next digit.
    at: usize,
    sign: char,
    blanks: i32,
    brackets: bool,
    sign_place: Option<SignPlace>,
    sign_written: bool,
    zero_start: i32,
    /// Where the last digit stands that is not dropped.
    last: Option<usize>,
    count: i32,
    current: i32,
    inside: bool,
    out: String,
}

fn laid(layout: &Layout, digits: &str, sign: char, blanks: i32) -> Result<String> {
    let mut laying = Laying {
        layout,
        digits: digits.as_bytes(),
        at: 0,
        sign,
        blanks,
        brackets: layout.brackets,
        sign_place: layout.sign,
        sign_written: false,
        zero_start: (layout.zero_start - 1).max(0),
        last: None,
        count: layout.behind + layout.before - 1,
        current: 0,
        inside: false,
        out: String::new(),
    };
    if layout.roman {
        return Ok(laying.roman(digits));
    }
    if layout.plus || layout.minus {
        laying.sign_written = !layout.plus || layout.minus;
    } else {
        if sign != '-' && layout.fill {
            laying.brackets = false;
        }
        laying.sign_written = sign == '+' && layout.fill && layout.sign.is_none();
        if laying.sign_place == Some(SignPlace::Front) && layout.before == layout.before_sign {
            laying.sign_place = Some(SignPlace::Back);
        }
    }
    if layout.fill && layout.point {
        let point = digits.find('.');
        laying.last = point.map(|point| {
            let behind = digits.as_bytes()[point + 1..]
                .iter()
                .rposition(|digit| *digit != b'0');
            behind.map_or(point, |at| point + 1 + at)
        });
        if let Some(last) = laying.last
            && layout.zero_end > blanks
        {
            let wanted = usize::try_from(layout.zero_end - blanks).unwrap_or(0);
            laying.last = Some(last.max(wanted.min(digits.len() - 1)));
        }
    }
    if !laying.sign_written && blanks == 0 {
        laying.count += 1;
    }
    for node in &layout.nodes {
        laying.node(*node);
    }
    Ok(laying.out)
}

impl Laying<'_> {
    fn roman(mut self, digits: &str) -> String {
        for node in &self.layout.nodes {
            match node {
                Node::Key(Key::Roman, upper) => {
                    let text = if *upper {
                        digits.to_owned()
                    } else {
                        digits.to_lowercase()
                    };
                    if self.layout.fill {
                        self.out.push_str(&text);
                    } else {
                        self.out.push_str(&format!("{text:>15}"));
                    }
                }
                Node::Char(char) => self.out.push(*char),
                Node::Key(..) => {}
            }
        }
        self.out
    }

    fn node(&mut self, node: Node) {
        let fill = self.layout.fill;
        let (key, upper) = match node {
            Node::Char(char) => {
                self.out.push(char);
                return;
            }
            Node::Key(key, upper) => (key, upper),
        };
        match key {
            Key::Nine | Key::Zero | Key::Point => self.digit(key),
            Key::Comma | Key::Group if self.inside => self.out.push(','),
            Key::Comma | Key::Group | Key::Currency if !fill => self.out.push(' '),
            Key::Currency => self.out.push(' '),
            Key::Ordinal => {
                let hidden = self.digits.first() == Some(&b'#') || self.sign == '-';
                if !hidden && !self.layout.point {
                    let digits = String::from_utf8_lossy(self.digits);
                    self.out.push_str(ending(&digits, upper));
                }
            }
            Key::Minus if self.sign == '-' => self.out.push('-'),
            Key::Plus if self.sign == '+' => self.out.push('+'),
            Key::Minus | Key::Plus if !fill => self.out.push(' '),
            Key::PlusMinus => self.out.push(self.sign),
            _ => {}
        }
    }

    fn next(&self) -> Option<u8> {
        self.digits.get(self.at).copied()
    }

    /// Whether the zero in front of a point stands for nothing.
    fn is_blank_zero(&self) -> bool {
        !self.layout.zero && self.at == 0 && self.next() == Some(b'0') && self.layout.behind != 0
    }

    fn last_is_point(&self) -> bool {
        self.last
            .is_some_and(|last| self.digits.get(last) == Some(&b'.'))
    }

    fn write_sign(&mut self) {
        if self.sign_place.is_some() {
            if self.sign_place == Some(SignPlace::Front) {
                self.out.push(self.sign);
                self.sign_written = true;
            }
        } else if self.brackets {
            self.out.push(if self.sign == '+' { ' ' } else { '<' });
            self.sign_written = true;
        } else {
            if self.sign == '-' {
                self.out.push('-');
            } else if !self.layout.fill {
                self.out.push(' ');
            }
            self.sign_written = true;
        }
    }

    fn digit(&mut self, key: Key) {
        let (fill, zero) = (self.layout.fill, self.layout.zero);
        self.inside = false;
        let begins = self.current >= self.blanks || zero && self.zero_start == self.current;
        if !self.sign_written && begins && (!self.is_blank_zero() || self.last_is_point()) {
            self.write_sign();
        }
        if self.current < self.blanks && (self.zero_start > self.current || !zero) {
            if !fill {
                self.out.push(' ');
            }
        } else if zero && self.current < self.blanks {
            self.out.push('0');
            self.inside = true;
        } else {
            match self.next() {
                Some(b'.') => {
                    if !self.last_is_point() || fill {
                        self.out.push('.');
                    }
                }
                // Behind the last digit that counts.
                _ if self.last.is_some_and(|last| self.at > last) && key != Key::Zero => {}
                _ if self.is_blank_zero() => {
                    if !fill {
                        self.out.push(' ');
                    } else if self.last_is_point() {
                        self.out.push('0');
                    }
                }
                Some(digit) => {
                    self.out.push(char::from(digit));
                    self.inside = true;
                }
                None => self.inside = true,
            }
            if self.at < self.digits.len() {
                self.at += 1;
            }
        }
        let mut end = self.count + i32::from(self.blanks > 0) + i32::from(self.layout.point);
        if self.last == Some(self.at) {
            end = self.current;
        }
        if self.current + 1 == end {
            if self.sign_written && self.brackets {
                self.out.push(if self.sign == '+' { ' ' } else { '>' });
            } else if self.sign_place == Some(SignPlace::Back) {
                self.out.push(self.sign);
            }
        }
        self.current += 1;
    }
}

/// `to_number`: the digits of a text that stand where the pattern has some.
pub(super) fn to_number(a: &Arguments<'_>) -> Result<Value> {
    let layout = Layout::of(a.text(1))?;
    if layout.roman || layout.exponent {
        let what = if layout.roman { "RN" } else { "EEEE" };
        let message = format!("\"{what}\" not supported for input");
        return Err(fault("0A000", message));
    }
    let text: Vec<char> = a.text(0).chars().collect();
    let (mut at, mut negative, mut signed) = (0, false, false);
    let (mut digits, mut pointed) = (String::new(), false);
    for node in &layout.nodes {
        let key = match node {
            Node::Key(key, _) => *key,
            Node::Char(_) => {
                // A character of the pattern stands for one of the text.
                at += 1;
                continue;
            }
        };
        if at >= text.len() {
            break;
        }
        match key {
            Key::Nine | Key::Zero | Key::Point => {
                while text.get(at) == Some(&' ') {
                    at += 1;
                }
                if !signed && digits.is_empty() {
                    match text.get(at) {
                        Some('-') => (negative, signed, at) = (true, true, at + 1),
                        Some('+') => (signed, at) = (true, at + 1),
                        Some('<') if layout.brackets => {
                            (negative, signed, at) = (true, true, at + 1)
                        }
                        _ => {}
                    }
                }
                match text.get(at) {
                    Some(digit) if digit.is_ascii_digit() && key != Key::Point => {
                        digits.push(*digit);
                        at += 1;
                    }
                    Some('.') if !pointed && (key == Key::Point || layout.point) => {
                        digits.push('.');
                        pointed = true;
                        at += 1;
                    }
                    _ => {}
                }
            }
            Key::Comma | Key::Group if text.get(at) == Some(&',') => at += 1,
            Key::Currency => {
                let is_number = |char: char| char.is_ascii_digit() || "+-.,".contains(char);
                if text.get(at).is_some_and(|char| !is_number(*char)) {
                    at += 1;
                }
            }
            Key::Sign | Key::Minus | Key::Plus | Key::PlusMinus => match text.get(at) {
                Some('-') => (negative, at) = (true, at + 1),
                Some('+' | ' ') => at += 1,
                _ => {}
            },
            Key::Brackets if text.get(at) == Some(&'>') => at += 1,
            Key::Ordinal => at += 2,
            _ => {}
        }
    }
    // A sign that stands behind.
    if layout.sign.is_some() && text.get(at) == Some(&'-') {
        negative = true;
    }
    if digits.is_empty() || digits == "." {
        let shown = if digits.is_empty() { " " } else { "." };
        return Err(SqlError::from(vellum_row::SqlError::invalid_text(
            "numeric", shown,
        )));
    }
    let mut value = Numeric::parse(&digits)?.round(layout.behind)?;
    if layout.shift > 0 {
        let factor = Numeric::from(10).power(&Numeric::from(layout.shift), &|| true)?;
        value = value.divide(&factor)?;
    }
    Ok(Value::Numeric(if negative {
        value.negate()
    } else {
        value
    }))
}
