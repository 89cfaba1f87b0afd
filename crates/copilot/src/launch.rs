//! Launch of GitHub Copilot CLI.

mod hooks;
mod mcp;
mod session;

use std::env;
use std::path::{Path, PathBuf, absolute};

use teamster_core::provider::{Args, Launch, RecordFiles, Stdin, is_uuid};
use teamster_core::{
    AgentError, ErrorCode, ErrorKind, ExecuteParams, Image, ImageSource, PermissionMode,
};

use crate::{CAPABILITIES, INFO};

pub(crate) use session::launch_session;

/// Largest prompt that goes to stdin, in bytes. The CLI has no known limit (200 KB were measured). This limit refuses
/// prompts that are too large for any model.
const LARGEST_STDIN_PROMPT: usize = 10 * 1024 * 1024;

/// Variables that the CLI sets for its own children, and the locations of its own files. A CLI that inherits them
/// takes itself for such a child.
const NESTED_SESSION_VARIABLES: &[&str] = &[
    "COPILOT_CLI",
    "COPILOT_AGENT_SESSION_ID",
    "COPILOT_CLI_BINARY_VERSION",
    "COPILOT_CLI_RESOLVED_DIST_DIR",
];

/// File of a session that records its events.
const EVENTS: &str = "events.jsonl";
/// Types of lines with usage figures in the session's record.
const FIGURES: &[&str] = &["session.usage_record", "session.start", "session.shutdown"];

pub(crate) fn launch(params: &ExecuteParams) -> Result<Launch, AgentError> {
    check(params)?;
    let mut args = Args::new();
    let stdin = prompt(params, &mut args)?;
    args.add("--output-format=json");
    // A session takes its mode by the protocol, and not by this flag (measured).
    if params.permission == PermissionMode::Plan {
        args.value("--mode", "plan");
    }
    begin(params, args, stdin)
}

/// Builds the common part of the launches of runs and sessions.
fn begin(params: &ExecuteParams, mut args: Args, stdin: Stdin) -> Result<Launch, AgentError> {
    args.add("--no-auto-update");
    args.add("--no-color");
    session(params, &mut args);
    options(params, &mut args);
    mcp::options(params, &mut args)?;
    add_dirs(params, &mut args);
    hooks::options(params, &mut args)?;
    for image in &params.images {
        attach(image, &mut args)?;
    }
    args.add_all(&params.extra_args);
    let (args, private_files) = args.into_parts();
    Ok(Launch {
        args,
        private_files,
        env_remove: NESTED_SESSION_VARIABLES.to_vec(),
        stdin,
        ..Launch::default()
    })
}

/// Adds the prompt: joined with its flag in one argument, or on stdin without the flag. Given both, the CLI ignores
/// stdin. A separate argument that begins with `-` would be a flag, even after `--`.
fn prompt(params: &ExecuteParams, args: &mut Args) -> Result<Stdin, AgentError> {
    if params.prompt_on_stdin(&params.prompt, &INFO, &CAPABILITIES, LARGEST_STDIN_PROMPT)? {
        return Ok(Stdin::Bytes(params.prompt.clone().into_bytes()));
    }
    args.value("--prompt", &params.prompt);
    Ok(Stdin::Closed)
}

/// Adds the session's id. An unknown id is an error for `--resume` and a new session for `--session-id`.
fn session(params: &ExecuteParams, args: &mut Args) {
    args.values("--resume", &params.session_id);
    args.values("--session-id", &params.new_session_id);
}

fn options(params: &ExecuteParams, args: &mut Args) {
    args.values("--model", &params.model);
    args.values("--reasoning-effort", &params.effort);
    match params.permission {
        PermissionMode::ReadOnly => {
            // The denial also applies to sub-agents, and has precedence over permissions.
            args.value("--deny-tool", "write,shell");
        }
        PermissionMode::AcceptEdits => args.value("--allow-tool", "write"),
        PermissionMode::Bypass => args.add("--allow-all"),
        // The default. `check` has refused unknown modes.
        _ => {}
    }
    args.values("--allow-tool", &params.allowed_tools);
    args.values("--deny-tool", &params.denied_tools);
}

/// Adds directories as absolute paths: `-C` in extra arguments would change the meaning of relative ones.
fn add_dirs(params: &ExecuteParams, args: &mut Args) {
    let base = params.working_directory.as_deref();
    let base = absolute(base.unwrap_or(Path::new("."))).unwrap_or_default();
    let in_full = |path: &PathBuf| base.join(path);
    args.values("--add-dir", params.add_dirs.iter().map(in_full));
    // The CLI takes the directory of one skill for a plugin.
    args.values("--plugin-dir", params.skills.iter().map(in_full));
}

/// Adds an image as a file. The CLI derives its type from the file's extension.
fn attach(image: &Image, args: &mut Args) -> Result<(), AgentError> {
    match &image.source {
        ImageSource::Path(path) => {
            // The CLI would search a relative path in the agent's directory.
            let path = absolute(path).map_err(|error| Image::unreadable(path, &error))?;
            args.value("--attachment", path);
        }
        _ => {
            let suffix = match image.media_type.as_str() {
                "image/png" => ".png",
                "image/jpeg" => ".jpg",
                "image/gif" => ".gif",
                "image/webp" => ".webp",
                other => {
                    return Err(AgentError::refused(
                        "images",
                        format!("GitHub Copilot CLI takes PNG, JPEG, GIF and WebP, not {other:?}"),
                    ));
                }
            };
            args.private_file_named("--attachment=", suffix, image.in_memory()?);
        }
    }
    Ok(())
}

/// Returns the files in which the CLI records the session. Its output has no token counts.
pub(crate) fn record(params: &ExecuteParams) -> Option<RecordFiles> {
    let id = params
        .session_id
        .as_ref()
        .or(params.new_session_id.as_ref())?;
    let home = params.cli_folder("COPILOT_HOME", ".copilot")?;
    let folder = home.join("session-state").join(id);
    Some(RecordFiles::new(folder, vec![EVENTS.to_owned()], FIGURES))
}

/// Returns whether there is a session with the requested id.
pub(crate) fn session_exists(params: &ExecuteParams) -> bool {
    events(params).is_some_and(|file| file.exists())
}

/// Returns the file in which the CLI records the session's events.
pub(crate) fn events(params: &ExecuteParams) -> Option<PathBuf> {
    Some(record(params)?.folder.join(EVENTS))
}

/// Refuses parameters that the CLI would refuse or misunderstand. The errors have the next step.
fn check(params: &ExecuteParams) -> Result<(), AgentError> {
    params.check(&INFO, &CAPABILITIES)?;
    if params.prompt.trim().is_empty() {
        return Err(AgentError::refused(
            "prompt",
            "GitHub Copilot CLI needs a prompt with images; describe what to do with them",
        ));
    }
    // `--resume` also takes names and prefixes of ids, which may belong to another session.
    for (name, id) in [
        ("session_id", &params.session_id),
        ("new_session_id", &params.new_session_id),
    ] {
        if id.as_deref().is_some_and(|id| !is_uuid(id)) {
            return Err(AgentError::new(
                ErrorCode::InvalidParams,
                if name == "session_id" {
                    ErrorKind::SessionNotFound
                } else {
                    ErrorKind::Invalid
                },
                format!(
                    "{name}: not the id of a GitHub Copilot CLI session, which is a whole UUID; use the id of the session event"
                ),
            ));
        }
    }
    // The CLI would silently resume it.
    if params.session_id.is_none() && session_exists(params) {
        return Err(AgentError::refused(
            "new_session_id",
            "a session with this id exists; to resume it, set session_id",
        ));
    }
    mcp::check(params)?;
    check_extra_args(params)
}

/// Refuses flags that conflict with the session id, which every run here has, or that would move the run to another
/// session.
fn check_extra_args(params: &ExecuteParams) -> Result<(), AgentError> {
    const WAYS: &[(&str, &str)] = &[
        ("--continue", RESUME),
        ("--resume", RESUME),
        ("-r", RESUME),
        ("--session-id", "use new_session_id"),
        ("--connect", "a remote session cannot be run here"),
        (
            "--trust-folder",
            "name the files that it would load, as in \
                            --additional-mcp-config=@.mcp.json",
        ),
        (
            "--worktree",
            "create the worktree first, and set working_directory to it",
        ),
        ("--acp", "another protocol cannot be used here"),
    ];
    const RESUME: &str = "use session_id to resume a session";
    for arg in &params.extra_args {
        let flag = arg.split_once('=').map_or(arg.as_str(), |(flag, _)| flag);
        let short = flag.starts_with("-r");
        let way = WAYS
            .iter()
            .find(|(name, _)| *name == flag || (short && *name == "-r"));
        if let Some((name, way)) = way {
            return Err(AgentError::refused(
                "extra_args",
                format!("{name} cannot be used, because the run already has its session; {way}"),
            ));
        }
    }
    Ok(())
}

/// Returns possible paths of the native program. The npm package's `npm-loader.js` is only its launcher, and is
/// killed by signals that never reach the program.
pub(crate) fn native_programs(launcher: &Path) -> Vec<PathBuf> {
    let is_loader = launcher
        .file_name()
        .is_some_and(|name| name == "npm-loader.js");
    let Some(package) = launcher.parent().filter(|_| is_loader) else {
        return Vec::new();
    };
    let arch = match env::consts::ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        _ => return Vec::new(),
    };
    let platforms: &[&str] = match env::consts::OS {
        "linux" => &["linux", "linuxmusl"],
        "macos" => &["darwin"],
        _ => &[],
    };
    let found: Vec<PathBuf> = platforms
        .iter()
        .filter_map(|platform| {
            let name = format!("copilot-{platform}-{arch}");
            let nested = package.join("node_modules/@github").join(&name);
            let beside = package.parent()?.join(&name);
            [nested, beside]
                .into_iter()
                .map(|folder| folder.join("copilot"))
                .find(|program| program.is_file())
        })
        .collect();
    // If both are installed, for glibc and for musl, only the launcher can choose.
    match <[PathBuf; 1]>::try_from(found) {
        Ok([only]) => vec![only],
        Err(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests;
