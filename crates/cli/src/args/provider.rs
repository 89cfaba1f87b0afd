//! The name of a provider.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Arg, Command, Error};

/// Takes a provider by any of its names and gives its id; help, completions and errors show the
/// ids.
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
        match value.to_str().and_then(teamster::provider) {
            Some(provider) => Ok(provider.info().id.to_owned()),
            None => ids().parse_ref(command, arg, value),
        }
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let values: Vec<_> = possible_values().collect();
        Some(Box::new(values.into_iter()))
    }
}

fn ids() -> PossibleValuesParser {
    PossibleValuesParser::new(possible_values())
}

/// The providers of this build, with the names of their CLIs.
fn possible_values() -> impl Iterator<Item = PossibleValue> {
    teamster::providers().into_iter().map(|provider| {
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
    }

    #[test]
    fn a_slip_is_met_with_what_was_meant() {
        let error = Cli::try_parse_from(["teamster", "run", "codx", "hi"]).unwrap_err();
        let shown = error.to_string();
        assert!(shown.contains("codex"), "{shown}");
    }
}
