use proptest::prelude::*;
use serde_json::json;
use teamster_core::provider::{Launch, PathLocation};
use teamster_core::{ErrorCode, McpServer, PermissionMode};

use super::super::launch;
use super::*;

fn run_with(servers: Vec<McpServer>) -> ExecuteParams {
    let mut params = ExecuteParams::new("hi");
    params.env.insert("IS_SANDBOX".into(), "1".into());
    params.mcp_servers = servers;
    params
}

/// Returns the arguments after those that every run has.
fn args(launch: &Launch) -> Vec<&str> {
    let args = launch.args.iter().map(|arg| arg.to_str().unwrap());
    args.skip(4).collect()
}

fn file(launch: &Launch) -> Value {
    assert_eq!(launch.private_files.len(), 1);
    serde_json::from_slice(&launch.private_files[0].content).unwrap()
}

fn echo() -> McpServer {
    McpServer::stdio("tiny", "tiny-mcp", ["-x", ""]).env("TOKEN", "sk-1")
}

#[test]
fn servers_go_into_one_private_file_and_their_tools_are_allowed() {
    let mut docs = McpServer::http("docs", "https://example.com/mcp?a=b")
        .header("Authorization", "Bearer sk-2");
    docs.tool_timeout = Some(Duration::from_millis(2500));
    let old = McpServer::sse("old", "http://localhost:1/sse");
    let launch = launch(&run_with(vec![echo(), docs, old])).unwrap();
    assert_eq!(
        args(&launch),
        [
            "--mcp-config=",
            "--allowedTools=mcp__tiny",
            "--allowedTools=mcp__docs",
            "--allowedTools=mcp__old",
            "--",
            "hi"
        ]
    );
    assert_eq!(launch.private_files[0].location, PathLocation::Argument(4));
    assert_eq!(
        file(&launch),
        json!({"mcpServers": {
            "tiny": {"type": "stdio", "command": "tiny-mcp", "args": ["-x", ""],
                     "env": {"TOKEN": "sk-1"}, "alwaysLoad": true},
            "docs": {"type": "http", "url": "https://example.com/mcp?a=b",
                     "headers": {"Authorization": "Bearer sk-2"}, "alwaysLoad": true,
                     "timeout": 2500},
            "old": {"type": "sse", "url": "http://localhost:1/sse", "headers": {},
                    "alwaysLoad": true},
        }})
    );
    // `alwaysLoad` makes the CLI wait for the servers before its first request. The variable limits the wait.
    assert_eq!(
        launch.env,
        [("MCP_CONNECT_TIMEOUT_MS".to_owned(), "30000".to_owned())]
    );
    assert!(launch.env_merged.is_empty());
}

#[test]
fn without_servers_nothing_is_waited_for() {
    assert!(launch(&run_with(Vec::new())).unwrap().env.is_empty());
}

#[test]
fn the_servers_are_allowed_in_every_mode_and_denials_are_kept() {
    for permission in crate::CAPABILITIES.permission_modes {
        let mut params = run_with(vec![echo()]);
        params.permission = *permission;
        params.denied_tools = vec!["mcp__tiny__echo".into()];
        let launch = launch(&params).unwrap();
        let args = args(&launch);
        for arg in [
            "--allowedTools=mcp__tiny",
            "--disallowedTools=mcp__tiny__echo",
        ] {
            assert!(args.contains(&arg), "{permission:?}: {args:?}");
        }
    }
}

#[test]
fn a_read_only_run_can_wait_for_a_slow_server() {
    let mut params = run_with(vec![echo()]);
    params.permission = PermissionMode::ReadOnly;
    let launch = launch(&params).unwrap();
    let tools = args(&launch)[0];
    assert!(tools.starts_with("--tools=Read,"), "{tools}");
    assert!(tools.ends_with(",WaitForMcpServers"), "{tools}");
}

#[test]
fn strict_leaves_out_the_users_servers_also_without_any_other() {
    let mut params = run_with(Vec::new());
    assert_eq!(args(&launch(&params).unwrap()), ["--", "hi"]);
    params.mcp_strict = true;
    let none = launch(&params).unwrap();
    assert_eq!(args(&none), ["--strict-mcp-config", "--", "hi"]);
    assert!(none.private_files.is_empty());
    params.mcp_servers = vec![echo()];
    assert_eq!(
        args(&launch(&params).unwrap())[..3],
        [
            "--mcp-config=",
            "--allowedTools=mcp__tiny",
            "--strict-mcp-config"
        ]
    );
}

/// Without a flag after it, the caller's positional arguments would be read as more configurations.
#[test]
fn a_flag_follows_the_file_also_with_a_prompt_on_stdin() {
    let mut params = run_with(vec![echo()]);
    params.prompt = "a\0b".into();
    params.extra_args = vec!["word".into()];
    assert_eq!(
        args(&launch(&params).unwrap()),
        ["--mcp-config=", "--allowedTools=mcp__tiny", "word"]
    );
}

#[test]
fn denied_mcp_tool_has_the_name_that_the_cli_uses() {
    let mut server = echo();
    server.tools.except = vec!["a__b".into(), "do.it,now".into()];
    let launch = launch(&run_with(vec![server])).unwrap();
    assert_eq!(
        args(&launch)[1..4],
        [
            "--allowedTools=mcp__tiny",
            "--disallowedTools=mcp__tiny__a__b",
            "--disallowedTools=mcp__tiny__do_it_now"
        ]
    );
}

/// Measured: the CLI takes `mcp__a__b` as the tool `b` of `a`, and `mcp__x_` matches no tool of `x_`.
#[test]
fn name_with_underscores_gets_a_rule_that_matches() {
    for (name, wanted) in [
        ("a", "mcp__a"),
        ("_a", "mcp___a"),
        ("a_b-", "mcp__a_b-"),
        ("a__b", "mcp__a__b__*"),
        ("a___b", "mcp__a___b__*"),
        ("_x_", "mcp___x___*"),
        ("x__", "mcp__x____*"),
        ("x_", "mcp__x___*"),
    ] {
        assert_eq!(rule(name), wanted);
    }
}

#[test]
fn servers_that_the_cli_would_ignore_are_refused_by_name() {
    let mut hasty = echo();
    hasty.tool_timeout = Some(Duration::from_millis(999));
    let mut filtered = echo();
    filtered.tools.only = Some(vec!["a".into()]);
    let mut slow = echo();
    slow.startup_timeout = Some(Duration::from_secs(9));
    let mut elsewhere = echo();
    if let McpTransport::Stdio { cwd, .. } = &mut elsewhere.transport {
        *cwd = Some("/tmp".into());
    }
    let named = |name: &str| McpServer::stdio(name, "x", [""; 0]);
    let reserved = RESERVED.iter().map(|name| {
        let server = McpServer::stdio(*name, "x", [""; 0]);
        (server, format!("mcp_servers: {name}: name: "))
    });
    let others = [
        (hasty, "mcp_servers: tiny: tool_timeout: "),
        (filtered, "mcp_servers: tiny: tools.only: "),
        (slow, "mcp_servers: tiny: startup_timeout: "),
        (elsewhere, "mcp_servers: tiny: cwd: "),
        (named("a.b"), "mcp_servers: a.b: name: "),
        (named("_"), "mcp_servers: _: name: "),
        (named("__x"), "mcp_servers: __x: name: "),
    ];
    let others = others.map(|(server, begins)| (server, begins.to_owned()));
    for (server, begins) in reserved.chain(others) {
        let error = launch(&run_with(vec![server])).unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidParams);
        assert!(error.message.starts_with(&begins), "{error}");
    }
}

#[test]
fn a_limit_beyond_a_timer_is_the_longest_that_it_takes() {
    let mut server = echo();
    server.tool_timeout = Some(Duration::MAX);
    let launch = launch(&run_with(vec![server])).unwrap();
    assert_eq!(file(&launch)["mcpServers"]["tiny"]["timeout"], i32::MAX);
}

/// Simulates one pass of the CLI's expansion of `${NAME}` and `${NAME:-default}`. All variables are set, except the
/// one used for escaping.
fn expanded(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let found = rest.find('}').and_then(|end| {
            let inner = &rest[2..end];
            let name = inner.split_once(":-").map_or(inner, |(name, _)| name);
            let first = name.chars().next()?;
            let is_name = (first.is_ascii_alphabetic() || first == '_')
                && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            is_name.then_some((name, inner, end))
        });
        match found {
            Some(("TEAMSTER_MCP_DOLLAR", inner, end)) => {
                out.push_str(inner.split_once(":-").unwrap().1);
                rest = &rest[end + 1..];
            }
            Some((_, _, end)) => {
                out.push_str("<expanded>");
                rest = &rest[end + 1..];
            }
            None => {
                out.push_str("${");
                rest = &rest[2..];
            }
        }
    }
    out + rest
}

proptest! {
    #[test]
    fn every_value_reaches_the_cli_and_no_secret_is_an_argument(
        arg in "(\\$?\\{?[A-Z_]{1,3}(:-)?\\}?|[^\0]){0,8}",
        secret in "(\\$\\{[A-Z]{1,2}\\}|[^\0]){0,5}",
    ) {
        let value = format!("secret{secret}");
        let header: String = value.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
        let servers = vec![
            McpServer::stdio("a", "cmd${HOME}", [arg.clone()]).env("KEY", value.clone()),
            McpServer::http("b", "http://x/${HOME}").header("X-Key", header.clone()),
            McpServer::sse("c", "http://x/${HOME}").header("X-Key", header.clone()),
        ];
        let launch = launch(&run_with(servers)).unwrap();
        let file = file(&launch);
        let text = |of: &Value| of.as_str().unwrap().to_owned();
        let servers = &file["mcpServers"];
        prop_assert_eq!(expanded(&text(&servers["a"]["command"])), "cmd${HOME}");
        prop_assert_eq!(expanded(&text(&servers["a"]["args"][0])), arg);
        prop_assert_eq!(expanded(&text(&servers["a"]["env"]["KEY"])), value);
        for server in [&servers["b"], &servers["c"]] {
            prop_assert_eq!(expanded(&text(&server["url"])), "http://x/${HOME}");
            let sent = expanded(&expanded(&text(&server["headers"]["X-Key"])));
            prop_assert_eq!(&sent, &header);
        }
        for arg in &launch.args {
            prop_assert!(!arg.to_str().unwrap().contains("secret"));
        }
        prop_assert!(launch.env_merged.is_empty());
        prop_assert_eq!(launch.env, [("MCP_CONNECT_TIMEOUT_MS".to_owned(), "30000".to_owned())]);
    }
}
