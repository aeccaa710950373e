//! What cargo knows of the workspace: its packages, their folders, what they depend on.

use serde_json::Value;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The workspace.
#[derive(Debug)]
pub struct Workspace {
    /// Folder of the top `Cargo.toml`.
    pub root: PathBuf,
    /// The members.
    pub packages: Vec<Package>,
}

/// One member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    /// Name for `cargo -p`.
    pub name: String,
    /// Folder from the root, with slashes; empty for a package at the root.
    pub folder: String,
    /// What its manifest asks for, in no order.
    pub dependencies: Vec<Dependency>,
}

/// One line of a manifest's dependencies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dependency {
    /// Name of the package that is asked for.
    pub name: String,
    /// Its folder from the root, for a member of the workspace.
    pub folder: Option<String>,
    /// True for a dependency of tests, examples and benches only.
    pub dev: bool,
}

impl Workspace {
    /// Asks `cargo metadata` for the workspace around the current folder. Needs no network.
    ///
    /// # Errors
    /// If cargo cannot be run, refuses a manifest, or answers in another shape than expected.
    pub fn load() -> io::Result<Self> {
        let output = cargo()
            .args(["metadata", "--format-version", "1", "--no-deps"])
            .stderr(std::process::Stdio::inherit())
            .output()?;
        if !output.status.success() {
            return Err(io::Error::other("cargo metadata failed"));
        }
        let metadata: Value = serde_json::from_slice(&output.stdout)?;
        Self::parse(&metadata).ok_or_else(|| io::Error::other("cargo metadata has another shape"))
    }

    /// Where cargo builds.
    pub fn target(&self) -> PathBuf {
        let given = std::env::var_os("CARGO_TARGET_DIR");
        self.root.join(given.unwrap_or_else(|| "target".into()))
    }

    fn parse(metadata: &Value) -> Option<Self> {
        let root = PathBuf::from(metadata["workspace_root"].as_str()?);
        let mut packages = Vec::new();
        for package in metadata["packages"].as_array()? {
            let manifest = Path::new(package["manifest_path"].as_str()?);
            let mut dependencies = Vec::new();
            for dependency in package["dependencies"].as_array()? {
                dependencies.push(Dependency {
                    name: dependency["name"].as_str()?.to_owned(),
                    folder: dependency["path"]
                        .as_str()
                        .and_then(|path| below(&root, Path::new(path))),
                    dev: dependency["kind"].as_str() == Some("dev"),
                });
            }
            packages.push(Package {
                name: package["name"].as_str()?.to_owned(),
                folder: below(&root, manifest.parent()?)?,
                dependencies,
            });
        }
        packages.sort_by(|a, b| a.folder.cmp(&b.folder));
        Some(Self { root, packages })
    }
}

/// The cargo that runs this program, so that a chosen toolchain stays chosen. What that said of this package is not handed on: build scripts that look
/// at it would be run, and what needs them built, anew.
pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for (name, _) in std::env::vars_os() {
        let of_package =
            |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
        if name.to_str().is_some_and(of_package) {
            command.env_remove(name);
        }
    }
    command
}

/// Builds a member as it is measured.
///
/// # Errors
/// If cargo cannot be run.
pub fn build_release(workspace: &Workspace, package: &str) -> io::Result<bool> {
    let status = cargo()
        .current_dir(&workspace.root)
        .args(["build", "--release", "-p", package])
        .status()?;
    Ok(status.success())
}

fn below(root: &Path, path: &Path) -> Option<String> {
    Some(path.strip_prefix(root).ok()?.to_str()?.replace('\\', "/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_and_kinds_of_dependencies_are_read_from_metadata() {
        let metadata = serde_json::json!({
            "workspace_root": "/r",
            "packages": [{
                "name": "vellum-wal",
                "manifest_path": "/r/crates/storage/wal/Cargo.toml",
                "dependencies": [
                    {"name": "vellum-io", "kind": null, "path": "/r/crates/storage/io"},
                    {"name": "loom", "kind": "dev"},
                ],
            }],
        });
        let workspace = Workspace::parse(&metadata).unwrap();
        let wal = &workspace.packages[0];
        assert_eq!(wal.folder, "crates/storage/wal");
        assert_eq!(
            wal.dependencies[0].folder.as_deref(),
            Some("crates/storage/io")
        );
        assert!(!wal.dependencies[0].dev && wal.dependencies[1].dev);
        assert!(Workspace::parse(&serde_json::json!({"packages": 1})).is_none());
    }
}
