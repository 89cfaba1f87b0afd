//! Live sessions with any agent that speaks the Agent Client Protocol (ACP).
//!
//! The protocol is JSON-RPC, one message a line, on the agent's stdin and stdout. [`AcpProtocol`] is its
//! client's side as a [`SessionProtocol`](teamster_core::provider::SessionProtocol): pure, without a process. What
//! differs between agents is a [`Dialect`]; the options of a session are its
//! [`Settings`].
//!
//! What is written is made of the types of `agent-client-protocol-schema`. What agents print is read by
//! structs of this crate: agents print more than those types hold (figures, models), and a message with
//! one field that is not as it should be has to be understood all the same.
//!
//! Any agent that speaks it is an [`AcpAgent`], by the command that starts it. The crates of providers use
//! the rest.
//!
//! How it maps to events is in `docs/acp.md`.
#![warn(missing_docs)]

mod agent;
mod cost;
mod dialect;
mod errors;
mod one_turn;
mod peer;
mod probe;
mod protocol;
mod recorded;
#[cfg(feature = "replay")]
pub mod replay;
mod settings;
mod tool;
mod turn;
mod wire;
mod write;

pub use agent::AcpAgent;
pub use cost::SessionCost;
pub use dialect::{Chunk, Dialect, Figures, Next, Plain, Words};
pub use errors::{During, RpcError};
pub use one_turn::OneTurn;
pub use probe::{Introduce, Introduction};
pub use protocol::AcpProtocol;
pub use recorded::RecordedRun;
pub use settings::{Approve, ModeSwitch, SESSION_CAPABILITIES, Settings};
pub use tool::{PermissionOption, Tool, ToolCall, ToolEnd};
pub use turn::TurnSoFar;
