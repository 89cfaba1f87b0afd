use serde_json::json;
use teamster_core::{ToolKind, ToolUse};

use super::*;

#[tokio::test]
async fn request_that_was_withdrawn_before_its_call_has_no_event() {
    let mut channel = RequestChannel::new("r");
    let requests = channel.requests();
    let PermissionPolicy::Ask(ask) = requests.policy("claude", None) else {
        panic!("the policy asks");
    };
    let asked = |number, call: &str| {
        let mut request = PermissionRequest::new(number, "Bash", ToolKind::Execute, json!({}));
        request.tool_id = Some(call.into());
        ask(request)
    };
    let (mut withdrawn, mut open) = (asked(1, "a"), asked(2, "b"));
    for request in [&mut withdrawn, &mut open] {
        assert!(timeout(Duration::ZERO, request).await.is_err());
    }
    drop(withdrawn);
    for call in ["a", "b"] {
        let call = ToolUse::new("Bash", call, ToolKind::Execute, json!({}));
        assert!(requests.mark("claude", call.into()).is_some());
    }
    let Some(AgentEvent::Permission(event)) = channel.next().await else {
        panic!("the open request has an event");
    };
    assert_eq!(event.tool_id.as_deref(), Some("b"));
    assert!(channel.events.try_recv().is_err());
}

#[tokio::test(start_paused = true)]
async fn request_without_an_answer_in_time_leaves_the_others_open() {
    let mut channel = RequestChannel::new("r");
    let requests = channel.requests();
    let asked = |number, limit| {
        let PermissionPolicy::Ask(ask) = requests.policy("claude", limit) else {
            panic!("the policy asks");
        };
        let mut request = PermissionRequest::new(number, "Bash", ToolKind::Execute, json!({}));
        request.tool_id = Some("call".into());
        ask(request)
    };
    let (mut open, late) = (asked(1, None), asked(2, Some(Duration::from_secs(1))));
    assert!(timeout(Duration::ZERO, &mut open).await.is_err());
    assert_eq!(late.await, PermissionAnswer::deny("no answer within 1s"));
    // The call has not come: its request is shown before its answer.
    let Some(AgentEvent::Permission(event)) = channel.next().await else {
        panic!("the request has an event");
    };
    assert_eq!(event.request_id.as_deref(), Some("r/2"));
    let pending = requests.pending();
    let ids: Vec<_> = pending.iter().map(|it| &*it.request_id).collect();
    assert_eq!(ids, ["r/1"]);
}

#[test]
fn answers_that_do_not_fit_are_refused_with_the_reason() {
    let call = PermissionRequest::new(1, "Bash", ToolKind::Execute, json!({}));
    let call = PendingRequest::new("r/1", "r", call);
    let question = PermissionRequest::question(2, "s", "Which?", json!({"type": "object"}));
    let question = PendingRequest::new("r/2", "r", question);
    let mut heard = call.clone();
    heard.takes_reason = true;
    let with = || Answer::AllowWith { input: json!({}) };
    let deny = |reason: Option<&str>| Answer::Deny {
        reason: reason.map(str::to_owned),
    };
    let is_question = "this is a question";
    for (request, answer, expected) in [
        (&call, Answer::Allow, None),
        (&call, Answer::AllowAlways, None),
        (&call, with(), Some("this request takes only allow or deny")),
        (&call, deny(None), None),
        (&call, deny(Some("no")), Some("a reason would not reach")),
        (&heard, deny(Some("no")), None),
        (&question, Answer::Allow, Some(is_question)),
        (&question, Answer::AllowAlways, Some(is_question)),
        (&question, with(), None),
    ] {
        let why = mismatch(request, &answer);
        let is_expected = match (&why, expected) {
            (Some(why), Some(expected)) => why.starts_with(expected),
            (why, expected) => why.is_none() && expected.is_none(),
        };
        assert!(is_expected, "{request:?} {answer:?}: {why:?}");
    }
}

#[test]
fn the_last_settled_requests_are_remembered() {
    let requests = Requests::default();
    for number in 0..=MAX_SETTLED {
        lock(&requests.shared).settle(&number.to_string(), "it was denied");
    }
    let refusal = |id: usize| {
        requests
            .answer(&id.to_string(), Answer::Allow)
            .unwrap_err()
            .0
    };
    assert_eq!(refusal(0), RefusalCode::UnknownRequest);
    assert_eq!(refusal(1), RefusalCode::AlreadyAnswered);
    assert_eq!(refusal(MAX_SETTLED), RefusalCode::AlreadyAnswered);
}
