//! Versions of the engines whose crates do not tell theirs, from the file of locked versions. What the adapter of WiredTiger needs beside Rust: the system's library, and its own C, which reads that library's header. And what that of RocksDB
//! needs where it is linked with an old library of the system.

use std::path::Path;

/// Crates that are engines, and have no function that tells their version.
const TELL_NOTHING: [&str; 3] = ["canopydb", "fjall", "redb"];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    versions();
    println!("cargo::rustc-check-cfg=cfg(rocksdb_before_8)");
    #[cfg(feature = "rocksdb")]
    rocksdb();
    #[cfg(feature = "wiredtiger")]
    wiredtiger();
}

/// Hands the versions that are locked to the adapters, as `VELLUM_VERSION_REDB` and so on.
fn versions() {
    let directory = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default();
    let mut directories = Path::new(&directory).ancestors();
    // That of the workspace, as cargo finds it: the nearest above.
    let lock = directories.find_map(|directory| {
        let lock = directory.join("Cargo.lock");
        lock.is_file().then_some(lock)
    });
    let text = lock.as_ref().and_then(|lock| {
        println!("cargo::rerun-if-changed={}", lock.display());
        std::fs::read_to_string(lock).ok()
    });
    let text = text.unwrap_or_default();
    for name in TELL_NOTHING {
        let version = locked(&text, name).unwrap_or("unknown");
        println!(
            "cargo::rustc-env=VELLUM_VERSION_{}={version}",
            name.to_uppercase()
        );
    }
}

/// The version of a package; none where several are locked, as one could not tell which is meant.
fn locked<'l>(lock: &'l str, name: &str) -> Option<&'l str> {
    let field = |line: &'l str, field: &str| {
        let value = line.strip_prefix(field)?.strip_prefix(" = \"")?;
        value.strip_suffix('"')
    };
    let mut versions = lock.split("[[package]]").filter_map(|package| {
        let mut lines = package.lines();
        lines.find(|line| field(line, "name") == Some(name))?;
        lines.find_map(|line| field(line, "version"))
    });
    let version = versions.next()?;
    versions.next().is_none().then_some(version)
}

/// The crate's interface is that of the RocksDB that it brings along. With `ROCKSDB_LIB_DIR` it is linked with another one: one before version 8 lacks
/// a cache, and a function that is named and never called here.
#[cfg(feature = "rocksdb")]
fn rocksdb() {
    const LACKING: &str = "src/rocksdb_before_8.c";
    const LIBRARY: &str = "ROCKSDB_LIB_DIR";
    println!("cargo::rerun-if-env-changed={LIBRARY}");
    println!("cargo::rerun-if-changed={LACKING}");
    let Some(folder) = std::env::var_os(LIBRARY) else {
        return;
    };
    let mut config = pkg_config::Config::new();
    let found = config.cargo_metadata(false).probe("rocksdb");
    let version = match found {
        Ok(library) => library.version,
        Err(error) => {
            println!(
                "cargo::error=the feature rocksdb with {LIBRARY}={}: pkg-config does not know its version ({})",
                folder.display(),
                error.to_string().replace('\n', " ")
            );
            return;
        }
    };
    let major = version.split('.').next().and_then(|it| it.parse().ok());
    if major.unwrap_or(0u32) >= 8 {
        return;
    }
    println!("cargo::rustc-cfg=rocksdb_before_8");
    let mut lacking = cc::Build::new();
    if let Err(error) = lacking
        .file(LACKING)
        .warnings(true)
        .try_compile("vellum_rocksdb")
    {
        println!("cargo::error=the feature rocksdb: {LACKING} does not compile: {error}");
    }
}

#[cfg(feature = "wiredtiger")]
fn wiredtiger() {
    const CALLS: &str = "src/wiredtiger/calls.c";
    println!("cargo::rerun-if-changed={CALLS}");
    // Before the library in the linker's order: who needs comes before who gives.
    let calls = |library: &pkg_config::Library| {
        cc::Build::new()
            .includes(&library.include_paths)
            .file(CALLS)
            .warnings(true)
            .try_compile("vellum_wiredtiger")
    };
    let found = pkg_config::Config::new()
        .cargo_metadata(false)
        .probe("wiredtiger");
    match found {
        Ok(library) => {
            if let Err(error) = calls(&library) {
                println!("cargo::error=the feature wiredtiger: {CALLS} does not compile: {error}");
            }
            for path in &library.link_paths {
                println!("cargo::rustc-link-search=native={}", path.display());
            }
            println!("cargo::rustc-link-lib=dylib=wiredtiger");
        }
        Err(error) => println!(
            "cargo::error=the feature wiredtiger needs WiredTiger's library and header, a C compiler and pkg-config: \
             install libwiredtiger-dev (Debian 12, Ubuntu 22.04), or build WiredTiger and set PKG_CONFIG_PATH to where its \
             wiredtiger.pc is ({})",
            error.to_string().replace('\n', " ")
        ),
    }
}
