//! Columns of the matrix.

use std::fmt;

use teamster_mock_model::Cli;

/// A CLI and the way in which it is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Column {
    pub(crate) cli: Cli,
    /// True if one process plays all turns; false if each run has a process.
    pub(crate) hot: bool,
}

impl Column {
    /// Creates the column of a CLI with a process for each run.
    pub(crate) fn cold(cli: Cli) -> Self {
        Self { cli, hot: false }
    }

    /// Creates the column of a CLI with one process for all turns.
    pub(crate) fn hot(cli: Cli) -> Self {
        Self { cli, hot: true }
    }

    /// Returns the columns of these CLIs, those of one CLI next to each other.
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
