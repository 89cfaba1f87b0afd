//! A client of MCP servers, on stdio and over Streamable HTTP.
//!
//! [`Client::connect`] starts a server, or connects to its address, and lists its tools. [`Client::call`] calls a
//! tool. [`Client::end`] ends the session and the process. [`probe`] connects and ends, to test whether a server works, and
//! [`check`] makes a report of that.
//!
//! A server on stdio runs in its own process group. No process of the group remains after the client has ended or was
//! dropped. The processes carry a mark ([`teamster_process::run_mark`]), by which those that left the group are found
//! after a crash.
//!
//! Over HTTP the headers of [`McpTransport::Http`](teamster_core::McpTransport::Http) are sent only to the server's
//! address: redirects are not followed. HTTP with server-sent events, the transport of 2024, is an error.
#![warn(missing_docs)]

mod check;
mod client;
mod error;
mod http;
mod options;
mod output;
mod probe;
mod process;
mod tool_list;

pub use check::{ReportedTool, ServerReport, ServerState, check};
pub use client::{CallResult, Client, FailedConnection};
pub use error::{ClientError, Method};
pub use options::{ConnectOptions, Protocol};
pub use probe::{ProbeAnswer, Probed, probe};
pub use tool_list::ServerTool;

/// The example of the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
