//! Rows of agents: their stored form, and the page of all rows.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use teamster::CliInfo;

use super::One;
use super::cause::{Cause, Finding};
use crate::isolation::Network;
use crate::{markdown, say};

/// The row of an agent, stored as JSON.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Row {
    name: String,
    /// The version that the agent reports.
    version: Option<String>,
    command: String,
    /// The day on which its newest cell was played.
    date: String,
    network: String,
    /// The answer to `initialize`.
    about: Option<Value>,
    scenarios: BTreeMap<String, Cells>,
    /// Violations of the protocol's schema, with their numbers in each cell.
    violations: BTreeMap<String, BTreeMap<String, usize>>,
}

/// Results of a scenario as runs and as turns of a session; `None` if it was not played this way.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Cells {
    #[serde(skip_serializing_if = "Option::is_none")]
    cold: Option<Vec<Finding>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hot: Option<Vec<Finding>>,
}

impl Row {
    pub(crate) fn new(name: &str, command: &str, network: Network) -> Self {
        Self {
            name: name.to_owned(),
            version: None,
            command: command.to_owned(),
            date: today(),
            network: network.describe().to_owned(),
            about: None,
            scenarios: BTreeMap::new(),
            violations: BTreeMap::new(),
        }
    }

    /// Returns the row that is stored under this name, if any.
    pub(crate) fn find(name: &str) -> anyhow::Result<Option<Self>> {
        Ok(rows()?.into_iter().find(|row| row.name == name))
    }

    /// Returns the row that is stored under this name.
    pub(crate) fn kept(name: &str) -> anyhow::Result<Self> {
        Self::find(name)?.with_context(|| format!("no row of {name} yet; play all scenarios first"))
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    /// Returns the differences of a scenario, or `None` if it was not played this way.
    pub(crate) fn findings(&self, scenario: &str, hot: bool) -> Option<&[Finding]> {
        let cells = self.scenarios.get(scenario)?;
        let cell = if hot { &cells.hot } else { &cells.cold };
        cell.as_deref()
    }

    /// Adds a cell. It replaces the cell of an earlier time, with its violations.
    pub(crate) fn add(&mut self, one: One) {
        if self.about.is_none()
            && let Some(about) = one.about
        {
            let version = about["agentInfo"]["version"].as_str();
            self.version = version.map(str::to_owned);
            self.about = Some(about);
        }
        self.date = today();
        let way = if one.hot { "hot" } else { "cold" };
        let name = format!("{} {way}", one.scenario.name);
        self.violations.retain(|_, counts| {
            counts.remove(&name);
            !counts.is_empty()
        });
        for (problem, count) in one.violations {
            let counts = self.violations.entry(problem).or_default();
            counts.insert(name.clone(), count);
        }
        let cells = self.scenarios.entry(one.scenario.name.clone()).or_default();
        let cell = if one.hot {
            &mut cells.hot
        } else {
            &mut cells.cold
        };
        *cell = Some(one.findings);
    }

    fn cells(&self) -> impl Iterator<Item = &Vec<Finding>> {
        let cells = self.scenarios.values();
        cells.flat_map(|cells| cells.cold.iter().chain(&cells.hot))
    }

    /// Returns the number of facts that differ by this cause.
    pub(crate) fn count(&self, cause: Cause) -> usize {
        let findings = self.cells().flatten();
        findings.filter(|finding| finding.cause == cause).count()
    }

    /// Returns the violations with their numbers in all cells.
    fn violations(&self) -> impl Iterator<Item = (&str, usize)> {
        let sum = |counts: &BTreeMap<String, usize>| counts.values().sum();
        let all = self.violations.iter();
        all.map(move |(problem, counts)| (&**problem, sum(counts)))
    }

    pub(crate) fn print(&self, time: Duration) {
        let version = self.version.as_deref().unwrap_or("of an unknown version");
        say(format_args!("\n{} {version}", self.name));
        for (scenario, cells) in &self.scenarios {
            say(format_args!(
                "  {scenario:<24} {:<32} {}",
                cell(cells.cold.as_ref()),
                cell(cells.hot.as_ref())
            ));
        }
        for (problem, count) in self.violations() {
            say(format_args!(
                "against the protocol, {count} times: {problem}"
            ));
        }
        let all = self.cells().count();
        let same = self.cells().filter(|findings| findings.is_empty()).count();
        say(format_args!(
            "{same} of {all} the same in {} s; what differs is by: {}",
            time.as_secs(),
            sums(self.cells().flatten())
        ));
    }

    pub(crate) fn save(&self) -> anyhow::Result<()> {
        let path = folder().join(format!("{}.json", self.name));
        std::fs::create_dir_all(folder())?;
        let text = serde_json::to_string_pretty(self)? + "\n";
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }
}

fn today() -> String {
    jiff::Zoned::now().date().to_string()
}

fn folder() -> PathBuf {
    crate::here().join("acp")
}

fn cell(findings: Option<&Vec<Finding>>) -> String {
    findings.map_or_else(|| "–".to_owned(), |findings| summary(findings))
}

/// Returns the number of differences by cause.
pub(crate) fn summary(findings: &[Finding]) -> String {
    if findings.is_empty() {
        return "same".to_owned();
    }
    format!("same but for {}", sums(findings.iter()))
}

fn sums<'f>(findings: impl Iterator<Item = &'f Finding>) -> String {
    let mut sums: BTreeMap<Cause, usize> = BTreeMap::new();
    for finding in findings {
        *sums.entry(finding.cause).or_default() += 1;
    }
    let sums: Vec<_> = sums
        .iter()
        .map(|(cause, count)| format!("{count} {cause}"))
        .collect();
    if sums.is_empty() {
        "none".to_owned()
    } else {
        sums.join(", ")
    }
}

/// Returns a value of a fact as text.
pub(crate) fn shown(value: Option<&Value>) -> String {
    value.map_or_else(|| "nothing".to_owned(), Value::to_string)
}

fn rows() -> anyhow::Result<Vec<Row>> {
    let mut rows: Vec<Row> = Vec::new();
    for entry in std::fs::read_dir(folder())? {
        let path = entry?.path();
        let text = std::fs::read_to_string(&path)?;
        rows.push(serde_json::from_str(&text).with_context(|| path.display().to_string())?);
    }
    rows.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(rows)
}

/// Returns the versions of the providers with a stored row, by name.
pub(crate) fn versions() -> anyhow::Result<Vec<(&'static CliInfo, String)>> {
    let of_row = |row: Row| {
        Some((
            teamster::Providers::builtin().get(&row.name)?.info(),
            row.version?,
        ))
    };
    Ok(rows()?.into_iter().filter_map(of_row).collect())
}

/// Writes `docs/acp-agents.md`.
pub(crate) fn write_page() -> anyhow::Result<()> {
    let path = crate::root().join("docs/acp-agents.md");
    std::fs::write(&path, page(&rows()?)?)
        .with_context(|| format!("cannot write {}", path.display()))
}

fn page(rows: &[Row]) -> anyhow::Result<String> {
    let mut page = String::new();
    let out = &mut page;
    writeln!(
        out,
        "# ACP agents\n\n\
         Written by `cargo xtask conformance --acp \"CMD\" --save NAME`; do not edit.\n\n\
         Each agent is the real program, named by its command (`acp:CMD`) and played the scenarios of \
         [conformance.md](conformance.md) that need no feature which only some agents have. A cell is \
         `same`, or how many facts of the story differ and by whom:\n\n\
         - **teamster**: the agent printed it, and teamster did not report it\n\
         - **agent**: it does it otherwise, or does not print it; *against the protocol* where what it prints \
         is not as the protocol's schema has it, *as it declares* where it reports itself that it cannot\n\
         - **teamster acp**: the same of `teamster acp PROVIDER`, where a run of the provider itself does not differ\n\
         - **protocol**: the protocol has no means for it\n\
         - **setup**: the agent did not ask the mock model\n\n\
         `cold` is a process for each run, `hot` a turn of a session whose process is there already. `–` was not \
         played: fast-agent, openhands and vibe have played the scenarios in their columns only.\n\n\
         In `teamster acp PROVIDER` the provider is compared with a run of itself: all its scenarios are played, and \
         a difference that is [declared for it](conformance.md#declared-differences) is none.\n\n\
         In the table of an agent, a row has what differs for one reason, with an example of its first fact. \
         [The data](../crates/conformance/acp) has all facts of each scenario.\n"
    )?;
    writeln!(
        out,
        "| Agent | Version | Command | Run on | Same | Differences by |"
    )?;
    writeln!(out, "|---|---|---|---|---|---|")?;
    for row in rows {
        let same = row.cells().filter(|findings| findings.is_empty()).count();
        writeln!(
            out,
            "| {} | {} | `{}` | {} | {same} of {} | {} |",
            row.name,
            row.version.as_deref().unwrap_or("–"),
            row.command,
            row.date,
            row.cells().count(),
            sums(row.cells().flatten())
        )?;
    }
    table(out, rows);
    for row in rows {
        details(out, row)?;
    }
    writeln!(out, "\n{WITHOUT_A_ROW}")?;
    Ok(page)
}

/// Agents without a row, with the reasons.
const WITHOUT_A_ROW: &str = "\
## Tried, without a row

On 2026-11-29, with Python 3.11 and 3.12 and Node 22. Of the agents that answered, only `text` and `tools_in_turns` were played:

| Agent | From | What happened |
|---|---|---|
| gptme 0.35.1 | PyPI, `gptme` | `acp:gptme-acp` works, with `MODEL` in its environment: it answers, and reports no figures. Its answer begins with lines about the session. As an ACP agent it always has its tools as text in the model's answer, not as calls of the service's protocol, so no scenario with tools can be scripted |
| Goose | – | neither npm nor PyPI has it |
| Grok Build 1.0.41 | npm, `@xai-official/grok` | `acp:grok agent --no-leader stdio`, with `XAI_API_KEY` and `XAI_API_BASE_URL`, answered one prompt in 5 s; 21 of its lines were notifications of its own, which are `unknown`, and its tokens are in one of them. In the later runs no scenario was over after 240 s, alone or side by side, so there is no row |
| nanocoder 1.30.0 | npm, `@nanocollective/nanocoder` | starts, and has no ACP server: `nanocoder run` prints text for people |";

fn table(out: &mut String, rows: &[Row]) {
    let names: BTreeSet<_> = rows.iter().flat_map(|row| row.scenarios.keys()).collect();
    out.push_str("\n## Scenarios\n\n");
    let columns = rows
        .iter()
        .flat_map(|row| [format!("{} cold", row.name), "hot".to_owned()]);
    markdown::head(out, ["Scenario".to_owned()].into_iter().chain(columns));
    for name in names {
        let cells = rows.iter().flat_map(|row| {
            let cells = row.scenarios.get(name);
            let (cold, hot) = (cells.map(|it| &it.cold), cells.map(|it| &it.hot));
            [cold, hot].map(|findings| cell(findings.and_then(Option::as_ref)))
        });
        markdown::row(out, [format!("`{name}`")].into_iter().chain(cells));
    }
}

/// Writes the differences by cause and reason, with their facts and scenarios.
fn details(out: &mut String, row: &Row) -> anyhow::Result<()> {
    writeln!(out, "\n## {}\n", row.name)?;
    let mut kinds: BTreeMap<_, (BTreeMap<&str, &Finding>, BTreeSet<&str>)> = BTreeMap::new();
    for (scenario, cells) in &row.scenarios {
        for finding in cells.cold.iter().chain(&cells.hot).flatten() {
            let kind = (finding.cause, reason(&finding.evidence));
            let (facts, scenarios) = kinds.entry(kind).or_default();
            facts.entry(&finding.fact).or_insert(finding);
            scenarios.insert(scenario);
        }
    }
    if !kinds.is_empty() {
        writeln!(
            out,
            "| Cause | Facts | Scenarios | For example |\n|---|---|---|---|"
        )?;
    }
    for ((cause, _), (facts, scenarios)) in kinds {
        let Some(finding) = facts.values().next() else {
            continue;
        };
        let example = format!(
            "expected {}, got {}: {}",
            shown(finding.expected.as_ref()),
            shown(finding.actual.as_ref()),
            finding.evidence
        );
        writeln!(
            out,
            "| {cause} | {} | {} | {} |",
            first_names(facts.keys().copied()),
            first_names(scenarios.iter().copied()),
            super::check::excerpt(&example).replace('|', "\\|")
        )?;
    }
    if !row.violations.is_empty() {
        writeln!(out, "\nAgainst the protocol's schema:\n")?;
        for (problem, count) in row.violations() {
            writeln!(out, "- {count} times: {problem}")?;
        }
    }
    Ok(())
}

/// Returns the words of the evidence before the first part that the agent printed.
fn reason(evidence: &str) -> &str {
    let end = evidence.find(['"', '{', '`']);
    &evidence[..end.unwrap_or(evidence.len())]
}

/// Returns the first of these names, and the number of the others.
fn first_names<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> String {
    const MOST: usize = 6;
    let more = names.len().saturating_sub(MOST);
    let names: Vec<_> = names.take(MOST).map(|name| format!("`{name}`")).collect();
    let names = names.join(", ");
    match more {
        0 => names,
        more => format!("{names} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    /// A played `text` with this number of violations.
    fn one(hot: bool, violations: usize) -> One {
        let mut found = crate::scenario::read(&["text".to_owned()]).unwrap();
        let problem = "`x/y` is no method of the protocol".to_owned();
        let violations = (violations > 0).then_some((problem, violations));
        One {
            scenario: Arc::new(found.remove(0)),
            hot,
            findings: Vec::new(),
            violations: violations.into_iter().collect(),
            about: None,
            played: Vec::new(),
            time: Duration::ZERO,
        }
    }

    #[test]
    fn a_cell_played_again_replaces_its_violations() {
        let mut row = Row::new("x", "x --acp", Network::Namespace);
        let sum = |row: &Row| row.violations().map(|(_, count)| count).sum::<usize>();
        row.add(one(false, 2));
        row.add(one(true, 3));
        assert_eq!(sum(&row), 5);
        row.add(one(false, 2));
        assert_eq!(sum(&row), 5);
        row.add(one(true, 0));
        assert_eq!(sum(&row), 2);
        row.add(one(false, 0));
        assert!(row.violations.is_empty());
    }

    #[test]
    fn names_beyond_the_sixth_are_counted() {
        let names = ["a", "b", "c", "d", "e", "f", "g"];
        assert_eq!(first_names(names[..1].iter().copied()), "`a`");
        let six = "`a`, `b`, `c`, `d`, `e`, `f`";
        assert_eq!(first_names(names[..6].iter().copied()), six);
        let all = first_names(names.iter().copied());
        assert_eq!(all, format!("{six} and 1 more"));
    }

    #[test]
    fn no_difference_in_a_row_of_a_provider_is_by_teamster() {
        for row in rows().unwrap() {
            let is_provider = teamster::Providers::builtin().get(&row.name).is_some();
            let count = row.count(Cause::Teamster);
            assert!(!is_provider || count == 0, "{}: {count}", row.name);
        }
    }

    #[test]
    fn the_version_of_a_row_is_tested() {
        for (info, version) in versions().unwrap() {
            assert!(info.tested_versions.contains(&&*version), "{}", info.id);
        }
    }

    #[test]
    fn the_kept_rows_give_the_page_that_is_there() {
        if folder().exists() {
            let there = std::fs::read_to_string(crate::root().join("docs/acp-agents.md")).unwrap();
            assert_eq!(page(&rows().unwrap()).unwrap(), there);
        }
    }
}
