use teamster_core::{ErrorCode, McpServer};

use super::*;
use crate::{CLINE, KIMI, QWEN};

fn args(agent: NamedAgent, change: impl FnOnce(&mut ExecuteParams)) -> Result<String, AgentError> {
    let mut params = ExecuteParams::default();
    change(&mut params);
    let launch = agent.launch_session(&SessionOptions::new(params))?;
    let args = launch.args.iter().map(|arg| arg.to_string_lossy());
    Ok(args.collect::<Vec<_>>().join(" "))
}

#[test]
fn each_is_started_as_an_acp_agent() {
    assert_eq!(args(KIMI, |_| {}).unwrap(), "acp");
    assert_eq!(args(CLINE, |_| {}).unwrap(), "--acp --auto-approve=false");
    let bypass = args(CLINE, |params| params.permission = PermissionMode::Bypass);
    assert_eq!(bypass.unwrap(), "--acp --auto-approve=false");
    let qwen = |mode| args(QWEN, |params| params.permission = mode).unwrap();
    assert_eq!(
        qwen(PermissionMode::Default),
        "--acp --approval-mode=default"
    );
    assert_eq!(
        qwen(PermissionMode::AcceptEdits),
        "--acp --approval-mode=auto-edit"
    );
    assert_eq!(qwen(PermissionMode::Bypass), "--acp --approval-mode=yolo");
    let more = args(KIMI, |params| params.extra_args = vec!["--x".into()]);
    assert_eq!(more.unwrap(), "acp --x");
}

#[test]
fn unsupported_parameters_are_refused_by_name() {
    let read_only = |agent| args(agent, |params| params.permission = PermissionMode::ReadOnly);
    let error = read_only(KIMI).unwrap_err();
    assert!(error.message.contains("permission"), "{error}");
    assert!(error.message.contains("Kimi Code"), "{error}");
    // These ask before each tool with side effects.
    assert_eq!(read_only(CLINE).unwrap(), "--acp --auto-approve=false");
    assert_eq!(read_only(QWEN).unwrap(), "--acp --approval-mode=default");
    for agent in [CLINE, KIMI, QWEN] {
        let mut params = ExecuteParams::new("hi");
        params.max_turns = Some(1);
        assert!(
            agent
                .launch(&params)
                .unwrap_err()
                .message
                .contains("max_turns")
        );
    }
    let with_server = |params: &mut ExecuteParams| {
        params.mcp_servers = vec![McpServer::stdio("a", "b", ["c"])];
    };
    assert!(args(QWEN, with_server).is_ok());
    let error = args(CLINE, with_server).unwrap_err();
    assert!(error.message.contains("mcp_servers"), "{error}");
}

/// Returns parameters with hooks, independent of the settings of this machine.
fn with_hooks(folder: &tempfile::TempDir) -> ExecuteParams {
    let settings = folder.path().join("settings.json");
    ExecuteParams::new("hi")
        .hooks(json!({"Stop": ["secret"]}))
        .env("QWEN_CODE_SYSTEM_SETTINGS_PATH", settings.to_str().unwrap())
}

#[test]
fn hooks_are_settings_in_a_file_that_a_variable_names() {
    let folder = tempfile::tempdir().unwrap();
    let launch = |agent: NamedAgent, params| agent.launch_session(&SessionOptions::new(params));
    let with = launch(QWEN, with_hooks(&folder)).unwrap();
    let expected = PrivateFile {
        location: PathLocation::Variable("QWEN_CODE_SYSTEM_DEFAULTS_PATH".to_owned()),
        content: br#"{"hooks":{"Stop":["secret"]}}"#.to_vec(),
    };
    assert_eq!(with.private_files, [expected]);
    // Its settings would be lost.
    let expected = DisplacedFile {
        parameter: "hooks",
        variable: "QWEN_CODE_SYSTEM_DEFAULTS_PATH",
        default: folder.path().join("system-defaults.json"),
    };
    assert_eq!(with.displaced, [expected]);
    let without = launch(QWEN, ExecuteParams::new("hi")).unwrap();
    assert!(without.private_files.is_empty() && without.displaced.is_empty());
    for agent in [CLINE, KIMI] {
        let error = launch(agent, with_hooks(&folder)).unwrap_err();
        assert!(error.message.starts_with("hooks: "), "{error}");
    }
}

#[test]
fn hooks_are_refused_where_the_caller_names_the_file_for_them() {
    let folder = tempfile::tempdir().unwrap();
    for value in ["/mine.json", ""] {
        let params = with_hooks(&folder).env("QWEN_CODE_SYSTEM_DEFAULTS_PATH", value);
        let refused = QWEN.launch_session(&SessionOptions::new(params));
        let error = refused.unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidParams);
        let expected = "hooks: QWEN_CODE_SYSTEM_DEFAULTS_PATH is set, which names the file for them: put the hooks into that \
                        file, or unset it";
        assert_eq!(error.message, expected);
    }
}
