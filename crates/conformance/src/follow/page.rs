//! `docs/versions.md`: version by scenario, and the stored results.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::Context;
use serde::{Deserialize, Serialize};
use teamster::Providers;
use teamster_mock_model::Cli;

use super::shape::Changes;
use crate::install;

/// Result of a version in a scenario, in one of the two ways.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Cell {
    /// Facts of the story that are neither expected nor declared. If empty, the story is as expected.
    pub(super) differs: Vec<String>,
    /// Names and reasons of the differences that occurred and are declared for some versions only.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) declared: BTreeMap<String, String>,
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

    pub(super) fn append(&mut self, mut other: Self) {
        self.unknown.append(&mut other.unknown);
        self.new.append(&mut other.new);
        self.changed.append(&mut other.changed);
        self.vanished.append(&mut other.vanished);
    }
}

impl From<Changes> for ShapeChanges {
    fn from(changes: Changes) -> Self {
        let all = |lines: BTreeSet<String>, fields: BTreeMap<String, BTreeSet<String>>| {
            let lines = lines.into_iter().map(|line| format!("line {line}"));
            let fields = fields.into_iter().map(|(field, kinds)| {
                let kinds: Vec<_> = kinds.into_iter().collect();
                format!("field {field} of {}", kinds.join(", "))
            });
            lines.chain(fields).collect()
        };
        Self {
            unknown: BTreeSet::new(),
            new: all(changes.new_lines, changes.new_fields),
            changed: changes.changed,
            vanished: all(changes.vanished_lines, changes.vanished_fields),
        }
    }
}

/// The schema of a version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Schema {
    /// Number of its names, and those that the decoder lacks.
    Read {
        names: usize,
        lacking: BTreeSet<String>,
    },
    /// The reason why there is none.
    None(String),
}

/// Results of a version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Version {
    /// Date of the last run.
    pub(super) date: String,
    /// Version whose fixtures the output was compared with.
    pub(super) reference: String,
    pub(super) schema: Schema,
    /// Results by scenario.
    pub(super) scenarios: BTreeMap<String, Row>,
}

/// All results, by CLI and version.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Results(pub(super) BTreeMap<String, BTreeMap<String, Version>>);

fn results_path() -> PathBuf {
    crate::here().join("versions.json")
}

/// Returns the path of the page.
pub(super) fn page_path() -> PathBuf {
    crate::root().join("docs/versions.md")
}

impl Results {
    /// Reads the results of earlier runs.
    pub(super) fn read() -> anyhow::Result<Self> {
        let path = results_path();
        if !path.exists() {
            return Ok(Self::default());
        }
        let text = std::fs::read_to_string(&path)?;
        serde_json::from_str(&text).with_context(|| path.display().to_string())
    }

    /// Writes the results and the page.
    pub(super) fn write(&self) -> anyhow::Result<()> {
        for (path, text) in [
            (results_path(), serde_json::to_string_pretty(self)? + "\n"),
            (page_path(), self.page()?),
        ] {
            std::fs::write(&path, text)
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(())
    }

    /// Merges the results of a version. Earlier results of scenarios that were not played now are kept.
    pub(super) fn merge(&mut self, cli: Cli, version: &str, now: Version) {
        let versions = self.0.entry(cli.id().to_owned()).or_default();
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

    /// Returns the page of these results.
    pub(super) fn page(&self) -> anyhow::Result<String> {
        let mut page = String::new();
        let out = &mut page;
        writeln!(out, "{HEAD}")?;
        for cli in Cli::ALL {
            if let Some(versions) = self.0.get(cli.id()) {
                of_cli(out, cli, versions)?;
            }
        }
        writeln!(out, "{ACP_HEAD}")?;
        for (info, version) in crate::acp::row::versions()? {
            let id = info.id;
            let oldest = info.oldest_version.unwrap_or("–");
            writeln!(
                out,
                "| {id} | {version} | {oldest} | [scenarios](acp-agents.md#{id}) |"
            )?;
        }
        Ok(page.trim_end().to_owned() + "\n")
    }
}

/// Number of the newest versions on the page, beside the oldest that works as described.
const NEWEST: usize = 2;

/// Maximum number of shown facts of a story that differs.
const SHOWN: usize = 3;

const HEAD: &str = "\
# Versions

Written by `cargo xtask follow`; do not edit. Its results are in `crates/conformance/versions.json`, those of more versions too; a run replaces those of the scenarios that it plays. Here are the two newest versions of each CLI that were played, and the oldest that works as described.

Each version of a CLI plays the scenarios of [conformance.md](conformance.md): cold, with a process for each run, and live, as turns of a session.

- `same`: the story is as expected, or differs as `crates/conformance/differences.toml` declares. What it declares for some versions only is listed below the table.
- `cold differs`, `live differs`, `differs` (both): other facts than these; the first of them are listed below the table, all are in the results.
- `cold only`, `live only`: not played in the other way; `-`: not played. Why is in the scenario (`cold_only`, `only`); a version older than the oldest that works as described has played a sample.

Lines and fields are compared with the fixtures. `new`: no fixture of any version has them; `changed`: another JSON type; `vanished`: the reference, which is the nearest version with fixtures, prints them in the same scenario. Names that the decoder lacks are in the schema that the program carries, and in no text and no variant of the provider's code; many of them are never printed. What looks like such a name and is none is left out (`follow/schema.rs` has the reason).
";

const ACP_HEAD: &str = "\
## Agents by the Agent Client Protocol

Of each, one version has played the scenarios, which are in [acp-agents.md](acp-agents.md) with who is the cause of what differs; an older one is not known to work.

| Agent | Played | Oldest | |
|---|---|---|---|";

fn of_cli(
    out: &mut String,
    cli: Cli,
    versions: &BTreeMap<String, Version>,
) -> Result<(), std::fmt::Error> {
    let oldest = Providers::builtin()
        .get(cli.id())
        .and_then(|it| it.info().oldest_version);
    let mut columns: Vec<_> = versions.iter().collect();
    columns.sort_by_key(|(version, _)| install::numbers(version));
    let newest = columns.len().saturating_sub(NEWEST);
    let others = columns
        .drain(..newest)
        .filter(|(version, _)| Some(version.as_str()) == oldest);
    let others: Vec<_> = others.collect();
    columns.splice(0..0, others);
    let scenarios: BTreeSet<_> = columns
        .iter()
        .flat_map(|(_, version)| version.scenarios.keys())
        .collect();
    writeln!(out, "## {cli}\n")?;
    if let Some(oldest) = oldest {
        writeln!(
            out,
            "The oldest version that works as described: {oldest}.\n"
        )?;
    }
    let names: Vec<_> = columns
        .iter()
        .map(|(version, _)| version.as_str())
        .collect();
    writeln!(out, "| Scenario | {} |", names.join(" | "))?;
    writeln!(out, "|---|{}", "---|".repeat(names.len()))?;
    for scenario in scenarios {
        let cells: Vec<_> = columns
            .iter()
            .map(|(_, version)| cell(version.scenarios.get(scenario)))
            .collect();
        writeln!(out, "| `{scenario}` | {} |", cells.join(" | "))?;
    }
    writeln!(out)?;
    for (name, version) in columns {
        of_version(out, name, version)?;
    }
    Ok(())
}

fn cell(row: Option<&Row>) -> &'static str {
    let differs = |cell: &Option<Cell>| cell.as_ref().map(|cell| !cell.differs.is_empty());
    let Some(row) = row else { return "-" };
    match (differs(&row.cold), differs(&row.live)) {
        (None, None) => "-",
        (Some(false), Some(false)) => "same",
        (Some(true), Some(true)) => "differs",
        (Some(true), Some(false)) => "cold differs",
        (Some(false), Some(true)) => "live differs",
        (Some(false), None) => "same, cold only",
        (Some(true), None) => "differs, cold only",
        (None, Some(false)) => "same, live only",
        (None, Some(true)) => "differs, live only",
    }
}

fn of_version(out: &mut String, name: &str, version: &Version) -> Result<(), std::fmt::Error> {
    writeln!(
        out,
        "### {name}\n\nRun on {}; reference: {}.\n",
        version.date, version.reference
    )?;
    for (scenario, row) in &version.scenarios {
        for (way, cell) in [("cold", &row.cold), ("live", &row.live)] {
            let Some(cell) = cell.as_ref().filter(|cell| !cell.differs.is_empty()) else {
                continue;
            };
            let shown: Vec<_> = cell.differs.iter().take(SHOWN).collect();
            let shown: Vec<_> = shown.into_iter().map(|fact| in_a_list(fact)).collect();
            let more = match cell.differs.len().saturating_sub(SHOWN) {
                0 => String::new(),
                more => format!("; and {more} more"),
            };
            writeln!(out, "- `{scenario}` {way}: {}{more}", shown.join("; "))?;
        }
    }
    for (declared, (why, scenarios)) in declared(version) {
        let scenarios: Vec<_> = scenarios.iter().map(|name| format!("`{name}`")).collect();
        let scenarios = scenarios.join(", ");
        writeln!(out, "- declared, {declared} ({scenarios}): {}", why.trim())?;
    }
    let mut shapes = ShapeChanges::default();
    for row in version.scenarios.values() {
        shapes.append(row.shapes.clone());
    }
    for (what, found) in [
        ("unknown to the decoder", &shapes.unknown),
        ("new", &shapes.new),
        ("changed", &shapes.changed),
        ("vanished", &shapes.vanished),
    ] {
        if !found.is_empty() {
            let found: Vec<_> = found.iter().map(|it| shape(it)).collect();
            writeln!(out, "- {what}: {}", found.join(", "))?;
        }
    }
    match &version.schema {
        Schema::None(why) => writeln!(out, "- the program's own schema: {why}")?,
        Schema::Read { names, lacking } if lacking.is_empty() => {
            writeln!(
                out,
                "- the decoder has all {names} names of the program's own schema"
            )?;
        }
        Schema::Read { names, lacking } => {
            let found: Vec<_> = lacking.iter().map(|it| format!("`{it}`")).collect();
            let count = lacking.len();
            let found = found.join(", ");
            writeln!(
                out,
                "- lacking, {count} of {names} names in the program's own schema: {found}"
            )?;
        }
    }
    writeln!(out)
}

/// Describes a line's type or a field. Lines of some versions have no type.
fn shape(name: &str) -> String {
    if name.is_empty() {
        "a line without a type".to_owned()
    } else {
        format!("`{name}`")
    }
}

/// Returns the differences that are declared for some versions only, by name: the reason and the scenarios.
fn declared(version: &Version) -> BTreeMap<&str, (&str, BTreeSet<&str>)> {
    let mut declared: BTreeMap<&str, (&str, BTreeSet<&str>)> = BTreeMap::new();
    for (scenario, row) in &version.scenarios {
        for (name, why) in row.cold.iter().chain(&row.live).flat_map(|it| &it.declared) {
            let seen = declared.entry(name).or_insert((why, BTreeSet::new()));
            seen.1.insert(scenario);
        }
    }
    declared
}

/// Returns a text in one line of a list, shortened to a readable length.
fn in_a_list(text: &str) -> String {
    const LONGEST: usize = 160;
    let line = text.replace('\n', " ").replace('<', "&lt;");
    match line.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    //! Made-up results.

    use super::*;

    fn set(words: &[&str]) -> BTreeSet<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    fn cell(differs: &[&str]) -> Cell {
        Cell {
            differs: differs.iter().map(|fact| (*fact).to_owned()).collect(),
            declared: BTreeMap::new(),
        }
    }

    fn version(date: &str, scenarios: &[(&str, Row)]) -> Version {
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

    fn row(cold: Cell, live: Option<Cell>) -> Row {
        Row {
            cold: Some(cold),
            live,
            shapes: ShapeChanges::default(),
        }
    }

    #[test]
    fn versions_stand_side_by_side_in_their_order() {
        let mut results = Results::default();
        let text = row(cell(&[]), Some(cell(&["cost: expected true, got nothing"])));
        results.merge(
            Cli::Codex,
            "1.10.0",
            version("2001-02-03", &[("text", text)]),
        );
        let mut old = row(cell(&["a <b>", "2", "3", "4", "5"]), Some(cell(&["c\nd"])));
        let live = old.live.as_mut().unwrap();
        live.declared
            .insert("no-cost".to_owned(), "It prints none.".to_owned());
        old.shapes.new = set(&["line x"]);
        old.shapes.vanished = set(&["field y of z"]);
        let mut old = version(
            "2001-02-04",
            &[("text", old), ("resume", row(cell(&[]), None))],
        );
        old.schema = Schema::Read {
            names: 7,
            lacking: set(&["system/new"]),
        };
        results.merge(Cli::Codex, "1.9.0", old);
        let page = results.page().unwrap();
        let table = page.split_once("| Scenario").unwrap().1;
        let (table, _) = table.split_once(&format!("\n{ACP_HEAD}")).unwrap();
        assert_eq!(
            format!("| Scenario{table}"),
            "\
| Scenario | 1.9.0 | 1.10.0 |
|---|---|---|
| `resume` | same, cold only | - |
| `text` | differs | live differs |

### 1.9.0

Run on 2001-02-04; reference: 1.1.0.

- `text` cold: a &lt;b>; 2; 3; and 2 more
- `text` live: c d
- declared, no-cost (`text`): It prints none.
- new: `line x`
- vanished: `field y of z`
- lacking, 1 of 7 names in the program's own schema: `system/new`

### 1.10.0

Run on 2001-02-03; reference: 1.1.0.

- `text` live: cost: expected true, got nothing
- the program's own schema: it has none
"
        );
    }

    #[test]
    fn a_run_replaces_its_scenarios_and_keeps_the_rest() {
        let mut results = Results::default();
        let both = row(cell(&["x"]), Some(cell(&["y"])));
        let first = version("2001-02-03", &[("text", both.clone()), ("mcp", both)]);
        results.merge(Cli::Codex, "1.9.0", first);
        let again = version("2001-02-05", &[("text", row(cell(&[]), None))]);
        results.merge(Cli::Codex, "1.9.0", again);
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
