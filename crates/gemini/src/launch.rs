//! Launch of Gemini CLI.

mod locations;
mod mcp;
mod policy;
mod session;
mod settings;

use std::borrow::Cow;
use std::path::Path;
use std::time::Duration;

use teamster_core::provider::{Args, Launch, PathLocation, PrivateFile, Stdin};
use teamster_core::{AgentError, ErrorKind, ExecuteParams, PermissionMode, SystemPrompt, Timeouts};

use crate::{CAPABILITIES, INFO};

pub(crate) use locations::projects;
pub(crate) use mcp::{ALLOWED_SERVERS, CONFIG_FILES};
pub(crate) use policy::is_needed as needs_policy;
pub(crate) use session::launch_session;

/// Largest prompt on stdin, in bytes. The CLI truncates a longer one (measured: "stdin input truncated to 8388608
/// bytes").
const LARGEST_STDIN_PROMPT: usize = 8 * 1024 * 1024;

/// Variable that names the file which replaces the CLI's system prompt.
const SYSTEM_PROMPT_FILE: &str = "GEMINI_SYSTEM_MD";

/// Variables that the CLI sets for its own children.
const NESTED_SESSION_VARIABLES: &[&str] = &["GEMINI_CLI", "GEMINI_CLI_WORKTREE_HANDLED"];

/// Default idle timeout. While the CLI repeats a failed request ten times, it prints nothing for 221 s (measured),
/// and its pauses can be 30 % longer.
const IDLE: Duration = Duration::from_mins(6);

/// Grace after the result. After a run with a command, the CLI takes 1.3 to 1.9 s to exit, and 20 s and more on a
/// busy machine (both measured): Node waits for a thread that still compiles, without any system call. By then
/// everything is saved.
const EXIT_GRACE: Duration = Duration::from_secs(20);

pub(crate) fn launch(params: &ExecuteParams) -> Result<Launch, AgentError> {
    check(params)?;
    let mut args = Args::new();
    args.add("--output-format=stream-json");
    begin(params, args, |args| prompt(params, args))
}

/// Builds the common part of the launches of runs and sessions.
fn begin(
    params: &ExecuteParams,
    mut args: Args,
    input: impl FnOnce(&mut Args) -> Result<Stdin, AgentError>,
) -> Result<Launch, AgentError> {
    options(params, &mut args);
    if let Some(rules) = policy::rules(params)? {
        // The administrators' flag: its rules have precedence over the user's settings and do not replace them. The
        // CLI silently ignores a file with another extension.
        args.private_file_named("--admin-policy=", ".toml", rules);
    }
    let mcp = mcp::deliver(params, &mut args)?;
    args.add_all(&params.extra_args);
    let stdin = input(&mut args)?;
    let (args, mut private_files) = args.into_parts();
    if let Some(SystemPrompt::Replace(text)) = &params.system_prompt {
        private_files.push(PrivateFile {
            location: PathLocation::Variable(SYSTEM_PROMPT_FILE.to_owned()),
            content: text.clone().into_bytes(),
        });
    }
    Ok(Launch {
        args,
        private_files,
        // The CLI leaves whole conversations there, readable by everyone, when a request fails.
        private_tmp: true,
        env: environment().into_iter().chain(mcp.env).collect(),
        env_remove: NESTED_SESSION_VARIABLES.to_vec(),
        stdin,
        exit_grace: Some(EXIT_GRACE),
        timeouts: Timeouts {
            idle: Some(IDLE),
            ..Timeouts::default()
        },
        config: mcp.config,
        names_taken: mcp.names_taken,
        ..Launch::default()
    })
}

fn environment() -> [(String, String); 3] {
    [
        // Without this, the program only starts another one and ignores signals.
        ("GEMINI_CLI_NO_RELAUNCH", "true"),
        // A run cannot ask a user whether the directory is trusted, and the CLI does not start without an answer.
        // With the flag for it, the directory's own settings would not be read.
        ("GEMINI_CLI_TRUST_WORKSPACE", "true"),
        ("NO_COLOR", "1"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
}

fn options(params: &ExecuteParams, args: &mut Args) {
    args.values("--model", &params.model);
    let mode = match params.permission {
        // Overrides the user's settings.
        PermissionMode::ReadOnly => Some("default"),
        PermissionMode::AcceptEdits => Some("auto_edit"),
        PermissionMode::Bypass => Some("yolo"),
        PermissionMode::Plan => Some("plan"),
        // The default. `check` has refused unknown modes.
        _ => None,
    };
    if let Some(mode) = mode {
        args.value("--approval-mode", mode);
    }
    args.values("--allowed-tools", &params.allowed_tools);
    args.values("--include-directories", &params.add_dirs);
    args.values("--resume", &params.session_id);
    args.values("--session-id", &params.new_session_id);
}

/// Adds the prompt as an argument or on stdin: the CLI would join them.
fn prompt(params: &ExecuteParams, args: &mut Args) -> Result<Stdin, AgentError> {
    let prompt = not_a_command(params);
    if params.prompt_on_stdin(&prompt, &INFO, &CAPABILITIES, LARGEST_STDIN_PROMPT)? {
        return Ok(Stdin::Bytes(prompt.into_owned().into_bytes()));
    }
    // Joined to its flag, the prompt cannot be read as a flag. After `--` it would be lost.
    args.value("--prompt", prompt.into_owned());
    Ok(Stdin::Closed)
}

/// Returns the prompt, with a space before a leading `/`. Without the space, the CLI would take it for a command of
/// the user (measured: with it, the prompt goes to the model).
fn not_a_command(params: &ExecuteParams) -> Cow<'_, str> {
    let prompt = params.prompt.as_str();
    let is_comment = prompt.starts_with("//") || prompt.starts_with("/*");
    if prompt.starts_with('/') && !is_comment && !params.slash_commands {
        Cow::Owned(format!(" {prompt}"))
    } else {
        Cow::Borrowed(prompt)
    }
}

/// Refuses parameters that the CLI would refuse or misunderstand. The errors have the next step.
fn check(params: &ExecuteParams) -> Result<(), AgentError> {
    params.check(&INFO, &CAPABILITIES)?;
    check_session_ids(params)?;
    if params.model.as_deref().is_some_and(is_changed_by_trim) {
        return Err(AgentError::refused(
            "model",
            "it is empty, or begins or ends with white space, which Gemini CLI drops",
        ));
    }
    for dir in &params.add_dirs {
        check_directory(dir)?;
    }
    for tool in &params.allowed_tools {
        if is_changed_in_list(tool) {
            return Err(AgentError::refused(
                "allowed_tools",
                format!(
                    "Gemini CLI would read {tool:?} as another name or as several: remove commas, and \
                 white space at its ends"
                ),
            ));
        }
    }
    if params.system_prompt.is_some() && params.env.contains_key(SYSTEM_PROMPT_FILE) {
        return Err(AgentError::refused(
            "system_prompt",
            format!("{SYSTEM_PROMPT_FILE} in env sets the same; leave one out"),
        ));
    }
    if policy::is_needed(params) {
        policy::check_location(params)?;
    }
    Ok(())
}

/// Refuses values that do not identify one session: `latest` begins a new one if there is none, and a number is a
/// position in a list that changes.
fn check_session_ids(params: &ExecuteParams) -> Result<(), AgentError> {
    let is_id = |id: &str| {
        let allowed = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
        id.bytes().all(allowed)
            && !id.eq_ignore_ascii_case("latest")
            && !id.bytes().all(|b| b.is_ascii_digit())
    };
    if let Some(id) = params.session_id.as_deref().filter(|id| !is_id(id)) {
        let problem = format!(
            "{id:?} is not a session id; use the id of the session event, not `latest` or a number"
        );
        return Err(AgentError::refused("session_id", problem).kind(ErrorKind::SessionNotFound));
    }
    if params
        .new_session_id
        .as_deref()
        .is_some_and(|id| !is_id(id))
    {
        return Err(AgentError::refused(
            "new_session_id",
            "use ASCII letters, digits, `-` and `_`; Gemini CLI cannot resume a session named `latest` \
             or a number",
        ));
    }
    Ok(())
}

fn check_directory(dir: &Path) -> Result<(), AgentError> {
    let why = match dir.to_str() {
        None => "Gemini CLI takes paths in UTF-8 only",
        Some(path) if is_changed_in_list(path) => {
            "Gemini CLI would read it as another path or as several: use one without commas, and \
             without white space at its ends"
        }
        Some(path) if path.starts_with('~') => "it begins with `~`; give the whole path",
        Some(_) => return Ok(()),
    };
    Err(AgentError::refused(
        "add_dirs",
        format!("{}: {why}", dir.display()),
    ))
}

fn is_changed_by_trim(text: &str) -> bool {
    text.is_empty() || text.trim() != text || text.contains('\u{feff}')
}

/// Returns whether the CLI would change this value in a list, which it splits at commas.
fn is_changed_in_list(text: &str) -> bool {
    is_changed_by_trim(text) || text.contains(',')
}

#[cfg(test)]
mod tests;
