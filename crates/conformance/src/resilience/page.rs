//! The section of `docs/conformance.md`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use teamster_mock_model::Cli;

use super::case::Case;
use super::facts;
use crate::install::clis;
use crate::matrix::{self, RESILIENCE};

/// What was found: the facts that were needed, or nothing where not all holds.
pub(crate) type Cells = BTreeMap<(Case, Cli), Option<Vec<&'static str>>>;

/// The section. What was not played now is as it is in the section that is there, where that can be.
pub(crate) fn section(cells: &Cells, there: &str) -> Result<String, std::fmt::Error> {
    let kept = matrix::rows(there, &facts::ALL.map(|fact| fact.name));
    let number = |name: &str| {
        let at = facts::ALL.iter().position(|fact| fact.name == name);
        at.map_or_else(String::new, |at| (at + 1).to_string())
    };
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
                (Some(fact), _) => format!("cannot: {}", number(fact.name)),
                (None, None) => kept
                    .get(case.name())
                    .and_then(|row| row.get(at))
                    .map_or_else(|| "not run".to_owned(), |cell| (*cell).to_owned()),
                (None, Some(None)) => "**fails**".to_owned(),
                (None, Some(Some(facts))) if facts.is_empty() => "holds".to_owned(),
                (None, Some(Some(facts))) => {
                    let numbers: Vec<_> = facts.iter().map(|name| number(name)).collect();
                    format!("holds, with {}", numbers.join(", "))
                }
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
    for (at, fact) in facts::ALL.iter().enumerate() {
        let clis: Vec<_> = fact.clis.iter().map(|cli| cli.id()).collect();
        let clis = clis.join(", ");
        writeln!(out, "{}. **{}** ({clis}): {}", at + 1, fact.name, fact.why)?;
    }
    Ok(page)
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
    fn a_row_that_was_not_played_is_kept_as_long_as_its_numbers_mean_the_same() {
        let holds = |case| {
            clis()
                .into_iter()
                .map(move |cli| ((case, cli), Some(Vec::new())))
        };
        let abort = Cells::from([((Case::Abort, Cli::OpenCode), Some(vec![facts::ALL[1].name]))]);
        let there = section(&abort, "").unwrap();
        let kept = "| `abort` | not run | not run | not run | not run | holds, with 2 | not run |";
        assert_eq!(row(&there, "abort"), kept);
        let page = section(&holds(Case::Limit).collect(), &there).unwrap();
        assert_eq!(row(&page, "abort"), kept);
        let all = "| `limit` | holds | holds | holds | holds | holds | holds |";
        assert_eq!(row(&page, "limit"), all);
        let renamed = there.replace(facts::ALL[1].name, "another");
        let page = section(&holds(Case::Limit).collect(), &renamed).unwrap();
        assert!(!row(&page, "abort").contains("holds"));
    }
}
