//! Launch of Claude Code.

mod mcp;
mod session;
mod sub_agents;

use std::borrow::Cow;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use nix::unistd::geteuid;
use serde_json::{Value, json};
use teamster_core::provider::{Args, Launch, Signal, Stdin, StopStep, is_uuid};
use teamster_core::{
    AgentError, ErrorKind, ExecuteParams, Image, PermissionMode, SystemPrompt, Timeouts,
};

use crate::{CAPABILITIES, INFO};

pub(crate) use mcp::tool_name as mcp_tool_name;
pub(crate) use session::{launch_query, launch_session};

/// The CLI rejects a larger prompt on stdin (measured: "piped stdin input exceeds 10MB").
const LARGEST_STDIN_PROMPT: usize = 10 * 1024 * 1024;

/// Maximum size of a system prompt that is passed as an argument, in bytes. A larger one is passed in a file. Linux
/// limits an argument to 128 KiB.
const LARGEST_SYSTEM_PROMPT_ARGUMENT: usize = 32 * 1024;

/// Built-in tools without side effects.
pub(crate) const READ_ONLY_TOOLS: &str = "Read,Glob,Grep,LS,WebFetch,WebSearch,WaitForMcpServers";

/// Variables that the CLI sets for its child processes. A CLI that inherits them assumes that it is such a child.
const NESTED_SESSION_VARIABLES: &[&str] = &[
    "CLAUDECODE",
    "CLAUDE_CODE_CHILD_SESSION",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_EXECPATH",
    "CLAUDE_CODE_SESSION_ID",
    "CLAUDE_CODE_SSE_PORT",
];

/// Default idle limit. The CLI gives up on a stalled answer after 298 s (measured) and retries it; the general
/// default of 5 minutes would end the run at that time.
const IDLE: Duration = Duration::from_mins(6);

/// First step of stopping. On SIGINT, unlike on SIGTERM, the CLI ends its running shell commands and reports that in
/// its last lines. Those commands have their own process sessions, so group signals do not reach them.
const STOP_FIRST: StopStep = StopStep {
    signal: Signal::Interrupt,
    grace: Duration::from_secs(1),
};

pub(crate) fn launch(params: &ExecuteParams) -> Result<Launch, AgentError> {
    check(params)?;
    let mut args = flags(params);
    args.add_all(&params.extra_args);
    let stdin = prompt(params, &mut args)?;
    Ok(started(params, args, stdin))
}

/// Returns the flags that precede the caller's extra arguments.
fn flags(params: &ExecuteParams) -> Args {
    let mut args = Args::new();
    args.add("-p");
    args.add("--output-format=stream-json");
    // Required by the CLI for stream-json.
    args.add("--verbose");
    args.add("--include-partial-messages");
    options(params, &mut args);
    mcp::options(params, &mut args);
    system_prompt(params, &mut args);
    args
}

fn started(params: &ExecuteParams, args: Args, stdin: Stdin) -> Launch {
    let mut env = Vec::new();
    if let Some(retries) = params.cli_retries {
        env.push(("CLAUDE_CODE_MAX_RETRIES".to_owned(), retries.to_string()));
    }
    env.extend(mcp::env(params));
    let (args, private_files) = args.into_parts();
    Launch {
        args,
        private_files,
        env,
        env_remove: NESTED_SESSION_VARIABLES.to_vec(),
        stdin,
        stop_first: Some(STOP_FIRST),
        timeouts: Timeouts {
            idle: Some(IDLE),
            ..Timeouts::default()
        },
        ..Launch::default()
    }
}

/// Adds the system prompt, as an argument or in a file if it is large.
fn system_prompt(params: &ExecuteParams, args: &mut Args) {
    let (flag, text) = match &params.system_prompt {
        Some(SystemPrompt::Append(text)) => ("--append-system-prompt", text),
        Some(SystemPrompt::Replace(text)) => ("--system-prompt", text),
        _ => return,
    };
    if text.len() <= LARGEST_SYSTEM_PROMPT_ARGUMENT {
        args.value(flag, text);
    } else {
        args.private_file(format!("{flag}-file="), text.as_bytes());
    }
}

fn options(params: &ExecuteParams, args: &mut Args) {
    args.values("--name", &params.title);
    args.values("--model", &params.model);
    args.values("--effort", &params.effort);
    args.values("--fallback-model", &params.fallback_model);
    match params.permission {
        PermissionMode::ReadOnly => args.value("--tools", READ_ONLY_TOOLS),
        PermissionMode::AcceptEdits => args.value("--permission-mode", "acceptEdits"),
        PermissionMode::Bypass => args.value("--permission-mode", "bypassPermissions"),
        PermissionMode::Plan => args.value("--permission-mode", "plan"),
        // Nothing for the default. `check` has rejected unknown modes.
        _ => {}
    }
    args.values("--allowedTools", &params.allowed_tools);
    args.values("--disallowedTools", &params.denied_tools);
    args.values("--max-turns", params.max_turns.map(|it| it.to_string()));
    let budget = params.max_budget_usd.map(|it| it.to_string());
    args.values("--max-budget-usd", budget);
    let schema = params.output_schema.as_ref().map(Value::to_string);
    args.values("--json-schema", schema);
    args.values("--add-dir", &params.add_dirs);
    // The CLI takes the directory of one skill for a plugin.
    args.values("--plugin-dir", &params.skills);
    sub_agents::options(params, args);
    if let Some(hooks) = &params.hooks {
        // In a file: other users can read arguments.
        args.private_file("--settings=", json!({"hooks": hooks}).to_string());
    }
    args.values("--resume", &params.session_id);
    if params.fork {
        args.add("--fork-session");
    }
    args.values("--session-id", &params.new_session_id);
}

/// Passes the prompt as an argument or on stdin. With both, the CLI would read it twice.
fn prompt(params: &ExecuteParams, args: &mut Args) -> Result<Stdin, AgentError> {
    let prompt = not_a_command(&params.prompt, params.slash_commands);
    if !params.images.is_empty() {
        args.add("--input-format=stream-json");
        let content = content(&prompt, &params.images)?;
        let message = json!({"type": "user", "message": {"role": "user", "content": content}});
        return Ok(Stdin::Bytes(format!("{message}\n").into_bytes()));
    }
    if params.prompt_on_stdin(&prompt, &INFO, &CAPABILITIES, LARGEST_STDIN_PROMPT)? {
        return Ok(Stdin::Bytes(prompt.into_owned().into_bytes()));
    }
    // Words after `--` are never flags.
    args.add("--");
    args.add(prompt.into_owned());
    Ok(Stdin::Closed)
}

/// Returns the prompt with a space before a leading `/`. Without the space, the CLI would parse it as a command
/// (measured: with it, the prompt goes to the model).
pub(crate) fn not_a_command(prompt: &str, slash_commands: bool) -> Cow<'_, str> {
    if prompt.starts_with('/') && !slash_commands {
        Cow::Owned(format!(" {prompt}"))
    } else {
        Cow::Borrowed(prompt)
    }
}

/// Returns the content of a message in stream-json: the images and the prompt.
pub(crate) fn content(prompt: &str, images: &[Image]) -> Result<Value, AgentError> {
    let mut content = Vec::with_capacity(images.len() + 1);
    for image in images {
        let data = STANDARD.encode(image.in_memory()?);
        content.push(json!({
            "type": "image",
            "source": {"type": "base64", "media_type": image.media_type, "data": data}
        }));
    }
    content.push(json!({"type": "text", "text": prompt}));
    Ok(Value::Array(content))
}

/// Rejects parameters that the CLI would reject or misinterpret. The errors have the next step.
fn check(params: &ExecuteParams) -> Result<(), AgentError> {
    params.check(&INFO, &CAPABILITIES)?;
    if params
        .new_session_id
        .as_deref()
        .is_some_and(|id| !is_uuid(id))
    {
        return Err(AgentError::refused(
            "new_session_id",
            "Claude Code takes a UUID only",
        ));
    }
    if params.permission == PermissionMode::ReadOnly && !params.skills.is_empty() {
        return Err(AgentError::refused(
            "skills",
            "in read-only, Claude Code has no tool that loads a skill; use another permission mode",
        ));
    }
    let is_settings = |arg: &String| arg == "--settings" || arg.starts_with("--settings=");
    if params.hooks.is_some() && params.extra_args.iter().any(is_settings) {
        // Measured.
        return Err(AgentError::refused(
            "hooks",
            "Claude Code takes the last --settings alone, and `extra_args` has one: put the hooks there",
        ));
    }
    sub_agents::check(params)?;
    mcp::check(params)?;
    if params.permission == PermissionMode::Bypass && geteuid().is_root() && !is_sandbox(params) {
        return Err(AgentError::refused(
            "permission",
            "Claude Code refuses to bypass permissions as root; run it as another user, or, if this \
             machine is a sandbox in which nothing can be broken, set IS_SANDBOX=1 in its environment",
        )
        .kind(ErrorKind::Permission));
    }
    Ok(())
}

/// Returns whether the user has declared this machine a sandbox. It is never declared for them.
fn is_sandbox(params: &ExecuteParams) -> bool {
    match params.env.get("IS_SANDBOX") {
        Some(value) => !value.is_empty(),
        None => std::env::var_os("IS_SANDBOX").is_some_and(|value| !value.is_empty()),
    }
}

#[cfg(test)]
mod tests;
