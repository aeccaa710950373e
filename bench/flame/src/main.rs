//! Draws a flame graph: `vellum-flame FORM FROM FOLDED SVG TITLE UNIT`. FORM says what FROM holds: `perf` (what `perf script` printed) or
//! `folded` (a stack a line, outermost first, separated by semicolons, and a number). FOLDED gets the stacks in the latter
//! form, SVG the picture.
//!
//! A program of its own so that `xtask`, which is built before everything else, needs nothing of this.
#![forbid(unsafe_code)]

use inferno::collapse::Collapse;
use inferno::collapse::perf::{Folder, Options as FoldOptions};
use inferno::flamegraph::{Options, from_lines};
use std::error::Error;
use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let [form, from, folded, svg, title, unit] = arguments[..] else {
        eprintln!("vellum-flame perf|folded FROM FOLDED SVG TITLE UNIT");
        return ExitCode::from(2);
    };
    let paths = (Path::new(from), Path::new(folded), Path::new(svg));
    match draw(form, paths, title, unit) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("vellum-flame: {error}");
            ExitCode::FAILURE
        }
    }
}

fn draw(
    form: &str,
    (from, folded, svg): (&Path, &Path, &Path),
    title: &str,
    unit: &str,
) -> Result<(), Box<dyn Error>> {
    let stacks = match form {
        "perf" => fold(from)?,
        "folded" => std::fs::read_to_string(from)?,
        other => return Err(format!("no form {other}").into()),
    };
    if stacks.trim().is_empty() {
        return Err(format!("{} holds no stacks", from.display()).into());
    }
    std::fs::write(folded, &stacks)?;
    let mut options = Options::default();
    title.clone_into(&mut options.title);
    unit.clone_into(&mut options.count_name);
    let mut out = BufWriter::new(File::create(svg)?);
    from_lines(&mut options, stacks.lines(), &mut out)?;
    Ok(out.flush()?)
}

fn fold(from: &Path) -> Result<String, Box<dyn Error>> {
    let mut stacks = Vec::new();
    let script = BufReader::new(File::open(from)?);
    Folder::from(FoldOptions::default()).collapse(script, &mut stacks)?;
    Ok(String::from_utf8_lossy(&stacks).into_owned())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;

    const SCRIPT: &str = "\
vellum-bench 12 1.000:  1 cpu-clock:u:
\t    55 vellum_wal::slot::append (/bin/vellum-bench)
\t    44 vellum::Transaction::commit (/bin/vellum-bench)
\t    33 main (/bin/vellum-bench)

vellum-bench 12 1.001:  1 cpu-clock:u:
\t    44 vellum::Transaction::commit (/bin/vellum-bench)
\t    33 main (/bin/vellum-bench)

";

    fn drawn(form: &str, text: &str) -> (Result<(), String>, String, String) {
        let folder = std::env::temp_dir().join(format!(
            "vellum-flame-{}-{}",
            std::process::id(),
            text.len()
        ));
        std::fs::create_dir_all(&folder).unwrap();
        let [from, folded, svg] = ["from", "folded", "svg"].map(|name| folder.join(name));
        std::fs::write(&from, text).unwrap();
        let drawn = draw(form, (&from, &folded, &svg), "a title", "samples");
        let read = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
        let found = (
            drawn.map_err(|error| error.to_string()),
            read(&folded),
            read(&svg),
        );
        std::fs::remove_dir_all(&folder).unwrap();
        found
    }

    #[test]
    fn samples_are_folded_and_drawn() {
        let (drawn, folded, svg) = drawn("perf", SCRIPT);
        assert_eq!(drawn, Ok(()));
        let mut lines: Vec<&str> = folded.lines().collect();
        lines.sort_unstable();
        assert_eq!(
            lines,
            [
                "vellum-bench;main;vellum::Transaction::commit 1",
                "vellum-bench;main;vellum::Transaction::commit;vellum_wal::slot::append 1"
            ]
        );
        for part in ["a title", "vellum::Transaction::commit", "2 samples"] {
            assert!(svg.contains(part), "{part}");
        }
    }

    #[test]
    fn stacks_that_are_folded_are_drawn_as_they_are() {
        let (drawn, folded, svg) = drawn("folded", "main;a 30\nmain;b 70\n");
        assert_eq!((drawn, folded.as_str()), (Ok(()), "main;a 30\nmain;b 70\n"));
        assert!(svg.contains("70.00%"), "{svg}");
    }

    #[test]
    fn nothing_is_no_picture() {
        let (drawn, _, svg) = drawn("folded", "\n");
        assert!(drawn.unwrap_err().contains("no stacks"));
        assert_eq!(svg, "");
        assert!(
            super::draw(
                "other",
                (Path::new("/"), Path::new("/"), Path::new("/")),
                "",
                ""
            )
            .is_err()
        );
    }
}
