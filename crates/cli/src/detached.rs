//! Commands for detached runs. Each run has its own process, the runner, and a log.

pub(crate) mod answer;
pub(crate) mod attach;
pub(crate) mod cancel;
mod handle;
mod prompt;
mod questions;
pub(crate) mod requests;
pub(crate) mod say;
mod screen;
pub(crate) mod wait;

pub(crate) use handle::{Entries, RunHandle};
