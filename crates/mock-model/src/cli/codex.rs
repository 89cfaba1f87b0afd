//! Codex.

use serde_json::{Value, json};

use super::{Call, CallContext, Habits, HomeFile, OwnRequest, ParsedBody, Pointing, elsewhere};
use crate::Part;
use crate::json::{items, text_of};

/// A model that Codex knows and to which it offers its tools as plain functions. The default model gets one
/// tool for programs instead, and for an unknown model Codex prints a warning.
const MODEL: &str = "gpt-5.5";

/// The variable that holds the key for Codex.
const KEY: &str = "MOCK_MODEL_KEY";

/// Numbers of retries by Codex. With its defaults of 4 and 5, an answer of 500 takes 30 requests and 25 s
/// until it becomes an error.
const RETRIES: &str = "request_max_retries=1,stream_max_retries=2";

/// The tool that runs a command in a shell.
const SHELL: &str = "exec_command";

/// The tool that runs a program in JavaScript, which calls the other tools.
const CODE: &str = "exec";

/// The tool that changes files, which is a command too.
const APPLY_PATCH: &str = "apply_patch";

/// The tool that starts a sub-agent.
const SPAWN_AGENT: &str = "spawn_agent";

/// The tool that waits for a message of a sub-agent.
const WAIT_AGENT: &str = "wait_agent";

/// Namespace of these tools in their second version, in which sub-agents have names.
const COLLABORATION: &str = "collaboration";

/// Prefix of the number of turns in a summary of a conversation. Codex sends the summary as a user message,
/// and no other text of the model.
const SUMMARY: &str = "mock model: turns until here: ";

pub(super) const HABITS: Habits = Habits {
    own_request,
    summarized_turns,
    named_call,
    call_beside: wait_for_agent,
    ..Habits::NONE
};

pub(super) fn point_at(url: &str) -> Pointing {
    let provider = format!(
        r#"{{name="mock model",base_url="{url}/v1",wire_api="responses",env_key="{KEY}",{RETRIES}}}"#
    );
    let settings = [
        ("model_provider", r#""mock-model""#),
        ("model_providers.mock-model", &provider),
        // Offline, it would wait 5 s at the end to send statistics.
        ("analytics.enabled", "false"),
        // It would request the list of plugins from GitHub at the start.
        ("features.plugins", "false"),
        // It would wait forever for a missing network.
        ("features.unbounded_connection_retries", "false"),
        ("check_for_update_on_startup", "false"),
    ];
    // Each argument of `--config=` is a line of this file.
    let mut lines = settings
        .map(|(key, value)| format!("{key} = {value}\n"))
        .to_vec();
    lines.push(format!("model = \"{MODEL}\"\n"));
    Pointing {
        env: vec![(KEY.to_owned(), "sk-mock-000".to_owned())],
        args: settings
            .map(|(key, value)| format!("--config={key}={value}"))
            .into(),
        model: Some(MODEL.to_owned()),
        files: vec![HomeFile {
            path: ".codex/config.toml".into(),
            content: lines.concat(),
        }],
        elsewhere: elsewhere("CODEX_HOME"),
        folders: [("CODEX_HOME", ".codex")].into(),
        subcommand: Some("exec"),
        before_prompt: &["--skip-git-repo-check"],
        waits_for_stdin: true,
        ..Pointing::default()
    }
}

/// Recognizes a request for Codex's own purposes, such as a summary of a conversation that became too long.
/// Metadata mark it, which are JSON in a text.
fn own_request(request: &ParsedBody<'_>) -> Option<OwnRequest> {
    let metadata = text_of(&request.body["client_metadata"], "x-codex-turn-metadata");
    let metadata: Value = serde_json::from_str(metadata).ok()?;
    let is_own = !matches!(text_of(&metadata, "request_kind"), "" | "turn");
    is_own.then(|| OwnRequest::Text(format!("{SUMMARY}{}.", request.turn)))
}

fn summarized_turns(body: &Value) -> usize {
    let input = items(body, "input").iter();
    let turns = input
        .filter(|item| text_of(item, "role") == "user")
        .flat_map(|item| items(item, "content"))
        .filter_map(|part| text_of(part, "text").split_once(SUMMARY))
        .filter_map(|(_, rest)| rest.split('.').next()?.parse::<usize>().ok());
    turns.max().unwrap_or_default()
}

pub(super) fn is_asking(user_agent: &str, tools: &[String]) -> bool {
    // Its app-server uses the name of its client.
    user_agent.starts_with("codex") || tools.iter().any(|tool| tool == SHELL || tool == CODE)
}

pub(super) fn call(part: &Part, context: &CallContext<'_>) -> Option<Call> {
    let is_offered = |name: &str| context.tools.iter().any(|tool| tool == name);
    if let Part::Agent { prompt, .. } = part {
        return Some(spawn_agent(prompt, context));
    }
    if context.offered(&[SHELL, CODE]) == CODE {
        return program(part).map(|program| Call::new(CODE, program.into()));
    }
    Some(match part {
        Part::Shell(command) => shell(command),
        Part::ReadFile(path) => shell(&cat(path)),
        Part::WriteFile { .. } | Part::EditFile { .. } => {
            let patch = patch_of(part)?;
            if is_offered(APPLY_PATCH) {
                return Some(Call::new(APPLY_PATCH, patch.into()));
            }
            // Codex treats such a command as a patch, too, and starts no shell.
            shell(&format!("{APPLY_PATCH} <<'EOF'\n{patch}EOF"))
        }
        Part::Mcp {
            server,
            tool,
            arguments,
        } => Call {
            name: identifier(tool),
            namespace: Some(identifier(&format!("mcp__{server}"))),
            input: arguments.clone(),
        },
        Part::Plan(entries) => {
            let step = |entry: &String| json!({"step": entry, "status": "pending"});
            let plan: Vec<_> = entries.iter().map(step).collect();
            Call::new("update_plan", json!({"plan": plan}))
        }
        Part::Ask(question) => Call::new(
            "request_user_input",
            json!({"questions": [{
                "id": "question",
                "question": question,
                "header": "Question",
                "options": super::choices(),
            }]}),
        ),
        _ => return None,
    })
}

/// Returns a call of a tool by name, which may have its namespace as a prefix
/// (`collaboration__send_message`). Some tools are not offered until the model has searched for them.
fn named_call(name: &str, input: Value) -> Call {
    match name.rsplit_once("__") {
        Some((namespace, name)) => Call {
            namespace: Some(namespace.to_owned()),
            ..Call::new(name, input)
        },
        None => Call::new(name, input),
    }
}

/// Returns a call of the tool that starts a sub-agent, which needs no program in code mode. The namespace of
/// the tool, and with it its input, depends on the model; some models have none.
fn spawn_agent(prompt: &str, context: &CallContext<'_>) -> Call {
    let mut offered = (context.tools.iter()).filter_map(|tool| tool.strip_suffix(SPAWN_AGENT));
    let namespace = offered.find_map(|head| head.strip_suffix("__"));
    let input = match namespace {
        Some(COLLABORATION) => {
            json!({"task_name": task_name(prompt), "message": prompt, "fork_turns": "none"})
        }
        _ => json!({"message": prompt}),
    };
    Call {
        namespace: namespace.map(str::to_owned),
        ..Call::new(SPAWN_AGENT, input)
    }
}

/// Returns a name for a sub-agent. Sub-agents of one agent must have different names.
fn task_name(prompt: &str) -> String {
    let words = prompt.split(|c: char| !c.is_ascii_alphanumeric());
    let words: Vec<_> = words.filter(|word| !word.is_empty()).collect();
    words.join("_").to_ascii_lowercase()
}

/// Returns the call that waits for a sub-agent, which runs concurrently with its parent. In the first version
/// of these tools the call requires the sub-agent's id, which the answer that starts it cannot know.
fn wait_for_agent(part: &Part, context: &CallContext<'_>) -> Option<Call> {
    let in_foreground = matches!(
        part,
        Part::Agent {
            background: Some(false),
            ..
        }
    );
    let name = format!("{COLLABORATION}__{WAIT_AGENT}");
    (in_foreground && context.tools.contains(&name)).then(|| Call {
        namespace: Some(COLLABORATION.to_owned()),
        ..Call::new(WAIT_AGENT, json!({}))
    })
}

fn shell(command: &str) -> Call {
    Call::new(SHELL, json!({"cmd": command}))
}

/// Returns the JavaScript program for a part, for models in code mode.
fn program(part: &Part) -> Option<String> {
    let command = |command: &str| {
        let input = json!({"cmd": command});
        format!("const result = await tools.{SHELL}({input});\ntext(result.output);\n")
    };
    Some(match part {
        Part::Shell(line) => command(line),
        Part::ReadFile(path) => command(&cat(path)),
        Part::WriteFile { .. } | Part::EditFile { .. } => {
            let patch = Value::from(patch_of(part)?);
            format!("const result = await tools.{APPLY_PATCH}({patch});\ntext(result);\n")
        }
        Part::Mcp {
            server,
            tool,
            arguments,
        } => {
            let name = identifier(&format!("mcp__{server}__{tool}"));
            format!("const result = await tools.{name}({arguments});\ntext(result.content);\n")
        }
        _ => return None,
    })
}

/// Returns the model's name of an MCP server or tool.
fn identifier(name: &str) -> String {
    name.chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect()
}

/// Returns the command that reads a file. Codex has no tool for that: its models use the shell.
fn cat(path: &str) -> String {
    format!("cat {}", quoted(path))
}

/// Returns a path as a word of a shell. None begins with a dash, which would be an option.
fn quoted(path: &str) -> String {
    let path = if path.starts_with('-') {
        format!("./{path}")
    } else {
        path.to_owned()
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./+,:@%".contains(c);
    if !path.is_empty() && path.chars().all(is_plain) {
        path
    } else {
        format!("'{}'", path.replace('\'', r"'\''"))
    }
}

/// Returns the patch for a part that changes a file.
fn patch_of(part: &Part) -> Option<String> {
    match part {
        Part::WriteFile { path, content } => Some(patch(path, content)),
        Part::EditFile { path, old, new } => {
            let lines = |sign: char, text: &str| {
                let lines = text.lines().map(|line| format!("{sign}{line}\n"));
                lines.collect::<Vec<_>>().concat()
            };
            let (old, new) = (lines('-', old), lines('+', new));
            Some(format!(
                "*** Begin Patch\n*** Update File: {path}\n@@\n{old}{new}*** End Patch\n"
            ))
        }
        _ => None,
    }
}

/// Returns a patch that adds or replaces a file. A patch consists of complete lines, so a line feed is added
/// after the last line if missing. Codex drops a carriage return at the end of a line.
fn patch(path: &str, content: &str) -> String {
    let mut patch = format!("*** Begin Patch\n*** Add File: {path}\n");
    for line in content.split_inclusive('\n') {
        patch.push('+');
        patch.push_str(line);
        if !line.ends_with('\n') {
            patch.push('\n');
        }
    }
    patch.push_str("*** End Patch\n");
    patch
}

#[cfg(test)]
mod tests;
