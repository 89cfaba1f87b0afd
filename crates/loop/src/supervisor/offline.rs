//! Status of agents without a running supervisor, from the files of supervisor and loops.

use std::cmp::Ordering;
use std::fs;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use teamster_api::agents::{
    AgentState as ReportedState, AgentStatus, LastError, SleepFile, Status, SupervisorStatus,
    TickRecord,
};
use teamster_process::ProcessIdentity;

use super::config::{AgentConfig, Config};
use super::last_start::LastStart;
use super::lock_holder;
use super::state::{AgentState, State};
use super::state_folder::StateFolder;
use crate::ORCHESTRATOR;
use crate::agent_loop::heartbeat::Heartbeat;
use crate::folder::{read_json, read_last_json_line};

/// Returns the status of the agents while no supervisor answers.
pub fn status(config: &Config) -> Status {
    let folder = StateFolder::of(&config.file);
    // The next supervisor reports a state file that cannot be read.
    let state = State::read(&folder.state()).ok().flatten();
    let agents = config.agents.iter().map(|agent| {
        let known = state.as_ref().and_then(|state| state.agents.get(&agent.id));
        agent_status(agent, known)
    });
    let supervisor = lock_holder::supervisor(&folder.lock()).map(|(process, started_at_ms)| {
        let mut supervisor = SupervisorStatus::new(process.pid(), started_at_ms);
        supervisor.not_answering = true;
        supervisor
    });
    let mut status = Status::new(&*config.file, agents.collect());
    status.supervisor = supervisor;
    status.enabled = state.as_ref().is_none_or(|state| state.enabled);
    status.warnings.clone_from(&config.warnings);
    status
}

fn agent_status(agent: &AgentConfig, known: Option<&AgentState>) -> AgentStatus {
    let running = known
        .and_then(|known| known.process.as_ref())
        .map(|process| (process.identity(), process.started_at_ms))
        .filter(|(process, _)| process.is_running())
        .or_else(|| LastStart::running(&agent.working_dir))
        .or_else(|| lock_holder::running(&agent.working_dir));
    let activity = running.and_then(|(_, started)| activity(&agent.working_dir, started));
    let state = match running {
        Some((process, _)) => self::running(process, activity.as_ref()),
        None => ReportedState::Stopped,
    };
    let mut status = status_of(agent, state);
    status.enabled = known.is_none_or(|known| known.enabled);
    status.pid = running.map(|(process, _)| process.pid());
    status.started_at_ms = running.map(|(_, started)| started);
    status.restarts = known.map_or(0, |known| known.restarts);
    status.reason = known.and_then(|known| known.reason.clone());
    status.stopped_in_order = known.is_some_and(|known| known.stopped_in_order);
    let of_the_loop = known.and_then(|known| known.last_error.as_ref());
    status.last_error = last_error(activity.as_ref(), of_the_loop);
    status.heartbeat_ms = heartbeat(&agent.working_dir, status.pid);
    status.activity = activity;
    status
}

/// Returns the status of an agent as far as its configuration and the files in its directory have it.
pub(crate) fn status_of(agent: &AgentConfig, state: ReportedState) -> AgentStatus {
    let mut status = AgentStatus::new(&*agent.id, &*agent.working_dir, state);
    status.alias.clone_from(&agent.alias);
    status.role.clone_from(&agent.role);
    status.runtime.clone_from(&agent.runtime);
    status.last_tick = last_tick(&agent.working_dir);
    status.status = own_status(&agent.working_dir);
    status
}

/// Returns the state of a running loop with this process and status.
pub(crate) fn running(process: ProcessIdentity, activity: Option<&SleepFile>) -> ReportedState {
    if process.is_stopped() {
        return ReportedState::Suspended;
    }
    match activity.and_then(|activity| activity.last_error.as_ref()) {
        Some(error) if error.is_limit() => ReportedState::Limited,
        Some(_) => ReportedState::Failing,
        None => ReportedState::Running,
    }
}

/// Returns the last heartbeat of the loop with this process id, in milliseconds since the Unix epoch.
pub(crate) fn heartbeat(working_dir: &Path, pid: Option<u32>) -> Option<u64> {
    let file = working_dir.join(ORCHESTRATOR).join(Heartbeat::NAME);
    let heartbeat: Heartbeat = read_json(&file)?;
    (Some(heartbeat.pid) == pid).then(|| u64::try_from(heartbeat.epoch_ms).ok())?
}

pub(crate) fn last_tick(working_dir: &Path) -> Option<TickRecord> {
    read_last_json_line(&working_dir.join(ORCHESTRATOR).join(TickRecord::NAME))
}

/// Returns the status that the agent in this directory wrote itself.
pub(crate) fn own_status(working_dir: &Path) -> Option<serde_json::Value> {
    const LONGEST: u64 = 64 << 10;
    let file = working_dir.join("status.json");
    let found = fs::metadata(&file).ok()?;
    (found.is_file() && found.len() <= LONGEST).then(|| read_json(&file))?
}

/// Returns the last error of an agent: that of its tick, or else that of its loop.
pub(crate) fn last_error(
    activity: Option<&SleepFile>,
    of_the_loop: Option<&LastError>,
) -> Option<LastError> {
    let of_the_tick = activity.and_then(|activity| activity.last_error.as_ref());
    let of_the_tick = of_the_tick.map(|error| {
        let at_ms = u64::try_from(error.at_epoch).map_or(0, |seconds| seconds.saturating_mul(1000));
        let mut last = LastError::new(&*error.message, at_ms);
        last.kind = Some(error.kind);
        last
    });
    of_the_tick.or_else(|| of_the_loop.cloned())
}

/// Returns the status that the loop in this directory wrote, if it was written after this start time.
pub(crate) fn activity(working_dir: &Path, started_at_ms: u64) -> Option<SleepFile> {
    let file = working_dir.join(ORCHESTRATOR).join(SleepFile::NAME);
    let activity: SleepFile = read_json(&file)?;
    // A file of an earlier loop does not count. Its time has a resolution of seconds.
    let started = i64::try_from(started_at_ms / 1000).unwrap_or(i64::MAX);
    let is_later = match activity.updated_at_epoch.cmp(&started) {
        Ordering::Less => false,
        Ordering::Equal => {
            let written = fs::metadata(&file).and_then(|it| it.modified()).ok()?;
            written >= UNIX_EPOCH + Duration::from_millis(started_at_ms)
        }
        Ordering::Greater => true,
    };
    is_later.then_some(activity)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::folder::write_json;

    #[test]
    fn the_status_of_an_earlier_loop_is_ignored() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(ORCHESTRATOR).join(SleepFile::NAME);
        fs::create_dir(dir.path().join(ORCHESTRATOR)).unwrap();
        let written = Timestamp::from_millisecond(1_700_000_000_500).unwrap();
        let content = SleepFile::sleeping(60, "idle".to_owned(), written);
        write_json(&file, &content).unwrap();
        let file = fs::File::options().append(true).open(&file).unwrap();
        file.set_modified(written.into()).unwrap();
        for (started, is_its_own) in [
            (1_699_999_999_999, true),
            (1_700_000_000_400, true),
            (1_700_000_000_600, false),
            (1_700_000_001_000, false),
        ] {
            let found = activity(dir.path(), started);
            assert_eq!(found.is_some(), is_its_own, "{started}");
        }
    }
}
