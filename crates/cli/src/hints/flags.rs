//! Parameters of the library as options of the command line.

use std::borrow::Cow;

use teamster::{AgentError, ErrorCode, ErrorDetail, ExecuteParams};

use crate::words;

/// Returns the error's message with command-line flags in place of parameter names.
pub(crate) fn message(error: &AgentError) -> Cow<'_, str> {
    match error.detail.as_deref() {
        // The message consists of the problem alone.
        Some(ErrorDetail::Parameter { problem, .. }) if *problem == error.message => {
            with_flags(problem, true).into()
        }
        Some(ErrorDetail::Parameter {
            name,
            item,
            problem,
            ..
        }) => {
            let is_fallback = name == "fallback";
            let name = option(name).unwrap_or(name.into());
            let problem = with_flags(problem, true);
            match item {
                Some(agent) if is_fallback => {
                    // The problem is the message of an error about this agent.
                    let problem = match problem.split_once(": ") {
                        Some((field, rest)) => match option(field) {
                            Some(field) => format!("{field}: {rest}"),
                            None => problem,
                        },
                        None => problem,
                    };
                    format!("{name} {agent}: {problem}").into()
                }
                Some(item) => format!("{name}: {item}: {problem}").into(),
                None => format!("{name}: {problem}").into(),
            }
        }
        _ if error.code == ErrorCode::InvalidParams => with_flags(&error.message, true).into(),
        _ => words::without_error_word(&error.message).into(),
    }
}

/// Returns a warning of a run with command-line flags in place of parameter names between backticks.
pub(crate) fn warning(text: &str) -> String {
    with_flags(text, false)
}

/// Replaces the library's parameter names by command-line flags: between backticks, which are kept if `quotes` is set,
/// and unquoted names with an underscore.
fn with_flags(message: &str, quotes: bool) -> String {
    let mut typed = String::new();
    let in_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut before = ' ';
    let mut rest = message;
    while let Some(c) = rest.chars().next() {
        let end = rest.find(|c| !in_name(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end.max(c.len_utf8()));
        let quoted = before == '`' && after.starts_with('`');
        // Not a part of a path or of an assignment.
        let apart =
            (before == ' ' || before == '`' || before == '(') && !after.starts_with(['=', '/']);
        // Other fields may be words of the text.
        let is_name = word.contains('_');
        let flag = if is_name || quoted {
            option(word)
        } else {
            flag(word)
        };
        before = word.chars().next_back().unwrap_or(' ');
        rest = after;
        match flag.filter(|_| quoted || (apart && is_name)) {
            Some(flag) if quoted && !quotes => {
                typed.pop();
                typed.push_str(&flag);
                // Both backticks are left out.
                (before, rest) = ('`', &rest[1..]);
            }
            Some(flag) => typed.push_str(&flag),
            None => typed.push_str(word),
        }
    }
    typed
}

/// Returns the command-line flag for a parameter of the library.
fn flag(parameter: &str) -> Option<Cow<'static, str>> {
    let flag = match parameter {
        "prompt" => "PROMPT",
        "session_id" => "--resume",
        "new_session_id" => "--session-id",
        "working_directory" => "--cwd",
        "add_dirs" => "--add-dir",
        "skills" => "--skill",
        "sub_agents" => "--agent-file",
        "allowed_tools" => "--allow-tool",
        "denied_tools" => "--deny-tool",
        "max_budget_usd" | "budget.usd" => "--max-budget-usd",
        "budget.tokens" | "usage_updates" => "--max-tokens",
        "images" => "--image",
        "mcp_servers" => "--mcp-config, --mcp",
        "mcp_delivery" => "--mcp-via",
        "extra_args" => "CLI ARGS",
        "include_native" => "--native",
        "record_to" => "--record",
        "timeouts" => "--startup-timeout, --idle-timeout or --tool-timeout",
        "cancel" | "permissions" => return None,
        "repo" | "session_key" => return Some(same(parameter)),
        _ => {
            return ExecuteParams::NAMES
                .contains(&parameter)
                .then(|| same(parameter));
        }
    };
    Some(flag.into())
}

/// Returns the command-line option for a parameter of the library, or for another field of a run's description.
pub(crate) fn option(field: &str) -> Option<Cow<'static, str>> {
    let option = match field {
        "accounts" => "--account",
        "container" => "--in",
        "new_session" => "--new",
        "program" => "--bin",
        "output_file" => "--output",
        "workspace" => "--worktree-from, --repo or --empty-dir",
        "workspace.from" | "workspace.commit" => "--worktree-from",
        "setup_timeout_ms" => "--setup-timeout",
        "artifacts" => "--artifact",
        "placement" => "--pool or --machine",
        "secrets" => "--secret",
        "ask_timeout_ms" => "--ask-timeout",
        "max_wait_ms" => "--max-wait",
        "idle_exit_ms" => "--idle-exit",
        "append_system_prompt"
        | "clean_env"
        | "fallback"
        | "lifecycle"
        | "no_history"
        | "push"
        | "rerun_if_lost"
        | "retries"
        | "run_id"
        | "setup"
        | "store"
        | "worktree" => {
            return Some(same(field));
        }
        _ => return flag(field),
    };
    Some(option.into())
}

/// Returns the option that has the name of a field.
fn same(field: &str) -> Cow<'static, str> {
    format!("--{}", field.replace('_', "-")).into()
}
