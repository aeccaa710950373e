//! LIKE.

use crate::error::{Result, SqlError};
use crate::sqlstate;

/// Whether `text` matches `pattern`: `_` is any character, `%` any number of them. Time is proportional to the product of the
/// lengths at worst.
///
/// # Errors
/// `22025` for an escape at the end of the pattern.
pub(super) fn like(text: &str, pattern: &str, escape: Option<char>) -> Result<bool> {
    let pattern: Vec<Part> = parts(pattern, escape)?;
    let text: Vec<char> = text.chars().collect();
    let (mut at, mut part) = (0, 0);
    // The last `%`, and where in the text it was tried.
    let mut star: Option<(usize, usize)> = None;
    while at < text.len() {
        match pattern.get(part) {
            Some(Part::Any) => {
                star = Some((part, at));
                part += 1;
                continue;
            }
            Some(Part::One) => {
                (at, part) = (at + 1, part + 1);
                continue;
            }
            Some(Part::Is(char)) if *char == text[at] => {
                (at, part) = (at + 1, part + 1);
                continue;
            }
            _ => {}
        }
        let Some((back, tried)) = star else {
            return Ok(false);
        };
        star = Some((back, tried + 1));
        (part, at) = (back + 1, tried + 1);
    }
    Ok(pattern[part..].iter().all(|part| matches!(part, Part::Any)))
}

enum Part {
    Any,
    One,
    Is(char),
}

fn parts(pattern: &str, escape: Option<char>) -> Result<Vec<Part>> {
    let mut chars = pattern.chars();
    let mut parts = Vec::with_capacity(pattern.len());
    while let Some(char) = chars.next() {
        parts.push(if Some(char) == escape {
            Part::Is(chars.next().ok_or_else(|| {
                let text = "LIKE pattern must not end with escape character";
                SqlError::new(sqlstate::INVALID_ESCAPE_SEQUENCE, text)
            })?)
        } else {
            match char {
                '%' => Part::Any,
                '_' => Part::One,
                char => Part::Is(char),
            }
        });
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    #[test]
    fn patterns_match_as_like_says() {
        for (text, pattern, expected) in [
            ("abc", "abc", true),
            ("abc", "a%", true),
            ("abc", "%c", true),
            ("abc", "a_c", true),
            ("abc", "_", false),
            ("", "%", true),
            ("", "_", false),
            ("aXbXc", "a%b%c", true),
            ("aXbX", "a%b%c", false),
            ("50%", "50\\%", true),
            ("500", "50\\%", false),
            ("aaaaaaaaab", "%a%a%a%ab", true),
            ("äö", "_ö", true),
        ] {
            let found = like(text, pattern, Some('\\')).unwrap();
            assert_eq!(found, expected, "{text} LIKE {pattern}");
        }
        assert!(like("a", "a\\", Some('\\')).is_err());
    }

    #[test]
    fn many_wildcards_end_soon() {
        let text = "a".repeat(5000);
        let pattern = format!("{}b", "%a".repeat(500));
        assert!(!like(&text, &pattern, None).unwrap());
    }
}
