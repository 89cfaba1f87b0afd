//! Tests of removing, keeping and replacing entries after others have edited the file.

use serde_json::json;
use teamster_core::provider::ConfigFormat::{Json, Toml};
use teamster_mcp_config::edit::{Clash, merge, names};

use crate::edit::support::{JSON_KEY, TOML_KEY, docs, remove};

#[track_caller]
fn json(text: &str, table_too: bool) -> String {
    remove(text, Json, JSON_KEY, &docs(), table_too).unwrap()
}

#[track_caller]
fn toml(text: &str, table_too: bool) -> String {
    remove(text, Toml, TOML_KEY, &docs(), table_too).unwrap()
}

const TABLE: &str =
    "[mcp_servers.docs]\ncommand = \"docs-mcp\"\nenv = { KEY = \"$TEAMSTER_KEY\" }\n";
const OBJECT: &str = r#""docs": {"command": "docs-mcp", "env": {"KEY": "$TEAMSTER_KEY"}}"#;

#[test]
fn names_are_those_of_the_table() {
    let json = "// a\n{\"mcpServers\": {\"b\": {}, \"a\\u002d1\": 1, /* c */ \"\": {\"d\": {}},}, \"mcp\": {\"x\": 1}}";
    assert_eq!(names(json, Json, JSON_KEY).unwrap(), ["b", "a-1", ""]);
    assert_eq!(names(json, Json, "mcp").unwrap(), ["x"]);
    for text in [
        "",
        "\u{feff}",
        " // a",
        "{}",
        "{\"mcpServers\": {}}",
        "{\"a\": {\"mcpServers\": {\"b\": 1}}}",
    ] {
        assert!(names(text, Json, JSON_KEY).unwrap().is_empty(), "{text:?}");
    }
    for (text, expected) in [
        (
            "[mcp_servers.a]\n[x]\n[mcp_servers.\"b c\".env]\n",
            vec!["a", "b c"],
        ),
        ("[mcp_servers]\na = {}\nb.url = \"u\"\n", vec!["a", "b"]),
        ("mcp_servers = { a = {}, b.url = 1 }", vec!["a", "b"]),
        ("mcp_servers.a.url = 1\nmcp_servers.b = {}", vec!["a", "b"]),
        ("[x.mcp_servers.a]\n", vec![]),
        ("[mcp_servers]\n", vec![]),
        ("\u{feff}", vec![]),
    ] {
        assert_eq!(names(text, Toml, TOML_KEY).unwrap(), expected, "{text:?}");
    }
}

#[test]
fn a_changed_entry_stays() {
    for text in [
        "{\"mcpServers\": {\"docs\": {\"command\": \"other\", \"env\": {\"KEY\": \"$TEAMSTER_KEY\"}}}}",
        "{\"mcpServers\": {\"docs\": {\"command\": \"docs-mcp\"}}}",
        "{\"mcpServers\": {\"docs\": null}}",
        "{\"mcpServers\": null}",
        "{}",
        "",
    ] {
        assert_eq!(json(text, true), text);
    }
    for text in [
        "[mcp_servers.docs]\ncommand = \"other\"\nenv = { KEY = \"$TEAMSTER_KEY\" }\n",
        "[mcp_servers.docs]\ncommand = \"docs-mcp\"\n",
        "[mcp_servers.docs]\ncommand = \"docs-mcp\"\nenv = { KEY = [\"$TEAMSTER_KEY\"] }\n",
        "mcp_servers = 1\n",
        "",
    ] {
        assert_eq!(toml(text, true), text);
    }
}

#[test]
fn an_entry_with_more_inside_is_still_ours() {
    let text = r#"{"mcpServers": {"docs": {"env": {"X": 1, "KEY": "$TEAMSTER_KEY"}, "trust": true, "command": "docs-mcp"}}}"#;
    assert_eq!(json(text, false), r#"{"mcpServers": {}}"#);
    let text = "[mcp_servers.docs]\nenabled = true\ncommand = 'docs-mcp'\n[mcp_servers.docs.env]\nKEY = \"$TEAMSTER_KEY\"\nX = 1\n";
    assert_eq!(toml(text, false), "");
    // An entry is kept if its expected value has no keys.
    let text = r#"{"mcpServers": {"docs": {"url": "u"}}}"#;
    let nothing = [("docs".to_owned(), json!({}))];
    assert_eq!(remove(text, Json, JSON_KEY, &nothing, true).unwrap(), text);
}

#[test]
fn a_number_that_was_written_again_is_the_same() {
    let ours = [(
        "a".to_owned(),
        json!({"x": 30_000.0, "y": 1e21, "z": 9_007_199_254_740_993_u64}),
    )];
    let text = r#"{"mcpServers": {"a": {"x": 30000, "y": 1000000000000000000000, "z": 9007199254740993}}}"#;
    assert_eq!(remove(text, Json, JSON_KEY, &ours, true).unwrap(), "{}");
    let text = text.replace("993", "992");
    assert_eq!(remove(&text, Json, JSON_KEY, &ours, true).unwrap(), text);
}

#[test]
fn toml_is_found_in_every_form() {
    let value = "{ command = \"docs-mcp\", env.KEY = \"$TEAMSTER_KEY\" }";
    for (text, left) in [
        (format!("a = 1\n{TABLE}[b]\n"), "a = 1\n[b]\n"),
        (format!("a = 1\n\n\n{TABLE}\n\n[b]\n"), "a = 1\n\n\n\n[b]\n"),
        (format!("[mcp_servers]\na = {{}}\ndocs = {value}\nb = {{}}\n"), "[mcp_servers]\na = {}\nb = {}\n"),
        (format!("mcp_servers.docs = {value}\nb = 1\n"), "b = 1\n"),
        (format!("mcp_servers = {{ docs = {value}, b = 1 }}\n"), "mcp_servers = { b = 1 }\n"),
        (format!("mcp_servers = {{ a = 1, docs = {value} }}\n"), "mcp_servers = { a = 1 }\n"),
        (format!("mcp_servers = {{ a = 1, docs = {value}, b = 1 }}\n"), "mcp_servers = { a = 1, b = 1 }\n"),
        (
            "mcp_servers = { docs.command = \"docs-mcp\", b = 1, docs.env.KEY = \"$TEAMSTER_KEY\" }\n".to_owned(),
            "mcp_servers = { b = 1 }\n",
        ),
        (
            "[mcp_servers]\ndocs.command = \"docs-mcp\"\n[a]\nx = 1\n[mcp_servers.docs.env]\nKEY = \"$TEAMSTER_KEY\"\n"
                .to_owned(),
            "[mcp_servers]\n[a]\nx = 1\n",
        ),
    ] {
        assert_eq!(toml(&text, false), left);
    }
}

#[test]
fn comments_next_to_an_entry_stay() {
    let text = "# before\n\n[mcp_servers.docs] # one\n# two\ncommand = \"docs-mcp\"\nenv.KEY = \"$TEAMSTER_KEY\" # three\n\n# next\n[b]\n";
    assert_eq!(
        toml(text, true),
        "# before\n# one\n# two\n# three\n\n# next\n[b]\n"
    );
    let text = format!(
        "{{\n  \"mcpServers\": {{\n    // one\n    {OBJECT}, // two\n    /* three */ \"a\": 1 // four\n  }}\n}}\n"
    );
    assert_eq!(
        json(&text, true),
        "{\n  \"mcpServers\": {\n    // one\n     // two\n    /* three */ \"a\": 1 // four\n  }\n}\n"
    );
    let text = format!("{{\"mcpServers\": {{ // one\n    {OBJECT} /* two */ , \"a\": 1}}}}");
    assert_eq!(
        json(&text, true),
        "{\"mcpServers\": { // one\n     /* two */  \"a\": 1}}"
    );
}

#[test]
fn the_table_is_removed_only_if_requested_and_empty() {
    let text =
        format!("{{\n  \"a\": 1,\n  \"mcpServers\": {{\n    {OBJECT}\n  }},\n  \"b\": 2\n}}\n");
    assert_eq!(json(&text, true), "{\n  \"a\": 1,\n  \"b\": 2\n}\n");
    assert_eq!(
        json(&text, false),
        "{\n  \"a\": 1,\n  \"mcpServers\": {},\n  \"b\": 2\n}\n"
    );
    for left in ["// mine\n", "/**/", "\"x\": {}"] {
        let comma = if left.starts_with('"') { "," } else { "" };
        let text = format!("{{\"mcpServers\": {{{OBJECT}{comma}{left}}}}}");
        assert_eq!(json(&text, true), format!("{{\"mcpServers\": {{{left}}}}}"));
    }

    let text = format!("a = 1\n\n[mcp_servers]\n\n{TABLE}\n[b]\n");
    assert_eq!(toml(&text, true), "a = 1\n\n[b]\n");
    assert_eq!(toml(&text, false), "a = 1\n\n[mcp_servers]\n\n[b]\n");
    for left in [
        "[mcp_servers] # mine\n",
        "[mcp_servers]\n# mine\n",
        "[mcp_servers]\nx = {}\n",
        "[mcp_servers]\n[b]\n[mcp_servers.x]\n",
        "mcp_servers = { x = 1 }\n",
        "mcp_servers.x.y = 1\n",
    ] {
        let merged = merge(left, Toml, TOML_KEY, &docs(), Clash::Refuse).unwrap();
        assert_eq!(toml(&merged, true), left);
    }
    assert_eq!(toml("mcp_servers = {}\na = 1\n", true), "a = 1\n");
    assert_eq!(
        toml("mcp_servers = {} # mine\n", true),
        "mcp_servers = {} # mine\n"
    );
}

#[test]
fn a_reformatted_object_stays() {
    for text in ["", "// a\n", "{}\n"] {
        let merged = merge(text, Json, JSON_KEY, &docs(), Clash::Refuse).unwrap();
        let (comment, object) = merged.split_at(if text.starts_with('/') { 5 } else { 0 });
        let object: serde_json::Value = serde_json::from_str(object).unwrap();
        let formatted = format!(
            "{comment}{}\n",
            serde_json::to_string_pretty(&object).unwrap()
        );
        assert_eq!(json(&formatted, true), format!("{comment}{{}}\n"));
    }
}

#[test]
fn a_replaced_entry_is_ours_and_the_rest_stays() {
    let text = "{\n  \"mcpServers\": {\n    \"docs\" : {\"url\": \"u\"}, // mine\n    \"b\": {\n      \"x\": 1\n    }\n  }\n}\n";
    assert_eq!(
        merge(text, Json, JSON_KEY, &docs(), Clash::Replace).unwrap(),
        "{\n  \"mcpServers\": {\n    \"docs\" : {\n      \"command\": \"docs-mcp\",\n      \"env\": {\n        \
         \"KEY\": \"$TEAMSTER_KEY\"\n      }\n    }, // mine\n    \"b\": {\n      \"x\": 1\n    }\n  }\n}\n"
    );
    let text = "[mcp_servers.docs]\nurl = \"u\"\n\n[mcp_servers.docs.env]\nX = 1\n\n[b]\n";
    assert_eq!(
        merge(text, Toml, TOML_KEY, &docs(), Clash::Replace).unwrap(),
        format!("\n[b]\n\n{TABLE}")
    );
}

#[test]
fn several_runs_share_a_file() {
    let a = [("a".to_owned(), json!({"command": "a"}))];
    let b = [("b".to_owned(), json!({"command": "b"}))];
    for (text, format, key) in [
        ("", Json, JSON_KEY),
        ("{}", Json, JSON_KEY),
        ("{\n  \"x\": 1\n}\n", Json, JSON_KEY),
        (
            "{\n  \"mcpServers\": {\n    \"x\": {},\n  }\n}",
            Json,
            JSON_KEY,
        ),
        ("", Toml, TOML_KEY),
        ("x = 1", Toml, TOML_KEY),
        ("mcp_servers = {}", Toml, TOML_KEY),
        ("mcp_servers.x.y = 1", Toml, TOML_KEY),
    ] {
        let made = !text.contains(key);
        let both = merge(
            &merge(text, format, key, &a, Clash::Refuse).unwrap(),
            format,
            key,
            &b,
            Clash::Refuse,
        )
        .unwrap();
        for (first, last) in [(&a, &b), (&b, &a)] {
            let one = remove(&both, format, key, first, made).unwrap();
            assert_eq!(
                remove(&one, format, key, last, made).unwrap(),
                text,
                "{one:?}"
            );
        }
    }
}
