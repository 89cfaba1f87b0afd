//! The history of runs.

mod forget;
mod record;
mod state;

pub use forget::{ForgetRuns, Forgotten};
pub use record::{HistoryList, RunCursor, RunFilter, RunRecord};
pub use state::{RunState, Word};
