//! The agent's side of the Agent Client Protocol, version 1: the mirror of `AcpProtocol` in `teamster-acp`.
//!
//! [`AcpServer`] is a pure state machine. It takes the lines of an editor ([`AcpServer::line`]) and the entries of
//! the logs of sessions ([`AcpServer::entry`]), and gives lines for the editor and [`Action`]s for its host in an
//! [`Output`]. The host opens sessions, sends their prompts and answers; it does no protocol.
//!
//! The log of a session is all that an editor is shown: a session that is loaded shows the same as one that is
//! played.
#![warn(missing_docs)]

mod action;
mod ask;
mod catalog;
mod diff;
mod errors;
mod output;
mod prompt;
mod requests;
mod server;
mod session;
mod tool_call;
mod updates;

pub use action::{Action, Found, Prompt, SessionPage, SessionSummary, Settings, Setup, Ticket};
pub use catalog::{AgentEntry, Catalog, Choice};
pub use output::Output;
pub use server::AcpServer;
