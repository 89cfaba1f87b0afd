//! Script of a run.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use teamster_core::provider::DecodedResult;
use teamster_core::{
    AgentError, AgentEvent, ChangeKind, CostSource, Decision, FileChange, Id, McpTool, NoticeLevel,
    NoticeSource, PermissionEvent, PermissionRequest, RateLimit, Retract, Retry, RunResult,
    SessionStarted, Text, Thinking, ToolKind, ToolResult, ToolUse, Usage, UsageReport,
};

/// Events and actions of one run of a [`MockRuntime`](super::MockRuntime), step by step, and its end.
///
/// Steps happen in the order in which they are added. The ending and the figures of the result may be set at
/// any point. Of several endings the last one applies; without any the run [completes](Self::completed).
///
/// ```
/// use std::time::Duration;
/// use serde_json::json;
/// use teamster_core::{AgentError, ErrorCode, ErrorKind, ToolKind};
/// use teamster_testkit::mock_runtime::Script;
///
/// let works = Script::new()
///     .session("5f2c")
///     .tool_use("Bash", "t1", ToolKind::Execute, json!({"command": "cargo test"}))
///     .delay(Duration::from_secs(90))
///     .tool_result("t1", "all green")
///     .text("The tests pass.")
///     .cost_usd(0.12)
///     .completed();
/// let is_overloaded = Script::new().failed(AgentError::new(
///     ErrorCode::CliError,
///     ErrorKind::Overloaded,
///     "529 overloaded",
/// ));
/// ```
///
/// A step that would break the grammar of a stream (a result without its call, a reused id, a `done`) becomes
/// an `unknown` event, as if a CLI had printed it, and a warning states the reason.
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct Script {
    pub(super) steps: VecDeque<Step>,
    pub(super) ending: Ending,
    pub(super) figures: DecodedResult,
    pub(super) stop_takes: Duration,
    pub(super) adjust: Vec<Adjust>,
}

#[derive(Debug, Clone)]
pub(super) enum Step {
    Event(AgentEvent),
    /// Requests permission; if granted, the tool has this output.
    Ask(Box<PermissionRequest>, String),
    Delay(Duration),
    WaitForAbort,
    Hang,
    Panic(String),
}

#[derive(Debug, Clone, Default)]
pub(super) enum Ending {
    #[default]
    Completed,
    Failed(AgentError),
    TimedOut(AgentError),
    Incomplete,
    BreaksOff,
}

/// A change of the result.
#[derive(Clone)]
pub(super) struct Adjust(pub(super) Arc<dyn Fn(&mut RunResult) + Send + Sync>);

impl fmt::Debug for Adjust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Adjust")
    }
}

/// Events.
impl Script {
    /// Creates a run that completes without text.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds any event except `done`, which the ending creates.
    pub fn event(self, event: impl Into<AgentEvent>) -> Self {
        self.step(Step::Event(event.into()))
    }

    /// Reports the session. The event includes the script's [`model`](Self::model).
    pub fn session(self, id: impl Into<Id>) -> Self {
        self.event(SessionStarted::new(id))
    }

    /// Emits a piece of the answer without a message id.
    pub fn text(self, text: impl Into<String>) -> Self {
        self.piece(None, text.into())
    }

    /// Emits a piece of the answer in this message.
    pub fn text_in(self, message_id: impl Into<Id>, text: impl Into<String>) -> Self {
        self.piece(Some(message_id.into()), text.into())
    }

    /// Withdraws the text of this message so far.
    pub fn retract(self, message_id: impl Into<Id>) -> Self {
        self.event(Retract::new(message_id))
    }

    /// Emits a piece of the model's reasoning.
    pub fn thinking(self, text: impl Into<String>) -> Self {
        self.event(Thinking::new(text))
    }

    /// Calls a tool. The id must be unique in the run.
    pub fn tool_use(
        self,
        name: impl Into<String>,
        id: impl Into<Id>,
        kind: ToolKind,
        input: Value,
    ) -> Self {
        self.event(ToolUse::new(name, id, kind, input))
    }

    /// Calls a tool of an MCP server, under the name `mcp__server__tool`.
    pub fn mcp_tool_use(
        self,
        server: impl Into<String>,
        tool: impl Into<String>,
        id: impl Into<Id>,
        input: Value,
    ) -> Self {
        let (server, tool) = (server.into(), tool.into());
        self.event(
            ToolUse::new(format!("mcp__{server}__{tool}"), id, ToolKind::Mcp, input)
                .mcp(McpTool::new(server, tool)),
        )
    }

    /// Calls a tool that needs permission. In a session ([`MockSessions`](super::MockSessions)) the policy
    /// decides; in a run the tool is denied. If permitted, it has this output.
    pub fn ask_tool(
        self,
        name: impl Into<String>,
        id: impl Into<Id>,
        kind: ToolKind,
        input: Value,
        output: impl Into<String>,
    ) -> Self {
        let (name, id) = (name.into(), id.into());
        let number = self.steps.len() as u64;
        let mut request = PermissionRequest::new(number, name.as_str(), kind, input.clone());
        request.tool_id = Some(id.clone());
        request.takes_input = true;
        self.tool_use(name, id, kind, input)
            .step(Step::Ask(Box::new(request), output.into()))
    }

    /// Ends a tool call with success.
    pub fn tool_result(self, id: impl Into<Id>, output: impl Into<String>) -> Self {
        self.tool_end(id.into(), output.into(), false)
    }

    /// Ends a tool call with an error.
    pub fn tool_error(self, id: impl Into<Id>, output: impl Into<String>) -> Self {
        self.tool_end(id.into(), output.into(), true)
    }

    /// Reports that this call of this tool was denied.
    ///
    /// As with every CLI, a run whose only calls were denied is `incomplete`, and so is one without text after a denial.
    pub fn permission_denied(
        self,
        tool_name: impl Into<String>,
        tool_id: impl Into<Id>,
        reason: impl Into<String>,
    ) -> Self {
        self.event(
            PermissionEvent::new(tool_name, Decision::Denied)
                .tool_id(tool_id.into())
                .reason(reason.into()),
        )
    }

    /// Reports a changed file without changing it.
    pub fn file_change(self, path: impl Into<String>, change: ChangeKind) -> Self {
        self.event(FileChange::new(path, change))
    }

    /// Reports the usage of the run so far. The last report is the usage of the result, even of an aborted
    /// run, unless [`result_usage`](Self::result_usage) is set.
    pub fn usage(self, usage: Usage) -> Self {
        self.event(UsageReport::new(usage))
    }

    /// Reports the usage and cost of the run so far. The cost is in USD.
    pub fn usage_and_cost(self, usage: Usage, cost_usd: f64) -> Self {
        self.event(UsageReport::new(usage).cost_usd(cost_usd))
    }

    /// Reports that the CLI itself repeats a request for the `attempt`th time, counted from 1. It does not
    /// wait: see [`delay`](Self::delay).
    pub fn retry(self, attempt: u32, error: AgentError) -> Self {
        self.event(Retry::new(attempt, error))
    }

    /// Reports the account's limit, with the CLI's status such as `allowed_warning` or `rejected`, and the
    /// time of its reset in milliseconds since the Unix epoch.
    pub fn rate_limit(self, status: impl Into<String>, resets_at_ms: Option<u64>) -> Self {
        self.event(RateLimit::new(status).resets_at_ms(resets_at_ms))
    }

    /// Emits a notice of the CLI.
    pub fn notice(self, level: NoticeLevel, message: impl Into<String>) -> Self {
        self.event(AgentEvent::notice(level, NoticeSource::Stdout, message))
    }

    /// Reports an intermediate error, after which the run continues. For an error that ends it, see
    /// [`failed`](Self::failed).
    pub fn error(self, error: AgentError) -> Self {
        self.event(error)
    }
}

/// Actions without events.
impl Script {
    /// Waits for this time on Tokio's clock. An abort ends the run immediately.
    pub fn delay(self, time: Duration) -> Self {
        self.step(Step::Delay(time))
    }

    /// Waits until the run is aborted.
    pub fn wait_for_abort(self) -> Self {
        self.step(Step::WaitForAbort)
    }

    /// Waits forever. Neither an abort nor a kill ends the run, only dropping the stream.
    pub fn hang(self) -> Self {
        self.step(Step::Hang)
    }

    /// Panics when the stream is polled, as a runtime with a bug.
    pub fn panic(self, message: impl Into<String>) -> Self {
        self.step(Step::Panic(message.into()))
    }

    /// Sets the time between an abort and the end of the run, as for a CLI that cleans up first. A
    /// [kill](teamster_core::AbortHandle::kill) ends the run without this delay.
    pub fn stop_takes(mut self, time: Duration) -> Self {
        self.stop_takes = time;
        self
    }
}

/// Endings.
impl Script {
    /// Ends the run successfully. This is the default ending.
    pub fn completed(self) -> Self {
        self.ending(Ending::Completed)
    }

    /// Ends the run with this error, followed by `done`.
    pub fn failed(self, error: AgentError) -> Self {
        self.ending(Ending::Failed(error))
    }

    /// Ends the run as a timeout: with this error, followed by `done`. No time passes; see
    /// [`delay`](Self::delay).
    pub fn timed_out(self, error: AgentError) -> Self {
        self.ending(Ending::TimedOut(error))
    }

    /// Breaks off the output: a `STREAM_ENDED_EARLY` error, followed by `done` with the status `incomplete`.
    pub fn incomplete(self) -> Self {
        self.ending(Ending::Incomplete)
    }

    /// Ends the stream without `done`, as a runtime that violates its contract.
    pub fn breaks_off(self) -> Self {
        self.ending(Ending::BreaksOff)
    }
}

/// Figures of the result. Those of a run that is aborted before its ending are unknown.
impl Script {
    /// Sets the model that answers.
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.figures.model = Some(model.into());
        self
    }

    /// Sets the usage of the run, if it differs from the last [`usage`](Self::usage).
    pub fn result_usage(mut self, usage: Usage) -> Self {
        self.figures.usage = Some(usage);
        self
    }

    /// Sets the cost of the run in USD as reported by the CLI, if it differs from the last event with a cost.
    pub fn cost_usd(mut self, usd: f64) -> Self {
        self.figures.cost = Some((usd, CostSource::Reported));
        self
    }

    /// Sets the number of turns.
    pub fn num_turns(mut self, turns: u32) -> Self {
        self.figures.num_turns = Some(turns);
        self
    }

    /// Sets the model's stop reason, as the CLI names it.
    pub fn stop_reason(mut self, reason: impl Into<String>) -> Self {
        self.figures.stop_reason = Some(reason.into());
        self
    }

    /// Sets the structured answer that matches the output schema.
    pub fn structured_output(mut self, value: Value) -> Self {
        self.figures.structured_output = Some(value);
        self
    }

    /// Changes the result in any other way, immediately before `done`, for any ending. Several changes are
    /// applied in order. This can break the grammar, for tests of code that must detect that.
    ///
    /// ```
    /// # use teamster_testkit::mock_runtime::Script;
    /// let script = Script::new().adjust(|result| result.stderr = Some("warning: old version".into()));
    /// ```
    pub fn adjust(mut self, change: impl Fn(&mut RunResult) + Send + Sync + 'static) -> Self {
        self.adjust.push(Adjust(Arc::new(change)));
        self
    }
}

impl Script {
    fn step(mut self, step: Step) -> Self {
        self.steps.push_back(step);
        self
    }

    fn ending(mut self, ending: Ending) -> Self {
        self.ending = ending;
        self
    }

    fn piece(self, message_id: Option<Id>, text: String) -> Self {
        self.event(Text::new(text).message_id(message_id))
    }

    fn tool_end(self, tool_id: Id, output: String, is_error: bool) -> Self {
        self.event(ToolResult::new(tool_id, output).is_error(is_error))
    }
}
