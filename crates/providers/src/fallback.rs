//! Agents and fallbacks as a user names them.

use std::fmt;
use std::sync::Arc;

use teamster_core::text::{excerpt, one_line};
use teamster_core::{AgentError, CliProvider};

use crate::Providers;

/// A fallback agent and its model.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fallback {
    /// The provider's id.
    pub provider: String,
    /// The model, by the CLI's own name.
    pub model: Option<String>,
}

impl fmt::Display for Fallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.model {
            Some(model) => write!(f, "{}:{model}", self.provider),
            None => f.write_str(&self.provider),
        }
    }
}

impl Fallback {
    /// Parses a fallback of a run's description.
    ///
    /// # Errors
    ///
    /// Fails as [`parse`](Self::parse) does, with the parameter `fallback`.
    pub fn named(providers: &Providers, text: &str) -> Result<Self, AgentError> {
        Self::parse(providers, text).map_err(|problem| AgentError::refused("fallback", problem))
    }

    /// Parses `codex`, `codex:MODEL` (the model's name may contain colons), or the command of an agent.
    ///
    /// # Errors
    ///
    /// Fails with the reason if there is no such agent.
    pub fn parse(providers: &Providers, text: &str) -> Result<Self, String> {
        let (name, model) = match text.split_once(':') {
            _ if command(text).is_some() => (text, None),
            Some((_, "")) => return Err("the model after the `:` is missing".into()),
            Some((name, model)) => (name, Some(model.to_owned())),
            None => (text, None),
        };
        let provider = providers.find(name)?;
        Ok(Self {
            provider: provider.info().id.to_owned(),
            model,
        })
    }
}

impl Providers {
    /// Returns the provider with this name, or the command of an agent.
    ///
    /// # Errors
    ///
    /// Fails with the error in the command, or with the names that there are.
    pub fn find(&self, name: &str) -> Result<Arc<dyn CliProvider>, String> {
        if let Some(provider) = self.get(name) {
            return Ok(provider);
        }
        if let Some(error) = command_error(name) {
            return Err(error.message);
        }
        let known: Vec<_> = self.all().iter().map(|it| it.info().id).collect();
        let name = one_line(name);
        Err(format!(
            "no agent \"{}\"; available: {}",
            excerpt(&name, 100),
            known.join(", ")
        ))
    }
}

/// Returns the error in an agent's command; `None` if `name` is not one, or is valid.
pub fn command_error(name: &str) -> Option<AgentError> {
    command(name)?.err()
}

/// Returns whether an agent's command is valid; `None` if `name` is not a command in this build.
fn command(name: &str) -> Option<Result<(), AgentError>> {
    #[cfg(feature = "acp")]
    if let Some(agent) = teamster_acp::AcpAgent::named(name) {
        return Some(agent.map(drop));
    }
    #[cfg(feature = "command")]
    if let Some(command) = teamster_command::TextCommand::named(name) {
        return Some(command.map(drop));
    }
    // Without these features there is no command.
    let _ = name;
    None
}

#[cfg(all(test, feature = "acp", feature = "command"))]
mod tests {
    use super::*;

    #[test]
    fn fallbacks_are_parsed() {
        let settings = teamster_command::CommandSettings::new("cat");
        let mine = teamster_command::TextCommand::with_settings("mine", settings).unwrap();
        let providers = Providers::builtin().with_command(mine);
        let of = |provider: &str, model: Option<&str>| {
            Ok(Fallback {
                provider: provider.into(),
                model: model.map(Into::into),
            })
        };
        let parse = |text| Fallback::parse(&providers, text);
        assert_eq!(parse("Mine"), of("mine", None));
        assert_eq!(parse("mine:gpt-5.1"), of("mine", Some("gpt-5.1")));
        assert_eq!(
            parse("mine:ollama/llama3:8b"),
            of("mine", Some("ollama/llama3:8b"))
        );
        assert_eq!(parse("cmd:tr a b"), of("cmd:tr a b", None));
        let error = parse("acp:'").unwrap_err();
        assert!(error.contains("a quotation mark"), "{error}");
        assert_eq!(
            parse("mine:").unwrap_err(),
            "the model after the `:` is missing"
        );
        let error = parse("myne").unwrap_err();
        assert!(
            error.starts_with("no agent \"myne\"; available: ") && error.ends_with("mine"),
            "{error}"
        );
    }
}
