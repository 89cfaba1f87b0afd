//! Questions to the user by `elicitation/create`.

use teamster_core::{Decision, PermissionAnswer, PermissionPolicy, SessionOptions};

use super::*;

/// Settings of a session whose caller answers requests.
fn asking() -> AcpSettings {
    let mut options = SessionOptions::default();
    options.permissions = PermissionPolicy::decide(|_| PermissionAnswer::Deny(None));
    let mut settings = AcpSettings::of(&options);
    settings.directory = "/work".into();
    settings
}

/// Returns a protocol in a turn whose call `t1` runs, and the id of the turn's request.
fn in_a_call(settings: AcpSettings) -> (Talk, u64) {
    let mut talk = Talk::ready_with(settings, json!({}));
    talk.begin("hi");
    let prompt = talk.request("session/prompt");
    talk.update(
        json!({"sessionUpdate": "tool_call", "toolCallId": "t1", "title": "ask", "status": "in_progress", "rawInput": {}}),
    );
    (talk, prompt)
}

fn schema() -> Value {
    json!({"type": "object", "properties": {"colour": {"type": "string"}}, "required": ["colour"]})
}

fn ask(talk: &mut Talk, id: u64, mode: &Value) {
    let mut params =
        json!({"sessionId": SESSION, "toolCallId": "t1", "message": "tiny asks: Which colour?"});
    for (key, value) in mode.as_object().unwrap() {
        params[key] = value.clone();
    }
    talk.line(
        json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": params}),
    );
}

fn form() -> Value {
    json!({"mode": "form", "requestedSchema": schema()})
}

#[test]
fn questions_are_offered_where_a_caller_answers() {
    for (settings, offered) in [
        (asking(), json!({"form": {}, "url": {}})),
        (settings(), json!(null)),
    ] {
        let mut talk = Talk::new(settings);
        talk.begin("hi");
        let first = talk.written().remove(0);
        assert_eq!(first["method"], "initialize");
        assert_eq!(
            first["params"]["clientCapabilities"]["elicitation"],
            offered
        );
    }
}

#[test]
fn a_form_is_a_question_with_its_schema() {
    let content = json!({"colour": "blue"});
    for (answer, response, decision) in [
        (
            PermissionAnswer::AllowWith(content.clone()),
            json!({"action": "accept", "content": content}),
            Decision::Allowed,
        ),
        (
            PermissionAnswer::Deny(None),
            json!({"action": "decline"}),
            Decision::Denied,
        ),
    ] {
        let (mut talk, prompt) = in_a_call(asking());
        ask(&mut talk, 7, &form());
        let asked = talk.asked().remove(0);
        assert_eq!(asked.message.as_deref(), Some("tiny asks: Which colour?"));
        assert_eq!(asked.schema, Some(schema()));
        assert_eq!(asked.tool_id.as_deref(), Some("t1"));
        assert!(asked.takes_input);
        talk.assembler.answer(&asked, answer.clone());
        let written = talk.written();
        assert_eq!(
            written,
            [json!({"jsonrpc": "2.0", "id": 7, "result": response})]
        );
        talk.update(
            json!({"sessionUpdate": "tool_call_update", "toolCallId": "t1", "status": "completed"}),
        );
        talk.line(json!({"id": prompt, "result": {"stopReason": "end_turn"}}));
        let events = talk.ended();
        let decisions: Vec<_> = events
            .iter()
            .filter_map(|event| match event {
                AgentEvent::Permission(it) => Some((it.tool_name.as_str(), it.decision)),
                _ => None,
            })
            .collect();
        let of = |decision| ("elicitation", decision);
        assert_eq!(decisions, [of(Decision::Requested), of(decision)]);
        // A declined question denies no tool.
        assert_eq!(result(&events).status, teamster_core::RunStatus::Completed);
    }
}

#[test]
fn form_without_values_is_accepted_if_no_field_is_required() {
    for (required, action) in [
        (json!(["colour"]), "decline"),
        (json!([]), "accept"),
        (json!(null), "accept"),
    ] {
        for answer in [PermissionAnswer::Allow, PermissionAnswer::AllowAlways] {
            let (mut talk, _) = in_a_call(asking());
            let mut form = form();
            form["requestedSchema"]["required"] = required.clone();
            ask(&mut talk, 7, &form);
            let asked = talk.asked().remove(0);
            talk.assembler.answer(&asked, answer);
            assert_eq!(talk.written()[0]["result"]["action"], action, "{required}");
        }
    }
}

#[test]
fn a_page_is_a_question_with_its_address() {
    let (mut talk, _) = in_a_call(asking());
    let page = json!({"mode": "url", "elicitationId": "e1", "url": "https://example.com/login"});
    ask(&mut talk, 7, &page);
    let asked = talk.asked().remove(0);
    assert_eq!(asked.input, json!({"url": "https://example.com/login"}));
    talk.line(json!({"jsonrpc": "2.0", "method": "elicitation/complete", "params": {"elicitationId": "e1"}}));
    talk.command(SessionCommand::Answer(asked.id, PermissionAnswer::Allow));
    assert_eq!(talk.written()[0]["result"]["action"], "accept");
}

#[test]
fn a_question_that_cannot_be_asked_is_cancelled() {
    let cancelled = |talk: &mut Talk| {
        assert!(talk.asked().is_empty());
        assert_eq!(talk.written()[0]["result"], json!({"action": "cancel"}));
    };
    // It was not offered.
    let (mut talk, _) = in_a_call(settings());
    ask(&mut talk, 7, &form());
    cancelled(&mut talk);
    // An unknown mode.
    let (mut talk, prompt) = in_a_call(asking());
    ask(&mut talk, 7, &json!({"mode": "_voice"}));
    cancelled(&mut talk);
    // Between turns.
    talk.line(json!({"id": prompt, "result": {"stopReason": "end_turn"}}));
    talk.ended();
    ask(&mut talk, 8, &form());
    cancelled(&mut talk);
}

#[test]
fn a_question_ends_with_its_turn_or_when_the_agent_cancels_it() {
    for by_agent in [true, false] {
        let (mut talk, _) = in_a_call(asking());
        ask(&mut talk, 7, &form());
        let id = talk.asked()[0].id;
        if by_agent {
            talk.line(
                json!({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": 8}}),
            );
            assert!(talk.written().is_empty());
            talk.line(
                json!({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": 7}}),
            );
        } else {
            talk.command(SessionCommand::Interrupt);
        }
        assert_eq!(talk.assembler.outbox(Outbox::take_withdrawn), [id]);
        assert_eq!(
            talk.written()[0],
            json!({"jsonrpc": "2.0", "id": 7, "result": {"action": "cancel"}})
        );
        let events = talk.assembler.out().drain();
        assert!(events.into_iter().all(|it| it.type_name() != "unknown"));
    }
}

/// Made by hand: JavaScript cuts a text inside a character.
#[test]
fn half_a_character_in_a_question_loses_nothing_of_it() {
    let (mut talk, prompt) = in_a_call(asking());
    talk.line_with_half(
        &json!({"id": 7, "method": "elicitation/create", "params": {"sessionId": SESSION,
        "toolCallId": "t1", "message": "Which? HALF", "mode": "form", "requestedSchema": schema()}}),
    );
    let asked = talk.asked();
    assert_eq!(asked[0].message.as_deref(), Some("Which? \u{fffd}"));
    assert_eq!(asked[0].schema, Some(schema()));
    talk.assembler
        .answer(&asked[0], PermissionAnswer::Deny(None));
    talk.written();
    talk.line(json!({"id": prompt, "result": {"stopReason": "end_turn"}}));
    talk.ended();
}
