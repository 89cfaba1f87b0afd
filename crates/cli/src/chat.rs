//! `teamster chat`.

pub(crate) mod command;
mod conversation;
pub(crate) mod detached;
mod editor;
pub(crate) mod input;
pub(crate) mod permission;
mod signals;
pub(crate) mod terminal;
#[cfg(test)]
mod tests;
mod totals;

use std::cell::Cell;
use std::env;
use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use teamster::orchestrator::{Orchestrator, RunObserver};
use teamster::process::find_program;
use teamster::{AgentError, AgentEvent, CliInfo, LogEntry, PermissionPolicy, RuntimeConfig};
use teamster_api::{Launch, RunLogEntry, SessionSpec};
use teamster_client::Client;
use teamster_core::provider::RunAssembler;
use teamster_core::time::epoch_ms;
use tokio::sync::mpsc;
use uuid::Uuid;

use crate::args::ChatArgs;
use crate::detached::session_locks;
use crate::guard::Guard;
use crate::remote::Machine;
use crate::run::history::{History, Warnings};
use crate::run::usage;
use crate::spec::{self, Local};
use crate::turns::{self, PlanError};
use crate::worktree::Worktree;
use crate::{
    drive, exit_code, orphans, params, remote, runner, store, tokio_runtime, words, worktree,
};
use conversation::{Chat, Display};
use editor::{EditorOptions, LineEditor};
use input::{Input, Lines};
use signals::Signals;

/// Path of the message history, relative to the state directory.
const HISTORY: &str = "teamster/chat-history";

/// Runs a chat with an agent and returns the exit code.
pub(crate) fn main(args: ChatArgs, machine: &Machine) -> anyhow::Result<u8> {
    match begin(args, machine) {
        Ok(code) => code,
        Err(error) => {
            crate::fail(&usage(error));
            Ok(exit_code::USAGE)
        }
    }
}

/// Reads the arguments, and runs the chat. The outer error is a usage error.
fn begin(args: ChatArgs, machine: &Machine) -> anyhow::Result<anyhow::Result<u8>> {
    let (mut spec, local) = spec::of_chat(args)?;
    spec.check()?;
    let quiet = local.output.quiet;
    let id = Uuid::now_v7().to_string();
    if local.detach {
        return match machine {
            Machine::There(client) => detach_on(client, spec, &local),
            Machine::Here => Ok(runner::launch(&Launch::new(id, spec), quiet)),
        };
    }
    let mut warnings = Vec::new();
    let worktree = worktree::enter(
        &mut spec.working_directory,
        spec.worktree.as_ref(),
        &id,
        &mut warnings,
    )?;
    if !quiet {
        crate::warn(&warnings);
    }
    let code = chat(&spec, &local, &id, worktree.as_ref());
    worktree::leave(worktree, quiet);
    Ok(code)
}

/// Starts a detached session on a server, and prints its id. Returns the exit code. The outer error is a usage error.
fn detach_on(
    client: &Client,
    spec: SessionSpec,
    local: &Local,
) -> anyhow::Result<anyhow::Result<u8>> {
    let runtime = tokio_runtime().context("cannot start the runtime")?;
    let id = runtime.block_on(remote::start_session(client, spec, local))?;
    Ok(id.and_then(|id| exit_code::of_printed(writeln!(io::stdout(), "{id}"))))
}

fn chat(
    spec: &SessionSpec,
    local: &Local,
    id: &str,
    worktree: Option<&Worktree>,
) -> anyhow::Result<u8> {
    let provider = crate::providers()
        .get(&spec.provider)
        .context("this provider is not built in")?;
    let info = provider.info();
    let mut params = params::of_session(spec)?;
    params.include_native = local.output.native;
    let store = spec.trusted.store.as_deref();
    let history = match History::new(store, None, None, Warnings::unless(local.output.quiet)) {
        Ok(history) => history,
        Err(error) => {
            crate::fail(&usage(error));
            return Ok(exit_code::USAGE);
        }
    };
    let config = params::runtime_config(&spec.trusted, info);
    let at_terminal = io::stdin().is_terminal();
    let view = drive::View {
        agent: info,
        verbose: local.output.verbose,
        quiet: local.output.quiet,
        directory: params::absolute(spec.working_directory.as_deref()),
        // The command that resumes the session is printed at the end of the chat.
        resume: None,
        worktree: worktree.map(Worktree::watch),
        permission: Some(spec.permission),
        asks: at_terminal,
        mcp: (!params.mcp_servers.is_empty()).then_some(params.mcp_delivery),
        clock: epoch_ms,
    };
    let mut display = Display::new(local.output, view);
    // With a mock model, the session is removed with its temporary home.
    if env::var_os(crate::mock_model::URL_VARIABLE).is_none() {
        display.resume = Some(resume_command(spec));
    }

    let mut writer = session_locks(None).map(|locks| locks.writer(info.id));
    if let Some(writer) = &mut writer
        && let Err(error) = writer.begin(&params)
    {
        return Ok(print_refusal(display, error));
    }
    let (ask, questions) = mpsc::unbounded_channel();
    let can_ask = Cell::new(false);
    let planned = turns::plan(
        id,
        spec,
        info,
        &params,
        |can| {
            Ok(if at_terminal && can.permissions {
                can_ask.set(true);
                permission::policy(can.denial_reason, ask.clone())
            } else {
                PermissionPolicy::Deny
            })
        },
        turns::as_set,
    );
    let mut runs = match planned {
        Ok(runs) => runs,
        Err(PlanError::Agent(error)) => return Ok(print_refusal(display, error)),
        Err(PlanError::Usage(error)) => {
            crate::fail(&error);
            return Ok(exit_code::USAGE);
        }
    };
    if let Some(error) = missing_program(info, params.env.get("PATH"), &config) {
        return Ok(print_refusal(display, error));
    }
    runs.writer = writer;
    let questions = can_ask.get().then_some(questions);

    let keep = spec.trusted.keep_background;
    let guard = Guard::start(display.directory());
    if !keep {
        orphans::adopt();
    }
    let runtime = tokio_runtime().context("cannot start the runtime")?;
    let code = runtime.block_on(async {
        let signals = Signals::listen(at_terminal).context("cannot listen for signals")?;
        let input =
            open_input(info.id, local.no_history, at_terminal).context("cannot read messages")?;
        let open_history = history.open_for_session().await;
        runs.observer = (open_history.as_ref())
            .map(|open_history| Arc::new(open_history.recorder.clone()) as Arc<dyn RunObserver>);
        let orchestrator = Orchestrator::new(crate::estimates::orchestrator_config())?;
        let mut chat = Chat::new(runs, orchestrator, display, signals, questions);
        let code = chat.run(input, at_terminal).await;
        if let Some(open_history) = open_history {
            history.warn(&open_history.recorder.take_errors());
            store::close(&open_history.store).await;
        }
        anyhow::Ok(code)
    });
    terminal::restore();
    // A thread may still be blocked on the terminal: do not wait for it.
    runtime.shutdown_background();
    if !keep {
        orphans::end(guard.as_ref().map(Guard::pid));
    }
    code
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

/// Returns an error if the agent's program is missing.
pub(crate) fn missing_program(
    info: &CliInfo,
    path: Option<&String>,
    config: &RuntimeConfig,
) -> Option<AgentError> {
    if info.program.is_empty() {
        // An embedded agent runs in this process.
        return None;
    }
    let program = match &config.program {
        Some(program) => program.to_str()?,
        None => info.program,
    };
    let path = path.map(OsString::from).or_else(|| env::var_os("PATH"));
    find_program(program, path.as_deref()).err()
}

/// Opens the input of messages: the line editor at a terminal, else the lines of stdin.
pub(crate) fn open_input(
    agent: &str,
    no_history: bool,
    at_terminal: bool,
) -> anyhow::Result<Input> {
    let prompt = format!("{agent}> ");
    // The line editor does not support these terminals.
    let dumb = env::var_os("TERM")
        .is_some_and(|term| ["dumb", "emacs", "cons25"].iter().any(|it| term == *it));
    if !at_terminal || dumb {
        let prompt = at_terminal.then_some(prompt);
        return Ok(Input::new(|| Lines::new(io::stdin().lock(), prompt))?);
    }
    let choice = anstream::AutoStream::choice(&io::stderr());
    let options = EditorOptions {
        prompt,
        colour: choice != anstream::ColorChoice::Never,
        tty: !io::stdout().is_terminal(),
        history: if no_history {
            None
        } else {
            store::state_file(HISTORY)
        },
    };
    Ok(Input::new(move || LineEditor::new(&options))?)
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
