//! Drive coding-agent CLIs as subprocesses, with one typed stream of events for all of them.
//!
//! Pick a provider, start a run, read its events:
//!
//! ```no_run
//! use teamster::{AgentEvent, AgentRuntime, ExecuteParams, PermissionMode, RuntimeConfig};
//!
//! # async fn example() -> Result<(), teamster::AgentError> {
//! let runtime = teamster::create_cli_runtime("claude", RuntimeConfig::default())?;
//!
//! let mut params = ExecuteParams::new("What does this repository do?");
//! params.permission = PermissionMode::ReadOnly;
//!
//! let mut events = runtime.execute(params);
//! while let Some(event) = events.next().await {
//!     match event {
//!         AgentEvent::Text(text) => print!("{}", text.text),
//!         AgentEvent::ToolUse(tool) => println!("[{}]", tool.tool_name),
//!         AgentEvent::Done(done) => println!("\n{:?}", done.result.status),
//!         _ => {}
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! The stream never fails: whatever goes wrong is an event, and the last event is always `done`.
//! [`EventStream`] is also a `futures_core::Stream` for those who have the combinators at
//! hand; dropping it stops the run and everything that the run started.
//! The types are those of `teamster-core`, whose docs say what a stream guarantees.
//!
//! # Features
//!
//! One for each provider, all on by default: `claude`. `schema` adds JSON Schemas of the wire types.
#![warn(missing_docs)]

use std::sync::Arc;

pub use teamster_core::*;
pub use teamster_process as process;
pub use teamster_process::{EnvPolicy, RuntimeConfig};

#[cfg(feature = "claude")]
pub use teamster_claude as claude;

/// Every provider that this build has.
pub fn providers() -> Vec<Arc<dyn CliProvider>> {
    vec![
        #[cfg(feature = "claude")]
        Arc::new(claude::Claude),
    ]
}

/// The provider of this name, such as `claude`.
pub fn provider(id: &str) -> Option<Arc<dyn CliProvider>> {
    providers().into_iter().find(|p| p.info().id == id)
}

/// A runtime for the provider of this name, such as `claude`.
///
/// Nothing is started and nothing is looked for: a CLI that is missing is an event of the run.
/// An unknown name is an [`InvalidParams`](ErrorCode::InvalidParams) error that lists the known ones.
///
/// ```
/// use teamster::{AgentRuntime, RuntimeConfig};
///
/// let error = teamster::create_cli_runtime("nobody", RuntimeConfig::default()).err();
/// assert!(error.is_some_and(|error| error.message.contains("nobody")));
/// ```
pub fn create_cli_runtime(id: &str, config: RuntimeConfig) -> Result<SharedRuntime, AgentError> {
    match provider(id) {
        Some(provider) => Ok(Arc::new(process::CliRuntime::with_config(provider, config))),
        None => {
            let known: Vec<_> = providers().iter().map(|p| p.info().id).collect();
            Err(AgentError::invalid_params(if known.is_empty() {
                format!("there is no provider `{id}`: this build has none, each is a feature")
            } else {
                format!(
                    "there is no provider `{id}`; there is: {}",
                    known.join(", ")
                )
            }))
        }
    }
}

#[cfg(all(test, feature = "claude"))]
mod tests {
    use super::*;

    #[test]
    fn a_known_provider_gives_its_runtime() {
        let runtime = create_cli_runtime("claude", RuntimeConfig::default()).unwrap();
        assert_eq!(runtime.id(), "claude");
        assert!(runtime.capabilities().resume);
    }

    #[test]
    fn an_unknown_provider_is_an_error_that_lists_the_known_ones() {
        let Err(error) = create_cli_runtime("nobody", RuntimeConfig::default()) else {
            panic!("there is no such provider");
        };
        assert_eq!(error.code, ErrorCode::InvalidParams);
        assert_eq!(
            error.message,
            "there is no provider `nobody`; there is: claude"
        );
    }
}

/// The examples of the README compile.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
