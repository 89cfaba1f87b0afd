//! `cargo xtask capabilities`: which provider can do what, as a table.

use std::fmt::Write as _;
use std::io::Write;

use anyhow::Context as _;
use serde_json::{Map, Value};

use crate::{Outcome, generated};

/// Where the table is, from the root of the repository.
const FILE: &str = "docs/capabilities.md";

const HEAD: &str = "\
# What each provider can do

Made from the code by `cargo xtask capabilities`; do not edit.
A parameter that a provider does not have is an `INVALID_PARAMS` error before anything is started.
Restrictions within a parameter, and why something is missing, are in `docs/providers/`.

";

/// Each capability, with what it means to a caller.
const ROWS: &[(&str, &str)] = &[
    ("resume", "resume a session (`session_id`)"),
    ("fork", "resume into a new session (`fork`)"),
    (
        "newSessionId",
        "choose a new session's id (`new_session_id`)",
    ),
    (
        "addDirs",
        "directories beside the working directory (`add_dirs`)",
    ),
    ("systemPrompt", "instructions (`system_prompt`)"),
    ("model", "model (`model`)"),
    ("effort", "how hard the model thinks (`effort`)"),
    ("permissionModes", "permission modes (`permission`)"),
    (
        "allowedTools",
        "tools that may be used unasked (`allowed_tools`)",
    ),
    ("deniedTools", "tools that may not be used (`denied_tools`)"),
    ("maxTurns", "limit of turns (`max_turns`)"),
    ("maxBudgetUsd", "limit of cost (`max_budget_usd`)"),
    ("outputSchema", "answer by a JSON Schema (`output_schema`)"),
    ("images", "images with the prompt (`images`)"),
    ("cliRetries", "the CLI's own retries (`cli_retries`)"),
    ("promptOnStdin", "prompts of any size, on stdin"),
    (
        "textDeltas",
        "text as it is written, not only whole messages",
    ),
    ("thinking", "the model's reasoning"),
    ("usage", "token figures"),
    ("cost", "cost, reported by the CLI"),
    (
        "slashCommands",
        "the CLI's slash commands, if asked for (`slash_commands`)",
    ),
    (
        "fileMentions",
        "`@file` in a prompt is expanded and cannot be switched off (mind it with prompts of strangers)",
    ),
];

/// Write the table of capabilities to docs/capabilities.md.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct Args {
    /// Write nothing; exit with 1 if what is there is not current
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(args: Args, out: &mut impl Write) -> anyhow::Result<Outcome> {
    let current = generated::bring(FILE, &table()?, "capabilities", args.check, out)?;
    Ok(Outcome::problems_if(!current))
}

fn table() -> anyhow::Result<String> {
    let mut columns = Vec::new();
    for provider in teamster::providers() {
        match serde_json::to_value(provider.capabilities())? {
            Value::Object(can) => columns.push((provider.info().name, can)),
            _ => anyhow::bail!("capabilities are not an object"),
        }
    }
    let mut text = HEAD.to_owned();
    let names: Vec<_> = columns.iter().map(|(name, _)| *name).collect();
    writeln!(text, "| | {} |", names.join(" | "))?;
    writeln!(text, "|---{}|", "|---".repeat(columns.len()))?;
    for (key, label) in ROWS {
        write!(text, "| {label} |")?;
        for (name, can) in &columns {
            let value = can.get(*key);
            let value = value.with_context(|| format!("{name} has no capability {key}"))?;
            write!(text, " {} |", cell(value))?;
        }
        writeln!(text)?;
    }
    check_complete(columns.first().map(|(_, can)| can))?;
    Ok(text)
}

/// A capability that the table does not have must not be forgotten.
fn check_complete(can: Option<&Map<String, Value>>) -> anyhow::Result<()> {
    let mut keys = can.into_iter().flat_map(Map::keys);
    match keys.find(|key| ROWS.iter().all(|(row, _)| row != key)) {
        Some(key) => anyhow::bail!("the table has no row for the capability {key}"),
        None => Ok(()),
    }
}

fn cell(value: &Value) -> String {
    match value {
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "–".to_owned(),
        Value::String(text) if text == "none" => "–".to_owned(),
        Value::String(text) => text.replace("_and_", ", ").replace('_', "-"),
        Value::Array(items) => {
            let cells: Vec<_> = items.iter().map(cell).collect();
            cells.join(", ")
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn cells() {
        assert_eq!(cell(&json!(true)), "yes");
        assert_eq!(cell(&json!(false)), "–");
        assert_eq!(cell(&json!("append_and_replace")), "append, replace");
        assert_eq!(cell(&json!(["default", "read_only"])), "default, read-only");
    }

    #[test]
    fn a_new_capability_needs_a_row() {
        let can = json!({"resume": true, "newThing": true});
        let error = check_complete(can.as_object()).unwrap_err();
        assert!(error.to_string().contains("newThing"), "{error}");
    }

    #[test]
    fn the_committed_table_is_current() {
        let mut out = Vec::new();
        let outcome = run(Args { check: true }, &mut out).unwrap();
        assert_eq!(outcome, Outcome::Fine, "{}", String::from_utf8_lossy(&out));
    }
}
