//! Arguments as the description of a run or session: the only place that knows which option becomes which field.
//!
//! All structs are taken apart exhaustively, so that a new option does not compile before it has a place.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use serde_json::Value;
use teamster::Timeouts;
use teamster_api::{RunSpec, SessionSpec, Trusted, Worktree};
use teamster_core::time::millis;

use crate::args::{
    AcpArgs, AcpProcessArgs, AcpTurnArgs, AgentSessionArgs, AskTimeoutArgs, ChatArgs,
    ChatLimitArgs, EnvVar, Fallback, InputArgs, LimitArgs, McpArgs, ModelArgs, OutputArgs,
    PermissionArgs, ProcessArgs, RetryArgs, RunArgs, SessionArgs, StdinMode, StoreArgs, SystemArgs,
    TimeoutArgs, TurnArgs,
};
use crate::{mcp, stdin};

/// What a command does with a run or session, and does not leave the terminal.
#[derive(Debug, Clone, Default)]
pub(crate) struct Local {
    pub(crate) output: OutputArgs,
    pub(crate) detach: bool,
    /// `--lifecycle`.
    pub(crate) lifecycle: bool,
    /// `--run-id`.
    pub(crate) run_id: Option<String>,
    /// `--no-history` of `chat`.
    pub(crate) no_history: bool,
}

/// Returns the run that the arguments describe. Prints warnings, and reads the prompt and the files that they name.
/// Every error is a usage error.
pub(crate) fn of_run(args: RunArgs) -> anyhow::Result<(RunSpec, Local)> {
    let RunArgs {
        provider,
        prompt,
        prompt_file,
        record,
        output_file,
        detach,
        ask: AskTimeoutArgs { ask_timeout },
        extra_args,
        output,
        model: ModelArgs { model, effort },
        permissions:
            PermissionArgs {
                permission,
                allow_tool,
                deny_tool,
            },
        session:
            SessionArgs {
                agent:
                    AgentSessionArgs {
                        resume,
                        fork,
                        session_id,
                    },
                session_key,
                new,
            },
        input:
            InputArgs {
                system,
                output_schema,
                image,
                prompt_via,
                stdin,
                slash_commands,
            },
        mcp,
        process,
        limits:
            LimitArgs {
                max_turns,
                max_budget_usd,
                cli_retries,
                timeouts,
            },
        retry:
            RetryArgs {
                retries,
                fallback,
                max_wait,
                max_time,
                max_tokens,
                lifecycle,
                run_id,
            },
        store: StoreArgs { url },
    } = args;
    let mut warnings = Vec::new();
    let prompt = read_prompt(prompt, prompt_file.as_deref(), stdin, &mut warnings)?;
    let mut spec = RunSpec::new(provider, prompt);
    spec.model = model;
    spec.effort = effort;
    spec.permission = permission;
    spec.allowed_tools = allow_tool;
    spec.denied_tools = deny_tool;
    spec.session_id = resume;
    spec.session_key = session_key;
    spec.new_session = new;
    spec.fork = fork;
    (spec.system_prompt, spec.append_system_prompt) = system_prompts(system)?;
    spec.output_schema = output_schema.as_deref().map(schema).transpose()?;
    spec.max_turns = max_turns;
    spec.max_budget_usd = max_budget_usd;
    spec.max_tokens = max_tokens;
    spec.max_time_ms = max_time.map(limit_ms);
    spec.retries = retries;
    spec.max_wait_ms = max_wait.map(limit_ms);
    spec.fallback = fallbacks(&fallback);
    spec.ask_timeout_ms = ask_timeout.map(millis);
    let trusted = &mut spec.trusted;
    (spec.working_directory, spec.worktree) = process_args(process, trusted)?;
    mcp_servers(mcp, trusted, &mut warnings)?;
    trusted.extra_args = extra_args;
    trusted.images = image;
    trusted.output_file = output_file;
    trusted.record_to = record;
    trusted.store = url;
    trusted.new_session_id = session_id;
    trusted.prompt_delivery = prompt_via;
    trusted.slash_commands = slash_commands;
    trusted.cli_retries = cli_retries;
    trusted.timeouts = limits_of_silence(timeouts);
    warn(&warnings, output.quiet);
    let local = Local {
        output,
        detach,
        lifecycle,
        run_id,
        no_history: false,
    };
    Ok((spec, local))
}

/// Returns the session that the arguments describe, as [`of_run`] does for a run.
pub(crate) fn of_chat(args: ChatArgs) -> anyhow::Result<(SessionSpec, Local)> {
    let ChatArgs {
        provider,
        detach,
        ask: AskTimeoutArgs { ask_timeout },
        end_idle,
        no_history,
        record,
        extra_args,
        output,
        model,
        permissions,
        session:
            AgentSessionArgs {
                resume,
                fork,
                session_id,
            },
        system,
        mcp,
        process,
        limits,
        turns:
            TurnArgs {
                retries,
                fallback,
                max_wait,
                max_budget_usd,
                max_tokens,
                max_time,
            },
        store: StoreArgs { url },
    } = args;
    let mut warnings = Vec::new();
    let mut spec = SessionSpec::new(provider);
    agent(&mut spec, model, permissions);
    spec.session_id = resume;
    spec.fork = fork;
    (spec.system_prompt, spec.append_system_prompt) = system_prompts(system)?;
    spec.retries = retries;
    spec.fallback = fallbacks(&fallback);
    spec.max_wait_ms = max_wait.map(limit_ms);
    spec.max_budget_usd = max_budget_usd;
    spec.max_tokens = max_tokens;
    spec.max_time_ms = max_time.map(limit_ms);
    spec.ask_timeout_ms = ask_timeout.map(millis);
    spec.end_idle_ms = end_idle.map(limit_ms);
    let trusted = &mut spec.trusted;
    (spec.working_directory, spec.worktree) = process_args(process, trusted)?;
    mcp_servers(mcp, trusted, &mut warnings)?;
    chat_limits(limits, trusted);
    trusted.extra_args = extra_args;
    trusted.record_to = record;
    trusted.store = url;
    trusted.new_session_id = session_id;
    warn(&warnings, output.quiet);
    let local = Local {
        output,
        detach,
        lifecycle: false,
        run_id: None,
        no_history,
    };
    Ok((spec, local))
}

/// What `teamster acp` serves: the session of each thread, but for what its editor chooses.
pub(crate) struct Served {
    /// The agent; without one, the editor chooses it.
    pub(crate) agent: Option<String>,
    /// The key of the conversation that every new thread continues.
    pub(crate) session_key: Option<String>,
    session: SessionSpec,
}

impl Served {
    /// Returns the session of a thread with this agent.
    pub(crate) fn session(&self, agent: &str) -> SessionSpec {
        let mut session = self.session.clone();
        agent.clone_into(&mut session.provider);
        session
    }

    /// Returns the fallbacks of all threads.
    pub(crate) fn fallbacks(&self) -> impl Iterator<Item = Fallback> + '_ {
        // Those that were parsed already.
        (self.session.fallback.iter()).filter_map(|text| Fallback::named(text).ok())
    }

    /// Returns the store of all threads, if one is set.
    pub(crate) fn store(&self) -> Option<&str> {
        self.session.trusted.store.as_deref()
    }
}

/// Returns what the arguments of `teamster acp` describe, as [`of_run`] does for a run.
pub(crate) fn of_acp(args: AcpArgs) -> anyhow::Result<Served> {
    let AcpArgs {
        agent: provider,
        session_key,
        ask_timeout,
        extra_args,
        model,
        permissions,
        system,
        mcp,
        process:
            AcpProcessArgs {
                add_dir,
                env,
                clean_env,
                keep_env,
                bin,
            },
        limits,
        turns:
            AcpTurnArgs {
                retries,
                fallback,
                max_wait,
                max_budget_usd,
                max_tokens,
                max_time,
            },
        store: StoreArgs { url },
    } = args;
    let mut spec = SessionSpec::new(provider.as_deref().unwrap_or_default());
    agent(&mut spec, model, permissions);
    (spec.system_prompt, spec.append_system_prompt) = system_prompts(system)?;
    spec.retries = retries;
    spec.fallback = fallbacks(&fallback);
    spec.max_wait_ms = max_wait.map(limit_ms);
    spec.max_budget_usd = max_budget_usd;
    spec.max_tokens = max_tokens;
    spec.max_time_ms = max_time.map(limit_ms);
    // An editor may show a request for as long as it likes.
    spec.ask_timeout_ms = Some(millis(ask_timeout.unwrap_or(Duration::MAX)));
    let trusted = &mut spec.trusted;
    trusted.add_dirs = add_dir;
    trusted.env = environment(&env)?;
    trusted.clean_env = clean_env;
    trusted.keep_env = keep_env;
    trusted.program = bin;
    // A thread has no place for warnings about configuration files.
    mcp_servers(mcp, trusted, &mut Vec::new())?;
    chat_limits(limits, trusted);
    trusted.extra_args = extra_args;
    trusted.store = url;
    Ok(Served {
        agent: provider,
        session_key,
        session: spec,
    })
}

fn agent(spec: &mut SessionSpec, model: ModelArgs, permissions: PermissionArgs) {
    let ModelArgs { model, effort } = model;
    let PermissionArgs {
        permission,
        allow_tool,
        deny_tool,
    } = permissions;
    spec.model = model;
    spec.effort = effort;
    spec.permission = permission;
    spec.allowed_tools = allow_tool;
    spec.denied_tools = deny_tool;
}

/// Sets the options of the agent's process. Returns its working directory and worktree.
fn process_args(
    args: ProcessArgs,
    trusted: &mut Trusted,
) -> anyhow::Result<(Option<PathBuf>, Option<Worktree>)> {
    let ProcessArgs {
        cwd,
        worktree,
        add_dir,
        env,
        clean_env,
        keep_env,
        bin,
        keep_background,
    } = args;
    trusted.add_dirs = add_dir;
    trusted.env = environment(&env)?;
    trusted.clean_env = clean_env;
    trusted.keep_env = keep_env;
    trusted.program = bin;
    trusted.keep_background = keep_background;
    let worktree = worktree.map(|branch| match &*branch {
        "" => Worktree::Switch(true),
        _ => Worktree::Branch(branch),
    });
    Ok((cwd, worktree))
}

fn chat_limits(args: ChatLimitArgs, trusted: &mut Trusted) {
    let ChatLimitArgs {
        cli_retries,
        timeouts,
        idle_exit,
    } = args;
    trusted.cli_retries = cli_retries;
    trusted.timeouts = limits_of_silence(timeouts);
    trusted.idle_exit_ms = idle_exit.map(limit_ms);
}

fn limits_of_silence(args: TimeoutArgs) -> Timeouts {
    let TimeoutArgs {
        startup,
        idle,
        tool,
    } = args;
    Timeouts {
        startup,
        idle,
        tool,
    }
}

/// Sets the MCP servers. Their variables come from the agent's environment, then from this process's.
fn mcp_servers(
    args: McpArgs,
    trusted: &mut Trusted,
    warnings: &mut Vec<String>,
) -> anyhow::Result<()> {
    let McpArgs {
        servers,
        mcp_via,
        mcp_strict,
    } = args;
    let sources = mcp::sources(&servers)?;
    let variables = &trusted.env;
    let given = mcp::parse_servers(&sources, &|name| {
        variables.get(name).cloned().or_else(|| env::var(name).ok())
    })?;
    trusted.mcp_servers = given.servers;
    trusted.mcp_delivery = mcp_via;
    trusted.mcp_strict = mcp_strict;
    warnings.extend(given.ignored);
    Ok(())
}

fn warn(warnings: &[String], quiet: bool) {
    if !quiet {
        crate::warn(warnings);
    }
}

/// Converts a limit to milliseconds. No limit is 0.
fn limit_ms(limit: Duration) -> u64 {
    match limit {
        Duration::MAX => 0,
        limit => millis(limit),
    }
}

fn fallbacks(fallbacks: &[Fallback]) -> Vec<String> {
    fallbacks.iter().map(Fallback::to_string).collect()
}

/// Reads the prompt, and adds the text on stdin.
fn read_prompt(
    prompt: Option<String>,
    file: Option<&Path>,
    mode: StdinMode,
    warnings: &mut Vec<String>,
) -> anyhow::Result<String> {
    let is_stdin = file.is_none() && prompt.as_deref() == Some("-");
    let mut text = match (file, prompt) {
        (Some(file), _) => read_text(file, "the prompt")?,
        (None, Some(prompt)) if prompt == "-" => {
            let mut bytes = Vec::new();
            io::stdin()
                .lock()
                .read_to_end(&mut bytes)
                .context("cannot read the prompt from stdin")?;
            String::from_utf8(bytes)
                .ok()
                .context("the prompt on stdin is not UTF-8 text")?
        }
        (None, prompt) => prompt.unwrap_or_default(),
    };
    if text.trim().is_empty() {
        bail!("the prompt is empty");
    }
    if !is_stdin {
        warnings.extend(stdin::add_to(&mut text, mode)?);
    }
    Ok(text)
}

/// Returns the system prompt that replaces the CLI's own, and the text that is appended to it.
fn system_prompts(args: SystemArgs) -> anyhow::Result<(Option<String>, Option<String>)> {
    let SystemArgs {
        system_prompt,
        system_prompt_file,
        append_system_prompt,
        append_system_prompt_file,
    } = args;
    let text = |text: Option<String>, file: Option<PathBuf>| match file {
        Some(file) => read_text(&file, "the system prompt").map(Some),
        None => Ok(text),
    };
    Ok((
        text(system_prompt, system_prompt_file)?,
        text(append_system_prompt, append_system_prompt_file)?,
    ))
}

fn read_text(file: &Path, what: &str) -> anyhow::Result<String> {
    let bytes =
        fs::read(file).with_context(|| format!("cannot read {what} from {}", file.display()))?;
    String::from_utf8(bytes)
        .ok()
        .with_context(|| format!("{what} in {} is not UTF-8 text", file.display()))
}

fn schema(value: &str) -> anyhow::Result<Value> {
    let (text, place) = if value.trim_start().starts_with('{') {
        (value.to_owned(), "in --output-schema".to_owned())
    } else {
        (
            read_text(Path::new(value), "the schema")?,
            format!("in {value}"),
        )
    };
    serde_json::from_str(&text).with_context(|| format!("the schema {place} is not JSON"))
}

fn environment(vars: &[EnvVar]) -> anyhow::Result<BTreeMap<String, String>> {
    vars.iter()
        .map(|EnvVar { name, value }| {
            if name.is_empty() {
                bail!("--env needs KEY=VALUE or KEY");
            }
            let value = match value {
                Some(value) => value.clone(),
                None => match env::var(name) {
                    Ok(value) => value,
                    Err(env::VarError::NotPresent) => {
                        bail!("--env {name}: no such variable in teamster's environment")
                    }
                    Err(env::VarError::NotUnicode(_)) => {
                        bail!("--env {name}: the variable's value is not UTF-8 text")
                    }
                },
            };
            Ok((name.clone(), value))
        })
        .collect()
}

#[cfg(test)]
mod tests;
