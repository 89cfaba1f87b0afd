//! An HTTP API for runs of coding agents.
//!
//! A [`Server`] stands in front of a [`RunService`](teamster_api::RunService), and of a
//! [`MachineService`](teamster_api::MachineService) for everything beside runs. It decides who may do what, owns no run
//! and keeps no state of one, so a restart affects no run: clients continue after the last entry that they received.
//!
//! Every request needs a token ([`Tokens`]), on loopback too. Over a Unix socket, the permissions of its file
//! decide instead, and over the streams of a process ([`Server::serve_stream`]) who may start it. `GET /` is a web page that is compiled in and uses the API like any other client. The routes
//! and the `OpenAPI` document ([`openapi`]) come from the same table.
#![warn(missing_docs)]

mod auth;
mod callbacks;
mod config;
mod events;
mod extract;
mod feed;
mod fields;
mod figures;
mod guard;
mod keys;
mod listen;
mod openapi;
mod operation;
mod outgoing;
mod page;
mod private_file;
mod problem;
mod rights;
mod routes;
mod schema;
mod server;
mod slots;
mod start;
mod state;
mod stdio;
mod token;
mod transport;
mod triggers;
mod web_push;

pub use config::ServerConfig;
pub use listen::{Bound, ListenAddress, ListenError};
pub(crate) use problem::ApiError;
pub use routes::openapi;
pub use server::Server;
pub use token::{OwnerToken, Scope, TokenError, TokenInfo, Tokens};
pub use triggers::Triggers;
