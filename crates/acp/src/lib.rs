//! Live sessions with any agent that speaks the Agent Client Protocol (ACP).
//!
//! The protocol is JSON-RPC on the agent's stdin and stdout, one message per line. [`AcpProtocol`] implements its
//! client side as a [`SessionProtocol`](teamster_core::provider::SessionProtocol); it does no I/O. A [`Dialect`] has
//! the differences between agents. [`AcpSettings`] has the options of a session.
//!
//! Messages are written and read by this crate's own structs. Agents send fields that the protocol's schema lacks
//! (usage, models), and a message with one malformed field must still be readable. Tests read what is written with the
//! types of `agent-client-protocol-schema`.
//!
//! [`AcpAgent`] runs any ACP agent, given the command that starts it. The other items are for provider crates.
//!
//! `docs/acp.md` describes the mapping of messages to events.
#![warn(missing_docs)]

mod agent;
mod cost;
mod dialect;
mod errors;
mod known;
mod peer;
mod probe;
mod protocol;
mod question;
mod recorded;
#[cfg(feature = "replay")]
pub mod replay;
mod settings;
mod tokens;
mod tool;
mod turn;
mod wire;
mod write;

pub use agent::AcpAgent;
pub use cost::{SessionCost, SessionOrigin};
pub use dialect::{Announcement, Chunk, Dialect, Figures, HeldText, NextUpdate, PlainDialect};
pub use errors::{RequestKind, RpcError};
pub use probe::{Probe, ProbeResponses};
pub use protocol::AcpProtocol;
pub use question::{Choice, Question};
pub use recorded::RecordedRun;
pub use settings::{AcpSettings, Approve, ModeSwitch, SESSION_CAPABILITIES};
pub use tokens::SessionTokens;
pub use tool::{PermissionOption, Tool, ToolCall, ToolEnd, file_change};
pub use turn::TurnSoFar;
