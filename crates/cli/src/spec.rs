//! Arguments as the description of a run or session: the only place that knows which option becomes which field.
//!
//! All structs are taken apart exhaustively, so that a new option does not compile before it has a place.

mod input;

use std::env;
use std::path::PathBuf;
use std::time::Duration;

use teamster::Timeouts;
use teamster_api::{RunSpec, SessionSpec, Trusted, Worktree};
use teamster_core::time::millis;

use crate::args::{
    AcpArgs, AcpProcessArgs, AcpTurnArgs, AgentSessionArgs, AskTimeoutArgs, ChatArgs,
    ChatLimitArgs, Fallback, InputArgs, LimitArgs, McpArgs, ModelArgs, OutputArgs, PermissionArgs,
    ProcessArgs, RetryArgs, RunArgs, SessionArgs, StoreArgs, TimeoutArgs, TurnArgs,
};
use crate::mcp;
use input::{environment, read_prompt, schema, system_prompts};

/// The options of a command that are no part of the run or session.
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
    trusted.timeouts = limits_of_silence(&timeouts);
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

/// The session of each thread of `teamster acp`. Its editor chooses the rest.
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
        // The arguments were parsed already, so none is left out.
        (self.session.fallback.iter())
            .filter_map(|text| Fallback::named(crate::providers(), text).ok())
    }

    /// Returns the store of all threads, if one is set.
    pub(crate) fn store(&self) -> Option<&str> {
        self.session.trusted.store.as_deref()
    }
}

/// Returns the sessions that the arguments of `teamster acp` describe, as [`of_run`] does for a run.
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
    let mut warnings = Vec::new();
    mcp_servers(mcp, trusted, &mut warnings)?;
    crate::warn(&warnings);
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
    trusted.timeouts = limits_of_silence(&timeouts);
    trusted.idle_exit_ms = idle_exit.map(limit_ms);
}

fn limits_of_silence(args: &TimeoutArgs) -> Timeouts {
    let TimeoutArgs {
        startup,
        idle,
        tool,
    } = *args;
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

#[cfg(test)]
mod tests;
