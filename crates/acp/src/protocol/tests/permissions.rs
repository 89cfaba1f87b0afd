//! Permission requests.

use teamster_core::{Decision, PermissionAnswer, RunStatus, ToolKind};

use super::*;
use crate::settings::Approve;

fn request(talk: &mut Talk, id: &Value, kind: &str, options: &[(&str, &str)]) {
    let options: Vec<_> = options
        .iter()
        .map(|(id, kind)| json!({"optionId": id, "name": id, "kind": kind}))
        .collect();
    talk.line(
        json!({"id": id, "method": "session/request_permission", "params": {
        "sessionId": SESSION, "options": options, "toolCall": {"toolCallId": "t1", "title": "rm x",
        "kind": kind, "status": "pending", "rawInput": {"command": "rm x"}}}}),
    );
}

const ALL: &[(&str, &str)] = &[
    ("always", "allow_always"),
    ("once", "allow_once"),
    ("no", "reject_once"),
];

/// Returns the response to a request with these options, and the events of the turn.
fn answered(options: &[(&str, &str)], answer: PermissionAnswer) -> (Value, Vec<AgentEvent>) {
    let mut talk = Talk::ready();
    talk.begin("hi");
    let prompt = talk.request("session/prompt");
    request(&mut talk, &json!("p7"), "execute", options);
    let asked = talk.asked();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].tool_name, "execute");
    assert_eq!(asked[0].kind, ToolKind::Execute);
    assert_eq!(asked[0].input, json!({"command": "rm x"}));
    assert_eq!(asked[0].message.as_deref(), Some("rm x"));
    assert!(!asked[0].takes_input);
    talk.assembler.answer(&asked[0], answer);
    let mut written = talk.written();
    assert_eq!(written.len(), 1);
    assert_eq!(written[0]["id"], "p7");
    talk.line(json!({"id": prompt, "result": {"stopReason": "end_turn"}}));
    let outcome = written[0]["result"]["outcome"].take();
    (outcome, talk.ended())
}

/// As Gemini CLI 0.54.4 asks, shortened.
#[test]
fn a_request_without_arguments_has_the_changes_that_it_shows() {
    let mut talk = Talk::ready();
    talk.begin("hi");
    let request = |content: Value| {
        json!({"id": 1, "method": "session/request_permission", "params": {
            "sessionId": SESSION, "options": [{"optionId": "a", "name": "a", "kind": "allow_once"}],
            "toolCall": {"toolCallId": "t1", "title": "Writing to out.txt", "kind": "edit",
                "status": "pending", "content": content, "locations": [{"path": "/w/out.txt"}]}}})
    };
    let diff = json!({"type": "diff", "path": "/w/out.txt", "oldText": null, "newText": "one\n"});
    talk.line(request(json!([diff])));
    let asked = talk.asked();
    assert_eq!(
        asked[0].input,
        json!({"changes": [{"path": "/w/out.txt", "oldText": "", "newText": "one\n"}]})
    );
    assert_eq!(asked[0].message.as_deref(), Some("Writing to out.txt"));
}

#[test]
fn each_answer_is_the_option_that_means_it() {
    let selected = |id: &str| json!({"outcome": "selected", "optionId": id});
    let cancelled = json!({"outcome": "cancelled"});
    let deny = || PermissionAnswer::Deny(None);
    for (options, answer, expected) in [
        (ALL, PermissionAnswer::Allow, selected("once")),
        (ALL, PermissionAnswer::AllowAlways, selected("always")),
        (&ALL[1..], PermissionAnswer::AllowAlways, selected("once")),
        // As `claude-agent-acp` asks for the end of its plan mode: which of them is meant is not known.
        (
            &[
                ("bypassPermissions", "allow_always"),
                ("acceptEdits", "allow_always"),
                ("default", "allow_once"),
            ],
            PermissionAnswer::AllowAlways,
            selected("default"),
        ),
        (ALL, deny(), selected("no")),
        (&[("never", "reject_always")], deny(), selected("never")),
        (&ALL[..2], deny(), cancelled.clone()),
        (&[], deny(), cancelled.clone()),
    ] {
        assert_eq!(answered(options, answer).0, expected);
    }
}

#[test]
fn an_unsupported_answer_is_a_denial_with_the_reason() {
    let changed = PermissionAnswer::AllowWith(json!({"command": "true"}));
    for (options, answer, outcome, why) in [
        (
            ALL,
            changed,
            json!({"outcome": "selected", "optionId": "no"}),
            "Agent cannot run a tool with a changed input",
        ),
        (
            // The only option offered allows the tool permanently.
            &ALL[..1],
            PermissionAnswer::Allow,
            json!({"outcome": "cancelled"}),
            "Agent cannot allow a tool only once",
        ),
    ] {
        let (written, events) = answered(options, answer);
        assert_eq!(written, outcome);
        let decisions: Vec<_> = (events.iter())
            .filter_map(|event| match event {
                AgentEvent::Permission(e) => Some((e.decision, e.reason.as_deref())),
                _ => None,
            })
            .collect();
        assert_eq!(
            decisions,
            [
                (Decision::Requested, Some("rm x")),
                (Decision::Denied, Some(why))
            ]
        );
    }
}

#[test]
fn approved_tools_need_no_request() {
    let mut with = settings();
    with.approve = Approve::Edits;
    let mut talk = Talk::ready_with(with, json!({}));
    talk.begin("hi");
    talk.request("session/prompt");
    request(&mut talk, &json!(0), "edit", ALL);
    let written = talk.written();
    assert_eq!(written[0]["result"]["outcome"]["optionId"], "once");
    assert!(talk.asked().is_empty());
    request(&mut talk, &json!(1), "execute", ALL);
    assert!(talk.asked().is_empty(), "it is the same call as before");
    talk.update(
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "t1", "status": "failed"}),
    );
    request(&mut talk, &json!(2), "execute", ALL);
    assert_eq!(talk.asked().len(), 1);
}

#[test]
fn interrupted_turn_leaves_no_open_request() {
    let mut talk = Talk::ready();
    talk.begin("hi");
    let prompt = talk.request("session/prompt");
    request(&mut talk, &json!(0), "edit", ALL);
    let id = talk.asked()[0].id;
    talk.command(SessionCommand::Interrupt);
    talk.command(SessionCommand::Interrupt);
    let written = talk.written();
    assert_eq!(written.len(), 2);
    assert_eq!(written[0]["result"]["outcome"]["outcome"], "cancelled");
    assert_eq!(written[1]["method"], "session/cancel");
    assert_eq!(written[1]["params"], json!({"sessionId": SESSION}));
    assert_eq!(talk.assembler.outbox(Outbox::take_withdrawn), [id]);
    // Send a late answer and a late request.
    talk.command(SessionCommand::Answer(id, PermissionAnswer::Allow));
    assert!(talk.written().is_empty());
    request(&mut talk, &json!(1), "edit", ALL);
    assert_eq!(
        talk.written()[0]["result"]["outcome"]["outcome"],
        "cancelled"
    );
    assert!(talk.asked().is_empty());
    talk.line(json!({"id": prompt, "result": {"stopReason": "cancelled"}}));
    let events = talk.ended();
    assert_eq!(result(&events).status, RunStatus::Aborted);
}

#[test]
fn a_request_ends_with_its_call_and_with_its_turn() {
    let mut talk = Talk::ready();
    talk.begin("hi");
    let prompt = talk.request("session/prompt");
    request(&mut talk, &json!(0), "edit", ALL);
    talk.update(
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "t1", "status": "failed"}),
    );
    let first = talk.assembler.outbox(Outbox::take_withdrawn);
    assert_eq!(first.len(), 1);
    request(&mut talk, &json!(1), "edit", ALL);
    talk.line(json!({"id": prompt, "result": {"stopReason": "end_turn"}}));
    let second = talk.assembler.outbox(Outbox::take_withdrawn);
    assert_eq!(second.len(), 1);
    assert_ne!(first, second);
    talk.ended();
    // Send a request without any data.
    talk.line(json!({"id": 3, "method": "session/request_permission", "params": {}}));
    assert_eq!(
        talk.written()[0]["result"]["outcome"]["outcome"],
        "cancelled"
    );
}

/// Returns a protocol with a request for a choice of its user in an active turn, and the id of the turn's request.
fn choice(approve: Approve) -> (Talk, u64) {
    let mut with = settings();
    with.approve = approve;
    let mut talk = Talk::ready_with(with, json!({}));
    talk.begin("hi");
    let prompt = talk.request("session/prompt");
    talk.line(
        json!({"id": 5, "method": "session/request_permission", "params": {
        "sessionId": SESSION, "options": [
            {"optionId": "q0_opt_0", "name": "Red", "kind": "allow_once"},
            {"optionId": "q0_opt_1", "name": "Blue", "kind": "allow_once"},
            {"optionId": "q0_skip", "name": "Skip", "kind": "reject_once"}],
        "toolCall": {"toolCallId": "q1", "title": "AskUserQuestion", "content": [
            {"type": "content", "content": {"type": "text", "text": "Which colour?"}}]}}}),
    );
    (talk, prompt)
}

#[test]
fn a_choice_is_not_a_permission() {
    for (approve, answer, option) in [
        (
            Approve::Everything,
            PermissionAnswer::AllowWith(json!({"choice": "Blue"})),
            "q0_opt_1",
        ),
        (Approve::Everything, PermissionAnswer::Deny(None), "q0_skip"),
        (Approve::ReadOnly, PermissionAnswer::Allow, "q0_skip"),
        (
            Approve::Nothing,
            PermissionAnswer::AllowWith(json!({"choice": "Green"})),
            "q0_skip",
        ),
    ] {
        let (mut talk, _) = choice(approve);
        assert_eq!(talk.written(), [json!(null); 0], "no answer is made up");
        let asked = talk.asked();
        assert_eq!(asked[0].message.as_deref(), Some("Which colour?"));
        let schema = asked[0].schema.as_ref().unwrap();
        assert_eq!(
            schema["properties"]["choice"]["enum"],
            json!(["Red", "Blue"])
        );
        assert!(asked[0].takes_input);
        talk.assembler.answer(&asked[0], answer.clone());
        assert_eq!(
            talk.written()[0]["result"],
            json!({"outcome": {"outcome": "selected", "optionId": option}}),
            "{answer:?}"
        );
    }
}

#[test]
fn without_a_caller_a_choice_is_skipped() {
    let (talk, _) = choice(Approve::Everything);
    let asked = talk.assembler.outbox(Outbox::take_requests);
    for policy in [
        teamster_core::PermissionPolicy::Allow,
        teamster_core::PermissionPolicy::Deny,
    ] {
        let answer = policy.answer(&asked[0]);
        assert!(matches!(answer, Some(PermissionAnswer::Deny(Some(_)))));
    }
}

#[test]
fn a_skipped_choice_is_no_tool_that_was_denied() {
    use RunStatus::{Completed, Incomplete};
    for (also_denied, status) in [(false, Completed), (true, Incomplete)] {
        let (mut talk, prompt) = choice(Approve::Nothing);
        let policy = teamster_core::PermissionPolicy::Deny;
        if also_denied {
            request(&mut talk, &json!(6), "execute", ALL);
        }
        for asked in talk.asked() {
            let answer = policy.answer(&asked).unwrap();
            talk.assembler.answer(&asked, answer);
        }
        talk.update(json!({"sessionUpdate": "agent_message_chunk",
            "content": {"type": "text", "text": "I go on without."}}));
        talk.line(json!({"id": prompt, "result": {"stopReason": "end_turn"}}));
        let events = talk.ended();
        let denied = (events.iter()).filter(
            |event| matches!(event, AgentEvent::Permission(e) if e.decision == Decision::Denied),
        );
        assert_eq!(denied.count(), 1 + usize::from(also_denied));
        assert_eq!(result(&events).status, status);
    }
}

#[test]
fn read_only_is_an_answer_by_kind() {
    let mut with = settings();
    with.approve = Approve::ReadOnly;
    let mut talk = Talk::ready_with(with, json!({}));
    talk.begin("hi");
    let prompt = talk.request("session/prompt");
    for (id, kind) in ["read", "search", "fetch", "execute", "edit", "other"]
        .iter()
        .enumerate()
    {
        let call = format!("t{id}");
        talk.line(
            json!({"id": id, "method": "session/request_permission", "params": {
            "sessionId": SESSION, "toolCall": {"toolCallId": call, "title": kind, "kind": kind},
            "options": [{"optionId": "once", "kind": "allow_once"},
                        {"optionId": "no", "kind": "reject_once"}]}}),
        );
    }
    let chosen: Vec<_> = (talk.written().iter())
        .map(|line| line["result"]["outcome"]["optionId"].clone())
        .collect();
    assert_eq!(chosen, ["once", "once", "once", "no", "no", "no"]);
    assert!(talk.asked().is_empty());
    talk.line(json!({"id": prompt, "result": {"stopReason": "end_turn"}}));
    let events = talk.ended();
    let denied: Vec<_> = (result(&events).permission_denials.iter())
        .map(|denial| denial.tool_name.as_str())
        .collect();
    assert_eq!(denied, ["execute", "edit", "other"]);
}

/// Made by hand: JavaScript cuts a text inside a character.
#[test]
fn half_a_character_in_a_request_loses_nothing_of_it() {
    let mut talk = Talk::ready();
    talk.begin("hi");
    let prompt = talk.request("session/prompt");
    let request = json!({"id": 7, "method": "session/request_permission", "params": {
        "sessionId": SESSION, "toolCall": {"toolCallId": "t1", "title": "HALF x", "kind": "execute",
        "rawInput": {"command": "rm x"}}, "options": [
        {"optionId": "once", "name": "HALF", "kind": "allow_once"},
        {"optionId": "no", "kind": "reject_once"}]}});
    talk.line_with_half(&request);
    let asked = talk.asked();
    assert_eq!(asked[0].message.as_deref(), Some("\u{fffd} x"));
    assert_eq!(asked[0].input, json!({"command": "rm x"}));
    talk.assembler.answer(&asked[0], PermissionAnswer::Allow);
    let written = talk.written();
    assert_eq!(written[0]["result"]["outcome"]["optionId"], "once");
    talk.line(json!({"id": prompt, "result": {"stopReason": "end_turn"}}));
    talk.ended();
}
