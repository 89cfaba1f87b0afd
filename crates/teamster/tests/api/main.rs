//! Tests of the public API, as applications use it.
#![expect(clippy::unwrap_used, reason = "also in the helpers of tests")]

#[cfg(all(feature = "blocking", feature = "typed"))]
mod answers;
mod dependencies;
mod errors;
mod examples;
mod guesses;
mod own_provider;
#[cfg(all(feature = "doctor", feature = "embedded", feature = "loop"))]
mod settings;
