//! MCP servers with known and unknown names.

use teamster_core::{Decision, McpServer, NoticeLevel, NoticeSource};

use super::*;

fn with_servers(names: &[&str]) -> ExecuteParams {
    let mut params = ExecuteParams::new("hi");
    let server = |name: &&str| McpServer::stdio(*name, "cmd", [""; 0]);
    params.mcp_servers = names.iter().map(server).collect();
    params
}

fn split(params: &ExecuteParams, name: &str) -> Option<(String, String)> {
    let lines = [init(), call("a", name, &json!({}))];
    let (events, _) = decode(GeminiDecoder::for_run(params), &lines, Exit::default());
    let AgentEvent::ToolUse(used) = &events[1] else {
        panic!("{events:?}");
    };
    let mcp = used.mcp.as_ref()?;
    Some((mcp.server.clone(), mcp.tool.clone()))
}

#[test]
fn tool_names_are_split_by_the_longest_known_server() {
    let params = with_servers(&["my", "my_srv.x", "my_srv"]);
    let is = |server: &str, tool: &str| Some((server.to_owned(), tool.to_owned()));
    for (name, expected) in [
        ("mcp_my_srv.x_echo", is("my_srv.x", "echo")),
        ("mcp_my_srv_echo_it", is("my_srv", "echo_it")),
        ("mcp_my_echo", is("my", "echo")),
        ("mcp_my_srv_", is("my", "srv_")),
        ("mcp_your_srv_echo", is("your", "srv_echo")),
        ("mcp_mysrv_echo", is("mysrv", "echo")),
        ("mcp_alone", None),
        ("mcp__x", None),
        ("mcp_", None),
        ("mcp__", None),
        ("my_srv_echo", None),
    ] {
        assert_eq!(split(&params, name), expected, "{name}");
    }
    // The command line may also name servers.
    let mut params = ExecuteParams::new("hi");
    params.extra_args = vec!["--allowed-mcp-server-names=a, a_b".into()];
    assert_eq!(split(&params, "mcp_a_b_c"), is("a_b", "c"));
}

fn denials(params: &ExecuteParams, tool: &str) -> usize {
    let lines = [
        init(),
        call("a", tool, &json!({})),
        failed("a", "tool_not_registered", "not found"),
    ];
    let (events, _) = decode(GeminiDecoder::for_run(params), &lines, Exit::default());
    let denied = events.iter().filter(
        |event| matches!(event, AgentEvent::Permission(p) if p.decision == Decision::Denied),
    );
    denied.count()
}

#[test]
fn missing_tool_of_a_run_server_is_denied_only_with_denials() {
    let mut params = with_servers(&["my_srv"]);
    assert_eq!(denials(&params, "mcp_my_srv_echo"), 0);
    assert_eq!(denials(&params, "mcp_other_echo"), 1);
    params.denied_tools = vec!["mcp_my_srv_echo".into()];
    assert_eq!(denials(&params, "mcp_my_srv_echo"), 1);
}

/// Returns the notices of servers for this stderr of the CLI.
fn notices(params: &ExecuteParams, stderr: &str) -> Vec<String> {
    let exit = Exit {
        stderr: stderr.to_owned(),
        ..Exit::default()
    };
    let (events, _) = decode(GeminiDecoder::for_run(params), &[init()], exit);
    let notices = events.iter().filter_map(|event| match event {
        AgentEvent::Notice(notice) => {
            assert_eq!(notice.level, NoticeLevel::Warning);
            assert_eq!(notice.source, NoticeSource::Stderr);
            Some(notice.message.clone())
        }
        _ => None,
    });
    notices.collect()
}

#[test]
fn unnamed_failed_servers_give_a_single_notice_with_all_names() {
    let hint = "MCP issues detected. Run /mcp list for status.";
    // Alone, with its level, in colour, and repeated.
    for stderr in [
        format!("Warning: x\n{hint}\n{hint}\n"),
        format!("[INFO] {hint}\n"),
        format!("\u{1b}[33m{hint}\u{1b}[0m\n\u{1b}[33m[INFO] {hint}\u{1b}[0m\n"),
    ] {
        let [unnamed] = notices(&ExecuteParams::new("hi"), &stderr)
            .try_into()
            .unwrap();
        assert!(unnamed.starts_with("MCP issues detected: "), "{unnamed}");
        let [of_ours] = notices(&with_servers(&["a", "b"]), &stderr)
            .try_into()
            .unwrap();
        assert!(of_ours.ends_with("; those of this run: a, b"), "{of_ours}");
    }
    for other in ["no MCP issues detected", "[INFO] no MCP issues detected"] {
        assert_eq!(notices(&with_servers(&["a"]), other), [""; 0]);
    }
}

#[test]
fn server_named_on_stderr_is_reported_once() {
    let params = with_servers(&["tiny"]);
    let broke = "the MCP server tiny had an error in the run: Gemini CLI does not say why";
    // The CLI prints it from two places.
    let stderr = "MCP ERROR (tiny)\n[ERROR] MCP ERROR (tiny)\n";
    assert_eq!(notices(&params, stderr), [broke]);
    let coloured = "\u{1b}[31m[ERROR] MCP ERROR (tiny):\u{1b}[0m\n";
    assert_eq!(notices(&params, coloured), [broke]);
    // The other lines are from the CLI's source.
    let stderr = "[INFO] MCP issues detected. Run /mcp list for status.\n\
                MCP ERROR (my srv)\n\
                [ERROR] Error during discovery for MCP server 'x': spawn x: no such file\n\
                [ERROR] Error connecting to MCP server 'x': again\n\
                [ERROR] Error discovering tools from my srv: timed out\n\
                [ERROR] Could not configure OAuth for 'o' - please authenticate manually\n\
                [INFO] MCP server 'l' requires authentication using: /mcp auth l\n\
                [ERROR] MCP ERROR ()\n\
                [ERROR] Error connecting to MCP server '': y\n\
                say MCP ERROR (echo)\n";
    assert_eq!(
        notices(&params, stderr),
        [
            "the MCP server my srv had an error in the run: timed out",
            "the MCP server x had an error in the run: spawn x: no such file",
            "the MCP server o had an error in the run: please authenticate manually",
            "the MCP server l had an error in the run: it requires authentication using: /mcp auth l",
        ]
    );
}
