//! Commands about detached runs: each run has a process of its own, its runner, and a log.

pub(crate) mod answer;
pub(crate) mod attach;
pub(crate) mod cancel;
mod questions;
pub(crate) mod requests;
pub(crate) mod wait;

use anyhow::Context;
use teamster_runner::{RunFolder, Runs};

use crate::store;

/// The folder of detached runs, beside the store.
const RUNS: &str = "teamster/runs";

/// The user's detached runs.
pub(crate) fn runs() -> anyhow::Result<Runs> {
    let root = store::state_file(RUNS).context(
        "detached runs have no place to keep their logs: neither XDG_STATE_HOME nor HOME is set to an absolute \
         path",
    )?;
    Ok(Runs::at(root))
}

/// The run of this id, or of the one that begins so.
fn find(id: &str) -> anyhow::Result<RunFolder> {
    Ok(runs()?.find(id)?)
}
