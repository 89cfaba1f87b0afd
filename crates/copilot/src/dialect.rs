//! GitHub Copilot CLI's dialect of the Agent Client Protocol.

mod cli_messages;

use serde_json::{Value, json};
use teamster_acp::{
    Approve, Chunk, Dialect, Figures, HeldText, ModeSwitch, NextUpdate, RequestKind, RpcError,
    SessionOrigin, SessionTokens, Tool, ToolCall, ToolEnd, TurnSoFar,
};
use teamster_core::provider::json_line::parse;
use teamster_core::{
    AgentError, AgentEvent, ChangeKind, ErrorKind, ExecuteParams, FileChange, PermissionMode,
    ToolKind,
};

use crate::decoder::mcp::Servers;
use crate::decoder::tools::{kind_of_call, kind_of_own, shell_end};
use crate::decoder::wire::ToolComplete;
use crate::decoder::{errors, results};
use cli_messages::Form;

/// The option that allows everything.
const ALLOW_ALL: &str = "allow_all";

/// The mode in which it makes a plan.
pub(crate) const PLAN_MODE: &str = "https://agentclientprotocol.com/protocol/session-modes#plan";
/// The mode in which it works.
const AGENT_MODE: &str = "https://agentclientprotocol.com/protocol/session-modes#agent";

/// GitHub Copilot CLI, run with `copilot --acp`.
#[derive(Debug)]
pub(crate) struct CopilotDialect {
    servers: Servers,
    /// Permission mode with which the process was started, by flags.
    permission: PermissionMode,
    /// True if the prompt of the turn is a command.
    is_command: bool,
    total: SessionTokens,
    /// True if the total covers the session. It never includes usage before this process.
    covers_session: bool,
}

impl CopilotDialect {
    pub(crate) fn new(params: &ExecuteParams) -> Self {
        let asked = params.mcp_servers.iter().map(|server| server.name.clone());
        Self {
            servers: Servers::new(asked.collect()),
            permission: params.permission,
            is_command: false,
            total: SessionTokens::default(),
            covers_session: false,
        }
    }

    /// Returns whether no request of the turn that has just ended was answered.
    fn used_nothing(&self, result: &Value) -> bool {
        SessionTokens::of(result).is_none_or(|total| total.since(self.total).is_none())
    }
}

impl Dialect for CopilotDialect {
    fn name(&self) -> &'static str {
        "GitHub Copilot CLI"
    }

    /// Returns the tool of a call. If the CLI sends a description instead of the tool's name, the name is derived
    /// from the description and the arguments.
    fn tool(&mut self, call: &ToolCall) -> Tool {
        let input = call.input.clone().unwrap_or_else(|| json!({}));
        if let Some(found) = self.servers.tool_named(&call.first_title) {
            let mut tool = Tool::new(&call.first_title, ToolKind::Mcp, input);
            tool.mcp = Some(found);
            return tool;
        }
        let Some(name) = name_of(call) else {
            let mut tool = call.plain();
            if is_described(call) {
                // A description of the model, without a name.
                let word = call.kind.as_deref().unwrap_or("other");
                word.clone_into(&mut tool.name);
            }
            tool.input = input;
            return tool;
        };
        let kind = kind_of_call(name, Some(&input));
        let mut tool = Tool::new(name, kind, input);
        tool.sub_agent = name == "task";
        tool
    }

    /// A call is complete with its input. The CLI reports it once, before the tool runs, and does not report the start.
    fn can_emit(&self, call: &ToolCall) -> bool {
        call.input.is_some()
    }

    fn tool_end(&mut self, call: &ToolCall, tool: &Tool) -> ToolEnd {
        let succeeded = call.status.as_deref() != Some("failed");
        let Some(reported) = call.output.as_ref().filter(|it| it.is_object()) else {
            return call.plain_end();
        };
        // The form that a run prints.
        let line = if succeeded {
            json!({"success": true, "result": without_exit(reported)})
        } else {
            json!({"success": false, "error": reported})
        };
        let line = line.to_string();
        let Some(line) = parse::<ToolComplete<'_>>(&line) else {
            return call.plain_end();
        };
        let failed = !succeeded || exit_code(reported, tool).is_some_and(|code| code != 0);
        let mut end = ToolEnd::new(results::output(&line));
        end.is_error = Some(failed);
        if !succeeded && let Some(message) = server_message(&end.output, tool) {
            end.output = message.to_owned();
        }
        // Denied by a rule. A request denied by an answer is `rejected`, and the answer was already reported.
        end.denied = (line.error.as_ref())
            .filter(|error| error.code.text() == "denied")
            .map(|error| error.message.text().to_owned());
        if succeeded {
            let content = call.content.iter();
            end.effects = content
                .filter_map(|item| change(item, &tool.name))
                .collect();
        }
        end
    }

    fn turn_begins(&mut self, is_command: bool) {
        self.is_command = is_command;
    }

    fn chunk(&self, text: &str, _: &Value, turn: &TurnSoFar) -> Chunk {
        // Before the model is asked, the text is the CLI's. It may be the output of a command.
        let before_all = turn.requests() == 0 && !self.is_command;
        match cli_messages::form(text) {
            Some(Form::Failure { .. } | Form::Retry(_)) => Chunk::Hold,
            Some(Form::Cancelled) if turn.was_rejected() => Chunk::Noise,
            Some(Form::Interrupted) if before_all => Chunk::Notice(None),
            Some(Form::Info(_)) if before_all => Chunk::Noise,
            Some(Form::Info(path)) if turn.open_calls().any(|call| is_about(call, path)) => {
                Chunk::Noise
            }
            _ => Chunk::Answer,
        }
    }

    fn held_text(&mut self, text: &str, next: NextUpdate<'_>, _: &TurnSoFar) -> HeldText {
        match (cli_messages::form(text), next) {
            (Some(Form::Retry(error)), NextUpdate::Request) => HeldText::Retry(error),
            (Some(Form::Failure { error, is_sure }), NextUpdate::End(result))
                if is_sure || self.used_nothing(result) =>
            {
                HeldText::Failure(error)
            }
            _ => HeldText::Answer,
        }
    }

    fn usage_begins_messages(&self) -> bool {
        true
    }

    /// The CLI restarts its count in each process and for each session.
    fn session_opened(&mut self, origin: SessionOrigin) {
        self.total = SessionTokens::default();
        self.covers_session = origin == SessionOrigin::New;
    }

    fn figures(&mut self, result: &Value, _: &TurnSoFar) -> Figures {
        let mut figures = Figures::default();
        if let Some(total) = SessionTokens::of(result) {
            figures.usage = total.since(self.total);
            if self.covers_session && self.total != SessionTokens::default() {
                figures.session_usage = total.since(SessionTokens::default());
            }
            self.total = total;
        }
        figures
    }

    fn error(&self, error: &RpcError, during: RequestKind) -> AgentError {
        let mut plain = error.plain(during);
        let message = error.full_message();
        let kind = errors::kind_of_text(&message).or_else(|| errors::kind_of_stderr(&message));
        if let Some(kind) = kind.filter(|_| plain.kind != ErrorKind::SessionNotFound) {
            plain.kind = kind;
            plain.retryable = kind.is_retryable();
        }
        plain
    }

    /// A session that is loaded is in the mode of its last turn.
    fn initial_mode(
        &self,
        current: &str,
        _: &[&str],
        _: Approve,
    ) -> Result<Option<String>, AgentError> {
        let has_planned = current == PLAN_MODE && self.permission != PermissionMode::Plan;
        Ok(has_planned.then(|| AGENT_MODE.to_owned()))
    }

    /// Tools allowed by the flag for everything stay allowed with any value of the option (measured), and so do rules
    /// of other flags.
    fn mode(&self, mode: PermissionMode) -> Result<ModeSwitch, AgentError> {
        let value = match (self.permission, mode) {
            (PermissionMode::Plan, PermissionMode::Plan) => {
                return Ok(ModeSwitch::Mode(PLAN_MODE.to_owned()));
            }
            (PermissionMode::Plan, PermissionMode::Default) => {
                return Ok(ModeSwitch::Mode(AGENT_MODE.to_owned()));
            }
            (PermissionMode::ReadOnly | PermissionMode::Plan, _) => None,
            (_, PermissionMode::Bypass) => Some("on"),
            (begun, mode) if begun == mode => Some("off"),
            _ => None,
        };
        let switch = value.map(|value| ModeSwitch::Option(ALLOW_ALL.into(), value.into()));
        switch.ok_or_else(|| {
            AgentError::refused(
                "permission",
                format!(
                    "GitHub Copilot CLI takes its permissions when a session begins: it cannot change \
                 from {} to {}; begin another session",
                    self.permission.as_str(),
                    mode.as_str()
                ),
            )
        })
    }

    fn classify_stderr(&self, stderr: &str) -> Option<ErrorKind> {
        errors::kind_of_stderr(stderr)
    }
}

/// Returns the tool's name; `None` if it is unknown.
fn name_of(call: &ToolCall) -> Option<&str> {
    let title = call.first_title.as_str();
    let has = |name: &str| {
        let input = call.input.as_ref();
        input.is_some_and(|input| input.get(name).is_some())
    };
    let is_described = is_described(call);
    if !is_described && kind_of_own(title) != ToolKind::Other {
        return Some(title);
    }
    let begins = |words: &str| !is_described && title.starts_with(words);
    Some(match call.kind.as_deref().unwrap_or("other") {
        "execute" if has("command") => "bash",
        "execute" if has("shellId") && has("input") => "write_bash",
        "execute" if has("shellId") => "stop_bash",
        "edit" if has("file_text") || begins("Creating ") => "create",
        "edit" if has("old_str") || begins("Editing ") => "edit",
        "read" if has("shellId") => "read_bash",
        "read" if begins("Viewing ") => "view",
        "read" if begins("Searching for ") => "grep",
        "read" if begins("Finding files ") => "glob",
        "fetch" if has("url") => "web_fetch",
        "other" if has("agent_type") && has("prompt") => "task",
        "other" if has("query") && is_described => "sql",
        "other" if has("skill") && begins("Using skill: ") => "skill",
        _ => return None,
    })
}

/// Returns whether the title is the model's description of the call.
fn is_described(call: &ToolCall) -> bool {
    let input = call.input.as_ref();
    input.is_some_and(|input| input["description"] == call.first_title.as_str())
}

/// Returns whether a call is about this file.
fn is_about(call: &ToolCall, path: &str) -> bool {
    let mut locations = call.locations.iter();
    locations.any(|location| location["path"] == path)
}

/// Returns a server's own message in the result of a failed tool, without the server's name. Errors of the protocol
/// between the CLI and the server stay as they are, as in a run.
fn server_message<'a>(output: &'a str, tool: &Tool) -> Option<&'a str> {
    let server = &tool.mcp.as_ref()?.server;
    let message = output.strip_prefix("MCP server '")?;
    let message = message.strip_prefix(server.as_str())?.strip_prefix("': ")?;
    (!message.starts_with("McpError: ")).then_some(message)
}

/// Returns the exit code of a command.
fn exit_code(reported: &Value, tool: &Tool) -> Option<i64> {
    if tool.kind != ToolKind::Execute {
        return None;
    }
    let blocks = reported["contents"].as_array();
    let end = blocks.into_iter().flatten().find(|block| is_exit(block));
    end.and_then(|block| block["exitCode"].as_i64())
        .or_else(|| shell_end(reported["content"].as_str()?).map(|(_, code)| code))
}

fn is_exit(block: &Value) -> bool {
    block["type"] == "shell_exit"
}

/// Returns a tool's output without the block with a command's exit status, which is no content.
fn without_exit(reported: &Value) -> Value {
    let mut reported = reported.clone();
    if let Some(blocks) = reported.get_mut("contents").and_then(Value::as_array_mut) {
        blocks.retain(|block| !is_exit(block));
    }
    reported
}

/// Returns the change of a file whose difference the CLI shows.
fn change(item: &Value, tool: &str) -> Option<AgentEvent> {
    if item["type"] != "diff" {
        return None;
    }
    let change = match tool {
        "create" => ChangeKind::Add,
        _ => ChangeKind::Update,
    };
    Some(AgentEvent::FileChange(Box::new(FileChange::new(
        item["path"].as_str()?,
        change,
    ))))
}
