//! Runners: the processes of detached runs and sessions.
//!
//! A runner is the host's program in a new process session, detached from the terminal.

mod run;
mod session;

use std::fs::File;
use std::io;
use std::process::Stdio;
use std::sync::Arc;

use nix::unistd::setsid;
use teamster_api::{Launch, Launched, Spec};
use teamster_core::{AgentError, ErrorCode, ErrorKind, RunResult};
use teamster_runner::AcceptedRun;
use teamster_runner::launch;
use tokio::process::{ChildStdin, ChildStdout, Command};

use crate::guard::Guard;
use crate::prepare::{Common, PreparedRun, PreparedSession};
use crate::signals::Source;
use crate::start::prune;
use crate::threads;
use crate::{Answers, Host, RunOptions, SessionRunOptions, error_chain, orphans, state};

/// The first argument of a runner. The agent follows, to show it in process lists.
pub(crate) const ARGUMENT: &str = "--teamster-runner";

impl Host {
    /// Starts the runner of a run or session, and waits until it accepts or refuses it. Until then, its stderr is that
    /// of this process. The runtime reaps it when it ends. Fails without a [program](Self::program), or if it cannot be
    /// started.
    pub(crate) async fn launch(&self, launch: &Launch) -> Result<Launched, AgentError> {
        let mut runner = (self.runner_command(launch)?.spawn()).map_err(not_started)?;
        let stdin = runner.stdin.take().map(ChildStdin::into_owned_fd);
        let stdout = runner.stdout.take().map(ChildStdout::into_owned_fd);
        let stdin = stdin.transpose().map_err(no_answer)?.map(File::from);
        let stdout = stdout.transpose().map_err(no_answer)?.map(File::from);
        let launch = launch.clone();
        let answer = tokio::task::spawn_blocking(move || ask(&launch, stdin, stdout));
        let answer = answer.await.map_err(io::Error::other).flatten();
        let answer = answer.map_err(no_answer)?;
        if let Some(answer @ Launched::Accepted { .. }) = answer {
            return Ok(answer);
        }
        let ended = runner.wait().await.map_err(no_answer)?;
        Ok(answer.unwrap_or_else(|| Launched::without_answer(ended)))
    }

    /// Returns the command that starts a runner. It reads a [`Launch`] from stdin.
    fn runner_command(&self, launch: &Launch) -> Result<Command, AgentError> {
        // The agent's name becomes an argument.
        let agent = self.agent(launch.what.provider())?;
        let program = self.runner_program().ok_or_else(|| {
            AgentError::invalid_params("the program that carries out runs is not known")
        })?;
        let mut command = Command::new(program);
        command
            .args([ARGUMENT, agent.id])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        Ok(command)
    }
}

/// Work of a runner that is ready to start.
enum Work {
    Run(Box<PreparedRun>),
    Session(Box<PreparedSession>),
}

/// Runs the runner of a detached run or session, to the result of the run. Fails with the reason of a refusal, which
/// the starting process has got.
pub(crate) fn main(host: Result<Host, AgentError>) -> Result<RunResult, AgentError> {
    launch::close_inherited();
    // Fails only for the leader of a process group, which is detached from the terminal as well.
    let _ = setsid();
    let result = host.and_then(|host| carry_out(&host, launch::read(io::stdin())?));
    if let Err(error) = &result {
        launch::answer(&Launched::refused(error.clone()));
    }
    result
}

/// Carries out the request. Every error comes before the run is accepted.
fn carry_out(host: &Host, launch: Launch) -> Result<RunResult, AgentError> {
    let runs = state::runs()?;
    let retention = state::retention()?;
    // The worker thread reads the agent's output; this thread writes the log.
    let runtime =
        threads::runtime(1).map_err(|error| failure("cannot start the runtime", error))?;
    let (work, signals) = runtime.block_on(async {
        let work = prepare(host, launch).await?;
        let signals = Source::new().map_err(|error| failure("cannot listen for signals", error))?;
        Ok::<_, AgentError>((work, signals))
    })?;
    let (common, keep_background) = match &work {
        Work::Run(run) => (&run.common, run.spec.trusted.keep_background),
        Work::Session(session) => (&session.common, session.spec.trusted.keep_background),
    };
    let guard = Guard::start(host, common.directory.as_deref()).map(Arc::new);
    if !keep_background {
        orphans::adopt();
    }
    let ended = runtime.block_on(async {
        match work {
            Work::Run(run) => run::work(host, *run, &runs, signals).await,
            Work::Session(session) => {
                let at_rest = session::at_rest(guard.clone());
                Box::pin(session::work(host, *session, &runs, signals, at_rest)).await
            }
        }
    });
    if !keep_background {
        orphans::end(guard.as_deref().map(Guard::pid));
    }
    let run::Ended { result, recorded } = ended?;
    if let Some((recording, agent)) = recorded {
        runtime.block_on(recording.complete(agent));
    }
    prune(host, &runs, &retention);
    Ok(result)
}

async fn prepare(host: &Host, launch: Launch) -> Result<Work, AgentError> {
    Ok(match launch.what {
        Spec::Run(spec) => {
            let mut options = RunOptions::new(launch.id).detached();
            options.ends_process = true;
            Work::Run(Box::new(host.prepare_run(*spec, options).await?))
        }
        Spec::Session(spec) => {
            let mut options = SessionRunOptions::new(launch.id, Answers::RequiredClients);
            options.is_detached = true;
            Work::Session(Box::new(host.prepare_session(*spec, options).await?))
        }
    })
}

/// Reports to the starting process that the run is accepted, with its warnings, and detaches from it.
fn detach(run: &AcceptedRun, common: &mut Common) -> Result<(), AgentError> {
    let (important, warnings) = common.take_warnings();
    let accepted = Launched::accepted(warnings, important);
    launch::detach(run, &accepted)
        .map_err(|error| failure("cannot detach from the terminal", error))
}

/// Calls `stop(false)` on the first termination signal and `stop(true)` on the second.
fn stop_by_signals(mut signals: Source, stop: impl Fn(bool) + Send + 'static) {
    tokio::spawn(async move {
        signals.next().await;
        stop(false);
        signals.next().await;
        stop(true);
    });
}

/// Passes the input to a runner with these pipes, and waits for its answer.
fn ask(launch: &Launch, stdin: Option<File>, stdout: Option<File>) -> io::Result<Option<Launched>> {
    match (stdin, stdout) {
        (Some(stdin), Some(stdout)) => launch::ask(launch, stdin, stdout),
        // `runner_command` sets both.
        _ => Ok(None),
    }
}

fn not_started(error: io::Error) -> AgentError {
    failure("cannot start a runner", error)
}

fn no_answer(error: io::Error) -> AgentError {
    failure("cannot read the answer of the runner", error)
}

/// Returns the error of something that is not the fault of the description.
pub(crate) fn failure(what: &str, error: io::Error) -> AgentError {
    let error = anyhow::Error::from(teamster_process::with_advice(error));
    let message = format!("{what}: {}", error_chain(&error));
    AgentError::new(ErrorCode::Io, ErrorKind::Internal, message)
}
