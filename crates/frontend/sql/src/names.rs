//! Names as SQL writes them: quoted where they have to be.

/// Words that stand for something else unless they are quoted: all of PostgreSQL 15's that it reserves in any way.
const WORDS: &str = "\
    all analyse analyze and any array as asc asymmetric authorization between bigint binary bit boolean both case \
    cast char character check coalesce collate collation column concurrently constraint create cross \
    current_catalog current_date current_role current_schema current_time current_timestamp current_user dec \
    decimal default deferrable desc distinct do else end except exists extract false fetch float for foreign \
    freeze from full grant greatest group grouping having ilike in initially inner inout int integer intersect \
    interval into is isnull join lateral leading least left like limit localtime localtimestamp national natural \
    nchar none normalize not notnull null nullif numeric offset on only or order out outer overlaps overlay \
    placing position precision primary real references returning right row select session_user setof similar \
    smallint some substring symmetric table tablesample then time timestamp to trailing treat trim true union \
    unique user using values varchar variadic verbose when where window with xmlattributes xmlconcat xmlelement \
    xmlexists xmlforest xmlnamespaces xmlparse xmlpi xmlroot xmlserialize xmltable";

/// An identifier.
pub(crate) fn quoted(name: &str) -> String {
    let mut bytes = name.bytes();
    let plain = bytes
        .next()
        .is_some_and(|byte| byte.is_ascii_lowercase() || byte == b'_')
        && bytes.all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
        && !WORDS.split_whitespace().any(|word| word == name);
    if plain {
        return name.to_owned();
    }
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A literal.
pub(crate) fn literal(text: &str) -> String {
    let body = text.replace('\'', "''");
    if text.contains('\\') {
        return format!(" E'{}'", body.replace('\\', "\\\\"));
    }
    format!("'{body}'")
}

/// A literal as definitions are shown: a backslash is a letter like others, as standard strings have it.
pub(crate) fn simple_literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// The parts of a name with points in it, folded unless they are quoted; `None` if it is none.
pub(crate) fn parts(name: &str) -> Option<Vec<String>> {
    split(name, '.').filter(|parts| parts.iter().all(|part| !part.is_empty()))
}

/// The names of a list with commas, the same way; `None` if it is none.
pub(crate) fn list(names: &str) -> Option<Vec<String>> {
    match names.trim() {
        "" => Some(Vec::new()),
        names => split(names, ','),
    }
}

/// What stands between separators: names without quotes have no blanks in them, and are not empty.
fn split(names: &str, separator: char) -> Option<Vec<String>> {
    let mut all = Vec::new();
    let mut rest = names.trim();
    loop {
        let part;
        if let Some(inside) = rest.strip_prefix('"') {
            let mut text = String::new();
            let mut chars = inside.char_indices().peekable();
            let end = loop {
                match chars.next()? {
                    (_, '"') if chars.peek().is_some_and(|(_, next)| *next == '"') => {
                        chars.next();
                        text.push('"');
                    }
                    (at, '"') => break at + 1,
                    (_, other) => text.push(other),
                }
            };
            part = text;
            rest = inside[end..].trim_start();
        } else {
            let ends = |char: char| char == separator || char.is_whitespace();
            let end = rest.find(ends).unwrap_or(rest.len());
            if end == 0 {
                return None;
            }
            part = rest[..end].to_ascii_lowercase();
            rest = rest[end..].trim_start();
        }
        all.push(part);
        match rest.strip_prefix(separator) {
            Some(after) => rest = after.trim_start(),
            None if rest.is_empty() => return Some(all),
            None => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_where_they_have_to_be() {
        for (name, shown) in [
            ("a_1", "a_1"),
            ("A", "\"A\""),
            ("1a", "\"1a\""),
            ("select", "\"select\""),
            ("name", "name"),
            ("a\"b", "\"a\"\"b\""),
            ("é", "\"é\""),
        ] {
            assert_eq!(quoted(name), shown);
        }
        assert_eq!(literal("it's"), "'it''s'");
        assert_eq!(literal("a\\b"), " E'a\\\\b'");
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        let read = |name: &str| parts(name).map(|parts| parts.join("|"));
        assert_eq!(read("A.b"), Some("a|b".into()));
        assert_eq!(read("\"A.b\" . c"), Some("A.b|c".into()));
        assert_eq!(read("\"a\"\"b\""), Some("a\"b".into()));
        for bad in ["", "a.", ".a", "\"a", "\"a\"b", "a b", "\"\".a"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }

    #[test]
    fn lists_are_read_as_they_are_written() {
        let read = |names: &str| list(names).map(|names| names.join("|"));
        assert_eq!(read(" A , \"B,\"\"c\" "), Some("a|B,\"c".into()));
        assert_eq!(read("a,\"\""), Some("a|".into()));
        assert_eq!(list("  "), Some(Vec::new()));
        for bad in ["a b", "a,", ",a", "a,,b", "\"a", "\"a\"b"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
