//! Requests of MCP servers for input, and answers with a changed input.

use serde_json::{Value, json};
use teamster_core::provider::{Outbox, SessionCommand};
use teamster_core::{AgentEvent, Decision, PermissionAnswer, PermissionEvent, PermissionRequest};
use teamster_testkit::events::payloads;

use super::{OLD, Talk, ask, result};

/// Returns the response to a request of an MCP server for input.
fn answered(answer: PermissionAnswer) -> Value {
    let mut talk = Talk::new(|_| {});
    talk.turn();
    talk.emit(&json!({"type": "control_request", "request_id": "r-9",
        "request": {"subtype": "elicitation", "mcp_server_name": "ask", "message": "Which colour?",
                    "mode": "form", "requested_schema": {"type": "object", "x": 1}}}));
    assert!(talk.written().is_empty());
    let asked = talk.session.outbox(Outbox::take_requests);
    assert_eq!(asked[0].schema, Some(json!({"type": "object", "x": 1})));
    assert_eq!(asked[0].input, json!({"server": "ask"}));
    talk.session
        .command(SessionCommand::Answer(asked[0].id, answer));
    let written = talk.written();
    talk.emit(&result(OLD, &json!({})));
    let (events, _) = talk.end();
    let AgentEvent::Permission(permission) = &events[1] else {
        panic!("{events:?}")
    };
    assert_eq!(permission.decision, Decision::Requested);
    assert_eq!(
        permission.reason.as_deref(),
        Some("the MCP server ask asks: Which colour?")
    );
    let [written] = &written[..] else {
        panic!("{written:?}")
    };
    assert_eq!(written["response"]["request_id"], "r-9");
    written["response"]["response"].clone()
}

#[test]
fn a_server_s_question_goes_to_the_caller() {
    assert_eq!(
        answered(PermissionAnswer::AllowWith(json!({"colour": "blue"}))),
        json!({"action": "accept", "content": {"colour": "blue"}})
    );
    assert_eq!(
        answered(PermissionAnswer::Deny(Some("no".into()))),
        json!({"action": "decline"})
    );
    assert_eq!(
        answered(PermissionAnswer::Allow),
        json!({"action": "accept", "content": {}})
    );
}

/// Made by hand, in the form of the tool's schema.
fn choices() -> Value {
    let option = |label: &str| json!({"label": label, "description": label});
    json!({"questions": [
        {"question": "Which colour?", "header": "Colour", "multiSelect": false,
         "options": [option("blue"), option("red")]},
        {"question": "Which sizes?", "header": "Colour", "multiSelect": true,
         "options": [option("S"), option("L")]},
    ]})
}

/// Returns the response to the tool that asks the user, the request of the caller, and the decision that is reported.
fn chosen(answer: PermissionAnswer) -> (Value, PermissionRequest, Decision) {
    let mut talk = Talk::new(|_| {});
    talk.turn();
    let mut request = ask("AskUserQuestion");
    request["request"]["input"] = choices();
    talk.emit(&request);
    let asked = talk.session.outbox(Outbox::take_requests).remove(0);
    talk.session.answer(&asked, answer);
    let response = talk.written()[0]["response"]["response"].clone();
    let events: Vec<_> = talk.session.out().drain().collect();
    let mut decisions = payloads::<PermissionEvent>(&events).map(|permission| permission.decision);
    (response, asked, decisions.next_back().unwrap())
}

/// Made by hand, as the other forms of servers here.
#[test]
fn a_server_s_form_with_required_fields_needs_their_values() {
    let mut talk = Talk::new(|_| {});
    talk.turn();
    talk.emit(&json!({"type": "control_request", "request_id": "r-9",
        "request": {"subtype": "elicitation", "mcp_server_name": "ask", "message": "Which colour?",
                    "mode": "form", "requested_schema": {"type": "object", "required": ["colour"]}}}));
    let asked = talk.session.outbox(Outbox::take_requests).remove(0);
    talk.session.answer(&asked, PermissionAnswer::Allow);
    let response = &talk.written()[0]["response"]["response"];
    assert_eq!(*response, json!({"action": "decline"}));
}

#[test]
fn choices_of_the_model_go_to_the_caller_as_a_form() {
    let content = json!({"Colour": "blue", "Colour 2": ["S", "L"]});
    let (response, asked, decision) = chosen(PermissionAnswer::AllowWith(content));
    assert_eq!(decision, Decision::Allowed);
    assert_eq!(
        asked.message.as_deref(),
        Some("Which colour?\nWhich sizes?")
    );
    let properties = &asked.schema.unwrap()["properties"];
    assert_eq!(properties["Colour"]["enum"], json!(["blue", "red"]));
    assert_eq!(properties["Colour 2"]["items"]["enum"], json!(["S", "L"]));
    let mut input = choices();
    input["answers"] = json!({"Which colour?": "blue", "Which sizes?": "S, L"});
    assert_eq!(
        response,
        json!({"behavior": "allow", "updatedInput": input})
    );
}

#[test]
fn a_question_without_an_answer_is_denied() {
    let plain = "the form has required fields: answer with their values";
    let missing = "no question was answered: answer with the fields of its form";
    for (answer, reason) in [
        (PermissionAnswer::Allow, plain),
        (PermissionAnswer::AllowAlways, plain),
        (PermissionAnswer::AllowWith(json!({"x": "blue"})), missing),
        (PermissionAnswer::Deny(None), "The user did not answer."),
        (PermissionAnswer::Deny(Some("later".into())), "later"),
    ] {
        let (response, _, decision) = chosen(answer);
        assert_eq!(response, json!({"behavior": "deny", "message": reason}));
        // What is reported is what the agent got.
        assert_eq!(decision, Decision::Denied, "{reason}");
    }
}

#[test]
fn a_tool_is_allowed_with_another_input() {
    let mut talk = Talk::new(|_| {});
    talk.turn();
    talk.emit(&ask("Bash"));
    let asked = talk.session.outbox(Outbox::take_requests);
    assert!(asked[0].takes_input);
    let answer = PermissionAnswer::AllowWith(json!({"command": "true"}));
    talk.session.answer(&asked[0], answer);
    assert_eq!(
        talk.written()[0]["response"]["response"],
        json!({"behavior": "allow", "updatedInput": {"command": "true"}})
    );
}

/// Made by hand: JavaScript cuts a text inside a character.
#[test]
fn half_a_character_in_a_request_loses_nothing_of_it() {
    let mut talk = Talk::new(|_| {});
    talk.turn();
    let mut request = ask("Bash");
    request["request"]["decision_reason"] = "cut HALF".into();
    let deep = [r#"{"a":"#.repeat(200), "1".to_owned(), "}".repeat(200)].concat();
    let line = request.to_string().replace("HALF", "\\ud83d");
    for line in [line.clone(), line.replace(r#"{"a":1}"#, &deep)] {
        talk.session.line(line.as_bytes());
        let asked = talk.session.outbox(Outbox::take_requests);
        assert_eq!(asked[0].message.as_deref(), Some("cut \u{fffd}"));
        talk.session.command(SessionCommand::Answer(
            asked[0].id,
            PermissionAnswer::Deny(None),
        ));
        assert_eq!(talk.written().len(), 1);
    }
}
