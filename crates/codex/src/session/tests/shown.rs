//! Events in a short form, one per line.

use teamster_core::AgentEvent;

/// Returns a short form of each event. The pieces of a message are one line; events of an agent are prefixed with the
/// call that started it. Figures are left out.
pub(super) fn shown(events: &[AgentEvent]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for event in events {
        let line = match event {
            AgentEvent::SessionStarted(e) => {
                format!("session {}", e.model.as_deref().unwrap_or("-"))
            }
            // The tests of sessions' figures, live output and models read these events themselves.
            AgentEvent::Usage(_)
            | AgentEvent::Context(_)
            | AgentEvent::ToolOutput(_)
            | AgentEvent::Offers(_) => continue,
            AgentEvent::Text(e) => {
                let head = of(e.parent_tool_id.as_deref(), "text");
                piece(&head, e.message_id.as_deref(), &e.text, &mut lines)
            }
            AgentEvent::Thinking(e) => {
                let head = of(e.parent_tool_id.as_deref(), "thinking");
                piece(&head, e.message_id.as_deref(), &e.text, &mut lines)
            }
            AgentEvent::Retract(e) => format!("retract {}", e.message_id),
            AgentEvent::ToolUse(e) => format!(
                "{} {} {:?} {} {}{}",
                of(e.parent_tool_id.as_deref(), "tool_use"),
                e.tool_name,
                e.kind,
                e.tool_id,
                e.input,
                e.mcp
                    .as_ref()
                    .map_or(String::new(), |mcp| format!(" of {}", mcp.server)),
            ),
            AgentEvent::ToolResult(e) => {
                let head = of(e.parent_tool_id.as_deref(), "tool_result");
                format!("{head} {} {:?} {:?}", e.tool_id, e.is_error, e.output)
            }
            AgentEvent::FileChange(e) => format!("file_change {:?} {}", e.change, e.path),
            AgentEvent::Permission(e) => format!(
                "permission {} {} {:?}",
                e.tool_name,
                e.tool_id.as_deref().unwrap_or("-"),
                e.decision
            ),
            AgentEvent::Plan(e) => {
                let entries: Vec<_> = (e.entries.iter())
                    .map(|entry| format!("{} {:?}", entry.content, entry.status))
                    .collect();
                format!("plan {}", entries.join(", "))
            }
            AgentEvent::Retry(e) => format!(
                "retry {}/{} {:?}",
                e.attempt,
                e.max_attempts.unwrap_or(0),
                e.error.kind
            ),
            AgentEvent::Notice(e) => format!("notice {:?} {}", e.level, e.message),
            AgentEvent::TurnEnd(e) => format!("turn_end {}", e.is_error),
            AgentEvent::Error(e) => format!("error {:?} {}", e.error.kind, e.error.message),
            AgentEvent::Done(e) => format!("done {:?}", e.result.status),
            other => other.type_name().to_owned(),
        };
        if !line.is_empty() {
            lines.push(line);
        }
    }
    lines
}

fn of(parent: Option<&str>, what: &str) -> String {
    match parent {
        Some(parent) => format!("({parent}) {what}"),
        None => what.to_owned(),
    }
}

/// Returns a piece of a message, appended to the previous line if that is of the same message.
fn piece(what: &str, id: Option<&str>, text: &str, lines: &mut [String]) -> String {
    let head = format!("{what} {}: ", id.unwrap_or("-"));
    let text = text.replace('\n', "\\n");
    match lines.last_mut().filter(|line| line.starts_with(&head)) {
        Some(line) => {
            line.push_str(&text);
            String::new()
        }
        None => head + &text,
    }
}
