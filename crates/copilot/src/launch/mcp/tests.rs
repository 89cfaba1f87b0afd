use std::time::Duration;

use proptest::prelude::*;
use teamster_core::ErrorCode;
use teamster_core::provider::{Launch, PathLocation};

use super::super::launch;
use super::*;

fn run_with(servers: Vec<McpServer>) -> ExecuteParams {
    let mut params = ExecuteParams::new("hi");
    params.mcp_servers = servers;
    params
}

/// Returns the arguments after those of every run.
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
            "--additional-mcp-config=@",
            "--allow-tool=tiny",
            "--enable-mcp-server=tiny",
            "--allow-tool=docs",
            "--enable-mcp-server=docs",
            "--allow-tool=old",
            "--enable-mcp-server=old",
        ]
    );
    assert_eq!(launch.private_files[0].location, PathLocation::Argument(4));
    assert_eq!(
        file(&launch),
        json!({"mcpServers": {
            "tiny": {"type": "stdio", "command": "tiny-mcp", "args": ["-x", ""],
                     "env": {"TOKEN": "sk-1"}, "tools": ["*"]},
            "docs": {"type": "http", "url": "https://example.com/mcp?a=b",
                     "headers": {"Authorization": "Bearer sk-2"}, "tools": ["*"], "timeout": 2500},
            "old": {"type": "sse", "url": "http://localhost:1/sse", "headers": {}, "tools": ["*"]},
        }})
    );
    assert!(launch.env.is_empty() && launch.env_merged.is_empty());
}

#[test]
fn without_servers_there_is_no_file_and_no_flag() {
    let launch = launch(&run_with(Vec::new())).unwrap();
    assert!(launch.private_files.is_empty());
    assert_eq!(args(&launch), [""; 0]);
}

#[test]
fn the_servers_are_allowed_in_every_mode_and_denials_are_kept() {
    for permission in crate::CAPABILITIES.permission_modes {
        let mut params = run_with(vec![echo()]);
        params.permission = *permission;
        params.denied_tools = vec!["tiny(echo)".into()];
        let launch = launch(&params).unwrap();
        let args = args(&launch);
        for arg in ["--allow-tool=tiny", "--deny-tool=tiny(echo)"] {
            assert!(args.contains(&arg), "{permission:?}: {args:?}");
        }
    }
}

#[test]
fn a_server_works_in_its_directory_relative_to_the_agents() {
    let at = |dir: &str| {
        let mut server = echo();
        if let McpTransport::Stdio { cwd, .. } = &mut server.transport {
            *cwd = Some(dir.into());
        }
        let mut params = run_with(vec![server]);
        params.working_directory = Some("/work/dir".into());
        file(&launch(&params).unwrap())["mcpServers"]["tiny"]["cwd"].clone()
    };
    assert_eq!(at("/srv"), "/srv");
    assert_eq!(at("sub"), "/work/dir/sub");
    assert_eq!(at("$HOME"), "/work/dir/${TEAMSTER_MCP_DOLLAR:-$}HOME");
}

#[test]
fn only_some_tools_are_a_list_in_the_file() {
    let mut server = echo();
    server.tools.only = Some(vec!["a.b".into(), "c".into(), "d".into()]);
    server.tools.except = vec!["c".into()];
    let launch = launch(&run_with(vec![server])).unwrap();
    assert_eq!(
        file(&launch)["mcpServers"]["tiny"]["tools"],
        json!(["a.b", "d"])
    );
    assert_eq!(args(&launch).len(), 3);
}

#[test]
fn excluded_tool_has_the_name_that_the_cli_uses() {
    let mut server = echo();
    server.tools.except = vec!["a__b".into(), "do.it,now".into(), "x".repeat(99)];
    let launch = launch(&run_with(vec![server])).unwrap();
    assert_eq!(
        args(&launch)[3..],
        [
            "--excluded-tools=tiny-a__b",
            "--excluded-tools=tiny-do-it-now",
            &format!("--excluded-tools=tiny-{}", "x".repeat(59)),
        ]
    );
    assert_eq!(file(&launch)["mcpServers"]["tiny"]["tools"], json!(["*"]));
}

#[test]
fn ambiguous_values_are_refused_by_name() {
    let named = |name: &str| McpServer::stdio(name, "x", [""; 0]);
    let mut slow = echo();
    slow.startup_timeout = Some(Duration::from_secs(9));
    for (server, begins) in [
        (named("shell"), "mcp_servers: shell: name: "),
        (named("Write"), "mcp_servers: Write: name: "),
        (named("url"), "mcp_servers: url: name: "),
        (named("WorkIQ"), "mcp_servers: WorkIQ: name: "),
        (
            named("github-mcp-server"),
            "mcp_servers: github-mcp-server: name: ",
        ),
        (named(&"x".repeat(49)), "mcp_servers: xxxxx"),
        (named("a.b"), "mcp_servers: a.b: name: "),
        (slow, "mcp_servers: tiny: startup_timeout: "),
    ] {
        let error = launch(&run_with(vec![server])).unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidParams);
        assert!(error.message.starts_with(begins), "{error}");
    }
    assert!(launch(&run_with(vec![named(&"x".repeat(48))])).is_ok());
    let mut strict = run_with(vec![echo()]);
    strict.mcp_strict = true;
    let error = launch(&strict).unwrap_err();
    assert!(error.message.starts_with("mcp_strict: "), "{error}");
}

#[test]
fn a_limit_beyond_the_cli_s_maximum_is_the_maximum() {
    let mut server = echo();
    server.tool_timeout = Some(Duration::MAX);
    let launch = launch(&run_with(vec![server])).unwrap();
    assert_eq!(file(&launch)["mcpServers"]["tiny"]["timeout"], u32::MAX);
}

/// Expands a text like the CLI: `$NAME`, `${NAME}` and `${NAME:-default}` are variables. All are set but ours.
fn expanded(text: &str) -> String {
    let is_name = |name: &str| {
        let first = name.chars().next();
        first.is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let braced = rest.strip_prefix('{').and_then(|rest| rest.split_once('}'));
        if let Some((inner, after)) = braced {
            let (name, default) = inner.split_once(":-").unwrap_or((inner, "none"));
            if is_name(name) {
                let ours = name == "TEAMSTER_MCP_DOLLAR";
                out.push_str(if ours { default } else { "<expanded>" });
                rest = after;
                continue;
            }
        }
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        let name = &rest[..end.unwrap_or(rest.len())];
        if is_name(name) {
            out.push_str("<expanded>");
            rest = &rest[name.len()..];
        } else {
            out.push('$');
        }
    }
    out + rest
}

#[test]
fn a_value_that_the_cli_would_trim_is_refused() {
    let server = |value: &str| McpServer::stdio("a", "cmd", ["x"]).env("K", value);
    for value in [" $HOME", "$\n", "a $x\u{feff}"] {
        let error = launch(&run_with(vec![server(value)])).unwrap_err();
        let begin = "mcp_servers: a: env.K: GitHub Copilot CLI drops white space";
        assert!(error.message.starts_with(begin), "{error}");
    }
    for value in [" a ", "a $x", "\n"] {
        assert!(launch(&run_with(vec![server(value)])).is_ok(), "{value:?}");
    }
}

proptest! {
    #[test]
    fn every_value_reaches_the_cli_and_no_secret_is_an_argument(
        arg in "(\\$?\\{?[A-Z_]{1,3}(:-)?\\}?|[^\0]){0,8}",
        secret in "(\\$\\{[A-Z]{1,2}\\}|\\$[A-Z]|[^\0]){0,5}",
    ) {
        let value = format!("secret{secret}\"");
        let header: String = value.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
        let servers = vec![
            McpServer::stdio("a", "cmd$HOME", [arg.clone()]).env("KEY", value.clone()),
            McpServer::http("b", "http://x/${HOME}").header("X-Key", header.clone()),
            McpServer::sse("c", "http://x/$HOME").header("X-Key", header.clone()),
        ];
        let launch = launch(&run_with(servers)).unwrap();
        let file = file(&launch);
        let text = |of: &Value| expanded(of.as_str().unwrap());
        let servers = &file["mcpServers"];
        prop_assert_eq!(text(&servers["a"]["command"]), "cmd$HOME");
        prop_assert_eq!(text(&servers["a"]["args"][0]), arg);
        prop_assert_eq!(text(&servers["a"]["env"]["KEY"]), value);
        prop_assert_eq!(text(&servers["b"]["url"]), "http://x/${HOME}");
        prop_assert_eq!(text(&servers["c"]["url"]), "http://x/$HOME");
        for server in ["b", "c"] {
            prop_assert_eq!(&text(&servers[server]["headers"]["X-Key"]), &header);
        }
        for arg in &launch.args {
            prop_assert!(!arg.to_str().unwrap().contains("secret"));
        }
        prop_assert!(launch.env.is_empty() && launch.env_merged.is_empty());
    }
}
