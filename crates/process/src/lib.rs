//! The subprocess engine.
#![warn(missing_docs)]

mod config;
pub mod framing;
mod launch;
mod leftovers;
mod os;
mod program;
mod runtime;
mod spawn;

pub use config::{EnvPolicy, RuntimeConfig};
pub use leftovers::{Leftover, leftovers};
pub use program::find_program;
pub use runtime::CliRuntime;
