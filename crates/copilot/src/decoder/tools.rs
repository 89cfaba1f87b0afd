//! Tools: calls, kinds and outcomes.

use serde_json::Value;
use teamster_core::provider::UniqueIds;
use teamster_core::{AgentEvent, ChangeKind, FileChange, Id, ToolKind, ToolUse};

use super::mcp::Servers;
use super::results::{self, is_large, succeeded};
use super::wire::{FileEdit, ShellOutput, ToolComplete, ToolStart};

/// Largest kept output of running commands, in bytes. The rest of a large output is only in the pieces that come
/// while the command runs.
const KEPT_OUTPUT_BYTES: usize = 32 * 1024 * 1024;

/// The calls of all agents.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    open: Vec<Call>,
    /// Ids under which calls were passed on.
    used: UniqueIds,
    kept_bytes: usize,
    pub(crate) servers: Servers,
}

/// A running call.
#[derive(Debug)]
pub(crate) struct Call {
    /// Lane of the agent that made the call.
    lane: usize,
    /// The CLI's id, which two agents may share.
    raw: String,
    /// The unique id under which the call was passed on.
    pub(crate) id: Id,
    pub(crate) name: String,
    pub(crate) kind: ToolKind,
    pieces: String,
    /// Number of pieces; `None` if one was lost or exceeded the limit.
    complete_pieces: Option<u64>,
}

/// End of a call.
pub(crate) struct Outcome {
    pub(crate) output: String,
    pub(crate) is_error: bool,
    pub(crate) denied: bool,
    pub(crate) reason: Option<String>,
}

impl Calls {
    /// Starts a call and returns its event. The caller sets the event's parent.
    pub(crate) fn start(&mut self, lane: usize, line: ToolStart<'_>) -> ToolUse {
        let name = line.tool_name.text().to_owned();
        self.servers.know(line.mcp_server_name.text());
        let mcp = self.servers.tool(&line);
        let kind = match mcp {
            Some(_) => ToolKind::Mcp,
            None => kind_of_call(&name, line.arguments.as_ref()),
        };
        let raw = line.tool_call_id.text();
        let id = self.used.unique(raw);
        self.open.push(Call {
            lane,
            raw: raw.to_owned(),
            id: id.clone(),
            name: name.clone(),
            kind,
            pieces: String::new(),
            complete_pieces: Some(0),
        });
        ToolUse::new(
            name,
            id,
            kind,
            line.arguments
                .unwrap_or_else(|| Value::Object(serde_json::Map::default())),
        )
        .mcp(mcp)
    }

    /// Adds a piece of a command's output. Pieces of a background command, whose call has ended, are ignored: later
    /// calls read them.
    pub(crate) fn shell_output(&mut self, lane: usize, line: &ShellOutput<'_>) {
        let Some(at) = self.position(lane, line.tool_call_id.text()) else {
            return;
        };
        let text = line.text.text();
        let room = self.kept_bytes + text.len() <= KEPT_OUTPUT_BYTES;
        let call = &mut self.open[at];
        let in_order = line.sequence.is_none() || line.sequence == call.complete_pieces;
        match call.complete_pieces {
            Some(pieces) if room && in_order => {
                call.pieces.push_str(text);
                call.complete_pieces = Some(pieces + 1);
                self.kept_bytes += text.len();
            }
            _ => {
                self.kept_bytes -= call.pieces.len();
                call.pieces = String::new();
                call.complete_pieces = None;
            }
        }
    }

    /// Ends a call. Returns `None` if its start was lost.
    pub(crate) fn end(&mut self, lane: usize, raw: &str) -> Option<Call> {
        let at = self.position(lane, raw)?;
        let call = self.open.remove(at);
        self.kept_bytes -= call.pieces.len();
        Some(call)
    }

    /// Returns the id under which an open call was passed on.
    pub(crate) fn id_of(&self, lane: usize, raw: &str) -> Option<Id> {
        self.position(lane, raw).map(|at| self.open[at].id.clone())
    }

    /// Returns the id of the latest open call of any agent.
    pub(crate) fn id_of_any(&self, raw: &str) -> Option<Id> {
        let call = self.open.iter().rfind(|c| c.raw == raw)?;
        Some(call.id.clone())
    }

    /// Returns an open call.
    pub(crate) fn find(&self, lane: usize, raw: &str) -> Option<&Call> {
        self.position(lane, raw).map(|at| &self.open[at])
    }

    fn position(&self, lane: usize, raw: &str) -> Option<usize> {
        self.open
            .iter()
            .position(|c| c.lane == lane && c.raw == raw)
    }
}

impl Call {
    /// Returns the outcome of the call.
    pub(crate) fn outcome(&self, line: &ToolComplete<'_>) -> Outcome {
        let output = self.output(line);
        let success = succeeded(line);
        let error = line.error.as_ref();
        let exit_code = line.shell_execution.exit_code.or_else(|| {
            let ran = self.kind == ToolKind::Execute;
            ran.then(|| exit_code_in(line.result.content.text()))
                .flatten()
        });
        let denied =
            !success && error.is_some_and(|e| matches!(e.code.text(), "denied" | "rejected"));
        Outcome {
            output,
            is_error: !success || exit_code.is_some_and(|code| code != 0),
            denied,
            reason: error.and_then(|e| e.message.get()).map(str::to_owned),
        }
    }

    fn output(&self, line: &ToolComplete<'_>) -> String {
        if is_large(line) && self.complete_pieces.is_some_and(|pieces| pieces > 0) {
            // The model got only a preview.
            return self.pieces.clone();
        }
        results::output(line)
    }

    /// Returns the shell that continues in the background after this call.
    pub(crate) fn background_shell<'a>(&self, line: &'a ToolComplete<'_>) -> Option<&'a str> {
        if self.kind != ToolKind::Execute {
            return None;
        }
        let content = line.result.content.text();
        let started = content
            .rsplit_once("<command started in background with shellId: ")
            .and_then(|(_, rest)| rest.split_once('>'));
        // It exceeded the time that the call waits.
        let running = content
            .rsplit_once("<command with shellId: ")
            .and_then(|(_, rest)| rest.split_once(' '))
            .filter(|(_, rest)| rest.starts_with("is still running"));
        started.or(running).map(|(shell, _)| shell)
    }
}

/// Returns the ended shell and its exit code from a text that ends in `<shellId: 0 completed with exit code 3>`.
pub(crate) fn shell_end(content: &str) -> Option<(&str, i64)> {
    let inner = content.trim_end().strip_suffix('>')?;
    let (_, inner) = inner.rsplit_once("<shellId: ")?;
    let (shell, code) = inner.split_once(" completed with exit code ")?;
    Some((shell, code.parse().ok()?))
}

fn exit_code_in(content: &str) -> Option<i64> {
    shell_end(content).map(|(_, code)| code)
}

/// Returns the events of the files that a call changed.
pub(crate) fn file_changes(id: &Id, edits: &[FileEdit<'_>]) -> Vec<AgentEvent> {
    let mut events = Vec::with_capacity(edits.len());
    for edit in edits {
        let Some(path) = edit.path.get() else {
            continue;
        };
        events.push(AgentEvent::FileChange(Box::new(
            FileChange::new(
                path,
                match edit.kind.text() {
                    "create" => ChangeKind::Add,
                    "delete" => ChangeKind::Delete,
                    _ => ChangeKind::Update,
                },
            )
            .tool_id(id.clone()),
        )));
    }
    events
}

/// Returns the kind of a call of one of the CLI's own tools.
pub(crate) fn kind_of_call(name: &str, arguments: Option<&Value>) -> ToolKind {
    match kind_of_own(name) {
        _ if name == "lsp" && !only_looks(arguments) => ToolKind::Edit,
        kind => kind,
    }
}

/// Returns the kind of one of the CLI's own tools, or [`ToolKind::Other`] if it is unknown.
pub(crate) fn kind_of_own(name: &str) -> ToolKind {
    match name {
        "bash" | "read_bash" | "write_bash" | "stop_bash" | "list_bash" | "powershell"
        | "read_powershell" | "write_powershell" | "stop_powershell" | "list_powershell" => {
            ToolKind::Execute
        }
        "view"
        | "skill"
        | "fetch_copilot_cli_documentation"
        | "session_store_sql"
        | "show_file" => ToolKind::Read,
        // A memory is kept for all later sessions in the repository.
        "create" | "edit" | "apply_patch" | "str_replace_editor" | "store_memory" => ToolKind::Edit,
        "grep" | "glob" | "rg" | "web_search" | "lsp" => ToolKind::Search,
        "web_fetch" => ToolKind::Fetch,
        "task" | "read_agent" | "write_agent" | "list_agents" => ToolKind::Task,
        // The database of `sql` is private to the session.
        "sql" | "report_intent" | "update_todo" | "task_complete" | "exit_plan_mode"
        | "ask_user" => ToolKind::Think,
        _ => ToolKind::Other,
    }
}

/// Returns whether a call of `lsp` changes no files. It can also rename a symbol in every file that contains it.
fn only_looks(arguments: Option<&Value>) -> bool {
    let operation = arguments.and_then(|arguments| arguments.get("operation")?.as_str());
    matches!(
        operation,
        Some(
            "goToDefinition"
                | "findReferences"
                | "hover"
                | "documentSymbol"
                | "workspaceSymbol"
                | "goToImplementation"
                | "incomingCalls"
                | "outgoingCalls"
        )
    )
}
