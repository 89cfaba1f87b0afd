//! Gemini CLI.

mod own;

use serde_json::json;

use super::{Call, CallContext, Habits, HomeFile, Pointing, elsewhere, variables};
use crate::Part;

pub(super) const HABITS: Habits = Habits {
    own_request: own::request,
    own_message: own::is_message,
    ..Habits::NONE
};

/// Uses variables and the user's settings.
///
/// In an empty home, variables would suffice: those of Vertex AI select a login, while a base URL alone does
/// not (exit code 41). However, a login in the user's settings takes precedence and would contact the real
/// service. Only settings disable statistics and limit the retries of a failed request, which are ten by
/// default and take minutes. They must be the user's: an administrator's settings, which a variable can name,
/// must belong to root.
pub(super) fn point_at(url: &str) -> Pointing {
    let env = [
        ("GEMINI_API_KEY", "mock-000"),
        ("GOOGLE_GEMINI_BASE_URL", url),
        // Otherwise the CLI refuses to work in an untrusted folder (exit code 55).
        ("GEMINI_CLI_TRUST_WORKSPACE", "true"),
    ];
    let settings = json!({
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "general": {
            "enableAutoUpdate": false,
            "enableAutoUpdateNotification": false,
            "maxAttempts": 3,
        },
        "privacy": {"usageStatisticsEnabled": false},
        "telemetry": {"enabled": false},
    });
    Pointing {
        env: variables(&env),
        // With the default, `auto`, the CLI first asks another model to choose one, and counts the usage of
        // that too.
        model: Some("gemini-2.5-flash".to_owned()),
        files: vec![HomeFile {
            path: ".gemini/settings.json".into(),
            content: format!("{settings:#}\n"),
        }],
        elsewhere: elsewhere(
            "
                GEMINI_CLI_HOME GOOGLE_API_KEY GOOGLE_GENAI_USE_GCA GOOGLE_GENAI_USE_VERTEXAI
            ",
        ),
        folders: [("GEMINI_CLI_HOME", "")].into(),
        before_prompt: &["--skip-trust", "-p"],
        ..Pointing::default()
    }
}

pub(super) fn is_asking(user_agent: &str, tools: &[String]) -> bool {
    // A client's name may follow: `GeminiCLI-tui/0.61.0/…`.
    user_agent.starts_with("GeminiCLI")
        || tools
            .iter()
            .any(|tool| tool == "run_shell_command" || tool == "google_web_search")
}

pub(super) fn call(part: &Part, _context: &CallContext<'_>) -> Option<Call> {
    // Paths may be relative.
    Some(match part {
        Part::Shell(command) => Call::new("run_shell_command", json!({"command": command})),
        Part::BackgroundShell(command) => Call::new(
            "run_shell_command",
            json!({"command": command, "is_background": true}),
        ),
        Part::ReadFile(path) => Call::new("read_file", json!({"file_path": path})),
        Part::WriteFile { path, content } => {
            Call::new("write_file", json!({"file_path": path, "content": content}))
        }
        Part::EditFile { path, old, new } => Call::new(
            "replace",
            json!({
                "file_path": path,
                "instruction": "Change the file.",
                "old_string": old,
                "new_string": new,
            }),
        ),
        Part::Mcp {
            server,
            tool,
            arguments,
        } => Call::new(mcp_name(server, tool), arguments.clone()),
        Part::Plan(entries) => {
            let todo = |entry: &String| json!({"description": entry, "status": "pending"});
            let todos: Vec<_> = entries.iter().map(todo).collect();
            Call::new("write_todos", json!({"todos": todos}))
        }
        Part::Ask(question) => Call::new(
            "ask_user",
            json!({"questions": [{
                "question": question,
                "header": "Question",
                "type": "choice",
                "options": super::choices(),
            }]}),
        ),
        Part::WebSearch(query) => Call::new("google_web_search", json!({"query": query})),
        Part::Agent { prompt, .. } => Call::new(
            "invoke_agent",
            json!({"agent_name": "generalist", "prompt": prompt}),
        ),
        _ => return None,
    })
}

/// Returns the name under which the CLI declares a tool of a server.
fn mcp_name(server: &str, tool: &str) -> String {
    /// Longer names are shortened in the middle.
    const LONGEST: usize = 63;
    const END: usize = 30;
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':');
    let name = format!("{server}_{tool}");
    let name = if name.starts_with("mcp_") {
        name
    } else {
        format!("mcp_{name}")
    };
    // ASCII only from here on, so bytes are characters.
    let name = name.replace(|c| !allowed(c), "_");
    if name.len() > LONGEST {
        format!("{}...{}", &name[..END], &name[name.len() - END..])
    } else {
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_mcp_tools_are_those_that_the_cli_declares() {
        assert_eq!(mcp_name("tiny", "echo"), "mcp_tiny_echo");
        assert_eq!(mcp_name("my_srv.x", "a b"), "mcp_my_srv.x_a_b");
        assert_eq!(mcp_name("mcp_x", "y"), "mcp_x_y");
        let long = mcp_name(&"s".repeat(30), &"t".repeat(40));
        assert_eq!(long, format!("mcp_{}...{}", "s".repeat(26), "t".repeat(30)));
    }

    #[test]
    fn gemini_is_known_by_its_name_and_tools() {
        let tools = |name: &str| [name.to_owned()];
        for name in [
            "GeminiCLI-tui/0.61.0/gemini-2.5-flash (linux; x64; terminal)",
            "GeminiCLI/0.61.0/gemini-2.5-flash (linux; x64; terminal)",
        ] {
            assert!(is_asking(name, &[]), "{name}");
        }
        assert!(is_asking("", &tools("run_shell_command")));
        assert!(!is_asking("curl/8.0", &tools("read_file")));
    }

    #[test]
    fn gemini_is_configured_by_variables_and_settings() {
        let pointing = point_at("http://127.0.0.1:1");
        let is = |name: &str, value: &str| pointing.env.contains(&(name.into(), value.into()));
        assert!(is("GOOGLE_GEMINI_BASE_URL", "http://127.0.0.1:1"));
        let [file] = pointing.files.as_slice() else {
            panic!("{:?}", pointing.files);
        };
        assert_eq!(file.path, std::path::Path::new(".gemini/settings.json"));
        let settings: serde_json::Value = serde_json::from_str(&file.content).unwrap();
        assert_eq!(
            settings["security"]["auth"]["selectedType"],
            "gemini-api-key"
        );
        assert_eq!(settings["general"]["maxAttempts"], 3);
    }
}
