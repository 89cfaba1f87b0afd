use super::*;

/// Merges these sources. Only the variable `TOKEN` is set.
fn read(sources: &[Source]) -> Result<Merged, MergeError> {
    merge(sources, &|name| {
        (name == "TOKEN").then(|| "sk 1".to_owned())
    })
}

fn server(text: &str) -> McpServer {
    let mut merged = read(&[Source::typed("typed", text).unwrap()]).unwrap();
    assert_eq!(merged.ignored, [""; 0]);
    merged.servers.remove(0)
}

/// Returns the error of a typed server, where it is read or where its variables are replaced.
fn error(text: &str) -> String {
    match Source::typed("typed", text) {
        Ok(source) => read(&[source]).unwrap_err().to_string(),
        Err(error) => error.to_string(),
    }
}

const NO_ARGS: [&str; 0] = [];

#[test]
fn a_command_is_split_as_a_shell_does() {
    assert_eq!(
        server(r#"a=my-mcp --root "/my files" 'x y' z\ z"#),
        McpServer::stdio("a", "my-mcp", ["--root", "/my files", "x y", "z z"])
    );
    assert_eq!(
        server("a=A=1 _B='2 3' cmd C=4"),
        McpServer::stdio("a", "cmd", ["C=4"])
            .env("A", "1")
            .env("_B", "2 3")
    );
}

#[test]
fn variables_come_after_the_splitting() {
    assert_eq!(
        server("a=TOKEN=${TOKEN} cmd ${TOKEN}"),
        McpServer::stdio("a", "cmd", ["sk 1"]).env("TOKEN", "sk 1")
    );
    assert_eq!(
        error("a=X=${NOT_SET} cmd"),
        "typed: a: env.X: the variable NOT_SET is not set"
    );
}

#[test]
fn an_address_is_a_server_over_http() {
    for (typed, url) in [
        ("https://example.com/mcp?a=b", "https://example.com/mcp?a=b"),
        ("HTTPS://Example.com/MCP", "https://Example.com/MCP"),
        ("Http://localhost:1/mcp", "http://localhost:1/mcp"),
        (" https://example.com/mcp ", "https://example.com/mcp"),
        ("'https://example.com/mcp'", "https://example.com/mcp"),
    ] {
        assert_eq!(server(&format!("a={typed}")), McpServer::http("a", url));
    }
}

#[test]
fn an_address_of_another_kind_is_no_program() {
    for typed in [
        "ws://sk-1/mcp",
        "sse+x.y-1://sk-1",
        "FILE:///sk-1",
        "\"ws://sk-1\"",
    ] {
        assert_eq!(
            error(&format!("a={typed}")),
            "unsupported URL: expected http:// or https://"
        );
    }
    for typed in [
        "KEY=sk-1 https://x/mcp",
        "'https://x/mcp' -v",
        "https://x/mcp -v",
    ] {
        assert_eq!(
            error(&format!("a={typed}")),
            "a URL takes no variables or arguments"
        );
    }
    // Not URLs.
    for program in ["./a://b", "1a://b", "://b"] {
        assert_eq!(
            server(&format!("a={program}")),
            McpServer::stdio("a", program, NO_ARGS)
        );
    }
}

#[test]
fn a_program_is_never_the_value_of_a_variable() {
    for (typed, message) in [
        (
            "TOKEN=${TOKEN} tracker-mcp",
            "the program would be the value of a variable; add a name: \
            NAME='TOKEN=${TOKEN} COMMAND'",
        ),
        // A default may be a secret.
        (
            "TOKEN=${NOT_SET:-sk-1} sk-2",
            "the program would be the value of a variable; add a name: \
            NAME='TOKEN=${…} COMMAND'",
        ),
        (
            "KEY='Bearer ${TOKEN}' sk-2",
            "the program would be the value of a variable; add a name: \
            NAME='KEY=${…} COMMAND'",
        ),
        (
            "a=KEY=sk-1 ${TOKEN}",
            "the program would be the value of a variable; name the program itself",
        ),
    ] {
        assert_eq!(error(typed), message);
    }
}

#[test]
fn shell_operators_are_rejected() {
    for (typed, operator) in [
        ("x | y > z; rm", "|"),
        ("x || y", "||"),
        ("x &", "&"),
        ("x && y", "&&"),
        ("x ; y", ";"),
        ("x > y", ">"),
        ("x >> y", ">>"),
        ("x < y", "<"),
        ("x 2>&1", "2>&1"),
        ("x 'a b' \\' | y", "|"),
        ("A=1 x\t|\ty", "|"),
    ] {
        assert_eq!(
            error(&format!("a={typed}")),
            format!(
                "`{operator}` needs a shell, and the command is run without one; \
                use a=\"sh -c '…'\""
            )
        );
    }
    assert_eq!(
        server(r#"a=x '|' "&&" \; 'a | b' "c \" > d" a|b b;"#),
        McpServer::stdio("a", "x", ["|", "&&", ";", "a | b", "c \" > d", "a|b", "b;"])
    );
}

#[test]
fn invalid_commands_are_reported_without_their_text() {
    for (text, message) in [
        ("sk-1", "expected NAME=COMMAND or NAME=URL"),
        ("=sk-1", "expected NAME=COMMAND or NAME=URL"),
        ("https://sk-1?a=b", "expected NAME=COMMAND or NAME=URL"),
        ("a=", "the command is missing"),
        ("a=KEY=sk-1", "the command is missing"),
        ("a='sk-1", "a quotation mark in the command is not closed"),
    ] {
        assert_eq!(error(text), message);
    }
}

#[test]
fn servers_of_several_sources_are_merged() {
    let sources = [
        Source::new("a file", r#" {"a": {"command": "x", "arg": []}}"#),
        Source::typed("typed", "b=y").unwrap(),
    ];
    let merged = read(&sources).unwrap();
    assert_eq!(merged.origins, ["a file", "typed"]);
    assert_eq!(
        merged.ignored,
        ["a file: a: arg: unknown field; did you mean args?"]
    );
    assert_eq!(
        merged.servers,
        [
            McpServer::stdio("a", "x", NO_ARGS),
            McpServer::stdio("b", "y", NO_ARGS)
        ]
    );
}

#[test]
fn two_servers_of_one_name_are_an_error_with_both_origins() {
    let sources = [
        Source::new("a file", r#"{"a": {"command": "x"}}"#),
        Source::typed("typed", "a=y").unwrap(),
    ];
    assert_eq!(
        read(&sources).unwrap_err().to_string(),
        "there are two MCP servers called `a`: in a file and in typed"
    );
}

#[test]
fn the_text_of_a_source_is_not_shown() {
    let source = Source::typed("typed", "a=KEY=sk-1 x").unwrap();
    assert!(!format!("{source:?}").contains("sk-1"));
}
