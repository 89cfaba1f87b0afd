//! `cargo xtask capabilities`: the feature matrix of providers.

use std::fmt::Write as _;
use std::io::Write;
use std::time::Duration;

use anyhow::Context as _;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Map, Value};
use teamster::{
    Capabilities, ExecuteParams, Providers, RuntimeConfig, SessionCapabilities, SessionOptions,
    Timeouts,
};
use teamster_core::provider::Launch;

use crate::{Outcome, generated};

/// Path of the table, from the root of the repository.
const FILE: &str = "docs/capabilities.md";

const HEAD: &str = "\
# What each provider can do

Made from the code by `cargo xtask capabilities`; do not edit.
A parameter that a provider does not have is an `INVALID_PARAMS` error before anything is started.
Restrictions within a parameter, and why something is missing, are in `docs/providers/`.

";

/// Text before the table of sessions.
const SESSIONS: &str = "
## Sessions

A process that is kept for many turns ([sessions.md](sessions.md)); in every one, turns can be aborted: where a turn cannot be interrupted, its process is ended and the next turn resumes the session.

";

/// Text before the table of limits.
const LIMITS: &str = "
## Limits of time

Defaults; every one can be set.
A CLI that prints nothing for longer than a limit of silence is stopped, and one that does not end after its last line as well.
Where SIGINT is sent first, the CLI ends its running commands on it, and the next signal follows when its time is over or the process is gone.
The reasons for other values than those of most CLIs are in `docs/providers/`.

| | silence at the start (`startup`) | silence later (`idle`) | silence while a tool runs (`tool`) | SIGINT before SIGTERM | first signal to SIGKILL (`term_grace`) | life after the end (`exit_grace`) |
|---|---|---|---|---|---|---|
";

/// Text after the table of limits.
const AFTER_LIMITS: &str = "
The embedded agent has no process; its model may be silent, and its tools may run, as long as those of most CLIs.
In a session the limits of silence hold within a turn, and an interrupted turn has its own limit ([sessions.md](sessions.md#stopping)).
";

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
    let mut text = HEAD.to_owned();
    let mut columns = Vec::new();
    for provider in Providers::builtin().all() {
        columns.push(column(provider.info().name, provider.capabilities())?);
    }
    rows(&mut text, &columns, &labels::<Capabilities>()?)?;
    text.push_str(SESSIONS);
    let mut columns = Vec::new();
    for provider in Providers::builtin().all() {
        let info = provider.info();
        let runtime = teamster::create_session_runtime(info.id, RuntimeConfig::default())?;
        columns.push(column(info.name, runtime.session_capabilities())?);
    }
    rows(&mut text, &columns, &labels::<SessionCapabilities>()?)?;
    text.push_str(LIMITS);
    for provider in Providers::builtin().all_with_sessions() {
        let name = provider.info().name;
        let session = provider
            .launch_session(&SessionOptions::default())
            .with_context(|| format!("{name} cannot be launched"))?;
        let session = limits(&session);
        // An agent that has only sessions plays its runs in them.
        let run = provider.launch(&ExecuteParams::new("hi"));
        let run = run.as_ref().map_or_else(|_| session.clone(), limits);
        writeln!(text, "| {name} | {run} |")?;
        if session != run {
            writeln!(text, "| {name}, in a session | {session} |")?;
        }
    }
    text.push_str(AFTER_LIMITS);
    Ok(text)
}

/// Returns the cells of a launch.
fn limits(launch: &Launch) -> String {
    let config = RuntimeConfig::default();
    let silence = launch.timeouts.or(Timeouts::DEFAULT);
    let first = launch.stop_first.map(|step| step.grace);
    let end = launch.exit_grace.unwrap_or(RuntimeConfig::EXIT_GRACE);
    let cells = [
        silence.startup,
        silence.idle,
        silence.tool,
        first,
        Some(config.term_grace),
        Some(end),
    ];
    cells.map(duration).join(" | ")
}

fn duration(time: Option<Duration>) -> String {
    match time {
        None => "–".to_owned(),
        Some(time) if time.as_secs() >= 60 && time.as_secs().is_multiple_of(60) => {
            format!("{} min", time.as_secs() / 60)
        }
        Some(time) => format!("{} s", time.as_secs_f64()),
    }
}

/// A provider's name and capabilities.
type Column = (&'static str, Map<String, Value>);

fn column(name: &'static str, can: &impl Serialize) -> anyhow::Result<Column> {
    match serde_json::to_value(can)? {
        Value::Object(can) => Ok((name, flat(can))),
        _ => anyhow::bail!("capabilities are not an object"),
    }
}

/// Returns the key of each capability and what it means to a caller: the first paragraph of its documentation.
fn labels<T: JsonSchema>() -> anyhow::Result<Vec<(String, String)>> {
    let schema =
        SchemaGenerator::new(SchemaSettings::default().with(|it| it.inline_subschemas = true))
            .into_root_schema_for::<T>();
    let mut labels = Vec::new();
    within(schema.as_value(), "", &mut labels)?;
    Ok(labels)
}

fn within(schema: &Value, prefix: &str, labels: &mut Vec<(String, String)>) -> anyhow::Result<()> {
    let properties = schema["properties"].as_object();
    for (name, property) in properties.into_iter().flatten() {
        let key = format!("{prefix}{name}");
        if property["properties"].is_object() {
            within(property, &format!("{key}."), labels)?;
            continue;
        }
        let text = property["description"].as_str();
        let text = text.with_context(|| format!("the capability {key} has no documentation"))?;
        let first = text.split("\n\n").next().unwrap_or(text).replace('\n', " ");
        labels.push((key, first.trim_end_matches('.').to_owned()));
    }
    Ok(())
}

fn rows(text: &mut String, columns: &[Column], labels: &[(String, String)]) -> anyhow::Result<()> {
    let names: Vec<_> = columns.iter().map(|(name, _)| *name).collect();
    writeln!(text, "| | {} |", names.join(" | "))?;
    writeln!(text, "|---{}|", "|---".repeat(columns.len()))?;
    for (key, label) in labels {
        write!(text, "| {label} |")?;
        for (name, can) in columns {
            let value = can.get(key);
            let value = value.with_context(|| format!("{name} has no capability {key}"))?;
            write!(text, " {} |", cell(value))?;
        }
        writeln!(text)?;
    }
    Ok(())
}

/// Flattens nested capabilities: `strict` in `mcp` becomes `mcp.strict`.
fn flat(can: Map<String, Value>) -> Map<String, Value> {
    let mut all = Map::new();
    for (key, value) in can {
        match value {
            Value::Object(within) => {
                let within = within.into_iter();
                all.extend(within.map(|(name, value)| (format!("{key}.{name}"), value)));
            }
            other => {
                all.insert(key, other);
            }
        }
    }
    all
}

fn cell(value: &Value) -> String {
    match value {
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "–".to_owned(),
        Value::String(text) if text == "none" => "–".to_owned(),
        Value::String(marks) if !marks.contains(char::is_alphanumeric) => {
            let marks: Vec<_> = marks.chars().map(|mark| format!("`{mark}`")).collect();
            marks.join(" ")
        }
        Value::String(text) => text.replace("_and_", ", ").replace('_', "-"),
        Value::Array(items) if items.is_empty() => "–".to_owned(),
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
        assert_eq!(cell(&json!([])), "–");
        assert_eq!(cell(&json!("-_")), "`-` `_`");
        assert_eq!(cell(&json!("append_and_replace")), "append, replace");
        assert_eq!(cell(&json!(["default", "read_only"])), "default, read-only");
    }

    #[test]
    fn limits_of_time() {
        assert_eq!(duration(None), "–");
        assert_eq!(duration(Some(Duration::from_millis(1500))), "1.5 s");
        assert_eq!(duration(Some(Duration::from_secs(90))), "90 s");
        assert_eq!(duration(Some(Duration::from_mins(30))), "30 min");
    }

    #[test]
    fn capabilities_within_another_are_rows_too() {
        let Value::Object(can) = json!({"a": true, "mcp": {"strict": false}}) else {
            unreachable!("it is one")
        };
        assert_eq!(
            Value::Object(flat(can)),
            json!({"a": true, "mcp.strict": false})
        );
    }

    #[test]
    fn the_committed_table_is_current() {
        let mut out = Vec::new();
        let outcome = run(Args { check: true }, &mut out).unwrap();
        assert_eq!(outcome, Outcome::Fine, "{}", String::from_utf8_lossy(&out));
    }
}
