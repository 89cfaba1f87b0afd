//! Converts command-line arguments to the request body that starts a run or session on a server.
//!
//! A new option of `teamster run` is rejected with `--remote` until it is in the lists below. It also needs a field in
//! `RunSpec`, and a line in `serve/start/arguments.rs`.

use std::time::Duration;

use anyhow::bail;
use hyper::Method;
use hyper::header::HeaderName;
use teamster::SystemPrompt;
use teamster_core::time::millis;
use teamster_server::{RunSpec, RunView, SessionSpec, Worktree};
use uuid::Uuid;

use super::absolute;
use super::http::Http;
use crate::args::{self, ChatArgs, Fallback, ProcessArgs, RunArgs, SystemArgs};
use crate::params;

/// The options of `teamster run` that are supported with `--remote`.
const RUN_OPTIONS: &[&str] = &[
    "provider",
    "prompt",
    "prompt_file",
    "output_file",
    "detach",
    "ask_timeout",
    "json",
    "quiet",
    "verbose",
    "stdin",
    "output_schema",
    "max_turns",
    "run_id",
    "session_key",
    "new",
];
/// The options of `teamster chat --detach` that are supported with `--remote`.
const CHAT_OPTIONS: &[&str] = &["provider", "detach", "ask_timeout", "end_idle", "quiet"];
/// The supported options common to both commands.
const COMMON_OPTIONS: &[&str] = &[
    "remote",
    "remote_token_file",
    "model",
    "effort",
    "permission",
    "allow_tool",
    "deny_tool",
    "resume",
    "fork",
    "system_prompt",
    "system_prompt_file",
    "append_system_prompt",
    "append_system_prompt_file",
    "cwd",
    "worktree",
    "max_budget_usd",
    "max_tokens",
    "max_time",
    "retries",
    "max_wait",
    "fallback",
];

/// Rejects options that are not supported with `--remote`.
fn check(own: &[&str]) -> anyhow::Result<()> {
    for (id, flag) in args::explicit_options(std::env::args_os()) {
        if !own.contains(&&*id) && !COMMON_OPTIONS.contains(&&*id) {
            bail!(
                "{flag} cannot be used with --remote: omit it, or run the command on the server's machine"
            );
        }
    }
    Ok(())
}

/// Creates the request for a run with this prompt. Every error is a usage error.
pub(super) fn run_request(args: &RunArgs, prompt: String) -> anyhow::Result<RunSpec> {
    check(RUN_OPTIONS)?;
    let mut body = RunSpec::new(&*args.provider, prompt);
    body.model.clone_from(&args.model.model);
    body.effort.clone_from(&args.model.effort);
    body.permission = args.permissions.permission;
    body.allowed_tools.clone_from(&args.permissions.allow_tool);
    body.denied_tools.clone_from(&args.permissions.deny_tool);
    body.session_id.clone_from(&args.session.agent.resume);
    body.session_key.clone_from(&args.session.session_key);
    body.new_session = args.session.new;
    body.fork = args.session.agent.fork;
    (body.system_prompt, body.append_system_prompt) = system(&args.input.system)?;
    let schema = args.input.output_schema.as_deref();
    body.output_schema = schema.map(params::schema).transpose()?;
    (body.working_directory, body.worktree) = location(&args.process)?;
    body.max_turns = args.limits.max_turns;
    body.max_budget_usd = args.limits.max_budget_usd;
    body.max_tokens = args.retry.max_tokens;
    body.max_time_ms = time_limit_ms(args.retry.max_time);
    body.retries = args.retry.retries;
    body.max_wait_ms = wait_ms(args.retry.max_wait);
    body.fallback = fallbacks(&args.retry.fallback);
    // An attached run never waits for answers.
    body.ask_timeout_ms = if args.detach {
        wait_ms(args.ask.ask_timeout)
    } else {
        Some(0)
    };
    Ok(body)
}

fn session_request(args: &ChatArgs) -> anyhow::Result<SessionSpec> {
    check(CHAT_OPTIONS)?;
    let mut body = SessionSpec::new(&*args.provider);
    body.model.clone_from(&args.model.model);
    body.effort.clone_from(&args.model.effort);
    body.permission = args.permissions.permission;
    body.allowed_tools.clone_from(&args.permissions.allow_tool);
    body.denied_tools.clone_from(&args.permissions.deny_tool);
    body.session_id.clone_from(&args.session.resume);
    body.fork = args.session.fork;
    (body.system_prompt, body.append_system_prompt) = system(&args.system)?;
    (body.working_directory, body.worktree) = location(&args.process)?;
    body.max_budget_usd = args.turns.max_budget_usd;
    body.max_tokens = args.turns.max_tokens;
    body.max_time_ms = time_limit_ms(args.turns.max_time);
    body.retries = args.turns.retries;
    body.max_wait_ms = wait_ms(args.turns.max_wait);
    body.fallback = fallbacks(&args.turns.fallback);
    body.ask_timeout_ms = wait_ms(args.ask.ask_timeout);
    body.end_idle_ms = time_limit_ms(args.end_idle);
    Ok(body)
}

/// Returns the replaced and the appended system prompt.
fn system(args: &SystemArgs) -> anyhow::Result<(Option<String>, Option<String>)> {
    Ok(match params::system_prompt(args)? {
        Some(SystemPrompt::Replace(text)) => (Some(text), None),
        Some(SystemPrompt::Append(text)) => (None, Some(text)),
        _ => (None, None),
    })
}

fn location(args: &ProcessArgs) -> anyhow::Result<(Option<std::path::PathBuf>, Option<Worktree>)> {
    let directory = args.cwd.as_deref().map(|cwd| absolute("--cwd", cwd));
    let worktree = args.worktree.as_deref().map(|branch| match branch {
        "" => Worktree::Switch(true),
        branch => Worktree::Branch(branch.to_owned()),
    });
    Ok((directory.transpose()?, worktree))
}

fn fallbacks(fallbacks: &[Fallback]) -> Vec<String> {
    let texts = fallbacks.iter().map(|it| match &it.model {
        Some(model) => format!("{}:{model}", it.provider),
        None => it.provider.clone(),
    });
    texts.collect()
}

/// Converts a time limit to milliseconds; `None` for no limit.
fn time_limit_ms(time: Option<Duration>) -> Option<u64> {
    time.filter(|time| *time != Duration::MAX).map(millis)
}

/// Converts a wait to milliseconds; a year for no limit.
fn wait_ms(time: Option<Duration>) -> Option<u64> {
    /// A year.
    const LONGEST: Duration = Duration::from_hours(365 * 24);
    time.map(|time| millis(time.min(LONGEST)))
}

/// Creates an `Idempotency-Key` header, so that a repeated request starts nothing.
pub(super) fn idempotency_key() -> [(HeaderName, String); 1] {
    let name = HeaderName::from_static("idempotency-key");
    [(name, Uuid::now_v7().to_string())]
}

/// Starts a session and returns its id. The outer error is a usage error.
pub(crate) async fn start_session(
    http: &Http,
    args: &ChatArgs,
) -> anyhow::Result<anyhow::Result<String>> {
    let body = session_request(args)?;
    let started = http
        .exchange::<RunView>(Method::POST, "/v1/sessions", &idempotency_key(), &body)
        .await;
    match started {
        Err(failure) if super::run::is_usage(&failure) => Err(failure.into()),
        Err(failure) => Ok(Err(failure.into())),
        Ok(view) => Ok(Ok(view.summary.info.run_id.clone())),
    }
}
