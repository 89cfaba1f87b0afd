#![doc = include_str!("../README.md")]
#![warn(missing_docs)]

mod families;
mod figures;
#[cfg(feature = "listen")]
mod listen;
mod metrics;
mod tracked;

pub use figures::Figure;
#[cfg(feature = "listen")]
pub use listen::serve;
pub use metrics::{CONTENT_TYPE, Metrics, WorkerFigures};
