//! MCP servers, known by name and not.

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
    let (events, _) = decode(GeminiDecoder::new(params), &lines, Exit::default());
    let AgentEvent::ToolUse(used) = &events[1] else {
        panic!("{events:?}");
    };
    let mcp = used.mcp.as_ref()?;
    Some((mcp.server.clone(), mcp.tool.clone()))
}

#[test]
fn names_of_tools_are_split_with_the_servers_that_are_known_longest_first() {
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
        ("my_srv_echo", None),
    ] {
        assert_eq!(split(&params, name), expected, "{name}");
    }
    // A command line may name them as well.
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
    let (events, _) = decode(GeminiDecoder::new(params), &lines, Exit::default());
    let denied = events.iter().filter(
        |event| matches!(event, AgentEvent::Permission(p) if p.decision == Decision::Denied),
    );
    denied.count()
}

#[test]
fn a_tool_of_a_server_of_the_run_that_is_not_there_is_denied_only_if_something_is() {
    let mut params = with_servers(&["my_srv"]);
    assert_eq!(denials(&params, "mcp_my_srv_echo"), 0);
    assert_eq!(denials(&params, "mcp_other_echo"), 1);
    params.denied_tools = vec!["mcp_my_srv_echo".into()];
    assert_eq!(denials(&params, "mcp_my_srv_echo"), 1);
}

#[test]
fn servers_that_failed_are_one_notice_with_those_of_the_run() {
    let notices = |params: &ExecuteParams, stderr: &str| {
        let exit = Exit {
            stderr: stderr.to_owned(),
            ..Exit::default()
        };
        let (events, _) = decode(GeminiDecoder::new(params), &[init()], exit);
        let notices = events.iter().filter_map(|event| match event {
            AgentEvent::Notice(notice) => {
                assert_eq!(notice.level, NoticeLevel::Warning);
                assert_eq!(notice.source, NoticeSource::Stderr);
                Some(notice.message.clone())
            }
            _ => None,
        });
        notices.collect::<Vec<_>>()
    };
    let said = "Warning: x\nMCP issues detected. Run /mcp list for status.\nMCP issues detected.\n";
    let [of_nobody] = notices(&ExecuteParams::new("hi"), said).try_into().unwrap();
    assert!(
        of_nobody.starts_with("MCP issues detected: "),
        "{of_nobody}"
    );
    let [of_ours] = notices(&with_servers(&["a", "b"]), said)
        .try_into()
        .unwrap();
    assert!(of_ours.ends_with("; those of this run: a, b"), "{of_ours}");
    assert_eq!(
        notices(&with_servers(&["a"]), "no MCP issues detected"),
        [""; 0]
    );
}
