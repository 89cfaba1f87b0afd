//! `teamster run --detach`: a run with a process of its own, its runner.
//!
//! The runner is this program again, in a session of its own. It gets its arguments and the prompt on stdin,
//! because everybody can read the arguments of a process.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::process::{self, Stdio};

use anyhow::{Context, anyhow, bail};
use nix::unistd::{dup2_stderr, dup2_stdin, dup2_stdout, setsid};
use serde::{Deserialize, Serialize};
use teamster::orchestrator::{Orchestrator, OrchestratorConfig, RunLog, RunLogEntry, RunRequest};
use teamster::{
    AgentError, AgentEvent, CliInfo, ErrorCode, ErrorKind, Id, LogEntry, NoticeLevel, NoticeSource,
    RunResult, RunStatus,
};
use teamster_core::time::epoch_ms;
use teamster_runner::server::{Control, serve};
use teamster_runner::{LogLimits, NewRun, Position, Requests, RunInfo, RunLogWriter, Runs};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::watch;
use tokio::time::{Duration, Instant, sleep, sleep_until};

use super::Prepared;
use super::asking::Asking;
use crate::args::{Cli, Command, RunArgs};
use crate::guard::Guard;
use crate::signals::Source;
use crate::worktree::{self, Worktree};
use crate::{detached, exit_code, hints, orphans, params, stdin, tokio_runtime};

/// The first argument of a process that is a runner; then comes the agent, for those who look at the list of
/// processes.
pub(crate) const ARGUMENT: &str = "--teamster-runner";
/// What the runner writes to its stdout when the run is accepted, before the run's id.
const ACCEPTED: &str = "accepted ";
/// The file that takes what the runner says on stderr.
const STDERR: &str = "runner.log";

/// What a runner is given.
#[derive(Serialize, Deserialize)]
pub(crate) struct Launch {
    /// The arguments of `teamster run --detach`, the program's name first.
    pub(crate) args: Vec<OsString>,
    pub(crate) prompt: String,
}

/// The command of a runner for this agent. It reads a [`Launch`] from stdin.
pub(crate) fn runner_command(provider: &str) -> anyhow::Result<process::Command> {
    let program = std::env::current_exe().context("cannot find this program")?;
    let mut command = process::Command::new(program);
    command
        .args([ARGUMENT, provider])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    Ok(command)
}

/// The run's id in what a runner has written to stdout; `None` if it has not accepted the run.
pub(crate) fn accepted_id(reply: &str) -> Option<&str> {
    reply.trim_end().strip_prefix(ACCEPTED)
}

/// Starts a runner and waits until it has accepted the run; the exit code.
pub(super) fn launch(args: &RunArgs) -> anyhow::Result<u8> {
    let prompt = params::prompt(args, io::stdin().lock()).and_then(|mut prompt| {
        if args.prompt.as_deref() != Some("-") {
            let warning = stdin::add_to(&mut prompt, args.input.stdin)?;
            crate::warn(warning.as_slice());
        }
        Ok(prompt)
    });
    let prompt = match prompt {
        Ok(prompt) => prompt,
        Err(error) => {
            crate::fail(&error);
            return Ok(exit_code::USAGE);
        }
    };
    let launch = serde_json::to_vec(&Launch {
        args: std::env::args_os().collect(),
        prompt,
    })?;
    let mut runner = runner_command(&args.provider)?
        .spawn()
        .context("cannot start a runner")?;
    if let Some(mut stdin) = runner.stdin.take() {
        // A runner that has ended says why, or its exit code does.
        let _ = stdin.write_all(&launch);
    }
    let mut answer = String::new();
    if let Some(mut stdout) = runner.stdout.take() {
        stdout
            .read_to_string(&mut answer)
            .context("cannot read what the runner says")?;
    }
    if let Some(id) = accepted_id(&answer) {
        return exit_code::of_printed(writeln!(io::stdout(), "{id}"));
    }
    let status = runner.wait().context("cannot wait for the runner")?;
    match status.code().and_then(|code| u8::try_from(code).ok()) {
        Some(code) if code != exit_code::SUCCESS => Ok(code),
        _ => bail!("the runner ended before the run was accepted ({status}): nothing was started"),
    }
}

/// The process of a detached run; the exit code.
pub(crate) fn runner() -> anyhow::Result<u8> {
    // Out of reach of the terminal. It fails only in the leader of a group, which is out of reach as well.
    let _ = setsid();
    let mut launch = Vec::new();
    io::stdin()
        .read_to_end(&mut launch)
        .context("cannot read what to run")?;
    let launch: Launch = serde_json::from_slice(&launch).context("nothing to run was given")?;
    let Command::Run(mut args) = Cli::read(launch.args)?.command else {
        bail!("nothing to run was given");
    };
    let info = crate::providers()
        .get(&args.provider)
        .context("this provider is not built in")?
        .info();
    // The prompt was read by the one who started this.
    args.prompt_file = None;
    args.prompt = Some("the prompt that was given".to_owned());
    let id = super::run_id(&args);
    let worktree = match worktree::enter(&mut args.place, &id, args.output.quiet) {
        Ok(worktree) => worktree,
        Err(error) => {
            crate::fail(&error);
            return Ok(exit_code::USAGE);
        }
    };
    let (requests, asked) = Requests::of(&id);
    let asking = Asking::new(&args, requests.clone());
    let prepared = detached::runs().and_then(|runs| {
        let (mut params, ignored) = params::execute_params(&args, io::empty())?;
        params.prompt = launch.prompt;
        Ok((
            Prepared::new(&args, info, params, ignored, asking.as_ref(), Some(&id))?,
            runs,
        ))
    });
    match prepared {
        Ok((prepared, runs)) => {
            let mut about = RunInfo::new(&*id, info.id);
            about.branch = worktree.as_ref().map(|it| it.branch().to_owned());
            let side = Side {
                requests,
                asked,
                worktree,
            };
            run(&args, info, prepared, &runs, about, side)
        }
        Err(error) => {
            crate::fail(&error);
            Ok(exit_code::USAGE)
        }
    }
}

fn run(
    args: &RunArgs,
    info: &'static CliInfo,
    prepared: Prepared<'_>,
    runs: &Runs,
    mut about: RunInfo,
    side: Side,
) -> anyhow::Result<u8> {
    let Prepared {
        mut request,
        history,
        output,
        ..
    } = prepared;
    let directory = params::working_directory(&args.place);
    let recording = super::recording(args, info);
    let keep_background = args.place.keep_background;
    let guard = Guard::start(directory.as_deref());
    if !keep_background {
        orphans::adopt();
    }
    let runtime = tokio_runtime().context("cannot start the runtime")?;
    let ended = runtime.block_on(async {
        let kept = match history.prepare(&mut request).await {
            Ok(kept) => kept,
            Err(error) => {
                crate::fail(&error);
                return Ok(Err(exit_code::USAGE));
            }
        };
        request.observer =
            (kept.as_ref()).map(|kept| std::sync::Arc::new(kept.recorder.clone()) as _);
        if let Some(first) = request.candidates.first()
            && let Some(locks) = detached::session_locks(None)
            && let Err(error) = locks.writer(first.provider()).begin(&first.params)
        {
            // The run would only say so in its log.
            crate::fail(&anyhow!("{}", hints::message(&error)));
            return Ok(Err(exit_code::USAGE));
        }
        request.run_id = Some(about.run_id.clone());
        about.model.clone_from(&args.model.model);
        about.directory.clone_from(&directory);
        let run = match runs.accept(&about, LogLimits::default()) {
            Ok(run) => run,
            Err(error) => {
                crate::fail(&error.into());
                return Ok(Err(exit_code::USAGE));
            }
        };
        accepted(&run)?;
        let result = work(run, request, side).await;
        if let Some(kept) = &kept {
            history.complain(&kept.recorder.take_errors());
            crate::store::close(&kept.store).await;
        }
        anyhow::Ok(Ok(result?))
    });
    if !keep_background {
        orphans::end(guard.as_ref().map(Guard::pid));
    }
    let result = match ended? {
        Ok(result) => result,
        Err(code) => return Ok(code),
    };
    if let Some(recording) = recording {
        recording.complete(info);
    }
    if let Some(output) = &output {
        output.keep(&result);
    }
    super::written(output);
    Ok(exit_code::of(&result))
}

/// What belongs to a run beside its agent.
struct Side {
    requests: Requests,
    /// Events about requests, which are not among those of the agent.
    asked: UnboundedReceiver<AgentEvent>,
    worktree: Option<Worktree>,
}

/// Notifies the waiting command, and detaches from the terminal.
fn accepted(run: &NewRun) -> anyhow::Result<()> {
    let stderr = File::options()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(run.folder.path().join(STDERR))
        .context("cannot make the runner's log")?;
    let null = File::options().read(true).write(true).open("/dev/null")?;
    // Without a waiting command the run goes on: it is accepted.
    let _ = writeln!(io::stdout(), "{ACCEPTED}{}", run.folder.id());
    dup2_stdin(&null)?;
    dup2_stdout(&null)?;
    dup2_stderr(&stderr)?;
    Ok(())
}

/// Does the run, and writes its log; what came of it.
async fn work(run: NewRun, request: RunRequest, side: Side) -> anyhow::Result<RunResult> {
    let NewRun {
        folder,
        log: writer,
        listener,
        lock,
        ..
    } = run;
    let orchestrator = Orchestrator::new(OrchestratorConfig::default())?;
    let log = orchestrator.log(request);
    let abort = log.abort_handle();
    let (announce, position) = watch::channel(Position::default());
    let control = Control::new(position, abort.clone(), side.requests.clone());
    let door = tokio::spawn(serve(listener, control));
    let mut signals = Source::new().context("cannot listen for signals")?;
    let stopping = tokio::spawn(async move {
        signals.next().await;
        abort.abort();
        signals.next().await;
        abort.kill();
    });
    let mut record = Record {
        writer,
        announce,
        side,
        run_id: folder.id().into(),
        attempt: 1,
        failing: None,
        lost: None,
    };
    let result = record.run(log).await;
    stopping.abort();
    door.abort();
    folder.close_socket();
    drop(lock);
    Ok(result)
}

/// How long a log that cannot be written may hold up its run, before the run is stopped.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often it is tried again meanwhile.
const AGAIN: Duration = Duration::from_millis(200);
/// How long the end of a run that was stopped so is tried to be written.
const PATIENCE_AT_THE_END: Duration = Duration::from_secs(5);
/// How many entries are written at once.
const BATCH: usize = 256;

/// Writes the entries of a run to its log.
struct Record {
    writer: RunLogWriter,
    announce: watch::Sender<Position>,
    side: Side,
    run_id: Id,
    /// The attempt of the newest entry.
    attempt: u32,
    /// Since when the log cannot be written.
    failing: Option<Instant>,
    /// Why the log is given up: what comes is not written.
    lost: Option<io::Error>,
}

impl Record {
    /// Writes to the end of the run; what came of it.
    async fn run(&mut self, mut log: RunLog) -> RunResult {
        let abort = log.abort_handle();
        let mut result = RunResult::default().status(RunStatus::Incomplete);
        loop {
            let due = self.writer.due().map(Instant::from_std);
            let mut over = false;
            tokio::select! {
                biased;
                entry = log.next(), if self.failing.is_none() => {
                    let mut next = entry;
                    for _ in 0..BATCH {
                        let Some(entry) = next else {
                            over = true;
                            break;
                        };
                        if let RunLogEntry::Agent(entry) = &entry
                            && let AgentEvent::Done(done) = &entry.event
                        {
                            result = (*done.result).clone();
                        }
                        self.take(entry);
                        next = tokio::select! {
                            biased;
                            entry = log.next() => entry,
                            () = std::future::ready(()) => break,
                        };
                    }
                }
                Some(event) = self.side.asked.recv(), if self.failing.is_none() => {
                    let entry = self.entry(event);
                    self.writer.push(entry);
                }
                () = sleep(AGAIN), if self.failing.is_some() => {}
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                    self.writer.end_frame();
                }
            }
            if over {
                break;
            }
            if self.lost.is_none()
                && let Err(error) = self.write()
                && self
                    .failing
                    .is_some_and(|since| since.elapsed() >= PATIENCE)
            {
                self.lost = Some(error);
                self.failing = None;
                abort.abort();
            }
        }
        self.end(&mut result).await;
        result
    }

    /// An event beside those of the agent.
    fn entry(&self, event: AgentEvent) -> RunLogEntry {
        let mut entry = LogEntry::from(event);
        entry.run_id = Some(self.run_id.clone());
        entry.at_ms = epoch_ms();
        entry.attempt = self.attempt;
        RunLogEntry::Agent(entry)
    }

    /// Takes an entry of the run.
    fn take(&mut self, entry: RunLogEntry) {
        if self.lost.is_some() {
            return;
        }
        let entry = match entry {
            RunLogEntry::Agent(mut entry) => {
                self.attempt = entry.attempt;
                if matches!(entry.event, AgentEvent::Done(_))
                    && let Some(worktree) = self.side.worktree.take()
                {
                    // No process of the run is left in it.
                    let notice = AgentEvent::notice(
                        NoticeLevel::Info,
                        NoticeSource::Runtime,
                        worktree.finish(),
                    );
                    let notice = self.entry(notice);
                    self.writer.push(notice);
                }
                let Some(event) = self.side.requests.mark(entry.event) else {
                    return;
                };
                entry.event = event;
                RunLogEntry::Agent(entry)
            }
            entry => entry,
        };
        self.writer.push(entry);
    }

    fn write(&mut self) -> io::Result<()> {
        match self.writer.flush() {
            Ok(position) => {
                self.failing = None;
                self.announce.send_if_modified(|known| {
                    let changed = *known != position;
                    *known = position;
                    changed
                });
                Ok(())
            }
            Err(error) => {
                self.failing.get_or_insert_with(Instant::now);
                Err(error)
            }
        }
    }

    /// Writes the end of a log that was given up before, as far as that goes.
    async fn end(&mut self, result: &mut RunResult) {
        self.writer.end_frame();
        if let Some(error) = &self.lost {
            self.writer.discard_unwritten();
            let error = AgentError::new(
                ErrorCode::Io,
                ErrorKind::Internal,
                format!(
                    "the log of this run could not be written, so the run was stopped: {error}"
                ),
            );
            result.errors.push(error.clone());
            result.status = RunStatus::Failed;
            for event in [
                AgentEvent::error(error),
                AgentEvent::Done(teamster::Done::new(Box::new(result.clone()))),
            ] {
                let mut entry = LogEntry::from(event);
                entry.at_ms = epoch_ms();
                self.writer.push(RunLogEntry::Agent(entry));
            }
        }
        let until = Instant::now()
            + if self.lost.is_some() {
                PATIENCE_AT_THE_END
            } else {
                PATIENCE
            };
        // Without its end, the log gets one of its next reader.
        while let Err(error) = self.write() {
            if Instant::now() >= until {
                crate::fail(&anyhow!(
                    "the end of this run's log cannot be written: {error}"
                ));
                return;
            }
            sleep(AGAIN).await;
        }
        if let Err(error) = self.writer.sync() {
            crate::fail(&anyhow!("cannot sync the log of this run: {error}"));
        }
    }
}
