//! Any program that prints text, as an agent.
//!
//! [`TextCommand`] is a provider made of a command: its standard output is the answer, its exit code is
//! the end. [`CommandRuntime`] runs it and reports which files of a git work tree have changed.
//! Patterns ([`CommandSettings`]) extract other information from the text.
#![warn(missing_docs)]

mod changes;
mod command;
mod decoder;
mod runtime;
mod settings;

pub use command::TextCommand;
pub use runtime::CommandRuntime;
pub use settings::{CommandSettings, ErrorPattern, Pattern};
