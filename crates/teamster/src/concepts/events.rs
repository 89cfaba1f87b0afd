//! Events and their grammar.
//!
//! A run is a stream of [`AgentEvent`](crate::AgentEvent)s.
//! It is the same for every agent, with retries and without, live and replayed.
//!
//! # Guarantees
//!
//! 1. [`Done`](crate::AgentEvent::Done) comes exactly once and last. A missing program, a
//!    crash and a timeout are an [`Error`](crate::AgentEvent::Error) and then `Done`; the stream itself never
//!    fails.
//! 2. A [`ToolResult`](crate::AgentEvent::ToolResult) follows the [`ToolUse`](crate::AgentEvent::ToolUse) with
//!    its id. An id occurs once as a use and at most once as a result. Calls that never ended are listed in
//!    the result.
//! 3. The [`Text`](crate::AgentEvent::Text) of the main agent that was not retracted, concatenated, is the
//!    text of the result.
//! 4. Events come as they arrive: nothing waits for the end of the process.
//!
//! The engine enforces the first three for every provider, and
//! [`grammar::check`](teamster_core::provider::grammar::check) verifies them in tests of your own.
//!
//! # Retractions
//!
//! A model service may fail in the middle of an answer, and the CLI retries the request.
//! The text so far is then withdrawn: [`Retract`](crate::AgentEvent::Retract) names its message.
//! A consumer that shows text removes that message; one that needs only the answer reads the result.
//!
//! ```
//! use teamster::{AgentEvent, AgentRuntime, ExecuteParams};
//! use teamster_testkit::mock_runtime::{MockRuntime, Script};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! let script = Script::new().text_in("m1", "Half").retract("m1").text("Whole").completed();
//! let runtime = MockRuntime::new("claude").run(script);
//!
//! let mut events = runtime.execute(ExecuteParams::new("hi"));
//! let mut shown: Vec<(Option<String>, String)> = Vec::new();
//! let mut result = None;
//! while let Some(event) = events.next().await {
//!     match event {
//!         AgentEvent::Text(text) => {
//!             shown.push((text.message_id.map(|id| id.to_string()), text.text.to_string()));
//!         }
//!         AgentEvent::Retract(retract) => {
//!             let withdrawn = retract.message_id.to_string();
//!             shown.retain(|(id, _)| id.as_ref() != Some(&withdrawn));
//!         }
//!         AgentEvent::Done(done) => result = Some(done.result),
//!         _ => {}
//!     }
//! }
//! let shown: String = shown.into_iter().map(|(_, text)| text).collect();
//! assert_eq!(shown, "Whole");
//! assert_eq!(result.unwrap().text, "Whole");
//! # }
//! ```
//!
//! [`Capabilities`](crate::Capabilities) has `final_text` for agents that never retract.
//!
//! # Several messages
//!
//! An agent prints text between two tools, so a run has several messages.
//! [`RunResult::answer`](crate::RunResult::answer) is the last one, and
//! [`RunResult::messages`](crate::RunResult::messages) are all of them.
//!
//! # Slow consumers
//!
//! The CLI never waits for the consumer.
//! Events queue in memory up to [`queue_memory_bytes`](crate::RuntimeConfig::queue_memory_bytes), then in a
//! temporary file up to [`spill_limit_bytes`](crate::RuntimeConfig::spill_limit_bytes), and beyond that the run
//! ends with an error.
//! Nothing is dropped.
//!
//! # New events
//!
//! Enums are `#[non_exhaustive]`: match with `_ => {}`.
//! A line of the CLI that this version does not know becomes [`Unknown`](crate::AgentEvent::Unknown); it is
//! never dropped silently.
