//! Chapters on the concepts of the library. These modules have no code.
//!
//! | Chapter | Read it to |
//! |---|---|
//! | [`events`] | consume a stream: order, retractions, the end |
//! | [`stopping`] | abort a run, and know what is alive afterwards |
//! | [`sessions`] | hold a conversation with one process |
#![cfg_attr(
    feature = "mcp-files",
    doc = "| [`leases`] | understand temporary changes of a user's configuration file |"
)]

pub mod events;
#[cfg(feature = "mcp-files")]
pub mod leases;
pub mod sessions;
pub mod stopping;
