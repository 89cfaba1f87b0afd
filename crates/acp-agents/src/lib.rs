//! Providers for Cline, Kimi Code and Qwen Code, which run by the Agent Client Protocol.
//!
//! Each is a [`NamedAgent`]: facts about the CLI, its arguments and its [`Dialect`](teamster_acp::Dialect). A run is
//! a session of one turn (`teamster_process::OneTurn`).
//!
//! `docs/providers/` describes each agent.
#![warn(missing_docs)]

mod agent;
mod cline;
mod kimi;
mod mcp_name;
mod qwen;
#[cfg(test)]
mod recording;
mod words;

pub use agent::NamedAgent;
pub use cline::CLINE;
pub use kimi::KIMI;
pub use qwen::QWEN;
