//! Agents that run in a loop, and the protocol of their supervisor.

mod activity;
mod event;
mod protocol;
mod status;
mod tick;

pub use activity::{LoopState, SleepFile, TickError};
pub use event::Event;
pub use protocol::{
    Change, Command, ErrorCode, LONGEST_REQUEST, Outcome, Request, Response, Selection, Update,
    VERSION,
};
pub use status::{AgentList, AgentState, AgentStatus, LastError, Status, SupervisorStatus};
pub use tick::{Prompt, TickRecord, TickResult};
