//! Reviews, which the CLI carries out in a turn of their own. The lines are those of Codex 0.169.0, shortened.

use teamster_core::{Image, ImageSource, RunStatus, Text};
use teamster_testkit::events::payloads;

use super::*;

/// Answers the request that begins a review, and reports the turn that carries it out.
fn begin(peer: &mut Peer) {
    let request = peer.written.last().unwrap()["id"].as_u64().unwrap();
    peer.json(&turn_answer(request, "t2"));
    let entered = json!({"type": "enteredReviewMode", "id": "r1", "review": "current changes"});
    peer.json(&item("started", "t2", &entered));
    peer.json(&item("completed", "t2", &entered));
    let turn = json!({"id": "inner", "rootTurnId": "t2", "status": "inProgress"});
    peer.json(&notification("turn/started", json!({"turn": turn})));
}

fn texts(events: &[AgentEvent]) -> Vec<&str> {
    payloads::<Text>(events).map(|text| &*text.text).collect()
}

#[test]
fn a_review_is_a_turn_with_its_findings_as_the_answer() {
    for (prompt, target) in [
        ("/review", json!({"type": "uncommittedChanges"})),
        (
            "/review  the names ",
            json!({"type": "custom", "instructions": "the names"}),
        ),
        (
            "/review-branch main",
            json!({"type": "baseBranch", "branch": "main"}),
        ),
        (
            "/review-commit 12ab",
            json!({"type": "commit", "sha": "12ab", "title": null}),
        ),
    ] {
        let mut peer = session_with_commands();
        peer.begin(prompt);
        let expected = json!({"threadId": THREAD, "target": target});
        assert_eq!(peer.params("review/start"), &expected);
        begin(&mut peer);
        // The reviewer's own message has no end.
        peer.json(&message("started", "t2", "m1", ""));
        let exited = json!({"type": "exitedReviewMode", "id": "r2", "review": "One finding."});
        peer.json(&item("completed", "t2", &exited));
        peer.json(&message("started", "t2", "m2", "One finding."));
        peer.json(&message("completed", "t2", "m2", "One finding."));
        peer.json(&turn_ended("t2", "completed"));
        let (events, result) = peer.over();
        assert_eq!(texts(&events), ["One finding."], "{prompt}");
        assert_eq!(result.status, RunStatus::Completed, "{result:?}");
        assert_eq!(peer.unknown, 0);
    }
}

#[test]
fn an_interrupt_of_a_review_names_the_turn_that_carries_it_out() {
    let mut peer = session_with_commands();
    peer.begin("/review");
    begin(&mut peer);
    peer.command(SessionCommand::Interrupt);
    let expected = json!({"threadId": THREAD, "turnId": "inner"});
    assert_eq!(peer.params("turn/interrupt"), &expected);
    peer.json(&turn_ended("t2", "interrupted"));
    let (_, result) = peer.over();
    assert!(result.aborted, "{result:?}");
    // The next turn is interrupted by its own id.
    peer.begin("go on");
    let request = peer.written.last().unwrap()["id"].as_u64().unwrap();
    peer.json(&turn_answer(request, "t3"));
    peer.json(&turn_started("t3"));
    peer.command(SessionCommand::Interrupt);
    assert_eq!(peer.params("turn/interrupt")["turnId"], "t3");
}

#[test]
fn a_review_begins_once_the_cli_has_taken_a_changed_mode() {
    let refused = json!({"error": {"code": -32600, "message": "no such policy"}});
    for (mut answer, next) in [
        (json!({"result": {}}), Some("review/start")),
        (refused, None),
    ] {
        let mut peer = session_with_commands();
        let mode = SessionCommand::SetPermission(CommandId::new(7), PermissionMode::ReadOnly);
        peer.command(mode);
        peer.begin("/review");
        let policy = &peer.params("thread/settings/update")["sandboxPolicy"];
        assert_eq!(policy["type"], "readOnly");
        answer["id"] = peer.written.last().unwrap()["id"].clone();
        assert_eq!(peer.methods(), ["thread/settings/update"]);
        peer.json(&answer);
        assert_eq!(peer.methods(), next.as_slice());
        if next.is_none() {
            let (_, result) = peer.over();
            assert_eq!(result.errors[0].message, "no such policy");
        }
    }
}

#[test]
fn a_review_with_a_wrong_target_is_refused() {
    for (prompt, problem) in [
        (
            "/review-branch",
            "/review-branch of Codex needs the name of a branch",
        ),
        (
            "/review-branch --all",
            "/review-branch of Codex needs the name of a branch",
        ),
        (
            "/review-commit 12ab 34cd",
            "/review-commit of Codex needs a commit",
        ),
    ] {
        let mut peer = session_with_commands();
        peer.begin(prompt);
        let (_, result) = peer.over();
        assert_eq!(result.errors[0].message, format!("prompt: {problem}"));
        assert_eq!(peer.methods(), [""; 0]);
    }
    let mut with_image = Turn::new("/review");
    with_image.images = vec![Image {
        media_type: "image/png".into(),
        source: ImageSource::Bytes(vec![0]),
    }];
    let mut peer = session_with_commands();
    peer.session.begin(with_image);
    peer.look();
    let (_, result) = peer.over();
    let refused = "prompt: /review of Codex takes no image";
    assert_eq!(result.errors[0].message, refused);
}
