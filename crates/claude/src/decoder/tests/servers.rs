//! MCP servers: their names in tool names, and notices about servers that are missing.

use serde_json::{Value, json};
use teamster_core::provider::Exit;
use teamster_core::{AgentEvent, CliProvider, ExecuteParams, McpServer, Notice, PermissionEvent};
use teamster_testkit::events::payloads;
use teamster_testkit::replay::decode;

use super::super::ClaudeDecoder;
use super::{SESSION, complete, end, names, user};

fn with_servers(servers: &[&str]) -> ExecuteParams {
    let mut params = ExecuteParams::new("hi");
    let server = |name: &&str| McpServer::stdio(*name, "x", [""; 0]);
    params.mcp_servers = servers.iter().map(server).collect();
    params
}

/// Returns the parameters for a replay of this command line.
fn recorded(argv: &[&str]) -> ExecuteParams {
    let argv: Vec<_> = argv.iter().map(|&word| word.to_owned()).collect();
    let mut params = ExecuteParams::new("hi");
    crate::Claude.recorded_params(&argv, &mut params);
    params
}

fn run(params: &ExecuteParams, lines: &[String]) -> Vec<AgentEvent> {
    decode(ClaudeDecoder::for_run(params), lines, Exit::new(0)).0
}

fn run_with(servers: &[&str], lines: &[String]) -> Vec<AgentEvent> {
    run(&with_servers(servers), lines)
}

fn call(name: &str) -> String {
    complete(
        "m",
        &json!({"type": "tool_use", "id": name, "name": name, "input": {}}),
    )
}

/// Returns the result of a call to a tool that the agent does not have.
fn no_such_tool(name: &str, why: &str) -> String {
    let content =
        format!("<tool_use_error>Error: No such tool available: {name}{why}</tool_use_error>");
    user(
        &json!([{"type": "tool_result", "tool_use_id": name, "content": content, "is_error": true}]),
    )
}

/// Returns server and tool of each call, if known.
fn owners(params: &ExecuteParams, list: &Value, calls: &[&str]) -> Vec<Option<String>> {
    let lines: Vec<_> = [init(list)]
        .into_iter()
        .chain(calls.iter().map(|name| call(name)))
        .chain([end(&json!({}))])
        .collect();
    let events = run(params, &lines);
    let found = events.into_iter().filter_map(|event| match event {
        AgentEvent::ToolUse(tool) => Some(tool.mcp.map(|mcp| is(&mcp.server, &mcp.tool))),
        _ => None,
    });
    found.collect()
}

fn is(server: &str, tool: &str) -> String {
    format!("{tool} of {server}")
}

fn init(servers: &Value) -> String {
    json!({"type": "system", "subtype": "init", "session_id": SESSION, "model": "m",
           "tools": [], "mcp_servers": servers})
    .to_string()
}

fn warnings(events: &[AgentEvent]) -> Vec<&str> {
    payloads::<Notice>(events)
        .map(|notice| notice.message.as_str())
        .collect()
}

#[test]
fn the_server_of_a_tool_is_a_known_one_the_longest_first() {
    // The run requests `a__b` and `x_`, which are not on the CLI's list; `u__v` is a server of the user.
    let list = json!([{"name": "a", "status": "connected"},
                      {"name": "u__v", "status": "connected"}]);
    let calls = [
        "mcp__a__b__c",
        "mcp__a__x",
        "mcp__u__v__w",
        "mcp__x___y",
        "mcp__new__x__y",
    ];
    assert_eq!(
        owners(&with_servers(&["a__b", "x_"]), &list, &calls),
        [
            Some(is("a__b", "c")),
            Some(is("a", "x")),
            Some(is("u__v", "w")),
            Some(is("x_", "y")),
            Some(is("new", "x__y"))
        ]
    );
}

#[test]
fn a_server_that_is_not_up_owns_no_tool_that_another_may() {
    let owner = |first: &str, second: &str| {
        let list = json!([{"name": "a", "status": first}, {"name": "a__b", "status": second}]);
        let params = with_servers(&["a", "a__b"]);
        owners(&params, &list, &["mcp__a__b__c"]).remove(0)
    };
    for may in ["connected", "pending", "needs-auth"] {
        for cannot in ["failed", "disabled"] {
            assert_eq!(owner(may, cannot), Some(is("a", "b__c")), "{may} {cannot}");
            assert_eq!(owner(cannot, may), Some(is("a__b", "c")), "{cannot} {may}");
        }
        assert_eq!(owner(may, "connected"), Some(is("a__b", "c")), "{may}");
    }
    assert_eq!(owner("failed", "failed"), Some(is("a__b", "c")));
    // Names that are equal in tool names.
    let list = json!([{"name": "my.srv", "status": "failed"},
                      {"name": "my srv", "status": "connected"},
                      {"name": "my:srv", "status": "failed"}]);
    let none = ExecuteParams::new("hi");
    assert_eq!(
        owners(&none, &list, &["mcp__my_srv__x"]),
        [Some(is("my srv", "x"))]
    );
}

#[test]
fn the_server_of_a_tool_is_found_by_the_cli_s_form_of_its_name() {
    let up = |name: &str| json!({"name": name, "status": "connected"});
    let list: Vec<_> = [
        "claude.ai Foo (Beta)",
        "claude.ai Google Drive",
        "my server (Beta)",
        "🚀x",
        "é",
        "🚀",
        "___",
    ]
    .into_iter()
    .map(up)
    .collect();
    let cases = [
        (
            "mcp__claude_ai_Foo_Beta__x",
            Some(is("claude.ai Foo (Beta)", "x")),
        ),
        (
            "mcp__claude_ai_Google_Drive__find__it",
            Some(is("claude.ai Google Drive", "find__it")),
        ),
        (
            "mcp__my_server__Beta___x",
            Some(is("my server (Beta)", "x")),
        ),
        ("mcp____x__t", Some(is("🚀x", "t"))),
        ("mcp_____t", Some(is("é", "t"))),
        // It is the longest name in tool names, though not in bytes.
        ("mcp_______t", Some(is("___", "t"))),
        // A server without a name never matches.
        ("mcp____y__t", None),
        ("mcp____", None),
        ("mcp__", None),
        ("mcp__only", None),
    ];
    let calls = cases.each_ref().map(|(name, _)| *name);
    let found = owners(&ExecuteParams::new("hi"), &json!(list), &calls);
    assert_eq!(found, cases.map(|(_, expected)| expected));
}

#[test]
fn odd_entry_in_the_list_of_servers_is_skipped() {
    let list = init(&json!([
        {"name": "a__b", "status": "connected"}, {"name": "q", "status": null}, 7,
        {"status": "failed"}, {"name": ["x"], "status": "failed"},
        {"name": "bad", "status": "failed"},
    ]));
    let events = run_with(&["q"], &[list, call("mcp__a__b__c"), end(&json!({}))]);
    let AgentEvent::SessionStarted(session) = &events[0] else {
        panic!("{events:?}");
    };
    let listed = session.mcp_servers.as_deref().unwrap().iter();
    let listed: Vec<_> = listed.map(|server| server.name.as_str()).collect();
    assert_eq!(listed, ["a__b", "bad"]);
    // A notice that `q` is missing from the list would be wrong.
    assert_eq!(
        warnings(&events),
        ["the MCP server bad failed to start, so its tools are missing"]
    );
    let AgentEvent::ToolUse(tool) = &events[2] else {
        panic!("{events:?}");
    };
    assert_eq!(tool.mcp.as_ref().unwrap().server, "a__b");
}

#[test]
fn a_server_that_fails_again_is_not_reported_again() {
    let is = |status: &str| init(&json!([{"name": "f", "status": status}]));
    let states = ["failed", "connected", "failed", "needs-auth", "failed"];
    let lines = states.map(|status| [is(status), end(&json!({}))]);
    let events = run_with(&[], &lines.concat());
    assert_eq!(
        warnings(&events),
        [
            "the MCP server f failed to start, so its tools are missing",
            "the MCP server f needs a login first, so its tools are missing",
        ]
    );
}

/// Returns the types of permission and result events, in order.
fn answers(events: &[AgentEvent]) -> Vec<&'static str> {
    let mut names = names(events);
    names.retain(|name| matches!(*name, "permission" | "tool_result"));
    names
}

#[test]
fn tool_of_a_denied_server_is_denied_once_before_its_result() {
    let tool = "mcp__tiny__env";
    let deny = |rules: &[&str]| {
        let mut params = with_servers(&["tiny"]);
        params.denied_tools = rules.iter().map(|&rule| rule.to_owned()).collect();
        params
    };
    let mut left_out = with_servers(&["other", "tiny"]);
    left_out.mcp_servers[1].tools.except = vec!["env".into()];
    let mut by_hand = ExecuteParams::new("hi");
    by_hand.extra_args = vec!["--disallowed-tools=Bash(x y),mcp__tiny".into()];
    let denying = [
        left_out,
        by_hand,
        deny(&["Bash", tool]),
        deny(&["mcp__tiny"]),
        deny(&["mcp__tiny__*"]),
        deny(&["mcp__tiny__e*v"]),
        deny(&["Bash mcp__tiny__env"]),
        recorded(&["claude", "-p", "--disallowedTools", "Bash", tool, "--", "x"]),
        recorded(&["claude", "-p", "--disallowedTools=mcp__tiny", "x"]),
    ];
    for why in [
        "",
        ". mcp__tiny__env exists but is not enabled in this context.",
    ] {
        let lines = [
            init(&json!([])),
            call(tool),
            no_such_tool(tool, why),
            end(&json!({"permission_denials": [{"tool_name": tool, "tool_use_id": tool}]})),
        ];
        for params in &denying {
            let events = run(params, &lines);
            assert_eq!(
                answers(&events),
                ["permission", "tool_result"],
                "{params:?}"
            );
            let denied = payloads::<PermissionEvent>(&events).next();
            let denied = denied.unwrap();
            assert_eq!(denied.tool_name, tool);
            assert_eq!(denied.tool_id.as_deref(), Some(tool));
            let reason = denied.reason.as_deref().unwrap();
            assert!(reason.contains("No such tool available"), "{reason}");
        }
    }
    // Without a rule that denies it, the tool is just missing.
    let lines = [
        init(&json!([])),
        call(tool),
        no_such_tool(tool, ""),
        end(&json!({})),
    ];
    for params in [
        deny(&[]),
        deny(&[
            "mcp__tin",
            "mcp__tiny__en",
            "mcp__tiny__env(x)",
            "mcp__tiny__*x",
        ]),
        deny(&["mcp__tiny__env__", "Bash"]),
        recorded(&["claude", "-p", "--", "--disallowedTools", tool]),
        recorded(&["claude", "--disallowedTools", "Bash", "--verbose", tool]),
    ] {
        assert_eq!(
            answers(&run(&params, &lines)),
            ["tool_result"],
            "{params:?}"
        );
    }
    // The tool is denied, but the call failed for another reason, or did not fail.
    for (is_error, content) in [
        (true, "spawn failed"),
        (false, "No such tool available: mcp__tiny__env"),
    ] {
        let block = json!([{"type": "tool_result", "tool_use_id": tool, "content": content,
                            "is_error": is_error}]);
        let lines = [init(&json!([])), call(tool), user(&block), end(&json!({}))];
        assert_eq!(
            answers(&run(&deny(&[tool]), &lines)),
            ["tool_result"],
            "{content}"
        );
    }
}

#[test]
fn servers_of_a_recorded_command_line_are_known_and_not_missed() {
    let config = r#"{"mcpServers": {"a__b": {"command": "x"}, "down": {"command": "y"}}}"#;
    for argv in [
        &[
            "claude",
            "-p",
            "--mcp-config",
            "/tmp/x.json",
            config,
            "--",
            "x",
        ][..],
        &["claude", "-p", &format!("--mcp-config={config}"), "x"],
    ] {
        let params = recorded(argv);
        let found = owners(&params, &json!([]), &["mcp__a__b__c", "mcp__c__d__e"]);
        assert_eq!(
            found,
            [Some(is("a__b", "c")), Some(is("c", "d__e"))],
            "{argv:?}"
        );
        let lines = [init(&json!([])), end(&json!({}))];
        assert_eq!(warnings(&run(&params, &lines)), [""; 0], "{argv:?}");
    }
}

#[test]
fn each_server_that_did_not_come_up_is_reported_once() {
    let list = init(&json!([
        {"name": "good", "status": "connected"}, {"name": "slow", "status": "pending"},
        {"name": "bad", "status": "failed"}, {"name": "locked", "status": "needs-auth"},
        {"name": "off", "status": "disabled"}, {"name": "theirs", "status": "disabled"},
    ]));
    let again = init(&json!([
        {"name": "bad", "status": "failed"}, {"name": "slow", "status": "failed"},
    ]));
    let lines = [
        list.clone(),
        end(&json!({})),
        list,
        again.clone(),
        again,
        end(&json!({})),
    ];
    let events = run_with(&["good", "gone", "slow", "bad", "off", "lost"], &lines);
    let notice =
        |name: &str, why: &str| format!("the MCP server {name} {why}, so its tools are missing");
    assert_eq!(
        warnings(&events),
        [
            notice("bad", "failed to start"),
            notice("locked", "needs a login first"),
            notice("off", "is switched off"),
            notice("gone", "was not loaded by the CLI"),
            notice("lost", "was not loaded by the CLI"),
            notice("slow", "failed to start"),
        ]
    );
}

#[test]
fn a_run_without_a_first_line_reports_nothing_of_servers() {
    assert!(warnings(&run_with(&["a"], &[end(&json!({}))])).is_empty());
}
