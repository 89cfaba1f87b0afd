//! Extensions of `teamster acp`, in the protocol's field `_meta.teamster`: data of a run that has no field in the
//! protocol.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};
use teamster_core::{
    AgentError, AgentEvent, ChangeKind, CostSource, FileChange, Id, McpTool, ModelUsage, Retract,
    ToolKind, Usage,
};

use crate::dialect::Figures;
use crate::errors::RpcError;
use crate::tool::{Tool, ToolCall};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Result {
    usage: Option<Usage>,
    #[serde(default)]
    usage_by_model: BTreeMap<String, ModelUsage>,
    cost_usd: Option<f64>,
    cost_source: Option<CostSource>,
}

#[derive(Deserialize)]
struct Change {
    path: String,
    change: ChangeKind,
}

/// Returns the event that an update carries.
pub(crate) fn event(meta: &Value) -> Option<AgentEvent> {
    let own = &meta["teamster"];
    if let Some(id) = own["retract"].as_str() {
        return Some(AgentEvent::Retract(Retract::new(Id::from(id))));
    }
    let event = AgentEvent::deserialize(own.get("event")?).ok()?;
    // Reject events that end a turn or that the protocol itself can express.
    matches!(event, AgentEvent::Retry(_) | AgentEvent::Notice(_)).then_some(event)
}

/// Returns the usage of a turn, from the response to its prompt.
pub(crate) fn figures(result: &Value) -> Option<Figures> {
    let known = result.get("_meta")?.get("teamster")?;
    let known = Result::deserialize(known).ok()?;
    let source = known.cost_source.unwrap_or(CostSource::Reported);
    Some(Figures {
        usage: known.usage,
        by_model: known.usage_by_model,
        cost: known.cost_usd.map(|usd| (usd, source)),
        ..Figures::default()
    })
}

/// Returns the partial response of a failed prompt; null if the error has none.
pub(crate) fn result_of(error: &RpcError) -> Value {
    let known = error
        .data
        .as_ref()
        .and_then(|data| data.get("teamsterResult"));
    known.map_or(Value::Null, |known| json!({"_meta": {"teamster": known}}))
}

/// Returns the original error.
pub(crate) fn error(error: &RpcError) -> Option<AgentError> {
    AgentError::deserialize(error.data.as_ref()?.get("teamster")?).ok()
}

/// Returns the original tool of a call.
pub(crate) fn tool(call: &ToolCall, mut tool: Tool) -> Tool {
    let Some(own) = call.meta.as_ref().map(|meta| &meta["teamster"]) else {
        return tool;
    };
    if let Ok(kind) = ToolKind::deserialize(&own["kind"]) {
        tool.kind = kind;
    }
    tool.mcp = McpTool::deserialize(&own["mcp"]).ok();
    tool
}

/// Returns the raw output of a call, without the formatting for editors.
pub(crate) fn output(call: &ToolCall) -> Option<&str> {
    call.meta.as_ref()?.get("teamster")?;
    call.output.as_ref()?.as_str()
}

/// Returns new output of a call that is running.
pub(crate) fn live_output(meta: &Value) -> Option<&str> {
    meta["teamster"]["liveOutput"].as_str()
}

/// Returns the files that a call changed.
pub(crate) fn changes(call: &ToolCall) -> Option<Vec<AgentEvent>> {
    let own = call.meta.as_ref()?.get("teamster")?;
    let changes = Vec::<Change>::deserialize(own.get("changes")?).ok()?;
    let changes = changes
        .into_iter()
        .map(|it| FileChange::new(it.path, it.change));
    Some(
        changes
            .map(|it| AgentEvent::FileChange(Box::new(it)))
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(meta: Value) -> ToolCall {
        ToolCall {
            meta: Some(meta),
            output: Some(json!("raw")),
            ..ToolCall::default()
        }
    }

    #[test]
    fn only_what_is_from_a_teamster_is_read() {
        let own = json!({"teamster": {"kind": "mcp", "mcp": {"server": "s", "tool": "t"},
            "changes": [{"path": "/a", "change": "add"}]}});
        let tool = tool(
            &call(own.clone()),
            Tool::new("x", ToolKind::Other, Value::Null),
        );
        assert_eq!(
            (tool.kind, tool.mcp),
            (ToolKind::Mcp, Some(McpTool::new("s", "t")))
        );
        assert_eq!(output(&call(own.clone())), Some("raw"));
        assert_eq!(changes(&call(own)).unwrap().len(), 1);
        let other = call(json!({"other": {"changes": []}}));
        assert_eq!((output(&other), changes(&other)), (None, None));
        assert_eq!(figures(&json!({"usage": {"inputTokens": 1}})), None);
    }

    #[test]
    fn figures_and_errors() {
        let known = json!({"usage": {"inputTokens": 7}, "costUsd": 0.5, "costSource": "estimated"});
        let figures = figures(&json!({"_meta": {"teamster": known}})).unwrap();
        assert_eq!(figures.usage.unwrap().input_tokens, Some(7));
        assert_eq!(figures.cost, Some((0.5, CostSource::Estimated)));
        let mut error = RpcError::new(-32603, "x");
        assert_eq!(result_of(&error), Value::Null);
        error.data = Some(json!({"teamsterResult": known}));
        assert_eq!(result_of(&error)["_meta"]["teamster"], known);
    }

    #[test]
    fn no_update_can_end_a_turn() {
        let done = json!({"teamster": {"event": {"type": "turn_end", "isError": false}}});
        assert_eq!(event(&done), None);
        let notice = json!({"teamster": {"event": {"type": "notice", "level": "warning", "message": "x", "source": "runtime"}}});
        assert!(matches!(event(&notice), Some(AgentEvent::Notice(_))));
        assert!(matches!(
            event(&json!({"teamster": {"retract": "m"}})),
            Some(AgentEvent::Retract(_))
        ));
    }
}
