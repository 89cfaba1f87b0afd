//! Fallback agents of a run, by name.

use std::fmt;

use teamster_acp::AcpAgent;
use teamster_command::TextCommand;
use teamster_core::AgentError;
use teamster_providers::Providers;

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
        let is_command = AcpAgent::named(text).is_some() || TextCommand::named(text).is_some();
        let (name, model) = match text.split_once(':') {
            _ if is_command => (text, None),
            Some((_, "")) => return Err("the model after the `:` is missing".into()),
            Some((name, model)) => (name, Some(model.to_owned())),
            None => (text, None),
        };
        let Some(provider) = providers.get(name) else {
            if let Some(error) = command_error(name) {
                return Err(error.message);
            }
            let known: Vec<_> = (providers.all().iter())
                .map(|provider| provider.info().id)
                .collect();
            return Err(format!(
                "there is no agent `{name}`; there is: {}",
                known.join(", ")
            ));
        };
        Ok(Self {
            provider: provider.info().id.to_owned(),
            model,
        })
    }
}

/// Returns the error in an agent's command; `None` if `name` is not one, or is valid.
pub fn command_error(name: &str) -> Option<AgentError> {
    let acp = AcpAgent::named(name).and_then(Result::err);
    acp.or_else(|| TextCommand::named(name)?.err())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fallbacks_are_parsed() {
        let providers = Providers::builtin().with_command(
            TextCommand::with_settings("mine", teamster_command::CommandSettings::new("cat"))
                .unwrap(),
        );
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
            error.starts_with("there is no agent `myne`; there is: ") && error.ends_with("mine"),
            "{error}"
        );
    }
}
