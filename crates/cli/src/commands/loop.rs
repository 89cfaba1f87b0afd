//! `teamster loop`: runs an agent in a loop.

pub(crate) mod args;

use std::env;
use std::io;
use std::path::Path;

use anyhow::Context;
use teamster::agent_loop::{Control, Log, LoopError, ORCHESTRATOR, record_refusal};
use teamster::{AgentError, ErrorCode, ErrorKind};
use teamster_host::{Guard, LoopOptions};
use tokio::signal::unix::{SignalKind, signal};

use crate::args::StoreArgs;
use crate::exit_code;
use crate::runtime::wait_only_for;
use crate::signals::Source;
use args::LoopArgs;

/// Runs a loop and returns the exit code.
pub(crate) fn main(args: LoopArgs) -> anyhow::Result<u8> {
    // Exhaustive: a new argument has no effect until it has a place here.
    let LoopArgs {
        directory: agent_directory,
        ticks,
        record,
        store: StoreArgs { url: store_url },
    } = args;
    // The loop changes its current directory.
    let directory = std::path::absolute(&agent_directory).unwrap_or_default();
    let record_to = match record.as_deref().map(std::path::absolute) {
        Some(dir) => Some(dir.context("the folder of --record")?),
        None => None,
    };
    wait_only_for(async {
        let mut options = LoopOptions::default();
        // First: without a handler, the signal for a tick would end this process.
        listen(&options.control).context("cannot listen for signals")?;
        options.ticks = ticks;
        options.record_to = record_to;
        options.store = store_url;
        // A supervisor may redirect stdout to the log, which would duplicate each line.
        if !is_stdout(&directory.join(ORCHESTRATOR).join(Log::NAME)) {
            options.copy_log_to = Some(Box::new(io::stdout()));
        }
        let host = crate::global::host();
        let prepared = match host.prepare_loop(&agent_directory, options).await {
            Ok(prepared) => prepared,
            Err(LoopError::Stopped) => return Ok(exit_code::SUCCESS),
            Err(error) => return Ok(refuse(&directory, &error.into())),
        };
        // Relative paths in the settings start here.
        env::set_current_dir(&prepared.directory)?;
        let _guard = Guard::start(host, Some(&prepared.directory));
        let log = prepared.log.clone();
        let ended = Box::pin(prepared.run()).await;
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
    })
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
