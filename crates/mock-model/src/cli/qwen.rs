//! Qwen Code.

use serde_json::{Value, json};

use super::{Call, CallContext, Habits, HomeFile, Pointing, choices, elsewhere};
use crate::Part;
use crate::json::{items, text_of};

pub(super) const HABITS: Habits = Habits {
    continuation: is_continuation,
    ..Habits::NONE
};

/// Beginning of what it asks the model after an answer that broke off, which it keeps.
const CONTINUE: &str = "The connection dropped mid-response.";

/// The tool that writes a plan.
const PLAN: &str = "todo_write";

/// The tool that calls a deferred one, in versions such as 0.24.
const DEFERRED: &str = "tool_call";

/// Uses Chat Completions. The settings select the login. They also disable Qwen's own requests after a turn,
/// which would consume the script's next answers: suggestions for the next prompt, and notes for its memory.
///
/// They also switch off the retries of a throttled request, which are ten by default, the first after a minute. What
/// stays are seven attempts at any failing request within about a minute and a half, which no setting changes.
pub(super) fn point_at(url: &str) -> Pointing {
    let env = [
        ("OPENAI_API_KEY", "sk-mock-000".to_owned()),
        ("OPENAI_BASE_URL", format!("{url}/v1")),
        ("OPENAI_MODEL", "mock-model".to_owned()),
    ];
    let settings = json!({
        "security": {"auth": {"selectedType": "openai"}},
        "privacy": {"usageStatisticsEnabled": false},
        "telemetry": {"enabled": false},
        "general": {"enableAutoUpdate": false},
        "ui": {"enableFollowupSuggestions": false},
        // Qwen sends images to models only that it knows to take them.
        "model": {"generationConfig": {
            "modalities": {"image": true},
            "maxRetries": 0,
        }},
        // The tool for plans is off by default.
        "tools": {"todoWrite": {"enabled": true}},
        "memory": {"enableManagedAutoMemory": false, "enableManagedAutoDream": false, "enableAutoSkill": false},
    });
    Pointing {
        env: env.map(|(name, value)| (name.to_owned(), value)).into(),
        files: vec![HomeFile::new(
            ".qwen/settings.json",
            format!("{settings:#}\n"),
        )],
        elsewhere: elsewhere("QWEN_HOME QWEN_RUNTIME_DIR QWEN_CODE_MODEL"),
        folders: [("QWEN_HOME", ".qwen")].into(),
        before_prompt: &["-p"],
        ..Pointing::default()
    }
}

pub(super) fn is_asking(user_agent: &str, _: &[String]) -> bool {
    user_agent.starts_with("QwenCode/")
}

fn is_continuation(message: &Value) -> bool {
    let begins = |text: &str| text.starts_with(CONTINUE);
    let parts = items(message, "content");
    begins(text_of(message, "content")) || parts.iter().any(|part| begins(text_of(part, "text")))
}

/// Returns the calls that need a special case: those of tools that Qwen defers, which it offers behind `tool_call`, and
/// a question. All others are identified by their schemas.
pub(super) fn call(part: &Part, context: &CallContext<'_>) -> Option<Call> {
    let (name, arguments) = match part {
        Part::Ask(question) => {
            let question = json!({"question": question, "header": "Question", "options": choices(), "multiSelect": false});
            let input = json!({"questions": [question]});
            return Some(Call::new("ask_user_question", input));
        }
        Part::Mcp {
            server,
            tool,
            arguments,
        } => (format!("mcp__{server}__{tool}"), arguments.clone()),
        Part::Plan(entries) => {
            let entry = |(number, entry): (usize, &String)| json!({"id": (number + 1).to_string(), "content": entry, "status": "pending"});
            let entries: Vec<_> = entries.iter().enumerate().map(entry).collect();
            (PLAN.to_owned(), json!({"todos": entries}))
        }
        _ => return None,
    };
    let is_offered = |name: &str| context.tools.iter().any(|tool| tool == name);
    // The tool wants a number of its own for each entry, which its schema does not say.
    if name == PLAN && is_offered(PLAN) {
        return Some(Call::new(PLAN, arguments));
    }
    if is_offered(&name) || !is_offered(DEFERRED) {
        return None;
    }
    let input = json!({"name": name, "arguments": arguments});
    Some(Call::new(DEFERRED, input))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deferred_tool_is_called_behind_another() {
        let tools = |names: &[&str]| names.iter().map(|&it| it.to_owned()).collect::<Vec<_>>();
        let called = |part: Part, tools: &[String]| {
            let context = CallContext {
                tools,
                ..CallContext::default()
            };
            call(&part, &context).map(|call| (call.name, call.input))
        };
        let deferring = tools(&["read_file", "tool_call", "tool_search"]);
        let mcp = || Part::Mcp {
            server: "tiny".to_owned(),
            tool: "echo".to_owned(),
            arguments: json!({"a": 1}),
        };
        let input = json!({"name": "mcp__tiny__echo", "arguments": {"a": 1}});
        assert_eq!(
            called(mcp(), &deferring),
            Some(("tool_call".to_owned(), input))
        );
        // Offered tools are identified by their schemas.
        assert_eq!(
            called(mcp(), &tools(&["tool_call", "mcp__tiny__echo"])),
            None
        );
        assert_eq!(called(mcp(), &tools(&["read_file"])), None);
        assert_eq!(called(Part::Shell("ls".to_owned()), &deferring), None);
        let plan = || Part::Plan(vec!["Read".to_owned()]);
        let todo = json!({"id": "1", "content": "Read", "status": "pending"});
        let arguments = json!({"todos": [todo]});
        let input = json!({"name": "todo_write", "arguments": arguments});
        assert_eq!(
            called(plan(), &deferring),
            Some(("tool_call".to_owned(), input))
        );
        assert_eq!(
            called(plan(), &tools(&["tool_call", "todo_write"])),
            Some(("todo_write".to_owned(), arguments))
        );
        let (name, input) = called(Part::Ask("Which?".to_owned()), &deferring).unwrap();
        assert_eq!(name, "ask_user_question");
        assert_eq!(input["questions"][0]["question"], "Which?");
        assert_eq!(
            input["questions"][0]["options"].as_array().unwrap().len(),
            2
        );
    }
}
