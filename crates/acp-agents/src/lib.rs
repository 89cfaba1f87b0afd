//! Agents that are run by the Agent Client Protocol, by name: Cline, Kimi Code, Qwen Code.
//!
//! Each is an entry: what there is to know of the CLI, how it is started, and its
//! [`Dialect`](teamster_acp::Dialect). A run is a session of one turn
//! ([`OneTurn`](teamster_acp::OneTurn)).
//!
//! What is known of each is in `docs/providers/`.
#![warn(missing_docs)]

mod agent;
mod cline;
mod kimi;
mod mcp_name;
mod qwen;

pub use agent::NamedAgent;
pub use cline::CLINE;
pub use kimi::KIMI;
pub use qwen::QWEN;
