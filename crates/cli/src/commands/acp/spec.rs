//! Arguments of `teamster acp` as the description of sessions.

use std::time::Duration;

use teamster_api::SessionSpec;
use teamster_core::time::millis;

use super::args::{AcpArgs, AcpProcessArgs, AcpTurnArgs};
use crate::args::{Fallback, StoreArgs};
use crate::spec::{
    agent, chat_limits, environment, fallbacks, limit_ms, mcp_servers, system_prompts,
};

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
            .filter_map(|text| Fallback::named(crate::global::providers(), text).ok())
    }

    /// Returns the store of all threads, if one is set.
    pub(crate) fn store(&self) -> Option<&str> {
        self.session.trusted.store.as_deref()
    }
}

/// Returns the sessions that the arguments describe. Prints warnings, and reads the files that they name.
/// Every error is a usage error.
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
    crate::report::warn(&warnings);
    chat_limits(limits, trusted);
    trusted.extra_args = extra_args;
    trusted.store = url;
    Ok(Served {
        agent: provider,
        session_key,
        session: spec,
    })
}
