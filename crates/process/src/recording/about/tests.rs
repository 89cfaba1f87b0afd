use super::*;

fn shown(server: McpServer) -> Shown {
    Shown {
        secrets: Secrets::of(&[server]),
    }
}

#[test]
fn names_of_credentials_are_recognized() {
    for name in [
        "ANTHROPIC_API_KEY",
        "apiKey",
        "GH_TOKEN",
        "client_secret",
        "DB_PASSWORD",
        "PGPASS",
        "db_pwd",
        "Authorization",
        "GITHUB_PAT",
        "ANTHROPIC_CUSTOM_HEADERS",
        "AWS_CREDENTIALS",
        "SENTRY_DSN",
        // For any key and any escaping of the value for the CLI.
        &teamster_core::provider::mcp_variable("tracker", "ACCOUNT"),
        "--api-key",
    ] {
        assert!(is_credential(name), "{name}");
    }
    for name in ["PATH", "PWD", "HOME", "CODEX_HOME", "ANTHROPIC_BASE_URL"] {
        assert!(!is_credential(name), "{name}");
    }
}

#[test]
fn credentials_inside_a_value_are_hidden_and_the_rest_stays() {
    let shown = shown(McpServer::stdio("a", "x", [""; 0]).env("A", "se\"cret-1"));
    for (text, expected) in [
        ("plain", "plain"),
        ("https://h:8080/v1", "https://h:8080/v1"),
        ("https://me:pw@h/v1?key=1", "https://h/v1?…"),
        ("--proxy=http://me:pw@h", "--proxy=http://h"),
        ("--api-key=sk-1", "--api-key=…"),
        ("--env=GH_TOKEN=abc=def", "--env=GH_TOKEN=…"),
        ("--config=model=\"a\"", "--config=model=\"a\""),
        ("X-Api-Key: abc", "X-Api-Key: …"),
        ("say: the key = 5", "say: the key = 5"),
        ("it is se\"cret-1", "it is …"),
        (
            r#"{"provider":{"options":{"apiKey":"sk=1","baseURL":"http://h/v1"}},"n":1.50}"#,
            r#"{"provider":{"options":{"apiKey":"…","baseURL":"http://h/v1"}},"n":1.5}"#,
        ),
        (
            r#"--c={"headers":{"X":"abc"}}"#,
            r#"--c={"headers":{"X":"…"}}"#,
        ),
        // A search for the text of the value would not find it.
        (r#"["se\"cret-1", "b"]"#, r#"["…","b"]"#),
        // Unchanged if there is nothing to hide.
        (r#"{ "a": 1.50 }"#, r#"{ "a": 1.50 }"#),
        (r#"{"a": "no JSON"#, r#"{"a": "no JSON"#),
    ] {
        assert_eq!(shown.value(text), expected, "{text}");
    }
}

#[test]
fn stdin_is_reported_in_the_words_of_the_fixtures() {
    assert_eq!(stdin(&Stdin::Closed, "hello"), "devnull");
    assert_eq!(stdin(&Stdin::Bytes(b"hello\n".to_vec()), "hello"), "prompt");
    assert_eq!(
        stdin(&Stdin::Bytes(b"{}".to_vec()), "hello"),
        "2 bytes, and then the end"
    );
    assert_eq!(stdin(&Stdin::Open(b"hello".to_vec()), "hello"), "open");
}
