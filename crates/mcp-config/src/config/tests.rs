use std::time::Duration;

use teamster_core::McpTransport;

use super::*;

mod properties;

/// Returns the variables of these tests.
fn variables(name: &str) -> Option<String> {
    match name {
        "TOKEN" => Some("sk-1".into()),
        "EMPTY" => Some(String::new()),
        "HOST" => Some("example.com".into()),
        _ => None,
    }
}

fn read(text: &str) -> Parsed {
    parse(text, &variables).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn error(text: &str) -> String {
    match parse(text, &variables) {
        Ok(parsed) => panic!("{parsed:?}"),
        Err(error) => error.to_string(),
    }
}

/// Parses the server `s` with these fields.
fn one(fields: &str) -> McpServer {
    let parsed = read(&format!(r#"{{"mcpServers": {{"s": {{{fields}}}}}}}"#));
    assert_eq!(parsed.ignored, [""; 0], "{fields}");
    let [server] = <[McpServer; 1]>::try_from(parsed.servers).unwrap();
    server
}

fn error_of(fields: &str) -> String {
    error(&format!(r#"{{"mcpServers": {{"s": {{{fields}}}}}}}"#))
}

const NO_ARGS: [&str; 0] = [];

#[test]
fn the_servers_are_found_in_every_wrapping() {
    let expected = [McpServer::stdio("a", "x", NO_ARGS)];
    for text in [
        r#"{"mcpServers": {"a": {"command": "x"}}}"#,
        r#"{"theme": "dark", "mcpServers": {"a": {"command": "x"}}, "servers": {"b": {}}}"#,
        r#"{"inputs": [], "servers": {"a": {"command": "x"}}}"#,
        r#"{"$schema": "https://opencode.ai/config.json", "mcp": {"a": {"command": ["x"]}}}"#,
        r#"{"mcp": {"servers": {"a": {"command": "x"}}}}"#,
        r#"{"a": {"command": "x"}}"#,
        r#"{"$schema": "https://example.com", "a": {"command": "x"}}"#,
        "\u{feff}{\r\n// A comment\r\n\"a\": {\"command\": \"x\",},\r\n/* and another */}",
    ] {
        assert_eq!(read(text).servers, expected, "{text}");
    }
}

#[test]
fn a_server_may_have_the_name_of_a_wrapping() {
    for name in ["servers", "mcp"] {
        let expected = [McpServer::stdio(name, "x", NO_ARGS)];
        let bare = format!(r#"{{"{name}": {{"command": "x"}}}}"#);
        assert_eq!(read(&bare).servers, expected);
        let wrapped = format!(r#"{{"mcpServers": {bare}}}"#);
        assert_eq!(read(&wrapped).servers, expected);
        let wrapped = format!(r#"{{"mcp": {bare}}}"#);
        if name == "mcp" {
            assert_eq!(read(&wrapped).servers, expected);
        }
    }
    assert_eq!(read("{}").servers, []);
    assert_eq!(read(r#"{"mcpServers": {}}"#).servers, []);
}

#[test]
fn every_transport_has_its_names() {
    for (fields, expected) in [
        (r#""command": "x""#, "stdio"),
        (r#""type": "stdio", "command": "x""#, "stdio"),
        (r#""type": "local", "command": ["x"]"#, "stdio"),
        (r#""url": "http://h""#, "http"),
        (r#""httpUrl": "http://h""#, "http"),
        (r#""serverUrl": "http://h""#, "http"),
        (r#""type": "http", "url": "http://h""#, "http"),
        (r#""type": "streamable-http", "url": "http://h""#, "http"),
        (r#""type": "streamableHttp", "url": "http://h""#, "http"),
        (r#""type": "remote", "url": "http://h""#, "http"),
        (r#""type": "sse", "url": "http://h""#, "sse"),
    ] {
        assert_eq!(one(fields).transport.as_str(), expected, "{fields}");
    }
}

#[test]
fn a_command_is_a_text_or_a_list() {
    let expected = McpServer::stdio("s", "x", ["-a", "b c"]);
    assert_eq!(one(r#""command": "x", "args": ["-a", "b c"]"#), expected);
    assert_eq!(one(r#""command": ["x", "-a", "b c"]"#), expected);
    assert_eq!(one(r#""command": ["x", "-a"], "args": ["b c"]"#), expected);
}

#[test]
fn null_field_is_absent() {
    let expected = McpServer::stdio("s", "x", NO_ARGS);
    let null =
        r#""command": "x", "args": null, "env": null, "url": null, "type": null, "odd": null"#;
    assert_eq!(one(null), expected);
}

#[test]
fn every_field_is_read() {
    let server = one(r#"
        "command": "x", "environment": {"A": "1"}, "cwd": "/w", "enabled": true, "disabled": false,
        "startup_timeout_sec": 1.5, "timeout": 2500, "tools": ["a"], "disabled_tools": ["b"],
        "trust": true, "description": "what it is for""#);
    let mut expected = McpServer::stdio("s", "x", NO_ARGS).env("A", "1");
    if let McpTransport::Stdio { cwd, .. } = &mut expected.transport {
        *cwd = Some("/w".into());
    }
    expected.startup_timeout = Some(Duration::from_millis(1500));
    expected.tool_timeout = Some(Duration::from_millis(2500));
    expected.tools.only = Some(vec!["a".into()]);
    expected.tools.except = vec!["b".into()];
    assert_eq!(server, expected);

    let server = one(r#""type": "sse", "url": "https://h/x", "headers": {"X-A": "1"}"#);
    let expected = McpServer::sse("s", "https://h/x");
    assert_eq!(server, expected.header("X-A", "1"));
}

#[test]
fn a_filter_of_tools_has_many_names() {
    for name in ["tools", "includeTools", "enabled_tools"] {
        let only = one(&format!(r#""command": "x", "{name}": ["a", "b"]"#))
            .tools
            .only;
        assert_eq!(only, Some(vec!["a".to_owned(), "b".to_owned()]));
        let none = one(&format!(r#""command": "x", "{name}": []"#)).tools.only;
        assert_eq!(none, Some(Vec::new()));
    }
    for name in ["excludeTools", "disabled_tools"] {
        let except = one(&format!(r#""command": "x", "{name}": ["a"]"#))
            .tools
            .except;
        assert_eq!(except, ["a"]);
    }
    assert_eq!(one(r#""command": "x", "tools": ["*"]"#).tools.only, None);
    let named = one(r#""command": "x", "includeTools": ["*"]"#).tools.only;
    assert_eq!(named, Some(vec!["*".to_owned()]));
}

#[test]
fn limits_of_time_are_seconds_or_milliseconds() {
    let tool = |fields: &str| one(&format!(r#""command": "x", {fields}"#)).tool_timeout;
    assert_eq!(tool(r#""timeout": 1"#), Some(Duration::from_millis(1)));
    assert_eq!(tool(r#""timeout": 6e4"#), Some(Duration::from_mins(1)));
    assert_eq!(
        tool(r#""tool_timeout_sec": 60"#),
        Some(Duration::from_mins(1))
    );
    assert_eq!(
        tool(r#""tool_timeout_sec": 0.07"#),
        Some(Duration::from_millis(70))
    );
}

#[test]
fn a_disabled_server_is_left_out_even_if_it_is_invalid() {
    for fields in [
        r#""disabled": true, "command": 1"#,
        r#""enabled": false"#,
        r#""enabled": true, "disabled": true, "url": "${NOT_SET}""#,
    ] {
        let parsed = read(&format!(
            r#"{{"s": {{{fields}}}, "t": {{"command": "x"}}}}"#
        ));
        let names: Vec<_> = parsed.servers.iter().map(|it| &*it.name).collect();
        assert_eq!(names, ["t"]);
    }
}

#[test]
fn variables_are_replaced_where_claude_code_replaces_them() {
    let server = one(r#"
        "command": "${NOT_SET:-x}", "args": ["a${HOST}b${HOST}", "${EMPTY:-d}", "${_NOT_SET:-_}"], "cwd": "/${HOST}",
        "env": {"A": "${TOKEN}", "${TOKEN}": "${NOT_SET:-}"}"#);
    let mut expected = McpServer::stdio("s", "x", ["aexample.combexample.com", "", "_"])
        .env("A", "sk-1")
        .env("${TOKEN}", "");
    if let McpTransport::Stdio { cwd, .. } = &mut expected.transport {
        *cwd = Some("/example.com".into());
    }
    assert_eq!(server, expected);
    let server =
        one(r#""url": "https://${HOST}/", "headers": {"Authorization": "Bearer ${TOKEN}"}"#);
    let expected = McpServer::http("s", "https://example.com/");
    assert_eq!(server, expected.header("Authorization", "Bearer sk-1"));
}

#[test]
fn text_that_looks_like_a_variable_is_kept() {
    let text = "$TOKEN $${1} ${ ${1:0:2} ${x%y} ${} ${A B} ${x:0:2} ${:a} ${a1:b} ${TOKEN";
    let escaped = serde_json::to_string(&text).unwrap();
    let server = one(&format!(r#""command": "x", "args": [{escaped}]"#));
    assert_eq!(server, McpServer::stdio("s", "x", [text]));
    // A value is not expanded again.
    let text = r#"{"s": {"command": "${A}"}}"#;
    let parsed = parse(text, &|_| Some("${A}".into())).unwrap();
    assert_eq!(parsed.servers, [McpServer::stdio("s", "${A}", NO_ARGS)]);
}

#[test]
fn errors_name_server_field_and_found_kind() {
    for (fields, message) in [
        ("", "s: it has neither command nor url"),
        (
            r#""command": "x", "url": "http://h""#,
            "s: it has both command and url; choose one with type",
        ),
        (
            r#""type": "stdio", "url": "http://h""#,
            "s: command: a stdio server must have one",
        ),
        (
            r#""type": "http", "command": "x""#,
            "s: url: a server at an address must have one",
        ),
        (
            r#""type": "websocket", "url": "http://h""#,
            "s: type: expected stdio, local, http, streamable-http, streamableHttp, remote or sse",
        ),
        (r#""type": 1"#, "s: type: expected a string, found a number"),
        (
            r#""command": {}"#,
            "s: command: expected a string or a list of strings, found an object",
        ),
        (r#""command": []"#, "s: command: it is empty"),
        (r#""command": """#, "s: command: it is empty"),
        (
            r#""command": ["x", null]"#,
            "s: command[1]: expected a string, found null",
        ),
        (
            r#""command": "x", "args": "-v""#,
            "s: args: expected a list of strings, found a string",
        ),
        (
            r#""command": "x", "args": ["-v", true]"#,
            "s: args[1]: expected a string, found true or false",
        ),
        (
            r#""command": "x", "env": ["A=1"]"#,
            "s: env: expected an object with strings, found a list",
        ),
        (
            r#""command": "x", "env": {"PORT": 8080}"#,
            "s: env.PORT: expected a string, found a number",
        ),
        (
            r#""command": "x", "env": {"A=B": "x"}"#,
            "s: env: \"A=B\" cannot be the name of an environment variable",
        ),
        (
            r#""command": "x", "env": {"A": "1", "A": "2"}"#,
            "s: env.A: duplicate field",
        ),
        (
            r#""command": "x", "env": {}, "environment": {}"#,
            "s: environment: it means the same as env; leave one out",
        ),
        (
            r#""command": "x", "command": "y""#,
            "s: command: duplicate field",
        ),
        (
            r#""url": "example.com""#,
            "s: url: it must begin with http:// or https:// and name a host",
        ),
        (
            r#""url": "http://h", "headers": {"A:": "x"}"#,
            "s: headers: \"A:\" cannot be a header's name",
        ),
        (
            r#""command": "x", "timeout": "60s""#,
            "s: timeout: expected a number, found a string",
        ),
        (
            r#""command": "x", "timeout": 0.2"#,
            "s: timeout: expected a length of time above 0",
        ),
        (
            r#""command": "x", "startup_timeout_sec": -1"#,
            "s: startup_timeout_sec: expected a length of time above 0",
        ),
        (
            r#""command": "x", "timeout": 1, "tool_timeout_sec": 1"#,
            "s: timeout: it means the same as tool_timeout_sec; leave one out",
        ),
        (
            r#""command": "x", "tools": "*""#,
            "s: tools: expected a list of strings, found a string",
        ),
        (
            r#""command": "x", "disabled": "yes""#,
            "s: disabled: expected true or false, found a string",
        ),
        (
            r#""command": "x", "env": {"A": "${TRACKER_TOKEN}"}"#,
            "s: env.A: the variable TRACKER_TOKEN is not set",
        ),
        (
            r#""command": ["x", "${NOT_SET}"]"#,
            "s: command[1]: the variable NOT_SET is not set",
        ),
        (
            r#""httpUrl": "${NOT_SET}""#,
            "s: httpUrl: the variable NOT_SET is not set",
        ),
        (
            r#""command": "x", "args": ["${input:token}"]"#,
            "s: args[0]: `${input:…}` is not understood here, only ${NAME} and ${NAME:-default}",
        ),
    ] {
        assert_eq!(error_of(fields), message);
    }
}

#[test]
fn errors_of_the_text_have_a_position() {
    for (text, message) in [
        ("", "it is empty"),
        ("[]", "expected an object with servers, found a list"),
        (
            "{\"mcpServers\": {\n  \"a\" \"b\"}}",
            "line 2, column 7: no JSON: expected colon after the string or word in object property",
        ),
        (
            "{'a': {}}",
            "line 1, column 2: no JSON: single-quoted strings are not allowed",
        ),
        (r#"{"a": "x"}"#, "a: expected an object, found a string"),
        (
            r#"{"a": {"command": "x"}, "a": {"command": "y"}}"#,
            "a: there are two servers of this name",
        ),
        (
            r#"{"mcpserver": {"a": {"command": "x"}}}"#,
            "mcpserver: it has neither command nor url; or are the servers under another key than mcpServers?",
        ),
        (
            r#"{"mcpServers": {"\u001b[2J": 1}}"#,
            r"\u{1b}[2J: expected an object, found a number",
        ),
        (
            r#"{"mcpServers": {"": {"command": "x"}}}"#,
            ": name: it is empty",
        ),
    ] {
        assert_eq!(error(text), message);
    }
    let deep = error(&"[".repeat(100_000));
    assert!(deep.contains("nesting depth"), "{deep}");
}

#[test]
fn no_message_holds_a_value() {
    for fields in [
        r#""command": "x", "args": ["sk-2"], "env": {"A": "sk-3", "B": "${NOT_SET}"}"#,
        r#""command": "x", "env": {"A": "sk-3\u0000"}"#,
        r#""url": "sk-2""#,
        r#""url": "http://h", "headers": {"A": "sk-3\n"}"#,
        r#""type": "sk-2""#,
        r#""command": "x", "args": "sk-2""#,
        r#""command": "x", "args": ["${env:sk-2}"]"#,
    ] {
        let message = error_of(fields);
        assert!(!message.contains("sk-"), "{message}");
    }
}

#[test]
fn fields_without_effect_are_reported() {
    let ignored = |fields: &str| read(&format!(r#"{{"s": {{{fields}}}}}"#)).ignored;
    assert_eq!(
        ignored(
            r#""command": "x", "arg": ["-v"], "Env": {}, "alwaysAllow": ["a"], "include_tools": []"#
        ),
        [
            "s: arg: unknown field; did you mean args?",
            "s: Env: unknown field; did you mean env?",
            "s: alwaysAllow: unknown field",
            "s: include_tools: unknown field; did you mean includeTools?",
        ]
    );
    assert_eq!(
        ignored(r#""command": "x", "xenv": 1, "nv": 1, "ecv": 1, "ecx": 1"#),
        [
            "s: xenv: unknown field; did you mean env?",
            "s: nv: unknown field; did you mean env?",
            "s: ecv: unknown field; did you mean env?",
            "s: ecx: unknown field",
        ]
    );
    assert_eq!(
        ignored(r#""type": "stdio", "command": "x", "url": "http://h", "headers": {}"#),
        [
            "s: url: a stdio server has none",
            "s: headers: a stdio server has none"
        ]
    );
    assert_eq!(
        ignored(r#""url": "http://h", "args": [], "env": {}"#),
        [
            "s: args: a server at an address has none",
            "s: env: a server at an address has none"
        ]
    );
}

#[test]
fn where_an_error_is_is_data() {
    let error = |text: &str| parse(text, &|_| None).unwrap_err();
    let two = error(r#"{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}"#);
    assert_eq!(two.server.as_deref(), Some("a"));
    assert_eq!(two.position, None);
    assert_eq!(two.problem, "there are two servers of this name");
    assert_eq!(two.to_string(), "a: there are two servers of this name");
    let broken = error("{\n  ]");
    assert_eq!((broken.server, broken.position), (None, Some((2, 3))));
    let empty = error("");
    assert_eq!((empty.server, empty.position), (None, None));
    assert_eq!(empty.problem, "it is empty");
}
