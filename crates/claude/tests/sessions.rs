//! Recorded conversations with the real CLI, replayed against the session protocol. `README.md` describes their
//! origin.
#![cfg(test)]

mod agents;
mod background;
mod hooks;
mod interrupting;
mod play;
mod requests;
mod steering;
mod turns;

use play::PlayedTurn;
use teamster_core::{PermissionPolicy, RunStatus, SessionOptions};

pub(crate) const HELLO: &str = "Hello, wörld 👋🏽 你好世界 — done.";
/// Usage of one answer of the model server: input and output tokens, and the cost in micro-USD with each version.
pub(crate) const ONE: Option<(u64, u64)> = Some((12, 25));
pub(crate) const COST: Option<f64> = Some(685.0);
pub(crate) const COST_330: Option<f64> = Some(548.0);

pub(crate) fn asked(options: &mut SessionOptions) {
    options.permissions = PermissionPolicy::Allow;
}

/// Returns the scenario with both versions, and the cost of an answer with each.
pub(crate) fn both(scenario: &str) -> [(String, Option<f64>); 2] {
    [("2.1.197", COST), ("2.1.330", COST_330)].map(|(v, cost)| (format!("{v}/{scenario}"), cost))
}

pub(crate) fn times(cost: Option<f64>, times: f64) -> Option<f64> {
    cost.map(|cost| cost * times)
}

pub(crate) fn is_plain(turn: &PlayedTurn, text: &str, cost: Option<f64>) {
    assert_eq!(turn.result.status, RunStatus::Completed, "{turn:#?}");
    assert_eq!(turn.result.text, text);
    assert_eq!(turn.result.final_message.as_deref(), Some(text));
    assert_eq!(turn.tokens(), ONE);
    assert_eq!(turn.cost(), cost);
    assert_eq!(turn.end(), (ONE, cost));
    assert_eq!(turn.result.num_turns, Some(1));
    assert_eq!(turn.result.stop_reason.as_deref(), Some("end_turn"));
    assert!(turn.result.session_id.is_some() && turn.result.model.is_some());
    assert_eq!(turn.result.usage_by_model.len(), 1);
    let by_model = turn.result.usage_by_model.values().next().unwrap();
    assert_eq!(Some(by_model.usage), turn.result.usage);
    assert_eq!((turn.result.exit_code, turn.result.errors.len()), (None, 0));
}
