//! Accounts of sessions.

use std::sync::Arc;

use teamster_core::{AgentSession, Capabilities, ExecuteParams, Turn};
use teamster_orchestrator::{Candidate, Held, SharedHolds};
use teamster_runner::{SessionCandidate, SessionRuns};

use crate::turns::{Scripted, answers};

struct NoHolds;

#[async_trait::async_trait]
impl SharedHolds for NoHolds {
    async fn holds(&self, _: &Candidate) -> Vec<Held> {
        Vec::new()
    }

    async fn hold(&self, _: &Candidate, _: &Held) {}
}

#[test]
fn turn_of_a_session_has_its_account_and_shared_holds() {
    let agent = Scripted::new("claude", [answers("one")]);
    let begun = agent.send(Turn::new(""));
    let of = SessionCandidate::of(
        Arc::new(agent),
        Capabilities::none(),
        ExecuteParams::new(""),
    );
    let mut runs = SessionRuns::new("s", of.account("work"));
    runs.holds = Some(Arc::new(NoHolds));
    let turn = runs.request("s.1", "Hi", &[], None);
    let candidate = &turn.candidates[0];
    assert_eq!(candidate.account.as_deref(), Some("work"));
    assert_eq!(candidate.group(), "claude@work");
    assert_eq!(candidate.params.prompt, "Hi");
    assert!(turn.holds.is_some());
    // A turn that the CLI has begun is not held back: it would be stopped.
    let turn = runs.request("s.2", "", &[], Some(begun));
    assert!(turn.holds.is_none());
}
