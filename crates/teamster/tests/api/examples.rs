//! Runs the examples, each of which has its own test.

#[path = "../../examples/fallback_policy.rs"]
mod fallback_policy;
#[path = "../../examples/fifty_at_once.rs"]
mod fifty_at_once;
#[path = "../../examples/own_provider.rs"]
mod own_provider;
#[path = "../../examples/runtime_under_test.rs"]
mod runtime_under_test;
#[path = "../../examples/session_permissions.rs"]
mod session_permissions;
#[cfg(feature = "typed")]
#[path = "../../examples/typed_answer.rs"]
mod typed_answer;
#[path = "../../examples/web_handler.rs"]
mod web_handler;
