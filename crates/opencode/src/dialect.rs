//! OpenCode's dialect of the Agent Client Protocol.

use std::borrow::Cow;

use serde_json::{Value, json};
use teamster_acp::{
    Approve, Dialect, Figures, ModeSwitch, RequestKind, RpcError, SessionCost, SessionOrigin, Tool,
    ToolCall, ToolEnd, TurnSoFar,
};
use teamster_core::provider::json_line::parse;
use teamster_core::text::{excerpt, without_colors};
use teamster_core::{AgentError, AgentEvent, ErrorKind, ExecuteParams, PermissionMode};

use crate::decoder::REASON_BYTES;
use crate::decoder::errors::{self, CliError};
use crate::decoder::stderr::{without_log, without_warnings};
use crate::decoder::steps;
use crate::decoder::tools::{Call, INVALID};
use crate::decoder::wire::{CacheTokens, ErrorBody, ErrorData, Tokens, ToolState};
use crate::launch::{self, Withheld};

/// Prefix of every error that the CLI does not expect.
const INTERNAL: &str = "Internal error: ";

/// The CLI's message if it cannot load a session for any reason.
const NO_SESSION: &str = "OpenCode service failure";

/// The tool that runs commands.
const SHELL: &str = "bash";

/// The agent that makes a plan. A session has its agent as its mode.
const PLAN: &str = "plan";

/// The agent that works.
const BUILD: &str = "build";

/// Returns the mode of a session that begins in permission mode `Plan`.
pub(crate) fn plan_mode(params: &ExecuteParams) -> Option<String> {
    (params.permission == PermissionMode::Plan).then(|| PLAN.to_owned())
}

/// OpenCode, run with `opencode acp`.
#[derive(Debug)]
pub(crate) struct OpenCodeDialect {
    name: &'static str,
    mcp_servers: Vec<String>,
    withheld: Withheld,
    permission: PermissionMode,
    /// The caller has named an agent.
    names_agent: bool,
    /// The session was begun by an earlier process.
    is_continued: bool,
    cost: SessionCost,
}

impl OpenCodeDialect {
    pub(crate) fn new(params: &ExecuteParams) -> Self {
        Self {
            name: "OpenCode",
            mcp_servers: launch::known_servers(params),
            withheld: Withheld::of(params),
            permission: params.permission,
            names_agent: launch::names_agent(params),
            is_continued: false,
            cost: SessionCost::default(),
        }
    }

    /// Creates the dialect of a fork of OpenCode.
    pub(crate) fn named(self, name: &'static str) -> Self {
        Self { name, ..self }
    }

    /// Returns the call in the form of a run.
    fn call(&self, call: &ToolCall) -> Call {
        let mut input = call.input.clone().unwrap_or_else(|| json!({}));
        // A command that is first reported when it runs, or by its request for permission, has itself as the title.
        let is_command =
            call.kind.as_deref() == Some("execute") && input["command"] == *call.first_title;
        let name = if is_command { SHELL } else { &call.first_title };
        // A call that the CLI cannot parse gets another title and input later.
        let is_invalid = input["tool"] == *name && input["error"].is_string() && name != INVALID;
        if let Some(fields) = input.as_object_mut().filter(|_| name == SHELL) {
            // The CLI adds this for display. It is no argument.
            fields.remove("cwd");
        }
        let output = call.output.as_ref();
        let state = json!({
            "status": if call.status.as_deref() == Some("failed") { "error" } else { "completed" },
            "input": input,
            "output": output.map(|output| &output["output"]),
            "error": output.map(|output| &output["error"]),
            "metadata": output.map(|output| &output["metadata"]),
        });
        let state = state.to_string();
        let state: ToolState<'_> = parse(&state).unwrap_or_default();
        let name = if is_invalid { INVALID } else { name };
        Call::new(name, state, &self.mcp_servers, &self.withheld)
    }
}

impl Dialect for OpenCodeDialect {
    fn name(&self) -> &str {
        self.name
    }

    /// Returns the tool, whose name is the first title of the call.
    fn tool(&mut self, call: &ToolCall) -> Tool {
        let call = self.call(call);
        let mut tool = Tool::new(call.name, call.kind, call.input);
        tool.mcp = call.mcp;
        tool
    }

    /// A pending call has no arguments yet.
    fn can_emit(&self, _: &ToolCall) -> bool {
        false
    }

    fn tool_end(&mut self, call: &ToolCall, _: &Tool) -> ToolEnd {
        let ended = self.call(call);
        let media: Vec<Value> = (call.content.iter())
            .filter(|item| item["type"] == "content" && item["content"]["type"] != "text")
            .cloned()
            .collect();
        let mut output = ended.output;
        if !media.is_empty() {
            let mut shown = call.clone();
            shown.content = media;
            output = format!("{output}\n{}", shown.text());
        }
        let mut end = ToolEnd::new(output);
        end.is_error = Some(ended.is_error);
        if ended.denied {
            end.denied = Some(excerpt(&end.output, REASON_BYTES));
        }
        let changes = ended.changes.into_iter();
        end.effects = changes
            .map(|change| AgentEvent::FileChange(Box::new(change)))
            .chain(ended.plan.map(AgentEvent::Plan))
            .collect();
        end
    }

    /// A session that is continued has the agent of its last turn.
    fn initial_mode(
        &self,
        current: &str,
        _: &[&str],
        _: Approve,
    ) -> Result<Option<String>, AgentError> {
        let has_planned = self.is_continued
            && current == PLAN
            && self.permission != PermissionMode::Plan
            && !self.names_agent;
        Ok(has_planned.then(|| BUILD.to_owned()))
    }

    fn session_opened(&mut self, origin: SessionOrigin) {
        self.is_continued = matches!(origin, SessionOrigin::Continued);
        self.cost = SessionCost::new(origin);
    }

    fn set_earlier_cost(&mut self, usd: f64) {
        self.cost.was(usd);
    }

    fn set_session_cost(&mut self, usd: f64) {
        self.cost.is_now(usd);
    }

    /// Returns the usage. Token counts are those of the last step; the session's cost is reported at the end of each
    /// turn.
    fn figures(&mut self, result: &Value, turn: &TurnSoFar) -> Figures {
        let mut figures = Figures::default();
        let one_step = !turn.used_tools() && turn.messages() <= 1;
        let tokens = &result["usage"];
        let number = |name: &str| tokens[name].as_u64();
        figures.usage = steps::usage(Tokens {
            input: number("inputTokens"),
            output: number("outputTokens"),
            reasoning: number("thoughtTokens"),
            cache: CacheTokens {
                read: number("cachedReadTokens"),
                write: number("cachedWriteTokens"),
            },
        })
        .filter(|_| one_step);
        figures.cost = self.cost.of_turn();
        figures
    }

    fn error(&self, error: &RpcError, during: RequestKind) -> AgentError {
        if during == RequestKind::Resume && error.message.ends_with(NO_SESSION) {
            let mut plain = error.plain(during);
            plain.kind = ErrorKind::SessionNotFound;
            plain.retryable = false;
            return plain;
        }
        let Some(message) = error.message.strip_prefix(INTERNAL) else {
            let mut plain = error.plain(during);
            if error.message.contains("model not found") {
                plain.kind = ErrorKind::ModelNotFound;
            }
            return plain;
        };
        let name = error
            .data
            .as_ref()
            .and_then(|data| data["errorName"].as_str());
        CliError::of(&ErrorBody {
            name: name.map(Cow::Borrowed),
            data: ErrorData {
                message: Some(Cow::Borrowed(message)),
                ..ErrorData::default()
            },
        })
        .error
    }

    fn keeps_empty_sessions(&self) -> bool {
        true
    }

    /// Tools that need no permission request are in the settings with which the CLI was started.
    fn mode(&self, mode: PermissionMode) -> Result<ModeSwitch, AgentError> {
        let begun_with = self.permission;
        let approve = match mode {
            PermissionMode::Plan if begun_with == PermissionMode::Plan => Some(Approve::Nothing),
            _ if matches!(begun_with, PermissionMode::ReadOnly | PermissionMode::Plan) => None,
            PermissionMode::Default if begun_with == PermissionMode::AcceptEdits => None,
            PermissionMode::Default => Some(Approve::Nothing),
            PermissionMode::AcceptEdits => Some(Approve::Edits),
            PermissionMode::Bypass => Some(Approve::Everything),
            _ => None,
        };
        approve.map(ModeSwitch::Answers).ok_or_else(|| {
            AgentError::refused("permission", format!(
                "OpenCode takes a session's permissions when it starts: this one began with {}; begin \
                 another session for {}",
                begun_with.as_str(),
                mode.as_str()
            ))
        })
    }

    fn stderr_evidence<'a>(&self, stderr: &'a str) -> Cow<'a, str> {
        let plain = without_colors(stderr);
        Cow::Owned(without_warnings(&without_log(&plain)))
    }

    fn classify_stderr(&self, stderr: &str) -> Option<ErrorKind> {
        errors::kind_of_stderr(stderr)
    }
}

#[cfg(test)]
mod tests {
    //! Made-up calls, in the form of Kilo's.

    use teamster_core::ToolKind;

    use super::*;

    fn tool(title: &str, input: Value) -> Tool {
        let mut call = ToolCall::default();
        call.first_title.push_str(title);
        call.kind = Some("execute".to_owned());
        call.input = Some(input);
        OpenCodeDialect::new(&ExecuteParams::new("x")).tool(&call)
    }

    #[test]
    fn a_command_is_one_by_its_tool_or_by_its_title() {
        let input = json!({"command": "sleep 9", "cwd": "/w"});
        for title in ["bash", "sleep 9"] {
            let tool = tool(title, input.clone());
            assert_eq!(
                (tool.name.as_str(), tool.kind),
                ("bash", ToolKind::Execute),
                "{title}"
            );
            assert_eq!(tool.input, json!({"command": "sleep 9"}), "{title}");
        }
        let other = tool("deploy", input);
        assert_eq!(
            (other.name.as_str(), other.kind),
            ("deploy", ToolKind::Other)
        );
    }
}
