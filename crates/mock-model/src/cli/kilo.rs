//! Kilo, a fork of OpenCode.

use super::{Call, CallContext, Habits, Pointing, opencode};
use crate::Part;

pub(super) const HABITS: Habits = opencode::HABITS;

/// Uses OpenCode's configuration, with Kilo's names of the variables.
pub(super) fn point_at(url: &str) -> Pointing {
    let mut pointing = opencode::point_at(url);
    for (name, _) in &mut pointing.env {
        *name = name.replacen("OPENCODE_", "KILO_", 1);
    }
    let others = ["KILO_CONFIG", "KILO_CONFIG_DIR"];
    pointing
        .elsewhere
        .retain(|name| !name.starts_with("OPENCODE_"));
    pointing.elsewhere.extend(others);
    pointing
}

pub(super) fn is_asking(user_agent: &str, _: &[String]) -> bool {
    user_agent.starts_with("Kilo-Code/")
}

pub(super) fn call(part: &Part, place: &CallContext<'_>) -> Option<Call> {
    opencode::call(part, place)
}
