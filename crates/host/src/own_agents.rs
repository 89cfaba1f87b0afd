//! User-defined agents: programs that print text, configured in `teamster/agents.toml`.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;
use teamster_command::{CommandSettings, TextCommand};
use teamster_core::AgentError;
use teamster_providers::Providers;

use crate::environment::{config_file, read_config};
use crate::error_chain;

/// The file's path in the user's configuration folder.
const FILE: &str = "teamster/agents.toml";

/// Adds the agents of the user's file (`teamster/agents.toml`), if it exists.
pub(crate) fn with_own_agents(providers: Providers) -> Result<Providers, AgentError> {
    match config_file(FILE) {
        Some(file) => with_file(providers, &file)
            .map_err(|error| AgentError::invalid_params(error_chain(&error))),
        None => Ok(providers),
    }
}

fn with_file(mut providers: Providers, file: &Path) -> anyhow::Result<Providers> {
    let text = read_config(file).with_context(|| format!("cannot read {}", file.display()))?;
    let Some(text) = text else {
        return Ok(providers);
    };
    let entries: BTreeMap<String, CommandSettings> =
        toml::from_str(&text).with_context(|| file.display().to_string())?;
    for (name, settings) in entries {
        if providers.get(&name).is_some() {
            anyhow::bail!("{}: an agent \"{name}\" exists already", file.display());
        }
        let command = TextCommand::with_settings(&name, settings)
            .map_err(|error| anyhow::anyhow!("{}: {}", file.display(), error.message))?;
        providers = providers.with_command(command);
    }
    Ok(providers)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn read(text: &str) -> anyhow::Result<Providers> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("agents.toml");
        fs::write(&file, text).unwrap();
        with_file(Providers::builtin(), &file)
    }

    #[test]
    fn an_entry_is_an_agent_of_its_name() {
        let providers = read("[mine]\ncommand = 'my-agent {prompt_file}'").unwrap();
        assert_eq!(providers.get("mine").unwrap().info().program, "my-agent");
        for missing in ["/no/such/agents.toml", "/dev/null/agents.toml"] {
            assert!(with_file(Providers::builtin(), Path::new(missing)).is_ok());
        }
    }

    #[test]
    fn errors_name_the_file() {
        for (text, words) in [
            ("[mine]", "command"),
            ("[mine]\ncommand = \"a '\"", "a quotation mark"),
            ("[claude]\ncommand = 'a'", "already"),
            ("[mine]\ncommand = 'a'\ntokens = '('", "regex"),
        ] {
            let error = format!("{:#}", read(text).unwrap_err());
            assert!(
                error.contains("agents.toml") && error.contains(words),
                "{error}"
            );
        }
    }
}
