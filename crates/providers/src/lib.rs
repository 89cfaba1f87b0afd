//! Coding agents by their names: the providers of a build and an application's own ([`Providers`]), their runtimes
//! ([`Runtimes`]), and which of them this machine has (`doctor`).
#![warn(missing_docs)]

#[cfg(feature = "acp-probe")]
pub mod acp_probe;
#[cfg(feature = "doctor")]
pub mod doctor;
mod in_process;
mod providers;
mod reexports;
mod selection;
mod sessions;

pub use in_process::InProcess;
pub use providers::{Providers, create_cli_runtime, provider, providers};
pub use reexports::*;
pub use selection::{AgentConfig, LoopOwner, Runtimes, get_runtime};
pub use sessions::{create_session_runtime, session_providers};
