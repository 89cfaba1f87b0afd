//! OpenCode.

use serde_json::{Value, json};

use super::{Call, CallContext, Habits, OwnRequest, Pointing, elsewhere};
use crate::Part;
use crate::json::{items, text_of};

/// Name of the provider with Anthropic's protocol, which serves the default model.
const PROVIDER: &str = "mock";

/// Name of the provider with OpenAI's protocol, selected by `--model mock-chat/mock-model`.
const CHAT_PROVIDER: &str = "mock-chat";

const MODEL: &str = "mock-model";

pub(super) const HABITS: Habits = Habits {
    own_request: |request| helper(request.body).map(|text| OwnRequest::Text(text.to_owned())),
    own_message: |_, message| is_summary(message),
    ..Habits::NONE
};

/// Uses Anthropic's protocol, because only there OpenCode reports cache writes: its parser of Chat
/// Completions counts them as other input.
///
/// No setting limits OpenCode's retries: five, without output, after 2, 4, 8, 16 and about 30 seconds. A
/// script can shorten only the delays after an HTTP error, by the header `retry-after-ms`.
pub(super) fn point_at(url: &str) -> Pointing {
    let model = format!("{PROVIDER}/{MODEL}");
    let provider = |package: &str| {
        json!({
            "npm": package,
            "name": "Mock model",
            "options": {"baseURL": format!("{url}/v1"), "apiKey": "sk-mock-000"},
            "models": {MODEL: {
                "name": "Mock model",
                "reasoning": true,
                "tool_call": true,
                "attachment": true,
                "modalities": {"input": ["text", "image"], "output": ["text"]},
                "limit": {"context": 200_000, "output": 32_000},
                // In dollars per million tokens. Otherwise OpenCode reports a cost of 0.
                "cost": {"input": 3, "output": 15, "cache_read": 0.3, "cache_write": 3.75},
            }},
        })
    };
    let config = json!({
        "model": model,
        "enabled_providers": [PROVIDER, CHAT_PROVIDER],
        "provider": {
            PROVIDER: provider("@ai-sdk/anthropic"),
            CHAT_PROVIDER: provider("@ai-sdk/openai-compatible"),
        },
        "autoupdate": false,
        "share": "disabled",
    });
    let env = [
        ("OPENCODE_CONFIG_CONTENT", config.to_string()),
        ("OPENCODE_DISABLE_AUTOUPDATE", "1".to_owned()),
        ("OPENCODE_DISABLE_MODELS_FETCH", "1".to_owned()),
        ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1".to_owned()),
    ];
    Pointing {
        env: env.map(|(name, value)| (name.to_owned(), value)).into(),
        model: Some(model),
        elsewhere: elsewhere("OPENCODE_CONFIG OPENCODE_CONFIG_DIR"),
        folders: [
            ("XDG_CONFIG_HOME", ".config"),
            ("XDG_DATA_HOME", ".local/share"),
            ("XDG_STATE_HOME", ".local/state"),
            ("XDG_CACHE_HOME", ".cache"),
        ]
        .into(),
        subcommand: Some("run"),
        waits_for_stdin: true,
        ..Pointing::default()
    }
}

/// Identifies OpenCode by two tools, because other CLIs have a `bash` too.
pub(super) fn is_asking(user_agent: &str, tools: &[String]) -> bool {
    let offers = |name| tools.iter().any(|tool| tool == name);
    user_agent.starts_with("opencode/") || (offers("bash") && offers("todowrite"))
}

pub(super) fn call(part: &Part, context: &CallContext<'_>) -> Option<Call> {
    Some(match part {
        Part::Shell(command) => Call::new("bash", json!({"command": command})),
        Part::ReadFile(path) => Call::new("read", json!({"filePath": context.absolute(path)})),
        Part::WriteFile { path, content } => Call::new(
            "write",
            json!({"filePath": context.absolute(path), "content": content}),
        ),
        Part::EditFile { path, old, new } => Call::new(
            "edit",
            json!({"filePath": context.absolute(path), "oldString": old, "newString": new}),
        ),
        Part::Mcp {
            server,
            tool,
            arguments,
        } => Call::new(
            format!("{}_{}", plain(server), plain(tool)),
            arguments.clone(),
        ),
        Part::Plan(entries) => {
            let todo = |entry: &String| json!({"content": entry, "status": "pending", "priority": "medium"});
            let todos: Vec<_> = entries.iter().map(todo).collect();
            Call::new("todowrite", json!({"todos": todos}))
        }
        Part::Ask(question) => Call::new(
            "question",
            json!({"questions": [{
                "question": question,
                "header": "Question",
                "options": super::choices(),
            }]}),
        ),
        Part::WebSearch(query) => Call::new("websearch", json!({"query": query})),
        Part::Agent { prompt, .. } => Call::new(
            "task",
            json!({"description": "Sub-agent", "prompt": prompt, "subagent_type": "general"}),
        ),
        _ => return None,
    })
}

/// Returns a name as OpenCode presents it to a model.
fn plain(name: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || c == '_' || c == '-' {
            c
        } else {
            '_'
        }
    };
    name.chars().map(plain).collect()
}

/// Returns the answer to OpenCode's own requests: a title of a new session, and a summary that replaces a
/// conversation that became too long.
///
/// These requests offer no tools, but neither does a conversation without allowed tools, so they are
/// identified by their prompts. They may use either of OpenCode's protocols.
fn helper(body: &Value) -> Option<&'static str> {
    let messages = items(body, "messages");
    let is_from = |role: &str| {
        messages
            .iter()
            .any(|message| text_of(message, "role") == role)
    };
    if !items(body, "tools").is_empty() || is_from("assistant") {
        return None;
    }
    let asked: Vec<&str> = messages
        .iter()
        .filter(|message| text_of(message, "role") == "user")
        .flat_map(texts)
        .collect();
    match asked.as_slice() {
        // The second text is the prompt. A conversation would have only that.
        [TITLE_PROMPT, _, ..] => Some("A mock session"),
        [text] if text.starts_with(SUMMARY_PROMPT) => Some(SUMMARY),
        _ => None,
    }
}

/// Returns whether a message of the model is a summary by [`helper`], which is not a turn of the script.
fn is_summary(message: &Value) -> bool {
    texts(message) == [SUMMARY]
}

const TITLE_PROMPT: &str = "Generate a title for this conversation:\n";

const SUMMARY_PROMPT: &str = "Here is the conversation so far:\n\n<conversation>\n";

const SUMMARY: &str = "Mock summary: what was said before was too long to keep.";

/// Returns the texts of a message, whose content is a text or a list.
fn texts(message: &Value) -> Vec<&str> {
    match &message["content"] {
        Value::String(text) => vec![text],
        content => content
            .as_array()
            .map_or(&[][..], Vec::as_slice)
            .iter()
            .filter_map(|part| part["text"].as_str())
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::Protocol;
    use crate::wire::RequestKind;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn both_protocols_are_at_the_address_and_the_model_has_prices() {
        let pointing = point_at("http://127.0.0.1:1");
        assert_eq!(pointing.model.as_deref(), Some("mock/mock-model"));
        assert!(pointing.args.is_empty() && pointing.files.is_empty());
        let (name, config) = &pointing.env[0];
        assert_eq!(name, "OPENCODE_CONFIG_CONTENT");
        let config: Value = serde_json::from_str(config).unwrap();
        assert_eq!(config["model"], "mock/mock-model");
        assert_eq!(config["enabled_providers"], json!(["mock", "mock-chat"]));
        for (provider, package) in [
            ("mock", "@ai-sdk/anthropic"),
            ("mock-chat", "@ai-sdk/openai-compatible"),
        ] {
            let provider = &config["provider"][provider];
            assert_eq!(provider["npm"], package);
            assert_eq!(provider["options"]["baseURL"], "http://127.0.0.1:1/v1");
            assert_eq!(
                provider["models"]["mock-model"]["cost"],
                json!({"input": 3, "output": 15, "cache_read": 0.3, "cache_write": 3.75})
            );
        }
        assert_eq!(
            (&config["autoupdate"], &config["share"]),
            (&json!(false), &json!("disabled"))
        );
        let mut off: Vec<_> = pointing.env[1..].iter().map(|(name, _)| name).collect();
        off.sort();
        assert_eq!(
            off,
            [
                "OPENCODE_DISABLE_AUTOUPDATE",
                "OPENCODE_DISABLE_LSP_DOWNLOAD",
                "OPENCODE_DISABLE_MODELS_FETCH"
            ]
        );
    }

    #[test]
    fn opencode_is_known_by_its_name_or_two_of_its_tools() {
        let agent = "opencode/1.18.33 ai-sdk/provider-utils/4.0.46 runtime/bun/1.3.14";
        assert!(is_asking(agent, &[]));
        assert!(is_asking("", &names(&["bash", "edit", "todowrite"])));
        assert!(!is_asking("OpenAI/JS 5.20.1", &names(&["bash", "view"])));
        assert!(!is_asking("", &names(&["todowrite"])));
    }

    #[test]
    fn calls_have_the_form_of_its_tools() {
        let context = CallContext {
            directory: Some(Path::new("/w")),
            ..CallContext::default()
        };
        for (part, name, input) in [
            (Part::Shell("ls".into()), "bash", json!({"command": "ls"})),
            (
                Part::ReadFile("a.txt".into()),
                "read",
                json!({"filePath": "/w/a.txt"}),
            ),
            (
                Part::WriteFile {
                    path: "/x/b".into(),
                    content: "c\n".into(),
                },
                "write",
                json!({"filePath": "/x/b", "content": "c\n"}),
            ),
            (
                Part::Mcp {
                    server: "my db".into(),
                    tool: "get.one-row".into(),
                    arguments: json!({"id": 1}),
                },
                "my_db_get_one-row",
                json!({"id": 1}),
            ),
        ] {
            assert_eq!(call(&part, &context), Some(Call::new(name, input)));
        }
        assert_eq!(call(&Part::Cut, &context), None);
    }

    #[test]
    fn a_title_is_requested_in_both_protocols() {
        let title = Some("A mock session");
        let prompt = "Generate a title for this conversation:\n";
        let chat = json!({"messages": [
            {"role": "system", "content": "You are a title generator."},
            {"role": "user", "content": prompt},
            {"role": "user", "content": "hi"},
        ]});
        assert_eq!(helper(&chat), title);
        let blocks = json!([{"type": "text", "text": prompt}, {"type": "text", "text": "hi"}]);
        let anthropic = json!({"messages": [{"role": "user", "content": blocks}]});
        assert_eq!(helper(&anthropic), title);
        for (protocol, path, body) in [
            (Protocol::Chat, "/v1/chat/completions", &chat),
            (Protocol::Anthropic, "/v1/messages", &anthropic),
        ] {
            let what = protocol.wire().asked(path, body).what;
            assert_eq!(
                what,
                RequestKind::Helper("A mock session".into()),
                "{protocol}"
            );
        }
    }

    #[test]
    fn a_conversation_without_tools_is_one() {
        let tools = json!([{"name": "bash"}]);
        let user = |text: &str| json!({"role": "user", "content": text});
        let title = user(TITLE_PROMPT);
        let summary = user(&format!("{SUMMARY_PROMPT}x"));
        let answer = json!({"role": "assistant", "content": "x"});
        for body in [
            json!({"messages": [user("hi")]}),
            json!({"messages": [title]}),
            json!({"messages": [title, answer, user("more")]}),
            json!({"messages": [title, user("hi")], "tools": tools}),
            json!({"messages": [summary], "tools": tools}),
            json!({}),
        ] {
            assert_eq!(helper(&body), None, "{body}");
        }
        assert_eq!(helper(&json!({"messages": [summary]})), Some(SUMMARY));
    }

    #[test]
    fn a_summary_is_known_again() {
        for content in [json!(SUMMARY), json!([{"type": "text", "text": SUMMARY}])] {
            assert!(is_summary(
                &json!({"role": "assistant", "content": content})
            ));
        }
        for content in [json!("other"), json!(null), json!([])] {
            assert!(!is_summary(
                &json!({"role": "assistant", "content": content})
            ));
        }
    }
}
