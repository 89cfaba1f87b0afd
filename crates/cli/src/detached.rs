//! Detached runs and sessions as the commands see them. Each has its own process, the runner, and a log.

mod questions;
mod result;
mod run;
mod screen;

pub(crate) use questions::{Questions, Reader};
pub(crate) use result::result_of;
pub(crate) use run::{Entries, Run, turn_of, was_refused};
pub(crate) use screen::Screen;
