//! Starts a detached run for a server: the runner gets what `teamster run --detach` would give it.

use std::ffi::OsString;
use std::io::{Read, Seek};

use teamster_runner::launch::{Launch, accepted_id};
use teamster_server::{BackendError, StartRun, Worktree};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::backend::one_line;
use crate::args::{Cli, Command};
use crate::{detached, exit_code, runner, words};

/// Starts the run, with these variables for its agent; resolves once its runner has accepted it.
pub(crate) async fn start(
    run_id: String,
    request: StartRun,
    variables: &[(&str, String)],
) -> Result<(), BackendError> {
    let args = arguments(&run_id, &request)?;
    let cannot = |what: &str, error: &dyn std::fmt::Display| {
        BackendError::Failed(format!("cannot {what}: {error}"))
    };
    // A file: a pipe would be held open by what the runner starts.
    let mut said = tempfile::tempfile().map_err(|error| cannot("make a temporary file", &error))?;
    let stderr = said
        .try_clone()
        .map_err(|error| cannot("share a file", &error))?;
    let mut command = runner::command(&request.provider)
        .map_err(|error| BackendError::Failed(format!("{error:#}")))?;
    command.stderr(stderr);
    command.envs(variables.iter().map(|(name, value)| (*name, value)));
    // Tokio waits for the runner when it has ended, so that it does not stay as a zombie.
    let mut runner = tokio::process::Command::from(command)
        .spawn()
        .map_err(|error| cannot("start a runner", &error))?;
    let launch = Launch::new(args, Some(request.prompt));
    let launch =
        serde_json::to_vec(&launch).map_err(|error| cannot("write the request", &error))?;
    if let Some(mut stdin) = runner.stdin.take() {
        // A runner that has ended says why, or its exit code does.
        let _ = stdin.write_all(&launch).await;
    }
    let mut reply = String::new();
    if let Some(mut stdout) = runner.stdout.take() {
        let read = stdout.read_to_string(&mut reply).await;
        read.map_err(|error| cannot("read what the runner says", &error))?;
    }
    if accepted_id(&reply).is_some() {
        return Ok(());
    }
    let status = runner.wait().await;
    let status = status.map_err(|error| cannot("wait for the runner", &error))?;
    let mut text = String::new();
    // What cannot be read is not shown.
    let _ = said.rewind().and_then(|()| said.read_to_string(&mut text));
    let text = reason(&text).unwrap_or_else(|| format!("the runner ended ({status})"));
    if detached::runs().is_ok_and(|runs| matches!(runs.get(&run_id), Ok(Some(_)))) {
        return Err(BackendError::Exists(run_id));
    }
    match status.code() {
        Some(code) if code == i32::from(exit_code::USAGE) => Err(BackendError::Invalid(text)),
        _ => Err(BackendError::Failed(text)),
    }
}

/// Why the runner has ended: the last error that it printed.
fn reason(stderr: &str) -> Option<String> {
    let mut lines = stderr.lines().rev();
    let error = lines.find_map(|line| line.strip_prefix("error: "));
    error.map(words::one_line)
}

/// The command line that says the same. Values are joined with their flags, so that none is taken for a flag.
fn arguments(run_id: &str, request: &StartRun) -> Result<Vec<OsString>, BackendError> {
    if crate::providers().get(&request.provider).is_none() {
        let known = crate::providers().all();
        let known: Vec<_> = known.iter().map(|provider| provider.info().id).collect();
        return Err(BackendError::Invalid(format!(
            "provider: there is no agent `{}`; there is: {}",
            words::one_line(&request.provider),
            known.join(", ")
        )));
    }
    let mut args: Vec<OsString> = ["teamster", "run", &request.provider, "-", "--detach"]
        .map(OsString::from)
        .to_vec();
    let mut add = |flag: &str, value: &str| args.push(format!("--{flag}={value}").into());
    add("run-id", run_id);
    add("stdin", "ignore");
    add("permission", request.permission.name());
    for (flag, value) in [
        ("model", &request.model),
        ("effort", &request.effort),
        ("resume", &request.session_id),
        ("system-prompt", &request.system_prompt),
        ("append-system-prompt", &request.append_system_prompt),
    ] {
        if let Some(value) = value {
            add(flag, value);
        }
    }
    for (flag, values) in [
        ("allow-tool", &request.allowed_tools),
        ("deny-tool", &request.denied_tools),
        ("fallback", &request.fallback),
    ] {
        for value in values {
            add(flag, value);
        }
    }
    let number = |value: Option<u64>| value.map(|value| value.to_string());
    let time = |ms: Option<u64>| {
        ms.map(|ms| {
            if ms == 0 {
                "0".to_owned()
            } else {
                format!("{ms}ms")
            }
        })
    };
    for (flag, value) in [
        ("max-turns", number(request.max_turns.map(u64::from))),
        (
            "max-budget-usd",
            request.max_budget_usd.map(|usd| usd.to_string()),
        ),
        ("max-tokens", number(request.max_tokens)),
        ("max-time", time(request.max_time_ms)),
        (
            "retries",
            number(Some(request.retries.into()).filter(|retries| *retries > 0)),
        ),
        ("ask-timeout", time(request.ask_timeout_ms)),
        (
            "output-schema",
            request.output_schema.as_ref().map(ToString::to_string),
        ),
    ] {
        if let Some(value) = value {
            add(flag, &value);
        }
    }
    if request.fork {
        args.push("--fork".into());
    }
    match &request.worktree {
        Some(Worktree::Branch(branch)) => args.push(format!("--worktree={branch}").into()),
        Some(Worktree::Switch(true)) => args.push("--worktree".into()),
        Some(Worktree::Switch(false)) | None => {}
    }
    if let Some(directory) = &request.working_directory {
        let mut arg = OsString::from("--cwd=");
        arg.push(directory);
        args.push(arg);
    }
    match Cli::read(args.clone()) {
        Ok(cli) if matches!(cli.command, Command::Run(_)) => Ok(args),
        Ok(_) => Err(BackendError::Failed("no such command".to_owned())),
        Err(error) => Err(BackendError::Invalid(one_line(&error))),
    }
}
