//! Which lines of a Rust file are test code, and which paths (`std::fs::read`) it names.

use super::source::{Line, is_word};

/// What the attributes of a file say about tests.
#[derive(Debug, Default)]
pub struct Regions {
    /// For each line: true where it is compiled for tests only.
    pub test: Vec<bool>,
    /// Names of the modules that are declared for tests only and live in files of their own.
    pub test_modules: Vec<String>,
}

/// The code of a file in one run, each character with the number of its line (from zero).
pub fn stream(lines: &[Line]) -> Vec<(char, usize)> {
    let mut out = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        out.extend(line.code.chars().map(|c| (c, number)));
        out.push(('\n', number));
    }
    out
}

/// Finds the items under `#[test]` and `#[cfg(…)]` that no build without `test`, `loom` or `shuttle` has.
pub fn find(lines: &[Line]) -> Regions {
    let code = stream(lines);
    let mut regions = Regions {
        test: vec![false; lines.len()],
        test_modules: Vec::new(),
    };
    let mut at = 0;
    while at < code.len() {
        let Some(attribute) = attribute(&code, at) else {
            at += 1;
            continue;
        };
        let start = at;
        at = attribute.end;
        if !is_test(&attribute.text) {
            continue;
        }
        if attribute.inner {
            regions.test.fill(true);
            return regions;
        }
        let end = item_end(&code, at);
        let item = &code[behind_attributes(&code, at).min(end)..end];
        let item: String = item.iter().map(|(c, _)| *c).collect();
        let mut words = item.split_whitespace().skip_while(|w| w.starts_with("pub"));
        if words.next() == Some("mod")
            && let Some(name) = words.next().and_then(|w| w.strip_suffix(';'))
        {
            regions.test_modules.push(name.to_owned());
        }
        let last = code[end.max(start + 1) - 1].1;
        regions.test[code[start].1..=last].fill(true);
        at = end.max(at);
    }
    regions
}

struct Attribute {
    text: String,
    inner: bool,
    end: usize,
}

fn attribute(code: &[(char, usize)], at: usize) -> Option<Attribute> {
    if code[at].0 != '#' {
        return None;
    }
    let inner = code.get(at + 1)?.0 == '!';
    let open = at + 1 + usize::from(inner);
    if code.get(open)?.0 != '[' {
        return None;
    }
    let mut depth = 0_usize;
    for (offset, (c, _)) in code[open..].iter().enumerate() {
        match c {
            '[' => depth += 1,
            ']' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            let end = open + offset + 1;
            let text = code[open + 1..end - 1].iter().map(|(c, _)| *c);
            return Some(Attribute {
                text: text.filter(|c| !c.is_whitespace()).collect(),
                inner,
                end,
            });
        }
    }
    None
}

fn is_test(attribute: &str) -> bool {
    let condition = attribute
        .strip_prefix("cfg(")
        .and_then(|rest| rest.strip_suffix(')'));
    attribute == "test" || condition.is_some_and(asks_for_test)
}

/// True if what stands under this condition is never built into the product.
fn asks_for_test(condition: &str) -> bool {
    let listed = |name: &str| {
        let rest = condition.strip_prefix(name)?.strip_prefix('(')?;
        rest.strip_suffix(')').map(conditions)
    };
    if let Some(all) = listed("all") {
        all.into_iter().any(asks_for_test)
    } else if let Some(any) = listed("any") {
        !any.is_empty() && any.into_iter().all(asks_for_test)
    } else {
        ["test", "loom", "shuttle"].contains(&condition)
    }
}

/// The entries of a list of conditions.
fn conditions(list: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    let entries = list.split(|c| {
        depth = match c {
            '(' => depth + 1,
            ')' => depth.saturating_sub(1),
            _ => depth,
        };
        c == ',' && depth == 0
    });
    entries.filter(|entry| !entry.is_empty()).collect()
}

/// Where what these attributes stand above begins.
fn behind_attributes(code: &[(char, usize)], mut from: usize) -> usize {
    loop {
        while code.get(from).is_some_and(|(c, _)| c.is_whitespace()) {
            from += 1;
        }
        match code.get(from).and_then(|_| attribute(code, from)) {
            Some(attribute) => from = attribute.end,
            None => return from,
        }
    }
}

/// One past the end of the item, field or statement that begins at or after `from`.
fn item_end(code: &[(char, usize)], from: usize) -> usize {
    let from = behind_attributes(code, from);
    let first: String = code[from..]
        .iter()
        .map(|(c, _)| *c)
        .take_while(|c| is_word(*c))
        .collect();
    let keyword = [
        "pub",
        "fn",
        "mod",
        "use",
        "impl",
        "struct",
        "enum",
        "trait",
        "const",
        "static",
        "type",
        "unsafe",
        "async",
        "extern",
        "let",
        "macro_rules",
    ]
    .contains(&first.as_str());
    let mut depth = 0_usize;
    for (offset, (c, _)) in code[from..].iter().enumerate() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' if depth == 0 => return from + offset,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        let here = from + offset + 1;
        // A `use` ends at its semicolon, not at the brace that closes its group.
        let closed = *c == '}' && first != "use" && first != "let";
        if depth == 0 && (closed || *c == ';' || (*c == ',' && !keyword)) {
            return here;
        }
    }
    code.len()
}

/// Every path that the code names, with its line; groups (`std::{fs, io}`) are spelled out. A
/// single identifier, a keyword too, is a path of one segment. What is imported under another name, or all of a module,
/// ends with `::as` or `::*`.
pub fn paths(lines: &[Line]) -> Vec<(usize, String)> {
    let code = stream(lines);
    let mut out = Vec::new();
    let mut at = 0;
    while at < code.len() {
        let starts_word = is_word(code[at].0) && !code[at].0.is_numeric();
        if starts_word && (at == 0 || !is_word(code[at - 1].0)) {
            at = path(&code, at, "", &mut out);
        } else {
            at += 1;
        }
    }
    out
}

/// Reads one path (or one entry of a group) at `at`; returns where it ends.
fn path(
    code: &[(char, usize)],
    mut at: usize,
    prefix: &str,
    out: &mut Vec<(usize, String)>,
) -> usize {
    let mut text = prefix.to_owned();
    let line = code[at].1;
    loop {
        while code.get(at).is_some_and(|(c, _)| is_word(*c)) {
            text.push(code[at].0);
            at += 1;
        }
        let mut ahead = skip_space(code, at);
        if code.get(ahead).is_none_or(|c| c.0 != ':')
            || code.get(ahead + 1).is_none_or(|c| c.0 != ':')
        {
            break;
        }
        ahead = skip_space(code, ahead + 2);
        match code.get(ahead).map(|c| c.0) {
            Some('{') => {
                text.push_str("::");
                return group(code, ahead + 1, &text, out);
            }
            Some(c) if is_word(c) => {
                text.push_str("::");
                at = ahead;
            }
            Some('*') => {
                text.push_str("::*");
                break;
            }
            _ => break,
        }
    }
    let ahead = skip_space(code, at);
    let word = code[ahead..].iter().map(|(c, _)| *c);
    if ahead > at && word.take_while(|c| is_word(*c)).eq("as".chars()) {
        text.truncate(text.strip_suffix("::self").map_or(text.len(), str::len));
        text.push_str("::as");
    }
    out.push((line, text));
    at
}

fn group(
    code: &[(char, usize)],
    mut at: usize,
    prefix: &str,
    out: &mut Vec<(usize, String)>,
) -> usize {
    while let Some((c, _)) = code.get(at) {
        match c {
            '}' => return at + 1,
            c if is_word(*c) => {
                at = path(code, at, prefix, out);
                // What follows an entry (`as name`) is no path under the prefix.
                while code.get(at).is_some_and(|c| c.0 != ',' && c.0 != '}') {
                    at += 1;
                }
            }
            _ => at += 1,
        }
    }
    at
}

fn skip_space(code: &[(char, usize)], mut at: usize) -> usize {
    while code.get(at).is_some_and(|(c, _)| c.is_whitespace()) {
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::super::source::split;
    use super::*;

    fn test_lines(text: &str) -> Vec<usize> {
        let regions = find(&split(text));
        (1..)
            .zip(regions.test)
            .filter_map(|(number, test)| test.then_some(number))
            .collect()
    }

    #[test]
    fn test_items_end_where_their_braces_end() {
        assert_eq!(
            test_lines("a();\n#[cfg(test)]\nmod tests {\n  fn f() {}\n}\nb();"),
            [2, 3, 4, 5]
        );
        assert_eq!(
            test_lines("#[test]\nfn f(x: [u8; 3]) {\n}\nfn g() {}"),
            [1, 2, 3]
        );
        assert_eq!(
            test_lines("#[cfg(all(test, not(loom)))]\n#[allow(x)]\nuse a::{b};\nx"),
            [1, 2, 3]
        );
        assert_eq!(
            test_lines("struct S {\n #[cfg(test)]\n a: u8,\n b: u8 }"),
            [2, 3]
        );
        assert_eq!(test_lines("#![cfg(loom)]\na();\nb();"), [1, 2, 3]);
    }

    #[test]
    fn code_that_tests_switch_off_is_product_code() {
        assert_eq!(test_lines("#[cfg(not(test))]\nfn f() {}"), [] as [usize; 0]);
        assert_eq!(
            test_lines("#[cfg(not(any(loom, shuttle)))]\nfn f() {}"),
            [] as [usize; 0]
        );
        assert_eq!(test_lines("#[inline]\nfn f() {}"), [] as [usize; 0]);
        for built in [
            "any(test, unix)",
            "all(unix, any(test, all(unix)))",
            "any()",
        ] {
            let text = format!("#[cfg({built})]\nfn f() {{}}");
            assert_eq!(test_lines(&text), [] as [usize; 0], "{built}");
        }
        for never in ["any(test, loom)", "all(unix, any(test, all(loom, unix)))"] {
            let text = format!("#[cfg({never})]\nfn f() {{}}");
            assert_eq!(test_lines(&text), [1, 2], "{never}");
        }
    }

    #[test]
    fn modules_of_tests_in_files_of_their_own_are_named() {
        let regions = find(&split(
            "#[cfg(test)]\npub(crate) mod tests;\n#[cfg(loom)] mod model;\n\
             #[cfg(test)]\n#[cfg_attr(\n    any(loom, shuttle),\n    allow(dead_code)\n)]\nmod testing;\nmod real;",
        ));
        assert_eq!(regions.test_modules, ["tests", "model", "testing"]);
    }

    #[test]
    fn groups_are_spelled_out_and_renamed_entries_keep_their_path() {
        let text = "use std::{fs::{self, File as F}, io};\nlet x = std::time::Instant::now();\n std::mem::size_of::<u8>()";
        let found: Vec<String> = paths(&split(text))
            .into_iter()
            .map(|(_, path)| path)
            .collect();
        for path in [
            "std::fs::self",
            "std::fs::File::as",
            "std::io",
            "std::time::Instant::now",
            "std::mem::size_of",
        ] {
            assert!(found.iter().any(|p| p == path), "{path} not in {found:?}");
        }
        assert!(!found.iter().any(|p| p.contains("F") && !p.contains("File")));
        let found = paths(&split("use std::{self as s, sync::*};"));
        let found: Vec<&str> = found.iter().map(|(_, path)| path.as_str()).collect();
        assert!(
            found.contains(&"std::as") && found.contains(&"std::sync::*"),
            "{found:?}"
        );
    }
}
