//! Dependencies of a build with few features.

use std::collections::BTreeSet;
use std::process::Command;

/// Packages for editing configuration files, and those that use runtimes.
const NOT_FOR_ONE_PROVIDER: &[&str] = &[
    "teamster-mcp-config",
    "teamster-mcp-client",
    "teamster-orchestrator",
    "teamster-acp",
    "jsonc-parser",
    "toml",
    "toml_edit",
    "sha2",
    "sqlx",
    "hyper",
    "rmcp",
];

/// The most packages of a build on Linux, with itself: (package, its arguments, packages). As measured: each one more is
/// a decision.
#[cfg(target_os = "linux")]
const MOST: &[(&str, &[&str], usize)] = &[
    ("teamster", &[], 78),
    (
        "teamster",
        &["--no-default-features", "--features", "claude"],
        51,
    ),
    ("teamster-claude", &[], 29),
    // README's first command. `Cargo.lock` keeps `idna_adapter` at 1.1, which takes the tables of names from unicode-rs
    // and not the twenty packages of ICU4X: `cargo update -p idna_adapter --precise 1.1.0`.
    ("teamster-cli", &[], 270),
];

#[test]
fn claude_alone_needs_no_editor_of_configuration_files() {
    let packages = packages(
        "teamster",
        &["--no-default-features", "--features", "claude"],
    );
    let names: Vec<&str> = packages
        .iter()
        .filter_map(|package| package.split(' ').next())
        .collect();
    assert!(names.contains(&"teamster-claude"), "{names:?}");
    let too_many: Vec<_> = NOT_FOR_ONE_PROVIDER
        .iter()
        .filter(|name| names.contains(name))
        .collect();
    assert!(too_many.is_empty(), "{too_many:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_build_has_no_more_packages_than_before() {
    for (package, args, most) in MOST {
        let packages = packages(package, args);
        assert!(
            packages.len() <= *most,
            "{package} {args:?}: {} packages, {most} before: {packages:?}",
            packages.len()
        );
    }
}

/// Names and versions of the packages that a build of this package compiles.
fn packages(package: &str, args: &[&str]) -> BTreeSet<String> {
    let tree = Command::new(env!("CARGO"))
        .args(["tree", "--package", package, "--edges", "normal"])
        .args(args)
        .args(["--prefix", "none", "--offline", "--locked"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(tree.status.success(), "{tree:?}");
    String::from_utf8(tree.stdout)
        .unwrap()
        .lines()
        .filter(|line| !line.is_empty())
        .map(|line| line.split(' ').take(2).collect::<Vec<_>>().join(" "))
        .collect()
}
