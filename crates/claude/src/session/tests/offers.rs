//! Commands and models that the session offers.

use serde_json::json;
use teamster_core::provider::{Outbox, SessionAssembler};
use teamster_core::{
    AgentEvent, ModelChoice, Offers, SessionOptions, SessionProvider, SlashCommand, Turn,
};
use teamster_testkit::events::payloads;

use super::{OLD, Talk, answer, replay, result};
use crate::Claude;

fn init(commands: &[&str]) -> serde_json::Value {
    json!({"type": "system", "subtype": "init", "session_id": OLD, "model": "m",
        "slash_commands": commands})
}

fn offers(events: &[AgentEvent]) -> Vec<Offers> {
    payloads(events).cloned().collect()
}

/// Plays a turn that begins with these commands, and returns the changed offers.
fn turn(talk: &mut Talk, commands: &[&str]) -> Vec<Offers> {
    talk.session.begin(Turn::new("x"));
    let uuid = talk.written()[0]["uuid"].clone();
    talk.emit(&init(commands));
    talk.emit(&replay(&uuid, OLD));
    talk.emit(&result(OLD, &json!({})));
    offers(&talk.end().0)
}

#[test]
fn commands_and_models_are_reported_with_their_descriptions() {
    let mut talk = Talk::new(|_| {});
    let first = talk.session.outbox(Outbox::take_input);
    let request: serde_json::Value = serde_json::from_slice(&first).unwrap();
    assert_eq!(request["request"], json!({"subtype": "initialize"}));
    // Made by hand after the response of Claude Code 2.1.197, which has more commands and fields.
    talk.emit(&answer(
        &request,
        &json!({"response": {
            "commands": [
                {"name": "compact", "description": "Free up context", "argumentHint": "<instructions>"},
                {"name": "init", "description": "", "argumentHint": ""},
            ],
            "models": [
                {"value": "default", "displayName": "Default (recommended)", "description": "Opus"},
                {"value": "sonnet", "displayName": "Sonnet", "description": "For routine tasks",
                 "supportsEffort": true, "supportedEffortLevels": ["low", "max"]},
                {"value": "haiku", "displayName": "Haiku", "description": "Fastest"},
            ],
            "pid": 7,
        }}),
    ));
    let compact = SlashCommand::new("compact")
        .description("Free up context")
        .input_hint("<instructions>");
    let models = vec![
        ModelChoice::new("sonnet")
            .name("Sonnet")
            .description("For routine tasks")
            .efforts(vec!["low".to_owned(), "max".to_owned()]),
        ModelChoice::new("haiku")
            .name("Haiku")
            .description("Fastest"),
    ];
    let all = Offers::new()
        .commands(vec![compact.clone(), SlashCommand::new("init")])
        .models(models.clone());
    // The names at the start of a turn include commands that the CLI does not describe.
    assert_eq!(turn(&mut talk, &["compact", "init", "odd"]), [all]);
    assert_eq!(turn(&mut talk, &["compact", "init", "odd"]), []);
    let changed = Offers::new()
        .commands(vec![SlashCommand::new("new"), compact])
        .models(models);
    assert_eq!(turn(&mut talk, &["new", "compact"]), [changed]);
}

#[test]
fn without_a_response_the_names_are_reported() {
    let mut talk = Talk::new(|_| {});
    let names = Offers::new().commands(vec![SlashCommand::new("compact")]);
    assert_eq!(turn(&mut talk, &["compact"]), [names]);
}

#[test]
fn a_run_asks_for_no_offers_and_reports_none() {
    let mut talk = Talk::new(|options| options.one_turn = true);
    let written = talk.session.outbox(Outbox::take_input);
    assert_eq!(written, b"");
    assert_eq!(turn(&mut talk, &["compact"]), []);
}

/// Made by hand: JavaScript cuts a text inside a character.
#[test]
fn half_a_character_loses_no_item() {
    let mut talk = Talk::new(|_| {});
    let first = talk.session.outbox(Outbox::take_input);
    let request: serde_json::Value = serde_json::from_slice(&first).unwrap();
    let line = answer(
        &request,
        &json!({"response": {
            "commands": [{"name": "compact", "description": "Cut HALF"}],
            "models": [{"value": "sonnet", "displayName": "Sonnet"}],
        }}),
    );
    let line = line.to_string().replace("HALF", "\\ud83d");
    talk.session.line(line.as_bytes());
    let models = vec![ModelChoice::new("sonnet").name("Sonnet")];
    let compact = SlashCommand::new("compact").description("Cut \u{fffd}");
    assert_eq!(
        turn(&mut talk, &["compact"]),
        [Offers::new().models(models).commands(vec![compact])]
    );
}

#[test]
fn a_process_that_is_only_asked_gets_no_prompt() {
    let query = Claude.offers_query(&SessionOptions::default()).unwrap();
    let mut session = SessionAssembler::new(Box::new(query.unwrap().protocol));
    let written = session.outbox(Outbox::take_input);
    let request: serde_json::Value = serde_json::from_slice(&written).unwrap();
    assert_eq!(request["request"], json!({"subtype": "initialize"}));
    session.begin(Turn::new("-"));
    assert_eq!(session.outbox(Outbox::take_input), b"");
    let other = json!({"type": "system", "subtype": "status", "permissionMode": "default"});
    session.line(other.to_string().as_bytes());
    assert!(!session.is_over());
    let line = answer(
        &request,
        &json!({"response": {"commands": [{"name": "compact", "description": ""}]}}),
    );
    session.line(line.to_string().as_bytes());
    assert!(session.is_over());
    let events: Vec<_> = session.out().drain().collect();
    let compact = Offers::new().commands(vec![SlashCommand::new("compact")]);
    assert_eq!(offers(&events), [compact]);
}

#[test]
fn a_cli_that_refuses_to_be_asked_offers_nothing() {
    let query = Claude.offers_query(&SessionOptions::default()).unwrap();
    let mut session = SessionAssembler::new(Box::new(query.unwrap().protocol));
    let written = session.outbox(Outbox::take_input);
    let request: serde_json::Value = serde_json::from_slice(&written).unwrap();
    session.begin(Turn::new("-"));
    let refused = json!({"type": "control_response", "response": {"subtype": "error",
        "request_id": request["request_id"], "error": "unknown subtype"}});
    session.line(refused.to_string().as_bytes());
    assert!(session.is_over());
    let events: Vec<_> = session.out().drain().collect();
    assert_eq!(offers(&events), []);
}
