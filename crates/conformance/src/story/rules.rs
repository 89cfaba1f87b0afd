//! Rules that hold for every played run, in any scenario.

use serde_json::Value;
use teamster::{AgentEvent, Decision, Id, PermissionEvent, RunStatus, Usage};
use teamster_core::provider::grammar;

use crate::played::Played;

/// Returns the rules that a run breaks, each with what it did.
pub(super) fn broken(played: &Played) -> Vec<Value> {
    let result = &played.result;
    let mut broken = Vec::new();
    if let Some(of_model) = &played.texts_of_model {
        broken.extend(foreign_texts(&played.events, of_model));
    }
    if result.status == RunStatus::Completed && !played.is_in_background {
        let open = result.open_tool_ids.iter();
        broken.extend(open.map(|id| format!("it completed, and the call {id} is open")));
    }
    let live = played.events.iter().rev().find_map(|event| match event {
        AgentEvent::Usage(report) => Some(report.usage),
        _ => None,
    });
    if let (Some(live), Some(end)) = (live, result.usage)
        && played.unasked == 0
    {
        for (name, live, end) in figures(live, end) {
            if live > end {
                broken.push(format!(
                    "{name}: {live} during the run, and {end} at its end"
                ));
            }
        }
    }
    if let Some(session) = played.usage_of_session {
        for (name, files, runs) in figures(session.files, session.runs) {
            if files != runs {
                broken.push(format!(
                    "{name}: {files} in the CLI's files, and {runs} in the run"
                ));
            }
        }
    }
    // A turn that is reported as a part of another has an end of its own.
    if played.unasked == 0
        && let Err(violation) = grammar::check(&played.events)
    {
        broken.push(violation.to_string());
    }
    if result.status == RunStatus::Completed {
        let open = unanswered(&played.events).into_iter();
        broken.extend(
            open.map(|tool| format!("it completed, and the request for {tool} has no answer")),
        );
    }
    broken.into_iter().map(Value::from).collect()
}

/// Returns the tools of requests for permission that were neither allowed nor denied.
fn unanswered(events: &[AgentEvent]) -> Vec<&str> {
    let mut open: Vec<&PermissionEvent> = Vec::new();
    for event in events {
        let AgentEvent::Permission(event) = event else {
            continue;
        };
        if event.decision == Decision::Requested {
            open.push(event);
            continue;
        }
        let is_it =
            |it: &&PermissionEvent| it.tool_name == event.tool_name && it.tool_id == event.tool_id;
        if let Some(at) = open.iter().position(is_it) {
            open.remove(at);
        }
    }
    open.into_iter().map(|it| it.tool_name.as_str()).collect()
}

/// Returns the texts of agents that the model did not write. A call, its result and the end of a turn end a message:
/// some have no ids.
fn foreign_texts(events: &[AgentEvent], of_model: &str) -> Vec<String> {
    let mut messages: Vec<(Option<Id>, Option<Id>, String)> = Vec::new();
    let mut open = 0;
    for event in events {
        match event {
            AgentEvent::Text(text) => {
                let mut growing = messages.iter_mut().skip(open);
                let known = growing.find(|(id, parent, _)| {
                    *id == text.message_id && *parent == text.parent_tool_id
                });
                match known {
                    Some((_, _, whole)) => whole.push_str(&text.text),
                    None => messages.push((
                        text.message_id.clone(),
                        text.parent_tool_id.clone(),
                        text.text.clone(),
                    )),
                }
            }
            AgentEvent::Retract(retract) => {
                for (id, _, text) in &mut messages {
                    if id.as_ref() == Some(&retract.message_id) {
                        text.clear();
                    }
                }
            }
            AgentEvent::ToolUse(_) | AgentEvent::ToolResult(_) | AgentEvent::TurnEnd(_) => {
                open = messages.len();
            }
            _ => {}
        }
    }
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let of_model = words(of_model);
    let texts = messages.iter().map(|(_, _, text)| words(text));
    let foreign = texts.filter(|text| !of_model.contains(text.as_str()));
    foreign
        .map(|text| {
            let start: String = text.chars().take(80).collect();
            format!("a text that is not the model's: {start:?}")
        })
        .collect()
}

/// Returns the figures of both sides by name. A figure of 0 is equivalent to none.
fn figures(one: Usage, other: Usage) -> [(&'static str, u64, u64); 4] {
    let pair = |name, pick: fn(Usage) -> Option<u64>| {
        (
            name,
            pick(one).unwrap_or_default(),
            pick(other).unwrap_or_default(),
        )
    };
    [
        pair("input", |usage| usage.input_tokens),
        pair("output", |usage| usage.output_tokens),
        pair("cache_read", |usage| usage.cache_read_tokens),
        pair("cache_write", |usage| usage.cache_write_tokens),
    ]
}

#[cfg(test)]
mod tests {
    //! Made-up events.

    use teamster::{Retract, Text, ToolKind, ToolUse};

    use super::*;

    fn text(id: &str, text: &str) -> AgentEvent {
        AgentEvent::Text(Text::new(text).message_id(Some(id.into())))
    }

    #[test]
    fn texts_around_a_call_are_two_messages() {
        let call = ToolUse::new("sh", Id::from("c"), ToolKind::Execute, Value::Null);
        let events = [
            AgentEvent::Text(Text::new("I look.")),
            AgentEvent::ToolUse(Box::new(call)),
            AgentEvent::Text(Text::new("There.")),
        ];
        assert!(foreign_texts(&events, "I look.\nThere.").is_empty());
        let joined = foreign_texts(&[events[0].clone(), events[2].clone()], "I look.\nThere.");
        assert_eq!(joined.len(), 1);
    }

    #[test]
    fn a_text_is_a_piece_of_what_the_model_wrote() {
        let model = "I look at the files.\nThere are none.";
        let of_model = [
            text("a", "I look "),
            text("a", "at the files."),
            text("b", "There are"),
            text("c", "gone"),
            AgentEvent::Retract(Retract::new(Id::from("c"))),
        ];
        assert!(foreign_texts(&of_model, model).is_empty());
        let other = [text("a", "Compacting…")];
        assert_eq!(
            foreign_texts(&other, model),
            ["a text that is not the model's: \"Compacting…\""]
        );
    }

    #[test]
    fn a_request_is_answered_by_a_decision_for_the_same_call() {
        let decided = |id: &str, decision| {
            let event = PermissionEvent::new("sh", decision).tool_id(Some(Id::from(id)));
            AgentEvent::Permission(Box::new(event))
        };
        let events = [
            decided("a", Decision::Requested),
            decided("b", Decision::Requested),
            decided("b", Decision::Denied),
        ];
        assert_eq!(unanswered(&events), ["sh"]);
        assert!(unanswered(&events[1..]).is_empty());
    }

    #[test]
    fn no_figure_is_the_same_as_0() {
        let mut used = Usage::default();
        used.input_tokens = Some(5);
        used.output_tokens = Some(0);
        let pairs = figures(used, Usage::default());
        assert_eq!(pairs[0], ("input", 5, 0));
        assert_eq!(pairs[1], ("output", 0, 0));
    }
}
