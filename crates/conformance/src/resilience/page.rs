//! The section of `docs/conformance.md`.

use std::fmt::Write as _;

use teamster_mock_model::Cli;

use super::case::Case;
use super::facts;
use crate::install::clis;
use crate::markdown::{head, row};
use crate::results::Cells;

pub(crate) fn section(cells: &Cells) -> String {
    let mut page = String::from(
        "## Resilience\n\n\
         Written by `cargo xtask resilience`; do not edit.\n\n\
         The same CLIs, run by the orchestrator, against models that fail: what must hold is asserted by \
         the events, by what the models were asked, by a file that each command leaves its mark in, and \
         by the processes that are left. What a CLI forces to be different is declared by name below.\n\n",
    );
    let out = &mut page;
    let names = clis().into_iter().map(Cli::id);
    head(out, ["Case"].into_iter().chain(names));
    for case in Case::ALL {
        let of_cli = clis().into_iter().map(|cli| {
            let played = cells.get(cli.id()).and_then(|of| of.get(case.name()));
            match (facts::cannot(cli, case), played) {
                (Some(fact), _) => format!("cannot: {}", fact.name),
                (None, Some(None)) => "**fails**".to_owned(),
                (None, Some(Some(names))) if names.is_empty() => "holds".to_owned(),
                (None, Some(Some(names))) if names.iter().all(|name| is_declared(name)) => {
                    let names: Vec<_> = names.iter().map(String::as_str).collect();
                    format!("holds, with {}", names.join(", "))
                }
                (None, _) => "not run".to_owned(),
            }
        });
        row(
            out,
            [format!("`{}`", case.name())].into_iter().chain(of_cli),
        );
    }
    out.push('\n');
    for case in Case::ALL {
        let _ = writeln!(out, "- `{}`: {}", case.name(), case.description());
    }
    out.push('\n');
    for fact in &facts::ALL {
        let clis: Vec<_> = fact.clis.iter().map(|cli| cli.id()).collect();
        let clis = clis.join(", ");
        let _ = writeln!(out, "- **{}** ({clis}): {}", fact.name, fact.why);
    }
    page
}

fn is_declared(name: &str) -> bool {
    facts::ALL.iter().any(|fact| fact.name == name)
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    #[test]
    fn cell_with_a_fact_that_is_not_declared_was_not_run() {
        let cells = |name: &str| {
            let names = Some(BTreeSet::from([name.to_owned()]));
            let abort = BTreeMap::from([("abort".to_owned(), names)]);
            Cells::from([("opencode".to_owned(), abort)])
        };
        let row = |cell: &str| {
            format!("\n| `abort` | not run | not run | not run | not run | {cell} | not run |\n")
        };
        let declared = facts::TOOLS_AT_THEIR_END.name;
        let holds = row(&format!("holds, with {declared}"));
        assert!(section(&cells(declared)).contains(&holds));
        assert!(section(&cells("gone")).contains(&row("not run")));
    }
}
