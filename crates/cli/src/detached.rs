//! Detached runs and sessions as the commands see them. Each has its own process, the runner, and a log.

mod questions;
mod run;
mod screen;

pub(crate) use questions::{Questions, Reader};
pub(crate) use run::{Entries, Run, was_refused};
pub(crate) use screen::Screen;
