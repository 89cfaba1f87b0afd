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

/// What the line with the date begins with.
const RUN_ON: &str = "Run on ";

/// The heading of the section that `cargo xtask resilience` writes.
pub(crate) const RESILIENCE: &str = "## Resilience";

/// The heading of the section that `cargo xtask loop` writes.
pub(crate) const LOOP: &str = "## Agent loop";

/// The heading of the section that `cargo xtask conformance --times` writes.
pub(crate) const TIMES: &str = "## Times";

/// The sections at the end that others write, in their order.
const KEPT: [&str; 3] = [RESILIENCE, LOOP, TIMES];

fn path() -> PathBuf {
    crate::root().join("docs/conformance.md")
}

/// Writes the page, or only looks whether the one that is there is the same; `false` if it is not.
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

/// Whether the page that is there is this one, but for its date.
fn is_current(page: &str) -> anyhow::Result<bool> {
    let there = there()?;
    let undated = |page: &str| -> Vec<String> {
        let lines = page.lines().filter(|line| !line.starts_with(RUN_ON));
        lines.map(str::to_owned).collect()
    };
    Ok(undated(&there) == undated(page))
}

/// The page that is there: what this task writes, and each of the [`KEPT`] sections.
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

/// A page of these parts.
fn joined(own: &str, sections: [&str; KEPT.len()]) -> String {
    let mut page = own.trim_end().to_owned();
    for section in sections.iter().filter(|section| !section.is_empty()) {
        page.push_str("\n\n");
        page.push_str(section.trim_end());
    }
    page.push('\n');
    page
}

/// The page that is there.
pub(crate) fn there() -> anyhow::Result<String> {
    let path = path();
    std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
}

/// The page that is there, with this one of the sections that are [`KEPT`].
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

/// One of the [`KEPT`] sections of a page, by its heading.
pub(crate) fn section<'p>(page: &'p str, heading: &str) -> &'p str {
    let at = KEPT.iter().position(|known| *known == heading);
    at.map_or("", |at| parts(page).1[at])
}

/// The rows of a part of the page that is there, by the name of what they are about: for a run that plays
/// only some. None, if the numbers in them no longer stand for the same declared differences.
pub(crate) fn rows<'p>(part: &'p str, names: &[&str]) -> BTreeMap<String, Vec<&'p str>> {
    let numbered = part.lines().filter_map(|line| {
        let (number, rest) = line.split_once(". **")?;
        let (name, _) = rest.split_once("**")?;
        Some((number.parse::<usize>().ok()?, name))
    });
    for (number, name) in numbered {
        if names.get(number - 1) != Some(&name) {
            return BTreeMap::new();
        }
    }
    part.lines()
        .filter_map(|line| {
            let row = line.strip_prefix("| `")?.strip_suffix(" |")?;
            let (name, cells) = row.split_once("` | ")?;
            Some((name.to_owned(), cells.split(" | ").collect()))
        })
        .collect()
}

/// The page. What was not played now is as it was, where that can be.
pub(crate) fn page(
    scenarios: &[Arc<Scenario>],
    columns: &[Column],
    cells: &BTreeMap<(Column, String), Verdict>,
    differences: &Differences,
    network: Network,
) -> anyhow::Result<String> {
    let versions = install::pinned()?;
    // By name, in the order of the table.
    let mut names: Vec<&str> = Vec::new();
    for difference in &differences.difference {
        if !names.contains(&difference.name.as_str()) {
            names.push(&difference.name);
        }
    }
    let number = |name: &str| {
        names
            .iter()
            .position(|known| *known == name)
            .map(|at| at + 1)
    };
    // Why some are not played, or not hot, in the order in which they are met.
    let mut reasons: Vec<&str> = Vec::new();
    for scenario in scenarios {
        let cold_only = scenario.test.cold_only.iter().map(|one| one.why.as_str());
        let not_played = columns.iter().filter_map(|column| {
            let version = versions.get(&column.cli)?;
            scenario.not_played(column.cli, version)
        });
        for why in cold_only.chain(not_played) {
            if !reasons.contains(&why) {
                reasons.push(why);
            }
        }
    }
    let letter = |why: &str| {
        let at = reasons.iter().position(|known| *known == why);
        at.and_then(|at| ('a'..='z').nth(at)).unwrap_or('?')
    };
    let mut page = String::new();
    let out = &mut page;
    writeln!(out, "# Conformance\n")?;
    writeln!(
        out,
        "Written by `cargo xtask conformance`; do not edit.\n\n\
         Each scenario is one script, which a mock model plays to every CLI. The CLI is the real program, \
         run through the public API of `teamster`, and the events give a story: text, tools with their \
         input and result, errors by kind, status, tokens, retries. It must be the same for all of them; \
         what a CLI forces to be different is declared by name below, and any other difference fails.\n\n\
         A column `hot` has the same scenarios as turns of a session, in a process that has played \
         another turn before; a turn that breaks off is followed by one more. What each of them tells \
         and uses must be the same as in a run of its own.\n"
    )?;
    writeln!(
        out,
        "{RUN_ON}{}, {}.\n",
        jiff::Zoned::now().date(),
        network.describe()
    )?;
    write!(out, "| Scenario |")?;
    for column in columns {
        let version = versions.get(&column.cli).map_or("", String::as_str);
        if column.hot {
            write!(out, " {column} |")?;
        } else {
            write!(out, " {column} {version} |")?;
        }
    }
    writeln!(out, "\n|---|{}", "---|".repeat(columns.len()))?;
    let there = there()?;
    let kept = rows(parts(&there).0, &names);
    for scenario in scenarios {
        write!(out, "| `{}` |", scenario.name)?;
        for (at, column) in columns.iter().enumerate() {
            let cell = cells.get(&(*column, scenario.name.clone()));
            let cold_only = scenario.cold_only(column.cli).filter(|_| column.hot);
            let version = versions.get(&column.cli).map_or("", String::as_str);
            let not_played = scenario.not_played(column.cli, version);
            let what = match cell {
                None if not_played.is_some() => {
                    format!("none: {}", not_played.map_or('?', letter))
                }
                None if cold_only.is_some() => {
                    format!("cold only: {}", cold_only.map_or('?', letter))
                }
                None => kept
                    .get(&scenario.name)
                    .and_then(|row| row.get(at))
                    .map_or_else(|| "not run".to_owned(), |cell| (*cell).to_owned()),
                Some(cell) if !cell.undeclared.is_empty() => "**fails**".to_owned(),
                Some(cell) if cell.declared.is_empty() => "same".to_owned(),
                Some(cell) => {
                    let mut numbers: Vec<_> = cell
                        .declared
                        .iter()
                        .filter_map(|name| number(name))
                        .collect();
                    numbers.sort_unstable();
                    let numbers: Vec<_> = numbers.iter().map(ToString::to_string).collect();
                    format!("same but for {}", numbers.join(", "))
                }
            };
            write!(out, " {what} |")?;
        }
        writeln!(out)?;
    }
    writeln!(out, "\n## Scenarios\n")?;
    for scenario in scenarios {
        writeln!(out, "- `{}`: {}", scenario.name, scenario.description())?;
    }
    if !reasons.is_empty() {
        writeln!(out, "\n## Not played, or cold only\n")?;
        for why in &reasons {
            writeln!(out, "- {}: {}", letter(why), why.trim())?;
        }
    }
    writeln!(out, "\n## Declared differences\n")?;
    for (at, name) in names.iter().enumerate() {
        writeln!(out, "{}. **{name}**", at + 1)?;
        let mut told = Vec::new();
        for difference in differences
            .difference
            .iter()
            .filter(|one| one.name == *name)
        {
            // The same may be told in other words in another scenario.
            let this = (&difference.providers, difference.hot, &difference.why);
            if told.contains(&this) {
                continue;
            }
            told.push(this);
            writeln!(
                out,
                "   - {}{}: {}",
                difference.providers.join(", "),
                match difference.hot {
                    None => "",
                    Some(true) => " (hot only)",
                    Some(false) => " (cold only)",
                },
                difference.why.trim()
            )?;
        }
    }
    writeln!(out, "\n## What a story consists of\n")?;
    for (fact, meaning) in fact::FACTS {
        writeln!(out, "- `{fact}`: {meaning}")?;
    }
    writeln!(
        out,
        "- `tool1`, `tool1.output`, `tool1.lines`, `tool1.failed`, `tool2`, …: a call, what it gave, how many lines that has, whether it failed\n\
         - `file.NAME`: what is in a file afterwards"
    )?;
    Ok(joined(&page, parts(&there).1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_kept_as_long_as_their_numbers_mean_the_same() {
        let page = "| Scenario | a | b |\n|---|---|---|\n| `text` | same | same but for 1, 2 |\n\n\
                    1. **one**\n   - a: why\n2. **two** (a): why\n";
        let wanted = BTreeMap::from([("text".to_owned(), vec!["same", "same but for 1, 2"])]);
        assert_eq!(rows(page, &["one", "two"]), wanted);
        assert_eq!(rows(page, &["one", "two", "three"]), wanted);
        assert!(rows(page, &["one", "three", "two"]).is_empty());
        assert!(rows(page, &["one"]).is_empty());
    }

    #[test]
    fn what_others_write_stays_in_its_place() {
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
