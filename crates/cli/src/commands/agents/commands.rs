//! Subcommands that send a command to the supervisor and print the result.

use teamster_api::agents::{AgentList, AgentState, AgentStatus, Command, Selection};

use super::Supervisor;
use super::args::AgentsSelection;
use crate::{exit_code, words};

/// Converts the arguments to a selection. The supervisor checks that the agents exist.
fn selection(args: &AgentsSelection) -> Selection {
    if args.all {
        Selection::all()
    } else {
        Selection::of(args.agents.iter().map(String::as_str))
    }
}

/// Sends a command about the selected agents, which run or have stopped then.
pub(super) async fn switch(
    command: fn(Selection) -> Command,
    args: &AgentsSelection,
    supervisor: &Supervisor,
    run: bool,
) -> anyhow::Result<u8> {
    let status = supervisor.control(command(selection(args))).await?;
    report(&status, args, run)
}

pub(super) async fn wake(args: &AgentsSelection, supervisor: &Supervisor) -> anyhow::Result<u8> {
    let status = supervisor.control(Command::Wake(selection(args))).await?;
    let woken = |agent: &&AgentStatus| agent.state.is_running();
    let lines = selected(&status, args)
        .filter(woken)
        .map(|agent| format!("{}: woken", words::one_line(&agent.id)));
    exit_code::of_lines(lines)
}

/// Prints warnings about the configuration, on stderr so that scripts do not parse them as output.
pub(super) fn warn(status: &AgentList) {
    let warnings = status.warnings.iter().map(|it| words::one_line(it));
    crate::report::warn(&warnings.collect::<Vec<_>>());
}

pub(super) async fn reload(supervisor: &Supervisor) -> anyhow::Result<u8> {
    let status = supervisor.control(Command::Reload).await?;
    warn(&status);
    let agents = status.agents.iter().filter(|agent| !agent.removed).count();
    let agents = words::plural(agents as u64, "agent");
    exit_code::of_lines([format!("configuration read again: {agents}")])
}

fn is_enabled(status: &AgentList, agent: &AgentStatus) -> bool {
    status.enabled && agent.enabled
}

fn selected<'a>(
    status: &'a AgentList,
    args: &'a AgentsSelection,
) -> impl Iterator<Item = &'a AgentStatus> {
    (status.agents.iter()).filter(|agent| args.all || args.agents.contains(&agent.id))
}

/// Prints the result. The exit code is 1 if an agent is not in the requested state.
fn report(status: &AgentList, args: &AgentsSelection, run: bool) -> anyhow::Result<u8> {
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
    let printed = exit_code::of_lines(lines.iter().map(|it| words::one_line(it)));
    exit_code::of_findings(printed, (!good).then_some(exit_code::AGENT_ERROR))
}
