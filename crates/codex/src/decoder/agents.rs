//! Items about other agents.

use crate::wire::{Object, with_underscores};

/// Fields of a `subAgentActivity` that are the input of its call.
pub(super) const FIELDS: &[&str] = &["agent_path", "agent_thread_id", "model", "reasoning_effort"];

/// Returns the tool whose call a `subAgentActivity` reports. `None` if it reports something else.
///
/// The item of `followup_task` is the same as that of `send_message`.
pub(super) fn tool(item: &Object<'_>) -> Option<&'static str> {
    Some(match &*item.text("kind")? {
        "started" => "spawn_agent",
        "interacted" => "send_message",
        "interrupted" => "interrupt_agent",
        _ => return None,
    })
}

/// Returns the states of other agents, one per line, each with its last message.
pub(super) fn states(item: &Object<'_>) -> String {
    let Some(states) = item.object("agents_states") else {
        return String::new();
    };
    let agent = |(id, raw): (&str, &str)| {
        let state = Object::parse(raw)?;
        let status = state.text("status").unwrap_or_default();
        let status = with_underscores(&status);
        Some(match state.text("message") {
            Some(message) => format!("{id} ({status}): {message}"),
            None => format!("{id} ({status})"),
        })
    };
    let agents: Vec<_> = states.entries().filter_map(agent).collect();
    agents.join("\n")
}
