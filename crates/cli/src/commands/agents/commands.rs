//! Subcommands that send a command to the supervisor and print the result.

use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use teamster_api::agents::{AgentState, AgentStatus, Command, Selection, Status};
use teamster_core::time::epoch_ms;
use tokio::time::sleep;

use super::args::AgentsSelection;
use super::{Failure, Target, ask, connect, of_printed};
use crate::{exit_code, words};

/// Interval between checks for the result of a command.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Time after which a running loop without a status counts as started.
const SILENCE_LIMIT: Duration = Duration::from_secs(2);
/// Limit for the result of a command, in addition to the supervisor's grace period.
const RESULT_LIMIT: Duration = Duration::from_secs(15);

/// Converts the arguments to a selection. The supervisor checks that the agents exist.
fn selection(args: &AgentsSelection) -> Selection {
    if args.all {
        Selection::all()
    } else {
        Selection::of(args.agents.iter().map(String::as_str))
    }
}

pub(super) async fn start(args: &AgentsSelection, target: Target<'_>) -> Result<u8, Failure> {
    let status = send_and_wait(target, args, Command::Start(selection(args)), |_, agent| {
        has_settled(agent)
    });
    report(&status.await?, args, true)
}

/// Returns whether the result of a start is known. A loop that cannot run ends before it reports a status.
fn has_settled(agent: &AgentStatus) -> bool {
    match agent.state {
        AgentState::Starting | AgentState::Stopping => false,
        state if state.is_running() && agent.activity.is_none() => {
            let started = agent.started_at_ms.unwrap_or_default();
            Duration::from_millis(epoch_ms().saturating_sub(started)) >= SILENCE_LIMIT
        }
        _ => true,
    }
}

pub(super) async fn stop(args: &AgentsSelection, target: Target<'_>) -> Result<u8, Failure> {
    let status = send_and_wait(target, args, Command::Stop(selection(args)), |_, agent| {
        agent.pid.is_none()
    });
    report(&status.await?, args, false)
}

pub(super) async fn restart(args: &AgentsSelection, target: Target<'_>) -> Result<u8, Failure> {
    let status = send_and_wait(
        target,
        args,
        Command::Restart(selection(args)),
        |before, agent| {
            let another = before.is_none() || before != agent.pid;
            another && has_settled(agent)
        },
    );
    report(&status.await?, args, true)
}

pub(super) async fn wake(args: &AgentsSelection, target: Target<'_>) -> Result<u8, Failure> {
    let status = ask(target, Command::Wake(selection(args))).await?;
    let woken = |agent: &&AgentStatus| agent.state.is_running();
    let lines = selected(&status, args)
        .filter(woken)
        .map(|agent| format!("{}: woken", agent.id));
    print(lines)
}

/// Prints warnings about the configuration, on stderr so that scripts do not parse them as output.
pub(super) fn warn(status: &Status) {
    let warnings = status.warnings.iter().map(|it| words::one_line(it));
    crate::report::warn(&warnings.collect::<Vec<_>>());
}

pub(super) async fn reload(file: &Path) -> Result<u8, Failure> {
    let status = ask(Target::File(file), Command::Reload).await?;
    warn(&status);
    let agents = status.agents.iter().filter(|agent| !agent.removed).count();
    let agents = words::plural(agents as u64, "agent");
    print([format!("configuration read again: {agents}")])
}

/// Sends a command and polls the status until `done` holds for all selected agents, or the limit is over.
///
/// `done` is passed the pid from before the command, and the agent's status.
async fn send_and_wait(
    target: Target<'_>,
    args: &AgentsSelection,
    command: Command,
    done: impl Fn(Option<u32>, &AgentStatus) -> bool,
) -> Result<Status, Failure> {
    let mut client = connect(target).await?;
    let before = client.ask(Command::Status).await?;
    let mut status = client.ask(command).await?;
    let grace = status.supervisor.as_ref().map_or(0, |it| it.grace_ms);
    let limit = RESULT_LIMIT.saturating_add(Duration::from_millis(grace));
    let began = Instant::now();
    loop {
        let pid_before = |id: &str| before.agents.iter().find(|it| it.id == id)?.pid;
        let all = selected(&status, args).all(|agent| {
            // `--all` does not change disabled agents.
            !is_enabled(&status, agent) && agent.pid.is_none() || done(pid_before(&agent.id), agent)
        });
        if all || began.elapsed() > limit {
            return Ok(status);
        }
        sleep(POLL_INTERVAL).await;
        status = client.ask(Command::Status).await?;
    }
}

fn is_enabled(status: &Status, agent: &AgentStatus) -> bool {
    status.enabled && agent.enabled
}

fn selected<'a>(
    status: &'a Status,
    args: &'a AgentsSelection,
) -> impl Iterator<Item = &'a AgentStatus> {
    (status.agents.iter()).filter(|agent| args.all || args.agents.contains(&agent.id))
}

/// Prints the result. The exit code is 1 if an agent is not in the requested state.
fn report(status: &Status, args: &AgentsSelection, run: bool) -> Result<u8, Failure> {
    let mut good = true;
    let lines: Vec<String> = selected(status, args)
        .map(|agent| {
            let id = &agent.id;
            let reason = agent.reason.as_deref().unwrap_or("unknown reason");
            let is_affected = !run || is_enabled(status, agent);
            good &= !is_affected || agent.state.is_running() == run;
            match (agent.state, agent.pid) {
                (state, Some(pid)) if state.is_running() => format!("{id}: runs, pid {pid}"),
                (AgentState::Stopping, Some(pid)) => format!("{id}: is still stopping, pid {pid}"),
                (AgentState::BackingOff, _) => {
                    format!("{id}: crashed and will be restarted: {reason}")
                }
                (AgentState::Failed, _) => format!("{id}: cannot run: {reason}"),
                (AgentState::Ended, _) => format!("{id}: {reason}"),
                (AgentState::Starting, _) => format!("{id}: is starting"),
                _ => format!("{id}: stopped"),
            }
        })
        .collect();
    Ok(match print(lines)? {
        exit_code::SUCCESS if !good => exit_code::AGENT_ERROR,
        code => code,
    })
}

fn print(lines: impl IntoIterator<Item = String>) -> Result<u8, Failure> {
    let mut out = io::stdout().lock();
    let mut lines = lines.into_iter();
    of_printed(lines.try_for_each(|line| writeln!(out, "{}", words::one_line(&line))))
}
