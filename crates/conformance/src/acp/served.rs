//! Agents that `teamster acp` serves. Each is compared with a run of its provider.

use std::path::Path;

use serde_json::Value;
use teamster_mock_model::Cli;

use crate::column::Column;
use crate::differences::Differences;
use crate::install;
use crate::scenario::Scenario;

/// The provider in `teamster acp PROVIDER`, with the differences that are declared for its runs.
pub(crate) struct Served {
    cli: Cli,
    differences: Differences,
}

impl Served {
    /// Returns the provider that this command serves, if any, in the installed version.
    pub(crate) fn by(command: &str, programs: &Path) -> anyhow::Result<Option<Self>> {
        let Some(cli) = cli(command) else {
            return Ok(None);
        };
        let versions = install::at(programs)?.versions;
        let differences = Differences::read()?.of_versions(&versions);
        Ok(Some(Self { cli, differences }))
    }

    pub(crate) fn plays(&self, scenario: &Scenario) -> bool {
        let only = scenario.test.only.as_ref();
        only.is_none_or(|only| only.providers.contains_key(self.cli.id()))
    }

    /// Returns whether the provider plays it as a turn of a session.
    pub(crate) fn plays_hot(&self, scenario: &Scenario) -> bool {
        let mut cold = scenario.test.cold_only.iter();
        !cold.any(|one| one.providers.iter().any(|id| id == self.cli.id()))
    }

    /// Returns whether a run of the provider differs in the same way.
    pub(crate) fn differs_so(
        &self,
        hot: bool,
        scenario: &str,
        fact: &str,
        expected: Option<&Value>,
        actual: Option<&Value>,
    ) -> bool {
        let column = Column { cli: self.cli, hot };
        let declared = self
            .differences
            .declaring(column, scenario, fact, expected, actual);
        declared.is_some()
    }
}

/// Returns the provider in `teamster acp PROVIDER`.
pub(crate) fn cli(command: &str) -> Option<Cli> {
    let words = shell_words::split(command).ok()?;
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [program, "acp", provider, ..] if program.ends_with("teamster") => Cli::from_id(provider),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_provider_stands_behind_acp() {
        assert_eq!(
            cli("bin/teamster acp claude --retries 2"),
            Some(Cli::Claude)
        );
        for other in ["teamster acp", "teamster acp acp:x", "gemini --acp", "'"] {
            assert_eq!(cli(other), None, "{other}");
        }
    }
}
