//! Configuration files of users: entries that are added and removed leave every byte, and the MCP servers in them.

use serde_json::{Value, json};
use teamster_core::provider::ConfigFormat;
use teamster_mcp_config::config;
use teamster_mcp_config::edit::{Clash, merge, names, remove, remove_with_table};

use super::Target;
use crate::harness::hash;

pub fn targets() -> [Target; 3] {
    [
        Target::new(
            "config-json",
            &["fuzz/seeds/json", "clients/typescript/package.json"],
            |data| {
                edit_and_undo(data, ConfigFormat::Json, "mcpServers");
            },
        ),
        Target::new(
            "config-toml",
            &["fuzz/seeds/toml", "Cargo.toml", "deny.toml"],
            |data| {
                edit_and_undo(data, ConfigFormat::Toml, "mcp_servers");
            },
        ),
        Target::new("mcp-json", &["fuzz/seeds/json"], |data| {
            let text = String::from_utf8_lossy(data);
            let set = |name: &str| (!name.starts_with("NO")).then(|| "value".to_owned());
            let Ok(parsed) = config::parse_available(&text, &set) else {
                return;
            };
            for server in &parsed.servers {
                assert_eq!(server.problem(), None, "{server:?}");
            }
            // What a user could copy elsewhere means the same there.
            let written = config::to_json(&parsed.servers).to_string();
            let read = config::parse(&written, &|_| None);
            let read = read.unwrap_or_else(|error| panic!("{written}: {error}"));
            assert_eq!(read.servers, parsed.servers, "{written}");
        }),
    ]
}

/// Returns entries that depend on the data.
fn entries(data: &[u8]) -> Vec<(String, Value)> {
    let all = [
        (
            "docs",
            json!({"command": "docs-mcp", "args": ["--quiet", "a \"b\"\n"]}),
        ),
        (
            "a.b c",
            json!({"url": "https://mcp.example.com", "headers": {"X-A": "\u{2028}"}}),
        ),
        ("{[#//", json!({"command": "x", "env": {}, "timeout": 0.5})),
    ];
    let number = hash(data) % 7 + 1;
    let some = all
        .into_iter()
        .enumerate()
        .filter(|(bit, _)| number & (1 << bit) != 0);
    some.map(|(_, (name, value))| (name.to_owned(), value))
        .collect()
}

fn edit_and_undo(data: &[u8], format: ConfigFormat, key: &str) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let Ok(had) = names(text, format, key) else {
        return;
    };
    let ours = entries(data);
    let Ok(merged) = merge(text, format, key, &ours, Clash::Refuse) else {
        return;
    };
    let mut both = had.clone();
    both.extend(ours.iter().map(|(name, _)| name.clone()));
    assert_eq!(
        sorted(names(&merged, format, key).unwrap_or_default()),
        sorted(both)
    );
    // Whether the table goes with its entries depends on whether it came with them, which the text alone does not show.
    let undone = [
        remove_with_table(&merged, format, key, &ours),
        remove(&merged, format, key, &ours),
    ];
    let is_back = |undone: &Result<String, _>| undone.as_deref() == Ok(text);
    assert!(
        undone.iter().any(is_back),
        "{text:?} became {merged:?} and {undone:?}"
    );
}

fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort();
    names
}
