//! Integration tests of this crate, in one program.
mod conformance;
mod sessions;
