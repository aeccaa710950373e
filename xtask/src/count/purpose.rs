//! What code is for: the parts of an operation, by the files that they are in.
//!
//! By files and not by functions, since most of what a point read does is inlined into a few functions; by functions where the
//! C library does it.

use crate::callgrind::Place;

/// The parts, in the order of the table's columns.
pub const PARTS: [&str; 14] = [
    DESCENT, LATCHES, COPIES, LEAF, VERSIONS, LOG, BEGIN, COMMIT, VISIBILITY, CURSORS, ROOM,
    INTERFACE, ALLOCATION, OTHER,
];
const DESCENT: &str = "descent, search";
const LATCHES: &str = "latches, pages";
/// Read in words to be compared, copied, cleared.
const COPIES: &str = "bytes of pages";
const LEAF: &str = "leaf";
const VERSIONS: &str = "versions";
const LOG: &str = "log";
const BEGIN: &str = "begin";
const COMMIT: &str = "commit";
const VISIBILITY: &str = "visibility";
const CURSORS: &str = "cursors";
const ROOM: &str = "making room";
const INTERFACE: &str = "interface";
const ALLOCATION: &str = "allocation";
/// The workload itself, and what no list here names.
const OTHER: &str = "workload, other";

/// Functions of libraries, by what their names begin with.
const FUNCTIONS: [(&str, &str); 10] = [
    ("__memcmp", DESCENT),
    ("__mem", COPIES),
    ("malloc", ALLOCATION),
    ("calloc", ALLOCATION),
    ("realloc", ALLOCATION),
    ("free", ALLOCATION),
    ("cfree", ALLOCATION),
    ("mi_", ALLOCATION),
    ("_mi_", ALLOCATION),
    ("crc32c::", LOG),
];

/// Files of libraries, by what their names end with.
const LIBRARIES: [(&str, &str); 5] = [
    ("malloc/malloc.c", ALLOCATION),
    ("malloc/arena.c", ALLOCATION),
    ("library/std/src/alloc.rs", ALLOCATION),
    ("library/std/src/sys/alloc/unix.rs", ALLOCATION),
    ("library/alloc/src/alloc.rs", ALLOCATION),
];

/// Files and folders of the workspace; the first that fits counts.
const FILES: [(&str, &str); 57] = [
    ("crates/storage/btree/src/node/build", ROOM),
    ("crates/storage/btree/src/node/edit", LEAF),
    ("crates/storage/btree/src/node/", DESCENT),
    ("crates/storage/btree/src/descend", DESCENT),
    ("crates/storage/btree/src/near", DESCENT),
    ("crates/storage/btree/src/read", DESCENT),
    ("crates/storage/btree/src/prefetch", DESCENT),
    ("crates/storage/btree/src/context", DESCENT),
    ("crates/storage/btree/src/tree", DESCENT),
    ("crates/storage/btree/src/watch", DESCENT),
    ("crates/storage/btree/src/append", LEAF),
    ("crates/storage/btree/src/write", LEAF),
    ("crates/storage/btree/src/overflow", LEAF),
    // Before-images go by ranges.
    ("crates/storage/btree/src/range", VERSIONS),
    ("crates/storage/btree/src/record", LOG),
    ("crates/storage/btree/src/bulk", ROOM),
    ("crates/storage/btree/src/change", ROOM),
    ("crates/storage/btree/src/clean", ROOM),
    ("crates/storage/btree/src/merge", ROOM),
    ("crates/storage/btree/src/separators", ROOM),
    ("crates/storage/btree/src/split", ROOM),
    ("crates/storage/buffer/src/burst", COPIES),
    ("crates/storage/buffer/src/words", COPIES),
    ("crates/storage/buffer/src/racy", COPIES),
    ("crates/storage/buffer/src/private", ROOM),
    ("crates/storage/buffer/src/bitmap", ROOM),
    ("crates/storage/buffer/src/space", ROOM),
    ("crates/storage/buffer/", LATCHES),
    ("crates/foundation/sync/", LATCHES),
    ("crates/storage/wal/", LOG),
    ("crates/storage/io/", LOG),
    ("crates/foundation/base/src/checksum", LOG),
    ("crates/transaction/version/src/undo_record", LOG),
    ("crates/transaction/version/src/scan", CURSORS),
    ("crates/transaction/version/", VERSIONS),
    ("crates/transaction/gc/", VERSIONS),
    ("crates/transaction/txn/src/active", BEGIN),
    ("crates/transaction/txn/src/begin", BEGIN),
    ("crates/transaction/txn/src/last_slot", BEGIN),
    ("crates/transaction/txn/src/lease", BEGIN),
    ("crates/transaction/txn/src/slot", BEGIN),
    ("crates/transaction/txn/src/watermarks", BEGIN),
    ("crates/transaction/txn/src/clock", COMMIT),
    ("crates/transaction/txn/src/commit", COMMIT),
    ("crates/transaction/txn/src/quiet", COMMIT),
    ("crates/transaction/txn/src/record", COMMIT),
    ("crates/transaction/txn/src/rollback", COMMIT),
    ("crates/transaction/txn/src/waiters", COMMIT),
    ("crates/transaction/txn/src/domain", COMMIT),
    ("crates/transaction/txn/", VISIBILITY),
    ("crates/engine/src/cursor", CURSORS),
    ("crates/engine/src/ahead", DESCENT),
    ("crates/engine/", INTERFACE),
    ("crates/relation/", INTERFACE),
    ("crates/foundation/metrics/", INTERFACE),
    ("crates/foundation/base/src/random", OTHER),
    ("crates/foundation/base/", INTERFACE),
];

/// The part that is done there.
pub fn part_of(place: &Place) -> &'static str {
    let Place { function, file } = place;
    let begins = |list: &[(&str, &'static str)], text: &str| {
        let found = list.iter().find(|(begin, _)| text.starts_with(begin));
        found.map(|it| it.1)
    };
    let ends = || LIBRARIES.iter().find(|(end, _)| file.ends_with(end));
    begins(&FUNCTIONS, function)
        .or_else(|| begins(&FILES, file))
        .or_else(|| ends().map(|it| it.1))
        .unwrap_or(OTHER)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn part(function: &str, file: &str) -> &'static str {
        part_of(&Place {
            function: function.to_owned(),
            file: file.to_owned(),
        })
    }

    #[test]
    fn what_is_done_is_told_by_its_file_and_of_the_c_library_by_its_name() {
        let get = "vellum::transaction::Transaction::get";
        for (file, expected) in [
            ("crates/storage/btree/src/node/layout.rs", DESCENT),
            ("crates/storage/btree/src/node/edit.rs", LEAF),
            ("crates/storage/buffer/src/guard.rs", LATCHES),
            ("crates/storage/buffer/src/words.rs", COPIES),
            ("crates/transaction/version/src/read.rs", VERSIONS),
            ("crates/transaction/txn/src/begin.rs", BEGIN),
            ("crates/transaction/txn/src/slots.rs", BEGIN),
            ("crates/transaction/txn/src/commit_log.rs", COMMIT),
            ("crates/transaction/txn/src/visibility.rs", VISIBILITY),
            ("crates/engine/src/transaction.rs", INTERFACE),
            ("bench/workload/src/kv/client.rs", OTHER),
        ] {
            assert_eq!(part(get, file), expected, "{file}");
        }
        assert_eq!(part("__memcpy_avx_unaligned_erms", "./memmove.S"), COPIES);
        assert_eq!(part("__memcmp_avx2_movbe", "./memcmp.S"), DESCENT);
        assert_eq!(part("main", "???"), OTHER);
    }

    #[test]
    fn allocation_is_the_allocators_alone() {
        assert_eq!(part("free", "???"), ALLOCATION);
        assert_eq!(
            part("_int_malloc", "./malloc/./malloc/malloc.c"),
            ALLOCATION
        );
        let std = "/rustc/0/library/std/src/alloc.rs";
        assert_eq!(part("__rustc::__rdl_alloc", std), ALLOCATION);
        // These count references and push to vectors.
        for file in ["library/alloc/src/sync.rs", "library/alloc/src/vec/mod.rs"] {
            assert_eq!(part("alloc::sync::Arc<T>::drop", file), OTHER);
        }
    }

    /// So that a file that moves is looked for anew.
    #[test]
    fn every_file_that_is_named_is_there_and_its_part_is_a_column() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        for (name, part) in FILES {
            let (folder, begin) = name.rsplit_once('/').unwrap();
            let mut entries = std::fs::read_dir(root.join(folder)).unwrap();
            let found =
                entries.any(|it| it.unwrap().file_name().to_string_lossy().starts_with(begin));
            assert!(found, "{name}");
            assert!(PARTS.contains(&part), "{name}");
        }
        for (name, part) in FUNCTIONS.iter().chain(&LIBRARIES) {
            assert!(PARTS.contains(part), "{name}");
        }
    }
}
