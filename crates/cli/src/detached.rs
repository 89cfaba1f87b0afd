//! Runs and sessions as the commands see them: the log of each, which any number of views can show, and its requests.

mod introduction;
mod owner;
mod prompt;
mod questions;
mod queue;
mod run;
mod screen;
mod signals;
mod totals;
mod view;

pub(crate) use introduction::introduction;
pub(crate) use owner::Owner;
pub(crate) use prompt::UserPrompt;
pub(crate) use questions::Questions;
pub(crate) use queue::report_queue;
pub(crate) use run::{Entries, Run};
pub(crate) use screen::Screen;
pub(crate) use signals::Signals;
pub(crate) use view::View;
