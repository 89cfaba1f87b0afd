//! Launch of Codex.

mod mcp;
mod session;
mod toml;

use std::path::{Path, PathBuf, absolute};
use std::time::Duration;

use teamster_core::provider::{Args, Launch, Signal, Stdin, StopStep, is_uuid};
use teamster_core::{
    AgentError, ErrorCode, ErrorKind, ExecuteParams, Image, ImageSource, PermissionMode,
    SystemPrompt, Timeouts,
};

use crate::{CAPABILITIES, INFO};
pub(crate) use mcp::{CONFIG_FILES, Servers};
pub(crate) use session::{Answers, Start, check_prompt, launch_query, launch_session};

/// Largest prompt in characters. The CLI refuses a larger one, but only after it has begun a session (measured:
/// "Input exceeds the maximum length of 1048576 characters").
pub(crate) const LARGEST_PROMPT_CHARS: usize = 1 << 20;

/// Largest instructions that are an argument, in bytes. Linux refuses an argument of 128 KiB.
const LARGEST_INSTRUCTIONS_ARGUMENT: usize = 120 << 10;

/// Variables that the CLI sets for its own children. A CLI that inherits them passes some to its tools, which then
/// assume that they have no network, or mistakes itself for another installation.
pub(crate) const NESTED_SESSION_VARIABLES: &[&str] = &[
    "CODEX_CI",
    "CODEX_INTERNAL_ORIGINATOR_OVERRIDE",
    "CODEX_MANAGED_BY_BUN",
    "CODEX_MANAGED_BY_NPM",
    "CODEX_MANAGED_BY_PNPM",
    "CODEX_MANAGED_PACKAGE_ROOT",
    "CODEX_PERMISSION_PROFILE",
    "CODEX_SANDBOX",
    "CODEX_SANDBOX_NETWORK_DISABLED",
    "CODEX_SESSION_ID",
    "CODEX_THREAD_ID",
    "CODEX_TOOL_CALL_ID",
    "CODEX_VERSION",
];

/// Default idle timeout. The CLI prints a message only when it is complete, so it is silent while the model thinks or
/// writes. It has a timeout of its own for a stalled stream.
pub(crate) const IDLE: Duration = Duration::from_mins(30);

/// Stops the CLI from waiting forever for a missing network. It is a setting because `--disable` fails for a feature
/// that the CLI's version does not have.
pub(crate) const NO_WAITING_FOR_A_NETWORK: &str =
    "--config=features.unbounded_connection_retries=false";

/// Grace after the end of the turn. The CLI lives for another 5 s if it cannot deliver its statistics. By then the
/// session is completely written (measured: SIGKILL right after the end loses nothing).
const EXIT_GRACE: Duration = Duration::from_secs(1);

/// First stop step. On SIGINT, unlike on SIGTERM, the CLI ends its tools and MCP servers, which have their own
/// sessions and groups and cannot be signalled (measured: within 100 ms).
const STOP_FIRST: StopStep = StopStep {
    signal: Signal::Interrupt,
    grace: Duration::from_secs(1),
};

pub(crate) fn launch(params: &ExecuteParams) -> Result<Launch, AgentError> {
    check(params)?;
    let mut args = Args::new();
    args.add("exec");
    args.add("--json");
    args.add("--color=never");
    // A run cannot ask a user whether the directory is trusted.
    args.add("--skip-git-repo-check");
    args.add(NO_WAITING_FOR_A_NETWORK);
    options(params, &mut args);
    system_prompt(params, &mut args)?;
    images(&params.images, &mut args)?;
    if let Some(schema) = &params.output_schema {
        args.private_file("--output-schema=", schema.to_string());
    }
    let servers = Servers::of(params)?;
    args.add_all(servers.settings);
    args.add_all(&params.extra_args);
    // All flags go before the subcommand: it refuses most of them.
    if let Some(id) = &params.session_id {
        args.add(if params.fork { "fork" } else { "resume" });
        args.add(id);
    }
    let stdin = prompt(params, &mut args)?;

    let (args, private_files) = args.into_parts();
    Ok(Launch {
        args,
        private_files,
        env: servers.env,
        env_remove: NESTED_SESSION_VARIABLES.to_vec(),
        stdin,
        stop_first: Some(STOP_FIRST),
        exit_grace: Some(EXIT_GRACE),
        timeouts: Timeouts {
            idle: Some(IDLE),
            ..Timeouts::default()
        },
        config: servers.config,
        names_taken: servers.names_taken,
        ..Launch::default()
    })
}

fn options(params: &ExecuteParams, args: &mut Args) {
    args.values("--model", &params.model);
    args.add_all(params.effort.as_deref().map(effort));
    match params.permission {
        PermissionMode::ReadOnly => args.value("--sandbox", "read-only"),
        PermissionMode::AcceptEdits => args.value("--sandbox", "workspace-write"),
        PermissionMode::Bypass => args.add("--dangerously-bypass-approvals-and-sandbox"),
        // The default. `check` has refused unknown modes.
        _ => {}
    }
    args.values("--add-dir", &params.add_dirs);
}

/// Returns the setting of the reasoning effort.
pub(crate) fn effort(effort: &str) -> String {
    toml::setting("model_reasoning_effort", effort)
}

fn system_prompt(params: &ExecuteParams, args: &mut Args) -> Result<(), AgentError> {
    match &params.system_prompt {
        Some(SystemPrompt::Append(text)) => {
            let setting = toml::setting("developer_instructions", text);
            if setting.len() > LARGEST_INSTRUCTIONS_ARGUMENT {
                let problem = format!(
                    "it has {} bytes as an argument and Codex takes {LARGEST_INSTRUCTIONS_ARGUMENT} at \
                     most; put the rest into an AGENTS.md in the working directory, or replace the \
                     CLI's own",
                    setting.len(),
                );
                return Err(
                    AgentError::refused("system_prompt", problem).code(ErrorCode::PromptTooLarge)
                );
            }
            args.add(setting);
        }
        // A path is not valid TOML, so the CLI takes it literally.
        Some(SystemPrompt::Replace(text)) => {
            args.private_file("--config=model_instructions_file=", text.as_bytes());
        }
        _ => {}
    }
    Ok(())
}

/// Adds the images as files. The paths are absolute, because the CLI may work in another directory.
fn images(images: &[Image], args: &mut Args) -> Result<(), AgentError> {
    for image in images {
        match &image.source {
            ImageSource::Path(path) if !has_comma(path) => {
                let path = absolute(path).map_err(|error| Image::unreadable(path, &error))?;
                args.value("--image", path);
            }
            _ => args.private_file("--image=", image.in_memory()?),
        }
    }
    Ok(())
}

/// Returns whether the CLI would split the path of this file: it does at commas.
pub(crate) fn has_comma(path: &Path) -> bool {
    absolute(path).is_ok_and(|path| path.as_os_str().as_encoded_bytes().contains(&b','))
}

/// Adds the prompt as an argument or on stdin: the CLI would use both. Stdin is never left open, because the CLI
/// would wait for its end forever.
fn prompt(params: &ExecuteParams, args: &mut Args) -> Result<Stdin, AgentError> {
    let prompt = params.prompt.as_str();
    let chars = prompt.chars().count();
    if chars > LARGEST_PROMPT_CHARS {
        return Err(too_large(chars));
    }
    let on_stdin = params.prompt_on_stdin(prompt, &INFO, &CAPABILITIES, usize::MAX)?;
    // The argument `-` means stdin, even after `--`. The CLI refuses an empty stdin, but not an empty argument.
    if prompt == "-" || (on_stdin && !prompt.trim().is_empty()) {
        args.add("-");
        return Ok(Stdin::prompt(prompt));
    }
    // Nothing after `--` is read as a flag or subcommand.
    args.add("--");
    args.add(prompt);
    Ok(Stdin::Closed)
}

/// Returns the error of a prompt with this many characters.
pub(crate) fn too_large(chars: usize) -> AgentError {
    AgentError::new(
        ErrorCode::PromptTooLarge,
        ErrorKind::Invalid,
        format!(
            "the prompt has {chars} characters and Codex takes {LARGEST_PROMPT_CHARS} at most; put \
             the rest in a file and let the agent read it"
        ),
    )
}

/// Refuses parameters that the CLI would refuse or misunderstand. The errors have the next step.
pub(crate) fn check(params: &ExecuteParams) -> Result<(), AgentError> {
    params.check(&INFO, &CAPABILITIES)?;
    if params.session_id.as_deref().is_some_and(|id| !is_uuid(id)) {
        // For another id, the CLI would silently begin a new session.
        return Err(AgentError::refused(
            "session_id",
            "not the id of a Codex session, which is a UUID; leave it out to begin a new session",
        )
        .kind(ErrorKind::SessionNotFound));
    }
    if params.session_id.is_some() && matches!(params.system_prompt, Some(SystemPrompt::Append(_)))
    {
        return Err(AgentError::refused(
            "system_prompt",
            "a Codex session keeps the instructions that it began with, also when it is resumed or \
             forked; leave it out, or put it into the prompt",
        ));
    }
    Ok(())
}

/// Returns possible paths of the CLI's native program, beside the script that npm installs.
pub(crate) fn native_programs(launcher: &Path) -> Vec<PathBuf> {
    let Some((package, triple)) = platform() else {
        return Vec::new();
    };
    let script = launcher.file_name().is_some_and(|name| name == "codex.js");
    let Some(own) = launcher.parent().and_then(Path::parent).filter(|_| script) else {
        return Vec::new();
    };
    let program = format!("vendor/{triple}/bin/codex{}", std::env::consts::EXE_SUFFIX);
    let beside = own.parent().map(|scope| scope.join(package));
    [
        Some(own.join("node_modules/@openai").join(package)),
        beside,
        Some(own.to_owned()),
    ]
    .into_iter()
    .flatten()
    .map(|package| package.join(&program))
    .collect()
}

/// Returns the npm package with the program for this machine, and the name of its folder in there.
fn platform() -> Option<(&'static str, &'static str)> {
    Some(match (std::env::consts::OS, std::env::consts::ARCH) {
        ("linux" | "android", "x86_64") => ("codex-linux-x64", "x86_64-unknown-linux-musl"),
        ("linux" | "android", "aarch64") => ("codex-linux-arm64", "aarch64-unknown-linux-musl"),
        ("macos", "x86_64") => ("codex-darwin-x64", "x86_64-apple-darwin"),
        ("macos", "aarch64") => ("codex-darwin-arm64", "aarch64-apple-darwin"),
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
