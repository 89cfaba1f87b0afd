//! Arguments of `teamster acp` as the description of sessions.

use anyhow::bail;
use teamster_api::SessionSpec;
use teamster_core::time::millis;
use teamster_host::is_url;

use super::args::{AcpArgs, AcpProcessArgs};
use crate::args::StoreArgs;
use crate::spec::{
    Local, agent, chat_limits, environment_args, mcp_servers, system_prompts, turn_args,
};

/// Returns the session of each thread, without what the editor chooses: no agent unless it is named. Prints warnings, and
/// reads the files that the arguments name. Every error is a usage error.
pub(crate) fn of_acp(args: AcpArgs) -> anyhow::Result<(SessionSpec, Local)> {
    let AcpArgs {
        agent: provider,
        session_key,
        ask_timeout,
        extra_args,
        model,
        permissions,
        system,
        mcp,
        process: AcpProcessArgs { repo, environment },
        limits,
        turns,
        store: StoreArgs { url },
    } = args;
    let mut spec = SessionSpec::new(provider.as_deref().unwrap_or_default());
    agent!(spec, model, permissions);
    (spec.system_prompt, spec.append_system_prompt) = system_prompts(system)?;
    turn_args(turns, &mut spec);
    spec.ask_timeout_ms = ask_timeout.map(millis);
    spec.session_key = session_key;
    let trusted = &mut spec.trusted;
    environment_args(environment, trusted)?;
    let mut warnings = Vec::new();
    mcp_servers(mcp, trusted, &mut warnings)?;
    crate::report::warn(&warnings);
    chat_limits(limits, trusted);
    trusted.extra_args = extra_args;
    trusted.store = url;
    if let Some(url) = repo.as_ref().and_then(|repo| repo.to_str())
        && is_url(url)
    {
        bail!("--repo takes a directory with `acp`, such as `.`: the editor's folder is submitted");
    }
    let local = Local {
        upload: repo,
        ..Local::default()
    };
    Ok((spec, local))
}
