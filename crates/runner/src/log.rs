//! Log of a run on disk.

mod frames;
mod reader;
mod search;
mod tail;
mod watch;
mod writer;

use std::path::Path;

use teamster_core::Id;

pub use reader::RunLogReader;
pub(crate) use tail::last_entry;
pub(crate) use watch::Watch;
pub use writer::{LogLimits, Position, RunLogWriter};

/// Returns the id of the run in this folder, which is the folder's name.
pub(crate) fn run_id_of(folder: &Path) -> Id {
    let name = folder.file_name().unwrap_or_default();
    name.to_string_lossy().as_ref().into()
}

/// Name of the log in a run's folder.
pub(crate) const FILE: &str = "events.ndjson";
