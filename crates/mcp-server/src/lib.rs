#![doc = include_str!("../README.md")]
#![warn(missing_docs)]

mod budget;
mod handler;
mod limits;
mod progress;
mod report;
mod runs;
mod schema;
mod server;
mod tools;

pub use limits::{Limit, Limits};
pub use server::AgentServer;
