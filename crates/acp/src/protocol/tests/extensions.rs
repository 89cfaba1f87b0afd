//! Extensions of dialects. The lines are made up, based on the output of real agents.

use std::sync::{Arc, Mutex};

use super::*;
use crate::tool::ToolCall;

/// An agent that prints arguments in pieces, and usage in extensions.
struct Writes(Arc<Mutex<Vec<Value>>>);

impl Dialect for Writes {
    fn name(&self) -> &'static str {
        "Agent"
    }

    fn awaits_arguments(&self, call: &ToolCall) -> bool {
        call.input.is_none()
    }

    fn meta(&mut self, meta: &Value) {
        self.0.lock().unwrap().push(meta.clone());
    }
}

fn ready() -> (Talk, Arc<Mutex<Vec<Value>>>) {
    let metas = Arc::default();
    let mut talk = Talk::with(Box::new(Writes(Arc::clone(&metas))), settings());
    talk.initialized(json!({}));
    talk.answer("session/new", json!({"sessionId": SESSION}));
    talk.begin("hi");
    (talk, metas)
}

#[test]
fn a_call_is_passed_on_when_its_arguments_are_complete() {
    let (mut talk, _) = ready();
    let update = |talk: &mut Talk, fields: Value| {
        let mut update = json!({"sessionUpdate": "tool_call_update", "toolCallId": "c"});
        for (key, value) in fields.as_object().unwrap() {
            update[key] = value.clone();
        }
        talk.update(update);
    };
    let tools = |talk: &mut Talk| -> Vec<Value> {
        let events: Vec<_> = talk.assembler.out().drain().collect();
        let input = |event: AgentEvent| match event {
            AgentEvent::ToolUse(tool) => Some(tool.input),
            _ => None,
        };
        events.into_iter().filter_map(input).collect()
    };
    update(
        &mut talk,
        json!({"title": "Bash", "kind": "execute", "status": "in_progress"}),
    );
    assert_eq!(tools(&mut talk), [] as [Value; 0]);
    update(
        &mut talk,
        json!({"status": "in_progress", "rawInput": {"command": "ls"}}),
    );
    assert_eq!(tools(&mut talk), [json!({"command": "ls"})]);

    // A call that ends without arguments is still emitted.
    talk.update(
        json!({"sessionUpdate": "tool_call", "toolCallId": "d", "title": "x",
                       "kind": "other", "status": "failed"}),
    );
    assert_eq!(tools(&mut talk), [json!({"title": "x"})]);
}

#[test]
fn extensions_reach_the_dialect() {
    let (mut talk, metas) = ready();
    talk.update(json!({"sessionUpdate": "agent_message_chunk",
                       "content": {"type": "text", "text": ""},
                       "_meta": {"usage": {"inputTokens": 7}}}));
    assert_eq!(
        *metas.lock().unwrap(),
        [json!({"usage": {"inputTokens": 7}})]
    );
    let events = talk.end("end_turn");
    assert_eq!(result(&events).text, "");
}

#[test]
fn call_without_arguments_is_emitted_unless_its_turn_ended_well() {
    let call = |talk: &mut Talk| {
        talk.update(
            json!({"sessionUpdate": "tool_call", "toolCallId": "c", "title": "Bash",
            "kind": "execute", "status": "in_progress"}),
        );
    };
    let calls = |events: &[AgentEvent]| {
        let is_call = |event: &&AgentEvent| matches!(event, AgentEvent::ToolUse(_));
        events.iter().filter(is_call).count()
    };
    let (mut talk, _) = ready();
    call(&mut talk);
    talk.assembler.finish(Exit::default(), 0);
    let events: Vec<_> = talk.assembler.out().drain().collect();
    assert_eq!(calls(&events), 1);
    assert_eq!(result(&events).open_tool_ids.len(), 1);
    let (mut talk, _) = ready();
    call(&mut talk);
    assert_eq!(calls(&talk.end("end_turn")), 0);
}
