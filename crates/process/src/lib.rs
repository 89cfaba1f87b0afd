//! The subprocess engine.
#![warn(missing_docs)]

mod config;
mod driver;
mod engine;
pub mod framing;
mod guard;
mod launch;
mod leftovers;
mod os;
mod program;
mod queue;
mod runtime;
mod spawn;
mod spill;
mod stderr_tail;
mod stop;
mod watchdog;

pub use config::{EnvPolicy, RuntimeConfig};
pub use leftovers::{Leftover, leftovers};
pub use program::find_program;
pub use runtime::CliRuntime;
