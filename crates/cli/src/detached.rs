//! Detached runs and sessions as the commands see them. Each has its own process, the runner, and a log.

mod handle;
mod questions;
mod result;
mod screen;

pub(crate) use handle::{Entries, RunHandle, turn_of};
pub(crate) use questions::{Questions, Reader};
pub(crate) use result::{result, result_of};
pub(crate) use screen::Screen;
