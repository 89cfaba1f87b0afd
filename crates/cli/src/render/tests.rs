//! Events and a screen for tests.

use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;

use serde_json::{Value, json};
use teamster::{
    AgentError, AgentEvent, Done, ErrorCode, ErrorKind, Retract, Retry, RunResult, RunStatus,
    SessionStarted, Text, Thinking, ToolKind, ToolResult, ToolUse, Usage,
};
use teamster_api::{LifecycleEntry, Next, RunEvent, RunLogEntry};

use super::View;

/// A writer whose clones share a buffer, as stdout and stderr share a terminal.
#[derive(Debug, Clone, Default)]
pub(crate) struct Screen(Rc<RefCell<Vec<u8>>>);

impl Screen {
    /// Returns the content without styles.
    pub(crate) fn text(&self) -> String {
        anstream::adapter::strip_str(&self.raw()).to_string()
    }

    /// Returns the content with styles.
    pub(crate) fn raw(&self) -> String {
        String::from_utf8(self.0.borrow().clone()).unwrap()
    }
}

impl Write for Screen {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub(crate) fn view() -> View {
    View {
        agent: crate::global::providers().get("claude").unwrap().info(),
        verbose: false,
        quiet: false,
        directory: Some("/tmp/ws".into()),
        resume: Some("--resume".into()),
        permission: None,
        allowed_tools: Vec::new(),
        asks: false,
        mcp: None,
        clock: || 1_000_000,
        is_first: |notice| !notice.contains("again"),
    }
}

/// Returns the entry of an agent's event.
pub(crate) fn agent(event: AgentEvent) -> RunLogEntry {
    RunLogEntry::Agent(event.into())
}

/// Returns the entry of an event of the run itself.
pub(crate) fn of_run(event: RunEvent) -> RunLogEntry {
    LifecycleEntry::new(event).into()
}

pub(crate) fn session() -> AgentEvent {
    AgentEvent::SessionStarted(Box::new(
        SessionStarted::new("s-1").model("claude-opus-4-8"),
    ))
}

pub(crate) fn text(message: &str, text: &str) -> AgentEvent {
    agent_text(Some(message), None, text)
}

pub(crate) fn agent_text(message: Option<&str>, parent: Option<&str>, text: &str) -> AgentEvent {
    AgentEvent::Text(
        Text::new(text)
            .message_id(message.map(Into::into))
            .parent_tool_id(parent.map(Into::into)),
    )
}

pub(crate) fn thinking(text: &str) -> AgentEvent {
    AgentEvent::Thinking(Thinking::new(text).message_id("m1"))
}

pub(crate) fn retract(message: &str) -> AgentEvent {
    AgentEvent::Retract(Retract::new(message))
}

pub(crate) fn tool(id: &str, parent: Option<&str>, name: &str, input: Value) -> AgentEvent {
    AgentEvent::ToolUse(Box::new(
        ToolUse::new(name, id, ToolKind::Execute, input).parent_tool_id(parent.map(Into::into)),
    ))
}

pub(crate) fn tool_ok(id: &str, output: &str) -> AgentEvent {
    tool_result(id, output, Some(false))
}

/// Returns a tool result of unknown success.
pub(crate) fn tool_ended(id: &str, output: &str) -> AgentEvent {
    tool_result(id, output, None)
}

pub(crate) fn tool_failed(id: &str, output: &str) -> AgentEvent {
    tool_result(id, output, Some(true))
}

fn tool_result(id: &str, output: &str, is_error: Option<bool>) -> AgentEvent {
    AgentEvent::ToolResult(Box::new(ToolResult::new(id, output).is_error(is_error)))
}

/// Returns the event that announces another attempt of the same agent.
pub(crate) fn retried(resumes: Option<&str>) -> RunEvent {
    RunEvent::retry("r-1".into(), overloaded(), 580, next("claude", resumes))
}

/// Returns the event that announces an attempt of a fallback.
pub(crate) fn fallback(provider: &str) -> RunEvent {
    RunEvent::fallback("r-1".into(), overloaded(), 0, next(provider, None))
}

/// Returns the event that begins a later attempt.
pub(crate) fn attempt(provider: &str) -> RunEvent {
    let attempt =
        json!({"type": "run:attempt", "runId": "r-1", "attempt": 2, "provider": provider});
    serde_json::from_value(attempt).unwrap()
}

fn overloaded() -> AgentError {
    AgentError::new(ErrorCode::CliError, ErrorKind::Overloaded, "overloaded")
}

fn next(provider: &str, resumes: Option<&str>) -> Next {
    let mut next = Next::new(2, provider);
    next.resumes = resumes.map(Into::into);
    next
}

pub(crate) fn retry() -> AgentEvent {
    AgentEvent::Retry(Box::new(
        Retry::new(
            1,
            AgentError::new(ErrorCode::CliError, ErrorKind::Overloaded, "overloaded"),
        )
        .max_attempts(10)
        .delay_ms(580),
    ))
}

pub(crate) fn error(code: ErrorCode, kind: ErrorKind, message: &str) -> AgentEvent {
    AgentEvent::error(AgentError::new(code, kind, message))
}

pub(crate) fn done(text: &str) -> AgentEvent {
    ended(
        RunResult::default()
            .status(RunStatus::Completed)
            .text(text)
            .final_message(text)
            .session_id("s-1")
            .duration_ms(1731)
            .usage(
                Usage::default()
                    .input_tokens(60)
                    .output_tokens(1250)
                    .cache_read_tokens(45_000),
            )
            .total_cost_usd(0.003_425)
            .num_turns(6),
    )
}

pub(crate) fn ended(result: RunResult) -> AgentEvent {
    AgentEvent::Done(Done::new(Box::new(result)))
}
