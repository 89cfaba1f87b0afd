//! Integration tests, in one binary.

mod conformance;
mod sessions;
