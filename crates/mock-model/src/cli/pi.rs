//! Pi.

use serde_json::json;

use super::{Call, CallContext, Habits, HomeFile, Pointing, elsewhere, variables};
use crate::Part;

/// Name of the provider with Anthropic's protocol, which serves the default model.
const PROVIDER: &str = "mock";

/// Name of the provider with OpenAI's protocol, selected by `--model mock-chat/mock-model`.
const CHAT_PROVIDER: &str = "mock-chat";

const MODEL: &str = "mock-model";

/// Prefix of the names of all tools of MCP servers, which Pi has since 0.99.
const SERVERS: &str = "mcp__";

pub(super) const HABITS: Habits = Habits::NONE;

/// Uses Anthropic's protocol, because only there Pi reports cache writes.
///
/// Pi waits 2, 4 and 8 seconds before it retries a failed request, and ignores the delay that the service
/// requests.
pub(super) fn point_at(url: &str) -> Pointing {
    let provider = |api: &str, base: &str| {
        json!({
            "baseUrl": base,
            "api": api,
            "apiKey": "sk-mock-000",
            "models": [{
                "id": MODEL,
                "reasoning": true,
                "input": ["text", "image"],
                "contextWindow": 200_000,
                "maxTokens": 32_000,
                // In dollars per million tokens. Otherwise Pi reports a cost of 0.
                "cost": {"input": 3, "output": 15, "cacheRead": 0.3, "cacheWrite": 3.75},
            }],
        })
    };
    let models = json!({"providers": {
        // Pi appends `/v1/messages`.
        PROVIDER: provider("anthropic-messages", url),
        CHAT_PROVIDER: provider("openai-completions", &format!("{url}/v1")),
    }});
    // Disables lists of models and update checks.
    let env = [("PI_OFFLINE", "1"), ("PI_TELEMETRY", "0")];
    Pointing {
        env: variables(&env),
        model: Some(format!("{PROVIDER}/{MODEL}")),
        files: vec![
            HomeFile::new(".pi/agent/models.json", models.to_string()),
            // A program that starts Pi names no model, and Pi would take one of a real service.
            HomeFile::new(
                ".pi/agent/settings.json",
                json!({"defaultProvider": PROVIDER, "defaultModel": MODEL}).to_string(),
            ),
        ],
        elsewhere: elsewhere("PI_CODING_AGENT_DIR PI_CODING_AGENT_SESSION_DIR"),
        folders: [("PI_CODING_AGENT_DIR", ".pi/agent")].into(),
        before_prompt: &["--print"],
        waits_for_stdin: true,
        ..Pointing::default()
    }
}

/// Identifies Pi by its tools: its `user-agent` is that of the service's library. No other CLI has exactly
/// these and those of MCP servers.
pub(super) fn is_asking(user_agent: &str, tools: &[String]) -> bool {
    let _ = user_agent;
    let offers = |name| tools.iter().any(|tool| tool == name);
    let has_all = offers("read") && (offers("edit") || offers("find"));
    let own = [
        "read",
        "bash",
        "edit",
        "write",
        "grep",
        "find",
        "ls",
        // For tools of servers that are not offered themselves.
        "codemode",
        "tool_search",
        "list_mcp_resources",
        "list_mcp_resource_templates",
        "read_mcp_resource",
    ];
    let is_own = |tool: &String| own.contains(&tool.as_str()) || tool.starts_with(SERVERS);
    has_all && tools.iter().all(is_own)
}

pub(super) fn call(part: &Part, _: &CallContext<'_>) -> Option<Call> {
    Some(match part {
        Part::Shell(command) => Call::new("bash", json!({"command": command})),
        Part::ReadFile(path) => Call::new("read", json!({"path": path})),
        Part::WriteFile { path, content } => {
            Call::new("write", json!({"path": path, "content": content}))
        }
        Part::EditFile { path, old, new } => Call::new(
            "edit",
            json!({"path": path, "edits": [{"oldText": old, "newText": new}]}),
        ),
        Part::Mcp {
            server,
            tool,
            arguments,
        } => Call::new(mcp_name(server, tool), arguments.clone()),
        // Pi has no such tool and reports that to the model.
        Part::Ask(question) => Call::new("ask_user", json!({"question": question})),
        _ => return None,
    })
}

/// Returns the model's name of an MCP server's tool: letters, digits and `_` are kept, other characters become
/// `_`. A longer name than 64 characters, which ends in a hash in Pi, is not supported.
fn mcp_name(server: &str, tool: &str) -> String {
    let kept = |c: char| {
        if c.is_ascii_alphanumeric() { c } else { '_' }
    };
    let name = format!("{server}__{tool}");
    format!("{SERVERS}{}", name.chars().map(kept).collect::<String>())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::Value;

    use super::*;

    #[test]
    fn both_protocols_are_in_the_file_of_models_with_prices() {
        let pointing = point_at("http://127.0.0.1:1");
        assert_eq!(pointing.model.as_deref(), Some("mock/mock-model"));
        let [file, settings] = pointing.files.as_slice() else {
            panic!("two files");
        };
        let expected = json!({"defaultProvider": "mock", "defaultModel": "mock-model"});
        let settings: Value = serde_json::from_str(&settings.content).unwrap();
        assert_eq!(settings, expected);
        assert_eq!(file.path, Path::new(".pi/agent/models.json"));
        let models: Value = serde_json::from_str(&file.content).unwrap();
        for (provider, api, base) in [
            ("mock", "anthropic-messages", "http://127.0.0.1:1"),
            ("mock-chat", "openai-completions", "http://127.0.0.1:1/v1"),
        ] {
            let provider = &models["providers"][provider];
            assert_eq!(provider["api"], api);
            assert_eq!(provider["baseUrl"], base);
            assert_eq!(provider["models"][0]["id"], "mock-model");
            assert_eq!(
                provider["models"][0]["cost"],
                json!({"input": 3, "output": 15, "cacheRead": 0.3, "cacheWrite": 3.75})
            );
        }
        let offline = ("PI_OFFLINE".to_owned(), "1".to_owned());
        assert!(pointing.env.contains(&offline));
    }

    #[test]
    fn pi_is_known_by_its_tools() {
        let asks = |tools: &[&str]| {
            let tools: Vec<String> = tools.iter().map(|&tool| tool.to_owned()).collect();
            is_asking("", &tools)
        };
        assert!(asks(&["read", "bash", "edit", "write"]));
        assert!(asks(&["read", "grep", "find", "ls"]));
        assert!(asks(&["read", "bash", "write", "edit", "grep"]));
        assert!(asks(&["read", "bash", "edit", "write", "mcp__tiny__echo"]));
        assert!(asks(&["read", "bash", "edit", "write", "codemode"]));
        assert!(!asks(&["read", "bash", "edit", "write", "todowrite"]));
        assert!(!asks(&["read"]));
        assert!(!asks(&[]));
    }

    #[test]
    fn calls_have_the_form_of_its_tools() {
        let context = CallContext::default();
        for (part, name, input) in [
            (Part::Shell("ls".into()), "bash", json!({"command": "ls"})),
            (Part::ReadFile("a".into()), "read", json!({"path": "a"})),
            (
                Part::WriteFile {
                    path: "b".into(),
                    content: "c\n".into(),
                },
                "write",
                json!({"path": "b", "content": "c\n"}),
            ),
            (
                Part::EditFile {
                    path: "b".into(),
                    old: "c".into(),
                    new: "d".into(),
                },
                "edit",
                json!({"path": "b", "edits": [{"oldText": "c", "newText": "d"}]}),
            ),
            (
                Part::Mcp {
                    server: "my-files".into(),
                    tool: "read.me".into(),
                    arguments: json!({"a": 1}),
                },
                "mcp__my_files__read_me",
                json!({"a": 1}),
            ),
        ] {
            assert_eq!(call(&part, &context), Some(Call::new(name, input)));
        }
        assert_eq!(call(&Part::Stall, &context), None);
    }
}
