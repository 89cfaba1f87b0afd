//! Constructors of payloads: what is always there, with everything else absent.

use serde_json::Value;

use super::payload::{
    ChangeKind, Decision, Done, ErrorEvent, FileChange, Id, McpServerStatus, McpTool, Notice,
    NoticeLevel, NoticeSource, Permission, Plan, PlanEntry, PlanStatus, RateLimit, Retract, Retry,
    Session, Text, Thinking, ToolKind, ToolResult, ToolUse, TurnEnd, Unknown, UsageReport,
};
use crate::{AgentError, RawJson, RunResult, Usage};

/// Constructors that take these fields and leave the others absent.
macro_rules! constructors {
    ($($type:ident ($($field:ident: $given:ty),*) { $($absent:ident),* })*) => {
        $(
            impl $type {
                #[doc = concat!("A `", stringify!($type), "` with nothing else set.")]
                pub fn new($($field: impl Into<$given>),*) -> Self {
                    Self {
                        $($field: $field.into(),)*
                        $($absent: Default::default(),)*
                    }
                }
            }
        )*
    };
}

constructors! {
    Session(session_id: Id) { model, tools, mcp_servers }
    McpServerStatus(name: String, status: String) {}
    Text(text: String) { message_id, parent_tool_id }
    Retract(message_id: Id) {}
    Thinking(text: String) { message_id, parent_tool_id }
    ToolUse(tool_name: String, tool_id: Id, kind: ToolKind, input: Value) { mcp, parent_tool_id }
    McpTool(server: String, tool: String) {}
    ToolResult(tool_id: Id, output: String) { is_error, parent_tool_id }
    FileChange(path: String, change: ChangeKind) { tool_id }
    Plan(entries: Vec<PlanEntry>) {}
    PlanEntry(content: String, status: PlanStatus) {}
    Permission(tool_name: String, decision: Decision) { tool_id, reason }
    UsageReport(usage: Usage) { cost_usd }
    Retry(attempt: u32, error: AgentError) { max_attempts, delay_ms }
    RateLimit(status: String) { resets_at, kind, utilization }
    Notice(level: NoticeLevel, source: NoticeSource, message: String) {}
    Unknown(native: RawJson) {}
    TurnEnd(is_error: bool) { stop_reason, usage, cost_usd }
    ErrorEvent(error: AgentError) {}
    Done(result: Box<RunResult>) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AgentEvent;
    use serde_json::json;

    #[test]
    fn what_is_not_given_is_absent() {
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
}
