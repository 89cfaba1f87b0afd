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
    // Otherwise it reports its use to its vendor, and sends it sessions.
    for (name, value) in [
        ("KILO_TELEMETRY_LEVEL", "off"),
        ("KILO_DISABLE_SESSION_INGEST", "1"),
        ("KILO_DISABLE_SHARE", "1"),
    ] {
        pointing.env.push((name.to_owned(), value.to_owned()));
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

pub(super) fn call(part: &Part, context: &CallContext<'_>) -> Option<Call> {
    opencode::call(part, context)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_telemetry_is_off() {
        let env = point_at("http://127.0.0.1:1").env;
        let off = ("KILO_TELEMETRY_LEVEL".to_owned(), "off".to_owned());
        assert!(env.contains(&off), "{env:?}");
        let of_origin: Vec<_> = env
            .iter()
            .filter(|(name, _)| name.starts_with("OPENCODE_"))
            .collect();
        assert!(of_origin.is_empty(), "{of_origin:?}");
    }
}
