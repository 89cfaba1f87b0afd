//! The stored results of versions: `crates/conformance/versions.json`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::Context;
use serde::{Deserialize, Serialize};

/// Result of a version in a scenario, in one of the two ways.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Cell {
    /// Facts of the story that are neither expected nor declared. If empty, the story is as expected.
    pub(super) differs: Vec<String>,
    /// Facts in which a version of an agent of `acp.toml` is otherwise than in the agent's row.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) otherwise: Vec<String>,
    /// Names and reasons of the differences that occurred and are declared for some versions only.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) declared: BTreeMap<String, String>,
}

impl Cell {
    /// Returns the word for it in tables.
    pub(super) fn word(&self) -> &'static str {
        match (self.differs.is_empty(), self.otherwise.is_empty()) {
            (false, _) => "differs",
            (true, false) => "otherwise",
            (true, true) => "same",
        }
    }
}

/// Results of a version in a scenario.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Row {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) cold: Option<Cell>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) live: Option<Cell>,
    /// Differences between the output and the reference's.
    #[serde(default, skip_serializing_if = "ShapeChanges::is_empty")]
    pub(super) shapes: ShapeChanges,
}

impl Row {
    /// Returns the results of both ways.
    pub(super) fn cells(&self) -> impl Iterator<Item = &Cell> {
        self.cold.iter().chain(&self.live)
    }

    pub(super) fn differs(&self) -> bool {
        self.cells().any(|cell| !cell.differs.is_empty())
    }

    /// Replaces the results by those of a second play. Unknown lines of the first one stay: no busy machine causes them.
    pub(super) fn replace(&mut self, again: Self) {
        let mut unknown = std::mem::replace(self, again).shapes.unknown;
        self.shapes.unknown.append(&mut unknown);
    }

    /// Sets the result of one of the two ways.
    pub(super) fn put(&mut self, live: bool, cell: Cell) {
        *(if live { &mut self.live } else { &mut self.cold }) = Some(cell);
    }
}

/// Differences between the shapes of the output and the reference's.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ShapeChanges {
    /// Types of lines that the decoder does not know.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(super) unknown: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(super) new: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(super) changed: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(super) vanished: BTreeSet<String>,
}

impl ShapeChanges {
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the kinds of differences, each with what it is called.
    pub(super) fn kinds(&self) -> [(&'static str, &BTreeSet<String>); 4] {
        [
            ("unknown to the decoder", &self.unknown),
            ("new", &self.new),
            ("changed", &self.changed),
            ("vanished", &self.vanished),
        ]
    }

    pub(super) fn append(&mut self, mut other: Self) {
        self.unknown.append(&mut other.unknown);
        self.new.append(&mut other.new);
        self.changed.append(&mut other.changed);
        self.vanished.append(&mut other.vanished);
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Schema {
    /// Number of its names, and those that the decoder lacks.
    Read {
        names: usize,
        lacking: BTreeSet<String>,
        /// Fields and values that an older version has not, and that version.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        since: Option<(String, BTreeSet<String>)>,
    },
    /// The reason why there is none.
    None(String),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Version {
    /// Date of the last run.
    pub(super) date: String,
    /// Version whose fixtures the output was compared with.
    pub(super) reference: String,
    pub(super) schema: Schema,
    pub(super) scenarios: BTreeMap<String, Row>,
}

impl Version {
    /// Returns the differences in the output of all scenarios.
    pub(super) fn shapes(&self) -> ShapeChanges {
        let mut shapes = ShapeChanges::default();
        for row in self.scenarios.values() {
            shapes.append(row.shapes.clone());
        }
        shapes
    }
}

/// All results, by CLI and version.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Results(pub(super) BTreeMap<String, BTreeMap<String, Version>>);

fn results_path() -> PathBuf {
    crate::here().join("versions.json")
}

impl Results {
    pub(super) fn read() -> anyhow::Result<Self> {
        let path = results_path();
        if !path.exists() {
            return Ok(Self::default());
        }
        let text = std::fs::read_to_string(&path)?;
        serde_json::from_str(&text).with_context(|| path.display().to_string())
    }

    pub(super) fn write(&self) -> anyhow::Result<()> {
        let path = results_path();
        let text = serde_json::to_string_pretty(self)? + "\n";
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    /// Merges the results of a version. Earlier results of scenarios that were not played now are kept.
    pub(super) fn merge(&mut self, id: &str, version: &str, now: Version) {
        let versions = self.0.entry(id.to_owned()).or_default();
        let Some(before) = versions.get_mut(version) else {
            versions.insert(version.to_owned(), now);
            return;
        };
        before.date = now.date;
        before.reference = now.reference;
        before.schema = now.schema;
        for (name, row) in now.scenarios {
            let known = before.scenarios.entry(name).or_default();
            known.cold = row.cold.or(known.cold.take());
            known.live = row.live.or(known.live.take());
            known.shapes = row.shapes;
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    //! Made-up results.

    use super::*;

    pub(in crate::follow) fn cell(differs: &[&str]) -> Cell {
        Cell {
            differs: differs.iter().map(|fact| (*fact).to_owned()).collect(),
            otherwise: Vec::new(),
            declared: BTreeMap::new(),
        }
    }

    pub(in crate::follow) fn version(date: &str, scenarios: &[(&str, Row)]) -> Version {
        Version {
            date: date.to_owned(),
            reference: "1.1.0".to_owned(),
            schema: Schema::None("it has none".to_owned()),
            scenarios: scenarios
                .iter()
                .map(|(name, row)| ((*name).to_owned(), row.clone()))
                .collect(),
        }
    }

    pub(in crate::follow) fn row(cold: Cell, live: Option<Cell>) -> Row {
        Row {
            cold: Some(cold),
            live,
            shapes: ShapeChanges::default(),
        }
    }

    #[test]
    fn second_play_counts_and_unknown_lines_of_the_first_stay() {
        let mut first = row(cell(&["x"]), Some(cell(&[])));
        first.shapes.unknown = BTreeSet::from(["odd".to_owned()]);
        first.shapes.vanished = BTreeSet::from(["line end".to_owned()]);
        first.replace(row(cell(&[]), Some(cell(&["y"]))));
        let mut expected = row(cell(&[]), Some(cell(&["y"])));
        expected.shapes.unknown = BTreeSet::from(["odd".to_owned()]);
        assert_eq!(first, expected);
    }

    #[test]
    fn a_run_replaces_its_scenarios_and_keeps_the_rest() {
        let mut results = Results::default();
        let both = row(cell(&["x"]), Some(cell(&["y"])));
        let first = version("2001-02-03", &[("text", both.clone()), ("mcp", both)]);
        results.merge("codex", "1.9.0", first);
        let again = version("2001-02-05", &[("text", row(cell(&[]), None))]);
        results.merge("codex", "1.9.0", again);
        let merged = &results.0["codex"]["1.9.0"];
        assert_eq!(merged.date, "2001-02-05");
        assert_eq!(merged.scenarios["text"], row(cell(&[]), Some(cell(&["y"]))));
        assert_eq!(
            merged.scenarios["mcp"],
            row(cell(&["x"]), Some(cell(&["y"])))
        );
        let json = serde_json::to_string(&results).unwrap();
        assert_eq!(serde_json::from_str::<Results>(&json).unwrap(), results);
    }
}
