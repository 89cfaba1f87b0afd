//! Built-in tools.

mod bash;
mod confine;
mod files;
mod search;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use teamster_core::{
    CancellationToken, ChangeKind, ExecuteParams, PlanEntry, PlanStatus, ToolKind,
};

use crate::config::EmbeddedConfig;
use crate::conversation::Input;
use crate::permission::Rules;
use crate::wire::ToolSpec;

use search::Search;

pub(crate) use bash::LONGEST as LONGEST_COMMAND;
pub(crate) use confine::{Roots, Target, plain};

/// Tool by which the model gives an answer that follows the output schema.
pub(crate) const STRUCTURED_OUTPUT: &str = "StructuredOutput";

/// Maximum size of a result for the model, in bytes.
pub(crate) const MOST_FOR_MODEL: usize = 48 << 10;

#[derive(Debug, Default)]
pub(crate) struct Output {
    /// Full output, for the stream.
    pub(crate) text: String,
    /// Output for the model, if it differs.
    pub(crate) for_model: Option<Vec<Input>>,
    pub(crate) is_error: bool,
    /// Changed file.
    pub(crate) change: Option<(String, ChangeKind)>,
    pub(crate) plan: Option<Vec<PlanEntry>>,
}

impl Output {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }

    pub(crate) fn error(text: impl Into<String>) -> Self {
        Self {
            is_error: true,
            ..Self::text(text)
        }
    }

    /// Returns the content for the model.
    pub(crate) fn content(&self) -> Vec<Input> {
        match &self.for_model {
            Some(content) => content.clone(),
            None => vec![Input::text(shortened(&self.text))],
        }
    }
}

/// Shortens a text to its beginning and end, if it is too long for the model.
pub(crate) fn shortened(text: &str) -> String {
    if text.len() <= MOST_FOR_MODEL {
        return text.to_owned();
    }
    let half = MOST_FOR_MODEL / 2;
    let head = &text[..text.floor_char_boundary(half)];
    let tail = &text[text.ceil_char_boundary(text.len() - half)..];
    let left_out = text.len() - head.len() - tail.len();
    format!("{head}\n[… {left_out} bytes left out; ask for less at a time …]\n{tail}")
}

#[derive(Clone)]
pub(crate) struct ToolContext {
    pub(crate) config: Arc<EmbeddedConfig>,
    pub(crate) roots: Arc<Roots>,
    /// Parameters of the run, including its environment variables.
    pub(crate) params: Arc<ExecuteParams>,
    /// Variables that are removed from the environment of commands.
    pub(crate) hidden: &'static [&'static str],
    /// Program that confines commands, if they are to be confined.
    pub(crate) sandbox: Option<PathBuf>,
}

impl ToolContext {
    pub(crate) fn directory(&self) -> PathBuf {
        self.roots.working().to_owned()
    }
}

pub(crate) fn specs() -> Vec<ToolSpec> {
    let object = |properties: Value, required: &[&str]| {
        json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        })
    };
    let spec = |name: &str, description: &str, schema: Value| ToolSpec {
        name: name.to_owned(),
        description: description.to_owned(),
        schema,
    };
    let text = |description: &str| json!({"type": "string", "description": description});
    let path = || text("Path, relative to the working directory or absolute.");
    let number =
        |description: &str| json!({"type": "integer", "minimum": 1, "description": description});
    vec![
        spec(
            "read",
            "Reads a file: its text, or the image in it. Long files are read in pieces with `offset` and \
             `limit`.",
            object(
                json!({
                    "path": path(),
                    "offset": number("The first line to read, from 1."),
                    "limit": number("How many lines to read. 2000 if unset."),
                }),
                &["path"],
            ),
        ),
        spec(
            "write",
            "Writes a whole file. Folders that are missing are made. For a change of a file that is there, \
             use `edit`.",
            object(
                json!({"path": path(), "content": text("The complete content of the file.")}),
                &["path", "content"],
            ),
        ),
        spec(
            "edit",
            "Replaces a piece of a file by another. `old_string` must be there exactly once, with its \
             indentation, unless `all` is set.",
            object(
                json!({
                    "path": path(),
                    "old_string": text("The piece to replace."),
                    "new_string": text("What takes its place."),
                    "all": {"type": "boolean", "description": "Replace every place that is like it."},
                }),
                &["path", "old_string", "new_string"],
            ),
        ),
        spec(
            "bash",
            "Runs a command with bash in the working directory and gives what it writes. It has no terminal \
             and no input; what it leaves running is ended.",
            object(
                json!({
                    "command": {"type": "string", "minLength": 1},
                    "timeout_ms": {
                        "type": "integer", "minimum": 1, "maximum": bash::MOST_MS,
                        "description": "How long it may take, in milliseconds. 120000 if unset.",
                    },
                }),
                &["command"],
            ),
        ),
        spec(
            "grep",
            "Finds lines by a regular expression (Rust's syntax), in files that `.gitignore` does not leave \
             out. Gives `path:line:text`.",
            object(
                json!({
                    "pattern": text("The regular expression."),
                    "path": text("The folder or file to search. The working directory if unset."),
                    "glob": text("Only files with such paths, such as `*.rs` or `src/**/*.ts`."),
                    "ignore_case": {"type": "boolean"},
                    "limit": number("The most lines. 200 if unset."),
                }),
                &["pattern"],
            ),
        ),
        spec(
            "glob",
            "Finds files by a pattern such as `**/*.rs`, less those that `.gitignore` leaves out. Gives \
             their paths, in order.",
            object(
                json!({
                    "pattern": text("The pattern."),
                    "path": text("The folder to search. The working directory if unset."),
                }),
                &["pattern"],
            ),
        ),
        spec(
            "update_plan",
            "Writes down the complete plan for work of several steps, and the state of each step.",
            object(
                json!({"entries": {"type": "array", "items": {
                    "type": "object",
                    "properties": {
                        "content": {"type": "string"},
                        "status": {"enum": ["pending", "in_progress", "completed", "cancelled"]},
                    },
                    "required": ["content", "status"],
                }}}),
                &["entries"],
            ),
        ),
    ]
}

/// Returns the tool for an answer that follows this schema.
pub(crate) fn structured_output(schema: &Value) -> ToolSpec {
    ToolSpec {
        name: STRUCTURED_OUTPUT.to_owned(),
        description: "Gives the final answer. Call it exactly once, when everything else is done."
            .to_owned(),
        schema: schema.clone(),
    }
}

pub(crate) fn kind(name: &str) -> ToolKind {
    match name {
        "read" => ToolKind::Read,
        "write" | "edit" => ToolKind::Edit,
        "bash" => ToolKind::Execute,
        "grep" | "glob" => ToolKind::Search,
        "update_plan" | STRUCTURED_OUTPUT => ToolKind::Think,
        _ => ToolKind::Other,
    }
}

/// Calls a built-in tool with a valid input. `real` is what its path leads to; `cancel` stops it.
pub(crate) async fn call(
    context: &ToolContext,
    rules: &Rules,
    name: &str,
    input: &Value,
    real: Option<&Path>,
    cancel: &CancellationToken,
) -> Output {
    match name {
        "bash" => bash::call(context, input, cancel).await,
        "update_plan" => plan(input),
        _ => {
            let Some(real) = real.map(Path::to_owned) else {
                return Output::error(format!("unknown tool {name}"));
            };
            let (roots, input, name) = (context.roots.clone(), input.clone(), name.to_owned());
            let (rules, stop) = (rules.clone(), cancel.clone());
            // File access may block, so use a blocking thread.
            let done = tokio::task::spawn_blocking(move || {
                let search = Search {
                    roots: &roots,
                    start: &real,
                    leaves_out: &|file| rules.hides_file(&roots, &name, file),
                    stop: &stop,
                };
                let result = match name.as_str() {
                    "read" => files::read(&real, &input),
                    "write" => files::write(&real, &input),
                    "edit" => files::edit(&real, &input),
                    "grep" => search::grep(&search, &input),
                    "glob" => search::glob(&search, &input),
                    _ => Err(format!("unknown tool {name}")),
                };
                result.unwrap_or_else(Output::error)
            });
            done.await
                .unwrap_or_else(|_| Output::error("the tool failed; this is a bug of the runtime"))
        }
    }
}

fn plan(input: &Value) -> Output {
    let entry = |entry: &Value| {
        let content = text(entry, "content").unwrap_or_default();
        PlanEntry::new(content, PlanStatus::from_word(text(entry, "status")))
    };
    let entries = input["entries"].as_array().into_iter().flatten();
    Output {
        plan: Some(entries.map(entry).collect()),
        ..Output::text("The plan is written down.")
    }
}

fn text<'v>(input: &'v Value, field: &str) -> Option<&'v str> {
    input.get(field)?.as_str()
}

fn count(input: &Value, field: &str) -> Option<usize> {
    usize::try_from(input.get(field)?.as_u64()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_has_a_kind_and_a_schema_that_checks_its_input() {
        for spec in specs() {
            assert_ne!(kind(&spec.name), ToolKind::Other, "{}", spec.name);
            assert_eq!(spec.schema["type"], "object", "{}", spec.name);
            let missing = crate::schema::misfit(&spec.schema, &json!({}));
            assert!(
                missing.is_some_and(|it| it.ends_with("is missing")),
                "{}",
                spec.name
            );
        }
    }

    #[test]
    fn of_a_long_text_the_model_gets_both_ends() {
        let text = format!("{}{}", "ä".repeat(MOST_FOR_MODEL), "end");
        let short = shortened(&text);
        assert!(short.len() < MOST_FOR_MODEL + 100);
        assert!(short.starts_with('ä') && short.ends_with("end"));
        assert!(short.contains("bytes left out"));
    }
}
