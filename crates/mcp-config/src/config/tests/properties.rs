use std::collections::BTreeMap;

use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use teamster_core::McpTools;

use super::*;

/// Any text that `parse` can return: without a NUL byte.
fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[^\0]{0,12}", "[$}{:A-Z-]{0,8}", Just("${HOME}".to_owned())]
}

fn command() -> impl Strategy<Value = String> {
    text().prop_filter("a command is not empty", |text| !text.trim().is_empty())
}

fn transport() -> impl Strategy<Value = McpTransport> {
    let env = btree_map("[^=\0]{1,6}", text(), 0..3);
    let headers = || btree_map("[A-Za-z-]{1,6}", "[^\r\n\0]{0,9}", 0..3);
    let url = || "https?://[a-z]{1,5}(/[a-z$}{]{0,9})?";
    prop_oneof![
        (command(), vec(text(), 0..3), env, option::of(text())).prop_map(
            |(command, args, env, cwd)| McpTransport::Stdio {
                command,
                args,
                env,
                cwd: cwd.map(Into::into),
            }
        ),
        (url(), headers()).prop_map(|(url, headers)| McpTransport::Http { url, headers }),
        (url(), headers()).prop_map(|(url, headers)| McpTransport::Sse { url, headers }),
    ]
}

fn limit() -> impl Strategy<Value = Option<Duration>> {
    option::of((1..1u64 << 42).prop_map(Duration::from_millis))
}

fn tools() -> impl Strategy<Value = McpTools> {
    let names = || vec("[a-z*_]{1,5}", 0..3);
    (option::of(names()), names()).prop_map(|(only, except)| {
        let mut tools = McpTools::default();
        tools.only = only;
        tools.except = except;
        tools
    })
}

fn servers() -> impl Strategy<Value = Vec<McpServer>> {
    let server = (transport(), limit(), limit(), tools());
    // This form accepts control characters. Only the CLIs do not.
    btree_map("[^\0]{1,6}", server, 0..4).prop_map(|servers| {
        let servers = servers.into_iter();
        let servers = servers.map(|(name, (transport, startup, tool, tools))| {
            let mut server = McpServer::new(name, transport);
            server.startup_timeout = startup;
            server.tool_timeout = tool;
            server.tools = tools;
            server
        });
        servers.collect()
    })
}

/// JSON of all shapes with meaningful names.
fn json() -> impl Strategy<Value = serde_json::Value> {
    let name = prop_oneof![
        "(mcpServers|servers|mcp|a|b)",
        "(type|command|args|env|environment|cwd|url|httpUrl|headers|timeout|tools|disabled)",
        "(startup_timeout_sec|tool_timeout_sec|excludeTools|enabled)",
    ];
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<f64>().prop_map(Into::into),
        "(stdio|http|sse|http://h|[$]\\{A\\}|[$]\\{A:-b\\}|x)".prop_map(Into::into),
    ];
    leaf.prop_recursive(5, 40, 6, move |inner| {
        let map = btree_map(name.clone(), inner.clone(), 0..5).prop_map(BTreeMap::into_iter);
        prop_oneof![
            vec(inner, 0..4).prop_map(Into::into),
            map.prop_map(serde_json::Value::from_iter),
        ]
    })
}

proptest! {
    #[test]
    fn any_text_is_taken_or_refused(text in any::<String>()) {
        let _ = parse(&text, &variables);
        let _ = parse(&format!("{{\"mcpServers\": {text}"), &variables);
    }

    #[test]
    fn any_json_is_taken_or_refused(value in json(), cut in 0..400usize) {
        let text = value.to_string();
        if let Ok(parsed) = parse(&text, &variables) {
            for server in parsed.servers {
                prop_assert_eq!(server.problem(), None);
            }
        }
        let cut = text.char_indices().map(|(at, _)| at).nth(cut).unwrap_or(text.len());
        let _ = parse(&text[..cut], &variables);
    }

    #[test]
    fn written_configurations_can_be_read_again(servers in servers()) {
        let text = to_json(&servers).to_string();
        let parsed = parse(&text, &|_| None).map_err(|e| TestCaseError::fail(format!("{e}: {text}")))?;
        prop_assert_eq!(parsed.servers, servers);
        prop_assert!(parsed.ignored.is_empty());
    }
}
