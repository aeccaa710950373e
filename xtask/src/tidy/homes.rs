//! Calls that have one home (invariants 1, 2, 5, 6 and 8 of ARCHITECTURE.md).
//!
//! A module that others with a home lie in may not be imported under another name, nor as a whole.
//!
//! Not checked: what a renamed import of the thing itself (`use std::fs as f`) calls later (the import is
//! found), macros that build a path, and a library that does the forbidden thing inside.

use super::tree::Tree;
use super::{Findings, regions};

/// What may be named in some folders only.
struct Home {
    what: &'static str,
    /// Runs of path segments; each fires wherever it stands inside a path that the code names.
    paths: &'static [&'static str],
    folders: &'static [&'static str],
    /// True where test code may do it too.
    free_in_tests: bool,
}

/// Where latches, rings, pages and latch-free structures are made (invariant 6).
const UNSAFE_HOMES: [&str; 6] = [
    "crates/foundation/sync",
    "crates/storage/io",
    "crates/storage/buffer",
    "crates/storage/memindex",
    "crates/storage/btree",
    "crates/transaction/version",
];

/// Where files of the operating system are opened and looked at: those of databases in io; beside them configuration, host rules,
/// certificates, the first password; what the shell reads and writes.
const FILE_HOMES: [&str; 3] = [
    "crates/storage/io",
    "crates/frontend/server/src/files.rs",
    "crates/frontend/cli/src/shell",
];

/// Methods of paths that look at the file system. `exists` of a directory of the io trait has an argument.
const LOOKS_AT_FILES: [&str; 9] = [
    ".exists()",
    ".try_exists()",
    ".is_file()",
    ".is_dir()",
    ".is_symlink()",
    ".metadata()",
    ".symlink_metadata()",
    ".read_dir()",
    ".canonicalize()",
];

/// The rules. They hold for everything below `crates/`.
const HOMES: [Home; 17] = [
    Home {
        what: "files of the operating system are opened in io only",
        paths: &[
            "std::fs",
            "File::open",
            "File::create",
            "OpenOptions::new",
            "Path::exists",
            "Path::try_exists",
            "Path::is_file",
            "Path::is_dir",
            "Path::metadata",
            "Path::read_dir",
            "Path::canonicalize",
            "rustix::fs",
            "os::unix::fs",
            "libc::open",
            "libc::openat",
            "libc::pread",
            "libc::pwrite",
            "libc::fsync",
            "libc::fdatasync",
        ],
        folders: &FILE_HOMES,
        free_in_tests: true,
    },
    Home {
        what: "what a run depends on is an argument: the environment is read for the seeds and the planted bugs of tests only",
        paths: &["std::env", "env::var", "env::args", "vellum_base::replay"],
        folders: &[
            "crates/foundation/base/src/planted.rs",
            "crates/foundation/base/src/replay.rs",
            // The seed of shuttle's schedules.
            "crates/foundation/sync/src/lib.rs",
            // Names that are no setting's: clap reads those that are.
            "crates/frontend/cli/src/serve.rs",
        ],
        free_in_tests: true,
    },
    Home {
        what: "only a program ends its process",
        paths: &["process::exit", "process::abort"],
        folders: &["crates/frontend/cli"],
        free_in_tests: true,
    },
    Home {
        what: "maps whose order differs from run to run are not used: vellum_base::maps, or BTreeMap",
        paths: &["collections::HashMap", "collections::HashSet"],
        folders: &["crates/foundation/base/src/maps.rs"],
        free_in_tests: true,
    },
    Home {
        what: "syntax trees are walked by parse::walk: each visitor is compiled with a function for every kind of node",
        paths: &[
            "VisitorMut",
            "Visitor",
            "visit_expressions",
            "visit_expressions_mut",
            "visit_relations",
            "visit_relations_mut",
            "visit_statements",
            "visit_statements_mut",
        ],
        folders: &["crates/frontend/sql/src/parse/walk.rs"],
        free_in_tests: false,
    },
    Home {
        what: "sockets are opened in server only",
        // Addresses open nothing.
        paths: &[
            "net::TcpListener",
            "net::TcpStream",
            "net::UdpSocket",
            "net::ToSocketAddrs",
            "os::unix::net",
            "tokio::net",
        ],
        folders: &["crates/frontend/server"],
        free_in_tests: false,
    },
    Home {
        what: "an engine in somebody's process starts no other programs",
        paths: &["process::Command"],
        folders: &[],
        free_in_tests: true,
    },
    Home {
        what: "standard input and output are the programs' own",
        paths: &["io::stdin", "io::stdout"],
        folders: &["crates/frontend/cli"],
        free_in_tests: true,
    },
    Home {
        what: "clocks are read in base::clock only",
        paths: &["Instant", "SystemTime", "UNIX_EPOCH"],
        folders: &["crates/foundation/base/src/clock.rs"],
        free_in_tests: true,
    },
    Home {
        what: "randomness comes from base::random only",
        paths: &["RandomState", "thread_rng", "getrandom"],
        folders: &["crates/foundation/base/src/random.rs"],
        free_in_tests: false,
    },
    Home {
        what: "threads are started in engine (and above) only",
        paths: &["thread::spawn", "thread::Builder", "thread::scope"],
        folders: &["crates/engine", "crates/frontend", "crates/foundation/sync"],
        free_in_tests: true,
    },
    Home {
        what: "atomics and locks come from vellum_sync",
        paths: &[
            "sync::atomic",
            "std::sync::Mutex",
            "std::sync::MutexGuard",
            "std::sync::RwLock",
            "std::sync::Condvar",
            "std::sync::Barrier",
            "std::sync::mpsc",
            "std::hint::spin_loop",
        ],
        // racy.rs lays the standard library's atomics over mapped memory, which no model checker's
        // can be; on a counter nothing may depend, so there is nothing to explore.
        folders: &[
            "crates/foundation/sync",
            "crates/foundation/metrics",
            "crates/frontend",
            "crates/storage/buffer/src/racy.rs",
            // Counts the threads that keep buffers, in a static, which no model checker's atomic can be; a wrong number costs memory.
            "crates/storage/buffer/src/private.rs",
        ],
        free_in_tests: true,
    },
    Home {
        what: "what threads do comes from vellum_sync; engine starts them",
        paths: &["std::thread"],
        folders: &[
            "crates/foundation/sync",
            // Counts the processors, for its shards.
            "crates/foundation/metrics",
            "crates/engine",
            "crates/frontend",
        ],
        free_in_tests: true,
    },
    Home {
        what: "unsafe is for latches, rings, pages and latch-free structures",
        paths: &["unsafe"],
        folders: &UNSAFE_HOMES,
        free_in_tests: false,
    },
    Home {
        what: "nothing below frontend is async",
        paths: &["async", "await"],
        folders: &["crates/frontend"],
        free_in_tests: false,
    },
    Home {
        what: "DataFusion and Arrow types stay in query, but for the batches that programs are handed",
        paths: &["datafusion", "arrow"],
        folders: &[
            "crates/frontend/query",
            "crates/frontend/sql/src/direct",
            "crates/frontend/sql/src/lib.rs",
            "crates/frontend/sql/tests/statements/direct.rs",
        ],
        free_in_tests: false,
    },
    Home {
        what: "syntax trees stay in sql",
        paths: &["sqlparser"],
        folders: &["crates/frontend/sql"],
        free_in_tests: false,
    },
];

/// Above what has a home: under another name, or without one, nobody would see what is called.
const ABOVE: [&str; 10] = [
    "std",
    "core",
    "std::collections",
    "std::process",
    "std::sync",
    "core::sync",
    "std::os",
    "std::os::unix",
    "tokio",
    "libc",
];

/// Looks at every path that code below `crates/` names.
pub fn check(tree: &Tree, findings: &mut Findings) {
    for file in tree.rust().filter(|file| file.path.starts_with("crates/")) {
        let homes: Vec<&Home> = HOMES
            .iter()
            .filter(|home| {
                !home
                    .folders
                    .iter()
                    .any(|folder| lies_in(&file.path, folder))
            })
            .collect();
        for (line, path) in regions::paths(&file.lines) {
            // Vellum's own shim has modules of the same names as the standard library, and an ordering
            // is the same word in every build.
            let shim =
                path.starts_with("vellum_sync::") && !path.starts_with("vellum_sync::thread::");
            if shim || names(&path, "atomic::Ordering") {
                continue;
            }
            // At home in most of what it renames.
            let shim = lies_in(&file.path, "crates/foundation/sync");
            let stem = path.strip_suffix("::as").or(path.strip_suffix("::*"));
            if stem.is_some_and(|stem| ABOVE.contains(&stem)) && !shim && !file.test[line] {
                let what = "what lies in it has a home: it is imported under its own name";
                findings.add(&file.path, line + 1, "home", format!("{path}: {what}"));
            }
            for home in &homes {
                let tested = home.free_in_tests && file.test[line];
                if !tested && home.paths.iter().any(|pattern| names(&path, pattern)) {
                    findings.add(
                        &file.path,
                        line + 1,
                        "home",
                        format!("{path}: {}", home.what),
                    );
                }
            }
        }
    }
    look(tree, findings);
    forbid(tree, findings);
}

/// Methods have no path that tells whose they are: these go by their names.
fn look(tree: &Tree, findings: &mut Findings) {
    let outside = |path: &str| !FILE_HOMES.iter().any(|home| lies_in(path, home));
    let of_crates = |path: &str| path.starts_with("crates/") && outside(path);
    for file in tree.rust().filter(|file| of_crates(&file.path)) {
        for (number, line) in file.lines.iter().enumerate() {
            let called = LOOKS_AT_FILES.iter().find(|name| line.code.contains(*name));
            if let Some(name) = called.filter(|_| !file.test[number]) {
                let what =
                    format!("{name}: files of the operating system are looked at in io only");
                findings.add(&file.path, number + 1, "home", what);
            }
        }
    }
}

/// A crate that is no home of `unsafe` says so to the compiler.
fn forbid(tree: &Tree, findings: &mut Findings) {
    let roots = tree.rust().filter(|file| {
        file.path.starts_with("crates/")
            && (file.path.ends_with("/src/lib.rs") || file.path.ends_with("/src/main.rs"))
    });
    for file in roots {
        let folder = file
            .path
            .rsplit_once("/src/")
            .map_or("", |(folder, _)| folder);
        let used = tree.rust().any(|other| {
            lies_in(&other.path, folder)
                && regions::paths(&other.lines)
                    .iter()
                    .any(|(_, path)| path == "unsafe")
        });
        let forbidden = file.lines.iter().any(|line| {
            line.code
                .replace(' ', "")
                .contains("#![forbid(unsafe_code)]")
        });
        let home = UNSAFE_HOMES.iter().any(|home| lies_in(folder, home));
        if !used && !forbidden && !home {
            findings.add(
                &file.path,
                1,
                "home",
                "a crate without unsafe code says #![forbid(unsafe_code)]",
            );
        }
    }
}

fn lies_in(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// True if the segments of `pattern` stand one after the other in `path`.
fn names(path: &str, pattern: &str) -> bool {
    path.match_indices(pattern).any(|(at, _)| {
        let starts = at == 0 || path[..at].ends_with("::");
        let rest = &path[at + pattern.len()..];
        starts && (rest.is_empty() || rest.starts_with("::"))
    })
}

#[cfg(test)]
mod tests {
    use super::super::findings;
    use super::*;

    const FORBID: &str = "//! x\n#![forbid(unsafe_code)]\n";

    /// Whether code is caught, in which UNSAFE stands for the keyword: whoever searches this file for it finds code only.
    fn caught(path: &str, code: &str) -> bool {
        let code = code.replace("UNSAFE", "unsafe");
        !findings(&[(path, &code)], check).is_empty()
    }

    #[test]
    fn each_call_outside_its_home_is_caught_and_at_home_it_is_not() {
        let samples = [
            ("use std::{fs, io};", "crates/storage/io/src/a.rs"),
            ("let f = File::open(p);", "crates/storage/io/src/a.rs"),
            (
                "std::net::TcpListener::bind(a)",
                "crates/frontend/server/src/a.rs",
            ),
            ("let i = std::io::stdin();", "crates/frontend/cli/src/a.rs"),
            (
                "use std::io::{self, stdout};",
                "crates/frontend/cli/src/a.rs",
            ),
            (
                "let t = std::time::Instant::now();",
                "crates/foundation/base/src/clock.rs",
            ),
            (
                "use std::time::{Duration, SystemTime};",
                "crates/foundation/base/src/clock.rs",
            ),
            ("RandomState::new()", "crates/foundation/base/src/random.rs"),
            ("vellum_sync::thread::spawn(f)", "crates/engine/src/a.rs"),
            (
                "use std::sync::atomic::AtomicU64;",
                "crates/foundation/sync/src/a.rs",
            ),
            (
                "use core::sync::atomic::AtomicU64;",
                "crates/foundation/sync/src/a.rs",
            ),
            (
                "use std::sync::{Arc, Mutex};",
                "crates/foundation/sync/src/a.rs",
            ),
            ("UNSAFE { f() }", "crates/storage/buffer/src/a.rs"),
            ("async fn f() {}", "crates/frontend/server/src/a.rs"),
            ("use arrow::array;", "crates/frontend/query/src/a.rs"),
        ];
        for (code, home) in samples {
            assert!(caught("crates/transaction/gc/src/a.rs", code), "{code}");
            assert!(!caught(home, code), "{code} at {home}");
        }
    }

    #[test]
    fn addresses_are_everywhere_and_sockets_at_home() {
        let outside = "crates/transaction/gc/src/a.rs";
        assert!(!caught(outside, "use std::net::{IpAddr, SocketAddr};"));
        for code in ["use std::net::{IpAddr, TcpStream};", "use tokio::net;"] {
            assert!(caught(outside, code), "{code}");
        }
    }

    #[test]
    fn other_programs_are_started_by_tests_only() {
        for code in [
            "std::process::Command::new(p)",
            "use std::process::{Command, ExitCode};",
        ] {
            assert!(caught("crates/transaction/gc/src/a.rs", code), "{code}");
            assert!(caught("crates/frontend/cli/src/a.rs", code), "{code}");
        }
        let free = "#[cfg(test)]\nmod tests { fn f() { std::process::Command::new(p); } }";
        assert!(!caught("crates/frontend/cli/src/a.rs", free));
    }

    #[test]
    fn files_are_looked_at_and_environments_read_at_home_only() {
        let outside = "crates/transaction/gc/src/a.rs";
        for code in [
            "if path.exists() {",
            "let n = path\n    .metadata()?;",
            "for entry in path.read_dir()? {",
            "Path::exists(p)",
            "paths.filter(|p| p.is_dir())",
        ] {
            assert!(caught(outside, code), "{code}");
            assert!(!caught("crates/storage/io/src/a.rs", code), "{code}");
            assert!(
                !caught("crates/frontend/server/src/files.rs", code),
                "{code}"
            );
            let free = format!("#[cfg(test)]\nmod tests {{ fn f() {{ {code} }}\n }}");
            assert!(!caught(outside, &free), "{code}");
        }
        assert!(!caught(outside, "directory.exists(CONTROL_FILE)?"));
        for code in [
            "std::env::var(NAME)",
            "use std::env;",
            "use std::env::args;",
            "vellum_base::replay::seed()",
        ] {
            assert!(caught(outside, code), "{code}");
            assert!(caught("crates/frontend/cli/src/a.rs", code), "{code}");
            assert!(
                !caught("crates/foundation/base/src/planted.rs", code),
                "{code}"
            );
        }
        assert!(!caught(outside, "env!(\"CARGO_PKG_VERSION\")"));
    }

    #[test]
    fn visitors_of_syntax_trees_are_at_home_only() {
        for code in [
            "let _ = ast::visit_expressions(node, |e| f(e));",
            "impl ast::VisitorMut for Names { fn f() {} }",
            "use sqlparser::ast::{self, visit_relations_mut};",
        ] {
            assert!(
                caught("crates/frontend/sql/src/ddl/view.rs", code),
                "{code}"
            );
            assert!(
                !caught("crates/frontend/sql/src/parse/walk.rs", code),
                "{code}"
            );
        }
    }

    #[test]
    fn processes_are_ended_by_programs_only() {
        for code in ["std::process::exit(1)", "use std::process::abort;"] {
            assert!(caught("crates/engine/src/a.rs", code), "{code}");
            assert!(!caught("crates/frontend/cli/src/a.rs", code), "{code}");
        }
        assert!(!caught("crates/engine/src/a.rs", "std::process::id()"));
    }

    #[test]
    fn maps_with_an_order_of_their_own_are_caught() {
        let outside = "crates/engine/src/a.rs";
        for code in [
            "use std::collections::HashMap;",
            "use std::collections::{BTreeMap, HashSet};",
            "std::collections::HashMap::<u8, u8>::new()",
        ] {
            assert!(caught(outside, code), "{code}");
            assert!(
                !caught("crates/foundation/base/src/maps.rs", code),
                "{code}"
            );
            let free = format!("#[cfg(test)]\nmod tests {{ {code} }}");
            assert!(!caught(outside, &free), "{code}");
        }
        for code in [
            "use vellum_base::maps::HashMap;",
            "use std::collections::hash_map::Entry;",
            "use std::collections::BTreeMap;",
        ] {
            assert!(!caught(outside, code), "{code}");
        }
    }

    #[test]
    fn another_name_for_what_homes_lie_in_is_caught() {
        for code in [
            "use std as s;",
            "use std::{self as s, io};",
            "use std::sync as s;",
            "use std::sync::*;",
        ] {
            assert!(caught("crates/transaction/gc/src/a.rs", code), "{code}");
        }
        for code in [
            "use std::io as i;",
            "use std::fmt::*;",
            "let n = libc_ as u64;",
        ] {
            assert!(!caught("crates/transaction/gc/src/a.rs", code), "{code}");
        }
    }

    #[test]
    fn words_in_comments_strings_and_the_shim_are_no_calls() {
        for code in [
            "// std::fs::read",
            "f(\"std::fs\")",
            "use vellum_sync::atomic::AtomicU64;",
            "use std::sync::atomic::Ordering::Relaxed;",
            "use std::sync::Arc;",
            "use std::time::Duration;",
            "let instant = 1;",
        ] {
            assert!(!caught("crates/transaction/gc/src/a.rs", code), "{code}");
        }
        assert!(
            !caught("bench/driver/src/a.rs", "std::fs::read(p)"),
            "the rules are for crates/"
        );
    }

    #[test]
    fn tests_may_use_files_threads_and_clocks_but_not_unsafe() {
        let free =
            "#[cfg(test)]\nmod tests { fn f() { std::fs::read(p); std::thread::spawn(g); } }";
        assert!(!caught("crates/transaction/gc/src/a.rs", free));
        let bound = "#[cfg(test)]\nmod tests { fn f() { UNSAFE { g() } } }";
        assert!(caught("crates/transaction/gc/src/a.rs", bound));
    }

    #[test]
    fn a_crate_without_unsafe_that_does_not_forbid_it_is_caught() {
        let lib = "crates/transaction/gc/src/lib.rs";
        assert_eq!(findings(&[(lib, "//! x\n")], check), [format!("{lib}:1")]);
        assert!(findings(&[(lib, FORBID)], check).is_empty());
        let buffer = "crates/storage/buffer/src/lib.rs";
        assert!(!caught(buffer, "//! x\nfn f() { UNSAFE { g() } }"));
    }
}
