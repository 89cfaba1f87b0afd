//! GitHub Copilot CLI.

use serde_json::{Value, json};

use super::{Call, CallContext, Habits, Pointing, elsewhere, variables};
use crate::Part;
use crate::json::text_of;

pub(super) const HABITS: Habits = Habits {
    own_message: |_, item| is_own_call(item),
    ..Habits::NONE
};

/// Uses OpenAI Responses. Copilot also supports OpenAI Chat Completions and Anthropic Messages, and its
/// reports differ only in tokens. Only Responses has every kind of token: Messages has none for reasoning,
/// and Chat Completions none for cache writes.
pub(super) fn point_at(url: &str) -> Pointing {
    // The CLI appends `/responses`.
    let base = format!("{url}/v1");
    let env = [
        ("COPILOT_PROVIDER_TYPE", "openai"),
        ("COPILOT_PROVIDER_WIRE_API", "responses"),
        ("COPILOT_PROVIDER_BASE_URL", &base),
        ("COPILOT_PROVIDER_API_KEY", "sk-mock-000"),
        // Any name is accepted. Copilot could offer other tools to a model that it knows.
        ("COPILOT_MODEL", "mock-model"),
        // Disables login, telemetry and requests to GitHub.
        ("COPILOT_OFFLINE", "true"),
        ("COPILOT_AUTO_UPDATE", "false"),
    ];
    Pointing {
        env: variables(&env),
        elsewhere: elsewhere("COPILOT_HOME"),
        folders: [("COPILOT_HOME", ".copilot"), ("XDG_CACHE_HOME", ".cache")].into(),
        before_prompt: &["-p"],
        ..Pointing::default()
    }
}

/// Returns whether Copilot itself put a call in the model's role: it reads the output of background work that
/// has ended.
fn is_own_call(item: &Value) -> bool {
    matches!(text_of(item, "name"), "read_agent" | "read_bash")
        && !text_of(item, "call_id").starts_with("call_mock_")
}

/// Identifies Copilot by its tools: its `user-agent` is that of the service's JavaScript library. No other CLI
/// has one of these tools, except for a `bash`.
pub(super) fn is_asking(user_agent: &str, tools: &[String]) -> bool {
    let library = ["Anthropic/JS ", "OpenAI/JS "]
        .iter()
        .any(|library| user_agent.starts_with(library));
    tools.iter().any(|tool| match tool.as_str() {
        "view" | "create" | "read_bash" | "stop_bash" => true,
        "bash" => library,
        _ => false,
    })
}

pub(super) fn call(part: &Part, context: &CallContext<'_>) -> Option<Call> {
    Some(match part {
        Part::Shell(command) => Call::new(
            "bash",
            json!({"command": command, "description": "Run a command"}),
        ),
        Part::BackgroundShell(command) => Call::new(
            "bash",
            json!({"command": command, "description": "Run a command", "mode": "async"}),
        ),
        Part::ReadFile(path) => Call::new("view", json!({"path": context.absolute(path)})),
        // The tool only creates files, in existing folders.
        Part::WriteFile { path, content } => Call::new(
            "create",
            json!({"path": context.absolute(path), "file_text": content}),
        ),
        Part::EditFile { path, old, new } => Call::new(
            "edit",
            json!({"path": context.absolute(path), "old_str": old, "new_str": new}),
        ),
        Part::Mcp {
            server,
            tool,
            arguments,
        } => Call::new(mcp_name(server, tool), arguments.clone()),
        Part::Ask(question) => Call::new(
            "ask_user",
            json!({"question": question, "choices": ["Yes", "No"]}),
        ),
        Part::Agent { prompt, background } => {
            let mode = if *background == Some(true) {
                "background"
            } else {
                "sync"
            };
            Call::new(
                "task",
                json!({"agent_type": "task", "name": "helper", "description": "Sub-agent", "prompt": prompt, "mode": mode}),
            )
        }
        _ => return None,
    })
}

/// Returns the model's name of an MCP server's tool. Letters, digits, `_` and `-` are kept, other characters
/// become `-`, and long names are truncated.
fn mcp_name(server: &str, tool: &str) -> String {
    const LONGEST: usize = 64;
    format!("{server}-{tool}")
        .chars()
        .map(|character| match character {
            'A'..='Z' | 'a'..='z' | '0'..='9' | '_' | '-' => character,
            _ => '-',
        })
        .take(LONGEST)
        .collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn names(tools: &[&str]) -> Vec<String> {
        tools.iter().map(|&tool| tool.to_owned()).collect()
    }

    #[test]
    fn copilot_is_configured_for_each_kind_of_token() {
        let pointing = point_at("http://127.0.0.1:8787");
        for (name, value) in [
            ("COPILOT_PROVIDER_TYPE", "openai"),
            ("COPILOT_PROVIDER_WIRE_API", "responses"),
            ("COPILOT_PROVIDER_BASE_URL", "http://127.0.0.1:8787/v1"),
            ("COPILOT_OFFLINE", "true"),
        ] {
            let expected = (name.to_owned(), value.to_owned());
            assert!(pointing.env.contains(&expected), "{name}");
        }
        assert_eq!((pointing.args.len(), pointing.files.len()), (0, 0));
    }

    #[test]
    fn its_tools_tell_who_asks_and_not_the_library_alone() {
        assert!(is_asking("Anthropic/JS 0.94.0", &names(&["bash"])));
        assert!(is_asking("OpenAI/JS 5.20.1", &names(&["bash", "view"])));
        assert!(is_asking("", &names(&["grep", "glob", "view"])));
        assert!(!is_asking("OpenAI/JS 5.20.1", &[]));
        assert!(!is_asking("OpenAI/JS 5.20.1", &names(&["weather"])));
        assert!(!is_asking(
            "opencode/1.18.33",
            &names(&["bash", "edit", "read", "write"])
        ));
    }

    #[test]
    fn calls_have_the_form_of_its_tools() {
        let context = CallContext {
            directory: Some(Path::new("/home/me")),
            ..CallContext::default()
        };
        let call = |part: &Part| call(part, &context).map(|call| (call.name, call.input));
        assert_eq!(
            call(&Part::Shell("ls".into())),
            Some((
                "bash".into(),
                json!({"command": "ls", "description": "Run a command"})
            ))
        );
        assert_eq!(
            call(&Part::ReadFile("a/b".into())),
            Some(("view".into(), json!({"path": "/home/me/a/b"})))
        );
        assert_eq!(
            call(&Part::WriteFile {
                path: "/c".into(),
                content: "d".into()
            }),
            Some(("create".into(), json!({"path": "/c", "file_text": "d"})))
        );
        assert_eq!(
            call(&Part::Mcp {
                server: "my.srv".into(),
                tool: "do_it".into(),
                arguments: json!({"a": 1})
            }),
            Some(("my-srv-do_it".into(), json!({"a": 1})))
        );
        assert_eq!(mcp_name(&"s".repeat(60), "search"), "s".repeat(60) + "-sea");
        assert_eq!(call(&Part::Stall), None);
    }
}
