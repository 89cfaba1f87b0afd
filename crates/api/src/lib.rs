#![doc = include_str!("../README.md")]
#![warn(missing_docs)]

mod check;
mod kept;
mod path;
#[cfg(feature = "schema")]
mod schema;
mod spec;
mod trusted;

pub use kept::{KeptSpec, KeptTexts};
#[cfg(feature = "schema")]
pub use schema::SESSION_KEY_PATTERN;
pub use spec::{RunSpec, SessionSpec, Spec, Worktree};
pub use trusted::Trusted;

/// Returns whether a field has its default, which is not written.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
