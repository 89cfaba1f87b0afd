//! MCP servers for coding-agent CLIs.
//!
//! - [`config`]: reads servers from the `mcpServers` JSON that users already have.
//! - [`source`]: reads servers from several of these, and as a person types them.
//! - [`edit`]: inserts entries into the CLIs' own configuration files and removes them, without changing other bytes.
//! - [`lease`]: makes such a change for the time of a run. Concurrent runs share it, and it is always undone.
//! - [`private_home`]: makes such a change in a copy of the CLI's home, for CLIs that read their configuration only
//!   there.
//!
//! The providers decide how a CLI gets its servers. This crate has no code for particular CLIs.
#![warn(missing_docs)]

pub mod config;
pub mod edit;
pub mod lease;
pub mod private_home;
pub mod source;
