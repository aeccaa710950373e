//! Text of dates, times and intervals cut into tokens, and the words among them.
//!
//! What a run of digits means is not decided here but by what stands around it (`parse`, `span`).

use super::abbreviations;

/// What a token looks like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// Digits, with a point perhaps.
    Number,
    /// Letters.
    Word,
    /// Digits (or letters) with separators: `2001-02-03`, `3/feb/2001`, `europe/berlin`.
    Date,
    /// Digits with colons.
    Time,
    /// A sign and digits: an offset, or a negative number.
    Signed,
    /// A sign and letters: `-infinity`.
    SignedWord,
}

/// A token, in lower case.
#[derive(Clone, Debug)]
pub(super) struct Token {
    pub kind: Kind,
    pub text: String,
}

/// Why text is not what it should be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Fault {
    /// Not a date, time or interval.
    Format,
    /// A field is out of range.
    Field,
    /// A month or day is: perhaps they stand in another order.
    MonthOrDay,
    /// A field of an interval is out of range.
    Interval,
    /// An offset is beyond what offsets may be.
    Displacement,
    /// No zone has this name.
    UnknownZone(String),
}

/// The most tokens there may be, and the most bytes with one more for each.
const TOKENS_MAX: usize = 25;
const BYTES_MAX: usize = 153;

/// Cuts text into tokens.
pub(super) fn tokenize(text: &str) -> Result<Vec<Token>, Fault> {
    let bytes = text.as_bytes();
    let mut tokens: Vec<Token> = Vec::new();
    let mut at = 0;
    let mut total = 0;
    let take = |from: usize, accept: &dyn Fn(u8) -> bool| -> usize {
        from + bytes[from..]
            .iter()
            .take_while(|byte| accept(**byte))
            .count()
    };
    let is_digit = |byte: u8| byte.is_ascii_digit();
    let peek = |at: usize| bytes.get(at).copied().unwrap_or(0);
    while at < bytes.len() {
        let first = bytes[at];
        let start = at;
        let kind = match first {
            b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c => {
                at += 1;
                continue;
            }
            b'0'..=b'9' => {
                at = take(at, &is_digit);
                match peek(at) {
                    b':' => {
                        at = take(at, &|byte| is_digit(byte) || byte == b':' || byte == b'.');
                        Kind::Time
                    }
                    mark @ (b'-' | b'/' | b'.') => {
                        at += 1;
                        if is_digit(peek(at)) {
                            at = take(at, &is_digit);
                            if peek(at) == mark {
                                // The marks of a date of three fields are alike.
                                at = take(at, &|byte| is_digit(byte) || byte == mark);
                                Kind::Date
                            } else if mark == b'.' {
                                Kind::Number
                            } else {
                                Kind::Date
                            }
                        } else {
                            at = take(at, &|byte| byte.is_ascii_alphanumeric() || byte == mark);
                            Kind::Date
                        }
                    }
                    _ => Kind::Number,
                }
            }
            b'.' => {
                at = take(at + 1, &is_digit);
                Kind::Number
            }
            b'a'..=b'z' | b'A'..=b'Z' => {
                at = take(at, &|byte| byte.is_ascii_alphabetic());
                // Dates can have separators inside, and so can names of zones.
                let more = match peek(at) {
                    b'-' | b'/' | b'.' => true,
                    b'+' | b'0'..=b'9' => {
                        date_word(&text[start..at].to_ascii_lowercase()).is_none()
                    }
                    _ => false,
                };
                if more {
                    at = take(at, &|byte| {
                        byte.is_ascii_alphanumeric() || b"+-/_.:".contains(&byte)
                    });
                    Kind::Date
                } else {
                    Kind::Word
                }
            }
            b'+' | b'-' => {
                at = take(at + 1, &|byte| byte.is_ascii_whitespace() || byte == 0x0b);
                let body = at;
                let kind = if is_digit(peek(at)) {
                    at = take(at, &|byte| is_digit(byte) || b":.-".contains(&byte));
                    Kind::Signed
                } else if peek(at).is_ascii_alphabetic() {
                    at = take(at, &|byte| byte.is_ascii_alphabetic());
                    Kind::SignedWord
                } else {
                    return Err(Fault::Format);
                };
                let body = text[body..at].to_ascii_lowercase();
                tokens.push(Token {
                    kind,
                    text: format!("{}{body}", char::from(first)),
                });
                continue;
            }
            _ if first.is_ascii_punctuation() => {
                at += 1;
                continue;
            }
            _ => return Err(Fault::Format),
        };
        total += at - start + 1;
        if tokens.len() >= TOKENS_MAX || total > BYTES_MAX {
            return Err(Fault::Format);
        }
        tokens.push(Token {
            kind,
            text: text[start..at].to_ascii_lowercase(),
        });
    }
    if tokens.len() > TOKENS_MAX {
        return Err(Fault::Format);
    }
    Ok(tokens)
}

/// What a word in a date or time means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Word {
    /// Says nothing: `at`, `on`.
    Ignored,
    Month(i32),
    Weekday(i32),
    /// `ad` or `bc`
    Era {
        before: bool,
    },
    /// `am` or `pm`
    HalfDay {
        after_noon: bool,
    },
    /// Says what the number behind it is: `y2001`, `j2451187`.
    Unit(DateUnit),
    /// `t` in front of a time.
    IsoTime,
    /// `dst` behind a zone.
    DaylightSaving,
    Now,
    Today,
    Tomorrow,
    Yesterday,
    /// `allballs`: midnight in UTC.
    Zulu,
    Epoch,
    Infinity,
    NegInfinity,
}

/// What a number behind a unit is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum DateUnit {
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
    Julian,
    /// Behind `t`.
    Time,
    /// A unit that no number can have.
    Other,
}

/// Words count up to their tenth letter.
pub(super) const WORD_BYTES: usize = 10;

/// The meaning of a word that is not the name of a zone.
pub(super) fn date_word(word: &str) -> Option<Word> {
    let word = word.get(..WORD_BYTES).unwrap_or(word);
    Some(match word {
        "-infinity" => Word::NegInfinity,
        "ad" => Word::Era { before: false },
        "allballs" => Word::Zulu,
        "am" => Word::HalfDay { after_noon: false },
        "apr" | "april" => Word::Month(4),
        "at" | "on" => Word::Ignored,
        "aug" | "august" => Word::Month(8),
        "bc" => Word::Era { before: true },
        "d" => Word::Unit(DateUnit::Day),
        "dec" | "december" => Word::Month(12),
        "dow" | "doy" | "isodow" | "isoyear" => Word::Unit(DateUnit::Other),
        "dst" => Word::DaylightSaving,
        "epoch" => Word::Epoch,
        "feb" | "february" => Word::Month(2),
        "fri" | "friday" => Word::Weekday(5),
        "h" => Word::Unit(DateUnit::Hour),
        "infinity" => Word::Infinity,
        "j" | "jd" | "julian" => Word::Unit(DateUnit::Julian),
        "jan" | "january" => Word::Month(1),
        "jul" | "july" => Word::Month(7),
        "jun" | "june" => Word::Month(6),
        "m" => Word::Unit(DateUnit::Month),
        "mar" | "march" => Word::Month(3),
        "may" => Word::Month(5),
        "mm" => Word::Unit(DateUnit::Minute),
        "mon" | "monday" => Word::Weekday(1),
        "nov" | "november" => Word::Month(11),
        "now" => Word::Now,
        "oct" | "october" => Word::Month(10),
        "pm" => Word::HalfDay { after_noon: true },
        "s" => Word::Unit(DateUnit::Second),
        "sat" | "saturday" => Word::Weekday(6),
        "sep" | "sept" | "september" => Word::Month(9),
        "sun" | "sunday" => Word::Weekday(0),
        "t" => Word::IsoTime,
        "thu" | "thur" | "thurs" | "thursday" => Word::Weekday(4),
        "today" => Word::Today,
        "tomorrow" => Word::Tomorrow,
        "tue" | "tues" | "tuesday" => Word::Weekday(2),
        "wed" | "wednesday" | "weds" => Word::Weekday(3),
        "y" => Word::Unit(DateUnit::Year),
        "yesterday" => Word::Yesterday,
        _ => return None,
    })
}

/// Seconds east of Greenwich of the zone that a word abbreviates.
pub(super) fn zone_word(word: &str) -> Option<i32> {
    abbreviations::find(word)
}
