//! The commands: each has its arguments in `args.rs` of its folder.

pub(crate) mod acp;
pub(crate) mod agents;
pub(crate) mod answer;
pub(crate) mod attach;
pub(crate) mod cancel;
pub(crate) mod chat;
pub(crate) mod completions;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod r#loop;
pub(crate) mod man;
pub(crate) mod mcp;
pub(crate) mod mock_model;
pub(crate) mod requests;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod say;
pub(crate) mod serve;
pub(crate) mod supervise;
pub(crate) mod token;
pub(crate) mod trust;
pub(crate) mod usage;
pub(crate) mod wait;
