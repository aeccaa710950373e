//! Manifests of members: versions stand in the one table of the workspace, lints are the
//! workspace's.

use super::Findings;
use super::tree::Tree;

/// Looks at every `Cargo.toml` below the top one.
pub fn check(tree: &Tree, findings: &mut Findings) {
    for file in tree
        .files
        .iter()
        .filter(|file| file.path.ends_with("/Cargo.toml"))
    {
        let mut section = "";
        let mut lints = false;
        for (number, line) in (1..).zip(file.text.lines()) {
            let line = line.split('#').next().unwrap_or("").trim();
            if line.starts_with('[') {
                section = line;
                continue;
            }
            lints |= section == "[lints]" && line.replace(' ', "") == "workspace=true";
            let dependency = section.ends_with("dependencies]") && !line.is_empty();
            if dependency && !line.replace(' ', "").contains("workspace=true") {
                let what = "a dependency takes its version from [workspace.dependencies]";
                findings.add(&file.path, number, "manifest", what);
            }
        }
        if !lints {
            findings.add(
                &file.path,
                1,
                "manifest",
                "[lints] workspace = true is missing",
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::findings;
    use super::*;

    #[test]
    fn a_version_of_its_own_and_missing_lints_are_found() {
        let good = "[package]\nname = \"x\"\n[lints]\nworkspace = true\n[dependencies]\na.workspace = true # why\n\
                    b = { workspace = true, optional = true }\n";
        let bad = "[package]\n[lints]\nworkspace = true\n[target.'cfg(loom)'.dependencies]\nloom = \"0.7\"\n";
        let files = [
            ("a/Cargo.toml", good),
            ("b/Cargo.toml", bad),
            ("c/Cargo.toml", "[package]\n"),
        ];
        assert_eq!(
            findings(&files, check),
            ["b/Cargo.toml:5", "c/Cargo.toml:1"]
        );
    }
}
