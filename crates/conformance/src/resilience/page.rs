//! The section of `docs/conformance.md`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use teamster_mock_model::Cli;

use super::case::Case;
use super::facts;
use crate::install::clis;
use crate::matrix::RESILIENCE;

/// Findings: the facts that were needed, or `None` if a check failed.
pub(crate) type Cells = BTreeMap<(Case, Cli), Option<Vec<&'static str>>>;

/// Prefixes of cells that name facts.
const HOLDS_WITH: &str = "holds, with ";
const CANNOT: &str = "cannot: ";

/// Renders the section. Rows that were not played now are copied from the current section if possible.
pub(crate) fn section(cells: &Cells, there: &str) -> Result<String, std::fmt::Error> {
    let kept = rows(there);
    let mut page = String::new();
    let out = &mut page;
    writeln!(
        out,
        "{RESILIENCE}\n\n\
         Written by `cargo xtask resilience`; do not edit.\n\n\
         The same CLIs, run by the orchestrator, against models that fail: what must hold is asserted by \
         the events, by what the models were asked, by a file that each command leaves its mark in, and \
         by the processes that are left. What a CLI forces to be different is declared by name below.\n"
    )?;
    write!(out, "| Case |")?;
    for cli in clis() {
        write!(out, " {cli} |")?;
    }
    writeln!(out, "\n|---|{}", "---|".repeat(clis().len()))?;
    for case in Case::ALL {
        write!(out, "| `{}` |", case.name())?;
        for (at, cli) in clis().into_iter().enumerate() {
            let what = match (facts::cannot(cli, case), cells.get(&(case, cli))) {
                (Some(fact), _) => format!("{CANNOT}{}", fact.name),
                (None, None) => kept
                    .get(case.name())
                    .and_then(|row| row.get(at))
                    .filter(|cell| is_known(cell))
                    .map_or_else(|| "not run".to_owned(), |cell| (*cell).to_owned()),
                (None, Some(None)) => "**fails**".to_owned(),
                (None, Some(Some(facts))) if facts.is_empty() => "holds".to_owned(),
                (None, Some(Some(facts))) => format!("{HOLDS_WITH}{}", facts.join(", ")),
            };
            write!(out, " {what} |")?;
        }
        writeln!(out)?;
    }
    writeln!(out)?;
    for case in Case::ALL {
        writeln!(out, "- `{}`: {}", case.name(), case.description())?;
    }
    writeln!(out)?;
    for fact in &facts::ALL {
        let clis: Vec<_> = fact.clis.iter().map(|cli| cli.id()).collect();
        let clis = clis.join(", ");
        writeln!(out, "- **{}** ({clis}): {}", fact.name, fact.why)?;
    }
    Ok(page)
}

/// Returns the rows of the current section, by the names of the cases.
fn rows(there: &str) -> BTreeMap<&str, Vec<&str>> {
    let rows = there.lines().filter_map(|line| {
        let row = line.strip_prefix("| `")?.strip_suffix(" |")?;
        let (name, cells) = row.split_once("` | ")?;
        Some((name, cells.split(" | ").collect()))
    });
    rows.collect()
}

/// Returns whether each fact that the cell names is still declared.
fn is_known(cell: &str) -> bool {
    let names = cell
        .strip_prefix(HOLDS_WITH)
        .or_else(|| cell.strip_prefix(CANNOT));
    names.is_none_or(|names| {
        names
            .split(", ")
            .all(|name| facts::ALL.iter().any(|fact| fact.name == name))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn row<'p>(page: &'p str, case: &str) -> &'p str {
        let head = format!("| `{case}` |");
        page.lines().find(|line| line.starts_with(&head)).unwrap()
    }

    #[test]
    fn a_cell_that_was_not_played_is_kept_as_long_as_its_facts_are_declared() {
        let holds = |case| {
            clis()
                .into_iter()
                .map(move |cli| ((case, cli), Some(Vec::new())))
        };
        let abort = Cells::from([((Case::Abort, Cli::OpenCode), Some(vec![facts::ALL[1].name]))]);
        let there = section(&abort, "").unwrap();
        let kept = format!(
            "| `abort` | not run | not run | not run | not run | holds, with {} | not run |",
            facts::ALL[1].name
        );
        assert_eq!(row(&there, "abort"), kept);
        let page = section(&holds(Case::Limit).collect(), &there).unwrap();
        assert_eq!(row(&page, "abort"), kept);
        let all = "| `limit` | holds | holds | holds | holds | holds | holds |";
        assert_eq!(row(&page, "limit"), all);
        let renamed = there.replace(facts::ALL[1].name, "gone");
        let page = section(&holds(Case::Limit).collect(), &renamed).unwrap();
        assert!(!row(&page, "abort").contains("holds"));
    }
}
