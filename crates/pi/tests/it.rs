//! The tests of this crate that need no private item.
mod conformance;
mod sessions;
