//! Parsers of agent names.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::error::ErrorKind as ClapErrorKind;
use clap::{Arg, Command, Error};
use teamster::{Fallback, command_error};
use teamster_core::text::excerpt;
use teamster_host::find_program;

use crate::words;

/// Maximum length of a prompt in an error, in bytes.
const LONGEST_PROMPT: usize = 60;

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
                None if takes_prompt(command, arg)
                    && name.is_some_and(|name| name.contains(char::is_whitespace)) =>
                {
                    let problem = agent_missing(command.get_name(), name.unwrap_or_default());
                    Err(Error::raw(ClapErrorKind::ValueValidation, problem).with_cmd(command))
                }
                _ => PossibleValuesParser::new(possible_values()).parse_ref(command, arg, value),
            },
        }
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let values: Vec<_> = possible_values().collect();
        Some(Box::new(values.into_iter()))
    }
}

/// Returns whether a prompt may follow this argument, so that one could be in its place.
fn takes_prompt(command: &Command, arg: Option<&Arg>) -> bool {
    ["run", "chat"].contains(&command.get_name()) && arg.is_some_and(Arg::is_positional)
}

/// Returns the error for a prompt in the place of the agent. It names an agent that is installed, if there is one.
fn agent_missing(command: &str, prompt: &str) -> String {
    let providers = crate::global::providers().all();
    let first = providers.first().map(|provider| provider.info().id);
    let agent = installed().next().or(first).unwrap_or("AGENT");
    let prompt = words::shell_word(&excerpt(prompt, LONGEST_PROMPT));
    let prompt = if command == "chat" {
        String::new()
    } else {
        format!(" {prompt}")
    };
    format!("the agent is missing: teamster {command} {agent}{prompt}\n")
}

/// Returns the ids of the agents whose programs are installed.
pub(crate) fn installed() -> impl Iterator<Item = &'static str> {
    let host = crate::global::host();
    let infos = crate::global::providers().all().into_iter();
    let infos = infos.map(|provider| provider.info());
    infos
        .filter(move |info| !info.program.is_empty() && find_program(host, info).is_ok())
        .map(|info| info.id)
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

    #[test]
    fn a_prompt_without_an_agent_is_reported_with_the_command() {
        let error = Cli::try_parse_from(["teamster", "run", "fix the bug"]).unwrap_err();
        let shown = error.to_string();
        assert!(
            shown.contains("the agent is missing: teamster run "),
            "{shown}"
        );
        assert!(shown.contains(" 'fix the bug'"), "{shown}");
        let shown = |args: &[&str]| Cli::try_parse_from(args).unwrap_err().to_string();
        for other in [
            &["teamster", "acp", "fix the bug"][..],
            &["teamster", "runs", "list", "--provider", "a b"],
            &["teamster", "demo", "--provider", "a b"],
        ] {
            let shown = shown(other);
            assert!(!shown.contains("the agent is missing"), "{shown}");
            assert!(shown.contains("[possible values: "), "{shown}");
        }
    }
}
