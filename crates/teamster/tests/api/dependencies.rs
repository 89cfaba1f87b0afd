//! Dependencies of a build with few features.

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

#[test]
fn claude_alone_needs_no_editor_of_configuration_files() {
    let tree = Command::new(env!("CARGO"))
        .args(["tree", "--package", "teamster", "--no-default-features"])
        .args(["--features", "claude", "--edges", "normal"])
        .args(["--prefix", "none", "--offline", "--locked"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(tree.status.success(), "{tree:?}");
    let tree = String::from_utf8(tree.stdout).unwrap();
    let packages: Vec<&str> = tree
        .lines()
        .filter_map(|line| line.split(' ').next())
        .collect();
    assert!(packages.contains(&"teamster-claude"), "{packages:?}");
    let too_many: Vec<_> = NOT_FOR_ONE_PROVIDER
        .iter()
        .filter(|name| packages.contains(name))
        .collect();
    assert!(too_many.is_empty(), "{too_many:?}");
}
