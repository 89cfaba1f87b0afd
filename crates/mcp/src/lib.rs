//! MCP servers for coding-agent CLIs.
//!
//! - [`config`]: servers from the `mcpServers` JSON that users already have.
//! - [`edit`]: entries in and out of the CLIs' own configuration files, with every other byte kept.
//! - [`lease`]: such a change for the time of a run, shared by concurrent runs and always undone.
//! - [`private_home`]: such a change in a copy of the CLI's home, for CLIs that find their configuration only
//!   there.
//!
//! How a CLI gets its servers is up to its provider; this crate knows no CLI.
#![warn(missing_docs)]

pub mod config;
pub mod edit;
pub mod lease;
#[cfg(unix)]
pub mod private_home;
