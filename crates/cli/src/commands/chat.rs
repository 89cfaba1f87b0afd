//! `teamster chat`.

pub(crate) mod args;
mod spec;
#[cfg(test)]
mod tests;

use std::io::{self, IsTerminal};
use std::sync::Arc;

use anyhow::Context;
use teamster::{CliInfo, EventStream};
use teamster_api::SessionSpec;
use teamster_core::Stopping;
use teamster_host::{Answers, Guard, PreparedSession, SessionRunOptions, params};
use uuid::Uuid;

use crate::detached::{Owner, Questions, Screen, Signals, UserPrompt, View};
use crate::dialog::{open_input, terminal};
use crate::exit_code::refused;
use crate::remote::Machine;
use crate::render::{TextIsFinal, resume_arguments};
use crate::runtime::tokio_runtime;
use crate::spec::Local;
use crate::{drive, remote, start};
use args::ChatArgs;

/// Runs a chat with an agent and returns the exit code.
pub(crate) fn main(args: ChatArgs, machine: &Machine) -> anyhow::Result<u8> {
    let (mut spec, local) = spec::of_chat(args).map_err(refused)?;
    spec.check().map_err(refused)?;
    let quiet = local.output.quiet;
    if machine.is_here() {
        local.check_here().map_err(refused)?;
    }
    if local.detach {
        if !machine.is_here() {
            remote::prepare_session(&mut spec, &local, machine.flag()).map_err(refused)?;
        }
        return start::detached(machine, spec, &local);
    }
    // A script's line with a slash stays an error.
    let is_typed = io::stdin().is_terminal();
    let provider = crate::global::providers().get(&spec.provider);
    spec.trusted.slash_commands =
        is_typed && provider.is_some_and(|it| it.capabilities().session_commands);
    let id = Uuid::now_v7().to_string();
    let runtime = tokio_runtime()?;
    let answers = if io::stdin().is_terminal() {
        Answers::Attached
    } else {
        Answers::Deny
    };
    let mut options = SessionRunOptions::new(id, answers);
    options.native = local.output.native;
    let agent = crate::global::host().agent(&spec.provider);
    let of_refusal = view(&spec, &local, agent.map_err(refused)?);
    let prepared = match runtime.block_on(crate::global::host().prepare_session(spec, options)) {
        Ok(prepared) => prepared,
        // Those of the agent are shown as the failure of a run.
        Err(error)
            if matches!(
                error.parameter(),
                Some("fallback" | "worktree" | "workspace" | "setup")
            ) =>
        {
            return Err(refused(error));
        }
        Err(error) => {
            return drive::agent(local.output, of_refusal, || EventStream::refused(error));
        }
    };
    crate::report::warn_of(&prepared.common.warnings, quiet);
    chat(runtime, prepared, &local)
}

fn chat(
    runtime: tokio::runtime::Runtime,
    prepared: PreparedSession,
    local: &Local,
) -> anyhow::Result<u8> {
    let info = prepared.common.agent;
    let at_terminal = io::stdin().is_terminal();
    let mut view = view(&prepared.spec, local, info);
    view.directory.clone_from(&prepared.common.directory);
    view.mcp = prepared.common.mcp;
    let resume =
        drive::keeps_sessions(&prepared.spec.trusted).then(|| resume_command(&prepared.spec));
    let keep = prepared.spec.trusted.keep_background;
    let passes_commands = prepared.spec.trusted.slash_commands;
    let directory = view.directory.clone();
    let guard = Guard::start(crate::global::host(), view.directory.as_deref());
    if !keep {
        teamster_host::adopt_orphans();
    }
    let code = runtime.block_on(async {
        let input = open_input(info.id, directory.as_deref(), local.no_history, at_terminal)
            .context("cannot read messages")?;
        let history = prepared.history.clone();
        let (session, work) = prepared.attached();
        let mut owner = Owner::new(Arc::new(session), resume).passes_commands(passes_commands);
        if at_terminal {
            owner = owner.at_terminal(!local.output.json);
        }
        let run = owner.run();
        let handle = run.handle.clone();
        let signals =
            Signals::of_owner(handle.clone(), at_terminal).context("cannot listen for signals")?;
        let work = tokio::spawn(work);
        let sink = drive::sink(local.output, view, TextIsFinal::WithMessage);
        let mut screen = Screen::with_sink(&run, sink, anstream::stderr(), local.output);
        if at_terminal {
            let name = info.name;
            screen.remark(&format!("{name}: /help lists the commands, Ctrl-D ends\n"));
        }
        let shown = View::new(run, screen, signals)
            .of_owner(owner)
            .user_prompt(Some(UserPrompt::new(input, at_terminal)))
            .questions(at_terminal.then(Questions::of_only_client))
            .show(0)
            .await;
        // Also after an error. It may have ended already.
        let _ = handle.cancel(Stopping::Graceful).await;
        // A panic was reported, and the view has seen that the log has no end.
        let _ = work.await;
        crate::report::warn_of(&history.close().await, local.output.quiet);
        shown
    });
    terminal::restore();
    // A thread may still be blocked on the terminal: do not wait for it.
    runtime.shutdown_background();
    if !keep {
        teamster_host::end_orphans(guard.as_ref().map(Guard::pid));
    }
    code
}

/// Returns what is shown of a session before it has begun.
fn view(spec: &SessionSpec, local: &Local, agent: &'static CliInfo) -> drive::View {
    let mut view = drive::View::new(agent, local.output);
    view.directory = params::absolute(spec.working_directory.as_deref());
    view.permission = Some(spec.permission);
    view.allowed_tools.clone_from(&spec.allowed_tools);
    view.asks = io::stdin().is_terminal();
    let has_servers = !spec.trusted.mcp_servers.is_empty();
    view.mcp = has_servers.then_some(spec.trusted.mcp_delivery);
    view
}

/// Returns the command that resumes the session, without the session's id.
fn resume_command(spec: &SessionSpec) -> String {
    let agent = shell_words::quote(&spec.provider);
    let arguments = resume_arguments(spec.working_directory.as_deref(), &spec.accounts);
    format!("teamster chat {agent} {arguments}")
}
