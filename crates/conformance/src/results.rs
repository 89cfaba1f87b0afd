//! Results of the tasks, stored as JSON. `docs/conformance.md` is rendered from them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::Context;
use serde::{Deserialize, Serialize};

use crate::say;

/// What differed as declared, by column and row; `None` if anything else did.
pub(crate) type Cells = BTreeMap<String, BTreeMap<String, Option<BTreeSet<String>>>>;

/// Results of all tasks. A task replaces those of what it plays.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Results {
    /// Date and network of the newest scenario.
    pub(crate) run_on: String,
    /// Names of differences, by [column](crate::column::Column) and scenario.
    pub(crate) scenarios: Cells,
    /// Names of facts, by CLI and case.
    pub(crate) resilience: Cells,
    /// Whether a check holds, by CLI and check. Checks that were not made are absent.
    pub(crate) agent_loop: BTreeMap<String, BTreeMap<String, bool>>,
    pub(crate) times: Times,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Times {
    /// Processors and network.
    pub(crate) conditions: String,
    /// Medians in milliseconds by CLI, in the order of the measurements.
    pub(crate) medians: BTreeMap<String, [Option<u64>; 4]>,
}

impl Results {
    pub(crate) fn read() -> anyhow::Result<Self> {
        let path = path();
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        serde_json::from_str(&text).with_context(|| path.display().to_string())
    }

    pub(crate) fn write(&self) -> anyhow::Result<()> {
        let path = path();
        let text = serde_json::to_string_pretty(self)? + "\n";
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    /// Returns whether these results are the stored ones, except for the date. If not, names the command that stores them.
    pub(crate) fn are_stored(&self, command: &str) -> anyhow::Result<bool> {
        let stored = Self {
            run_on: self.run_on.clone(),
            ..Self::read()?
        };
        if stored != *self {
            say(format_args!(
                "{} is not what this run gives: `{command}` writes it",
                path().display()
            ));
        }
        Ok(stored == *self)
    }
}

/// Replaces cells, and keeps those of other columns and rows.
pub(crate) fn merge(stored: &mut Cells, now: Cells) {
    for (column, rows) in now {
        stored.entry(column).or_default().extend(rows);
    }
}

fn path() -> PathBuf {
    crate::here().join("results.json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merge_replaces_what_was_played_and_keeps_the_rest() {
        let cells = |column: &str, rows: &[(&str, Option<&str>)]| {
            let rows = rows.iter().map(|(row, name)| {
                let names = name.map(|name| BTreeSet::from([name.to_owned()]));
                ((*row).to_owned(), names)
            });
            Cells::from([(column.to_owned(), rows.collect())])
        };
        let mut all = cells("codex", &[("text", Some("late")), ("mcp", None)]);
        merge(&mut all, cells("codex", &[("text", Some("odd"))]));
        merge(&mut all, cells("pi", &[("text", None)]));
        let mut wanted = cells("codex", &[("text", Some("odd")), ("mcp", None)]);
        wanted.extend(cells("pi", &[("text", None)]));
        assert_eq!(all, wanted);
    }
}
