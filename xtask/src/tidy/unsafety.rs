//! Every `unsafe` block and implementation has its argument directly above it.
//!
//! "Directly above" is the run of comment lines that ends within the three lines before the
//! block, so that a long argument is no problem and a far one is.

use super::Findings;
use super::source::{Line, has_word};
use super::tree::Tree;

/// Lines between the argument's last line and the block: what rustfmt may put between.
const REACH: usize = 3;

/// Looks at every `unsafe` of every Rust file.
pub fn check(tree: &Tree, findings: &mut Findings) {
    for file in tree.rust() {
        for (number, line) in file.lines.iter().enumerate() {
            if opens(&line.code, file.lines.get(number + 1)) && !argued(&file.lines, number) {
                findings.add(
                    &file.path,
                    number + 1,
                    "unsafe",
                    "no SAFETY argument in the lines above",
                );
            }
        }
    }
}

/// True if the line opens an unsafe block or implementation. An `unsafe fn` documents what it asks
/// for under `# Safety`, which clippy checks.
fn opens(code: &str, next: Option<&Line>) -> bool {
    code.match_indices("unsafe").any(|(at, word)| {
        let rest = code[at + word.len()..].trim_start();
        let rest = if rest.is_empty() {
            next.map_or("", |line| line.code.trim_start())
        } else {
            rest
        };
        has_word(code, word)
            && (rest.starts_with('{') || has_word(rest.split('<').next().unwrap_or(""), "impl"))
    })
}

fn argued(lines: &[Line], at: usize) -> bool {
    if lines[at].comment.contains("SAFETY") {
        return true;
    }
    let mut above = at;
    for _ in 0..REACH {
        let Some(next) = above.checked_sub(1) else {
            return false;
        };
        above = next;
        if lines[above].comment.is_empty() {
            continue;
        }
        // The run of comment lines that ends here.
        let run = lines[..=above]
            .iter()
            .rev()
            .take_while(|line| !line.comment.is_empty());
        return run.into_iter().any(|line| line.comment.contains("SAFETY"));
    }
    false
}

#[cfg(test)]
mod tests {
    use super::super::findings;
    use super::*;

    /// Findings in a text, in which UNSAFE stands for the keyword: whoever searches this file for it finds code only.
    fn found(text: &str) -> usize {
        let text = text.replace("UNSAFE", "unsafe");
        findings(&[("a.rs", &text)], check).len()
    }

    #[test]
    fn a_block_without_an_argument_is_found() {
        assert_eq!(found("let x = UNSAFE { f() };"), 1);
        assert_eq!(found("UNSAFE impl Send for X {}"), 1);
        assert_eq!(found("UNSAFE\n{ f() }"), 1);
        assert_eq!(
            found("// SAFETY: x\na();\nb();\nc();\nUNSAFE { f() }"),
            1,
            "too far"
        );
        assert_eq!(found("// fast\nUNSAFE { f() }"), 1);
    }

    #[test]
    fn arguments_above_and_beside_are_accepted_and_unsafe_fn_is_clippys() {
        assert_eq!(found("// SAFETY: x\nlet x = UNSAFE { f() };"), 0);
        assert_eq!(
            found("// SAFETY: x\n// y\n// z\n// w\nlet x =\n    UNSAFE { f() };"),
            0
        );
        assert_eq!(found("x(UNSAFE { f() }) // SAFETY: x"), 0);
        assert_eq!(found("/// # Safety\n/// x\npub UNSAFE fn f() {}"), 0);
        assert_eq!(found("#![forbid(unsafe_code)]"), 0);
        assert_eq!(found("// an UNSAFE { } in words"), 0);
    }
}
