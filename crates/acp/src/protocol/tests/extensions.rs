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
fn figures_beside_updates_are_those_of_the_turns() {
    // Of OpenHands 1.16.0, without the status line, with another session.
    let lines = [
        r#"{"jsonrpc":"2.0","method":"session/update","params":{"_meta":{"field_meta":{"openhands.dev/metrics":{"input_tokens":100,"output_tokens":10,"cache_read_tokens":30,"reasoning_tokens":4,"cost":0.00019999999999999998}}},"sessionId":"s1","update":{"content":{"text":"Answer 1.","type":"text"},"sessionUpdate":"agent_message_chunk"}}}"#,
        r#"{"jsonrpc":"2.0","method":"session/update","params":{"_meta":{"field_meta":{"openhands.dev/metrics":{"input_tokens":300,"output_tokens":30,"cache_read_tokens":60,"reasoning_tokens":8,"cost":0.0006}}},"sessionId":"s1","update":{"content":{"text":"Answer 2.","type":"text"},"sessionUpdate":"agent_message_chunk"}}}"#,
    ];
    let mut talk = Talk::new(settings());
    let info = json!({"name": "OpenHands CLI ACP Agent", "version": "1.16.0"});
    talk.answer(
        "initialize",
        json!({"protocolVersion": 1, "agentInfo": info}),
    );
    talk.answer("session/new", json!({"sessionId": SESSION}));
    let [first, second] = lines.map(|line| {
        talk.begin("Hello.");
        talk.assembler.line(line.as_bytes());
        let events = talk.end("end_turn");
        let usage = result(&events).usage.unwrap();
        let tokens = [
            usage.input_tokens,
            usage.cache_read_tokens,
            usage.output_tokens,
            usage.reasoning_tokens,
        ];
        (tokens.map(Option::unwrap), result(&events).total_cost_usd)
    });
    assert_eq!(first, ([70, 30, 10, 4], Some(0.0002)));
    assert_eq!(second, ([170, 30, 20, 4], Some(0.0004)));
}

#[test]
fn shown_command_is_emitted_before_the_call_ends() {
    // Of Hermes 0.19.0, shortened.
    let mut talk = Talk::ready();
    talk.begin("hi");
    talk.update(json!({
        "content": [{"content": {"text": "$ seq 1 100000", "type": "text"}, "type": "content"}],
        "kind": "execute", "locations": [], "title": "terminal: seq 1 100000", "toolCallId": "tc-809b5db64bbd",
        "sessionUpdate": "tool_call"}));
    let events: Vec<_> = talk.assembler.out().drain().collect();
    let tools: Vec<_> = (events.iter())
        .filter_map(|event| match event {
            AgentEvent::ToolUse(tool) => Some((tool.tool_name.as_str(), &tool.input)),
            _ => None,
        })
        .collect();
    assert_eq!(tools, [("execute", &json!({"command": "seq 1 100000"}))]);
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
