//! Accounts of sessions.

use std::future::ready;
use std::pin::Pin;
use std::sync::Arc;

use teamster_core::{AgentSession, Capabilities, ExecuteParams, Turn};
use teamster_orchestrator::{Candidate, Held, SharedHolds};
use teamster_runner::{SessionCandidate, SessionRuns};

use crate::turns::{Scripted, answers};

type Shares<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

struct NoHolds;

impl SharedHolds for NoHolds {
    fn holds<'a>(&'a self, _: &'a Candidate) -> Shares<'a, Vec<Held>> {
        Box::pin(ready(Vec::new()))
    }

    fn hold<'a>(&'a self, _: &'a Candidate, _: &'a Held) -> Shares<'a, ()> {
        Box::pin(ready(()))
    }
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
