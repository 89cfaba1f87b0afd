//! Kimi Code.

use serde_json::json;

use super::{Call, CallContext, Habits, Pointing, elsewhere};
use crate::Part;

pub(super) const HABITS: Habits = Habits::NONE;

/// Uses Anthropic Messages, with a model that is described by variables.
pub(super) fn point_at(url: &str) -> Pointing {
    let env = [
        ("KIMI_MODEL_NAME", "mock-model".to_owned()),
        ("KIMI_MODEL_API_KEY", "sk-mock-000".to_owned()),
        ("KIMI_MODEL_PROVIDER_TYPE", "anthropic".to_owned()),
        ("KIMI_MODEL_BASE_URL", format!("{url}/v1")),
        ("KIMI_CODE_NO_AUTO_UPDATE", "1".to_owned()),
    ];
    Pointing {
        env: env.map(|(name, value)| (name.to_owned(), value)).into(),
        elsewhere: elsewhere("KIMI_CODE_HOME KIMI_API_KEY KIMI_CODE_BASE_URL"),
        folders: [("KIMI_CODE_HOME", ".kimi-code")].into(),
        before_prompt: &["-p"],
        ..Pointing::default()
    }
}

/// Identifies Kimi by its tools: its `user-agent` is that of the service's library. The tools have the names
/// of Claude's, except for these.
pub(super) fn is_asking(_: &str, tools: &[String]) -> bool {
    let offers = |name| tools.iter().any(|tool| tool == name);
    offers("Bash") && offers("ReadMediaFile") && offers("TodoList")
}

/// Returns the calls that need a special case. Other tools are identified by their schemas.
pub(super) fn call(part: &Part, _: &CallContext<'_>) -> Option<Call> {
    match part {
        // In the background the tool requires a description, which the schema does not list.
        Part::BackgroundShell(command) => Some(Call::new(
            "Bash",
            json!({"command": command, "description": "Run a command", "run_in_background": true}),
        )),
        // The tool requires a kind of sub-agent, which the schema does not list.
        Part::Agent { prompt, .. } => Some(Call::new(
            "Agent",
            json!({"description": "Sub-agent", "prompt": prompt, "subagent_type": "coder"}),
        )),
        Part::Ask(question) => Some(Call::new(
            "AskUserQuestion",
            json!({"questions": [{"question": question, "header": "Question", "options": super::choices()}]}),
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_and_background_commands_have_their_own_form() {
        let context = CallContext::default();
        let started = call(&Part::BackgroundShell("ls".to_owned()), &context).unwrap();
        assert_eq!(started.input["run_in_background"], true);
        let asked = call(&Part::Ask("Which?".to_owned()), &context).unwrap();
        assert_eq!(asked.name, "AskUserQuestion");
        assert_eq!(asked.input["questions"][0]["question"], "Which?");
    }
}
