//! Integration tests of this crate, in one program.

mod conformance;
mod engine;
mod fake_agent;
mod mock_runtime;
mod replay;
mod run_service;
mod stand_in;
