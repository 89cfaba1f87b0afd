//! `teamster loop`.

use std::env;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use teamster::agent_loop::{Control, Log, ORCHESTRATOR, TickOptions, record_refusal};
use teamster::store::{Recorder, Store};
use teamster::{AgentError, CliInfo, ErrorCode, ErrorKind, LoopBuilder, LoopError};
use tokio::signal::unix::{SignalKind, signal};

use crate::args::LoopArgs;
use crate::guard::Guard;
use crate::signals::Source;
use crate::{detached, exit_code, params, store, tokio_runtime};

/// How long the loop waits for the history to be opened. Without it, its ticks are only left out of that.
const PATIENCE: Duration = Duration::from_secs(3);

/// Runs a loop; the exit code.
pub(crate) fn main(args: &LoopArgs) -> anyhow::Result<u8> {
    let runtime = tokio_runtime().context("cannot start the runtime")?;
    // The loop goes there, so a relative path would lead elsewhere afterwards.
    let directory = std::path::absolute(&args.directory).unwrap_or_default();
    let code = runtime.block_on(async {
        // Before anything else: without a handler the signal that asks for a tick would end us.
        let control = Control::new();
        listen(&control).context("cannot listen for signals")?;
        let history = History::open(args).await;
        let options = history.options();
        let mut builder = LoopBuilder::new(&args.directory)
            .providers(crate::providers().clone())
            .runtime_config(params::base_config())
            .control(control)
            .ticks_limit(args.ticks)
            .tick_options(options);
        let runs = detached::runs();
        if let Ok(runs) = &runs {
            let retention = match detached::retention() {
                Ok(retention) => retention,
                Err(error) => return Ok(refuse(&directory, &error)),
            };
            builder = builder.runs(runs.clone()).retention(retention);
        }
        if let Some(locks) = detached::session_locks(None) {
            builder = builder.session_locks(locks);
        }
        // A supervisor may have it so that stdout is the log, and then each line would be there twice.
        if !is_stdout(&directory.join(ORCHESTRATOR).join(Log::NAME)) {
            builder = builder.copy_log_to(io::stdout());
        }
        let prepared = match builder.build().await {
            Ok(prepared) => prepared,
            Err(LoopError::Stopped) => return Ok(exit_code::SUCCESS),
            Err(error) => return Ok(refuse(&directory, &error.into())),
        };
        // Where relative paths of its settings begin.
        env::set_current_dir(&prepared.directory)?;
        let _guard = Guard::start(Some(&prepared.directory));
        let log = prepared.log;
        history.report_to(&log);
        if runs.is_err() {
            log.line("warning: the ticks have no logs: neither XDG_STATE_HOME nor HOME is set to an absolute path");
        }
        let ended = prepared.agent_loop.run().await;
        history.close().await;
        // An error is printed on stderr: there it is not wanted twice.
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

/// The history that has a row for each tick.
#[derive(Default)]
struct History {
    kept: Option<(Store, Recorder)>,
    /// Why there is none.
    problem: Option<String>,
}

impl History {
    async fn open(args: &LoopArgs) -> Self {
        let Some(place) = store::place(&args.store) else {
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

    /// Its errors are logged there.
    fn report_to(&self, log: &Log) {
        if let Some(problem) = &self.problem {
            log.line(format!(
                "warning: the ticks are not in the history of runs: {problem}"
            ));
        }
        if let Some((_, recorder)) = &self.kept {
            let log = log.clone();
            // The recorders of one history report together.
            let _ = recorder
                .clone()
                .on_error(move |error| log.line(format!("the history of runs: {error}")));
        }
    }

    async fn close(self) {
        if let Some((store, _)) = &self.kept {
            store::close(store).await;
        }
    }
}

/// Reports why the loop of this directory cannot run: to a person on stderr, and to the supervisor in a file.
fn refuse(directory: &Path, error: &anyhow::Error) -> u8 {
    crate::fail(error);
    let text = crate::words::printable(&format!("{error:#}"));
    let refusal = match error.downcast_ref::<LoopError>() {
        Some(LoopError::Settings(error)) => error.clone().into(),
        Some(LoopError::Agent(error)) => error.clone(),
        _ => match error.downcast_ref::<AgentError>() {
            Some(error) => error.clone(),
            None => AgentError::new(ErrorCode::Io, ErrorKind::Internal, &*text),
        },
    };
    // A directory that is no agent's has no place for it, and the exit code is enough.
    let _ = record_refusal(directory, &refusal.message(text));
    exit_code::USAGE
}

/// From now on, signals are what they are to a loop.
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
        // The kernel and the guard end what is left.
        std::process::exit(exit_code::ABORTED.into());
    });
    Ok(())
}

/// The CLI of a runtime's name; the usual one where none is set.
pub(crate) fn agent_of(name: Option<&str>) -> Result<&'static CliInfo, String> {
    let agent = crate::providers().loop_agent(name);
    agent.map_err(|error| error.message)
}

/// Whether stdout goes to this file.
fn is_stdout(path: &Path) -> bool {
    use std::os::fd::AsFd;
    let Ok(stdout) = nix::sys::stat::fstat(io::stdout().as_fd()) else {
        return true;
    };
    nix::sys::stat::stat(path)
        .is_ok_and(|file| (file.st_dev, file.st_ino) == (stdout.st_dev, stdout.st_ino))
}
