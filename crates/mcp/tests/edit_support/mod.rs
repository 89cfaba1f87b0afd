//! Shared by the tests of `edit`.

use serde_json::{Value, json};

pub(crate) const JSON_KEY: &str = "mcpServers";
pub(crate) const TOML_KEY: &str = "mcp_servers";

/// One entry of ours.
pub(crate) fn docs() -> Vec<(String, Value)> {
    vec![(
        "docs".to_owned(),
        json!({"command": "docs-mcp", "env": {"KEY": "$TEAMSTER_KEY"}}),
    )]
}
