//! What the adapter of WiredTiger needs beside Rust: the system's library, and its own C, which reads that library's header.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "wiredtiger")]
    wiredtiger();
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
