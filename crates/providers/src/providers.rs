//! Providers of this build, and those that an application adds.

use std::fmt;
use std::sync::Arc;

use teamster_core::text::excerpt;
use teamster_core::{AgentError, CliProvider, SessionProvider, SessionRuntime, SharedRuntime};
use teamster_process::{CliRuntime, OneTurn, RuntimeConfig};

use crate::InProcess;

/// List of the built-in CLIs: id and feature, aliases, and provider of each.
macro_rules! builtin {
    ($($id:literal $(| $alias:literal)* => $provider:expr,)*) => {
        /// All agents, in this build or not, with their aliases.
        const KNOWN: &[(&str, &[&str])] = &[$(($id, &[$($alias),*]),)* (EMBEDDED, &[])];

        impl Providers {
            /// Returns the providers of this build.
            pub fn builtin() -> Self {
                Self {
                    entries: vec![
                        $(
                            #[cfg(feature = $id)]
                            Entry::Sessions(Arc::new($provider)),
                        )*
                        #[cfg(feature = "embedded")]
                        Entry::InProcess(crate::in_process::embedded()),
                    ],
                }
            }
        }
    };
}

/// Id of the embedded agent.
const EMBEDDED: &str = "embedded";

builtin! {
    "claude" | "claude-code" | "claudecode" => crate::claude::Claude,
    "cline" | "cline-cli" => crate::acp_agents::CLINE,
    "codex" | "codex-cli" | "openai-codex" => crate::codex::Codex,
    "copilot" | "copilot-cli" | "github-copilot" | "github-copilot-cli" => crate::copilot::Copilot,
    "gemini" | "gemini-cli" | "google-gemini" => crate::gemini::Gemini,
    "kilo" | "kilo-code" | "kilocode" => crate::opencode::Kilo,
    "kimi" | "kimi-code" | "kimi-cli" => crate::acp_agents::KIMI,
    "opencode" | "open-code" | "opencode-ai" => crate::opencode::OpenCode,
    "pi" | "pi-agent" | "pi-coding-agent" => crate::pi::Pi,
    "qwen" | "qwen-code" => crate::acp_agents::QWEN,
}

/// Set of providers by name: those of this build, and an application's own.
///
/// ```
/// # use std::sync::Arc;
/// use teamster_core::CliProvider;
/// use teamster_process::RuntimeConfig;
/// use teamster_providers::Providers;
///
/// # fn example(mine: Arc<dyn CliProvider>) -> Result<(), teamster_core::AgentError> {
/// let providers = Providers::builtin().with(mine);
/// let runtime = providers.runtime("my-agent", RuntimeConfig::default())?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Providers {
    entries: Vec<Entry>,
}

#[derive(Clone)]
enum Entry {
    Runs(Arc<dyn CliProvider>),
    Sessions(Arc<dyn SessionProvider>),
    #[cfg(feature = "command")]
    Text(crate::command::TextCommand),
    InProcess(InProcess),
}

impl Entry {
    fn provider(&self) -> Arc<dyn CliProvider> {
        match self {
            Self::Runs(provider) => provider.clone(),
            Self::Sessions(provider) => provider.clone(),
            #[cfg(feature = "command")]
            Self::Text(command) => Arc::new(command.clone()),
            Self::InProcess(agent) => agent.provider(),
        }
    }

    fn id(&self) -> &'static str {
        match self {
            Self::Runs(provider) => provider.info().id,
            Self::Sessions(provider) => provider.info().id,
            #[cfg(feature = "command")]
            Self::Text(command) => command.info().id,
            Self::InProcess(agent) => agent.info.id,
        }
    }
}

impl Providers {
    /// Returns an empty set.
    pub fn none() -> Self {
        Self {
            entries: Vec::new(),
        }
    }

    /// Adds a custom provider under the id in its [`info`](CliProvider::info). It replaces a provider with the
    /// same id.
    #[must_use]
    pub fn with(self, provider: Arc<dyn CliProvider>) -> Self {
        self.add(Entry::Runs(provider))
    }

    /// Adds a custom provider that has sessions. It replaces a provider with the same id.
    #[must_use]
    pub fn with_sessions(self, provider: Arc<dyn SessionProvider>) -> Self {
        self.add(Entry::Sessions(provider))
    }

    /// Adds a program that prints text. It replaces a provider with the same id.
    #[cfg(feature = "command")]
    #[must_use]
    pub fn with_command(self, command: crate::command::TextCommand) -> Self {
        self.add(Entry::Text(command))
    }

    /// Adds an agent whose model loop runs in this process. It replaces a provider with the same id.
    #[must_use]
    pub fn with_in_process(self, agent: InProcess) -> Self {
        self.add(Entry::InProcess(agent))
    }

    fn add(mut self, new: Entry) -> Self {
        match self.entries.iter_mut().find(|it| it.id() == new.id()) {
            Some(entry) => *entry = new,
            None => self.entries.push(new),
        }
        self
    }

    /// Returns all providers: those of this build by name, then added ones.
    pub fn all(&self) -> Vec<Arc<dyn CliProvider>> {
        self.entries.iter().map(Entry::provider).collect()
    }

    /// Returns the default provider: the first.
    pub fn first(&self) -> Option<Arc<dyn CliProvider>> {
        self.entries.first().map(Entry::provider)
    }

    /// Returns the providers that have sessions.
    pub fn all_with_sessions(&self) -> Vec<Arc<dyn SessionProvider>> {
        let entries = self.entries.iter();
        entries
            .filter_map(|entry| match entry {
                Entry::Sessions(provider) => Some(provider.clone()),
                _ => None,
            })
            .collect()
    }

    /// Returns the provider with this name, if this set has it.
    ///
    /// Names are those of the programs (`claude`, `codex`, `copilot`, `gemini`, `opencode`, `pi`) and aliases such
    /// as `Claude Code`, `gemini-cli` or `github-copilot`. Case and surrounding blanks are ignored. Any other agent
    /// of the Agent Client Protocol is named by its command after `acp:`, as in `acp:my-agent --acp`. Any program
    /// that prints text is named by its command after `cmd:`, as in `cmd:my-agent {prompt_file}`. The agent whose
    /// model loop is in this process is `embedded`. Nothing else selects the owner of the loop: the service of the
    /// model is a part of the model's name.
    pub fn get(&self, name: &str) -> Option<Arc<dyn CliProvider>> {
        #[cfg(feature = "acp")]
        if let Some(agent) = crate::acp::AcpAgent::named(name) {
            return Some(Arc::new(agent.ok()?));
        }
        #[cfg(feature = "command")]
        if let Some(command) = crate::command::TextCommand::named(name) {
            return Some(Arc::new(command.ok()?));
        }
        self.entry(name).map(Entry::provider)
    }

    fn entry(&self, name: &str) -> Option<&Entry> {
        let name = normalize(name);
        let id = known_id(&name).unwrap_or(&name);
        self.entries
            .iter()
            .find(|entry| normalize(entry.id()) == id)
    }

    /// Creates a runtime for the provider with this name. See [`create_cli_runtime`].
    pub fn runtime(&self, name: &str, config: RuntimeConfig) -> Result<SharedRuntime, AgentError> {
        #[cfg(feature = "acp")]
        if let Some(agent) = crate::acp::AcpAgent::named(name) {
            let sessions = CliRuntime::with_config(agent?, config);
            return Ok(Arc::new(OneTurn::new(sessions)));
        }
        #[cfg(feature = "command")]
        if let Some(command) = self.text_command(name) {
            let runtime = CliRuntime::with_config(command?, config);
            return Ok(Arc::new(teamster_command::CommandRuntime::new(runtime)));
        }
        match self.entry(name) {
            Some(Entry::Sessions(provider)) => {
                let only_sessions = provider.only_sessions();
                let sessions = CliRuntime::with_config(provider.clone(), config);
                Ok(Arc::new(if only_sessions {
                    OneTurn::new(sessions)
                } else {
                    OneTurn::if_asking(sessions)
                }))
            }
            Some(Entry::InProcess(agent)) => {
                Ok(Arc::new(OneTurn::if_asking(agent.runtime(config)?)))
            }
            Some(entry) => Ok(Arc::new(CliRuntime::with_config(entry.provider(), config))),
            None => Err(self.missing(name)),
        }
    }

    /// Returns the program that prints text with this name, which is a `cmd:` command or the name of an added
    /// program.
    #[cfg(feature = "command")]
    fn text_command(&self, name: &str) -> Option<Result<crate::command::TextCommand, AgentError>> {
        crate::command::TextCommand::named(name).or_else(|| match self.entry(name)? {
            Entry::Text(command) => Some(Ok(command.clone())),
            _ => None,
        })
    }

    /// Creates a session runtime for the provider with this name. See
    /// [`create_session_runtime`](crate::create_session_runtime).
    pub fn session_runtime(
        &self,
        name: &str,
        config: RuntimeConfig,
    ) -> Result<Arc<dyn SessionRuntime>, AgentError> {
        #[cfg(feature = "acp")]
        if let Some(agent) = crate::acp::AcpAgent::named(name) {
            return Ok(Arc::new(CliRuntime::with_config(agent?, config)));
        }
        #[cfg(feature = "command")]
        if let Some(command) = crate::command::TextCommand::named(name) {
            let problem = format!(
                "{} prints text and has no sessions: run it once for each prompt",
                command?.info().name
            );
            return Err(AgentError::invalid_params(problem).about("provider"));
        }
        match self.entry(name) {
            Some(Entry::Sessions(provider)) => {
                let provider = provider.clone();
                Ok(Arc::new(CliRuntime::with_config(provider, config)))
            }
            Some(Entry::InProcess(agent)) => agent.runtime(config),
            Some(entry) => {
                let provider = entry.provider();
                let name = provider.info().name;
                let problem = format!(
                    "{name} has no live sessions: run it once for each turn, and resume its session"
                );
                Err(AgentError::invalid_params(problem).about("provider"))
            }
            None => Err(self.missing(name)),
        }
    }

    /// Creates a candidate of an orchestrated run, by the name of its provider.
    ///
    /// # Errors
    ///
    /// Fails as [`runtime`](Self::runtime) does.
    #[cfg(feature = "orchestrator")]
    pub fn candidate(
        &self,
        name: &str,
        config: RuntimeConfig,
        params: teamster_core::ExecuteParams,
    ) -> Result<teamster_orchestrator::Candidate, AgentError> {
        let runtime = self.runtime(name, config)?;
        Ok(teamster_orchestrator::Candidate::new(runtime, params))
    }

    /// Returns the error for a name without a provider.
    pub(crate) fn missing(&self, name: &str) -> AgentError {
        let is_text = name.trim_start().starts_with("cmd:");
        let is_command = name.trim_start().starts_with("acp:");
        let message = match known_id(&normalize(name)) {
            None if is_text => {
                "programs that print text are not in this build: turn on the feature `command` of the \
                 crate `teamster`"
                    .to_owned()
            }
            None if is_command => {
                "agents that are named by a command are not in this build: turn on the feature \
                 `acp` of the crate `teamster`"
                    .to_owned()
            }
            Some(id) => format!(
                "the provider `{id}` is not in this build: turn on the feature `{id}` of the crate \
                 `teamster`"
            ),
            None => {
                let known = KNOWN.iter().map(|(id, _)| *id);
                let own = self.entries.iter().map(Entry::id);
                let own = own.filter(|id| known_id(id).is_none());
                let known: Vec<_> = known.chain(own).collect();
                format!(
                    "unknown provider `{}`; available: {}",
                    excerpt(name.trim(), 100),
                    known.join(", ")
                )
            }
        };
        AgentError::invalid_params(message).about("provider")
    }
}

/// The providers of this build.
impl Default for Providers {
    fn default() -> Self {
        Self::builtin()
    }
}

impl fmt::Debug for Providers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set()
            .entries(self.entries.iter().map(Entry::id))
            .finish()
    }
}

/// Creates a runtime for the provider with this name, such as `claude`. [`Providers::get`] lists the names.
///
/// No process is started and no program is searched: a missing CLI is an event of the run.
///
/// # Errors
///
/// An unknown name is an [`InvalidParams`](teamster_core::ErrorCode::InvalidParams) error that lists the known
/// names. The name of a provider that this build lacks is one that names the feature to turn on.
///
/// ```
/// use teamster_process::RuntimeConfig;
///
/// let error = teamster_providers::create_cli_runtime("no-such", RuntimeConfig::default()).err();
/// assert!(error.is_some_and(|error| error.message.contains("no-such")));
/// ```
pub fn create_cli_runtime(name: &str, config: RuntimeConfig) -> Result<SharedRuntime, AgentError> {
    Providers::builtin().runtime(name, config)
}

/// Creates a session runtime for the provider with this name. [`Providers::get`] lists the names.
///
/// No process is started and no program is searched: a missing CLI is an event of the first turn.
///
/// # Errors
///
/// Fails with [`InvalidParams`](teamster_core::ErrorCode::InvalidParams) if the name is unknown, or if the provider has
/// no sessions.
///
/// ```no_run
/// use teamster_core::{SessionOptions, SessionRuntime, Turn};
/// use teamster_process::RuntimeConfig;
///
/// # async fn example() -> Result<(), teamster_core::AgentError> {
/// let runtime = teamster_providers::create_session_runtime("claude", RuntimeConfig::default())?;
/// let session = runtime.open(SessionOptions::default())?;
/// let first = session.send(Turn::new("What does this repository do?")).result().await;
/// // The same process answers.
/// let second = session.send(Turn::new("And how is it tested?")).result().await;
/// # drop((first, second));
/// session.close().await;
/// # Ok(())
/// # }
/// ```
pub fn create_session_runtime(
    name: &str,
    config: RuntimeConfig,
) -> Result<Arc<dyn SessionRuntime>, AgentError> {
    Providers::builtin().session_runtime(name, config)
}

/// Normalizes a name to lower case, with one dash between its words.
fn normalize(name: &str) -> String {
    let words: Vec<_> = name
        .split(|c: char| c.is_whitespace() || c == '-' || c == '_')
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    words.join("-")
}

/// Returns the id for a [normalized](normalize) name.
fn known_id(name: &str) -> Option<&'static str> {
    KNOWN
        .iter()
        .find(|(id, aliases)| *id == name || aliases.contains(&name))
        .map(|(id, _)| *id)
}

#[cfg(test)]
mod tests;
