//! Arguments of `teamster chat` as the description of a session.

use teamster_api::SessionSpec;
use teamster_core::time::millis;

use super::args::ChatArgs;
use crate::args::{AskTimeoutArgs, ResultArgs, StoreArgs};
use crate::spec::{
    Local, Location, agent, chat_limits, limit_ms, mcp_servers, placed, process_args,
    system_prompts, turn_args, warn,
};

/// Returns the session that the arguments describe. Prints warnings, and reads the files that they name.
/// Every error is a usage error.
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
        session,
        system,
        mcp,
        process,
        result: ResultArgs { artifact, push },
        limits,
        turns,
        placement,
        store: StoreArgs { url },
    } = args;
    let mut warnings = Vec::new();
    let mut spec = SessionSpec::new(provider);
    agent!(spec, model, permissions, session);
    (spec.system_prompt, spec.append_system_prompt) = system_prompts(system)?;
    turn_args(turns, &mut spec);
    spec.ask_timeout_ms = ask_timeout.map(millis);
    spec.end_idle_ms = end_idle.map(limit_ms);
    spec.artifacts = artifact;
    (spec.placement, spec.secrets) = placed(placement);
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
    chat_limits(limits, trusted);
    trusted.extra_args = extra_args;
    trusted.record_to = record;
    trusted.store = url;
    warn(&warnings, output.quiet);
    let local = Local {
        output,
        detach,
        lifecycle: false,
        run_id: None,
        no_history,
        upload,
    };
    Ok((spec, local))
}
