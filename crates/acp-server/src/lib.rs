//! The agent's side of the Agent Client Protocol, version 1: the counterpart of `AcpProtocol` in `teamster-acp`.
//!
//! [`EditorServer`] serves the sessions of any `RunService` to an editor: it drives [`AcpServer`], which is
//! for those who have no such service.
//!
//! [`AcpServer`] is a pure state machine. Its inputs are lines from an editor ([`AcpServer::line`]) and entries of
//! session logs ([`AcpServer::entry`]). Its [`Output`] holds lines for the editor and [`Action`]s for the host. The
//! host opens sessions, sends prompts and delivers answers; it handles no protocol messages.
//!
//! The editor sees only what is in a session's log, so a loaded session looks the same as a live one.
#![warn(missing_docs)]

mod action;
mod ask;
mod catalog;
mod driver;
mod errors;
mod output;
mod prompt;
mod requests;
mod server;
mod session;
mod tool_call;
mod updates;

pub use action::{
    Action, EditorSettings, Found, Prompt, SessionPage, SessionSummary, Setup, Ticket,
};
pub use catalog::{AgentEntry, Catalog, Choice};
pub use driver::{
    AskOffers, CliFiles, Disconnect, EditorServer, FolderTransfer, LogOut, OwnMessage, OwnSession,
    SentFolder,
};
pub use output::Output;
pub use server::AcpServer;
