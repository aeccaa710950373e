//! Texts of statements as others may see them: without passwords.
//!
//! What is shown of statements (the log, `pg_stat_activity`) outlives them and is read by others than who sent them. So the literal behind PASSWORD is not shown, in CREATE ROLE,
//! ALTER ROLE and OPTIONS, nor in what is written of them in the body of a DO or in a literal that is executed.
//!
//! The text is scanned, not parsed: it may be none of SQL's, and rather too much is hidden than too little.
//!
//! Where an expression puts it together (`format('… password %L', …)`, `'… password ' || …`) the password may be any literal of the text, in front of it, too: none is shown.
//!
//! Not here: passwords that are data of tables.

use memchr::memchr2_iter;
use std::borrow::Cow;

const WORD: &str = "password";
/// What is shown instead of a literal.
const HIDDEN: &str = "'********'";

/// How many times its length of comments is passed over before the rest of a text is hidden.
const COMMENTS_MAX: usize = 4;

/// The text with something else in the place of passwords. Takes time in proportion to the text: comments that hold PASSWORD again and again would be
/// read once for each, so that what is behind very many of them is not shown at all.
pub fn without_passwords(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let mut out = String::new();
    let (mut copied, mut passed) = (0, 0);
    for at in memchr2_iter(b'p', b'P', bytes) {
        let behind = at + WORD.len();
        let is_word = bytes
            .get(at..behind)
            .is_some_and(|word| word.eq_ignore_ascii_case(WORD.as_bytes()));
        if at < copied || !is_word || text[..at].ends_with(is_of_name) {
            continue;
        }
        // It may be a name in quotes.
        let rest = text[behind..].strip_prefix('"').unwrap_or(&text[behind..]);
        let rest = without_space(rest, &mut passed);
        if is_put_together(rest) {
            let shown = first_literal(text).min(text.len() - rest.len());
            return Cow::Owned(text[..shown].to_owned() + HIDDEN);
        }
        if let Some(length) = literal(rest, &mut passed) {
            out.push_str(&text[copied..text.len() - rest.len()]);
            out.push_str(HIDDEN);
            copied = text.len() - rest.len() + length;
        }
        if passed > COMMENTS_MAX * text.len() {
            let shown = copied.max(behind);
            out.push_str(&text[copied..shown]);
            out.push_str(HIDDEN);
            return Cow::Owned(out);
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

/// Whether what stands behind PASSWORD says that an expression puts something there: a place that `format` fills, in quotes or not, or the end of a literal that goes on behind it.
fn is_put_together(text: &str) -> bool {
    let behind = match text.strip_prefix('\\').unwrap_or(text) {
        quoted if quoted.starts_with('\'') => quoted.trim_start_matches('\''),
        tagged if tagged.starts_with('$') => {
            let tag = tagged[1..].split_once('$');
            tag.filter(|(tag, _)| tag.chars().all(is_of_name))
                .map_or(tagged, |(_, behind)| behind)
        }
        text => text,
    };
    if let Some(place) = behind.strip_prefix('%') {
        let kind = place.trim_start_matches(|c: char| c.is_ascii_digit() || "$*-".contains(c));
        return kind.starts_with(['L', 's', 'I']);
    }
    let quotes = text.len() - behind.len();
    let next = behind.trim_start();
    quotes > 0 && (next.starts_with("||") || quotes == 1 && next.starts_with(','))
}

/// Where the first literal of a text begins.
fn first_literal(text: &str) -> usize {
    let mut places = memchr2_iter(b'\'', b'$', text.as_bytes());
    places
        .find(|at| one_literal(&text[*at..]).is_some())
        .unwrap_or(text.len())
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

/// What follows white space and comments, whose length is added to `passed`.
fn without_space<'t>(text: &'t str, passed: &mut usize) -> &'t str {
    let rest = behind_space(text);
    *passed += text.len() - rest.len();
    rest
}

fn behind_space(text: &str) -> &str {
    let mut rest = text.trim_start();
    loop {
        let behind = if let Some(comment) = rest.strip_prefix("--") {
            comment.find('\n').map(|end| &comment[end..])
        } else if let Some(comment) = rest.strip_prefix("/*") {
            comment.find("*/").map(|end| &comment[end + 2..])
        } else {
            return rest;
        };
        rest = behind.unwrap_or_default().trim_start();
    }
}

/// How long the literal is that a text begins with, with those that go on with it in other lines; one that does not end takes all of it.
fn literal(text: &str, passed: &mut usize) -> Option<usize> {
    let mut length = one_literal(text)?;
    loop {
        let rest = &text[length..];
        let next = without_space(rest, passed);
        let between = &rest[..rest.len() - next.len()];
        match one_literal(next) {
            Some(more) if next.starts_with('\'') && between.contains('\n') => {
                length += between.len() + more;
            }
            _ => return Some(length),
        }
    }
}

fn one_literal(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let quote = match bytes {
        [b'\'', ..] => 0,
        [b'e' | b'E' | b'n' | b'N', b'\'', ..] => 1,
        [b'u' | b'U', b'&', b'\'', ..] => 2,
        // Within a literal that has escapes.
        [b'\\', b'\'', ..] => return Some(up_to(text, 2, "\\'")),
        [b'$', ..] => {
            let end = text[1..].find(|c: char| !(c.is_alphanumeric() || c == '_'))? + 1;
            let tag = text.get(..=end).filter(|tag| tag.ends_with('$'))?;
            return Some(up_to(text, tag.len(), tag));
        }
        _ => return None,
    };
    let run = bytes[quote..].iter().take_while(|b| **b == b'\'').count();
    let next = text[quote + run..].chars().next();
    if run % 2 == 0 {
        // Of two and more each is half as many within a literal, unless nothing is in it.
        let is_empty = next.is_none_or(|c| c.is_whitespace() || ";,)".contains(c));
        let quotes = &text[quote..quote + run];
        return Some(match is_empty && run == 2 {
            true => quote + run,
            false => up_to(text, quote + run, quotes),
        });
    }
    let escapes = quote == 1 && bytes[0].eq_ignore_ascii_case(&b'e');
    let mut at = quote + 1;
    while let Some(byte) = bytes.get(at) {
        at += match (byte, bytes.get(at + 1)) {
            (b'\'', Some(b'\'')) => 2,
            (b'\\', Some(_)) if escapes => 2,
            (b'\'', _) => return Some(at + 1),
            _ => 1,
        };
    }
    Some(text.len())
}

/// The place behind the next `end` from a place on; that of the text's end without.
fn up_to(text: &str, from: usize, end: &str) -> usize {
    let rest = &text[from..];
    rest.find(end)
        .map_or(text.len(), |at| from + at + end.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_behind_password_is_not_shown() {
        for (text, shown) in [
            (
                "alter role a password 's3cret'",
                "alter role a password '********'",
            ),
            (
                "create user a ENCRYPTED Password's3cret' login; select 'x'",
                "create user a ENCRYPTED Password'********' login; select 'x'",
            ),
            (
                "alter role a password 'it''s3cret' login",
                "alter role a password '********' login",
            ),
            (
                "alter role a password e's3cret\\'s3cret' login",
                "alter role a password '********' login",
            ),
            (
                "alter role a password $$s3cret$$ login",
                "alter role a password '********' login",
            ),
            (
                "alter role a password $é1$s3cret$$s3cret$é1$ x",
                "alter role a password '********' x",
            ),
            (
                "alter role a password u&'s3cret' x",
                "alter role a password '********' x",
            ),
            (
                "alter role a password /* its */ -- new\n 's3cret'\n  's3cret' x",
                "alter role a password /* its */ -- new\n '********' x",
            ),
            (
                "alter role a password 's3cret' 'x'",
                "alter role a password '********' 'x'",
            ),
            (
                "alter role a password 's3cret",
                "alter role a password '********'",
            ),
            (
                "alter role a password ''; select 'x'",
                "alter role a password '********'; select 'x'",
            ),
            (
                "options (user 'u', \"password\" 's3cret', host 'h')",
                "options (user 'u', \"password\" '********', host 'h')",
            ),
            (
                "do $$ begin alter role a password 's3cret'; end $$",
                "do $$ begin alter role a password '********'; end $$",
            ),
            (
                "do $$ begin execute 'alter role a password ''s3cret'' login'; end $$",
                "do $$ begin execute 'alter role a password '********' login'; end $$",
            ),
            (
                "do $$ begin execute 'alter role a password ''-s3cret'' login'; end $$",
                "do $$ begin execute 'alter role a password '********' login'; end $$",
            ),
            (
                "do 'begin execute ''alter role a password ''''s3cret'''' login''; end'",
                "do 'begin execute ''alter role a password '********' login''; end'",
            ),
            (
                "execute e'alter role a password \\'s3cret\\' login'",
                "execute e'alter role a password '********' login'",
            ),
            (
                "alter role a password 's3cret'; alter role b password 's3cret'",
                "alter role a password '********'; alter role b password '********'",
            ),
        ] {
            assert_eq!(without_passwords(text), shown);
        }
    }

    #[test]
    fn passwords_that_are_put_together_are_not_shown() {
        for (text, shown) in [
            (
                "do $$ begin execute format('alter role a password %L', 's3cret'); end $$",
                "do '********'",
            ),
            (
                "do $b$ declare p text := 's3cret'; begin execute format('alter role %I password %2$L', 'a', p); end $b$",
                "do '********'",
            ),
            (
                "select format('alter role a password ''%s''', 's3cret')",
                "select format('********'",
            ),
            (
                "select 'alter role a password ' || quote_literal('s3cret')",
                "select '********'",
            ),
            (
                "select concat('alter role a password ', quote_literal('s3cret'))",
                "select concat('********'",
            ),
            (
                "do 'begin execute ''alter role a password '' || quote_literal(''s3cret''); end'",
                "do '********'",
            ),
            (
                "do $$ begin execute 'alter role a password ''' || 's3cret' || ''''; end $$",
                "do '********'",
            ),
            (
                "select x from t where y = $1; select $q$alter role a password $q$ || 's3cret'",
                "select x from t where y = $1; select '********'",
            ),
            (
                "alter role a password 'a'; select e'password \\'%s\\'', 's3cret'",
                "alter role a password '********'",
            ),
        ] {
            assert_eq!(without_passwords(text), shown);
        }
    }

    #[test]
    fn other_texts_are_shown_as_they_are() {
        for text in [
            "",
            "p",
            "select password from users where password = 'x'",
            "insert into users (email, password) values ('a', 'b')",
            "select old_password 'x', password1 'x', passwor 'x'",
            "alter role a password null",
            "alter role a password",
            "alter role a password $1",
            "alter role a password /* 'x'",
            "select 'é' as \"password\", 'x'",
            "select 10 as password %3, 'x'",
            "select '100 %' where password <> $1 || $2",
        ] {
            assert!(
                matches!(without_passwords(text), Cow::Borrowed(same) if same == text),
                "{text}"
            );
        }
    }

    /// Not by the square of its length, which would be hours here.
    #[test]
    fn text_full_of_comments_is_read_a_few_times_at_most() {
        for part in [
            "password/*",
            "password--",
            "password--\n--",
            "password ''--\n",
        ] {
            let text = part.repeat(1_000_000) + "password 's3cret'";
            assert!(!without_passwords(&text).contains("s3cret"), "{part}");
        }
    }

    #[test]
    fn prop_no_text_makes_it_fail() {
        let parts = [
            "password", " ", "'", "''", "\\", "$", "$$", "é", "e'", "u&'", "/*", "*/", "--", "\n",
            "\"", "x",
        ];
        let seed = vellum_base::replay::seed();
        println!("VELLUM_SEED={seed}");
        let mut random = vellum_base::random::Random::new(seed);
        for _ in 0..vellum_base::replay::rounds(20_000) {
            let count = random.next_u64() % 12;
            let part = |_| parts[(random.next_u64() % parts.len() as u64) as usize];
            let text: String = (0..count).map(part).collect();
            let _ = without_passwords(&text);
        }
    }
}
