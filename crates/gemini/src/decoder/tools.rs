//! Tools: kinds, names, effects, and results as text.

use std::borrow::Cow;

use serde_json::Value;
use teamster_core::provider::UniqueIds;
use teamster_core::{AgentEvent, ChangeKind, FileChange, Id, Plan, PlanEntry, PlanStatus};

use super::shell;
use super::wire::ErrorObject;
use crate::tool_names::SHELL;

/// Open calls in order, and the used ids.
#[derive(Debug, Default)]
pub(crate) struct Tools {
    open: Vec<Call>,
    used: UniqueIds,
}

/// A call without a result.
#[derive(Debug)]
pub(crate) struct Call {
    /// The id in the stream.
    pub(crate) id: Id,
    pub(crate) name: String,
    /// The CLI's id, if it differs.
    cli_id: Option<String>,
    /// Effect of the call if it succeeds.
    effect: Option<Effect>,
}

/// The end of a call as reported by the CLI.
pub(crate) struct Ended<'a> {
    pub(crate) status: Option<&'a str>,
    pub(crate) output: Option<&'a str>,
    pub(crate) error: Option<&'a ErrorObject<'a>>,
}

/// Effect of a call that has its own event.
#[derive(Debug)]
enum Effect {
    File(String, ChangeKind),
    Plan(Vec<PlanEntry>),
}

impl Tools {
    /// Starts a call. Its id is the CLI's, unless that is missing or in use.
    pub(crate) fn start(&mut self, cli_id: Option<&str>, name: &str, input: &Value) -> Id {
        let id = self.used.unique(cli_id.unwrap_or(name));
        self.open.push(Call {
            id: id.clone(),
            name: name.to_owned(),
            cli_id: cli_id.filter(|cli_id| **cli_id != *id).map(str::to_owned),
            effect: effect(name, input),
        });
        id
    }

    /// Ends the oldest open call with the CLI's id. Without an id, ends the call if it is the only open one.
    pub(crate) fn end(&mut self, cli_id: Option<&str>) -> Option<Call> {
        let Some(cli_id) = cli_id else {
            return if self.open.len() == 1 {
                self.open.pop()
            } else {
                None
            };
        };
        let is_it = |call: &Call| match &call.cli_id {
            Some(id) => id == cli_id,
            None => *call.id == *cli_id,
        };
        let at = self.open.iter().position(is_it)?;
        Some(self.open.remove(at))
    }
}

impl Call {
    /// Returns the effect of a call that succeeded.
    pub(crate) fn effect(&mut self) -> Option<AgentEvent> {
        Some(match self.effect.take()? {
            Effect::File(path, change) => AgentEvent::FileChange(Box::new(
                FileChange::new(path, change).tool_id(self.id.clone()),
            )),
            Effect::Plan(entries) => AgentEvent::Plan(Plan::new(entries)),
        })
    }

    /// Returns whether the call failed, if the CLI reports it. For the CLI a command succeeds with any exit code.
    pub(crate) fn is_error(&self, ended: &Ended<'_>) -> Option<bool> {
        if ended.error.is_some() {
            return Some(true);
        }
        match ended.status? {
            "success" if self.name == SHELL => shell::failed(ended.output?),
            "success" => Some(false),
            "error" => Some(true),
            _ => None,
        }
    }

    /// Returns whether the call was not permitted. `must_be_there` is true if the model had the tool.
    pub(crate) fn is_denied(&self, error: &ErrorObject<'_>, must_be_there: bool) -> bool {
        let message = error.message.as_deref().unwrap_or_default();
        match error.kind.as_deref().unwrap_or_default() {
            "policy_violation" => true,
            // The tool exists, but the mode or a policy hides it from the model.
            "tool_not_registered" => {
                !must_be_there && (is_always_there(&self.name) || self.name.starts_with("mcp_"))
            }
            "unhandled_exception" => message.contains("requires user confirmation"),
            _ => false,
        }
    }
}

fn effect(name: &str, input: &Value) -> Option<Effect> {
    let text = |name: &str| input.get(name)?.as_str();
    match name {
        // The CLI does not report whether the file existed.
        "write_file" => Some(Effect::File(
            text("file_path")?.to_owned(),
            ChangeKind::Update,
        )),
        "replace" => {
            let change = match text("old_string") {
                Some("") => ChangeKind::Add,
                _ => ChangeKind::Update,
            };
            Some(Effect::File(text("file_path")?.to_owned(), change))
        }
        "write_todos" => {
            let todos = input.get("todos")?.as_array()?;
            Some(Effect::Plan(todos.iter().filter_map(entry).collect()))
        }
        _ => None,
    }
}

/// Converts an entry of a to-do list.
fn entry(todo: &Value) -> Option<PlanEntry> {
    Some(PlanEntry::new(
        todo.get("description")?.as_str()?.to_owned(),
        PlanStatus::from_word(todo.get("status").and_then(Value::as_str)),
    ))
}

/// Returns the result as text. For a failure it is the model's text, and any other text that was displayed.
pub(crate) fn output(output: Cow<'_, str>, error: Option<ErrorObject<'_>>) -> String {
    let message = error.and_then(|error| error.message);
    let message = message.unwrap_or(Cow::Borrowed(""));
    if output.contains(&*message) {
        output.into_owned()
    } else if message.contains(output.trim_end_matches(['.', '\n'])) {
        message.into_owned()
    } else {
        format!("{output}\n{message}")
    }
}

/// Returns whether the CLI has a tool of this name in every run, even if hidden. Excludes tools of other versions,
/// `ask_user`, which only runs with a terminal have, and tools enabled by a setting.
fn is_always_there(name: &str) -> bool {
    matches!(
        name,
        "activate_skill"
            | "enter_plan_mode"
            | "exit_plan_mode"
            | "glob"
            | "google_web_search"
            | "grep_search"
            | "invoke_agent"
            | "list_background_processes"
            | "list_directory"
            | "list_mcp_resources"
            | "read_background_output"
            | "read_file"
            | "read_mcp_resource"
            | "replace"
            | SHELL
            | "update_topic"
            | "web_fetch"
            | "write_file"
            | "write_todos"
    )
}
