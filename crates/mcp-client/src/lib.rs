//! A client of MCP servers on stdio.
//!
//! [`Client::connect`] starts a server and asks it for its tools, [`Client::call`] calls one, [`Client::end`] ends
//! the server. [`probe`] does the first and the last, to see whether a server works.
//!
//! A server runs in a process group of its own. Nothing of the group is left when the client has ended or was
//! dropped. Its processes carry a mark ([`teamster_process::run_mark`]), by which those that left the group are
//! found after a crash.
//!
//! A server that is reached by HTTP is not contacted: that is an error here.
#![warn(missing_docs)]

mod client;
mod error;
mod options;
mod output;
mod probe;

pub use client::{CallResult, Client, FailedConnection, ServerTool};
pub use error::{ClientError, Method};
pub use options::{ConnectOptions, Protocol};
pub use probe::{ProbeAnswer, Probed, probe};

/// The example of the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
