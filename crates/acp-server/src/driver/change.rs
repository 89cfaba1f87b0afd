//! Changes of a running session.

use std::sync::{Arc, Mutex};

use teamster_api::{Command, ServiceError};
use teamster_core::PermissionMode;
use teamster_core::sync::lock;

use super::live::Live;
use super::repeat::is_done;
use crate::Setup;

/// The permission mode of a running session. It is not known while a change is on its way.
#[derive(Debug, Clone)]
pub(super) struct Mode(Arc<Mutex<Option<PermissionMode>>>);

impl Mode {
    pub(super) fn new(mode: PermissionMode) -> Self {
        Self(Arc::new(Mutex::new(Some(mode))))
    }

    pub(super) fn is(&self, mode: PermissionMode) -> bool {
        *lock(&self.0) == Some(mode)
    }

    /// Sets what is known, and returns what was.
    pub(super) fn set(&self, mode: Option<PermissionMode>) -> Option<PermissionMode> {
        std::mem::replace(&mut lock(&self.0), mode)
    }
}

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
    if !live.mode.is(target.mode) {
        live.mode.set(None);
        if !is_done(live.run.set_permission(target.mode).await)? {
            return Ok(false);
        }
        live.mode.set(Some(target.mode));
    }
    now.mode = target.mode;
    Ok(true)
}
