//! Who may depend on whom: the list of ARCHITECTURE.md as data, compared with cargo's graph.
//!
//! Dependencies of tests are free, except that nothing in `crates/` uses `bench`: a test may
//! compare with a model of the layer above, the product may not.

use super::Findings;
use crate::workspace::Package;

/// The sentence that [`ALLOWED`] encodes, for the message.
const SENTENCE: &str = "ARCHITECTURE.md, \"Allowed direct dependencies\"";

/// The foundation is open to everything above it.
const FOUNDATION: [&str; 3] = ["base", "sync", "metrics"];

/// "row → base; wal → io; buffer → io, wal; btree → buffer, wal; txn → wal; gc → txn; version → gc,
/// txn, btree, memindex, buffer, wal, io; table → version, gc, txn, btree, memindex, row; catalog →
/// table, txn, row; engine → all of these; query → row; sql → engine,
/// query, row; server → sql, engine; cli → server,
/// sql, engine." Every crate of `crates/` has its line; one without is a finding.
const ALLOWED: [(&str, &[&str]); 21] = [
    ("base", &[]),
    ("sync", &["base"]),
    ("metrics", &["base", "sync"]),
    ("io", &[]),
    ("wal", &["io"]),
    ("buffer", &["io", "wal"]),
    ("btree", &["buffer", "wal"]),
    ("memindex", &[]),
    ("txn", &["wal"]),
    ("gc", &["txn"]),
    (
        "version",
        &["gc", "txn", "btree", "memindex", "buffer", "wal", "io"],
    ),
    ("row", &[]),
    (
        "table",
        &["version", "gc", "txn", "btree", "memindex", "row"],
    ),
    ("catalog", &["table", "txn", "row"]),
    (
        "engine",
        &[
            "io", "wal", "buffer", "btree", "memindex", "txn", "gc", "version", "row", "table",
            "catalog",
        ],
    ),
    ("query", &["row"]),
    ("sql", &["engine", "query", "row"]),
    ("server", &["sql", "engine"]),
    ("cli", &["server", "sql", "engine"]),
    ("python", &["engine", "sql"]),
    ("c", &["engine", "sql"]),
];

/// Libraries that have a home, and where it is: a folder of the repository each.
const LIBRARIES: [(&str, &[&str]); 14] = [
    (
        "rustix",
        &[
            "crates/storage/io",
            "crates/storage/buffer",
            // Sockets' options, limits of descriptors.
            "crates/frontend/server",
            "bench",
            "testing",
        ],
    ),
    (
        "libc",
        &[
            "crates/storage/io",
            "crates/storage/buffer",
            "bench",
            "testing",
        ],
    ),
    (
        "tokio",
        &["crates/frontend/server", "crates/frontend/query"],
    ),
    ("axum", &["crates/frontend/server"]),
    ("rustls", &["crates/frontend/server"]),
    ("pgwire", &["crates/frontend/server"]),
    ("datafusion", &["crates/frontend/query"]),
    ("arrow", &["crates/frontend/query", "crates/frontend/sql"]),
    // An allocator is the choice of a program, never of a library.
    (
        "mimalloc",
        &["crates/frontend/cli", "crates/frontend/server", "bench"],
    ),
    ("clap", &["crates/frontend/cli", "bench", "testing"]),
    ("indicatif", &["crates/frontend/cli", "bench", "testing"]),
    // All randomness comes from `base`, so that a seed replays a run.
    ("rand", &[]),
    ("getrandom", &[]),
    ("fastrand", &[]),
];

/// Compares the members of the workspace with the lists.
pub fn check(packages: &[Package], findings: &mut Findings) {
    for package in packages {
        let manifest = format!("{}/Cargo.toml", package.folder);
        let product =
            package.folder.starts_with("crates/") || package.folder.starts_with("bindings/");
        let name = short(&package.folder);
        let allowed = ALLOWED
            .iter()
            .find(|(crate_name, _)| *crate_name == name)
            .map(|(_, list)| *list);
        if product && allowed.is_none() {
            findings.add(
                &manifest,
                1,
                "layers",
                format!("{name} has no line in {SENTENCE}"),
            );
        }
        for dependency in &package.dependencies {
            let homes = LIBRARIES
                .iter()
                .find(|(library, _)| *library == dependency.name);
            if let (Some((library, homes)), false) = (homes, dependency.dev)
                && !homes.iter().any(|home| lies_in(&package.folder, home))
            {
                let what = format!("{library} belongs to {homes:?} only");
                findings.add(&manifest, 1, "layers", what);
            }
            let Some(target) = &dependency.folder else {
                continue;
            };
            if product && lies_in(target, "bench") {
                findings.add(&manifest, 1, "layers", format!("{name} uses {target}"));
            }
            if !product || dependency.dev || lies_in(target, "bench") {
                continue;
            }
            if !target.starts_with("crates/") {
                findings.add(
                    &manifest,
                    1,
                    "layers",
                    format!("{name} uses {target} outside its tests"),
                );
                continue;
            }
            let below = short(target);
            let open = FOUNDATION.contains(&below) && !FOUNDATION.contains(&name);
            if !open && !allowed.unwrap_or(&[]).contains(&below) {
                findings.add(
                    &manifest,
                    1,
                    "layers",
                    format!("{name} may not use {below}: {SENTENCE}"),
                );
            }
        }
    }
}

fn short(folder: &str) -> &str {
    folder.rsplit('/').next().unwrap_or(folder)
}

fn lies_in(folder: &str, home: &str) -> bool {
    folder
        .strip_prefix(home)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Dependency;

    fn found(folder: &str, dependencies: &[(&str, Option<&str>, bool)]) -> usize {
        let dependencies = dependencies.iter().map(|(name, folder, dev)| Dependency {
            name: (*name).to_owned(),
            folder: folder.map(str::to_owned),
            dev: *dev,
        });
        let package = Package {
            name: String::new(),
            folder: folder.to_owned(),
            dependencies: dependencies.collect(),
        };
        let mut findings = Findings::default();
        check(&[package], &mut findings);
        findings.0.len()
    }

    #[test]
    fn a_lower_crate_that_uses_a_higher_one_is_found() {
        let btree = ("vellum-btree", Some("crates/storage/btree"), false);
        let base = ("vellum-base", Some("crates/foundation/base"), false);
        assert_eq!(found("crates/storage/wal", &[btree]), 1);
        assert_eq!(found("crates/transaction/version", &[btree, base]), 0);
        assert_eq!(
            found("crates/transaction/txn", &[btree]),
            1,
            "txn never sees a page"
        );
        assert_eq!(
            found(
                "crates/foundation/sync",
                &[("x", Some("crates/foundation/metrics"), false)]
            ),
            1
        );
    }

    #[test]
    fn the_product_uses_testing_in_tests_and_bench_never() {
        assert_eq!(
            found("crates/engine", &[("m", Some("testing/model"), false)]),
            1
        );
        assert_eq!(
            found("crates/engine", &[("m", Some("testing/model"), true)]),
            0
        );
        assert_eq!(
            found("crates/engine", &[("b", Some("bench/workload"), true)]),
            1
        );
        assert_eq!(
            found("bench/driver", &[("e", Some("crates/engine"), false)]),
            0
        );
    }

    #[test]
    fn a_crate_without_a_line_and_a_library_outside_its_home_are_found() {
        assert_eq!(found("crates/storage/cache", &[]), 1);
        assert_eq!(found("crates/storage/wal", &[("rustix", None, false)]), 1);
        assert_eq!(found("crates/storage/io", &[("rustix", None, false)]), 0);
        assert_eq!(found("crates/engine", &[("mimalloc", None, false)]), 1);
        assert_eq!(found("xtask", &[("rand", None, false)]), 1);
    }
}
