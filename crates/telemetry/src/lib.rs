#![doc = include_str!("../README.md")]
#![warn(missing_docs)]

mod attributes;
mod collector;
mod context;
mod figures;
mod settings;
mod spans;
mod telemetry;
mod warning;

pub use teamster_metrics::Metrics;
pub use telemetry::{END_LIMIT, Telemetry};
