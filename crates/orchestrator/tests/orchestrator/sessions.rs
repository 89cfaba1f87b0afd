//! Tests of the sessions of attempts.

use serde_json::json;
use teamster_core::{ErrorKind, ToolKind};
use teamster_testkit::mock_runtime::Script;

use crate::common::*;

const ID: &str = "0199aaaa-0000-7000-8000-000000000000";

#[tokio::test(start_paused = true)]
async fn a_session_that_an_attempt_made_is_not_made_again() {
    let claude = mock(
        "claude",
        [
            Script::new().session(ID).failed(error(ErrorKind::Network)),
            Script::new().session(ID).text("x"),
        ],
    );
    let mut request = request(&[&claude]);
    request.candidates[0].params.new_session_id = Some(ID.into());
    let done = orchestrator().start(request).outcome().await;
    assert_eq!(done.session_id.as_deref(), Some(ID));
    let runs = claude.runs();
    assert_eq!(runs[0].params.new_session_id.as_deref(), Some(ID));
    assert_eq!(runs[0].params.session_id, None);
    assert_eq!(runs[1].params.new_session_id, None);
    assert_eq!(runs[1].params.session_id.as_deref(), Some(ID));
    // Nothing was changed, so the prompt is sent.
    assert_eq!(runs[1].params.prompt, PROMPT);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_never_came_to_be_is_made() {
    let claude = mock("claude", [fails(ErrorKind::Network), Script::new()]);
    let mut request = request(&[&claude]);
    request.candidates[0].params.new_session_id = Some(ID.into());
    orchestrator().start(request).outcome().await;
    let runs = claude.runs();
    assert_eq!(runs[1].params.new_session_id.as_deref(), Some(ID));
    assert_eq!(runs[1].params.session_id, None);
}

#[tokio::test(start_paused = true)]
async fn a_fork_that_was_made_is_resumed_and_not_forked_again() {
    let claude = mock(
        "claude",
        [
            Script::new().session(ID).failed(error(ErrorKind::Network)),
            Script::new(),
        ],
    );
    let mut request = request(&[&claude]);
    let params = &mut request.candidates[0].params;
    params.session_id = Some("origin".into());
    params.new_session_id = Some(ID.into());
    params.fork = true;
    orchestrator().start(request).outcome().await;
    let params = &claude.runs()[1].params;
    assert_eq!(params.session_id.as_deref(), Some(ID));
    assert_eq!(params.new_session_id, None);
    assert!(!params.fork);
}

#[tokio::test(start_paused = true)]
async fn a_session_is_its_providers_own() {
    let claude = mock(
        "claude",
        [Script::new().session(ID).failed(error(ErrorKind::Auth))],
    );
    let gemini = mock("gemini", [Script::new()]);
    let mut request = request(&[&claude, &gemini]);
    for candidate in &mut request.candidates {
        candidate.params.new_session_id = Some(ID.into());
    }
    orchestrator().start(request).outcome().await;
    let params = &gemini.runs()[0].params;
    assert_eq!(params.new_session_id.as_deref(), Some(ID));
    assert_eq!(params.session_id, None);
}

#[tokio::test(start_paused = true)]
async fn another_candidate_of_the_provider_resumes_the_session() {
    let claude = mock(
        "claude",
        [
            Script::new()
                .session(ID)
                .failed(error(ErrorKind::ContextWindow)),
            Script::new(),
        ],
    );
    let mut request = request(&[&claude, &claude]);
    for candidate in &mut request.candidates {
        candidate.params.new_session_id = Some(ID.into());
    }
    request.candidates[1].params.model = Some("larger".into());
    orchestrator().start(request).outcome().await;
    let params = &claude.runs()[1].params;
    assert_eq!(params.session_id.as_deref(), Some(ID));
    assert_eq!(params.new_session_id, None);
    assert_eq!(params.model.as_deref(), Some("larger"));
}

fn changes() -> Script {
    Script::new().tool_use("Bash", "t", ToolKind::Execute, json!({}))
}

#[tokio::test(start_paused = true)]
async fn a_fork_without_a_word_of_its_session_cannot_be_resumed() {
    // The original session does not include the work of its fork.
    let claude = mock(
        "claude",
        [changes().failed(error(ErrorKind::Network)), Script::new()],
    );
    let mut request = request(&[&claude]);
    request.candidates[0].params.session_id = Some("origin".into());
    request.candidates[0].params.fork = true;
    let lines = story(orchestrator().start(request)).await;
    assert_eq!(lines.last().unwrap(), "end error");
    assert_eq!(claude.runs().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_requested_session_with_side_effects_is_resumed() {
    let claude = mock(
        "claude",
        [changes().failed(error(ErrorKind::Network)), Script::new()],
    );
    let mut request = request(&[&claude]);
    request.candidates[0].params.new_session_id = Some(ID.into());
    let done = orchestrator().start(request).outcome().await;
    assert_eq!(done.session_id.as_deref(), Some(ID));
    let params = &claude.runs()[1].params;
    assert_eq!(params.session_id.as_deref(), Some(ID));
    assert_eq!(params.new_session_id, None);
    assert_ne!(params.prompt, PROMPT);
}

#[tokio::test(start_paused = true)]
async fn a_requested_session_with_side_effects_can_be_resumed() {
    let claude = mock("claude", [changes().failed(error(ErrorKind::Invalid))]);
    let mut request = request(&[&claude]);
    request.candidates[0].params.new_session_id = Some(ID.into());
    let done = orchestrator().start(request).outcome().await;
    assert_eq!(done.session_id.as_deref(), Some(ID));
}

#[tokio::test(start_paused = true)]
async fn a_resumed_session_under_a_new_id_is_resumed_by_that() {
    let claude = mock(
        "claude",
        [
            changes().session("one").failed(error(ErrorKind::Network)),
            Script::new()
                .session("two")
                .failed(error(ErrorKind::Network)),
            Script::new().session("three"),
        ],
    );
    let done = orchestrator().start(request(&[&claude])).outcome().await;
    let asked: Vec<_> = claude
        .runs()
        .into_iter()
        .map(|run| run.params.session_id)
        .collect();
    assert_eq!(asked, [None, Some("one".into()), Some("two".into())]);
    assert_eq!(done.session_id.as_deref(), Some("three"));
}
