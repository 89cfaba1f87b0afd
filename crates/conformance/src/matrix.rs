//! The part of `docs/conformance.md` on scenarios: scenario by provider.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use teamster_mock_model::Cli;

use crate::column::Column;
use crate::differences::Differences;
use crate::isolation::Network;
use crate::markdown::{head, row};
use crate::results::Results;
use crate::{fact, install, scenario};

/// Renders the beginning of the page, up to the sections of other tasks.
pub(crate) fn section(results: &Results) -> anyhow::Result<String> {
    let scenarios = scenario::read(&[])?;
    let versions = install::pinned()?;
    let mut all_versions = versions.clone();
    // It has no program, so its version is that of this repository.
    all_versions.insert(Cli::Embedded, env!("CARGO_PKG_VERSION").to_owned());
    let differences = Differences::read()?.of_versions(&all_versions);
    let mut table = Table::new(&differences);
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
         Run on {}.\n\n\
         | Cell | Meaning |\n|---|---|\n\
         | ✓ | the same story |\n\
         | ✓ 4, 29 | the same but for these [declared differences](#declared-differences); each number is a link |\n\
         | – a | not played, for this [reason](#reasons) |\n\
         | run only: c | played as a run, not as a turn, for this [reason](#reasons) |",
        results.run_on
    )?;
    for hot in [false, true] {
        let columns = Column::of(&install::matrix(), !hot, hot);
        let heading = if hot {
            "## Turns of a session\n\n\
             The same scenarios as turns of a session, in a process that has played another turn before; a turn \
             that breaks off is followed by one more. Its events and figures must be those of a run."
        } else {
            "## Runs\n\nOne process for each run."
        };
        writeln!(out, "\n{heading}\n")?;
        let version = |column: &Column| versions.get(&column.cli).map_or("", String::as_str);
        let names = columns.iter().map(|column| {
            let name = format!("{} {}", column.cli.id(), version(column));
            name.trim_end().to_owned()
        });
        head(out, ["Scenario".to_owned()].into_iter().chain(names));
        let everywhere = columns
            .iter()
            .map(|column| table.links(&table.everywhere(*column)));
        row(out, ["everywhere".to_owned()].into_iter().chain(everywhere));
        for scenario in &scenarios {
            let name = &scenario.name;
            let mut cells = vec![format!(
                "[`{name}`](../crates/conformance/scenarios/{name}.toml)"
            )];
            for column in &columns {
                let played = results.scenarios.get(&column.to_string());
                let played = played.and_then(|scenarios| scenarios.get(name));
                cells.push(
                    if let Some(why) = scenario.not_played(column.cli, version(column)) {
                        format!("– {}", table.reason(why))
                    } else if let Some(why) = scenario.cold_only(column.cli).filter(|_| hot) {
                        format!("run only: {}", table.reason(why))
                    } else {
                        match played {
                            None => "not run".to_owned(),
                            Some(None) => "**fails**".to_owned(),
                            Some(Some(names)) => table.same_but_for(*column, names),
                        }
                    },
                );
            }
            row(out, cells);
        }
    }
    writeln!(out, "\n## Scenarios\n")?;
    for scenario in &scenarios {
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
    Ok(page)
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
    fn links(&self, names: &[&str]) -> String {
        let mut numbers: Vec<(usize, &str)> = names
            .iter()
            .filter_map(|name| {
                let at = self.names.iter().position(|known| known == name)?;
                Some((at + 1, *name))
            })
            .collect();
        numbers.sort_unstable();
        let links = numbers
            .iter()
            .map(|(number, name)| format!("[{number}](#{number}-{name} \"{name}\")"));
        links.collect::<Vec<_>>().join(", ")
    }

    fn same_but_for(&self, column: Column, names: &BTreeSet<String>) -> String {
        let everywhere = self.everywhere(column);
        let names = names.iter().map(String::as_str);
        let names: Vec<_> = names.filter(|name| !everywhere.contains(name)).collect();
        format!("✓ {}", self.links(&names)).trim_end().to_owned()
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
