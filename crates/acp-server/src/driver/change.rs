//! Changes of a running session.

use teamster_api::{Command, ServiceError};

use super::live::Live;
use super::repeat::is_done;
use crate::Setup;

/// Applies a setup to a running session. Returns `false` if it needs a new process. Fails if the service cannot be
/// reached: the session may still be there.
pub(super) async fn apply(live: &mut Live, setup: &Setup) -> Result<bool, ServiceError> {
    let begun = &live.setup;
    let is_there = begun.cwd == setup.cwd
        && begun.add_dirs == setup.add_dirs
        && begun.mcp_servers == setup.mcp_servers;
    let target = &setup.settings;
    if !is_there || target.effort != begun.settings.effort {
        return Ok(false);
    }
    let now = &mut live.setup.settings;
    if target.model != now.model {
        let Some(model) = target.model.clone() else {
            return Ok(false);
        };
        let set = Command::SetModel { model };
        if !is_done(live.run.send(set).await)? {
            return Ok(false);
        }
        now.model.clone_from(&target.model);
    }
    if target.mode != now.mode {
        if !is_done(live.run.set_permission(target.mode).await)? {
            return Ok(false);
        }
        now.mode = target.mode;
    }
    Ok(true)
}
