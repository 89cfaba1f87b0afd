use std::ffi::OsString;
use std::ptr;

use serde_json::{Value, json};
use teamster_core::provider::{Outbox, SessionAssembler};
use teamster_core::{McpServer, Turn};

use super::*;

fn agent(command: &str) -> AcpAgent {
    AcpAgent::new(command).unwrap()
}

#[test]
fn a_command_is_a_program_and_its_arguments() {
    let agent = agent(r#" /opt/my\ agent --acp  "two words" 'it''s' "#);
    assert_eq!(agent.info.program, "/opt/my agent");
    assert_eq!(agent.info.name, "my agent");
    let options = SessionOptions::default();
    let launch = agent.launch_session(&options).unwrap();
    assert_eq!(
        launch.args,
        ["--acp", "two words", "its"].map(OsString::from)
    );
    assert_eq!(launch.stdin, Stdin::Open(Vec::new()));
}

#[test]
fn an_agent_is_named_by_its_command() {
    let one = agent("some-agent  '--acp'");
    assert_eq!(one.info.id, "acp:some-agent --acp");
    let same = AcpAgent::named(&format!(" {}", one.info.id))
        .unwrap()
        .unwrap();
    assert!(ptr::eq(one.info, same.info));
    assert!(!ptr::eq(one.info, agent("some-agent --ac").info));
    assert!(AcpAgent::named("some-agent --acp").is_none());
    assert!(AcpAgent::named("acp: ").unwrap().is_err());
}

#[test]
fn a_command_without_a_program_is_refused() {
    for (command, message) in [
        ("", "the command is missing"),
        (" \n", "the command is missing"),
        ("agent 'x", "acp:agent 'x: a quotation mark is not closed"),
        ("'' --acp", "the program has no name"),
        ("KEY=1 agent", "variables go to the agent's environment"),
        ("agent a\0b", "NUL"),
    ] {
        let error = AcpAgent::new(command).unwrap_err();
        assert!(error.message.starts_with("acp:"), "{error}");
        assert!(error.message.contains(message), "{error}");
    }
    assert!(AcpAgent::new("./a=b --acp").is_ok());
}

#[test]
fn agents_that_are_named_again_and_again_take_no_memory() {
    for _ in 0..5000 {
        assert!(AcpAgent::new("the-same").is_ok());
    }
}

#[test]
fn acp_agent_has_sessions_and_no_runs() {
    let error = agent("x --acp")
        .launch(&ExecuteParams::new("hi"))
        .unwrap_err();
    assert!(
        error.message.starts_with("acp:x --acp only supports"),
        "{error}"
    );
}

#[test]
fn unsupported_parameters_are_refused() {
    let refused = |change: &dyn Fn(&mut ExecuteParams)| {
        let mut options = SessionOptions::default();
        change(&mut options.params);
        agent("x").launch_session(&options).unwrap_err().message
    };
    for (parameter, message) in [
        (
            "permission",
            refused(&|params| params.permission = PermissionMode::ReadOnly),
        ),
        ("max_turns", refused(&|params| params.max_turns = Some(1))),
        (
            "new_session_id",
            refused(&|params| params.new_session_id = Some("a".into())),
        ),
        ("mcp_strict", refused(&|params| params.mcp_strict = true)),
    ] {
        assert!(message.starts_with(parameter), "{message}");
    }
}

/// Returns the messages sent to the agent up to `session/new`.
fn sent(options: &SessionOptions, capabilities: &Value) -> Vec<Value> {
    let agent = agent("x");
    let mut assembler = SessionAssembler::new(agent.protocol(options));
    assembler.begin(Turn::new("hi"));
    let answer = json!({"id": 1, "result": {"agentCapabilities": capabilities}});
    assembler.line(answer.to_string().as_bytes());
    let written = assembler.outbox(Outbox::take_input);
    let lines = written
        .split(|b| *b == b'\n')
        .filter(|line| !line.is_empty());
    lines
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect()
}

#[test]
fn servers_and_directories_are_reported_by_the_protocol() {
    let mut options = SessionOptions::default();
    let params = &mut options.params;
    params.working_directory = Some("/work".into());
    params.add_dirs = vec!["/other".into(), "sub".into()];
    params.mcp_servers = vec![McpServer::stdio("s", "cmd", ["a"]).env("K", "secret")];
    let launch = agent("x").launch_session(&options).unwrap();
    assert!(launch.args.is_empty());

    let servers_of = sent(
        &options,
        &json!({"sessionCapabilities": {"additionalDirectories": {}}}),
    );
    assert_eq!(servers_of[0]["method"], "initialize");
    let offered = servers_of[0]["params"]["clientCapabilities"].to_string();
    assert!(!offered.contains("true"), "{offered}");
    assert_eq!(servers_of[1]["method"], "session/new");
    let params = &servers_of[1]["params"];
    assert_eq!(params["cwd"], "/work");
    assert_eq!(
        params["additionalDirectories"],
        json!(["/other", "/work/sub"])
    );
    assert_eq!(
        params["mcpServers"],
        json!([{"name": "s", "command": "cmd", "args": ["a"], "env": [{"name": "K", "value": "secret"}]}])
    );
    // Without the capability, no session is opened.
    assert_eq!(sent(&options, &json!({})).len(), 1);
}

#[test]
fn another_teamster_can_be_read_only() {
    for command in ["teamster acp claude", "ssh build /opt/bin/teamster acp"] {
        let teamster = agent(command);
        let options =
            SessionOptions::new(ExecuteParams::new("").permission(PermissionMode::ReadOnly));
        assert!(teamster.launch_session(&options).is_ok(), "{command}");
        let mut assembler = SessionAssembler::new(teamster.protocol(&options));
        assembler.begin(Turn::new("hi"));
        for answer in [
            json!({"id": 1, "result": {"agentCapabilities": {}}}),
            json!({"id": 2, "result": {"sessionId": "s"}}),
        ] {
            assembler.line(answer.to_string().as_bytes());
        }
        let written = assembler.outbox(Outbox::take_input);
        let last = written
            .split(|b| *b == b'\n')
            .rfind(|line| !line.is_empty());
        let last: Value = serde_json::from_slice(last.unwrap()).unwrap();
        assert_eq!(
            (&last["method"], &last["params"]),
            (
                &json!("session/set_mode"),
                &json!({"sessionId": "s", "modeId": "read-only"})
            )
        );
    }
}
