use super::*;
use serde_json::json;

#[test]
fn the_form_of_requests() {
    for (command, form) in [
        (Command::Status, json!({"version": 1, "command": "status"})),
        (
            Command::Start(Selection::of(["a", "b"])),
            json!({"version": 1, "command": "start", "agents": ["a", "b"]}),
        ),
        (
            Command::Stop(Selection::all()),
            json!({"version": 1, "command": "stop", "all": true}),
        ),
        (Command::Reload, json!({"version": 1, "command": "reload"})),
        (
            Command::Subscribe,
            json!({"version": 1, "command": "subscribe"}),
        ),
    ] {
        let request = Request::new(command);
        assert_eq!(serde_json::to_value(&request).unwrap(), form);
        assert_eq!(serde_json::from_value::<Request>(form).unwrap(), request);
    }
    for form in [
        json!({"command": "status"}),
        json!({"version": 1}),
        json!({"version": 1, "command": "explode"}),
        json!({"version": 1, "command": "stop", "agents": "a"}),
        json!([1]),
    ] {
        assert!(
            serde_json::from_value::<Request>(form.clone()).is_err(),
            "{form}"
        );
    }
}

#[test]
fn the_form_of_updates() {
    let update = Update::new(Change::Event {
        at_ms: 7,
        happened: Event::Started {
            agent: "a".to_owned(),
            pid: 8,
        },
    });
    let form = json!({"version": 1, "update": "event", "atMs": 7,
        "happened": {"event": "started", "agent": "a", "pid": 8}});
    assert_eq!(serde_json::to_value(&update).unwrap(), form);
    assert_eq!(serde_json::from_value::<Update>(form).unwrap(), update);
    let later = json!({"version": 1, "update": "new", "x": 1});
    let later: Update = serde_json::from_value(later).unwrap();
    assert_eq!(later.change, Change::Other);
}

#[test]
fn the_form_of_answers() {
    let refused = Response::refused(ErrorCode::UnknownAgent, "unknown agent `x`");
    assert_eq!(
        serde_json::to_value(&refused).unwrap(),
        json!({"version": 1, "result": "error", "code": "unknown_agent",
            "message": "unknown agent `x`"})
    );
    let done = Response::new(Outcome::Ok(Status::new(
        "/c/agents.config.json",
        Vec::new(),
    )));
    assert_eq!(
        serde_json::to_value(&done).unwrap(),
        json!({"version": 1, "result": "ok", "config": "/c/agents.config.json",
            "supervisor": null, "enabled": true, "agents": []})
    );
    // Values of a later version.
    let later = json!({"version": 1, "result": "error", "code": "new", "message": "m", "x": 1});
    let Outcome::Error { code, .. } = serde_json::from_value::<Response>(later).unwrap().outcome
    else {
        panic!()
    };
    assert_eq!(code, ErrorCode::Other);
    let later = json!({"version": 1, "result": "maybe", "x": 1});
    let later = serde_json::from_value::<Response>(later).unwrap();
    assert_eq!(later.outcome, Outcome::Other);
}
