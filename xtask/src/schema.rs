//! `cargo xtask schema`: JSON Schema of the wire types.

use std::io::Write;

use schemars::{Schema, schema_for};
use serde_json::Value;
use teamster::{AgentEvent, LogEntry, RunResult};
use teamster_api::RunEvent;

use crate::{Outcome, generated};

/// Folder of the schemas, from the root of the repository.
const FOLDER: &str = "docs/schema";

/// Write the JSON Schema (draft 2020-12) of events and results to docs/schema.
///
/// They are made from the types and their documentation, so that they cannot say anything else.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct Args {
    /// Write nothing; exit with 1 if what is there is not current
    #[arg(long)]
    check: bool,
}

fn schemas() -> [(&'static str, Schema); 4] {
    [
        ("event.schema.json", schema_for!(AgentEvent)),
        ("log-entry.schema.json", schema_for!(LogEntry)),
        ("run-result.schema.json", schema_for!(RunResult)),
        ("run-event.schema.json", schema_for!(RunEvent)),
    ]
}

fn text(schema: Schema) -> anyhow::Result<String> {
    let mut schema = schema.to_value();
    plain_descriptions(&mut schema);
    Ok(serde_json::to_string_pretty(&schema)? + "\n")
}

/// Rewrites descriptions, which are documentation of Rust code, for readers who may not know Rust.
fn plain_descriptions(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            for (key, value) in object {
                match value {
                    Value::String(text) if key == "description" => *text = plain(text),
                    other => plain_descriptions(other),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(plain_descriptions),
        _ => {}
    }
}

/// Removes links to other Rust items and line breaks within a paragraph.
fn plain(text: &str) -> String {
    let mut out = String::new();
    let mut parts = text.split("[`");
    out.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let Some((name, rest)) = part.split_once("`]") else {
            out.push_str("[`");
            out.push_str(part);
            continue;
        };
        let target = rest.strip_prefix('(').and_then(|rest| rest.split_once(')'));
        let rest = target.map_or(rest, |(_, rest)| rest);
        out.push('`');
        out.push_str(name);
        out.push('`');
        out.push_str(rest);
    }
    let paragraphs: Vec<_> = out.split("\n\n").map(|p| p.replace('\n', " ")).collect();
    paragraphs.join("\n\n")
}

pub(crate) fn run(args: Args, out: &mut impl Write) -> anyhow::Result<Outcome> {
    let mut stale = false;
    for (name, schema) in schemas() {
        let path = format!("{FOLDER}/{name}");
        stale |= !generated::bring(&path, &text(schema)?, "schema", args.check, out)?;
    }
    Ok(Outcome::problems_if(stale))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_are_for_everybody() {
        assert_eq!(
            plain("With [`a::b`](crate::C) or\n[`D`] ([x](y)), [`half.\n\nMore."),
            "With `a::b` or `D` ([x](y)), [`half.\n\nMore."
        );
    }

    #[test]
    fn the_committed_schemas_are_current() {
        let mut out = Vec::new();
        let outcome = run(Args { check: true }, &mut out).unwrap();
        assert_eq!(outcome, Outcome::Fine, "{}", String::from_utf8_lossy(&out));
    }
}
