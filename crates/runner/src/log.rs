//! The log of a run on disk.

mod frames;
mod line;
mod reader;
mod search;
mod tail;
mod writer;

pub use line::LogLine;
pub use reader::RunLogReader;
pub(crate) use tail::last_entry;
pub use writer::{LogLimits, Position, RunLogWriter};

/// The name of the log in a run's folder.
pub(crate) const FILE: &str = "events.ndjson";
