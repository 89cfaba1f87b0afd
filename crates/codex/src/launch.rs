//! Launch of Codex.

mod mcp;
mod session;
mod toml;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use teamster_core::provider::{Args, Launch, Signal, Stdin, StopStep, is_uuid};
use teamster_core::{
    AgentError, ErrorCode, ErrorKind, ExecuteParams, Image, ImageSource, PermissionMode,
    SystemPrompt, Timeouts,
};

use crate::{CAPABILITIES, INFO};
pub(crate) use mcp::{CONFIG_FILES, Servers};
pub(crate) use session::{Answers, Start, check_prompt, launch_session};

/// The CLI refuses a larger prompt, but only after it has begun a session (measured: "Input exceeds
/// the maximum length of 1048576 characters").
pub(crate) const LARGEST_PROMPT_CHARS: usize = 1 << 20;

/// Above so many bytes instructions are no argument any more: Linux takes none of 128 KiB.
const LARGEST_INSTRUCTIONS_ARGUMENT: usize = 120 << 10;

/// The CLI sets these for its own children. One that finds them passes some of them on to its tools,
/// which then believe that they have no network, or takes itself for another installation.
pub(crate) const MARKS_OF_A_SESSION: &[&str] = &[
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

/// The CLI prints a message only when it is complete, so it is silent for as long as the model thinks or
/// writes. It watches the stream itself and gives up on one that stalls.
pub(crate) const IDLE: Duration = Duration::from_mins(30);

/// Without this the CLI waits forever for a network that is not there. (A setting, because `--disable`
/// fails for a feature that another version does not have.)
pub(crate) const NO_WAITING_FOR_A_NETWORK: &str =
    "--config=features.unbounded_connection_retries=false";

/// After the end of its turn the CLI lives on for 5 s if it cannot deliver its statistics. By then
/// everything about the session is written (measured: SIGKILL right after the end loses nothing).
const EXIT_GRACE: Duration = Duration::from_secs(1);

/// On SIGINT, unlike on SIGTERM, the CLI ends its tools and MCP servers, which are out of reach in
/// sessions and groups of their own (measured: within 100 ms).
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
    // A run has no one to ask whether the directory is trusted.
    args.add("--skip-git-repo-check");
    args.add(NO_WAITING_FOR_A_NETWORK);
    options(params, &mut args);
    system_prompt(params, &mut args)?;
    images(&params.images, &mut args)?;
    if let Some(schema) = &params.output_schema {
        args.private_file("--output-schema=", schema.to_string());
    }
    let servers = Servers::of(params)?;
    for setting in servers.settings {
        args.add(setting);
    }
    for arg in &params.extra_args {
        args.add(arg);
    }
    // All flags stand before it: after it most are refused.
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
        env_remove: MARKS_OF_A_SESSION.to_vec(),
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
    if let Some(model) = &params.model {
        args.value("--model", model);
    }
    if let Some(effort) = &params.effort {
        args.add(self::effort(effort));
    }
    match params.permission {
        PermissionMode::ReadOnly => args.value("--sandbox", "read-only"),
        PermissionMode::AcceptEdits => args.value("--sandbox", "workspace-write"),
        PermissionMode::Bypass => args.add("--dangerously-bypass-approvals-and-sandbox"),
        // The default; `check` has refused what is not known.
        _ => {}
    }
    for dir in &params.add_dirs {
        args.value("--add-dir", dir);
    }
}

/// The setting for how hard the model shall think.
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
        // A path is no TOML, so the CLI takes it as it is.
        Some(SystemPrompt::Replace(text)) => {
            args.private_file("--config=model_instructions_file=", text.as_bytes());
        }
        _ => {}
    }
    Ok(())
}

/// The images, as files. The CLI takes a comma for the end of a path, and continues without an image
/// that it cannot read.
fn images(images: &[Image], args: &mut Args) -> Result<(), AgentError> {
    for image in images {
        match &image.source {
            ImageSource::Bytes(bytes) => args.private_file("--image=", bytes.as_slice()),
            ImageSource::Path(path) => match readable(path) {
                Ok(path) if path.as_os_str().as_encoded_bytes().contains(&b',') => {
                    let bytes = fs::read(&path).map_err(|e| Image::unreadable(&path, &e))?;
                    args.private_file("--image=", bytes);
                }
                Ok(path) => args.value("--image", path),
                Err(error) => return Err(Image::unreadable(path, &error)),
            },
            _ => {
                return Err(AgentError::refused(
                    "images",
                    "an image is a file or bytes in memory",
                ));
            }
        }
    }
    Ok(())
}

/// The whole path of a file that can be read; the CLI may work in another directory.
pub(crate) fn readable(path: &Path) -> io::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    if File::open(&path)?.metadata()?.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    Ok(path)
}

/// The prompt, as an argument or on stdin: given both, the CLI would take both. Stdin is never left
/// open: the CLI would wait for its end forever.
fn prompt(params: &ExecuteParams, args: &mut Args) -> Result<Stdin, AgentError> {
    let prompt = params.prompt.as_str();
    let chars = prompt.chars().count();
    if chars > LARGEST_PROMPT_CHARS {
        return Err(too_large(chars));
    }
    let on_stdin = params.prompt_on_stdin(prompt, &INFO, usize::MAX)?;
    // As an argument, also behind `--`, this word alone means stdin. And stdin with nothing to read
    // is refused, unlike an argument.
    if prompt == "-" || (on_stdin && !prompt.trim().is_empty()) {
        args.add("-");
        return Ok(Stdin::prompt(prompt));
    }
    // What follows `--` is never a flag or a sub-command.
    args.add("--");
    args.add(prompt);
    Ok(Stdin::Closed)
}

/// The error of a prompt with this many characters.
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

/// Refuses what the CLI would refuse, or misunderstand, with an error that has the next step.
pub(crate) fn check(params: &ExecuteParams) -> Result<(), AgentError> {
    params.check(&INFO, &CAPABILITIES)?;
    if params.session_id.as_deref().is_some_and(|id| !is_uuid(id)) {
        // Given another one, the CLI would begin a new session and say nothing about it.
        return Err(AgentError::refused(
            "session_id",
            "Codex's sessions have UUIDs, and this is none; leave it out to begin a new session",
        )
        .kind(ErrorKind::SessionNotFound));
    }
    if params.session_id.is_some() && matches!(params.system_prompt, Some(SystemPrompt::Append(_)))
    {
        return Err(AgentError::refused(
            "system_prompt",
            "a Codex session keeps the instructions that it began with and takes \
             no others when it is resumed or forked; leave it out, or put it into the prompt",
        ));
    }
    Ok(())
}

/// Where the CLI's own program may be, beside the script that npm installs.
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

/// The npm package with the program for this machine, and the name of its folder in there.
fn platform() -> Option<(&'static str, &'static str)> {
    Some(match (std::env::consts::OS, std::env::consts::ARCH) {
        ("linux" | "android", "x86_64") => ("codex-linux-x64", "x86_64-unknown-linux-musl"),
        ("linux" | "android", "aarch64") => ("codex-linux-arm64", "aarch64-unknown-linux-musl"),
        ("macos", "x86_64") => ("codex-darwin-x64", "x86_64-apple-darwin"),
        ("macos", "aarch64") => ("codex-darwin-arm64", "aarch64-apple-darwin"),
        ("windows", "x86_64") => ("codex-win32-x64", "x86_64-pc-windows-msvc"),
        ("windows", "aarch64") => ("codex-win32-arm64", "aarch64-pc-windows-msvc"),
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
