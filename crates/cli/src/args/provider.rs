//! Parsers of agent names.

use std::ffi::OsStr;
use std::fmt;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::error::ErrorKind as ClapErrorKind;
use clap::{Arg, Command, Error};
use teamster::AgentError;
use teamster::acp::AcpAgent;
use teamster::command::TextCommand;

use crate::words;

/// Parses the name of an agent, or the command of one, into a provider id.
///
/// Help, completions and errors list the ids only.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProviderParser;

impl TypedValueParser for ProviderParser {
    type Value = String;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<String, Error> {
        let name = value.to_str();
        match name.and_then(|name| crate::providers().get(name)) {
            Some(provider) => Ok(provider.info().id.to_owned()),
            None => match name.and_then(command_error) {
                Some(error) => Err(Error::raw(
                    ClapErrorKind::ValueValidation,
                    format!("{}\n", error.message),
                )
                .with_cmd(command)),
                _ => ids().parse_ref(command, arg, value),
            },
        }
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let values: Vec<_> = possible_values().collect();
        Some(Box::new(values.into_iter()))
    }
}

/// Returns the error in an agent's command; `None` if `name` is not one, or is valid.
fn command_error(name: &str) -> Option<AgentError> {
    let acp = AcpAgent::named(name).and_then(Result::err);
    acp.or_else(|| TextCommand::named(name)?.err())
}

/// A fallback agent and its model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fallback {
    /// The provider's id.
    pub(crate) provider: String,
    /// The model, by the CLI's own name.
    pub(crate) model: Option<String>,
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
    pub(crate) fn named(text: &str) -> Result<Self, AgentError> {
        Self::parse(text).map_err(|problem| AgentError::refused("fallback", problem))
    }

    /// Parses `codex`, `codex:MODEL` (the model's name may contain colons), or the command of an agent.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let is_command = AcpAgent::named(text).is_some() || TextCommand::named(text).is_some();
        let (name, model) = match text.split_once(':') {
            _ if is_command => (text, None),
            Some((_, "")) => return Err("the model after the `:` is missing".into()),
            Some((name, model)) => (name, Some(model.to_owned())),
            None => (text, None),
        };
        let Some(provider) = crate::providers().get(name) else {
            if let Some(error) = command_error(name) {
                return Err(error.message);
            }
            let known: Vec<_> = (crate::providers().all().iter())
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

/// Returns the error of an agent that is not known.
pub(crate) fn no_such_agent(name: &str) -> AgentError {
    let known = crate::providers().all();
    let known: Vec<_> = known.iter().map(|provider| provider.info().id).collect();
    AgentError::refused(
        "provider",
        format!(
            "no agent `{}`; available: {}",
            words::one_line(name),
            known.join(", ")
        ),
    )
}

fn ids() -> PossibleValuesParser {
    PossibleValuesParser::new(possible_values())
}

/// Returns the ids of all providers, with the names of their CLIs as help texts.
fn possible_values() -> impl Iterator<Item = PossibleValue> {
    crate::providers().all().into_iter().map(|provider| {
        let info = provider.info();
        PossibleValue::new(info.id).help(info.name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Cli;
    use clap::Parser;

    #[test]
    fn a_provider_has_many_names_and_one_id() {
        let command = Command::new("x");
        for name in ["codex", " Codex", "codex-cli", "OpenAI Codex"] {
            let id = ProviderParser.parse_ref(&command, None, OsStr::new(name));
            assert_eq!(id.unwrap(), "codex", "{name}");
        }
        let id = |name| ProviderParser.parse_ref(&command, None, OsStr::new(name));
        assert_eq!(id("acp: my-agent  --acp").unwrap(), "acp:my-agent --acp");
        assert!(
            id("acp:'")
                .unwrap_err()
                .to_string()
                .contains("acp:': a quotation mark")
        );
    }

    #[test]
    fn fallbacks_are_parsed() {
        let of = |provider: &str, model: Option<&str>| {
            Ok(Fallback {
                provider: provider.into(),
                model: model.map(Into::into),
            })
        };
        assert_eq!(Fallback::parse("Codex"), of("codex", None));
        assert_eq!(
            Fallback::parse("codex:gpt-5.1"),
            of("codex", Some("gpt-5.1"))
        );
        assert_eq!(
            Fallback::parse("opencode:ollama/llama3:8b"),
            of("opencode", Some("ollama/llama3:8b"))
        );
        assert_eq!(Fallback::parse("cmd:tr a b"), of("cmd:tr a b", None));
        let error = Fallback::parse("acp:'").unwrap_err();
        assert!(error.contains("a quotation mark"), "{error}");
        assert_eq!(
            Fallback::parse("codex:").unwrap_err(),
            "the model after the `:` is missing"
        );
        assert_eq!(
            Fallback::parse("codx").unwrap_err(),
            "there is no agent `codx`; there is: claude, cline, codex, copilot, gemini, kilo, kimi, opencode, pi, qwen, embedded"
        );
    }

    #[test]
    fn a_mistyped_agent_suggests_the_nearest_one() {
        let error = Cli::try_parse_from(["teamster", "run", "codx", "hi"]).unwrap_err();
        let shown = error.to_string();
        assert!(shown.contains("codex"), "{shown}");
    }
}
