//! The query of a report of usage.

use serde::{Deserialize, Serialize};

use super::Dimension;

/// The CLIs whose files are read, by their names.
pub const PROVIDERS: [&str; 11] = [
    "claude", "cline", "codex", "copilot", "gemini", "kilo", "kimi", "opencode", "pi", "qwen",
    "embedded",
];

/// A query of the usage report.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct UsageQuery {
    /// Grouping. Default: `day`.
    pub by: Option<Dimension>,
    /// Start of the period: a date such as `2026-11-01`, a time, `today`, `yesterday`, or a duration before now such as
    /// `7d`.
    #[schemars(schema_with = "schema::time")]
    pub since: Option<String>,
    /// End of the period, in the same formats, after `since`. A day is included.
    #[schemars(schema_with = "schema::time")]
    pub until: Option<String>,
    /// Only these CLIs, comma-separated.
    #[schemars(schema_with = "schema::names")]
    pub provider: Option<String>,
    /// Include the models of each group.
    #[serde(default)]
    pub models: bool,
}

/// Patterns of the fields.
mod schema {
    use schemars::{Schema, SchemaGenerator, json_schema};

    pub(super) fn time(_: &mut SchemaGenerator) -> Schema {
        let date = "[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])";
        let time =
            "([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9])?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])?";
        let age = "([1-9][0-9]{0,4}(ms|s|m|h|d)){1,3}";
        json_schema!({
            "type": "string",
            "pattern": format!("^(today|yesterday|{age}|{date}([T ]{time})?)$"),
        })
    }

    pub(super) fn names(_: &mut SchemaGenerator) -> Schema {
        let names = super::PROVIDERS.join("|");
        json_schema!({"type": "string", "pattern": format!("^({names})(,({names}))*$")})
    }
}
