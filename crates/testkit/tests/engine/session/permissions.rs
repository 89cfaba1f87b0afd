//! Permission policies of sessions.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use teamster_core::{AgentEvent, Decision, PermissionAnswer, PermissionPolicy, Timeouts};

use super::talker::{prepared, say};
use crate::engine::{LIMIT, let_pass};

#[tokio::test]
async fn permissions_are_answered_by_the_policy() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = asked.clone();
    let ask = PermissionPolicy::ask(move |request| {
        log.lock().unwrap().push(request.tool_name);
        async { PermissionAnswer::Allow }
    });
    let with = PermissionPolicy::decide(|_| PermissionAnswer::AllowWith(json!({})));
    let cases = [
        (PermissionPolicy::Allow, "allowed", Decision::Allowed),
        (PermissionPolicy::Deny, "denied", Decision::Denied),
        (ask, "allowed", Decision::Allowed),
        (with, "denied", Decision::Denied),
    ];
    for (policy, text, expected) in cases {
        let mut prepared = prepared();
        prepared.options.permissions = policy;
        let session = prepared.open();
        let story = say(&*session, "ask").await;
        let decisions: Vec<_> = (story.events.iter())
            .filter_map(|event| match event {
                AgentEvent::Permission(it) => Some(it.decision),
                _ => None,
            })
            .collect();
        assert_eq!(decisions, [Decision::Requested, expected]);
        assert_eq!(story.result.text, text);
    }
    assert_eq!(*asked.lock().unwrap(), ["Write"]);
}

#[tokio::test]
async fn permission_handler_may_take_longer_than_any_limit() {
    let mut prepared = prepared();
    prepared.options.permissions = PermissionPolicy::ask(|_| async {
        let_pass(LIMIT / 2).await;
        PermissionAnswer::Deny(None)
    });
    prepared.options.params.timeouts = Timeouts {
        startup: Some(LIMIT),
        idle: Some(Duration::from_millis(1500)),
        tool: Some(Duration::from_millis(1500)),
    };
    let session = prepared.open();
    assert_eq!(say(&*session, "ask").await.result.text, "denied");
}

#[tokio::test]
async fn panicking_permission_handler_denies() {
    let mut prepared = prepared();
    prepared.options.permissions =
        PermissionPolicy::ask(|_| async { panic!("as the test wants it") });
    let session = prepared.open();
    assert_eq!(say(&*session, "ask").await.result.text, "denied");
}
