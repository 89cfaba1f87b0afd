use teamster_core::McpServer;

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
