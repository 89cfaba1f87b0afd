use std::fs;

use teamster_core::ErrorCode;
use tempfile::TempDir;

use super::*;

/// A home, a directory and a system, each with settings.
struct Machine(TempDir);

impl Machine {
    fn new(files: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let file = dir.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        Self(dir)
    }

    fn params(&self) -> ExecuteParams {
        let mut params = ExecuteParams::new("hi");
        let text = |name: &str| self.0.path().join(name).to_str().unwrap().to_owned();
        params.env.insert("GEMINI_CLI_HOME".into(), text("home"));
        params.env.insert(
            "GEMINI_CLI_SYSTEM_SETTINGS_PATH".into(),
            text("system/settings.json"),
        );
        params.working_directory = Some(self.0.path().join("work"));
        params.mcp_servers = ["tiny", "b"]
            .map(|name| McpServer::stdio(name, "cmd", [""; 0]))
            .to_vec();
        params
    }

    fn allowed_with(&self, change: impl FnOnce(&mut ExecuteParams)) -> Result<String, String> {
        let mut params = self.params();
        change(&mut params);
        let locations = Locations::of(&params).unwrap();
        match allowed_servers(&params, &locations) {
            Ok(names) => Ok(names.join(" ")),
            Err(error) => {
                assert_eq!(error.code, ErrorCode::InvalidParams);
                Err(error.message)
            }
        }
    }

    fn allowed(&self) -> Result<String, String> {
        self.allowed_with(|_| ())
    }
}

const USERS: &str = "home/.gemini/settings.json";
const PROJECT: &str = "work/.gemini/settings.json";
const SYSTEM: &str = "system/settings.json";

fn with(file: &str, text: &str) -> Result<String, String> {
    Machine::new(&[(file, text)]).allowed()
}

#[test]
fn settings_that_hide_no_server_are_accepted() {
    for text in [
        "{}",
        "",
        "[]",
        "{",
        r#"{"mcp": {"allowed": [], "excluded": ["other"]}}"#,
        r#"{"mcp": {"allowed": ["tiny", "b", "c"]}, "tools": {"core": ["mcp_*"]}}"#,
        r#"{"tools": {"core": ["mcp_tiny_echo", "mcp_b_*"]}, "mcp": 1}"#,
        r#"{"general": {"defaultApprovalMode": "auto_edit"}}"#,
    ] {
        assert_eq!(with(USERS, text), Ok(String::new()), "{text}");
    }
}

#[test]
fn servers_that_a_list_leaves_out_are_named_beside_those_in_it() {
    let text = r#"{"mcp": {"allowed": ["mine", "tiny", "gone"], "excluded": ["gone"]}}"#;
    assert_eq!(with(USERS, text), Ok("mine tiny b".into()));
    let lists = Machine::new(&[
        (USERS, r#"{"mcp": {"allowed": ["mine", "Theirs"]}}"#),
        (PROJECT, r#"{"mcp": {"allowed": [" theirs"]}}"#),
    ]);
    assert_eq!(lists.allowed(), Ok("Theirs tiny b".into()));
    // Only servers in all lists are allowed. If there are none, all are.
    let lists = Machine::new(&[
        (USERS, r#"{"mcp": {"allowed": ["mine"]}}"#),
        (SYSTEM, r#"{"mcp": {"allowed": ["theirs"]}}"#),
    ]);
    assert_eq!(lists.allowed(), Ok(String::new()));
    let strict = Machine::new(&[(USERS, text)]);
    assert_eq!(
        strict.allowed_with(|p| p.mcp_strict = true),
        Ok("tiny b".into())
    );
}

#[test]
fn extra_flag_does_not_hide_the_servers_of_the_run() {
    let machine = Machine::new(&[(USERS, r#"{"mcp": {"allowed": ["mine"]}}"#)]);
    let flag = "--allowed-mcp-server-names=b,theirs".to_owned();
    let allowed = machine.allowed_with(|p| p.extra_args = vec![flag]);
    assert_eq!(allowed, Ok("tiny".into()));
}

#[test]
fn a_name_that_the_flag_cannot_say_is_an_error() {
    let message = with(USERS, r#"{"mcp": {"allowed": ["a,b"]}}"#).unwrap_err();
    assert!(message.starts_with("mcp_servers: tiny: "), "{message}");
}

#[test]
fn setting_that_hides_a_server_is_an_error_with_its_file() {
    for (file, text, setting) in [
        (USERS, r#"{"mcp": {"excluded": ["b"]}}"#, "mcp.excluded"),
        (
            PROJECT,
            r#"{"mcp": {"excluded": ["*", "b"]}}"#,
            "mcp.excluded",
        ),
        (SYSTEM, r#"{"tools": {"core": []}}"#, "tools.core"),
        (
            USERS,
            r#"{"tools": {"core": ["read_file", "mcp_tin_*"]}}"#,
            "tools.core",
        ),
        (
            "system/system-defaults.json",
            r#"{"mcp": {"excluded": ["tiny"]}}"#,
            "mcp.excluded",
        ),
    ] {
        let message = with(file, text).unwrap_err();
        assert!(message.starts_with("mcp_servers: "), "{message}");
        assert!(
            message.contains(setting) && message.contains(file),
            "{message}"
        );
    }
}

#[test]
fn a_server_that_the_user_disabled_by_name_is_an_error() {
    let file = "home/.gemini/mcp-server-enablement.json";
    assert_eq!(
        with(file, r#"{"tiny": {"enabled": true}}"#),
        Ok(String::new())
    );
    let machine = Machine::new(&[(file, r#"{"tiny": {"enabled": false}}"#)]);
    let message = machine
        .allowed_with(|p| p.mcp_servers[0].name = "Tiny".into())
        .unwrap_err();
    assert!(
        message.starts_with("mcp_servers: Tiny: name: "),
        "{message}"
    );
}

#[test]
fn server_never_gets_the_token_of_a_namesake() {
    let login = r#"[{"serverName": "tiny", "mcpServerUrl": "https://x/mcp"}]"#;
    let machine = Machine::new(&[("home/.gemini/mcp-oauth-tokens.json", login)]);
    let with = |server: McpServer| machine.allowed_with(|p| p.mcp_servers = vec![server]);
    for server in [
        McpServer::http("tiny", "https://y/mcp"),
        McpServer::sse("tiny", "https://y/sse").header("X-Authorization", "a"),
    ] {
        let message = with(server).unwrap_err();
        assert!(
            message.starts_with("mcp_servers: tiny: name: "),
            "{message}"
        );
    }
    for server in [
        McpServer::http("tiny", "https://x/mcp"),
        McpServer::http("tiny", "https://y/mcp").header("authorization", "a"),
        McpServer::http("other", "https://y/mcp"),
        McpServer::stdio("tiny", "cmd", [""; 0]),
    ] {
        assert_eq!(with(server), Ok(String::new()));
    }
}

#[test]
fn plan_mode_has_no_servers_so_another_mode_is_required() {
    let plan = r#"{"general": {"defaultApprovalMode": "plan"}}"#;
    let message = with(USERS, plan).unwrap_err();
    assert!(message.starts_with("permission: "), "{message}");
    let machine = Machine::new(&[(USERS, plan)]);
    for change in [
        (|p| p.permission = PermissionMode::ReadOnly) as fn(&mut ExecuteParams),
        |p| p.extra_args = vec!["--approval-mode=auto_edit".into()],
    ] {
        assert_eq!(machine.allowed_with(change), Ok(String::new()));
    }
    // The directory's settings have precedence.
    let other = r#"{"general": {"defaultApprovalMode": "default"}}"#;
    let machine = Machine::new(&[(USERS, plan), (PROJECT, other)]);
    assert_eq!(machine.allowed(), Ok(String::new()));
}

#[test]
fn comments_are_no_part_of_settings_and_strings_are() {
    let text = r#"// one
        {"mcp": /* two "*/ {"excluded" : ["//x", "/*", "a\"//\\", "tiny"]} // three "
        }"#;
    let message = with(USERS, text).unwrap_err();
    assert!(message.contains("mcp.excluded"), "{message}");
    assert_eq!(without_comments("a/b // c\n/* d"), "a/b \n");
    assert_eq!(without_comments(r#""\\" // "#), r#""\\" "#);
    assert_eq!(without_comments(r#"{"a"#), r#"{"a"#);
}
