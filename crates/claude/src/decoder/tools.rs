//! Tools: kinds, names, and results as text.

use std::collections::{HashMap, HashSet};

use serde_json::Value;
use serde_json::value::RawValue;
use teamster_core::provider::json_line::{parse, repaired};
use teamster_core::provider::media_placeholder;
use teamster_core::text::excerpt;
use teamster_core::{
    AgentEvent, ChangeKind, FileChange, Id, Plan, PlanEntry, PlanStatus, ToolKind,
};

use super::wire::{Block, Content, FileResult, Source, TaskLine, TaskResult};

/// Maximum bytes of a failed tool's output that are kept as the reason of a denial.
const REASON_BYTES: usize = 500;

/// State of tool calls.
#[derive(Debug, Default)]
pub(super) struct Tools {
    /// Calls of the turn.
    seen: HashSet<Id>,
    /// Details to read from the results of open calls.
    open: HashMap<Id, Details>,
    /// Tasks of the main agent, with their ids.
    tasks: Vec<(String, PlanEntry)>,
    /// Errors of failed calls.
    failures: HashMap<Id, String>,
}

/// Kind of the structured part of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Details {
    /// A written file, with the path from the call.
    File(Option<String>),
    /// A change of the task list.
    Tasks,
}

impl Tools {
    /// Begins a call. Sub-agents have separate task lists, which are not tracked.
    pub(super) fn started(
        &mut self,
        id: &Id,
        name: &str,
        kind: ToolKind,
        input: &Value,
        sub_agent: bool,
    ) {
        self.seen.insert(id.clone());
        let details = match name {
            "TaskCreate" | "TaskUpdate" | "TaskList" if !sub_agent => Details::Tasks,
            _ if kind == ToolKind::Edit => {
                let path = input
                    .get("file_path")
                    .or_else(|| input.get("notebook_path"));
                Details::File(path.and_then(Value::as_str).map(str::to_owned))
            }
            _ => return,
        };
        self.open.insert(id.clone(), details);
    }

    /// Ends a call. Returns its effect, if the structured part of its result has one.
    pub(super) fn ended(
        &mut self,
        id: &Id,
        output: &str,
        is_error: Option<bool>,
        result: Option<&RawValue>,
    ) -> Option<AgentEvent> {
        let details = self.open.remove(id);
        if is_error == Some(true) {
            self.failures
                .insert(id.clone(), excerpt(output, REASON_BYTES));
            return None;
        }
        match details? {
            Details::File(path) => file_change(id, path, output, result),
            Details::Tasks => self.plan_changed(result?),
        }
    }

    fn plan_changed(&mut self, result: &RawValue) -> Option<AgentEvent> {
        let result: TaskResult<'_> = parse(result.get())?;
        let entry = |task: TaskLine<'_>| {
            let entry = PlanEntry::new(
                task.subject.into_owned(),
                PlanStatus::from_word(task.status.as_deref()),
            );
            (task.id.into_owned(), entry)
        };
        let mut tasks = self.tasks.clone();
        if let Some(all) = result.tasks {
            tasks = all.into_iter().map(entry).collect();
        }
        tasks.extend(result.task.map(entry));
        if let (Some(id), Some(change)) = (result.task_id, result.status_change) {
            if change.to == "deleted" {
                tasks.retain(|(task, _)| *task != *id);
            } else if let Some((_, entry)) = tasks.iter_mut().find(|(task, _)| *task == *id) {
                entry.status = PlanStatus::from_word(Some(&change.to));
            }
        }
        if tasks == self.tasks {
            return None;
        }
        self.tasks = tasks;
        Some(AgentEvent::Plan(Plan::new(
            self.tasks.iter().map(|(_, entry)| entry.clone()),
        )))
    }

    /// Returns the error of a failed call, as the model received it.
    pub(super) fn failure(&mut self, id: &Id) -> Option<String> {
        self.failures.remove(id)
    }

    /// Returns whether this call was made in the turn.
    pub(super) fn has_seen(&self, id: &str) -> bool {
        self.seen.contains(id)
    }

    /// Discards the calls of a turn that has ended.
    pub(super) fn forget_turn(&mut self) {
        self.seen.clear();
        self.open.clear();
        self.failures.clear();
    }

    /// Discards the calls and tasks of a session that has ended.
    pub(super) fn forget_session(&mut self) {
        self.forget_turn();
        self.tasks.clear();
    }
}

/// Returns the change of a written file. The CLI prints no structured result for a sub-agent's call. Then the path
/// comes from the input, and the output shows whether the file is new.
fn file_change(
    id: &Id,
    path: Option<String>,
    output: &str,
    result: Option<&RawValue>,
) -> Option<AgentEvent> {
    let result: Option<FileResult<'_>> = result.and_then(|result| parse(result.get()));
    let created = match result.as_ref().and_then(|result| result.kind.as_deref()) {
        Some(kind) => kind == "create",
        None => output.starts_with("File created"),
    };
    let written = result.and_then(|result| result.file_path);
    Some(AgentEvent::FileChange(Box::new(
        FileChange::new(
            written.map(std::borrow::Cow::into_owned).or(path)?,
            if created {
                ChangeKind::Add
            } else {
                ChangeKind::Update
            },
        )
        .tool_id(id.clone()),
    )))
}

/// Returns the kind of a built-in tool. Names of removed tools are for older versions.
pub(super) fn kind(name: &str) -> ToolKind {
    match name {
        "Read" | "NotebookRead" | "ListMcpResourcesTool" | "ReadMcpResourceTool" => ToolKind::Read,
        "Edit" | "MultiEdit" | "Write" | "NotebookEdit" => ToolKind::Edit,
        "Bash" | "BashOutput" | "KillShell" | "KillBash" | "PowerShell" | "REPL" | "Monitor" => {
            ToolKind::Execute
        }
        "Glob" | "Grep" | "LS" | "WebSearch" | "web_search" | "ToolSearch" => ToolKind::Search,
        "WebFetch" | "web_fetch" => ToolKind::Fetch,
        "Agent" | "Task" | "SendMessage" | "TaskOutput" | "TaskStop" | "Workflow" => ToolKind::Task,
        // `StructuredOutput` submits an answer that fits a schema.
        "TodoWrite" | "TodoRead" | "TaskCreate" | "TaskGet" | "TaskList" | "TaskUpdate"
        | "EnterPlanMode" | "ExitPlanMode" | "StructuredOutput" => ToolKind::Think,
        _ if name.starts_with("mcp__") => ToolKind::Mcp,
        _ => ToolKind::Other,
    }
}

/// Returns the to-do list in the input of `TodoWrite`.
pub(super) fn plan(tool: &str, input: &Value) -> Option<Vec<PlanEntry>> {
    if tool != "TodoWrite" {
        return None;
    }
    let entry = |todo: &Value| {
        Some(PlanEntry::new(
            todo.get("content")?.as_str()?.to_owned(),
            PlanStatus::from_word(todo.get("status")?.as_str()),
        ))
    };
    input.get("todos")?.as_array()?.iter().map(entry).collect()
}

/// Returns a tool's result as text.
pub(super) fn output(content: Content<'_>) -> String {
    match content {
        Content::Nothing => String::new(),
        Content::Text(text) => text.into_owned(),
        Content::Blocks(blocks) => {
            let parts: Vec<String> = blocks.into_iter().map(part).collect();
            parts.join("\n")
        }
    }
}

fn part(block: Block<'_>) -> String {
    let source = block.source.map(repaired);
    let source: Option<Source<'_>> = source.as_deref().and_then(|source| parse(source.get()));
    match (block.text, source) {
        (Some(text), _) => text.into_owned(),
        (None, Some(source)) => placeholder(&block.kind, &source),
        (None, None) => {
            let names = [block.tool_name, block.title, block.url];
            let names: Vec<_> = names.into_iter().flatten().collect();
            if names.is_empty() {
                format!("[{}]", block.kind)
            } else {
                format!("[{}: {}]", block.kind, names.join(", "))
            }
        }
    }
}

/// Returns a placeholder for an image or a document, with its type and size.
fn placeholder(kind: &str, source: &Source<'_>) -> String {
    match (&source.data, &source.url) {
        (None, Some(url)) => format!("[{kind}: {url}]"),
        (data, _) => media_placeholder(kind, source.media_type.as_deref(), data.as_deref()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_become_placeholders() {
        let content: Content<'_> = serde_json::from_str(
            r#"[{"type":"text","text":"a"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAECAw=="}},{"type":"odd"},{"type":"tool_reference","tool_name":"x"},{"type":"search_result","source":"a","title":"t"}]"#,
        )
        .unwrap();
        assert_eq!(
            output(content),
            "a\n[image: image/png, 4 bytes]\n[odd]\n[tool_reference: x]\n[search_result: t]"
        );
    }

    #[test]
    fn a_plan_is_read_from_the_input() {
        let input = serde_json::json!({"todos": [
            {"content": "one", "status": "completed"}, {"content": "two", "status": "in_progress"}
        ]});
        let plan = plan("TodoWrite", &input).unwrap();
        assert_eq!(plan[0].status, PlanStatus::Completed);
        assert_eq!(plan[1].content, "two");
    }
}
