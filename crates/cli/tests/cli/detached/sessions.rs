//! The lock that allows one writer per agent session, across processes.

use teamster::{ErrorKind, RunStatus};

use super::requests::{command, detach, log};
use crate::cli::chat::Agent;
use crate::cli::done;

#[test]
fn a_session_that_answers_nothing_has_failed() {
    let agent = Agent::new();
    // It prints nothing, as the CLI does beside another process of its session.
    let id = detach(&agent, &["silence", "--resume", "s"]);
    assert_eq!(command(&agent, &["wait", &id]).code, Some(1));
    let result = done(&log(&agent, &id));
    assert_eq!(result.status, RunStatus::Failed);
    assert_eq!(result.errors[0].kind, ErrorKind::Protocol);
}
