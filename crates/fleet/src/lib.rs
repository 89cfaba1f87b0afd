#![doc = include_str!("../README.md")]
#![warn(missing_docs)]

mod files;
mod fleet;
mod follow;
mod frame;
mod layout;
mod names;
mod presence;
pub mod protocol;
mod record;
mod records;
mod runs;
mod setup;
mod wire;
#[cfg(feature = "worker")]
mod worker;

pub use fleet::{Fleet, FleetOptions};
pub use layout::FleetLimits;
pub use presence::{PresentAgent, PresentWorker};
pub use runs::{DEFAULT_POOL, FleetRuns, Rerun};
pub use setup::{Finding, FindingVerdict};
#[cfg(feature = "worker")]
pub use worker::{Worker, WorkerConfig, WorkerPolicy};
