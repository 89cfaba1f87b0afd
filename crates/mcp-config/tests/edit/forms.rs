//! Tests of files with our entries in each form, and of the removal of the entries.

use crate::edit::support::{JSON_KEY, TOML_KEY, docs, remove};
use serde_json::json;
use teamster_core::provider::ConfigFormat::{Json, Toml};
use teamster_mcp_config::edit::{Clash, merge};

/// Returns the file with `docs` in it. Asserts that removing the entry restores the file.
#[track_caller]
fn json(text: &str) -> String {
    let merged = merge(text, Json, JSON_KEY, &docs(), Clash::Refuse).unwrap();
    let made = !text.contains(JSON_KEY);
    assert_eq!(
        remove(&merged, Json, JSON_KEY, &docs(), made).unwrap(),
        text
    );
    merged
}

#[track_caller]
fn toml(text: &str) -> String {
    let merged = merge(text, Toml, TOML_KEY, &docs(), Clash::Refuse).unwrap();
    let made = !text.contains(TOML_KEY);
    assert_eq!(
        remove(&merged, Toml, TOML_KEY, &docs(), made).unwrap(),
        text
    );
    merged
}

#[test]
fn json_without_content_becomes_an_object() {
    let made = r#"{ "mcpServers": {
  "docs": {
    "command": "docs-mcp",
    "env": {
      "KEY": "$TEAMSTER_KEY"
    }
  }
} }"#;
    assert_eq!(json(""), format!("{made}\n"));
    assert_eq!(json("\n"), format!("\n{made}\n"));
    assert_eq!(json("// mine\n"), format!("// mine\n{made}\n"));
    assert_eq!(json("// mine"), format!("// mine\n{made}"));
    assert_eq!(json("\u{feff}"), format!("\u{feff}{made}\n"));
    assert_eq!(
        json("// a\r\n"),
        format!("// a\n{made}\n").replace('\n', "\r\n")
    );
}

#[test]
fn json_with_an_empty_object_keeps_its_braces() {
    let inside = r#""mcpServers": {
  "docs": {
    "command": "docs-mcp",
    "env": {
      "KEY": "$TEAMSTER_KEY"
    }
  }
}"#;
    assert_eq!(json("{}"), format!("{{{inside}}}"));
    assert_eq!(json("{\n}\n"), format!("{{{inside}\n}}\n"));
    assert_eq!(json("{ /* a */ }"), format!("{{{inside} /* a */ }}"));
}

#[test]
fn json_gets_the_indentation_of_the_file() {
    assert_eq!(
        json("{\n\t\"a\": 1\n}\n"),
        "{\n\t\"a\": 1,\n\t\"mcpServers\": {\n\t\t\"docs\": {\n\t\t\t\"command\": \"docs-mcp\",\n\t\t\t\
         \"env\": {\n\t\t\t\t\"KEY\": \"$TEAMSTER_KEY\"\n\t\t\t}\n\t\t}\n\t}\n}\n"
    );
    assert_eq!(
        json(
            r#"{
    "mcpServers": {
        "mine": {"url": "https://mcp.example.com"} // do not touch
        // last
    },
    "theme": "dark"
}"#
        ),
        r#"{
    "mcpServers": {
        "mine": {"url": "https://mcp.example.com"}, // do not touch
        "docs": {
            "command": "docs-mcp",
            "env": {
                "KEY": "$TEAMSTER_KEY"
            }
        }
        // last
    },
    "theme": "dark"
}"#
    );
}

#[test]
fn json_with_a_comma_at_the_end_keeps_that_style() {
    assert_eq!(
        json("{\n  \"mcpServers\": {\n    \"mine\": {}, // a\n  },\n}\n"),
        "{\n  \"mcpServers\": {\n    \"mine\": {}, // a\n    \"docs\": {\n      \"command\": \"docs-mcp\",\n      \
         \"env\": {\n        \"KEY\": \"$TEAMSTER_KEY\"\n      }\n    },\n  },\n}\n"
    );
}

#[test]
fn json_comments_that_end_in_spaces_keep_them() {
    let merged = json("{\n  \"a\": 1 // end  \n}\n");
    assert!(
        merged.starts_with("{\n  \"a\": 1, // end\n  \"mcpServers\": {"),
        "{merged}"
    );
    assert!(merged.ends_with("\n  }  \n}\n"), "{merged}");
}

#[test]
fn json_with_a_lone_carriage_return_at_its_end_keeps_it() {
    assert!(json("// a\r").starts_with("// a\r\r\n{"));
    json("// a\r\n// b\r");
    json("{\r\"a\": 1\r}\r");
}

#[test]
fn json_in_one_line_stays_in_one_line() {
    assert_eq!(
        json(r#"{"theme": "dark"}"#),
        r#"{"theme": "dark", "mcpServers": {"docs":{"command":"docs-mcp","env":{"KEY":"$TEAMSTER_KEY"}}}}"#
    );
    assert_eq!(
        json(r#"{"mcpServers": {}}"#),
        r#"{"mcpServers": {"docs": {"command":"docs-mcp","env":{"KEY":"$TEAMSTER_KEY"}}}}"#
    );
}

#[test]
fn json_opens_up_an_empty_table() {
    assert_eq!(
        json("{\n  \"mcpServers\": {}\n}\n"),
        "{\n  \"mcpServers\": {\n    \"docs\": {\n      \"command\": \"docs-mcp\",\n      \"env\": {\n        \
         \"KEY\": \"$TEAMSTER_KEY\"\n      }\n    }\n  }\n}\n"
    );
}

const TABLE: &str =
    "[mcp_servers.docs]\ncommand = \"docs-mcp\"\nenv = { KEY = \"$TEAMSTER_KEY\" }\n";
const INLINE: &str = "docs = { command = \"docs-mcp\", env = { KEY = \"$TEAMSTER_KEY\" } }";

#[test]
fn toml_gets_a_table_at_the_end() {
    assert_eq!(toml(""), TABLE);
    assert_eq!(toml("\u{feff}"), format!("\u{feff}{TABLE}"));
    assert_eq!(toml("\n"), format!("\n\n{TABLE}"));
    assert_eq!(toml("# mine\n"), format!("# mine\n\n{TABLE}"));
    assert_eq!(toml("a = 1\n"), format!("a = 1\n\n{TABLE}"));
    assert_eq!(toml("a = 1"), format!("a = 1\n\n{}", TABLE.trim_end()));
    assert_eq!(
        toml("a = 1\r\n"),
        format!("a = 1\n\n{TABLE}").replace('\n', "\r\n")
    );
    for text in [
        "[mcp_servers.mine]\nurl = \"u\"\n\n[tui]\nx = 1\n",
        "[mcp_servers]\nmine = { url = \"u\" }\n\n[tui]\nx = 1\n",
        "[mcp_servers]\n",
        "[mcp_servers]\nmine.url = \"u\"\n",
        "[mcp_servers.\"mi.ne\".env]\nA = \"b\"\n[[list]]\na = 1\n[[list]]\n",
        "[ \"mcp_servers\" . mine ] # a\nurl = \"u\" # b\n",
    ] {
        assert_eq!(toml(text), format!("{text}\n{TABLE}"));
    }
}

#[test]
fn toml_table_in_braces_gets_it_inside() {
    assert_eq!(
        toml("mcp_servers = { mine = { url = \"u\" } } # a\n[tui]\n"),
        format!("mcp_servers = {{ {INLINE}, mine = {{ url = \"u\" }} }} # a\n[tui]\n")
    );
    assert_eq!(
        toml("mcp_servers = {}"),
        format!("mcp_servers = {{{INLINE}}}")
    );
    assert_eq!(
        toml("mcp_servers = { }\n"),
        format!("mcp_servers = {{{INLINE} }}\n")
    );
}

#[test]
fn toml_with_dotted_keys_gets_another() {
    assert_eq!(
        toml("mcp_servers.mine.url = \"u\" # a\nb = 1\n[tui]\n"),
        format!("mcp_servers.mine.url = \"u\" # a\nmcp_servers.{INLINE}\nb = 1\n[tui]\n")
    );
    assert_eq!(
        toml("mcp_servers.mine.url = \"u\""),
        format!("mcp_servers.mine.url = \"u\"\nmcp_servers.{INLINE}")
    );
}

#[test]
fn toml_values_in_braces_may_begin_in_another_line() {
    let text = "mcp_servers = { # a\n  mine =\n { url = \"u\", }, # b\n}\n";
    assert_eq!(toml(text), text.replacen('{', &format!("{{ {INLINE},"), 1));
}

#[test]
fn toml_values_are_written_in_one_line() {
    let entry = json!({
        "text": "a\"b\\c\r\n\u{7f}\u{1}é",
        "list": [1, -2, 0.5, true, [], {}],
        "a.b": {"": {"c d": 1e300}},
    });
    let merged = merge(
        "",
        Toml,
        TOML_KEY,
        &[("x.y".to_owned(), entry)],
        Clash::Refuse,
    )
    .unwrap();
    assert_eq!(
        merged,
        r#"[mcp_servers."x.y"]
text = "a\"b\\c\r\n\u007F\u0001é"
list = [1, -2, 0.5, true, [], {}]
"a.b" = { "" = { "c d" = 1e+300 } }
"#
    );
}
