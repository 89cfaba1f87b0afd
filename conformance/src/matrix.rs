//! `docs/conformance.md`: scenario by provider.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use teamster_mock_model::Cli;

use crate::differences::{Differences, Verdict};
use crate::isolation::Network;
use crate::scenario::Scenario;
use crate::{install, story};

/// What the line with the date begins with.
const RUN_ON: &str = "Run on ";

/// The heading of the last section, which `cargo xtask resilience` writes.
pub(crate) const RESILIENCE: &str = "## Resilience";

fn path() -> PathBuf {
    crate::root().join("docs/conformance.md")
}

/// Writes the page.
pub(crate) fn write(page: &str) -> anyhow::Result<()> {
    let path = path();
    std::fs::write(&path, page).with_context(|| format!("cannot write {}", path.display()))
}

/// Whether the page that is there is this one, but for its date.
pub(crate) fn is_current(page: &str) -> anyhow::Result<bool> {
    let path = path();
    let there = std::fs::read_to_string(&path)
        .with_context(|| format!("cannot read {}", path.display()))?;
    let undated = |page: &str| -> Vec<String> {
        let lines = page.lines().filter(|line| !line.starts_with(RUN_ON));
        lines.map(str::to_owned).collect()
    };
    Ok(undated(&there) == undated(page))
}

/// The page that is there, in its two parts: this task's, and the section on resilience.
fn parts() -> anyhow::Result<(String, String)> {
    let path = path();
    let page = std::fs::read_to_string(&path)
        .with_context(|| format!("cannot read {}", path.display()))?;
    let at = page.find(RESILIENCE).unwrap_or(page.len());
    let (own, section) = page.split_at(at);
    Ok((own.trim_end().to_owned(), section.to_owned()))
}

/// The page that is there, with this section on resilience.
pub(crate) fn with_resilience(section: &str) -> anyhow::Result<String> {
    Ok(format!("{}\n\n{section}", parts()?.0))
}

/// The page.
pub(crate) fn page(
    scenarios: &[Arc<Scenario>],
    clis: &[Cli],
    cells: &BTreeMap<(Cli, String), Verdict>,
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
    let mut page = String::new();
    let out = &mut page;
    writeln!(out, "# Conformance\n")?;
    writeln!(
        out,
        "Written by `cargo xtask conformance`; do not edit.\n\n\
         Each scenario is one script, which a mock model plays to every CLI. The CLI is the real program, \
         run through the public API of `teamster`, and the events give a story: text, tools with their \
         input and result, errors by kind, status, tokens, retries. It must be the same for all of them; \
         what a CLI forces to be different is declared by name below, and any other difference fails.\n"
    )?;
    writeln!(
        out,
        "{RUN_ON}{}, {}.\n",
        jiff::Zoned::now().date(),
        network.describe()
    )?;
    write!(out, "| Scenario |")?;
    for cli in clis {
        write!(
            out,
            " {cli} {} |",
            versions.get(cli).map_or("", String::as_str)
        )?;
    }
    writeln!(out, "\n|---|{}", "---|".repeat(clis.len()))?;
    for scenario in scenarios {
        write!(out, "| `{}` |", scenario.name)?;
        for cli in clis {
            let cell = cells.get(&(*cli, scenario.name.clone()));
            let what = match cell {
                None => "not run".to_owned(),
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
            let this = (&difference.providers, &difference.why);
            if told.contains(&this) {
                continue;
            }
            told.push(this);
            writeln!(
                out,
                "   - {}: {}",
                difference.providers.join(", "),
                difference.why.trim()
            )?;
        }
    }
    writeln!(out, "\n## What a story consists of\n")?;
    for (fact, meaning) in story::FACTS {
        writeln!(out, "- `{fact}`: {meaning}")?;
    }
    writeln!(
        out,
        "- `tool1`, `tool1.output`, `tool1.lines`, `tool1.failed`, `tool2`, …: a call, what it gave, how many lines that has, whether it failed\n\
         - `file.NAME`: what is in a file afterwards"
    )?;
    let (_, resilience) = parts()?;
    if !resilience.is_empty() {
        write!(out, "\n{resilience}")?;
    }
    Ok(page)
}
