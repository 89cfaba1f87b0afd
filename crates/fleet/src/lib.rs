#![doc = include_str!("../README.md")]
#![warn(missing_docs)]

mod check;
mod clock;
mod files;
mod fleet;
mod follow;
mod frame;
mod headings;
mod holds;
mod homes;
mod large;
mod layout;
mod login;
mod messages;
mod names;
mod presence;
pub mod protocol;
mod record;
mod records;
mod roles;
mod runs;
mod setup;
mod status;
mod why;
mod wire;
mod worker;

pub use check::{Finding, FindingVerdict};
pub use fleet::{Fleet, FleetOptions};
pub use holds::Hold;
pub use layout::FleetLimits;
pub use presence::{LOGGED_OUT, NOT_ALLOWED, PresentAgent, PresentWorker};
pub use roles::{FleetLogin, FleetRole, FleetUser, server_accounts};
pub use runs::{DEFAULT_POOL, FleetRuns, Rerun};
pub use status::{FleetStatus, QueueOf, StatusReader};
pub use worker::{Worker, WorkerConfig, WorkerPolicy};
