//! What can be told of agents without a supervisor: from the files that it and the loops leave.

use std::fs;
use std::path::Path;

use super::config::{AgentConfig, Config};
use super::last_start::LastStart;
use super::place::Place;
use super::protocol::{AgentState as Doing, AgentStatus, Status};
use super::state::{AgentState, State};
use crate::{ORCHESTRATOR, SleepFile};

/// How the agents are when no supervisor answers.
pub fn status(config: &Config) -> Status {
    let place = Place::of(&config.file);
    // One that cannot be read is the next supervisor's matter.
    let state = State::read(&place.state()).ok().flatten();
    let agents = config.agents.iter().map(|agent| {
        let known = state.as_ref().and_then(|state| state.agents.get(&agent.id));
        agent_status(agent, known)
    });
    Status {
        config: config.file.clone(),
        supervisor: None,
        agents: agents.collect(),
        enabled: state.is_none_or(|state| state.enabled),
    }
}

fn agent_status(agent: &AgentConfig, known: Option<&AgentState>) -> AgentStatus {
    let running = known
        .and_then(|known| known.process.as_ref())
        .map(|process| (process.identity(), process.started_at_ms))
        .filter(|(process, _)| process.is_running())
        .or_else(|| LastStart::running(&agent.working_dir));
    AgentStatus {
        id: agent.id.clone(),
        alias: agent.alias.clone(),
        role: agent.role.clone(),
        runtime: agent.runtime.clone(),
        working_dir: agent.working_dir.clone(),
        enabled: known.is_none_or(|known| known.enabled),
        state: match running {
            Some(_) => Doing::Running,
            None => Doing::Stopped,
        },
        pid: running.map(|(process, _)| process.pid()),
        started_at_ms: running.map(|(_, started)| started),
        adopted: false,
        restarts: known.map_or(0, |known| known.restarts),
        retry_at_ms: None,
        reason: known.and_then(|known| known.reason.clone()),
        activity: running.and_then(|(_, started)| activity(&agent.working_dir, started)),
    }
}

/// What the loop in this directory says of itself, if that is of the one which was started then.
pub(crate) fn activity(working_dir: &Path, started_at_ms: u64) -> Option<SleepFile> {
    let file = working_dir.join(ORCHESTRATOR).join(SleepFile::NAME);
    let activity: SleepFile = serde_json::from_slice(&fs::read(file).ok()?).ok()?;
    // What an earlier one has left. The file counts in seconds.
    let started = i64::try_from(started_at_ms / 1000).unwrap_or(i64::MAX);
    (activity.updated_at_epoch >= started).then_some(activity)
}
