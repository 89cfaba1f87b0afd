//! Kilo, a fork of OpenCode.

use super::{Call, CallContext, Habits, Pointing, offered, opencode};
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
    let mut call = opencode::call(part, context)?;
    if matches!(part, Part::Shell(_)) {
        // 7.0.33 refuses a command without a description, which later versions do not require.
        offered::complete(&mut call, context);
    }
    Some(call)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_command_has_a_description_if_the_tool_requires_one() {
        let text = json!({"type": "string"});
        let properties =
            json!({"command": text, "description": text, "timeout": {"type": "number"}});
        let input = |required: Value| {
            let schema = json!({"type": "object", "properties": properties, "required": required});
            let body = json!({"tools": [{"name": "bash", "input_schema": schema}]});
            let context = CallContext {
                offers: &offered::offers(&body),
                ..CallContext::default()
            };
            call(&Part::Shell("ls".into()), &context).unwrap().input
        };
        assert_eq!(input(json!(["command"])), json!({"command": "ls"}));
        assert_eq!(
            input(json!(["command", "description"])),
            json!({"command": "ls", "description": "description"})
        );
    }

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
