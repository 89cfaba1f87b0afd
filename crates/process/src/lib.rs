//! The subprocess engine.
#![warn(missing_docs)]

mod config;

pub use config::{EnvPolicy, RuntimeConfig};
