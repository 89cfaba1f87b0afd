//! Gemini CLI's dialect of the Agent Client Protocol.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Value, json};
use teamster_acp::{
    Chunk, Dialect, Figures, ModeSwitch, PermissionOption, RequestKind, RpcError, Tool, ToolCall,
    ToolEnd, TurnSoFar,
};
use teamster_core::{
    AgentError, AgentEvent, ChangeKind, ErrorCode, ErrorKind, ExecuteParams, FileChange,
    ModelUsage, PermissionMode, ToolKind, Usage,
};

use crate::command_line::Flags;
use crate::decoder::errors::{self, Failure};
use crate::decoder::mcp::Servers;
use crate::decoder::{shell, stderr};
use crate::tool_names;

/// Prefix of the new mode in the CLI's message, which it sends as the agent's text.
const NEW_MODE: &str = "[MODE_UPDATE] ";

/// Gemini CLI, run with `gemini --acp`.
#[derive(Debug)]
pub(crate) struct GeminiDialect {
    servers: Servers,
    /// Permission mode with which the process was started, with its rules.
    begun: PermissionMode,
    /// True if the prompt of the turn is a command.
    is_command: bool,
    /// True if the last turn used any tokens.
    used_tokens: bool,
}

impl GeminiDialect {
    pub(crate) fn new(params: &ExecuteParams) -> Self {
        Self {
            servers: Servers::new(params, &Flags::of(&params.extra_args)),
            begun: params.permission,
            is_command: false,
            used_tokens: false,
        }
    }
}

impl Dialect for GeminiDialect {
    fn name(&self) -> &'static str {
        "Gemini CLI"
    }

    /// Returns the tool of a call. The CLI sends the name only in the call's id, and arguments only for commands and
    /// MCP tools.
    fn tool(&mut self, call: &ToolCall) -> Tool {
        let Some(name) = name_in(&call.id) else {
            return call.plain();
        };
        let kind = tool_names::kind(name);
        let shown = || serde_json::from_str::<Value>(&call.text()).ok();
        let input = match kind {
            ToolKind::Execute if name == tool_names::SHELL => json!({"command": call.title}),
            ToolKind::Mcp => shown()
                .filter(Value::is_object)
                .unwrap_or_else(|| call.plain_input()),
            _ => call.plain_input(),
        };
        let mut tool = Tool::new(name, kind, input);
        tool.mcp = (kind == ToolKind::Mcp)
            .then(|| self.servers.tool(name))
            .flatten();
        tool
    }

    fn tool_end(&mut self, call: &ToolCall, tool: &Tool) -> ToolEnd {
        let mut end = call.plain_end();
        if call.status.as_deref() == Some("failed") {
            if end.output.contains("denied by policy") {
                end.denied = Some(end.output.clone());
            }
            return end;
        }
        // Content that describes the call is shown before it ends. Output of commands is never sent.
        end.output = call.text();
        if tool.name == tool_names::SHELL {
            end.is_error = match end.output.as_str() {
                "" => None,
                output => shell::failed(output),
            };
        }
        end.effects = call.content.iter().filter_map(change).collect();
        end
    }

    /// Only the model gets this text.
    fn denied_output(&self, tool: &Tool) -> Option<String> {
        Some(format!("Tool \"{}\" was canceled by the user.", tool.name))
    }

    fn chunk(&self, text: &str, _: &Value, _: &TurnSoFar) -> Chunk {
        match text.strip_prefix(NEW_MODE) {
            Some("default" | "autoEdit" | "yolo" | "plan") => Chunk::Noise,
            _ => Chunk::Answer,
        }
    }

    fn turn_begins(&mut self, is_command: bool) {
        self.is_command = is_command;
    }

    fn figures(&mut self, result: &Value, _: &TurnSoFar) -> Figures {
        let quota = &result["_meta"]["quota"];
        let mut figures = Figures::default();
        figures.usage = usage(&quota["token_count"]);
        self.used_tokens = figures.usage.is_some();
        let models = quota["model_usage"].as_array();
        let model = |it: &Value| {
            let usage = usage(&it["token_count"])?;
            let usage = ModelUsage::new(usage);
            Some((it["model"].as_str()?.to_owned(), usage))
        };
        let by_model: BTreeMap<_, _> = models.into_iter().flatten().filter_map(model).collect();
        figures.by_model = by_model;
        figures
    }

    /// Returns the error of a turn that failed. The CLI also ends a turn normally after an answer that it could not
    /// parse, and after it detected a loop.
    fn failure(&mut self, stop_reason: Option<&str>, turn: &TurnSoFar) -> Option<AgentError> {
        let (kind, message) = match stop_reason? {
            // The CLI does not report this.
            "end_turn" if !turn.has_answer() && !self.is_command && !self.used_tokens => (
                ErrorKind::Permission,
                "the model was not asked: a hook held the prompt back",
            ),
            "end_turn" if !turn.has_answer() && !self.is_command => (
                ErrorKind::Protocol,
                "the model returned an empty response with no text",
            ),
            "max_turn_requests" => (
                ErrorKind::MaxTurns,
                "Gemini CLI stopped: the limit of turns in its settings is reached, or the model calls the \
                 same tool again and again; it does not say which",
            ),
            "max_tokens" => (
                ErrorKind::ContextWindow,
                "the conversation would not fit in the model's context window",
            ),
            _ => return None,
        };
        Some(AgentError::new(ErrorCode::CliError, kind, message))
    }

    fn error(&self, error: &RpcError, during: RequestKind) -> AgentError {
        let message = error.full_message();
        if during == RequestKind::Prompt && error.data.is_none() {
            let failure = Failure::new(None, &message);
            return if failure.is_understood() {
                failure.into_error(None)
            } else {
                error.plain(during)
            };
        }
        let mut plain = error.plain(during);
        if let Some(kind) = stderr::kind_of_stderr(&message) {
            plain.kind = kind;
            plain.retryable = kind.is_retryable();
        }
        plain
    }

    /// Selects the option that allows only this tool, for the session.
    fn always<'a>(&self, options: &'a [PermissionOption]) -> Option<&'a PermissionOption> {
        ["proceed_always_tool", "proceed_always"]
            .into_iter()
            .find_map(|id| options.iter().find(|option| option.id == id))
    }

    fn command_marks(&self) -> &[char] {
        &['/', '$']
    }

    fn replays_after_response(&self) -> bool {
        true
    }

    fn mode(&self, mode: PermissionMode) -> Result<ModeSwitch, AgentError> {
        let id = match mode {
            _ if self.begun == PermissionMode::ReadOnly => None,
            // In the plan mode that a user leaves, its rule denies nothing.
            PermissionMode::Plan if self.begun == PermissionMode::Plan => Some("plan"),
            PermissionMode::Default => Some("default"),
            PermissionMode::AcceptEdits => Some("autoEdit"),
            PermissionMode::Bypass => Some("yolo"),
            _ => None,
        };
        match id {
            Some(id) => Ok(ModeSwitch::Mode(id.to_owned())),
            None => Err(AgentError::refused(
                "permission",
                "Gemini CLI takes the rules of a read-only session, and of its plan mode, when it starts; begin another session",
            )),
        }
    }

    fn stderr_evidence<'a>(&self, stderr: &'a str) -> Cow<'a, str> {
        Cow::Owned(stderr::evidence(stderr))
    }

    fn classify_stderr(&self, stderr: &str) -> Option<ErrorKind> {
        stderr::kind_of_stderr(stderr)
    }

    fn classify_exit_code(&self, code: i32) -> Option<ErrorKind> {
        errors::kind_of_exit_code(code)
    }
}

/// Returns the tool's name in an id: `NAME__NAME_TIME_NUMBER`, or `NAME__ID` if the service has its own id.
fn name_in(id: &str) -> Option<&str> {
    let is_twice = |(at, _): &(usize, &str)| {
        let (name, rest) = (&id[..*at], &id[at + 2..]);
        let numbers = rest.strip_prefix(name).and_then(|it| it.strip_prefix('_'));
        numbers.is_some_and(|it| it.bytes().all(|b| b.is_ascii_digit() || b == b'_'))
    };
    let twice = id.match_indices("__").find(is_twice).map(|(at, _)| at);
    let at = twice.or_else(|| id.rfind("__"))?;
    Some(&id[..at]).filter(|name| !name.is_empty())
}

/// Returns the change of a file whose difference the CLI shows.
fn change(item: &Value) -> Option<AgentEvent> {
    if item["type"] != "diff" {
        return None;
    }
    let change = match item["_meta"]["kind"].as_str() {
        Some("add") => ChangeKind::Add,
        Some("delete") => ChangeKind::Delete,
        _ => ChangeKind::Update,
    };
    Some(AgentEvent::FileChange(Box::new(FileChange::new(
        item["path"].as_str()?,
        change,
    ))))
}

/// Returns the usage. The input includes cache reads, which are not reported separately, and the output excludes
/// reasoning. Zero usage is unknown usage.
fn usage(tokens: &Value) -> Option<Usage> {
    let input = tokens["input_tokens"].as_u64();
    let output = tokens["output_tokens"].as_u64();
    if [input, output].into_iter().flatten().all(|it| it == 0) {
        return None;
    }
    Some(Usage::default().input_tokens(input).output_tokens(output))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tool_is_named_in_the_id() {
        let names = [
            (
                "run_shell_command__run_shell_command_1795293360857_0",
                Some("run_shell_command"),
            ),
            ("mcp_a__b__mcp_a__b_17_0", Some("mcp_a__b")),
            ("mcp_a__b__fc_12", Some("mcp_a__b")),
            ("read_file__call_x", Some("read_file")),
            ("resolve-prompt-x", None),
            ("__x", None),
        ];
        for (id, name) in names {
            assert_eq!(name_in(id), name, "{id}");
        }
    }
}
