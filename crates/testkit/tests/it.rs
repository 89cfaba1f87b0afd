//! The tests of this crate that use it as others do, in one program.

mod conformance;
mod engine;
mod fake_agent;
mod mock_runtime;
mod replay;
mod stand_in;
