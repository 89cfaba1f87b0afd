//! `teamster chat`.

pub(crate) mod args;
mod conversation;
mod signals;
mod spec;
#[cfg(test)]
mod tests;
mod totals;

use std::env;
use std::io::{self, IsTerminal};
use std::time::Duration;

use anyhow::Context;
use teamster::{AgentError, AgentEvent, CliInfo, LogEntry, PermissionPolicy};
use teamster_api::{RunLogEntry, SessionSpec};
use teamster_core::provider::RunAssembler;
use teamster_core::time::epoch_ms;
use teamster_host::{Answers, Guard, PreparedSession, SessionOptions, params};
use tokio::sync::mpsc::{self, UnboundedReceiver};
use uuid::Uuid;

use crate::dialog::permission::{self, Question};
use crate::dialog::{open_input, terminal};
use crate::hints::usage;
use crate::remote::Machine;
use crate::runtime::tokio_runtime;
use crate::spec::Local;
use crate::{drive, exit_code, remote, start, words};
use args::ChatArgs;
use conversation::{Chat, Display};
use signals::Signals;

/// Runs a chat with an agent and returns the exit code.
pub(crate) fn main(args: ChatArgs, machine: &Machine) -> anyhow::Result<u8> {
    match begin(args, machine) {
        Ok(code) => code,
        Err(error) => {
            crate::report::fail(&usage(error));
            Ok(exit_code::USAGE)
        }
    }
}

/// Reads the arguments, and runs the chat. The outer error is a usage error.
fn begin(args: ChatArgs, machine: &Machine) -> anyhow::Result<anyhow::Result<u8>> {
    let (mut spec, local) = spec::of_chat(args)?;
    spec.check()?;
    let quiet = local.output.quiet;
    if machine.is_here() {
        local.check_here()?;
    }
    if local.detach {
        if !machine.is_here() {
            remote::prepare_session(&mut spec, &local)?;
        }
        return start::detached(machine, spec, &local);
    }
    let id = Uuid::now_v7().to_string();
    let runtime = match tokio_runtime().context("cannot start the runtime") {
        Ok(runtime) => runtime,
        Err(error) => return Ok(Err(error)),
    };
    let at_terminal = io::stdin().is_terminal();
    let (ask, questions) = mpsc::unbounded_channel();
    let answers = if at_terminal {
        Answers::Policy(Box::new(move |can| {
            if can.permissions {
                permission::policy(can.denial_reason, ask.clone())
            } else {
                PermissionPolicy::Deny
            }
        }))
    } else {
        Answers::Deny
    };
    let mut options = SessionOptions::new(id, answers);
    options.native = local.output.native;
    let agent = crate::global::host().agent(&spec.provider)?;
    let refused = view(&spec, &local, agent);
    let prepared = match runtime.block_on(crate::global::host().prepare_session(spec, options)) {
        Ok(prepared) => prepared,
        // Those of the agent are shown as the failure of a run.
        Err(error)
            if matches!(
                error.parameter(),
                Some("fallback" | "worktree" | "workspace" | "setup")
            ) =>
        {
            return Err(error.into());
        }
        Err(error) => {
            let display = Display::new(local.output, refused);
            return Ok(Ok(print_refusal(display, error)));
        }
    };
    crate::report::warn_of(&prepared.common.warnings, quiet);
    Ok(chat(runtime, prepared, &local, questions))
}

fn chat(
    runtime: tokio::runtime::Runtime,
    mut prepared: PreparedSession,
    local: &Local,
    questions: UnboundedReceiver<Question>,
) -> anyhow::Result<u8> {
    let closing = prepared.closing();
    let PreparedSession {
        common,
        spec,
        orchestrator,
        runs,
        history,
        ..
    } = prepared;
    let info = common.agent;
    let at_terminal = io::stdin().is_terminal();
    let mut view = view(&spec, local, info);
    (view.directory, view.mcp) = (common.directory, common.mcp);
    let mut display = Display::new(local.output, view);
    // With a mock model, the session is removed with its temporary home.
    if env::var_os(crate::mock_home::URL_VARIABLE).is_none() {
        display.resume = Some(resume_command(&spec));
    }
    let mut sessions = runs.sessions();
    let can_ask = at_terminal && sessions.any(|session| session.capabilities().permissions);
    drop(sessions);
    let questions = can_ask.then_some(questions);

    let keep = spec.trusted.keep_background;
    let guard = Guard::start(crate::global::host(), display.directory());
    if !keep {
        teamster_host::adopt_orphans();
    }
    let code = runtime.block_on(async {
        let signals = Signals::listen(at_terminal).context("cannot listen for signals")?;
        let input =
            open_input(info.id, local.no_history, at_terminal).context("cannot read messages")?;
        let chat = Chat::new(runs, orchestrator, display, signals, questions);
        let mut chat = chat.closing(closing);
        let code = chat.run(input, at_terminal).await;
        crate::report::warn_of(&history.close().await, local.output.quiet);
        anyhow::Ok(code)
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
    drive::View {
        agent,
        verbose: local.output.verbose,
        quiet: local.output.quiet,
        directory: params::absolute(spec.working_directory.as_deref()),
        // The command that resumes the session is printed at the end of the chat.
        resume: None,
        permission: Some(spec.permission),
        asks: io::stdin().is_terminal(),
        mcp: (!spec.trusted.mcp_servers.is_empty()).then_some(spec.trusted.mcp_delivery),
        clock: epoch_ms,
    }
}

/// Prints an error as a run prints it, and returns the exit code.
fn print_refusal(display: Display, error: AgentError) -> u8 {
    let mut sink = display.sink;
    let mut code = exit_code::AGENT_ERROR;
    for (event, seq) in RunAssembler::refuse(error).into_iter().zip(1..) {
        if let AgentEvent::Done(done) = &event {
            code = exit_code::of(&done.result);
        }
        let mut entry = LogEntry::from(event);
        (entry.seq, entry.at_ms) = (seq, epoch_ms());
        if let Err(error) = sink.entry(&RunLogEntry::Agent(entry), Duration::ZERO) {
            return exit_code::of_lost(error);
        }
    }
    match sink.flush() {
        Ok(()) => code,
        Err(error) => exit_code::of_lost(error),
    }
}

/// Returns the command that resumes the session, without the session's id.
///
/// It includes `--cwd`: sessions belong to the directory in which they began.
fn resume_command(spec: &SessionSpec) -> String {
    let cwd = (spec.working_directory.as_deref())
        .map(|cwd| format!(" --cwd {}", words::shell_word(&cwd.to_string_lossy())));
    let cwd = cwd.unwrap_or_default();
    let agent = shell_words::quote(&spec.provider);
    format!("teamster chat {agent}{cwd} --resume")
}
