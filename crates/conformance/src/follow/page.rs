//! `docs/versions.md`: version by scenario.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::Context;
use teamster::Providers;

use super::results::{Cell, Results, Row, Schema, Version};
use crate::{install, markdown};

pub(super) fn path() -> PathBuf {
    crate::root().join("docs/versions.md")
}

pub(super) fn write(results: &Results) -> anyhow::Result<()> {
    let path = path();
    std::fs::write(&path, of(results)?).with_context(|| format!("cannot write {}", path.display()))
}

pub(super) fn of(results: &Results) -> anyhow::Result<String> {
    let mut page = String::new();
    let out = &mut page;
    writeln!(out, "{HEAD}")?;
    for (id, versions) in &results.0 {
        of_cli(out, id, versions)?;
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

/// Number of the newest versions on the page, beside the oldest that works as described.
const NEWEST: usize = 2;

/// Maximum number of shown facts of a story that differs.
const SHOWN: usize = 3;

const HEAD: &str = "\
# Versions

Written by `cargo xtask follow`; do not edit. Its results are in `crates/conformance/versions.json`, those of more versions too; a run replaces those of the scenarios that it plays. Here are the two newest versions of each CLI that were played, and the oldest that works as described.

Each version of a CLI plays the scenarios of [conformance.md](conformance.md): cold, with a process for each run, and live, as turns of a session. The tables have the scenarios in which a version is not `same`.

- `same`: the story is as expected, or differs as `crates/conformance/differences.toml` declares. What it declares for some versions only is listed below the table.
- `otherwise`: of an agent of [acp-agents.md](acp-agents.md) only: not as in the row of that page, by the agent itself.
- `cold differs`, `live differs`, `differs` (both): other facts than these; the first of them are listed below the table, all are in the results.
- `cold only`, `live only`: not played in the other way; `-`: not played. Why is in the scenario (`cold_only`, `only`); a version older than the oldest that works as described has played a sample.

Lines and fields are compared with the fixtures. `new`: no fixture of any version has them; `changed`: another JSON type; `vanished`: the reference, which is the nearest version with fixtures, prints them in the same scenario. Names that the decoder lacks are in the schema that the program carries, and in no text and no variant of the provider's code; many of them are never printed. What looks like such a name and is none is left out (`follow/schema.rs` has the reason).
";

const ACP_HEAD: &str = "\
## Agents by the Agent Client Protocol

[acp-agents.md](acp-agents.md) has a row of one version of each, with who is the cause of what differs; the other versions above are compared with it.

| Agent | Row of | Oldest | |
|---|---|---|---|";

fn of_cli(
    out: &mut String,
    id: &str,
    versions: &BTreeMap<String, Version>,
) -> Result<(), std::fmt::Error> {
    let oldest = Providers::builtin()
        .get(id)
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
    writeln!(out, "## {id}\n")?;
    if let Some(oldest) = oldest {
        writeln!(
            out,
            "The oldest version that works as described: {oldest}.\n"
        )?;
    }
    let names = columns.iter().map(|(version, _)| version.as_str());
    markdown::head(out, ["Scenario"].into_iter().chain(names));
    let mut same = 0;
    for scenario in scenarios {
        let cells = (columns.iter()).map(|(_, version)| cell(version.scenarios.get(scenario)));
        let cells: Vec<_> = cells.collect();
        if cells.iter().all(|cell| cell == "same") {
            same += 1;
        } else {
            markdown::row(out, [format!("`{scenario}`")].into_iter().chain(cells));
        }
    }
    writeln!(out, "\nThe other scenarios, {same}: `same`.\n")?;
    for (name, version) in columns {
        of_version(out, name, version)?;
    }
    Ok(())
}

fn cell(row: Option<&Row>) -> String {
    let word = |cell: &Option<Cell>| cell.as_ref().map(Cell::word);
    let none = || "-".to_owned();
    let Some(row) = row else { return none() };
    match (word(&row.cold), word(&row.live)) {
        (None, None) => none(),
        (Some(cold), Some(live)) if cold == live => cold.to_owned(),
        (Some(cold), Some("same")) => format!("cold {cold}"),
        (Some("same"), Some(live)) => format!("live {live}"),
        (Some(cold), Some(live)) => format!("cold {cold}, live {live}"),
        (Some(cold), None) => format!("{cold}, cold only"),
        (None, Some(live)) => format!("{live}, live only"),
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
    for (fact, scenarios) in otherwise(version) {
        let scenarios: Vec<_> = scenarios.iter().map(|name| format!("`{name}`")).collect();
        let (fact, scenarios) = (in_a_list(fact), scenarios.join(", "));
        writeln!(out, "- otherwise ({scenarios}): {fact}")?;
    }
    for (declared, (why, scenarios)) in declared(version) {
        let scenarios: Vec<_> = scenarios.iter().map(|name| format!("`{name}`")).collect();
        let scenarios = scenarios.join(", ");
        writeln!(out, "- declared, {declared} ({scenarios}): {}", why.trim())?;
    }
    for (what, found) in version.shapes().kinds() {
        if !found.is_empty() {
            let found: Vec<_> = found.iter().map(|it| shape(it)).collect();
            writeln!(out, "- {what}: {}", found.join(", "))?;
        }
    }
    match &version.schema {
        Schema::None(why) => writeln!(out, "- the program's own schema: {why}")?,
        Schema::Read { names, lacking, .. } if lacking.is_empty() => {
            writeln!(
                out,
                "- the decoder has all {names} names of the program's own schema"
            )?;
        }
        Schema::Read { names, lacking, .. } => {
            let found: Vec<_> = lacking.iter().map(|it| format!("`{it}`")).collect();
            let count = lacking.len();
            let found = found.join(", ");
            writeln!(
                out,
                "- lacking, {count} of {names} names in the program's own schema: {found}"
            )?;
        }
    }
    if let Schema::Read {
        since: Some((older, new)),
        ..
    } = &version.schema
        && !new.is_empty()
    {
        let new: Vec<_> = new.iter().map(|it| format!("`{it}`")).collect();
        let new = new.join(", ");
        writeln!(
            out,
            "- in its own schema, and not in that of {older}: {new}"
        )?;
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

/// Returns the facts that are otherwise than in the agent's row, with their scenarios.
fn otherwise(version: &Version) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut facts: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (scenario, row) in &version.scenarios {
        for fact in row.cells().flat_map(|it| &it.otherwise) {
            facts.entry(fact).or_default().insert(scenario);
        }
    }
    facts
}

/// Returns the differences that are declared for some versions only, by name: the reason and the scenarios.
fn declared(version: &Version) -> BTreeMap<&str, (&str, BTreeSet<&str>)> {
    let mut declared: BTreeMap<&str, (&str, BTreeSet<&str>)> = BTreeMap::new();
    for (scenario, row) in &version.scenarios {
        for (name, why) in row.cells().flat_map(|it| &it.declared) {
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

    use super::super::results::tests::{cell, row, version};
    use super::*;

    fn set(words: &[&str]) -> BTreeSet<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn versions_stand_side_by_side_in_their_order() {
        let mut results = Results::default();
        let text = row(cell(&[]), Some(cell(&["cost: expected true, got nothing"])));
        results.merge(
            "codex",
            "1.10.0",
            version(
                "2001-02-03",
                &[("text", text), ("mcp", row(cell(&[]), Some(cell(&[]))))],
            ),
        );
        let mut old = row(cell(&["a <b>", "2", "3", "4", "5"]), Some(cell(&["c\nd"])));
        let live = old.live.as_mut().unwrap();
        live.declared
            .insert("no-cost".to_owned(), "It prints none.".to_owned());
        old.shapes.new = set(&["line x"]);
        old.shapes.vanished = set(&["field y of z"]);
        let mut old = version(
            "2001-02-04",
            &[
                ("text", old),
                ("resume", row(cell(&[]), None)),
                ("mcp", row(cell(&[]), Some(cell(&[])))),
            ],
        );
        old.schema = Schema::Read {
            names: 7,
            lacking: set(&["system/new"]),
            since: Some(("1.8.0".to_owned(), set(&["Item.new"]))),
        };
        results.merge("codex", "1.9.0", old);
        let page = of(&results).unwrap();
        let table = page.split_once("| Scenario").unwrap().1;
        let (table, _) = table.split_once(&format!("\n{ACP_HEAD}")).unwrap();
        assert_eq!(
            format!("| Scenario{table}"),
            "\
| Scenario | 1.9.0 | 1.10.0 |
|---|---|---|
| `resume` | same, cold only | - |
| `text` | differs | live differs |

The other scenarios, 1: `same`.

### 1.9.0

Run on 2001-02-04; reference: 1.1.0.

- `text` cold: a &lt;b>; 2; 3; and 2 more
- `text` live: c d
- declared, no-cost (`text`): It prints none.
- new: `line x`
- vanished: `field y of z`
- lacking, 1 of 7 names in the program's own schema: `system/new`
- in its own schema, and not in that of 1.8.0: `Item.new`

### 1.10.0

Run on 2001-02-03; reference: 1.1.0.

- `text` live: cost: expected true, got nothing
- the program's own schema: it has none
"
        );
    }

    #[test]
    fn a_version_of_an_agent_is_otherwise_than_its_row() {
        let mut other = cell(&[]);
        other.otherwise = vec!["cost: as expected".to_owned()];
        let text = |row: &Row| super::cell(Some(row));
        assert_eq!(text(&row(other.clone(), Some(cell(&[])))), "cold otherwise");
        assert_eq!(text(&row(other.clone(), Some(other.clone()))), "otherwise");
        let both = row(other.clone(), Some(cell(&["x"])));
        assert_eq!(text(&both), "cold otherwise, live differs");
        let now = version("2001-02-03", &[("text", row(other, None))]);
        let mut page = String::new();
        of_version(&mut page, "1.0.0", &now).unwrap();
        assert!(
            page.contains("- otherwise (`text`): cost: as expected\n"),
            "{page}"
        );
    }
}
