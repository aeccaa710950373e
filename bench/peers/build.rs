//! What the adapter of WiredTiger needs beside Rust: the system's library, and its own C, which reads that library's header. And what that of RocksDB
//! needs where it is linked with an old library of the system.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(rocksdb_before_8)");
    #[cfg(feature = "rocksdb")]
    rocksdb();
    #[cfg(feature = "wiredtiger")]
    wiredtiger();
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
