//! `teamster supervise`: starts and restarts the agents of a configuration.

pub(crate) mod args;

use std::io::{self, Write};
use std::sync::Arc;

use anyhow::Context;
use teamster::CliInfo;
use teamster::agent_loop::LossyWriter;
use teamster::agent_loop::supervisor::{Error, Handle, Supervisor, SupervisorSettings};
use teamster_api::agents::Event;
use teamster_host::LocalRuns;
use tokio::signal::unix::{SignalKind, signal};

use crate::runtime::wait_only_for;
use crate::{exit_code, words};
use args::SuperviseArgs;

/// Supervises until a signal and returns the exit code.
pub(crate) fn main(args: &SuperviseArgs) -> anyhow::Result<u8> {
    let program = crate::global::program().context("cannot find this program")?;
    let mut settings = SupervisorSettings::new(program, ["loop"]);
    settings.keep_agents = args.keep_agents;
    settings.policy.grace = args.grace;
    settings.agent_of = Some(agent_of);
    // Tasks still wait for agents that are kept running.
    wait_only_for(async {
        let supervisor = Supervisor::open(&args.config, settings).map_err(|error| match error {
            Error::Config(_) | Error::AlreadyRunning { .. } | Error::OtherState { .. } => {
                exit_code::misuse(error)
            }
            error => error.into(),
        })?;
        let supervisor = supervisor.runs(Arc::new(LocalRuns::lazy(crate::global::host())));
        listen(supervisor.handle()).context("cannot listen for signals")?;
        let mut stderr = LossyWriter::new(Stderr).context("cannot start a thread")?;
        let report = |event: Event| {
            let text = words::one_line(&event.to_string());
            // `Stderr` never fails.
            let _ = stderr.write_lines(format!("{text}\n").into_bytes());
        };
        supervisor.run(report).await;
        Ok(exit_code::SUCCESS)
    })
}

/// Installs the supervisor's signal handlers.
fn listen(handle: Handle) -> io::Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = interrupt.recv() => handle.end(),
                _ = terminate.recv() => handle.end(),
                _ = hang_up.recv() => handle.reload(),
            }
        }
    });
    Ok(())
}

/// A writer to stderr that ignores errors. Lines have no time, because the system's journal adds it.
struct Stderr;

impl Write for Stderr {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        // Agents must continue without a reader of stderr, and a full disk may get space again.
        let _ = anstream::stderr().write_all(text);
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the CLI of a runtime by its name, or the default one.
fn agent_of(name: Option<&str>) -> Result<&'static CliInfo, String> {
    let agent = teamster::agent_loop::loop_agent(crate::global::providers(), name);
    agent.map_err(|error| error.message)
}
