//! `docs/conformance.md`: scenario by provider.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;

use crate::column::Column;
use crate::differences::{Differences, Verdict};
use crate::isolation::Network;
use crate::scenario::Scenario;
use crate::{fact, install, say};

/// Prefix of the line with the date.
const RUN_ON: &str = "Run on ";

/// The headings of the two tables.
const RUNS: &str = "## Runs";
const TURNS: &str = "## Turns of a session";

/// The heading of the section that `cargo xtask resilience` writes.
pub(crate) const RESILIENCE: &str = "## Resilience";

/// The heading of the section that `cargo xtask loop` writes.
pub(crate) const LOOP: &str = "## Agent loop";

/// The heading of the section that `cargo xtask conformance --times` writes.
pub(crate) const TIMES: &str = "## Times";

/// The sections at the end that other tasks write, in order.
const KEPT: [&str; 3] = [RESILIENCE, LOOP, TIMES];

fn path() -> PathBuf {
    crate::root().join("docs/conformance.md")
}

/// Writes the page, or only checks that the current one is equal. Returns `false` if it is not.
pub(crate) fn settle(page: &str, check: bool, command: &str) -> anyhow::Result<bool> {
    if !check {
        write(page)?;
        return Ok(true);
    }
    let current = is_current(page)?;
    if !current {
        say(format_args!(
            "docs/conformance.md is not what this run gives: `{command}` writes it"
        ));
    }
    Ok(current)
}

/// Writes the page.
pub(crate) fn write(page: &str) -> anyhow::Result<()> {
    let path = path();
    std::fs::write(&path, page).with_context(|| format!("cannot write {}", path.display()))
}

/// Returns whether the current page equals this one, except for its date.
fn is_current(page: &str) -> anyhow::Result<bool> {
    let there = there()?;
    let undated = |page: &str| -> Vec<String> {
        let lines = page.lines().filter(|line| !line.starts_with(RUN_ON));
        lines.map(str::to_owned).collect()
    };
    Ok(undated(&there) == undated(page))
}

/// Splits a page into the part that this task writes and each of the [`KEPT`] sections.
fn parts(page: &str) -> (&str, [&str; KEPT.len()]) {
    let start = |heading: &&str| page.find(&format!("\n{heading}\n")).map(|at| at + 1);
    let starts = KEPT.each_ref().map(start);
    let end = |from: usize| {
        let others = starts.iter().flatten().filter(|at| **at > from);
        others.min().map_or(page.len(), |at| *at)
    };
    let sections = starts.map(|at| at.map_or("", |at| page[at..end(at)].trim_end()));
    (page[..end(0)].trim_end(), sections)
}

/// Joins the parts of a page.
fn joined(own: &str, sections: [&str; KEPT.len()]) -> String {
    let mut page = own.trim_end().to_owned();
    for section in sections.iter().filter(|section| !section.is_empty()) {
        page.push_str("\n\n");
        page.push_str(section.trim_end());
    }
    page.push('\n');
    page
}

/// Reads the current page.
pub(crate) fn there() -> anyhow::Result<String> {
    let path = path();
    std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
}

/// Returns the current page with one of the [`KEPT`] sections replaced.
pub(crate) fn with_section(section: &str) -> anyhow::Result<String> {
    let page = there()?;
    let (own, mut sections) = parts(&page);
    for (heading, place) in KEPT.iter().zip(&mut sections) {
        if section.starts_with(heading) {
            *place = section;
        }
    }
    Ok(joined(own, sections))
}

/// Returns one of the [`KEPT`] sections of a page, by its heading.
pub(crate) fn section<'p>(page: &'p str, heading: &str) -> &'p str {
    let at = KEPT.iter().position(|known| *known == heading);
    at.map_or("", |at| parts(page).1[at])
}

/// Renders the page. Cells that were not played now are copied from the current page.
pub(crate) fn page(
    scenarios: &[Arc<Scenario>],
    columns: &[Column],
    cells: &BTreeMap<(Column, String), Verdict>,
    differences: &Differences,
    run_on: &str,
) -> anyhow::Result<String> {
    let versions = install::pinned()?;
    let there = there()?;
    let own = parts(&there).0;
    let mut table = Table::new(differences);
    let mut page = String::new();
    let out = &mut page;
    writeln!(
        out,
        "# Conformance\n\n\
         Written by `cargo xtask conformance`; do not edit.\n\n\
         Each scenario is a script that a mock model plays to every CLI: the real program, run through the public \
         API of `teamster`. The events give a story: text, tools with input and result, errors by kind, status, \
         tokens, retries. The story must be the same for every CLI. What a CLI forces to be different is \
         declared by name, and any other difference fails.\n\n\
         {RUN_ON}{run_on}.\n\n\
         | Cell | Meaning |\n|---|---|\n\
         | ✓ | the same story |\n\
         | ✓ 4, 29 | the same but for these [declared differences](#declared-differences); each number is a link |\n\
         | – a | not played, for this [reason](#reasons) |\n\
         | run only: c | played as a run, not as a turn, for this [reason](#reasons) |"
    )?;
    for (heading, hot) in [(RUNS, false), (TURNS, true)] {
        let columns: Vec<Column> = columns.iter().filter(|it| it.hot == hot).copied().collect();
        if columns.is_empty() {
            continue;
        }
        let about = if hot {
            "The same scenarios as turns of a session, in a process that has played another turn before; a turn \
             that breaks off is followed by one more. Its events and figures must be those of a run."
        } else {
            "One process for each run."
        };
        writeln!(out, "\n{heading}\n\n{about}\n")?;
        write!(out, "| Scenario |")?;
        for column in &columns {
            let version = versions.get(&column.cli).map_or("", String::as_str);
            write!(
                out,
                " {} |",
                format!("{} {version}", column.cli.id()).trim_end()
            )?;
        }
        write!(
            out,
            "\n|---|{}\n| everywhere |",
            "---|".repeat(columns.len())
        )?;
        for column in &columns {
            let names = table.everywhere(*column).into_iter().map(str::to_owned);
            write!(out, " {} |", table.links(&names.collect::<Vec<_>>()))?;
        }
        writeln!(out)?;
        let kept = kept_cells(own, heading);
        for scenario in scenarios {
            write!(
                out,
                "| [`{name}`](../crates/conformance/scenarios/{name}.toml) |",
                name = scenario.name
            )?;
            for column in &columns {
                let version = versions.get(&column.cli).map_or("", String::as_str);
                let cell = match cells.get(&(*column, scenario.name.clone())) {
                    Some(cell) if !cell.undeclared.is_empty() => "**fails**".to_owned(),
                    Some(cell) => table.same_but_for(*column, cell.declared.iter()),
                    None => {
                        if let Some(why) = scenario.not_played(column.cli, version) {
                            format!("– {}", table.reason(why))
                        } else if let Some(why) = scenario.cold_only(column.cli).filter(|_| hot) {
                            format!("run only: {}", table.reason(why))
                        } else {
                            kept.get(&(scenario.name.as_str(), column.cli.id()))
                                .and_then(|cell| names_in(cell))
                                .map_or_else(
                                    || "not run".to_owned(),
                                    |names| table.same_but_for(*column, names.iter()),
                                )
                        }
                    }
                };
                write!(out, " {cell} |")?;
            }
            writeln!(out)?;
        }
    }
    writeln!(out, "\n## Scenarios\n")?;
    for scenario in scenarios {
        writeln!(out, "- `{}`: {}", scenario.name, scenario.description())?;
    }
    if !table.reasons.is_empty() {
        writeln!(out, "\n## Reasons\n")?;
        for (at, why) in table.reasons.iter().enumerate() {
            writeln!(out, "- {}: {}", letter(at), why.trim())?;
        }
    }
    writeln!(out, "\n## Declared differences")?;
    for (at, name) in table.names.iter().enumerate() {
        writeln!(out, "\n### {}. {name}\n", at + 1)?;
        let mut seen = Vec::new();
        for difference in differences
            .difference
            .iter()
            .filter(|one| one.name == *name)
        {
            // The same difference may have other facts in another scenario.
            let this = (&difference.providers, difference.hot, &difference.why);
            if seen.contains(&this) {
                continue;
            }
            seen.push(this);
            writeln!(
                out,
                "- {}{}: {}",
                difference.providers.join(", "),
                match difference.hot {
                    None => "",
                    Some(true) => " (turns only)",
                    Some(false) => " (runs only)",
                },
                difference.why.trim()
            )?;
        }
    }
    writeln!(out, "\n## Facts of a story\n")?;
    for (fact, meaning) in fact::FACTS {
        writeln!(out, "- `{fact}`: {meaning}")?;
    }
    writeln!(
        out,
        "- `tool1`, `tool1.output`, `tool1.lines`, `tool1.failed`, `tool2`, …: a call, its output, how many lines that has, whether it failed\n\
         - `file.NAME`: the content of a file afterwards"
    )?;
    Ok(joined(&page, parts(&there).1))
}

/// Returns the date and network of the current page, for a page that is only rendered again.
pub(crate) fn run_on() -> anyhow::Result<String> {
    let there = there()?;
    let line = there.lines().find_map(|line| line.strip_prefix(RUN_ON));
    Ok(line.unwrap_or_default().trim_end_matches('.').to_owned())
}

/// Returns today's date and the kind of network, for a page that is played now.
pub(crate) fn run_now(network: Network) -> String {
    format!("{}, {}", jiff::Zoned::now().date(), network.describe())
}

/// Numbers of differences and letters of reasons.
struct Table<'a> {
    differences: &'a Differences,
    /// Differences in the order of their declarations. Their numbers count from 1.
    names: Vec<&'a str>,
    /// Reasons why scenarios are not played, in the order of their first use.
    reasons: Vec<String>,
}

impl<'a> Table<'a> {
    fn new(differences: &'a Differences) -> Self {
        let mut names: Vec<&str> = Vec::new();
        for difference in &differences.difference {
            if !names.contains(&difference.name.as_str()) {
                names.push(&difference.name);
            }
        }
        Self {
            differences,
            names,
            reasons: Vec::new(),
        }
    }

    /// Returns the differences that a column has in all scenarios that report their facts. They have a
    /// separate row.
    fn everywhere(&self, column: Column) -> Vec<&'a str> {
        let all = self.differences.difference.iter();
        let mut names: Vec<&str> = all
            .filter(|one| {
                one.scenarios.iter().any(|scenario| scenario == "*")
                    && one.providers.iter().any(|id| id == column.cli.id())
                    && one.hot.is_none_or(|hot| hot == column.hot)
            })
            .map(|one| one.name.as_str())
            .collect();
        names.dedup();
        names
    }

    /// Returns links to differences, such as `[4](#4-late-text "late-text")`.
    fn links(&self, names: &[String]) -> String {
        let mut numbers: Vec<(usize, &str)> = names
            .iter()
            .filter_map(|name| {
                let at = self.names.iter().position(|known| known == name)?;
                Some((at + 1, name.as_str()))
            })
            .collect();
        numbers.sort_unstable();
        let links = numbers
            .iter()
            .map(|(number, name)| format!("[{number}](#{number}-{name} \"{name}\")"));
        links.collect::<Vec<_>>().join(", ")
    }

    fn same_but_for<'n>(&self, column: Column, names: impl Iterator<Item = &'n String>) -> String {
        let everywhere = self.everywhere(column);
        let names = names.filter(|name| !everywhere.contains(&name.as_str()));
        let links = self.links(&names.cloned().collect::<Vec<_>>());
        format!("✓ {links}").trim_end().to_owned()
    }

    /// Returns a link to a reason, by its letter.
    fn reason(&mut self, why: &str) -> String {
        let at = self.reasons.iter().position(|known| known == why);
        let at = at.unwrap_or_else(|| {
            self.reasons.push(why.to_owned());
            self.reasons.len() - 1
        });
        format!("[{}](#reasons)", letter(at))
    }
}

fn letter(at: usize) -> char {
    ('a'..='z').nth(at).unwrap_or('?')
}

/// Returns the cells of one of the tables of a page, by scenario and CLI.
fn kept_cells<'p>(page: &'p str, heading: &str) -> BTreeMap<(&'p str, &'p str), &'p str> {
    let mut kept = BTreeMap::new();
    let Some((_, rest)) = page.split_once(&format!("\n{heading}\n")) else {
        return kept;
    };
    let table = rest.split("\n## ").next().unwrap_or_default();
    let cells = |line: &'p str| {
        let line = line
            .strip_prefix("| ")
            .and_then(|line| line.strip_suffix(" |"));
        line.map(|line| line.split(" | ").collect::<Vec<_>>())
    };
    let mut rows = table.lines().filter_map(cells);
    let columns = rows.next().unwrap_or_default();
    for row in rows {
        let Some(name) = row.first().and_then(|name| name.split('`').nth(1)) else {
            continue;
        };
        for (column, cell) in columns.iter().zip(&row).skip(1) {
            let cli = column.split(' ').next().unwrap_or_default();
            kept.insert((name, cli), *cell);
        }
    }
    kept
}

/// Returns the differences that a cell names, or `None` if it has undeclared ones.
fn names_in(cell: &str) -> Option<Vec<String>> {
    let links = cell.strip_prefix('✓')?;
    Some(
        links
            .split('"')
            .skip(1)
            .step_by(2)
            .map(str::to_owned)
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_kept_by_the_names_of_their_differences() {
        let page = "\n## Runs\n\nOne.\n\n| Scenario | pi 1.0 | codex |\n|---|---|---|\n| everywhere |  | [1](#1-a \"a\") |\n\
                    | [`text`](x.toml) | ✓ | ✓ [4](#4-late \"late\"), [9](#9-odd \"odd\") |\n\
                    | [`mcp`](x.toml) | – [a](#reasons) | **fails** |\n\n## Turns of a session\n";
        let kept = kept_cells(page, RUNS);
        let names = |scenario, cli| names_in(kept[&(scenario, cli)]);
        assert_eq!(names("text", "pi"), Some(Vec::new()));
        let both = vec!["late".to_owned(), "odd".to_owned()];
        assert_eq!(names("text", "codex"), Some(both));
        assert_eq!(names("mcp", "pi"), None);
        assert_eq!(names("mcp", "codex"), None);
        assert!(kept_cells(page, TURNS).is_empty());
    }

    #[test]
    fn text_of_others_stays_in_its_place() {
        let page = "# Own\n\ntext\n\n## Resilience\n\ntable\n\n## Agent loop\n\nticks\n\n\
                    ## Times\n\nfigures\n";
        let (own, sections) = parts(page);
        assert_eq!(own, "# Own\n\ntext");
        let wanted = [
            "## Resilience\n\ntable",
            "## Agent loop\n\nticks",
            "## Times\n\nfigures",
        ];
        assert_eq!(sections, wanted);
        assert_eq!(joined(own, sections), page);
        let (own, sections) = parts("# Own\n\n## Times\n\nfigures\n");
        assert_eq!((own, sections), ("# Own", ["", "", "## Times\n\nfigures"]));
        assert_eq!(parts("# Own\n"), ("# Own", ["", "", ""]));
    }
}
