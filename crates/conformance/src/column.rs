//! Columns of the matrix.

use std::fmt;

use teamster_mock_model::Cli;

/// A CLI, and how it is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Column {
    pub(crate) cli: Cli,
    /// One process plays all turns; else there is one for each.
    pub(crate) hot: bool,
}

impl Column {
    /// A process for each run.
    pub(crate) fn cold(cli: Cli) -> Self {
        Self { cli, hot: false }
    }

    /// A process for all turns.
    pub(crate) fn hot(cli: Cli) -> Self {
        Self { cli, hot: true }
    }

    /// Those of these CLIs, each CLI's beside each other.
    pub(crate) fn of(clis: &[Cli], cold: bool, hot: bool) -> Vec<Self> {
        let has_sessions = |cli: Cli| {
            let config = teamster::RuntimeConfig::default();
            teamster::create_session_runtime(cli.id(), config).is_ok()
        };
        clis.iter()
            .flat_map(|cli| [Self::cold(*cli), Self::hot(*cli)])
            .filter(|column| {
                if column.hot {
                    hot && has_sessions(column.cli)
                } else {
                    cold
                }
            })
            .collect()
    }
}

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.cli.id().to_owned() + if self.hot { " hot" } else { "" };
        f.pad(&name)
    }
}
