//! What a session offers, the size of its context, and live output.

use teamster_core::{ContextUse, ModelChoice, Offers, SlashCommand};

use super::*;

fn offers(events: &[AgentEvent]) -> Vec<Offers> {
    let offers = events.iter().filter_map(|event| match event {
        AgentEvent::Offers(offers) => Some((**offers).clone()),
        _ => None,
    });
    offers.collect()
}

/// Made by hand after Kimi Code 2.1.0, with a group of models as in the protocol.
fn opened() -> Value {
    json!({"sessionId": SESSION, "configOptions": [
        {"type": "select", "id": "model", "category": "model", "currentValue": "k2", "options": [
            {"value": "k2", "name": "K2", "description": "The latest"},
            {"group": "old", "name": "Old", "options": [{"value": "k1", "name": "K1"}]}]},
        {"type": "select", "id": "thinking", "category": "thought_level", "currentValue": "on",
         "options": [{"value": "off", "description": ""}, {"value": "on", "description": "Thinks"}]},
    ]})
}

fn commands(names: &[&str]) -> Value {
    let commands = names
        .iter()
        .map(|name| json!({"name": name, "description": "About it", "input": {"hint": "<what>"}}));
    json!({"sessionUpdate": "available_commands_update",
           "availableCommands": commands.collect::<Vec<_>>()})
}

#[test]
fn commands_models_and_efforts_are_reported_when_they_change() {
    let mut talk = Talk::new(settings());
    talk.begin("hi");
    talk.initialized(json!({}));
    talk.answer("session/new", opened());
    talk.update(commands(&["compact"]));
    talk.update(commands(&["compact"]));
    for odd in [json!({}), json!({"availableCommands": "none"})] {
        let mut update = odd;
        update["sessionUpdate"] = "available_commands_update".into();
        talk.update(update);
    }
    let models = Offers::new()
        .models(vec![
            ModelChoice::new("k2").name("K2").description("The latest"),
            ModelChoice::new("k1").name("K1"),
        ])
        .efforts(vec!["off".to_owned(), "on".to_owned()])
        .effort_descriptions([("on".to_owned(), "Thinks".to_owned())].into());
    let command = SlashCommand::new("compact")
        .description("About it")
        .input_hint("<what>");
    let all = models.clone().commands(vec![command]);
    assert_eq!(offers(&talk.end("end_turn")), [models.clone(), all]);

    // Between two turns, and reported with the next one.
    talk.update(commands(&[]));
    talk.begin("more");
    assert_eq!(offers(&talk.end("end_turn")), [models.commands(Vec::new())]);
}

#[test]
fn models_of_the_older_form_are_reported() {
    let mut talk = Talk::new(settings());
    talk.begin("hi");
    talk.initialized(json!({}));
    talk.answer(
        "session/new",
        json!({"sessionId": SESSION, "models": {"currentModelId": "a", "availableModels": [
            {"modelId": "a", "name": "A", "description": "The first"}, {"name": "no id"}]}}),
    );
    let model = ModelChoice::new("a").name("A").description("The first");
    assert_eq!(
        offers(&talk.end("end_turn")),
        [Offers::new().models(vec![model])]
    );
}

#[test]
fn the_size_of_the_context_is_reported() {
    let mut talk = Talk::ready();
    talk.begin("hi");
    for (used, size) in [(120, 262_144), (150, 0)] {
        talk.update(json!({"sessionUpdate": "usage_update", "used": used, "size": size}));
    }
    let events = talk.end("end_turn");
    let contexts: Vec<_> = (events.iter())
        .filter(|event| matches!(event, AgentEvent::Context(_)))
        .collect();
    assert_eq!(
        contexts,
        [&AgentEvent::Context(ContextUse::new(120, 262_144))]
    );
}

#[test]
fn output_of_a_running_command_is_reported_as_it_grows() {
    let mut talk = Talk::ready();
    talk.begin("hi");
    talk.update(
        json!({"sessionUpdate": "tool_call", "toolCallId": "c1", "kind": "execute",
        "status": "pending", "title": "make", "rawInput": {"command": "make"}}),
    );
    let shown =
        |text: &str| json!([{"type": "content", "content": {"type": "text", "text": text}}]);
    let progress = |text: &str| {
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "c1", "status": "in_progress",
               "content": shown(text)})
    };
    talk.update(progress("one\n"));
    talk.update(progress("one\n"));
    talk.update(progress("one\ntwo\n"));
    talk.update(
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "c1",
        "status": "completed", "content": shown("one\ntwo\nthree\n")}),
    );
    let events = talk.end("end_turn");
    let shown: Vec<_> = (events.iter())
        .filter_map(|event| match event {
            AgentEvent::ToolOutput(output) => Some(format!("{}: {}", output.tool_id, output.text)),
            AgentEvent::ToolResult(result) => Some(result.output.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(shown, ["c1: one\n", "c1: two\n", "one\ntwo\nthree\n"]);
}

#[test]
fn a_run_has_none_of_it() {
    let mut settings = settings();
    settings.one_turn = true;
    let mut talk = Talk::new(settings);
    talk.begin("hi");
    talk.initialized(json!({}));
    talk.answer("session/new", opened());
    talk.update(commands(&["compact"]));
    talk.update(json!({"sessionUpdate": "usage_update", "used": 120, "size": 262_144}));
    let events = talk.end("end_turn");
    assert_eq!(names(&events), ["session", "turn_end", "done"]);
}

/// Made by hand: JavaScript cuts a text inside a character.
#[test]
fn half_a_character_loses_no_item() {
    let mut talk = Talk::new(settings());
    talk.begin("hi");
    talk.initialized(json!({}));
    let id = talk.request("session/new");
    talk.line_with_half(&json!({"id": id, "result": {"sessionId": SESSION, "models":
        {"currentModelId": "a", "availableModels": [{"modelId": "a", "name": "A HALF"}]}}}));
    talk.update_with_half(
        &json!({"sessionUpdate": "available_commands_update", "availableCommands":
        [{"name": "compact", "description": "Cut HALF"}, {"name": "init"}]}),
    );
    talk.update_with_half(&json!({"sessionUpdate": "plan", "entries": [
        {"content": "one HALF", "status": "pending"}, {"content": "two", "status": "pending"}]}));
    // The halves of one character in two chunks are one.
    for (half, text) in [("\\ud83d", "a HALF"), ("\\ude00", "HALF b")] {
        let chunk = json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}});
        let line =
            json!({"method": "session/update", "params": {"sessionId": SESSION, "update": chunk}});
        let line = line.to_string().replace("HALF", half);
        talk.assembler.line(line.as_bytes());
    }
    let events = talk.end("end_turn");
    let models = Offers::new().models(vec![ModelChoice::new("a").name("A \u{fffd}")]);
    let with_commands = models.clone().commands(vec![
        SlashCommand::new("compact").description("Cut \u{fffd}"),
        SlashCommand::new("init"),
    ]);
    assert_eq!(offers(&events), [models, with_commands]);
    let plan: Option<Vec<&str>> = events.iter().find_map(|event| match event {
        AgentEvent::Plan(plan) => Some(plan.entries.iter().map(|it| &*it.content).collect()),
        _ => None,
    });
    assert_eq!(plan, Some(vec!["one \u{fffd}", "two"]));
    assert_eq!(result(&events).text, "a \u{1f600} b");
}
