//! The log of a run: its entries, and their lines in a file or a stream.

mod entry;
mod event;
mod lenient;
mod line;
mod outcome;

pub use entry::{LifecycleEntry, RunLogEntry};
pub use event::{Next, RunEvent};
pub use line::LogLine;
pub use outcome::{Attempt, Outcome};
