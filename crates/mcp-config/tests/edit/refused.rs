//! Tests of refused files. The message has the position and the reason.

use serde_json::{Value, json};
use teamster_core::provider::ConfigFormat::{self, Json, Toml};
use teamster_mcp_config::edit::{Clash, merge, names};

use crate::edit::support::{JSON_KEY, TOML_KEY, docs, remove};

fn key(format: ConfigFormat) -> &'static str {
    if format == Json { JSON_KEY } else { TOML_KEY }
}

#[track_caller]
fn refused(text: &str, format: ConfigFormat) -> String {
    let key = key(format);
    let error = merge(text, format, key, &docs(), Clash::Replace).unwrap_err();
    assert_eq!(names(text, format, key).unwrap_err(), error);
    error.to_string()
}

#[track_caller]
fn entry_refused(name: &str, value: Value, format: ConfigFormat) -> String {
    let entries = [(name.to_owned(), value)];
    merge("", format, key(format), &entries, Clash::Refuse)
        .unwrap_err()
        .to_string()
}

#[test]
fn a_text_that_cannot_be_parsed_is_refused_with_its_line() {
    assert_eq!(
        refused("{\n  \"a\": 1\n  \"b\": 2\n}", Json),
        "line 2: expected comma"
    );
    assert_eq!(
        refused("\u{feff}{\n  'a': 1\n}", Json),
        "line 2: single-quoted strings are not allowed"
    );
    assert_eq!(
        refused("{\n\n  a: 1\n}", Json),
        "line 3: expected string for object property"
    );
    assert_eq!(
        refused("{}\n{}", Json),
        "line 2: text cannot contain more than one JSON value"
    );
    assert_eq!(
        refused("{\n/* a", Json),
        "line 2: unterminated comment block"
    );
    assert_eq!(
        refused("a = 1\n[b", Toml),
        "line 2: unclosed table, expected `]`"
    );
    assert_eq!(
        refused("a = 1\r\n\r\na = 2\r\n", Toml),
        "line 3: duplicate key"
    );
    assert_eq!(
        refused("[mcp_servers.x]\n[mcp_servers.x]\n", Toml),
        "line 2: duplicate key"
    );
}

#[test]
fn a_message_shows_no_value_of_the_file() {
    for (text, format) in [
        ("{\"token\": \"s3cr3t\" \"x\"}", Json),
        ("{\"token\": s3cr3t}", Json),
        ("{\"token\": \"s3cr3t}", Json),
        ("token = s3cr3t", Toml),
        ("token = \"s3cr3t", Toml),
        ("token = \"s3cr3t\\q\"", Toml),
        ("token = \"\" s3cr3t", Toml),
    ] {
        let message = refused(text, format);
        assert!(!message.contains("s3cr3t"), "{message}");
    }
}

#[test]
fn other_values_than_tables_are_refused() {
    assert_eq!(
        refused("// a\n[1]\n", Json),
        "line 2: this is not an object"
    );
    assert_eq!(refused("null", Json), "line 1: this is not an object");
    assert_eq!(
        refused("{\n  \"mcpServers\": []\n}", Json),
        "line 2: `mcpServers` is not an object"
    );
    assert_eq!(
        refused("{\"mcpServers\": null}", Json),
        "line 1: `mcpServers` is not an object"
    );
    assert_eq!(
        refused("a = 1\nmcp_servers = 1\n", Toml),
        "line 2: `mcp_servers` is not a table"
    );
    assert_eq!(
        refused("\n[[mcp_servers]]\na = 1\n[[mcp_servers]]\n", Toml),
        "line 2: `mcp_servers` is not a table"
    );
}

#[test]
fn duplicates_are_refused() {
    assert_eq!(
        refused(
            "{\n\"mcpServers\": {},\n\"a\": 1, \"mcpServers\": {}}",
            Json
        ),
        "line 3: duplicate key `mcpServers` (first in line 2)"
    );
    let twice = "{\"mcpServers\": {\n\"a\": 1,\n\"a\": 2}}";
    assert_eq!(refused(twice, Json), "line 3: `a` is in `mcpServers` twice");
    // Other duplicates do not prevent the removal of our entries.
    assert_eq!(remove(twice, Json, JSON_KEY, &docs(), true).unwrap(), twice);
    let ours = "{\"mcpServers\": {\n\"docs\": {},\n\"docs\": {}}}";
    let error = remove(ours, Json, JSON_KEY, &docs(), true).unwrap_err();
    assert_eq!(error.to_string(), "line 3: `docs` is in `mcpServers` twice");
    // Duplicates elsewhere do not matter.
    let elsewhere = "{\"a\": 1, \"a\": {\"mcpServers\": 1, \"mcpServers\": 2}}";
    let merged = merge(elsewhere, Json, JSON_KEY, &docs(), Clash::Refuse).unwrap();
    assert_eq!(
        remove(&merged, Json, JSON_KEY, &docs(), true).unwrap(),
        elsewhere
    );
}

#[test]
fn too_deep_nesting_is_refused() {
    let deep = format!("{{\"a\": {}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(
        refused(&deep, Json),
        "line 1: maximum nesting depth exceeded"
    );
    let deep = format!("a = {}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(
        refused(&deep, Toml),
        "line 1: cannot recurse further; max recursion depth met"
    );
}

#[test]
fn names_that_are_taken_are_refused_by_name_and_line() {
    let more = [
        docs(),
        vec![("b".to_owned(), json!({})), ("c".to_owned(), json!({}))],
    ]
    .concat();
    for (text, format, lines) in [
        (
            "{\n\"mcpServers\": {\n\"b\": 1,\n\"x\": 2,\n\"docs\": 3\n}}",
            Json,
            "`b` (line 3), `docs` (line 5)",
        ),
        (
            "[mcp_servers.docs.env]\nx = 1\n\n[mcp_servers]\n\"b\".url = 1",
            Toml,
            "`b` (line 5), `docs` (line 1)",
        ),
        (
            "mcp_servers.x.y = 1\nmcp_servers.docs.y = 1\n",
            Toml,
            "`docs` (line 2)",
        ),
        (
            "a = 1\nmcp_servers = { x.y = 1, docs.y = 1 }\n",
            Toml,
            "`docs` (line 2)",
        ),
    ] {
        let error = merge(text, format, key(format), &more, Clash::Refuse).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("`{}` already has {lines}", key(format))
        );
    }
}

#[test]
fn invalid_entries_are_refused() {
    for format in [Json, Toml] {
        let cannot = "cannot be a name: it is empty or has control characters";
        assert_eq!(
            entry_refused("", json!({}), format),
            format!("\"\" {cannot}")
        );
        assert_eq!(
            entry_refused("a\nb", json!({}), format),
            format!("\"a\\nb\" {cannot}")
        );
        assert_eq!(
            entry_refused("__proto__", json!({}), format),
            "`__proto__` cannot be a name"
        );
        assert_eq!(
            entry_refused("a", json!([]), format),
            "`a` is not an object"
        );
        let twice = [docs(), docs()].concat();
        let error = merge("", format, key(format), &twice, Clash::Replace).unwrap_err();
        assert_eq!(error.to_string(), "`docs` is given twice");
    }
}

#[test]
fn values_without_a_toml_form_are_refused_with_their_location() {
    let null = json!({"env": {"A": [1, {"b": null}]}});
    assert_eq!(
        entry_refused("a", null, Toml),
        "`a.env.A[1].b` is null, which TOML does not have"
    );
    let large = json!({"n": u64::MAX});
    assert_eq!(
        entry_refused("a", large.clone(), Toml),
        "`a.n` is larger than TOML's numbers are"
    );
    let merged = merge(
        "",
        Json,
        JSON_KEY,
        &[("a".to_owned(), large)],
        Clash::Refuse,
    )
    .unwrap();
    assert!(merged.contains("18446744073709551615"), "{merged}");
}
