//! `teamster run`.

mod closing;
pub(crate) mod detached;
pub(crate) mod history;
mod output;
mod request;
pub(crate) mod request_policy;

use std::env;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use anyhow::{Context, bail};
use teamster::orchestrator::{Orchestrator, RunRequest};
use teamster::{
    AgentError, CliInfo, ErrorDetail, ErrorKind, ExecuteParams, McpDelivery, RunResult,
};
use teamster_core::time::epoch_ms;
use teamster_runner::SessionReservation;
use uuid::Uuid;

use crate::args::RunArgs;
use crate::record::Recording;
use crate::render::TextIsFinal;
use crate::worktree::{self, Worktree};
use crate::{detached::session_locks, drive, exit_code, hints, params, remote, stdin, words};
use closing::Closing;
use history::{History, OpenHistory};
use output::Output;
use request_policy::RequestPolicy;

/// Runs the agent and returns the exit code.
pub(crate) fn main(args: &mut RunArgs) -> anyhow::Result<u8> {
    if let Some(http) = remote::remote() {
        return remote::run::main(args, http);
    }
    if args.detach {
        return detached::launch(args);
    }
    let id = run_id(args);
    match enter_worktree(args, &id) {
        Ok(None) => attached(args, None),
        Ok(worktree) => {
            args.retry.run_id.get_or_insert(id);
            let code = attached(args, worktree.as_ref());
            worktree::leave(worktree, args.output.quiet);
            code
        }
        Err(error) => {
            crate::fail(&error);
            Ok(exit_code::USAGE)
        }
    }
}

/// Creates the worktree of `--worktree`, if it is set, and makes it the agent's working directory. Every error is a usage
/// error.
fn enter_worktree(args: &mut RunArgs, id: &str) -> anyhow::Result<Option<Worktree>> {
    if let (Some(_), Some(key)) = (&args.process.worktree, &args.session.session_key) {
        bail!(
            "--worktree makes a new worktree for each run, and the session of `{}` could not be resumed in \
             another one: make one for the conversation, as with `git worktree add`, and name it with --cwd",
            words::one_line(key)
        );
    }
    worktree::enter(&mut args.process, id, args.output.quiet)
}

/// Returns the run's id from `--run-id`, else a new one.
fn run_id(args: &RunArgs) -> String {
    let given = args.retry.run_id.clone();
    given.unwrap_or_else(|| Uuid::now_v7().to_string())
}

fn attached(args: &RunArgs, worktree: Option<&Worktree>) -> anyhow::Result<u8> {
    let provider = crate::providers()
        .get(&args.provider)
        .context("this provider is not built in")?;
    let info = provider.info();
    let prepared = params::execute_params(args, io::stdin().lock());
    let prepared = prepared.and_then(|(mut params, mut ignored)| {
        if args.prompt.as_deref() != Some("-") {
            ignored.extend(stdin::add_to(&mut params.prompt, args.input.stdin)?);
        }
        Prepared::new(args, info, params, ignored, None, None)
    });
    let Prepared {
        mut request,
        history,
        mcp,
        output,
    } = match prepared {
        Ok(prepared) => prepared,
        Err(error) => {
            crate::fail(&error);
            return Ok(exit_code::USAGE);
        }
    };
    let directory = params::working_directory(&args.process);
    let view = drive::View {
        agent: info,
        verbose: args.output.verbose,
        quiet: args.output.quiet,
        directory: directory.clone(),
        // With a mock model, the session is removed with its temporary home.
        resume: env::var_os(crate::mock_model::URL_VARIABLE)
            .is_none()
            .then(|| resume_arguments(args)),
        worktree: worktree.map(Worktree::watch),
        permission: Some(args.permissions.permission),
        asks: false,
        mcp,
        clock: epoch_ms,
    };
    let recording = recording(args, info);
    let keyed = args.session.session_key.is_some();
    let conversation = Arc::new(ConversationState::default());
    let keep = args.process.keep_background;
    let guarded = directory.as_deref();
    let prepared = async {
        let orchestrator = prepare(&history, &mut request, &conversation).await;
        anyhow::Ok((orchestrator.map_err(Unprepared)?, request))
    };
    let close = || close(conversation.clone(), keyed);
    let sink = drive::sink(args.output, view, final_text(args, info));
    let shown = if args.retry.lifecycle {
        drive::run(sink, guarded, keep, async || {
            let (orchestrator, request) = prepared.await?;
            Ok(Closing::new(orchestrator.run(request), close()))
        })
    } else {
        drive::run(sink, guarded, keep, async || {
            let (orchestrator, request) = prepared.await?;
            Ok(Closing::new(orchestrator.log(request), close()))
        })
    };
    let shown = match shown.map_err(anyhow::Error::downcast) {
        Ok(shown) => Ok(shown),
        Err(Ok(Unprepared(error))) => {
            crate::fail(&error);
            return Ok(exit_code::USAGE);
        }
        Err(Err(error)) => Err(error),
    };
    if let Some(recording) = recording {
        recording.complete(info);
    }
    let (error, result) = match &shown {
        Ok(shown) => (shown.error.as_deref(), shown.result.as_deref()),
        Err(_) => (None, None),
    };
    let written = write_output(output, result);
    if let Some(key) = (args.session.session_key.as_ref())
        .filter(|_| error.is_some_and(|error| error.kind == ErrorKind::SessionNotFound))
    {
        crate::warn(&[format!(
            "the session of `{key}` no longer exists and was forgotten: run the same command to start a new one"
        )]);
    }
    if let Some(key) = (args.session.session_key.as_ref())
        .filter(|_| conversation.not_stored.load(Ordering::Relaxed))
    {
        crate::warn(&[format!(
            "the session of `{key}` was not stored: unless the next run with this key names it with \
             --resume, it starts a new one"
        )]);
    }
    if let Some(open_history) = conversation.open_history.get() {
        history.warn(&open_history.recorder.take_errors());
    }
    shown.map(|shown| {
        if written {
            shown.code
        } else {
            shown.code.max(exit_code::AGENT_ERROR)
        }
    })
}

/// Returns the point at which the run's text is final.
pub(crate) fn final_text(args: &RunArgs, info: &CliInfo) -> TextIsFinal {
    let provider = crate::providers().get(info.id);
    if args.retry.allows_several_attempts() {
        TextIsFinal::WithRun
    } else if provider.is_some_and(|provider| provider.capabilities().final_text) {
        TextIsFinal::AtOnce
    } else {
        TextIsFinal::WithMessage
    }
}

/// Reads the prompt and appends piped text. Every error is a usage error.
pub(crate) fn prompt(args: &RunArgs, from: impl io::Read) -> anyhow::Result<String> {
    let mut prompt = params::prompt(args, from)?;
    if args.prompt.as_deref() != Some("-") {
        let warning = stdin::add_to(&mut prompt, args.input.stdin)?;
        crate::warn(warning.as_slice());
    }
    Ok(prompt)
}

/// Opens the file of `--output`, if it is set. Every error is a usage error.
pub(crate) fn output(args: &RunArgs) -> anyhow::Result<Option<Output<'_>>> {
    args.output_file.as_deref().map(Output::open).transpose()
}

/// A run that is ready to start, built from its arguments.
struct Prepared<'a> {
    request: RunRequest,
    history: History,
    /// Delivery of the run's MCP servers; `None` if it has none.
    mcp: Option<McpDelivery>,
    output: Option<Output<'a>>,
}

impl<'a> Prepared<'a> {
    /// Prepares a run, and warns on stderr of options without effect. Every error is a usage error.
    fn new(
        args: &'a RunArgs,
        info: &CliInfo,
        params: ExecuteParams,
        mut ignored: Vec<String>,
        policy: Option<&RequestPolicy>,
        detached: Option<&str>,
    ) -> anyhow::Result<Self> {
        let mcp = (!params.mcp_servers.is_empty()).then_some(params.mcp_delivery);
        let history = History::new(
            &args.store,
            args.session.session_key.as_deref(),
            args.retry.run_id.as_deref(),
            args.output.quiet,
        )?
        .starting_over(args.session.new);
        let (request, notices) = request::new(args, info, params, policy, detached)?;
        ignored.extend(notices);
        let output = output(args)?;
        if !args.output.quiet {
            crate::warn(&ignored);
        }
        Ok(Self {
            request,
            history,
            mcp,
            output,
        })
    }
}

/// Begins the recording of `--record`, if it is set.
fn recording(args: &RunArgs, info: &CliInfo) -> Option<Recording> {
    let dir = args.record.as_deref()?;
    let program = args.process.bin.clone();
    let program = program.or_else(|| params::program_variable(info));
    Recording::begin(dir, program.as_deref(), info)
}

/// Writes the last message to the file of `--output`. Returns `false` on an error, which it reports.
pub(crate) fn write_output(output: Option<Output<'_>>, result: Option<&RunResult>) -> bool {
    let Some(output) = output else {
        return true;
    };
    match result.map_or(Ok(false), |result| output.write(result)) {
        Ok(true) => {}
        Ok(false) => {
            crate::warn(&["--output: nothing was written: the run has no answer".to_owned()]);
        }
        Err(error) => {
            crate::fail(&error);
            return false;
        }
    }
    true
}

/// State of a run's conversation and its entry in the history.
#[derive(Default)]
struct ConversationState {
    /// The store and recorder, set when the run is prepared.
    open_history: OnceLock<OpenHistory>,
    /// Set if the session was not stored in time.
    not_stored: AtomicBool,
    /// The lock of the session, until the run begins.
    reserved: OnceLock<Option<SessionReservation>>,
}

/// A usage error before anything was started.
#[derive(Debug)]
struct Unprepared(anyhow::Error);

impl fmt::Display for Unprepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Unprepared {}

/// Opens the store, sets the run's session, and creates the orchestrator.
async fn prepare(
    history: &History,
    request: &mut RunRequest,
    conversation: &ConversationState,
) -> anyhow::Result<Orchestrator> {
    if let Some(open_history) = history.prepare(request).await? {
        let open_history = conversation.open_history.get_or_init(|| open_history);
        request.observer = Some(Arc::new(open_history.recorder.clone()) as _);
    }
    let reserved = reserve_session(history, request, None)?;
    conversation.reserved.get_or_init(|| reserved);
    Ok(Orchestrator::new(crate::estimates::orchestrator_config())?)
}

/// Locks the session of a run until the run begins. Refuses a run whose session another process uses, before it is in
/// the history or has a log.
fn reserve_session(
    history: &History,
    request: &RunRequest,
    detached: Option<&str>,
) -> anyhow::Result<Option<SessionReservation>> {
    let (Some(first), Some(locks)) = (request.candidates.first(), session_locks(detached)) else {
        return Ok(None);
    };
    let mut writer = locks.writer(first.provider());
    if let Err(error) = writer.begin(&first.params) {
        let error = match error.detail.as_deref() {
            Some(ErrorDetail::Parameter { problem, .. }) if history.has_conversation() => {
                AgentError::refused("session_key", problem.clone())
            }
            _ => error,
        };
        bail!("{}", hints::message(&error));
    }
    Ok(Some(writer.reserve()))
}

/// Closes the store. A run with a session key first waits until its session is stored.
async fn close(conversation: Arc<ConversationState>, keyed: bool) {
    let Some(open_history) = conversation.open_history.get() else {
        return;
    };
    if keyed
        && !open_history
            .recorder
            .settled(history::OPEN_LIMIT_WITH_KEY)
            .await
    {
        conversation.not_stored.store(true, Ordering::Relaxed);
    }
    crate::store::close(&open_history.store).await;
}

/// Returns the arguments of the command that resumes a session, without the session's id.
///
/// They include `--cwd`: sessions belong to the directory in which they began.
pub(crate) fn resume_arguments(args: &RunArgs) -> String {
    let cwd = args
        .process
        .cwd
        .as_deref()
        .map(|cwd| format!("--cwd {} ", words::shell_word(&cwd.to_string_lossy())))
        .unwrap_or_default();
    format!("{cwd}--resume")
}
