//! Tests of the descriptions.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::time::Duration;

use serde_json::json;
use teamster_core::{Container, McpServer, Mount, Timeouts};

use super::*;

fn read(json: Value) -> RunSpec {
    serde_json::from_value(json).unwrap()
}

#[test]
fn unset_fields_are_not_written() {
    let run = RunSpec::new("claude", "hi");
    let json = json!({"provider": "claude", "prompt": "hi"});
    assert_eq!(serde_json::to_value(&run).unwrap(), json);
    assert_eq!(read(json), run);
    let session = SessionSpec::new("claude");
    let json = json!({"provider": "claude"});
    assert_eq!(serde_json::to_value(&session).unwrap(), json);
    assert_eq!(
        serde_json::from_value::<SessionSpec>(json).unwrap(),
        session
    );
}

#[test]
fn an_unknown_field_is_named() {
    for json in [
        json!({"provider": "claude", "prompt": "hi", "workplace": 1}),
        json!({"provider": "claude", "prompt": "hi", "trusted": {"workplace": 1}}),
    ] {
        let error = serde_json::from_value::<RunSpec>(json).unwrap_err();
        assert!(error.to_string().contains("workplace"), "{error}");
    }
}

#[test]
fn every_field_is_the_same_after_json() {
    let mut run = RunSpec::new("claude", "hi");
    run.permission = PermissionMode::AcceptEdits;
    run.worktree = Some(Worktree::Branch("b".into()));
    run.fork = true;
    run.retries = 2;
    run.max_budget_usd = Some(0.1);
    run.ask_timeout_ms = Some(u64::MAX);
    run.depth = Some(AgentDepth::new(1, Some(2)));
    let trusted = &mut run.trusted;
    // No text in any encoding.
    let path = PathBuf::from(OsString::from_vec(vec![b'/', 0xff]));
    run.working_directory = Some(path.clone());
    trusted.program = Some(path.clone());
    let container: Container = "podman:agents:1".parse().unwrap();
    trusted.container = Some(container.mount(Mount::new("/a", "/b").read_only()));
    trusted.images = vec![path, "a.png".into()];
    trusted.env.insert("A".into(), "b".into());
    trusted.mcp_servers = vec![
        McpServer::stdio("s", "x", ["-y"]).env("K", "v"),
        McpServer::http("h", "https://example.com").header("K", "v"),
    ];
    trusted.timeouts = Timeouts::default()
        .idle(Duration::MAX)
        .tool(Duration::from_millis(1));
    trusted.idle_exit_ms = Some(5);
    let json = serde_json::to_string(&run).unwrap();
    assert_eq!(serde_json::from_str::<RunSpec>(&json).unwrap(), run);
}

#[test]
fn the_json_without_trusted_fields_has_no_such_part() {
    let mut run = RunSpec::new("claude", "hi");
    assert!(run.trusted.is_empty());
    run.trusted.slash_commands = true;
    assert_eq!(run.trusted.names(), ["slash_commands"]);
    let json = serde_json::to_value(&run).unwrap();
    assert_eq!(json["trusted"], json!({"slashCommands": true}));
}
