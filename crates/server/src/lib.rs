//! An HTTP API for detached runs of coding agents.
//!
//! A [`Server`] reads the logs of [`teamster_runner`] and sends commands to the runners. It owns no run and keeps
//! no state of one, so its restart costs none anything: a client continues behind the last entry that it has seen.
//! What only the program can do, such as starting a run, is its [`Backend`].
//!
//! Every request needs a token ([`Tokens`]), on loopback too; over a Unix socket, the permissions of its file
//! decide. `GET /` is a page for a browser: files that are compiled in, and a client of the API like any other. The
//! `OpenAPI` document is made from the table from which the routes are made ([`openapi`]).
#![warn(missing_docs)]

mod auth;
mod backend;
mod callbacks;
mod config;
mod events;
mod extract;
mod feed;
mod guard;
mod index;
mod listen;
mod openapi;
mod operation;
mod page;
mod problem;
mod routes;
mod server;
mod start;
mod token;
mod view;

pub use backend::{Backend, BackendError, ForgetRuns, Forgotten, UsageQuery};
pub use config::ServerConfig;
pub use listen::{Bound, ListenAddress, ListenError};
pub use openapi::openapi;
pub use problem::{Problem, ProblemCode};
pub use server::Server;
pub use start::{Permission, StartRun, StartSession, Worktree};
pub use token::{OwnerToken, Scope, TokenError, TokenInfo, Tokens};
pub use view::{
    ProviderFacts, ProviderLogin, ProviderReport, RunList, RunSummary, RunView, ViewState,
};
