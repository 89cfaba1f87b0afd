//! Arguments of `teamster run` as the description of a run.

use teamster_api::RunSpec;
use teamster_core::time::millis;

use super::args::{InputArgs, LimitArgs, RetryArgs, RunArgs, RunPlacementArgs, SessionArgs};
use crate::args::{AskTimeoutArgs, ResultArgs, StoreArgs};
use crate::spec::{
    Local, Location, agent, fallbacks, limit_ms, limits_of_silence, mcp_servers, placed,
    process_args, read_prompt, schema, system_prompts, warn,
};

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
        model,
        permissions,
        session:
            SessionArgs {
                agent: session,
                session_key,
                new,
            },
        input:
            InputArgs {
                system,
                output_schema,
                image,
                stdin,
                slash_commands,
            },
        mcp,
        process,
        result: ResultArgs { artifact, push },
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
        fleet: RunPlacementArgs {
            placement,
            rerun_if_lost,
        },
        store: StoreArgs { url },
    } = args;
    let mut warnings = Vec::new();
    let prompt = read_prompt(prompt, prompt_file.as_deref(), stdin, &mut warnings)?;
    let mut spec = RunSpec::new(provider, prompt);
    agent!(spec, model, permissions, session);
    spec.session_key = session_key;
    spec.new_session = new;
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
    spec.artifacts = artifact;
    (spec.placement, spec.secrets) = placed(placement);
    spec.rerun_if_lost = rerun_if_lost;
    let trusted = &mut spec.trusted;
    trusted.push = push;
    let upload;
    Location {
        working_directory: spec.working_directory,
        worktree: spec.worktree,
        workspace: spec.workspace,
        upload,
    } = process_args(process, trusted)?;
    mcp_servers(mcp, trusted, &mut warnings)?;
    trusted.extra_args = extra_args;
    trusted.images = image;
    trusted.output_file = output_file;
    trusted.record_to = record;
    trusted.store = url;
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
        upload,
    };
    Ok((spec, local))
}

#[cfg(test)]
mod tests;
