//! Parsers of agent names.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::error::ErrorKind as ClapErrorKind;
use clap::{Arg, Command, Error};
use teamster::{Fallback, command_error};

/// Parses the name of an agent, or the command of one, into a provider id.
///
/// Help, completions and errors list the ids only.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProviderParser;

impl TypedValueParser for ProviderParser {
    type Value = String;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<String, Error> {
        let name = value.to_str();
        match name.and_then(|name| crate::global::providers().get(name)) {
            Some(provider) => Ok(provider.info().id.to_owned()),
            None => match name.and_then(command_error) {
                Some(error) => Err(Error::raw(
                    ClapErrorKind::ValueValidation,
                    format!("{}\n", error.message),
                )
                .with_cmd(command)),
                _ => PossibleValuesParser::new(possible_values()).parse_ref(command, arg, value),
            },
        }
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let values: Vec<_> = possible_values().collect();
        Some(Box::new(values.into_iter()))
    }
}

/// Parses `codex`, `codex:MODEL`, or the command of an agent.
pub(crate) fn fallback(text: &str) -> Result<Fallback, String> {
    Fallback::parse(crate::global::providers(), text)
}

/// Returns the ids of all providers, with the names of their CLIs as help texts.
fn possible_values() -> impl Iterator<Item = PossibleValue> {
    crate::global::providers()
        .all()
        .into_iter()
        .map(|provider| {
            let info = provider.info();
            PossibleValue::new(info.id).help(info.name)
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_line::Cli;
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
    fn a_mistyped_agent_suggests_the_nearest_one() {
        let error = Cli::try_parse_from(["teamster", "run", "codx", "hi"]).unwrap_err();
        let shown = error.to_string();
        assert!(shown.contains("codex"), "{shown}");
    }
}
