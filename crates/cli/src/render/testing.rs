//! Events made by hand, and a terminal to write them to.

use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;

use serde_json::Value;
use teamster::orchestrator::{Next, RunEvent};
use teamster::{
    AgentError, AgentEvent, Done, ErrorCode, ErrorKind, Retract, Retry, RunResult, RunStatus,
    Session, Text, Thinking, ToolKind, ToolResult, ToolUse, Usage,
};

use super::View;

/// A writer whose clones write to the same place, as stdout and stderr do on a terminal.
#[derive(Debug, Clone, Default)]
pub(crate) struct Screen(Rc<RefCell<Vec<u8>>>);

impl Screen {
    /// What is on it, without styles.
    pub(crate) fn text(&self) -> String {
        anstream::adapter::strip_str(&self.raw()).to_string()
    }

    /// What is on it, with styles.
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
        current: crate::providers().get("claude").unwrap().info().into(),
        verbose: false,
        quiet: false,
        directory: Some("/tmp/ws".into()),
        resume: Some("--resume".into()),
        mcp: None,
        clock: || 1_000_000,
    }
}

pub(crate) fn session() -> AgentEvent {
    AgentEvent::Session(Box::new(Session {
        session_id: "s-1".into(),
        model: Some("claude-opus-4-8".into()),
        tools: None,
        mcp_servers: None,
    }))
}

pub(crate) fn text(message: &str, text: &str) -> AgentEvent {
    said(Some(message), None, text)
}

pub(crate) fn said(message: Option<&str>, parent: Option<&str>, text: &str) -> AgentEvent {
    AgentEvent::Text(Text {
        text: text.into(),
        message_id: message.map(Into::into),
        parent_tool_id: parent.map(Into::into),
    })
}

pub(crate) fn thinking(text: &str) -> AgentEvent {
    AgentEvent::Thinking(Thinking {
        text: text.into(),
        message_id: Some("m1".into()),
        parent_tool_id: None,
    })
}

pub(crate) fn retract(message: &str) -> AgentEvent {
    AgentEvent::Retract(Retract {
        message_id: message.into(),
    })
}

pub(crate) fn tool(id: &str, parent: Option<&str>, name: &str, input: Value) -> AgentEvent {
    AgentEvent::ToolUse(Box::new(ToolUse {
        tool_name: name.into(),
        tool_id: id.into(),
        input,
        kind: ToolKind::Execute,
        mcp: None,
        parent_tool_id: parent.map(Into::into),
    }))
}

pub(crate) fn tool_ok(id: &str, output: &str) -> AgentEvent {
    tool_result(id, output, Some(false))
}

/// Of a CLI that does not say whether a command went well.
pub(crate) fn tool_ended(id: &str, output: &str) -> AgentEvent {
    tool_result(id, output, None)
}

pub(crate) fn tool_failed(id: &str, output: &str) -> AgentEvent {
    tool_result(id, output, Some(true))
}

fn tool_result(id: &str, output: &str, is_error: Option<bool>) -> AgentEvent {
    AgentEvent::ToolResult(Box::new(ToolResult {
        tool_id: id.into(),
        output: output.into(),
        is_error,
        parent_tool_id: None,
    }))
}

/// Another attempt of the same agent follows.
pub(crate) fn retried(resumes: Option<&str>) -> RunEvent {
    RunEvent::Retry {
        run_id: "r-1".into(),
        attempt: 2,
        reason: Box::new(overloaded()),
        delay_ms: 580,
        next: next("claude", resumes),
    }
}

/// An attempt of this one follows.
pub(crate) fn fallback(provider: &str) -> RunEvent {
    RunEvent::Fallback {
        run_id: "r-1".into(),
        attempt: 2,
        reason: Box::new(overloaded()),
        delay_ms: 0,
        next: next(provider, None),
    }
}

fn overloaded() -> AgentError {
    AgentError::new(ErrorCode::CliError, ErrorKind::Overloaded, "overloaded")
}

fn next(provider: &str, resumes: Option<&str>) -> Next {
    Next {
        provider: provider.into(),
        model: None,
        resumes: resumes.map(Into::into),
    }
}

pub(crate) fn retry() -> AgentEvent {
    AgentEvent::Retry(Box::new(Retry {
        attempt: 1,
        max_attempts: Some(10),
        delay_ms: Some(580),
        error: AgentError::new(ErrorCode::CliError, ErrorKind::Overloaded, "overloaded"),
    }))
}

pub(crate) fn error(code: ErrorCode, kind: ErrorKind, message: &str) -> AgentEvent {
    AgentEvent::error(AgentError::new(code, kind, message))
}

pub(crate) fn done(text: &str) -> AgentEvent {
    ended(RunResult {
        status: RunStatus::Completed,
        text: text.into(),
        final_message: Some(text.into()),
        session_id: Some("s-1".into()),
        duration_ms: 1731,
        usage: Some(Usage {
            input_tokens: Some(60),
            output_tokens: Some(1250),
            cache_read_tokens: Some(45_000),
            ..Usage::default()
        }),
        total_cost_usd: Some(0.003_425),
        num_turns: Some(6),
        ..RunResult::default()
    })
}

pub(crate) fn ended(result: RunResult) -> AgentEvent {
    AgentEvent::Done(Done {
        result: Box::new(result),
    })
}
