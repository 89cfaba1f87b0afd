//! Any program that prints text, as an agent.
//!
//! [`TextCommand`] is the provider of a command. The answer is its standard output, and its exit code decides whether
//! the run succeeded.
//! [`CommandRuntime`] runs it and reports the changed files of a git work tree. [`CommandSettings`] has patterns that
//! extract other information from the text.
#![warn(missing_docs)]

mod changes;
mod command;
mod decoder;
mod runtime;
mod settings;

pub use command::TextCommand;
pub use runtime::CommandRuntime;
pub use settings::{CommandSettings, ErrorPattern, Pattern};
