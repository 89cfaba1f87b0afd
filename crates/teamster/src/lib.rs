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
//! A process can be kept for many turns: [`create_session_runtime`].
//!
//! # Features
//!
//! One for each provider: `claude`, `codex`, `copilot`, `gemini`, `opencode`; together they are
//! `all-providers`, which is on by default. `acp`, also on, adds any other agent that speaks the Agent
//! Client Protocol, by its command (`acp`). `orchestrator`, also on, adds runs with retry, fallback,
//! limits and budgets (`orchestrator`). `store` adds a database of sessions and of the history of
//! runs (`store`). `usage` adds accounting of tokens and cost from what the CLIs leave on disk (`usage`),
//! `loop` the long-running agent loop and its supervisor (`agent_loop`). `schema` adds JSON Schemas of the wire types.
#![warn(missing_docs)]

#[cfg(feature = "loop")]
mod loops;
mod selection;
mod sessions;

use std::sync::Arc;

pub use teamster_core::*;
pub use teamster_mcp as mcp;
pub use teamster_process as process;
pub use teamster_process::{EnvPolicy, RuntimeConfig};

#[cfg(feature = "loop")]
pub use loops::create_loop_adapter;
pub use selection::{AgentConfig, LoopOwner, Runtimes, get_runtime};
pub use sessions::{create_session_runtime, session_providers};
#[cfg(feature = "loop")]
pub use teamster_loop as agent_loop;
#[cfg(feature = "orchestrator")]
pub use teamster_orchestrator as orchestrator;
#[cfg(feature = "store")]
pub use teamster_store as store;
#[cfg(feature = "usage")]
pub use teamster_usage as usage;

#[cfg(feature = "acp")]
pub use teamster_acp as acp;
#[cfg(feature = "claude")]
pub use teamster_claude as claude;
#[cfg(feature = "codex")]
pub use teamster_codex as codex;
#[cfg(feature = "copilot")]
pub use teamster_copilot as copilot;
#[cfg(feature = "gemini")]
pub use teamster_gemini as gemini;
#[cfg(feature = "opencode")]
pub use teamster_opencode as opencode;

/// Every provider that there is, with the other names that people use for it. A provider's feature
/// has its id for a name.
const KNOWN: &[(&str, &[&str])] = &[
    ("claude", &["claude-code", "claudecode"]),
    ("codex", &["codex-cli", "openai-codex"]),
    (
        "copilot",
        &["copilot-cli", "github-copilot", "github-copilot-cli"],
    ),
    ("gemini", &["gemini-cli", "google-gemini"]),
    ("opencode", &["open-code", "opencode-ai"]),
];

/// Every provider that this build has, by name.
pub fn providers() -> Vec<Arc<dyn CliProvider>> {
    vec![
        #[cfg(feature = "claude")]
        Arc::new(claude::Claude),
        #[cfg(feature = "codex")]
        Arc::new(codex::Codex),
        #[cfg(feature = "copilot")]
        Arc::new(copilot::Copilot),
        #[cfg(feature = "gemini")]
        Arc::new(gemini::Gemini),
        #[cfg(feature = "opencode")]
        Arc::new(opencode::OpenCode),
    ]
}

/// The provider of this name, if this build has it.
///
/// Names are those of the programs (`claude`, `codex`, `copilot`, `gemini`, `opencode`), in upper or
/// lower case and with blanks around them, or what people also call them, such as `Claude Code`,
/// `gemini-cli` or `github-copilot`. Any other agent that speaks the Agent Client Protocol is named by its
/// command, after `acp:`, as in `acp:my-agent --acp`.
pub fn provider(name: &str) -> Option<Arc<dyn CliProvider>> {
    #[cfg(feature = "acp")]
    if let Some(agent) = acp::AcpAgent::named(name) {
        return Some(Arc::new(agent.ok()?));
    }
    let id = known_id(name)?;
    providers().into_iter().find(|p| p.info().id == id)
}

/// The id that a name stands for.
fn known_id(name: &str) -> Option<&'static str> {
    let words: Vec<_> = name
        .split(|c: char| c.is_whitespace() || c == '-' || c == '_')
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    let name = words.join("-");
    KNOWN
        .iter()
        .find(|(id, aliases)| *id == name || aliases.contains(&name.as_str()))
        .map(|(id, _)| *id)
}

/// A runtime for the provider of this name, such as `claude` ([`provider`] says which names there
/// are).
///
/// Nothing is started and nothing is looked for: a CLI that is missing is an event of the run.
/// An unknown name is an [`InvalidParams`](ErrorCode::InvalidParams) error that lists the known ones;
/// so is the name of a provider that this build is without, and the error says which feature it is.
///
/// ```
/// use teamster::{AgentRuntime, RuntimeConfig};
///
/// let error = teamster::create_cli_runtime("nobody", RuntimeConfig::default()).err();
/// assert!(error.is_some_and(|error| error.message.contains("nobody")));
/// ```
pub fn create_cli_runtime(name: &str, config: RuntimeConfig) -> Result<SharedRuntime, AgentError> {
    #[cfg(feature = "acp")]
    if let Some(agent) = acp::AcpAgent::named(name) {
        let sessions = process::CliRuntime::with_config(agent?, config);
        return Ok(Arc::new(acp::OneTurn::new(sessions)));
    }
    match provider(name) {
        Some(provider) => Ok(Arc::new(process::CliRuntime::with_config(provider, config))),
        None => Err(no_provider(name)),
    }
}

fn no_provider(name: &str) -> AgentError {
    let is_command = name.trim_start().starts_with("acp:");
    let message = match known_id(name) {
        None if is_command => {
            "this build is without agents that are named by a command: turn on the \
                               feature `acp` of the crate `teamster`"
                .to_owned()
        }
        Some(id) => format!(
            "this build is without the provider `{id}`: turn on the feature `{id}` of the crate \
             `teamster`"
        ),
        None => {
            let known: Vec<_> = KNOWN.iter().map(|(id, _)| *id).collect();
            format!(
                "there is no provider `{}`; there is: {}",
                excerpt(name.trim(), 100),
                known.join(", ")
            )
        }
    };
    AgentError::invalid_params(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "acp")]
    #[test]
    fn any_other_agent_is_named_by_its_command() {
        let runtime = create_cli_runtime("acp:my-agent  --acp", RuntimeConfig::default()).unwrap();
        assert_eq!(runtime.id(), "acp:my-agent --acp");
        let provider = provider(runtime.id()).unwrap();
        assert_eq!(provider.info().id, runtime.id());
        assert!(provider.launch(&ExecuteParams::new("hi")).is_err());
        let sessions = create_session_runtime(runtime.id(), RuntimeConfig::default()).unwrap();
        assert!(sessions.session_capabilities().interrupt);

        let config = RuntimeConfig::default();
        let error = create_session_runtime("acp:'", config.clone()).err();
        assert!(error.unwrap().message.contains("is not closed"));
        assert!(create_cli_runtime("acp:", config).is_err());
        assert!(super::provider("acp:").is_none());
    }

    #[cfg(feature = "claude")]
    #[test]
    fn a_known_provider_gives_its_runtime() {
        let runtime = create_cli_runtime("claude", RuntimeConfig::default()).unwrap();
        assert_eq!(runtime.id(), "claude");
        assert!(runtime.capabilities().resume);
    }

    #[test]
    fn names_are_taken_as_people_write_them() {
        for (name, id) in [
            ("Claude", "claude"),
            (" claude\n", "claude"),
            ("Claude Code", "claude"),
            ("claude_code", "claude"),
            ("CODEX", "codex"),
            ("Gemini CLI", "gemini"),
            ("OpenCode", "opencode"),
            ("GitHub Copilot CLI", "copilot"),
            ("github-copilot", "copilot"),
        ] {
            assert_eq!(known_id(name), Some(id), "{name:?}");
        }
        for name in ["", "claud", "claude code 2", "gpt"] {
            assert_eq!(known_id(name), None, "{name:?}");
        }
    }

    #[test]
    fn every_provider_is_known_by_its_id_and_no_name_stands_for_two() {
        for provider in providers() {
            assert_eq!(known_id(provider.info().id), Some(provider.info().id));
        }
        let mut names: Vec<_> = KNOWN
            .iter()
            .flat_map(|(id, aliases)| std::iter::once(id).chain(*aliases))
            .collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn an_unknown_provider_is_an_error_that_lists_the_known_ones() {
        let error = create_cli_runtime(" nobody", RuntimeConfig::default())
            .err()
            .unwrap();
        assert_eq!(error.code, ErrorCode::InvalidParams);
        assert_eq!(
            error.message,
            "there is no provider `nobody`; there is: claude, codex, copilot, gemini, opencode"
        );
    }

    /// What a build without the provider says.
    #[test]
    fn a_provider_that_is_not_in_the_build_names_its_feature() {
        assert!(no_provider("acp:x").message.contains("the feature `acp`"));
        assert_eq!(
            no_provider("Codex CLI").message,
            "this build is without the provider `codex`: turn on the feature `codex` of the crate \
             `teamster`"
        );
    }
}

/// The examples of the README compile.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// So do those of the page on sessions.
#[cfg(all(doctest, feature = "all-providers"))]
#[doc = include_str!("../../../docs/sessions.md")]
struct SessionsPage;

/// So do those of the page on the orchestrator.
#[cfg(all(doctest, feature = "orchestrator"))]
#[doc = include_str!("../../../docs/orchestrator.md")]
struct OrchestratorPage;

/// And those of the page on the Agent Client Protocol.
#[cfg(all(doctest, feature = "acp"))]
#[doc = include_str!("../../../docs/acp.md")]
struct AcpPage;

/// And those of the page on the agent loop.
#[cfg(all(doctest, feature = "loop"))]
#[doc = include_str!("../../../docs/agent-loop.md")]
struct AgentLoopPage;
