//! Published crates: README, licence texts, keywords and categories for their page on a registry.

use std::fs;

use toml::{Table, Value};

use super::{File, Problem, Tree};
use crate::published::HOOKS;

/// The licence texts, which every package contains.
const LICENSES: &[&str] = &["LICENSE-APACHE", "LICENSE-MIT"];

/// Limits of crates.io.
const MOST_KEYWORDS: usize = 5;
const LONGEST_KEYWORD: usize = 20;

pub(super) fn check(tree: &Tree, problems: &mut Vec<Problem>) {
    let root = tree.files.iter().find(|file| file.path == "Cargo.toml");
    let workspace = root.and_then(|file| Some((file, file.text.parse::<Table>().ok()?)));
    if let Some((file, manifest)) = &workspace {
        versions(file, manifest, problems);
    }
    for file in tree.with("/Cargo.toml") {
        let Some(folder) = file.path.strip_suffix("/Cargo.toml") else {
            continue;
        };
        let is_crate = folder.starts_with("crates/");
        let manifest = file.text.parse::<Table>().ok();
        let package = manifest.as_ref().and_then(|it| it.get("package"));
        let (true, Some(package)) = (is_crate, package) else {
            continue;
        };
        if package.get("publish").and_then(Value::as_bool) == Some(false) {
            continue;
        }
        let features = manifest.as_ref().and_then(|it| it.get("features"));
        let has_hooks = features.is_some_and(|it| it.get(HOOKS).is_some());
        for problem in missing(package, has_hooks) {
            problems.push(file.problem(0, problem));
        }
        files(tree, folder, file, problems);
    }
}

/// Checks that each crate of the workspace is required in the version that is published with it.
fn versions(file: &File, manifest: &Table, problems: &mut Vec<Problem>) {
    let Some(workspace) = manifest.get("workspace") else {
        return;
    };
    let version = workspace.get("package").and_then(|it| it.get("version"));
    let dependencies = workspace.get("dependencies").and_then(Value::as_table);
    for (name, dependency) in dependencies.into_iter().flatten() {
        if dependency.get("path").is_some() && dependency.get("version") != version {
            problems.push(file.problem(
                0,
                format!("the version of `{name}` is not that of `workspace.package`"),
            ));
        }
    }
}

/// Returns the missing keys in the `[package]` of a published crate. The documentation of one with hooks of its own tests
/// leaves these out.
fn missing(package: &Value, has_hooks: bool) -> Vec<String> {
    let mut missing = Vec::new();
    for field in ["repository", "include"] {
        if package.get(field).is_none() {
            missing.push(format!("`package.{field}` is missing"));
        }
    }
    for field in ["keywords", "categories"] {
        let words: Vec<&str> = package
            .get(field)
            .and_then(Value::as_array)
            .map(|words| words.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        if words.is_empty() || words.len() > MOST_KEYWORDS {
            missing.push(format!("`package.{field}` needs 1 to {MOST_KEYWORDS}"));
        }
        if field == "keywords" {
            let long = words.iter().filter(|word| word.len() > LONGEST_KEYWORD);
            missing.extend(
                long.map(|word| format!("the keyword `{word}` is longer than {LONGEST_KEYWORD}")),
            );
        }
    }
    let all_features = ["metadata", "docs", "rs", "all-features"]
        .iter()
        .try_fold(package, |table, name| table.get(name));
    if all_features.and_then(Value::as_bool) != Some(!has_hooks) {
        missing.push(format!(
            "`package.metadata.docs.rs.all-features = {}` is missing",
            !has_hooks
        ));
    }
    missing
}

fn files(tree: &Tree, folder: &str, manifest: &File, problems: &mut Vec<Problem>) {
    let readme = format!("{folder}/README.md");
    match tree.files.iter().find(|file| file.path == readme) {
        None => problems.push(manifest.problem(0, "has no README.md beside it")),
        // A relative link is dead in the package and on its page in a registry.
        Some(file) if !file.text.contains("https://github.com/") => {
            problems.push(file.problem(0, "has no link to the README of the workspace"));
        }
        Some(_) => {}
    }
    for name in LICENSES {
        let text = fs::read(tree.root.join(name)).ok();
        if text.is_none() || fs::read(tree.root.join(folder).join(name)).ok() != text {
            let problem =
                format!("has no {name} beside it: `ln -s ../../{name}` in the same folder");
            problems.push(manifest.problem(0, problem));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::problems_of;
    use super::*;

    const WORKSPACE: &str = "[workspace.package]\nversion = \"0.2.0\"\n[workspace.dependencies]\n\
                             a = { path = \"crates/a\", version = \"0.2.0\" }\nserde = \"1\"\n";
    const COMPLETE: &str = "[package]\nrepository = \"x\"\ninclude.workspace = true\n\
                            keywords = [\"a\"]\ncategories = [\"b\"]\n\
                            [package.metadata.docs.rs]\nall-features = true\n";

    #[test]
    fn hooks_of_tests_are_in_no_documentation() {
        let manifest: Table = COMPLETE.parse().unwrap();
        assert_eq!(
            missing(&manifest["package"], true),
            ["`package.metadata.docs.rs.all-features = false` is missing"]
        );
        assert!(missing(&manifest["package"], false).is_empty());
    }

    #[test]
    fn a_complete_crate_and_one_that_is_not_published_are_fine() {
        let none: [&str; 0] = [];
        assert_eq!(
            problems_of(
                &[check],
                &[
                    ("Cargo.toml", WORKSPACE),
                    ("LICENSE-APACHE", "Apache"),
                    ("LICENSE-MIT", "MIT"),
                    ("crates/a/Cargo.toml", COMPLETE),
                    ("crates/a/LICENSE-APACHE", "Apache"),
                    ("crates/a/LICENSE-MIT", "MIT"),
                    ("crates/a/README.md", "[b](https://github.com/x/x)\n"),
                    ("crates/b/Cargo.toml", "[package]\npublish = false\n"),
                    ("xtask/Cargo.toml", "[package]\n"),
                ]
            ),
            none
        );
    }

    #[test]
    fn missing_keys_are_named() {
        let manifest = "[package]\nkeywords = [\"longer-than-crates-io-takes\"]\n";
        let workspace = WORKSPACE.replacen("0.2.0", "0.3.0", 1);
        assert_eq!(
            problems_of(
                &[check],
                &[
                    ("Cargo.toml", &workspace),
                    ("LICENSE-APACHE", "Apache"),
                    ("LICENSE-MIT", "MIT"),
                    ("crates/a/Cargo.toml", manifest),
                    ("crates/a/LICENSE-MIT", "another text"),
                    ("crates/a/README.md", "a\n"),
                ]
            ),
            [
                "Cargo.toml: the version of `a` is not that of `workspace.package`",
                "crates/a/Cargo.toml: `package.repository` is missing",
                "crates/a/Cargo.toml: `package.include` is missing",
                "crates/a/Cargo.toml: the keyword `longer-than-crates-io-takes` is longer than 20",
                "crates/a/Cargo.toml: `package.categories` needs 1 to 5",
                "crates/a/Cargo.toml: `package.metadata.docs.rs.all-features = true` is missing",
                "crates/a/README.md: has no link to the README of the workspace",
                "crates/a/Cargo.toml: has no LICENSE-APACHE beside it: `ln -s ../../LICENSE-APACHE` in the same folder",
                "crates/a/Cargo.toml: has no LICENSE-MIT beside it: `ln -s ../../LICENSE-MIT` in the same folder",
            ]
        );
    }
}
