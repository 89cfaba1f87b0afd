//! `teamster loop`: runs an agent in a loop.

pub(crate) mod args;

use std::env;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use teamster::agent_loop::{Control, Log, ORCHESTRATOR, TickOptions, record_refusal};
use teamster::store::{Recorder, Store};
use teamster::{AgentError, ErrorCode, ErrorKind, LoopBuilder, LoopError};
use teamster_host::{Guard, params, state};
use teamster_process::foreign_git_variables;
use tokio::signal::unix::{SignalKind, signal};

use crate::args::StoreArgs;
use crate::exit_code;
use crate::runtime::tokio_runtime;
use crate::signals::Source;
use args::LoopArgs;

/// The time limit for opening the history. Without a history, ticks are not recorded.
const PATIENCE: Duration = Duration::from_secs(3);

/// Runs a loop and returns the exit code.
pub(crate) fn main(args: LoopArgs) -> anyhow::Result<u8> {
    // Exhaustive: a new argument has no effect until it has a place here.
    let LoopArgs {
        directory: agent_directory,
        ticks,
        record,
        store: StoreArgs { url: store_url },
    } = args;
    let runtime = tokio_runtime().context("cannot start the runtime")?;
    // The loop changes its current directory.
    let directory = std::path::absolute(&agent_directory).unwrap_or_default();
    let mut config = params::base_config();
    let of_git = foreign_git_variables(&directory).iter();
    (config.env_remove).extend(of_git.map(|name| (*name).to_owned()));
    config.record_each = record.is_some();
    config.record_to = match record.as_deref().map(std::path::absolute) {
        Some(dir) => Some(dir.context("the folder of --record")?),
        None => None,
    };
    let code = runtime.block_on(async {
        // First: without a handler, the signal for a tick would end this process.
        let control = Control::new();
        listen(&control).context("cannot listen for signals")?;
        let history = History::open(store_url.as_deref()).await;
        let options = history.options();
        let mut builder = LoopBuilder::new(&agent_directory)
            .providers(crate::global::providers().clone())
            .runtime_config(config)
            .control(control)
            .ticks_limit(ticks)
            .tick_options(options);
        let runs = state::runs();
        if let Ok(runs) = &runs {
            let retention = match state::retention() {
                Ok(retention) => retention,
                Err(error) => return Ok(refuse(&directory, &error.into())),
            };
            builder = builder.runs(runs.clone()).retention(retention);
        }
        if let Some(locks) = state::session_locks(None) {
            builder = builder.session_locks(locks);
        }
        // A supervisor may redirect stdout to the log, which would duplicate each line.
        if !is_stdout(&directory.join(ORCHESTRATOR).join(Log::NAME)) {
            builder = builder.copy_log_to(io::stdout());
        }
        let prepared = match builder.build().await {
            Ok(prepared) => prepared,
            Err(LoopError::Stopped) => return Ok(exit_code::SUCCESS),
            Err(error) => return Ok(refuse(&directory, &error.into())),
        };
        // Relative paths in the settings start here.
        env::set_current_dir(&prepared.directory)?;
        let _guard = Guard::start(crate::global::host(), Some(&prepared.directory));
        let log = prepared.log;
        history.report_to(&log);
        if runs.is_err() {
            log.line("warning: the ticks have no logs: neither XDG_STATE_HOME nor HOME is set to an absolute path");
        }
        let ended = prepared.agent_loop.run().await;
        history.close().await;
        // The error is also printed to stderr.
        log.end_copy();
        if let Err(error) = &ended {
            log.line(&error.message);
        }
        Ok(match ended {
            Ok(Some(error)) if error.code == ErrorCode::CliNotFound => exit_code::CLI_NOT_FOUND,
            Ok(Some(_)) => exit_code::AGENT_ERROR,
            Ok(None) => exit_code::SUCCESS,
            Err(error) => refuse(&directory, &error.into()),
        })
    });
    runtime.shutdown_background();
    code
}

/// The history of runs, which records each tick.
#[derive(Default)]
struct History {
    kept: Option<(Store, Recorder)>,
    /// The error that prevented opening it.
    problem: Option<String>,
}

impl History {
    async fn open(store_url: Option<&str>) -> Self {
        let Some(place) = teamster_host::store_location(store_url) else {
            return Self::default();
        };
        match Store::open_within(&place, PATIENCE).await {
            Ok(store) => Self {
                kept: Some((store.clone(), Recorder::new(store))),
                problem: None,
            },
            Err(error) => Self {
                kept: None,
                problem: Some(error.to_string()),
            },
        }
    }

    fn options(&self) -> TickOptions {
        let options = TickOptions::default();
        match &self.kept {
            Some((_, recorder)) => options.observer(Arc::new(recorder.clone())),
            None => options,
        }
    }

    /// Writes errors of the history to `log`.
    fn report_to(&self, log: &Log) {
        if let Some(problem) = &self.problem {
            log.line(format!(
                "warning: the ticks are not in the history of runs: {problem}"
            ));
        }
        if let Some((_, recorder)) = &self.kept {
            let log = log.clone();
            // All recorders of a history share this callback.
            let _ = recorder
                .clone()
                .on_error(move |error| log.line(format!("the history of runs: {error}")));
        }
    }

    async fn close(self) {
        if let Some((store, _)) = &self.kept {
            teamster_host::close_store(store).await;
        }
    }
}

/// Reports why the loop cannot run: on stderr, and in a file for the supervisor. Returns the exit code.
fn refuse(directory: &Path, error: &anyhow::Error) -> u8 {
    crate::report::fail(error);
    let text = crate::words::printable(&crate::words::error_chain(error));
    let refusal = match error.downcast_ref::<LoopError>() {
        Some(LoopError::Settings(error)) => error.clone().into(),
        Some(LoopError::Agent(error)) => error.clone(),
        _ => match error.downcast_ref::<AgentError>() {
            Some(error) => error.clone(),
            None => AgentError::new(ErrorCode::Io, ErrorKind::Internal, &*text),
        },
    };
    // Fails if this is not an agent's directory; the exit code is enough then.
    let _ = record_refusal(directory, &refusal.message(text));
    exit_code::USAGE
}

/// Installs the loop's signal handlers.
fn listen(control: &Control) -> io::Result<()> {
    let mut wake = signal(SignalKind::user_defined1())?;
    let woken = control.clone();
    tokio::spawn(async move {
        while wake.recv().await.is_some() {
            woken.wake();
        }
    });
    let mut ends = Source::new()?;
    let control = control.clone();
    tokio::spawn(async move {
        let signal = ends.name().await;
        control.stop_because(format!("received {signal}"));
        ends.next().await;
        // The kernel and the guard end remaining processes.
        std::process::exit(exit_code::ABORTED.into());
    });
    Ok(())
}

/// Returns `true` if stdout is this file, or if that is unknown.
fn is_stdout(path: &Path) -> bool {
    use std::os::fd::AsFd;
    let Ok(stdout) = nix::sys::stat::fstat(io::stdout().as_fd()) else {
        return true;
    };
    nix::sys::stat::stat(path)
        .is_ok_and(|file| (file.st_dev, file.st_ino) == (stdout.st_dev, stdout.st_ino))
}
