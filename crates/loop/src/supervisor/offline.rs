//! The status of agents without a supervisor, from the files that it and the loops leave.

use std::cmp::Ordering;
use std::fs;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use super::config::{AgentConfig, Config};
use super::last_start::LastStart;
use super::lock_holder;
use super::protocol::{AgentState as Doing, AgentStatus, LastError, Status};
use super::state::{AgentState, State};
use super::state_folder::StateFolder;
use crate::agent_loop::heartbeat::Heartbeat;
use crate::folder::{read_json, read_last_json_line};
use crate::{ORCHESTRATOR, SleepFile, TickRecord};

/// How the agents are when no supervisor answers.
pub fn status(config: &Config) -> Status {
    let folder = StateFolder::of(&config.file);
    // One that cannot be read is the next supervisor's matter.
    let state = State::read(&folder.state()).ok().flatten();
    let agents = config.agents.iter().map(|agent| {
        let known = state.as_ref().and_then(|state| state.agents.get(&agent.id));
        agent_status(agent, known)
    });
    Status {
        config: config.file.clone(),
        supervisor: None,
        agents: agents.collect(),
        enabled: state.is_none_or(|state| state.enabled),
        warnings: config.warnings.clone(),
    }
}

fn agent_status(agent: &AgentConfig, known: Option<&AgentState>) -> AgentStatus {
    let running = known
        .and_then(|known| known.process.as_ref())
        .map(|process| (process.identity(), process.started_at_ms))
        .filter(|(process, _)| process.is_running())
        .or_else(|| LastStart::running(&agent.working_dir))
        .or_else(|| lock_holder::running(&agent.working_dir));
    let activity = running.and_then(|(_, started)| activity(&agent.working_dir, started));
    AgentStatus {
        id: agent.id.clone(),
        alias: agent.alias.clone(),
        role: agent.role.clone(),
        runtime: agent.runtime.clone(),
        working_dir: agent.working_dir.clone(),
        enabled: known.is_none_or(|known| known.enabled),
        state: match running {
            Some(_) => self::running(activity.as_ref()),
            None => Doing::Stopped,
        },
        pid: running.map(|(process, _)| process.pid()),
        started_at_ms: running.map(|(_, started)| started),
        removed: false,
        adopted: false,
        restarts: known.map_or(0, |known| known.restarts),
        retry_at_ms: None,
        reason: known.and_then(|known| known.reason.clone()),
        stopped_in_order: known.is_some_and(|known| known.stopped_in_order),
        last_error: last_error(
            activity.as_ref(),
            known.and_then(|known| known.last_error.as_ref()),
        ),
        heartbeat_ms: heartbeat(
            &agent.working_dir,
            running.map(|(process, _)| process.pid()),
        ),
        last_tick: last_tick(&agent.working_dir),
        status: own_status(&agent.working_dir),
        activity,
    }
}

/// The state of a loop that runs and has this status.
pub(crate) fn running(activity: Option<&SleepFile>) -> Doing {
    match activity.and_then(|activity| activity.last_error.as_ref()) {
        Some(error) if error.is_limit() => Doing::Limited,
        Some(_) => Doing::Failing,
        None => Doing::Running,
    }
}

/// The last sign of life of the loop with this process id.
pub(crate) fn heartbeat(working_dir: &Path, pid: Option<u32>) -> Option<u64> {
    let file = working_dir.join(ORCHESTRATOR).join(Heartbeat::NAME);
    let heartbeat: Heartbeat = read_json(&file)?;
    (Some(heartbeat.pid) == pid).then(|| u64::try_from(heartbeat.epoch_ms).ok())?
}

/// The last tick of the agent in this directory.
pub(crate) fn last_tick(working_dir: &Path) -> Option<TickRecord> {
    read_last_json_line(&working_dir.join(ORCHESTRATOR).join(TickRecord::NAME))
}

/// The status of the agent in this directory, written by itself.
pub(crate) fn own_status(working_dir: &Path) -> Option<serde_json::Value> {
    const LONGEST: u64 = 64 << 10;
    let file = working_dir.join("status.json");
    let found = fs::metadata(&file).ok()?;
    (found.is_file() && found.len() <= LONGEST).then(|| read_json(&file))?
}

/// The last error of an agent: that of its tick, or else how its loop ended.
pub(crate) fn last_error(
    activity: Option<&SleepFile>,
    of_the_loop: Option<&LastError>,
) -> Option<LastError> {
    let of_the_tick = activity.and_then(|activity| activity.last_error.as_ref());
    let of_the_tick = of_the_tick.map(|error| LastError {
        kind: Some(error.kind),
        message: error.message.clone(),
        at_ms: u64::try_from(error.at_epoch).map_or(0, |seconds| seconds.saturating_mul(1000)),
    });
    of_the_tick.or_else(|| of_the_loop.cloned())
}

/// The status of the loop in this directory, written by itself, if that is of the one which was started then.
pub(crate) fn activity(working_dir: &Path, started_at_ms: u64) -> Option<SleepFile> {
    let file = working_dir.join(ORCHESTRATOR).join(SleepFile::NAME);
    let activity: SleepFile = read_json(&file)?;
    // Not what an earlier one has left. The file counts in seconds.
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
    fn what_an_earlier_loop_has_left_is_not_taken_for_that_of_this_one() {
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
