//! Run of an agent's current or last tick.

use std::path::{Path, PathBuf};

use teamster_api::agents::TickRecord;

use crate::ORCHESTRATOR;
use crate::folder::{read_json, read_last_json_line};
use crate::session_file::SessionFile;
use crate::supervisor::Config;

/// Run of an agent's tick.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AgentRun {
    /// The run's id.
    pub run_id: String,
    /// The number of the tick since the start of its loop.
    pub tick: u64,
    /// The tick is in progress, or was when the loop was killed. Otherwise it is the last tick that ended.
    pub is_current: bool,
}

/// Returns the run of the tick in progress of the agent in this directory, or else of its last tick. `None` if
/// no tick has a log, or if this is no agent's directory.
pub fn agent_run(directory: &Path) -> Option<AgentRun> {
    let folder = directory.join(ORCHESTRATOR);
    let session: Option<SessionFile> = read_json(&folder.join(SessionFile::NAME));
    if let Some(tick) = session.and_then(|file| file.tick)
        && let Some(run_id) = tick.run_id
    {
        return Some(AgentRun {
            run_id,
            tick: tick.tick,
            is_current: true,
        });
    }
    let last: TickRecord = read_last_json_line(&folder.join(TickRecord::NAME))?;
    Some(AgentRun {
        run_id: last.run_id?,
        tick: last.tick,
        is_current: false,
    })
}

/// Returns the directory of an agent, by its path or by its id in a supervisor's configuration, which may be missing.
pub fn agent_directory(name: &str, config: &Path) -> Option<PathBuf> {
    let directory = Path::new(name);
    if directory.join(ORCHESTRATOR).is_dir() {
        return Some(directory.to_owned());
    }
    // A configuration that cannot be used has no agents.
    let config = Config::read(config).ok()?;
    let agent = config.agents.into_iter().find(|agent| agent.id == name)?;
    Some(agent.working_dir)
}
