use std::fs;

use teamster_core::McpServer;

use super::*;
use crate::launch::launch;

/// Returns parameters with a server and without values of this test's environment. Home and project are in this
/// folder.
fn params(top: &Path) -> ExecuteParams {
    let mut params = ExecuteParams::new("hi");
    for name in [
        "OPENCODE_CONFIG_CONTENT",
        "OPENCODE_PERMISSION",
        "OPENCODE_CONFIG",
        "OPENCODE_CONFIG_DIR",
        "OPENCODE_DISABLE_PROJECT_CONFIG",
        "XDG_CONFIG_HOME",
    ] {
        params.env.insert(name.into(), String::new());
    }
    let home = top.join("home").to_str().unwrap().to_owned();
    params.env.insert("HOME".into(), home);
    params.working_directory = Some(top.join("repo/sub"));
    params.mcp_servers = vec![McpServer::stdio("s", "x", ["y"])];
    params
}

fn put(file: &Path, text: &str) {
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
}

/// Creates a folder and returns its path without symbolic links.
fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    put(&path.join("repo/.git/HEAD"), "");
    fs::create_dir_all(path.join("repo/sub")).unwrap();
    (folder, path)
}

fn taken(params: &ExecuteParams, top: &Path) -> Vec<String> {
    let launch = launch(params).unwrap();
    let shown = |table: ConfigTable| {
        assert_eq!((table.key, table.format), ("mcp", ConfigFormat::Json));
        let file = table.file.strip_prefix(top).unwrap_or(&table.file);
        file.to_str().unwrap().to_owned()
    };
    launch.names_taken.into_iter().map(shown).collect()
}

/// Returns the file that is changed for the run.
fn changed(params: &ExecuteParams, delivery: McpDelivery, top: &Path) -> String {
    let mut params = params.clone();
    params.mcp_delivery = delivery;
    let edit = launch(&params).unwrap().config.unwrap();
    assert_eq!(edit.location, ConfigLocation::Lease);
    assert_eq!(edit.table.key, "mcp");
    let file = edit.table.file.strip_prefix(top).unwrap().to_str().unwrap();
    assert!(!taken(&params, top).contains(&file.to_owned()));
    file.to_owned()
}

const OF_THE_USER: [&str; 3] = [
    "home/.config/opencode/opencode.jsonc",
    "home/.config/opencode/opencode.json",
    "home/.config/opencode/config.json",
];
const OF_THE_PROJECT: [&str; 8] = [
    "repo/sub/opencode.jsonc",
    "repo/sub/opencode.json",
    "repo/sub/.opencode/opencode.jsonc",
    "repo/sub/.opencode/opencode.json",
    "repo/opencode.jsonc",
    "repo/opencode.json",
    "repo/.opencode/opencode.jsonc",
    "repo/.opencode/opencode.json",
];
const OF_THE_HOME: [&str; 2] = [
    "home/.opencode/opencode.jsonc",
    "home/.opencode/opencode.json",
];

#[test]
fn names_are_searched_in_exactly_the_files_that_the_cli_reads() {
    let (_folder, top) = folder();
    let mut params = params(&top);
    let all = [&OF_THE_USER[..], &OF_THE_PROJECT, &OF_THE_HOME].concat();
    assert_eq!(taken(&params, &top), all);

    for (name, value) in [
        ("OPENCODE_CONFIG", "more.json"),
        ("OPENCODE_CONFIG_DIR", "/no/dir"),
        ("OPENCODE_DISABLE_PROJECT_CONFIG", "TRUE"),
        ("XDG_CONFIG_HOME", "/no/xdg"),
    ] {
        params.env.insert(name.into(), value.into());
    }
    assert_eq!(
        taken(&params, &top),
        [
            "/no/xdg/opencode/opencode.jsonc",
            "/no/xdg/opencode/opencode.json",
            "/no/xdg/opencode/config.json",
            "repo/sub/more.json",
            OF_THE_HOME[0],
            OF_THE_HOME[1],
            "/no/dir/opencode.jsonc",
            "/no/dir/opencode.json",
        ]
    );

    params.mcp_servers.clear();
    assert!(taken(&params, &top).is_empty());
}

#[test]
fn project_files_without_a_repository_are_searched_to_the_root() {
    let (_folder, top) = folder();
    let mut params = params(&top);
    // A folder that only looks like a repository, and a work tree of another repository.
    fs::create_dir_all(top.join("loose/.git")).unwrap();
    fs::create_dir_all(top.join("tree/sub")).unwrap();
    put(&top.join("tree/.git"), "gitdir: /elsewhere");
    params.working_directory = Some(top.join("loose"));
    assert!(taken(&params, &top).contains(&"/opencode.json".to_owned()));
    params.working_directory = Some(top.join("tree/sub"));
    let found = taken(&params, &top);
    assert!(
        found.contains(&"tree/opencode.json".to_owned()),
        "{found:?}"
    );
    assert!(!found.contains(&"opencode.json".to_owned()), "{found:?}");
    // The caller's own flag has precedence.
    params.working_directory = None;
    params.extra_args = vec!["--dir".into(), top.join("repo").to_str().unwrap().into()];
    assert!(taken(&params, &top).contains(&"repo/opencode.json".to_owned()));
}

#[test]
fn a_project_behind_a_link_is_looked_at_by_both_of_its_paths() {
    let (_folder, top) = folder();
    let mut params = params(&top);
    put(&top.join("links/.git/HEAD"), "");
    std::os::unix::fs::symlink(top.join("repo/sub"), top.join("links/sub")).unwrap();
    params.working_directory = Some(top.join("links/sub"));
    let found = taken(&params, &top);
    for file in ["repo/opencode.json", "links/opencode.json"] {
        assert!(found.contains(&file.to_owned()), "{found:?}");
    }
}

#[test]
fn the_file_to_change_is_the_first_that_is_there() {
    let (_folder, top) = folder();
    let params = params(&top);
    let project = |expected: &str| {
        assert_eq!(changed(&params, McpDelivery::ProjectConfig, &top), expected);
    };
    project("repo/sub/opencode.json");
    for file in [
        OF_THE_PROJECT[3],
        OF_THE_PROJECT[2],
        OF_THE_PROJECT[1],
        OF_THE_PROJECT[0],
    ] {
        put(&top.join(file), "{}");
        project(file);
    }
    let user = |expected: &str| {
        assert_eq!(changed(&params, McpDelivery::UserConfig, &top), expected);
    };
    user("home/.config/opencode/opencode.json");
    for file in [OF_THE_USER[2], OF_THE_USER[1], OF_THE_USER[0]] {
        put(&top.join(file), "{}");
        user(file);
    }
}

#[test]
fn a_projects_file_that_the_cli_would_not_read_is_refused() {
    let (_folder, top) = folder();
    let mut params = params(&top);
    let name = "OPENCODE_DISABLE_PROJECT_CONFIG";
    params.env.insert(name.into(), "1".into());
    params.mcp_delivery = McpDelivery::ProjectConfig;
    let message = launch(&params).unwrap_err().message;
    assert!(message.starts_with("mcp_delivery: "), "{message}");
    assert!(message.contains(name), "{message}");
    // The CLI reads the files with any other value.
    params.env.insert(name.into(), "0".into());
    launch(&params).unwrap();
}
