//! The long-running agent loop, and the supervisor of many.
#![warn(missing_docs)]

pub mod supervisor;
