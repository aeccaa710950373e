//! `LIKE` and `ILIKE`.
//!
//! `%` stands for any characters, `_` for one, the escape in front of a character for that character.
//! Matching tries the last `%` again with one character more, and never an earlier one, so it costs
//! at most (characters of the text) x (characters of the pattern) steps.

use crate::error::{Result, SqlError, SqlState};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Part {
    Character(char),
    AnyOne,
    Any,
}

/// A pattern, ready to match.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pattern {
    parts: Vec<Part>,
    ignore_case: bool,
    /// Whether the escape ends the pattern: an error, but only where matching comes to it.
    dangling: bool,
}

impl Pattern {
    /// Reads a pattern. `escape` is `\` unless the statement names another; `None` for no escape.
    pub fn new(pattern: &str, escape: Option<char>, ignore_case: bool) -> Self {
        let fold = |c: char| if ignore_case { fold_case(c) } else { c };
        let mut parts = Vec::with_capacity(pattern.len());
        let mut dangling = false;
        let mut chars = pattern.chars();
        while let Some(c) = chars.next() {
            parts.push(match c {
                c if Some(c) == escape => match chars.next() {
                    Some(next) => Part::Character(fold(next)),
                    None => {
                        dangling = true;
                        break;
                    }
                },
                '%' if parts.last() == Some(&Part::Any) => continue,
                '%' => Part::Any,
                '_' => Part::AnyOne,
                c => Part::Character(fold(c)),
            });
        }
        Self {
            parts,
            ignore_case,
            dangling,
        }
    }

    /// What every text that matches begins with; empty if case is ignored.
    pub fn beginning(&self) -> String {
        if self.ignore_case {
            return String::new();
        }
        self.parts
            .iter()
            .map_while(|part| match part {
                Part::Character(c) => Some(*c),
                Part::Any | Part::AnyOne => None,
            })
            .collect()
    }

    /// Whether exactly the texts that begin with [`Self::beginning`] match: one `%`, at the end.
    pub fn is_beginning(&self) -> bool {
        let characters = self
            .parts
            .iter()
            .take_while(|part| matches!(part, Part::Character(_)));
        !self.ignore_case
            && !self.dangling
            && self.parts.last() == Some(&Part::Any)
            && characters.count() + 1 == self.parts.len()
    }

    /// Whether the text matches as a whole.
    ///
    /// # Errors
    /// 22025 if matching comes to an escape at the end of the pattern.
    pub fn matches(&self, text: &str) -> Result<bool> {
        let fold = |c: char| if self.ignore_case { fold_case(c) } else { c };
        let mut rest = text.chars();
        let mut at = 0;
        // Where to go on if what follows the last `%` does not match here.
        let mut retry: Option<(usize, std::str::Chars<'_>)> = None;
        loop {
            let next = match self.parts.get(at) {
                Some(Part::Any) => {
                    at += 1;
                    if at == self.parts.len() && !self.dangling {
                        return Ok(true);
                    }
                    retry = Some((at, rest.clone()));
                    continue;
                }
                Some(Part::AnyOne) => rest.next().is_some(),
                Some(Part::Character(wanted)) => rest.next().is_some_and(|c| fold(c) == *wanted),
                None if self.dangling && !rest.as_str().is_empty() => {
                    return Err(SqlError::new(
                        SqlState::INVALID_ESCAPE,
                        "LIKE pattern must not end with escape character",
                    ));
                }
                None if rest.as_str().is_empty() => return Ok(!self.dangling),
                None => false,
            };
            if next {
                at += 1;
                continue;
            }
            let Some((behind, from)) = &mut retry else {
                return Ok(false);
            };
            if from.next().is_none() {
                return Ok(false);
            }
            at = *behind;
            rest = from.clone();
        }
    }
}

fn fold_case(c: char) -> char {
    let mut lower = c.to_lowercase();
    match (lower.next(), lower.next()) {
        (Some(one), None) => one,
        _ => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What matches, by trying everything.
    fn slow(text: &[char], pattern: &[char]) -> bool {
        match pattern {
            [] => text.is_empty(),
            ['%', rest @ ..] => (0..=text.len()).any(|skip| slow(&text[skip..], rest)),
            ['_', rest @ ..] => !text.is_empty() && slow(&text[1..], rest),
            [c, rest @ ..] => text.first() == Some(c) && slow(&text[1..], rest),
        }
    }

    #[test]
    fn prop_patterns_match_what_trying_everything_finds() {
        let mut random = crate::seed::random();
        for _ in 0..20_000 {
            let mut word = |letters: &[char], longest: u64| -> Vec<char> {
                let count = random.below(longest);
                let mut pick = || letters[random.below(letters.len() as u64) as usize];
                (0..count).map(|_| pick()).collect()
            };
            let text = word(&['a', 'b', 'é'], 8);
            let pattern = word(&['a', 'b', 'é', '%', '_'], 7);
            let (words, parts) = (
                text.iter().collect::<String>(),
                pattern.iter().collect::<String>(),
            );
            let found = Pattern::new(&parts, Some('\\'), false)
                .matches(&words)
                .unwrap();
            assert_eq!(found, slow(&text, &pattern), "{words} like {parts}");
            let compiled = Pattern::new(&parts, Some('\\'), false);
            assert!(!found || words.starts_with(&compiled.beginning()));
            if compiled.is_beginning() {
                assert_eq!(found, words.starts_with(&compiled.beginning()));
            }
        }
    }

    #[test]
    fn a_long_text_and_many_percents_take_no_time() {
        let text = "a".repeat(20_000);
        let pattern = Pattern::new(&format!("{}b", "%a".repeat(50)), Some('\\'), false);
        assert!(!pattern.matches(&text).unwrap());
    }
}
