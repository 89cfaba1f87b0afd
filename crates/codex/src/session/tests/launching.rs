//! Launch of the CLI for a session.

use teamster_core::provider::Stdin;
use teamster_core::{ErrorCode, ErrorKind, McpServer, McpTransport, SystemPrompt};

use super::*;
use crate::launch::launch_session;

fn args(options: &SessionOptions) -> Vec<String> {
    let launch = launch_session(options).unwrap();
    let args = launch.args.into_iter();
    args.map(|arg| arg.into_string().unwrap()).collect()
}

#[test]
fn arguments_are_distinguished_from_flags() {
    let mut options = SessionOptions::default();
    options.params.model = Some("gpt-5.5".into());
    options.params.effort = Some("high".into());
    options.params.permission = PermissionMode::AcceptEdits;
    options.params.system_prompt = Some(SystemPrompt::Append("x".repeat(200_000)));
    options.params.extra_args = vec!["--strict-config".into()];
    assert_eq!(
        args(&options),
        [
            "app-server",
            "--config=features.unbounded_connection_retries=false",
            "--config=thread_unload_delay_secs=0",
            "--config=model_reasoning_effort=\"high\"",
            "--strict-config",
        ]
    );
    let launch = launch_session(&options).unwrap();
    assert_eq!(launch.stdin, Stdin::Open(Vec::new()));
    // On SIGINT the CLI would leave its tools running, and on SIGTERM it does not.
    assert_eq!(launch.stop_first, None);
    assert!(launch.private_files.is_empty() && launch.env.is_empty());
    assert!(launch.env_remove.contains(&"CODEX_THREAD_ID"));
}

#[test]
fn servers_are_as_in_a_run_but_for_the_log() {
    let server = McpServer::new(
        "tracker",
        McpTransport::Stdio {
            command: "tracker-mcp".into(),
            args: Vec::new(),
            env: [("TOKEN".to_owned(), "s3cret".to_owned())].into(),
            cwd: None,
        },
    );
    let mut options = SessionOptions::default();
    options.params.mcp_servers = vec![server];
    let launch = launch_session(&options).unwrap();
    let args = args(&options);
    assert!(
        args.iter()
            .any(|arg| arg.starts_with("--config=mcp_servers.tracker="))
    );
    assert!(
        args.iter()
            .any(|arg| arg.starts_with("--config=mcp_optional_startup_grace_ms="))
    );
    assert!(!args.concat().contains("s3cret"));
    let names: Vec<_> = launch.env.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["TEAMSTER_MCP_tracker_x_TOKEN"]);
    assert_eq!(launch.env[0].1, "s3cret");
}

#[test]
fn invalid_parameters_are_refused_by_name() {
    type Change = fn(&mut SessionOptions);
    let cases: &[(&str, Change)] = &[
        ("fork:", |o| o.params.fork = true),
        ("max_turns:", |o| o.params.max_turns = Some(3)),
        ("max_budget_usd:", |o| o.params.max_budget_usd = Some(1.0)),
        ("allowed_tools:", |o| {
            o.params.allowed_tools = vec!["x".into()];
        }),
        ("denied_tools:", |o| {
            o.params.denied_tools = vec!["x".into()];
        }),
        ("cli_retries:", |o| o.params.cli_retries = Some(0)),
        ("new_session_id:", |o| {
            o.params.new_session_id = Some(THREAD.into());
        }),
        ("output_schema:", |o| {
            o.params.output_schema = Some(json!("x"));
        }),
        ("system_prompt:", |o| {
            o.params.session_id = Some(THREAD.into());
            o.params.system_prompt = Some(SystemPrompt::Append("x".into()));
        }),
    ];
    for (name, change) in cases {
        let mut options = SessionOptions::default();
        change(&mut options);
        let error = launch_session(&options).unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidParams);
        assert!(error.message.starts_with(name), "{name}: {error}");
    }
    let mut options = SessionOptions::default();
    options.params.session_id = Some("latest".into());
    assert_eq!(
        launch_session(&options).unwrap_err().kind,
        ErrorKind::SessionNotFound
    );
}

/// The engine starts another process for it, and the session already has its instructions.
#[test]
fn a_session_resumed_in_another_process_keeps_its_instructions() {
    let mut options = bypassing();
    options.params.session_id = Some(THREAD.into());
    options.params.system_prompt = Some(SystemPrompt::Append("be brief".into()));
    options.restarted = true;
    assert!(launch_session(&options).is_ok());
    let peer = Peer::new(&options);
    assert_eq!(
        *peer.params("thread/resume"),
        json!({"threadId": THREAD, "excludeTurns": true, "cwd": "/nowhere",
               "approvalPolicy": "never", "sandbox": "danger-full-access"})
    );
}
