//! Constructors of payloads: required fields are arguments, all others are absent until set.

use serde_json::Value;

use super::notice::{Notice, NoticeCode, NoticeLevel, NoticeSource};
use super::payload::{
    ChangeKind, Decision, Done, ErrorEvent, FileChange, Id, McpServerStatus, McpTool,
    PermissionEvent, Plan, PlanEntry, PlanStatus, RateLimit, Retract, Retry, SessionStarted, Text,
    Thinking, ToolKind, ToolResult, ToolUse, TurnEnd, Unknown, UsageReport,
};
use crate::setters::setters;
use crate::{AgentError, CostSource, RawJson, RunResult, Usage};

/// Defines constructors that take the fields in parentheses, and setters of those in braces.
macro_rules! payloads {
    ($($type:ident ($($field:ident: $given:ty),*) { $($optional:ident: $value:ty),* })*) => {
        $(
            impl $type {
                #[doc = concat!("A `", stringify!($type), "` with nothing else set.")]
                pub fn new($($field: impl Into<$given>),*) -> Self {
                    Self {
                        $($field: $field.into(),)*
                        $($optional: None,)*
                    }
                }
            }
        )*
        setters! { $(#[doc(hidden)] $type { $(option $optional: $value),* })* }
    };
}

payloads! {
    SessionStarted(session_id: Id) {
        model: String, tools: Vec<String>, mcp_servers: Vec<McpServerStatus>
    }
    McpServerStatus(name: String, status: String) {}
    Text(text: String) { message_id: Id, parent_tool_id: Id }
    Retract(message_id: Id) {}
    Thinking(text: String) { message_id: Id, parent_tool_id: Id }
    ToolUse(tool_name: String, tool_id: Id, kind: ToolKind, input: Value) {
        mcp: McpTool, parent_tool_id: Id
    }
    McpTool(server: String, tool: String) {}
    ToolResult(tool_id: Id, output: String) { is_error: bool, parent_tool_id: Id }
    FileChange(path: String, change: ChangeKind) { tool_id: Id }
    PlanEntry(content: String, status: PlanStatus) {}
    UsageReport(usage: Usage) { cost_usd: f64, cost_source: CostSource }
    RateLimit(status: String) { resets_at_ms: u64, kind: String, utilization: f64 }
    Notice(level: NoticeLevel, source: NoticeSource, message: String) { code: NoticeCode }
    Unknown(native: RawJson) {}
    TurnEnd(is_error: bool) { stop_reason: String, usage: Usage, cost_usd: f64 }
    ErrorEvent(error: AgentError) {}
    Done(result: Box<RunResult>) {}
}

setters! {
    #[doc(hidden)]
    PermissionEvent { option tool_id: Id, option reason: String, option request_id: String }
    #[doc(hidden)]
    Retry { option max_attempts: u32, option delay_ms: u64 }
}

impl PermissionEvent {
    /// Creates a `Permission` with nothing else set.
    pub fn new(tool_name: impl Into<String>, decision: impl Into<Decision>) -> Self {
        Self {
            tool_name: tool_name.into(),
            tool_id: None,
            decision: decision.into(),
            reason: None,
            request_id: None,
            timed_out: false,
            of_question: false,
        }
    }
}

impl Retry {
    /// Creates a `Retry` with nothing else set; `attempt` counts from 1.
    pub fn new(attempt: u32, error: AgentError) -> Self {
        Self {
            attempt,
            max_attempts: None,
            delay_ms: None,
            error,
        }
    }
}

impl Plan {
    /// Creates a plan of these entries, in order.
    pub fn new(entries: impl IntoIterator<Item = PlanEntry>) -> Self {
        Self {
            entries: entries.into_iter().collect(),
        }
    }
}

impl RateLimit {
    /// Returns whether the account may still send requests, even if a limit is near. The words of all CLIs for
    /// this begin with `allowed`.
    pub fn is_allowed(&self) -> bool {
        self.status.starts_with("allowed")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AgentEvent;
    use serde_json::json;

    #[test]
    fn unset_fields_are_absent() {
        let events = [
            AgentEvent::Text(Text::new("hi")),
            AgentEvent::ToolUse(Box::new(ToolUse::new(
                "Bash",
                "id",
                ToolKind::Execute,
                json!({}),
            ))),
            AgentEvent::TurnEnd(Box::new(TurnEnd::new(false))),
        ];
        assert_eq!(
            serde_json::to_value(events).unwrap(),
            json!([
                {"type": "text", "text": "hi"},
                {"type": "tool_use", "toolName": "Bash", "toolId": "id", "input": {}, "kind": "execute"},
                {"type": "turn_end", "isError": false},
            ])
        );
    }

    #[test]
    fn an_account_that_is_warned_may_still_send_requests() {
        assert!(RateLimit::new("allowed").is_allowed());
        assert!(RateLimit::new("allowed_warning").is_allowed());
        assert!(!RateLimit::new("rejected").is_allowed());
    }
}
